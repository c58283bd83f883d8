//! Tests of regions that ranks share: every rank sees every part, all ranks get an error if memory runs out
//! at one rank, and no rank hangs if another rank dies.

use crate::harness::{PATIENT, Signs};
use crate::job::{body, is_rank, mpiexec, ranks, run, text};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;
use typepack::io::{File, Mode};
use typepack::rma::Window;
use typepack::{Communicator, ErrorKind, Op, SharedRegion, WindowErrorKind};
use typepack_test_support::random::Random;

/// Returns the value with which `fill` marks word `word` in the part of rank `rank`.
fn mark(rank: usize, word: usize, seed: u64) -> u64 {
    seed.wrapping_mul(0x9e37_79b9).wrapping_add(rank as u64 * 1_000_003 + word as u64)
}

/// Fills the part of `rank` with marks, and checks that it was zero.
fn fill(region: &SharedRegion, rank: usize, seed: u64) {
    for word in 0..region.len(rank) / 8 {
        let place = region.atomic(rank, word * 8).expect("a word of the part");
        assert_eq!(place.swap(mark(rank, word, seed), Ordering::Relaxed), 0, "not zeroed");
    }
}

/// Checks that the part of a rank holds the marks of `fill`.
fn check(region: &SharedRegion, rank: usize, seed: u64) {
    for word in 0..region.len(rank) / 8 {
        let place = region.atomic(rank, word * 8).expect("a word of the part");
        assert_eq!(place.load(Ordering::Relaxed), mark(rank, word, seed), "{rank} {word}");
    }
}

fn whole(comm: &Communicator, bytes: usize, seed: u64) -> SharedRegion {
    let region = SharedRegion::allocate(comm, bytes).expect("a region");
    assert_eq!((region.size(), region.len(comm.rank())), (comm.size(), bytes));
    fill(&region, comm.rank(), seed);
    comm.barrier().expect("a barrier");
    for rank in 0..comm.size() {
        check(&region, rank, seed);
    }
    region
}

#[test]
fn every_rank_sees_every_part() {
    ranks(4, "every_rank_sees_every_part", |world| {
        let sizes = [0, 8, 100 * world.rank(), 70_000 + 8 * world.rank(), 3 << 20];
        for (round, bytes) in sizes.into_iter().enumerate() {
            let region = whole(world, bytes, round as u64);
            assert_eq!(region.is_empty(world.rank()), bytes == 0);
            assert!(region.atomic(4, 0).is_none() && region.as_ptr(4).is_none());
            for rank in 0..4 {
                assert_eq!(region.as_ptr(rank).expect("a part") as usize % 64, 0);
                assert!(region.atomic(rank, region.len(rank)).is_none());
            }
            region.free().expect("freed");
        }
    });
}

#[test]
fn all_ranks_count_in_one_word() {
    ranks(4, "all_ranks_count_in_one_word", |world| {
        let bytes = if world.rank() == 2 { 8 } else { 0 };
        let region = SharedRegion::allocate(world, bytes).expect("a region");
        for _ in 0..1000 {
            region.atomic(2, 0).expect("the word").fetch_add(1, Ordering::Relaxed);
        }
        world.barrier().expect("a barrier");
        assert_eq!(region.atomic(2, 0).expect("the word").load(Ordering::Relaxed), 4000);
    });
}

/// Checks that the other ranks keep a part even if its owner leaves the region first and then allocates
/// other memory.
#[test]
fn a_part_lasts_until_the_last_rank_has_left() {
    ranks(3, "a_part_lasts_until_the_last_rank_has_left", |world| {
        let region = whole(world, 4096, 5);
        if world.rank() == 0 {
            drop(region);
            let mut taken: Vec<_> = (0..50)
                .map(|_| typepack::SharedBuffer::<u64>::zeroed(512).expect("room"))
                .collect();
            taken.iter_mut().for_each(|buffer| buffer.fill(u64::MAX));
            world.barrier().expect("a barrier");
            world.barrier().expect("a barrier");
            return;
        }
        world.barrier().expect("a barrier");
        for rank in 0..3 {
            check(&region, rank, 5);
        }
        drop(region);
        world.barrier().expect("a barrier");
    });
}

