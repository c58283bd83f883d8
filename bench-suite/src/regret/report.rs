//! The table and the CSV of regrets, and their values for `verdict.rs`: one form for kernels, messages, collective
//! calls and accesses to files.

use super::judge::{Gain, Judged, Tried, gain};
use super::verdict::{NONE, Value, heading, lines, mean};
use crate::row::report::{size_text, us};
use crate::row::{Distance, STEADY};
use comfy_table::{CellAlignment, Table, presets};
use std::fmt::Write;

/// The name of the free choice in rows of jobs.
pub const FREE: &str = "free";
/// The name of the static order in rows: what the library does without measurements (`TYPEPACK_TUNE=off`).
pub const STATIC: &str = "static";
/// The beginning of the names of the jobs in which one chooser is off, and of their value of `TYPEPACK_TUNE`. The name
/// of the chooser follows.
pub const OFF: &str = "off:";
/// The least gain of a chooser that is worth its code.
const LEAST_GAIN: f64 = 1.05;
/// The table shows this number of letters of a kernel's name. The CSV file has the whole name.
const MOST_LETTERS: usize = 32;

/// A row, measured with the free choice and with the candidates.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// The name of the layout or row.
    pub name: String,
    /// The direction, or the kind of memory of the buffers. May be empty.
    pub part: String,
    /// Number of packed bytes of one call, of one message, or of all faces of one rank.
    pub bytes: u64,
    /// The nanoseconds that a cache line takes from one CPU to the other, as in a [`Row`](crate::row::Row).
    pub line: Option<[f64; 2]>,
    /// The names of the candidates that are possible for the row, without the free choice.
    pub possible: Vec<String>,
    /// The times of the free choice; `None` if its job has failed.
    pub free: Option<Tried>,
    /// The times of the static order; `None` if its job has failed.
    pub unmeasured: Option<Tried>,
    /// The times of the candidates that have not failed.
    pub candidates: Vec<Tried>,
    /// For each chooser that acts in this row, the times without it: it keeps the static order, and all other choosers
    /// measure. The names begin with [`OFF`].
    pub without: Vec<Tried>,
    /// The names of the kernels that have moved the bytes, in the order of the times above. May be empty.
    pub executors: Vec<String>,
    /// The regret; `None` if the row could not be judged, or if there was no choice.
    pub judged: Option<Judged>,
}

impl Compared {
    /// Returns how far apart the CPUs of the ranks were.
    pub fn distance(&self) -> Distance {
        Distance::of(self.probe())
    }

    fn probe(&self) -> f64 {
        self.line.map_or(f64::NAN, |[ns, _]| ns)
    }

    fn all(&self) -> impl Iterator<Item = &Tried> {
        self.free.iter().chain(&self.unmeasured).chain(&self.candidates).chain(&self.without)
    }

    /// Returns the gain of the free choice over `other`, if both were measured.
    fn gain(&self, other: Option<&Tried>) -> Option<Gain> {
        self.free.as_ref().zip(other).and_then(|(free, other)| gain(free, other))
    }

    /// Returns the gain of one chooser.
    fn gain_of(&self, chooser: &str) -> Option<Gain> {
        let is = |tried: &&Tried| tried.name.strip_prefix(OFF) == Some(chooser);
        self.gain(self.without.iter().find(is))
    }

    fn title(&self) -> String {
        let mut title = self.name.clone();
        if self.line.is_none() && self.bytes > 0 {
            title += &format!(" {}", size_text(self.bytes));
        }
        if !self.part.is_empty() {
            title += &format!(" {}", self.part);
        }
        title
    }
}

/// Returns the regrets of the rows that could be judged, and the regrets with learning.
pub fn values<'a>(rows: impl Iterator<Item = &'a Compared>) -> [Vec<Value>; 2] {
    let mut both = [Vec::new(), Vec::new()];
    for row in rows {
        let Some(judged) = &row.judged else { continue };
        let steady = judged.steady;
        let title = row.title();
        let value = |ratio| Value { name: format!("{title}, {}", judged.best), ratio, steady };
        both[0].push(value(judged.ratio));
        both[1].extend(judged.learning.map(value));
    }
    both
}

