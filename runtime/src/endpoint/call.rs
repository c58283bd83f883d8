//! The names by which this rank tells mpiexec what it waits for: the call that a thread makes, and the communicators to
//! which the program has given names.
//!
//! Every call from C stores its name, unless it goes a short way that never waits, because only the exported function
//! knows the name: in one place of the process
//! ([`enter`], two instructions) as long as one thread at a time makes calls, and otherwise in a table by threads
//! ([`enter_of_thread`], some ten). The names are read only when a wait is long (`progress/record.rs`).

use std::collections::BTreeMap;
use std::ptr::{from_ref, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};
use typepack_engine::attention;
use typepack_engine::thread::{SLOTS, key, slot};

/// The alignment keeps the words of other threads out of the cache line that every call writes.
#[repr(align(64))]
struct Current(AtomicPtr<&'static str>);

static CURRENT: Current = Current(AtomicPtr::new(null_mut()));

/// The call that a thread makes.
#[repr(align(64))]
struct OfThread {
    key: AtomicUsize,
    name: AtomicPtr<&'static str>,
}

/// The calls by threads. If two threads share an entry, one of them may find no name here, or the name of the other's
/// call if both begin a call at the same moment.
static OF_THREADS: [OfThread; SLOTS] =
    [const { OfThread { key: AtomicUsize::new(0), name: AtomicPtr::new(null_mut()) } }; SLOTS];

/// Records that the only thread that makes a call now begins the call `name`.
#[inline(always)]
pub fn enter(name: &'static &'static str) {
    CURRENT.0.store(from_ref(name).cast_mut(), Ordering::Relaxed);
}

/// Records that this thread begins the call `name`, and that other threads may make calls at the same time.
#[inline(never)]
pub fn enter_of_thread(name: &'static &'static str) {
    let key = key();
    let entry = &OF_THREADS[slot(key)];
    entry.name.store(from_ref(name).cast_mut(), Ordering::Relaxed);
    entry.key.store(key, Ordering::Relaxed);
}

/// Returns the name of the call that this thread makes. Returns `own`, the name of the method of this library, if
/// the program is not a C program.
pub(super) fn name(own: &'static str) -> &'static str {
    let name = match attention::is_for(attention::THREADS) {
        true => {
            let (key, entry) = (key(), &OF_THREADS[slot(key())]);
            if entry.key.load(Ordering::Relaxed) == key { &entry.name } else { return own }
        }
        false => &CURRENT.0,
    };
    let name = name.load(Ordering::Relaxed).cast_const();
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

/// Calls `use_name` with the name of the communicator with this first context; with an empty name if it has none. Waits
/// for no lock, because a debugger may have stopped the thread that holds it: while a thread gives or takes a name, the
/// name is empty.
pub(super) fn with_communicator<R>(context: u64, use_name: impl FnOnce(&[u8]) -> R) -> R {
    with_name(&NAMES, context, use_name)
}

fn with_name<R>(
    names: &Mutex<BTreeMap<u64, Vec<u8>>>,
    context: u64,
    use_name: impl FnOnce(&[u8]) -> R,
) -> R {
    let names = match names.try_lock() {
        Ok(names) => names,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return use_name(&[]),
    };
    use_name(names.get(&context).map_or(&[], |name| name.as_slice()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A debugger may have stopped a thread that gives a communicator a name. The description once waited for it.
    #[test]
    fn the_name_of_a_communicator_is_empty_while_a_thread_holds_the_lock() {
        let names = Mutex::new(BTreeMap::from([(3, b"columns".to_vec())]));
        let name = || with_name(&names, 3, <[u8]>::to_vec);
        assert_eq!(name(), b"columns");
        let held = names.lock().expect("the lock");
        assert!(name().is_empty());
        drop(held);
        assert_eq!(name(), b"columns");
        assert!(with_name(&names, 4, <[u8]>::is_empty));
    }
}
