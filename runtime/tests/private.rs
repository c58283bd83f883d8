//! Tests of messages between private memories of real ranks. The tests force copies between private
//! memories, forbid them with a filter of system calls in one rank or in both, kill a rank, and send a
//! message longer than two gibibytes. Further tests get data from windows of private memory.

use crate::forbid::forbid;
use crate::harness::{PATIENT, Signs};
use crate::job::{body, is_rank, mpiexec, ranks, ranks_with, run, text};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use typepack::engine::Elements;
use typepack::rma::{Assertions, LockKind, Window, WindowOf};
use typepack::{Communicator, Datatype, ErrorKind, Named, Plan, commit};
use typepack_test_support::random::Random;
use typepack_test_support::skipped::skipped;

fn byte() -> Plan {
    commit(&Datatype::named(Named::U8)).unwrap()
}

/// Makes the tests run one job at a time. These jobs copy much data, and a rank that gets no CPU for some
/// time learns of a death too late.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether the system lets processes access each other's memory. If it does not, the function
/// records the calling test as skipped.
fn allowed() -> bool {
    // This call accesses no memory, but it fails if a filter of system calls forbids it.
    // SAFETY: both lists have 0 ranges, so the call reads and writes nothing.
    let done = unsafe {
        libc::process_vm_readv(libc::getpid(), std::ptr::null(), 0, std::ptr::null(), 0, 0)
    };
    if done < 0 {
        let error = std::io::Error::last_os_error();
        skipped(format_args!("process_vm_readv is not allowed: {error}"));
        return false;
    }
    // If Yama's scope is 2, only privileged processes may access other processes; if it is 3, no process
    // may.
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    // SAFETY: `geteuid` takes no argument and cannot fail.
    let privileged = unsafe { libc::geteuid() } == 0;
    let denied = scope.trim() == "3" || scope.trim() == "2" && !privileged;
    if denied {
        skipped(format_args!("processes may not access each other: yama/ptrace_scope is {scope}"));
    }
    !denied
}

const COUNT: usize = 12;

/// Sends messages of several lengths in both directions, and checks their contents.
fn there_and_back(world: &Communicator) {
    let byte = byte();
    let mut random = Random(7);
    for round in 0..COUNT {
        let len = [70_000, 262_144, 1 << 20, 5_000_001][round % 4];
        let data = random.bytes(len);
        let mut back = vec![0u8; len];
        let first = round % 2;
        for turn in 0..2 {
            if world.rank() == (first + turn) % 2 {
                world.send_elements(&data, &byte, len as u64, 1 - world.rank(), 0).unwrap();
            } else {
                back.fill(1);
                world.recv_elements(&mut back, &byte, len as u64, 1 - world.rank(), 0).unwrap();
                assert!(back == data, "{len} bytes");
            }
        }
    }
    world.barrier().unwrap();
}

/// Runs [`there_and_back`] as test `name`. Each rank first calls `prepare` with its rank. Returns, for
/// ranks 0 and 1, how many of their messages were copied between private memories. All other messages were
/// packed. Returns `None` in a rank, and if the system does not allow such copies.
fn copied(name: &str, prepare: fn(usize), env: &[(&str, &str)]) -> Option<[usize; 2]> {
    if is_rank() {
        prepare(std::env::var("TYPEPACK_RANK").unwrap().parse().unwrap());
        ranks(2, name, there_and_back);
        return None;
    }
    if !allowed() {
        return None;
    }
    let _alone = alone();
    let mut command = Command::new(mpiexec());
    command.args(["-n", "2"]).args(body(name));
    let mut all = vec![("TYPEPACK_REPORT", "1")];
    all.extend(env);
    let output = run(command, name, &all);
    let lines = text(&output);
    assert!(output.status.success(), "{lines}");
    let number = |line: &str, unit: &str| -> usize {
        let words: Vec<&str> = line.split(|c: char| " (,)".contains(c)).collect();
        // A count of 0 is left out.
        let at = words.iter().position(|word| *word == unit);
        at.map_or(0, |at| words[at - 1].parse().expect("a number"))
    };
    Some([0, 1].map(|rank| {
        let begin = format!("typepack: rank {rank}: ");
        let line = lines.lines().find(|line| line.contains(&begin)).expect("a report");
        assert_eq!(number(line, "pipeline") + number(line, "cma"), COUNT, "{line}");
        number(line, "cma")
    }))
}

#[test]
fn long_messages_are_copied() {
    let env = [("TYPEPACK_TRANSPORT", "cma")];
    if let Some(copied) = copied("long_messages_are_copied", |_| {}, &env) {
        assert_eq!(copied, [COUNT; 2]);
    }
}

/// Checks that `TYPEPACK_CMA=off` switches the copies off, even if `TYPEPACK_TRANSPORT=cma` asks for them.
#[test]
fn the_variable_switches_copies_off() {
    let name = "the_variable_switches_copies_off";
    let env = [("TYPEPACK_TRANSPORT", "cma"), ("TYPEPACK_CMA", "off")];
    if let Some(copied) = copied(name, |_| {}, &env) {
        assert_eq!(copied, [0; 2]);
    }
}

