//! Tests of messages between real ranks, from and to the shared heap. The tests cover all combinations of
//! layouts and memory with every protocol, the memory of abandoned operations, deaths in the middle of a
//! message, and too little memory.

use crate::job::{body, is_rank, mpiexec, ranks, ranks_with, run, text};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use typepack::memory::Block;
use typepack::{Communicator, Datatype, ErrorKind, Named, Plan, SharedBuffer, Source, Tag, commit};
use typepack_test_support::random::Random;
use typepack_test_support::skipped::skipped;

/// A buffer in shared or in private memory.
enum Buffer {
    Shared(SharedBuffer<f64>),
    Own(Vec<f64>),
}

impl Buffer {
    fn new(shared: bool, len: usize, value: f64) -> Self {
        if shared {
            let mut buffer = SharedBuffer::zeroed(len).expect("room");
            buffer.fill(value);
            return Self::Shared(buffer);
        }
        Self::Own(vec![value; len])
    }

    fn values(&mut self) -> &mut [f64] {
        match self {
            Self::Shared(buffer) => buffer,
            Self::Own(buffer) => buffer,
        }
    }
}

/// Returns a random type, the number of elements of this type that together contain `n` doubles, and the
/// position of each double. If several ranks draw the same random numbers, they get the same type.
fn layout(random: &mut Random, n: usize) -> (Plan, u64, Vec<usize>) {
    let double = Datatype::named(Named::F64);
    let all = n as i64;
    let (ty, count, places): (_, _, Vec<usize>) = match random.below(5) {
        0 => (double, n as u64, (0..n).collect()),
        1 => {
            let stride = 2 + random.below(8) as usize;
            let ty = Datatype::vector(all, 1, stride as i64, &double).unwrap();
            (ty, 1, (0..n).map(|i| i * stride).collect())
        }
        2 => {
            let ty = Datatype::resized(0, 24, &double).unwrap();
            (ty, n as u64, (0..n).map(|i| 3 * i).collect())
        }
        3 => {
            // This type has blocks of 20 doubles at a stride of 33 doubles, and a shorter last block.
            let lengths: Vec<i64> = (0..all).step_by(20).map(|at| 20.min(all - at)).collect();
            let starts: Vec<i64> = (0..lengths.len() as i64).map(|i| 33 * i).collect();
            let ty = Datatype::indexed(&lengths, &starts, &double).unwrap();
            (ty, 1, (0..n).map(|i| i / 20 * 33 + i % 20).collect())
        }
        _ => {
            let mut at = 0;
            let starts: Vec<i64> = (0..n)
                .map(|_| {
                    at += 1 + random.below(3) as i64;
                    at
                })
                .collect();
            let ty = Datatype::indexed_block(1, &starts, &double).unwrap();
            (ty, 1, starts.iter().map(|&at| at as usize).collect())
        }
    };
    (commit(&ty).unwrap(), count, places)
}

