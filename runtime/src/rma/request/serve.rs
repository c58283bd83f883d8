//! The target of requests (`form.rs`): this rank carries out the operations of other ranks on memory that those ranks
//! cannot map. This is private memory of the program, from which a window was created or which is attached to a dynamic
//! window.
//!
//! `target.rs` is the source of progress that receives the requests. This rank carries out a request in its next call
//! that makes progress (for example a fence, a flush or a receive). It then counts the request in a word of the calling
//! rank's block, and wakes that rank. The message of a long put or get goes straight to or from the memory of the
//! window; a long put counts when its message has arrived.
//!
//! A get of a rank whose long puts are under way waits until they are over, so that the get sees their data.
//!
//! The target checks every word of a request: another rank may send anything. A request that the target refuses counts
//! too; the error class goes to another word of the calling rank's block.

use super::completions::CompletionCounter;
use super::form::{BYTES, DATA, Kind, REQUEST, Request, WORD};
use super::place::{Memory, OTHER, RANGE, Served, plan_of};
use super::requests::is_put_tag;
use super::target::token_of;
use super::types::RememberedTypes;
use crate::commit::bytes;
use crate::endpoint::engine::MessageEngine;
use crate::endpoint::requests::Owner;
use crate::message::label::{Label, Sender};
use crate::message::payload::{Posting, SendMode};
use crate::message::typecheck::UNKNOWN;
use crate::message::{Operation, Status, Tag};
use crate::process::Process;
use crate::request::reply::ReplyWord;
use crate::rma::accumulate::atomic;
use crate::rma::accumulate::mechanism::Site;
use crate::rma::accumulate::ranges::{Patience, range_of};
use crate::rma::accumulate::{Element, Job, Place, Run, Stream, Update};
use crate::rma::window::words::{SharedWord, Word, Words, classes, said};
use crate::{Datatype, ErrorClass, Plan, Result};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use typepack_engine::Elements;

/// The greatest number of long puts and gets of one rank that are under way, and of its gets that wait. A calling rank
/// has fewer (`requests.rs`), unless many of its threads start operations at the same time.
const MOST_LONG: usize = 1 << 14;

/// The greatest number of answers that wait for memory. Only a faulty rank asks for more.
const MOST_UNSENT: usize = 1 << 14;

/// What the message of a long put or get is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Get,
    /// A put, whose request has this number.
    Put(u64),
    /// A put that this rank has refused and counted already. The data of its message are discarded.
    Refused,
}

/// Why this rank does not carry out a long put or get.
struct Refusal {
    class: ErrorClass,
    /// Whether the message of a put will still come.
    comes: bool,
}

impl From<ErrorClass> for Refusal {
    fn from(class: ErrorClass) -> Self {
        Self { class, comes: true }
    }
}

/// What this rank needs to carry out the requests of a window.
#[derive(Debug)]
pub(in crate::rma) struct Host {
    pub words: Arc<Words>,
    /// This rank in the window.
    pub rank: usize,
    /// This rank in the world.
    pub own: usize,
    pub memory: Memory,
    /// The slot of each rank of the window.
    pub slots: Box<[usize]>,
}

impl Host {
    /// Returns the rank in the window of the sender of a request.
    #[inline]
    fn rank_of(&self, slot: usize) -> Option<usize> {
        if self.slots.get(slot) == Some(&slot) {
            return Some(slot);
        }
        self.slots.iter().position(|other| *other == slot)
    }

    /// Counts a request of rank `from`, which is over.
    fn count(&self, engine: &MessageEngine, from: usize, origin: &mut Origin, served: Served) {
        if let Err(class) = served {
            self.note(from, class);
        }
        origin.requests.pass();
        self.say_served(engine, from, origin);
    }

    /// Counts the long put with this number, which is over.
    fn count_long(
        &self,
        engine: &MessageEngine,
        from: usize,
        origin: &mut Origin,
        number: u64,
        served: Served,
    ) {
        if let Err(class) = served {
            self.note(from, class);
        }
        origin.requests.end(number);
        self.say_served(engine, from, origin);
    }

