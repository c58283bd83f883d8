//! One blocking call, as one rank makes it through the cells.
//!
//! `mod.rs` makes a [`Turn`] for each blocking call, and `fold.rs` combines the data of reductions.
//!
//! A rank that waits first looks at the cells for a while, then drives the progress of all messages, and then sleeps on
//! its doorbell (`endpoint/`). A rank that has published its data wakes the ranks that can now go on:
//!
//! - In a call in which every rank waits for all others, each rank that has seen all cells wakes those that still
//!   sleep in this call. So only the last rank to arrive wakes others.
//! - In a call in which ranks wait for some of the others, each rank that publishes wakes the ranks that wait for it.
//!   If waiting ranks sleep at once, because the job has more ranks than CPUs, then a rank wakes a waiting rank only if
//!   the waiting rank now has all cells for which it waits.
//!
//! A call ends for this rank when its [`Turn`] is dropped, also after an error or a panic of a user's function. The
//! rank then reads no cell of this call any more.

use super::super::collective::check_parts;
use super::super::gather::missing;
use super::block::LENGTH;
use super::{Cells, is_permitted};
use crate::coll::Collective;
use crate::comm::Communicator;
use crate::message::payload::{LayoutRef, copy_layout};
use crate::schedule::Part;
use crate::schedule::table::Place;
use crate::shm::cells::{Seat, WORDS};
use crate::{Error, ErrorKind, Result};

/// Number of looks at a cell before a rank drives the progress of messages. If ranks sleep at once, a rank looks only
/// once.
const LOOKS: usize = 128;

/// Maximum number of bytes of data in a cell.
pub(super) const INLINE: u64 = (WORDS * 8) as u64;

/// The head of a cell whose owner has failed. A head other than `FAILED` and [`BY_MESSAGE`] is the number of bytes of
/// data.
const FAILED: u64 = u64::MAX;

/// The head of a cell whose owner sends its data by a message.
const BY_MESSAGE: u64 = u64::MAX - 1;

/// Memory for the data of a cell.
#[derive(Clone, Copy)]
#[repr(align(16))]
pub(super) struct Words(pub [u64; WORDS]);

/// The call with one number.
pub(super) struct Turn<'t> {
    pub comm: &'t Communicator,
    pub cells: &'t mut Cells,
    pub number: u64,
    rank: usize,
    size: usize,
    published: bool,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let Cells { seat, block, world, .. } = &*self.cells;
        if seat.end(block, self.number) {
            for rank in seat.sleepers_for_room(block) {
                self.comm.endpoint().ring(world[rank]);
            }
        }
    }
}

impl<'t> Turn<'t> {
    /// Begins call `number`.
    pub(super) fn new(comm: &'t Communicator, cells: &'t mut Cells, number: u64) -> Self {
        let (rank, size) = (comm.rank(), comm.size());
        Self { comm, cells, number, rank, size, published: false }
    }

    /// Makes the call.
    ///
    /// # Safety
    ///
    /// - The conditions of [`Communicator::run_raw`] hold.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::run_raw`].
    pub(super) unsafe fn run(mut self, place: Place, call: &Collective<'_>) -> Result<()> {
        // SAFETY: the caller guarantees the conditions of `run_raw`, and `call` has the same.
        let result = unsafe { self.call(place, call) };
        if result.is_err() {
            self.fail();
        }
        result
    }

    /// Tells the ranks that wait for this rank's data that there is none.
    pub(super) fn fail(&mut self) {
        // Publish only if there is room: otherwise this rank would have to wait for others, which may not come.
        if !self.published && self.cells.seat.has_room(&self.cells.block, self.number) {
            self.publish(FAILED, &[]);
            self.wake_others();
        }
    }

