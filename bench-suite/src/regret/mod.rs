//! Regret: how much more time the free choice takes than the best of the ways among which it chooses.
//!
//! `policy.rs` measures the compilation policy against two fixed choices: never compile, and compile at
//! commit. `kernels.rs` measures the free choice of a kernel against forced leaf kernels and forced compiled
//! kernels. `../message/regret/` does the same for the ways of long messages, and `../files/regret.rs` for
//! the ways of accesses to files. All three use `judge.rs`, which picks the best way on one half of the
//! rounds and times it on the other half. `report.rs` prints the rows, and `verdict.rs` compares
//! them with the bars.
//!
//! `../suite.rs` measures the policy for `typepack-bench peers`; `typepack-bench regret` measures everything.

pub mod judge;
pub mod kernels;
mod policy;
pub mod report;
pub mod verdict;

pub use policy::{LAYOUTS, NAME, Regret, USES, measure};
