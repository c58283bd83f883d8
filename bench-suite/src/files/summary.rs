//! Compares the rows of files with the bars.
//!
//! `suite.rs` measures the rows. Each bar has two verdicts, one over the steady rows and one over all rows; the
//! first one decides. A row is steady for a bar if each compared time is steady: the second-best turn took at
//! most [`STEADY`] times as long as the best one.

use super::definition::{Against, Bar};
use super::report::Run;
use super::suite::{Best, KEPT, MAPPED, Measured, Outcome, is_peer};
use crate::measure::STEADY;
use crate::message::library::TYPEPACK;
use crate::summary::TIE;
use std::fmt::Write;

/// The value of one row for a bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// The name of the row.
    pub row: String,
    /// The value: a ratio, milliseconds, or bytes.
    pub value: f64,
    /// True if the ratio to the best peer may be greater than the value, because no peer ended within its time
    /// limit. The value is then computed with this limit instead of the peer's time.
    pub at_least: bool,
    /// True if the row reaches the limit.
    pub passes: bool,
    /// True if the row is steady, so that it decides whether the bar passes.
    pub steady: bool,
}

/// The verdict on one bar.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The values of all rows to which the bar applies and that could be compared.
    pub values: Vec<Value>,
    /// The number of rows to which the bar applies but that could not be compared.
    pub missing: usize,
    at_most: bool,
}

impl Verdict {
    fn some(&self, steady_only: bool) -> impl Iterator<Item = &Value> + Clone {
        self.values.iter().filter(move |value| value.steady || !steady_only)
    }

    /// Returns the number of steady rows if `steady_only` is true, and the number of all rows otherwise.
    pub fn count(&self, steady_only: bool) -> usize {
        self.some(steady_only).count()
    }

    /// Returns the worst value: of the steady rows if `steady_only` is true, and of all rows otherwise.
    pub fn worst(&self, steady_only: bool) -> Option<&Value> {
        let values = self.some(steady_only);
        match self.at_most {
            true => values.max_by(|a, b| a.value.total_cmp(&b.value)),
            false => values.min_by(|a, b| a.value.total_cmp(&b.value)),
        }
    }

    /// Returns true if the steady rows (if `steady_only` is true) or all rows (otherwise) reach the limit. Returns
    /// `None` if there are no such rows.
    pub fn passes(&self, steady_only: bool) -> Option<bool> {
        let values = self.some(steady_only);
        (self.count(steady_only) > 0).then(|| values.clone().all(|value| value.passes))
    }
}

/// Returns the time of the fastest peer, and false. If every peer that did not fail took longer than its time
/// limit, returns the least of these limits, and true.
fn best_peer(row: &Measured) -> Option<(Best, bool)> {
    let peers = row.figures.iter().filter(|figure| is_peer(&figure.competitor));
    let measured = peers.clone().filter_map(|figure| figure.best());
    if let Some(best) = measured.min_by(|a, b| a.ns.total_cmp(&b.ns)) {
        return Some((best, false));
    }
    let over = peers.filter_map(|figure| match figure.outcome {
        Outcome::Over(seconds) => Some(Best { ns: 1e9 * seconds as f64, spread: 1.0 }),
        _ => None,
    });
    over.min_by(|a, b| a.ns.total_cmp(&b.ns)).map(|best| (best, true))
}

/// Returns the value of `row` for a bar of the kind `against`. The second result is true if this value is only a
/// lower bound of the ratio to the best peer. The third result is true if the value is steady. Returns `None` if a
/// competitor was not measured.
pub fn value(row: &Measured, against: Against) -> Option<(f64, bool, bool)> {
    let figure = row.figure(TYPEPACK)?;
    let (own, first) = (figure.best()?, figure.first()?);
    let of = |name: &str| row.figure(name).and_then(|figure| figure.best());
    let ratio = |own: Best, other: Best, least| {
        (other.ns / own.ns, least, own.spread <= STEADY && other.spread <= STEADY)
    };
    match against {
        Against::Peer => best_peer(row).map(|(peer, least)| ratio(own, peer, least)),
        Against::Kept => of(KEPT).map(|kept| ratio(own, kept, false)),
        Against::Mapped => of(MAPPED).map(|mapped| ratio(first, mapped, false)),
        Against::Milliseconds => Some((first.ns / 1e6, false, first.spread <= STEADY)),
        Against::Bytes => match figure.outcome {
            // The growth is a number of bytes and not a time, so it is always steady.
            Outcome::Measured { growth, .. } => Some((growth as f64, false, true)),
            _ => None,
        },
    }
}

