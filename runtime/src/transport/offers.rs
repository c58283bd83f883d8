//! The book of messages whose data this rank may read in place: RTS with a place, until their answer.
//!
//! `link.rs` keeps one for each sender. The protocols of single copies (`heap.rs`, `private.rs`) ask
//! it before they copy, and read between [`Offers::begin`] and [`Offers::end`] only, so that a sender
//! can take its memory back (`shm/withdrawal.rs`).

use super::area::Area;
use super::failure::broken;
use crate::Result;
use crate::shm::withdrawal;
use std::collections::HashMap;

/// The book for one sender.
#[derive(Debug, Default)]
pub struct Offers {
    /// RTS with a place that have not been answered, and whether they were withdrawn.
    open: HashMap<u64, bool>,
    /// Withdrawals that have come by envelope.
    withdrawals: u64,
}

impl Offers {
    /// An RTS says where its data lies, and it can lie there.
    pub fn note(&mut self, offer: u64) {
        self.open.insert(offer, false);
    }

    /// The RTS has its answer: its data is not read from where it lies any more.
    pub fn answer(&mut self, offer: u64) {
        if !self.open.is_empty() {
            self.open.remove(&offer);
        }
    }

    /// Whether the data may be read from where it lies: the RTS said so, and was not withdrawn.
    pub fn is_open(&self, offer: u64) -> bool {
        self.open.get(&offer) == Some(&false)
    }

    /// The sender has taken the memory of an RTS back.
    pub fn withdraw(&mut self, offer: u64) {
        self.withdrawals += 1;
        // One that is not open has been answered: the two envelopes have crossed.
        if let Some(withdrawn) = self.open.get_mut(&offer) {
            *withdrawn = true;
        }
    }

    /// Begins to read memory of the sender, which waits for [`Offers::end`] before it takes any of it
    /// back; false while the envelope of a withdrawal has not come.
    ///
    /// # Errors
    /// The sender broke the protocol.
    pub fn begin(&self, area: &Area, rank: usize) -> Result<bool> {
        withdrawal::begin(area, self.withdrawals).map_err(|v| broken(rank, v))
    }

    /// Nothing of the sender is being read, until the next [`Offers::begin`].
    pub fn end(&self, area: &Area) {
        withdrawal::end(area);
    }
}
