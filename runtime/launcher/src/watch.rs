//! The life of a job after its start: one thread, one poll, until nobody is left.
//!
//! Takes over from `start.rs`. Feeds events to `ending.rs`, output to `forward.rs`, input to
//! `input.rs`, and answers registrations of ranks (`shm/attach.rs`).
//!
//! Invariants: nothing here blocks except the poll; a child is reaped only when its process group
//! has been dealt with, so a group's number is never anybody else's; the thread that runs this
//! is the one that forked the ranks, since their death signal is tied to it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use typepack_job::shm::failure::{Ending, Failure};
use typepack_job::shm::layout::State;
use typepack_job::shm::segment::Segment;
use typepack_job::sys::poll::{self, PollFd, PollFlags};
use typepack_job::sys::process::{self, ExecFailure, Exit};
use typepack_job::sys::stream::{self, Transfer};
use typepack_job::sys::{channel, signal};

use crate::args;
use crate::ending::{Action, End, Outcome, judge};
use crate::forward::{Outputs, Trouble};
use crate::input::Input;
use crate::start::{self, Started};

/// How long the wrapper of a rank that has died may take to tell how.
const WRAPPER_DELAY: Duration = Duration::from_millis(100);

/// How long output may still come after the last rank has ended well, from processes that rank
/// left behind with the pipe open. Beyond, it is theirs alone.
const LINGER: Duration = Duration::from_millis(250);

/// How often to look for the rest of process groups whose leaders have ended.
const GROUP_POLL: Duration = Duration::from_millis(5);

/// How long after SIGKILL the rest of a group may stay (a process stuck in the kernel).
const KILLED_DELAY: Duration = Duration::from_millis(500);

/// Who joined as a rank.
#[derive(Debug)]
struct Member {
    pid: Pid,
    pidfd: OwnedFd,
    gone: bool,
}

/// One rank under watch.
#[derive(Debug)]
struct Watched {
    rank: start::Rank,
    member: Option<Member>,
    exit: Option<Exit>,
    /// Its failure has been told.
    failed: bool,
    /// The code it exited with after it had left the job in order, if not 0.
    parting: Option<u8>,
    /// The member has died and the wrapper may tell how until then.
    wrapper_until: Option<Instant>,
}

impl Watched {
    /// Whether all of it that we know has ended.
    fn is_gone(&self) -> bool {
        self.exit.is_some() && self.member.as_ref().is_none_or(|member| member.gone)
    }

    /// The process to name: who joined, else who was started.
    fn pid(&self) -> i32 {
        let pid = self.member.as_ref().map_or(self.rank.child.pid(), |member| member.pid);
        pid.as_raw_nonzero().get()
    }

    /// Whether the member is somebody else than the child.
    fn is_wrapped(&self) -> bool {
        self.member.as_ref().is_some_and(|member| member.pid != self.rank.child.pid())
    }
}

/// What a polled descriptor belongs to.
#[derive(Clone, Copy, Debug)]
enum Event {
    Signal,
    Report,
    Control(usize),
    Child(usize),
    Member(usize),
    Output(usize, usize),
    Input,
    Other,
}

/// A running job.
#[derive(Debug)]
pub struct Job<'a> {
    segment: Segment,
    ranks: Vec<Watched>,
    report: Option<OwnedFd>,
    input: Input,
    outputs: &'a mut Outputs,
    signals: BorrowedFd<'a>,
    plan: &'a args::Job,
    started: Instant,
    end: End,
    /// All groups have been dealt with; their numbers may be anybody's.
    groups_ended: bool,
    /// Somebody does not want the rest of the output.
    impatient: bool,
}

