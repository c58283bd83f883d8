//! Detaches operations from their memory, and cancels sends and receives.
//!
//! `progress.rs` uses this file when a panic ends a scope or a wait fails, and `comm/` uses it to cancel
//! operations. `transport/peer.rs` makes the other rank stop using the memory.

use super::*;

/// The result of cancelling a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// The send is cancelled: no receive gets the message. The send's number is free.
    Recalled,
    /// The send is complete as far as the program is concerned, and its number is free. The message still
    /// goes out, from a copy, because a receive may have matched it, or because it cannot be recalled.
    Completed,
    /// The send stays as it was: it is complete already, there was no memory for the copy, or the number
    /// names no send.
    No,
}

impl MessageEngine {
    /// Detaches an operation from the memory with which it was started. After this call no rank reads or
    /// writes that memory, and no thread can ask for the operation's result. If the operation is a send,
    /// its message still goes out, from a copy, unless the receiver has died. If it is a receive that has
    /// matched, it still takes its message and discards the data.
    pub fn detach(&mut self, id: u64) {
        match self.requests.get(id) {
            Some(Request::Send(send)) => {
                let (bytes, dest) = (send.label.bytes, send.dest);
                let is_needed = !self.fabric.has_died(dest.index());
                // First make the other rank stop reading the memory. Only then copy the data and give the
                // memory back.
                let _later = self.with_peer(dest.index(), |peer, work| {
                    peer.withdraw(work, id);
                    // Nobody takes a message to a dead rank. The copy of a long message would only delay the
                    // error of the caller, and the launcher ends this rank soon after the death.
                    if let Some(send) = work.requests.send(id) {
                        if is_needed {
                            send.supply.detach(bytes)
                        } else {
                            send.supply = Supply::Lost
                        }
                    }
                    // Try to send the Withdraw at once, because it may take a long time until this rank
                    // runs another turn. Until the Withdraw arrives, the receiver cannot copy any message
                    // from this rank's memory. If an error occurs here, it occurs again in the next turn,
                    // so it need not be reported now.
                    peer.flush(work)
                });
            }
            Some(Request::Receive(receive)) => {
                let source = receive.source;
                if receive.stream.is_none() {
                    self.matching.cancel_receive(id);
                    self.requests.cancel(id);
                    return;
                }
                if let Sender::Process(from) = source {
                    let _no_error = self.with_peer(from.index(), |peer, work| {
                        peer.withdraw(work, id);
                        Ok(())
                    });
                }
                if let Some(receive) = self.requests.receive(id) {
                    receive.sink = Sink::Discard;
                }
            }
            Some(Request::Source(_) | Request::Done(_)) | None => {}
        }
        self.requests.orphan(id);
    }

    /// Cancels a send. If the message can be recalled (`transport/link/recalls.rs`) and neither a receive nor a
    /// probe has matched it, no receive ever will, whatever the receiver does meanwhile. Otherwise the send
    /// completes from a copy. In both cases nobody uses the memory of the send afterwards, and its number is
    /// free. If there is no memory for the copy, the send goes on and keeps its number.
    pub fn cancel_send(&mut self, id: u64) -> Cancelled {
        let Some(send) = self.requests.send(id) else { return Cancelled::No };
        let (dest, label) = (send.dest, send.label);
        let is_carried =
            send.stage == SendStage::Unacknowledged || dest.index() == self.fabric.rank();
        let recalled = if dest.index() == self.fabric.rank() {
            let is_this = |what: &Arrived| matches!(what, Arrived::Own(own) if *own == id);
            self.matching.discard(dest, &label, is_this).is_some()
        } else {
            self.with_peer(dest.index(), |peer, work| Ok(peer.recall(work, id))).unwrap_or(false)
        };
        if recalled {
            self.traffic.undelivered += u64::from(!is_carried);
            self.requests.cancel(id);
            return Cancelled::Recalled;
        }
        let copied = self.with_peer(dest.index(), |peer, work| {
            // First make the other rank stop reading the memory. Only then copy the data.
            peer.withdraw(work, id);
            let copied = work.requests.send(id).map(|send| send.supply.own(label.bytes));
            let _later = peer.flush(work);
            Ok(matches!(copied, Some(Ok(()))))
        });
        if !copied.unwrap_or(false) {
            return Cancelled::No;
        }
        self.requests.orphan(id);
        Cancelled::Completed
    }

    /// Makes a receive that no message has matched take its message and discard the data. Nobody uses the memory of the
    /// receive afterwards, and no thread can ask for its result. Returns false if `id` is not the number of such a
    /// receive.
    pub fn ignore_receive(&mut self, id: u64) -> bool {
        let ignored = self.discard_receive(id);
        if ignored {
            self.requests.orphan(id);
        }
        ignored
    }

    /// Makes a receive that no message has matched take its message and discard the data, like
    /// [`ignore_receive`](Self::ignore_receive). Whoever waits for the receive or owns it still gets its result.
    pub fn discard_receive(&mut self, id: u64) -> bool {
        let Some(receive) = self.requests.receive(id) else { return false };
        if receive.stream.is_some() {
            return false;
        }
        receive.sink = Sink::Discard;
        true
    }

    /// Cancels a receive that no message has matched, and frees its number. Returns false if `id` is not
    /// the number of such a receive.
    pub fn cancel_receive(&mut self, id: u64) -> bool {
        let Some(receive) = self.requests.receive(id) else { return false };
        if receive.stream.is_some() || !self.matching.cancel_receive(id) {
            return false;
        }
        self.requests.cancel(id);
        true
    }
}
