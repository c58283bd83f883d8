//! Collective calls with a count, or a type, for each rank: gatherv, scatterv, allgatherv, alltoallv, alltoallw, and
//! the last two on neighbours. The host is called in the form that the program called.

use super::neighbours::Neighbours;
use super::{End, finish};
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

/// One side with a count for each rank.
type Lists<C, D> = (*const c_void, (*const C, *const D), raw::Datatype);

/// The three forms of `MPI_Gatherv`.
///
/// # Safety
///
/// - The arguments are those of one of these calls.
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
    unless_ours!(find(sendtype).is_some() || find(recvtype).is_some(), next, comm);
    let (size, rank) = size_and_rank(next, comm)?;
    let send = Side::block(sendbuf, sendcount.wide(), sendtype, 1, Job::Pack);
    let receive = if rank == root {
        let lists: Lists<C, D> = (recvbuf, (recvcounts, displs), recvtype);
        // SAFETY: at the root, the arrays have an entry for each rank.
        unsafe { Side::vector(lists.0, lists.1, lists.2, size as usize, Job::Unpack)? }
    } else {
        Side::ignored()
    };
    let (large, in_place) = (is_large::<C>(), sendbuf as usize == abi::IN_PLACE);
    let sides = Sides::new(send, receive, in_place)?.narrowed(large, false)?;
    let (s, r) = (&sides.send, &sides.receive);
    let (from, n, kind, to, into) = (s.address, s.count, s.kind, r.address, r.kind);
    let (counts, places) = (r.counts.as_ptr(), r.displacements.as_ptr());
    let (few, near) = (r.narrow_counts(), r.narrow_displacements());
    let count = if large { 0 } else { c_int::try_from(n).ok()? };
    // SAFETY: the elements are those of the program. Each packed buffer has room for those of its side, and lives with
    // the arrays until the call is complete, or its request is freed.
    unsafe {
        if !sides.fill() {
            return None;
        }
        let code = call!(
            next,
            end,
            large,
            [MPI_Gatherv MPI_Gatherv_c MPI_Igatherv MPI_Igatherv_c MPI_Gatherv_init MPI_Gatherv_init_c],
            (from, count, kind, to, few, near, into, root, comm),
            (from, n, kind, to, counts, places, into, root, comm)
        );
        finish(end, code, sides)
    }
}

forms! {
    /// `MPI_Gatherv`.
    gatherv, igatherv, gatherv_init<C, D, N>: gather(sendbuf: *const c_void, sendcount: N, sendtype: raw::Datatype,
        recvbuf: *mut c_void, recvcounts: *const C, displs: *const D, recvtype: raw::Datatype, root: c_int,
            comm: raw::Comm)
}

/// The three forms of `MPI_Scatterv`.
///
/// # Safety
///
/// - The arguments are those of one of these calls.
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
    unless_ours!(find(sendtype).is_some() || find(recvtype).is_some(), next, comm);
    let (size, rank) = size_and_rank(next, comm)?;
    let send = if rank == root {
        // SAFETY: at the root, the arrays have an entry for each rank.
        unsafe { Side::vector(sendbuf, (sendcounts, displs), sendtype, size as usize, Job::Pack)? }
    } else {
        Side::ignored()
    };
    let receive = Side::block(recvbuf, recvcount.wide(), recvtype, 1, Job::Unpack);
    let large = is_large::<C>();
    let sides = Sides::new(send, receive, false)?.narrowed(large, false)?;
    let (s, r) = (&sides.send, &sides.receive);
    let (from, kind, to, n, into) = (s.address, s.kind, r.address, r.count, r.kind);
    let (counts, places) = (s.counts.as_ptr(), s.displacements.as_ptr());
    let (few, near) = (s.narrow_counts(), s.narrow_displacements());
    let count = if large { 0 } else { c_int::try_from(n).ok()? };
    // SAFETY: the elements are those of the program. Each packed buffer has room for those of its side, and lives with
    // the arrays until the call is complete, or its request is freed.
    unsafe {
        if !sides.fill() {
            return None;
        }
        let code = call!(
            next,
            end,
            large,
            [MPI_Scatterv MPI_Scatterv_c MPI_Iscatterv MPI_Iscatterv_c MPI_Scatterv_init MPI_Scatterv_init_c],
            (from, few, near, kind, to, count, into, root, comm),
            (from, counts, places, kind, to, n, into, root, comm)
        );
        finish(end, code, sides)
    }
}

