//! The memory of a collective call as the runtime takes it: one part per rank, checked.
//!
//! A call and its `v` and `w` relatives differ in how parts are made. What is found here is copied: the arrays
//! of a call may be reused when it returns.

use crate::abi;
use crate::argument::Array;
use crate::buffer::ADDRESS_BITS;
use crate::count_width::{CountWidth, Number, count};
use crate::datatype::{self, Type};
use crate::error::{Failure, Result};
use crate::raw;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use typepack::{Part, Plan};

/// No object begins below this address: the first page is never mapped, so that null pointers, and
/// the sentinels among pointers, are found out. `MPI_BOTTOM` is fine for types whose displacements
/// are addresses.
const FIRST_ADDRESS: i128 = 4096;

/// Whether a buffer is `MPI_IN_PLACE`.
pub fn in_place(buffer: *const c_void) -> bool {
    buffer as usize == abi::IN_PLACE
}

/// `elements` elements, `offset` bytes from `buffer`.
///
/// # Errors
/// `MPI_ERR_BUFFER` where there can be no such memory.
pub fn part<'a>(
    buffer: *const c_void,
    offset: i128,
    elements: u64,
    plan: &'a Plan,
    argument: &'static str,
) -> Result<Part<'a>> {
    if elements > 0 && plan.element_bytes() > 0 {
        let shape = plan.footprint();
        let last = i128::from(shape.extent) * i128::from(elements - 1);
        let start = buffer as usize as i128 + offset;
        let low = start + i128::from(shape.true_lb) + last.min(0);
        let high = start + i128::from(shape.true_ub) + last.max(0);
        if low < FIRST_ADDRESS || high > 1 << ADDRESS_BITS {
            // A count of more bytes than can be counted is that, and no fault of the buffer's.
            plan.packed_bytes(elements)?;
            let detail = match buffer as usize {
                abi::IN_PLACE => "MPI_IN_PLACE is not allowed here".to_owned(),
                _ => format!("no memory lies at {low:#x}..{high:#x}"),
            };
            return Err(Failure::new(abi::ERR_BUFFER, argument, detail));
        }
    }
    // Wraps where there are no elements; checked above where there are.
    let origin = buffer.cast::<u8>().cast_mut().wrapping_offset(offset as isize);
    Ok(Part { origin, plan, count: elements })
}

/// Refuses one buffer in both directions: such calls are `MPI_IN_PLACE`'s. Two parts whose data
/// begins at the same byte are one; addresses of displacement 0 say nothing (`MPI_BOTTOM`).
pub fn apart(send: &Part<'_>, receive: &Part<'_>) -> Result {
    let first =
        |part: &Part<'_>| part.origin.wrapping_offset(part.plan.footprint().true_lb as isize);
    if first(send) == first(receive) && send.bytes()? > 0 && receive.bytes()? > 0 {
        let detail = "the same memory as sendbuf; MPI_IN_PLACE says so";
        return Err(Failure::new(abi::ERR_BUFFER, "recvbuf", detail));
    }
    Ok(())
}

/// One part per rank, `elements` elements each, one behind the other.
fn row<'a>(
    buffer: *const c_void,
    elements: u64,
    plan: &'a Plan,
    size: usize,
    argument: &'static str,
) -> Result<Vec<Part<'a>>> {
    let step = i128::from(plan.footprint().extent) * i128::from(elements);
    (0..size).map(|rank| part(buffer, step * rank as i128, elements, plan, argument)).collect()
}

