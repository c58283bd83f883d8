//! First contact: how two processes agree on the area of the segment that carries data from one process to
//! the other.
//!
//! A job has slots for processes. The ranks have the first slots; processes that join later take other slots.
//! At the start, no pair of slots has an area. When a sender writes to a receiver for the first time, the
//! sender takes the next free area and writes the area's number into the receiver's mailbox (`layout.rs`).
//! `segment.rs` provides the memory; `ring.rs`, `bulk.rs` and `work_split.rs` use the areas.
//!
//! The steps of the first contact from process `a` to process `b`:
//!
//! 1. `a` adds one to the count of taken areas in the header, allocates memory for the first page of its new
//!    area, maps the area, and writes the [`Geometry`] of the pair into the page;
//! 2. `a` writes the number of the area, plus 1, into the word for `a` in the mailbox of `b` (release). Then
//!    `a` raises the word `writers` of `b` to the slot number of `a` plus 1, unless the word is already that
//!    high (release), adds one to the word `connects` of `b` (release), and rings the doorbell of `b`;
//! 3. `b` reads its word `connects` in every iteration of its progress loop (acquire). The read costs one
//!    load from a cache line that rarely changes. When the count has changed, `b` reads the mailbox words of
//!    all slots below its `writers`, and maps the areas that are new to it: first their first page, which says how
//!    long they are.
//!
//! A first contact happens once per ordered pair in the life of a job. If a process dies between two of
//! the steps, its new area stays unused.
//!
//! Invariants: each word of a mailbox has only one writer. A mapped area stays mapped as long as the
//! [`Contacts`] value lives. The reader of a mailbox checks an area number and a geometry before using them.

use std::collections::HashMap;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::budget::{self, Need};
use super::layout::PAGE;
use super::pair::{self, CHUNK_BYTES, Geometry};
use super::segment::{Segment, atomic_u64};
use crate::error::{Error, ErrorKind};
use crate::sys::memory::{Inherit, Mapping};

/// The areas to which this process writes, and the areas in which other processes write to this process.
#[derive(Debug)]
pub struct Contacts {
    segment: Arc<Segment>,
    slot: usize,
    /// The mailbox of this process. Other processes write the numbers of their areas into it.
    mailbox: Mapping,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Maps the slot of each receiver to the number of the area in which this process writes to that
    /// receiver.
    to: HashMap<usize, usize>,
    /// The mapped areas and their geometries, by area number.
    maps: HashMap<usize, (Mapping, Geometry)>,
    /// The mapped pools, by slot.
    pools: HashMap<usize, Mapping>,
    /// Number of an area that this process has taken but could not use, because there was no memory for it.
    /// The next attempt at a first contact uses this area.
    spare: Option<usize>,
}

impl Contacts {
    /// Creates the contacts of the process in `slot`, and allocates memory for its mailbox. No other process
    /// may have the same slot.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::NoMemory`] if memory or address space has run out, and [`ErrorKind::System`] if the
    /// system refuses for another reason.
    ///
    /// # Panics
    ///
    /// Panics if there is no such slot.
    pub fn new(segment: Arc<Segment>, slot: usize) -> Result<Self, Error> {
        let words = segment.processes() * size_of::<AtomicU32>();
        let mailbox = map_mailbox(&segment, slot, words)?;
        Ok(Self { segment, slot, mailbox, known: Mutex::default() })
    }