    /// # Safety
    ///
    /// - The conditions of [`Communicator::run_raw`] hold.
    #[inline]
    unsafe fn call(&mut self, place: Place, call: &Collective<'_>) -> Result<()> {
        let (comm, limit) = (self.comm, LENGTH as u64);
        match *call {
            _ if !is_permitted(call) => {
                // SAFETY: the caller guarantees the conditions of `run_raw`, which `run_by_messages` has too.
                unsafe { comm.run_by_messages(place, call) }
            }
            Collective::Barrier => self.barrier(),
            Collective::Broadcast { ref part, root } if part.bytes()? <= limit => {
                let root = comm.root(root)?;
                // SAFETY: the caller guarantees the conditions of `run_raw`: `part` is readable at the root and
                // writable at the other ranks, and nobody else accesses it, until the call returns.
                unsafe { self.broadcast(part, root) }
            }
            Collective::Gather { ref mine, parts, root } => {
                let root = comm.root(root)?;
                // SAFETY: the caller guarantees the conditions of `run_raw`: `mine` is readable, `parts` are writable
                // at the root, and nobody else accesses them, until the call returns.
                unsafe { self.gather(place, mine.as_ref(), parts, root) }
            }
            Collective::Allgather { ref mine, parts } if all_fit(parts, limit)? => {
                // SAFETY: the caller guarantees the conditions of `run_raw`: `mine` is readable, `parts` are readable
                // and writable, and nobody else accesses them, until the call returns.
                unsafe { self.allgather(mine.as_ref(), parts) }
            }
            Collective::AlltoallEqual { send, receive }
                if receive.first().map_or(Ok(0), Part::bytes)?
                    <= limit / (self.size as u64 - 1) =>
            {
                // SAFETY: the caller guarantees the conditions of `run_raw`: `send` is readable, `receive` is writable,
                // and readable if `send` is `None`, and nobody else accesses them, until the call returns.
                unsafe { self.alltoall(send, receive) }
            }
            Collective::Reduce { send, recv, plan, count, combine, root }
                if plan.packed_bytes(count)? <= limit =>
            {
                let root = comm.root(root)?;
                // SAFETY: the caller guarantees the conditions of `run_raw`, which for this call are those of
                // `reduce_raw`.
                unsafe { self.reduce(send, &Part { origin: recv, plan, count }, combine, root) }
            }
            Collective::Allreduce { send, recv, plan, count, combine }
                if plan.packed_bytes(count)? <= limit =>
            {
                // SAFETY: the caller guarantees the conditions of `run_raw`, which for this call are those of
                // `allreduce_raw`.
                unsafe { self.allreduce(send, &Part { origin: recv, plan, count }, combine) }
            }
            Collective::Scan { send, recv, plan, count, combine }
                if plan.packed_bytes(count)? <= limit =>
            {
                // SAFETY: the caller guarantees the conditions of `run_raw`, which for this call are those of
                // `scan_raw`.
                unsafe { self.scan(send, &Part { origin: recv, plan, count }, combine, true) }
            }
            Collective::Exscan { send, recv, plan, count, combine }
                if plan.packed_bytes(count)? <= limit =>
            {
                // SAFETY: the caller guarantees the conditions of `run_raw`, which for an exclusive scan are those of
                // `scan_raw` too.
                unsafe { self.scan(send, &Part { origin: recv, plan, count }, combine, false) }
            }
            _ => {
                // SAFETY: the conditions of `run_by_messages` are those of this function.
                unsafe { comm.run_by_messages(place, call) }
            }
        }
    }

    // ---- waiting and waking ----

    /// Waits until `look` returns an answer.
    #[inline]
    fn wait<R>(
        &mut self,
        mut look: impl FnMut(&mut Seat, &super::Block) -> Option<R>,
    ) -> Result<R> {
        let endpoint = self.comm.endpoint();
        let Cells { seat, block, .. } = &mut *self.cells;
        let looks = if endpoint.sleeps_at_once() { 1 } else { LOOKS };
        for _ in 0..looks {
            if let Some(answer) = look(seat, block) {
                return Ok(answer);
            }
            std::hint::spin_loop();
        }
        seat.waits(block, self.number);
        let answer = endpoint.attend_outside(|| look(seat, block));
        seat.has_waited(block);
        answer
    }

    /// Waits for the cell of rank `from`, and returns its head.
    #[inline]
    fn wait_for(&mut self, from: usize) -> Result<u64> {
        let number = self.number;
        self.wait(|seat, block| seat.arrived(block, from, number))
    }

    /// Waits for the cells of all ranks below `end` except this rank.
    #[inline]
    pub(super) fn wait_for_all(&mut self, end: usize) -> Result<()> {
        let (number, rank) = (self.number, self.rank);
        let mut next = 0;
        self.wait(|seat, block| {
            while next < end && (next == rank || seat.arrived(block, next, number).is_some()) {
                next += 1;
            }
            (next == end).then_some(())
        })
    }

    /// Waits for the cells of all other ranks, and then wakes the ranks that still sleep in this call.
    #[inline]
    fn meet(&mut self) -> Result<()> {
        self.wait_for_all(self.size)?;
        self.cells.seat.all_have_begun(self.number);
        self.wake_others();
        Ok(())
    }

