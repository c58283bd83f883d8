//! Making and committing datatypes (MPI-5.0 sections 5.1.2 to 5.1.5, 5.1.9).
//!
//! Each call is written once over its [`CountWidth`] and checked by the engine, which names the argument.

use super::{find, insert};
use crate::abi;
use crate::array;
use crate::count_width::{CountWidth, Number};
use crate::failure::{Failure, Result};
use crate::out::Out;
use crate::raw;
use std::ffi::c_int;
use typepack_engine::{Binding, Distribution};
use typepack_engine::{Datatype, Order};

/// The values of an array argument.
///
/// # Errors
/// As [`array::read`] and, for the values, [`array::room`].
///
/// # Safety
///
/// - `array` is null or readable for `length` entries.
unsafe fn list<N: Number>(
    array: *const N,
    length: usize,
    argument: &'static str,
) -> Result<Vec<i64>> {
    // SAFETY: passed on.
    let entries = unsafe { array::read(array, length, argument)? };
    let mut values = array::room(length, argument)?;
    values.extend(entries.into_iter().map(N::wide));
    Ok(values)
}

/// Block lengths and displacements.
///
/// # Errors
/// As [`list`].
///
/// # Safety
///
/// - Both are null or readable for `count` entries.
unsafe fn blocks<C: Number, A: Number>(
    count: usize,
    blocklengths: *const C,
    displacements: *const A,
) -> Result<(Vec<i64>, Vec<i64>)> {
    // SAFETY: passed on.
    unsafe {
        Ok((
            list(blocklengths, count, "array_of_blocklengths")?,
            list(displacements, count, "array_of_displacements")?,
        ))
    }
}

/// A count of array entries: not negative.
fn length(count: impl Number, argument: &'static str) -> Result<usize> {
    crate::count_width::count(count, argument).map(|count| count as usize)
}

/// Records the width of the call that made a type and gives it a handle.
fn publish<W: CountWidth>(
    out: &Out<raw::Datatype>,
    made: typepack_engine::Result<Datatype>,
) -> Result {
    out.set(insert(made?.with_form(W::DECODING)?)?);
    Ok(())
}

/// `MPI_Type_contiguous`.
///
/// # Safety
/// As the C function.
pub unsafe fn contiguous<W: CountWidth>(
    count: W::Count,
    oldtype: raw::Datatype,
    newtype: *mut raw::Datatype,
) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Out::new(newtype, "newtype")? };
    publish::<W>(&out, Datatype::contiguous(count.wide(), find(oldtype)?.tree()))
}

/// `MPI_Type_vector`.
///
/// # Safety
/// As the C function.
pub unsafe fn vector<W: CountWidth>(
    count: W::Count,
    blocklength: W::Count,
    stride: W::Count,
    oldtype: raw::Datatype,
    newtype: *mut raw::Datatype,
) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Out::new(newtype, "newtype")? };
    let old = find(oldtype)?;
    publish::<W>(
        &out,
        Datatype::vector(count.wide(), blocklength.wide(), stride.wide(), old.tree()),
    )
}

/// `MPI_Type_create_hvector`.
///
/// # Safety
/// As the C function.
pub unsafe fn hvector<W: CountWidth>(
    count: W::Count,
    blocklength: W::Count,
    stride: W::Address,
    oldtype: raw::Datatype,
    newtype: *mut raw::Datatype,
) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Out::new(newtype, "newtype")? };
    let old = find(oldtype)?;
    publish::<W>(
        &out,
        Datatype::hvector(count.wide(), blocklength.wide(), stride.wide(), old.tree()),
    )
}

/// `MPI_Type_indexed`.
///
/// # Safety
/// As the C function.
pub unsafe fn indexed<W: CountWidth>(
    count: W::Count,
    blocklengths: *const W::Count,
    displacements: *const W::Count,
    oldtype: raw::Datatype,
    newtype: *mut raw::Datatype,
) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Out::new(newtype, "newtype")? };
    let (old, count) = (find(oldtype)?, length(count, "count")?);
    // SAFETY: passed on: both have `count` entries.
    let (lengths, displacements) = unsafe { blocks(count, blocklengths, displacements)? };
    publish::<W>(&out, Datatype::indexed(&lengths, &displacements, old.tree()))
}

