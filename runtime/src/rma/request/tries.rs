//! Gets from memory that the calling rank cannot map: the target sends a message (`fetches.rs`), or system calls read
//! the memory (`reads.rs`).
//!
//! A message is often quicker: both ranks work, and only the data moves. But the target must help, and it may compute
//! for a long time. So a get asks for a message, and waits no longer than a read of so much data has taken before. If
//! the message has not begun to arrive then, the get reads the memory, and nobody needs the message when it comes: it
//! is discarded. Until it has come, all gets read. A target that only slept is awake then, and quick. But if one
//! message after the other is late, or slower than a read, more and more gets read before one asks again. If waiting
//! ranks do not spin, the target may need a CPU first, so all gets read.
//!
//! A rank that may not read the memory, or whose read fails, only asks for the message: a call that completes
//! operations waits for it. So does a rank that has requests at the target which are not over, because the data must
//! include its earlier puts: the target answers after it has carried them out.

use super::fetches::Short;
use super::requests::Far;
use crate::endpoint::progress::{Awaited, Brief};
use crate::rma::Window;
use crate::rma::window::words::said;
use crate::{ErrorKind, Plan, Result};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use typepack_engine::Elements;

/// Number of classes of lengths. A class has the lengths with the same half of a binary logarithm.
const CLASSES: usize = 16;

/// Marks the tag of a short answer. The numbers of receives are smaller (`shm::recall::ID_END`).
const SHORT: u64 = 1 << 63;
/// Stands for a get that waits for its message. No tag of a short answer is negative.
const TRYING: u64 = u64::MAX;
const _: () = assert!(crate::shm::recall::ID_END <= SHORT);

/// Smallest and greatest number of gets that read at once after two messages in a row were late.
const SKIPPED: [u32; 2] = [8, 1024];

/// Returns the class of a get of `bytes` bytes, which are one run at the target or not.
fn class_of(bytes: u64, is_one_run: bool) -> usize {
    let length = (bytes.max(1).ilog2() as usize / 2).min(CLASSES - 1);
    length + if is_one_run { 0 } else { CLASSES }
}

/// What this rank knows of gets from one target. Threads that change the values at the same time may lose a change.
#[derive(Debug, Default)]
struct Try {
    /// The time of the last read of each class in nanoseconds; 0 if there was none.
    reads: [AtomicU32; 2 * CLASSES],
    /// Number of gets that still read at once.
    skips: AtomicU32,
    /// Number of gets to skip if the next message is late.
    next: AtomicU32,
    /// The number of the receive of a message that was late, or the tag of a short answer and [`SHORT`], or [`TRYING`];
    /// 0 if there is none of them.
    late: AtomicU64,
}

/// The get of one thread that waits for its message. The gets of other threads read meanwhile: so no more than one
/// message of a target can be late.
struct Turn<'a> {
    late: &'a AtomicU64,
    /// The message that was late, which the rank still has to receive; 0 if no message was late.
    left: u64,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.late.store(self.left, Ordering::Relaxed);
    }
}

impl Try {
    /// Begins to wait for a message, unless another thread does, or a message is late.
    fn turn(&self) -> Option<Turn<'_>> {
        let started = self.late.compare_exchange(0, TRYING, Ordering::Relaxed, Ordering::Relaxed);
        started.is_ok().then(|| Turn { late: &self.late, left: 0 })
    }

    /// Returns how long a get of this class may wait for the message, or `None` if it reads at once.
    fn begin(&self, class: usize) -> Option<Duration> {
        let read = self.reads[class].load(Ordering::Relaxed);
        if read == 0 {
            return None;
        }
        let skips = self.skips.load(Ordering::Relaxed);
        if skips > 0 {
            self.skips.store(skips - 1, Ordering::Relaxed);
            return None;
        }
        Some(Duration::from_nanos(read.into()))
    }

    /// Records the time of a read.
    fn has_read(&self, class: usize, time: Duration) {
        let time = u32::try_from(time.as_nanos()).unwrap_or(u32::MAX).max(1);
        self.reads[class].store(time, Ordering::Relaxed);
    }

    /// Records whether a message was quicker than a read.
    fn has_tried(&self, quicker: bool) {
        if quicker {
            self.next.store(0, Ordering::Relaxed);
            return;
        }
        let next = self.next.load(Ordering::Relaxed);
        self.skips.store(next, Ordering::Relaxed);
        self.next.store((2 * next).clamp(SKIPPED[0], SKIPPED[1]), Ordering::Relaxed);
    }
}

