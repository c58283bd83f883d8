//! Tests of how jobs end: exit codes, signals, deaths of ranks, and the death of `mpiexec`. The tests also
//! check that no process is left behind.

use std::os::unix::process::CommandExt;
use std::thread;
use std::time::Duration;

use crate::harness::{
    Job, Signs, expect_no_shared_name_but, kill, mpiexec, patient_shell, run, shared_names, shell,
    start,
};

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

/// After a rank has exited by itself, mpiexec lets the others go on for 100 ms before it asks them to end, so that they can
/// say why, too. Rank 0 says how long mpiexec has waited before it asked. A loaded machine only makes this time longer.
#[test]
fn ranks_that_all_fail_in_order_all_get_to_say_why() {
    let script = "if [ $TYPEPACK_RANK = 1 ]; then until [ -e $SIGNS/ready ]; do sleep 0.01; done; \
                  read begin rest </proc/uptime; echo $begin >$SIGNS/begin; exit 2; fi; \
                  trap 'read end rest </proc/uptime; read begin <$SIGNS/begin; echo $begin $end; \
                  echo bad argument >&2; exit 2' TERM; : >$SIGNS/ready; while :; do sleep 0.01; done";
    let signs = Signs::new();
    let done = run(signs.given(patient_shell(2, script)));
    assert_eq!(done.code, 2, "{done:?}");
    // The shell may say that its `sleep` was terminated, too.
    let lines: Vec<_> = done.err.lines().filter(|line| *line != "Terminated").collect();
    assert_eq!((lines.len(), lines[0]), (2, "bad argument"), "{done:?}");
    assert!(lines[1].starts_with("mpiexec: rank 1 "), "{done:?}");
    let times = done.out.split_whitespace().map(|time| time.parse::<f64>().expect("a time"));
    let times: Vec<f64> = times.collect();
    // The clock counts hundredths of a second.
    assert!(times[1] - times[0] > 0.085, "{done:?}");
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
    let script = "[ $TYPEPACK_RANK = 1 ] && { trap '' TERM; : >$SIGNS/deaf; }; \
                  [ $TYPEPACK_RANK = 0 ] && { until [ -e $SIGNS/deaf ]; do sleep 0.01; done; kill -9 $$; }; \
                  while :; do sleep 1; done";
    let signs = Signs::new();
    let done = run(signs.shell(2, script));
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
    let signs = Signs::new();
    let job = start(signs.given(patient_shell(2, script)));
    signs.wait(&job, "ready", 2);
    job.signal(libc::SIGINT);
    let done = job.finish();
    assert_eq!((done.code, done.out.as_str()), (130, "saved\nsaved\n"), "{done:?}");
}

/// The ranks ignore the first request, and the time until SIGKILL is an hour. So only the second signal can end the job
/// before the test gives up.
#[test]
fn a_second_interrupt_is_at_once() {
    let script = "trap ': >$SIGNS/asked.$TYPEPACK_RANK' TERM; : >$SIGNS/ready.$TYPEPACK_RANK; \
                  while :; do sleep 0.01; done";
    let signs = Signs::new();
    let job = mpiexec(&["-kill-after", "3600", "-n", "2", "sh", "-c", script]);
    let job = start(signs.given(job));
    signs.wait(&job, "ready", 2);
    job.signal(libc::SIGINT);
    // Both ranks have been asked, so mpiexec has taken the first signal, and the second one is another signal.
    signs.wait(&job, "asked", 2);
    job.signal(libc::SIGINT);
    let done = job.finish();
    assert_eq!((done.code, done.left.len()), (130, 0), "{done:?}");
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
