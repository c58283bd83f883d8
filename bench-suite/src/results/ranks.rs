//! Turns the tables of `typepack-bench pingpong`, `collectives`, `one-sided` and `interpose` in a record back into the
//! [`Run`] from which the command printed them.
//!
//! `sections.rs` and `overview.rs` pass the run to `message/summary.rs`, which compares it with the bars.

use crate::message::definition::{Definitions, Memory};
use crate::message::library::TYPEPACK;
use crate::message::report::{JOBS, Run, Subject};
use crate::message::suite::{Figure, Measured};
use crate::message::whole::{ROWS, Whole};
use crate::record::{Line, Record};

/// Reads the table of `subject`. For messages, also reads the table of jobs.
///
/// Returns `None` if the record has no table of `subject`. Each line of the table states the figure of one
/// library in one row. Leaves out a line if its kind of memory, its time, its spread or the sizes of its
/// row cannot be read.
pub(super) fn run(record: &Record, subject: Subject) -> Option<Run> {
    let table = record.table(subject.table())?;
    let mut run = Run { subject, ..Run::default() };
    for line in table.lines() {
        add(&mut run, &line);
    }
    // `Run` requires that typepack is the first library.
    run.libraries.sort_by_key(|name| name != TYPEPACK);
    run.peers = run.libraries.iter().filter(|name| *name != TYPEPACK).cloned().collect();
    if subject == Subject::Messages {
        run.jobs = jobs(record);
    }
    Some(run)
}

fn add(run: &mut Run, line: &Line<'_>) -> Option<()> {
    let memory = [Memory::User, Memory::Alloc].map(Memory::name);
    let memory = memory.into_iter().find(|name| *name == line.text("memory"))?;
    let (name, library) = (line.text("row"), line.text("library"));
    let (ns, spread) = (line.number("ns")?, line.number("spread")?);
    if run.rows.last().is_none_or(|row| row.name != name || row.memory != memory) {
        run.rows.push(Measured {
            name: name.to_owned(),
            class: line.text("class").to_owned(),
            memory,
            bytes: line.text("bytes").parse().ok()?,
            touched: line.text("touched").parse().ok()?,
            probe: line.number("line_ns").unwrap_or(f64::NAN),
            probe_spread: line.number("line_spread").unwrap_or(1.0),
            figures: Vec::new(),
        });
    }
    let figure = Figure { library: library.to_owned(), ns, spread, pack: line.number("pack_ns") };
    run.rows.last_mut()?.figures.push(figure);
    if !run.libraries.iter().any(|known| known == library) {
        run.libraries.push(library.to_owned());
    }
    Some(())
}

fn jobs(record: &Record) -> Vec<Whole> {
    let Some(table) = record.table(JOBS) else { return Vec::new() };
    let values = |name: &str| -> Vec<(String, f64)> {
        let own = table.lines().filter(|line| line.text("job") == name);
        own.filter_map(|line| Some((line.text("library").to_owned(), line.number("value")?)))
            .collect()
    };
    let jobs = ROWS.into_iter().map(|what| Whole { what, values: values(what.name) });
    jobs.filter(|job| !job.values.is_empty()).collect()
}

/// Returns the built-in definitions of `subject`: its rows, and its bars, which are the ratios that
/// typepack must reach or must not exceed.
pub(super) fn definitions(subject: Subject) -> Definitions {
    match subject {
        Subject::Messages => Definitions::messages(),
        Subject::Collectives => Definitions::collectives(),
        Subject::OneSided => Definitions::one_sided(),
        Subject::Interpose => Definitions::interpose(),
    }
}
