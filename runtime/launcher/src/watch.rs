//! Watches a started job until all its ranks have ended.
//!
//! `start.rs` starts the job. This file polls all descriptors, passes events to `ending.rs`, output to
//! `forward.rs` and input to `input.rs`, prints what the ranks wait for (`waits.rs`), and answers each process that
//! registers as a rank (`shm/attach.rs`).
//!
//! Invariants:
//! - While it watches a job, mpiexec blocks nowhere except in `poll`.
//! - mpiexec reaps its children only after all ranks have ended, so that until then the kernel does not reuse
//!   the ids of their process groups.
//! - The thread that runs this code is the thread that forked the ranks, because the kernel kills the ranks
//!   when that thread ends.

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
use typepack_job::sys::{channel, inspect, signal};

use crate::args;
use crate::ending::{Action, End, Outcome, judge};
use crate::forward::{Outputs, Trouble};
use crate::input::Input;
use crate::start::{self, Started};
use crate::waits::{self, Watchdog};

/// How long mpiexec waits for the exit code of a wrapper after the rank inside the wrapper has died, or for
/// the end of the rank after its wrapper has failed. A wrapper is a process, such as a shell, that mpiexec
/// has started and that itself starts the rank.
const WRAPPER_DELAY: Duration = Duration::from_millis(100);

/// How long mpiexec goes on forwarding output after all ranks have ended without a failure. Processes that a
/// rank has left behind may keep a pipe open longer; mpiexec discards their later output.
const LINGER: Duration = Duration::from_millis(250);

/// Interval at which mpiexec checks whether processes remain in the process groups of ranks that have ended.
const GROUP_POLL: Duration = Duration::from_millis(5);

/// How long mpiexec waits, after SIGKILL, for the remaining processes in the process groups of the ranks to
/// end. It does not wait for ever, because a process may be stuck in the kernel.
const KILLED_DELAY: Duration = Duration::from_millis(500);

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
    rank: start::Rank,
    member: Option<Member>,
    exit: Option<Exit>,
    /// True if the failure of this rank has been handled.
    failed: bool,
    /// The rank's exit code, if the rank has finalized and the code is not 0.
    parting: Option<u8>,
    /// If only one of the member and its wrapper has ended, the time until which mpiexec waits for the other
    /// one to end. `None` if mpiexec is not waiting in this way.
    wrapper_until: Option<Instant>,
}

impl Watched {
    /// Returns true if all known processes of the rank have ended.
    fn is_gone(&self) -> bool {
        self.exit.is_some() && self.member.as_ref().is_none_or(|member| member.gone)
    }

    /// Returns the process id to show in messages: that of the process that has joined as this rank, or, if
    /// none has joined, that of the process that mpiexec has started.
    fn pid(&self) -> i32 {
        let pid = self.member.as_ref().map_or(self.rank.child.pid(), |member| member.pid);
        pid.as_raw_nonzero().get()
    }

    /// Returns true if a process has joined as this rank and is not the process that mpiexec has started.
    fn is_wrapped(&self) -> bool {
        self.member.as_ref().is_some_and(|member| member.pid != self.rank.child.pid())
    }
}

/// The source of an event: what a polled descriptor belongs to.
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
    /// Looks whether anything moves; `None` if that is switched off, or if it has told that nothing does.
    watchdog: Option<Watchdog>,
    end: End,
    /// True if the ranks know of a failure.
    has_told: bool,
    /// True if mpiexec no longer uses the ids of the process groups. The kernel may then reuse them.
    groups_ended: bool,
    /// True if the user does not want to wait for the rest of the output.
    impatient: bool,
}

impl<'a> Job<'a> {
    /// Makes the state that watches a started job. If nothing in the job moves for the time `watchdog`, mpiexec tells
    /// what the ranks wait for.
    pub fn new(
        started: Started,
        outputs: &'a mut Outputs,
        signals: BorrowedFd<'a>,
        (plan, watchdog): (&'a args::Job, Option<Duration>),
    ) -> Self {
        let now = Instant::now();
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
            started: now,
            watchdog: watchdog.map(|period| Watchdog::new(period, now)),
            end: End::new(plan.kill_after),
            has_told: false,
            groups_ended: false,
            impatient: false,
        }
    }

