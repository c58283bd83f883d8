//! The calls in which a rank has different data for different ranks: scatter, alltoall of unequal parts, and exchanges
//! between neighbours.
//!
//! A rank that sends publishes one piece in each step. The piece has a slot for each part that the rank sends. The
//! slots have the same size, so that a reader finds its slot without the sizes of the other parts:
//!
//! ```text
//! slot   tag: the rank that gets the part, and its number of packed bytes | data
//! ```
//!
//! The tag has eight bytes if the piece lies in the cell. In the ring it has a cache line, so that the data begin at a
//! line. The head of the cell gives the number of slots, and how many bytes of data a slot takes. All ranks may cut
//! their parts differently: each rank decides by its longest part.
//!
//! If a rank sends too many or too long parts for slots, its cell says so, and its data go by messages. So the ranks
//! need not know the sizes of each other's parts.

use super::super::gather::missing;
use super::block::SHORT;
use super::turn::{INLINE, LONGEST, Turn, check, layout, range, steps};
use crate::schedule::table::Place;
use crate::schedule::{Part, calls};
use crate::topo::Neighbors;
use crate::{Error, ErrorKind, Result};
use std::ops::Range;

/// Size of a cache line in bytes.
const LINE: u64 = 64;

/// Largest number of slots of a piece.
const MOST_SLOTS: u64 = 64;

const _: () = assert!(MOST_SLOTS * 2 * LINE <= SHORT);

/// Number of low bits in a tag for the number of bytes. The bits above are for the rank.
const BYTES_BITS: u32 = 56;

const _: () = assert!(super::MOST <= 1 << (u64::BITS - BYTES_BITS) && LONGEST < 1 << BYTES_BITS);

/// How a rank cuts its parts into slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slots {
    count: u64,
    /// Number of bytes of data in a slot: a multiple of 8.
    each: u64,
}

/// The head of the cell of a rank whose data go by messages.
const BY_MESSAGES: u64 = u32::MAX as u64;

impl Slots {
    /// Returns how to cut `count` parts, the longest of which has `longest` bytes, if a piece has at most
    /// `piece(bytes)` bytes for data of `bytes` bytes, at least [`SHORT`]. Returns `None` if the parts must go by
    /// messages.
    fn new(count: u64, longest: u64, piece: impl FnOnce(u64) -> u64) -> Option<Self> {
        if count > MOST_SLOTS || longest.checked_mul(count.max(1))? > LONGEST {
            return None;
        }
        let each = longest.next_multiple_of(8).max(8);
        if count * (8 + each) <= INLINE {
            return Some(Self { count, each });
        }
        let each = longest.next_multiple_of(LINE).max(LINE);
        let all = count * (LINE + each);
        let piece = piece(all);
        if all <= piece {
            return Some(Self { count, each });
        }
        Some(Self { count, each: piece / count / LINE * LINE - LINE })
    }

    /// Returns the form of these slots in the head of a cell.
    fn head(self) -> u64 {
        self.count << 32 | self.each
    }

    /// Returns the slots that a head says, if a piece with them has at most `room` bytes.
    fn from_head(head: u64, room: u64) -> Option<Self> {
        let slots = Self { count: head >> 32, each: head & u64::from(u32::MAX) };
        let fits = slots.count <= MOST_SLOTS && slots.each <= room && slots.bytes() <= room;
        (slots.each > 0 && slots.each % 8 == 0 && fits).then_some(slots)
    }

    /// Returns the number of bytes of a tag.
    fn tag(self) -> u64 {
        if self.count * (8 + self.each) <= INLINE { 8 } else { LINE }
    }

    /// Returns the number of bytes of a piece.
    fn bytes(self) -> u64 {
        self.count * (self.tag() + self.each)
    }

    /// Returns the packed bytes of a part of `bytes` bytes that travel in step `index`.
    fn range(self, bytes: u64, index: u64) -> Range<u64> {
        range(bytes, self.each, index)
    }

    /// Returns the number of steps for parts of at most `longest` bytes.
    fn steps(self, longest: u64) -> u64 {
        steps(longest, self.each)
    }
}

