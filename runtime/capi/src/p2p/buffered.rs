//! The calls that attach, detach and flush buffers for buffered sends (MPI-5.0 section 3.6). The buffers
//! themselves are in `comm/buffer.rs`.

use crate::abi;
use crate::argument::{Output, Place};
use crate::buffer::is_low;
use crate::comm::buffer::{PROCESS, Pool, add, of, remove};
use crate::comm::{self, On, on};
use crate::count_width::{CountWidth, Number};
use crate::error::{Failure, Result};
use crate::raw;
use crate::request::{self, Running};
use std::ffi::c_void;

/// Checks the address and the size of a buffer, and returns the size; 0 for `MPI_BUFFER_AUTOMATIC`.
///
/// # Errors
/// Returns `MPI_ERR_ARG` if the size is negative, or if the address is null and the size is not 0.
fn argument(buffer: *mut c_void, size: impl Number) -> Result<u64> {
    let size = size.wide();
    if buffer as usize == abi::BUFFER_AUTOMATIC {
        return Ok(0);
    }
    let size = u64::try_from(size)
        .map_err(|_| Failure::new(abi::ERR_ARG, "size", format!("{size} is negative")))?;
    if is_low(buffer) && size > 0 {
        return Err(Failure::nowhere("buffer", buffer as usize));
    }
    Ok(size)
}

/// `MPI_Buffer_attach`.
///
/// # Safety
///
/// - `buffer` is `MPI_BUFFER_AUTOMATIC`; or, until the program detaches the buffer, `size` bytes at `buffer`
///   are writable and the program does not access them.
pub unsafe fn attach<W: CountWidth>(buffer: *mut c_void, size: W::Count) -> Result {
    let size = argument(buffer, size)?;
    // SAFETY: until the program detaches the buffer, this library may write `size` bytes at `buffer`, and
    // nobody else accesses them (condition of `# Safety`).
    unsafe { PROCESS.attach(buffer, size) }
}

/// `MPI_Comm_attach_buffer`.
///
/// # Safety
///
/// - `buffer` is `MPI_BUFFER_AUTOMATIC`; or, until the program detaches the buffer, `size` bytes at `buffer`
///   are writable and the program does not access them.
pub unsafe fn comm_attach<W: CountWidth>(
    comm: raw::Comm,
    buffer: *mut c_void,
    size: W::Count,
) -> Result {
    comm::check(comm)?;
    // SAFETY: `attach_to` requires that the `size` bytes at `buffer` are writable until the program detaches the
    // buffer, and that the program does not access them. The caller guarantees this (condition of `# Safety`).
    unsafe { attach_to::<W>(comm.0, buffer, size) }
}

/// Attaches a buffer to the communicator or session with the handle `owner`.
///
/// # Errors
/// Returns `MPI_ERR_ARG` if the size is negative, or if the address is null and the size is not 0, and
/// `MPI_ERR_BUFFER` if the owner already has a buffer.
///
/// # Safety
///
/// - `buffer` is `MPI_BUFFER_AUTOMATIC`; or, until the program detaches the buffer, `size` bytes at `buffer`
///   are writable and the program does not access them.
pub unsafe fn attach_to<W: CountWidth>(
    owner: usize,
    buffer: *mut c_void,
    size: W::Count,
) -> Result {
    let size = argument(buffer, size)?;
    // SAFETY: until the program detaches the owner's buffer, this library may write `size` bytes at
    // `buffer`, and nobody else accesses them (condition of `# Safety`).
    unsafe { add(owner, buffer, size) }
}

/// The two places to which a call that detaches a buffer writes the buffer's address and its size.
struct Detached<N> {
    address: Place<*mut c_void>,
    size: Place<N>,
}

impl<N: Number> Detached<N> {
    fn new(address: Output<*mut c_void>, size: Output<N>) -> Result<Self> {
        Ok(Self { address: address.required("buffer_addr")?, size: size.required("size")? })
    }

