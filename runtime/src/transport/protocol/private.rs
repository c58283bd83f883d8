//! Private copies: the receiver copies a message by system calls (CMA), from one run of the sender's private
//! memory directly into one run of its own private memory.
//!
//! The RTS contains the address of the data, and the receiver reads the data (`process_vm_readv`). Each byte
//! is copied only once, and the sender does other work meanwhile. `tuning.rs` finds out for which messages a
//! private copy is faster than chunks, for which both ranks work.
//!
//! The sender does not help, because no rank writes to the memory of another one. `../../request/private.rs` says why, and
//! finds out whether this rank may read.
//!
//! Invariant: lengths come only from the message, never from an address.

use super::CopyPlan;
use super::single_copy::{Copier, Far, Said, SingleCopies, Takes};
use super::types::Located;
use crate::message::envelope::{BYTES, Place, Space};
use crate::message::payload::Sink;
use crate::request::private::Denied;
use crate::sys::cma;
use crate::transport::choice::{Terms, tells_address};
use crate::transport::link::Tx;
use crate::{Plan, Result};
use std::ops::Range;
use typepack_engine::Elements;

/// The copier for messages from one run of private memory to another.
#[derive(Debug, Default)]
pub struct PrivateCopier;

/// The protocol of private copies.
pub type PrivateCopy = SingleCopies<PrivateCopier>;

impl Copier for PrivateCopier {
    const SPACE: Space = Space::Private;
    /// Number of bytes that a turn copies. With this value, a turn ends within about 100 us, and the cost
    /// of a system call (0.5 to 1 us) is small beside the time of the copy.
    const TURN: u64 = 1 << 20;

    fn place(
        terms: Terms,
        far: Far<'_>,
        _tx: &mut Tx,
        layout: &Elements<Plan>,
        bytes: u64,
    ) -> Result<Said> {
        if !layout.plan.is_contiguous()
            || !tells_address(terms.forced, bytes)
            || !far.fabric.memory_is_open()
        {
            return Ok(Said::Nothing);
        }
        let origin = layout.first() as u64;
        Ok(Said::Place(Place { space: Space::Private, number: BYTES, origin, count: bytes }))
    }

    fn takes(_plan: CopyPlan, _next: bool, to: &Sink, _bytes: u64) -> Takes {
        match to {
            Sink::Memory(to) if to.plan.is_contiguous() => Takes::Alone,
            _ => Takes::Not,
        }
    }

    fn can_read(&mut self, far: Far<'_>, _from: &Located) -> bool {
        far.fabric.reader_of(far.rank).is_some()
    }

    unsafe fn read(
        &mut self,
        far: Far<'_>,
        from: &Located,
        to: &Elements<Plan>,
        range: Range<u64>,
    ) -> std::result::Result<(), Denied> {
        let reader = far.fabric.reader_of(far.rank).ok_or(Denied)?;
        let len = (range.end - range.start) as usize;
        let at = |first: usize| [cma::Range { at: first.wrapping_add(range.start as usize), len }];
        // SAFETY: the receive is one run of memory, because `takes` accepts no other. The caller
        // guarantees that the bytes of `range` are valid and that no other rank writes to them (third
        // condition of the trait).
        let read = unsafe { reader.read(&at(to.first() as usize), &at(from.origin as usize)) };
        read.inspect_err(|Denied| far.fabric.refuse_reads(far.rank))
    }
}
