//! Tests of ranks that wait for each other in accesses to files: the locks of atomic mode, streams, and the progress that
//! a waiting rank makes.

use crate::file_scene::path;
use crate::harness::{PATIENT, Signs};
use crate::job::{body, is_rank, mpiexec, ranks_with, run, text};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use typepack::engine::Elements;
use typepack::io::{Access, File, Mode, Position, Started};
use typepack::{Communicator, Datatype, ErrorKind, Named, Plan, commit};
use typepack_job::sys::files::{self, Table};

fn byte() -> Plan {
    commit(&Datatype::named(Named::U8)).expect("a plan")
}

/// Size in bytes of a message so long that its receive cannot complete unless the sender makes progress.
const LONG: usize = 1 << 22;

/// The setting with which the sender takes part in the transfer of a long message.
const SENDER: (&str, &str) = ("TYPEPACK_TRANSPORT", "pipeline");

/// Makes a sign for another rank, outside the library.
fn give(name: &str) {
    Signs::of_this_rank().make(name);
}

/// Waits for a sign, but not for ever: a job that hangs must fail and not be killed.
fn await_sign(name: &str) {
    Signs::of_this_rank().wait_for(name, 1);
}

/// Runs a test whose ranks give signs.
#[track_caller]
fn signed(size: usize, name: &str, env: &[(&str, &str)], as_rank: impl FnOnce(&Communicator)) {
    if is_rank() {
        ranks_with(size, name, env, as_rank);
        return;
    }
    let signs = Signs::new();
    let env: Vec<_> = env.iter().copied().chain([("SIGNS", signs.path())]).collect();
    ranks_with(size, name, &env, as_rank);
}

fn atomic_file(world: &Communicator, path: &Path) -> File {
    let file = File::open(world, path, Mode::CREATE_READ_WRITE | Mode::DELETE_ON_CLOSE);
    let file = file.expect("a file");
    file.set_atomic(true).expect("a mode");
    file
}

/// A write that stays in its system call until another rank has made its access.
const STAYING: Table = Table {
    pwrite: |fd, memory, bytes, at| {
        give("begun");
        await_sign("done");
        // SAFETY: the real call gets the caller's memory.
        unsafe { (Table::SYSTEM.pwrite)(fd, memory, bytes, at) }
    },
    ..Table::SYSTEM
};

#[test]
fn atomic_accesses_to_other_bytes_do_not_wait() {
    let name = "atomic_accesses_to_other_bytes_do_not_wait";
    signed(2, name, &[("TYPEPACK_IO", "pwrite")], |world| {
        let path = path(world, name);
        let file = atomic_file(world, &path);
        if world.rank() == 0 {
            // SAFETY: the functions of `STAYING` pass the caller's memory to the system calls.
            unsafe { files::replace(STAYING) };
            file.write_at(10, &[1u8; 10]).expect("written");
        } else {
            await_sign("begun");
            // Write to ranges before and behind the range that rank 0 has locked, and also by a nonblocking access.
            file.write_at(0, &[2u8; 10]).expect("written");
            file.write_at(20, &[3u8; 10]).expect("written");
            let (mut data, plan) = ([4u8; 5], byte());
            let access = Access { write: true, position: Position::At(30), collective: false };
            let part = Elements { origin: data.as_mut_ptr(), plan: &plan, count: 5 };
            // SAFETY: `data` outlives the access.
            let Started { operation, pending } =
                unsafe { file.start_raw(access, &part) }.expect("started");
            assert_eq!(world.messages().finish(operation).expect("complete").bytes, 5);
            drop(pending);
            give("done");
        }
        world.barrier().expect("a barrier");
        let mut wanted = vec![2u8; 10];
        wanted.extend([1; 10]);
        wanted.extend([3; 10]);
        wanted.extend([4; 5]);
        assert_eq!(std::fs::read(&path).expect("the file"), wanted);
        world.barrier().expect("a barrier");
        file.close().expect("closed");
    });
}

