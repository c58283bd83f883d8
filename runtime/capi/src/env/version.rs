//! The versions of the standard, of the ABI and of this library (MPI-5.0 sections 9.1.1 and 20.2).

use crate::abi;
use crate::argument::{Output, TextOutput};
use crate::error::Result;
use crate::info;
use crate::raw;
use std::ffi::c_int;

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
