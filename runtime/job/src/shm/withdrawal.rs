//! The protocol by which a sender takes back the memory of a message while the receiver may be reading it.
//! The protocol uses two words of an ordered pair's area.
//!
//! `transport/protocol/offers.rs` implements the receiver's part of the protocol, and `transport/link.rs` the
//! sender's part. A sender may need its memory back before the receiver has read it, for example if the
//! scope that lent the memory panics. The sender then adds one to the word `withdrawn`, waits until the
//! word `reading` is 0, and sends a Withdraw envelope, which names the withdrawn message.
//!
//! The receiver sets `reading` before it reads `withdrawn`. The sender writes `withdrawn` before it reads
//! `reading`. Each of the two processes executes a full fence between its two accesses. So at least one of
//! two things happens: the receiver sees the new count and reads nothing until the Withdraw envelope has
//! arrived, or the sender sees that the receiver is reading and waits until the receiver has set `reading`
//! to 0.

use super::ring::Violation;
use crate::sync::Word;

/// The two words of a pair that this protocol uses, and a fence.
pub trait ReadingMemory {
    /// The type of a word.
    type Word: Word;
    /// Returns the word that is 1 while the receiver reads memory of the sender. Written by the receiver.
    fn reading(&self) -> &Self::Word;
    /// Returns the word that counts the messages whose memory the sender has withdrawn. Written by the
    /// sender.
    fn withdrawn(&self) -> &Self::Word;
    /// Executes a full fence.
    fn fence(&self);
}

/// Publishes that the sender has withdrawn `count` messages so far. Afterwards the sender waits until
/// [`is_read`] returns false.
pub fn count<M: ReadingMemory>(memory: &M, count: u64) {
    memory.withdrawn().store_release(count);
    memory.fence();
}

/// Returns true while the receiver reads memory of the sender.
pub fn is_read<M: ReadingMemory>(memory: &M) -> bool {
    memory.reading().load_acquire() != 0
}

/// Called by the receiver before it reads memory of the sender. `known` is the number of Withdraw envelopes
/// that have arrived from the sender. Returns true if the receiver may read; the receiver must then call
/// [`end`] when it has finished. Returns false if the sender has withdrawn more messages than `known`; the
/// receiver must then not read.
///
/// # Errors
/// Returns a [`Violation`] if `known` is larger than the sender's count of withdrawn messages.
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
    Violation::new(format!(
        "{known} Withdraw envelopes have arrived, but the sender has counted only {withdrawn} withdrawn \
         messages"
    ))
}

/// Called by the receiver when it has finished the read for which [`begin`] returned true.
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

    /// Checks, in every interleaving, that the sender changes its memory only when the receiver is not
    /// reading the memory and can no longer begin to read it.
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
                // SAFETY: `reading` is 0 and later calls of `begin` return false, so the receiver does not
                // read. Loom reports a concurrent access.
                theirs.memory.with_mut(|memory| unsafe { *memory = 9 });
            });
            for _ in 0..2 {
                if begin(&*pair, 0).expect("no lie") {
                    // SAFETY: the sender does not write while `reading` is 1. Loom reports a concurrent
                    // access.
                    pair.memory.with(|memory| assert_eq!(unsafe { *memory }, 7));
                    end(&*pair);
                }
            }
            sender.join().unwrap();
        });
    }
}