    /// Waits until this rank may write to its cell of this call.
    #[inline]
    fn room(&mut self) -> Result<()> {
        let Cells { seat, block, .. } = &mut *self.cells;
        if seat.has_room(block, self.number) {
            return Ok(());
        }
        seat.waits_for_room(block);
        let number = self.number;
        let room =
            self.comm.endpoint().attend_outside(|| seat.has_room(block, number).then_some(()));
        seat.has_waited(block);
        room
    }

    fn ring(&self, rank: usize) {
        self.comm.endpoint().ring(self.cells.world[rank]);
    }

    /// Wakes the other ranks that wait in this call. If waiting ranks do not sleep at once, rings all other ranks.
    #[inline]
    fn wake_others(&self) {
        if !self.comm.endpoint().sleeps_at_once() {
            (0..self.size).filter(|rank| *rank != self.rank).for_each(|rank| self.ring(rank));
            return;
        }
        let Cells { seat, block, .. } = &*self.cells;
        seat.sleepers(block, self.number).for_each(|rank| self.ring(rank));
    }

    /// Wakes each other rank from `first` on that waits in this call and now has all cells that it needs: those of all
    /// ranks below `end(rank)`. If waiting ranks do not sleep at once, rings all other ranks from `first` on.
    #[inline]
    fn wake_if_complete(&mut self, first: usize, end: impl Fn(usize) -> usize) {
        if !self.comm.endpoint().sleeps_at_once() {
            (first..self.size).filter(|rank| *rank != self.rank).for_each(|rank| self.ring(rank));
            return;
        }
        let number = self.number;
        let Cells { seat, block, .. } = &mut *self.cells;
        // The ranks that sleep, as bits. `MOST` in `mod.rs` is less than 64.
        let sleepers = seat.sleepers(block, number).fold(0u64, |bits, rank| bits | 1 << rank);
        for rank in (first..self.size).filter(|rank| sleepers >> rank & 1 == 1) {
            let mut others = (0..end(rank)).filter(|other| *other != rank);
            let Cells { seat, block, .. } = &mut *self.cells;
            if others.all(|other| seat.arrived(block, other, number).is_some()) {
                self.ring(rank);
            }
        }
    }

    // ---- data ----

    fn publish(&mut self, head: u64, data: &[u64]) {
        self.cells.seat.publish(&self.cells.block, self.number, head, data);
        self.published = true;
    }

    /// Publishes the data of `part`, which has `bytes` packed bytes, at most [`LENGTH`].
    ///
    /// # Safety
    ///
    /// - The elements of `part` are readable, and nobody changes them until the function returns.
    #[inline]
    unsafe fn put(&mut self, part: &Part<'_>, bytes: u64) -> Result<()> {
        self.room()?;
        let layout = layout(part);
        if bytes <= INLINE {
            let mut words = Words([0; WORDS]);
            // SAFETY: `bytes` is the packed size of `part`, whose elements are readable (condition of `# Safety`).
            // `words` has `INLINE` bytes, and is a local variable.
            unsafe { layout.pack(0..bytes, words.0.as_mut_ptr().cast()) };
            self.publish(bytes, &words.0[..bytes.div_ceil(8) as usize]);
        } else {
            // SAFETY: `bytes` is the packed size of `part`, whose elements are readable (condition of `# Safety`), and
            // is at most `LENGTH`, the size of the buffer. No other rank reads the buffer, because there is room, and
            // it lies in memory that only this file uses.
            unsafe { layout.pack(0..bytes, self.cells.block.buffer(self.rank, self.number)) };
            self.publish(bytes, &[]);
        }
        Ok(())
    }

    /// Returns the address of the `bytes` bytes of data of rank `from`, whose cell has arrived: in `words`, to which
    /// short data are copied, or in the buffer of that rank.
    #[inline]
    pub(super) fn data(&self, from: usize, bytes: u64, words: &mut Words) -> *const u8 {
        if bytes <= INLINE {
            words.0 = Seat::data(&self.cells.block, from, self.number);
            words.0.as_ptr().cast()
        } else {
            self.cells.block.buffer(from, self.number)
        }
    }

