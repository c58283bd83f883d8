//! Finds the objects that a thread used most recently, without taking a lock.
//!
//! A packing call takes a few nanoseconds. A lock and a reference count would take most of that time, so each
//! thread caches a few handles of each kind, with counted references to their objects. A cached handle is
//! valid while the table of the kind has removed no object since the handle was cached. The table counts its
//! removals, and the cache compares the count. For each kind, a thread's cache has four places for objects.
//! The thread drops a freed object when it caches another object in the same place, when it calls
//! [`ThreadCache::forget`], or when it ends.
//!
//! The cache of one thread for one kind is an entry, a `PerThread`. The [`ThreadCache`] of the kind is an
//! array of entries. The key of a thread (`typepack_engine::thread`) selects a slot of this array, and most
//! threads use the entry in their slot, which they find without a function call. If another thread uses that
//! entry, the thread allocates an entry of its own. The thread finds the allocated entry through [`Home`], a
//! thread-local variable. The destructor of `Home` clears the entry of the thread when the thread ends.
//!
//! # Safety
//!
//! Only one thread accesses the cells of an entry: the thread whose key is the entry's owner. This holds for
//! two reasons:
//!
//! - A thread becomes the owner of an entry by an atomic exchange, which succeeds only if the entry has no
//!   owner. Only the owner gives the entry up.
//! - Two live threads never have the same key. A thread can vanish without giving its entry up: if it ends
//!   without running its thread-local destructors, or if the process forks and the thread does not exist in
//!   the child. Then the next thread with the same key takes over the entry unchanged. This thread may use
//!   the cached objects, because any thread may use them. If the vanished thread left a count of uses above
//!   0, the entry caches no further objects.
//!
//! A cached object is alive, because the entry owns a counted reference to the object. The entry drops this
//! reference only while its count of uses is 0. Each [`Held`] that points to the entry is counted as a use,
//! so a `Held` may read the object at its address.

use super::table::Table;
use std::any::TypeId;
use std::cell::{Cell, OnceCell};
use std::ops::Deref;
use std::ptr::null;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, compiler_fence};
use std::thread::LocalKey;
use typepack_engine::reserve;
use typepack_engine::thread::{SLOTS, key, slot};

/// Maximum number of handles of one kind that a thread caches.
const PLACES: usize = 4;

/// The cached handles of one kind for all threads.
pub struct ThreadCache<T: Send + Sync + 'static> {
    entries: [PerThread<T>; SLOTS],
}

/// An entry: the cached handles of one kind for one thread.
#[repr(align(64))]
struct PerThread<T> {
    /// The thread's key; 0 if the entry has no owner.
    owner: AtomicUsize,
    /// Number of [`Held`] values that point to this entry.
    uses: Cell<usize>,
    places: [Place<T>; PLACES],
}

struct Place<T> {
    handle: Cell<usize>,
    /// The value of the table's count of removals when `object` was found; [`NEVER`] if `object` is null.
    removals: Cell<u64>,
    /// The cached object, from [`Arc::into_raw`].
    object: Cell<*const T>,
}

// SAFETY: only the owner of an entry accesses its cells (`# Safety` at the top of this file). Any thread may
// use and drop the objects, because `T` is `Send + Sync`.
unsafe impl<T: Send + Sync> Sync for PerThread<T> {}

/// A value that the count of removals of a table never reaches.
const NEVER: u64 = u64::MAX;

impl<T> Place<T> {
    const fn new() -> Self {
        Self { handle: Cell::new(0), removals: Cell::new(NEVER), object: Cell::new(null()) }
    }

