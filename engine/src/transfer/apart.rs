//! Copies between two sides that begin at different packed positions, for example from one byte of the packed
//! form of memory to another byte of a file view.
//!
//! `mod.rs` copies between equal positions. The elements before the position of a side can be skipped by
//! moving the origin of the side. If the positions then are equal (as in a view that is written one filetype
//! at a time), all executors of `mod.rs` can copy. Otherwise, there are three cases. If one side is a single
//! run, the copy is a pack or an unpack by the kernel of the other side. If both sides consist of blocks that
//! fit together, and both positions lie at the same byte of a block, `interpreted.rs` copies block by block.
//! `staged.rs` copies everything else.

use super::{copy_raw, is_ragged, memo, staged};
use crate::exec::stats::{self, Executor};
use crate::exec::{Elements, pack_part, unpack_part};
use crate::plan::Plan;
use typepack_leaf::kernel::interpreter;

/// Copies `bytes` packed bytes: the packed bytes of the source from `src_at` on become the packed bytes
/// of the destination from `dst_at` on.
///
/// # Safety
///
/// - `src_at + bytes` is at most the result of [`Plan::packed_bytes`] for the
///   count of the source, and `dst_at + bytes` is at most that for the count of the destination.
/// - These bytes of the source's type map are valid for reads.
/// - These bytes of the destination's type map are valid for writes, and under `Settings::verify` also
///   for reads.
/// - No byte is both read and written.
pub unsafe fn copy_apart_raw(
    src: Elements<&Plan>,
    src_at: u64,
    dst: Elements<&Plan>,
    dst_at: u64,
    bytes: u64,
) {
    if bytes == 0 {
        return;
    }
    let (src, src_at) = rebased(&src, src_at, bytes);
    let (dst, dst_at) = rebased(&dst, dst_at, bytes);
    let (from, to) = (src.origin, dst.origin);
    let (read, written) = (src_at..src_at + bytes, dst_at..dst_at + bytes);
    if src_at == dst_at {
        // SAFETY: on each side, `rebased` has removed the whole elements before and after the bytes to copy,
        // and has moved the origin past the removed elements at the front. So on both sides, the bytes
        // `written` are those that the caller guarantees to be valid, and they lie within the remaining
        // elements.
        return unsafe { copy_raw(src, dst, written) };
    }
    src.plan.used(&read);
    dst.plan.used(&written);
    let run = |offset: i64, at: u64| (offset as isize).wrapping_add(at as isize);
    match (src.plan.contiguous(), dst.plan.contiguous()) {
        (Some(a), Some(b)) => {
            let (from, to) =
                (from.wrapping_offset(run(a, src_at)), to.wrapping_offset(run(b, dst_at)));
            // SAFETY: each side is a single run, and `from` and `to` are the addresses of the first byte.
            // The caller guarantees that the bytes are valid and that no byte is both read and written.
            unsafe { interpreter::copy::<true>(from, to, bytes as usize) };
            stats::add(Executor::Fused, bytes);
        }
        // SAFETY: the source is one run, and its packed byte `src_at` is at `a + src_at`. The caller
        // guarantees that the bytes `written` of the destination are valid.
        (Some(a), None) => unsafe {
            unpack_part(dst.plan, dst.count, to, written, from.wrapping_offset(run(a, src_at)));
        },
        // SAFETY: the destination is one run, and its packed byte `dst_at` is at `b + dst_at`. The
        // caller guarantees that the bytes `read` of the source are valid.
        (None, Some(b)) => unsafe {
            pack_part(src.plan, src.count, from, read, to.wrapping_offset(run(b, dst_at)));
        },
        (None, None) => {
            let shift = src_at.wrapping_sub(dst_at);
            // SAFETY: the caller guarantees that `read` and `written` are valid. Byte `i` of `written` comes
            // from byte `i + shift`, which lies in `read`. `memo::of` returns the `Fit` of these two sides.
            unsafe {
                if is_ragged(src.plan) || is_ragged(dst.plan) {
                    staged::copy_shifted(&src, &dst, written, shift);
                } else {
                    memo::of(&src, &dst).copy_shifted(&src, &dst, written, shift);
                }
            }
        }
    }
}

/// Removes the elements of a side that lie wholly before packed bytes `at..at + bytes`, and those that lie
/// wholly after them. Returns the remaining elements, and the position of the first of these packed bytes in
/// them. The packed bytes must lie within the elements.
fn rebased<'a>(side: &Elements<&'a Plan>, at: u64, bytes: u64) -> (Elements<&'a Plan>, u64) {
    // The side has data, because it has at least the `bytes` bytes, which are not 0.
    let element = side.plan.element_bytes().max(1);
    let (before, rest) = (at / element, at % element);
    (side.slice(before..before + (rest + bytes).div_ceil(element)), rest)
}
