//! A map that keeps its keys in the order in which they were added. Info objects and lists of attributes use it.
//!
//! The entries lie in a queue, in order. An index finds the position of a key. Removing a key leaves a hole in the
//! queue, and the queue closes its holes when there are more holes than entries. So each function except
//! [`Ordered::nth`] takes at most logarithmic time, on average over many calls. `nth` first closes all holes; it
//! takes constant time as long as no key between two other keys is removed.

use std::borrow::Borrow;
use std::collections::{BTreeMap, TryReserveError, VecDeque};
use typepack::engine::reserve::Grow;

/// A map in the order of insertion.
#[derive(Clone, Debug)]
pub struct Ordered<K, V> {
    /// The number of each key: the position of its entry in `entries`, plus `first`.
    index: BTreeMap<K, u64>,
    /// The entries in order; `None` for a hole. Neither the first nor the last entry is a hole.
    entries: VecDeque<Option<(K, V)>>,
    /// The number of the first entry.
    first: u64,
}

impl<K, V> Ordered<K, V> {
    /// Makes an empty map.
    pub const fn new() -> Self {
        Self { index: BTreeMap::new(), entries: VecDeque::new(), first: 0 }
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns the entries in order.
    pub fn iter(&self) -> impl Iterator<Item = &(K, V)> {
        self.entries.iter().flatten()
    }

    /// Returns the last entry; `None` if the map is empty.
    pub fn last(&self) -> Option<&(K, V)> {
        self.entries.back()?.as_ref()
    }
}

impl<K, V> Grow for Ordered<K, V> {
    fn grow(&mut self, more: usize) -> Result<(), TryReserveError> {
        self.entries.grow(more)
    }
}

impl<K: Clone + Ord, V> Ordered<K, V> {
    /// Returns the value of a key; `None` if the map does not have the key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let number = *self.index.get(key)?;
        let (_, value) = self.entries.get((number - self.first) as usize)?.as_ref()?;
        Some(value)
    }

    /// Sets the value of a key. A new key comes last; a key that the map already has keeps its place.
    ///
    /// # Errors
    /// Returns an error if there is no memory for a new key. The map is then unchanged.
    pub fn set(&mut self, key: K, value: V) -> Result<(), TryReserveError> {
        self.entries.grow(1)?;
        self.put(key, value);
        Ok(())
    }

    fn put(&mut self, key: K, value: V) {
        if let Some(number) = self.index.get(&key) {
            self.entries[(number - self.first) as usize] = Some((key, value));
        } else {
            self.index.insert(key.clone(), self.first + self.entries.len() as u64);
            self.entries.push_back(Some((key, value)));
        }
    }

    /// Removes a key, and returns its value; `None` if the map does not have the key.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let number = self.index.remove(key)?;
        let (_, value) = self.entries.get_mut((number - self.first) as usize)?.take()?;
        while let Some(None) = self.entries.back() {
            self.entries.pop_back();
        }
        while let Some(None) = self.entries.front() {
            self.entries.pop_front();
            self.first += 1;
        }
        if self.entries.len() > 2 * self.len() {
            self.close_holes();
        }
        Some(value)
    }

    fn close_holes(&mut self) {
        self.entries.retain(Option::is_some);
        self.first = 0;
        for (number, (key, _)) in (0..).zip(self.entries.iter().flatten()) {
            if let Some(place) = self.index.get_mut(key) {
                *place = number;
            }
        }
    }

    /// Returns the entry that `n` entries precede; `None` if there are not so many entries.
    pub fn nth(&mut self, n: usize) -> Option<&(K, V)> {
        if self.entries.len() > self.len() {
            self.close_holes();
        }
        self.entries.get(n)?.as_ref()
    }
}

impl<K, V> Default for Ordered<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Clone + Ord, V> FromIterator<(K, V)> for Ordered<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        for (key, value) in entries {
            map.put(key, value);
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the map with a plain list, for random changes.
    #[test]
    fn the_map_is_what_a_list_would_be() {
        let mut random = 7_u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % below
        };
        let (mut map, mut list) = (Ordered::new(), Vec::<(u64, u64)>::new());
        for round in 0..20_000 {
            let key = next(200);
            let at = list.iter().position(|(known, _)| *known == key);
            // The map grows for some thousand rounds, then shrinks, and so on.
            if next(10) < if round / 3000 % 2 == 0 { 7 } else { 2 } {
                map.set(key, round).expect("memory");
                match at {
                    Some(at) => list[at].1 = round,
                    None => list.push((key, round)),
                }
            } else {
                assert_eq!(map.remove(&key), at.map(|at| list.remove(at).1));
            }
            assert_eq!(map.get(&key), list.iter().find(|(k, _)| *k == key).map(|(_, value)| value));
            assert_eq!((map.len(), map.last()), (list.len(), list.last()));
            assert!(map.entries.len() <= 2 * map.len());
            if next(20) == 0 {
                assert!(map.iter().eq(&list));
            }
            if next(50) == 0 {
                let n = next(100) as usize;
                assert_eq!(map.nth(n), list.get(n));
            }
        }
    }
}
