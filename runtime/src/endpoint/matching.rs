//! Matches messages with receives. Every communicator context has two kinds of queues: posted receives and
//! unexpected messages.
//!
//! `engine/incoming.rs` calls [`Matching`] for every message that arrives, `engine/receive.rs` for every
//! receive that is posted, and `engine/own.rs` for messages of a rank to itself. These files do not access
//! the queues directly. The messages of one source match in the order in which they were sent, and receives
//! match in the order in which they were posted (MPI-5.0 section 3.5). For this purpose each source has one
//! queue of each kind, and receives from any source have a queue of their own. Messages get a number on
//! arrival, and receives when they are posted. If entries of two queues match, the entry with the lower
//! number wins.

use crate::message::Tag;
use crate::message::label::{Label, Sender, Slot};
use crate::transport::types::Located;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// Where the data is of a message that arrived before its receive was posted.
#[derive(Debug)]
pub enum Arrived {
    /// The packed bytes, which were copied out of the ring. If the send is synchronous, also the request id
    /// under which its sender waits for an ACK.
    Data(Vec<u8>, Option<u64>),
    /// The message waits at its sender under this request id of the sender. If the RTS named the place of
    /// the data, the place is present.
    Rts(u64, Option<Box<Located>>),
    /// This rank sent the message to itself. The message waits under this request id of this rank.
    Own(u64),
}

/// An unexpected message.
#[derive(Debug)]
pub struct Unexpected {
    /// The tag.
    pub tag: i32,
    /// The number of packed bytes.
    pub bytes: u64,
    /// The check bits of the message's types (`message/typecheck.rs`).
    pub types: u32,
    /// Where the data of the message is.
    pub what: Arrived,
    order: u64,
}

#[derive(Debug)]
struct Posted {
    tag: Tag,
    id: u64,
    order: u64,
}

/// Hashes contexts. The library itself numbers the contexts, and a process has few of them, so a
/// multiplication spreads them well enough.
#[derive(Debug, Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 29;
    }
}

/// The queues of all contexts of this process.
#[derive(Debug)]
pub struct Matching {
    size: usize,
    contexts: HashMap<u64, Queues, BuildHasherDefault<Spread>>,
}

impl Matching {
    /// Creates empty queues for the messages of `size` sources.
    pub fn new(size: usize) -> Self {
        Self { size, contexts: HashMap::default() }
    }

    #[inline]
    fn queues(&mut self, context: u64) -> &mut Queues {
        let size = self.size;
        self.contexts.entry(context).or_insert_with(|| Queues::new(size))
    }

    /// Drops the queues of a context that no communicator uses any more. Does nothing if one of the queues
    /// has an entry.
    pub fn close(&mut self, context: u64) {
        if let Entry::Occupied(entry) = self.contexts.entry(context)
            && entry.get().is_empty()
        {
            entry.remove();
        }
    }

    /// Returns the number of contexts that have queues.
    #[cfg(test)]
    pub fn contexts(&self) -> usize {
        self.contexts.len()
    }

    /// Queues a receive that matched no message.
    pub fn post(&mut self, context: u64, source: Sender, tag: Tag, id: u64) {
        self.queues(context).post(source, tag, id);
    }

    /// Removes a posted receive from its queue. Returns false if the receive is not in the queue any more.
    pub fn cancel_receive(&mut self, context: u64, source: Sender, id: u64) -> bool {
        self.queues(context).cancel_receive(source, id)
    }

    /// Finds the receive that a message from `source` with this label matches. Removes the receive from its
    /// queue and returns it.
    #[inline]
    pub fn arrive(&mut self, source: Slot, label: &Label) -> Option<u64> {
        self.queues(label.context).arrive(source, label.tag)
    }

    /// Queues a message that matched no receive.
    pub fn keep(&mut self, source: Slot, label: Label, what: Arrived) {
        self.queues(label.context).keep(source, label, what);
    }

    /// Returns the first unexpected message that a receive from `source` with `tag` matches, and its source.
    #[inline]
    pub fn look(&mut self, context: u64, source: Sender, tag: Tag) -> Option<(Slot, &Unexpected)> {
        self.queues(context).look(source, tag)
    }

