//! What the progress engine drives: the messages, and the sources of progress that stand on them.
//!
//! A source (schedules; later windows, files, timers) is registered once, and lives under the
//! endpoint's lock. It hears of the messages that it owns when they are complete
//! ([`Source::completed`]), and is called in every turn while it asks for that ([`Source::nap`]). An
//! idle source costs nothing: a turn looks at one queue and one flag, whatever is registered.
//!
//! What takes long, or calls a user's function, a source does not do under the lock: it has an
//! [`Errand`] ready, which any thread that waits or tests takes, runs without the lock, and reports
//! ([`Source::ran`]). `progress.rs` does that.

use crate::endpoint::engine::MessageEngine;
use crate::endpoint::requests::Owner;
use crate::message::Status;
use crate::message::payload::{Sink, Supply, copy};
use crate::{Error, ErrorKind, Result};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A combining function of so many elements: `upper[i] = lower[i] op upper[i]`.
pub type Combiner = unsafe fn(*const u8, *mut u8, usize);

/// A user's function: lower operand, upper operand, number of the first element, elements.
type UserFunction = dyn Fn(*const u8, *mut u8, u64, u64) + Send + Sync;

/// An operation that combines two vectors of elements: `upper[i] = lower[i] op upper[i]`, where `lower`
/// comes from ranks below those of `upper`.
///
/// It is owned, so that a reduction may outlive the call that starts it. It is called with the addresses
/// of displacement 0 of the first of so many elements in both vectors, and with the number of that
/// first element among those of the call: a reduction may be cut into pieces. It reads both, writes
/// the elements of `upper`, and touches nothing else.
#[derive(Clone)]
pub enum Combine {
    /// A function of the library: short, calls nothing, may be called under a lock.
    Native(Combiner),
    /// A user's function, which is called outside every lock.
    User(Arc<UserFunction>),
}

impl Combine {
    /// A user's function of lower operand, upper operand, number of the first element, elements.
    pub fn user(function: impl Fn(*const u8, *mut u8, u64, u64) + Send + Sync + 'static) -> Self {
        Self::User(Arc::new(function))
    }

