//! What a thread used last, found again without a lock.
//!
//! Packing calls take a few nanoseconds, of which a lock and a reference count would be most. Each
//! thread remembers a few handles of a kind and holds their objects; as long as the kind's table has
//! not removed anything (one counter), what is remembered is true. A freed object is let go when
//! the thread looks for another in its place, of which there are four, or when the thread ends.
//!
//! What a thread remembers lies in a [`PerThread`]. Most threads have one in the kind's [`ThreadCache`], in the slot
//! of their key (`typepack_engine::thread`), found without a call; a thread whose slot is
//! another's has one of its own, found through [`Home`], a variable of the thread, which also
//! clears the entry when the thread ends.
//!
//! # Safety
//!
//! An entry's cells are touched by the thread alone whose key is the entry's owner:
//!
//! - only an entry without an owner is taken, by an exchange, and only its owner gives it up;
//! - two live threads never have the same key. A thread that ended without giving its entry up (it was
//!   not ended by the C library, or it is missing in a fork's child) leaves it to the next one with
//!   its key, as it is: objects of all threads, and perhaps a count of uses that stays above 0, so
//!   that nothing is remembered anew.
//!
//! An object that is remembered is alive: the entry holds it. It is let go only while the entry has no
//! uses, so a [`Held`], which is one, may follow its address.

use super::table::Table;
use std::cell::{Cell, OnceCell};
use std::ops::Deref;
use std::ptr::null;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, compiler_fence};
use std::thread::LocalKey;
use typepack_engine::thread::{SLOTS, key, slot};

/// Handles remembered per thread and kind.
const PLACES: usize = 4;

/// What threads remember of one kind.
pub struct ThreadCache<T: Send + Sync + 'static> {
    entries: [PerThread<T>; SLOTS],
}

/// What one thread remembers of one kind.
#[repr(align(64))]
struct PerThread<T> {
    /// The thread's key; 0 for nobody's.
    owner: AtomicUsize,
    /// How many [`Held`] point here.
    uses: Cell<usize>,
    places: [Place<T>; PLACES],
}

struct Place<T> {
    handle: Cell<usize>,
    /// The table's count when `object` was found; [`NEVER`] with a null `object`.
    removals: Cell<u64>,
    /// Of [`Arc::into_raw`].
    object: Cell<*const T>,
}

// SAFETY: the cells are touched by the owner alone (this file's `# Safety`), the objects may be
// used and dropped by any thread.
unsafe impl<T: Send + Sync> Sync for PerThread<T> {}

/// No table has removed as many.
const NEVER: u64 = u64::MAX;

impl<T> Place<T> {
    const fn new() -> Self {
        Self { handle: Cell::new(0), removals: Cell::new(NEVER), object: Cell::new(null()) }
    }

    /// Remembers something else, or nothing; returns what was remembered.
    ///
    /// In this order, so that a fork between any two of the stores, by another thread, leaves a place
    /// that matches nothing: in the child a new thread may get the key of the one that stood here.
    fn replace(&self, handle: usize, removals: u64, object: Option<Arc<T>>) -> Option<Arc<T>> {
        let removals = if object.is_some() { removals } else { NEVER };
        self.removals.set(NEVER);
        compiler_fence(Ordering::SeqCst);
        self.handle.set(handle);
        let before = self.object.replace(object.map_or(null(), Arc::into_raw));
        compiler_fence(Ordering::SeqCst);
        self.removals.set(removals);
        // SAFETY: what is in `object` came from `into_raw` in the line above, earlier, and is taken
        // out of it here, once.
        (!before.is_null()).then(|| unsafe { Arc::from_raw(before) })
    }
}

impl<T> PerThread<T> {
    const fn new(owner: usize) -> Self {
        let places = [const { Place::new() }; PLACES];
        Self { owner: AtomicUsize::new(owner), uses: Cell::new(0), places }
    }

    #[inline(always)]
    fn place(&self, handle: usize) -> &Place<T> {
        &self.places[handle % PLACES]
    }

