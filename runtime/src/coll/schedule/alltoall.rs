//! Alltoall in two ways.
//!
//! The direct way sends one message between every two ranks. Each rank starts with a different partner, so
//! that the ranks do not all send to one rank at once.
//!
//! The indirect way is Bruck's algorithm. With `n` ranks, each rank sends only `log2(n)` messages, rounded up,
//! and other ranks forward the parts. So a rank communicates with few other ranks, and a job of many ranks
//! needs little shared memory. Each part travels up to `log2(n)` times, so this way is only for short parts.
//! Every rank must choose the same way, so only [`Collective::AlltoallEqual`] can go the indirect way: its
//! parts have the same packed size on all ranks.

use crate::coll::Collective;
use crate::coll::collective::check_parts;
use crate::comm::Communicator;
use crate::commit::bytes;
use crate::schedule::program::{Builder, StepId};
use crate::settings::Settings;
use crate::{Plan, Result};
use typepack_engine::Elements;

/// Smallest number of ranks that exchange short parts indirectly. With fewer ranks, the indirect way saves
/// few messages.
const INDIRECT_RANKS: usize = 8;

/// Maximum packed size in bytes of a part that travels indirectly. A message of the indirect way has up to
/// half as many parts as there are ranks.
const INDIRECT_BYTES: u64 = 256;

impl Communicator {
    /// Copies `send[j]` of rank `i` into `receive[i]` of rank `j`. If `send` is `None`, every rank exchanges
    /// the parts of `receive` in place. Collective.
    ///
    /// # Safety
    ///
    /// - Until the call returns, the elements of `send` are readable and nobody changes them.
    /// - Until the call returns, the elements of `receive` are writable (and also readable if `send` is
    ///   `None`), and nobody else accesses them.
    /// - The parts of `receive` overlap neither each other nor the parts of `send`.
    ///
    /// # Errors
    /// Returns `ErrorKind::Argument` if the number of parts is not the number of ranks,
    /// `ErrorKind::Truncated` or `ErrorKind::Count` if the sender and the receiver of a part pass different
    /// packed sizes, `ErrorKind::NoMemory` if memory runs out, `ErrorKind::ProcAborted` if a rank has died,
    /// and the errors of [`run_raw`](Self::run_raw) that all collective calls share.
    #[doc(alias = "MPI_Alltoall")]
    #[doc(hidden)]
    #[doc(alias = "MPI_Alltoallv")]
    #[doc(alias = "MPI_Alltoallw")]
    pub unsafe fn alltoall_raw(
        &self,
        send: Option<&[Elements<&Plan>]>,
        receive: &[Elements<&Plan>],
    ) -> Result<()> {
        // SAFETY: the caller guarantees that, until `run_raw` returns, `send` is readable and unchanged
        // (first condition of `# Safety`), `receive` is writable, and readable if `send` is `None`, and
        // nobody else accesses it (second condition), and the parts do not overlap (third condition).
        // `Collective::Alltoall` names no other memory and no operation.
        unsafe { self.run_raw(&Collective::Alltoall { send, receive }) }
    }

