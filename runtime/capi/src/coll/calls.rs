//! The collective calls. The table in `three_ways!` gives, for each call, its arguments and the code that
//! makes a [`Collective`] from them. Every call exists in three forms: blocking, nonblocking and
//! persistent (`call_mode.rs`).

#![expect(clippy::too_many_arguments, reason = "the argument lists of the standard")]

use super::call_mode::{CallMode, Make, make};
use super::op;
use super::parts::{
    Parts, Rooted, Spread, Table, apart, in_place, own, own_type, part, root, typed, types,
};
use crate::abi;
use crate::argument::{Array, Output};
use crate::buffer::count;
use crate::count_width::CountWidth;
use crate::datatype;
use crate::error::{Failure, Result};
use crate::raw;
use std::ffi::{c_int, c_void};
use typepack::engine::Elements;
use typepack::{Collective, Combine, Communicator, Plan};

/// Generates the blocking, the nonblocking and the persistent form of each listed call. Every form takes
/// the arguments that its entry lists in parentheses, and then the communicator. The nonblocking form also
/// takes the request, and the persistent form the info object and the request. The three forms share one
/// function of the module `list`, named after the blocking form. `$value` is the body of that function: it
/// makes a `Collective` from the arguments in parentheses and passes the `Collective` to `$make`. `$make`
/// then runs the operation, starts it, or stores it in a persistent request.
macro_rules! three_ways {
    ($(
        $run:ident $start:ident $init:ident $c:literal ($($arg:ident: $type:ty),*)
        |$comm:ident, $make:ident| $value:expr;
    )*) => {
        $(
            #[doc = concat!("`MPI_", $c, "`.")]
            ///
            /// # Safety
            ///
            /// - Until the call returns, the send buffers are readable and the receive buffers are writable
            ///   for the elements that the counts and datatypes of the call describe.
            pub unsafe fn $run<W: CountWidth>(
                $($arg: $type,)*
                comm: raw::Comm,
            ) -> Result {
                let way = CallMode::Run;
                // SAFETY: the C caller guarantees access to the buffers until the call returns (condition of
                // `# Safety`). `make` requires the same for `CallMode::Run`.
                unsafe { make(comm, way, |comm, make| list::$run::<W>(comm, make, $($arg),*)) }
            }

            #[doc = concat!("The nonblocking `MPI_", $c, "`.")]
            ///
            /// # Safety
            ///
            /// - Until the request is complete, the send buffers are readable and the receive buffers are
            ///   writable for the elements that the counts and datatypes of the call describe.
            pub unsafe fn $start<W: CountWidth>(
                $($arg: $type,)*
                comm: raw::Comm,
                request: Output<raw::Request>,
            ) -> Result {
                let way = CallMode::Start(request);
                // SAFETY: the C caller guarantees access to the buffers until the request is complete
                // (condition of `# Safety`). `make` requires the same for `CallMode::Start`.
                unsafe { make(comm, way, |comm, make| list::$run::<W>(comm, make, $($arg),*)) }
            }

            #[doc = concat!("The persistent `MPI_", $c, "`.")]
            ///
            /// # Safety
            ///
            /// - From each start of the request to the completion of the started operation, the send buffers
            ///   are readable and the receive buffers are writable for the elements that the counts and
            ///   datatypes of the call describe.
            pub unsafe fn $init<W: CountWidth>(
                $($arg: $type,)*
                comm: raw::Comm,
                info: raw::Info,
                request: Output<raw::Request>,
            ) -> Result {
                let way = CallMode::Prepare(info, request);
                // SAFETY: the C caller guarantees access to the buffers from each start of the request to the
                // completion (condition of `# Safety`). `make` requires the same for `CallMode::Prepare`.
                unsafe { make(comm, way, |comm, make| list::$run::<W>(comm, make, $($arg),*)) }
            }
        )*

        /// One function per call, which makes a `Collective` from the arguments of the call and passes the
        /// `Collective` to `make`.
        mod list {
            use super::*;

            $(
                pub fn $run<W: CountWidth>(
                    $comm: &Communicator,
                    $make: Make<'_>,
                    $($arg: $type),*
                ) -> Result {
                    $value
                }
            )*
        }
    };
}

