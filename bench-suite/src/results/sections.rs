//! Writes the part of the page about one record: how the record was made, and a section for each of its
//! tables.

use super::{Source, counted, packing, ranks, ratio, table};
use crate::competitor::{HAND, HAND_C, TYPEPACK};
use crate::files::report::FILES;
use crate::guidelines::{self, Guideline};
use crate::measure::STEADY;
use crate::message::definition::Memory;
use crate::message::report::{JOBS, MESSAGES, Run, Subject, us};
use crate::message::summary as message_summary;
use crate::plot::DDTBENCH;
use crate::record::{PEERS, Table};
use crate::regret;
use crate::storm::USES;
use crate::suite::{Suite, SuiteRow};
use crate::suite_report::STORM;
use crate::summary::{self, REGRET, TIE, Value};
use std::fmt::Write;

/// The keys of the comment lines in a record of the current version, in their order.
const FACTS: [&str; 8] =
    ["date", "cpu", "kernel", "rustc", "commit", "command", "load before", "load after"];
/// The name that the table of guidelines has in records.
const GUIDELINES: &str = "guidelines";
/// The name that the table of `typepack-bench commit` has in records.
pub(super) const COMMIT: &str = "commit";

/// Returns the part of the page about the record `source`. `folder` is the path of the records relative to
/// the page.
pub(super) fn text(source: &Source, folder: &str) -> String {
    let mut out = format!("\n### Record {}\n\n", source.name);
    for fact in FACTS {
        let value = source.record.fact(fact).unwrap_or("not in the record");
        let _ = writeln!(out, "- {fact}: {value}");
    }
    let _ = write!(out, "- files: [{0}.csv]({folder}/{0}.csv)", source.name);
    match &source.summary {
        Some(_) => {
            let _ = writeln!(out, ", [{0}.txt]({folder}/{0}.txt)", source.name);
        }
        None => out.push_str("\n- The record has no text file.\n"),
    }
    notes(source, &mut out);
    for picture in &source.pictures {
        let _ = writeln!(out, "\n![{picture}]({folder}/{}/{picture}.svg)", source.name);
    }
    let has = |name: &str| source.record.table(name).is_some();
    let missing: Vec<&str> = [STORM, regret::NAME].into_iter().filter(|name| !has(name)).collect();
    if has(PEERS) && !missing.is_empty() {
        let _ = writeln!(out, "\nTables of `peers` that the record lacks: {}.", missing.join(", "));
    }
    for table in &source.record.tables {
        match table.name.as_str() {
            PEERS => packing(source, PEERS, "Packing and unpacking: reference layouts", &mut out),
            DDTBENCH => packing(source, DDTBENCH, "Packing and unpacking: DDTBench", &mut out),
            GUIDELINES => guidelines(table, &mut out),
            MESSAGES => messages(source, Subject::Messages, &mut out),
            COMMIT => commit(table, &mut out),
            FILES => super::files::text(source, &mut out),
            // `packing` and `messages` include these tables in their own sections.
            STORM | regret::NAME | JOBS => {}
            name if name == Subject::OneSided.table() => {
                messages(source, Subject::OneSided, &mut out);
            }
            name if name == Subject::Interpose.table() => {
                messages(source, Subject::Interpose, &mut out);
            }
            name if name == Subject::Collectives.table() => {
                messages(source, Subject::Collectives, &mut out);
            }
            name => {
                let rows = counted(table.lines().count(), "row");
                let _ = writeln!(
                    out,
                    "\n#### {name}\n\nThis page has no form for this table of {rows}."
                );
            }
        }
    }
    out
}

/// Adds what is only in the text file of the record: versions, builds of hand loops, layouts that were
/// left out, and faults.
fn notes(source: &Source, out: &mut String) {
    let Some(summary) = &source.summary else { return };
    let mut known: Vec<String> = Vec::new();
    let libraries: Vec<&str> = source
        .record
        .tables
        .iter()
        .flat_map(|table| table.lines().map(|line| line.text("library")).collect::<Vec<_>>())
        .filter(|name| !name.is_empty())
        .collect();
    let mut list = None;
    for line in summary.lines() {
        let version = line.split_once(": ").is_some_and(|(name, _)| libraries.contains(&name));
        let words = if line.starts_with("peer ") || line.starts_with("loops of ") || version {
            Some(line.split_whitespace().collect::<Vec<_>>().join(" "))
        } else if line == "Left out" || line == "Faults" {
            list = Some(if line == "Faults" { "fault" } else { "left out" });
            None
        } else if line.starts_with("  ") {
            list.map(|list| format!("{list}: {}", line.trim()))
        } else {
            list = None;
            None
        };
        known.extend(words.filter(|words| !known.contains(words)).into_iter().collect::<Vec<_>>());
    }
    known.iter().for_each(|line| out.push_str(&format!("- {line}\n")));
}

