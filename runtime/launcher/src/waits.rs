//! What the ranks wait for: the lines that describe it, and the watchdog that looks for jobs in which nothing moves.
//!
//! A rank that waits long describes its wait in the segment (`shm/waiting.rs` of the job crate). This file reads the
//! records, also those of stopped ranks, and never changes them. `watch/` prints the lines.
//!
//! The watchdog must not raise a false alarm. It tells that nothing moves only if, for the whole period,
//! - every rank that has joined the job and has not left it waits in a call, not for work of its own threads,
//! - no record has changed and no rank has found news,
//! - every waiting rank has looked for news several times, so that none of them merely got no CPU, and
//! - the other threads of the ranks have hardly used a CPU.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use typepack_job::shm::failure::who;
use typepack_job::shm::layout::State;
use typepack_job::shm::segment::Segment;
use typepack_job::shm::waiting::{Kind, Named, Progress, Seen, Wait};
use typepack_job::sys::{clock, inspect};

/// The default period of the watchdog if mpiexec writes to a terminal, and otherwise.
const ON_TERMINAL: Duration = Duration::from_secs(10);
const ELSEWHERE: Duration = Duration::from_secs(60);

/// Longest time between two looks of the watchdog, and number of looks in a shorter period.
const STEP: Duration = Duration::from_secs(1);
const STEPS: u32 = 8;

/// Number of times that every rank must have looked for news in the period.
const LOOKS: u64 = 2;

/// If other threads of a rank use a CPU for more than one part in this number of the time, the rank computes.
const BUSY: u32 = 100;

/// Returns the period of the watchdog, or `None` if it is off. `value` is that of the variable `TYPEPACK_WATCHDOG`.
///
/// # Errors
/// Returns a line for the user if the value is not a number of seconds.
pub fn period(value: Option<&str>, terminal: bool) -> Result<Option<Duration>, String> {
    let Some(value) = value else {
        return Ok(Some(if terminal { ON_TERMINAL } else { ELSEWHERE }));
    };
    let number = value.trim().parse().ok().filter(|number: &f64| *number >= 0.0);
    let number = number.ok_or_else(|| {
        format!("TYPEPACK_WATCHDOG: '{value}' is not a number of seconds, 0 or more (0: off)")
    })?;
    // A period that is too long for the clock is as good as none.
    Ok(Duration::try_from_secs_f64(number).ok().filter(|period| !period.is_zero()))
}

/// What mpiexec knows about a rank, apart from its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Its number in its world.
    pub number: usize,
    /// The number of its world. The ranks of the command line are world 0.
    pub world: usize,
    /// The process that has joined the job as this rank and has not ended; `None` if there is none.
    pub member: Option<i32>,
    /// True if all known processes of the rank have ended.
    pub gone: bool,
}

/// A rank as it is now: what mpiexec knows, the rank's state in the job, and its record.
#[derive(Clone, Copy, Debug)]
struct Now {
    rank: Rank,
    state: State,
    seen: Seen,
}

impl Now {
    fn of(segment: &Segment, slot: usize, rank: Rank) -> Self {
        let (state, slot) = (segment.state(slot), segment.slot(slot));
        Self { rank, state, seen: slot.waiting.read() }
    }

    /// Returns the process that takes part in the job as this rank, if any.
    fn live(&self) -> Option<i32> {
        self.rank.member.filter(|_| self.state == State::Registered)
    }

    /// Returns what a rank that takes part in the job waits for. Its records may outlive a rank.
    fn wait(&self) -> Option<&Wait> {
        self.live()?;
        self.seen.wait.as_ref()
    }
}

/// Looks for jobs in which nothing moves. It finds one at most once.
#[derive(Debug)]
pub struct Watchdog {
    period: Duration,
    next: Instant,
    /// The time from which on nothing has moved, and the ranks at that time.
    still: Option<(Instant, Vec<Now>)>,
    /// When the watchdog has looked how long other threads have computed, and how long each rank's had.
    computed: Option<(Instant, Vec<Duration>)>,
}

impl Watchdog {
    /// Makes a watchdog that tells after `period`.
    pub fn new(period: Duration, now: Instant) -> Self {
        Self { period, next: now, still: None, computed: None }
    }

    /// Returns when the watchdog wants to look next.
    pub fn deadline(&self) -> Instant {
        self.next
    }

    /// Begins the period anew, for example because the whole job was stopped.
    pub fn restart(&mut self) {
        (self.still, self.computed) = (None, None);
    }

