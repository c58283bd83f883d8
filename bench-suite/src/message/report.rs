//! Turns the measured rows into a table and into CSV.
//!
//! `summary.rs` compares the rows with the bars.

use super::suite::Measured;
use super::whole::Whole;
use crate::builds::Compared;
use crate::definition::legend;
use crate::load::Load;
use crate::measure::STEADY;
use comfy_table::{CellAlignment, Table, presets};
use std::fmt::Write;
use std::time::Duration;

/// The name of the table of messages in records.
pub const MESSAGES: &str = "pingpong";
/// The name of the table of collectives in records.
pub const COLLECTIVES: &str = "collectives";
/// The name of the table of one-sided communication in records.
pub const ONE_SIDED: &str = "one-sided";
/// The name of the table of the interposer in records.
pub const INTERPOSE: &str = "interpose";
/// The hosts of the interposer: the names of the peers with the standard ABI.
pub const HOSTS: [&str; 2] = ["mpich", "impi-rt"];
/// What follows the name of a host in the name of the same host behind the interposer.
pub const BEHIND: &str = "+typepack";
/// The name of the table of jobs in records.
pub const JOBS: &str = "jobs";

/// The subject of a run: which rows it measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Subject {
    /// Messages and halos between two ranks, and whole jobs.
    #[default]
    Messages,
    /// Collective calls.
    Collectives,
    /// One-sided communication.
    OneSided,
    /// Messages and halos of another MPI library (the host), alone and behind typepack's interposer.
    Interpose,
}

impl Subject {
    /// Returns a phrase that names what the bars of this subject apply to.
    pub fn bars(self) -> &'static str {
        match self {
            Self::Messages => "messages, halos and jobs",
            Self::Collectives => "collectives",
            Self::OneSided => "one-sided communication",
            Self::Interpose => "the interposer",
        }
    }

    /// Returns the name that the table of this subject has in records.
    pub fn table(self) -> &'static str {
        match self {
            Self::Messages => MESSAGES,
            Self::Collectives => COLLECTIVES,
            Self::OneSided => ONE_SIDED,
            Self::Interpose => INTERPOSE,
        }
    }

    /// Returns the word for the rows of this subject.
    pub(crate) fn rows(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Collectives => "collectives",
            Self::OneSided => "one-sided",
            Self::Interpose => "interposer",
        }
    }

    /// Returns a phrase that says what the times of the rows mean.
    pub(crate) fn times(self) -> &'static str {
        match self {
            Self::Messages | Self::Interpose => {
                "half of there and back, or one exchange of six faces"
            }
            Self::Collectives => "one call, from the first rank's begin to the last one's end",
            Self::OneSided => {
                "one operation with its flush, one fence, epoch, lock, insertion or exchange of six faces"
            }
        }
    }
}

/// The results of one run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The subject of the run.
    pub subject: Subject,
    /// What other programs did before the run; `None` if nobody has looked.
    pub load: Option<Load>,
    /// The families of the rows with their descriptions.
    pub families: Vec<(String, String)>,
    /// The names of all libraries. The first one is typepack, whose ratios the tables show.
    pub libraries: Vec<String>,
    /// Names of the peers.
    pub peers: Vec<String>,
    /// The versions that the libraries report, and remarks about the run, one line each.
    pub versions: Vec<String>,
    /// The rows of messages and halos, of collectives, or of one-sided communication.
    pub rows: Vec<Measured>,
    /// The rows of whole jobs.
    pub jobs: Vec<Whole>,
    /// For each other build of typepack: its name, and the rows that have been measured both for it and for
    /// the first library.
    pub builds: Vec<(String, Vec<Compared>)>,
    /// The faults, one line each.
    pub faults: Vec<String>,
}

impl Run {
    /// Returns the name of the library whose ratios the tables show. It is a build of typepack.
    pub fn own(&self) -> &str {
        self.libraries.first().map_or("", String::as_str)
    }

    /// Returns the libraries that are compared with others, and for each of them those others. For the interposer,
    /// each host behind it is compared with the host alone.
    pub(crate) fn sides(&self) -> Vec<(String, Vec<String>)> {
        if self.subject != Subject::Interpose {
            return vec![(self.own().to_owned(), self.peers.clone())];
        }
        let behind =
            |name: &String| Some((name.clone(), vec![name.strip_suffix(BEHIND)?.to_owned()]));
        self.libraries.iter().filter_map(behind).collect()
    }

    /// Returns a run for each of the sides, with the rows and figures of this side alone.
    pub fn parts(&self) -> Vec<Self> {
        if self.subject != Subject::Interpose {
            return vec![self.clone()];
        }
        let part = |(own, peers): (String, Vec<String>)| {
            let libraries: Vec<String> = std::iter::once(own).chain(peers.clone()).collect();
            let mut rows = self.rows.clone();
            rows.iter_mut().for_each(|row| row.figures.retain(|f| libraries.contains(&f.library)));
            Self { subject: self.subject, libraries, peers, rows, ..Self::default() }
        };
        self.sides().into_iter().map(part).collect()
    }

