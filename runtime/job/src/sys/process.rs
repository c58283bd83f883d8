//! Starts, watches and ends processes.
//!
//! The launcher (`launcher/src/start.rs`, `launcher/src/watch.rs`) uses this file, and `shm/attach.rs` uses
//! [`die_with_parent`]. Between `fork` and `execve`, the child makes only raw system calls on data that was
//! prepared before the fork: a thread that does not exist in the child may hold a lock of another library.

use std::ffi::{CStr, CString, c_char};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::io::Errno;
use rustix::process::{self, Pid, PidfdFlags, Resource, Rlimit, Signal, WaitId, WaitIdOptions};

use super::signal::SignalSet;

/// A set of CPUs of any size, by the operating system's numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuSet {
    words: Vec<libc::c_ulong>,
}

const WORD_BITS: usize = libc::c_ulong::BITS as usize;

impl CpuSet {
    /// Makes the set of the given CPUs.
    pub fn new(cpus: &[usize]) -> Self {
        let mut set = Self::default();
        for &cpu in cpus {
            let word = cpu / WORD_BITS;
            if set.words.len() <= word {
                set.words.resize(word + 1, 0);
            }
            set.words[word] |= 1 << (cpu % WORD_BITS);
        }
        set
    }

    /// Returns whether `cpu` is in the set.
    pub fn contains(&self, cpu: usize) -> bool {
        self.words.get(cpu / WORD_BITS).is_some_and(|word| word >> (cpu % WORD_BITS) & 1 != 0)
    }

    /// Returns the CPUs of the set in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.words.len() * WORD_BITS).filter(|&cpu| self.contains(cpu))
    }

    fn bytes(&self) -> usize {
        self.words.len() * size_of::<libc::c_ulong>()
    }
}

/// Returns the CPUs on which this process may run.
///
/// # Errors
///
/// Returns the kernel's error.
pub fn allowed_cpus() -> io::Result<CpuSet> {
    // The kernel refuses a mask that is shorter than its own. 2^18 CPUs are more than Linux can have.
    let mut words = vec![0; 16];
    loop {
        let bytes = words.len() * size_of::<libc::c_ulong>();
        // SAFETY: the kernel writes at most `bytes` bytes, which is the size of `words`.
        let code = unsafe { libc::sched_getaffinity(0, bytes, words.as_mut_ptr().cast()) };
        if code == 0 {
            return Ok(CpuSet { words });
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINVAL) || words.len() > 1 << 12 {
            return Err(error);
        }
        words.resize(words.len() * 2, 0);
    }
}

/// Everything a child needs, prepared before the fork.
#[derive(Debug)]
pub struct Command {
    /// File to execute.
    pub path: CString,
    /// Arguments, the program's name first.
    pub arguments: Vec<CString>,
    /// Environment as `NAME=value`.
    pub environment: Vec<CString>,
    /// Working directory; `None` for this process's directory.
    pub directory: Option<CString>,
    /// CPUs to which the child is bound; `None` for this process's CPUs.
    pub cpus: Option<CpuSet>,
    /// Signals that are blocked in the child.
    pub signals: SignalSet,
    /// Limit on open descriptors in the child.
    pub descriptors: Rlimit,
}

/// The descriptors that a child uses.
#[derive(Clone, Copy, Debug)]
pub struct Descriptors<'a> {
    /// The descriptors that become 0, 1 and 2 in the child.
    pub stdio: [BorrowedFd<'a>; 3],
    /// The descriptors that stay open across the exec under the same numbers.
    pub kept: [BorrowedFd<'a>; 2],
    /// The child waits for one byte from this descriptor before it continues. If the file ends, the child
    /// exits.
    pub gate: BorrowedFd<'a>,
    /// The other end of the gate. The child closes this end; otherwise it would never see the end of the
    /// file.
    pub gate_writer: BorrowedFd<'a>,
    /// A child whose exec fails writes an [`ExecFailure`] to this descriptor, which is close-on-exec.
    pub report: BorrowedFd<'a>,
}

/// The record that a child writes to `report` if it cannot become the program: its number and the error, in
/// native byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecFailure {
    /// The number given to [`spawn`].
    pub number: u32,
    /// The error number.
    pub errno: i32,
}

