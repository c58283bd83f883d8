//! The datatypes of the MPI 5 standard ABI behind C handles. This crate contains no MPI runtime.
//!
//! The C face (`runtime/capi`) adds typepack's runtime to this crate. This crate itself needs only the
//! engine, so a library that passes calls on to another MPI can use it without typepack's runtime. The host
//! is the library that uses this crate. The modules, in the order of their layers:
//!
//! 1. `abi.rs`, `raw.rs`: the ABI's constants, and its types as C passes them.
//! 2. `failure.rs`: the failure of a call. `count_width.rs`: the two widths of counts, so that one generic
//!    function serves a call with C integers and its form with large counts.
//! 3. `argument/`: pointer arguments (for results, arrays and strings), and what the C caller promises
//!    about them. `buffer.rs`: checks the count of a call's buffer, and whether memory can exist at the addresses of
//!    its elements.
//! 4. `handle/`: handles, which are numbers that stand for objects of any kind.
//! 5. `types/`: datatypes behind handles: constructors, commit, queries, decoding. The host can supply the
//!    function that commits a type ([`types::serve_with`]), and can attach data of its own to a type
//!    ([`types::Type::attached`]).
//! 6. `pack.rs`: packing and unpacking. `status.rs`: statuses, in bytes and in elements.
//!
//! Two invariants hold. Before the library reads or writes memory through a pointer from C, it checks what
//! it can check: that the pointer is not null or, for a buffer of elements, that memory can exist at the
//! addresses of the elements. A call that fails has written only the results that the standard names for a
//! failed call.

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