/// Formats a bandwidth. `value` is in 10^9 bytes per second.
fn speed(value: f64) -> String {
    match value {
        small if small < 1.0 => format!("{small:.2}"),
        middle if middle < 100.0 => format!("{middle:.1}"),
        large => format!("{large:.0}"),
    }
}

fn packing(source: &Source, name: &str, title: &str, out: &mut String) {
    let (Some(suite), Some(own)) =
        (packing::suite(&source.record, name), source.record.table(name))
    else {
        return;
    };
    let _ = writeln!(out, "\n#### {title}\n");
    let missing: Vec<&str> = [TYPEPACK, "interpreter", "leaf", "jit", HAND, HAND_C, "memcpy"]
        .into_iter()
        .filter(|name| !own.competitors().contains(name))
        .collect();
    if !missing.is_empty() {
        let _ = writeln!(out, "Columns that the record lacks: {}.\n", missing.join(", "));
    }
    bars(&suite, out);
    let unsteady = suite.rows.iter().filter(|row| !row.is_steady(&suite.peers)).count();
    let _ = writeln!(
        out,
        "\n{unsteady} of {} {} unsteady. {}\n",
        counted(suite.rows.len(), "row"),
        if unsteady == 1 { "is" } else { "are" },
        counts(suite.rows.iter().filter_map(|row| row.against_peer(&suite.peers)))
    );
    storm(&suite, out);
    regret(&suite, out);
    rows(&suite, out);
}

/// Returns a sentence with the numbers of wins, ties and losses against the best peer, for the steady rows
/// and for all rows.
fn counts(ratios: impl Iterator<Item = (f64, bool)> + Clone) -> String {
    let of = |steady_only: bool| {
        let [mut wins, mut ties, mut losses] = [0; 3];
        for (ratio, _) in ratios.clone().filter(|(_, steady)| *steady || !steady_only) {
            match ratio {
                ratio if ratio < TIE => losses += 1,
                ratio if ratio <= 1.0 / TIE => ties += 1,
                _ => wins += 1,
            }
        }
        format!("{} ({wins} faster, {ties} within 3 %, {losses} slower)", wins + ties + losses)
    };
    format!("Against the best peer: steady rows {}, all rows {}.", of(true), of(false))
}

/// Formats the limit of a bar.
pub(super) fn limit(bar: f64, at_most: bool) -> String {
    if !at_most && bar == 0.0 {
        return "no limit".to_owned();
    }
    format!("{} {bar}", if at_most { "at most" } else { "at least" })
}

fn verdict(passes: Option<bool>) -> &'static str {
    match passes {
        Some(true) => "reached",
        Some(false) => "**missed**",
        None => "not decided",
    }
}

/// Formats the value of some rows, together with the number of these rows. The value is bold if it misses
/// its bar.
pub(super) fn value(value: Option<f64>, rows: usize, misses: bool) -> String {
    match value {
        Some(value) if misses => format!("**{value:.2}** of {rows}"),
        Some(value) => format!("{value:.2} of {rows}"),
        None => "no steady row".to_owned(),
    }
}

fn bars(suite: &Suite, out: &mut String) {
    let rows = summary::verdicts(suite).into_iter().map(|bar| {
        let at_most = bar.value == Value::Nanoseconds;
        let mut cells =
            vec![bar.text.to_owned(), limit(bar.bar, at_most), limit(bar.goal, at_most)];
        if bar.rows[1] == 0 {
            cells.extend(["no such row", "", "not measured"].map(str::to_owned));
        } else {
            cells.push(value(bar.steady, bar.rows[0], bar.passes == Some(false)));
            cells.push(value(bar.all, bar.rows[1], false));
            cells.push(verdict(bar.passes).to_owned());
        }
        cells
    });
    let columns = ["bar", "required", "goal", "steady rows", "all rows", "verdict"];
    out.push_str(&table(&columns, &rows.collect::<Vec<_>>()));
}