fn tag(to: usize, bytes: u64) -> u64 {
    (to as u64) << BYTES_BITS | bytes
}

/// Which slot of the sender has a part.
#[derive(Clone, Copy, Debug)]
enum Slot {
    /// The slot with this index.
    Index(usize),
    /// The slot after this number of slots for the same rank.
    Nth(usize),
}

/// Returns the slot of rank `to` in the piece of rank `from`, which sends a part to each other rank.
fn slot_of(from: usize, to: usize) -> Slot {
    Slot::Index(to - usize::from(to > from))
}

impl Turn<'_> {
    /// Makes a scatter.
    ///
    /// # Safety
    ///
    /// - The elements of `parts` at the root are readable, those of `mine` are writable, and nobody else accesses them
    ///   until the function returns.
    pub(super) unsafe fn scatter(
        &mut self,
        place: Place,
        parts: &[Part<'_>],
        mine: Option<&Part<'_>>,
        root: usize,
    ) -> Result<()> {
        let rank = self.rank;
        if rank != root {
            let mine = mine.ok_or_else(|| missing(rank, root))?;
            let incoming = std::iter::once((root, slot_of(root, rank), *mine));
            // SAFETY: the elements of `mine` are writable (condition of `# Safety`).
            return unsafe { self.exchange(place, std::iter::empty(), incoming, false) };
        }
        super::super::collective::check_parts(self.comm, parts)?;
        let own = mine.map_or(Ok(()), |mine| {
            // SAFETY: `mine` and this rank's part are valid and do not overlap (condition of `# Safety`).
            unsafe { super::turn::copy_own(&parts[rank], mine, rank) }
        });
        // SAFETY: the elements of `parts` are readable (condition of `# Safety`).
        let sent = unsafe { self.exchange(place, others(parts, rank), std::iter::empty(), false) };
        own.and(sent)
    }

    /// Makes an alltoall whose parts may have different sizes, not in place.
    ///
    /// # Safety
    ///
    /// - The elements of `send` are readable, those of `receive` are writable, and nobody else accesses them until the
    ///   function returns.
    pub(super) unsafe fn alltoall_unequal(
        &mut self,
        place: Place,
        send: &[Part<'_>],
        receive: &[Part<'_>],
    ) -> Result<()> {
        super::super::collective::check_parts(self.comm, send)?;
        super::super::collective::check_parts(self.comm, receive)?;
        let rank = self.rank;
        // SAFETY: both parts are valid and do not overlap (condition of `# Safety`).
        let own = unsafe { super::turn::copy_own(&send[rank], &receive[rank], rank) };
        let incoming = others(receive, rank).map(|(from, part)| (from, slot_of(from, rank), part));
        // SAFETY: the elements of `send` are readable and those of `receive` writable (condition of `# Safety`).
        let exchanged = unsafe { self.exchange(place, others(send, rank), incoming, true) };
        own.and(exchanged)
    }

    /// Makes an exchange between neighbours.
    ///
    /// # Safety
    ///
    /// - The elements of `send` are readable, those of `receive` are writable, and nobody else accesses them until the
    ///   function returns.
    pub(super) unsafe fn exchange_neighbors(
        &mut self,
        place: Place,
        neighbors: &Neighbors,
        send: &[Part<'_>],
        receive: &[Part<'_>],
    ) -> Result<()> {
        use super::super::neighbors::{check_parts, unmatched};
        check_parts("send", send, neighbors.destinations())?;
        check_parts("receive", receive, neighbors.sources())?;
        let (rank, sources) = (self.rank, neighbors.sources());
        let mut own = neighbors.receive_order().filter(|&place| sources[place] == Some(rank));
        let mut copied = Ok(());
        let mine = send.iter().zip(neighbors.destinations());
        for (part, _) in mine.clone().filter(|(_, to)| **to == Some(rank)) {
            let target = own.next().ok_or_else(|| unmatched(rank))?;
            // SAFETY: both parts are valid and do not overlap (condition of `# Safety`).
            copied = copied.and(unsafe { super::turn::copy_own(part, &receive[target], rank) });
        }
        if own.next().is_some() {
            return Err(unmatched(rank));
        }
        let outgoing = mine.filter_map(|(part, to)| Some(((*to)?, *part)));
        let outgoing = outgoing.filter(|(to, _)| *to != rank);
        let incoming = neighbors.receive_order().enumerate().filter_map(|(at, place)| {
            let source = sources[place].filter(|source| *source != rank)?;
            let earlier = neighbors.receive_order().take(at);
            let nth = earlier.filter(|&other| sources[other] == Some(source)).count();
            Some((source, Slot::Nth(nth), receive[place]))
        });
        // SAFETY: the elements of `send` are readable and those of `receive` writable (condition of `# Safety`).
        let exchanged = unsafe { self.exchange(place, outgoing, incoming, false) };
        copied.and(exchanged)
    }

    /// Sends each part of `outgoing` to its rank, and receives each part of `incoming` from its rank, out of its slot.
    /// No rank is this rank. If `all` is true, every rank sends to every other rank.
    ///
    /// # Safety
    ///
    /// - The elements of the outgoing parts are readable, those of the incoming parts are writable, and nobody else
    ///   accesses them until the function returns.
    unsafe fn exchange<'p>(
        &mut self,
        place: Place,
        outgoing: impl Iterator<Item = (usize, Part<'p>)> + Clone,
        incoming: impl Iterator<Item = (usize, Slot, Part<'p>)> + Clone,
        all: bool,
    ) -> Result<()> {
        let (mut count, mut longest) = (0, 0);
        // Ranks as bits. `MOST` in `mod.rs` is less than 64.
        let (mut readers, mut pending, mut apart) = (0u64, 0u64, 0u64);
        for (to, part) in outgoing.clone() {
            (count, longest) = (count + 1, part.bytes()?.max(longest));
            readers |= 1 << to;
        }
        incoming.clone().for_each(|(from, ..)| pending |= 1 << from);
        let slots = Slots::new(count, longest, |bytes| self.piece(bytes));
        let last = match slots {
            Some(_) if count == 0 => 0,
            Some(slots) => slots.steps(longest),
            None => 1,
        };
        // Whoever waits for this rank only must not wait until this rank has all that it waits for.
        self.quick &= last <= 1 && (all || pending == 0);
        if last > 0 {
            match slots {
                // SAFETY: the elements of the outgoing parts are readable (condition of `# Safety`).
                Some(slots) => unsafe { self.put_slots(0, slots, readers, outgoing.clone())? },
                None => {
                    self.room(0, 0)?;
                    self.publish(0, BY_MESSAGES, &[]);
                }
            }
            if !all {
                self.wake_readers(0, readers);
            }
        }
        let mut result = Ok(());
        let mut index = 0;
        loop {
            self.begin(index);
            if index + 1 < last
                && let Some(slots) = slots
            {
                // SAFETY: the elements of the outgoing parts are readable (condition of `# Safety`).
                unsafe { self.put_slots(index + 1, slots, readers, outgoing.clone())? };
                self.wake_readers(index + 1, readers);
            }
            if all && index == 0 {
                self.meet()?;
            } else if pending != 0 {
                let those = pending;
                self.wait_for_those(self.size, |from| those >> from & 1 == 1)?;
            }
            let mut more = 0u64;
            let active = pending;
            for (from, slot, part) in incoming.clone().filter(|(from, ..)| active >> from & 1 == 1)
            {
                let head = self.head(from);
                if head == BY_MESSAGES {
                    apart |= 1 << from;
                    continue;
                }
                // SAFETY: the elements of `part` are writable (condition of `# Safety`).
                match unsafe { self.take_slot(from, head, slot, &part, index) } {
                    Ok(rest) => more |= u64::from(rest) << from,
                    Err(error) => result = result.and(Err(error)),
                }
            }
            pending = more;
            index += 1;
            if index >= last && pending == 0 {
                break;
            }
        }
        let by_messages = slots.is_none();
        if !by_messages && apart == 0 {
            return result;
        }
        let comm = self.comm;
        // SAFETY: the steps read the elements of the outgoing parts and write those of the incoming parts, which are
        // valid (condition of `# Safety`).
        let exchanged = unsafe {
            calls::run(comm.endpoint(), place, |steps| {
                for (from, _, part) in incoming.filter(|(from, ..)| apart >> from & 1 == 1) {
                    steps.receive(&part, comm.peer(from)?)?;
                }
                for (to, part) in outgoing.filter(|_| by_messages) {
                    steps.send(&part, comm.peer(to)?)?;
                }
                Ok(())
            })
        };
        result.and(exchanged)
    }

    /// Publishes the packed bytes of all outgoing parts that travel in step `index`. Some of the ranks `readers`, as
    /// bits, read them.
    ///
    /// # Safety
    ///
    /// - The elements of the parts are readable, and nobody changes them until the function returns. There are
    ///   `slots.count` parts.
    unsafe fn put_slots<'p>(
        &mut self,
        index: u64,
        slots: Slots,
        readers: u64,
        outgoing: impl Iterator<Item = (usize, Part<'p>)>,
    ) -> Result<()> {
        let reader = readers.trailing_zeros() as usize;
        let mut packed = Ok(());
        self.put_with((index, reader), slots.bytes(), slots.head(), |target| {
            for (slot, (to, part)) in (0..slots.count).zip(outgoing) {
                let target = target.wrapping_add((slot * (slots.tag() + slots.each)) as usize);
                let bytes = match part.bytes() {
                    Ok(bytes) => bytes,
                    Err(error) => return packed = Err(error),
                };
                // SAFETY: `target` is the place of slot `slot` of `slots.count` in memory for the piece, which nobody
                // else accesses (`put_with`). It is a multiple of 8, because a slot and the piece begin at such
                // addresses.
                unsafe { target.cast::<u64>().write(tag(to, bytes)) };
                let range = slots.range(bytes, index);
                let target = target.wrapping_add(slots.tag() as usize);
                // SAFETY: the part is readable (condition of `# Safety`), and the range lies within its packed bytes.
                // The slot has room for `slots.each` bytes of data, which is at least the length of the range.
                unsafe { layout(&part).pack(range, target) };
            }
        })?;
        packed
    }

    /// Copies the bytes of `part` that travel in step `index` out of a slot of rank `from`, whose cell has arrived with
    /// this head. Returns whether there are more in the next step.
    ///
    /// # Safety
    ///
    /// - The elements of `part` are writable, and nobody else accesses them until the function returns.
    unsafe fn take_slot(
        &self,
        from: usize,
        head: u64,
        slot: Slot,
        part: &Part<'_>,
        index: u64,
    ) -> Result<bool> {
        let bytes = part.bytes()?;
        let Some(slots) = Slots::from_head(head, self.cells.block.room()) else {
            // The head is none of this kind: `check` finds the reason.
            check(from, head, bytes)?;
            return Err(faulty(from));
        };
        let mut words = super::turn::Words([0; crate::shm::cells::WORDS]);
        let data = self.data(from, slots.bytes(), &mut words);
        let size = slots.tag() + slots.each;
        let start = |slot: u64| data.wrapping_add((slot * size) as usize);
        // SAFETY: `slot` is less than the number of slots (below), and the piece has `slots.bytes()` readable bytes at
        // `data`: in `words` or in the ring. If the rank is faulty, the address may be no multiple of 8.
        let read = |slot: u64| unsafe { start(slot).cast::<u64>().read_unaligned() };
        let is_mine = |slot: &u64| read(*slot) >> BYTES_BITS == self.rank as u64;
        let found = match slot {
            Slot::Index(slot) => {
                Some(slot as u64).filter(|slot| *slot < slots.count && is_mine(slot))
            }
            Slot::Nth(nth) => (0..slots.count).filter(is_mine).nth(nth),
        };
        let Some(found) = found else { return Err(without_part(from, self.rank)) };
        check(from, read(found) & ((1 << BYTES_BITS) - 1), bytes)?;
        let range = slots.range(bytes, index);
        let data = start(found).wrapping_add(slots.tag() as usize);
        let method = self.cells.copies.reading();
        // SAFETY: the range lies within the packed bytes of `part`, whose elements are writable (condition of
        // `# Safety`). A slot has `slots.each` bytes of data, at least as many as the range.
        let copy = || unsafe { layout(part).unpack(range, data) };
        self.timed(from..from + 1, slots.bytes(), || {
            typepack_engine::contiguous::with(method, copy);
        });
        Ok(!slots.range(bytes, index + 1).is_empty())
    }

    /// Wakes those of the ranks `readers`, as bits, that wait in step `index`, in which this rank has published.
    fn wake_readers(&self, index: u64, readers: u64) {
        let is_reader = |rank: &usize| readers >> rank & 1 == 1;
        if !self.comm.endpoint().sleeps_at_once() {
            if !self.quick {
                self.others().filter(is_reader).for_each(|rank| self.ring(rank));
            }
            return;
        }
        let super::Cells { seat, block, .. } = &*self.cells;
        let sleepers = seat.sleepers(block, self.step(index));
        sleepers.filter(is_reader).for_each(|rank| self.ring(rank));
    }
}

/// Returns the parts of all ranks except `rank`, with their ranks.
fn others<'a, 'p>(
    parts: &'a [Part<'p>],
    rank: usize,
) -> impl Iterator<Item = (usize, Part<'p>)> + Clone + use<'a, 'p> {
    parts.iter().copied().enumerate().filter(move |(other, _)| *other != rank)
}

#[cold]
fn faulty(from: usize) -> Error {
    let detail = format!("rank {from} has described its data wrongly in shared memory");
    Error::new(ErrorKind::Other, "message", detail)
}

#[cold]
fn without_part(from: usize, rank: usize) -> Error {
    let detail = format!("rank {from} sends no such part to this rank, rank {rank}");
    Error::new(ErrorKind::Other, "message", detail)
}

#[cfg(test)]
mod tests {
    use super::super::MOST;
    use super::*;
    use crate::shm::cells::STEPS;

    #[test]
    fn slots_fit_in_a_piece_and_in_a_head() {
        for count in 0..=MOST_SLOTS {
            for longest in [0, 1, 8, 40, 41, 100, 5000, 1 << 20, LONGEST / MOST_SLOTS] {
                for piece in [SHORT, 32 << 10, 400_000] {
                    let slots = Slots::new(count, longest, |_| piece).expect("parts for slots");
                    assert!(slots.bytes() <= piece, "{count} {longest} {piece} {slots:?}");
                    if count > 0 && slots.each > 0 {
                        assert_eq!(Slots::from_head(slots.head(), piece), Some(slots));
                    }
                    assert!(slots.steps(longest) <= STEPS);
                    assert_eq!(slots.range(longest, slots.steps(longest) - 1).end, longest);
                    assert_ne!(slots.head(), BY_MESSAGES);
                }
            }
        }
        assert_eq!(Slots::new(MOST_SLOTS + 1, 8, |_| SHORT), None);
        assert_eq!(Slots::new(2, u64::MAX / 2, |_| SHORT), None);
    }

    #[test]
    fn a_head_that_no_rank_writes_is_refused() {
        for head in [0, BY_MESSAGES, u64::MAX, 1 << 32 | 12, 65 << 32 | 8, 2 << 32 | SHORT, 1 << 32]
        {
            assert_eq!(Slots::from_head(head, SHORT), None, "{head:#x}");
        }
    }

    #[test]
    fn the_ranks_have_slots_of_their_own() {
        for from in 0..MOST {
            let slots = (0..MOST).filter(|to| *to != from).map(|to| slot_of(from, to));
            assert!(
                slots
                    .enumerate()
                    .all(|(at, slot)| matches!(slot, Slot::Index(index) if index == at))
            );
        }
    }
}
