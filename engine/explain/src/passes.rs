//! The loop program before and after each pass, and the executors of its nests.

use std::fmt::{self, Write};
use typepack_engine::ir::Program;
use typepack_engine::{Datatype, Direction, Plan, Result, inspect};

/// Maximum number of characters of one program's text; the rest is left out.
const SHOWN: usize = 4000;
/// Maximum number of nests that are listed.
const NESTS: usize = 8;

/// A string that refuses to grow beyond a limit, so that printing stops there.
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > SHOWN {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// Prints a program, cut after a few thousand characters: the nodes of a program are shared, but its
/// text repeats them.
fn limited(program: &Program) -> String {
    let mut text = Limited(String::new());
    if write!(text, "{program}").is_err() {
        let end = memchr::memrchr(b'\n', text.0.as_bytes()).map_or(0, |at| at + 1);
        text.0.truncate(end);
        text.0.push_str("  …\n");
    }
    text.0
}

/// Returns the program after each step of a commit: the step's name and the program's text.
///
/// The first step is the lowering of the tree. A step that changed nothing has the text of the step
/// before.
///
/// # Errors
///
/// Returns the errors of [`Datatype::commit`].
pub fn explain_passes(ty: &Datatype) -> Result<Vec<(String, String)>> {
    let mut steps = Vec::new();
    inspect::steps(ty, |step, program| steps.push((step.to_owned(), limited(program))))?;
    Ok(steps)
}

/// Prints the steps of a commit that changed the program.
///
/// # Errors
///
/// Returns the errors of [`Datatype::commit`].
pub fn passes(ty: &Datatype) -> Result<String> {
    let (mut out, mut last, mut idle) = (String::new(), String::new(), 0);
    for (step, text) in explain_passes(ty)? {
        if text == last {
            idle += 1;
            continue;
        }
        let _ = writeln!(out, "after {step}");
        for line in text.lines() {
            let _ = writeln!(out, "  {line}");
        }
        last = text;
    }
    let plural = if idle == 1 { "pass" } else { "passes" };
    let _ = writeln!(out, "({idle} {plural} changed nothing)");
    Ok(out)
}

/// Prints the current executors of a plan: for each nest its shape, its strategy, and the executors for
/// packing and unpacking.
pub fn kernels(plan: &Plan) -> String {
    if plan.element_bytes() == 0 {
        return "nothing to execute\n".to_owned();
    }
    if plan.is_contiguous() {
        return "one memcpy for any count\n".to_owned();
    }
    let mut out = String::new();
    let all = plan.nests().len();
    for (nest, strategy, [pack, unpack]) in plan.executors().take(NESTS) {
        let shape = nest.shape(Direction::Pack).to_string();
        let shape = shape.strip_prefix("pack ").unwrap_or(&shape);
        let _ = writeln!(
            out,
            "nest {shape}\n  strategy {}, pack by {pack}, unpack by {unpack}",
            format!("{strategy:?}").to_lowercase()
        );
    }
    if all > NESTS {
        let _ = writeln!(out, "… {all} nests in all");
    }
    if all == 0 {
        out.push_str("no nest: runs are copied one by one\n");
    }
    out
}
