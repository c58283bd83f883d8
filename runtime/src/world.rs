//! Joining and leaving the job.
//!
//! A program first calls [`init`]. `init` reads the settings (`settings.rs`), finds the job
//! (`shm/attach.rs`) and returns a [`Universe`], from which the program gets the world communicator
//! (`comm/`). Dropping the [`Universe`] leaves the job.
//!
//! Invariant: a process joins once, either as the rank that `mpiexec` assigned to it, or as the only rank of
//! its own job. Only the second can become part of a job later (`process/membership.rs`).

use crate::comm::{Communicator, Group};
use crate::commit::{self, counters};
use crate::endpoint::progress::{Endpoint, spin_time};
use crate::io as files;
use crate::memory::SharedBuffer;
use crate::partitioned;
use crate::placement::Placement;
use crate::process::{Process, membership};
use crate::process_set::{ProcessSet, process_sets};
use crate::rma;
use crate::schedule;
use crate::settings::{self, Settings, foreign_launcher, unknown_names};
use crate::shm::segment::Segment;
use crate::shm::{attach, attach_from_env};
use crate::starter::{self, Joined};
use crate::sys::named::Entry;
use crate::sys::{clock, fork, machine, stream, text_file};
use crate::tools;
use crate::transport::choice;
use crate::transport::link::fabric::Fabric;
use crate::tuned::{self, Choice, Ignored};
use crate::{Error, ErrorKind, Result};
use bytemuck::Pod;
use std::fmt;
use std::io::IsTerminal;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;
use typepack_engine::choice::{KERNELS, Remembered, store};
use typepack_engine::contiguous;
use typepack_job::service::Request;

/// This process's membership in its job. Dropping this value leaves the job.
///
/// The drop does five things. If this is rank 0 of several ranks and `TYPEPACK_TUNE_FILE` is set, it writes that file.
/// It completes the sends that are still under way. It reads and discards the messages that other ranks are still
/// sending for abandoned receives, and waits for those of abandoned collective operations. It tells the launcher that
/// this rank leaves the job normally. It prints the report if `TYPEPACK_REPORT=1`. If the process is panicking, the
/// drop only writes the file and prints the report, and the launcher then reports the end of the process as a failure.
#[doc(alias = "MPI_Finalize")]
pub struct Universe {
    world: Communicator,
    own: Communicator,
    /// The intercommunicator with the ranks that have started this world.
    parent: Mutex<Option<Communicator>>,
    report: bool,
    tune_file: Option<TuneFile>,
}

/// The file into which rank 0 writes what the job has measured.
struct TuneFile {
    path: &'static Path,
    /// Where rank 0 writes the file, or why it cannot; `None` on the other ranks.
    entry: Option<std::result::Result<Entry, String>>,
    /// True if this process prints a line if the file cannot be written.
    warns: bool,
}

impl fmt::Debug for Universe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Universe").field("world", &self.world).finish_non_exhaustive()
    }
}

