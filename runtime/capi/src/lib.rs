//! libmpi_abi.so.1: the C face of typepack, behind the MPI 5 standard ABI.
//!
//! A call from C arrives in `exports.rs`, which the build script makes from `abi/functions.csv`. It passes
//! `entry.rs`, which checks that the call is allowed now, catches panics and raises errors. Then it reaches
//! the function that `built.csv` names. That function finds the objects of the handles, calls the runtime,
//! and writes the results. A function that is not built raises `MPI_ERR_UNSUPPORTED_OPERATION`.
//!
//! The exported functions turn pointers into the types of `argument/` (in `typepack-capi-datatype`), which
//! state what the C caller promises. They are the only code that trusts the caller.
//!
//! The modules below stand in the order of their layers: each imports from its own folder and from those
//! above it. The crate `typepack-capi-datatype` is the lowest layer: constants and types of the ABI, handles,
//! datatypes.
//!
//! Invariants: before the library follows a pointer from C, it checks the pointer as far as possible. No
//! panic crosses into C. A call that fails has written only what the standard says.

pub use typepack_capi_datatype::{abi, raw};
use typepack_capi_datatype::{argument, buffer, count_width, failure, handle, status};

mod lifecycle;

mod callback;

mod error;

mod attribute;

mod info;

mod group;

mod io;
mod rma;
mod session;

mod comm;

mod datatype;

mod request;

mod p2p;

mod coll;

mod env;

mod convert;

mod entry;

pub mod compat;

mod exports;

pub use exports::*;
