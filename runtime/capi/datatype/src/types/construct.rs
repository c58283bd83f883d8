//! Making and committing datatypes (MPI-5.0 sections 5.1.2 to 5.1.5, 5.1.9).
//!
//! Each call is generic over its [`CountWidth`]. The engine checks the values of the arguments, and its
//! errors name the wrong argument.

use super::{find, insert};
use crate::abi;
use crate::argument::{Array, InOut, Output, Place, room};
use crate::count_width::{CountWidth, Number};
use crate::failure::{Failure, Result};
use crate::raw;
use std::ffi::c_int;
use typepack_engine::{Binding, Distribution};
use typepack_engine::{Datatype, Order};

/// Returns the values of an array argument as 64-bit integers.
///
/// # Errors
/// Returns the errors of [`Array::entries`] and [`room`].
///
/// # Safety
///
/// - `length` is at most the number of entries that the standard prescribes for `array`.
unsafe fn list<N: Number>(
    array: Array<N>,
    length: usize,
    argument: &'static str,
) -> Result<Vec<i64>> {
    // SAFETY: `array` has at least `length` entries (condition of `# Safety`). This function reads the
    // entries before it returns, and therefore before the C call returns.
    let entries = unsafe { array.entries(length, argument)? };
    let mut values = room(length, argument)?;
    values.extend(entries.map(N::wide));
    Ok(values)
}

/// Returns the values of the arrays of block lengths and of displacements.
///
/// # Errors
/// Returns the errors of [`list`].
///
/// # Safety
///
/// - `count` is at most the number of entries that the standard prescribes for each of the two arrays.
unsafe fn blocks<C: Number, A: Number>(
    count: usize,
    blocklengths: Array<C>,
    displacements: Array<A>,
) -> Result<(Vec<i64>, Vec<i64>)> {
    // SAFETY: `blocklengths` and `displacements` have at least `count` entries each (condition of
    // `# Safety`).
    unsafe {
        Ok((
            list(blocklengths, count, "array_of_blocklengths")?,
            list(displacements, count, "array_of_displacements")?,
        ))
    }
}

/// Converts the argument that gives the number of entries of an array.
///
/// # Errors
/// Returns `MPI_ERR_COUNT` if the count is negative.
fn length(count: impl Number, argument: &'static str) -> Result<usize> {
    crate::buffer::count(count, argument).map(|count| count as usize)
}

/// Makes a handle for a new datatype and writes the handle to `out`. The datatype records the width of the
/// call that made it, because decoding depends on this width.
fn publish<W: CountWidth>(
    out: Place<raw::Datatype>,
    made: typepack_engine::Result<Datatype>,
) -> Result {
    out.set(insert(made?.with_form(W::DECODING)?)?);
    Ok(())
}

/// `MPI_Type_contiguous`.
pub fn contiguous<W: CountWidth>(
    count: W::Count,
    oldtype: raw::Datatype,
    newtype: Output<raw::Datatype>,
) -> Result {
    let out = newtype.required("newtype")?;
    publish::<W>(out, Datatype::contiguous(count.wide(), find(oldtype)?.tree()))
}

/// Makes a vector datatype and writes its handle. `make` gets the number of blocks, the length of a block and
/// the stride.
fn strided<W: CountWidth>(
    make: impl FnOnce(i64, i64, i64, &Datatype) -> typepack_engine::Result<Datatype>,
    [count, blocklength, stride]: [i64; 3],
    oldtype: raw::Datatype,
    newtype: Output<raw::Datatype>,
) -> Result {
    let out = newtype.required("newtype")?;
    publish::<W>(out, make(count, blocklength, stride, find(oldtype)?.tree()))
}

/// `MPI_Type_vector`.
pub fn vector<W: CountWidth>(
    count: W::Count,
    blocklength: W::Count,
    stride: W::Count,
    oldtype: raw::Datatype,
    newtype: Output<raw::Datatype>,
) -> Result {
    let counts = [count.wide(), blocklength.wide(), stride.wide()];
    strided::<W>(Datatype::vector, counts, oldtype, newtype)
}

/// `MPI_Type_create_hvector`.
pub fn hvector<W: CountWidth>(
    count: W::Count,
    blocklength: W::Count,
    stride: W::Address,
    oldtype: raw::Datatype,
    newtype: Output<raw::Datatype>,
) -> Result {
    let counts = [count.wide(), blocklength.wide(), stride.wide()];
    strided::<W>(Datatype::hvector, counts, oldtype, newtype)
}

/// `MPI_Type_indexed`.
pub fn indexed<W: CountWidth>(
    count: W::Count,
    blocklengths: Array<W::Count>,
    displacements: Array<W::Count>,
    oldtype: raw::Datatype,
    newtype: Output<raw::Datatype>,
) -> Result {
    let out = newtype.required("newtype")?;
    let (old, count) = (find(oldtype)?, length(count, "count")?);
    // SAFETY: the caller of `MPI_Type_indexed` passes `count` block lengths and `count` displacements.
    let (lengths, displacements) = unsafe { blocks(count, blocklengths, displacements)? };
    publish::<W>(out, Datatype::indexed(&lengths, &displacements, old.tree()))
}

