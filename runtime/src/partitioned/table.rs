//! All partitioned operations of this process. Their table is a source of progress (`endpoint/sources.rs`).
//!
//! Each partition of a send is one message of the endpoint, with a context that only this send uses, and the number of
//! the partition as its tag. The receiver learns the context and the sender's partitions from the sender's hello
//! (`hello.rs`). From then on, it posts one receive for each partition of the sender when a round starts, for the bytes
//! of the receive that this partition covers. So partitions travel and arrive independently of each other, a sender may
//! be a round ahead of its receiver, and nothing has to be agreed on again.
//!
//! Invariant: the requests of a round are over, or belong to nobody, before the next round of the same operation begins.

use super::hello::{Hello, Letter};
use super::marks::{Arrivals, Marks, words};
use crate::commit::bytes;
use crate::endpoint::engine::MessageEngine;
use crate::endpoint::progress::Awaited;
use crate::endpoint::requests::{Owner, Request};
use crate::endpoint::sources::Source as ProgressSource;
use crate::message::label::{Label, SPACES, Sender};
use crate::message::payload::{Posting, SendMode};
use crate::message::typecheck::{self, UNKNOWN, VOID};
use crate::message::{Operation, Status, Tag};
use crate::process::Process;
use crate::settings::Settings;
use crate::shm::waiting::Kind;
use crate::{Error, ErrorKind, Plan, Result};
use std::ops::Range;
use std::sync::Arc;
use typepack_engine::Elements;
use typepack_engine::reserve::{Grow, insist};

/// Stands in a token where the number of a partition stands otherwise: the hello has arrived.
const HELLO: u32 = u32::MAX;

/// Stands in a token where the index of an operation stands otherwise: a message of an abandoned round.
const ABANDONED: u32 = u32::MAX;

/// The token of a result that nobody counts.
const IGNORED: u64 = u64::MAX;

/// If the two sides do not fit, the receive takes the messages of at most this number of partitions. A hello with more
/// may be made up.
const MOST_REFUSED: u32 = 1 << 20;

/// What both ends of an operation know from the beginning.
#[derive(Clone, Debug)]
pub(super) struct End {
    /// All elements of all partitions.
    pub elements: Elements<Plan>,
    /// Number of partitions of this end.
    pub partitions: u32,
    /// The context of the hello.
    pub context: u64,
    /// The program's tag.
    pub tag: i32,
    /// The other end.
    pub peer: Process,
}

impl End {
    /// Returns the number of packed bytes of all partitions.
    fn total(&self) -> Result<u64> {
        Ok(self.elements.bytes()?)
    }
}

/// A send.
#[derive(Debug)]
struct Outgoing {
    end: End,
    marks: Arc<Marks>,
    /// The context of the partitions' messages.
    context: u64,
    /// Number of packed bytes of a partition.
    bytes: u64,
    /// For each partition, the request of its message in flight, or 0.
    pending: Box<[u64]>,
    round: Round,
}

/// A round of an operation.
#[derive(Debug, Default)]
struct Round {
    /// The request of the round; `None` if no round runs.
    request: Option<u64>,
    /// Number of the sender's partitions that are not over.
    left: u32,
    /// The first failure of a partition.
    failure: Option<Error>,
}

impl Round {
    /// Begins a round with the request `request`.
    fn begin(&mut self, request: u64, partitions: u32) {
        *self = Self { request: Some(request), left: partitions, failure: None };
    }

    /// Ends the round if no partition is left.
    fn end(&mut self, engine: &mut MessageEngine, status: Status) -> bool {
        if self.left > 0 {
            return false;
        }
        let Some(id) = self.request.take() else { return false };
        engine.requests().complete(id, self.failure.take().map_or(Ok(status), Err));
        true
    }
}

/// What a receive has learnt from the hello of its send.
#[derive(Debug)]
struct Matched {
    hello: Hello,
    /// For each partition of the sender, the request of its receive, or 0. Empty before the first round that receives
    /// data.
    pending: Box<[u64]>,
    /// Why no round can receive the data. Then the receives take the messages and discard the data.
    wrong: Option<Error>,
}

/// A receive.
#[derive(Debug)]
struct Incoming {
    end: End,
    arrivals: Arc<Arrivals>,
    /// Number of packed bytes of all partitions.
    total: u64,
    /// The memory into which the hello is received.
    hello: Letter,
    matched: Option<Matched>,
    /// For each partition of the receive, the number of partitions of the sender that it waits for.
    missing: Box<[u32]>,
    round: Round,
    /// Whether the round takes the messages and discards the data, because it has failed.
    discards: bool,
    /// The place of the other end in [`Partitions::owed`].
    owed: u32,
    /// Number of rounds that were abandoned before the hello came, and whose messages this rank still has to take.
    abandoned: u32,
    /// True if the program has freed the receive. It still takes its hello, which no other receive may get.
    freed: bool,
}

