//! Operations on memory that the calling rank cannot map. This is private memory of the target's program, from which a
//! window was created or which is attached to a dynamic window.
//!
//! The calling rank sends a request. The target carries it out during its next call that makes progress (for example a
//! fence, a flush or a receive), and answers. A request names runs of memory and has at most [`DATA`] bytes of data, so
//! a long operation is several requests, one after another. The calling rank waits for the answer of each request.
//!
//! The requests of a window have a tag that all its ranks know. The target keeps a receive for them as long as the
//! window exists ([`Hosts`], a source of progress). An answer has a tag that the calling rank has chosen.
//!
//! ```text
//! request   kind, tag of the answer, number of runs, type, update, 0       words of 64 bits
//!           offset and length of each run                                  words of 64 bits
//!           operands: packed bytes
//! answer    0 or an error class                                            a word of 64 bits
//!           old values: packed bytes
//! ```
//!
//! The target checks every word of a request: another rank may send anything. An offset counts bytes from the start of
//! the window's memory. In a dynamic window, it is an address in the target's process.

use super::accumulate::{Element, Job, Place as At, Stream, Update};
use super::dynamic::{Own, cover};
use super::words::Words;
use super::{Window, atomic};
use crate::coll::Operator;
use crate::comm::{Communicator, Space};
use crate::commit::bytes;
use crate::endpoint::engine::{How, MessageEngine};
use crate::endpoint::progress::Endpoint;
use crate::endpoint::requests::Owner;
use crate::endpoint::sources::{Errand, Panic, Source};
use crate::message::label::{Label, Sender, Slot};
use crate::message::payload::{Backing, LayoutRef, Posting};
use crate::message::typecheck::OF_LAYOUT;
use crate::message::{Operation, Status, Tag};
use crate::schedule::part::Part;
use crate::{Datatype, Error, ErrorClass, ErrorKind, Named, Plan, Result, WindowErrorKind};
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use typepack_engine::Cursor;

/// The greatest number of bytes of data of a request or an answer.
const DATA: usize = 16 << 10;
/// The greatest number of runs of a request.
const RUNS: usize = 512;
const WORD: usize = size_of::<u64>();
/// Number of words before the runs.
const HEAD: usize = 6;
const REQUEST: usize = (HEAD + 2 * RUNS) * WORD + DATA;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Put = 1,
    Get = 2,
    Accumulate = 3,
    GetAccumulate = 4,
    /// The data are the new value and the value to compare.
    CompareAndSwap = 5,
}

const KINDS: [Kind; 5] =
    [Kind::Put, Kind::Get, Kind::Accumulate, Kind::GetAccumulate, Kind::CompareAndSwap];

const OPERATORS: [Operator; 12] = [
    Operator::Max,
    Operator::Min,
    Operator::Sum,
    Operator::Prod,
    Operator::Land,
    Operator::Band,
    Operator::Lor,
    Operator::Bor,
    Operator::Lxor,
    Operator::Bxor,
    Operator::Maxloc,
    Operator::Minloc,
];
const REPLACE: u64 = 100;
const NO_OP: u64 = 101;

fn number_of(update: Update) -> u64 {
    match update {
        Update::Replace => REPLACE,
        Update::NoOp => NO_OP,
        Update::Combine(operator) => {
            OPERATORS.iter().position(|other| *other == operator).unwrap_or(OPERATORS.len()) as u64
        }
    }
}

fn update_of(number: u64) -> Option<Update> {
    match number {
        REPLACE => Some(Update::Replace),
        NO_OP => Some(Update::NoOp),
        _ => OPERATORS.get(usize::try_from(number).ok()?).map(|op| Update::Combine(*op)),
    }
}

// ---- the target ----

/// The memory of this rank in a window that requests may access.
#[derive(Debug)]
pub(super) enum Served {
    /// One piece of memory: its address and its length in bytes.
    Piece(usize, u64),
    /// The pieces that this rank has attached to a dynamic window.
    Attached(Arc<Mutex<Own>>),
}

/// Memory of this rank that a request accesses. It stays attached as long as this value lives.
struct Hold<'a> {
    /// The address from which the offsets of the window count (null for a dynamic window).
    base: *mut u8,
    _attached: Option<MutexGuard<'a, Own>>,
}

