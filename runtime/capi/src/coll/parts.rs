//! Divides each buffer of a collective call into one part of memory per rank, or per neighbour in a
//! neighbourhood collective, because the runtime takes buffers in this form. Also checks the parts.
//!
//! A call and its forms whose names end in `v` and `w` differ only in how they divide the buffers. The
//! functions here copy the entries of the count and displacement arrays, because the program may reuse these
//! arrays when the call returns.

use crate::abi;
use crate::argument::Array;
use crate::buffer::{ADDRESS_BITS, count};
use crate::count_width::{CountWidth, Number};
use crate::datatype::{self, Held, Type};
use crate::error::{Failure, Result};
use crate::raw;
use smallvec::SmallVec;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use typepack::engine::Elements;
use typepack::{Communicator, Plan, Root};

/// No object begins below this address, because the first page is never mapped. If elements would lie at a
/// lower address, the program has passed a null pointer or a sentinel by mistake. A null pointer as
/// `MPI_BOTTOM` is valid if the displacements of the datatype are absolute addresses.
const FIRST_ADDRESS: i64 = 4096;

/// No object of a process ends above this address.
const LAST_ADDRESS: i64 = 1 << ADDRESS_BITS;

/// One part of memory per rank, or per neighbour. A call with few parts allocates no memory for them.
pub type Parts<'a> = SmallVec<[Elements<&'a Plan>; 8]>;

/// Returns whether a buffer is `MPI_IN_PLACE`.
pub fn in_place(buffer: *const c_void) -> bool {
    buffer as usize == abi::IN_PLACE
}

/// Returns a part of memory: the `elements` elements that begin `offset` bytes after `buffer`.
///
/// # Errors
/// Returns `MPI_ERR_BUFFER` if the elements would lie where no memory can exist. In this case returns
/// `MPI_ERR_VALUE_TOO_LARGE` instead if the number of their packed bytes does not fit in 63 bits.
#[inline]
pub fn part<'a>(
    buffer: *const c_void,
    offset: i128,
    elements: u64,
    plan: &'a Plan,
    argument: &'static str,
) -> Result<Elements<&'a Plan>> {
    if elements > 0 && plan.element_bytes() > 0 {
        let place = range(buffer, offset, elements, plan).unwrap_or((0, 0));
        if place.0 < FIRST_ADDRESS || place.1 > LAST_ADDRESS {
            return Err(nowhere(buffer, offset, elements, plan, argument));
        }
    }
    // This addition can wrap around only if the part has no bytes. Otherwise the code above has checked the
    // addresses of the elements.
    let origin = buffer.cast::<u8>().cast_mut().wrapping_offset(offset as isize);
    Ok(Elements { origin, plan, count: elements })
}

/// Returns the first address of some elements, and the address after the last one. Returns `None` if an address does
/// not fit in 64 bits.
#[inline]
fn range(buffer: *const c_void, offset: i128, elements: u64, plan: &Plan) -> Option<(i64, i64)> {
    let shape = plan.footprint();
    let last = shape.extent.checked_mul(i64::try_from(elements - 1).ok()?)?;
    let offset = i64::try_from(offset).ok()?;
    let start = i64::try_from(buffer as usize).ok()?.checked_add(offset)?;
    let low = start.checked_add(shape.true_lb)?.checked_add(last.min(0))?;
    let high = start.checked_add(shape.true_ub)?.checked_add(last.max(0))?;
    Some((low, high))
}

/// Returns the error for elements that would lie where no memory can exist.
#[cold]
fn nowhere(
    buffer: *const c_void,
    offset: i128,
    elements: u64,
    plan: &Plan,
    argument: &'static str,
) -> Failure {
    // If the number of packed bytes does not fit in 63 bits, the count, not the buffer, is wrong. In
    // that case `packed_bytes` returns an error about the count.
    if let Err(error) = plan.packed_bytes(elements) {
        return error.into();
    }
    if buffer as usize == abi::IN_PLACE {
        let detail = "MPI_IN_PLACE is not allowed; a buffer is needed";
        return Failure::new(abi::ERR_BUFFER, argument, detail);
    }
    let shape = plan.footprint();
    let last = i128::from(shape.extent) * i128::from(elements - 1);
    let start = buffer as usize as i128 + offset;
    let low = start + i128::from(shape.true_lb) + last.min(0);
    let high = start + i128::from(shape.true_ub) + last.max(0);
    let detail = format!(
        "with a count of {elements}, the data would lie at {low:#x}..{high:#x}, where no memory can be"
    );
    Failure::new(abi::ERR_BUFFER, argument, detail)
}

