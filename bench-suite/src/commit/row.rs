//! Compares a measured value with its bar (the limit that the project requires), and writes rows as a
//! table, as CSV and as JSON.
//!
//! The other files of this folder measure the values and define the bars.

use comfy_table::{CellAlignment, Table, presets};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt::Write;

/// The bar of a value: an upper or a lower limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The value must not exceed this limit.
    AtMost(f64),
    /// The value must be at least as large as this limit.
    AtLeast(f64),
}

/// One measured value.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// What was measured.
    pub what: String,
    /// The value.
    pub value: f64,
    /// The unit of the value: `ns`, `ms`, `MiB`, or `x` for a ratio.
    pub unit: Cow<'static, str>,
    /// The bar.
    pub bar: Limit,
    /// True if the value meets the bar.
    pub pass: bool,
    /// True if the times of the rounds differ little (`row::STEADY`). If not, the value proves little,
    /// and the table marks the row with `~`.
    pub steady: bool,
    /// For a ratio: the times from which it was computed, or the ratio at each size, as human-readable
    /// text. Empty for other values.
    pub detail: String,
}

impl Row {
    pub(super) fn new(what: impl Into<String>, value: f64, unit: &'static str, bar: Limit) -> Self {
        let pass = match bar {
            Limit::AtMost(most) => value <= most,
            Limit::AtLeast(least) => value >= least,
        };
        Self {
            what: what.into(),
            value,
            unit: unit.into(),
            bar,
            pass,
            steady: true,
            detail: String::new(),
        }
    }

    pub(super) fn steady(self, steady: bool) -> Self {
        Self { steady, ..self }
    }

    pub(super) fn detail(self, detail: String) -> Self {
        Self { detail, ..self }
    }

    fn bar_text(&self) -> String {
        match self.bar {
            Limit::AtMost(most) => format!("<= {most}"),
            Limit::AtLeast(least) => format!(">= {least}"),
        }
    }

    fn verdict(&self) -> &'static str {
        if self.pass { "pass" } else { "MISS" }
    }
}

/// Returns the rows as a human-readable table.
pub fn table(rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header(["what", "measured", "unit", "bar", "verdict", "", "from"]);
    for row in rows {
        table.add_row([
            row.what.clone(),
            format!("{:.2}", row.value),
            row.unit.to_string(),
            row.bar_text(),
            row.verdict().to_owned(),
            if row.steady { String::new() } else { "~".to_owned() },
            row.detail.clone(),
        ]);
    }
    for column in table.column_iter_mut().skip(1).take(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let misses = rows.iter().filter(|row| !row.pass).count();
    let unsteady = rows.iter().filter(|row| !row.steady).count();
    format!(
        "{table}\nMedians of interleaved rounds; {misses} of {} rows miss; ~ marks the {unsteady} \
         whose rounds differ by more than {}x.\n",
        rows.len(),
        crate::row::STEADY
    )
}

/// Returns the rows as CSV: a header line and one line per row.
pub fn csv(rows: &[Row]) -> String {
    let mut text = String::from("what,value,unit,bar,pass,steady,detail\n");
    for row in rows {
        let _ = writeln!(
            text,
            "\"{}\",{:.4},{},{},{},{},\"{}\"",
            row.what,
            row.value,
            row.unit,
            row.bar_text(),
            row.pass,
            row.steady,
            row.detail
        );
    }
    text
}

/// Returns the rows as a JSON array.
///
/// # Errors
///
/// Returns an error if the rows cannot be written as JSON.
pub fn json(rows: &[Row]) -> serde_json::Result<String> {
    serde_json::to_string_pretty(rows).map(|text| text + "\n")
}

#[cfg(test)]
mod tests {
    use super::{Limit, Row};

    #[test]
    fn bars_hold_at_the_bar() {
        assert!(Row::new("a", 1.1, "x", Limit::AtMost(1.1)).pass);
        assert!(!Row::new("a", 1.11, "x", Limit::AtMost(1.1)).pass);
        assert!(Row::new("a", 0.7, "x", Limit::AtLeast(0.7)).pass);
        assert!(!Row::new("a", 0.69, "x", Limit::AtLeast(0.7)).pass);
    }
}
