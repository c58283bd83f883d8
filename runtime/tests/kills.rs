//! Runs jobs, and kills one rank of each job at a random moment while the ranks exchange messages, make short
//! collective calls, exchange data with their neighbours in collective calls, or access windows. The tests check that
//! every job ends with the right exit code, prints one line about the killed rank, and leaves no process. They
//! measure the times from the kill to the end of `mpiexec` and print them, but assert no limit. The requirement for a
//! release is at most half a second.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::harness::{
    Signs, expect_no_shared_name_but, kill, shared_names, start, thread_sleeps_in_futex,
};
use crate::role::{job, patient_job};
use typepack_test_support::random::Random;

#[test]
fn fifty_random_kills() {
    random_kills(50, "exchange");
}

/// Kills ranks that wait for each other in the cells of short collective calls.
#[test]
fn random_kills_in_short_calls() {
    random_kills(20, "short calls");
}

/// Kills ranks that hold locks of windows, own windows, or wait for others in calls of windows.
#[test]
fn random_kills_in_windows() {
    random_kills(20, "windows");
}

/// Kills the rank that holds a lock (rank 1), the rank that owns the window (rank 0), or a rank that waits for the
/// lock, while the other ranks sleep in their wait for the lock. The death must end this wait with an error, which the
/// ranks print. They ignore SIGTERM, so only the error can wake them before SIGKILL comes.
#[test]
fn a_death_ends_the_wait_for_a_lock() {
    for victim in [1, 0, 2] {
        let signs = Signs::new();
        let mut job = start(signs.given(patient_job(4, "window lock")));
        let waiting = signs.wait(&job, "waits-", 3);
        let pids = [0, 2, 3].map(|rank| (rank, job.rank(rank)));
        for (rank, pid) in pids {
            // Between the sign and its lock, a thread sleeps on no other futex.
            let thread = waiting
                .iter()
                .find_map(|sign| sign.strip_prefix(&format!("waits-{rank}-"))?.parse::<i32>().ok());
            let thread = thread.expect("each rank has made its sign");
            job.wait_for("the sleep of a rank", || {
                thread_sleeps_in_futex(pid, thread).then_some(())
            });
        }
        kill(job.rank(victim), libc::SIGKILL);
        let killed = Instant::now();
        job.wait();
        println!("from the kill of rank {victim} to the end of mpiexec: {:?}", killed.elapsed());
        let done = job.finish();
        assert_eq!((done.code, done.left.len()), (137, 0), "rank {victim}: {done:?}");
        let told = pids.iter().filter(|(rank, _)| *rank != victim);
        let error = format!("rank {victim} killed by signal 9 (SIGKILL)");
        for (rank, _) in told {
            let line = format!("rank {rank} told: ");
            let is_told = done.out.lines().any(|got| got.contains(&line) && got.contains(&error));
            assert!(is_told, "rank {rank} got no error: {done:?}");
        }
    }
}

#[test]
fn random_kills_among_neighbors() {
    random_kills(20, "neighbors");
}

/// Runs `rounds` jobs whose ranks play `role`, and kills one rank of each.
fn random_kills(rounds: usize, role: &str) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let seed = now.as_nanos() as u64 | 1;
    println!("seed {seed}");
    let mut random = Random(seed);
    let names = shared_names();
    let mut times = Vec::new();
    for round in 0..rounds {
        let ranks = 2 + random.below(3) as usize;
        let victim = random.below(ranks as u64) as usize;
        let mut job = start(job(ranks, role, ""));
        let pid = job.rank(victim);
        thread::sleep(Duration::from_micros(random.below(300_000)));
        kill(pid, libc::SIGKILL);
        let killed = Instant::now();
        job.wait();
        times.push(killed.elapsed());
        let done = job.finish();
        assert_eq!((done.code, done.left.len()), (137, 0), "round {round}: {done:?}");
        let line = format!("mpiexec: rank {victim} (pid {pid}) killed by signal 9 (SIGKILL)");
        let lines = done.err.lines().filter(|got| *got == line).count();
        assert_eq!(lines, 1, "round {round}: {line}: {done:?}");
    }
    expect_no_shared_name_but(&names);
    times.sort_unstable();
    let at = |part: usize| times[(times.len() - 1) * part / 100];
    println!(
        "from kill to the end of mpiexec: median {:?}, 90 % {:?}, longest {:?}",
        at(50),
        at(90),
        at(100)
    );
}
