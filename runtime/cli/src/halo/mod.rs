//! `typepack halo`: solves the 3-D heat equation on all ranks and measures the time of each phase.
//!
//! `job.rs` controls a run. It uses the other files in the order of this list. `options.rs` has the
//! arguments. `decomposition.rs` cuts the grid into blocks. `initial.rs` (with `npy.rs`) has the fields at
//! time 0, and `blocks.rs` distributes them. `solver.rs` (with `cell.rs`, `hand.rs` and `loops.rs`) has the
//! computation. `checkpoint.rs` (with `header.rs`) writes the fields to a file and reads them. `serial.rs` and
//! `verdict.rs` verify the result. `measure.rs`, `report.rs` and `plot.rs` measure and show the times.

mod blocks;
mod cell;
mod checkpoint;
mod decomposition;
mod hand;
mod header;
mod initial;
mod job;
mod loops;
mod measure;
mod npy;
mod options;
mod plot;
mod report;
mod serial;
mod solver;
mod verdict;

pub use hand::Hand;
pub use job::run;
#[cfg(test)]
pub use loops::Loops;
pub use loops::{Packing, Whole};
pub use measure::exchange_alone;
pub use options::{Options, Way};
