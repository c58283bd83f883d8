//! What the launcher and the ranks of a job share: an internal crate of typepack, no interface for
//! programs.
//!
//! `mpiexec` and the runtime (`typepack`) are built on it. It knows nothing of datatypes, messages
//! or communicators, and depends on neither the engine nor the code generator. Its items are public
//! so that these two crates can use them; many give access to memory that other processes write, or
//! to other processes. Programs use `typepack`, which shows none of it.
//!
//! The rooms are layers; each imports only from its own folder and from those before it:
//!
//! 1. `error`: the one error of this crate, with a kind that the runtime maps to an MPI class;
//! 2. [`sys`]: every system call, one file per facility of the kernel;
//! 3. [`sync`]: the atomics that two processes share, behind traits that loom stands in for;
//! 4. [`shm`]: the segment, what lies where in it, rings, chunks, doorbells, heaps.

mod error;
pub mod shm;
pub mod sync;
pub mod sys;

pub use error::{Error, ErrorKind};
