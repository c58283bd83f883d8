//! Tests of how jobs end: exit codes, signals, deaths of ranks, and the death of `mpiexec`. The tests also
//! check that no process is left behind.

use std::os::unix::process::CommandExt;
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{
    Job, Signs, expect_no_shared_name_but, kill, mpiexec, run, shared_names, shell, start,
};
use typepack_test_support::attempts::attempts;

/// Waits until the shells of all ranks have started `sleep`.
fn wait_for_sleepers(job: &Job, ranks: usize) {
    job.wait_for("the sleepers", || {
        let sleeping = job.processes().iter().filter(|p| p.command.starts_with("sleep")).count();
        (sleeping >= ranks).then_some(())
    });
}

#[test]
fn success() {
    let done = run(shell(3, "true"));
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, "", ""));
}

#[test]
fn the_failing_rank_gives_the_code_and_the_line() {
    let done = run(shell(3, "[ $TYPEPACK_RANK = 1 ] && exit 7; sleep 100"));
    assert_eq!(done.code, 7, "{done:?}");
    let line = done.err.strip_prefix("mpiexec: rank 1 (pid ").expect("the first line names rank 1");
    assert!(line.ends_with(") exited with code 7\n"), "{done:?}");
    assert_eq!(done.err.lines().count(), 1, "{done:?}");
}

#[test]
fn a_signal_gives_128_more() {
    let done = run(shell(2, "[ $TYPEPACK_RANK = 1 ] && kill -SEGV $$; sleep 100"));
    assert_eq!(done.code, 128 + 11, "{done:?}");
    assert!(done.err.ends_with(") killed by signal 11 (SIGSEGV)\n"), "{done:?}");
}

#[test]
fn ranks_that_all_fail_in_order_all_get_to_say_why() {
    // Rank 0 prints its message 20 ms after it has seen the end of rank 1. mpiexec must wait for the message, but
    // waits only 100 ms. So a rank 0 that gets no CPU for so long does not get to say why.
    let script = "[ $TYPEPACK_RANK = 1 ] && { echo $$ >$SIGNS/new; mv $SIGNS/new $SIGNS/pid; exit 2; }; \
                  until [ -e $SIGNS/pid ]; do sleep 0.01; done; read pid <$SIGNS/pid; \
                  until grep -q 'State:.Z' /proc/$pid/status; do sleep 0.005; done; \
                  sleep 0.02; echo bad argument >&2; exit 2";
    attempts(|| {
        let signs = Signs::new();
        let done = run(signs.shell(2, script));
        assert_eq!(done.code, 2, "{done:?}");
        let lines: Vec<_> = done.err.lines().collect();
        assert!(lines.last().is_some_and(|line| line.starts_with("mpiexec: rank 1 ")), "{done:?}");
        match lines[..lines.len() - 1] {
            ["bad argument"] => Ok(()),
            [] => Err(format!("{done:?}")),
            _ => panic!("{done:?}"),
        }
    });
}

#[test]
fn killing_one_rank_ends_all() {
    let before = shared_names();
    let job = start(shell(4, "exec sleep 300"));
    wait_for_sleepers(&job, 4);
    let victim = job.rank(2);
    kill(victim, libc::SIGKILL);
    let done = job.finish();
    assert_eq!((done.code, done.left.len()), (137, 0), "{done:?}");
    let line = format!("mpiexec: rank 2 (pid {victim}) killed by signal 9 (SIGKILL)\n");
    assert_eq!(done.err, line);
    expect_no_shared_name_but(&before);
}

#[test]
fn ranks_that_ignore_the_request_are_killed() {
    let script = "trap '' TERM; [ $TYPEPACK_RANK = 0 ] && { sleep 0.2; kill -9 $$; }; \
                  while :; do sleep 1; done";
    let job = start(shell(2, script));
    let done = job.finish();
    assert_eq!((done.code, done.left.len()), (137, 0), "{done:?}");
}

