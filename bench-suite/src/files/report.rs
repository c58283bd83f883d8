//! Turns the measured rows of files into a table and into CSV, and the CSV of a record back into rows.
//!
//! `summary.rs` compares the rows with the bars. `../results/` writes the rows of records.

use super::definition::{Against, Calls, Direction};
use super::suite::{Best, Figure, LOOPS, Measured, Outcome};
use super::summary::value;
use crate::load::Load;
use crate::measure::STEADY;
use crate::message::library::TYPEPACK;
use crate::record::{Line, Record};
use comfy_table::{CellAlignment, Table, presets};
use std::fmt::Write;

/// The name of the table of files in records.
pub const FILES: &str = "io";

/// The results of one run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// What other programs did before the run; `None` if nobody has looked.
    pub load: Option<Load>,
    /// The names of the libraries; the first one is typepack.
    pub libraries: Vec<String>,
    /// The versions that the libraries report, and the file system, one line each.
    pub versions: Vec<String>,
    /// The rows.
    pub rows: Vec<Measured>,
    /// The faults, one line each.
    pub faults: Vec<String>,
}

impl Run {
    /// Returns the names of all competitors: the libraries, and then the loops.
    pub fn competitors(&self) -> Vec<&str> {
        let libraries = self.libraries.iter().map(String::as_str);
        libraries.chain(LOOPS.iter().map(|(name, _)| *name)).collect()
    }
}

/// Formats a rate in MB/s, with a mark if the figure is unsteady.
fn rate(bytes: u64, best: Best) -> String {
    let mark = if best.spread > STEADY { "~" } else { "" };
    let rate = 1000.0 * bytes as f64 / best.ns;
    if rate < 10.0 { format!("{rate:.1}{mark}") } else { format!("{rate:.0}{mark}") }
}

/// Returns the cell of a competitor in a row: the rates of its fastest access and, for typepack, of its first
/// access.
pub fn cell(row: &Measured, competitor: &str) -> String {
    match row.figure(competitor).map(|figure| figure.outcome) {
        Some(Outcome::Measured { first, best, .. }) if competitor == TYPEPACK => {
            format!("{} ({})", rate(row.bytes, best), rate(row.bytes, first))
        }
        Some(Outcome::Measured { best, .. }) => rate(row.bytes, best),
        Some(Outcome::Over(seconds)) => format!("over {seconds} s"),
        Some(Outcome::Failed) => "failed".to_owned(),
        None => "-".to_owned(),
    }
}

/// Returns three cells of a row: the time of the best peer over typepack's, the time of the loop over a kept
/// mapping over typepack's, and the time of the loop that maps each time over that of typepack's first access.
pub fn ratios(row: &Measured) -> [String; 3] {
    [Against::Peer, Against::Kept, Against::Mapped].map(|against| match value(row, against) {
        Some((ratio, least, steady)) => {
            let (least, mark) = (if least { ">" } else { "" }, if steady { "" } else { "~" });
            format!("{least}{ratio:.2}{mark}")
        }
        None => "-".to_owned(),
    })
}

/// What the figures of the table mean.
pub const MEANING: &str = "MB/s of data of both ranks, the best of the interleaved turns; in parentheses the first \
access after opening. /peer: time of the best peer over typepack's. /kept: time of the loop over a kept mapping \
over typepack's. first/mapped: time of the loop that maps each time over that of typepack's first access.";

