//! Writes `bench-suite/RESULTS.md` from the records in `bench-suite/record/`: when typepack is faster, equally fast or
//! slower than each competitor.
//!
//! `typepack-bench results` uses this module. [`read`] reads the records of a folder, and [`text`] returns the page. Each
//! section of the page has the rows of one record, and so of one commit: of each machine the record with the most kinds
//! of measurements, and the newest record of a kind that these lack. `group.rs` sums up the rows of a record.

mod group;

use self::group::{Cell, Group, groups, losses, opponents};
use crate::record::Record;
use crate::row::TIE;
use std::collections::BTreeMap;
use std::path::Path;

/// One record with the names of its files.
#[derive(Clone, Debug)]
struct Source {
    /// The name that all files of the record share, without the file endings.
    name: String,
    /// The contents of the CSV file.
    record: Record,
    /// The names of the pictures of ratios in the record's folder, without their endings.
    pictures: Vec<String>,
}

impl Source {
    fn fact(&self, key: &str) -> &str {
        self.record.fact(key).unwrap_or("not in the record")
    }

    /// Returns the machine, and what was measured if that is only one kind.
    fn title(&self) -> String {
        match &self.record.tables[..] {
            [only] => format!("{}: {}", self.fact("cpu"), only.name),
            _ => self.fact("cpu").to_owned(),
        }
    }
}

/// The contents of the folder of records.
#[derive(Clone, Debug, Default)]
pub struct Records(Vec<Source>);

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
        let drawn = folder.join(&name);
        let mut pictures = if drawn.is_dir() { list(&drawn, ".svg")? } else { Vec::new() };
        pictures.retain(|picture| picture.starts_with("speedup"));
        sources.push(Source { name, record, pictures });
    }
    if sources.is_empty() {
        let line = "the folder has no record (a file whose name ends in .csv)";
        return Err(named(folder, line.to_owned()));
    }
    Ok(Records(sources))
}

impl Records {
    /// Returns the machines and the names of the tables of which more than one record has rows. There should be none:
    /// only the newest complete record stays.
    pub fn repeated(&self) -> Vec<String> {
        let mut seen: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        for source in &self.0 {
            for table in &source.record.tables {
                seen.entry((source.fact("cpu"), &table.name)).or_default().push(&source.name);
            }
        }
        let several = seen.into_iter().filter(|(_, names)| names.len() > 1);
        several
            .map(|((cpu, table), names)| format!("{cpu}: {table}: {}", names.join(", ")))
            .collect()
    }
}

/// The first lines of the page.
const HEAD: &str = "# Results

<!-- Generated from bench-suite/record/ by `typepack-bench results`. Do not edit. -->

When is typepack faster, equally fast or slower than a hand-written loop, MPICH, Intel MPI (`impi-rt`), Open MPI? The
answer stands machine by machine. Each section is made from the rows of one record, and so of one commit; it says nothing
about other commits. A test fails when the page does not match the records.

A ratio is the time of the other one divided by the time of typepack: above 1 typepack is faster, below 1 slower.
Between 0.97 and 1.03 both are equally fast; in rows that touch more than 8 MiB of memory, between 0.67 and 1.5. Only steady
rows count: those whose interleaved rounds differ by at most 1.25x. Means are geometric. [The README](README.md) says how
each figure is measured, and the `.txt` file beside a record compares it with the project's bars.
";

