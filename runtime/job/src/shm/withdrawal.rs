//! The protocol by which a sender takes back memory that its receiver may be reading. It uses two words of
//! an ordered pair.
//!
//! `transport/offers.rs` is the receiver's side, and `transport/link.rs` is the sender's side. A sender may
//! need its memory before the receiver has read it (a scope that panics). The sender counts the withdrawal in
//! the word `withdrawn`, waits until `reading` is 0, and names the message in an envelope.
//!
//! The receiver sets `reading` before it reads `withdrawn`, and both sides execute a full fence between
//! their two accesses. So either the receiver sees the new count and reads nothing until the envelope has
//! arrived, or the sender sees that the receiver is reading, and waits for the end of the piece.

use super::ring::Violation;
use crate::sync::Word;

/// The two words, and a fence.
pub trait ReadingMemory {
    /// The type of a word.
    type Word: Word;
    /// Returns the word that is 1 while the receiver reads memory of the sender. Written by the receiver.
    fn reading(&self) -> &Self::Word;
    /// Returns the count of messages whose memory the sender has withdrawn. Written by the sender.
    fn withdrawn(&self) -> &Self::Word;
    /// Executes a full fence.
    fn fence(&self);
}

/// Publishes that the sender has withdrawn `count` messages so far. The sender then waits until [`is_read`]
/// is false.
pub fn count<M: ReadingMemory>(memory: &M, count: u64) {
    memory.withdrawn().store_release(count);
    memory.fence();
}

/// Returns whether the receiver reads memory of the sender.
pub fn is_read<M: ReadingMemory>(memory: &M) -> bool {
    memory.reading().load_acquire() != 0
}

/// Begins to read memory of the sender. `known` is the number of Withdraw envelopes that have arrived.
/// Returns false while the sender has withdrawn more messages than `known`. If the result is true, the
/// caller must call [`end`] afterwards.
///
/// # Errors
/// Returns a [`Violation`] if `known` is larger than the number of withdrawals that the sender has counted.
pub fn begin<M: ReadingMemory>(memory: &M, known: u64) -> Result<bool, Violation> {
    memory.reading().store_relaxed(1);
    memory.fence();
    let withdrawn = memory.withdrawn().load_acquire();
    if withdrawn == known {
        return Ok(true);
    }
    end(memory);
    if withdrawn < known {
        return Err(uncounted(known, withdrawn));
    }
    Ok(false)
}

#[cold]
fn uncounted(known: u64, withdrawn: u64) -> Violation {
    Violation::new(format!("{known} withdrawals have arrived, but only {withdrawn} were counted"))
}

/// Ends the reading that [`begin`] began.
pub fn end<M: ReadingMemory>(memory: &M) {
    memory.reading().store_release(0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU64, Ordering, fence};

    struct Pair {
        reading: AtomicU64,
        withdrawn: AtomicU64,
        memory: UnsafeCell<u64>,
    }

    impl ReadingMemory for Pair {
        type Word = AtomicU64;
        fn reading(&self) -> &AtomicU64 {
            &self.reading
        }
        fn withdrawn(&self) -> &AtomicU64 {
            &self.withdrawn
        }
        fn fence(&self) {
            fence(Ordering::SeqCst);
        }
    }

    /// In every interleaving the sender changes its memory only while the receiver does not read it, or after
    /// the receiver was told not to read.
    #[test]
    fn loom_withdrawal() {
        loom::model(|| {
            let pair = Arc::new(Pair {
                reading: AtomicU64::new(0),
                withdrawn: AtomicU64::new(0),
                memory: UnsafeCell::new(7),
            });
            let theirs = pair.clone();
            let sender = loom::thread::spawn(move || {
                count(&*theirs, 1);
                while is_read(&*theirs) {
                    loom::thread::yield_now();
                }
                // SAFETY: the receiver does not read any more; loom reports a concurrent access.
                theirs.memory.with_mut(|memory| unsafe { *memory = 9 });
            });
            for _ in 0..2 {
                if begin(&*pair, 0).expect("no lie") {
                    // SAFETY: the sender waits while `reading` is 1; loom reports a concurrent access.
                    pair.memory.with(|memory| assert_eq!(unsafe { *memory }, 7));
                    end(&*pair);
                }
            }
            sender.join().unwrap();
        });
    }
}
