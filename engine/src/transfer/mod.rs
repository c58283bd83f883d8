//! Copies from one layout straight into another layout of the same signature (a fused copy).
//!
//! A fused copy executes two plans (`plan/`) at the same time. Both programs describe the same sequence
//! of packed bytes. So the copy moves packed byte `i` from its position in the source to its position
//! in the destination, without a packed buffer. There are four ways to execute a copy, and the first
//! way that applies is used:
//!
//! 1. If one side is a single run of memory, the copy is a pack or an unpack by the kernel of the other
//!    side's plan. If both sides are single runs, one memory copy suffices.
//! 2. If both sides are loops and tables over blocks or windows (sequences of a few short blocks), they
//!    may have loops in common, which form the common nest (`nest.rs`). The kernel of that nest
//!    executes the copy (`compiled.rs`), once this copy and the earlier ones together have as many
//!    bytes as the threshold of the source plan's compiler requires. If visiting the blocks in packed
//!    order is slow for one of the layouts, `transpose.rs` executes the copy in a better order.
//! 3. If both sides are loops and tables over blocks, and the block lengths are equal or one is a
//!    multiple of the other (at least three times as long), `interpreted.rs` copies block by block.
//! 4. In all other cases, `staged.rs` copies long runs directly. It moves short runs with the
//!    kernels of both plans through a buffer that stays in the L1 cache.
//!
//! The two sides may also begin at different packed positions ([`copy_apart_raw`]), as reading and writing files needs
//! it. Moving the origin of a side skips its elements before its position. If the positions then are equal (as in a view
//! that is written one filetype at a time), the copy is one as above. Otherwise, if one side is a single run, the copy is
//! a pack or an unpack. If both sides consist of blocks that fit together, and both positions lie at the same byte of a
//! block, `interpreted.rs` copies block by block. `staged.rs` copies everything else.
//!
//! Each thread remembers which executors fit its recent transfers (`memo.rs`). If runs of the
//! destination overlap, all executors write them in the typemap order of the destination. So the
//! result always equals that of a pack followed by an unpack.

mod compiled;
mod interpreted;
mod levels;
pub(crate) mod memo;
mod nest;
mod staged;
mod transpose;

use crate::error::{Error, ErrorKind, Result};
use crate::exec::stats::{self, Executor};
use crate::exec::{Elements, pack_part, unpack_part};
use crate::ir::Op;
use crate::plan::Plan;
use crate::plan::footprint::check_bounds;
use bytemuck::{AnyBitPattern, NoUninit};
use std::ops::Range;
use typepack_leaf::kernel::interpreter;

/// One side of [`copy_range`]: `count` elements of `plan` in a slice.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a, M> {
    /// The layout.
    pub plan: &'a Plan,
    /// Number of elements.
    pub count: u64,
    /// The slice.
    pub memory: M,
    /// The byte of `memory` at which displacement 0 of the type lies.
    pub origin: usize,
}

