//! Compares the rows of one run with the bars of messages, collectives, one-sided communication, the interposer and
//! jobs.
//!
//! `suite.rs` and `whole.rs` produce the rows. Rows of jobs have no mark of steadiness. Of the other rows,
//! only steady ones decide whether a bar passes. If a bar is for near CPUs, only those steady rows decide
//! whose CPUs were near each other. The printed text also states the number of rows that do not decide, and
//! the value over all rows.

use super::definition::{Bar, Memory, Value};
use super::report::Run;
use super::suite::{Distance, Measured};
use crate::builds::{self, mean};
use std::fmt::Write;

/// The verdict on one bar for one kind of memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The combined value of the rows that decide whether the bar passes. `None` if no row decides.
    pub value: Option<f64>,
    /// The combined value of all rows of the bar's class with this kind of memory. `None` if there are
    /// none.
    pub all: Option<f64>,
    /// True if the rows that decide meet the bar. `None` if no row decides, or if the bar has no limit.
    pub passes: Option<bool>,
    /// The number of rows that decide, and the number of rows that do not decide: rows that are unsteady
    /// and, if the bar is for near CPUs, rows whose CPUs were not near.
    pub rows: [usize; 2],
    /// The names and values of those deciding rows that miss the limit of the bar by themselves.
    pub short: Vec<(String, f64)>,
}

/// Compares those rows whose buffers are in `memory` with `bar`.
pub fn verdict(run: &Run, bar: &Bar, memory: Memory) -> Verdict {
    let rows = run.rows.iter().filter(|r| r.class == bar.class && r.memory == memory.name());
    let of = |row: &Measured| match bar.value {
        Value::Pack => row.over_pack(run.own()),
        Value::Packing => row.packing_against(run.own(), &run.peers),
        Value::Added => row.added(run.own(), &run.peers),
        Value::Mean | Value::Least => row.against(run.own(), &run.peers),
    };
    let all: Vec<(&Measured, f64, bool)> = rows
        .filter_map(|row| {
            let (value, steady) = of(row)?;
            Some((row, value, steady && (!bar.near || row.distance() == Distance::Near)))
        })
        .collect();
    let values: Vec<(&Measured, f64)> = all
        .iter()
        .filter(|(_, _, decides)| *decides)
        .map(|(row, value, _)| (*row, *value))
        .collect();
    let least = bar.bar[usize::from(memory == Memory::Alloc)];
    let passes = |value: f64, tie: f64| match bar.value {
        Value::Pack | Value::Added => value <= least,
        Value::Mean | Value::Packing => value >= least,
        Value::Least => value >= least * tie,
    };
    let value = whole(bar.value, values.iter().map(|(_, value)| *value));
    let mut short: Vec<(String, f64)> = values
        .iter()
        .filter(|(row, value)| !passes(*value, row.tie()))
        .map(|(row, value)| (row.name.clone(), *value))
        .collect();
    short.sort_by(|a, b| match bar.value.is_at_most() {
        true => b.1.total_cmp(&a.1),
        false => a.1.total_cmp(&b.1),
    });
    let passes = match bar.value {
        Value::Mean => value.map(|value| passes(value, 1.0)),
        // These bars pass if every row passes. The row with the least ratio may pass although another row
        // misses, because the limit for a tie differs from row to row.
        _ => value.map(|_| short.is_empty()),
    };
    let passes = passes.filter(|_| bar.value.is_at_most() || least > 0.0);
    let others = all.len() - values.len();
    let all = whole(bar.value, all.iter().map(|(_, value, _)| *value));
    Verdict { value, all, passes, rows: [values.len(), others], short }
}

/// Turns the values of several rows into one value.
fn whole(how: Value, values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    match how {
        Value::Mean => mean(values),
        Value::Least | Value::Packing => values.min_by(f64::total_cmp),
        Value::Pack | Value::Added => values.max_by(f64::total_cmp),
    }
}

fn shown(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.2}"))
}

fn word(passes: Option<bool>) -> &'static str {
    match passes {
        Some(true) => "pass",
        Some(false) => "MISS",
        None => "-",
    }
}

