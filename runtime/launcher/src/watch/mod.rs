//! Watches a job until all its ranks have ended.
//!
//! A job consists of worlds, groups of ranks that start together (`start.rs`). The ranks of the command line are the
//! first world; [`Job::start`] adds others while the job runs, when ranks ask for them (`requests.rs`). Each world has an
//! end of its own (`ending.rs`): a failure ends the world of the rank that has failed, and the worlds that are connected
//! with it (`bonds.rs`). This file polls all descriptors, passes events to `ending.rs`,
//! output to `forward.rs` and input to `input.rs`, prints what the ranks wait for (`waits.rs`), and answers each
//! process that registers as a rank (`shm/attach.rs`).
//!
//! Invariants:
//! - While it watches a job, mpiexec blocks nowhere except in `poll`.
//! - mpiexec reaps the children of a world only after all ranks of the world have ended and its groups have (`ended.rs`),
//!   so that until then the kernel does not reuse the ids of their process groups.
//! - The thread that runs this code is the thread that forked the ranks, because the kernel kills the ranks
//!   when that thread ends.

mod adopted;
mod bonds;
mod deaths;
mod ended;
mod groups;
mod messages;
mod ports;
mod requests;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use typepack_job::shm::segment::Segment;
use typepack_job::sys::poll::{self, PollFd, PollFlags};
use typepack_job::sys::process::{self, Child, ExecFailure, Exit};
use typepack_job::sys::signal;
use typepack_job::sys::stream::{self, Transfer};

pub use self::adopted::Adopted;
use self::bonds::Bonds;
use self::ended::Left;
use self::ports::Ports;
use self::requests::Asked;
use crate::args;
use crate::core_reservation::Reservation;
use crate::ending::{Action, End, Outcome};
use crate::forward::{Outputs, Source, Trouble};
use crate::input::Input;
use crate::resolve::Found;
use crate::start;
use crate::waits::{self, Watchdog};

/// How long mpiexec waits for the exit code of a wrapper after the rank inside the wrapper has died, or for
/// the end of the rank after its wrapper has failed. A wrapper is a process, such as a shell, that mpiexec
/// has started and that itself starts the rank.
const WRAPPER_DELAY: Duration = Duration::from_millis(100);

/// How long mpiexec goes on forwarding output after all ranks have ended without a failure. Processes that a
/// rank has left behind may keep a pipe open longer; mpiexec discards their later output.
const LINGER: Duration = Duration::from_millis(250);

/// The line before what the ranks wait for if the user has sent a signal.
const ASKED: &str = "what the ranks wait for:";

/// The process that has joined the job as a rank.
#[derive(Debug)]
struct Member {
    pid: Pid,
    pidfd: OwnedFd,
    gone: bool,
}

/// What mpiexec knows about one rank.
#[derive(Debug)]
struct Watched {
    /// The id of the process that mpiexec has started, and of its group; `None` if another launcher has started the rank.
    pid: Option<Pid>,
    /// This process; `None` if nothing of its world is left (`ended.rs`). The kernel may then reuse the id.
    process: Option<start::Started>,
    /// The pipes from the rank's standard output and standard error.
    streams: Vec<Source>,
    /// The index of its world in `Job::worlds`.
    world: usize,
    member: Option<Member>,
    exit: Option<Exit>,
    /// True if the failure of this rank has been handled.
    failed: bool,
    /// The rank's exit code, if the rank has finalized and the code is not 0.
    parting: Option<u8>,
    /// If only one of the member and its wrapper has ended, the time until which mpiexec waits for the other
    /// one to end. `None` if mpiexec is not waiting in this way.
    wrapper_until: Option<Instant>,
    /// If another launcher has started the rank: a copy of the rank's connection to it, until the rank takes leave of it or
    /// one of the two has ended.
    starter: Option<OwnedFd>,
    /// True if nothing more can come through the control socket.
    is_deaf: bool,
}

impl Watched {
    /// Returns true if all known processes of the rank have ended.
    fn is_gone(&self) -> bool {
        let is_known = match self.pid {
            Some(_) => self.exit.is_some(),
            // It is no child of mpiexec. When the time is over, nobody will tell any more how it has ended.
            None => self.wrapper_until.is_none(),
        };
        is_known && self.member.as_ref().is_none_or(|member| member.gone)
    }

