//! Runs the test executable itself as the program of a job. Each job gives its ranks a role, which says what
//! the ranks do. The tests of how ranks begin and end use this module. The launcher's own tests
//! (`launcher/tests/`) use shells as ranks.
//!
//! A job runs `<this executable> role::as_rank --exact --nocapture` with the role in the environment. In the test runner
//! there is no role, and the test [`as_rank`] does nothing.

use std::io::{BufRead, BufReader};
use std::process::Command;
use typepack::engine::Elements;

use crate::harness::{PATIENT, Signs, kill, mpiexec_at};
use crate::job::mpiexec;
use typepack::{Collective, Datatype, Named, Plan, Source, Tag};

/// The name of the environment variable that contains the role.
const ROLE: &str = "MPIEXEC_TEST_ROLE";

/// The name of the environment variable that a wrapper sets for the rank that it starts.
const WRAPPED: &str = "MPIEXEC_TEST_WRAPPED";

/// The line that a rank prints when it has joined the job.
pub const JOINED: &str = "the rank has joined";

/// Returns the command of a job whose `ranks` ranks play `role`. `wrapper` is a shell script that starts each
/// rank (by `"$@"`); if it is empty, there is no wrapper.
pub fn job(ranks: usize, role: &str, wrapper: &str) -> Command {
    let (ranks, rank) = (ranks.to_string(), rank());
    let mut arguments = vec!["-n", &ranks];
    if !wrapper.is_empty() {
        arguments.extend(["sh", "-c", wrapper, "wrapper"]);
    }
    arguments.extend(rank.iter().map(String::as_str));
    command(&arguments, role)
}

/// Returns the command of such a job whose launcher waits long before it kills ([`PATIENT`]).
pub fn patient_job(ranks: usize, role: &str) -> Command {
    let (ranks, rank) = (ranks.to_string(), rank());
    let rank: Vec<&str> = rank.iter().map(String::as_str).collect();
    command(&[&PATIENT[..], &["-n", &ranks], &rank].concat(), role)
}

/// Returns the command `mpiexec` with the given arguments. Ranks whose program is [`rank`] play `role`.
pub fn command(arguments: &[&str], role: &str) -> Command {
    let mut command = mpiexec_at(&mpiexec(), arguments);
    command.env(ROLE, role);
    command
}

/// Returns the command line of a rank that plays a role.
pub fn rank() -> [String; 5] {
    let exe = std::env::current_exe().expect("our own path");
    let exe = exe.to_str().expect("text");
    [exe, "role::as_rank", "--exact", "--nocapture", "--test-threads=1"].map(str::to_owned)
}