    /// Tells rank `from` up to which of its requests all are over.
    fn say_served(&self, engine: &MessageEngine, from: usize, origin: &mut Origin) {
        let served = origin.requests.over();
        if served == origin.served {
            return;
        }
        origin.served = served;
        // There is such a word: `from` is a rank of the window.
        if let Ok(word) = self.words.get(from, Word::Said(self.rank, said::SERVED)) {
            word.set(served);
            engine.ring(Process::new(self.slots[from]));
        }
    }

    /// Tells rank `from` that this rank has refused a request.
    #[cold]
    fn note(&self, from: usize, class: ErrorClass) {
        if let Ok(word) = self.words.get(from, Word::Said(self.rank, said::REFUSED)) {
            classes::note(word, class.0.unsigned_abs());
        }
    }

    /// Tells rank `from` the class of the error before a message without data, which ends an operation of this rank.
    #[cold]
    fn note_refused(&self, from: usize, class: ErrorClass) {
        if let Ok(word) = self.words.get(from, Word::Said(self.rank, said::REFUSED)) {
            classes::note_refused(word, class.0.unsigned_abs());
        }
    }

    /// Carries out a short put.
    fn put(&self, remembered: &RememberedTypes, request: &Request, data: &[u8]) -> Served {
        let (place, _attached) = self.memory.place(remembered, request, data.len() as u64)?;
        let range = request.start..request.start + data.len() as u64;
        // SAFETY: the elements lie in the window's memory, which the program keeps valid until it frees the window or
        // detaches the memory, and both wait for this call. The range lies within the packed bytes of the elements
        // (`place` has checked both), and `data` has as many bytes. `data` is memory of this source, so the two do not
        // overlap.
        unsafe { place.unpack(range, data.as_ptr()) };
        Ok(())
    }

    /// Gives the answer to a request of rank `from` with this tag: the first `length` bytes of `answer`, or an error.
    fn say(
        &self,
        engine: &MessageEngine,
        from: usize,
        tag: i32,
        served: Served,
        answer: &[u64; said::BYTES / WORD],
        length: usize,
    ) {
        let word = |index| self.words.get(from, Word::Said(self.rank, index));
        for (index, value) in answer.iter().enumerate().take(length.div_ceil(WORD)) {
            if let Ok(word) = word(said::ANSWER + index) {
                word.set(*value);
            }
        }
        // The answer comes before its tag.
        if let Ok(word) = word(said::ANSWERED) {
            word.set(ReplyWord::new(&served, tag as u32).word());
            engine.ring(Process::new(self.slots[from]));
        }
    }

    /// Carries out a get of a few bytes.
    fn get(&self, plan: &Plan, request: &Request, to: &mut [u8]) -> Served {
        let (place, _attached) = self.memory.place_of(plan, request, to.len() as u64)?;
        let range = request.start..request.start + to.len() as u64;
        // SAFETY: the elements lie in the window's memory, and the range in their packed bytes, as for a put. `to` has
        // as many bytes, and is memory of this source.
        unsafe { place.pack(range, to.as_mut_ptr()) };
        Ok(())
    }

    /// Carries out an accumulate, whose operands are `data`. The old values go to `old`, unless `old` is empty.
    fn accumulate(
        &self,
        remembered: &RememberedTypes,
        request: &Request,
        data: &mut [u8],
        old: &mut [u8],
    ) -> Served {
        let ty = request.named.map(Datatype::named).ok_or(ErrorClass::TYPE)?;
        let update = request.update;
        let length = if update == Update::NoOp { old.len() } else { data.len() };
        if !old.is_empty() && old.len() != length {
            return Err(OTHER);
        }
        let (place, _attached) = self.memory.place(remembered, request, length as u64)?;
        let element = Element::new(ty);
        let size = element.size();
        let whole = |bytes: u64| bytes.is_multiple_of(size.max(1) as u64);
        if size == 0 || !whole(length as u64) || !whole(request.start) {
            return Err(OTHER);
        }
        let combine = element.combine(update).map_err(|error| error.class())?;
        let run = Run::new(self.site(), &element, length / size, (update, combine), false);
        let job = Job { run, element: &element };
        let base = match self.memory {
            Memory::Piece(base, _) => base,
            Memory::Attached(_) => 0,
        };
        // Both ranks must choose the same lock for an element, so the offset counts from the start of the window.
        let offset = (place.origin as usize).wrapping_sub(base) as i64;
        let at = Place { elements: place.view(), offset };
        let byte = bytes().map_err(|error| error.class())?;
        let part = |memory: &mut [u8]| Elements {
            origin: memory.as_mut_ptr(),
            plan: byte,
            count: memory.len() as u64,
        };
        let (operands, results) = (part(data), part(old));
        let operands = Some(&operands).filter(|_| update != Update::NoOp);
        let results = Some(&results).filter(|part| part.count > 0);
        let range = request.start..request.start + length as u64;
        // SAFETY: the elements lie in the window's memory, and the range in their packed bytes (`place`). The operands
        // and the results have as many bytes, and are memory of this source. If a run ends within an element,
        // `Run::update` updates only the elements that the run holds completely.
        let done = unsafe { job.run(&at, &Stream::new(operands), &Stream::new(results), range) };
        job.run.note(results.is_none());
        done.map_err(|error| error.class())
    }

