//! Ranks that `mpiexec` has not started. Another launcher has: MPICH's hydra, or a launcher of the tests
//! ([`fake_pmi`](crate::fake_pmi)) that answers as a test wants. Or nobody has: a process that is by itself and starts others.
//! The ranks are processes of this test program, which do in [`as_started_rank`] what their role says.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::fake_pmi::{self, Launcher};
use crate::harness::{
    Job, Process, Signs, expect_no_shared_name_but, kill, run, shared_names, sleeps_in_futex, start,
};
use crate::job::mpiexec;
use typepack::io::{File, Mode};
use typepack::rma::WindowOf;
use typepack::{Command as Program, Communicator, Op, Source, Tag, Universe};
use typepack_test_support::skipped::skipped;

/// The name of the environment variable that contains the role.
const ROLE: &str = "STARTED_TEST_ROLE";
/// The exit code of a rank whose call has failed because another rank has died.
const TOLD: i32 = 6;

/// Returns the command line of a rank.
fn rank() -> [String; 5] {
    let exe = std::env::current_exe().expect("our own path");
    let exe = exe.to_str().expect("text");
    [exe, "starters::as_started_rank", "--exact", "--nocapture", "--test-threads=1"]
        .map(str::to_owned)
}

/// Returns MPICH's launchers on this machine: that of its wheel and that of Debian.
fn hydras() -> Vec<PathBuf> {
    // The launcher of this build must be there, because the ranks look for it.
    mpiexec();
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/peers");
    let found = ["mpich", "debian-mpich"].map(|peer| peers.join(peer).join("bin/mpiexec"));
    let found: Vec<PathBuf> = found.into_iter().filter(|path| path.exists()).collect();
    if found.is_empty() {
        skipped("no MPICH in target/peers (scripts/bench peers mpich)");
    }
    found
}

/// Returns the command in which a launcher starts `words` with the role `role`.
fn command(launcher: &Path, words: &[&str], role: &str) -> Command {
    let mut command = Command::new(launcher);
    command.args(words).env(ROLE, role).stdin(Stdio::null());
    command
}

/// Returns the command of a job of `ranks` ranks. `wrapper` is a program with arguments that starts each rank.
fn job(launcher: &Path, ranks: usize, role: &str, wrapper: &[&str]) -> Command {
    let (ranks, rank) = (ranks.to_string(), rank());
    let rank: Vec<&str> = rank.iter().map(String::as_str).collect();
    command(launcher, &[&["-n", &ranks], wrapper, &rank].concat(), role)
}

#[test]
fn as_started_rank() {
    let Ok(role) = std::env::var(ROLE) else { return };
    if role == "fork" {
        fork_before_init();
    }
    let universe = match typepack::init() {
        Ok(universe) => universe,
        Err(error) => {
            println!("refused: {error}");
            if role == "stay" {
                let signs = Signs::of_this_rank();
                signs.make(&format!("refused-{}", std::env::var("PMI_RANK").expect("a rank")));
                signs.wait_for("go", 1);
            }
            std::process::exit(4);
        }
    };
    let world = universe.world();
    if let Some(parent) = universe.parent() {
        return child(&world, &parent, &role);
    }
    // A process by itself has no variables.
    let given = |name, otherwise| {
        std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
    };
    let (number, size): (usize, usize) = (given("PMI_RANK", 0), given("PMI_SIZE", 1));
    if role == "alone" {
        println!("alone: {} of {}", world.rank(), world.size());
        return;
    }
    assert_eq!((world.rank(), world.size()), (number, size));
    match role.as_str() {
        "everything" => everything(&world),
        "programs" => {
            let (number, ranks) = (universe.app_number(), universe.app_size());
            println!("rank {} program {number:?} of {ranks:?}", world.rank());
            let sets = universe.process_sets();
            assert!(sets.iter().any(|set| set.is_named("typepack://program/1")), "{sets:?}");
            println!("universe {:?}, {:?}", universe.universe_size(), typepack::program_size());
        }
        "abort" if number == 1 => {
            world.barrier().expect("a barrier");
            typepack::abort(9);
        }
        "abort" => {
            world.barrier().expect("a barrier");
            wait_for_ever(&world);
        }
        "kill" if number == 1 => {
            kill(std::process::id().try_into().expect("a number"), libc::SIGKILL)
        }
        "leave" if number == 1 => std::process::exit(0),
        "child" => {
            let exe = std::env::current_exe().expect("our own path");
            let mut child = Command::new(exe);
            child.args(&rank()[1..]);
            let status = child.status().expect("a child");
            println!("child: {:?}", status.code());
            world.barrier().expect("a barrier");
        }
        "spawn" => spawn(&universe),
        "fork" => {
            world.barrier().expect("a barrier");
            // The other process of this rank joins while this one has.
            let signs = Signs::of_this_rank();
            signs.make(&format!("joined-{number}"));
            signs.wait_for("refused", 2);
            world.barrier().expect("a barrier");
        }
        "spawn and wait" => {
            let children = spawned(&world);
            Signs::of_this_rank().make(&format!("joined-parent-{number}"));
            wait_for_ever(&children);
        }
        "spawn and leave" => {
            spawned(&world).disconnect().expect("disconnected");
            println!("rank {number} leaves");
        }
        "wait" => {
            world.barrier().expect("a barrier");
            Signs::of_this_rank().make(&format!("joined-{number}"));
            wait_for_ever(&world);
        }
        _ => wait_for_ever(&world),
    }
}

