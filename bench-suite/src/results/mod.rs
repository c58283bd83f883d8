//! Writes `bench-suite/RESULTS.md` from the records in `bench-suite/record/`.
//!
//! `typepack-bench results` uses this module. [`read`] reads the records of a folder. A record consists
//! of a CSV file, and usually a text file and a folder of pictures, which all have the same name. [`text`] returns the
//! page: a summary of all bars, and then, machine by machine, each record with its tables.
//!
//! `packing.rs` turns the tables of `typepack-bench peers` back into a [`Suite`](crate::suite::Suite).
//! `ranks.rs` turns the tables of messages, collectives, one-sided communication and jobs back into a
//! [`Run`](crate::message::report::Run). So the code that compares a run with the bars can also compare a
//! record with them. `sections.rs` and `files.rs` write the sections of a record, and `overview.rs` writes the summary.
//!
//! The page says which tables and columns a record lacks. The file `unrecorded.md` in the folder of the
//! records has figures that are in no record. The page ends with a copy of this file, under a heading that
//! says so.

mod files;
mod overview;
mod packing;
mod ranks;
mod sections;

use crate::record::Record;
use std::path::Path;

/// One record with the names of its files.
#[derive(Clone, Debug)]
struct Source {
    /// The name that all files of the record share, without the file endings.
    name: String,
    /// The contents of the CSV file.
    record: Record,
    /// The contents of the text file, which has the summaries; `None` if there is no such file.
    summary: Option<String>,
    /// The names of the pictures in the record's folder, without their endings.
    pictures: Vec<String>,
}

impl Source {
    /// Returns the name of the machine on which the record was measured.
    fn machine(&self) -> &str {
        self.record.fact("cpu").unwrap_or("a machine that the record does not name")
    }
}

/// The name of the file with figures that are in no record.
const UNRECORDED: &str = "unrecorded.md";

/// The contents of the folder of records.
#[derive(Clone, Debug, Default)]
pub struct Records {
    sources: Vec<Source>,
    /// The contents of the file [`UNRECORDED`]; empty if the folder has no such file.
    unrecorded: String,
}

/// Reads all records in `folder`. Sorts them by their names, which begin with the date.
///
/// # Errors
///
/// Returns a one-line message if the folder or a file cannot be read, if a record has faults, or if the
/// folder contains no record.
pub fn read(folder: &Path) -> Result<Records, String> {
    let named = |path: &Path, fault: String| format!("{}: {fault}", path.display());
    let list = |path: &Path, ending: &str| -> Result<Vec<String>, String> {
        let entries = std::fs::read_dir(path).map_err(|e| named(path, e.to_string()))?;
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(|e| named(path, e.to_string()))?.file_name();
            names.extend(name.to_string_lossy().strip_suffix(ending).map(str::to_owned));
        }
        names.sort();
        Ok(names)
    };
    let mut sources = Vec::new();
    for name in list(folder, ".csv")? {
        let path = folder.join(format!("{name}.csv"));
        let csv = std::fs::read_to_string(&path).map_err(|e| named(&path, e.to_string()))?;
        let record = Record::parse(&csv).map_err(|e| named(&path, e.to_string()))?;
        let summary = std::fs::read_to_string(path.with_extension("txt")).ok();
        let drawn = folder.join(&name);
        let pictures = if drawn.is_dir() { list(&drawn, ".svg")? } else { Vec::new() };
        sources.push(Source { name, record, summary, pictures });
    }
    if sources.is_empty() {
        return Err(named(
            folder,
            "the folder has no record (a file whose name ends in .csv)".to_owned(),
        ));
    }
    let unrecorded = std::fs::read_to_string(folder.join(UNRECORDED)).unwrap_or_default();
    Ok(Records { sources, unrecorded })
}

/// Returns the text of the page. `folder` is the path of the records relative to the page.
#[must_use]
pub fn text(records: &Records, folder: &str) -> String {
    let sources = records.sources.as_slice();
    let mut machines: Vec<&str> = Vec::new();
    for source in sources {
        if !machines.contains(&source.machine()) {
            machines.push(source.machine());
        }
    }
    let mut page = overview::text(sources, &machines);
    for machine in machines {
        page.push_str(&format!("\n## {machine}\n"));
        for source in sources.iter().filter(|source| source.machine() == machine) {
            page.push_str(&sections::text(source, folder));
        }
        let own: Vec<&Source> = sources.iter().filter(|s| s.machine() == machine).collect();
        page.push_str(&overview::not_measured(&own));
    }
    if !records.unrecorded.is_empty() {
        page.push_str("\n## Figures without a record\n\n");
        page.push_str(&records.unrecorded);
    }
    page
}

