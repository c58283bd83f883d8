//! Detects that this process is a forked child of the process that joined the job, and makes the memory that
//! the child inherits read-only.
//!
//! `endpoint/progress.rs` calls [`is_child`] before every use of the endpoint. A forked child must not use
//! the endpoint: of the job's memory, only the rank's own heap is mapped in the child (`Inherit` in
//! `memory.rs`), and a lock may be held by a thread that does not exist in the child. The check costs one
//! load of a static that a `pthread_atfork` handler sets in the child. A check with `getpid` would cost a
//! system call for every message.
//!
//! `memory.rs` passes the mappings that a child inherits to [`protect`]. The handler makes these mappings
//! read-only in the child. The child shares their memory with its parent, so a write of the child would
//! change data of the rank while the rank and other ranks use the data. Instead, such a write ends the child
//! by SIGSEGV.
//!
//! This file guarantees to safe callers that after a call of [`watch`] that returned true, [`is_child`]
//! returns true in every process made by `fork` and false in the process that called `watch`. A child made by
//! a raw `clone` or by `vfork` does not run the handler; according to the standards, such a child may only
//! exec.

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

static CHILD: AtomicBool = AtomicBool::new(false);

/// A mapping that becomes read-only in a child. If `start` is null, the entry is free. If `len` is 0, the
/// entry names no mapping yet.
#[derive(Debug)]
struct Protected {
    start: AtomicPtr<u8>,
    len: AtomicUsize,
}

/// The mappings that become read-only: the extents of the heap of this process, which are few. Tests have
/// several heaps in one process.
static PROTECTED: [Protected; 256] =
    [const { Protected { start: AtomicPtr::new(ptr::null_mut()), len: AtomicUsize::new(0) } }; 256];

/// Runs in the child. It makes only atomic loads and stores and system calls.
extern "C" fn in_child() {
    CHILD.store(true, Ordering::Relaxed);
    for entry in &PROTECTED {
        let len = entry.len.load(Ordering::Acquire);
        let start = entry.start.load(Ordering::Relaxed).cast();
        // SAFETY: if `len` is not 0, the entry describes a whole mapping, because the owner of the entry keeps
        // the mapping until `Guard` is dropped (`protect`). The child may have no copy of the mapping, because
        // another thread is making or removing it; then no memory lies at the range, and the call fails. From
        // now on a write to the range is a SIGSEGV, which is the purpose of the call.
        if len > 0 && unsafe { libc::mprotect(start, len, libc::PROT_READ) } != 0 {
            // SAFETY: the range is the same. The library does not use it in a child, because `is_child` is
            // true. If the kernel cannot protect the mapping, the child must do without it.
            unsafe { libc::munmap(start, len) };
        }
    }
}

/// A mapping that becomes read-only in the children of this process. Dropping the value frees its entry.
#[derive(Debug)]
pub struct Guard(&'static Protected);

/// Makes the mapping of `len` bytes at `start` read-only in all children that this process forks from now
/// on. Returns `None` if [`watch`] fails or if there is no room for another mapping. The child must then
/// not inherit the mapping.
///
/// # Safety
///
/// - The range is a whole mapping. Until the returned value is dropped, the range contains no other mapping.
pub unsafe fn protect(start: *mut u8, len: usize) -> Option<Guard> {
    if !watch() {
        return None;
    }
    let take = |entry: &&'static Protected| {
        let (free, ours) = (ptr::null_mut(), Ordering::AcqRel);
        entry.start.compare_exchange(free, start, ours, Ordering::Relaxed).is_ok()
    };
    let entry = PROTECTED.iter().find(take)?;
    entry.len.store(len, Ordering::Release);
    Some(Guard(entry))
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.len.store(0, Ordering::Release);
        self.0.start.store(ptr::null_mut(), Ordering::Release);
    }
}

/// Begins to watch for forks. Calls after the first one do nothing. Returns false if there is no memory for
/// the handler. In that case a forked child inherits no memory of the job. If the child tries to communicate,
/// it gets no error but is killed by its first access to the unmapped segment.
pub fn watch() -> bool {
    static WATCHES: OnceLock<bool> = OnceLock::new();
    *WATCHES.get_or_init(|| {
        // SAFETY: the handler is async-signal-safe (atomic accesses and two system calls), never unwinds, and
        // lives as long as the program. `pthread_atfork` allows null for the two absent handlers.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) == 0 }
    })
}

/// Returns true if this process is a forked child of the process that called [`watch`].
#[inline]
pub fn is_child() -> bool {
    CHILD.load(Ordering::Relaxed)
}
