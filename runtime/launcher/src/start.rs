//! Makes the job, and starts worlds in it. A world is a group of ranks that start together: the ranks of the command
//! line, or ranks that join the running job later. Starting a world means: make the descriptors, fork the processes,
//! and then let all of them continue at the same time.
//!
//! This file uses the results of `args/`, `resolve.rs` and `placement.rs`. `watch/` starts the worlds of the job that
//! it watches. `runtime/job/src/shm/README.md` describes the steps.
//!
//! Invariants:
//! - Every child waits at a gate (it reads from a pipe) until all children of its world exist and the segment has
//!   their data.
//! - If the start fails, no child is left behind.
//! - Of the descriptors that mpiexec opens, a rank gets only five: 0, 1, 2, the segment and the rank's
//!   control socket. All ranks also inherit the descriptors with which mpiexec was started.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::atomic::Ordering;

use typepack_job::shm::attach;
use typepack_job::shm::segment::{JobFlags, Segment};
use typepack_job::shm::topology::CpuInfo;
use typepack_job::sys::channel::{self, LauncherEnd};
use typepack_job::sys::process::{self, Child, Command, CpuSet, Descriptors};
use typepack_job::sys::signal::SignalSet;
use typepack_job::sys::{named, stream};

use crate::about::{with_folder, with_folder_first};
use crate::args::{Bind, Environment, Inherit, Job};
use crate::core_reservation::Reservation;
use crate::forward::{Outputs, Source, Stream};
use crate::input::Input;
use crate::placement::{Core, is_crowded, level_of};
use crate::resolve::Found;

/// What mpiexec needs to know about one rank.
#[derive(Debug)]
pub struct Rank {
    /// The process of the rank.
    pub process: Started,
    /// The pipes from the rank's standard output and standard error.
    pub streams: Vec<Source>,
}

/// A process of a rank, and its control socket.
#[derive(Debug)]
pub struct Started {
    /// The process that mpiexec has started: the rank itself, or a wrapper that starts the rank. `None` if another
    /// launcher has started it.
    pub child: Option<Child>,
    /// mpiexec's end of the rank's control socket.
    pub control: LauncherEnd,
    /// A copy of the rank's end of the control socket. mpiexec uses the copy to disarm the kernel's SIGKILL
    /// when a world has ended without a failure. `None` if another launcher has started the rank.
    pub lifeline: Option<OwnedFd>,
}

/// A job in which no rank has been started yet.
#[derive(Debug)]
pub struct Made {
    /// The shared memory of the job.
    pub segment: Segment,
    /// The connection from mpiexec's standard input to rank 0.
    pub input: Input,
    /// The end of this connection that rank 0 reads.
    pub stdin: OwnedFd,
}

/// A world whose ranks are running.
#[derive(Debug)]
pub struct World {
    /// The slots of the ranks.
    pub slots: Range<usize>,
    /// The ranks.
    pub ranks: Vec<Rank>,
    /// The pipe through which a child reports that it could not execute the program. A read returns
    /// end-of-file once every child has either succeeded in its exec or exited.
    pub report: OwnedFd,
}

/// What mpiexec knows about the machine and about itself.
#[derive(Clone, Copy, Debug)]
pub struct Machine<'a> {
    /// The name of this machine.
    pub host: &'a str,
    /// The folder that contains this installation's library, if programs need it in `LD_LIBRARY_PATH`.
    pub library: Option<&'a Path>,
    /// The topology table of the machine.
    pub table: &'a [CpuInfo],
    /// The signals that were blocked when mpiexec was started. They are also blocked in the ranks.
    pub signals: SignalSet,
    /// The limits on the number of open descriptors when mpiexec was started. The ranks get the same limits.
    pub descriptors: rustix::process::Rlimit,
}

/// The input of [`start`] besides the job.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// For each program of the job, what has been found.
    pub programs: &'a [Found],
    /// The core of each rank, or `None` if the ranks are not bound.
    pub placed: Option<&'a [Core]>,
    /// The number of the world. The ranks of the command line are world 0.
    pub world: usize,
    /// The slot of the process that has asked for this world.
    pub parent: Option<usize>,
    /// The machine.
    pub machine: &'a Machine<'a>,
}

/// Returns a function that turns the error of a system call into a one-line message. The message begins with
/// `what`.
fn failed(what: &str) -> impl Fn(io::Error) -> String + '_ {
    move |error| match error.raw_os_error() {
        Some(libc::EMFILE) => format!(
            "{what}: {error}; each rank needs 5 descriptors: raise the limit with ulimit -n"
        ),
        _ => format!("{what}: {error}"),
    }
}