/// A write in several system calls, each of half of the bytes that are left. Before each call except the first, other
/// ranks have time for an access.
const HALVED: Table = Table {
    pwrite: |fd, memory, bytes, at| {
        if Signs::of_this_rank().has("begun") {
            await_sign("going");
            std::thread::sleep(Duration::from_millis(100));
        }
        // SAFETY: the real call gets a part of the caller's memory.
        let done = unsafe { (Table::SYSTEM.pwrite)(fd, memory, bytes.div_ceil(2), at) };
        give("begun");
        done
    },
    ..Table::SYSTEM
};

#[test]
fn atomic_accesses_that_overlap_are_whole() {
    let name = "atomic_accesses_that_overlap_are_whole";
    signed(3, name, &[("TYPEPACK_IO", "pwrite")], |world| {
        let path = path(world, name);
        let file = atomic_file(world, &path);
        if world.rank() == 0 {
            file.write_at(0, &[9u8; 100]).expect("written");
        }
        world.barrier().expect("a barrier");
        match world.rank() {
            0 => {
                // SAFETY: the functions of `HALVED` pass parts of the caller's memory to the system calls.
                unsafe { files::replace(HALVED) };
                file.write_at(0, &[1u8; 100]).expect("written");
            }
            1 => {
                await_sign("begun");
                give("going");
                file.write_at(50, &[2u8; 100]).expect("written");
            }
            _ => {
                await_sign("going");
                let mut found = [0u8; 50];
                assert_eq!(file.read_at(0, &mut found).expect("read"), 50);
                assert!(found == [9; 50] || found == [1; 50], "a part of a write: {found:?}");
            }
        }
        world.barrier().expect("a barrier");
        let found = std::fs::read(&path).expect("the file");
        assert_eq!(found[..50], [1; 50]);
        assert_eq!(found[50..], [2; 100]);
        world.barrier().expect("a barrier");
        file.close().expect("closed");
    });
}

/// Rank 1 waits for a range of the file that rank 0 has locked. Rank 0 keeps the range locked until rank 2 has got a
/// message of rank 1, for which rank 1 must make progress.
#[test]
fn a_rank_that_waits_for_a_range_makes_progress() {
    let name = "a_rank_that_waits_for_a_range_makes_progress";
    signed(3, name, &[("TYPEPACK_IO", "pwrite"), SENDER], |world| {
        let path = path(world, name);
        let file = atomic_file(world, &path);
        match world.rank() {
            0 => {
                // SAFETY: the functions of `STAYING` pass the caller's memory to the system calls.
                unsafe { files::replace(STAYING) };
                file.write_at(0, &[1u8; 10]).expect("written");
            }
            1 => {
                await_sign("begun");
                let (long, plan) = (vec![5u8; LONG], byte());
                let sent = world.scope(|scope| {
                    let _send =
                        scope.isend_elements(&long, &plan, LONG as u64, 2, 0).expect("started");
                    file.write_at(5, &[2u8; 10]).expect("written");
                });
                sent.expect("sent");
            }
            _ => {
                let (mut long, plan) = (vec![0u8; LONG], byte());
                world.recv_elements(&mut long, &plan, LONG as u64, 1, 0).expect("received");
                assert!(long.iter().all(|byte| *byte == 5));
                give("done");
            }
        }
        world.barrier().expect("a barrier");
        let found = std::fs::read(&path).expect("the file");
        assert_eq!((&found[..5], &found[5..]), (&[1; 5][..], &[2; 10][..]));
        world.barrier().expect("a barrier");
        file.close().expect("closed");
    });
}

fn make_fifo(path: &Path) {
    let name = CString::new(path.as_os_str().as_bytes()).expect("no zero byte");
    // SAFETY: `name` is a text that ends with a zero byte.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0, "mkfifo");
}

/// Opens a stream of all ranks, which opens at once because it is opened for reading and writing.
fn stream(world: &Communicator, name: &str) -> (File, PathBuf) {
    let path = path(world, name);
    if world.rank() == 0 {
        make_fifo(&path);
    }
    world.barrier().expect("a barrier");
    (File::open(world, &path, Mode::READ_WRITE).expect("a file"), path)
}

