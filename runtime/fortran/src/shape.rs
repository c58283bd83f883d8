//! An array section as a datatype: the dimensions of the section outside, the datatype of the call inside.
//!
//! The `count` elements of the datatype are taken over the sequence of the section's elements (MPI-5.0 section
//! 19.1.12). The datatypes for predefined types are kept, a few for each thread, so that a program that sends the same
//! sections again and again makes them once.

use crate::descriptor::{Descriptor, Dimension};
use crate::layout::{self, Bounds};
use crate::refusal::quietly;
use crate::{abi, raw};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ffi::c_int;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

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

/// The datatypes of ended threads, which another thread frees.
static LEFT: Mutex<Vec<Made>> = Mutex::new(Vec::new());

impl Drop for Kept {
    fn drop(&mut self) {
        // The end of a thread frees nothing itself, because MPI may have ended before.
        let list = self.list.drain(..).filter_map(|(_, made)| Rc::into_inner(made));
        LEFT.lock().unwrap_or_else(PoisonError::into_inner).extend(list);
    }
}

/// Frees the datatypes of threads that have ended.
fn sweep() {
    drop(std::mem::take(&mut *LEFT.lock().unwrap_or_else(PoisonError::into_inner)));
}

thread_local! {
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept { list: Vec::new(), next: 0 }) };
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
    let make = || quietly(|| make(element, dimensions, count, datatype)).map(Rc::new);
    if datatype.0 >= raw::PREDEFINED {
        // The handle may stand for another datatype tomorrow.
        return make();
    }
    let same = |key: &Key| {
        key.element == element
            && key.count == count
            && key.datatype == datatype.0
            && key.dimensions.len() == dimensions.len()
            && key.dimensions.iter().zip(dimensions).all(|(a, b)| *a == (b.extent, b.stride))
    };
    let look = |kept: &RefCell<Kept>| {
        let kept = &mut *kept.borrow_mut();
        if let Some((_, made)) = kept.list.iter().find(|(key, _)| same(key)) {
            return Ok(made.clone());
        }
        sweep();
        let made = make()?;
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
    };
    // Nothing is kept while the thread ends.
    KEPT.try_with(look).unwrap_or_else(|_| make())
}