    /// Returns how this rank updates its own memory for others.
    fn site(&self) -> Site<'_> {
        let patience = Patience::under_lock(self.own);
        Site { words: &self.words, rank: self.rank, patience, target: self.rank }
    }

    /// Carries out a compare and swap. The old value goes to `old`, which is as long as the element.
    fn compare_and_swap(
        &self,
        remembered: &RememberedTypes,
        request: &Request,
        data: &[u8],
        old: &mut [u8],
    ) -> Served {
        let size = data.len() / 2;
        if request.number != BYTES || data.len() != 2 * size || size > 16 || old.len() != size {
            return Err(OTHER);
        }
        let (place, _attached) = self.memory.place(remembered, request, size as u64)?;
        let (new, compare) = data.split_at(size);
        let site = self.site();
        let turns = (&site, range_of(request.offset));
        // SAFETY:
        // - the element lies in the window's memory (`place`), which the program keeps valid as in the case of a put; a
        //   rank that can map this memory updates it in the same way as this call, because the turns are those of
        //   this rank's memory in the window;
        // - each operand is `size` bytes of the request, and `old` has `size` bytes.
        let swapped = unsafe {
            let (new, compare, old) = (new.as_ptr(), compare.as_ptr(), old.as_mut_ptr());
            atomic::compare_and_swap(place.origin, new, compare, old, size, turns)
        };
        if matches!((&swapped, size), (Ok(false), 4 | 8)) {
            site.note(1);
        }
        swapped.map(drop).map_err(|error| error.class())
    }
}

/// What this rank knows of another rank of a window.
#[derive(Debug, Default)]
struct Origin {
    /// The requests of the rank that this rank counts.
    requests: CompletionCounter,
    /// Up to which of them the rank knows that all are over.
    served: u64,
    remembered: RememberedTypes,
    /// Number of messages of long puts and gets that are under way.
    long: usize,
    /// Number of messages of long puts that are under way.
    puts: usize,
    /// Gets that wait until the long puts are over, with the types of their elements.
    waiting: VecDeque<(Request, Plan)>,
}

impl Origin {
    /// Counts a message that has ended. Returns whether gets can go on now.
    fn end(&mut self, purpose: Purpose) -> bool {
        let is_put = matches!(purpose, Purpose::Put(_));
        self.long -= 1;
        self.puts -= usize::from(is_put);
        is_put && self.puts == 0 && !self.waiting.is_empty()
    }
}

/// The message of a long put or get that is under way.
#[derive(Debug)]
struct Long {
    id: u64,
    from: usize,
    tag: i32,
    /// The addresses of the memory that the message uses.
    addresses: std::ops::Range<i128>,
    purpose: Purpose,
}

/// A window whose requests this rank serves.
pub(in crate::rma) struct Hosted {
    host: Host,
    context: u64,
    tag: i32,
    buffer: Box<[u8]>,
    /// The receive of the next request; `None` if it is not posted.
    pub receive: Option<u64>,
    /// Whether the receive could not be posted the last time.
    stopped: bool,
    origins: Box<[Origin]>,
    long: Vec<Option<Long>>,
    /// The places of `long` that are free.
    unused: Vec<usize>,
    /// Answers that wait for memory: the rank, the tag and the data.
    unsent: Vec<(usize, i32, Vec<u8>)>,
}

