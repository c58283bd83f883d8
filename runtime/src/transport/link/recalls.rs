//! The shared words by which this rank recalls (takes back) messages to one other rank when the program
//! cancels their sends.
//!
//! `link.rs` keeps one [`Recalls`] for each receiver. `peer.rs` lends a word to a message when it writes the
//! message's envelope, and takes the word back when the receiver has answered. A message that finds no free
//! word cannot be recalled once its envelope is in the ring; if the program cancels its send, this rank
//! completes the send from a copy (`endpoint/engine/detach.rs`). `shm/recall.rs` has the protocol between the
//! two ranks.

use super::area::Area;
use crate::shm::pair::RECALLS;
use crate::shm::recall;

/// The words of the messages to one receiver.
#[derive(Debug, Default)]
pub struct Recalls {
    /// Number of words that have ever been lent.
    used: usize,
    /// Words that have been lent and given back.
    free: Vec<u8>,
    /// Words of recalled messages, with the request ids of the messages. The receiver may still have the
    /// envelopes of these messages.
    recalled: Vec<(u8, u64)>,
}

impl Recalls {
    /// Lends a free word. Returns `None` if there is none.
    pub fn take(&mut self, area: &Area) -> Option<u8> {
        if let Some(word) = self.free.pop() {
            return Some(word);
        }
        if let Ok(word) = u8::try_from(self.used)
            && self.used < RECALLS
        {
            self.used += 1;
            return Some(word);
        }
        let free = &mut self.free;
        self.recalled.retain(|&(word, id)| {
            let waits = recall::is_recalled(area.recall(word), id);
            if !waits {
                free.push(word);
            }
            waits
        });
        self.free.pop()
    }

    /// Takes a word back. The receiver has answered the message, or has never seen its envelope.
    #[inline]
    pub fn give_back(&mut self, word: u8) {
        self.free.push(word);
    }

    /// Recalls message `id`, to which `word` was lent. Returns false if a receive or a probe has matched the
    /// message.
    pub fn recall(&mut self, area: &Area, word: u8, id: u64) -> bool {
        let recalled = recall::recall(area.recall(word), id);
        if recalled {
            self.recalled.push((word, id));
        }
        recalled
    }
}