/// Plays the role in the environment. Does nothing if there is no role.
#[test]
fn as_rank() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let rank: usize = std::env::var("TYPEPACK_RANK").expect("a rank").parse().expect("a number");
    if role == "never join" && rank == 1 {
        std::process::exit(0);
    }
    if role.starts_with("threads") && std::env::var_os(WRAPPED).is_none() {
        return wrap();
    }
    if role == "all exit 5" || (role == "deaf" && rank == 0) {
        // SAFETY: this call only makes the process ignore SIGTERM; it installs no handler.
        unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
    }
    let universe = match typepack::init() {
        Ok(universe) => universe,
        Err(error) => {
            println!("refused: {error}");
            std::process::exit(4);
        }
    };
    let world = universe.world();
    let peer = (rank + 1) % world.size();
    match role.as_str() {
        "good" => world.barrier().expect("a barrier"),
        "exit 0" if rank == 1 => std::process::exit(0),
        "deaf" if rank == 0 => {
            // Rank 0 ignores SIGTERM now, so rank 1 may die.
            Signs::of_this_rank().make("deaf");
            wait_for_ever(&world, peer);
        }
        "abort" => {
            world.barrier().expect("a barrier");
            if rank == 1 {
                typepack::abort(9);
            }
            wait_for_ever(&world, peer);
        }
        "go on" => {
            world.barrier().expect("a barrier");
            if rank == 1 {
                kill(std::process::id().try_into().expect("pid"), 9);
            }
            go_on(&world);
        }
        "kill" if rank == 1 => kill(std::process::id().try_into().expect("pid"), 9),
        "drop and exit 5" if rank == 1 => {
            drop((world, universe));
            std::process::exit(5);
        }
        "all exit 5" => {
            eprintln!("rank {rank}: bad argument");
            world.barrier().expect("a barrier");
            drop((world, universe));
            std::process::exit(5);
        }
        "panic" if rank == 1 => panic!("as asked"),
        "deaf" if rank == 1 => {
            Signs::of_this_rank().wait_for("deaf", 1);
            // Give rank 0 time to fall asleep. The assertions do not depend on this time.
            std::thread::sleep(std::time::Duration::from_millis(50));
            kill(std::process::id().try_into().expect("pid"), 9);
        }
        "fork" => {
            world.barrier().expect("a barrier");
            // Start a child process. A child of a rank is not a rank, so it must be refused.
            let exe = std::env::current_exe().expect("our own path");
            let status =
                Command::new(exe).args(["role::as_rank", "--exact", "--nocapture"]).status();
            println!("child: {}", status.expect("a child").code().expect("a code"));
        }
        "exchange" => exchange(&world, peer),
        "neighbors" => neighbors(&world),
        "short calls" => short_calls(&world),
        "windows" => windows(&world),
        "window lock" => hold_or_await_a_lock(&world),
        "threads" => {
            world.barrier().expect("a barrier");
            // The wrapper's thread ends when it reads this line. If the end of the thread caused a signal to this
            // process, the signal would arrive during the sleep.
            println!("{JOINED}");
            std::thread::sleep(std::time::Duration::from_millis(300));
            world.barrier().expect("a barrier after the end of the thread");
            println!("the rank goes on");
        }
        "spin" => {
            println!("{JOINED}");
            loop {
                std::hint::spin_loop();
            }
        }
        "threads and wait" => {
            println!("{JOINED}");
            wait_for_ever(&world, peer);
        }
        // In all other roles, and at all other ranks, wait for a message that never arrives.
        _ => wait_for_ever(&world, peer),
    }
}

/// Waits for a message from `peer` that never arrives.
fn wait_for_ever(world: &typepack::Communicator, peer: usize) -> ! {
    let mut nothing = [0_u8; 8];
    let bytes = typepack::commit(&Datatype::named(Named::BYTE)).expect("a type");
    let error = world
        .recv_elements(&mut nothing, &bytes, 8, Source::Rank(peer), Tag::Is(1))
        .expect_err("nobody sends");
    println!("told: {error}");
    std::process::exit(6);
}

/// Waits for the sign `go`, and then exchanges messages with the only other rank that lives.
fn go_on(world: &typepack::Communicator) {
    Signs::of_this_rank().wait_for("go", 1);
    let word = typepack::commit(&Datatype::named(Named::U64)).expect("a type");
    let other = 2 - world.rank();
    for count in [1, 100_000] {
        let (out, mut back) = (vec![7_u64; count], vec![0_u64; count]);
        let items = count as u64;
        world
            .sendrecv_elements(&out, &word, items, other, 3, &mut back, &word, items, other, 3)
            .expect("both ranks live");
        assert_eq!(back, out);
    }
    println!("rank {} goes on", world.rank());
}

/// Acts as a wrapper program that starts the rank from a thread, and ends this thread while the rank runs.
fn wrap() {
    let start = || {
        let [exe, arguments @ ..] = rank();
        let mut command = Command::new(exe);
        command.args(arguments).env(WRAPPED, "1").stdout(std::process::Stdio::piped());
        let mut child = command.spawn().expect("a rank");
        let mut lines = BufReader::new(child.stdout.take().expect("its output"));
        let mut line = String::new();
        while !line.contains(JOINED) {
            line.clear();
            assert_ne!(lines.read_line(&mut line).expect("a line"), 0, "the rank has ended");
        }
        (child, lines)
    };
    let (mut child, mut lines) = std::thread::spawn(start).join().expect("a thread");
    Signs::of_this_rank().make(&format!("ended-{}", std::process::id()));
    std::io::copy(&mut lines, &mut std::io::stdout()).expect("the rest of the output");
    let status = child.wait().expect("a child");
    assert!(status.success(), "the rank behind the wrapper: {status}");
}