impl ExecFailure {
    /// Number of bytes of a record. A pipe writes a record of this size in one piece.
    pub const BYTES: usize = 8;

    /// Parses the record in `bytes`.
    pub fn parse(bytes: [u8; Self::BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h] = bytes;
        Self { number: u32::from_ne_bytes([a, b, c, d]), errno: i32::from_ne_bytes([e, f, g, h]) }
    }

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.number.to_ne_bytes());
        bytes[4..].copy_from_slice(&self.errno.to_ne_bytes());
        bytes
    }
}

/// Returns pointers to C strings, with a null pointer at the end.
fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
}

/// Forks a child that waits at its gate and then executes the command.
///
/// The child is the leader of its own process group. It dies with the calling *thread*, so the thread that
/// lives longest must make this call. No other thread may touch the standard descriptors during the call.
///
/// # Errors
///
/// Returns the kernel's error from fork, for example if there are too many processes. Errors in the child
/// come through `report`.
pub fn spawn(command: &Command, number: u32, fds: Descriptors<'_>) -> io::Result<Child> {
    // The shell runs a script without "#!", as in execvp.
    const SHELL: &CStr = c"/bin/sh";
    let arguments = pointers(&command.arguments);
    let mut script = vec![SHELL.as_ptr(), command.path.as_ptr()];
    script.extend(arguments.iter().skip(1));
    let environment = pointers(&command.environment);
    let plan = ChildPlan {
        path: command.path.as_ptr(),
        arguments: arguments.as_ptr(),
        shell: SHELL.as_ptr(),
        script: script.as_ptr(),
        environment: environment.as_ptr(),
        directory: command.directory.as_ref().map_or(std::ptr::null(), |path| path.as_ptr()),
        cpus: command.cpus.as_ref().map(|set| (set.words.as_ptr(), set.bytes())),
        signals: &command.signals.0,
        descriptors: libc::rlimit {
            rlim_cur: command.descriptors.current.unwrap_or(libc::RLIM_INFINITY),
            rlim_max: command.descriptors.maximum.unwrap_or(libc::RLIM_INFINITY),
        },
        stdio: fds.stdio.map(|fd| fd.as_raw_fd()),
        kept: fds.kept.map(|fd| fd.as_raw_fd()),
        gate: fds.gate.as_raw_fd(),
        gate_writer: fds.gate_writer.as_raw_fd(),
        report: fds.report.as_raw_fd(),
        number,
        // SAFETY: getpid has no conditions.
        parent: unsafe { libc::getpid() },
    };
    // SAFETY: the child runs only `ChildPlan::run`, which never returns and calls only async-signal-safe
    // functions on memory that the fork has copied.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: this is the child of a fork, and all pointers of `plan` point to live data of this
        // function.
        unsafe { plan.run() }
    }
    let Some(pid) = (pid > 0).then(|| Pid::from_raw(pid)).flatten() else {
        return Err(io::Error::last_os_error());
    };
    // Parent and child both set the group, so that neither depends on the other. EACCES means that the child
    // has executed the program already, after it set the group itself.
    match process::setpgid(Some(pid), Some(pid)) {
        Ok(()) | Err(Errno::ACCESS | Errno::SRCH) => {}
        Err(error) => {
            let _ = process::kill_process(pid, Signal::KILL);
            return Err(error.into());
        }
    }
    // No one has reaped the child, so the number still belongs to it.
    match process::pidfd_open(pid, PidfdFlags::NONBLOCK) {
        Ok(pidfd) => Ok(Child { pid, pidfd }),
        Err(error) => {
            let _ = process::kill_process(pid, Signal::KILL);
            Err(error.into())
        }
    }
}

