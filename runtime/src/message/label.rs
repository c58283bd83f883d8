//! The values by which messages and receives are matched: source, tag and label. This file also
//! defines `Operation`, the result of starting a send or receive.
//!
//! `endpoint/matching.rs` compares the labels of messages with receives. The envelope of a message
//! (`envelope.rs`) contains the label.

use crate::process::Process;
pub use crate::status::Status;
use crate::tools::counting::Subject;
use crate::tools::raised::raise;

/// The largest tag that a message can have (`MPI_TAG_UB`; MPI-5.0 section 9.1.2).
#[doc(alias = "MPI_TAG_UB")]
pub const TAG_UB: i32 = i32::MAX;

/// The rank from which a receive or probe accepts messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Every rank.
    #[doc(alias = "MPI_ANY_SOURCE")]
    Any,
    /// The rank with this number in the communicator, or in the world for the calls of `Messages`.
    Rank(usize),
}

impl From<usize> for Source {
    fn from(rank: usize) -> Self {
        Self::Rank(rank)
    }
}

/// The process from which a receive or probe accepts messages, in the form that the message engine uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// Every process.
    Any,
    /// This process.
    Process(Process),
}

/// The tag that a receive or probe accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// Every tag.
    #[doc(alias = "MPI_ANY_TAG")]
    Any,
    /// This tag.
    Is(i32),
}

impl Tag {
    /// Returns whether a receive with this tag accepts a message with `tag`.
    #[inline]
    pub(crate) fn accepts(self, tag: i32) -> bool {
        match self {
            Self::Any => true,
            Self::Is(wanted) => wanted == tag,
        }
    }
}

impl From<i32> for Tag {
    fn from(tag: i32) -> Self {
        Self::Is(tag)
    }
}

/// Number of spaces (kinds of messages, `comm/mod.rs`) of a communicator, a power of two. The context of
/// a message is a multiple of this number plus the number of its space. Space 0 has the user's messages.
pub(crate) const SPACES: u64 = 8;

/// A started operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The operation is complete.
    Done(Status),
    /// The operation is in flight and has this number. The calls of [`Ongoing`](crate::Ongoing) take the
    /// number.
    Pending(u64),
}

impl Operation {
    /// Returns the number of the operation if the operation is in flight.
    #[inline]
    pub(crate) fn pending(self) -> Option<u64> {
        match self {
            Self::Done(_) => None,
            Self::Pending(id) => Some(id),
        }
    }
}

/// The context, the tag, the size and the types of a message. To match a message with a receive, the
/// library compares the context and the tag of the label, and the source of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Context of the communicator.
    pub context: u64,
    /// The tag, never negative.
    pub tag: i32,
    /// Number of packed bytes of the whole message.
    pub bytes: u64,
    /// Check bits of the basic types of the message, as computed by `message/typecheck.rs`. They are below
    /// `typecheck::END`. Only the argument of a send may instead contain `typecheck::OF_LAYOUT`, which the
    /// engine replaces.
    pub types: u32,
}

/// How the data of a message lies in its sender's memory. The sender's RTS names the shape, because the best way
/// to move a message depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One run.
    Contiguous = 0,
    /// Several runs without large gaps, or long runs.
    Dense = 1,
    /// Short runs with large gaps.
    Sparse = 2,
}

impl Shape {
    /// Returns the number of the shape, by which ranks name it to each other.
    #[inline]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the shape with this number, or `None` if there is no such shape.
    #[inline]
    pub const fn from_code(code: u64) -> Option<Self> {
        match code {
            0 => Some(Self::Contiguous),
            1 => Some(Self::Dense),
            2 => Some(Self::Sparse),
            _ => None,
        }
    }
}

impl Label {
    /// Returns whether the library itself sends the message, for example as a part of a collective call. Such
    /// a message never waits for room at its receiver.
    #[inline]
    pub(crate) fn is_internal(&self) -> bool {
        !self.context.is_multiple_of(SPACES)
    }

    /// Tells tools what happens to this message between the process in slot `other` and this one, if it is a message of
    /// the program. `more` is the last value of the event.
    #[cold]
    #[inline(never)]
    pub fn tell(&self, subject: Subject, other: Process, more: u64) {
        if self.context.is_multiple_of(SPACES) {
            // A tag is a C integer.
            raise(subject, [other.index() as u64, u64::from(self.tag as u32), self.bytes, more]);
        }
    }
}