forms! {
    /// `MPI_Scatterv`.
    scatterv, iscatterv, scatterv_init<C, D, N>: scatter(sendbuf: *const c_void, sendcounts: *const C, displs: *const D,
        sendtype: raw::Datatype, recvbuf: *mut c_void, recvcount: N, recvtype: raw::Datatype, root: c_int,
            comm: raw::Comm)
}

/// The three forms of `MPI_Allgatherv`.
///
/// # Safety
///
/// - The arguments are those of one of these calls.
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
    unless_ours!(find(sendtype).is_some() || find(recvtype).is_some(), next, comm);
    let (size, _) = size_and_rank(next, comm)?;
    let send = Side::block(sendbuf, sendcount.wide(), sendtype, 1, Job::Pack);
    // SAFETY: the arrays have an entry for each rank.
    let receive = unsafe {
        Side::vector(recvbuf, (recvcounts, displs), recvtype, size as usize, Job::Unpack)?
    };
    let (large, in_place) = (is_large::<C>(), sendbuf as usize == abi::IN_PLACE);
    let sides = Sides::new(send, receive, in_place)?.narrowed(large, false)?;
    let (s, r) = (&sides.send, &sides.receive);
    let (from, n, kind, to, into) = (s.address, s.count, s.kind, r.address, r.kind);
    let (counts, places) = (r.counts.as_ptr(), r.displacements.as_ptr());
    let (few, near) = (r.narrow_counts(), r.narrow_displacements());
    let count = if large { 0 } else { c_int::try_from(n).ok()? };
    // SAFETY: the elements are those of the program. Each packed buffer has room for those of its side, and lives with
    // the arrays until the call is complete, or its request is freed.
    unsafe {
        if !sides.fill() {
            return None;
        }
        let code = call!(
            next,
            end,
            large,
            [MPI_Allgatherv MPI_Allgatherv_c MPI_Iallgatherv MPI_Iallgatherv_c
                MPI_Allgatherv_init MPI_Allgatherv_init_c],
            (from, count, kind, to, few, near, into, comm),
            (from, n, kind, to, counts, places, into, comm)
        );
        finish(end, code, sides)
    }
}

forms! {
    /// `MPI_Allgatherv`.
    allgatherv, iallgatherv, allgatherv_init<C, D, N>: gather_all(sendbuf: *const c_void, sendcount: N,
        sendtype: raw::Datatype, recvbuf: *mut c_void, recvcounts: *const C, displs: *const D,
        recvtype: raw::Datatype, comm: raw::Comm)
}

