//! The sources of progress. Messages are one source; this file has the interface of the other sources, which
//! use messages.
//!
//! A source (for example schedules, windows, files, timers) is registered once and lives under the endpoint's lock.
//! When a message that a source owns completes, [`Core`] calls [`Source::completed`]. While a source asks for turns
//! ([`Source::nap`]), [`Core`] gives it turns. An idle source costs nothing: a turn checks only one queue and one flag,
//! however many sources exist.
//!
//! A source must not do long work, or call a user's function, under the lock. For such work it prepares
//! a [`Continuation`]. Any thread that waits or tests takes the continuation, runs it without the lock, and then
//! reports that the continuation has ended ([`Source::ran`]). The code for this is in `progress/waiting.rs`.

use crate::endpoint::engine::MessageEngine;
use crate::endpoint::progress::Awaited;
use crate::endpoint::requests::Owner;
use crate::message::Status;
use crate::message::payload::{Sink, Supply, copy};
use crate::{Error, ErrorKind, Result};
use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// A function that combines two vectors of the given number of elements: `result[i] = lower[i] op upper[i]`. The
/// arguments are the addresses of displacement 0 of the first element of the lower vector, of the upper vector and of
/// the result, and the number of elements.
///
/// The caller guarantees that the elements of both vectors are readable, those of the result are writable, and nobody
/// else uses the result. The result is one of the two vectors, or overlaps neither; the two vectors do not overlap. The
/// function reads both elements before it writes an element of the result, and touches nothing else.
pub type Combiner = unsafe fn(*const u8, *const u8, *mut u8, usize);

/// A user's function that combines two vectors. The arguments are the lower vector, the upper vector, the
/// index of the first element, and the number of elements.
type UserFunction = dyn Fn(*const u8, *mut u8, u64, u64) + Send + Sync;

/// An operation that combines two vectors of elements. `lower` comes from lower ranks than `upper`.
///
/// The value owns its function, so that a reduction may outlive the call that starts it. [`Combiner`] describes the
/// functions of this library. A user's function makes `upper[i] = lower[i] op upper[i]`. The runtime calls it with the
/// addresses of displacement 0 of the first element in both vectors, with the index of this first element in the whole
/// reduction, and with the number of elements to combine. The function reads both vectors, writes the elements of
/// `upper`, and touches nothing else.
///
/// The runtime may cut a reduction into pieces, and the cut may differ from call to call. So the result for an element
/// must depend on its two operands only. Otherwise two equal reductions may give different bits.
#[derive(Clone)]
pub enum Combine {
    /// A function of this library. It is short, calls nothing, and may run under a lock.
    Native(Combiner),
    /// A user's function, which the runtime calls outside every lock.
    User(Arc<UserFunction>),
}

impl Combine {
    /// Wraps a user's function. The function's arguments are the lower vector, the upper vector, the index
    /// of the first element, and the number of elements. The function makes no collective call on the
    /// communicator of the reduction, because the reduction has not ended.
    pub fn user(function: impl Fn(*const u8, *mut u8, u64, u64) + Send + Sync + 'static) -> Self {
        Self::User(Arc::new(function))
    }

    /// Returns the function of this library; `None` for a user's function.
    pub(crate) fn native(&self) -> Option<Combiner> {
        match self {
            Self::Native(combiner) => Some(*combiner),
            Self::User(_) => None,
        }
    }

    /// Combines `elements` elements of the vectors at `lower` and `upper`. `first` is the index of the first
    /// of these elements in the whole reduction.
    ///
    /// # Safety
    ///
    /// - `lower` and `upper` are addresses of displacement 0 of `elements` elements of the operation's type.
    /// - The elements at both addresses are readable, and the two vectors do not overlap.
    /// - The elements at `upper` are writable, and nobody else uses them until the call returns.
    #[inline]
    pub unsafe fn call(&self, lower: *const u8, upper: *mut u8, first: u64, elements: u64) {
        match self {
            // SAFETY: the caller guarantees `elements` valid elements at both addresses (the three
            // conditions of `# Safety`). The result replaces the upper vector. `elements` fits in `usize`, because the
            // vectors lie in memory.
            Self::Native(combine) => unsafe { combine(lower, upper, upper, elements as usize) },
            Self::User(combine) => combine(lower, upper, first, elements),
        }
    }
}

