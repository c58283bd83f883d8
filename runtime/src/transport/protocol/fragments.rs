//! Fragments: the sender writes a message of medium length to the ring fragment by fragment, without a question to the
//! receiver. The receiver unpacks the first fragments while the sender packs the next ones.
//!
//! Compared with the pipeline, such a message saves the way of an RTS and of a CTS. The data of a message that no
//! receive has matched is copied into private memory of the receiver (`endpoint/engine/fragments.rs`), like an eager
//! message, and counts against the same bound. So only messages of at most [`FRAGMENTED_MAX`] bytes go out in
//! fragments, and only through a ring with a large payload area, which has room for several of them.
//!
//! The receiver decides which messages go out in fragments, and with which copy method, by measurement
//! (`fragment_choice.rs`). It tells the sender in an Allow. Until then, messages begin with an RTS.
//!
//! Invariant: the fragments of a message follow each other in the ring, with no other envelope between them. A message
//! that finds the ring full stays at the head of the queue (`link.rs`), and no other envelope overtakes it.

use super::in_flight::{RequestTable, SendStage};
use super::{Carrier, CopyPlan, Matched, Offered, Protocol, Work};
use crate::message::envelope::{Envelope, FRAGMENT_MAX};
use crate::message::label::{Label, Shape, Status};
use crate::settings::Forced;
use crate::transport::choice::Terms;
use crate::transport::choice::fragment_choice::{Beginning, CLASSES, class};
use crate::transport::link::fabric::Fabric;
use crate::transport::link::failure::lost;
use crate::transport::link::ready::Ready;
use crate::transport::link::{Link, Stage, Tx};
use crate::{Plan, Result};
use std::ops::Range;
use typepack_engine::Elements;
use typepack_engine::contiguous::Method;

/// Number of bytes in the first fragment. A short first fragment lets the receiver begin early. The further fragments
/// have [`FRAGMENT_MAX`] bytes, because every fragment costs the sender one way of a cache line: the line of its
/// envelope.
///
/// Measured on a Zen 5 with a C program of two threads, 64 KiB through a ring of 2 MiB by `rep movsb`, cores 190 ns
/// apart, in us: fragments of 4 KiB 4.7, of 8 KiB 3.3, of 16 KiB 3.0, of 32 KiB 3.1; one of 8 KiB and then 16 KiB 2.8.
const FRAGMENT_FIRST: u64 = 8 << 10;

/// A message of at most this number of bytes goes out in fragments also if it could take turns with others. The time of
/// an RTS and of a CTS is more than the turns would save, because the lines of such messages stay in the second-level
/// cache.
const TURNS_MIN: u64 = 32 << 10;

/// The messages in fragments between this rank and one other rank.
#[derive(Debug, Default)]
pub struct Fragments {
    /// What the other rank has told this rank: how messages of each size class should begin.
    allowed: [Beginning; CLASSES],
    /// What this rank has told the other rank.
    advertised: [Beginning; CLASSES],
}

/// Returns the length of the fragment that begins at byte `done` of a message of `total` bytes.
fn fragment_bytes(done: u64, total: u64) -> u64 {
    let len = if done == 0 { FRAGMENT_FIRST } else { FRAGMENT_MAX as u64 };
    len.min(total - done)
}

impl Fragments {
    /// Remembers what the other rank has told: how messages of `bytes` bytes should begin.
    pub fn allow(&mut self, bytes: u64, beginning: Beginning) {
        if let Some(class) = class(bytes) {
            self.allowed[class] = beginning;
        }
    }

    /// Returns whether the other rank knows that messages of `bytes` bytes should begin so, or need not know.
    #[inline]
    pub fn knows(&self, bytes: u64, beginning: Beginning) -> bool {
        class(bytes).is_none_or(|class| self.advertised[class] == beginning)
    }

    /// Notes that this rank has told the other rank how messages of `bytes` bytes should begin.
    pub fn advertised(&mut self, bytes: u64, beginning: Beginning) {
        if let Some(class) = class(bytes) {
            self.advertised[class] = beginning;
        }
    }

