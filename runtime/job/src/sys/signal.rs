//! Signals as data: the launcher's signals arrive through a descriptor, none through a handler.
//!
//! Used by `launcher/src/watch.rs`; [`name`] also by whoever tells of a killed rank. No function
//! here installs a handler.

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
    /// The set of the given signal numbers; numbers that are no signals are left out.
    pub fn new(signals: &[i32]) -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: sigemptyset initialises the whole set it is given.
        let mut set = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            set.assume_init()
        };
        for &signal in signals {
            // SAFETY: an initialised set; a bad number is answered by EINVAL and changes nothing.
            unsafe { libc::sigaddset(&mut set, signal) };
        }
        Self(set)
    }

    /// Whether `signal` is in the set.
    pub fn contains(&self, signal: i32) -> bool {
        // SAFETY: an initialised set; a bad number is answered by -1.
        unsafe { libc::sigismember(&self.0, signal) == 1 }
    }
}

/// Blocks `set` in this thread in addition to what is blocked, and returns what was blocked.
///
/// # Errors
///
/// None for a valid set.
pub fn block(set: &SignalSet) -> io::Result<SignalSet> {
    let mut old = SignalSet::new(&[]);
    // SAFETY: both sets are initialised and live over the call.
    let code = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set.0, &mut old.0) };
    if code == 0 { Ok(old) } else { Err(io::Error::from_raw_os_error(code)) }
}

/// Whether the program was started with `signal` ignored, as `nohup` does with SIGHUP.
pub fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null new action only reads; `action` is large enough, and zeroed, should the call
    // fail, reads as the default action.
    let action = unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
        action.assume_init()
    };
    action.sa_sigaction == libc::SIG_IGN
}

/// Gives `signal` its usual meaning back, whatever this process was started with.
pub fn restore(signal: i32) {
    // SAFETY: the default action runs no code of ours; a bad number is answered by SIG_ERR.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// A descriptor from which the blocked signals of `set` can be read; close-on-exec, non-blocking.
///
/// # Errors
///
/// The kernel's answer when descriptors have run out.
pub fn descriptor(set: &SignalSet) -> io::Result<OwnedFd> {
    // SAFETY: an initialised set; -1 asks for a new descriptor.
    let fd = unsafe { libc::signalfd(-1, &set.0, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made and owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The next signal that waits in `fd`, `None` when there is none.
///
/// # Errors
///
/// The kernel's answer when `fd` is no signal descriptor.
pub fn next(fd: BorrowedFd<'_>) -> io::Result<Option<i32>> {
    let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
    let len = size_of::<libc::signalfd_siginfo>();
    loop {
        // SAFETY: `info` has room for `len` bytes.
        let got = unsafe { libc::read(fd.as_raw_fd(), info.as_mut_ptr().cast(), len) };
        if usize::try_from(got) == Ok(len) {
            // SAFETY: zeroed at first and filled by the kernel; integers only.
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

/// The name of a signal, `SIGKILL` for 9; `None` for real-time signals and numbers that are none.
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
    fn sets_hold_what_was_put_in() {
        let set = SignalSet::new(&[libc::SIGINT, 1000]);
        assert!(set.contains(libc::SIGINT) && !set.contains(libc::SIGTERM));
        assert_eq!(format!("{set:?}"), "{2}");
    }
}