    /// Checks that the size of the buffer fits in the type of the size argument. Must be called before the
    /// buffer is detached.
    ///
    /// # Errors
    /// Returns `MPI_ERR_VALUE_TOO_LARGE` if the size does not fit in the type.
    fn fits(pool: &Pool) -> Result {
        let size = pool.size();
        if i64::try_from(size).ok().and_then(N::exactly).is_some() {
            return Ok(());
        }
        let detail = format!(
            "the buffer has {size} bytes, which do not fit in an int; use the call whose name ends in _c"
        );
        Err(Failure::new(abi::ERR_VALUE_TOO_LARGE, "size", detail))
    }

    fn set(&self, (address, size): (usize, u64)) {
        self.address.set(address as *mut c_void);
        if let Some(size) = i64::try_from(size).ok().and_then(N::exactly) {
            self.size.set(size);
        }
    }
}

/// `MPI_Buffer_detach`. If no buffer is attached, the result is a null address and size 0.
pub fn detach<W: CountWidth>(address: Output<*mut c_void>, size: Output<W::Count>) -> Result {
    let out = Detached::new(address, size)?;
    Detached::<W::Count>::fits(&PROCESS)?;
    out.set(PROCESS.detach()?);
    Ok(())
}

/// `MPI_Comm_detach_buffer`.
pub fn comm_detach<W: CountWidth>(
    comm: raw::Comm,
    address: Output<*mut c_void>,
    size: Output<W::Count>,
) -> Result {
    comm::check(comm)?;
    detach_from::<W>(comm.0, address, size)
}

/// Detaches the buffer of the communicator or session with the handle `owner`. If it has none, the result is a null
/// address and size 0.
///
/// # Errors
/// Returns `MPI_ERR_ARG` if a pointer is null, `MPI_ERR_VALUE_TOO_LARGE` if the size does not fit in its type, and
/// the runtime's error if a rank has died.
pub fn detach_from<W: CountWidth>(
    owner: usize,
    address: Output<*mut c_void>,
    size: Output<W::Count>,
) -> Result {
    let out = Detached::new(address, size)?;
    let detached = match of(owner) {
        Some(pool) => {
            Detached::<W::Count>::fits(&pool)?;
            remove(owner, &pool)?
        }
        None => (0, 0),
    };
    out.set(detached);
    Ok(())
}

/// `MPI_Buffer_flush`.
pub fn flush() -> Result {
    PROCESS.flush()
}

/// `MPI_Comm_flush_buffer`.
pub fn comm_flush(comm: raw::Comm) -> Result {
    comm::check(comm)?;
    flush_of(comm.0)
}

/// Waits until all messages have left the buffer of a communicator or session.
///
/// # Errors
/// Returns the runtime's error if a rank has died.
pub fn flush_of(owner: usize) -> Result {
    of(owner).map_or(Ok(()), |pool| pool.flush())
}

/// `MPI_Buffer_iflush`.
pub fn iflush(request: Output<raw::Request>) -> Result {
    let out = request.required("request")?;
    out.set(request::open(None, Running::Flush(PROCESS.sends()))?);
    Ok(())
}

/// `MPI_Comm_iflush_buffer`.
pub fn comm_iflush(comm: raw::Comm, request: Output<raw::Request>) -> Result {
    let on = on(comm)?;
    iflush_of(comm.0, Some(on), request)
}

/// Makes a request that is complete when all messages that are now in the buffer of a communicator or session have
/// left it.
///
/// # Errors
/// Returns `MPI_ERR_ARG` if the pointer is null, and `MPI_ERR_OTHER` if no handle is left.
pub fn iflush_of(owner: usize, on: Option<On>, request: Output<raw::Request>) -> Result {
    let out = request.required("request")?;
    let sends = of(owner).map_or_else(Vec::new, |pool| pool.sends());
    out.set(request::open(on, Running::Flush(sends))?);
    Ok(())
}