/// What this rank needs to carry out the requests of a window.
#[derive(Debug)]
pub(super) struct Host {
    pub words: Arc<Words>,
    /// This rank in the window.
    pub rank: usize,
    /// This rank in the world.
    pub own: usize,
    pub memory: Served,
}

impl Host {
    /// Returns the memory in which all runs lie, or `None` if a run does not lie in the window's memory.
    fn hold(&self, runs: &[(u64, u64)]) -> Option<Hold<'_>> {
        match &self.memory {
            &Served::Piece(base, bytes) => {
                let within = |&(offset, length): &(u64, u64)| {
                    offset.checked_add(length).is_some_and(|end| end <= bytes)
                };
                let base = base as *mut u8;
                runs.iter().all(within).then_some(Hold { base, _attached: None })
            }
            Served::Attached(own) => {
                let own = own.lock().unwrap_or_else(PoisonError::into_inner);
                let within = |&(start, length): &(u64, u64)| {
                    let start = i128::from(start);
                    cover(&own.entries, start..start + i128::from(length), |_| ())
                };
                let base = std::ptr::null_mut();
                runs.iter().all(within).then_some(Hold { base, _attached: Some(own) })
            }
        }
    }

    /// Carries out a request. Returns the old values, or the error class.
    fn serve(&self, request: &[u8]) -> std::result::Result<Vec<u8>, ErrorClass> {
        let word = |at: usize| -> Option<u64> {
            let word = request.get(at * WORD..(at + 1) * WORD)?;
            Some(u64::from_ne_bytes(word.try_into().ok()?))
        };
        let kind = word(0).and_then(|kind| KINDS.iter().find(|known| **known as u64 == kind));
        let count = word(2).and_then(|count| usize::try_from(count).ok()).filter(|n| *n <= RUNS);
        let (Some(kind), Some(count)) = (kind, count) else { return Err(ErrorClass::OTHER) };
        let run = |run: usize| Some((word(HEAD + 2 * run)?, word(HEAD + 2 * run + 1)?));
        let runs: Option<Vec<(u64, u64)>> = (0..count).map(run).collect();
        let runs = runs.ok_or(ErrorClass::OTHER)?;
        let bytes = runs.iter().try_fold(0u64, |sum, run| sum.checked_add(run.1));
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok()).filter(|n| *n <= DATA);
        let bytes = bytes.ok_or(ErrorClass::OTHER)?;
        let data = request.get((HEAD + 2 * count) * WORD..).unwrap_or_default();
        // A thread that detaches the memory waits until this value is dropped.
        let hold = self.hold(&runs).ok_or(ErrorClass(WindowErrorKind::Range as i32))?;
        let base = hold.base;
        let at = |offset: u64| base.wrapping_add(offset as usize);
        match kind {
            Kind::Put | Kind::Get => {
                let gets = *kind == Kind::Get;
                if !gets && data.len() != bytes {
                    return Err(ErrorClass::OTHER);
                }
                let mut old = vec![0; if gets { bytes } else { 0 }];
                let mut done = 0;
                for (offset, length) in runs {
                    let length = length as usize;
                    // SAFETY: the run lies in the window's memory (`hold`), which the program keeps valid until it
                    // frees the window or detaches the memory, and both wait for this call. The sum of all lengths is
                    // `bytes`, the length of `old` or of `data`, so the range lies in it. Both are memory of this
                    // call, so they do not overlap the run.
                    unsafe {
                        if gets {
                            at(offset).copy_to_nonoverlapping(old[done..].as_mut_ptr(), length);
                        } else {
                            at(offset).copy_from_nonoverlapping(data[done..].as_ptr(), length);
                        }
                    }
                    done += length;
                }
                Ok(old)
            }
            Kind::Accumulate | Kind::GetAccumulate => {
                let update = word(4).and_then(update_of).ok_or(ErrorClass::OP)?;
                let named =
                    word(3).and_then(|code| Named::from_abi_value(u32::try_from(code).ok()?));
                let ty = named.map(Datatype::named).ok_or(ErrorClass::TYPE)?;
                if update != Update::NoOp && data.len() != bytes {
                    return Err(ErrorClass::OTHER);
                }
                let gets = *kind == Kind::GetAccumulate;
                let (data, mut old) = (data.to_vec(), vec![0; if gets { bytes } else { 0 }]);
                let served = self.accumulate(ty, update, base, &runs, (data, &mut old), bytes);
                served.map_err(|error| error.class())?;
                Ok(old)
            }
            Kind::CompareAndSwap => {
                let (&[(offset, _)], true) = (&*runs, data.len() == 2 * bytes && bytes <= 16)
                else {
                    return Err(ErrorClass::OTHER);
                };
                let mut old = vec![0; bytes];
                let (new, compare) = data.split_at(bytes);
                let held = || {
                    let (words, own) = (&self.words, self.own);
                    super::ranges::hold_range(words, self.rank, offset as i64, own, false)
                };
                let ranks = (self.rank, self.own);
                let inside = || super::mechanism::begin(&self.words, ranks, self.rank, 1);
                // SAFETY:
                // - the element lies in the window's memory (`hold`), which the program keeps valid as in the case of
                //   a put; a rank that can map this memory updates it in the same way as this call: by instructions
                //   as long as the value of `inside` lives, and under the lock of `held` otherwise, because both are
                //   those of this rank's memory in the window;
                // - each operand is `bytes` bytes of the request, and `old` has `bytes` bytes.
                let swapped = unsafe {
                    let (new, compare) = (new.as_ptr(), compare.as_ptr());
                    atomic::compare_and_swap(
                        at(offset),
                        new,
                        compare,
                        old.as_mut_ptr(),
                        bytes,
                        inside,
                        held,
                    )
                };
                swapped.map_err(|error| error.class())?;
                Ok(old)
            }
        }
    }

    fn accumulate(
        &self,
        ty: Datatype,
        update: Update,
        base: *mut u8,
        runs: &[(u64, u64)],
        (mut data, old): (Vec<u8>, &mut [u8]),
        bytes: usize,
    ) -> Result<()> {
        let element = Element::new(ty);
        if element.size() == 0 || !bytes.is_multiple_of(element.size()) {
            return Err(Error::new(ErrorKind::Other, "request", "the data end within an element"));
        }
        let combine = element.combine(update)?;
        let (lengths, offsets): (Vec<i64>, Vec<i64>) =
            runs.iter().map(|run| (run.1 as i64, run.0 as i64)).unzip();
        let layout = Datatype::hindexed(&lengths, &offsets, &Datatype::named(Named::BYTE))?;
        let plan = layout.commit()?;
        let job = Job {
            words: &self.words,
            rank: self.rank,
            own: self.own,
            may_spin: false,
            target: self.rank,
            element: &element,
            elements: bytes / element.size(),
            update,
            combine,
            alone: false,
        };
        let place = At { at: base, offset: 0, plan: &plan, count: 1 };
        let byte = crate::commit::bytes()?;
        let part = |memory: &mut [u8]| Part {
            origin: memory.as_mut_ptr(),
            plan: byte,
            count: memory.len() as u64,
        };
        let (operands, results) = (part(&mut data), part(old));
        let operands = Some(&operands).filter(|_| update != Update::NoOp);
        let results = Some(&results).filter(|part| part.count > 0);
        // SAFETY: all runs lie in the window's memory (`Host::hold`, whose result the caller keeps during this call),
        // and have `bytes` bytes. So do the operands and the results, which are memory of this call. If a run ends
        // within an element, `run_of` updates only the elements that the run holds completely.
        unsafe { job.run(&place, &Stream::new(operands), &Stream::new(results), bytes as u64) }
    }
}

