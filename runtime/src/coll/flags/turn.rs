//! One blocking call, as one rank makes it through the cells.
//!
//! `mod.rs` makes a [`Turn`] for each blocking call. `moves.rs` and `reductions.rs` make the call from the parts of
//! this file: waiting, waking, and publishing a piece of data.
//!
//! A call with more data than a piece has several steps. In each step the ranks pass one piece on. All ranks cut the
//! data alike ([`Turn::piece`]). A rank that only publishes may be some steps ahead of the ranks that read, because it
//! has several cells. In an allgather, an alltoall and most reductions, a rank publishes one step ahead, so that it
//! need not wait while another writes. The ring holds the pieces of more than three steps, so to publish step `n + 1`,
//! a rank waits at most for the end of step `n - 1` on other ranks, which does not depend on it. So no rank waits for
//! ever.
//!
//! A rank that waits first looks at the cells for a while, then drives the progress of all messages, and then sleeps on
//! its doorbell (`endpoint/`). A rank that has published its data wakes the ranks that can now go on:
//!
//! - In a step in which every rank waits for all others, each rank that has seen all cells wakes those that still
//!   sleep in this step. So only the last rank to arrive wakes others.
//! - In a step in which ranks wait for some of the others, a rank wakes a waiting rank if it was the last of the ranks
//!   for whose cells this one waits. The rank has published, or has ended the step without data.
//! - Of the ranks that have ended a step, the last one wakes a rank that waits for room.
//!
//! If this rank does not sleep at once, it does not read which ranks wait. It rings all other ranks when it ends a
//! step. It also rings when it publishes, unless the call ends soon (`quick`).
//!
//! A call ends for this rank when its [`Turn`] is dropped, also after an error or a panic of a user's function. The
//! rank then reads no cell of this call any more. A rank that waits for a cell of a rank that has ended the call
//! without publishing gets an error.

use super::block::{Block, SHORT};
use super::choices::Algorithm;
use super::copies::{MEASURED, Request, nanoseconds};
use super::heads::{LEFT, LONG, check, checked};
use super::moves::longest;
use super::piece::{BUSY_PIECE, LONGER, SHORTER};
use super::{Cells, blocks, method};
use crate::coll::Collective;
use crate::comm::Communicator;
use crate::endpoint::sources::Combine;
use crate::schedule::table::Place;
use crate::settings::CollectiveMethod;
use crate::shm::cells::{STEPS, Seat, WORDS, call_of, last_step};
use crate::shm::waiting::Kind;
use crate::sys::clock;
use crate::tools::counting;
use crate::{Plan, Result};
use std::ops::Range;
use std::time::Instant;
use typepack_engine::{Elements, contiguous};

/// Number of looks at a cell before a rank drives the progress of messages. If ranks sleep at once, a rank looks only
/// once.
const LOOKS: usize = 128;

/// Largest number of bytes that a rank passes on in a call through cells. Longer data go by messages. A step of a long
/// call passes more than a quarter of [`SHORT`] bytes on, whichever ring the ranks use, so that no call has more than
/// [`STEPS`] steps.
pub(super) const LONGEST: u64 = STEPS / 4 * SHORT;

/// Maximum number of bytes of data in a cell.
pub(super) const INLINE: u64 = (WORDS * 8) as u64;

/// Memory for the data of a cell.
#[derive(Clone, Copy)]
#[repr(align(16))]
pub(super) struct InlineData(pub [u64; WORDS]);