    /// The object of `handle` if it is remembered and nothing was removed since. Of the owner only.
    #[inline(always)]
    fn seen(&self, handle: usize, removals: u64) -> Option<*const T> {
        let place = self.place(handle);
        let same = place.handle.get() == handle && place.removals.get() == removals;
        same.then(|| place.object.get())
    }

    /// Forgets everything and belongs to nobody. Of the owner only.
    fn give_up(&self) {
        // With a use that never ends (it was leaked) objects stay, which is a leak as well.
        let forget = self.uses.get() == 0;
        let forgotten =
            self.places.each_ref().map(|place| forget.then(|| place.replace(0, NEVER, None)));
        if forget {
            self.owner.store(0, Ordering::Release);
        }
        // Only now: what goes with an object may look for others, and finds no entry here.
        drop(forgotten);
    }
}

/// Where a thread's entry is, for all calls but the quickest; a variable of each thread.
pub struct Home<T: Send + Sync + 'static>(OnceCell<Lodging<T>>);

enum Lodging<T: Send + Sync + 'static> {
    Slot(&'static PerThread<T>),
    Own(Box<PerThread<T>>),
}

impl<T: Send + Sync> Default for Home<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send + Sync> Home<T> {
    /// None yet.
    pub const fn new() -> Self {
        Self(OnceCell::new())
    }

    /// The entry of the calling thread.
    fn entry(&self, cache: &'static ThreadCache<T>, key: usize) -> &PerThread<T> {
        let lodging = self.0.get_or_init(|| {
            let entry = &cache.entries[slot(key)];
            let free = entry.owner.compare_exchange(0, key, Ordering::Acquire, Ordering::Relaxed);
            match free {
                Ok(_) => Lodging::Slot(entry),
                // Left by a thread that had this key.
                Err(owner) if owner == key => Lodging::Slot(entry),
                Err(_) => Lodging::Own(Box::new(PerThread::new(key))),
            }
        });
        match lodging {
            Lodging::Slot(entry) => entry,
            Lodging::Own(entry) => entry,
        }
    }
}

impl<T: Send + Sync> Drop for Home<T> {
    fn drop(&mut self) {
        match self.0.take() {
            Some(Lodging::Slot(entry)) => entry.give_up(),
            Some(Lodging::Own(entry)) => {
                entry.give_up();
                if entry.uses.get() > 0 {
                    // A use that was leaked points to it.
                    Box::leak(entry);
                }
            }
            None => {}
        }
    }
}

/// An object that was found, alive as long as this is.
///
/// Two words, and what ends it is a comparison and a subtraction: it lives in registers.
pub struct Held<T> {
    object: *const T,
    hold: *const Cell<usize>,
}

/// Instead of the uses of an entry: `object` is of [`Arc::into_raw`] and this one's own.
const OWN: *const Cell<usize> = null();
/// Instead of the uses of an entry: the object is never freed.
const FOREVER: *const Cell<usize> = std::ptr::without_provenance(1);

impl<T> Held<T> {
    /// A use of what `entry` holds. Of the owner only.
    #[inline(always)]
    fn of(entry: &PerThread<T>, object: *const T) -> Self {
        entry.uses.set(entry.uses.get() + 1);
        Self { object, hold: &raw const entry.uses }
    }

    fn own(object: Arc<T>) -> Self {
        Self { object: Arc::into_raw(object), hold: OWN }
    }

    /// What needs nobody to hold it.
    #[inline(always)]
    pub fn forever(object: &'static Arc<T>) -> Self {
        Self { object: Arc::as_ptr(object), hold: FOREVER }
    }

    #[cold]
    #[inline(never)]
    fn end_other(hold: *const Cell<usize>, object: *const T) {
        if hold == OWN {
            // SAFETY: from `into_raw` in `own`, and taken back here alone.
            drop(unsafe { Arc::from_raw(object) });
        }
    }
}