/// Checks that all memory is returned: makes 200 regions of 16 MiB per rank, one after the other, and ends
/// them alternately by a call of `free` and by a drop.
#[test]
fn memory_goes_back() {
    ranks(2, "memory_goes_back", |world| {
        let before = typepack::memory::available();
        for round in 0..200 {
            let region = SharedRegion::allocate(world, 16 << 20).expect("a region");
            region.atomic(1 - world.rank(), 0).expect("a word").store(1, Ordering::Relaxed);
            if round % 2 == 0 { region.free().expect("freed") } else { drop(region) }
        }
        // All regions together had 6400 MiB. The limit here is far above 0, because other programs on the
        // machine use memory too.
        let kept = before.saturating_sub(typepack::memory::available());
        println!("{kept} bytes less are available");
        assert!(kept < 3 << 30, "{kept}");
    });
}

#[test]
fn too_little_memory_at_one_rank_is_everybodys_error() {
    ranks(3, "too_little_memory_at_one_rank_is_everybodys_error", |world| {
        for poor in 0..3 {
            for bytes in [usize::MAX, 1 << 60, 1 << 46] {
                let bytes = if world.rank() == poor { bytes } else { 64 };
                let error = SharedRegion::allocate(world, bytes).expect_err("too much");
                assert_eq!(error.kind(), ErrorKind::NoMemory, "{error}");
                let told = error.to_string();
                assert!(world.rank() == poor || told.contains(&format!("rank {poor}")), "{told}");
            }
            // The failure above must not prevent the next region.
            whole(world, 128, poor as u64).free().expect("freed");
        }
    });
}

/// Checks that all ranks get an error if the address space of one rank has no room for the heaps of the
/// other ranks.
#[test]
fn too_little_address_space_at_one_rank_is_everybodys_error() {
    ranks(3, "too_little_address_space_at_one_rank_is_everybodys_error", |world| {
        // The ranks map what they need for messages.
        world.barrier().expect("a barrier");
        world.barrier().expect("a barrier");
        if world.rank() == 1 {
            // This rank uses its own heap first. The limit below then leaves no address space for an extent of
            // another heap.
            drop(typepack::SharedBuffer::<u8>::zeroed(1).expect("room"));
            let used = std::fs::read_to_string("/proc/self/statm").expect("a line");
            let pages: u64 = used.split(' ').next().expect("pages").parse().expect("a number");
            let limit = pages * 4096 + (1 << 20);
            let limit = libc::rlimit { rlim_cur: limit, rlim_max: libc::RLIM_INFINITY };
            // SAFETY: `limit` is initialised, and the call only changes a limit of this process.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
        }
        world.barrier().expect("a barrier");
        let error = SharedRegion::allocate(world, 64).expect_err("no room");
        assert_eq!(error.kind(), ErrorKind::NoMemory, "{error}");
        let names = if world.rank() == 1 { "(limit: RLIMIT_AS (ulimit -v) of" } else { "rank 1" };
        assert!(error.to_string().contains(names), "{error}");
        // A shared window says that the memory cannot be shared, and another window that there is too little.
        let error = Window::allocate_shared(world, 64, 1, &[]).expect_err("no room");
        assert_eq!(error.kind(), ErrorKind::Window(WindowErrorKind::Shared), "{error}");
        let error = Window::allocate(world, 64, 1, &[]).expect_err("no room");
        assert_eq!(error.kind(), ErrorKind::NoMemory, "{error}");
        // The other ranks must still be able to make a region.
        let half = world.split((world.rank() != 1).then_some(0), 0).expect("a communicator");
        if let Some(half) = half {
            whole(&half, 64, 3).free().expect("freed");
        }
    });
}

