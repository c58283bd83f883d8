//! Shows why typepack has a JIT: compares the bandwidths of each layout with leaf kernels only (they are
//! part of the engine), with compiled kernels only (the JIT generates them at run time), and with both.
//!
//! `suite.rs` measures the three settings as the competitors "leaf", "jit" and "typepack". The functions of
//! this file compare the bandwidths of these competitors.

use crate::competitor::{JIT, TYPEPACK};
use crate::measure::STEADY;
use crate::report::size_text;
use crate::suite::Suite;
use comfy_table::{CellAlignment, Table, presets};
use std::fmt::Write;

/// The competitor "typepack" has the default policy, which chooses between leaf kernels and compiled
/// kernels. The choice for a row (one layout, size and direction) is wrong if the bandwidth of "typepack"
/// is less than this fraction of the greater of the bandwidths of "leaf" and "jit".
const RIGHT: f64 = 0.9;

/// Returns a text: the list of wrong choices, and then a table with one line per layout. For each direction
/// and setting, the line states the ratio of the setting's bandwidth to the interpreter's bandwidth, as a
/// geometric mean over the sizes.
pub fn table(suite: &Suite) -> String {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    let parts = ["leaf", JIT, TYPEPACK];
    let header = ["pack: leaf", "JIT", "both", "unpack: leaf", "JIT", "both"];
    table.set_header(["layout"].iter().chain(&header));
    let mut names: Vec<&str> = suite.rows.iter().map(|row| row.row.layout.as_str()).collect();
    names.dedup();
    for name in names {
        let mut cells = vec![name.to_owned()];
        for direction in ["pack", "unpack"] {
            for part in parts {
                let rows = suite.rows.iter().map(|row| &row.row);
                let rows = rows.filter(|row| row.layout == name && row.direction == direction);
                let ratios: Vec<f64> =
                    rows.filter_map(|row| row.ratio_of(part, "interpreter")).collect();
                cells.push(if ratios.is_empty() {
                    String::new()
                } else {
                    let sum: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
                    format!("{:.2}", (sum / ratios.len() as f64).exp())
                });
            }
        }
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let choices = choices(suite);
    format!(
        "{choices}Ablation: bandwidth over the interpreter's, geometric mean over the sizes; \"both\" is \
         the default policy\n\n{table}\n"
    )
}

/// Lists the steady rows in which "leaf" or "jit" is clearly faster than the default policy ([`RIGHT`]).
fn choices(suite: &Suite) -> String {
    let mut wrong = Vec::new();
    for row in suite.rows.iter().map(|row| &row.row) {
        let halves = ["leaf", JIT].into_iter().filter_map(|name| row.figure(name));
        let better = halves.max_by(|a, b| a.gb_per_s.total_cmp(&b.gb_per_s));
        if let (Some(own), Some(better)) = (row.figure(TYPEPACK), better) {
            let ratio = own.gb_per_s / better.gb_per_s;
            if ratio < RIGHT && own.spread <= STEADY && better.spread <= STEADY {
                wrong.push((ratio, row, own, better));
            }
        }
    }
    wrong.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut text = format!(
        "Choices of the policy: {} of {} rows below {RIGHT} of the better half\n",
        wrong.len(),
        suite.rows.len()
    );
    for (ratio, row, own, better) in wrong {
        let _ = writeln!(
            text,
            "  {:<14}{:>9} {:<7}{ratio:>6.2}  {:.2} with {}, {:.2} with {}",
            row.layout,
            size_text(row.bytes),
            row.direction,
            own.gb_per_s,
            own.executor,
            better.gb_per_s,
            better.executor
        );
    }
    text + "\n"
}
