//! The two ends of a message's data: where packed bytes come from and where they go.
//!
//! `endpoint/engine.rs` makes them from a call's arguments; the protocols of `transport/` pack and unpack any
//! range of them; the engine does the work. This is the only file of the runtime that calls the
//! engine's raw executors.
//!
//! Invariant: the memory behind a `Layout` is valid until its request is complete or detached;
//! that is the promise of `Messages::send` and `Messages::receive`, kept by the scopes and by the blocking calls.

use super::{Source, Tag};
use crate::{Error, ErrorKind, Plan, Result};
use std::ops::Range;
use typepack_engine as engine;
use typepack_engine::Side;

/// `count` elements of a committed type somewhere in this process's memory.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Address of displacement 0.
    pub origin: *mut u8,
    /// The committed type; held so that freeing it while an operation is pending is legal.
    pub plan: Plan,
    /// Elements.
    pub count: u64,
}

// SAFETY: a layout is an address and a shared, immutable plan; who made it promised that the
// memory may be used from any thread until the operation is complete (see `Messages`).
unsafe impl Send for Layout {}

/// A layout as a call's arguments describe it; kept only if the operation stays in flight.
#[derive(Clone, Copy, Debug)]
pub struct LayoutRef<'a> {
    /// Address of displacement 0.
    pub origin: *mut u8,
    /// The committed type.
    pub plan: &'a Plan,
    /// Elements.
    pub count: u64,
}

/// A receive as a call's arguments describe it: where the data goes, and which messages it accepts.
#[derive(Clone, Copy, Debug)]
pub struct Posting<'a> {
    /// Where the data goes.
    pub layout: LayoutRef<'a>,
    /// The packed size of the layout's elements.
    pub capacity: u64,
    /// Messages of this context.
    pub context: u64,
    /// Messages from there.
    pub source: Source,
    /// Messages with this tag.
    pub tag: Tag,
}

impl<'a> Posting<'a> {
    /// A receive into all elements of `layout`.
    ///
    /// # Errors
    /// More packed bytes than 63 bits count.
    #[inline]
    pub fn new(layout: LayoutRef<'a>, context: u64, source: Source, tag: Tag) -> Result<Self> {
        let capacity = layout.plan.packed_bytes(layout.count)?;
        Ok(Self { layout, capacity, context, source, tag })
    }
}

impl LayoutRef<'_> {
    /// Makes it last.
    pub fn keep(&self) -> Layout {
        Layout { origin: self.origin, plan: self.plan.clone(), count: self.count }
    }

    /// Writes the packed bytes of `range` to `dst`.
    ///
    /// # Safety
    ///
    /// - `range` lies within the packed bytes of `count` elements, whose memory is readable.
    /// - `dst` is valid for writes of `range.end - range.start` bytes and overlaps the layout
    ///   nowhere.
    #[inline]
    pub unsafe fn pack(&self, range: Range<u64>, dst: *mut u8) {
        // SAFETY: all four conditions are the caller's promise.
        unsafe { engine::pack_raw(self.plan, self.count, self.origin, range, dst) };
    }

    /// Reads the packed bytes of `range` from `src`.
    ///
    /// # Safety
    ///
    /// - `range` lies within the packed bytes of `count` elements, whose memory is writable.
    /// - `src` is valid for reads of `range.end - range.start` bytes and overlaps the layout
    ///   nowhere.
    #[inline]
    pub unsafe fn unpack(&self, range: Range<u64>, src: *const u8) {
        // SAFETY: all four conditions are the caller's promise.
        unsafe { engine::unpack_raw(self.plan, self.count, self.origin, range, src) };
    }
}

impl Layout {
    /// Address of the first byte of a contiguous layout.
    pub fn first(&self) -> u64 {
        (self.origin as u64).wrapping_add(self.plan.footprint().true_lb as u64)
    }

    /// The same, borrowed.
    pub fn view(&self) -> LayoutRef<'_> {
        LayoutRef { origin: self.origin, plan: &self.plan, count: self.count }
    }
}

/// Address of the packed bytes of a message in a buffer that the program has lent.
#[derive(Debug)]
pub struct Lent(*mut u8);

// SAFETY: an address; who lent the memory promised that it may be used from any thread until the
// operation is complete or detached (see `Backing::Lent`).
unsafe impl Send for Lent {}

/// What a send that cannot be completed at once keeps its data in.
#[derive(Clone, Copy, Debug)]
pub enum Backing {
    /// The caller's memory, as it is.
    Caller,
    /// A packed copy: the caller's memory is free when the call returns.
    Copy,
    /// A packed copy in memory at this address, which the caller lends until the send is complete
    /// or detached.
    Lent(*mut u8),
}