/// Makes short collective calls until one fails because a rank has died.
fn short_calls(world: &typepack::Communicator) {
    for round in 0_usize.. {
        let mut values = vec![round as u64; [1, 100][round % 2]];
        let done = world
            .barrier()
            .and_then(|()| world.broadcast(&mut values, round % world.size()))
            .and_then(|()| world.all_reduce_in_place(&mut values, typepack::Op::Max));
        if done.is_err() {
            std::process::exit(1);
        }
        assert!(values.iter().all(|value| *value == round as u64));
    }
}

/// Makes one-sided calls until the job ends: locks, updates under locks of ranges and by instructions, requests to
/// memory that cannot be mapped, epochs of post and start, fences.
fn windows(world: &typepack::Communicator) {
    use typepack::Op;
    use typepack::rma::{Assertions, LockKind, Window, WindowOf};
    let (rank, size) = (world.rank(), world.size());
    let mut window = WindowOf::<u64>::allocate(world, 4096).expect("a window");
    let mut private = vec![0_u64; 64];
    // SAFETY: the memory lives until the process ends, because the loop below does not end, and only the window's
    // epochs access it.
    let requests = unsafe { Window::create_raw(world, private.as_mut_ptr().cast(), 512, 8, &[]) }
        .expect("a window");
    let word = typepack::commit(&Datatype::named(Named::U64)).expect("a type");
    let (mut old, mut got) = (vec![0_u64; 40], vec![0_u64; 60]);
    let mut round = |round: usize| -> typepack::Result<()> {
        let other = (rank + 1 + round) % size;
        let locked = window.lock(other, LockKind::Exclusive)?;
        let mut values = [0; 4];
        locked.read(&mut values, 0)?;
        assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
        locked.write(&values.map(|value| value + 1), 0)?;
        locked.end()?;
        let locked = window.lock(other, LockKind::Shared)?;
        locked.accumulate(&vec![1; 2000], 100, Op::Sum)?;
        locked.fetch_and_op(1, 100, Op::Sum)?;
        locked.end()?;
        requests.lock_raw(LockKind::Shared, other, Assertions::NONE)?;
        let mut one = 1_u64;
        let origin = std::ptr::from_mut(&mut one).cast();
        let part = Elements { origin, plan: &word, count: 1 };
        let sum = Op::Sum.into();
        let part_of = |values: &mut [u64]| {
            let (origin, count) = (values.as_mut_ptr().cast(), values.len() as u64);
            Elements { origin, plan: &word, count }
        };
        let (fetched, all) = (part_of(&mut old[..1]), part_of(&mut got));
        let many = part_of(&mut old[1..]);
        // SAFETY: the operand is a local value. The results live until the process ends, because the loop below does
        // not end, and nobody else uses them.
        unsafe {
            requests.accumulate_raw(Some(&part), None, other, 3, &word, 1, sum)?;
            requests.accumulate_raw(Some(&part), Some(&fetched), other, 3, &word, 1, sum)?;
            requests.get_raw(&all, other, 4, &word, all.count)?;
            let update = typepack::rma::Update::NoOp;
            requests.accumulate_raw(None, Some(&many), other, 5, &word, many.count, update)?;
        }
        requests.unlock_raw(other)?;
        let mut exposure = window.post(world.group())?;
        let access = exposure.start(world.group())?;
        access.rank(other)?.write(&[round as u64], 3000 + rank)?;
        access.end()?;
        exposure.end()?;
        let fenced = window.fence()?;
        fenced.rank(other)?.write(&[round as u64], 3100 + rank)?;
        fenced.end()
    };
    for number in 0.. {
        if round(number).is_err() {
            std::process::exit(1);
        }
    }
}