/// `MPI_Barrier`.
pub fn barrier(comm: raw::Comm) -> Result {
    meet(comm, CallMode::Run)
}

/// The nonblocking `MPI_Barrier`.
pub fn ibarrier(comm: raw::Comm, request: Output<raw::Request>) -> Result {
    meet(comm, CallMode::Start(request))
}

/// The persistent `MPI_Barrier`.
pub fn barrier_init(comm: raw::Comm, info: raw::Info, request: Output<raw::Request>) -> Result {
    meet(comm, CallMode::Prepare(info, request))
}

/// Makes a barrier call. `way` says whether the call is blocking, nonblocking or persistent.
fn meet(comm: raw::Comm, way: CallMode) -> Result {
    // SAFETY: a barrier reads and writes no memory of the program.
    unsafe { make(comm, way, |_, make| make(&Collective::Barrier)) }
}

three_ways! {
    bcast ibcast bcast_init "Bcast" (
        buffer: *mut c_void, elements: W::Count, datatype: raw::Datatype, from: c_int
    ) |comm, make| {
        let from = root(comm, from)?;
        let significant = if from.is_idle() { raw::Datatype(abi::BYTE) } else { datatype };
        let elements = if from.is_idle() { 0 } else { count(elements, "count")? };
        let ty = datatype::hold(significant)?;
        let part = part(buffer, 0, elements, ty.plan()?, "buffer")?;
        make(&Collective::Broadcast { part, root: from.root })
    };
    gather igather gather_init "Gather" (
        sendbuf: *const c_void, sendcount: W::Count, sendtype: raw::Datatype,
        recvbuf: *mut c_void, recvcount: W::Count, recvtype: raw::Datatype, to: c_int
    ) |comm, make| {
        let send = (sendbuf, sendcount, sendtype);
        let spread = || Ok(Spread::Row(count(recvcount, "recvcount")?));
        gather_to::<W>(comm, make, send, recvbuf, spread, recvtype, to)
    };
    gatherv igatherv gatherv_init "Gatherv" (
        sendbuf: *const c_void, sendcount: W::Count, sendtype: raw::Datatype,
        recvbuf: *mut c_void, recvcounts: Array<W::Count>, displs: Array<W::Displacement>,
        recvtype: raw::Datatype, to: c_int
    ) |comm, make| {
        let send = (sendbuf, sendcount, sendtype);
        let spread = || Ok(Spread::Table(Table::receive(recvcounts, displs).alone()));
        gather_to::<W>(comm, make, send, recvbuf, spread, recvtype, to)
    };
    scatter iscatter scatter_init "Scatter" (
        sendbuf: *const c_void, sendcount: W::Count, sendtype: raw::Datatype,
        recvbuf: *mut c_void, recvcount: W::Count, recvtype: raw::Datatype, from: c_int
    ) |comm, make| {
        let spread = || Ok(Spread::Row(count(sendcount, "sendcount")?));
        let receive = (recvbuf, recvcount, recvtype);
        scatter_from::<W>(comm, make, sendbuf, spread, sendtype, receive, from)
    };
    scatterv iscatterv scatterv_init "Scatterv" (
        sendbuf: *const c_void, sendcounts: Array<W::Count>, displs: Array<W::Displacement>,
        sendtype: raw::Datatype, recvbuf: *mut c_void, recvcount: W::Count,
        recvtype: raw::Datatype, from: c_int
    ) |comm, make| {
        let spread = || Ok(Spread::Table(Table::send(sendcounts, displs).alone()));
        let receive = (recvbuf, recvcount, recvtype);
        scatter_from::<W>(comm, make, sendbuf, spread, sendtype, receive, from)
    };
    allgather iallgather allgather_init "Allgather" (
        sendbuf: *const c_void, sendcount: W::Count, sendtype: raw::Datatype,
        recvbuf: *mut c_void, recvcount: W::Count, recvtype: raw::Datatype
    ) |comm, make| {
        let send = (sendbuf, sendcount, sendtype);
        let spread = Spread::Row(count(recvcount, "recvcount")?);
        gather_everywhere::<W>(comm, make, send, recvbuf, spread, recvtype)
    };
    allgatherv iallgatherv allgatherv_init "Allgatherv" (
        sendbuf: *const c_void, sendcount: W::Count, sendtype: raw::Datatype,
        recvbuf: *mut c_void, recvcounts: Array<W::Count>, displs: Array<W::Displacement>,
        recvtype: raw::Datatype
    ) |comm, make| {
        let send = (sendbuf, sendcount, sendtype);
        let spread = Spread::Table(Table::receive(recvcounts, displs).alone());
        gather_everywhere::<W>(comm, make, send, recvbuf, spread, recvtype)
    };
    alltoall ialltoall alltoall_init "Alltoall" (
        sendbuf: *const c_void, sendcount: W::Count, sendtype: raw::Datatype,
        recvbuf: *mut c_void, recvcount: W::Count, recvtype: raw::Datatype
    ) |comm, make| {
        let send = || Ok(Spread::Row(count(sendcount, "sendcount")?));
        let receive = Spread::Row(count(recvcount, "recvcount")?);
        exchange::<W>(comm, make, (sendbuf, send, sendtype), (recvbuf, receive, recvtype))
    };
    alltoallv ialltoallv alltoallv_init "Alltoallv" (
        sendbuf: *const c_void, sendcounts: Array<W::Count>, sdispls: Array<W::Displacement>,
        sendtype: raw::Datatype, recvbuf: *mut c_void, recvcounts: Array<W::Count>,
        rdispls: Array<W::Displacement>, recvtype: raw::Datatype
    ) |comm, make| {
        let send = || Ok(Spread::Table(Table::send(sendcounts, sdispls)));
        let receive = Spread::Table(Table::receive(recvcounts, rdispls));
        exchange::<W>(comm, make, (sendbuf, send, sendtype), (recvbuf, receive, recvtype))
    };
    alltoallw ialltoallw alltoallw_init "Alltoallw" (
        sendbuf: *const c_void, sendcounts: Array<W::Count>, sdispls: Array<W::Displacement>,
        sendtypes: Array<raw::Datatype>, recvbuf: *mut c_void, recvcounts: Array<W::Count>,
        rdispls: Array<W::Displacement>, recvtypes: Array<raw::Datatype>
    ) |comm, make| {
        let send = (sendbuf, Table::send(sendcounts, sdispls), sendtypes);
        let receive = (recvbuf, Table::receive(recvcounts, rdispls), recvtypes);
        exchange_typed::<W>(comm, make, send, receive)
    };
    reduce ireduce reduce_init "Reduce" (
        sendbuf: *const c_void, recvbuf: *mut c_void, elements: W::Count, datatype: raw::Datatype,
        op: raw::Op, to: c_int
    ) |comm, make| reduce_to::<W>(comm, make, sendbuf, recvbuf, (elements, datatype, op), to);
    allreduce iallreduce allreduce_init "Allreduce" (
        sendbuf: *const c_void, recvbuf: *mut c_void, elements: W::Count, datatype: raw::Datatype,
        op: raw::Op
    ) |comm, make| {
        let elements = (elements, datatype, op);
        reduce_on_each::<W>(comm, make, sendbuf, recvbuf, elements, true, |send, recv, plan, count, combine| {
            Collective::Allreduce { send, recv, plan, count, combine }
        })
    };
    scan iscan scan_init "Scan" (
        sendbuf: *const c_void, recvbuf: *mut c_void, elements: W::Count, datatype: raw::Datatype,
        op: raw::Op
    ) |comm, make| {
        let elements = (elements, datatype, op);
        reduce_on_each::<W>(comm, make, sendbuf, recvbuf, elements, true, |send, recv, plan, count, combine| {
            Collective::Scan { send, recv, plan, count, combine }
        })
    };
    exscan iexscan exscan_init "Exscan" (
        sendbuf: *const c_void, recvbuf: *mut c_void, elements: W::Count, datatype: raw::Datatype,
        op: raw::Op
    ) |comm, make| {
        let elements = (elements, datatype, op);
        // Rank 0 gets no result, so its receive buffer has no meaning. But if the call is in place, the buffer has the
        // elements that rank 0 contributes.
        let receives = comm.rank() > 0 || in_place(sendbuf);
        reduce_on_each::<W>(comm, make, sendbuf, recvbuf, elements, receives, |send, recv, plan, count, combine| {
            Collective::Exscan { send, recv, plan, count, combine }
        })
    };
    reduce_scatter ireduce_scatter reduce_scatter_init "Reduce_scatter" (
        sendbuf: *const c_void, recvbuf: *mut c_void, recvcounts: Array<W::Count>,
        datatype: raw::Datatype, op: raw::Op
    ) |comm, make| {
        // SAFETY: the standard requires that the array of `MPI_Reduce_scatter` has one entry for each rank of
        // `comm`.
        let counts = unsafe { recvcounts.copy(comm.size(), "recvcounts")? };
        let counts: Result<Vec<u64>> =
            counts.into_iter().map(|elements| Ok(count(elements, "recvcounts")?)).collect();
        reduce_and_divide(comm, make, sendbuf, recvbuf, &counts?, (datatype, op))
    };
    reduce_scatter_block ireduce_scatter_block reduce_scatter_block_init "Reduce_scatter_block" (
        sendbuf: *const c_void, recvbuf: *mut c_void, recvcount: W::Count,
        datatype: raw::Datatype, op: raw::Op
    ) |comm, make| {
        let counts = vec![count(recvcount, "recvcount")?; comm.size()];
        reduce_and_divide(comm, make, sendbuf, recvbuf, &counts, (datatype, op))
    };
}

