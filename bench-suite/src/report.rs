//! Turns the rows of `typepack-bench pack` into a table, into CSV, and into JSON.
//!
//! `measure.rs` produces the rows; `bars.rs` compares them with the bars. The table and the CSV have fixed columns, so
//! that the command prints each row as soon as it is measured. GB is 10^9 bytes; KiB and MiB are powers of two.

use crate::competitor::{HAND, INTERPRETER, JIT, LEAF, MEMCPY, TYPEPACK};
use crate::measure::{Row, STEADY};
use std::fmt::Write;

/// The mark of an unsteady row in the table.
const UNSTEADY: &str = "~";
/// The columns of bandwidths, and their competitors. What an application gets comes first after the hand loop, and the
/// forced strategies after it.
const SPEEDS: [&str; 6] = [MEMCPY, HAND, TYPEPACK, LEAF, JIT, INTERPRETER];
/// The columns of ratios, and the competitors with which typepack is compared.
const RATIOS: [(&str, &str); 3] =
    [("/hand", HAND), ("/memcpy", MEMCPY), ("/interpreter", INTERPRETER)];

/// Formats a size in a human-readable form such as `16 KiB`. `bytes` is the size in bytes.
pub fn size_text(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 20 && b.is_multiple_of(1 << 20) => format!("{} MiB", b >> 20),
        b if b >= 1 << 10 && b.is_multiple_of(1 << 10) => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

/// The human-readable table of [`Row`]s. The widths of the columns do not depend on the rows.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    longest: usize,
}

impl Table {
    /// Makes a table whose layouts have names of at most `longest` characters.
    pub fn new(longest: usize) -> Self {
        Self { longest: longest.max(6) }
    }

    fn line(self, first: [&str; 3], cells: impl IntoIterator<Item = (usize, String)>) -> String {
        let [layout, size, direction] = first;
        let longest = self.longest;
        let mut text = format!("| {layout:<longest$} | {size:>8} | {direction:<6} |");
        for (width, cell) in cells {
            let _ = write!(text, " {cell:>width$} |");
        }
        text
    }

    /// Returns the two lines above the rows.
    pub fn header(self) -> String {
        let speeds = SPEEDS.into_iter().map(|name| (width(name), name.to_owned()));
        let ratios = RATIOS.into_iter().map(|(title, _)| (width(title), title.to_owned()));
        let mark = [(1, String::new())];
        let line = self.line(["layout", "size", "dir"], speeds.chain(ratios).chain(mark));
        let line = format!("{line} typepack ran");
        let rule: String = line.chars().map(|c| if c == '|' { '|' } else { '-' }).collect();
        format!("{line}\n{rule}\n")
    }

    /// Returns the line of a row.
    pub fn row(self, row: &Row) -> String {
        let number = |value: Option<f64>| value.map_or_else(String::new, |v| format!("{v:.2}"));
        let speeds = SPEEDS.into_iter().map(|name| {
            let speed = row.figure(name).map(|figure| figure.gb_per_s);
            (width(name), number(speed))
        });
        let ratios = RATIOS
            .into_iter()
            .map(|(title, name)| (width(title), number(row.ratio_of(TYPEPACK, name))));
        let mark = [(1, if row.is_steady() { "" } else { UNSTEADY }.to_owned())];
        let size = size_text(row.size);
        let line = self.line([&row.layout, &size, row.direction], speeds.chain(ratios).chain(mark));
        let ran = row.figure(TYPEPACK).map_or("", |figure| figure.executor.as_str());
        format!("{line} {ran}\n")
    }

    /// Returns the text below the rows.
    pub fn footer(self, rows: &[Row]) -> String {
        let start = "\nGB/s of packed data (10^9 bytes), medians of interleaved rounds. typepack: what an application \
                     gets. leaf, jit, interpreter: one kind of kernel, forced. Ratios are those of typepack; ";
        let unsteady = rows.iter().filter(|row| !row.is_steady()).count();
        match unsteady {
            0 => format!("{start}all rows steady.\n"),
            n => format!(
                "{start}{UNSTEADY} marks the {n} of {} rows whose rounds differ by more than {STEADY}x.\n",
                rows.len()
            ),
        }
    }
}

/// Returns the width of a column of numbers.
fn width(title: &str) -> usize {
    title.len().max(7)
}

/// The first line of the CSV.
pub const CSV_HEADER: &str =
    "layout,size,bytes,direction,competitor,executor,ns,gb_per_s,spread,typepack_ratio,steady\n";

/// Returns a row as CSV: one line for each competitor. `typepack_ratio` is the bandwidth of typepack divided by that of
/// the competitor.
pub fn csv(row: &Row) -> String {
    let mut text = String::new();
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
            row.ratio_of(TYPEPACK, &figure.competitor).unwrap_or(f64::NAN),
            row.is_steady(),
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
    use super::{Table, csv, size_text};
    use crate::measure::{Figure, Row};

    #[test]
    fn every_row_has_the_columns_of_the_header() {
        let figure = |name: &str, gb_per_s, spread| Figure {
            competitor: name.to_owned(),
            executor: "loop, long".to_owned(),
            ns: 1.0,
            gb_per_s,
            spread,
        };
        let row = Row {
            layout: "d1s8".to_owned(),
            bytes: 1 << 20,
            size: 1 << 20,
            direction: "unpack",
            figures: vec![
                figure("memcpy", 123.456, 1.0),
                figure("hand", 4.0, 1.5),
                figure("typepack", 8.0, 1.0),
            ],
        };
        let (table, line) = (Table::new(4), Table::new(4).row(&row));
        let bars =
            |line: &str| -> Vec<usize> { line.match_indices('|').map(|(at, _)| at).collect() };
        let header = table.header();
        for other in header.lines() {
            assert_eq!(bars(other), bars(&line), "{header}{line}");
        }
        let titles: Vec<&str> = header.lines().next().expect("titles").split('|').collect();
        let place = |name: &str| titles.iter().position(|title| title.trim() == name).expect(name);
        // The first column after the hand loop is what an application gets; the forced strategies follow.
        assert_eq!(place("typepack"), place("hand") + 1);
        assert!(place("leaf") > place("typepack") && place("jit") > place("typepack"));
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        assert_eq!((cells[place("/hand")], cells[place("jit")]), ("2.00", ""), "{line}");
        assert!(table.footer(std::slice::from_ref(&row)).contains("~ marks the 1 of 1 rows"));
        assert_eq!(csv(&row).lines().count(), 3);
    }

    #[test]
    fn sizes_for_people() {
        let texts = [1000, 1024, 16384, 262_144, 4 << 20, 3 << 19].map(size_text);
        assert_eq!(texts, ["1000 B", "1 KiB", "16 KiB", "256 KiB", "4 MiB", "1536 KiB"]);
    }
}