/// Where the packed bytes of a message come from.
#[derive(Debug)]
pub enum Supply {
    /// Packed on the way, from the user's memory.
    Memory(Layout),
    /// Packed already, in memory of our own: a send that outlived the scope that started it, or
    /// whose memory is to be received into.
    Packed(Vec<u8>),
    /// Packed already, in a buffer that the program has lent for sends.
    Lent(Lent),
    /// Zeros: such a send for whose data there was no memory left. Its scope has panicked, and
    /// the receiver must still get the bytes it has been promised.
    Lost,
}

impl Supply {
    /// The supply of a send of `bytes` packed bytes that stays in flight.
    ///
    /// # Safety
    ///
    /// - The layout's memory is readable, and `bytes` is its packed size.
    /// - Lent memory holds as many bytes, and is nobody else's until the send is complete or
    ///   detached.
    ///
    /// # Errors
    /// Out of memory.
    pub unsafe fn new(layout: &LayoutRef<'_>, bytes: u64, backing: Backing) -> Result<Self> {
        Ok(match backing {
            Backing::Caller => Self::Memory(layout.keep()),
            Backing::Copy => {
                let mut packed = buffer(bytes)?;
                // SAFETY: the layout and its size are the caller's promise, the buffer is as long.
                unsafe { layout.pack(0..bytes, packed.as_mut_ptr()) };
                Self::Packed(packed)
            }
            Backing::Lent(start) => {
                // SAFETY: both sides are the caller's promise.
                unsafe { layout.pack(0..bytes, start) };
                Self::Lent(Lent(start))
            }
        })
    }

    /// Writes the packed bytes of `range` to `dst`.
    ///
    /// # Safety
    ///
    /// - `range` lies within the packed bytes of the message.
    /// - `dst` is valid for writes of `range.end - range.start` bytes and overlaps the source
    ///   nowhere.
    #[inline]
    pub unsafe fn pack(&self, range: Range<u64>, dst: *mut u8) {
        match self {
            // SAFETY: the layout's memory is valid (module invariant); range and destination are
            // the caller's promise.
            Self::Memory(layout) => unsafe { layout.view().pack(range, dst) },
            Self::Packed(bytes) => {
                let part = &bytes[range.start as usize..range.end as usize];
                // SAFETY: the slice is checked above, the destination is the caller's promise.
                unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), dst, part.len()) };
            }
            Self::Lent(Lent(start)) => {
                let len = (range.end - range.start) as usize;
                let from = start.wrapping_add(range.start as usize);
                // SAFETY: the lent memory holds the whole message (promise of `new`), the
                // destination is the caller's promise.
                unsafe { std::ptr::copy_nonoverlapping(from, dst, len) };
            }
            Self::Lost => {
                // SAFETY: the destination is valid for the whole range (caller's promise).
                unsafe { std::ptr::write_bytes(dst, 0, (range.end - range.start) as usize) };
            }
        }
    }

    /// Lets go of the user's memory: packs all `bytes` into memory of our own.
    pub fn detach(&mut self, bytes: u64) {
        if !matches!(self, Self::Memory(_) | Self::Lent(_)) {
            return;
        }
        *self = match buffer(bytes) {
            Ok(mut packed) => {
                // SAFETY: the supply's memory is valid (module invariant), the range is the whole
                // message, and the new buffer holds `bytes` bytes.
                unsafe { self.pack(0..bytes, packed.as_mut_ptr()) };
                Self::Packed(packed)
            }
            Err(_) => Self::Lost,
        };
    }
}

/// Where the packed bytes of a message go.
#[derive(Debug)]
pub enum Sink {
    /// Unpacked on the way, into the user's memory.
    Memory(Layout),
    /// Dropped: a receive that outlived the scope that started it.
    Discard,
}

impl Sink {
    /// Reads the packed bytes of `range` from `src`.
    ///
    /// # Safety
    ///
    /// - `range` lies within the packed bytes of the receive's `count` elements.
    /// - `src` is valid for reads of `range.end - range.start` bytes and overlaps the sink nowhere.
    #[inline]
    pub unsafe fn unpack(&self, range: Range<u64>, src: *const u8) {
        if let Self::Memory(layout) = self {
            // SAFETY: the layout's memory is valid (module invariant); range and source are the
            // caller's promise.
            unsafe { layout.view().unpack(range, src) };
        }
    }
}