/// What this rank knows of gets from the ranks of a window.
#[derive(Debug)]
pub(in crate::rma) struct Tries(Box<[Try]>);

impl Tries {
    pub fn new(ranks: usize) -> Self {
        Self((0..ranks).map(|_| Try::default()).collect())
    }
}

impl Window {
    /// Gets the elements `far`, which have `bytes` packed bytes, or starts to do so. If `ids` is given, adds the
    /// numbers of the requests that end when the data are there.
    ///
    /// # Safety
    ///
    /// - The elements `to` are writable and have at least `bytes` packed bytes, and nobody else accesses them until the
    ///   get is complete.
    ///
    /// # Errors
    /// Returns an error of the class with which the target has refused the operation, and `ErrorKind::ProcAborted` if a
    /// rank has died.
    pub(in crate::rma) unsafe fn get_far(
        &self,
        to: &Elements<&Plan>,
        far: &Far<'_>,
        bytes: u64,
        ids: &mut Option<Vec<u64>>,
    ) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // Programs rely on gets that see earlier puts, although the standard does not demand this.
        if !self.has_pending(far.target)?
            && self.may_read(far.target)?
            && let Some(known) = self.tries.0.get(far.target)
        {
            let class = class_of(bytes, far.plan.is_contiguous());
            // SAFETY: the caller guarantees the elements `to`.
            unsafe {
                if self.get_briefly(known, class, to, far, bytes)? {
                    return Ok(());
                }
                let start = Instant::now();
                if self.read_far(far, to, bytes)? {
                    known.has_read(class, start.elapsed());
                    return Ok(());
                }
            }
        }
        // SAFETY: the elements `to` are writable and have at least `bytes` packed bytes (the condition of `# Safety`),
        // which is the condition of `get_there`.
        unsafe { self.get_there(to, far, bytes, ids) }
    }

    /// Gets elements like [`get_far`](Self::get_far), by a message that must begin to arrive soon. Returns whether it
    /// has.
    ///
    /// # Safety
    ///
    /// - The condition of [`get_far`](Self::get_far).
    unsafe fn get_briefly(
        &self,
        known: &Try,
        class: usize,
        to: &Elements<&Plan>,
        far: &Far<'_>,
        bytes: u64,
    ) -> Result<bool> {
        let endpoint = self.comm.endpoint();
        if endpoint.sleeps_at_once() || !self.has_come_late(known, far.target)? {
            return Ok(false);
        }
        let Some(limit) = known.begin(class) else { return Ok(false) };
        let Some(mut turn) = known.turn() else { return Ok(false) };
        let start = Instant::now();
        let end = start + limit;
        if bytes <= said::BYTES as u64 {
            let send = |tag| self.send_get(far, bytes, tag, true);
            let answer = match self.ask_briefly(far.target, end, send)? {
                Short::Reply(answer) => answer,
                Short::Late(tag) => {
                    known.has_tried(false);
                    turn.left = SHORT | u64::from(tag as u32);
                    return Ok(false);
                }
                Short::Not => return Ok(false),
            };
            known.has_tried(Instant::now() <= end);
            // SAFETY: the elements `to` are writable and have at least `bytes` packed bytes (the condition of
            // `# Safety`), which are at most the length of the answer.
            unsafe { to.unpack(0..bytes, answer.as_ptr().cast()) };
            return Ok(true);
        }
        // SAFETY: the elements `to` are writable, and nobody else accesses them during this call (the condition of
        // `# Safety`). When this function returns, the receive is complete or detached, or it discards its data.
        let Some(id) = (unsafe { self.ask_to_get(to, far, bytes)? }) else { return Ok(false) };
        let status = match endpoint.wait_briefly(id, end)? {
            Brief::Done(result) => result?,
            Brief::Started => endpoint.wait(id, "")?,
            Brief::Late => {
                known.has_tried(false);
                turn.left = id;
                return Ok(false);
            }
        };
        known.has_tried(Instant::now() <= end);
        self.check_got(far.target, status, bytes).map(|()| true)
    }

    /// Returns whether no message or answer is on its way that nobody needs.
    fn has_come_late(&self, known: &Try, target: usize) -> Result<bool> {
        let id = known.late.load(Ordering::Relaxed);
        if id == 0 {
            return Ok(true);
        }
        let is_over = match id & SHORT {
            _ if id == TRYING => false,
            0 => self.comm.endpoint().change(|engine| engine.requests().is_complete(id))?,
            _ => self.has_answered(target, id as i32)?,
        };
        if is_over {
            // Another thread may have seen the end too, and wait for a message already.
            let _first = known.late.compare_exchange(id, 0, Ordering::Relaxed, Ordering::Relaxed);
        } else {
            // A rank that only reads must still make progress, so that the message can come.
            self.comm.progress()?;
        }
        Ok(is_over)
    }

    /// Waits for the messages that nobody needs, so that none arrives after the end of the window.
    pub(in crate::rma) fn await_late(&self) -> Result<()> {
        for known in &self.tries.0 {
            let id = known.late.swap(0, Ordering::Relaxed);
            // A short answer needs no receive.
            if id != 0 && id & SHORT == 0 {
                self.comm.endpoint().attend(&Awaited::Asked(""), |engine| {
                    engine.requests().is_complete(id).then_some(())
                })?;
            }
        }
        Ok(())
    }

    /// Returns whether this rank may read the memory of `target` by system calls.
    fn may_read(&self, target: usize) -> Result<bool> {
        self.comm.check_rank(target, "target_rank", ErrorKind::Rank)?;
        Ok(self.reader(target)?.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_messages_are_tried_less_and_less() {
        let known = Try::default();
        assert_eq!(known.begin(3), None);
        known.has_read(3, Duration::from_nanos(900));
        assert_eq!(known.begin(3), Some(Duration::from_nanos(900)));
        assert_eq!(known.begin(4), None);
        // The first late message has woken the target.
        let mut expected = 0;
        for _ in 0..12 {
            known.has_tried(false);
            for _ in 0..expected {
                assert_eq!(known.begin(3), None);
            }
            assert!(known.begin(3).is_some());
            expected = (2 * expected).clamp(SKIPPED[0], SKIPPED[1]);
        }
        known.has_tried(true);
        known.has_tried(false);
        assert!(known.begin(3).is_some());
    }

    #[test]
    fn one_message_at_most_is_late() {
        let known = Try::default();
        let mut turn = known.turn().expect("the first turn");
        // Another thread reads.
        assert!(known.turn().is_none());
        turn.left = 7;
        drop(turn);
        assert!(known.turn().is_none());
        assert_eq!(known.late.swap(0, Ordering::Relaxed), 7);
        drop(known.turn().expect("a turn after the late message"));
        assert!(known.turn().is_some());
    }

    #[test]
    fn lengths_have_classes() {
        assert_eq!([0, 1, 3, 4, 8, 16].map(|bytes| class_of(bytes, true)), [0, 0, 0, 1, 1, 2]);
        assert_eq!(class_of(u64::MAX, false), 2 * CLASSES - 1);
    }
}