/// Frees the datatypes that this thread has kept.
pub fn forget() {
    let _ended = KEPT.try_with(|kept| kept.borrow_mut().list.clear());
    sweep();
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
    let bounds = layout::bounds(datatype)?;
    let made = match bounds.extent {
        // Each element of the section holds whole elements of the datatype.
        extent if extent > 0 && width % extent == 0 && bounds.low >= 0 && bounds.high <= extent => {
            let each = width / extent;
            let (full, rest) = (count / each, count % each);
            if full + i64::from(rest > 0) > all {
                return Err(raw::ERR_COUNT);
            }
            let elements = nest(dimensions, full, &hvector(each, extent as isize, datatype)?)?;
            match rest {
                0 => elements,
                _ => {
                    let rest = hvector(rest, extent as isize, datatype)?;
                    let places = [0, offset_of(dimensions, full)];
                    structure(&[1, 1], &places, &[elements.0, rest.0])?
                }
            }
        }
        _ => {
            let total = all.checked_mul(width).ok_or(raw::ERR_BUFFER)?;
            scattered(width, dimensions, total, count, datatype, bounds)?
        }
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

/// A predefined datatype as part of another one.
struct Leaf {
    datatype: raw::Datatype,
    size: usize,
    extent: i64,
    /// The offsets of its bytes from its first one.
    bytes: Vec<i64>,
    /// One of the two numbers of which it consists.
    half: Option<Box<Leaf>>,
}

/// The predefined datatypes of two Fortran numbers, and those of one of them.
const PAIRS: [(raw::Datatype, raw::Datatype); 3] = [
    (raw::TWO_INTEGER, raw::INTEGER),
    (raw::TWO_REAL, raw::REAL),
    (raw::TWO_DOUBLE_PRECISION, raw::DOUBLE_PRECISION),
];

impl Leaf {
    fn new(datatype: raw::Datatype) -> Result<Self, c_int> {
        let bounds = layout::bounds(datatype)?;
        let mut bytes = layout::bytes(datatype, bounds)?;
        let first = *bytes.first().ok_or(raw::ERR_TYPE)?;
        bytes.iter_mut().for_each(|byte| *byte -= first);
        let half = match PAIRS.iter().find(|(pair, _)| *pair == datatype) {
            Some((_, half)) => Some(Box::new(Self::new(*half)?)),
            None => None,
        };
        Ok(Self { datatype, size: bytes.len(), extent: bounds.extent, bytes, half })
    }
}

/// Returns a datatype for elements that are not whole parts of the section's elements: the predefined datatypes of which
/// they consist, each at its place in the section.
///
/// A predefined datatype whose bytes lie in elements of the section that do not follow each other is `MPI_ERR_TYPE`:
/// there is no such value in the section. If it has two numbers, each of them may lie elsewhere.
fn scattered(
    width: i64,
    dimensions: &[Dimension],
    total: i64,
    count: i64,
    datatype: raw::Datatype,
    bounds: Bounds,
) -> Result<Made, c_int> {
    if bounds.size == 0 || count == 0 {
        return hvector(0, 0, raw::BYTE);
    }
    // Looking at the bytes of a datatype takes memory for all of its span.
    if bounds.low < 0 {
        return Err(raw::ERR_BUFFER);
    }
    if bounds.high > total {
        return Err(raw::ERR_COUNT);
    }
    let offsets = layout::bytes(datatype, bounds)?;
    // The different leaves, and which of them follow each other.
    let (mut leaves, mut order) = (Vec::<Leaf>::new(), Vec::<(usize, i64)>::new());
    for (datatype, number) in layout::leaves(datatype)? {
        let known = leaves.iter().position(|leaf| leaf.datatype == datatype);
        let index = known.unwrap_or(leaves.len());
        if known.is_none() {
            leaves.push(Leaf::new(datatype)?);
        }
        order.try_reserve(1).map_err(|_| raw::ERR_NO_MEM)?;
        order.push((index, number));
    }
    let sizes = order.iter().map(|(index, number)| leaves[*index].size as i64 * number);
    if sizes.sum::<i64>() != bounds.size {
        return Err(raw::ERR_TYPE);
    }
    let place = |byte: i64| match byte {
        0.. if byte < total => Ok(offset_of(dimensions, byte / width) + byte % width),
        0.. => Err(raw::ERR_COUNT),
        _ => Err(raw::ERR_BUFFER),
    };
    let mut blocks = Blocks::default();
    for one in 0..count {
        let start = one.checked_mul(bounds.extent).ok_or(raw::ERR_COUNT)?;
        let place = |byte: &i64| place(start.checked_add(*byte).ok_or(raw::ERR_COUNT)?);
        let mut rest = &offsets[..];
        for (index, number) in &order {
            let leaf = &leaves[*index];
            for _ in 0..*number {
                let (own, others) = rest.split_at(leaf.size);
                rest = others;
                blocks.put(leaf, own, &place)?;
            }
        }
    }
    blocks.datatype()
}

/// Predefined datatypes at places.
#[derive(Default)]
struct Blocks {
    types: Vec<raw::Datatype>,
    lengths: Vec<i64>,
    places: Vec<i64>,
    /// The place at which the last block would go on.
    next: i64,
}

impl Blocks {
    /// Adds one leaf, whose bytes have these offsets in the sequence of elements; `place` tells where a byte of the
    /// sequence lies.
    fn put(
        &mut self,
        leaf: &Leaf,
        own: &[i64],
        place: &impl Fn(&i64) -> Result<i64, c_int>,
    ) -> Result<(), c_int> {
        let first = place(&own[0])?;
        let mut whole = true;
        for (byte, offset) in own.iter().zip(&leaf.bytes) {
            whole &= place(byte)? == first + offset;
        }
        match &leaf.half {
            _ if whole => self.push(leaf, first),
            Some(half) => own.chunks(half.size).try_for_each(|own| self.put(half, own, place)),
            None => Err(raw::ERR_TYPE),
        }
    }

    fn push(&mut self, leaf: &Leaf, place: i64) -> Result<(), c_int> {
        match self.lengths.last_mut() {
            Some(length) if self.next == place && self.types.last() == Some(&leaf.datatype) => {
                *length += 1;
            }
            _ => {
                let no_memory = |_| raw::ERR_NO_MEM;
                self.types.try_reserve(1).map_err(no_memory)?;
                self.lengths.try_reserve(1).map_err(no_memory)?;
                self.places.try_reserve(1).map_err(no_memory)?;
                self.types.push(leaf.datatype);
                self.lengths.push(1);
                self.places.push(place);
            }
        }
        self.next = place + leaf.extent;
        Ok(())
    }

    fn datatype(&self) -> Result<Made, c_int> {
        let (Some(first), true) = (self.types.first(), self.types.windows(2).all(|w| w[0] == w[1]))
        else {
            return structure(&self.lengths, &self.places, &self.types);
        };
        let mut new = raw::Datatype(0);
        // SAFETY: the arrays have as many entries as the first argument says.
        let code = unsafe {
            abi::PMPI_Type_create_hindexed_c(
                self.lengths.len() as i64,
                self.lengths.as_ptr(),
                self.places.as_ptr(),
                *first,
                &raw mut new,
            )
        };
        done(code, new)
    }
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
