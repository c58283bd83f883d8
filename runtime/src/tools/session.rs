//! Sessions and handles: how tools read counters (MPI-5.0 section 15.3.7).
//!
//! The library counts once for all. A handle keeps the count at which it was started, so that several tools can start,
//! stop and reset the same counter without knowing of each other.

use super::performance::{Amount, Performance, counters};
use super::{Fault, Result, counting, new_number};
use crate::comm::{Communicator, WeakCommunicator};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A handle.
#[derive(Debug)]
struct Opened {
    counter: &'static Performance,
    object: Option<WeakCommunicator>,
    /// The count when the handle was started or reset; `None` if it is stopped.
    since: Option<Amount>,
    /// What was counted before that.
    before: Amount,
}

type Handles = BTreeMap<u64, Opened>;

/// The sessions.
static SESSIONS: Mutex<BTreeMap<u64, Handles>> = Mutex::new(BTreeMap::new());

fn sessions() -> MutexGuard<'static, BTreeMap<u64, Handles>> {
    SESSIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends all sessions.
pub(super) fn end() {
    std::mem::take(&mut *sessions());
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.counter.subject().into_iter().for_each(counting::release);
    }
}

/// Returns 0, in the form of `amount`.
fn zero(amount: Amount) -> Amount {
    match amount {
        Amount::Whole(_) => Amount::Whole(0),
        Amount::Seconds(_) => Amount::Seconds(0.0),
    }
}

/// Returns `before` plus the difference of two counts. The counts begin anew after `greatest`.
fn sum(before: Amount, now: Amount, since: Amount, greatest: u64) -> Amount {
    match (before, now, since) {
        (Amount::Whole(before), Amount::Whole(now), Amount::Whole(since)) => {
            Amount::Whole(before.wrapping_add(now.wrapping_sub(since) & greatest))
        }
        (Amount::Seconds(before), Amount::Seconds(now), Amount::Seconds(since)) => {
            Amount::Seconds(before + (now - since))
        }
        // All values of one counter have one form.
        _ => now,
    }
}

impl Opened {
    fn now(&self) -> Result<Amount> {
        self.counter.now(self.object.as_ref())
    }

    fn read(&self) -> Result<Amount> {
        match self.since {
            _ if self.counter.is_level() => self.now(),
            Some(since) => Ok(sum(self.before, self.now()?, since, self.counter.greatest())),
            None => Ok(self.before),
        }
    }

    fn start(&mut self) -> Result {
        if self.counter.is_level() {
            return Err(Fault::NoStartStop);
        }
        if self.since.is_none() {
            self.since = Some(self.now()?);
        }
        Ok(())
    }

    fn stop(&mut self) -> Result {
        if self.counter.is_level() {
            return Err(Fault::NoStartStop);
        }
        (self.before, self.since) = (self.read()?, None);
        Ok(())
    }

    /// Sets the value, and returns the value before.
    fn set(&mut self, value: impl FnOnce(Amount) -> Result<Amount>) -> Result<Amount> {
        if self.counter.is_level() {
            return Err(Fault::NoWrite);
        }
        let now = self.now()?;
        let old = match self.since {
            Some(since) => sum(self.before, now, since, self.counter.greatest()),
            None => self.before,
        };
        self.before = value(old)?;
        self.since = self.since.map(|_| now);
        Ok(old)
    }
}

/// A session, in which handles are made. A session and its handles belong to nobody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session(u64);

/// The handle of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle(u64);

impl Handle {
    /// Returns the handle with this number, which need not exist.
    pub fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number of the handle.
    pub fn number(self) -> u64 {
        self.0
    }
}

impl Session {
    /// Begins a session.
    #[doc(alias = "MPI_T_pvar_session_create")]
    #[expect(clippy::new_without_default, reason = "a session is no value, but begins here")]
    pub fn new() -> Self {
        let number = new_number();
        sessions().insert(number, Handles::new());
        Self(number)
    }

    /// Returns the session with this number, which need not exist.
    pub fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number of the session.
    pub fn number(self) -> u64 {
        self.0
    }

    /// Ends the session and its handles.
    ///
    /// # Errors
    /// Returns [`Fault::Session`] if there is no such session.
    #[doc(alias = "MPI_T_pvar_session_free")]
    pub fn free(self) -> Result {
        let ended = sessions().remove(&self.0);
        ended.map(drop).ok_or(Fault::Session)
    }

    /// Makes a handle of the counter with this index. A counter of a communicator needs one. A handle of a level counts
    /// from the beginning; any other handle must be started.
    ///
    /// # Errors
    /// Returns [`Fault::Session`] if there is no such session, [`Fault::Index`] if there is no such counter, and
    /// [`Fault::Invalid`] if the counter needs a communicator and gets none.
    #[doc(alias = "MPI_T_pvar_handle_alloc")]
    pub fn allocate(self, index: usize, object: Option<&Communicator>) -> Result<Handle> {
        let mut sessions = sessions();
        let handles = sessions.get_mut(&self.0).ok_or(Fault::Session)?;
        let counter = counters().get(index).ok_or(Fault::Index)?;
        let object = object.filter(|_| counter.is_of_communicator()).map(Communicator::downgrade);
        if counter.is_of_communicator() && object.is_none() {
            return Err(Fault::Invalid);
        }
        let before = zero(counter.now(object.as_ref())?);
        counter.subject().into_iter().for_each(counting::want);
        let number = new_number();
        handles.insert(number, Opened { counter, object, since: None, before });
        Ok(Handle(number))
    }

