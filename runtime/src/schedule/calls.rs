//! Runs, starts and keeps schedules.
//!
//! A blocking call starts a schedule and waits for it while it holds the lock once. A nonblocking call
//! leaves a request in the endpoint's table; the program waits for, tests, frees and detaches this request
//! like that of a message. A persistent call keeps the schedule.

use super::program::Builder;
use super::table::{Place, Schedules};
use crate::Result;
use crate::endpoint::progress::Endpoint;
use crate::message::Operation;
use std::fmt;
use std::sync::Arc;

/// Runs the steps that `build` lists, and waits for them.
///
/// # Safety
///
/// - The memory that `build` lists is valid for what the steps do until the call returns.
/// - No one else uses this memory until the call returns.
///
/// # Errors
/// Returns the error of `build`, the error of the first failed step, or `ErrorKind::ProcAborted` if a rank
/// has died.
#[inline]
pub unsafe fn run<'a>(
    endpoint: &Endpoint,
    place: Place,
    build: impl FnOnce(&mut Builder<'_, 'a>) -> Result<()>,
) -> Result<()> {
    let (index, waited) = endpoint.run(
        |core| {
            // SAFETY: the caller guarantees the memory until this call returns (both conditions of
            // `# Safety`). Before the return the result is fetched, or the schedule is abandoned below.
            let index = core.with(|schedules: &mut Schedules, engine| unsafe {
                schedules.start_waiting(engine, place, build)
            })??;
            core.look_around();
            Ok(index)
        },
        |core, index| match core.with(|schedules: &mut Schedules, _| schedules.fetch(index)) {
            Ok(found) => found,
            Err(error) => Some(Err(error)),
        },
    )?;
    match waited {
        Ok(result) => result,
        Err(error) => {
            endpoint.let_go(|core| {
                core.with(|schedules: &mut Schedules, engine| schedules.abandon(engine, index))
                    .unwrap_or(true)
            });
            Err(error)
        }
    }
}

/// Starts the steps that `build` lists.
///
/// # Safety
///
/// - The memory that `build` lists is valid for what the steps do until the operation is complete or
///   detached. The schedule keeps the plans itself.
/// - No one else uses this memory until then.
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
        // SAFETY: the caller keeps the memory valid until the operation is complete or detached, which is
        // the only condition of `Schedules::start`. The schedule keeps the plans.
        let started = core.with(|schedules: &mut Schedules, engine| unsafe {
            schedules.start(engine, place, build)
        });
        core.look_around();
        started?
    })
}

/// A schedule that is kept and can be started again and again: a persistent collective operation.
///
/// A program may drop the value while a round runs. The round continues, and uses its memory until it
/// ends.
pub struct Prepared {
    endpoint: Arc<Endpoint>,
    index: u32,
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Prepared").field(&self.index).finish()
    }
}

impl Prepared {
    /// Keeps the steps that `build` lists.
    ///
    /// # Errors
    /// Returns the error of `build`, and `ErrorKind::State` after finalization.
    pub(crate) fn new<'a>(
        endpoint: &Arc<Endpoint>,
        place: Place,
        build: impl FnOnce(&mut Builder<'_, 'a>) -> Result<()>,
    ) -> Result<Self> {
        let keep = |schedules: &mut Schedules| schedules.keep(place, build);
        let index = endpoint.with_core(|core| core.with(|schedules, _| keep(schedules))?)??;
        Ok(Self { endpoint: endpoint.clone(), index })
    }

    /// Starts a round.
    ///
    /// # Safety
    ///
    /// - The memory of the operation is valid for what it does, and no one else uses it, until the round is
    ///   complete or detached.
    ///
    /// # Errors
    /// Returns `ErrorKind::Request` if the previous round is not complete, `ErrorKind::ProcAborted` if a
    /// rank has died, and the error of the round if it ends at once.
    pub unsafe fn start(&self) -> Result<Operation> {
        self.endpoint.begin(|core| {
            // SAFETY: the caller guarantees the memory of the operation until the round is complete or
            // detached (the only condition of `# Safety`), as `restart` asks.
            let started = core.with(|schedules: &mut Schedules, engine| unsafe {
                schedules.restart(engine, self.index)
            });
            core.look_around();
            started?
        })
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        self.endpoint.let_go(|core| {
            // If the table does not exist any more, there is nothing to free.
            let _gone = core.with(|schedules: &mut Schedules, _| schedules.free(self.index));
            core.look_around();
            true
        });
    }
}

/// Registers the table of schedules at this endpoint.
///
/// # Errors
/// Returns `ErrorKind::State` after finalization or in a forked child.
pub fn register(endpoint: &Endpoint) -> Result<()> {
    let rank = endpoint.rank();
    endpoint.register(|number| Schedules::new(number, rank))
}