/// `MPI_Type_create_hindexed`.
pub fn hindexed<W: CountWidth>(
    count: W::Count,
    blocklengths: Array<W::Count>,
    displacements: Array<W::Address>,
    oldtype: raw::Datatype,
    newtype: Output<raw::Datatype>,
) -> Result {
    let out = newtype.required("newtype")?;
    let (old, count) = (find(oldtype)?, length(count, "count")?);
    // SAFETY: the caller of `MPI_Type_create_hindexed` passes `count` block lengths and `count`
    // displacements.
    let (lengths, displacements) = unsafe { blocks(count, blocklengths, displacements)? };
    publish::<W>(out, Datatype::hindexed(&lengths, &displacements, old.tree()))
}

/// `MPI_Type_create_indexed_block`.
pub fn indexed_block<W: CountWidth>(
    count: W::Count,
    blocklength: W::Count,
    displacements: Array<W::Count>,
    oldtype: raw::Datatype,
    newtype: Output<raw::Datatype>,
) -> Result {
    let out = newtype.required("newtype")?;
    let (old, count) = (find(oldtype)?, length(count, "count")?);
    // SAFETY: the caller of `MPI_Type_create_indexed_block` passes `count` displacements.
    let displacements = unsafe { list(displacements, count, "array_of_displacements")? };
    publish::<W>(out, Datatype::indexed_block(blocklength.wide(), &displacements, old.tree()))
}

/// `MPI_Type_create_hindexed_block`.
pub fn hindexed_block<W: CountWidth>(
    count: W::Count,
    blocklength: W::Count,
    displacements: Array<W::Address>,
    oldtype: raw::Datatype,
    newtype: Output<raw::Datatype>,
) -> Result {
    let out = newtype.required("newtype")?;
    let (old, count) = (find(oldtype)?, length(count, "count")?);
    // SAFETY: the caller of `MPI_Type_create_hindexed_block` passes `count` displacements.
    let displacements = unsafe { list(displacements, count, "array_of_displacements")? };
    publish::<W>(out, Datatype::hindexed_block(blocklength.wide(), &displacements, old.tree()))
}

/// The values of the three arrays that describe a struct: block lengths, displacements, types.
type Members = (Vec<i64>, Vec<i64>, Vec<Datatype>);

/// Returns the values of the three arrays that describe a struct.
///
/// # Safety
///
/// - `count` is at most the number of entries that the standard prescribes for each of the three arrays.
unsafe fn members<C: Number, A: Number>(
    count: C,
    blocklengths: Array<C>,
    displacements: Array<A>,
    types: Array<raw::Datatype>,
) -> Result<Members> {
    let count = length(count, "count")?;
    // SAFETY: `types` has at least `count` entries (condition of `# Safety`). This function drops the
    // iterator before it returns.
    let types = unsafe { types.entries(count, "array_of_types")? };
    // SAFETY: `blocklengths` and `displacements` also have at least `count` entries each (condition of
    // `# Safety`).
    let (lengths, displacements) = unsafe { blocks(count, blocklengths, displacements)? };
    let types =
        types.map(|handle| Ok(find(handle)?.tree().clone())).collect::<Result<Vec<Datatype>>>()?;
    Ok((lengths, displacements, types))
}

/// `MPI_Type_create_struct`. The form with C integers takes the markers `MPI_LB` and `MPI_UB` as types, as in MPI-2.
pub fn structured<W: CountWidth>(
    count: W::Count,
    blocklengths: Array<W::Count>,
    displacements: Array<W::Address>,
    types: Array<raw::Datatype>,
    newtype: Output<raw::Datatype>,
) -> Result {
    let out = newtype.required("newtype")?;
    // SAFETY: the caller of `MPI_Type_create_struct` passes three arrays of `count` entries each.
    let (lengths, displacements, types) =
        unsafe { members(count, blocklengths, displacements, types)? };
    let made = match W::MARKERS {
        true => Datatype::type_struct(&lengths, &displacements, &types, Binding::C),
        false => Datatype::structured(&lengths, &displacements, &types),
    };
    publish::<W>(out, made)
}

/// `MPI_Type_struct` of MPI-1, which takes the markers `MPI_LB` and `MPI_UB` as types. In Fortran, displacements are
/// INTEGERs, and the type decodes with a combiner of its own.
pub fn structured_with_markers<A: Number>(
    count: c_int,
    blocklengths: Array<c_int>,
    displacements: Array<A>,
    types: Array<raw::Datatype>,
    newtype: Output<raw::Datatype>,
    binding: Binding,
) -> Result {
    let out = newtype.required("newtype")?;
    // SAFETY: the caller of `MPI_Type_struct` passes three arrays of `count` entries each (MPI-2.2).
    let (lengths, displacements, types) =
        unsafe { members(count, blocklengths, displacements, types)? };
    let made = Datatype::type_struct(&lengths, &displacements, &types, binding)?;
    out.set(insert(made)?);
    Ok(())
}

