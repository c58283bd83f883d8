//! Keeps one job of a library alive while many rows are measured, and sends it these rows.
//!
//! `suite.rs` uses the sessions. The ranks run `message/main.c`. Every rank has a socket of its own and
//! answers each line with one line. If a job crashes, hangs or does not start, the current row gets a
//! one-line error, and a new job starts for the next row.

use super::library::Library;
use crate::buffer::{Buffer, PAGE};
use crate::split;
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// If an answer takes longer than this, the job counts as hanging.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The same in a quick run.
pub const QUICK_PATIENCE: Duration = Duration::from_secs(20);
/// After this many jobs of a library have crashed, the run stops measuring the library. [`Session::forgive`]
/// begins to count anew.
const LIVES: usize = 5;
/// A job must end within this time after a request to end.
const GRACE: Duration = Duration::from_secs(5);
/// Number of bytes of user memory per rank. Pages that a rank does not touch use no physical memory.
const MEMORY: usize = 1 << 30;
/// The number of voluntary context switches that a rank may make between its last answer and the next
/// line. The rank makes one switch when it goes to sleep in `read`; a second switch is tolerated. Every further
/// switch means that the rank woke up while another job was measured.
const NAPS: u64 = 2;
/// While the session waits for an answer, it checks at this interval whether the launcher has ended.
const GLANCE: Duration = Duration::from_millis(100);

/// The user memory of the ranks: one buffer for each rank number. The jobs of all libraries use the same
/// pages in turn, because the placement of pages changes times as much as the choice of the library does.
pub struct UserMemory(Vec<Buffer>);

impl UserMemory {
    /// Allocates the memory of `ranks` ranks.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the system does not have enough memory.
    pub fn new(ranks: usize) -> Result<Rc<Self>, String> {
        let buffers: Result<Vec<Buffer>, String> =
            (0..ranks).map(|_| Buffer::new(MEMORY)).collect();
        buffers.map(|buffers| Rc::new(Self(buffers)))
    }

    /// Returns the number of ranks that have user memory.
    pub fn ranks(&self) -> usize {
        self.0.len()
    }
}

/// The sizes of a row, as the C program states them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Number of packed bytes of one message, of all faces of one rank, of one block of a collective, or of an
    /// access of all ranks to a file.
    pub payload: u64,
    /// Total size, in bytes, of all cache lines that one rank sends from and receives into.
    pub touched: u64,
    /// The time of the exchanges or calls that prepared the row (the warm-up).
    pub spent: Spent,
}

/// The time of all exchanges or calls of a row since the job's last answer. Unlike the time of a turn, it
/// includes warm-up and verification, and is no median.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// The sum of the times in nanoseconds.
    pub ns: u64,
    /// The number of exchanges or calls.
    pub calls: u64,
}

/// The job of a library. The job measures many rows, one after the other.
pub struct Session {
    library: Library,
    program: PathBuf,
    folder: PathBuf,
    cpus: String,
    memory: Rc<UserMemory>,
    running: Option<Running>,
    deaths: usize,
    version: String,
    patience: Duration,
    woken: u64,
    prepared: bool,
    late: bool,
    forgiven: usize,
}

struct Running {
    child: Child,
    ranks: Vec<Rank>,
    output: PathBuf,
    /// The page that all ranks map (`message/shared.c`). This field keeps the page mapped while the ranks
    /// run.
    _page: Buffer,
}

struct Rank {
    from: BufReader<UnixStream>,
    process: Option<Pid>,
    /// The number of voluntary context switches that the rank had made when it sent its last answer.
    naps: Option<u64>,
}

/// The result of a turn: the job has measured the prepared row once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// The time of the row in nanoseconds.
    pub ns: f64,
    /// The time of a single `MPI_Pack` of the message in nanoseconds; 0 if the row does not measure this.
    pub pack: f64,
    /// The nanoseconds that a cache line takes from one rank's CPU to another's, before the turn and after
    /// it.
    pub probes: [f64; 2],
    /// The time of all exchanges or calls of the turn.
    pub spent: Spent,
}