/// Copies the first `bytes` packed bytes of `supply` into `sink`, layout to layout.
///
/// # Safety
///
/// - `bytes` is at most the packed bytes of either side.
/// - The two sides overlap nowhere, unless each of them is one run of bytes.
pub unsafe fn copy(supply: &Supply, sink: &Sink, bytes: u64) {
    let Sink::Memory(to) = sink else { return };
    match supply {
        // SAFETY: passed on to the caller, whose promise is the same.
        Supply::Memory(from) => unsafe { copy_layout(&from.view(), &to.view(), bytes) },
        // SAFETY: both hold the packed bytes of the message; the rest is promised.
        Supply::Packed(packed) => unsafe { sink.unpack(0..bytes, packed.as_ptr()) },
        // SAFETY: as above.
        Supply::Lent(Lent(start)) => unsafe { sink.unpack(0..bytes, *start) },
        Supply::Lost => {
            let zeros = [0u8; 4096];
            for at in (0..bytes).step_by(zeros.len()) {
                let end = bytes.min(at + zeros.len() as u64);
                // SAFETY: the range is within the sink and no longer than the zeros.
                unsafe { sink.unpack(at..end, zeros.as_ptr()) };
            }
        }
    }
}

/// Copies the first `bytes` packed bytes of `from` into `to`, layout to layout.
///
/// # Safety
///
/// - `bytes` is at most the packed bytes of either side, whose memory is valid.
/// - The two sides overlap nowhere, unless each of them is one run of bytes.
#[inline]
pub unsafe fn copy_layout(from: &LayoutRef<'_>, to: &LayoutRef<'_>, bytes: u64) {
    if let Some((from, to)) = overlap(from, to, bytes) {
        // SAFETY: both runs are in valid memory (caller's promise) and hold as many bytes as the
        // range, which is within both sides (caller's promise).
        unsafe { std::ptr::copy(from, to, bytes as usize) };
        return;
    }
    let src =
        Side { plan: from.plan, count: from.count, memory: from.origin.cast_const(), origin: 0 };
    let dst = Side { plan: to.plan, count: to.count, memory: to.origin, origin: 0 };
    // SAFETY: the range is within both sides, whose memory is valid and does not overlap (caller's
    // promise; runs that do have been copied above).
    unsafe { engine::copy_raw(src, dst, 0..bytes) };
}

/// The two runs of a message whose receive is in the memory of its send: a program's mistake, of which
/// it is to hear nothing worse than from a C library's `memmove`.
#[inline]
fn overlap(from: &LayoutRef<'_>, to: &LayoutRef<'_>, bytes: u64) -> Option<(*const u8, *mut u8)> {
    if !from.plan.is_contiguous() || !to.plan.is_contiguous() {
        return None;
    }
    let start =
        |side: &LayoutRef<'_>| side.origin.wrapping_offset(side.plan.footprint().true_lb as isize);
    let (source, target) = (start(from).cast_const(), start(to));
    ((source as u64).abs_diff(target as u64) < bytes).then_some((source, target))
}

/// Copies the packed bytes of `range` from `count` elements of `plan`, whose displacement 0 is at
/// `origin` in memory that another process shares, into a receive's layout.
///
/// # Safety
///
/// - `range` lies within the packed bytes of both sides.
/// - The source's elements are readable; their bytes may change meanwhile.
/// - The two sides overlap nowhere.
#[inline]
pub unsafe fn fetch(origin: *const u8, plan: &Plan, count: u64, to: &Layout, range: Range<u64>) {
    let src = Side { plan, count, memory: origin, origin: 0 };
    let dst = Side { plan: &to.plan, count: to.count, memory: to.origin, origin: 0 };
    // SAFETY: the destination's memory is valid (module invariant), the rest is promised.
    unsafe { engine::copy_raw(src, dst, range) };
}

/// As [`fetch`], the other way: copies the packed bytes of `range` of a send's layout into `count`
/// elements of `plan`, whose displacement 0 is at `origin` in memory that another process shares.
///
/// # Safety
///
/// - `range` lies within the packed bytes of both sides.
/// - The destination's elements are writable, and those of the range nobody else's.
/// - The two sides overlap nowhere.
#[inline]
pub unsafe fn push_to(from: &Layout, origin: *mut u8, plan: &Plan, count: u64, range: Range<u64>) {
    let memory = from.origin.cast_const();
    let src = Side { plan: &from.plan, count: from.count, memory, origin: 0 };
    let dst = Side { plan, count, memory: origin, origin: 0 };
    // SAFETY: the source's memory is valid (module invariant), the rest is promised.
    unsafe { engine::copy_raw(src, dst, range) };
}

/// A zeroed buffer of `bytes` bytes; running out of memory is an error and not an abort.
///
/// # Errors
/// Out of memory.
pub fn buffer(bytes: u64) -> Result<Vec<u8>> {
    let refused = || {
        Error::new(
            ErrorKind::NoMemory,
            "memory",
            format!("{bytes} bytes for a buffered message were refused"),
        )
    };
    let len = usize::try_from(bytes).map_err(|_| refused())?;
    let mut packed = Vec::new();
    packed.try_reserve_exact(len).map_err(|_| refused())?;
    packed.resize(len, 0);
    Ok(packed)
}
