//! Tests of what mpiexec tells about a job that hangs: the lines of the watchdog, of `-timeout` and of SIGQUIT.
//!
//! No test depends on time: each waits for lines. The tests of jobs that do not hang wait until a rank has used the CPU
//! for several periods of the watchdog.

use crate::job;
use crate::program::library;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long a test waits for a line before it fails.
const LIMIT: Duration = Duration::from_secs(120);

/// A job of two ranks that run `c/hang.c`.
struct Hang {
    child: Child,
    lines: Receiver<String>,
    file: PathBuf,
}

impl Hang {
    /// Starts the job. The program gets the name of a file that does not exist.
    fn start(how: &str, options: &[&str], watchdog: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let file = format!("typepack-hang-{}-{number}", std::process::id());
        let file = std::env::temp_dir().join(file);
        // A file of this name may have stayed behind if an earlier process of this number was killed.
        let _ = std::fs::remove_file(&file);
        let mut command = Command::new(job::mpiexec());
        command.args(["-n", "2"]).args(options).arg(crate::c::compile("hang")).arg(how).arg(&file);
        command.env("LD_LIBRARY_PATH", library()).env("TYPEPACK_WATCHDOG", watchdog);
        command.env_remove("MPIEXEC_TIMEOUT").stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("mpiexec starts");
        let errors = child.stderr.take().expect("a pipe");
        let (to, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                if to.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, lines, file }
    }

    /// Sends a signal, by its name, to a process.
    fn signal(pid: u32, signal: &str) {
        let sent = Command::new("kill").args([&format!("-{signal}"), &pid.to_string()]).status();
        assert!(sent.expect("kill runs").success(), "{signal} to {pid}");
    }

    /// Waits for the lines about both ranks, and returns them.
    fn table(&self) -> [String; 2] {
        let mut seen = Vec::new();
        let mut of = |rank: usize| {
            let start = format!("mpiexec: rank {rank}: ");
            loop {
                match self.lines.recv_timeout(LIMIT) {
                    Ok(line) => match line.strip_prefix(&start) {
                        Some(rest) => return rest.to_owned(),
                        None => seen.push(line),
                    },
                    Err(error) => panic!("{error}: no line about rank {rank} after {seen:?}"),
                }
            }
        };
        [of(0), of(1)]
    }

    /// Asks for the lines about both ranks until `is_right` accepts them, and returns them.
    fn ask_until(&self, signal: &str, is_right: impl Fn(&[String; 2]) -> bool) -> [String; 2] {
        let start = Instant::now();
        // Before mpiexec has started ranks, the signal may end it.
        self.rank(1);
        loop {
            Self::signal(self.child.id(), signal);
            let table = self.table();
            if is_right(&table) {
                return table;
            }
            assert!(start.elapsed() < LIMIT, "{table:?}");
        }
    }

