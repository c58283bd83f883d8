//! The names by which this rank tells mpiexec what it waits for: the call that a thread makes, and the communicators to
//! which the program has given names.
//!
//! Every call from C stores its name ([`enter`]), because only the exported function knows it. This costs each call four
//! instructions and no atomic operation. The names are read only when a wait is long (`progress/record.rs`). One place
//! is enough for all threads: a thread that finds the mark of another thread there does not know the name of its own
//! call any more, and tells none.

use std::collections::BTreeMap;
use std::ptr::{from_ref, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use typepack_engine::thread;

/// The alignment keeps the words of other threads out of the cache line that every call writes.
#[repr(align(64))]
struct Current {
    name: AtomicPtr<&'static str>,
    /// The key of the thread that has made the call.
    thread: AtomicUsize,
}

static CURRENT: Current = Current { name: AtomicPtr::new(null_mut()), thread: AtomicUsize::new(0) };

/// Records that this thread begins the call `name`.
#[inline(always)]
pub fn enter(name: &'static &'static str) {
    CURRENT.name.store(from_ref(name).cast_mut(), Ordering::Relaxed);
    CURRENT.thread.store(thread::key(), Ordering::Relaxed);
}

/// Returns the name of the call that this thread makes. Returns `own`, the name of the method of this library, if
/// the program is not a C program, and an empty text if another thread has made a call since.
pub(super) fn name(own: &'static str) -> &'static str {
    let name = CURRENT.name.load(Ordering::Relaxed);
    if name.is_null() {
        return own;
    }
    if CURRENT.thread.load(Ordering::Relaxed) != thread::key() {
        return "";
    }
    // SAFETY: the pointer is not null, so `enter` has stored it, and it points to a value that lives for ever. The value
    // never changes, so any thread may read it, in whatever order it sees the stores.
    unsafe { *name }
}

/// The names of communicators, by the number of their first context.
static NAMES: Mutex<BTreeMap<u64, Vec<u8>>> = Mutex::new(BTreeMap::new());

/// Stores the name of the communicator with this first context. An empty name removes the entry.
pub(crate) fn name_communicator(context: u64, name: &[u8]) {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    match name {
        [] => names.remove(&context),
        name => names.insert(context, name.to_vec()),
    };
}

/// Calls `use_name` with the name of the communicator with this first context; with an empty name if it has none.
pub(super) fn with_communicator<R>(context: u64, use_name: impl FnOnce(&[u8]) -> R) -> R {
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    use_name(names.get(&context).map_or(&[], |name| name.as_slice()))
}
