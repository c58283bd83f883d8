//! Runs `mpiexec` in a test, with a time limit and with an environment variable that marks the job. All
//! processes of the job inherit the variable, so a test can find them in `/proc`, even a process whose
//! parent has ended.

use std::fs;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long a test waits for an event before it fails.
pub const LIMIT: Duration = Duration::from_secs(120);

/// How long a process that has been killed may take to disappear after the end of `mpiexec`, also on a machine on which
/// the process gets the CPU late. A process that nobody has killed stays longer.
const DYING: Duration = Duration::from_secs(60);

/// Options of `mpiexec` that give ranks a minute, not 200 ms or 2 s, before SIGKILL follows SIGTERM: as long as a rank may
/// need on a machine on which it gets the CPU late.
pub const PATIENT: [&str; 2] = ["-kill-after", "60"];

/// Name of the environment variable that marks the processes of one job.
const MARK: &str = "MPIEXEC_TEST_MARK";

/// The results of a job that has ended.
#[derive(Debug)]
pub struct Finished {
    /// The exit code of `mpiexec`, or 128 + the signal's number if a signal killed `mpiexec`.
    pub code: i32,
    /// What the job wrote to standard output.
    pub out: String,
    /// What the job wrote to standard error.
    pub err: String,
    /// The processes of the job that have outlived `mpiexec`.
    pub left: Vec<Process>,
}

/// A running job.
pub struct Job {
    pub child: Child,
    mark: String,
    out: Option<thread::JoinHandle<String>>,
    err: Option<thread::JoinHandle<String>>,
}

/// Returns a command that runs `mpiexec` with these arguments. Its standard input is `/dev/null`.
pub fn mpiexec(arguments: &[&str]) -> Command {
    // If `CARGO_BIN_EXE_mpiexec` is missing, the caller is one of the runtime's tests. These tests also
    // include this file, but must call `mpiexec_at` with the path of the launcher.
    let Some(path) = option_env!("CARGO_BIN_EXE_mpiexec") else {
        panic!("this package does not build mpiexec: use mpiexec_at");
    };
    mpiexec_at(Path::new(path), arguments)
}

/// Returns a command that runs the launcher at `path` with these arguments. Its standard input is
/// `/dev/null`.
pub fn mpiexec_at(path: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(path);
    command.args(arguments).stdin(Stdio::null());
    command.env_remove("TYPEPACK_BIND").env_remove("MPIEXEC_TIMEOUT");
    command
}

/// Returns the command `mpiexec -n ranks sh -c script`.
pub fn shell(ranks: usize, script: &str) -> Command {
    mpiexec(&["-n", &ranks.to_string(), "sh", "-c", script])
}

/// Returns the command `mpiexec -n ranks sh -c script` of a launcher that waits long before it kills ([`PATIENT`]).
pub fn patient_shell(ranks: usize, script: &str) -> Command {
    mpiexec(&[&PATIENT[..], &["-n", &ranks.to_string(), "sh", "-c", script]].concat())
}

/// Runs a job to its end, and returns its results.
pub fn run(command: Command) -> Finished {
    start(command).finish()
}

/// Starts a job, and threads that collect its output.
pub fn start(mut command: Command) -> Job {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut job = start_as_is(command);
    job.out = job.child.stdout.take().map(collect);
    job.err = job.child.stderr.take().map(collect);
    job
}