    /// Puts `object`, the object of `handle`, into this place, or empties the place if `object` is `None`.
    /// `removals` is the table's count of removals when the object was found. Returns the object that the
    /// place had before.
    ///
    /// The order of the stores matters. If another thread forks the process between two of the stores, the
    /// place matches no handle in the child, because its count of removals is [`NEVER`]. This is necessary
    /// because a new thread of the child may get the key of the interrupted thread, and would then use this
    /// entry.
    fn replace(&self, handle: usize, removals: u64, object: Option<Arc<T>>) -> Option<Arc<T>> {
        let removals = if object.is_some() { removals } else { NEVER };
        self.removals.set(NEVER);
        compiler_fence(Ordering::SeqCst);
        self.handle.set(handle);
        let before = self.object.replace(object.map_or(null(), Arc::into_raw));
        compiler_fence(Ordering::SeqCst);
        self.removals.set(removals);
        // SAFETY: the closure runs only if `before` is not null, so an earlier call of this function made
        // `before` with `Arc::into_raw`. `self.object.replace` above took `before` out of the cell, so no
        // other `from_raw` gets the same pointer.
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

    /// Returns the cached object of `handle` if the table's count of removals was `removals` when the object
    /// was cached. Only the owner of the entry calls this function.
    #[inline(always)]
    fn seen(&self, handle: usize, removals: u64) -> Option<*const T> {
        let place = self.place(handle);
        let same = place.handle.get() == handle && place.removals.get() == removals;
        same.then(|| place.object.get())
    }

    /// Drops the cached objects and makes the entry free for another thread, unless a [`Held`] still points
    /// to the entry. Only the owner of the entry calls this function.
    fn give_up(&self) {
        // A leaked `Held` counts as a use forever, and may still read its object. In that case the entry
        // keeps its objects and its owner.
        let forget = self.uses.get() == 0;
        let forgotten =
            self.places.each_ref().map(|place| forget.then(|| place.replace(0, NEVER, None)));
        if forget {
            self.owner.store(0, Ordering::Release);
        }
        // The objects are dropped last, because the destructor of an object may look up other objects, and
        // must not find them in this entry.
        drop(forgotten);
    }
}

/// A thread-local variable that says where the thread's entry is. [`ThreadCache::find`] reads it only if the
/// entry in the thread's slot does not belong to the thread or does not have the handle.
pub struct Home<T: Send + Sync + 'static>(OnceCell<Lodging<T>>);

enum Lodging<T: Send + Sync + 'static> {
    Slot(&'static PerThread<T>),
    Own(Box<PerThread<T>>),
}

/// Most kinds of objects whose registrations a thread remembers.
const KINDS: usize = 8;

/// Returns whether the calling thread may use its [`Home`] for objects of type `T`: it has used it before, or there is
/// memory for the registration of its destructor.
fn is_ready<T: 'static>() -> bool {
    thread_local! {
        // These values have no destructor, so their first use registers nothing.
        static READY: [Cell<Option<TypeId>>; KINDS] = const { [const { Cell::new(None) }; KINDS] };
    }
    READY.with(|ready| {
        let kind = Some(TypeId::of::<T>());
        let at = ready.iter().position(|seen| seen.get() == kind || seen.get().is_none());
        if at.is_some_and(|at| ready[at].get() == kind) {
            return true;
        }
        let may = reserve::may_register();
        if let (true, Some(at)) = (may, at) {
            ready[at].set(kind);
        }
        may
    })
}

impl<T: Send + Sync> Default for Home<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send + Sync> Home<T> {
    /// Makes the variable of a thread that has no entry yet.
    pub const fn new() -> Self {
        Self(OnceCell::new())
    }

    /// Returns the entry of the calling thread. If the thread has no entry yet, it takes over the entry in
    /// its slot. If another thread owns the entry in the slot, the calling thread allocates an entry of its
    /// own.
    fn entry(&self, cache: &'static ThreadCache<T>, key: usize) -> &PerThread<T> {
        let lodging = self.0.get_or_init(|| {
            let entry = &cache.entries[slot(key)];
            let free = entry.owner.compare_exchange(0, key, Ordering::Acquire, Ordering::Relaxed);
            match free {
                Ok(_) => Lodging::Slot(entry),
                // An earlier thread with the same key vanished without giving the entry up.
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
                    // A leaked `Held` points to the entry, so the entry must never be freed.
                    Box::leak(entry);
                }
            }
            None => {}
        }
    }
}

/// An object that a lookup found. The object stays alive as long as this value.
///
/// A `Held` is two words long, and dropping one that points to an entry takes only a comparison and a
/// subtraction, so the compiler keeps the `Held` in registers.
pub struct Held<T> {
    object: *const T,
    hold: *const Cell<usize>,
}

/// The value of `hold` if the [`Held`] itself owns a counted reference to `object` (from [`Arc::into_raw`]).
/// No entry counts this `Held` as a use.
const OWN: *const Cell<usize> = null();
/// The value of `hold` if the object is never freed. No entry counts this `Held` as a use.
const FOREVER: *const Cell<usize> = std::ptr::without_provenance(1);

