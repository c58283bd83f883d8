//! Turns rows into a table, into JSON and into the CSV of a record, and the CSV back into rows.
//!
//! GB is 10^9 bytes; KiB and MiB are powers of two. Columns that would be empty are left out.

use super::bar::Against;
use super::{Distance, Figure, Ratio, Row, Sides, TYPEPACK};
use crate::record::{Line, Table as Recorded};
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use std::fmt::Write;

/// The unit in which a table states the speed of a competitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// 10^9 bytes per second.
    GbPerS,
    /// 10^6 bytes per second.
    MbPerS,
    /// Microseconds.
    Us,
}

impl Unit {
    /// Formats the speed of a time of `ns` nanoseconds in a row of `bytes` bytes.
    fn shown(self, bytes: u64, ns: f64) -> String {
        match self {
            Self::GbPerS => format!("{:.2}", bytes as f64 / ns),
            Self::MbPerS => match 1000.0 * bytes as f64 / ns {
                rate if rate < 10.0 => format!("{rate:.1}"),
                rate => format!("{rate:.0}"),
            },
            Self::Us => us(ns),
        }
    }
}

/// Formats a time in microseconds. `ns` is the time in nanoseconds.
pub(crate) fn us(ns: f64) -> String {
    match ns / 1000.0 {
        us if us < 10.0 => format!("{us:.3}"),
        us if us < 1000.0 => format!("{us:.1}"),
        us => format!("{us:.0}"),
    }
}

/// Formats a size in a human-readable form such as `16 KiB`. `bytes` is the size in bytes.
pub fn size_text(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 20 && b.is_multiple_of(1 << 20) => format!("{} MiB", b >> 20),
        b if b >= 1 << 10 && b.is_multiple_of(1 << 10) => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

/// Returns the mark of a figure or ratio: `~` if it is unsteady.
fn mark(steady: bool) -> &'static str {
    if steady { "" } else { "~" }
}

/// Formats the figure of `competitor`. A missing figure of a library is a failure.
pub fn cell(row: &Row, competitor: &str, unit: Unit) -> String {
    let Some(figure) = row.figure(competitor) else {
        return if unit == Unit::GbPerS { String::new() } else { "failed".to_owned() };
    };
    if figure.over {
        return format!("over {:.0} s", figure.ns / 1e9);
    }
    let shown = unit.shown(row.bytes, figure.ns) + mark(figure.is_steady());
    match figure.first.filter(|_| competitor == TYPEPACK) {
        Some([ns, spread]) => {
            let first = Figure::new("", ns, spread);
            format!("{shown} ({}{})", unit.shown(row.bytes, ns), mark(first.is_steady()))
        }
        None => shown,
    }
}

/// Formats a ratio; an empty text if there is none.
pub fn ratio(value: Option<Ratio>) -> String {
    let least = |ratio: Ratio| if ratio.least { ">" } else { "" };
    value.map_or_else(String::new, |r| format!("{}{:.2}{}", least(r), r.value, mark(r.steady)))
}

