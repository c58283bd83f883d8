//! Random datatypes, and checks that every datatype must pass.
//!
//! The flow, by file: `stream.rs` (seeded bytes; a fuzzer brings its own) -> `generate.rs` (makes a
//! [`Case`] of bytes: a tree and a count) -> `recipe.rs` (the tree, printed as one line and built into
//! an engine datatype), `parse.rs` (parses the line) -> `model.rs` (the standard's definition of the
//! tree, computed without the engine) -> `check.rs` (compares engine, interpreter and JIT with the
//! model, in memory from `guard.rs`) -> `shrink.rs` (the smallest case that still fails).
//!
//! For the engine's other folders: `pair.rs` makes two layouts with equal signatures, which
//! `fused_copy.rs` and `signature.rs` check; `decode_rebuild.rs`, `wire.rs`, `text.rs` and `segments.rs`
//! check a single case. For the runtime: `transport.rs` runs two ranks in hostile memory.
//!
//! The fuzz targets (`fuzz_targets/`), the property tests (`tests/`) and the campaign
//! (`examples/soak.rs`) are glue around these checks. The library neither prints nor exits: a failed
//! check is an `Err` with the reason.
//!
//! ```
//! use typepack_fuzz::{Checker, Effort, Executors, Case};
//!
//! let case: Case = "3 * resized(-8, 64, vector(2, 1, -2, double))".parse().expect("the text is not a case");
//! let report = Checker::new(Executors::All).check(&case, Effort::Thorough).expect("the check found a fault");
//! assert_eq!(report.packed_bytes, 3 * 2 * 8);
//! ```

pub mod check;
pub mod decode_rebuild;
pub mod fused_copy;
pub mod generate;
pub mod guard;
pub mod model;
pub mod pair;
pub mod parse;
pub mod recipe;
pub mod segments;
pub mod shrink;
pub mod signature;
pub mod stream;
pub mod text;
pub mod transport;
pub mod wire;

pub use check::{Checker, Effort, Executors, Report};
pub use fused_copy::CopyChecker;
pub use generate::{Case, Mode};
pub use model::Model;
pub use pair::Pair;
pub use recipe::Recipe;
pub use segments::SegmentChecker;
pub use shrink::shrink;
pub use stream::Stream;
pub use transport::TransportChecker;
pub use wire::WireChecker;
