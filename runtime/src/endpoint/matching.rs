//! The queues of this process: receives that wait for their messages, and messages that wait for their
//! receives. This file finds the receive that a message matches, and the message that a receive matches.
//!
//! `engine/incoming.rs` and `engine/short.rs` call [`Matching`] for every message that arrives,
//! `engine/receive.rs` for every receive that is posted, and `engine/own.rs` for messages of a rank to itself.
//! These files do not access the queues directly. If several receives match a message, the receive that was
//! posted first gets the message. If several messages match a receive, the receive gets the message that arrived
//! first (MPI-5.0 section 3.5).
//!
//! `matching/posted.rs` keeps the receives and `matching/messages.rs` keeps the messages. Both have one list for each
//! combination of context, source and tag (`matching/lists.rs`), so the time of a call does not grow with the number of
//! waiting receives and messages. There are exceptions: a call after which a table grows or shrinks,
//! [`Matching::discard`], which searches a list, and the first search in a form that no search has used before, such as
//! "any source, a certain tag" (`messages.rs`). A context has no table of its own, so a context without waiting
//! receives and messages occupies no memory.

mod lists;
mod messages;
mod posted;

use self::lists::Key;
use self::messages::Messages;
use self::posted::Posted;
use super::requests::no_memory;
use crate::Result;
use crate::message::Tag;
use crate::message::envelope::Offer;
use crate::message::label::{Label, Sender};
use crate::message::payload::Kept;
use crate::process::Process;
use crate::tools::counting::{self, Subject};
use crate::transport::protocol::types::Located;

/// Where the data of an unexpected message is. Such a message arrived before its receive was posted.
#[derive(Debug)]
pub enum Arrived {
    /// The packed bytes, which this rank has copied out of the ring. The second value is present if the send
    /// is synchronous: the name of the message, whose sender waits for an ACK.
    Data(Kept, Option<Offer>),
    /// The fragments of the message that have arrived are in private memory with this number
    /// (`endpoint/engine/fragments.rs`). The second value is the number of bytes that the message occupies.
    Fragments(u64, usize),
    /// The data is still at the sender. The first value is the name of the message. The second value is
    /// present if the RTS named the place of the data.
    Rts(Offer, Option<Box<Located>>),
    /// This rank sent the message to itself, and the data is still in the memory of the send. The value is the
    /// request id of the send.
    Own(u64),
}

impl Arrived {
    /// Returns the name of the message if its sender waits for an answer.
    pub fn offer(&mut self) -> Option<&mut Offer> {
        match self {
            Self::Data(_, offer) => offer.as_mut(),
            Self::Rts(offer, _) => Some(offer),
            Self::Fragments(..) | Self::Own(_) => None,
        }
    }

    /// Returns whether this is the message whose sender waits for an answer under the name `id`.
    pub fn is_offer(&self, id: u64) -> bool {
        match self {
            Self::Data(_, Some(offer)) | Self::Rts(offer, _) => offer.id == id,
            Self::Data(_, None) | Self::Fragments(..) | Self::Own(_) => false,
        }
    }
}

/// Approximate number of bytes that an unexpected message occupies in the tables of this file, without the data
/// of a long message.
pub const ENTRY_BYTES: usize = messages::ENTRY_BYTES;

/// An unexpected message.
#[derive(Debug)]
pub struct Unexpected {
    /// The tag.
    pub tag: i32,
    /// The number of packed bytes.
    pub bytes: u64,
    /// The check bits of the message's types (`message/typecheck.rs`).
    pub types: u32,
    /// The place of the data.
    pub what: Arrived,
}

/// All waiting receives and all unexpected messages of this process, in all contexts.
#[derive(Debug, Default)]
pub struct Matching {
    posted: Posted,
    messages: Messages,
    /// Number of messages that have been queued so far.
    kept: u64,
}

/// What the queues hold, and what they have held, for the tool interface.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueCounts {
    /// Number of unexpected messages that wait now.
    pub messages: u64,
    /// Number of messages that have been queued so far.
    pub messages_queued: u64,
    /// Number of receives that wait now.
    pub receives: u64,
    /// Number of receives that have been queued so far.
    pub receives_queued: u64,
}

impl Matching {
    /// Returns whether no unexpected message waits.
    #[inline]
    pub fn none_waits(&self) -> bool {
        self.messages.none_waits()
    }

