//! The address of a process, the only address below communicators.
//!
//! A program names processes by ranks of communicators. `comm/` translates a rank into a [`Process`], and a process
//! into a rank again when a call ends. Messages, schedules, requests and the heaps know only processes. The world is a
//! group of processes like every other group: the processes that the launcher has started together.
//!
//! The texts of errors name a process by its rank in its own world, and by this world if other ranks have started it
//! ("rank 1 of world 2"), never by its slot.

pub(crate) mod membership;

use crate::sys::fork;
use std::fmt;

/// A process of the job: its slot in the segment that this process has joined (`typepack_job::shm`). The processes with
/// which a job begins have the first slots. A process that joins the job later has a slot after them, and has no rank
/// in their world.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// Returns the process in slot `slot`. A slot is below [`MAX_SLOTS`](crate::shm::layout::MAX_SLOTS).
    #[inline]
    pub(crate) fn new(slot: usize) -> Self {
        Self(slot as u32)
    }

    /// Returns the slot of the process, by which the tables of this process are indexed.
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A forked child does not map the segment.
        match membership::get().filter(|_| !fork::is_child()) {
            Some(attached) => f.write_str(&attached.segment.name_of(self.index())),
            None => write!(f, "rank {}", self.0),
        }
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