impl Session {
    /// Starts a job of `program`, with as many ranks as `memory` has. The sockets and the output of the
    /// job are in `folder`. The ranks run on the CPUs `cpus` (such as `0,1`). If `cpus` has an entry for
    /// each rank, each rank is bound to its CPU; otherwise, every rank may run on any of these CPUs. If an
    /// answer takes longer than `patience`, the job counts as hanging.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the job does not start. The message states the fault and, if there is
    /// one, an error line from the job's output.
    pub fn start(
        library: Library,
        program: PathBuf,
        folder: &Path,
        cpus: &str,
        memory: &Rc<UserMemory>,
        patience: Duration,
    ) -> Result<Self, String> {
        let mut session = Self {
            library,
            program,
            folder: folder.to_owned(),
            cpus: cpus.to_owned(),
            memory: Rc::clone(memory),
            running: None,
            deaths: 0,
            version: String::new(),
            patience,
            woken: 0,
            prepared: false,
            late: false,
            forgiven: 0,
        };
        session.restart()?;
        Ok(session)
    }

    /// Returns the library.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// Returns the version that the library reports.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the first line of the job's output so far that contains `word`.
    pub fn said(&self, word: &str) -> Option<String> {
        let output = std::fs::read(&self.running.as_ref()?.output).unwrap_or_default();
        let output = String::from_utf8_lossy(&output);
        output.lines().find(|line| line.contains(word)).map(|line| line.trim().to_owned())
    }

    /// Returns how many times ranks of this job have woken up while other jobs were measured. The number
    /// should be 0, because the rows of two libraries are comparable only if the ranks of the waiting
    /// library sleep.
    pub fn woken(&self) -> u64 {
        self.woken
    }

    /// Ends the job, if it still runs, and starts a new one.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Session::start`].
    pub fn restart(&mut self) -> Result<(), String> {
        self.running = None;
        self.prepared = false;
        let page = Buffer::new(PAGE)?;
        let name = format!("{}-{}", self.library.name, self.deaths);
        let socket = self.folder.join(format!("{name}.socket"));
        let output = self.folder.join(format!("{name}.output"));
        let shown = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
        let listener = UnixListener::bind(&socket).map_err(|e| shown(&socket, e))?;
        listener.set_nonblocking(true).map_err(|e| shown(&socket, e))?;
        let file = File::create(&output).map_err(|e| shown(&output, e))?;
        let both = file.try_clone().map_err(|e| shown(&output, e))?;
        let (ranks, places) = (self.memory.ranks(), cpu_list(&self.cpus));
        let crowded = ranks > places.len().max(2);
        let mut command = self.library.launcher(ranks, !crowded);
        if crowded {
            stay_on(&mut command, &places);
        }
        command.arg(&self.program).arg("serve").arg(&socket).arg(page.path()).arg(&self.cpus);
        command.arg(MEMORY.to_string()).args(self.memory.0.iter().map(Buffer::path));
        let child = command.stdin(Stdio::null()).stdout(both).stderr(file).spawn();
        let child = child.map_err(|e| format!("mpiexec does not start: {e}"))?;
        self.running = Some(Running { child, ranks: Vec::new(), output, _page: page });
        let met = self.meet(&listener);
        // The socket's file is no longer needed, whether or not the ranks have connected. If removing it
        // fails, it is removed later together with the folder.
        let _ = std::fs::remove_file(&socket);
        match met {
            Ok(version) => {
                self.version = version;
                Ok(())
            }
            Err(fault) => Err(self.dead(fault)),
        }
    }

