//! Bindings of the MPI 5 standard ABI: the C functions of any library `libmpi_abi.so.1`, such as those of typepack,
//! MPICH 5 and Intel MPI 2021.17.
//!
//! The crate has the names and types of the crate `mpi-sys`, which rsmpi, HDF5 and netCDF for Rust use, but needs
//! neither libclang nor an MPI library when it is built. The README says how to put it in the place of `mpi-sys`.
//!
//! ```no_run
//! use typepack_mpi_sys::*;
//!
//! let (mut rank, mut size) = (0, 0);
//! unsafe {
//!     MPI_Init(std::ptr::null_mut(), std::ptr::null_mut());
//!     MPI_Comm_rank(MPI_COMM_WORLD, &mut rank);
//!     MPI_Comm_size(MPI_COMM_WORLD, &mut size);
//!     println!("rank {rank} of {size}");
//!     MPI_Finalize();
//! }
//! ```
//!
//! `abi.rs` is generated from the tables of typepack's C library, and a test holds it equal to them; `rsmpi.rs` has the
//! names that `mpi-sys` adds. Constants such as `MPI_COMM_DUP_FN` are missing: they stand for functions, but are no
//! addresses of functions.
// These are the names of MPI. The standard documents them.
#![allow(non_camel_case_types, non_snake_case, missing_docs)]

#[rustfmt::skip]
mod abi;
mod rsmpi;

pub use abi::*;
pub use rsmpi::*;
