//! Shows why typepack has a JIT: compares the bandwidths of each layout with leaf kernels only (they are
//! part of the engine), with compiled kernels only (the JIT generates them at run time), and with both.
//!
//! `suite.rs` measures the three settings as the competitors "leaf", "jit" and "typepack". The functions of
//! this file compare the bandwidths of these competitors.

use crate::row::report::size_text;
use crate::row::{INTERPRETER, JIT, LEAF, TYPEPACK, mean};
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
    let parts = [LEAF, JIT, TYPEPACK];
    let header = ["pack: leaf", "JIT", "both", "unpack: leaf", "JIT", "both"];
    table.set_header(["layout"].iter().chain(&header));
    let mut names: Vec<&str> = suite.rows.iter().map(|row| row.name.as_str()).collect();
    names.dedup();
    for name in names {
        let mut cells = vec![name.to_owned()];
        for direction in ["pack", "unpack"] {
            for part in parts {
                let rows = suite.rows.iter();
                let rows = rows.filter(|row| row.name == name && row.part == direction);
                let ratios = rows.filter_map(|row| row.against(part, &[INTERPRETER]));
                let value = mean(ratios.map(|ratio| ratio.value));
                cells.push(value.map_or_else(String::new, |value| format!("{value:.2}")));
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
    for row in suite.rows.iter() {
        let better = row.best(&[LEAF, JIT]);
        if let (Some(own), Some(better)) = (row.figure(TYPEPACK), better) {
            let ratio = better.ns / own.ns;
            if ratio < RIGHT && own.is_steady() && better.is_steady() {
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
            row.name,
            size_text(row.bytes),
            row.part,
            row.rate(own),
            own.executor,
            row.rate(better),
            better.executor
        );
    }
    text + "\n"
}
