//! Signals without handlers: the launcher blocks its signals and reads them from a descriptor. A thread can block one
//! signal for a while ([`Withheld`]) or unblock it for a while ([`Admitted`]).
//!
//! The launcher uses this file (`launcher/src/main.rs`, `launcher/src/watch/`), and all messages about
//! killed ranks use [`name`]. `files.rs` blocks the signals that its own system calls raise. A thread that copies to
//! or from a mapping of `mapped.rs` unblocks SIGBUS.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A set of signals.
#[derive(Clone, Copy)]
pub struct SignalSet(pub libc::sigset_t);

impl std::fmt::Debug for SignalSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries((1..=64).filter(|&s| self.contains(s))).finish()
    }
}

impl SignalSet {
    /// Makes the set of the given signals. Numbers that are not signals are ignored.
    pub fn new(signals: &[i32]) -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: sigemptyset initialises the whole set behind the pointer, and `set` has room for it.
        let mut set = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            set.assume_init()
        };
        for &signal in signals {
            // SAFETY: `set` is initialised. For a number that is not a signal, the call returns an error and
            // changes nothing.
            unsafe { libc::sigaddset(&mut set, signal) };
        }
        Self(set)
    }

    /// Returns true if `signal` is in the set.
    pub fn contains(&self, signal: i32) -> bool {
        // SAFETY: the set is initialised. For a number that is not a signal, the call returns -1.
        unsafe { libc::sigismember(&self.0, signal) == 1 }
    }
}

/// Blocks the signals of `set` in this thread, in addition to those already blocked. Returns the set of
/// signals that were blocked before the call.
///
/// # Errors
///
/// Returns the kernel's error; the call does not fail for a valid set.
pub fn block(set: &SignalSet) -> io::Result<SignalSet> {
    let mut old = SignalSet::new(&[]);
    // SAFETY: both sets are initialised and outlive the call.
    let code = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set.0, &mut old.0) };
    if code == 0 { Ok(old) } else { Err(io::Error::from_raw_os_error(code)) }
}

/// Blocks exactly the signals of `set` in this thread.
pub fn set_mask(set: &SignalSet) {
    // SAFETY: the set is initialised and outlives the call. The null pointer asks for no copy of the old set.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &set.0, std::ptr::null_mut()) };
}

/// While this value lives, this thread does not block a certain signal. Dropping the value blocks the signal again if
/// the thread blocked the signal before the value was made.
#[derive(Debug)]
pub struct Admitted(Option<SignalSet>);

impl Admitted {
    /// Lets `signal` reach this thread.
    pub fn new(signal: i32) -> Self {
        let mut old = SignalSet::new(&[]);
        let set = SignalSet::new(&[signal]);
        // SAFETY: both sets are initialised and outlive the call.
        let code = unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &set.0, &mut old.0) };
        Self((code == 0 && old.contains(signal)).then_some(old))
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if let Some(old) = &self.0 {
            set_mask(old);
        }
    }
}

/// While this value lives, this thread does not get a certain signal that its own system calls raise (SIGPIPE or
/// SIGXFSZ). If the signal arrives while the value lives, it is lost. If the signal was pending before, it stays
/// pending.
#[derive(Debug)]
pub struct Withheld {
    signal: i32,
    old: Option<SignalSet>,
    pending: bool,
}

impl Withheld {
    /// Blocks `signal` in this thread.
    pub fn new(signal: i32) -> Self {
        let pending = is_pending(signal);
        Self { signal, old: block(&SignalSet::new(&[signal])).ok(), pending }
    }
}

impl Drop for Withheld {
    fn drop(&mut self) {
        let Some(old) = &self.old else { return };
        if !self.pending && is_pending(self.signal) {
            let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            let set = SignalSet::new(&[self.signal]);
            // SAFETY: the set and the time are initialised and outlive the call. With a time of zero,
            // sigtimedwait does not wait, and it fails if no signal is pending. The null pointer asks for no
            // information about the signal.
            unsafe { libc::sigtimedwait(&set.0, std::ptr::null_mut(), &none) };
        }
        if !old.contains(self.signal) {
            set_mask(old);
        }
    }
}

/// Returns whether `signal` is blocked and pending for this thread or for the process.
fn is_pending(signal: i32) -> bool {
    let mut set = SignalSet::new(&[]);
    // SAFETY: the set is initialised and outlives the call, which writes the set.
    unsafe { libc::sigpending(&mut set.0) == 0 && set.contains(signal) }
}

/// Returns true if this process ignores `signal`, for example because `nohup` started the program with
/// SIGHUP ignored.
pub fn is_ignored(signal: i32) -> bool {
    action(signal) == libc::SIG_IGN
}

/// Returns true if `signal` has its default action in this process, and this thread does not block it.
pub fn has_default_action(signal: i32) -> bool {
    let blocked = || block(&SignalSet::new(&[])).is_ok_and(|set| set.contains(signal));
    action(signal) == libc::SIG_DFL && !blocked()
}

/// Returns the action of a signal: SIG_DFL, SIG_IGN, or the address of a handler.
fn action(signal: i32) -> libc::sighandler_t {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: with a null pointer for the new action, the call only writes the current action to `action`,
    // which has room for it. If the call fails, `action` stays zeroed, and zeros are a valid `sigaction` (the
    // default action).
    let action = unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
        action.assume_init()
    };
    action.sa_sigaction
}

