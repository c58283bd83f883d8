//! The stage of the process: before init, between init and finalize, or after finalize (MPI-5.0 section 11.2),
//! and the number of open uses of MPI. Most calls are allowed between init and finalize, and while a session
//! is open (section 11.4.1). This module also keeps the rank and the thread level of the process.
//!
//! `entry.rs` reads the number of uses, if `attention` asks for it, to refuse calls that are not allowed. The functions
//! of `env/` change the stage and the number of uses. `session.rs` changes only the number of uses. The functions here
//! may be called at any time, even while an error handler runs before init.

use crate::abi;
use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicUsize, Ordering};
use std::thread::ThreadId;
use typepack::engine::attention;

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

/// The number of open uses of MPI: one between init and finalize, and one for each open session.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Returns whether MPI can be used: between init and finalize, or while a session is open.
#[inline]
pub fn is_open() -> bool {
    OPEN.load(Ordering::Acquire) != 0
}

/// Records that a use of MPI begins.
pub fn open() {
    OPEN.fetch_add(1, Ordering::AcqRel);
    attention::clear(attention::CLOSED);
}

/// Records that a use of MPI has ended.
pub fn close() {
    if OPEN.fetch_sub(1, Ordering::AcqRel) == 1 {
        // If another use begins just now, calls look once more than they need to ([`is_open`] decides).
        attention::set(attention::CLOSED);
    }
}

/// Records that init has succeeded.
pub fn begin() {
    open();
    STAGE.store(1, Ordering::Release);
}

/// Records that finalize has succeeded.
pub fn end() {
    STAGE.store(2, Ordering::Release);
    close();
}

/// How messages name this process, which it learns when it joins the job.
static NAME: OnceLock<String> = OnceLock::new();
/// The number of this process in groups.
static PROCESS: OnceLock<usize> = OnceLock::new();
static MAIN: OnceLock<ThreadId> = OnceLock::new();
static THREADS: AtomicI32 = AtomicI32::new(abi::THREAD_SINGLE);

/// Records the number in groups and the name for messages, which the process learns when it joins the job. A second call
/// changes nothing.
pub fn identify(process: usize, name: String) {
    let _first = (PROCESS.set(process), NAME.set(name));
}

/// Records the thread level that init grants, and that the calling thread calls init.
pub fn grant(threads: c_int) {
    THREADS.store(threads, Ordering::Relaxed);
    if threads == abi::THREAD_MULTIPLE {
        attention::set(attention::THREADS);
    }
    let _first = MAIN.set(std::thread::current().id());
}

/// Returns the thread level that init has granted.
pub fn threads() -> c_int {
    THREADS.load(Ordering::Relaxed)
}

/// Returns whether the calling thread is the one that called init.
pub fn is_main_thread() -> bool {
    MAIN.get().is_some_and(|main| *main == std::thread::current().id())
}

/// Returns how a message begins that names this process; an empty string before the process has joined the job.
pub fn who() -> String {
    NAME.get().map_or_else(String::new, |name| format!("{name}: "))
}

/// Returns the number by which groups know this process: its rank in the world with which the job began, or a larger one
/// if it has joined later. `None` before the process has joined the job.
pub fn process() -> Option<usize> {
    PROCESS.get().copied()
}

/// Ends the job with the exit code `code`.
pub fn abort(code: c_int) -> ! {
    typepack::abort(code)
}
