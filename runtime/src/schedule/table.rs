//! All schedules of this process. Their table is a source of progress (`endpoint/sources.rs`): the endpoint
//! tells the table when a message of a schedule is complete.
//!
//! The table issues each step of a schedule as soon as the steps that it waits for are over: at the start,
//! and whenever a message or a continuation of the schedule is over. A continuation (`endpoint/sources.rs`) is work
//! that a thread does while it does not hold the endpoint's lock: a long copy, a long combination, or a
//! call of a user's function. The table itself does short copies and combinations at once.
//!
//! Invariant: an entry of the table is used again only after every message of its schedule is over or
//! detached, so the table never mistakes a late completion for a completion of the next schedule in this
//! entry.

use super::program::{Action, Builder, Schedule};
use super::sizes::{COMPARE, check_own, unequal};
use crate::commit::bytes;
use crate::endpoint::engine::MessageEngine;
use crate::endpoint::progress::Awaited;
use crate::endpoint::requests::{Owner, Request};
use crate::endpoint::sources::{Combine, Continuation, Panic, Source as ProgressSource};
use crate::message::label::{Label, Sender};
use crate::message::payload::{Posting, SendMode, Sink, Supply, copy_layout};
use crate::message::typecheck::{self, VOID};
use crate::message::{Operation, Status, Tag};
use crate::process::Process;
use crate::settings::Settings;
use crate::shm::waiting::Kind;
use crate::{Error, ErrorKind, Plan, Result};
use std::collections::VecDeque;
use std::ops::Range;
use typepack_engine::Elements;
use typepack_engine::reserve::insist;

/// Minimum length in bytes of a copy or combination that runs as a continuation.
const LONG: u64 = 32 << 10;

/// Number of entries of the table that keep scratch memory between schedules. Small programs have at most
/// this number of collective calls under way at once.
const KEEP_SCRATCH: usize = 2;

/// The context and the tag of a schedule's messages.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The context.
    pub context: u64,
    /// The tag.
    pub tag: i32,
}

/// Number of different tags that the rounds of a persistent operation use in turn.
pub const ROUNDS: i32 = 16;

/// The party that gets the result of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiter {
    /// A caller that waits and fetches the result.
    Caller,
    /// The holder of the request with this number.
    Request(u64),
    /// Nobody. The table discards the result.
    Nobody,
}

#[derive(Debug)]
enum Life {
    /// This entry of the table is free.
    Free,
    /// The schedule has not started: its steps are being listed, or it is a kept schedule between two
    /// rounds.
    Idle,
    Running(Waiter),
    /// The schedule is over, and the caller has not fetched this result yet.
    Over(Result<()>),
}

#[derive(Debug)]
struct Entry {
    schedule: Schedule,
    life: Life,
    place: Place,
    /// True if a persistent operation owns the schedule and may start it again.
    kept: bool,
    /// Number of rounds that have been started. Only its value modulo [`ROUNDS`] has a meaning.
    rounds: i32,
}

/// The state of a step after it was issued.
enum Issued {
    Over(Result<()>),
    InFlight(u64),
    Continuation,
}

/// The schedules of this process.
#[derive(Debug)]
pub struct Schedules {
    /// The number under which the endpoint has registered this table as a source of progress.
    number: u32,
    /// This rank.
    rank: usize,
    entries: Vec<Entry>,
    free: Vec<u32>,
    continuations: VecDeque<(u32, u32)>,
    /// User functions that are no longer needed. A thread drops them when it does not hold the endpoint's
    /// lock, because the drop may call this library.
    dropped: Vec<Combine>,
    /// Panic payloads of user functions, each with the index of its schedule. Only schedules whose callers
    /// wait have an entry.
    panics: Vec<(u32, Panic)>,
}

impl Schedules {
    /// Creates an empty table for rank `rank`. `number` is the number under which the endpoint registers
    /// the table as a source of progress.
    pub fn new(number: u32, rank: usize) -> Self {
        Self {
            number,
            rank,
            entries: Vec::new(),
            free: Vec::new(),
            continuations: VecDeque::new(),
            dropped: Vec::new(),
            panics: Vec::new(),
        }
    }

