//! The reductions through cells: reduce, allreduce, scan and exscan.
//!
//! `turn.rs` passes the elements to the ranks, and `fold.rs` combines them. A long vector goes in pieces of whole
//! elements. There are two ways to combine a piece:
//!
//! - Every rank that needs the result combines the elements of all ranks itself.
//! - Each rank combines a slice of the piece, and passes the result to the ranks that need it, in another step. With
//!   more than two ranks, the ranks combine far fewer elements in this way.
//!
//! Both ways combine in the same order, and the order is that of the schedules (`fold.rs`). A scan goes along a chain
//! of all ranks (`link.rs`).

use super::block::SHORT;
use super::fold::{KEPT, Operands, Order, packed};
use super::heads::{IN_SLICES, check};
use super::piece::{range, steps};
use super::turn::Turn;
#[cfg(doc)]
use crate::comm::Communicator;
use crate::endpoint::sources::Combine;
use crate::schedule::program::{room_for, take_room};
use crate::settings::{CollectiveMethod, CollectiveName, Settings};
use crate::{Plan, Result};
use typepack_engine::Elements;

/// If there are more than two ranks, each of them combines a slice of a vector of this number of packed bytes or more.
/// (The length is the first one of a size class of `choices.rs`.)
const SLICES: u64 = 4 << 10;

/// A reduction, and how it is cut.
struct Cut<'a> {
    /// The address of this rank's elements.
    own: *const u8,
    /// The type and the number of the elements. `origin` is the address of the result.
    all: Elements<&'a Plan>,
    /// Number of elements of a piece.
    elements: u64,
    /// Number of pieces.
    pieces: u64,
}

impl<'a> Cut<'a> {
    /// Returns the elements of piece `index`.
    #[inline]
    fn piece(&self, index: u64) -> Operands<'a> {
        Operands::piece(self.own, &self.all, range(self.all.count, self.elements, index))
    }
}

