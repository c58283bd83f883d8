//! Accesses in the background: I/O threads, and the source of progress that completes their operations.
//!
//! A nonblocking access opens a request and puts a job into the queue of the I/O threads. A thread runs the
//! job without any lock, and then reports its end to the source. If the access is collective, the source now
//! agrees with the other ranks on the error, by a schedule of messages; then it completes the request. So a
//! collective access completes on a rank when all ranks have moved their data. Before a collective write, the
//! source also agrees with the other ranks that the arguments of all of them are right. The job waits for that, and
//! none of the ranks writes if one of them refuses.
//!
//! The accesses to a stream have to move their data in the order in which the program has started them. So the
//! accesses that read a stream have a queue and a thread of their own, and so have those that write it. A thread
//! that waits for data of a stream stops no other file and no other direction. A job that waits for an agreement has no
//! place in such a queue yet: accesses of this rank alone must not wait for calls that other ranks have not made.
//!
//! A thread of its own opens a stream ([`open_stream`]).
//!
//! The program completes the request with the same calls as the request of a message. A program that abandons
//! the request waits until no thread uses its memory any more.

use super::access::counted;
use super::agree::{self, Waiter};
use super::file::Inner;
use super::transfer::Transferred;
use super::view::View;
use crate::comm::{Communicator, Operation};
use crate::endpoint::engine::MessageEngine;
use crate::endpoint::progress::{Awaited, Endpoint};
use crate::endpoint::requests::{Owner, Request, no_memory};
use crate::endpoint::sources::{Core, Source};
use crate::message::Status;
use crate::schedule::table::Place;
use crate::shm::waiting::Kind;
use crate::sys::files::{self, Access as Opening, FileKind};
use crate::sys::signal::{SignalSet, set_mask};
use crate::sys::thread;
use crate::{Error, ErrorKind, Plan, Result};
use std::collections::VecDeque;
use std::ffi::CStr;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use typepack_engine::Elements;
use typepack_engine::reserve::Grow;

/// The most I/O threads of a process for files that are no streams. More threads than that only wait for each
/// other, because the kernel locks a file while one of them writes.
const THREADS: usize = 2;

/// How long the thread of a stream waits for more work.
const LINGER: Duration = Duration::from_secs(1);

/// One access in the background.
#[derive(Debug)]
pub(super) struct Job {
    pub file: Arc<Inner>,
    pub task: Task,
}

/// What an I/O thread does for an access.
#[derive(Debug)]
pub(super) enum Task {
    /// Moves the data.
    Access {
        view: Arc<View>,
        write: bool,
        memory: Elements<Plan>,
        /// The view byte at which the access begins.
        start: u64,
    },
    /// Writes data that a function of the user has converted.
    Converted {
        view: Arc<View>,
        data: Vec<u8>,
        /// The view byte at which the access begins.
        start: u64,
    },
    /// Nothing, because the outcome is known.
    Done(Transferred),
}

/// An agreement that comes before or after the work of a collective access.
#[derive(Debug)]
pub(super) struct Agreement {
    pub comm: Communicator,
    pub place: Place,
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    /// The ranks agree that the arguments are right. Nobody uses the program's memory yet.
    Meeting,
    /// In the queue, or a thread works on it.
    Working,
    /// The ranks agree on the error. Nobody uses the program's memory any more.
    Agreeing,
}

/// A job that waits for an agreement, and its place.
#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
    channel: Arc<Channel>,
    job: Job,
}

#[derive(Debug)]
struct Entry {
    request: u64,
    stage: Stage,
    bytes: u64,
    result: Result<()>,
    /// The job that begins if the ranks agree on their arguments.
    waiting: Option<Waiting>,
    agreement: Option<Agreement>,
    /// The word of an agreement. It lives until the agreement is over.
    word: Box<i64>,
}

/// The operations in the background, as a source of progress.
#[derive(Debug)]
pub(super) struct Operations {
    number: u32,
    entries: Vec<Option<Entry>>,
}

/// A queue of jobs, and the threads that run them.
#[derive(Debug)]
pub(super) struct Channel {
    /// True if the jobs run one after another, in the order of the queue.
    ordered: bool,
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    places: VecDeque<Seat>,
    threads: usize,
    idle: usize,
    /// Number of jobs that threads run now.
    working: usize,
    /// Number of jobs that have reserved ticket 0 and are not in the queue yet.
    expected: usize,
    /// The last ticket.
    ticket: Ticket,
}