/// A rank that saves its work after SIGTERM has the time that `-kill-after` says. The rank takes longer than the default
/// of 200 ms, and far less than the time of the option.
#[test]
fn kill_after_gives_ranks_time_to_clean_up() {
    let script = "trap 'kill $!; sleep 0.6; echo saved; exit 0' TERM; \
                  [ $TYPEPACK_RANK = 0 ] && exec sleep 300; sleep 300 & wait";
    let job = start(mpiexec(&["-n", "2", "-kill-after", "60", "sh", "-c", script]));
    wait_for_sleepers(&job, 2);
    kill(job.rank(0), libc::SIGKILL);
    let done = job.finish();
    assert_eq!((done.code, done.out.as_str()), (137, "saved\n"), "{done:?}");
}

#[test]
fn the_children_of_a_shell_go_with_it() {
    let job = start(shell(2, "[ $TYPEPACK_RANK = 0 ] && { sleep 0.1; exit 3; }; sleep 300; true"));
    let done = job.finish();
    assert_eq!((done.code, done.left.len()), (3, 0), "{done:?}");
}

#[test]
fn killing_mpiexec_leaves_nothing() {
    let before = shared_names();
    // In the first script `sleep` is the rank itself, in the second it is a child of the rank's shell, and in
    // the third a child of a second shell inside the rank's shell. Parent-death signals would not end the
    // `sleep` of the third script. It ends because the kernel sends SIGKILL to the whole process group when
    // the control socket closes.
    for script in ["exec sleep 300", "sleep 300; true", "sh -c 'sleep 300; true'; true"] {
        let job = start(shell(3, script));
        wait_for_sleepers(&job, 2);
        job.signal(libc::SIGKILL);
        job.expect_gone();
        assert_eq!(job.finish().code, 137);
    }
    expect_no_shared_name_but(&before);
}

#[test]
fn killing_mpiexec_at_any_moment_leaves_nothing() {
    for step in 0..20 {
        let job = start(shell(3, "sleep 300; true"));
        thread::sleep(Duration::from_micros(400 * step));
        job.signal(libc::SIGKILL);
        job.expect_gone();
        job.finish();
    }
}

#[test]
fn interrupt_and_terminate_end_the_job() {
    for (signal, code) in [(libc::SIGINT, 130), (libc::SIGTERM, 143), (libc::SIGHUP, 129)] {
        let job = start(shell(2, "exec sleep 300"));
        wait_for_sleepers(&job, 2);
        job.signal(signal);
        let done = job.finish();
        assert_eq!((done.code, done.left.len(), done.err.as_str()), (code, 0, ""), "{done:?}");
    }
}

#[test]
fn ranks_may_clean_up_on_interrupt() {
    let script = "trap 'sleep 0.3; echo saved; exit 0' TERM; : >$SIGNS/ready.$TYPEPACK_RANK; \
                  while :; do sleep 0.01; done";
    attempts(|| {
        let signs = Signs::new();
        let job = start(signs.shell(2, script));
        signs.wait(&job, "ready", 2);
        job.signal(libc::SIGINT);
        let done = job.finish();
        assert_eq!(done.code, 130, "{done:?}");
        // A rank that gets no CPU for the 2 s of grace saves nothing.
        if done.out == "saved\nsaved\n" { Ok(()) } else { Err(format!("{done:?}")) }
    });
}

#[test]
fn a_second_interrupt_is_at_once() {
    let script = "trap ': >$SIGNS/asked.$TYPEPACK_RANK' TERM; : >$SIGNS/ready.$TYPEPACK_RANK; \
                  while :; do sleep 0.01; done";
    attempts(|| {
        let signs = Signs::new();
        let mut job = start(signs.shell(2, script));
        signs.wait(&job, "ready", 2);
        let started = Instant::now();
        job.signal(libc::SIGINT);
        // Both ranks have been asked, so mpiexec has taken the first signal, and the second one is another signal.
        signs.wait(&job, "asked", 2);
        job.signal(libc::SIGINT);
        job.wait();
        let time = started.elapsed();
        let done = job.finish();
        assert_eq!((done.code, done.left.len()), (130, 0), "{done:?}");
        // The time shows that the second signal has ended the job: otherwise the job would have taken the whole
        // grace time of 2 s. On a loaded machine it may take so long in any case.
        if time < Duration::from_secs(2) { Ok(()) } else { Err(format!("{time:?}")) }
    });
}

