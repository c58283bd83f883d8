//! Array sections in calls that take several blocks from one buffer, or apply an operation to its elements. Such a call
//! gets the elements of the section in memory in which they follow each other. A call that writes to its buffer gives
//! them back when it is complete.
//!
//! Only bytes that the call takes (`span.rs`) are copied, and only bytes that it has changed are given back. So the program
//! may use all others meanwhile: a call leaves gaps of datatypes alone, blocks of neighbours that do not exist, and
//! partitions that have arrived before.

use crate::descriptor::Descriptor;
use crate::refusal::quietly;
use crate::span::Span;
use crate::{raw, section};
use smallvec::SmallVec;
use std::ffi::{c_int, c_void};

/// A buffer of a call: the program's own, or a copy of a section.
pub struct Loan {
    address: *mut c_void,
    copy: Option<Box<Section>>,
}

/// Returns the buffer for a call that takes `span` of it, and writes to it if `written`. The operation begins with the
/// call (`begun`), or will be started.
///
/// # Errors
///
/// Returns the error class: the section is too short, or there is no memory.
///
/// # Safety
///
/// - The descriptor comes from a Fortran compiler.
#[inline(always)]
pub unsafe fn lend(
    this: *const Descriptor,
    written: bool,
    begun: bool,
    span: impl FnOnce() -> Result<Span, c_int>,
) -> Result<Loan, c_int> {
    // SAFETY: the program has got the descriptor from its compiler (`# Safety`).
    unsafe {
        if Descriptor::is_contiguous(this) {
            return Ok(Loan { address: section::base(this), copy: None });
        }
        copy(this, written, begun, quietly(span)?)
    }
}

/// The part of [`lend`] for array sections.
///
/// # Safety
///
/// - As for [`lend`].
#[cold]
unsafe fn copy(
    this: *const Descriptor,
    written: bool,
    begun: bool,
    span: Span,
) -> Result<Loan, c_int> {
    // SAFETY: `lend` has got the descriptor (`# Safety`).
    let mut section = unsafe { Section::new(this, written, &span)? };
    if section.ranges.is_empty() {
        // The call takes nothing, or finds an error.
        return Ok(Loan { address: section.base.cast(), copy: None });
    }
    if begun {
        section.take();
    }
    let address = section.place.cast();
    Ok(Loan { address, copy: Some(Box::new(section)) })
}

impl Loan {
    /// Returns the loan of a section that cannot be used, for a call that several ranks make, and stores why in `refused`.
    /// The call fails without a look at the buffer (`refusal::together`).
    ///
    /// # Safety
    ///
    /// - The descriptor comes from a Fortran compiler.
    #[cold]
    pub unsafe fn refused(this: *const Descriptor, why: c_int, refused: &mut c_int) -> Self {
        *refused = why;
        // SAFETY: the program got the descriptor from its compiler (`# Safety`).
        Self { address: unsafe { section::base(this) }, copy: None }
    }

    /// Returns the address for the call.
    #[inline(always)]
    pub fn address(&self) -> *mut c_void {
        self.address
    }

    /// Gives back what a complete call has written.
    #[inline(always)]
    pub fn give_back(self) {
        if let Some(mut section) = self.copy {
            section.give_back();
        }
    }

    /// Returns the section; `None` if the buffer is the program's own.
    pub fn into_section(self) -> Option<Box<Section>> {
        self.copy
    }
}

/// An array section, and memory with its elements one after another.
pub struct Section {
    /// The address of the first element.
    base: *mut u8,
    /// The number of bytes that follow each other in the section.
    unit: usize,
    /// The extents and the strides of the dimensions of such units, the fastest first.
    dimensions: SmallVec<[(usize, isize); 7]>,
    /// The blocks of the call.
    ranges: SmallVec<[(usize, usize); 1]>,
    /// True if the blocks are partitions to send: the program says when each of them is ready.
    later: bool,
    /// True if the blocks are partitions.
    partitioned: bool,
    /// The address of the memory, which `_memory` owns. The program's own library writes to it, so it is no slice.
    place: *mut u8,
    _memory: Vec<u128>,
    /// What the memory contained before the call, if the call writes to it.
    before: Option<Vec<u128>>,
}

// SAFETY: the section and the memory are raw bytes. MPI lets the program complete a call in any thread; the program
// keeps off the bytes that the call takes until then.
unsafe impl Send for Section {}

impl Section {
    /// Describes a section, and gets memory for the bytes that the call takes.
    ///
    /// # Safety
    ///
    /// - The descriptor comes from a Fortran compiler.
    unsafe fn new(this: *const Descriptor, written: bool, span: &Span) -> Result<Self, c_int> {
        // SAFETY: a compiler has written the descriptor (`# Safety`).
        let (list, base, element) =
            unsafe { (Descriptor::dimensions(this), (*this).base, (*this).element) };
        let all = Descriptor::elements(list).and_then(|all| usize::try_from(all).ok());
        let total = all.and_then(|all| all.checked_mul(element)).ok_or(raw::ERR_BUFFER)?;
        let (mut unit, mut dimensions) = (element, SmallVec::new());
        for dimension in list.iter().filter(|dimension| dimension.extent != 1) {
            let (extent, stride) = (dimension.extent.unsigned_abs(), dimension.stride);
            if dimensions.is_empty() && stride == unit.cast_signed() {
                unit *= extent;
            } else {
                dimensions.push((extent, stride));
            }
        }
        let ranges = span.within(total)?;
        let bytes = ranges.iter().map(|(_, last)| *last).max().unwrap_or(0);
        let mut memory = room(bytes)?;
        let before = if written { Some(room(bytes)?) } else { None };
        let place = memory.as_mut_ptr().cast();
        let partitioned = span.has_parts();
        let (base, later) = (base.cast(), partitioned && !written);
        let _memory = memory;
        Ok(Self { base, unit, dimensions, ranges, later, partitioned, place, _memory, before })
    }

