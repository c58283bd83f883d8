//! Versions: of the standard, of the ABI, of this library (MPI-5.0 sections 9.1.1 and 20.2); and
//! whether the tool interface is in use.

use crate::abi;
use crate::error::{Failure, Result};
use crate::info;
use crate::out::Out;
use crate::raw;
use crate::text;
use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicI64, Ordering};

/// `MPI_Get_version`.
///
/// # Safety
/// As the C function.
pub unsafe fn get_version(version: *mut c_int, subversion: *mut c_int) -> Result {
    // SAFETY: passed on.
    let (version, subversion) =
        unsafe { (Out::new(version, "version")?, Out::new(subversion, "subversion")?) };
    version.set(abi::VERSION);
    subversion.set(abi::SUBVERSION);
    Ok(())
}

/// `MPI_Get_library_version`.
///
/// # Safety
/// As the C function.
pub unsafe fn get_library_version(version: *mut c_char, resultlen: *mut c_int) -> Result {
    let line = format!(
        "typepack {}, MPI {}.{}, ABI {}.{}",
        env!("CARGO_PKG_VERSION"),
        abi::VERSION,
        abi::SUBVERSION,
        abi::ABI_VERSION,
        abi::ABI_SUBVERSION
    );
    // SAFETY: passed on; the standard asks for this much room.
    unsafe {
        let length = Out::new(resultlen, "resultlen")?;
        let room = abi::MAX_LIBRARY_VERSION_STRING;
        Ok(text::write(line.as_bytes(), version, room, "version", Some(length))?)
    }
}

/// `MPI_Abi_get_version`.
///
/// # Safety
/// As the C function.
pub unsafe fn abi_get_version(major: *mut c_int, minor: *mut c_int) -> Result {
    // SAFETY: passed on.
    let (major, minor) = unsafe { (Out::new(major, "abi_major")?, Out::new(minor, "abi_minor")?) };
    major.set(abi::ABI_VERSION);
    minor.set(abi::ABI_SUBVERSION);
    Ok(())
}

/// `MPI_Abi_get_info`: the widths that the ABI leaves open.
///
/// # Safety
/// As the C function.
pub unsafe fn abi_get_info(info: *mut raw::Info) -> Result {
    // SAFETY: passed on.
    let out = unsafe { Out::new(info, "info")? };
    let entries = [
        ("mpi_aint_size", size_of::<raw::Aint>()),
        ("mpi_count_size", size_of::<raw::Count>()),
        ("mpi_offset_size", size_of::<raw::Offset>()),
    ];
    let entries = entries.map(|(key, size)| (key.into(), size.to_string().into_bytes()));
    out.set(info::make(entries.into())?);
    Ok(())
}

/// Inits of the tool interface without their finalize.
static TOOLS: AtomicI64 = AtomicI64::new(0);

/// Whether the tool interface has been initialised.
pub fn tools_ready() -> bool {
    TOOLS.load(Ordering::Acquire) > 0
}

/// `MPI_T_init_thread`; its return codes are its own.
///
/// # Safety
/// As the C function.
pub unsafe fn tools_init(required: c_int, provided: *mut c_int) -> Result {
    // SAFETY: passed on.
    let provided = unsafe { Out::new(provided, "provided") }
        .map_err(|failure| Failure::of_code(abi::T_ERR_INVALID, failure.into_said().text))?;
    provided.set(required.clamp(abi::THREAD_SINGLE, abi::THREAD_MULTIPLE));
    TOOLS.fetch_add(1, Ordering::AcqRel);
    Ok(())
}

/// `MPI_T_finalize`.
///
/// # Safety
/// As the C function.
pub unsafe fn tools_finalize() -> Result {
    let left =
        TOOLS.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| (n > 0).then_some(n - 1));
    left.map(drop)
        .map_err(|_| Failure::new(abi::T_ERR_NOT_INITIALIZED, "MPI_T_finalize", "not initialized"))
}
