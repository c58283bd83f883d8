//! Random datatypes, and the checks that hold for all of them.
//!
//! The flow, by file: `stream.rs` (seeded bytes; a fuzzer brings its own) -> `generate.rs` (bytes
//! to a [`Case`]: a tree and a count) -> `recipe.rs` (the tree, printed as one line and built into
//! an engine datatype), `parse.rs` (the line back to a tree) -> `model.rs` (what the standard says
//! about the tree, computed without the engine) -> `check.rs` (engine, interpreter and JIT against
//! the model, in memory from `guard.rs`) -> `shrink.rs` (the smallest case that still fails).
//!
//! The fuzz targets (`fuzz_targets/`) and the property tests (`tests/`) are glue around
//! [`Checker::check`]. Nothing here prints or exits: a failed check is an `Err` with the reason.
//!
//! ```
//! use typepack_fuzz::{Checker, Effort, Executors, Case};
//!
//! let case: Case = "3 * resized(-8, 64, vector(2, 1, -2, double))".parse().expect("a case");
//! let report = Checker::new(Executors::All).check(&case, Effort::Thorough).expect("no difference");
//! assert_eq!(report.packed_bytes, 3 * 2 * 8);
//! ```

pub mod check;
pub mod generate;
pub mod guard;
pub mod model;
pub mod parse;
pub mod recipe;
pub mod shrink;
pub mod stream;

pub use check::{Checker, Effort, Executors, Report};
pub use generate::{Case, Mode};
pub use model::Model;
pub use recipe::Recipe;
pub use shrink::shrink;
pub use stream::Stream;