/// Returns the rows as a human-readable table of the figures of `competitors` and their ratios.
pub fn table(rows: &[Row], competitors: &[&str], sides: Sides<'_>, unit: Unit) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let named = |row: &Row| row.name.ends_with(&row.part);
    let ratio_of = |against: Against| move |row: &Row| ratio(against.of(row, sides));
    let line = |row: &Row| row.line.map(|[ns, _]| (Distance::of(ns).name(), format!("{ns:.0}")));
    type Column<'a> = (&'a str, bool, Box<dyn Fn(&Row) -> String + 'a>);
    let mut columns: Vec<Column<'_>> = vec![
        ("row", false, Box::new(|row| row.name.clone())),
        (
            "size",
            false,
            Box::new(|row| match unit {
                Unit::GbPerS => size_text(row.bytes),
                _ => String::new(),
            }),
        ),
        ("part", false, Box::new(|row| if named(row) { String::new() } else { row.part.clone() })),
        ("CPUs", false, Box::new(|row| line(row).map_or("", |line| line.0).to_owned())),
        ("line", true, Box::new(|row| line(row).map_or_else(String::new, |line| line.1))),
    ];
    for &name in competitors {
        columns.push((name, true, Box::new(move |row| cell(row, name, unit))));
    }
    let best = |row: &Row| row.best(sides.peers).map_or_else(String::new, |f| f.competitor.clone());
    let word = |row: &Row| row.against(sides.own, sides.peers).map_or("", |r| row.word(r.value));
    let executor = |row: &Row| {
        let own = row.figure(sides.own).map_or("", |figure| figure.executor.as_str());
        // The name of an unrolled list has hundreds of characters.
        own.chars().take(48).collect::<String>()
    };
    columns.extend([
        ("/best peer", true, Box::new(ratio_of(Against::Peer)) as Box<dyn Fn(&Row) -> String>),
        ("best", false, Box::new(best)),
        ("", false, Box::new(move |row| word(row).to_owned())),
        ("/hand", true, Box::new(ratio_of(Against::Hand))),
        ("over c", true, Box::new(ratio_of(Against::OverC))),
        ("/kept", true, Box::new(ratio_of(Against::Kept))),
        ("first/mapped", true, Box::new(ratio_of(Against::Mapped))),
        ("/pack", true, Box::new(ratio_of(Against::Pack))),
        ("ran", false, Box::new(executor)),
    ]);
    let cells = |row: &Row| columns.iter().map(|(_, _, of)| of(row)).collect();
    let lines: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let full: Vec<usize> =
        (0..columns.len()).filter(|&c| lines.iter().any(|line| !line[c].is_empty())).collect();
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header(full.iter().map(|&column| columns[column].0));
    for line in &lines {
        table.add_row(full.iter().map(|&column| &line[column]));
    }
    for (column, &place) in table.column_iter_mut().zip(&full) {
        if columns[place].1 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    format!("{table}\n")
}

/// The columns of a table of rows in a record, and the texts of their fields. Every line of the table is one figure.
type Field = fn(&Row, &Figure) -> String;
const COLUMNS: [(&str, Field); 16] = [
    ("row", |row, _| row.name.clone()),
    ("part", |row, _| row.part.clone()),
    ("class", |row, _| row.class.clone()),
    ("size", |row, _| optional(row.size)),
    ("bytes", |row, _| row.bytes.to_string()),
    ("touched", |row, _| optional((row.touched > 0).then_some(row.touched))),
    ("line_ns", |row, _| optional(row.line.map(|[ns, _]| format!("{ns:.1}")))),
    ("line_spread", |row, _| optional(row.line.map(|[_, spread]| format!("{spread:.2}")))),
    ("competitor", |_, figure| figure.competitor.clone()),
    ("ns", |_, figure| format!("{:.3}", figure.ns)),
    ("spread", |_, figure| format!("{:.3}", figure.spread)),
    ("pack_ns", |_, figure| optional(figure.pack.map(|ns| format!("{ns:.1}")))),
    ("first_ns", |_, figure| optional(figure.first.map(|[ns, _]| format!("{ns:.0}")))),
    ("first_spread", |_, figure| optional(figure.first.map(|[_, s]| format!("{s:.3}")))),
    ("growth", |_, figure| optional(figure.growth)),
    ("over", |_, figure| if figure.over { "over".to_owned() } else { String::new() }),
];
/// The last column. The name of a kernel may contain commas, but no quotes, so quotes around it suffice.
const EXECUTOR: &str = "executor";

fn optional(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Returns the rows as CSV: a header line, and one line for each row and competitor.
pub fn csv(rows: &[Row]) -> String {
    let figures =
        || rows.iter().flat_map(|row| row.figures.iter().map(move |figure| (row, figure)));
    let is_full = |(_, of): &&(&str, Field)| figures().any(|(row, fig)| !of(row, fig).is_empty());
    let columns: Vec<&(&str, Field)> = COLUMNS.iter().filter(is_full).collect();
    let executors = figures().any(|(_, figure)| !figure.executor.is_empty());
    let mut names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    names.extend(executors.then_some(EXECUTOR));
    let mut text = names.join(",") + "\n";
    for (row, figure) in figures() {
        let fields: Vec<String> = columns.iter().map(|(_, of)| of(row, figure)).collect();
        text.push_str(&fields.join(","));
        if executors {
            let _ = write!(text, ",\"{}\"", figure.executor);
        }
        text.push('\n');
    }
    text
}

/// Reads the rows of a table of a record. Leaves out lines without a time.
pub fn read(table: &Recorded) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for line in table.lines() {
        let Some(figure) = figure(&line) else { continue };
        let (name, part) = (line.text("row"), line.text("part"));
        let size = line.text("size").parse().ok();
        let number = |name: &str| line.text(name).parse().unwrap_or(0);
        if rows.last().is_none_or(|row| row.name != name || row.part != part || row.size != size) {
            rows.push(Row {
                name: name.to_owned(),
                part: part.to_owned(),
                class: line.text("class").to_owned(),
                size,
                bytes: number("bytes"),
                touched: number("touched"),
                line: pair(&line, ["line_ns", "line_spread"]),
                figures: Vec::new(),
            });
        }
        if let Some(row) = rows.last_mut() {
            row.figures.push(figure);
        }
    }
    rows
}