    /// Returns the process id to show in messages: that of the process that has joined as this rank, or, if
    /// none has joined, that of the process that mpiexec has started.
    fn pid(&self) -> i32 {
        let member = self.member.as_ref().map(|member| member.pid);
        member.or(self.pid).map_or(0, |pid| pid.as_raw_nonzero().get())
    }

    /// Returns true if a process has joined as this rank and is not the process that mpiexec has started.
    fn is_wrapped(&self) -> bool {
        self.member.as_ref().is_some_and(|member| Some(member.pid) != self.pid)
    }
}

/// What mpiexec knows about the ranks that it has started together.
#[derive(Debug)]
struct World {
    /// The slots of the ranks, which are also their indices in `Job::ranks`.
    slots: Range<usize>,
    plan: Rc<args::Job>,
    report: Option<OwnedFd>,
    end: End,
    /// True if the ranks know of a failure.
    has_told: bool,
    /// The cores of the ranks, until all ranks have ended.
    cores: Option<Reservation>,
    /// True if ranks of this world share cores with each other or with other jobs.
    shares_cores: bool,
    /// The rank that has asked for this world and waits for the answer.
    asked: Option<Asked>,
    /// True if a rank has asked for this world.
    is_later: bool,
    /// True if a program of the world could not be executed. The rank that has asked for the world knows.
    is_refused: bool,
    /// What is left of the world after all its ranks have ended.
    left: Left,
}

/// The source of an event: what a polled descriptor belongs to.
#[derive(Clone, Copy, Debug)]
enum Event {
    Signal,
    Report(usize),
    Control(usize),
    Child(usize),
    Member(usize),
    Starter(usize),
    Output(usize, usize),
    Input,
    Other,
}

/// A running job.
#[derive(Debug)]
pub struct Job<'a> {
    segment: Segment,
    /// The ranks of all worlds, by slot.
    ranks: Vec<Watched>,
    worlds: Vec<World>,
    bonds: Bonds,
    ports: Ports,
    /// The worlds whose outcome is decided, in the order in which that happened.
    decided: Vec<usize>,
    /// The lines about these outcomes that mpiexec has printed.
    told: Vec<String>,
    input: Input,
    outputs: &'a mut Outputs,
    signals: BorrowedFd<'a>,
    plan: Rc<args::Job>,
    machine: &'a start::Machine<'a>,
    started: Instant,
    /// Looks whether anything moves; `None` if that is switched off, or if it has told that nothing does.
    watchdog: Option<Watchdog>,
    /// True if mpiexec no longer uses the ids of the process groups. The kernel may then reuse them.
    groups_ended: bool,
    /// True if the user does not want to wait for the rest of the output.
    impatient: bool,
}

impl<'a> Job<'a> {
    /// Makes the state that watches a job, which has no ranks yet. The time limit of `plan` begins now. If nothing in
    /// the job moves for the time `watchdog`, mpiexec tells what the ranks wait for.
    pub fn new(
        segment: Segment,
        outputs: &'a mut Outputs,
        (signals, input): (BorrowedFd<'a>, Input),
        (plan, watchdog): (Rc<args::Job>, Option<Duration>),
        machine: &'a start::Machine<'a>,
    ) -> Self {
        let now = Instant::now();
        Self {
            bonds: Bonds::default(),
            ports: Ports::new(&segment),
            segment,
            ranks: Vec::new(),
            worlds: Vec::new(),
            decided: Vec::new(),
            told: Vec::new(),
            input,
            outputs,
            signals,
            plan,
            machine,
            started: now,
            watchdog: watchdog.map(|period| Watchdog::new(period, now)),
            groups_ended: false,
            impatient: false,
        }
    }

    /// Starts the ranks that `plan` describes as a new world of this job. `programs` are the programs of the plan, and
    /// `cores` the cores of the ranks. `parent` is the slot of the rank that has asked for the world.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the world cannot be started. Then no process of it remains, and the job goes on.
    pub fn start(
        &mut self,
        plan: Rc<args::Job>,
        (programs, cores): (&[Found], Reservation),
        stdin: Option<OwnedFd>,
        parent: Option<usize>,
    ) -> Result<(), String> {
        let world = self.worlds.len();
        let placed = cores.cores.as_deref();
        let setting = start::Setting { programs, placed, world, parent, machine: self.machine };
        let started = start::start(&self.segment, (self.ranks.len(), &plan), &setting, stdin)?;
        self.ranks.extend(started.ranks.into_iter().map(|rank| Watched {
            pid: rank.process.child.as_ref().map(Child::pid),
            process: Some(rank.process),
            streams: rank.streams,
            world,
            member: None,
            exit: None,
            failed: false,
            parting: None,
            wrapper_until: None,
            starter: None,
            is_deaf: false,
        }));
        self.worlds.push(World {
            slots: started.slots,
            end: End::new(plan.kill_after),
            plan,
            report: Some(started.report),
            has_told: false,
            shares_cores: start::shares_cores(&cores),
            cores: Some(cores),
            asked: None,
            is_later: parent.is_some(),
            is_refused: false,
            left: Left::default(),
        });
        Ok(())
    }

    /// Watches the job until all ranks have ended and their output is written. Returns the exit code of
    /// mpiexec.
    pub fn run(mut self) -> u8 {
        while !self.ranks.iter().all(Watched::is_gone) {
            let now = Instant::now();
            let deadlines = self.ranks.iter().filter_map(|rank| rank.wrapper_until);
            let deadline = deadlines
                .chain(self.worlds.iter().filter_map(|world| world.end.deadline()))
                .chain(self.worlds.iter().filter_map(|world| world.left.deadline()))
                .chain(self.input.deadline())
                .chain(self.time_is_over_at())
                .chain(self.watchdog.as_ref().map(Watchdog::deadline))
                .min();
            self.turn(deadline, now);
        }
        self.end_groups();
        self.drain();
        self.tell_outcomes();
        if self.plan.exit_codes {
            self.tell_exit_codes();
        }
        self.write_out();
        self.outcomes().next().map_or(0, Outcome::exit_code)
    }

    /// Returns the outcomes of the worlds, in the order in which they were decided.
    fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.decided.iter().filter_map(|&world| self.worlds[world].end.outcome())
    }

