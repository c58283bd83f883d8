//! Tables of objects. A table holds the objects of one kind and finds them by their handles.
//!
//! Each table has one lock. A function holds the lock while it reads or changes the table. The table returns
//! counted references, so an object that is freed while another thread uses it is dropped only when that
//! thread's use ends. `thread_cache.rs` finds recently used objects without the lock.

use super::{Kind, LOW_BITS, PLACE_BITS, Parts, REST, check_memory, next, none_left};
use crate::failure::Result;
use std::collections::{TryReserveError, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};
use typepack_engine::reserve::Grow;

#[derive(Debug)]
struct Slot<T> {
    generation: u64,
    object: Option<Arc<T>>,
}

#[derive(Debug)]
struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: VecDeque<u32>,
    /// The greatest number of handles in use since the last call of [`Table::has_shrunk`] that returned true.
    most: usize,
    /// Objects that [`Table::insert_with`] uses again.
    spare: Vec<Arc<T>>,
}

impl<T> Slots<T> {
    /// Makes room for another slot. All slots have room in the list of free places, so that no removal allocates.
    fn grow(&mut self) -> std::result::Result<(), TryReserveError> {
        self.slots.grow(1)?;
        self.free.grow(self.slots.capacity() - self.free.len())
    }
}

/// Maximum number of objects that a table keeps to use them again.
const SPARES: usize = 1024;

/// All objects of one kind.
#[derive(Debug)]
pub struct Table<T> {
    kind: Kind,
    slots: RwLock<Slots<T>>,
    /// Number of removals so far. As long as this number does not change, every object that a lookup has
    /// found is still in the table.
    removals: AtomicU64,
}

impl<T> Table<T> {
    /// Makes an empty table.
    pub const fn new(kind: Kind) -> Self {
        let slots = Slots { slots: Vec::new(), free: VecDeque::new(), most: 0, spare: Vec::new() };
        Self { kind, slots: RwLock::new(slots), removals: AtomicU64::new(0) }
    }

    // The table may be used after a panic poisoned its lock. No call under the lock can panic between two
    // assignments to the slots, so the slots are consistent.
    fn read(&self) -> RwLockReadGuard<'_, Slots<T>> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Slots<T>> {
        self.slots.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an object to the table and returns its handle.
    ///
    /// # Errors
    /// Returns `MPI_ERR_OTHER` if all `1 << PLACE_BITS` places (four million) are in use, and `MPI_ERR_NO_MEM` if
    /// there is no memory for another.
    pub fn insert(&self, object: Arc<T>) -> Result<usize> {
        let handle = self.reserve()?;
        self.fill(handle, object);
        Ok(handle)
    }

    /// Makes room for another handle, before a call takes something that it could not give back.
    ///
    /// # Errors
    /// Returns `MPI_ERR_NO_MEM` if there is no memory for another handle.
    pub fn make_room(&self) -> Result<()> {
        check_memory(self.kind)?;
        let mut slots = self.write();
        if slots.free.is_empty() {
            let places = slots.slots.len();
            slots.grow().map_err(|_| none_left(self.kind, places))?;
        }
        Ok(())
    }

    /// Returns a handle for an object that [`fill`](Self::fill) will add. Until `fill` is called, a lookup of
    /// the handle finds no object.
    ///
    /// # Errors
    /// Returns `MPI_ERR_OTHER` if all `1 << PLACE_BITS` places (four million) are in use, and `MPI_ERR_NO_MEM` if
    /// there is no memory for another.
    pub fn reserve(&self) -> Result<usize> {
        self.place(&mut self.write())
    }

    /// Returns a handle without an object.
    fn place(&self, slots: &mut Slots<T>) -> Result<usize> {
        check_memory(self.kind)?;
        let again = (slots.free.len() > REST).then(|| slots.free.pop_front()).flatten();
        let place = match again {
            Some(place) => place,
            None if slots.slots.len() < 1 << PLACE_BITS && slots.grow().is_ok() => {
                slots.slots.push(Slot { generation: 0, object: None });
                (slots.slots.len() - 1) as u32
            }
            None => {
                slots.free.pop_front().ok_or_else(|| none_left(self.kind, slots.slots.len()))?
            }
        };
        slots.most = slots.most.max(slots.slots.len() - slots.free.len());
        let generation = slots.slots[place as usize].generation;
        Ok(Parts { kind: self.kind as u32, place, generation }.handle())
    }

    /// Adds an object to the table and returns its handle. `make` makes the object, out of a spare object if there
    /// is one. The function calls `make` under the lock, so `make` must be short and must not use the table. The
    /// `Arc` of a spare object is the only reference to the object.
    ///
    /// # Errors
    /// Returns `MPI_ERR_OTHER` if all `1 << PLACE_BITS` places (four million) are in use, and `MPI_ERR_NO_MEM` if
    /// there is no memory for another. `make` is not called
    /// then.
    pub fn insert_with(&self, make: impl FnOnce(Option<Arc<T>>) -> Arc<T>) -> Result<usize> {
        let mut slots = self.write();
        let handle = self.place(&mut slots)?;
        let object = make(slots.spare.pop());
        slots.slots[Parts::of(handle).place as usize].object = Some(object);
        Ok(handle)
    }

