//! Decoding: how a type was made (MPI-5.0 section 5.1.13), and types that calls look up.
//!
//! The queries without large counts are erroneous for types made by a call that ends in `_c`, and
//! the engine says which these are.

use super::find;
use super::predefined::{handle_of, unnamed};
use crate::abi;
use crate::failure::{Failure, Result};
use crate::out::Out;
use crate::raw;
use std::ffi::c_int;
use typepack_engine::Datatype;
use typepack_engine::{Contents, Form as Decoding, TypeClass, UNDEFINED};

fn number<T: TryFrom<usize>>(value: usize) -> Result<T> {
    T::try_from(value).map_err(|_| {
        let detail = format!("{value} entries do not fit its type");
        Failure::new(abi::ERR_VALUE_TOO_LARGE, "envelope", detail)
    })
}

#[cold]
fn large() -> Failure {
    let detail = "made by a call with large counts; only the queries that end in _c decode it";
    Failure::new(abi::ERR_TYPE, "datatype", detail)
}

/// `MPI_Type_get_envelope`.
///
/// # Safety
/// As the C function.
pub unsafe fn envelope(
    datatype: raw::Datatype,
    integers: *mut c_int,
    addresses: *mut c_int,
    datatypes: *mut c_int,
    combiner: *mut c_int,
) -> Result {
    // SAFETY: passed on.
    let (integers, addresses, datatypes, combiner) = unsafe {
        (
            Out::new(integers, "num_integers")?,
            Out::new(addresses, "num_addresses")?,
            Out::new(datatypes, "num_datatypes")?,
            Out::new(combiner, "combiner")?,
        )
    };
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
///
/// # Safety
/// As the C function.
pub unsafe fn envelope_c(
    datatype: raw::Datatype,
    integers: *mut raw::Count,
    addresses: *mut raw::Count,
    large_counts: *mut raw::Count,
    datatypes: *mut raw::Count,
    combiner: *mut c_int,
) -> Result {
    // SAFETY: passed on.
    let (integers, addresses, large_counts, datatypes, combiner) = unsafe {
        (
            Out::new(integers, "num_integers")?,
            Out::new(addresses, "num_addresses")?,
            Out::new(large_counts, "num_large_counts")?,
            Out::new(datatypes, "num_datatypes")?,
            Out::new(combiner, "combiner")?,
        )
    };
    let envelope = find(datatype)?.tree().envelope();
    integers.set(number(envelope.integers)?);
    addresses.set(number(envelope.addresses)?);
    large_counts.set(number(envelope.large_counts)?);
    datatypes.set(number(envelope.datatypes)?);
    combiner.set(envelope.combiner.0);
    Ok(())
}

/// An array that decoding fills.
struct Array<T> {
    address: *mut T,
    room: i64,
    argument: &'static str,
}

impl<T: Copy> Array<T> {
    fn check(&self, needed: usize) -> Result {
        if self.room < 0 {
            let detail = format!("{} is negative", self.room);
            return Err(Failure::new(abi::ERR_ARG, self.argument, detail));
        }
        if (self.room as u64) < needed as u64 {
            let detail = format!("{} entries, the type has {needed}", self.room);
            return Err(Failure::new(abi::ERR_OTHER, self.argument, detail));
        }
        if needed > 0 && self.address.is_null() {
            return Err(Failure::null(self.argument));
        }
        Ok(())
    }

    /// # Safety
    ///
    /// - [`check`](Self::check) was passed for that many values, and the array has the room it says.
    unsafe fn fill(&self, values: impl Iterator<Item = T>) {
        for (i, value) in values.enumerate() {
            // SAFETY: within the room.
            unsafe { self.address.add(i).write_unaligned(value) };
        }
    }
}

fn contents(datatype: raw::Datatype) -> Result<Contents> {
    Ok(find(datatype)?.tree().contents()?)
}

/// Handles for the types of the contents; all or none.
fn handles(trees: &[Datatype]) -> Result<Vec<raw::Datatype>> {
    trees.iter().map(handle_of).collect()
}

/// `MPI_Type_get_contents`.
///
/// # Safety
/// As the C function.
pub unsafe fn get_contents(
    datatype: raw::Datatype,
    max_integers: c_int,
    max_addresses: c_int,
    max_datatypes: c_int,
    integers: *mut c_int,
    addresses: *mut raw::Aint,
    datatypes: *mut raw::Datatype,
) -> Result {
    if find(datatype)?.tree().envelope().form == Decoding::Large {
        return Err(large());
    }
    // SAFETY: passed on; without large counts there is nothing to write to the null array.
    unsafe {
        get_contents_c(
            datatype,
            max_integers.into(),
            max_addresses.into(),
            0,
            max_datatypes.into(),
            integers,
            addresses,
            std::ptr::null_mut(),
            datatypes,
        )
    }
}

/// `MPI_Type_get_contents_c`.
///
/// # Safety
/// As the C function.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub unsafe fn get_contents_c(
    datatype: raw::Datatype,
    max_integers: raw::Count,
    max_addresses: raw::Count,
    max_large_counts: raw::Count,
    max_datatypes: raw::Count,
    integers: *mut c_int,
    addresses: *mut raw::Aint,
    large_counts: *mut raw::Count,
    datatypes: *mut raw::Datatype,
) -> Result {
    let contents = contents(datatype)?;
    let integers = Array { address: integers, room: max_integers, argument: "array_of_integers" };
    let addresses =
        Array { address: addresses, room: max_addresses, argument: "array_of_addresses" };
    let large_counts =
        Array { address: large_counts, room: max_large_counts, argument: "array_of_large_counts" };
    let datatypes =
        Array { address: datatypes, room: max_datatypes, argument: "array_of_datatypes" };
    integers.check(contents.integers.len())?;
    addresses.check(contents.addresses.len())?;
    large_counts.check(contents.large_counts.len())?;
    datatypes.check(contents.datatypes.len())?;
    let handles = handles(&contents.datatypes)?;
    // SAFETY: checked for these lengths; the caller promises the room.
    unsafe {
        integers.fill(contents.integers.iter().copied());
        addresses.fill(contents.addresses.iter().map(|&address| address as raw::Aint));
        large_counts.fill(contents.large_counts.iter().copied());
        datatypes.fill(handles.into_iter());
    }
    Ok(())
}

