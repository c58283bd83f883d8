//! Prints the loop program after each pass that changed it. Also prints the nests of a plan (chains of
//! nested loops), each with its executors: the code that moves its data, such as a kernel.

use std::fmt::{self, Write};
use typepack_engine::ir::Program;
use typepack_engine::{Datatype, Direction, Plan, Result, inspect};

/// Maximum number of bytes of one program's text; longer texts are cut.
const SHOWN: usize = 4000;
/// Maximum number of nests whose executors are listed.
const NESTS: usize = 8;

/// A string with a maximum length. A write that would exceed it fails, which also ends the printing of
/// a huge program early.
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

/// Returns the text of a program. A text of more than [`SHOWN`] bytes is cut at the end of a line. The
/// text can be far larger than the program: it repeats a node at every use, while the program stores the
/// node once.
fn limited(program: &Program) -> String {
    let mut text = Limited(String::new());
    if write!(text, "{program}").is_err() {
        let end = memchr::memrchr(b'\n', text.0.as_bytes()).map_or(0, |at| at + 1);
        text.0.truncate(end);
        text.0.push_str("  …\n");
    }
    text.0
}

/// Returns the name of each step of a commit and the text of the program after that step. A text of more
/// than 4000 bytes is cut.
///
/// The first step is the lowering of the tree. If a step changed nothing, its text equals the text of
/// the previous step.
///
/// # Errors
///
/// Returns the errors of [`Datatype::commit`].
pub fn explain_passes(ty: &Datatype) -> Result<Vec<(String, String)>> {
    let mut steps = Vec::new();
    inspect::steps(ty, |step, program| steps.push((step.to_owned(), limited(program))))?;
    Ok(steps)
}

/// Returns text that shows the program after each step of the commit that changed it, and then the number
/// of the other steps.
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

/// Returns text that shows, for each of the first 8 nests of a plan, its shape, its strategy, and the
/// current executors for packing and for unpacking.
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
