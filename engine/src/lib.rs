//! The datatype engine: turns MPI derived datatypes into loop programs that move bytes.
//!
//! The path from a type to moved bytes, folder by folder:
//!
//! 1. [`Datatype`] is an immutable tree of constructor calls (`datatype/`). Its leaves are the named
//!    types of [`Named`].
//! 2. [`Datatype::commit`] turns a tree into a plan (`commit.rs`). It lowers the tree to a program,
//!    runs the passes, verifies the result and makes the plan.
//! 3. `ir/` defines the loop program, and the passes in `passes/` rewrite it.
//! 4. [`Plan`] contains the program, facts about it, and the strategy that executes each nest
//!    (`plan/`, [`kernel`]).
//! 5. [`pack`], [`unpack`] and their variants execute a plan for any range of packed bytes (`pack/`,
//!    `exec/`). They use compiled kernels, leaf kernels or the interpreter (both in the crate
//!    `typepack-leaf`). [`copy()`] moves data from one layout straight into another
//!    (`transfer/`). [`wire`] encodes a plan as bytes for peers and caches.
//!
//! [`analysis`] describes types and plans: [`signature`] for type matching, [`iov`] for the list of
//! runs of memory, and other facts.
//!
//! [`typemap`] is the oracle: a slow, simple implementation that the tests compare with everything
//! above. The engine uses no operating system interface and contains no code generator. The caller
//! provides compiled kernels through [`kernel::Compiler`].
//!
//! ```
//! use typepack_engine::{Datatype, Named, pack, unpack};
//!
//! // The second column of a 3 x 4 matrix of doubles.
//! let double = Datatype::named(Named::F64);
//! let column = Datatype::vector(3, 1, 4, &double)?.commit()?;
//! let matrix: Vec<f64> = (0..12).map(f64::from).collect();
//!
//! let mut packed = [0u8; 24];
//! pack(&column, 1, &matrix[1..], &mut packed)?;
//! assert_eq!(packed[8..16], 5f64.to_ne_bytes());
//!
//! let mut copy = vec![0f64; 12];
//! unpack(&column, 1, &packed, &mut copy[1..])?;
//! assert_eq!((copy[1], copy[5], copy[9], copy[2]), (1.0, 5.0, 9.0, 0.0));
//! # Ok::<(), typepack_engine::Error>(())
//! ```

// The modules in layers, from the lowest layer to the highest. A file imports only from its own folder
// and from modules that come earlier in this list.
pub mod attention;
mod error;
mod named;
pub mod reserve;
pub mod thread;

pub mod choice;
pub mod contiguous;

mod datatype;
pub mod text;

pub mod ir;
pub mod kernel;

mod passes;

mod plan;

pub mod analysis;

mod exec;
mod transfer;

pub mod external32;
pub mod wire;

mod commit;
mod pack;

pub mod view;

pub mod typemap;

#[doc(hidden)]
pub mod inspect;

pub use analysis::cursor::Cursor;
pub use analysis::{iov, signature};
pub use datatype::{
    Binding, Combiner, Contents, DEFAULT_ARGUMENT, Datatype, Distribution, Envelope, Form, Order,
    TypeClass, UNDEFINED,
};
pub use error::{Error, ErrorClass, ErrorKind, Result};
pub use exec::{Elements, pack_raw, stats, unpack_raw};
pub use external32::{External32, pack_external_size};
pub use ir::typed;
pub use ir::typed::TypedProgram;
pub use kernel::Direction;
pub use named::Named;
pub use pack::external::{
    pack_external, pack_external_range, unpack_external, unpack_external_range,
};
pub use pack::position::{pack_at, pack_at_raw, unpack_at, unpack_at_raw};
#[cfg(feature = "rayon")]
pub use pack::threads::Threads;
pub use pack::{pack, pack_range, unpack, unpack_range};
pub use plan::footprint::{Footprint, check_bounds};
pub use plan::segments::Segments;
pub use plan::{Plan, Settings, Strategy, Uses};
#[doc(hidden)]
pub use transfer::memo::prepare_thread;
pub use transfer::{Side, copy, copy_apart_raw, copy_range, copy_raw};
pub use typepack_leaf::{Isa, ParseIsaError, Table};
pub use view::FileView;
