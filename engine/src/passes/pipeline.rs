//! Runs the passes in order. The result is the program that a plan executes.
//!
//! `commit.rs` uses this file, and so do `external32/` and `explain`. The steps are: lower the tree,
//! rewrite the program in rounds until nothing changes, turn sequences into windows and lists
//! (`gather.rs`), merge the loop over the elements with the loops inside an element (`count.rs`), verify
//! the program.

use super::{coalesce, count, fold, gather, is_settled, tables};
use crate::datatype::Datatype;
use crate::error::Result;
use crate::ir::{Program, lower, verify};

/// Maximum number of rounds. Most types need two or three; only deeply nested structs would benefit from
/// more than 16. After 16 rounds, rewriting stops even if a pass could still change the program.
const ROUNDS: usize = 16;

/// Lowers `ty`, runs all passes and verifies the program. After each step, calls `after` with the name
/// of the step and the program.
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

/// The names of the passes that [`rewritten`] runs, in order. `regularize` is the pass in `tables.rs`.
const STEPS: [&str; 4] = ["regularize", "fold", "coalesce", "gather"];

/// Runs all passes except `count.rs`.
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

/// In debug builds, panics if a pass has broken an invariant of the program. In release builds, only
/// the check at the end of the pipeline runs.
fn debug_check(program: &Program, ty: &Datatype) {
    if cfg!(debug_assertions)
        && let Err(error) = verify::verify(program, ty.size() as u64)
    {
        panic!("typepack bug: {error} in\n{program}");
    }
}
