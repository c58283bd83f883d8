//! Starts, watches and ends processes.
//!
//! The launcher uses most of this file, to start the ranks and to watch them. `shm/attach.rs` and the
//! runtime use the functions that concern their own process, such as [`own_group`]. Between `fork`
//! and `execve`, the child makes only async-signal-safe calls on data that was prepared before the fork. Any other
//! function might wait for ever for a library's lock that was held, at the time of the fork, by a thread
//! that does not exist in the child.

use std::ffi::{CStr, CString, c_char};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{self, Pid, PidfdFlags, Resource, Rlimit, Signal, WaitId, WaitIdOptions};

use super::poll::{self, PollFd, PollFlags};
use super::signal::SignalSet;

/// A set of CPUs, identified by the operating system's CPU numbers. The numbers may be arbitrarily large.
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

    /// Returns true if `cpu` is in the set.
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
    allowed_cpus_of(0)
}

/// Returns the CPUs on which the process `pid` may run. The number 0 means this process.
///
/// # Errors
///
/// Returns the kernel's error, for example `ESRCH` if there is no such process.
pub fn allowed_cpus_of(pid: i32) -> io::Result<CpuSet> {
    // The kernel refuses a mask that is shorter than its own mask. So try longer and longer masks, up to
    // 2^19 CPUs; Linux supports fewer.
    let mut words = vec![0; 16];
    loop {
        let bytes = words.len() * size_of::<libc::c_ulong>();
        // SAFETY: the kernel writes at most `bytes` bytes, and `words` has `bytes` bytes.
        let code = unsafe { libc::sched_getaffinity(pid, bytes, words.as_mut_ptr().cast()) };
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

/// Lets this process run on the CPUs of `set`, as far as the system has them and allows them.
///
/// # Errors
///
/// Returns the kernel's error, for example `EINVAL` if the system allows none of the CPUs.
pub fn run_on(set: &CpuSet) -> io::Result<()> {
    // SAFETY: the kernel reads `bytes` bytes, and `words` has that many.
    let code = unsafe { libc::sched_setaffinity(0, set.bytes(), set.words.as_ptr().cast()) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Everything that a child needs to execute a program, prepared before the fork.
#[derive(Debug)]
pub struct Command {
    /// Path of the file to execute.
    pub path: CString,
    /// Arguments of the program. The first one is the program's name.
    pub arguments: Vec<CString>,
    /// Environment of the program, one string `NAME=value` for each variable.
    pub environment: Vec<CString>,
    /// Working directory of the child, or `None` for the working directory of this process.
    pub directory: Option<CString>,
    /// CPUs to which the child is bound, or `None` if the child may use the same CPUs as this process.
    pub cpus: Option<CpuSet>,
    /// Signals that are blocked when the program starts.
    pub signals: SignalSet,
    /// Limits on the number of open descriptors of the child.
    pub descriptors: Rlimit,
}

/// The descriptors that a child uses.
#[derive(Clone, Copy, Debug)]
pub struct Descriptors<'a> {
    /// The descriptors that become 0, 1 and 2 in the child.
    pub stdio: [BorrowedFd<'a>; 3],
    /// The descriptors that stay open across the exec under the same numbers.
    pub kept: [BorrowedFd<'a>; 2],
    /// The child waits for one byte from this descriptor before it continues. If it reads end-of-file
    /// instead, the child exits.
    pub gate: BorrowedFd<'a>,
    /// The writing end of the pipe whose reading end is `gate`. The child closes its copy of the writing end;
    /// otherwise it could never read end-of-file from `gate`.
    pub gate_writer: BorrowedFd<'a>,
    /// If the child cannot execute the program, it writes an [`ExecFailure`] to this descriptor. The
    /// descriptor is close-on-exec.
    pub report: BorrowedFd<'a>,
}

/// The record that a child writes to the descriptor `Descriptors::report` if it cannot execute the program.
/// The child writes the two numbers in native byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecFailure {
    /// The number of the child, as given to [`spawn`].
    pub number: u32,
    /// The error number (`errno`).
    pub errno: i32,
}

impl ExecFailure {
    /// Size of a record in bytes. A write of this size to a pipe is atomic, so records of several children do
    /// not mix.
    pub const BYTES: usize = 8;

    /// Makes a record from its bytes in the pipe.
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

/// Returns pointers to the C strings, followed by a null pointer.
fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
}

/// Forks a child that waits for a byte from its gate (`Descriptors::gate`) and then executes the command.
/// `number` identifies the child in the [`ExecFailure`] that it may write.
///
/// The child is the leader of its own process group. The kernel kills the child when the calling *thread*
/// ends, so the calling thread must live at least as long as the child should. No other thread may change the
/// standard descriptors during the call.
///
/// # Errors
///
/// Returns the kernel's error if a system call of this process fails, for example if the fork fails because
/// there are too many processes. The child reports its own errors through `report`.
pub fn spawn(command: &Command, number: u32, fds: Descriptors<'_>) -> io::Result<Child> {
    // If the file is a script without "#!", let the shell run it, as `execvp` does.
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
    // SAFETY: the child runs only `ChildPlan::run`. That function never returns, and calls only
    // async-signal-safe functions on memory that the fork has copied.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: this process is the child just forked. All pointers of `plan` point to live data of this
        // function, and the lists end with null.
        unsafe { plan.run() }
    }
    let Some(pid) = (pid > 0).then(|| Pid::from_raw(pid)).flatten() else {
        return Err(io::Error::last_os_error());
    };
    // The parent and the child both set the group, so that neither has to wait for the other. EACCES means
    // that the child has already passed its exec, and it set the group itself before the exec.
    match process::setpgid(Some(pid), Some(pid)) {
        Ok(()) | Err(Errno::ACCESS | Errno::SRCH) => {}
        Err(error) => {
            let _ = process::kill_process(pid, Signal::KILL);
            return Err(error.into());
        }
    }
    // No one has reaped the child yet, so the kernel cannot have given `pid` to another process.
    match process::pidfd_open(pid, PidfdFlags::NONBLOCK) {
        Ok(pidfd) => Ok(Child { pid, pidfd }),
        Err(error) => {
            let _ = process::kill_process(pid, Signal::KILL);
            Err(error.into())
        }
    }
}

/// The data that [`spawn`] passes to the child, as plain numbers and pointers.
struct ChildPlan {
    path: *const c_char,
    arguments: *const *const c_char,
    shell: *const c_char,
    script: *const *const c_char,
    environment: *const *const c_char,
    /// Null if the child keeps the current directory.
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
    /// Waits at the gate, prepares the child, and executes the program. Never returns: if a step fails, the
    /// child exits. The function makes only async-signal-safe calls, allocates nothing and never panics.
    ///
    /// # Safety
    ///
    /// - The calling process is a child that has just been forked.
    /// - All pointers of `self` are valid, and the lists end with null.
    unsafe fn run(&self) -> ! {
        // SAFETY: the calls use descriptors and memory of this process, and the caller guarantees that the
        // pointers are valid (second condition of `# Safety`). `_exit` ends the process without running any
        // code of the parent.
        unsafe {
            libc::setpgid(0, 0);
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // If the parent died before the call of `prctl` above, the kernel does not send SIGKILL, so check
            // here whether the parent is still alive.
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
            // The descriptors in `stdio` belong to the launcher and are all above 2. So no dup2 overwrites a
            // descriptor that a later dup2 copies.
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
                // Ignore errors: if a CPU has gone offline in the meantime, the job still starts.
                libc::sched_setaffinity(0, bytes, words.cast());
            }
            // Rust's startup code made mpiexec ignore SIGPIPE. Restore the default action for the rank's
            // program.
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            libc::sigprocmask(libc::SIG_SETMASK, self.signals, std::ptr::null_mut());
            libc::execve(self.path, self.arguments, self.environment);
            if *libc::__errno_location() == libc::ENOEXEC {
                libc::execve(self.shell, self.script, self.environment);
            }
            self.fail()
        }
    }

    /// Writes the error of the last system call to `report`, and ends the child.
    ///
    /// # Safety
    ///
    /// - The caller is [`ChildPlan::run`], in a child that has just been forked.
    unsafe fn fail(&self) -> ! {
        // SAFETY: `report` is open in the child, and the record is a local array whose true length is passed.
        // `_exit` runs no code of the parent.
        unsafe {
            let errno = *libc::__errno_location();
            let record = ExecFailure { number: self.number, errno }.to_bytes();
            libc::write(self.report, record.as_ptr().cast(), record.len());
            libc::_exit(127)
        }
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The process exited with this code.
    Code(u8),
    /// This signal killed the process.
    Signal(u8),
}

/// A child of this process. Dropping the value does not reap the child.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    pidfd: OwnedFd,
}

impl Child {
    /// Returns the child's process id. It is also the id of the child's process group.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns a descriptor that becomes readable when the child has ended.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.pidfd)
    }

    /// Returns how the child ended, or `None` while it runs. The child is not reaped, so the kernel does not
    /// reuse its process id or the id of its group.
    ///
    /// # Errors
    ///
    /// Returns `ECHILD` if [`Child::reap`] has reaped the child.
    pub fn ended(&self) -> io::Result<Option<Exit>> {
        self.wait(WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)
    }

    /// Reaps the child if it has ended: removes it from the process table, and returns how it ended. Returns
    /// `None` while the child runs.
    ///
    /// # Errors
    ///
    /// Returns `ECHILD` if the child has been reaped already.
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

/// Returns a descriptor that becomes readable when process `pid` has ended. The process need not be a child.
///
/// # Errors
///
/// Returns `ESRCH` if the process has ended and was reaped.
pub fn watch(pid: Pid) -> io::Result<OwnedFd> {
    Ok(process::pidfd_open(pid, PidfdFlags::NONBLOCK)?)
}

/// Returns true if the process that `pidfd` refers to has ended.
pub fn has_ended(pidfd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(pidfd, PollFlags::IN)];
    poll::wait(&mut fds, Some(Duration::ZERO)).is_ok() && !fds[0].revents().is_empty()
}

/// Returns how a process that is not a child ended, or `None` if the kernel does not report it. Linux 6.15
/// and later report it once the parent of the process has reaped the process.
pub fn exit_of(pidfd: BorrowedFd<'_>) -> Option<Exit> {
    /// The kernel's `struct pidfd_info` in its first version.
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
    // SAFETY: `request` encodes the size of `Info`, and the kernel writes at most that many bytes to `info`.
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

/// Sends `signal` to the process that `pidfd` refers to. It is not an error if the process has ended.
///
/// # Errors
///
/// Returns `EPERM` if the process runs as another user.
pub fn signal_process(pidfd: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    // This code uses libc, because rustix's `Signal` has neither real-time signals nor 0.
    let none = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: a null pointer for the siginfo is allowed, and asks for an ordinary signal.
    let code = unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal, none, 0_u32)
    };
    gone_is_fine(code == 0)
}

