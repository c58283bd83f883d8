//! The control socket between `mpiexec` and one rank.
//!
//! The launcher makes a socket pair (`launcher/src/start.rs`), and the rank inherits one end
//! (`shm/attach.rs`). The socket carries a single message, by which a process tells the launcher that it has
//! joined the job as the rank. When the launcher dies, for whatever reason, the kernel closes the launcher's
//! end and sends SIGKILL to the rank's process group ([`arm`]). This needs no thread and no signal handler.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::io::{Errno, FdFlags};
use rustix::net::{
    self, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, Shutdown,
    SocketFlags, SocketType, sockopt,
};

use super::poll::{self, PollFd, PollFlags};

/// `F_SETSIG` of `<fcntl.h>`. It has this value on x86-64 and on AArch64, where the libc crate does not
/// define it.
const F_SETSIG: i32 = 10;

/// The one byte that a process sends over the control socket to say that it has joined the job. The kernel
/// adds the identity of the sender.
const REGISTER: u8 = b'R';

/// The launcher's end of a control socket. The launcher reads it and never writes to it: data that arrive at the rank's
/// end would make the kernel send the signal of [`arm`]. The value has no way to write, and the kernel refuses what is
/// written through its descriptor, which is there to wait for something to read.
#[derive(Debug)]
pub struct LauncherEnd(OwnedFd);

impl AsFd for LauncherEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl LauncherEnd {
    /// Returns the id of a process that has registered since the last call of this function, or `None` if no process
    /// has done so. The id is the one that the process has in the launcher's PID namespace.
    ///
    /// # Errors
    ///
    /// Returns `InvalidData` if the message is not one that a rank of this build sends, and otherwise the kernel's
    /// error.
    pub fn registered(&self) -> io::Result<Option<rustix::process::Pid>> {
        registered(self.0.as_fd())
    }
}

/// Makes a control socket. Returns the launcher's end and the rank's end; both are close-on-exec.
///
/// # Errors
///
/// Returns the kernel's error, for example if there are no more descriptors.
pub fn pair() -> io::Result<(LauncherEnd, OwnedFd)> {
    let (ours, theirs) = net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    // With this option the kernel attaches the sender's true process id to each message.
    sockopt::set_socket_passcred(&ours, true)?;
    net::shutdown(&ours, Shutdown::Write)?;
    Ok((LauncherEnd(ours), theirs))
}

/// Returns true if `fd` is a socket of the type that [`pair`] makes.
pub fn is_control(fd: BorrowedFd<'_>) -> bool {
    sockopt::socket_type(fd) == Ok(SocketType::SEQPACKET)
        && sockopt::socket_domain(fd) == Ok(AddressFamily::UNIX)
}

/// Makes the kernel send SIGKILL to `target` as soon as the other end of `fd` closes.
///
/// `target` is a process id, or the negated id of a process group. The setting belongs to the open file, not
/// to the descriptor. So if the launcher makes the setting through its own copy of the rank's end, the
/// setting also holds for every process that inherits that end. Arriving data would also make the kernel send the
/// signal, so a [`LauncherEnd`] cannot be written to.
///
/// # Errors
///
/// Returns the kernel's error, for example `ESRCH` if there is no such process or process group.
pub fn arm(fd: BorrowedFd<'_>, target: i32) -> io::Result<()> {
    // This code uses libc, because rustix has neither F_SETOWN nor F_SETSIG.
    // SAFETY: `fd` is open. With these commands, fcntl takes an integer and touches no memory of this process.
    let done = unsafe {
        libc::fcntl(fd.as_raw_fd(), libc::F_SETOWN, target) != -1
            && libc::fcntl(fd.as_raw_fd(), F_SETSIG, libc::SIGKILL) != -1
    };
    if !done {
        return Err(io::Error::last_os_error());
    }
    set_async(fd, true)
}

/// Reverts [`arm`], so that the process or the group survives when the launcher ends.
///
/// # Errors
///
/// Returns the kernel's error; the call does not fail for an open socket.
pub fn disarm(fd: BorrowedFd<'_>) -> io::Result<()> {
    set_async(fd, false)
}

fn set_async(fd: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    // This code uses libc, because rustix's OFlags has no ASYNC on Linux.
    // SAFETY: `fd` is open, and F_GETFL takes no further argument.
    let flags = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) };
    if flags == -1 {
        return Err(io::Error::last_os_error());
    }
    let flags = if on { flags | libc::O_ASYNC } else { flags & !libc::O_ASYNC };
    // SAFETY: `fd` is open, and F_SETFL takes the integer `flags`.
    if unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags) } == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Tells the launcher that this process has joined the job as the rank that owns this end of the socket.
