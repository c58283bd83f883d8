//! Windows to which the ranks attach memory after they have made the window. A displacement of an operation is an
//! address in the target's process.
//!
//! Each rank keeps a table of what it has attached, in its heap: for each piece of memory, the address, the length, and
//! the heap and the offset at which the piece lies. The other ranks keep a copy of the table. They read the table again
//! when the number of the last change, a word of the rank's block, has changed.
//!
//! A rank has two places for its table, and each change writes the table into the other place. Two words of the block
//! name each place: the offset of the table in the heap, and the number of entries. After change `n`, the current table
//! is complete in place `n % 2`, so a reader never waits for a writer. If the number has changed while a reader copied
//! the table, the reader copies again, because the next change but one uses the same place.
//!
//! The entries have no order: a piece that is attached becomes the last entry, and the last entry takes the place of
//! one that is detached. So a change writes few entries, however many there are. A reader sorts its copy.
//!
//! If a table grows beyond the memory of its place, the place gets memory for twice as many entries. The old memory
//! stays allocated until the window is freed, because another rank may still read it.

use super::create::mapped_at;
use super::target::Located;
use super::words::Word;
use crate::memory::{self, Block};
use crate::rma::{Flavor, Window, check_process};
use crate::sys::memory::Mapping;
use crate::{Error, ErrorKind, Plan, Result, WindowErrorKind};
use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use typepack_engine::Cursor;
use typepack_engine::reserve::Grow;

/// The words of an entry: address, length, heap and offset of a piece of memory.
pub(in crate::rma) type Entry = [u64; 4];
const ENTRY: usize = size_of::<Entry>();

/// Largest number of pieces that a rank may attach to a window. Other ranks refuse a longer table: only a faulty rank
/// writes such a length.
const MOST_ENTRIES: u64 = 1 << 20;

/// Index of the number of the last change in the line `attached` of a block (`words.rs`).
const CHANGE: usize = 0;

/// Returns the indices of the two words that name the place of the table after change `change`: the offset of the
/// table, and the number of its entries.
fn place_of(change: u64) -> [usize; 2] {
    if change.is_multiple_of(2) { [1, 2] } else { [3, 4] }
}

/// The number that stands for the heap if memory lies in no rank's heap.
const NO_HEAP: u64 = u64::MAX;

/// Number of times that a rank tries to read the table of another rank. A try fails only if that rank has made a change
/// during the try, so only a faulty rank makes all of them fail.
const TRIES: usize = 1 << 20;

/// The number of the last change that the copy of a table includes, and the copy.
type ReadTable = (u64, Arc<[Entry]>);

/// What the ranks have attached, as this rank knows it.
#[derive(Debug)]
pub(in crate::rma) struct Attached {
    own: Arc<Mutex<Own>>,
    /// For each rank, the table that this rank has read last.
    copies: Box<[Mutex<ReadTable>]>,
    /// For each rank, the mappings of the pieces that this rank has accessed there. A heap unmaps what nobody holds, so
    /// they stay here until the window is freed.
    held: Box<[Mutex<Vec<Arc<Mapping>>>]>,
}

/// A piece of memory that this rank has attached, and that has at least one byte.
#[derive(Clone, Copy, Debug)]
struct Piece {
    bytes: u64,
    /// The index of its entry.
    index: usize,
    /// Number of empty pieces that have been attached at the same address later.
    later: u64,
}

#[derive(Debug, Default)]
pub(in crate::rma) struct Own {
    /// The table for other ranks, in no order.
    entries: Vec<Entry>,
    /// The pieces of the table by address. They do not overlap.
    pieces: BTreeMap<u64, Piece>,
    /// Number of empty pieces at each address. No access needs them, so they are not in the table.
    empty: BTreeMap<u64, u64>,
    /// Number of bytes of all pieces.
    bytes: u128,
    /// For each place, the indices of the entries that have changed since the table there was written.
    stale: [Vec<usize>; 2],
    /// For each place, the memory of the table and all memory that the place had before; other ranks may still read it.
    tables: [Vec<Block>; 2],
    /// Number of entries for which the newest memory of each place has room.
    room: [usize; 2],
}

impl Own {
    /// Returns the entry of the piece that holds an address.
    pub fn find(&self, at: i128) -> Option<Entry> {
        let at = u64::try_from(at).ok()?;
        let (start, piece) = self.pieces.range(..=at).next_back()?;
        (at - start < piece.bytes).then(|| self.entries[piece.index])
    }

