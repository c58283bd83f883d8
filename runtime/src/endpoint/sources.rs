//! The sources of progress: messages, and other sources that use messages.
//!
//! A source (for example schedules, windows, files, timers) is registered once, and lives under the
//! endpoint's lock. The engine reports the completion of messages that a source owns
//! ([`Source::completed`]), and gives the source a turn while it asks for turns ([`Source::nap`]). An
//! idle source costs nothing: a turn checks one queue and one flag, however many sources exist.
//!
//! A source does not do long work, and does not call a user's function, under the lock. It prepares an
//! [`Errand`]. Any thread that waits or tests takes the errand, runs it without the lock, and reports its
//! end ([`Source::ran`]). `progress.rs` does this.

use crate::endpoint::engine::MessageEngine;
use crate::endpoint::requests::Owner;
use crate::message::Status;
use crate::message::payload::{Sink, Supply, copy};
use crate::{Error, ErrorKind, Result};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A function that combines the given number of elements: `upper[i] = lower[i] op upper[i]`.
pub type Combiner = unsafe fn(*const u8, *mut u8, usize);

/// A user's function. Arguments: lower operand, upper operand, number of the first element, number of
/// elements.
type UserFunction = dyn Fn(*const u8, *mut u8, u64, u64) + Send + Sync;

/// An operation that combines two vectors of elements: `upper[i] = lower[i] op upper[i]`. `lower` comes
/// from ranks below those of `upper`.
///
/// The value owns its function, so that a reduction may outlive the call that starts it. The runtime calls
/// the function with the addresses of displacement 0 of the first element in both vectors, with the number
/// of this first element in the whole reduction (the runtime may cut a reduction into pieces), and with the
/// number of elements. The function reads both vectors, writes the elements of `upper`, and touches
/// nothing else.
#[derive(Clone)]
pub enum Combine {
    /// A function of this library: it is short, calls nothing, and may run under a lock.
    Native(Combiner),
    /// A user's function, which the runtime calls outside every lock.
    User(Arc<UserFunction>),
}

impl Combine {
    /// Wraps a user's function. Arguments: lower operand, upper operand, number of the first element, number
    /// of elements.
    pub fn user(function: impl Fn(*const u8, *mut u8, u64, u64) + Send + Sync + 'static) -> Self {
        Self::User(Arc::new(function))
    }

