//! `mpiexec`: starts a program as the ranks of a job, watches over them, tells how it ended.
//!
//! The flow: `args.rs` (what is asked for), `program.rs` (which file), `topology.rs` and
//! `placement.rs` and `claims.rs` (where), `start.rs` (processes), `watch.rs` (until all are gone, with
//! `forward.rs` and `lines.rs` for output, `input.rs` for input, `ending.rs` for how it ends).
//! README.md beside `src` tells what a user sees.
//!
//! Invariant: one thread. The ranks' death signal is tied to the thread that forked them, and a
//! process with one thread may fork without fear of another's locks.

mod args;
mod claims;
mod ending;
mod forward;
mod input;
mod lines;
mod placement;
mod program;
mod start;
mod topology;
mod watch;

use std::env;
use std::os::fd::AsFd;
use std::process::ExitCode;

use typepack::sys::poll::{self, PollFd, PollFlags};
use typepack::sys::{process, signal};

use crate::args::{Bind, Request};
use crate::claims::Claimed;
use crate::forward::{Outputs, Trouble};

/// Exit code for a command line that cannot be understood.
const USAGE: u8 = 2;

/// Signals that reach the launcher as data.
const SIGNALS: [i32; 8] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGQUIT,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// A job that does not start: the line to print and the exit code.
struct Refusal(String, u8);

fn main() -> ExitCode {
    match run() {
        Ok(code) => code.into(),
        Err(Refusal(message, code)) => {
            let mut outputs = Outputs::standard();
            outputs.tell(&message);
            print(&mut outputs);
            code.into()
        }
    }
}

/// Writes out what is queued where there is no job to look after.
fn print(outputs: &mut Outputs) {
    while !outputs.is_empty() {
        if let Err(Trouble::Closed | Trouble::Failed(_)) = outputs.flush() {
            return;
        }
        let mut fds: Vec<_> =
            outputs.waiting().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT)).collect();
        if !fds.is_empty() && poll::wait(&mut fds, None).is_err() {
            return;
        }
    }
}

fn run() -> Result<u8, Refusal> {
    // 1. What is asked for.
    let usage = |message| Refusal(message, USAGE);
    let bind_default = env::var_os("TYPEPACK_BIND");
    let bind_default = bind_default.as_ref().map(|value| value.to_string_lossy());
    let request = args::parse(env::args_os().skip(1), bind_default.as_deref()).map_err(usage)?;
    let job = match request {
        Request::Run(job) => job,
        Request::Help | Request::Version => {
            let mut outputs = Outputs::standard();
            outputs.show(&match request {
                Request::Help => args::HELP.to_owned(),
                _ => format!("mpiexec (typepack) {}\n", env!("CARGO_PKG_VERSION")),
            });
            print(&mut outputs);
            return Ok(0);
        }
    };

    // 2. Which file.
    let program = program::find(&job.program, env::var_os("PATH"))
        .map_err(|unusable| Refusal(unusable.message, unusable.exit_code))?;

    // 3. Signals become data before there is a rank they could be about. Whoever started us with
    //    SIGHUP ignored (nohup) wants it ignored; SIGCHLD ignored would hide how ranks end.
    signal::restore(libc::SIGCHLD);
    let mut wanted = SIGNALS.to_vec();
    if !signal::is_ignored(libc::SIGHUP) {
        wanted.push(libc::SIGHUP);
    }
    let wanted = signal::SignalSet::new(&wanted);
    let system = |error: std::io::Error| Refusal(format!("cannot receive signals: {error}"), 1);
    let before = signal::block(&wanted).map_err(system)?;
    let signals = signal::descriptor(&wanted).map_err(system)?;
    let descriptors = process::raise_descriptor_limit();

    // 4. Where.
    let mut outputs = Outputs::standard();
    let allowed = process::allowed_cpus().ok();
    let table = topology::discover(allowed.as_ref());
    let claimed = match job.bind {
        Bind::Core => claims::place_and_claim(&table, job.ranks),
        Bind::None => Claimed::default(),
    };
    if job.report_bindings {
        report_bindings(&job, &claimed, placement::cores(&table).len(), &mut outputs);
    }

    // 5. Start, and watch until the end.
    let setting = start::Setting {
        program: &program,
        table: &table,
        placed: claimed.cores.as_deref(),
        flags: start::flags(job.ranks, &table, &claimed, &outputs),
        signals: before,
        descriptors,
    };
    let started = start::start(&job, &setting).map_err(|message| Refusal(message, 1))?;
    let shown = job.program.to_string_lossy();
    Ok(watch::Job::new(started, &mut outputs, signals.as_fd(), &shown).run())
}

fn report_bindings(job: &args::Job, claimed: &Claimed, cores: usize, outputs: &mut Outputs) {
    let Some(placed) = &claimed.cores else {
        outputs.tell(&match job.bind {
            Bind::None => "ranks are not bound: --bind-to none".to_owned(),
            Bind::Core if claimed.crowded => format!(
                "ranks are not bound: {} ranks, and other jobs hold some of the {cores} cores",
                job.ranks
            ),
            Bind::Core => format!("ranks are not bound: {} ranks on {cores} cores", job.ranks),
        });
        return;
    };
    for (rank, core) in placed.iter().enumerate() {
        let cpus: Vec<String> = core.cpus.iter().map(usize::to_string).collect();
        let mut line = format!("rank {rank} bound to cpu {}", cpus.join(","));
        for (name, index) in [
            ("core", core.info.core),
            ("L2", core.info.l2),
            ("L3", core.info.l3),
            ("NUMA node", core.info.numa),
            ("package", core.info.package),
        ] {
            if let Some(index) = index {
                line.push_str(&format!(", {name} {index}"));
            }
        }
        outputs.tell(&line);
    }
}
