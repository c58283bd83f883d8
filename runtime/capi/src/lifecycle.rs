//! The stage of the process: before init, between init and finalize, or after finalize. The stage decides
//! which calls are allowed (MPI-5.0 section 11.4.1). This module also keeps the rank and the thread level of
//! the process.
//!
//! `entry.rs` reads the stage in every call; `env/` changes it. All facts of this module can be read at any
//! time, even by an error handler before init.

use crate::abi;
use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};
use std::thread::ThreadId;

/// The stage of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// `MPI_Init` has not been called.
    Before,
    /// `MPI_Init` has been called, `MPI_Finalize` has not.
    Inside,
    /// `MPI_Finalize` has been called.
    After,
}

static STAGE: AtomicU8 = AtomicU8::new(0);

/// Returns the stage.
#[inline]
pub fn stage() -> Stage {
    match STAGE.load(Ordering::Acquire) {
        0 => Stage::Before,
        1 => Stage::Inside,
        _ => Stage::After,
    }
}

/// Records that the world model has been initialised.
pub fn begin() {
    STAGE.store(1, Ordering::Release);
}

/// Records that the world model has been finalized.
pub fn end() {
    STAGE.store(2, Ordering::Release);
}

/// The facts about the process that init finds out.
#[derive(Clone, Copy, Debug)]
struct Identity {
    rank: usize,
    program_size: u64,
    main: ThreadId,
}

static IDENTITY: OnceLock<Identity> = OnceLock::new();
static THREADS: AtomicI32 = AtomicI32::new(abi::THREAD_SINGLE);

/// Records that the calling thread initialises the process: its rank in `MPI_COMM_WORLD`, how many ranks run
/// the same program, and the thread level. Only the first call has an effect on rank, program size and
/// thread.
pub fn identify(rank: usize, program_size: u64, threads: c_int) {
    let main = std::thread::current().id();
    THREADS.store(threads, Ordering::Relaxed);
    let _first = IDENTITY.set(Identity { rank, program_size, main });
}

/// Returns how many ranks run the same program as this one; `None` before init.
pub fn program_size() -> Option<u64> {
    IDENTITY.get().map(|identity| identity.program_size)
}

/// Returns the thread level that was granted.
pub fn threads() -> c_int {
    THREADS.load(Ordering::Relaxed)
}

/// Returns whether the calling thread called init.
pub fn is_main_thread() -> bool {
    IDENTITY.get().is_some_and(|identity| identity.main == std::thread::current().id())
}

/// Returns the rank in `MPI_COMM_WORLD`; `None` before init.
pub fn rank() -> Option<usize> {
    IDENTITY.get().map(|identity| identity.rank)
}

/// Ends the job with this code.
pub fn abort(code: c_int) -> ! {
    typepack::abort(code)
}