/// `MPI_Reduce_local`: `inoutbuf = inbuf op inoutbuf`.
///
/// # Safety
///
/// - `inbuf` is readable for `elements` elements of `datatype`.
/// - `inoutbuf` is readable and writable for `elements` elements of `datatype`, and they do not overlap the
///   elements at `inbuf`.
pub unsafe fn reduce_local<W: CountWidth>(
    inbuf: *const c_void,
    inoutbuf: *mut c_void,
    elements: W::Count,
    datatype: raw::Datatype,
    op: raw::Op,
) -> Result {
    let (elements, ty) = (count(elements, "count")?, datatype::hold(datatype)?);
    let (plan, combine) = (ty.plan()?, op::combine(op, datatype, &ty)?);
    let input = part(inbuf, 0, elements, plan, "inbuf")?;
    let result = part(inoutbuf, 0, elements, plan, "inoutbuf")?;
    if input.bytes()? == 0 {
        return Ok(());
    }
    if input.origin == result.origin {
        let detail = "same memory as inbuf; the two buffers must not overlap";
        return Err(Failure::new(abi::ERR_BUFFER, "inoutbuf", detail));
    }
    // SAFETY: `input` has `elements` readable elements at `inbuf` (first condition of `# Safety`). `result`
    // has `elements` readable and writable elements at `inoutbuf`, and they do not overlap those of `input`
    // (second condition). `op::combine` returned the operation for exactly this datatype.
    unsafe { combine.call(input.origin, result.origin, 0, elements) };
    Ok(())
}