/// Joins the job. If `mpiexec` started this program, the process becomes one of the job's ranks; otherwise
/// it becomes the only rank of a job of its own.
///
/// Prints a warning on standard error if there are `TYPEPACK_*` variables with unknown names, if the file
/// that `TYPEPACK_TUNE_FILE` names cannot be used, or if the launcher of another MPI started this program
/// as one of several processes. `TYPEPACK_QUIET=1` silences these warnings.
///
/// # Errors
/// - `ErrorKind::State` if this process has already called `init`.
/// - `ErrorKind::Argument` if a `TYPEPACK_*` variable has a value outside its domain.
/// - `ErrorKind::ProcAborted` if the launcher is gone, or a rank that has started this process has died.
/// - `ErrorKind::Other` if the launcher has another version, if the environment does not match the job,
///   or if the system refuses a call.
/// - `ErrorKind::NoMemory` if memory runs out.
#[doc(alias = "MPI_Init")]
pub fn init() -> Result<Universe> {
    static JOINED: AtomicBool = AtomicBool::new(false);
    let settings = Settings::get()?;
    if JOINED.swap(true, Ordering::AcqRel) {
        let detail = "this process has already joined its job; init() may be called only once";
        return Err(Error::new(ErrorKind::State, "init", detail));
    }
    let attached = match attach_from_env()? {
        Some(attached) => Some(attached),
        None => match starter::join()? {
            Joined::Rank(attached) => Some(attached),
            Joined::Alone => None,
            Joined::Apart(line) => {
                if let Some(line) = line.filter(|_| !settings.quiet) {
                    eprintln!("typepack: {line}");
                }
                // No rank can do anything, so none stays.
                crate::sys::process::end(1)
            }
        },
    };
    // All ranks have the same environment, so only rank 0 prints the warning.
    if !settings.quiet
        && attached.as_ref().is_none_or(|attached| attached.slot == attached.world.start)
    {
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        if let Some(line) = unknown_names(names) {
            eprintln!("typepack: {line}");
        }
    }
    let fabric = match attached {
        Some(attached) => {
            let attached = membership::enter(attached);
            let fabric = Fabric::join(attached.segment.clone(), attached.slot)?;
            if fabric.processes() > 1 {
                fabric.share_memory(settings.cma);
            }
            fabric
        }
        None => {
            let warning = foreign_launcher(|name| std::env::var(name).ok());
            if let Some(line) = warning.filter(|_| !settings.quiet) {
                eprintln!("typepack: {line}");
            }
            Fabric::alone()
        }
    };
    let spin = spin_time(fabric.oversubscribed(), settings.spin);
    fabric.register_barrier(!spin.is_zero());
    let parent = fabric.parent();
    let endpoint = Arc::new(Endpoint::new(fabric, settings.eager_limit, settings.forced, spin));
    membership::get().into_iter().for_each(|attached| endpoint.set_launcher(attached));
    endpoint.bound(settings.unexpected_max)?;
    if settings.check_types {
        endpoint.check_types()?;
    }
    endpoint.tune(settings.tune, settings.copy)?;
    contiguous::set_fixed(settings.copy);
    let mut tune_file = settings.tune_file.as_deref().filter(|_| settings.tune.measures_any());
    let is_first = endpoint.rank() == endpoint.world().start;
    let mut warns = is_first && !settings.quiet;
    if let Some(path) = tune_file {
        match tuned::remembered(path) {
            Ok(remembered) => store().know(&remembered),
            Err(Ignored { reason, is_ours }) => {
                if std::mem::take(&mut warns) {
                    let path = path.display();
                    eprintln!("typepack: TYPEPACK_TUNE_FILE: {path} is ignored: {reason}");
                }
                tune_file = tune_file.filter(|_| is_ours);
            }
        }
    }
    // The copies begin with what the process knows now.
    let copies = settings.tune.measures(contiguous::FORM.name);
    if copies || settings.tune.measures(KERNELS) {
        contiguous::set_clock(nanoseconds, copies);
    }
    schedule::calls::register(&endpoint)?;
    files::register(&endpoint)?;
    rma::register(&endpoint)?;
    partitioned::register(&endpoint)?;
    let own = Communicator::own(endpoint.clone());
    let report = settings.report;
    tools::join(&endpoint, report);
    // All ranks learn nearly the same ways, so only rank 0 writes the file. Of collective calls it knows those on
    // communicators whose rank 0 it is. At the end, the process may have another directory.
    let writes = is_first && endpoint.world().len() > 1;
    let tune_file = tune_file.map(|path| {
        let entry = writes.then(|| tuned::entry(path));
        TuneFile { path, entry, warns }
    });
    let world = Communicator::world(endpoint);
    let parent = parent.map(|parent| world.meet_parent(parent)).transpose()?;
    let parent = Mutex::new(parent);
    Ok(Universe { world, own, parent, report, tune_file })
}