/// Checks that the send buffer and the receive buffer are not the same memory. (A program must pass
/// `MPI_IN_PLACE` to use the same memory for both.) The buffers are the same if their data begin at the same
/// byte. Equal buffer addresses alone are no error, because both may be `MPI_BOTTOM`.
///
/// # Errors
/// Returns `MPI_ERR_BUFFER` if the two buffers are the same memory.
pub fn apart(send: &Elements<&Plan>, receive: &Elements<&Plan>) -> Result {
    if send.first() == receive.first() && send.bytes()? > 0 && receive.bytes()? > 0 {
        let detail = "this is the same memory as sendbuf; to use one buffer for both, pass MPI_IN_PLACE (not on an intercommunicator)";
        return Err(Failure::new(abi::ERR_BUFFER, "recvbuf", detail));
    }
    Ok(())
}

/// Appends one part per rank to `parts`. Each part has `elements` elements and begins where the previous part ends.
#[inline]
fn row<'a>(
    parts: &mut Parts<'a>,
    buffer: *const c_void,
    elements: u64,
    plan: &'a Plan,
    size: usize,
    argument: &'static str,
) -> Result {
    if size == 0 {
        // No rank sends or receives, so the buffer may be anything.
        return Ok(());
    }
    let step = i128::from(plan.footprint().extent) * i128::from(elements);
    let first = part(buffer, 0, elements, plan, argument)?;
    if size > 1 {
        // The addresses of the parts grow or fall evenly, so if the first and the last part are right, all are.
        part(buffer, step * (size as i128 - 1), elements, plan, argument)?;
    }
    // If the parts have elements with bytes, the checks above have shown that the step fits.
    let step = step as isize;
    parts.reserve(size);
    for rank in 0..size {
        let origin = first.origin.wrapping_offset(step.wrapping_mul(rank as isize));
        parts.push(Elements { origin, ..first });
    }
    Ok(())
}

/// The count array and the displacement array of a call that has one part per rank, each with the name of
/// its argument.
pub struct Table<W: CountWidth> {
    counts: (Array<W::Count>, &'static str),
    displacements: (Array<W::Displacement>, &'static str),
}

impl<W: CountWidth> Table<W> {
    /// Makes the table from the count array and the displacement array of a send buffer.
    pub fn send(counts: Array<W::Count>, displacements: Array<W::Displacement>) -> Self {
        Self { counts: (counts, "sendcounts"), displacements: (displacements, "sdispls") }
    }

    /// Makes the table from the count array and the displacement array of a receive buffer.
    pub fn receive(counts: Array<W::Count>, displacements: Array<W::Displacement>) -> Self {
        Self { counts: (counts, "recvcounts"), displacements: (displacements, "rdispls") }
    }

    /// Returns the same table for a call whose only displacement array is named `displs`.
    pub fn alone(mut self) -> Self {
        self.displacements.1 = "displs";
        self
    }

    /// Returns one pair of count and displacement per rank. The unit of the displacements depends on the
    /// call: extents of the datatype, or bytes.
    ///
    /// # Errors
    /// Returns `MPI_ERR_COUNT` if a count is negative, and the errors of [`Array::copy`].
    ///
    /// # Safety
    ///
    /// - `size` is at most the number of entries that the standard prescribes for each of the two arrays.
    pub unsafe fn read(&self, size: usize) -> Result<Vec<(u64, i128)>> {
        // SAFETY: `counts` and `displacements` have at least `size` entries each (condition of `# Safety`).
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

    /// Appends one part per rank to `parts`. All parts have the datatype of `plan`, and the unit of the
    /// displacements is the extent of this datatype.
    ///
    /// # Safety
    ///
    /// - `size` is at most the number of entries that the standard prescribes for each of the two arrays.
    unsafe fn parts<'a>(
        &self,
        parts: &mut Parts<'a>,
        buffer: *const c_void,
        plan: &'a Plan,
        size: usize,
        argument: &'static str,
    ) -> Result {
        let extent = i128::from(plan.footprint().extent);
        // SAFETY: the two arrays of this table have at least `size` entries each (condition of `# Safety`).
        let entries = unsafe { self.read(size)? };
        for (elements, at) in entries {
            parts.push(part(buffer, at * extent, elements, plan, argument)?);
        }
        Ok(())
    }
}

/// Returns the datatypes of a call that has one datatype per rank. If a part has no elements, its datatype
/// handle is ignored, and `MPI_BYTE` is returned instead.
///
/// # Safety
///
/// - `entries.len()` is at most the number of entries that the standard prescribes for `types`.
pub unsafe fn types(
    types: Array<raw::Datatype>,
    entries: &[(u64, i128)],
    argument: &'static str,
) -> Result<Vec<Arc<Type>>> {
    // SAFETY: `types` has at least `entries.len()` entries (condition of `# Safety`).
    let handles = unsafe { types.copy(entries.len(), argument)? };
    let found = |(handle, &(elements, _)): (raw::Datatype, &(u64, i128))| {
        Ok(datatype::find(if elements == 0 { raw::Datatype(abi::BYTE) } else { handle })?)
    };
    handles.into_iter().zip(entries).map(found).collect()
}

/// Returns one part per rank. Each part has a datatype of its own, and the displacements are in bytes.
pub fn typed<'a>(
    buffer: *const c_void,
    entries: &[(u64, i128)],
    types: &'a [Arc<Type>],
    argument: &'static str,
) -> Result<Parts<'a>> {
    let part = |(&(elements, at), ty): (&(u64, i128), &'a Arc<Type>)| {
        part(buffer, at, elements, ty.plan()?, argument)
    };
    entries.iter().zip(types).map(part).collect()
}

