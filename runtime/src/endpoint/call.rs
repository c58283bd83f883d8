//! The names by which this rank tells mpiexec what it waits for: the call that a thread makes, and the communicators to
//! which the program has given names.
//!
//! Every call from C stores its name, because only the exported function knows it: in one place of the process
//! ([`enter`], two instructions) as long as one thread at a time makes calls, and otherwise in a variable of the thread
//! ([`enter_of_thread`]). The names are read only when a wait is long (`progress/record.rs`).

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ptr::{from_ref, null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};
use typepack_engine::attention;

/// The alignment keeps the words of other threads out of the cache line that every call writes.
#[repr(align(64))]
struct Current(AtomicPtr<&'static str>);

static CURRENT: Current = Current(AtomicPtr::new(null_mut()));

thread_local! {
    /// The name of the call that this thread makes, if several threads may make calls at the same time.
    static OF_THREAD: Cell<*const &'static str> = const { Cell::new(null()) };
}

/// Records that the only thread that makes a call now begins the call `name`.
#[inline(always)]
pub fn enter(name: &'static &'static str) {
    CURRENT.0.store(from_ref(name).cast_mut(), Ordering::Relaxed);
}

/// Records that this thread begins the call `name`, and that other threads may make calls at the same time.
pub fn enter_of_thread(name: &'static &'static str) {
    OF_THREAD.set(from_ref(name));
}

/// Returns the name of the call that this thread makes. Returns `own`, the name of the method of this library, if
/// the program is not a C program.
pub(super) fn name(own: &'static str) -> &'static str {
    let name = match attention::is_for(attention::THREADS) {
        true => OF_THREAD.get(),
        false => CURRENT.0.load(Ordering::Relaxed).cast_const(),
    };
    if name.is_null() {
        return own;
    }
    // SAFETY: the pointer is not null, so `enter` or `enter_of_thread` has stored it, and it points to a value that
    // lives for ever. The value never changes, so any thread may read it, in whatever order it sees the stores.
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
