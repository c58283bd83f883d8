//! Describes how a failed rank ended, and lets the launcher tell other ranks of it. This file converts an [`Ending`]
//! to text, to an exit code, and to and from the word of a rank's slot.
//!
//! The launcher decides how the rank ended (`launcher/src/ending.rs`), and stores that in the slot of this rank. Then
//! it adds 1 to the word `failures` of each rank that shares a communicator with the failed one, and wakes this rank. A
//! rank reads its own word `failures` to find out whether anything that concerns it has failed.
//!
//! Invariant: what the slot of a failed rank says never changes.

use std::fmt;
use std::sync::atomic::Ordering;

use super::layout::State;
use super::segment::Segment;

/// The way in which a rank ended before the end of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The rank exited with a code other than 0.
    Exited(u8),
    /// A signal killed the rank.
    Killed(u8),
    /// The rank had joined the job and ended without leaving it. Either the rank exited with code 0, or the
    /// launcher does not know its exit code.
    LeftEarly,
    /// The rank exited with code 0 without having joined the job, although other ranks had joined.
    NeverJoined,
}

impl Ending {
    /// Returns the word that encodes this ending in a slot. It is not 0.
    pub fn to_word(self) -> u32 {
        match self {
            Self::Exited(code) => 0x100 | u32::from(code),
            Self::Killed(signal) => 0x200 | u32::from(signal),
            Self::LeftEarly => 0x300,
            Self::NeverJoined => 0x400,
        }
    }

    /// Returns the ending that a word of a slot encodes. A word that encodes no ending counts as
    /// [`Ending::LeftEarly`].
    pub fn from_word(word: u32) -> Self {
        let low = word.to_le_bytes()[0];
        match word >> 8 {
            1 => Self::Exited(low),
            2 => Self::Killed(low),
            4 => Self::NeverJoined,
            _ => Self::LeftEarly,
        }
    }

    /// Returns the exit code for this ending: the rank's own code, 128 + the signal's number, or 1.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Exited(code) => code,
            Self::Killed(signal) => 128 | signal,
            Self::LeftEarly | Self::NeverJoined => 1,
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exited with code {code}"),
            Self::Killed(signal) => match crate::sys::signal::name(i32::from(*signal)) {
                Some(name) => write!(f, "killed by signal {signal} ({name})"),
                None => write!(f, "killed by signal {signal}"),
            },
            Self::LeftEarly => f.write_str("ended without finalizing"),
            Self::NeverJoined => f.write_str("exited with code 0 and never joined the job"),
        }
    }
}

/// Returns how messages name a rank: with its world, unless this is world 0, that of the command line.
pub fn who(rank: usize, world: usize) -> String {
    if world > 0 { format!("rank {rank} of world {world}") } else { format!("rank {rank}") }
}

/// The failure of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The slot of the process that failed.
    pub slot: usize,
    /// Its rank in its world.
    pub rank: usize,
    /// The number of its world.
    pub world: usize,
    /// How the rank ended.
    pub ending: Ending,
}

impl Failure {
    /// Returns how messages name the rank.
    pub fn who(&self) -> String {
        who(self.rank, self.world)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.who(), self.ending)
    }
}

impl Segment {
    /// Returns the number of failures of which the launcher has told `rank`, 0 while it has told none. Ranks read it on
    /// slow paths and before they sleep.
    pub fn failures(&self, rank: usize) -> u32 {
        self.slot(rank).failures.load(Ordering::Acquire)
    }

    /// Returns how `rank` failed, or `None` if it has not failed.
    pub fn ending(&self, rank: usize) -> Option<Ending> {
        let word = self.slot(rank).ending.load(Ordering::Acquire);
        (word != 0).then(|| Ending::from_word(word))
    }

    /// Returns the first failure of which the launcher has told `rank`, or `None` if it has told none or names no
    /// process that has failed.
    pub fn first_failure(&self, rank: usize) -> Option<Failure> {
        if self.failures(rank) == 0 {
            return None;
        }
        let first = self.slot(rank).first_failure.load(Ordering::Relaxed).checked_sub(1)? as usize;
        let ending = (first < self.layout().room().slots).then(|| self.ending(first))??;
        let (rank, world) = self.place_of(first);
        Some(Failure { slot: first, rank, world, ending })
    }

    /// Returns the rank of the process in `slot` in its world, and the number of this world.
    fn place_of(&self, slot: usize) -> (usize, usize) {
        let first = self.world_of(slot).map_or(0, |world| world.start);
        (slot - first, self.slot(slot).world_number.load(Ordering::Acquire) as usize)
    }

