//! Compares two builds of typepack in one run.
//!
//! `message/command.rs` compares messages and collectives of two installed builds. `pack.rs` compares
//! packing through the C libraries of both builds. `commit.rs` runs `typepack-bench commit` of both builds
//! alternately.
//!
//! The ratio of a row is the old build's time divided by the new build's time. (Some rows of `commit.rs`
//! are values of which more is better. Their ratio is the new value divided by the old one.) If the ratio
//! is below [`SLOWER`], the row is measured [`RUNS`] times in all, and the median of its ratios counts. The
//! report lists the row as slower if the ratio is below [`SLOWER`] every time.

pub mod commit;
pub mod pack;

use crate::row::{Ratio, Row, mean, median};
use std::collections::BTreeMap;
use std::fmt::Write;

/// If the ratio of a row is below this value, the row is measured again.
pub const SLOWER: f64 = 0.9;
/// How many times a row with a ratio below [`SLOWER`] is measured, including the first time.
pub const RUNS: usize = 3;
/// The bar: the least allowed geometric mean of the ratios of the steady rows of a class.
pub const BAR: f64 = 0.97;

/// A row that has been measured for two builds.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The name of the row.
    pub name: String,
    /// The class of the row. The report states the mean ratio of each class.
    pub class: String,
    /// For each run: the ratio, and true if both figures of the ratio are steady (`row::STEADY`). There
    /// is at least one run.
    pub runs: Vec<(f64, bool)>,
}

impl Compared {
    /// Returns `row` as the first run of a comparison. `ratio` is that of the two builds.
    pub fn of(row: &Row, ratio: Ratio) -> Self {
        let class = if row.class.is_empty() { "others" } else { &row.class };
        Self {
            name: format!("{} {}", row.name, row.part),
            class: format!("{class}, {}", row.part),
            runs: vec![(ratio.value, ratio.steady)],
        }
    }

    /// Returns true if the ratio of the first run is below [`SLOWER`].
    pub fn is_slower(&self) -> bool {
        self.runs[0].0 < SLOWER
    }

    /// Returns the median of the ratios of all runs.
    pub fn ratio(&self) -> f64 {
        median(&mut self.runs.iter().map(|(ratio, _)| *ratio).collect::<Vec<_>>())
    }

    /// Returns true if more than half of the runs are steady.
    pub fn is_steady(&self) -> bool {
        2 * self.runs.iter().filter(|(_, steady)| *steady).count() > self.runs.len()
    }

    /// Returns true if the row has [`RUNS`] runs and the ratio of each is below [`SLOWER`].
    pub fn is_agreed(&self) -> bool {
        self.runs.len() == RUNS && self.runs.iter().all(|(ratio, _)| *ratio < SLOWER)
    }
}

/// Returns the report as text. Each class has one line: whether its mean reaches [`BAR`]; the mean and the
/// least ratio of its steady rows, and their number; the same three numbers for all its rows. If there are
/// several classes, another line has these values for all classes together. Below are the rows that are
/// slower in every run.
pub fn text(new: &str, base: &str, rows: &[Compared]) -> String {
    let mut out = format!(
        "{new} against {base}: time of {base} over that of {new} (bar: mean {BAR}, steady rows \
         decide)\n\n"
    );
    let _ = writeln!(
        out,
        "{:<6}{:<36}{:>8}{:>8}{:>8}{:>12}{:>8}{:>8}",
        "", "rows", "mean", "least", "steady", "mean, all", "least", "rows"
    );
    let mut classes: BTreeMap<&str, Vec<&Compared>> = BTreeMap::new();
    for row in rows {
        classes.entry(&row.class).or_default().push(row);
    }
    let shown = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
    let mut line = |class: &str, rows: &[&Compared]| {
        let all = || rows.iter().map(|row| row.ratio());
        let steady = || rows.iter().filter(|row| row.is_steady()).map(|row| row.ratio());
        let decides = mean(steady());
        let word = decides.map_or("-", |mean| if mean >= BAR { "pass" } else { "MISS" });
        let _ = writeln!(
            out,
            "{word:<6}{class:<36}{:>8}{:>8}{:>8}{:>12}{:>8}{:>8}",
            shown(decides),
            shown(steady().min_by(f64::total_cmp)),
            steady().count(),
            shown(mean(all())),
            shown(all().min_by(f64::total_cmp)),
            rows.len()
        );
    };
    for (class, rows) in &classes {
        line(class, rows);
    }
    if classes.len() > 1 {
        line("all", &rows.iter().collect::<Vec<_>>());
    }
    let again = rows.iter().filter(|row| row.is_slower()).count();
    let agreed: Vec<&Compared> = rows.iter().filter(|row| row.is_agreed()).collect();
    let _ = writeln!(
        out,
        "\n{again} rows were below {SLOWER} and measured {RUNS} times; below in every run: {}",
        agreed.len()
    );
    for row in agreed {
        let _ = write!(out, "  {:<40}", row.name);
        for (ratio, steady) in &row.runs {
            let _ = write!(out, "{ratio:>7.3}{}", if *steady { ' ' } else { '~' });
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Compared, mean, text};

    #[test]
    fn rows_are_listed_when_all_runs_agree() {
        let row = |name: &str, class: &str, ratios: &[f64]| Compared {
            name: name.to_owned(),
            class: class.to_owned(),
            runs: ratios.iter().map(|ratio| (*ratio, *ratio < 4.0)).collect(),
        };
        let rows = [
            row("quick", "a", &[1.0]),
            row("slow", "a", &[0.8, 0.7, 0.85]),
            row("once", "b", &[0.5, 1.0, 1.1]),
            row("restless", "b", &[4.0]),
        ];
        assert!((mean([2.0, 8.0].into_iter()).expect("values") - 4.0).abs() < 1e-12);
        assert_eq!((rows[1].ratio(), rows[2].ratio()), (0.8, 1.0));
        let text = text("new", "old", &rows);
        assert!(text.contains("2 rows were below 0.9 and measured 3 times; below in every run: 1"));
        assert!(text.contains("  slow") && !text.contains("  once"), "{text}");
        let class = |name: &str| {
            let found = |line: &&str| line.get(6..).is_some_and(|rest| rest.starts_with(name));
            let line = text.lines().find(found).expect(name);
            line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(class("a  "), ["MISS", "a", "0.894", "0.800", "2", "0.894", "0.800", "2"]);
        assert_eq!(class("b  "), ["pass", "b", "1.000", "1.000", "1", "2.000", "1.000", "2"]);
    }
}
