//! Knowing that this process is a forked child of the one that joined the job.
//!
//! `endpoint/progress.rs` asks before every use of the endpoint: the job's memory is not mapped in a child
//! (`memory.rs` marks it so), and a lock may be held by a thread that the child does not have.
//! A static that the child's `pthread_atfork` handler sets costs one load; `getpid` would be a
//! system call in every message.
//!
//! Promise to safe callers: once [`watch`] has been called, [`is_child`] is true in every process
//! made by `fork` and false in the one that called. A child made by a raw `clone` or `vfork` may
//! only exec, as the standards say.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static CHILD: AtomicBool = AtomicBool::new(false);

extern "C" fn in_child() {
    CHILD.store(true, Ordering::Relaxed);
}

/// Begins to watch; once is enough.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler is async-signal-safe (one atomic store), never unwinds, and lives as
        // long as the program; the absent handlers are null as the call allows. Its only failure
        // is a lack of memory for one list entry; then a child that communicates dies on the
        // unmapped segment instead of getting an error.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// Whether this process is a forked child of the one that called [`watch`].
#[inline]
pub fn is_child() -> bool {
    CHILD.load(Ordering::Relaxed)
}