/// `MPI_TYPE_HVECTOR` of MPI-1 in Fortran. The type decodes with a combiner of its own, as does that of the next one.
pub fn hvector_integer(
    count: c_int,
    blocklength: c_int,
    stride: c_int,
    oldtype: raw::Datatype,
    newtype: Output<raw::Datatype>,
) -> Result {
    let out = newtype.required("newtype")?;
    let old = find(oldtype)?;
    let (count, length, stride) = (count.wide(), blocklength.wide(), stride.wide());
    let made = Datatype::type_hvector(count, length, stride, old.tree(), Binding::Fortran)?;
    out.set(insert(made)?);
    Ok(())
}

/// `MPI_TYPE_HINDEXED` of MPI-1 in Fortran.
pub fn hindexed_integer(
    count: c_int,
    blocklengths: Array<c_int>,
    displacements: Array<c_int>,
    oldtype: raw::Datatype,
    newtype: Output<raw::Datatype>,
) -> Result {
    let out = newtype.required("newtype")?;
    let (old, count) = (find(oldtype)?, length(count, "count")?);
    // SAFETY: the caller of `MPI_TYPE_HINDEXED` passes `count` block lengths and `count` displacements (MPI-2.2).
    let (lengths, displacements) = unsafe { blocks(count, blocklengths, displacements)? };
    let made = Datatype::type_hindexed(&lengths, &displacements, old.tree(), Binding::Fortran)?;
    out.set(insert(made)?);
    Ok(())
}

fn order(value: c_int) -> Result<Order> {
    Order::from_abi_value(value).ok_or_else(|| {
        let detail = format!("{value} is neither MPI_ORDER_C nor MPI_ORDER_FORTRAN");
        Failure::new(abi::ERR_ARG, "order", detail)
    })
}

/// Converts a number of dimensions.
///
/// # Errors
/// Returns `MPI_ERR_ARG` if the number is less than 1.
fn dimensions(ndims: c_int) -> Result<usize> {
    usize::try_from(ndims).ok().filter(|&n| n > 0).ok_or_else(|| {
        Failure::new(
            abi::ERR_ARG,
            "ndims",
            format!("{ndims} is less than 1; it must be at least 1"),
        )
    })
}

/// `MPI_Type_create_subarray`.
pub fn subarray<W: CountWidth>(
    ndims: c_int,
    sizes: Array<W::Count>,
    subsizes: Array<W::Count>,
    starts: Array<W::Count>,
    array_order: c_int,
    oldtype: raw::Datatype,
    newtype: Output<raw::Datatype>,
) -> Result {
    let out = newtype.required("newtype")?;
    let (old, n, order) = (find(oldtype)?, dimensions(ndims)?, order(array_order)?);
    // SAFETY: the caller of `MPI_Type_create_subarray` passes three arrays of `ndims` entries each, and `n`
    // equals `ndims`.
    let (sizes, subsizes, starts) = unsafe {
        (
            list(sizes, n, "array_of_sizes")?,
            list(subsizes, n, "array_of_subsizes")?,
            list(starts, n, "array_of_starts")?,
        )
    };
    publish::<W>(out, Datatype::subarray(&sizes, &subsizes, &starts, order, old.tree()))
}

/// `MPI_Type_create_darray`.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub fn darray<W: CountWidth>(
    size: c_int,
    rank: c_int,
    ndims: c_int,
    gsizes: Array<W::Count>,
    distribs: Array<c_int>,
    dargs: Array<c_int>,
    psizes: Array<c_int>,
    array_order: c_int,
    oldtype: raw::Datatype,
    newtype: Output<raw::Datatype>,
) -> Result {
    let out = newtype.required("newtype")?;
    let (old, n, order) = (find(oldtype)?, dimensions(ndims)?, order(array_order)?);
    // SAFETY: the caller of `MPI_Type_create_darray` passes four arrays of `ndims` entries each, and `n`
    // equals `ndims`.
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
                let detail = format!("{value} is not one of MPI_DISTRIBUTE_BLOCK, _CYCLIC, _NONE");
                Failure::new(abi::ERR_ARG, "array_of_distribs", detail)
            })
        })
        .collect::<Result<Vec<_>>>()?;
    // C passed these values as C integers, so the casts back to `c_int` lose nothing.
    let narrow =
        |values: Vec<i64>| values.into_iter().map(|value| value as c_int).collect::<Vec<_>>();
    let (dargs, psizes) = (narrow(dargs), narrow(psizes));
    let made = Datatype::darray(size, rank, &sizes, &distribs, &dargs, &psizes, order, old.tree());
    publish::<W>(out, made)
}

/// `MPI_Type_create_resized`.
pub fn resized<W: CountWidth>(
    oldtype: raw::Datatype,
    lb: W::Address,
    extent: W::Address,
    newtype: Output<raw::Datatype>,
) -> Result {
    let out = newtype.required("newtype")?;
    publish::<W>(out, Datatype::resized(lb.wide(), extent.wide(), find(oldtype)?.tree()))
}

/// `MPI_Type_commit`.
pub fn commit(datatype: InOut<raw::Datatype>) -> Result {
    let (handle, _) = datatype.read("datatype")?;
    find(handle)?.commit()?;
    Ok(())
}
