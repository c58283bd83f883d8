//! Compares the rows of one run with the bars for packing and unpacking.
//!
//! `suite.rs` produces the rows. The bars of this file are the project's bars for packing and unpacking in
//! a single thread; `commit/` has the bars for the other costs of a type, such as creation and fused
//! copies. Only steady rows decide whether a bar passes. The text also states the number of unsteady rows
//! and the value of all rows.

use crate::competitor::{HAND, TYPEPACK};
use crate::definition::Class;
use crate::measure::{Row, STEADY};
use crate::report::size_text;
use crate::storm::USES;
use crate::suite::{Suite, SuiteRow};
use std::fmt::Write;

/// A ratio to the best peer that is below 1 counts as a tie if it is at least this value.
pub const TIE: f64 = 0.97;
/// Takes the place of [`TIE`] for rows that touch more than [`IN_CACHE`] bytes.
pub const FAR_TIE: f64 = 1.0 / 1.5;
/// A row that touches at most this many bytes (`touched` in [`SuiteRow`]) counts as "in cache".
pub const IN_CACHE: u64 = 8 << 20;
/// The largest number of rows that the text lists for a missed bar. If the bar is for the least ratio, the
/// text lists all rows that fall short.
const LISTED: usize = 12;

/// How the values of a bar's rows are combined into one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// The geometric mean of the ratios; the bar is a lower limit.
    Mean,
    /// The least ratio; the bar is a lower limit.
    Least,
    /// The median of the nanoseconds; the bar is an upper limit.
    Nanoseconds,
}

/// The value of a row for a bar, and whether the row is steady. `None` if the bar does not apply to the
/// row.
pub(crate) type Judged = Option<(f64, bool)>;

/// One bar: a limit that the project requires, and the rows to which it applies.
pub(crate) struct Bar {
    pub(crate) text: &'static str,
    pub(crate) least: f64,
    pub(crate) goal: f64,
    pub(crate) value: Value,
    /// Returns the value of a row for this bar: a ratio or a time. The second argument holds the names of
    /// the peers.
    pub(crate) of: fn(&SuiteRow, &[String]) -> Judged,
}

/// The verdict on one bar, and the values that the rows of a run reach.
#[derive(Clone, Debug)]
pub struct Verdict<'a> {
    /// A human-readable description of the bar.
    pub text: &'static str,
    /// How the values of the rows are combined into one value.
    pub value: Value,
    /// The limit that the project requires.
    pub bar: f64,
    /// The limit that the project would like to reach.
    pub goal: f64,
    /// The combined value of the steady rows; `None` if there are no steady rows.
    pub steady: Option<f64>,
    /// The combined value of all rows to which the bar applies; `None` if there are none.
    pub all: Option<f64>,
    /// The number of steady rows to which the bar applies, and the number of all rows to which it applies.
    pub rows: [usize; 2],
    /// True if the combined value of the steady rows meets the bar; `None` if there are no steady rows.
    pub passes: Option<bool>,
    /// The steady rows whose own values miss the bar, worst first, each with its value.
    pub short: Vec<(&'a SuiteRow, f64)>,
}

const KIB: u64 = 1 << 10;

fn peer_if(row: &SuiteRow, peers: &[String], holds: bool) -> Option<(f64, bool)> {
    if holds { row.against_peer(peers) } else { None }
}

/// Returns how many nanoseconds longer a call of typepack takes than the hand loop. The row counts as
/// steady if both figures are steady. Returns `None` for calls of more than 128 bytes, or if a figure is
/// missing.
fn fixed_cost(row: &SuiteRow) -> Option<(f64, bool)> {
    let (own, hand) = (row.row.figure(TYPEPACK)?, row.best_hand()?);
    let steady = own.spread <= STEADY && hand.spread <= STEADY;
    (row.row.bytes <= 128).then_some((own.ns - hand.ns, steady))
}

