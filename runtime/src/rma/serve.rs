//! The target of requests (`form.rs`): this rank carries out the operations of other ranks on memory that those ranks
//! cannot map. This is private memory of the program, from which a window was created or which is attached to a dynamic
//! window.
//!
//! [`Hosts`] is a source of progress. It keeps a receive for the requests of each window as long as the window exists,
//! and carries out a request in the next call of this rank that makes progress (for example a fence, a flush or a
//! receive). It then counts the request in a word of the calling rank's block, and wakes that rank. The message of a
//! long put or get goes straight to or from the memory of the window; a long put counts when its message has arrived.
//!
//! A get of a rank whose long puts are under way waits until they are over, so that the get sees their data.
//!
//! The target checks every word of a request: another rank may send anything. A request that the target refuses counts
//! too; the error class goes to another word of the calling rank's block.

use super::accumulate::{Element, Job, Place as At, Stream, Update};
use super::atomic;
use super::form::{BYTES, DATA, Kind, REQUEST, Request, WORD};
use super::place::{Memory, OTHER, Place, RANGE, Served, plan_of};
use super::tally::Tally;
use super::types::Heard;
use super::words::{SharedWord, Word, Words, classes, said};
use crate::comm::{Communicator, Space};
use crate::commit::bytes;
use crate::endpoint::engine::{How, MessageEngine};
use crate::endpoint::progress::Endpoint;
use crate::endpoint::requests::Owner;
use crate::endpoint::sources::{Errand, Panic, Source};
use crate::message::label::{Label, Sender, Slot};
use crate::message::payload::{Backing, LayoutRef, Posting};
use crate::message::typecheck::UNKNOWN;
use crate::message::{Operation, Status, Tag};
use crate::schedule::part::Part;
use crate::{Datatype, ErrorClass, ErrorKind, Plan, Result};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use typepack_engine::{pack_raw, unpack_raw};

/// The greatest number of long puts and gets of one rank that are under way, and of its gets that wait. A calling rank
/// has fewer (`asks.rs`), unless many of its threads start operations at the same time.
const MOST_LONG: usize = 1 << 14;

/// What this rank needs to carry out the requests of a window.
#[derive(Debug)]
pub(super) struct Host {
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
            engine.ring(Slot::new(self.slots[from]));
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
    fn put(&self, heard: &Heard, request: &Request, data: &[u8]) -> Served {
        let place = self.memory.place(heard, request, data.len() as u64)?;
        let range = request.start..request.start + data.len() as u64;
        // SAFETY: the elements lie in the window's memory, which the program keeps valid until it frees the window or
        // detaches the memory, and both wait for this call. The range lies within the packed bytes of the elements
        // (`place` has checked both), and `data` has as many bytes. `data` is memory of this source, so the two do not
        // overlap.
        unsafe { unpack_raw(&place.plan, place.count, place.origin, range, data.as_ptr()) };
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
        let class = served.err().map_or(0, |class| u64::from(class.0.unsigned_abs()).max(1));
        // The answer comes before its tag.
        if let Ok(word) = word(said::ANSWERED) {
            word.set(u64::from(tag as u32) | class << 32);
            engine.ring(Slot::new(self.slots[from]));
        }
    }

    /// Carries out a get of a few bytes.
    fn get(&self, plan: &Plan, request: &Request, to: &mut [u8]) -> Served {
        let place = self.memory.place_of(plan, request, to.len() as u64)?;
        let range = request.start..request.start + to.len() as u64;
        // SAFETY: the elements lie in the window's memory, and the range in their packed bytes, as for a put. `to` has
        // as many bytes, and is memory of this source.
        unsafe { pack_raw(&place.plan, place.count, place.origin, range, to.as_mut_ptr()) };
        Ok(())
    }

