//! What this rank waits for from the targets of its requests (`requests.rs`, `fetches.rs`): the messages with data and
//! old values, and the sends of long puts.
//!
//! [`Replies`] is a source of progress, so a message ends in any call of this rank that makes progress. The data then
//! lie in the memory of the calling rank. A message that a request of the program stands for (`MPI_Rget`) also ends
//! this request. The calls that complete operations wait until no message of a target uses memory of the program any
//! more ([`Asked::is_quiet`]).
//!
//! Old values and gets of a few bytes are words of the calling rank's block instead of a message. These words have room
//! for one answer of each target. A call that finds them in use asks for a message. They are in use until the answer
//! has come, also if nobody needs the answer any more: the target may write it at any time, and would overwrite another
//! one.
//!
//! A call that completes operations notes first how much has begun ([`Mark`]), and waits for no more: other threads of
//! this rank may go on to start operations at the same target.
//!
//! Invariant: as long as an entry of [`Replies`] or an awaited short answer exists, the memory that it names is valid,
//! and the program does not use it. Whoever ends a wait early removes them first ([`Requests::abandon`]).

use super::completions::CompletionCounter;
use super::types::TYPES;
use crate::endpoint::engine::MessageEngine;
use crate::endpoint::progress::Endpoint;
use crate::endpoint::requests::{Owner, Request, no_memory};
use crate::endpoint::sources::Source;
use crate::message::label::Label;
use crate::message::payload::{Posting, SendMode};
use crate::message::{Operation, Status};
use crate::process::Process;
use crate::request::reply::{ReplyWord, class_of, kind_of};
use crate::request::types::Advertised;
use crate::rma::window::words::{SharedWord, Word, Words, classes, said};
use crate::{Error, ErrorClass, ErrorKind, Plan, Result};
use std::collections::TryReserveError;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use typepack_engine::Elements;
use typepack_engine::reserve::Grow;

/// A short answer of a target.
pub(in crate::rma) type Reply = [u64; said::BYTES / size_of::<u64>()];

/// A short answer that has been asked for.
#[derive(Debug)]
pub(in crate::rma) struct Awaited {
    tag: i32,
    /// The elements that the answer goes to, and its length in bytes; `None` if it goes to no elements.
    to: Option<(Elements<Plan>, u64)>,
}

impl Awaited {
    /// Describes the answer with this tag, whose `bytes` bytes go to the elements `to`.
    pub fn new(tag: i32, to: Elements<Plan>, bytes: u64) -> Self {
        Self { tag, to: Some((to, bytes)) }
    }

    /// Describes the answer with this tag, which goes to no elements.
    pub fn without_elements(tag: i32) -> Self {
        Self { tag, to: None }
    }
}

/// How much this rank has asked a target for at some moment.
#[derive(Clone, Copy, Debug)]
pub(in crate::rma) struct Mark {
    /// Number of requests that the target counts.
    sent: u64,
    /// Number of messages that have begun.
    messages: u64,
    /// The tag of the short answer that is under way and goes to elements; 0 if there is none.
    short: u32,
}

/// What this rank has asked one target for.
#[derive(Debug)]
pub(in crate::rma) struct Asked {
    words: Arc<Words>,
    /// This rank in the window.
    rank: usize,
    pub target: usize,
    /// Number of requests that the target counts.
    pub sent: AtomicU64,
    /// The types that the target knows.
    pub types: Mutex<Advertised>,
    /// Number of messages under way that use memory of the program.
    pub messages: AtomicUsize,
    /// These messages, numbered as they begin.
    completions: Mutex<CompletionCounter>,
    /// How many of them have begun.
    started: AtomicU64,
    /// All messages up to this number have ended.
    over: AtomicU64,
    /// Number of bytes of requests that wait for room in the ring of the target.
    pub queued: AtomicU64,
    /// The short answer that is under way: the target may write its words. A thread that waits for a short answer holds
    /// the lock meanwhile.
    pub short: Mutex<Option<Awaited>>,
    /// The tag of this answer if it goes to elements; 0 if it does not, or if none is under way.
    goes_to_elements: AtomicU32,
}

