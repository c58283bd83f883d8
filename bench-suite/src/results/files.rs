//! Writes the section of a record about files, and the cells of its bars.
//!
//! `sections.rs` and `overview.rs` use this file. `../files/report.rs` reads the rows of the record, and
//! `../files/summary.rs` compares them with the bars.

use super::sections::limit;
use super::{Source, table};
use crate::files::definition::{Bar, Definitions};
use crate::files::report::{self, MEANING, Run, cell, ratios};
use crate::files::summary::{shown, verdict, word};
use std::fmt::Write;

/// Returns the cells of a bar: the worst steady row, the worst of all rows, and the verdict. `None` if no row of
/// the run can be compared with the bar.
pub(super) fn cells(run: &Run, bar: &Bar) -> Option<[String; 3]> {
    let found = verdict(run, bar);
    if found.values.is_empty() {
        return None;
    }
    let cell = |steady_only: bool| match found.worst(steady_only) {
        None => "no steady row".to_owned(),
        Some(worst) if !worst.passes && steady_only => {
            format!("**{}** of {}", shown(worst), found.count(steady_only))
        }
        Some(worst) => format!("{} of {}", shown(worst), found.count(steady_only)),
    };
    let verdict = match word(found.passes(true)) {
        "pass" => "reached",
        "MISS" => "**missed**",
        other => other,
    };
    Some([cell(true), cell(false), verdict.to_owned()])
}

/// Writes the section.
pub(super) fn text(source: &Source, out: &mut String) {
    let Some(run) = report::read(&source.record) else { return };
    let _ = writeln!(out, "\n#### Files\n");
    let bars = Definitions::built_in().bars;
    let rows = bars.iter().map(|bar| {
        let mut line = vec![bar.text.clone(), limit(bar.bar, bar.against.is_at_most())];
        line.extend(
            cells(&run, bar)
                .unwrap_or_else(|| ["no such row", "", "not measured"].map(str::to_owned)),
        );
        line
    });
    let columns = ["bar (worst row)", "required", "steady rows", "all rows", "verdict"];
    out.push_str(&table(&columns, &rows.collect::<Vec<_>>()));
    let mut columns = vec!["row".to_owned()];
    columns.extend(run.competitors().iter().map(|name| format!(">{name}")));
    columns.extend([">/peer", ">/kept", ">first/mapped"].map(str::to_owned));
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let rows = run.rows.iter().map(|row| {
        let mut line = vec![row.name.clone()];
        line.extend(run.competitors().iter().map(|name| cell(row, name)));
        line.extend(ratios(row));
        line
    });
    let _ = writeln!(out, "\n{MEANING}\n\n{}", table(&columns, &rows.collect::<Vec<_>>()));
}

#[cfg(test)]
mod tests {
    use super::{cells, text};
    use crate::files::definition::Definitions;
    use crate::files::report;
    use crate::record::Record;
    use crate::results::Source;

    #[test]
    fn the_section_has_bars_and_rows() {
        let csv = "# cpu: some\n# typepack-bench io\nrow,class,block,direction,calls,bytes,library,first_ns,\
            first_spread,best_ns,best_spread,turns,growth,fault\n\
            8B-write-collective,fine,8,write,collective,1000,loop-kept,900,1.0,700,1.0,3,0,\n\
            8B-write-collective,fine,8,write,collective,1000,typepack,900,1.0,2000,1.0,3,0,\n\
            8B-write-collective,fine,8,write,collective,1000,mine,,,,,0,,over 20\n\
            8B-write-collective,fine,8,write,collective,1000,other,90000,1.0,80000,1.1,3,0,\n";
        let record = Record::parse(csv).expect("a record");
        let run = report::read(&record).expect("a table");
        let bars = Definitions::built_in().bars;
        let of = |text: &str| {
            let bar = bars.iter().find(|bar| bar.text.ends_with(text)).expect("a bar");
            cells(&run, bar)
        };
        let missed = ["**0.35** of 1", "0.35 of 1", "**missed**"].map(str::to_owned);
        assert_eq!(of("13-of-16 structs: against the kept mapping"), Some(missed));
        let reached = ["40.00 of 1", "40.00 of 1", "reached"].map(str::to_owned);
        assert_eq!(of("13-of-16 structs: collective write"), Some(reached));
        assert_eq!(of("contiguous, large and 4 KiB"), None);
        let source = Source { name: "r".to_owned(), record, summary: None, pictures: Vec::new() };
        let mut page = String::new();
        text(&source, &mut page);
        assert!(
            page.contains("| contiguous, large and 4 KiB | at least 1 | no such row |"),
            "{page}"
        );
        assert!(page.contains("over 20 s") && page.contains("| 40.00 | 0.35 |"), "{page}");
    }
}
