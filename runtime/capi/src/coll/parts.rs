//! Divides each buffer of a collective call into one part of memory per rank, the form that the runtime
//! takes, and checks these parts.
//!
//! A call and its `v` and `w` forms differ only in how they divide the buffers. The entries of the arrays are
//! copied, because the program may reuse the arrays when the call returns.

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

/// No object begins below this address, because the first page is never mapped. So null pointers and pointer
/// sentinels are detected. `MPI_BOTTOM` is valid for datatypes whose displacements are addresses.
const FIRST_ADDRESS: i128 = 4096;

/// Returns whether a buffer is `MPI_IN_PLACE`.
pub fn in_place(buffer: *const c_void) -> bool {
    buffer as usize == abi::IN_PLACE
}

/// Returns the part of `elements` elements that begins `offset` bytes from `buffer`.
///
/// # Errors
/// Returns `MPI_ERR_BUFFER` if the elements would lie where no memory can be, and `MPI_ERR_COUNT` if their
/// packed size exceeds 63 bits.
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
            // If the packed size exceeds 63 bits, the count is wrong, not the buffer.
            plan.packed_bytes(elements)?;
            let detail = match buffer as usize {
                abi::IN_PLACE => "MPI_IN_PLACE is not allowed; a buffer is needed".to_owned(),
                _ => {
                    format!(
                        "a count of {elements} would lie at {low:#x}..{high:#x}, where no memory can be"
                    )
                }
            };
            return Err(Failure::new(abi::ERR_BUFFER, argument, detail));
        }
    }
    // The address wraps only if there are no elements; otherwise it is checked above.
    let origin = buffer.cast::<u8>().cast_mut().wrapping_offset(offset as isize);
    Ok(Part { origin, plan, count: elements })
}

/// Checks that send and receive buffer are not the same memory, for which the standard has `MPI_IN_PLACE`.
/// They are the same if their data begin at the same byte. The addresses of displacement 0 may be equal
/// (`MPI_BOTTOM`).
///
/// # Errors
/// Returns `MPI_ERR_BUFFER` if they are the same.
pub fn apart(send: &Part<'_>, receive: &Part<'_>) -> Result {
    let first =
        |part: &Part<'_>| part.origin.wrapping_offset(part.plan.footprint().true_lb as isize);
    if first(send) == first(receive) && send.bytes()? > 0 && receive.bytes()? > 0 {
        let detail = "same memory as sendbuf; pass MPI_IN_PLACE to use one buffer for both";
        return Err(Failure::new(abi::ERR_BUFFER, "recvbuf", detail));
    }
    Ok(())
}

/// Returns one part per rank. Each part has `elements` elements and begins where the previous part ends.
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
    /// Makes the table of a send buffer.
    pub fn send(counts: Array<W::Count>, displacements: Array<W::Displacement>) -> Self {
        Self { counts: (counts, "sendcounts"), displacements: (displacements, "sdispls") }
    }

    /// Makes the table of a receive buffer.
    pub fn receive(counts: Array<W::Count>, displacements: Array<W::Displacement>) -> Self {
        Self { counts: (counts, "recvcounts"), displacements: (displacements, "rdispls") }
    }

    /// Returns the counts and the displacements. The call determines the unit of the displacements.
    ///
    /// # Errors
    /// Returns `MPI_ERR_COUNT` if a count is negative, and the errors of [`Array::copy`].
    ///
    /// # Safety
    ///
    /// - `size` is at most the number of entries that the standard prescribes for each of the two arrays.
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

    /// Returns one part per rank. All parts have one datatype, and displacements count extents of this
    /// datatype.
    ///
    /// # Safety
    ///
    /// - `size` is at most the number of entries that the standard prescribes for each of the two arrays.
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

/// Returns the datatypes of a call with a datatype per rank. The datatype of a part without elements is
/// ignored.
///
/// # Safety
///
/// - `entries.len()` is at most the number of entries that the standard prescribes for `types`.
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

/// Returns one part per rank. Each has its own datatype, and displacements count bytes.
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

/// Returns a root; the runtime checks that it is less than the number of ranks.
///
/// # Errors
/// Returns `MPI_ERR_ROOT` if the root is negative.
pub fn root(root: c_int) -> Result<usize> {
    usize::try_from(root).map_err(|_| {
        Failure::new(abi::ERR_ROOT, "root", format!("{root} is negative; a root is 0 or larger"))
    })
}

/// Returns the part of this rank's own buffer; `None` if it is in place.
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

/// Returns count and datatype of this rank's own buffer; both are ignored if it is in place.
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

/// How a buffer is divided into the parts of all ranks.
pub enum Spread<W: CountWidth> {
    /// Each part has this many elements; the parts lie one behind the other.
    Row(u64),
    /// The arrays of the call say how many elements the parts have and where they begin.
    Table(Table<W>),
}

impl<W: CountWidth> Spread<W> {
    /// Returns one part per rank.
    ///
    /// # Safety
    ///
    /// - If `self` is a table, `size` is at most the number of entries that the standard prescribes for its
    ///   arrays.
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