/// Sends `signal` to a process group. If `signal` is 0, sends nothing and only checks whether the group
/// exists. Returns true if the group has any process; an empty group is not an error.
///
/// # Errors
///
/// Returns `EPERM` if all processes of the group run as another user.
pub fn signal_group(group: Pid, signal: i32) -> io::Result<bool> {
    // SAFETY: kill touches no memory of this process. A `Pid` is positive, so `-group` names one group and
    // never all processes.
    if unsafe { libc::kill(-group.as_raw_nonzero().get(), signal) } == 0 {
        return Ok(true);
    }
    gone_is_fine(false).map(|()| false)
}

/// Ends the process group that a child of the standard library leads (`CommandExt::process_group(0)`). The child must not
/// have been reaped yet, or its id may be that of another group.
pub fn end_group_of(child: &std::process::Child) {
    // If the group is gone, there is nothing to end.
    let _gone = signal_group(Pid::from_child(child), libc::SIGKILL);
}

/// Returns true if a process of any of `groups` is still running. A process that has ended but was not reaped
/// does not count as running. Therefore a check with signal 0 is not enough: in a container whose init
/// process reaps nothing, orphans stay unreaped for ever, and a check with signal 0 still finds their group.
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
        // Skip the entry if the read fails: the entry is not a process, or the process has been reaped.
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

/// Stops this process until another process sends it SIGCONT.
pub fn stop_self() {
    // SAFETY: kill touches no memory. A process may always send SIGSTOP to itself.
    unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
}

/// Ends this process at once with the exit code `code`. The function flushes the C library's buffers first,
/// but runs no other code at exit.
pub fn end(code: i32) -> ! {
    // SAFETY: fflush accepts a null pointer, which stands for all streams.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    // SAFETY: `_exit` has no conditions.
    unsafe { libc::_exit(code) }
}

/// Returns this process's id.
pub fn own_id() -> i32 {
    process::getpid().as_raw_nonzero().get()
}

/// Returns the number that the kernel gives to the current thread.
pub fn thread_id() -> u32 {
    thread_local! {
        static OWN: u32 = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    }
    OWN.with(|own| *own)
}

/// Returns the id of this process's group.
pub fn own_group() -> i32 {
    process::getpgrp().as_raw_nonzero().get()
}

/// Raises the soft limit on open descriptors to the hard limit, and returns the old limits.
pub fn raise_descriptor_limit() -> Rlimit {
    let old = process::getrlimit(Resource::Nofile);
    // Ignore errors: without the higher limit, only large jobs fail, with EMFILE.
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