/// Returns the text of the page. `folder` is the path of the records relative to the page.
#[must_use]
pub fn text(records: &Records, folder: &str) -> String {
    let mut page = HEAD.to_owned();
    let mut machines: Vec<&str> = records.0.iter().map(|source| source.fact("cpu")).collect();
    machines.dedup();
    let mut chosen: Vec<&Source> = Vec::new();
    for machine in machines {
        let own = records.0.iter().filter(|source| source.fact("cpu") == machine);
        // Of several equal records, the last one is the newest.
        let most = own.max_by_key(|source| source.record.tables.len());
        chosen.extend(most.filter(|most| !chosen.iter().any(|other| other.name == most.name)));
    }
    for source in records.0.iter().rev() {
        let has = |other: &Source, name: &str| other.record.tables.iter().any(|t| t.name == name);
        let is_missing = |name: &str| !chosen.iter().any(|other| has(other, name));
        if source.record.tables.iter().any(|table| is_missing(&table.name)) {
            chosen.push(source);
        }
    }
    // The record with the most measurements comes first.
    chosen.sort_by_key(|source| std::cmp::Reverse(source.record.tables.len()));
    page.push_str(&totals(&chosen));
    for source in &chosen {
        page.push_str(&machine(source, folder));
    }
    let others = records.0.iter().filter(|s| !chosen.iter().any(|other| other.name == s.name));
    let lines: Vec<Vec<String>> = others
        .map(|source| {
            let tables: Vec<&str> = source.record.tables.iter().map(|t| t.name.as_str()).collect();
            let link = format!("[{0}]({folder}/{0}.csv)", source.name);
            vec![
                link,
                source.fact("cpu").to_owned(),
                source.fact("commit").to_owned(),
                tables.join(", "),
            ]
        })
        .collect();
    if !lines.is_empty() {
        page.push_str("\n## Other records\n\nTheir rows are of other commits, so they are not part of this page.\n\n");
        page.push_str(&table(&["record", "machine", "commit", "tables"], &lines));
    }
    page
}

/// Returns the section of the page about one record.
fn machine(source: &Source, folder: &str) -> String {
    let mut out = format!("\n## {}\n\n", source.title());
    out += &format!(
        "Record [{0}]({folder}/{0}.csv), command `{1}`, {2}, commit {3}; {4}, {5}; load before {6}.\n",
        source.name,
        source.fact("command").trim(),
        source.fact("date"),
        source.fact("commit"),
        source.fact("kernel"),
        source.fact("rustc"),
        source.fact("load before"),
    );
    let groups = groups(&source.record);
    let opponents = opponents(&groups);
    out.push('\n');
    for (name, title) in &opponents {
        out += &sentences(&groups, name, title);
    }
    let mut columns = vec!["what", ">steady rows"];
    let titles: Vec<String> = opponents.iter().map(|(_, title)| format!(">{title}")).collect();
    columns.extend(titles.iter().map(String::as_str));
    let line = |group: &Group| {
        let mut line =
            vec![group.title.clone(), format!("{} of {}", group.steady(), group.rows.len())];
        line.extend(
            opponents.iter().map(|(name, _)| group.against(name).map_or_else(String::new, cell)),
        );
        line
    };
    out += "\n### All groups of rows\n\nMean ratio, least ratio in parentheses, and the numbers of rows in which typepack is \
            faster / equally fast / slower.\n\n";
    out += &table(&columns, &groups.iter().map(line).collect::<Vec<_>>());
    out += "\n### Rows in which typepack is slower\n\n";
    let lost = losses(&groups);
    if lost.is_empty() {
        out += "None of the steady rows.\n";
    } else {
        out += "For each row the ratio, and in a row with peers the fastest one.\n\n";
        out += &table(&["what", "row", "slower than", "ratios"], &lost);
    }
    let picture = |name: &String| format!("![{name}]({folder}/{}/{name}.svg)\n", source.name);
    let pictures: String = source.pictures.iter().map(picture).collect();
    if !pictures.is_empty() {
        out += &format!("\n{pictures}");
    }
    out
}

/// Returns up to three lines: in which groups typepack is slower than, equally fast as, and faster than the competitor
/// `name`, on average.
fn sentences(groups: &[Group], name: &str, title: &str) -> String {
    let mut lists = [const { Vec::new() }; 3];
    for group in groups {
        let Some(cell) = group.against(name) else { continue };
        let place = match cell.mean {
            mean if mean > 1.0 / TIE => 2,
            mean if mean >= TIE => 1,
            _ => 0,
        };
        let slower = match (cell.counts[2], place) {
            (0, _) | (_, 0) => String::new(),
            (n, _) => format!(", {n} of {} rows slower", cell.counts.iter().sum::<usize>()),
        };
        lists[place].push(format!("{} ({:.2}{slower})", group.title, cell.mean));
    }
    let words = ["Slower than", "Equally fast as", "Faster than"];
    let lines = words.iter().zip(&lists).filter(|(_, list)| !list.is_empty());
    lines.map(|(word, list)| format!("- {word} **{title}**: {}.\n", list.join("; "))).collect()
}