fn storm(suite: &Suite, out: &mut String) {
    if suite.storm.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "A new type every {USES} uses, all costs included, microseconds per use. The bar: no slower than \
         any peer.\n"
    );
    let mut columns = vec!["type".to_owned(), ">typepack".to_owned()];
    columns.extend(suite.peers.iter().map(|peer| format!(">{peer}")));
    columns.extend(["best peer / typepack", "verdict"].map(str::to_owned));
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let rows = suite.storm.iter().map(|row| {
        let us = |name: &str| match row.figure(name) {
            Some(figure) => {
                let mark = if figure.spread > STEADY { "~" } else { "" };
                format!("{:.3}{mark}", figure.ns / (1000.0 * USES as f64))
            }
            None => "-".to_owned(),
        };
        let mut cells = vec![row.layout.clone(), us(TYPEPACK)];
        cells.extend(suite.peers.iter().map(|peer| us(peer)));
        let (shown, passes) = match summary::storm_ratio(row, &suite.peers) {
            Some((Some(value), steady)) => {
                let mark = if steady { "" } else { "~" };
                (format!("{}{mark}", ratio(value)), steady.then_some(value >= TIE))
            }
            _ => ("-".to_owned(), None),
        };
        cells.extend([shown, verdict(passes).to_owned()]);
        cells
    });
    out.push_str(&table(&columns, &rows.collect::<Vec<_>>()));
    out.push('\n');
}

fn regret(suite: &Suite, out: &mut String) {
    if suite.regret.is_empty() {
        return;
    }
    let steady: Vec<_> = suite.regret.iter().filter(|row| row.steady).collect();
    let above = |row: &&regret::Regret| row.ratio() > REGRET;
    let missed = steady.iter().filter(|row| above(row)).count();
    let all = suite.regret.iter().filter(above).count();
    let worst = suite.regret.iter().map(regret::Regret::ratio).fold(0.0, f64::max);
    let passes = (!steady.is_empty()).then_some(missed == 0);
    let _ = writeln!(
        out,
        "Regret of the compilation policy over 1 to 1000 uses, bar: no row above {REGRET}. Steady rows \
         above the bar: {missed} of {}. All rows above the bar: {all} of {}, at most {worst:.2}. Verdict: \
         {}.\n",
        steady.len(),
        suite.regret.len(),
        verdict(passes)
    );
}

fn rows(suite: &Suite, out: &mut String) {
    let mut columns = vec!["layout", ">bytes", "interpreter", "typepack", "best hand loop"];
    columns.extend(["best peer", "typepack / peer", "typepack / hand"]);
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut done: Vec<(&str, u64)> = Vec::new();
    for row in &suite.rows {
        let place = (row.row.layout.as_str(), row.row.size);
        if done.contains(&place) {
            continue;
        }
        done.push(place);
        let both = ["pack", "unpack"].map(|direction| {
            let same = |r: &&SuiteRow| {
                (r.row.layout.as_str(), r.row.size) == place && r.row.direction == direction
            };
            suite.rows.iter().find(same)
        });
        let cell = |of: &dyn Fn(&SuiteRow) -> Option<(String, bool)>| {
            let one = |row: Option<&SuiteRow>| match row.and_then(of) {
                Some((shown, true)) => shown,
                Some((shown, false)) => format!("{shown}~"),
                None => "-".to_owned(),
            };
            let [pack, unpack] = both;
            format!("{} / {}", one(pack), one(unpack))
        };
        let figure =
            |f: Option<&crate::measure::Figure>| f.map(|f| (speed(f.gb_per_s), f.spread <= STEADY));
        let peers = &suite.peers;
        lines.push(vec![
            row.row.layout.clone(),
            row.row.bytes.to_string(),
            cell(&|row| figure(row.row.figure("interpreter"))),
            cell(&|row| figure(row.row.figure(TYPEPACK))),
            cell(&|row| figure(row.best_hand())),
            cell(&|row| figure(row.best_peer(peers))),
            cell(&|row| row.against_peer(peers).map(|(value, steady)| (ratio(value), steady))),
            cell(&|row| row.against_hand().map(|(value, steady)| (ratio(value), steady))),
        ]);
    }
    let _ = writeln!(out, "GB/s of packed data, pack / unpack:\n\n{}", table(&columns, &lines));
}