/// Makes a job that begins with `ranks` ranks: the shared memory and the connection to standard input. `table` is the
/// topology table of the machine; mpiexec passes `flags` to the ranks through the segment. `is_ancestor` is true if all ranks
/// will be descendants of this process, so that they can name each other to the system by its number.
///
/// # Errors
///
/// Returns a one-line message if the job cannot be made.
pub fn make(
    ranks: usize,
    table: &[CpuInfo],
    flags: JobFlags,
    is_ancestor: bool,
) -> Result<Made, String> {
    let launcher = if is_ancestor { process::own_id().unsigned_abs() } else { 0 };
    let segment =
        Segment::create(ranks, table, flags, launcher).map_err(|error| error.to_string())?;
    let (stdin, stdin_writer) = stream::pipe().map_err(failed("cannot make a pipe"))?;
    let input = Input::new(stdin_writer).map_err(failed("cannot forward standard input"))?;
    Ok(Made { segment, input, stdin })
}

/// Starts the ranks that `job` describes as a world of the job with the shared memory `segment`, in the slots from
/// `first` on, which are free. The first rank reads its standard input from `stdin`, if there is one.
///
/// # Errors
///
/// Returns a one-line message if the world cannot be started. In that case no child process of it remains, and its
/// slots are free again, unless a child may have begun to run its program.
pub fn start(
    segment: &Segment,
    (first, job): (usize, &Job),
    setting: &Setting<'_>,
    stdin: Option<OwnedFd>,
) -> Result<World, String> {
    // 1. Take the slots.
    let slots = segment.add_world(first, job.ranks()).map_err(|error| error.to_string())?;
    for slot in slots.clone().map(|slot| segment.slot(slot)) {
        // The casts are exact, because a job has at most 2^12 slots.
        slot.world_number.store(setting.world as u32, Ordering::Release);
        slot.parent.store(setting.parent.map_or(0, |parent| parent as u32 + 1), Ordering::Release);
    }
    let mut gate_is_open = false;
    let started = start_in(segment, job, setting, (slots.clone(), stdin), &mut gate_is_open);
    started.inspect_err(|_| {
        if !gate_is_open {
            segment.remove_world(slots);
        }
    })
}

/// Starts a world in `slots`. The first rank reads its standard input from `stdin`, if there is one. `gate_is_open`
/// becomes true when children may run their programs.
fn start_in(
    segment: &Segment,
    job: &Job,
    setting: &Setting<'_>,
    (slots, stdin): (Range<usize>, Option<OwnedFd>),
    gate_is_open: &mut bool,
) -> Result<World, String> {
    // 2. Make the pipes for the gate and for the report.
    let pipes = failed("cannot make a pipe");
    let (gate, gate_writer) = stream::pipe().map_err(&pipes)?;
    let (report, report_writer) = stream::pipe().map_err(&pipes)?;
    stream::set_nonblocking(report.as_fd()).map_err(&pipes)?;
    let null =
        OwnedFd::from(std::fs::File::open("/dev/null").map_err(failed("cannot open /dev/null"))?);

    // 3. Fork the children. Each child waits at the gate.
    let total = slots.len();
    let mut ranks = Vec::with_capacity(total);
    let mut files = Files { world: setting.world, open: BTreeMap::new() };
    let shared = Shared {
        job,
        setting,
        segment,
        first: slots.start,
        gate: gate.as_fd(),
        gate_writer: gate_writer.as_fd(),
        report: report_writer.as_fd(),
    };
    for rank in 0..total {
        let stdin = stdin.as_ref().filter(|_| rank == 0).unwrap_or(&null).as_fd();
        match shared.start_rank(rank, stdin, &mut files) {
            Ok(started) => ranks.push(started),
            Err(message) => {
                abandon(&ranks);
                return Err(format!("cannot start rank {rank} of {total}: {message}"));
            }
        }
    }

    // 4. Open the gate: the segment now has the data of every child.
    drop((gate, report_writer, stdin, null, files));
    let passes = vec![0_u8; total];
    let mut passed = 0;
    while passed < passes.len() {
        // If the pipe is full, this write blocks until children have read some of the bytes.
        match stream::write(gate_writer.as_fd(), &passes[passed..]) {
            Ok(stream::Transfer::Moved(n)) => {
                *gate_is_open = true;
                passed += n;
            }
            Ok(_) => break, // No reader is left, because every child has been killed.
            Err(error) => {
                abandon(&ranks);
                return Err(format!("cannot tell the ranks to start: {error}"));
            }
        }
    }
    Ok(World { slots, ranks, report })
}