/// Returns the human-readable summary: the bars with their verdicts, the distances of the CPUs, the
/// versions, the comparisons of builds, every row that falls short of a missed bar, and the faults.
pub fn text(run: &Run, bars: &[Bar]) -> String {
    let mut out = run.load.map_or_else(String::new, |load| format!("{load}\n\n"));
    let _ = write!(
        out,
        "Bars for {} (steady rows decide; ties are 3 %, or 1.5x for rows that touch more than \
         8 MiB)\n\n",
        run.subject.bars()
    );
    let mut short = String::new();
    if !run.rows.is_empty() {
        let _ = writeln!(
            out,
            "{:<6}{:<50}{:<8}{:>9}{:>8}{:>8}{:>8}{:>8}{:>10}",
            "", "bar", "memory", "measured", "bar", "goal", "rows", "others", "with them"
        );
        for part in run.parts() {
            for bar in
                bars.iter().filter(|bar| bar.host.is_none() || bar.host.as_deref() == part.host())
            {
                for memory in [Memory::User, Memory::Alloc] {
                    one(&part, bar, memory, &mut out, &mut short);
                }
            }
        }
    }
    if !run.jobs.is_empty() {
        let _ =
            writeln!(out, "\n{:<6}{:<50}{:>17}{:>8}{:>8}", "", "job", "measured", "bar", "goal");
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
    }
    let far = |distance| run.rows.iter().filter(|row| row.distance() == distance).count();
    let _ = writeln!(
        out,
        "\nCPUs near in {} rows, far in {}, between in {}.",
        far(Distance::Near),
        far(Distance::Far),
        far(Distance::Between)
    );
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

fn one(run: &Run, bar: &Bar, memory: Memory, out: &mut String, short: &mut String) {
    let verdict = verdict(run, bar, memory);
    if verdict.rows == [0, 0] {
        return;
    }
    let index = usize::from(memory == Memory::Alloc);
    let text = match run.host() {
        Some(host) => format!("{host}: {}", bar.text),
        None => bar.text.clone(),
    };
    let _ = writeln!(
        out,
        "{:<6}{:<50}{:<8}{:>9}{:>8.2}{:>8.2}{:>8}{:>8}{:>10}",
        word(verdict.passes),
        text,
        memory.name(),
        shown(verdict.value),
        bar.bar[index],
        bar.goal[index],
        verdict.rows[0],
        verdict.rows[1],
        shown(verdict.all),
    );
    if verdict.passes == Some(false) {
        let _ = writeln!(short, "\n{text}, {}: rows that fall short", memory.name());
        for (name, value) in &verdict.short {
            let _ = writeln!(short, "  {name:<20}{value:>6.2}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{text, verdict};
    use crate::message::definition::{Bar, Definitions, Memory};
    use crate::message::report::Run;
    use crate::message::suite::{Figure, Measured};

    fn row(name: &str, class: &str, own: f64, peer: f64, probe: f64, spread: f64) -> Measured {
        let figure =
            |library: &str, ns, pack| Figure { library: library.to_owned(), ns, spread, pack };
        Measured {
            name: name.to_owned(),
            class: class.to_owned(),
            memory: "user",
            bytes: 8,
            touched: 128,
            probe,
            probe_spread: 1.0,
            figures: vec![
                figure("typepack", own, Some(own / 1.1)),
                figure("peer", peer, None),
                figure("slow", 10.0 * peer, None),
            ],
        }
    }

    fn run(rows: Vec<Measured>) -> Run {
        Run {
            libraries: vec!["typepack".into(), "peer".into(), "slow".into()],
            peers: vec!["peer".into(), "slow".into()],
            rows,
            ..Run::default()
        }
    }

    fn bar(text: &str) -> Bar {
        let bars = Definitions::messages().bars;
        bars.into_iter().find(|bar| bar.text.contains(text)).expect(text)
    }

    #[test]
    fn steady_rows_decide_by_mean_and_by_the_least() {
        let rows = vec![
            row("a", "derived", 1.0, 4.0, 60.0, 1.0),
            row("b", "derived", 1.0, 0.9, 60.0, 1.0),
            row("c", "derived", 1.0, 0.1, 60.0, 1.5),
        ];
        let run = run(rows);
        let mean = verdict(&run, &bar("mean"), Memory::User);
        assert_eq!((mean.passes, mean.rows), (Some(true), [2, 1]));
        assert!((mean.all.expect("rows") - 0.36_f64.cbrt()).abs() < 1e-9);
        assert!((mean.value.expect("rows") - 3.6_f64.sqrt()).abs() < 1e-9);
        let least = verdict(&run, &bar("least row"), Memory::User);
        assert_eq!(least.passes, Some(false));
        assert_eq!(least.short, [("b".to_owned(), 0.9)]);
        assert_eq!(verdict(&run, &bar("mean"), Memory::Alloc).passes, None);
        let text = text(&run, &Definitions::messages().bars);
        assert!(text.contains("least row, user: rows that fall short\n  b "), "{text}");
    }

    #[test]
    fn ties_are_no_losses_and_far_rows_do_not_decide_near_bars() {
        let near = run(vec![row("contig-8B", "small", 1.0, 0.98, 60.0, 1.0)]);
        assert_eq!(verdict(&near, &bar("near"), Memory::User).passes, Some(true));
        let mut large = row("halo-256", "halo", 1.0, 0.7, 60.0, 1.0);
        assert_eq!(
            verdict(&run(vec![large.clone()]), &bar("halo of doubles"), Memory::User).passes,
            Some(false)
        );
        large.touched = 16 << 20;
        assert_eq!(
            verdict(&run(vec![large]), &bar("halo of doubles"), Memory::User).passes,
            Some(true)
        );
        let far = run(vec![row("contig-8B", "small", 1.0, 0.5, 230.0, 1.0)]);
        let none = verdict(&far, &bar("near"), Memory::User);
        assert_eq!((none.passes, none.rows), (None, [0, 1]));
    }

    #[test]
    fn a_message_is_held_against_its_own_pack() {
        let run = run(vec![row("xface", "face", 1.0, 0.1, 60.0, 1.0)]);
        let face = verdict(&run, &bar("single pack"), Memory::User);
        assert_eq!(face.passes, Some(true));
        assert!((face.value.expect("a row") - 1.1).abs() < 1e-9);
    }
}