impl fmt::Debug for Hosted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosted").field("tag", &self.tag).finish_non_exhaustive()
    }
}

impl Hosted {
    /// Describes a window whose requests have the tag `tag` in the context `context`.
    pub fn new(host: Host, context: u64, tag: i32) -> Self {
        let origins = host.slots.iter().map(|_| Origin::default()).collect();
        Self {
            host,
            context,
            tag,
            buffer: vec![0; REQUEST].into_boxed_slice(),
            receive: None,
            stopped: false,
            origins,
            long: Vec::new(),
            unused: Vec::new(),
            unsent: Vec::new(),
        }
    }

    /// Receives the next request into the buffer. The caller calls this function only if no such receive is posted.
    pub fn receive_request(&mut self, engine: &mut MessageEngine) -> Result<Operation> {
        self.receive = None;
        let origin = self.buffer.as_mut_ptr();
        let layout = Elements { origin, plan: bytes()?, count: REQUEST as u64 };
        let posting = Posting::new(layout, self.context, Sender::Any, Tag::Is(self.tag))?;
        // SAFETY: the buffer has `REQUEST` bytes. Until the receive has ended, or is cancelled or detached by `close`,
        // this value keeps the buffer and does not touch it. The tag is not negative.
        let received = unsafe { engine.receive(&posting)? };
        self.stopped = false;
        Ok(received)
    }

    /// Tells all ranks that this rank may have lost a request, because a receive could not be posted.
    #[cold]
    pub fn stop(&mut self, class: ErrorClass) {
        if !std::mem::replace(&mut self.stopped, true) {
            (0..self.origins.len()).for_each(|from| self.host.note(from, class));
        }
    }

    /// Returns whether there is something to try again.
    pub fn stalls(&self) -> bool {
        self.stopped || !self.unsent.is_empty()
    }

    /// Sends the answers that wait for memory.
    #[cold]
    pub fn send_again(&mut self, engine: &mut MessageEngine) {
        for (from, tag, mut data) in std::mem::take(&mut self.unsent) {
            self.send(engine, from, tag, &mut data);
        }
    }

    /// Ends all messages.
    pub fn close(&mut self, engine: &mut MessageEngine) {
        for place in 0..self.long.len() {
            let Some(long) = self.take(place) else { continue };
            // A message that comes later is discarded.
            if long.purpose == Purpose::Get || !engine.ignore_receive(long.id) {
                engine.detach(long.id);
            }
            self.ended(engine, &long, Err(OTHER));
        }
        if let Some(receive) = self.receive.take()
            && !engine.cancel_receive(receive)
        {
            engine.requests().orphan(receive);
            engine.detach(receive);
        }
    }