/// The root of a call, and which buffers of the call are significant on this rank.
pub struct Rooted {
    /// The root.
    pub root: Root,
    /// Whether the buffer with this rank's own data is significant. In an intercommunicator, only the ranks of the
    /// group without the root have such data.
    pub own: bool,
    /// Whether the buffer with the data of all ranks is significant: this rank is the root.
    pub all: bool,
}

impl Rooted {
    /// Returns whether no buffer is significant: another rank of this rank's group is the root.
    pub fn is_idle(&self) -> bool {
        self.root == Root::InMyGroup
    }
}

/// Converts the argument for the root. The runtime checks later that the root is less than the number of
/// ranks.
///
/// # Errors
/// Returns `MPI_ERR_ROOT` if the root is negative, except for `MPI_ROOT` and `MPI_PROC_NULL` in an
/// intercommunicator.
pub fn root(comm: &Communicator, root: c_int) -> Result<Rooted> {
    let inter = comm.is_inter();
    match root {
        abi::ROOT if inter => Ok(Rooted { root: Root::Here, own: false, all: true }),
        abi::PROC_NULL if inter => Ok(Rooted { root: Root::InMyGroup, own: false, all: false }),
        _ => match usize::try_from(root) {
            Ok(rank) => {
                Ok(Rooted { root: Root::Rank(rank), own: true, all: !inter && comm.rank() == rank })
            }
            Err(_) => {
                let allowed =
                    if inter { "MPI_ROOT, MPI_PROC_NULL, or 0 or more" } else { "0 or more" };
                let detail = format!("{root} is negative; a root must be {allowed}");
                Err(Failure::new(abi::ERR_ROOT, "root", detail))
            }
        },
    }
}

/// Returns the part of memory that holds this rank's own data: `elements` elements of type `ty` at `buffer`.
/// If there is no buffer for these data, the caller passes `None` for `ty` (see [`own_type`]), and this function
/// returns `None`.
pub fn own<'a>(
    buffer: *const c_void,
    elements: u64,
    ty: &'a Option<Held<Type>>,
    argument: &'static str,
) -> Result<Option<Elements<&'a Plan>>> {
    match ty {
        None => Ok(None),
        Some(ty) => part(buffer, 0, elements, ty.plan()?, argument).map(Some),
    }
}

/// Checks the count and finds the datatype of the buffer that holds this rank's own data. `placed` is true if
/// there is no such buffer: the call is in place, or this rank is in the same group of an intercommunicator as
/// the root. In this case, ignores the count and the datatype, and returns 0 and `None`.
pub fn own_type<W: CountWidth>(
    placed: bool,
    elements: W::Count,
    datatype: raw::Datatype,
    argument: &'static str,
) -> Result<(u64, Option<Held<Type>>)> {
    if placed {
        return Ok((0, None));
    }
    Ok((count(elements, argument)?, Some(datatype::hold(datatype)?)))
}

/// How a buffer is divided into the parts of all ranks.
pub enum Spread<W: CountWidth> {
    /// Each part has this number of elements, and begins where the previous part ends.
    Row(u64),
    /// The arrays of the call give the number of elements of each part and the displacement where it begins.
    Table(Table<W>),
}

impl<W: CountWidth> Spread<W> {
    /// Appends one part per rank to `parts`. (If the function returned the parts, the CPU would copy them right after
    /// it has written them, and would wait until the written lines are in its cache.)
    ///
    /// # Safety
    ///
    /// - If `self` is a [`Table`](Self::Table), `size` is at most the number of entries that the standard
    ///   prescribes for its two arrays.
    #[inline]
    pub unsafe fn parts<'a>(
        &self,
        parts: &mut Parts<'a>,
        buffer: *const c_void,
        plan: &'a Plan,
        size: usize,
        argument: &'static str,
    ) -> Result {
        match self {
            Self::Row(elements) => row(parts, buffer, *elements, plan, size, argument),
            // SAFETY: the arrays of `table` have at least `size` entries (condition of `# Safety`).
            Self::Table(table) => unsafe { table.parts(parts, buffer, plan, size, argument) },
        }
    }
}