#[test]
fn a_stubborn_job_is_killed_after_the_grace() {
    let signs = Signs::new();
    let job = start(signs.shell(1, "trap '' TERM; : >$SIGNS/deaf; while :; do sleep 0.01; done"));
    signs.wait(&job, "deaf", 1);
    job.signal(libc::SIGTERM);
    let done = job.finish();
    assert_eq!((done.code, done.left.len()), (143, 0), "{done:?}");
}

#[test]
fn each_rank_is_a_group_of_its_own() {
    let done = run(shell(2, "cut -d' ' -f5 /proc/$$/stat; echo pid=$$"));
    let mut groups: Vec<_> = done.out.lines().filter(|l| !l.starts_with("pid")).collect();
    let mut pids: Vec<_> = done.out.lines().filter_map(|l| l.strip_prefix("pid=")).collect();
    groups.sort_unstable();
    pids.sort_unstable();
    assert_eq!(groups, pids, "{done:?}");
}

#[test]
fn signals_are_as_the_program_expects_them() {
    // In a rank, no signal may be blocked, and SIGPIPE (bit 12) may not be ignored, even though Rust's
    // startup code makes mpiexec ignore it.
    let mut command = shell(1, "grep -E 'Sig(Blk|Ign)' /proc/self/status");
    // SAFETY: the closure only calls `signal`, which is async-signal-safe. The closure gives mpiexec the
    // default action for SIGPIPE, as a shell does for the programs that it starts.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            Ok(())
        });
    }
    let done = run(command);
    for line in done.out.lines() {
        let (name, mask) = line.split_once(":\t").expect("the line has a mask");
        let mask = u64::from_str_radix(mask, 16).expect("the mask is hexadecimal");
        let wrong = if name == "SigBlk" { mask } else { mask & (1 << 12) };
        assert_eq!(wrong, 0, "{line}");
    }
    assert_eq!(done.out.lines().count(), 2);
}

#[test]
fn ends_are_seen_where_the_end_of_children_is_ignored() {
    for (script, code) in [("true", 0), ("exit 3", 3)] {
        let mut command = shell(2, script);
        // SAFETY: the closure only calls `signal`, which is async-signal-safe. The closure makes mpiexec
        // ignore SIGCHLD at its start, as some daemons do for the programs that they start.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGCHLD, libc::SIG_IGN);
                Ok(())
            });
        }
        let done = run(command);
        assert_eq!(done.code, code, "{done:?}");
    }
}

#[test]
fn user_signals_are_passed_on() {
    let script = "trap 'echo got; exit 0' USR1; : >$SIGNS/ready.$TYPEPACK_RANK; \
                  while :; do sleep 0.01; done";
    let signs = Signs::new();
    let job = start(signs.shell(2, script));
    signs.wait(&job, "ready", 2);
    job.signal(libc::SIGUSR1);
    let done = job.finish();
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.out.matches("got").count(), 2);
}

/// Checks that SIGQUIT and SIGUSR1 end no rank that handles neither, and that `mpiexec` tells what the ranks do.
#[test]
fn a_question_ends_nobody() {
    let signs = Signs::new();
    let script = "trap 'exit 0' USR2; : >$SIGNS/ready.$TYPEPACK_RANK; while :; do sleep 0.01; done";
    let job = start(signs.shell(2, script));
    signs.wait(&job, "ready", 2);
    // mpiexec handles the signals in this order, also if they arrive together: the order of their numbers.
    for signal in [libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2] {
        job.signal(signal);
    }
    let done = job.finish();
    assert_eq!((done.code, done.out.as_str()), (0, ""), "{done:?}");
    for rank in 0..2 {
        let line = format!("mpiexec: rank {rank}: has not called MPI_Init\n");
        assert_eq!(done.err.matches(&line).count(), 2, "{done:?}");
    }
}

#[test]
fn a_stopped_rank_can_be_ended() {
    let job = start(shell(2, "exec sleep 300"));
    wait_for_sleepers(&job, 2);
    kill(job.rank(0), libc::SIGSTOP);
    job.signal(libc::SIGINT);
    job.expect_gone();
    assert_eq!(job.finish().code, 130);
}