/// Returns a table with the numbers of rows in which typepack is faster, equally fast and slower, for each section and
/// competitor.
fn totals(chosen: &[&Source]) -> String {
    let mut lines = Vec::new();
    for source in chosen {
        let groups = groups(&source.record);
        for (name, title) in opponents(&groups) {
            let cells: Vec<Cell> = groups.iter().filter_map(|group| group.against(&name)).collect();
            let mut line = vec![source.title(), title];
            line.extend(
                (0..3).map(|n| cells.iter().map(|c| c.counts[n]).sum::<usize>().to_string()),
            );
            lines.push(line);
        }
    }
    let columns = ["machine", "typepack against", ">rows faster", ">equally fast", ">slower"];
    format!("\n## In short\n\n{}", table(&columns, &lines))
}

fn cell(cell: Cell) -> String {
    let [faster, equal, slower] = cell.counts;
    let bold = if cell.mean < TIE { "**" } else { "" };
    format!("{bold}{:.2}{bold} ({:.2}) {faster} / {equal} / {slower}", cell.mean, cell.least)
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

#[cfg(test)]
mod tests {
    use super::{Records, Source, text};
    use crate::record::Record;

    fn source(name: &str, csv: &str) -> Source {
        let record = Record::parse(csv).expect("a record");
        Source { name: name.to_owned(), record, pictures: Vec::new() }
    }

    const PEERS: &str = "# date: 2026-01-02\n# cpu: some, 2 cores\n# commit: abc\n# typepack-bench peers\n\
        row,part,class,size,bytes,touched,competitor,ns,spread\n\
        a,pack,plain,1024,1024,4096,typepack,100,1.0\n\
        a,pack,plain,1024,1024,4096,hand,200,1.0\n\
        a,pack,plain,1024,1024,4096,mine,50,1.0\n\
        b,pack,plain,1024,1024,4096,typepack,100,1.0\n\
        b,pack,plain,1024,1024,4096,mine,800,1.0\n\
        c,pack,plain,1024,1024,4096,typepack,100,1.5\n\
        c,pack,plain,1024,1024,4096,mine,1,1.0\n";

    #[test]
    fn the_page_says_where_typepack_is_faster_and_slower() {
        let behind = "# cpu: some, 2 cores\n# typepack-bench interpose\nrow,part,class,bytes,competitor,ns,spread\n\
            d-8B,user,e,8,mine+typepack,100,1.0\nd-8B,user,e,8,mine,50,1.0\n";
        let records = Records(vec![source("one", behind), source("two", PEERS)]);
        let page = text(&records, "record");
        let line = |part: &str| {
            let found = page.lines().find(|line| line.contains(part));
            found.unwrap_or_else(|| panic!("no line with {part} in:\n{page}"))
        };
        assert!(page.contains("| some, 2 cores: peers | mine | 1 | 0 | 1 |"), "{page}");
        assert!(line("Record [two](record/two.csv)").contains("2026-01-02, commit abc"), "{page}");
        assert!(page.contains("\n- Faster than **hand-written loops**: packing, "), "{page}");
        // The mean of 0.5 and 8 is 2. The third row is unsteady.
        assert!(
            line("(2.00, 1 of 2 rows slower)").starts_with("- Faster than **mine**: packing"),
            "{page}"
        );
        assert!(
            line("| 2 of 3 |").ends_with("2.00 (2.00) 1 / 0 / 0 | 2.00 (0.50) 1 / 0 / 1 |"),
            "{page}"
        );
        assert!(line("| a | the best peer |").contains("pack 1 KiB 0.50 |"), "{page}");
        // The other record has no rows of this kind.
        assert!(page.contains("| some, 2 cores: interpose | mine | 0 | 0 | 1 |"), "{page}");
        assert!(records.repeated().is_empty());
        let records = Records(vec![source("one", behind), source("three", behind)]);
        assert_eq!(records.repeated(), ["some, 2 cores: interpose: one, three"]);
        let page = text(&records, "record");
        assert!(
            page.contains("- Slower than **mine**: interposer, e (0.50).")
                && page.contains("three.csv"),
            "{page}"
        );
    }
}