/// The data of [`spawn`] for the child, as plain numbers and pointers.
struct ChildPlan {
    path: *const c_char,
    arguments: *const *const c_char,
    shell: *const c_char,
    script: *const *const c_char,
    environment: *const *const c_char,
    /// Null for the current directory.
    directory: *const c_char,
    cpus: Option<(*const libc::c_ulong, usize)>,
    signals: *const libc::sigset_t,
    descriptors: libc::rlimit,
    stdio: [RawFd; 3],
    kept: [RawFd; 2],
    gate: RawFd,
    gate_writer: RawFd,
    report: RawFd,
    number: u32,
    parent: libc::pid_t,
}

impl ChildPlan {
    /// Runs in the child and never returns. It makes only async-signal-safe calls, allocates nothing and
    /// never panics.
    ///
    /// # Safety
    ///
    /// - The caller is a child just made by fork.
    /// - All pointers are valid, and the lists end with null.
    unsafe fn run(&self) -> ! {
        // SAFETY: the calls use descriptors and memory of this process, the pointers are valid (second
        // condition of `# Safety`), and `_exit` ends the process without running any code of the parent.
        unsafe {
            libc::setpgid(0, 0);
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // If the parent died before the line above, the kernel sends no signal.
            if libc::getppid() != self.parent {
                libc::_exit(127);
            }
            libc::close(self.gate_writer);
            let mut byte = 0_u8;
            let passed = loop {
                let got = libc::read(self.gate, (&raw mut byte).cast(), 1);
                if got >= 0 || *libc::__errno_location() != libc::EINTR {
                    break got == 1;
                }
            };
            if !passed {
                libc::_exit(127);
            }
            // All of the launcher's descriptors are above 2, so no dup2 overwrites a later source.
            for (target, &source) in (0..).zip(&self.stdio) {
                if libc::dup2(source, target) == -1 {
                    self.fail();
                }
            }
            for &fd in &self.kept {
                if libc::fcntl(fd, libc::F_SETFD, 0) == -1 {
                    self.fail();
                }
            }
            if !self.directory.is_null() && libc::chdir(self.directory) == -1 {
                self.fail();
            }
            libc::setrlimit(libc::RLIMIT_NOFILE, &self.descriptors);
            if let Some((words, bytes)) = self.cpus {
                // Best effort: if a CPU has gone offline in the meantime, the job still starts.
                libc::sched_setaffinity(0, bytes, words.cast());
            }
            // Rust ignores SIGPIPE at its start; the rank gets the default action again.
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            libc::sigprocmask(libc::SIG_SETMASK, self.signals, std::ptr::null_mut());
            libc::execve(self.path, self.arguments, self.environment);
            if *libc::__errno_location() == libc::ENOEXEC {
                libc::execve(self.shell, self.script, self.environment);
            }
            self.fail()
        }
    }

    /// Reports the error of the last call and ends the child.
    ///
    /// # Safety
    ///
    /// - The caller is [`ChildPlan::run`], in a child just made by fork.
    unsafe fn fail(&self) -> ! {
        // SAFETY: `report` is open in the child, the record is a local array of `BYTES` bytes, and `_exit`
        // runs no code of the parent.
        unsafe {
            let errno = *libc::__errno_location();
            let record = ExecFailure { number: self.number, errno }.to_bytes();
            libc::write(self.report, record.as_ptr().cast(), record.len());
            libc::_exit(127)
        }
    }
}

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The process exited with this code.
    Code(u8),
    /// This signal killed the process.
    Signal(u8),
}

/// A child of this process. It is not reaped on drop.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    pidfd: OwnedFd,
}

