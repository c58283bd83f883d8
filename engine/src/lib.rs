//! The datatype engine: MPI derived datatypes to loop programs that move bytes.
//!
//! The flow, one room after the other:
//!
//! 1. [`Datatype`]: an immutable tree of constructor calls (`datatype/`), over the named types of
//!    [`Named`];
//! 2. [`Datatype::commit`]: lower, passes, verify, plan, as one function (`commit.rs`);
//! 3. the loop program (`ir/`) and the passes that rewrite it (`passes/`);
//! 4. [`Plan`]: program, facts, and the rung that executes each nest (`plan.rs`, [`kernel`]);
//! 5. [`pack`], [`unpack`] and their relatives, over any byte range (`pack.rs`, `exec.rs`), by
//!    compiled kernels or by the interpreter (`interp.rs`); [`copy()`] from one layout straight into
//!    another (`pair/`); a plan as bytes for peers and caches ([`wire`]).
//!
//! What a type or plan is like: [`signature`] (type matching), [`facts`], [`iov`] (runs of memory).
//!
//! [`typemap`] is the oracle that all of this is checked against. The engine knows no operating
//! system and no code generator: kernels come through [`kernel::Compiler`].
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

mod commit;
mod copy;
mod cost;
mod cursor;
mod datatype;
mod derived;
mod divide;
mod error;
mod exec;
pub mod external32;
pub mod facts;
mod footprint;
#[doc(hidden)]
pub mod inspect;
mod interp;
pub mod iov;
pub mod ir;
pub mod kernel;
mod pack;
mod pair;
#[cfg(feature = "rayon")]
mod parallel;
mod passes;
mod pieces;
mod plan;
mod position;
mod scalar;
pub mod signature;
pub mod stats;
mod table;
pub mod text;
pub mod thread;
pub mod typed;
pub mod typemap;
mod widths;
pub mod wire;

pub use copy::{Isa, ParseIsaError};
pub use cursor::Cursor;
pub use datatype::{
    Binding, Combiner, Contents, DEFAULT_ARGUMENT, Datatype, Distribution, Envelope, Form, Order,
    TypeClass, UNDEFINED,
};
pub use error::{Error, ErrorClass, ErrorKind, Result};
pub use external32::{External32, pack_external, pack_external_size, unpack_external};
pub use footprint::Footprint;
pub use kernel::Direction;
pub use pack::{check_bounds, pack, pack_range, pack_raw, unpack, unpack_range, unpack_raw};
pub use pair::{Side, copy, copy_range, copy_raw};
#[cfg(feature = "rayon")]
pub use parallel::Threads;
pub use pieces::Pieces;
pub use plan::{Plan, Rung, Settings};
pub use position::{pack_at, pack_at_raw, unpack_at, unpack_at_raw};
pub use scalar::Named;
pub use table::Table;
pub use typed::TypedProgram;
