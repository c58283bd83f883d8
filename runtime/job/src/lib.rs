//! The parts that the launcher and the ranks of a job share. This is an internal crate of typepack, not an
//! interface for programs.
//!
//! `mpiexec` and the runtime (`typepack`) use this crate. The crate contains nothing about datatypes,
//! messages or communicators, and depends on neither the engine nor the code generator. Its items are public
//! only so that `mpiexec` and the runtime can use them; many of the items give access to other processes, or
//! to memory that other processes write. Programs use `typepack`, which exposes none of these items.
//!
//! The modules form layers. Each module imports only from itself and from modules earlier in this list:
//!
//! 1. `error`: the error type of this crate; the runtime maps the kind of an error to an MPI error class;
//! 2. [`quote`]: words for a shell;
//! 3. [`sys`]: every system call, one file per facility of the kernel;
//! 4. [`program`]: which MPI library a program is linked with; `mpiexec` and `typepack run` use it;
//! 5. [`service`]: what ranks ask `mpiexec` to do while the job runs;
//! 6. [`sync`]: traits for the atomics that two processes share, so that loom tests can replace them with
//!    loom's own atomics;
//! 7. [`shm`]: the segment, its layout, and the rings, chunks, doorbells and heaps in it.

mod error;
pub mod program;
pub mod quote;
pub mod service;
pub mod shm;
pub mod starter;
pub mod sync;
pub mod sys;

pub use error::{Error, ErrorKind};