/// A window whose requests this rank serves.
struct Hosted {
    host: Host,
    context: u64,
    tag: i32,
    buffer: Box<[u8]>,
    /// The receive of the next request.
    receive: u64,
}

impl fmt::Debug for Hosted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosted").field("tag", &self.tag).finish_non_exhaustive()
    }
}

/// The windows whose requests this rank serves: a source of progress.
#[derive(Debug)]
pub(super) struct Hosts {
    number: u32,
    windows: Vec<Option<Hosted>>,
}

/// Adds the source of requests to an endpoint.
///
/// # Errors
/// Returns `ErrorKind::State` after finalization.
pub(crate) fn register(endpoint: &Endpoint) -> Result<()> {
    endpoint.register(|number| Hosts { number, windows: Vec::new() })
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
                Operation::Done(status) => self.answer(engine, index, status),
                Operation::Pending(id) => {
                    hosted.receive = id;
                    engine.requests().own(id, Owner { source: self.number, token: index as u64 });
                    return Ok(());
                }
            }
        }
    }

    /// Serves the request in the buffer of a window, and sends the answer.
    fn answer(&mut self, engine: &mut MessageEngine, index: usize, status: Status) {
        let Some(Some(hosted)) = self.windows.get_mut(index) else { return };
        let length = usize::try_from(status.bytes).unwrap_or(0).min(REQUEST);
        let request = &hosted.buffer[..length];
        let mut answer = vec![0; WORD];
        match hosted.host.serve(request) {
            Ok(old) => answer.extend_from_slice(&old),
            Err(class) => answer.copy_from_slice(&u64::from(class.0.unsigned_abs()).to_ne_bytes()),
        }
        let tag = request.get(WORD..2 * WORD).and_then(|word| word.try_into().ok());
        let tag = tag.map(u64::from_ne_bytes).and_then(|tag| i32::try_from(tag).ok());
        // Only a rank that breaks the protocol sends a request without a tag for the answer. It gets no answer.
        let (Some(tag), Ok(plan)) = (tag, bytes()) else { return };
        let count = answer.len() as u64;
        let layout = LayoutRef { origin: answer.as_mut_ptr(), plan, count };
        let label = Label { context: hosted.context, tag, bytes: count, types: OF_LAYOUT };
        let how = How { synchronous: false, backing: Backing::Copy };
        // SAFETY: the answer is readable during the call, and the engine copies what it cannot send at once. The
        // source of a message is a slot of the job, and the tag is not negative.
        let sent = unsafe { engine.send(&layout, label, Slot::new(status.source), how) };
        // If the answer cannot be sent, memory has run out, and the asking rank waits until the job ends.
        if let Ok(Operation::Pending(id)) = sent {
            engine.requests().orphan(id);
        }
    }
}

