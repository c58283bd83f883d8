//! Receives that wait for their messages.
//!
//! Each receive is in one list, that of the messages it asks for. A message may match the receives of four
//! lists: those with its source or any source, and with its tag or any tag. Among the first receives of these
//! lists, the one that was posted first wins. A form that no receive has costs nothing.

use super::lists::{FORMS, Key, Lists};
use crate::message::label::Slot;

/// A receive.
#[derive(Clone, Copy, Debug)]
struct Entry {
    id: u64,
    /// Number of receives that were posted before. At one receive per nanosecond it wraps after 584 years.
    stamp: u64,
    form: usize,
}

/// The receives. The entry of a receive has the number of the receive's place in the table of requests: the
/// low 32 bits of the request's id.
#[derive(Debug, Default)]
pub struct Posted {
    lists: Lists<1>,
    entries: Vec<Entry>,
    /// Number of waiting receives of each form.
    waiting: [usize; FORMS],
    stamp: u64,
}

impl Posted {
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

    /// Removes a receive. Returns false if it does not wait any more.
    pub fn cancel(&mut self, id: u64) -> bool {
        let at = id as u32;
        let waits = self.lists.contains(at, 0) && self.entries[at as usize].id == id;
        if waits {
            self.remove(at);
        }
        waits
    }

    /// Removes the receive that a message matches, and returns its id.
    #[inline]
    pub fn arrive(&mut self, context: u64, source: Slot, tag: i32) -> Option<u64> {
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
        let (_, at) = oldest?;
        Some(self.remove(at))
    }

    #[inline]
    fn remove(&mut self, at: u32) -> u64 {
        let Entry { id, form, .. } = self.entries[at as usize];
        self.lists.remove(at, 0);
        self.waiting[form] -= 1;
        id
    }

    /// Returns whether no receive waits.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.waiting == [0; FORMS]
    }

    /// Returns the room in the tables.
    #[cfg(test)]
    pub fn room(&self) -> Vec<usize> {
        [&self.lists.room()[..], &[self.entries.capacity()]].concat()
    }
}