    /// Finds the first unexpected message that a receive from `source` with `tag` matches. Removes the
    /// message from its queue and returns it.
    #[inline]
    pub fn take(&mut self, context: u64, source: Sender, tag: Tag) -> Option<(Slot, Unexpected)> {
        self.queues(context).take(source, tag)
    }
}

/// The queues of one context: posted receives and unexpected messages.
#[derive(Debug)]
struct Queues {
    posted: Vec<VecDeque<Posted>>,
    posted_any: VecDeque<Posted>,
    unexpected: Vec<VecDeque<Unexpected>>,
    order: u64,
}

impl Queues {
    /// Creates empty queues for the messages of `size` sources.
    fn new(size: usize) -> Self {
        Self {
            posted: (0..size).map(|_| VecDeque::new()).collect(),
            posted_any: VecDeque::new(),
            unexpected: (0..size).map(|_| VecDeque::new()).collect(),
            order: 0,
        }
    }

    /// Returns whether no queue has an entry.
    fn is_empty(&self) -> bool {
        self.posted_any.is_empty()
            && self.posted.iter().all(VecDeque::is_empty)
            && self.unexpected.iter().all(VecDeque::is_empty)
    }

    /// Queues a receive that matched no message.
    fn post(&mut self, source: Sender, tag: Tag, id: u64) {
        self.order += 1;
        let posted = Posted { tag, id, order: self.order };
        match source {
            Sender::Any => self.posted_any.push_back(posted),
            Sender::Slot(slot) => of(&mut self.posted, slot).push_back(posted),
        }
    }

    /// Removes a posted receive from its queue. Returns false if the receive is not in the queue any more.
    fn cancel_receive(&mut self, source: Sender, id: u64) -> bool {
        let queue = match source {
            Sender::Any => &mut self.posted_any,
            Sender::Slot(slot) => of(&mut self.posted, slot),
        };
        let Some(at) = queue.iter().position(|posted| posted.id == id) else { return false };
        queue.remove(at);
        true
    }

    /// Finds the receive that a message from `source` with `tag` matches. Removes the receive from its queue
    /// and returns it.
    #[inline]
    fn arrive(&mut self, source: Slot, tag: i32) -> Option<u64> {
        let find = |queue: &VecDeque<Posted>| {
            queue.iter().enumerate().find(|(_, p)| p.tag.accepts(tag)).map(|(i, p)| (i, p.order))
        };
        let named = self.posted.get(source.index()).and_then(find);
        let any = if self.posted_any.is_empty() { None } else { find(&self.posted_any) };
        let (queue, at) = match (named, any) {
            (Some((i, first)), Some((j, second))) => {
                if first < second {
                    (of(&mut self.posted, source), i)
                } else {
                    (&mut self.posted_any, j)
                }
            }
            (Some((i, _)), None) => (of(&mut self.posted, source), i),
            (None, Some((j, _))) => (&mut self.posted_any, j),
            (None, None) => return None,
        };
        queue.remove(at).map(|posted| posted.id)
    }

    /// Queues a message that matched no receive.
    fn keep(&mut self, source: Slot, label: Label, what: Arrived) {
        self.order += 1;
        let Label { tag, bytes, types, .. } = label;
        let order = self.order;
        let message = Unexpected { tag, bytes, types, what, order };
        of(&mut self.unexpected, source).push_back(message);
    }

    /// Finds the first unexpected message that a receive from `source` with `tag` matches. Returns its
    /// source and its position in the queue of this source.
    #[inline]
    fn find(&self, source: Sender, tag: Tag) -> Option<(Slot, usize)> {
        let first = |queue: &VecDeque<Unexpected>| queue.iter().position(|u| tag.accepts(u.tag));
        match source {
            Sender::Slot(slot) => {
                self.unexpected.get(slot.index()).and_then(first).map(|at| (slot, at))
            }
            Sender::Any => self
                .unexpected
                .iter()
                .enumerate()
                .filter_map(|(slot, queue)| first(queue).map(|at| (Slot::new(slot), at)))
                .min_by_key(|&(slot, at)| self.unexpected[slot.index()][at].order),
        }
    }

