//! The neighbourhood collectives (MPI-5.0 sections 8.6 to 8.8), on the neighbours of the communicator's
//! topology.
//!
//! A neighbour that does not exist (`MPI_PROC_NULL`) has a part of each buffer, and entries in the count and
//! displacement arrays, but its part is neither read nor written.

#![expect(clippy::too_many_arguments, reason = "the argument lists of the standard")]

use super::call_mode::{CallMode, Make, make};
use super::parts::{Parts, Spread, Table, part, typed, types};
use crate::abi;
use crate::argument::{Array, Output};
use crate::buffer::count;
use crate::count_width::{CountWidth, Number};
use crate::datatype;
use crate::error::{Failure, Result};
use crate::raw;
use std::ffi::c_void;
use typepack::topo::Neighbors;
use typepack::{Collective, Communicator};

three_ways! {
    neighbor_allgather ineighbor_allgather neighbor_allgather_init "Neighbor_allgather" (
        sendbuf: *const c_void, sendcount: W::Count, sendtype: raw::Datatype,
        recvbuf: *mut c_void, recvcount: W::Count, recvtype: raw::Datatype
    ) |comm, make| {
        let send = (sendbuf, sendcount, sendtype);
        let spread = Spread::Row(count(recvcount, "recvcount")?);
        gather::<W>(comm, make, send, recvbuf, spread, recvtype)
    };
    neighbor_allgatherv ineighbor_allgatherv neighbor_allgatherv_init "Neighbor_allgatherv" (
        sendbuf: *const c_void, sendcount: W::Count, sendtype: raw::Datatype,
        recvbuf: *mut c_void, recvcounts: Array<W::Count>, displs: Array<W::Displacement>,
        recvtype: raw::Datatype
    ) |comm, make| {
        let send = (sendbuf, sendcount, sendtype);
        let spread = Spread::Table(Table::receive(recvcounts, displs).alone());
        gather::<W>(comm, make, send, recvbuf, spread, recvtype)
    };
    neighbor_alltoall ineighbor_alltoall neighbor_alltoall_init "Neighbor_alltoall" (
        sendbuf: *const c_void, sendcount: W::Count, sendtype: raw::Datatype,
        recvbuf: *mut c_void, recvcount: W::Count, recvtype: raw::Datatype
    ) |comm, make| {
        let send = Spread::Row(count(sendcount, "sendcount")?);
        let receive = Spread::Row(count(recvcount, "recvcount")?);
        exchange::<W>(comm, make, (sendbuf, send, sendtype), (recvbuf, receive, recvtype))
    };
    neighbor_alltoallv ineighbor_alltoallv neighbor_alltoallv_init "Neighbor_alltoallv" (
        sendbuf: *const c_void, sendcounts: Array<W::Count>, sdispls: Array<W::Displacement>,
        sendtype: raw::Datatype, recvbuf: *mut c_void, recvcounts: Array<W::Count>,
        rdispls: Array<W::Displacement>, recvtype: raw::Datatype
    ) |comm, make| {
        let send = Spread::Table(Table::send(sendcounts, sdispls));
        let receive = Spread::Table(Table::receive(recvcounts, rdispls));
        exchange::<W>(comm, make, (sendbuf, send, sendtype), (recvbuf, receive, recvtype))
    };
    neighbor_alltoallw ineighbor_alltoallw neighbor_alltoallw_init "Neighbor_alltoallw" (
        sendbuf: *const c_void, sendcounts: Array<W::Count>, sdispls: Array<raw::Aint>,
        sendtypes: Array<raw::Datatype>, recvbuf: *mut c_void, recvcounts: Array<W::Count>,
        rdispls: Array<raw::Aint>, recvtypes: Array<raw::Datatype>
    ) |comm, make| {
        let send = (sendbuf, (sendcounts, "sendcounts"), (sdispls, "sdispls"), sendtypes);
        let receive = (recvbuf.cast_const(), (recvcounts, "recvcounts"), (rdispls, "rdispls"), recvtypes);
        exchange_typed::<W>(comm, make, send, receive)
    };
}

/// Returns the neighbours of this rank.
///
/// # Errors
/// Returns `MPI_ERR_COMM` if the communicator is an intercommunicator, and `MPI_ERR_TOPOLOGY` if it has no
/// topology.
fn neighbors(comm: &Communicator) -> Result<&Neighbors> {
    comm.check_intra("comm")?;
    comm.topology().map(|topology| topology.neighbors()).ok_or_else(|| {
        Failure::new(
            abi::ERR_TOPOLOGY,
            "comm",
            "the communicator has no topology, so no neighbours",
        )
    })
}

