//! The two ends of a message's data: where packed bytes come from and where they go.
//!
//! `p2p/exchange.rs` makes them from a call's arguments; `transport/peer.rs` packs and unpacks any
//! range of them; the engine does the work. This is the only file of the runtime that calls the
//! engine's raw executors.
//!
//! Invariant: the memory behind a `Layout` is valid until its request is complete or detached;
//! that is the promise of `isend_raw` and `irecv_raw`, kept by the scopes and by the blocking calls.

use crate::{Error, ErrorKind, Plan, Result};
use std::ops::Range;
use typepack_engine as engine;

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
// memory may be used from any thread until the operation is complete (see `isend_raw`).
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
    fn view(&self) -> LayoutRef<'_> {
        LayoutRef { origin: self.origin, plan: &self.plan, count: self.count }
    }

    /// Address of the first byte, when all elements are one run of memory.
    fn run(&self) -> Option<*mut u8> {
        let start = self.plan.footprint().true_lb as isize;
        self.plan.is_contiguous().then(|| self.origin.wrapping_offset(start))
    }
}

/// Where the packed bytes of a message come from.
#[derive(Debug)]
pub enum Supply {
    /// Packed on the way, from the user's memory.
    Memory(Layout),
    /// Packed already: a send that outlived the scope that started it.
    Packed(Vec<u8>),
    /// Zeros: such a send for whose data there was no memory left. Its scope has panicked, and
    /// the receiver must still get the bytes it has been promised.
    Lost,
}

impl Supply {
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
            Self::Lost => {
                // SAFETY: the destination is valid for the whole range (caller's promise).
                unsafe { std::ptr::write_bytes(dst, 0, (range.end - range.start) as usize) };
            }
        }
    }

    /// Lets go of the user's memory: packs all `bytes` into memory of our own.
    pub fn detach(&mut self, bytes: u64) {
        let Self::Memory(layout) = self else { return };
        *self = match buffer(bytes) {
            Ok(mut packed) => {
                // SAFETY: the layout's memory is valid (module invariant), the range is the whole
                // message, and the new buffer holds `bytes` bytes.
                unsafe { layout.view().pack(0..bytes, packed.as_mut_ptr()) };
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

/// Bytes of the buffer through which a rank sends to itself: packed and unpacked while in L1.
const STAGE: usize = 16 << 10;

/// Copies the first `bytes` packed bytes of `supply` into `sink`, layout to layout.
///
/// # Safety
///
/// - `bytes` is at most the packed bytes of either side.
/// - The two sides overlap nowhere.
pub unsafe fn copy(supply: &Supply, sink: &Sink, bytes: u64) {
    let Sink::Memory(to) = sink else { return };
    let from = match supply {
        Supply::Memory(layout) => layout.run(),
        Supply::Packed(packed) => Some(packed.as_ptr().cast_mut()),
        Supply::Lost => None,
    };
    if let Some(start) = from {
        // SAFETY: the run holds the supply's packed bytes in order; the rest is promised.
        unsafe { sink.unpack(0..bytes, start) };
        return;
    }
    if let Some(start) = to.run() {
        // SAFETY: the run takes the sink's packed bytes in order; the rest is promised.
        unsafe { supply.pack(0..bytes, start) };
        return;
    }
    let mut stage = [std::mem::MaybeUninit::<u8>::uninit(); STAGE];
    let mut at = 0;
    while at < bytes {
        let next = bytes.min(at + STAGE as u64);
        // SAFETY: the range is within the promised bytes and no longer than the stage; packing
        // initialises exactly the bytes that unpacking reads.
        unsafe {
            supply.pack(at..next, stage.as_mut_ptr().cast());
            sink.unpack(at..next, stage.as_ptr().cast());
        }
        at = next;
    }
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
