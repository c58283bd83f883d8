//! Matches messages with receives: the receives that wait for messages, and the messages that wait for
//! receives.
//!
//! `engine/incoming.rs` calls [`Matching`] for every message that arrives, `engine/receive.rs` for every
//! receive that is posted, and `engine/own.rs` for messages of a rank to itself. These files do not access
//! the queues directly. Messages of one source match in the order they were sent, receives in the order
//! they were posted (MPI-5.0 section 3.5): of all that match, the oldest wins.
//!
//! `matching/posted.rs` has the receives and `matching/messages.rs` the messages, both in lists by context,
//! source and tag (`matching/lists.rs`). However many of them wait, each call takes constant time. Contexts
//! are only part of the keys: a context without receives and messages occupies no memory.

mod lists;
mod messages;
mod posted;

use self::lists::Key;
use self::messages::Messages;
use self::posted::Posted;
use crate::message::Tag;
use crate::message::label::{Label, Sender, Slot};
use crate::message::payload::Kept;
use crate::transport::types::Located;

/// Where the data is of a message that arrived before its receive was posted.
#[derive(Debug)]
pub enum Arrived {
    /// The packed bytes, which were copied out of the ring. If the send is synchronous, also the request id
    /// under which its sender waits for an ACK.
    Data(Kept, Option<u64>),
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
}

/// The receives and messages of all contexts of this process that wait for each other.
#[derive(Debug, Default)]
pub struct Matching {
    posted: Posted,
    messages: Messages,
}

impl Matching {
    /// Queues a receive that matched no message. `id` is its request; no other receive that waits has the
    /// same low 32 bits.
    #[inline]
    pub fn post(&mut self, context: u64, source: Sender, tag: Tag, id: u64) {
        self.posted.post(Key::asked(context, source, tag), id);
    }

    /// Removes a posted receive. Returns false if it does not wait any more.
    pub fn cancel_receive(&mut self, id: u64) -> bool {
        self.posted.cancel(id)
    }

    /// Removes the receive that a message from `source` with this label matches, and returns it.
    #[inline]
    pub fn arrive(&mut self, source: Slot, label: &Label) -> Option<u64> {
        self.posted.arrive(label.context, source, label.tag)
    }

    /// Queues a message that matched no receive.
    #[inline]
    pub fn keep(&mut self, source: Slot, label: Label, what: Arrived) {
        let Label { context, tag, bytes, types } = label;
        self.messages.keep(context, source, Unexpected { tag, bytes, types, what });
    }

    /// Returns the first unexpected message that a receive from `source` with `tag` matches, and its source.
    #[inline]
    pub fn look(&mut self, context: u64, source: Sender, tag: Tag) -> Option<(Slot, &Unexpected)> {
        self.messages.look(Key::asked(context, source, tag))
    }

    /// Removes the first unexpected message that a receive from `source` with `tag` matches, and returns it.
    #[inline]
    pub fn take(&mut self, context: u64, source: Sender, tag: Tag) -> Option<(Slot, Unexpected)> {
        self.messages.take(Key::asked(context, source, tag))
    }
}

#[cfg(test)]
mod tests;
