//! The tests of the engine: one program, so that it is linked once. A test that counts allocations has a program of its
//! own (`wire_memory.rs`).

#[path = "golden/ddtbench.rs"]
mod ddtbench;
mod handmade;
mod layouts;
mod random;
mod walk;

mod agree;
mod analysis;
mod darray;
mod decode;
mod external32;
mod golden;
mod iov;
mod lecture;
mod mpi22;
mod program;
mod refusals;
mod segments;
mod signature;
mod text;
mod transfer;
mod view;
mod wire;