/// Makes a call of `MPI_Gather` or `MPI_Gatherv` in one of the three forms. `spread` says where in
/// `recvbuf` the root receives the data of each rank.
fn gather_to<W: CountWidth>(
    comm: &Communicator,
    make: Make<'_>,
    (sendbuf, sendcount, sendtype): (*const c_void, W::Count, raw::Datatype),
    recvbuf: *mut c_void,
    spread: impl FnOnce() -> Result<Spread<W>>,
    recvtype: raw::Datatype,
    to: c_int,
) -> Result {
    let Rooted { root, own: has_own, all: at_root } = root(comm, to)?;
    let placed = !has_own || at_root && in_place(sendbuf);
    let (elements, ty) = own_type::<W>(placed, sendcount, sendtype, "sendcount")?;
    let mine = own(sendbuf, elements, &ty, "sendbuf")?;
    if !at_root {
        return make(&Collective::Gather { mine, parts: &[], root });
    }
    let (all, spread) = (datatype::hold(recvtype)?, spread()?);
    let mut parts = Parts::new();
    // SAFETY: this rank is the root. The standard requires that the root of a gather passes arrays with one
    // entry for each rank of `comm`, or of its remote group.
    unsafe { spread.parts(&mut parts, recvbuf, all.plan()?, comm.peers().size(), "recvbuf")? };
    if let Some(mine) = &mine {
        apart(mine, &parts[comm.rank()])?;
    }
    make(&Collective::Gather { mine, parts: &parts, root })
}