    /// Watches the job until all ranks have ended and their output is written. Returns the exit code of
    /// mpiexec.
    pub fn run(mut self) -> u8 {
        while !self.ranks.iter().all(Watched::is_gone) {
            let now = Instant::now();
            let deadlines = self.ranks.iter().filter_map(|rank| rank.wrapper_until);
            let deadline = deadlines
                .chain(self.end.deadline())
                .chain(self.input.deadline())
                .chain(self.time_is_over_at())
                .chain(self.watchdog.as_ref().map(Watchdog::deadline))
                .min();
            self.turn(deadline, now);
        }
        self.end_groups();
        self.drain();
        // `survive` has already told of the failures of a job that went on.
        let is_told = self.plan.goes_on && self.end.is_natural();
        if !self.parted_as_one()
            && !is_told
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

    /// Returns the time at which the job's time limit expires, or `None` if there is no limit or the job is
    /// already ending.
    fn time_is_over_at(&self) -> Option<Instant> {
        let limit = self.plan.timeout.filter(|_| !self.end.is_ending())?;
        self.started.checked_add(limit)
    }

    /// Returns what the descriptions of waits need to know about the ranks.
    fn waiting_ranks(&self) -> Vec<waits::Rank> {
        let of = |watched: &Watched| {
            let member = watched.member.as_ref().filter(|member| !member.gone);
            let member = member.map(|member| member.pid.as_raw_nonzero().get());
            waits::Rank { member, gone: watched.is_gone() }
        };
        self.ranks.iter().map(of).collect()
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
        if self.end.is_ending() {
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
        let codes: Vec<String> = self.ranks.iter().map(code).collect();
        self.outputs.tell(&format!("exit codes: {}", codes.join(",")));
    }

    /// Returns true if all ranks finalized and then exited with the same code other than 0. Such a code is
    /// the program's own result (for a bad argument, for example), and the program has printed the reason
    /// itself.
    fn parted_as_one(&self) -> bool {
        let first = self.ranks.first().and_then(|watched| watched.parting);
        first.is_some() && self.ranks.iter().all(|watched| watched.parting == first)
    }

    /// Waits until `deadline` or until an event arrives, and handles the events.
    fn turn(&mut self, deadline: Option<Instant>, now: Instant) {
        let (ready, broken) = self.poll(deadline, now);
        if let Some(error) = broken {
            let action =
                self.end.broken(Outcome::Broken(format!("cannot wait for the ranks: {error}")));
            self.carry_out(action);
        }
        let now = Instant::now();
        // Handle deaths before output, because the other ranks must learn of a death as soon as possible.
        // This loses no output of the dead rank, because mpiexec reads the rest of all output at the end.
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
            self.tell_waits("the time is over; what the ranks wait for:", false);
            let action = self.end.timed_out(limit, now);
            self.carry_out(action);
        }
        let action = self.end.tick(now);
        self.carry_out(action);
        self.look_for_hang(now);
    }

    /// Polls all descriptors until an event arrives or `deadline` has passed. Returns the events, and the
    /// error if polling failed.
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
                    self.impatient |= self.end.is_ending() || self.groups_ended;
                    if !self.impatient && matches!(signal, libc::SIGINT | libc::SIGTERM) {
                        self.tell_waits(ASKED, false);
                    }
                    let action = self.end.signalled(signal, now);
                    self.carry_out(action);
                }
            }
        }
    }

    /// Handles an event of the report pipe: either a child could not execute its program, or the pipe is at
    /// end-of-file, because every child has succeeded in its exec or has exited.
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

    /// Handles the message with which a process registers as rank `index`.
    fn take_registration(&mut self, index: usize, now: Instant) {
        let watched = &mut self.ranks[index];
        if watched.member.is_some() {
            return;
        }
        let Ok(Some(pid)) = watched.rank.control.registered() else { return };
        let pidfd = match process::watch(pid) {
            Ok(pidfd) => pidfd,
            // The process has ended. It must have been killed, because it would otherwise still be waiting
            // for the answer to its message. Its wrapper, if there is one, may run much longer.
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

    /// Handles the end of the process that mpiexec has started for rank `index`.
    fn take_child(&mut self, index: usize, now: Instant) {
        // The child may have registered before it ended, so look for a message first.
        self.take_registration(index, now);
        // No error is expected, because nobody but mpiexec can reap its children. If there is an error
        // anyway, the exit code is unknown; use 1.
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
            // If the wrapper failed because the member failed, the end of the member decides how the rank has
            // ended. mpiexec may see the end of the wrapper first, so give the event for the member's end a
            // moment to arrive.
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

    /// Handles the end of the process that has joined as rank `index`, if mpiexec did not start it.
    fn take_member(&mut self, index: usize, now: Instant) {
        let watched = &mut self.ranks[index];
        if let Some(member) = &mut watched.member {
            member.gone = true;
        }
        if watched.exit.is_some() {
            self.judge_wrapped(index, now);
        } else if self.segment.state(index) == State::Registered {
            // The wrapper knows how the process ended, and will probably exit soon with a code that says so.
            // So give the wrapper a moment to exit.
            watched.wrapper_until = Some(now + WRAPPER_DELAY);
        }
    }

    /// Decides how a rank inside a wrapper has ended.
    fn judge_wrapped(&mut self, index: usize, now: Instant) {
        let watched = &mut self.ranks[index];
        watched.wrapper_until = None;
        let unfinished = self.segment.state(index) == State::Registered;
        let told = watched.member.as_ref().and_then(|m| process::exit_of(m.pidfd.as_fd()));
        let ending = match (told, watched.exit) {
            (Some(exit), _) if unfinished => judge(exit, true),
            // If a signal killed a command, shells exit with 128 + the signal's number.
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

    /// Looks for a rank that exited with code 0 without joining the job although another rank has joined. The
    /// rank that joined could wait for the missing rank for ever, so the missing rank counts as failed.
    fn check_strangers(&mut self, now: Instant) {
        // A job that goes on after a failure has no need of this rank either.
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
        // A failure is orderly if the rank exited either before it joined the job or after it left the job,
        // because then no other rank can be in the middle of a message exchange with it.
        let orderly = state != State::Registered && matches!(ending, Ending::Exited(_));
        let failure = Failure { rank: index, ending };
        self.segment.record_failure(failure);
        if self.plan.goes_on && !self.end.is_ending() && !self.segment.is_aborting() {
            return self.survive(failure, pid);
        }
        if self.end.is_ending() {
            // The ranks may be cleaning up after SIGTERM. Tell them about the failure, so that they do not
            // wait for the dead rank.
            self.tell_failure(index);
        }
        let action = self.end.failed(failure, pid, orderly, now);
        self.carry_out(action);
    }

    /// Tells the ranks that share a communicator with rank `index` of its failure.
    fn tell_failure(&mut self, index: usize) {
        self.has_told = true;
        self.segment.tell_failure(index, 0..self.ranks.len());
    }

    /// Handles the failure of a rank in a job whose other ranks go on. The other ranks do not learn of the failure:
    /// their
    /// calls go on, and a call that needs the dead rank waits until the user ends the job.
    fn survive(&mut self, failure: Failure, pid: i32) {
        let why = Outcome::Failed(failure, pid);
        if let Some(line) = why.line() {
            self.outputs.tell(&format!("{line}; the other ranks go on"));
        }
        self.end.survived(failure, pid);
    }

    fn carry_out(&mut self, action: Option<Action>) {
        match action {
            None => {}
            Some(Action::Signal(signal)) => {
                if let Some(Outcome::Failed(failure, _)) = self.end.outcome()
                    && !self.has_told
                {
                    self.tell_failure(failure.rank);
                }
                self.signal_all(signal);
                // A stopped process does not handle the signal until it continues.
                self.signal_all(libc::SIGCONT);
            }
            Some(Action::Kill) => self.signal_all(libc::SIGKILL),
        }
    }

    /// Sends `signal` to the process groups of all ranks, and to the members of the job outside these
    /// groups.
    fn signal_all(&self, signal: i32) {
        if self.groups_ended {
            return;
        }
        for watched in &self.ranks {
            // Ignore errors: sending fails only if the processes run as another user, and mpiexec can do
            // nothing about that.
            let _ = process::signal_group(watched.rank.child.pid(), signal);
            match &watched.member {
                // The member may be in another process group, made by itself or by a wrapper.
                Some(member) if !member.gone && watched.is_wrapped() => {
                    let _ = process::signal_process(member.pidfd.as_fd(), signal);
                }
                _ => {}
            }
        }
    }

    /// Sends `signal` to the ranks whose processes handle it, so that it ends none of them.
    fn signal_handlers(&self, signal: i32) {
        if self.groups_ended {
            return;
        }
        for watched in &self.ranks {
            // Other processes of the group need not handle the signal, so each process gets its own.
            let survives = |pid: Pid| inspect::survives(pid.as_raw_nonzero().get(), signal);
            if survives(watched.rank.child.pid()) {
                let _ = process::signal_process(watched.rank.child.pidfd(), signal);
            }
            if let Some(member) = &watched.member
                && watched.is_wrapped()
                && !member.gone
                && survives(member.pid)
            {
                let _ = process::signal_process(member.pidfd.as_fd(), signal);
            }
        }
    }

    /// Deals with the process groups after all ranks have ended. If the job failed, waits until the processes
    /// that remain in the groups have ended, and kills them when the grace time is over. If the job did not
    /// fail, such processes may go on running.
    fn end_groups(&mut self) {
        self.input.close();
        let good = self.end.is_natural();
        for watched in &self.ranks {
            if good {
                // Processes that a rank has left behind must not be killed when mpiexec ends. This call never
                // fails for an open descriptor.
                let _ = channel::disarm(watched.rank.lifeline.as_fd());
            }
            // mpiexec has the exit code of the child already, so the result of `reap` is not needed.
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

    /// Returns true if a process runs in the group of any rank. As long as a group has processes, the kernel
    /// does not reuse the group's id.
    fn groups_run(&self) -> bool {
        process::any_group_runs(self.ranks.iter().map(|watched| watched.rank.child.pid()))
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
                Event::Report => self.take_report(),
                Event::Output(rank, which) => {
                    self.ranks[rank].rank.streams[which].pump(self.outputs);
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
            } else if open && self.end.is_natural() && now < until {
                self.turn_ended(Some(until), now);
            } else {
                break;
            }
        }
        for source in self.ranks.iter_mut().flat_map(|watched| &mut watched.rank.streams) {
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
        let action = self.end.output_lost(outcome, now);
        self.carry_out(action);
    }
}
