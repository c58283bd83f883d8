//! What this rank waits for, as mpiexec can read it (`shm/waiting.rs` of the job crate has the record).
//!
//! A wait that is over soon writes nothing. A wait that lasts longer than [`SPIN`](super::SPIN), or that is about to
//! sleep, is described here from what the endpoint knows about its operation. If several threads wait, the record
//! describes the wait that has begun last. All functions are called under the endpoint's lock, so that one thread at a
//! time writes the record.

use super::{Core, Endpoint, State};
use crate::endpoint::call;
use crate::endpoint::requests::Request;
use crate::message::Tag;
use crate::message::label::{SPACES, Sender};
use crate::shm::waiting::{Kind, Named, Progress, Text, Wait};
use crate::sys::{clock, process};
use crate::transport::protocol::in_flight::{Receive, Send, SendStage};
use std::sync::PoisonError;

/// What a call waits for.
#[derive(Clone, Copy, Debug)]
pub enum Awaited {
    /// An operation of this endpoint. The text is the name of the method, or empty for a blocking send or receive.
    Request(u64, &'static str),
    /// The requests for whose results the look of the wait asks.
    Asked(&'static str),
    /// A message that a probe may find.
    Message {
        /// Name of the method.
        call: &'static str,
        /// The context.
        context: u64,
        /// The source.
        source: Sender,
        /// The tag.
        tag: Tag,
    },
    /// Other ranks of a communicator.
    Ranks {
        /// Name of the method; empty if not known.
        call: &'static str,
        /// The kind of the call.
        kind: Kind,
        /// A context of the communicator.
        context: u64,
        /// Number of ranks; 0 if not known.
        ranks: usize,
        /// The rank of the world for which this rank waits, if it is a single one.
        peer: Option<usize>,
    },
    /// Work of another thread of this process.
    Work(Kind),
    /// The end of the operations for which other ranks need this one.
    Served,
}

/// Number of long waits that need no allocation.
const THREADS: usize = 8;

/// The waits of this rank that are long.
#[derive(Debug)]
pub(super) struct Waits {
    /// The waits, each with its number. The last one is in the record.
    list: Vec<(u64, Wait)>,
    /// Number of waits so far.
    count: u64,
    /// What [`State::activity`] returned at the last look.
    activity: u64,
}

impl Default for Waits {
    fn default() -> Self {
        Self { list: Vec::with_capacity(THREADS), count: 0, activity: 0 }
    }
}

/// A wait that may be in the list. The wait leaves the list when this value is dropped, which must not happen under the
/// lock, or when [`Endpoint::forget`] is called.
pub struct Recorded<'e> {
    endpoint: &'e Endpoint,
    number: Option<u64>,
}

impl Recorded<'_> {
    /// Returns a wait that is not in the list.
    pub(super) fn none(endpoint: &Endpoint) -> Recorded<'_> {
        Recorded { endpoint, number: None }
    }

    /// Tells the watchdog that the thread has looked again for what it waits for, and has not found it.
    #[cold]
    pub fn look(&self) {
        if let (Some(record), Ok(_state)) = (self.endpoint.fabric.waiting(), self.endpoint.lock()) {
            record.look(false);
        }
    }

    /// Returns whether the wait is in the list.
    #[inline]
    pub(super) fn is_some(&self) -> bool {
        self.number.is_some()
    }
}

impl Drop for Recorded<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.is_some() {
            let mut state = self.endpoint.insist().unwrap_or_else(PoisonError::into_inner);
            self.endpoint.forget(&mut state, self);
        }
    }
}

impl State {
    /// Returns a number that changes when this rank has sent or completed something.
    fn activity(&self) -> u64 {
        self.news().wrapping_add(self.core.engine.traffic().messages)
    }
}

