//! `MPI_COMM_WORLD` and `MPI_COMM_SELF`, and the runtime's [`Universe`], to which they belong.
//!
//! The functions of `env/` join and leave the universe. Error handling may need the error handler of
//! `MPI_COMM_SELF` at any time, even before init, when that communicator does not exist yet. Before init,
//! errors are therefore fatal, as with the error handler `MPI_ERRORS_ARE_FATAL`.

use super::Comm;
use crate::abi;
use crate::error::handler::Handler;
use crate::error::{Failure, Result};
use crate::lifecycle;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use typepack::{ErrorKind, Source, Tag, Universe};

/// The universe; `None` before init and after finalize.
static UNIVERSE: Mutex<Option<Universe>> = Mutex::new(None);

static WORLD: OnceLock<Arc<Comm>> = OnceLock::new();
static OWN: OnceLock<Arc<Comm>> = OnceLock::new();

/// Returns `MPI_COMM_WORLD`; `None` before init.
pub fn world() -> Option<&'static Arc<Comm>> {
    WORLD.get()
}

/// Returns `MPI_COMM_SELF`; `None` before init.
pub fn own() -> Option<&'static Arc<Comm>> {
    OWN.get()
}

/// Joins the job and makes the two communicators. `threads` is the granted thread level.
///
/// # Errors
/// Returns the errors of [`typepack::init`].
pub fn join(threads: c_int) -> Result {
    let universe = typepack::init()?;
    let world = Comm::new(universe.world(), Handler::Fatal, "MPI_COMM_WORLD");
    let own = Comm::new(universe.own(), Handler::Fatal, "MPI_COMM_SELF");
    super::attribute::begin(&universe);
    let program = universe.app_size().map_or(world.size() as u64, u64::from);
    lifecycle::identify(world.rank(), program, threads);
    let _ = OWN.set(Arc::new(own));
    let _ = WORLD.set(Arc::new(world));
    begin_with(universe.initial_errhandler().as_deref());
    *UNIVERSE.lock().unwrap_or_else(PoisonError::into_inner) = Some(universe);
    Ok(())
}

/// Sets the error handler of both communicators as the user asked with `mpiexec -initial-errhandler`
/// (MPI-5.0 section 9.3). If the user named none, or named the default, the error handlers stay unchanged.
/// `mpiexec` has already refused invalid names.
fn begin_with(name: Option<&str>) {
    let handler = match name {
        Some("mpi_errors_abort") => Handler::Abort,
        Some("mpi_errors_return") => Handler::Return,
        _ => return,
    };
    for comm in [WORLD.get(), OWN.get()].into_iter().flatten() {
        comm.handler().set(handler.clone());
    }
}

/// Deletes the attributes of `MPI_COMM_SELF`, the most recently set attribute first (MPI-5.0 section
/// 11.2.4), and then leaves the job.
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if the process has already left the job, or if it is a forked child of a rank. If a delete function fails, returns the
/// code of that function, and the process does not leave the job.
pub fn leave() -> Result {
    if let Some(own) = own() {
        // A forked child must change nothing: it must neither run the user's functions nor take a lock, which
        // a thread of its parent may have held at the fork. In a child, every call that could move messages
        // fails in this way.
        if let Err(error) = own.communicator().iprobe(Source::Any, Tag::Any)
            && error.kind() == ErrorKind::State
        {
            return Err(error.into());
        }
        own.attributes().clear(abi::COMM_SELF)?;
    }
    let universe = UNIVERSE.lock().unwrap_or_else(PoisonError::into_inner).take();
    match universe {
        Some(universe) => {
            drop(universe);
            Ok(())
        }
        None => {
            Err(Failure::new(abi::ERR_OTHER, "finalize", "MPI_Finalize has already been called"))
        }
    }
}

/// Returns the error handler for failures that belong to no object, and the handle that this error handler
/// gets.
pub fn default_handler() -> (Handler, usize) {
    let handler = own().map_or(Handler::Fatal, |own| own.handler().get());
    (handler, abi::COMM_SELF)
}
