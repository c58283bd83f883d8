//! Decides how a world (ranks that were started together) ends: which exit code mpiexec returns, and which signals it
//! sends.
//!
//! This file is a state machine without side effects. `watch/` passes each event and its time to the state
//! machine, and carries out the actions that the state machine returns.
//!
//! ```text
//! Running --orderly failure--> Settling --100 ms--> Terminating --grace--> Killing
//!    |                             |                     ^                    ^
//!    +--any other failure----------+---------------------+                    |
//!    +--signal, time over, closed output-----------------+--second signal-----+
//! ```
//!
//! A failure is orderly if the rank exited by itself, either before it joined the job or after it left the
//! job. A program that cannot be executed, or an error that prevents mpiexec from watching the job, leads
//! from any state to Killing.
//!
//! Invariants: the first event decides the outcome, and later events do not change it. Once a job has left
//! the state Running, any ranks that are still alive are killed at the latest when the settling time and the
//! grace time have passed.

use std::time::{Duration, Instant};

use typepack_job::shm::failure::{Ending, Failure};
use typepack_job::sys::process::Exit;

/// The time between SIGTERM and SIGKILL after a failure, or after mpiexec can no longer write its output. The
/// option `-kill-after` replaces it.
pub const FAILURE_GRACE: Duration = Duration::from_millis(200);

/// The time between the first signal to the ranks and SIGKILL if Ctrl-C, another signal or the job's time
/// limit ends the job. The option `-kill-after` replaces it.
pub const SIGNAL_GRACE: Duration = Duration::from_secs(2);

/// How long mpiexec waits for the other ranks to end after a rank has exited by itself with a nonzero code.
/// Often all ranks exit in this way, because all of them have found the same bad argument. The rank that
/// prints the reason then needs time to print it.
pub const SETTLE: Duration = Duration::from_millis(100);

/// The exit code if the job exceeds its time limit. It is the code that the command `timeout` uses.
const TIMED_OUT: u8 = 124;

/// How a job ended, as decided by the first event that ended it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A rank failed. The number is the process id of the rank.
    Failed(Failure, i32),
    /// mpiexec received this signal.
    Signalled(i32),
    /// The job exceeded this time limit.
    TimedOut(Duration),
    /// The reader of mpiexec's output has closed the pipe.
    OutputClosed,
    /// mpiexec cannot write its output, or cannot go on watching the job. The text is the reason.
    Broken(String),
    /// The program could not be executed. The text is the reason, and the number is the exit code.
    NotStarted(String, u8),
}

impl Outcome {
    /// Returns the exit code of mpiexec for this outcome.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Failed(failure, _) => failure.ending.exit_code(),
            Self::Signalled(signal) => 128 | signal.to_le_bytes()[0],
            Self::TimedOut(_) => TIMED_OUT,
            Self::OutputClosed => 128 | 13,
            Self::Broken(_) => 1,
            Self::NotStarted(_, code) => *code,
        }
    }

    /// Returns the line that reports this outcome. `program` is the program of the rank that has failed, if this rank is
    /// of a world that other ranks have started. Returns `None` if a signal or a closed output ended the job, because the
    /// user knows about both.
    pub fn line(&self, program: Option<&str>) -> Option<String> {
        match self {
            Self::Failed(failure, pid) => {
                let (who, ending) = (failure.who(), failure.ending);
                let program = program.map_or_else(String::new, |program| format!("{program}, "));
                Some(format!("{who} ({program}pid {pid}) {ending}"))
            }
            Self::TimedOut(limit) => {
                Some(format!("the job exceeded its time limit of {} s", limit.as_secs_f64()))
            }
            Self::Signalled(_) | Self::OutputClosed => None,
            Self::Broken(why) | Self::NotStarted(why, _) => Some(why.clone()),
        }
    }
}

/// An action that `watch/` must carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send this signal to all ranks.
    Signal(i32),
    /// Send SIGKILL to all ranks.
    Kill,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    Settling(Instant),
    Terminating(Instant),
    Killing,
}

/// The state machine that decides how one job ends.
#[derive(Debug)]
pub struct End {
    phase: Phase,
    outcome: Option<Outcome>,
    /// The time between SIGTERM and SIGKILL after a failure.
    failure_grace: Duration,
    /// The time between SIGTERM and SIGKILL after a signal, or after the end of the job's time limit.
    signal_grace: Duration,
}

impl End {
    /// Creates the state machine in the state Running. `kill_after` is the time between SIGTERM and SIGKILL that
    /// the user wants.
    pub fn new(kill_after: Option<Duration>) -> Self {
        let (failure_grace, signal_grace) =
            (kill_after.unwrap_or(FAILURE_GRACE), kill_after.unwrap_or(SIGNAL_GRACE));
        Self { phase: Phase::Running, outcome: None, failure_grace, signal_grace }
    }

    /// Returns the outcome, or `None` while no event has decided it.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// Handles the failure of a rank in a job whose other ranks go on.
    pub fn survived(&mut self, failure: Failure, pid: i32) {
        self.outcome.get_or_insert(Outcome::Failed(failure, pid));
    }