/// Starts a job, and leaves the standard streams as `command` has set them.
pub fn start_as_is(mut command: Command) -> Job {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mark = format!("{}-{number}", std::process::id());
    command.env(MARK, &mark);
    // If the tests run in the background or under nohup, some of the four signals below are ignored, and
    // mpiexec would inherit this setting. So restore the default actions, which a program has when it is
    // started from a terminal.
    let as_from_a_terminal = || {
        for signal in [libc::SIGINT, libc::SIGHUP, libc::SIGTERM, libc::SIGQUIT] {
            // SAFETY: SIG_DFL runs no code of this process when the signal arrives.
            if unsafe { libc::signal(signal, libc::SIG_DFL) } == libc::SIG_ERR {
                return Err(std::io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: `as_from_a_terminal` only calls `signal` and reads `errno`, which is allowed between fork and
    // exec.
    unsafe { command.pre_exec(as_from_a_terminal) };
    let child = command.spawn().expect("mpiexec starts");
    Job { child, mark, out: None, err: None }
}

fn collect(mut from: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).expect("the pipe can be read");
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl Job {
    /// Returns the process id of `mpiexec`.
    pub fn pid(&self) -> i32 {
        self.child.id().try_into().expect("the process id fits in an i32")
    }

    /// Sends `signal` to `mpiexec`.
    pub fn signal(&self, signal: i32) {
        kill(self.pid(), signal);
    }

    /// Waits for the end of `mpiexec`, and returns the results of the job.
    pub fn finish(mut self) -> Finished {
        let code = self.wait();
        let ended = Instant::now();
        let mut left = self.processes();
        // The kernel ends a killed process only when the process gets the CPU.
        while !left.is_empty() && ended.elapsed() < DYING {
            thread::sleep(Duration::from_millis(5));
            left = self.processes();
        }
        let text = |thread: Option<thread::JoinHandle<String>>| {
            thread.map(|t| t.join().expect("the reading thread does not panic")).unwrap_or_default()
        };
        Finished { code, out: text(self.out.take()), err: text(self.err.take()), left }
    }

    /// Waits for the end of `mpiexec`, and returns its exit code (128 + the signal's number if a signal
    /// killed it).
    pub fn wait(&mut self) -> i32 {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("the child can be waited for") {
                return status.code().unwrap_or_else(|| {
                    128 + status
                        .signal()
                        .expect("a process without an exit code was killed by a signal")
                });
            }
            if started.elapsed() > LIMIT {
                let left = self.processes();
                for process in &left {
                    kill(process.pid, libc::SIGKILL);
                }
                panic!("mpiexec has not ended in {LIMIT:?}; left: {left:?}");
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns the processes of this job that have not ended, including `mpiexec`. Zombies count as ended.
    pub fn processes(&self) -> Vec<Process> {
        let wanted = format!("{MARK}={}", self.mark);
        let entries = fs::read_dir("/proc").expect("/proc can be read");
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.filter_map(|pid| Process::read(pid, wanted.as_bytes())).collect()
    }

    /// Returns the process id of rank `rank`. If several processes have this rank's number in their
    /// environment, returns the highest of their process ids.
    pub fn rank(&self, rank: usize) -> i32 {
        self.wait_for("the rank", || {
            let mut found = self.processes();
            found.retain(|process| process.rank == Some(rank));
            found.iter().map(|process| process.pid).max()
        })
    }

    /// Waits until no process of the job is left. Panics if that takes longer than [`LIMIT`].
    pub fn expect_gone(&self) {
        self.wait_for("the end of all processes", || self.processes().is_empty().then_some(()));
    }

    /// Calls `look` until it returns a value, and returns that value. Panics if that takes longer than
    /// [`LIMIT`].
    pub fn wait_for<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let started = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            if started.elapsed() > LIMIT {
                let left = self.processes();
                for process in &left {
                    kill(process.pid, libc::SIGKILL);
                }
                panic!("waited {LIMIT:?} for {what}; processes: {left:?}");
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

/// A process of a job.
#[derive(Debug)]
pub struct Process {
    pub pid: i32,
    pub rank: Option<usize>,
    pub command: String,
}

impl Process {
    fn read(pid: i32, wanted: &[u8]) -> Option<Self> {
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let mut variables = environment.split(|&b| b == 0);
        if !variables.clone().any(|variable| variable == wanted) {
            return None;
        }
        let rank = variables.find_map(|variable| {
            std::str::from_utf8(variable).ok()?.strip_prefix("TYPEPACK_RANK=")?.parse().ok()
        });
        let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        Some(Self { pid, rank, command })
    }
}

/// Sends `signal` to the process `pid`.
pub fn kill(pid: i32, signal: i32) {
    assert!(pid > 1, "process {pid} must not be killed");
    // SAFETY: kill accesses no memory of this process.
    unsafe { libc::kill(pid, signal) };
}

/// A folder in which the ranks of a job make files, to tell a test how far they have come. The job has its path in
/// the variable `SIGNS`.
pub struct Signs(PathBuf);

impl Signs {
    /// Makes an empty folder.
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("typepack-signs-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // A folder of this name may have stayed behind if an earlier process of this number was killed.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).expect("a folder");
        Self(path)
    }

    /// Returns the folder, which a job gets in the variable `SIGNS`.
    pub fn path(&self) -> &str {
        self.0.to_str().expect("a path in UTF-8")
    }

    /// Returns the command with the variable `SIGNS`.
    pub fn given(&self, mut command: Command) -> Command {
        command.env("SIGNS", &self.0);
        command
    }

    /// Returns the command `mpiexec -n ranks sh -c script`. The script makes its signs by `: >$SIGNS/name`.
    pub fn shell(&self, ranks: usize, script: &str) -> Command {
        self.given(shell(ranks, script))
    }

    /// Returns the folder of the job whose rank this process is.
    pub fn of_this_rank() -> std::mem::ManuallyDrop<Self> {
        let path = std::env::var_os("SIGNS").expect("a folder for signs");
        // The test removes the folder, not a rank.
        std::mem::ManuallyDrop::new(Self(path.into()))
    }

    /// Makes a sign.
    pub fn make(&self, name: &str) {
        fs::write(self.0.join(name), "").expect("a sign");
    }

    /// Returns whether there is a sign whose name begins with `name`.
    pub fn has(&self, name: &str) -> bool {
        !self.seen(name).is_empty()
    }

    /// Returns the names of the signs that begin with `name`.
    fn seen(&self, name: &str) -> Vec<String> {
        let names = fs::read_dir(&self.0).expect("the folder").flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|found| found.starts_with(name)).collect()
    }

    /// Waits in a rank until there are `count` signs whose names begin with `name`.
    pub fn wait_for(&self, name: &str, count: usize) {
        let started = Instant::now();
        while self.seen(name).len() < count {
            assert!(started.elapsed() < LIMIT, "no {count} signs {name}: {:?}", self.seen(""));
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until the ranks have made `count` signs whose names begin with `name`. Returns these names.
    pub fn wait(&self, job: &Job, name: &str, count: usize) -> Vec<String> {
        job.wait_for(name, || Some(self.seen(name)).filter(|names| names.len() >= count))
    }
}

impl Drop for Signs {
    fn drop(&mut self) {
        // The result is ignored: a folder that stays fails no test.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Checks that `/dev/shm` has no file that is not in `before`. Other programs may make files there for some time, so
/// only a file that stays counts.
pub fn expect_no_shared_name_but(before: &[String]) {
    let started = Instant::now();
    loop {
        let mut names = shared_names();
        names.retain(|name| !before.contains(name));
        if names.is_empty() {
            return;
        }
        assert!(started.elapsed() < LIMIT, "files stay in /dev/shm: {names:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the names of all files in `/dev/shm`.
pub fn shared_names() -> Vec<String> {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Returns true if a thread of the process `pid` sleeps on a futex, as a thread of a waiting rank does.
pub fn sleeps_in_futex(pid: i32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut threads = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
    threads.any(|thread| thread_sleeps_in_futex(pid, thread))
}

/// Returns true if the thread `thread` of the process `pid` sleeps on a futex.
pub fn thread_sleeps_in_futex(pid: i32, thread: i32) -> bool {
    let call = fs::read_to_string(format!("/proc/{pid}/task/{thread}/syscall"));
    call.is_ok_and(|call| call.starts_with(&format!("{} ", libc::SYS_futex)))
}

/// Returns true if the process `pid` has used the CPU for 0.3 s in its own code, as a rank does that computes.
pub fn has_used_cpu(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The field after the name is the third one, and the user time, in hundredths of a second, is the 14th.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let time = fields.split_ascii_whitespace().nth(11).and_then(|time| time.parse::<u32>().ok());
    time.is_some_and(|time| time >= 30)
}
