//! Sends and receives in flight: the state of each operation, and the facts about the operation that a
//! protocol needs.
//!
//! `endpoint/requests.rs` keeps each operation under a number. Protocols find and complete operations
//! through [`RequestTable`].
//!
//! ```text
//! send     Queued --payload in the ring--> complete
//!          Queued --first fragment--> Fragments --last fragment--> complete
//!          Queued --payload in the ring--> Unacknowledged --ACK--> complete
//!          Queued --RTS--> Offered --CTS--> Streaming --last chunk--> complete
//!                             |----FIN------------------------------> complete
//!                             '----REFUSED--------------------------> complete
//! receive  posted --payload--> complete
//!          posted | new --RTS matched--> stream --last chunk or piece--> complete
//! ```

use crate::message::envelope::{Offer, Space};
use crate::message::label::Sender;
use crate::message::label::{Label, Status};
use crate::message::payload::{Sink, Supply};
use crate::message::typecheck;
use crate::process::Process;
use crate::{Error, ErrorKind, Result};
use typepack_engine::contiguous::Method;

/// What the RTS of a send has told the receiver about the place of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advertised {
    /// The RTS named no place, so the sender has to pack the data.
    Nothing,
    /// The data lies in this memory, and the receiver may read it at any time.
    In(Space),
    /// The sender has taken back the data, which lay in this memory. The receiver may have sent an answer before it
    /// learned of the withdrawal; such an answer may still arrive.
    Withdrawn(Space),
}

/// The state of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendStage {
    /// The send waits in the queue of its destination. None of its envelopes is in the ring yet.
    Queued,
    /// The payload is in the ring, and the ACK has not arrived yet.
    Unacknowledged,
    /// The RTS is in the ring, and the receiver will choose the protocol that moves the data. Or this rank
    /// has sent the message to itself, and the message is in this rank's queue of unexpected messages.
    Offered(Advertised),
    /// The message goes out in fragments. This number of its bytes is in the ring. Long runs are copied with the
    /// method.
    Fragments(u64, Method),
    /// The CTS has arrived. The number counts the bytes that this rank has already packed into chunks.
    Streaming(u64),
}

/// A send in flight.
#[derive(Debug)]
pub struct Send {
    /// The destination rank.
    pub dest: Process,
    /// Context, tag, length and types of the message, as the receiver sees them.
    pub label: Label,
    /// The data.
    pub supply: Supply,
    /// True if the send may complete only after a receive has matched its message, even if the message is
    /// short.
    pub synchronous: bool,
    /// The state.
    pub stage: SendStage,
    /// The word that `recalls.rs` has lent to the message, so that this rank can recall the message;
    /// `None` if it has lent none.
    pub recall: Option<u8>,
}

impl Send {
    /// Returns how the envelope names the message: by the number `id` of this send and by its recall
    /// word.
    #[inline]
    pub fn offer(&self, id: u64) -> Offer {
        Offer { recall: self.recall, ..id.into() }
    }
}

/// A message that a receive has matched and whose data is still on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Tag of the message.
    pub tag: i32,
    /// Number of packed bytes of the message.
    pub total: u64,
    /// Number of packed bytes that this rank has unpacked so far.
    pub done: u64,
}

/// A receive in flight.
#[derive(Debug)]
pub struct Receive {
    /// The context of the messages that the receive takes.
    pub context: u64,
    /// Before the match, the source that the receive asked for. After the match, the sender of the message.
    pub source: Sender,
    /// The place to which the data goes.
    pub sink: Sink,
    /// Maximum number of packed bytes that the receive can take.
    pub capacity: u64,
    /// The matched message; `None` before the match.
    pub stream: Option<Stream>,
}

impl Receive {
    /// Returns an error if this receive must refuse a message with the given types, and otherwise `None`;
    /// see [`typecheck::refusal`].
    #[inline]
    pub fn refusal(&self, check: bool, status: Status, types: u32) -> Option<Error> {
        match &self.sink {
            Sink::Memory(layout) => {
                typecheck::refusal(check, &layout.view(), self.capacity, status, types)
            }
            // Nobody compares the types of a part of a message.
            Sink::From(layout, _) => {
                typecheck::refusal(false, &layout.view(), self.capacity, status, types)
            }
            Sink::Discard => None,
        }
    }
}

/// Returns the result of a receive of `capacity` bytes that has matched a message. If the receive refused
/// the message, `refusal` is the error.
///
/// # Errors
/// Returns the refusal, or `ErrorKind::Truncated` if the message is longer than the receive.
#[inline]
pub fn received(status: Status, capacity: u64, refusal: Option<Error>) -> Result<Status> {
    match refusal {
        None if status.bytes <= capacity => Ok(status),
        refusal => Err(refusal.unwrap_or_else(|| truncated(status, capacity))),
    }
}

#[cold]
fn truncated(status: Status, capacity: u64) -> Error {
    let Status { source, tag, bytes } = status;
    Error::new(
        ErrorKind::Truncated,
        "count",
        format!(
            "the message from rank {source} with tag {tag} has {bytes} bytes; \
             the receive has room for {capacity}"
        ),
    )
    .of_message(Status { bytes: capacity, ..status })
}

/// The operations of this process that are in flight. Each operation has a number.
pub trait RequestTable {
    /// Returns the send in flight with the number `id`, if there is one.
    fn send(&mut self, id: u64) -> Option<&mut Send>;
    /// Returns the receive in flight with the number `id`, if there is one.
    fn receive(&mut self, id: u64) -> Option<&mut Receive>;
    /// Completes an operation in flight with `result`.
    fn complete(&mut self, id: u64, result: Result<Status>);
}