    /// Returns the number of bytes of all pieces.
    pub fn bytes(&self) -> u128 {
        self.bytes
    }

    /// Returns the address and the length of an attached piece that overlaps the addresses `start..end`.
    fn overlapped(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let last = self.pieces.range(..end).next_back().map(|(at, piece)| (*at, piece.bytes));
        // An empty piece lies between the bytes before and behind it.
        let empty = || {
            let mut inside = self.empty.range((Bound::Excluded(start), Bound::Excluded(end)));
            inside.next().map(|(at, _)| (*at, 0))
        };
        let last = last.filter(|(at, bytes)| start < at + bytes);
        last.or_else(|| if start < end { empty() } else { None })
    }

    /// Adds a piece that overlaps no other one.
    pub fn insert(&mut self, entry: Entry) {
        let [start, bytes, ..] = entry;
        if bytes == 0 {
            *self.empty.entry(start).or_default() += 1;
            if let Some(piece) = self.pieces.get_mut(&start) {
                piece.later += 1;
            }
            return;
        }
        let index = self.entries.len();
        self.entries.push(entry);
        self.pieces.insert(start, Piece { bytes, index, later: 0 });
        self.bytes += u128::from(bytes);
        self.stale.iter_mut().for_each(|stale| stale.push(index));
    }

    /// Removes the piece that has been attached at `start` last. Returns its length.
    fn remove(&mut self, start: u64) -> Option<u64> {
        if let Some(piece) = self.pieces.get_mut(&start) {
            if let Some(later) = piece.later.checked_sub(1) {
                piece.later = later;
            } else {
                let Piece { bytes, index, .. } = *piece;
                self.pieces.remove(&start);
                self.entries.swap_remove(index);
                if let Some([moved, ..]) = self.entries.get(index)
                    && let Some(piece) = self.pieces.get_mut(moved)
                {
                    piece.index = index;
                }
                self.bytes -= u128::from(bytes);
                self.stale.iter_mut().for_each(|stale| stale.push(index));
                return Some(bytes);
            }
        }
        let empty = self.empty.get_mut(&start)?;
        *empty -= 1;
        if *empty == 0 {
            self.empty.remove(&start);
        }
        Some(0)
    }

    /// Returns the indices and the entries that the table in a place does not have yet.
    fn updates(&mut self, place: usize) -> impl Iterator<Item = (usize, Entry)> {
        let entries = &self.entries;
        let stale = self.stale[place].drain(..);
        stale.filter_map(|index| entries.get(index).map(|entry| (index, *entry)))
    }
}

/// Returns the entry of a sorted table whose piece holds an address.
fn find_in(table: &[Entry], at: i128) -> Option<Entry> {
    let behind = table.partition_point(|entry| i128::from(entry[0]) <= at);
    let entry = table.get(behind.checked_sub(1)?)?;
    (at < i128::from(entry[0]) + i128::from(entry[1])).then_some(*entry)
}

impl Attached {
    pub fn new(ranks: usize) -> Self {
        let none = || Mutex::new((0, Arc::from([])));
        let copies = (0..ranks).map(|_| none()).collect();
        Self { own: Arc::default(), copies, held: (0..ranks).map(|_| Mutex::default()).collect() }
    }

    /// Keeps a mapping of memory at `target` until the window is freed. Returns false if memory has run out.
    fn hold(&self, target: usize, map: Arc<Mapping>) -> bool {
        let mut held = self.held[target].lock().unwrap_or_else(PoisonError::into_inner);
        if held.iter().any(|other| Arc::ptr_eq(other, &map)) {
            return true;
        }
        let has_room = held.grow(1).is_ok();
        if has_room {
            held.push(map);
        }
        has_room
    }

    /// Returns what this rank has attached.
    pub fn shared(&self) -> Arc<Mutex<Own>> {
        self.own.clone()
    }

    /// # Errors
    /// Returns `ErrorKind::State` in a forked child.
    fn own(&self) -> Result<MutexGuard<'_, Own>> {
        check_process()?;
        Ok(self.own.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cold]
fn refused(argument: &'static str, detail: String) -> Error {
    Error::new(ErrorKind::Window(WindowErrorKind::Attach), argument, detail)
}

impl Window {
    fn check_dynamic(&self) -> Result<()> {
        if self.flavor == Flavor::Dynamic {
            return Ok(());
        }
        let detail = "memory can be attached only to dynamic windows";
        Err(Error::new(ErrorKind::Window(WindowErrorKind::Flavor), "win", detail))
    }