impl Endpoint {
    /// Describes a long wait in the record, before the rank looks for news again or sleeps. `moved` says whether the
    /// wait has found any since the last call; then it describes the wait anew.
    #[cold]
    pub(super) fn record(
        &self,
        state: &mut State,
        awaited: &Awaited,
        recorded: &mut Recorded<'_>,
        moved: bool,
    ) {
        let Some(record) = self.fabric.waiting() else { return };
        let activity = state.activity();
        let news = moved || activity != state.waits.activity;
        state.waits.activity = activity;
        let number = *recorded.number.get_or_insert_with(|| {
            state.waits.count += 1;
            state.waits.list.push((state.waits.count, Wait::default()));
            state.waits.count
        });
        let Some(at) = state.waits.list.iter().position(|(other, _)| *other == number) else {
            return;
        };
        let old = state.waits.list[at].1;
        if old.since == 0 || news {
            let mut wait = describe(&mut state.core, awaited);
            wait.thread = process::thread_id();
            wait.since = if old.since == 0 { clock::monotonic_nanoseconds() } else { old.since };
            state.waits.list[at].1 = wait;
            if at + 1 == state.waits.list.len() {
                self.publish(state);
            }
        }
        record.look(news);
    }

    /// Describes a wait that the endpoint does not make, until the value that the call returns is dropped. The calling
    /// thread does not hold the endpoint's lock.
    #[cold]
    pub fn record_wait(&self, awaited: &Awaited) -> Recorded<'_> {
        let mut recorded = Recorded::none(self);
        if let Ok(mut state) = self.lock() {
            self.record(&mut state, awaited, &mut recorded, false);
        }
        recorded
    }

    /// Returns what some other ranks do now, in the words of an error: those that wait in a call with another name than
    /// that of this thread's call. Each rank has the name for the error and the rank of the world. A rank that does not
    /// wait yet gets a short time for that.
    #[cold]
    pub fn other_calls(&self, ranks: impl Iterator<Item = (usize, usize)>) -> Vec<String> {
        /// The most ranks that the text names.
        const MOST: usize = 4;
        let (mut patience, mut calls) = (100, Vec::new());
        for (rank, world) in ranks {
            let Some(record) = self.fabric.waiting_of(world).filter(|_| calls.len() < MOST) else {
                break;
            };
            let mut seen = record.read();
            while seen.wait.is_none() && patience > 0 {
                patience -= 1;
                std::thread::sleep(super::SPIN);
                seen = record.read();
            }
            let name = seen.wait.map(|wait| wait.call.shown()).unwrap_or_default();
            if !name.is_empty() && name != call::name("") {
                calls.push(format!("rank {rank} is in {name} now"));
            }
        }
        calls
    }

    /// Removes a wait from the list.
    #[cold]
    pub(super) fn forget(&self, state: &mut State, recorded: &mut Recorded<'_>) {
        let number = recorded.number.take();
        let waits = &mut state.waits.list;
        if let Some(at) = waits.iter().position(|(other, _)| Some(*other) == number) {
            waits.remove(at);
            self.publish(state);
        }
    }

    /// Writes the last wait of the list to the record.
    fn publish(&self, state: &State) {
        let Some(record) = self.fabric.waiting() else { return };
        let threads = state.waits.list.len() as u32;
        record.write(state.waits.list.last().map(|(_, wait)| Wait { threads, ..*wait }).as_ref());
    }
}

/// Returns a description of what a call waits for, without the time and the thread.
pub(super) fn describe(core: &mut Core, awaited: &Awaited) -> Wait {
    match *awaited {
        Awaited::Request(id, own) => of_request(core, id, own),
        Awaited::Asked(own) => {
            let (id, count) = core.engine.requests_ref().asked();
            let wait = match count {
                0 => Wait { call: named(own), ..Wait::default() },
                _ => of_request(core, id, own),
            };
            Wait { others: count.saturating_sub(1), ..wait }
        }
        Awaited::Message { call, context, source, tag } => Wait {
            kind: Kind::Probe,
            progress: Progress::NoMessage,
            peer: of_sender(source),
            tag: of_tag(tag),
            ..of_context(call, context)
        },
        Awaited::Ranks { call, kind, context, ranks, peer } => Wait {
            kind,
            ranks: ranks as u32,
            peer: peer.map_or(Named::None, |peer| Named::One(peer as u32)),
            ..of_context(call, context)
        },
        Awaited::Work(kind) => {
            Wait { kind, progress: Progress::Working, call: named(""), ..Wait::default() }
        }
        Awaited::Served => {
            Wait { kind: Kind::Finalize, call: named("Universe::finalize"), ..Wait::default() }
        }
    }
}

