//! `mpiexec --behind`: watches ranks that it has not started.
//!
//! The library starts this process in the first rank (`runtime/job/src/starter/watcher.rs`), with a connection to it as
//! standard input: if another launcher has started the ranks, or if a program that is by itself wants to start processes or
//! to meet others. Users do not start it. The process makes the memory of the job, waits until all ranks have said hello,
//! gives each of them the memory, and then does what `mpiexec` does for ranks of its own (`watch/`). It forwards no input.
//! The output of ranks that are started later goes to that of the first rank.
//!
//! The ranks run where the other launcher or the user has put them. The table of CPUs says which CPUs these are, and the
//! slot of a rank to which of them it is bound.
//!
//! Invariants: until all ranks are there, the end of the first rank or of any rank ends this process, so that no rank waits
//! for one that will not come. Only processes of this user are answered.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use typepack_job::shm::segment::Segment;
use typepack_job::shm::topology::CpuInfo;
use typepack_job::starter::messages::{self, ARGUMENT, Greeting, Hello, MESSAGE_MAX, READY};
use typepack_job::sys::channel::{self, LauncherEnd};
use typepack_job::sys::poll::{self, PollFd, PollFlags};
use typepack_job::sys::process::{self, CpuSet};
use typepack_job::sys::{detach, inspect, local_socket, machine, signal};

use crate::about;
use crate::args::{self, Request, Surroundings};
use crate::core_reservation::{self, Reservation};
use crate::forward::{Outputs, Stream};
use crate::placement::{Core, level_of};
use crate::start::{self, Made};
use crate::topology;
use crate::waits;
use crate::watch::{self, Adopted};

/// The signals that this process reads: those that ask it to end.
const SIGNALS: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// What a rank has said, and the connection by which it has said it.
struct Said {
    hello: Hello,
    connection: OwnedFd,
    starter: Option<OwnedFd>,
}

/// A rank that has said hello.
struct Arrived {
    said: Said,
    pid: rustix::process::Pid,
    pidfd: OwnedFd,
}

/// A rank that will say hello.
struct Expected {
    pid: rustix::process::Pid,
    pidfd: OwnedFd,
}

impl Expected {
    /// Takes hold of the process of a rank.
    ///
    /// # Errors
    ///
    /// Returns the kernel's error: `ESRCH` if the process has ended, also if another process has got its number meanwhile, and
    /// `EMFILE` if there are no more descriptors.
    fn of(told: messages::Process) -> io::Result<Self> {
        let number = i32::try_from(told.pid).map_err(|_| io::ErrorKind::InvalidInput)?;
        let pid = rustix::process::Pid::from_raw(number).ok_or(io::ErrorKind::InvalidInput)?;
        let pidfd = process::watch(pid)?;
        // The descriptor keeps its process. So if the number has the right process now, the descriptor has it, too, unless it has
        // ended.
        let is_other = |started| {
            told.started != 0 && started != told.started && !process::has_ended(pidfd.as_fd())
        };
        if inspect::started(number).is_some_and(is_other) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(Self { pid, pidfd })
    }
}

/// Returns true if the arguments of `mpiexec` ask for this process.
pub fn is_wanted() -> bool {
    std::env::args_os().nth(1).is_some_and(|argument| argument == ARGUMENT)
}