    /// Takes a free entry of the table and lists the steps of `build` there. Returns the index of the
    /// entry.
    fn list<'a>(
        &mut self,
        place: Place,
        build: impl FnOnce(&mut Builder<'_, 'a>) -> Result<()>,
    ) -> Result<u32> {
        let index = self.free.pop().unwrap_or_else(|| {
            let (schedule, life) = (Schedule::default(), Life::Free);
            self.entries.push(Entry { schedule, life, place, kept: false, rounds: 0 });
            self.entries.len() as u32 - 1
        });
        let entry = &mut self.entries[index as usize];
        entry.life = Life::Idle;
        entry.place = place;
        let built = build(&mut Builder::new(&mut entry.schedule));
        if let Err(error) = built {
            self.release(index);
            return Err(error);
        }
        Ok(index)
    }

    fn release(&mut self, index: u32) {
        let entry = &mut self.entries[index as usize];
        if let Some(combine @ Combine::User(_)) = entry.schedule.combine.take() {
            self.dropped.push(combine);
        }
        entry.schedule.clear((index as usize) < KEEP_SCRATCH);
        entry.life = Life::Free;
        entry.kept = false;
        entry.rounds = 0;
        self.free.push(index);
    }

    /// Starts a schedule for a caller that waits. Returns the number under which the caller
    /// [`fetch`](Self::fetch)es the result or [`abandon`](Self::abandon)s the schedule.
    ///
    /// # Safety
    ///
    /// - The memory that `build` lists is valid for the reads and writes of its steps until the result has
    ///   been fetched or the schedule abandoned. Until then nobody else uses this memory.
    /// - The plans that `build` lists are valid until the result has been fetched or the schedule
    ///   abandoned.
    ///
    /// # Errors
    /// Returns the errors of `build`, and then no step has started. Returns `ErrorKind::NoMemory` if there is no memory
    /// for the steps; then the schedule tells that to the ranks that wait for this rank's data.
    #[inline]
    pub unsafe fn start_waiting<'a>(
        &mut self,
        engine: &mut MessageEngine,
        place: Place,
        build: impl FnOnce(&mut Builder<'_, 'a>) -> Result<()>,
    ) -> Result<u32> {
        let index = self.list(place, build)?;
        self.refuse(engine, index)?;
        let entry = &mut self.entries[index as usize];
        entry.schedule.rewind();
        entry.life = Life::Running(Waiter::Caller);
        self.advance(engine, index);
        Ok(index)
    }

    /// If there was no memory for a schedule, starts it as if the caller had abandoned it at once, so that it tells the
    /// ranks that wait for this rank's data, and returns the error.
    #[inline]
    fn refuse(&mut self, engine: &mut MessageEngine, index: u32) -> Result<()> {
        let entry = &mut self.entries[index as usize];
        let Some(error) = entry.schedule.refused.take() else { return Ok(()) };
        // No step combines elements any more.
        if let Some(combine @ Combine::User(_)) = entry.schedule.combine.take() {
            self.dropped.push(combine);
        }
        entry.schedule.keep_plans();
        entry.schedule.rewind();
        (entry.schedule.void, entry.schedule.checked) = (true, 0);
        entry.life = Life::Running(Waiter::Nobody);
        self.advance(engine, index);
        Err(error)
    }

    /// Starts a schedule and opens a request for it.
    ///
    /// # Safety
    ///
    /// - The memory that `build` lists is valid for the reads and writes of its steps until the operation
    ///   is complete or detached, and nobody else uses it until then.
    ///
    /// # Errors
    /// Returns the errors of [`start_waiting`](Self::start_waiting).
    pub unsafe fn start<'a>(
        &mut self,
        engine: &mut MessageEngine,
        place: Place,
        build: impl FnOnce(&mut Builder<'_, 'a>) -> Result<()>,
    ) -> Result<Operation> {
        let room = insist(|| engine.requests().make_room());
        let index = self.list(place, build)?;
        if let Err(error) = room {
            self.entries[index as usize].schedule.refused.get_or_insert(error);
        }
        self.refuse(engine, index)?;
        self.entries[index as usize].schedule.keep_plans();
        self.begin(engine, index)
    }

    /// Keeps a schedule for later starts, and returns its index.
    ///
    /// # Errors
    /// Returns the errors of [`start_waiting`](Self::start_waiting).
    pub fn keep<'a>(
        &mut self,
        place: Place,
        build: impl FnOnce(&mut Builder<'_, 'a>) -> Result<()>,
    ) -> Result<u32> {
        let index = self.list(place, build)?;
        let entry = &mut self.entries[index as usize];
        if let Some(error) = entry.schedule.refused.take() {
            self.release(index);
            return Err(error);
        }
        entry.schedule.keep_plans();
        entry.kept = true;
        Ok(index)
    }

    /// Starts a kept schedule.
    ///
    /// # Safety
    ///
    /// - The memory in the schedule's steps is valid for the reads and writes of these steps until the
    ///   operation is complete or detached, and nobody else uses it until then.
    ///
    /// # Errors
    /// Returns `ErrorKind::Request` if the schedule has been started and is not over, and `ErrorKind::NoMemory` if
    /// memory ran out.
    pub unsafe fn restart(&mut self, engine: &mut MessageEngine, index: u32) -> Result<Operation> {
        insist(|| engine.requests().make_room())?;
        let entry = &mut self.entries[index as usize];
        if !matches!(entry.life, Life::Idle) {
            let detail = "the operation has been started and is not complete";
            return Err(Error::new(ErrorKind::Request, "request", detail));
        }
        let round = entry.rounds % ROUNDS;
        entry.rounds = round + 1;
        entry.place.tag = entry.place.tag / ROUNDS * ROUNDS + round;
        self.begin(engine, index)
    }

    fn begin(&mut self, engine: &mut MessageEngine, index: u32) -> Result<Operation> {
        let owner = Owner { source: self.number, token: u64::from(index) << 32 };
        let id = engine.requests().open(Request::Source(owner));
        let entry = &mut self.entries[index as usize];
        entry.schedule.rewind();
        entry.life = Life::Running(Waiter::Request(id));
        self.advance(engine, index);
        if !engine.requests().is_complete(id) {
            return Ok(Operation::Pending(id));
        }
        match engine.requests().fetch(id) {
            Some(result) => result.map(Operation::Done),
            None => Ok(Operation::Pending(id)),
        }
    }

    /// Frees a kept schedule. If a round runs, the schedule is freed when the round is over.
    pub fn free(&mut self, index: u32) {
        let entry = &mut self.entries[index as usize];
        entry.kept = false;
        if matches!(entry.life, Life::Idle) {
            self.release(index);
        }
    }

    /// Returns the result of a schedule if the schedule is over, and frees the schedule. The caller can
    /// fetch the result only once.
    #[inline]
    pub fn fetch(&mut self, index: u32) -> Option<Result<()>> {
        let entry = &mut self.entries[index as usize];
        if !matches!(entry.life, Life::Over(_)) {
            return None;
        }
        let Life::Over(result) = std::mem::replace(&mut entry.life, Life::Idle) else {
            return None;
        };
        // The caller has a clone of the operation, so this does not drop the user's function.
        entry.schedule.combine = None;
        self.release(index);
        Some(result)
    }

    /// If a user's function of the schedule has panicked and a caller waits for the schedule, removes and
    /// returns the payload of the panic. That caller must release the lock before it drops the payload.
    pub fn take_panic(&mut self, index: u32) -> Option<Panic> {
        let at = self.panics.iter().position(|&(other, _)| other == index)?;
        Some(self.panics.swap_remove(at).1)
    }

    /// Makes a schedule stop using its caller's memory, because the caller no longer waits for the
    /// schedule. Returns false while a thread runs a continuation of the schedule. In this case the caller has
    /// to call the function again later.
    pub fn abandon(&mut self, engine: &mut MessageEngine, index: u32) -> bool {
        let entry = &mut self.entries[index as usize];
        match entry.life {
            Life::Over(_) => {
                self.release(index);
                true
            }
            Life::Running(_) if entry.schedule.continuations > 0 => false,
            Life::Running(_) => {
                entry.life = Life::Running(Waiter::Nobody);
                self.let_go(engine, index);
                true
            }
            Life::Free | Life::Idle => true,
        }
    }

    /// Detaches a running schedule from its memory, and continues with its remaining steps.
    fn let_go(&mut self, engine: &mut MessageEngine, index: u32) {
        self.make_void(engine, index);
        self.advance(engine, index);
    }

    /// Stops a running schedule from using the caller's memory. The schedule sends void messages in place
    /// of its remaining sends, and discards the data of its remaining receives. If the schedule is cut off,
    /// it does not wait for these receives.
    fn make_void(&mut self, engine: &mut MessageEngine, index: u32) {
        self.entries[index as usize].schedule.void = true;
        let schedule = &self.entries[index as usize].schedule;
        for number in schedule.checked..schedule.steps.len() as u32 {
            let step = self.entries[index as usize].schedule.steps[number as usize];
            // Skip a step that has no message in flight. If the step's message has already completed, the
            // result of the message is queued and will reach `completed`.
            if step.request == 0 || engine.requests().get(step.request).is_none() {
                continue;
            }
            if matches!(step.action, Action::Receive { .. }) && engine.cancel_receive(step.request)
            {
                // No message had matched the cancelled receive. Post the receive again for the void
                // schedule, which must still take the message.
                self.issue(engine, index, number);
            } else {
                // This loop finishes the step itself. `detach` may complete a queued send at once. So first
                // make the request an orphan (a request whose result is discarded), because its result must
                // not reach `completed` too.
                engine.requests().orphan(step.request);
                engine.detach(step.request);
                self.entries[index as usize].schedule.finish(number, Ok(()));
            }
        }
        let entry = &mut self.entries[index as usize];
        self.continuations.retain(|&(other, number)| {
            if other == index {
                entry.schedule.finish(number, Ok(()));
            }
            other != index
        });
    }

    /// Does a step at once, or starts it.
    #[inline]
    fn issue(&mut self, engine: &mut MessageEngine, index: u32, number: u32) {
        let entry = &mut self.entries[index as usize];
        match entry.issue(number, engine) {
            Issued::Over(outcome) => entry.schedule.finish(number, outcome),
            Issued::InFlight(id) => {
                let token = u64::from(index) << 32 | u64::from(number);
                engine.requests().own(id, Owner { source: self.number, token });
                entry.schedule.steps[number as usize].request = id;
            }
            Issued::Continuation => self.continuations.push_back((index, number)),
        }
    }

    /// Issues all steps that are ready.
    #[inline]
    fn advance(&mut self, engine: &mut MessageEngine, index: u32) {
        loop {
            while let Some(number) = self.entries[index as usize].schedule.next() {
                self.issue(engine, index, number);
            }
            let schedule = &self.entries[index as usize].schedule;
            if !schedule.cut_off || schedule.void {
                break;
            }
            self.make_void(engine, index);
        }
        if self.entries[index as usize].schedule.open == 0 {
            self.end(engine, index);
        }
    }

    fn end(&mut self, engine: &mut MessageEngine, index: u32) {
        let entry = &mut self.entries[index as usize];
        let Life::Running(waiter) = entry.life else { return };
        let result = entry.schedule.result();
        if waiter == Waiter::Caller {
            entry.life = Life::Over(result);
            return;
        }
        entry.life = Life::Idle;
        if !entry.kept {
            self.release(index);
        }
        if let Waiter::Request(id) = waiter {
            let status = Status { source: self.rank, tag: 0, bytes: 0 };
            engine.requests().complete(id, result.map(|()| status));
        }
    }
}

