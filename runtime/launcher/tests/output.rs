//! Tests of output and input: lines, labels, standard input, readers that are slow or have gone, and
//! descriptors.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::harness::{mpiexec, run, shell, start, start_as_is};

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn lines_of_all_ranks_come_out() {
    let done =
        run(shell(3, "echo out $TYPEPACK_RANK of $TYPEPACK_SIZE; echo err $MPI_LOCALRANKID >&2"));
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(sorted(&done.out), ["out 0 of 3", "out 1 of 3", "out 2 of 3"]);
    assert_eq!(sorted(&done.err), ["err 0", "err 1", "err 2"]);
}

#[test]
fn labels() {
    let done = run(mpiexec(&["-n", "2", "-l", "sh", "-c", "echo a; echo b; echo c >&2"]));
    assert_eq!(sorted(&done.out), ["[0] a", "[0] b", "[1] a", "[1] b"]);
    assert_eq!(sorted(&done.err), ["[0] c", "[1] c"]);
}

#[test]
fn long_lines_never_mix() {
    // 4 ranks write lines of 200 000 bytes at the same time. Such a line is much longer than the capacity of
    // a pipe.
    let script = "i=0; while [ $i -lt 5 ]; do head -c 200000 /dev/zero | tr '\\0' $TYPEPACK_RANK; \
                  echo; i=$((i+1)); done";
    let done = run(shell(4, script));
    assert_eq!(done.code, 0);
    assert_eq!(done.out.lines().count(), 20);
    for line in done.out.lines() {
        assert_eq!(line.len(), 200_000);
        let first = line.as_bytes()[0];
        assert!(line.bytes().all(|byte| byte == first), "a mixed line");
    }
}

#[test]
fn both_streams_into_one_pipe_keep_their_lines() {
    let script = "i=0; while [ $i -lt 200 ]; do echo oooooooooooooooooooooooooooooooooo; \
                  echo eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee >&2; i=$((i+1)); done";
    let (mut reader, writer) = std::io::pipe().expect("the pipe is made");
    let mut command = shell(2, script);
    command.stdout(writer.try_clone().expect("the descriptor is copied")).stderr(writer);
    let mut job = start_as_is(command);
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("the output is UTF-8");
    assert_eq!(job.wait(), 0);
    assert_eq!(text.lines().count(), 800);
    assert!(text.lines().all(|line| line == "o".repeat(34) || line == "e".repeat(34)));
}

#[test]
fn an_unended_last_line_comes_out_as_it_is() {
    assert_eq!(run(shell(1, "printf tail")).out, "tail");
    // The unfinished lines of several ranks must come out on separate lines.
    let done = run(shell(3, "printf tail"));
    assert_eq!(done.out, "tail\ntail\ntail");
    // mpiexec's own message must not continue an unfinished line of a rank.
    let done = run(shell(1, "printf oops >&2; exit 3"));
    let lines: Vec<_> = done.err.lines().collect();
    assert_eq!(lines.len(), 2, "{done:?}");
    assert_eq!(lines[0], "oops");
}

#[test]
fn progress_lines_come_at_once() {
    let mut command = shell(1, "printf '10%%\\r'; sleep 100");
    command.stdout(Stdio::piped());
    let mut job = start_as_is(command);
    let mut bytes = [0; 4];
    job.child
        .stdout
        .as_mut()
        .expect("the stream is a pipe")
        .read_exact(&mut bytes)
        .expect("the progress line comes");
    assert_eq!(&bytes, b"10%\r");
    job.signal(libc::SIGINT);
    assert_eq!(job.wait(), 130);
}

#[test]
fn standard_input_goes_to_rank_0() {
    let mut command = shell(3, "cat | wc -c");
    command.stdin(Stdio::piped());
    let mut job = start(command);
    let mut stdin = job.child.stdin.take().expect("the stream is a pipe");
    stdin.write_all(&vec![b'x'; 1 << 20]).expect("the input is written");
    drop(stdin);
    let done = job.finish();
    assert_eq!(done.code, 0, "{done:?}");
    let counts: Vec<_> = done.out.split_whitespace().collect();
    let mut counts: Vec<usize> =
        counts.iter().map(|n| n.parse().expect("the word is a number")).collect();
    counts.sort_unstable();
    assert_eq!(counts, [0, 0, 1 << 20]);
}

#[test]
fn input_that_nobody_reads_holds_nothing_up() {
    let mut command = shell(1, "exit 0");
    command.stdin(Stdio::piped());
    let mut job = start(command);
    let stdin = job.child.stdin.take();
    assert_eq!(job.finish().code, 0);
    drop(stdin);
}

#[test]
fn a_slow_reader_gets_everything() {
    let mut command = shell(2, "seq 100000");
    command.stdout(Stdio::piped());
    let mut job = start_as_is(command);
    // This test reads nothing during the pause. So the pipe to which mpiexec writes becomes full, and
    // mpiexec keeps the rest of the output in its queue.
    thread::sleep(Duration::from_millis(300));
    let mut text = String::new();
    job.child
        .stdout
        .as_mut()
        .expect("the stream is a pipe")
        .read_to_string(&mut text)
        .expect("the output is UTF-8");
    assert_eq!(job.wait(), 0);
    assert_eq!(text.lines().count(), 200_000);
}

