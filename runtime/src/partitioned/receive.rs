//! The receiving side of a partitioned operation: a receive for each partition of the sender, from the moment at which
//! the sender's hello (`hello.rs`) has come.
//!
//! `table.rs` calls these functions under the endpoint's lock. Threads read from `marks.rs` what has arrived.

use super::hello::{Hello, Letter};
use super::marks::{Arrivals, words};
use super::round::{End, HELLO, IGNORED, Round, commit, lost};
use crate::endpoint::engine::MessageEngine;
use crate::endpoint::requests::Owner;
use crate::message::label::Sender;
use crate::message::payload::Posting;
use crate::message::typecheck::{self, UNKNOWN};
use crate::message::{Operation, Status, Tag};
use crate::settings::Settings;
use crate::tools::counting::count_arrived;
use crate::{Error, ErrorKind, Plan, Result};
use std::ops::Range;
use std::sync::Arc;
use typepack_engine::Elements;
use typepack_engine::reserve::insist;

/// If the two sides do not fit, the receive takes the messages of at most this number of partitions. A hello with more
/// may be made up.
const MOST_REFUSED: u32 = 1 << 20;

/// What a receive has learnt from the hello of its send.
#[derive(Debug)]
pub(super) struct Matched {
    pub hello: Hello,
    /// For each partition of the sender, the request of its receive, or 0. Empty before the first round that receives
    /// data.
    pub pending: Box<[u64]>,
    /// Why no round can receive the data. Then the receives take the messages and discard the data.
    pub wrong: Option<Error>,
}

/// A receive.
#[derive(Debug)]
pub(super) struct ReceiveSide {
    pub end: End,
    pub arrivals: Arc<Arrivals>,
    /// Number of packed bytes of all partitions.
    pub total: u64,
    /// The memory into which the hello is received.
    pub hello: Letter,
    pub matched: Option<Matched>,
    /// For each partition of the receive, the number of partitions of the sender that it waits for.
    pub missing: Box<[u32]>,
    pub round: Round,
    /// Whether the round takes the messages and discards the data, because it has failed.
    pub discards: bool,
    /// The place of the other end in the list of what this process owes (`table.rs`).
    pub owed: u32,
    /// Number of rounds that were abandoned before the hello came, and whose messages this rank still has to take.
    pub abandoned: u32,
    /// True if the program has freed the receive. It still takes its hello, which no other receive may get.
    pub freed: bool,
}

impl ReceiveSide {
    /// Takes what the hello says. The caller then posts the receives if a round runs.
    pub fn met(&mut self, result: Result<Status>) {
        let from = self.end.peer.index();
        let read = result.and_then(|status| {
            if status.bytes != Letter::BYTES {
                let detail = format!(
                    "rank {from} has described a partitioned send by {} bytes",
                    status.bytes
                );
                return Err(Error::new(ErrorKind::Other, "message", detail));
            }
            Hello::read(self.hello.words(), from)
        });
        let (mut hello, mut wrong) = match read {
            Ok(hello) => (hello, None),
            Err(error) => {
                (Hello { partitions: 0, bytes: 0, context: 0, types: UNKNOWN }, Some(error))
            }
        };
        let status = Status { source: from, tag: self.end.tag, bytes: self.total };
        let (sent, total) = (u64::from(hello.partitions) * hello.bytes, self.total);
        if wrong.is_none() && sent != total {
            let detail = format!(
                "the partitioned send of rank {from} with tag {} has {} partitions of {} bytes, {sent} bytes in all; \
                 the receive has {total} bytes in all",
                self.end.tag, hello.partitions, hello.bytes,
            );
            wrong = Some(Error::new(ErrorKind::Truncated, "count", detail).of_message(status));
        }
        let check = Settings::get().is_ok_and(|settings| settings.check_types);
        let layout = self.end.elements.view();
        let wrong =
            wrong.or_else(|| typecheck::refusal(check, &layout, total, status, hello.types));
        if wrong.is_some() && hello.partitions > MOST_REFUSED {
            hello.partitions = 0;
        }
        self.matched = Some(Matched { hello, pending: Box::default(), wrong });
    }

