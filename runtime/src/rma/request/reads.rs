//! Gets from memory that the calling rank cannot map, by system calls that read the target's memory (CMA). The target
//! does not help, so a get does not wait for a target that computes.
//!
//! `tries.rs` chooses between these reads and requests (`requests.rs`). `../../request/private.rs` finds out whether the
//! system permits reads; `TYPEPACK_CMA=off` forbids them. If a read fails later, this rank sends requests from then on.
//! Puts and atomic operations always use requests: no rank writes to the memory of another process (`sys/cma.rs`), and
//! all updates of an element have one mechanism (`accumulate.rs`).
//!
//! The elements at the target may be many short runs. The kernel works page by page, so a gap that is shorter than a
//! page is read together with the runs around it. A buffer takes what has been read; from there the data go to the
//! elements at the calling rank.

use super::requests::Far;
use crate::request::private::Reader;
use crate::rma::accumulate::ranges::state_of;
use crate::rma::{Flavor, Window};
use crate::shm::layout::State;
use crate::sys::cma::{RANGES, Range};
use crate::{ErrorKind, Plan, Result};
use typepack_engine::{Cursor, Elements};

/// Size of the buffer in bytes.
const BUFFER: usize = 64 << 10;

/// Gaps of fewer bytes are read too: the smallest page of all processors.
const PAGE: u64 = 4 << 10;

/// Data of a get that are read at one time.
#[derive(Debug, Default, PartialEq, Eq)]
struct Batch {
    /// The ranges of the target's memory, in the order in which they fill the buffer.
    theirs: Vec<Range>,
    /// For each run of the data, its offset in the buffer and its length.
    runs: Vec<(usize, usize)>,
    /// Number of bytes of the buffer that the ranges fill.
    used: usize,
}

impl Batch {
    /// Adds the run of `bytes` bytes at address `start`, or the part of the run that has room. Returns the number of
    /// bytes added. A gap of fewer than `gap` bytes before the run is read too.
    fn add(&mut self, start: u64, bytes: u64, gap: u64) -> usize {
        let room = BUFFER - self.used;
        let between =
            self.theirs.last().map(|last| start.wrapping_sub((last.at + last.len) as u64));
        if let (Some(between), Some(last)) = (between, self.theirs.last_mut())
            && between < gap.max(1)
        {
            let between = between as usize;
            let added = room.saturating_sub(between).min(bytes as usize);
            if added > 0 {
                last.len += between + added;
                self.runs.push((self.used + between, added));
                self.used += between + added;
            }
            return added;
        }
        let added = room.min(bytes as usize);
        if added == 0 || self.theirs.len() == RANGES {
            return 0;
        }
        self.theirs.push(Range { at: start as usize, len: added });
        self.runs.push((self.used, added));
        self.used += added;
        added
    }
}

impl Window {
    /// Returns how this rank may read the memory of `target`; `None` if it must send requests.
    pub(in crate::rma) fn reader(&self, target: usize) -> Result<Option<Reader>> {
        let world = self.comm.world_rank(target, "target_rank", ErrorKind::Rank)?;
        Ok(self.comm.endpoint().reader_of(world))
    }

    /// Reads the first `bytes` packed bytes of the elements at `far` to the elements `to`. Returns false if this rank
    /// cannot read the memory of the target. Then any part of the elements `to` may have been written.
    ///
    /// # Safety
    ///
    /// - The elements `to` have at least `bytes` packed bytes and are writable, and nobody else accesses them during
    ///   the call.
    ///
    /// # Errors
    /// Returns `ErrorKind::Rank` if there is no such target.
    pub(in crate::rma) unsafe fn read_far(
        &self,
        far: &Far<'_>,
        to: &Elements<&Plan>,
        bytes: u64,
    ) -> Result<bool> {
        // The offsets in a dynamic window are addresses.
        let base = match self.flavor {
            Flavor::Dynamic => Some(0),
            _ => self.targets.get(far.target).and_then(|target| target.address),
        };
        let (Some(base), Some(reader)) = (base, self.reader(far.target)?) else { return Ok(false) };
        let origin = base.wrapping_add(far.offset as u64);
        // Memory between pieces that are attached may be unmapped.
        let gap = if self.flavor == Flavor::Dynamic { 1 } else { PAGE };
        // SAFETY: the caller guarantees the elements `to` (the only condition of `# Safety`).
        let read = unsafe { read(reader, origin, far, to, bytes, gap)? };
        // The system may have given the process id of a dead rank to another process.
        let world = self.comm.world_rank(far.target, "target_rank", ErrorKind::Rank)?;
        let lives = state_of(world, self.comm.endpoint().rank()) == Some(State::Registered);
        if !read && lives {
            self.comm.endpoint().doubt_reads(world);
        }
        Ok(read && lives)
    }
}