impl Source for Hosts {
    fn completed(&mut self, engine: &mut MessageEngine, token: u64, result: Result<Status>) {
        let index = token as usize;
        if let Ok(status) = result {
            self.answer(engine, index, status);
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
    pub fn begin(comm: &Communicator, tag: i32, host: Host) -> Result<Self> {
        let endpoint = comm.endpoint().clone();
        let context = comm.space(Space::Window);
        let buffer = vec![0; REQUEST].into_boxed_slice();
        let hosted = Hosted { host, context, tag, buffer, receive: 0 };
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
}

impl Drop for Hosting {
    fn drop(&mut self) {
        let index = self.index;
        // After finalization `with_core` fails. The entry then stays in the list, and nothing uses it.
        let removed = self.endpoint.with_core(|core| {
            core.with(|hosts: &mut Hosts, engine| {
                let hosted = hosts.windows.get_mut(index).and_then(Option::take);
                if let Some(hosted) = &hosted
                    && !engine.cancel_receive(hosted.receive)
                {
                    engine.requests().orphan(hosted.receive);
                    engine.detach(hosted.receive);
                }
                hosted
            })
        });
        drop(removed);
    }
}

// ---- the calling rank ----

/// The elements of an operation at a target whose memory this rank cannot map.
pub(super) struct Far<'a> {
    pub target: usize,
    /// The offset of the elements' origin in the target's memory, in bytes; see
    /// [`Located::There`](super::target::Located).
    pub offset: i64,
    pub plan: &'a Plan,
    pub count: u64,
}

/// What a request asks for, and of which elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    pub kind: Kind,
    pub named: Option<Named>,
    pub update: Update,
    /// The size of an element in bytes. A request contains only whole elements.
    pub size: usize,
}

impl Window {
    /// Carries out an operation at a target whose memory this rank cannot map, for `bytes` packed bytes. For each range
    /// of packed bytes, `operand` appends the operands to the request, and `result` gets the old values.
    ///
    /// # Errors
    /// Returns an error of the class with which the target has refused the operation, `ErrorKind::Other` if an element
    /// has more than [`RUNS`] runs, and `ErrorKind::ProcAborted` if a rank has died.
    pub(super) fn ask(
        &self,
        far: &Far<'_>,
        wish: Wish,
        bytes: u64,
        mut operand: impl FnMut(std::ops::Range<u64>, &mut Vec<u8>),
        mut result: impl FnMut(std::ops::Range<u64>, &[u8]),
    ) -> Result<()> {
        let size = wish.size.max(1) as u64;
        let mut position = 0;
        while position < bytes {
            let mut cursor = Cursor::at(far.plan, far.count, position)?;
            let mut runs: Vec<(u64, u64)> = Vec::new();
            let most = (position + DATA as u64 / size * size).min(bytes);
            let mut end = position;
            while end < most && runs.len() < RUNS {
                let Some(run) = cursor.run() else { break };
                let length = run.bytes.min(most - end);
                let start = far.offset.wrapping_add(run.offset) as u64;
                match runs.last_mut() {
                    // A run that begins where the last one ends makes the last one longer.
                    Some((last, before)) if *last + *before == start => *before += length,
                    _ => runs.push((start, length)),
                }
                cursor.advance(length);
                end += length;
            }
            // If the request would end within an element, leave this element to the next request.
            let extra = (end - position) % size;
            end -= extra;
            let mut left = extra;
            while let Some(last) = runs.last_mut().filter(|_| left > 0) {
                let cut = left.min(last.1);
                last.1 -= cut;
                left -= cut;
                if last.1 == 0 {
                    runs.pop();
                }
            }
            if end == position {
                let detail = "an element of the target has too many runs of memory";
                return Err(Error::new(ErrorKind::Other, "target_datatype", detail));
            }
            let range = position..end;
            let old = self.ask_for(far.target, wish, &runs, |data| operand(range.clone(), data))?;
            result(range, &old);
            position = end;
        }
        Ok(())
    }

