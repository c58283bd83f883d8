//! Describes how a failed rank ended. This file converts an [`Ending`] to text, to an exit code, and to and
//! from a word of the segment's header.
//!
//! The launcher decides how the rank ended (`launcher/src/ending.rs`). `segment.rs` stores the ending in the
//! header. Ranks read the ending when they find that the failure epoch, the number of failures so far, has
//! increased.
//!
//! Invariant: a job records only its first failure; later failures do not replace it.

use std::fmt;

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
    /// Returns the word that encodes this ending in the header.
    pub fn to_word(self) -> u32 {
        match self {
            Self::Exited(code) => 0x100 | u32::from(code),
            Self::Killed(signal) => 0x200 | u32::from(signal),
            Self::LeftEarly => 0x300,
            Self::NeverJoined => 0x400,
        }
    }

    /// Returns the ending that a word of the header encodes. A word that encodes no ending counts as
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

/// The first failure of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The rank that failed.
    pub rank: usize,
    /// How the rank ended.
    pub ending: Ending,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} {}", self.rank, self.ending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let killed = Failure { rank: 1, ending: Ending::Killed(9) };
        assert_eq!(killed.to_string(), "rank 1 killed by signal 9 (SIGKILL)");
        assert_eq!(killed.ending.exit_code(), 137);
        assert_eq!(Ending::Killed(40).to_string(), "killed by signal 40");
        assert_eq!(Ending::Exited(3).exit_code(), 3);
        assert_eq!(Ending::LeftEarly.exit_code(), 1);
    }
}
