//! Runs, starts and keeps schedules.
//!
//! A blocking call starts a schedule and waits for it, and takes the endpoint's lock only once for both. A
//! nonblocking call leaves a request in the endpoint's table; the program waits for, tests, frees and
//! detaches this request like the request of a message. A persistent call keeps the schedule and starts it
//! again and again.

use super::program::Builder;
use super::table::{Place, Schedules};
use crate::Result;
use crate::endpoint::progress::{Awaited, Endpoint};
use crate::message::Operation;
use crate::shm::waiting::Kind;
use std::cell::Cell;
use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;

/// Runs the steps that `build` lists, and waits for them. `call` is the name of the method that the program calls, or
/// empty, and `ranks` is the number of ranks that take part, or 0 if the caller does not say.
///
/// # Safety
///
/// - The memory that `build` lists is valid, until the call returns, for the reads and writes of the
///   steps.
/// - Nobody else uses this memory until the call returns.
///
/// # Errors
/// Returns the error of `build`, the error of the first failed step, or `ErrorKind::ProcAborted` if a rank
/// has died.
///
/// # Panics
/// Panics if a user's function of the schedule has panicked on any thread. When this call panics, the
/// schedule is over or abandoned.
#[inline]
pub unsafe fn run<'a>(
    endpoint: &Endpoint,
    (call, ranks): (&'static str, usize),
    place: Place,
    build: impl FnOnce(&mut Builder<'_, 'a>) -> Result<()>,
) -> Result<()> {
    // If a user's function panics, this cell gets the payload of the panic, and this call then panics with
    // the same payload.
    let panic = Cell::new(None);
    let awaited =
        Awaited::Ranks { call, kind: Kind::Collective, context: place.context, ranks, peer: None };
    let waited = endpoint.run(
        &awaited,
        |core| {
            // SAFETY: the caller guarantees that the memory stays valid, and that nobody else uses it,
            // until this call returns or unwinds (both conditions of `# Safety`). Before that, this call
            // has fetched the result or abandoned the schedule.
            let index = core.with(|schedules: &mut Schedules, engine| unsafe {
                schedules.start_waiting(engine, place, build)
            });
            core.look_around();
            index?
        },
        |core, index| {
            let found = core.with(|schedules: &mut Schedules, _| {
                let found = schedules.fetch(index);
                if let Some(Err(_)) = &found {
                    panic.set(schedules.take_panic(index));
                }
                found
            });
            match found {
                Ok(found) => found,
                Err(error) => Some(Err(error)),
            }
        },
        |core, index| {
            let abandoned = core.with(|schedules: &mut Schedules, engine| {
                if let Some(found) = schedules.take_panic(index) {
                    panic.set(Some(found));
                }
                schedules.abandon(engine, index)
            });
            core.look_around();
            abandoned.unwrap_or(true)
        },
    );
    if let Some(panic) = panic.take() {
        resume_unwind(panic);
    }
    waited?
}

/// Starts the steps that `build` lists.
///
/// # Safety
///
/// - The memory that `build` lists is valid for the reads and writes of the steps until the operation is
///   complete or detached. The plans need to live only until this call returns, because the schedule keeps
///   them.
/// - Nobody else uses this memory until the operation is complete or detached.
///
/// # Errors
/// Returns the error of `build`, `ErrorKind::ProcAborted` if a rank has died, or the error of the first
/// failed step if all steps end at once.
pub unsafe fn start<'a>(
    endpoint: &Endpoint,
    place: Place,
    build: impl FnOnce(&mut Builder<'_, 'a>) -> Result<()>,
) -> Result<Operation> {
    endpoint.begin(|core| {
        // SAFETY: the caller guarantees that the memory stays valid, and that nobody else uses it, until
        // the operation is complete or detached (both conditions of `# Safety`). `Schedules::start` has no
        // other condition.
        let started = core.with(|schedules: &mut Schedules, engine| unsafe {
            schedules.start(engine, place, build)
        });
        core.look_around();
        started?
    })
}

/// A schedule that is kept and can be started again and again. Each start begins one round.
///
/// A program may drop this value while a round runs. The round then continues, and uses the caller's
/// memory until the round ends.
pub struct Kept {
    endpoint: Arc<Endpoint>,
    index: u32,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kept").field(&self.index).finish()
    }
}

impl Kept {
    /// Lists the steps with `build` and keeps them for later rounds.
    ///
    /// # Errors
    /// Returns the error of `build`, and `ErrorKind::State` after finalization.
    pub(crate) fn new<'a>(
        endpoint: &Arc<Endpoint>,
        place: Place,
        build: impl FnOnce(&mut Builder<'_, 'a>) -> Result<()>,
    ) -> Result<Self> {
        let index = endpoint.with_core(|core| {
            let index = core.with(|schedules: &mut Schedules, _| schedules.keep(place, build));
            core.look_around();
            index?
        })??;
        Ok(Self { endpoint: endpoint.clone(), index })
    }

    /// Starts a round.
    ///
    /// # Safety
    ///
    /// - Until the round is complete or detached, the memory in the schedule's steps is valid for the
    ///   reads and writes of the steps, and nobody else uses this memory.
    ///
    /// # Errors
    /// Returns `ErrorKind::Request` if the previous round is not complete, `ErrorKind::ProcAborted` if a
    /// rank has died, and the error of the round if the round ends at once.
    pub unsafe fn start(&self) -> Result<Operation> {
        self.endpoint.begin(|core| {
            // SAFETY: the caller guarantees that the memory of the operation stays valid until the round
            // is complete or detached (the only condition of `# Safety`). `restart` requires the same.
            let started = core.with(|schedules: &mut Schedules, engine| unsafe {
                schedules.restart(engine, self.index)
            });
            core.look_around();
            started?
        })
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.endpoint.let_go(|core| {
            // If this call fails, the table of schedules does not exist any more, and there is nothing to
            // free.
            let _gone = core.with(|schedules: &mut Schedules, _| schedules.free(self.index));
            core.look_around();
            true
        });
    }
}

/// Registers the table of schedules as a source of progress of this endpoint.
///
/// # Errors
/// Returns `ErrorKind::State` after finalization or in a forked child.
pub fn register(endpoint: &Endpoint) -> Result<()> {
    let rank = endpoint.rank();
    endpoint.register(|number| Schedules::new(number, rank))
}