    /// Returns what the queues hold and have held.
    pub fn counts(&self) -> QueueCounts {
        let (receives, receives_queued) = self.posted.counts();
        let (messages, messages_queued) = (self.messages.len() as u64, self.kept);
        QueueCounts { messages, messages_queued, receives, receives_queued }
    }

    /// Returns the number of unexpected messages that wait in a context.
    pub fn messages_in(&self, context: u64) -> u64 {
        self.messages.count_in(context) as u64
    }

    /// Makes room for the receive with the request id `id`, so that [`Matching::post`] allocates nothing.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory ran out.
    #[inline]
    pub fn make_room_to_post(&mut self, id: u64) -> Result<()> {
        self.posted.make_room(id).map_err(|_| no_memory("another receive"))
    }

    /// Makes room for a message, so that [`Matching::keep`] allocates nothing.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory ran out.
    #[inline]
    pub fn make_room_to_keep(&mut self) -> Result<()> {
        self.messages.make_room().map_err(|_| no_memory("another unexpected message"))
    }

    /// Queues a receive that matched no message. `id` is its request id. The low 32 bits of `id` must differ
    /// from those of every other waiting receive.
    #[inline]
    pub fn post(&mut self, context: u64, source: Sender, tag: Tag, id: u64) {
        self.posted.post(Key::asked(context, source, tag), id);
    }

    /// Removes the receive with the request id `id`. Returns false if no such receive is waiting.
    pub fn cancel_receive(&mut self, id: u64) -> bool {
        self.posted.cancel(id)
    }

    /// Returns the tag that the waiting receive with the request id `id` accepts.
    pub fn tag(&self, id: u64) -> Option<Tag> {
        self.posted.tag(id)
    }

    /// Removes the receive that a message from `source` with this label matches, and returns its request id.
    #[inline]
    pub fn arrive(&mut self, source: Process, label: &Label) -> Option<u64> {
        self.find(source, label).map(|at| self.posted.remove(at))
    }

    /// Finds the receive that a message from `source` with this label matches, and returns the number by
    /// which [`Matching::remove`] removes it. The receive stays in the queue.
    #[inline]
    pub fn find(&self, source: Process, label: &Label) -> Option<u32> {
        self.posted.find(label.context, source, label.tag)
    }

    /// Removes a receive that [`Matching::find`] has just returned, and returns its request id.
    #[inline]
    pub fn remove(&mut self, at: u32) -> u64 {
        self.posted.remove(at)
    }

    /// Queues a message that matched no receive.
    #[inline]
    pub fn keep(&mut self, source: Process, label: Label, what: Arrived) {
        let Label { context, tag, bytes, types } = label;
        self.kept += 1;
        if counting::is_wanted(Subject::MessageUnexpected) {
            label.tell(Subject::MessageUnexpected, source, 0);
        }
        self.messages.keep(context, source, Unexpected { tag, bytes, types, what });
    }

    /// Returns the source and the content of the first unexpected message that matches a receive from
    /// `source` with `tag`. The message stays in the queue.
    #[inline]
    pub fn look(
        &mut self,
        context: u64,
        source: Sender,
        tag: Tag,
    ) -> Option<(Process, &Unexpected)> {
        self.messages.look(Key::asked(context, source, tag))
    }

    /// Like [`Matching::look`], but the caller may change the place of the message's data.
    pub fn look_mut(
        &mut self,
        context: u64,
        source: Sender,
        tag: Tag,
    ) -> Option<(Process, &mut Unexpected)> {
        self.messages.look_mut(Key::asked(context, source, tag))
    }

    /// Removes the first unexpected message from `source` with the context and the tag of `label` whose data
    /// `wanted` accepts.
    pub fn discard(
        &mut self,
        source: Process,
        label: &Label,
        wanted: impl Fn(&Arrived) -> bool,
    ) -> Option<Unexpected> {
        self.messages.discard((label.context, source, label.tag), |message| wanted(&message.what))
    }

    /// Removes the first unexpected message that matches a receive from `source` with `tag`. Returns its
    /// source and its content.
    #[inline]
    pub fn take(
        &mut self,
        context: u64,
        source: Sender,
        tag: Tag,
    ) -> Option<(Process, Unexpected)> {
        if self.messages.none_waits() {
            return None;
        }
        self.messages.take(Key::asked(context, source, tag))
    }
}

#[cfg(test)]
#[path = "../../tests/units/endpoint/matching.rs"]
mod tests;
