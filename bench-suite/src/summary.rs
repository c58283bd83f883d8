//! The summary of `typepack-bench peers`: the bars for packing and unpacking, the storm and the regret.
//!
//! `suite.rs` produces the rows, and `row/bar.rs` compares them with the bars of `definitions/reference.toml`: the
//! project's bars for packing and unpacking in a single thread. `commit/` has the bars for the other costs of a
//! type, such as creation and fused copies.

use crate::definition::Definitions;
use crate::regret;
use crate::row::bar::{self, Bar, word};
use crate::row::kind::Kind;
use crate::row::report::{csv as rows_csv, size_text, table as rows_table};
use crate::row::{FAR_TIE, IN_CACHE, Row, STEADY, Sides, TIE, TYPEPACK};
use crate::storm::USES;
use crate::suite::{Suite, is_steady};
use std::fmt::Write;

/// The name that the table of the storm has in records. The nanoseconds in this table are the time for one
/// type with all its uses.
pub const STORM: &str = "storm";

/// Returns typepack and its peers in the run.
fn sides(suite: &Suite) -> Sides<'_> {
    Sides { own: TYPEPACK, peers: &suite.peers }
}

/// Returns the rows as a human-readable table.
pub fn table(suite: &Suite) -> String {
    let own = crate::row::OWN.into_iter().chain(suite.peers.iter().map(String::as_str));
    let table =
        rows_table(&suite.rows, &own.collect::<Vec<_>>(), sides(suite), Kind::Packing.unit());
    format!(
        "{table}{} Ratios are typepack's. ~: rounds differ by more than {STEADY}x.\n",
        Kind::Packing.meaning()
    )
}

/// Returns the rows as CSV. If the run has measured the storm or the regret, their tables follow. Before each of these
/// tables is a comment line with its name (`record.rs`).
pub fn csv(suite: &Suite) -> String {
    let mut text = rows_csv(&suite.rows);
    if !suite.storm.is_empty() {
        let _ = write!(text, "# typepack-bench {STORM}\n{}", rows_csv(&suite.storm));
    }
    if !suite.regret.is_empty() {
        let header = "layout,bytes,uses,never_ns,at_once_ns,policy_ns,steady";
        let _ = writeln!(text, "# typepack-bench {}\n{header}", regret::NAME);
    }
    for row in &suite.regret {
        let [never, at_once, policy] = row.ns;
        let _ = writeln!(
            text,
            "{},{},{},{never:.1},{at_once:.1},{policy:.1},{}",
            row.layout, row.bytes, row.uses, row.steady
        );
    }
    text
}

/// Returns a header line and one line per row and competitor, in the columns of DDTBench's output:
/// `testname` (the layout), `method` (the competitor), `bytes`, `id` (the direction), and `time` (the
/// median, in microseconds).
pub fn ddtbench(suite: &Suite) -> String {
    let mut text =
        format!("{:<30}{:<24}{:>12} {:<8}{:>16}\n", "testname", "method", "bytes", "id", "time");
    for row in &suite.rows {
        for figure in &row.figures {
            let (who, us) = (&figure.competitor, figure.ns / 1000.0);
            let (name, bytes, id) = (&row.name, row.bytes, &row.part);
            let _ = writeln!(text, "{name:<30}{who:<24}{bytes:>12} {id:<8}{us:>16.3}");
        }
    }
    text
}

/// Returns the human-readable summary: the bars with their verdicts, the versions of the peers, the builds
/// of the hand loops, the storm, the regret, the rows that fall short of missed bars, the faults, and the
/// layouts that were left out.
pub fn text(suite: &Suite) -> String {
    let mut out = String::from("Bars for packing and unpacking (steady rows decide)\n\n");
    let mut lists = String::new();
    verdicts(suite, &Definitions::reference().bars, &mut out, &mut lists);
    far(suite, &mut lists);
    let unsteady = suite.rows.iter().filter(|row| !is_steady(row, &suite.peers)).count();
    let _ = writeln!(
        out,
        "\n{unsteady} of {} rows have rounds that differ by more than {STEADY}x.",
        suite.rows.len()
    );
    ends(suite, &mut out);
    if suite.peers.is_empty() {
        out.push_str("No peers took part: `scripts/bench peers` fetches them.\n");
    }
    storm(suite, &mut out);
    regret(suite, &mut out);
    out + &lists + &faults(suite)
}