/// Makes a second process of this rank, which tries to join when the rank has joined.
fn fork_before_init() {
    let number = std::env::var("PMI_RANK").expect("a rank");
    let parent = std::process::id();
    // SAFETY: the other threads of this test program hold no lock that the child needs: they wait for the test.
    if unsafe { libc::fork() } != 0 {
        return;
    }
    let signs = Signs::of_this_rank();
    signs.wait_for("joined", 2);
    let error = typepack::init().map(drop).expect_err("the rank has joined");
    let why = format!("process {parent} has already joined this job as rank {number}");
    if error.to_string().contains(&why) {
        signs.make(&format!("refused-{number}"));
    } else {
        println!("not {why:?}: {error}");
    }
    // SAFETY: `_exit` has no conditions.
    unsafe { libc::_exit(0) };
}

/// Starts two processes that have the same role.
fn spawned(world: &Communicator) -> Communicator {
    let [exe, arguments @ ..] = rank();
    let command = Program::new(exe).args(arguments).processes(2);
    world.spawn(&[command], 0).expect("two children").children
}

/// Starts processes twice, and uses a port and a service in between.
fn spawn(universe: &Universe) {
    let world = universe.world();
    for round in 0..2 {
        let children = spawned(&world);
        if world.rank() == 0 {
            for child in 0..2 {
                let mut values = vec![0_u64; 100_000];
                children.recv(&mut values, Source::Rank(child), Tag::Is(3)).expect("a message");
                assert!(values.iter().all(|value| *value == 40 + child as u64));
                children.send(&values[..1], child, 4).expect("sent");
            }
            let port = universe.open_port().expect("a port");
            universe.publish("starters", &port).expect("published");
            assert_eq!(universe.look_up("starters").expect("a service"), port);
            universe.unpublish("starters", &port).expect("withdrawn");
            universe.close_port(&port).expect("closed");
        }
        let all = children.merge(false).expect("merged");
        let sum = all.all_reduce_value(1_u64, Op::Sum).expect("a sum");
        assert_eq!(sum, 2 + world.size() as u64);
        drop(all);
        children.disconnect().expect("disconnected");
        println!("rank {} has had children {round}", world.rank());
    }
    // The job knows no program of a process by itself, and none that another job has advertised.
    if std::env::var_os("PMI_SIZE").is_none() {
        assert_eq!((universe.app_number(), universe.initial_errhandler()), (None, None));
    }
}

/// Does what a process does that ranks of this role have started.
fn child(world: &Communicator, parent: &Communicator, role: &str) {
    let number = world.rank();
    assert_eq!(world.size(), 2);
    assert!(std::env::var_os("PMI_FD").is_none());
    match role {
        "spawn" => {
            parent.send(&vec![40 + number as u64; 100_000], 0, 3).expect("sent");
            let mut value = [0_u64];
            parent.recv(&mut value, Source::Rank(0), Tag::Is(4)).expect("a message");
            assert_eq!(value, [40 + number as u64]);
            parent.merge(true).expect("merged").all_reduce_value(1_u64, Op::Sum).expect("a sum");
            parent.disconnect().expect("disconnected");
        }
        "spawn and wait" => {
            Signs::of_this_rank().make(&format!("joined-child-{number}"));
            wait_for_ever(parent);
        }
        "spawn and leave" => {
            parent.disconnect().expect("disconnected");
            let signs = Signs::of_this_rank();
            signs.make(&format!("apart-{number}"));
            signs.wait_for("go", 1);
            world.barrier().expect("a barrier");
            println!("child {number} ends");
        }
        _ => panic!("no role of children: {role}"),
    }
}

