//! Receives: blocking, nonblocking, persistent, and of matched messages.

use super::widths;
use crate::host::Next;
use crate::pending::{self, Message};
use crate::transfer::Incoming;
use std::ffi::{c_int, c_void};
use typepack_capi_datatype::count_width::Number;
use typepack_capi_datatype::raw::Status;
use typepack_capi_datatype::{abi, raw};

/// Returns the address for the status of a call: that of the program, or that of `own` if the program ignores statuses.
pub fn status_or(status: *mut Status, own: &mut Status) -> *mut Status {
    if status.is_null() { own } else { status }
}

/// A source that no message has.
const NOBODY: c_int = c_int::MIN;

/// Makes the status that a blocking receive passes to the host, in place of the program's `status`.
///
/// MPICH 5.0.2 returns no error if an error handler of the program has returned. Then nothing has written the status,
/// and that of an earlier receive would tell that data have arrived.
///
/// # Safety
///
/// - `status` is null or readable.
pub unsafe fn unwritten(status: *const Status) -> Status {
    // Hosts leave the error of a status as it was.
    // SAFETY: the status is readable (`# Safety`).
    let former = if status.is_null() { Status::default() } else { unsafe { *status } };
    Status { source: NOBODY, ..former }
}

/// Unpacks what has arrived, after the call has returned `code` and `own`, which [`unwritten`] has made of `status`.
///
/// # Safety
///
/// - The call was the receive of `incoming`, and `own` is its status.
/// - `status` is null or writable.
pub unsafe fn finish(
    next: &Next,
    code: c_int,
    incoming: &Incoming,
    own: &Status,
    status: *mut Status,
) {
    let is_written = own.source != NOBODY;
    if is_written && !status.is_null() {
        // SAFETY: the status is writable (`# Safety`).
        unsafe { *status = *own };
    }
    if is_written || code != abi::SUCCESS {
        // SAFETY: the host has completed the receive with this code and this status.
        unsafe { incoming.finish(next, code, own) };
    }
}

/// `MPI_Recv`.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Recv`, or of `MPI_Recv_c`.
#[expect(clippy::too_many_arguments, reason = "the standard's call has as many")]
pub unsafe fn recv(
    next: &'static Next,
    buf: *mut c_void,
    count: impl Number,
    datatype: raw::Datatype,
    source: c_int,
    tag: c_int,
    comm: raw::Comm,
    status: *mut Status,
) -> Option<c_int> {
    let incoming = Incoming::new(buf, count.wide(), datatype, source)?;
    // SAFETY: the status of the call is null or readable.
    let ((to, n, kind), mut own) = (incoming.arguments(), unsafe { unwritten(status) });
    // SAFETY: the buffer has `n` elements of `kind`, and `own` is writable.
    let code = unsafe {
        widths!(
            next,
            [n],
            MPI_Recv(to, n, kind, source, tag, comm, &mut own),
            MPI_Recv_c(to, n, kind, source, tag, comm, &mut own)
        )
    };
    // SAFETY: the call was this receive, and its status is null or writable.
    unsafe { finish(next, code, &incoming, &own, status) };
    Some(code)
}

/// `MPI_Irecv`.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Irecv`, or of `MPI_Irecv_c`.
#[expect(clippy::too_many_arguments, reason = "the standard's call has as many")]
pub unsafe fn irecv(
    next: &'static Next,
    buf: *mut c_void,
    count: impl Number,
    datatype: raw::Datatype,
    source: c_int,
    tag: c_int,
    comm: raw::Comm,
    request: *mut raw::Request,
) -> Option<c_int> {
    let incoming = Incoming::new(buf, count.wide(), datatype, source)?;
    if request.is_null() {
        return None;
    }
    let (to, n, kind) = incoming.arguments();
    // SAFETY: the buffer has `n` elements of `kind`, and `pending::add` keeps it until the request is complete.
    let code = unsafe {
        pending::expect(request);
        widths!(
            next,
            [n],
            MPI_Irecv(to, n, kind, source, tag, comm, request),
            MPI_Irecv_c(to, n, kind, source, tag, comm, request)
        )
    };
    // SAFETY: the request is that of this receive.
    unsafe { started(code, request, Message::Receive(Box::new(incoming)), comm) }
}

