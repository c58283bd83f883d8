//! The calls that move data through cells: barrier, broadcast, gather, allgather, and alltoall of equal parts.
//!
//! `turn.rs` passes the pieces on.

use super::block::SHORT;
use super::fold::packed;
use super::heads::check;
use super::piece::{range, steps};
use super::turn::{LONGEST, Turn};
use crate::coll::collective::check_parts;
use crate::coll::schedule::gather::missing;
use crate::message::payload::copy_layout;
use crate::schedule::calls;
use crate::schedule::table::Place;
use crate::{Plan, Result};
use std::ops::Range;
use typepack_engine::Elements;

/// Size of a cache line in bytes.
const LINE: u64 = 64;

impl Turn<'_> {
    pub(super) fn barrier(&mut self) -> Result<()> {
        self.room(0, 0)?;
        self.publish(0, 0, &[]);
        self.meet()
    }

    /// Returns whether this rank or another rank wishes something. All ranks get the same answer.
    pub(super) fn is_wished(&mut self, wishes: bool) -> Result<bool> {
        self.room(0, 0)?;
        // The head is the answer of this rank instead of a number of bytes.
        self.publish(0, u64::from(wishes), &[]);
        self.meet()?;
        let mut is_wished = wishes;
        for from in self.others() {
            let head = self.head(from);
            check(from, head, head.min(1))?;
            is_wished |= head == 1;
        }
        Ok(is_wished)
    }

    /// # Safety
    ///
    /// - The elements of `part` are readable at the root and writable at the other ranks, and nobody else accesses
    ///   them until the function returns.
    #[inline]
    pub(super) unsafe fn broadcast(&mut self, part: &Elements<&Plan>, root: usize) -> Result<()> {
        let bytes = part.bytes()?;
        let piece = self.piece(bytes);
        for index in 0..steps(bytes, piece) {
            self.begin(index);
            let range = range(bytes, piece, index);
            if self.rank == root {
                // SAFETY: this rank is the root, so the elements are readable (condition of `# Safety`). The range is a
                // piece of the packed bytes.
                unsafe { self.put((index, self.next()), part, range, bytes)? };
                self.wake_others();
            } else {
                let head = self.wait_for(root)?;
                // SAFETY: this rank is not the root, so the elements are writable (condition of `# Safety`). The range
                // is a piece of the packed bytes.
                unsafe { self.take(root, head, part, range)? };
            }
        }
        Ok(())
    }

    /// Makes a gather. The data of a rank that has too long data for cells are a message to the root. That rank and the
    /// root decide alike, because both know the length of these data; the other ranks do not know this length.
    ///
    /// # Safety
    ///
    /// - The elements of `mine` are readable, those of `parts` at the root are writable, and nobody else accesses
    ///   them until the function returns.
    pub(super) unsafe fn gather(
        &mut self,
        place: Place,
        mine: Option<&Elements<&Plan>>,
        parts: &[Elements<&Plan>],
        root: usize,
    ) -> Result<()> {
        let rank = self.rank;
        if rank == root {
            // SAFETY: the caller guarantees for `mine` and `parts` what `collect` asks for.
            return unsafe { self.collect(place, mine, parts) };
        }
        let mine = mine.ok_or_else(|| missing(rank, root))?;
        let bytes = mine.bytes()?;
        if bytes > LONGEST {
            // The root and the other ranks do not wait for cells of this rank.
            self.leave();
            let comm = self.comm;
            // SAFETY: the only step reads the elements of `mine`, which are readable (condition of `# Safety`).
            return unsafe {
                calls::run(comm.endpoint(), (self.method(), self.size), place, |steps| {
                    steps.send(mine, comm.peer(root)?).map(|_step| ())
                })
            };
        }
        let piece = self.piece(bytes);
        for index in 0..steps(bytes, piece) {
            self.begin(index);
            // SAFETY: the elements of `mine` are readable (condition of `# Safety`), and the range is a piece of their
            // packed bytes.
            unsafe { self.put((index, root), mine, range(bytes, piece, index), bytes)? };
            self.wake_ready(index, std::iter::once(root));
        }
        Ok(())
    }

    /// Makes a gather at the root.
    ///
    /// # Safety
    ///
    /// - The elements of `mine` are readable, those of `parts` are writable, and nobody else accesses them until the
    ///   function returns.
    unsafe fn collect(
        &mut self,
        place: Place,
        mine: Option<&Elements<&Plan>>,
        parts: &[Elements<&Plan>],
    ) -> Result<()> {
        check_parts(self.comm, parts)?;
        let (rank, size) = (self.rank, self.size);
        // SAFETY: `mine` and this rank's part are valid (condition of `# Safety`).
        let mut result = mine.map_or(Ok(()), |mine| unsafe { copy_own(mine, &parts[rank], rank) });
        // The ranks that send something else than expected, and those that send messages, as bits. `MOST` in `mod.rs`
        // is less than 64.
        let (mut wrong, mut apart) = (0u64, 0u64);
        let mut longest = 0;
        for from in (0..size).filter(|from| *from != rank) {
            match parts[from].bytes()? {
                bytes @ ..=LONGEST => longest = longest.max(bytes),
                _ => apart |= 1 << from,
            }
        }
        // A rank whose data fit in a short piece has one step, whatever the size of the pieces.
        let piece = self.piece(longest);
        for index in 0..steps(longest, piece) {
            self.begin(index);
            let cut = |from: usize| range(packed(&parts[from]), piece, index);
            let mut active = 0u64;
            let skipped = wrong | apart;
            for from in (0..size).filter(|from| *from != rank && skipped >> from & 1 == 0) {
                active |= u64::from(index == 0 || !cut(from).is_empty()) << from;
            }
            // Take the pieces that have come while the other ranks write theirs.
            let mut came = 0u64;
            for from in (0..size).filter(|from| active >> from & 1 == 1) {
                came |= u64::from(self.come(from).is_some()) << from;
            }
            for (step, those) in [came, active & !came].into_iter().enumerate() {
                if step == 1 {
                    self.wait_for_those(size, |from| those >> from & 1 == 1)?;
                }
                for from in (0..size).filter(|from| those >> from & 1 == 1) {
                    let head = self.head(from);
                    // SAFETY: the elements of `parts` are writable (condition of `# Safety`), and the range is a piece
                    // of the packed bytes.
                    let taken = unsafe { self.take(from, head, &parts[from], cut(from)) };
                    wrong |= u64::from(taken.is_err()) << from;
                    result = result.and(taken);
                }
            }
            if index == 0 && apart == 0 {
                self.cells.seat.all_have_published(self.number);
            }
        }
        if apart == 0 {
            return result;
        }
        let comm = self.comm;
        // SAFETY: the steps write to the elements of `parts`, which are writable (condition of `# Safety`).
        let received = unsafe {
            calls::run(comm.endpoint(), (self.method(), self.size), place, |steps| {
                let mut from = (0..size).filter(|from| apart >> from & 1 == 1);
                from.try_for_each(|from| {
                    steps.receive(&parts[from], comm.peer(from)?).map(|_step| ())
                })
            })
        };
        result.and(received)
    }

    /// Makes an allgather. The longest of `parts` has `longest` packed bytes, at most [`LONGEST`].
    ///
    /// # Safety
    ///
    /// - The elements of `mine` are readable, those of `parts` are readable and writable, and nobody else accesses
    ///   them until the function returns.
    pub(super) unsafe fn allgather(
        &mut self,
        mine: Option<&Elements<&Plan>>,
        parts: &[Elements<&Plan>],
        longest: u64,
    ) -> Result<()> {
        check_parts(self.comm, parts)?;
        let rank = self.rank;
        let own = mine.unwrap_or(&parts[rank]);
        let bytes = own.bytes()?;
        let piece = self.piece(longest);
        let last = steps(longest, piece);
        // SAFETY: the elements of `mine` and `parts` are readable (condition of `# Safety`). The range is a piece of
        // the packed bytes.
        unsafe { self.put((0, self.next()), own, range(bytes, piece, 0), bytes)? };
        let mut result = match mine {
            // SAFETY: `mine` and this rank's part are valid (condition of `# Safety`).
            Some(mine) => unsafe { copy_own(mine, &parts[rank], rank) },
            None => Ok(()),
        };
        for index in 0..last {
            self.begin(index);
            if index + 1 < last {
                // SAFETY: the elements are readable, and the range is a piece of the packed bytes, as above.
                unsafe {
                    self.put((index + 1, self.next()), own, range(bytes, piece, index + 1), bytes)?
                };
            }
            self.meet()?;
            for from in (0..self.size).filter(|from| *from != rank) {
                let (head, range) = (self.head(from), range(parts[from].bytes()?, piece, index));
                // SAFETY: the elements of `parts` are writable (condition of `# Safety`). The range is a piece of the
                // packed bytes.
                let taken = unsafe { self.take(from, head, &parts[from], range) };
                result = result.and(taken);
            }
        }
        result
    }

    /// # Safety
    ///
    /// - The elements of `send` are readable, those of `receive` are writable, and readable if `send` is `None`, and
    ///   nobody else accesses them until the function returns.
    pub(super) unsafe fn alltoall(
        &mut self,
        send: Option<&[Elements<&Plan>]>,
        receive: &[Elements<&Plan>],
    ) -> Result<()> {
        check_parts(self.comm, receive)?;
        let parts = send.unwrap_or(receive);
        check_parts(self.comm, parts)?;
        let (rank, size) = (self.rank, self.size);
        let others = size as u64 - 1;
        let bytes = receive[0].bytes()?;
        for part in parts.iter().chain(receive) {
            check(rank, part.bytes()?, bytes)?;
        }
        // In each step, a rank publishes `each` bytes for every other rank.
        let each = match bytes.saturating_mul(others) {
            ..=SHORT => bytes,
            all => share(bytes, others, self.piece(all)),
        };
        let last = steps(bytes, each);
        // SAFETY: each of the parts has `bytes` packed bytes (checked above) and is readable (condition of `# Safety`).
        unsafe { self.put_all(0, parts, range(bytes, each, 0), bytes)? };
        if let Some(send) = send {
            // SAFETY: both parts are valid and do not overlap (condition of `# Safety`).
            unsafe { copy_own(&send[rank], &receive[rank], rank)? };
        }
        for index in 0..last {
            self.begin(index);
            if index + 1 < last {
                // SAFETY: the parts are readable and have `bytes` packed bytes, as above. In place, this rank has
                // written other bytes of the parts only: those of the steps before.
                unsafe { self.put_all(index + 1, parts, range(bytes, each, index + 1), bytes)? };
            }
            let range = range(bytes, each, index);
            let len = range.end - range.start;
            let all = len * others;
            self.meet()?;
            self.check_all(size, bytes)?;
            for from in (0..size).filter(|from| *from != rank) {
                let mine = (all, offset(from, rank, len));
                // SAFETY: the part has `bytes` packed bytes (checked above) and is writable (condition of `# Safety`).
                // Rank `from` cuts its data as this rank does (`check_all`), so its piece has `all` bytes: `len` bytes
                // for each rank except itself.
                unsafe { self.read_at(from, mine, &receive[from], range.clone()) };
            }
        }
        Ok(())
    }

    /// Publishes the packed bytes of `range` of each part except this rank's in step `index`.
    ///
    /// # Safety
    ///
    /// - The elements of `parts` are readable, and nobody changes them until the function returns.
    /// - `range` lies within the packed bytes of each part. Its length, multiplied by the number of the parts except
    ///   this rank's, is at most that of a piece ([`piece`](Self::piece)).
    unsafe fn put_all(
        &mut self,
        index: u64,
        parts: &[Elements<&Plan>],
        range: Range<u64>,
        bytes: u64,
    ) -> Result<()> {
        let (rank, len) = (self.rank, range.end - range.start);
        let all = len * (self.size as u64 - 1);
        self.put_with((index, self.next()), all, bytes, |target| {
            for (to, part) in parts.iter().enumerate().filter(|(to, _)| *to != rank) {
                let target = target.wrapping_add(offset(rank, to, len) as usize);
                // SAFETY: `range` lies within the packed bytes of the part, which is readable (conditions of
                // `# Safety`). `target` is the place of these `len` bytes in memory for `all` bytes, which nobody else
                // accesses (`put_with`).
                unsafe { part.pack(range.clone(), target) };
            }
        })
    }
}