/// Makes a call of `MPI_Scatter` or `MPI_Scatterv` in one of the three forms. `spread` says where in
/// `sendbuf` the data for each rank lie.
fn scatter_from<W: CountWidth>(
    comm: &Communicator,
    make: Make<'_>,
    sendbuf: *const c_void,
    spread: impl FnOnce() -> Result<Spread<W>>,
    sendtype: raw::Datatype,
    (recvbuf, recvcount, recvtype): (*mut c_void, W::Count, raw::Datatype),
    from: c_int,
) -> Result {
    let Rooted { root, own: has_own, all: at_root } = root(comm, from)?;
    let placed = !has_own || at_root && in_place(recvbuf);
    let (elements, ty) = own_type::<W>(placed, recvcount, recvtype, "recvcount")?;
    let mine = own(recvbuf, elements, &ty, "recvbuf")?;
    if !at_root {
        return make(&Collective::Scatter { parts: &[], mine, root });
    }
    let (all, spread) = (datatype::hold(sendtype)?, spread()?);
    let mut parts = Parts::new();
    // SAFETY: this rank is the root. The standard requires that the root of a scatter passes arrays with one
    // entry for each rank of `comm`, or of its remote group.
    unsafe { spread.parts(&mut parts, sendbuf, all.plan()?, comm.peers().size(), "sendbuf")? };
    if let Some(mine) = &mine {
        apart(&parts[comm.rank()], mine)?;
    }
    make(&Collective::Scatter { parts: &parts, mine, root })
}

/// Makes a call of `MPI_Allgather` or `MPI_Allgatherv` in one of the three forms. `spread` says where in
/// `recvbuf` the data of each rank are received.
fn gather_everywhere<W: CountWidth>(
    comm: &Communicator,
    make: Make<'_>,
    (sendbuf, sendcount, sendtype): (*const c_void, W::Count, raw::Datatype),
    recvbuf: *mut c_void,
    spread: Spread<W>,
    recvtype: raw::Datatype,
) -> Result {
    let placed = in_place(sendbuf) && !comm.is_inter();
    let (elements, ty) = own_type::<W>(placed, sendcount, sendtype, "sendcount")?;
    let mine = own(sendbuf, elements, &ty, "sendbuf")?;
    let all = datatype::hold(recvtype)?;
    let mut parts = Parts::new();
    // SAFETY: the standard requires that every rank of an allgather passes arrays with one entry for each
    // rank of `comm`, or of its remote group.
    unsafe { spread.parts(&mut parts, recvbuf, all.plan()?, comm.peers().size(), "recvbuf")? };
    if let (Some(mine), false) = (&mine, comm.is_inter()) {
        apart(mine, &parts[comm.rank()])?;
    }
    make(&Collective::Allgather { mine, parts: &parts })
}

