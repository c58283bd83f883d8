//! Tables that store their objects by value and have no lock of their own.
//!
//! In a [`Table`](super::table::Table), each object has an allocation and a reference count of its own, and each
//! function takes the table's lock. This costs too much for objects that live only as long as one message. Such
//! objects are in a [`Values`]. The owner of a [`Values`] keeps it behind a lock. An MPI call that handles many of
//! the objects takes this lock once.

use super::{Kind, PLACE_BITS, Parts, REST, next, none_left};
use crate::failure::Result;
use std::collections::{TryReserveError, VecDeque};
use typepack_engine::reserve::{Grow, insist};

/// A table frees the memory of its values only if this memory has room for more values than this number.
const SMALL: usize = 1024;

/// The content of [`Place::value`] in a place that has no value.
const NONE: u32 = u32::MAX;

/// What the table knows about the handles with one place index. The table uses a free place again only when more
/// than [`REST`] places are free, so it has many free places. A place is therefore small, and the values lie in
/// another vector, in which the entry of a removed value is used again at once.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The generation of the live handle, or of the next handle with this place.
    generation: u64,
    /// The index of the value in [`Values::values`]; [`NONE`] if the place is free.
    value: u32,
}

/// All objects of one kind.
#[derive(Debug)]
pub struct Values<T> {
    kind: Kind,
    places: Vec<Place>,
    /// The indices of the free places, the place that has been free for the longest time first.
    free: VecDeque<u32>,
    values: Vec<Option<T>>,
    /// The indices of those entries of `values` that are `None`.
    unused: Vec<u32>,
}

impl<T> Values<T> {
    /// Makes an empty table.
    pub const fn new(kind: Kind) -> Self {
        Self {
            kind,
            places: Vec::new(),
            free: VecDeque::new(),
            values: Vec::new(),
            unused: Vec::new(),
        }
    }

    /// Finds a handle for a new value. If it is that of an operation that has been started, the operation cannot be
    /// taken back. So the handle may take the last of the reserve, and the caller has
    /// [checked](super::check_memory) that there is memory before the operation started.
    ///
    /// # Errors
    /// Returns `MPI_ERR_OTHER` if all `1 << PLACE_BITS` places (four million) are in use, and `MPI_ERR_NO_MEM` if
    /// there is no memory for another.
    #[inline(always)]
    pub fn vacant(&mut self) -> Result<Vacant<'_, T>> {
        let place = match self.vacant_place() {
            Ok(place) => place,
            Err(_) => self.insist_on_place()?,
        };
        Ok(Vacant { table: self, place })
    }

    #[cold]
    #[inline(never)]
    fn insist_on_place(&mut self) -> Result<u32> {
        insist(|| self.vacant_place())
    }

    #[inline]
    fn vacant_place(&mut self) -> Result<u32> {
        let room = self.values.capacity();
        if self.unused.is_empty() && (self.values.len() == room || self.unused.capacity() < room) {
            self.grow_values().map_err(|_| none_left(self.kind, 0))?;
        }
        self.place()
    }

    #[inline]
    fn place(&mut self) -> Result<u32> {
        if self.free.len() > REST
            && let Some(place) = self.free.pop_front()
        {
            return Ok(place);
        }
        self.more()
    }

    #[cold]
    fn more(&mut self) -> Result<u32> {
        if self.places.len() < 1 << PLACE_BITS && self.grow_places().is_ok() {
            self.places.push(Place { generation: 0, value: NONE });
            return Ok((self.places.len() - 1) as u32);
        }
        self.free.pop_front().ok_or_else(|| none_left(self.kind, self.places.len()))
    }

    /// Makes room for another place. All places have room in the list of free places, so that no removal allocates.
    fn grow_places(&mut self) -> std::result::Result<(), TryReserveError> {
        self.places.grow(1)?;
        self.free.grow(self.places.capacity() - self.free.len())
    }

    /// Makes room for another value. All values have room in the list of unused entries, so that no removal allocates.
    #[cold]
    fn grow_values(&mut self) -> std::result::Result<(), TryReserveError> {
        self.values.grow(1)?;
        self.unused.grow(self.values.capacity())
    }

    /// Returns the index of a handle's place and the index of its value.
    #[inline]
    fn find(&self, handle: usize) -> Option<(u32, u32)> {
        let Parts { kind, place, generation } = Parts::of(handle);
        let slot = self.places.get(place as usize)?;
        (kind == self.kind as u32 && slot.generation == generation && slot.value != NONE)
            .then_some((place, slot.value))
    }

    /// Returns the value of a handle; `None` if the handle has no value in this table, for example because the
    /// handle is predefined or stale.
    #[inline]
    pub fn get(&self, handle: usize) -> Option<&T> {
        let (_, at) = self.find(handle)?;
        self.values[at as usize].as_ref()
    }

    /// Returns a mutable reference to the value of a handle. Returns `None` in the same cases as
    /// [`get`](Self::get).
    #[inline]
    pub fn get_mut(&mut self, handle: usize) -> Option<&mut T> {
        let (_, at) = self.find(handle)?;
        self.values[at as usize].as_mut()
    }

    /// Removes and returns the value of a handle. Afterwards the handle is invalid. Returns `None` if the handle
    /// has no value.
    #[inline]
    pub fn remove(&mut self, handle: usize) -> Option<T> {
        self.remove_with(handle, |value| value.take())?
    }

    /// Calls `look` with the value of a handle, and removes the value. Afterwards the handle is invalid. Returns `None`
    /// if the handle has no value. `look` may take the value; otherwise this function drops it.
    #[inline]
    pub fn remove_with<R>(
        &mut self,
        handle: usize,
        look: impl FnOnce(&mut Option<T>) -> R,
    ) -> Option<R> {
        let (place, at) = self.find(handle)?;
        let slot = &mut self.places[place as usize];
        slot.value = NONE;
        slot.generation = next(slot.generation);
        self.free.push_back(place);
        self.unused.push(at);
        let value = &mut self.values[at as usize];
        let found = look(value);
        *value = None;
        if self.values.len() > SMALL && self.unused.len() == self.values.len() {
            self.shrink();
        }
        Some(found)
    }

    /// Frees the memory of the values. No value is left in the table.
    #[cold]
    fn shrink(&mut self) {
        (self.values, self.unused) = (Vec::new(), Vec::new());
    }

    /// Returns the live handle whose lower 32 bits are `integer`; `None` if there is none.
    pub fn of_int(&self, integer: i32) -> Option<usize> {
        let parts = Parts::of(integer as u32 as usize);
        let slot = self.places.get(parts.place as usize)?;
        let handle = Parts { generation: slot.generation, ..parts }.handle();
        (handle as u32 == integer as u32 && self.find(handle).is_some()).then_some(handle)
    }
}