#[test]
fn a_stuck_reader_does_not_keep_signals_away() {
    let mut command = shell(2, "yes");
    command.stdout(Stdio::piped());
    let mut job = start_as_is(command);
    job.wait_for("the output of both ranks", || {
        let writers = job.processes().into_iter().filter(|p| p.command.starts_with("yes"));
        (writers.count() >= 2).then_some(())
    });
    // Give the ranks time to fill the pipe to which mpiexec writes. The assertions do not depend on this time.
    thread::sleep(Duration::from_millis(200));
    job.signal(libc::SIGINT);
    // Wait until all ranks have ended, so mpiexec has taken the signal. The queued output is still unread.
    job.wait_for("the ranks' end", || (job.processes().len() <= 1).then_some(()));
    job.signal(libc::SIGINT);
    assert_eq!(job.wait(), 130);
}

#[test]
fn a_vanished_reader_ends_the_job() {
    let mut command = shell(2, "yes");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut job = start_as_is(command);
    let mut bytes = [0; 10];
    job.child
        .stdout
        .as_mut()
        .expect("the stream is a pipe")
        .read_exact(&mut bytes)
        .expect("the job writes output");
    drop(job.child.stdout.take());
    assert_eq!(job.wait(), 141);
    let mut text = String::new();
    job.child
        .stderr
        .take()
        .expect("the stream is a pipe")
        .read_to_string(&mut text)
        .expect("the output is UTF-8");
    assert_eq!(text, "", "mpiexec wrote about the broken pipe");
    job.expect_gone();
}

#[test]
fn ranks_get_no_descriptors_but_their_own() {
    // Compare the descriptors of a rank's shell with those of a shell outside the job, because the test
    // runner may leak some descriptors into both.
    let script = "for fd in /proc/self/fd/*; do readlink $fd; done; ls /proc/$$/fd";
    let list = |text: &str| -> BTreeSet<i32> {
        text.lines().filter_map(|line| line.parse().ok()).collect()
    };
    let outside = std::process::Command::new("sh").args(["-c", "ls /proc/$$/fd"]).output();
    let outside = list(
        &String::from_utf8(outside.expect("the shell runs").stdout).expect("the output is UTF-8"),
    );
    let done = run(shell(1, &format!("{script}; echo fds=$TYPEPACK_JOB_FD")));
    let extra: Vec<i32> = list(&done.out).difference(&outside).copied().collect();
    let told = done
        .out
        .lines()
        .find_map(|line| line.strip_prefix("fds="))
        .expect("the rank prints its descriptors");
    // The third number is that of the rank's slot.
    let mut told: Vec<i32> =
        told.split(',').take(2).map(|n| n.parse().expect("the word is a number")).collect();
    told.sort_unstable();
    assert_eq!(extra, told, "{}", done.out);
    assert!(done.out.contains("memfd:typepack-job"), "{}", done.out);
}

#[test]
fn more_ranks_than_cpus() {
    let done = run(shell(32, "echo $TYPEPACK_RANK"));
    assert_eq!(done.code, 0, "{done:?}");
    let ranks: BTreeSet<usize> =
        done.out.lines().map(|l| l.parse().expect("the line is a rank")).collect();
    assert_eq!(ranks, (0..32).collect());
}

#[test]
fn bindings_are_reported_and_can_be_refused() {
    // Also accept the message that other jobs hold the cores, because jobs of other tests may hold them at
    // this moment.
    let done = run(mpiexec(&["-n", "1", "--report-bindings", "true"]));
    let bound = done.err.starts_with("mpiexec: rank 0 bound to cpu ");
    assert!(bound || done.err.contains("other jobs hold some"), "{}", done.err);
    let done = run(mpiexec(&["-n", "1", "--bind-to", "none", "--report-bindings", "true"]));
    assert_eq!(done.err, "mpiexec: ranks are not bound (--bind-to none)\n");
}

#[test]
fn two_jobs_do_not_share_a_core() {
    let script = "grep Cpus_allowed_list /proc/self/status";
    let first = start(shell(1, &format!("{script}; sleep 300")));
    // Read the CPU mask of the first job's rank from `/proc`, because the job's output is available only
    // after its end.
    let allowed = |pid: i32| {
        let status =
            std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process exists");
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        line.expect("the line has a mask").trim().to_owned()
    };
    let here = allowed(first.rank(0));
    let there = run(shell(1, script)).out;
    let there = there.split_once(':').expect("the line has a mask").1.trim().to_owned();
    first.signal(libc::SIGINT);
    first.finish();
    let single = |mask: &str| mask.bytes().all(|byte| byte.is_ascii_digit());
    // With a single CPU, every process runs there.
    let only = single(&allowed(std::process::id().cast_signed()));
    assert!(only || !(single(&here) && here == there), "both on {here}");
}

#[test]
fn a_process_that_outlives_its_rank_is_left_alone() {
    // The shell's child `sleep` keeps the output pipe open. mpiexec must not wait for the `sleep`, and the
    // `sleep` must not die with mpiexec.
    let mut job = start(shell(1, "sleep 300 & echo $!"));
    assert_eq!(job.wait(), 0);
    let left = job.processes();
    assert_eq!(left.len(), 1, "{left:?}");
    crate::harness::kill(left[0].pid, libc::SIGKILL);
    let done = job.finish();
    assert_eq!(done.out, format!("{}\n", left[0].pid), "{done:?}");
}