/// Restores the default action of `signal`.
pub fn restore(signal: i32) {
    // SAFETY: the default action runs no code of this process. For a number that is not a signal, the call
    // returns SIG_ERR.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// Returns a descriptor from which the blocked signals of `set` can be read. The descriptor is close-on-exec
/// and non-blocking.
///
/// # Errors
///
/// Returns the kernel's error if there are no more descriptors.
pub fn descriptor(set: &SignalSet) -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised, and -1 asks for a new descriptor.
    let fd = unsafe { libc::signalfd(-1, &set.0, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: signalfd has just made `fd`, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Reads the next pending signal from `fd`. Returns `None` if no signal is pending.
///
/// # Errors
///
/// Returns the kernel's error if `fd` is not a signal descriptor.
pub fn next(fd: BorrowedFd<'_>) -> io::Result<Option<i32>> {
    let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
    let len = size_of::<libc::signalfd_siginfo>();
    loop {
        // SAFETY: `info` has room for `len` bytes, and `fd` is open.
        let got = unsafe { libc::read(fd.as_raw_fd(), info.as_mut_ptr().cast(), len) };
        if usize::try_from(got) == Ok(len) {
            // SAFETY: `info` was zeroed and then filled by the kernel, and it consists only of integers.
            let signal = unsafe { info.assume_init() }.ssi_signo;
            return Ok(i32::try_from(signal).ok());
        }
        let error = io::Error::last_os_error();
        match error.kind() {
            io::ErrorKind::Interrupted => {}
            io::ErrorKind::WouldBlock => return Ok(None),
            _ if got >= 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            _ => return Err(error),
        }
    }
}

/// Returns the name of a signal, such as `SIGKILL` for 9; `None` for real-time signals and other numbers.
pub fn name(signal: i32) -> Option<&'static str> {
    let known = [
        (libc::SIGHUP, "SIGHUP"),
        (libc::SIGINT, "SIGINT"),
        (libc::SIGQUIT, "SIGQUIT"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGTRAP, "SIGTRAP"),
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGKILL, "SIGKILL"),
        (libc::SIGUSR1, "SIGUSR1"),
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGUSR2, "SIGUSR2"),
        (libc::SIGPIPE, "SIGPIPE"),
        (libc::SIGALRM, "SIGALRM"),
        (libc::SIGTERM, "SIGTERM"),
        (libc::SIGCHLD, "SIGCHLD"),
        (libc::SIGCONT, "SIGCONT"),
        (libc::SIGSTOP, "SIGSTOP"),
        (libc::SIGTSTP, "SIGTSTP"),
        (libc::SIGTTIN, "SIGTTIN"),
        (libc::SIGTTOU, "SIGTTOU"),
        (libc::SIGURG, "SIGURG"),
        (libc::SIGXCPU, "SIGXCPU"),
        (libc::SIGXFSZ, "SIGXFSZ"),
        (libc::SIGVTALRM, "SIGVTALRM"),
        (libc::SIGPROF, "SIGPROF"),
        (libc::SIGWINCH, "SIGWINCH"),
        (libc::SIGIO, "SIGIO"),
        (libc::SIGSYS, "SIGSYS"),
    ];
    known.iter().find(|(number, _)| *number == signal).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(name(9), Some("SIGKILL"));
        assert_eq!(name(11), Some("SIGSEGV"));
        assert_eq!(name(0), None);
        assert_eq!(name(64), None);
    }

    #[test]
    fn a_signal_is_withheld_once() {
        let raise = || {
            // SAFETY: `raise` sends a signal that this thread blocks at this time.
            assert_eq!(unsafe { libc::raise(libc::SIGUSR2) }, 0);
        };
        drop((Withheld::new(libc::SIGUSR2), raise()));
        assert!(!is_pending(libc::SIGUSR2));
        let old = block(&SignalSet::new(&[libc::SIGUSR2])).expect("a mask");
        drop((Withheld::new(libc::SIGUSR2), raise()));
        assert!(!is_pending(libc::SIGUSR2));
        raise();
        drop(Withheld::new(libc::SIGUSR2));
        assert!(is_pending(libc::SIGUSR2), "a signal of the program is lost");
        // The signal is still pending, because it was pending before the last `Withheld` was made. Consume it.
        let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let set = SignalSet::new(&[libc::SIGUSR2]);
        // SAFETY: the set and the time are initialised and outlive the call. The null pointer asks for no information.
        unsafe { libc::sigtimedwait(&set.0, std::ptr::null_mut(), &none) };
        set_mask(&old);
    }

    #[test]
    fn a_signal_is_admitted_for_a_while() {
        let blocked = || {
            let old = block(&SignalSet::new(&[])).expect("a mask");
            old.contains(libc::SIGUSR2)
        };
        let old = block(&SignalSet::new(&[libc::SIGUSR2])).expect("a mask");
        let admitted = Admitted::new(libc::SIGUSR2);
        assert!(!blocked());
        drop(admitted);
        assert!(blocked());
        set_mask(&old);
        drop(Admitted::new(libc::SIGUSR2));
        assert!(!blocked());
    }

    #[test]
    fn actions() {
        assert!(!is_ignored(libc::SIGURG) && has_default_action(libc::SIGURG));
        let old = block(&SignalSet::new(&[libc::SIGURG])).expect("a mask");
        assert!(!has_default_action(libc::SIGURG));
        set_mask(&old);
        // The Rust runtime ignores SIGPIPE.
        assert!(is_ignored(libc::SIGPIPE) && !has_default_action(libc::SIGPIPE));
    }

    #[test]
    fn sets_hold_what_was_put_in() {
        let set = SignalSet::new(&[libc::SIGINT, 1000]);
        assert!(set.contains(libc::SIGINT) && !set.contains(libc::SIGTERM));
        assert_eq!(format!("{set:?}"), "{2}");
    }
}