    /// Makes the first contact with the process in slot `to`: takes an area, allocates memory for its first page,
    /// writes `geometry` into it, and writes the area's number into the mailbox of `to`. Returns the address of the
    /// area's first byte, and the geometry of the pair. If this process already has an area for `to`, the function only
    /// returns what it has. [`Contacts::reserve`] allocates memory for the rest of the area.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::NoMemory`] if memory or address space has run out or no free area is left in the
    /// segment, and [`ErrorKind::System`] if the system refuses for another reason. Returns
    /// [`ErrorKind::Argument`] if an area of `geometry` is longer than the areas of the segment, or if another process
    /// has overwritten the area number in the mailbox.
    ///
    /// # Panics
    ///
    /// Panics if there is no slot `to`.
    pub fn connect(&self, to: usize, geometry: Geometry) -> Result<(NonNull<u8>, Geometry), Error> {
        let mut known = self.lock();
        if let Some(&number) = known.to.get(&to) {
            return known.map(&self.segment, number);
        }
        // Allocate memory for this slot's word and for all words before it, because the receiver also reads
        // the words before it.
        let words = (self.slot + 1) * size_of::<AtomicU32>();
        let mailbox = map_mailbox(&self.segment, to, words)?;
        let word = word(&mailbox, self.slot);
        if let Some(number) = word.load(Ordering::Relaxed).checked_sub(1) {
            // Another `Contacts` value of this process has made this contact.
            let found = known.map(&self.segment, number as usize)?;
            known.to.insert(to, number as usize);
            return Ok(found);
        }
        let number = match known.spare {
            Some(number) => number,
            None => *known.spare.insert(self.segment.take_area()?),
        };
        if known.maps.contains_key(&number) {
            // A link uses the area, so its mapping has to stay.
            known.spare = None;
            let detail = format!(
                "areas_taken: area {number} is in use: another process has overwritten the count"
            );
            return Err(Error::new(ErrorKind::Argument, detail));
        }
        self.counted(PAGE, Need::Must, || self.segment.reserve_area(number, 0, PAGE))?;
        let map = self.segment.map_area(number, geometry.bytes())?;
        geometry_word(&map).store(geometry.to_word(), Ordering::Relaxed);
        let at = map.base();
        known.maps.insert(number, (map, geometry));
        known.spare = None;
        // The cast is exact, because the number of an area is below 2^24.
        word.store(number as u32 + 1, Ordering::Release);
        known.to.insert(to, number);
        // The cast is exact, because the number of a slot is below 2^12.
        self.segment.slot(to).writers.fetch_max(self.slot as u32 + 1, Ordering::Release);
        self.segment.slot(to).connects.fetch_add(1, Ordering::Release);
        self.segment.ring(to);
        Ok((at, geometry))
    }

    /// Returns the address of the area in which this process writes to `to`, or `None` if this process has
    /// not made first contact with `to`.
    pub fn writes_to(&self, to: usize) -> Option<NonNull<u8>> {
        let known = self.lock();
        let (map, _) = known.maps.get(known.to.get(&to)?)?;
        Some(map.base())
    }

    /// Counts `bytes` bytes in the budget of the job, and calls `reserve` to allocate them.
    fn counted(
        &self,
        bytes: usize,
        need: Need,
        reserve: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let bytes = bytes.next_multiple_of(PAGE) as u64;
        budget::take(&self.segment, bytes, need)?;
        reserve().inspect_err(|_| budget::give_back(self.segment.header(), bytes))
    }

    /// Allocates memory for `len` bytes at `offset` of the area in which this process writes to `to`. `need`
    /// says whether the job can go on without this memory.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Argument`] if the range is empty or not within the area or this process has not made
    /// first contact with `to`, [`ErrorKind::NoMemory`] if memory has run out, and [`ErrorKind::System`] if the
    /// system refuses for another reason.
    pub fn reserve(&self, to: usize, offset: usize, len: usize, need: Need) -> Result<(), Error> {
        let number = self.lock().to.get(&to).copied();
        let none = || {
            Error::new(
                ErrorKind::Argument,
                format!("to: this rank has had no first contact with slot {to}"),
            )
        };
        let number = number.ok_or_else(none)?;
        // Count at most the size of an area. For a longer range, `reserve_area` returns the error, and not the
        // budget.
        let bytes = len.min(self.segment.layout().area_bytes());
        self.counted(bytes, need, || self.segment.reserve_area(number, offset, len))
    }

    /// Returns the address of the area in which `from` writes to this process and the geometry that `from` has chosen,
    /// or `None` if there is no such area.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Argument`] if the number that the mailbox holds for `from` is not the number of an area, or
    /// if the area has no valid geometry, [`ErrorKind::NoMemory`] if address space has run out, and
    /// [`ErrorKind::System`] if the system refuses for another reason.
    ///
    /// # Panics
    ///
    /// Panics if the mailbox has no word for `from`.
    pub fn written_by(&self, from: usize) -> Result<Option<(NonNull<u8>, Geometry)>, Error> {
        let number = word(&self.mailbox, from).load(Ordering::Acquire);
        let Some(number) = number.checked_sub(1).filter(|_| from != self.slot) else {
            return Ok(None);
        };
        self.lock().map(&self.segment, number as usize).map(Some)
    }

