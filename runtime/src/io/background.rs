//! Accesses in the background: I/O threads, and the source of progress that completes their operations.
//!
//! A nonblocking access opens a request and puts a job into the queue of the I/O threads. A thread runs the
//! job without any lock, and then reports its end to the source. If the access is collective, the source now
//! agrees with the other ranks on the error, by a schedule of messages; then it completes the request. So a
//! collective access completes on a rank when all ranks have moved their data.
//!
//! The program completes the request with the same calls as the request of a message. A program that abandons
//! the request waits until no thread uses its memory any more.

use super::agree;
use super::file::Inner;
use super::transfer::Transferred;
use super::view::View;
use crate::comm::{Communicator, Operation};
use crate::endpoint::engine::MessageEngine;
use crate::endpoint::progress::Endpoint;
use crate::endpoint::requests::{Owner, Request};
use crate::endpoint::sources::{Core, Errand, Panic, Source};
use crate::message::Status;
use crate::message::payload::Layout;
use crate::schedule::table::Place;
use crate::sys::signal::{SignalSet, block};
use crate::{Error, ErrorKind, Result};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most I/O threads of a process. More threads than that only wait for each other, because the kernel
/// locks a file while one of them writes.
const THREADS: usize = 2;

/// The work of one access in the background.
#[derive(Debug)]
pub(super) struct Job {
    pub file: Arc<Inner>,
    pub view: Arc<View>,
    pub write: bool,
    pub memory: Layout,
    /// The view byte at which the access begins.
    pub start: u64,
}

/// What an operation in the background stands for.
pub(super) enum Work {
    /// Work of an I/O thread.
    Job(Job),
    /// Work that the calling thread has done already, with its outcome.
    Done(Transferred),
}

/// An agreement that follows the work of a collective access.
#[derive(Debug)]
pub(super) struct Agreement {
    pub comm: Communicator,
    pub place: Place,
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    /// In the queue, or a thread works on it.
    Working,
    /// The ranks agree on the error. Nobody uses the program's memory any more.
    Agreeing,
}

#[derive(Debug)]
struct Entry {
    request: u64,
    stage: Stage,
    bytes: u64,
    result: Result<()>,
    agreement: Option<Agreement>,
    /// The word of the agreement. It lives until the agreement is over.
    word: Box<i64>,
}

/// The operations in the background, as a source of progress.
#[derive(Debug)]
pub(super) struct Operations {
    number: u32,
    entries: Vec<Option<Entry>>,
}

/// The queue of the I/O threads, with the token of each job.
struct Queue {
    jobs: VecDeque<(u64, Job)>,
    threads: usize,
    idle: usize,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue { jobs: VecDeque::new(), threads: 0, idle: 0 });
static WAKE: Condvar = Condvar::new();

fn queue() -> MutexGuard<'static, Queue> {
    // No code under this lock can panic between two changes that belong together.
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers the operations in the background as a source of progress of this endpoint.
///
/// # Errors
/// Returns `ErrorKind::State` after finalization or in a forked child.
pub(crate) fn register(endpoint: &Endpoint) -> Result<()> {
    endpoint.register(|number| Operations { number, entries: Vec::new() })
}

/// Starts an access in the background and returns its operation. If `agreement` is given, the access is
/// collective. `work` is the error if this rank has found one in its arguments.
///
/// # Safety
///
/// - Until the operation is complete or detached, the memory of the work's job is valid as the access needs it.
///
/// # Errors
/// Returns `ErrorKind::State` after finalization. If the call returns an error, nothing has started.
pub(super) unsafe fn start(
    endpoint: &Endpoint,
    work: Result<Work>,
    agreement: Option<Agreement>,
) -> Result<Operation> {
    let (bytes, result, job) = match work {
        Ok(Work::Job(job)) => (0, Ok(()), Some(job)),
        Ok(Work::Done((bytes, result))) => (bytes, result, None),
        Err(error) => (0, Err(error), None),
    };
    let working = job.is_some();
    let mut number = 0;
    let started = endpoint.begin(|core| {
        let id = core.with(|operations: &mut Operations, engine| {
            let entry = Entry {
                request: 0,
                stage: Stage::Working,
                bytes,
                result,
                agreement,
                word: Box::new(0),
            };
            let (token, id) = operations.open(engine, entry);
            number = token;
            id
        })?;
        if !working {
            worked(core, number, None)?;
        }
        Ok(Operation::Pending(id))
    })?;
    if let Some(job) = job
        && let Err(error) = enqueue(number, job)
    {
        endpoint.report(|core| {
            // The only error is that the source does not exist, which it does.
            let _ = worked(core, number, Some((0, Err(error))));
        })?;
    }
    Ok(started)
}

