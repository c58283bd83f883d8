//! An array section as a datatype: the dimensions of the section outside, the datatype of the call inside.
//!
//! The `count` elements of the datatype are taken over the sequence of the section's elements (MPI-5.0 section
//! 19.1.12). The datatypes for predefined types are kept, a few for each thread, so that a program that sends the same
//! sections again and again makes them once.

use crate::descriptor::{Descriptor, Dimension};
use crate::{abi, raw};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;
use std::rc::Rc;

/// What a kept datatype stands for.
#[derive(Clone, PartialEq, Eq)]
struct Key {
    element: usize,
    dimensions: SmallVec<[(isize, isize); 7]>,
    count: i64,
    datatype: usize,
}

/// The kept datatypes of a thread, and which of them goes next.
struct Kept {
    list: Vec<(Key, Rc<Made>)>,
    next: usize,
}

/// The number of datatypes that a thread keeps.
const MOST: usize = 32;

/// Handles below this number are predefined. Another handle may stand for another type tomorrow.
const PREDEFINED: usize = 0x1000;

thread_local! {
    // The end of a thread frees nothing, because MPI may have ended before.
    static KEPT: ManuallyDrop<RefCell<Kept>> =
        const { ManuallyDrop::new(RefCell::new(Kept { list: Vec::new(), next: 0 })) };
}

/// Returns a datatype that stands for `count` elements of `datatype` over a section.
///
/// # Errors
///
/// Returns the error class: the section is too short, or a datatype could not be made.
pub fn of(
    element: usize,
    dimensions: &[Dimension],
    count: i64,
    datatype: raw::Datatype,
) -> Result<Rc<Made>, c_int> {
    if datatype.0 >= PREDEFINED {
        return make(element, dimensions, count, datatype).map(Rc::new);
    }
    let same = |key: &Key| {
        key.element == element
            && key.count == count
            && key.datatype == datatype.0
            && key.dimensions.len() == dimensions.len()
            && key.dimensions.iter().zip(dimensions).all(|(a, b)| *a == (b.extent, b.stride))
    };
    KEPT.with(|kept| {
        let kept = &mut *kept.borrow_mut();
        if let Some((_, made)) = kept.list.iter().find(|(key, _)| same(key)) {
            return Ok(made.clone());
        }
        let made = Rc::new(make(element, dimensions, count, datatype)?);
        let dimensions = dimensions.iter().map(|d| (d.extent, d.stride)).collect();
        let key = Key { element, dimensions, count, datatype: datatype.0 };
        let entry = (key, made.clone());
        if kept.list.len() < MOST {
            kept.list.push(entry);
        } else {
            // Another buffer of the same call may have the old datatype, which then lives on.
            kept.list[kept.next] = entry;
            kept.next = (kept.next + 1) % MOST;
        }
        Ok(made)
    })
}

/// Frees the datatypes that this thread has kept.
pub fn forget() {
    KEPT.with(|kept| kept.borrow_mut().list.clear());
}

/// A datatype that this library has made. An operation that has begun keeps what it needs.
pub struct Made(raw::Datatype);

impl Made {
    /// Returns the handle.
    pub fn datatype(&self) -> raw::Datatype {
        self.0
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // SAFETY: the datatype is ours.
        unsafe { abi::PMPI_Type_free(&raw mut self.0) };
    }
}

fn done(code: c_int, datatype: raw::Datatype) -> Result<Made, c_int> {
    if code == 0 { Ok(Made(datatype)) } else { Err(code) }
}

fn hvector(count: i64, stride: isize, of: raw::Datatype) -> Result<Made, c_int> {
    let mut new = raw::Datatype(0);
    // SAFETY: the result is written to a handle.
    let code =
        unsafe { abi::PMPI_Type_create_hvector_c(count, 1, stride as i64, of, &raw mut new) };
    done(code, new)
}

/// Makes and commits a datatype.
fn make(
    element: usize,
    dimensions: &[Dimension],
    count: i64,
    datatype: raw::Datatype,
) -> Result<Made, c_int> {
    let all = Descriptor::elements(dimensions).ok_or(raw::ERR_BUFFER)?;
    let width = i64::try_from(element).ok().filter(|width| *width > 0).ok_or(raw::ERR_BUFFER)?;
    let (mut size, mut lower, mut extent, mut true_lower, mut true_extent) = (0, 0, 0, 0, 0);
    // SAFETY: the results are written to numbers.
    let code = unsafe {
        match abi::PMPI_Type_size_c(datatype, &raw mut size) {
            0 => match abi::PMPI_Type_get_extent_c(datatype, &raw mut lower, &raw mut extent) {
                0 => abi::PMPI_Type_get_true_extent_c(
                    datatype,
                    &raw mut true_lower,
                    &raw mut true_extent,
                ),
                code => code,
            },
            code => code,
        }
    };
    if code != 0 {
        return Err(code);
    }
    let dense = lower == 0 && true_lower == 0 && size == extent && size == true_extent;
    let each = if dense && size > 0 && width % size == 0 { width / size } else { 0 };
    let made = if each > 0 && count % each == 0 {
        // Each element of the section consists of whole elements of the datatype.
        if count / each > all {
            return Err(raw::ERR_COUNT);
        }
        let leaf = hvector(each, size as isize, datatype)?;
        nest(dimensions, count / each, &leaf)?
    } else {
        scattered(width, dimensions, all, (count, datatype, size, extent, true_lower, true_extent))?
    };
    let mut datatype = made.0;
    // SAFETY: the datatype is ours.
    let code = unsafe { abi::PMPI_Type_commit(&raw mut datatype) };
    if code == 0 { Ok(made) } else { Err(code) }
}

