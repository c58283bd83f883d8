//! The table, the CSV and the summary of `typepack-bench regret messages` and `regret collectives`.
//!
//! `command.rs` fills in a [`Run`]; `../../regret/verdict.rs` judges the rows.

use super::candidate::Choices;
use crate::regret::report::{self, Compared, gains, values};
use crate::regret::verdict::{CHOICE, NONE, above, heading, lines};
use crate::row::Distance;
use std::fmt::Write;

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The choices that the run judges.
    pub choices: Choices,
    /// The rows.
    pub rows: Vec<Compared>,
    /// The version that the library reports, and remarks about the run, one line each.
    pub versions: Vec<String>,
    /// The faults, one line each.
    pub faults: Vec<String>,
}

/// Returns the human-readable table.
pub fn table(run: &Run) -> String {
    let what = match run.choices {
        Choices::Messages => "half of there and back, or one exchange of six faces",
        Choices::Collectives => "one call of all ranks",
    };
    report::table(&run.rows, &run.choices.names(), what)
}

/// Returns the summary: the verdicts over all rows and, if the CPUs were not equally far apart in all rows, for
/// each distance; the rows above the bar; and the faults.
pub fn summary(run: &Run) -> String {
    let what = match run.choices {
        Choices::Messages => "ways for messages",
        Choices::Collectives => "methods for collective calls",
    };
    let mut out = format!(
        "Regret of the free choice of {what}: its time over that of the best forced candidate \
         (steady rows decide)\n\n{}",
        heading()
    );
    let groups = [None, Some(Distance::Near), Some(Distance::Between), Some(Distance::Far)];
    let rows_of = |distance: Option<Distance>| {
        run.rows.iter().filter(move |row| distance.is_none_or(|wanted| row.distance() == wanted))
    };
    for distance in groups {
        let count = rows_of(distance).count();
        if distance.is_some() && (count == 0 || count == run.rows.len()) {
            continue;
        }
        let name = distance.map_or(String::new(), |distance| format!(", {}", distance.name()));
        let [steady, learning] = values(rows_of(distance));
        out.push_str(&lines(&format!("regret{name}"), &steady, CHOICE));
        out.push_str(&lines(&format!("learning included{name}"), &learning, NONE));
    }
    out.push_str(&gains(&run.rows));
    let judged = run.rows.iter().filter(|row| row.judged.is_some()).count();
    let distances = Distance::counts(run.rows.iter().map(Compared::distance));
    let _ = writeln!(out, "\n{judged} of {} rows judged. {distances}", run.rows.len());
    for line in &run.versions {
        let _ = writeln!(out, "{line}");
    }
    out.push_str(&above("regret", &values(run.rows.iter())[0], CHOICE));
    if !run.faults.is_empty() {
        out.push_str("\nFaults\n");
        run.faults.iter().for_each(|line| out.push_str(&format!("  {line}\n")));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Compared, Run, summary, table};
    use crate::regret::judge::{Tried, judge};
    use crate::regret::report::csv;

    fn row(name: &str, probe: f64, free: f64, candidates: &[(&str, f64)]) -> Compared {
        let tried = |name: &str, ns: f64| Tried {
            name: name.to_owned(),
            rounds: vec![ns; 4],
            whole: Some(2.0 * ns),
        };
        let free = tried("free", free);
        let candidates: Vec<Tried> = candidates.iter().map(|(name, ns)| tried(name, *ns)).collect();
        Compared {
            name: name.to_owned(),
            part: "alloc".to_owned(),
            bytes: 8192,
            line: Some([probe, 1.0]),
            possible: vec!["ring-vector".into(), "heap-vector".into()],
            judged: judge(&free, &candidates).ok(),
            without: vec![tried("off:messages", 1.5 * free.rounds[0])],
            free: Some(free),
            candidates,
            ..Compared::default()
        }
    }

    #[test]
    fn rows_show_all_candidates_and_the_summary_judges() {
        let both = |ring, heap| [("ring-vector", ring), ("heap-vector", heap)];
        let rows = vec![
            row("a", 60.0, 1010.0, &both(2000.0, 1000.0)),
            row("b", 200.0, 3000.0, &both(2000.0, 4000.0)),
            row("c", 200.0, 3000.0, &[("ring-vector", 1.0)]),
        ];
        let run = Run { rows, ..Run::default() };
        let shown = table(&run);
        let line = |name: &str| {
            let line = shown.lines().find(|l| l.starts_with(&format!("| {name} "))).expect(name);
            line.split('|').map(str::trim).filter(|c| !c.is_empty()).collect::<Vec<_>>()
        };
        assert_eq!(line("a")[..5], ["a", "alloc", "near", "60", "1.010"]);
        assert!(
            line("a").contains(&"2.000") && line("a").ends_with(&["heap-vector", "1.010", "1.010"])
        );
        assert!(line("b").ends_with(&["ring-vector", "1.500", "1.500"]));
        assert!(line("c").contains(&"failed") && line("c").ends_with(&["not judged"]));
        let text = summary(&run);
        let verdict = |title: &str| {
            let found = text.lines().find(|l| l.get(6..).is_some_and(|l| l.starts_with(title)));
            found.expect(title).split_whitespace().next().expect("a word").to_owned()
        };
        assert_eq!(verdict("regret, mean"), "MISS");
        assert_eq!(verdict("regret, greatest"), "MISS");
        assert_eq!(verdict("regret, near, mean"), "pass");
        assert_eq!(verdict("regret, far, greatest"), "MISS");
        assert_eq!(verdict("learning included, mean"), "-");
        assert!(text.contains("2 of 3 rows judged. CPUs near in 1 rows, far in 2, between in 0."));
        assert!(text.contains("regret: rows above 1.25\n  b alloc, ring-vector"), "{text}");
        assert_eq!(verdict("gain, messages, mean"), "-");
        assert!(
            text.contains("Mean gain below 1.05: none. The rows:\nmessages: a alloc 1.50,"),
            "{text}"
        );
        let csv = csv(&run.rows);
        assert_eq!(csv.lines().count(), 1 + 3 + 3 + 2 + 3);
        assert!(csv.contains("messages,1.5000,"), "{csv}");
        let fields = |line: &str| line.split(',').count();
        assert!(csv.lines().all(|line| fields(line) == 17), "{csv}");
        assert!(
            csv.contains(
                "b,alloc,8192,far,200.0,free,3000.0,3000.0,1.000,6000.0,ring-vector,1.5000"
            )
        );
    }

    #[test]
    fn no_rows_are_said_to_be_not_measured() {
        let text = summary(&Run::default());
        assert!(text.contains("not measured") && !text.contains("pass"), "{text}");
        assert!(text.contains("0 of 0 rows judged"), "{text}");
    }
}