    /// Combines the `elements` elements at these addresses, which begin with element number `first`.
    ///
    /// # Safety
    ///
    /// - `lower` and `upper` are addresses of displacement 0 of `elements` elements of the operation's type.
    /// - The elements at both addresses are readable.
    /// - The elements at `upper` are writable, and no one else uses them.
    #[inline]
    pub unsafe fn call(&self, lower: *const u8, upper: *mut u8, first: u64, elements: u64) {
        match self {
            // SAFETY: the caller guarantees both vectors of `elements` elements (the three conditions of
            // `# Safety`). `elements` fits in `usize`, because the vectors lie in memory.
            Self::Native(combine) => unsafe { combine(lower, upper, elements as usize) },
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

/// The payload of a panic of a user's function.
pub type Panic = Box<dyn Any + Send>;

/// Work of a source that has to run without the lock.
#[derive(Debug)]
pub enum Errand {
    /// Combine two vectors.
    Combine {
        /// The operation.
        with: Combine,
        /// Address of displacement 0 of the first element of the lower operand.
        lower: *const u8,
        /// Address of displacement 0 of the first element of the upper operand, which takes the result.
        upper: *mut u8,
        /// Number of the first element.
        first: u64,
        /// Number of elements.
        elements: u64,
    },
    /// Copy this many packed bytes from one layout to another.
    Copy(Supply, Sink, u64),
    /// Drop a user's function. A value that the function owns may call this library when it is dropped.
    Drop(Combine),
}

// SAFETY: the source that makes an errand guarantees that any thread may use the memory of the errand until
// the end of the errand is reported.
unsafe impl Send for Errand {}

impl Errand {
    /// Runs the errand.
    ///
    /// # Safety
    ///
    /// - The memory of the errand is valid, as the source that made it requires (`Schedules::start`).
    pub unsafe fn run(self) {
        match self {
            // SAFETY: the source guarantees that `lower` and `upper` are vectors of `elements` elements,
            // and that `upper` is the errand's alone (the condition of `# Safety`).
            Self::Combine { with, lower, upper, first, elements } => unsafe {
                with.call(lower, upper, first, elements);
            },
            // SAFETY: the source has checked that both sides have at least `bytes` packed bytes, and it
            // guarantees that they are valid and do not overlap (the condition of `# Safety`).
            Self::Copy(supply, sink, bytes) => unsafe { copy(&supply, &sink, bytes) },
            Self::Drop(with) => drop(with),
        }
    }
}

/// A source of progress besides messages.
pub trait Source: Any + fmt::Debug + Send {
    /// Handles the completion of a message that this source owns under `token`.
    fn completed(&mut self, engine: &mut MessageEngine, token: u64, result: Result<Status>);

    /// Makes one short turn. Returns true if anything moved. The engine calls it while [`Source::nap`] asks
    /// for turns.
    ///
    /// # Errors
    /// Returns an error that ends all communication of this process.
    fn progress(&mut self, engine: &mut MessageEngine) -> Result<bool>;

    /// Returns how long a thread may sleep without a turn of this source, or `None` while the source needs
    /// no turns.
    fn nap(&self) -> Option<Duration>;

    /// Returns whether an errand is ready.
    fn has_errand(&self) -> bool;

    /// Returns the next errand, and the number under which its end is reported.
    fn errand(&mut self) -> Option<(u64, Errand)>;

    /// Handles the end of the errand with this number. `panic` is the payload if the errand panicked. If a
    /// caller waits for the operation, the source keeps the payload, and the caller panics with it.
    /// Otherwise the source returns the payload.
    fn ran(
        &mut self,
        engine: &mut MessageEngine,
        token: u64,
        panic: Option<Panic>,
    ) -> Option<Panic>;

    /// Detaches the operation of a request from its memory; see `Endpoint::detach`. Returns false while a
    /// thread runs an errand of the operation; the caller then has to call again.
    fn detach(&mut self, engine: &mut MessageEngine, token: u64) -> bool;

    /// Notes that the context of a dropped communicator has been closed. An operation that still runs in
    /// the context closes the context again at its end, so that no queues of the context are left.
    fn context_closed(&mut self, context: u64);

    /// Returns whether another rank may wait for a message that this source has yet to send.
    fn is_needed(&self) -> bool;
}

/// The address to which the end of an errand is reported.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    source: u32,
    token: u64,
}

/// Messages and sources under the endpoint's lock.
#[derive(Debug)]
pub struct Core {
    /// The messages of this process.
    pub engine: MessageEngine,
    sources: Vec<Box<dyn Source>>,
    /// A source has an errand ready.
    errands: bool,
    /// The shortest nap of the sources that want turns.
    nap: Option<Duration>,
}

impl Core {
    /// Creates a core with messages and without other sources.
    pub fn new(engine: MessageEngine) -> Self {
        Self { engine, sources: Vec::new(), errands: false, nap: None }
    }

    /// Adds a source. `make` receives its number.
    pub fn register<S: Source>(&mut self, make: impl FnOnce(u32) -> S) {
        let source = make(self.sources.len() as u32);
        self.sources.push(Box::new(source));
        self.look_around();
    }

    /// Calls `change` with the source of this type and the messages.
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
        Err(Error::new(ErrorKind::Internal, "source", "no source of this type is registered"))
    }

    /// Asks all sources for errands and naps, after a call to one of them.
    #[inline]
    pub fn look_around(&mut self) {
        self.errands = self.sources.iter().any(|source| source.has_errand());
        self.nap = self.sources.iter().filter_map(|source| source.nap()).min();
    }

    /// Returns whether an errand is ready.
    #[inline]
    pub fn has_errand(&self) -> bool {
        self.errands
    }

    /// Returns how long a thread may sleep without a turn.
    #[inline]
    pub fn nap(&self) -> Option<Duration> {
        self.nap
    }

    /// Returns whether no operation waits for a turn: a turn could then only move messages that no
    /// operation needs yet.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.engine.is_idle() && !self.engine.requests_ref().has_collected()
    }

    /// Makes one turn of everything that has work. Returns true if anything moved.
    ///
    /// # Errors
    /// Returns `ErrorKind::Other` if another rank broke the protocol, and `ErrorKind::NoMemory` if
    /// memory ran out.
    #[inline]
    pub fn progress(&mut self) -> Result<bool> {
        let moved = self.engine.progress()?;
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

    /// Reports completed messages to the sources that own them.
    fn hand_out(&mut self, moved: &mut bool) {
        while let Some((Owner { source, token }, result)) = self.engine.requests().collected() {
            *moved = true;
            if let Some(source) = self.sources.get_mut(source as usize) {
                source.completed(&mut self.engine, token, result);
            }
        }
    }

    /// Takes the next errand.
    pub fn errand(&mut self) -> Option<(Sent, Errand)> {
        let mut found = None;
        for (number, source) in self.sources.iter_mut().enumerate() {
            if let Some((token, errand)) = source.errand() {
                found = Some((Sent { source: number as u32, token }, errand));
                break;
            }
        }
        self.look_around();
        found
    }

    /// Reports the end of an errand. `panic` is the payload if the errand panicked. Returns a payload that
    /// no caller waits for. The caller must drop the payload without the lock.
    pub fn ran(&mut self, sent: Sent, panic: Option<Panic>) -> Option<Panic> {
        let left = match self.sources.get_mut(sent.source as usize) {
            Some(source) => source.ran(&mut self.engine, sent.token, panic),
            None => panic,
        };
        self.look_around();
        left
    }

    /// Detaches the operation of any request from its memory; see [`Source::detach`].
    pub fn detach(&mut self, id: u64) -> bool {
        if self.engine.requests().is_owned(id) {
            // The request belongs to a source; the caller has no such operation.
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

    /// Forgets the context of a communicator that has been dropped.
    pub fn close_context(&mut self, context: u64) {
        self.engine.close_context(context);
        for source in &mut self.sources {
            source.context_closed(context);
        }
    }

    /// Returns whether no other rank waits for this one.
    pub fn others_are_served(&self) -> bool {
        self.engine.others_are_served() && !self.sources.iter().any(|source| source.is_needed())
    }
}
