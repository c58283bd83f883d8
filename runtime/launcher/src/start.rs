//! Bringing the ranks to life: segment, descriptors, processes, all let go at once.
//!
//! After `args.rs`, `program.rs` and `placement.rs`; `watch.rs` takes over what it returns.
//! The steps are numbered in `runtime/src/shm/README.md`.
//!
//! Invariants: every child waits at a gate until all children exist and are recorded; a failure
//! half-way leaves no child behind; of our descriptors none reaches a rank but 0, 1, 2, the segment
//! and its own control socket (those that we were started with go on to all ranks).

use std::collections::BTreeMap;
use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::Ordering;

use typepack::shm::attach;
use typepack::shm::segment::{JobFlags, Segment};
use typepack::shm::topology::CpuInfo;
use typepack::sys::process::{self, Child, Command, CpuSet, Descriptors};
use typepack::sys::signal::SignalSet;
use typepack::sys::{channel, stream};

use crate::args::Job;
use crate::claims::Claimed;
use crate::forward::{Outputs, Source, Stream};
use crate::input::Input;
use crate::placement::Core;

/// One rank as the launcher holds it.
#[derive(Debug)]
pub struct Rank {
    /// The process we started: the rank itself, or a wrapper around it.
    pub child: Child,
    /// Our end of its control socket.
    pub control: OwnedFd,
    /// Our copy of its end, by which the kernel's death signal is switched off at an orderly end.
    pub lifeline: OwnedFd,
    /// Its standard output and error.
    pub streams: [Source; 2],
}

/// A job whose ranks run.
#[derive(Debug)]
pub struct Started {
    /// The shared memory.
    pub segment: Segment,
    /// The ranks.
    pub ranks: Vec<Rank>,
    /// Where a child tells that it could not execute the program; ends when all have.
    pub report: OwnedFd,
    /// The way of standard input to rank 0.
    pub input: Input,
}

/// What [`start`] needs to know besides the job.
#[derive(Debug)]
pub struct Setting<'a> {
    /// File to execute.
    pub program: &'a Path,
    /// The machine.
    pub table: &'a [CpuInfo],
    /// The core of each rank, if they are bound.
    pub placed: Option<&'a [Core]>,
    /// What the ranks are told.
    pub flags: JobFlags,
    /// Signals that were blocked when we were started.
    pub signals: SignalSet,
    /// The limit on descriptors when we were started.
    pub descriptors: rustix::process::Rlimit,
}

/// A call that failed, as a sentence.
fn failed(what: &str) -> impl Fn(io::Error) -> String + '_ {
    move |error| match error.raw_os_error() {
        Some(libc::EMFILE) => format!(
            "{what}: {error}; each rank needs 5 descriptors, raise the limit with ulimit -n"
        ),
        _ => format!("{what}: {error}"),
    }
}

/// Starts all ranks of `job`.
///
/// # Errors
///
/// One sentence; no child is left.
pub fn start(job: &Job, setting: &Setting<'_>) -> Result<Started, String> {
    // 1. Memory.
    let launcher = process::own_id().unsigned_abs();
    let segment = Segment::create(job.ranks, setting.table, setting.flags, launcher)
        .map_err(|error| error.to_string())?;

    // 2. The gate, the report, and standard input.
    let pipes = failed("cannot make a pipe");
    let (gate, gate_writer) = stream::pipe().map_err(&pipes)?;
    let (report, report_writer) = stream::pipe().map_err(&pipes)?;
    stream::set_nonblocking(report.as_fd()).map_err(&pipes)?;
    let (stdin, stdin_writer) = stream::pipe().map_err(&pipes)?;
    let input = Input::new(stdin_writer).map_err(failed("cannot read standard input"))?;
    let null =
        OwnedFd::from(std::fs::File::open("/dev/null").map_err(failed("cannot open /dev/null"))?);

    // 3. Children, all held at the gate.
    let mut ranks = Vec::with_capacity(job.ranks);
    let shared = Shared {
        job,
        setting,
        segment: &segment,
        gate: gate.as_fd(),
        gate_writer: gate_writer.as_fd(),
        report: report_writer.as_fd(),
    };
    for rank in 0..job.ranks {
        let stdin = if rank == 0 { stdin.as_fd() } else { null.as_fd() };
        match shared.start_rank(rank, stdin) {
            Ok(started) => ranks.push(started),
            Err(message) => {
                abandon(&ranks);
                return Err(format!("cannot start rank {rank} of {}: {message}", job.ranks));
            }
        }
    }

    // 4. Open the gate: everything about every child is written down.
    drop((gate, report_writer, stdin, null));
    let passes = vec![0_u8; job.ranks];
    let mut passed = 0;
    while passed < passes.len() {
        // A blocking write to a pipe with room, or one whose readers take what is in it.
        match stream::write(gate_writer.as_fd(), &passes[passed..]) {
            Ok(stream::Transfer::Moved(n)) => passed += n,
            Ok(_) => break, // No reader is left: every child has been killed already.
            Err(error) => {
                abandon(&ranks);
                return Err(format!("cannot let the ranks go: {error}"));
            }
        }
    }
    Ok(Started { segment, ranks, report, input })
}