    /// Carries out the request in the buffer, which has the length and the sender of `status`.
    pub fn serve(&mut self, engine: &mut MessageEngine, owner: (u32, usize), status: Status) {
        let Some(from) = self.host.rank_of(status.source) else { return };
        let length = usize::try_from(status.bytes).unwrap_or(0).min(REQUEST);
        let Self { host, buffer, origins, .. } = self;
        let (bytes, origin) = (&mut buffer[..length], &mut origins[from]);
        let Some((request, data)) = Request::decode(bytes) else { return host.note(from, OTHER) };
        let head = length - data.len();
        match request.kind {
            Kind::Put => {
                let served = host.put(&origin.remembered, &request, data);
                host.count(engine, from, origin, served);
            }
            Kind::Accumulate => {
                let data = &mut bytes[head..];
                let served = host.accumulate(&origin.remembered, &request, data, &mut []);
                host.count(engine, from, origin, served);
            }
            Kind::Define => {
                let Request { number, start, count, .. } = request;
                if !matches!(origin.remembered.take(number, start, count, data), Some(Ok(()))) {
                    host.note(from, OTHER);
                }
            }
            // No message of a put has such a tag.
            Kind::LongPut if !is_put_tag(request.tag) => {
                host.count(engine, from, origin, Err(OTHER));
            }
            Kind::LongPut => {
                let plan = plan_of(&origin.remembered, &request).cloned().map_err(Refusal::from);
                let put = plan.and_then(|plan| self.transfer(engine, owner, from, &request, &plan));
                if let Err(Refusal { class, comes }) = put {
                    self.host.count(engine, from, &mut self.origins[from], Err(class));
                    if comes {
                        self.discard(engine, owner, from, request.tag);
                    }
                }
            }
            Kind::Get => match plan_of(&origin.remembered, &request).cloned() {
                Err(class) => self.answer(engine, from, &request, Err(class)),
                Ok(_) if origin.waiting.len() >= MOST_LONG => {
                    self.answer(engine, from, &request, Err(OTHER));
                }
                Ok(plan) if origin.puts > 0 => origin.waiting.push_back((request, plan)),
                Ok(plan) => self.get(engine, owner, from, &request, &plan),
            },
            Kind::GetAccumulate => {
                let mut old = [0_u8; DATA];
                let length = usize::try_from(request.length).unwrap_or(usize::MAX);
                let served = match old.get_mut(..length) {
                    Some(old) => {
                        let data = &mut bytes[head..];
                        host.accumulate(&origin.remembered, &request, data, old).map(|()| old)
                    }
                    None => Err(OTHER),
                };
                self.answer(engine, from, &request, served);
            }
            Kind::CompareAndSwap => {
                let mut old = [0_u8; said::BYTES];
                let length = (data.len() / 2).min(said::BYTES);
                let old = &mut old[..length];
                let served = host.compare_and_swap(&origin.remembered, &request, data, old);
                self.answer(engine, from, &request, served.map(|()| old));
            }
            Kind::Forget => self.forget(engine, owner, from, request.tag),
        }
    }

    /// Sends a short message to rank `from`. If memory has run out, the message waits until there is some.
    fn send(&mut self, engine: &mut MessageEngine, from: usize, tag: i32, data: &mut [u8]) {
        match self.try_send(engine, from, tag, data) {
            Ok(Operation::Pending(id)) => engine.requests().orphan(id),
            Ok(Operation::Done(_)) => {}
            Err(_) if self.unsent.len() < MOST_UNSENT => {
                self.unsent.push((from, tag, data.to_vec()));
            }
            Err(error) => self.host.note(from, error.class()),
        }
    }

    fn try_send(
        &self,
        engine: &mut MessageEngine,
        from: usize,
        tag: i32,
        data: &mut [u8],
    ) -> Result<Operation> {
        let plan = bytes()?;
        let layout = Elements { origin: data.as_mut_ptr(), plan, count: data.len() as u64 };
        let label = Label { context: self.context, tag, bytes: layout.count, types: UNKNOWN };
        let mode = SendMode::Buffered(None);
        let to = Process::new(self.host.slots[from]);
        // SAFETY: the data is readable during the call, and the engine copies what it cannot send at once. `to` is a
        // slot of the job, and the tag is not negative (`Request::decode`).
        unsafe { engine.send(&layout, label, to, mode) }
    }

    /// Carries out a get, whose elements have the type `plan`.
    fn get(
        &mut self,
        engine: &mut MessageEngine,
        owner: (u32, usize),
        from: usize,
        request: &Request,
        plan: &Plan,
    ) {
        if request.length <= said::BYTES as u64 {
            let mut data = [0_u8; said::BYTES];
            let data = &mut data[..request.length as usize];
            let served = self.host.get(plan, request, data);
            return self.answer(engine, from, request, served.map(|()| data));
        }
        if let Err(refusal) = self.transfer(engine, owner, from, request, plan) {
            self.answer(engine, from, request, Err(refusal.class));
        }
    }

    /// Carries out the gets of a rank that have waited for its long puts.
    #[cold]
    fn go_on(&mut self, engine: &mut MessageEngine, owner: (u32, usize), from: usize) {
        for (request, plan) in std::mem::take(&mut self.origins[from].waiting) {
            self.get(engine, owner, from, &request, &plan);
        }
    }