    /// Returns whether the pieces of a message of `bytes` bytes take turns with those of other messages: it is sparse,
    /// and this rank has other operations under way (`busy`). Such a message goes through chunks, because fragments
    /// take no turns. `cleared.rs` says what the turns are good for.
    pub fn takes_turns(bytes: u64, busy: bool, shape: impl FnOnce() -> Shape) -> bool {
        busy && bytes > TURNS_MIN && shape() == Shape::Sparse
    }

    /// Returns the copy method if a message goes out in fragments now. `other_way` says whether
    /// another way is better: its data lies in the shared heap, from which the receiver may copy it in place, or the
    /// message takes turns ([`Fragments::takes_turns`]). The caller has checked that its sender does not wait for the
    /// match.
    pub fn begin(&self, tx: &Tx, terms: Terms, label: &Label, other_way: bool) -> Option<Method> {
        let class = class(label.bytes)?;
        if !tx.is_large() || !tx.allows(label) {
            return None;
        }
        match terms.forced {
            Forced::Fragments => Some(terms.copy.unwrap_or(Method::Vector)),
            Forced::Nothing if terms.eager_limit > 0 && !other_way => self.allowed[class],
            _ => None,
        }
    }

    /// Sends a message in fragments if it may go out in fragments now and no other message waits in the queue of
    /// `link`. Returns the number of bytes that are in the ring and the copy method, or `None` if the message must take
    /// another way. `busy` says whether this rank has other operations under way.
    ///
    /// # Safety
    ///
    /// - The layout's memory is readable, and `label.bytes` is the packed size of its elements.
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if memory ran out, and `ErrorKind::Other` if the receiver broke the protocol.
    #[inline(never)]
    pub unsafe fn send(
        &self,
        link: &mut Link,
        (fabric, stage, terms): (&Fabric, &mut Stage, Terms),
        layout: &Elements<&Plan>,
        label: Label,
        busy: bool,
    ) -> Result<Option<(u64, Method)>> {
        let tx = link.contact(fabric)?;
        if !tx.is_idle() {
            return Ok(None);
        }
        let shape = || Stage::shape(layout.plan, layout.count);
        let other_way = fabric.holds(layout.first()) || Self::takes_turns(label.bytes, busy, shape);
        let Some(method) = self.begin(tx, terms, &label, other_way) else { return Ok(None) };
        let how = (shape(), method);
        let done = write(tx, fabric, label, 0, method, |len, range, to| {
            // SAFETY: `write` passes a range of `len` bytes within the message, and packing a range writes exactly its
            // length (first condition of `fill`). `to` is room for `len` bytes in the ring (second condition). The
            // layout's memory is readable (condition of `# Safety`), and no user layout overlaps the ring or the stage.
            unsafe { stage.fill(how, len, to, |to| layout.pack(range, to)) };
        })?;
        Ok(Some((done, method)))
    }
}

/// Writes the fragments of a message to the ring, from byte `done` on, while the ring has room. `pack` gets the length
/// of a fragment, its range in the message and the address of its room in the ring, and writes the packed bytes there.
/// Returns the number of bytes of the message that are in the ring.
///
/// # Errors
/// Returns `ErrorKind::Other` if the receiver broke the protocol.
#[inline]
fn write(
    tx: &mut Tx,
    fabric: &Fabric,
    label: Label,
    mut done: u64,
    method: Method,
    mut pack: impl FnMut(usize, Range<u64>, *mut u8),
) -> Result<u64> {
    let total = label.bytes;
    while done < total {
        let len = fragment_bytes(done, total);
        let Some(room) = tx.reserve(fabric, len as usize)? else { return Ok(done) };
        pack(len as usize, done..done + len, tx.area.payload(room.offset));
        // The conversions lose nothing, because a fragment has at most `FRAGMENT_MAX` bytes.
        let envelope = match done {
            0 => Envelope::First(label, len as u32, method),
            _ => Envelope::Fragment(len as u32),
        };
        tx.publish(fabric, room, &envelope);
        done += len;
    }
    let place = tx.next_payload(FRAGMENT_MAX);
    tx.ready = Ready::payload(place, tx.run_ahead(total as usize)).by(method);
    Ok(done)
}

