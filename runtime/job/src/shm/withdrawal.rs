//! How a sender takes memory back that its receiver may be reading: two words of an ordered pair.
//!
//! `transport/offers.rs` is the receiver's side, `transport/link.rs` the sender's. A sender may need
//! its memory before it has been read (a scope that panics): it counts that in the word `withdrawn`,
//! waits until `reading` is 0, and says with an envelope which message it was. The receiver sets
//! `reading` before it looks at `withdrawn`, with a full fence between, as the sender has one between
//! its two: either the receiver sees the count and reads nothing until the envelope has come, or the
//! sender sees that it reads, and waits for the end of the piece.

use super::ring::Violation;
use crate::sync::Word;

/// The two words, and a fence.
pub trait ReadingMemory {
    /// The atomic word.
    type Word: Word;
    /// 1 while the receiver reads memory of the sender, in place. Written by the receiver.
    fn reading(&self) -> &Self::Word;
    /// Messages whose memory the sender has withdrawn, ever. Written by the sender.
    fn withdrawn(&self) -> &Self::Word;
    /// A full fence.
    fn fence(&self);
}

/// The sender has withdrawn `count` messages so far. Afterwards it waits until [`is_read`] is false.
pub fn count<M: ReadingMemory>(memory: &M, count: u64) {
    memory.withdrawn().store_release(count);
    memory.fence();
}

/// Whether the receiver reads memory of the sender.
pub fn is_read<M: ReadingMemory>(memory: &M) -> bool {
    memory.reading().load_acquire() != 0
}

/// Begins to read memory of the sender, of whose withdrawals `known` have come by envelope; false
/// while there are others. If true, [`end`] must follow.
///
/// # Errors
/// [`Violation`] when more have come than were counted.
pub fn begin<M: ReadingMemory>(memory: &M, known: u64) -> Result<bool, Violation> {
    memory.reading().store_relaxed(1);
    memory.fence();
    let withdrawn = memory.withdrawn().load_acquire();
    if withdrawn == known {
        return Ok(true);
    }
    end(memory);
    if withdrawn < known {
        return Err(Violation("more withdrawals than were counted"));
    }
    Ok(false)
}

/// Nothing of the sender is being read, until the next [`begin`].
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

    /// Every interleaving: the sender changes its memory while nobody reads it, or after the receiver
    /// was told not to.
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
                // SAFETY: the receiver does not read any more; loom reports it if it does.
                theirs.memory.with_mut(|memory| unsafe { *memory = 9 });
            });
            for _ in 0..2 {
                if begin(&*pair, 0).expect("no lie") {
                    // SAFETY: the sender waits for `reading`; loom reports it if it does not.
                    pair.memory.with(|memory| assert_eq!(unsafe { *memory }, 7));
                    end(&*pair);
                }
            }
            sender.join().unwrap();
        });
    }
}