impl fmt::Debug for Combine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native(_) => "Native",
            Self::User(_) => "User",
        })
    }
}

impl From<Combiner> for Combine {
    fn from(combiner: Combiner) -> Self {
        Self::Native(combiner)
    }
}

/// The payload of a panic in a user's function.
pub type Panic = Box<dyn Any + Send>;

/// Work of a source that has to run without the lock.
#[derive(Debug)]
pub enum Continuation {
    /// Combine two vectors.
    Combine {
        /// The operation.
        with: Combine,
        /// Address of displacement 0 of the first element of the lower operand.
        lower: *const u8,
        /// Address of displacement 0 of the first element of the upper operand, which takes the result.
        upper: *mut u8,
        /// Index of the first element in the whole reduction.
        first: u64,
        /// Number of elements.
        elements: u64,
    },
    /// Copy the given number of packed bytes from one layout to another.
    Copy(Supply, Sink, u64),
    /// Drop a user's function. This must happen without the lock, because a value that the function owns may
    /// call this library when it is dropped.
    Drop(Combine),
}

// SAFETY: the source that makes a continuation guarantees that any thread may use the continuation's memory until a
// thread has reported the end of the continuation.
unsafe impl Send for Continuation {}

impl Continuation {
    /// Runs the continuation.
    ///
    /// # Safety
    ///
    /// - Until this call returns, the memory of the continuation is valid, and nobody else uses the part of it
    ///   that the continuation writes. (`Schedules::start` demands this of its callers.)
    /// - The source and the destination of a copy do not overlap. (`Builder::copy` and `Builder::pack` demand this of
    ///   their callers.)
    pub unsafe fn run(self) {
        match self {
            // SAFETY: the caller guarantees that `lower` and `upper` are the addresses of `elements`
            // valid elements, and that nobody else uses those at `upper` (first condition of `# Safety`).
            Self::Combine { with, lower, upper, first, elements } => unsafe {
                with.call(lower, upper, first, elements);
            },
            // SAFETY: the source of progress that made the continuation has checked that `supply` and `sink` both
            // have at least `bytes` packed bytes. The caller guarantees that both are valid and do not
            // overlap (both conditions of `# Safety`).
            Self::Copy(supply, sink, bytes) => unsafe { copy(&supply, &sink, bytes) },
            Self::Drop(with) => drop(with),
        }
    }
}

/// A source of progress other than messages. A source without turns leaves out [`progress`](Self::progress) and
/// [`nap`](Self::nap), and a source without continuations [`has_continuation`](Self::has_continuation), [`continuation`](Self::continuation) and
/// [`ran`](Self::ran).
pub trait Source: Any + fmt::Debug + Send {
    /// Handles the completion of a message that this source owns under `token`.
    fn completed(&mut self, engine: &mut MessageEngine, token: u64, result: Result<Status>);

    /// Runs one short turn. Returns true if any data or state moved. [`Core`] calls this function while [`Source::nap`]
    /// asks for turns.
    ///
    /// # Errors
    /// Returns an error that ends all communication of this process.
    fn progress(&mut self, _engine: &mut MessageEngine) -> Result<bool> {
        Ok(false)
    }

    /// Returns how long a thread may sleep without a turn of this source, or `None` while the source needs
    /// no turns.
    fn nap(&self) -> Option<Duration> {
        None
    }

    /// Returns whether this source has a continuation ready.
    fn has_continuation(&self) -> bool {
        false
    }

    /// Returns the next continuation, and the token with which the thread that runs the continuation reports that the continuation has
    /// ended. Returns `None` if no continuation is ready.
    fn continuation(&mut self) -> Option<(u64, Continuation)> {
        None
    }

