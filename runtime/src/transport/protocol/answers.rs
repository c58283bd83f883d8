//! The answers that a sender receives for its messages, and the states in which each answer is allowed.
//! An answer is an envelope (`message/envelope.rs`); RTS (request to send) is the envelope that announces
//! a long message.
//!
//! | answer | state of the send | effect |
//! |---|---|---|
//! | ACK | Unacknowledged | the send is complete |
//! | CTS | Offered | the send streams through the chunks |
//! | FIN | Offered, and the RTS said where the data lies | the send is complete |
//! | REFUSED | Offered | the send is complete; the error belongs to the receiver |
//! | Help | Offered, and the RTS named a place in the heap | this rank may copy a part |
//!
//! Any other combination is a violation of the protocol. A Help or a FIN may still arrive after this rank
//! has withdrawn the message, because the answer and the Withdraw have crossed. The send is then still in
//! the state Offered, but is marked as withdrawn.
//!
//! `peer.rs` uses this file for each such envelope.

use super::in_flight::{Advertised, RequestTable, Send, SendStage};
use super::{Carrier, Work};
use crate::message::envelope::Space;
use crate::message::label::Status;
use crate::shm::ring::Violation;
use crate::transport::link::failure::broken;
use crate::{Error, Result};

/// Returns the send that the rank `from` answers. Returns an error with the text `otherwise` if `from` is
/// not the destination of the send, if `fits` does not accept the state of the send, or if there is no
/// send `id`.
fn answered<'a, R: RequestTable>(
    requests: &'a mut R,
    from: usize,
    id: u64,
    fits: impl Fn(SendStage) -> bool,
    otherwise: &'static str,
) -> Result<&'a mut Send> {
    requests
        .send(id)
        .filter(|send| send.dest.index() == from && fits(send.stage))
        .ok_or_else(|| unexpected(from, id, otherwise))
}

/// Returns the error for an answer that the state of message `id` does not allow. The answer came from
/// rank `from`. The text of the error contains `otherwise`.
#[cold]
fn unexpected(from: usize, id: u64, otherwise: &'static str) -> Error {
    broken(from, Violation::new(format!("{otherwise} (id {id:#x})")))
}

/// Completes a send without an error.
fn complete<R: RequestTable>(work: &mut Work<'_, R>, id: u64) {
    let Some(send) = work.requests.send(id) else { return };
    let status =
        Status { source: work.fabric.rank(), tag: send.label.tag, bytes: send.label.bytes };
    work.requests.complete(id, Ok(status));
}

/// Handles an ACK: a receive has matched a synchronous message.
///
/// # Errors
/// Returns `ErrorKind::Other` if `from` broke the protocol.
pub fn ack<R: RequestTable>(work: &mut Work<'_, R>, from: usize, id: u64) -> Result<()> {
    let waits = |stage| stage == SendStage::Unacknowledged;
    answered(work.requests, from, id, waits, "ACK of a message that does not wait for an ACK")?;
    complete(work, id);
    Ok(())
}

/// Handles a CTS: from now on, this rank streams the send through the chunks.
///
/// # Errors
/// Returns `ErrorKind::Other` if `from` broke the protocol.
pub fn cts<R: RequestTable>(work: &mut Work<'_, R>, from: usize, id: u64) -> Result<()> {
    let offered = |stage| matches!(stage, SendStage::Offered(_));
    let send = answered(work.requests, from, id, offered, "CTS of a message without an RTS")?;
    send.stage = SendStage::Streaming(0);
    work.traffic.carried(Carrier::Pipeline, &send.label, send.dest);
    Ok(())
}

/// Handles a FIN: the receiver has copied the message in place.
///
/// # Errors
/// Returns `ErrorKind::Other` if `from` broke the protocol.
pub fn fin<R: RequestTable>(work: &mut Work<'_, R>, from: usize, id: u64) -> Result<()> {
    // The receiver may have copied the message before it learned that the message was withdrawn.
    let carrier = |stage| match stage {
        SendStage::Offered(Advertised::In(space) | Advertised::Withdrawn(space)) => match space {
            Space::Heap => Some(Carrier::Heap),
            Space::Private => Some(Carrier::Private),
        },
        _ => None,
    };
    let advertised = |stage| carrier(stage).is_some();
    let send =
        answered(work.requests, from, id, advertised, "FIN of a message whose RTS named no place")?;
    if let Some(by) = carrier(send.stage) {
        work.traffic.carried(by, &send.label, send.dest);
    }
    complete(work, id);
    Ok(())
}

/// Handles a REFUSED: a receive has matched the message, and the receiver does not take the data.
///
/// # Errors
/// Returns `ErrorKind::Other` if `from` broke the protocol.
pub fn refused<R: RequestTable>(work: &mut Work<'_, R>, from: usize, id: u64) -> Result<()> {
    let offered = |stage| matches!(stage, SendStage::Offered(_));
    answered(work.requests, from, id, offered, "REFUSED of a message without an RTS")?;
    work.traffic.undelivered += 1;
    complete(work, id);
    Ok(())
}

/// Handles a Help: the receiver copies a message of `bytes` bytes out of the heap and asks for help.
/// Returns false if this rank has withdrawn the message in the meantime.
///
/// # Errors
/// Returns `ErrorKind::Other` if `from` broke the protocol.
pub fn help<R: RequestTable>(
    work: &mut Work<'_, R>,
    from: usize,
    id: u64,
    bytes: u64,
) -> Result<bool> {
    let advertised = |stage| {
        let (here, gone) = (Advertised::In(Space::Heap), Advertised::Withdrawn(Space::Heap));
        stage == SendStage::Offered(here) || stage == SendStage::Offered(gone)
    };
    let otherwise = "a request for help with a message whose RTS named no place in the heap";
    let send = answered(work.requests, from, id, advertised, otherwise)?;
    if send.label.bytes != bytes {
        let has = send.label.bytes;
        let detail =
            format!("a request for help with {bytes} bytes of a message that has {has} bytes");
        return Err(broken(from, Violation::new(detail)));
    }
    Ok(send.stage != SendStage::Offered(Advertised::Withdrawn(Space::Heap)))
}
