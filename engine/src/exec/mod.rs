//! Executes a plan over any byte range of its packed form.
//!
//! Comes after `plan/`; `pack/` is the door for callers, `transfer/` and `external32/` call it too.
//! Cases, a file each:
//!
//! - `whole.rs`: all bytes of a nest, one call of its kernel; and of elements whose body is a short
//!   sequence of nests and blocks, part by part.
//! - `range.rs`: a part of a nest. The range is cut into whole leaves and at most two broken ones.
//!   Whole leaves are *boxes* of iterations, at most two per level and one in the middle, and each
//!   box is one call of the kernel (or of the interpreter, which takes the same parameters).
//! - `walk.rs`: anything else is walked from the root (`ir/walk.rs`), entering only what the range
//!   touches; the nests inside are executed as above, single blocks are copied. `ragged.rs`: lists of
//!   unequal runs, and of nests.
//!
//! `call.rs` picks who executes a nest, `verified.rs` checks that against the interpreter
//! (`kernel/interpreter.rs`), `stats.rs` counts.
//!
//! The position is found by division (`seek`), never kept: any range can be executed at any time,
//! in O(depth + log list) and the bytes moved.

mod call;
mod ragged;
mod range;
pub mod stats;
mod verified;
mod walk;
mod whole;

use crate::kernel::Direction;
use crate::kernel::interpreter::copy;
use crate::plan::Plan;
use range::nest;
use stats::Executor;
use std::ops::Range;
use walk::walk;
use whole::{list, whole};

const fn direction(pack: bool) -> Direction {
    if pack { Direction::Pack } else { Direction::Unpack }
}

/// Moves the bytes `range` of the packed form of `count` elements; `packed` is where byte
/// `range.start` is.
///
/// # Safety
///
/// - `range.end` is at most `count` times the plan's element bytes, which fits `i64`.
/// - With `origin` as the address of displacement 0, every byte of the type map that belongs to the
///   range is valid: for reads when `PACK`, for writes otherwise.
/// - `packed` is valid for the range's length: for writes when `PACK`, for reads otherwise.
/// - The two sides do not overlap.
/// - A plan that turns elements round is not contiguous, and the range is one of whole elements.
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
        // SAFETY: a contiguous plan's packed byte i lies at `offset + i`; both sides by contract.
        unsafe { copy::<PACK>(at, packed, bytes as usize) };
        stats::add(Executor::Memcpy, bytes);
    } else if let Some(planned) = plan.whole_nest() {
        let iterations = count * plan.factor();
        let bytes = range.end - range.start;
        if bytes == count * plan.element_bytes() {
            // SAFETY: planned 0 with `iterations` on its outermost level is the whole program.
            return unsafe { whole::<PACK>(plan, planned, iterations, origin, bytes, packed) };
        }
        // SAFETY: planned 0 with `iterations` on its outermost level is the whole program.
        unsafe { nest::<PACK>(plan, planned, iterations, origin, range, packed) };
    } else if !plan.parts().is_empty() && range.end - range.start == count * plan.element_bytes() {
        // SAFETY: the caller's contract is the list's, for the whole range.
        unsafe { list::<PACK>(plan, count, origin, packed) };
    } else {
        // SAFETY: the caller's contract is the walk's.
        unsafe { walk::<PACK>(plan, count, origin, range, packed) };
    }
}

/// As [`run`], for all of `count` elements, which are `bytes` packed bytes: what packing calls want, and
/// short enough to stand in them.
///
/// # Safety
///
/// - As for [`run`], with the range `0..bytes`.
/// - `bytes` is `count` times the plan's element bytes.
#[inline(always)]
pub(crate) unsafe fn run_all<const PACK: bool>(
    plan: &Plan,
    count: u64,
    origin: *mut u8,
    bytes: u64,
    packed: *mut u8,
) {
    if bytes > 0
        && plan.contiguous().is_none()
        && let Some(planned) = plan.whole_nest()
    {
        let outer = count * plan.factor();
        // SAFETY: the first nest with `outer` on its outermost level is the whole program.
        return unsafe { whole::<PACK>(plan, planned, outer, origin, bytes, packed) };
    }
    // SAFETY: as ours.
    unsafe { run::<PACK>(plan, count, origin, 0..bytes, packed) }
}

/// Packs the bytes `range` of the packed form of `count` elements, without checks. `origin` is the
/// address of displacement 0 (it need not be inside an allocation itself).
///
/// # Safety
///
/// - `range.end` is at most [`Plan::packed_bytes`] of `count`.
/// - Every byte of the type map that belongs to the range is valid for reads.
/// - `dst` is valid for writes of the range's length.
/// - The two sides do not overlap.
#[inline]
pub unsafe fn pack_raw(
    plan: &Plan,
    count: u64,
    origin: *const u8,
    range: Range<u64>,
    dst: *mut u8,
) {
    // SAFETY: the contracts are the same; the memory side is only read.
    unsafe { run::<true>(plan, count, origin.cast_mut(), range, dst) }
}

/// Unpacks `src` into the bytes `range` of `count` elements, without checks. `origin` is the
/// address of displacement 0 (it need not be inside an allocation itself).
///
/// # Safety
///
/// - `range.end` is at most [`Plan::packed_bytes`] of `count`.
/// - Every byte of the type map that belongs to the range is valid for writes (and for reads under
///   `Settings::verify`).
/// - `src` is valid for reads of the range's length.
/// - The two sides do not overlap.
#[inline]
pub unsafe fn unpack_raw(
    plan: &Plan,
    count: u64,
    origin: *mut u8,
    range: Range<u64>,
    src: *const u8,
) {
    // SAFETY: the contracts are the same; the packed side is only read.
    unsafe { run::<false>(plan, count, origin, range, src.cast_mut()) }
}
