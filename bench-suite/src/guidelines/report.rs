//! Turns the results of the guideline checks into a human-readable summary and into CSV.
//!
//! `mod.rs` makes the checks and finds the violations among them.

use super::{Check, Checks, Guideline, MOST};
use crate::row::report::size_text;
use std::fmt::Write;

/// The reports show only this many characters of the text of a type and of the name of a kernel.
const SHOWN: usize = 150;

/// Returns the summary: one line per guideline, and then one line per violation and fault.
pub fn summary(checks: &Checks) -> String {
    let mut out = format!(
        "Performance guidelines, {} random types (seed {}), at most {MOST}x\n\n{:<6}{:<64}{:>8}{:>10}{:>8}\n",
        checks.types, checks.seed, "", "guideline", "checks", "violated", "most"
    );
    let mut lists = String::new();
    for guideline in Guideline::ALL {
        let own = || checks.list.iter().filter(|check| check.guideline == guideline);
        let mut violated: Vec<&Check> = own().filter(|check| check.violated).collect();
        let most = own().map(Check::ratio).fold(0.0, f64::max);
        let word = if violated.is_empty() { "pass" } else { "MISS" };
        let _ = writeln!(
            out,
            "{word:<6}{:<64}{:>8}{:>10}{most:>8.2}",
            guideline.text(),
            own().count(),
            violated.len()
        );
        violated.sort_by(|a, b| b.ratio().total_cmp(&a.ratio()));
        if !violated.is_empty() {
            let _ = writeln!(lists, "\n{}: violations", guideline.text());
        }
        for check in violated {
            let [own, other] = check.ns;
            let _ = writeln!(
                lists,
                "  {:.2}  {:<7}{:>10}  {own:.0} ns ({}), not {other:.0} ns ({}): type {}, {}",
                check.ratio(),
                check.direction,
                size_text(check.bytes),
                shown(&check.executors[0]),
                shown(&check.executors[1]),
                check.number,
                shown(&check.text)
            );
        }
    }
    out += &lists;
    for fault in &checks.faults {
        let _ = writeln!(out, "fault: {fault}");
    }
    out
}

fn shown(text: &str) -> String {
    if text.chars().count() <= SHOWN {
        return text.to_owned();
    }
    text.chars().take(SHOWN).chain("...".chars()).collect()
}

/// Returns the checks as CSV: a header line and one line per check.
pub fn csv(checks: &Checks) -> String {
    let mut text = String::from(
        "guideline,number,bytes,direction,ns,reference_ns,ratio,violated,executor,reference_executor,type\n",
    );
    for check in &checks.list {
        let [own, other] = check.ns;
        let [executor, reference] = &check.executors;
        // The names of kernels and the texts of types may contain commas, but no quotes, so quotes around
        // them suffice. `shown` shortens the text of a type with many displacements. Nothing is lost,
        // because a run with the same seed makes the same type again.
        let _ = writeln!(
            text,
            "{},{},{},{},{own:.1},{other:.1},{:.3},{},\"{}\",\"{}\",\"{}\"",
            check.guideline.name(),
            check.number,
            check.bytes,
            check.direction,
            check.ratio(),
            check.violated,
            shown(executor),
            shown(reference),
            shown(&check.text)
        );
    }
    text
}
