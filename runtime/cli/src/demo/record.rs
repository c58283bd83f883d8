//! The table that a run of `typepack demo` writes. A case is one of the measured exchanges, or the solver.
//! The time of the solver has three parts. The table has one line for each part of the time of each case.
//!
//! `mod.rs` writes the table after a run, and reads the tables of several runs for `picture.rs`.

use std::fmt::{self, Write as _};
use std::path::Path;

use clap::ValueEnum;
use typepack_job::sys::named;

use crate::halo::{Run, Way};

/// A part of a case's time.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The name of the activity that takes this time, for example `exchange`.
    pub name: String,
    /// Microseconds per exchange or per step.
    pub us: f64,
}

/// A bar of the picture: one way of exchanging halos. The hand-written loops have a second bar in the cases
/// whose cells have gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Bar {
    /// Datatypes, interpreted.
    Interpreter,
    /// Hand-written loops that leave gaps unchanged.
    Hand,
    /// Hand-written loops that copy whole cells, including gaps.
    HandWhole,
    /// Datatypes with kernels.
    Typepack,
}

impl Bar {
    /// Returns the bar of a way. For hand-written loops, this is the bar of the loops that leave gaps
    /// unchanged.
    pub fn of(way: Way) -> Self {
        match way {
            Way::Interpreter => Self::Interpreter,
            Way::Hand => Self::Hand,
            Way::Typepack => Self::Typepack,
        }
    }

    /// Returns the name in the table.
    fn name(self) -> String {
        // No variant is skipped by clap, so each has a name.
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// The result of one case for one bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// How halos were exchanged.
    pub bar: Bar,
    /// Short name of the case.
    pub case: String,
    /// The case in words.
    pub what: String,
    /// Number of bytes that all ranks together send in one exchange.
    pub bytes: u64,
    /// The parts of the time.
    pub parts: Vec<Part>,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<52} {:>9.1} us", self.what, self.us())?;
        let gaps = if self.bar == Bar::HandWhole { ", whole cells" } else { "" };
        write!(f, "   verified bit for bit{gaps}")
    }
}

const HEADER: &str = "bar,case,what,bytes,part,us";

impl Record {
    /// Returns the solver's time per step, in three parts: the exchange (packing, waiting, unpacking), the
    /// computation of the interior while messages move, and the computation that begins after the exchange.
    pub fn of_solver(way: Way, run: &Run, steps: usize) -> Self {
        let m = &run.measurement;
        let [start, interior, wait, rim, plain] = m.slowest().map(|s| s / steps as f64 * 1e6);
        let part = |name: &str, us| Part { name: name.to_owned(), us };
        Self {
            bar: Bar::of(way),
            case: "solver".to_owned(),
            what: "solver: one step of a 3-D heat equation".to_owned(),
            bytes: m.bytes,
            parts: vec![
                part("interior", interior),
                part("rim", rim + plain),
                part("exchange", start + wait),
            ],
        }
    }

    /// Returns the microseconds of all parts together.
    pub fn us(&self) -> f64 {
        self.parts.iter().map(|part| part.us).sum()
    }
}

/// Writes the table of a run.
pub fn write(path: &Path, records: &[Record]) -> Result<(), String> {
    let mut text = format!("{HEADER}\n");
    for record in records {
        let Record { bar, case, what, bytes, parts } = record;
        let bar = bar.name();
        for Part { name, us } in parts {
            // Writing to a string cannot fail.
            let _infallible = writeln!(text, "{bar},{case},\"{what}\",{bytes},{name},{us:.3}");
        }
    }
    named::write(path, text).map_err(|error| format!("--csv: {}: {error}", path.display()))
}

/// Reads a table that [`write`] has written.
pub fn read(path: &Path) -> Result<Vec<Record>, String> {
    let name = path.display();
    let text =
        named::read(path, named::TEXT_MAX).map_err(|error| format!("--draw: {name}: {error}"))?;
    parse(&text).map_err(|what| format!("--draw: {name}: {what}"))
}

fn parse(text: &[u8]) -> Result<Vec<Record>, String> {
    let mut reader = csv::Reader::from_reader(text);
    let header = reader.headers().map_err(|error| error.to_string())?;
    let found = header.iter().collect::<Vec<_>>().join(",");
    if found != HEADER {
        let found: String = found.chars().take(80).collect();
        return Err(format!(
            "the first line is {found:?}; the first line of a table of typepack demo is {HEADER}"
        ));
    }
    let mut records: Vec<Record> = Vec::new();
    for (number, row) in reader.records().enumerate() {
        let row = row.map_err(|error| error.to_string())?;
        let cells: Vec<&str> = row.iter().collect();
        let bad = || {
            let found = cells.join(",");
            format!("line {} is {found:?}, which does not fit the columns {HEADER}", number + 2)
        };
        let [bar, case, what, bytes, part, us] = cells[..] else { return Err(bad()) };
        let bar = Bar::from_str(bar, false).map_err(|_| bad())?;
        let bytes = bytes.parse().map_err(|_| bad())?;
        let us: f64 = us.parse().map_err(|_| bad())?;
        if !(0.0..1e12).contains(&us) {
            return Err(bad());
        }
        let part = Part { name: part.to_owned(), us };
        match records.last_mut().filter(|last| last.bar == bar && last.case == case) {
            Some(last) => last.parts.push(part),
            None => {
                let (case, what) = (case.to_owned(), what.to_owned());
                records.push(Record { bar, case, what, bytes, parts: vec![part] });
            }
        }
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_back() {
        let path = std::env::temp_dir().join(format!("typepack-demo-{}.csv", std::process::id()));
        let part = |name: &str, us| Part { name: name.to_owned(), us };
        let record = |case: &str, parts| Record {
            bar: Bar::HandWhole,
            case: case.to_owned(),
            what: "structs {char, int}".to_owned(),
            bytes: 12,
            parts,
        };
        let records = [
            record("structs", vec![part("exchange", 1.5)]),
            record("solver", vec![part("interior", 2.0), part("exchange", 0.25)]),
        ];
        write(&path, &records).expect("written");
        let back = read(&path);
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(back.expect("read"), records);
        assert_eq!(records[1].us(), 2.25);
    }

    #[test]
    fn other_and_damaged_tables_are_refused() {
        let refused = |text: &str| parse(text.as_bytes()).expect_err("must be refused");
        assert!(refused("a,b\n1,2\n").contains(HEADER));
        for row in ["hand,a,b,1,c", "fast,a,b,1,c,2", "hand,a,b,-1,c,2", "hand,a,b,1,c,NaN"] {
            let text = refused(&format!("{HEADER}\n{row}\n"));
            assert!(text.contains("line") || text.contains("record"), "{text}");
        }
    }
}
