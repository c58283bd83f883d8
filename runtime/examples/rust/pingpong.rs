//! Measures half round-trip times between two ranks: `mpiexec -n 2 pingpong [heap] [WORDS]`. The
//! program prints a table with one row for each kind of message: contiguous messages of several
//! sizes, and then strided types. The messages lie in ordinary memory, or, with the argument `heap`,
//! in the shared heap. If WORDS are given, the program measures only the rows whose name contains
//! one of the words.
//!
//! On a virtual machine the latency between two CPUs changes during a run. So the program
//! measures all rows in each of 15 rounds, and prints for each row the median time, the best time
//! and the number of gigabytes per second at the median time. It also prints the results of a
//! probe: the times that one cache line took to travel from one rank to the other.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use typepack::{Communicator, Datatype, Named, Plan, Result, Universe};
use typepack_job::sys::memory::{Inherit, Mapping, create_sealed};

const ROUNDS: usize = 15;
const LINE_FILE: usize = 4096;

struct Row {
    name: String,
    plan: Plan,
    count: u64,
    words: usize,
    samples: Vec<f64>,
}

fn main() {
    if let Err(error) = run() {
        eprintln!("pingpong: {error}");
        std::process::exit(1);
    }
}

fn rows() -> Result<Vec<Row>> {
    let byte = Datatype::named(Named::U8);
    let double = Datatype::named(Named::F64);
    let mut rows = Vec::new();
    for bytes in [0u64, 8, 32, 64, 1024, 8 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20] {
        rows.push(Row {
            name: format!("contiguous {bytes} B"),
            plan: typepack::commit(&byte)?,
            count: bytes,
            words: (bytes as usize).div_ceil(8),
            samples: Vec::new(),
        });
    }
    for (block, stride, total) in [
        (1i64, 8i64, 1024i64),
        (1, 8, 64 << 10),
        (8, 16, 64 << 10),
        (64, 128, 64 << 10),
        (1, 8, 1 << 20),
    ] {
        let count = total / (8 * block);
        let ty = Datatype::vector(count, block, stride, &double)?;
        rows.push(Row {
            name: format!("{} B blocks, stride {} B, {total} B", 8 * block, 8 * stride),
            plan: typepack::commit(&ty)?,
            count: 1,
            words: (count * stride) as usize,
            samples: Vec::new(),
        });
    }
    Ok(rows)
}

fn run() -> Result<()> {
    let universe = typepack::init()?;
    let world = universe.world();
    if world.size() != 2 {
        eprintln!("pingpong: needs 2 ranks: mpiexec -n 2 pingpong");
        std::process::exit(2);
    }
    let heap = std::env::args().nth(1).is_some_and(|word| word == "heap");
    let line = shared_line(&world)?;
    let words: Vec<String> = std::env::args().skip(1 + usize::from(heap)).collect();
    let mut rows = rows()?;
    rows.retain(|row| words.is_empty() || words.iter().any(|word| row.name.contains(word)));
    let mut lines = Vec::new();
    for round in 0..ROUNDS {
        if round % 5 == 0 {
            lines.push(line_ns(&world, &line)?);
        }
        for row in &mut rows {
            let sample = half_round_trip(&universe, row, heap)?;
            row.samples.push(sample);
        }
    }
    if world.rank() == 0 {
        let probes: Vec<String> = lines.iter().map(|ns| format!("{ns:.0}")).collect();
        println!("cache line, one way: {} ns", probes.join(", "));
        println!("{:<40} {:>10} {:>10} {:>9}", "message", "median us", "best us", "GB/s");
        for row in &mut rows {
            row.samples.sort_by(f64::total_cmp);
            let (median, best) = (row.samples[ROUNDS / 2], row.samples[0]);
            let bytes = row.plan.packed_bytes(row.count)? as f64;
            println!("{:<40} {median:>10.3} {best:>10.3} {:>9.2}", row.name, bytes / median / 1e3);
        }
    }
    Ok(())
}

