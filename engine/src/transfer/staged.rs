//! Copies between any two layouts: long runs directly, short runs through a buffer that stays in
//! the L1 cache.
//!
//! `mod.rs` and `memo.rs` use this file if no other executor can execute the transfer, or if none
//! would be faster. `compiled.rs` and `interpreted.rs` use this file for the partial leaves and blocks at the
//! ends of a range. If the range is short or neither program has long runs, rule 3 copies the whole range.
//! Otherwise, the first of these rules that fits the current position applies:
//!
//! 1. If one side has a run of at least [`ALONE`] bytes and the other side has short runs, a kernel
//!    packs into the long run, or unpacks from it, without the buffer.
//! 2. If both sides have runs of at least [`LONG`] bytes, one call of `contiguous::copy` copies the bytes
//!    that the two runs have in common.
//! 3. Otherwise the next chunks, of at most [`BUFFER`] bytes each, are packed one by one into a buffer on the
//!    stack, and unpacked from the buffer while they are in the L1 cache. For short runs, most of the time is
//!    overhead per run, which is lower in the plans' kernels than in a walk along two programs.

use crate::analysis::cursor::Cursor;
use crate::exec::stats::{self, Executor};
use crate::exec::{Elements, pack_part, unpack_part};
use crate::ir::{Op, Program};
use crate::plan::Plan;
use std::mem::MaybeUninit;
use std::ops::Range;
use typepack_leaf::kernel::interpreter;

/// Size of the buffer in bytes. It equals the size of a typical L1 cache. With half this size, the lines
/// of both layouts would fit in the cache together with the buffer, but copies of 32 KiB would take 5 %
/// longer, because each filling of the buffer costs some extra calls.
const BUFFER: u64 = 32 << 10;

/// Minimum length, in bytes, that the current run of each side must have for a direct copy (rule 2).
/// Each direct copy has 20 ns of overhead.
const LONG: u64 = 512;

/// Minimum length, in bytes, of a run of one side that serves as the packed buffer of the other side
/// (rule 1). If fewer bytes of the range are left, that number suffices.
const ALONE: u64 = 4 << 10;

/// Ranges of at most this length, in bytes, are always copied through the buffer. For such a range, finding
/// the position in both programs takes as long as copying the bytes twice.
const SHORT: u64 = 2 << 10;

/// Copies packed bytes `range`.
///
/// # Safety
///
/// The conditions of [`copy_raw`](super::copy_raw) hold; the `origin` of each side is 0.
pub(super) unsafe fn copy(src: &Elements<&Plan>, dst: &Elements<&Plan>, range: Range<u64>) {
    // SAFETY: the caller guarantees the conditions of `copy_raw` for the range; `copy_shifted` has the
    // same conditions for the same bytes of both sides if `shift` is 0.
    unsafe { copy_shifted(src, dst, range, 0) };
}

/// Copies packed bytes of the source to packed bytes `range` of the destination. Packed byte `i` of the
/// destination comes from packed byte `i + shift` (modulo 2^64) of the source.
///
/// # Safety
///
/// The conditions of [`copy_apart_raw`](super::copy_apart_raw) hold; the `origin` of each side is 0.
pub(super) unsafe fn copy_shifted(
    src: &Elements<&Plan>,
    dst: &Elements<&Plan>,
    range: Range<u64>,
    shift: u64,
) {
    let mut position = range.start;
    let chunk = chunk(src.plan, dst.plan);
    if range.end - position > SHORT
        && (typical_run(src.plan.program()) >= LONG || typical_run(dst.plan.program()) >= LONG)
        && let (Ok(mut from), Ok(mut to)) = (
            Cursor::at(src.plan, src.count, position.wrapping_add(shift)),
            Cursor::at(dst.plan, dst.count, position),
        )
    {
        // Number of chunks to copy through the buffer before the next search for long runs. After each
        // unsuccessful search, the number doubles, up to 8.
        let mut buffers = 1;
        loop {
            // SAFETY: `to` is at `position`, and `from` at the byte of the source that belongs there.
            // The caller guarantees that the bytes from there to the end of the range are valid.
            let end = unsafe { straight(src, dst, &mut from, &mut to, range.end) };
            buffers = if end == position { (2 * buffers).min(8) } else { 1 };
            position = range.end.min(end - end % chunk + buffers * chunk);
            // SAFETY: `end..position` is a part of the caller's range, and `chunk` is between 1 and
            // `BUFFER`.
            unsafe { buffered(src, dst, end..position, shift, chunk) };
            if position == range.end
                || from.seek(position.wrapping_add(shift)).is_err()
                || to.seek(position).is_err()
            {
                break;
            }
        }
    }
    // SAFETY: `position..range.end` is the rest of the caller's range, and `chunk` is between 1 and
    // `BUFFER`.
    unsafe { buffered(src, dst, position..range.end, shift, chunk) };
}