/// Checks regions of random communicators and sizes that end in random order.
#[test]
fn regions_of_random_communicators() {
    ranks(5, "regions_of_random_communicators", |world| {
        let mut same = Random(7);
        let mut kept: Vec<(SharedRegion, usize, u64)> = Vec::new();
        for round in 0..40_u64 {
            let colours: Vec<u64> = (0..5).map(|_| same.below(3)).collect();
            let keys: Vec<u64> = (0..5).map(|_| same.below(5)).collect();
            let sizes: Vec<usize> = (0..5).map(|_| 8 * same.below(2000) as usize).collect();
            let (rank, ends) = (world.rank(), same.below(3));
            let colour = (colours[rank] != 2).then_some(colours[rank] as u32);
            let part = world.split(colour, keys[rank] as i32).expect("a communicator");
            if let Some(comm) = part {
                let region = whole(&comm, sizes[rank], round);
                match ends {
                    0 => region.free().expect("freed"),
                    // This region outlives its communicator.
                    1 => kept.push((region, comm.size(), round)),
                    _ => drop(region),
                }
            }
            // Each rank checks its kept regions in every round, and drops each of them in a random round.
            let mut own = Random(round * 5 + rank as u64);
            kept.retain(|(region, size, seed)| {
                (0..*size).for_each(|rank| check(region, rank, *seed));
                own.below(4) != 0
            });
        }
    });
}

/// Checks that the other ranks get an error if a rank dies while they make a region together, and that they
/// can still use the regions that they already share.
#[test]
fn the_death_of_a_member_hangs_nobody() {
    let name = "the_death_of_a_member_hangs_nobody";
    if is_rank() {
        let universe = typepack::init().expect("joining the job");
        let world = universe.world();
        if world.rank() != 1 {
            // This rank ignores SIGTERM, so that it reports the death before SIGKILL ends it.
            // SAFETY: SIG_IGN only makes the process ignore the signal and installs no handler.
            unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
        }
        let old = whole(&world, 4096, 9);
        let signs = Signs::of_this_rank();
        signs.make(&format!("whole-{}", world.rank()));
        if world.rank() == 1 {
            signs.wait_for("whole", 3);
            // Give the other ranks time to wait for this rank. The assertions do not depend on this time.
            std::thread::sleep(Duration::from_millis(50));
            // SAFETY: `kill` accesses no memory of this process.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
        let error = SharedRegion::allocate(&world, 64).expect_err("rank 1 takes no part");
        assert_eq!(error.kind(), ErrorKind::ProcAborted, "{error}");
        (0..3).for_each(|rank| check(&old, rank, 9));
        let error = old.free().expect_err("rank 1 takes no part");
        assert_eq!(error.kind(), ErrorKind::ProcAborted, "{error}");
        println!("rank {}: told and free", world.rank());
        std::process::exit(6);
    }
    let mut command = Command::new(mpiexec());
    command.args(PATIENT).args(["-n", "3"]).args(body(name));
    let signs = Signs::new();
    let output = run(signs.given(command), name, &[]);
    let all = text(&output);
    assert_eq!(output.status.code(), Some(137), "{all}");
    assert!(!all.contains("panicked"), "{all}");
    for rank in [0, 2] {
        assert!(all.contains(&format!("rank {rank}: told and free")), "{all}");
    }
}

fn alone(world: &Communicator) {
    let region = whole(world, 1000, 1);
    assert_eq!(region.len(0), 1000);
    assert!(region.atomic(0, 992).is_some() && region.atomic(0, 1000).is_none());
    region.free().expect("freed");
    let error = SharedRegion::allocate(world, usize::MAX / 2).expect_err("too much");
    assert_eq!(error.kind(), ErrorKind::NoMemory, "{error}");
    assert_eq!(world.all_reduce_in_place(&mut [1.0_f64], Op::Sum), Ok(()));
}

#[test]
fn a_job_of_one_rank_has_regions() {
    ranks(1, "a_job_of_one_rank_has_regions", alone);
}

#[test]
fn a_rank_without_a_launcher_has_regions() {
    let name = "a_rank_without_a_launcher_has_regions";
    if is_rank() {
        let universe = typepack::init().expect("a job of one");
        return alone(&universe.world());
    }
    let words = body(name);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    let output = run(command, name, &[]);
    assert!(output.status.success() && text(&output).contains("1 passed"), "{}", text(&output));
}

/// Returns the number of bytes of memory that this process has, of its own and of shared memory.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("a line");
    text.split(' ').nth(1).expect("a field").parse::<u64>().expect("a number") * 4096
}