    /// Accepts the connections of all ranks and reads the first line of each, which states the rank, its
    /// process id and the version of the library. Returns the version.
    fn meet(&mut self, listener: &UnixListener) -> Result<String, Fault> {
        let deadline = Instant::now() + self.patience;
        let Some(running) = &mut self.running else { return Err(Fault::Ended) };
        let mut calls: Vec<(usize, Rank)> = Vec::new();
        let mut version = String::new();
        while calls.len() < self.memory.ranks() {
            match listener.accept() {
                Ok((stream, _)) => {
                    let prepared =
                        stream.set_nonblocking(false).and(stream.set_read_timeout(Some(GLANCE)));
                    prepared.map_err(|e| Fault::Line(format!("socket: {e}")))?;
                    let from = BufReader::new(stream);
                    let mut rank = Rank { from, process: None, naps: None };
                    let line = rank.line(&mut running.child, deadline)?;
                    let (number, process, said) = introduction(&line, self.memory.ranks())
                        .ok_or(Fault::Line(format!("sent the unexpected first line {line:?}")))?;
                    rank.process = process;
                    version = said;
                    calls.push((number, rank));
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    if running.child.try_wait().is_ok_and(|status| status.is_some()) {
                        return Err(Fault::Ended);
                    }
                    if Instant::now() > deadline {
                        return Err(Fault::Late);
                    }
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(e) => return Err(Fault::Line(format!("socket: {e}"))),
            }
        }
        calls.sort_by_key(|(number, _)| *number);
        running.ranks = calls.into_iter().map(|(_, rank)| rank).collect();
        Ok(version)
    }

    /// Ends the job and counts it as crashed. Returns a one-line message that states the fault, with an
    /// error line from the job's output if there is one.
    fn dead(&mut self, fault: Fault) -> String {
        self.deaths += 1;
        self.prepared = false;
        self.late = matches!(fault, Fault::Late);
        let Some(mut running) = self.running.take() else { return "is not running".to_owned() };
        let line = match fault {
            Fault::Late => format!("gave no answer in {} s", self.patience.as_secs()),
            Fault::Line(line) => line,
            Fault::Ended => {
                let status = running.wait(GRACE);
                status.map_or("closed its socket".to_owned(), |status| format!("crashed: {status}"))
            }
        };
        let said = std::fs::read(&running.output).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        // The first line that looks like an error is used. It comes early in the output; the last lines of
        // launchers are general advice.
        let reason = said.lines().find(|l| {
            let l = l.to_ascii_lowercase();
            ["error", "bench:", "fatal", "fail", "signal", "bug"].iter().any(|w| l.contains(w))
        });
        match reason {
            Some(reason) => format!("{line} ({})", reason.trim().trim_end_matches('\r')),
            None => line,
        }
    }

    /// Sends a line to all ranks and returns their answers. Before that, counts how many times the ranks
    /// have woken up since their last answers.
    fn ask(&mut self, line: &str) -> Result<Vec<String>, String> {
        self.late = false;
        let deadline = Instant::now() + self.patience;
        let Some(running) = &mut self.running else { return Err("is not running".to_owned()) };
        for rank in &mut running.ranks {
            let naps = rank.process.and_then(naps);
            if let (Some(before), Some(now)) = (rank.naps, naps) {
                self.woken += now.saturating_sub(before + NAPS);
            }
        }
        for rank in &mut running.ranks {
            // The result is ignored: if a rank has ended, `Rank::line` reports that its answer is missing.
            let _ = writeln!(rank.from.get_mut(), "{line}");
        }
        let Running { child, ranks, .. } = running;
        let answers: Result<Vec<String>, Fault> =
            ranks.iter_mut().map(|rank| rank.line(child, deadline)).collect();
        let answers = answers.map_err(|fault| self.dead(fault))?;
        for rank in self.running.iter_mut().flat_map(|running| &mut running.ranks) {
            rank.naps = rank.process.and_then(naps);
        }
        match answers.iter().find_map(|answer| answer.strip_prefix("error ")) {
            Some(fault) => Err(fault.to_owned()),
            None => Ok(answers),
        }
    }

    /// Sends the line `command`, which prepares a row. If no job is running, starts a new one first.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if the job crashes, does not answer in time or does not start, if a rank
    /// answers with an error, if an answer has the wrong form, or if the library was given up after `LIVES`
    /// crashes.
    pub fn row(&mut self, command: &str) -> Result<Extent, String> {
        if self.running.is_none() {
            if self.deaths - self.forgiven >= LIVES {
                return Err(format!("not tried again after {LIVES} crashes"));
            }
            self.restart()?;
        }
        let answers = self.ask(command)?;
        self.prepared = true;
        extent(&answers[0]).ok_or(format!("gave the unexpected answer {:?}", answers[0]))
    }

    /// Returns true if a row is prepared.
    pub fn is_prepared(&self) -> bool {
        self.prepared
    }

    /// Returns true if the job did not answer the last line in time. Such a job has been ended and counts as
    /// crashed.
    pub fn was_late(&self) -> bool {
        self.late
    }

    /// Forgets the crashes so far, so that the library is not given up because of them.
    pub fn forgive(&mut self) {
        self.forgiven = self.deaths;
    }

    /// Sends a line to the ranks and returns the answer of rank 0.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if no job is running, if the job crashes or does not answer in time, or if a
    /// rank answers with an error.
    pub fn line(&mut self, line: &str) -> Result<String, String> {
        Ok(self.ask(line)?.swap_remove(0))
    }

    /// Measures the prepared row once, for about `milliseconds`.
    ///
    /// # Errors
    ///
    /// Returns a one-line message if no job is running, if the job crashes or does not answer in time, if
    /// an answer has the wrong form, or if a rank answers with an error, for example because a received
    /// byte is wrong.
    pub fn turn(&mut self, milliseconds: f64) -> Result<Turn, String> {
        let answers = self.ask(&format!("turn {milliseconds}"))?;
        parse(&answers[0]).ok_or(format!("gave the unexpected answer {:?}", answers[0]))
    }

    /// Makes the ranks free the buffers of the prepared row.
    pub fn end(&mut self) {
        if self.running.is_some() && self.prepared {
            self.prepared = false;
            // The result is ignored: if the job dies here, a new one starts for the next row.
            let _ = self.ask("end");
        }
    }
}

fn introduction(line: &str, ranks: usize) -> Option<(usize, Option<Pid>, String)> {
    let (front, version) = line.split_once(": ")?;
    let words: Vec<&str> = front.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    match words[..] {
        ["rank", rank, "of", size, "process", process] if size.parse() == Ok(ranks) => {
            let process = Pid::from_raw(process.parse().ok()?);
            Some((rank.parse().ok()?, process, version.trim().to_owned()))
        }
        _ => None,
    }
}

fn parse(answer: &str) -> Option<Turn> {
    let words: Vec<&str> = answer.strip_prefix("ns ")?.split(' ').collect();
    let [ns, pack, _, before, after, spent, calls] = words[..] else { return None };
    let number = |word: &str| word.parse::<f64>().ok();
    let spent = Spent { ns: spent.parse().ok()?, calls: calls.parse().ok()? };
    let probes = [number(before)?, number(after)?];
    let turn = Turn { ns: number(ns)?, pack: number(pack)?, probes, spent };
    (turn.ns > 0.0 && spent.calls > 0).then_some(turn)
}

fn extent(answer: &str) -> Option<Extent> {
    let words: Option<Vec<u64>> =
        answer.strip_prefix("ok ")?.split(' ').map(|word| word.parse().ok()).collect();
    let [payload, lines, ns, calls] = words?[..] else { return None };
    Some(Extent { payload, touched: lines.checked_mul(64)?, spent: Spent { ns, calls } })
}

/// The reasons why an answer is missing.
enum Fault {
    Ended,
    Late,
    Line(String),
}

impl Rank {
    fn line(&mut self, child: &mut Child, deadline: Instant) -> Result<String, Fault> {
        let mut line = Vec::new();
        loop {
            match self.from.read_until(b'\n', &mut line) {
                Ok(_) if line.last() == Some(&b'\n') => {
                    return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
                }
                Ok(_) => return Err(Fault::Ended),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if child.try_wait().is_ok_and(|status| status.is_some()) {
                        return Err(Fault::Ended);
                    }
                    if Instant::now() > deadline {
                        return Err(Fault::Late);
                    }
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Fault::Ended),
            }
        }
    }
}

