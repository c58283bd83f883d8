//! Collective calls with a count, or a type, for each rank: gatherv, scatterv, allgatherv, alltoallv, alltoallw, and
//! the last two on neighbours. The host is called in the form that the program called.

use super::neighbours::Neighbours;
use super::{End, finish};
use crate::communicator::is_marked;
use crate::host::Next;
use crate::side::{Side, Sides, is_large, size_and_rank};
use crate::types::choice::Job;
use crate::types::find;
use std::ffi::{c_int, c_void};
use typepack_capi_datatype::count_width::Number;
use typepack_capi_datatype::{abi, raw};

/// Returns whether any of the types of an array is ours.
///
/// # Safety
///
/// - The array is null or has `len` entries.
unsafe fn any(types: *const raw::Datatype, len: usize) -> bool {
    // SAFETY: `any` has the same conditions (`# Safety`).
    !types.is_null()
        && unsafe { std::slice::from_raw_parts(types, len) }.iter().any(|&ty| find(ty).is_some())
}

/// Fills what a call reads before it starts: the send side, and a receive side from which the call sends. Returns
/// whether that was done.
///
/// # Safety
///
/// - The program lets the call read the elements.
#[must_use]
unsafe fn fill(sides: &Sides, sendbuf: *const c_void) -> bool {
    // SAFETY: the program lets the call read the elements (`# Safety`).
    unsafe { sides.send.fill() && (sendbuf as usize != abi::IN_PLACE || sides.receive.fill()) }
}

/// One side with a count for each rank.
type Lists<C, D> = (*const c_void, (*const C, *const D), raw::Datatype);

