//! The results of a run of jobs, with its table, its CSV and its summary.
//!
//! `command.rs` and `../files/command.rs` fill in a [`Run`]. `../row/` prints the rows and compares them with the bars.
//! Rows of jobs have no mark of steadiness.

use super::whole::Whole;
use crate::builds::{self, Compared};
use crate::definition::legend;
use crate::load::Load;
use crate::row::bar::{self, Bar, word};
use crate::row::kind::Kind;
use crate::row::report::{csv as rows_csv, table as rows_table, us};
use crate::row::{Distance, Row, STEADY, Sides};
use comfy_table::{CellAlignment, Table, presets};
use std::fmt::Write;
use std::time::Duration;

/// The hosts of the interposer: the names of the peers with the standard ABI.
pub const HOSTS: [&str; 2] = ["mpich", "impi-rt"];
/// What follows the name of a host in the name of the same host behind the interposer.
pub const BEHIND: &str = "+typepack";
/// The name of the table of jobs in records.
pub const JOBS: &str = "jobs";

/// The results of one run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// What the run measures.
    pub kind: Kind,
    /// What other programs did before the run; `None` if nobody has looked.
    pub load: Option<Load>,
    /// The families of the rows with their descriptions.
    pub families: Vec<(String, String)>,
    /// The names of all competitors. The first one is typepack, whose ratios the tables show.
    pub competitors: Vec<String>,
    /// Names of the peers.
    pub peers: Vec<String>,
    /// The versions that the libraries report, and remarks about the run, one line each.
    pub versions: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
    /// The rows of whole jobs.
    pub jobs: Vec<Whole>,
    /// For each other build of typepack: its name, and the rows that have been measured both for it and for
    /// the first competitor.
    pub builds: Vec<(String, Vec<Compared>)>,
    /// The faults, one line each.
    pub faults: Vec<String>,
}

/// A competitor whose ratios are stated, the peers with which it is compared, and the host if it is one behind the
/// interposer.
type Part = (String, Vec<String>, Option<String>);

impl Run {
    /// Returns the name of the competitor whose ratios the tables show. It is a build of typepack.
    pub fn own(&self) -> &str {
        self.competitors.first().map_or("", String::as_str)
    }

    /// Returns the parts of the run. For the interposer, each host behind it is compared with the host alone.
    fn parts(&self) -> Vec<Part> {
        if self.kind != Kind::Interpose {
            return vec![(self.own().to_owned(), self.peers.clone(), None)];
        }
        let behind = |name: &String| {
            let host = name.strip_suffix(BEHIND)?.to_owned();
            Some((name.clone(), vec![host.clone()], Some(host)))
        };
        self.competitors.iter().filter_map(behind).collect()
    }
}

/// Returns a line about a row that has just been measured: the time of each competitor, the ratio, and the duration of
/// the measurement of the row.
pub fn line(run: &Run, row: &Row, duration: Duration) -> String {
    let figures = run.competitors.iter().map(|name| match row.figure(name) {
        Some(figure) => format!("{name} {} us", us(figure.ns)),
        None => format!("{name} failed"),
    });
    let others = row.figures.iter().filter(|figure| !run.competitors.contains(&figure.competitor));
    let others = others.map(|figure| format!("{} {} us", figure.competitor, us(figure.ns)));
    let figures = figures.chain(others).collect::<Vec<String>>().join(", ");
    let ratio = |(own, peers, host): Part| {
        let ratio = row.against(&own, &peers)?.value;
        let what = host.map_or("best peer's time / ours".to_owned(), |_| own);
        Some(format!("; {what} {ratio:.2}"))
    };
    let ratios: String = run.parts().into_iter().filter_map(ratio).collect();
    let seconds = duration.as_secs_f64();
    format!("{}: {figures}{ratios}; measured in {seconds:.1} s", row.title())
}

/// Returns the human-readable tables.
pub fn table(run: &Run) -> String {
    let mut out = String::new();
    if !run.rows.is_empty() {
        let families = run.families.iter();
        out.push_str(&legend(families.map(|(name, about)| (name.as_str(), about.as_str()))));
        for (own, peers, host) in run.parts() {
            let is_shown = |name: &&str| host.is_none() || *name == own || *name == peers[0];
            let names: Vec<&str> =
                run.competitors.iter().map(String::as_str).filter(is_shown).collect();
            let sides = Sides { own: &own, peers: &peers };
            let table = rows_table(&run.rows, &names, sides, run.kind.unit());
            let meaning = run.kind.meaning();
            let _ = writeln!(
                out,
                "\n{table}{meaning} /best peer: time of the best peer over that of {own}. ~: rounds differ by more \
                 than {STEADY}x."
            );
        }
    }
    let billion = run.rows.iter().filter(|row| row.class == "billion");
    for (row, figure) in billion.flat_map(|row| row.figures.iter().map(move |fig| (row, fig))) {
        if let (Some([ns, _]), Some(growth)) = (figure.first, figure.growth) {
            let (row, who, kib) = (&row.name, &figure.competitor, growth / 1024);
            let _ = writeln!(out, "{row}: {who}: {:.3} ms, {kib} KiB", ns / 1e6);
        }
    }
    if !run.jobs.is_empty() {
        out.push_str(&jobs(run));
    }
    out
}

