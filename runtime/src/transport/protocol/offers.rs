//! The messages whose data this rank may read in place. The table has an entry for each RTS (the envelope
//! that announces a long message) that names the place of its data and whose place this rank has checked,
//! until this rank has answered the RTS.
//!
//! `link.rs` keeps one table for each sender. The protocols that copy only once (`heap.rs`, `private.rs`)
//! ask the table before they copy. They read the sender's memory only between [`Offers::begin`] and
//! [`Offers::end`], so that a sender can take its memory back (`shm/withdrawal.rs`).

use crate::Result;
use crate::shm::withdrawal;
use crate::transport::link::area::Area;
use crate::transport::link::failure::broken;
use std::collections::HashMap;

/// The table for one sender.
#[derive(Debug, Default)]
pub struct Offers {
    /// Every unanswered RTS whose place this rank has checked ([`note`](Self::note)), by the sender's request
    /// id. The value is true if the sender has withdrawn the RTS.
    open: HashMap<u64, bool>,
    /// Number of Withdraw envelopes that have arrived.
    withdrawals: u64,
}

impl Offers {
    /// Adds an RTS whose place this rank has checked.
    pub fn note(&mut self, offer: u64) {
        self.open.insert(offer, false);
    }

    /// Removes an RTS that this rank has answered. From then on, this rank does not read the data of the
    /// RTS in place.
    pub fn answer(&mut self, offer: u64) {
        if !self.open.is_empty() {
            self.open.remove(&offer);
        }
    }

    /// Returns whether this rank may read the data of an RTS in place: this rank has checked the place, has not
    /// answered the RTS, and the sender has not withdrawn it.
    pub fn is_open(&self, offer: u64) -> bool {
        self.open.get(&offer) == Some(&false)
    }

    /// Records that the sender has taken the memory of an RTS back.
    pub fn withdraw(&mut self, offer: u64) {
        self.withdrawals += 1;
        // If the RTS is not in the table, this rank has already answered it, and the Withdraw and the answer
        // have crossed, or this rank has ignored its place (`Known::blind`).
        if let Some(withdrawn) = self.open.get_mut(&offer) {
            *withdrawn = true;
        }
    }

    /// Tells the sender that this rank begins to read the sender's memory. The sender then waits for
    /// [`Offers::end`] before it takes any of this memory back. Returns false if the sender has withdrawn
    /// a message and its Withdraw has not arrived here yet; then this rank must not read.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the sender broke the protocol.
    pub fn begin(&self, area: &Area, rank: usize) -> Result<bool> {
        withdrawal::begin(area, self.withdrawals).map_err(|v| broken(rank, v))
    }

    /// Tells the sender that the read announced by [`Offers::begin`] is over.
    pub fn end(&self, area: &Area) {
        withdrawal::end(area);
    }
}