impl<T> Deref for Held<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: alive: by the entry's hold and our use of it, by our own, or for ever.
        unsafe { &*self.object }
    }
}

impl<T> Drop for Held<T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.hold.addr() > FOREVER.addr() {
            // SAFETY: the uses of an entry. It is in a static, or lives until its thread has ended and
            // longer if it has uses; the addresses in `self` keep it from being sent to another
            // thread.
            let uses = unsafe { &*self.hold };
            uses.set(uses.get() - 1);
        } else {
            Self::end_other(self.hold, self.object);
        }
    }
}

impl<T: Send + Sync> Default for ThreadCache<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send + Sync> ThreadCache<T> {
    /// Nothing.
    pub const fn new() -> Self {
        Self { entries: [const { PerThread::new(0) }; SLOTS] }
    }

    /// The object of `handle`; `None` if there is none. All calls with one table have the same
    /// `home`.
    #[inline(always)]
    pub fn find(
        &'static self,
        home: &'static LocalKey<Home<T>>,
        table: &Table<T>,
        handle: usize,
    ) -> Option<Held<T>> {
        let key = key();
        let entry = &self.entries[slot(key)];
        if entry.owner.load(Ordering::Relaxed) == key
            && let Some(object) = entry.seen(handle, table.removals())
        {
            return Some(Held::of(entry, object));
        }
        self.look(home, table, handle, key)
    }