/// `MPI_Type_create_hindexed`.
///
/// # Safety
/// As the C function.
pub unsafe fn hindexed<W: CountWidth>(
    count: W::Count,
    blocklengths: *const W::Count,
    displacements: *const W::Address,
    oldtype: raw::Datatype,
    newtype: *mut raw::Datatype,
) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Out::new(newtype, "newtype")? };
    let (old, count) = (find(oldtype)?, length(count, "count")?);
    // SAFETY: passed on: both have `count` entries.
    let (lengths, displacements) = unsafe { blocks(count, blocklengths, displacements)? };
    publish::<W>(&out, Datatype::hindexed(&lengths, &displacements, old.tree()))
}

/// `MPI_Type_create_indexed_block`.
///
/// # Safety
/// As the C function.
pub unsafe fn indexed_block<W: CountWidth>(
    count: W::Count,
    blocklength: W::Count,
    displacements: *const W::Count,
    oldtype: raw::Datatype,
    newtype: *mut raw::Datatype,
) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Out::new(newtype, "newtype")? };
    let (old, count) = (find(oldtype)?, length(count, "count")?);
    // SAFETY: passed on: it has `count` entries.
    let displacements = unsafe { list(displacements, count, "array_of_displacements")? };
    publish::<W>(&out, Datatype::indexed_block(blocklength.wide(), &displacements, old.tree()))
}

/// `MPI_Type_create_hindexed_block`.
///
/// # Safety
/// As the C function.
pub unsafe fn hindexed_block<W: CountWidth>(
    count: W::Count,
    blocklength: W::Count,
    displacements: *const W::Address,
    oldtype: raw::Datatype,
    newtype: *mut raw::Datatype,
) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Out::new(newtype, "newtype")? };
    let (old, count) = (find(oldtype)?, length(count, "count")?);
    // SAFETY: passed on: it has `count` entries.
    let displacements = unsafe { list(displacements, count, "array_of_displacements")? };
    publish::<W>(&out, Datatype::hindexed_block(blocklength.wide(), &displacements, old.tree()))
}

/// The arguments of a struct: block lengths, displacements, types.
type Members = (Vec<i64>, Vec<i64>, Vec<Datatype>);

/// # Safety
///
/// - The three arrays are null or readable for `count` entries.
unsafe fn members<C: Number, A: Number>(
    count: C,
    blocklengths: *const C,
    displacements: *const A,
    types: *const raw::Datatype,
) -> Result<Members> {
    let count = length(count, "count")?;
    if count > 0 && types.is_null() {
        return Err(Failure::null("array_of_types"));
    }
    // SAFETY: passed on: all three have `count` entries.
    let (lengths, displacements) = unsafe { blocks(count, blocklengths, displacements)? };
    let types = (0..count)
        // SAFETY: as above.
        .map(|i| Ok(find(unsafe { types.add(i).read_unaligned() })?.tree().clone()))
        .collect::<Result<Vec<Datatype>>>()?;
    Ok((lengths, displacements, types))
}

/// `MPI_Type_create_struct`.
///
/// # Safety
/// As the C function.
pub unsafe fn structured<W: CountWidth>(
    count: W::Count,
    blocklengths: *const W::Count,
    displacements: *const W::Address,
    types: *const raw::Datatype,
    newtype: *mut raw::Datatype,
) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Out::new(newtype, "newtype")? };
    // SAFETY: passed on.
    let (lengths, displacements, types) =
        unsafe { members(count, blocklengths, displacements, types)? };
    publish::<W>(&out, Datatype::structured(&lengths, &displacements, &types))
}

/// `MPI_Type_struct` of MPI-1, the one call that takes `MPI_LB` and `MPI_UB`.
///
/// # Safety
/// As the C function.
pub unsafe fn structured_with_markers(
    count: c_int,
    blocklengths: *const c_int,
    displacements: *const raw::Aint,
    types: *const raw::Datatype,
    newtype: *mut raw::Datatype,
) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Out::new(newtype, "newtype")? };
    // SAFETY: passed on.
    let (lengths, displacements, types) =
        unsafe { members(count, blocklengths, displacements, types)? };
    let made = Datatype::type_struct(&lengths, &displacements, &types, Binding::C)?;
    out.set(insert(made)?);
    Ok(())
}

