//! The memory of a segment that ranks map and allocate while the job runs: heaps, the areas of pairs, and pools.

use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use super::super::pair;
use super::Segment;
use crate::error::{Error, ErrorKind};
use crate::sys::limits;
use crate::sys::memory::{self, Inherit, Mapping};

impl Segment {
    /// Maps a range of bytes of the heap of `rank`. The range begins at a page. The mapping may outlive `self`.
    ///
    /// With [`Inherit::ReadOnly`], a forked child of this process can read the mapping. A rank maps its own
    /// heap in this way, so that its children can read their parent's data. It maps the heaps of other ranks with
    /// [`Inherit::No`].
    ///
    /// # Errors
    ///
    /// Returns `InvalidInput` if the range is empty or not within the heap, and otherwise the kernel's error, for
    /// example `ENOMEM` if the address space is limited and has run out.
    ///
    /// # Panics
    ///
    /// Panics if the segment has no slot `rank`.
    pub fn map_heap(
        &self,
        rank: usize,
        range: &Range<u64>,
        inherit: Inherit,
    ) -> std::io::Result<Mapping> {
        if range.start > range.end || range.end > self.layout.heap() as u64 {
            return Err(std::io::ErrorKind::InvalidInput.into());
        }
        let at = self.layout.heap_of(rank) as u64 + range.start;
        Mapping::shared(self.fd.as_fd(), at, (range.end - range.start) as usize, inherit)
    }

    /// Takes an area that no process has taken yet, and returns the number of the area.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::NoMemory`] if all areas of the segment are taken.
    pub fn take_area(&self) -> Result<usize, Error> {
        let room = self.layout.room().areas;
        let next = |taken: u64| (taken < room as u64).then_some(taken + 1);
        let words = &self.header().areas_taken;
        match words.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
            Ok(number) => Ok(number as usize),
            Err(_) => Err(Error::new(
                ErrorKind::NoMemory,
                format!("shared memory has room for {room} pairs of ranks, and all are in use"),
            )),
        }
    }

    /// Maps the first `bytes` bytes of area `number`. The bytes are zero at the start of the job. The mapping may
    /// outlive `self`.
    ///
    /// Other processes may write to the area at any time. Therefore the caller may access the area only by
    /// atomics or by raw copies, and must tolerate any content. Before the first access to any part of the
    /// area, [`Segment::reserve_area`] must have allocated memory for that part.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Argument`] if there is no area `number`, if `bytes` is 0, or if the areas of this segment
    /// are shorter, [`ErrorKind::NoMemory`] if address space has run out, and [`ErrorKind::System`] if the system
    /// refuses for another reason.
    pub fn map_area(&self, number: usize, bytes: usize) -> Result<Mapping, Error> {
        self.check_range(0, bytes)?;
        let at = self.area(number)? as u64;
        Mapping::shared(self.fd.as_fd(), at, bytes, Inherit::No).map_err(|error| {
            let what = format!("cannot map area {number} of the job's shared memory");
            unmapped(what, bytes as u64, error)
        })
    }

    /// Checks that a range lies in an area.
    fn check_range(&self, offset: usize, len: usize) -> Result<(), Error> {
        let area = self.layout.area_bytes();
        if len > 0 && offset.checked_add(len).is_some_and(|end| end <= area) {
            return Ok(());
        }
        let detail = format!(
            "range: {len} bytes at offset {offset}; the range must have at least 1 byte and must lie within the area \
             of {area} bytes"
        );
        Err(Error::new(ErrorKind::Argument, detail))
    }

    /// Allocates memory for `len` bytes at `offset` of area `number`, in whole pages. This must happen before
    /// the first use of the bytes.
    ///
    /// The pages come from the NUMA node of the caller. Therefore the rank that writes to an area allocates
    /// the area's memory.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Argument`] if there is no area `number`, or if the range is empty or not within
    /// the area, [`ErrorKind::NoMemory`] if memory has run out, and [`ErrorKind::System`] if the system refuses
    /// for another reason.
    pub fn reserve_area(&self, number: usize, offset: usize, len: usize) -> Result<(), Error> {
        self.check_range(offset, len)?;
        let at = self.area(number)? + offset;
        memory::reserve(self.fd.as_fd(), at as u64, len as u64).map_err(|error| {
            Error::system(
                format!("cannot reserve {len} bytes of shared memory for a pair of ranks"),
                error,
            )
        })
    }

    /// Maps the first `chunks` chunks of the pool of `slot`. The mapping may outlive `self`. The conditions of
    /// [`Segment::map_area`] hold for the pool too; [`Segment::reserve_pool`] allocates its memory.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::NoMemory`] if address space has run out, and [`ErrorKind::System`] if the system
    /// refuses for another reason.
    ///
    /// # Panics
    ///
    /// Panics if there is no such slot, or if `chunks` is 0 or greater than [`pair::POOL_CHUNKS`].
    pub fn map_pool(&self, slot: usize, chunks: usize) -> Result<Mapping, Error> {
        assert!((1..=pair::POOL_CHUNKS).contains(&chunks), "a pool does not have {chunks} chunks");
        let (at, bytes) = (self.layout.pool(slot) as u64, chunks * pair::CHUNK_BYTES);
        Mapping::shared(self.fd.as_fd(), at, bytes, Inherit::No).map_err(|error| {
            unmapped(format!("cannot map the pool of slot {slot}"), bytes as u64, error)
        })
    }

    /// Allocates memory for the chunks with the numbers in `chunks` in the pool of `slot` (the caller's slot).
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::NoMemory`] if memory has run out, and [`ErrorKind::System`] if the system refuses for
    /// another reason.
    ///
    /// # Panics
    ///
    /// Panics if there is no such slot, or if `chunks` is empty or reaches beyond the last chunk of the pool.
    pub fn reserve_pool(&self, slot: usize, chunks: Range<usize>) -> Result<(), Error> {
        let (from, to) = (chunks.start * pair::CHUNK_BYTES, chunks.end * pair::CHUNK_BYTES);
        let bytes = pair::POOL_BYTES;
        assert!(from < to && to <= bytes, "{chunks:?} are not chunks of a pool of {bytes} bytes");
        let at = self.layout.pool(slot) + from;
        memory::reserve(self.fd.as_fd(), at as u64, (to - from) as u64).map_err(|error| {
            let what = format!("cannot reserve {} bytes of shared memory for chunks", to - from);
            Error::system(what, error)
        })
    }

    fn area(&self, number: usize) -> Result<usize, Error> {
        self.layout.area(number).ok_or_else(|| {
            let room = self.layout.room().areas;
            Error::new(
                ErrorKind::Argument,
                format!("area: {number} is too large; it must be less than {room}"),
            )
        })
    }
}

/// Returns the error for `bytes` bytes that the kernel refuses to map. `what` describes the attempt. The error
/// names the limit.
pub(in crate::shm) fn unmapped(what: String, bytes: u64, error: std::io::Error) -> Error {
    if error.kind() != std::io::ErrorKind::OutOfMemory {
        return Error::system(what, error);
    }
    let limit = limits::refusing_map(bytes, false);
    Error::new(ErrorKind::NoMemory, format!("{what}: {error} (limit: {limit})"))
}