/// Returns, for each chooser, how much it gains over the static order of its own ways while all other choosers measure:
/// the mean over its rows, its best row, and all its rows; then the gain of all choosers together, and the choosers
/// whose mean is too low. Returns an empty text if no row has a chooser.
pub fn gains(rows: &[Compared]) -> String {
    let mut choosers: Vec<&str> = Vec::new();
    for chooser in rows.iter().flat_map(|row| &row.without).filter_map(|t| t.name.strip_prefix(OFF))
    {
        if !choosers.contains(&chooser) {
            choosers.push(chooser);
        }
    }
    if choosers.is_empty() {
        return String::new();
    }
    let values = |gain: &dyn Fn(&Compared) -> Option<Gain>| {
        let value = |row: &Compared| {
            let Gain { ratio, steady } = gain(row)?;
            Some(Value { name: row.title(), ratio, steady })
        };
        rows.iter().filter_map(value).collect::<Vec<Value>>()
    };
    let mut text = format!(
        "\nGain of each chooser: the time without this chooser (TYPEPACK_TUNE={OFF}NAME) over that of the free \
         choice\n\n{}",
        heading()
    );
    let (mut lists, mut low) = (String::new(), Vec::new());
    for chooser in choosers {
        let values = values(&|row| row.gain_of(chooser));
        text += &lines(&format!("gain, {chooser}"), &values, NONE);
        let [steady, all] = mean(&values, None).figures;
        if steady.or(all).is_some_and(|mean| mean < LEAST_GAIN) {
            low.push(chooser);
        }
        let _ = write!(lists, "\n{chooser}:");
        for Value { name, ratio, steady } in &values {
            let _ = write!(lists, " {name} {ratio:.2}{},", if *steady { "" } else { "~" });
        }
        lists.pop();
    }
    text += &lines("gain, all together", &values(&|row| row.gain(row.unmeasured.as_ref())), NONE);
    let low = if low.is_empty() { "none".to_owned() } else { low.join(", ") };
    format!("{text}\nMean gain below {LEAST_GAIN}: {low}. The rows:\n{}\n", lists.trim_start())
}

