//! Receives that wait for their messages.
//!
//! Each receive is in exactly one list: the list of its context, of its source (or any source), and of its
//! tag (or any tag). A message can match receives in up to four lists: with its own source or any source,
//! combined with its own tag or any tag. The message goes to the receive that was posted first among the
//! first receives of these lists. Each of the four combinations is called a form. The search skips a
//! form that no waiting receive has.

use super::lists::{FORMS, Key, Lists, SMALL, SPARSE};
use crate::message::Tag;
use crate::process::Process;
use std::collections::TryReserveError;
use typepack_engine::reserve::{Grow, room};

/// A receive.
#[derive(Clone, Copy, Debug)]
struct Entry {
    id: u64,
    /// Number of receives that were posted before this one. At one receive per nanosecond, this number
    /// overflows after 584 years.
    stamp: u64,
    form: usize,
}

/// The posted receives. The index of a receive in `entries` is the low 32 bits of its request id, which are
/// the index of the request in the table of requests.
#[derive(Debug, Default)]
pub struct Posted {
    lists: Lists<1>,
    entries: Vec<Entry>,
    /// Number of waiting receives of each form.
    waiting: [usize; FORMS],
    stamp: u64,
    /// Number of receives that have been removed since the last call of `shrink`.
    removed: usize,
}

impl Posted {
    /// Returns the number of receives that wait, and of those that have been added so far.
    pub fn counts(&self) -> (u64, u64) {
        (self.waiting.iter().sum::<usize>() as u64, self.stamp)
    }

    /// Makes room for the receive with the request id `id`.
    ///
    /// # Errors
    /// Returns an error if there is not enough memory.
    #[inline]
    pub fn make_room(&mut self, id: u64) -> Result<(), TryReserveError> {
        let at = id as u32;
        self.lists.make_room(at)?;
        self.entries.grow((at as usize + 1).saturating_sub(self.entries.len()))
    }

    /// Adds a receive.
    #[inline]
    pub fn post(&mut self, key: Key, id: u64) {
        let (at, form) = (id as u32, key.form());
        let entry = Entry { id, stamp: self.stamp, form };
        self.stamp += 1;
        self.lists.push(at, 0, key);
        if at as usize >= self.entries.len() {
            self.entries.resize(at as usize + 1, entry);
        }
        self.entries[at as usize] = entry;
        self.waiting[form] += 1;
    }

    /// Removes the receive with the request id `id`. Returns false if no such receive is waiting.
    pub fn cancel(&mut self, id: u64) -> bool {
        let at = id as u32;
        let waits = self.lists.contains(at, 0) && self.entries[at as usize].id == id;
        if waits {
            self.remove(at);
        }
        waits
    }

    /// Returns the tag that the waiting receive with the request id `id` accepts.
    pub fn tag(&self, id: u64) -> Option<Tag> {
        let at = id as u32;
        let waits = self.lists.contains(at, 0) && self.entries[at as usize].id == id;
        if waits { self.lists.key(at, 0).map(Key::tag) } else { None }
    }

    /// Finds the receive that a message matches, and returns the number by which [`Posted::remove`]
    /// removes it.
    #[inline]
    pub fn find(&self, context: u64, source: Process, tag: i32) -> Option<u32> {
        if self.lists.is_empty() {
            return None;
        }
        let mut oldest: Option<(u64, u32)> = None;
        for form in 0..FORMS {
            if self.waiting[form] == 0 {
                continue;
            }
            if let Some(at) = self.lists.first(Key::of_message(context, source, tag, form)) {
                let stamp = self.entries[at as usize].stamp;
                if oldest.is_none_or(|(older, _)| stamp < older) {
                    oldest = Some((stamp, at));
                }
            }
        }
        oldest.map(|(_, at)| at)
    }

    /// Removes a waiting receive, and returns its request id.
    #[inline]
    pub fn remove(&mut self, at: u32) -> u64 {
        let Entry { id, form, .. } = self.entries[at as usize];
        self.lists.remove(at, 0);
        self.waiting[form] -= 1;
        self.removed += 1;
        if self.removed > SMALL.max(self.entries.len() / 2) {
            self.shrink();
        }
        id
    }

    /// Makes new tables for the receives that are left, if they are few. The numbers of the receives stay, so the
    /// new tables are as long as the largest number demands.
    #[cold]
    #[inline(never)]
    fn shrink(&mut self) {
        self.removed = 0;
        let waiting: usize = self.waiting.iter().sum();
        let len = self.entries.len();
        if len <= SMALL || waiting * SPARSE >= len || !room(len * size_of::<Entry>()) {
            return;
        }
        let mut left: Vec<(u32, Key)> = (0..self.entries.len() as u32)
            .filter_map(|at| Some((at, self.lists.key(at, 0)?)))
            .collect();
        left.sort_unstable_by_key(|(at, _)| self.entries[*at as usize].stamp);
        self.lists = Lists::default();
        for (at, key) in &left {
            self.lists.push(*at, 0, *key);
        }
        self.entries.truncate(left.iter().map(|(at, _)| *at as usize + 1).max().unwrap_or(0));
        self.entries.shrink_to_fit();
    }

    /// Returns true if no receive is waiting.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.waiting == [0; FORMS]
    }

    /// Returns the number of items for which each table has allocated memory.
    #[cfg(test)]
    pub fn room(&self) -> Vec<usize> {
        [&self.lists.room()[..], &[self.entries.capacity()]].concat()
    }
}
