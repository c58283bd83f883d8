//! Measures packing and unpacking: layouts as data, competitors behind one trait, every answer
//! verified before it is timed.
//!
//! The flow, by file: `definition/` (reads `definitions/pack.toml`) -> `layout.rs` (one layout
//! at one size: datatype, count, memory) -> `competitor/` (memcpy, interpreter, JIT, and the
//! hand-written loops) -> `prepare.rs` (page-aligned buffers from `buffer.rs`, verification
//! against the engine's oracle) -> `measure.rs` (interleaved rounds, medians) -> `report.rs`
//! (table, CSV, JSON) and `bars.rs` (what the speed must reach). `main.rs` is the command,
//! `benches/pack.rs` runs the same competitors under Criterion.
//!
//! The same flow with the reference layouts and peer MPIs (`peer/`) is `suite.rs`: its rows go to
//! `suite_report.rs`, to `summary.rs` (bars) and to `ablation.rs`. What layouts cost besides
//! packing them is beside these, in `commit/`. `record.rs` reads a dated record again, `plot/`
//! draws it. `guidelines/` holds descriptions of one layout against each other.

pub mod ablation;
pub mod bars;
pub mod buffer;
pub mod builds;
pub mod calibrate;
pub mod commit;
pub mod competitor;
pub mod definition;
pub mod face;
pub mod guidelines;
pub mod layout;
pub mod measure;
pub mod message;
pub mod peer;
pub mod pin;
pub mod plot;
pub mod prepare;
pub mod recipe;
pub mod record;
pub mod regret;
pub mod report;
pub mod results;
pub mod split;
pub mod storm;
pub mod suite;
pub mod suite_report;
pub mod summary;
pub mod touched;