    /// Tells why worlds have ended, each reason once.
    fn tell_outcomes(&mut self) {
        for number in self.decided.clone() {
            self.tell_outcome(number);
        }
    }

    /// Tells why a world has ended whose outcome is decided, unless this reason is told already.
    fn tell_outcome(&mut self, number: usize) {
        let world = &self.worlds[number];
        // `survive` has already told of the failures of a world that went on.
        let is_told = world.plan.goes_on && world.end.is_natural();
        if !is_told
            && !self.parted_as_one(world)
            && let Some(line) = world.end.outcome().and_then(|outcome| self.line(outcome))
            && !self.told.contains(&line)
        {
            self.outputs.tell(&line);
            self.told.push(line);
        }
    }

    /// Returns the line that reports an outcome.
    fn line(&self, outcome: &Outcome) -> Option<String> {
        let program = match outcome {
            Outcome::Failed(failure, _) => {
                let World { plan, is_later, .. } = &self.worlds[failure.world];
                let program = &plan.apps[plan.app_of(failure.rank)].program;
                is_later.then(|| program.to_string_lossy())
            }
            _ => None,
        };
        outcome.line(program.as_deref())
    }

    /// Returns true if all ranks of a world have ended.
    fn is_over(&self, world: &World) -> bool {
        self.ranks[world.slots.clone()].iter().all(Watched::is_gone)
    }

    /// Returns the time at which the job's time limit expires, or `None` if there is no limit or the job is
    /// already ending.
    fn time_is_over_at(&self) -> Option<Instant> {
        let limit = self.plan.timeout.filter(|_| !self.is_ending())?;
        self.started.checked_add(limit)
    }

    /// Returns true if mpiexec has told all ranks to end that have not ended.
    fn is_ending(&self) -> bool {
        let mut running = self.worlds.iter().filter(|world| !self.is_over(world)).peekable();
        match running.peek() {
            Some(_) => running.all(|world| world.end.is_ending()),
            None => self.worlds.iter().all(|world| world.end.is_ending()),
        }
    }

    /// Returns what the descriptions of waits need to know about the ranks.
    fn waiting_ranks(&self) -> Vec<waits::Rank> {
        let of = |(index, watched): (usize, &Watched)| {
            let member = watched.member.as_ref().filter(|member| !member.gone);
            let member = member.map(|member| member.pid.as_raw_nonzero().get());
            let number = index - self.worlds[watched.world].slots.start;
            waits::Rank { number, world: watched.world, member, gone: watched.is_gone() }
        };
        self.ranks.iter().enumerate().map(of).collect()
    }

