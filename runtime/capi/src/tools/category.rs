//! Categories (MPI-5.0 section 15.3.9).

use super::{failure, find, given, index, number, ready, write_text};
use crate::argument::{InOut, OutArray, Output, Text, TextBuffer};
use crate::error::Result;
use std::ffi::c_int;
use typepack::tools::{Category, Fault, categories};

fn category(cat_index: c_int) -> Result<&'static Category> {
    ready()?;
    categories().get(index(cat_index)?).ok_or_else(|| failure(Fault::Index))
}

/// `MPI_T_category_get_num`.
pub fn get_num(num_cat: Output<c_int>) -> Result {
    number(num_cat, categories().len())
}

/// `MPI_T_category_changed`: the categories never change.
pub fn changed(update_number: Output<c_int>) -> Result {
    number(update_number, 0)
}

/// `MPI_T_category_get_index`.
pub fn get_index(name: Text, cat_index: Output<c_int>) -> Result {
    ready()?;
    let place = given(cat_index.required("cat_index"))?;
    place.set(find(name, categories().iter().map(|category| category.name))?);
    Ok(())
}

/// `MPI_T_category_get_info`.
///
/// # Safety
///
/// - The lengths at `name_len` and `desc_len` are at most the sizes of the buffers `name` and `desc`.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub unsafe fn get_info(
    cat_index: c_int,
    name: TextBuffer,
    name_len: InOut<c_int>,
    desc: TextBuffer,
    desc_len: InOut<c_int>,
    num_cvars: Output<c_int>,
    num_pvars: Output<c_int>,
    num_categories: Output<c_int>,
) -> Result {
    let category = category(cat_index)?;
    // SAFETY: the caller guarantees the lengths (`# Safety`).
    unsafe {
        write_text(name, name_len, category.name);
        write_text(desc, desc_len, category.meaning);
    }
    num_cvars.write_if_given(category.controls.len() as c_int);
    num_pvars.write_if_given(category.counters.len() as c_int);
    num_categories.write_if_given(category.categories.len() as c_int);
    Ok(())
}

/// `MPI_T_category_get_num_events`.
pub fn get_num_events(cat_index: c_int, num_events: Output<c_int>) -> Result {
    number(num_events, category(cat_index)?.events.len())
}

/// Writes as many of the members of a category as `indices` has room for.
///
/// # Safety
///
/// - If `len` is positive, `indices` has `len` entries.
unsafe fn members(members: &[usize], len: c_int, indices: OutArray<c_int>) -> Result {
    let len = usize::try_from(len).map_err(|_| failure(Fault::Invalid))?;
    // SAFETY: the caller guarantees the entries (`# Safety`).
    let places = given(unsafe { indices.places(len, "indices") })?;
    places.fill(members.iter().take(len).map(|member| *member as c_int));
    Ok(())
}

/// `MPI_T_category_get_cvars`.
///
/// # Safety
///
/// - If `len` is positive, `indices` has `len` entries.
pub unsafe fn get_cvars(cat_index: c_int, len: c_int, indices: OutArray<c_int>) -> Result {
    // SAFETY: the caller guarantees the entries (`# Safety`).
    unsafe { members(&category(cat_index)?.controls, len, indices) }
}

/// `MPI_T_category_get_pvars`.
///
/// # Safety
///
/// - If `len` is positive, `indices` has `len` entries.
pub unsafe fn get_pvars(cat_index: c_int, len: c_int, indices: OutArray<c_int>) -> Result {
    // SAFETY: the caller guarantees the entries (`# Safety`).
    unsafe { members(&category(cat_index)?.counters, len, indices) }
}

/// `MPI_T_category_get_categories`.
///
/// # Safety
///
/// - If `len` is positive, `indices` has `len` entries.
pub unsafe fn get_categories(cat_index: c_int, len: c_int, indices: OutArray<c_int>) -> Result {
    // SAFETY: the caller guarantees the entries (`# Safety`).
    unsafe { members(&category(cat_index)?.categories, len, indices) }
}

/// `MPI_T_category_get_events`.
///
/// # Safety
///
/// - If `len` is positive, `indices` has `len` entries.
pub unsafe fn get_events(cat_index: c_int, len: c_int, indices: OutArray<c_int>) -> Result {
    // SAFETY: the caller guarantees the entries (`# Safety`).
    unsafe { members(&category(cat_index)?.events, len, indices) }
}
