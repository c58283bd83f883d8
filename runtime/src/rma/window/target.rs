//! The memory of a call at its target: where it lies in this process, and whether it lies in the window.

use crate::rma::{Flavor, Window};
use crate::sys::memory::Mapping;
use crate::{Error, ErrorKind, Plan, Result, WindowErrorKind};
use std::sync::Arc;

/// The memory of one rank in a window.
#[derive(Debug)]
pub(in crate::rma) struct Memory {
    /// The address of the memory in this process. It is null if `is_mapped` is false, and may be null if the memory has
    /// no bytes.
    pub base: *mut u8,
    /// Whether this process can load from the memory and store to it.
    pub is_mapped: bool,
    /// The address of the memory in the target's process, if the memory lies in no heap and this is another rank's.
    pub address: Option<u64>,
    pub bytes: u64,
    /// The displacement unit.
    pub unit: u64,
    /// If the memory is in the heap of another rank, this value keeps the heap mapped.
    pub _heap: Option<Arc<Mapping>>,
}

// SAFETY: `base` is only an address, which every thread may know: the memory stays mapped as long as the window lives,
// whatever thread drops the window. Code that accesses the memory is unsafe, and states there why the access is valid.
unsafe impl Send for Memory {}
// SAFETY: all fields are plain values or `Sync`, and no method accesses the memory behind the address.
unsafe impl Sync for Memory {}

/// Where the elements of a call lie at its target: the place of their origin, which is byte displacement 0 of the first
/// element.
#[derive(Clone, Copy, Debug)]
pub(in crate::rma) enum Located {
    /// This process can access the elements. The origin has this address in this process.
    Here(*mut u8),
    /// This process cannot map the memory. The origin has this offset in bytes in the target's memory (in a dynamic
    /// window, this address in the target's process).
    There(i64),
}

impl Window {
    /// Returns the address in this process of `bytes` bytes that begin `lb` bytes after a displacement of the memory of
    /// rank `target`; `None` if they do not lie in the window, if this process cannot map them, or if the window is
    /// dynamic. Calls that take only a few nanoseconds use this function before [`locate`](Self::locate).
    #[inline(always)]
    pub(in crate::rma) fn direct(
        &self,
        target: usize,
        displacement: i64,
        lb: i64,
        bytes: u64,
    ) -> Option<*mut u8> {
        let found =
            self.targets.get(target).filter(|found| found.is_mapped && displacement >= 0)?;
        let start = displacement.checked_mul(found.unit as i64)?.checked_add(lb)?;
        let end = start.checked_add(bytes as i64)?;
        (start >= 0 && end as u64 <= found.bytes)
            .then(|| found.base.wrapping_offset(start as isize))
    }

    /// Returns where `count` elements of `plan` lie, after checking that all data of the elements lie in the window's
    /// memory at `target`. `displacement` counts units of the target's displacement unit; in a dynamic window, it is an
    /// address in the target's process.
    ///
    /// # Errors
    /// Returns `WindowErrorKind::Displacement` if the displacement is negative (not in a dynamic window),
    /// `WindowErrorKind::Range` if a byte lies outside the memory, and `ErrorKind::Rank` if there is no rank `target`.
    /// In a dynamic window, also returns `WindowErrorKind::Attach` if the target changes its table of attached memory
    /// too often, and `ErrorKind::Other` if the table does not lie in the target's heap.
    #[inline]
    pub(in crate::rma) fn locate(
        &self,
        target: usize,
        displacement: i64,
        plan: &Plan,
        count: u64,
    ) -> Result<Located> {
        let Some(found) = self.targets.get(target) else {
            return Err(no_rank(target, self.targets.len()));
        };
        if self.flavor == Flavor::Dynamic {
            return self.locate_attached(target, displacement, plan, count);
        }
        let offset = i128::from(displacement) * i128::from(found.unit);
        let (first, end) = plan.footprint().reach(count);
        if displacement < 0 {
            return Err(negative(displacement));
        }
        let has_data = count > 0 && plan.element_bytes() > 0;
        if has_data && (offset + first < 0 || offset + end > i128::from(found.bytes)) {
            return Err(beyond(target, offset + first..offset + end, found.bytes));
        }
        // If there are data, the offset fits in 63 bits (checked above). Otherwise nothing uses the offset.
        if found.is_mapped {
            return Ok(Located::Here(found.base.wrapping_offset(offset as isize)));
        }
        Ok(Located::There(offset as i64))
    }
}

#[cold]
fn no_rank(rank: usize, size: usize) -> Error {
    let detail = format!("{rank} is not a rank of the window, whose size is {size}");
    Error::new(ErrorKind::Rank, "target_rank", detail)
}

#[cold]
fn negative(displacement: i64) -> Error {
    let kind = ErrorKind::Window(WindowErrorKind::Displacement);
    Error::new(kind, "target_disp", format!("{displacement} is negative"))
}

#[cold]
fn beyond(target: usize, bytes: std::ops::Range<i128>, size: u64) -> Error {
    let detail = format!(
        "the data would be the bytes {}..{} of the memory of rank {target}, which has {size} bytes",
        bytes.start, bytes.end
    );
    Error::new(ErrorKind::Window(WindowErrorKind::Range), "target_disp", detail)
}