/// Waits for a message that never arrives.
fn wait_for_ever(world: &Communicator) -> ! {
    let mut nothing = [0_u8; 8];
    let error = world.recv(&mut nothing, Source::Any, Tag::Is(1)).expect_err("nobody sends");
    println!("told: {error}");
    std::process::exit(TOLD);
}

/// Uses messages, collective calls, a window and a file, and checks all results.
fn everything(world: &Communicator) {
    let (rank, size) = (world.rank(), world.size());
    let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
    for len in [1, 1000, 300_000] {
        let (out, mut back) = (vec![rank as u64; len], vec![0_u64; len]);
        world.sendrecv(&out, next, 5, &mut back, last, 5).expect("messages");
        assert!(back.iter().all(|value| *value == last as u64));
    }
    let sum = world.all_reduce_value(rank as u64 + 1, Op::Sum).expect("a sum");
    assert_eq!(sum, (size * (size + 1) / 2) as u64);
    let mut window = WindowOf::<u64>::allocate(world, size).expect("a window");
    let mut epoch = window.fence().expect("a fence");
    epoch.rank(next).expect("a rank").write(&[rank as u64 + 7], rank).expect("a put");
    epoch.fence().expect("a fence");
    let mut got = [0];
    epoch.rank(rank).expect("a rank").read(&mut got, last).expect("a get");
    epoch.end().expect("the end");
    assert_eq!(got, [last as u64 + 7]);
    let path = PathBuf::from(std::env::var_os("SIGNS").expect("a folder")).join("data");
    let file =
        File::open(world, &path, Mode::CREATE_READ_WRITE | Mode::DELETE_ON_CLOSE).expect("a file");
    file.write_at_all(4 * rank as u64, &[rank as u8; 4]).expect("written");
    file.sync().expect("synchronised");
    world.barrier().expect("a barrier");
    let mut all = vec![9_u8; 4 * size];
    assert_eq!(file.read_at_all(0, &mut all).expect("read"), 4 * size);
    assert!(all.iter().enumerate().all(|(at, byte)| *byte == (at / 4) as u8));
    file.close().expect("closed");
    println!("rank {rank} of {size} has everything");
}

/// Checks that ranks of hydra form one job that has everything.
#[test]
fn hydras_ranks_are_one_job() {
    for hydra in hydras() {
        for ranks in [2, 3, 4] {
            let signs = Signs::new();
            let done = run(signs.given(job(&hydra, ranks, "everything", &[])));
            assert_eq!((done.code, done.left.len(), done.err.as_str()), (0, 0, ""), "{done:?}");
            assert_eq!(done.out.matches("has everything").count(), ranks, "{done:?}");
        }
        let signs = Signs::new();
        let done = run(signs.given(job(&hydra, 1, "everything", &[])));
        assert_eq!((done.code, done.err.as_str()), (0, ""), "a process by itself: {done:?}");
    }
}

#[test]
fn programs_behind_wrappers_are_ranks() {
    let python = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:], close_fds=False))";
    for hydra in hydras() {
        for wrapper in [&["python3", "-c", python][..], &["sh", "-c", "\"$@\"; exit $?", "sh"]] {
            let signs = Signs::new();
            let done = run(signs.given(job(&hydra, 2, "everything", wrapper)));
            assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
            assert_eq!(done.out.matches("has everything").count(), 2, "{done:?}");
        }
    }
}

/// Checks that the ranks know the programs of the job.
#[test]
fn ranks_of_several_programs_are_one_job() {
    let rank = rank();
    let rank: Vec<&str> = rank.iter().map(String::as_str).collect();
    for hydra in hydras() {
        let words = [&["-n", "2"][..], &rank, &[":", "-n", "1"], &rank].concat();
        let done = run(command(&hydra, &words, "programs"));
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
        for (rank, program, ranks) in [(0, 0, 2), (1, 0, 2), (2, 1, 1)] {
            let line = format!("rank {rank} program Some({program}) of Some({ranks})");
            assert!(done.out.contains(&line), "{line}: {done:?}");
        }
    }
}