    #[cold]
    #[inline(never)]
    fn look(
        &'static self,
        home: &'static LocalKey<Home<T>>,
        table: &Table<T>,
        handle: usize,
        key: usize,
    ) -> Option<Held<T>> {
        let found = home.try_with(|home| {
            let entry = home.entry(self, key);
            // The counter is read before the look: a removal in between makes this entry useless at
            // the next call, not wrong.
            let removals = table.removals();
            if let Some(object) = entry.seen(handle, removals) {
                return (Some(Held::of(entry, object)), None);
            }
            let object = table.find(handle);
            if entry.uses.get() > 0 {
                // Somebody above us in the stack uses what is remembered.
                return (object.map(Held::own), None);
            }
            let place = entry.place(handle);
            let address = object.as_ref().map(Arc::as_ptr);
            let before = place.replace(handle, removals, object);
            (address.map(|address| Held::of(entry, address)), before)
        });
        match found {
            // What was remembered before goes now, after the entry is in order again: what goes with
            // an object may look for others.
            Ok((held, before)) => {
                drop(before);
                held
            }
            // The thread is about to end, and has no entry any more.
            Err(_) => table.find(handle).map(Held::own),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Home, SLOTS, ThreadCache};
    use crate::handle::Kind;
    use crate::handle::table::Table;
    use std::sync::{Arc, Barrier};

    /// A table of its own and what goes with it.
    macro_rules! kind {
        ($table:ident, $find:ident, $kept:ty) => {
            static $table: Table<$kept> = Table::new(Kind::Datatype);
            fn $find<R>(handle: usize, work: impl FnOnce(&$kept) -> R) -> Option<R> {
                static CACHE: ThreadCache<$kept> = ThreadCache::new();
                thread_local! {
                    static HOME: Home<$kept> = const { Home::new() };
                }
                CACHE.find(&HOME, &$table, handle).map(|held| work(&held))
            }
        };
    }

    #[test]
    fn what_is_remembered_is_let_go_when_it_was_freed() {
        kind!(TABLE, find, i32);
        let object = Arc::new(7);
        let handle = TABLE.insert(Arc::clone(&object)).expect("a handle");
        for _ in 0..2 {
            assert_eq!(find(handle, |found| *found), Some(7));
        }
        assert_eq!(Arc::strong_count(&object), 3);
        TABLE.remove(handle).expect("the object");
        assert_eq!(find(handle, |found| *found), None);
        assert_eq!(Arc::strong_count(&object), 1);
    }

    #[test]
    fn calls_within_a_call_find_their_own() {
        kind!(TABLE, find, usize);
        let handles: Vec<usize> =
            (0..8).map(|n| TABLE.insert(Arc::new(n)).expect("a handle")).collect();
        // Every pair: also two handles of one place, and one handle twice.
        for (outer, &one) in handles.iter().enumerate() {
            for (inner, &other) in handles.iter().enumerate() {
                let within = find(one, |found| (*found, find(other, |found| *found), *found));
                assert_eq!(within, Some((outer, Some(inner), outer)));
            }
        }
        // An object freed while it is used lives until then, whatever else is looked for.
        let object = TABLE.find(handles[0]).map(|object| Arc::downgrade(&object)).expect("there");
        let freed = find(handles[0], |found| {
            TABLE.remove(handles[0]).expect("the object");
            assert_eq!(find(handles[0], |found| *found), None);
            assert_eq!(find(handles[4], |found| *found), Some(4));
            assert_eq!(object.strong_count(), 1);
            *found
        });
        assert_eq!((freed, find(handles[0], |found| *found)), (Some(0), None));
    }

    #[test]
    fn numbers_that_are_no_handles_are_not_found_at_a_place_that_is_empty() {
        kind!(TABLE, find, u8);
        for handle in [0, 1, 4, usize::MAX, 0, 4] {
            assert_eq!(find(handle, |found| *found), None);
        }
    }

    /// What a thread holds goes with it, wherever its entry is: more threads than slots, twice.
    #[test]
    fn a_thread_that_ends_lets_go() {
        kind!(TABLE, find, [u64; 3]);
        let objects: Vec<_> = (0..5).map(|n| Arc::new([n; 3])).collect();
        let handles: Vec<usize> =
            objects.iter().map(|o| TABLE.insert(Arc::clone(o)).expect("a handle")).collect();
        for _ in 0..2 {
            const THREADS: usize = SLOTS + 44;
            let all_there = Barrier::new(THREADS);
            let work = |n: usize| {
                assert_eq!(find(handles[n], |found| found[2]), Some(n as u64));
                all_there.wait();
                for _ in 0..3 {
                    assert_eq!(find(handles[n], |found| found[2]), Some(n as u64));
                }
                // Takes the place of the first.
                assert_eq!(find(handles[4], |found| found[2]), Some(4));
            };
            let work = &work;
            std::thread::scope(|scope| {
                let threads: Vec<_> =
                    (0..THREADS).map(|thread| scope.spawn(move || work(thread % 4))).collect();
                // The scope's own end does not wait for what threads do after their work.
                threads.into_iter().for_each(|thread| thread.join().expect("no check failed"));
            });
            for object in &objects {
                assert_eq!(Arc::strong_count(object), 2);
            }
        }
    }

    /// Objects are freed under the threads that use them, and their drops look for others.
    #[test]
    fn threads_that_use_what_others_free() {
        struct Nested(usize, Option<usize>);
        kind!(TABLE, find, Nested);
        impl Drop for Nested {
            fn drop(&mut self) {
                if let Some(other) = self.1 {
                    assert_eq!(find(other, |found| found.0), Some(77));
                }
            }
        }
        let last = TABLE.insert(Arc::new(Nested(77, None))).expect("a handle");
        let handles: Vec<std::sync::atomic::AtomicUsize> = (0..6).map(|_| 0.into()).collect();
        let order = std::sync::atomic::Ordering::Relaxed;
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let handles = &handles;
                scope.spawn(move || {
                    for round in 0..20_000 {
                        let n = (round * 7 + thread) % handles.len();
                        if thread == 0 {
                            let new = Arc::new(Nested(n, Some(last)));
                            let new = TABLE.insert(new).expect("a handle");
                            TABLE.remove(handles[n].swap(new, order));
                        } else if let Some(found) = find(handles[n].load(order), |found| found.0) {
                            assert_eq!(found, n);
                        }
                    }
                });
            }
        });
        assert_eq!(TABLE.len(), 7);
    }
}
