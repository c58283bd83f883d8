//! Starting processes, and meeting those of other worlds. See `README.md` in this folder.
//!
//! This file converts the answers of the launcher. `world.rs` uses `spawn.rs` when a process joins its job.

mod command;
mod port;
mod spawn;
mod told;

pub use self::command::Command;
pub use self::spawn::Spawned;

use crate::{Error, ErrorKind, ProcessErrorKind};
use typepack_job::service::Refused;

/// Returns the error for a request that the launcher has refused.
fn of_refusal(kind: Refused, why: &[u8]) -> Error {
    let (kind, argument) = match kind {
        Refused::Start => (ErrorKind::Process(ProcessErrorKind::Spawn), "command"),
        Refused::Port => (ErrorKind::Process(ProcessErrorKind::Port), "port_name"),
        Refused::Service => (ErrorKind::Process(ProcessErrorKind::Service), "service_name"),
        Refused::Name => (ErrorKind::Process(ProcessErrorKind::Name), "service_name"),
        Refused::Other => (ErrorKind::Other, "mpiexec"),
    };
    Error::new(kind, argument, String::from_utf8_lossy(why))
}

/// Returns the error for an answer that does not fit the request.
#[cold]
fn strange() -> Error {
    Error::new(ErrorKind::Other, "mpiexec", "the answer does not fit the request")
}