#[derive(Debug)]
enum Entry {
    Free,
    Send(Outgoing),
    Receive(Incoming),
}

/// The partitioned operations of this process.
#[derive(Debug)]
pub(super) struct Partitions {
    /// The number of this source of progress.
    number: u32,
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// For each process from which this one has prepared a receive, the number of messages of abandoned rounds that
    /// this process still has to take.
    owed: Vec<(Process, u64)>,
}

impl Partitions {
    pub fn new(number: u32) -> Self {
        Self { number, entries: Vec::new(), free: Vec::new(), owed: Vec::new() }
    }

    fn add(&mut self, entry: Entry) -> Result<u32> {
        if let Some(index) = self.free.pop() {
            self.entries[index as usize] = entry;
            return Ok(index);
        }
        let room = self.entries.grow(1).and_then(|()| self.free.grow(self.entries.len() + 1));
        room.map_err(|_| no_memory("another partitioned operation"))?;
        self.entries.push(entry);
        Ok(self.entries.len() as u32 - 1)
    }

    fn remove(&mut self, index: u32) {
        self.entries[index as usize] = Entry::Free;
        self.free.push(index);
    }

    fn owner(&self, index: u32, partition: u32) -> Owner {
        Owner { source: self.number, token: u64::from(index) << 32 | u64::from(partition) }
    }

    /// Returns the place of a process in `owed`.
    fn owed_to(&mut self, peer: Process) -> Result<u32> {
        let place = self.owed.iter().position(|(process, _)| *process == peer);
        if place.is_none() {
            self.owed.grow(1).map_err(|_| no_memory("another partitioned operation"))?;
            self.owed.push((peer, 0));
        }
        Ok(place.unwrap_or(self.owed.len() - 1) as u32)
    }

    /// Adds a send, and sends its hello. `context` is a context that nobody else uses.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory ran out, and the errors of the endpoint.
    pub fn prepare_send(
        &mut self,
        engine: &mut MessageEngine,
        end: End,
        context: u64,
    ) -> Result<(u32, Arc<Marks>)> {
        let marks = Arc::new(Marks::new(end.partitions)?);
        let bytes = end.total()?.checked_div(u64::from(end.partitions)).unwrap_or(0);
        let types = match Settings::get()?.check_types {
            true => typecheck::of_message(&end.elements.plan, end.elements.count),
            false => UNKNOWN,
        };
        // One message stands for all partitions if they have no bytes.
        let partitions = if bytes == 0 { end.partitions.min(1) } else { end.partitions };
        let hello = Hello { partitions, bytes, context, types }.words();
        let (to, label) = (end.peer, label(end.context, end.tag, size_of_val(&hello) as u64));
        let pending = words(end.partitions)?;
        let send = Outgoing {
            end,
            marks: marks.clone(),
            context,
            bytes,
            pending,
            round: Round::default(),
        };
        let index = self.add(Entry::Send(send))?;
        let sent = commit(|plan| {
            let layout = Elements::new(hello.as_ptr(), plan, label.bytes);
            // SAFETY: the layout has the bytes of the local array, and the label their number. In buffered mode, the
            // send does not use them after the call.
            unsafe { engine.send(&layout, label, to, SendMode::Buffered(None)) }
        });
        match sent {
            Ok(Operation::Pending(id)) => engine.requests().orphan(id),
            Ok(Operation::Done(_)) => {}
            Err(error) => {
                self.remove(index);
                return Err(error);
            }
        }
        Ok((index, marks))
    }

    /// Adds a receive, and posts the receive of the hello.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory ran out, and the errors of the endpoint.
    pub fn prepare_receive(
        &mut self,
        engine: &mut MessageEngine,
        end: End,
    ) -> Result<(u32, Arc<Arrivals>)> {
        let arrivals = Arc::new(Arrivals::new(end.partitions)?);
        let (total, from) = (end.total()?, end.peer);
        let (context, tag) = (end.context, Tag::Is(end.tag));
        let receive = Incoming {
            missing: words(end.partitions)?,
            owed: self.owed_to(from)?,
            end,
            arrivals: arrivals.clone(),
            total,
            hello: Letter::new(),
            matched: None,
            round: Round::default(),
            discards: false,
            abandoned: 0,
            freed: false,
        };
        let index = self.add(Entry::Receive(receive))?;
        let Entry::Receive(receive) = &mut self.entries[index as usize] else {
            return Err(lost("a receive"));
        };
        let hello = receive.hello.start();
        let posted = commit(|plan| {
            let layout = Elements::new(hello, plan, Letter::BYTES);
            let posting = Posting::new(layout, context, Sender::Process(from), tag)?;
            // SAFETY: the words of `hello` are memory of their own, which is neither freed nor read before the receive
            // is over: the entry stays until then (`free`). The capacity is their size (`Posting::new`).
            unsafe { engine.receive(&posting) }
        });
        match posted {
            Ok(Operation::Pending(id)) => engine.requests().own(id, self.owner(index, HELLO)),
            Ok(Operation::Done(status)) => receive.met(Ok(status)),
            Err(error) => {
                self.remove(index);
                return Err(error);
            }
        }
        Ok((index, arrivals))
    }