impl Asked {
    fn new(words: &Arc<Words>, rank: usize, target: usize) -> Self {
        Self {
            words: words.clone(),
            rank,
            target,
            sent: AtomicU64::new(0),
            types: Mutex::new(Advertised::new(TYPES)),
            messages: AtomicUsize::new(0),
            completions: Mutex::default(),
            started: AtomicU64::new(0),
            over: AtomicU64::new(0),
            queued: AtomicU64::new(0),
            short: Mutex::default(),
            goes_to_elements: AtomicU32::new(0),
        }
    }

    /// Returns how much this rank has asked for. A call that completes operations makes a mark when it begins.
    pub fn mark(&self) -> Mark {
        Mark {
            sent: self.sent.load(Ordering::Acquire),
            messages: self.started.load(Ordering::Acquire),
            short: self.goes_to_elements.load(Ordering::Acquire),
        }
    }

    /// Counts a message that begins to use memory of the program, and returns its number.
    fn begin_message(&self) -> u64 {
        self.messages.fetch_add(1, Ordering::Relaxed);
        let number = lock(&self.completions).begin();
        // Only one thread at a time is here: all callers hold the endpoint's lock.
        self.started.store(number, Ordering::Release);
        number
    }

    /// Counts a message that has ended.
    fn end_message(&self, number: u64) {
        let mut completions = lock(&self.completions);
        completions.end(number);
        // The count changes after the data is there.
        self.over.store(completions.over(), Ordering::Release);
        self.messages.fetch_sub(1, Ordering::Release);
    }

    /// Notes that a short answer is under way.
    pub fn await_short(&self, short: &mut Option<Awaited>, awaited: Awaited) {
        let shown = if awaited.to.is_some() { awaited.tag as u32 } else { 0 };
        *short = Some(awaited);
        self.goes_to_elements.store(shown, Ordering::Release);
    }

    /// Returns a word that the target says to this rank.
    pub fn said(&self, index: usize) -> Result<&AtomicU64> {
        self.words.get(self.rank, Word::Said(self.target, index))
    }

    /// Returns the error of the first operation that the target has refused since the last call, except those that
    /// return their error themselves ([`refused_fetch`](Self::refused_fetch)).
    pub fn refusal(&self) -> Option<Error> {
        let class = classes::take(self.said(said::REFUSED).ok()?);
        (class != 0).then(|| refused(self.target, class_of(class)))
    }

    /// Returns the error of an operation that the target has refused by a message without data. If it has refused
    /// several, the class is that of the last one.
    pub fn refused_fetch(&self) -> Option<Error> {
        let class = classes::refused(self.said(said::REFUSED).ok()?);
        (class != 0).then(|| refused(self.target, class_of(class)))
    }

    /// Keeps the class of an error for the next call that completes operations, which returns it. The first error
    /// counts.
    fn note(&self, class: ErrorClass) {
        if let Ok(word) = self.said(said::REFUSED) {
            classes::note(word, class.0.unsigned_abs());
        }
    }

    /// Returns the short answer with this tag, or the class of the error, if the answer has come.
    pub fn short_answer(&self, tag: i32) -> Result<Option<std::result::Result<Reply, ErrorClass>>> {
        let reply = ReplyWord::of(self.said(said::ANSWERED)?.load(Ordering::Acquire));
        if reply.number != tag as u32 {
            return Ok(None);
        }
        if let Some(class) = reply.class() {
            return Ok(Some(Err(class)));
        }
        let mut answer = Reply::default();
        for (index, value) in answer.iter_mut().enumerate() {
            *value = self.said(said::ANSWER + index)?.load(Ordering::Relaxed);
        }
        Ok(Some(Ok(answer)))
    }

    /// Takes the short answer that is under way, if it has come. Returns whether none is under way any more.
    pub fn take_short(&self, short: &mut Option<Awaited>) -> bool {
        let Some(awaited) = short else { return true };
        let answer = match self.short_answer(awaited.tag) {
            Ok(None) => return false,
            Ok(Some(answer)) => answer,
            // In a forked child there is no answer, and nobody reads the memory.
            Err(error) => Err(error.class()),
        };
        match (&awaited.to, answer) {
            // SAFETY: the elements are valid and not in use (the invariant of this file). `bytes` is at most their
            // packed size, and at most the length of the answer (`Window::ask_for_words` has checked both).
            (Some((to, bytes)), Ok(answer)) => unsafe {
                to.view().unpack(0..*bytes, answer.as_ptr().cast());
            },
            (Some(_), Err(class)) => self.note(class),
            // The operation that has asked for the answer has its data from elsewhere.
            (None, _) => {}
        }
        *short = None;
        self.goes_to_elements.store(0, Ordering::Release);
        true
    }

