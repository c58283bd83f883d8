//! typepack: ranks, messages and halo exchanges in shared memory, on compiled datatypes.
//!
//! A program started by `mpiexec -n N` calls [`init`] and gets the world communicator. Messages
//! carry any committed datatype: the layout in memory is described once, compiled, and packed
//! straight into the transport.
//!
//! ```
//! use typepack::{Datatype, Named, commit};
//!
//! let universe = typepack::init()?; // one of N ranks; without mpiexec the only one
//! let world = universe.world();
//!
//! // The first column of a 4 x 4 matrix goes to the next rank, into its last column.
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
//! The rooms, from the outside in: `world.rs` (beginning and end), `comm/` and `coll/` (checked
//! calls), `halo/` (exchanges on grids), `memory.rs` (what ranks can copy from in place), `progress.rs` (the lock, and how calls wait), `endpoint/`
//! (matching), `transport/` (the protocols between two ranks), `message/` (labels, data, words of the wire).
//! What launcher and ranks share (the segment, system calls) is the crate in `job/`, internal and no
//! part of this interface. The engine and the code generator are crates of their own.

pub mod coll;
pub mod comm;
mod commit;
mod endpoint;
mod error;
pub mod halo;
pub mod memory;
mod message;
mod placement;
mod progress;
mod region;
mod settings;
mod status;
mod test_support;
mod transport;
pub mod variables;
mod world;

pub use coll::{Combine, Combiner, NoCombiner, Op, Operator, Part, Reducible};
pub use comm::{
    Cartesian, Communicator, Comparison, Group, Matched, Messages, Ongoing, RankRange, Request,
    Scope, SendMode, dims_create,
};
pub use commit::{commit, jit, threads};
pub use error::{Error, ErrorKind, Result};
pub use memory::SharedBuffer;
pub use message::{Operation, Source, Status, TAG_UB, Tag};
pub use placement::{Cpu, Distance, Placement};
pub use region::SharedRegion;
pub use typepack_engine as engine;
pub use typepack_engine::{Datatype, ErrorClass, Named, Order, Plan};
pub use typepack_jit::{Counters, Jit};
pub use world::{Universe, abort, init, processor_name, wtick, wtime};

// The job crate's rooms, under the names that this crate's files use.
use typepack_job::{shm, sync, sys};

// For the fuzzers: two ranks in one process, and a hand in their memory. Unsafe to make.
#[doc(hidden)]
pub use test_support::{RankPair, RankPairWays};

/// The README's lines of Rust, run with the other examples.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