    /// Calls `work` with a handle.
    fn with<R>(self, handle: Handle, work: impl FnOnce(&mut Opened) -> Result<R>) -> Result<R> {
        let mut sessions = sessions();
        let handles = sessions.get_mut(&self.0).ok_or(Fault::Session)?;
        work(handles.get_mut(&handle.0).ok_or(Fault::Handle)?)
    }

    /// Calls `work` with each handle of a counter that is no level. Returns the first error.
    fn with_all(self, mut work: impl FnMut(&mut Opened) -> Result) -> Result {
        let mut sessions = sessions();
        let handles = sessions.get_mut(&self.0).ok_or(Fault::Session)?;
        let all = handles.values_mut().filter(|handle| !handle.counter.is_level());
        all.map(&mut work).fold(Ok(()), Result::and)
    }

    /// Ends a handle.
    ///
    /// # Errors
    /// Returns [`Fault::Session`] or [`Fault::Handle`] if there is no such session, or no such handle in it.
    #[doc(alias = "MPI_T_pvar_handle_free")]
    pub fn release(self, handle: Handle) -> Result {
        let mut sessions = sessions();
        let handles = sessions.get_mut(&self.0).ok_or(Fault::Session)?;
        handles.remove(&handle.0).map(drop).ok_or(Fault::Handle)
    }

    /// Starts a handle. If it has been started already, nothing changes.
    ///
    /// # Errors
    /// Returns [`Fault::NoStartStop`] if the counter is a level, and those of [`read`](Self::read).
    #[doc(alias = "MPI_T_pvar_start")]
    pub fn start(self, handle: Handle) -> Result {
        self.with(handle, Opened::start)
    }

    /// Starts all handles of the session but those of levels.
    ///
    /// # Errors
    /// Returns [`Fault::Session`] if there is no such session, and the first error of [`start`](Self::start).
    pub fn start_all(self) -> Result {
        self.with_all(Opened::start)
    }

    /// Stops a handle. Its value then no longer changes.
    ///
    /// # Errors
    /// Returns the errors of [`start`](Self::start).
    #[doc(alias = "MPI_T_pvar_stop")]
    pub fn stop(self, handle: Handle) -> Result {
        self.with(handle, Opened::stop)
    }

    /// Stops all handles of the session but those of levels.
    ///
    /// # Errors
    /// Returns [`Fault::Session`] if there is no such session, and the first error of [`stop`](Self::stop).
    pub fn stop_all(self) -> Result {
        self.with_all(Opened::stop)
    }

    /// Returns the value of a handle: what has been counted while it was started, or the level.
    ///
    /// # Errors
    /// Returns [`Fault::Session`] or [`Fault::Handle`] if there is no such session, or no such handle in it, or if the
    /// communicator of the handle has been freed, and [`Fault::NotAccessible`] in a forked child of a rank.
    #[doc(alias = "MPI_T_pvar_read")]
    pub fn read(self, handle: Handle) -> Result<Amount> {
        self.with(handle, |handle| handle.read())
    }

    /// Returns the value of a handle, and sets it to 0.
    ///
    /// # Errors
    /// Returns [`Fault::NoAtomic`] if the counter is a level, and the errors of [`read`](Self::read).
    #[doc(alias = "MPI_T_pvar_readreset")]
    pub fn read_and_reset(self, handle: Handle) -> Result<Amount> {
        let reset = |handle: &mut Opened| handle.set(|old| Ok(zero(old)));
        self.with(handle, reset).map_err(|fault| match fault {
            Fault::NoWrite => Fault::NoAtomic,
            other => other,
        })
    }

    /// Sets the value of a handle to 0.
    ///
    /// # Errors
    /// Returns [`Fault::NoWrite`] if the counter is a level, and the errors of [`read`](Self::read).
    #[doc(alias = "MPI_T_pvar_reset")]
    pub fn reset(self, handle: Handle) -> Result {
        self.with(handle, |handle| handle.set(|old| Ok(zero(old))).map(drop))
    }

    /// Sets the values of all handles of the session but those of levels to 0.
    ///
    /// # Errors
    /// Returns [`Fault::Session`] if there is no such session, and the first error of [`reset`](Self::reset).
    pub fn reset_all(self) -> Result {
        self.with_all(|handle| handle.set(|old| Ok(zero(old))).map(drop))
    }

    /// Returns the counter of a handle.
    ///
    /// # Errors
    /// Returns [`Fault::Session`] or [`Fault::Handle`] if there is no such session, or no such handle in it.
    pub fn counter(self, handle: Handle) -> Result<&'static Performance> {
        self.with(handle, |handle| Ok(handle.counter))
    }

    /// Sets the value of a handle.
    ///
    /// # Errors
    /// Returns [`Fault::NoWrite`] if the counter is a level, [`Fault::Invalid`] if the value has another form than
    /// those of the counter, or is a negative time or none, and the errors of [`read`](Self::read).
    #[doc(alias = "MPI_T_pvar_write")]
    pub fn write(self, handle: Handle, value: Amount) -> Result {
        let is_possible = |old| match (old, value) {
            (Amount::Whole(_), Amount::Whole(_)) => true,
            (Amount::Seconds(_), Amount::Seconds(time)) => time >= 0.0 && time.is_finite(),
            _ => false,
        };
        let set = |old| if is_possible(old) { Ok(value) } else { Err(Fault::Invalid) };
        self.with(handle, |handle| handle.set(set).map(drop))
    }
}
