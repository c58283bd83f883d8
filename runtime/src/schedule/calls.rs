//! Running, starting and keeping schedules.
//!
//! A blocking call is start and wait under one taking of the lock; a nonblocking one leaves a request
//! of the endpoint's table, which is waited for, tested, forgotten and detached like a message; a
//! persistent one keeps the schedule.

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
/// - The memory that `build` lists is valid for what the steps do, and nobody else's, until the call
///   returns.
///
/// # Errors
/// Those of `build`; the first of the steps'; a rank has died.
#[inline]
pub unsafe fn run<'a>(
    endpoint: &Endpoint,
    place: Place,
    build: impl FnOnce(&mut Builder<'_, 'a>) -> Result<()>,
) -> Result<()> {
    let (index, waited) = endpoint.run(
        |core| {
            // SAFETY: the caller promises it until the call returns; then the result has been
            // fetched, or the schedule is abandoned below.
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
/// - The memory that `build` lists is valid for what the steps do, and nobody else's, until the
///   operation is complete or detached. Plans are kept.
///
/// # Errors
/// Those of `build`; a rank has died; if all steps are over at once, the first of their errors.
pub unsafe fn start<'a>(
    endpoint: &Endpoint,
    place: Place,
    build: impl FnOnce(&mut Builder<'_, 'a>) -> Result<()>,
) -> Result<Operation> {
    endpoint.begin(|core| {
        // SAFETY: the caller keeps the memory valid until the operation is complete or detached, which is
        // all that `Schedules::start` asks; plans are kept by the schedule.
        let started = core.with(|schedules: &mut Schedules, engine| unsafe {
            schedules.start(engine, place, build)
        });
        core.look_around();
        started?
    })
}

/// A schedule that is kept, to be started again and again: a persistent collective operation.
///
/// Dropping it while it runs changes nothing for the round that runs: its memory stays in use until that is
/// over.
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
    /// Those of `build`; not initialised any more.
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
    /// - The memory that the operation was made with is valid for what it does, and nobody else's, until
    ///   the round is complete or detached.
    ///
    /// # Errors
    /// The round before is not complete; a rank has died; if the round is over at once, its error.
    pub unsafe fn start(&self) -> Result<Operation> {
        self.endpoint.begin(|core| {
            // SAFETY: the caller's promise is the one that is asked for.
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
            // Without the table there is nothing to give back.
            let _gone = core.with(|schedules: &mut Schedules, _| schedules.free(self.index));
            core.look_around();
            true
        });
    }
}

/// Makes schedules possible at this endpoint.
///
/// # Errors
/// Not initialised any more; a forked child.
pub fn register(endpoint: &Endpoint) -> Result<()> {
    let rank = endpoint.rank();
    endpoint.register(|number| Schedules::new(number, rank))
}
