//! Turns the rows of `typepack-bench pack` into a table, into CSV, and into JSON.
//!
//! `measure.rs` produces the rows; `bars.rs` compares them with the bars. GB is 10^9 bytes; KiB and MiB
//! are powers of two.

use crate::measure::{Row, STEADY};
use comfy_table::{CellAlignment, Table, presets};
use std::fmt::Write;

/// The mark of an unsteady row in the table.
const UNSTEADY: &str = "~";

/// Formats a size in a human-readable form such as `16 KiB`. `bytes` is the size in bytes.
pub fn size_text(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 20 && b.is_multiple_of(1 << 20) => format!("{} MiB", b >> 20),
        b if b >= 1 << 10 && b.is_multiple_of(1 << 10) => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

/// Returns the rows as a human-readable table.
pub fn table(rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    let header = ["layout", "size", "dir", "memcpy", "interp", "JIT", "hand"];
    let ratios = ["JIT/memcpy", "JIT/hand", "JIT/interp", "", "JIT ran"];
    table.set_header(header.iter().chain(&ratios));
    for row in rows {
        let speed = |name: &str| {
            row.figure(name).map_or_else(String::new, |f| format!("{:.2}", f.gb_per_s))
        };
        let ratio =
            |name: &str| row.ratio(name).map_or_else(String::new, |ratio| format!("{ratio:.2}"));
        table.add_row([
            row.layout.clone(),
            size_text(row.size),
            row.direction.to_owned(),
            speed("memcpy"),
            speed("interpreter"),
            speed("jit"),
            speed("hand"),
            ratio("memcpy"),
            ratio("hand"),
            ratio("interpreter"),
            if row.is_steady() { String::new() } else { UNSTEADY.to_owned() },
            row.figure("jit").map_or_else(String::new, |f| f.executor.clone()),
        ]);
    }
    for column in table.column_iter_mut().skip(3).take(7) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text = table.to_string();
    let unsteady = rows.iter().filter(|row| !row.is_steady()).count();
    text.push_str("\nGB/s of packed data (10^9 bytes), medians of interleaved rounds; ");
    let _ = match unsteady {
        0 => writeln!(text, "all rows steady."),
        n => writeln!(
            text,
            "{UNSTEADY} marks the {n} of {} rows whose rounds differ by more than {STEADY}x.",
            rows.len()
        ),
    };
    text
}

/// Returns the rows as CSV: a header line, and one line per row and competitor.
pub fn csv(rows: &[Row]) -> String {
    let mut text = String::from(
        "layout,size,bytes,direction,competitor,executor,ns,gb_per_s,spread,jit_ratio,steady\n",
    );
    for row in rows {
        for figure in &row.figures {
            // The name of a kernel may contain commas, but no quotes, so quotes around it suffice.
            let _ = writeln!(
                text,
                "{},{},{},{},{},\"{}\",{:.1},{:.4},{:.3},{:.4},{}",
                row.layout,
                row.size,
                row.bytes,
                row.direction,
                figure.competitor,
                figure.executor,
                figure.ns,
                figure.gb_per_s,
                figure.spread,
                row.ratio(&figure.competitor).unwrap_or(f64::NAN),
                row.is_steady(),
            );
        }
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
    use super::size_text;

    #[test]
    fn sizes_for_people() {
        let texts = [1000, 1024, 16384, 262_144, 4 << 20, 3 << 19].map(size_text);
        assert_eq!(texts, ["1000 B", "1 KiB", "16 KiB", "256 KiB", "4 MiB", "1536 KiB"]);
    }
}
