//! Jobs with several worlds. The ranks are processes of this test program, which join the job in
//! [`as_a_rank`].

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use typepack_job::service::{Answer, Request as Asks};
use typepack_job::shm::attach::{self, attach_from_env};
use typepack_job::shm::failure::Ending;
use typepack_job::shm::layout::State;
use typepack_job::shm::segment::JobFlags;
use typepack_job::sys::channel::Bond;
use typepack_job::sys::signal::SignalSet;

use super::*;
use crate::args::{Request, Surroundings};

/// The variable that says what the ranks of a world do.
const ROLE: &str = "MPIEXEC_TEST_ROLE";

/// How long a rank waits for the others before it gives up.
const LIMIT: Duration = Duration::from_secs(120);

/// The plan for a world of `ranks` ranks that do what `role` says.
fn plan(ranks: usize, role: &str) -> (args::Job, PathBuf) {
    let program = std::env::current_exe().expect("this program has a path");
    let line = ["-n", &ranks.to_string(), "-bind-to", "none", "-env", ROLE, role].map(String::from);
    let rest = ["watch::tests::as_a_rank", "--exact", "-q", "--nocapture"];
    let words = line.into_iter().chain([program.display().to_string()]);
    let words = words.chain(rest.map(String::from)).map(Into::into);
    let surroundings = Surroundings { bind: None, timeout: None, host: "here", parts: |_| 1 };
    let Ok(Request::Run(mut job)) = args::parse(words, surroundings) else { panic!("a job") };
    // What the test program says about itself is of no use here.
    job.files = [Some("/dev/null".into()), None];
    (*job, program)
}