/// Calls the host for a call with lists on both sides. `$places` says how the form without large counts takes
/// displacements.
macro_rules! both {
    ($next:ident, $end:ident, $sides:expr, $comm:ident, $count:ident, $kind:ident, $places:ident, $functions:tt) => {{
        let large = is_large::<$count>();
        let sides = $sides.narrowed(large, both!(@ is $places))?;
        let (s, r) = (&sides.send, &sides.receive);
        let (st, rt) = (both!(@ $kind s), both!(@ $kind r));
        let (from, to) = (s.address, r.address);
        let (sc, rc) = (s.narrow_counts(), r.narrow_counts());
        let (sd, rd) = (both!(@ $places s), both!(@ $places r));
        let (wide_sc, wide_rc) = (s.counts.as_ptr(), r.counts.as_ptr());
        let (wide_sd, wide_rd) = (s.displacements.as_ptr(), r.displacements.as_ptr());
        // SAFETY: the elements are those of the program. Each packed buffer has room for those of its side, and lives
        // with the arrays until the call is complete, or its request is freed.
        unsafe {
            if !sides.fill() {
                return None;
            }
            let code = call!(
                $next,
                $end,
                large,
                $functions,
                (from, sc, sd, st, to, rc, rd, rt, $comm),
                (from, wide_sc, wide_sd, st, to, wide_rc, wide_rd, rt, $comm)
            );
            finish($end, code, sides)
        }
    }};
    (@ one $side:ident) => { $side.kind };
    (@ many $side:ident) => { $side.kinds.as_ptr() };
    (@ is ints) => { false };
    (@ is addresses) => { true };
    (@ ints $side:ident) => { $side.narrow_displacements() };
    (@ addresses $side:ident) => { $side.displacements.as_ptr() };
}

/// The three forms of `MPI_Alltoallv`.
///
/// # Safety
///
/// - The arguments are those of one of these calls.
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
    unless_ours!(find(sendtype).is_some() || find(recvtype).is_some(), next, comm);
    let size = size_and_rank(next, comm)?.0 as usize;
    let in_place = sendbuf as usize == abi::IN_PLACE;
    // SAFETY: the arrays have an entry for each rank.
    let sides = unsafe {
        Sides::new(
            match in_place {
                true => Side::in_place(),
                false => Side::vector(sendbuf, (sendcounts, sdispls), sendtype, size, Job::Pack)?,
            },
            Side::vector(recvbuf, (recvcounts, rdispls), recvtype, size, Job::Unpack)?,
            in_place,
        )?
    };
    both!(next, end, sides, comm, C, one, ints,
        [MPI_Alltoallv MPI_Alltoallv_c MPI_Ialltoallv MPI_Ialltoallv_c MPI_Alltoallv_init MPI_Alltoallv_init_c])
}

forms! {
    /// `MPI_Alltoallv`.
    alltoallv, ialltoallv, alltoallv_init<C, D>: exchange(sendbuf: *const c_void, sendcounts: *const C,
        sdispls: *const D,
        sendtype: raw::Datatype, recvbuf: *mut c_void, recvcounts: *const C, rdispls: *const D, recvtype: raw::Datatype,
        comm: raw::Comm)
}

/// The three forms of `MPI_Alltoallw`.
///
/// # Safety
///
/// - The arguments are those of one of these calls.
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
    unless_ours!(true, next, comm);
    let size = size_and_rank(next, comm)?.0 as usize;
    let in_place = sendbuf as usize == abi::IN_PLACE;
    let (all, host): ((usize, &dyn Fn(usize) -> bool), _) = ((size, &|_| true), (next, comm));
    // SAFETY: the arrays have an entry for each rank. In place, those of the send side do not matter.
    let sides = unsafe {
        if !any(recvtypes, size) && (in_place || !any(sendtypes, size)) {
            return None;
        }
        let send = match in_place {
            true => Ok(Side::in_place()),
            false => Side::wide(host, sendbuf, (sendcounts, sdispls), sendtypes, all, Job::Pack),
        };
        let lists = (recvcounts, rdispls);
        match (send, Side::wide(host, recvbuf, lists, recvtypes, all, Job::Unpack)) {
            (Ok(send), Ok(receive)) => Sides::new(send, receive, in_place)?,
            (Err(end), _) | (_, Err(end)) => return end,
        }
    };
    both!(next, end, sides, comm, C, many, ints,
        [MPI_Alltoallw MPI_Alltoallw_c MPI_Ialltoallw MPI_Ialltoallw_c MPI_Alltoallw_init MPI_Alltoallw_init_c])
}

