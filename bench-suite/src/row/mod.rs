//! Rows: the one form in which all measurements of competitors stand, from the run to the picture.
//!
//! A [`Row`] is one thing that several competitors do: a layout that they pack, a message, a collective call, a put,
//! an access to a file. A row has a [`Figure`] for each competitor that did not fail. `suite.rs`, `message/suite.rs`
//! and `files/suite.rs` measure rows. `bar.rs` compares them with the bars of the definitions, `report.rs` prints them
//! as a table, writes them into a record and reads them again. `plot/` draws rows, and `results/` sums them up.

pub mod bar;
pub mod kind;
pub mod report;

use serde::Serialize;

/// The name of typepack in rows: the engine with the settings that an application gets, or the installed library.
pub const TYPEPACK: &str = "typepack";
/// The name of the engine that is forced to use leaf kernels.
pub const LEAF: &str = "leaf";
/// The name of the engine that is forced to use compiled kernels. The bars of `typepack-bench pack` compare this
/// competitor with the others.
pub const JIT: &str = "jit";
/// The name of the engine that is forced to interpret.
pub const INTERPRETER: &str = "interpreter";
/// The name of memcpy.
pub const MEMCPY: &str = "memcpy";
/// The name of the hand-written Rust loops.
pub const HAND: &str = "hand";
/// The name of the hand-written C loops.
pub const HAND_C: &str = "hand-c";
/// The name of the same calls made in C, in rows of Fortran.
pub const IN_C: &str = "c";
/// The names of all competitors for packing that are not peers, in the order of their turns.
pub const OWN: [&str; 7] = [MEMCPY, HAND, HAND_C, TYPEPACK, LEAF, JIT, INTERPRETER];
/// The name of the loop over a mapping of the file that stays from access to access.
pub const KEPT: &str = "loop-kept";
/// The name of the loop that maps the file in each access.
pub const MAPPED: &str = "loop-mapped";

/// If the spread of a figure is greater than this, the figure is unsteady. A ratio with an unsteady figure
/// neither passes nor misses a bar.
pub const STEADY: f64 = 1.25;
/// A ratio to the best peer that is below 1 counts as a tie if it is at least this value.
pub const TIE: f64 = 0.97;
/// Takes the place of [`TIE`] for rows that touch more than [`IN_CACHE`] bytes.
pub const FAR_TIE: f64 = 1.0 / 1.5;
/// A row that touches at most this many bytes counts as "in cache".
pub const IN_CACHE: u64 = 8 << 20;

/// The result of one competitor in one row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The name of the competitor.
    pub competitor: String,
    /// The time in nanoseconds: the median over the rounds, or the best round of an access to a file. If the
    /// competitor is `over`, its time limit.
    pub ns: f64,
    /// The time of the slowest round divided by the time of the fastest round; for an access to a file, the time of the
    /// second-best round divided by that of the best one.
    pub spread: f64,
    /// The name of the kernel or loop that has moved the bytes; empty for a competitor in another process.
    pub executor: String,
    /// The time of a single `MPI_Pack` of the message in nanoseconds, if the row measures it.
    pub pack: Option<f64>,
    /// The time and the spread of the first access to a file after opening.
    pub first: Option<[f64; 2]>,
    /// The number of bytes by which the process grew in the first access to a file: the least over all rounds.
    pub growth: Option<u64>,
    /// True if the competitor has not finished within its time limit.
    pub over: bool,
}

impl Figure {
    /// Returns a figure that has only a time and a spread.
    pub fn new(competitor: &str, ns: f64, spread: f64) -> Self {
        let (competitor, executor) = (competitor.to_owned(), String::new());
        Self {
            competitor,
            ns,
            spread,
            executor,
            pack: None,
            first: None,
            growth: None,
            over: false,
        }
    }

    /// Returns the figure of a competitor that has exceeded its time limit of `seconds`.
    pub fn over(competitor: &str, seconds: u64) -> Self {
        Self { over: true, ..Self::new(competitor, 1e9 * seconds as f64, 1.0) }
    }

    /// Returns true if the rounds differ little.
    pub fn is_steady(&self) -> bool {
        self.spread <= STEADY
    }
}