    /// Returns whether no message and no short answer of the target that had begun at a mark uses memory of the
    /// program.
    pub fn is_quiet(&self, mark: &Mark) -> bool {
        self.over.load(Ordering::Acquire) >= mark.messages && self.needs_no_short(mark.short)
    }

    /// Returns whether the short answer with this tag has gone to its elements. Takes the answer if it has come. This
    /// function may be called under the endpoint's lock: it does not wait for a thread that holds the lock of `short`,
    /// because this thread may wait for the endpoint's lock. That thread takes the answer, or releases the lock soon.
    fn needs_no_short(&self, tag: u32) -> bool {
        let is_over = || tag == 0 || self.goes_to_elements.load(Ordering::Acquire) != tag;
        if is_over() {
            return true;
        }
        match self.short.try_lock() {
            Ok(mut short) => _ = self.take_short(&mut short),
            Err(TryLockError::Poisoned(short)) => _ = self.take_short(&mut short.into_inner()),
            Err(TryLockError::WouldBlock) => {}
        }
        is_over()
    }

    /// Returns whether the target has carried out the requests that it counts and that a thread of this rank had sent
    /// before it made a mark, or another thread before it told this thread. `served` is the target's count.
    ///
    /// The target counts the requests in the order in which they came, and up to the first one that is not over. This
    /// rank counts a request before it sends the request. So neither count of this rank, that of the mark and that of
    /// this moment, is less than the place of any such request in the order of the target. The count of this moment
    /// may be less than that of the mark if the sending of a request has failed.
    pub fn is_served(&self, served: &AtomicU64, mark: &Mark) -> bool {
        served.value() >= mark.sent.min(self.sent.load(Ordering::Acquire))
    }
}

/// What this rank has asked the other ranks of a window for.
#[derive(Debug)]
pub(in crate::rma) struct Requests {
    pub endpoint: Arc<Endpoint>,
    /// Whether this rank has sent a request. If not, no call need look at the counts.
    pub any: AtomicBool,
    pub targets: Box<[Arc<Asked>]>,
}

impl Requests {
    pub fn new(endpoint: Arc<Endpoint>, words: &Arc<Words>, rank: usize) -> Self {
        let targets = (0..words.members()).map(|target| Arc::new(Asked::new(words, rank, target)));
        Self { endpoint, any: AtomicBool::new(false), targets: targets.collect() }
    }

    /// Ends the use of the program's memory by all messages of a target. The requests of the program for these messages
    /// end with an error.
    #[cold]
    pub fn abandon(&self, asked: &Arc<Asked>) {
        self.endpoint.let_go(|core| {
            // The source is registered as long as windows exist.
            let _abandoned = core.with(|replies: &mut Replies, engine| {
                for at in 0..replies.entries.len() {
                    let entry = &mut replies.entries[at];
                    if entry.as_ref().is_some_and(|entry| Arc::ptr_eq(&entry.asked, asked)) {
                        replies.drop_entry(engine, at);
                    }
                }
            });
            true
        });
        // The target may still write the answer.
        if let Some(awaited) = &mut *lock(&asked.short) {
            awaited.to = None;
            asked.goes_to_elements.store(0, Ordering::Release);
        }
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        // Nothing is under way unless an epoch has ended with an error.
        for asked in &self.targets {
            // The last reference to the blocks must not be dropped under the endpoint's lock, so no entry stays.
            let queued = asked.queued.load(Ordering::Acquire);
            if queued > 0 || asked.messages.load(Ordering::Acquire) > 0 {
                self.abandon(asked);
            }
        }
    }
}

/// Locks a mutex. No code that holds one of the locks of windows leaves the value in a state that is not whole.
pub(in crate::rma) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the error for an operation that the target has refused with this class.
#[cold]
pub(in crate::rma) fn refused(target: usize, class: ErrorClass) -> Error {
    Error::new(kind_of(class), "target_rank", format!("rank {target} has refused the operation"))
}

