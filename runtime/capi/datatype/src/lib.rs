//! The datatypes of the MPI 5 standard ABI behind C handles, free of any runtime.
//!
//! The C face (`runtime/capi`) stands on this crate with our runtime below it; a library in front of
//! another MPI can stand on it with nothing below but the engine. In this order:
//!
//! 1. `abi.rs`, `raw.rs`: the ABI's constants, and its types as C passes them.
//! 2. `failure.rs`: what a call that fails says. `count_width.rs`: calls with C integers and calls with
//!    large counts, written once.
//! 3. `argument/`: pointer arguments: results, arrays, strings, and what the C caller promises about them.
//!    `buffer.rs`: whether a buffer can hold the elements of a call.
//! 4. `handle/`: numbers that stand for objects, of all kinds.
//! 5. `types/`: datatypes behind handles: made, committed, asked, taken apart. How a type is committed is
//!    the host's choice ([`types::commit_with`]); so is what else hangs on it ([`types::Type::attached`]).
//! 6. `pack.rs`: packing and unpacking. `status.rs`: what a status says, in bytes and in elements.
//!
//! Invariants: nothing that C passes is followed before it has been checked as far as that is possible;
//! a call that fails has written nothing but what the standard says.

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
