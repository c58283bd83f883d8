//! Commits a datatype: turns its tree into a plan.
//!
//! A commit has three steps. `ir/lower.rs` lowers the tree to a loop program. `passes/pipeline.rs`
//! runs the passes and verifies the resulting program. `plan/` makes the plan from the program.
//! `exec/` executes plans.

use crate::datatype::Datatype;
use crate::error::Result;
use crate::ir::lower::MAX_NODES;
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
    ///
    /// # Cost
    ///
    /// The time of a commit is in proportion to the size of the whole tree. A duplicate moves the same bytes
    /// as the type from which it was made, so it may use a clone of that type's plan.
    #[doc(alias = "MPI_Type_commit")]
    pub fn commit_with(&self, settings: &Settings) -> Result<Plan> {
        let program = pipeline::optimize(self, |_, _| {})?;
        Ok(Plan::new(self.clone(), program, settings))
    }

    /// Returns true if it is certain that a commit of this type does not exceed the limit on program nodes. The
    /// answer takes constant time, so a caller can accept the type now and commit it when it is first used.
    /// Returns false for some types that a commit would accept.
    pub fn is_within_limits(&self) -> bool {
        (self.bounds().nodes as usize) < MAX_NODES
    }
}
