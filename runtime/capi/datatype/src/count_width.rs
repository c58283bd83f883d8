//! How wide the counts of a call are: C integers, or `MPI_Count` in the calls that end in `_c`.
//!
//! A function is written once, over a [`CountWidth`]; the exported functions are two of it.

use crate::abi;
use crate::failure::{Failure, Result};
use crate::raw::{Aint, Count};
use std::ffi::c_int;
use typepack_engine::Form as Decoding;

/// A number of one of the widths.
pub trait Number: Copy {
    /// The value.
    fn wide(self) -> i64;
    /// The value in this type, if it has room for it.
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

/// One of the two widths.
pub trait CountWidth {
    /// Counts, block lengths, and displacements in elements.
    type Count: Number;
    /// Displacements and extents in bytes.
    type Address: Number;
    /// Displacements of collective calls with a part per rank.
    type Displacement: Number;
    /// The form in which a type that this call makes decodes.
    const DECODING: Decoding;
}

/// C integers; `MPI_Aint` for bytes.
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

/// A count that must not be negative.
///
/// # Errors
/// `MPI_ERR_COUNT`.
#[inline]
pub fn count(value: impl Number, argument: &'static str) -> Result<u64> {
    let value = value.wide();
    u64::try_from(value).map_err(|_| negative(abi::ERR_COUNT, argument, value))
}

/// The failure of a negative number; apart, so that the way without it is short.
#[cold]
pub fn negative(class: c_int, argument: &'static str, value: i64) -> Failure {
    Failure::new(class, argument, format!("{value} is negative"))
}
