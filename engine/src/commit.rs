//! Commits a datatype: turns its tree into a plan.
//!
//! A commit has three steps. `ir/lower.rs` lowers the tree to a loop program. `passes/pipeline.rs`
//! runs the passes and verifies the resulting program. `plan/` makes the plan from the program.
//! `exec/` executes plans.

use crate::datatype::Datatype;
use crate::error::Result;
use crate::passes::pipeline;
use crate::plan::{Plan, Settings};

impl Datatype {
    /// Commits the type without a compiler: the plan uses memcpy, the leaf kernels and the
    /// interpreter.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Limit` if the type needs more program nodes than the documented limit
    /// (2^28).
    #[doc(alias = "MPI_Type_commit")]
    pub fn commit(&self) -> Result<Plan> {
        self.commit_with(&Settings::default())
    }

    /// Commits the type with the given settings, which may contain a compiler.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Limit` if the type needs more program nodes than the documented limit
    /// (2^28).
    #[doc(alias = "MPI_Type_commit")]
    pub fn commit_with(&self, settings: &Settings) -> Result<Plan> {
        let program = pipeline::optimize(self, |_, _| {})?;
        Ok(Plan::new(self.clone(), program, settings))
    }
}