/// Returns the number of bytes of memory that the shared memory of this job takes (`shared_memory.rs`).
fn shared() -> u64 {
    use std::os::unix::fs::MetadataExt;
    let of_job = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("an open file").path();
        let ours = std::fs::read_link(&path).ok()?.to_str()?.contains("memfd:typepack-job");
        ours.then(|| std::fs::metadata(&path).expect("the file's size").blocks() * 512)
    };
    let entries = std::fs::read_dir("/proc/self/fd").expect("the open files");
    entries.filter_map(of_job).max().unwrap_or(0)
}

/// Checks that the memory of windows takes pages where it is touched, reads as zeros also when it is used again, and
/// takes all its pages at once where the program asks for it.
fn memory_follows_use(world: &Communicator) {
    const MIB: u64 = 1 << 20;
    const LEN: usize = 96 << 20;
    let populate = [("typepack_populate".to_owned(), "true".to_owned())];
    let apart = ("alloc_shared_noncontig".to_owned(), "true".to_owned());
    let (size, rank) = (world.size(), world.rank());
    // The own memory of a job of one rank is not shared memory.
    let taken = || if size == 1 { resident() } else { shared() };
    let make = |kind: usize, hints: &[(String, String)]| match kind {
        0 => Window::allocate(world, LEN as i64, 1, hints),
        1 => Window::allocate_shared(world, LEN as i64, 1, hints),
        _ => Window::allocate_shared(
            world,
            LEN as i64,
            1,
            &[hints, std::slice::from_ref(&apart)].concat(),
        ),
    };
    for round in 0..6 {
        world.barrier().expect("a barrier");
        let before = taken();
        world.barrier().expect("a barrier");
        let window = make(round % 3, &[]).expect("a window");
        world.barrier().expect("a barrier");
        let grown = taken().saturating_sub(before);
        assert!(
            grown < 16 * MIB,
            "round {round}: {grown} bytes for a window that nobody has touched"
        );
        world.barrier().expect("a barrier");
        let (base, bytes, _) = window.own();
        assert_eq!(bytes, LEN as u64);
        for at in (0..LEN).step_by(1 << 20) {
            // SAFETY: the byte lies in this rank's memory of the window, which no other rank accesses.
            unsafe {
                assert_eq!(
                    base.add(at).read_volatile(),
                    0,
                    "round {round}, byte {at} of rank {rank}"
                );
                base.add(at).write_volatile(rank as u8 + 1);
            }
        }
        assert!(
            window.hints().expect("hints").all().contains(&("typepack_populate", "false".into()))
        );
        window.free().expect("freed");
        world.barrier().expect("a barrier");
        let before = taken();
        world.barrier().expect("a barrier");
        let window = make(round % 3, &populate).expect("a window");
        world.barrier().expect("a barrier");
        let grown = taken().saturating_sub(before);
        // Memory that the heap has kept counts already.
        let least = (LEN as u64 - 33 * MIB) * size as u64;
        assert!(grown >= least, "round {round}: {grown} bytes for a window with all its pages");
        assert!(
            window.hints().expect("hints").all().contains(&("typepack_populate", "true".into()))
        );
        window.free().expect("freed");
    }
}

#[test]
fn memory_of_windows_is_taken_when_it_is_touched() {
    ranks(2, "memory_of_windows_is_taken_when_it_is_touched", memory_follows_use);
}

#[test]
fn memory_of_windows_of_one_rank_is_taken_when_it_is_touched() {
    ranks(1, "memory_of_windows_of_one_rank_is_taken_when_it_is_touched", memory_follows_use);
}

#[test]
fn memory_of_windows_of_four_ranks_is_taken_when_it_is_touched() {
    ranks(4, "memory_of_windows_of_four_ranks_is_taken_when_it_is_touched", memory_follows_use);
}

