//! The collective calls: what each is, from its arguments, in all three ways (`way.rs`).

#![expect(clippy::too_many_arguments, reason = "the argument lists of the standard")]

use super::op;
use super::parts::{Spread, Table, apart, in_place, own, own_type, part, root, typed, types};
use super::way::{Make, Way, make};
use crate::count_width::{CountWidth, count};
use crate::datatype;
use crate::error::Result;
use crate::raw;
use std::ffi::{c_int, c_void};
use typepack::{Collective, Combine, Communicator};

/// The blocking, the nonblocking and the persistent form of calls: each has the arguments in parentheses
/// and those of its form, and hands the former to the function of the blocking form's name in `list`.
macro_rules! three_ways {
    ($($run:ident $start:ident $init:ident $c:literal ($($arg:ident: $type:ty),*);)*) => {
        $(
            #[doc = concat!("`MPI_", $c, "`.")]
            ///
            /// # Safety
            /// As the C function.
            pub unsafe fn $run<W: CountWidth>($($arg: $type,)* comm: raw::Comm) -> Result {
                // SAFETY: the arguments are those of the C call.
                unsafe {
                    make(comm, Way::Run, |comm, make| list::$run::<W>(comm, make, $($arg),*))
                }
            }

            #[doc = concat!("The nonblocking `MPI_", $c, "`.")]
            ///
            /// # Safety
            /// As the C function.
            pub unsafe fn $start<W: CountWidth>(
                $($arg: $type,)*
                comm: raw::Comm,
                request: *mut raw::Request,
            ) -> Result {
                let way = Way::Start(request);
                // SAFETY: the arguments are those of the C call.
                unsafe { make(comm, way, |comm, make| list::$run::<W>(comm, make, $($arg),*)) }
            }

            #[doc = concat!("The persistent `MPI_", $c, "`.")]
            ///
            /// # Safety
            /// As the C function.
            pub unsafe fn $init<W: CountWidth>(
                $($arg: $type,)*
                comm: raw::Comm,
                info: raw::Info,
                request: *mut raw::Request,
            ) -> Result {
                let way = Way::Prepare(info, request);
                // SAFETY: the arguments are those of the C call.
                unsafe { make(comm, way, |comm, make| list::$run::<W>(comm, make, $($arg),*)) }
            }
        )*
    };
}

/// `MPI_Barrier`.
///
/// # Safety
/// As the C function.
pub unsafe fn barrier(comm: raw::Comm) -> Result {
    // SAFETY: the arguments are those of the C call.
    unsafe { make(comm, Way::Run, |_, make| make(&Collective::Barrier)) }
}

/// The nonblocking `MPI_Barrier`.
///
/// # Safety
/// As the C function.
pub unsafe fn ibarrier(comm: raw::Comm, request: *mut raw::Request) -> Result {
    // SAFETY: the arguments are those of the C call.
    unsafe { make(comm, Way::Start(request), |_, make| make(&Collective::Barrier)) }
}

/// The persistent `MPI_Barrier`.
///
/// # Safety
/// As the C function.
pub unsafe fn barrier_init(comm: raw::Comm, info: raw::Info, request: *mut raw::Request) -> Result {
    // SAFETY: the arguments are those of the C call.
    unsafe { make(comm, Way::Prepare(info, request), |_, make| make(&Collective::Barrier)) }
}