    /// Prints `reason`, and a line for each rank that says what it waits for. If no rank waits, prints nothing unless
    /// `always` is true.
    fn tell_waits(&mut self, reason: &str, always: bool) {
        let (lines, any) = waits::lines(&self.segment, &self.waiting_ranks());
        if any || always {
            self.outputs.tell(reason);
            for line in lines {
                self.outputs.tell(&line);
            }
        }
    }

    /// Tells once if nothing in the job moves.
    fn look_for_hang(&mut self, now: Instant) {
        let Some(mut watchdog) = self.watchdog.take() else { return };
        if self.is_ending() {
            return;
        }
        match watchdog.look(&self.segment, &self.waiting_ranks(), now) {
            None => self.watchdog = Some(watchdog),
            Some(time) => {
                let reason = format!(
                    "nothing has moved for {:.0} s: every rank waits in a call; the job goes on (TYPEPACK_WATCHDOG=0: \
                     no such message)",
                    time.as_secs_f64().max(1.0)
                );
                self.tell_waits(&reason, true);
            }
        }
    }

    fn tell_exit_codes(&mut self) {
        let code = |watched: &Watched| match watched.exit {
            Some(Exit::Code(code)) => code.to_string(),
            Some(Exit::Signal(signal)) => (128 + u32::from(signal)).to_string(),
            None => "?".to_owned(),
        };
        // For the program, a refused world was never started.
        let ranks = self.ranks.iter().filter(|watched| !self.worlds[watched.world].is_refused);
        let codes: Vec<String> = ranks.map(code).collect();
        self.outputs.tell(&format!("exit codes: {}", codes.join(",")));
    }

    /// Returns true if all ranks of a world finalized and then exited with the same code other than 0. Such a code is
    /// the program's own result (for a bad argument, for example), and the program has printed the reason
    /// itself.
    fn parted_as_one(&self, world: &World) -> bool {
        let ranks = &self.ranks[world.slots.clone()];
        let first = ranks.first().and_then(|watched| watched.parting);
        first.is_some() && ranks.iter().all(|watched| watched.parting == first)
    }

    /// Waits until `deadline` or until an event arrives, and handles the events.
    fn turn(&mut self, deadline: Option<Instant>, now: Instant) {
        let (ready, broken) = self.poll(deadline, now);
        if let Some(error) = broken {
            let why = format!("cannot wait for the ranks: {error}");
            self.decide_all(|end| end.broken(Outcome::Broken(why.clone())));
        }
        let now = Instant::now();
        // Handle deaths before output, because the other ranks must learn of a death as soon as possible.
        // This loses no output of the dead rank, because mpiexec reads the rest of all output at the end.
        for event in &ready {
            match *event {
                Event::Signal => self.take_signals(now),
                Event::Report(world) => self.take_report(world),
                Event::Control(rank) => self.take_messages(rank, now),
                Event::Child(rank) => self.take_child(rank, now),
                Event::Member(rank) => self.take_member(rank, now),
                Event::Starter(rank) => self.take_starter(rank, now),
                Event::Input => self.input.read(now),
                Event::Output(..) | Event::Other => {}
            }
        }
        for event in ready {
            if let Event::Output(rank, which) = event {
                self.ranks[rank].streams[which].pump(self.outputs);
            }
        }
        self.input.write();
        self.flush(now);
        let until = |rank: &usize| self.ranks[*rank].wrapper_until;
        let is_due = |rank: &usize| until(rank).is_some_and(|until| until <= now);
        let mut due: Vec<usize> = (0..self.ranks.len()).filter(is_due).collect();
        // The one that ended first has perhaps ended the others.
        due.sort_by_key(until);
        for rank in due {
            self.judge_wrapped(rank, now);
        }
        self.check_strangers(now);
        self.clear_worlds(now);
        if let Some(limit) = self.plan.timeout
            && self.time_is_over_at().is_some_and(|at| at <= now)
        {
            self.tell_waits("the time is over; what the ranks wait for:", false);
            self.decide_all(|end| end.timed_out(limit, now));
        }
        self.decide_all(|end| end.tick(now));
        self.look_for_hang(now);
    }