    /// Returns the address of the pool of `slot`, which has `chunks` chunks. The function maps the pool at the first
    /// call. All calls for a slot pass the same number, because the slot has one pair to this process.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::NoMemory`] if address space has run out, and [`ErrorKind::System`] if the system
    /// refuses for another reason.
    ///
    /// # Panics
    ///
    /// Panics if there is no such slot, or if a pool has fewer than `chunks` chunks or an earlier call has passed
    /// fewer.
    pub fn pool(&self, slot: usize, chunks: usize) -> Result<NonNull<u8>, Error> {
        let mut known = self.lock();
        if let Some(map) = known.pools.get(&slot) {
            assert!(
                chunks * CHUNK_BYTES <= map.len(),
                "slot {slot} has fewer than {chunks} chunks"
            );
            return Ok(map.base());
        }
        let map = self.segment.map_pool(slot, chunks)?;
        Ok(known.pools.entry(slot).or_insert(map).base())
    }

    /// Allocates memory for chunks of this process's own pool.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::NoMemory`] if memory has run out or the budget of the job does not allow the chunks,
    /// and [`ErrorKind::System`] if the system refuses for another reason.
    ///
    /// # Panics
    ///
    /// Panics if `chunks` is empty or reaches beyond the last chunk of the pool.
    pub fn reserve_pool(&self, chunks: Range<usize>) -> Result<(), Error> {
        let bytes = chunks.len() * CHUNK_BYTES;
        self.counted(bytes, Need::Wish, || self.segment.reserve_pool(self.slot, chunks))
    }

