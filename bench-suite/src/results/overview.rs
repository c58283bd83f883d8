//! Writes the head of the page, and the end of each machine's part. The head has a list of the records and
//! a summary of all bars. The end of a part lists, for each kind of measurement, the records of the
//! machine that hold it.

use super::sections::{COMMIT, from, limit, value};
use super::{Source, counted, packing, ranks, table};
use crate::competitor::TYPEPACK;
use crate::face;
use crate::files::{self, report::FILES};
use crate::measure::STEADY;
use crate::message::definition::{Memory, Value as Way};
use crate::message::report::{HOSTS, INTERPOSE, JOBS, MESSAGES, Run, Subject};
use crate::message::summary::verdict;
use crate::message::whole::ROWS;
use crate::plot::DDTBENCH;
use crate::record::{PEERS, Record};
use crate::regret::Regret;
use crate::storm;
use crate::suite::Suite;
use crate::summary::{REGRET, TIE, Value, storm_ratio, verdicts};

/// The first lines of the page, up to the list of records.
const HEAD: &str = "# Results

<!-- Generated from bench-suite/record/ by `typepack-bench results`. Do not edit. -->

This page holds the figures of the records in the tree, machine by machine, losses included. Guidelines and the
regret of the compilation policy stand as sums; the records have their rows. A test fails when the
page does not match the records. A record belongs to its commit: it says nothing about later ones.

- A ratio to a peer is typepack's speed divided by the speed of the fastest peer of that row: below 1 typepack is
  slower. Ratios below 0.97 are **bold**. The best hand loop is the faster one of a loop in Rust and a loop in C.
- A figure is the median of interleaved rounds. A `~` marks a figure or a ratio whose rounds differ by more than
  1.25x: it is unsteady. Only steady rows decide about a bar. Each summary stands twice, over the steady rows and over
  all rows, each with its number of rows: `3.22 of 103` is 3.22 over 103 rows.
- A figure of files is the best of interleaved rounds; it is unsteady if the second-best round is more than 1.25x
  slower.
- A bar is what the project requires. Values that miss their bar are **bold**. The bars are those of the tree, not those
  of the day of the record. Means are geometric. In a row of messages that touches more than 8 MiB of cache lines,
  ratios from 0.67 on count as ties; in other rows of messages, ratios from 0.97 on.
- [The README of bench-suite](README.md) says how each figure is measured.
";

/// The kinds of measurements that a record can hold. For each kind: a description, the command that
/// measures it, and the name of its table in records.
const KINDS: [(&str, &str, &str); 12] = [
    ("packing and unpacking, reference layouts", "peers", PEERS),
    ("packing and unpacking, DDTBench", "peers --set ddtbench", DDTBENCH),
    ("a new type every ten uses", "peers", "storm"),
    ("regret of the compilation policy", "peers", "regret"),
    ("performance guidelines over random types", "guidelines", "guidelines"),
    ("messages and halos", "messages", MESSAGES),
    ("whole jobs", "messages", JOBS),
    ("collectives", "collectives", "collectives"),
    ("one-sided communication", "one-sided", "one-sided"),
    ("the interposer in front of other MPIs", "interpose", INTERPOSE),
    ("files", "io", FILES),
    ("creation, first use, positions, pieces, external32, fused copies", "commit", COMMIT),
];

/// Returns the head of the page.
pub(super) fn text(sources: &[Source], machines: &[&str]) -> String {
    debug_assert!(HEAD.contains(&format!("{STEADY}x")) && HEAD.contains(&format!("{TIE}")));
    let records = sources.iter().map(|source| {
        let record = &source.record;
        let kinds = KINDS.iter().filter(|(_, _, name)| record.table(name).is_some());
        let kinds: Vec<String> = kinds
            .map(|(text, _, name)| {
                let rows = record.table(name).map_or(0, |table| table.lines().count());
                format!("{text} ({})", counted(rows, "line"))
            })
            .collect();
        vec![
            format!("[{0}](#record-{1})", source.name, source.name.to_lowercase()),
            source.machine().to_owned(),
            record.fact("commit").unwrap_or("not in the record").to_owned(),
            kinds.join("; "),
        ]
    });
    let records = table(&["record", "machine", "commit", "holds"], &records.collect::<Vec<_>>());
    let mut columns = vec!["what".to_owned(), "required".to_owned()];
    for machine in machines {
        columns.extend([format!("{machine}: steady rows"), "all rows".to_owned()]);
    }
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let machines: Vec<Machine> = machines.iter().map(|name| Machine::new(sources, name)).collect();
    let lines = lines(&machines);
    format!(
        "{HEAD}\n## Records\n\n{records}\n## All bars at a glance\n\nOf each machine the newest record that \
         holds the rows counts.\n\n{}",
        table(&columns, &lines)
    )
}

/// For each kind of measurement, the newest table that a record of one machine holds.
#[derive(Default)]
struct Machine {
    packing: Option<Suite>,
    ddtbench: Option<Suite>,
    messages: Option<Run>,
    collectives: Option<Run>,
    one_sided: Option<Run>,
    interpose: Option<Run>,
    files: Option<files::report::Run>,
    guidelines: Option<[usize; 2]>,
    commit: Option<[[usize; 2]; 2]>,
}