/// Returns the human-readable table.
pub fn table(run: &Run) -> String {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    let competitors = run.competitors();
    let mut header = vec!["row"];
    header.extend(&competitors);
    header.extend(["/peer", "/kept", "first/mapped"]);
    table.set_header(header);
    for row in &run.rows {
        let mut cells = vec![row.name.clone()];
        cells.extend(competitors.iter().map(|name| cell(row, name)));
        cells.extend(ratios(row));
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text =
        format!("{table}\n{MEANING} ~: the second-best turn is more than {STEADY}x slower.\n");
    let billion = run.rows.iter().filter(|row| row.class == "billion");
    for row in billion {
        for figure in &row.figures {
            if let Outcome::Measured { first, growth, .. } = figure.outcome {
                let _ = writeln!(
                    text,
                    "{}: {}: {:.3} ms, {} KiB",
                    row.name,
                    figure.competitor,
                    first.ns / 1e6,
                    growth / 1024
                );
            }
        }
    }
    text
}

/// Returns the rows as CSV: a header line, and one line for each row and competitor.
pub fn csv(run: &Run) -> String {
    let mut text = run.load.map_or_else(String::new, |load| load.comment(FILES));
    text.push_str(
        "row,class,block,direction,calls,bytes,library,first_ns,first_spread,best_ns,best_spread,turns,growth,\
         fault\n",
    );
    for row in &run.rows {
        let block = row.block.map_or(String::new(), |block| block.to_string());
        for figure in &row.figures {
            let _ = write!(
                text,
                "{},{},{block},{},{},{},{},",
                row.name,
                row.class,
                row.direction.name(),
                row.calls.name(),
                row.bytes,
                figure.competitor
            );
            let _ = match figure.outcome {
                Outcome::Measured { first, best, turns, growth } => writeln!(
                    text,
                    "{:.0},{:.3},{:.0},{:.3},{turns},{growth},",
                    first.ns, first.spread, best.ns, best.spread
                ),
                Outcome::Over(seconds) => writeln!(text, ",,,,0,,over {seconds}"),
                Outcome::Failed => writeln!(text, ",,,,0,,failed"),
            };
        }
    }
    text
}

/// Reads the table of files of a record; `None` if the record has none. Leaves out lines that cannot be read.
pub fn read(record: &Record) -> Option<Run> {
    let table = record.table(FILES)?;
    let mut run = Run::default();
    for line in table.lines() {
        add(&mut run, &line);
    }
    run.libraries.sort_by_key(|name| name != TYPEPACK);
    Some(run)
}

fn add(run: &mut Run, line: &Line<'_>) -> Option<()> {
    let direction = Direction::ALL.into_iter().find(|d| d.name() == line.text("direction"))?;
    let calls = Calls::ALL.into_iter().find(|c| c.name() == line.text("calls"))?;
    let (name, library) = (line.text("row"), line.text("library"));
    let outcome = match line.text("fault") {
        "failed" => Outcome::Failed,
        "" => {
            let best = |ns: &str, spread: &str| {
                Some(Best { ns: line.number(ns)?, spread: line.text(spread).parse().ok()? })
            };
            Outcome::Measured {
                first: best("first_ns", "first_spread")?,
                best: best("best_ns", "best_spread")?,
                turns: line.text("turns").parse().ok()?,
                growth: line.text("growth").parse().ok()?,
            }
        }
        fault => Outcome::Over(fault.strip_prefix("over ")?.parse().ok()?),
    };
    if run.rows.last().is_none_or(|row| row.name != name) {
        run.rows.push(Measured {
            name: name.to_owned(),
            class: line.text("class").to_owned(),
            block: line.text("block").parse().ok(),
            direction,
            calls,
            bytes: line.text("bytes").parse().ok()?,
            figures: Vec::new(),
        });
    }
    run.rows.last_mut()?.figures.push(Figure { competitor: library.to_owned(), outcome });
    let is_loop = LOOPS.iter().any(|(name, _)| *name == library);
    if !is_loop && !run.libraries.iter().any(|known| known == library) {
        run.libraries.push(library.to_owned());
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::{FILES, Run, csv, read, table};
    use crate::files::definition::{Calls, Direction};
    use crate::files::suite::{Best, Figure, KEPT, Measured, Outcome};
    use crate::record::Record;

    fn run() -> Run {
        let figure = |name: &str, outcome| Figure { competitor: name.to_owned(), outcome };
        let (first, best) = (Best { ns: 4000.0, spread: 1.5 }, Best { ns: 2000.0, spread: 1.0 });
        let measured = |ns, spread, turns| Outcome::Measured {
            first,
            best: Best { ns, spread },
            turns,
            growth: 4096,
        };
        let figures = vec![
            figure(KEPT, measured(1000.0, f64::INFINITY, 1)),
            figure("typepack", Outcome::Measured { first, best, turns: 3, growth: 0 }),
            figure("a", measured(8000.0, 1.0, 2)),
            figure("b", Outcome::Over(20)),
            figure("c", Outcome::Failed),
        ];
        let names = ["typepack", "a", "b", "c"];
        Run {
            libraries: names.map(str::to_owned).to_vec(),
            rows: vec![Measured {
                name: "8B-write-collective".to_owned(),
                class: "fine".to_owned(),
                block: Some(8),
                direction: Direction::Write,
                calls: Calls::Collective,
                bytes: 1_000_000,
                figures,
            }],
            ..Run::default()
        }
    }

    #[test]
    fn the_table_shows_every_outcome() {
        let text = table(&run());
        let line = text.lines().find(|line| line.contains("8B-write")).expect("the row");
        for cell in
            ["500000 (250000~)", "125000 ", "over 20 s", "failed", "1000000~", " 4.00 ", "0.50~"]
        {
            assert!(line.contains(cell), "{cell} is missing in {line}");
        }
    }

    #[test]
    fn a_record_gives_the_run_back() {
        let run = run();
        let text = format!("# cpu: some\n# typepack-bench {FILES}\n{}", csv(&run));
        let again = read(&Record::parse(&text).expect("a record")).expect("a table");
        assert_eq!((again.rows, again.libraries), (run.rows, run.libraries));
        let other = Record::parse("# typepack-bench pingpong\nrow,ns\na,1\n").expect("a record");
        assert!(read(&other).is_none());
    }
}
