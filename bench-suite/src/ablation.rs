//! Why a JIT? Every layout with leaves only, with compiled kernels only, and with both.
//!
//! Made from the rows of `suite.rs`: the competitors are measured there.

use crate::competitor::{JIT, TYPEPACK};
use crate::suite::Suite;
use comfy_table::{CellAlignment, Table, presets};

/// One line per layout: bandwidth over the interpreter's, geometric mean over the sizes.
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
    format!(
        "Ablation: bandwidth over the interpreter's, geometric mean over the sizes; \"both\" is \
         the default policy\n\n{table}\n"
    )
}