    /// Carries out an accumulate, whose operands are `data`. The old values go to `old`, unless `old` is empty.
    fn accumulate(
        &self,
        heard: &Heard,
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
        let place = self.memory.place(heard, request, length as u64)?;
        let element = Element::new(ty);
        let size = element.size();
        let whole = |bytes: u64| bytes.is_multiple_of(size.max(1) as u64);
        if size == 0 || !whole(length as u64) || !whole(request.start) {
            return Err(OTHER);
        }
        let combine = element.combine(update).map_err(|error| error.class())?;
        let job = Job {
            words: &self.words,
            rank: self.rank,
            own: self.own,
            may_spin: false,
            target: self.rank,
            element: &element,
            elements: length / size,
            update,
            combine,
            alone: false,
        };
        let base = match self.memory {
            Memory::Piece(base, _) => base,
            Memory::Attached(_) => 0,
        };
        // Both ranks must choose the same lock for an element, so the offset counts from the start of the window.
        let offset = (place.origin as usize).wrapping_sub(base) as i64;
        let at = At { at: place.origin, offset, plan: &place.plan, count: place.count };
        let byte = bytes().map_err(|error| error.class())?;
        let part = |memory: &mut [u8]| Part {
            origin: memory.as_mut_ptr(),
            plan: byte,
            count: memory.len() as u64,
        };
        let (operands, results) = (part(data), part(old));
        let operands = Some(&operands).filter(|_| update != Update::NoOp);
        let results = Some(&results).filter(|part| part.count > 0);
        let range = request.start..request.start + length as u64;
        // SAFETY: the elements lie in the window's memory, and the range in their packed bytes (`place`). The operands
        // and the results have as many bytes, and are memory of this source. If a run ends within an element, `run_of`
        // updates only the elements that the run holds completely.
        let done = unsafe { job.run(&at, &Stream::new(operands), &Stream::new(results), range) };
        done.map_err(|error| error.class())
    }

    /// Carries out a compare and swap. The old value goes to `old`, which is as long as the element.
    fn compare_and_swap(
        &self,
        heard: &Heard,
        request: &Request,
        data: &[u8],
        old: &mut [u8],
    ) -> Served {
        let size = data.len() / 2;
        if request.number != BYTES || data.len() != 2 * size || size > 16 || old.len() != size {
            return Err(OTHER);
        }
        let place = self.memory.place(heard, request, size as u64)?;
        let (new, compare) = data.split_at(size);
        let held = || {
            let (words, own) = (&self.words, self.own);
            super::ranges::hold_range(words, self.rank, request.offset, own, false)
        };
        let ranks = (self.rank, self.own);
        let inside = || super::mechanism::begin(&self.words, ranks, self.rank, 1);
        // SAFETY:
        // - the element lies in the window's memory (`place`), which the program keeps valid as in the case of a put; a
        //   rank that can map this memory updates it in the same way as this call: by instructions as long as the
        //   value of `inside` lives, and under the lock of `held` otherwise, because both are those of this rank's
        //   memory in the window;
        // - each operand is `size` bytes of the request, and `old` has `size` bytes.
        let swapped = unsafe {
            let (new, compare, old) = (new.as_ptr(), compare.as_ptr(), old.as_mut_ptr());
            atomic::compare_and_swap(place.origin, new, compare, old, size, inside, held)
        };
        swapped.map(drop).map_err(|error| error.class())
    }
}

/// What this rank knows of another rank of a window.
#[derive(Debug, Default)]
struct Origin {
    /// The requests of the rank that this rank counts.
    requests: Tally,
    /// Up to which of them the rank knows that all are over.
    served: u64,
    heard: Heard,
    /// Number of messages of long puts and gets that are under way.
    long: usize,
    /// Number of messages of long puts that are under way.
    puts: usize,
    /// Gets that wait until the long puts are over, with the types of their elements.
    waiting: VecDeque<(Request, Plan)>,
}