    /// Returns the first unexpected message that a receive matches. The message stays in its queue.
    fn look(&self, source: Sender, tag: Tag) -> Option<(Slot, &Unexpected)> {
        self.find(source, tag).map(|(slot, at)| (slot, &self.unexpected[slot.index()][at]))
    }

    /// Finds the first unexpected message that a receive matches. Removes the message from its queue and
    /// returns it.
    #[inline]
    fn take(&mut self, source: Sender, tag: Tag) -> Option<(Slot, Unexpected)> {
        let (slot, at) = self.find(source, tag)?;
        self.unexpected[slot.index()].remove(at).map(|message| (slot, message))
    }
}

/// Returns the queue of a slot. If the slot has no queue yet, the function makes one, because the process in
/// the slot may have joined later.
#[inline]
fn of<T>(queues: &mut Vec<VecDeque<T>>, slot: Slot) -> &mut VecDeque<T> {
    let index = slot.index();
    if index >= queues.len() {
        queues.resize_with(index + 1, VecDeque::new);
    }
    &mut queues[index]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(message: Option<(Slot, Unexpected)>) -> Option<(usize, u64)> {
        message.map(|(slot, m)| match m.what {
            Arrived::Rts(id, _) => (slot.index(), id),
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn receives_match_in_posting_order_across_queues() {
        let mut m = Queues::new(3);
        m.post(Sender::Any, Tag::Is(5), 1);
        m.post(Sender::Slot(Slot::new(2)), Tag::Any, 2);
        m.post(Sender::Slot(Slot::new(2)), Tag::Is(5), 3);
        m.post(Sender::Any, Tag::Any, 4);
        assert_eq!(m.arrive(Slot::new(2), 7), Some(2));
        assert_eq!(m.arrive(Slot::new(2), 5), Some(1));
        assert_eq!(m.arrive(Slot::new(2), 5), Some(3));
        assert_eq!(m.arrive(Slot::new(1), 5), Some(4));
        assert_eq!(m.arrive(Slot::new(1), 5), None);
        assert!(m.is_empty());
    }

    #[test]
    fn messages_match_in_arrival_order() {
        let mut m = Queues::new(2);
        for (source, tag, id) in [(1, 0, 10), (0, 1, 11), (1, 1, 12), (0, 0, 13)] {
            let label = Label { context: 0, tag, bytes: 8, types: 0 };
            m.keep(Slot::new(source), label, Arrived::Rts(id, None));
        }
        assert_eq!(m.look(Sender::Any, Tag::Is(1)).map(|(slot, _)| slot.index()), Some(0));
        assert_eq!(offered(m.take(Sender::Any, Tag::Is(1))), Some((0, 11)));
        assert_eq!(offered(m.take(Sender::Slot(Slot::new(1)), Tag::Is(1))), Some((1, 12)));
        assert_eq!(offered(m.take(Sender::Any, Tag::Any)), Some((1, 10)));
        assert_eq!(offered(m.take(Sender::Slot(Slot::new(1)), Tag::Any)), None);
        assert_eq!(offered(m.take(Sender::Any, Tag::Any)), Some((0, 13)));
    }

    #[test]
    fn a_cancelled_receive_matches_nothing() {
        let mut m = Queues::new(1);
        m.post(Sender::Slot(Slot::new(0)), Tag::Any, 1);
        m.post(Sender::Any, Tag::Any, 2);
        assert!(m.cancel_receive(Sender::Slot(Slot::new(0)), 1));
        assert!(!m.cancel_receive(Sender::Slot(Slot::new(0)), 1));
        assert_eq!(m.arrive(Slot::new(0), 0), Some(2));
    }

    #[test]
    fn slots_beyond_the_first_have_queues_when_they_need_them() {
        let mut m = Queues::new(1);
        let late = Slot::new(9);
        assert_eq!(m.arrive(late, 0), None);
        assert!(m.look(Sender::Slot(late), Tag::Any).is_none());
        m.keep(late, Label { context: 0, tag: 2, bytes: 8, types: 0 }, Arrived::Rts(7, None));
        assert_eq!(offered(m.take(Sender::Any, Tag::Any)), Some((9, 7)));
        m.post(Sender::Slot(late), Tag::Any, 3);
        assert_eq!(m.arrive(late, 0), Some(3));
    }
}