/// Exchanges several messages between all pairs of ranks at the same time, and checks the contents of every
/// buffer.
fn everybody_to_everybody(world: &Communicator) {
    const MESSAGES: usize = 3;
    const CANARY: f64 = -7.0;
    let (rank, size) = (world.rank(), world.size());
    for round in 0..12u64 {
        // All ranks draw the same random numbers, so that they agree on the messages of the round.
        let mut random = Random(round + 100);
        let mut sends = Vec::new();
        let mut receives = Vec::new();
        for from in 0..size {
            for to in (0..size).filter(|&to| to != from) {
                for tag in 0..MESSAGES {
                    let most = [40, 3000, 40_000][random.below(3) as usize];
                    let n = 1 + random.below(most) as usize;
                    let out = layout(&mut random, n);
                    let into = layout(&mut random, n);
                    let kinds = random.below(4);
                    let first = (from * 1000 + to * 100 + tag) as f64;
                    if from == rank {
                        let len = out.2.iter().max().unwrap() + 3;
                        let mut buffer = Buffer::new(kinds & 1 == 0, len, 0.5);
                        for (i, &at) in out.2.iter().enumerate() {
                            buffer.values()[at] = first + i as f64 * 1e4;
                        }
                        sends.push((to, tag, out, buffer));
                    } else if to == rank {
                        let len = into.2.iter().max().unwrap() + 3;
                        let buffer = Buffer::new(kinds & 2 == 0, len, CANARY);
                        receives.push((from, tag, into, first, buffer));
                    }
                }
            }
        }
        world
            .scope(|scope| {
                for (from, tag, (plan, count, _), _, buffer) in &mut receives {
                    scope
                        .irecv_elements(buffer.values(), plan, *count, *from, *tag as i32)
                        .unwrap();
                }
                for (to, tag, (plan, count, _), buffer) in &mut sends {
                    let values: &[f64] = buffer.values();
                    scope.isend_elements(values, plan, *count, *to, *tag as i32).unwrap();
                }
            })
            .unwrap();
        for (from, tag, (_, _, places), first, mut buffer) in receives {
            for (i, &at) in places.iter().enumerate() {
                let value = std::mem::replace(&mut buffer.values()[at], CANARY);
                assert_eq!(value, first + i as f64 * 1e4, "{round}: {from} to {rank}, {tag}, {i}");
            }
            assert!(buffer.values().iter().all(|&value| value == CANARY), "{round}: beside");
        }
    }
}

#[test]
fn any_layout_from_any_memory_to_any() {
    ranks(2, "any_layout_from_any_memory_to_any", everybody_to_everybody);
}

/// Runs the exchange with 4 ranks. The machine may have fewer than 4 CPUs.
#[test]
fn any_layout_among_many_ranks() {
    ranks(4, "any_layout_among_many_ranks", everybody_to_everybody);
}

#[test]
fn any_layout_by_the_heap() {
    let env = [("TYPEPACK_TRANSPORT", "heap")];
    ranks_with(4, "any_layout_by_the_heap", &env, everybody_to_everybody);
}

#[test]
fn any_layout_by_the_pipeline() {
    let env = [("TYPEPACK_TRANSPORT", "pipeline")];
    ranks_with(3, "any_layout_by_the_pipeline", &env, everybody_to_everybody);
}

/// Checks the messages of scopes that end by a panic. If the panic detaches a send, the receiver must still
/// get the old contents, although the program then changes, frees and reallocates the memory.
#[test]
fn memory_that_a_panic_lets_go_is_not_read() {
    let env = [("TYPEPACK_TRANSPORT", "heap")];
    ranks_with(2, "memory_that_a_panic_lets_go_is_not_read", &env, |world| {
        const LEN: usize = 400_000;
        let double = commit(&Datatype::named(Named::F64)).unwrap();
        for round in 0..4 {
            if world.rank() == 0 {
                let mut buffer = SharedBuffer::<f64>::zeroed(LEN).unwrap();
                buffer.fill(3.5);
                let panicked = catch_unwind(AssertUnwindSafe(|| {
                    world.scope(|scope| {
                        scope.isend_elements(&buffer, &double, LEN as u64, 1, round).unwrap();
                        // In the last two rounds, give the receiver time to begin its copy before the panic.
                        if round >= 2 {
                            std::thread::sleep(std::time::Duration::from_millis(3));
                            world.progress().unwrap();
                        }
                        panic!("on purpose");
                    })
                }));
                assert!(panicked.is_err());
                buffer.fill(4.5);
                drop(buffer);
                let mut again = SharedBuffer::<f64>::zeroed(LEN).unwrap();
                again.fill(5.5);
                world.barrier().unwrap();
            } else {
                let mut into = SharedBuffer::<f64>::zeroed(LEN).unwrap();
                if round % 2 == 0 {
                    world.barrier().unwrap();
                }
                let status = world
                    .recv_elements(&mut into, &double, LEN as u64, Source::Any, Tag::Any)
                    .unwrap();
                assert_eq!((status.tag, status.bytes), (round, 8 * LEN as u64));
                assert!(into.iter().all(|&value| value == 3.5), "round {round}");
                if round % 2 != 0 {
                    world.barrier().unwrap();
                }
            }
        }
    });
}

