//! Executes a plan over any byte range of its packed form.
//!
//! `plan/` makes the plans. Callers enter through `pack/`; `transfer/` and `external32/` call this
//! module too. Each case has a file:
//!
//! - `whole.rs` executes all bytes of a nest with one call of its kernel. It also executes elements
//!   whose body is a short sequence of nests and blocks, part by part.
//! - `range.rs` executes a part of a nest. The range is cut into whole leaves and at most two
//!   broken leaves. The whole leaves form *boxes* of iterations, at most two per level and one in
//!   the middle. Each box is one call of the kernel (or of the interpreter, which takes the
//!   kernel's parameters).
//! - `walk.rs` executes any other program. It walks the program from the root (`ir/walk.rs`),
//!   enters only what the range touches, executes the nests inside and copies single blocks.
//!   `ragged.rs` executes lists of unequal runs and of nests.
//!
//! `call.rs` picks the executor of a nest, `verified.rs` compares the executor's result with the
//! result of the interpreter (`kernel/interpreter.rs`), and `stats.rs` counts the bytes that each
//! executor moves.
//!
//! Every call finds its position by division (`seek`); no position is kept between calls. So any
//! range can be executed at any time, in O(depth + log list) plus the bytes moved.

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

#[inline]
const fn direction(pack: bool) -> Direction {
    if pack { Direction::Pack } else { Direction::Unpack }
}

/// Moves the bytes `range` of the packed form of `count` elements. `packed` is the address of byte
/// `range.start`.
///
/// # Safety
///
/// - `range.end` is at most `count` times the plan's element bytes, which fits `i64`.
/// - With `origin` as the address of displacement 0, every byte of the type map that belongs to the
///   range is valid: for reads if `PACK`, for writes otherwise (and for reads under
///   `Settings::verify`).
/// - `packed` is valid for the range's length: for writes when `PACK`, for reads otherwise.
/// - The two sides do not overlap.
/// - If the plan byte-swaps elements, the plan is not contiguous and the range covers whole
///   elements.
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
        // SAFETY: packed byte `i` of a contiguous plan lies at `offset + i`; the caller guarantees
        // the range on both sides.
        unsafe { copy::<PACK>(at, packed, bytes as usize) };
        stats::add(Executor::Memcpy, bytes);
    } else if let Some(planned) = plan.whole_nest() {
        let iterations = count * plan.factor();
        let bytes = range.end - range.start;
        if bytes == count * plan.element_bytes() {
            // SAFETY: the nest with `iterations` on its outermost level is the whole program, and
            // the range is all of its bytes.
            return unsafe { whole::<PACK>(plan, planned, iterations, origin, bytes, packed) };
        }
        // SAFETY: the nest with `iterations` on its outermost level is the whole program, and the
        // caller guarantees `range` of it.
        unsafe { nest::<PACK>(plan, planned, iterations, origin, range, packed) };
    } else if !plan.parts().is_empty() && range.end - range.start == count * plan.element_bytes() {
        // SAFETY: the range is all of `count` elements, so the caller guarantees all of them on
        // both sides.
        unsafe { list::<PACK>(plan, count, origin, packed) };
    } else {
        // SAFETY: `walk` has the conditions of this function and gets its arguments.
        unsafe { walk::<PACK>(plan, count, origin, range, packed) };
    }
}

/// Does what [`run`] does, for all `bytes` packed bytes of `count` elements. Calls that pack or
/// unpack whole buffers use this function, which is short enough to inline.
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
    if bytes > 0
        && plan.contiguous().is_none()
        && let Some(planned) = plan.whole_nest()
    {
        let outer = count * plan.factor();
        // SAFETY: the nest with `outer` on its outermost level is the whole program, and `bytes` is
        // its packed size.
        return unsafe { whole::<PACK>(plan, planned, outer, origin, bytes, packed) };
    }
    // SAFETY: the caller guarantees the conditions of `run` for the range `0..bytes`.
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
    // SAFETY: the caller guarantees the conditions of `run` for packing, which only reads from
    // `origin`. A plan that byte-swaps is never passed to this function.
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
    // SAFETY: the caller guarantees the conditions of `run` for unpacking, which only reads from
    // `src`. A plan that byte-swaps is never passed to this function.
    unsafe { run::<false>(plan, count, origin, range, src.cast_mut()) }
}