/// A handle for which [`Values::vacant`] has found a place, and which has no value yet.
#[derive(Debug)]
pub struct Vacant<'a, T> {
    table: &'a mut Values<T>,
    place: u32,
}

impl<T> Vacant<'_, T> {
    /// Adds the value to the table, and returns its handle. (This function cannot fail, so the compiler writes the
    /// value directly to the table. If it returned the value in an error, the compiler would copy the value right after
    /// it has written it, and the CPU would wait until the written bytes are in its cache.)
    #[inline(always)]
    pub fn fill(self, value: T) -> usize {
        let Self { table, place } = self;
        let at = match table.unused.pop() {
            Some(at) => {
                table.values[at as usize] = Some(value);
                at
            }
            None => {
                table.values.push(Some(value));
                (table.values.len() - 1) as u32
            }
        };
        let slot = &mut table.places[place as usize];
        slot.value = at;
        Parts { kind: table.kind as u32, place, generation: slot.generation }.handle()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::to_int;
    use std::collections::{HashMap, HashSet};

    #[test]
    fn handles_of_removed_values_stay_invalid() {
        let mut table = Values::new(Kind::PlainRequest);
        let (mut seen, mut recent) = (HashSet::new(), VecDeque::new());
        for round in 0..200_000_usize {
            let handle = table.vacant().expect("a handle").fill(round);
            assert!(handle as u32 > 0x1fff && seen.insert(handle), "{handle:x}");
            assert_eq!(table.get(handle), Some(&round));
            assert_eq!(table.get_mut(handle).copied(), Some(round));
            assert_eq!(table.of_int(to_int(handle)), Some(handle));
            assert_eq!(table.remove(handle), Some(round));
            assert!(table.get(handle).is_none() && table.remove(handle).is_none());
            assert_eq!(table.of_int(to_int(handle)), None);
            recent.push_back(handle);
            if recent.len() > 64 * REST {
                recent.pop_front();
            }
        }
        let live = table.vacant().expect("a handle").fill(0);
        assert!(recent.iter().all(|old| table.of_int(to_int(*old)).is_none()));
        assert_eq!(table.of_int(to_int(live)), Some(live));
        // All values used the same entry of `values`.
        assert_eq!(table.values.len(), 1);
    }

    #[test]
    fn handles_of_other_kinds_have_no_value() {
        let mut table = Values::new(Kind::PlainRequest);
        let handle = table.vacant().expect("a handle").fill(1);
        for other in
            [0, 1, 0x101, 0xfff, 0x1210, usize::MAX, handle ^ (1 << 32), handle ^ (1 << 28)]
        {
            assert_eq!(table.get(other), None, "{other:x}");
            assert_eq!(table.remove(other), None, "{other:x}");
            assert_ne!(table.of_int(other as i32), Some(other), "{other:x}");
        }
        assert_eq!(table.remove(handle), Some(1));
    }

    #[test]
    fn values_are_those_of_their_handles() {
        let (mut table, mut expected) = (Values::new(Kind::PlainRequest), HashMap::new());
        let mut random = 1_u64;
        for number in 0..100_000_u64 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            // The table grows to some thousand values and becomes empty again, several times.
            if (number / 5000 % 2 == 0) == (random >> 33 & 3 != 0) {
                expected.insert(table.vacant().expect("a handle").fill(number), number);
            } else if let Some(handle) = expected.keys().next().copied() {
                assert_eq!(table.remove(handle), expected.remove(&handle));
            }
            if number % 1000 == 0 {
                assert!(expected.iter().all(|(handle, value)| table.get(*handle) == Some(value)));
            }
        }
        for (handle, value) in expected {
            assert_eq!(table.remove(handle), Some(value));
        }
        assert!(table.values.capacity() == 0 || table.values.len() <= SMALL);
    }
}
