//! Operations that lose their memory or are taken back.
//!
//! `progress.rs` comes here when a scope ends or a wait fails, `comm/` with cancelled receives. What the
//! other rank may be doing with the memory is ended by `transport/peer.rs`.

use super::*;

impl MessageEngine {
    /// Cuts an operation loose from the memory it was started on: afterwards nobody reads or
    /// writes that memory, and nobody can ask for the operation's result. A send still happens,
    /// from a copy; a receive that has been matched is read and dropped.
    pub fn detach(&mut self, id: u64) {
        match self.requests.get(id) {
            Some(Request::Send(send)) => {
                let (bytes, dest) = (send.label.bytes, send.dest);
                // First nobody else reads the memory any more, then it is let go.
                let (peer, mut work) = self.at(dest);
                peer.withdraw(&mut work, id);
                if let Some(send) = work.requests.send(id) {
                    send.supply.detach(bytes);
                }
                // The receiver reads nothing of ours until it has been told, and this rank may not
                // call again for long. What fails here fails in the next turn, where it is told.
                let _later = peer.flush(&mut work);
                self.busy = true;
            }
            Some(Request::Receive(receive)) => {
                let (context, source) = (receive.context, receive.source);
                if receive.stream.is_none() {
                    self.matching.withdraw(context, source, id);
                    self.requests.cancel(id);
                    return;
                }
                if let Source::Rank(from) = source {
                    let (peer, mut work) = self.at(from);
                    peer.withdraw(&mut work, id);
                }
                if let Some(receive) = self.requests.receive(id) {
                    receive.sink = Sink::Discard;
                }
            }
            Some(Request::Source(_) | Request::Done(_)) | None => {}
        }
        self.requests.orphan(id);
    }

    /// Takes back a receive that no message has matched; false if there is none under this number.
    /// Its number is free afterwards.
    pub fn withdraw(&mut self, id: u64) -> bool {
        let Some(receive) = self.requests.receive(id) else { return false };
        let (context, source) = (receive.context, receive.source);
        if receive.stream.is_some() || !self.matching.withdraw(context, source, id) {
            return false;
        }
        self.requests.cancel(id);
        true
    }
}