/// Returns a table in Markdown. `columns` are the headings; a column whose heading begins with `>` is
/// aligned to the right.
fn table(columns: &[&str], rows: &[Vec<String>]) -> String {
    let heading = |column: &&str| column.trim_start_matches('>').to_owned();
    let mut lines = vec![columns.iter().map(heading).collect::<Vec<_>>().join(" | ")];
    let rule = |column: &&str| if column.starts_with('>') { "---:" } else { "---" };
    lines.push(columns.iter().map(rule).collect::<Vec<_>>().join(" | "));
    lines.extend(rows.iter().map(|row| row.join(" | ")));
    lines.iter().map(|line| format!("| {line} |\n")).collect()
}

/// Formats a number with its noun in the singular or plural: `1 row`, `2 rows`.
fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// Formats a ratio to a peer or to a hand loop. A loss is in bold.
fn ratio(value: f64) -> String {
    if value < crate::summary::TIE { format!("**{value:.2}**") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::{Records, Source, counted, ratio, table, text};
    use crate::record::Record;

    fn source(name: &str, csv: &str, summary: Option<&str>) -> Source {
        Source {
            name: name.to_owned(),
            record: Record::parse(csv).expect("a record"),
            summary: summary.map(str::to_owned),
            pictures: Vec::new(),
        }
    }

    fn page(source: Source) -> String {
        text(&Records { sources: vec![source], unrecorded: String::new() }, "record")
    }

    const PEERS: &str = "# date: 2026-01-02\n# cpu: some, 2 cores\n\
        layout,class,size,bytes,touched,direction,typepack_gb_per_s,typepack_spread,hand_gb_per_s,\
        hand_spread,mine_gb_per_s,mine_spread\n\
        a,plain,1024,1024,4096,pack,20,1.0,10,1.0,4,1.0\n\
        a,plain,1024,1024,4096,unpack,2,1.5,10,1.0,4,1.0\n\
        b,plain,1024,1024,4096,pack,3,1.0,10,1.0,4,1.0\n";

    #[test]
    fn losses_and_unsteady_rows_are_shown_and_counted() {
        let page = page(source("r", PEERS, None));
        let line = |part: &str| {
            page.lines().find(|l| l.contains(part)).unwrap_or_else(|| {
                panic!("no line with `{part}` in:\n{page}");
            })
        };
        assert!(line("| a | 1024 |").contains("20.0 / 2.0~"), "{page}");
        assert!(line("| a | 1024 |").contains("5.00 / **0.50**~"), "{page}");
        assert!(line("| b | 1024 |").contains("**0.75** / -"), "{page}");
        // The mean of the two steady ratios, 5.00 and 0.75, decides whether the bar passes. The ratio 0.50
        // is unsteady and counts only in the mean of all rows.
        assert!(line("up to 2 KiB: mean").contains("**1.94** of 2 | 1.23 of 3"), "{page}");
        assert!(page.contains("1 of 3 rows is unsteady"), "{page}");
        assert!(line("Columns that the record lacks").contains("hand-c"), "{page}");
        assert!(page.contains("The record has no text file"), "{page}");
        assert!(page.contains("commit: not in the record"), "{page}");
    }

    #[test]
    fn bars_without_a_record_are_named() {
        let messages = "# date: x\n# cpu: other\n# typepack-bench pingpong\n\
            row,class,memory,bytes,touched,distance,line_ns,line_spread,library,ns,spread,pack_ns,best_peer_ratio\n\
            contig-8B,small,user,8,128,near,50.0,1.1,typepack,200.0,1.0,,1.5\n\
            contig-8B,small,user,8,128,near,50.0,1.1,mine,300.0,1.3,,\n";
        let page = page(source("m", messages, Some("mine: 1.0\n")));
        assert!(page.contains("no steady row"), "{page}");
        assert!(page.contains("1.50 of 1"), "{page}");
        for missing in
            ["typepack-bench peers", "typepack-bench commit", "typepack-bench collectives"]
        {
            assert!(page.contains(missing), "{missing}\n{page}");
        }
        assert!(page.contains("mine: 1.0"), "{page}");
    }

    #[test]
    fn small_texts() {
        assert_eq!(
            table(&["a", ">b"], &[vec!["1".into(), "2".into()]]),
            "| a | b |\n| --- | ---: |\n| 1 | 2 |\n"
        );
        assert_eq!((counted(1, "row"), counted(0, "row")), ("1 row".into(), "0 rows".into()));
        assert_eq!((ratio(0.96), ratio(1.0)), ("**0.96**".into(), "1.00".into()));
    }
}