/// Checks that no rank writes to the memory of a receive after a panic has detached the receive, even if
/// both ranks are copying the message at that time.
#[test]
fn a_receive_that_a_panic_lets_go_is_not_written() {
    let env = [("TYPEPACK_TRANSPORT", "heap")];
    ranks_with(2, "a_receive_that_a_panic_lets_go_is_not_written", &env, |world| {
        const LEN: usize = 4_000_000;
        let double = commit(&Datatype::named(Named::F64)).unwrap();
        let mut buffer = SharedBuffer::<f64>::zeroed(LEN).unwrap();
        buffer.fill(world.rank() as f64);
        for round in 0..3 {
            if world.rank() == 0 {
                world.send_elements(&buffer, &double, LEN as u64, 1, round).unwrap();
            } else {
                world.probe(0, round).unwrap();
                let panicked = catch_unwind(AssertUnwindSafe(|| {
                    world.scope(|scope| {
                        scope.irecv_elements(&mut buffer, &double, LEN as u64, 0, round).unwrap();
                        panic!("on purpose");
                    })
                }));
                assert!(panicked.is_err());
                buffer.fill(9.0);
                std::thread::sleep(std::time::Duration::from_millis(5));
                assert!(buffer.iter().all(|&value| value == 9.0), "round {round}");
            }
            world.barrier().unwrap();
        }
    });
}

/// Checks that no rank hangs if another rank is killed in the middle of a copy.
#[test]
fn a_death_in_the_middle_of_a_copy_ends_the_job() {
    const NAME: &str = "a_death_in_the_middle_of_a_copy_ends_the_job";
    if is_rank() {
        let universe = typepack::init().unwrap();
        let world = universe.world();
        let double = commit(&Datatype::named(Named::F64)).unwrap();
        let mut buffer = universe.shared_buffer::<f64>(4 << 20).unwrap();
        let dies = std::env::var("DIES").unwrap().parse::<usize>().unwrap();
        if world.rank() == dies {
            std::thread::spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(60));
                // SAFETY: `kill` accesses no memory of this process, and the signal ends the process.
                unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
            });
        }
        let error = loop {
            let count = buffer.len() as u64;
            let done = if world.rank() == 0 {
                world.send_elements(&buffer, &double, count, 1, 0)
            } else {
                world.recv_elements(&mut buffer, &double, count, 0, 0).map(drop)
            };
            if let Err(error) = done {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::ProcAborted, "{error}");
        return;
    }
    for dies in ["0", "1"] {
        for way in ["heap", "auto", "pipeline"] {
            let mut command = Command::new(mpiexec());
            command.args(["-n", "2"]).args(body(NAME));
            let env = [("DIES", dies), ("TYPEPACK_TRANSPORT", way)];
            let output = run(command, NAME, &env);
            assert_eq!(output.status.code(), Some(137), "{}", text(&output));
            let line = format!("rank {dies} ");
            assert!(text(&output).contains(&line), "{}", text(&output));
        }
    }
}