const BARS: [Bar; 9] = [
    Bar {
        text: "up to 2 KiB: mean against the best peer",
        least: 2.5,
        goal: 3.2,
        value: Value::Mean,
        of: |row, peers| peer_if(row, peers, row.row.bytes <= 2 * KIB),
    },
    Bar {
        text: "32 KiB to 2 MiB: mean against the best peer",
        least: 1.5,
        goal: 1.8,
        value: Value::Mean,
        of: |row, peers| peer_if(row, peers, (32 * KIB..=2048 * KIB).contains(&row.row.bytes)),
    },
    Bar {
        text: "gapped structs in cache: mean against the best peer",
        least: 15.0,
        goal: 30.0,
        value: Value::Mean,
        of: |row, peers| peer_if(row, peers, row.class == Class::Gapped && row.touched <= IN_CACHE),
    },
    Bar {
        text: "1- and 2-byte blocks: mean against the best peer",
        least: 5.0,
        goal: 8.0,
        value: Value::Mean,
        of: |row, peers| peer_if(row, peers, row.class == Class::Bytes),
    },
    Bar {
        text: "transposes: mean against the best peer",
        least: 4.0,
        goal: 6.0,
        value: Value::Mean,
        of: |row, peers| peer_if(row, peers, row.class == Class::Transpose),
    },
    Bar {
        text: "16 KiB to 2 MiB: mean against the hand loop",
        least: 1.2,
        goal: 1.35,
        value: Value::Mean,
        of: |row, _| {
            let holds = (16 * KIB..=2048 * KIB).contains(&row.row.bytes);
            if holds { row.against_hand() } else { None }
        },
    },
    Bar {
        text: "up to 8 MiB touched: worst row against the best peer",
        least: 0.95,
        goal: 1.0,
        value: Value::Least,
        of: |row, peers| peer_if(row, peers, row.touched <= IN_CACHE),
    },
    Bar {
        text: "from 16 KiB, in cache: worst row against the hand loop",
        least: 0.9,
        goal: 1.0,
        value: Value::Least,
        of: |row, _| {
            let holds = row.row.bytes >= 16 * KIB && row.touched <= IN_CACHE;
            if holds { row.against_hand() } else { None }
        },
    },
    Bar {
        text: "up to 128 B: median ns of a call beyond the hand loop",
        least: 10.0,
        goal: 5.0,
        value: Value::Nanoseconds,
        of: |row, _| fixed_cost(row),
    },
];

impl Value {
    fn of(self, values: &[f64]) -> Option<f64> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let least = *sorted.first()?;
        Some(match self {
            Self::Mean => (values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64).exp(),
            Self::Least => least,
            Self::Nanoseconds => sorted[sorted.len() / 2],
        })
    }

    fn passes(self, value: f64, bar: f64) -> bool {
        match self {
            Self::Mean | Self::Least => value >= bar,
            Self::Nanoseconds => value <= bar,
        }
    }
}

/// Returns the human-readable summary: the bars with their verdicts, the versions of the peers, the builds
/// of the hand loops, the storm, the regret, the rows that fall short of missed bars, the faults, and the
/// layouts that were left out.
pub fn text(suite: &Suite) -> String {
    let mut out = String::from("Bars for packing and unpacking (steady rows decide)\n\n");
    let mut lists = String::new();
    write_verdicts(suite, &BARS, &mut out, &mut lists);
    far(suite, &mut lists);
    let unsteady = suite.rows.iter().filter(|row| !row.is_steady(&suite.peers)).count();
    let _ = writeln!(
        out,
        "\n{unsteady} of {} rows have rounds that differ by more than {STEADY}x.",
        suite.rows.len()
    );
    for (name, version) in suite.peers.iter().zip(&suite.versions) {
        let _ = writeln!(out, "peer {name}: {version}");
    }
    suite.hands.iter().for_each(|line| out.push_str(&format!("loops of {line}\n")));
    if suite.peers.is_empty() {
        out.push_str("No peers took part: `scripts/bench peers` fetches them.\n");
    }
    storm(suite, &mut out);
    regret(suite, &mut out);
    out.push_str(&lists);
    for (title, lines) in [("Faults", &suite.faults), ("Left out", &suite.skipped)] {
        if !lines.is_empty() {
            let _ = writeln!(out, "\n{title}");
            lines.iter().for_each(|line| out.push_str(&format!("  {line}\n")));
        }
    }
    out
}

