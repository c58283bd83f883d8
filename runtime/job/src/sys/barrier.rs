//! Executes a memory barrier in other processes.
//!
//! `shm/doorbell.rs` uses this file. A rank that is about to sleep calls [`everywhere`], so that the
//! ranks that may wake it need no fence of their own. The kernel reaches only processes that have called
//! [`register`] (`MEMBARRIER_CMD_GLOBAL_EXPEDITED`). Filters of system calls may deny both calls, and old
//! kernels do not have them.

use std::io;

use rustix::thread::{MembarrierCommand, MembarrierQuery, membarrier, membarrier_query};

/// Asks the kernel to include this process in the barriers of other processes. Returns false if the kernel does
/// not do this.
pub fn register() -> bool {
    let needed = MembarrierQuery::GLOBAL_EXPEDITED | MembarrierQuery::REGISTER_GLOBAL_EXPEDITED;
    membarrier_query().contains(needed)
        && membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok()
}

/// Executes a full memory barrier in this thread and in every running thread of every registered process. A
/// thread that is not running needs none, because the kernel executed a barrier when the thread stopped.
///
/// # Errors
/// Returns the kernel's error.
pub fn everywhere() -> io::Result<()> {
    Ok(membarrier(MembarrierCommand::GlobalExpedited)?)
}