impl Turn<'_> {
    /// Returns how to cut a reduction of the elements at `own` to `all`, which have `bytes` packed bytes. All ranks
    /// pass the same number of elements of the same size. An element has at most [`SHORT`] bytes.
    fn cut<'a>(
        &mut self,
        own: *const u8,
        all: &Elements<&'a Plan>,
        bytes: u64,
        combine: &Combine,
    ) -> Cut<'a> {
        let all = *all;
        self.combines(combine);
        if bytes <= SHORT {
            return Cut { own, all, elements: all.count, pieces: 1 };
        }
        let elements = elements(self.piece(bytes), all.plan.element_bytes());
        Cut { own, all, elements, pieces: steps(all.count, elements) }
    }

    /// Returns whether each rank combines a slice of the elements, of which each rank has `bytes` packed bytes.
    #[inline]
    fn takes_slices(&self, name: CollectiveName, bytes: u64) -> bool {
        if let Some(way) = self.way {
            return way.slices;
        }
        match Settings::current().map(|settings| settings.collectives.of(name)) {
            Some(CollectiveMethod::Slices) => true,
            Some(CollectiveMethod::Whole) => false,
            _ => has_slices(self.size, bytes),
        }
    }

    /// Makes a reduction to `root`.
    ///
    /// # Safety
    ///
    /// - The elements at `send`, and those of `recv` at the root, are valid as [`Communicator::run_raw`] demands,
    ///   until the function returns.
    /// - `combine` keeps the promises of [`Combine`] for these elements.
    pub(super) unsafe fn reduce(
        &mut self,
        send: Option<*const u8>,
        recv: &Elements<&Plan>,
        combine: &Combine,
        root: usize,
    ) -> Result<()> {
        let (rank, size, bytes) = (self.rank, self.size, recv.bytes()?);
        let own = match send {
            Some(own) => own,
            None if rank == root => recv.origin.cast_const(),
            None => return Err(crate::coll::schedule::reduce::missing(rank, root)),
        };
        if bytes == 0 {
            // If other ranks have elements, by mistake, they need not wait.
            self.leave();
            return Ok(());
        }
        let order = match self.comm.reduces_in_blocks(recv)? {
            true => Order::Chain,
            false => Order::Tree,
        };
        let cut = self.cut(own, recv, bytes, combine);
        if self.takes_slices(CollectiveName::Reduce, bytes) {
            // SAFETY: the caller guarantees the conditions of `in_slices`, which are those of this function.
            return unsafe { self.in_slices(&cut, bytes, combine, order, Some(root)) };
        }
        for index in 0..cut.pieces {
            self.begin(index);
            let piece = cut.piece(index);
            if rank == root {
                // The other ranks only publish, so they may be ahead of this rank.
                if !self.others().all(|from| self.come(from).is_some()) {
                    self.wait_for_all(size)?;
                }
                self.check_all(size, bytes)?;
                // SAFETY: the elements are valid and `combine` keeps its promises (conditions of `# Safety`). The cells
                // of all ranks have arrived (`wait_for_all`), and all ranks cut alike (`check_all`).
                unsafe { self.fold(&piece, combine, order)? };
            } else {
                // SAFETY: the elements at `own` are readable (condition of `# Safety`).
                unsafe { self.contribute((index, root), &piece, bytes)? };
                self.wake_ready(index, std::iter::once(root));
            }
        }
        Ok(())
    }

    /// Makes a reduction to all ranks.
    ///
    /// # Safety
    ///
    /// - The elements at `send` and those of `recv` are valid as [`Communicator::run_raw`] demands, until the
    ///   function returns.
    /// - `combine` keeps the promises of [`Combine`] for these elements.
    pub(super) unsafe fn allreduce(
        &mut self,
        send: Option<*const u8>,
        recv: &Elements<&Plan>,
        combine: &Combine,
    ) -> Result<()> {
        let (size, bytes) = (self.size, recv.bytes()?);
        if bytes == 0 {
            // If other ranks have elements, by mistake, they need not wait.
            self.leave();
            return Ok(());
        }
        let own = send.unwrap_or(recv.origin);
        let order = match self.comm.reduces_in_blocks(recv)? {
            true => Order::Chain,
            false => Order::Doubling,
        };
        let cut = self.cut(own, recv, bytes, combine);
        if self.takes_slices(CollectiveName::Allreduce, bytes) {
            // SAFETY: the caller guarantees the conditions of `in_slices`, which are those of this function.
            return unsafe { self.in_slices(&cut, bytes, combine, order, None) };
        }
        let mut next = cut.piece(0);
        // SAFETY: the elements are readable (condition of `# Safety`).
        unsafe { self.contribute((0, self.next()), &next, bytes)? };
        for index in 0..cut.pieces {
            self.begin(index);
            let piece = next;
            if index + 1 < cut.pieces {
                next = cut.piece(index + 1);
                // SAFETY: the elements are readable, as above. In place, this rank has written other elements only:
                // those of the steps before.
                unsafe { self.contribute((index + 1, self.next()), &next, bytes)? };
            }
            self.meet()?;
            self.check_all(size, bytes)?;
            // SAFETY: the caller guarantees valid elements and the promises of `combine`. The cells of all ranks have
            // arrived (`meet`), and all ranks cut alike (`check_all`).
            unsafe { self.fold(&piece, combine, order)? };
        }
        Ok(())
    }

    /// Makes a scan, or an exclusive scan if `inclusive` is false. The ranks form a chain: each rank combines the value
    /// of the rank below with its elements, and passes the result on.
    ///
    /// # Safety
    ///
    /// - The elements at `send` and those of `recv` are valid as [`Communicator::run_raw`] demands, until the function
    ///   returns.
    /// - `combine` keeps the promises of [`Combine`] for these elements.
    pub(super) unsafe fn scan(
        &mut self,
        send: Option<*const u8>,
        recv: &Elements<&Plan>,
        combine: &Combine,
        inclusive: bool,
    ) -> Result<()> {
        let (rank, bytes) = (self.rank, recv.bytes()?);
        if bytes == 0 {
            // If other ranks have elements, by mistake, they need not wait.
            self.leave();
            return Ok(());
        }
        let own = send.unwrap_or(recv.origin);
        let cut = self.cut(own, recv, bytes, combine);
        for index in 0..cut.pieces {
            self.begin(index);
            if let Some(below) = rank.checked_sub(1) {
                let head = self.wait_for(below)?;
                check(below, head, bytes)?;
            }
            // SAFETY: the caller guarantees valid elements and the promises of `combine`. The cell of the rank below
            // has arrived, and that rank cuts like this rank (checked above).
            unsafe { self.link((index, bytes), cut.piece(index), combine, inclusive)? };
        }
        Ok(())
    }

    /// Makes a reduction of `bytes` packed bytes to `root`, or to all ranks if `root` is `None`. Each rank combines a
    /// slice of each piece, straight to the result if it has memory for the result.
    ///
    /// # Safety
    ///
    /// - The conditions of [`allreduce`](Self::allreduce) hold for the addresses in `cut`. If there is a root, only the
    ///   root needs memory for the result.
    unsafe fn in_slices<'a>(
        &mut self,
        cut: &Cut<'a>,
        bytes: u64,
        combine: &Combine,
        order: Order,
        root: Option<usize>,
    ) -> Result<()> {
        let (rank, size) = (self.rank, self.size);
        let slices = size as u64;
        let reader = root.unwrap_or_else(|| self.next());
        // The slices are filled from the lowest rank on, so these ranks read the elements of a piece.
        let combines = usize::from(rank == 0);
        let longest = cut.elements.min(cut.all.count).div_ceil(slices);
        let bytes = bytes | IN_SLICES;
        // A rank without memory for the whole result needs some for its slice.
        let mut scratch = Vec::new();
        let origin = match root {
            Some(root) if root != rank => {
                scratch = self.cells.scratch.pop().unwrap_or_default();
                Some(take_room(&mut scratch, room_for(cut.all.plan, longest)?)?)
            }
            _ => None,
        };
        let slice = |piece: &Operands<'a>, rank: usize| {
            let count = piece.result.count;
            piece.part(range(count, count.div_ceil(slices), rank as u64))
        };
        let mut next = cut.piece(0);
        // SAFETY: the elements are readable, and nobody changes them before the call has returned (conditions of
        // `# Safety`). The slice is a range of the piece's elements.
        unsafe { self.contribute_rest((0, combines), &next, &slice(&next, rank), bytes)? };
        for index in 0..cut.pieces {
            // 1. All ranks have passed their elements on, and each rank combines a slice of the piece.
            self.begin(2 * index);
            let piece = next;
            self.meet()?;
            self.check_all(size, bytes)?;
            let mut mine = slice(&piece, rank);
            if let Some(origin) = origin {
                mine.result.origin = origin;
            }
            let result = mine.result;
            if result.count > 0 {
                // SAFETY: this rank's elements are readable, and `combine` keeps its promises (conditions of
                // `# Safety`). The result is scratch memory with room for a slice that nobody else uses, or the same
                // elements of `recv`, which do not overlap this rank's elements, unless both have the same address (in
                // place). The cells of all ranks have arrived (`meet`), and all ranks cut alike (`check_all`).
                unsafe { self.fold(&mine, combine, order)? };
            }
            // 2. Each rank passes its result on, and then its elements of the next piece, so that no rank waits for
            //    them. In place, this rank has written elements of this piece only.
            self.begin(2 * index + 1);
            if root != Some(rank) {
                // SAFETY: `result` holds the elements that `fold` has made, and nobody changes them. The range has all
                // its packed bytes, at most those of a piece.
                unsafe { self.put((2 * index + 1, reader), &result, 0..packed(&result), bytes)? };
            }
            if index + 1 < cut.pieces {
                next = cut.piece(index + 1);
                let (step, own) = ((2 * index + 2, combines), slice(&next, rank));
                // SAFETY: the elements are readable, and nobody changes them (conditions of `# Safety`). In place, this
                // rank has written elements of the pieces before only. The slice is a range of the piece's elements.
                unsafe { self.contribute_rest(step, &next, &own, bytes)? };
            }
            match root {
                Some(root) if root != rank => {
                    self.wake_ready(2 * index + 1, std::iter::once(root));
                    continue;
                }
                Some(_) => self.wait_for_all(size)?,
                None => self.meet()?,
            }
            self.check_all(size, bytes)?;
            for from in (0..size).filter(|from| *from != rank) {
                let part = slice(&piece, from).result;
                // SAFETY: the elements of `recv` are writable (condition of `# Safety`). Rank `from` cuts like this
                // rank (`check_all`), so all packed bytes of its slice are in its cell or its ring.
                unsafe { self.read(from, &part, 0..packed(&part)) };
            }
        }
        if origin.is_some() && scratch.len() <= KEPT {
            self.cells.scratch.push(scratch);
        }
        Ok(())
    }

    /// Publishes this rank's elements of a piece of a reduction in a step (its index, and one of the ranks that read
    /// the elements; see [`put`](Self::put)). The head says that the whole call has `bytes` bytes.
    ///
    /// # Safety
    ///
    /// - The elements are readable, and nobody changes them until the function returns.
    #[inline]
    unsafe fn contribute(
        &mut self,
        step: (u64, usize),
        piece: &Operands<'_>,
        bytes: u64,
    ) -> Result<()> {
        let part = Elements { origin: piece.own.cast_mut(), ..piece.result };
        // SAFETY: the elements are readable (condition of `# Safety`). The range has all packed bytes of a piece.
        unsafe { self.put(step, &part, 0..packed(&part), bytes) }
    }

    /// Publishes this rank's elements of a piece like [`contribute`](Self::contribute), except those of the slice that
    /// this rank combines: their bytes in the ring are arbitrary. No other rank reads them, because all ranks go in
    /// slices ([`IN_SLICES`]) and cut alike.
    ///
    /// # Safety
    ///
    /// - The elements of the piece are readable, and nobody changes them until the function returns.
    /// - The elements of `slice` are some of the piece.
    #[inline]
    unsafe fn contribute_rest(
        &mut self,
        step: (u64, usize),
        piece: &Operands<'_>,
        slice: &Operands<'_>,
        bytes: u64,
    ) -> Result<()> {
        let part = Elements { origin: piece.own.cast_mut(), ..piece.result };
        let len = packed(&part);
        let (begin, end) = (slice.offset, slice.offset + packed(&slice.result));
        self.put_with(step, len, bytes, |target| {
            // SAFETY: the elements are readable, and both ranges lie within their packed bytes, because those of the
            // slice do (conditions of `# Safety`). `len` bytes at `target` are writable, and nobody else accesses them
            // (`put_with`), so they do not overlap the elements.
            unsafe {
                part.pack(0..begin, target);
                part.pack(end..len, target.wrapping_add(end as usize));
            }
        })
    }
}

/// Returns whether the static way of a reduction of `size` ranks with `bytes` bytes each has slices.
#[inline]
pub(super) fn has_slices(size: usize, bytes: u64) -> bool {
    size > 2 && bytes >= SLICES
}

/// Returns the number of elements of a piece of at most `piece` bytes. An element has `bytes` bytes, at most `piece`.
fn elements(piece: u64, bytes: u64) -> u64 {
    (piece / bytes.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coll::flags::turn::LONGEST;
    use crate::shm::cells::STEPS;

    #[test]
    fn the_steps_of_the_longest_reductions_can_be_numbered() {
        for bytes in [1, 8, 24, 1000, SHORT / 2, SHORT / 2 + 1, SHORT - 1, SHORT] {
            let pieces = steps(LONGEST / bytes, elements(SHORT, bytes));
            // In slices, each piece takes two steps.
            assert!(2 * pieces <= STEPS, "{bytes}");
        }
    }
}