impl Entry {
    /// Does a step at once, or starts it.
    #[inline]
    fn issue(&mut self, number: u32, engine: &mut MessageEngine) -> Issued {
        let schedule = &self.schedule;
        if schedule.stopped {
            return Issued::Over(Ok(()));
        }
        let step = &schedule.steps[number as usize];
        let void = schedule.is_void(number);
        let failed = step.failed || void;
        match step.action {
            Action::Check { index } => Issued::Over(self.check(number, index)),
            Action::Send { part, to, types } => {
                if failed {
                    return self.send_void(engine, to);
                }
                let Place { context, tag } = self.place;
                let label = Label { context, tag, bytes: part.bytes, types };
                let layout = schedule.layout(&part);
                // SAFETY: the caller that started the schedule guarantees valid memory until the schedule
                // is over or detached, and the send ends before either. `part.bytes` is the packed size of
                // the part.
                match unsafe { engine.send(&layout, label, to, SendMode::Standard) } {
                    Ok(Operation::Done(_)) => Issued::Over(Ok(())),
                    Ok(Operation::Pending(id)) => Issued::InFlight(id),
                    Err(error) => {
                        // The send has failed. Try to send a void message in its place, so that the
                        // receiver stops waiting.
                        match self.send_void(engine, to) {
                            Issued::InFlight(id) => engine.requests().orphan(id),
                            Issued::Over(_) | Issued::Continuation => {}
                        }
                        Issued::Over(Err(error))
                    }
                }
            }
            Action::Receive { .. } if schedule.cut_off => Issued::Over(Ok(())),
            Action::Receive { part, from } => {
                let Place { context, tag } = self.place;
                let (source, tag) = (Sender::Process(from.process), Tag::Is(tag));
                let nothing = || -> Result<Elements<&'static Plan>> {
                    Ok(Elements { origin: std::ptr::null_mut(), plan: bytes()?, count: 0 })
                };
                let posting = if void {
                    match nothing() {
                        Ok(layout) => Posting { layout, capacity: 0, context, source, tag },
                        Err(error) => return Issued::Over(Err(error)),
                    }
                } else {
                    let layout = schedule.layout(&part);
                    Posting { layout, capacity: part.bytes, context, source, tag }
                };
                // SAFETY: the caller that started the schedule guarantees that, until the schedule is over
                // or detached, the memory of the receive is writable and nobody else accesses it. The
                // receive ends before either.
                match insist(|| unsafe { engine.receive(&posting) }) {
                    Ok(Operation::Done(status)) => Issued::Over(self.received(number, status)),
                    Ok(Operation::Pending(id)) => Issued::InFlight(id),
                    Err(error) => Issued::Over(Err(error)),
                }
            }
            Action::Copy { .. } | Action::Combine { .. } if failed => Issued::Over(Ok(())),
            Action::Copy { from, to, rank, compared } => {
                if let Err(error) = self.comparable(number, compared) {
                    return Issued::Over(Err(error));
                }
                if from.bytes <= to.bytes && from.bytes >= LONG {
                    return Issued::Continuation;
                }
                if from.bytes <= to.bytes {
                    let (source, target) = (schedule.layout(&from), schedule.layout(&to));
                    // SAFETY: `from.bytes` is at most the packed size of `from` and of `to` (checked
                    // above). The caller that started the schedule guarantees that both are valid and do
                    // not overlap.
                    unsafe { copy_layout(&source, &target, from.bytes) };
                }
                Issued::Over(check_own(from.bytes, to.bytes, rank))
            }
            Action::Combine { lower, upper, first, elements, bytes } => match &schedule.combine {
                Some(Combine::User(_)) => Issued::Continuation,
                Some(_) if bytes >= LONG => Issued::Continuation,
                Some(combine) => {
                    // SAFETY: the caller that started the schedule guarantees `elements` valid elements of
                    // the operation's type at `lower` and at `upper`. No other step uses the elements at
                    // `upper` at the same time.
                    unsafe { combine.call(lower, upper, first, elements) };
                    Issued::Over(Ok(()))
                }
                None => Issued::Over(Err(Error::new(
                    ErrorKind::Internal,
                    "schedule",
                    "a combine step has no operation",
                ))),
            },
        }
    }

    /// Calls a check, and stops the schedule if the check fails. An abandoned schedule calls its checks too. If an
    /// earlier step has failed, the other ranks may have passed their checks, and wait for the data of this rank: the
    /// schedule then sends void messages.
    #[cold]
    fn check(&mut self, number: u32, index: u32) -> Result<()> {
        let schedule = &mut self.schedule;
        if schedule.steps[number as usize].failed || schedule.is_void(number) {
            schedule.void = true;
            return Ok(());
        }
        let checked = schedule.checks[index as usize].call();
        schedule.stopped = checked.is_err();
        checked
    }

    /// Checks that the types of the source and of the destination of a copy match, if this copy compares
    /// types.
    fn comparable(&self, number: u32, compared: bool) -> Result<()> {
        let Action::Copy { from, to, .. } = self.schedule.steps[number as usize].action else {
            return Ok(());
        };
        if !compared || from.bytes > to.bytes || !Settings::get()?.check_types {
            return Ok(());
        }
        let (from, to) = (self.schedule.layout(&from), self.schedule.layout(&to));
        typecheck::own((from.plan, from.count), (to.plan, to.count))
    }

    /// Sends a void message to `to`, because this rank did not get the data that `to` waits for. If this
    /// send fails too, other ranks may wait for this rank forever, and so may never send what this rank
    /// waits for. In that case the schedule is cut off: it waits for no more messages.
    #[cold]
    fn send_void(&mut self, engine: &mut MessageEngine, to: Process) -> Issued {
        let Place { context, tag } = self.place;
        let plan = match bytes() {
            Ok(plan) => plan,
            Err(error) => return Issued::Over(Err(error)),
        };
        let layout = Elements { origin: std::ptr::null_mut(), plan, count: 0 };
        let label = Label { context, tag, bytes: 0, types: VOID };
        // SAFETY: the layout has no elements, so the send touches no memory.
        match insist(|| unsafe { engine.send(&layout, label, to, SendMode::Standard) }) {
            Ok(Operation::Done(_)) => Issued::Over(Ok(())),
            Ok(Operation::Pending(id)) => Issued::InFlight(id),
            Err(error) => {
                self.schedule.cut_off = true;
                Issued::Over(Err(error))
            }
        }
    }

    /// Checks that the message of a receive has exactly the part's number of bytes.
    #[inline]
    fn received(&self, number: u32, status: Status) -> Result<()> {
        match self.schedule.steps[number as usize].action {
            Action::Receive { part, from } if status.bytes != part.bytes => {
                Err(unequal(from.rank, status.bytes, part.bytes))
            }
            _ => Ok(()),
        }
    }
}

