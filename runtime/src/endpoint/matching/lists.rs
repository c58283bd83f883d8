//! Lists of entries by key: a hash table whose lists are linked through the entries themselves.
//!
//! `posted.rs` and `messages.rs` keep the entries and number them; this file keeps only their order. An entry
//! is in up to `N` lists, one for each place of its links. Adding an entry at the end of its list, removing
//! it from anywhere, and finding the first entry of a key take constant time. Nothing is allocated as long as
//! the numbers of entries and lists stay below their earlier maximum.
//!
//! Invariant: a list has at least one entry, and each key has at most one list.

use crate::message::Tag;
use crate::message::label::{Sender, Slot};

/// Number of forms of a key: a source or any source, with a tag or any tag.
pub const FORMS: usize = 4;

/// The bits of a form.
const ANY_TAG: usize = 1;
const ANY_SOURCE: usize = 2;

/// The form of a key with a source and a tag.
pub const EXACT: usize = 0;

/// The number of no entry and of no list.
const NONE: u32 = u32::MAX;

/// Number of buckets of the first table.
const BUCKETS: usize = 64;

/// A context, a source or any source, and a tag or any tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    context: u64,
    /// Bits 0..33: the tag plus 1, or 0 for any tag. Bits 33..64: the source plus 1, or 0 for any source.
    from: u64,
}

/// Width of the tag in a key.
const TAG_BITS: u32 = 33;

impl Key {
    /// Returns the key of the messages that a receive asks for.
    #[inline]
    pub fn asked(context: u64, source: Sender, tag: Tag) -> Self {
        let source = match source {
            Sender::Any => 0,
            Sender::Slot(slot) => slot.index() as u64 + 1,
        };
        let tag = match tag {
            Tag::Any => 0,
            Tag::Is(tag) => u64::from(tag as u32) + 1,
        };
        Self { context, from: source << TAG_BITS | tag }
    }

    /// Returns the key of this form that a message matches.
    #[inline]
    pub fn of_message(context: u64, source: Slot, tag: i32, form: usize) -> Self {
        let source = if form & ANY_SOURCE == 0 { Sender::Slot(source) } else { Sender::Any };
        let tag = if form & ANY_TAG == 0 { Tag::Is(tag) } else { Tag::Any };
        Self::asked(context, source, tag)
    }

    /// Returns the form.
    #[inline]
    pub fn form(self) -> usize {
        let any_source = self.from >> TAG_BITS == 0;
        let any_tag = self.from & ((1 << TAG_BITS) - 1) == 0;
        usize::from(any_source) * ANY_SOURCE + usize::from(any_tag) * ANY_TAG
    }

    /// Returns a hash. Tags that follow each other have buckets that follow each other, because programs
    /// count with tags; the high bits of a tag change the low bits too, for tags that are multiples.
    #[inline]
    fn hash(self) -> usize {
        let tag = self.from & ((1 << TAG_BITS) - 1);
        let context = self.context ^ 0x9e37_79b9_7f4a_7c15;
        let source = self.from >> TAG_BITS ^ 0xd6e8_feb8_6659_fd93;
        let product = u128::from(context) * u128::from(source);
        let start = product as u64 ^ (product >> 64) as u64;
        start.wrapping_add(tag ^ tag >> 11 ^ tag >> 21) as usize
    }
}

/// The entries of one key.
#[derive(Debug)]
struct List {
    key: Key,
    first: u32,
    last: u32,
    /// The next list of the bucket, or the next unused list.
    next: u32,
}

/// A place of an entry in a list.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// The list, or [`NONE`] if the entry is in no list.
    list: u32,
    before: u32,
    after: u32,
}

const UNLINKED: Link = Link { list: NONE, before: NONE, after: NONE };

/// The lists.
#[derive(Debug)]
pub struct Lists<const N: usize> {
    /// The first list of each bucket. The length is a power of two, or zero before the first entry.
    buckets: Vec<u32>,
    lists: Vec<List>,
    /// The first unused list.
    unused: u32,
    /// Number of lists in use.
    used: usize,
    links: Vec<[Link; N]>,
}

impl<const N: usize> Default for Lists<N> {
    fn default() -> Self {
        Self { buckets: Vec::new(), lists: Vec::new(), unused: NONE, used: 0, links: Vec::new() }
    }
}

