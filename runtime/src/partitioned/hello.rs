//! The message by which a sender names itself to the receiver. The sender sends it when the program prepares the send,
//! in the communicator's space for such messages and with the program's tag. The receiver posts a receive for it when
//! the program prepares the receive. So sends and receives match in the order in which they were prepared, once for
//! all rounds.

use crate::message::label::SPACES;
use crate::{Error, ErrorKind, Result};
use std::ptr::NonNull;

/// Number of words of the message.
pub(super) const WORDS: usize = 4;

/// The first word of the message: the version of its form.
const FORM: u64 = 0x7061_7274_0000_0001;

/// What the receiver learns about a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    /// Number of partitions that are messages; fits in an `i32`. At most 1 if the partitions have no bytes.
    pub partitions: u32,
    /// Number of packed bytes of a partition. The product of the two numbers fits in an `i64`.
    pub bytes: u64,
    /// The context of the partitions' messages. The tag of such a message is the number of its partition.
    pub context: u64,
    /// Check bits of the basic types of all partitions together (`message/typecheck.rs`).
    pub types: u32,
}

impl Hello {
    /// Returns the words of the message.
    pub fn words(&self) -> [u64; WORDS] {
        let numbers = u64::from(self.types) << 32 | u64::from(self.partitions);
        [FORM, numbers, self.bytes, self.context]
    }

    /// Reads the words that the process in slot `from` has written.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if a value is not one that this library writes.
    pub fn read(words: [u64; WORDS], from: usize) -> Result<Self> {
        let [form, numbers, bytes, context] = words;
        let hello =
            Self { partitions: numbers as u32, bytes, context, types: (numbers >> 32) as u32 };
        let total = u128::from(hello.partitions) * u128::from(bytes);
        let is_partitions =
            hello.partitions <= i32::MAX as u32 && (bytes > 0 || hello.partitions <= 1);
        // A context belongs to the process that has taken its number (`Endpoint::new_context`), and the messages
        // are messages of the user: they wait for room at their receiver.
        let is_theirs = context.is_multiple_of(SPACES) && (context / SPACES) >> 48 == from as u64;
        if form == FORM && is_partitions && total <= i64::MAX as u128 && is_theirs {
            return Ok(hello);
        }
        let detail = format!("rank {from} has described a partitioned send by {words:x?}");
        Err(Error::new(ErrorKind::Other, "message", detail))
    }
}

/// The memory into which a hello is received. It stays where it is when the value moves, and all accesses go through
/// its address, as the receive's do.
#[derive(Debug)]
pub(super) struct Letter(NonNull<[u64; WORDS]>);

// SAFETY: the value owns the words, and a mutable reference or the library's receive is the only way to change them.
unsafe impl Send for Letter {}

impl Letter {
    /// The size in bytes.
    pub const BYTES: u64 = size_of::<[u64; WORDS]>() as u64;

    pub fn new() -> Self {
        Self(NonNull::from(Box::leak(Box::new([0; WORDS]))))
    }

    /// Returns the address of the words.
    pub fn start(&mut self) -> *mut u64 {
        self.0.as_ptr().cast()
    }

    /// Returns the words. The receive is over.
    pub fn words(&self) -> [u64; WORDS] {
        // SAFETY: the words are initialised and belong to this value. The receive into them is over.
        unsafe { self.0.read() }
    }
}

impl Drop for Letter {
    fn drop(&mut self) {
        // SAFETY: the address comes from a box (`new`), and no receive uses the words any more.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_possible_sends_are_accepted() {
        let context = (3 << 48 | 77) * SPACES;
        let hello = Hello { partitions: 16, bytes: 1 << 16, context, types: 9 };
        assert_eq!(Hello::read(hello.words(), 3), Ok(hello));
        assert!(Hello::read(hello.words(), 2).is_err());
        let wrong = [
            Hello { partitions: 1 << 31, ..hello },
            Hello { bytes: 1 << 60, ..hello },
            Hello { bytes: 0, ..hello },
            Hello { bytes: u64::MAX, ..hello },
            Hello { context: context + 1, ..hello },
            Hello { context: u64::MAX - 7, ..hello },
        ];
        for hello in wrong {
            assert_eq!(Hello::read(hello.words(), 3).map_err(|e| e.kind()), Err(ErrorKind::Other));
        }
        assert!(Hello::read([0; WORDS], 0).is_err());
        let nothing = Hello { partitions: 0, bytes: 0, ..hello };
        assert_eq!(Hello::read(nothing.words(), 3), Ok(nothing));
    }
}
