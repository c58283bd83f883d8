//! A send and a receive in flight: what a protocol needs to know of an operation, and how far it is.
//!
//! `endpoint/requests.rs` keeps them under their numbers; protocols reach them through
//! [`RequestTable`] and complete them.
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

use crate::message::Source;
use crate::message::envelope::Space;
use crate::message::label::{Label, Status};
use crate::message::payload::{Sink, Supply};
use crate::message::typecheck;
use crate::{Error, ErrorKind, Result};

/// What an RTS has said of where the data lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Nothing: it can only be packed.
    Nothing,
    /// In this memory: the receiver may read it at any time.
    In(Space),
    /// The memory is its caller's again; an answer of before that may still come.
    Withdrawn,
}

/// How far a send has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendStage {
    /// In the queue of its destination; nothing has been written yet.
    Queued,
    /// Its payload is out, and its ACK has not come.
    Unacknowledged,
    /// Its RTS is out (or it waits in our own unexpected queue); the receiver decides.
    Offered(Told),
    /// Its CTS has come; so many bytes are in chunks already.
    Streaming(u64),
}

/// A send in flight.
#[derive(Debug)]
pub struct Send {
    /// Where it goes.
    pub dest: usize,
    /// What the receiver sees.
    pub label: Label,
    /// Its data.
    pub supply: Supply,
    /// Complete only when a receive has matched it, however short it is.
    pub synchronous: bool,
    /// How far it has come.
    pub stage: SendStage,
}

/// A matched message on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Its tag.
    pub tag: i32,
    /// Its packed bytes.
    pub total: u64,
    /// Packed bytes that have been unpacked so far.
    pub done: u64,
}

/// A receive in flight.
#[derive(Debug)]
pub struct Receive {
    /// Context it was posted in.
    pub context: u64,
    /// What it asked for; after the match the sender.
    pub source: Source,
    /// Where data goes.
    pub sink: Sink,
    /// Packed bytes that fit.
    pub capacity: u64,
    /// After the match.
    pub stream: Option<Stream>,
}

impl Receive {
    /// Why this receive must not have a message with these types; see [`typecheck::refusal`].
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

/// The result of a receive of `capacity` bytes that matched a message, which it may have refused.
///
/// # Errors
/// The refusal; a message that is longer than the receive.
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

/// The operations in flight of this process, by number.
pub trait RequestTable {
    /// The send in flight that `id` names.
    fn send(&mut self, id: u64) -> Option<&mut Send>;
    /// The receive in flight that `id` names.
    fn receive(&mut self, id: u64) -> Option<&mut Receive>;
    /// Completes an operation in flight.
    fn complete(&mut self, id: u64, result: Result<Status>);
}