impl<'a> Job<'a> {
    /// Takes a started job over.
    pub fn new(
        started: Started,
        outputs: &'a mut Outputs,
        signals: BorrowedFd<'a>,
        plan: &'a args::Job,
    ) -> Self {
        let watched = |rank| Watched {
            rank,
            member: None,
            exit: None,
            failed: false,
            parting: None,
            wrapper_until: None,
        };
        Self {
            segment: started.segment,
            ranks: started.ranks.into_iter().map(watched).collect(),
            report: Some(started.report),
            input: started.input,
            outputs,
            signals,
            plan,
            started: Instant::now(),
            end: End::new(),
            groups_ended: false,
            impatient: false,
        }
    }

    /// Runs until all ranks are gone and their output is written; returns the exit code.
    pub fn run(mut self) -> u8 {
        while !self.ranks.iter().all(Watched::is_gone) {
            let now = Instant::now();
            let deadlines = self.ranks.iter().filter_map(|rank| rank.wrapper_until);
            let deadline = deadlines
                .chain(self.end.deadline())
                .chain(self.input.deadline())
                .chain(self.time_is_over_at())
                .min();
            self.turn(deadline, now);
        }
        self.end_groups();
        self.drain();
        if !self.parted_as_one()
            && let Some(line) = self.end.outcome().and_then(Outcome::line)
        {
            self.outputs.tell(&line);
        }
        if self.plan.exit_codes {
            self.tell_exit_codes();
        }
        self.write_out();
        self.end.outcome().map_or(0, Outcome::exit_code)
    }

    /// When the time of the job is over; `None` without a limit, and once it is ending.
    fn time_is_over_at(&self) -> Option<Instant> {
        let limit = self.plan.timeout.filter(|_| !self.end.is_ending())?;
        self.started.checked_add(limit)
    }

    fn tell_exit_codes(&mut self) {
        let code = |watched: &Watched| match watched.exit {
            Some(Exit::Code(code)) => code.to_string(),
            Some(Exit::Signal(signal)) => (128 + u32::from(signal)).to_string(),
            None => "?".to_owned(),
        };
        let codes: Vec<String> = self.ranks.iter().map(code).collect();
        self.outputs.tell(&format!("exit codes: {}", codes.join(",")));
    }

    /// Whether all ranks left the job in order and then exited with one and the same code: that is
    /// a program's own answer (a bad argument, say), and it has printed what it had to say.
    fn parted_as_one(&self) -> bool {
        let first = self.ranks.first().and_then(|watched| watched.parting);
        first.is_some() && self.ranks.iter().all(|watched| watched.parting == first)
    }

    /// Waits for events until `deadline` and handles them.
    fn turn(&mut self, deadline: Option<Instant>, now: Instant) {
        let (ready, broken) = self.poll(deadline, now);
        if let Some(error) = broken {
            let action = self.end.broken(Outcome::Broken(format!("cannot wait: {error}")));
            self.carry_out(action);
        }
        let now = Instant::now();
        // Deaths before output: a rank's last words are drained at the end in any case, and the
        // others must hear of its end first.
        for event in &ready {
            match *event {
                Event::Signal => self.take_signals(now),
                Event::Report => self.take_report(),
                Event::Control(rank) => self.take_registration(rank, now),
                Event::Child(rank) => self.take_child(rank, now),
                Event::Member(rank) => self.take_member(rank, now),
                Event::Input => self.input.read(now),
                Event::Output(..) | Event::Other => {}
            }
        }
        for event in ready {
            if let Event::Output(rank, which) = event {
                self.ranks[rank].rank.streams[which].pump(self.outputs);
            }
        }
        self.input.write();
        self.flush(now);
        for rank in 0..self.ranks.len() {
            if self.ranks[rank].wrapper_until.is_some_and(|until| until <= now) {
                self.judge_wrapped(rank, now);
            }
        }
        self.check_strangers(now);
        if let Some(limit) = self.plan.timeout
            && self.time_is_over_at().is_some_and(|at| at <= now)
        {
            let action = self.end.timed_out(limit, now);
            self.carry_out(action);
        }
        let action = self.end.tick(now);
        self.carry_out(action);
    }