    /// Returns true if nothing has ended the job: no rank has failed, or the other ranks went on.
    pub fn is_natural(&self) -> bool {
        self.outcome.is_none()
            || matches!((self.phase, &self.outcome), (Phase::Running, Some(Outcome::Failed(..))))
    }

    /// Returns true if mpiexec waits whether all ranks exit by themselves.
    pub fn is_settling(&self) -> bool {
        matches!(self.phase, Phase::Settling(_))
    }

    /// Returns true if mpiexec has told the ranks to end.
    pub fn is_ending(&self) -> bool {
        matches!(self.phase, Phase::Terminating(_) | Phase::Killing)
    }

    /// Returns true if mpiexec has decided to send SIGKILL to the ranks.
    pub fn is_killing(&self) -> bool {
        self.phase == Phase::Killing
    }

    /// Handles the failure of a rank. `orderly` is true if the rank exited by itself, and did so either
    /// before it joined the job or after it left the job.
    pub fn failed(
        &mut self,
        failure: Failure,
        pid: i32,
        orderly: bool,
        now: Instant,
    ) -> Option<Action> {
        self.outcome.get_or_insert(Outcome::Failed(failure, pid));
        match self.phase {
            Phase::Running if orderly => {
                self.phase = Phase::Settling(now + SETTLE);
                None
            }
            Phase::Running => Some(self.terminate(now, self.failure_grace, TERM)),
            Phase::Settling(_) if !orderly => Some(self.terminate(now, self.failure_grace, TERM)),
            _ => None,
        }
    }

    /// Handles a signal that asks mpiexec to end.
    pub fn signalled(&mut self, signal: i32, now: Instant) -> Option<Action> {
        match self.phase {
            Phase::Running | Phase::Settling(_) => {
                self.end_with(Outcome::Signalled(signal));
                Some(self.terminate(now, self.signal_grace, TERM))
            }
            Phase::Terminating(_) => Some(self.kill()),
            Phase::Killing => None,
        }
    }

    /// Records what ends the job. The failure of a rank whose job went on is no end, and has been told.
    fn end_with(&mut self, outcome: Outcome) {
        if self.is_natural() {
            self.outcome = Some(outcome);
        }
    }

    /// Handles the end of the job's time limit in the same way as a first Ctrl-C. If the job is already
    /// ending, this has no effect.
    pub fn timed_out(&mut self, limit: Duration, now: Instant) -> Option<Action> {
        self.end_with(Outcome::TimedOut(limit));
        match self.phase {
            Phase::Running | Phase::Settling(_) => {
                Some(self.terminate(now, self.signal_grace, TERM))
            }
            _ => None,
        }
    }

    /// Handles an event after which mpiexec can no longer write output.
    pub fn output_lost(&mut self, outcome: Outcome, now: Instant) -> Option<Action> {
        let first = self.outcome.is_none();
        self.outcome.get_or_insert(outcome);
        (first && self.phase == Phase::Running)
            .then(|| self.terminate(now, self.failure_grace, TERM))
    }

    /// Handles an error that prevents mpiexec from starting or watching the job.
    pub fn broken(&mut self, outcome: Outcome) -> Option<Action> {
        self.outcome.get_or_insert(outcome);
        (self.phase != Phase::Killing).then(|| self.kill())
    }

    /// Returns the time at which the caller must call [`End::tick`], or `None` if no call is due.
    pub fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Settling(at) | Phase::Terminating(at) => Some(at),
            Phase::Running | Phase::Killing => None,
        }
    }

    /// Moves to the next state if the time limit of the current state has expired by `now`.
    pub fn tick(&mut self, now: Instant) -> Option<Action> {
        match self.phase {
            Phase::Settling(at) if at <= now => Some(self.terminate(now, self.failure_grace, TERM)),
            Phase::Terminating(at) if at <= now => Some(self.kill()),
            _ => None,
        }
    }

    fn terminate(&mut self, now: Instant, grace: Duration, signal: i32) -> Action {
        self.phase = Phase::Terminating(now + grace);
        Action::Signal(signal)
    }

    fn kill(&mut self) -> Action {
        self.phase = Phase::Killing;
        Action::Kill
    }
}

const TERM: i32 = libc::SIGTERM;