/// Watches the ranks until all have ended. Returns the exit code, which nobody reads.
///
/// # Errors
///
/// Returns a one-line message if there is no job.
pub fn run() -> Result<u8, String> {
    // 1. Keep nothing of the rank but the connection to it.
    let setup = io::stdin().as_fd().try_clone_to_owned().ok();
    let setup = setup.filter(|setup| channel::is_control(setup.as_fd()));
    let setup =
        setup.ok_or_else(|| format!("{ARGUMENT}: only the library calls mpiexec in this way"))?;
    let setup = keep_only(setup).map_err(failed("cannot take the connection to the first rank"))?;
    detach::detach().map_err(failed("cannot make a process"))?;
    signal::restore(libc::SIGCHLD);
    let wanted = signal::SignalSet::new(&SIGNALS);
    let before = signal::block(&wanted).map_err(failed("cannot receive signals"))?;
    let signals = signal::descriptor(&wanted).map_err(failed("cannot receive signals"))?;
    let descriptors = process::raise_descriptor_limit();

    // 2. Tell the first rank who this is, and learn which processes the ranks are.
    let tell = |message: &[u8]| local_socket::send(setup.as_fd(), message, &[]);
    tell(&Greeting::own().to_bytes()).map_err(failed("the first rank has ended"))?;
    let refused = |reason: String| {
        let _ended = tell(&messages::refusal(&reason));
        Ok(1)
    };
    let expected = match expect(&setup) {
        Ok(Some(expected)) => expected,
        Ok(None) => return Ok(1),
        Err(reason) => return refused(reason),
    };
    let ranks = expected.len();
    let mut outputs = Outputs::standard().named("typepack");
    let found = plan(ranks, outputs.is_terminal(Stream::Err)).and_then(|plan| {
        let cannot = failed("cannot listen for ranks");
        let name = name();
        Ok((plan, local_socket::listen(&name).map_err(cannot)?, name))
    });
    let ((plan, watchdog), listener, name) = match found {
        Ok(found) => found,
        Err(reason) => return refused(reason),
    };
    tell(name.as_bytes()).map_err(failed("the first rank has ended"))?;

    // 3. Wait for all ranks. If one of them ends, the others learn of it when this process closes their connections.
    let Some(arrived) = gather((&setup, signals.as_fd()), &listener, expected) else {
        return Ok(1);
    };
    drop((listener, setup));

    // 4. Make the job, and let the ranks in. This process, and the ranks that it starts unbound, may use all CPUs that one
    //    of these ranks may use; until now it was bound like the first one.
    let Some((table, places, usable)) = places(&arrived) else {
        let reason = "the system does not tell on which CPUs the ranks may run";
        arrived.iter().for_each(|rank| refuse(&rank.said.connection, reason));
        return Ok(1);
    };
    let _stays_there = process::run_on(&usable);
    let bound: Option<Vec<Core>> = places.iter().cloned().collect();
    let cores = bound
        .map_or_else(Reservation::default, |bound| core_reservation::reserve_listed(&table, bound));
    let flags = start::flags(&plan, &table, &cores, &outputs);
    let made = start::make(ranks, &table, flags, false).and_then(|made| {
        made.segment.add_world(0, ranks).map_err(|error| error.to_string())?;
        Ok(made)
    });
    let Made { segment, mut input, .. } = match made {
        Ok(made) => made,
        Err(reason) => {
            arrived.iter().for_each(|rank| refuse(&rank.said.connection, &reason));
            return Ok(1);
        }
    };
    input.close();
    let mut adopted = Vec::with_capacity(ranks);
    for (rank, place) in arrived.into_iter().zip(&places) {
        let let_in = let_in(&segment, rank, place.as_ref(), &table);
        adopted.push(let_in.map_err(failed("cannot let a rank in"))?);
    }

    // 5. Watch it, and start what its ranks ask for.
    let host = machine::host_name();
    let host = String::from_utf8_lossy(&host);
    let library = about::library_folder();
    let (host, library) = (&*host, library.as_deref());
    let machine = start::Machine { host, library, table: &table, signals: before, descriptors };
    let (plan, fds) = (Rc::new(plan), (signals.as_fd(), input));
    let mut job = watch::Job::new(segment, &mut outputs, fds, (plan.clone(), watchdog), &machine);
    job.adopt(plan, adopted, cores);
    Ok(job.run())
}

/// Returns a function that turns the error of a system call into a one-line message.
fn failed(what: &'static str) -> impl Fn(io::Error) -> String {
    move |error| format!("{what}: {error}")
}

/// Learns from the first rank which processes the ranks are, and where output goes. Returns `None` if the rank wants nothing
/// of this process.
fn expect(setup: &OwnedFd) -> Result<Option<Vec<Expected>>, String> {
    let mut buffer = [0; MESSAGE_MAX];
    let mut receive = || {
        local_socket::receive(setup.as_fd(), &mut buffer)
            .map(|(len, fds)| (buffer[..len].to_vec(), fds))
    };
    let (message, outputs) = receive().map_err(failed("no number of ranks"))?;
    // If the rank wants nothing of this process, it closes the connection.
    let Some(ranks) = messages::parse_ranks(&message) else { return Ok(None) };
    if let [out, err] = outputs.as_slice() {
        let cannot = failed("cannot use standard output");
        detach::use_as_outputs(out.as_fd(), err.as_fd()).map_err(cannot)?;
    }
    let mut expected: Vec<Expected> = Vec::with_capacity(ranks);
    while expected.len() < ranks {
        let (message, _) = receive().map_err(failed("cannot learn the processes of the ranks"))?;
        if message.is_empty() {
            return Ok(None);
        }
        let told = messages::parse_processes(&message).ok_or_else(|| {
            let rank = expected.len();
            format!("the launcher's table has no processes for the ranks from {rank} on")
        })?;
        for process in told {
            let rank = expected.len();
            expected.push(Expected::of(process).map_err(|error| match error.raw_os_error() {
                Some(libc::ESRCH) => {
                    format!("rank {rank} (process {}) has ended early", process.pid)
                }
                _ => format!("cannot watch rank {rank} (process {}): {error}", process.pid),
            })?);
        }
    }
    expected.truncate(ranks);
    Ok(Some(expected))
}