/// Compares the rows of `run` with `bar`.
pub fn verdict(run: &Run, bar: &Bar) -> Verdict {
    let rows = run.rows.iter().filter(|row| bar.applies(&row.class, row.direction, row.calls));
    let mut verdict = Verdict { values: Vec::new(), missing: 0, at_most: bar.against.is_at_most() };
    for row in rows {
        let Some((value, at_least, steady)) = value(row, bar.against) else {
            verdict.missing += 1;
            continue;
        };
        let passes = match bar.against {
            Against::Milliseconds | Against::Bytes => value <= bar.bar,
            Against::Peer => value >= bar.bar * TIE,
            Against::Kept | Against::Mapped => value >= bar.bar,
        };
        verdict.values.push(Value { row: row.name.clone(), value, at_least, passes, steady });
    }
    verdict
}

/// Formats the value of a row.
pub fn shown(value: &Value) -> String {
    let mark = if value.at_least { ">" } else { "" };
    match value.value {
        large if large >= 1000.0 => format!("{mark}{large:.0}"),
        other => format!("{mark}{other:.2}"),
    }
}

/// Returns the word for a verdict.
pub fn word(passes: Option<bool>) -> &'static str {
    match passes {
        Some(true) => "pass",
        Some(false) => "MISS",
        None => "-",
    }
}

/// Returns the human-readable summary: the bars over the steady rows and over all rows, every row that
/// misses a bar, the versions, and the faults.
pub fn text(run: &Run, bars: &[Bar]) -> String {
    let mut out = run.load.map_or_else(String::new, |load| format!("{load}\n\n"));
    let _ = write!(
        out,
        "Bars for files (worst row; the best turn of each row counts, and a row is steady if the second-best \
         turn is within {STEADY}x; ties with peers are 3 %)\n\n{:<6}{:<80}{:>9}{:>9}{:>6}   {:<6}{:>9}{:>6}\n",
        "", "bar", "required", "steady", "rows", "all:", "worst", "rows"
    );
    let mut short = String::new();
    for bar in bars {
        let verdict = verdict(run, bar);
        if verdict.values.is_empty() {
            let why = if verdict.missing > 0 { "not compared" } else { "not measured" };
            let _ = writeln!(out, "{:<6}{:<80}{:>9}{why:>15}", "-", bar.text, bar.bar);
            continue;
        }
        let worst = |steady_only| verdict.worst(steady_only).map_or("-".to_owned(), shown);
        let _ = writeln!(
            out,
            "{:<6}{:<80}{:>9}{:>9}{:>6}   {:<6}{:>9}{:>6}{}",
            word(verdict.passes(true)),
            bar.text,
            bar.bar,
            worst(true),
            verdict.count(true),
            word(verdict.passes(false)),
            worst(false),
            verdict.count(false),
            if verdict.missing > 0 {
                format!("  ({} not compared)", verdict.missing)
            } else {
                String::new()
            }
        );
        for value in verdict.values.iter().filter(|value| !value.passes) {
            let mark = if value.steady { "" } else { "~" };
            let _ = writeln!(
                short,
                "  {:<32}{:>10}{mark} of {}: {}",
                value.row,
                shown(value),
                bar.bar,
                bar.text
            );
        }
    }
    let mut list = |title: &str, text: &str| {
        if !text.is_empty() {
            let _ = write!(out, "\n{title}\n{text}");
        }
    };
    list("Rows that miss a bar (~: unsteady)", &short);
    if !run.libraries.iter().any(|name| is_peer(name)) {
        list("No peers took part.", "\n");
    }
    let lines = |lines: &[String], indent: &str| -> String {
        lines.iter().map(|line| format!("{indent}{line}\n")).collect()
    };
    list("Libraries", &lines(&run.versions, ""));
    list("Faults", &lines(&run.faults, "  "));
    out
}

