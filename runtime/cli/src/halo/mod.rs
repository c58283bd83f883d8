//! `typepack halo`: the 3-D heat equation on all ranks, and where its time goes.
//!
//! In the order in which a run needs them: `options.rs` the arguments, `decomposition.rs` the cut
//! into blocks, `initial.rs` (with `npy.rs`) the field at time 0, `blocks.rs` to deal it out,
//! `solver.rs` over `cell.rs` the computation, `serial.rs` and `verdict.rs` the proof, `measure.rs`,
//! `report.rs` and `plot.rs` the result; `job.rs` does them in this order.

mod blocks;
mod cell;
mod decomposition;
mod initial;
mod job;
mod measure;
mod npy;
mod options;
mod plot;
mod report;
mod serial;
mod solver;
mod verdict;

pub use job::run;
pub use options::Options;
