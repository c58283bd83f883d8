//! The protocol by which a sender recalls a message that no receive has matched yet. The protocol uses one
//! word of an ordered pair's area for each message that can be recalled.
//!
//! `transport/link/recalls.rs` lends a word to every message whose sender may have to wait for the match, and the
//! message's envelope names the word. When a receive matches the message, the receiver claims the message
//! (`transport/peer.rs`). When the program cancels the send, the sender recalls the message. Both use
//! compare-and-swap on the word, so exactly one of the two succeeds, and neither waits for the other: the
//! sender can recall a message of a receiver that computes, sleeps or has left the job.
//!
//! ```text
//! word   0                       no message of this word has been decided
//!        id                      the message with this request id is matched
//!        id with the top bit     the message with this request id is recalled
//! ```
//!
//! A word belongs to one message until the receiver has answered the message, or has taken note of the recall
//! and has called [`forget`]. Until then the word still says that the message is recalled, so the receiver
//! can find this out at any time. The sender writes a word only to recall, so the word normally stays in the
//! receiver's cache.
//!
//! Invariant: the request ids of senders are below [`ID_END`]. If a hostile sender uses other ids, the
//! receiver drops some of the messages of this sender.

use super::work_split::Contended;

/// All request ids are below this number. The bit above the ids marks a recalled message.
pub const ID_END: u64 = 1 << 63;

const fn recalled(id: u64) -> u64 {
    id | ID_END
}

/// Sets the word to `wanted` unless it is `other`. Returns whether the word is `wanted` afterwards.
fn decide<W: Contended>(word: &W, wanted: u64, other: u64) -> bool {
    let mut seen = word.load_acquire();
    loop {
        if seen == other {
            return false;
        }
        match word.exchange(seen, wanted) {
            Ok(()) => return true,
            // The other rank has decided at the same moment, or a hostile rank has written the word.
            Err(now) => seen = now,
        }
    }
}

/// At the receiver: claims message `id` for a receive. Returns false if the sender has recalled the message.
#[inline]
pub fn claim<W: Contended>(word: &W, id: u64) -> bool {
    decide(word, id, recalled(id))
}

/// At the sender: recalls message `id`. Returns false if a receive has matched the message.
pub fn recall<W: Contended>(word: &W, id: u64) -> bool {
    decide(word, recalled(id), id)
}

/// Returns whether the word still belongs to message `id`, which its sender has recalled: the receiver has
/// not called [`forget`] yet.
pub fn is_recalled<W: Contended>(word: &W, id: u64) -> bool {
    word.load_acquire() == recalled(id)
}

/// At the receiver: gives back the word of a message that the sender has recalled. The receiver must have
/// dropped the message's envelope before. Returns false if the message is not recalled.
pub fn forget<W: Contended>(word: &W, id: u64) -> bool {
    word.exchange(recalled(id), 0).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU64 as Modelled;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn the_first_decision_stands() {
        let word = AtomicU64::new(0);
        assert!(
            claim(&word, 7) && !recall(&word, 7) && !is_recalled(&word, 7) && !forget(&word, 7)
        );
        assert!(recall(&word, 9) && !claim(&word, 9) && is_recalled(&word, 9));
        assert!(forget(&word, 9) && !is_recalled(&word, 9));
        assert!(claim(&word, 11) && !recall(&word, 11));
    }

    /// Checks in every interleaving that either the receiver takes a message or the sender recalls it.
    /// Only the rank that has succeeded uses the memory (loom reports any other access). The word has
    /// served an earlier message before.
    #[test]
    fn loom_recall() {
        loom::model(|| {
            let shared = Arc::new((Modelled::new(3), UnsafeCell::new(0u64)));
            let theirs = shared.clone();
            let sender = loom::thread::spawn(move || {
                let recalled = recall(&theirs.0, 5);
                if recalled {
                    // SAFETY: the receiver does not use the memory of a recalled message. Loom reports a
                    // concurrent access.
                    theirs.1.with_mut(|memory| unsafe { *memory = 9 });
                }
                recalled
            });
            let claimed = claim(&shared.0, 5);
            if claimed {
                // SAFETY: the sender does not write the memory of a matched message. Loom reports a
                // concurrent access.
                shared.1.with(|memory| assert_eq!(unsafe { *memory }, 0));
            }
            assert_ne!(claimed, sender.join().unwrap());
        });
    }
}
