//! All partitioned operations of this process. Their table is a source of progress (`endpoint/sources.rs`).
//!
//! `send.rs` and `receive.rs` have the two sides of an operation, and `round.rs` what both have.
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
use super::receive::ReceiveSide;
use super::round::{End, HELLO, Round, commit, label, lost, no_memory};
use super::send::SendSide;
use crate::endpoint::engine::MessageEngine;
use crate::endpoint::progress::Awaited;
use crate::endpoint::requests::{Owner, Request};
use crate::endpoint::sources::Source as ProgressSource;
use crate::message::label::{SPACES, Sender};
use crate::message::payload::{Posting, SendMode};
use crate::message::typecheck::{self, UNKNOWN};
use crate::message::{Operation, Status, Tag};
use crate::process::Process;
use crate::settings::Settings;
use crate::shm::waiting::Kind;
use crate::{Error, ErrorKind, Result};
use std::ops::Range;
use std::sync::Arc;
use typepack_engine::Elements;
use typepack_engine::reserve::Grow;

/// Stands in a token where the index of an operation stands otherwise: a message of an abandoned round.
const ABANDONED: u32 = u32::MAX;

/// An operation, or a place for one.
#[derive(Debug)]
enum Partitioned {
    Free,
    Send(SendSide),
    Receive(ReceiveSide),
}

/// The partitioned operations of this process.
#[derive(Debug)]
pub(super) struct PartitionTable {
    /// The number of this source of progress.
    number: u32,
    operations: Vec<Partitioned>,
    free: Vec<u32>,
    /// For each process from which this one has prepared a receive, the number of messages of abandoned rounds that
    /// this process still has to take.
    owed: Vec<(Process, u64)>,
}

impl PartitionTable {
    pub fn new(number: u32) -> Self {
        Self { number, operations: Vec::new(), free: Vec::new(), owed: Vec::new() }
    }

    fn add(&mut self, operation: Partitioned) -> Result<u32> {
        if let Some(index) = self.free.pop() {
            self.operations[index as usize] = operation;
            return Ok(index);
        }
        let room = self.operations.grow(1).and_then(|()| self.free.grow(self.operations.len() + 1));
        room.map_err(|_| no_memory("another partitioned operation"))?;
        self.operations.push(operation);
        Ok(self.operations.len() as u32 - 1)
    }

