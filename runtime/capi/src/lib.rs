//! libmpi_abi.so.1: the C face of typepack, behind the MPI 5 standard ABI.
//!
//! C calls a function of `exports.rs`, which the build script generates from `abi/functions.csv`. The
//! exported function calls `entry.rs`, which checks that the call is allowed at this stage of the process,
//! catches panics and calls error handlers. `entry.rs` calls the implementation, the function that
//! `abi/built.csv` names. The implementation finds the objects of the handles, calls the runtime, and writes
//! the results. A function that is not implemented fails with `MPI_ERR_UNSUPPORTED_OPERATION`.
//!
//! The exported functions turn pointers into the types of `argument/` (in `typepack-capi-datatype`). These
//! types state what the C caller promises about each pointer. Only the exported functions rely on these
//! promises without a check.
//!
//! The modules below are listed in the order of their layers. Each module imports only from its own folder
//! and from the modules above it in this list. The crate `typepack-capi-datatype` is the lowest layer, and
//! has the constants and types of the ABI, the handles, and the datatypes.
//!
//! Three invariants hold. Before the library reads or writes memory through a pointer from C, it checks
//! what it can check: that the pointer is not null or, for a buffer of elements, that memory can exist at
//! the addresses of the elements. No panic crosses into C. A call that fails has written only the results
//! that the standard names for a failed call.

pub use typepack_capi_datatype::{abi, raw};
use typepack_capi_datatype::{argument, buffer, count_width, failure, handle, status};

mod lifecycle;

mod front;

mod callback;

mod error;

mod ordered;

mod attribute;

mod info;

mod group;

mod comm;

mod datatype;

mod request;

mod p2p;

mod partitioned;

mod io;

mod topo;

mod coll;

mod win;

mod env;

mod session;

mod tools;

mod convert;

mod entry;

mod helper;

pub mod compat;

pub mod debugger;

mod exports;

pub mod entries;

pub use exports::*;

/// A call that runs out of memory returns `MPI_ERR_NO_MEM` (`entry.rs`).
#[global_allocator]
static ALLOCATOR: typepack::ReserveAllocator = typepack::ReserveAllocator;
