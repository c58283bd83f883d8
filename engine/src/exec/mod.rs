//! Executes a plan for any byte range of the packed form.
//!
//! `plan/` makes the plans. `pack/`, `transfer/` and `external32/` use this module. There is one file
//! for each kind of program and range:
//!
//! - `nest.rs`: a nest, all of its bytes or a part of them, and whole elements whose body is a short sequence of nests
//!   and blocks. A leaf is the data that one iteration of the innermost level moves. A part consists of whole leaves and,
//!   at its ends, at most two *broken* leaves, which lie only partly in the range. The whole leaves form *boxes*: a box is
//!   a number of consecutive iterations of one level. A range needs at most one box of the outermost level and two boxes
//!   of each other level. One call of the kernel (or of the interpreter, which takes the same parameters) executes one
//!   box, and all bytes of a nest are one box.
//! - `walk.rs`: any other program. The walk begins at the root (`ir/walk.rs`) and enters only the
//!   nodes that the range touches. It executes the nests that it meets and copies single blocks.
//!   `ragged.rs` executes lists of runs, or of nests, of unequal length.
//!
//! [`Elements`] is the one form in which all layers name the data of a call, from its arguments to the executors.
//!
//! `nest.rs` also picks the executor of a nest. If `Settings::verify` is set, `verified.rs` compares the
//! executor's result with the result of the interpreter (`leaf/src/kernel/interpreter.rs`). `stats.rs`
//! counts the bytes that each executor moves.
//!
//! Every call finds its position in the program by divisions and, in lists, by a binary search
//! (`seek`). No position is remembered between calls, so any range can be executed at any time. Besides
//! moving the bytes, a call takes O(depth + log list length) steps.

mod nest;
mod ragged;
pub mod stats;
mod verified;
mod walk;

use crate::error::Result;
use crate::kernel::Direction;
use crate::plan::Plan;
use nest::{list, nest, whole};
use stats::Executor;
use std::borrow::Borrow;
use std::ops::Range;
use typepack_leaf::kernel::interpreter::copy;
use walk::walk;

/// `count` elements of a committed type in memory: the data of a message, of a collective call, of an access to a
/// window or a file, or one side of a copy.
///
/// `P` is `&Plan` for elements that borrow their type for the time of a call, and [`Plan`] for elements that own a
/// share of the type, so that the program may free the type meanwhile. Neither borrows the memory: `origin` is only an
/// address, which may be any. The unsafe functions that take elements say for how long their memory must be valid, and
/// whether they only read it.
#[derive(Clone, Copy, Debug)]
pub struct Elements<P> {
    /// Address of displacement 0 of the first element. It need not lie inside an allocation.
    pub origin: *mut u8,
    /// The committed type.
    pub plan: P,
    /// Number of elements.
    pub count: u64,
}

// SAFETY: elements are an address and a number beside their plan. Only unsafe functions access the memory at the
// address, and their callers guarantee that the thread may do so.
unsafe impl<P: Send> Send for Elements<P> {}
// SAFETY: a shared reference gives copies of the address, the number and the plan, and changes none of them. Only
// unsafe functions access the memory at the address, and their callers guarantee that no other thread's access
// conflicts.
unsafe impl<P: Sync> Sync for Elements<P> {}

impl<P> Elements<P> {
    /// Returns the `count` elements whose first one has displacement 0 at `origin`. Where they are only read, the
    /// memory may be constant.
    #[inline(always)]
    pub fn new<T>(origin: *const T, plan: P, count: u64) -> Self {
        Self { origin: origin.cast::<u8>().cast_mut(), plan, count }
    }
}

impl Elements<&Plan> {
    /// Makes elements that own a share of the type.
    pub fn keep(&self) -> Elements<Plan> {
        Elements { origin: self.origin, plan: self.plan.clone(), count: self.count }
    }
}

impl<P: Borrow<Plan>> Elements<P> {
    /// Returns the same elements, which borrow the type.
    #[inline]
    pub fn view(&self) -> Elements<&Plan> {
        Elements { origin: self.origin, plan: self.plan.borrow(), count: self.count }
    }

    /// Returns the number of packed bytes.
    ///
    /// # Errors
    /// Returns the errors of [`Plan::packed_bytes`].
    #[inline]
    pub fn bytes(&self) -> Result<u64> {
        self.plan.borrow().packed_bytes(self.count)
    }

    /// Returns the address of the first byte that the first element touches.
    #[inline]
    pub fn first(&self) -> *mut u8 {
        self.origin.wrapping_offset(self.plan.borrow().footprint().true_lb as isize)
    }