    fn remove(&mut self, index: u32) {
        self.operations[index as usize] = Partitioned::Free;
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
        let send = SendSide {
            end,
            marks: marks.clone(),
            context,
            bytes,
            pending,
            round: Round::default(),
        };
        let index = self.add(Partitioned::Send(send))?;
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
        let receive = ReceiveSide {
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
        let index = self.add(Partitioned::Receive(receive))?;
        let Partitioned::Receive(receive) = &mut self.operations[index as usize] else {
            return Err(lost("a receive"));
        };
        let hello = receive.hello.start();
        let posted = commit(|plan| {
            let layout = Elements::new(hello, plan, Letter::BYTES);
            let posting = Posting::new(layout, context, Sender::Process(from), tag)?;
            // SAFETY: the words of `hello` are memory of their own, which is neither freed nor read before the receive
            // is over: the operation stays until then (`free`). The capacity is their size (`Posting::new`).
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
        let round = match &mut self.operations[index as usize] {
            Partitioned::Send(send) => &mut send.round,
            Partitioned::Receive(receive) => &mut receive.round,
            Partitioned::Free => return Err(lost("an operation")),
        };
        if round.request.is_some() {
            let detail = "the operation has been started and is not complete";
            return Err(Error::new(ErrorKind::Request, "request", detail));
        }
        let id = engine.requests().open(Request::Source(owner));
        match &mut self.operations[index as usize] {
            Partitioned::Send(send) => {
                send.marks.begin();
                send.round.begin(id, send.end.partitions);
                send.end(engine);
            }
            Partitioned::Receive(receive) => {
                receive.arrivals.begin();
                receive.round.begin(id, 0);
                receive.post(engine, owner);
            }
            Partitioned::Free => {}
        }
        // The round may be over. Its result, which may be an error, is for the call that waits for it: a start does not
        // fail because the other side does not fit.
        Ok(Operation::Pending(id))
    }

    /// Sends the partitions of a send that threads have marked ready.
    pub fn send_ready(&mut self, engine: &mut MessageEngine, index: u32) {
        let owner = self.owner(index, 0);
        let Partitioned::Send(send) = &mut self.operations[index as usize] else { return };
        let marks = send.marks.clone();
        marks.take(|partition| send.send(engine, owner, partition));
        send.end(engine);
    }

    /// Detaches the running round of an operation from its memory. The other process still gets a message for each
    /// partition, which may be void, and this one takes the messages that the other one sends.
    fn abandon(&mut self, engine: &mut MessageEngine, index: u32) {
        let (owner, source) = (self.owner(index, 0), self.number);
        match &mut self.operations[index as usize] {
            Partitioned::Send(send) => send.abandon(engine, owner),
            Partitioned::Receive(receive) => {
                let place = receive.owed;
                let discard = Owner { source, token: of_abandoned(place) };
                self.owed[place as usize].1 += receive.abandon(engine, owner, discard);
            }
            Partitioned::Free => {}
        }
    }

    /// Frees an operation. If a round runs, it is abandoned.
    pub fn free(&mut self, engine: &mut MessageEngine, index: u32) {
        self.abandon(engine, index);
        match &mut self.operations[index as usize] {
            // The next receive must not get the hello of this one.
            Partitioned::Receive(receive) if receive.matched.is_none() => receive.freed = true,
            _ => self.remove(index),
        }
    }
}

/// Returns the token of a receive that takes a message of an abandoned round from the process at `place` in
/// [`PartitionTable::owed`].
fn of_abandoned(place: u32) -> u64 {
    u64::from(ABANDONED) << 32 | u64::from(place)
}

impl ProgressSource for PartitionTable {
    fn completed(&mut self, engine: &mut MessageEngine, token: u64, result: Result<Status>) {
        let (index, partition) = ((token >> 32) as u32, token as u32);
        let (owner, source) = (self.owner(index, 0), self.number);
        let Some(operation) = self.operations.get_mut(index as usize) else {
            // A message of an abandoned round, or the result `IGNORED`.
            if let Some((_, owed)) = self.owed.get_mut(partition as usize) {
                *owed -= 1;
            }
            return;
        };
        match operation {
            Partitioned::Send(send) => send.completed(engine, partition, result),
            Partitioned::Receive(receive) if partition != HELLO => {
                receive.over(partition, result);
                receive.end(engine);
            }
            Partitioned::Receive(receive) => {
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
            Partitioned::Free => {}
        }
    }

    fn detach(&mut self, engine: &mut MessageEngine, token: u64) -> bool {
        self.abandon(engine, (token >> 32) as u32);
        true
    }

    fn awaited(&self, token: u64) -> Option<Awaited> {
        let (end, call, kind) = match self.operations.get((token >> 32) as usize)? {
            Partitioned::Send(send) => (&send.end, "partitioned send", Kind::Send),
            Partitioned::Receive(receive) => (&receive.end, "partitioned receive", Kind::Receive),
            Partitioned::Free => return None,
        };
        let (context, peer) = (end.context, Some(end.peer.index()));
        Some(Awaited::Ranks { call, kind, context, ranks: 0, peer })
    }

    fn has_in(&self, contexts: &Range<u64>) -> bool {
        self.operations.iter().any(|operation| {
            let (end, round) = match operation {
                Partitioned::Send(send) => (&send.end, &send.round),
                Partitioned::Receive(receive) => (&receive.end, &receive.round),
                Partitioned::Free => return false,
            };
            // The context of the communicator's own messages.
            let context = end.context - end.context % SPACES;
            round.request.is_some() && contexts.contains(&context)
        })
    }

    fn is_needed(&self, engine: &MessageEngine) -> bool {
        // The endpoint counts the messages of the partitions that are ready, and the program has to mark all of them.
        // But nobody waits for the messages of abandoned rounds, which a process still has to take, unless they will never
        // be sent.
        let is_there = |peer| !engine.sends_no_more(peer);
        self.owed.iter().any(|(peer, owed)| *owed > 0 && is_there(*peer))
            || self.operations.iter().any(|operation| {
                matches!(operation, Partitioned::Receive(ReceiveSide { abandoned: 1.., end, .. }) if is_there(end.peer))
            })
    }
}
