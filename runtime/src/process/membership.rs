//! The membership of this process in its job.
//!
//! `world.rs` enters what it has found at the start: the job for which `mpiexec` or another launcher has started the
//! process. A process that is by itself belongs to no job, until it starts other processes or meets them: then
//! `endpoint/` calls [`found`], which makes a job behind the process.
//!
//! Invariant: a process belongs to one job, and to no other one later.

use crate::shm::Attached;
use crate::starter;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The job that this process has joined. The process never frees this value. Its file descriptors and its
/// mapping of the shared memory live as long as the process, so that the kernel ends the process together
/// with its launcher even after finalization.
static JOB: OnceLock<Attached> = OnceLock::new();

/// Returns the membership, or `None` if this process belongs to no job.
#[inline]
pub(crate) fn get() -> Option<&'static Attached> {
    JOB.get()
}

/// Enters the membership. If there is one already, returns that one.
pub(crate) fn enter(attached: Attached) -> &'static Attached {
    JOB.get_or_init(|| attached)
}

/// Returns the membership of a process that is by itself, and makes a job of which it is the only rank if it has none.
///
/// # Errors
/// Returns the errors of [`starter::found`].
pub(crate) fn found() -> Result<&'static Attached, typepack_job::Error> {
    static FOUNDING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = FOUNDING.lock().unwrap_or_else(PoisonError::into_inner);
    match get() {
        Some(attached) => Ok(attached),
        None => Ok(enter(starter::found()?)),
    }
}