/// Kills and reaps children that have not passed the gate.
fn abandon(ranks: &[Rank]) {
    for rank in ranks {
        // Best effort on the way out; the closed gate ends them as well.
        let _ = process::signal_process(rank.child.pidfd(), libc::SIGKILL);
    }
    for rank in ranks {
        while matches!(rank.child.reap(), Ok(None)) {
            std::thread::yield_now();
        }
    }
}

/// What is the same for all ranks.
struct Shared<'a> {
    job: &'a Job,
    setting: &'a Setting<'a>,
    segment: &'a Segment,
    gate: BorrowedFd<'a>,
    gate_writer: BorrowedFd<'a>,
    report: BorrowedFd<'a>,
}

impl Shared<'_> {
    fn start_rank(&self, rank: usize, stdin: BorrowedFd<'_>) -> Result<Rank, String> {
        let (control, lifeline) =
            channel::pair().map_err(failed("cannot make a control socket"))?;
        let (out, out_writer) = stream::pipe().map_err(failed("cannot make a pipe"))?;
        let (err, err_writer) = stream::pipe().map_err(failed("cannot make a pipe"))?;
        let core = self.setting.placed.map(|cores| &cores[rank]);
        let command = Command {
            path: c_string(self.setting.program.as_os_str())?,
            arguments: std::iter::once(&self.job.program)
                .chain(&self.job.arguments)
                .map(|argument| c_string(argument))
                .collect::<Result<_, _>>()?,
            environment: self.environment(rank, lifeline.as_raw_fd())?,
            cpus: core.map(|core| CpuSet::new(&core.cpus)),
            signals: self.setting.signals,
            descriptors: self.setting.descriptors,
        };
        let fds = Descriptors {
            stdio: [stdin, out_writer.as_fd(), err_writer.as_fd()],
            kept: [self.segment.fd(), lifeline.as_fd()],
            gate: self.gate,
            gate_writer: self.gate_writer,
            report: self.report,
        };
        // Both numbers are small: ranks are limited by the layout, CPUs by the table.
        let child = process::spawn(&command, rank as u32, fds).map_err(|e| e.to_string())?;
        let slot = self.segment.slot(rank);
        let pid = child.pid().as_raw_nonzero().get();
        slot.group.store(pid.unsigned_abs(), Ordering::Release);
        if let Some(core) = core {
            slot.bound_cpu.store(core.cpus[0] as u32 + 1, Ordering::Relaxed);
        }
        let label = self.job.label.then(|| format!("[{rank}] "));
        let streams = channel::arm(lifeline.as_fd(), -pid).and_then(|()| {
            Ok([
                Source::new(out, Stream::Out, label.clone())?,
                Source::new(err, Stream::Err, label)?,
            ])
        });
        match streams {
            Ok(streams) => Ok(Rank { child, control, lifeline, streams }),
            Err(error) => {
                let _ = process::signal_process(child.pidfd(), libc::SIGKILL);
                Err(error.to_string())
            }
        }
    }

    /// Our environment with the names that tell a rank who it is.
    fn environment(&self, rank: usize, control: i32) -> Result<Vec<CString>, String> {
        let mut variables: BTreeMap<OsString, OsString> = env::vars_os().collect();
        let size = self.job.ranks;
        let job_fd = format!("{},{control}", self.segment.fd().as_raw_fd());
        for (name, value) in [
            (attach::JOB_FD, job_fd),
            (attach::RANK, rank.to_string()),
            (attach::SIZE, size.to_string()),
            // One machine: local is global.
            (attach::LOCAL_RANK, rank.to_string()),
            (attach::MPI_LOCAL_RANK, rank.to_string()),
            (attach::MPI_LOCAL_SIZE, size.to_string()),
        ] {
            variables.insert(name.into(), value.into());
        }
        variables
            .into_iter()
            .map(|(mut name, value)| {
                name.push("=");
                name.push(value);
                c_string(&name)
            })
            .collect()
    }
}

fn c_string(text: &OsStr) -> Result<CString, String> {
    CString::new(text.as_bytes())
        .map_err(|_| format!("'{}' has a zero byte in it", text.to_string_lossy()))
}

/// What the ranks are told about the job.
pub fn flags(ranks: usize, table: &[CpuInfo], claimed: &Claimed, outputs: &Outputs) -> JobFlags {
    let allowed = table.iter().filter(|cpu| cpu.allowed).count();
    // The standard library also counts what a container's quota leaves of the CPUs.
    let usable = std::thread::available_parallelism().map_or(usize::MAX, usize::from);
    JobFlags {
        // Pushed off its cores by another job's ranks, a rank that spins takes time from both.
        oversubscribed: ranks > allowed.min(usable) || claimed.crowded && claimed.cores.is_none(),
        stdout_terminal: outputs.is_terminal(Stream::Out),
        stderr_terminal: outputs.is_terminal(Stream::Err),
    }
}