/// Checks that windows which nobody touches cannot promise more memory together than there is, and that a freed window
/// gives its promise back.
#[test]
fn windows_promise_no_more_than_there_is() {
    for size in [1, 2] {
        ranks_of(size, "windows_promise_no_more_than_there_is", |world| {
            for _ in 0..2 {
                // Other programs take and free memory meanwhile. So what must succeed is small, and what must fail is
                // large.
                let part = typepack::memory::available() as i64 / 8 / world.size() as i64;
                world.barrier().expect("a barrier");
                let make = |parts: i64| Window::allocate(world, parts * part, 1, &[]);
                let (first, second) = (make(2).expect("a promise"), make(1).expect("a promise"));
                let error = make(7).expect_err("too much");
                assert_eq!(error.kind(), ErrorKind::NoMemory);
                let named =
                    error.to_string().contains("(limit: ") || error.to_string().contains("rank ");
                assert!(named, "{error}");
                first.free().expect("freed");
                second.free().expect("freed");
            }
        });
        if is_rank() {
            return;
        }
    }
}

/// Runs `as_rank` like [`ranks`], in a test that runs jobs of several sizes.
fn ranks_of(size: usize, name: &str, as_rank: impl FnOnce(&Communicator)) {
    if is_rank() {
        let universe = typepack::init().expect("joining the job");
        return as_rank(&universe.world());
    }
    ranks(size, name, as_rank);
}

/// Checks windows, regions and files in jobs with 8 GB of address space for each process (`ulimit -v`).
#[test]
fn eight_gigabytes_of_addresses_are_enough() {
    const NAME: &str = "eight_gigabytes_of_addresses_are_enough";
    if is_rank() {
        let universe = typepack::init().expect("joining the job");
        let world = universe.world();
        let rank = world.rank();
        whole(&world, 100_000, 5).free().expect("freed");
        for bytes in [64, 1 << 20, 40 << 20] {
            let window = Window::allocate(&world, bytes, 1, &[]).expect("a window");
            let shared = Window::allocate_shared(&world, bytes, 1, &[]).expect("a shared window");
            let next = (rank + 1) % world.size();
            let (base, length, _) = shared.shared_query(Some(next)).expect("the next one's memory");
            assert_eq!(length, bytes as u64);
            // SAFETY: the byte lies in the window, and no other rank accesses it before the barrier.
            unsafe { base.add(bytes as usize - 1).write_volatile(rank as u8 + 1) };
            world.barrier().expect("a barrier");
            let (own, _, _) = shared.own();
            let last = (rank + world.size() - 1) % world.size();
            // SAFETY: the byte lies in the window, and only the last rank has written it, before the barrier.
            assert_eq!(unsafe { own.add(bytes as usize - 1).read_volatile() }, last as u8 + 1);
            shared.free().expect("freed");
            window.free().expect("freed");
        }
        // Windows of growing sizes, for which parts of the heaps that are no longer in use make room.
        if std::env::var_os("LARGE").is_some() && world.size() == 2 {
            for gib in [1.2, 1.6, 2.0, 2.4] {
                let bytes = (gib * f64::from(1 << 30)) as i64;
                Window::allocate(&world, bytes, 1, &[]).expect("a window").free().expect("freed");
            }
            let error = Window::allocate(&world, 5 << 30, 1, &[]).expect_err("too much");
            assert!(
                error.to_string().contains("RLIMIT_AS") || error.to_string().contains("memory"),
                "{error}"
            );
        }
        let path = std::env::temp_dir().join(format!("{NAME}-{}", std::env::var("JOB").unwrap()));
        let mode = Mode::CREATE_READ_WRITE | Mode::DELETE_ON_CLOSE;
        File::open(&world, &path, mode).expect("a file").close().expect("closed");
        return;
    }
    for size in [2, 4, 16] {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v 7812500; exec \"$@\"", "sh"]).arg(mpiexec());
        command.args(["-n", &size.to_string()]).args(body(NAME));
        let job = format!("{}-{size}", std::process::id());
        let mut env = vec![("JOB", job.as_str())];
        if typepack::memory::available() > 12 << 30 {
            env.push(("LARGE", "1"));
        }
        let output = run(command, NAME, &env);
        assert!(output.status.success(), "{size} ranks: {}\n{}", output.status, text(&output));
        assert_eq!(text(&output).matches("1 passed").count(), size, "{}", text(&output));
    }
}