    /// Returns the host of one of the `parts` of a run of the interposer; `None` for other runs.
    pub fn host(&self) -> Option<&str> {
        if self.subject == Subject::Interpose {
            self.peers.first().map(String::as_str)
        } else {
            None
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

/// Returns a line about a row that has just been measured: the time of each library, the ratio, and the duration of the
/// measurement of the row.
pub fn line(run: &Run, row: &Measured, duration: Duration) -> String {
    let figures = run.libraries.iter().map(|name| match row.figure(name) {
        Some(figure) => format!("{name} {} us", us(figure.ns)),
        None => format!("{name} failed"),
    });
    let figures = figures.collect::<Vec<String>>().join(", ");
    let sides = run.sides();
    let ratios = sides.iter().filter_map(|(own, peers)| Some((own, row.against(own, peers)?.0)));
    let ratio: String = match run.subject {
        Subject::Interpose => ratios.map(|(own, ratio)| format!("; {own} {ratio:.2}")).collect(),
        _ => ratios.map(|(_, ratio)| format!("; best peer's time / ours {ratio:.2}")).collect(),
    };
    let (name, memory, seconds) = (&row.name, row.memory, duration.as_secs_f64());
    format!("{name} {memory}: {figures}{ratio}; measured in {seconds:.1} s")
}

/// Returns the human-readable tables.
pub fn table(run: &Run) -> String {
    let mut out = String::new();
    if !run.rows.is_empty() {
        let families = run.families.iter();
        out.push_str(&legend(families.map(|(name, about)| (name.as_str(), about.as_str()))));
        out.push('\n');
        let parts: Vec<String> = run.parts().iter().map(messages).collect();
        out.push_str(&parts.join("\n"));
    }
    if !run.jobs.is_empty() {
        out.push_str(&jobs(run));
    }
    out
}

fn messages(run: &Run) -> String {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    let mut header = vec!["row", "memory", "CPUs", "line"];
    header.extend(run.libraries.iter().map(String::as_str));
    header.extend(["/best", "best", "", "/pack"]);
    table.set_header(header);
    for row in &run.rows {
        let mut cells = vec![
            row.name.clone(),
            row.memory.to_owned(),
            row.distance().name().to_owned(),
            format!("{:.0}", row.probe),
        ];
        cells.extend(run.libraries.iter().map(|name| match row.figure(name) {
            Some(figure) if figure.spread > STEADY => format!("{}~", us(figure.ns)),
            Some(figure) => us(figure.ns),
            None => "failed".to_owned(),
        }));
        let ratio = row.against(run.own(), &run.peers);
        cells.push(ratio.map_or_else(String::new, |(ratio, _)| format!("{ratio:.2}")));
        cells.push(row.best(&run.peers).map_or_else(String::new, |f| f.library.clone()));
        cells.push(if ratio.is_none_or(|(_, steady)| steady) { "" } else { "~" }.to_owned());
        let pack = row.over_pack(run.own());
        cells.push(pack.map_or_else(String::new, |(ratio, _)| format!("{ratio:.2}")));
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(3).take(run.libraries.len() + 2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!(
        "{table}\nMicroseconds, medians of interleaved rounds: {}. line: one way of a cache line, \
         ns. /best: time of the best peer over that of {}. ~: rounds differ by more than \
         {STEADY}x.\n",
        run.subject.times(),
        run.own()
    )
}

fn jobs(run: &Run) -> String {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    let mut header = vec!["job", "unit"];
    header.extend(run.libraries.iter().map(String::as_str));
    table.set_header(header);
    for job in &run.jobs {
        let mut cells = vec![job.what.text.to_owned(), job.what.unit.to_owned()];
        cells.extend(run.libraries.iter().map(|name| {
            job.value(name).map_or_else(|| "failed".to_owned(), |value| format!("{value:.2}"))
        }));
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("\n{table}\n")
}

/// Returns the rows as CSV: a header line and one line per row and library. If there are rows of whole
/// jobs, a second table follows: a comment line with the name of the table, a header line, and one line
/// per row and library.
pub fn csv(run: &Run) -> String {
    let mut text = run.load.map_or_else(String::new, |load| load.comment(run.subject.table()));
    text.push_str(
        "row,class,memory,bytes,touched,distance,line_ns,line_spread,library,ns,spread,pack_ns,best_peer_ratio\n",
    );
    let sides = run.sides();
    for row in &run.rows {
        for figure in &row.figures {
            let side = sides.iter().find(|(own, _)| *own == figure.library);
            let ratio = side.and_then(|(own, peers)| row.against(own, peers));
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{:.1},{:.2},{},{:.1},{:.3},{},{}",
                row.name,
                row.class,
                row.memory,
                row.bytes,
                row.touched,
                row.distance().name(),
                row.probe,
                row.probe_spread,
                figure.library,
                figure.ns,
                figure.spread,
                figure.pack.map_or_else(String::new, |ns| format!("{ns:.1}")),
                ratio.map_or_else(String::new, |(ratio, _)| format!("{ratio:.4}")),
            );
        }
    }
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

#[cfg(test)]
mod tests {
    use super::{Run, csv, table};
    use crate::message::suite::{Figure, Measured};

    #[test]
    fn a_failed_peer_is_shown_as_such() {
        let figure =
            |library: &str, ns| Figure { library: library.to_owned(), ns, spread: 1.0, pack: None };
        let row = Measured {
            name: "contig-8B".to_owned(),
            class: "small".to_owned(),
            memory: "user",
            bytes: 8,
            touched: 128,
            probe: 60.0,
            probe_spread: 1.1,
            figures: vec![figure("typepack", 100.0), figure("one", 150.0)],
        };
        let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect();
        let run = Run {
            libraries: names(&["typepack", "one", "two"]),
            peers: names(&["one", "two"]),
            rows: vec![row],
            ..Run::default()
        };
        let text = table(&run);
        let line = text.lines().find(|l| l.contains("contig-8B")).expect("the row");
        assert!(
            line.contains("failed") && line.contains("1.50") && line.contains("near"),
            "{line}"
        );
        let csv = csv(&run);
        assert_eq!(csv.lines().count(), 3, "{csv}");
        assert!(
            csv.contains("contig-8B,small,user,8,128,near,60.0,1.10,typepack,100.0,1.000,,1.5000")
        );
    }
}
