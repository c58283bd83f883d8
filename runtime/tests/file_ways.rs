//! Checks that the choice between a mapped window of a file and system calls changes no result. Two ranks make many
//! accesses of each kind, so that the library tries both ways if it may choose by measurement. Other tests switch the
//! measurement off or force one way. The tests count the system calls that write, to see which way was used.

use crate::job::ranks_with;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use typepack::io::{Access, File, Mode, Position};
use typepack::{Communicator, Datatype, Named, commit};
use typepack_job::sys::files::{self, Table};
use typepack_test_support::attempts::attempts;

/// Number of accesses of each kind. A chooser tries the other way after 20 accesses or so.
const ACCESSES: u64 = 120;

/// Number of accesses of each kind after the first one.
const LATER: u64 = ACCESSES - 1;

/// The variable with the number of accesses of each kind, if it is not [`ACCESSES`].
const MORE: &str = "FILE_WAYS_ACCESSES";

fn accesses() -> u64 {
    std::env::var(MORE).map_or(ACCESSES, |number| number.parse().expect("a number"))
}

/// Number of bytes of one rank's piece in each period of the view.
const PIECE: u64 = 8192;

static WRITES: AtomicU64 = AtomicU64::new(0);

const COUNTING: Table = Table {
    pwrite: |fd, memory, bytes, at| {
        WRITES.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller guarantees that `bytes` bytes at `memory` are readable, as the real call requires.
        unsafe { (Table::SYSTEM.pwrite)(fd, memory, bytes, at) }
    },
    ..Table::SYSTEM
};