/// Returns what a command line would say about these ranks and those that they start, and the time of the watchdog.
fn plan(ranks: usize, is_terminal: bool) -> Result<(args::Job, Option<Duration>), String> {
    let variable = |name| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let watchdog = waits::period(variable("TYPEPACK_WATCHDOG").as_deref(), is_terminal)?;
    let bind = variable("TYPEPACK_BIND");
    let words = ["-n".into(), ranks.to_string(), "rank".into()].map(OsString::from);
    let surroundings =
        Surroundings { bind: bind.as_deref(), timeout: None, host: "", parts: |_| 1 };
    match args::parse(words, surroundings)? {
        Request::Run(plan) => Ok((*plan, watchdog)),
        _ => Err(format!("{ARGUMENT}: no plan for {ranks} ranks")),
    }
}

/// Closes all descriptors but the standard ones and `setup`, and makes standard input empty. Returns another descriptor for
/// `setup`.
fn keep_only(setup: OwnedFd) -> io::Result<OwnedFd> {
    // Standard input is `setup`, too; only it survives.
    drop(setup);
    detach::close_inherited();
    let setup = io::stdin().as_fd().try_clone_to_owned()?;
    detach::empty_stdin()?;
    Ok(setup)
}

/// Returns a name at which nobody listens.
fn name() -> String {
    let number = RandomState::new().hash_one(process::own_id());
    format!("typepack-job-{}-{number:016x}", process::own_id())
}

/// Tells a process why it is not let in. If it has ended, it need not know.
fn refuse(connection: &OwnedFd, reason: &str) {
    let _ended = local_socket::send(connection.as_fd(), &messages::refusal(reason), &[]);
}

