//! Sends and receives in flight: the state of an operation, and the facts about the operation that a
//! protocol needs.
//!
//! `endpoint/requests.rs` keeps the operations under their numbers. Protocols find and complete operations
//! through [`RequestTable`].
//!
//! ```text
//! send     Queued --payload in the ring--> complete
//!          Queued --payload in the ring--> Unacknowledged --ACK--> complete
//!          Queued --RTS--> Offered --CTS--> Streaming --last chunk--> complete
//!                             |----FIN------------------------------> complete
//!                             '----REFUSED--------------------------> complete
//! receive  posted --payload--> complete
//!          posted | new --RTS matched--> stream --last chunk or piece--> complete
//! ```

use crate::message::envelope::Space;
use crate::message::label::{Label, Status};
use crate::message::label::{Sender, Slot};
use crate::message::payload::{Sink, Supply};
use crate::message::typecheck;
use crate::{Error, ErrorKind, Result};

/// What the RTS of a send has told the receiver about the place of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The RTS named no place; the sender has to pack the data.
    Nothing,
    /// The data lies in this memory, and the receiver may read it at any time.
    In(Space),
    /// The sender has taken the memory back. An earlier answer of the receiver may still arrive.
    Withdrawn,
}

/// The state of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendStage {
    /// The send waits in the queue of its destination; none of its envelopes is in the ring.
    Queued,
    /// The payload is in the ring, and the ACK has not arrived.
    Unacknowledged,
    /// The RTS is in the ring, or in this rank's own unexpected queue. The receiver decides how the data is
    /// moved.
    Offered(Told),
    /// The CTS has arrived; this many bytes are in chunks already.
    Streaming(u64),
}

/// A send in flight.
#[derive(Debug)]
pub struct Send {
    /// The destination rank.
    pub dest: Slot,
    /// Context, tag and length, as the receiver sees them.
    pub label: Label,
    /// The data.
    pub supply: Supply,
    /// The send completes only when a receive has matched it, even if it is short.
    pub synchronous: bool,
    /// The state.
    pub stage: SendStage,
}

/// A matched message that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Tag of the message.
    pub tag: i32,
    /// Packed bytes of the message.
    pub total: u64,
    /// Packed bytes that this rank has unpacked so far.
    pub done: u64,
}

/// A receive in flight.
#[derive(Debug)]
pub struct Receive {
    /// Context in which the receive was posted.
    pub context: u64,
    /// The requested source; after the match, the sender of the matched message.
    pub source: Sender,
    /// The place to which the data goes.
    pub sink: Sink,
    /// Maximum number of packed bytes that the receive can take.
    pub capacity: u64,
    /// The matched message; `None` before the match.
    pub stream: Option<Stream>,
}

impl Receive {
    /// Returns the error if this receive must refuse a message with these types; see [`typecheck::refusal`].
    #[inline]
    pub fn refusal(&self, check: bool, status: Status, types: u32) -> Option<Error> {
        match &self.sink {
            Sink::Memory(layout) => {
                typecheck::refusal(check, &layout.view(), self.capacity, status, types)
            }
            Sink::Discard => None,
        }
    }
}

/// Returns the result of a receive of `capacity` bytes that matched a message. `refusal` is the error if
/// the receive refused the message.
///
/// # Errors
/// Returns the refusal, or `ErrorKind::Truncated` if the message is longer than the receive.
pub fn received(status: Status, capacity: u64, refusal: Option<Error>) -> Result<Status> {
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    if status.bytes <= capacity {
        return Ok(status);
    }
    let Status { source, tag, bytes } = status;
    Err(Error::new(
        ErrorKind::Truncated,
        "count",
        format!(
            "the message from rank {source} with tag {tag} has {bytes} bytes, \
             the receive has room for {capacity}"
        ),
    )
    .of_message(Status { bytes: capacity, ..status }))
}

/// The operations of this process that are in flight, by number.
pub trait RequestTable {
    /// Returns the send in flight with the number `id`.
    fn send(&mut self, id: u64) -> Option<&mut Send>;
    /// Returns the receive in flight with the number `id`.
    fn receive(&mut self, id: u64) -> Option<&mut Receive>;
    /// Completes an operation in flight with `result`.
    fn complete(&mut self, id: u64, result: Result<Status>);
}
