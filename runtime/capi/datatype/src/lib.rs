//! The datatypes of the MPI 5 standard ABI behind C handles, free of any runtime.
//!
//! The C face (`runtime/capi`) adds typepack's runtime to this crate. A library in front of another MPI can
//! use it without the runtime: this crate needs only the engine. The modules, in the order of their layers:
//!
//! 1. `abi.rs`, `raw.rs`: the ABI's constants, and its types as C passes them.
//! 2. `failure.rs`: the failure of a call. `count_width.rs`: calls with C integers and calls with large
//!    counts, written once.
//! 3. `argument/`: pointer arguments: results, arrays, strings, and what the C caller promises about them.
//!    `buffer.rs`: whether a buffer can hold the elements of a call.
//! 4. `handle/`: numbers that stand for objects of all kinds.
//! 5. `types/`: datatypes behind handles: constructors, commit, queries, decoding. The host chooses how a
//!    type is committed ([`types::commit_with`]) and what else it keeps with a type
//!    ([`types::Type::attached`]).
//! 6. `pack.rs`: packing and unpacking. `status.rs`: statuses, in bytes and in elements.
//!
//! Invariants: before the library follows a pointer from C, it checks the pointer as far as possible. A call
//! that fails has written only what the standard says.

pub mod abi;
pub mod argument;
pub mod buffer;
pub mod count_width;
pub mod failure;
pub mod handle;
pub mod pack;
pub mod raw;
pub mod status;
pub mod types;
