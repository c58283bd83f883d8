//! Blocking collective calls on intracommunicators (MPI-5.0 chapter 6).
//!
//! Arguments become one part of memory per rank, checked, and the runtime's operations
//! (`typepack::coll`) move them; a call and its `v` and `w` relatives differ in how parts are made.
//! What a rank's role does not look at, such as the receive buffer of a gather elsewhere than at
//! the root, is not looked at.

#![expect(clippy::too_many_arguments, reason = "the argument lists of the standard")]

pub mod op;

use crate::abi;
use crate::array;
use crate::buffer::ADDRESS_BITS;
use crate::comm;
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
fn in_place(buffer: *const c_void) -> bool {
    buffer as usize == abi::IN_PLACE
}

/// `elements` elements, `offset` bytes from `buffer`.
///
/// # Errors
/// `MPI_ERR_BUFFER` where there can be no such memory.
fn part<'a>(
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
fn apart(send: &Part<'_>, receive: &Part<'_>) -> Result {
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
struct Table<W: CountWidth> {
    counts: (*const W::Count, &'static str),
    displacements: (*const W::Displacement, &'static str),
}

impl<W: CountWidth> Table<W> {
    fn send(counts: *const W::Count, displacements: *const W::Displacement) -> Self {
        Self { counts: (counts, "sendcounts"), displacements: (displacements, "sdispls") }
    }

    fn receive(counts: *const W::Count, displacements: *const W::Displacement) -> Self {
        Self { counts: (counts, "recvcounts"), displacements: (displacements, "rdispls") }
    }

    /// Counts, and displacements in whatever unit.
    ///
    /// # Safety
    ///
    /// - Both arrays are null or readable for `size` elements.
    unsafe fn read(&self, size: usize) -> Result<Vec<(u64, i128)>> {
        // SAFETY: passed on.
        let (counts, displacements) = unsafe {
            (
                array::read(self.counts.0, size, self.counts.1)?,
                array::read(self.displacements.0, size, self.displacements.1)?,
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
    /// As `read`.
    unsafe fn parts<'a>(
        &self,
        buffer: *const c_void,
        plan: &'a Plan,
        size: usize,
        argument: &'static str,
    ) -> Result<Vec<Part<'a>>> {
        let extent = i128::from(plan.footprint().extent);
        // SAFETY: passed on.
        let entries = unsafe { self.read(size)? };
        let part = |(elements, at)| part(buffer, at * extent, elements, plan, argument);
        entries.into_iter().map(part).collect()
    }
}

/// The types of a call with a type per rank. Those of no elements are not looked at.
///
/// # Safety
///
/// - `types` is null or readable for as many elements as there are entries.
unsafe fn types(
    types: *const raw::Datatype,
    entries: &[(u64, i128)],
    argument: &'static str,
) -> Result<Vec<Arc<Type>>> {
    // SAFETY: passed on.
    let handles = unsafe { array::read(types, entries.len(), argument)? };
    let found = |(handle, &(elements, _)): (raw::Datatype, &(u64, i128))| {
        datatype::find(if elements == 0 { raw::Datatype(abi::BYTE) } else { handle })
    };
    handles.into_iter().zip(entries).map(found).collect()
}

/// Parts of a type each, displacements in bytes.
fn typed<'a>(
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
fn root(root: c_int) -> Result<usize> {
    usize::try_from(root)
        .map_err(|_| Failure::new(abi::ERR_ROOT, "root", format!("{root} is no rank")))
}

/// `MPI_Barrier`.
///
/// # Safety
/// As the C function.
pub unsafe fn barrier(comm: raw::Comm) -> Result {
    comm::find(comm)?.communicator().barrier().map_err(Failure::from)
}

/// `MPI_Bcast`.
///
/// # Safety
/// As the C function.
pub unsafe fn bcast<W: CountWidth>(
    buffer: *mut c_void,
    elements: W::Count,
    datatype: raw::Datatype,
    from: c_int,
    comm: raw::Comm,
) -> Result {
    let comm = comm::find(comm)?;
    let (elements, ty) = (count(elements, "count")?, datatype::find(datatype)?);
    let part = part(buffer, 0, elements, ty.plan()?, "buffer")?;
    // SAFETY: the caller promises memory for the elements.
    unsafe { comm.communicator().broadcast_raw(part, root(from)?) }.map_err(Failure::from)
}

/// What gather and scatter have in common: the buffer of this rank, unless it is in place.
fn own<'a>(
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
fn own_type<W: CountWidth>(
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
enum Spread<W: CountWidth> {
    Row(u64),
    Table(Table<W>),
}

impl<W: CountWidth> Spread<W> {
    /// # Safety
    /// As `Table::read`.
    unsafe fn parts<'a>(
        &self,
        buffer: *const c_void,
        plan: &'a Plan,
        size: usize,
        argument: &'static str,
    ) -> Result<Vec<Part<'a>>> {
        match self {
            Self::Row(elements) => row(buffer, *elements, plan, size, argument),
            // SAFETY: passed on.
            Self::Table(table) => unsafe { table.parts(buffer, plan, size, argument) },
        }
    }
}

/// # Safety
/// As the C function.
unsafe fn gather_to<W: CountWidth>(
    (sendbuf, sendcount, sendtype): (*const c_void, W::Count, raw::Datatype),
    recvbuf: *mut c_void,
    spread: impl FnOnce() -> Result<Spread<W>>,
    recvtype: raw::Datatype,
    to: c_int,
    comm: raw::Comm,
) -> Result {
    let comm = comm::find(comm)?;
    let (comm, to) = (comm.communicator(), root(to)?);
    let at_root = comm.rank() == to;
    let placed = at_root && in_place(sendbuf);
    let (elements, ty) = own_type::<W>(placed, sendcount, sendtype, "sendcount")?;
    let mine = own(sendbuf, elements, &ty, "sendbuf")?;
    if !at_root {
        // SAFETY: the caller promises memory for the elements.
        return unsafe { comm.gather_raw(mine, &[], to) }.map_err(Failure::from);
    }
    let (all, spread) = (datatype::find(recvtype)?, spread()?);
    // SAFETY: passed on.
    let parts = unsafe { spread.parts(recvbuf, all.plan()?, comm.size(), "recvbuf")? };
    if let Some(mine) = &mine {
        apart(mine, &parts[comm.rank()])?;
    }
    // SAFETY: as above; the two buffers do not overlap.
    unsafe { comm.gather_raw(mine, &parts, to) }.map_err(Failure::from)
}

/// `MPI_Gather`.
///
/// # Safety
/// As the C function.
pub unsafe fn gather<W: CountWidth>(
    sendbuf: *const c_void,
    sendcount: W::Count,
    sendtype: raw::Datatype,
    recvbuf: *mut c_void,
    recvcount: W::Count,
    recvtype: raw::Datatype,
    to: c_int,
    comm: raw::Comm,
) -> Result {
    let (send, spread) =
        ((sendbuf, sendcount, sendtype), || Ok(Spread::Row(count(recvcount, "recvcount")?)));
    // SAFETY: passed on.
    unsafe { gather_to::<W>(send, recvbuf, spread, recvtype, to, comm) }
}

/// `MPI_Gatherv`.
///
/// # Safety
/// As the C function.
pub unsafe fn gatherv<W: CountWidth>(
    sendbuf: *const c_void,
    sendcount: W::Count,
    sendtype: raw::Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const W::Count,
    displs: *const W::Displacement,
    recvtype: raw::Datatype,
    to: c_int,
    comm: raw::Comm,
) -> Result {
    let spread = || Ok(Spread::Table(Table::receive(recvcounts, displs)));
    // SAFETY: passed on.
    unsafe { gather_to::<W>((sendbuf, sendcount, sendtype), recvbuf, spread, recvtype, to, comm) }
}

/// # Safety
/// As the C function.
unsafe fn scatter_from<W: CountWidth>(
    sendbuf: *const c_void,
    spread: impl FnOnce() -> Result<Spread<W>>,
    sendtype: raw::Datatype,
    (recvbuf, recvcount, recvtype): (*mut c_void, W::Count, raw::Datatype),
    from: c_int,
    comm: raw::Comm,
) -> Result {
    let comm = comm::find(comm)?;
    let (comm, from) = (comm.communicator(), root(from)?);
    let at_root = comm.rank() == from;
    let placed = at_root && in_place(recvbuf);
    let (elements, ty) = own_type::<W>(placed, recvcount, recvtype, "recvcount")?;
    let mine = own(recvbuf, elements, &ty, "recvbuf")?;
    if !at_root {
        // SAFETY: the caller promises memory for the elements.
        return unsafe { comm.scatter_raw(&[], mine, from) }.map_err(Failure::from);
    }
    let (all, spread) = (datatype::find(sendtype)?, spread()?);
    // SAFETY: passed on.
    let parts = unsafe { spread.parts(sendbuf, all.plan()?, comm.size(), "sendbuf")? };
    if let Some(mine) = &mine {
        apart(&parts[comm.rank()], mine)?;
    }
    // SAFETY: as above; the two buffers do not overlap.
    unsafe { comm.scatter_raw(&parts, mine, from) }.map_err(Failure::from)
}

/// `MPI_Scatter`.
///
/// # Safety
/// As the C function.
pub unsafe fn scatter<W: CountWidth>(
    sendbuf: *const c_void,
    sendcount: W::Count,
    sendtype: raw::Datatype,
    recvbuf: *mut c_void,
    recvcount: W::Count,
    recvtype: raw::Datatype,
    from: c_int,
    comm: raw::Comm,
) -> Result {
    let (spread, receive) =
        (|| Ok(Spread::Row(count(sendcount, "sendcount")?)), (recvbuf, recvcount, recvtype));
    // SAFETY: passed on.
    unsafe { scatter_from::<W>(sendbuf, spread, sendtype, receive, from, comm) }
}

/// `MPI_Scatterv`.
///
/// # Safety
/// As the C function.
pub unsafe fn scatterv<W: CountWidth>(
    sendbuf: *const c_void,
    sendcounts: *const W::Count,
    displs: *const W::Displacement,
    sendtype: raw::Datatype,
    recvbuf: *mut c_void,
    recvcount: W::Count,
    recvtype: raw::Datatype,
    from: c_int,
    comm: raw::Comm,
) -> Result {
    let spread = || Ok(Spread::Table(Table::send(sendcounts, displs)));
    let receive = (recvbuf, recvcount, recvtype);
    // SAFETY: passed on.
    unsafe { scatter_from::<W>(sendbuf, spread, sendtype, receive, from, comm) }
}

/// # Safety
/// As the C function.
unsafe fn gather_everywhere<W: CountWidth>(
    (sendbuf, sendcount, sendtype): (*const c_void, W::Count, raw::Datatype),
    recvbuf: *mut c_void,
    spread: Spread<W>,
    recvtype: raw::Datatype,
    comm: raw::Comm,
) -> Result {
    let comm = comm::find(comm)?;
    let comm = comm.communicator();
    let (elements, ty) = own_type::<W>(in_place(sendbuf), sendcount, sendtype, "sendcount")?;
    let mine = own(sendbuf, elements, &ty, "sendbuf")?;
    let all = datatype::find(recvtype)?;
    // SAFETY: passed on.
    let parts = unsafe { spread.parts(recvbuf, all.plan()?, comm.size(), "recvbuf")? };
    if let Some(mine) = &mine {
        apart(mine, &parts[comm.rank()])?;
    }
    // SAFETY: the caller promises memory for the elements, and that the buffers do not overlap.
    unsafe { comm.allgather_raw(mine, &parts) }.map_err(Failure::from)
}

/// `MPI_Allgather`.
///
/// # Safety
/// As the C function.
pub unsafe fn allgather<W: CountWidth>(
    sendbuf: *const c_void,
    sendcount: W::Count,
    sendtype: raw::Datatype,
    recvbuf: *mut c_void,
    recvcount: W::Count,
    recvtype: raw::Datatype,
    comm: raw::Comm,
) -> Result {
    let (send, spread) =
        ((sendbuf, sendcount, sendtype), Spread::Row(count(recvcount, "recvcount")?));
    // SAFETY: passed on.
    unsafe { gather_everywhere::<W>(send, recvbuf, spread, recvtype, comm) }
}

/// `MPI_Allgatherv`.
///
/// # Safety
/// As the C function.
pub unsafe fn allgatherv<W: CountWidth>(
    sendbuf: *const c_void,
    sendcount: W::Count,
    sendtype: raw::Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const W::Count,
    displs: *const W::Displacement,
    recvtype: raw::Datatype,
    comm: raw::Comm,
) -> Result {
    let spread = Spread::Table(Table::receive(recvcounts, displs));
    // SAFETY: passed on.
    unsafe {
        gather_everywhere::<W>((sendbuf, sendcount, sendtype), recvbuf, spread, recvtype, comm)
    }
}

/// # Safety
/// As the C function.
unsafe fn exchange<W: CountWidth>(
    sendbuf: *const c_void,
    send: impl FnOnce() -> Result<Spread<W>>,
    sendtype: raw::Datatype,
    recvbuf: *mut c_void,
    receive: Spread<W>,
    recvtype: raw::Datatype,
    comm: raw::Comm,
) -> Result {
    let comm = comm::find(comm)?;
    let comm = comm.communicator();
    let to = datatype::find(recvtype)?;
    // SAFETY: passed on.
    let incoming = unsafe { receive.parts(recvbuf, to.plan()?, comm.size(), "recvbuf")? };
    if in_place(sendbuf) {
        // SAFETY: the caller promises memory for the elements.
        return unsafe { comm.alltoall_raw(None, &incoming) }.map_err(Failure::from);
    }
    let (from, send) = (datatype::find(sendtype)?, send()?);
    // SAFETY: passed on.
    let outgoing = unsafe { send.parts(sendbuf, from.plan()?, comm.size(), "sendbuf")? };
    apart(&outgoing[comm.rank()], &incoming[comm.rank()])?;
    // SAFETY: as above; the two buffers do not overlap.
    unsafe { comm.alltoall_raw(Some(&outgoing), &incoming) }.map_err(Failure::from)
}

/// `MPI_Alltoall`.
///
/// # Safety
/// As the C function.
pub unsafe fn alltoall<W: CountWidth>(
    sendbuf: *const c_void,
    sendcount: W::Count,
    sendtype: raw::Datatype,
    recvbuf: *mut c_void,
    recvcount: W::Count,
    recvtype: raw::Datatype,
    comm: raw::Comm,
) -> Result {
    let send = || Ok(Spread::Row(count(sendcount, "sendcount")?));
    let receive = Spread::Row(count(recvcount, "recvcount")?);
    // SAFETY: passed on.
    unsafe { exchange::<W>(sendbuf, send, sendtype, recvbuf, receive, recvtype, comm) }
}

/// `MPI_Alltoallv`.
///
/// # Safety
/// As the C function.
pub unsafe fn alltoallv<W: CountWidth>(
    sendbuf: *const c_void,
    sendcounts: *const W::Count,
    sdispls: *const W::Displacement,
    sendtype: raw::Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const W::Count,
    rdispls: *const W::Displacement,
    recvtype: raw::Datatype,
    comm: raw::Comm,
) -> Result {
    let send = || Ok(Spread::Table(Table::send(sendcounts, sdispls)));
    let receive = Spread::Table(Table::receive(recvcounts, rdispls));
    // SAFETY: passed on.
    unsafe { exchange::<W>(sendbuf, send, sendtype, recvbuf, receive, recvtype, comm) }
}

/// `MPI_Alltoallw`.
///
/// # Safety
/// As the C function.
pub unsafe fn alltoallw<W: CountWidth>(
    sendbuf: *const c_void,
    sendcounts: *const W::Count,
    sdispls: *const W::Displacement,
    sendtypes: *const raw::Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const W::Count,
    rdispls: *const W::Displacement,
    recvtypes: *const raw::Datatype,
    comm: raw::Comm,
) -> Result {
    let comm = comm::find(comm)?;
    let comm = comm.communicator();
    // SAFETY: passed on.
    let (entries, to) = unsafe {
        let entries = Table::<W>::receive(recvcounts, rdispls).read(comm.size())?;
        let to = types(recvtypes, &entries, "recvtypes")?;
        (entries, to)
    };
    let incoming = typed(recvbuf, &entries, &to, "recvbuf")?;
    if in_place(sendbuf) {
        // SAFETY: the caller promises memory for the elements.
        return unsafe { comm.alltoall_raw(None, &incoming) }.map_err(Failure::from);
    }
    // SAFETY: passed on.
    let (entries, from) = unsafe {
        let entries = Table::<W>::send(sendcounts, sdispls).read(comm.size())?;
        let from = types(sendtypes, &entries, "sendtypes")?;
        (entries, from)
    };
    let outgoing = typed(sendbuf, &entries, &from, "sendbuf")?;
    apart(&outgoing[comm.rank()], &incoming[comm.rank()])?;
    // SAFETY: as above; the two buffers do not overlap.
    unsafe { comm.alltoall_raw(Some(&outgoing), &incoming) }.map_err(Failure::from)
}

/// `MPI_Reduce`.
///
/// # Safety
/// As the C function.
pub unsafe fn reduce<W: CountWidth>(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    elements: W::Count,
    datatype: raw::Datatype,
    op: raw::Op,
    to: c_int,
    comm: raw::Comm,
) -> Result {
    let comm = comm::find(comm)?;
    let (comm, to) = (comm.communicator(), root(to)?);
    let (elements, ty) = (count(elements, "count")?, datatype::find(datatype)?);
    let (plan, function) = (ty.plan()?, op::combiner(op, &ty)?);
    let at_root = comm.rank() == to;
    let send = if at_root && in_place(sendbuf) {
        None
    } else {
        Some(part(sendbuf, 0, elements, plan, "sendbuf")?)
    };
    if at_root {
        let receive = part(recvbuf, 0, elements, plan, "recvbuf")?;
        if let Some(send) = &send {
            apart(send, &receive)?;
        }
    }
    let send = send.map(|part| part.origin.cast_const());
    // SAFETY: the caller promises memory for the elements, and that the buffers do not overlap.
    unsafe { comm.reduce_raw(send, recvbuf.cast(), plan, elements, &function.into(), to) }
        .map_err(Failure::from)
}

/// `MPI_Allreduce`.
///
/// # Safety
/// As the C function.
pub unsafe fn allreduce<W: CountWidth>(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    elements: W::Count,
    datatype: raw::Datatype,
    op: raw::Op,
    comm: raw::Comm,
) -> Result {
    let comm = comm::find(comm)?;
    let comm = comm.communicator();
    let (elements, ty) = (count(elements, "count")?, datatype::find(datatype)?);
    let (plan, function) = (ty.plan()?, op::combiner(op, &ty)?);
    let receive = part(recvbuf, 0, elements, plan, "recvbuf")?;
    let send = if in_place(sendbuf) {
        None
    } else {
        let send = part(sendbuf, 0, elements, plan, "sendbuf")?;
        apart(&send, &receive)?;
        Some(send.origin.cast_const())
    };
    // SAFETY: the caller promises memory for the elements, and that the buffers do not overlap.
    unsafe { comm.allreduce_raw(send, receive.origin, plan, elements, &function.into()) }
        .map_err(Failure::from)
}

/// `MPI_Reduce_local`: `inoutbuf = inbuf op inoutbuf`.
///
/// # Safety
/// As the C function.
pub unsafe fn reduce_local<W: CountWidth>(
    inbuf: *const c_void,
    inoutbuf: *mut c_void,
    elements: W::Count,
    datatype: raw::Datatype,
    op: raw::Op,
) -> Result {
    let (elements, ty) = (count(elements, "count")?, datatype::find(datatype)?);
    let (plan, function) = (ty.plan()?, op::combiner(op, &ty)?);
    let input = part(inbuf, 0, elements, plan, "inbuf")?;
    let result = part(inoutbuf, 0, elements, plan, "inoutbuf")?;
    // SAFETY: the caller promises memory for the elements on both sides.
    unsafe { function(input.origin, result.origin, elements as usize) };
    Ok(())
}
