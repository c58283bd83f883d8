//! The table that a run of `typepack demo` writes: a line for each measured exchange.
//!
//! `mod.rs` writes the table after a run, and reads the tables of several runs for `picture.rs`.

use std::fmt::{self, Write as _};
use std::path::Path;

use clap::ValueEnum;
use typepack_job::sys::named;

use crate::halo::Way;

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
    /// Datatypes in MPICH, measured by `datatypes.c`.
    Mpich,
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
    /// The least time of an exchange in this run, in microseconds.
    pub us: f64,
    /// The nanoseconds of the probe: how long a short message between the two ranks takes. It shows how far apart their
    /// CPUs are, which changes on virtual machines.
    pub probe_ns: f64,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<52} {:>9.1} us", self.what, self.us)?;
        let gaps = if self.bar == Bar::HandWhole { ", whole cells" } else { "" };
        write!(f, "   verified bit for bit{gaps}")
    }
}

const HEADER: &str = "bar,case,what,bytes,us,probe_ns";

/// Writes the table of a run.
pub fn write(path: &Path, records: &[Record]) -> Result<(), String> {
    let mut text = format!("{HEADER}\n");
    for record in records {
        let Record { bar, case, what, bytes, us, probe_ns } = record;
        let bar = bar.name();
        // Writing to a string cannot fail.
        let _infallible = writeln!(text, "{bar},{case},\"{what}\",{bytes},{us:.3},{probe_ns:.1}");
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
        let [bar, case, what, bytes, us, probe_ns] = cells[..] else { return Err(bad()) };
        let bar = Bar::from_str(bar, false).map_err(|_| bad())?;
        let bytes = bytes.parse().map_err(|_| bad())?;
        let number = |text: &str| {
            let number: f64 = text.parse().map_err(|_| bad())?;
            if (0.0..1e12).contains(&number) { Ok(number) } else { Err(bad()) }
        };
        let (us, probe_ns) = (number(us)?, number(probe_ns)?);
        let (case, what) = (case.to_owned(), what.to_owned());
        records.push(Record { bar, case, what, bytes, us, probe_ns });
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_back() {
        let path = std::env::temp_dir().join(format!("typepack-demo-{}.csv", std::process::id()));
        let record = |case: &str, us| Record {
            bar: Bar::HandWhole,
            case: case.to_owned(),
            what: "structs {char, int}".to_owned(),
            bytes: 12,
            us,
            probe_ns: 40.5,
        };
        let records = [record("structs", 1.5), record("rows", 2.25)];
        write(&path, &records).expect("written");
        let back = read(&path);
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(back.expect("read"), records);
    }

    #[test]
    fn other_and_damaged_tables_are_refused() {
        let refused = |text: &str| parse(text.as_bytes()).expect_err("must be refused");
        assert!(refused("a,b\n1,2\n").contains(HEADER));
        for row in ["hand,a,b,1,2", "fast,a,b,1,2,2", "hand,a,b,-1,2,2", "hand,a,b,1,NaN,2"] {
            let text = refused(&format!("{HEADER}\n{row}\n"));
            assert!(text.contains("line") || text.contains("record"), "{text}");
        }
    }
}