/// One blocking call of one rank.
pub(super) struct Turn<'t> {
    pub comm: &'t Communicator,
    pub cells: &'t mut Cells,
    /// The number of the call's first step.
    pub first: u64,
    /// The number of the current step.
    pub number: u64,
    pub rank: usize,
    pub size: usize,
    /// True if waiting ranks sleep at once. The launcher may change this while the job runs, but this rank must wake
    /// others in the same way from the first step of a call to its end: what one step leaves out, the end makes up for.
    pub sleeps: bool,
    /// False if this rank may take long between publishing and the end of the call.
    pub quick: bool,
    /// False if the ranks that read this rank's pieces cannot measure their copies.
    measures: bool,
    /// The way of this call, if several ways compete. Otherwise the call goes the static way.
    pub way: Option<Algorithm>,
    /// The pieces have the other length ([`piece_of`](Self::piece_of)).
    other_pieces: bool,
    /// True if the call has succeeded.
    over: bool,
    /// The call; `None` in a call of the library's own.
    call: Option<&'t Collective<'t>>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.over {
            let last = last_step(self.first);
            self.end(last);
            // The last stores to the cell of the next call would else wait until the core has the cell's line.
            self.cells.seat.claim(&self.cells.block, last + 1);
        } else {
            self.leave();
        }
    }
}

impl<'t> Turn<'t> {
    /// Begins the call whose first step has this number.
    pub(super) fn new(comm: &'t Communicator, cells: &'t mut Cells, number: u64) -> Self {
        let (rank, size) = (comm.rank(), comm.size());
        Self {
            sleeps: comm.endpoint().sleeps_at_once(),
            comm,
            cells,
            first: number,
            number,
            rank,
            size,
            quick: true,
            measures: true,
            way: None,
            other_pieces: false,
            over: false,
            call: None,
        }
    }

    /// Makes the call.
    ///
    /// # Safety
    ///
    /// - The conditions of [`Communicator::run_raw`] hold.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::run_raw`].
    pub(super) unsafe fn run(mut self, place: Place, call: &'t Collective<'_>) -> Result<()> {
        self.call = Some(call);
        let begin = match self.competition(call)? {
            Some(competition) => self.choose(&competition)?,
            None => None,
        };
        self.other_pieces = match self.way {
            Some(way) => way.other_pieces,
            None => method(call) == CollectiveMethod::Pieces,
        };
        // SAFETY: the caller guarantees the conditions of `run_raw`, and `call` has the same.
        let result = unsafe { self.call(place, call) };
        self.over = result.is_ok();
        if let Some(begin) = begin.filter(|_| self.over) {
            let Cells { choices, block, .. } = &*self.cells;
            choices.store(block, call_of(self.first), begin, clock::monotonic());
        }
        result
    }

