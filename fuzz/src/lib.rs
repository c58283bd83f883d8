//! Makes random datatypes, and checks properties that every datatype must have.
//!
//! A case goes through these files:
//!
//! 1. `stream.rs` makes bytes from a seed; a fuzzer brings its own bytes.
//! 2. `generate.rs` makes a [`Case`] from the bytes: a tree of constructor calls, and a count.
//! 3. `recipe.rs` defines the tree. A tree prints as one line, which `parse.rs` reads, and builds an
//!    engine datatype.
//! 4. `model.rs` computes what the standard says about the tree, without the engine.
//! 5. `check.rs` compares engine, interpreter and JIT with the model, in memory from `guard.rs`.
//! 6. `shrink.rs` simplifies a case for which a check fails.
//!
//! Other checks of the engine: `pair.rs` makes two layouts with equal signatures, which `fused_copy.rs` and
//! `signature.rs` check; `file_view.rs` takes a layout of memory and a filetype; `decode_rebuild.rs`,
//! `wire.rs`, `text.rs` and `segments.rs` check a single case. For the runtime, `transport.rs` runs two
//! ranks while other code changes their shared memory, and `hints.rs` sets hints of files.
//!
//! The fuzz targets (`fuzz_targets/`), the tests (`tests/`) and the program of `scripts/soak`
//! (`examples/soak.rs`) call these checks. The library neither prints nor exits: a check that fails
//! returns an `Err` with the reason.
//!
//! ```
//! use typepack_fuzz::{Checker, Effort, Executors, Case};
//!
//! let case: Case = "3 * resized(-8, 64, vector(2, 1, -2, double))".parse().expect("the text must be a case");
//! let report = Checker::new(Executors::All).check(&case, Effort::Thorough).expect("there must be no fault");
//! assert_eq!(report.packed_bytes, 3 * 2 * 8);
//! ```

pub mod check;
pub mod decode_rebuild;
pub mod file_view;
pub mod fused_copy;
pub mod generate;
pub mod guard;
pub mod hints;
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
pub use file_view::ViewChecker;
pub use fused_copy::CopyChecker;
pub use generate::{Case, Mode};
pub use hints::HintChecker;
pub use model::Model;
pub use pair::Pair;
pub use recipe::Recipe;
pub use segments::SegmentChecker;
pub use shrink::shrink;
pub use stream::Stream;
pub use transport::TransportChecker;
pub use wire::WireChecker;