    /// Starts a round.
    ///
    /// # Safety
    ///
    /// - The elements of a receive are writable until the operation is complete or detached, and nobody else uses those
    ///   of a partition before it has arrived.
    /// - The elements of a partition of a send are readable and unchanged from the moment at which it is marked ready
    ///   until the operation is complete or detached.
    ///
    /// # Errors
    /// Returns `ErrorKind::Request` if the round before is not over, and `ErrorKind::NoMemory` if memory ran out.
    pub unsafe fn start(&mut self, engine: &mut MessageEngine, index: u32) -> Result<Operation> {
        engine.requests().make_room()?;
        let owner = self.owner(index, 0);
        let round = match &mut self.entries[index as usize] {
            Entry::Send(send) => &mut send.round,
            Entry::Receive(receive) => &mut receive.round,
            Entry::Free => return Err(lost("an operation")),
        };
        if round.request.is_some() {
            let detail = "the operation has been started and is not complete";
            return Err(Error::new(ErrorKind::Request, "request", detail));
        }
        let id = engine.requests().open(Request::Source(owner));
        match &mut self.entries[index as usize] {
            Entry::Send(send) => {
                send.marks.begin();
                send.round.begin(id, send.end.partitions);
                send.end(engine);
            }
            Entry::Receive(receive) => {
                receive.arrivals.begin();
                receive.round.begin(id, 0);
                receive.post(engine, owner);
            }
            Entry::Free => {}
        }
        // The round may be over. Its result, which may be an error, is for the call that waits for it: a start does not
        // fail because the other side does not fit.
        Ok(Operation::Pending(id))
    }

    /// Sends the partitions of a send that threads have marked ready.
    pub fn send_ready(&mut self, engine: &mut MessageEngine, index: u32) {
        let owner = self.owner(index, 0);
        let Entry::Send(send) = &mut self.entries[index as usize] else { return };
        let marks = send.marks.clone();
        marks.take(|partition| send.send(engine, owner, partition));
        send.end(engine);
    }

    /// Detaches the running round of an operation from its memory. The other process still gets a message for each
    /// partition, which may be void, and this one takes the messages that the other one sends.
    fn abandon(&mut self, engine: &mut MessageEngine, index: u32) {
        let (owner, source) = (self.owner(index, 0), self.number);
        match &mut self.entries[index as usize] {
            Entry::Send(send) => send.abandon(engine, owner),
            Entry::Receive(receive) => {
                let place = receive.owed;
                let discard = Owner { source, token: of_abandoned(place) };
                self.owed[place as usize].1 += receive.abandon(engine, owner, discard);
            }
            Entry::Free => {}
        }
    }

    /// Frees an operation. If a round runs, it is abandoned.
    pub fn free(&mut self, engine: &mut MessageEngine, index: u32) {
        self.abandon(engine, index);
        match &mut self.entries[index as usize] {
            // The next receive must not get the hello of this one.
            Entry::Receive(receive) if receive.matched.is_none() => receive.freed = true,
            _ => self.remove(index),
        }
    }
}