impl Child {
    /// Returns the process id, which is also the id of its process group.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns a descriptor that becomes readable when the child has ended.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.pidfd)
    }

    /// Returns how the child ended, or `None` while it runs. The child stays unreaped, so that the kernel
    /// reuses neither its process id nor the id of its group.
    ///
    /// # Errors
    ///
    /// Returns `ECHILD` after [`Child::reap`].
    pub fn ended(&self) -> io::Result<Option<Exit>> {
        self.wait(WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)
    }

    /// Removes the ended child from the process table.
    ///
    /// # Errors
    ///
    /// Returns `ECHILD` if the child has been reaped.
    pub fn reap(&self) -> io::Result<Option<Exit>> {
        self.wait(WaitIdOptions::EXITED | WaitIdOptions::NOHANG)
    }

    fn wait(&self, options: WaitIdOptions) -> io::Result<Option<Exit>> {
        let status = loop {
            match process::waitid(WaitId::Pid(self.pid), options) {
                Err(Errno::INTR) => {}
                other => break other?,
            }
        };
        let low = |n: i32| n.to_le_bytes()[0];
        Ok(status.and_then(|status| {
            let code = status.exit_status().map(|code| Exit::Code(low(code)));
            code.or_else(|| status.terminating_signal().map(|s| Exit::Signal(low(s))))
        }))
    }
}

/// Returns a descriptor that becomes readable when `pid`, a process that is not a child, has ended.
///
/// # Errors
///
/// Returns `ESRCH` if the process is gone already.
pub fn watch(pid: Pid) -> io::Result<OwnedFd> {
    Ok(process::pidfd_open(pid, PidfdFlags::NONBLOCK)?)
}

/// Returns how a process that is not a child ended, if the kernel reports it (Linux 6.15, after the parent of
/// the process has reaped it), and `None` otherwise.
pub fn exit_of(pidfd: BorrowedFd<'_>) -> Option<Exit> {
    /// The first version of `struct pidfd_info`.
    #[repr(C)]
    struct Info {
        mask: u64,
        cgroup: u64,
        ids: [u32; 11],
        exit_code: i32,
    }
    const WANT_EXIT: u64 = 1 << 3;
    const { assert!(size_of::<Info>() == 64) };
    let request = libc::_IOWR::<Info>(0xff, 11);
    let mut info = Info { mask: WANT_EXIT, cgroup: 0, ids: [0; 11], exit_code: 0 };
    // SAFETY: `request` encodes the size of `Info`, and the kernel writes at most as many bytes to `info`.
    let code = unsafe { libc::ioctl(pidfd.as_raw_fd(), request, &raw mut info) };
    if code != 0 || info.mask & WANT_EXIT == 0 {
        return None;
    }
    let status = info.exit_code;
    if libc::WIFSIGNALED(status) {
        u8::try_from(libc::WTERMSIG(status)).ok().map(Exit::Signal)
    } else {
        u8::try_from(libc::WEXITSTATUS(status)).ok().map(Exit::Code)
    }
}

/// Sends `signal` to the process of a descriptor. An ended process is no error.
///
/// # Errors
///
/// Returns `EPERM` if the process runs as another user.
pub fn signal_process(pidfd: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    // This uses libc, because rustix's `Signal` has neither real-time signals nor 0.
    let none = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: a null siginfo is allowed and asks for an ordinary signal.
    let code = unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal, none, 0_u32)
    };
    gone_is_fine(code == 0)
}

/// Sends `signal` (0 to check only) to a process group. An empty group is no error.
///
/// Returns whether the group had any process.
///
/// # Errors
///
/// Returns `EPERM` if all its processes run as another user.
pub fn signal_group(group: Pid, signal: i32) -> io::Result<bool> {
    // SAFETY: kill touches no memory. A `Pid` is positive, so `-group` is one group and never all processes.
    if unsafe { libc::kill(-group.as_raw_nonzero().get(), signal) } == 0 {
        return Ok(true);
    }
    gone_is_fine(false).map(|()| false)
}