three_ways! {
    bcast ibcast bcast_init "Bcast" (
        buffer: *mut c_void, elements: W::Count, datatype: raw::Datatype, from: c_int
    );
    gather igather gather_init "Gather" (
        sendbuf: *const c_void, sendcount: W::Count, sendtype: raw::Datatype,
        recvbuf: *mut c_void, recvcount: W::Count, recvtype: raw::Datatype, to: c_int
    );
    gatherv igatherv gatherv_init "Gatherv" (
        sendbuf: *const c_void, sendcount: W::Count, sendtype: raw::Datatype,
        recvbuf: *mut c_void, recvcounts: *const W::Count, displs: *const W::Displacement,
        recvtype: raw::Datatype, to: c_int
    );
    scatter iscatter scatter_init "Scatter" (
        sendbuf: *const c_void, sendcount: W::Count, sendtype: raw::Datatype,
        recvbuf: *mut c_void, recvcount: W::Count, recvtype: raw::Datatype, from: c_int
    );
    scatterv iscatterv scatterv_init "Scatterv" (
        sendbuf: *const c_void, sendcounts: *const W::Count, displs: *const W::Displacement,
        sendtype: raw::Datatype, recvbuf: *mut c_void, recvcount: W::Count,
        recvtype: raw::Datatype, from: c_int
    );
    allgather iallgather allgather_init "Allgather" (
        sendbuf: *const c_void, sendcount: W::Count, sendtype: raw::Datatype,
        recvbuf: *mut c_void, recvcount: W::Count, recvtype: raw::Datatype
    );
    allgatherv iallgatherv allgatherv_init "Allgatherv" (
        sendbuf: *const c_void, sendcount: W::Count, sendtype: raw::Datatype,
        recvbuf: *mut c_void, recvcounts: *const W::Count, displs: *const W::Displacement,
        recvtype: raw::Datatype
    );
    alltoall ialltoall alltoall_init "Alltoall" (
        sendbuf: *const c_void, sendcount: W::Count, sendtype: raw::Datatype,
        recvbuf: *mut c_void, recvcount: W::Count, recvtype: raw::Datatype
    );
    alltoallv ialltoallv alltoallv_init "Alltoallv" (
        sendbuf: *const c_void, sendcounts: *const W::Count, sdispls: *const W::Displacement,
        sendtype: raw::Datatype, recvbuf: *mut c_void, recvcounts: *const W::Count,
        rdispls: *const W::Displacement, recvtype: raw::Datatype
    );
    alltoallw ialltoallw alltoallw_init "Alltoallw" (
        sendbuf: *const c_void, sendcounts: *const W::Count, sdispls: *const W::Displacement,
        sendtypes: *const raw::Datatype, recvbuf: *mut c_void, recvcounts: *const W::Count,
        rdispls: *const W::Displacement, recvtypes: *const raw::Datatype
    );
    reduce ireduce reduce_init "Reduce" (
        sendbuf: *const c_void, recvbuf: *mut c_void, elements: W::Count, datatype: raw::Datatype,
        op: raw::Op, to: c_int
    );
    allreduce iallreduce allreduce_init "Allreduce" (
        sendbuf: *const c_void, recvbuf: *mut c_void, elements: W::Count, datatype: raw::Datatype,
        op: raw::Op
    );
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

/// What a call is, from its arguments; handed to `make`, which does it.
///
/// # Safety
///
/// - Arrays that a call has an entry per rank of are null or readable for that many.
mod list {
    use super::*;

    pub unsafe fn bcast<W: CountWidth>(
        _: &Communicator,
        make: Make<'_>,
        buffer: *mut c_void,
        elements: W::Count,
        datatype: raw::Datatype,
        from: c_int,
    ) -> Result {
        let (elements, ty) = (count(elements, "count")?, datatype::find(datatype)?);
        let part = part(buffer, 0, elements, ty.plan()?, "buffer")?;
        make(&Collective::Broadcast { part, root: root(from)? })
    }

    unsafe fn gather_to<W: CountWidth>(
        comm: &Communicator,
        make: Make<'_>,
        (sendbuf, sendcount, sendtype): (*const c_void, W::Count, raw::Datatype),
        recvbuf: *mut c_void,
        spread: impl FnOnce() -> Result<Spread<W>>,
        recvtype: raw::Datatype,
        to: c_int,
    ) -> Result {
        let root = root(to)?;
        let at_root = comm.rank() == root;
        let placed = at_root && in_place(sendbuf);
        let (elements, ty) = own_type::<W>(placed, sendcount, sendtype, "sendcount")?;
        let mine = own(sendbuf, elements, &ty, "sendbuf")?;
        if !at_root {
            return make(&Collective::Gather { mine, parts: &[], root });
        }
        let (all, spread) = (datatype::find(recvtype)?, spread()?);
        // SAFETY: the arrays are the C program's.
        let parts = unsafe { spread.parts(recvbuf, all.plan()?, comm.size(), "recvbuf")? };
        if let Some(mine) = &mine {
            apart(mine, &parts[comm.rank()])?;
        }
        make(&Collective::Gather { mine, parts: &parts, root })
    }

    pub unsafe fn gather<W: CountWidth>(
        comm: &Communicator,
        make: Make<'_>,
        sendbuf: *const c_void,
        sendcount: W::Count,
        sendtype: raw::Datatype,
        recvbuf: *mut c_void,
        recvcount: W::Count,
        recvtype: raw::Datatype,
        to: c_int,
    ) -> Result {
        let send = (sendbuf, sendcount, sendtype);
        let spread = || Ok(Spread::Row(count(recvcount, "recvcount")?));
        // SAFETY: no arrays.
        unsafe { gather_to::<W>(comm, make, send, recvbuf, spread, recvtype, to) }
    }

    pub unsafe fn gatherv<W: CountWidth>(
        comm: &Communicator,
        make: Make<'_>,
        sendbuf: *const c_void,
        sendcount: W::Count,
        sendtype: raw::Datatype,
        recvbuf: *mut c_void,
        recvcounts: *const W::Count,
        displs: *const W::Displacement,
        recvtype: raw::Datatype,
        to: c_int,
    ) -> Result {
        let send = (sendbuf, sendcount, sendtype);
        let spread = || Ok(Spread::Table(Table::receive(recvcounts, displs)));
        // SAFETY: the arrays are the C program's.
        unsafe { gather_to::<W>(comm, make, send, recvbuf, spread, recvtype, to) }
    }

    unsafe fn scatter_from<W: CountWidth>(
        comm: &Communicator,
        make: Make<'_>,
        sendbuf: *const c_void,
        spread: impl FnOnce() -> Result<Spread<W>>,
        sendtype: raw::Datatype,
        (recvbuf, recvcount, recvtype): (*mut c_void, W::Count, raw::Datatype),
        from: c_int,
    ) -> Result {
        let root = root(from)?;
        let at_root = comm.rank() == root;
        let placed = at_root && in_place(recvbuf);
        let (elements, ty) = own_type::<W>(placed, recvcount, recvtype, "recvcount")?;
        let mine = own(recvbuf, elements, &ty, "recvbuf")?;
        if !at_root {
            return make(&Collective::Scatter { parts: &[], mine, root });
        }
        let (all, spread) = (datatype::find(sendtype)?, spread()?);
        // SAFETY: the arrays are the C program's.
        let parts = unsafe { spread.parts(sendbuf, all.plan()?, comm.size(), "sendbuf")? };
        if let Some(mine) = &mine {
            apart(&parts[comm.rank()], mine)?;
        }
        make(&Collective::Scatter { parts: &parts, mine, root })
    }

    pub unsafe fn scatter<W: CountWidth>(
        comm: &Communicator,
        make: Make<'_>,
        sendbuf: *const c_void,
        sendcount: W::Count,
        sendtype: raw::Datatype,
        recvbuf: *mut c_void,
        recvcount: W::Count,
        recvtype: raw::Datatype,
        from: c_int,
    ) -> Result {
        let spread = || Ok(Spread::Row(count(sendcount, "sendcount")?));
        let receive = (recvbuf, recvcount, recvtype);
        // SAFETY: no arrays.
        unsafe { scatter_from::<W>(comm, make, sendbuf, spread, sendtype, receive, from) }
    }

    pub unsafe fn scatterv<W: CountWidth>(
        comm: &Communicator,
        make: Make<'_>,
        sendbuf: *const c_void,
        sendcounts: *const W::Count,
        displs: *const W::Displacement,
        sendtype: raw::Datatype,
        recvbuf: *mut c_void,
        recvcount: W::Count,
        recvtype: raw::Datatype,
        from: c_int,
    ) -> Result {
        let spread = || Ok(Spread::Table(Table::send(sendcounts, displs)));
        let receive = (recvbuf, recvcount, recvtype);
        // SAFETY: the arrays are the C program's.
        unsafe { scatter_from::<W>(comm, make, sendbuf, spread, sendtype, receive, from) }
    }

    unsafe fn gather_everywhere<W: CountWidth>(
        comm: &Communicator,
        make: Make<'_>,
        (sendbuf, sendcount, sendtype): (*const c_void, W::Count, raw::Datatype),
        recvbuf: *mut c_void,
        spread: Spread<W>,
        recvtype: raw::Datatype,
    ) -> Result {
        let (elements, ty) = own_type::<W>(in_place(sendbuf), sendcount, sendtype, "sendcount")?;
        let mine = own(sendbuf, elements, &ty, "sendbuf")?;
        let all = datatype::find(recvtype)?;
        // SAFETY: the arrays are the C program's.
        let parts = unsafe { spread.parts(recvbuf, all.plan()?, comm.size(), "recvbuf")? };
        if let Some(mine) = &mine {
            apart(mine, &parts[comm.rank()])?;
        }
        make(&Collective::Allgather { mine, parts: &parts })
    }

    pub unsafe fn allgather<W: CountWidth>(
        comm: &Communicator,
        make: Make<'_>,
        sendbuf: *const c_void,
        sendcount: W::Count,
        sendtype: raw::Datatype,
        recvbuf: *mut c_void,
        recvcount: W::Count,
        recvtype: raw::Datatype,
    ) -> Result {
        let send = (sendbuf, sendcount, sendtype);
        let spread = Spread::Row(count(recvcount, "recvcount")?);
        // SAFETY: no arrays.
        unsafe { gather_everywhere::<W>(comm, make, send, recvbuf, spread, recvtype) }
    }

    pub unsafe fn allgatherv<W: CountWidth>(
        comm: &Communicator,
        make: Make<'_>,
        sendbuf: *const c_void,
        sendcount: W::Count,
        sendtype: raw::Datatype,
        recvbuf: *mut c_void,
        recvcounts: *const W::Count,
        displs: *const W::Displacement,
        recvtype: raw::Datatype,
    ) -> Result {
        let send = (sendbuf, sendcount, sendtype);
        let spread = Spread::Table(Table::receive(recvcounts, displs));
        // SAFETY: the arrays are the C program's.
        unsafe { gather_everywhere::<W>(comm, make, send, recvbuf, spread, recvtype) }
    }

    unsafe fn exchange<W: CountWidth>(
        comm: &Communicator,
        make: Make<'_>,
        (sendbuf, send, sendtype): (
            *const c_void,
            impl FnOnce() -> Result<Spread<W>>,
            raw::Datatype,
        ),
        (recvbuf, receive, recvtype): (*mut c_void, Spread<W>, raw::Datatype),
    ) -> Result {
        let to = datatype::find(recvtype)?;
        // SAFETY: the arrays are the C program's.
        let incoming = unsafe { receive.parts(recvbuf, to.plan()?, comm.size(), "recvbuf")? };
        if in_place(sendbuf) {
            return make(&Collective::Alltoall { send: None, receive: &incoming });
        }
        let (from, send) = (datatype::find(sendtype)?, send()?);
        // SAFETY: as above.
        let outgoing = unsafe { send.parts(sendbuf, from.plan()?, comm.size(), "sendbuf")? };
        apart(&outgoing[comm.rank()], &incoming[comm.rank()])?;
        make(&Collective::Alltoall { send: Some(&outgoing), receive: &incoming })
    }

    pub unsafe fn alltoall<W: CountWidth>(
        comm: &Communicator,
        make: Make<'_>,
        sendbuf: *const c_void,
        sendcount: W::Count,
        sendtype: raw::Datatype,
        recvbuf: *mut c_void,
        recvcount: W::Count,
        recvtype: raw::Datatype,
    ) -> Result {
        let send = || Ok(Spread::Row(count(sendcount, "sendcount")?));
        let receive = Spread::Row(count(recvcount, "recvcount")?);
        // SAFETY: no arrays.
        unsafe {
            exchange::<W>(comm, make, (sendbuf, send, sendtype), (recvbuf, receive, recvtype))
        }
    }

    pub unsafe fn alltoallv<W: CountWidth>(
        comm: &Communicator,
        make: Make<'_>,
        sendbuf: *const c_void,
        sendcounts: *const W::Count,
        sdispls: *const W::Displacement,
        sendtype: raw::Datatype,
        recvbuf: *mut c_void,
        recvcounts: *const W::Count,
        rdispls: *const W::Displacement,
        recvtype: raw::Datatype,
    ) -> Result {
        let send = || Ok(Spread::Table(Table::send(sendcounts, sdispls)));
        let receive = Spread::Table(Table::receive(recvcounts, rdispls));
        // SAFETY: the arrays are the C program's.
        unsafe {
            exchange::<W>(comm, make, (sendbuf, send, sendtype), (recvbuf, receive, recvtype))
        }
    }

    pub unsafe fn alltoallw<W: CountWidth>(
        comm: &Communicator,
        make: Make<'_>,
        sendbuf: *const c_void,
        sendcounts: *const W::Count,
        sdispls: *const W::Displacement,
        sendtypes: *const raw::Datatype,
        recvbuf: *mut c_void,
        recvcounts: *const W::Count,
        rdispls: *const W::Displacement,
        recvtypes: *const raw::Datatype,
    ) -> Result {
        // SAFETY: the arrays are the C program's.
        let (entries, to) = unsafe {
            let entries = Table::<W>::receive(recvcounts, rdispls).read(comm.size())?;
            let to = types(recvtypes, &entries, "recvtypes")?;
            (entries, to)
        };
        let incoming = typed(recvbuf, &entries, &to, "recvbuf")?;
        if in_place(sendbuf) {
            return make(&Collective::Alltoall { send: None, receive: &incoming });
        }
        // SAFETY: as above.
        let (entries, from) = unsafe {
            let entries = Table::<W>::send(sendcounts, sdispls).read(comm.size())?;
            let from = types(sendtypes, &entries, "sendtypes")?;
            (entries, from)
        };
        let outgoing = typed(sendbuf, &entries, &from, "sendbuf")?;
        apart(&outgoing[comm.rank()], &incoming[comm.rank()])?;
        make(&Collective::Alltoall { send: Some(&outgoing), receive: &incoming })
    }

    pub unsafe fn reduce<W: CountWidth>(
        comm: &Communicator,
        make: Make<'_>,
        sendbuf: *const c_void,
        recvbuf: *mut c_void,
        elements: W::Count,
        datatype: raw::Datatype,
        op: raw::Op,
        to: c_int,
    ) -> Result {
        let root = root(to)?;
        let (count, ty) = (count(elements, "count")?, datatype::find(datatype)?);
        let (plan, combine) = (ty.plan()?, Combine::from(op::combiner(op, &ty)?));
        let at_root = comm.rank() == root;
        let send = if at_root && in_place(sendbuf) {
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

    pub unsafe fn allreduce<W: CountWidth>(
        _: &Communicator,
        make: Make<'_>,
        sendbuf: *const c_void,
        recvbuf: *mut c_void,
        elements: W::Count,
        datatype: raw::Datatype,
        op: raw::Op,
    ) -> Result {
        let (count, ty) = (count(elements, "count")?, datatype::find(datatype)?);
        let (plan, combine) = (ty.plan()?, Combine::from(op::combiner(op, &ty)?));
        let receive = part(recvbuf, 0, count, plan, "recvbuf")?;
        let send = if in_place(sendbuf) {
            None
        } else {
            let send = part(sendbuf, 0, count, plan, "sendbuf")?;
            apart(&send, &receive)?;
            Some(send.origin.cast_const())
        };
        let recv = receive.origin;
        make(&Collective::Allreduce { send, recv, plan, count, combine: &combine })
    }
}