    /// Returns the word for `from` in this process's mailbox. Tests use this function to store values that a
    /// faulty process could write.
    ///
    /// # Panics
    ///
    /// Panics if the mailbox has no word for `from`.
    pub fn mailbox_word(&self, from: usize) -> &AtomicU32 {
        word(&self.mailbox, from)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        // The maps are usable even if a thread has panicked while it held the lock, because every change to a
        // map is a single call.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Maps an area that another process has filled, and returns the address of its first byte and its geometry.
    fn map(&mut self, segment: &Segment, number: usize) -> Result<(NonNull<u8>, Geometry), Error> {
        if let Some((map, geometry)) = self.maps.get(&number) {
            return Ok((map.base(), *geometry));
        }
        let first = segment.map_area(number, PAGE)?;
        let word = geometry_word(&first).load(Ordering::Relaxed);
        let geometry = Geometry::from_word(word).ok_or_else(|| {
            Error::new(ErrorKind::Argument, format!("area {number} has no geometry {word:#x}"))
        })?;
        let map = segment.map_area(number, geometry.bytes())?;
        let base = map.base();
        self.maps.insert(number, (map, geometry));
        Ok((base, geometry))
    }
}

/// Returns the word with the geometry of a mapped area.
fn geometry_word(area: &Mapping) -> &AtomicU64 {
    debug_assert!(area.len() >= PAGE);
    // SAFETY: the word lies at a multiple of 8 in the first page of the area, which the mapping contains and which it
    // keeps mapped for the life of the reference.
    unsafe { atomic_u64(area.base().as_ptr().add(pair::GEOMETRY)) }
}

/// Maps the mailbox of a slot, and allocates memory for the first `len` bytes of the mailbox.
fn map_mailbox(segment: &Segment, slot: usize, len: usize) -> Result<Mapping, Error> {
    let (at, bytes) = (segment.layout().mailbox(slot), segment.layout().mailbox_bytes());
    let failed = |error| Error::system(format!("cannot set up the mailbox of slot {slot}"), error);
    crate::sys::memory::reserve(segment.fd(), at as u64, len as u64).map_err(failed)?;
    Mapping::shared(segment.fd(), at as u64, bytes, Inherit::No).map_err(|error| {
        let what = format!("cannot map the mailbox of slot {slot}");
        super::segment::unmapped(what, bytes as u64, error)
    })
}

/// Returns the word for `slot` in `mailbox`.
fn word(mailbox: &Mapping, slot: usize) -> &AtomicU32 {
    let at = slot * size_of::<AtomicU32>();
    assert!(at < mailbox.len(), "slot {slot} is outside a mailbox of {} bytes", mailbox.len());
    // SAFETY: the word lies within the mapping (asserted above), and the mapping outlives the reference. `at`
    // is a multiple of 4, and the mapping begins at a page. All processes access the word only by atomics.
    unsafe { AtomicU32::from_ptr(mailbox.base().as_ptr().add(at).cast()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::segment::JobFlags;

    const PAIR: Geometry = Geometry::of(2);

    fn job(ranks: usize) -> (Arc<Segment>, Vec<Contacts>) {
        let segment = Segment::create(ranks, &[], JobFlags::default(), 0).expect("a segment");
        let segment = Arc::new(segment);
        let contacts = |slot| Contacts::new(segment.clone(), slot).expect("contacts");
        let all = (0..ranks).map(contacts).collect();
        (segment, all)
    }

    #[test]
    fn what_one_writes_the_other_finds() {
        let (segment, all) = job(3);
        assert!((0..3).all(|slot| segment.connected(slot, 0).is_none()));
        let area = all[2].connect(0, PAIR).expect("room");
        assert_eq!(all[2].connect(0, PAIR).expect("the same"), area);
        assert_eq!((segment.connected(0, 0), segment.connected(0, 1)), (Some(1), None));
        assert!(all[0].written_by(1).expect("a mailbox").is_none());
        assert!(all[0].written_by(0).expect("a mailbox").is_none());
        let found = all[0].written_by(2).expect("a mailbox").expect("an area");
        assert_eq!(all[0].written_by(2).expect("a mailbox"), Some(found));
        // SAFETY: both mappings of the area are live, and its first page has memory. No other thread uses the
        // area.
        unsafe {
            area.0.as_ptr().write(7);
            assert_eq!(found.0.as_ptr().read(), 7);
        }
        // The contact in the other direction must use another area.
        let back = all[0].connect(2, PAIR).expect("room");
        assert_ne!(back, found);
        // SAFETY: the area at `back` is mapped, its first page has memory, and no other thread writes to the
        // area.
        assert_eq!(unsafe { back.0.as_ptr().read() }, 0);
    }

    #[test]
    fn more_of_an_area_is_filled_within_its_bounds() {
        let (segment, all) = job(2);
        let len = segment.layout().area_bytes();
        assert_eq!(
            all[0].reserve(1, 0, 8, Need::Must).expect_err("none").kind(),
            ErrorKind::Argument
        );
        let area = all[0].connect(1, PAIR).expect("room");
        all[0].reserve(1, len - 8, 8, Need::Must).expect("room");
        // SAFETY: this is the last byte of the mapped area, and `reserve` has just allocated memory for its
        // page.
        unsafe { area.0.as_ptr().add(len - 1).write(9) };
        for (offset, bytes) in [(len, 1), (usize::MAX, 2), (0, len + 1), (0, 0)] {
            assert!(all[0].reserve(1, offset, bytes, Need::Must).is_err(), "{offset} {bytes}");
        }
    }

    /// Checks that a job with the maximum number of ranks can be made: unused parts cost only address space.
    #[test]
    fn many_ranks_cost_what_they_use() {
        let segment = Segment::create(pair::MAX_RANKS, &[], JobFlags::default(), 0).expect("room");
        let segment = Arc::new(segment);
        let last = Contacts::new(segment.clone(), pair::MAX_RANKS - 1).expect("contacts");
        let first = Contacts::new(segment, 0).expect("contacts");
        last.connect(0, Geometry::of(pair::MAX_RANKS)).expect("room");
        assert!(first.written_by(pair::MAX_RANKS - 1).expect("a mailbox").is_some());
    }

    #[test]
    fn areas_that_there_are_not_are_refused() {
        let (segment, all) = job(2);
        for number in [u32::MAX, segment.layout().room().areas as u32 + 1] {
            all[1].mailbox_word(0).store(number, Ordering::Relaxed);
            let error = all[1].written_by(0).expect_err("no such area");
            assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
        }
        all[1].mailbox_word(0).store(0, Ordering::Relaxed);
        // Act as a faulty process that overwrites the count of taken areas: one that is in use is not taken again.
        let area = all[0].connect(1, PAIR).expect("room").0;
        segment.header().areas_taken.store(0, Ordering::Relaxed);
        assert_eq!(all[0].connect(0, PAIR).expect_err("in use").kind(), ErrorKind::Argument);
        assert_eq!(all[0].writes_to(1), Some(area));
        let (segment, all) = job(2);
        segment.header().areas_taken.store(u64::MAX - 1, Ordering::Relaxed);
        for _ in 0..4 {
            assert_eq!(all[0].connect(1, PAIR).expect_err("none").kind(), ErrorKind::NoMemory);
        }
    }

    /// Checks that the sender of a pair decides its geometry at the first contact, and that the receiver believes no
    /// word that is none.
    #[test]
    fn the_geometry_belongs_to_the_pair() {
        let (segment, all) = job(3);
        let (few, many) = (Geometry::of(3), Geometry::of(4000));
        assert_eq!(all[0].connect(1, few).expect("room").1, few);
        // More processes have joined meanwhile; the old pair stays as it is.
        assert_eq!(all[0].connect(1, many).expect("the same").1, few);
        let (area, made) = all[1].connect(0, many).expect("room");
        assert_eq!(made, many);
        let found = |slot: usize, from| all[slot].written_by(from).expect("a geometry");
        assert_eq!(found(1, 0).map(|(_, geometry)| geometry), Some(few));
        assert_eq!(found(0, 1).map(|(_, geometry)| geometry), Some(many));
        // A new value for the same slot finds the area and the geometry that the process has chosen before.
        let again = Contacts::new(segment, 1).expect("contacts").connect(0, few).expect("the same");
        assert_eq!(again.1, many);
        // SAFETY: the first page of the area has memory and stays mapped as long as `all` lives.
        let word = unsafe { atomic_u64(area.as_ptr().add(pair::GEOMETRY)) };
        let (_, all) = job(2);
        all[0].connect(1, few).expect("room");
        let base = all[0].writes_to(1).expect("connected");
        // SAFETY: the first page of this area has memory, too, and stays mapped as long as the second `all` lives.
        let other = unsafe { atomic_u64(base.as_ptr().add(pair::GEOMETRY)) };
        for wrong in [0, word.load(Ordering::Relaxed) | 1 << 40, u64::MAX] {
            other.store(wrong, Ordering::Relaxed);
            let error = all[1].written_by(0).expect_err("no geometry");
            assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
        }
        other.store(few.to_word(), Ordering::Relaxed);
        assert!(all[1].written_by(0).expect("a geometry").is_some());
    }

    /// Checks that a process that has taken an area but gets no memory for it remembers the area's number,
    /// and that its next attempt does not take a second area.
    #[test]
    fn an_area_without_memory_is_not_lost() {
        let (segment, all) = job(3);
        let taken = || segment.header().areas_taken.load(Ordering::Relaxed);
        let budget = &segment.header().budget;
        let all_bytes = budget.swap(1, Ordering::Relaxed);
        for _ in 0..3 {
            all[0].connect(1, PAIR).expect_err("too much");
            assert_eq!(taken(), 1);
        }
        budget.store(all_bytes, Ordering::Relaxed);
        assert!(
            all[0].writes_to(1).is_none() && all[1].written_by(0).expect("a mailbox").is_none()
        );
        let first = all[0].connect(1, PAIR).expect("room");
        assert_eq!(taken(), 1);
        assert_ne!(all[0].connect(2, PAIR).expect("room"), first);
        assert_eq!(taken(), 2);
    }

    /// Checks that processes which take areas at the same time take different areas.
    #[test]
    fn areas_are_taken_once() {
        let (_segment, all) = job(16);
        std::thread::scope(|scope| {
            for from in &all {
                let connect = || (0..16).for_each(|to| drop(from.connect(to, PAIR)));
                scope.spawn(connect);
            }
        });
        let mut numbers = std::collections::HashSet::new();
        for (to, one) in all.iter().enumerate() {
            for from in 0..16 {
                let number = one.mailbox_word(from).load(Ordering::Relaxed);
                assert!(number != 0 && numbers.insert(number), "{from} to {to}");
            }
        }
    }
}