/// Compares the rows of `suite` with every bar.
pub fn verdicts(suite: &Suite) -> Vec<Verdict<'_>> {
    BARS.iter().map(|bar| verdict(suite, bar)).collect()
}

/// Compares the rows of `suite` with `bars`. Adds one line per bar to `out`. For each bar that is missed, adds
/// to `lists` the rows that fall short of it.
pub(crate) fn write_verdicts(suite: &Suite, bars: &[Bar], out: &mut String, lists: &mut String) {
    let _ = writeln!(
        out,
        "{:<6}{:<56}{:>9}{:>8}{:>8}{:>8}{:>10}{:>10}",
        "", "bar", "measured", "bar", "goal", "rows", "unsteady", "with them"
    );
    for bar in bars {
        write_verdict(&verdict(suite, bar), &suite.peers, out, lists);
    }
}

fn verdict<'a>(suite: &'a Suite, bar: &Bar) -> Verdict<'a> {
    let rows: Vec<(&SuiteRow, f64, bool)> = suite
        .rows
        .iter()
        .filter_map(|row| (bar.of)(row, &suite.peers).map(|(value, steady)| (row, value, steady)))
        .collect();
    let all: Vec<f64> = rows.iter().map(|(_, value, _)| *value).collect();
    let deciding: Vec<f64> = rows.iter().filter(|r| r.2).map(|(_, value, _)| *value).collect();
    let measured = bar.value.of(&deciding);
    let falls_short = |r: &&(&SuiteRow, f64, bool)| r.2 && !bar.value.passes(r.1, bar.least);
    let mut short: Vec<(&SuiteRow, f64)> =
        rows.iter().filter(falls_short).map(|(row, value, _)| (*row, *value)).collect();
    match bar.value {
        Value::Nanoseconds => short.sort_by(|a, b| b.1.total_cmp(&a.1)),
        Value::Mean | Value::Least => short.sort_by(|a, b| a.1.total_cmp(&b.1)),
    }
    Verdict {
        text: bar.text,
        value: bar.value,
        bar: bar.least,
        goal: bar.goal,
        steady: measured,
        all: bar.value.of(&all),
        rows: [deciding.len(), all.len()],
        passes: measured.map(|value| bar.value.passes(value, bar.least)),
        short,
    }
}

/// Adds the line of a bar to `out`. If the bar is missed, adds the rows that fall short of it to `lists`.
fn write_verdict(verdict: &Verdict<'_>, peers: &[String], out: &mut String, lists: &mut String) {
    let shown = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
    let word = match verdict.passes {
        Some(true) => "pass",
        Some(false) => "MISS",
        None => "-",
    };
    let [steady, all] = verdict.rows;
    let _ = writeln!(
        out,
        "{word:<6}{:<56}{:>9}{:>8.2}{:>8.2}{:>8}{:>10}{:>10}",
        verdict.text,
        shown(verdict.steady),
        verdict.bar,
        verdict.goal,
        steady,
        all - steady,
        shown(verdict.all),
    );
    if verdict.passes != Some(false) {
        return;
    }
    let short = &verdict.short;
    let most = if verdict.value == Value::Least { short.len() } else { LISTED };
    let _ = writeln!(lists, "\n{}: {}", verdict.text, fall_short(short.len()));
    for (row, value) in short.iter().take(most) {
        line(row, *value, peers, lists);
    }
    if short.len() > most {
        let _ = writeln!(lists, "  and {} more", short.len() - most);
    }
}

fn fall_short(rows: usize) -> String {
    if rows == 1 { "1 row falls short".to_owned() } else { format!("{rows} rows fall short") }
}

/// Adds the rows of the storm to `out`. The bar: in each row, typepack must be at least as fast as every
/// peer, except for ties.
fn storm(suite: &Suite, out: &mut String) {
    if suite.storm.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\nA new type every {USES} uses, all included: us per use (bar: no slower than any peer)"
    );
    for row in &suite.storm {
        let Some((ratio, steady)) = storm_ratio(row, &suite.peers) else { continue };
        let word = match ratio {
            _ if !steady => "~",
            Some(ratio) if ratio < TIE => "MISS",
            Some(_) => "pass",
            None => "-",
        };
        let _ = write!(out, "{word:<6}{:<16}", row.layout);
        for figure in &row.figures {
            let us = figure.ns / (1000.0 * USES as f64);
            let _ = write!(out, "{} {us:.3}  ", figure.competitor);
        }
        let _ = writeln!(out, "ratio {:.2}", ratio.unwrap_or(f64::NAN));
    }
}