/// Rank 0 owns a window whose lock rank 1 takes and keeps. All other ranks ignore SIGTERM, wait for the lock, and print
/// the error with which the wait ends. Each makes a sign `waits-RANK-THREAD` before its wait.
fn hold_or_await_a_lock(world: &typepack::Communicator) {
    use typepack::rma::{LockKind, WindowOf};
    let window = WindowOf::<u64>::allocate(world, 1).expect("a window");
    let kept = (world.rank() == 1).then(|| window.lock(0, LockKind::Exclusive).expect("the lock"));
    world.barrier().expect("a barrier");
    if kept.is_some() {
        loop {
            std::thread::park();
        }
    }
    // SAFETY: these calls touch no memory of this process. The first one installs no handler.
    let thread = unsafe {
        libc::signal(libc::SIGTERM, libc::SIG_IGN);
        libc::syscall(libc::SYS_gettid)
    };
    let rank = world.rank();
    Signs::of_this_rank().make(&format!("waits-{rank}-{thread}"));
    let error = window.lock(0, LockKind::Exclusive).expect_err("nobody releases the lock");
    println!("rank {rank} told: {error}");
    std::process::exit(6);
}

/// Sends messages in both directions until the job ends. The lengths of the messages make the ranks use
/// several protocols.
fn exchange(world: &typepack::Communicator, to: usize) {
    let bytes = typepack::commit(&Datatype::named(Named::BYTE)).expect("a type");
    let from = (world.rank() + world.size() - 1) % world.size();
    for round in 0_usize.. {
        let len = [8, 1000, 20_000, 300_000][round % 4];
        let (out, mut back) = (vec![7_u8; len], vec![0_u8; len]);
        let count = len as u64;
        let done = world
            .sendrecv_elements(&out, &bytes, count, to, 3, &mut back, &bytes, count, from, 3)
            .and_then(|_| if round % 16 == 0 { world.barrier() } else { Ok(()) });
        if done.is_err() {
            std::process::exit(1);
        }
        assert_eq!(back, out);
    }
}

/// Exchanges data with the neighbours in a periodic grid until the job ends: blocking, nonblocking and persistent
/// collective calls in turn, with short and long parts of columns.
fn neighbors(world: &typepack::Communicator) {
    let size = world.size();
    let dims = if size.is_multiple_of(2) { vec![size / 2, 2] } else { vec![size] };
    let grid = world.cartesian(&dims, &vec![true; dims.len()]).expect("a grid");
    let neighbors = grid.comm().topology().expect("a grid").neighbors();
    let sides = neighbors.sources().len();
    let column = Datatype::vector(1, 1, 2, &Datatype::named(Named::F64)).expect("a type");
    let column = Datatype::resized(0, 16, &column).expect("a type");
    let plan = &typepack::commit(&column).expect("a plan");
    for count in [4_usize, 3000, 40_000].into_iter().cycle() {
        let words = 2 * sides * count;
        let (mut out, mut back) = (vec![grid.comm().rank() as f64; words], vec![-1.0; words]);
        let parts = |values: &mut Vec<f64>| -> Vec<Elements<&Plan>> {
            let base = values.as_mut_ptr();
            let part = |side: usize| Elements {
                origin: base.wrapping_add(2 * side * count).cast(),
                plan,
                count: count as u64,
            };
            (0..sides).map(part).collect()
        };
        let (send, receive) = (parts(&mut out), parts(&mut back));
        let call = Collective::Neighbors { neighbors, send: &send, receive: &receive };
        let messages = grid.comm().messages();
        // SAFETY: the vectors `out` and `back` hold the parts. They live and nobody else uses them until the operations
        // have ended: `run_raw` and `finish` return only then, and after an error the process exits.
        let done = unsafe {
            grid.comm().run_raw(&call).and_then(|()| {
                messages.finish(grid.comm().start_raw(&call)?)?;
                let kept = grid.comm().prepare_raw(&call)?;
                messages.finish(kept.start()?)?;
                messages.finish(kept.start()?)
            })
        };
        if done.is_err() {
            std::process::exit(1);
        }
        for (side, source) in neighbors.sources().iter().enumerate() {
            let source = source.expect("the grid is periodic") as f64;
            assert!(
                back[2 * side * count..][..2 * count].iter().step_by(2).all(|&word| word == source)
            );
        }
    }
}
