//! The parts that the launcher and the ranks of a job share. This is an internal crate of typepack, not an
//! interface for programs.
//!
//! `mpiexec` and the runtime (`typepack`) use this crate. It does not know datatypes, messages or
//! communicators, and depends on neither the engine nor the code generator. Its items are public so that
//! these two crates can use them; many give access to other processes, or to memory that other processes
//! write. Programs use `typepack`, which exposes none of them.
//!
//! The folders are layers. Each one imports only from itself and from those before it:
//!
//! 1. `error`: the one error of this crate, with a kind that the runtime maps to an MPI class;
//! 2. [`sys`]: every system call, one file per facility of the kernel;
//! 3. [`sync`]: the atomics that two processes share, behind traits that loom can implement;
//! 4. [`shm`]: the segment, its layout, rings, chunks, doorbells, heaps.

mod error;
pub mod shm;
pub mod sync;
pub mod sys;

pub use error::{Error, ErrorKind};
