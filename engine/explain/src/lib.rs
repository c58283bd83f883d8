//! Reports and drawings of a datatype, as strings, for people.
//!
//! The tools call this crate. It reads the engine's tree, program and plan, and changes nothing.
//! The engine's private parts come from its hidden module `inspect`. Every section is a function of
//! its own; [`report`] joins the sections. The cost is that of a commit, for any size of the
//! layout: large types are abridged, never expanded.
//!
//! - `tree.rs`: constructor tree, bounds, signature
//! - `blocks.rs`: runs of memory; `summary.rs`: what each pass did; `passes.rs`: programs and
//!   kernels; `advice.rs`
//! - `pieces.rs`: the elements in a window of memory; `picture.rs`: which of them are drawn
//! - `terminal.rs`, `svg.rs`: the drawings
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
mod passes;
mod picture;
mod pieces;
mod summary;
mod svg;
mod terminal;
mod tree;

pub use advice::advice;
pub use blocks::blocks;
pub use passes::{explain_passes, kernels, passes};
pub use summary::{Measures, PassSummary, pass_summaries, summary};
pub use svg::svg;
pub use terminal::drawing;
pub use tree::{bounds, signature, tree};

use std::fmt::Write;
use typepack_engine::{Datatype, Result, Settings, text};

/// The options of a report.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of elements that the drawing shows and the advice is about.
    pub count: u64,
    /// True if the drawing uses ANSI colours.
    pub colour: bool,
    /// The settings of the commit; with a compiler, the report names its kernels.
    pub settings: Settings,
}

impl Default for Options {
    fn default() -> Self {
        Self { count: 1, colour: false, settings: Settings::default() }
    }
}

/// Returns the whole report about `ty`, in sections.
///
/// # Errors
///
/// Returns the errors of [`Datatype::commit`].
pub fn report(ty: &Datatype, options: &Options) -> Result<String> {
    let plan = ty.commit_with(&options.settings)?;
    let mut out = text::abridge(ty);
    if options.count != 1 {
        let _ = write!(out, "  x {}", options.count);
    }
    out.push('\n');
    let mut section = |title: &str, body: &str| {
        let _ = writeln!(out, "\n{title}");
        for line in body.lines() {
            let _ = writeln!(out, "{}", format!("  {line}").trim_end());
        }
    };
    section("Tree", &tree(ty));
    section("Bounds (bytes)", &bounds(ty));
    section("Signature", &signature(ty));
    section("Blocks", &blocks(&plan));
    section("Layout", &drawing(ty, options.count, options.colour));
    section("Program", &passes(ty)?);
    section("Passes", &summary(ty)?);
    section("Execution", &kernels(&plan));
    let advice = advice(&plan, options.count);
    if !advice.is_empty() {
        let lines: Vec<String> = advice.iter().map(|advice| format!("- {advice}")).collect();
        section("Advice", &lines.join("\n"));
    }
    Ok(out)
}