    /// Copies the data of rank `from`, whose cell has arrived with this head, to `part`.
    ///
    /// # Safety
    ///
    /// - The elements of `part` are writable, and nobody else accesses them until the function returns.
    #[inline]
    unsafe fn take(&self, from: usize, head: u64, part: &Part<'_>) -> Result<()> {
        let bytes = part.bytes()?;
        check(from, head, bytes)?;
        let mut words = Words([0; WORDS]);
        let data = self.data(from, bytes, &mut words);
        // SAFETY: `bytes` is the packed size of `part`, whose elements are writable (condition of `# Safety`). `data`
        // has `bytes` bytes: at most `INLINE` in `words`, or at most `LENGTH` in the buffer, because the owner of the
        // cell has published this number of bytes (`check`), and `put` publishes at most `LENGTH` bytes.
        unsafe { layout(part).unpack(0..bytes, data) };
        Ok(())
    }

    /// Returns the head of the cell of rank `from`, which has arrived.
    fn head(&mut self, from: usize) -> Result<u64> {
        let Cells { seat, block, .. } = &mut *self.cells;
        seat.arrived(block, from, self.number).ok_or_else(|| {
            let detail = format!("rank {from} has taken back its data");
            Error::new(ErrorKind::Other, "comm", detail)
        })
    }

    /// Checks that the cells of all ranks below `end` except this rank have `bytes` bytes.
    pub(super) fn check_all(&mut self, end: usize, bytes: u64) -> Result<()> {
        (0..end).filter(|from| *from != self.rank).try_for_each(|from| {
            let Cells { seat, block, .. } = &mut *self.cells;
            check(from, seat.arrived(block, from, self.number).unwrap_or(FAILED), bytes)
        })
    }

    // ---- the calls ----

    fn barrier(&mut self) -> Result<()> {
        self.room()?;
        self.publish(0, &[]);
        self.meet()
    }

    /// # Safety
    ///
    /// - The elements of `part` are readable at the root and writable at the other ranks, and nobody else accesses
    ///   them until the function returns.
    #[inline]
    unsafe fn broadcast(&mut self, part: &Part<'_>, root: usize) -> Result<()> {
        if self.rank == root {
            // SAFETY: this rank is the root, so the elements are readable (condition of `# Safety`).
            unsafe { self.put(part, part.bytes()?)? };
            self.wake_others();
            return Ok(());
        }
        let head = self.wait_for(root)?;
        // SAFETY: this rank is not the root, so the elements are writable (condition of `# Safety`).
        unsafe { self.take(root, head, part) }
    }

    /// # Safety
    ///
    /// - The elements of `mine` are readable, those of `parts` at the root are writable, and nobody else accesses
    ///   them until the function returns.
    unsafe fn gather(
        &mut self,
        place: Place,
        mine: Option<&Part<'_>>,
        parts: &[Part<'_>],
        root: usize,
    ) -> Result<()> {
        let (comm, rank) = (self.comm, self.rank);
        if rank != root {
            let mine = mine.ok_or_else(|| missing(rank, root))?;
            let bytes = mine.bytes()?;
            if bytes <= LENGTH as u64 {
                // SAFETY: the elements of `mine` are readable (condition of `# Safety`).
                unsafe { self.put(mine, bytes)? };
            } else {
                self.room()?;
                self.publish(BY_MESSAGE, &[]);
            }
            let size = self.size;
            self.wake_if_complete_one(root, size);
            if bytes <= LENGTH as u64 {
                return Ok(());
            }
            let call = Collective::Gather { mine: Some(*mine), parts, root: root.into() };
            // SAFETY: the caller guarantees the conditions of `run_raw` for `mine` (condition of `# Safety`).
            return unsafe { comm.run_by_messages(place, &call) };
        }
        check_parts(comm, parts)?;
        self.wait_for_all(self.size)?;
        self.cells.seat.all_have_begun(self.number);
        let mut result = Ok(());
        let mut long = Vec::new();
        for from in 0..self.size {
            let taken = if from == rank {
                // SAFETY: `mine` and this rank's part are valid (condition of `# Safety`).
                mine.map_or(Ok(()), |mine| unsafe { copy_own(mine, &parts[rank], rank) })
            } else {
                match self.head(from) {
                    Ok(BY_MESSAGE) => {
                        long.push(from);
                        Ok(())
                    }
                    // SAFETY: the elements of `parts` are writable (condition of `# Safety`).
                    Ok(head) => unsafe { self.take(from, head, &parts[from]) },
                    Err(error) => Err(error),
                }
            };
            result = result.and(taken);
        }
        if !long.is_empty() {
            // SAFETY: the elements of `parts` are writable (condition of `# Safety`).
            result = result.and(unsafe { comm.receive_by_messages(place, parts, &long) });
        }
        result
    }

    /// Wakes `rank` if it waits in this call for the cells of all ranks below `end`, and has all these cells now. If
    /// waiting ranks do not sleep at once, rings `rank` in any case.
    fn wake_if_complete_one(&mut self, rank: usize, end: usize) {
        if !self.comm.endpoint().sleeps_at_once() {
            self.ring(rank);
            return;
        }
        let number = self.number;
        let Cells { seat, block, .. } = &mut *self.cells;
        let sleeps = seat.sleepers(block, number).any(|sleeper| sleeper == rank);
        let mut others = (0..end).filter(|other| *other != rank);
        if sleeps && others.all(|other| seat.arrived(block, other, number).is_some()) {
            self.ring(rank);
        }
    }

    /// # Safety
    ///
    /// - The elements of `mine` are readable, those of `parts` are readable and writable, and nobody else accesses
    ///   them until the function returns.
    unsafe fn allgather(&mut self, mine: Option<&Part<'_>>, parts: &[Part<'_>]) -> Result<()> {
        check_parts(self.comm, parts)?;
        let rank = self.rank;
        let own = mine.unwrap_or(&parts[rank]);
        let bytes = own.bytes()?;
        if bytes > LENGTH as u64 {
            // The parts of the other ranks for this rank are short, so the call goes through cells there. These ranks
            // get an error too (`run`).
            return Err(too_long(rank, bytes, parts[rank].bytes()?));
        }
        // SAFETY: the elements of `mine` and `parts` are readable (condition of `# Safety`).
        unsafe { self.put(own, bytes)? };
        let mut result = Ok(());
        if let Some(mine) = mine {
            // SAFETY: `mine` and this rank's part are valid (condition of `# Safety`).
            result = unsafe { copy_own(mine, &parts[rank], rank) };
        }
        self.meet()?;
        for from in (0..self.size).filter(|from| *from != rank) {
            // SAFETY: the elements of `parts` are writable (condition of `# Safety`).
            let taken =
                self.head(from).and_then(|head| unsafe { self.take(from, head, &parts[from]) });
            result = result.and(taken);
        }
        result
    }