    /// Returns how messages name the process in `slot`. Whatever the number is, the function returns a text.
    pub fn name_of(&self, slot: usize) -> String {
        if slot >= self.layout().room().slots {
            return format!("the process in slot {slot}, which the job does not have");
        }
        let (rank, world) = self.place_of(slot);
        who(rank, world)
    }

    /// Returns whether `mpiexec` ends `rank` because a process that shares a communicator with it has died.
    pub fn is_ended(&self, rank: usize) -> bool {
        self.failures(rank) != 0 && self.launcher().is_some()
    }

    /// Records that a rank has failed and how. Its first ending stays. Tells no other rank. Only the launcher calls
    /// this function.
    pub fn record_failure(&self, failure: Failure) {
        let slot = self.slot(failure.slot);
        if slot.ending.load(Ordering::Relaxed) == 0 {
            slot.ending.store(failure.ending.to_word(), Ordering::Release);
        }
        slot.state.store(State::Dead as u32, Ordering::Release);
    }

    /// Tells the ranks in the slots `told` that `failed` has failed, and wakes them. [`Segment::record_failure`] has
    /// said how. Only the launcher calls this function.
    pub fn tell_failure(&self, failed: usize, told: impl IntoIterator<Item = usize>) {
        for rank in told {
            let slot = self.slot(rank);
            if slot.failures.load(Ordering::Relaxed) == 0 {
                // The cast is exact, because the number of a slot is below 2^12.
                slot.first_failure.store(failed as u32 + 1, Ordering::Relaxed);
            }
            slot.failures.fetch_add(1, Ordering::SeqCst);
            self.call(rank);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::segment::JobFlags;
    use super::*;

    #[test]
    fn a_failure_is_known_to_those_who_were_told() {
        let segment = Segment::create(4, &[], JobFlags::default(), 0).expect("segment");
        let first = Failure { slot: 1, rank: 1, world: 0, ending: Ending::Killed(9) };
        let second = Failure { slot: 2, rank: 2, world: 0, ending: Ending::Exited(3) };
        segment.record_failure(first);
        // How a rank ended is known before anybody is told, and does not change.
        segment.record_failure(Failure { ending: Ending::LeftEarly, ..first });
        assert_eq!((segment.ending(1), segment.state(1)), (Some(first.ending), State::Dead));
        assert_eq!((segment.failures(0), segment.first_failure(0)), (0, None));
        let before = segment.slot(0).doorbell.load(Ordering::Relaxed);
        segment.tell_failure(1, [0, 2]);
        segment.record_failure(second);
        segment.tell_failure(2, [0, 3]);
        assert_eq!(segment.slot(0).doorbell.load(Ordering::Relaxed), before + 2);
        let known = |rank| (segment.failures(rank), segment.first_failure(rank));
        assert_eq!(known(0), (2, Some(first)));
        assert_eq!(known(2), (1, Some(first)));
        assert_eq!(known(3), (1, Some(second)));
        assert_eq!((known(1), segment.ending(3)), ((0, None), None));
        assert!(!segment.is_ended(0), "nobody ends a job without a launcher");
        // Words that no launcher would write.
        for word in [0, 4, 5, u32::MAX] {
            segment.slot(0).first_failure.store(word, Ordering::Relaxed);
            assert_eq!(segment.first_failure(0), None, "{word}");
        }
    }

    #[test]
    fn words_keep_the_ending() {
        for ending in
            [Ending::Exited(3), Ending::Killed(11), Ending::LeftEarly, Ending::NeverJoined]
        {
            assert_eq!(Ending::from_word(ending.to_word()), ending);
        }
        // Even a word that no launcher would write converts to an ending.
        assert_eq!(Ending::from_word(u32::MAX), Ending::LeftEarly);
    }

    #[test]
    fn sentences_and_codes() {
        let killed = Failure { slot: 5, rank: 1, world: 2, ending: Ending::Killed(9) };
        assert_eq!(killed.to_string(), "rank 1 of world 2 killed by signal 9 (SIGKILL)");
        assert_eq!(killed.ending.exit_code(), 137);
        assert_eq!(Ending::Killed(40).to_string(), "killed by signal 40");
        assert_eq!(Ending::Exited(3).exit_code(), 3);
        assert_eq!(Ending::LeftEarly.exit_code(), 1);
    }
}
