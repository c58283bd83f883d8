//! `libmpifort_abi.so.1`: what Fortran programs call. The library contains no Fortran code, and calls only the C
//! functions of the MPI 5 standard ABI (and functions of MPI-1 where the library has them), so that it is not bound to
//! typepack.
//!
//! The modules, in the order of their layers:
//!
//! 1. `raw.rs`: the C types. `abi.rs`: the C functions, made by `build.rs`.
//! 2. `sentinel.rs`: what Fortran tells by an address (`MPI_IN_PLACE`). `handle.rs`: handles as integers. `index.rs`,
//!    `text.rs`, `attribute.rs`: numbers, strings, values of attributes. `outcome.rs`: the error code.
//! 3. `refusal.rs`: errors that the library finds itself. `version.rs`: with which modules the program was compiled.
//!    `lifecycle.rs`: what happens after init and before finalize.
//! 4. `callback.rs`: C functions that call Fortran functions whose object has an extra state; `slots.rs`: for those
//!    without one.
//! 5. `descriptor.rs`: an array as Fortran passes it; `layout.rs`: where the bytes of a datatype lie; `shape.rs`: an array section as a datatype; `section.rs`: choice
//!    buffers by descriptor.
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

mod lifecycle;
mod refusal;
mod version;

mod callback;
mod slots;

mod descriptor;
mod layout;
mod section;
mod shape;

mod exports;
mod hand;
mod probe;
mod removed;
