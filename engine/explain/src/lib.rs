//! Makes human-readable reports and drawings of a datatype, as strings.
//!
//! The command-line tools use this crate. It reads the constructor tree, the loop program and the plan
//! of a datatype, and changes none of them. It reads the engine's private parts through the engine's
//! hidden module `inspect`. Each section of the report is made by its own function; [`report`] joins the
//! sections. A report costs about as much as a commit, even for a type with a huge amount of data,
//! because the functions abridge large types instead of expanding them.
//!
//! - `tree.rs`: constructor tree, bounds, signature
//! - `blocks.rs`: runs of memory
//! - `summary.rs`: what each pass did; `passes.rs`: programs and kernels
//! - `verdict.rs`: one sentence about how the type is packed
//! - `advice.rs`: better descriptions of the same memory
//! - `pieces.rs`: the basic elements in a window of memory; `picture.rs`: the rows and columns of a
//!   drawing
//! - `terminal.rs`, `svg.rs`: drawings for a terminal and for a browser
//! - `file_view.rs`: where the bytes of several ranks lie in a file
//!
//! ```
//! use typepack_engine::Datatype;
//!
//! let ty: Datatype = "vector(3, 2, 4, double)".parse()?;
//! assert_eq!(
//!     typepack_explain::drawing(&ty, 1, false),
//!     "   0  █ █  · ·
//!       0 1
//!   32  █ █  · ·
//!       2 3
//!   64  █ █ ┊
//!       4 5
//! █ double   · gap   ┊ end of extent
//! one cell = 8 B, one row = 32 B, numbers: packed order
//! "
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod advice;
mod blocks;
mod file_view;
mod passes;
mod picture;
mod pieces;
mod summary;
mod svg;
mod terminal;
mod tree;
mod verdict;

pub use advice::advice;
pub use blocks::blocks;
pub use file_view::FileRanks;
pub use passes::{explain_passes, kernels, passes};
pub use summary::{Measures, PassSummary, pass_summaries, summary};
pub use svg::svg;
pub use terminal::drawing;
pub use tree::{bounds, signature, tree};
pub use verdict::verdict;

use std::fmt::Write;
use typepack_engine::{Datatype, Plan, Result, Settings, text};

/// The options of a report.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of elements that the drawing shows and that the advice assumes.
    pub count: u64,
    /// True if the drawing uses ANSI colours.
    pub colour: bool,
    /// The settings of the commit. If they contain a compiler, the report names the kernels that it
    /// compiled.
    pub settings: Settings,
}

impl Default for Options {
    fn default() -> Self {
        Self { count: 1, colour: false, settings: Settings::default() }
    }
}

/// Returns the expression of `ty` and the number of elements, as one line.
fn heading(ty: &Datatype, count: u64) -> String {
    match count {
        1 => format!("{}\n", text::abridge(ty)),
        _ => format!("{}  x {count}\n", text::abridge(ty)),
    }
}

/// Appends a section of a report.
fn section(out: &mut String, title: &str, body: &str) {
    let _ = writeln!(out, "\n{title}");
    for line in body.lines() {
        let _ = writeln!(out, "{}", format!("  {line}").trim_end());
    }
}

/// Appends the section with advice, if there is any.
fn advise(out: &mut String, plan: &Plan, count: u64) {
    let lines: Vec<String> =
        advice(plan, count).iter().map(|advice| format!("- {advice}")).collect();
    if !lines.is_empty() {
        section(out, "Advice", &lines.join("\n"));
    }
}

/// Returns a short report about `ty`: its [`verdict`], its expression, its sizes, its drawing, and advice.
///
/// # Errors
///
/// Returns the errors of [`Datatype::commit`].
pub fn brief(ty: &Datatype, options: &Options) -> Result<String> {
    let plan = ty.commit_with(&options.settings)?;
    let mut out = format!("{}\n\n{}", verdict(&plan), heading(ty, options.count));
    let _ = writeln!(out, "{} bytes of data, extent {}", ty.size(), ty.extent());
    section(&mut out, "Layout", &drawing(ty, options.count, options.colour));
    advise(&mut out, &plan, options.count);
    Ok(out)
}

/// Returns the whole report about `ty`, with all its sections.
///
/// # Errors
///
/// Returns the errors of [`Datatype::commit`].
pub fn report(ty: &Datatype, options: &Options) -> Result<String> {
    let plan = ty.commit_with(&options.settings)?;
    let mut out = heading(ty, options.count);
    let mut section = |title: &str, body: &str| section(&mut out, title, body);
    section("Tree", &tree(ty));
    section("Bounds (bytes)", &bounds(ty));
    section("Signature", &signature(ty));
    section("Blocks", &blocks(&plan));
    section("Layout", &drawing(ty, options.count, options.colour));
    section("Program", &passes(ty)?);
    section("Passes", &summary(ty)?);
    section("Execution", &kernels(&plan));
    advise(&mut out, &plan, options.count);
    Ok(out)
}
