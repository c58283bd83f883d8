//! Sends in all modes: blocking, nonblocking, persistent.

use super::mode::{Mode, Target};
use crate::host::Next;
use crate::pending::{self, Message};
use crate::transfer::{Data, outgoing};
use crate::types::choice::Job;
use std::ffi::{c_int, c_void};
use typepack_capi_datatype::count_width::Number;
use typepack_capi_datatype::{abi, raw};

/// `MPI_Send` and its other modes.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Send`, `MPI_Send_c`, or another mode.
pub unsafe fn send<M: Mode>(
    next: &'static Next,
    buf: *const c_void,
    count: impl Number,
    datatype: raw::Datatype,
    dest: c_int,
    tag: c_int,
    comm: raw::Comm,
) -> Option<c_int> {
    // SAFETY: the elements are those of a send (`# Safety`).
    let packed = unsafe { outgoing(next, (buf, count.wide(), datatype), dest)? };
    // SAFETY: `outgoing` has filled the buffer.
    Some(unsafe { M::send(next, &packed, Target { dest, tag, comm }) })
}

/// `MPI_Isend` and its other modes.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Isend`, `MPI_Isend_c`, or another mode.
#[expect(clippy::too_many_arguments, reason = "the standard's call has as many")]
pub unsafe fn isend<M: Mode>(
    next: &'static Next,
    buf: *const c_void,
    count: impl Number,
    datatype: raw::Datatype,
    dest: c_int,
    tag: c_int,
    comm: raw::Comm,
    request: *mut raw::Request,
) -> Option<c_int> {
    if request.is_null() {
        return None;
    }
    // SAFETY: the elements are those of a send (`# Safety`).
    let packed = unsafe { outgoing(next, (buf, count.wide(), datatype), dest)? };
    // SAFETY: `outgoing` has filled the buffer. `pending::add` keeps it until the request is complete.
    let code = unsafe {
        pending::expect(request);
        M::isend(next, &packed, Target { dest, tag, comm }, request)
    };
    if code == abi::SUCCESS {
        // SAFETY: the host has written the request of this send.
        unsafe { pending::add(*request, Message::Send(packed), comm) };
    }
    Some(code)
}

/// `MPI_Send_init` and its other modes. The buffer belongs to the request from here to the call that frees it, because
/// the host sends from the same address at each start.
///
/// # Safety
///
/// - The arguments are those of a call of `MPI_Send_init`, `MPI_Send_init_c`, or another mode.
#[expect(clippy::too_many_arguments, reason = "the standard's call has as many")]
pub unsafe fn init<M: Mode>(
    next: &'static Next,
    buf: *const c_void,
    count: impl Number,
    datatype: raw::Datatype,
    dest: c_int,
    tag: c_int,
    comm: raw::Comm,
    request: *mut raw::Request,
) -> Option<c_int> {
    let elements = Data::new(buf, count.wide(), datatype)?;
    if request.is_null() || dest == abi::PROC_NULL {
        return None;
    }
    let _ours_is_not_slower = elements.decide_send()?;
    let packed = elements.buffer(Job::Pack)?;
    // SAFETY: `pending::add` keeps the buffer until the request is freed.
    let code = unsafe {
        pending::expect(request);
        M::init(next, &packed, Target { dest, tag, comm }, request)
    };
    if code == abi::SUCCESS {
        let message = Message::PersistentSend(Box::new((elements, packed)));
        // SAFETY: the host has written the request of this send.
        unsafe { pending::add(*request, message, comm) };
    }
    Some(code)
}