    /// Polls all descriptors until an event arrives or `deadline` has passed. Returns the events, and the
    /// error if polling failed.
    fn poll(
        &self,
        deadline: Option<Instant>,
        now: Instant,
    ) -> (Vec<Event>, Option<std::io::Error>) {
        let mut fds = Vec::with_capacity(self.ranks.len() * 5 + self.worlds.len() + 5);
        let mut events = Vec::with_capacity(fds.capacity());
        let mut add = |event, fd, flags| {
            fds.push(PollFd::from_borrowed_fd(fd, flags));
            events.push(event);
        };
        add(Event::Signal, self.signals, PollFlags::IN);
        for (index, world) in self.worlds.iter().enumerate() {
            if let Some(report) = &world.report {
                add(Event::Report(index), report.as_fd(), PollFlags::IN);
            }
        }
        for (index, watched) in self.ranks.iter().enumerate() {
            if let Some(process) = &watched.process {
                if !watched.is_gone() && !watched.is_deaf {
                    add(Event::Control(index), process.control.as_fd(), PollFlags::IN);
                }
                if watched.exit.is_none()
                    && let Some(child) = &process.child
                {
                    add(Event::Child(index), child.pidfd(), PollFlags::IN);
                }
            }
            match &watched.member {
                Some(member) if !member.gone && watched.is_wrapped() => {
                    add(Event::Member(index), member.pidfd.as_fd(), PollFlags::IN);
                }
                _ => {}
            }
            if let Some(starter) = &watched.starter {
                add(Event::Starter(index), starter.as_fd(), PollFlags::RDHUP);
            }
            for (which, source) in watched.streams.iter().enumerate() {
                if let Some(fd) = source.fd().filter(|_| self.outputs.has_room(source.stream())) {
                    add(Event::Output(index, which), fd, PollFlags::IN);
                }
            }
        }
        for fd in self.outputs.waiting() {
            add(Event::Other, fd, PollFlags::OUT);
        }
        if let Some(fd) = self.input.source(now) {
            add(Event::Input, fd, PollFlags::IN);
        }
        if let Some(fd) = self.input.target() {
            add(Event::Other, fd, PollFlags::OUT);
        }
        // Make the timeout a little longer, because waking up just before the deadline would merely lead to
        // another poll.
        let timeout = deadline
            .map(|deadline| deadline.saturating_duration_since(now) + Duration::from_micros(500));
        match poll::wait(&mut fds, timeout) {
            Ok(()) => {
                let ready = events.iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
                (ready.map(|(event, _)| *event).collect(), None)
            }
            Err(error) => (Vec::new(), Some(error)),
        }
    }

    fn take_signals(&mut self, now: Instant) {
        while let Ok(Some(signal)) = signal::next(self.signals) {
            match signal {
                libc::SIGTSTP => {
                    self.signal_all(libc::SIGSTOP);
                    process::stop_self();
                    self.signal_all(libc::SIGCONT);
                    if let Some(watchdog) = &mut self.watchdog {
                        watchdog.restart();
                    }
                }
                libc::SIGQUIT => self.tell_waits(ASKED, true),
                libc::SIGUSR1 => {
                    self.tell_waits(ASKED, true);
                    self.signal_handlers(signal);
                }
                libc::SIGUSR2 => self.signal_all(signal),
                // mpiexec blocks SIGTTIN and SIGTTOU so that they do not stop it, and otherwise ignores them.
                // `input.rs` checks whether mpiexec is in the background before it reads from the terminal.
                libc::SIGTTIN | libc::SIGTTOU => {}
                _ => {
                    // A second signal, or a signal after the ranks have ended, means that the user does not
                    // want to wait for the rest of the output.
                    self.impatient |= self.is_ending() || self.groups_ended;
                    if !self.impatient && matches!(signal, libc::SIGINT | libc::SIGTERM) {
                        self.tell_waits(ASKED, false);
                    }
                    self.decide_all(|end| end.signalled(signal, now));
                }
            }
        }
    }

    /// Handles an event of the report pipe of a world: either a child could not execute its program, or the pipe is at
    /// end-of-file, because every child has succeeded in its exec or has exited.
    fn take_report(&mut self, number: usize) {
        let world = &mut self.worlds[number];
        let Some(report) = &world.report else { return };
        let mut record = [0; ExecFailure::BYTES];
        match stream::read(report.as_fd(), &mut record) {
            Ok(Transfer::Moved(ExecFailure::BYTES)) => {
                let failure = ExecFailure::parse(record);
                let error = std::io::Error::from_raw_os_error(failure.errno);
                let code = if failure.errno == libc::ENOENT { 127 } else { 126 };
                let rank = failure.number as usize;
                let number_of_app = world.plan.app_of(rank);
                let app = &world.plan.apps[number_of_app];
                let why = match &app.directory {
                    Some(directory) if !directory.is_dir() => {
                        format!("-wdir: '{}': {error}", directory.display())
                    }
                    _ => format!(
                        "program: '{}' cannot be run: {error}",
                        app.program.to_string_lossy()
                    ),
                };
                if world.is_later {
                    return self.refuse_world(number, number_of_app, why);
                }
                self.decide(number, |end| end.broken(Outcome::NotStarted(why, code)));
            }
            Ok(Transfer::Later) => {}
            _ => {
                world.report = None;
                self.confirm_world(number);
            }
        }
    }