    /// Posts the receives of a round that has begun, if the sender is known.
    pub fn post(&mut self, engine: &mut MessageEngine, owner: Owner) {
        let Some(matched) = &mut self.matched else { return };
        let Hello { partitions, bytes, .. } = matched.hello;
        self.round.left = partitions;
        self.round.failure.clone_from(&matched.wrong);
        if matched.wrong.is_none() && matched.pending.len() < partitions as usize {
            match insist(|| words(partitions)) {
                Ok(pending) => matched.pending = pending,
                // The next round tries again.
                Err(error) => self.round.failure = Some(error),
            }
        }
        self.discards = self.round.failure.is_some();
        if let Some(whole) = self.partition_bytes() {
            for (at, missing) in (0..).zip(&mut self.missing) {
                let last = ((at + 1) * whole - 1) / bytes.max(1);
                *missing = (last - at * whole / bytes.max(1) + 1) as u32;
            }
        }
        // If there is no room, the receives below fail one by one.
        let _room = insist(|| engine.requests().make_room_for(partitions as usize));
        for partition in 0..partitions {
            match self.receive(engine, partition) {
                Ok(Operation::Done(status)) => self.over(partition, Ok(status)),
                Ok(Operation::Pending(id)) => {
                    let token = owner.token | u64::from(partition);
                    if let Some(matched) = &mut self.matched
                        && let Some(place) = matched.pending.get_mut(partition as usize)
                    {
                        *place = id;
                    }
                    engine.requests().own(id, Owner { token, ..owner });
                }
                Err(error) => {
                    if let (Some(matched), None) = (&mut self.matched, error.received()) {
                        // The message stays, and a later round would take it for its own.
                        matched.wrong.get_or_insert_with(|| error.clone());
                        self.round.failure.get_or_insert_with(|| error.clone());
                        self.discards = true;
                    }
                    self.over(partition, Err(error));
                }
            }
        }
        self.end(engine);
    }

    /// Returns the number of packed bytes of a partition of the receive; `None` if it has none, or if the round discards
    /// the data.
    fn partition_bytes(&self) -> Option<u64> {
        let partitions = u64::from(self.end.partitions);
        self.total.checked_div(partitions).filter(|bytes| *bytes > 0 && !self.discards)
    }

    /// Starts the receive of one of the sender's partitions.
    fn receive(&mut self, engine: &mut MessageEngine, partition: u32) -> Result<Operation> {
        let Some(matched) = &self.matched else { return Err(lost("a match")) };
        let Hello { bytes, context, .. } = matched.hello;
        let from = Sender::Process(self.end.peer);
        let tag = Tag::Is(partition as i32);
        let range = u64::from(partition) * bytes..(u64::from(partition) + 1) * bytes;
        commit(|plan| {
            let nothing = Elements { origin: std::ptr::null_mut(), plan, count: 0 };
            let (layout, capacity, first) = match elements_of(&self.end.elements, plan, &range) {
                _ if self.discards || bytes == 0 => (nothing, 0, None),
                Some(elements) => (elements, bytes, None),
                // The range cuts an element that is not one run of memory.
                None => (self.end.elements.view(), bytes, Some(range.start)),
            };
            let posting = Posting { layout, capacity, context, source: from, tag };
            // SAFETY: the bytes are a part of the elements, or none. The elements are writable until the operation is
            // complete or detached, and nobody else uses them before they have arrived (who started the round
            // guarantees that). The range lies within the elements, because the bytes of all partitions are those of
            // the elements (`met`).
            insist(|| unsafe { engine.receive_from(&posting, first) })
        })
    }