    /// Looks at the ranks if it is time to. Returns how long nothing has moved if that is the period or longer.
    pub fn look(&mut self, segment: &Segment, ranks: &[Rank], now: Instant) -> Option<Duration> {
        if now < self.next {
            return None;
        }
        let step = (self.period / STEPS).min(STEP);
        self.next = now.checked_add(step)?;
        let found: Vec<Now> =
            ranks.iter().enumerate().map(|(at, rank)| Now::of(segment, at, *rank)).collect();
        let all_wait =
            found.iter().any(|rank| rank.live().is_some()) && found.iter().all(waits_or_left);
        let same = self.still.as_ref().is_some_and(|(_, before)| {
            before.iter().zip(&found).all(|(before, now)| is_same(before, now))
        });
        if !all_wait || !same {
            self.restart();
        }
        if !all_wait {
            return None;
        }
        let (since, before) = self.still.get_or_insert_with(|| (now, found.clone()));
        let time = now.duration_since(*since);
        // It is dear to ask for the time of all threads, so this happens only if the job may really stand still.
        if time >= self.period / 2 && self.computed.is_none() {
            self.computed = Some((now, found.iter().map(|rank| others(rank).0).collect()));
        }
        if time < self.period {
            return None;
        }
        let looked = before.iter().zip(&found).all(|(before, now)| {
            now.live().is_none() || now.seen.looks.wrapping_sub(before.seen.looks) >= LOOKS
        });
        let stopped = found.iter().any(|rank| rank.live().is_some_and(is_stopped));
        if !looked || stopped {
            return None;
        }
        let (start, earlier) = self.computed.as_ref()?;
        let measured = now.duration_since(*start);
        if measured < self.period / 4 {
            return None;
        }
        let computes = |(rank, earlier): (&Now, &Duration)| {
            let (time, runs) = others(rank);
            runs || time.saturating_sub(*earlier) * BUSY > measured
        };
        if found.iter().zip(earlier).any(computes) {
            self.restart();
            return None;
        }
        Some(time)
    }
}

/// Returns whether a rank waits for another rank, or has left the job. A rank that has not joined the job yet does
/// neither.
fn waits_or_left(rank: &Now) -> bool {
    if rank.live().is_some() {
        return rank.seen.wait.is_some_and(|wait| wait.progress != Progress::Working);
    }
    rank.rank.gone || rank.state == State::Finalized
}

fn is_same(before: &Now, now: &Now) -> bool {
    let of = |rank: &Now| (rank.rank, rank.state, rank.seen.version, rank.seen.moved);
    of(before) == of(now)
}

/// Returns how long the threads of a rank that do not wait have computed, and whether one of them does now.
fn others(rank: &Now) -> (Duration, bool) {
    match (rank.live(), rank.wait()) {
        (Some(pid), Some(wait)) => inspect::threads(pid, wait.thread),
        _ => (Duration::ZERO, false),
    }
}

fn is_stopped(pid: i32) -> bool {
    matches!(inspect::state(pid), Some('T' | 't'))
}

/// Returns a line for each rank (the ranks are in the order of their slots) that says what it waits for, or what it
/// does instead. The second value says whether any rank waits.
pub fn lines(segment: &Segment, ranks: &[Rank]) -> (Vec<String>, bool) {
    let time = clock::monotonic_nanoseconds();
    let found = ranks.iter().enumerate().map(|(slot, rank)| Now::of(segment, slot, *rank));
    let found: Vec<Now> = found.collect();
    let lines = found.iter().map(|rank| {
        let what = match rank.wait() {
            Some(wait) => described(wait, time, ranks),
            None => other(rank),
        };
        let stopped =
            if rank.live().is_some_and(is_stopped) { "; the process is stopped" } else { "" };
        let Rank { number, world, .. } = rank.rank;
        format!("{}: {what}{stopped}", who(number, world))
    });
    (lines.collect(), found.iter().any(|rank| rank.wait().is_some()))
}

/// Describes a rank that does not wait.
fn other(rank: &Now) -> String {
    match (rank.state, rank.rank.member) {
        _ if rank.rank.gone => "has ended",
        (State::Finalized, _) => "has called MPI_Finalize",
        (_, None) => "has not called MPI_Init",
        (_, Some(pid)) if inspect::state(pid) == Some('R') => "in its own code, running",
        _ => "in its own code",
    }
    .to_owned()
}

