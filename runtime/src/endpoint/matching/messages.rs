//! Messages that wait for their receives.
//!
//! A receive may ask for a message in four forms: from its source or any source, with its tag or any tag. Each
//! message is in the list of its source and tag, and in the list of each other form that a receive or probe of
//! this process has asked for before. So programs that use few forms pay for few lists. Each list is in the
//! order of arrival, and its first message is the one that matches.

use super::Unexpected;
use super::lists::{EXACT, FORMS, Key, Lists};
use crate::message::label::Slot;

/// A message.
#[derive(Debug)]
struct Entry {
    context: u64,
    source: Slot,
    /// Number of messages that arrived before. At one message per nanosecond it wraps after 584 years.
    stamp: u64,
    message: Unexpected,
}

/// The messages.
#[derive(Debug)]
pub struct Messages {
    lists: Lists<FORMS>,
    entries: Vec<Option<Entry>>,
    /// The entries that have no message.
    free: Vec<u32>,
    /// The forms whose lists have all messages. The lists of the other forms are empty.
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
    /// Adds a message.
    #[inline]
    pub fn keep(&mut self, context: u64, source: Slot, message: Unexpected) {
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

    #[inline]
    fn find(&mut self, key: Key) -> Option<u32> {
        if self.lists.is_empty() {
            return None;
        }
        let form = key.form();
        if !self.listed[form] {
            self.list(form);
        }
        self.lists.first(key)
    }

    /// Puts all messages into the lists of a form that a receive or probe asks for for the first time.
    #[cold]
    fn list(&mut self, form: usize) {
        self.listed[form] = true;
        let mut all: Vec<(u64, u32, Key)> = Vec::new();
        for (at, entry) in (0..).zip(&self.entries) {
            if let Some(Entry { context, source, stamp, message }) = entry {
                let key = Key::of_message(*context, *source, message.tag, form);
                all.push((*stamp, at, key));
            }
        }
        all.sort_unstable_by_key(|(stamp, ..)| *stamp);
        for (_, at, key) in all {
            self.lists.push(at, form, key);
        }
    }

    /// Returns the message that a receive matches, and its source.
    #[inline]
    pub fn look(&mut self, key: Key) -> Option<(Slot, &Unexpected)> {
        let at = self.find(key)?;
        self.entries[at as usize].as_ref().map(|entry| (entry.source, &entry.message))
    }

    /// Removes the message that a receive matches, and returns it and its source.
    #[inline]
    pub fn take(&mut self, key: Key) -> Option<(Slot, Unexpected)> {
        let at = self.find(key)?;
        for form in 0..FORMS {
            if self.listed[form] {
                self.lists.remove(at, form);
            }
        }
        self.free.push(at);
        self.entries[at as usize].take().map(|entry| (entry.source, entry.message))
    }

    /// Returns whether there is no message.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.free.len() == self.entries.len()
    }

    /// Returns the room in the tables.
    #[cfg(test)]
    pub fn room(&self) -> Vec<usize> {
        [&self.lists.room()[..], &[self.entries.capacity(), self.free.capacity()]].concat()
    }
}
