//! The width of the counts of a call. Most calls take C integers; the calls whose names end in `_c` take
//! `MPI_Count`.
//!
//! A call that exists in both widths has one implementation, generic over a [`CountWidth`]. The two
//! instances of the implementation belong to the two exported functions.

use crate::raw::{Aint, Count};
use std::ffi::c_int;
use typepack_engine::Form as Decoding;

/// The type of a count or displacement argument: a C integer, an `MPI_Aint` or an `MPI_Count`.
pub trait Number: Copy {
    /// Returns the value.
    fn wide(self) -> i64;
    /// Returns `value` in this type; `None` if `value` does not fit in the type.
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

/// The argument types of the calls of one width.
pub trait CountWidth {
    /// The type of counts, block lengths, and displacements in elements.
    type Count: Number;
    /// The type of displacements and extents in bytes.
    type Address: Number;
    /// The type of the displacements of collective calls that divide a buffer into one part for each rank,
    /// such as `MPI_Gatherv`.
    type Displacement: Number;
    /// Says which calls can decode a datatype that was made by a call of this width: only the calls whose
    /// names end in `_c`, or also the calls with C integers.
    const DECODING: Decoding;
    /// True if the calls are older than MPI-3.0, which removed the markers `MPI_LB` and `MPI_UB`. Programs of that time
    /// pass the markers to `MPI_Type_create_struct`.
    const MARKERS: bool;
}

/// The calls that take C integers for counts and for the displacements of collective calls, and `MPI_Aint`
/// for displacements in bytes.
#[derive(Debug)]
pub enum Int {}

/// The calls whose names end in `_c`. They take `MPI_Count` for counts and for displacements in bytes, but
/// `MPI_Aint` for the displacements of collective calls.
#[derive(Debug)]
pub enum Large {}

impl CountWidth for Int {
    type Count = c_int;
    type Address = Aint;
    type Displacement = c_int;
    const DECODING: Decoding = Decoding::Int;
    const MARKERS: bool = true;
}

impl CountWidth for Large {
    type Count = Count;
    type Address = Count;
    type Displacement = Aint;
    const DECODING: Decoding = Decoding::Large;
    const MARKERS: bool = false;
}
