//! `libmpifort_abi.so.1`: what Fortran programs call. The library contains no Fortran code, and calls only the C
//! functions of the MPI 5 standard ABI (and a few others where the library has them), so that it is not bound to
//! typepack.
//!
//! The modules, in the order of their layers:
//!
//! 1. `raw.rs`: the C types. `abi.rs`: the C functions, made by `build.rs`.
//! 2. `sentinel.rs`: what Fortran tells by an address (`MPI_IN_PLACE`). `handle.rs`: handles as integers. `index.rs`,
//!    `text.rs`, `attribute.rs`: numbers, strings, values of attributes. `outcome.rs`: the error code.
//! 3. `cast.rs`: addresses as functions, of the program and of the library below. `refusal.rs`: errors that the library
//!    finds itself. `version.rs`: with which modules the program was compiled, when the library is loaded.
//!    `lifecycle.rs`: what happens after init and before finalize.
//! 4. `callback.rs`: C functions that call Fortran functions whose object has an extra state; `slots.rs`: for those
//!    without one.
//! 5. `descriptor.rs`: an array as Fortran passes it; `layout.rs`: where the bytes of a datatype lie; `shape.rs`: an
//!    array section as a datatype; `section.rs`: choice buffers by descriptor. `span.rs`: the bytes that a call takes of a
//!    buffer of several blocks; `loan.rs`: a copy of a section for such a call; `pending.rs`: the copies of operations
//!    that go on.
//! 6. `hand.rs`: routines that the tables do not describe. `probe.rs`: what the probe of `mpifort` asks. `removed.rs`:
//!    names that MPI-3.0 removed. `exports.rs`: all others, made by `build.rs` from `runtime/capi/abi/functions.csv` and
//!    `runtime/capi/abi/fortran.csv`.

mod abi;
mod raw;

mod attribute;
mod handle;
mod index;
mod outcome;
mod sentinel;
mod text;

mod cast;
mod lifecycle;
mod refusal;
mod version;

mod callback;
mod slots;

mod descriptor;
mod layout;
mod loan;
mod pending;
mod section;
mod shape;
mod span;

mod exports;
mod hand;
mod probe;
mod removed;