    /// Receives the message of a long put that this rank refuses, without its data. The calling rank waits until the
    /// message has gone. If it cannot send the message, it says so ([`Kind::Forget`]).
    #[cold]
    fn discard(&mut self, engine: &mut MessageEngine, owner: (u32, usize), from: usize, tag: i32) {
        // Only a faulty rank has so many refused puts under way.
        if self.origins[from].long >= 2 * MOST_LONG {
            return;
        }
        let Ok(plan) = bytes() else { return };
        let origin = std::ptr::NonNull::<u8>::dangling().as_ptr();
        let layout = Elements { origin, plan, count: 0 };
        let sender = Sender::Process(Process::new(self.host.slots[from]));
        let Ok(posting) = Posting::new(layout, self.context, sender, Tag::Is(tag)) else { return };
        // SAFETY: the layout has no bytes.
        let started = unsafe { engine.receive(&posting) };
        // An error says that the message has come already, and is too long for no bytes.
        if let Ok(Operation::Pending(id)) = started {
            let (addresses, purpose) = (0..0, Purpose::Refused);
            self.add(engine, owner, Long { id, from, tag, addresses, purpose });
        }
    }

    /// Adds a message that is under way.
    fn add(&mut self, engine: &mut MessageEngine, (source, index): (u32, usize), message: Long) {
        let id = message.id;
        self.origins[message.from].long += 1;
        let place = self.unused.pop().unwrap_or_else(|| {
            self.long.push(None);
            self.long.len() - 1
        });
        self.long[place] = Some(message);
        let token = token_of(index, place + 1);
        engine.requests().own(id, Owner { source, token });
    }

    /// Removes a message from the list.
    fn take(&mut self, place: usize) -> Option<Long> {
        let long = self.long.get_mut(place).and_then(Option::take)?;
        self.unused.push(place);
        Some(long)
    }

    /// Counts a message that has ended and is not in the list any more. Returns whether gets of the rank can go on now.
    fn ended(&mut self, engine: &MessageEngine, long: &Long, served: Served) -> bool {
        let origin = &mut self.origins[long.from];
        let goes_on = origin.end(long.purpose);
        if let Purpose::Put(number) = long.purpose {
            self.host.count_long(engine, long.from, origin, number, served);
        }
        goes_on
    }

    /// Answers a request with data or an error class.
    fn answer(
        &mut self,
        engine: &mut MessageEngine,
        from: usize,
        request: &Request,
        served: Served<&mut [u8]>,
    ) {
        if request.by_words {
            let mut answer = [0_u64; said::BYTES / WORD];
            let bytes = bytemuck::bytes_of_mut(&mut answer);
            // The calling rank asks for words only if they have room for the data.
            let told = served.and_then(|data| {
                bytes.get_mut(..data.len()).ok_or(OTHER)?.copy_from_slice(data);
                Ok(data.len())
            });
            let length = told.unwrap_or(0);
            return self.host.say(engine, from, request.tag, told.map(drop), &answer, length);
        }
        match served {
            Ok(data) => self.send(engine, from, request.tag, data),
            Err(class) => {
                self.host.note_refused(from, class);
                self.send(engine, from, request.tag, &mut []);
            }
        }
    }