    /// Attaches memory of the program to a dynamic window. The other ranks may access it after a synchronisation.
    ///
    /// # Safety
    ///
    /// - Until the memory is detached or the window is freed, `bytes` bytes at `base` are readable and writable, and
    ///   this process accesses them only as the epochs of the window permit.
    ///
    /// # Errors
    /// Returns `WindowErrorKind::Flavor` if the window is not dynamic, `WindowErrorKind::Size` if `bytes` is
    /// negative, and `ErrorKind::NoMemory` if memory runs out. Returns `WindowErrorKind::Attach` if `base` is null and
    /// `bytes` is positive, if the bytes exceed the address space, if part of the memory is attached already, or if
    /// this rank has attached 2^20 pieces already.
    #[doc(alias = "MPI_Win_attach")]
    pub unsafe fn attach_raw(&self, base: *mut u8, bytes: i64) -> Result<()> {
        self.check_dynamic()?;
        let bytes = u64::try_from(bytes).map_err(|_| {
            let kind = ErrorKind::Window(WindowErrorKind::Size);
            Error::new(kind, "size", format!("{bytes} is negative"))
        })?;
        let start = base as u64;
        let end = start.checked_add(bytes).filter(|_| !base.is_null() || bytes == 0);
        let end = end.ok_or_else(|| {
            let detail =
                format!("{start:#x} is null, or {bytes} bytes there exceed the address space");
            refused("base", detail)
        })?;
        let mut own = self.attached.own()?;
        if let Some((at, there)) = own.overlapped(start, end) {
            let detail = format!(
                "{bytes} bytes at {start:#x} overlap {there} bytes at {at:#x}, which are attached already"
            );
            return Err(refused("base", detail));
        }
        let found = memory::heaps().and_then(|heaps| heaps.locate(base as usize, bytes));
        let (heap, offset) = found.map_or((NO_HEAP, 0), |(rank, offset)| (rank as u64, offset));
        if own.entries.len().max(own.empty.len()) as u64 >= MOST_ENTRIES {
            let detail = format!("{MOST_ENTRIES} pieces are attached already; no more are allowed");
            return Err(refused("base", detail));
        }
        self.change(&mut own, |own| own.insert([start, bytes, heap, offset]))
    }

    /// Detaches memory that was attached at `base`.
    ///
    /// # Errors
    /// Returns `WindowErrorKind::Flavor` if the window is not dynamic, `WindowErrorKind::Attach` if nothing is
    /// attached at `base`, and `ErrorKind::NoMemory` if memory runs out.
    #[doc(alias = "MPI_Win_detach")]
    pub fn detach(&self, base: *const u8) -> Result<()> {
        self.check_dynamic()?;
        let mut own = self.attached.own()?;
        let start = base as u64;
        if !own.pieces.contains_key(&start) && !own.empty.contains_key(&start) {
            return Err(refused("base", format!("no memory is attached at {base:?}")));
        }
        let bytes = self.change(&mut own, |own| own.remove(start))?.unwrap_or(0);
        drop(own);
        let start = i128::from(start);
        // No request that comes later finds the memory. A message that uses the memory now is an error of the program.
        let target_side = self.target_side.as_ref();
        target_side
            .map_or(Ok(()), |target_side| target_side.withdraw(start..start + i128::from(bytes)))
    }

    /// Changes what this rank has attached by `change`, which adds at most one piece, and makes the result the current
    /// table. Changes nothing if there is no memory for the table.
    fn change<R>(&self, own: &mut Own, make: impl FnOnce(&mut Own) -> R) -> Result<R> {
        let word = |index| self.words.get(self.rank(), Word::Attached(index));
        let change = word(CHANGE)?.load(Ordering::Relaxed).wrapping_add(1);
        let place = (change % 2) as usize;
        let most = own.entries.len() + 1;
        if own.tables[place].is_empty() || own.room[place] < most {
            let room = most.next_power_of_two().max(16);
            own.tables[place].push(Block::new(room * ENTRY, 64, true)?);
            own.room[place] = room;
            own.stale[place] = (0..own.entries.len()).collect();
        }
        let Some(block) = own.tables[place].last() else {
            return Err(refused("win", "the place of the table has no memory".to_owned()));
        };
        let (table, at) = (block.as_ptr(), block.offset().unwrap_or(0));
        let made = make(own);
        // A reader that sees a word of the new table also sees the number of the previous change or a later one, and so
        // knows that its copy of the table which was in this place is not whole.
        fence(Ordering::Release);
        for (index, entry) in own.updates(place) {
            for (at, word) in entry.iter().enumerate() {
                // SAFETY: the block has room for all entries and is aligned to a cache line. This process writes it
                // only here, under the lock of `own`. Other processes read it by whole words.
                let to = unsafe { AtomicU64::from_ptr(table.cast::<u64>().add(4 * index + at)) };
                to.store(*word, Ordering::Relaxed);
            }
        }
        let [offset, count] = place_of(change);
        word(offset)?.store(at, Ordering::Relaxed);
        word(count)?.store(own.entries.len() as u64, Ordering::Relaxed);
        word(CHANGE)?.store(change, Ordering::SeqCst);
        Ok(made)
    }