fn guidelines(table_of: &Table, out: &mut String) {
    let _ = writeln!(
        out,
        "\n#### Performance guidelines over random types\n\nA check is a violation if its ratio is above \
         {} in {} measurements out of {}.\n",
        guidelines::MOST,
        guidelines::TRIES,
        guidelines::TRIES
    );
    let rows = Guideline::ALL.into_iter().filter_map(|guideline| {
        let own: Vec<_> =
            table_of.lines().filter(|line| line.text("guideline") == guideline.name()).collect();
        let most = own.iter().filter_map(|line| line.number("ratio")).fold(0.0, f64::max);
        let violated = own.iter().filter(|line| line.text("violated") == "true").count();
        let shown = if violated == 0 { "0".to_owned() } else { format!("**{violated}**") };
        let cells =
            [guideline.text().to_owned(), own.len().to_string(), shown, format!("{most:.2}")];
        (!own.is_empty()).then(|| cells.to_vec())
    });
    let columns = ["guideline", ">checks", ">violations", ">greatest ratio"];
    out.push_str(&table(&columns, &rows.collect::<Vec<_>>()));
}

fn messages(source: &Source, subject: Subject, out: &mut String) {
    let Some(run) = ranks::run(&source.record, subject) else { return };
    for run in run.parts() {
        messages_of(&run, out);
    }
}

/// Writes the section of a run, or of one part of a run of the interposer.
fn messages_of(run: &Run, out: &mut String) {
    let (subject, host) = (run.subject, run.host().unwrap_or_default());
    let title = match subject {
        Subject::Messages => "Messages and halos".to_owned(),
        Subject::Collectives => "Collectives".to_owned(),
        Subject::OneSided => "One-sided communication".to_owned(),
        Subject::Interpose => format!("The interposer in front of {host}"),
    };
    let _ = writeln!(out, "\n#### {title}\n");
    let definitions = ranks::definitions(subject);
    let mut rows = Vec::new();
    for bar in definitions.bars.iter().filter(|bar| bar.host.as_deref().is_none_or(|h| h == host)) {
        for memory in [Memory::User, Memory::Alloc] {
            if subject == Subject::Interpose && memory == Memory::Alloc {
                continue;
            }
            let verdict_of = message_summary::verdict(run, bar, memory);
            let [decide, others] = verdict_of.rows;
            let index = usize::from(memory == Memory::Alloc);
            let at_most = bar.value.is_at_most();
            let mut cells = vec![bar.text.clone(), from(memory).to_owned()];
            cells.extend([limit(bar.bar[index], at_most), limit(bar.goal[index], at_most)]);
            if decide + others == 0 {
                cells.extend(["no such row", "", "not measured"].map(str::to_owned));
            } else {
                let misses = verdict_of.passes == Some(false);
                cells.push(value(verdict_of.value, decide, misses));
                cells.push(value(verdict_of.all, decide + others, false));
                cells.push(verdict(verdict_of.passes).to_owned());
            }
            rows.push(cells);
        }
    }
    let columns = ["bar", "memory", "required", "goal", "steady rows", "all rows", "verdict"];
    out.push_str(&table(&columns, &rows));
    let ratios = run.rows.iter().filter_map(|row| row.against(run.own(), &run.peers));
    let unsteady = ratios.clone().filter(|(_, steady)| !steady).count();
    let far = run.rows.iter().filter(|row| row.distance().name() != "near").count();
    let _ = writeln!(
        out,
        "\n{unsteady} of {} {} unsteady; {far} had CPUs that were not near. {}\n",
        counted(run.rows.len(), "row"),
        if unsteady == 1 { "is" } else { "are" },
        counts(ratios)
    );
    message_rows(run, subject, out);
    jobs(run, out);
}

/// Returns the words that the page uses for a kind of memory.
pub(super) fn from(memory: Memory) -> &'static str {
    match memory {
        Memory::User => "user",
        Memory::Alloc => "`MPI_Alloc_mem`",
    }
}