    /// Handles the end of the continuation with this token. `panic` is the payload if the continuation panicked. If a
    /// caller waits for the continuation's operation, the source keeps the payload, and the caller panics with it.
    /// Otherwise the source returns the payload.
    fn ran(
        &mut self,
        _engine: &mut MessageEngine,
        _token: u64,
        panic: Option<Panic>,
    ) -> Option<Panic> {
        panic
    }

    /// Detaches the operation of a request from its memory; see `Endpoint::detach`. Returns false while a
    /// thread runs a continuation of the operation. In this case the caller has to call the function again later.
    fn detach(&mut self, engine: &mut MessageEngine, token: u64) -> bool;

    /// Returns what the operation with this token waits for; `None` if the source cannot tell.
    fn awaited(&self, _token: u64) -> Option<Awaited> {
        None
    }

    /// Returns whether an operation of this source is under way on a communicator that has one of the contexts.
    fn has_in(&self, _contexts: &Range<u64>) -> bool {
        false
    }

    /// Returns whether another rank may be waiting for this source: for a message that it has not sent yet, or until it
    /// takes a message.
    fn is_needed(&self, engine: &MessageEngine) -> bool;
}

/// Identifies a continuation that a thread has taken: the source that made the continuation, and the source's token for
/// it. The thread passes this value back when it reports the end of the continuation.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    source: u32,
    token: u64,
}

/// Everything that the endpoint's lock protects and that makes progress in turns: the messages and the other
/// sources.
#[derive(Debug)]
pub struct Core {
    /// The messages of this process.
    pub engine: MessageEngine,
    sources: Vec<Box<dyn Source>>,
    /// True if a source has a continuation ready.
    continuations: bool,
    /// The shortest time that a source allows between two turns; `None` if no source wants turns.
    nap: Option<Duration>,
}

impl Core {
    /// Creates a core with the messages of `engine` and without other sources.
    pub fn new(engine: MessageEngine) -> Self {
        Self { engine, sources: Vec::new(), continuations: false, nap: None }
    }

    /// Adds a source. The function calls `make` with the number of the new source.
    pub fn register<S: Source>(&mut self, make: impl FnOnce(u32) -> S) {
        let source = make(self.sources.len() as u32);
        self.sources.push(Box::new(source));
        self.look_around();
    }

    /// Calls `f` with the source of type `S` and the engine.
    ///
    /// # Errors
    /// Returns `ErrorKind::Internal` if no source of this type is registered.
    #[inline]
    pub fn with<S: Source, R>(
        &mut self,
        f: impl FnOnce(&mut S, &mut MessageEngine) -> R,
    ) -> Result<R> {
        for source in &mut self.sources {
            let source: &mut dyn Any = &mut **source;
            if let Some(source) = source.downcast_mut::<S>() {
                return Ok(f(source, &mut self.engine));
            }
        }
        let detail = format!("no source of type {} is registered", std::any::type_name::<S>());
        Err(Error::new(ErrorKind::Internal, "source", detail))
    }

    /// Asks all sources again whether they have continuations and how long a thread may sleep. The caller calls
    /// this function after each call of a source.
    #[inline]
    pub fn look_around(&mut self) {
        self.continuations = self.sources.iter().any(|source| source.has_continuation());
        self.nap = self.sources.iter().filter_map(|source| source.nap()).min();
    }

    /// Returns whether a source has a continuation ready.
    #[inline]
    pub fn has_continuation(&self) -> bool {
        self.continuations
    }

    /// Returns how long a thread may sleep without a turn, or `None` if no source wants turns.
    #[inline]
    pub fn nap(&self) -> Option<Duration> {
        self.nap
    }

