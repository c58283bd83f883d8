//! Commit: from a tree to a plan.
//!
//! The rooms in the order of the flow: `ir/lower.rs` and the passes, verified at the end
//! (`passes/pipeline.rs`), then the plan (`plan/`), which `exec/` and everything after it executes.

use crate::datatype::Datatype;
use crate::error::Result;
use crate::passes::pipeline;
use crate::plan::{Plan, Settings};

impl Datatype {
    /// Commits with the engine alone: memcpy and the interpreter.
    ///
    /// # Errors
    ///
    /// A type that needs more program nodes than the documented limit (2^28).
    #[doc(alias = "MPI_Type_commit")]
    pub fn commit(&self) -> Result<Plan> {
        self.commit_with(&Settings::default())
    }

    /// Commits with the given settings, which may bring a compiler.
    ///
    /// # Errors
    ///
    /// A type that needs more program nodes than the documented limit (2^28).
    #[doc(alias = "MPI_Type_commit")]
    pub fn commit_with(&self, settings: &Settings) -> Result<Plan> {
        let program = pipeline::optimize(self, |_, _| {})?;
        Ok(Plan::new(self.clone(), program, settings))
    }
}
