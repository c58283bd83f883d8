//! Detects that this process is a forked child of the process that joined the job.
//!
//! `endpoint/progress.rs` asks before every use of the endpoint. A child does not have the job's memory
//! mapped (`memory.rs` excludes it), and a thread that the child does not have may hold a lock. A static
//! that the child's `pthread_atfork` handler sets costs one load; `getpid` would be a system call in every
//! message.
//!
//! This file guarantees to safe callers that after a call of [`watch`], [`is_child`] is true in every
//! process made by `fork` and false in the process that called. A child made by a raw `clone` or by `vfork`
//! may only exec, as the standards say.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static CHILD: AtomicBool = AtomicBool::new(false);

extern "C" fn in_child() {
    CHILD.store(true, Ordering::Relaxed);
}

/// Begins to watch. Later calls do nothing.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler is async-signal-safe (one atomic store), never unwinds, and lives as long as
        // the program. The call allows null for the two absent handlers. The call fails only if there is no
        // memory for one list entry. In that case a child that communicates dies on the unmapped segment
        // instead of getting an error.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// Returns whether this process is a forked child of the process that called [`watch`].
#[inline]
pub fn is_child() -> bool {
    CHILD.load(Ordering::Relaxed)
}
