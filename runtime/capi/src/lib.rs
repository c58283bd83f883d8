//! libmpi_abi.so.1: the C face of typepack, behind the MPI 5 standard ABI.
//!
//! A call from C comes in through `exports.rs` (made from `abi/functions.csv` by the build script),
//! passes `door.rs` (phase, panics, raising of errors), and reaches the function that `built.csv`
//! names: `env.rs`, `info.rs`, `datatype/`, `pack.rs`, `comm/`, `group.rs`, `coll.rs`, … These find the objects behind
//! handles in `handle/`, call the runtime, and write results. What is not built raises
//! `MPI_ERR_UNSUPPORTED_OPERATION`.
//!
//! Invariants: nothing that C passes is followed before it has been checked as far as that is
//! possible; no panic leaves; a call that fails has written nothing but what the standard says.

pub mod abi;
mod array;
mod attribute;
mod buffered;
mod callback;
mod coll;
mod comm;
pub mod compat;
mod convert;
mod datatype;
mod door;
mod env;
mod error;
mod exports;
mod form;
mod fortran;
mod grequest;
mod group;
mod handle;
mod info;
mod message;
mod op;
mod out;
mod p2p;
mod pack;
mod phase;
mod process;
pub mod raw;
mod request;
mod status;
mod text;
mod version;

pub use exports::*;
