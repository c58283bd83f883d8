//! Detects that this process is a forked child of the process that joined the job.
//!
//! `endpoint/progress.rs` calls [`is_child`] before every use of the endpoint. A forked child must not use
//! the endpoint: of the job's memory, only the rank's own heap is mapped in the child (`Inherit` in
//! `memory.rs`), and a lock may be held by a thread that does not exist in the child. The check costs one
//! load of a static that a `pthread_atfork` handler sets in the child. A check with `getpid` would cost a
//! system call for every message.
//!
//! This file guarantees to safe callers that after a call of [`watch`], [`is_child`] returns true in every
//! process made by `fork` and false in the process that called `watch`. A child made by a raw `clone` or by
//! `vfork` does not run the handler; according to the standards, such a child may only exec.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static CHILD: AtomicBool = AtomicBool::new(false);

extern "C" fn in_child() {
    CHILD.store(true, Ordering::Relaxed);
}

/// Begins to watch for forks. Calls after the first one do nothing.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler is async-signal-safe (one atomic store), never unwinds, and lives as long as
        // the program. `pthread_atfork` allows null for the two absent handlers. It fails only if there is no
        // memory for one list entry. In that case, a forked child that tries to communicate gets no error but
        // is killed by its first access to the unmapped segment.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// Returns true if this process is a forked child of the process that called [`watch`].
#[inline]
pub fn is_child() -> bool {
    CHILD.load(Ordering::Relaxed)
}
