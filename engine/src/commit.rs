//! Commit: from a tree to a plan, top to bottom.
//!
//! Comes after `datatype/`; its result is consumed by `exec/` and everything above it.

use crate::datatype::Datatype;
use crate::error::Result;
use crate::ir::{Program, lower, verify};
use crate::passes;
use crate::plan::{Plan, Settings};

/// Rounds after which rewriting stops even if a pass could still do something. Two or three are
/// usual; more only pay for towers of structs.
const ROUNDS: usize = 16;

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
        let program = optimize(self, |_, _| {})?;
        Ok(Plan::new(self.clone(), program, settings))
    }
}

/// Lowers `ty` and rewrites the program; `after` sees it after each step.
pub(crate) fn optimize(ty: &Datatype, mut after: impl FnMut(&str, &Program)) -> Result<Program> {
    let mut check = |step: &str, program: &Program| {
        debug_check(program, ty);
        after(step, program);
    };
    let mut program = lower::lower(ty)?;
    check("lower", &program);
    if passes::is_settled(&program) {
        debug_assert_eq!(rewritten(program.clone(), |_, _| {}), program, "not settled");
        STEPS.into_iter().for_each(|step| check(step, &program));
    } else {
        program = rewritten(program, &mut check);
    }
    passes::fold_count(&mut program);
    check("count", &program);
    verify::verify(&program, ty.size() as u64)?;
    Ok(program)
}

/// The rewrites of [`rewritten`], in this order.
const STEPS: [&str; 4] = ["regularize", "fold", "coalesce", "gather"];

/// All rewrites but that of the loop over elements.
fn rewritten(mut program: Program, mut after: impl FnMut(&str, &Program)) -> Program {
    let [regularize, fold, coalesce, gather] = STEPS;
    for _ in 0..ROUNDS {
        let mut changed = passes::regularize(&mut program);
        after(regularize, &program);
        changed |= passes::fold(&mut program);
        after(fold, &program);
        changed |= passes::coalesce(&mut program);
        after(coalesce, &program);
        if !changed {
            break;
        }
    }
    passes::gather(&mut program);
    after(gather, &program);
    program
}

/// Finds a pass that breaks an invariant where it happens; the check that decides is the last one.
fn debug_check(program: &Program, ty: &Datatype) {
    if cfg!(debug_assertions)
        && let Err(error) = verify::verify(program, ty.size() as u64)
    {
        panic!("typepack bug: {error} in\n{program}");
    }
}
