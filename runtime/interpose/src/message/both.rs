//! Calls that send and receive. Each of the two messages of a call is converted or not by its own type.
//!
//! The status of the request of `MPI_Isendrecv` and `MPI_Isendrecv_replace` has no length of the receive in MPICH
//! 5.0.2. So their receives go to the host, except those whose messages may come packed from another rank. The buffer
//! of such a receive has the packed elements before, and all of it is unpacked after the receive.

use super::receive::{finish, unwritten};
use super::widths;
use crate::host::Next;
use crate::pending::{self, Message};
use crate::transfer::{Incoming, PACKED, outgoing};
use std::ffi::{c_int, c_void};
use typepack_capi_datatype::count_width::Number;
use typepack_capi_datatype::raw::Status;
use typepack_capi_datatype::{abi, raw};

/// `MPI_Sendrecv`.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Sendrecv`, or of `MPI_Sendrecv_c`.
#[expect(clippy::too_many_arguments, reason = "the standard's call has as many")]
pub unsafe fn sendrecv(
    next: &'static Next,
    sendbuf: *const c_void,
    sendcount: impl Number,
    sendtype: raw::Datatype,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: impl Number,
    recvtype: raw::Datatype,
    source: c_int,
    recvtag: c_int,
    comm: raw::Comm,
    status: *mut Status,
) -> Option<c_int> {
    let (scount, rcount) = (sendcount.wide(), recvcount.wide());
    // SAFETY: the elements are those of a send (`# Safety`).
    let packed = unsafe { outgoing(next, (sendbuf, scount, sendtype), dest) };
    let incoming = Incoming::new(recvbuf, rcount, recvtype, source);
    if packed.is_none() && incoming.is_none() {
        return None;
    }
    let (from, scount, sendtype) = match &packed {
        Some(packed) => (packed.address().cast_const().cast(), packed.len() as i64, PACKED),
        None => (sendbuf, scount, sendtype),
    };
    let (to, rcount, recvtype) = match &incoming {
        Some(incoming) => incoming.arguments(),
        None => (recvbuf, rcount, recvtype),
    };
    // SAFETY: the status of the call is null or readable.
    let mut own = unsafe { unwritten(status) };
    let hosts = if incoming.is_some() { &raw mut own } else { status };
    // SAFETY: the buffers are those of the program, or have as many packed bytes as their counts say; `outgoing` has
    // filled the packed one. `hosts` is writable or null.
    let code = unsafe {
        widths!(
            next,
            [scount, rcount],
            MPI_Sendrecv(
                from, scount, sendtype, dest, sendtag, to, rcount, recvtype, source, recvtag, comm,
                hosts
            ),
            MPI_Sendrecv_c(
                from, scount, sendtype, dest, sendtag, to, rcount, recvtype, source, recvtag, comm,
                hosts
            )
        )
    };
    if let Some(incoming) = incoming {
        // SAFETY: the call had this receive, and its status is null or writable.
        unsafe { finish(next, code, &incoming, &own, status) };
    }
    Some(code)
}

/// `MPI_Sendrecv_replace`: the host replaces the packed bytes.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Sendrecv_replace`, or of `MPI_Sendrecv_replace_c`.
#[expect(clippy::too_many_arguments, reason = "the standard's call has as many")]
pub unsafe fn sendrecv_replace(
    next: &'static Next,
    buf: *mut c_void,
    count: impl Number,
    datatype: raw::Datatype,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: raw::Comm,
    status: *mut Status,
) -> Option<c_int> {
    let incoming = Incoming::new(buf, count.wide(), datatype, source)?;
    // MPICH does the same when it does the call alone, so nothing is lost if the receiver is not interposed.
    // SAFETY: the elements are those of the call (`# Safety`).
    if !unsafe { incoming.pack() } {
        return None;
    }
    // SAFETY: the status of the call is null or readable.
    let ((both, n, kind), mut own) = (incoming.arguments(), unsafe { unwritten(status) });
    let own = &mut own;
    // SAFETY: the buffer has `n` initialised elements of `kind`, and `own` is writable.
    let code = unsafe {
        widths!(
            next,
            [n],
            MPI_Sendrecv_replace(both, n, kind, dest, sendtag, source, recvtag, comm, own),
            MPI_Sendrecv_replace_c(both, n, kind, dest, sendtag, source, recvtag, comm, own)
        )
    };
    // SAFETY: the call had this receive, and its status is null or writable.
    unsafe { finish(next, code, &incoming, own, status) };
    Some(code)
}