/// Measures one round of one row. Returns half the time of a round trip, in microseconds. The
/// measured time includes the time that rank 0 takes to refill the whole buffer before each round
/// trip.
fn half_round_trip(universe: &Universe, row: &Row, heap: bool) -> Result<f64> {
    let world = &universe.world();
    let mut own = vec![world.rank() as u64; if heap { 0 } else { row.words }];
    let mut shared = universe.shared_buffer::<u64>(if heap { row.words } else { 0 })?;
    let buffer: &mut [u64] = if heap { &mut shared } else { &mut own };
    let bytes = row.plan.packed_bytes(row.count)?;
    let turns = (1_000_000 / (bytes + 500)).clamp(8, 2000);
    let other = 1 - world.rank();
    world.barrier()?;
    let start = Instant::now();
    for turn in 0..turns {
        if world.rank() == 0 {
            buffer.fill(turn);
            world.send_elements(buffer, &row.plan, row.count, other, 0)?;
            world.recv_elements(buffer, &row.plan, row.count, other, 0)?;
        } else {
            world.recv_elements(buffer, &row.plan, row.count, other, 0)?;
            world.send_elements(buffer, &row.plan, row.count, other, 0)?;
        }
        if bytes > 0 {
            assert_eq!(buffer[0], turn, "the echo of another message");
        }
    }
    Ok(start.elapsed().as_secs_f64() * 1e6 / (2 * turns) as f64)
}

/// Maps a page of memory that both ranks share: rank 0 makes a memfd, and rank 1 opens it through
/// `/proc`. The probe uses one cache line of the page.
fn shared_line(world: &Communicator) -> Result<Mapping> {
    let failed = |what: &str| -> ! {
        eprintln!("pingpong: the probe's memory: {what}");
        std::process::exit(1);
    };
    let number = typepack::commit(&Datatype::named(Named::U32))?;
    let fd = if world.rank() == 0 {
        match create_sealed("pingpong-probe", LINE_FILE as u64) {
            Ok(fd) => {
                let names = [std::process::id(), fd.as_raw_fd() as u32];
                world.send_elements(&names, &number, 2, 1, 0)?;
                fd
            }
            Err(error) => failed(&error.to_string()),
        }
    } else {
        let mut names = [0u32; 2];
        world.recv_elements(&mut names, &number, 2, 0, 0)?;
        let path = format!("/proc/{}/fd/{}", names[0], names[1]);
        match std::fs::File::options().read(true).write(true).open(&path) {
            Ok(file) => file.into(),
            Err(error) => failed(&format!("{path}: {error}")),
        }
    };
    let mapping = Mapping::shared(fd.as_fd(), 0, LINE_FILE, Inherit::No);
    world.barrier()?;
    mapping.or_else(|error| failed(&error.to_string()))
}

/// Returns the average time that a cache line takes to travel from one rank to the other, in
/// nanoseconds.
fn line_ns(world: &Communicator, line: &Mapping) -> Result<f64> {
    const TURNS: u64 = 20_000;
    // SAFETY: the mapping starts at a page boundary, is one page long, and outlives `word`. Both
    // ranks access the word only by atomic operations.
    let word = unsafe { AtomicU64::from_ptr(line.base().as_ptr().cast()) };
    word.store(0, Ordering::Relaxed);
    world.barrier()?;
    let start = Instant::now();
    for turn in 0..TURNS {
        let mine = 2 * turn + world.rank() as u64;
        let mut idle = 0u64;
        while word.load(Ordering::Acquire) != mine {
            idle += 1;
            // If both ranks run on one CPU, the other rank can answer only after this rank has
            // yielded the CPU.
            if idle.is_multiple_of(1 << 16) {
                std::thread::yield_now();
            }
        }
        word.store(mine + 1, Ordering::Release);
    }
    let elapsed = start.elapsed().as_nanos() as f64;
    world.barrier()?;
    Ok(elapsed / (2 * TURNS) as f64)
}