/// A precision or range; `MPI_UNDEFINED` for none.
fn given(value: c_int) -> Option<c_int> {
    (value != UNDEFINED).then_some(value)
}

/// `MPI_Type_create_f90_real`.
///
/// # Safety
/// As the C function.
pub unsafe fn f90_real(p: c_int, r: c_int, newtype: *mut raw::Datatype) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Out::new(newtype, "newtype")? };
    out.set(unnamed(Datatype::f90_real(given(p), given(r))?)?);
    Ok(())
}

/// `MPI_Type_create_f90_complex`.
///
/// # Safety
/// As the C function.
pub unsafe fn f90_complex(p: c_int, r: c_int, newtype: *mut raw::Datatype) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Out::new(newtype, "newtype")? };
    out.set(unnamed(Datatype::f90_complex(given(p), given(r))?)?);
    Ok(())
}

/// `MPI_Type_create_f90_integer`.
///
/// # Safety
/// As the C function.
pub unsafe fn f90_integer(r: c_int, newtype: *mut raw::Datatype) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Out::new(newtype, "newtype")? };
    out.set(unnamed(Datatype::f90_integer(r)?)?);
    Ok(())
}

/// `MPI_Type_match_size`.
///
/// # Safety
/// As the C function.
pub unsafe fn match_size(typeclass: c_int, size: c_int, datatype: *mut raw::Datatype) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Out::new(datatype, "datatype")? };
    out.set(handle_of(&Datatype::match_size(TypeClass(typeclass), size)?)?);
    Ok(())
}

/// `MPI_Type_get_value_index`: the named pair of the two types, or `MPI_DATATYPE_NULL`, as in MPICH.
/// The standard leaves open whether there are pairs without a name; the engine has them, but programs
/// take a pair that decodes as one for a type of the user's, to be freed (mpi4py's tests do).
///
/// # Safety
/// As the C function.
pub unsafe fn value_index(
    value: raw::Datatype,
    index: raw::Datatype,
    pair: *mut raw::Datatype,
) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Out::new(pair, "pair_type")? };
    let found = Datatype::get_value_index(find(value)?.tree(), find(index)?.tree())?;
    let named = found.filter(Datatype::is_named);
    out.set(named.as_ref().map_or(Ok(raw::Datatype::NULL), handle_of)?);
    Ok(())
}