    /// Returns the process of a rank. Waits until it runs the program.
    fn rank(&self, rank: usize) -> u32 {
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        let wanted = format!("TYPEPACK_RANK={rank}");
        let start = Instant::now();
        loop {
            let pids = std::fs::read_to_string(&children).expect("the children of mpiexec");
            let is_rank = |pid: &&str| {
                let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
            };
            if let Some(pid) = pids.split_whitespace().find(is_rank) {
                return pid.parse().expect("a process id");
            }
            assert!(start.elapsed() < LIMIT, "no rank {rank} among {pids}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until a rank has used the CPU for `ticks` hundredths of a second.
    fn wait_for_cpu(&self, rank: usize, ticks: u32) {
        let pid = self.rank(rank);
        let start = Instant::now();
        loop {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
            let time = fields.split_ascii_whitespace().nth(11).and_then(|time| time.parse().ok());
            if time.is_some_and(|time: u32| time >= ticks) {
                return;
            }
            assert!(start.elapsed() < LIMIT, "rank {rank} does not compute: {stat}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Lets the job go on, waits for its end, and returns the lines that have not been read.
    fn end_well(mut self) -> Vec<String> {
        std::fs::File::create(&self.file).expect("a file");
        let mut rest = Vec::new();
        loop {
            match self.lines.recv_timeout(LIMIT) {
                Ok(line) => rest.push(line),
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                Err(error) => panic!("{error} after {rest:?}"),
            }
        }
        let ended = self.child.wait().expect("mpiexec ends");
        assert!(ended.success(), "{ended}: {rest:?}");
        rest
    }
}

impl Drop for Hang {
    fn drop(&mut self) {
        // The results are ignored: the job may have ended, and the file may never have existed. The ranks end with
        // mpiexec.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Checks that the text has the form `TIME s in REST`.
fn is_wait(text: &str, rest: &str) -> bool {
    let time = text.split_once(" s in ").filter(|(time, _)| time.parse::<f64>().is_ok());
    time.is_some_and(|(_, found)| found == rest)
}

#[test]
fn the_watchdog_tells_what_every_rank_waits_for() {
    let received =
        "MPI_Recv from any rank, any tag, room for 4 bytes; no matching message has arrived";
    let message = "MPI_Recv from rank 0, tag 3, room for 4 bytes; no matching message has arrived";
    let cases = [
        (
            "sends",
            "MPI_Send to rank 1, tag 0, 1048576 bytes; no receive posted",
            "MPI_Send to rank 0, tag 0, 1048576 bytes; no receive posted",
        ),
        (
            "receives",
            "MPI_Recv from rank 1, tag 7, room for 100 bytes on \"halo\"; no matching message has arrived",
            "MPI_Recv from rank 0, tag 7, room for 100 bytes on \"halo\"; no matching message has arrived",
        ),
        (
            "probes",
            "MPI_Probe from any rank, tag 5; no matching message has arrived",
            "MPI_Probe from any rank, tag 5; no matching message has arrived",
        ),
        (
            "requests",
            "MPI_Waitany for a receive from rank 1, tag 1, room for 8 bytes on \"halo\", or for 1 other request; \
             no matching message has arrived",
            "MPI_Waitall for a receive from rank 0, tag 1, room for 8 bytes on \"halo\"; \
             no matching message has arrived",
        ),
        ("collectives", "MPI_Barrier on \"halo\" (2 ranks)", received),
        (
            "started",
            "MPI_Wait for a collective call on \"halo\"",
            "MPI_Bcast on MPI_COMM_WORLD (2 ranks)",
        ),
        (
            "windows",
            "MPI_Recv from rank 1, tag 3, room for 4 bytes; no matching message has arrived",
            "MPI_Win_lock with rank 0 on MPI_COMM_WORLD (2 ranks)",
        ),
        ("fences", "MPI_Win_fence on MPI_COMM_WORLD (2 ranks)", message),
        ("files", "MPI_File_write_all (2 ranks)", message),
    ];
    for (how, first, second) in cases {
        let job = Hang::start(how, &[], "0.5");
        let table = job.table();
        for (found, wanted) in table.iter().zip([first, second]) {
            assert!(is_wait(&without_number(found), wanted), "{how}: {table:?}, not {wanted}");
        }
    }
}

/// Returns a line without the number of a communicator that has no name.
fn without_number(line: &str) -> String {
    let Some((head, rest)) = line.split_once(" on communicator ") else { return line.to_owned() };
    let number = |c: char| c.is_ascii_digit() || c == '.';
    format!("{head}{}", rest.trim_start_matches(number))
}

#[test]
fn ranks_are_those_of_the_world() {
    let job = Hang::start("split", &[], "0.5");
    let [first, second] = job.table();
    assert!(first.contains("MPI_Ssend to rank 1, tag 2, 8 bytes on communicator "), "{first}");
    assert!(second.contains("MPI_Ssend to rank 1, tag 2, 8 bytes on communicator "), "{second}");
}

#[test]
fn a_job_in_which_a_rank_waits_in_finalize_hangs_too() {
    let job = Hang::start("finalize", &[], "0.5");
    let [first, second] = job.table();
    assert!(first.contains(" s in MPI_Recv from rank 1, tag 3"), "{first}");
    assert!(second == "has ended" || second.contains("MPI_Finalize"), "{second}");
}

#[test]
fn the_time_limit_tells_what_the_ranks_wait_for() {
    // The ranks have the time of the limit to begin their waits. If they do not, there is no table, and the test tries
    // a longer limit.
    let told = ["0.5", "4", "30"].iter().any(|limit| {
        let mut job = Hang::start("receives", &["-timeout", limit], "0");
        let mut text = Vec::new();
        while let Ok(line) = job.lines.recv_timeout(LIMIT) {
            text.push(line);
        }
        assert_eq!(job.child.wait().expect("mpiexec ends").code(), Some(124), "{text:?}");
        let waits = |line: &&String| line.contains(" s in MPI_Recv from rank ");
        text.iter().filter(waits).count() == 2
    });
    assert!(told);
}

#[test]
fn signals_ask_for_the_table_and_the_job_goes_on() {
    let job = Hang::start("until", &[], "0");
    // Rank 0 erases the record of its last wait only when it runs again.
    let waits = |table: &[String; 2]| {
        table[0].starts_with("in its own code")
            && table[1].contains(" s in MPI_Recv from rank 0, tag 1, ")
    };
    for signal in ["QUIT", "USR1"] {
        job.ask_until(signal, waits);
    }
    // A rank that is stopped is described, too.
    let pid = job.rank(1);
    Hang::signal(pid, "STOP");
    job.ask_until("QUIT", |table| waits(table) && table[1].ends_with("; the process is stopped"));
    Hang::signal(pid, "CONT");
    let rest = job.end_well();
    assert!(rest.is_empty(), "{rest:?}");
}

#[test]
fn a_job_that_computes_raises_no_alarm() {
    for (how, watchdog) in [("until", "0.05"), ("thread", "0.05")] {
        let job = Hang::start(how, &[], watchdog);
        job.wait_for_cpu(0, 50);
        let rest = job.end_well();
        assert!(rest.is_empty(), "{how}: {rest:?}");
    }
}