/// Identifies a place in a queue. A job with ticket 0 gets its place at the end of the queue when `fill` is called.
type Ticket = u64;

/// A place in a queue. The job is missing while its operation is being opened.
#[derive(Debug)]
struct Seat {
    ticket: Ticket,
    /// The job, with the token of its operation. A job without a token only has to be dropped.
    job: Option<(Option<u64>, Job)>,
}

/// The queue for files that are no streams.
static COMMON: LazyLock<Arc<Channel>> = LazyLock::new(|| Arc::new(Channel::new(false)));

impl Default for Channel {
    /// Makes the queue of a stream.
    fn default() -> Self {
        Self::new(true)
    }
}

impl Channel {
    fn new(ordered: bool) -> Self {
        Self { ordered, queue: Mutex::default(), wake: Condvar::new() }
    }

    /// Returns the queue of a job.
    fn of(job: &Job) -> Arc<Self> {
        let write = match &job.task {
            Task::Access { write, .. } => *write,
            Task::Converted { .. } => true,
            Task::Done(_) => return COMMON.clone(),
        };
        match job.file.target.kind {
            FileKind::Stream => job.file.channels[usize::from(write)].clone(),
            _ => COMMON.clone(),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // No code under this lock can panic between two changes that belong together.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether no job is in the queue and none is running.
    pub fn is_quiet(&self) -> bool {
        let queue = self.queue();
        queue.places.is_empty() && queue.working == 0
    }

    /// Takes a place at the end of the queue. Starts a thread if none is idle and there may be one more. If the queue
    /// has no order, or if the job waits for an agreement (`later`), the place is the end of the queue at the time of
    /// [`fill`](Self::fill).
    fn reserve(self: &Arc<Self>, later: bool) -> Result<Ticket> {
        let most = if self.ordered { 1 } else { THREADS };
        let mut queue = self.queue();
        if queue.idle <= queue.places.len() && queue.threads < most {
            let channel = self.clone();
            match thread::start(c"typepack-io", move || channel.serve()) {
                Ok(()) => queue.threads += 1,
                Err(error) if queue.threads == 0 => {
                    let detail = format!("cannot start an I/O thread: {error}");
                    return Err(Error::new(ErrorKind::Other, "file", detail));
                }
                Err(_) => {}
            }
        }
        // The jobs that are expected have room, so that `fill` allocates nothing.
        let expected = queue.expected;
        queue
            .places
            .grow(expected + 1)
            .map_err(|_| no_memory("another access in the background"))?;
        if later || !self.ordered {
            queue.expected += 1;
            return Ok(0);
        }
        queue.ticket += 1;
        let ticket = queue.ticket;
        queue.places.push_back(Seat { ticket, job: None });
        Ok(ticket)
    }

    /// Puts a job at a place that [`reserve`](Self::reserve) has returned.
    fn fill(&self, ticket: Ticket, token: Option<u64>, job: Job) {
        let mut queue = self.queue();
        let job = Some((token, job));
        if ticket == 0 {
            queue.expected -= 1;
            queue.places.push_back(Seat { ticket, job });
        } else if let Some(place) = queue.places.iter_mut().find(|place| place.ticket == ticket) {
            place.job = job;
        }
        self.wake.notify_one();
    }

    /// Waits for the next job. Returns `None` if the thread shall end.
    fn take(&self) -> Option<(Option<u64>, Job)> {
        let mut queue = self.queue();
        loop {
            if queue.places.front().is_some_and(|place| place.job.is_some()) {
                queue.working += 1;
                return queue.places.pop_front()?.job;
            }
            queue.idle += 1;
            if self.ordered {
                let (woken, waited) =
                    self.wake.wait_timeout(queue, LINGER).unwrap_or_else(PoisonError::into_inner);
                queue = woken;
                if waited.timed_out() && queue.places.is_empty() && queue.expected == 0 {
                    (queue.idle, queue.threads) = (queue.idle - 1, queue.threads - 1);
                    return None;
                }
            } else {
                queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            queue.idle -= 1;
        }
    }

    /// The body of an I/O thread.
    fn serve(&self) {
        block_signals();
        while let Some((token, job)) = self.take() {
            let endpoint = job.file.endpoint().clone();
            let moved = match token {
                Some(_) => job.run(),
                None => (0, Ok(())),
            };
            // Drop the job's share of the file before the report, so that the program has the only share when it learns
            // of the end.
            drop(job);
            self.queue().working -= 1;
            // After finalization nobody waits for the operation any more.
            let _ = endpoint.report(|core| {
                if let Some(token) = token {
                    // The only error is that the source does not exist, and it lives as long as the endpoint.
                    let _ = worked(core, token, Some(moved));
                }
            });
        }
    }
}

/// Blocks signals in the calling thread, so that the kernel delivers the program's signals to threads of the program.
/// Signals that a fault of this thread raises stay unblocked, even if the thread that started this one blocks them.
fn block_signals() {
    let own =
        [libc::SIGBUS, libc::SIGSEGV, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGABRT];
    let others: Vec<i32> = (1..=64).filter(|signal| !own.contains(signal)).collect();
    set_mask(&SignalSet::new(&others));
}

/// Opens a stream in a thread of its own, because the kernel may wait until another process opens the other end. The
/// calling thread makes progress while it waits. If it gives up, because a rank has died, the new thread closes the
/// stream when the kernel has opened it.
///
/// # Errors
/// The outer result is an error if no thread can be started, and an error under the conditions of
/// [`Endpoint::attend`]. The inner result is that of the system call.
pub(super) fn open_stream(
    endpoint: &Arc<Endpoint>,
    name: &CStr,
    access: Opening,
) -> Result<io::Result<OwnedFd>> {
    let opened = Arc::new(Mutex::new(None));
    let (name, waiter, slot) = (name.to_owned(), Arc::downgrade(endpoint), opened.clone());
    let open = move || {
        block_signals();
        let result = files::open(&name, access);
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        if let Some(endpoint) = waiter.upgrade() {
            endpoint.wake_poller();
        }
    };
    thread::start(c"typepack-open", open).map_err(|error| {
        let detail = format!("cannot start a thread that opens the stream: {error}");
        Error::new(ErrorKind::Other, "filename", detail)
    })?;
    let awaited = Awaited::Work(Kind::File);
    endpoint.attend(&awaited, |_| opened.lock().unwrap_or_else(PoisonError::into_inner).take())
}

impl Job {
    fn run(&self) -> Transferred {
        let moved = catch_unwind(AssertUnwindSafe(|| match &self.task {
            Task::Done((bytes, result)) => (*bytes, result.clone()),
            Task::Converted { view, data, start } => {
                counted(true, self.file.run_packed(view, data, *start))
            }
            Task::Access { view, write, memory, start } => {
                // SAFETY: whoever started the operation guarantees that the memory stays valid until the
                // operation is complete or detached (`start`). `detach` waits while this thread works.
                let moved = unsafe {
                    self.file.run(view, *write, memory.view(), *start, Waiter::Background)
                };
                counted(*write, moved)
            }
        }));
        moved.unwrap_or_else(|_| {
            let detail = "a panic has ended the access; this is a bug in typepack";
            (0, Err(Error::new(ErrorKind::Internal, "file", detail)))
        })
    }
}

/// Registers the operations in the background as a source of progress of this endpoint.
///
/// # Errors
/// Returns `ErrorKind::State` after finalization or in a forked child, and `ErrorKind::Internal` after a panic
/// inside the library.
pub(crate) fn register(endpoint: &Endpoint) -> Result<()> {
    endpoint.register(|number| Operations { number, entries: Vec::new() })
}

/// Starts an access in the background and returns its operation. If the access is collective, `after` is the
/// agreement that follows the work, and `before` is the one that comes before the work, if there is one. `work`
/// is the error if this rank has found one in its arguments.
///
/// # Safety
///
/// - Until the operation is complete or detached, the memory of the work's job is valid as the access needs it.
///
/// # Errors
/// Returns `ErrorKind::State` after finalization. If the call returns an error, nothing has started.
pub(super) unsafe fn start(
    endpoint: &Endpoint,
    work: Result<Job>,
    before: Option<Agreement>,
    after: Option<Agreement>,
) -> Result<Operation> {
    // Reserve the place in the queue first, because this fails if no thread can be started.
    let placed = work.and_then(|job| {
        let channel = Channel::of(&job);
        Ok(Waiting { ticket: channel.reserve(before.is_some())?, channel, job })
    });
    let (result, mut placed) = match placed {
        Ok(placed) => (Ok(()), Some(placed)),
        Err(error) => (Err(error), None),
    };
    let (mut number, meets, working) = (0, before.is_some(), placed.is_some());
    let waiting = match meets {
        true => placed.take(),
        false => None,
    };
    let stage = if meets { Stage::Meeting } else { Stage::Working };
    let word = Box::new(0);
    let entry = Entry { request: 0, stage, bytes: 0, result, waiting, agreement: after, word };
    let mut entry = Some(entry);
    let started = endpoint.begin(|core| {
        let id = core.with(|operations: &mut Operations, engine| -> Result<u64> {
            match operations.make_room(engine) {
                // The other ranks wait for the agreement of a collective access, so it takes its room from the reserve.
                Err(error) if !meets => return Err(error),
                _ => {}
            }
            let Some(entry) = entry.take() else { return Ok(0) };
            let (token, id) = operations.open(engine, entry);
            number = token;
            Ok(id)
        })??;
        match before {
            Some(agreement) => meet(core, number, agreement)?,
            None if !working => worked(core, number, None)?,
            None => {}
        }
        Ok(Operation::Pending(id))
    });
    // An entry that is still here has not been opened.
    let placed = placed.or_else(|| entry.take()?.waiting);
    if let Some(Waiting { ticket, channel, job }) = placed {
        // Without an operation, the job only gives back its place.
        channel.fill(ticket, started.is_ok().then_some(number), job);
    }
    started
}

/// Lets the ranks agree that the arguments of all of them are right.
fn meet(core: &mut Core, token: u64, agreement: Agreement) -> Result<()> {
    let Agreement { comm, place } = agreement;
    let word = core.with(|operations: &mut Operations, _| {
        let entry = operations.entry(token)?;
        *entry.word = agree::word(&entry.result, comm.rank());
        Some(std::ptr::from_mut(&mut *entry.word))
    })?;
    let Some(word) = word else { return Ok(()) };
    // SAFETY: `word` lies in the box of the entry, which lives until `synchronised` has been called for the agreement.
    // Nobody else accesses the box before.
    let started = unsafe { comm.start_greatest(core, place, word) };
    core.with(|operations: &mut Operations, engine| match started {
        Ok(Operation::Pending(id)) => {
            engine.requests().own(id, Owner { source: operations.number, token });
        }
        Ok(Operation::Done(_)) => operations.synchronised(engine, token, Ok(())),
        Err(error) => operations.synchronised(engine, token, Err(error)),
    })
}

/// Handles the end of the work of an operation. `moved` is `None` if there was no work.
fn worked(core: &mut Core, token: u64, moved: Option<Transferred>) -> Result<()> {
    let agreed = core.with(|operations: &mut Operations, engine| {
        let entry = operations.entry(token)?;
        entry.stage = Stage::Agreeing;
        if let Some((bytes, result)) = moved {
            (entry.bytes, entry.result) = (bytes, result);
        }
        let Some(agreement) = entry.agreement.take() else {
            operations.complete(engine, token, 0);
            return None;
        };
        *entry.word = agree::word(&entry.result, agreement.comm.rank());
        Some((agreement, std::ptr::from_mut(&mut *entry.word)))
    })?;
    let Some((Agreement { comm, place }, word)) = agreed else { return Ok(()) };
    // SAFETY: `word` lies in the box of the entry, which lives until `completed` has been called for the
    // agreement or, if the agreement ends at once, until `complete` below. Nobody else accesses the box.
    let started = unsafe { comm.start_greatest(core, place, word) };
    core.with(|operations: &mut Operations, engine| match started {
        Ok(Operation::Pending(id)) => {
            engine.requests().own(id, Owner { source: operations.number, token });
        }
        Ok(Operation::Done(_)) => {
            let agreed = operations.entry(token).map_or(0, |entry| *entry.word);
            operations.complete(engine, token, agreed);
        }
        Err(error) => {
            if let Some(entry) = operations.entry(token) {
                entry.result = Err(error);
            }
            operations.complete(engine, token, 0);
        }
    })
}

impl Operations {
    /// Makes room for another operation.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory runs out.
    fn make_room(&mut self, engine: &mut MessageEngine) -> Result<()> {
        self.entries.grow(1).map_err(|_| no_memory("another access in the background"))?;
        engine.requests().make_room()
    }

    /// Opens an operation. The caller has called [`make_room`](Self::make_room).
    fn open(&mut self, engine: &mut MessageEngine, entry: Entry) -> (u64, u64) {
        let free = self.entries.iter().position(Option::is_none);
        let at = free.unwrap_or(self.entries.len());
        if at == self.entries.len() {
            self.entries.push(None);
        }
        let owner = Owner { source: self.number, token: at as u64 };
        let request = engine.requests().open(Request::Source(owner));
        self.entries[at] = Some(Entry { request, ..entry });
        (at as u64, request)
    }

    fn entry(&mut self, token: u64) -> Option<&mut Entry> {
        self.entries.get_mut(token as usize)?.as_mut()
    }

    /// Handles the end of the agreement that comes before the work: starts the work, or completes the operation
    /// if a rank has refused.
    fn synchronised(&mut self, engine: &mut MessageEngine, token: u64, result: Result<()>) {
        let Some(entry) = self.entry(token) else { return };
        let agreed = *entry.word;
        let waiting = entry.waiting.take();
        let begins = agreed == 0 && result.is_ok() && waiting.is_some();
        if let Some(Waiting { ticket, channel, job }) = waiting {
            // A job that does not begin goes to an I/O thread too: it may hold the last share of the file, and the file
            // must not be closed under the lock.
            channel.fill(ticket, begins.then_some(token), job);
        }
        match result {
            Ok(()) if begins => entry.stage = Stage::Working,
            Ok(()) => self.complete(engine, token, agreed),
            Err(error) => {
                entry.result = Err(error);
                self.complete(engine, token, 0);
            }
        }
    }

    /// Completes an operation. `agreed` is the word on which the ranks have agreed.
    fn complete(&mut self, engine: &mut MessageEngine, token: u64, agreed: i64) {
        let Some(entry) = self.entries.get_mut(token as usize).and_then(Option::take) else {
            return;
        };
        let result = agree::verdict(agreed, entry.result);
        engine.requests().complete(entry.request, status_of(entry.bytes, result));
    }
}

/// Returns the result of an access that has moved `bytes` bytes. An error has the status too.
pub(super) fn status_of(bytes: u64, result: Result<()>) -> Result<Status> {
    let status = Status { source: 0, tag: 0, bytes };
    result.map(|()| status).map_err(|error| error.of_message(status))
}

impl Source for Operations {
    fn completed(&mut self, engine: &mut MessageEngine, token: u64, result: Result<Status>) {
        let Some(entry) = self.entry(token) else { return };
        if entry.stage == Stage::Meeting {
            return self.synchronised(engine, token, result.map(|_| ()));
        }
        let agreed = *entry.word;
        match result {
            Ok(_) => self.complete(engine, token, agreed),
            Err(error) => {
                entry.result = Err(error);
                self.complete(engine, token, 0);
            }
        }
    }

    fn awaited(&self, token: u64) -> Option<Awaited> {
        let entry = self.entries.get(token as usize)?.as_ref()?;
        let comm = entry.agreement.as_ref().map(|agreement| &agreement.comm);
        match (&entry.stage, comm) {
            (Stage::Meeting | Stage::Agreeing, Some(comm)) => {
                Some(comm.awaited("", Kind::File, None))
            }
            (Stage::Meeting | Stage::Agreeing, None) => None,
            (Stage::Working, _) => Some(Awaited::Work(Kind::File)),
        }
    }

    fn detach(&mut self, _: &mut MessageEngine, token: u64) -> bool {
        let Some(entry) = self.entry(token) else { return true };
        match entry.stage {
            // A job always ends by itself.
            Stage::Working => false,
            // An agreement continues for the other ranks, and its word stays.
            Stage::Agreeing => true,
            Stage::Meeting => {
                // The agreement may never end, for example because a rank is dead. So the job loses its work.
                if let Some(Waiting { job, .. }) = &mut entry.waiting {
                    let detail = "the program has abandoned the access";
                    let error = Error::new(ErrorKind::Request, "file", detail);
                    job.task = Task::Done((0, Err(error)));
                }
                true
            }
        }
    }

    fn is_needed(&self, _: &MessageEngine) -> bool {
        self.entries.iter().any(Option::is_some)
    }
}
