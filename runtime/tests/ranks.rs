//! Tests of jobs of real ranks: how ranks join and leave, shell scripts that wrap a rank, and the
//! ways in which a rank can end.

use crate::harness::{Finished, Signs, run, start, start_as_is};
use crate::role::{command, job, patient_job, rank};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

/// Returns the end of the line that `mpiexec` prints about rank 1: what follows the process id.
fn verdict(done: &Finished) -> String {
    let mut lines = done.err.lines().filter_map(|line| line.strip_prefix("mpiexec: rank 1 (pid "));
    let line = lines.next().unwrap_or_else(|| panic!("no line about rank 1: {done:?}"));
    assert_eq!(lines.next(), None, "{done:?}");
    line.split_once(") ").expect("a process id").1.to_owned()
}

#[test]
fn a_good_end() {
    for wrapper in ["", "\"$@\"; true", "exec \"$@\""] {
        let done = run(job(4, "good", wrapper));
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    }
}

#[test]
fn leaving_without_finalizing_is_a_failure() {
    let done = run(job(2, "exit 0", ""));
    assert_eq!(done.code, 1, "{done:?}");
    assert_eq!(verdict(&done), "ended without finalizing");
}

#[test]
fn never_joining_while_others_do_is_a_failure() {
    let done = run(job(2, "never join", ""));
    assert_eq!(done.code, 1, "{done:?}");
    assert_eq!(verdict(&done), "exited with code 0 and never joined the job");
}

#[test]
fn a_code_after_finalizing_counts() {
    let done = run(job(2, "drop and exit 5", ""));
    assert_eq!((done.code, done.left.len()), (5, 0), "{done:?}");
    assert_eq!(verdict(&done), "exited with code 5");
}

#[test]
fn a_programs_own_answer_is_not_commented() {
    // The ranks ignore SIGTERM, so each of them exits by itself, also one that does so more than 100 ms after the first.
    let done = run(patient_job(3, "all exit 5"));
    assert_eq!((done.code, done.left.len()), (5, 0), "{done:?}");
    let own = done.err.lines().filter(|line| line.ends_with(": bad argument")).count();
    assert_eq!(own, 3, "{done:?}");
    assert!(!done.err.lines().any(|line| line.contains("mpiexec")), "{done:?}");
}

#[test]
fn a_panic_ends_the_job() {
    let done = run(job(2, "panic", ""));
    assert_eq!(done.code, 101, "{done:?}");
    assert_eq!(verdict(&done), "exited with code 101");
}

#[test]
fn a_killed_rank_ends_the_job_also_behind_a_wrapper() {
    for wrapper in ["", "\"$@\"", "\"$@\"; exit $?", "\"$@\"; true", "\"$@\"; sleep 300"] {
        let done = run(job(3, "kill", wrapper));
        assert_eq!((done.code, done.left.len()), (137, 0), "{wrapper}: {done:?}");
        assert_eq!(verdict(&done), "killed by signal 9 (SIGKILL)", "{wrapper}");
    }
}

#[test]
fn a_waiting_rank_is_told_who_died() {
    // Rank 0 ignores SIGTERM and sleeps in a receive. The launcher announces the death of rank 1 and wakes the
    // ranks. It must wake rank 0 before it sends SIGKILL.
    let signs = Signs::new();
    let done = run(signs.given(patient_job(2, "deaf")));
    assert_eq!(done.code, 137, "{done:?}");
    assert!(done.out.contains("told: "), "{done:?}");
    assert!(done.out.contains("rank 1 killed by signal 9 (SIGKILL)"), "{done:?}");
}

/// Checks that the other ranks of a job that a rank aborts do not tell of errors of their own: the end of the job is no
/// error of theirs.
#[test]
fn the_peers_of_an_abort_say_nothing() {
    for option in ["-q", "-disable-auto-cleanup"] {
        let rank = rank();
        let rank: Vec<&str> = rank.iter().map(String::as_str).collect();
        let done = run(command(&[&[option, "-n", "6"][..], &rank].concat(), "abort"));
        assert_eq!((done.code, done.left.len()), (9, 0), "{done:?}");
        assert_eq!(verdict(&done), "exited with code 9");
        assert!(!done.out.contains("told"), "{done:?}");
    }
}