forms! {
    /// `MPI_Alltoallw`.
    alltoallw, ialltoallw, alltoallw_init<C, D>: exchange_types(sendbuf: *const c_void, sendcounts: *const C,
        sdispls: *const D, sendtypes: *const raw::Datatype, recvbuf: *mut c_void, recvcounts: *const C,
        rdispls: *const D, recvtypes: *const raw::Datatype, comm: raw::Comm)
}

/// The three forms of `MPI_Neighbor_alltoallv`.
///
/// # Safety
///
/// - The arguments are those of one of these calls.
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
    unless_ours!(find(sendtype).is_some() || find(recvtype).is_some(), next, comm);
    let Neighbours { sources, targets } = Neighbours::of(next, comm)?;
    // An edge of a grid has no neighbour, so the host neither reads nor writes its block.
    // SAFETY: the arrays have an entry for each neighbour.
    let sides = unsafe {
        Sides::new(
            Side::vector(sendbuf, (sendcounts, sdispls), sendtype, targets.len(), Job::Pack)?
                .without(|neighbour| !targets[neighbour]),
            Side::vector(recvbuf, (recvcounts, rdispls), recvtype, sources.len(), Job::Unpack)?
                .without(|neighbour| !sources[neighbour]),
            false,
        )?
    };
    both!(next, end, sides, comm, C, one, ints,
        [MPI_Neighbor_alltoallv MPI_Neighbor_alltoallv_c MPI_Ineighbor_alltoallv MPI_Ineighbor_alltoallv_c
            MPI_Neighbor_alltoallv_init MPI_Neighbor_alltoallv_init_c])
}

forms! {
    /// `MPI_Neighbor_alltoallv`.
    neighbor_alltoallv, ineighbor_alltoallv, neighbor_alltoallv_init<C, D>: neighbours(sendbuf: *const c_void,
        sendcounts: *const C,
        sdispls: *const D, sendtype: raw::Datatype, recvbuf: *mut c_void, recvcounts: *const C, rdispls: *const D,
        recvtype: raw::Datatype, comm: raw::Comm)
}

/// The three forms of `MPI_Neighbor_alltoallw`.
///
/// # Safety
///
/// - The arguments are those of one of these calls.
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
    unless_ours!(true, next, comm);
    let Neighbours { sources, targets } = Neighbours::of(next, comm)?;
    let from: (usize, &dyn Fn(usize) -> bool) = (sources.len(), &|at| sources[at]);
    let to: (usize, &dyn Fn(usize) -> bool) = (targets.len(), &|at| targets[at]);
    let host = (next, comm);
    // SAFETY: the arrays have an entry for each neighbour.
    let sides = unsafe {
        if !any(recvtypes, sources.len()) && !any(sendtypes, targets.len()) {
            return None;
        }
        let send = Side::wide(host, sendbuf, (sendcounts, sdispls), sendtypes, to, Job::Pack);
        let lists = (recvcounts, rdispls);
        match (send, Side::wide(host, recvbuf, lists, recvtypes, from, Job::Unpack)) {
            (Ok(send), Ok(receive)) => Sides::new(send, receive, false)?,
            (Err(end), _) | (_, Err(end)) => return end,
        }
    };
    both!(next, end, sides, comm, C, many, addresses,
        [MPI_Neighbor_alltoallw MPI_Neighbor_alltoallw_c MPI_Ineighbor_alltoallw MPI_Ineighbor_alltoallw_c
            MPI_Neighbor_alltoallw_init MPI_Neighbor_alltoallw_init_c])
}

forms! {
    /// `MPI_Neighbor_alltoallw`.
    neighbor_alltoallw, ineighbor_alltoallw, neighbor_alltoallw_init<C, D>: neighbours_types(sendbuf: *const c_void,
        sendcounts: *const C,
        sdispls: *const D, sendtypes: *const raw::Datatype, recvbuf: *mut c_void, recvcounts: *const C,
        rdispls: *const D, recvtypes: *const raw::Datatype, comm: raw::Comm)
}
