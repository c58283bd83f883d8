//! typepack: ranks, messages and halo exchanges in shared memory, on compiled datatypes.
//!
//! A program started by `mpiexec -n N` calls [`init`] and gets the world communicator. A message carries
//! elements of any committed datatype: the program describes the layout in memory once, typepack compiles
//! it, and every send packs directly into the transport.
//!
//! ```
//! use typepack::{Datatype, Elements, ElementsMut, Named, commit};
//!
//! let universe = typepack::init()?; // one of N ranks; without mpiexec the only rank
//! let world = universe.world();
//!
//! // Sends the first column of a 4 x 4 matrix to the next rank, which receives it as its last column.
//! let column = commit(&Datatype::vector(4, 1, 4, &Datatype::named(Named::F64))?)?;
//! let matrix: Vec<f64> = (0..16).map(f64::from).collect();
//! let mut result = matrix.clone();
//! let (rank, size) = (world.rank(), world.size());
//! let first = Elements::new(&matrix, &column, 1);
//! let mut last = ElementsMut::new(&mut result[3..], &column, 1);
//! world.sendrecv(&first, (rank + 1) % size, 7, &mut last, (rank + size - 1) % size, 7)?;
//! assert_eq!(result[3..8], [0.0, 4.0, 5.0, 6.0, 4.0]);
//! # Ok::<(), typepack::Error>(())
//! ```
//!
//! | I want to … | call | example in `runtime/examples/rust/` |
//! |---|---|---|
//! | join the job | [`init`], [`Universe::world`] | every one |
//! | describe a layout in memory | [`Datatype`], [`commit`], or text: `"vector(4, 1, 4, double)".parse()` | `shift_column.rs` |
//! | send a value, a slice, a struct, a layout | [`send`](Communicator::send), [`recv`](Communicator::recv), [`sendrecv`](Communicator::sendrecv), [`recv_vec`](Communicator::recv_vec) | `ring.rs`, `shift.rs` |
//! | send structs of my own | [`#[derive(Equivalence)]`](Equivalence) | `particles.rs` |
//! | send parts of arrays without copying them first | [`Elements`], or views of `ndarray` (feature `ndarray`) | `views.rs` |
//! | go on while messages travel | [`Communicator::scope`], then [`isend`](Scope::isend), [`irecv`](Scope::irecv) | `immediate.rs` |
//! | give all ranks the same data | [`broadcast`](Communicator::broadcast) | `collectives.rs` |
//! | add up, compare, combine over all ranks | [`all_reduce_value`](Communicator::all_reduce_value), [`all_reduce`](Communicator::all_reduce), [`reduce`](Communicator::reduce), [`scan`](Communicator::scan) | `collectives.rs` |
//! | collect or distribute parts | [`gather`](Communicator::gather), [`scatter`](Communicator::scatter), [`all_gather`](Communicator::all_gather), [`all_to_all`](Communicator::all_to_all) | `collectives.rs`, `distributed.rs` |
//! | work with fewer ranks | [`split`](Communicator::split), [`create`](Communicator::create) | |
//! | arrange ranks in a grid and exchange halos | [`cartesian`](Communicator::cartesian), [`halo`] | `halo.rs`, `stencil.rs` |
//! | let threads send and receive parts of one message | [`partitioned_send`](Communicator::partitioned_send), [`partitioned_receive`](Communicator::partitioned_receive) | |
//! | write or read a file together | [`io`] | `array.rs`, `checkpoint.rs` |
//! | let other ranks read and write my memory | [`rma`] | `queue.rs` |
//! | wait for all ranks | [`barrier`](Communicator::barrier) | |
//!
//! Calls that end in `_elements` take the slice, the plan and the number of elements apart, as C does. A [`Cartesian`]
//! grid has all calls of a [`Communicator`].
//!
//! # Features
//!
//! - `jit` (default): the code generator. Without it, leaf kernels and the interpreter move all data.
//! - `ndarray`: arrays and views are buffers. Use the crate as [`typepack::ndarray`](crate#reexports), so that both
//!   have the same version.
//!
//! For contributors: `runtime/README.md` describes the modules.

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
pub mod partitioned;
mod placement;
mod process;
mod process_set;
mod processes;
mod region;
mod request;
pub mod rma;
mod schedule;
mod settings;
mod status;
mod test_support;
pub mod tools;
pub mod topo;
mod transport;
pub mod tuned;
pub mod variables;
mod world;

pub use coll::{
    Cartesian, Collective, Combine, Combiner, Duplicate, Op, Operator, Prepared, Reducible,
    Reduction, Root,
};
pub use comm::{
    Cancelled, Communicator, Comparison, Group, Matched, Messages, Ongoing, RankRange, Request,
    Scope, SendMode,
};
#[cfg(feature = "jit")]
pub use commit::jit;
pub use commit::{commit, plans_at_commit, threads};
pub use equivalence::{Buffer, BufferMut, Elements, ElementsMut, Equivalence};
pub use error::{Error, ErrorKind, FileErrorKind, ProcessErrorKind, Result, WindowErrorKind};
pub use memory::{SharedBuffer, give_back_memory};
pub use message::{Operation, Source, Status, TAG_UB, Tag};
#[cfg(feature = "ndarray")]
pub use ndarray;
#[doc(inline)]
pub use placement::Distance;
pub use placement::{Cpu, Placement, Resource};
pub use process_set::ProcessSet;
pub use processes::{Command, Spawned};
pub use region::SharedRegion;
pub use topo::dims_create;
pub use typepack_engine as engine;
pub use typepack_engine::reserve::ReserveAllocator;
pub use typepack_engine::{Datatype, ErrorClass, Named, Order, Plan};
#[cfg(feature = "jit")]
pub use typepack_jit::{Counters, Jit};
pub use world::{Universe, abort, init, processor_name, program_size, wtick, wtime};

// The modules of the job crate, under the names by which the files of this crate refer to them.
#[cfg(test)]
use typepack_job::sync;
use typepack_job::{shm, starter, sys};

// For the C library.
#[doc(hidden)]
pub use world::prints_all_errors;
// For the C library: it describes datatypes as this process packs them.
#[doc(hidden)]
pub use commit::engine_settings;
// For the C library: each of its functions stores its name.
#[doc(hidden)]
pub use endpoint::call::{enter as enter_call, enter_of_thread as enter_call_of_thread};

// For the fuzzers: two ranks in one process. The fuzzer can overwrite their shared memory.
#[doc(hidden)]
pub use test_support::{RankPair, RankPairWays};

/// Runs the program of the guide's page about Rust as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../guide/tutorial/rust.md")]
struct Guide;