impl<T> Held<T> {
    /// Makes a [`Held`] for an object that `entry` has cached, and counts the `Held` as a use of the entry.
    /// Only the owner of the entry calls this function.
    #[inline(always)]
    fn of(entry: &PerThread<T>, object: *const T) -> Self {
        entry.uses.set(entry.uses.get() + 1);
        Self { object, hold: &raw const entry.uses }
    }

    fn own(object: Arc<T>) -> Self {
        Self { object: Arc::into_raw(object), hold: OWN }
    }

    /// Makes a [`Held`] for an object that is never freed.
    #[inline(always)]
    pub fn forever(object: &'static Arc<T>) -> Self {
        Self { object: Arc::as_ptr(object), hold: FOREVER }
    }

    #[cold]
    #[inline(never)]
    fn end_other(hold: *const Cell<usize>, object: *const T) {
        if hold == OWN {
            // SAFETY: `hold` is `OWN`, so `own` made `object` with `Arc::into_raw`. This function runs once,
            // when the `Held` is dropped, and nothing else turns `object` back into an `Arc`.
            drop(unsafe { Arc::from_raw(object) });
        }
    }
}

impl<T> Deref for Held<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: `object` is alive for one of three reasons: an entry counts `self` as a use and keeps its
        // reference until the use ends, or `self` owns a reference, or the object is never freed.
        unsafe { &*self.object }
    }
}

impl<T> Drop for Held<T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.hold.addr() > FOREVER.addr() {
            // SAFETY: `hold` is neither `OWN` nor `FOREVER`, so it points to the count of uses of an entry.
            // The entry lies in a static, or in a box. A box is freed only after its thread has ended, and
            // only if it has no uses. `self` is not `Send` (raw pointers), so the current thread is the owner
            // of the entry, and only the owner accesses its cells.
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
    /// Makes an empty cache.
    pub const fn new() -> Self {
        Self { entries: [const { PerThread::new(0) }; SLOTS] }
    }

    /// Returns the object of `handle`; `None` if the handle has no object in `table`. All calls on one
    /// `ThreadCache` pass the same `table` and the same `home`.
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

    /// Calls `work` with the object of `handle`, if the calling thread's entry lies in the array and has the
    /// handle. This is not counted as a use. Returns `None` in all other cases; then [`find`](Self::find)
    /// decides.
    ///
    /// # Safety
    ///
    /// - `work` calls no function of this cache, and runs no code of the program.
    #[inline(always)]
    pub unsafe fn probe<R>(
        &'static self,
        table: &Table<T>,
        handle: usize,
        work: impl FnOnce(&T) -> R,
    ) -> Option<R> {
        let key = key();
        let entry = &self.entries[slot(key)];
        if entry.owner.load(Ordering::Relaxed) != key {
            return None;
        }
        let object = entry.seen(handle, table.removals())?;
        // SAFETY: the entry owns a counted reference to the object. Only this thread drops the reference, in a function
        // of this cache, and `work` calls none (the condition of `# Safety`).
        Some(work(unsafe { &*object }))
    }

    /// Makes the calling thread ready to cache handles, so that its first lookup allocates nothing.
    pub fn prepare(home: &'static LocalKey<Home<T>>) {
        if is_ready::<T>() {
            // A thread that ends caches nothing any more.
            let _ended = home.try_with(|_| ());
        }
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
        if !is_ready::<T>() {
            return table.find(handle).map(Held::own);
        }
        let found = home.try_with(|home| {
            let entry = home.entry(self, key);
            // The count of removals is read before the table. If another thread removes an object in between,
            // the cached count is too low. In that case the next call looks the handle up again instead of
            // returning a removed object.
            let removals = table.removals();
            if let Some(object) = entry.seen(handle, removals) {
                return (Some(Held::of(entry, object)), None);
            }
            let object = table.find(handle);
            if entry.uses.get() > 0 {
                // A function further up the stack still uses an object of this entry, so nothing may be
                // replaced.
                return (object.map(Held::own), None);
            }
            let place = entry.place(handle);
            let address = object.as_ref().map(Arc::as_ptr);
            let before = place.replace(handle, removals, object);
            (address.map(|address| Held::of(entry, address)), before)
        });
        match found {
            // The object that the place had before is dropped only here, where the entry is consistent again,
            // because the destructor of an object may look up other objects.
            Ok((held, before)) => {
                drop(before);
                held
            }
            // The thread is ending, and its `Home` has been destroyed, so the thread no longer has an entry.
            Err(_) => table.find(handle).map(Held::own),
        }
    }
}