/// Adds the versions of the peers and the builds of the hand loops to `out`.
pub(crate) fn ends(suite: &Suite, out: &mut String) {
    for (name, version) in suite.peers.iter().zip(&suite.versions) {
        let _ = writeln!(out, "peer {name}: {version}");
    }
    suite.hands.iter().for_each(|line| out.push_str(&format!("loops of {line}\n")));
}

/// Returns the faults, and the layouts that were left out.
pub(crate) fn faults(suite: &Suite) -> String {
    let mut out = String::new();
    for (title, lines) in [("Faults", &suite.faults), ("Left out", &suite.skipped)] {
        if !lines.is_empty() {
            let _ = writeln!(out, "\n{title}");
            lines.iter().for_each(|line| out.push_str(&format!("  {line}\n")));
        }
    }
    out
}

/// Compares the rows of `suite` with `bars`. Adds one line per bar to `out`. For each bar that is missed, adds
/// to `lists` the rows that fall short of it.
pub(crate) fn verdicts(suite: &Suite, bars: &[Bar], out: &mut String, lists: &mut String) {
    out.push_str(&bar::heading());
    bar::lines(&suite.rows, sides(suite), ("", bars), |row| figures(row, suite), [out, lists]);
}

/// Returns the bandwidths of the competitors that explain a miss.
fn figures(row: &Row, suite: &Suite) -> String {
    let hand = row.best(&["hand", "hand-c"]).into_iter();
    let best = hand.chain(row.best(&suite.peers)).map(|figure| figure.competitor.as_str());
    let speed = |name: &str| Some(format!("{name} {:.2}", row.rate(row.figure(name)?)));
    let all: Vec<String> =
        [TYPEPACK, "leaf", "jit"].into_iter().chain(best).filter_map(speed).collect();
    let ran = row.figure(TYPEPACK).map_or("", |figure| figure.executor.as_str());
    format!("{} GB/s; ran {ran}", all.join(", "))
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
        let ratio = row.against(TYPEPACK, &suite.peers);
        let word = match ratio {
            None => "-",
            Some(ratio) if !ratio.steady => "~",
            Some(ratio) if ratio.value < TIE => "MISS",
            Some(_) => "pass",
        };
        let _ = write!(out, "{word:<6}{:<16}", row.name);
        for figure in &row.figures {
            let us = figure.ns / (1000.0 * USES as f64);
            let _ = write!(out, "{} {us:.3}  ", figure.competitor);
        }
        let _ = writeln!(out, "ratio {:.2}", ratio.map_or(f64::NAN, |ratio| ratio.value));
    }
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
    // If no row is steady, there is no verdict.
    let word = word((!steady.is_empty()).then_some(missed.is_empty()));
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
    let lost: Vec<(&Row, f64)> = suite
        .rows
        .iter()
        .filter(|row| row.touched > IN_CACHE)
        .filter_map(|row| Some((row, row.against(TYPEPACK, &suite.peers)?)))
        .filter(|(_, ratio)| ratio.steady && ratio.value < FAR_TIE)
        .map(|(row, ratio)| (row, ratio.value))
        .collect();
    if !lost.is_empty() {
        lists.push_str("\nrows touching more than 8 MiB that lose by more than 1.5x\n");
    }
    for (row, ratio) in lost {
        let _ = writeln!(lists, "  {:<30}{ratio:>8.2}  {}", row.title(), figures(row, suite));
    }
}

#[cfg(test)]
mod tests {
    use super::text;
    use crate::regret::Regret;
    use crate::row::{Figure, Row};
    use crate::suite::Suite;

    fn row(bytes: u64, typepack: f64, peer: f64, spread: f64) -> Row {
        let time = |rate: f64| bytes as f64 / rate;
        let figures = vec![
            Figure::new("typepack", time(typepack), spread),
            Figure::new("hand", time(1.0), 1.0),
            Figure::new("slow", time(0.1), 9.0),
            Figure::new("other", time(peer), 1.0),
        ];
        let (name, part) = ("d1s2".to_owned(), "pack".to_owned());
        Row { name, part, bytes, touched: 3 * bytes, figures, ..Row::default() }
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
        assert!(!all.contains("falls short"), "{all}");
        suite.rows.push(row(32 << 10, 0.5, 1.0, 1.0));
        let all = text(&suite);
        assert!(line("worst row against the best", &all).starts_with("MISS"), "{all}");
        let list = "up to 8 MiB touched: worst row against the best peer: 1 row falls short\n  d1s2 32 KiB pack";
        assert!(all.contains(list), "{all}");
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
