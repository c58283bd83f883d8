//! The versions of the standard, of the ABI and of this library (MPI-5.0 sections 9.1.1 and 20.2). This
//! file also records whether the tool interface is initialised.

use crate::abi;
use crate::argument::{Output, TextOutput};
use crate::error::{Failure, Result};
use crate::info;
use crate::raw;
use std::ffi::c_int;
use std::sync::atomic::{AtomicI64, Ordering};

/// `MPI_Get_version`.
pub fn get_version(version: Output<c_int>, subversion: Output<c_int>) -> Result {
    let (version, subversion) = (version.required("version")?, subversion.required("subversion")?);
    version.set(abi::VERSION);
    subversion.set(abi::SUBVERSION);
    Ok(())
}

/// `MPI_Get_library_version`.
pub fn get_library_version(
    version: TextOutput<{ abi::MAX_LIBRARY_VERSION_STRING }>,
    resultlen: Output<c_int>,
) -> Result {
    let line = format!(
        "typepack {}, MPI {}.{}, ABI {}.{}",
        env!("CARGO_PKG_VERSION"),
        abi::VERSION,
        abi::SUBVERSION,
        abi::ABI_VERSION,
        abi::ABI_SUBVERSION
    );
    let length = resultlen.required("resultlen")?;
    length.set(version.required("version")?.write(line.as_bytes()));
    Ok(())
}

/// `MPI_Abi_get_version`.
pub fn abi_get_version(major: Output<c_int>, minor: Output<c_int>) -> Result {
    let (major, minor) = (major.required("abi_major")?, minor.required("abi_minor")?);
    major.set(abi::ABI_VERSION);
    minor.set(abi::ABI_SUBVERSION);
    Ok(())
}

/// `MPI_Abi_get_info`: returns the sizes of the types whose sizes the ABI leaves open.
pub fn abi_get_info(info: Output<raw::Info>) -> Result {
    let out = info.required("info")?;
    let entries = [
        ("mpi_aint_size", size_of::<raw::Aint>()),
        ("mpi_count_size", size_of::<raw::Count>()),
        ("mpi_offset_size", size_of::<raw::Offset>()),
    ];
    let entries = entries.map(|(key, size)| (key.into(), size.to_string().into_bytes()));
    out.set(info::make(entries.into())?);
    Ok(())
}

/// Number of successful calls of `MPI_T_init_thread` minus the number of successful calls of
/// `MPI_T_finalize`.
static TOOLS: AtomicI64 = AtomicI64::new(0);

/// Returns whether the tool interface is initialised.
pub fn tools_ready() -> bool {
    TOOLS.load(Ordering::Acquire) > 0
}

/// `MPI_T_init_thread`. If the pointer is null, the call returns an error code of the tool interface.
pub fn tools_init(required: c_int, provided: Output<c_int>) -> Result {
    let provided = provided
        .required("provided")
        .map_err(|failure| Failure::of_code(abi::T_ERR_INVALID, failure.into_said().text))?;
    provided.set(required.clamp(abi::THREAD_SINGLE, abi::THREAD_MULTIPLE));
    TOOLS.fetch_add(1, Ordering::AcqRel);
    Ok(())
}

/// `MPI_T_finalize`.
pub fn tools_finalize() -> Result {
    let left =
        TOOLS.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| (n > 0).then_some(n - 1));
    left.map(drop).map_err(|_| {
        Failure::new(
            abi::T_ERR_NOT_INITIALIZED,
            "MPI_T_finalize",
            "the tool interface is not initialized",
        )
    })
}