/// Returns an estimate of the mean length of a run, in bytes. The estimate may be too high if the parts
/// of a sequence consist of several runs. If the result is small, a search for long runs would cost more
/// than it saves.
fn typical_run(program: &Program) -> u64 {
    let mut next = program.body;
    while let Some(edge) = next {
        let node = program.node(edge.node);
        next = match &node.op {
            Op::Block => return node.bytes,
            Op::Seq { parts } => return node.bytes / parts.len() as u64,
            Op::Ragged { list, stride, body, .. } if program.is_dense(*stride, *body) => {
                return node.bytes / list.len() as u64;
            }
            Op::Loop { body, .. } | Op::Table { body, .. } | Op::Ragged { body, .. } => Some(*body),
        };
    }
    0
}

/// Copies without the buffer (rules 1 and 2) as long as the runs are long enough, at most up to packed byte
/// `end` of the destination. Returns the packed position in the destination that the copy reached.
///
/// # Safety
///
/// - `from` is at the byte of the source that belongs to the byte of the destination at which `to` is.
/// - The conditions of [`copy_shifted`] hold for the bytes from there to `end`.
unsafe fn straight(
    src: &Elements<&Plan>,
    dst: &Elements<&Plan>,
    from: &mut Cursor<'_>,
    to: &mut Cursor<'_>,
    end: u64,
) -> u64 {
    loop {
        let position = to.tell();
        let (Some(a), Some(b)) = (from.run(), to.run()) else { return position };
        let left = end - position;
        if left == 0 {
            return position;
        }
        let read = src.origin.wrapping_offset(a.offset as isize);
        let write = dst.origin.wrapping_offset(b.offset as isize);
        let (long_a, long_b) = (from.whole_run() >= LONG, to.whole_run() >= LONG);
        if long_a && long_b {
            let bytes = a.bytes.min(b.bytes).min(left);
            // SAFETY: `bytes` is at most the rest of the current run of each side, and at most the
            // rest of the range.
            unsafe { interpreter::copy::<true>(read, write, bytes as usize) };
            stats::add(Executor::Fused, bytes);
            from.advance(bytes);
            to.advance(bytes);
        } else if !long_b && a.bytes >= ALONE.min(left) {
            let bytes = a.bytes.min(left);
            // SAFETY: the current run of the source has the next `bytes` bytes of the range, so
            // these are consecutive in memory, beginning at `read`.
            unsafe {
                unpack_part(dst.plan, dst.count, dst.origin, position..position + bytes, read)
            };
            from.advance(bytes);
            let _ = to.seek(position + bytes);
        } else if !long_a && b.bytes >= ALONE.min(left) {
            let bytes = b.bytes.min(left);
            let first = from.tell();
            // SAFETY: the current run of the destination has the next `bytes` bytes of the range,
            // so these are consecutive in memory, beginning at `write`.
            unsafe { pack_part(src.plan, src.count, src.origin, first..first + bytes, write) };
            to.advance(bytes);
            let _ = from.seek(first + bytes);
        } else {
            return position;
        }
    }
}

/// Returns the number of packed bytes that go through the buffer at a time. If possible, these bytes
/// are whole rows of both sides (a row is one pass through an innermost loop), otherwise whole blocks,
/// because a block that is cut takes extra calls. If neither is possible, returns [`BUFFER`].
fn chunk(src: &Plan, dst: &Plan) -> u64 {
    let block = |plan: &Plan| plan.whole_nest().map_or(1, |planned| planned.leaf_bytes.get());
    let row = |plan: &Plan| {
        let row = plan.whole_nest().and_then(|planned| match &planned.nest.levels[..] {
            [_, .., inner] => planned.leaf_bytes.get().checked_mul(inner.count()),
            _ => None,
        });
        row.unwrap_or_else(|| block(plan))
    };
    let fitting = |a: u64, b: u64| {
        let both = (a / gcd(a, b)).checked_mul(b)?;
        (both <= BUFFER / 4).then(|| BUFFER - BUFFER % both)
    };
    fitting(row(src), row(dst)).or_else(|| fitting(block(src), block(dst))).unwrap_or(BUFFER)
}

pub(super) fn gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The buffer. It consists of whole cache lines.
#[repr(align(64))]
struct Lines([MaybeUninit<u8>; BUFFER as usize]);

/// Copies to packed bytes `range` of the destination through the buffer. Each step ends at the next
/// multiple of `chunk`.
///
/// # Safety
///
/// - The conditions of [`copy_shifted`] hold.
/// - `chunk` is between 1 and [`BUFFER`].
unsafe fn buffered(
    src: &Elements<&Plan>,
    dst: &Elements<&Plan>,
    range: Range<u64>,
    shift: u64,
    chunk: u64,
) {
    if range.is_empty() {
        return;
    }
    let mut buffer = Lines([MaybeUninit::uninit(); BUFFER as usize]);
    let buffer = buffer.0.as_mut_ptr().cast::<u8>();
    let mut position = range.start;
    while position < range.end {
        let end = range.end.min(position - position % chunk + chunk);
        let first = position.wrapping_add(shift);
        let from = first..first + (end - position);
        // SAFETY: `position..end` is a part of the range and has at most `chunk` bytes, so the bytes fit in
        // the buffer; `from` is the range of the source bytes that belong to `position..end`. The pack writes
        // all bytes that the unpack reads.
        unsafe {
            pack_part(src.plan, src.count, src.origin, from, buffer);
            unpack_part(dst.plan, dst.count, dst.origin, position..end, buffer);
        }
        position = end;
    }
}