/// One thing that competitors do, and how long each of them took.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// The name of the layout, or of the row in its definitions.
    #[serde(rename = "layout")]
    pub name: String,
    /// The direction (`pack` or `unpack`), the kind of memory (`user` or `alloc`), or the kind of access to a file
    /// (`write-collective`).
    #[serde(rename = "direction")]
    pub part: String,
    /// The class of the row. Bars apply to classes. May be empty.
    pub class: String,
    /// The requested number of packed bytes, or the number of bytes of a piece of a file. `None` if the row has none.
    pub size: Option<u64>,
    /// The number of packed bytes of one call, message or access.
    pub bytes: u64,
    /// Total size, in bytes, of the cache lines that a call touches.
    pub touched: u64,
    /// The nanoseconds that a cache line takes from one CPU to the other, and the longest such time divided by the
    /// shortest. `None` if the row is about one process, or if every competitor failed.
    pub line: Option<[f64; 2]>,
    /// The figures of the competitors that did not fail, in the order of their turns.
    pub figures: Vec<Figure>,
}

/// The ratio of a row, or another value that a bar limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The value.
    pub value: f64,
    /// True if the rounds of all compared figures differ little.
    pub steady: bool,
    /// True if the true value may be greater, because the other competitor was stopped at its time limit.
    pub least: bool,
}

/// The competitor whose speed is stated, and the competitors with which it is compared.
#[derive(Clone, Copy, Debug)]
pub struct Sides<'a> {
    /// The name of the competitor whose speed is stated.
    pub own: &'a str,
    /// The names of the peers.
    pub peers: &'a [String],
}

impl Row {
    /// Returns the figure of the competitor `name`, even if it is over its time limit.
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.competitor == name)
    }

    /// Returns the figure of the fastest of `names`, or `None` if none of them has a figure. A competitor that is over
    /// its time limit counts only if all are.
    pub fn best<S: AsRef<str>>(&self, names: &[S]) -> Option<&Figure> {
        let is_named = |f: &&Figure| names.iter().any(|name| name.as_ref() == f.competitor);
        let key = |f: &Figure| (f.over, f.ns);
        let figures = self.figures.iter().filter(is_named);
        figures.min_by(|a, b| key(a).0.cmp(&key(b).0).then(key(a).1.total_cmp(&key(b).1)))
    }

    /// Returns the time of the fastest of `others` divided by the time of `own`. Returns `None` if a figure is missing.
    pub fn against<S: AsRef<str>>(&self, own: &str, others: &[S]) -> Option<Ratio> {
        let (own, other) = (self.figure(own).filter(|own| !own.over)?, self.best(others)?);
        Some(Ratio {
            value: other.ns / own.ns,
            steady: own.is_steady() && other.is_steady(),
            least: other.over,
        })
    }

    /// Returns the time of the fastest hand-written loop divided by the time of `own`.
    pub fn against_hand(&self, own: &str) -> Option<Ratio> {
        self.against(own, &[HAND, HAND_C])
    }

    /// Returns the rate of a figure in 10^9 bytes per second.
    pub fn rate(&self, figure: &Figure) -> f64 {
        self.bytes as f64 / figure.ns
    }

    /// Returns the greatest spread among the figures.
    pub fn spread(&self) -> f64 {
        self.figures.iter().map(|figure| figure.spread).fold(1.0, f64::max)
    }

    /// Returns true if every figure is steady.
    pub fn is_steady(&self) -> bool {
        self.figures.iter().all(Figure::is_steady)
    }

    /// Returns how far apart the CPUs of the first two ranks were.
    pub fn distance(&self) -> Distance {
        Distance::of(self.line.map_or(f64::NAN, |[ns, _]| ns))
    }

    /// Returns the smallest ratio that still counts as a tie for this row.
    pub fn tie(&self) -> f64 {
        if self.touched > IN_CACHE { FAR_TIE } else { TIE }
    }

    /// Returns the word for a ratio to a competitor: `win`, `tie` or `loss`.
    pub fn word(&self, ratio: f64) -> &'static str {
        match ratio {
            ratio if ratio < self.tie() => "loss",
            ratio if ratio <= 1.0 / self.tie() => "tie",
            _ => "win",
        }
    }

    /// Returns the name of the row, with its part and its size where the name does not state them.
    pub fn title(&self) -> String {
        let mut title = self.name.clone();
        if self.line.is_none() && self.first().is_none() {
            title += &format!(" {}", report::size_text(self.bytes));
        }
        if !title.ends_with(&self.part) {
            title += &format!(" {}", self.part);
        }
        title
    }

    /// Returns a first access of the row, which only rows of files have.
    fn first(&self) -> Option<[f64; 2]> {
        self.figures.iter().find_map(|figure| figure.first)
    }
}