#[test]
fn a_filter_that_refuses_changes_the_way_only() {
    let refuse = |_| forbid(libc::SYS_process_vm_readv, libc::EPERM);
    let name = "a_filter_that_refuses_changes_the_way_only";
    if let Some(copied) = copied(name, refuse, &[("TYPEPACK_TRANSPORT", "cma")]) {
        assert_eq!(copied, [0; 2]);
    }
}

/// Checks a job in which rank 1 cannot read the memory of other processes. Rank 0 must still copy the messages
/// of rank 1. The messages of rank 0 must be packed.
#[test]
fn one_side_may_be_refused() {
    let refuse = |rank| {
        if rank == 1 {
            forbid(libc::SYS_process_vm_readv, libc::ENOSYS);
        }
    };
    let name = "one_side_may_be_refused";
    if let Some(copied) = copied(name, refuse, &[("TYPEPACK_TRANSPORT", "cma")]) {
        assert_eq!(copied, [0, COUNT]);
    }
}

/// Checks that no rank writes to the memory of other processes: a filter ends every process that tries to.
#[test]
fn no_rank_writes_to_another_process() {
    let end = |_| crate::forbid::end_at(libc::SYS_process_vm_writev);
    let name = "no_rank_writes_to_another_process";
    if let Some(copied) = copied(name, end, &[("TYPEPACK_TRANSPORT", "cma")]) {
        assert_eq!(copied, [COUNT; 2]);
    }
}

/// Checks that a message arrives even if it has more bytes than the kernel moves in one call, and more than
/// an `int` can count.
#[test]
fn more_than_two_gibibytes_arrive() {
    const LEN: usize = (2 << 30) + (3 << 20) + 17;
    let free = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = free.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = kib.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    if !is_rank() && kib.is_none_or(|kib| kib < 8 << 20) {
        skipped("less than 8 GiB of memory are free");
        return;
    }
    let _alone = alone();
    let env = [("TYPEPACK_TRANSPORT", "cma")];
    ranks_with(2, "more_than_two_gibibytes_arrive", &env, |world| {
        // At rank 0 most pages of this vector are only read. Such pages of zeros need no memory.
        let mut data = vec![0u8; LEN];
        let marks = [0, 1 << 20, (1 << 31) - 1, 1 << 31, LEN - 1];
        if world.rank() == 0 {
            for (i, mark) in marks.into_iter().enumerate() {
                data[mark] = i as u8 + 1;
            }
            world.send_elements(&data, &byte(), LEN as u64, 1, 0).unwrap();
        } else {
            world.recv_elements(&mut data, &byte(), LEN as u64, 0, 0).unwrap();
            let found: Vec<_> = marks.iter().map(|&mark| data[mark]).collect();
            assert_eq!(found, [1, 2, 3, 4, 5]);
            assert_eq!(data.iter().filter(|&&byte| byte != 0).count(), marks.len());
        }
    });
}

/// Checks a job of two ranks in which one rank dies while a rank copies from or to the other rank's memory.
/// The surviving rank must get an error.
#[test]
fn a_death_in_the_middle_is_an_error() {
    const LEN: usize = 64 << 20;
    let name = "a_death_in_the_middle_is_an_error";
    if is_rank() {
        // The ranks ignore SIGTERM, so that they have time to report the death before SIGKILL ends them.
        // SAFETY: `signal` installs no handler here, because SIG_IGN is not a function.
        unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
        ranks(2, name, |world| {
            let mut data = vec![world.rank() as u8; LEN];
            let signs = Signs::of_this_rank();
            signs.make(&format!("joined-{}", world.rank()));
            let dies: usize = std::env::var("DIES").unwrap().parse().unwrap();
            if world.rank() == dies {
                signs.wait_for("joined", 2);
                let delay = std::env::var("DELAY").unwrap().parse().unwrap();
                std::thread::spawn(move || {
                    let start = Instant::now();
                    while start.elapsed() < Duration::from_micros(delay) {}
                    // SAFETY: `kill` accesses no memory, and SIGKILL ends this process.
                    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
                });
            }
            let plan = byte();
            let error = loop {
                let done = if world.rank() == 0 {
                    world.send_elements(&data, &plan, LEN as u64, 1, 0)
                } else {
                    world.recv_elements(&mut data, &plan, LEN as u64, 0, 0).map(drop)
                };
                if let Err(error) = done {
                    break error;
                }
            };
            assert_eq!(error.kind(), ErrorKind::ProcAborted);
            println!("was told: {error}");
        });
        return;
    }
    let _alone = alone();
    for dies in ["0", "1"] {
        let told = format!("was told: job: rank {dies} killed by signal 9 (SIGKILL)");
        for delay in ["500", "3000", "20000"] {
            let mut command = Command::new(mpiexec());
            command.args(PATIENT).args(["-n", "2"]).args(body(name));
            let signs = Signs::new();
            let env = [("TYPEPACK_TRANSPORT", "cma"), ("DIES", dies), ("DELAY", delay)];
            let output = run(signs.given(command), name, &env);
            assert_eq!(output.status.code(), Some(137), "{}", text(&output));
            assert!(text(&output).contains(&told), "{}", text(&output));
        }
    }
}

