//! What a receiver tells a sender about the room for messages that no receive has matched.
//!
//! `endpoint/engine/ledger.rs` counts the memory and decides. The receiver writes the decision into a word of the
//! pair's area (`area.rs`), and the sender reads the word before it sends data (`link.rs`).

/// Which of the user's messages may go out with their data although no receive may match them soon. A later value
/// allows less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u64)]
pub enum Credit {
    /// Messages of any length.
    #[default]
    Any = 0,
    /// Messages of at most `SHORT` bytes. The data of a longer message waits at the sender for the match.
    Short = 1,
    /// No message. The data of a short message goes out nevertheless, but its send waits for the match.
    None = 2,
}

impl Credit {
    /// Returns the value that a word of shared memory stands for. A value that no receiver writes allows nothing.
    #[inline]
    pub fn of(word: u64) -> Self {
        match word {
            0 => Self::Any,
            1 => Self::Short,
            _ => Self::None,
        }
    }
}