impl Running {
    /// Waits until the launcher ends. Returns `None` if that takes longer than `time` or if waiting fails.
    fn wait(&mut self, time: Duration) -> Option<std::process::ExitStatus> {
        wait(&mut self.child, time)
    }
}

/// Waits until the process `child` ends. Returns `None` if that takes longer than `time` or if waiting
/// fails.
pub(super) fn wait(child: &mut Child, time: Duration) -> Option<std::process::ExitStatus> {
    let deadline = Instant::now() + time;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_micros(500));
            }
            _ => return None,
        }
    }
}

/// Ends the launcher `child` and with it its job. Sends SIGTERM and, if the launcher still runs after
/// [`GRACE`], SIGKILL. Does nothing if the launcher has already ended.
pub(super) fn finish(child: &mut Child) {
    if !child.try_wait().is_ok_and(|status| status.is_none()) {
        // The launcher has ended. The system may have reused its process id, so a signal could reach
        // another process.
        return;
    }
    if let Some(launcher) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // The result is ignored: `kill_process` fails only if the process has ended, which is what it
        // should do.
        let _ = kill_process(launcher, Signal::TERM);
    }
    if wait(child, GRACE).is_none() {
        // The results are ignored: both calls fail only if the process has already ended.
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let processes: Vec<Pid> = self.ranks.iter().filter_map(|rank| rank.process).collect();
        // Closes the sockets. A rank ends when its socket is closed.
        self.ranks.clear();
        if self.wait(GRACE).is_some() {
            return;
        }
        // The ranks hang. The launcher is alive and has not reaped them, so their process ids cannot
        // belong to other processes yet.
        for process in processes {
            let _ = kill_process(process, Signal::KILL);
        }
        finish(&mut self.child);
    }
}