/// Checks that a forked child of a rank, and a child of this child, cannot write to the shared memory of the
/// rank: the write ends the process by SIGSEGV. The memory of the rank does not change.
#[test]
fn a_forked_child_cannot_write_to_the_heap() {
    ranks_with(2, "a_forked_child_cannot_write_to_the_heap", &[("TYPEPACK_JIT", "off")], |world| {
        // The second buffer shows that memory which the rank allocates after the first one is protected too.
        let mut first = SharedBuffer::<u64>::zeroed(1000).unwrap();
        let mut large = SharedBuffer::<u64>::zeroed(1 << 20).unwrap();
        world.barrier().unwrap();
        for (generations, is_large) in [(1, false), (2, false), (1, true)] {
            let buffer = if is_large { &mut large } else { &mut first };
            let place = &raw mut buffer[1];
            // SAFETY: the children only fork, wait, write to memory that they have inherited, and end.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: the child only forks, waits, writes to memory that it has inherited, and ends. If the
                // kernel does not stop it, it writes to a word that the rank does not use meanwhile.
                unsafe {
                    if generations == 2 {
                        let grandchild = libc::fork();
                        let mut status = 0;
                        if grandchild > 0 {
                            libc::waitpid(grandchild, &raw mut status, 0);
                            let killed = libc::WIFSIGNALED(status);
                            libc::signal(libc::SIGSEGV, libc::SIG_DFL);
                            libc::raise(if killed {
                                libc::WTERMSIG(status)
                            } else {
                                libc::SIGKILL
                            });
                        }
                    }
                    // The runtime of Rust has a handler for SIGSEGV, which would print a text.
                    libc::signal(libc::SIGSEGV, libc::SIG_DFL);
                    place.write_volatile(9);
                    libc::_exit(0);
                }
            }
            assert!(child > 0, "fork");
            let mut status = 0;
            // SAFETY: `child` is a child of this process; `status` is a writable local.
            let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
            assert_eq!(waited, child);
            assert!(libc::WIFSIGNALED(status), "generation {generations}: the child has written");
            assert_eq!(libc::WTERMSIG(status), libc::SIGSEGV);
            assert_eq!(buffer[1], 0);
            buffer[1] = 3;
            assert_eq!(buffer[1], 3);
            buffer[1] = 0;
        }
        world.barrier().unwrap();
    });
}

/// Checks that a forked child of a rank can read the shared memory of its parent, but can neither allocate
/// nor free such memory.
#[test]
fn a_forked_child_can_read_the_heap() {
    ranks_with(2, "a_forked_child_can_read_the_heap", &[("TYPEPACK_JIT", "off")], |world| {
        let mut buffer = SharedBuffer::<u64>::zeroed(1000).unwrap();
        buffer.fill(world.rank() as u64 + 7);
        world.barrier().unwrap();
        let value = world.rank() as u64 + 7;
        // SAFETY: the child only reads memory, makes library calls that fail before they take a lock or
        // access anything, and ends with `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let seen = buffer.iter().all(|&word| word == value);
            let refused = Block::new(64, 1, false).is_err();
            drop(buffer);
            // SAFETY: `_exit` ends the child process and accesses no memory.
            unsafe { libc::_exit(i32::from(!(seen && refused))) };
        }
        assert!(child > 0, "fork");
        let mut status = 0;
        // SAFETY: `child` is a child of this process; `status` is a writable local.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!((waited, status), (child, 0));
        assert!(buffer.iter().all(|&word| word == value));
        // The child has dropped its copy of the buffer. The parent's allocator must not regard the memory as
        // free because of that.
        let other = SharedBuffer::<u64>::zeroed(1000).unwrap();
        assert_ne!(other.as_ptr(), buffer.as_ptr());
    });
}

/// Checks that shared memory stays usable after the rank has left the job.
#[test]
fn memory_outlives_the_universe() {
    const NAME: &str = "memory_outlives_the_universe";
    if is_rank() {
        let universe = typepack::init().unwrap();
        let mut buffer = universe.shared_buffer::<u8>(100_000).unwrap();
        universe.world().barrier().unwrap();
        drop(universe);
        buffer.fill(1);
        assert!(buffer.iter().all(|&byte| byte == 1));
        return;
    }
    let mut command = Command::new(mpiexec());
    command.args(["-n", "2"]).args(body(NAME));
    let output = run(command, NAME, &[]);
    assert!(output.status.success(), "{}", text(&output));
}

