//! The account of the unexpected messages: how much memory of this rank they occupy, for each sender and in
//! total.
//!
//! `incoming.rs` adds every message that no receive has matched, and `receive.rs` subtracts it when a receive
//! takes it. If a sender's messages occupy more than the bound of one sender (`TYPEPACK_UNEXPECTED_MAX`), or
//! those of all senders more than this rank's share of the memory, this rank writes a [`Credit`] into the word
//! `credit` of the area of the pair. From then on the sender keeps the data of the user's messages until a receive
//! matches them. The library's own messages ignore the word. The sender still sends the envelope of every message, and
//! this rank takes all envelopes out of the ring, because a receive may wait for a later message. Data that is in the
//! ring already is accepted, and so is the rest of a message in fragments that has begun. So longer messages of the
//! user exceed the bound by at most the size of a ring and one message of 256 KiB. This rank changes the word back when
//! the messages occupy at most half of a bound.
//!
//! A message of at most 64 bytes always goes out with its data, because it occupies no more memory than its envelope.
//! Its send waits for the match only at [`SHORT_FACTOR`] times the bound of one sender, or at the bound of all
//! senders. Many programs rely on short sends that do not wait, although the standard does not promise this: one rank
//! sends very many short messages, and the other first receives the last of them.
//!
//! Envelopes, messages of at most 64 bytes, and the library's own messages also count, but are never held
//! back, so they may exceed the bound by any amount. Messages of a rank to itself do not count: a rank that
//! held one back until a receive matched it would wait for itself.

use super::super::matching::{Arrived, ENTRY_BYTES};
use crate::sys::limits;
use crate::transport::link::credit::Credit;
use crate::transport::protocol::types::Located;

/// The least bound for the messages of all senders, in bytes. As long as the messages occupy no more than
/// this number of bytes, and no sender exceeds its own bound, this rank does not read the memory limit.
const ALL_MIN: u64 = 1 << 20;

/// The unexpected messages of all ranks may together occupy the memory limit divided by this number. (The
/// bound of a rank is at least `ALL_MIN`.)
const SHARE: u64 = 4;

/// Short sends wait when their sender's messages occupy this number of times the bound of one sender. With the default
/// bound these are 256 MiB, or 1.5 million messages.
pub const SHORT_FACTOR: u64 = 16;

/// The account of the unexpected messages of this rank.
#[derive(Debug)]
pub struct CreditLedger {
    /// Number of bytes that the messages of one sender may occupy.
    each: u64,
    /// Number of bytes that the messages of all senders may occupy. `None` until the messages have occupied
    /// more than `ALL_MIN` bytes, or one sender has exceeded its own bound. Until then the account saves the
    /// reading of the files that state the memory limit.
    all: Option<u64>,
    /// Number of ranks that share the memory.
    ranks: u64,
    total: u64,
    senders: Vec<Held>,
}

/// The account of one sender: the bytes that its messages occupy, and what it has been told about the room for
/// more.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    bytes: u64,
    credit: Credit,
}

/// The senders for which there may be more room ([`CreditLedger::free`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freed {
    /// No sender.
    Nobody,
    /// The sender whose message has been taken.
    This,
    /// All senders.
    All,
}

impl CreditLedger {
    /// Makes an empty account. Each sender's messages may occupy `each` bytes. `ranks` is the number of ranks
    /// that share the memory.
    pub fn new(each: u64, ranks: usize) -> Self {
        Self { each, all: None, ranks: ranks as u64, total: 0, senders: Vec::new() }
    }

    /// Changes the bound for the messages of one sender.
    pub fn bound(&mut self, each: u64) {
        self.each = each;
    }

    /// Returns the number of bytes that a message occupies.
    #[inline]
    pub fn size(what: &Arrived) -> u64 {
        let data = match what {
            Arrived::Data(kept, _) => kept.occupied(),
            Arrived::Fragments(_, bytes) => *bytes,
            Arrived::Rts(_, Some(_)) => size_of::<Located>(),
            Arrived::Rts(_, None) | Arrived::Own(_) => 0,
        };
        (data + ENTRY_BYTES) as u64
    }

    /// Adds a message of `from` that occupies `bytes` bytes. If there is less room for `from` now than `from` has been
    /// told, returns what the caller must tell `from`.
    #[inline]
    pub fn add(&mut self, from: usize, bytes: u64) -> Option<Credit> {
        if from >= self.senders.len() {
            self.senders.resize(from + 1, Held::default());
        }
        self.total += bytes;
        let sender = &mut self.senders[from];
        sender.bytes += bytes;
        let fits = sender.bytes <= self.each && self.total <= self.all.unwrap_or(ALL_MIN);
        if fits || sender.credit == Credit::None {
            return None;
        }
        self.overflows(from)
    }

    #[cold]
    fn overflows(&mut self, from: usize) -> Option<Credit> {
        let share = || (limits::memory_limit() / SHARE / self.ranks.max(1)).max(ALL_MIN);
        let all = *self.all.get_or_insert_with(share);
        let sender = &mut self.senders[from];
        let allowed = if self.total > all || sender.bytes > self.each.saturating_mul(SHORT_FACTOR) {
            Credit::None
        } else if sender.bytes > self.each {
            Credit::Short
        } else {
            Credit::Any
        };
        let less = allowed > sender.credit;
        sender.credit = allowed.max(sender.credit);
        less.then_some(allowed)
    }