/// Number of words of a window in the tests of gets.
const WORDS: usize = 1_300_000;

/// Gets elements of several layouts from rank 1 of a window of private memory, and checks their values. The word with
/// index `i` is `7 * i`.
fn get_and_check(window: &Window) {
    let text = |text: &str| commit(&text.parse().expect("a type")).expect("a layout");
    let word = text("u64");
    // One run; dense; gaps of more than a page, and more ranges than one system call takes; runs in falling order.
    let layouts = [
        "contiguous(1200000, u64)",
        "vector(50000, 3, 7, u64)",
        "vector(2000, 1, 600, u64)",
        "vector(900, 2, -3, u64)",
    ];
    for (layout, first) in layouts.into_iter().zip([5, 1, 0, 5000]) {
        let from = text(layout);
        let words = (from.element_bytes() / 8) as usize;
        let mut packed = vec![0_u64; words];
        let mut same = vec![0_u64; WORDS];
        let contiguous = |memory: &mut [u64]| Elements {
            origin: memory.as_mut_ptr().cast(),
            plan: &word,
            count: words as u64,
        };
        let at = same.as_mut_ptr().wrapping_add(first as usize).cast();
        let gapped = Elements { origin: at, plan: &from, count: 1 };
        // SAFETY: `packed` has as many words as an element of the layout has. `same` has as many words as the window,
        // in which the element lies from the same word on. Nobody else uses the two vectors.
        unsafe {
            window.get_raw(&contiguous(&mut packed), 1, first, &from, 1).expect("a get");
            window.get_raw(&gapped, 1, first, &from, 1).expect("a get");
        }
        // Waits only for gets that the target answers.
        window.flush_local(1).expect("complete");
        let mut cursor = typepack_engine::Cursor::at(&from, 1, 0).expect("a cursor");
        let mut expected = Vec::new();
        let mut whole = vec![0; WORDS];
        while let Some(run) = cursor.run() {
            for word in 0..run.bytes as i64 / 8 {
                let index = (first + run.offset / 8 + word) as usize;
                expected.push(7 * index as u64);
                whole[index] = 7 * index as u64;
            }
            cursor.advance(run.bytes);
        }
        assert!(packed == expected, "{layout}");
        assert!(same == whole, "{layout}");
    }
}

/// Makes a window of private memory, in which the word with index `i` is `7 * i`, and calls `body` with it.
fn with_private_window(world: &Communicator, body: impl FnOnce(&Window)) {
    let mut data: Vec<u64> = (0..WORDS as u64).map(|word| 7 * word).collect();
    let bytes = size_of_val(&data[..]) as i64;
    // SAFETY: the window is freed before `data`, and nobody else uses `data` meanwhile.
    let window = unsafe { Window::create_raw(world, data.as_mut_ptr().cast(), bytes, 8, &[]) };
    let window = window.expect("a window");
    body(&window);
    window.free().expect("freed");
}

/// Checks that gets from private memory do not wait for the target: rank 1 makes no call of the library until rank 0
/// has got all data.
#[test]
fn gets_from_a_window_do_not_wait_for_the_target() {
    if !is_rank() && !allowed() {
        return;
    }
    let _alone = alone();
    ranks(2, "gets_from_a_window_do_not_wait_for_the_target", |world| {
        let flag = WindowOf::<u64>::allocate(world, 1).expect("a window");
        with_private_window(world, |window| {
            if world.rank() == 0 {
                window.lock_raw(LockKind::Shared, 1, Assertions::NONE).expect("a lock");
                get_and_check(window);
                window.unlock_raw(1).expect("unlocked");
                let locked = flag.lock(1, LockKind::Shared).expect("a lock");
                locked.write(&[1], 0).expect("a write");
            } else {
                let own = flag.own();
                while own.get(0).expect("a value") == 0 {
                    std::thread::yield_now();
                }
            }
        });
        flag.free().expect("freed");
    });
}

/// Checks that gets go on by requests if the system refuses reads, from the start and later.
#[test]
fn gets_from_a_window_go_on_by_requests() {
    if !is_rank() && !allowed() {
        return;
    }
    let _alone = alone();
    ranks(2, "gets_from_a_window_go_on_by_requests", |world| {
        for _ in 0..2 {
            with_private_window(world, |window| {
                if world.rank() == 0 {
                    window.lock_raw(LockKind::Shared, 1, Assertions::NONE).expect("a lock");
                    get_and_check(window);
                    forbid(libc::SYS_process_vm_readv, libc::EPERM);
                    get_and_check(window);
                    window.unlock_raw(1).expect("unlocked");
                }
            });
        }
    });
}