/// What a message is for.
#[derive(Debug)]
pub(in crate::rma) enum Use {
    /// The message has this number of bytes, and goes straight to memory of the program.
    Direct(u64),
    /// The message goes to the buffer, and from there to the packed bytes `range` of the elements.
    Buffered { data: Vec<u8>, to: Elements<Plan>, range: Range<u64> },
    /// The send of a long put, from memory of the program.
    Put,
    /// The send of a request that waits for room in the ring: a copy with this number of bytes.
    Queued(u64),
}

/// A message that is under way.
#[derive(Debug)]
struct Entry {
    message: u64,
    /// The number of the message in the order of the target's messages; 0 for a queued request, which has none.
    number: u64,
    asked: Arc<Asked>,
    what: Use,
    /// The request of the program that ends with this message.
    request: Option<u64>,
}

/// The messages that this rank waits for: a source of progress.
#[derive(Debug)]
pub(in crate::rma) struct Replies {
    number: u32,
    entries: Vec<Option<Entry>>,
    unused: Vec<usize>,
}

/// Adds the source of answers to an endpoint.
///
/// # Errors
/// Returns `ErrorKind::State` after finalization.
pub(in crate::rma) fn register(endpoint: &Endpoint) -> Result<()> {
    endpoint.register(|number| Replies { number, entries: Vec::new(), unused: Vec::new() })
}

impl Replies {
    /// Makes room for another message, its request and that of the program. All entries have room in the list of unused
    /// entries, so that no message that ends allocates.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory runs out.
    fn make_room(&mut self, engine: &mut MessageEngine, ids: &mut Option<Vec<u64>>) -> Result<()> {
        let mut grow = || -> std::result::Result<(), TryReserveError> {
            if self.unused.is_empty() {
                self.entries.grow(1)?;
                self.unused.grow(self.entries.capacity())?;
            }
            ids.as_mut().map_or(Ok(()), |ids| ids.grow(1))
        };
        grow().map_err(|_| no_memory("another message of a window"))?;
        engine.requests().make_room_for(2)
    }

    /// Adds a message, whose number is `message`. If `ids` is given, opens a request of the program for the message and
    /// adds the number of the request to `ids`. A caller calls [`make_room`](Self::make_room) before the message
    /// starts.
    fn add(
        &mut self,
        engine: &mut MessageEngine,
        message: u64,
        (asked, what): (&Arc<Asked>, Use),
        ids: &mut Option<Vec<u64>>,
    ) {
        let at = self.unused.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        let owner = Owner { source: self.number, token: at as u64 };
        let request = ids.as_mut().map(|ids| {
            let id = engine.requests().open(Request::Source(owner));
            ids.push(id);
            id
        });
        let number = match what {
            Use::Queued(bytes) => {
                asked.queued.fetch_add(bytes, Ordering::Relaxed);
                0
            }
            _ => asked.begin_message(),
        };
        self.entries[at] = Some(Entry { message, number, asked: asked.clone(), what, request });
        // The message may be complete already. The source gets the result in the next turn.
        engine.requests().own(message, owner);
    }

    /// Posts the receive of a message of a target.
    ///
    /// # Safety
    ///
    /// - The elements of `posting` are writable, and nobody else accesses them until the message has come or
    ///   [`Requests::abandon`] has ended.
    pub unsafe fn receive(
        &mut self,
        engine: &mut MessageEngine,
        posting: &Posting<'_>,
        purpose: (&Arc<Asked>, Use),
        ids: &mut Option<Vec<u64>>,
    ) -> Result<u64> {
        self.make_room(engine, ids)?;
        // SAFETY: the caller guarantees the elements. `Posting::new` takes the capacity from the plan.
        match unsafe { engine.receive(posting)? } {
            // No rank has seen the tag yet.
            Operation::Done(_) => Err(crate::rma::direct::broken(purpose.0.target)),
            Operation::Pending(id) => {
                self.add(engine, id, purpose, ids);
                Ok(id)
            }
        }
    }

