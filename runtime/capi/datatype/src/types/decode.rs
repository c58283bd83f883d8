//! Decoding: the calls that say how a datatype was made (MPI-5.0 section 5.1.13), and the calls that find a
//! predefined datatype by its properties.
//!
//! A call with large counts is one whose name ends in `_c`. A datatype made by such a call must also be
//! decoded by such a call; decoding it without large counts is an error. The engine records for each datatype
//! whether a call with large counts made it.

use super::find;
use super::predefined::{handle_of, unnamed};
use crate::abi;
use crate::argument::{OutArray, Output, Places};
use crate::failure::{Failure, Result};
use crate::raw;
use std::ffi::c_int;
use typepack_engine::Datatype;
use typepack_engine::{Contents, Form as Decoding, TypeClass, UNDEFINED};

fn number<T: TryFrom<usize>>(value: usize) -> Result<T> {
    T::try_from(value).map_err(|_| {
        let detail = format!(
            "a result is {value}, which does not fit in an int; use MPI_Type_get_envelope_c"
        );
        Failure::new(abi::ERR_VALUE_TOO_LARGE, "envelope", detail)
    })
}

#[cold]
fn large() -> Failure {
    let detail =
        "a call with large counts made this datatype; use the decoding call whose name ends in _c";
    Failure::new(abi::ERR_TYPE, "datatype", detail)
}

/// `MPI_Type_get_envelope`.
pub fn envelope(
    datatype: raw::Datatype,
    integers: Output<c_int>,
    addresses: Output<c_int>,
    datatypes: Output<c_int>,
    combiner: Output<c_int>,
) -> Result {
    let (integers, addresses, datatypes, combiner) = (
        integers.required("num_integers")?,
        addresses.required("num_addresses")?,
        datatypes.required("num_datatypes")?,
        combiner.required("combiner")?,
    );
    let envelope = find(datatype)?.tree().envelope();
    if envelope.form == Decoding::Large {
        return Err(large());
    }
    let counts =
        (number(envelope.integers)?, number(envelope.addresses)?, number(envelope.datatypes)?);
    integers.set(counts.0);
    addresses.set(counts.1);
    datatypes.set(counts.2);
    combiner.set(envelope.combiner.0);
    Ok(())
}

/// `MPI_Type_get_envelope_c`.
pub fn envelope_c(
    datatype: raw::Datatype,
    integers: Output<raw::Count>,
    addresses: Output<raw::Count>,
    large_counts: Output<raw::Count>,
    datatypes: Output<raw::Count>,
    combiner: Output<c_int>,
) -> Result {
    let (integers, addresses, large_counts, datatypes, combiner) = (
        integers.required("num_integers")?,
        addresses.required("num_addresses")?,
        large_counts.required("num_large_counts")?,
        datatypes.required("num_datatypes")?,
        combiner.required("combiner")?,
    );
    let envelope = find(datatype)?.tree().envelope();
    integers.set(number(envelope.integers)?);
    addresses.set(number(envelope.addresses)?);
    large_counts.set(number(envelope.large_counts)?);
    datatypes.set(number(envelope.datatypes)?);
    combiner.set(envelope.combiner.0);
    Ok(())
}

/// An array of the C caller that decoding fills, and the number of entries that the caller says it has.
struct Array<T> {
    array: OutArray<T>,
    room: i64,
    argument: &'static str,
}

impl<T: Copy> Array<T> {
    /// Returns the first `needed` entries of the array, for writing.
    ///
    /// # Errors
    /// Returns `MPI_ERR_ARG` if `self.room` is negative, or if the array is null and `needed` is not 0.
    /// Returns `MPI_ERR_OTHER` if `self.room` is less than `needed`.
    fn places(&self, needed: usize) -> Result<Places<T>> {
        if self.room < 0 {
            let detail = format!("the number of entries is {}, which is negative", self.room);
            return Err(Failure::new(abi::ERR_ARG, self.argument, detail));
        }
        if (self.room as u64) < needed as u64 {
            let detail =
                format!("the number of entries is {}; it must be at least {needed}", self.room);
            return Err(Failure::new(abi::ERR_OTHER, self.argument, detail));
        }
        // SAFETY: the standard requires that the array has at least as many entries as the `max_…` argument
        // says. `room` is the value of this argument, and `needed` is at most `room` (checked above).
        unsafe { self.array.places(needed, self.argument) }
    }
}

fn contents(datatype: raw::Datatype) -> Result<Contents> {
    Ok(find(datatype)?.tree().contents()?)
}

/// Returns a handle for each of the datatypes from which the decoded datatype was made.
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if no handle is left.
fn handles(trees: &[Datatype]) -> Result<Vec<raw::Datatype>> {
    trees.iter().map(handle_of).collect()
}