    /// Sends one request and returns the old values of its answer.
    pub(super) fn ask_for(
        &self,
        target: usize,
        wish: Wish,
        runs: &[(u64, u64)],
        operand: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Vec<u8>> {
        // The answers to all windows of a communicator have one context, so the tags of two windows must differ too.
        static ASKED: AtomicU32 = AtomicU32::new(0);
        let tag = (ASKED.fetch_add(1, Ordering::Relaxed) & (i32::MAX as u32 >> 1)) << 1 | 1;
        let bytes_of_runs: u64 = runs.iter().map(|run| run.1).sum();
        let bytes_of_runs = usize::try_from(bytes_of_runs).unwrap_or(DATA).min(DATA);
        let mut request = Vec::with_capacity((HEAD + 2 * runs.len()) * WORD + 2 * bytes_of_runs);
        let named = wish.named.map_or(0, Named::abi_value);
        let head = [
            wish.kind as u64,
            tag.into(),
            runs.len() as u64,
            named.into(),
            number_of(wish.update),
            0,
        ];
        for word in head.into_iter().chain(runs.iter().flat_map(|run| [run.0, run.1])) {
            request.extend_from_slice(&word.to_ne_bytes());
        }
        operand(&mut request);
        // An answer without old values is one word.
        let room = match wish.kind {
            Kind::Put | Kind::Accumulate => WORD,
            Kind::Get | Kind::GetAccumulate | Kind::CompareAndSwap => WORD + bytes_of_runs,
        };
        let mut answer = vec![0u8; room];
        let (byte, length) = (bytes()?, request.len() as u64);
        let received = self.comm.scope_in(Space::Window, |scope| -> Result<Status> {
            let answered = scope.irecv(&mut answer, byte, room as u64, target, tag as i32)?;
            scope.isend(&request, byte, length, target, self.tag)?;
            scope.wait(answered)
        })??;
        answer.truncate(usize::try_from(received.bytes).unwrap_or(0));
        let class =
            answer.get(..WORD).and_then(|word| word.try_into().ok()).map(u64::from_ne_bytes);
        match class {
            Some(0) => Ok(answer.split_off(WORD)),
            class => {
                let class = class.and_then(|class| i32::try_from(class).ok());
                let kind =
                    class.map_or(ErrorKind::Other, |class| ErrorKind::Engine(ErrorClass(class)));
                let detail = format!("rank {target} has refused the operation");
                Err(Error::new(kind, "target_rank", detail))
            }
        }
    }
}