/// Copies `src_count` elements of `src_plan` into `dst_count` elements of `dst_plan`. Returns the
/// number of packed bytes that the call moved. In each slice, displacement 0 of the type is at the
/// first byte. Bytes of `dst` that the type does not cover keep their values.
///
/// The result equals that of a pack followed by an unpack. The caller must make sure that both
/// types have the same signature; the function compares only the packed lengths.
///
/// # Errors
///
/// - [`ErrorKind::Truncated`] for `dst_count` if the packed sizes of the two sides differ.
/// - [`ErrorKind::Buffer`] for `src` or `dst` if the elements do not lie within the slice.
/// - [`ErrorKind::Overflow`] for `count` if the number of packed bytes exceeds 2^63 - 1.
///
/// ```
/// use typepack_engine::{Datatype, Named, copy};
///
/// // Column 1 of a 3 x 4 matrix becomes column 0 of a 3 x 2 matrix.
/// let double = Datatype::named(Named::F64);
/// let from = Datatype::vector(3, 1, 4, &double)?.commit()?;
/// let to = Datatype::vector(3, 1, 2, &double)?.commit()?;
/// let matrix: Vec<f64> = (0..12).map(f64::from).collect();
/// let mut out = [0f64; 6];
/// assert_eq!(copy(&from, 1, &matrix[1..], &to, 1, &mut out)?, 24);
/// assert_eq!(out, [1.0, 0.0, 5.0, 0.0, 9.0, 0.0]);
/// # Ok::<(), typepack_engine::Error>(())
/// ```
#[doc(alias = "MPI_Sendrecv")]
pub fn copy<S: NoUninit, D: NoUninit + AnyBitPattern>(
    src_plan: &Plan,
    src_count: u64,
    src: &[S],
    dst_plan: &Plan,
    dst_count: u64,
    dst: &mut [D],
) -> Result<u64> {
    let bytes = src_plan.packed_bytes(src_count)?;
    let holds = dst_plan.packed_bytes(dst_count)?;
    if bytes != holds {
        return Err(Error::new(
            ErrorKind::Truncated,
            "dst_count",
            format!("{dst_count} elements have {holds} packed bytes, but the source has {bytes}"),
        ));
    }
    check_bounds(src_plan, src_count, 0, size_of_val(src), "src")?;
    check_bounds(dst_plan, dst_count, 0, size_of_val(dst), "dst")?;
    let origin = src.as_ptr().cast::<u8>().cast_mut();
    let from = Elements { origin, plan: src_plan, count: src_count };
    let to = Elements { origin: dst.as_mut_ptr().cast(), plan: dst_plan, count: dst_count };
    // SAFETY: `0..bytes` is the packed form of both sides, and `check_bounds` showed that both type
    // maps lie within their slices. The source's bytes are initialised (NoUninit), and the
    // destination's bytes may take any value (AnyBitPattern). `dst` is borrowed mutably, so the
    // slices do not overlap.
    unsafe { copy_raw(from, to, 0..bytes) };
    Ok(bytes)
}

/// Copies the bytes `range` of the packed form from their positions in the source to their
/// positions in the destination. The packed lengths of the two sides may differ, but the range must
/// lie within both.
///
/// # Errors
///
/// - [`ErrorKind::Argument`] for `range` if its start is greater than its end, or if it exceeds the
///   packed form of a side.
/// - [`ErrorKind::Buffer`] for `src` or `dst` if the elements do not lie within the slice.
/// - [`ErrorKind::Overflow`] for `count` if the number of packed bytes exceeds 2^63 - 1.
pub fn copy_range<S: NoUninit, D: NoUninit + AnyBitPattern>(
    src: Side<'_, &[S]>,
    dst: Side<'_, &mut [D]>,
    range: Range<u64>,
) -> Result<()> {
    check_bounds(src.plan, src.count, src.origin, size_of_val(src.memory), "src")?;
    check_bounds(dst.plan, dst.count, dst.origin, size_of_val(dst.memory), "dst")?;
    let (from, to) = (src.plan.packed_bytes(src.count)?, dst.plan.packed_bytes(dst.count)?);
    if range.start > range.end || range.end > from.min(to) {
        return Err(Error::new(
            ErrorKind::Argument,
            "range",
            format!(
                "{}..{} is not within the packed form of both sides: 0..{from} in the source, 0..{to} in the \
                 destination",
                range.start, range.end
            ),
        ));
    }
    let origin = src.memory.as_ptr().cast::<u8>().cast_mut().wrapping_add(src.origin);
    let src = Elements { origin, plan: src.plan, count: src.count };
    let origin = dst.memory.as_mut_ptr().cast::<u8>().wrapping_add(dst.origin);
    let dst = Elements { origin, plan: dst.plan, count: dst.count };
    // SAFETY:
    // - the range lies within the packed forms of both sides, whose lengths fit in `i64`;
    // - every byte of the type maps lies within its slice (`check_bounds`); the source's bytes are
    //   initialised (NoUninit), the destination's may take any value (AnyBitPattern);
    // - the slices cannot overlap, because one of them is borrowed mutably.
    unsafe { copy_raw(src, dst, range) };
    Ok(())
}