/// Returns the best peer's time divided by typepack's time in a row of the storm, and whether both figures
/// are steady. The ratio is `None` if there is no peer. Returns `None` if typepack has no figure.
pub fn storm_ratio(row: &Row, peers: &[String]) -> Option<(Option<f64>, bool)> {
    let own = row.figure(TYPEPACK)?;
    let others = row.figures.iter().filter(|f| peers.contains(&f.competitor));
    let best = others.min_by(|a, b| a.ns.total_cmp(&b.ns));
    let steady = own.spread <= STEADY && best.is_none_or(|best| best.spread <= STEADY);
    Some((best.map(|best| best.ns / own.ns), steady))
}

/// The bar of the regret: the greatest allowed ratio of the time with the default policy to the time with
/// the better choice (never compile, or compile at commit).
pub const REGRET: f64 = 1.15;

/// Adds the regret of the compilation policy to `out`. The bar: no steady row may be above [`REGRET`].
fn regret(suite: &Suite, out: &mut String) {
    let steady: Vec<_> = suite.regret.iter().filter(|row| row.steady).collect();
    let mut missed: Vec<_> = steady.iter().filter(|row| row.ratio() > REGRET).collect();
    if suite.regret.is_empty() {
        return;
    }
    missed.sort_by(|a, b| b.ratio().total_cmp(&a.ratio()));
    let word = match (steady.is_empty(), missed.is_empty()) {
        // If no row is steady, there is no verdict.
        (true, _) => "-",
        (false, true) => "pass",
        (false, false) => "MISS",
    };
    let _ = writeln!(
        out,
        "\n{word:<6}policy regret, 1 to 1000 uses: {} of {} steady rows above {REGRET}, {} unsteady; us in \
         all: never compiled, at commit, policy",
        missed.len(),
        steady.len(),
        suite.regret.len() - steady.len()
    );
    for row in missed {
        let [never, at_once, policy] = row.ns.map(|ns| ns / 1000.0);
        let _ = writeln!(
            out,
            "  {:<14}{:>9} {:>5} uses{:>7.2}  {never:.1}, {at_once:.1}, {policy:.1}",
            row.layout,
            size_text(row.bytes),
            row.uses,
            row.ratio()
        );
    }
}

/// Adds to `lists` the steady rows that touch more than [`IN_CACHE`] bytes and lose to the best peer by
/// more than a tie ([`FAR_TIE`]).
fn far(suite: &Suite, lists: &mut String) {
    let rows = suite.rows.iter().filter(|row| row.touched > IN_CACHE);
    let lost: Vec<_> = rows
        .filter_map(|row| {
            row.against_peer(&suite.peers).map(|(ratio, steady)| (row, ratio, steady))
        })
        .filter(|(_, ratio, steady)| *steady && *ratio < FAR_TIE)
        .collect();
    if !lost.is_empty() {
        let _ = writeln!(lists, "\nrows touching more than 8 MiB that lose by more than 1.5x");
        lost.iter().for_each(|(row, ratio, _)| line(row, *ratio, &suite.peers, lists));
    }
}

fn line(row: &SuiteRow, value: f64, peers: &[String], out: &mut String) {
    let best = row.best_peer(peers).map_or("", |figure| figure.competitor.as_str());
    let hand = row.best_hand().map_or(HAND, |figure| figure.competitor.as_str());
    let speed = |name: &str| {
        row.row.figure(name).map_or_else(|| "-".to_owned(), |f| format!("{:.2}", f.gb_per_s))
    };
    let _ = writeln!(
        out,
        "  {:<14}{:>9} {:<7}{value:>7.2}  typepack {}, leaf {}, jit {}, {hand} {}, {best} {} GB/s; ran {}",
        row.row.layout,
        size_text(row.row.bytes),
        row.row.direction,
        speed(TYPEPACK),
        speed("leaf"),
        speed("jit"),
        speed(hand),
        speed(best),
        row.row.figure(TYPEPACK).map_or("", |f| f.executor.as_str()),
    );
}