/// Waits until `is_there` returns true.
fn await_sign(mut is_there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_there() {
        assert!(start.elapsed() < LIMIT, "there is no sign");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Joins the job if this process is a rank of the job below, and does what its role says.
#[test]
fn as_a_rank() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let joined = attach_from_env().expect("a job").expect("a rank");
    let (segment, slot) = (&joined.segment, joined.slot);
    assert_eq!(std::env::var(attach::SIZE), Ok(joined.world.len().to_string()));
    assert_eq!(segment.world_of(slot), Some(joined.world.clone()));
    match role.as_str() {
        // These ranks stay until the second world has failed and is dead. Nobody tells them of that.
        "stays" => {
            assert_eq!((joined.world, segment.ranks()), (0..2, 2));
            await_sign(|| segment.processes() == 5);
            await_sign(|| (2..5).all(|slot| segment.state(slot) == State::Dead));
            assert_eq!((segment.failures(slot), segment.first_failure(slot)), (0, None));
            assert_eq!(segment.ending(3), Some(Ending::Killed(9)));
            segment.mark_finalized(slot);
        }
        // These ranks wait for the end that the death of the middle one brings.
        "fails" => {
            assert_eq!(joined.world, 2..5);
            await_sign(|| {
                (2..5).all(|slot| segment.slot(slot).watched.load(Ordering::Acquire) == 1)
            });
            if slot == 3 {
                let own = process::watch(rustix::process::getpid()).expect("a descriptor");
                process::signal_process(own.as_fd(), libc::SIGKILL).expect("a signal");
            }
            await_sign(|| segment.failures(slot) > 0);
            let first = segment.first_failure(slot).map(|failure| (failure.slot, failure.rank));
            assert_eq!(first, Some((3, 1)));
            await_sign(|| false);
        }
        // This rank waits until the test kills it, or mpiexec.
        "waits" => await_sign(|| false),
        // This rank tells of a bond with the world of slot 1, and then kills its process.
        "bonds" => {
            await_sign(|| segment.is_aborting());
            joined.tell_bond(Bond::Connected, 1).expect("a message");
            let pid = segment.slot(1).pid.load(Ordering::Relaxed).cast_signed();
            let other = process::watch(Pid::from_raw(pid).expect("a process")).expect("it runs");
            process::signal_process(other.as_fd(), libc::SIGKILL).expect("a signal");
            await_sign(|| false);
        }
        _ => panic!("{role}"),
    }
}

#[test]
fn ranks_join_a_running_job_and_their_failure_is_their_own() {
    let ((first, program), (second, _)) = (plan(2, "stays"), plan(3, "fails"));
    let signals = signal::descriptor(&SignalSet::new(&[])).expect("a descriptor");
    let machine = start::Machine {
        host: "here",
        library: None,
        table: &[],
        signals: SignalSet::new(&[]),
        descriptors: process::raise_descriptor_limit(),
    };
    let found = || Found { path: program.clone(), mpich: None };
    let programs = [found(), found()];
    let parent = None;
    let setting =
        start::Setting { programs: &programs, placed: None, world: 1, parent, machine: &machine };
    let (first, second) = (Rc::new(first), Rc::new(second));
    let made = start::make(2, &[], JobFlags::default(), true).expect("a job");
    let mut outputs = Outputs::standard();
    let mut job = Job::new(
        made.segment,
        &mut outputs,
        (signals.as_fd(), made.input),
        (first.clone(), None),
        &machine,
    );
    job.start(first, (&programs, Reservation::default()), Some(made.stdin), None)
        .expect("the first world");
    while !job.ranks.iter().all(|watched| watched.member.is_some()) {
        assert!(!job.ranks.iter().any(Watched::is_gone), "a rank has ended early");
        job.turn(None, Instant::now());
    }
    // A world that cannot start leaves the job as it is.
    let app = |ranks, argument: &str| args::App {
        ranks,
        arguments: vec![argument.into()],
        ..second.apps[0].clone()
    };
    let too_many = args::Job { apps: vec![app(4096, "")], ..(*second).clone() };
    let no_text = args::Job { apps: vec![app(1, ""), app(1, "a\0b")], ..(*second).clone() };
    for (wrong, why) in [(&too_many, "4096 more ranks"), (&no_text, "cannot start rank 1 of 2")] {
        let error = start::start(&job.segment, (job.ranks.len(), wrong), &setting, None)
            .expect_err("refused");
        assert!(error.contains(why), "{error}");
        assert_eq!(job.segment.processes(), 2);
    }
    job.start(second, (&programs, Reservation::default()), None, None).expect("the second world");
    assert_eq!((job.ranks.len(), job.worlds[1].slots.clone()), (5, 2..5));
    while !job.ranks.iter().all(Watched::is_gone) {
        let now = Instant::now();
        let deadlines = job.worlds.iter().filter_map(|world| world.end.deadline());
        job.turn(deadlines.min(), now);
    }
    let outcomes =
        job.worlds.iter().map(|world| world.end.outcome().and_then(|outcome| outcome.line(None)));
    let outcomes: Vec<_> = outcomes.collect();
    assert_eq!(outcomes[0], None);
    let line = outcomes[1].as_deref().unwrap_or_default();
    assert!(
        line.starts_with("rank 1 of world 1 (pid ")
            && line.ends_with("killed by signal 9 (SIGKILL)"),
        "{line}"
    );
    // The second world has left nothing, although the first one went on.
    assert!(job.worlds[1].left.is_cleared());
    assert!(job.ranks[2..].iter().all(|w| w.process.is_none() && w.member.is_none()));
    assert_eq!(job.ranks[0].exit, Some(Exit::Code(0)));
    assert_eq!(job.ranks[1].exit, Some(Exit::Code(0)));
    assert_eq!(job.run(), 137);
}

/// Makes a job of these worlds (number of ranks, role), and calls `work` when all ranks have joined it.
fn with_worlds(worlds: &[(usize, &str)], goes_on: bool, work: impl FnOnce(Job<'_>)) {
    let signals = signal::descriptor(&SignalSet::new(&[])).expect("a descriptor");
    let machine = start::Machine {
        host: "here",
        library: None,
        table: &[],
        signals: SignalSet::new(&[]),
        descriptors: process::raise_descriptor_limit(),
    };
    let made = start::make(worlds[0].0, &[], JobFlags::default(), true).expect("a job");
    let mut outputs = Outputs::standard();
    let (first, _) = plan(worlds[0].0, worlds[0].1);
    let mut job = Job::new(
        made.segment,
        &mut outputs,
        (signals.as_fd(), made.input),
        (Rc::new(first), None),
        &machine,
    );
    let mut stdin = Some(made.stdin);
    for (number, (ranks, role)) in worlds.iter().enumerate() {
        let (plan, path) = plan(*ranks, role);
        let plan = args::Job { goes_on, ..plan };
        let programs = [Found { path, mpich: None }];
        let parent = (number > 0).then_some(0);
        job.start(Rc::new(plan), (&programs, Reservation::default()), stdin.take(), parent)
            .expect("a world");
    }
    while !job.ranks.iter().all(|watched| watched.member.is_some()) {
        assert!(!job.ranks.iter().any(Watched::is_gone), "a rank has ended early");
        job.turn(None, Instant::now());
    }
    work(job);
}

/// Returns the process that mpiexec has started in `slot`.
fn child<'a>(job: &'a Job<'_>, slot: usize) -> &'a Child {
    let process = job.ranks[slot].process.as_ref().expect("a process");
    process.child.as_ref().expect("a process of mpiexec")
}

/// Waits until the process in `slot` has ended. The job does not learn of it.
fn await_death(job: &Job<'_>, slot: usize) {
    let child = child(job, slot);
    await_sign(|| !matches!(child.ended(), Ok(None)));
}

/// Kills the process in `slot`, and tells the job.
fn kill(job: &mut Job<'_>, slot: usize) {
    process::signal_process(child(job, slot).pidfd(), libc::SIGKILL).expect("a signal");
    await_death(job, slot);
    job.take_child(slot, Instant::now());
}

/// Ends all ranks. Returns the exit code of mpiexec.
fn end(job: Job<'_>) -> u8 {
    job.signal_all(libc::SIGKILL);
    job.run()
}

/// Returns the slot of the rank whose failure ends a world, its process, and how it has ended.
fn reason(job: &Job<'_>, world: usize) -> Option<(usize, i32, Ending)> {
    match job.worlds[world].end.outcome()? {
        Outcome::Failed(failure, pid) => Some((failure.slot, *pid, failure.ending)),
        other => panic!("{other:?}"),
    }
}

/// The only rank of a world is dead when the job reads that another rank has a bond with this world.
#[test]
fn a_bond_that_is_read_with_the_death_counts() {
    with_worlds(&[(1, "bonds"), (1, "waits")], false, |mut job| {
        let pid = job.ranks[1].pid();
        // Now rank 0 tells of the bond, and kills the other rank.
        job.segment.mark_aborting();
        await_death(&job, 1);
        job.take_child(1, Instant::now());
        assert_eq!(reason(&job, 1), Some((1, pid, Ending::Killed(9))));
        assert_eq!(reason(&job, 0), reason(&job, 1));
        assert_eq!(end(job), 137);
    });
}

/// A rank tells of its bond with a world that ends, or of which nothing is left: the failure that has ended that world
/// ends all worlds that are connected with the rank. It is not the failure of a rank that mpiexec has killed.
#[test]
fn a_bond_that_is_read_after_the_death_brings_the_same_failure() {
    for is_cleared in [false, true] {
        with_worlds(&[(1, "waits"), (2, "waits"), (1, "waits")], false, |mut job| {
            let pid = job.ranks[2].pid();
            kill(&mut job, 2);
            while is_cleared && !job.worlds[1].left.is_cleared() {
                let deadlines = job.worlds.iter().filter_map(|world| world.end.deadline());
                let looks = job.worlds.iter().filter_map(|world| world.left.deadline());
                job.turn(deadlines.chain(looks).min(), Instant::now());
            }
            assert_eq!(reason(&job, 1), Some((2, pid, Ending::Killed(9))));
            job.take_bond(0, (Bond::Connected, 3), Instant::now());
            assert_eq!((reason(&job, 0), reason(&job, 2)), (None, None));
            job.take_bond(0, (Bond::Connected, 1), Instant::now());
            assert_eq!(reason(&job, 0), reason(&job, 1), "cleared: {is_cleared}");
            assert_eq!(reason(&job, 2), reason(&job, 1), "cleared: {is_cleared}");
            assert_eq!(end(job), 137);
        });
    }
}

/// A bond with a dead rank ends nobody if the user wants that ranks go on after failures, or if the rank has finalized.
#[test]
fn a_bond_that_is_read_after_the_death_may_end_nothing() {
    for goes_on in [false, true] {
        with_worlds(&[(1, "waits"), (1, "waits")], goes_on, |mut job| {
            kill(&mut job, 1);
            if !goes_on {
                job.segment.mark_finalized(0);
            }
            job.take_bond(0, (Bond::Connected, 1), Instant::now());
            assert!(reason(&job, 1).is_some());
            assert_eq!(reason(&job, 0), None, "goes on: {goes_on}");
            assert!(!job.worlds[0].end.is_ending());
            assert_eq!(end(job), 137);
        });
    }
}

/// A call that waited at a port and has failed meets nobody.
#[test]
fn nobody_meets_a_call_that_waits_no_more() {
    with_worlds(&[(1, "waits"), (1, "waits")], false, |mut job| {
        let asked = |slot| {
            let (reader, answer) = stream::pipe().expect("a pipe");
            (reader, Asked { slot, answer, counts: Vec::new(), commands: Vec::new() })
        };
        let answer = |reader: &OwnedFd| {
            let mut bytes = [0; 256];
            match stream::read(reader.as_fd(), &mut bytes) {
                Ok(Transfer::Moved(n)) => Answer::parse(&bytes[..n]).expect("an answer"),
                other => panic!("{other:?}"),
            }
        };
        let (reader, open) = asked(0);
        job.take_port_request(open, Asks::Open);
        let Answer::Port(name) = answer(&reader) else { panic!("a port") };
        // One call fails while it waits, another one before the job reads its request.
        let (reader, accepts) = asked(0);
        job.take_port_request(accepts, Asks::Accept(name.clone()));
        drop(reader);
        let (reader, connects) = asked(1);
        drop(reader);
        job.take_port_request(connects, Asks::Connect(name.clone()));
        let (connecting, connects) = asked(1);
        job.take_port_request(connects, Asks::Connect(name.clone()));
        assert_eq!(job.connected(0, State::Registered), [0]);
        let (accepting, accepts) = asked(0);
        job.take_port_request(accepts, Asks::Accept(name));
        assert!(matches!(answer(&connecting), Answer::Met { slot: 0, number: 1 }));
        assert!(matches!(answer(&accepting), Answer::Met { slot: 1, number: 1 }));
        assert_eq!(job.connected(0, State::Registered), [0, 1]);
        assert_eq!(end(job), 137);
    });
}
