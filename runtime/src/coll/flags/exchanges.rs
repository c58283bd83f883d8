//! The calls in which a rank has different data for different ranks: scatter, alltoall of unequal parts, and exchanges
//! between neighbours.
//!
//! A rank that sends publishes its data as a stream: a list of its parts, and then the packed bytes of the parts. The
//! stream is cut into pieces, one for each step. In the list, a reader finds where its parts lie in the stream. Then it
//! waits only for the pieces with its parts.
//!
//! ```text
//! stream   list: for each part the rank that gets it, and its number of packed bytes | part | part | ...
//! ```
//!
//! In a stream that fits in a cell, the parts begin at multiples of eight bytes, and otherwise at cache lines. The head
//! of the cell gives the number of parts and the length of the stream.
//!
//! If a rank has too many or too long parts for a stream, its cell says so, and its data go by messages. So the ranks
//! need not know the sizes of each other's parts.

use super::block::SHORT;
use super::heads::check;
use super::piece::{range, steps};
use super::turn::{INLINE, InlineData, LONGEST, Turn};
use crate::coll::schedule::gather::missing;
use crate::schedule::calls;
use crate::schedule::table::Place;
use crate::shm::cells::WORDS;
use crate::topo::Neighbors;
use crate::{Error, ErrorKind, Plan, Result};
use std::ops::Range;
use typepack_engine::Elements;

/// Size of a cache line in bytes.
const LINE: u64 = 64;

/// Largest number of parts of a stream.
const MOST_PARTS: u64 = 64;

/// Number of low bits in an entry of the list for the number of bytes. The bits above are for the rank.
const BYTES_BITS: u32 = 56;

/// Number of low bits in the head of a cell for the length of a stream. The bits above are for the number of parts.
const LEN_BITS: u32 = 48;

/// The head of the cell of a rank whose data go by messages.
const BY_MESSAGES: u64 = (1 << LEN_BITS) - 1;

const _: () = assert!(super::MOST <= 1 << (u64::BITS - BYTES_BITS) && LONGEST < BY_MESSAGES);
const _: () = assert!(MOST_PARTS * 8 < SHORT && MOST_PARTS < 1 << (62 - LEN_BITS));

/// The form of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stream {
    parts: u64,
    /// Length in bytes, the list included.
    len: u64,
}

impl Stream {
    /// Returns the stream of parts of these numbers of bytes, or `None` if the parts must go by messages.
    fn new(
        parts: impl Iterator<Item = typepack_engine::Result<u64>> + Clone,
    ) -> Result<Option<Self>> {
        for align in [8, LINE] {
            let (mut count, mut sum) = (0, 0u64);
            for bytes in parts.clone() {
                // Neither sum overflows, because `bytes` is less than 2^63.
                (count, sum) = (count + 1, sum.saturating_add(bytes?.next_multiple_of(align)));
            }
            let len = sum.saturating_add((count * 8u64).next_multiple_of(align));
            if count > MOST_PARTS || len > LONGEST {
                return Ok(None);
            }
            if (len <= INLINE) == (align == 8) {
                return Ok(Some(Self { parts: count, len }));
            }
            // A stream that is too long for a cell with the first alignment is also too long with the second one.
        }
        Ok(None)
    }

    /// Returns the form of the stream in the head of a cell.
    fn head(self) -> u64 {
        self.parts << LEN_BITS | self.len
    }

    /// Returns the stream that a head says, or `None` if no rank writes such a head.
    fn from_head(head: u64) -> Option<Self> {
        let stream = Self { parts: head >> LEN_BITS, len: head & BY_MESSAGES };
        let fits = (1..=MOST_PARTS).contains(&stream.parts) && stream.len <= LONGEST;
        (fits && stream.first() <= stream.len).then_some(stream)
    }

    /// Returns the number of which each part begins at a multiple.
    fn align(self) -> u64 {
        if self.len <= INLINE { 8 } else { LINE }
    }

    /// Returns where the first part begins.
    fn first(self) -> u64 {
        (self.parts * 8).next_multiple_of(self.align())
    }

    /// Returns where the part begins that follows a part of `bytes` bytes, which begins at `start`.
    fn after(self, start: u64, bytes: u64) -> u64 {
        start.saturating_add(bytes.saturating_add(self.align() - 1) / self.align() * self.align())
    }
}