    /// Takes the lock to find the objects of several handles.
    pub fn view(&self) -> View<'_, T> {
        View { table: self, slots: self.read() }
    }

    /// Removes the objects of several handles. Afterwards the handles are invalid. The caller has a reference to
    /// each of the objects, so no object is dropped here.
    pub fn remove_each(&self, handles: impl Iterator<Item = usize>) {
        let mut slots = self.write();
        for handle in handles {
            self.take(&mut slots, handle);
        }
    }

    /// Keeps objects so that they can be used again, up to the number `SPARES`, and drops the rest. Each `Arc` must
    /// be the only reference to its object.
    pub fn keep_spare(&self, objects: impl Iterator<Item = Arc<T>>) {
        let mut slots = self.write();
        for object in objects {
            if slots.spare.len() < SPARES {
                slots.spare.push(object);
            }
        }
    }

    /// Adds the object for a handle that [`reserve`](Self::reserve) returned. If the handle has been
    /// released since, the object is dropped.
    pub fn fill(&self, handle: usize, object: Arc<T>) {
        let parts = Parts::of(handle);
        let mut slots = self.write();
        let slot = slots.slots.get_mut(parts.place as usize);
        if let Some(slot) = slot.filter(|slot| slot.generation == parts.generation) {
            slot.object = Some(object);
        }
    }

    /// Frees a handle that [`reserve`](Self::reserve) returned and that has no object yet. A handle with an
    /// object stays unchanged.
    pub fn release(&self, handle: usize) {
        let parts = Parts::of(handle);
        let mut slots = self.write();
        let slot = slots.slots.get_mut(parts.place as usize);
        let empty =
            |slot: &&mut Slot<T>| slot.generation == parts.generation && slot.object.is_none();
        if let Some(slot) = slot.filter(empty) {
            slot.generation = next(slot.generation);
            slots.free.push_back(parts.place);
        }
    }

    fn slot<'a>(&self, slots: &'a Slots<T>, handle: usize) -> Option<&'a Slot<T>> {
        let parts = Parts::of(handle);
        let slot = slots.slots.get(parts.place as usize)?;
        let ours = parts.kind == self.kind as u32 && parts.generation == slot.generation;
        (ours && slot.object.is_some()).then_some(slot)
    }

    /// Returns the object of a handle; `None` if the handle has no object in this table, for example
    /// because the handle is predefined or stale.
    pub fn find(&self, handle: usize) -> Option<Arc<T>> {
        self.slot(&self.read(), handle)?.object.clone()
    }

    /// Returns the object of a handle like [`find`](Self::find), for a debugger that has stopped the process. Does not
    /// wait for the lock of the table.
    ///
    /// # Errors
    /// Returns [`Busy`] if a thread is changing the table.
    pub fn try_find(&self, handle: usize) -> std::result::Result<Option<Arc<T>>, Busy> {
        let slots = match self.slots.try_read() {
            Ok(slots) => slots,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(Busy),
        };
        Ok(self.slot(&slots, handle).and_then(|slot| slot.object.clone()))
    }

    /// Returns whether a handle has an object. Unlike [`find`](Self::find), this function does not touch the
    /// object's reference count.
    // Never inlined: with this function inlined, the fast paths for `MPI_COMM_WORLD` would need more
    // registers and spill some of them to the stack.
    #[inline(never)]
    pub fn has(&self, handle: usize) -> bool {
        self.slot(&self.read(), handle).is_some()
    }

    /// Removes and returns the object of a handle. Afterwards the handle is invalid. Returns `None` if the
    /// handle has no object.
    pub fn remove(&self, handle: usize) -> Option<Arc<T>> {
        self.take(&mut self.write(), handle)
    }

    fn take(&self, slots: &mut Slots<T>, handle: usize) -> Option<Arc<T>> {
        self.slot(slots, handle)?;
        let place = Parts::of(handle).place;
        slots.free.push_back(place);
        let slot = &mut slots.slots[place as usize];
        slot.generation = next(slot.generation);
        let object = slot.object.take();
        self.removals.fetch_add(1, Ordering::Release);
        object
    }

    /// Returns how many objects have been removed from this table so far.
    #[inline]
    pub fn removals(&self) -> u64 {
        self.removals.load(Ordering::Acquire)
    }

    /// Returns whether the table once had many objects and has lost most of them. The next call returns true only
    /// after the table has again had many objects.
    pub fn has_shrunk(&self) -> bool {
        /// A table with fewer objects never has many.
        const MANY: usize = 1 << 14;
        let mut slots = self.write();
        let live = slots.slots.len() - slots.free.len();
        let shrunk = slots.most >= MANY && live <= slots.most / 4;
        if shrunk {
            slots.most = live;
        }
        shrunk
    }

    /// Returns the live handle whose lower 32 bits are `integer`; `None` if there is none.
    pub fn of_int(&self, integer: i32) -> Option<usize> {
        let parts = Parts::of(integer as u32 as usize);
        let slots = self.read();
        let slot = slots.slots.get(parts.place as usize)?;
        let low = slot.generation & ((1 << LOW_BITS) - 1);
        let ours = parts.kind == self.kind as u32 && parts.generation == low;
        (ours && slot.object.is_some())
            .then(|| Parts { generation: slot.generation, ..parts }.handle())
    }

    /// Returns the number of live objects.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.read().slots.iter().filter(|slot| slot.object.is_some()).count()
    }
}

