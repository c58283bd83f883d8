//! Point-to-point messages: what a receive asks for, what it gets, and how the two meet.
//!
//! `comm/` checks arguments and calls `exchange.rs`, which owns all message state of the process;
//! `matching.rs` pairs messages with receives, `request.rs` keeps operations in flight,
//! `payload.rs` packs and unpacks, `typecheck.rs` compares types where that is asked for. Bytes travel through `transport/`.

pub(crate) mod exchange;
pub(crate) mod matching;
pub(crate) mod payload;
pub(crate) mod request;
pub(crate) mod typecheck;

use crate::Plan;

/// Largest tag a message can have (`MPI_TAG_UB`; MPI-5.0 section 9.1.2).
#[doc(alias = "MPI_TAG_UB")]
pub const TAG_UB: i32 = i32::MAX;

/// The rank a receive or probe accepts messages from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Every rank.
    #[doc(alias = "MPI_ANY_SOURCE")]
    Any,
    /// This rank of the communicator.
    Rank(usize),
}

impl From<usize> for Source {
    fn from(rank: usize) -> Self {
        Self::Rank(rank)
    }
}

/// The tag a receive or probe accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// Every tag.
    #[doc(alias = "MPI_ANY_TAG")]
    Any,
    /// This tag.
    Is(i32),
}

impl Tag {
    /// Whether a message with `tag` is accepted.
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

/// An operation that has been started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It is complete.
    Done(Status),
    /// It is in flight under this number, which [`Ongoing`](crate::Ongoing) knows.
    Pending(u64),
}

/// What a completed receive, or a probe, says about its message (`MPI_Status`).
#[doc(alias = "MPI_Status")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Rank of the sender in the communicator.
    pub source: usize,
    /// Tag of the message.
    pub tag: i32,
    /// Packed bytes of the message.
    pub bytes: u64,
}

impl Status {
    /// How many whole elements of `plan`'s type the message holds; `None` when its bytes are not
    /// a whole number of elements.
    #[doc(alias = "MPI_Get_count")]
    pub fn count(&self, plan: &Plan) -> Option<u64> {
        match (self.bytes, plan.element_bytes()) {
            (0, _) => Some(0),
            (_, 0) => None,
            (bytes, element) => bytes.is_multiple_of(element).then(|| bytes / element),
        }
    }
}