/// `MPI_Type_get_contents`.
pub fn get_contents(
    datatype: raw::Datatype,
    max_integers: c_int,
    max_addresses: c_int,
    max_datatypes: c_int,
    integers: OutArray<c_int>,
    addresses: OutArray<raw::Aint>,
    datatypes: OutArray<raw::Datatype>,
) -> Result {
    if find(datatype)?.tree().envelope().form == Decoding::Large {
        return Err(large());
    }
    // A call without large counts made this datatype, so decoding returns no large counts, and this call has
    // no array for them.
    get_contents_c(
        datatype,
        max_integers.into(),
        max_addresses.into(),
        0,
        max_datatypes.into(),
        integers,
        addresses,
        OutArray::NONE,
        datatypes,
    )
}

/// `MPI_Type_get_contents_c`.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub fn get_contents_c(
    datatype: raw::Datatype,
    max_integers: raw::Count,
    max_addresses: raw::Count,
    max_large_counts: raw::Count,
    max_datatypes: raw::Count,
    integers: OutArray<c_int>,
    addresses: OutArray<raw::Aint>,
    large_counts: OutArray<raw::Count>,
    datatypes: OutArray<raw::Datatype>,
) -> Result {
    let contents = contents(datatype)?;
    let integers = Array { array: integers, room: max_integers, argument: "array_of_integers" };
    let addresses = Array { array: addresses, room: max_addresses, argument: "array_of_addresses" };
    let large_counts =
        Array { array: large_counts, room: max_large_counts, argument: "array_of_large_counts" };
    let datatypes = Array { array: datatypes, room: max_datatypes, argument: "array_of_datatypes" };
    let integers = integers.places(contents.integers.len())?;
    let addresses = addresses.places(contents.addresses.len())?;
    let large_counts = large_counts.places(contents.large_counts.len())?;
    let datatypes = datatypes.places(contents.datatypes.len())?;
    let handles = handles(&contents.datatypes)?;
    integers.fill(contents.integers.iter().copied());
    addresses.fill(contents.addresses.iter().map(|&address| address as raw::Aint));
    large_counts.fill(contents.large_counts.iter().copied());
    datatypes.fill(handles);
    Ok(())
}

/// Converts an argument that is a precision or a range. Returns `None` if the caller passed `MPI_UNDEFINED`.
fn given(value: c_int) -> Option<c_int> {
    (value != UNDEFINED).then_some(value)
}

/// `MPI_Type_create_f90_real`.
pub fn f90_real(p: c_int, r: c_int, newtype: Output<raw::Datatype>) -> Result {
    let out = newtype.required("newtype")?;
    out.set(unnamed(Datatype::f90_real(given(p), given(r))?)?);
    Ok(())
}

/// `MPI_Type_create_f90_complex`.
pub fn f90_complex(p: c_int, r: c_int, newtype: Output<raw::Datatype>) -> Result {
    let out = newtype.required("newtype")?;
    out.set(unnamed(Datatype::f90_complex(given(p), given(r))?)?);
    Ok(())
}

/// `MPI_Type_create_f90_integer`.
pub fn f90_integer(r: c_int, newtype: Output<raw::Datatype>) -> Result {
    let out = newtype.required("newtype")?;
    out.set(unnamed(Datatype::f90_integer(r)?)?);
    Ok(())
}

/// `MPI_Type_match_size`.
pub fn match_size(typeclass: c_int, size: c_int, datatype: Output<raw::Datatype>) -> Result {
    let out = datatype.required("datatype")?;
    out.set(handle_of(&Datatype::match_size(TypeClass(typeclass), size)?)?);
    Ok(())
}

/// `MPI_Type_get_value_index`: returns the predefined pair type that has a name and consists of the two
/// types, or `MPI_DATATYPE_NULL` if there is none.
///
/// MPICH also returns only pair types that have a name. The standard leaves open whether pair types without a
/// name exist. The engine has such types, but this call does not return them: some programs, such as mpi4py's
/// tests, assume that any type that decodes as `MPI_COMBINER_VALUE_INDEX` belongs to the user, and free it.
pub fn value_index(
    value: raw::Datatype,
    index: raw::Datatype,
    pair: Output<raw::Datatype>,
) -> Result {
    let out = pair.required("pair_type")?;
    let found = Datatype::get_value_index(find(value)?.tree(), find(index)?.tree())?;
    let named = found.filter(Datatype::is_named);
    out.set(named.as_ref().map_or(Ok(raw::Datatype::NULL), handle_of)?);
    Ok(())
}