    /// Passes an event to the state machine of a world, and carries out the action that it returns.
    fn decide(&mut self, number: usize, event: impl FnOnce(&mut End) -> Option<Action>) {
        let world = &mut self.worlds[number];
        let action = event(&mut world.end);
        if world.end.outcome().is_some() && !world.is_refused && !self.decided.contains(&number) {
            self.decided.push(number);
            self.tell_adopted(number);
        }
        let world = &self.worlds[number];
        let outcome = world.end.outcome();
        match action {
            None => {}
            Some(Action::Signal(signal)) => {
                let failure = match outcome {
                    Some(Outcome::Failed(failure, _)) if !world.has_told => Some(*failure),
                    _ => None,
                };
                if let Some(failure) = failure {
                    self.tell_failure(number, failure);
                }
                self.signal_world(number, signal);
                // A stopped process does not handle the signal until it continues.
                self.signal_world(number, libc::SIGCONT);
            }
            Some(Action::Kill) => self.signal_world(number, libc::SIGKILL),
        }
    }

    /// Passes an event to the state machines of all worlds.
    fn decide_all(&mut self, event: impl Fn(&mut End) -> Option<Action>) {
        for number in 0..self.worlds.len() {
            self.decide(number, &event);
        }
    }

    /// Returns true if nothing has ended a world. A world that was refused does not count.
    fn is_natural(&self) -> bool {
        self.worlds.iter().all(|world| world.is_refused || world.end.is_natural())
    }

    /// After all ranks have ended, forwards output and handles signals until `deadline` or until an event
    /// arrives.
    fn turn_ended(&mut self, deadline: Option<Instant>, now: Instant) {
        let (ready, broken) = self.poll(deadline, now);
        self.impatient |= broken.is_some();
        let now = Instant::now();
        for event in ready {
            match event {
                Event::Signal => self.take_signals(now),
                Event::Report(world) => self.take_report(world),
                Event::Output(rank, which) => {
                    self.ranks[rank].streams[which].pump(self.outputs);
                }
                _ => {}
            }
        }
        self.flush(now);
    }

    /// Reads the rest of the output from the ranks' pipes. The ranks have ended, so all their output is
    /// already in the pipes. If the job did not fail, this function also waits briefly for output from
    /// processes that ranks have left behind.
    fn drain(&mut self) {
        let until = Instant::now() + LINGER;
        loop {
            let (mut open, mut full) = (false, false);
            for source in self.ranks.iter_mut().flat_map(|watched| &mut watched.streams) {
                while self.outputs.has_room(source.stream()) && source.pump(self.outputs) {}
                open |= source.fd().is_some();
                full |= source.fd().is_some() && !self.outputs.has_room(source.stream());
            }
            let now = Instant::now();
            self.flush(now);
            if self.impatient {
                break;
            } else if full {
                self.turn_ended(None, now);
            } else if open && self.is_natural() && now < until {
                self.turn_ended(Some(until), now);
            } else {
                break;
            }
        }
        for source in self.ranks.iter_mut().flat_map(|watched| &mut watched.streams) {
            source.finish(self.outputs);
        }
    }

    /// Writes all queued output, and waits for the reader as long as necessary. If the user sends a signal,
    /// the function stops waiting.
    fn write_out(&mut self) {
        self.flush(Instant::now());
        while !self.outputs.is_empty() && !self.impatient {
            self.turn_ended(None, Instant::now());
        }
    }

    fn flush(&mut self, now: Instant) {
        let Err(trouble) = self.outputs.flush() else { return };
        let outcome = match trouble {
            Trouble::Closed => Outcome::OutputClosed,
            Trouble::Failed(error) => {
                Outcome::Broken(format!("cannot write to standard output: {error}"))
            }
        };
        self.decide_all(|end| end.output_lost(outcome.clone(), now));
    }
}