/// Kills and reaps children that wait at the gate or have just passed it. (What a child has started by then ends with
/// the child's control socket.)
fn abandon(ranks: &[Rank]) {
    let children = || ranks.iter().filter_map(|rank| rank.process.child.as_ref());
    for child in children() {
        // Ignore errors: even without the signal, the child exits when mpiexec closes the gate.
        let _ = process::signal_process(child.pidfd(), libc::SIGKILL);
    }
    for child in children() {
        while matches!(child.reap(), Ok(None)) {
            std::thread::yield_now();
        }
    }
}

/// The data that is needed to start each rank.
struct Shared<'a> {
    job: &'a Job,
    setting: &'a Setting<'a>,
    segment: &'a Segment,
    /// The slot of rank 0.
    first: usize,
    gate: BorrowedFd<'a>,
    gate_writer: BorrowedFd<'a>,
    report: BorrowedFd<'a>,
}

impl Shared<'_> {
    fn start_rank(
        &self,
        rank: usize,
        stdin: BorrowedFd<'_>,
        files: &mut Files,
    ) -> Result<Rank, String> {
        let number = self.job.app_of(rank);
        let app = &self.job.apps[number];
        let (control, lifeline) =
            channel::pair().map_err(failed("cannot make a control socket"))?;
        let (out, out_writer) = stream::pipe().map_err(failed("cannot make a pipe"))?;
        let (err, err_writer) = stream::pipe().map_err(failed("cannot make a pipe"))?;
        // If an output goes to a file, the rank writes to the file directly, and mpiexec reads end-of-file
        // from the pipe for this output at once.
        let [to_out, to_err] = &self.job.files;
        let to_out = files.open(to_out.as_deref(), rank, self.setting.machine.host)?;
        let to_err = files.open(to_err.as_deref(), rank, self.setting.machine.host)?;
        let core = self.setting.placed.map(|cores| &cores[rank]);
        let command = Command {
            path: c_string(self.setting.programs[number].path.as_os_str())?,
            arguments: std::iter::once(&app.program)
                .chain(&app.arguments)
                .map(|argument| c_string(argument))
                .collect::<Result<_, _>>()?,
            environment: self.environment(rank, number, lifeline.as_raw_fd())?,
            directory: app.directory.as_ref().map(|path| c_string(path.as_os_str())).transpose()?,
            cpus: core.map(|core| CpuSet::new(&core.cpus)),
            signals: self.setting.machine.signals,
            descriptors: self.setting.machine.descriptors,
        };
        let fds = Descriptors {
            stdio: [
                stdin,
                to_out.as_ref().map_or(out_writer.as_fd(), AsFd::as_fd),
                to_err.as_ref().map_or(err_writer.as_fd(), AsFd::as_fd),
            ],
            kept: [self.segment.fd(), lifeline.as_fd()],
            gate: self.gate,
            gate_writer: self.gate_writer,
            report: self.report,
        };
        // The cast is exact: the layout of the segment limits the number of ranks.
        let child =
            process::spawn(&command, rank as u32, fds).map_err(failed("cannot make a process"))?;
        let slot = self.segment.slot(self.first + rank);
        let pid = child.pid().as_raw_nonzero().get();
        slot.group.store(pid.unsigned_abs(), Ordering::Release);
        slot.program.store(number as u32 + 1, Ordering::Relaxed);
        let level = core.and_then(|core| match self.job.bind {
            Bind::To(level) if self.job.width == 1 => Some(level),
            _ => level_of(self.setting.machine.table, core),
        });
        if let (Some(core), Some(level)) = (core, level) {
            slot.bind(core.cpus[0], level);
        }
        let label = self.job.label.then(|| match self.setting.world {
            0 => format!("[{rank}] "),
            world => format!("[{world}.{rank}] "),
        });
        let streams = channel::arm(lifeline.as_fd(), -pid).and_then(|()| {
            Ok(vec![
                Source::new(out, Stream::Out, label.clone())?,
                Source::new(err, Stream::Err, label)?,
            ])
        });
        match streams {
            Ok(streams) => {
                let process = Started { child: Some(child), control, lifeline: Some(lifeline) };
                Ok(Rank { process, streams })
            }
            Err(error) => {
                let _ = process::signal_process(child.pidfd(), libc::SIGKILL);
                Err(failed("cannot set up its control socket and its output pipes")(error))
            }
        }
    }

    /// Returns the environment of a rank: mpiexec's environment changed by the options on the command line,
    /// and the variables that tell the rank about the job.
    fn environment(
        &self,
        rank: usize,
        number: usize,
        control: i32,
    ) -> Result<Vec<CString>, String> {
        let app = &self.job.apps[number];
        let mut variables = inherited(&self.job.environment, &app.environment);
        if let Some(directory) = &app.directory {
            // PWD gets the value that a shell would give it after `cd`.
            if let Ok(directory) = directory.canonicalize() {
                variables.insert("PWD".into(), directory.into());
            }
        }
        // Cargo and CMake may link programs without a run path. Such programs find the library if its folder is in the
        // list. Programs of MPICH's ABI must find ours before all others, because each of their processes would be a
        // job of its own with another one.
        let name = OsString::from("LD_LIBRARY_PATH");
        let mut list = variables.remove(&name);
        if let Some(folder) = self.setting.machine.library {
            list = Some(with_folder(list, folder));
        }
        if let Some(folder) = &self.setting.programs[number].mpich {
            list = Some(with_folder_first(list, folder));
        }
        if let Some(list) = list.filter(|list| !list.is_empty()) {
            variables.insert(name, list);
        }
        // If mpiexec itself runs as a rank of another job, it has inherited that job's universe size and
        // initial error handler. Remove both variables: only this mpiexec's command line may set them.
        for name in [attach::UNIVERSE_SIZE, attach::INITIAL_ERRHANDLER] {
            variables.remove(OsStr::new(name));
        }
        let size = self.job.ranks();
        let universe = self.job.universe.map(|n| (attach::UNIVERSE_SIZE, n.to_string()));
        let errhandler = app.errhandler.or(self.job.errhandler);
        let errhandler = errhandler.map(|h| (attach::INITIAL_ERRHANDLER, h.to_owned()));
        let job_fd = format!("{},{control},{}", self.segment.fd().as_raw_fd(), self.first + rank);
        for (name, value) in [
            (attach::JOB_FD, job_fd),
            (attach::RANK, rank.to_string()),
            (attach::SIZE, size.to_string()),
            // All ranks are on one machine, so the local rank equals the rank.
            (attach::LOCAL_RANK, rank.to_string()),
            (attach::MPI_LOCAL_RANK, rank.to_string()),
            (attach::MPI_LOCAL_SIZE, size.to_string()),
            (attach::APP_NUMBER, number.to_string()),
            (attach::APP_SIZE, app.ranks.to_string()),
        ]
        .into_iter()
        .chain(universe)
        .chain(errhandler)
        {
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

/// Returns mpiexec's environment, changed first by the options of the job and then by the options of the
/// program.
fn inherited(job: &Environment, app: &Environment) -> BTreeMap<OsString, OsString> {
    let mut variables: BTreeMap<OsString, OsString> = env::vars_os().collect();
    if let Some(Inherit::Only(names)) = app.inherit.as_ref().or(job.inherit.as_ref()) {
        variables.retain(|name, _| names.contains(name));
    }
    for (name, value) in job.set.iter().chain(&app.set) {
        // A name without a value stands for the variable's value in mpiexec's environment. If it is not set
        // there, leave it as it is and report no error, because scripts name variables that exist only on some
        // machines.
        if let Some(value) = value.clone().or_else(|| env::var_os(name)) {
            variables.insert(name.clone(), value);
        }
    }
    variables
}

/// The open files to which ranks write their output, by file name. Each file is opened once, and ranks with
/// the same file name share it.
#[derive(Debug)]
struct Files {
    /// The number of the world of these ranks.
    world: usize,
    open: BTreeMap<OsString, File>,
}

impl Files {
    /// Opens the output file of `rank`. In the name `pattern`, `%r` stands for the rank, `%h` for the
    /// machine, `%g` for the number of the world (0 for the ranks of the command line), `%p` for the number of the node
    /// (always 0), and `%%` for a per cent sign. A later world does not truncate files that earlier ones have made.
    /// Returns `None` if there is no pattern.
    fn open(
        &mut self,
        pattern: Option<&OsStr>,
        rank: usize,
        host: &str,
    ) -> Result<Option<OwnedFd>, String> {
        let Some(pattern) = pattern else { return Ok(None) };
        let name = file_name(pattern, (self.world, rank), host);
        let failed = |error| format!("cannot write '{}': {error}", name.to_string_lossy());
        if !self.open.contains_key(&name) {
            // Open the file for appending, so that the writes of ranks that share the file do not overwrite
            // each other.
            let file = named::create(Path::new(&name), self.world == 0).map_err(failed)?;
            self.open.insert(name.clone(), file);
        }
        self.open
            .get(&name)
            .map(File::try_clone)
            .transpose()
            .map(|f| f.map(Into::into))
            .map_err(failed)
    }
}

fn file_name(pattern: &OsStr, (world, rank): (usize, usize), host: &str) -> OsString {
    let mut name = Vec::new();
    let mut bytes = pattern.as_bytes().iter();
    while let Some(&byte) = bytes.next() {
        match (byte, bytes.as_slice().first()) {
            (b'%', Some(b'r')) => name.extend_from_slice(rank.to_string().as_bytes()),
            (b'%', Some(b'h')) => name.extend_from_slice(host.as_bytes()),
            (b'%', Some(b'g')) => name.extend_from_slice(world.to_string().as_bytes()),
            (b'%', Some(b'p')) => name.push(b'0'),
            (b'%', Some(b'%')) => name.push(b'%'),
            _ => {
                name.push(byte);
                continue;
            }
        }
        bytes.next();
    }
    OsString::from_vec(name)
}

fn c_string(text: &OsStr) -> Result<CString, String> {
    CString::new(text.as_bytes())
        .map_err(|_| format!("'{}' contains a NUL byte", text.to_string_lossy()))
}

/// Returns the number of CPUs that the ranks of a job can use at the same time.
pub fn usable_cpus(table: &[CpuInfo]) -> usize {
    let allowed = table.iter().filter(|cpu| cpu.allowed).count();
    // `available_parallelism` also takes the CPU quota of a container into account.
    allowed.min(std::thread::available_parallelism().map_or(usize::MAX, usize::from))
}

/// Returns whether ranks of a world share cores with each other or with another job. If other jobs hold cores that this
/// job needs, ranks of both jobs share cores, and a spinning rank would slow down both jobs.
pub fn shares_cores(reserved: &Reservation) -> bool {
    reserved.crowded && !reserved.exclusive || reserved.cores.as_deref().is_some_and(is_crowded)
}

/// Returns the flags that mpiexec passes to the ranks through the segment.
pub fn flags(job: &Job, table: &[CpuInfo], reserved: &Reservation, outputs: &Outputs) -> JobFlags {
    JobFlags {
        // `watch/` counts again when worlds start and end.
        oversubscribed: job.ranks() > usable_cpus(table) || shares_cores(reserved),
        stdout_terminal: outputs.is_terminal(Stream::Out),
        stderr_terminal: outputs.is_terminal(Stream::Err),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_file_names() {
        let name = |pattern: &str| file_name(OsStr::new(pattern), (0, 12), "here");
        assert_eq!(name("out.%r.txt"), "out.12.txt");
        assert_eq!(name("%h-%g-%p-%r%%r"), "here-0-0-12%r");
        assert_eq!(file_name(OsStr::new("%g.%r"), (2, 1), "here"), "2.1");
        assert_eq!(name("100%"), "100%");
        assert_eq!(name("%x"), "%x");
    }

    #[test]
    fn the_program_has_the_last_word() {
        let set = |list: &[(&str, Option<&str>)]| -> Vec<(OsString, Option<OsString>)> {
            list.iter().map(|(name, value)| (name.into(), value.map(OsString::from))).collect()
        };
        let none = Some(Inherit::Only(Default::default()));
        let job = Environment { inherit: none, set: set(&[("A", Some("1")), ("B", Some("2"))]) };
        let own = Environment { inherit: None, set: set(&[("B", Some("3")), ("PATH", None)]) };
        let variables = inherited(&job, &own);
        let names: Vec<_> = variables.keys().map(|name| name.to_string_lossy()).collect();
        assert_eq!(names, ["A", "B", "PATH"]);
        assert_eq!(variables[OsStr::new("B")], "3");
        let all = Environment { inherit: Some(Inherit::All), set: set(&[("NO_SUCH", None)]) };
        let variables = inherited(&job, &all);
        assert!(variables.contains_key(OsStr::new("PATH")));
        assert!(!variables.contains_key(OsStr::new("NO_SUCH")));
    }
}