/// A thread holds the lock that a debugger would need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

/// A table whose lock is held for reading.
#[derive(Debug)]
pub struct View<'a, T> {
    table: &'a Table<T>,
    slots: RwLockReadGuard<'a, Slots<T>>,
}

impl<T> View<'_, T> {
    /// Returns the object of a handle, like [`Table::find`].
    pub fn find(&self, handle: usize) -> Option<Arc<T>> {
        self.table.slot(&self.slots, handle)?.object.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_of_freed_objects_stay_invalid() {
        let table = Table::new(Kind::Info);
        let mut seen = std::collections::HashSet::new();
        for round in 0..100_000usize {
            let handle = table.insert(Arc::new(round)).expect("a handle");
            assert!(handle as u32 > 0x1fff && seen.insert(handle), "{handle:x}");
            assert_eq!(table.find(handle).as_deref(), Some(&round));
            assert!(table.has(handle));
            assert_eq!(table.of_int(super::super::to_int(handle)), Some(handle));
            assert_eq!(table.remove(handle).as_deref(), Some(&round));
            assert!(!table.has(handle) && table.find(handle).is_none());
            assert_eq!(table.remove(handle), None);
        }
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn a_table_that_loses_most_objects_has_shrunk_once() {
        let table = Table::new(Kind::Datatype);
        for _ in 0..2 {
            let handles: Vec<_> = (0..20_000)
                .map(|number| table.insert(Arc::new(number)).expect("a handle"))
                .collect();
            let mut told = Vec::new();
            for (removed, handle) in (1..).zip(handles) {
                table.remove(handle);
                if table.has_shrunk() {
                    told.push(removed);
                }
            }
            assert_eq!(told, [15_000]);
        }
    }

    #[test]
    fn reserved_handles_have_no_object_until_they_get_one() {
        let table = Table::new(Kind::Comm);
        let (one, other) = (table.reserve().expect("a handle"), table.reserve().expect("a handle"));
        assert!(one != other && !table.has(one) && table.remove(one).is_none());
        assert_eq!(table.of_int(super::super::to_int(one)), None);
        table.fill(one, Arc::new(1));
        assert_eq!(table.find(one).as_deref(), Some(&1));
        // `release` does nothing for `one`, which has an object, and frees `other`, which has none.
        table.release(one);
        table.release(other);
        assert!(table.has(one));
        table.fill(other, Arc::new(2));
        assert!(!table.has(other));
        assert_eq!((table.remove(one).as_deref(), table.len()), (Some(&1), 0));
    }

    #[test]
    fn objects_are_used_again() {
        let table = Table::new(Kind::Request);
        let number = AtomicU64::new(0);
        let make = |spare: Option<Arc<AtomicU64>>| {
            spare
                .unwrap_or_else(|| Arc::new(AtomicU64::new(number.fetch_add(1, Ordering::Relaxed))))
        };
        let mut seen = std::collections::HashSet::new();
        for _ in 0..5000 {
            let handles = [(); 7].map(|()| table.insert_with(make).expect("a handle"));
            assert!(handles.iter().all(|handle| seen.insert(*handle)));
            let view = table.view();
            let found = handles.map(|handle| view.find(handle));
            assert!(view.find(0).is_none() && found.iter().all(Option::is_some));
            drop(view);
            table.remove_each(handles.into_iter());
            assert!(!handles.iter().any(|handle| table.has(*handle)));
            table.keep_spare(found.into_iter().flatten());
        }
        assert_eq!((number.into_inner(), table.len()), (7, 0));
    }

    #[test]
    fn handles_of_other_kinds_are_not_found() {
        let (infos, groups) = (Table::new(Kind::Info), Table::new(Kind::Group));
        let info = infos.insert(Arc::new(1)).expect("a handle");
        groups.insert(Arc::new(2)).expect("a handle");
        assert_eq!(groups.find(info), None);
        for handle in [0, 1, 0x101, 0xfff, 0x1210, usize::MAX, info ^ (1 << 32), info | (1 << 31)] {
            assert_eq!(infos.find(handle), None, "{handle:x}");
        }
    }

    #[test]
    fn the_last_place_is_used_and_one_more_refused() {
        let table = Table::new(Kind::Request);
        let object = Arc::new(());
        let mut last = 0;
        for _ in 0..1 << PLACE_BITS {
            last = table.insert(object.clone()).expect("a handle");
        }
        assert!(table.insert(object.clone()).is_err());
        table.remove(last).expect("the object");
        assert_ne!(table.insert(object).expect("a handle"), last);
    }
}
