//! A job that lives through the run: started, asked, ended.
//!
//! `suite.rs` asks; `message/main.c` answers. Every rank has a socket of its own and answers every
//! line with one. A job that crashes, hangs or does not start is an error of one line for the row
//! at hand; the next row gets a fresh job.

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

/// How long an answer may take before the job counts as hanging.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Jobs of one library that may die before it is given up.
const LIVES: usize = 5;
/// How long a job may take to end by itself.
const GRACE: Duration = Duration::from_secs(5);
/// The user's memory of a rank; only what is touched is there.
const MEMORY: usize = 1 << 30;
/// Voluntary context switches of a rank while others are measured, from its last answer on: one
/// into `read`, and one if the line was there before that.
const NAPS: u64 = 2;
/// How often a wait looks at the process as well.
const GLANCE: Duration = Duration::from_millis(100);

/// The pages that the ranks of all libraries have as their buffers, in turn: placement of pages
/// decides as much as libraries do.
pub struct UserMemory(Vec<Buffer>);

impl UserMemory {
    /// That of `ranks` ranks.
    ///
    /// # Errors
    ///
    /// One line: the system has no such memory.
    pub fn new(ranks: usize) -> Result<Rc<Self>, String> {
        let buffers: Result<Vec<Buffer>, String> =
            (0..ranks).map(|_| Buffer::new(MEMORY)).collect();
        buffers.map(|buffers| Rc::new(Self(buffers)))
    }

    /// Of how many ranks it is.
    pub fn ranks(&self) -> usize {
        self.0.len()
    }
}

/// What a row is, by the C program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Packed bytes of one message, or of all faces of one rank.
    pub payload: u64,
    /// Bytes of the cache lines that one rank sends from and receives to.
    pub touched: u64,
}

/// A library's job, for many rows one after the other.
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
}

struct Running {
    child: Child,
    ranks: Vec<Rank>,
    output: PathBuf,
    /// The page of the ranks; theirs as long as they run.
    _page: Buffer,
}

struct Rank {
    from: BufReader<UnixStream>,
    process: Option<Pid>,
    /// How often it had given its CPU away by its last answer.
    naps: Option<u64>,
}

/// What a turn has measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// The row's time.
    pub ns: f64,
    /// A single `MPI_Pack` of the message; 0 where the row does not ask for it.
    pub pack: f64,
    /// One way of a cache line, before and after.
    pub probes: [f64; 2],
}

