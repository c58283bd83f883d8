//! Commits a datatype: turns its tree into a plan.
//!
//! The flow: `ir/lower.rs` lowers the tree, the passes run and the result is verified
//! (`passes/pipeline.rs`), and `plan/` makes the plan. `exec/` and the folders after it execute the
//! plan.

use crate::datatype::Datatype;
use crate::error::Result;
use crate::passes::pipeline;
use crate::plan::{Plan, Settings};

impl Datatype {
    /// Commits with the engine alone: the plan uses memcpy and the interpreter, no compiler.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Limit` if the type needs more program nodes than the documented limit
    /// (2^28).
    #[doc(alias = "MPI_Type_commit")]
    pub fn commit(&self) -> Result<Plan> {
        self.commit_with(&Settings::default())
    }

    /// Commits with the given settings, which may contain a compiler.
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