/// Returns the word for a ratio to the best peer: `win`, `tie` or `loss`.
pub fn word(row: &SuiteRow, ratio: f64) -> &'static str {
    let tie = if row.touched > IN_CACHE { FAR_TIE } else { TIE };
    match ratio {
        r if r < tie => "loss",
        r if r <= 1.0 / tie => "tie",
        _ => "win",
    }
}

#[cfg(test)]
mod tests {
    use super::{text, word};
    use crate::definition::Class;
    use crate::measure::{Figure, Row};
    use crate::regret::Regret;
    use crate::suite::{Suite, SuiteRow};

    fn row(bytes: u64, typepack: f64, peer: f64, spread: f64) -> SuiteRow {
        let figure = |name: &str, gb_per_s: f64, spread| Figure {
            competitor: name.to_owned(),
            executor: String::new(),
            ns: bytes as f64 / gb_per_s,
            gb_per_s,
            spread,
        };
        let figures = vec![
            figure("typepack", typepack, spread),
            figure("hand", 1.0, 1.0),
            figure("slow", 0.1, 9.0),
            figure("other", peer, 1.0),
        ];
        let row = Row { layout: "d1s2".to_owned(), bytes, size: bytes, direction: "pack", figures };
        SuiteRow { row, class: Class::Plain, touched: 3 * bytes }
    }

    #[test]
    fn means_are_of_steady_rows_and_misses_are_listed() {
        let mut suite = Suite {
            peers: vec!["slow".to_owned(), "other".to_owned()],
            versions: vec!["1".to_owned(), "2".to_owned()],
            rows: vec![
                row(1024, 4.0, 1.0, 1.0),
                row(1024, 9.0, 1.0, 1.0),
                row(1024, 0.1, 1.0, 2.0),
            ],
            ..Suite::default()
        };
        let all = text(&suite);
        let line =
            |part: &str, all: &str| all.lines().find(|l| l.contains(part)).expect(part).to_owned();
        let small = line("up to 2 KiB", &all);
        assert!(small.starts_with("pass") && small.contains("6.00"), "{small}");
        assert!(line("32 KiB to 2 MiB: mean", &all).starts_with('-'), "{all}");
        assert!(!all.contains("fall short"), "{all}");
        suite.rows.push(row(32 << 10, 0.5, 1.0, 1.0));
        let all = text(&suite);
        assert!(line("worst row against the best", &all).starts_with("MISS"), "{all}");
        assert!(
            all.contains("up to 8 MiB touched: worst row against the best peer: 1 row falls short")
        );
        assert_eq!(word(&suite.rows[3], 0.5), "loss");
        assert_eq!(word(&suite.rows[3], 0.98), "tie");
    }

    #[test]
    fn regret_is_judged_by_steady_rows_only() {
        let row = |policy, steady| Regret {
            layout: "d1s2".to_owned(),
            bytes: 1024,
            uses: 10,
            ns: [10.0, 20.0, policy],
            steady,
        };
        let judged = |regret: Vec<Regret>| {
            let all = text(&Suite { regret, ..Suite::default() });
            all.lines().find(|line| line.contains("policy regret")).map(str::to_owned)
        };
        let line = |regret| judged(regret).expect("a verdict");
        assert!(judged(Vec::new()).is_none());
        let none = line(vec![row(10.0, false), row(90.0, false)]);
        assert!(none.starts_with("- ") && none.contains("0 of 0 steady rows"), "{none}");
        assert!(none.contains("2 unsteady"), "{none}");
        let good = line(vec![row(11.0, true), row(90.0, false)]);
        assert!(good.starts_with("pass") && good.contains("0 of 1 steady rows"), "{good}");
        assert!(line(vec![row(11.0, true), row(12.0, true)]).starts_with("MISS"));
    }
}
