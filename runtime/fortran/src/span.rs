//! Which bytes of a buffer a call takes, found before the call from its counts, displacements and datatypes.

use crate::layout::{self, Bounds};
use crate::{abi, raw};
use smallvec::SmallVec;
use std::ffi::{c_char, c_int};

/// The bytes that a call takes of a buffer, as offsets from its start.
#[derive(Default)]
pub struct Span {
    /// The first byte of each block, and the byte behind its last one.
    ranges: SmallVec<[(i64, i64); 1]>,
    /// The number of partitions, and their distance, if the only range is that of the first partition.
    parts: Option<(i64, i64)>,
    /// The number of bytes that the caller says the buffer has, if it says so.
    room: i64,
    /// The bounds of the last datatype.
    known: Option<(raw::Datatype, Bounds)>,
}

impl Span {
    /// No bytes: the call does not look at the buffer.
    pub fn none() -> Result<Self, c_int> {
        Ok(Self::default())
    }

    /// `count` elements of a datatype.
    ///
    /// # Errors
    ///
    /// Returns the error class: the handle is not that of a datatype, or the offsets do not fit. (So do all others.)
    pub fn elements(count: i64, datatype: raw::Datatype) -> Result<Self, c_int> {
        let mut span = Self::default();
        span.add(count, 0, datatype, true)?;
        Ok(span)
    }

    /// `number` blocks of `count` elements, which follow each other.
    pub fn blocks(count: i64, number: i64, datatype: raw::Datatype) -> Result<Self, c_int> {
        if count < 0 {
            return Self::none();
        }
        Self::elements(count.checked_mul(number).ok_or(raw::ERR_COUNT)?, datatype)
    }

    /// `number` partitions of `count` elements, each with a range of its own.
    pub fn parts(number: i64, count: i64, datatype: raw::Datatype) -> Result<Self, c_int> {
        let mut span = if number > 0 { Self::elements(count, datatype)? } else { Self::default() };
        if let Some((_, bounds)) = span.known {
            let step = count.checked_mul(bounds.extent).ok_or(raw::ERR_COUNT)?;
            span.parts = Some((number, step));
        }
        Ok(span)
    }

    /// `number` blocks with counts and displacements, which are in bytes or in extents of the datatype.
    ///
    /// # Safety
    ///
    /// - Both arrays have at least `number` entries.
    pub unsafe fn several<C, D>(
        counts: *const C,
        displs: *const D,
        number: i64,
        datatype: impl Fn(usize) -> raw::Datatype,
        in_bytes: bool,
    ) -> Result<Self, c_int>
    where
        C: Copy + TryInto<i64>,
        D: Copy + TryInto<i64>,
    {
        let mut span = Self::default();
        for at in 0..usize::try_from(number).unwrap_or(0) {
            // SAFETY: the arrays are so long (`# Safety`).
            let (count, place) = unsafe { (wide(*counts.add(at)), wide(*displs.add(at))) };
            span.add(count, place, datatype(at), in_bytes)?;
        }
        Ok(span)
    }

    /// The bytes that a call packs or unpacks: at most `size` of them, from `position` on. The buffer has `room` bytes.
    /// An error in the arguments is left to the call.
    pub fn packed(position: i64, room: i64, size: Result<i64, c_int>) -> Result<Self, c_int> {
        let end = position.saturating_add(size?).min(room);
        if position < 0 || end <= position {
            return Self::none();
        }
        let mut span = Self { room, ..Self::default() };
        span.ranges.push((position, end));
        Ok(span)
    }

    /// As many elements as all of `number` counts together.
    ///
    /// # Safety
    ///
    /// - The array has at least `number` entries.
    pub unsafe fn sum<C: Copy + TryInto<i64>>(
        counts: *const C,
        number: i64,
        datatype: raw::Datatype,
    ) -> Result<Self, c_int> {
        let mut all = 0_i64;
        for at in 0..usize::try_from(number).unwrap_or(0) {
            // SAFETY: the array is so long (`# Safety`).
            let count = unsafe { wide(*counts.add(at)) };
            all = all.checked_add(count.max(0)).ok_or(raw::ERR_COUNT)?;
        }
        Self::elements(all, datatype)
    }

    /// As many elements as the count at the rank of this process.
    ///
    /// # Safety
    ///
    /// - The array has an entry for each process of the communicator.
    pub unsafe fn own<C: Copy + TryInto<i64>>(
        counts: *const C,
        comm: raw::Comm,
        datatype: raw::Datatype,
    ) -> Result<Self, c_int> {
        match usize::try_from(rank(comm)) {
            // SAFETY: the array is so long (`# Safety`).
            Ok(rank) => Self::elements(unsafe { wide(*counts.add(rank)) }, datatype),
            Err(_) => Self::none(),
        }
    }

    /// Adds a block. An error in the arguments is left to the call.
    fn add(
        &mut self,
        count: i64,
        place: i64,
        datatype: raw::Datatype,
        in_bytes: bool,
    ) -> Result<(), c_int> {
        if count <= 0 || datatype == raw::DATATYPE_NULL {
            return Ok(());
        }
        let bounds = match self.known {
            Some((known, bounds)) if known == datatype => bounds,
            _ => layout::bounds(datatype)?,
        };
        self.known = Some((datatype, bounds));
        if bounds.size == 0 {
            return Ok(());
        }
        let range = || {
            let start = place.checked_mul(if in_bytes { 1 } else { bounds.extent })?;
            let others = (count - 1).checked_mul(bounds.extent)?;
            let first = start.checked_add(bounds.low)?.checked_add(others.min(0))?;
            let last = start.checked_add(bounds.high)?.checked_add(others.max(0))?;
            Some((first, last))
        };
        self.ranges.try_reserve(1).map_err(|_| raw::ERR_NO_MEM)?;
        self.ranges.push(range().ok_or(raw::ERR_COUNT)?);
        Ok(())
    }

