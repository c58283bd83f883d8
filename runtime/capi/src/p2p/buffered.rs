//! The calls about buffers for buffered sends (MPI-5.0 section 3.6); the buffers themselves are in
//! `comm/buffer.rs`.

use crate::abi;
use crate::comm::buffer::{PROCESS, Pool, add, of_comm, remove};
use crate::comm::{self, on};
use crate::count_width::{CountWidth, Number};
use crate::error::{Failure, Result};
use crate::out::Out;
use crate::raw;
use crate::request::{self, Running};
use std::ffi::c_void;

/// A buffer as an argument.
fn argument(buffer: *mut c_void, size: impl Number) -> Result<u64> {
    let size = size.wide();
    if buffer as usize == abi::BUFFER_AUTOMATIC {
        return Ok(0);
    }
    let size = u64::try_from(size)
        .map_err(|_| Failure::new(abi::ERR_ARG, "size", format!("{size} is negative")))?;
    if buffer.is_null() && size > 0 {
        return Err(Failure::null("buffer"));
    }
    Ok(size)
}

/// `MPI_Buffer_attach`.
///
/// # Safety
/// As the C function.
pub unsafe fn attach<W: CountWidth>(buffer: *mut c_void, size: W::Count) -> Result {
    let size = argument(buffer, size)?;
    PROCESS.attach(buffer, size)
}

/// `MPI_Comm_attach_buffer`.
///
/// # Safety
/// As the C function.
pub unsafe fn comm_attach<W: CountWidth>(
    comm: raw::Comm,
    buffer: *mut c_void,
    size: W::Count,
) -> Result {
    comm::check(comm)?;
    let size = argument(buffer, size)?;
    add(comm, buffer, size)
}

/// The outputs of a detachment.
struct Detached<N> {
    address: Out<*mut c_void>,
    size: Out<N>,
}

impl<N: Number> Detached<N> {
    /// # Safety
    ///
    /// - Both are null or writable.
    unsafe fn new(address: *mut c_void, size: *mut N) -> Result<Self> {
        // SAFETY: passed on; the address is that of a pointer, whatever it points to.
        unsafe {
            let address = Out::new(address.cast::<*mut c_void>(), "buffer_addr")?;
            Ok(Self { address, size: Out::new(size, "size")? })
        }
    }

    /// That the size of the buffer can be told, before it is taken away.
    fn fits(pool: &Pool) -> Result {
        let size = pool.size();
        if i64::try_from(size).ok().and_then(N::exactly).is_some() {
            return Ok(());
        }
        let detail = format!("{size} bytes do not fit its type; use the call that ends in _c");
        Err(Failure::new(abi::ERR_VALUE_TOO_LARGE, "size", detail))
    }

    fn set(&self, (address, size): (usize, u64)) {
        self.address.set(address as *mut c_void);
        if let Some(size) = i64::try_from(size).ok().and_then(N::exactly) {
            self.size.set(size);
        }
    }
}

/// `MPI_Buffer_detach`. Without a buffer it is as if one without room were attached.
///
/// # Safety
/// As the C function.
pub unsafe fn detach<W: CountWidth>(address: *mut c_void, size: *mut W::Count) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Detached::new(address, size)? };
    Detached::<W::Count>::fits(&PROCESS)?;
    out.set(PROCESS.detach()?);
    Ok(())
}

/// `MPI_Comm_detach_buffer`.
///
/// # Safety
/// As the C function.
pub unsafe fn comm_detach<W: CountWidth>(
    comm: raw::Comm,
    address: *mut c_void,
    size: *mut W::Count,
) -> Result {
    comm::check(comm)?;
    // SAFETY: passed on.
    let out = unsafe { Detached::new(address, size)? };
    let detached = match of_comm(comm) {
        Some(pool) => {
            Detached::<W::Count>::fits(&pool)?;
            remove(comm, &pool)?
        }
        None => (0, 0),
    };
    out.set(detached);
    Ok(())
}

/// `MPI_Buffer_flush`.
///
/// # Safety
/// As the C function.
pub unsafe fn flush() -> Result {
    PROCESS.flush()
}

/// `MPI_Comm_flush_buffer`.
///
/// # Safety
/// As the C function.
pub unsafe fn comm_flush(comm: raw::Comm) -> Result {
    comm::check(comm)?;
    of_comm(comm).map_or(Ok(()), |pool| pool.flush())
}

/// `MPI_Buffer_iflush`.
///
/// # Safety
/// As the C function.
pub unsafe fn iflush(request: *mut raw::Request) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Out::new(request, "request")? };
    out.set(request::open(None, Running::Flush(PROCESS.sends()))?);
    Ok(())
}

/// `MPI_Comm_iflush_buffer`.
///
/// # Safety
/// As the C function.
pub unsafe fn comm_iflush(comm: raw::Comm, request: *mut raw::Request) -> Result {
    let on = on(comm)?;
    // SAFETY: passed on.
    let out = unsafe { Out::new(request, "request")? };
    let sends = of_comm(comm).map_or_else(Vec::new, |pool| pool.sends());
    out.set(request::open(Some(on), Running::Flush(sends))?);
    Ok(())
}
