//! Before, between, after: which calls are allowed when (MPI-5.0 section 11.4.1); and who this process
//! is, once that is known.
//!
//! `entry/` asks on every call; `env/` moves on. Everything here can be read at any time, also by an
//! error handler before init.

use crate::abi;
use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};
use std::thread::ThreadId;

/// Where the process stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// `MPI_Init` has not been called.
    Before,
    /// Between the two.
    Inside,
    /// `MPI_Finalize` has been called.
    After,
}

static STAGE: AtomicU8 = AtomicU8::new(0);

/// The stage.
#[inline]
pub fn stage() -> Stage {
    match STAGE.load(Ordering::Acquire) {
        0 => Stage::Before,
        1 => Stage::Inside,
        _ => Stage::After,
    }
}

/// The world model has been initialised.
pub fn begin() {
    STAGE.store(1, Ordering::Release);
}

/// It has been finalized.
pub fn end() {
    STAGE.store(2, Ordering::Release);
}

/// What init finds out.
#[derive(Clone, Copy, Debug)]
struct Identity {
    rank: usize,
    program_size: u64,
    main: ThreadId,
}

static IDENTITY: OnceLock<Identity> = OnceLock::new();
static THREADS: AtomicI32 = AtomicI32::new(abi::THREAD_SINGLE);

/// The calling thread initialises a process with this rank in `MPI_COMM_WORLD`, as one of
/// `program_size` that run the same program, with this thread level. The first call counts.
pub fn identify(rank: usize, program_size: u64, threads: c_int) {
    let main = std::thread::current().id();
    THREADS.store(threads, Ordering::Relaxed);
    let _first = IDENTITY.set(Identity { rank, program_size, main });
}

/// How many ranks run the same program as this one, once it is known.
pub fn program_size() -> Option<u64> {
    IDENTITY.get().map(|identity| identity.program_size)
}

/// The thread level that was granted.
pub fn threads() -> c_int {
    THREADS.load(Ordering::Relaxed)
}

/// Whether this is the thread that initialised.
pub fn is_main_thread() -> bool {
    IDENTITY.get().is_some_and(|identity| identity.main == std::thread::current().id())
}

/// The rank in `MPI_COMM_WORLD`, once it is known.
pub fn rank() -> Option<usize> {
    IDENTITY.get().map(|identity| identity.rank)
}

/// Ends the job with this code.
pub fn abort(code: c_int) -> ! {
    typepack::abort(code)
}