/// Checks that the exit code of a rank that aborts is that of hydra.
#[test]
fn an_abort_ends_all_ranks() {
    for hydra in hydras() {
        let done = run(job(&hydra, 3, "abort", &[]));
        assert_eq!((done.code, done.left.len()), (9, 0), "{done:?}");
        assert!(!done.out.contains("told"), "{done:?}");
        expect_a_rank_is_blamed(&done.err);
    }
}

/// Checks that a job of hydra ends because a rank is killed, and that no line says something else.
#[test]
fn a_rank_that_dies_is_blamed_and_not_the_launcher() {
    for hydra in hydras() {
        let done = run(job(&hydra, 3, "kill", &[]));
        assert_ne!((done.code, done.left.len()), (0, 0), "{done:?}");
        expect_a_rank_is_blamed(&done.err);
    }
}

/// Hydra may close what the ranks print before the line of typepack comes, so there is one line or none.
fn expect_a_rank_is_blamed(err: &str) {
    let lines: Vec<&str> = err.lines().filter(|line| line.contains("typepack: ")).collect();
    assert!(lines.len() <= 1 && lines.iter().all(|line| line.contains("typepack: rank ")), "{err}");
}

/// Checks that a job of hydra ends whatever process of it is killed: hydra's `mpiexec` and its proxy, the process that
/// watches the ranks, and a rank.
#[test]
fn nothing_is_left_whoever_is_killed() {
    for hydra in hydras() {
        for victim in ["mpiexec", "hydra_pmi_proxy", "--behind", "as_started_rank"] {
            let signs = Signs::new();
            let job = start(signs.given(job(&hydra, 3, "wait", &[])));
            signs.wait(&job, "joined", 3);
            let pid = victim_of(&job, victim);
            kill(pid, libc::SIGKILL);
            job.expect_gone();
            let done = job.finish();
            assert_ne!(done.code, 0, "{victim}: {done:?}");
            assert!(!done.out.contains("has everything"), "{done:?}");
        }
    }
}

/// Checks that nothing is left of the only rank of a launcher and of its children if the launcher is killed.
#[test]
fn the_end_of_the_launcher_is_the_end_of_its_only_rank() {
    for hydra in hydras() {
        for victim in ["mpiexec", "hydra_pmi_proxy"] {
            let signs = Signs::new();
            let job = start(signs.given(job(&hydra, 1, "spawn and wait", &[])));
            signs.wait(&job, "joined", 3);
            kill(victim_of(&job, victim), libc::SIGKILL);
            job.expect_gone();
            let done = job.finish();
            assert_ne!(done.code, 0, "{victim}: {done:?}");
        }
    }
}

/// Returns the process of the job in whose command line the text `part` is.
fn victim_of(job: &Job, part: &str) -> i32 {
    // Debian's file has another name than the wheel's, and the proxy's command line may name it.
    let own = |command: &str| {
        part != "mpiexec" || !command.contains("proxy") && !command.contains("--behind")
    };
    job.wait_for(part, || {
        let mut all = job.processes();
        all.retain(|process| process.command.contains(part) && own(&process.command));
        let is_rank = part == "as_started_rank";
        all.retain(|process| {
            !is_rank || !process.command.contains("hydra") && sleeps_in_futex(process.pid)
        });
        all.first().map(|process| process.pid)
    })
}

/// Checks that ranks of other launchers can start processes.
#[test]
fn ranks_of_other_launchers_start_processes() {
    for (rank, end) in fake(3, "spawn", |_, _| None).finish().iter().enumerate() {
        assert_eq!((end.0, end.2.as_str()), (Some(0), ""), "{end:?}");
        assert!(end.1.contains(&format!("rank {rank} has had children 1")), "{end:?}");
    }
    for hydra in hydras() {
        for ranks in [1, 2] {
            let signs = Signs::new();
            let done = run(signs.given(job(&hydra, ranks, "spawn", &[])));
            assert_eq!((done.code, done.left.len(), done.err.as_str()), (0, 0, ""), "{done:?}");
            assert_eq!(done.out.matches("has had children").count(), 2 * ranks, "{done:?}");
        }
    }
}