fn pair(line: &Line<'_>, names: [&str; 2]) -> Option<[f64; 2]> {
    Some([line.number(names[0])?, line.text(names[1]).parse().ok()?])
}

fn figure(line: &Line<'_>) -> Option<Figure> {
    let [ns, spread] = pair(line, ["ns", "spread"])?;
    Some(Figure {
        executor: line.text(EXECUTOR).to_owned(),
        pack: line.number("pack_ns"),
        first: pair(line, ["first_ns", "first_spread"]),
        growth: line.text("growth").parse().ok(),
        over: !line.text("over").is_empty(),
        ..Figure::new(line.text("competitor"), ns, spread)
    })
}

/// Returns measurements as JSON.
///
/// # Errors
///
/// Returns an error if they cannot be written as JSON.
pub fn json<T: Serialize + ?Sized>(measured: &T) -> serde_json::Result<String> {
    serde_json::to_string_pretty(measured).map(|text| text + "\n")
}

#[cfg(test)]
mod tests {
    use super::{Unit, csv, read, size_text, table};
    use crate::record::Record;
    use crate::row::{Figure, Row, Sides};

    fn rows() -> Vec<Row> {
        let with = |figures| Row {
            name: "a".into(),
            part: "user".into(),
            bytes: 2048,
            touched: 4096,
            line: Some([60.0, 1.1]),
            figures,
            ..Row::default()
        };
        let first = Figure {
            first: Some([900.0, 1.0]),
            growth: Some(0),
            executor: "x, y".into(),
            ..Figure::new("typepack", 100.0, 1.0)
        };
        let other = Row { name: "b".into(), size: Some(8), ..with(vec![Figure::over("one", 20)]) };
        vec![with(vec![first, Figure::new("one", 150.0, 1.5)]), other]
    }

    #[test]
    fn a_record_gives_the_rows_again() {
        let rows = rows();
        let text = csv(&rows);
        assert!(text.starts_with("row,part,size,bytes,touched,line_ns,"), "{text}");
        assert!(!text.contains("pack_ns") && !text.contains("class"), "{text}");
        let record = Record::parse(&text).expect("a record");
        assert_eq!(read(&record.tables[0]), rows);
    }

    #[test]
    fn failures_losses_and_unsteady_figures_are_shown() {
        let peers = ["one".to_owned(), "two".to_owned()];
        let sides = Sides { own: "typepack", peers: &peers };
        let names = ["typepack", "one", "two"];
        let text = table(&rows(), &names, sides, Unit::Us);
        let line = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).expect(name);
            line.split('|').map(str::trim).filter(|c| !c.is_empty()).collect::<Vec<_>>()
        };
        let own =
            ["a", "user", "near", "60", "0.100 (0.900)", "0.150~", "failed", "1.50~", "one", "win"];
        assert_eq!(line("| a "), [&own[..], &["x, y"]].concat());
        assert_eq!(line("| b ")[4..], ["failed", "over 20 s", "failed", "one"]);
        assert!(!text.contains("/hand") && !text.contains("size"), "{text}");
        let text = table(&rows()[..1], &names, sides, Unit::GbPerS);
        assert!(text.contains("2 KiB") && text.contains("| 20.48 (2.28) |"), "{text}");
    }

    #[test]
    fn sizes_for_people() {
        let texts = [1000, 1024, 16384, 262_144, 4 << 20, 3 << 19].map(size_text);
        assert_eq!(texts, ["1000 B", "1 KiB", "16 KiB", "256 KiB", "4 MiB", "1536 KiB"]);
    }
}
