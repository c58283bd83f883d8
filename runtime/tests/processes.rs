//! Ranks that start processes, through the Rust API: parents and children run one test of this program.

use crate::job::{is_rank, mpiexec, run, text};
use std::process::Command;
use typepack::{Command as Program, Communicator, ErrorKind, Op, ProcessErrorKind, Source, Tag};

/// Returns the command line that makes a process run the test `name` of this file.
fn arguments(name: &str) -> [String; 4] {
    [format!("processes::{name}"), "--exact".into(), "--nocapture".into(), "-q".into()]
}

fn this_program() -> std::path::PathBuf {
    std::env::current_exe().expect("the test binary's path")
}

/// Runs `as_rank` as two ranks under `mpiexec`, and in the processes that these start.
fn job(name: &str, as_rank: impl FnOnce(&typepack::Universe)) {
    if is_rank() {
        as_rank(&typepack::init().expect("joining the job"));
        return;
    }
    let mut command = Command::new(mpiexec());
    command.args(["-n", "2"]).arg(this_program()).args(arguments(name));
    let output = run(command, name, &[]);
    assert!(output.status.success(), "{name}: {}\n{}", output.status, text(&output));
}

fn sum(comm: &Communicator, value: i64) -> i64 {
    comm.all_reduce_value(value, Op::Sum).expect("a sum")
}

#[test]
fn workers() {
    job("workers", |universe| {
        let world = universe.world();
        match universe.parent() {
            None => {
                let command = Program::new(this_program()).args(arguments("workers")).processes(3);
                let spawned = world.spawn(&[command], 1).expect("three workers");
                let started = if world.rank() == 1 { vec![3] } else { Vec::new() };
                assert_eq!(spawned.started, started);
                let workers = spawned.children;
                assert_eq!(workers.remote_group().map(typepack::Group::size), Some(3));
                if world.rank() == 0 {
                    let mut found: Vec<i64> = (0..3)
                        .map(|_| {
                            let mut value = [0_i64];
                            workers.recv(&mut value, Source::Any, Tag::Any).expect("a message");
                            value[0]
                        })
                        .collect();
                    found.sort_unstable();
                    assert_eq!(found, [10, 11, 12]);
                }
                assert_eq!(sum(&workers.merge(false).expect("merged"), 1), 5);
                workers.disconnect().expect("disconnected");
                assert_eq!(sum(&world, 1), 2);
            }
            Some(parent) => {
                assert_eq!((world.size(), universe.app_number()), (3, Some(0)));
                let value = [10 + world.rank() as i64];
                parent.send(&value, 0, 5).expect("sent");
                assert_eq!(sum(&parent.merge(true).expect("merged"), 1), 5);
                parent.disconnect().expect("disconnected");
            }
        }
    });
}

#[test]
fn what_cannot_start_is_an_error_on_all_ranks() {
    job("what_cannot_start_is_an_error_on_all_ranks", |universe| {
        let world = universe.world();
        let spawn = ErrorKind::Process(ProcessErrorKind::Spawn);
        let error = world.spawn(&[Program::new("./no-such-program")], 0).expect_err("no program");
        assert_eq!(error.kind(), spawn);
        assert!(error.to_string().contains("no-such-program"), "{error}");
        let error = world.spawn(&[Program::new("x")], 2).expect_err("no rank 2");
        assert_eq!(error.kind(), ErrorKind::Root);
        let port = universe.open_port().expect("a port");
        universe.close_port(&port).expect("closed");
        let error = world.connect_to(&port, 0).expect_err("closed");
        assert_eq!(error.kind(), ErrorKind::Process(ProcessErrorKind::Port));
        assert!(universe.parent().is_none());
    });
}

/// Two threads of a process call the two sides: the process itself cannot be in both groups. All ranks get an error, and
/// none waits.
#[test]
fn a_process_does_not_connect_to_itself() {
    job("a_process_does_not_connect_to_itself", |universe| {
        let (world, port) = (universe.world(), universe.open_port().expect("a port"));
        // First each process alone, then the whole world with one root for both sides, then with two roots.
        let both = |one: Communicator, root: usize, other: Communicator, other_root: usize| {
            let mut name = [0_u8; 64];
            name[..port.len()].copy_from_slice(&port);
            if one.size() > 1 {
                one.broadcast(&mut name, 0).expect("the name of the port of rank 0");
            }
            let length = name.iter().position(|byte| *byte == 0).expect("a shorter name");
            let name = &name[..length];
            let (accepted, connected) = std::thread::scope(|scope| {
                let accepts = scope.spawn(move || one.accept(name, root));
                let connected = other.connect_to(name, other_root);
                (accepts.join().expect("no panic"), connected)
            });
            for result in [accepted, connected] {
                let error = result.expect_err("a process in both groups");
                assert_eq!(error.kind(), ErrorKind::Comm, "{error}");
            }
        };
        both(universe.own(), 0, universe.own().dup().expect("a communicator"), 0);
        let again = world.dup().expect("a communicator");
        both(world.clone(), 0, again.clone(), 0);
        both(world.clone(), 0, again, 1);
        assert_eq!(sum(&world, 1), 2);
    });
}