impl ProgressSource for Schedules {
    #[inline]
    fn completed(&mut self, engine: &mut MessageEngine, token: u64, result: Result<Status>) {
        let (index, number) = ((token >> 32) as u32, token as u32);
        let entry = &mut self.entries[index as usize];
        let outcome = match result {
            _ if entry.schedule.is_void(number) => Ok(()),
            Ok(status) => entry.received(number, status),
            Err(error) if error.kind() == ErrorKind::Truncated => Err(error.add(COMPARE)),
            Err(error) => Err(error),
        };
        entry.schedule.finish(number, outcome);
        self.advance(engine, index);
    }

    #[inline]
    fn has_continuation(&self) -> bool {
        !self.continuations.is_empty() || !self.dropped.is_empty()
    }

    fn continuation(&mut self) -> Option<(u64, Continuation)> {
        if let Some(combine) = self.dropped.pop() {
            return Some((u64::MAX, Continuation::Drop(combine)));
        }
        let (index, number) = self.continuations.pop_front()?;
        let schedule = &mut self.entries[index as usize].schedule;
        let continuation = match schedule.steps[number as usize].action {
            Action::Copy { from, to, .. } => {
                let supply = Supply::Memory(schedule.layout(&from).keep());
                let sink = Sink::Memory(schedule.layout(&to).keep());
                Continuation::Copy(supply, sink, from.bytes)
            }
            Action::Combine { lower, upper, first, elements, .. } => {
                let with = schedule.combine.clone()?;
                Continuation::Combine { with, lower, upper, first, elements }
            }
            // Sends, receives and checks never run as continuations.
            Action::Send { .. } | Action::Receive { .. } | Action::Check { .. } => return None,
        };
        schedule.continuations += 1;
        Some((u64::from(index) << 32 | u64::from(number), continuation))
    }