/// Returns the number of bytes for each other rank in a step of an alltoall with `bytes` bytes for each of `others`
/// other ranks, if a step takes `piece` bytes.
fn share(bytes: u64, others: u64, piece: u64) -> u64 {
    let each = (piece / others).max(1);
    if each > LINE && each < bytes { each / LINE * LINE } else { each }
}

/// Returns the number of packed bytes of the longest part.
#[inline]
pub(super) fn longest(parts: &[Elements<&Plan>]) -> Result<u64> {
    parts.iter().try_fold(0, |longest, part| Ok(part.bytes()?.max(longest)))
}

/// Returns the offset of the data for rank `to` in the data of rank `from`, which has `len` bytes for every other rank.
fn offset(from: usize, to: usize, len: u64) -> u64 {
    (to - usize::from(to > from)) as u64 * len
}

/// Copies this rank's own data from one part to another.
///
/// # Safety
///
/// - The elements of `from` are readable, those of `to` are writable, nobody else accesses them until the function
///   returns, and they do not overlap.
pub(super) unsafe fn copy_own(
    from: &Elements<&Plan>,
    to: &Elements<&Plan>,
    rank: usize,
) -> Result<()> {
    let bytes = from.bytes()?;
    check(rank, bytes, to.bytes()?)?;
    // SAFETY: `bytes` is the packed size of both (checked above), and the caller guarantees that both are valid and
    // do not overlap.
    unsafe { copy_layout(from, to, bytes) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coll::flags::MOST;
    use crate::shm::cells::STEPS;

    #[test]
    fn the_steps_of_the_longest_calls_can_be_numbered() {
        assert!(steps(LONGEST, SHORT) <= STEPS);
        for others in 1..MOST as u64 {
            let bytes = LONGEST / (others + 1);
            assert!(steps(bytes, share(bytes, others, SHORT)) <= STEPS, "{others}");
        }
    }

    #[test]
    fn the_shares_of_an_alltoall_fit_in_a_piece() {
        for others in 1..MOST as u64 {
            for (bytes, piece) in [(SHORT / others + 1, SHORT), (100_000, SHORT), (1 << 40, 40_000)]
            {
                let each = share(bytes, others, piece);
                assert!(each > 0 && each * others <= piece, "{others} {bytes} {piece}");
            }
        }
    }
}