/// Checks that the other ranks go on after the death of a rank if the user asks for that.
#[test]
fn the_others_go_on_if_asked() {
    let (rank, signs) = (rank(), Signs::new());
    let rank: Vec<&str> = rank.iter().map(String::as_str).collect();
    let mut command = command(&[&["-disable-auto-cleanup", "-n3"][..], &rank].concat(), "go on");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut job = start_as_is(signs.given(command));
    let mut line = String::new();
    let stderr = job.child.stderr.take().expect("a pipe");
    BufReader::new(stderr).read_line(&mut line).expect("a line about the death");
    assert!(line.ends_with("killed by signal 9 (SIGKILL); the other ranks go on\n"), "{line}");
    signs.make("go");
    assert_eq!(job.wait(), 137);
    let mut out = String::new();
    job.child.stdout.take().expect("a pipe").read_to_string(&mut out).expect("text");
    assert!(out.contains("rank 0 goes on") && out.contains("rank 2 goes on"), "{out}");
}

#[test]
fn only_one_program_of_a_rank_joins() {
    let done = run(job(1, "good", "\"$@\" && \"$@\""));
    assert_eq!(done.code, 4, "{done:?}");
    assert!(done.out.contains("refused: ") && done.out.contains("joins once"), "{done:?}");
}

#[test]
fn a_child_of_a_rank_is_refused() {
    let done = run(job(2, "fork", ""));
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.out.matches("child: 4").count(), 2, "{done:?}");
    assert!(done.out.contains("a child of a rank cannot join"), "{done:?}");
}

#[test]
fn killing_mpiexec_kills_real_ranks_wherever_they_hide() {
    for wrapper in ["", "\"$@\"; true", "sh -c '\"$@\"; true' x \"$@\"; true", "setsid -w \"$@\""] {
        let job = start(job(2, "wait", wrapper));
        job.wait_for("registered ranks", || {
            let ranks = job.processes().into_iter().filter(|p| p.command.contains("as_rank"));
            let asleep = ranks.filter(|p| crate::harness::sleeps_in_futex(p.pid)).count();
            (asleep >= 2).then_some(())
        });
        job.signal(libc::SIGKILL);
        job.expect_gone();
        assert_eq!(job.finish().code, 137);
    }
}

/// Checks that ranks end with `mpiexec` while they compute and call no function of the library.
#[test]
fn killing_mpiexec_kills_ranks_that_compute() {
    for wrapper in ["", "\"$@\"; true", "setsid -w \"$@\""] {
        let job = start(job(2, "spin", wrapper));
        job.wait_for("ranks that have joined", || {
            let ranks = job.processes().into_iter().filter(|p| p.command.contains("as_rank"));
            let busy = ranks.filter(|p| crate::harness::has_used_cpu(p.pid)).count();
            (busy >= 2).then_some(())
        });
        job.signal(libc::SIGKILL);
        job.expect_gone();
        assert_eq!(job.finish().code, 137);
    }
}

/// Checks that a rank survives the end of the thread of a wrapper program that has started the rank.
#[test]
fn a_rank_outlives_the_thread_that_started_it() {
    let signs = Signs::new();
    let done = run(signs.given(job(2, "threads", "")));
    assert_eq!((done.code, done.out.matches("the rank goes on").count()), (0, 2), "{done:?}");
}

/// Checks that a rank behind such a wrapper ends with `mpiexec`.
#[test]
fn killing_mpiexec_kills_ranks_of_ended_threads() {
    let signs = Signs::new();
    let job = start(signs.given(job(2, "threads and wait", "")));
    job.wait_for("two wrappers and two ranks", || {
        let all = job.processes();
        (all.iter().filter(|p| p.command.contains("as_rank")).count() == 5).then_some(())
    });
    // The ranks have joined, and the threads of the wrappers have ended.
    signs.wait(&job, "ended", 2);
    job.signal(libc::SIGKILL);
    job.expect_gone();
    assert_eq!(job.finish().code, 137);
}

#[test]
fn oversubscribed_ranks_get_through() {
    let done = run(job(16, "good", ""));
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
}

#[test]
fn ranks_of_several_programs_meet() {
    let rank = rank();
    let rank: Vec<&str> = rank.iter().map(String::as_str).collect();
    let words = [&["-n", "2"][..], &rank, &[":", "-n", "1"], &rank].concat();
    let done = run(command(&words, "good"));
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
}
