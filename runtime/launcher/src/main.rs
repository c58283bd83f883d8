//! `mpiexec`: starts programs as the ranks of a job, watches them, and reports how the job ended.
//!
//! The steps of a job: `args/` parses the command line, `program.rs` and `resolve.rs` find the files to execute,
//! `topology.rs`, `placement.rs` and `core_reservation.rs` choose the cores, `start.rs` starts the
//! processes, and `watch/` runs until all ranks have ended. `watch/` uses `forward.rs` and `lines.rs`
//! for output, `input.rs` for input, `waits.rs` to tell what the ranks wait for, and `ending.rs` to decide how the
//! job ends. README.md next to `src`
//! describes the behaviour for users.
//!
//! `behind.rs` is another beginning: ranks that mpiexec has not started get the process that watches them.
//!
//! Invariant: mpiexec has only one thread. The kernel kills the ranks when the thread that forked them ends,
//! so this thread must live as long as mpiexec. Also, no other thread can hold a lock while mpiexec forks.

mod about;
mod args;
mod behind;
mod core_reservation;
mod ending;
mod forward;
mod input;
mod lines;
mod placement;
mod program;
mod resolve;
mod start;
mod topology;
mod waits;
mod watch;

use std::env;
use std::io::IsTerminal as _;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::OnceLock;

use typepack_job::shm::topology::{CpuInfo, Level};
use typepack_job::sys::poll::{self, PollFd, PollFlags};
use typepack_job::sys::{machine, process, signal};

use crate::args::{Bind, Request, Surroundings};
use crate::core_reservation::Reservation;
use crate::forward::{Outputs, Trouble};
use crate::placement::Plan;

/// The exit code if the command line is wrong.
const USAGE: u8 = 2;

/// The signals that mpiexec always blocks and reads from a signalfd. [`run`] adds SIGHUP, unless mpiexec was
/// started with SIGHUP ignored.
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

/// The reason why a job does not start: the line to print, and the exit code.
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

/// Writes all queued output when no job is running. Waits for the reader if necessary.
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
    if behind::is_wanted() {
        return behind::run().map_err(|message| Refusal(message, USAGE));
    }
    // 1. Parse the command line.
    let usage = |message| Refusal(message, USAGE);
    let host = machine::host_name();
    let host = String::from_utf8_lossy(&host);
    let variable = |name| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let (bind, timeout) = (variable("TYPEPACK_BIND"), variable("MPIEXEC_TIMEOUT"));
    let surroundings =
        Surroundings { bind: bind.as_deref(), timeout: timeout.as_deref(), host: &host, parts };
    let watchdog =
        waits::period(variable("TYPEPACK_WATCHDOG").as_deref(), std::io::stderr().is_terminal());
    let watchdog = watchdog.map_err(usage)?;
    let request = args::parse(env::args_os().skip(1), surroundings).map_err(usage)?;
    let mut job = match request {
        Request::Run(job) => job,
        Request::Help | Request::Version | Request::Info => {
            let mut outputs = Outputs::standard();
            outputs.show(&match request {
                Request::Help => args::options::help(),
                Request::Info => about::text(discover()),
                _ => about::version(),
            });
            print(&mut outputs);
            return Ok(0);
        }
    };

    // 2. Find the files to execute. Relative paths are relative to the directory in which the program will
    //    run.
    let ranks = job.ranks();
    let mut found = Vec::with_capacity(job.apps.len());
    for app in &mut job.apps {
        if let Some(directory) = &app.directory {
            app.directory = Some(working_directory(directory)?);
        }
        let refused = |unusable: program::Unusable| Refusal(unusable.message, unusable.exit_code);
        found.push(resolve::resolve(app, ranks == 1).map_err(refused)?);
    }

    // 3. Before the first rank exists, block the signals and make the descriptor from which to read them. If
    //    SIGHUP is ignored now (nohup), it stays ignored. SIGCHLD must not be ignored, because the kernel
    //    would then discard the exit codes of the ranks.
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

    // 4. Choose and reserve the cores.
    let mut outputs = Outputs::standard();
    if !job.ignored.is_empty() && !job.quiet && variable("TYPEPACK_QUIET").is_none_or(|v| v != "1")
    {
        let ignored = job.ignored.join(", ");
        outputs
            .tell(&format!("no effect here: {ignored} (-q or TYPEPACK_QUIET=1 hides this line)"));
    }
    let table = discover();
    let reserved = match &job.bind {
        &Bind::To(level) => {
            let plan = Plan { level, map: job.map, width: job.width };
            core_reservation::place_and_reserve(table, ranks, plan)
        }
        Bind::Listed(lists) => {
            let places = placement::listed(table, ranks, lists).map_err(|cpu| {
                let usable: Vec<usize> = (0..table.len()).filter(|&c| table[c].allowed).collect();
                usage(format!(
                    "--bind-to: CPU {cpu} is not usable (usable: {})",
                    about::list(&usable)
                ))
            })?;
            core_reservation::reserve_listed(table, places)
        }
        Bind::None => Reservation::default(),
    };
    if job.report_bindings {
        report_bindings(&job, &reserved, table, &mut outputs);
    }

    // 5. Start the ranks, and watch them until the job has ended.
    let library = about::library_folder();
    let machine = start::Machine {
        host: &host,
        library: library.as_deref(),
        table,
        signals: before,
        descriptors,
    };
    let refused = |message| Refusal(message, 1);
    let flags = start::flags(&job, table, &reserved, &outputs);
    let start::Made { segment, input, stdin } =
        start::make(ranks, table, flags, true).map_err(refused)?;
    let (job, descriptors) = (Rc::<args::Job>::from(job), (signals.as_fd(), input));
    let mut running =
        watch::Job::new(segment, &mut outputs, descriptors, (job.clone(), watchdog), &machine);
    running.start(job, (&found, reserved), Some(stdin), None).map_err(refused)?;
    Ok(running.run())
}

