//! A job to which ranks are added while it runs. The ranks are processes of this test program, which join the job in
//! [`as_a_rank`].

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use typepack_job::shm::attach::{self, attach_from_env};
use typepack_job::shm::failure::Ending;
use typepack_job::shm::layout::State;
use typepack_job::shm::segment::JobFlags;
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
        job.worlds.iter().map(|world| world.end.outcome().and_then(|outcome| outcome.line(0)));
    let outcomes: Vec<_> = outcomes.collect();
    assert_eq!(outcomes[0], None);
    let line = outcomes[1].as_deref().unwrap_or_default();
    assert!(
        line.starts_with("rank 1 (pid ") && line.ends_with("killed by signal 9 (SIGKILL)"),
        "{line}"
    );
    assert_eq!(job.ranks[0].exit, Some(Exit::Code(0)));
    assert_eq!(job.ranks[1].exit, Some(Exit::Code(0)));
    assert_eq!(job.run(), 137);
}
