//! A hash table that maps a key to a doubly linked list of entries. An entry is only a number.
//!
//! `posted.rs` and `messages.rs` number the receives and the messages and store them; this file stores only
//! the order of the numbers. Each entry has `N` links, so it can be in up to `N` lists at the same time. The
//! argument `place` says which of these links a call uses. It takes constant time to append an entry to a
//! list, to remove an entry from any position, and to find the first entry of a key. No memory is allocated
//! as long as the numbers of entries and of lists do not exceed their earlier maximum. After a flood,
//! `posted.rs` and `messages.rs` make new tables for the entries that are left.
//!
//! Invariant: a list in use has at least one entry, and each key has at most one list.

use crate::message::Tag;
use crate::message::label::Sender;
use crate::process::Process;
use std::collections::TryReserveError;
use typepack_engine::reserve::Grow;

/// Number of forms of a key. The form says whether the key has a certain source or any source, and whether
/// it has a certain tag or any tag.
pub const FORMS: usize = 4;

/// This bit of a form is set if the key stands for any tag.
const ANY_TAG: usize = 1;

/// This bit of a form is set if the key stands for any source.
const ANY_SOURCE: usize = 2;

/// The form of a key with a certain source and a certain tag.
pub const EXACT: usize = 0;

/// Stands for "no entry" or "no list" where a number of an entry or of a list is expected.
const NONE: u32 = u32::MAX;

/// A table with at most this number of entries does not shrink.
pub const SMALL: usize = 1024;

/// A table shrinks if fewer than one in this number of its entries is in use.
pub const SPARSE: usize = 8;

/// Number of buckets after the first allocation.
const BUCKETS: usize = 64;

/// What the entries of a list have in common: a context, a certain source or any source, and a certain tag
/// or any tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    context: u64,
    /// Bits 0..33: the tag plus 1, or 0 for any tag. Bits 33..64: the source plus 1, or 0 for any source.
    from: u64,
}

/// Number of bits that the tag occupies in a key.
const TAG_BITS: u32 = 33;

impl Key {
    /// Returns the key of a receive, from the context, source and tag that the receive accepts.
    #[inline]
    pub fn asked(context: u64, source: Sender, tag: Tag) -> Self {
        let source = match source {
            Sender::Any => 0,
            Sender::Process(slot) => slot.index() as u64 + 1,
        };
        let tag = match tag {
            Tag::Any => 0,
            Tag::Is(tag) => u64::from(tag as u32) + 1,
        };
        Self { context, from: source << TAG_BITS | tag }
    }

    /// Returns the key in the form `form` that stands for a message. A receive with this key accepts the
    /// message.
    #[inline]
    pub fn of_message(context: u64, source: Process, tag: i32, form: usize) -> Self {
        let source = if form & ANY_SOURCE == 0 { Sender::Process(source) } else { Sender::Any };
        let tag = if form & ANY_TAG == 0 { Tag::Is(tag) } else { Tag::Any };
        Self::asked(context, source, tag)
    }

    /// Returns the tag that a receive with this key accepts.
    pub fn tag(self) -> Tag {
        match self.from & ((1 << TAG_BITS) - 1) {
            0 => Tag::Any,
            tag => Tag::Is((tag - 1) as i32),
        }
    }

    /// Returns the form.
    #[inline]
    pub fn form(self) -> usize {
        let any_source = self.from >> TAG_BITS == 0;
        let any_tag = self.from & ((1 << TAG_BITS) - 1) == 0;
        usize::from(any_source) * ANY_SOURCE + usize::from(any_tag) * ANY_TAG
    }

    /// Returns a hash. Consecutive tags fall into consecutive buckets, because many programs number their
    /// messages by tag. The high bits of a tag are mixed into the low bits of the hash, so that tags which
    /// are all multiples of a power of two do not share one bucket.
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
    /// For a list in use: the next list of the same bucket. Otherwise: the next unused list.
    next: u32,
}

/// One link of an entry: the list that contains the entry, and the entry's neighbours in this list.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// The list, or [`NONE`] if the entry is in no list.
    list: u32,
    before: u32,
    after: u32,
}

