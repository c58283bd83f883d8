//! Measures whole jobs: how long a job takes to start and to end, how much CPU time a waiting rank uses,
//! and how long a job takes to end after one of its ranks has been killed.
//!
//! `command.rs` uses this file. `message/job.c` is the program of the jobs. In every round, each library
//! that has turns left takes one ([`What`] states the number of turns of a library). Each job has a time
//! limit. If a job fails, the run adds a line to its list of faults, and the library has no value in
//! the row.

use super::library::Library;
use super::session::{finish, wait};
use crate::row::median;
use crate::split;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long the command waits for a line from a job, or for the end of the job.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time within which a job must end after one of its ranks is killed; otherwise the measurement fails.
/// The bar, which is the time that the project requires, is far below this limit.
const DEATH: Duration = Duration::from_secs(20);
/// The time from the moment when all ranks run to the moment when one of them is killed.
const LIFE: Duration = Duration::from_millis(20);

/// A row about whole jobs, with its bar (the limit that the project requires).
#[derive(Clone, Copy, Debug)]
pub struct What {
    /// The short name of the row.
    pub name: &'static str,
    /// A human-readable description.
    pub text: &'static str,
    /// The unit of the value, the bar and the goal.
    pub unit: &'static str,
    /// The largest allowed value.
    pub bar: f64,
    /// The value that the project would like to reach.
    pub goal: f64,
    how: How,
    /// How many times the row is measured: for typepack, for a peer, and for any library in a quick run.
    times: [usize; 3],
}

#[derive(Clone, Copy, Debug)]
enum How {
    /// The time of `MPI_Init` in a process without a launcher. The process prints the time in nanoseconds.
    Singleton,
    /// The time from the start to the end of the launcher. The fields are the number of ranks of the job,
    /// and the argument that selects what the program does.
    Wall(usize, &'static str),
    /// The share of a CPU that a waiting rank uses, in percent. The rank prints the number.
    Idle,
    /// A number that a job of two ranks prints. The field is the argument that selects it.
    Printed(&'static str),
    /// A number that a job of one rank prints, which starts other ranks. The field is the argument that selects it.
    Alone(&'static str),
    /// The time of a message of so many bytes to a rank that was started later, over the time between two ranks that
    /// were started together.
    Apart(&'static str),
    /// The time from the SIGKILL of a rank to the end of the launcher.
    Kill,
}

/// All rows about whole jobs.
pub const ROWS: [What; 11] = [
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
        name: "partitions",
        text: "16 partitions of 64 KiB, all ready at once, 2 threads per rank",
        unit: "us",
        bar: 200.0,
        goal: 50.0,
        how: How::Printed("partitions"),
        times: [3, 3, 1],
    },
    What {
        name: "partitions-1M",
        text: "16 partitions of 64 KiB over one message of 1 MiB",
        unit: "x",
        bar: 1.15,
        goal: 1.0,
        how: How::Printed("partition-ratio"),
        times: [3, 3, 1],
    },
    What {
        name: "spawn-4",
        text: "start of 4 ranks to the first message of each",
        unit: "ms",
        bar: 20.0,
        goal: 10.0,
        how: How::Alone("spawn"),
        times: [5, 1, 1],
    },
    What {
        name: "spawn-connect",
        text: "connect and accept of two worlds, with a message there and back",
        unit: "ms",
        bar: 5.0,
        goal: 2.0,
        how: How::Alone("spawn-connect"),
        times: [5, 1, 1],
    },
    // The bar of the speed is 0.95.
    What {
        name: "spawn-8B",
        text: "time of 8 B to a rank that was started later, over that within a job",
        unit: "x",
        bar: 1.0 / 0.95,
        goal: 1.0,
        how: How::Apart("8"),
        times: [9, 3, 1],
    },
    What {
        name: "spawn-64K",
        text: "the same for 64 KiB",
        unit: "x",
        bar: 1.0 / 0.95,
        goal: 1.0,
        how: How::Apart("65536"),
        times: [9, 3, 1],
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

/// A measured row about whole jobs.
#[derive(Clone, Debug)]
pub struct Whole {
    /// The row.
    pub what: What,
    /// The names of the libraries that did not fail, each with its value.
    pub values: Vec<(String, f64)>,
}

impl Whole {
    /// Returns the value of the library with the name `library`.
    pub fn value(&self, library: &str) -> Option<f64> {
        self.values.iter().find(|(name, _)| name == library).map(|(_, value)| *value)
    }
}

/// A library and the path of the program that was compiled for it.
pub type Program<'a> = (&'a Library, &'a PathBuf);

/// Measures the row `what` for all libraries. For each library that fails, adds a line with the names of
/// the row and the library to `faults`.
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

/// Sorts `values` and returns a quantile: the least value such that at least the fraction `part` of all
/// values is not greater. With a `part` of 0.99, this is the 99th percentile.
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
        How::Printed(mode) => {
            let mut command = library.launcher(2, false);
            command.arg(program).arg(mode);
            said(command)
        }
        How::Alone(mode) => {
            let mut command = library.launcher(1, false);
            command.arg(program).arg(mode);
            said(command)
        }
        How::Apart(bytes) => {
            let time = |ranks, mode| {
                // Bound, so that both pairs of ranks have the same distance.
                let mut command = library.launcher(ranks, true);
                command.arg(program).args([mode, bytes]);
                said(command)
            };
            let (apart, within) = (time(1, "spawn-apart")?, time(2, "spawn-within")?);
            Ok(apart / within)
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

/// Runs `command` until it ends. Returns the number in the line that the program of the job prints with the
/// mark `@`.
fn said(command: Command) -> Result<f64, String> {
    let mut job = Job::start(command)?;
    let line = job.line(PATIENCE)?;
    job.ended(PATIENCE)?;
    line.parse::<f64>().map_err(|_| format!("printed {line:?} instead of a number"))
}

/// Starts a job of 2 ranks and kills rank 1. Returns the milliseconds from the SIGKILL to the end of the
/// launcher.
fn kill(library: &Library, program: &Path) -> Result<f64, String> {
    let mut command = library.launcher(2, true);
    command.arg(program).arg("victim");
    let mut job = Job::start(command)?;
    let mut victim = None;
    for _ in 0..2 {
        let line = job.line(PATIENCE)?;
        let (rank, process) = split::once(&line, b' ')
            .ok_or(format!("printed {line:?} instead of a rank and a process id"))?;
        if rank == "1" {
            victim = process.parse().ok().and_then(Pid::from_raw);
        }
    }
    let victim = victim.ok_or("rank 1 did not print its process id")?;
    std::thread::sleep(LIFE);
    let start = Instant::now();
    kill_process(victim, Signal::KILL).map_err(|e| format!("cannot kill rank 1: {e}"))?;
    match wait(&mut job.child, DEATH) {
        Some(status) if status.success() => {
            Err("the launcher returned exit code 0, although a rank was killed".to_owned())
        }
        Some(_) => Ok(1000.0 * start.elapsed().as_secs_f64()),
        None => Err(format!("did not end in {} s after kill -9", DEATH.as_secs())),
    }
}

/// A launcher with its job. When this value is dropped, the job ends.
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
                // The MPI libraries print lines of their own. The lines of the C program begin with the mark
                // `@`.
                while out.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                    let ours = line.trim_end().strip_prefix('@');
                    if ours.is_some_and(|ours| sender.send(ours.to_owned()).is_err()) {
                        break;
                    }
                    line.clear();
                }
                // Reads the rest of the output, so that the program never blocks in a write to a full
                // pipe.
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
