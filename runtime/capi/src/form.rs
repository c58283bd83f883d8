//! The two forms of a function with counts: with C integers, and the large-count one (`_c`).
//!
//! A function is written once, over a [`Form`]; `exports.rs` makes both from it.

use crate::abi;
use crate::error::{Failure, Result};
use crate::raw::{Aint, Count};
use std::ffi::c_int;
use typepack::engine::Form as Decoding;

/// A number of one of the forms.
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

/// One of the two forms.
pub trait Form {
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

impl Form for Int {
    type Count = c_int;
    type Address = Aint;
    type Displacement = c_int;
    const DECODING: Decoding = Decoding::Int;
}

impl Form for Large {
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
