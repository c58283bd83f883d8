//! The symbols for the block of names outside the ABI in `mpi.h` (`abi/compat.csv`).
//!
//! The symbols are four variables and one function. The values of the variables are the addresses by which
//! Fortran programs ignore a status. The function is the constructor of MPI-1 that takes bound markers. The
//! other names of the block are inline functions of the header.

use crate::argument::FromC;
use crate::datatype::construct;
use crate::entry::{self, At};
use crate::raw;
use std::ffi::c_int;

/// `MPI_F_STATUS_IGNORE`: an address in the first page, where no object lies.
#[unsafe(no_mangle)]
pub static MPI_F_STATUS_IGNORE: usize = 0x1f01;
/// `MPI_F_STATUSES_IGNORE`.
#[unsafe(no_mangle)]
pub static MPI_F_STATUSES_IGNORE: usize = 0x1f02;
/// `MPI_F08_STATUS_IGNORE`.
#[unsafe(no_mangle)]
pub static MPI_F08_STATUS_IGNORE: usize = 0x1f03;
/// `MPI_F08_STATUSES_IGNORE`.
#[unsafe(no_mangle)]
pub static MPI_F08_STATUSES_IGNORE: usize = 0x1f04;

/// `MPI_Type_struct`, removed in MPI-3.0.
///
/// # Safety
///
/// - Each pointer is null or meets the promise of the type that `construct::structured_with_markers` takes
///   for it (`argument/` of `typepack-capi-datatype`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Type_struct(
    count: c_int,
    blocklengths: *const c_int,
    displacements: *const raw::Aint,
    types: *const raw::Datatype,
    newtype: *mut raw::Datatype,
) -> c_int {
    entry::enter("MPI_Type_struct", At::Nothing, || {
        // SAFETY: each pointer meets the promise of its parameter's type (condition of `# Safety`).
        let (blocklengths, displacements, types, newtype) = unsafe {
            (
                FromC::from_c(blocklengths),
                FromC::from_c(displacements),
                FromC::from_c(types),
                FromC::from_c(newtype),
            )
        };
        construct::structured_with_markers(count, blocklengths, displacements, types, newtype)
    })
}