/// `MPI_Recv_init`. The buffer belongs to the request from here to the call that frees it, because the host receives at
/// the same address at each start.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Recv_init`, or of `MPI_Recv_init_c`.
#[expect(clippy::too_many_arguments, reason = "the standard's call has as many")]
pub unsafe fn init(
    next: &'static Next,
    buf: *mut c_void,
    count: impl Number,
    datatype: raw::Datatype,
    source: c_int,
    tag: c_int,
    comm: raw::Comm,
    request: *mut raw::Request,
) -> Option<c_int> {
    let incoming = Incoming::new(buf, count.wide(), datatype, source)?.ours();
    if request.is_null() {
        return None;
    }
    let (to, n, kind) = incoming.arguments();
    // SAFETY: the buffer has `n` elements of `kind`, and `pending::add` keeps it until the request is freed.
    let code = unsafe {
        pending::expect(request);
        widths!(
            next,
            [n],
            MPI_Recv_init(to, n, kind, source, tag, comm, request),
            MPI_Recv_init_c(to, n, kind, source, tag, comm, request)
        )
    };
    // SAFETY: the request is that of this receive.
    unsafe { started(code, request, Message::PersistentReceive(Box::new(incoming)), comm) }
}

/// Keeps the message of a request if the host has made the request.
///
/// # Safety
///
/// - If `code` is `MPI_SUCCESS`, the host has written the request of this message at `request`.
unsafe fn started(
    code: c_int,
    request: *mut raw::Request,
    message: Message,
    comm: raw::Comm,
) -> Option<c_int> {
    if code == abi::SUCCESS {
        // SAFETY: `started` has the same conditions (`# Safety`).
        unsafe { pending::add(*request, message, comm) };
    }
    Some(code)
}

/// Returns whether a matched message comes from a rank: not the null handle, and not `MPI_MESSAGE_NO_PROC`.
///
/// # Safety
///
/// - `message` is null or readable.
unsafe fn is_message(message: *const raw::Message) -> bool {
    // SAFETY: the address is readable (`# Safety`).
    let handle = if message.is_null() { raw::Message::NULL } else { unsafe { *message } };
    handle != raw::Message::NULL && handle.0 != abi::MESSAGE_NO_PROC
}

/// `MPI_Mrecv`.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Mrecv`, or of `MPI_Mrecv_c`.
pub unsafe fn mrecv(
    next: &'static Next,
    buf: *mut c_void,
    count: impl Number,
    datatype: raw::Datatype,
    message: *mut raw::Message,
    status: *mut Status,
) -> Option<c_int> {
    let incoming = Incoming::new(buf, count.wide(), datatype, abi::ANY_SOURCE)?;
    // SAFETY: the program's argument of `mrecv`.
    if !unsafe { is_message(message) } {
        return None;
    }
    // SAFETY: the status of the call is null or readable.
    let ((to, n, kind), mut own) = (incoming.arguments(), unsafe { unwritten(status) });
    // SAFETY: the buffer has `n` elements of `kind`, and `own` is writable.
    let code = unsafe {
        widths!(
            next,
            [n],
            MPI_Mrecv(to, n, kind, message, &mut own),
            MPI_Mrecv_c(to, n, kind, message, &mut own)
        )
    };
    // SAFETY: the call was this receive, and its status is null or writable.
    unsafe { finish(next, code, &incoming, &own, status) };
    Some(code)
}

/// `MPI_Imrecv`.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Imrecv`, or of `MPI_Imrecv_c`.
pub unsafe fn imrecv(
    next: &'static Next,
    buf: *mut c_void,
    count: impl Number,
    datatype: raw::Datatype,
    message: *mut raw::Message,
    request: *mut raw::Request,
) -> Option<c_int> {
    let incoming = Incoming::new(buf, count.wide(), datatype, abi::ANY_SOURCE)?;
    // SAFETY: the program's argument of `imrecv`.
    if request.is_null() || !unsafe { is_message(message) } {
        return None;
    }
    let (to, n, kind) = incoming.arguments();
    // SAFETY: the buffer has `n` elements of `kind`, and `pending::add` keeps it until the request is complete.
    let code = unsafe {
        pending::expect(request);
        widths!(
            next,
            [n],
            MPI_Imrecv(to, n, kind, message, request),
            MPI_Imrecv_c(to, n, kind, message, request)
        )
    };
    // A message does not tell its communicator.
    let comm = raw::Comm::NULL;
    // SAFETY: the request is that of this receive.
    unsafe { started(code, request, Message::Receive(Box::new(incoming)), comm) }
}
