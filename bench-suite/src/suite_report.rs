//! Turns the results of `suite.rs` into a table, into CSV, and into JSON.
//!
//! `summary.rs` compares the rows with the bars. It also chooses the word after each ratio to the best
//! peer: win, tie or loss.

use crate::competitor::{OWN, TYPEPACK};
use crate::measure::STEADY;
use crate::regret;
use crate::report::size_text;
use crate::suite::{Suite, SuiteRow};
use crate::summary::word;
use comfy_table::{CellAlignment, Table, presets};
use std::fmt::Write;

/// The name that the table of the storm has in records. The nanoseconds in this table are the time for one
/// type with all its uses.
pub(crate) const STORM: &str = "storm";
/// The table shows only this many characters of a kernel's name. The name of an unrolled list has hundreds
/// of characters.
const EXECUTOR: usize = 48;

fn columns(suite: &Suite) -> Vec<&str> {
    OWN.into_iter().chain(suite.peers.iter().map(String::as_str)).collect()
}

fn ratio(value: Option<(f64, bool)>) -> String {
    value.map_or_else(String::new, |(ratio, _)| format!("{ratio:.2}"))
}

/// Returns the rows as a human-readable table.
pub fn table(suite: &Suite) -> String {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    let columns = columns(suite);
    let mut header = vec!["layout", "size", "dir"];
    header.extend(&columns);
    header.extend(["/best peer", "", "/hand", "", "ran"]);
    table.set_header(header);
    for row in &suite.rows {
        let mut cells =
            vec![row.row.layout.clone(), size_text(row.row.bytes), row.row.direction.to_owned()];
        cells.extend(columns.iter().map(|name| {
            row.row.figure(name).map_or_else(String::new, |f| format!("{:.2}", f.gb_per_s))
        }));
        let peer = row.against_peer(&suite.peers);
        cells.push(ratio(peer));
        cells.push(peer.map_or("", |(ratio, _)| word(row, ratio)).to_owned());
        cells.push(ratio(row.against_hand()));
        cells.push(if row.is_steady(&suite.peers) { "" } else { "~" }.to_owned());
        cells.push(executor(row).chars().take(EXECUTOR).collect());
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(3).take(columns.len() + 1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!(
        "{table}\nGB/s of packed data (10^9 bytes), medians of interleaved rounds; ratios are \
         typepack's; ~ marks rows whose rounds differ by more than {STEADY}x. Empty: no hand loop, \
         or a peer that failed.\n"
    )
}

fn executor(row: &SuiteRow) -> &str {
    row.row.figure(TYPEPACK).map_or("", |f| f.executor.as_str())
}

/// Returns the rows as CSV: a header line and one line per row. If the run has measured the storm or the
/// regret, their tables follow. Before each of these tables is a comment line with its name (`record.rs`).
pub fn csv(suite: &Suite) -> String {
    let columns = columns(suite);
    let mut text = String::from("layout,class,size,bytes,touched,direction");
    for name in &columns {
        let _ = write!(text, ",{name}_gb_per_s,{name}_spread");
    }
    text.push_str(",best_peer,vs_best_peer,vs_hand,steady,executor\n");
    for row in &suite.rows {
        let r = &row.row;
        let class = format!("{:?}", row.class).to_lowercase();
        let _ = write!(
            text,
            "{},{class},{},{},{},{}",
            r.layout, r.size, r.bytes, row.touched, r.direction
        );
        for name in &columns {
            let _ = match r.figure(name) {
                Some(figure) => write!(text, ",{:.4},{:.3}", figure.gb_per_s, figure.spread),
                None => write!(text, ",,"),
            };
        }
        let best = row.best_peer(&suite.peers).map_or("", |f| f.competitor.as_str());
        // The name of a kernel may contain commas, but no quotes, so quotes around it suffice.
        let _ = writeln!(
            text,
            ",{best},{},{},{},\"{}\"",
            ratio(row.against_peer(&suite.peers)),
            ratio(row.against_hand()),
            row.is_steady(&suite.peers),
            executor(row)
        );
    }
    if !suite.storm.is_empty() {
        let _ = writeln!(text, "# typepack-bench {}\nlayout,bytes,competitor,ns,spread", STORM);
    }
    for row in &suite.storm {
        for figure in &row.figures {
            let (name, ns, spread) = (&figure.competitor, figure.ns, figure.spread);
            let _ = writeln!(text, "{},{},{name},{ns:.1},{spread:.3}", row.layout, row.bytes);
        }
    }
    if !suite.regret.is_empty() {
        let header = "layout,bytes,uses,never_ns,at_once_ns,policy_ns,steady";
        let _ = writeln!(text, "# typepack-bench {}\n{header}", regret::NAME);
    }
    for row in &suite.regret {
        let [never, at_once, policy] = row.ns;
        let _ = writeln!(
            text,
            "{},{},{},{never:.1},{at_once:.1},{policy:.1},{}",
            row.layout, row.bytes, row.uses, row.steady
        );
    }
    text
}

/// Returns a header line and one line per row and competitor, in the columns of DDTBench's output:
/// `testname` (the layout), `method` (the competitor), `bytes`, `id` (the direction), and `time` (the
/// median, in microseconds).
pub fn ddtbench(suite: &Suite) -> String {
    let mut text =
        format!("{:<30}{:<24}{:>12} {:<8}{:>16}\n", "testname", "method", "bytes", "id", "time");
    for row in suite.rows.iter().map(|row| &row.row) {
        for figure in &row.figures {
            let (who, us) = (&figure.competitor, figure.ns / 1000.0);
            let (name, bytes, id) = (&row.layout, row.bytes, row.direction);
            let _ = writeln!(text, "{name:<30}{who:<24}{bytes:>12} {id:<8}{us:>16.3}");
        }
    }
    text
}

/// Returns all results as JSON.
///
/// # Errors
///
/// Returns an error if the results cannot be written as JSON.
pub fn json(suite: &Suite) -> serde_json::Result<String> {
    serde_json::to_string_pretty(suite).map(|text| text + "\n")
}