/// Returns how a rank failed, or `None` if it ended without a failure. `unfinished` is true if the rank had
/// joined the job and had not left it.
pub fn judge(exit: Exit, unfinished: bool) -> Option<Ending> {
    match exit {
        Exit::Signal(signal) => Some(Ending::Killed(signal)),
        Exit::Code(0) if unfinished => Some(Ending::LeftEarly),
        Exit::Code(0) => None,
        Exit::Code(code) => Some(Ending::Exited(code)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KILLED: Failure = Failure { slot: 1, rank: 1, world: 0, ending: Ending::Killed(9) };
    const EXITED: Failure = Failure { slot: 0, rank: 0, world: 0, ending: Ending::Exited(3) };

    #[test]
    fn a_killed_rank_ends_the_others_in_two_steps() {
        let t = Instant::now();
        let mut end = End::new(None);
        assert_eq!(end.failed(KILLED, 1234, false, t), Some(Action::Signal(TERM)));
        assert_eq!(end.deadline(), Some(t + FAILURE_GRACE));
        assert_eq!(end.tick(t), None);
        assert_eq!(end.tick(t + FAILURE_GRACE), Some(Action::Kill));
        assert_eq!(end.deadline(), None);
        let outcome = end.outcome().expect("decided");
        assert_eq!(outcome.exit_code(), 137);
        let line = "rank 1 (pid 1234) killed by signal 9 (SIGKILL)";
        assert_eq!(outcome.line(None).as_deref(), Some(line));
        let later = Outcome::Failed(Failure { world: 2, ..KILLED }, 1234);
        let line = "rank 1 of world 2 (./worker, pid 1234) killed by signal 9 (SIGKILL)";
        assert_eq!(later.line(Some("./worker")).as_deref(), Some(line));
    }

    #[test]
    fn an_orderly_failure_waits_for_its_like() {
        let t = Instant::now();
        let mut end = End::new(None);
        assert_eq!(end.failed(EXITED, 7, true, t), None);
        assert_eq!(end.failed(Failure { rank: 1, ..EXITED }, 8, true, t), None);
        assert_eq!(end.tick(t + SETTLE), Some(Action::Signal(TERM)));
        assert_eq!(end.outcome().map(Outcome::exit_code), Some(3));
        let line = "rank 0 (pid 7) exited with code 3";
        assert_eq!(end.outcome().and_then(|outcome| outcome.line(None)).as_deref(), Some(line));
    }

    #[test]
    fn a_crash_ends_the_settling() {
        let t = Instant::now();
        let mut end = End::new(None);
        assert_eq!(end.failed(EXITED, 7, true, t), None);
        assert_eq!(end.failed(KILLED, 8, false, t), Some(Action::Signal(TERM)));
        assert_eq!(
            end.outcome().map(Outcome::exit_code),
            Some(3),
            "a later failure changed the outcome"
        );
    }

    #[test]
    fn a_job_that_goes_on_keeps_the_first_failure() {
        let t = Instant::now();
        let mut end = End::new(None);
        assert!(end.is_natural());
        end.survived(KILLED, 7);
        end.survived(EXITED, 8);
        assert_eq!((end.deadline(), end.is_ending(), end.is_natural()), (None, false, true));
        assert_eq!(end.outcome().map(Outcome::exit_code), Some(137));
        // A rank calls MPI_Abort.
        assert_eq!(end.failed(EXITED, 9, false, t), Some(Action::Signal(TERM)));
        assert_eq!((end.outcome().map(Outcome::exit_code), end.is_natural()), (Some(137), false));
    }

    #[test]
    fn a_second_signal_is_impatience() {
        let t = Instant::now();
        let mut end = End::new(None);
        assert_eq!(end.signalled(libc::SIGINT, t), Some(Action::Signal(TERM)));
        assert_eq!(end.deadline(), Some(t + SIGNAL_GRACE));
        let term = Failure { slot: 0, rank: 0, world: 0, ending: Ending::Killed(15) };
        assert_eq!(
            end.failed(term, 7, false, t),
            None,
            "a rank that mpiexec ended counts as failed"
        );
        assert_eq!(end.signalled(libc::SIGINT, t), Some(Action::Kill));
        assert_eq!(end.signalled(libc::SIGINT, t), None);
        assert_eq!(end.outcome().map(Outcome::exit_code), Some(130));
        assert_eq!(end.outcome().and_then(|outcome| outcome.line(None)), None);
    }

    #[test]
    fn the_user_may_give_the_ranks_more_time() {
        let (t, wanted) = (Instant::now(), Duration::from_secs(60));
        let mut failed = End::new(Some(wanted));
        failed.failed(KILLED, 1234, false, t);
        assert_eq!(failed.deadline(), Some(t + wanted));
        let mut signalled = End::new(Some(wanted));
        signalled.signalled(libc::SIGINT, t);
        assert_eq!(signalled.deadline(), Some(t + wanted));
        assert_eq!(signalled.signalled(libc::SIGINT, t), Some(Action::Kill));
    }

    #[test]
    fn time_is_over_once() {
        let t = Instant::now();
        let limit = Duration::from_millis(1500);
        let mut end = End::new(None);
        assert_eq!(end.timed_out(limit, t), Some(Action::Signal(TERM)));
        assert_eq!(end.deadline(), Some(t + SIGNAL_GRACE));
        assert_eq!(end.timed_out(limit, t), None);
        let outcome = end.outcome().expect("decided");
        assert_eq!(outcome.exit_code(), 124);
        let line = "the job exceeded its time limit of 1.5 s";
        assert_eq!(outcome.line(None).as_deref(), Some(line));
    }

    #[test]
    fn verdicts() {
        assert_eq!(judge(Exit::Code(0), false), None);
        assert_eq!(judge(Exit::Code(0), true), Some(Ending::LeftEarly));
        assert_eq!(judge(Exit::Code(3), true), Some(Ending::Exited(3)));
        assert_eq!(judge(Exit::Signal(9), false), Some(Ending::Killed(9)));
    }
}
