//! The tests of the library with MPICH's ABI: one program, so that it is linked once.
//!
//! The library itself can only be loaded by a C program. Its conversions are also modules of this program.

#![allow(dead_code, reason = "the tests use only some of the library's functions")]

#[path = "../src/number.rs"]
mod number;
#[path = "../src/raw.rs"]
mod raw;
#[path = "../src/values.rs"]
mod values;

#[path = "../src/arguments.rs"]
mod arguments;

#[path = "../src/code.rs"]
mod code;
#[path = "../src/handle.rs"]
mod handle;

#[path = "../src/array.rs"]
mod array;
#[path = "../src/buffer.rs"]
mod buffer;
#[path = "../src/status.rs"]
mod status;
#[path = "../src/text.rs"]
mod text;

#[path = "../src/panics.rs"]
mod panics;
#[path = "../src/shown.rs"]
mod shown;

mod conversions;
mod header;
mod programs;