    /// # Safety
    ///
    /// - The elements of `send` are readable, those of `receive` are writable, and readable if `send` is `None`, and
    ///   nobody else accesses them until the function returns.
    unsafe fn alltoall(&mut self, send: Option<&[Part<'_>]>, receive: &[Part<'_>]) -> Result<()> {
        check_parts(self.comm, receive)?;
        let parts = send.unwrap_or(receive);
        check_parts(self.comm, parts)?;
        let (rank, size) = (self.rank, self.size);
        let bytes = receive[0].bytes()?;
        let all = bytes * (size as u64 - 1);
        // Returns the offset in bytes of the data for rank `to` in the data of rank `from`.
        let at = |from: usize, to: usize| (to - usize::from(to > from)) * bytes as usize;
        for part in parts.iter().chain(receive) {
            check(rank, part.bytes()?, bytes)?;
        }
        self.room()?;
        let mut words = Words([0; WORDS]);
        let buffer = match all {
            ..=INLINE => words.0.as_mut_ptr().cast(),
            _ => self.cells.block.buffer(rank, self.number),
        };
        for to in (0..size).filter(|to| *to != rank) {
            // SAFETY: each of the parts has `bytes` packed bytes (checked above) and is readable (condition of
            // `# Safety`). The memory at `buffer` has room for `all` bytes: `INLINE` in `words`, or `LENGTH`, and
            // `all` is at most `LENGTH` (`call`). No other rank reads the buffer, because there is room.
            unsafe { layout(&parts[to]).pack(0..bytes, buffer.wrapping_add(at(rank, to))) };
        }
        self.publish(all, if all <= INLINE { &words.0 } else { &[] });
        if let Some(send) = send {
            // SAFETY: both parts are valid and do not overlap (condition of `# Safety`).
            unsafe { copy_own(&send[rank], &receive[rank], rank)? };
        }
        self.meet()?;
        self.check_all(size, all)?;
        for from in (0..size).filter(|from| *from != rank) {
            let data = self.data(from, all, &mut words).wrapping_add(at(from, rank));
            // SAFETY: the data has `bytes` bytes at `data`, within the `all` bytes of rank `from` (`check_all`). The
            // part has `bytes` packed bytes (checked above) and is writable (condition of `# Safety`).
            unsafe { layout(&receive[from]).unpack(0..bytes, data) };
        }
        Ok(())
    }