    /// Sends `lengths[i]` elements of `sent` to rank `i`, and receives `counts[i]` elements from rank `i`.
    /// Both slices have the elements of rank 0 first, then those of rank 1, and so on.
    pub(in crate::coll) fn exchange_slices<T: bytemuck::Pod>(
        &self,
        sent: &mut [T],
        lengths: &[usize],
        received: &mut [T],
        counts: &[usize],
    ) -> Result<()> {
        let plan = bytes()?;
        let parts = |slice: &mut [T], lengths: &[usize]| -> Vec<Elements<&'static Plan>> {
            assert_eq!(lengths.iter().sum::<usize>(), slice.len());
            let mut origin: *mut u8 = slice.as_mut_ptr().cast();
            let part = |&length: &usize| {
                let bytes = length * size_of::<T>();
                let part = Elements { origin, plan, count: bytes as u64 };
                origin = origin.wrapping_add(bytes);
                part
            };
            lengths.iter().map(part).collect()
        };
        let (send, receive) = (parts(sent, lengths), parts(received, counts));
        // SAFETY: the parts of `send` cover the elements of `sent`, and those of `receive` the elements of
        // `received` (`parts` has compared the lengths). Both slices are mutably borrowed until the call
        // returns, so nobody else accesses them, and they do not overlap.
        unsafe {
            self.run_unchecked(&Collective::Alltoall { send: Some(&send), receive: &receive })
        }
    }

    pub(in crate::coll) fn alltoall_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        send: Option<&[Elements<&'a Plan>]>,
        receive: &[Elements<&'a Plan>],
    ) -> Result<()> {
        check_parts(self, receive)?;
        let Some(send) = send else { return self.alltoall_in_place_steps(steps, receive) };
        check_parts(self, send)?;
        let (rank, size) = (self.rank(), self.size());
        for distance in 1..size {
            let from = (rank + size - distance) % size;
            steps.receive(&receive[from], self.peer(from)?)?;
        }
        for distance in 1..size {
            let to = (rank + distance) % size;
            steps.send(&send[to], self.peer(to)?)?;
        }
        steps.copy(&send[rank], &receive[rank], rank)?;
        Ok(())
    }

    /// Adds the steps of an exchange in place to the schedule. For the part of every other rank, one step
    /// packs the old contents into a copy, and this rank then sends the copy. This rank receives the new
    /// contents into the part only after the copy is complete. Its own part stays as it is.
    fn alltoall_in_place_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        parts: &[Elements<&'a Plan>],
    ) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        let (byte, checked) = (bytes()?, Settings::get()?.check_types);
        let others = || (1..size).map(|distance| (rank + distance) % size);
        let mut packed = Vec::with_capacity(size);
        for other in others() {
            let count = parts[other].bytes()?;
            let copy = Elements { origin: steps.scratch(byte, count), plan: byte, count };
            packed.push((copy, steps.pack(&parts[other], &copy, rank)?));
        }
        for (other, (copy, made)) in others().zip(&packed) {
            let received = steps.receive(&parts[other], self.peer(other)?)?;
            steps.after(received, *made);
            let sent = steps.send_packed(copy, &parts[other], self.peer(other)?, checked)?;
            steps.after(sent, *made);
        }
        Ok(())
    }

    /// Adds the steps of an exchange in which all parts of all ranks have the same packed size.
    pub(in crate::coll) fn alltoall_equal_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        send: Option<&[Elements<&'a Plan>]>,
        receive: &[Elements<&'a Plan>],
    ) -> Result<()> {
        check_parts(self, receive)?;
        let size = receive[self.rank()].bytes()?;
        // A message of the indirect way has parts of several ranks, whose types cannot be compared. So the
        // direct way is taken if types are checked.
        let short = size > 0 && size <= INDIRECT_BYTES && self.size() >= INDIRECT_RANKS;
        if !short || Settings::get()?.check_types {
            return self.alltoall_steps(steps, send, receive);
        }
        if let Some(send) = send {
            check_parts(self, send)?;
        }
        self.alltoall_indirect_steps(steps, (send, receive), size)
    }

    /// Adds the steps of Bruck's algorithm for parts of `size` packed bytes.
    ///
    /// Each rank has a table of as many entries as there are ranks. At first, entry `i` of rank `r` holds
    /// the part of `r` for rank `r + i` (all rank numbers are modulo the number of ranks). In round `k`,
    /// each rank sends the entries in whose number `i` bit `k` is 1, and the rank `2^k` above it receives
    /// them and stores them in its own entries with the same numbers. So in the end the content of entry
    /// `i` has moved by `i` ranks: entry `i` of rank `r` holds the part of rank `r - i` for `r`.
    fn alltoall_indirect_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        (send, receive): (Option<&[Elements<&'a Plan>]>, &[Elements<&'a Plan>]),
        size: u64,
    ) -> Result<()> {
        let (rank, ranks, byte) = (self.rank(), self.size(), bytes()?);
        let at = |base: *mut u8, entry: usize, entries: usize| Elements {
            origin: base.wrapping_add(entry * size as usize),
            plan: byte,
            count: entries as u64 * size,
        };
        // All copies within this rank form a chain, in which each copy waits for the copy before it.
        let mut last = None;
        let table = steps.scratch(byte, ranks as u64 * size);
        for entry in 1..ranks {
            let part = &send.unwrap_or(receive)[(rank + entry) % ranks];
            let step = steps.pack(part, &at(table, entry, 1), rank)?;
            chain(steps, &mut last, step);
        }
        if let Some(send) = send {
            let step = steps.copy(&send[rank], &receive[rank], rank)?;
            chain(steps, &mut last, step);
        }
        let mut bit = 1;
        while bit < ranks {
            // The entries in whose number this bit is 1, as runs of consecutive entries: the first entry of
            // each run, and the number of its entries.
            let runs =
                || (bit..ranks).step_by(2 * bit).map(|first| (first, bit.min(ranks - first)));
            let entries = runs().map(|(_, entries)| entries).sum::<usize>();
            let outgoing = steps.scratch(byte, entries as u64 * size);
            let incoming = steps.scratch(byte, entries as u64 * size);
            let (to, from) = ((rank + bit) % ranks, (rank + ranks - bit) % ranks);
            let received = steps.receive(&at(incoming, 0, entries), self.peer(from)?)?;
            let mut packed = 0;
            for (first, entries) in runs() {
                let step =
                    steps.pack(&at(table, first, entries), &at(outgoing, packed, entries), rank)?;
                chain(steps, &mut last, step);
                packed += entries;
            }
            let sent = steps.send(&at(outgoing, 0, entries), self.peer(to)?)?;
            if let Some(last) = last {
                steps.after(sent, last);
            }
            let mut unpacked = 0;
            for (first, entries) in runs() {
                let step = steps.pack(
                    &at(incoming, unpacked, entries),
                    &at(table, first, entries),
                    rank,
                )?;
                if unpacked == 0 {
                    steps.after(step, received);
                }
                chain(steps, &mut last, step);
                unpacked += entries;
            }
            bit *= 2;
        }
        for entry in 1..ranks {
            let part = &receive[(rank + ranks - entry) % ranks];
            let step = steps.pack(&at(table, entry, 1), part, rank)?;
            chain(steps, &mut last, step);
        }
        Ok(())
    }
}

/// Makes `step` wait for the previous step of a chain, and makes `step` the last step of the chain. `step`
/// fails if the previous step fails.
fn chain(steps: &mut Builder<'_, '_>, last: &mut Option<StepId>, step: StepId) {
    if let Some(last) = last.replace(step) {
        steps.after(step, last);
    }
}