impl Machine {
    fn new(sources: &[Source], name: &str) -> Self {
        let mut own = Self::default();
        for source in sources.iter().filter(|source| source.machine() == name) {
            let record = &source.record;
            own.packing = packing::suite(record, PEERS).or(own.packing);
            own.ddtbench = packing::suite(record, DDTBENCH).or(own.ddtbench);
            own.messages = ranks::run(record, Subject::Messages).or(own.messages);
            own.collectives = ranks::run(record, Subject::Collectives).or(own.collectives);
            own.one_sided = ranks::run(record, Subject::OneSided).or(own.one_sided);
            own.interpose = ranks::run(record, Subject::Interpose).or(own.interpose);
            own.files = files::report::read(record).or(own.files);
            own.guidelines = guidelines(record).or(own.guidelines);
            own.commit = commit(record).or(own.commit);
        }
        own
    }
}

/// Returns the number of violations and the number of checks of the guidelines.
fn guidelines(record: &Record) -> Option<[usize; 2]> {
    let table = record.table("guidelines")?;
    let violated = table.lines().filter(|line| line.text("violated") == "true").count();
    Some([violated, table.lines().count()])
}

/// Returns two pairs for the table of `typepack-bench commit`: one for the steady rows, then one for all
/// rows. Each pair is the number of rows that miss their bar and the total number of rows.
fn commit(record: &Record) -> Option<[[usize; 2]; 2]> {
    let table = record.table(COMMIT)?;
    Some([true, false].map(|steady_only| {
        let rows = table.lines().filter(|line| !steady_only || line.text("steady") == "true");
        let missed = rows.clone().filter(|line| line.text("pass") != "true").count();
        [missed, rows.count()]
    }))
}

/// The two cells that a machine has in one line of the summary: one for the steady rows, and one for all
/// rows.
type Cells = [String; 2];

fn not_measured_cells() -> Cells {
    ["not measured".to_owned(), "not measured".to_owned()]
}

fn no_such_row() -> Cells {
    ["no such row".to_owned(), "no such row".to_owned()]
}

/// Returns one line of the summary. `of` returns the cells of a machine; `None` if the machine has no such
/// measurement.
fn line(
    what: String,
    required: String,
    machines: &[Machine],
    of: impl Fn(&Machine) -> Option<Cells>,
) -> Vec<String> {
    let cells = machines.iter().flat_map(|own| of(own).unwrap_or_else(not_measured_cells));
    [what, required].into_iter().chain(cells).collect()
}

fn lines(machines: &[Machine]) -> Vec<Vec<String>> {
    let mut lines = Vec::new();
    type Of = fn(&Machine) -> Option<&Suite>;
    let sets: [(&str, Of); 2] =
        [("packing", |own| own.packing.as_ref()), ("DDTBench", |own| own.ddtbench.as_ref())];
    for (set, suite) in sets {
        for (place, bar) in verdicts(&Suite::default()).iter().enumerate() {
            let required = limit(bar.bar, bar.value == Value::Nanoseconds);
            lines.push(line(format!("{set}, {}", bar.text), required, machines, |own| {
                let suite = suite(own)?;
                let bars = verdicts(suite);
                let bar = bars.get(place)?;
                let [steady, all] = bar.rows;
                let cells = [
                    value(bar.steady, steady, bar.passes == Some(false)),
                    value(bar.all, all, false),
                ];
                Some(if all > 0 { cells } else { no_such_row() })
            }));
        }
    }
    for (layout, _) in storm::LAYOUTS {
        let what =
            format!("a new type every {} uses, {layout}: ratio to the best peer", storm::USES);
        lines.push(line(what, limit(TIE, false), machines, |own| {
            let suite = own.packing.as_ref()?;
            let row = suite.storm.iter().find(|row| row.layout == layout)?;
            let (ratio, steady) = storm_ratio(row, &suite.peers)?;
            let ratio = ratio?;
            let decides = steady.then_some(ratio);
            Some([value(decides, 1, ratio < TIE), value(Some(ratio), 1, false)])
        }));
    }
    let what =
        format!("compilation policy: rows that cost more than {REGRET} of the better choice");
    lines.push(line(what, limit(0.0, true), machines, |own| {
        let suite = own.packing.as_ref().filter(|suite| !suite.regret.is_empty())?;
        let steady: Vec<&Regret> = suite.regret.iter().filter(|row| row.steady).collect();
        let above = |rows: &[&Regret]| rows.iter().filter(|row| row.ratio() > REGRET).count();
        let all: Vec<&Regret> = suite.regret.iter().collect();
        Some([number(above(&steady), steady.len(), true), number(above(&all), all.len(), false)])
    }));
    lines.push(line("guidelines: violations".to_owned(), limit(0.0, true), machines, |own| {
        let [violated, checks] = own.guidelines?;
        // A check is a violation only if several steady measurements agree. So the number of violations is
        // the same for steady rows and for all rows.
        Some([number(violated, checks, true), number(violated, checks, false)])
    }));
    for subject in [Subject::Messages, Subject::Collectives, Subject::OneSided] {
        messages(subject, None, machines, &mut lines);
    }
    for host in HOSTS {
        messages(Subject::Interpose, Some(host), machines, &mut lines);
    }
    lines.extend(files_lines(machines));
    for what in ROWS {
        let text = format!("jobs: {}, {}", what.text, what.unit);
        lines.push(line(text, limit(what.bar, true), machines, |own| {
            let run = own.messages.as_ref()?;
            let job = run.jobs.iter().find(|job| job.what.name == what.name)?;
            let measured = job.value(run.own())?;
            let shown = format!("{measured:.2}");
            let marked = if measured > what.bar { format!("**{shown}**") } else { shown };
            Some(["no mark of steadiness".to_owned(), marked])
        }));
    }
    lines.push(line(
        "`commit`: bars that are missed".to_owned(),
        limit(0.0, true),
        machines,
        |own| {
            let [[missed, steady], [all_missed, all]] = own.commit?;
            Some([number(missed, steady, true), number(all_missed, all, false)])
        },
    ));
    let what = "`MPI_Pack` and `MPI_Unpack` over the Rust call, ns".to_owned();
    lines.push(line(what, limit(face::BAR, true), machines, |_| None));
    lines
}