    /// Publishes this rank's elements of a reduction, which are at `own`.
    ///
    /// # Safety
    ///
    /// - The elements are readable, and nobody changes them until the function returns.
    #[inline]
    pub(super) unsafe fn contribute(&mut self, own: *const u8, all: &Part<'_>) -> Result<()> {
        let part = Part { origin: own.cast_mut(), ..*all };
        // SAFETY: the elements are readable (condition of `# Safety`).
        unsafe { self.put(&part, all.bytes()?) }
    }

    /// Passes this rank's elements of a reduction to `root`, which waits for all other ranks.
    ///
    /// # Safety
    ///
    /// - The condition of [`contribute`](Self::contribute) holds.
    pub(super) unsafe fn contribute_to(
        &mut self,
        own: *const u8,
        all: &Part<'_>,
        root: usize,
    ) -> Result<()> {
        // SAFETY: the elements at `own` are readable and unchanged (condition of `contribute`).
        unsafe { self.contribute(own, all)? };
        self.wake_if_complete_one(root, self.size);
        Ok(())
    }

    /// Passes this rank's elements of a reduction to all ranks above, each of which waits for all ranks below.
    ///
    /// # Safety
    ///
    /// - The condition of [`contribute`](Self::contribute) holds.
    pub(super) unsafe fn contribute_upwards(
        &mut self,
        own: *const u8,
        all: &Part<'_>,
    ) -> Result<()> {
        // SAFETY: the caller keeps the elements at `own` readable and unchanged, as `contribute` demands.
        unsafe { self.contribute(own, all)? };
        self.wake_if_complete(self.rank + 1, |rank| rank);
        Ok(())
    }

    /// Passes this rank's elements of a reduction to all ranks, and waits for theirs.
    ///
    /// # Safety
    ///
    /// - The condition of [`contribute`](Self::contribute) holds.
    pub(super) unsafe fn contribute_to_all(
        &mut self,
        own: *const u8,
        all: &Part<'_>,
    ) -> Result<()> {
        // SAFETY: until this function returns, the caller keeps the elements at `own` readable and unchanged.
        unsafe { self.contribute(own, all)? };
        self.meet()
    }
}

/// Returns the layout of a part.
#[inline]
pub(super) fn layout<'a>(part: &Part<'a>) -> LayoutRef<'a> {
    LayoutRef { origin: part.origin, plan: part.plan, count: part.count }
}

/// Returns whether each of the parts has at most `limit` bytes.
fn all_fit(parts: &[Part<'_>], limit: u64) -> Result<bool> {
    for part in parts {
        if part.bytes()? > limit {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Checks that rank `from`, whose cell has this head, has passed `bytes` bytes.
#[inline]
fn check(from: usize, head: u64, bytes: u64) -> Result<()> {
    if head == bytes { Ok(()) } else { Err(unexpected(from, head, bytes)) }
}

#[cold]
fn unexpected(from: usize, head: u64, bytes: u64) -> Error {
    match head {
        FAILED => {
            let detail = format!(
                "rank {from} failed before it had passed its data on; the error of rank {from} has the reason"
            );
            Error::new(ErrorKind::Other, "message", detail)
        }
        BY_MESSAGE => {
            let detail = format!(
                "rank {from} passes more than {LENGTH} bytes, but at most {bytes} bytes fit"
            );
            Error::new(ErrorKind::Truncated, "count", detail)
        }
        _ if head > bytes => too_long(from, head, bytes),
        _ => {
            let detail = format!(
                "part sizes differ: rank {from} has {head} bytes, but this rank has {bytes} bytes"
            );
            Error::new(ErrorKind::Count, "count", detail)
        }
    }
}

#[cold]
fn too_long(from: usize, theirs: u64, bytes: u64) -> Error {
    let detail = format!("rank {from} passes {theirs} bytes, but at most {bytes} bytes fit");
    Error::new(ErrorKind::Truncated, "count", detail)
}

/// Copies this rank's own data from one part to another.
///
/// # Safety
///
/// - The elements of `from` are readable, those of `to` are writable, nobody else accesses them until the function
///   returns, and they do not overlap.
unsafe fn copy_own(from: &Part<'_>, to: &Part<'_>, rank: usize) -> Result<()> {
    let bytes = from.bytes()?;
    check(rank, bytes, to.bytes()?)?;
    // SAFETY: `bytes` is the packed size of both (checked above), and the caller guarantees that both are valid and
    // do not overlap.
    unsafe { copy_layout(&layout(from), &layout(to), bytes) };
    Ok(())
}
