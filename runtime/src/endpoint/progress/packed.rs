//! Short messages that the library writes straight into the ring of their receiver.

use super::Endpoint;
use crate::endpoint::engine::{How, Packed};
use crate::message::label::{Label, Slot};
use crate::message::payload::{Backing, LayoutRef, buffer};
use crate::{Plan, Result};

impl Endpoint {
    /// Sends a message of `label.bytes` bytes, which `pack` writes. Waits until the ring of `dest` has room. Meanwhile
    /// this rank makes progress, so two ranks may do this to each other. The message is complete when the call returns.
    /// `pack` may be called several times.
    ///
    /// # Safety
    ///
    /// - `pack` writes no more than `label.bytes` bytes to the address that it gets. `label.bytes` is at most
    ///   `EAGER_MAX`.
    ///
    /// # Errors
    /// Returns the errors of [`MessageEngine::send_packed`](crate::endpoint::engine::MessageEngine::send_packed), and an
    /// error under the conditions of [`Endpoint::attend`].
    pub unsafe fn send_packed(
        &self,
        label: Label,
        dest: Slot,
        byte: &Plan,
        mut pack: impl FnMut(*mut u8),
    ) -> Result<()> {
        let mut state = self.lock()?;
        let news = state.news();
        // SAFETY: the caller guarantees the condition of `MessageEngine::send_packed`.
        let mut sent = unsafe { state.core.engine.send_packed(label, dest, &mut pack)? };
        if sent == Packed::Sent {
            return self.started(&mut state, news);
        }
        drop(state);
        if sent == Packed::Full {
            sent = self.attend(|engine| {
                // SAFETY: the same.
                match unsafe { engine.send_packed(label, dest, &mut pack) } {
                    Ok(Packed::Full) => None,
                    other => Some(other),
                }
            })??;
        }
        if sent == Packed::Sent {
            return Ok(());
        }
        // There is no memory for a larger ring. Other protocols need none.
        let mut packed = buffer(label.bytes)?;
        pack(packed.as_mut_ptr());
        let layout = LayoutRef { origin: packed.as_mut_ptr(), plan: byte, count: label.bytes };
        let how = How { synchronous: false, backing: Backing::Copy };
        // SAFETY: the buffer is readable and has `label.bytes` bytes, and the send uses it only during the call.
        match unsafe { self.send_as(&layout, label, dest, how)? } {
            Some(id) => self.wait(id).map(drop),
            None => Ok(()),
        }
    }
}
