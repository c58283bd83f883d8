//! The messages whose data this rank may read in place: each RTS with a place, until it is answered.
//!
//! `link.rs` keeps one table for each sender. The protocols of single copies (`heap.rs`, `private.rs`)
//! ask the table before they copy, and read only between [`Offers::begin`] and [`Offers::end`], so that a
//! sender can take its memory back (`shm/withdrawal.rs`).

use super::area::Area;
use super::failure::broken;
use crate::Result;
use crate::shm::withdrawal;
use std::collections::HashMap;

/// The table for one sender.
#[derive(Debug, Default)]
pub struct Offers {
    /// Each unanswered RTS with a place, and whether its sender has withdrawn it.
    open: HashMap<u64, bool>,
    /// Number of Withdraw envelopes that have arrived.
    withdrawals: u64,
}

impl Offers {
    /// Adds an RTS whose place was checked.
    pub fn note(&mut self, offer: u64) {
        self.open.insert(offer, false);
    }

    /// Removes an RTS that this rank has answered. Afterwards this rank does not read the data of the RTS
    /// in place.
    pub fn answer(&mut self, offer: u64) {
        if !self.open.is_empty() {
            self.open.remove(&offer);
        }
    }

    /// Returns whether this rank may read the data in place: the RTS has a place and is not withdrawn.
    pub fn is_open(&self, offer: u64) -> bool {
        self.open.get(&offer) == Some(&false)
    }

    /// Records that the sender has taken the memory of an RTS back.
    pub fn withdraw(&mut self, offer: u64) {
        self.withdrawals += 1;
        // An RTS that is not in the table has been answered: the Withdraw and the answer have crossed.
        if let Some(withdrawn) = self.open.get_mut(&offer) {
            *withdrawn = true;
        }
    }

    /// Begins to read memory of the sender. The sender waits for [`Offers::end`] before it takes any of the
    /// memory back. Returns false if the sender has withdrawn a message and the Withdraw has not arrived.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if the sender broke the protocol.
    pub fn begin(&self, area: &Area, rank: usize) -> Result<bool> {
        withdrawal::begin(area, self.withdrawals).map_err(|v| broken(rank, v))
    }

    /// Ends the reading that [`Offers::begin`] began.
    pub fn end(&self, area: &Area) {
        withdrawal::end(area);
    }
}