/// `MPI_Isendrecv`.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Isendrecv`, or of `MPI_Isendrecv_c`.
#[expect(clippy::too_many_arguments, reason = "the standard's call has as many")]
pub unsafe fn isendrecv(
    next: &'static Next,
    sendbuf: *const c_void,
    sendcount: impl Number,
    sendtype: raw::Datatype,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: impl Number,
    recvtype: raw::Datatype,
    source: c_int,
    recvtag: c_int,
    comm: raw::Comm,
    request: *mut raw::Request,
) -> Option<c_int> {
    if request.is_null() {
        return None;
    }
    let (scount, rcount) = (sendcount.wide(), recvcount.wide());
    // SAFETY: the elements are those of a send (`# Safety`).
    let packed = unsafe { outgoing(next, (sendbuf, scount, sendtype), dest) };
    // SAFETY: the elements are those of a receive (`# Safety`).
    let incoming = unsafe { Incoming::without_status(recvbuf, rcount, recvtype, source) };
    if packed.is_none() && incoming.is_none() {
        return None;
    }
    let (from, scount, sendtype) = match &packed {
        Some(packed) => (packed.address().cast_const().cast(), packed.len() as i64, PACKED),
        None => (sendbuf, scount, sendtype),
    };
    let (to, rcount, recvtype) = match &incoming {
        Some(incoming) => incoming.arguments(),
        None => (recvbuf, rcount, recvtype),
    };
    // SAFETY: the buffers are those of the program, or have as many packed bytes as their counts say; `outgoing` has
    // filled the packed one. `pending::add` keeps the packed ones until the request is complete.
    let code = unsafe {
        pending::expect(request);
        widths!(
            next,
            [scount, rcount],
            MPI_Isendrecv(
                from, scount, sendtype, dest, sendtag, to, rcount, recvtype, source, recvtag, comm,
                request
            ),
            MPI_Isendrecv_c(
                from, scount, sendtype, dest, sendtag, to, rcount, recvtype, source, recvtag, comm,
                request
            )
        )
    };
    let message = match (packed, incoming) {
        (packed, Some(incoming)) => Some(Message::Both(packed, Box::new(incoming))),
        (packed, None) => packed.map(Message::Send),
    };
    if code == abi::SUCCESS
        && let Some(message) = message
    {
        // SAFETY: the host has written the request of this call.
        unsafe { pending::add(*request, message, comm) };
    }
    Some(code)
}

/// `MPI_Isendrecv_replace`: the host replaces the packed bytes.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Isendrecv_replace`, or of `MPI_Isendrecv_replace_c`.
#[expect(clippy::too_many_arguments, reason = "the standard's call has as many")]
pub unsafe fn isendrecv_replace(
    next: &'static Next,
    buf: *mut c_void,
    count: impl Number,
    datatype: raw::Datatype,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: raw::Comm,
    request: *mut raw::Request,
) -> Option<c_int> {
    if request.is_null() {
        return None;
    }
    // SAFETY: the elements are those of the call (`# Safety`).
    let incoming = unsafe { Incoming::without_status(buf, count.wide(), datatype, source)? };
    let (both, n, kind) = incoming.arguments();
    // SAFETY: the buffer has `n` initialised elements of `kind`, and `pending::add` keeps it until the request is
    // complete.
    let code = unsafe {
        pending::expect(request);
        widths!(
            next,
            [n],
            MPI_Isendrecv_replace(both, n, kind, dest, sendtag, source, recvtag, comm, request),
            MPI_Isendrecv_replace_c(both, n, kind, dest, sendtag, source, recvtag, comm, request)
        )
    };
    if code == abi::SUCCESS {
        // SAFETY: the host has written the request of this call.
        unsafe { pending::add(*request, Message::Both(None, Box::new(incoming)), comm) };
    }
    Some(code)
}