    /// Says whether the blocks are partitions.
    pub fn has_parts(&self) -> bool {
        self.parts.is_some()
    }

    /// Returns the blocks as offsets within a buffer of `total` bytes.
    ///
    /// # Errors
    ///
    /// Returns the error class: a block lies outside of the buffer, or there is no memory.
    pub fn within(&self, total: usize) -> Result<SmallVec<[(usize, usize); 1]>, c_int> {
        let (number, step) = self.parts.unwrap_or((1, 0));
        let number = usize::try_from(number).ok().filter(|number| *number == 1 || *number <= total);
        let number = number.ok_or(raw::ERR_COUNT)?;
        if usize::try_from(self.room).is_ok_and(|room| room > total) {
            return Err(raw::ERR_COUNT);
        }
        let mut list = SmallVec::<[(usize, usize); 1]>::new();
        let no_memory = |_| raw::ERR_NO_MEM;
        list.try_reserve(self.ranges.len()).map_err(no_memory)?;
        for (first, last) in &self.ranges {
            for part in 0..number {
                let moved = |offset: &i64| offset.checked_add(step.checked_mul(part as i64)?);
                let first = moved(first).ok_or(raw::ERR_COUNT)?;
                let last = moved(last).and_then(|last| usize::try_from(last).ok());
                let first = usize::try_from(first).map_err(|_| raw::ERR_BUFFER)?;
                let last = last.filter(|last| *last <= total).ok_or(raw::ERR_COUNT)?;
                list.try_reserve(1).map_err(no_memory)?;
                list.push((first, last));
            }
        }
        if self.parts.is_none() && list.windows(2).any(|pair| pair[1].0 < pair[0].1) {
            // Blocks to send may overlap. Each byte is copied once.
            list.sort_unstable();
            list.dedup_by(|next, before| {
                let overlap = next.0 <= before.1;
                if overlap {
                    before.1 = before.1.max(next.1);
                }
                overlap
            });
        }
        Ok(list)
    }
}

/// Returns the most bytes that elements take in a packed buffer.
///
/// # Errors
///
/// Returns the error class: the handle is not that of a datatype, or the count is negative.
pub fn pack_size(count: i64, datatype: raw::Datatype, comm: raw::Comm) -> Result<i64, c_int> {
    let mut size = 0;
    // SAFETY: the result is written to a number.
    let code = unsafe { abi::PMPI_Pack_size_c(count, datatype, comm, &raw mut size) };
    if code == 0 { Ok(size) } else { Err(code) }
}

/// Returns the most bytes that elements take in a buffer packed in the representation `datarep`.
///
/// # Errors
///
/// Returns the errors of [`pack_size`], and that of an unknown representation.
///
/// # Safety
///
/// - `datarep` is a string that ends with a zero.
pub unsafe fn external_size(
    datarep: *const c_char,
    count: i64,
    datatype: raw::Datatype,
) -> Result<i64, c_int> {
    let mut size = 0;
    // SAFETY: the result is written to a number, and the string ends with a zero (`# Safety`).
    let code = unsafe { abi::PMPI_Pack_external_size_c(datarep, count, datatype, &raw mut size) };
    if code == 0 { Ok(size) } else { Err(code) }
}

/// Returns a count or a displacement as a large number.
fn wide(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// Returns the rank of this process; -1 if there is no such communicator.
fn rank(comm: raw::Comm) -> c_int {
    let mut rank = -1;
    // SAFETY: the result is written to a number.
    let code = unsafe { abi::PMPI_Comm_rank(comm, &raw mut rank) };
    if code == 0 { rank } else { -1 }
}

/// Returns the number of processes of the (local) group; 0 if there is no such communicator.
pub fn size(comm: raw::Comm) -> i64 {
    let mut size = 0;
    // SAFETY: the result is written to a number.
    let code = unsafe { abi::PMPI_Comm_size(comm, &raw mut size) };
    if code == 0 { i64::from(size) } else { 0 }
}

/// Says whether this process has the buffer of all processes in a call with a root.
pub fn is_root(comm: raw::Comm, root: c_int) -> bool {
    let mut between = 0;
    // SAFETY: the result is written to a number.
    let code = unsafe { abi::PMPI_Comm_test_inter(comm, &raw mut between) };
    match between {
        _ if code != 0 => false,
        0 => rank(comm) == root,
        _ => root == raw::ROOT,
    }
}

/// Says whether this process has the buffer of one process in a call with a root.
pub fn is_sender(root: c_int) -> bool {
    root != raw::ROOT && root != raw::PROC_NULL
}

/// Returns `count`, or 0 if this process does not use its buffer in a call with a root. In a broadcast (`cast`), the
/// root uses it.
#[inline(always)]
pub fn count(root: c_int, cast: bool, count: i64) -> i64 {
    match root {
        raw::PROC_NULL => 0,
        raw::ROOT if !cast => 0,
        _ => count,
    }
}