impl Session {
    /// Starts the job of `program` in `folder`: a rank for each of `memory`, on `cpus` (such as
    /// `0,1`), bound where there are as many.
    ///
    /// # Errors
    ///
    /// One line: what the launcher or the program has said.
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
        };
        session.restart()?;
        Ok(session)
    }

    /// Who it is.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// The library's version, in its own words.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// How often its ranks have woken up while others were measured. Their sleep is what makes the
    /// rows of two libraries comparable: 0 is right.
    pub fn woken(&self) -> u64 {
        self.woken
    }

    /// Ends the job and starts a new one.
    ///
    /// # Errors
    ///
    /// One line: as [`Session::start`].
    pub fn restart(&mut self) -> Result<(), String> {
        self.running = None;
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
        let child = child.map_err(|e| format!("mpiexec: {e}"))?;
        self.running = Some(Running { child, ranks: Vec::new(), output, _page: page });
        let met = self.meet(&listener);
        // Nobody else is to come. A name that stays goes with the folder.
        let _ = std::fs::remove_file(&socket);
        match met {
            Ok(version) => {
                self.version = version;
                Ok(())
            }
            Err(fault) => Err(self.dead(fault)),
        }
    }

    /// All ranks call, each with one line about itself.
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
                        .ok_or(Fault::Line(format!("said {line}")))?;
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

    /// The job is over, one way or the other; the line for the row.
    fn dead(&mut self, fault: Fault) -> String {
        self.deaths += 1;
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
        // The last line tells the least: launchers end with advice. That with the reason is early.
        let reason = said.lines().find(|l| {
            let l = l.to_ascii_lowercase();
            ["error", "bench:", "fatal", "fail", "signal", "bug"].iter().any(|w| l.contains(w))
        });
        match reason {
            Some(reason) => format!("{line} ({})", reason.trim().trim_end_matches('\r')),
            None => line,
        }
    }

    /// Sends a line to all ranks; their answers.
    fn ask(&mut self, line: &str) -> Result<Vec<String>, String> {
        let deadline = Instant::now() + self.patience;
        let Some(running) = &mut self.running else { return Err("is not running".to_owned()) };
        for rank in &mut running.ranks {
            let naps = rank.process.and_then(naps);
            if let (Some(before), Some(now)) = (rank.naps, naps) {
                self.woken += now.saturating_sub(before + NAPS);
            }
        }
        for rank in &mut running.ranks {
            // A rank that has ended is found by the answer that does not come.
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

    /// Prepares a row.
    ///
    /// # Errors
    ///
    /// One line: a crash, no answer in time, or given up.
    pub fn row(&mut self, command: &str) -> Result<Extent, String> {
        if self.running.is_none() {
            if self.deaths >= LIVES {
                return Err(format!("was given up after {LIVES} crashes"));
            }
            self.restart()?;
        }
        let answers = self.ask(command)?;
        extent(&answers[0]).ok_or(format!("answered {}", answers[0]))
    }

    /// Measures the row for about `milliseconds`.
    ///
    /// # Errors
    ///
    /// One line: as [`Session::row`], or a wrong byte.
    pub fn turn(&mut self, milliseconds: f64) -> Result<Turn, String> {
        let answers = self.ask(&format!("turn {milliseconds}"))?;
        parse(&answers[0]).ok_or(format!("answered {}", answers[0]))
    }

    /// Frees what the row has.
    pub fn end(&mut self) {
        if self.running.is_some() {
            // A job that dies here is started anew for the next row.
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
    let numbers: Vec<f64> =
        answer.strip_prefix("ns ")?.split(' ').map_while(|word| word.parse().ok()).collect();
    match numbers[..] {
        [ns, pack, _, before, after] if ns > 0.0 => {
            Some(Turn { ns, pack, probes: [before, after] })
        }
        _ => None,
    }
}

fn extent(answer: &str) -> Option<Extent> {
    let (payload, lines) = split::once(answer.strip_prefix("ok ")?, b' ')?;
    let lines: u64 = lines.parse().ok()?;
    Some(Extent { payload: payload.parse().ok()?, touched: lines.checked_mul(64)? })
}

/// Why there is no answer.
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
    /// Waits for the launcher; nothing if that takes longer than `time`.
    fn wait(&mut self, time: Duration) -> Option<std::process::ExitStatus> {
        wait(&mut self.child, time)
    }
}

/// Waits for a child; nothing if that takes longer than `time`.
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

/// Ends a launcher's job: it is asked, and killed when it does not obey.
pub(super) fn finish(child: &mut Child) {
    if !child.try_wait().is_ok_and(|status| status.is_none()) {
        // It has ended; its number may be another's by now.
        return;
    }
    if let Some(launcher) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It fails only for a process that has ended.
        let _ = kill_process(launcher, Signal::TERM);
    }
    if wait(child, GRACE).is_none() {
        // The same.
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let processes: Vec<Pid> = self.ranks.iter().filter_map(|rank| rank.process).collect();
        // The end of its input is what a rank ends by.
        self.ranks.clear();
        if self.wait(GRACE).is_some() {
            return;
        }
        // Its launcher lives, so the numbers are still those of its ranks.
        for process in processes {
            let _ = kill_process(process, Signal::KILL);
        }
        finish(&mut self.child);
    }
}

/// How often a process has given its CPU away, by what the kernel says of its threads.
fn naps(process: Pid) -> Option<u64> {
    let threads = std::fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero())).ok()?;
    let of_thread = |path: PathBuf| {
        let status = std::fs::read_to_string(path.join("status")).ok()?;
        let line = status.lines().find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"))?;
        line.trim().parse::<u64>().ok()
    };
    Some(threads.flatten().filter_map(|thread| of_thread(thread.path())).sum())
}

/// Keeps a launcher and its ranks on these CPUs.
fn stay_on(command: &mut Command, cpus: &[usize]) {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu));
    let bind = move || sched_setaffinity(None, &set).map_err(std::io::Error::from);
    // SAFETY: one system call on a value of its own, which is allowed between `fork` and `exec`.
    unsafe { command.pre_exec(bind) };
}

/// The numbers of `0,1`.
fn cpu_list(text: &str) -> Vec<usize> {
    let mut list: Vec<usize> = split::commas(text).filter_map(|cpu| cpu.parse().ok()).collect();
    list.dedup();
    list
}

/// The CPUs of two ranks: the first two that this process may use.
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
    use super::{Extent, Turn, extent, introduction, parse};

    #[test]
    fn answers_are_read() {
        let turn = Turn { ns: 12.5, pack: 0.0, probes: [60.0, 61.5] };
        assert_eq!(parse("ns 12.5 0.0 100 60.0 61.5"), Some(turn));
        assert_eq!(parse("ns 0 0 1 2 3"), None);
        assert_eq!(parse("ns 1 0 1 2"), None);
        assert_eq!(parse("ok"), None);
        assert_eq!(extent("ok 8 2"), Some(Extent { payload: 8, touched: 128 }));
        assert_eq!((extent("ok 8"), extent("error 8 2")), (None, None));
        let (rank, process, version) =
            introduction("rank 1 of 2, process 77: MPI 5: x", 2).expect("an introduction");
        assert_eq!((rank, version.as_str()), (1, "MPI 5: x"));
        assert_eq!(process.map(|p| p.as_raw_nonzero().get()), Some(77));
        assert!(introduction("rank 1 of 3, process 77: x", 2).is_none());
        assert!(introduction("hello", 2).is_none());
    }
}