impl Origin {
    /// Counts a message that has ended. Returns whether gets can go on now.
    fn end(&mut self, is_put: bool) -> bool {
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
    /// The number of the request of a put; `None` for a get.
    put: Option<u64>,
}

/// A window whose requests this rank serves.
struct Hosted {
    host: Host,
    context: u64,
    tag: i32,
    buffer: Box<[u8]>,
    /// The receive of the next request.
    receive: u64,
    origins: Box<[Origin]>,
    long: Vec<Option<Long>>,
}

impl fmt::Debug for Hosted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosted").field("tag", &self.tag).finish_non_exhaustive()
    }
}

/// The tokens of a window's requests: the index of the window, and for a long put or get the index of its message plus
/// one.
fn token_of(index: usize, long: usize) -> u64 {
    index as u64 | (long as u64) << 32
}

impl Hosted {
    /// Carries out the request in the buffer, which has the length and the sender of `status`.
    fn serve(&mut self, engine: &mut MessageEngine, owner: (u32, usize), status: Status) {
        let Some(from) = self.host.rank_of(status.source) else { return };
        let length = usize::try_from(status.bytes).unwrap_or(0).min(REQUEST);
        let Self { host, buffer, origins, .. } = self;
        let (bytes, origin) = (&mut buffer[..length], &mut origins[from]);
        let Some((request, data)) = Request::decode(bytes) else { return host.note(from, OTHER) };
        let head = length - data.len();
        match request.kind {
            Kind::Put => {
                let served = host.put(&origin.heard, &request, data);
                host.count(engine, from, origin, served);
            }
            Kind::Accumulate => {
                let data = &mut bytes[head..];
                let served = host.accumulate(&origin.heard, &request, data, &mut []);
                host.count(engine, from, origin, served);
            }
            Kind::Define => {
                let Request { number, start, count, .. } = request;
                if !matches!(origin.heard.take(number, start, count, data), Some(Ok(()))) {
                    host.note(from, OTHER);
                }
            }
            Kind::LongPut => {
                let plan = plan_of(&origin.heard, &request).cloned();
                let put = plan.and_then(|plan| self.transfer(engine, owner, from, &request, &plan));
                if let Err(class) = put {
                    self.discard(engine, from, request.tag);
                    self.host.count(engine, from, &mut self.origins[from], Err(class));
                }
            }
            Kind::Get => match plan_of(&origin.heard, &request).cloned() {
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
                        host.accumulate(&origin.heard, &request, data, old).map(|()| old)
                    }
                    None => Err(OTHER),
                };
                self.answer(engine, from, &request, served);
            }
            Kind::CompareAndSwap => {
                let mut old = [0_u8; said::BYTES];
                let length = (data.len() / 2).min(said::BYTES);
                let old = &mut old[..length];
                let served = host.compare_and_swap(&origin.heard, &request, data, old);
                self.answer(engine, from, &request, served.map(|()| old));
            }
            Kind::Forget => self.forget(engine, owner, from, request.tag),
        }
    }

    /// Sends a short message to rank `from`.
    fn send(&self, engine: &mut MessageEngine, from: usize, tag: i32, data: &mut [u8]) {
        let Ok(plan) = bytes() else { return };
        let layout = LayoutRef { origin: data.as_mut_ptr(), plan, count: data.len() as u64 };
        let label = Label { context: self.context, tag, bytes: layout.count, types: UNKNOWN };
        let how = How { synchronous: false, backing: Backing::Copy };
        let to = Slot::new(self.host.slots[from]);
        // SAFETY: the data is readable during the call, and the engine copies what it cannot send at once. `to` is a
        // slot of the job, and the tag is not negative (`Request::decode`).
        let sent = unsafe { engine.send(&layout, label, to, how) };
        // If the message cannot be sent, memory has run out, and the asking rank waits until the job ends.
        if let Ok(Operation::Pending(id)) = sent {
            engine.requests().orphan(id);
        }
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
        if let Err(class) = self.transfer(engine, owner, from, request, plan) {
            self.answer(engine, from, request, Err(class));
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
    /// message has gone.
    #[cold]
    fn discard(&self, engine: &mut MessageEngine, from: usize, tag: i32) {
        let Ok(plan) = bytes() else { return };
        let origin = std::ptr::NonNull::<u8>::dangling().as_ptr();
        let layout = LayoutRef { origin, plan, count: 0 };
        let sender = Sender::Slot(Slot::new(self.host.slots[from]));
        let Ok(posting) = Posting::new(layout, self.context, sender, Tag::Is(tag)) else { return };
        // SAFETY: the layout has no bytes. If the receive cannot be posted, memory has run out, and the asking rank
        // waits until the job ends.
        if let Ok(Operation::Pending(id)) = unsafe { engine.receive(&posting) } {
            engine.requests().orphan(id);
        }
    }

    /// Answers a request with data or an error class.
    fn answer(
        &self,
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
        (source, index): (u32, usize),
        from: usize,
        request: &Request,
        plan: &Plan,
    ) -> Served {
        let Self { host, origins, long, context, .. } = self;
        let origin = &mut origins[from];
        let is_put = request.kind == Kind::LongPut;
        if origin.long >= MOST_LONG || request.start != 0 {
            return Err(OTHER);
        }
        let place = host.memory.place_of(plan, request, request.length)?;
        let addresses = place.addresses();
        let Place { origin: at, plan, count, attached } = place;
        // From here on, the endpoint's lock, which this source holds, keeps the memory attached: a thread that detaches
        // memory ends the messages that use it, under this lock, before it returns (`withdraw`).
        drop(attached);
        let layout = LayoutRef { origin: at, plan: &plan, count };
        let (context, tag, slot) = (*context, request.tag, Slot::new(host.slots[from]));
        let started = if is_put {
            let posting = Posting::new(layout, context, Sender::Slot(slot), Tag::Is(tag));
            let posting = posting.map_err(|error| error.class())?;
            // SAFETY: the elements lie in the window's memory, which the program keeps valid until it frees the window
            // or detaches the memory; both end the receive first. The program does not access the elements during the
            // epoch of the calling rank. The capacity is the packed size of the elements (`Posting::new`).
            unsafe { engine.receive(&posting) }
        } else {
            if plan.packed_bytes(count).ok() != Some(request.length) {
                return Err(OTHER);
            }
            let label = Label { context, tag, bytes: request.length, types: UNKNOWN };
            // SAFETY: the elements lie in the window's memory, which the program keeps valid until it frees the window
            // or detaches the memory; both end the send first. The program does not change the elements during the
            // epoch of the calling rank. `label.bytes` is their packed size (checked above). The standard mode lends
            // no memory.
            unsafe { engine.send(&layout, label, slot, How::STANDARD) }
        };
        match started {
            Ok(Operation::Done(_)) if is_put => host.count(engine, from, origin, Ok(())),
            Ok(Operation::Done(_)) => {}
            Ok(Operation::Pending(id)) => {
                origin.long += 1;
                origin.puts += usize::from(is_put);
                let put = is_put.then(|| origin.requests.begin());
                let message = Some(Long { id, from, tag, addresses, put });
                let place = long.iter().position(Option::is_none).unwrap_or(long.len());
                match long.get_mut(place) {
                    Some(free) => *free = message,
                    None => long.push(message),
                }
                let token = token_of(index, place + 1);
                engine.requests().own(id, Owner { source, token });
            }
            Err(error) => return Err(error.class()),
        }
        Ok(())
    }

    /// Ends the message of a long put or get with the index `place`, which has the result `result`.
    fn transferred(
        &mut self,
        engine: &mut MessageEngine,
        owner: (u32, usize),
        place: usize,
        result: Result<Status>,
    ) {
        let Some(long) = self.long.get_mut(place).and_then(Option::take) else { return };
        let origin = &mut self.origins[long.from];
        let goes_on = origin.end(long.put.is_some());
        if let Some(number) = long.put {
            let served = result.map(drop).map_err(|error| error.class());
            self.host.count_long(engine, long.from, origin, number, served);
        }
        if goes_on {
            self.go_on(engine, owner, long.from);
        }
    }

    /// Ends the long put of rank `from` with this tag, whose message does not come.
    #[cold]
    fn forget(&mut self, engine: &mut MessageEngine, owner: (u32, usize), from: usize, tag: i32) {
        let is = |long: &Long| long.from == from && long.tag == tag && long.put.is_some();
        self.end(engine, is, OTHER, false);
        self.all_go_on(engine, owner);
    }

    /// Ends the messages that use memory in a range of addresses, which the program detaches.
    #[cold]
    fn withdraw(
        &mut self,
        engine: &mut MessageEngine,
        owner: (u32, usize),
        range: &std::ops::Range<i128>,
    ) {
        let uses =
            |long: &Long| long.addresses.start < range.end && range.start < long.addresses.end;
        self.end(engine, uses, RANGE, true);
        self.all_go_on(engine, owner);
    }

    /// Ends the messages for which `which` returns true. Their puts count as refused with `class`. `come` says whether
    /// the messages that have not arrived will still come; their data are discarded then.
    fn end(
        &mut self,
        engine: &mut MessageEngine,
        which: impl Fn(&Long) -> bool,
        class: ErrorClass,
        come: bool,
    ) {
        for place in &mut self.long {
            let Some(long) = place.take_if(|long| which(long)) else { continue };
            if !(come && long.put.is_some() && engine.ignore_receive(long.id)) {
                engine.detach(long.id);
            }
            let origin = &mut self.origins[long.from];
            origin.end(long.put.is_some());
            if let Some(number) = long.put {
                self.host.count_long(engine, long.from, origin, number, Err(class));
            }
        }
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

/// The windows whose requests this rank serves: a source of progress.
#[derive(Debug)]
pub(super) struct Hosts {
    number: u32,
    windows: Vec<Option<Hosted>>,
}

/// Adds the sources of requests and of answers to an endpoint.
///
/// # Errors
/// Returns `ErrorKind::State` after finalization.
pub(crate) fn register(endpoint: &Endpoint) -> Result<()> {
    endpoint.with_core(|core| {
        core.register(|number| Hosts { number, windows: Vec::new() });
        // The message of a long put follows its request in the ring. If the receive of the message exists when the rank
        // reads the message, the data goes straight to its place.
        core.with(|hosts: &mut Hosts, engine| engine.requests().set_prompt(hosts.number))
    })??;
    super::answers::register(endpoint)
}

impl Hosts {
    /// First serves the requests of a window that have arrived already, and then posts the receive of the next request.
    fn post(&mut self, engine: &mut MessageEngine, index: usize) -> Result<()> {
        loop {
            let Some(Some(hosted)) = self.windows.get_mut(index) else { return Ok(()) };
            let origin = hosted.buffer.as_mut_ptr();
            let layout = LayoutRef { origin, plan: bytes()?, count: REQUEST as u64 };
            let tag = Tag::Is(hosted.tag);
            let posting = Posting::new(layout, hosted.context, Sender::Any, tag)?;
            // SAFETY: the buffer has `REQUEST` bytes. Until the receive has ended, or is cancelled or detached by the
            // drop of `Hosting`, this source keeps the buffer and does not touch it. The tag is not negative.
            match unsafe { engine.receive(&posting)? } {
                Operation::Done(status) => hosted.serve(engine, (self.number, index), status),
                Operation::Pending(id) => {
                    hosted.receive = id;
                    let token = token_of(index, 0);
                    engine.requests().own(id, Owner { source: self.number, token });
                    return Ok(());
                }
            }
        }
    }

    /// Calls `change` with a window, if it exists.
    fn with(&mut self, index: usize, change: impl FnOnce(&mut Hosted)) {
        if let Some(Some(hosted)) = self.windows.get_mut(index) {
            change(hosted);
        }
    }
}

impl Source for Hosts {
    fn completed(&mut self, engine: &mut MessageEngine, token: u64, result: Result<Status>) {
        let (index, long) = (token as u32 as usize, (token >> 32) as usize);
        if long > 0 {
            let owner = (self.number, index);
            return self.with(index, |hosted| {
                hosted.transferred(engine, owner, long - 1, result);
            });
        }
        if let Ok(status) = result {
            let owner = (self.number, index);
            self.with(index, |hosted| hosted.serve(engine, owner, status));
        }
        // If the receive cannot be posted, memory has run out, and this rank serves no more requests of the window.
        let _posted = self.post(engine, index);
    }

    fn progress(&mut self, _engine: &mut MessageEngine) -> Result<bool> {
        Ok(false)
    }

    fn nap(&self) -> Option<Duration> {
        None
    }

    fn has_errand(&self) -> bool {
        false
    }

    fn errand(&mut self) -> Option<(u64, Errand)> {
        None
    }

    fn ran(&mut self, _: &mut MessageEngine, _: u64, panic: Option<Panic>) -> Option<Panic> {
        panic
    }

    fn detach(&mut self, _: &mut MessageEngine, _: u64) -> bool {
        true
    }

    fn is_needed(&self) -> bool {
        false
    }
}

/// Serves the requests of a window until the value is dropped.
pub(super) struct Hosting {
    endpoint: Arc<Endpoint>,
    index: usize,
}

impl fmt::Debug for Hosting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosting").field("index", &self.index).finish_non_exhaustive()
    }
}

impl Hosting {
    /// Begins to serve the requests with the tag `tag` in the message space of `comm` for windows.
    pub fn begin(
        comm: &Communicator,
        tag: i32,
        words: &Arc<Words>,
        memory: Memory,
    ) -> Result<Self> {
        let endpoint = comm.endpoint().clone();
        let slot = |rank| comm.slot(rank, "rank", ErrorKind::Rank).map(Slot::index);
        let slots = (0..comm.size()).map(slot).collect::<Result<_>>()?;
        let (rank, own) = (comm.rank(), endpoint.rank());
        let host = Host { words: words.clone(), rank, own, memory, slots };
        let context = comm.space(Space::Window);
        let buffer = vec![0; REQUEST].into_boxed_slice();
        let origins = (0..comm.size()).map(|_| Origin::default()).collect();
        let long = Vec::new();
        let hosted = Hosted { host, context, tag, buffer, receive: 0, origins, long };
        let index = endpoint.with_core(|core| {
            core.with(|hosts: &mut Hosts, engine| {
                let free = hosts.windows.iter().position(Option::is_none);
                let index = free.unwrap_or_else(|| {
                    hosts.windows.push(None);
                    hosts.windows.len() - 1
                });
                hosts.windows[index] = Some(hosted);
                hosts.post(engine, index).map(|()| index)
            })
        })???;
        Ok(Self { endpoint, index })
    }

    /// Ends the messages that use memory in a range of addresses. Requests that come later must not name the memory any
    /// more: the caller has removed the memory from the table of attached memory.
    ///
    /// # Errors
    /// Returns `ErrorKind::State` after finalization or in a forked child, and `ErrorKind::Internal` after a panic.
    pub fn withdraw(&self, range: std::ops::Range<i128>) -> Result<()> {
        self.endpoint.with_core(|core| {
            core.with(|hosts: &mut Hosts, engine| {
                let owner = (hosts.number, self.index);
                hosts.with(self.index, |hosted| hosted.withdraw(engine, owner, &range));
            })
        })?
    }
}

impl Drop for Hosting {
    fn drop(&mut self) {
        let index = self.index;
        // After finalization `with_core` fails. The entry then stays in the list, and nothing uses it.
        let removed = self.endpoint.with_core(|core| {
            core.with(|hosts: &mut Hosts, engine| {
                let mut hosted = hosts.windows.get_mut(index).and_then(Option::take);
                if let Some(hosted) = &mut hosted {
                    hosted.end(engine, |_| true, OTHER, true);
                    if !engine.cancel_receive(hosted.receive) {
                        engine.requests().orphan(hosted.receive);
                        engine.detach(hosted.receive);
                    }
                }
                hosted
            })
        });
        drop(removed);
    }
}