/// Reads the first `bytes` packed bytes of the elements at `far`, whose origin has the address `origin` in the target's
/// process, to the elements `to`. Returns false if the system refuses a read.
///
/// # Safety
///
/// - The elements `to` have at least `bytes` packed bytes and are writable, and nobody else accesses them during the
///   call.
unsafe fn read(
    reader: Reader,
    origin: u64,
    far: &Far<'_>,
    to: &Elements<&Plan>,
    bytes: u64,
    gap: u64,
) -> Result<bool> {
    if let (true, Some(ours)) = (far.plan.is_contiguous(), to.run()) {
        let (lb, len) = (far.plan.footprint().true_lb, bytes as usize);
        let theirs = Range { at: origin.wrapping_add(lb as u64) as usize, len };
        let ours = Range { at: ours as usize, len };
        // SAFETY: the elements `to` are one run, which has at least `bytes` bytes, is writable and not in use (the
        // condition of `# Safety`).
        return Ok(unsafe { reader.read(&[ours], &[theirs]) }.is_ok());
    }
    let mut buffer = vec![0_u8; BUFFER];
    let mut cursor = Cursor::at(far.plan, far.count, 0)?;
    let mut position = 0;
    while position < bytes {
        let mut batch = Batch::default();
        let mut end = position;
        while end < bytes
            && let Some(run) = cursor.run()
        {
            let start = origin.wrapping_add(run.offset as u64);
            let added = batch.add(start, run.bytes.min(bytes - end), gap) as u64;
            if added == 0 {
                break;
            }
            cursor.advance(added);
            end += added;
        }
        if end == position {
            return Ok(false);
        }
        let ours = Range { at: buffer.as_mut_ptr() as usize, len: batch.used };
        // SAFETY: `used` is at most the length of the buffer, which is memory of this call.
        if unsafe { reader.read(&[ours], &batch.theirs) }.is_err() {
            return Ok(false);
        }
        let mut packed = 0;
        for &(at, length) in &batch.runs {
            buffer.copy_within(at..at + length, packed);
            packed += length;
        }
        // SAFETY: the range lies within the first `bytes` packed bytes of the elements `to`, which are writable and not
        // in use (the condition of `# Safety`). The buffer has as many bytes: `packed` is the sum of all runs.
        unsafe { to.unpack(position..end, buffer.as_ptr()) };
        position = end;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(at: usize, len: usize) -> Range {
        Range { at, len }
    }

    #[test]
    fn short_gaps_are_read_and_long_ones_are_not() {
        let mut batch = Batch::default();
        assert_eq!(batch.add(1000, 8, PAGE), 8);
        assert_eq!(batch.add(1008, 8, PAGE), 8);
        assert_eq!(batch.add(1016 + PAGE - 1, 8, PAGE), 8);
        // A gap of a page, and a run before the last one.
        assert_eq!(batch.add(1024 + 2 * PAGE - 1, 8, PAGE), 8);
        assert_eq!(batch.add(500, 8, PAGE), 8);
        let first = 24 + PAGE as usize - 1;
        let third = range(500, 8);
        let second = range(1024 + 2 * PAGE as usize - 1, 8);
        assert_eq!(batch.theirs, [range(1000, first), second, third]);
        let last = first - 8;
        assert_eq!(batch.runs, [(0, 8), (8, 8), (last, 8), (first, 8), (first + 8, 8)]);
        assert_eq!(batch.used, first + 16);
        // Without gaps, runs that follow each other are still one range.
        let mut batch = Batch::default();
        assert_eq!((batch.add(64, 8, 1), batch.add(72, 8, 1), batch.add(81, 8, 1)), (8, 8, 8));
        assert_eq!(batch.theirs, [range(64, 16), range(81, 8)]);
    }

    #[test]
    fn a_batch_fills_the_buffer_and_no_more() {
        let mut batch = Batch::default();
        assert_eq!(batch.add(1 << 20, BUFFER as u64 + 5, PAGE), BUFFER);
        assert_eq!(batch.add((1 << 20) + BUFFER as u64, 5, PAGE), 0);
        assert_eq!((batch.used, batch.runs.len()), (BUFFER, 1));
        let mut batch = Batch::default();
        assert_eq!(batch.add(1 << 20, BUFFER as u64 - 10, PAGE), BUFFER - 10);
        // A gap that does not fit ends the batch.
        assert_eq!(batch.add((1 << 20) + BUFFER as u64 + 10, 8, PAGE), 0);
        assert_eq!(batch.used, BUFFER - 10);
        let mut batch = Batch::default();
        for run in 0..RANGES as u64 {
            assert_eq!(batch.add(run << 20, 1, PAGE), 1);
        }
        assert_eq!(batch.add(1 << 40, 1, PAGE), 0);
    }
}