/// Returns whether the C library prints the errors that a program ignores (`TYPEPACK_ERRORS`).
#[doc(hidden)]
pub fn prints_all_errors() -> bool {
    settings::prints_all_errors()
}

/// Returns the time since the first call, in nanoseconds.
fn nanoseconds() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = START.get_or_init(Instant::now);
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

impl Universe {
    /// Returns this process's rank in the world.
    pub fn rank(&self) -> usize {
        self.world.rank()
    }

    /// Returns how messages name this process: by its rank, and, if other ranks have started it, by its world and its
    /// program.
    #[doc(hidden)]
    pub fn name(&self) -> String {
        let who = Process::new(self.world.endpoint().rank()).to_string();
        match segment().and_then(|segment| segment.parent(self.world.endpoint().rank())) {
            None => who,
            Some(_) => {
                let program = std::env::args_os().next().unwrap_or_default();
                format!("{who} ({})", program.to_string_lossy())
            }
        }
    }

    /// Returns the communicator of all ranks of the job.
    #[doc(alias = "MPI_COMM_WORLD")]
    pub fn world(&self) -> Communicator {
        self.world.clone()
    }

    /// Returns the communicator that contains only this rank.
    #[doc(alias = "MPI_COMM_SELF")]
    pub fn own(&self) -> Communicator {
        self.own.clone()
    }