/// Makes a call of `MPI_Neighbor_allgather` or `MPI_Neighbor_allgatherv` in one of the three forms.
fn gather<W: CountWidth>(
    comm: &Communicator,
    make: Make<'_>,
    (sendbuf, sendcount, sendtype): (*const c_void, W::Count, raw::Datatype),
    recvbuf: *mut c_void,
    spread: Spread<W>,
    recvtype: raw::Datatype,
) -> Result {
    let neighbors = neighbors(comm)?;
    let (elements, from) = (count(sendcount, "sendcount")?, datatype::find(sendtype)?);
    let destinations = neighbors.destinations().len();
    // Without a destination nothing is sent, so the send buffer may be anything.
    let elements = if destinations == 0 { 0 } else { elements };
    let mine = part(sendbuf, 0, elements, from.plan()?, "sendbuf")?;
    let send = vec![mine; destinations];
    let to = datatype::find(recvtype)?;
    let count = neighbors.sources().len();
    let mut receive = Parts::new();
    // SAFETY: the standard requires that the receive arrays of a neighbourhood allgather have one entry for
    // each source.
    unsafe { spread.parts(&mut receive, recvbuf, to.plan()?, count, "recvbuf")? };
    make(&Collective::Neighbors { neighbors, send: &send, receive: &receive })
}

/// Makes a call of `MPI_Neighbor_alltoall` or `MPI_Neighbor_alltoallv` in one of the three forms.
fn exchange<W: CountWidth>(
    comm: &Communicator,
    make: Make<'_>,
    (sendbuf, send, sendtype): (*const c_void, Spread<W>, raw::Datatype),
    (recvbuf, receive, recvtype): (*mut c_void, Spread<W>, raw::Datatype),
) -> Result {
    let neighbors = neighbors(comm)?;
    let (from, to) = (datatype::find(sendtype)?, datatype::find(recvtype)?);
    let (mut outgoing, mut incoming) = (Parts::new(), Parts::new());
    // SAFETY: the standard requires that the send arrays of a neighbourhood alltoall have one entry for each
    // destination, and the receive arrays one entry for each source.
    unsafe {
        send.parts(
            &mut outgoing,
            sendbuf,
            from.plan()?,
            neighbors.destinations().len(),
            "sendbuf",
        )?;
        receive.parts(&mut incoming, recvbuf, to.plan()?, neighbors.sources().len(), "recvbuf")?;
    }
    make(&Collective::Neighbors { neighbors, send: &outgoing, receive: &incoming })
}

/// The arguments of `MPI_Neighbor_alltoallw` about one buffer: the buffer, the counts, the displacements in
/// bytes and the datatypes. The counts and the displacements have the names of their arguments.
type Typed<W> = (
    *const c_void,
    (Array<<W as CountWidth>::Count>, &'static str),
    (Array<raw::Aint>, &'static str),
    Array<raw::Datatype>,
);

/// Makes a call of `MPI_Neighbor_alltoallw` in one of the three forms.
fn exchange_typed<W: CountWidth>(
    comm: &Communicator,
    make: Make<'_>,
    (sendbuf, sendcounts, sdispls, sendtypes): Typed<W>,
    (recvbuf, recvcounts, rdispls, recvtypes): Typed<W>,
) -> Result {
    let neighbors = neighbors(comm)?;
    // SAFETY: the standard requires that the send arrays of `MPI_Neighbor_alltoallw` have one entry for each
    // destination, and the receive arrays one entry for each source. `entries` returns one entry for each of these
    // neighbours, so `types` reads one handle for each of them.
    let (outgoing, from, incoming, to) = unsafe {
        let outgoing = entries::<W>(sendcounts, sdispls, neighbors.destinations())?;
        let from = types(sendtypes, &outgoing, "sendtypes")?;
        let incoming = entries::<W>(recvcounts, rdispls, neighbors.sources())?;
        let to = types(recvtypes, &incoming, "recvtypes")?;
        (outgoing, from, incoming, to)
    };
    let send = typed(sendbuf, &outgoing, &from, "sendbuf")?;
    let receive = typed(recvbuf, &incoming, &to, "recvbuf")?;
    make(&Collective::Neighbors { neighbors, send: &send, receive: &receive })
}

/// Returns the count and the displacement in bytes for each neighbour. The count is 0 for a neighbour that
/// does not exist, so that its datatype is ignored.
///
/// # Safety
///
/// - Both arrays have one entry for each of `neighbors`.
unsafe fn entries<W: CountWidth>(
    (counts, of_counts): (Array<W::Count>, &'static str),
    (displacements, of_displacements): (Array<raw::Aint>, &'static str),
    neighbors: &[Option<usize>],
) -> Result<Vec<(u64, i128)>> {
    // SAFETY: both arrays have one entry for each of `neighbors` (condition of `# Safety`). The iterators end
    // in this function.
    let (counts, displacements) = unsafe {
        (
            counts.entries(neighbors.len(), of_counts)?,
            displacements.entries(neighbors.len(), of_displacements)?,
        )
    };
    let entry = |((elements, at), neighbor): ((W::Count, raw::Aint), &Option<usize>)| {
        let elements = count(elements, of_counts)?;
        let elements = if neighbor.is_some() { elements } else { 0 };
        Ok((elements, i128::from(at.wide())))
    };
    counts.zip(displacements).zip(neighbors).map(entry).collect()
}
