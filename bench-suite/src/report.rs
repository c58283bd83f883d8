//! The table of `typepack-bench pack`. It has fixed columns, so that the command prints each row as soon as it is
//! measured; the tables of other commands are in `row/report.rs`.

use crate::row::report::size_text;
use crate::row::{HAND, INTERPRETER, JIT, LEAF, MEMCPY, Row, STEADY, TYPEPACK};
use std::fmt::Write;

/// The mark of an unsteady row in the table.
const UNSTEADY: &str = "~";
/// The columns of bandwidths, and their competitors. What an application gets comes first after the hand loop, and the
/// forced strategies after it.
const SPEEDS: [&str; 6] = [MEMCPY, HAND, TYPEPACK, LEAF, JIT, INTERPRETER];
/// The columns of ratios, and the competitors with which typepack is compared.
const RATIOS: [(&str, &str); 3] =
    [("/hand", HAND), ("/memcpy", MEMCPY), ("/interpreter", INTERPRETER)];

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
            let speed = row.figure(name).map(|figure| row.rate(figure));
            (width(name), number(speed))
        });
        let ratios = RATIOS.into_iter().map(|(title, name)| {
            let ratio = row.against(TYPEPACK, &[name]);
            (width(title), number(ratio.map(|ratio| ratio.value)))
        });
        let mark = [(1, if row.is_steady() { "" } else { UNSTEADY }.to_owned())];
        let size = size_text(row.size.unwrap_or(row.bytes));
        let line = self.line([&row.name, &size, &row.part], speeds.chain(ratios).chain(mark));
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

#[cfg(test)]
mod tests {
    use super::Table;
    use crate::row::{Figure, Row};

    #[test]
    fn every_row_has_the_columns_of_the_header() {
        let row = Row {
            name: "d1s8".to_owned(),
            part: "unpack".to_owned(),
            bytes: 1 << 20,
            figures: vec![
                Figure::new("memcpy", 1e4, 1.0),
                Figure::new("hand", 2e5, 1.5),
                Figure::new("typepack", 1e5, 1.0),
            ],
            ..Row::default()
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
    }
}