/// Makes a call of `MPI_Alltoall` or `MPI_Alltoallv` in one of the three forms.
fn exchange<W: CountWidth>(
    comm: &Communicator,
    make: Make<'_>,
    (sendbuf, send, sendtype): (*const c_void, impl FnOnce() -> Result<Spread<W>>, raw::Datatype),
    (recvbuf, receive, recvtype): (*mut c_void, Spread<W>, raw::Datatype),
) -> Result {
    let to = datatype::hold(recvtype)?;
    // In `MPI_Alltoall`, the parts of all ranks have the same packed size.
    let equal = matches!(receive, Spread::Row(_));
    let mut incoming = Parts::new();
    // SAFETY: the standard requires that the receive arrays of an alltoall have one entry for each rank of
    // `comm`, or of its remote group.
    unsafe { receive.parts(&mut incoming, recvbuf, to.plan()?, comm.peers().size(), "recvbuf")? };
    if exchanges_in_place(comm, sendbuf)? {
        return make(&alltoall_call(equal, None, &incoming));
    }
    let (from, send) = (datatype::hold(sendtype)?, send()?);
    let mut outgoing = Parts::new();
    // SAFETY: the call is not in place, so the standard requires that the send arrays of an alltoall have one
    // entry for each rank of `comm`, or of its remote group.
    unsafe { send.parts(&mut outgoing, sendbuf, from.plan()?, comm.peers().size(), "sendbuf")? };
    if !comm.is_inter() {
        apart(&outgoing[comm.rank()], &incoming[comm.rank()])?;
    }
    make(&alltoall_call(equal, Some(&outgoing), &incoming))
}

/// Returns whether an alltoall is in place: `sendbuf` is `MPI_IN_PLACE`.
///
/// # Errors
/// Returns `MPI_ERR_BUFFER` if the alltoall is in place and `comm` is an intercommunicator.
fn exchanges_in_place(comm: &Communicator, sendbuf: *const c_void) -> Result<bool> {
    if in_place(sendbuf) && comm.is_inter() {
        let detail = "MPI_IN_PLACE is not allowed in an intercommunicator; a buffer is needed";
        return Err(Failure::new(abi::ERR_BUFFER, "sendbuf", detail));
    }
    Ok(in_place(sendbuf))
}

fn alltoall_call<'a>(
    equal: bool,
    send: Option<&'a [Elements<&'a Plan>]>,
    receive: &'a [Elements<&'a Plan>],
) -> Collective<'a> {
    match equal {
        true => Collective::AlltoallEqual { send, receive },
        false => Collective::Alltoall { send, receive },
    }
}

/// Makes a call of `MPI_Alltoallw` in one of the three forms.
fn exchange_typed<W: CountWidth>(
    comm: &Communicator,
    make: Make<'_>,
    (sendbuf, send, sendtypes): (*const c_void, Table<W>, Array<raw::Datatype>),
    (recvbuf, receive, recvtypes): (*mut c_void, Table<W>, Array<raw::Datatype>),
) -> Result {
    // SAFETY: the standard requires that the receive arrays of `MPI_Alltoallw` have one entry for each rank
    // of `comm` or of its remote group. `read` gets the number of these ranks, and `types` the entries of `read`.
    let (entries, to) = unsafe {
        let entries = receive.read(comm.peers().size())?;
        let to = types(recvtypes, &entries, "recvtypes")?;
        (entries, to)
    };
    let incoming = typed(recvbuf, &entries, &to, "recvbuf")?;
    if exchanges_in_place(comm, sendbuf)? {
        return make(&Collective::Alltoall { send: None, receive: &incoming });
    }
    // SAFETY: the call is not in place, so the standard requires that the send arrays of `MPI_Alltoallw` have
    // one entry for each rank of `comm` or of its remote group. `entries` also has one entry for each of these ranks.
    let (entries, from) = unsafe {
        let entries = send.read(comm.peers().size())?;
        let from = types(sendtypes, &entries, "sendtypes")?;
        (entries, from)
    };
    let outgoing = typed(sendbuf, &entries, &from, "sendbuf")?;
    if !comm.is_inter() {
        apart(&outgoing[comm.rank()], &incoming[comm.rank()])?;
    }
    make(&Collective::Alltoall { send: Some(&outgoing), receive: &incoming })
}