    /// Returns true if no operation waits for a turn. In that case a turn could only move messages that no
    /// operation needs yet.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.engine.is_idle() && !self.engine.requests_ref().has_collected()
    }

    /// Runs one turn of the message engine and of every source that wants turns. Returns true if anything
    /// moved.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if another rank broke the protocol, `ErrorKind::NoMemory` if memory ran out, and the
    /// error of a source whose turn failed.
    #[inline]
    pub fn progress(&mut self) -> Result<bool> {
        let moved = self.engine.progress()?;
        if self.engine.requests_ref().has_collected() || self.nap.is_some() {
            return self.drive(moved);
        }
        Ok(moved)
    }

    /// Runs the turn of a call that starts an operation and does not wait (see
    /// [`MessageEngine::progress_at_start`]).
    ///
    /// # Errors
    /// Returns the errors of [`Core::progress`].
    #[inline]
    pub fn progress_at_start(&mut self) -> Result<bool> {
        let moved = self.engine.progress_at_start()?;
        if self.engine.requests_ref().has_collected() || self.nap.is_some() {
            return self.drive(moved);
        }
        Ok(moved)
    }

    #[inline(never)]
    fn drive(&mut self, mut moved: bool) -> Result<bool> {
        self.hand_out(&mut moved);
        if self.nap.is_some() {
            for source in &mut self.sources {
                if source.nap().is_some() {
                    moved |= source.progress(&mut self.engine)?;
                }
            }
            self.hand_out(&mut moved);
        }
        self.look_around();
        Ok(moved)
    }

    /// Reports every completed message to the source that owns it.
    fn hand_out(&mut self, moved: &mut bool) {
        while let Some((Owner { source, token }, result)) = self.engine.requests().collected() {
            *moved = true;
            if let Some(source) = self.sources.get_mut(source as usize) {
                source.completed(&mut self.engine, token, result);
            }
        }
    }

    /// Takes a continuation from the first source that has one.
    pub fn continuation(&mut self) -> Option<(Sent, Continuation)> {
        let mut found = None;
        for (number, source) in self.sources.iter_mut().enumerate() {
            if let Some((token, continuation)) = source.continuation() {
                found = Some((Sent { source: number as u32, token }, continuation));
                break;
            }
        }
        self.look_around();
        found
    }

    /// Reports the end of a continuation to its source. `panic` is the payload if the continuation panicked. If no
    /// caller waits for the operation, the function returns the payload. The caller of this function must
    /// release the lock before it drops the payload.
    pub fn ran(&mut self, sent: Sent, panic: Option<Panic>) -> Option<Panic> {
        let left = match self.sources.get_mut(sent.source as usize) {
            Some(source) => source.ran(&mut self.engine, sent.token, panic),
            None => panic,
        };
        self.look_around();
        left
    }

    /// Detaches the operation of a request from its memory, whether the request belongs to a message or to a
    /// source; see [`Source::detach`].
    pub fn detach(&mut self, id: u64) -> bool {
        if self.engine.requests().is_owned(id) {
            // A source has started this operation and owns the request. The caller has lent no memory to
            // the operation, so there is nothing to detach.
            return true;
        }
        let Some(Owner { source, token }) = self.engine.requests().source(id) else {
            self.engine.detach(id);
            return true;
        };
        let done = match self.sources.get_mut(source as usize) {
            Some(source) => source.detach(&mut self.engine, token),
            None => true,
        };
        if done {
            self.engine.requests().orphan(id);
        }
        self.look_around();
        done
    }

    /// Returns what the operation of a source waits for, if the source can tell.
    pub fn awaited_by(&self, owner: Owner) -> Option<Awaited> {
        self.sources.get(owner.source as usize)?.awaited(owner.token)
    }

    /// Returns whether a message in one of the contexts is in flight, or an operation of a source is under way on a
    /// communicator that has one of them.
    pub fn has_in(&self, contexts: &Range<u64>) -> bool {
        self.engine.requests_ref().has_in(contexts)
            || self.sources.iter().any(|source| source.has_in(contexts))
    }

    /// Returns whether no other rank waits for this one.
    pub fn others_are_served(&self) -> bool {
        self.engine.others_are_served()
            && !self.sources.iter().any(|source| source.is_needed(&self.engine))
    }
}