    /// Returns the address of the packed bytes if they are one run of memory.
    #[inline]
    pub fn run(&self) -> Option<*mut u8> {
        self.plan.borrow().is_contiguous().then(|| self.first())
    }

    /// Returns the distance in bytes from the first element to element `index`.
    #[inline]
    pub fn offset(&self, index: u64) -> isize {
        // The elements lie in memory, so the product does not overflow. For a type without bytes the product may wrap
        // around, and nobody accesses the address.
        (self.plan.borrow().footprint().extent as isize).wrapping_mul(index as isize)
    }

    /// Returns the elements `range` of these elements.
    #[inline]
    pub fn slice(&self, range: Range<u64>) -> Self
    where
        P: Copy,
    {
        let origin = self.origin.wrapping_offset(self.offset(range.start));
        Self { origin, count: range.end - range.start, ..*self }
    }

    /// Packs the data: writes the packed bytes of `range` to `dst`.
    ///
    /// # Safety
    ///
    /// - `range` lies within the packed bytes of the elements ([`bytes`](Self::bytes)), and these are readable.
    /// - `dst` is writable for `range.end - range.start` bytes.
    /// - The bytes at `dst` do not overlap the elements.
    #[inline]
    pub unsafe fn pack(&self, range: Range<u64>, dst: *mut u8) {
        // SAFETY: the caller guarantees that the range lies within the elements, that the elements are readable, that
        // `dst` has room, and that the two do not overlap (the conditions of `# Safety`; `pack_raw` has no others).
        unsafe { pack_raw(self.plan.borrow(), self.count, self.origin, range, dst) };
    }

    /// Unpacks data: reads the packed bytes of `range` from `src` and writes them to the elements.
    ///
    /// # Safety
    ///
    /// - `range` lies within the packed bytes of the elements ([`bytes`](Self::bytes)), and these are writable (and
    ///   readable under `Settings::verify`).
    /// - `src` is readable for `range.end - range.start` bytes.
    /// - The bytes at `src` do not overlap the elements.
    #[inline]
    pub unsafe fn unpack(&self, range: Range<u64>, src: *const u8) {
        // SAFETY: the caller guarantees that the range lies within the elements, that the elements are writable, that
        // the bytes at `src` are readable, and that the two do not overlap (the conditions of `# Safety`; `unpack_raw`
        // has no others).
        unsafe { unpack_raw(self.plan.borrow(), self.count, self.origin, range, src) };
    }
}

#[inline]
const fn direction(pack: bool) -> Direction {
    if pack { Direction::Pack } else { Direction::Unpack }
}

/// Packs (if `PACK`) or unpacks the bytes `range` of the packed form of `count` elements. `packed`
/// is the address of packed byte `range.start`.
///
/// # Safety
///
/// - `range.end` is at most `count` times the plan's element bytes, and that product fits in `i64`.
/// - With `origin` as the address of displacement 0, every byte of the type map that belongs to the
///   range is valid: for reads if `PACK`, for writes otherwise (and also for reads under
///   `Settings::verify`).
/// - `packed` is valid for the range's length: for writes when `PACK`, for reads otherwise.
/// - The bytes in memory and the bytes at `packed` do not overlap.
/// - If the plan reverses the bytes of basic elements, the plan is not contiguous and the range cuts no
///   basic element.
#[inline]
pub(crate) unsafe fn run<const PACK: bool>(
    plan: &Plan,
    count: u64,
    origin: *mut u8,
    range: Range<u64>,
    packed: *mut u8,
) {
    if range.start >= range.end {
        return;
    }
    if let Some(offset) = plan.contiguous() {
        let bytes = range.end - range.start;
        let at = origin.wrapping_offset(offset as isize).wrapping_add(range.start as usize);
        // SAFETY: packed byte `i` of a contiguous plan lies at `offset + i`, so `at` is the address of
        // byte `range.start` in memory. The caller guarantees that the bytes of the range are valid in
        // memory and at `packed`.
        unsafe { copy::<PACK>(at, packed, bytes as usize) };
        stats::add(Executor::Memcpy, bytes);
    } else if let Some(planned) = plan.whole_nest() {
        let iterations = count * plan.factor();
        let bytes = range.end - range.start;
        if bytes == count * plan.element_bytes() {
            // SAFETY: the nest with `iterations` on its outermost level is the whole program for
            // `count` elements, and the range is all of its bytes.
            return unsafe { whole::<PACK>(plan, planned, iterations, origin, bytes, packed) };
        }
        // SAFETY: the nest with `iterations` on its outermost level is the whole program for
        // `count` elements. The caller guarantees the conditions of this function for the packed
        // bytes `range` of these elements.
        unsafe { nest::<PACK>(plan, planned, iterations, origin, range, packed) };
    } else if !plan.parts().is_empty() && range.end - range.start == count * plan.element_bytes() {
        // SAFETY: the range is all packed bytes of `count` elements, so the caller guarantees that
        // all these bytes are valid in memory and at `packed`.
        unsafe { list::<PACK>(plan, count, origin, packed) };
    } else {
        // SAFETY: the caller guarantees the conditions of this function, and `walk` has the same
        // conditions and arguments.
        unsafe { walk::<PACK>(plan, count, origin, range, packed) };
    }
}

