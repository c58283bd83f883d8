//! What a sender hears of its messages: which words of the wire may come in which state.
//!
//! | word | state of the send | what follows |
//! |---|---|---|
//! | ACK | Unacknowledged | it is complete |
//! | CTS | Offered | it streams through the chunks |
//! | FIN | Offered, the RTS having said where the data lies | it is complete |
//! | REFUSED | Offered | it is complete: the error is the receiver's |
//! | Help | Offered, the RTS having named that memory | this rank may copy a part |
//!
//! Everything else is a broken protocol. A Help or a FIN may cross the Withdraw of a message: the send
//! is still Offered then, and says so.
//!
//! `peer.rs` comes here with the envelopes.

use super::failure::broken;
use super::in_flight::{RequestTable, Send, SendStage, Told};
use super::protocol::Work;
use crate::Result;
use crate::message::envelope::Space;
use crate::message::label::Status;
use crate::shm::ring::Violation;

/// The send that `from` answers, which is in one of the states that `fits` names.
fn answered<'a, R: RequestTable>(
    requests: &'a mut R,
    from: usize,
    id: u64,
    fits: impl Fn(SendStage) -> bool,
    otherwise: &'static str,
) -> Result<&'a mut Send> {
    requests
        .send(id)
        .filter(|send| send.dest == from && fits(send.stage))
        .ok_or_else(|| broken(from, Violation(otherwise)))
}

/// Completes a send well.
fn complete<R: RequestTable>(work: &mut Work<'_, R>, id: u64) {
    let Some(send) = work.requests.send(id) else { return };
    let status =
        Status { source: work.fabric.rank(), tag: send.label.tag, bytes: send.label.bytes };
    work.requests.complete(id, Ok(status));
}

/// A synchronous message has been matched.
///
/// # Errors
/// `from` broke the protocol.
pub fn ack<R: RequestTable>(work: &mut Work<'_, R>, from: usize, id: u64) -> Result<()> {
    let waits = |stage| stage == SendStage::Unacknowledged;
    answered(work.requests, from, id, waits, "ACK of a message that does not wait for it")?;
    complete(work, id);
    Ok(())
}

/// A message is to be packed: from here on it streams.
///
/// # Errors
/// `from` broke the protocol.
pub fn cts<R: RequestTable>(work: &mut Work<'_, R>, from: usize, id: u64) -> Result<()> {
    let offered = |stage| matches!(stage, SendStage::Offered(_));
    let send = answered(work.requests, from, id, offered, "CTS of a message without an RTS")?;
    send.stage = SendStage::Streaming(0);
    work.traffic.pipelined += 1;
    Ok(())
}

/// A message has been copied from where it lay.
///
/// # Errors
/// `from` broke the protocol.
pub fn fin<R: RequestTable>(work: &mut Work<'_, R>, from: usize, id: u64) -> Result<()> {
    let told = |stage| matches!(stage, SendStage::Offered(Told::In(_) | Told::Withdrawn));
    let send =
        answered(work.requests, from, id, told, "FIN of a message whose data nobody showed")?;
    match send.stage {
        SendStage::Offered(Told::In(Space::Heap)) => work.traffic.fused += 1,
        SendStage::Offered(Told::In(Space::Private)) => work.traffic.split += 1,
        _ => {}
    }
    complete(work, id);
    Ok(())
}

/// The receive that has matched a message does not take it.
///
/// # Errors
/// `from` broke the protocol.
pub fn refused<R: RequestTable>(work: &mut Work<'_, R>, from: usize, id: u64) -> Result<()> {
    let offered = |stage| matches!(stage, SendStage::Offered(_));
    answered(work.requests, from, id, offered, "REFUSED of a message without an RTS")?;
    complete(work, id);
    Ok(())
}

/// The receiver of a message of `bytes` bytes in `space` asks for help; false when the message has been
/// withdrawn meanwhile.
///
/// # Errors
/// `from` broke the protocol.
pub fn help<R: RequestTable>(
    work: &mut Work<'_, R>,
    from: usize,
    id: u64,
    (space, bytes): (Space, u64),
) -> Result<bool> {
    let told = |stage| {
        let (here, gone) = (Told::In(space), Told::Withdrawn);
        stage == SendStage::Offered(here) || stage == SendStage::Offered(gone)
    };
    let otherwise = "help with a message whose data nobody showed";
    let send = answered(work.requests, from, id, told, otherwise)?;
    if send.label.bytes != bytes {
        return Err(broken(from, Violation("help with a message of another length")));
    }
    Ok(send.stage != SendStage::Offered(Told::Withdrawn))
}