    /// Returns the intercommunicator with the ranks that have started this process and the other ranks of its world by
    /// [`Communicator::spawn`]. Returns `None` if the launcher or the user has started this process.
    #[doc(alias = "MPI_Comm_get_parent")]
    pub fn parent(&self) -> Option<Communicator> {
        self.parent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns what [`parent`](Self::parent) returns, and keeps no copy. So the program can free the communicator.
    #[doc(hidden)]
    pub fn take_parent(&self) -> Option<Communicator> {
        self.parent.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Allocates `len` zero values in shared memory. Other ranks copy long messages directly from this
    /// memory. Such a message needs one copy from layout to layout instead of two copies through a
    /// transport buffer. A program sends and receives the buffer like any other slice. The buffer may
    /// outlive the job.
    ///
    /// ```
    /// # let universe = typepack::init()?;
    /// let mut field = universe.shared_buffer::<f64>(1 << 20)?;
    /// field[0] = 1.0;
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns `ErrorKind::NoMemory` if the machine, a cgroup of this process or this rank's heap has too
    /// little memory left.
    #[doc(alias = "MPI_Alloc_mem")]
    pub fn shared_buffer<T: Pod>(&self, len: usize) -> Result<SharedBuffer<T>> {
        SharedBuffer::zeroed(len)
    }

    /// Returns whether the standard error of rank 0 goes to a terminal. Programs that display their progress
    /// need to know this. Under `mpiexec`, a rank writes into a pipe and cannot find this out itself, so the
    /// launcher tells the ranks.
    pub fn stderr_is_terminal(&self) -> bool {
        match segment() {
            Some(segment) => segment.flags().stderr_terminal,
            None => std::io::stderr().is_terminal(),
        }
    }

    /// Returns the number of this rank's program among the programs of the job (`mpiexec -n 1 a : -n 2 b`).
    /// Programs are counted from 0. Returns `None` if no launcher started this process.
    #[doc(alias = "MPI_APPNUM")]
    pub fn app_number(&self) -> Option<u32> {
        segment()?.program(self.world.endpoint().rank())
    }

    /// Returns how many ranks of the job, including this one, run this rank's program. Returns `None` if
    /// no launcher started this process.
    pub fn app_size(&self) -> Option<u32> {
        program_size().filter(|_| membership::get().is_some())
    }

    /// Returns the number of processes for which the job has room. The user states this number to the
    /// launcher (`mpiexec -usize`). Returns `None` if the user has not stated it, or if no launcher started
    /// this process.
    #[doc(alias = "MPI_UNIVERSE_SIZE")]
    pub fn universe_size(&self) -> Option<u32> {
        let stated = advertised(attach::UNIVERSE_SIZE).and_then(|size| size.parse().ok());
        stated.or_else(starter::universe_size)
    }

    /// Returns the name of the error handler that the user gave to the launcher: `mpi_errors_are_fatal`,
    /// `mpi_errors_abort` or `mpi_errors_return` (MPI-5.0 section 11.5). Returns `None` if the user gave no
    /// name, or if no launcher started this process.
    #[doc(alias = "mpi_initial_errhandler")]
    pub fn initial_errhandler(&self) -> Option<String> {
        advertised(attach::INITIAL_ERRHANDLER)
    }

    /// Makes a communicator of the ranks of `group`, in the order of the group. Only these ranks make the call.
    /// They need no communicator in common. All of them pass the same group and the same `name`, and threads that
    /// make such calls at the same time pass different names. Returns `None` if the group is empty.
    ///
    /// ```
    /// # let universe = typepack::init()?;
    /// let sets = universe.process_sets();
    /// let world = sets.iter().find(|set| set.is_named("mpi://WORLD")).expect("always there");
    /// let all = universe.communicator(&world.group, "example.org/all")?.expect("not empty");
    /// assert_eq!(all.size(), universe.world().size());
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns `ErrorKind::Group` if this process is not in the group, and `ErrorKind::ProcAborted` if a rank has
    /// died.
    #[doc(alias = "MPI_Comm_create_from_group")]
    pub fn communicator(
        &self,
        group: &Group,
        name: impl AsRef<[u8]>,
    ) -> Result<Option<Communicator>> {
        Communicator::of_group(self.world.endpoint(), group, name.as_ref())
    }

    /// Makes an intercommunicator of two groups, which have no common member. Only the ranks of the groups make the
    /// call. They need no communicator in common. All of them pass the same `name`, and the ranks of a group pass
    /// the same group and the same `leader`, a rank of the group. The leader also passes the remote group and the
    /// rank of the other leader in it, or the error that has kept it from finding them.
    ///
    /// # Errors
    /// - `ErrorKind::Group` if this process is not in the group.
    /// - `ErrorKind::Rank` if a leader is not a rank of its group.
    /// - `ErrorKind::Comm` if the groups have a common member.
    /// - The error that the leader passes; the other ranks of its group then get `ErrorKind::Other`.
    /// - `ErrorKind::ProcAborted` if a rank has died.
    #[doc(alias = "MPI_Intercomm_create_from_groups")]
    pub fn intercommunicator(
        &self,
        group: &Group,
        leader: usize,
        other: Result<(&Group, usize)>,
        name: impl AsRef<[u8]>,
    ) -> Result<Communicator> {
        Communicator::of_groups(self.world.endpoint(), group, leader, other, name.as_ref(), true)
    }

    /// Takes part in [`intercommunicator`](Self::intercommunicator) as a rank that has found an error in its other
    /// arguments. All other ranks of both groups get an error. Also returns an error.
    #[doc(hidden)]
    pub fn fail_intercommunicator(
        &self,
        group: &Group,
        leader: usize,
        other: Result<(&Group, usize)>,
        name: impl AsRef<[u8]>,
    ) -> Result<Communicator> {
        let endpoint = self.world.endpoint();
        Communicator::of_groups(endpoint, group, leader, other, name.as_ref(), false)
    }

    /// Opens a port, at which the ranks of a communicator can accept ([`Communicator::accept`]) and those of another one
    /// can connect ([`Communicator::connect_to`]). Returns its name. The port is open until this process closes it or
    /// ends. Only processes of this job, all under one `mpiexec`, can connect.
    ///
    /// # Errors
    /// Returns `ErrorKind::State` if this process was started without `mpiexec`, and no `mpiexec` can be started behind it,
    /// and `ErrorKind::ProcAborted` if a rank has died.
    #[doc(alias = "MPI_Open_port")]
    pub fn open_port(&self) -> Result<Vec<u8>> {
        self.own.ask_about_ports(&Request::Open)
    }

    /// Closes a port that this process has opened. Ranks that wait there get an error.
    ///
    /// # Errors
    /// Returns `ErrorKind::Process` if this process has opened no such port, and the errors of
    /// [`open_port`](Self::open_port).
    #[doc(alias = "MPI_Close_port")]
    pub fn close_port(&self, port: impl AsRef<[u8]>) -> Result<()> {
        self.own.ask_about_ports(&Request::Close(port.as_ref().to_vec())).map(drop)
    }

    /// Publishes a port under the name of a service, by which other processes of the job find it, until this process
    /// withdraws it or ends.
    ///
    /// # Errors
    /// Returns `ErrorKind::Process` if the service is published already, and the errors of
    /// [`open_port`](Self::open_port).
    #[doc(alias = "MPI_Publish_name")]
    pub fn publish(&self, service: impl AsRef<[u8]>, port: impl AsRef<[u8]>) -> Result<()> {
        let (service, port) = (service.as_ref().to_vec(), port.as_ref().to_vec());
        self.own.ask_about_ports(&Request::Publish { service, port }).map(drop)
    }

    /// Withdraws a service that this process has published with this port.
    ///
    /// # Errors
    /// Returns `ErrorKind::Process` if this process has not published the service with this port, and the errors of
    /// [`open_port`](Self::open_port).
    #[doc(alias = "MPI_Unpublish_name")]
    pub fn unpublish(&self, service: impl AsRef<[u8]>, port: impl AsRef<[u8]>) -> Result<()> {
        let (service, port) = (service.as_ref().to_vec(), port.as_ref().to_vec());
        self.own.ask_about_ports(&Request::Unpublish { service, port }).map(drop)
    }

    /// Returns the port of a service.
    ///
    /// # Errors
    /// Returns `ErrorKind::Process` if no such service is published, and the errors of [`open_port`](Self::open_port).
    #[doc(alias = "MPI_Lookup_name")]
    pub fn look_up(&self, service: impl AsRef<[u8]>) -> Result<Vec<u8>> {
        self.own.ask_about_ports(&Request::Lookup(service.as_ref().to_vec()))
    }

    /// Makes an intercommunicator of this process and the process at the other end of a stream socket, which makes the
    /// same call. Both processes are in one job, under one `mpiexec`. No data is in the socket before and after the call.
    ///
    /// # Errors
    /// - `ErrorKind::Argument` if `socket` is no connected socket, or the other end sends something else.
    /// - `ErrorKind::Process` if the other process is in another job.
    /// - `ErrorKind::State` if this process is by itself: it was started without `mpiexec`, and has started no process.
    /// - `ErrorKind::ProcAborted` if a rank has died.
    #[doc(alias = "MPI_Comm_join")]
    pub fn join(&self, socket: impl AsFd) -> Result<Communicator> {
        self.join_at(socket.as_fd().try_clone_to_owned())
    }

    /// Does what [`join`](Self::join) does, with the number of a descriptor.
    #[doc(hidden)]
    pub fn join_number(&self, socket: RawFd) -> Result<Communicator> {
        self.join_at(stream::duplicate(socket))
    }

    fn join_at(&self, socket: std::io::Result<OwnedFd>) -> Result<Communicator> {
        let socket = socket.map_err(|error| {
            Error::new(ErrorKind::Argument, "fd", format!("cannot use the socket: {error}"))
        })?;
        self.own.join(&socket)
    }

    /// Completes all operations for which other ranks wait. Other threads may make calls meanwhile.
    ///
    /// # Errors
    /// Returns `ErrorKind::ProcAborted` if a rank has died, and `ErrorKind::State` in a forked child.
    #[doc(hidden)]
    pub fn serve(&self) -> Result<()> {
        self.world.endpoint().serve()
    }

    /// Returns the process sets of the job: groups with names. The sets `mpi://WORLD` and `mpi://SELF` always exist.
    /// If the job has several programs, each has a set `typepack://program/N`. Each NUMA node to which ranks are
    /// bound has a set `typepack://numa/N`, where `N` is the number of the node.
    #[doc(alias = "MPI_Session_get_nth_pset")]
    pub fn process_sets(&self) -> Vec<ProcessSet> {
        let endpoint = self.world.endpoint();
        process_sets(endpoint.world(), endpoint.rank(), segment())
    }

    /// Leaves the job as dropping the `Universe` does, except that the process can return to the job. All other calls
    /// must be over, and none may follow before [`resume`](Self::resume).
    ///
    /// # Errors
    /// Returns `ErrorKind::ProcAborted` if a rank has died, and `ErrorKind::State` in a forked child.
    #[doc(hidden)]
    pub fn pause(&self) -> Result<()> {
        self.leave(Endpoint::pause)
    }

    /// Returns to the job after [`pause`](Self::pause).
    ///
    /// # Errors
    /// Returns `ErrorKind::State` in a forked child.
    #[doc(hidden)]
    pub fn resume(&self) -> Result<()> {
        self.world.endpoint().resume()
    }

    /// Writes the tune file, ends the membership by `end`, and prints the report.
    fn leave(&self, end: impl FnOnce(&Endpoint) -> Result<()>) -> Result<()> {
        let report = if self.report { self.report().ok() } else { None };
        let endpoint = self.world.endpoint();
        if let Some(TuneFile { path, entry: Some(entry), warns }) = &self.tune_file
            && !fork::is_child()
        {
            contiguous::remembered().into_iter().for_each(|remembered| store().note(remembered));
            let text = tuned::file::print(&store().remembered(), &text_file::processor());
            let written = entry.as_ref().map_err(Clone::clone).and_then(|entry| {
                let (most, is_ours) = (tuned::file::FILE_MAX, tuned::file::is_ours);
                let replaced = text_file::replace(entry, &text, most, is_ours);
                replaced.map_err(|error| error.to_string())
            });
            if let Err(error) = written
                && *warns
            {
                eprintln!(
                    "typepack: TYPEPACK_TUNE_FILE: {} is not written: {error}",
                    path.display()
                );
            }
        }
        let mut ended = end(endpoint);
        if ended.is_ok()
            && !std::thread::panicking()
            && let Some(attached) = membership::get().filter(|_| !fork::is_child())
        {
            ended = starter::leave(attached).map_err(Error::from);
        }
        if let Some(line) = report {
            eprintln!("{line}");
        }
        ended
    }

    /// Returns the CPUs to which the launcher has bound the ranks. Returns `None` if no launcher started
    /// this process, and in a forked child.
    pub fn placement(&self) -> Option<Placement> {
        segment().map(|segment| Placement::of(segment, self.world.endpoint().world()))
    }

    /// Returns a description of the protocols between ranks, with one string per protocol.
    ///
    /// # Errors
    /// Returns `ErrorKind::Argument` if a `TYPEPACK_*` variable has a value outside its domain.
    pub fn transports(&self) -> Result<Vec<String>> {
        let eager = Settings::get()?.eager_limit;
        if self.world.size() == 1 {
            return Ok(vec!["one rank: a message to itself stays in its own memory".into()]);
        }
        Ok(vec![
            format!("up to {eager} bytes: packed into the ring of the pair (eager)"),
            "longer, data in the shared heap: one copy from layout to layout, by both ranks or by the \
             receiver (heap)"
                .into(),
            format!(
                "longer, contiguous data in private memory, at least {} bytes: one copy by the receiver, \
                 if the system allows it and measurements show that it is faster (cma)",
                choice::PRIVATE_FAR
            ),
            "longer, all other data: through the chunks of the pair (pipeline)".into(),
        ])
    }

    /// Returns a description of how one-sided calls access the memory of windows, with one string per kind of memory.
    pub fn window_access(&self) -> Vec<String> {
        let (endpoint, size) = (self.world.endpoint(), self.world.size());
        let others = endpoint.world().filter(|slot| *slot != endpoint.rank());
        let readable = others.filter(|rank| endpoint.reader_of(*rank).is_some()).count();
        vec![
            "memory of MPI_Win_allocate, MPI_Win_allocate_shared and MPI_Alloc_mem: directly (all ranks map it)"
                .into(),
            format!(
                "gets from other memory: by system calls from {readable} of {} other ranks (cma), by requests from \
                 the rest",
                size - 1
            ),
            "puts to other memory, and updates of it: by requests, which the target serves".into(),
        ]
    }

    /// Returns what this rank has measured about the ways of the long messages that it has received: one value
    /// for each kind and size of messages that can go several ways. At rank 0, also returns what it has measured about
    /// blocking collective calls on the world communicator, unless another thread makes such a call now.
    ///
    /// # Errors
    /// Returns `ErrorKind::State` in a forked child.
    pub fn choices(&self) -> Result<Vec<Choice>> {
        let mut choices = self.world.endpoint().measured()?;
        choices.extend(crate::coll::measured(&self.world));
        Ok(choices)
    }

    /// Returns the report of this rank. The first line is about the messages that the rank has sent, the bytes that it
    /// has moved (packed, unpacked or copied), and the kernels that it has compiled; counters that are 0 are left out.
    /// Lines about collective calls, one-sided calls, files and waits follow, if there were any.
    /// Each further line is about one protocol for long messages that the rank has chosen by measurement, or, at rank
    /// 0, has taken from the tune file, or about the method with which it copies pieces of data in blocking collective
    /// calls on the world communicator, or, at rank 0, about the ways of these calls, or about other copies, waits and
    /// accesses to files, or about a committed type. If the rank found news after the time limit of a sleep that no
    /// other rank had ended, a line says how often.
    fn report(&self) -> Result<String> {
        let traffic = self.world.endpoint().traffic()?;
        let kernels = counters();
        let moved = tools::moved_bytes();
        let (rank, who) = (self.world.rank(), self.name());
        // All ranks have the same file, so one rank reports what it says.
        let loaded = if rank == 0 { store().earlier() } else { Vec::new() };
        let loaded: Vec<String> = loaded.iter().map(Remembered::to_string).collect();
        let loaded = loaded.iter().map(|line| ("loaded", line));
        let mut choices = self.world.endpoint().choices()?;
        choices.extend(crate::coll::report(&self.world));
        choices.extend(contiguous::remembered().iter().map(Remembered::to_string));
        choices.extend(crate::io::report());
        let types = commit::types();
        let unrung = self.world.endpoint().unrung()?;
        let unrung = (unrung > 0).then(|| format!("{unrung} times news without a wake-up"));
        let choices: String = loaded
            .chain(choices.iter().map(|line| ("chosen", line)))
            .chain(types.iter().map(|line| ("type", line)))
            .chain(unrung.iter().map(|line| ("slept for 100 ms and then found", line)))
            .map(|(what, line)| format!("\ntypepack: {who}: {what} {line}"))
            .collect();
        let some = |parts: &[(&str, u64)]| -> String {
            let parts: Vec<_> = parts.iter().filter(|(_, count)| *count > 0).collect();
            let texts: Vec<_> =
                parts.iter().map(|(name, count)| format!("{count} {name}")).collect();
            texts.join(", ")
        };
        let in_parentheses = |parts: &[(&str, u64)]| match some(parts) {
            none if none.is_empty() => none,
            some => format!(" ({some})"),
        };
        let protocols = in_parentheses(&tools::sent_messages());
        let total: u64 = moved.iter().map(|(_, bytes)| bytes).sum();
        let moved = format!("{total}{}", in_parentheses(&moved));
        let counted: String = tools::counted_calls()
            .into_iter()
            .map(|(what, parts)| format!("\ntypepack: {who}: {what} {}", some(&parts)))
            .collect();
        let compiled = match some(&[("hits", kernels.hits), ("refusals", kernels.refusals)]) {
            _ if kernels.kernels == 0 && kernels.refusals == 0 => String::new(),
            none if none.is_empty() => none,
            some => format!(" ({some})"),
        };
        let compiled = match kernels.kernels {
            0 => compiled,
            count => {
                let ms = kernels.compile_ns as f64 / 1e6;
                format!("; {count} kernels compiled in {ms:.3} ms{compiled}")
            }
        };
        Ok(format!(
            "typepack: {who}: messages {}{protocols}, {} bytes sent; bytes moved {moved}{compiled}{counted}{choices}",
            traffic.messages, traffic.bytes
        ))
    }
}

/// Returns the job's segment. Returns `None` if no launcher started this process, and in a forked child, which does
/// not map the segment.
fn segment() -> Option<&'static Segment> {
    membership::get().filter(|_| !fork::is_child()).map(|attached| &*attached.segment)
}

/// Returns a variable that `mpiexec` has set for this rank, or `None` if `mpiexec` did not start this
/// process. Without a launcher the variable is not read: it may come from another job, if a rank of that job
/// started this process.
fn advertised(name: &str) -> Option<String> {
    membership::get().filter(|_| !starter::is_adopted()).and_then(|_| std::env::var(name).ok())
}

impl Drop for Universe {
    fn drop(&mut self) {
        // The result needs no report here. `finalize` fails if a rank of the job has died, and then the
        // launcher reports the death. It also fails in a forked child that drops its copy of the `Universe`,
        // and there it changes nothing.
        let _reported_by_the_launcher =
            self.leave(|endpoint| endpoint.finalize(!std::thread::panicking()));
    }
}

/// Returns how many ranks of the job, including this one, run this process's program. Unlike
/// [`Universe::app_size`], this function also works before the process has joined the job, and it returns 1 if no
/// launcher started the process. Returns `None` if the process cannot join a job, like a child of a rank.
pub fn program_size() -> Option<u32> {
    if let Some(attached) = membership::get() {
        let segment = segment()?;
        let own = segment.program(attached.slot)?;
        let ranks = attached.world.clone().filter(|slot| segment.program(*slot) == Some(own));
        return u32::try_from(ranks.count()).ok();
    }
    match attach::is_offered() {
        Ok(true) => std::env::var(attach::APP_SIZE).ok()?.parse().ok(),
        // Another launcher tells the programs of the ranks when all ranks have joined.
        Ok(false) => starter::is_offered().is_ok_and(|is_offered| !is_offered).then_some(1),
        Err(_) => None,
    }
}

/// Returns the host name of this machine.
#[doc(alias = "MPI_Get_processor_name")]
pub fn processor_name() -> Vec<u8> {
    machine::host_name()
}

/// Returns the time in seconds since a fixed moment in the past. All processes of the machine use the same
/// moment.
#[doc(alias = "MPI_Wtime")]
pub fn wtime() -> f64 {
    clock::monotonic()
}

/// Returns the resolution of [`wtime`] in seconds.
#[doc(alias = "MPI_Wtick")]
pub fn wtick() -> f64 {
    clock::resolution()
}

/// Ends the job: this process exits at once, and the launcher ends the other ranks.
///
/// The exit code is the lowest eight bits of `code`, because the system keeps no more bits. If these bits
/// are 0, the exit code is 1, so that the launcher sees a failure.
#[doc(alias = "MPI_Abort")]
pub fn abort(code: i32) -> ! {
    let code = if code & 0xff == 0 { 1 } else { code };
    if let Some(segment) = segment() {
        segment.mark_aborting();
        starter::abort(code);
    }
    crate::sys::process::end(code)
}