#[cfg(test)]
mod tests {
    use super::{text, verdict};
    use crate::files::definition::{Against, Bar, Calls, Direction};
    use crate::files::report::Run;
    use crate::files::suite::{Best, Figure, Measured, Outcome};

    fn figure(competitor: &str, ns: f64, spread: f64) -> Figure {
        let first = Best { ns: 2.0 * ns, spread };
        let outcome =
            Outcome::Measured { first, best: Best { ns, spread }, turns: 2, growth: 5000 };
        Figure { competitor: competitor.to_owned(), outcome }
    }

    fn row(name: &str, figures: Vec<Figure>) -> Measured {
        Measured {
            name: name.to_owned(),
            class: "c".to_owned(),
            block: None,
            direction: Direction::Write,
            calls: Calls::Collective,
            bytes: 100,
            figures,
        }
    }

    fn bar(against: Against, limit: f64) -> Bar {
        let (class, text) = ("c".to_owned(), "some".to_owned());
        Bar { class, text, direction: None, calls: None, against, bar: limit }
    }

    #[test]
    fn steady_rows_decide_and_all_rows_are_counted() {
        let steady =
            vec![figure("typepack", 10.0, 1.0), figure("p", 30.0, 1.1), figure("q", 40.0, 1.0)];
        let unsteady = vec![figure("typepack", 10.0, 2.0), figure("p", 10.0, 1.0)];
        let lost = vec![figure("p", 10.0, 1.0)];
        let run = Run {
            rows: vec![row("a", steady), row("b", unsteady), row("d", lost)],
            libraries: vec!["typepack".to_owned(), "p".to_owned()],
            ..Run::default()
        };
        let found = verdict(&run, &bar(Against::Peer, 2.0));
        assert_eq!((found.count(true), found.count(false), found.missing), (1, 2, 1));
        assert_eq!((found.passes(true), found.passes(false)), (Some(true), Some(false)));
        assert_eq!(found.worst(true).expect("a row").value, 3.0);
        let page = text(&run, &[bar(Against::Peer, 2.0), bar(Against::Kept, 0.5)]);
        let misses = page.split_once("Rows that miss").expect("misses").1;
        assert!(misses.contains("b ") && misses.contains("1.00~ of 2"), "{page}");
        assert!(page.contains("not compared"), "{page}");
        // The first access of typepack took 20 ns.
        let greatest = verdict(&run, &bar(Against::Milliseconds, 1e-5));
        assert_eq!(greatest.passes(true), Some(false));
        let most = verdict(&run, &bar(Against::Bytes, 5000.0));
        assert_eq!((most.passes(true), most.count(true)), (Some(true), 2));
    }

    #[test]
    fn peers_beyond_their_time_give_a_least_ratio() {
        let over = |seconds| Figure { competitor: "p".to_owned(), outcome: Outcome::Over(seconds) };
        let both = vec![figure("typepack", 1e8, 1.0), over(5)];
        let run = Run { rows: vec![row("a", both)], ..Run::default() };
        let found = verdict(&run, &bar(Against::Peer, 20.0));
        let value = found.worst(false).expect("a row");
        assert_eq!((value.value, value.at_least, value.passes), (50.0, true, true));
        // The peer `q` was measured, so its time counts, and not the time limit of the other peer.
        let three = vec![figure("typepack", 1e8, 1.0), over(5), figure("q", 3e8, 1.0)];
        let run = Run { rows: vec![row("a", three)], ..Run::default() };
        let found = verdict(&run, &bar(Against::Peer, 20.0));
        assert_eq!((found.values[0].value, found.values[0].at_least), (3.0, false));
        assert_eq!(found.passes(true), Some(false));
        let none =
            Run { rows: vec![row("a", vec![figure("typepack", 1.0, 1.0)])], ..Run::default() };
        assert_eq!(verdict(&none, &bar(Against::Peer, 1.0)).passes(false), None);
    }
}
