//! The passes in order: from a tree to the program that a plan executes.
//!
//! `commit.rs` calls this file; `external32/` and `explain` call it for programs without a plan of
//! their own. The steps: lower, rewrite until nothing changes, gather, merge the loop over elements,
//! verify.

use super::{coalesce, count, fold, gather, is_settled, tables};
use crate::datatype::Datatype;
use crate::error::Result;
use crate::ir::{Program, lower, verify};

/// Maximum number of rounds. After this many rounds, rewriting stops even if a pass could still
/// change the program. Two or three rounds are usual. More rounds help only with towers of structs.
const ROUNDS: usize = 16;

/// Lowers `ty` and rewrites the program. `after` receives the program after each step.
pub(crate) fn optimize(ty: &Datatype, mut after: impl FnMut(&str, &Program)) -> Result<Program> {
    let mut check = |step: &str, program: &Program| {
        debug_check(program, ty);
        after(step, program);
    };
    let mut program = lower::lower(ty)?;
    check("lower", &program);
    if is_settled(&program) {
        debug_assert_eq!(rewritten(program.clone(), |_, _| {}), program, "not settled");
        STEPS.into_iter().for_each(|step| check(step, &program));
    } else {
        program = rewritten(program, &mut check);
    }
    count::fold_count(&mut program);
    check("count", &program);
    verify::verify(&program, ty.size() as u64)?;
    Ok(program)
}

/// The names of the rewrites in [`rewritten`], in order.
const STEPS: [&str; 4] = ["regularize", "fold", "coalesce", "gather"];

/// Runs all rewrites except the rewrite of the loop over elements.
fn rewritten(mut program: Program, mut after: impl FnMut(&str, &Program)) -> Program {
    let [regularize, fold, coalesce, gather] = STEPS;
    for _ in 0..ROUNDS {
        let mut changed = tables::regularize(&mut program);
        after(regularize, &program);
        changed |= fold::fold(&mut program);
        after(fold, &program);
        changed |= coalesce::coalesce(&mut program);
        after(coalesce, &program);
        if !changed {
            break;
        }
    }
    gather::gather(&mut program);
    after(gather, &program);
    program
}

/// Stops at the pass that breaks an invariant. The check at the end of the pipeline runs in all builds.
fn debug_check(program: &Program, ty: &Datatype) {
    if cfg!(debug_assertions)
        && let Err(error) = verify::verify(program, ty.size() as u64)
    {
        panic!("typepack bug: {error} in\n{program}");
    }
}