    /// Starts the send of a message to a target.
    ///
    /// # Safety
    ///
    /// - The elements of `layout` are readable, and `label.bytes` is their packed size. Unless `what` is a queued
    ///   request, they stay so and do not change until the message has gone or [`Requests::abandon`] has ended.
    pub unsafe fn send(
        &mut self,
        engine: &mut MessageEngine,
        layout: &Elements<&Plan>,
        (label, dest): (Label, Process),
        purpose: (&Arc<Asked>, Use),
        ids: &mut Option<Vec<u64>>,
    ) -> Result<()> {
        let mode = match purpose.1 {
            Use::Queued(_) => SendMode::Buffered(None),
            _ => SendMode::Standard,
        };
        self.make_room(engine, ids)?;
        // SAFETY: the caller guarantees the elements (the condition of `# Safety`). No memory is lent.
        if let Some(id) = unsafe { engine.start_send(layout, label, dest, mode)? } {
            self.add(engine, id, purpose, ids);
        }
        Ok(())
    }

    /// Removes the receive with this number, whose message nobody will send.
    pub fn cancel(&mut self, engine: &mut MessageEngine, message: u64) {
        let is = |entry: &Option<Entry>| entry.as_ref().is_some_and(|e| e.message == message);
        if let Some(at) = self.entries.iter().position(is) {
            if let Some(Entry { request: Some(id), .. }) = self.take(at) {
                engine.requests().cancel(id);
            }
            engine.detach(message);
        }
    }

    /// Removes a message and makes it use no memory of the program any more.
    #[cold]
    fn drop_entry(&mut self, engine: &mut MessageEngine, at: usize) {
        let Some(entry) = self.take(at) else { return };
        match entry.what {
            Use::Queued(_) => engine.requests().orphan(entry.message),
            // A message that comes later is discarded.
            Use::Direct(_) | Use::Buffered { .. } if engine.ignore_receive(entry.message) => {}
            _ => engine.detach(entry.message),
        }
        if let Some(id) = entry.request {
            let detail = "the wait for the operation has failed";
            let error = Error::new(ErrorKind::ProcAborted, "request", detail);
            engine.requests().complete(id, Err(error));
        }
    }

    /// Removes an entry from the list.
    fn take(&mut self, at: usize) -> Option<Entry> {
        let entry = self.entries.get_mut(at).and_then(Option::take)?;
        self.unused.push(at);
        match entry.what {
            Use::Queued(bytes) => _ = entry.asked.queued.fetch_sub(bytes, Ordering::Relaxed),
            _ => entry.asked.end_message(entry.number),
        }
        Some(entry)
    }
}

/// Returns the result of a message of `found` bytes that should have `bytes` bytes. A target that refuses an operation
/// says the class of the error, and then sends a message without data.
fn checked(asked: &Asked, found: u64, bytes: u64) -> std::result::Result<(), Option<Error>> {
    if found == bytes { Ok(()) } else { Err(asked.refused_fetch()) }
}

impl Source for Replies {
    fn completed(&mut self, engine: &mut MessageEngine, token: u64, result: Result<Status>) {
        let at = token as usize;
        let Some(Some(entry)) = self.entries.get_mut(at) else { return };
        let asked = &entry.asked;
        let received = result.as_ref().map_or(0, |status| status.bytes);
        let ended = match (&entry.what, result) {
            (_, Err(error)) => Err(Some(error)),
            (Use::Direct(bytes), Ok(_)) => checked(asked, received, *bytes),
            (Use::Buffered { data, to, range }, Ok(_)) => {
                let come = checked(asked, received, data.len() as u64);
                if come.is_ok() {
                    // SAFETY: the elements are valid and not in use (the invariant of this file). The range lies in
                    // their packed bytes, and the buffer has as many bytes (`Window::fetch_message`).
                    unsafe { to.view().unpack(range.clone(), data.as_ptr()) };
                }
                come
            }
            (Use::Put | Use::Queued(_), Ok(_)) => Ok(()),
        };
        let ended = ended
            .map_err(|error| error.unwrap_or_else(|| crate::rma::direct::broken(asked.target)));
        match (entry.request, ended) {
            (Some(id), ended) => {
                let status = Status { source: asked.target, tag: 0, bytes: received };
                engine.requests().complete(id, ended.map(|()| status));
            }
            (None, Err(error)) => asked.note(error.class()),
            (None, Ok(())) => {}
        }
        self.take(at);
    }

    /// Detaches the message of a request of the program.
    fn detach(&mut self, engine: &mut MessageEngine, token: u64) -> bool {
        self.drop_entry(engine, token as usize);
        true
    }

    fn is_needed(&self, _: &MessageEngine) -> bool {
        false
    }
}