/// How far apart the CPUs of the first two ranks were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distance {
    /// A cache line took less than `NEAR` nanoseconds from one CPU to the other.
    Near,
    /// A cache line took between `NEAR` and `FAR` nanoseconds.
    Between,
    /// A cache line took more than `FAR` nanoseconds.
    Far,
}

/// CPUs are near if a cache line takes fewer nanoseconds than this from one to the other; about 60 is
/// usual.
const NEAR: f64 = 110.0;
/// CPUs are far if a cache line takes more nanoseconds than this from one to the other.
const FAR: f64 = 170.0;

impl Distance {
    /// Returns the distance of two CPUs if a cache line takes `ns` nanoseconds from one to the other.
    pub fn of(ns: f64) -> Self {
        match ns {
            ns if ns < NEAR => Self::Near,
            ns if ns > FAR => Self::Far,
            _ => Self::Between,
        }
    }

    /// Returns the name that this distance has in rows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Between => "between",
            Self::Far => "far",
        }
    }

    /// Returns a line that says in how many rows the CPUs were near, far and between.
    pub fn counts(distances: impl Iterator<Item = Self> + Clone) -> String {
        let count = |one: Self| distances.clone().filter(|distance| *distance == one).count();
        let [near, far, between] = [Self::Near, Self::Far, Self::Between].map(count);
        format!("CPUs near in {near} rows, far in {far}, between in {between}.")
    }
}

/// Sorts `values`, which must not be empty, and returns their median.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) {
        (values[middle - 1] + values[middle]) / 2.0
    } else {
        values[middle]
    }
}

/// Returns the geometric mean of `values`, or `None` if there are no values.
pub fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value.ln(), count + 1));
    (count > 0).then(|| (sum / f64::from(count)).exp())
}

#[cfg(test)]
mod tests {
    use super::{Distance, Figure, Ratio, Row, median};

    #[test]
    fn medians() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn a_peer_over_its_limit_counts_only_if_all_are() {
        let figures = vec![
            Figure::new("typepack", 1e8, 1.0),
            Figure::over("p", 5),
            Figure::new("q", 3e8, 1.5),
        ];
        let mut row = Row { figures, ..Row::default() };
        let both = ["p".to_owned(), "q".to_owned()];
        let ratio = row.against("typepack", &both);
        assert_eq!(ratio, Some(Ratio { value: 3.0, steady: false, least: false }));
        row.figures.pop();
        let ratio = row.against("typepack", &both);
        assert_eq!(ratio, Some(Ratio { value: 50.0, steady: true, least: true }));
        assert_eq!(row.against("q", &both), None);
    }

    #[test]
    fn ties_depend_on_the_bytes_touched() {
        let mut row = Row::default();
        assert_eq!((row.word(0.96), row.word(0.98), row.word(1.1)), ("loss", "tie", "win"));
        row.touched = 16 << 20;
        assert_eq!((row.word(0.7), row.word(1.4), row.word(1.6)), ("tie", "tie", "win"));
    }

    #[test]
    fn probes_give_the_distance() {
        let distances = [50.0, 140.0, 200.0, f64::NAN].map(Distance::of);
        assert_eq!(distances.map(Distance::name), ["near", "between", "far", "between"]);
        let counts = "CPUs near in 1 rows, far in 1, between in 2.";
        assert_eq!(Distance::counts(distances.into_iter()), counts);
    }
}
