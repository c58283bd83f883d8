//! Messages that wait for their receives.
//!
//! A receive can ask for a message in four forms: from a certain source or any source, with a certain tag or
//! any tag. Each message is in the list of its source and tag. In addition, for each other form in which a
//! receive or probe of this process has ever asked, each message is in one list of that form. So a program
//! that uses few forms pays for few lists. Each list is in the order of arrival, so its first message is the
//! one that a receive must take.

use super::Unexpected;
use super::lists::{EXACT, FORMS, Key, Lists, SMALL, SPARSE};
use crate::process::Process;
use std::collections::TryReserveError;
use typepack_engine::reserve::{Grow, SPARE, room, spare};

/// A message.
#[derive(Debug)]
struct Entry {
    context: u64,
    source: Process,
    /// Number of messages that were added before this one. At one message per nanosecond, this number
    /// overflows after 584 years.
    stamp: u64,
    message: Unexpected,
}

/// Approximate number of bytes that a message occupies: its entry, its links, and its share of the lists.
pub const ENTRY_BYTES: usize = size_of::<Option<Entry>>() + super::lists::ENTRY_BYTES;

/// The messages.
#[derive(Debug)]
pub struct Messages {
    lists: Lists<FORMS>,
    entries: Vec<Option<Entry>>,
    /// Numbers of the entries that contain no message.
    free: Vec<u32>,
    /// For each form: true if every message is in a list of this form; false if no message is.
    listed: [bool; FORMS],
    stamp: u64,
}

impl Default for Messages {
    fn default() -> Self {
        let mut listed = [false; FORMS];
        listed[EXACT] = true;
        Self { lists: Lists::default(), entries: Vec::new(), free: Vec::new(), listed, stamp: 0 }
    }
}

impl Messages {
    /// Makes room for another message. All entries have room in the list of free entries, so that no message that
    /// leaves allocates. Some entries stay free for the steps that [`insist`](typepack_engine::reserve::insist) runs.
    ///
    /// # Errors
    /// Returns an error if there is not enough memory.
    pub fn make_room(&mut self) -> Result<(), TryReserveError> {
        let vacant = self.free.len() + self.entries.capacity() - self.entries.len();
        if vacant <= SPARE && vacant <= spare() {
            self.entries.grow((1 + spare()).saturating_sub(self.free.len()))?;
        }
        if self.free.capacity() < self.entries.capacity() {
            self.free.grow(self.entries.capacity() - self.free.len())?;
        }
        self.lists.make_room(self.free.last().map_or(self.entries.len() as u32, |at| *at))
    }

