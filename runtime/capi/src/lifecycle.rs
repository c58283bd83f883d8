//! The stage of the process: before init, between init and finalize, or after finalize. Which calls are
//! allowed depends on the stage (MPI-5.0 section 11.4.1). This module also keeps the rank and the thread
//! level of the process.
//!
//! `entry.rs` reads the stage to refuse calls that are not allowed, and the functions of `env/` change it.
//! The functions here may be called at any time, even while an error handler runs before init.

use crate::abi;
use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};
use std::thread::ThreadId;

/// The stage of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// No call of `MPI_Init` has succeeded yet.
    Before,
    /// `MPI_Init` has succeeded; `MPI_Finalize` has not.
    Inside,
    /// `MPI_Finalize` has succeeded.
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

/// Records that init has succeeded.
pub fn begin() {
    STAGE.store(1, Ordering::Release);
}

/// Records that finalize has succeeded.
pub fn end() {
    STAGE.store(2, Ordering::Release);
}

/// What init learns about the process.
#[derive(Clone, Copy, Debug)]
struct Identity {
    rank: usize,
    program_size: u64,
    main: ThreadId,
}

static IDENTITY: OnceLock<Identity> = OnceLock::new();
static THREADS: AtomicI32 = AtomicI32::new(abi::THREAD_SINGLE);

/// Records what init learns: the rank of the process in `MPI_COMM_WORLD`, the number of ranks that run the
/// same program, the granted thread level, and which thread calls init (the calling thread). A second call
/// changes only the thread level.
pub fn identify(rank: usize, program_size: u64, threads: c_int) {
    let main = std::thread::current().id();
    THREADS.store(threads, Ordering::Relaxed);
    let _first = IDENTITY.set(Identity { rank, program_size, main });
}

/// Returns the number of ranks that run the same program as this rank; `None` before init.
pub fn program_size() -> Option<u64> {
    IDENTITY.get().map(|identity| identity.program_size)
}

/// Returns the thread level that init has granted.
pub fn threads() -> c_int {
    THREADS.load(Ordering::Relaxed)
}

/// Returns whether the calling thread is the one that called init.
pub fn is_main_thread() -> bool {
    IDENTITY.get().is_some_and(|identity| identity.main == std::thread::current().id())
}

/// Returns the rank in `MPI_COMM_WORLD`; `None` before init.
pub fn rank() -> Option<usize> {
    IDENTITY.get().map(|identity| identity.rank)
}

/// Ends the job with the exit code `code`.
pub fn abort(code: c_int) -> ! {
    typepack::abort(code)
}