/// Returns a datatype of the first `number` elements of a section; each of them has the type `leaf`.
fn nest(dimensions: &[Dimension], number: i64, leaf: &Made) -> Result<Made, c_int> {
    let Some((outer, inner)) = dimensions.split_last() else {
        return hvector(1, 0, leaf.0);
    };
    let row = Descriptor::elements(inner).filter(|row| *row > 0).ok_or(raw::ERR_BUFFER)?;
    let (full, rest) = (number / row, number % row);
    let rows = match full {
        0 => None,
        _ => Some(hvector(full, outer.stride, nest(inner, row, leaf)?.0)?),
    };
    let rest = if rest > 0 { Some(nest(inner, rest, leaf)?) } else { None };
    match (rows, rest) {
        (Some(rows), Some(rest)) => {
            let places = [0, (outer.stride as i64).checked_mul(full).ok_or(raw::ERR_BUFFER)?];
            structure(&[1, 1], &places, &[rows.0, rest.0])
        }
        (Some(one), None) | (None, Some(one)) => Ok(one),
        (None, None) => hvector(0, 0, leaf.0),
    }
}

fn structure(lengths: &[i64], places: &[i64], types: &[raw::Datatype]) -> Result<Made, c_int> {
    let mut new = raw::Datatype(0);
    // SAFETY: the arrays have as many entries as the first argument says.
    let code = unsafe {
        abi::PMPI_Type_create_struct_c(
            lengths.len() as i64,
            lengths.as_ptr(),
            places.as_ptr(),
            types.as_ptr(),
            &raw mut new,
        )
    };
    done(code, new)
}

/// Returns a datatype for elements that are not whole parts of the section's elements, as runs of bytes.
///
/// Packing memory whose bytes are numbers shows which byte of the datatype goes where, whatever the datatype is.
fn scattered(
    width: i64,
    dimensions: &[Dimension],
    all: i64,
    (count, datatype, size, extent, true_lower, true_extent): (
        i64,
        raw::Datatype,
        i64,
        i64,
        i64,
        i64,
    ),
) -> Result<Made, c_int> {
    if true_lower < 0 || extent < 0 {
        return Err(raw::ERR_TYPE);
    }
    let offsets = bytes_of(datatype, size, true_lower, true_extent)?;
    let total = all.checked_mul(width).ok_or(raw::ERR_BUFFER)?;
    let (mut lengths, mut places) = (Vec::<i64>::new(), Vec::<i64>::new());
    for one in 0..count {
        let start = one.checked_mul(extent).ok_or(raw::ERR_COUNT)?;
        for offset in &offsets {
            let byte =
                start.checked_add(*offset).filter(|byte| *byte < total).ok_or(raw::ERR_COUNT)?;
            let place = offset_of(dimensions, byte / width) + byte % width;
            match (lengths.last_mut(), places.last()) {
                (Some(length), Some(first)) if first + *length == place => *length += 1,
                _ => {
                    lengths.push(1);
                    places.push(place);
                }
            }
        }
    }
    let mut new = raw::Datatype(0);
    // SAFETY: the arrays have as many entries as the first argument says.
    let code = unsafe {
        abi::PMPI_Type_create_hindexed_c(
            lengths.len() as i64,
            lengths.as_ptr(),
            places.as_ptr(),
            raw::BYTE,
            &raw mut new,
        )
    };
    done(code, new)
}

/// Returns the distance of an element from the first one, in bytes.
fn offset_of(dimensions: &[Dimension], mut element: i64) -> i64 {
    let mut offset = 0;
    for dimension in dimensions {
        let extent = dimension.extent as i64;
        offset += element % extent * dimension.stride as i64;
        element /= extent;
    }
    offset
}

/// Returns the offset of each byte of one element of a datatype, in the order of packing.
fn bytes_of(
    datatype: raw::Datatype,
    size: i64,
    true_lower: i64,
    true_extent: i64,
) -> Result<Vec<i64>, c_int> {
    let bytes = usize::try_from(size).map_err(|_| raw::ERR_TYPE)?;
    let span = usize::try_from(true_lower + true_extent).map_err(|_| raw::ERR_TYPE)?;
    let mut offsets = vec![0_i64; bytes];
    let mut memory = vec![0_u8; span];
    let mut packed = vec![0_u8; bytes];
    // Each turn shows eight more bits of the offsets.
    for turn in (0..u64::BITS).step_by(8).take_while(|turn| span >> turn > 0) {
        for (at, byte) in memory.iter_mut().enumerate() {
            *byte = (at >> turn) as u8;
        }
        let mut position = 0;
        // SAFETY: the memory has all bytes of one element, and there is room for all of them.
        let code = unsafe {
            abi::PMPI_Pack_c(
                memory.as_ptr().cast::<c_void>(),
                1,
                datatype,
                packed.as_mut_ptr().cast(),
                size,
                &raw mut position,
                raw::COMM_SELF,
            )
        };
        if code != 0 || position != size {
            return Err(if code != 0 { code } else { raw::ERR_TYPE });
        }
        for (offset, byte) in offsets.iter_mut().zip(&packed) {
            *offset |= i64::from(*byte) << turn;
        }
    }
    Ok(offsets)
}