    /// Returns the name of the method that makes the call; an empty name in a call of the library's own.
    pub(super) fn method(&self) -> &'static str {
        name_of(self.call)
    }

    /// Makes a call of its own that asks all ranks ([`is_wished`](Self::is_wished)).
    ///
    /// # Errors
    /// Returns `ErrorKind::ProcAborted` if a rank has died, and `ErrorKind::Other` if a rank has left the call.
    pub(super) fn ask(mut self, wishes: bool) -> Result<bool> {
        let answer = self.is_wished(wishes);
        self.over = answer.is_ok();
        answer
    }

    /// Ends the call without more data, and wakes all other ranks. Those that wait for data of this rank see that this
    /// rank has left the call.
    pub(super) fn leave(&mut self) {
        self.cells.seat.end(&self.cells.block, last_step(self.first));
        self.others().for_each(|rank| self.ring(rank));
    }

    /// # Safety
    ///
    /// - The conditions of [`Communicator::run_raw`] hold.
    #[inline]
    unsafe fn call(&mut self, place: Place, call: &Collective<'_>) -> Result<()> {
        let forced = method(call) == CollectiveMethod::Messages;
        if forced || self.way.is_some_and(|way| way.messages) {
            if !forced {
                self.agree_on_messages(call)?;
            }
            // SAFETY: the caller guarantees the conditions of `run_raw`, which `run_by_messages` has too.
            return unsafe { self.comm.run_by_messages(place, call) };
        }
        let Some(amount) = fitting(call, self.size)? else {
            // SAFETY: the conditions of `by_messages` are those of this function.
            return unsafe { self.by_messages(place, call) };
        };
        if !matches!(call, Collective::Alltoall { send: None, .. }) {
            call.count(counting::CallKind::Flags);
        }
        match *call {
            Collective::Barrier => self.barrier(),
            Collective::Broadcast { ref part, root } => {
                let root = self.comm.root(root)?;
                // SAFETY: the caller guarantees the conditions of `run_raw`: `part` is readable at the root and
                // writable at the other ranks, and nobody else accesses it, until the call returns.
                unsafe { self.broadcast(part, root) }
            }
            Collective::Gather { ref mine, parts, root } => {
                let root = self.comm.root(root)?;
                // SAFETY: the caller guarantees the conditions of `run_raw`: `mine` is readable, `parts` are writable
                // at the root, and nobody else accesses them, until the call returns.
                unsafe { self.gather(place, mine.as_ref(), parts, root) }
            }
            Collective::Allgather { ref mine, parts } => {
                // SAFETY: the caller guarantees the conditions of `run_raw`: `mine` is readable, `parts` are readable
                // and writable, and nobody else accesses them, until the call returns.
                unsafe { self.allgather(mine.as_ref(), parts, amount) }
            }
            Collective::AlltoallEqual { send, receive } => {
                // SAFETY: the caller guarantees the conditions of `run_raw`: `send` is readable, `receive` is writable,
                // and readable if `send` is `None`, and nobody else accesses them, until the call returns.
                unsafe { self.alltoall(send, receive) }
            }
            Collective::Reduce { send, recv, plan, count, combine, root } => {
                let root = self.comm.root(root)?;
                // SAFETY: the caller guarantees the conditions of `run_raw`.
                unsafe { self.reduce(send, &Elements { origin: recv, plan, count }, combine, root) }
            }
            Collective::Allreduce { send, recv, plan, count, combine } => {
                // SAFETY: the caller guarantees the conditions of `run_raw`.
                unsafe { self.allreduce(send, &Elements { origin: recv, plan, count }, combine) }
            }
            Collective::Scan { send, recv, plan, count, combine } => {
                // SAFETY: the caller guarantees the conditions of `run_raw`.
                unsafe { self.scan(send, &Elements { origin: recv, plan, count }, combine, true) }
            }
            Collective::Exscan { send, recv, plan, count, combine } => {
                // SAFETY: the caller guarantees the conditions of `run_raw`.
                unsafe { self.scan(send, &Elements { origin: recv, plan, count }, combine, false) }
            }
            Collective::Scatter { parts, ref mine, root } => {
                let root = self.comm.root(root)?;
                // SAFETY: the caller guarantees the conditions of `run_raw`: `parts` are readable at the root, `mine`
                // is writable, and nobody else accesses them, until the call returns.
                unsafe { self.scatter(place, parts, mine.as_ref(), root) }
            }
            Collective::Alltoall { send: Some(send), receive } => {
                // SAFETY: the caller guarantees the conditions of `run_raw`: `send` is readable, `receive` is writable,
                // and nobody else accesses them, until the call returns.
                unsafe { self.alltoall_unequal(place, send, receive) }
            }
            Collective::Neighbors { neighbors, send, receive } => {
                // SAFETY: the caller guarantees the conditions of `run_raw`: `send` is readable, `receive` is writable,
                // and nobody else accesses them, until the call returns.
                unsafe { self.exchange_neighbors(place, neighbors, send, receive) }
            }
            Collective::ReduceScatter { send, recv, plan, counts, combine } => {
                let recv = Elements { origin: recv, plan, count: 0 };
                let all = self.comm.all_blocks(send, &recv, counts.len(), amount)?;
                // SAFETY: the caller guarantees the conditions of `run_raw`. `fitting` has counted the elements of all
                // blocks.
                unsafe { self.reduce_scatter(&all, recv.origin, counts, combine) }
            }
            // SAFETY: the conditions of `by_messages` are those of this function.
            Collective::Alltoall { send: None, .. } => unsafe { self.by_messages(place, call) },
        }
    }

    /// Prepares a reduction. A user's function may take long, so this rank wakes others early, and nobody measures the
    /// time in which the elements are combined.
    #[inline]
    pub(super) fn combines(&mut self, combine: &Combine) {
        if let Combine::User(_) = combine {
            (self.quick, self.measures) = (false, false);
        }
    }

    /// Makes a call whose data are too long for cells.
    ///
    /// # Safety
    ///
    /// - The conditions of [`Communicator::run_raw`] hold.
    #[cold]
    unsafe fn by_messages(&mut self, place: Place, call: &Collective<'_>) -> Result<()> {
        // If other ranks have less data, by mistake, they need not wait for this rank's cell.
        self.leave();
        // SAFETY: the conditions of `run_by_messages` are those of this function.
        unsafe { self.comm.run_by_messages(place, call) }
    }

    // ---- steps ----

    /// Returns the size in bytes of the pieces into which `bytes` bytes are cut. Ranks that pass the same number cut
    /// alike.
    #[inline]
    pub(super) fn piece(&mut self, bytes: u64) -> u64 {
        // The ranks make the longer ring in a later call (`State::next`).
        if bytes <= SHORT {
            return SHORT;
        }
        self.quick = false;
        self.cells.wishes = true;
        self.piece_of(bytes)
    }

    /// Returns the same as [`piece`](Self::piece), for data of another rank.
    #[inline]
    pub(super) fn piece_of(&self, bytes: u64) -> u64 {
        if bytes <= SHORT {
            return SHORT;
        }
        let room = self.cells.block.room();
        match (self.cells.share_cpus, self.other_pieces) {
            (true, false) => room,
            (true, true) => (room / SHORTER).max(SHORT),
            (false, false) => room.min(BUSY_PIECE),
            (false, true) => room.min(LONGER * BUSY_PIECE),
        }
    }

    /// Begins step `index` of the call, and ends the steps before it, also those that this rank has left out.
    #[inline]
    pub(super) fn begin(&mut self, index: u64) {
        debug_assert!(index < STEPS);
        if index > 0 {
            self.end(self.first + index - 1);
            self.number = self.first + index;
        }
    }

    /// Ends the steps up to `number`. Wakes the ranks that wait for room, or for data of this rank that never come.
    #[inline]
    fn end(&self, number: u64) {
        let Cells { seat, block, .. } = &*self.cells;
        seat.end(block, number);
        if self.sleeps {
            seat.sleepers_after_end(block, number).for_each(|rank| self.ring(rank));
        } else {
            self.others().for_each(|rank| self.ring(rank));
        }
    }

    // ---- waiting and waking ----

    /// Waits until `look` returns an answer. `from` returns the ranks for whose cells this rank waits, as bits. The
    /// last argument of `look` is false in the first looks of a wait, which must be quick.
    #[inline]
    fn wait<R>(
        &mut self,
        from: impl FnOnce() -> u64,
        mut look: impl FnMut(&mut Seat, &Block, bool) -> Option<R>,
    ) -> Result<R> {
        let endpoint = self.comm.endpoint();
        let Cells { seat, block, .. } = &mut *self.cells;
        let looks = if self.sleeps { 1 } else { LOOKS };
        for _ in 0..looks {
            if let Some(answer) = look(seat, block, false) {
                return Ok(answer);
            }
            std::hint::spin_loop();
        }
        seat.waits(block, self.number, from());
        let awaited = self.comm.awaited(name_of(self.call), Kind::Collective, None);
        let answer = endpoint.attend_outside(&awaited, || look(seat, block, true));
        seat.has_waited(block);
        answer
    }

    /// Waits for the cell of rank `from`, and returns its head.
    #[inline]
    pub(super) fn wait_for(&mut self, from: usize) -> Result<u64> {
        let number = self.number;
        if let Some(head) = self.come(from) {
            return Ok(head);
        }
        let awaited = || 1 << from;
        self.wait(awaited, |seat, block, thorough| {
            let head = seat.arrived(block, from, number).map(|head| checked(block, head));
            head.or_else(|| (thorough && seat.has_left(block, from, number)).then_some(LEFT))
        })
    }

    /// Waits for the cells of all ranks below `end` except this rank.
    #[inline]
    pub(super) fn wait_for_all(&mut self, end: usize) -> Result<()> {
        self.wait_for_those(end, |_| true)
    }

    /// Waits for the cells of those ranks below `end` for which `takes_part` is true, except this rank.
    #[inline]
    pub(super) fn wait_for_those(
        &mut self,
        end: usize,
        takes_part: impl Fn(usize) -> bool,
    ) -> Result<()> {
        let (number, rank) = (self.number, self.rank);
        let is_awaited = |from: usize| from != rank && takes_part(from);
        // `MOST` in `mod.rs` is less than 64.
        let awaited = || (0..end).fold(0, |bits, from| bits | u64::from(is_awaited(from)) << from);
        let mut next = 0;
        self.wait(awaited, |seat, block, thorough| {
            while next < end
                && (!is_awaited(next)
                    || seat.arrived(block, next, number).is_some()
                    || thorough && seat.has_left(block, next, number))
            {
                next += 1;
            }
            (next == end).then_some(())
        })
    }

    /// Waits for the cells of all other ranks, and then wakes the ranks that still sleep in this step.
    #[inline]
    pub(super) fn meet(&mut self) -> Result<()> {
        self.wait_for_all(self.size)?;
        self.cells.seat.all_have_published(self.number);
        self.wake_others();
        Ok(())
    }

    /// Waits until this rank may write to its cell of step `index`, and a piece of `bytes` bytes to its ring. If
    /// `bytes` is 0, the step has no piece in the ring.
    #[inline]
    pub(super) fn room(&mut self, index: u64, bytes: u64) -> Result<()> {
        let number = self.first + index;
        let Cells { seat, block, .. } = &mut *self.cells;
        let mut needed = seat.needed(number);
        if bytes > 0 {
            needed = needed.max(block.needed(bytes));
        }
        if seat.have_ended(block, needed) {
            return Ok(());
        }
        self.wait_for_room(number, needed)
    }

    /// Waits until all other ranks have ended step `needed`, because this rank needs room for step `number`.
    #[cold]
    pub(super) fn wait_for_room(&mut self, number: u64, needed: u64) -> Result<()> {
        let endpoint = self.comm.endpoint();
        let Cells { seat, block, share_cpus, .. } = &mut *self.cells;
        // If ranks share CPUs, each wait may take a time slice. So a rank that must wait waits for room for many steps.
        let needed = if *share_cpus { needed.max(seat.needed_for_many(number)) } else { needed };
        if !self.sleeps {
            for _ in 0..LOOKS {
                if seat.have_ended(block, needed) {
                    return Ok(());
                }
                std::hint::spin_loop();
            }
        }
        seat.waits_for_room(block, needed);
        let awaited = self.comm.awaited(name_of(self.call), Kind::Collective, None);
        let room =
            endpoint.attend_outside(&awaited, || seat.have_ended(block, needed).then_some(()));
        seat.has_waited(block);
        room
    }

    #[inline]
    pub(super) fn ring(&self, rank: usize) {
        self.comm.endpoint().ring(self.cells.world[rank]);
    }

    /// Wakes the other ranks that wait in this step. If this rank does not sleep at once, it rings all other ranks,
    /// because ranks that do not sleep at once do not say what they wait for. But if the call ends soon, it rings no
    /// rank: the end of the call rings all ranks ([`end`](Self::end)).
    #[inline]
    pub(super) fn wake_others(&self) {
        if !self.sleeps {
            if !self.quick {
                self.others().for_each(|rank| self.ring(rank));
            }
            return;
        }
        let Cells { seat, block, .. } = &*self.cells;
        seat.sleepers(block, self.number).for_each(|rank| self.ring(rank));
    }

    /// Returns all ranks except this rank.
    #[inline]
    pub(super) fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let rank = self.rank;
        (0..self.size).filter(move |other| *other != rank)
    }

    /// Wakes those of `ranks` that wait for this rank in step `index`, in which this rank has published, and that can
    /// go on now. If this rank does not sleep at once, it rings all of them, as [`wake_others`](Self::wake_others)
    /// does.
    pub(super) fn wake_ready(&self, index: u64, ranks: impl Iterator<Item = usize>) {
        if !self.sleeps {
            if !self.quick {
                ranks.for_each(|rank| self.ring(rank));
            }
            return;
        }
        let Cells { seat, block, .. } = &*self.cells;
        let ready = seat.ready_sleepers(block, ranks, self.first + index);
        ready.for_each(|rank| self.ring(rank));
    }

    // ---- data ----

    /// Publishes `head` and the first words of `data` in step `index`.
    #[inline]
    pub(super) fn publish(&mut self, index: u64, head: u64, data: &[u64]) {
        let Cells { seat, block, .. } = &mut *self.cells;
        let ring = if block.is_long() { LONG } else { 0 };
        seat.publish(block, self.first + index, head | ring, data);
    }

    /// Publishes the packed bytes of `range` of `part` in step `index`: the current step, or the next one. The head
    /// says that this rank passes `bytes` bytes on in this call. Rank `reader` is one of the ranks that read the piece.
    ///
    /// # Safety
    ///
    /// - The elements of `part` are readable, and nobody changes them until the function returns.
    /// - `range` lies within the packed bytes of `part`. Its length is at most that of a piece
    ///   ([`piece`](Self::piece)).
    #[inline]
    pub(super) unsafe fn put(
        &mut self,
        step: (u64, usize),
        part: &Elements<&Plan>,
        range: Range<u64>,
        bytes: u64,
    ) -> Result<()> {
        let len = range.end - range.start;
        // SAFETY: `range` lies within the packed bytes of `part`, whose elements are readable, and is not longer than a
        // piece (conditions of `# Safety`). `target` has room for `len` bytes, which nobody else accesses (`put_with`).
        self.put_with(step, len, bytes, |target| unsafe { part.pack(range, target) })
    }

    /// Publishes the `len` bytes that `pack` writes, at most a piece. The other arguments are those of
    /// [`put`](Self::put). `pack` gets an address at which `len` bytes are writable and nobody else accesses them until
    /// `pack` returns.
    #[inline]
    pub(super) fn put_with(
        &mut self,
        (index, reader): (u64, usize),
        len: u64,
        bytes: u64,
        pack: impl FnOnce(*mut u8),
    ) -> Result<()> {
        self.room(index, if len <= INLINE { 0 } else { len })?;
        if len <= INLINE {
            let mut words = InlineData([0; WORDS]);
            pack(words.0.as_mut_ptr().cast());
            self.publish(index, bytes, &words.0[..len.div_ceil(8) as usize]);
        } else {
            let place = self.cells.block.place(self.first + index, len);
            // No other rank reads the bytes there (`room`). They lie in memory that only this folder uses.
            let target = self.cells.block.piece(self.rank, place, len);
            let request = self.write(index, reader, len, || pack(target));
            self.publish(index, bytes, &[place, request.word()]);
        }
        Ok(())
    }

    /// Calls `copy`, which writes a piece of `len` bytes for step `index`. Rank `reader` is one of the ranks that read
    /// the piece. Returns what to publish about the piece.
    #[inline]
    fn write(&mut self, index: u64, reader: usize, len: u64, copy: impl FnOnce()) -> Request {
        if len < MEASURED {
            copy();
            return Request::default();
        }
        let number = self.first + index;
        let Cells { seat, block, copies, .. } = &mut *self.cells;
        if !self.measures {
            return copies.write_unmeasured(len, |method| contiguous::with(method, copy));
        }
        copies.write(seat, block, (number, reader), len, |method| contiguous::with(method, copy))
    }

    /// Returns the rank above this rank, or rank 0 after the highest rank. If all other ranks read a piece, this rank
    /// asks that one to measure the copy.
    #[inline]
    pub(super) fn next(&self) -> usize {
        if self.rank + 1 == self.size { 0 } else { self.rank + 1 }
    }

    /// Calls `copy`, which reads pieces of `len` bytes of all ranks `from`. Measures its time for those ranks that ask
    /// for it.
    #[inline]
    pub(super) fn timed(&self, from: Range<usize>, len: u64, copy: impl FnOnce()) {
        let start = self.clock(from.clone(), len);
        copy();
        self.stop(from, start);
    }

    /// Reads the clock if one of the ranks `from` asks for the time in which this rank reads its piece of `len` bytes.
    #[inline]
    pub(super) fn clock(&self, mut from: Range<usize>, len: u64) -> Option<Instant> {
        (len >= MEASURED && from.any(|from| self.asks(from))).then(Instant::now)
    }

    /// Stores the time since `start` for those ranks of `from` that ask for it.
    #[inline]
    pub(super) fn stop(&self, from: Range<usize>, start: Option<Instant>) {
        let Some(start) = start else { return };
        let time = nanoseconds(start);
        for writer in from.filter(|from| self.asks(*from)) {
            self.cells.block.measure(self.rank, writer, self.number, time);
        }
    }

    /// Returns whether rank `from`, whose cell has arrived, asks this rank to measure.
    fn asks(&self, from: usize) -> bool {
        let Cells { seat, block, .. } = &*self.cells;
        from != self.rank
            && Request::from_word(seat.data(block, from, self.number)[1]).asks(self.rank)
    }

    /// Returns the address of the piece of `bytes` bytes of rank `from`, whose cell has arrived: in `words`, to which
    /// short data are copied, or in the ring of that rank.
    #[inline]
    pub(super) fn data(&self, from: usize, bytes: u64, words: &mut InlineData) -> *const u8 {
        words.0 = self.cells.seat.data(&self.cells.block, from, self.number);
        if bytes <= INLINE {
            words.0.as_ptr().cast()
        } else {
            self.cells.block.piece(from, words.0[0], bytes)
        }
    }

    /// Checks that rank `from`, whose cell has this head, passes as many bytes on in this call as `part` has. Then
    /// copies a piece like [`read`](Self::read).
    ///
    /// # Safety
    ///
    /// - The conditions of [`read`](Self::read) hold, except that the rank may pass another number of bytes on.
    #[inline]
    pub(super) unsafe fn take(
        &self,
        from: usize,
        head: u64,
        part: &Elements<&Plan>,
        range: Range<u64>,
    ) -> Result<()> {
        check(from, head, part.bytes()?)?;
        // SAFETY: rank `from` passes as many bytes on as `part` has, and so cuts them like this rank (checked above).
        // The other conditions are those of `# Safety`.
        unsafe { self.read(from, part, range) };
        Ok(())
    }

    /// Copies the piece of rank `from`, whose cell has arrived, to the packed bytes `range` of `part`.
    ///
    /// # Safety
    ///
    /// - The elements of `part` are writable, and nobody else accesses them until the function returns.
    /// - `range` lies within the packed bytes of `part`. Its length is that of the piece.
    #[inline]
    pub(super) unsafe fn read(&self, from: usize, part: &Elements<&Plan>, range: Range<u64>) {
        // SAFETY: `part` and `range` are as in `# Safety`. All of the piece is copied.
        unsafe { self.read_at(from, (range.end - range.start, 0), part, range) };
    }

    /// Copies bytes of the piece of rank `from`, whose cell has arrived, to the packed bytes `range` of `part`. The
    /// piece has `published` bytes, and those to copy begin at byte `offset` of the piece.
    ///
    /// # Safety
    ///
    /// - The elements of `part` are writable, and nobody else accesses them until the function returns.
    /// - `range` lies within the packed bytes of `part`. `offset` and its length are together at most `published`.
    #[inline]
    pub(super) unsafe fn read_at(
        &self,
        from: usize,
        (published, offset): (u64, u64),
        part: &Elements<&Plan>,
        range: Range<u64>,
    ) {
        let mut words = InlineData([0; WORDS]);
        let data = self.data(from, published, &mut words).wrapping_add(offset as usize);
        // SAFETY: `range` lies within the packed bytes of `part`, whose elements are writable (conditions of
        // `# Safety`). As many bytes at `data` are readable: they are some of the `published` bytes, which lie in
        // `words` if there are at most `INLINE`, and otherwise in the ring.
        let copy = || unsafe { part.unpack(range, data) };
        // A piece in the ring has the request behind its place.
        let request =
            if published <= INLINE { Request::default() } else { Request::from_word(words.0[1]) };
        let method = self.cells.copies.reading(request);
        self.timed(from..from + 1, published, || contiguous::with(method, copy));
    }

    /// Returns the head of the cell of rank `from` if the cell has arrived. The function is the first look at the cell.
    /// If the cell has arrived, fetches the next one, too.
    #[inline]
    pub(super) fn come(&mut self, from: usize) -> Option<u64> {
        let Cells { seat, block, .. } = &mut *self.cells;
        let head = seat.arrived(block, from, self.number)?;
        seat.fetch_next(block, from, self.number);
        Some(checked(block, head))
    }

    /// Returns the head of the cell of rank `from`, or [`LEFT`] if the cell has not arrived.
    #[inline]
    pub(super) fn head(&mut self, from: usize) -> u64 {
        let Cells { seat, block, .. } = &mut *self.cells;
        seat.arrived(block, from, self.number).map_or(LEFT, |head| checked(block, head))
    }

    /// Checks that all ranks below `end` except this rank pass `bytes` bytes on in this call.
    #[inline]
    pub(super) fn check_all(&mut self, end: usize, bytes: u64) -> Result<()> {
        let rank = self.rank;
        (0..end)
            .filter(|from| *from != rank)
            .try_for_each(|from| check(from, self.head(from), bytes))
    }
}