/// Waits until the ranks `expected` have said hello, and returns them in the order of their numbers. Returns `None` if one of
/// them ends before, if the first rank closes the connection `setup`, if a signal comes, and if the system refuses a call;
/// those that have said hello learn why.
fn gather(
    (setup, signals): (&OwnedFd, BorrowedFd<'_>),
    listener: &OwnedFd,
    expected: Vec<Expected>,
) -> Option<Vec<Arrived>> {
    let mut hellos: Vec<Option<Said>> = expected.iter().map(|_| None).collect();
    match hear((setup, signals), listener, &expected, &mut hellos) {
        Ok(()) => {
            let arrived = expected.into_iter().zip(hellos.into_iter().flatten());
            let arrived =
                arrived.map(|(rank, said)| Arrived { said, pid: rank.pid, pidfd: rank.pidfd });
            Some(arrived.collect())
        }
        Err(reason) => {
            hellos.iter().flatten().for_each(|said| refuse(&said.connection, &reason));
            None
        }
    }
}

/// Waits until `hellos` has the hello of each of the ranks `expected`.
///
/// # Errors
///
/// Returns the reason why it waits no longer.
fn hear(
    (setup, signals): (&OwnedFd, BorrowedFd<'_>),
    listener: &OwnedFd,
    expected: &[Expected],
    hellos: &mut [Option<Said>],
) -> Result<(), String> {
    let mut waiting: Vec<OwnedFd> = Vec::new();
    let cannot = failed("cannot wait for the ranks");
    while hellos.iter().any(Option::is_none) {
        let mut fds: Vec<PollFd<'_>> =
            expected.iter().map(|rank| PollFd::new(&rank.pidfd, PollFlags::IN)).collect();
        let said = hellos.iter().flatten().map(|said| &said.connection);
        fds.extend(said.chain([setup]).map(|fd| PollFd::new(fd, PollFlags::RDHUP)));
        fds.push(PollFd::from_borrowed_fd(signals, PollFlags::IN));
        let first = fds.len();
        fds.extend(waiting.iter().chain([listener]).map(|fd| PollFd::new(fd, PollFlags::IN)));
        poll::wait(&mut fds, None).map_err(&cannot)?;
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        if let Some(ended) = ready[..first].iter().position(|ready| *ready) {
            return Err(match ended {
                rank if rank < expected.len() => format!("rank {rank} has ended early"),
                at if at + 1 == first => "a signal has ended it".to_owned(),
                _ => "a rank has given up".to_owned(),
            });
        }
        let mut ready = ready[first..].iter().copied();
        let mut silent = Vec::new();
        for connection in waiting {
            if !ready.next().unwrap_or(false) {
                silent.push(connection);
            } else if let Some((rank, said)) = listen_to(connection, expected, hellos) {
                hellos[rank] = Some(said);
            }
        }
        waiting = silent;
        if ready.next().unwrap_or(false) {
            while let Some(connection) = local_socket::accept(listener.as_fd()).map_err(&cannot)? {
                // A process of another user gets no answer.
                if local_socket::peer(connection.as_fd()).is_ok_and(|peer| peer.is_own_user) {
                    waiting.push(connection);
                }
            }
        }
    }
    Ok(())
}

/// Reads the hello of a process. Returns `None` if the process is none of the ranks `expected` that have not said it; it
/// learns why.
fn listen_to(
    connection: OwnedFd,
    expected: &[Expected],
    hellos: &[Option<Said>],
) -> Option<(usize, Said)> {
    let read = || {
        let mut buffer = [0; MESSAGE_MAX];
        let (len, fds) = local_socket::receive(connection.as_fd(), &mut buffer)
            .map_err(|error| error.to_string())?;
        let hello = Hello::parse(&buffer[..len]).ok_or("the message is not that of a rank")?;
        let rank = hello.rank as usize;
        let peer = local_socket::peer(connection.as_fd()).map_err(|error| error.to_string())?;
        match (expected.get(rank), hellos.get(rank)) {
            (Some(expected), Some(None)) if Some(expected.pid) == peer.pid => {
                Ok((hello, fds.into_iter().next()))
            }
            (Some(_), Some(None)) => Err(format!("rank {rank} is another process")),
            (Some(_), _) => Err(format!("rank {rank} has joined already")),
            (None, _) => Err(format!("rank {rank} of {}", expected.len())),
        }
    };
    match read() {
        Ok((hello, starter)) => Some((hello.rank as usize, Said { hello, connection, starter })),
        Err(reason) => {
            refuse(&connection, &reason);
            None
        }
    }
}

/// Returns the table of the machine, the place of each rank that is bound to some of the CPUs on which the ranks may run, and
/// all these CPUs. Returns `None` if the system does not tell of any rank where it may run.
fn places(ranks: &[Arrived]) -> Option<(Vec<CpuInfo>, Vec<Option<Core>>, CpuSet)> {
    let cpus_of = |rank: &Arrived| process::allowed_cpus_of(rank.pid.as_raw_nonzero().get()).ok();
    let sets: Vec<Option<CpuSet>> = ranks.iter().map(cpus_of).collect();
    let union: BTreeSet<usize> = sets.iter().flatten().flat_map(CpuSet::iter).collect();
    let union: Vec<usize> = union.into_iter().collect();
    if union.is_empty() {
        return None;
    }
    let usable = CpuSet::new(&union);
    let table = topology::discover(Some(&usable));
    let place = |set: Option<CpuSet>| {
        let cpus: Vec<usize> = set?.iter().filter(|cpu| *cpu < table.len()).collect();
        let info = *table.get(*cpus.first()?)?;
        (cpus.len() < union.len()).then_some(Core { cpus, info })
    };
    let places = sets.into_iter().map(place).collect();
    Some((table, places, usable))
}

/// Gives a rank the memory of the job.
fn let_in(
    segment: &Segment,
    rank: Arrived,
    place: Option<&Core>,
    table: &[CpuInfo],
) -> io::Result<Adopted> {
    let slot = segment.slot(rank.said.hello.rank as usize);
    let program = rank.said.hello.program.map_or(0, |program| program.saturating_add(1));
    slot.program.store(program, Ordering::Relaxed);
    slot.pid.store(rank.pid.as_raw_nonzero().get().unsigned_abs(), Ordering::Relaxed);
    if let Some(place) = place
        && let Some(level) = level_of(table, place)
    {
        slot.bind(place.cpus[0], level);
    }
    // Its process is known, so it need not wait until its message has been read.
    slot.watched.store(1, Ordering::Release);
    // A thread of the rank that has found no job and is about to sleep looks again.
    segment.call(rank.said.hello.rank as usize);
    // If the rank has ended, its pidfd says so.
    let _ended = local_socket::send(rank.said.connection.as_fd(), READY, &[segment.fd()]);
    let control = LauncherEnd::of(rank.said.connection)?;
    Ok(Adopted { control, pid: rank.pid, pidfd: rank.pidfd, starter: rank.said.starter })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    /// A child of the test that ends when it is told.
    fn child() -> Child {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("a process")
    }

    fn of(pid: u32) -> messages::Process {
        let started = inspect::started(pid.try_into().expect("a number")).expect("a process");
        messages::Process { pid, started }
    }

    /// A connection to a listener, and what it accepts.
    fn connected(listener: &OwnedFd, name: &str) -> (OwnedFd, OwnedFd) {
        let ours = local_socket::connect(name).expect("a connection");
        let theirs = local_socket::accept(listener.as_fd()).expect("an answer");
        (ours, theirs.expect("a connection"))
    }

    fn hello(connection: &OwnedFd, rank: u32) {
        let hello = Hello { rank, program: None };
        local_socket::send(connection.as_fd(), &hello.to_bytes(), &[]).expect("room");
    }

    fn answer(connection: &OwnedFd) -> String {
        let mut buffer = [0; MESSAGE_MAX];
        let (len, _) = local_socket::receive(connection.as_fd(), &mut buffer).expect("an answer");
        messages::parse_refusal(&buffer[..len]).expect("a refusal")
    }

    fn unused() -> OwnedFd {
        signal::descriptor(&signal::SignalSet::new(&[])).expect("a descriptor")
    }

    #[test]
    fn a_process_that_has_another_ones_number_is_no_rank() {
        let mut other = of(std::process::id());
        assert!(Expected::of(other).is_ok());
        other.started += 1;
        let error = Expected::of(other).err().expect("another process");
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
        other.started = 0;
        assert!(Expected::of(other).is_ok(), "the time is not known");
    }

    #[test]
    fn strange_and_second_hellos_are_refused() {
        let name = name();
        let listener = local_socket::listen(&name).expect("a name");
        let mut child = child();
        let own = || Expected::of(of(std::process::id())).expect("a process");
        let expected = [own(), Expected::of(of(child.id())).expect("a process")];
        let mut hellos = [None, None];
        for (rank, why) in [(1, "rank 1 is another process"), (2, "rank 2 of 2")] {
            let (ours, theirs) = connected(&listener, &name);
            hello(&ours, rank);
            assert!(listen_to(theirs, &expected, &hellos).is_none());
            assert_eq!(answer(&ours), why);
        }
        let (first, theirs) = connected(&listener, &name);
        hello(&first, 0);
        let (rank, said) = listen_to(theirs, &expected, &hellos).expect("a rank");
        hellos[rank] = Some(said);
        let (second, theirs) = connected(&listener, &name);
        hello(&second, 0);
        assert!(listen_to(theirs, &expected, &hellos).is_none());
        assert_eq!(answer(&second), "rank 0 has joined already");
        let (odd, theirs) = connected(&listener, &name);
        local_socket::send(odd.as_fd(), b"hello", &[]).expect("room");
        assert!(listen_to(theirs, &expected, &hellos).is_none());
        assert_eq!(answer(&odd), "the message is not that of a rank");
        child.kill().and_then(|()| child.wait()).expect("an end");
    }

    /// A rank may end after it has told its process and before it says hello.
    #[test]
    fn a_rank_that_never_says_hello_hangs_nobody() {
        let name = name();
        let listener = local_socket::listen(&name).expect("a name");
        let mut child = child();
        let own = Expected::of(of(std::process::id())).expect("a process");
        let expected = vec![own, Expected::of(of(child.id())).expect("a process")];
        child.kill().and_then(|()| child.wait()).expect("an end");
        let (setup, _first) = local_socket::pair().expect("a connection");
        let ours = local_socket::connect(&name).expect("a connection");
        hello(&ours, 0);
        let signals = unused();
        // It may see the end before the hello; then the rank's connection is closed without a word.
        assert!(gather((&setup, signals.as_fd()), &listener, expected).is_none());
    }

    /// A signal ends the wait for ranks, which all learn of it.
    #[test]
    fn a_signal_ends_the_wait_for_ranks() {
        let name = name();
        let listener = local_socket::listen(&name).expect("a name");
        let mut child = child();
        let expected = [
            Expected::of(of(std::process::id())).expect("a process"),
            Expected::of(of(child.id())).expect("a process"),
        ];
        let (setup, _first) = local_socket::pair().expect("a connection");
        // What is readable stands for the descriptor of signals here.
        let (signals, sender) = local_socket::pair().expect("a connection");
        local_socket::send(sender.as_fd(), b"x", &[]).expect("room");
        let mut hellos = [None, None];
        let heard = hear((&setup, signals.as_fd()), &listener, &expected, &mut hellos);
        assert_eq!(heard, Err("a signal has ended it".to_owned()));
        child.kill().and_then(|()| child.wait()).expect("an end");
    }
}