/// Describes a wait. `time` is the time now, in nanoseconds of the machine's clock. `ranks` are all ranks, by slot.
fn described(wait: &Wait, time: u64, ranks: &[Rank]) -> String {
    let seconds = time.saturating_sub(wait.since) as f64 * 1e-9;
    let mut text =
        if seconds < 10.0 { format!("{seconds:.1} s") } else { format!("{seconds:.0} s") };
    let call = wait.call.shown();
    let kind = match wait.kind {
        Kind::Send => "a send",
        Kind::Receive => "a receive",
        Kind::Probe => "a probe",
        Kind::Collective => "a collective call",
        Kind::Window => "a call on a window",
        Kind::File => "a call on a file",
        Kind::Finalize => "finalization",
        Kind::Other => "a call",
    };
    let mut put = |part: std::fmt::Arguments<'_>| {
        let _infallible = text.write_fmt(part);
    };
    match call.as_str() {
        "" => put(format_args!(" in {kind}")),
        call => put(format_args!(" in {call}")),
    }
    // The name of such a call does not say what it waits for.
    let waits = ["MPI_Wait", "Scope::", "Communicator::scope", "Messages::"];
    if wait.kind != Kind::Other && waits.iter().any(|prefix| call.starts_with(prefix)) {
        put(format_args!(" for {kind}"));
    }
    let word = match wait.kind {
        Kind::Send => "to",
        Kind::Receive | Kind::Probe => "from",
        _ => "with",
    };
    match wait.peer {
        Named::None => {}
        Named::Any => put(format_args!(" {word} any rank")),
        Named::One(slot) => {
            // A rank writes the record, so the number may be that of no slot.
            let peer = ranks.get(slot as usize).map(|rank| (rank.number, rank.world));
            let (rank, world) = peer.unwrap_or((slot as usize, 0));
            put(format_args!(" {word} {}", who(rank, world)));
        }
    }
    // The messages of collective calls and windows have tags that the user has not chosen.
    if matches!(wait.kind, Kind::Send | Kind::Receive | Kind::Probe) {
        match wait.tag {
            Named::None => {}
            Named::Any => put(format_args!(", any tag")),
            Named::One(tag) => put(format_args!(", tag {tag}")),
        }
    }
    match (wait.kind, wait.progress) {
        (Kind::Receive, Progress::NoMessage) => {
            put(format_args!(", room for {} bytes", wait.bytes));
        }
        (Kind::Send | Kind::Receive, _) => put(format_args!(", {} bytes", wait.bytes)),
        _ => {}
    }
    let messages = matches!(wait.kind, Kind::Send | Kind::Receive | Kind::Probe);
    let name = wait.name.shown();
    let has_communicator =
        messages || matches!(wait.kind, Kind::Collective | Kind::Window | Kind::File);
    match name.as_str() {
        _ if !has_communicator || wait.progress == Progress::Working => {}
        // Most messages are sent in this communicator.
        "MPI_COMM_WORLD" if messages => {}
        // The number has the rank that has made it in its upper part, and a count below.
        "" => {
            let number = wait.communicator;
            put(format_args!(" on communicator {}.{}", number >> 48, number & ((1 << 48) - 1)));
        }
        name @ ("MPI_COMM_WORLD" | "MPI_COMM_SELF") => put(format_args!(" on {name}")),
        name => put(format_args!(" on \"{name}\"")),
    }
    if wait.ranks > 0 {
        let s = if wait.ranks == 1 { "" } else { "s" };
        put(format_args!(" ({} rank{s})", wait.ranks));
    }
    if wait.others > 0 {
        let s = if wait.others == 1 { "" } else { "s" };
        put(format_args!(", or for {} other request{s}", wait.others));
    }
    match wait.progress {
        Progress::Unknown => {}
        Progress::NotReceived => put(format_args!("; no receive posted")),
        Progress::NotTaken => put(format_args!("; earlier messages to this rank wait, too")),
        Progress::NoMessage => put(format_args!("; no matching message has arrived")),
        Progress::Moving => put(format_args!("; {} bytes have moved", wait.done)),
        Progress::Working => put(format_args!("; a thread of this rank works on it")),
    }
    if wait.threads > 1 {
        put(format_args!(" ({} threads wait)", wait.threads));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use typepack_job::shm::segment::JobFlags;
    use typepack_job::shm::waiting::Text;

    const SECOND: u64 = 1_000_000_000;

    fn send() -> Wait {
        Wait {
            kind: Kind::Send,
            progress: Progress::NotReceived,
            threads: 1,
            since: SECOND,
            peer: Named::One(1),
            tag: Named::One(0),
            bytes: 1 << 20,
            call: Text::new(b"MPI_Send"),
            name: Text::new(b"MPI_COMM_WORLD"),
            ..Wait::default()
        }
    }

    #[test]
    fn a_wait_is_described_in_a_line() {
        let at = |wait: &Wait| described(wait, 11 * SECOND, &[]);
        assert_eq!(
            at(&send()),
            "10 s in MPI_Send to rank 1, tag 0, 1048576 bytes; no receive posted"
        );
        let other = Wait { call: Text::new(b""), name: Text::new(b"halo"), ..send() };
        let text = "10 s in a send to rank 1, tag 0, 1048576 bytes on \"halo\"; no receive posted";
        assert_eq!(at(&other), text);
        let waits = Wait {
            kind: Kind::Receive,
            progress: Progress::NoMessage,
            peer: Named::Any,
            tag: Named::Any,
            others: 2,
            threads: 3,
            call: Text::new(b"MPI_Waitany"),
            name: Text::default(),
            communicator: 2 << 48 | 5,
            since: 9 * SECOND,
            ..send()
        };
        assert_eq!(
            at(&waits),
            "2.0 s in MPI_Waitany for a receive from any rank, any tag, room for 1048576 bytes on communicator 2.5, \
             or for 2 other requests; no matching message has arrived (3 threads wait)"
        );
        let barrier = Wait {
            kind: Kind::Collective,
            progress: Progress::Unknown,
            peer: Named::None,
            ranks: 4,
            call: Text::new(b"MPI_Barrier"),
            ..send()
        };
        assert_eq!(at(&barrier), "10 s in MPI_Barrier on MPI_COMM_WORLD (4 ranks)");
    }

    #[test]
    fn the_period_is_a_number_of_seconds() {
        assert_eq!(period(None, true), Ok(Some(Duration::from_secs(10))));
        assert_eq!(period(None, false), Ok(Some(Duration::from_secs(60))));
        assert_eq!(period(Some("0.5"), true), Ok(Some(Duration::from_millis(500))));
        assert_eq!((period(Some("0"), true), period(Some("1e99"), true)), (Ok(None), Ok(None)));
        for wrong in ["", "-1", "soon", "nan"] {
            let error = period(Some(wrong), true).expect_err("refused");
            assert!(error.starts_with(&format!("TYPEPACK_WATCHDOG: '{wrong}'")), "{error}");
        }
    }

    /// A job of two ranks whose processes do not exist, so that they never compute.
    struct Scene {
        segment: Segment,
        ranks: [Rank; 2],
        dog: Watchdog,
        now: Instant,
    }

    impl Scene {
        fn new() -> Self {
            let segment = Segment::create(2, &[], JobFlags::default(), 1).expect("a segment");
            for rank in 0..2 {
                segment
                    .slot(rank)
                    .state
                    .store(State::Registered as u32, std::sync::atomic::Ordering::Relaxed);
                segment.slot(rank).waiting.write(Some(&send()));
            }
            let now = Instant::now();
            let ranks =
                [0, 1].map(|number| Rank { number, world: 0, member: Some(-1), gone: false });
            Self { segment, ranks, dog: Watchdog::new(STEP, now), now }
        }

        /// Lets `time` pass, in which rank 0 looks for news, and rank 1 if `both`.
        fn pass(&mut self, time: Duration, both: bool) -> Option<Duration> {
            for rank in 0..if both { 2 } else { 1 } {
                self.segment.slot(rank).waiting.look(false);
                self.segment.slot(rank).waiting.look(false);
            }
            self.now += time;
            self.dog.look(&self.segment, &self.ranks, self.now)
        }
    }

    #[test]
    fn the_watchdog_tells_when_all_wait_and_nothing_moves() {
        let mut scene = Scene::new();
        assert_eq!(scene.pass(Duration::ZERO, true), None);
        assert_eq!(scene.pass(STEP / 2, true), None);
        assert_eq!(scene.pass(STEP / 2, true), Some(STEP));
    }

    #[test]
    fn whatever_moves_begins_the_period_anew() {
        let mut scene = Scene::new();
        let all: [fn(&mut Scene); 5] = [
            |scene| scene.segment.slot(1).waiting.look(true),
            |scene| scene.segment.slot(1).waiting.write(Some(&send())),
            |scene| scene.segment.slot(1).waiting.write(None),
            |scene| {
                let working = Wait { progress: Progress::Working, ..send() };
                scene.segment.slot(1).waiting.write(Some(&working));
            },
            |scene| scene.ranks[1].member = None,
        ];
        for change in all {
            scene.pass(Duration::ZERO, true);
            scene.pass(STEP / 2, true);
            change(&mut scene);
            assert_eq!(scene.pass(STEP, true), None);
        }
    }

    #[test]
    fn a_rank_that_gets_no_cpu_is_waited_for() {
        let mut scene = Scene::new();
        for _ in 0..3 {
            assert_eq!(scene.pass(STEP, false), None);
        }
        assert_eq!(scene.pass(STEP, true), Some(3 * STEP));
    }

    #[test]
    fn a_rank_that_has_left_is_not_waited_for() {
        let mut scene = Scene::new();
        scene.ranks[1].gone = true;
        scene.segment.slot(1).waiting.write(None);
        scene.segment.mark_finalized(1);
        assert_eq!(scene.pass(Duration::ZERO, false), None);
        assert_eq!(scene.pass(STEP / 2, false), None);
        assert_eq!(scene.pass(STEP / 2, false), Some(STEP));
        let (lines, any) = lines(&scene.segment, &scene.ranks);
        assert!(any && lines[0].starts_with("rank 0: "), "{lines:?}");
        assert_eq!(lines[1], "rank 1: has ended");
    }
}