fn of_request(core: &mut Core, id: u64, own: &'static str) -> Wait {
    if let Some(owner) = core.engine.requests().source(id) {
        return match core.awaited_by(owner) {
            // A source never waits for requests, so the recursion ends.
            Some(Awaited::Ranks { kind, context, ranks, peer, .. }) => {
                describe(core, &Awaited::Ranks { call: own, kind, context, ranks, peer })
            }
            Some(awaited) => Wait { call: named(own), ..describe(core, &awaited) },
            None => Wait { call: named(own), ..Wait::default() },
        };
    }
    let or = |name| if own.is_empty() { name } else { own };
    let asked = core.engine.asked_tag(id);
    match core.engine.requests().get(id) {
        Some(Request::Send(send)) => of_send(or("Communicator::send"), send),
        Some(Request::Receive(receive)) => of_receive(or("Communicator::recv"), receive, asked),
        Some(Request::Source(_) | Request::Done(_)) | None => {
            Wait { call: named(own), ..Wait::default() }
        }
    }
}

fn of_send(own: &'static str, send: &Send) -> Wait {
    let (progress, done) = match send.stage {
        SendStage::Queued => (Progress::NotTaken, 0),
        SendStage::Unacknowledged | SendStage::Offered(_) => (Progress::NotReceived, 0),
        SendStage::Fragments(done, _) | SendStage::Streaming(done) => (Progress::Moving, done),
    };
    Wait {
        kind: Kind::Send,
        progress,
        peer: Named::One(send.dest.index() as u32),
        tag: of_tag(Tag::Is(send.label.tag)),
        bytes: send.label.bytes,
        done,
        ..of_context(own, send.label.context)
    }
}

fn of_receive(own: &'static str, receive: &Receive, asked: Option<Tag>) -> Wait {
    let wait = Wait {
        kind: Kind::Receive,
        peer: of_sender(receive.source),
        ..of_context(own, receive.context)
    };
    match receive.stream {
        Some(stream) => Wait {
            progress: Progress::Moving,
            tag: of_tag(Tag::Is(stream.tag)),
            bytes: stream.total,
            done: stream.done,
            ..wait
        },
        None => Wait {
            progress: Progress::NoMessage,
            tag: asked.map_or(Named::None, of_tag),
            bytes: receive.capacity,
            ..wait
        },
    }
}

/// Returns a description of which only the call and the communicator are filled in. Messages of the library's own (in
/// other spaces than the first) belong to collective calls or to windows; their tags mean nothing to the user.
fn of_context(own: &'static str, context: u64) -> Wait {
    let communicator = context / SPACES;
    let name = match communicator {
        0 => Text::new(b"MPI_COMM_WORLD"),
        _ => Text::default(),
    };
    let given = call::with_communicator(communicator * SPACES, |given| match given {
        [] => name,
        given => Text::new(given),
    });
    Wait { call: named(own), name: given, communicator, ..Wait::default() }
}

fn named<const N: usize>(own: &'static str) -> Text<N> {
    Text::new(call::name(own).as_bytes())
}

fn of_sender(source: Sender) -> Named {
    match source {
        Sender::Any => Named::Any,
        Sender::Process(slot) => Named::One(slot.index() as u32),
    }
}

fn of_tag(tag: Tag) -> Named {
    match tag {
        Tag::Any => Named::Any,
        Tag::Is(tag) => Named::One(tag.unsigned_abs()),
    }
}
