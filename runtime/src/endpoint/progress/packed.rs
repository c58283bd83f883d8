//! Calls for the library's own messages: short messages that go straight into the ring of their receiver, and waits
//! that may end early.

use super::waiting::rest;
use super::{Awaited, Core, Endpoint, State};
use crate::endpoint::engine::Packed;
use crate::message::Status;
use crate::message::label::Label;
use crate::message::payload::{SendMode, buffer};
use crate::process::Process;
use crate::shm::waiting::Kind;
use crate::{Plan, Result};
use std::sync::MutexGuard;
use std::time::Instant;
use typepack_engine::Elements;

/// Number of turns between two checks of the clock.
const TURNS: usize = 8;

/// The result of [`Endpoint::wait_briefly`].
#[derive(Debug)]
pub enum Brief {
    /// The receive is complete.
    Done(Result<Status>),
    /// The message has begun to arrive.
    Started,
    /// No message has matched the receive. It discards the data of its message when the message comes, and no thread
    /// can ask for its result.
    Late,
}

impl Endpoint {
    /// Waits for a receive until `end`, without sleep.
    ///
    /// # Errors
    /// Returns an error under the conditions of [`Endpoint::wait`]. The receive is then detached.
    pub fn wait_briefly(&self, id: u64, end: Instant) -> Result<Brief> {
        let waited = self.look_briefly(id, end);
        if waited.is_err() {
            self.detach(id);
        }
        waited
    }

    fn look_briefly(&self, id: u64, end: Instant) -> Result<Brief> {
        let (mut state, found) =
            self.look_until(end, |core| core.engine.requests().fetch(id).map(Brief::Done))?;
        if let Some(done) = found {
            return Ok(done);
        }
        let is_late = state.core.engine.ignore_receive(id);
        Ok(if is_late { Brief::Late } else { Brief::Started })
    }

    /// Waits until `is_over` returns true, but no longer than until `end`, and without sleep. Returns whether it has.
    ///
    /// # Errors
    /// Returns an error under the conditions of [`Endpoint::attend`].
    pub fn look_outside(&self, end: Instant, mut is_over: impl FnMut() -> bool) -> Result<bool> {
        let (state, found) = self.look_until(end, |_| is_over().then_some(()))?;
        drop(state);
        Ok(found.is_some())
    }

    /// Makes turns until `look` returns an answer, but no longer than until `end`.
    fn look_until<R>(
        &self,
        end: Instant,
        mut look: impl FnMut(&mut Core) -> Option<R>,
    ) -> Result<(MutexGuard<'_, State>, Option<R>)> {
        let mut state = self.lock()?;
        loop {
            for _ in 0..TURNS {
                self.turn(&mut state)?;
                if let Some(answer) = look(&mut state.core) {
                    return Ok((state, Some(answer)));
                }
                rest(&mut state);
            }
            if Instant::now() >= end {
                return Ok((state, None));
            }
            if self.wanted() {
                drop(state);
                std::thread::yield_now();
                state = self.lock()?;
            }
        }
    }

    /// Sends a message of `label.bytes` bytes, which `pack` writes, if the ring of `dest` has room, or gets room soon:
    /// if `patient` is true, makes turns for no longer than the spin time. Returns whether the message is sent. `pack`
    /// may be called several times.
    ///
    /// # Safety
    ///
    /// - The condition of [`send_packed`](Self::send_packed).
    ///
    /// # Errors
    /// Returns the errors of [`send_packed`](Self::send_packed). The message is not sent then.
    pub unsafe fn send_packed_soon(
        &self,
        label: Label,
        dest: Process,
        patient: bool,
        mut pack: impl FnMut(*mut u8),
    ) -> Result<bool> {
        let mut state = self.lock()?;
        let news = state.news();
        // SAFETY: `pack` writes no more than `label.bytes` bytes, at most `EAGER_MAX` (the condition of `# Safety`).
        let sent = unsafe { state.core.engine.send_packed(label, dest, &mut pack)? };
        if sent == Packed::Sent {
            self.go_on(&mut state, news);
            return Ok(true);
        }
        drop(state);
        if sent == Packed::TooLong || !patient {
            // Every call makes progress.
            self.enter()?;
            return Ok(false);
        }
        let (state, found) = self.look_until(Instant::now() + self.spin(), |core| {
            // SAFETY: the condition of the first call, which is the same, holds for every call of `pack`.
            match unsafe { core.engine.send_packed(label, dest, &mut pack) } {
                Ok(Packed::Full) => None,
                other => Some(other),
            }
        })?;
        drop(state);
        found.map_or(Ok(false), |sent| Ok(sent? == Packed::Sent))
    }

    /// Sends a message of `label.bytes` bytes, which `pack` writes. Waits until the ring of `dest` has room. Meanwhile
    /// this rank makes progress, so two ranks may send to each other at the same time. The function may call `pack`
    /// several times. It does not keep `pack`.
    ///
    /// # Safety
    ///
    /// - `pack` writes no more than `label.bytes` bytes to the address that it gets. `label.bytes` is at most
    ///   `EAGER_MAX`.
    ///
    /// # Errors
    /// Returns the errors of [`MessageEngine::send_packed`](crate::endpoint::engine::MessageEngine::send_packed), and
    /// an error under the conditions of [`Endpoint::attend`]. The message is not sent then, unless the connection to
    /// the other rank has failed, which all later turns report. An error after the message has been sent is returned by
    /// the next turn, not by this call.
    pub unsafe fn send_packed(
        &self,
        label: Label,
        dest: Process,
        byte: &Plan,
        mut pack: impl FnMut(*mut u8),
    ) -> Result<()> {
        let mut state = self.lock()?;
        let news = state.news();
        // SAFETY: `pack` writes no more than `label.bytes` bytes, at most `EAGER_MAX` (the condition of `# Safety`).
        let mut sent = unsafe { state.core.engine.send_packed(label, dest, &mut pack)? };
        if sent == Packed::Sent {
            self.go_on(&mut state, news);
            return Ok(());
        }
        drop(state);
        if sent == Packed::Full {
            let awaited = Awaited::Ranks {
                call: "",
                kind: Kind::Window,
                context: label.context,
                ranks: 0,
                peer: Some(dest.index()),
            };
            sent = self.attend(&awaited, |engine| {
                // SAFETY: `pack` writes no more than `label.bytes` bytes, at most `EAGER_MAX` (the condition of
                // `# Safety`).
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
        let layout = Elements { origin: packed.as_mut_ptr(), plan: byte, count: label.bytes };
        let mode = SendMode::Buffered(None);
        let started = self.start(|core| {
            // SAFETY: the buffer is readable and has `label.bytes` bytes, and the send uses it only during the call.
            unsafe { core.engine.start_send(&layout, label, dest, mode) }
        })?;
        // If the wait fails, the message still goes out, from the copy.
        if let Some(id) = started
            && let Err(error) = self.wait(id, "")
            && let Ok(mut state) = self.lock()
        {
            state.failed.get_or_insert(error);
        }
        Ok(())
    }
}