/// Where a part that this rank receives lies in the stream of its sender.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    start: u64,
    end: u64,
    /// The length of the sender's pieces.
    piece: u64,
}

impl Found {
    /// Returns the next step from `index` on in which this rank reads bytes of the part.
    fn next_step(self, index: u64) -> Option<u64> {
        if self.start >= self.end {
            return None;
        }
        let (first, last) = (self.start / self.piece, (self.end - 1) / self.piece);
        (index <= last).then_some(first.max(index))
    }
}

/// Returns the common bytes of two ranges.
fn common(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}

fn entry(to: usize, bytes: u64) -> u64 {
    (to as u64) << BYTES_BITS | bytes
}

/// Which entry in the list of the sender stands for a part.
#[derive(Clone, Copy, Debug)]
enum Which {
    /// The entry with this index.
    Index(usize),
    /// The next entry for this rank.
    Next,
}

/// How far this rank has read the list of a sender. A sender may have many parts for this rank. Each part is looked for
/// behind the one before, so the whole list is read once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    /// Number of entries that this rank has read.
    entries: u64,
    /// Where the part of the next entry begins, or 0 before the first entry.
    start: u64,
}

/// Returns the entry for rank `to` in the list of rank `from`, which sends a part to each other rank.
fn entry_of(from: usize, to: usize, size: usize) -> Which {
    Which::Index((to + size - from - 1) % size)
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
        parts: &[Elements<&Plan>],
        mine: Option<&Elements<&Plan>>,
        root: usize,
    ) -> Result<()> {
        let rank = self.rank;
        if rank != root {
            let mine = mine.ok_or_else(|| missing(rank, root))?;
            let incoming = std::iter::once((root, entry_of(root, rank, self.size), *mine));
            // SAFETY: the elements of `mine` are writable (condition of `# Safety`).
            return unsafe { self.exchange(place, std::iter::empty(), incoming, false) };
        }
        crate::coll::collective::check_parts(self.comm, parts)?;
        let own = mine.map_or(Ok(()), |mine| {
            // SAFETY: `mine` and this rank's part are valid and do not overlap (condition of `# Safety`).
            unsafe { super::moves::copy_own(&parts[rank], mine, rank) }
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
        send: &[Elements<&Plan>],
        receive: &[Elements<&Plan>],
    ) -> Result<()> {
        crate::coll::collective::check_parts(self.comm, send)?;
        crate::coll::collective::check_parts(self.comm, receive)?;
        let (rank, size) = (self.rank, self.size);
        // SAFETY: both parts are valid and do not overlap (condition of `# Safety`).
        let own = unsafe { super::moves::copy_own(&send[rank], &receive[rank], rank) };
        let incoming =
            others(receive, rank).map(|(from, part)| (from, entry_of(from, rank, size), part));
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
        send: &[Elements<&Plan>],
        receive: &[Elements<&Plan>],
    ) -> Result<()> {
        use crate::coll::schedule::neighbors::{check_parts, unmatched};
        check_parts("send", send, neighbors.destinations())?;
        check_parts("receive", receive, neighbors.sources())?;
        let (rank, sources) = (self.rank, neighbors.sources());
        let mut own = neighbors.receive_order().filter(|&place| sources[place] == Some(rank));
        let mut copied = Ok(());
        let mine = send.iter().zip(neighbors.destinations());
        for (part, _) in mine.clone().filter(|(_, to)| **to == Some(rank)) {
            let target = own.next().ok_or_else(|| unmatched(rank))?;
            // SAFETY: both parts are valid and do not overlap (condition of `# Safety`).
            copied = copied.and(unsafe { super::moves::copy_own(part, &receive[target], rank) });
        }
        if own.next().is_some() {
            return Err(unmatched(rank));
        }
        let outgoing = mine.filter_map(|(part, to)| Some(((*to)?, *part)));
        let outgoing = outgoing.filter(|(to, _)| *to != rank);
        let incoming = neighbors.receive_order().filter_map(|place| {
            let source = sources[place].filter(|source| *source != rank)?;
            Some((source, Which::Next, receive[place]))
        });
        // SAFETY: the elements of `send` are readable and those of `receive` writable (condition of `# Safety`).
        let exchanged = unsafe { self.exchange(place, outgoing, incoming, false) };
        copied.and(exchanged)
    }

    /// Sends each part of `outgoing` to its rank, and receives each part of `incoming` from its rank. No rank is this
    /// rank. If `all` is true, every rank sends to every other rank.
    ///
    /// # Safety
    ///
    /// - The elements of the outgoing parts are readable, those of the incoming parts are writable, and nobody else
    ///   accesses them until the function returns.
    unsafe fn exchange<'p>(
        &mut self,
        place: Place,
        outgoing: impl Iterator<Item = (usize, Elements<&'p Plan>)> + Clone,
        incoming: impl Iterator<Item = (usize, Which, Elements<&'p Plan>)> + Clone,
        all: bool,
    ) -> Result<()> {
        // Ranks as bits. `MOST` in `mod.rs` is less than 64.
        let readers = outgoing.clone().fold(0u64, |bits, (to, _)| bits | 1 << to);
        // A rank may wait for this rank although this rank does not send to it, by mistake. Such a rank must be woken,
        // too. If this rank does not sleep at once, the end of the call wakes it.
        let heard = if self.sleeps { u64::MAX } else { readers };
        let sources = incoming.clone().fold(0u64, |bits, (from, ..)| bits | 1 << from);
        let stream = Stream::new(outgoing.clone().map(|(_, part)| part.bytes()))?;
        let piece = stream.map_or(SHORT, |stream| self.piece(stream.len));
        let last = match stream {
            Some(_) if readers == 0 => 0,
            Some(stream) => steps(stream.len, piece),
            None => 1,
        };
        // Whoever waits for this rank only must not wait until this rank has all that it waits for.
        self.quick &= last <= 1 && (all || sources == 0);
        if last > 0 {
            match stream {
                // SAFETY: the elements of the outgoing parts are readable (condition of `# Safety`).
                Some(stream) => unsafe {
                    self.put_piece(0, stream, piece, readers, outgoing.clone())?
                },
                None => {
                    self.room(0, 0)?;
                    self.publish(0, BY_MESSAGES, &[]);
                }
            }
            if !all {
                self.wake_ready(0, self.others().filter(|rank| heard >> rank & 1 == 1));
            }
        }
        let mut found = std::mem::take(&mut self.cells.found);
        found.clear();
        let (mut result, mut apart) = (Ok(()), 0u64);
        let mut index = 0;
        loop {
            self.begin(index);
            if index + 1 < last
                && let Some(stream) = stream
            {
                // SAFETY: the elements of the outgoing parts are readable (condition of `# Safety`).
                unsafe { self.put_piece(index + 1, stream, piece, readers, outgoing.clone())? };
                self.wake_ready(index + 1, self.others().filter(|rank| heard >> rank & 1 == 1));
            }
            if index == 0 {
                if all {
                    self.meet()?;
                } else if sources != 0 {
                    self.wait_for_those(self.size, |from| sources >> from & 1 == 1)?;
                }
                let mut cursors = std::mem::take(&mut self.cells.cursors);
                cursors.clear();
                cursors.resize(self.size, Cursor::default());
                for (from, which, part) in incoming.clone() {
                    let head = self.head(from);
                    let at = match head {
                        BY_MESSAGES => {
                            apart |= 1 << from;
                            Ok(Found::default())
                        }
                        _ => self.find(from, head, which, part.bytes()?, &mut cursors[from]),
                    };
                    found.push(*at.as_ref().unwrap_or(&Found::default()));
                    result = result.and(at.map(|_| ()));
                }
                self.cells.cursors = cursors;
            } else {
                let active = incoming.clone().zip(&found);
                let active = active.filter(|(_, found)| found.next_step(index) == Some(index));
                let active = active.fold(0u64, |bits, ((from, ..), _)| bits | 1 << from);
                if active != 0 {
                    self.wait_for_those(self.size, |from| active >> from & 1 == 1)?;
                }
            }
            for ((from, _, part), at) in incoming.clone().zip(&mut found) {
                if at.next_step(index) != Some(index) {
                    continue;
                }
                // SAFETY: the elements of `part` are writable (condition of `# Safety`). `find` has checked the
                // length of the part in the stream.
                if let Err(error) = unsafe { self.take_piece(from, *at, &part, index) } {
                    *at = Found::default();
                    result = result.and(Err(error));
                }
            }
            let next = found.iter().filter_map(|at| at.next_step(index + 1)).min();
            index = match (next, index + 1 < last) {
                (_, true) => index + 1,
                (Some(next), false) => next,
                (None, false) => break,
            };
        }
        self.cells.found = found;
        let by_messages = stream.is_none();
        if !by_messages && apart == 0 {
            return result;
        }
        // This rank reads no more cells in this call. A rank that waits for room for its next piece must not wait for
        // this rank, because this rank may now wait for others.
        self.leave();
        let comm = self.comm;
        // SAFETY: the steps read the elements of the outgoing parts and write those of the incoming parts, which are
        // valid (condition of `# Safety`).
        let exchanged = unsafe {
            calls::run(comm.endpoint(), (self.method(), self.size), place, |steps| {
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

    /// Publishes piece `index` of the stream of all outgoing parts. Some of the ranks `readers`, as bits, read it.
    ///
    /// # Safety
    ///
    /// - The elements of the parts are readable, and nobody changes them until the function returns. `stream` is the
    ///   stream of these parts.
    unsafe fn put_piece<'p>(
        &mut self,
        index: u64,
        stream: Stream,
        piece: u64,
        readers: u64,
        outgoing: impl Iterator<Item = (usize, Elements<&'p Plan>)>,
    ) -> Result<()> {
        let reader = readers.trailing_zeros() as usize;
        let cut = range(stream.len, piece, index);
        let mut packed = Ok(());
        self.put_with((index, reader), cut.end - cut.start, stream.head(), |target| {
            let mut start = stream.first();
            for (number, (to, part)) in outgoing.enumerate() {
                let bytes = match part.bytes() {
                    Ok(bytes) => bytes,
                    Err(error) => return packed = Err(error),
                };
                if index == 0 {
                    let at = target.cast::<u64>().wrapping_add(number);
                    // SAFETY: the list lies at the start of the first piece, which begins at a multiple of 8 bytes and
                    // is longer than any list, and nobody else accesses the piece (`put_with`).
                    unsafe { at.write(entry(to, bytes)) };
                }
                let those = common(&cut, &(start..start + bytes));
                if !those.is_empty() {
                    let target = target.wrapping_add((those.start - cut.start) as usize);
                    // SAFETY: the part is readable (condition of `# Safety`). The range is not empty, so it lies within
                    // the part's packed bytes. The bytes have their place in the piece, and nobody else accesses the
                    // piece (`put_with`).
                    unsafe { part.pack(those.start - start..those.end - start, target) };
                }
                start = stream.after(start, bytes);
            }
        })?;
        Ok(packed?)
    }

    /// Returns where a part of `bytes` bytes lies in the stream of rank `from`, whose first cell has arrived with this
    /// head. Looks for the part from `cursor` on, and leaves `cursor` behind the part.
    fn find(
        &self,
        from: usize,
        head: u64,
        which: Which,
        bytes: u64,
        cursor: &mut Cursor,
    ) -> Result<Found> {
        let Some(stream) = Stream::from_head(head) else {
            // The head may stand for a failure. Then `check` returns the reason.
            check(from, head, bytes)?;
            return Err(faulty(from));
        };
        let piece = self.piece_of(stream.len);
        let mut words = InlineData([0; WORDS]);
        let data = self.data(from, stream.len.min(piece), &mut words).cast::<u64>();
        if cursor.entries == 0 {
            cursor.start = stream.first();
        }
        while cursor.entries < stream.parts {
            let index = cursor.entries as usize;
            // SAFETY: the list of `parts` entries lies at the start of the first piece, in `words` or in the ring: its
            // length is at most that of the stream (`from_head`) and less than that of a piece. If the rank is faulty,
            // the address may be no multiple of 8.
            let entry = unsafe { data.wrapping_add(index).read_unaligned() };
            let theirs = entry & ((1 << BYTES_BITS) - 1);
            let start = cursor.start;
            *cursor = Cursor { entries: cursor.entries + 1, start: stream.after(start, theirs) };
            let is_it = match which {
                Which::Index(place) => place == index,
                Which::Next => true,
            };
            if is_it && entry >> BYTES_BITS == self.rank as u64 {
                check(from, theirs, bytes)?;
                let end = start.saturating_add(bytes);
                return if end <= stream.len {
                    Ok(Found { start, end, piece })
                } else {
                    Err(faulty(from))
                };
            }
        }
        Err(without_part(from, self.rank))
    }

    /// Copies the bytes of `part` in piece `index` of the stream of rank `from`, whose cell has arrived.
    ///
    /// # Safety
    ///
    /// - The elements of `part` are writable, and nobody else accesses them until the function returns.
    /// - The part has `at.end - at.start` packed bytes.
    unsafe fn take_piece(
        &mut self,
        from: usize,
        at: Found,
        part: &Elements<&Plan>,
        index: u64,
    ) -> Result<()> {
        let head = self.head(from);
        let Some(stream) = Stream::from_head(head) else {
            check(from, head, at.end - at.start)?;
            return Err(faulty(from));
        };
        let cut = range(stream.len, at.piece, index);
        let those = common(&cut, &(at.start..at.end));
        if those.is_empty() {
            // The stream has become shorter.
            return Err(faulty(from));
        }
        // SAFETY: the part has these packed bytes, and its elements are writable (conditions of `# Safety`). The bytes
        // lie within the piece.
        unsafe {
            let offset = those.start - cut.start;
            let range = those.start - at.start..those.end - at.start;
            self.read_at(from, (cut.end - cut.start, offset), part, range);
        }
        Ok(())
    }
}

/// Returns the parts of all ranks except `rank`, with their ranks, from the next rank on. So the ranks do not all begin
/// with the part for one rank.
fn others<'a, 'p>(
    parts: &'a [Elements<&'p Plan>],
    rank: usize,
) -> impl Iterator<Item = (usize, Elements<&'p Plan>)> + Clone + use<'a, 'p> {
    let ranks = (rank + 1..parts.len()).chain(0..rank);
    ranks.map(|other| (other, parts[other]))
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
    use super::*;
    use crate::coll::flags::MOST;

    #[test]
    fn the_parts_of_a_stream_follow_each_other() {
        for sizes in
            [&[8u64][..], &[0], &[40], &[41], &[8, 8], &[16, 0, 1], &[1000, 3, 70_000], &[1; 64]]
        {
            let stream =
                Stream::new(sizes.iter().map(|bytes| Ok(*bytes))).unwrap().expect("a stream");
            assert_eq!(Stream::from_head(stream.head()), Some(stream));
            let mut start = stream.first();
            assert!(start >= 8 * sizes.len() as u64);
            for bytes in sizes {
                assert!(start.is_multiple_of(stream.align()) && start + bytes <= stream.len);
                start = stream.after(start, *bytes);
            }
            assert_eq!(start, stream.len, "{sizes:?}");
            assert_ne!(stream.head(), BY_MESSAGES);
        }
        let sizes =
            |bytes: u64, count| Stream::new(std::iter::repeat_n(bytes, count).map(Ok)).unwrap();
        assert_eq!(sizes(8, 1), Some(Stream { parts: 1, len: 16 }));
        assert_eq!(sizes(8, MOST_PARTS as usize + 1), None);
        assert_eq!(sizes(u64::MAX / 2, 3), None);
        assert!(sizes(LONGEST / 2, 2).is_none() && sizes(LONGEST / 2 - LINE, 2).is_some());
    }

    #[test]
    fn a_head_that_no_rank_writes_is_refused() {
        for head in
            [0, BY_MESSAGES, u64::MAX, 64, 65 << LEN_BITS | 1000, 2 << LEN_BITS | 15, 1 << LEN_BITS]
        {
            assert_eq!(Stream::from_head(head), None, "{head:#x}");
        }
    }

    #[test]
    fn a_part_is_read_in_the_steps_with_its_bytes() {
        let found = Found { start: 150, end: 320, piece: 100 };
        assert_eq!(
            [0, 1, 2, 3, 4].map(|step| found.next_step(step)),
            [Some(1), Some(1), Some(2), Some(3), None]
        );
        assert_eq!(Found { start: 200, end: 300, piece: 100 }.next_step(3), None);
        assert_eq!(Found { start: 200, end: 200, piece: 100 }.next_step(0), None);
        assert_eq!(common(&(0..10), &(5..20)), 5..10);
        assert!(common(&(0..10), &(15..20)).is_empty() && common(&(15..20), &(0..10)).is_empty());
    }

    #[test]
    fn the_ranks_have_entries_of_their_own() {
        let plan = crate::commit::commit(&crate::Datatype::named(crate::Named::U8)).unwrap();
        let parts = [Elements { origin: std::ptr::null_mut(), plan: &plan, count: 1 }; MOST];
        for from in 0..MOST {
            for (at, (to, _)) in others(&parts, from).enumerate() {
                assert!(matches!(entry_of(from, to, MOST), Which::Index(index) if index == at));
            }
        }
    }
}