impl Protocol for Fragments {
    /// Writes fragments of the send `id`, whose stage is [`SendStage::Fragments`], while the ring has room for them.
    /// After the last fragment the send is complete.
    fn offer<R: RequestTable>(
        &mut self,
        work: &mut Work<'_, R>,
        link: &mut Link,
        id: u64,
    ) -> Result<Offered> {
        let tx = link.tx()?;
        let Some(send) = work.requests.send(id) else { return Err(lost("a send", id)) };
        let SendStage::Fragments(done, method) = send.stage else { return Ok(Offered::Declined) };
        let (label, supply) = (send.label, &send.supply);
        let how = (Stage::shape_of(supply), method);
        let done = write(tx, work.fabric, label, done, method, |len, range, to| {
            // SAFETY: `write` passes a range of `len` bytes within the message, and packing a range writes exactly its
            // length (first condition of `fill`). `to` is room for `len` bytes in the ring (second condition). The
            // memory of the supply is valid (invariant of `payload.rs`) and overlaps neither the ring nor the stage.
            unsafe { work.stage.fill(how, len, to, |to| supply.pack(range, to)) };
        })?;
        if done < label.bytes {
            send.stage = SendStage::Fragments(done, method);
            return Ok(Offered::NoRoom);
        }
        work.traffic.carried(Carrier::Fragments, &label, send.dest);
        let status = Status { source: work.fabric.rank(), tag: label.tag, bytes: label.bytes };
        work.requests.complete(id, Ok(status));
        Ok(Offered::Written)
    }

    /// Declines: the fragments of a message reach its receive without this call (`endpoint/engine/fragments.rs`).
    fn matched<R: RequestTable>(
        &mut self,
        _work: &mut Work<'_, R>,
        _link: &mut Link,
        _matched: &mut Matched,
        _plan: CopyPlan,
    ) -> Result<bool> {
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::envelope::FRAGMENTED_MAX;

    #[test]
    fn parts_cover_the_message() {
        for total in [1, FRAGMENT_FIRST, FRAGMENT_FIRST + 1, 65_536, 100_000, FRAGMENTED_MAX as u64]
        {
            let (mut done, mut fragments) = (0, Vec::new());
            while done < total {
                let len = fragment_bytes(done, total);
                assert!(len > 0 && len <= FRAGMENT_MAX as u64);
                done += len;
                fragments.push(len);
            }
            assert_eq!(done, total);
            let inner = &fragments[..fragments.len() - 1];
            assert!(inner.is_sorted() && fragments[0] <= FRAGMENT_FIRST, "{fragments:?}");
        }
    }

    #[test]
    fn each_size_class_begins_as_the_receiver_says() {
        let mut fragments = Fragments::default();
        let of =
            |fragments: &Fragments, bytes| class(bytes).and_then(|class| fragments.allowed[class]);
        fragments.allow(65_536, Some(Method::Repeat));
        assert_eq!(of(&fragments, 100_000), Some(Method::Repeat));
        assert_eq!((of(&fragments, 65_535), of(&fragments, FRAGMENTED_MAX as u64)), (None, None));
        fragments.allow(FRAGMENTED_MAX as u64 + 1, Some(Method::Vector));
        fragments.allow(65_536, None);
        assert_eq!(of(&fragments, 65_536), None);
        // Only news is told.
        assert!(fragments.knows(65_536, None) && !fragments.knows(65_536, Some(Method::Pages)));
        fragments.advertised(65_536, Some(Method::Pages));
        assert!(!fragments.knows(65_536, None) && fragments.knows(65_536, Some(Method::Pages)));
        assert!(fragments.knows(FRAGMENTED_MAX as u64 + 1, Some(Method::Pages)));
    }
}