/// Returns whether a process of any of `groups` runs. A process that has ended but was not reaped does not
/// count. A check with signal 0 is not enough: in a container whose first process reaps nothing, orphans
/// stay unreaped for ever, and signal 0 still finds their group.
///
/// If `/proc` cannot be read, every process that has not been reaped counts as running.
pub fn any_group_runs(groups: impl IntoIterator<Item = Pid>) -> bool {
    let taken = |group: &Pid| signal_group(*group, 0).unwrap_or(false);
    let groups: Vec<Pid> = groups.into_iter().filter(taken).collect();
    if groups.is_empty() {
        return false;
    }
    let Ok(entries) = std::fs::read_dir("/proc") else { return true };
    let runs = |entry: std::fs::DirEntry| {
        // If the read fails, the entry is not a process, or the process has gone.
        let stat = std::fs::read(entry.path().join("stat")).ok()?;
        // The format is "pid (name) state parent group ...", and the name may contain any byte.
        let after = memchr::memrchr(b')', &stat)? + 1;
        let mut fields = std::str::from_utf8(&stat[after..]).ok()?.split_ascii_whitespace();
        let (state, group) = (fields.next()?, fields.nth(1)?.parse().ok()?);
        let group = Pid::from_raw(group)?;
        Some(groups.contains(&group) && !matches!(state, "Z" | "X"))
    };
    entries.flatten().filter_map(runs).any(|runs| runs)
}

fn gone_is_fine(done: bool) -> io::Result<()> {
    if done {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::ESRCH) { Ok(()) } else { Err(error) }
}

/// Stops this process until another process continues it.
pub fn stop_self() {
    // SAFETY: kill touches no memory, and SIGSTOP to the own process cannot fail.
    unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
}

/// Makes the kernel kill this process when the thread that forked it ends.
///
/// # Errors
///
/// Returns the kernel's error; none is known.
pub fn die_with_parent() -> io::Result<()> {
    Ok(process::set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Ends this process at once with this exit code. Only the C library's buffers are flushed first; no other
/// code runs.
pub fn end(code: i32) -> ! {
    // SAFETY: fflush allows a null stream, which means all streams.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    // SAFETY: `_exit` has no conditions.
    unsafe { libc::_exit(code) }
}

/// Returns this process's id.
pub fn own_id() -> i32 {
    process::getpid().as_raw_nonzero().get()
}

/// Returns the id of this process's group.
pub fn own_group() -> i32 {
    process::getpgrp().as_raw_nonzero().get()
}

/// Raises the soft limit on open descriptors to the hard limit, and returns the old limits.
pub fn raise_descriptor_limit() -> Rlimit {
    let old = process::getrlimit(Resource::Nofile);
    // Best effort: without the higher limit a large job fails with EMFILE.
    let _ =
        process::setrlimit(Resource::Nofile, Rlimit { current: old.maximum, maximum: old.maximum });
    old
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_sets_of_any_size() {
        let set = CpuSet::new(&[0, 63, 64, 1000]);
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 1000]);
        assert!(!set.contains(1) && !set.contains(100_000));
        assert!(allowed_cpus().expect("affinity").iter().count() > 0);
    }

    #[test]
    fn a_group_of_the_dead_does_not_run() {
        use std::os::unix::process::CommandExt;
        let mut command = std::process::Command::new("sleep");
        let mut child = command.arg("100").process_group(0).spawn().expect("a child");
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a number");
        assert!(any_group_runs([group]));
        child.kill().expect("a signal");
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        process::waitid(WaitId::Pid(group), ended).expect("its end");
        assert!(signal_group(group, 0).expect("an answer"), "a zombie has no number");
        assert!(!any_group_runs([group]));
        child.wait().expect("reaped");
        assert!(!any_group_runs([group]));
    }

    #[test]
    fn exec_failures_survive_the_pipe() {
        let failure = ExecFailure { number: 77, errno: libc::EACCES };
        assert_eq!(ExecFailure::parse(failure.to_bytes()), failure);
    }
}