fn jobs(run: &Run) -> String {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    let mut header = vec!["job", "unit"];
    header.extend(run.competitors.iter().map(String::as_str));
    table.set_header(header);
    for job in &run.jobs {
        let mut cells = vec![job.what.text.to_owned(), job.what.unit.to_owned()];
        cells.extend(run.competitors.iter().map(|name| {
            job.value(name).map_or_else(|| "failed".to_owned(), |value| format!("{value:.2}"))
        }));
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("\n{table}\n")
}

/// Returns the rows as CSV. If there are rows of whole jobs, a second table follows: a comment line with the name of
/// the table, a header line, and one line per row and library.
pub fn csv(run: &Run) -> String {
    let mut text = run.load.map_or_else(String::new, |load| load.comment(run.kind.table()));
    text.push_str(&rows_csv(&run.rows));
    if !run.jobs.is_empty() {
        let _ = writeln!(text, "# typepack-bench {JOBS}\njob,unit,library,value,bar");
        for job in &run.jobs {
            for (library, value) in &job.values {
                let what = job.what;
                let _ =
                    writeln!(text, "{},{},{library},{value:.4},{}", what.name, what.unit, what.bar);
            }
        }
    }
    text
}

/// Returns the human-readable summary: the bars with their verdicts, the distances of the CPUs, the
/// versions, the comparisons of builds, every row that falls short of a missed bar, and the faults.
pub fn summary(run: &Run, bars: &[Bar]) -> String {
    let mut out = run.load.map_or_else(String::new, |load| format!("{load}\n\n"));
    let _ = write!(
        out,
        "Bars for {} (steady rows decide; ties with peers are 3 %, or 1.5x for rows that touch more than 8 MiB)\n\n",
        run.kind.text()
    );
    let mut short = String::new();
    if !run.rows.is_empty() {
        out.push_str(&bar::heading());
    }
    for (own, peers, host) in run.parts().into_iter().filter(|_| !run.rows.is_empty()) {
        let sides = Sides { own: &own, peers: &peers };
        let is_own = |bar: &&Bar| bar.host.is_none() || bar.host == host;
        let bars: Vec<Bar> = bars.iter().filter(is_own).cloned().collect();
        let title = host.map_or_else(String::new, |host| format!("{host}: "));
        bar::lines(&run.rows, sides, (&title, &bars), |_| String::new(), [&mut out, &mut short]);
    }
    if !run.jobs.is_empty() {
        let _ =
            writeln!(out, "\n{:<6}{:<50}{:>17}{:>8}{:>8}", "", "job", "measured", "bar", "goal");
    }
    for job in &run.jobs {
        let value = job.value(run.own());
        let _ = writeln!(
            out,
            "{:<6}{:<50}{:>17}{:>8}{:>8}",
            word(value.map(|value| value <= job.what.bar)),
            job.what.text,
            value.map_or("-".to_owned(), |value| format!("{value:.2} {}", job.what.unit)),
            job.what.bar,
            job.what.goal
        );
    }
    out.push('\n');
    if run.kind != Kind::Files {
        let _ = writeln!(out, "{}", Distance::counts(run.rows.iter().map(Row::distance)));
    }
    for version in &run.versions {
        let _ = writeln!(out, "{version}");
    }
    if run.peers.is_empty() {
        out.push_str("No peers took part: `scripts/bench peers` fetches them.\n");
    }
    for (base, rows) in &run.builds {
        let _ = write!(out, "\n{}", builds::text(run.own(), base, rows));
    }
    out.push_str(&short);
    if !run.faults.is_empty() {
        out.push_str("\nFaults\n");
        run.faults.iter().for_each(|line| out.push_str(&format!("  {line}\n")));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Run, csv, summary, table};
    use crate::message::definition::Definitions;
    use crate::row::kind::Kind;
    use crate::row::{Figure, Row};

    #[test]
    fn a_host_behind_the_interposer_is_compared_with_itself_alone() {
        let figures = vec![Figure::new("one+typepack", 100.0, 1.0), Figure::new("one", 150.0, 1.0)];
        let row = Row { name: "contig-8B".into(), part: "user".into(), figures, ..Row::default() };
        let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect();
        let run = Run {
            kind: Kind::Interpose,
            competitors: names(&["one+typepack", "one", "two+typepack", "two"]),
            peers: names(&["one", "two"]),
            rows: vec![row],
            ..Run::default()
        };
        let text = table(&run);
        let line = text.lines().find(|l| l.contains("contig-8B")).expect("the row");
        assert!(line.contains("1.50") && !line.contains("failed"), "{line}");
        assert_eq!(csv(&run).lines().count(), 3, "{}", csv(&run));
    }

    #[test]
    fn a_message_is_held_against_its_own_pack() {
        let own = Figure { pack: Some(1.0), ..Figure::new("typepack", 1.1, 1.0) };
        let row =
            Row { part: "user".into(), class: "face".into(), figures: vec![own], ..Row::default() };
        let competitors = vec!["typepack".to_owned()];
        let run = Run { competitors, rows: vec![row], ..Run::default() };
        let text = summary(&run, &Definitions::of(Kind::Messages).bars);
        let line = text.lines().find(|line| line.contains("single pack")).expect("the bar");
        assert!(line.starts_with("pass") && line.contains(" 1.10 "), "{line}");
        assert!(text.contains("No peers took part"), "{text}");
    }
}
