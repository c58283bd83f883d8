//! libmpi_abi.so.1: the C face of typepack, behind the MPI 5 standard ABI.
//!
//! A call from C comes in through `exports.rs` (made from `abi/functions.csv` by the build script), passes
//! `entry.rs` (whether it is allowed now, panics, raising of errors), and reaches the function that
//! `built.csv` names. These find the objects behind handles, call the runtime, and write results. What is
//! not built raises `MPI_ERR_UNSUPPORTED_OPERATION`.
//!
//! The modules stand below in the order of their layers: each imports from its own folder and from those
//! above it. First of all comes the crate `typepack-capi-datatype`, which has the ABI's constants and types,
//! handles, and datatypes.
//!
//! Invariants: nothing that C passes is followed before it has been checked as far as that is
//! possible; no panic leaves; a call that fails has written nothing but what the standard says.

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
