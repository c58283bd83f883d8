//! Any two layouts: long runs straight across, short ones through a buffer in L1.
//!
//! Called by `mod.rs` where `blocks.rs` does not apply, and by `blocks.rs` for the broken blocks at
//! the ends of a range. The rule, applied again at every position:
//!
//! 1. A run of at least [`ALONE`] bytes on one side, shorter ones on the other: the long run is
//!    consecutive memory, so that much is one pack or unpack, by a kernel, without a buffer.
//! 2. Runs of at least [`LONG`] bytes on both sides: one memcpy of what they have in common.
//! 3. Otherwise the next [`BUFFER`] bytes are packed into a buffer on the stack and unpacked from
//!    there, while they are in L1. Control per run is what short runs cost, and the kernels of the
//!    plans have less of it than a walk along two programs would.

use super::Side;
use crate::cursor::Cursor;
use crate::interp;
use crate::pack::{pack_raw, unpack_raw};
use crate::stats::{self, Executor};
use std::mem::MaybeUninit;
use std::ops::Range;

/// Bytes of the buffer: half of a common L1, leaving room for the lines of both layouts.
const BUFFER: u64 = 16 << 10;

/// Shortest run on both sides that is copied directly; a piece then costs 20 ns of control.
const LONG: u64 = 512;

/// Shortest run on one side that is packed to, or unpacked from, in place.
const ALONE: u64 = 4 << 10;

/// Ranges of at most this many bytes are not looked at: finding a position costs as much as
/// copying them twice.
const SHORT: u64 = 2 << 10;

/// Copies packed bytes `range`.
///
/// # Safety
///
/// As for [`copy_raw`](super::copy_raw), with displacement 0 at `memory`.
pub(super) unsafe fn copy(src: &Side<'_, *const u8>, dst: &Side<'_, *mut u8>, range: Range<u64>) {
    let mut position = range.start;
    if range.end - position > SHORT
        && let (Ok(mut from), Ok(mut to)) =
            (Cursor::at(src.plan, src.count, position), Cursor::at(dst.plan, dst.count, position))
    {
        // Buffers in a row double the distance to the next look, up to 8.
        let mut buffers = 1;
        loop {
            // SAFETY: as our contract, from `position` on, where both cursors are.
            let end = unsafe { straight(src, dst, &mut from, &mut to, range.end) };
            buffers = if end == position { (2 * buffers).min(8) } else { 1 };
            position = range.end.min(end + buffers * BUFFER);
            // SAFETY: as our contract, for a part of the range.
            unsafe { buffered(src, dst, end..position) };
            if position == range.end || from.seek(position).is_err() || to.seek(position).is_err() {
                break;
            }
        }
    }
    // SAFETY: as our contract, for the rest of the range.
    unsafe { buffered(src, dst, position..range.end) };
}

/// Copies without a buffer for as long as runs are long (rules 1 and 2), at most to `end`; returns
/// the position reached.
///
/// # Safety
///
/// As for [`copy`], for the bytes from the cursors' position, which is the same, to `end`.
unsafe fn straight(
    src: &Side<'_, *const u8>,
    dst: &Side<'_, *mut u8>,
    from: &mut Cursor<'_>,
    to: &mut Cursor<'_>,
    end: u64,
) -> u64 {
    loop {
        let position = from.tell();
        let (Some(a), Some(b)) = (from.run(), to.run()) else { return position };
        let left = end - position;
        if left == 0 {
            return position;
        }
        let read = src.memory.wrapping_offset(a.offset as isize);
        let write = dst.memory.wrapping_offset(b.offset as isize);
        let (long_a, long_b) = (from.whole_run() >= LONG, to.whole_run() >= LONG);
        if long_a && long_b {
            let bytes = a.bytes.min(b.bytes).min(left);
            // SAFETY: this much of the current run of each side belongs to the range.
            unsafe { interp::copy::<true>(read.cast_mut(), write, bytes as usize) };
            stats::add(Executor::Fused, bytes);
            from.advance(bytes);
            to.advance(bytes);
        } else if !long_b && a.bytes >= ALONE.min(left) {
            let bytes = a.bytes.min(left);
            // SAFETY: these bytes of the range are consecutive at `read`.
            unsafe {
                unpack_raw(dst.plan, dst.count, dst.memory, position..position + bytes, read)
            };
            from.advance(bytes);
            let _ = to.seek(from.tell());
        } else if !long_a && b.bytes >= ALONE.min(left) {
            let bytes = b.bytes.min(left);
            // SAFETY: these bytes of the range are consecutive at `write`.
            unsafe { pack_raw(src.plan, src.count, src.memory, position..position + bytes, write) };
            to.advance(bytes);
            let _ = from.seek(to.tell());
        } else {
            return position;
        }
    }
}

/// The buffer, in whole cache lines.
#[repr(align(64))]
struct Lines([MaybeUninit<u8>; BUFFER as usize]);

/// Copies packed bytes `range` through the buffer.
///
/// # Safety
///
/// As for [`copy`].
unsafe fn buffered(src: &Side<'_, *const u8>, dst: &Side<'_, *mut u8>, range: Range<u64>) {
    if range.is_empty() {
        return;
    }
    let mut buffer = Lines([MaybeUninit::uninit(); BUFFER as usize]);
    let buffer = buffer.0.as_mut_ptr().cast::<u8>();
    let mut position = range.start;
    while position < range.end {
        let end = range.end.min(position + BUFFER);
        // SAFETY: a part of the range, no longer than the buffer, which the pack fills.
        unsafe {
            pack_raw(src.plan, src.count, src.memory, position..end, buffer);
            unpack_raw(dst.plan, dst.count, dst.memory, position..end, buffer);
        }
        position = end;
    }
}
