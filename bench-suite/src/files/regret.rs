//! `typepack-bench regret files`: typepack accesses a file in one of two ways, through a mapped window of the
//! file or by system calls. This file compares its free choice of the way with both ways, each of them forced.
//!
//! `command.rs` has the arguments, and `suite.rs` reads the answer to a turn. Every row has new jobs of one installed
//! typepack, which take turns: the free choice, the static order, `TYPEPACK_IO=mmap` and `pwrite`, and
//! `TYPEPACK_TUNE=off:files`. The time of a
//! turn is the mean of its accesses after the first one, so that the accesses in which the free choice tries the other
//! way count. `../regret/` computes regrets and verdicts.
//!
//! The command leaves out cold rows, the rows of the view of 10^9 pieces, and rows that write pieces of fewer than
//! `SHORTEST` bytes. For such writes, system calls take hundreds of times as long as the mapped window, and the
//! free choice does not try them either.

use super::definition::{Definition, Direction};
use super::suite::{Effort, parse};
use crate::message::library::Library;
use crate::message::session::{Session, UserMemory, cpus};
use crate::regret::judge::{Tried, judge};
use crate::regret::report::{Compared, FREE, STATIC, gains, table, values};
use crate::regret::verdict::{CHOICE, above, heading, lines};
use std::path::Path;
use std::rc::Rc;

/// The number of bytes from which the pieces of a row are long enough to write each with a system call.
const SHORTEST: u64 = 4096;

/// The free choice, the static order, the forced ways, and the free choice without its chooser: the name of the column,
/// and a variable of the job.
const WAYS: [(&str, Option<(&str, &str)>); 5] = [
    (FREE, None),
    (STATIC, Some(("TYPEPACK_TUNE", "off"))),
    ("mmap", Some(("TYPEPACK_IO", "mmap"))),
    ("pwrite", Some(("TYPEPACK_IO", "pwrite"))),
    ("off:files", Some(("TYPEPACK_TUNE", "off:files"))),
];

/// Returns true if `row` is measured. The head of this file names the rows that are left out.
pub fn is_judged(row: &Definition) -> bool {
    let long = row.pattern == "tiles"
        || row.pattern.starts_with("contiguous")
        || row.block.is_some_and(|block| block >= SHORTEST);
    !row.cold && row.pattern != "billion" && (long || row.direction == Direction::Read)
}

/// Measures `rows` on the file at `path` with jobs of `program`, which is compiled for `library`. Sockets and outputs
/// of the jobs are in `folder`. Calls `progress` with the number of the current row and the number of rows. Returns
/// the text for the terminal.
///
/// # Errors
///
/// Returns a one-line message if a job does not start, if an access of the library fails, or if there are too few
/// rounds.
pub fn run(
    rows: &[&Definition],
    (library, program, folder): (&Library, &Path, &Path),
    path: &Path,
    effort: &Effort,
    mut progress: impl FnMut(usize, usize),
) -> Result<String, String> {
    let memory = UserMemory::new(2)?;
    let mut compared: Vec<Compared> = Vec::new();
    for (place, row) in rows.iter().enumerate() {
        progress(place + 1, rows.len());
        let named = |line: String| format!("{}: {line}", row.name);
        let mut candidates =
            measure(row, (library, program, folder), path, effort, &memory).map_err(named)?;
        let (free, unmeasured) = (candidates.remove(0), Some(candidates.remove(0)));
        let without = candidates.split_off(2);
        let judged = Some(judge(&free, &candidates).map_err(named)?);
        let (name, free) = (row.name.clone(), Some(free));
        compared.push(Compared {
            name,
            free,
            unmeasured,
            candidates,
            without,
            judged,
            ..Compared::default()
        });
    }
    let names = WAYS.map(|(name, _)| name.to_owned());
    let values = &values(compared.iter())[0];
    let title = "choice of the way to a file";
    Ok(format!(
        "{}\n{}{}{}{}",
        table(&compared, &names[2..4], "one access, the mean of a turn"),
        heading(),
        lines(title, values, CHOICE),
        gains(&compared),
        above(title, values, CHOICE)
    ))
}

fn measure(
    row: &Definition,
    (library, program, folder): (&Library, &Path, &Path),
    path: &Path,
    effort: &Effort,
    memory: &Rc<UserMemory>,
) -> Result<Vec<Tried>, String> {
    let mut sessions = Vec::new();
    for (name, forced) in WAYS {
        let mut library = library.clone();
        library.name = name.to_owned();
        library.environment.extend(forced.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let session =
            Session::start(library, program.to_owned(), folder, &cpus(), memory, effort.limit);
        sessions.push(session?);
    }
    let command = row.command(&path.display().to_string(), effort.bytes);
    for session in &mut sessions {
        session.row(&command)?;
    }
    let mut rounds = vec![Vec::new(); sessions.len()];
    let line = format!("turn mpi {} {}", effort.milliseconds, effort.limit.as_millis());
    for _ in 0..effort.rounds {
        for (session, times) in sessions.iter_mut().zip(&mut rounds) {
            let answer = session.line(&line)?;
            let turn =
                parse(&answer).ok_or_else(|| format!("gave the unexpected answer {answer:?}"))?;
            times.push(turn.mean);
        }
    }
    let names = WAYS.iter().map(|(name, _)| (*name).to_owned());
    Ok(names.zip(rounds).map(|(name, rounds)| Tried { name, rounds, whole: None }).collect())
}

#[cfg(test)]
mod tests {
    use super::is_judged;
    use crate::files::definition::Definitions;

    #[test]
    fn rows_with_two_candidates_are_judged() {
        let all = Definitions::built_in();
        let is = |name: &str| is_judged(all.rows.iter().find(|row| row.name == name).expect(name));
        for name in ["3B-read-collective", "4K-write-independent", "contiguous-4K-write-collective"]
        {
            assert!(is(name), "{name}");
        }
        for name in ["8B-write-collective", "billion-read-independent", "cold-4K-read-collective"] {
            assert!(!is(name), "{name}");
        }
    }
}