/// Copies like [`copy_range`], but without checks. It is used for messages from a process to itself,
/// and for memory that is shared with another process.
///
/// # Safety
///
/// - `range.end` is at most the result of [`Plan::packed_bytes`] for the count of each side.
/// - Every byte of the source's type map that belongs to the range is valid for reads.
/// - Every byte of the destination's type map that belongs to the range is valid for writes, and
///   under `Settings::verify` also for reads.
/// - No byte is both read and written.
pub unsafe fn copy_raw(src: Elements<&Plan>, dst: Elements<&Plan>, range: Range<u64>) {
    if range.start >= range.end {
        return;
    }
    src.plan.used(&range);
    dst.plan.used(&range);
    let bytes = range.end - range.start;
    let (from, to) = (src.origin, dst.origin);
    let run = |at: i64| (at as isize).wrapping_add(range.start as isize);
    match (src.plan.contiguous(), dst.plan.contiguous()) {
        (Some(a), Some(b)) => {
            let (from, to) = (from.wrapping_offset(run(a)), to.wrapping_offset(run(b)));
            // SAFETY: each side is a single run. `from` and `to` are the addresses of packed byte
            // `range.start`, and the caller guarantees that the bytes of the range are valid on both
            // sides.
            unsafe { interpreter::copy::<true>(from, to, bytes as usize) };
            stats::add(Executor::Fused, bytes);
        }
        // SAFETY: the source is one run, and its packed byte `range.start` is at `a + range.start`.
        // The caller guarantees that the bytes of the range are valid in the destination.
        (Some(a), None) => unsafe {
            unpack_part(dst.plan, dst.count, to, range.clone(), from.wrapping_offset(run(a)));
        },
        // SAFETY: the destination is one run, and its packed byte `range.start` is at `b +
        // range.start`. The caller guarantees that the bytes of the range are valid in the source.
        (None, Some(b)) => unsafe {
            pack_part(src.plan, src.count, from, range.clone(), to.wrapping_offset(run(b)));
        },
        (None, None) => {
            // SAFETY: the caller guarantees that the range is valid on both sides. `memo::of` returns
            // the fit of these two sides.
            unsafe {
                if is_ragged(src.plan) || is_ragged(dst.plan) {
                    staged::copy(&src, &dst, range);
                } else {
                    memo::of(&src, &dst).copy(&src, &dst, range);
                }
            }
        }
    }
}

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

/// Returns true if the body of the plan's program is a ragged list (a list whose entries may have
/// different lengths), which only `staged.rs` can copy. This test avoids the lookup in the memo.
fn is_ragged(plan: &Plan) -> bool {
    let program = plan.program();
    program.body.is_some_and(|body| matches!(program.node(body.node).op, Op::Ragged { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Datatype, Named};

    #[test]
    fn refusals_name_the_argument_and_write_nothing() {
        let double = Datatype::named(Named::F64);
        let from = Datatype::vector(3, 1, 4, &double).unwrap().commit().unwrap();
        let to = Datatype::vector(3, 1, 2, &double).unwrap().commit().unwrap();
        let (src, mut dst) = ([1f64; 9], [7f64; 5]);
        let error = copy(&from, 1, &src, &to, 2, &mut dst).unwrap_err();
        assert_eq!(
            error.to_string(),
            "dst_count: 2 elements have 48 packed bytes, but the source has 24"
        );
        assert_eq!(copy(&from, 1, &src[1..], &to, 1, &mut dst).unwrap_err().argument(), "src");
        assert_eq!(copy(&from, 1, &src, &to, 1, &mut dst[1..]).unwrap_err().argument(), "dst");
        let reversed = Range { start: 9, end: 8 };
        for range in [0..25, reversed] {
            let from = Side { plan: &from, count: 1, memory: &src[..], origin: 0 };
            let to = Side { plan: &to, count: 1, memory: &mut dst[..], origin: 0 };
            assert_eq!(copy_range(from, to, range).unwrap_err().argument(), "range");
        }
        assert_eq!(dst, [7f64; 5]);
    }

    #[test]
    fn equal_blocks_are_fused() {
        let double = Datatype::named(Named::F64);
        let from = Datatype::vector(300, 1, 4, &double).unwrap().commit().unwrap();
        let to = Datatype::vector(60, 5, 7, &double).unwrap().commit().unwrap();
        let src: Vec<f64> = (0..1200).map(f64::from).collect();
        let mut dst = [0f64; 420];
        let before = stats::bytes().fused;
        copy(&from, 1, &src, &to, 1, &mut dst).unwrap();
        assert!(stats::bytes().fused >= before + 2400);
        assert_eq!((dst[0], dst[5], dst[7], dst[417]), (0.0, 0.0, 20.0, 1196.0));
    }
}