/// Number of bytes that the tables need for an entry: its [`FORMS`] links, one list that contains no other entry, and
/// two buckets.
pub const ENTRY_BYTES: usize = FORMS * size_of::<Link>() + size_of::<List>() + 2 * size_of::<u32>();

const UNLINKED: Link = Link { list: NONE, before: NONE, after: NONE };

/// The lists.
#[derive(Debug)]
pub struct Lists<const N: usize> {
    /// The first list of each bucket. The number of buckets is a power of two, or zero if no entry was ever
    /// added.
    buckets: Vec<u32>,
    lists: Vec<List>,
    /// The first unused list.
    unused: u32,
    /// Number of lists in use.
    used: usize,
    /// The key and the number of the list to which the last entry was added; `None` if this list has been removed
    /// since.
    latest: Option<(Key, u32)>,
    links: Vec<[Link; N]>,
}

impl<const N: usize> Default for Lists<N> {
    fn default() -> Self {
        Self {
            buckets: Vec::new(),
            lists: Vec::new(),
            unused: NONE,
            used: 0,
            latest: None,
            links: Vec::new(),
        }
    }
}

impl<const N: usize> Lists<N> {
    /// Returns whether all lists are empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Returns the first entry in the list of `key`.
    #[inline]
    pub fn first(&self, key: Key) -> Option<u32> {
        self.find(key).map(|list| self.lists[list as usize].first)
    }

    /// Returns the entry after `entry` in the list to which link `place` of `entry` belongs.
    pub fn next(&self, entry: u32, place: usize) -> Option<u32> {
        Some(self.links[entry as usize][place].after).filter(|after| *after != NONE)
    }

    /// Returns the key of the list in which link `place` puts an entry; `None` if the link is not in use.
    pub fn key(&self, entry: u32, place: usize) -> Option<Key> {
        let list = self.links.get(entry as usize)?[place].list;
        self.lists.get(list as usize).map(|list| list.key)
    }

    /// Returns whether link `place` of an entry is in use, that is, whether it puts the entry in a list.
    #[inline]
    pub fn contains(&self, entry: u32, place: usize) -> bool {
        self.links.get(entry as usize).is_some_and(|links| links[place].list != NONE)
    }

    /// Makes room for the entry `entry` in up to `N` lists, so that [`push`](Self::push) allocates nothing.
    ///
    /// # Errors
    /// Returns an error if there is not enough memory.
    pub fn make_room(&mut self, entry: u32) -> Result<(), TryReserveError> {
        self.links.grow((entry as usize + 1).saturating_sub(self.links.len()))?;
        self.lists.grow(N)?;
        if self.used + N > self.buckets.len() {
            let more = (2 * self.buckets.len()).max(BUCKETS) - self.buckets.len();
            self.buckets.grow(more)?;
        }
        Ok(())
    }

    /// Appends an entry to the list of `key`, with its link `place`. This link must not be in use.
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
        self.latest = Some((key, list));
        self.links[entry as usize][place] = Link { list, before, after: NONE };
    }

    /// Removes an entry from the list in which its link `place` puts it.
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

    /// Returns the bucket of a key. The table must have at least one bucket.
    #[inline]
    fn bucket(&self, key: Key) -> usize {
        key.hash() & (self.buckets.len() - 1)
    }

    #[inline]
    fn find(&self, key: Key) -> Option<u32> {
        if self.used == 0 {
            return None;
        }
        // Programs often add many entries with the same key, and then search for these.
        if let Some((latest, list)) = self.latest
            && latest == key
        {
            return Some(list);
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

    /// Creates a list for a key that has none, with `entry` as its only entry. Returns the number of the
    /// list.
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
        if self.latest.is_some_and(|(_, latest)| latest == list) {
            self.latest = None;
        }
    }

    /// Doubles the number of buckets. This function is called only when all lists are in use.
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

    /// Returns the numbers of buckets, lists and entries for which memory is allocated.
    #[cfg(test)]
    pub fn room(&self) -> [usize; 3] {
        [self.buckets.capacity(), self.lists.capacity(), self.links.capacity()]
    }
}