    /// Adds a message.
    #[inline]
    pub fn keep(&mut self, context: u64, source: Process, message: Unexpected) {
        let tag = message.tag;
        let entry = Some(Entry { context, source, stamp: self.stamp, message });
        self.stamp += 1;
        let at = match self.free.pop() {
            Some(at) => {
                self.entries[at as usize] = entry;
                at
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        for form in 0..FORMS {
            if self.listed[form] {
                self.lists.push(at, form, Key::of_message(context, source, tag, form));
            }
        }
    }

    /// Returns whether no message waits.
    #[inline]
    pub fn none_waits(&self) -> bool {
        self.lists.is_empty()
    }

    /// Returns the number of messages that wait.
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Returns the number of messages that wait in a context.
    pub fn count_in(&self, context: u64) -> usize {
        self.entries.iter().flatten().filter(|entry| entry.context == context).count()
    }

    #[inline]
    pub(super) fn find(&mut self, key: Key) -> Option<u32> {
        if self.lists.is_empty() {
            return None;
        }
        let form = key.form();
        if !self.listed[form] && self.list(form).is_err() {
            return self.search(key);
        }
        self.lists.first(key)
    }

    /// Finds a message without the lists, because there is no memory for them.
    #[cold]
    pub(super) fn search(&self, key: Key) -> Option<u32> {
        let all = self.all(key.form()).filter(|(.., of)| *of == key);
        all.min_by_key(|(stamp, ..)| *stamp).map(|(_, at, _)| at)
    }

    /// Puts all messages into lists of the form `form`, because a receive or probe has just asked in this
    /// form for the first time.
    ///
    /// # Errors
    /// Returns an error if there is not enough memory. No message is in a list of this form then.
    #[cold]
    fn list(&mut self, form: usize) -> Result<(), TryReserveError> {
        let mut all: Vec<(u64, u32, Key)> = Vec::new();
        all.grow(self.entries.len())?;
        all.extend(self.all(form));
        all.sort_unstable_by_key(|(stamp, ..)| *stamp);
        for (count, (_, at, key)) in all.iter().enumerate() {
            if let Err(error) = self.lists.make_room(*at) {
                all[..count].iter().for_each(|(_, at, _)| self.lists.remove(*at, form));
                return Err(error);
            }
            self.lists.push(*at, form, *key);
        }
        self.listed[form] = true;
        Ok(())
    }

    /// Returns the stamps, the entries and the keys in the form `form` of all messages, in no order.
    fn all(&self, form: usize) -> impl Iterator<Item = (u64, u32, Key)> {
        (0..).zip(&self.entries).filter_map(move |(at, entry)| {
            let Entry { context, source, stamp, message } = entry.as_ref()?;
            Some((*stamp, at, Key::of_message(*context, *source, message.tag, form)))
        })
    }

    /// Returns the first message that matches a receive with this key, and the message's source.
    #[inline]
    pub fn look(&mut self, key: Key) -> Option<(Process, &Unexpected)> {
        let at = self.find(key)?;
        self.entries[at as usize].as_ref().map(|entry| (entry.source, &entry.message))
    }

    /// Like [`Messages::look`], but the caller may change the message.
    pub fn look_mut(&mut self, key: Key) -> Option<(Process, &mut Unexpected)> {
        let at = self.find(key)?;
        self.entries[at as usize].as_mut().map(|entry| (entry.source, &mut entry.message))
    }

    /// Removes the first message that matches a receive with this key. Returns the message and its source.
    #[inline]
    pub fn take(&mut self, key: Key) -> Option<(Process, Unexpected)> {
        let at = self.find(key)?;
        self.remove(at)
    }

    /// Removes the first message from `source` in `context` with `tag` that `wanted` accepts. The time grows
    /// with the number of messages that `wanted` does not accept.
    pub fn discard(
        &mut self,
        (context, source, tag): (u64, Process, i32),
        wanted: impl Fn(&Unexpected) -> bool,
    ) -> Option<Unexpected> {
        let mut at = self.find(Key::of_message(context, source, tag, EXACT))?;
        while !self.entries[at as usize].as_ref().is_some_and(|entry| wanted(&entry.message)) {
            at = self.lists.next(at, EXACT)?;
        }
        self.remove(at).map(|(_, message)| message)
    }

    #[inline]
    fn remove(&mut self, at: u32) -> Option<(Process, Unexpected)> {
        for form in 0..FORMS {
            if self.listed[form] {
                self.lists.remove(at, form);
            }
        }
        self.free.push(at);
        let entry = self.entries[at as usize].take();
        let len = self.entries.len();
        let sparse = len > SMALL && (len - self.free.len()) * SPARSE < len;
        // The new tables take less memory than the old entries.
        if sparse && room(len * size_of::<Entry>()) {
            self.shrink();
        }
        entry.map(|entry| (entry.source, entry.message))
    }

    /// Makes new tables for the messages that are left. The time is in proportion to the number of
    /// messages that have been removed since the tables last grew.
    #[cold]
    #[inline(never)]
    fn shrink(&mut self) {
        let mut left: Vec<Entry> =
            std::mem::take(&mut self.entries).into_iter().flatten().collect();
        left.sort_unstable_by_key(|entry| entry.stamp);
        (self.lists, self.free) = (Lists::default(), Vec::new());
        for Entry { context, source, message, .. } in left {
            self.keep(context, source, message);
        }
        self.free.reserve(self.entries.capacity());
    }

    /// Returns whether no message is waiting.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.free.len() == self.entries.len()
    }

    /// Returns the number of items for which each table has allocated memory.
    #[cfg(test)]
    pub fn room(&self) -> Vec<usize> {
        [&self.lists.room()[..], &[self.entries.capacity(), self.free.capacity()]].concat()
    }
}
