//! Measures packing, messages, collectives and accesses to files. Data files define most layouts, the
//! competitors for packing implement one trait, and every answer is verified before the calls are timed.
//!
//! Terms: a *competitor* packs and unpacks a layout, for example memcpy, the engine, or a hand-written
//! loop; a *peer* is another MPI. A *row* of packing is one layout at one size in one direction, with a
//! *figure* for each competitor. In every *round* of a measurement, each competitor takes one *turn*. A figure is
//! *steady* if its turns differ little (`row::STEADY`). A *bar* is a limit that the project requires.
//! The *oracle* is the engine's naive walk over the typemap, which gives the right answers.
//!
//! All measurements are rows (`row/`): one type from the run through the bars, the table and the record to the
//! picture.
//!
//! The flow of `typepack-bench pack`, by file: `definition/` (reads `definitions/pack.toml`) ->
//! `layout.rs` (one layout at one size: datatype, count, memory) -> `competitor/` (memcpy, interpreter,
//! JIT, and the hand-written loops) -> `prepare.rs` (page-aligned buffers from `buffer.rs`, verification
//! against the engine's oracle) -> `load.rs` (what other programs do) -> `measure.rs` (interleaved rounds, medians) ->
//! `report.rs` (the table, row by row). `main.rs` is the command. `benches/pack.rs` measures
//! the same competitors with Criterion.
//!
//! `suite.rs` runs the same flow with the reference layouts and with peers (`peer/`). `summary.rs` prints its rows and
//! the bars, and `ablation.rs` compares the kinds of kernels. `levels.rs` judges each instruction set of the machine
//! against hand loops that are compiled for the same set (`typepack-bench pack --isa`). `message/` measures messages,
//! collectives, one-sided communication and jobs, `files/` accesses to files. `model/` predicts what typepack's
//! interposer gains in a halo exchange on many ranks. `regret/` and `message/regret/` compare free choices with forced
//! ones. `commit/` measures what a layout costs apart from packing in one call. `guidelines/` compares descriptions of
//! the same layout. `record.rs` reads the tables of a dated record; `plot/` draws it, and `results/` writes
//! `RESULTS.md` from the records. `builds/` compares two builds of typepack.

pub mod ablation;
pub mod buffer;
pub mod builds;
pub mod calibrate;
pub mod commit;
pub mod competitor;
pub mod definition;
pub mod face;
pub mod files;
pub mod guidelines;
pub mod layout;
pub mod levels;
pub mod load;
pub mod measure;
pub mod message;
pub mod model;
pub mod peer;
pub mod pin;
pub mod plot;
pub mod prepare;
pub mod recipe;
pub mod record;
pub mod regret;
pub mod report;
pub mod results;
pub mod row;
pub mod split;
pub mod storm;
pub mod suite;
pub mod summary;
pub mod touched;