/// Returns the command of a process that is by itself.
fn alone(role: &str) -> Command {
    mpiexec();
    let [exe, arguments @ ..] = rank();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    command(Path::new(&exe), &words, role)
}

#[test]
fn a_process_by_itself_starts_others() {
    let done = run(alone("spawn"));
    assert_eq!((done.code, done.left.len(), done.err.as_str()), (0, 0, ""), "{done:?}");
    for round in 0..2 {
        assert!(done.out.contains(&format!("rank 0 has had children {round}")), "{done:?}");
    }
}

/// Checks that nothing is started for a process that asks for nothing.
#[test]
fn a_process_by_itself_is_by_itself() {
    let signs = Signs::new();
    let job = start(signs.given(alone("wait")));
    signs.wait(&job, "joined", 1);
    assert_eq!(job.processes().len(), 1);
    kill(job.pid(), libc::SIGKILL);
    let done = job.finish();
    assert_eq!((done.code, done.left.len(), done.err.as_str()), (137, 0, ""), "{done:?}");
}

/// Checks that nothing is left of a process by itself and its children, whichever of them or of what serves them is killed.
#[test]
fn nothing_is_left_of_a_process_by_itself() {
    let shared = shared_names();
    for (victim, signal) in [
        ("parent", libc::SIGKILL),
        ("--behind", libc::SIGKILL),
        ("child", libc::SIGKILL),
        ("parent", libc::SIGINT),
    ] {
        let signs = Signs::new();
        let job = start(signs.given(alone("spawn and wait")));
        signs.wait(&job, "joined", 3);
        let all = job.processes();
        let find = |is: &dyn Fn(&&Process) -> bool| all.iter().find(is).expect("a process").pid;
        let behind = find(&|process| process.command.contains("--behind"));
        let pid = match victim {
            "parent" => job.pid(),
            "child" => find(&|process| process.rank == Some(1)),
            _ => behind,
        };
        kill(pid, signal);
        job.expect_gone();
        let done = job.finish();
        let (code, lines) = match victim {
            "parent" => (128 + signal, 1),
            // The call of the parent may fail before the signal comes: the parent then ends by itself.
            "child" if done.code == TOLD => (TOLD, 1),
            "child" => (128 + libc::SIGTERM, 1),
            // Nobody is there who could print a line.
            _ => (128 + libc::SIGKILL, 0),
        };
        assert_eq!((done.code, done.err.lines().count()), (code, lines), "{victim}: {done:?}");
        assert!(done.err.lines().all(|line| line.starts_with("typepack: rank ")), "{done:?}");
        let sockets = std::fs::read_to_string("/proc/net/unix").expect("a table");
        assert!(!sockets.contains(&format!("typepack-job-{behind}-")), "{victim}");
    }
    expect_no_shared_name_but(&shared);
}

/// Checks that children go on that have disconnected from a process by itself, with the process that serves them.
#[test]
fn children_outlive_a_process_by_itself() {
    let signs = Signs::new();
    let mut job = start(signs.given(alone("spawn and leave")));
    signs.wait(&job, "apart", 2);
    assert_eq!(job.wait(), 0);
    assert_eq!(job.processes().len(), 3);
    signs.make("go");
    job.expect_gone();
    let done = job.finish();
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    assert!(done.out.contains("child 0 ends") && done.out.contains("child 1 ends"), "{done:?}");
}

/// The launcher of the tests ends nobody, so these jobs end by typepack's own means.
#[test]
fn a_dead_rank_hangs_nobody() {
    for (role, first) in [("kill", None), ("leave", Some(0))] {
        let ends = fake(3, role, |_, _| None).finish();
        assert_eq!(ends[1].0, first, "{ends:?}");
        for rank in [0, 2] {
            assert_ne!(ends[rank].0, Some(0), "{role}: {ends:?}");
        }
        let lines: Vec<&str> = ends.iter().flat_map(|end| end.2.lines()).collect();
        assert_eq!(lines.len(), 1, "{role}: {ends:?}");
        assert!(lines[0].starts_with("typepack: rank 1 (pid "), "{ends:?}");
    }
}

#[test]
fn the_end_of_the_launcher_is_the_end_of_the_ranks() {
    let signs = Signs::new();
    let launcher = fake_with(3, "wait", |_, _| None, Some(&signs));
    signs.wait_for("joined", 3);
    launcher.vanish();
    let ends = launcher.finish();
    assert!(ends.iter().all(|end| end.0.is_none()), "signals end them: {ends:?}");
}