///
/// # Errors
///
/// Returns the kernel's error: `EPIPE` or `ECONNRESET` if the launcher has ended.
pub fn register(fd: BorrowedFd<'_>) -> io::Result<()> {
    loop {
        match net::send(fd, &[REGISTER], SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            other => return Ok(other.map(drop)?),
        }
    }
}

/// Does what [`LauncherEnd::registered`] does.
fn registered(fd: BorrowedFd<'_>) -> io::Result<Option<rustix::process::Pid>> {
    let mut byte = [0_u8; 2];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = loop {
        match net::recvmsg(fd, &mut [IoSliceMut::new(&mut byte)], &mut control, flags) {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN | Errno::CONNRESET) => return Ok(None),
            other => break other?,
        }
    };
    if received.bytes == 0 {
        return Ok(None);
    }
    let sender = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmCredentials(who) => Some(who.pid),
        _ => None,
    });
    match sender {
        Some(pid) if received.bytes == 1 && byte[0] == REGISTER => Ok(Some(pid)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Returns true if the other end of `fd` is closed.
pub fn is_closed(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::empty())];
    poll::wait(&mut fds, Some(Duration::ZERO)).is_ok()
        && fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
}

/// Borrows an inherited descriptor by its number. Returns `None` if no descriptor with this number is open.
///
/// # Safety
///
/// - If the descriptor is open, nothing in this process closes it during `'a`, the lifetime of the result.
pub unsafe fn borrow<'a>(raw: RawFd) -> Option<BorrowedFd<'a>> {
    // SAFETY: F_GETFD accepts any number. It fails with EBADF if no descriptor with this number is open.
    if raw < 0 || unsafe { libc::fcntl(raw, libc::F_GETFD) } == -1 {
        return None;
    }
    // SAFETY: `raw` is open (checked above), and the caller guarantees that nothing closes it during `'a`.
    Some(unsafe { BorrowedFd::borrow_raw(raw) })
}

/// Takes ownership of an inherited descriptor and makes it close-on-exec.
///
/// # Safety
///
/// - `raw` is open, and nothing else in this process owns or closes it.
///
/// # Errors
///
/// Returns the kernel's error; the call does not fail for an open descriptor.
pub unsafe fn adopt(raw: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the caller guarantees that `raw` is open and that nothing else owns it (the condition of
    // `# Safety`).
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    rustix::io::fcntl_setfd(fd.as_fd(), FdFlags::CLOEXEC)?;
    Ok(fd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_names_the_sender() {
        let (ours, theirs) = pair().expect("socket pair");
        assert!(is_control(ours.0.as_fd()) && is_control(theirs.as_fd()));
        assert_eq!(ours.registered().expect("nothing yet"), None);
        register(theirs.as_fd()).expect("send");
        let pid = ours.registered().expect("message");
        assert_eq!(pid, Some(rustix::process::getpid()));
    }

    #[test]
    fn strange_messages_are_refused() {
        let (ours, theirs) = pair().expect("socket pair");
        net::send(&theirs, b"xx", SendFlags::NOSIGNAL).expect("send");
        assert!(ours.registered().is_err());
    }

    #[test]
    fn a_closed_end_is_seen() {
        let (ours, theirs) = pair().expect("socket pair");
        assert!(!is_closed(theirs.as_fd()));
        drop(ours);
        assert!(is_closed(theirs.as_fd()));
        assert!(register(theirs.as_fd()).is_err());
    }

    /// The launcher cannot write after it has armed the rank's end, which would kill the rank.
    #[test]
    fn the_launcher_cannot_write() {
        let (ours, theirs) = pair().expect("socket pair");
        // SAFETY: the child only waits until a signal ends it.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            loop {
                // SAFETY: `pause` has no arguments.
                unsafe { libc::pause() };
            }
        }
        assert!(pid > 0, "fork");
        arm(theirs.as_fd(), pid).expect("armed");
        let written = net::send(&ours.0, b"x", SendFlags::NOSIGNAL);
        let mut status = 0;
        // SAFETY: the process is a child that nobody has reaped, and `status` is a valid place.
        unsafe {
            libc::kill(pid, libc::SIGTERM);
            libc::waitpid(pid, &mut status, 0);
        }
        assert_eq!(written, Err(Errno::PIPE));
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGTERM, "{status}");
    }

    #[test]
    fn other_descriptors_are_no_control_sockets() {
        let (read, _write) = rustix::pipe::pipe().expect("pipe");
        assert!(!is_control(read.as_fd()));
    }
}
