//! typepack: ranks, messages and halo exchanges in shared memory, on compiled datatypes.
//!
//! A program started by `mpiexec -n N` calls [`init`] and gets the world communicator. A message carries
//! elements of any committed datatype: the program describes the layout in memory once, typepack compiles
//! it, and every send packs directly into the transport.
//!
//! ```
//! use typepack::{Datatype, Named, commit};
//!
//! let universe = typepack::init()?; // one of N ranks; without mpiexec the only rank
//! let world = universe.world();
//!
//! // Sends the first column of a 4 x 4 matrix to the next rank, which receives it as its last column.
//! let column = commit(&Datatype::vector(4, 1, 4, &Datatype::named(Named::F64))?)?;
//! let matrix: Vec<f64> = (0..16).map(f64::from).collect();
//! let mut result = matrix.clone();
//! let (rank, size) = (world.rank(), world.size());
//! world.sendrecv(
//!     &matrix, &column, 1, (rank + 1) % size, 7,
//!     &mut result[3..], &column, 1, (rank + size - 1) % size, 7,
//! )?;
//! assert_eq!(result[3..8], [0.0, 4.0, 5.0, 6.0, 4.0]);
//! # Ok::<(), typepack::Error>(())
//! ```
//!
//! The modules, from the outermost to the innermost: `world.rs` (init and finalize), `io/` (files),
//! `rma/` (windows, one-sided communication), `halo/` (exchanges on grids), `equivalence/` (Rust types with a
//! datatype), `coll/` (collective calls, construction of communicators), `region/` (memory that ranks share),
//! `comm/` (communicators, checked calls), `topo/` (the geometry of grids and graphs of ranks), `schedule/` (a
//! collective call as steps), `endpoint/` (matching, requests, the lock,
//! waiting), `transport/` (the protocols between two ranks), `message/` (labels, payloads, envelopes),
//! `memory/` (memory that other ranks can copy from in place).
//!
//! The job crate (folder `job/`) holds the parts that the launcher and the ranks share (the segment, the
//! system calls). That crate is internal and not part of this interface. The engine and the code generator
//! are separate crates.

pub mod coll;
pub mod comm;
mod commit;
mod endpoint;
pub mod equivalence;
mod error;
pub mod halo;
pub mod io;
pub mod memory;
mod message;
mod placement;
mod process_set;
mod region;
pub mod rma;
mod schedule;
mod settings;
mod status;
mod test_support;
pub mod topo;
mod transport;
pub mod tuned;
pub mod variables;
mod world;

pub use coll::{
    Cartesian, Collective, Combine, Combiner, Duplicate, Op, Operator, Part, Prepared, Reducible,
    Reduction, Root,
};
pub use comm::{
    Cancelled, Communicator, Comparison, Group, Matched, Messages, Ongoing, RankRange, Request,
    Scope, SendMode,
};
pub use commit::{commit, jit, threads};
pub use equivalence::{Buffer, BufferMut, Elements, ElementsMut, Equivalence};
pub use error::{Error, ErrorKind, FileErrorKind, Result, WindowErrorKind};
pub use memory::SharedBuffer;
pub use message::{Operation, Source, Status, TAG_UB, Tag};
pub use placement::{Cpu, Distance, Placement, Resource};
pub use process_set::ProcessSet;
pub use region::SharedRegion;
pub use topo::dims_create;
pub use typepack_engine as engine;
pub use typepack_engine::reserve::ReserveAllocator;
pub use typepack_engine::{Datatype, ErrorClass, Named, Order, Plan};
pub use typepack_jit::{Counters, Jit};
pub use world::{Universe, abort, init, processor_name, program_size, wtick, wtime};

// The modules of the job crate, under the names by which the files of this crate refer to them.
#[cfg(test)]
use typepack_job::sync;
use typepack_job::{shm, sys};

// For the fuzzers: two ranks in one process. The fuzzer can overwrite their shared memory.
#[doc(hidden)]
pub use test_support::{RankPair, RankPairWays};

/// Runs the Rust example of the README as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