    /// Starts the message of a long put or get.
    fn transfer(
        &mut self,
        engine: &mut MessageEngine,
        owner: (u32, usize),
        from: usize,
        request: &Request,
        plan: &Plan,
    ) -> std::result::Result<(), Refusal> {
        let Self { host, origins, context, .. } = self;
        let origin = &mut origins[from];
        let is_put = request.kind == Kind::LongPut;
        if origin.long >= MOST_LONG || request.start != 0 {
            return Err(OTHER.into());
        }
        // From here on, the endpoint's lock, which this source holds, keeps the memory attached: a thread that detaches
        // memory ends the messages that use it, under this lock, before it returns (`withdraw`).
        // The message of a put may have less data than the elements, but what comes is not checked again.
        let count = if request.number == BYTES { request.length } else { request.count };
        let room = plan.packed_bytes(count).map_err(|_| RANGE)?;
        if request.length > room {
            return Err(RANGE.into());
        }
        let (elements, attached) = host.memory.place_of(plan, request, room)?;
        drop(attached);
        let layout = elements.view();
        let ((first, end), at) =
            (layout.plan.footprint().reach(layout.count), layout.origin as i128);
        let addresses = at + first..at + end;
        let (context, tag, slot) = (*context, request.tag, Process::new(host.slots[from]));
        let started = if is_put {
            let posting = Posting::new(layout, context, Sender::Process(slot), Tag::Is(tag));
            let posting = posting.map_err(|error| error.class())?;
            // SAFETY: the elements lie in the window's memory, which the program keeps valid until it frees the window
            // or detaches the memory; both end the receive first. The program does not access the elements during the
            // epoch of the calling rank. The capacity is the packed size of the elements (`Posting::new`).
            unsafe { engine.receive(&posting) }
        } else {
            if layout.bytes().ok() != Some(request.length) {
                return Err(OTHER.into());
            }
            let label = Label { context, tag, bytes: request.length, types: UNKNOWN };
            // SAFETY: the elements lie in the window's memory, which the program keeps valid until it frees the window
            // or detaches the memory; both end the send first. The program does not change the elements during the
            // epoch of the calling rank. `label.bytes` is their packed size (checked above). The standard mode lends
            // no memory.
            unsafe { engine.send(&layout, label, slot, SendMode::Standard) }
        };
        match started {
            Ok(Operation::Done(_)) if is_put => host.count(engine, from, origin, Ok(())),
            Ok(Operation::Done(_)) => {}
            Ok(Operation::Pending(id)) => {
                origin.puts += usize::from(is_put);
                let purpose = match is_put {
                    true => Purpose::Put(origin.requests.begin()),
                    false => Purpose::Get,
                };
                self.add(engine, owner, Long { id, from, tag, addresses, purpose });
            }
            // The message of a put had come already, and has gone with the error.
            Err(error) => return Err(Refusal { class: error.class(), comes: false }),
        }
        Ok(())
    }

    /// Ends the message of a long put or get with the index `place`, which has the result `result`.
    pub fn transferred(
        &mut self,
        engine: &mut MessageEngine,
        owner: (u32, usize),
        place: usize,
        result: Result<Status>,
    ) {
        let Some(long) = self.take(place) else { return };
        if self.ended(engine, &long, result.map(drop).map_err(|error| error.class())) {
            self.go_on(engine, owner, long.from);
        }
    }

    /// Ends the long put of rank `from` with this tag, whose message does not come.
    #[cold]
    fn forget(&mut self, engine: &mut MessageEngine, owner: (u32, usize), from: usize, tag: i32) {
        let is = |long: &Long| long.from == from && long.tag == tag && long.purpose != Purpose::Get;
        for place in 0..self.long.len() {
            if self.long[place].as_ref().is_some_and(is)
                && let Some(long) = self.take(place)
            {
                engine.detach(long.id);
                self.ended(engine, &long, Err(OTHER));
            }
        }
        self.all_go_on(engine, owner);
    }

    /// Ends the use of memory in a range of addresses, which the program detaches, by all messages.
    #[cold]
    pub fn withdraw(
        &mut self,
        engine: &mut MessageEngine,
        owner: (u32, usize),
        range: &std::ops::Range<i128>,
    ) {
        for place in 0..self.long.len() {
            let Some(long) = &mut self.long[place] else { continue };
            if long.addresses.start >= range.end || range.start >= long.addresses.end {
                continue;
            }
            if let Purpose::Put(number) = long.purpose
                && engine.discard_receive(long.id)
            {
                // The message has not come yet. Its data are discarded then.
                (long.addresses, long.purpose) = (0..0, Purpose::Refused);
                let (from, origin) = (long.from, &mut self.origins[long.from]);
                origin.puts -= 1;
                self.host.count_long(engine, from, origin, number, Err(RANGE));
            } else if let Some(long) = self.take(place) {
                engine.detach(long.id);
                self.ended(engine, &long, Err(RANGE));
            }
        }
        self.all_go_on(engine, owner);
    }

    /// Carries out the gets of all ranks that no longer wait for long puts.
    fn all_go_on(&mut self, engine: &mut MessageEngine, owner: (u32, usize)) {
        for from in 0..self.origins.len() {
            if self.origins[from].puts == 0 {
                self.go_on(engine, owner, from);
            }
        }
    }
}