    /// Returns the table of another rank, sorted by address.
    fn table_of(&self, target: usize) -> Result<Arc<[Entry]>> {
        let word = |index| self.words.get(target, Word::Attached(index));
        let mut copy = self.attached.copies[target].lock().unwrap_or_else(PoisonError::into_inner);
        let mut change = word(CHANGE)?.load(Ordering::SeqCst);
        for _ in 0..TRIES {
            if change == copy.0 {
                return Ok(copy.1.clone());
            }
            let [table, count] = place_of(change);
            let (at, entries) =
                (word(table)?.load(Ordering::Relaxed), word(count)?.load(Ordering::Relaxed));
            let read = self.read_table(target, at, entries);
            // The loads above come before the next load of the number; see `replace`.
            fence(Ordering::Acquire);
            let now = word(CHANGE)?.load(Ordering::SeqCst);
            if now == change {
                *copy = (change, read?);
                return Ok(copy.1.clone());
            }
            change = now;
        }
        let detail = format!("rank {target} changes its attached memory too often to be read");
        Err(refused("win", detail))
    }

    /// Reads the table of another rank: `entries` entries at offset `at` of that rank's heap.
    fn read_table(&self, target: usize, at: u64, entries: u64) -> Result<Arc<[Entry]>> {
        let world = self.comm.world_rank(target, "target_rank", ErrorKind::Rank)? as u64;
        let bytes = entries.checked_mul(ENTRY as u64);
        let bytes = bytes.filter(|_| entries <= MOST_ENTRIES && at.is_multiple_of(8));
        let found = bytes.and_then(|bytes| mapped_at(world, at, bytes));
        let (start, _heap) = found.ok_or_else(|| {
            let detail = format!("rank {target} names memory outside its heap");
            Error::new(ErrorKind::Other, "win", detail)
        })?;
        let read = |index: usize| {
            // SAFETY: the table lies in the other rank's heap, where it is mapped (`mapped_at`) as long as `_heap`
            // lives, and the address is a multiple of 8. All accesses of other processes are stores of whole words.
            let word = unsafe { AtomicU64::from_ptr(start.cast::<u64>().wrapping_add(index)) };
            word.load(Ordering::Relaxed)
        };
        let entries = (0..entries as usize).map(|entry| [0, 1, 2, 3].map(|i| read(4 * entry + i)));
        let mut table: Vec<Entry> = entries.collect();
        table.sort_unstable_by_key(|entry| entry[0]);
        Ok(table.into())
    }

