//! Tests of the beginning and the end of a rank: a rank without `mpiexec`, settings, launchers of another
//! MPI, forks, and deaths.

use crate::harness::{PATIENT, Signs};
use crate::job::{body, is_rank, mpiexec, ranks, ranks_with, run, text};
use std::process::{Command, Output};
use typepack::{Communicator, Datatype, Error, ErrorKind, Named, Op, Source, Tag, commit};

/// Runs test `name` of this binary again, without `mpiexec`.
fn alone(name: &str, env: &[(&str, &str)]) -> Output {
    let line = body(name);
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]);
    run(command, name, env)
}

#[test]
fn without_mpiexec_there_is_one_rank() {
    if !is_rank() {
        let output = alone("without_mpiexec_there_is_one_rank", &[]);
        assert!(output.status.success(), "{}", text(&output));
        return;
    }
    let universe = typepack::init().unwrap();
    assert_eq!(typepack::init().unwrap_err().kind(), ErrorKind::State);
    let world = universe.world();
    assert_eq!((world.rank(), world.size()), (0, 1));
    let word = commit(&Datatype::named(Named::U64)).unwrap();
    for len in [0u64, 1, 1000, 100_000] {
        let out = vec![len; len as usize];
        let mut into = vec![0u64; len as usize];
        // Send messages to this rank itself. `sendrecv` posts the receive before the send; the scope
        // below posts it after the send.
        world.sendrecv_elements(&out, &word, len, 0, 1, &mut into, &word, len, 0, 1).unwrap();
        assert!(into == out);
        into.fill(0);
        world
            .scope(|scope| {
                scope.isend_elements(&out, &word, len, 0, 2).unwrap();
                scope.irecv_elements(&mut into, &word, len, Source::Any, Tag::Any).unwrap();
            })
            .unwrap();
        assert!(into == out);
    }
    let mut sum = [1.5f64];
    world.all_reduce_in_place(&mut sum, Op::Sum).unwrap();
    world.barrier().unwrap();
    let grid = world.cartesian(&[1, 1], &[true, false]).unwrap();
    assert_eq!(grid.shift(0, 1).unwrap(), (Some(0), Some(0)));
    assert_eq!(grid.shift(1, 1).unwrap(), (None, None));
    drop(universe);
    let error =
        world.barrier().and_then(|()| world.send_elements(&[1u64], &word, 1, 0, 0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::State);
}

#[test]
fn bad_settings_are_errors_of_init() {
    if is_rank() {
        let error = typepack::init().unwrap_err().to_string();
        assert_eq!(
            error,
            "TYPEPACK_EAGER_LIMIT: \"many\" is not a valid number of bytes; it must be between 0 \
             and 16384"
        );
        return;
    }
    let env = [("TYPEPACK_EAGER_LIMIT", "many")];
    let output = alone("bad_settings_are_errors_of_init", &env);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn strange_surroundings_are_one_line_each() {
    if is_rank() {
        drop(typepack::init().unwrap());
        return;
    }
    let env = [("TYPEPACK_EAGRE_LIMIT", "1"), ("PMI_SIZE", "4"), ("TYPEPACK_REPORT", "1")];
    let output = alone("strange_surroundings_are_one_line_each", &env);
    let lines = String::from_utf8_lossy(&output.stderr).into_owned();
    let count = |part: &str| lines.lines().filter(|line| line.contains(part)).count();
    assert_eq!(count("TYPEPACK_EAGRE_LIMIT"), 1, "{lines}");
    assert_eq!(count("PMI_SIZE"), 1, "{lines}");
    assert_eq!(count("messages 0, 0 bytes sent"), 1, "{lines}");
}

#[test]
fn a_report_tells_what_was_sent() {
    if is_rank() {
        ranks(2, "", |world| {
            let double = Datatype::named(Named::F64);
            let column = commit(&Datatype::vector(9000, 1, 3, &double).unwrap()).unwrap();
            let mut data = vec![1.0; 27_000];
            if world.rank() == 0 {
                world.send_elements(&data, &column, 1, 1, 0).unwrap();
            } else {
                world.recv_elements(&mut data, &column, 1, 0, 0).unwrap();
            }
        });
        return;
    }
    let mut command = Command::new(mpiexec());
    command.args(["-n", "2"]).args(body("a_report_tells_what_was_sent"));
    let output = run(command, "report", &[("TYPEPACK_REPORT", "1"), ("TYPEPACK_JIT", "eager")]);
    let lines = text(&output);
    assert!(output.status.success(), "{lines}");
    assert!(
        lines.contains("rank 0: messages 1 (1 pipeline), 72000 bytes sent; bytes moved 72000 ("),
        "{lines}"
    );
    let received = "rank 1: messages 0, 0 bytes sent; bytes moved 72000 (";
    assert!(lines.contains(received), "{lines}");
}

/// Returns the sum of a report, which is the number after `before`, and the sum of the parts in the parentheses that
/// follow it.
fn sums(line: &str, before: &str) -> [u64; 2] {
    let (_, rest) = line.split_once(before).unwrap_or_else(|| panic!("{before} in {line}"));
    let end = rest.find([' ', ',', ';']).expect("an end");
    let total = rest[..end].parse().expect("a number");
    let Some(parts) = rest[end..].strip_prefix(" (") else { return [total, 0] };
    let (parts, _) = parts.split_once(')').expect("the end of the parts");
    let numbers = parts.split(", ").map(|part| part.split(' ').next().expect("a number"));
    [total, numbers.map(|number| number.parse::<u64>().expect("a number")).sum()]
}

/// Sends messages of many kinds: to this rank itself, contiguous and not, short and long, and so many short ones at once
/// that they wait for room in the ring.
fn messages_of_many_kinds(world: &Communicator) {
    const MANY: usize = 3000;
    let double = Datatype::named(Named::F64);
    let types = [
        commit(&Datatype::contiguous(9000, &double).unwrap()).unwrap(),
        commit(&Datatype::vector(9000, 1, 3, &double).unwrap()).unwrap(),
        commit(&Datatype::vector(10, 1, 3, &double).unwrap()).unwrap(),
        commit(&Datatype::indexed(&[2, 1, 3], &[9, 0, 4], &double).unwrap()).unwrap(),
    ];
    let (rank, other) = (world.rank(), 1 - world.rank());
    let mut data = vec![1.0; 27_000];
    let mut result = vec![0.0; 27_000];
    for ty in &types {
        world.sendrecv_elements(&data, ty, 1, rank, 1, &mut result, ty, 1, rank, 1).unwrap();
        world.sendrecv_elements(&data, ty, 1, other, 1, &mut result, ty, 1, other, 1).unwrap();
        if rank == 0 {
            world.send_elements(&data, ty, 1, 1, 2).unwrap();
        } else {
            world.recv_elements(&mut data, ty, 1, 0, 2).unwrap();
        }
    }
    let ty = &types[2];
    if rank == 0 {
        let all = world.scope(|scope| {
            for _ in 0..MANY {
                scope.isend_elements(&data, ty, 1, 1, 3).unwrap();
            }
        });
        all.unwrap();
    } else {
        for _ in 0..MANY {
            world.recv_elements(&mut result, ty, 1, 0, 3).unwrap();
        }
    }
}

/// Checks that the parts of a report add up to its sums, and that every byte of a message is counted where it is packed,
/// unpacked or copied. Leaf kernels, fused copies and messages that waited for room were once left out.
#[test]
fn the_parts_of_a_report_add_up() {
    let name = "the_parts_of_a_report_add_up";
    for way in ["auto", "ring", "pipeline", "heap"] {
        let env = [("TYPEPACK_REPORT", "types"), ("TYPEPACK_TRANSPORT", way)];
        let output = ranks_with(2, name, &env, messages_of_many_kinds);
        if is_rank() {
            return;
        }
        let mut sent = 0;
        let mut moved = 0;
        for rank in 0..2 {
            let start = format!("typepack: rank {rank}: messages ");
            let line = output.lines().find(|line| line.starts_with(&start)).expect("a report");
            let [messages, by_protocol] = sums(line, ": messages ");
            assert_eq!(messages, by_protocol, "{way}: {line}");
            assert_eq!(messages, if rank == 0 { 3012 } else { 8 }, "{way}: {line}");
            assert!(!line.contains("not delivered"), "{way}: {line}");
            let [bytes, by_executor] = sums(line, "bytes moved ");
            assert_eq!(bytes, by_executor, "{way}: {line}");
            let (_, rest) = line.split_once("), ").expect("protocols");
            sent += rest.split(' ').next().unwrap().parse::<u64>().unwrap();
            moved += bytes;
        }
        // A message is copied once, or packed and unpacked.
        assert!((sent..=2 * sent).contains(&moved), "{way}: {sent} sent, {moved} moved: {output}");
        // The expressions of the types can be explained.
        let types: Vec<_> = output.lines().filter(|line| line.contains("rank 0: type ")).collect();
        assert_eq!(types.len(), 4, "{output}");
        for line in types {
            let (_, rest) = line.split_once(": type ").unwrap();
            let (expression, uses) = rest.rsplit_once(": ").unwrap();
            let ty: Datatype = expression.parse().expect(expression);
            let numbers: Vec<u64> = uses.split(' ').filter_map(|word| word.parse().ok()).collect();
            let [calls, bytes] = numbers[..] else { panic!("{line}") };
            assert!(calls > 0 && bytes >= calls * ty.size() as u64 / 2, "{line}");
        }
    }
}

#[test]
fn a_forked_child_gets_errors() {
    ranks_with(2, "a_forked_child_gets_errors", &[("TYPEPACK_JIT", "off")], |world| {
        let word = commit(&Datatype::named(Named::U64)).unwrap();
        world.barrier().unwrap();
        // SAFETY: in the child, all calls of the library fail before they take a lock or access anything,
        // and the child ends with `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let refused = |kind| kind == Some(ErrorKind::State);
            let sent = world.send_elements(&[1u64], &word, 1, 0, 0).err().map(|e| e.kind());
            let barrier = world.barrier().err().map(|e| e.kind());
            let code = i32::from(!(refused(sent) && refused(barrier)));
            // SAFETY: `_exit` only ends the child process.
            unsafe { libc::_exit(code) };
        }
        assert!(child > 0, "fork");
        let mut status = 0;
        // SAFETY: `child` is a child of this process, and `status` is writable.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!((waited, status), (child, 0));
        world.barrier().unwrap();
    });
}

/// Number of ways to wait in `wait_for_nothing`. The job has one rank for each way, and one more rank,
/// which dies.
const WAITS: usize = 8;

/// Waits for an event that never happens, and returns the error that ends the wait. `way` selects the way
/// to wait.
fn wait_for_nothing(world: &Communicator, way: usize) -> Error {
    const LARGE: u64 = 100_000;
    let word = commit(&Datatype::named(Named::U64)).unwrap();
    let dying = world.size() - 1;
    let mut small = [0u64];
    let mut large = vec![0u64; LARGE as usize];
    match way {
        0 => world.recv_elements(&mut small, &word, 1, dying, 0).unwrap_err(),
        1 => world.recv_elements(&mut large, &word, LARGE, Source::Any, Tag::Any).unwrap_err(),
        2 => world.send_elements(&large, &word, LARGE, dying, 0).unwrap_err(),
        3 => world.probe(Source::Any, Tag::Any).unwrap_err(),
        4 => world.barrier().unwrap_err(),
        // This loop ends with a send that waits, because the dead rank takes no messages and the ring
        // becomes full.
        5 => loop {
            if let Err(error) = world.send_elements(&small, &word, 1, dying, 0) {
                break error;
            }
        },
        6 => world
            .scope(|scope| scope.irecv_elements(&mut small, &word, 1, dying, 0).map(drop))
            .and_then(|started| started)
            .unwrap_err(),
        // Two threads wait. One of them polls for messages on behalf of both.
        _ => std::thread::scope(|threads| {
            let (first, second) = (world.clone(), world.clone());
            let first = threads.spawn(move || first.probe(dying, 1).unwrap_err());
            let second = threads.spawn(move || second.probe(dying, 2).unwrap_err());
            assert_eq!(first.join().unwrap().kind(), ErrorKind::ProcAborted);
            second.join().unwrap()
        }),
    }
}

#[test]
fn a_death_is_an_error_for_those_who_wait() {
    if is_rank() {
        // The ranks ignore the launcher's SIGTERM, so that they have time to report the death before
        // SIGKILL ends them.
        // SAFETY: `signal` with SIG_IGN installs no handler, so no code runs in a signal.
        unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
        ranks(WAITS + 1, "", |world| {
            let signs = Signs::of_this_rank();
            signs.make(&format!("joined-{}", world.rank()));
            if world.rank() == WAITS {
                signs.wait_for("joined", WAITS + 1);
                // Give the other ranks time to fall asleep. The assertions do not depend on this time.
                std::thread::sleep(std::time::Duration::from_millis(100));
                std::process::abort();
            }
            let error = wait_for_nothing(world, world.rank());
            assert_eq!(error.kind(), ErrorKind::ProcAborted);
            println!("wait {} was told: {error}", world.rank());
        });
        return;
    }
    let mut command = Command::new(mpiexec());
    command.args(PATIENT).args(["-n", &(WAITS + 1).to_string()]);
    command.args(body("a_death_is_an_error_for_those_who_wait"));
    let signs = Signs::new();
    let output = run(signs.given(command), "death", &[]);
    let lines = text(&output);
    assert_eq!(output.status.code(), Some(134), "{lines}");
    assert!(!lines.contains("panicked"), "{lines}");
    let killed = format!("was told: job: rank {WAITS} killed by signal 6 (SIGABRT)");
    for wait in 0..WAITS {
        assert!(lines.contains(&format!("wait {wait} {killed}")), "{wait}: {lines}");
    }
}