/// Returns a text such as `2 of 30`: of `rows` rows, `faults` miss a bar or violate a guideline. The first
/// number is bold if it is not 0 and `decides` is true, that is, if it decides whether a bar passes. If
/// `rows` is 0, the text is `no steady row`.
fn number(faults: usize, rows: usize, decides: bool) -> String {
    if rows == 0 {
        "no steady row".to_owned()
    } else if faults > 0 && decides {
        format!("**{faults}** of {rows}")
    } else {
        format!("{faults} of {rows}")
    }
}

/// Adds a line for each bar of `subject`. For the interposer, `host` is the host to which the bars apply.
fn messages(
    subject: Subject,
    host: Option<&str>,
    machines: &[Machine],
    lines: &mut Vec<Vec<String>>,
) {
    let bars = ranks::definitions(subject).bars;
    for bar in bars.iter().filter(|bar| bar.host.is_none() || bar.host.as_deref() == host) {
        for memory in [Memory::User, Memory::Alloc] {
            // Collectives and the interposer are measured with buffers in user memory only.
            let user_only = matches!(subject, Subject::Collectives | Subject::Interpose);
            if user_only && memory == Memory::Alloc {
                continue;
            }
            let required =
                limit(bar.bar[usize::from(memory == Memory::Alloc)], bar.value.is_at_most());
            let worst = bar.value == Way::Least && !bar.text.contains("least row");
            let what = format!(
                "{} from {} memory: {}{}",
                host.map_or(subject.rows().to_owned(), |host| format!("interposer, {host}")),
                from(memory),
                bar.text,
                if worst { ", worst row" } else { "" }
            );
            lines.push(line(what, required, machines, |own| {
                let run = match subject {
                    Subject::Messages => own.messages.as_ref(),
                    Subject::Collectives => own.collectives.as_ref(),
                    Subject::OneSided => own.one_sided.as_ref(),
                    Subject::Interpose => own.interpose.as_ref(),
                }?;
                let part = run.parts().into_iter().find(|part| part.host() == host)?;
                let found = verdict(&part, bar, memory);
                let [decide, others] = found.rows;
                let cells = [
                    value(found.value, decide, found.passes == Some(false)),
                    value(found.all, decide + others, false),
                ];
                Some(if decide + others > 0 { cells } else { no_such_row() })
            }));
        }
    }
}

fn files_lines(machines: &[Machine]) -> Vec<Vec<String>> {
    let bars = files::definition::Definitions::built_in().bars;
    let line_of = |bar: &files::definition::Bar| {
        let required = limit(bar.bar, bar.against.is_at_most());
        line(format!("files: {}, worst row", bar.text), required, machines, |own| {
            let [steady, all, _] = super::files::cells(own.files.as_ref()?, bar)?;
            Some([steady, all])
        })
    };
    bars.iter().map(line_of).collect()
}

/// Returns a table that states, for each kind of measurement, which records of one machine hold it, or
/// that no record does.
pub(super) fn not_measured(own: &[&Source]) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (text, command, name) in KINDS {
        let with = own.iter().filter(|source| source.record.table(name).is_some());
        let with: Vec<&str> = with.map(|source| source.name.as_str()).collect();
        let found = if with.is_empty() {
            "**not measured** in a record".to_owned()
        } else {
            with.join(", ")
        };
        rows.push(vec![text.to_owned(), format!("`typepack-bench {command}`"), found]);
    }
    let face =
        "**not measured** in a record (the command writes none; see Figures without a record)";
    let what = format!("what the C functions cost over the Rust calls ({TYPEPACK} against itself)");
    rows.push(vec![what, "`typepack-bench pack`".to_owned(), face.to_owned()]);
    format!(
        "\n### Measurements of this machine\n\n{}",
        table(&["measurement", "command", "records"], &rows)
    )
}