    /// Subtracts a message of `from` that occupied `bytes` bytes. Returns the senders for which the caller
    /// must call [`CreditLedger::free`].
    #[inline]
    pub fn subtract(&mut self, from: usize, bytes: u64) -> Freed {
        let before = self.total;
        self.total -= bytes;
        let Some(sender) = self.senders.get_mut(from) else { return Freed::Nobody };
        sender.bytes -= bytes;
        let half = self.all.unwrap_or(ALL_MIN) / 2;
        if before > half && self.total <= half && self.all.is_some() {
            Freed::All
        } else if sender.credit != Credit::Any {
            Freed::This
        } else {
            Freed::Nobody
        }
    }

    /// Returns the number of bytes that all messages occupy.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns whether no message occupies memory.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.total == 0 && self.senders.iter().all(|sender| sender.bytes == 0)
    }

    /// Returns the number of senders.
    pub fn senders(&self) -> usize {
        self.senders.len()
    }

    /// If there is more room for `from` than `from` has been told, returns what the caller must tell `from`.
    pub fn free(&mut self, from: usize) -> Option<Credit> {
        let half = self.all.unwrap_or(ALL_MIN) / 2;
        let sender = self.senders.get_mut(from)?;
        let allowed =
            if self.total > half || sender.bytes > self.each.saturating_mul(SHORT_FACTOR) / 2 {
                Credit::None
            } else if sender.bytes > self.each / 2 {
                Credit::Short
            } else {
                Credit::Any
            };
        let more = allowed < sender.credit;
        sender.credit = allowed.min(sender.credit);
        more.then_some(allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(each: u64, all: u64) -> CreditLedger {
        CreditLedger { all: Some(all), ..CreditLedger::new(each, 2) }
    }

    #[test]
    fn a_sender_is_full_until_half_of_its_messages_are_taken() {
        let mut ledger = ledger(100, 1000);
        assert_eq!(ledger.add(3, 100), None);
        assert_eq!([ledger.add(3, 1), ledger.add(3, 99)], [Some(Credit::Short), None]);
        assert_eq!(ledger.add(1, 100), None);
        assert_eq!(ledger.subtract(3, 100), Freed::This);
        assert_eq!(ledger.free(3), None);
        assert_eq!(ledger.subtract(3, 50), Freed::This);
        assert_eq!([ledger.free(3), ledger.free(3)], [Some(Credit::Any), None]);
        assert_eq!(ledger.subtract(3, 50), Freed::Nobody);
        assert_eq!([ledger.add(3, 100), ledger.add(3, 1)], [None, Some(Credit::Short)]);
    }

    #[test]
    fn short_sends_wait_at_a_multiple_of_the_bound() {
        let mut ledger = ledger(100, 1 << 20);
        let bound = 100 * SHORT_FACTOR;
        assert_eq!(ledger.add(1, bound), Some(Credit::Short));
        assert_eq!([ledger.add(1, 1), ledger.add(1, 9)], [Some(Credit::None), None]);
        ledger.subtract(1, 10);
        assert_eq!(ledger.free(1), None);
        assert_eq!(ledger.subtract(1, bound / 2), Freed::This);
        assert_eq!([ledger.free(1), ledger.free(1)], [Some(Credit::Short), None]);
        assert_eq!(ledger.add(1, bound), Some(Credit::None));
        ledger.subtract(1, bound + bound / 2);
        assert_eq!([ledger.free(1), ledger.free(1)], [Some(Credit::Any), None]);
    }

    #[test]
    fn all_senders_together_have_a_bound() {
        let mut ledger = ledger(100, 250);
        for from in 0..2 {
            assert_eq!(ledger.add(from, 100), None);
        }
        assert_eq!([ledger.add(7, 51), ledger.add(0, 1)], [Some(Credit::None); 2]);
        assert_eq!(ledger.subtract(1, 100), Freed::Nobody);
        // The total has fallen to half of the bound, so there may be more room for any sender.
        assert_eq!(ledger.subtract(0, 27), Freed::All);
        let more = |ledger: &mut CreditLedger| {
            (0..ledger.senders()).map(|from| ledger.free(from)).collect::<Vec<_>>()
        };
        let mut wanted = vec![None; 8];
        (wanted[0], wanted[7]) = (Some(Credit::Short), Some(Credit::Short));
        assert_eq!(more(&mut ledger), wanted);
        assert_eq!(ledger.subtract(0, 24), Freed::This);
        assert_eq!(ledger.free(0), Some(Credit::Any));
        assert_eq!(ledger.subtract(7, 1), Freed::This);
        assert_eq!(ledger.free(7), Some(Credit::Any));
    }

    #[test]
    fn a_rank_gets_a_share_of_the_memory() {
        let mut ledger = CreditLedger::new(u64::MAX, 4);
        assert!(ledger.add(0, ALL_MIN).is_none() && ledger.all.is_none());
        assert_eq!(ledger.add(0, 1), None);
        assert_eq!(ledger.all, Some((limits::memory_limit() / 16).max(ALL_MIN)));
        assert_eq!(ledger.add(0, 1 << 50), Some(Credit::None));
    }

    #[test]
    fn nothing_may_wait_if_the_bound_is_zero() {
        let mut ledger = CreditLedger::new(0, 2);
        assert_eq!(ledger.add(1, 8), Some(Credit::None));
        assert_eq!(ledger.subtract(1, 8), Freed::This);
        assert_eq!(ledger.free(1), Some(Credit::Any));
    }
}