    /// Calls `work` for the pieces of a range that follow each other in the section, with their addresses in the
    /// section, their offsets in the memory, and their numbers of bytes.
    #[inline(always)]
    fn pieces(&self, (mut at, end): (usize, usize), mut work: impl FnMut(*mut u8, usize, usize)) {
        let (mut element, mut skip, mut offset) = (at / self.unit, at % self.unit, 0_isize);
        let mut index = SmallVec::<[usize; 7]>::new();
        for (extent, stride) in &self.dimensions {
            index.push(element % extent);
            offset = offset.wrapping_add(stride.wrapping_mul((element % extent).cast_signed()));
            element /= extent;
        }
        while at < end {
            let length = (self.unit - skip).min(end - at);
            work(self.base.wrapping_offset(offset).wrapping_add(skip), at, length);
            at += length;
            skip = 0;
            for (index, (extent, stride)) in index.iter_mut().zip(&self.dimensions) {
                *index += 1;
                offset = offset.wrapping_add(*stride);
                if *index < *extent {
                    break;
                }
                *index = 0;
                offset = offset.wrapping_sub(stride.wrapping_mul(extent.cast_signed()));
            }
        }
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> usize {
        self.ranges.len()
    }

    /// Says whether the blocks are partitions.
    pub fn is_partitioned(&self) -> bool {
        self.partitioned
    }

    /// Copies the blocks to the memory, unless the program will say when.
    pub fn take(&mut self) {
        if self.later {
            return;
        }
        for at in 0..self.ranges.len() {
            self.take_block(at);
        }
    }

    /// Copies one block to the memory. There may be no such block.
    pub fn take_block(&mut self, block: usize) {
        let Some(range) = self.ranges.get(block).copied() else { return };
        // SAFETY: the block lies within the section and within the memory (`Span::within`), and the program keeps off it.
        self.pieces(range, |from, at, length| unsafe {
            copy_bytes(from, self.place.add(at), length);
        });
        if let Some(before) = &mut self.before {
            let before = before.as_mut_ptr().cast::<u8>();
            let (first, last) = range;
            // SAFETY: both have room up to the end of every block (`Section::new`).
            unsafe { copy_bytes(self.place.add(first), before.add(first), last - first) };
        }
    }

    /// Copies back what the call has written.
    pub fn give_back(&mut self) {
        for at in 0..self.ranges.len() {
            self.give_block_back(at);
        }
    }

    /// Copies back what the call has written to one block. There may be no such block.
    pub fn give_block_back(&mut self, block: usize) {
        let Some(range) = self.ranges.get(block).copied() else { return };
        let Some(before) = self.before.as_mut().map(|before| before.as_mut_ptr().cast::<u8>())
        else {
            return;
        };
        // SAFETY: the block lies within the section and within both copies (`Span::within`), and the program keeps off the
        // bytes that the call changes.
        self.pieces(range, |to, at, length| unsafe {
            give_changed(self.place.add(at), before.add(at), to, length);
        });
    }
}

/// Returns room for so many bytes.
fn room(bytes: usize) -> Result<Vec<u128>, c_int> {
    let mut room = Vec::new();
    room.try_reserve_exact(bytes.div_ceil(size_of::<u128>())).map_err(|_| raw::ERR_NO_MEM)?;
    Ok(room)
}

/// Copies bytes; the usual sizes without a call.
///
/// # Safety
///
/// - There are so many bytes at both addresses, and they do not overlap.
#[inline(always)]
unsafe fn copy_bytes(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: the caller promises this (`# Safety`).
    unsafe {
        match length {
            4 => to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned()),
            8 => to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned()),
            16 => to.cast::<u128>().write_unaligned(from.cast::<u128>().read_unaligned()),
            _ => std::ptr::copy_nonoverlapping(from, to, length),
        }
    }
}

/// Copies the bytes that are not what they were, to both addresses.
///
/// # Safety
///
/// - There are so many bytes at all addresses, and they do not overlap.
unsafe fn give_changed(from: *const u8, before: *mut u8, to: *mut u8, length: usize) {
    let word = size_of::<u64>();
    let mut at = 0;
    // SAFETY: the caller promises so many bytes at each address (`# Safety`), and `at` stays below `length`.
    unsafe {
        while at < length {
            let whole = length - at >= word;
            if whole {
                let (new, old) = (from.add(at).cast::<u64>(), before.add(at).cast::<u64>());
                if new.read_unaligned() == old.read_unaligned() {
                    at += word;
                    continue;
                }
            }
            let end = if whole { at + word } else { length };
            for at in at..end {
                let byte = from.add(at).read();
                if byte != before.add(at).read() {
                    before.add(at).write(byte);
                    to.add(at).write(byte);
                }
            }
            at = end;
        }
    }
}