/// Returns the name of the method that makes a call.
fn name_of(call: Option<&Collective<'_>>) -> &'static str {
    call.map_or("", Collective::method)
}

/// Returns `None` if all of `size` ranks make the call by messages, because its data do not fit into cells; ranks that
/// pass matching arguments then all do so. Otherwise returns the bytes of the longest part of an allgather, the number
/// of elements of all blocks of a reduce-scatter, and 0 for any other call.
#[inline]
pub(super) fn fitting(call: &Collective<'_>, size: usize) -> Result<Option<u64>> {
    let fits = match *call {
        Collective::Broadcast { ref part, .. } => part.bytes()? <= LONGEST,
        Collective::Allgather { parts, .. } => {
            return longest(parts).map(|bytes| (bytes <= LONGEST).then_some(bytes));
        }
        Collective::AlltoallEqual { receive, .. } => {
            let bytes = receive.first().map_or(Ok(0), Elements::bytes)?;
            bytes.saturating_mul(size as u64) <= LONGEST
        }
        Collective::Reduce { plan, count, .. }
        | Collective::Allreduce { plan, count, .. }
        | Collective::Scan { plan, count, .. }
        | Collective::Exscan { plan, count, .. } => {
            plan.element_bytes() <= SHORT && plan.packed_bytes(count)? <= LONGEST
        }
        Collective::ReduceScatter { plan, counts, .. } => return blocks::fitting(plan, counts),
        Collective::Alltoall { send, .. } => send.is_some(),
        // Each pair of ranks decides for its own data.
        Collective::Barrier
        | Collective::Gather { .. }
        | Collective::Scatter { .. }
        | Collective::Neighbors { .. } => true,
    };
    Ok(fits.then_some(0))
}