/// Packs or unpacks all `bytes` packed bytes of `count` elements, like [`run`] with the range
/// `0..bytes`. `pack_at_raw` and `unpack_at_raw` call this function instead of `run`, because this
/// function is short enough to inline.
///
/// # Safety
///
/// - The conditions of [`run`] hold, with the range `0..bytes`.
/// - `bytes` is `count` times the plan's element bytes.
#[inline(always)]
pub(crate) unsafe fn run_all<const PACK: bool>(
    plan: &Plan,
    count: u64,
    origin: *mut u8,
    bytes: u64,
    packed: *mut u8,
) {
    plan.used(&(0..bytes));
    if bytes > 0
        && plan.contiguous().is_none()
        && let Some(planned) = plan.whole_nest()
    {
        let outer = count * plan.factor();
        // SAFETY: the nest with `outer` iterations on its outermost level is the whole program for
        // `count` elements, and `bytes` is its packed size.
        return unsafe { whole::<PACK>(plan, planned, outer, origin, bytes, packed) };
    }
    // SAFETY: the caller guarantees the conditions of `run` for the range `0..bytes`.
    unsafe { run::<PACK>(plan, count, origin, 0..bytes, packed) }
}

/// Packs the bytes `range` of the packed form of `count` elements, without checks. `origin` is the
/// address of displacement 0; it need not lie inside an allocation.
///
/// # Safety
///
/// - `range.end` is at most the result of [`Plan::packed_bytes`] for `count`.
/// - Every byte of the type map that belongs to the range is valid for reads.
/// - `dst` is valid for writes of the range's length.
/// - The elements and the bytes at `dst` do not overlap.
#[inline]
pub unsafe fn pack_raw(
    plan: &Plan,
    count: u64,
    origin: *const u8,
    range: Range<u64>,
    dst: *mut u8,
) {
    plan.used(&range);
    // SAFETY: the caller guarantees the conditions of `pack_part`, which are the same.
    unsafe { pack_part(plan, count, origin, range, dst) }
}

/// Packs like [`pack_raw`], as a part of a copy that counts the use of the plan itself.
///
/// # Safety
///
/// The conditions of [`pack_raw`] hold.
#[inline]
pub(crate) unsafe fn pack_part(
    plan: &Plan,
    count: u64,
    origin: *const u8,
    range: Range<u64>,
    dst: *mut u8,
) {
    // SAFETY: the caller guarantees the conditions of `run` for packing, which only reads the memory at
    // `origin`. The plan swaps no bytes: only `external32/` has plans that do, and it calls `run`
    // itself.
    unsafe { run::<true>(plan, count, origin.cast_mut(), range, dst) }
}

/// Unpacks `src`, which holds the bytes `range` of the packed form of `count` elements, without
/// checks. `origin` is the address of displacement 0; it need not lie inside an allocation.
///
/// # Safety
///
/// - `range.end` is at most the result of [`Plan::packed_bytes`] for `count`.
/// - Every byte of the type map that belongs to the range is valid for writes (and for reads under
///   `Settings::verify`).
/// - `src` is valid for reads of the range's length.
/// - The elements and the bytes at `src` do not overlap.
#[inline]
pub unsafe fn unpack_raw(
    plan: &Plan,
    count: u64,
    origin: *mut u8,
    range: Range<u64>,
    src: *const u8,
) {
    plan.used(&range);
    // SAFETY: the caller guarantees the conditions of `unpack_part`, which are the same.
    unsafe { unpack_part(plan, count, origin, range, src) }
}

/// Unpacks like [`unpack_raw`], as a part of a copy that counts the use of the plan itself.
///
/// # Safety
///
/// The conditions of [`unpack_raw`] hold.
#[inline]
pub(crate) unsafe fn unpack_part(
    plan: &Plan,
    count: u64,
    origin: *mut u8,
    range: Range<u64>,
    src: *const u8,
) {
    // SAFETY: the caller guarantees the conditions of `run` for unpacking, which only reads the bytes
    // at `src`. The plan swaps no bytes, because `external32/` passes its byte-swapping plans to `run`
    // directly.
    unsafe { run::<false>(plan, count, origin, range, src.cast_mut()) }
}