fn order(value: c_int) -> Result<Order> {
    Order::from_abi_value(value).ok_or_else(|| {
        let detail = format!("{value} is neither MPI_ORDER_C nor MPI_ORDER_FORTRAN");
        Failure::new(abi::ERR_ARG, "order", detail)
    })
}

/// A number of dimensions: at least 1.
fn dimensions(ndims: c_int) -> Result<usize> {
    usize::try_from(ndims)
        .ok()
        .filter(|&n| n > 0)
        .ok_or_else(|| Failure::new(abi::ERR_ARG, "ndims", format!("{ndims} is below 1")))
}

/// `MPI_Type_create_subarray`.
///
/// # Safety
/// As the C function.
pub unsafe fn subarray<W: CountWidth>(
    ndims: c_int,
    sizes: *const W::Count,
    subsizes: *const W::Count,
    starts: *const W::Count,
    array_order: c_int,
    oldtype: raw::Datatype,
    newtype: *mut raw::Datatype,
) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Out::new(newtype, "newtype")? };
    let (old, n, order) = (find(oldtype)?, dimensions(ndims)?, order(array_order)?);
    // SAFETY: passed on: all three have `ndims` entries.
    let (sizes, subsizes, starts) = unsafe {
        (
            list(sizes, n, "array_of_sizes")?,
            list(subsizes, n, "array_of_subsizes")?,
            list(starts, n, "array_of_starts")?,
        )
    };
    publish::<W>(&out, Datatype::subarray(&sizes, &subsizes, &starts, order, old.tree()))
}

/// `MPI_Type_create_darray`.
///
/// # Safety
/// As the C function.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub unsafe fn darray<W: CountWidth>(
    size: c_int,
    rank: c_int,
    ndims: c_int,
    gsizes: *const W::Count,
    distribs: *const c_int,
    dargs: *const c_int,
    psizes: *const c_int,
    array_order: c_int,
    oldtype: raw::Datatype,
    newtype: *mut raw::Datatype,
) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Out::new(newtype, "newtype")? };
    let (old, n, order) = (find(oldtype)?, dimensions(ndims)?, order(array_order)?);
    // SAFETY: passed on: all four have `ndims` entries.
    let (sizes, distribs, dargs, psizes) = unsafe {
        (
            list(gsizes, n, "array_of_gsizes")?,
            list(distribs, n, "array_of_distribs")?,
            list(dargs, n, "array_of_dargs")?,
            list(psizes, n, "array_of_psizes")?,
        )
    };
    let distribs = distribs
        .iter()
        .map(|&value| {
            Distribution::from_abi_value(value as c_int).ok_or_else(|| {
                let detail = format!("{value} is no distribution");
                Failure::new(abi::ERR_ARG, "array_of_distribs", detail)
            })
        })
        .collect::<Result<Vec<_>>>()?;
    // These were C integers.
    let narrow =
        |values: Vec<i64>| values.into_iter().map(|value| value as c_int).collect::<Vec<_>>();
    let (dargs, psizes) = (narrow(dargs), narrow(psizes));
    let made = Datatype::darray(size, rank, &sizes, &distribs, &dargs, &psizes, order, old.tree());
    publish::<W>(&out, made)
}

/// `MPI_Type_create_resized`.
///
/// # Safety
/// As the C function.
pub unsafe fn resized<W: CountWidth>(
    oldtype: raw::Datatype,
    lb: W::Address,
    extent: W::Address,
    newtype: *mut raw::Datatype,
) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Out::new(newtype, "newtype")? };
    publish::<W>(&out, Datatype::resized(lb.wide(), extent.wide(), find(oldtype)?.tree()))
}

/// `MPI_Type_commit`.
///
/// # Safety
/// As the C function.
pub unsafe fn commit(datatype: *mut raw::Datatype) -> Result {
    if datatype.is_null() {
        return Err(Failure::null("datatype"));
    }
    // SAFETY: not null, and readable as an argument of both directions.
    let handle = unsafe { datatype.read_unaligned() };
    find(handle)?.commit()?;
    Ok(())
}