/// Makes a call of `MPI_Reduce` in one of the three forms.
fn reduce_to<W: CountWidth>(
    comm: &Communicator,
    make: Make<'_>,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    (elements, datatype, op): (W::Count, raw::Datatype, raw::Op),
    to: c_int,
) -> Result {
    let to = root(comm, to)?;
    let (count, datatype, op) = match to.is_idle() {
        // The arguments are not significant on this rank.
        true => (0, raw::Datatype(abi::BYTE), raw::Op(abi::BOR)),
        false => (count(elements, "count")?, datatype, op),
    };
    let Rooted { root, own: has_own, all: at_root } = to;
    let ty = datatype::hold(datatype)?;
    let (plan, combine) = (ty.plan()?, op::combine(op, datatype, &ty)?);
    let send = if !has_own || at_root && in_place(sendbuf) {
        None
    } else {
        Some(part(sendbuf, 0, count, plan, "sendbuf")?)
    };
    if at_root {
        let receive = part(recvbuf, 0, count, plan, "recvbuf")?;
        if let Some(send) = &send {
            apart(send, &receive)?;
        }
    }
    let (send, recv) = (send.map(|part| part.origin.cast_const()), recvbuf.cast());
    make(&Collective::Reduce { send, recv, plan, count, combine: &combine, root })
}

/// Makes a call of `MPI_Allreduce`, `MPI_Scan` or `MPI_Exscan` in one of the three forms. `receives` is false if
/// this rank gets no result. `call` makes the `Collective` from the addresses of the elements and of the result, the
/// type and the number of the elements, and the operation.
fn reduce_on_each<W: CountWidth>(
    comm: &Communicator,
    make: Make<'_>,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    (elements, datatype, op): (W::Count, raw::Datatype, raw::Op),
    receives: bool,
    call: impl for<'a> Fn(Option<*const u8>, *mut u8, &'a Plan, u64, &'a Combine) -> Collective<'a>,
) -> Result {
    let (count, ty) = (count(elements, "count")?, datatype::hold(datatype)?);
    let (plan, combine) = (ty.plan()?, op::combine(op, datatype, &ty)?);
    let receive = part(recvbuf, 0, if receives { count } else { 0 }, plan, "recvbuf")?;
    let send = if in_place(sendbuf) && !comm.is_inter() {
        None
    } else {
        let send = part(sendbuf, 0, count, plan, "sendbuf")?;
        apart(&send, &receive)?;
        Some(send.origin.cast_const())
    };
    make(&call(send, receive.origin, plan, count, &combine))
}

/// Makes a call of `MPI_Reduce_scatter` or `MPI_Reduce_scatter_block` in one of the three forms. `counts` has the
/// number of elements that each rank gets.
fn reduce_and_divide(
    comm: &Communicator,
    make: Make<'_>,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    counts: &[u64],
    (datatype, op): (raw::Datatype, raw::Op),
) -> Result {
    let ty = datatype::hold(datatype)?;
    let (plan, combine) = (ty.plan()?, op::combine(op, datatype, &ty)?);
    let total = counts.iter().try_fold(0u64, |sum, count| sum.checked_add(*count));
    let total = total.ok_or_else(|| {
        let detail = "the sum of the counts does not fit in 64 bits";
        Failure::new(abi::ERR_VALUE_TOO_LARGE, "recvcounts", detail)
    })?;
    let placed = in_place(sendbuf) && !comm.is_inter();
    let mine = if placed { total } else { counts[comm.rank()] };
    let receive = part(recvbuf, 0, mine, plan, "recvbuf")?;
    let send = if placed {
        None
    } else {
        let send = part(sendbuf, 0, total, plan, "sendbuf")?;
        apart(&send, &receive)?;
        Some(send.origin.cast_const())
    };
    let recv = receive.origin;
    make(&Collective::ReduceScatter { send, recv, plan, counts, combine: &combine })
}