impl<T: Send + Sync> ThreadCache<T> {
    /// Drops the freed objects that the calling thread has cached, unless it uses an object of this kind. All calls on
    /// one `ThreadCache` pass the same `table` and the same `home`.
    #[cold]
    pub fn forget(&'static self, home: &'static LocalKey<Home<T>>, table: &Table<T>) {
        let forgotten = home.try_with(|home| {
            let entry = home.entry(self, key());
            // A `Held` of a function further up the stack may point to an object of this entry.
            let forget = entry.uses.get() == 0;
            entry.places.each_ref().map(|place| {
                let is_freed =
                    forget && !place.object.get().is_null() && !table.has(place.handle.get());
                is_freed.then(|| place.replace(0, NEVER, None)).flatten()
            })
        });
        // The objects are dropped only here, because the destructor of an object may look up other objects.
        drop(forgotten);
    }
}

#[cfg(test)]
mod tests {
    use super::{Home, SLOTS, ThreadCache};
    use crate::handle::Kind;
    use crate::handle::table::Table;
    use std::sync::{Arc, Barrier};

    /// Makes a table for one test, and a function that looks objects up in the table.
    macro_rules! kind {
        ($table:ident, $find:ident, $kept:ty) => {
            kind!($table, $find, $kept, _forget);
        };
        ($table:ident, $find:ident, $kept:ty, $forget:ident) => {
            static $table: Table<$kept> = Table::new(Kind::Datatype);
            static CACHE: ThreadCache<$kept> = ThreadCache::new();
            thread_local! {
                static HOME: Home<$kept> = const { Home::new() };
            }
            fn $find<R>(handle: usize, work: impl FnOnce(&$kept) -> R) -> Option<R> {
                CACHE.find(&HOME, &$table, handle).map(|held| work(&held))
            }
            #[allow(dead_code, reason = "only one test forgets")]
            fn $forget() {
                CACHE.forget(&HOME, &$table);
            }
        };
    }

    #[test]
    fn freed_objects_that_nobody_uses_are_forgotten() {
        kind!(TABLE, find, i32, forget);
        let (freed, live) = (Arc::new(7), Arc::new(8));
        let handle = TABLE.insert(Arc::clone(&freed)).expect("a handle");
        let other = TABLE.insert(Arc::clone(&live)).expect("a handle");
        assert_eq!((find(handle, |found| *found), find(other, |found| *found)), (Some(7), Some(8)));
        find(handle, |_| {
            TABLE.remove(handle).expect("the object");
            forget();
            assert_eq!(Arc::strong_count(&freed), 2);
        });
        forget();
        assert_eq!((Arc::strong_count(&freed), Arc::strong_count(&live)), (1, 3));
        assert_eq!((find(handle, |found| *found), find(other, |found| *found)), (None, Some(8)));
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
        // Look up all pairs of handles, including pairs that share a place in the cache, and pairs of a
        // handle with itself.
        for (outer, &one) in handles.iter().enumerate() {
            for (inner, &other) in handles.iter().enumerate() {
                let within = find(one, |found| (*found, find(other, |found| *found), *found));
                assert_eq!(within, Some((outer, Some(inner), outer)));
            }
        }
        // An object that is freed while it is in use lives until that use ends, even if the thread looks up
        // other objects in the meantime.
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

    /// Checks that a thread drops its cached objects when it ends, whether its entry lies in the array or in
    /// a box. There are more threads than slots, so the entries of some threads lie in boxes. In the second
    /// round, new threads take over the entries that the threads of the first round have given up.
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
                // `handles[4]` has the same place in the cache as `handles[0]`. So in the threads that
                // looked up `handles[0]`, the object of `handles[4]` replaces that of `handles[0]`.
                assert_eq!(find(handles[4], |found| found[2]), Some(4));
            };
            let work = &work;
            std::thread::scope(|scope| {
                let threads: Vec<_> =
                    (0..THREADS).map(|thread| scope.spawn(move || work(thread % 4))).collect();
                // The threads are joined here, because the end of a scope does not wait for the thread-local
                // destructors of its threads. These destructors drop the cached objects.
                threads.into_iter().for_each(|thread| thread.join().expect("no check failed"));
            });
            for object in &objects {
                assert_eq!(Arc::strong_count(object), 2);
            }
        }
    }

    /// Checks lookups of objects that another thread frees at the same time. The destructor of each object
    /// looks up a further object.
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
