//! The modes of sends: standard, synchronous, ready, buffered. Each has three calls.

use super::widths;
use crate::host::Next;
use crate::pool::Buffer;
use crate::transfer::PACKED;
use std::ffi::c_int;
use typepack_capi_datatype::raw;

/// Where a message goes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The rank of the receiver.
    pub dest: c_int,
    /// The tag.
    pub tag: c_int,
    /// The communicator.
    pub comm: raw::Comm,
}

/// A mode of sends. Each function calls the host for a packed buffer, and returns the host's error code.
///
/// # Safety
///
/// The functions of an implementation only read the buffer.
pub unsafe trait Mode {
    /// Sends.
    ///
    /// # Safety
    ///
    /// - The first `len` bytes of the buffer are initialised.
    unsafe fn send(next: &Next, buffer: &Buffer, to: Target) -> c_int;

    /// Starts a send.
    ///
    /// # Safety
    ///
    /// - The buffer is initialised, and lives until the request is complete.
    /// - `request` is that of the program's call.
    unsafe fn isend(next: &Next, buffer: &Buffer, to: Target, request: *mut raw::Request) -> c_int;

    /// Makes a persistent send.
    ///
    /// # Safety
    ///
    /// - The buffer lives until the request is freed.
    /// - `request` is that of the program's call.
    unsafe fn init(next: &Next, buffer: &Buffer, to: Target, request: *mut raw::Request) -> c_int;
}

macro_rules! modes {
    ($($(#[$doc:meta])* $name:ident: $send:ident $send_c:ident, $isend:ident $isend_c:ident,
        $init:ident $init_c:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub enum $name {}

            // SAFETY: the host only reads the buffers of sends.
            unsafe impl Mode for $name {
                unsafe fn send(next: &Next, buffer: &Buffer, to: Target) -> c_int {
                    let (data, n, Target { dest, tag, comm }) = (buffer.address().cast(), buffer.len() as i64, to);
                    // SAFETY: the buffer has `n` bytes, and they are initialised (`# Safety` of the trait).
                    unsafe { widths!(next, [n], $send(data, n, PACKED, dest, tag, comm),
                        $send_c(data, n, PACKED, dest, tag, comm)) }
                }

                unsafe fn isend(next: &Next, buffer: &Buffer, to: Target, request: *mut raw::Request) -> c_int {
                    let (data, n, Target { dest, tag, comm }) = (buffer.address().cast(), buffer.len() as i64, to);
                    // SAFETY: the buffer has `n` bytes and lives long enough (`# Safety` of the trait).
                    unsafe {
                        widths!(next, [n], $isend(data, n, PACKED, dest, tag, comm, request),
                            $isend_c(data, n, PACKED, dest, tag, comm, request))
                    }
                }

                unsafe fn init(next: &Next, buffer: &Buffer, to: Target, request: *mut raw::Request) -> c_int {
                    let (data, n, Target { dest, tag, comm }) = (buffer.address().cast(), buffer.len() as i64, to);
                    // SAFETY: the buffer has `n` bytes and lives long enough (`# Safety` of the trait).
                    unsafe {
                        widths!(next, [n], $init(data, n, PACKED, dest, tag, comm, request),
                            $init_c(data, n, PACKED, dest, tag, comm, request))
                    }
                }
            }
        )*
    };
}

modes! {
    /// `MPI_Send` and its relatives.
    Standard: MPI_Send MPI_Send_c, MPI_Isend MPI_Isend_c, MPI_Send_init MPI_Send_init_c;
    /// `MPI_Ssend` and its relatives.
    Synchronous: MPI_Ssend MPI_Ssend_c, MPI_Issend MPI_Issend_c, MPI_Ssend_init MPI_Ssend_init_c;
    /// `MPI_Rsend` and its relatives.
    Ready: MPI_Rsend MPI_Rsend_c, MPI_Irsend MPI_Irsend_c, MPI_Rsend_init MPI_Rsend_init_c;
    /// `MPI_Bsend` and its relatives. The host copies the packed bytes into the buffer that the program has attached.
    Buffered: MPI_Bsend MPI_Bsend_c, MPI_Ibsend MPI_Ibsend_c, MPI_Bsend_init MPI_Bsend_init_c;
}