/// Returns the number of voluntary context switches that all threads of a process have made, as the kernel
/// counts them. Returns `None` if the process has ended.
fn naps(process: Pid) -> Option<u64> {
    let threads = std::fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero())).ok()?;
    let of_thread = |path: PathBuf| {
        let status = std::fs::read_to_string(path.join("status")).ok()?;
        let line = status.lines().find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"))?;
        line.trim().parse::<u64>().ok()
    };
    Some(threads.flatten().filter_map(|thread| of_thread(thread.path())).sum())
}

/// Makes `command` restrict the launcher to the CPUs `cpus`. The ranks inherit the restriction.
fn stay_on(command: &mut Command, cpus: &[usize]) {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu));
    let bind = move || sched_setaffinity(None, &set).map_err(std::io::Error::from);
    // SAFETY: `bind` runs between `fork` and `exec`, where only async-signal-safe calls are allowed. It
    // makes one system call with `set`, which it owns, and allocates nothing.
    unsafe { command.pre_exec(bind) };
}

/// Returns the numbers in a list such as `0,1`, without consecutive repetitions.
fn cpu_list(text: &str) -> Vec<usize> {
    let mut list: Vec<usize> = split::commas(text).filter_map(|cpu| cpu.parse().ok()).collect();
    list.dedup();
    list
}

/// Returns a list of the CPUs for two ranks: the first two CPUs that this process may use. If there is
/// only one, it appears in the list twice. If the system does not name the CPUs, the list is `0,0`.
pub fn cpus() -> String {
    let allowed = rustix::thread::sched_getaffinity(None).ok();
    let list: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU)
        .filter(|cpu| allowed.as_ref().is_some_and(|set| set.is_set(*cpu)))
        .take(2)
        .collect();
    match list[..] {
        [one, other] => format!("{one},{other}"),
        [one] => format!("{one},{one}"),
        _ => "0,0".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Extent, Spent, Turn, extent, introduction, parse};

    #[test]
    fn answers_are_read() {
        let spent = Spent { ns: 900, calls: 70 };
        let turn = Turn { ns: 12.5, pack: 0.0, probes: [60.0, 61.5], spent };
        assert_eq!(parse("ns 12.5 0.0 100 60.0 61.5 900 70"), Some(turn));
        assert_eq!(parse("ns 0 0 1 2 3 4 5"), None);
        assert_eq!(parse("ns 1 0 1 2 3 4"), None);
        assert_eq!(parse("ns 1 0 1 2 3 4 0"), None);
        assert_eq!(parse("ok"), None);
        assert_eq!(extent("ok 8 2 900 70"), Some(Extent { payload: 8, touched: 128, spent }));
        assert_eq!((extent("ok 8 2 900"), extent("error 8 2 900 70")), (None, None));
        let (rank, process, version) =
            introduction("rank 1 of 2, process 77: MPI 5: x", 2).expect("an introduction");
        assert_eq!((rank, version.as_str()), (1, "MPI 5: x"));
        assert_eq!(process.map(|p| p.as_raw_nonzero().get()), Some(77));
        assert!(introduction("rank 1 of 3, process 77: x", 2).is_none());
        assert!(introduction("hello", 2).is_none());
    }
}
