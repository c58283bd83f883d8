//! Messages of this rank to itself. If the receive is posted first, or if the message is long or synchronous,
//! one copy moves the data into the layout of the receive when both the send and the receive are known. A
//! short message without a posted receive is packed into private memory, and its send is complete at once. No
//! transport takes part.
//!
//! `../engine.rs` uses this file for every send whose destination is this rank. If the receive is posted
//! after the send, `receive.rs` completes the receive, and also the send if it is still pending.

use super::*;
use crate::message::payload::SendMode;

impl MessageEngine {
    /// Sends a message to this rank itself. `status` describes the message.
    ///
    /// # Safety
    ///
    /// - The arguments meet the conditions of [`MessageEngine::send`].
    pub(super) unsafe fn send_self(
        &mut self,
        layout: &Elements<&Plan>,
        label: Label,
        mode: SendMode,
    ) -> Result<Option<u64>> {
        let status = Status { source: self.fabric.rank(), tag: label.tag, bytes: label.bytes };
        let own = Process::new(self.fabric.rank());
        if let Some(id) = self.matching.arrive(own, &label) {
            tell_match(own, &label, false);
            let Some(receive) = self.requests.receive(id) else {
                return Err(lost("a matched receive", id));
            };
            let capacity = receive.capacity;
            let refusal = receive.refusal(self.check_types, status, label.types);
            if refusal.is_none() {
                let supply = Supply::Memory(layout.keep());
                // SAFETY: the number of bytes is at most the packed size of the send and of the receive.
                // The memory of the send and the memory of the receive are valid and do not overlap
                // (conditions of `send` and of `receive`).
                unsafe { copy(&supply, &receive.sink, label.bytes.min(capacity)) };
            }
            self.requests.complete(id, received(status, capacity, refusal));
            return Ok(None);
        }
        self.matching.make_room_to_keep()?;
        if self.terms.is_eager(label.bytes) && !mode.is_synchronous() {
            // SAFETY: the caller guarantees that `layout` is readable and packs to `label.bytes` bytes
            // (conditions of `send`); `to` is new memory with room for these bytes.
            let pack = |to| unsafe { layout.pack(0..label.bytes, to) };
            self.matching.keep(
                own,
                label,
                Arrived::Data(Kept::new(label.bytes, &mut self.buffers, pack)?, None),
            );
            self.kept += 1;
            return Ok(None);
        }
        // SAFETY: the caller guarantees the conditions of `send` for `layout`, `label.bytes` and the
        // mode. `Supply::new` has no others.
        let supply = unsafe { Supply::new(layout, label.bytes, mode)? };
        self.requests.make_room()?;
        let (synchronous, stage) = (mode.is_synchronous(), SendStage::Offered(Advertised::Nothing));
        let send = Send { dest: own, label, supply, synchronous, stage, recall: None };
        let id = self.requests.open(Request::Send(send));
        self.kept += 1;
        self.matching.keep(own, label, Arrived::Own(id));
        Ok(Some(id))
    }
}