fn close(world: &Communicator, file: File, path: &Path) {
    file.close().expect("closed");
    if world.rank() == 0 {
        std::fs::remove_file(path).expect("removed");
    }
}

/// Ranks 0 and 1 read an empty stream: one of them waits for data, the other one for its turn. Rank 2 writes the data
/// when it has got a message of each of them, for which both must make progress.
#[test]
fn ranks_that_wait_for_a_stream_make_progress() {
    let name = "ranks_that_wait_for_a_stream_make_progress";
    ranks_with(3, name, &[SENDER], |world| {
        let (file, path) = stream(world, name);
        let plan = byte();
        if world.rank() == 2 {
            let mut long = vec![0u8; LONG];
            for from in [1, 0] {
                world.recv_elements(&mut long, &plan, LONG as u64, from, 0).expect("received");
                assert!(long.iter().all(|byte| usize::from(*byte) == from + 1));
            }
            file.write_shared(&[7u8; 8]).expect("written");
        } else {
            let (long, mut data) = (vec![world.rank() as u8 + 1; LONG], [0u8; 4]);
            let sent = world.scope(|scope| {
                let _send = scope.isend_elements(&long, &plan, LONG as u64, 2, 0).expect("started");
                assert_eq!(file.read_shared(&mut data).expect("read"), 4);
            });
            sent.expect("sent");
            assert_eq!(data, [7; 4]);
        }
        close(world, file, &path);
    });
}

/// Ranks 0 and 1 write more to a stream than fits: one of them waits for room, the other one for its turn. Rank 2 reads
/// the data when it has got a message of each of them, for which both must make progress.
#[test]
fn ranks_that_wait_for_room_in_a_stream_make_progress() {
    let name = "ranks_that_wait_for_room_in_a_stream_make_progress";
    ranks_with(3, name, &[SENDER], |world| {
        const BYTES: usize = 200_000; // more than a pipe holds
        let (file, path) = stream(world, name);
        let plan = byte();
        if world.rank() == 2 {
            let mut long = vec![0u8; LONG];
            for from in [1, 0] {
                world.recv_elements(&mut long, &plan, LONG as u64, from, 0).expect("received");
                assert!(long.iter().all(|byte| usize::from(*byte) == from + 1));
            }
            let mut data = vec![0u8; 2 * BYTES];
            assert_eq!(file.read_shared(&mut data).expect("read"), 2 * BYTES);
            assert!(data[..BYTES].iter().all(|byte| *byte == data[0]));
            assert!(data[BYTES..].iter().all(|byte| *byte == 3 - data[0]));
        } else {
            let long = vec![world.rank() as u8 + 1; LONG];
            let sent = world.scope(|scope| {
                let _send = scope.isend_elements(&long, &plan, LONG as u64, 2, 0).expect("started");
                file.write_shared(&long[..BYTES]).expect("written");
            });
            sent.expect("sent");
        }
        close(world, file, &path);
    });
}