/// Runs a test's ranks after the shell script `script`, which changes mounts for these ranks only. Returns
/// `None` if the system does not allow such changes.
fn mounted(script: &str, size: usize, name: &str) -> Option<std::process::Output> {
    let may = Command::new("unshare").args(["-m", "true"]).output();
    if !may.as_ref().is_ok_and(|output| output.status.success()) {
        let why = may.map_or_else(
            |error| error.to_string(),
            |output| String::from_utf8_lossy(&output.stderr).into_owned(),
        );
        skipped(format_args!("unshare -m is not allowed: {why}"));
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-ec", script, "sh"]).arg(mpiexec());
    command.args(["-n", &size.to_string()]).args(body(name));
    Some(run(command, name, &[]))
}

/// Checks that a `/dev/shm` of 64 MiB (the default in containers) does not limit the shared heap.
#[test]
fn a_small_dev_shm_is_enough() {
    const NAME: &str = "a_small_dev_shm_is_enough";
    if is_rank() {
        ranks(2, "", |world| {
            const LEN: usize = 12 << 20;
            let double = commit(&Datatype::named(Named::F64)).unwrap();
            let mut buffer = SharedBuffer::<f64>::zeroed(LEN).unwrap();
            if world.rank() == 0 {
                buffer.fill(2.5);
                world.send_elements(&buffer, &double, LEN as u64, 1, 0).unwrap();
            } else {
                world.recv_elements(&mut buffer, &double, LEN as u64, 0, 0).unwrap();
                assert!(buffer.iter().all(|&value| value == 2.5));
            }
        });
        return;
    }
    let script = "mount -t tmpfs -o size=64M tmpfs /dev/shm; exec \"$@\"";
    let Some(output) = mounted(script, 2, NAME) else { return };
    assert!(output.status.success(), "{}", text(&output));
}

/// Checks ranks in a cgroup that has a limit of 64 MiB, of which 16 MiB are in use. An allocation that does
/// not fit must return an error that names the limit, and so must many that nobody touches. An allocation that fits
/// must succeed. The kernel must kill no process. The files of the cgroup are fake: they lie in a mount that only the
/// job sees.
#[test]
fn a_small_cgroup_is_an_error_and_no_signal() {
    const NAME: &str = "a_small_cgroup_is_an_error_and_no_signal";
    const MIB: usize = 1 << 20;
    if is_rank() {
        let universe = typepack::init().unwrap();
        let world = universe.world();
        let kind = if world.size() == 1 { "memory" } else { "shared memory" };
        let refused = |len| {
            let error = SharedBuffer::<u8>::zeroed(len).expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::NoMemory, "{error}");
            let line = error.to_string();
            let told = format!("bytes of {kind}: this process can still get");
            assert!(line.contains(&told) && line.contains("(limit: memory."), "{line}");
        };
        refused(60 * MIB);
        let small = SharedBuffer::<u8>::zeroed(4 * MIB).expect("room");
        world.barrier().unwrap();
        drop(small);
        world.barrier().unwrap();
        if world.rank() == 0 {
            // 40 MiB are left, of which the job takes some for its rings.
            let many: Vec<_> =
                (0..7).map(|_| SharedBuffer::<u8>::zeroed(4 * MIB).expect("room")).collect();
            refused(14 * MIB);
            drop(many);
            drop(SharedBuffer::<u8>::zeroed(12 * MIB).expect("room again"));
        }
        world.barrier().unwrap();
        return;
    }
    let script = "
        if [ -d /sys/fs/cgroup/memory ]; then
            root=/sys/fs/cgroup/memory
            path=$(sed -n 's/^[0-9]*:\\([^:]*,\\)*memory\\(,[^:]*\\)*://p' /proc/self/cgroup)
            limit=memory.limit_in_bytes usage=memory.usage_in_bytes
        else
            root=/sys/fs/cgroup
            path=$(sed -n 's/^0:://p' /proc/self/cgroup)
            limit=memory.max usage=memory.current
        fi
        mount -t tmpfs tmpfs \"$root\"
        mkdir -p \"$root$path\"
        echo 67108864 > \"$root$path/$limit\"
        echo 16777216 > \"$root$path/$usage\"
        exec \"$@\"";
    for size in [1, 2] {
        let Some(output) = mounted(script, size, NAME) else { return };
        assert!(output.status.success(), "{size} ranks: {}", text(&output));
        assert_eq!(text(&output).matches("1 passed").count(), size, "{}", text(&output));
    }
}