impl Outgoing {
    /// Sends the message of a partition that is ready.
    fn send(&mut self, engine: &mut MessageEngine, owner: Owner, partition: u32) {
        if self.round.request.is_none() {
            // The round has been abandoned, and its partitions have been sent as void messages.
            return;
        }
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
    fn end(&mut self, engine: &mut MessageEngine) {
        let bytes = self.bytes * u64::from(self.end.partitions);
        let status = Status { source: self.end.peer.index(), tag: self.end.tag, bytes };
        self.round.end(engine, status);
    }

    fn completed(&mut self, engine: &mut MessageEngine, partition: u32, result: Result<Status>) {
        self.pending[partition as usize] = 0;
        if let Err(error) = result {
            self.round.failure.get_or_insert(error);
        }
        self.round.left -= 1;
        self.end(engine);
    }

    #[cold]
    fn abandon(&mut self, engine: &mut MessageEngine, owner: Owner) {
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

impl Incoming {
    /// Takes what the hello says. The caller then posts the receives if a round runs.
    fn met(&mut self, result: Result<Status>) {
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
    fn post(&mut self, engine: &mut MessageEngine, owner: Owner) {
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
    fn over(&mut self, partition: u32, result: Result<Status>) {
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
            }
        }
    }

    /// Ends the round if all partitions are over.
    fn end(&mut self, engine: &mut MessageEngine) {
        if self.matched.is_some() && self.round.left == 0 {
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
    fn abandon(&mut self, engine: &mut MessageEngine, owner: Owner, discard: Owner) -> u64 {
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
    fn take_abandoned(&mut self, engine: &mut MessageEngine, discard: Owner) -> u64 {
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

/// Calls `call` with the plan of the type of one byte.
fn commit<R>(call: impl FnOnce(&Plan) -> Result<R>) -> Result<R> {
    call(bytes()?)
}

/// Returns the token of a receive that takes a message of an abandoned round from the process at `place` in
/// [`Partitions::owed`].
fn of_abandoned(place: u32) -> u64 {
    u64::from(ABANDONED) << 32 | u64::from(place)
}

fn label(context: u64, tag: i32, bytes: u64) -> Label {
    Label { context, tag, bytes, types: UNKNOWN }
}

#[cold]
fn no_memory(what: &str) -> Error {
    Error::new(ErrorKind::NoMemory, "memory", format!("there is no memory for {what}"))
}

#[cold]
fn lost(what: &str) -> Error {
    Error::new(ErrorKind::Internal, "partitions", format!("{what} does not exist"))
}

impl ProgressSource for Partitions {
    fn completed(&mut self, engine: &mut MessageEngine, token: u64, result: Result<Status>) {
        let (index, partition) = ((token >> 32) as u32, token as u32);
        let (owner, source) = (self.owner(index, 0), self.number);
        let Some(entry) = self.entries.get_mut(index as usize) else {
            // A message of an abandoned round, or the result `IGNORED`.
            if let Some((_, owed)) = self.owed.get_mut(partition as usize) {
                *owed -= 1;
            }
            return;
        };
        match entry {
            Entry::Send(send) => send.completed(engine, partition, result),
            Entry::Receive(receive) if partition != HELLO => {
                receive.over(partition, result);
                receive.end(engine);
            }
            Entry::Receive(receive) => {
                receive.met(result);
                if receive.abandoned > 0 {
                    let place = receive.owed;
                    let discard = Owner { source, token: of_abandoned(place) };
                    self.owed[place as usize].1 += receive.take_abandoned(engine, discard);
                }
                if receive.freed {
                    self.remove(index);
                } else if receive.round.request.is_some() {
                    receive.post(engine, owner);
                }
            }
            Entry::Free => {}
        }
    }

    fn detach(&mut self, engine: &mut MessageEngine, token: u64) -> bool {
        self.abandon(engine, (token >> 32) as u32);
        true
    }

    fn awaited(&self, token: u64) -> Option<Awaited> {
        let (end, call, kind) = match self.entries.get((token >> 32) as usize)? {
            Entry::Send(send) => (&send.end, "partitioned send", Kind::Send),
            Entry::Receive(receive) => (&receive.end, "partitioned receive", Kind::Receive),
            Entry::Free => return None,
        };
        let (context, peer) = (end.context, Some(end.peer.index()));
        Some(Awaited::Ranks { call, kind, context, ranks: 0, peer })
    }

    fn has_in(&self, contexts: &Range<u64>) -> bool {
        self.entries.iter().any(|entry| {
            let (end, round) = match entry {
                Entry::Send(send) => (&send.end, &send.round),
                Entry::Receive(receive) => (&receive.end, &receive.round),
                Entry::Free => return false,
            };
            // The context of the communicator's own messages.
            let context = end.context - end.context % SPACES;
            round.request.is_some() && contexts.contains(&context)
        })
    }

    fn is_needed(&self, engine: &MessageEngine) -> bool {
        // The endpoint counts the messages of the partitions that are ready, and the program has to mark all of them.
        // But nobody waits for the messages of abandoned rounds, which a process still has to take.
        let is_there = |peer| !engine.has_left(peer);
        self.owed.iter().any(|(peer, owed)| *owed > 0 && is_there(*peer))
            || self.entries.iter().any(|entry| {
                matches!(entry, Entry::Receive(Incoming { abandoned: 1.., end, .. }) if is_there(end.peer))
            })
    }
}
