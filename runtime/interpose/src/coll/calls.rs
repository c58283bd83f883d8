//! Collective calls with one buffer, one count and one type on each side: broadcast, gather, scatter, allgather,
//! alltoall.

use super::{End, finish};
use crate::host::Next;
use crate::side::{Side, Sides, is_large, size_and_rank};
use crate::types::choice::Job;
use crate::types::find;
use std::ffi::{c_int, c_void};
use typepack_capi_datatype::count_width::Number;
use typepack_capi_datatype::{abi, raw};

/// The buffer, the count and the type of one side.
type Plain = (*const c_void, i64, raw::Datatype);

/// What a side is on this rank.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The arguments do not matter.
    Nothing,
    /// One block of elements.
    One,
    /// A block for each rank.
    All,
}

fn side(plain: Plain, role: Role, size: c_int, job: Job) -> Side {
    match role {
        Role::Nothing => Side::ignored(),
        Role::One => Side::block(plain.0, plain.1, plain.2, 1, job),
        Role::All => Side::block(plain.0, plain.1, plain.2, size, job),
    }
}

/// Makes both sides of a call on a communicator whose ranks all take part. Returns `None` if the host does the call.
///
/// # Safety
///
/// - The arguments are those of a collective call.
unsafe fn prepare(
    next: &Next,
    comm: raw::Comm,
    send: (Plain, fn(bool) -> Role),
    receive: (Plain, fn(bool) -> Role),
    root: c_int,
) -> Option<Sides> {
    let (size, rank) = size_and_rank(next, comm)?;
    let is_root = rank == root;
    let (from, to) = (send.1(is_root), receive.1(is_root));
    let sends = side(send.0, from, size, Job::Pack);
    let receives = side(receive.0, to, size, Job::Unpack);
    // With `MPI_IN_PLACE`, a part of the receive buffer is sent, or stays as it is.
    Sides::new(sends, receives, from != Role::Nothing && send.0.0 as usize == abi::IN_PLACE)
}

/// Returns counts as C integers; `None` if one does not fit, unless the form with large counts is called.
fn narrowed<const N: usize>(large: bool, counts: [i64; N]) -> Option<[c_int; N]> {
    let mut narrow = [0; N];
    if !large {
        for (to, count) in narrow.iter_mut().zip(counts) {
            *to = c_int::try_from(count).ok()?;
        }
    }
    Some(narrow)
}

/// The three forms of `MPI_Bcast`.
///
/// # Safety
///
/// - The arguments are those of one of these calls.
unsafe fn broadcast<N: Number>(
    next: &'static Next,
    buffer: *mut c_void,
    count: N,
    datatype: raw::Datatype,
    root: c_int,
    comm: raw::Comm,
    end: End,
) -> Option<c_int> {
    unless_ours!(find(datatype).is_some(), next, comm);
    let (_, rank) = size_and_rank(next, comm)?;
    let side = Side::block(buffer, count.wide(), datatype, 1, Job::Unpack);
    let (address, n, kind) = (side.address, side.count, side.kind);
    let sides = match rank == root {
        true => Sides::new(side, Side::ignored(), false)?,
        false => Sides::new(Side::ignored(), side, false)?,
    };
    let large = is_large::<N>();
    let [count] = narrowed(large, [n])?;
    // SAFETY: the root's elements are readable. The packed buffer has room for them, and lives until the call is
    // complete, or its request is freed.
    unsafe {
        if !sides.fill() {
            return None;
        }
        let code = call!(
            next,
            end,
            large,
            [MPI_Bcast MPI_Bcast_c MPI_Ibcast MPI_Ibcast_c MPI_Bcast_init MPI_Bcast_init_c],
            (address, count, kind, root, comm),
            (address, n, kind, root, comm)
        );
        finish(end, code, sides)
    }
}

forms! {
    /// `MPI_Bcast`.
    bcast, ibcast, bcast_init<N>: broadcast(buffer: *mut c_void, count: N, datatype: raw::Datatype, root: c_int,
        comm: raw::Comm)
}

macro_rules! calls {
    ($($(#[$doc:meta])* $work:ident: $name:ident, $iname:ident, $init:ident; $send:expr, $receive:expr;
        ($($root:ident)?) $functions:tt;)*) => {
        $(
            /// All forms of the call.
            ///
            /// # Safety
            ///
            /// - The arguments are those of one of these calls.
            #[allow(clippy::too_many_arguments)]
            unsafe fn $work<N: Number>(
                next: &'static Next,
                sendbuf: *const c_void,
                sendcount: N,
                sendtype: raw::Datatype,
                recvbuf: *mut c_void,
                recvcount: N,
                recvtype: raw::Datatype,
                $($root: c_int,)?
                comm: raw::Comm,
                end: End,
            ) -> Option<c_int> {
                let (at_root, large) = ([0, $($root)?], is_large::<N>());
                let send = (sendbuf, sendcount.wide(), sendtype);
                let receive = (recvbuf.cast_const(), recvcount.wide(), recvtype);
                unless_ours!(find(sendtype).is_some() || find(recvtype).is_some(), next, comm);
                // SAFETY: the program's arguments of the call, unchanged.
                let sides = unsafe { prepare(next, comm, (send, $send), (receive, $receive),
                    at_root[at_root.len() - 1])? };
                let (from, n, kind) = (sides.send.address.cast_const(), sides.send.count, sides.send.kind);
                let (to, m, into) = (sides.receive.address, sides.receive.count, sides.receive.kind);
                let [sent, received] = narrowed(large, [n, m])?;
                // SAFETY: each buffer is that of the program, or has the packed elements of its side, and lives until
                // the call is complete, or its request is freed.
                unsafe {
                    if !sides.fill() {
                        return None;
                    }
                    let code = call!(
                        next,
                        end,
                        large,
                        $functions,
                        (from, sent, kind, to, received, into, $($root,)? comm),
                        (from, n, kind, to, m, into, $($root,)? comm)
                    );
                    finish(end, code, sides)
                }
            }

            forms! {
                $(#[$doc])*
                $name, $iname, $init<N>: $work(sendbuf: *const c_void, sendcount: N, sendtype: raw::Datatype,
                    recvbuf: *mut c_void, recvcount: N, recvtype: raw::Datatype, $($root: c_int,)? comm: raw::Comm)
            }
        )*
    };
}

fn one(_: bool) -> Role {
    Role::One
}
fn all(_: bool) -> Role {
    Role::All
}
fn all_at_root(is_root: bool) -> Role {
    if is_root { Role::All } else { Role::Nothing }
}

calls! {
    /// `MPI_Gather`.
    gathers: gather, igather, gather_init; one, all_at_root; (root)
        [MPI_Gather MPI_Gather_c MPI_Igather MPI_Igather_c MPI_Gather_init MPI_Gather_init_c];
    /// `MPI_Scatter`.
    scatters: scatter, iscatter, scatter_init; all_at_root, one; (root)
        [MPI_Scatter MPI_Scatter_c MPI_Iscatter MPI_Iscatter_c MPI_Scatter_init MPI_Scatter_init_c];
    /// `MPI_Allgather`.
    gathers_all: allgather, iallgather, allgather_init; one, all; ()
        [MPI_Allgather MPI_Allgather_c MPI_Iallgather MPI_Iallgather_c MPI_Allgather_init MPI_Allgather_init_c];
    /// `MPI_Alltoall`.
    exchanges: alltoall, ialltoall, alltoall_init; all, all; ()
        [MPI_Alltoall MPI_Alltoall_c MPI_Ialltoall MPI_Ialltoall_c MPI_Alltoall_init MPI_Alltoall_init_c];
}