    /// Handles the end of the receive of one of the sender's partitions.
    pub fn over(&mut self, partition: u32, result: Result<Status>) {
        self.round.left -= 1;
        let Some(matched) = &mut self.matched else { return };
        if let Some(place) = matched.pending.get_mut(partition as usize) {
            *place = 0;
        }
        if self.discards {
            return;
        }
        let bytes = matched.hello.bytes;
        let range = u64::from(partition) * bytes..(u64::from(partition) + 1) * bytes;
        match result {
            Ok(status) if status.bytes == bytes => {}
            Ok(status) => {
                let detail = format!(
                    "partition {partition} of rank {} has {} bytes instead of {bytes}",
                    status.source, status.bytes
                );
                self.round.failure.get_or_insert(Error::new(ErrorKind::Other, "message", detail));
                return;
            }
            Err(error) => {
                self.round.failure.get_or_insert(error);
                return;
            }
        }
        let Some(whole) = self.partition_bytes() else { return };
        for at in (range.start / whole)..range.end.div_ceil(whole) {
            let missing = &mut self.missing[at as usize];
            *missing -= 1;
            if *missing == 0 {
                self.arrivals.report(at as u32..at as u32 + 1);
                count_arrived(1);
            }
        }
    }

    /// Ends the round if all partitions are over.
    pub fn end(&mut self, engine: &mut MessageEngine) {
        if self.matched.is_some() && self.round.left == 0 {
            if self.total == 0 && self.round.request.is_some() && self.round.failure.is_none() {
                count_arrived(self.end.partitions);
            }
            // Partitions without bytes arrive last, and a loop that asks for a partition that has failed must end.
            self.arrivals.report_all();
        }
        let status = Status { source: self.end.peer.index(), tag: self.end.tag, bytes: self.total };
        if self.matched.is_some() {
            self.round.end(engine, status);
        }
    }

    /// Abandons the round, whose requests have the owner `owner`. Returns the number of receives that still have to take
    /// their messages. They get the owner `discard`.
    #[cold]
    pub fn abandon(&mut self, engine: &mut MessageEngine, owner: Owner, discard: Owner) -> u64 {
        let Some(round) = self.round.request.take() else { return 0 };
        // A loop that asks for a partition must end.
        self.arrivals.report_all();
        let mut owed = 0;
        if let Some(matched) = &mut self.matched {
            // No result of this round may count for a later one.
            let index = owner.token >> 32;
            engine.requests().disown(owner.source, |token, is_over| {
                if token >> 32 != index || token as u32 == HELLO {
                    return None;
                }
                owed += u64::from(!is_over);
                Some(if is_over { IGNORED } else { discard.token })
            });
            for id in matched.pending.iter_mut().map(std::mem::take).filter(|id| *id != 0) {
                // A receive whose message is on its way leaves the memory. The endpoint itself waits for its end.
                if engine.requests().is_in_flight(id) && !engine.discard_receive(id) {
                    // First the request belongs to nobody, because the detach may complete it.
                    engine.requests().orphan(id);
                    engine.detach(id);
                    owed -= 1;
                }
            }
        } else {
            self.abandoned += 1;
        }
        engine.requests().cancel(round);
        owed
    }

    /// Takes the messages of rounds that were abandoned before the hello came. Returns the number of receives that still
    /// have to take theirs. They get the owner `discard`.
    #[cold]
    pub fn take_abandoned(&mut self, engine: &mut MessageEngine, discard: Owner) -> u64 {
        let partitions = self.matched.as_ref().map_or(0, |matched| matched.hello.partitions);
        let mut owed = 0;
        self.discards = true;
        for _ in 0..std::mem::take(&mut self.abandoned) {
            for partition in 0..partitions {
                if let Ok(Operation::Pending(id)) = self.receive(engine, partition) {
                    engine.requests().own(id, discard);
                    owed += 1;
                }
            }
        }
        owed
    }
}

/// Returns the elements with these packed bytes; `None` if they are not whole elements and not one run of memory.
/// `plan` is the type of one byte.
fn elements_of<'a>(
    elements: &'a Elements<Plan>,
    plan: &'a Plan,
    range: &Range<u64>,
) -> Option<Elements<&'a Plan>> {
    let whole = elements.plan.element_bytes();
    if whole == 0 {
        return Some(elements.view().slice(0..0));
    }
    if range.start.is_multiple_of(whole) && range.end.is_multiple_of(whole) {
        return Some(elements.view().slice(range.start / whole..range.end / whole));
    }
    let run = elements.run()?.wrapping_add(range.start as usize);
    Some(Elements::new(run, plan, range.end - range.start))
}