/// Puts a job into the queue. Starts an I/O thread if none is idle and there may be one more.
fn enqueue(token: u64, job: Job) -> Result<()> {
    let mut queue = queue();
    if queue.idle <= queue.jobs.len() && queue.threads < THREADS {
        let spawned = std::thread::Builder::new().name("typepack-io".into()).spawn(serve);
        match spawned {
            Ok(_) => queue.threads += 1,
            Err(error) if queue.threads == 0 => {
                let detail = format!("cannot start an I/O thread: {error}");
                return Err(Error::new(ErrorKind::Other, "file", detail));
            }
            Err(_) => {}
        }
    }
    queue.jobs.push_back((token, job));
    WAKE.notify_one();
    Ok(())
}

/// The body of an I/O thread.
fn serve() {
    // Signals of the program run on threads of the program. Those that a fault of this thread raises stay.
    let own =
        [libc::SIGBUS, libc::SIGSEGV, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGABRT];
    let others: Vec<i32> = (1..=64).filter(|signal| !own.contains(signal)).collect();
    // Without the block the thread works just as well.
    let _ = block(&SignalSet::new(&others));
    loop {
        let (token, job) = {
            let mut queue = queue();
            queue.idle += 1;
            let job = loop {
                match queue.jobs.pop_front() {
                    Some(job) => break job,
                    None => queue = WAKE.wait(queue).unwrap_or_else(PoisonError::into_inner),
                }
            };
            queue.idle -= 1;
            job
        };
        let endpoint = job.file.endpoint().clone();
        let moved = catch_unwind(AssertUnwindSafe(|| {
            let memory = job.memory.view();
            // SAFETY: whoever started the operation guarantees that the memory stays valid until the
            // operation is complete or detached (`start`). `detach` waits while this thread works.
            unsafe { job.file.run(&job.view, job.write, memory, job.start) }
        }));
        let moved = moved.unwrap_or_else(|_| {
            let detail = "a panic has ended the access; this is a bug in typepack";
            (0, Err(Error::new(ErrorKind::Internal, "file", detail)))
        });
        // The file goes first, so that the program, when it learns of the end, has the only share.
        drop(job);
        // After finalization nobody waits for the operation any more.
        let _ = endpoint.report(|core| {
            // The only error is that the source does not exist, and it lives as long as the endpoint.
            let _ = worked(core, token, Some(moved));
        });
    }
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
        *entry.word = agree::word(entry.result.as_ref().err(), agreement.comm.rank());
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

    /// Completes an operation. `agreed` is the word on which the ranks have agreed.
    fn complete(&mut self, engine: &mut MessageEngine, token: u64, agreed: i64) {
        let Some(entry) = self.entries.get_mut(token as usize).and_then(Option::take) else {
            return;
        };
        let result = agree::verdict(agreed, entry.result);
        engine.requests().complete(entry.request, counted(entry.bytes, result));
    }
}

/// Returns the result of an access that has moved `bytes` bytes. An error has the status too.
pub(super) fn counted(bytes: u64, result: Result<()>) -> Result<Status> {
    let status = Status { source: 0, tag: 0, bytes };
    result.map(|()| status).map_err(|error| error.of_message(status))
}

impl Source for Operations {
    fn completed(&mut self, engine: &mut MessageEngine, token: u64, result: Result<Status>) {
        let Some(entry) = self.entry(token) else { return };
        let agreed = *entry.word;
        match result {
            Ok(_) => self.complete(engine, token, agreed),
            Err(error) => {
                entry.result = Err(error);
                self.complete(engine, token, 0);
            }
        }
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

    fn ran(&mut self, _: &mut MessageEngine, _token: u64, panic: Option<Panic>) -> Option<Panic> {
        panic
    }

    fn detach(&mut self, _: &mut MessageEngine, token: u64) -> bool {
        // A job always ends by itself. An agreement continues for the other ranks, and its word stays.
        self.entry(token).is_none_or(|entry| entry.stage == Stage::Agreeing)
    }

    fn is_needed(&self) -> bool {
        self.entries.iter().any(Option::is_some)
    }
}