    fn ran(
        &mut self,
        engine: &mut MessageEngine,
        token: u64,
        panic: Option<Panic>,
    ) -> Option<Panic> {
        if token == u64::MAX {
            return panic;
        }
        let (index, number) = ((token >> 32) as u32, token as u32);
        let entry = &mut self.entries[index as usize];
        let schedule = &mut entry.schedule;
        schedule.continuations -= 1;
        let outcome = match schedule.steps[number as usize].action {
            _ if panic.is_some() => Err(Error::new(
                ErrorKind::Internal,
                "op",
                "an earlier call of a user's reduction function has panicked",
            )),
            Action::Copy { from, to, rank, .. } => check_own(from.bytes, to.bytes, rank),
            _ => Ok(()),
        };
        schedule.finish(number, outcome);
        let mut left = panic;
        if matches!(entry.life, Life::Running(Waiter::Caller))
            && !self.panics.iter().any(|&(other, _)| other == index)
        {
            self.panics.extend(left.take().map(|panic| (index, panic)));
        }
        self.advance(engine, index);
        left
    }

    fn awaited(&self, token: u64) -> Option<Awaited> {
        let context = self.entries.get((token >> 32) as usize)?.place.context;
        let (kind, ranks) = (Kind::Collective, 0);
        Some(Awaited::Ranks { call: "", kind, context, ranks, peer: None })
    }

    fn detach(&mut self, engine: &mut MessageEngine, token: u64) -> bool {
        let index = (token >> 32) as u32;
        let entry = &mut self.entries[index as usize];
        if entry.schedule.continuations > 0 {
            return false;
        }
        if matches!(entry.life, Life::Running(_)) {
            self.let_go(engine, index);
        }
        true
    }

    fn has_in(&self, contexts: &Range<u64>) -> bool {
        let runs = |entry: &Entry| matches!(entry.life, Life::Running(_));
        self.entries.iter().any(|entry| runs(entry) && contexts.contains(&entry.place.context))
    }

    fn is_needed(&self, engine: &MessageEngine) -> bool {
        let running = |entry: &&Entry| matches!(entry.life, Life::Running(_));
        let has_left = |slot| engine.has_left(slot);
        self.entries.iter().filter(running).any(|entry| entry.schedule.is_needed(has_left))
    }
}

#[cfg(test)]
mod tests;
