//! Buffers of collective calls on memory that the caller answers for, and batches of messages.
//!
//! The operations of this folder start their messages in a [`Batch`] and finish it; what is left of
//! one that is dropped early, because something failed, is cut loose from its memory
//! (`endpoint/engine.rs`, `detach`).
//!
//! A rank that cannot have what it was to hand on (too long, of other types) hands on a void message
//! instead: whoever depends on it fails as well, and nobody waits for ever.

use crate::comm::{Communicator, Space};
use crate::message::Operation;
use crate::message::payload::{LayoutRef, Sink, Supply, copy};
use crate::message::typecheck::{self, OF_LAYOUT, UNKNOWN, VOID, of_message};
use crate::settings::Settings;
use crate::{Error, ErrorKind, Plan, Result, Source, Tag};

/// `count` elements of a committed type at an address: what a rank gives to a collective call, or
/// gets from it.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Address of displacement 0.
    pub origin: *mut u8,
    /// The committed type.
    pub plan: &'a Plan,
    /// Elements.
    pub count: u64,
}

impl<'a> Part<'a> {
    /// Its packed bytes.
    ///
    /// # Errors
    /// The number does not fit.
    pub fn bytes(&self) -> Result<u64> {
        Ok(self.plan.packed_bytes(self.count)?)
    }

    pub(super) fn layout(&self) -> LayoutRef<'a> {
        LayoutRef { origin: self.origin, plan: self.plan, count: self.count }
    }

    /// Copies this part into `to`, which has room for exactly as many bytes.
    ///
    /// # Safety
    ///
    /// - The elements of this part are readable, those of `to` writable.
    /// - They overlap nowhere.
    pub(super) unsafe fn copy_to(&self, to: &Part<'_>, rank: usize) -> Result<()> {
        let (bytes, room) = (self.bytes()?, to.bytes()?);
        if bytes > room {
            let detail = format!("this rank's own part has {bytes} bytes, the room is {room}");
            return Err(Error::new(ErrorKind::Truncated, "count", detail));
        }
        if checked()? && !self.plan.is_same(to.plan) {
            typecheck::own((self.plan, self.count), (to.plan, to.count))?;
        }
        let supply = Supply::Memory(self.layout().keep());
        let sink = Sink::Memory(to.layout().keep());
        // SAFETY: not more bytes than either side has; the rest is the caller's promise.
        unsafe { copy(&supply, &sink, bytes) };
        if bytes == room { Ok(()) } else { Err(unequal("count", rank, bytes, room)) }
    }
}

/// Whether types are compared.
fn checked() -> Result<bool> {
    Ok(Settings::get()?.check_types)
}

/// The error for a rank whose part has another size than ours.
pub(super) fn unequal(argument: &'static str, rank: usize, theirs: u64, ours: u64) -> Error {
    let detail = format!("rank {rank} takes part with {theirs} bytes, this rank with {ours}");
    Error::new(ErrorKind::Count, argument, detail)
}

/// As many parts as the communicator has ranks.
pub(super) fn check_parts(comm: &Communicator, parts: &[Part<'_>]) -> Result<()> {
    if parts.len() == comm.size() {
        return Ok(());
    }
    let detail = format!("{} for {} ranks", parts.len(), comm.size());
    Err(Error::new(ErrorKind::Argument, "parts", detail))
}

struct Pending {
    /// A receive that fails at once is kept like one that fails later: others may wait for what this
    /// rank sends after it.
    started: Result<Operation>,
    /// Rank and bytes of what a receive expects.
    expected: Option<(usize, u64)>,
}

/// Messages of a collective call that are in flight together.
pub(super) struct Batch<'a> {
    comm: &'a Communicator,
    tag: i32,
    pending: Vec<Pending>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(comm: &'a Communicator, tag: i32) -> Self {
        Self { comm, tag, pending: Vec::new() }
    }

    /// Starts to send a part.
    ///
    /// # Safety
    ///
    /// - Its elements are readable, and unchanged until the batch is finished or dropped.
    pub(super) unsafe fn send(&mut self, part: &Part<'_>, to: usize) -> Result<()> {
        // SAFETY: passed on.
        unsafe { self.send_as(part, to, OF_LAYOUT) }
    }

    /// Starts to send a part that has the types of `origin`, from which it was packed.
    ///
    /// # Safety
    /// As `send`.
    pub(super) unsafe fn send_packed(
        &mut self,
        part: &Part<'_>,
        origin: &Part<'_>,
        to: usize,
    ) -> Result<()> {
        let checked = checked()?;
        let types = if checked { of_message(origin.plan, origin.count) } else { UNKNOWN };
        // SAFETY: passed on.
        unsafe { self.send_as(part, to, types) }
    }

    /// Tells a rank that what it waits for has not come to this one either.
    pub(super) fn send_void(&mut self, to: usize) -> Result<()> {
        let nothing =
            Part { origin: std::ptr::null_mut(), plan: crate::commit::bytes()?, count: 0 };
        // SAFETY: no elements.
        unsafe { self.send_as(&nothing, to, VOID) }
    }

    /// # Safety
    /// As `send`.
    unsafe fn send_as(&mut self, part: &Part<'_>, to: usize, types: u32) -> Result<()> {
        let (layout, space) = (part.layout(), Space::Collective);
        // SAFETY: finishing and dropping end the operation; until then the caller promises.
        let started = unsafe { self.comm.start_send_as(&layout, to, self.tag, space, types)? };
        self.pending.push(Pending { started: Ok(started), expected: None });
        Ok(())
    }

    /// Starts to receive a part, of which every byte must come.
    ///
    /// # Safety
    ///
    /// - Its elements are writable, and nobody else's until the batch is finished or dropped.
    pub(super) unsafe fn receive(&mut self, part: &Part<'_>, from: usize) -> Result<()> {
        let (source, tag) = (Source::Rank(from), Tag::Is(self.tag));
        let bytes = part.bytes()?;
        // SAFETY: as in `send_as`.
        let started =
            unsafe { self.comm.start_receive(&part.layout(), source, tag, Space::Collective) };
        self.pending.push(Pending { started, expected: Some((from, bytes)) });
        Ok(())
    }

    /// Waits for all of them.
    ///
    /// # Errors
    /// The first one's; all have ended all the same.
    pub(super) fn finish(mut self) -> Result<()> {
        let mut failed = None;
        for Pending { started, expected } in std::mem::take(&mut self.pending) {
            let ended = started.and_then(|started| self.comm.finish(started));
            let ended = ended.and_then(|status| match expected {
                Some((rank, ours)) if status.bytes != ours => {
                    Err(unequal("count", rank, status.bytes, ours))
                }
                _ => Ok(()),
            });
            failed = failed.or(ended.err());
        }
        failed.map_or(Ok(()), Err)
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        for Pending { started, .. } in self.pending.drain(..) {
            if let Ok(Operation::Pending(id)) = started {
                self.comm.endpoint().detach(id);
            }
        }
    }
}