impl<const N: usize> Lists<N> {
    /// Returns whether no entry is in a list.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Returns the first entry of a key.
    #[inline]
    pub fn first(&self, key: Key) -> Option<u32> {
        self.find(key).map(|list| self.lists[list as usize].first)
    }

    /// Returns whether an entry is in the list of its place `place`.
    #[inline]
    pub fn contains(&self, entry: u32, place: usize) -> bool {
        self.links.get(entry as usize).is_some_and(|links| links[place].list != NONE)
    }

    /// Adds an entry at the end of the list of `key`. The entry is in no list of this place yet.
    #[inline]
    pub fn push(&mut self, entry: u32, place: usize, key: Key) {
        if entry as usize >= self.links.len() {
            self.links.resize(entry as usize + 1, [UNLINKED; N]);
        }
        debug_assert!(!self.contains(entry, place), "entry {entry} is in a list");
        let (list, before) = match self.find(key) {
            Some(list) => {
                let before = std::mem::replace(&mut self.lists[list as usize].last, entry);
                self.links[before as usize][place].after = entry;
                (list, before)
            }
            None => (self.open(key, entry), NONE),
        };
        self.links[entry as usize][place] = Link { list, before, after: NONE };
    }

    /// Removes an entry from the list of its place `place`.
    #[inline]
    pub fn remove(&mut self, entry: u32, place: usize) {
        let Link { list, before, after } =
            std::mem::replace(&mut self.links[entry as usize][place], UNLINKED);
        debug_assert!(list != NONE, "entry {entry} is in no list");
        match (before, after) {
            (NONE, NONE) => self.close(list),
            (NONE, _) => {
                self.lists[list as usize].first = after;
                self.links[after as usize][place].before = NONE;
            }
            (_, NONE) => {
                self.lists[list as usize].last = before;
                self.links[before as usize][place].after = NONE;
            }
            _ => {
                self.links[before as usize][place].after = after;
                self.links[after as usize][place].before = before;
            }
        }
    }

    /// Returns the bucket of a key. There are buckets.
    #[inline]
    fn bucket(&self, key: Key) -> usize {
        key.hash() & (self.buckets.len() - 1)
    }

    #[inline]
    fn find(&self, key: Key) -> Option<u32> {
        if self.used == 0 {
            return None;
        }
        let mut at = self.buckets[self.bucket(key)];
        while at != NONE {
            let list = &self.lists[at as usize];
            if list.key == key {
                return Some(at);
            }
            at = list.next;
        }
        None
    }

    /// Makes the list of a key that has none, with one entry.
    #[inline]
    fn open(&mut self, key: Key, entry: u32) -> u32 {
        if self.used == self.buckets.len() {
            self.grow();
        }
        self.used += 1;
        let bucket = self.bucket(key);
        let list = List { key, first: entry, last: entry, next: self.buckets[bucket] };
        let at = self.unused;
        match self.lists.get_mut(at as usize) {
            Some(place) => {
                self.unused = place.next;
                *place = list;
                self.buckets[bucket] = at;
            }
            None => {
                self.buckets[bucket] = self.lists.len() as u32;
                self.lists.push(list);
            }
        }
        self.buckets[bucket]
    }

    /// Removes a list that has lost its last entry.
    #[inline]
    fn close(&mut self, list: u32) {
        let next = std::mem::replace(&mut self.lists[list as usize].next, self.unused);
        let bucket = self.bucket(self.lists[list as usize].key);
        let mut at = self.buckets[bucket];
        if at == list {
            self.buckets[bucket] = next;
        } else {
            while self.lists[at as usize].next != list {
                at = self.lists[at as usize].next;
            }
            self.lists[at as usize].next = next;
        }
        self.unused = list;
        self.used -= 1;
    }

    /// Doubles the number of buckets. All lists are in use.
    #[cold]
    fn grow(&mut self) {
        let buckets = (2 * self.buckets.len()).max(BUCKETS);
        self.buckets.clear();
        self.buckets.resize(buckets, NONE);
        debug_assert_eq!(self.lists.len(), self.used);
        for at in 0..self.lists.len() {
            let bucket = self.bucket(self.lists[at].key);
            self.lists[at].next = std::mem::replace(&mut self.buckets[bucket], at as u32);
        }
    }

    /// Returns the numbers of buckets, lists and entries for which there is room.
    #[cfg(test)]
    pub fn room(&self) -> [usize; 3] {
        [self.buckets.capacity(), self.lists.capacity(), self.links.capacity()]
    }
}
