//! `libmpi.so.12`: what programs call that were compiled for MPICH's ABI (MPICH 3.1 or newer, Intel MPI, MVAPICH).
//!
//! The library has MPICH's handles, constants, structs and symbols, and no implementation of its own: each function
//! converts its arguments, calls a function of `libmpi_abi.so.1` through a table, and converts the results. It never calls
//! a function by its `MPI_` name, which may be that of a tool.
//!
//! The modules, in the order of their layers:
//!
//! 1. `raw.rs`: the C types of the standard ABI. `number.rs`, `values.rs`, `arguments.rs`: constants of both ABIs, and where
//!    they stand. `code.rs`, `handle.rs`: error codes and handles.
//! 2. `array.rs`: arrays of handles and numbers. `status.rs`, `buffer.rs`, `text.rs`: statuses, sentinels of buffers,
//!    strings.
//! 3. `mixture.rs`: a program of both ABIs. `shown.rs`: error texts. `panics.rs`: faults of this library. `entries.rs`: the
//!    table of the C functions. `guard.rs`: faults become errors. `attribute.rs`: values of predefined attributes.
//!    `peers.rs`: lengths of arrays that no argument tells.
//! 4. `exports.rs`: the functions, made by `build.rs` from `runtime/capi/abi/functions.csv` and
//!    `runtime/capi/abi/mpich_rules.csv`. `hand.rs`: those that the tables do not describe.

mod number;
mod raw;
mod values;

mod arguments;

mod code;
mod handle;

mod array;
mod buffer;
mod status;
mod text;

mod attribute;
mod entries;
mod guard;
mod mixture;
mod panics;
mod peers;
mod shown;

mod exports;
mod hand;