    /// Polls everything that matters at the moment; what is ready, and why polling failed.
    fn poll(
        &self,
        deadline: Option<Instant>,
        now: Instant,
    ) -> (Vec<Event>, Option<std::io::Error>) {
        let mut fds = Vec::with_capacity(self.ranks.len() * 5 + 6);
        let mut events = Vec::with_capacity(fds.capacity());
        let mut add = |event, fd, flags| {
            fds.push(PollFd::from_borrowed_fd(fd, flags));
            events.push(event);
        };
        add(Event::Signal, self.signals, PollFlags::IN);
        if let Some(report) = &self.report {
            add(Event::Report, report.as_fd(), PollFlags::IN);
        }
        for (index, watched) in self.ranks.iter().enumerate() {
            if watched.member.is_none() && watched.exit.is_none() {
                add(Event::Control(index), watched.rank.control.as_fd(), PollFlags::IN);
            }
            if watched.exit.is_none() {
                add(Event::Child(index), watched.rank.child.pidfd(), PollFlags::IN);
            }
            match &watched.member {
                Some(member) if !member.gone && watched.is_wrapped() => {
                    add(Event::Member(index), member.pidfd.as_fd(), PollFlags::IN);
                }
                _ => {}
            }
            for (which, source) in watched.rank.streams.iter().enumerate() {
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
        // Rounded up: waking just before the deadline would only poll again.
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
                }
                libc::SIGUSR1 | libc::SIGUSR2 => self.signal_all(signal),
                // Blocked so that they do not stop us; reading and writing the terminal in the
                // background is dealt with where it happens.
                libc::SIGTTIN | libc::SIGTTOU => {}
                _ => {
                    // The second time, or with nobody left to end: it is about the output.
                    self.impatient |= self.end.is_ending() || self.groups_ended;
                    let action = self.end.signalled(signal, now);
                    self.carry_out(action);
                }
            }
        }
    }

    /// A child could not execute the program, or all have.
    fn take_report(&mut self) {
        let Some(report) = &self.report else { return };
        let mut record = [0; ExecFailure::BYTES];
        match stream::read(report.as_fd(), &mut record) {
            Ok(Transfer::Moved(ExecFailure::BYTES)) => {
                let failure = ExecFailure::parse(record);
                let error = std::io::Error::from_raw_os_error(failure.errno);
                let code = if failure.errno == libc::ENOENT { 127 } else { 126 };
                let rank = failure.number as usize;
                let app = &self.plan.apps[self.plan.app_of(rank)];
                let why = match &app.directory {
                    Some(directory) if !directory.is_dir() => {
                        format!("-wdir: '{}': {error}", directory.display())
                    }
                    _ => format!(
                        "program: '{}' cannot be run: {error}",
                        app.program.to_string_lossy()
                    ),
                };
                let action = self.end.broken(Outcome::NotStarted(why, code));
                self.carry_out(action);
            }
            Ok(Transfer::Later) => {}
            _ => self.report = None,
        }
    }

    /// A process says that it is the rank.
    fn take_registration(&mut self, index: usize, now: Instant) {
        let watched = &mut self.ranks[index];
        if watched.member.is_some() {
            return;
        }
        let Ok(Some(pid)) = channel::registered(watched.rank.control.as_fd()) else { return };
        let pidfd = match process::watch(pid) {
            Ok(pidfd) => pidfd,
            // It waits for our answer: whoever is not there any more has been killed meanwhile. Its
            // wrapper, if it has one, might go on for long.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
                if watched.exit.is_none() {
                    watched.wrapper_until = Some(now + WRAPPER_DELAY);
                }
                return;
            }
            Err(error) => {
                let why = format!("cannot watch rank {index} (pid {}): {error}", pid.as_raw_pid());
                let action = self.end.broken(Outcome::Broken(why));
                return self.carry_out(action);
            }
        };
        watched.member = Some(Member { pid, pidfd, gone: false });
        let slot = self.segment.slot(index);
        slot.pid.store(pid.as_raw_nonzero().get().unsigned_abs(), Ordering::Relaxed);
        slot.watched.store(1, Ordering::Release);
        self.segment.call(index);
    }

    /// The process that we started has ended.
    fn take_child(&mut self, index: usize, now: Instant) {
        // What it may have said before.
        self.take_registration(index, now);
        // A child of ours cannot be reaped by anybody else: should the kernel say otherwise, it
        // has ended in a way that nobody can tell any more.
        let exit = match self.ranks[index].rank.child.ended() {
            Ok(None) => return,
            Ok(Some(exit)) => exit,
            Err(_) => Exit::Code(1),
        };
        let watched = &mut self.ranks[index];
        watched.exit = Some(exit);
        if index == 0 && !watched.is_wrapped() {
            self.input.close();
        }
        if watched.is_wrapped() {
            // The member's own end decides where it is the one that failed; the news of it may
            // come after the news of the wrapper that reports it.
            if watched.wrapper_until.is_some() || watched.member.as_ref().is_some_and(|m| m.gone) {
                self.judge_wrapped(index, now);
            } else if exit != Exit::Code(0) {
                watched.wrapper_until = Some(now + WRAPPER_DELAY);
            }
            return;
        }
        if let Some(member) = &mut watched.member {
            member.gone = true;
        }
        let unfinished = self.segment.state(index) == State::Registered;
        if let Some(ending) = judge(exit, unfinished) {
            self.fail(index, ending, now);
        }
    }

    /// The process that joined, and that is not our child, has ended.
    fn take_member(&mut self, index: usize, now: Instant) {
        let watched = &mut self.ranks[index];
        if let Some(member) = &mut watched.member {
            member.gone = true;
        }
        if watched.exit.is_some() {
            self.judge_wrapped(index, now);
        } else if self.segment.state(index) == State::Registered {
            // Its parent knows how, and will most likely tell us by its own code.
            watched.wrapper_until = Some(now + WRAPPER_DELAY);
        }
    }

    /// Decides how a wrapped rank has ended.
    fn judge_wrapped(&mut self, index: usize, now: Instant) {
        let watched = &mut self.ranks[index];
        watched.wrapper_until = None;
        let unfinished = self.segment.state(index) == State::Registered;
        let told = watched.member.as_ref().and_then(|m| process::exit_of(m.pidfd.as_fd()));
        let ending = match (told, watched.exit) {
            (Some(exit), _) if unfinished => judge(exit, true),
            // Shells report a signal as 128 + signal.
            (None, Some(Exit::Code(code @ 129..=192))) if unfinished => {
                Some(Ending::Killed(code - 128))
            }
            (_, Some(exit)) => judge(exit, unfinished),
            (_, None) => judge(Exit::Code(0), unfinished),
        };
        if let Some(ending) = ending {
            self.fail(index, ending, now);
        }
    }

    /// A rank that ended well without ever joining, while another one has joined, leaves that one
    /// waiting for ever: it has failed.
    fn check_strangers(&mut self, now: Instant) {
        if self.end.outcome().is_some() || !self.ranks.iter().any(|w| w.member.is_some()) {
            return;
        }
        let stranger = self
            .ranks
            .iter()
            .position(|watched| watched.exit == Some(Exit::Code(0)) && watched.member.is_none());
        if let Some(index) = stranger {
            self.fail(index, Ending::NeverJoined, now);
        }
    }

    fn fail(&mut self, index: usize, ending: Ending, now: Instant) {
        let watched = &mut self.ranks[index];
        if watched.failed {
            return;
        }
        watched.failed = true;
        let pid = watched.pid();
        let state = self.segment.state(index);
        if let (Ending::Exited(code), State::Finalized) = (ending, state) {
            watched.parting = Some(code);
        }
        // Not in the job (any more): nobody is surprised in the middle of a message.
        let orderly = state != State::Registered && matches!(ending, Ending::Exited(_));
        self.segment.slot(index).state.store(State::Dead as u32, Ordering::Release);
        let failure = Failure { rank: index, ending };
        if self.end.is_ending() {
            // Those who look after things on SIGTERM must not wait for the dead meanwhile.
            self.segment.declare_failure(failure);
        }
        let action = self.end.failed(failure, pid, orderly, now);
        self.carry_out(action);
    }

    fn carry_out(&mut self, action: Option<Action>) {
        match action {
            None => {}
            Some(Action::Signal(signal)) => {
                if let Some(Outcome::Failed(failure, _)) = self.end.outcome()
                    && self.segment.fail_epoch() == 0
                {
                    self.segment.declare_failure(*failure);
                }
                self.signal_all(signal);
                // A stopped process would not hear it.
                self.signal_all(libc::SIGCONT);
            }
            Some(Action::Kill) => self.signal_all(libc::SIGKILL),
        }
    }

    /// Sends `signal` to all processes of all ranks.
    fn signal_all(&self, signal: i32) {
        if self.groups_ended {
            return;
        }
        for watched in &self.ranks {
            // Refused only where a rank has become another user; nothing else can be done then.
            let _ = process::signal_group(watched.rank.child.pid(), signal);
            match &watched.member {
                // In a group of its own making.
                Some(member) if !member.gone && watched.is_wrapped() => {
                    let _ = process::signal_process(member.pidfd.as_fd(), signal);
                }
                _ => {}
            }
        }
    }

    /// All ranks are gone. After a failure the rest of their groups goes too, within the grace
    /// time; after a good end what a rank has left behind is its own affair.
    fn end_groups(&mut self) {
        self.input.close();
        let good = self.end.outcome().is_none();
        for watched in &self.ranks {
            if good {
                // From now on our end is not theirs. An open descriptor is never refused.
                let _ = channel::disarm(watched.rank.lifeline.as_fd());
            }
            // Has ended, as `exit` says: there is nothing to wait for and nothing new to learn.
            let _ = watched.rank.child.reap();
        }
        let mut give_up = None;
        while !good && self.groups_run() {
            let now = Instant::now();
            if self.end.is_killing() && *give_up.get_or_insert(now + KILLED_DELAY) <= now {
                break;
            }
            self.turn_ended(Some(now + GROUP_POLL), now);
            let action = self.end.tick(Instant::now());
            self.carry_out(action);
        }
        self.groups_ended = true;
    }

    /// Whether a process runs in the group of any rank. A group's number stays taken while it has
    /// members.
    fn groups_run(&self) -> bool {
        process::any_group_runs(self.ranks.iter().map(|watched| watched.rank.child.pid()))
    }

    /// Forwards output and hears signals until `deadline`, when all ranks are gone.
    fn turn_ended(&mut self, deadline: Option<Instant>, now: Instant) {
        let (ready, broken) = self.poll(deadline, now);
        self.impatient |= broken.is_some();
        let now = Instant::now();
        for event in ready {
            match event {
                Event::Signal => self.take_signals(now),
                Event::Report => self.take_report(),
                Event::Output(rank, which) => {
                    self.ranks[rank].rank.streams[which].pump(self.outputs);
                }
                _ => {}
            }
        }
        self.flush(now);
    }

    /// Takes what is left in the pipes of the ranks. What a rank wrote is there already; after a
    /// good end, the writers that it left behind get a moment.
    fn drain(&mut self) {
        let until = Instant::now() + LINGER;
        loop {
            let (mut open, mut full) = (false, false);
            for source in self.ranks.iter_mut().flat_map(|watched| &mut watched.rank.streams) {
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
            } else if open && self.end.outcome().is_none() && now < until {
                self.turn_ended(Some(until), now);
            } else {
                break;
            }
        }
        for source in self.ranks.iter_mut().flat_map(|watched| &mut watched.rank.streams) {
            source.finish(self.outputs);
        }
    }

    /// Writes what waits, however slow our reader; a signal says that nobody wants it any more.
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
        let action = self.end.output_lost(outcome, now);
        self.carry_out(action);
    }
}
