//! Measures whole jobs: how long a job takes to start, to wait, to end, and to die.
//!
//! `command.rs` calls this file. `message/job.c` implements the modes of the program. Every library takes
//! its turn in every round. A job has a time limit; a job that fails adds a line to the faults.

use super::library::Library;
use super::session::{finish, wait};
use crate::measure::median;
use crate::split;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The time limit of a job.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time limit for the end of a job with a killed rank; the bar is far below it.
const DEATH: Duration = Duration::from_secs(20);
/// The time between the start of a job and the death of its rank.
const LIFE: Duration = Duration::from_millis(20);

/// A row with its bar.
#[derive(Clone, Copy, Debug)]
pub struct What {
    /// The short name.
    pub name: &'static str,
    /// A description for people.
    pub text: &'static str,
    /// The unit of value, bar and goal.
    pub unit: &'static str,
    /// The largest allowed value.
    pub bar: f64,
    /// The value that the project would like to reach.
    pub goal: f64,
    how: How,
    /// The number of repetitions: of typepack, of a peer, and of each library in a quick run.
    times: [usize; 3],
}

#[derive(Clone, Copy, Debug)]
enum How {
    /// The time of `MPI_Init` without a launcher, in nanoseconds. The program prints the number.
    Singleton,
    /// The time from the launcher's start to its end, for a number of ranks and a mode of the program.
    Wall(usize, &'static str),
    /// The share of one CPU that a waiting rank uses, in per cent of that CPU. The program prints the
    /// number.
    Idle,
    /// The time from SIGKILL of a rank to the launcher's end.
    Kill,
}

/// All rows.
pub const ROWS: [What; 5] = [
    What {
        name: "job-idle",
        text: "rank that waits in MPI_Recv for 1 s, share of a CPU",
        unit: "%",
        bar: 2.0,
        goal: 0.5,
        how: How::Idle,
        times: [3, 1, 1],
    },
    What {
        name: "job-singleton",
        text: "MPI_Init without a launcher",
        unit: "ms",
        bar: 5.0,
        goal: 2.0,
        how: How::Singleton,
        times: [15, 5, 5],
    },
    What {
        name: "job-empty",
        text: "2 ranks: init, finalize, from outside",
        unit: "ms",
        bar: 60.0,
        goal: 25.0,
        how: How::Wall(2, "empty"),
        times: [15, 5, 5],
    },
    What {
        name: "job-64",
        text: "64 ranks on these CPUs: start, barrier, ring, end",
        unit: "ms",
        bar: 10_000.0,
        goal: 2000.0,
        how: How::Wall(64, "ring"),
        times: [3, 1, 1],
    },
    What {
        name: "job-kill",
        text: "end of a job after kill -9 of a rank, 99th percentile",
        unit: "ms",
        bar: 500.0,
        goal: 50.0,
        how: How::Kill,
        times: [100, 5, 5],
    },
];

/// A measured row.
#[derive(Clone, Debug)]
pub struct Whole {
    /// The row.
    pub what: What,
    /// The values of the libraries that did not fail.
    pub values: Vec<(String, f64)>,
}

impl Whole {
    /// Returns the value of a library.
    pub fn value(&self, library: &str) -> Option<f64> {
        self.values.iter().find(|(name, _)| name == library).map(|(_, value)| *value)
    }
}

/// A library with its program.
pub type Program<'a> = (&'a Library, &'a PathBuf);

/// Measures one row. Adds a line with the names of row and library to `faults` for each library that
/// fails.
pub fn measure(
    what: What,
    programs: &[Program<'_>],
    quick: bool,
    faults: &mut Vec<String>,
) -> Whole {
    let times = |library: &Library| match (quick, library.is_peer()) {
        (true, _) => what.times[2],
        (false, false) => what.times[0],
        (false, true) => what.times[1],
    };
    let mut all: Vec<Option<Vec<f64>>> = programs.iter().map(|_| Some(Vec::new())).collect();
    let rounds = programs.iter().map(|(library, _)| times(library)).max().unwrap_or(0);
    for round in 0..rounds {
        for ((library, program), values) in programs.iter().zip(&mut all) {
            let Some(list) = values else { continue };
            if round >= times(library) {
                continue;
            }
            match once(what.how, library, program) {
                Ok(value) => list.push(value),
                Err(line) => {
                    faults.push(format!("{}: {}: {line}", what.name, library.name));
                    *values = None;
                }
            }
        }
    }
    let values = programs.iter().zip(all).filter_map(|((library, _), values)| {
        let mut values = values.filter(|values| !values.is_empty())?;
        let value = match what.how {
            How::Kill => percentile(&mut values, 0.99),
            _ => median(&mut values),
        };
        Some((library.name.clone(), value))
    });
    Whole { what, values: values.collect() }
}

/// Returns the least value such that the share `part` of all values does not exceed it.
fn percentile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = (part * values.len() as f64).ceil() as usize;
    values[place.clamp(1, values.len()) - 1]
}

fn once(how: How, library: &Library, program: &Path) -> Result<f64, String> {
    match how {
        How::Singleton => {
            let mut command = library.alone(program);
            command.arg("singleton");
            said(command).map(|ns| ns / 1e6)
        }
        How::Idle => {
            let mut command = library.launcher(2, true);
            command.arg(program).args(["idle", "1"]);
            said(command)
        }
        How::Wall(ranks, mode) => {
            let mut command = library.launcher(ranks, false);
            command.arg(program).arg(mode);
            let start = Instant::now();
            let mut job = Job::start(command)?;
            job.ended(PATIENCE)?;
            Ok(1000.0 * start.elapsed().as_secs_f64())
        }
        How::Kill => kill(library, program),
    }
}

/// Runs a program and returns the number that it prints after an `@`.
fn said(command: Command) -> Result<f64, String> {
    let mut job = Job::start(command)?;
    let line = job.line(PATIENCE)?;
    job.ended(PATIENCE)?;
    line.parse::<f64>().map_err(|_| format!("said {line}"))
}

/// Returns the milliseconds from the death of rank 1 to the end of the launcher.
fn kill(library: &Library, program: &Path) -> Result<f64, String> {
    let mut command = library.launcher(2, true);
    command.arg(program).arg("victim");
    let mut job = Job::start(command)?;
    let mut victim = None;
    for _ in 0..2 {
        let line = job.line(PATIENCE)?;
        let (rank, process) = split::once(&line, b' ').ok_or(format!("said {line}"))?;
        if rank == "1" {
            victim = process.parse().ok().and_then(Pid::from_raw);
        }
    }
    let victim = victim.ok_or("rank 1 said nothing")?;
    std::thread::sleep(LIFE);
    let start = Instant::now();
    kill_process(victim, Signal::KILL).map_err(|e| format!("kill: {e}"))?;
    match wait(&mut job.child, DEATH) {
        Some(status) if status.success() => Err("a job with a killed rank succeeded".to_owned()),
        Some(_) => Ok(1000.0 * start.elapsed().as_secs_f64()),
        None => Err(format!("did not end in {} s after kill -9", DEATH.as_secs())),
    }
}

/// A launcher with its job; dropping it ends the job.
struct Job {
    child: Child,
    lines: Receiver<String>,
}

impl Job {
    fn start(mut command: Command) -> Result<Self, String> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|e| format!("does not start: {e}"))?;
        let (sender, lines) = channel();
        if let Some(out) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut out = BufReader::new(out);
                let mut line = String::new();
                // The MPI libraries print too. Only lines that begin with the mark belong to the
                // benchmark.
                while out.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                    let ours = line.trim_end().strip_prefix('@');
                    if ours.is_some_and(|ours| sender.send(ours.to_owned()).is_err()) {
                        break;
                    }
                    line.clear();
                }
                // Reads the rest, so that the program never waits for a reader.
                let _ = out.read_to_end(&mut Vec::new());
            });
        }
        Ok(Self { child, lines })
    }

    fn line(&mut self, patience: Duration) -> Result<String, String> {
        self.lines.recv_timeout(patience).map_err(|_| match wait(&mut self.child, LIFE) {
            Some(status) => format!("crashed: {status}"),
            None => format!("gave no answer in {} s", patience.as_secs()),
        })
    }

    fn ended(&mut self, patience: Duration) -> Result<(), String> {
        match wait(&mut self.child, patience) {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(format!("crashed: {status}")),
            None => Err(format!("did not end in {} s", patience.as_secs())),
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        finish(&mut self.child);
    }
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn percentiles() {
        let mut values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&mut values, 0.99), 99.0);
        assert_eq!(percentile(&mut values, 0.5), 50.0);
        assert_eq!(percentile(&mut [3.0, 1.0], 0.99), 3.0);
        assert_eq!(percentile(&mut [3.0], 0.0), 3.0);
    }
}
