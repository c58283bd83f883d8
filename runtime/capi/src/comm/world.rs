//! The runtime's [`Universe`], to which all communicators belong, and the beginning and end of `MPI_COMM_WORLD` and
//! `MPI_COMM_SELF`.
//!
//! The process joins the job with its first use of MPI: init, or a session. It leaves the job with the end of its
//! last use, and returns to the job if another use begins. The functions of `env/` and `session.rs` join and
//! leave. Error handling may need the error handler of `MPI_COMM_SELF` at any time, even before init, when that
//! communicator does not exist yet. Errors are then fatal, unless the user has asked for another initial error
//! handler and the process has joined the job.

use super::{Comm, OWN, WORLD, own};
use crate::abi;
use crate::error::handler::Handler;
use crate::error::{Failure, Result};
use crate::lifecycle;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use typepack::{ErrorKind, Messages, Source, Tag, Universe};
use typepack_capi_datatype::types::predefined;

/// The job that the process has joined.
#[derive(Debug)]
struct Job {
    universe: Universe,
    messages: Messages,
}

static JOB: OnceLock<Job> = OnceLock::new();

/// The uses of MPI for which the process is in the job.
#[derive(Debug)]
struct Uses {
    /// How many uses there are.
    open: usize,
    /// How many uses have begun so far.
    begun: u64,
}

static USES: Mutex<Uses> = Mutex::new(Uses { open: 0, begun: 0 });

fn uses() -> MutexGuard<'static, Uses> {
    USES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the universe; `None` before the process has joined the job.
pub fn universe() -> Option<&'static Universe> {
    JOB.get().map(|job| &job.universe)
}

/// Returns the universe for a call that needs it.
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if the process has not joined the job.
pub fn joined() -> Result<&'static Universe> {
    universe()
        .ok_or_else(|| Failure::new(abi::ERR_OTHER, "call", "this process has not joined a job"))
}

/// Returns the part of the runtime that sends and receives messages, for calls without a communicator; `None`
/// before the process has joined the job.
pub fn messages() -> Option<&'static Messages> {
    JOB.get().map(|job| &job.messages)
}

/// Joins the job, or returns to it, for one more use of MPI.
///
/// # Errors
/// Returns the errors of [`typepack::init`], and `MPI_ERR_OTHER` in a forked child that would return to the job.
pub fn join() -> Result {
    let mut uses = uses();
    match JOB.get() {
        Some(job) if uses.open == 0 => job.universe.resume()?,
        Some(_) => {}
        None => {
            let universe = typepack::init()?;
            let process = universe.own().group().world_rank(0);
            let process = process.unwrap_or_default();
            lifecycle::identify(process, universe.name());
            super::attribute::begin(&universe);
            // A debugger cannot wait for a thread that makes them when it has stopped the process.
            predefined::prepare();
            let messages = universe.own().messages();
            let _first = JOB.set(Job { universe, messages });
        }
    }
    uses.open += 1;
    uses.begun += 1;
    Ok(())
}

/// Ends one use of MPI. The end of the last use leaves the job.
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if the process is a forked child of a rank. The use then has not ended.
pub fn leave() -> Result {
    // Any other error means that a rank has died, which the launcher reports.
    let allowed = |done: typepack::Result<()>| match done {
        Err(error) if error.kind() == ErrorKind::State => Err(error),
        Ok(()) | Err(_) => Ok(()),
    };
    let mut uses = uses();
    while let (1, Some(universe)) = (uses.open, universe()) {
        // Other ranks may take long to receive what this process has sent, and another thread of this process may
        // have to begin a use before they do. So this thread waits for them without the lock.
        let begun = uses.begun;
        drop(uses);
        allowed(universe.serve())?;
        uses = self::uses();
        if uses.begun == begun {
            allowed(universe.pause())?;
            break;
        }
    }
    uses.open = uses.open.saturating_sub(1);
    Ok(())
}

/// Joins the job and makes the two communicators. `threads` is the granted thread level.
///
/// # Errors
/// Returns the errors of [`join`].
pub fn begin(threads: c_int) -> Result {
    join()?;
    let universe = joined()?;
    lifecycle::grant(threads);
    let world = Comm::new(universe.world(), Handler::Fatal, "MPI_COMM_WORLD", 0);
    let own = Comm::new(universe.own(), Handler::Fatal, "MPI_COMM_SELF", 0);
    let _ = OWN.set(Arc::new(own));
    let _ = WORLD.set(Arc::new(world));
    if let Some(parent) = universe.take_parent() {
        let handler = initial_handler().unwrap_or(Handler::Fatal);
        super::spawn::set_parent(Comm::new(parent, handler, "MPI_COMM_PARENT", 0))?;
    }
    if let Some(handler) = initial_handler() {
        for comm in [WORLD.get(), OWN.get()].into_iter().flatten() {
            comm.handler().set(handler.clone());
        }
    }
    Ok(())
}

/// Returns the error handler that the user has asked for with `mpiexec -initial-errhandler` (MPI-5.0 section
/// 9.3); `None` if the user named none, or named the default. `mpiexec` has already refused invalid names.
fn initial_handler() -> Option<Handler> {
    match universe()?.initial_errhandler().as_deref() {
        Some("mpi_errors_abort") => Some(Handler::Abort),
        Some("mpi_errors_return") => Some(Handler::Return),
        _ => None,
    }
}

/// Deletes the attributes of `MPI_COMM_SELF`, the most recently set attribute first (MPI-5.0 section
/// 11.2.4). The caller then leaves the job.
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if the process is a forked child of a rank. If a delete function fails, returns the
/// code of that function.
pub fn end() -> Result {
    let Some(own) = own() else { return Ok(()) };
    // A forked child must change nothing: it must neither run the user's functions nor take a lock, which
    // a thread of its parent may have held at the fork. In a child, every call that could move messages
    // fails in this way.
    if let Err(error) = own.communicator().iprobe(Source::Any, Tag::Any)
        && error.kind() == ErrorKind::State
    {
        return Err(error.into());
    }
    own.attributes().clear(abi::COMM_SELF)
}

/// Returns the error handler for failures that belong to no object, and the handle that this error handler
/// gets.
pub fn default_handler() -> (Handler, usize) {
    // The error handler of `MPI_COMM_SELF` stays in force after finalize, for example for calls in a session.
    let handler = match OWN.get() {
        Some(own) => own.handler().get(),
        None => initial_handler().unwrap_or(Handler::Fatal),
    };
    (handler, abi::COMM_SELF)
}