fn message_rows(run: &Run, subject: Subject, out: &mut String) {
    let mut columns =
        vec!["row", "memory", "CPUs"].into_iter().map(str::to_owned).collect::<Vec<_>>();
    columns.extend(run.libraries.iter().map(|name| format!(">{name}")));
    let ratio_of = match subject {
        Subject::Interpose => ">host alone / with typepack",
        _ => ">best peer / typepack",
    };
    columns.push(ratio_of.to_owned());
    let packs = run.rows.iter().any(|row| row.over_pack(run.own()).is_some());
    if packs {
        columns.push(">message / `MPI_Pack`".to_owned());
    }
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let rows = run.rows.iter().map(|row| {
        let mut cells =
            vec![row.name.clone(), row.memory.to_owned(), row.distance().name().to_owned()];
        cells.extend(run.libraries.iter().map(|name| match row.figure(name) {
            Some(figure) if figure.spread > STEADY => format!("{}~", us(figure.ns)),
            Some(figure) => us(figure.ns),
            None => "failed".to_owned(),
        }));
        cells.push(match row.against(run.own(), &run.peers) {
            Some((value, true)) => ratio(value),
            Some((value, false)) => format!("{}~", ratio(value)),
            None => "-".to_owned(),
        });
        if packs {
            let over = row.over_pack(run.own());
            cells.push(over.map_or_else(String::new, |(value, _)| format!("{value:.2}")));
        }
        cells
    });
    let _ = writeln!(
        out,
        "Microseconds: {}.\n\n{}",
        subject.times(),
        table(&columns, &rows.collect::<Vec<_>>())
    );
}

fn jobs(run: &Run, out: &mut String) {
    if run.jobs.is_empty() {
        return;
    }
    let mut columns = vec!["job".to_owned(), "unit".to_owned()];
    columns.extend(run.libraries.iter().map(|name| format!(">{name}")));
    columns.extend(["required", "goal", "verdict"].map(str::to_owned));
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let rows = run.jobs.iter().map(|job| {
        let mut cells = vec![job.what.text.to_owned(), job.what.unit.to_owned()];
        cells.extend(run.libraries.iter().map(|name| {
            job.value(name).map_or_else(|| "failed".to_owned(), |value| format!("{value:.2}"))
        }));
        cells.extend([limit(job.what.bar, true), limit(job.what.goal, true)]);
        let passes = job.value(run.own()).map(|value| value <= job.what.bar);
        cells.push(verdict(passes).to_owned());
        cells
    });
    let _ = writeln!(
        out,
        "Whole jobs. Their rows have no mark of steadiness.\n\n{}",
        table(&columns, &rows.collect::<Vec<_>>())
    );
}

fn commit(table_of: &Table, out: &mut String) {
    let lines: Vec<_> = table_of.lines().collect();
    let unsteady = lines.iter().filter(|line| line.text("steady") != "true").count();
    let missed = |steady_only: bool| {
        let own = lines.iter().filter(|line| line.text("steady") == "true" || !steady_only);
        let own: Vec<_> = own.collect();
        let missed = own.iter().filter(|line| line.text("pass") != "true").count();
        format!("{missed} of {}", own.len())
    };
    let _ = writeln!(
        out,
        "\n#### Creation, first use, positions, pieces, conversion\n\n{unsteady} of {} unsteady. Bars \
         missed by steady rows: {}, by all rows: {}.\n",
        counted(lines.len(), "row"),
        missed(true),
        missed(false)
    );
    let rows = lines.iter().map(|line| {
        let mark = if line.text("steady") == "true" { "" } else { "~" };
        let measured: f64 = line.text("value").parse().unwrap_or(f64::NAN);
        let verdict = if line.text("pass") == "true" { "reached" } else { "**missed**" };
        let cells = [line.text("what"), &format!("{measured:.2}{mark}"), line.text("unit")];
        let more = [line.text("bar"), verdict];
        cells.into_iter().chain(more).map(str::to_owned).collect()
    });
    let columns = ["what", ">measured", "unit", "required", "verdict"];
    out.push_str(&table(&columns, &rows.collect::<Vec<_>>()));
}
