//! Collective calls with one buffer, one count and one type on each side: broadcast, gather, scatter, allgather,
//! alltoall.

use super::{End, finish};
use crate::communicator::is_marked;
use crate::host::Next;
use crate::side::{Side, Sides, is_large, size_and_rank};
use crate::types::choice::Job;
use crate::types::find;
use std::ffi::{c_int, c_void};
use typepack_capi_datatype::count_width::Number;
use typepack_capi_datatype::{abi, raw};

/// Calls the host in the form that the program called: all ranks must call the same function, also those whose sides
/// are not packed. If a number does not fit, the host does the call of the program.
macro_rules! form {
    ($large:expr, $next:ident, [$($count:ident),+], $int:ident ($($a:expr),*), $wide:ident ($($b:expr),*)) => {
        if $large {
            $next.$wide($($b),*)
        } else {
            $(let $count = c_int::try_from($count).ok()?;)+
            $next.$int($($a),*)
        }
    };
}

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

/// Makes both sides of a call. Returns `None` if the host does the call.
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
    if (find(send.0.2).is_none() && find(receive.0.2).is_none()) || !is_marked(next, comm) {
        return None;
    }
    let (size, rank) = size_and_rank(next, comm)?;
    let is_root = rank == root;
    let (from, to) = (send.1(is_root), receive.1(is_root));
    let sends = side(send.0, from, size, Job::Pack);
    let receives = side(receive.0, to, size, Job::Unpack);
    let sides = Sides::new(sends, receives)?;
    // SAFETY: the program lets the call read what it sends. With `MPI_IN_PLACE`, a part of the receive buffer is
    // sent, or stays as it is, so all of it is packed before.
    unsafe {
        if from != Role::Nothing {
            let in_place = send.0.0 as usize == abi::IN_PLACE;
            if !sides.send.fill() || in_place && !sides.receive.fill() {
                return None;
            }
        }
    }
    Some(sides)
}

/// `MPI_Bcast` and `MPI_Ibcast`.
///
/// # Safety
///
/// - The arguments are those of one of these calls.
unsafe fn broadcast(
    next: &'static Next,
    (buffer, count, datatype): (*mut c_void, i64, raw::Datatype),
    (root, comm): (c_int, raw::Comm),
    (end, large): (End, bool),
) -> Option<c_int> {
    if find(datatype).is_none() || !is_marked(next, comm) {
        return None;
    }
    let (_, rank) = size_and_rank(next, comm)?;
    let side = Side::block(buffer, count, datatype, 1, Job::Unpack);
    let (address, n, kind) = (side.address, side.count, side.kind);
    let sides = match rank == root {
        true => Sides::new(side, Side::ignored())?,
        false => Sides::new(Side::ignored(), side)?,
    };
    // SAFETY: the root's elements are readable. The packed buffer has `n` bytes, and lives until the call is complete.
    unsafe {
        if !sides.send.fill() {
            return None;
        }
        let code = match end {
            End::Now => form!(
                large,
                next,
                [n],
                MPI_Bcast(address, n, kind, root, comm),
                MPI_Bcast_c(address, n, kind, root, comm)
            ),
            End::Later(request) => form!(
                large,
                next,
                [n],
                MPI_Ibcast(address, n, kind, root, comm, request),
                MPI_Ibcast_c(address, n, kind, root, comm, request)
            ),
        };
        finish(next, end, code, sides)
    }
}

/// `MPI_Bcast`.
///
/// # Safety
///
/// - The arguments are those of a call of this function.
pub unsafe fn bcast<N: Number>(
    next: &'static Next,
    buffer: *mut c_void,
    count: N,
    datatype: raw::Datatype,
    root: c_int,
    comm: raw::Comm,
) -> Option<c_int> {
    // SAFETY: the program's arguments of `bcast`, unchanged.
    unsafe {
        broadcast(next, (buffer, count.wide(), datatype), (root, comm), (End::Now, is_large::<N>()))
    }
}