    /// Finds the memory of a call at a target of a dynamic window; see [`locate`](Self::locate).
    pub(in crate::rma) fn locate_attached(
        &self,
        target: usize,
        address: i64,
        plan: &Plan,
        count: u64,
    ) -> Result<Located> {
        if count == 0 || plan.element_bytes() == 0 {
            return Ok(Located::Here(std::ptr::null_mut()));
        }
        let at = i128::from(address as u64);
        if target == self.rank() {
            let own = self.attached.own()?;
            // The program's own address serves, and no mapping.
            Places::of(|at| own.find(at), |_| true, target, at, (plan, count))?;
            return Ok(Located::Here(address as *mut u8));
        }
        let table = self.table_of(target)?;
        let hold = |map| self.attached.hold(target, map);
        let places = Places::of(|at| find_in(&table, at), hold, target, at, (plan, count))?;
        Ok(match places.shift {
            // All pieces are mapped at the same distance from their addresses in the target's process. The window holds
            // the mappings (`hold`), so the address is valid until the window is freed.
            Some(Some(shift)) => Located::Here((address as u64).wrapping_add(shift) as *mut u8),
            _ => Located::There(address),
        })
    }
}

impl Window {
    /// Returns where to carry out an atomic operation whose memory is at `located`. The atomic operations of a rank
    /// keep their order. So if earlier requests to a target of a dynamic window are not over, the operation is a
    /// request too, even if this rank can map its piece of memory: the earlier ones may name the piece, together with a
    /// piece that this rank cannot map. If the operation cannot be a request (`can_ask`), waits until the earlier ones
    /// are over.
    ///
    /// # Errors
    /// Returns `ErrorKind::ProcAborted` if a rank has died.
    #[inline]
    pub(in crate::rma) fn in_order(
        &self,
        located: Located,
        target: usize,
        address: i64,
        can_ask: impl FnOnce() -> bool,
    ) -> Result<Located> {
        let is_here = matches!(located, Located::Here(_)) && self.flavor == Flavor::Dynamic;
        if !is_here || !self.has_pending(target)? {
            return Ok(located);
        }
        if can_ask() {
            return Ok(Located::There(address));
        }
        self.await_requests(target)?;
        Ok(located)
    }
}

/// Calls `each` with the pieces that together hold all addresses of a range, from the lowest on. `find` returns the
/// piece that holds an address. Returns false if an address lies in no piece. A range may lie in several pieces that
/// follow each other without a gap.
pub(in crate::rma) fn cover(
    find: impl Fn(i128) -> Option<Entry>,
    addresses: Range<i128>,
    mut each: impl FnMut(&Entry),
) -> bool {
    let mut at = addresses.start;
    while at < addresses.end {
        let Some(entry) = find(at) else { return false };
        each(&entry);
        at = i128::from(entry[0]) + i128::from(entry[1]);
    }
    true
}

/// Where the pieces that hold some elements lie in this process.
#[derive(Debug, Default)]
struct Places {
    /// The distance from an address in the target's process to the address of the same byte in this process. `None` if
    /// there are no pieces yet; `Some(None)` if a piece is not mapped, or if the pieces have different distances.
    shift: Option<Option<u64>>,
}

impl Places {
    /// Returns the pieces that hold `count` elements of `plan` whose origin has the address `at` at `target`. `find`
    /// returns the piece that holds an address. `hold` keeps a mapping as long as an address in it may be used, and
    /// returns false if it cannot.
    ///
    /// # Errors
    /// Returns `WindowErrorKind::Range` if some data of the elements is not attached.
    fn of(
        find: impl Fn(i128) -> Option<Entry>,
        hold: impl Fn(Arc<Mapping>) -> bool,
        target: usize,
        at: i128,
        (plan, count): (&Plan, u64),
    ) -> Result<Self> {
        let (first, end) = plan.footprint().reach(count);
        let mut places = Self::default();
        if places.add(&find, &hold, at + first..at + end) {
            return Ok(places);
        }
        // The elements have gaps that are not attached, or some of their data is not attached.
        places = Self::default();
        let mut cursor = Cursor::at(plan, count, 0)?;
        while let Some(run) = cursor.run() {
            let start = at + i128::from(run.offset);
            let addresses = start..start + i128::from(run.bytes);
            if !places.add(&find, &hold, addresses.clone()) {
                return Err(not_attached(target, addresses));
            }
            cursor.advance(run.bytes);
        }
        Ok(places)
    }

    /// Adds the pieces that hold a range of addresses. Returns false if an address lies in no piece.
    fn add(
        &mut self,
        find: &impl Fn(i128) -> Option<Entry>,
        hold: &impl Fn(Arc<Mapping>) -> bool,
        addresses: Range<i128>,
    ) -> bool {
        cover(find, addresses, |entry| {
            let mapped = mapped_at(entry[2], entry[3], entry[1]);
            let mapped = mapped.and_then(|(base, map)| map.is_none_or(hold).then_some(base));
            let shift = mapped.map(|base| (base as u64).wrapping_sub(entry[0]));
            self.shift = match self.shift {
                None => Some(shift),
                Some(before) => Some(before.filter(|_| before == shift)),
            };
        })
    }
}

#[cold]
fn not_attached(target: usize, addresses: Range<i128>) -> Error {
    let detail = format!(
        "rank {target} has attached no memory that contains the addresses {:#x}..{:#x}",
        addresses.start, addresses.end
    );
    Error::new(ErrorKind::Window(WindowErrorKind::Range), "target_disp", detail)
}

#[cfg(test)]
mod tests {
    use super::{Attached, Entry, Own, cover, find_in};
    use crate::shm::Segment;
    use crate::shm::extents::Extents;
    use crate::shm::segment::JobFlags;
    use crate::sys::memory::Inherit;
    use std::sync::Arc;