/// Returns the human-readable table: for every row, the times of the free choice and of the candidates `names`, over
/// the odd rounds, in nanoseconds if the rows name kernels, and else in microseconds. `what` says what the times are.
/// Columns that would be empty are left out.
pub fn table(rows: &[Compared], names: &[String], what: &str) -> String {
    let is_short = rows.iter().any(|row| !row.executors.is_empty());
    let unit = if is_short { "Nanoseconds" } else { "Microseconds" };
    let time = |tried: &Tried| {
        let mark = if tried.spread() > STEADY { "~" } else { "" };
        let ns = tried.timed_ns();
        if is_short { format!("{ns:.1}{mark}") } else { us(ns) + mark }
    };
    let mut header: Vec<(&str, bool)> = vec![
        ("row", false),
        ("bytes", true),
        ("", false),
        ("CPUs", false),
        ("line", true),
        (FREE, true),
        (STATIC, true),
    ];
    header.extend(names.iter().map(|name| (name.as_str(), true)));
    header.extend([("best", false), ("regret", true), ("learning", true), ("gain", true)]);
    header.push(("kernels", false));
    let cells = |row: &Compared| {
        let judged = row.judged.as_ref();
        let ratio = |ratio: f64| format!("{ratio:.3}");
        let line = row.line.is_some();
        let mut cells = vec![
            row.name.clone(),
            if line || row.bytes == 0 { String::new() } else { row.bytes.to_string() },
            row.part.clone(),
            if line { row.distance().name().to_owned() } else { String::new() },
            if line { format!("{:.0}", row.probe()) } else { String::new() },
            row.free.as_ref().map_or("failed".to_owned(), time),
            row.unmeasured.as_ref().map_or_else(String::new, time),
        ];
        cells.extend(names.iter().map(|name| {
            match row.candidates.iter().find(|tried| tried.name == *name) {
                Some(tried) => time(tried),
                None if row.possible.contains(name) => "failed".to_owned(),
                None => String::new(),
            }
        }));
        cells.push(judged.map_or("not judged".to_owned(), |judged| judged.best.clone()));
        let mark = judged.map_or("", |judged| if judged.steady { "" } else { "~" });
        cells.push(judged.map_or_else(String::new, |judged| ratio(judged.ratio) + mark));
        cells.push(judged.and_then(|judged| judged.learning).map_or_else(String::new, ratio));
        let gain = row.gain(row.unmeasured.as_ref());
        let mark = |gain: Gain| ratio(gain.ratio) + if gain.steady { "" } else { "~" };
        cells.push(gain.map_or_else(String::new, mark));
        let kernels = row.executors.iter().map(|name| name.chars().take(MOST_LETTERS).collect());
        cells.push(kernels.collect::<Vec<String>>().join(", "));
        cells
    };
    let lines: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let full: Vec<usize> = (0..header.len())
        .filter(|&column| lines.iter().any(|line| !line[column].is_empty()))
        .collect();
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header(full.iter().map(|&column| header[column].0));
    for line in &lines {
        table.add_row(full.iter().map(|&column| &line[column]));
    }
    for (column, &place) in table.column_iter_mut().zip(&full) {
        if header[place].1 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    format!(
        "{table}\n{unit}, medians of the odd rounds: {what}. best: the best candidate of the even rounds. regret: \
         time of the free choice over that of best. learning: the same over all exchanges since the jobs have started. \
         gain: time of static, which measures nothing (TYPEPACK_TUNE=off), over that of the free choice. line: one way \
         of a cache line, ns. kernels: what ran, column by column. ~: odd rounds differ by more than {STEADY}x.\n"
    )
}

/// Returns the rows as CSV: a header line, and one line per row and candidate. The regrets stand in the line of
/// the free choice, the gains in those of the static order (of all choosers) and of the jobs without one chooser.
pub fn csv(rows: &[Compared]) -> String {
    let mut text = String::from(
        "row,part,bytes,distance,line_ns,candidate,even_ns,odd_ns,odd_spread,all_ns,best,regret,\
         regret_with_learning,steady,chooser,gain,kernel\n",
    );
    for row in rows {
        for (number, tried) in row.all().enumerate() {
            let is_free = number == 0 && row.free.is_some();
            let of = row.judged.as_ref().filter(|_| is_free);
            let all = (tried.name == STATIC).then_some("all");
            let chooser = all.or_else(|| tried.name.strip_prefix(OFF));
            let _ = writeln!(
                text,
                "{},{},{},{},{:.1},{},{:.1},{:.1},{:.3},{},{},{},{},{},{},{},{}",
                row.name,
                row.part,
                row.bytes,
                row.distance().name(),
                row.probe(),
                tried.name,
                tried.picked_ns(),
                tried.timed_ns(),
                tried.spread(),
                tried.whole.map_or_else(String::new, |ns| format!("{ns:.1}")),
                of.map_or("", |judged| judged.best.as_str()),
                of.map_or_else(String::new, |judged| format!("{:.4}", judged.ratio)),
                of.and_then(|j| j.learning).map_or_else(String::new, |r| format!("{r:.4}")),
                of.map_or_else(String::new, |judged| judged.steady.to_string()),
                chooser.unwrap_or_default(),
                row.gain(Some(tried))
                    .filter(|_| chooser.is_some())
                    .map_or_else(String::new, |gain| format!("{:.4}", gain.ratio)),
                row.executors.get(number).map_or_else(String::new, |name| name.replace(',', ";")),
            );
        }
    }
    text
}