    /// Combines `elements` elements from number `first` on, which lie at these addresses.
    ///
    /// # Safety
    ///
    /// - Both are addresses of displacement 0 of as many elements of the type that the operation is
    ///   for, readable; those at `upper` are writable and nobody else's.
    #[inline]
    pub unsafe fn call(&self, lower: *const u8, upper: *mut u8, first: u64, elements: u64) {
        match self {
            // SAFETY: the two vectors are the caller's promise; so many elements fit into memory.
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

/// What a source wants done without the lock.
#[derive(Debug)]
pub enum Errand {
    /// Combine two vectors.
    Combine {
        /// How.
        with: Combine,
        /// Displacement 0 of the first element of the lower operand.
        lower: *const u8,
        /// The same of the upper operand, which takes the result.
        upper: *mut u8,
        /// Number of the first element.
        first: u64,
        /// Elements.
        elements: u64,
    },
    /// Copy so many packed bytes from one layout to another.
    Copy(Supply, Sink, u64),
    /// Drop a user's function: what it owns may call this library when it goes.
    Drop(Combine),
}

// SAFETY: who makes an errand promises that its memory may be used from any thread until the errand
// has been reported as run.
unsafe impl Send for Errand {}

impl Errand {
    /// Does it.
    ///
    /// # Safety
    ///
    /// - The memory of the errand is valid as the source that made it says (`Schedules::start`).
    pub unsafe fn run(self) {
        match self {
            // SAFETY: the two vectors are the source's promise.
            Self::Combine { with, lower, upper, first, elements } => unsafe {
                with.call(lower, upper, first, elements);
            },
            // SAFETY: the source compares both sizes with the bytes before it makes the errand; that
            // the sides do not overlap is its promise.
            Self::Copy(supply, sink, bytes) => unsafe { copy(&supply, &sink, bytes) },
            Self::Drop(with) => drop(with),
        }
    }
}

/// Something that the progress engine drives besides messages.
pub trait Source: Any + fmt::Debug + Send {
    /// A message that this source owns under `token` is complete.
    fn completed(&mut self, engine: &mut MessageEngine, token: u64, result: Result<Status>);

    /// One short turn; true when something moved. Called while [`Source::nap`] asks for it.
    ///
    /// # Errors
    /// What ends all communication of this process.
    fn progress(&mut self, engine: &mut MessageEngine) -> Result<bool>;

    /// How long a thread may sleep without giving this source a turn; `None` while it needs none.
    fn nap(&self) -> Option<Duration>;

    /// Whether an errand is ready.
    fn has_errand(&self) -> bool;

    /// The next errand, and the number under which it is reported.
    fn errand(&mut self) -> Option<(u64, Errand)>;

    /// The errand with this number has been run; `completed` is false when it has panicked.
    fn ran(&mut self, engine: &mut MessageEngine, token: u64, completed: bool);

    /// Cuts the operation that a request stands for loose from its memory; see `Endpoint::detach`.
    /// False while an errand of it is being run: to be asked again.
    fn detach(&mut self, engine: &mut MessageEngine, token: u64) -> bool;

    /// Whether another rank may wait for something that this source has yet to send.
    fn is_needed(&self) -> bool;
}

/// An errand on its way: where it is reported.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    source: u32,
    token: u64,
}

/// Messages and sources, under the endpoint's lock.
#[derive(Debug)]
pub struct Core {
    /// The messages of this process.
    pub engine: MessageEngine,
    sources: Vec<Box<dyn Source>>,
    /// Some source has an errand ready.
    errands: bool,
    /// The shortest nap of a source that wants turns.
    nap: Option<Duration>,
}

impl Core {
    /// Messages, without other sources.
    pub fn new(engine: MessageEngine) -> Self {
        Self { engine, sources: Vec::new(), errands: false, nap: None }
    }

    /// Adds a source, which is told its number.
    pub fn register<S: Source>(&mut self, make: impl FnOnce(u32) -> S) {
        let source = make(self.sources.len() as u32);
        self.sources.push(Box::new(source));
        self.look_around();
    }

    /// The source of this type, with the messages.
    ///
    /// # Errors
    /// None is registered.
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
        Err(Error::new(ErrorKind::Internal, "source", "is not registered"))
    }

    /// Notes what sources want, after a call of one of them.
    #[inline]
    pub fn look_around(&mut self) {
        self.errands = self.sources.iter().any(|source| source.has_errand());
        self.nap = self.sources.iter().filter_map(|source| source.nap()).min();
    }

    /// Whether an errand is ready.
    #[inline]
    pub fn has_errand(&self) -> bool {
        self.errands
    }

    /// How long a thread may sleep without a turn.
    #[inline]
    pub fn nap(&self) -> Option<Duration> {
        self.nap
    }

    /// True when a turn could move nothing but messages that nobody waits for.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.engine.is_idle() && !self.engine.requests_ref().has_collected()
    }

    /// One turn of everything that has something to do. True when something moved.
    ///
    /// # Errors
    /// Another rank broke the protocol; out of memory.
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

    /// Tells sources of their messages that are complete.
    fn hand_out(&mut self, moved: &mut bool) {
        while let Some((Owner { source, token }, result)) = self.engine.requests().collected() {
            *moved = true;
            if let Some(source) = self.sources.get_mut(source as usize) {
                source.completed(&mut self.engine, token, result);
            }
        }
    }

    /// Takes an errand.
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

    /// An errand has been run, or has panicked.
    pub fn ran(&mut self, sent: Sent, completed: bool) {
        if let Some(source) = self.sources.get_mut(sent.source as usize) {
            source.ran(&mut self.engine, sent.token, completed);
        }
        self.look_around();
    }

    /// As [`Source::detach`], for any request.
    pub fn detach(&mut self, id: u64) -> bool {
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

    /// True when no other rank waits for anything of this one.
    pub fn others_are_served(&self) -> bool {
        self.engine.others_are_served() && !self.sources.iter().any(|source| source.is_needed())
    }
}
