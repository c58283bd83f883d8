//! The sending side of a partitioned operation: a message for each partition that has become ready.
//!
//! `table.rs` calls these functions under the endpoint's lock, with the partitions that threads have marked (`marks.rs`).

use super::marks::Marks;
use super::round::{End, IGNORED, Round, commit, label};
use crate::Result;
use crate::endpoint::engine::MessageEngine;
use crate::endpoint::requests::Owner;
use crate::message::label::Label;
use crate::message::payload::SendMode;
use crate::message::typecheck::VOID;
use crate::message::{Operation, Status};
use crate::tools::counting::count_ready;
use std::sync::Arc;
use typepack_engine::Elements;
use typepack_engine::reserve::insist;

/// A send.
#[derive(Debug)]
pub(super) struct SendSide {
    pub end: End,
    pub marks: Arc<Marks>,
    /// The context of the partitions' messages.
    pub context: u64,
    /// Number of packed bytes of a partition.
    pub bytes: u64,
    /// For each partition, the request of its message in flight, or 0.
    pub pending: Box<[u64]>,
    pub round: Round,
}

impl SendSide {
    /// Sends the message of a partition that is ready.
    pub fn send(&mut self, engine: &mut MessageEngine, owner: Owner, partition: u32) {
        if self.round.request.is_none() {
            // The round has been abandoned, and its partitions have been sent as void messages.
            return;
        }
        count_ready(self.bytes);
        if self.bytes == 0 && self.round.left > 1 {
            self.round.left -= 1;
            return;
        }
        let partition = if self.bytes == 0 { 0 } else { partition };
        // The elements of all partitions have been counted, so this product does not overflow.
        let count = self.end.elements.count / u64::from(self.end.partitions);
        let first = u64::from(partition) * count;
        let layout = self.end.elements.view().slice(first..first + count);
        let label = label(self.context, partition as i32, self.bytes);
        // SAFETY: who started the round guarantees that the elements of a partition that is ready are readable and
        // unchanged until the operation is complete or detached. The message is over or detached before that.
        // `bytes` is the packed size of the elements of a partition.
        match unsafe { engine.send(&layout, label, self.end.peer, SendMode::Standard) } {
            Ok(Operation::Done(_)) => self.round.left -= 1,
            Ok(Operation::Pending(id)) => {
                let token = owner.token | u64::from(partition);
                engine.requests().own(id, Owner { token, ..owner });
                self.pending[partition as usize] = id;
            }
            Err(error) => {
                self.round.failure.get_or_insert(error);
                self.round.left -= 1;
                self.send_void(engine, partition);
            }
        }
    }

    /// Sends a void message in place of a partition, so that the receiver does not wait for it.
    #[cold]
    fn send_void(&self, engine: &mut MessageEngine, partition: u32) {
        let label = Label { types: VOID, ..label(self.context, partition as i32, 0) };
        let sent = insist(|| {
            commit(|plan| {
                let layout = Elements { origin: std::ptr::null_mut(), plan, count: 0 };
                // SAFETY: the layout has no elements, so the send touches no memory.
                unsafe { engine.send(&layout, label, self.end.peer, SendMode::Standard) }
            })
        });
        // If there is no memory even for this message, the job cannot go on.
        if let Ok(Operation::Pending(id)) = sent {
            engine.requests().orphan(id);
        }
    }

    /// Ends the round if all partitions are over.
    pub fn end(&mut self, engine: &mut MessageEngine) {
        let bytes = self.bytes * u64::from(self.end.partitions);
        let status = Status { source: self.end.peer.index(), tag: self.end.tag, bytes };
        self.round.end(engine, status);
    }

    pub fn completed(
        &mut self,
        engine: &mut MessageEngine,
        partition: u32,
        result: Result<Status>,
    ) {
        self.pending[partition as usize] = 0;
        if let Err(error) = result {
            self.round.failure.get_or_insert(error);
        }
        self.round.left -= 1;
        self.end(engine);
    }

    #[cold]
    pub fn abandon(&mut self, engine: &mut MessageEngine, owner: Owner) {
        let Some(round) = self.round.request.take() else { return };
        // No result of this round may count for a later one: neither those that are there already, nor those of
        // messages that a detach below completes.
        let index = owner.token >> 32;
        let ignored = |token: u64, _| (token >> 32 == index).then_some(IGNORED);
        engine.requests().disown(owner.source, ignored);
        for id in self.pending.iter_mut().map(std::mem::take).filter(|id| *id != 0) {
            engine.requests().orphan(id);
            engine.detach(id);
        }
        // What is in the list has not been sent.
        let marks = self.marks.clone();
        let mut rest = if self.bytes == 0 { 1 } else { u32::MAX };
        let mut send_void = |partition: u32| {
            if rest > 0 {
                self.send_void(engine, if self.bytes == 0 { 0 } else { partition });
                rest -= 1;
            }
        };
        marks.take(&mut send_void);
        marks.take_rest(&mut send_void);
        engine.requests().cancel(round);
    }
}