#[test]
fn the_launcher_learns_of_abort_and_finalize() {
    let launcher = fake(2, "abort", |_, _| None);
    let commands = || launcher.commands(1);
    wait_until(|| commands().iter().any(|line| line == "cmd=abort exitcode=9"));
    let ends = launcher.finish();
    assert_eq!((ends[1].0, ends[0].0 != Some(0)), (Some(9), true), "{ends:?}");
    let launcher = fake(4, "programs", |_, _| None);
    for rank in 0..4 {
        wait_until(|| launcher.commands(rank).last().is_some_and(|line| line == "cmd=finalize"));
    }
    for (rank, end) in launcher.finish().iter().enumerate() {
        assert_eq!((end.0, end.2.as_str()), (Some(0), ""), "{end:?}");
        assert!(end.1.contains(&format!("program Some({}) of Some(2)", rank / 2)), "{end:?}");
        assert!(end.1.contains("universe Some(16), Some(2)"), "{end:?}");
    }
}

/// Checks that ranks on two machines end with one line that names them, unless the user wants no such lines.
#[test]
fn ranks_on_two_machines_end_with_one_line() {
    for is_quiet in [false, true] {
        let odd: fake_pmi::Odd = |_, line| {
            line.contains("cmd=get ").then_some(())?;
            line.ends_with("key=typepack-machine-2")
                .then(|| "cmd=get_result rc=0 value=other/far\n".into())
        };
        let [exe, arguments @ ..] = rank();
        mpiexec();
        let command = |_| {
            let mut command = Command::new(&exe);
            command.args(&arguments).env(ROLE, "everything");
            if is_quiet {
                command.env("TYPEPACK_QUIET", "1");
            }
            command
        };
        let ends = fake_pmi::start(3, command, odd).finish();
        assert!(ends.iter().all(|end| end.0 == Some(1)), "{ends:?}");
        let lines: Vec<&str> = ends.iter().flat_map(|end| end.2.lines()).collect();
        assert_eq!(lines.len(), usize::from(!is_quiet), "{ends:?}");
        let (first, has) = (&ends[0].2, !is_quiet);
        assert_eq!(
            first.contains("run on 2 machines (") && first.contains(", far)"),
            has,
            "{ends:?}"
        );
    }
}

/// Checks that an odd answer is one clear error at the rank that gets it, and hangs no other rank.
#[test]
fn odd_answers_are_errors() {
    for (rank, command, answer, why) in [
        (0, "cmd=init ", "hello\n", "must be cmd=response_to_init"),
        (1, "cmd=get_maxes", "cmd=maxes rc=0 keylen_max=8 vallen_max=8\n", "values below 8 bytes"),
        (1, "cmd=get_my_kvsname", "cmd=my_kvsname rc=-1\n", "refuses it"),
        (0, "cmd=get ", "cmd=get_result rc=0\n", "has no value"),
        (
            1,
            "cmd=get kvsname=fake key=typepack-job",
            "cmd=get_result value=nothing\n",
            "typepack-job",
        ),
        (
            1,
            "cmd=get kvsname=fake key=typepack-job",
            "cmd=get_result value==nobody\n",
            "cannot connect",
        ),
    ] {
        type Case = (usize, &'static str, &'static str);
        static CASE: std::sync::Mutex<Case> = std::sync::Mutex::new((0, "", ""));
        *CASE.lock().expect("no panic") = (rank, command, answer);
        let launcher = fake(2, "wait for ever", |of, line| {
            let (rank, command, answer) = *CASE.lock().expect("no panic");
            (of == rank && line.starts_with(command)).then(|| answer.to_owned())
        });
        let ends = launcher.finish();
        assert_eq!(ends[rank].0, Some(4), "{answer:?}: {ends:?}");
        let text = &ends[rank].1;
        assert!(text.contains("refused: ") && text.contains(why), "{answer:?}: {text}");
        assert_ne!(ends[1 - rank].0, Some(0), "{answer:?}: {ends:?}");
    }
}