    #[test]
    fn a_window_holds_each_mapping_once_until_it_is_freed() {
        let segment = Segment::create(2, &[], JobFlags::default(), 0).expect("a segment");
        let extents = Extents::new(Arc::new(segment), 1, Inherit::No);
        let attached = Attached::new(2);
        for _ in 0..2 {
            let (_, map) = extents.map(&(0..8)).expect("address space");
            assert!(attached.hold(1, map) && !extents.remove_unused());
        }
        assert_eq!(attached.held[1].lock().expect("the mappings").len(), 1);
        drop(attached);
        assert!(extents.remove_unused());
    }

    #[test]
    fn ranges_may_lie_in_several_pieces() {
        let mut own = Own::default();
        let entries = [[300, 100, 7, 0], [100, 100, 7, 0], [200, 50, 7, 0], [250, 50, 7, 0]];
        entries.into_iter().for_each(|entry| own.insert(entry));
        let mut sorted = entries;
        sorted.sort_unstable();
        let starts = |addresses: std::ops::Range<i128>| {
            let (mut starts, mut others) = (Vec::new(), Vec::new());
            let is_whole = cover(|at| own.find(at), addresses.clone(), |e| starts.push(e[0]));
            let other = cover(|at| find_in(&sorted, at), addresses, |e| others.push(e[0]));
            assert_eq!((is_whole, &starts), (other, &others));
            is_whole.then_some(starts)
        };
        assert_eq!(starts(100..200), Some(vec![100]));
        assert_eq!(starts(199..251), Some(vec![100, 200, 250]));
        assert_eq!(starts(399..400), Some(vec![300]));
        assert_eq!(starts(150..150), Some(Vec::new()));
        assert_eq!((starts(99..101), starts(399..401), starts(0..1)), (None, None, None));
        let whole = |at| find_in(&[[u64::MAX - 9, 9, 0, 0]], at);
        assert!(cover(whole, i128::from(u64::MAX) - 9..i128::from(u64::MAX), |_| ()));
        assert!(!cover(whole, -1..1, |_| ()));
    }

    #[test]
    fn pieces_overlap_or_do_not() {
        let mut own = Own::default();
        own.insert([100, 50, 0, 0]);
        own.insert([200, 0, 0, 0]);
        for (start, end) in [(100, 150), (99, 101), (149, 151), (120, 130), (0, 1000), (120, 120)] {
            assert_eq!(own.overlapped(start, end), Some((100, 50)), "{start}..{end}");
        }
        assert_eq!(own.overlapped(190, 210), Some((200, 0)));
        for (start, end) in [(0, 100), (150, 200), (200, 300), (100, 100), (150, 150), (200, 200)] {
            assert_eq!(own.overlapped(start, end), None, "{start}..{end}");
        }
        // The piece that was attached last goes first.
        own.insert([100, 0, 0, 0]);
        assert_eq!(
            [100, 100, 100, 200].map(|start| own.remove(start)),
            [Some(0), Some(50), None, Some(0)]
        );
        own.insert([100, 0, 0, 0]);
        own.insert([100, 8, 0, 0]);
        assert_eq!((own.remove(100), own.remove(100), own.bytes()), (Some(8), Some(0), 0));
    }

    /// Two tables take turns, and each gets only the entries that have changed since its last turn.
    #[test]
    fn changes_bring_both_tables_up_to_date() {
        let (mut own, mut tables) = (Own::default(), [Vec::<Entry>::new(), Vec::new()]);
        let (mut random, mut attached) = (1_u64, Vec::new());
        for change in 0..2000_usize {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let draw = (random >> 33) as usize;
            if draw % 5 < 3 || attached.is_empty() {
                let start = 16 * (change as u64 + 1);
                own.insert([start, 16, 7, start]);
                attached.push(start);
            } else {
                let start = attached.swap_remove(draw % attached.len());
                assert_eq!(own.remove(start), Some(16));
            }
            let table = &mut tables[change % 2];
            let mut written = 0;
            for (index, entry) in own.updates(change % 2) {
                table.resize(table.len().max(index + 1), [0; 4]);
                table[index] = entry;
                written += 1;
            }
            assert!(written <= 2);
            table.truncate(own.entries.len());
            assert_eq!(*table, own.entries);
            let at = i128::from(attached.first().copied().unwrap_or(0));
            assert_eq!(own.find(at + 15).map(|entry| entry[0]), attached.first().copied());
            assert_eq!(own.bytes(), 16 * attached.len() as u128);
        }
    }
}