/// The types and the functions of a call, blocking and nonblocking. `$more` are the arguments after the two sides.
macro_rules! forms {
    ($(#[$doc:meta])* $name:ident, $iname:ident<$($generic:ident),*>: $work:ident
        ($($argument:ident: $kind:ty),*)) => {
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// - The arguments are those of a call of this function.
        #[allow(clippy::too_many_arguments)]
        pub unsafe fn $name<$($generic: Number),*>(next: &'static Next, $($argument: $kind),*) -> Option<c_int> {
            // SAFETY: the program's arguments of `$name`, unchanged.
            unsafe { $work(next, $($argument,)* End::Now) }
        }

        /// The nonblocking form.
        ///
        /// # Safety
        ///
        /// - The arguments are those of a call of this function.
        #[allow(clippy::too_many_arguments)]
        pub unsafe fn $iname<$($generic: Number),*>(
            next: &'static Next,
            $($argument: $kind,)*
            request: *mut raw::Request,
        ) -> Option<c_int> {
            if request.is_null() {
                return None;
            }
            // SAFETY: the program's arguments of `$iname`, unchanged.
            unsafe { $work(next, $($argument,)* End::Later(request)) }
        }
    };
}

/// `MPI_Gatherv` and `MPI_Igatherv`.
///
/// # Safety
///
/// - The arguments are those of `MPI_Gatherv` or `MPI_Igatherv`.
#[allow(clippy::too_many_arguments)]
unsafe fn gather<C: Number, D: Number, N: Number>(
    next: &'static Next,
    sendbuf: *const c_void,
    sendcount: N,
    sendtype: raw::Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const C,
    displs: *const D,
    recvtype: raw::Datatype,
    root: c_int,
    comm: raw::Comm,
    end: End,
) -> Option<c_int> {
    if (find(sendtype).is_none() && find(recvtype).is_none()) || !is_marked(next, comm) {
        return None;
    }
    let (size, rank) = size_and_rank(next, comm)?;
    let send = Side::block(sendbuf, sendcount.wide(), sendtype, 1, Job::Pack);
    let receive = if rank == root {
        let lists: Lists<C, D> = (recvbuf, (recvcounts, displs), recvtype);
        // SAFETY: at the root, the arrays have an entry for each rank.
        unsafe { Side::vector(lists.0, lists.1, lists.2, size as usize, Job::Unpack)? }
    } else {
        Side::ignored()
    };
    let sides = Sides::new(send, receive)?.narrowed(is_large::<C>())?;
    let (s, r) = (&sides.send, &sides.receive);
    let (from, n, kind, to, into) = (s.address, s.count, s.kind, r.address, r.kind);
    // SAFETY: the elements are those of the program; each packed buffer has the bytes of its side, and lives with the
    // arrays until the call is complete.
    unsafe {
        if !fill(&sides, sendbuf) {
            return None;
        }
        let code = if is_large::<C>() {
            let (counts, places) = (r.counts.as_ptr(), r.displacements.as_ptr());
            match end {
                End::Now => next.MPI_Gatherv_c(from, n, kind, to, counts, places, into, root, comm),
                End::Later(q) => {
                    next.MPI_Igatherv_c(from, n, kind, to, counts, places, into, root, comm, q)
                }
            }
        } else {
            let (counts, places) = (r.narrow_counts(), r.narrow_displacements());
            let n = c_int::try_from(n).ok()?;
            match end {
                End::Now => next.MPI_Gatherv(from, n, kind, to, counts, places, into, root, comm),
                End::Later(q) => {
                    next.MPI_Igatherv(from, n, kind, to, counts, places, into, root, comm, q)
                }
            }
        };
        finish(next, end, code, sides)
    }
}

forms! {
    /// `MPI_Gatherv`.
    gatherv, igatherv<C, D, N>: gather(sendbuf: *const c_void, sendcount: N, sendtype: raw::Datatype,
        recvbuf: *mut c_void, recvcounts: *const C, displs: *const D, recvtype: raw::Datatype, root: c_int,
            comm: raw::Comm)
}

/// `MPI_Scatterv` and `MPI_Iscatterv`.
///
/// # Safety
///
/// - The arguments are those of `MPI_Scatterv` or `MPI_Iscatterv`.
#[allow(clippy::too_many_arguments)]
unsafe fn scatter<C: Number, D: Number, N: Number>(
    next: &'static Next,
    sendbuf: *const c_void,
    sendcounts: *const C,
    displs: *const D,
    sendtype: raw::Datatype,
    recvbuf: *mut c_void,
    recvcount: N,
    recvtype: raw::Datatype,
    root: c_int,
    comm: raw::Comm,
    end: End,
) -> Option<c_int> {
    if (find(sendtype).is_none() && find(recvtype).is_none()) || !is_marked(next, comm) {
        return None;
    }
    let (size, rank) = size_and_rank(next, comm)?;
    let send = if rank == root {
        // SAFETY: at the root, the arrays have an entry for each rank.
        unsafe { Side::vector(sendbuf, (sendcounts, displs), sendtype, size as usize, Job::Pack)? }
    } else {
        Side::ignored()
    };
    let receive = Side::block(recvbuf, recvcount.wide(), recvtype, 1, Job::Unpack);
    let sides = Sides::new(send, receive)?.narrowed(is_large::<C>())?;
    let (s, r) = (&sides.send, &sides.receive);
    let (from, kind, to, n, into) = (s.address, s.kind, r.address, r.count, r.kind);
    // SAFETY: as in `gather`.
    unsafe {
        if !sides.send.fill() {
            return None;
        }
        let code = if is_large::<C>() {
            let (counts, places) = (s.counts.as_ptr(), s.displacements.as_ptr());
            match end {
                End::Now => {
                    next.MPI_Scatterv_c(from, counts, places, kind, to, n, into, root, comm)
                }
                End::Later(q) => {
                    next.MPI_Iscatterv_c(from, counts, places, kind, to, n, into, root, comm, q)
                }
            }
        } else {
            let (counts, places) = (s.narrow_counts(), s.narrow_displacements());
            let n = c_int::try_from(n).ok()?;
            match end {
                End::Now => next.MPI_Scatterv(from, counts, places, kind, to, n, into, root, comm),
                End::Later(q) => {
                    next.MPI_Iscatterv(from, counts, places, kind, to, n, into, root, comm, q)
                }
            }
        };
        finish(next, end, code, sides)
    }
}

forms! {
    /// `MPI_Scatterv`.
    scatterv, iscatterv<C, D, N>: scatter(sendbuf: *const c_void, sendcounts: *const C, displs: *const D,
        sendtype: raw::Datatype, recvbuf: *mut c_void, recvcount: N, recvtype: raw::Datatype, root: c_int,
            comm: raw::Comm)
}

/// `MPI_Allgatherv` and `MPI_Iallgatherv`.
///
/// # Safety
///
/// - The arguments are those of `MPI_Allgatherv` or `MPI_Iallgatherv`.
#[allow(clippy::too_many_arguments)]
unsafe fn gather_all<C: Number, D: Number, N: Number>(
    next: &'static Next,
    sendbuf: *const c_void,
    sendcount: N,
    sendtype: raw::Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const C,
    displs: *const D,
    recvtype: raw::Datatype,
    comm: raw::Comm,
    end: End,
) -> Option<c_int> {
    if (find(sendtype).is_none() && find(recvtype).is_none()) || !is_marked(next, comm) {
        return None;
    }
    let (size, _) = size_and_rank(next, comm)?;
    let send = Side::block(sendbuf, sendcount.wide(), sendtype, 1, Job::Pack);
    // SAFETY: the arrays have an entry for each rank.
    let receive = unsafe {
        Side::vector(recvbuf, (recvcounts, displs), recvtype, size as usize, Job::Unpack)?
    };
    let sides = Sides::new(send, receive)?.narrowed(is_large::<C>())?;
    let (s, r) = (&sides.send, &sides.receive);
    let (from, n, kind, to, into) = (s.address, s.count, s.kind, r.address, r.kind);
    // SAFETY: the elements are those of the program; each packed buffer has the bytes of its side, and lives with the
    // arrays until the call is complete.
    unsafe {
        if !fill(&sides, sendbuf) {
            return None;
        }
        let code = if is_large::<C>() {
            let (counts, places) = (r.counts.as_ptr(), r.displacements.as_ptr());
            match end {
                End::Now => next.MPI_Allgatherv_c(from, n, kind, to, counts, places, into, comm),
                End::Later(q) => {
                    next.MPI_Iallgatherv_c(from, n, kind, to, counts, places, into, comm, q)
                }
            }
        } else {
            let (counts, places) = (r.narrow_counts(), r.narrow_displacements());
            let n = c_int::try_from(n).ok()?;
            match end {
                End::Now => next.MPI_Allgatherv(from, n, kind, to, counts, places, into, comm),
                End::Later(q) => {
                    next.MPI_Iallgatherv(from, n, kind, to, counts, places, into, comm, q)
                }
            }
        };
        finish(next, end, code, sides)
    }
}

forms! {
    /// `MPI_Allgatherv`.
    allgatherv, iallgatherv<C, D, N>: gather_all(sendbuf: *const c_void, sendcount: N, sendtype: raw::Datatype,
        recvbuf: *mut c_void, recvcounts: *const C, displs: *const D, recvtype: raw::Datatype, comm: raw::Comm)
}

/// Calls the host for a call with lists on both sides. `$places` says how the form without large counts takes
/// displacements.
macro_rules! both {
    ($next:ident, $end:ident, $sides:expr, $sendbuf:ident, $comm:ident, $count:ident, $kind:ident, $places:ident,
     $now:ident $now_c:ident $later:ident $later_c:ident) => {{
        let sides = $sides.narrowed(is_large::<$count>())?;
        let (s, r) = (&sides.send, &sides.receive);
        let (st, rt) = (both!(@ $kind s), both!(@ $kind r));
        let (from, to) = (s.address, r.address);
        // SAFETY: the elements are those of the program; each packed buffer has the bytes of its side, and lives with
        // the arrays until the call is complete.
        unsafe {
            if !fill(&sides, $sendbuf) {
                return None;
            }
            let code = if is_large::<$count>() {
                let (sc, sd) = (s.counts.as_ptr(), s.displacements.as_ptr());
                let (rc, rd) = (r.counts.as_ptr(), r.displacements.as_ptr());
                match $end {
                    End::Now => $next.$now_c(from, sc, sd, st, to, rc, rd, rt, $comm),
                    End::Later(q) => $next.$later_c(from, sc, sd, st, to, rc, rd, rt, $comm, q),
                }
            } else {
                let (sc, sd) = (s.narrow_counts(), both!(@ $places s));
                let (rc, rd) = (r.narrow_counts(), both!(@ $places r));
                match $end {
                    End::Now => $next.$now(from, sc, sd, st, to, rc, rd, rt, $comm),
                    End::Later(q) => $next.$later(from, sc, sd, st, to, rc, rd, rt, $comm, q),
                }
            };
            finish($next, $end, code, sides)
        }
    }};
    (@ one $side:ident) => { $side.kind };
    (@ many $side:ident) => { $side.kinds.as_ptr() };
    (@ ints $side:ident) => { $side.narrow_displacements() };
    (@ addresses $side:ident) => { $side.displacements.as_ptr() };
}

/// `MPI_Alltoallv` and `MPI_Ialltoallv`.
///
/// # Safety
///
/// - The arguments are those of `MPI_Alltoallv` or `MPI_Ialltoallv`.
#[allow(clippy::too_many_arguments)]
unsafe fn exchange<C: Number, D: Number>(
    next: &'static Next,
    sendbuf: *const c_void,
    sendcounts: *const C,
    sdispls: *const D,
    sendtype: raw::Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const C,
    rdispls: *const D,
    recvtype: raw::Datatype,
    comm: raw::Comm,
    end: End,
) -> Option<c_int> {
    if (find(sendtype).is_none() && find(recvtype).is_none()) || !is_marked(next, comm) {
        return None;
    }
    let size = size_and_rank(next, comm)?.0 as usize;
    // SAFETY: the arrays have an entry for each rank.
    let sides = unsafe {
        Sides::new(
            match sendbuf as usize == abi::IN_PLACE {
                true => Side::in_place(),
                false => Side::vector(sendbuf, (sendcounts, sdispls), sendtype, size, Job::Pack)?,
            },
            Side::vector(recvbuf, (recvcounts, rdispls), recvtype, size, Job::Unpack)?,
        )?
    };
    both!(next, end, sides, sendbuf, comm, C, one, ints,
        MPI_Alltoallv MPI_Alltoallv_c MPI_Ialltoallv MPI_Ialltoallv_c)
}

forms! {
    /// `MPI_Alltoallv`.
    alltoallv, ialltoallv<C, D>: exchange(sendbuf: *const c_void, sendcounts: *const C, sdispls: *const D,
        sendtype: raw::Datatype, recvbuf: *mut c_void, recvcounts: *const C, rdispls: *const D, recvtype: raw::Datatype,
        comm: raw::Comm)
}

/// `MPI_Alltoallw` and `MPI_Ialltoallw`.
///
/// # Safety
///
/// - The arguments are those of `MPI_Alltoallw` or `MPI_Ialltoallw`.
#[allow(clippy::too_many_arguments)]
unsafe fn exchange_types<C: Number, D: Number>(
    next: &'static Next,
    sendbuf: *const c_void,
    sendcounts: *const C,
    sdispls: *const D,
    sendtypes: *const raw::Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const C,
    rdispls: *const D,
    recvtypes: *const raw::Datatype,
    comm: raw::Comm,
    end: End,
) -> Option<c_int> {
    if !is_marked(next, comm) {
        return None;
    }
    let size = size_and_rank(next, comm)?.0 as usize;
    let in_place = sendbuf as usize == abi::IN_PLACE;
    let all: (usize, &dyn Fn(usize) -> bool) = (size, &|_| true);
    // SAFETY: the arrays have an entry for each rank. In place, those of the send side do not matter.
    let sides = unsafe {
        if !any(recvtypes, size) && (in_place || !any(sendtypes, size)) {
            return None;
        }
        Sides::new(
            match in_place {
                true => Side::in_place(),
                false => {
                    Side::wide(next, sendbuf, (sendcounts, sdispls), sendtypes, all, Job::Pack)?
                }
            },
            Side::wide(next, recvbuf, (recvcounts, rdispls), recvtypes, all, Job::Unpack)?,
        )?
    };
    both!(next, end, sides, sendbuf, comm, C, many, ints,
        MPI_Alltoallw MPI_Alltoallw_c MPI_Ialltoallw MPI_Ialltoallw_c)
}

forms! {
    /// `MPI_Alltoallw`.
    alltoallw, ialltoallw<C, D>: exchange_types(sendbuf: *const c_void, sendcounts: *const C, sdispls: *const D,
        sendtypes: *const raw::Datatype, recvbuf: *mut c_void, recvcounts: *const C, rdispls: *const D,
        recvtypes: *const raw::Datatype, comm: raw::Comm)
}

/// `MPI_Neighbor_alltoallv` and `MPI_Ineighbor_alltoallv`.
///
/// # Safety
///
/// - The arguments are those of `MPI_Neighbor_alltoallv` or `MPI_Ineighbor_alltoallv`.
#[allow(clippy::too_many_arguments)]
unsafe fn neighbours<C: Number, D: Number>(
    next: &'static Next,
    sendbuf: *const c_void,
    sendcounts: *const C,
    sdispls: *const D,
    sendtype: raw::Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const C,
    rdispls: *const D,
    recvtype: raw::Datatype,
    comm: raw::Comm,
    end: End,
) -> Option<c_int> {
    if (find(sendtype).is_none() && find(recvtype).is_none()) || !is_marked(next, comm) {
        return None;
    }
    let Neighbours { sources, targets } = Neighbours::of(next, comm)?;
    // An edge of a grid has no neighbour, so the host neither reads nor writes its block.
    // SAFETY: the arrays have an entry for each neighbour.
    let sides = unsafe {
        Sides::new(
            Side::vector(sendbuf, (sendcounts, sdispls), sendtype, targets.len(), Job::Pack)?
                .without(|neighbour| !targets[neighbour]),
            Side::vector(recvbuf, (recvcounts, rdispls), recvtype, sources.len(), Job::Unpack)?
                .without(|neighbour| !sources[neighbour]),
        )?
    };
    both!(next, end, sides, sendbuf, comm, C, one, ints,
        MPI_Neighbor_alltoallv MPI_Neighbor_alltoallv_c MPI_Ineighbor_alltoallv MPI_Ineighbor_alltoallv_c)
}

forms! {
    /// `MPI_Neighbor_alltoallv`.
    neighbor_alltoallv, ineighbor_alltoallv<C, D>: neighbours(sendbuf: *const c_void, sendcounts: *const C,
        sdispls: *const D, sendtype: raw::Datatype, recvbuf: *mut c_void, recvcounts: *const C, rdispls: *const D,
        recvtype: raw::Datatype, comm: raw::Comm)
}

/// `MPI_Neighbor_alltoallw` and `MPI_Ineighbor_alltoallw`.
///
/// # Safety
///
/// - The arguments are those of `MPI_Neighbor_alltoallw` or `MPI_Ineighbor_alltoallw`.
#[allow(clippy::too_many_arguments)]
unsafe fn neighbours_types<C: Number, D: Number>(
    next: &'static Next,
    sendbuf: *const c_void,
    sendcounts: *const C,
    sdispls: *const D,
    sendtypes: *const raw::Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const C,
    rdispls: *const D,
    recvtypes: *const raw::Datatype,
    comm: raw::Comm,
    end: End,
) -> Option<c_int> {
    if !is_marked(next, comm) {
        return None;
    }
    let Neighbours { sources, targets } = Neighbours::of(next, comm)?;
    let from: (usize, &dyn Fn(usize) -> bool) = (sources.len(), &|at| sources[at]);
    let to: (usize, &dyn Fn(usize) -> bool) = (targets.len(), &|at| targets[at]);
    // SAFETY: the arrays have an entry for each neighbour.
    let sides = unsafe {
        if !any(recvtypes, sources.len()) && !any(sendtypes, targets.len()) {
            return None;
        }
        Sides::new(
            Side::wide(next, sendbuf, (sendcounts, sdispls), sendtypes, to, Job::Pack)?,
            Side::wide(next, recvbuf, (recvcounts, rdispls), recvtypes, from, Job::Unpack)?,
        )?
    };
    both!(next, end, sides, sendbuf, comm, C, many, addresses,
        MPI_Neighbor_alltoallw MPI_Neighbor_alltoallw_c MPI_Ineighbor_alltoallw MPI_Ineighbor_alltoallw_c)
}

forms! {
    /// `MPI_Neighbor_alltoallw`.
    neighbor_alltoallw, ineighbor_alltoallw<C, D>: neighbours_types(sendbuf: *const c_void, sendcounts: *const C,
        sdispls: *const D, sendtypes: *const raw::Datatype, recvbuf: *mut c_void, recvcounts: *const C,
        rdispls: *const D, recvtypes: *const raw::Datatype, comm: raw::Comm)
}
