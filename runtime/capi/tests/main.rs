//! The tests of the C library: one program, so that it is linked once.

mod hangs;
#[path = "../../tests/job/mod.rs"]
#[expect(dead_code, reason = "the part that runs bodies in Rust")]
mod job;
mod program;

mod c;
mod cxx;
mod debugger;
mod header;
mod hostile;
mod settings;
mod spawn;