/// `MPI_Ibcast`.
///
/// # Safety
///
/// - The arguments are those of a call of this function.
pub unsafe fn ibcast<N: Number>(
    next: &'static Next,
    buffer: *mut c_void,
    count: N,
    datatype: raw::Datatype,
    root: c_int,
    comm: raw::Comm,
    request: *mut raw::Request,
) -> Option<c_int> {
    if request.is_null() {
        return None;
    }
    // SAFETY: the program's arguments of `ibcast`, unchanged.
    unsafe {
        broadcast(
            next,
            (buffer, count.wide(), datatype),
            (root, comm),
            (End::Later(request), is_large::<N>()),
        )
    }
}

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident, $iname:ident: $send:expr, $receive:expr; ($($root:ident)?)
        $now:ident $now_c:ident $later:ident $later_c:ident;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            ///
            /// - The arguments are those of a call of this function.
            #[allow(clippy::too_many_arguments)]
            pub unsafe fn $name<N: Number>(
                next: &'static Next,
                sendbuf: *const c_void,
                sendcount: N,
                sendtype: raw::Datatype,
                recvbuf: *mut c_void,
                recvcount: N,
                recvtype: raw::Datatype,
                $($root: c_int,)?
                comm: raw::Comm,
            ) -> Option<c_int> {
                let (at_root, large) = ([0, $($root)?], is_large::<N>());
                let send = (sendbuf, sendcount.wide(), sendtype);
                let receive = (recvbuf.cast_const(), recvcount.wide(), recvtype);
                // SAFETY: the program's arguments of `$name`, unchanged.
                let sides = unsafe { prepare(next, comm, (send, $send), (receive, $receive),
                    at_root[at_root.len() - 1])? };
                let (from, n, kind) = (sides.send.address.cast_const(), sides.send.count, sides.send.kind);
                let (to, m, into) = (sides.receive.address, sides.receive.count, sides.receive.kind);
                // SAFETY: each buffer is that of the program, or has the packed bytes of its side.
                unsafe {
                    let code = form!(
                        large,
                        next,
                        [n, m],
                        $now(from, n, kind, to, m, into, $($root,)? comm),
                        $now_c(from, n, kind, to, m, into, $($root,)? comm)
                    );
                    finish(next, End::Now, code, sides)
                }
            }

            /// The nonblocking form.
            ///
            /// # Safety
            ///
            /// - The arguments are those of a call of this function.
            #[allow(clippy::too_many_arguments)]
            pub unsafe fn $iname<N: Number>(
                next: &'static Next,
                sendbuf: *const c_void,
                sendcount: N,
                sendtype: raw::Datatype,
                recvbuf: *mut c_void,
                recvcount: N,
                recvtype: raw::Datatype,
                $($root: c_int,)?
                comm: raw::Comm,
                request: *mut raw::Request,
            ) -> Option<c_int> {
                if request.is_null() {
                    return None;
                }
                let (at_root, large) = ([0, $($root)?], is_large::<N>());
                let send = (sendbuf, sendcount.wide(), sendtype);
                let receive = (recvbuf.cast_const(), recvcount.wide(), recvtype);
                // SAFETY: the program's arguments of `$iname`, unchanged.
                let sides = unsafe { prepare(next, comm, (send, $send), (receive, $receive),
                    at_root[at_root.len() - 1])? };
                let (from, n, kind) = (sides.send.address.cast_const(), sides.send.count, sides.send.kind);
                let (to, m, into) = (sides.receive.address, sides.receive.count, sides.receive.kind);
                // SAFETY: each buffer is that of the program, or has the packed bytes of its side and lives until the
                // request is complete.
                unsafe {
                    let code = form!(
                        large,
                        next,
                        [n, m],
                        $later(from, n, kind, to, m, into, $($root,)? comm, request),
                        $later_c(from, n, kind, to, m, into, $($root,)? comm, request)
                    );
                    finish(next, End::Later(request), code, sides)
                }
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
    gather, igather: one, all_at_root; (root) MPI_Gather MPI_Gather_c MPI_Igather MPI_Igather_c;
    /// `MPI_Scatter`.
    scatter, iscatter: all_at_root, one; (root) MPI_Scatter MPI_Scatter_c MPI_Iscatter MPI_Iscatter_c;
    /// `MPI_Allgather`.
    allgather, iallgather: one, all; () MPI_Allgather MPI_Allgather_c MPI_Iallgather MPI_Iallgather_c;
    /// `MPI_Alltoall`.
    alltoall, ialltoall: all, all; () MPI_Alltoall MPI_Alltoall_c MPI_Ialltoall MPI_Ialltoall_c;
}
