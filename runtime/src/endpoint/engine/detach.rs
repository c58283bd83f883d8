//! Detaches operations from their memory, and cancels receives.
//!
//! `progress.rs` calls this file when a scope ends or a wait fails, and `comm/` calls it for cancelled
//! receives. `transport/peer.rs` ends the use of the memory by the other rank.

use super::*;

impl MessageEngine {
    /// Detaches an operation from the memory on which it was started. Afterwards no rank reads or writes
    /// that memory, and no thread can ask for the operation's result. A send still happens, from a copy. A
    /// matched receive still takes its message and discards it.
    pub fn detach(&mut self, id: u64) {
        match self.requests.get(id) {
            Some(Request::Send(send)) => {
                let (bytes, dest) = (send.label.bytes, send.dest);
                // The other rank must stop reading the memory before the copy below frees it.
                let _later = self.with_peer(dest.index(), |peer, work| {
                    peer.withdraw(work, id);
                    if let Some(send) = work.requests.send(id) {
                        send.supply.detach(bytes);
                    }
                    // Try to send the Withdraw at once: until the receiver has it, the receiver reads
                    // nothing from this rank, and this rank may not make another turn for a long time. An
                    // error here occurs again in the next turn.
                    peer.flush(work)
                });
            }
            Some(Request::Receive(receive)) => {
                let (context, source) = (receive.context, receive.source);
                if receive.stream.is_none() {
                    self.matching.cancel_receive(context, source, id);
                    self.requests.cancel(id);
                    return;
                }
                if let Sender::Slot(from) = source {
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

    /// Cancels a receive that no message has matched. Returns false if there is no such receive with
    /// this number. The number is free afterwards.
    pub fn cancel_receive(&mut self, id: u64) -> bool {
        let Some(receive) = self.requests.receive(id) else { return false };
        let (context, source) = (receive.context, receive.source);
        if receive.stream.is_some() || !self.matching.cancel_receive(context, source, id) {
            return false;
        }
        self.requests.cancel(id);
        true
    }
}