/// Rank 0 starts a nonblocking collective write, which waits for the call of rank 1. Later writes of rank 0 alone must
/// not wait for rank 1.
#[test]
fn a_write_to_a_stream_does_not_wait_for_calls_of_other_ranks() {
    let name = "a_write_to_a_stream_does_not_wait_for_calls_of_other_ranks";
    ranks_with(2, name, &[], |world| {
        let (file, path) = stream(world, name);
        let (mut data, plan) = ([world.rank() as u8 + 1; 4], byte());
        let mut go = [0u8];
        if world.rank() == 1 {
            world.recv_elements(&mut go, &plan, 1, 0, 0).expect("received");
        }
        let start = |data: &mut [u8; 4], collective| {
            let position = if collective { Position::At(0) } else { Position::Shared };
            let access = Access { write: true, position, collective };
            let part = Elements { origin: data.as_mut_ptr(), plan: &plan, count: 4 };
            // SAFETY: `data` outlives the access.
            unsafe { file.start_raw(access, &part) }.expect("started")
        };
        let together = start(&mut data, true);
        if world.rank() == 0 {
            let mut alone = [9u8; 4];
            let started = start(&mut alone, false);
            let bytes = world.messages().finish(started.operation).expect("complete").bytes;
            assert_eq!(bytes, 4);
            file.write_shared(&[8u8; 4]).expect("written");
            world.send_elements(&go, &plan, 1, 1, 0).expect("sent");
        }
        let bytes = world.messages().finish(together.operation).expect("complete").bytes;
        assert_eq!(bytes, 4);
        drop(together.pending);
        world.barrier().expect("a barrier");
        if world.rank() == 1 {
            let mut found = [0u8; 16];
            assert_eq!(file.read_shared(&mut found).expect("read"), 16);
            assert_eq!((&found[..4], &found[4..8]), (&[9; 4][..], &[8; 4][..]));
            found[8..].sort_unstable();
            assert_eq!(found[8..], [1, 1, 1, 1, 2, 2, 2, 2]);
        }
        close(world, file, &path);
    });
}

/// A write that kills its own process after the first half of the bytes.
const DYING: Table = Table {
    pwrite: |fd, memory, bytes, at| {
        // SAFETY: the real call gets a part of the caller's memory.
        let _half = unsafe { (Table::SYSTEM.pwrite)(fd, memory, bytes / 2, at) };
        // SAFETY: `kill` accesses no memory of this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        Ok(0)
    },
    ..Table::SYSTEM
};

/// Rank 1 dies in a write to a range of the file that it has locked. The other ranks then write to the range, by a
/// blocking and by a nonblocking access.
#[test]
fn the_range_of_a_dead_rank_is_free() {
    let name = "the_range_of_a_dead_rank_is_free";
    if is_rank() {
        let universe = typepack::init().expect("joining the job");
        let world = universe.world();
        if world.rank() != 1 {
            // This rank ignores SIGTERM, so that it can go on until SIGKILL ends it.
            // SAFETY: SIG_IGN only makes the process ignore the signal and installs no handler.
            unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
        }
        let path = path(&world, name);
        let file = File::open(&world, &path, Mode::CREATE_READ_WRITE).expect("a file");
        file.set_atomic(true).expect("a mode");
        give(&format!("open-{}", world.rank()));
        if world.rank() == 1 {
            Signs::of_this_rank().wait_for("open", 3);
            // SAFETY: the functions of `DYING` pass parts of the caller's memory to the system calls.
            unsafe { files::replace(DYING) };
            file.write_at(0, &[1u8; 100]).expect("this rank is dead");
        }
        // Rank 1 has begun when its first half is there.
        while file.size().expect("a size") < 50 {
            std::thread::yield_now();
        }
        std::fs::remove_file(&path).ok();
        let (at, mut data) = (10 * world.rank() as u64, [2u8; 30]);
        file.write_at(at, &data).expect("written");
        let plan = byte();
        let access = Access { write: true, position: Position::At(0), collective: false };
        let part = Elements { origin: data.as_mut_ptr(), plan: &plan, count: 30 };
        // Both the start and the wait may return the error of rank 1's death.
        // SAFETY: `data` outlives the access, because the process ends by `exit` below.
        let started = unsafe { file.start_raw(access, &part) };
        let done = started.and_then(|started| world.messages().finish(started.operation));
        if let Err(error) = done {
            assert_eq!(error.kind(), ErrorKind::ProcAborted, "{error}");
        }
        println!("rank {} has written", world.rank());
        std::process::exit(6);
    }
    let mut command = Command::new(mpiexec());
    command.args(PATIENT).args(["-n", "3"]).args(body(name));
    let signs = Signs::new();
    let output = run(signs.given(command), name, &[("TYPEPACK_IO", "pwrite")]);
    let text = text(&output);
    assert_eq!(output.status.code(), Some(137), "{text}");
    assert!(!text.contains("panicked"), "{text}");
    for rank in [0, 2] {
        assert!(text.contains(&format!("rank {rank} has written")), "{text}");
    }
}