/// The array arguments of a call with a part per rank, with their names.
pub struct Table<W: CountWidth> {
    counts: (Array<W::Count>, &'static str),
    displacements: (Array<W::Displacement>, &'static str),
}

impl<W: CountWidth> Table<W> {
    /// Those of a send buffer.
    pub fn send(counts: Array<W::Count>, displacements: Array<W::Displacement>) -> Self {
        Self { counts: (counts, "sendcounts"), displacements: (displacements, "sdispls") }
    }

    /// Those of a receive buffer.
    pub fn receive(counts: Array<W::Count>, displacements: Array<W::Displacement>) -> Self {
        Self { counts: (counts, "recvcounts"), displacements: (displacements, "rdispls") }
    }

    /// Returns counts and displacements; the unit of the displacements is the call's.
    ///
    /// # Errors
    /// Returns `MPI_ERR_COUNT` if a count is negative, and the errors of [`Array::copy`].
    ///
    /// # Safety
    ///
    /// - The standard gives both arrays at least `size` entries.
    pub unsafe fn read(&self, size: usize) -> Result<Vec<(u64, i128)>> {
        // SAFETY: both arrays have `size` entries (condition of `# Safety`).
        let (counts, displacements) = unsafe {
            (
                self.counts.0.copy(size, self.counts.1)?,
                self.displacements.0.copy(size, self.displacements.1)?,
            )
        };
        let entry = |(elements, at): (W::Count, W::Displacement)| {
            Ok((count(elements, self.counts.1)?, i128::from(at.wide())))
        };
        counts.into_iter().zip(displacements).map(entry).collect()
    }

    /// Parts of one type, displacements in its extents.
    ///
    /// # Safety
    ///
    /// - The standard gives both arrays at least `size` entries.
    unsafe fn parts<'a>(
        &self,
        buffer: *const c_void,
        plan: &'a Plan,
        size: usize,
        argument: &'static str,
    ) -> Result<Vec<Part<'a>>> {
        let extent = i128::from(plan.footprint().extent);
        // SAFETY: the arrays of the table have `size` entries (condition of `# Safety`).
        let entries = unsafe { self.read(size)? };
        let part = |(elements, at)| part(buffer, at * extent, elements, plan, argument);
        entries.into_iter().map(part).collect()
    }
}

/// The types of a call with a type per rank. Those of no elements are not looked at.
///
/// # Safety
///
/// - The standard gives `types` at least as many entries as there are in `entries`.
pub unsafe fn types(
    types: Array<raw::Datatype>,
    entries: &[(u64, i128)],
    argument: &'static str,
) -> Result<Vec<Arc<Type>>> {
    // SAFETY: `types` has `entries.len()` entries (condition of `# Safety`).
    let handles = unsafe { types.copy(entries.len(), argument)? };
    let found = |(handle, &(elements, _)): (raw::Datatype, &(u64, i128))| {
        datatype::find(if elements == 0 { raw::Datatype(abi::BYTE) } else { handle })
    };
    handles.into_iter().zip(entries).map(found).collect()
}

/// Parts of a type each, displacements in bytes.
pub fn typed<'a>(
    buffer: *const c_void,
    entries: &[(u64, i128)],
    types: &'a [Arc<Type>],
    argument: &'static str,
) -> Result<Vec<Part<'a>>> {
    let part = |(&(elements, at), ty): (&(u64, i128), &'a Arc<Type>)| {
        part(buffer, at, elements, ty.plan()?, argument)
    };
    entries.iter().zip(types).map(part).collect()
}

/// A root that may be any number.
pub fn root(root: c_int) -> Result<usize> {
    usize::try_from(root)
        .map_err(|_| Failure::new(abi::ERR_ROOT, "root", format!("{root} is no rank")))
}

/// What gather and scatter have in common: the buffer of this rank, unless it is in place.
pub fn own<'a>(
    buffer: *const c_void,
    elements: u64,
    ty: &'a Option<Arc<Type>>,
    argument: &'static str,
) -> Result<Option<Part<'a>>> {
    match ty {
        None => Ok(None),
        Some(ty) => part(buffer, 0, elements, ty.plan()?, argument).map(Some),
    }
}

/// The type and count of this rank's buffer; neither is looked at in place.
pub fn own_type<W: CountWidth>(
    placed: bool,
    elements: W::Count,
    datatype: raw::Datatype,
    argument: &'static str,
) -> Result<(u64, Option<Arc<Type>>)> {
    if placed {
        return Ok((0, None));
    }
    Ok((count(elements, argument)?, Some(datatype::find(datatype)?)))
}

/// How the parts of all ranks lie in a buffer.
pub enum Spread<W: CountWidth> {
    /// So many elements each, one behind the other.
    Row(u64),
    /// As the arrays of the call say.
    Table(Table<W>),
}

impl<W: CountWidth> Spread<W> {
    /// One part per rank.
    ///
    /// # Safety
    ///
    /// - The standard gives the arrays of a table at least `size` entries.
    pub unsafe fn parts<'a>(
        &self,
        buffer: *const c_void,
        plan: &'a Plan,
        size: usize,
        argument: &'static str,
    ) -> Result<Vec<Part<'a>>> {
        match self {
            Self::Row(elements) => row(buffer, *elements, plan, size, argument),
            // SAFETY: the arrays of `table` have `size` entries (condition of `# Safety`).
            Self::Table(table) => unsafe { table.parts(buffer, plan, size, argument) },
        }
    }
}