/// Checks that the other ranks learn that there is no job, also while the first rank, which is refused, lives on.
#[test]
fn a_refused_first_rank_that_stays_hangs_nobody() {
    let signs = Signs::new();
    let odd: fake_pmi::Odd = |rank, line| {
        let asks = rank == 0 && line.ends_with("key=typepack-machine-1");
        (asks && line.starts_with("cmd=get ")).then(|| "cmd=get_result rc=-1\n".to_owned())
    };
    let launcher = fake_with(3, "stay", odd, Some(&signs));
    signs.wait_for("refused", 3);
    signs.make("go");
    let ends = launcher.finish();
    assert!(ends.iter().all(|end| end.0 == Some(4)), "{ends:?}");
    assert!(ends[0].1.contains("refuses it"), "{ends:?}");
    assert!(ends[1].1.contains("the first rank cannot start mpiexec"), "{ends:?}");
}

/// Checks that a rank that is refused before the others can know it asks the launcher to end them.
#[test]
fn a_refused_rank_that_stays_asks_the_launcher_to_end_the_others() {
    let signs = Signs::new();
    let odd: fake_pmi::Odd =
        |rank, line| (rank == 1 && line == "cmd=get_maxes").then(|| "cmd=maxes rc=-1\n".to_owned());
    let launcher = fake_with(2, "stay", odd, Some(&signs));
    signs.wait_for("refused-1", 1);
    wait_until(|| launcher.commands(1).iter().any(|line| line == "cmd=abort exitcode=1"));
    // Launchers end the other ranks then. This one closes its connections.
    launcher.vanish();
    signs.make("go");
    let ends = launcher.finish();
    assert!(ends.iter().all(|end| end.0 == Some(4)), "{ends:?}");
}

/// Checks that of two processes with one connection to the launcher, one is the rank, and the other learns who that is.
#[test]
fn one_of_two_processes_of_a_rank_joins() {
    let signs = Signs::new();
    let ends = fake_with(2, "fork", |_, _| None, Some(&signs)).finish();
    assert!(ends.iter().all(|end| (end.0, end.2.as_str()) == (Some(0), "")), "{ends:?}");
}

#[test]
fn children_of_ranks_are_refused() {
    let ends = fake(2, "child", |_, _| None).finish();
    for end in ends {
        assert_eq!(end.0, Some(0), "{end:?}");
        assert!(end.1.contains("names no open socket; a child of a rank cannot join"), "{end:?}");
        assert!(end.1.contains("child: Some(4)"), "{end:?}");
    }
}

/// Checks that a process which a launcher without PMI has started as one of several says so, and is alone.
#[test]
fn without_the_protocol_ranks_are_alone_and_say_so() {
    let [exe, arguments @ ..] = rank();
    let alone = |variables: &[(&str, &str)]| {
        let mut command = Command::new(&exe);
        command.args(&arguments).env(ROLE, "alone").envs(variables.iter().copied());
        let done = command.output().expect("a process");
        assert!(String::from_utf8_lossy(&done.stdout).contains("alone: 0 of 1"), "{done:?}");
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let several = alone(&[("PMI_RANK", "1"), ("PMI_SIZE", "4")]);
    assert!(several.starts_with("typepack: PMI_SIZE is set"), "{several}");
    // The line is silenced like the others.
    let quiet = alone(&[("PMI_RANK", "1"), ("PMI_SIZE", "4"), ("TYPEPACK_QUIET", "1")]);
    assert_eq!(quiet, "");
    // A process by itself asks nobody.
    assert_eq!(alone(&[("PMI_FD", "99"), ("PMI_RANK", "0"), ("PMI_SIZE", "1")]), "");
}

/// Starts ranks under the launcher of the tests.
fn fake(size: usize, role: &str, odd: fake_pmi::Odd) -> Launcher {
    fake_with(size, role, odd, None)
}

fn fake_with(size: usize, role: &str, odd: fake_pmi::Odd, signs: Option<&Signs>) -> Launcher {
    mpiexec();
    let [exe, arguments @ ..] = rank();
    let command = |_| {
        let mut command = Command::new(&exe);
        command.args(&arguments).env(ROLE, role);
        match signs {
            Some(signs) => signs.given(command),
            None => command,
        }
    };
    fake_pmi::start(size, command, odd)
}

/// Waits until `is_there` returns true.
fn wait_until(mut is_there: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !is_there() {
        assert!(start.elapsed() < std::time::Duration::from_secs(120), "there is no sign");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}
