//! The width of a call's counts: C integers, or `MPI_Count` in the calls whose name ends in `_c`.
//!
//! A function is written once, generic over a [`CountWidth`]. The two exported functions are its two
//! instances.

use crate::abi;
use crate::failure::{Failure, Result};
use crate::raw::{Aint, Count};
use std::ffi::c_int;
use typepack_engine::Form as Decoding;

/// A count or displacement argument of either width.
pub trait Number: Copy {
    /// Returns the value.
    fn wide(self) -> i64;
    /// Returns the value in this type; `None` if it does not fit.
    fn exactly(value: i64) -> Option<Self>;
}

impl Number for c_int {
    #[inline]
    fn wide(self) -> i64 {
        self.into()
    }
    #[inline]
    fn exactly(value: i64) -> Option<Self> {
        Self::try_from(value).ok()
    }
}

impl Number for Count {
    #[inline]
    fn wide(self) -> i64 {
        self
    }
    #[inline]
    fn exactly(value: i64) -> Option<Self> {
        Some(value)
    }
}

impl Number for Aint {
    #[inline]
    fn wide(self) -> i64 {
        self as i64
    }
    #[inline]
    fn exactly(value: i64) -> Option<Self> {
        Self::try_from(value).ok()
    }
}

/// The argument types of one of the two widths.
pub trait CountWidth {
    /// Counts, block lengths, and displacements in elements.
    type Count: Number;
    /// Displacements and extents in bytes.
    type Address: Number;
    /// Displacements in collective calls that divide the buffer into one part for each rank.
    type Displacement: Number;
    /// How a datatype decodes if a call of this width made the datatype.
    const DECODING: Decoding;
}

/// C integers for counts, `MPI_Aint` for bytes.
#[derive(Debug)]
pub enum Int {}

/// `MPI_Count` for everything.
#[derive(Debug)]
pub enum Large {}

impl CountWidth for Int {
    type Count = c_int;
    type Address = Aint;
    type Displacement = c_int;
    const DECODING: Decoding = Decoding::Int;
}

impl CountWidth for Large {
    type Count = Count;
    type Address = Count;
    type Displacement = Aint;
    const DECODING: Decoding = Decoding::Large;
}

/// Returns the value of a count.
///
/// # Errors
/// Returns `MPI_ERR_COUNT` if `value` is negative.
#[inline]
pub fn count(value: impl Number, argument: &'static str) -> Result<u64> {
    let value = value.wide();
    u64::try_from(value).map_err(|_| negative(abi::ERR_COUNT, argument, value))
}

/// Returns the failure of a negative number. This is a separate function, so that callers without a failure
/// stay short.
#[cold]
pub fn negative(class: c_int, argument: &'static str, value: i64) -> Failure {
    Failure::new(class, argument, format!("{value} is negative"))
}