/// Returns the table of this machine's CPUs.
fn discover() -> &'static [CpuInfo] {
    static TABLE: OnceLock<Vec<CpuInfo>> = OnceLock::new();
    TABLE.get_or_init(|| topology::discover(process::allowed_cpus().ok().as_ref()))
}

/// Returns the number of parts of this machine at a level. Without a level, returns the number of ranks of a program
/// for
/// which the user gives no number: the number of usable cores.
fn parts(level: Option<Level>) -> usize {
    let table = discover();
    match level {
        Some(level) => placement::parts(table, level),
        // `available_parallelism` also takes the CPU quota of a container into account.
        None => {
            let quota = std::thread::available_parallelism().map_or(usize::MAX, usize::from);
            placement::parts(table, Level::Core).min(quota)
        }
    }
}

/// Returns the directory given by `-wdir` as an absolute path, after checking that it is a directory.
/// Relative paths of programs are relative to this directory.
fn working_directory(given: &Path) -> Result<PathBuf, Refusal> {
    let refused = |error| Refusal(format!("-wdir: '{}': {error}", given.display()), USAGE);
    let absolute = std::path::absolute(given).map_err(refused)?;
    match std::fs::metadata(&absolute) {
        Ok(found) if found.is_dir() => Ok(absolute),
        Ok(_) => Err(refused(std::io::ErrorKind::NotADirectory.into())),
        Err(error) => Err(refused(error)),
    }
}

fn report_bindings(
    job: &args::Job,
    reserved: &Reservation,
    table: &[CpuInfo],
    outputs: &mut Outputs,
) {
    let level = match (&job.bind, &reserved.cores) {
        (&Bind::To(level), None) => level,
        (_, Some(_)) => Level::Thread,
        (_, None) => return outputs.tell("ranks are not bound (--bind-to none)"),
    };
    if topology::is_unknown(table) {
        outputs.tell(topology::UNKNOWN);
    }
    if reserved.cores.is_none() {
        let (ranks, units) = (job.ranks(), placement::units(table, level).len());
        let what = if level == Level::Thread { "hardware threads" } else { "cores" };
        let each =
            if job.width > 1 { format!(", for each rank: {}", job.width) } else { String::new() };
        let why = if reserved.crowded {
            format!("other jobs hold some of the {what}")
        } else if matches!(job.map, args::Map::PerPart { .. }) && ranks * job.width <= units {
            format!("the parts that --map-by names have too few {what}")
        } else {
            format!("more ranks than {what}")
        };
        return outputs
            .tell(&format!("ranks are not bound: {why} (ranks: {ranks}{each}, {what}: {units})"));
    }
    for (rank, core) in reserved.cores.iter().flatten().enumerate() {
        let mut line = format!("rank {rank} bound to cpu {}", about::list(&core.cpus));
        for (of, name) in [
            (Level::Core, "core"),
            (Level::L2, "L2"),
            (Level::L3, "L3"),
            (Level::Numa, "NUMA node"),
            (Level::Package, "package"),
        ] {
            // Name the part of the machine at the level `of` only if the part contains all CPUs of the
            // rank.
            if let Some(index) = placement::common(table, core, of) {
                line.push_str(&format!(", {name} {index}"));
            }
        }
        outputs.tell(&line);
    }
}