fn value(round: u64, at: u64) -> u8 {
    ((round * 1_000_003 + at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn path(world: &Communicator) -> PathBuf {
    let mut pid = [std::process::id()];
    world.broadcast(&mut pid, 0).expect("a number");
    std::env::temp_dir().join(format!("typepack-file-ways-{}", pid[0]))
}

/// Writes and reads through a view that is one run (`strided` is false) or has long pieces, and compares every byte
/// in memory and in the file. Returns the numbers of system calls that wrote: in the first write, which extends the
/// file, and in all later writes.
fn exchange(world: &Communicator, strided: bool, bytes: u64) -> [u64; 2] {
    let (rank, ranks) = (world.rank() as u64, world.size() as u64);
    let path = path(world);
    let file = File::open(world, &path, Mode::READ_WRITE | Mode::CREATE).expect("a file");
    let byte = Datatype::named(Named::U8);
    let period = PIECE * ranks;
    if strided {
        let block = Datatype::contiguous(PIECE as i64, &byte).expect("a type");
        let filetype = Datatype::resized(0, period as i64, &block).expect("a type");
        let disp = (rank * PIECE) as i64;
        file.set_view(Some(disp), &byte, &filetype, "native").expect("a view");
    }
    let plan = commit(&byte).expect("a plan");
    // Returns the position in the file of this rank's byte `at`.
    let place = |at: u64| match strided {
        true => at / PIECE * period + rank * PIECE + at % PIECE,
        false => rank * bytes + at,
    };
    let offset = if strided { 0 } else { (rank * bytes) as i64 };
    let before = WRITES.load(Ordering::Relaxed);
    let mut first = 0;
    let mut memory = vec![0u8; bytes as usize];
    for round in 0..accesses() {
        let access =
            Access { write: true, position: Position::At(offset), collective: round % 2 == 0 };
        for (at, byte) in (0..).zip(&mut memory) {
            *byte = value(round, place(at));
        }
        file.write_as(access, &memory, &plan, bytes).expect("written");
        if round == 0 {
            first = WRITES.load(Ordering::Relaxed) - before;
        }
        memory.fill(0);
        let access = Access { write: false, ..access };
        assert_eq!(file.read_as(access, &mut memory, &plan, bytes).expect("read"), bytes as usize);
        let wrong = (0..).zip(&memory).find(|(at, byte)| **byte != value(round, place(*at)));
        assert_eq!(wrong, None, "round {round}");
        if round % 40 == 39 {
            let found = std::fs::read(&path).expect("the file");
            let own = |at: u64| found[place(at) as usize] == value(round, place(at));
            assert!((0..bytes).all(own), "round {round}");
        }
    }
    assert_eq!(std::fs::metadata(&path).expect("the file").len(), bytes * ranks);
    let later = WRITES.load(Ordering::Relaxed) - before - first;
    world.barrier().expect("a barrier");
    file.close().expect("closed");
    if rank == 0 {
        std::fs::remove_file(&path).expect("removed");
    }
    world.barrier().expect("a barrier");
    [first, later]
}

fn exchange_all(world: &Communicator) -> [[u64; 2]; 3] {
    // SAFETY: the functions of `COUNTING` pass the caller's memory to the system calls.
    unsafe { files::replace(COUNTING) };
    let writes = [(false, 4096), (false, 200_000), (true, 8 * PIECE)]
        .map(|(strided, bytes)| exchange(world, strided, bytes));
    // SAFETY: the functions of `SYSTEM` are the system calls.
    unsafe { files::replace(Table::SYSTEM) };
    writes
}

#[test]
fn a_free_choice_tries_both_ways() {
    let name = "a_free_choice_tries_both_ways";
    attempts(|number| {
        let more = (ACCESSES << (2 * number)).to_string();
        let env = [("TYPEPACK_TUNE", "on"), ("TYPEPACK_IO", "auto"), (MORE, &*more)];
        let output = ranks_with(2, name, &env, |world| {
            let [[_, short], [_, long], [_, strided]] = exchange_all(world);
            let later = accesses() - 1;
            // If an access is one run, the library first writes it by a system call, and tries the window later. If an
            // access has long pieces, the library first uses the window. Later it tries system calls, eight for each
            // access.
            let both = (7..later).contains(&short)
                && (7..later).contains(&long)
                && (8..8 * later).contains(&strided);
            if !both {
                println!("one way only: {short} {long} {strided}");
            }
        });
        // When a trial comes depends on the times of this machine: the time of trials is a part of the time of all
        // accesses, and a rank that gets no CPU uses it up. More accesses have more time.
        if output.contains("one way only: ") { Err(output) } else { Ok(()) }
    });
}

#[test]
fn without_measuring_the_static_order_stays() {
    let name = "without_measuring_the_static_order_stays";
    for tune in ["off", "off:files"] {
        ranks_with(2, name, &[("TYPEPACK_TUNE", tune), ("TYPEPACK_IO", "auto")], |world| {
            let [short, long, strided] = exchange_all(world);
            assert_eq!((short, long), ([1, LATER], [1, LATER]));
            // Only the first write, which extends the file, makes system calls.
            assert!(strided[0] <= 9 && strided[1] == 0, "{strided:?}");
        });
        if crate::job::is_rank() {
            return;
        }
    }
}

#[test]
fn a_forced_way_is_not_left() {
    let name = "a_forced_way_is_not_left";
    if !crate::job::is_rank() || std::env::var("TYPEPACK_IO").as_deref() == Ok("pwrite") {
        ranks_with(2, name, &[("TYPEPACK_TUNE", "on"), ("TYPEPACK_IO", "pwrite")], |world| {
            assert_eq!(exchange_all(world), [[1, LATER], [1, LATER], [8, 8 * LATER]]);
        });
    }
    if !crate::job::is_rank() || std::env::var("TYPEPACK_IO").as_deref() == Ok("mmap") {
        ranks_with(2, name, &[("TYPEPACK_TUNE", "on"), ("TYPEPACK_IO", "mmap")], |world| {
            let all = exchange_all(world);
            // Only writes that extend the file make system calls: one for the last piece, or one for each piece while
            // the pieces of the other rank are holes.
            let [short, long, strided] = all.map(|[first, _]| first);
            assert!(short <= 1 && long <= 1 && strided <= 9, "{all:?}");
            assert!(all.iter().all(|[_, later]| *later == 0), "{all:?}");
        });
    }
}

/// How many of the next system calls that write are followed by a truncation of the file.
static SHRINKS: AtomicU64 = AtomicU64::new(0);

/// Behaves as if another process truncated the file after a write: the library has extended the file, and finds no pages
/// when it copies.
const SHRINKING: Table = Table {
    pwrite: |fd, memory, bytes, at| {
        // SAFETY: the caller guarantees that `bytes` bytes at `memory` are readable, as the call requires.
        let written = unsafe { (COUNTING.pwrite)(fd, memory, bytes, at) };
        let take = |left: u64| left.checked_sub(1);
        if SHRINKS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
            (Table::SYSTEM.truncate)(fd, 0)?;
        }
        written
    },
    ..Table::SYSTEM
};

/// Checks that a write of many short pieces goes on through a window when another process truncates the file meanwhile,
/// and does not make a system call for each piece.
#[test]
fn a_file_that_shrinks_costs_no_call_for_each_piece() {
    const BLOCKS: usize = 20_000;
    let name = "a_file_that_shrinks_costs_no_call_for_each_piece";
    ranks_with(1, name, &[("TYPEPACK_IO", "mmap")], |world| {
        let path = path(world);
        let mode = Mode::READ_WRITE | Mode::CREATE | Mode::DELETE_ON_CLOSE;
        let file = File::open(world, &path, mode).expect("a file");
        let block = Datatype::named(Named::U64);
        let filetype = Datatype::resized(0, 16, &block).expect("a type");
        file.set_view(Some(0), &block, &filetype, "native").expect("a view");
        let data: Vec<u64> = (1..=BLOCKS as u64).collect();
        let mut back = vec![0u64; BLOCKS];
        // SAFETY: the functions of `SHRINKING` pass the caller's memory to the system calls.
        unsafe { files::replace(SHRINKING) };
        for shrinks in 0..5 {
            file.set_size(0).expect("empty");
            SHRINKS.store(shrinks, Ordering::Relaxed);
            let before = WRITES.load(Ordering::Relaxed);
            file.write_at(0, &data).expect("written");
            let writes = WRITES.load(Ordering::Relaxed) - before;
            assert_eq!(writes, shrinks + 1, "one write for each time that the file must grow");
            assert_eq!(file.size().expect("a size"), 16 * BLOCKS as u64 - 8);
            assert_eq!(file.read_at(0, &mut back).expect("read"), 8 * BLOCKS);
            assert!(back == data, "{shrinks}");
        }
        // If the file always shrinks, the write ends nevertheless.
        SHRINKS.store(u64::MAX, Ordering::Relaxed);
        file.write_at(0, &data).expect("written");
        // SAFETY: the functions of `SYSTEM` are the system calls.
        unsafe { files::replace(Table::SYSTEM) };
        file.close().expect("closed");
    });
}
