//! The control socket between `mpiexec` and one rank.
//!
//! A socket pair made by the launcher (`launcher/src/start.rs`), one end inherited by the rank
//! (`shm/attach.rs`). It carries one kind of message, "this process is the rank", and one fact:
//! the launcher's end closes when the launcher dies, however it dies. The kernel turns that fact
//! into SIGKILL for the rank's process group ([`arm`]), without a thread or a handler anywhere.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::io::{Errno, FdFlags};
use rustix::net::{
    self, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags,
    SocketFlags, SocketType, sockopt,
};

use super::poll::{self, PollFd, PollFlags};

/// `F_SETSIG` of `<fcntl.h>`, the same number on every Linux; the libc crate lacks it.
const F_SETSIG: i32 = 10;

/// The only message: one byte; who sent it is told by the kernel.
const REGISTER: u8 = b'R';

/// Makes a control socket: the launcher's end and the rank's end, both close-on-exec.
///
/// # Errors
///
/// The kernel's answer, for instance when descriptors have run out.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    // The kernel then attaches the sender's true process id to each message.
    sockopt::set_socket_passcred(&ours, true)?;
    Ok((ours, theirs))
}

/// Whether `fd` is a socket such as [`pair`] makes.
pub fn is_control(fd: BorrowedFd<'_>) -> bool {
    sockopt::socket_type(fd) == Ok(SocketType::SEQPACKET)
        && sockopt::socket_domain(fd) == Ok(AddressFamily::UNIX)
}

/// Lets the kernel send SIGKILL to `target` as soon as the other end of `fd` closes.
///
/// `target` is a process id, or the negated id of a process group. Works on the open file, so the
/// launcher does it on its copy of the rank's end and it holds for whoever inherits that end. The
/// launcher never writes to the socket after this: data would raise the signal as well.
///
/// # Errors
///
/// `ESRCH` when there is no such process or group.
pub fn arm(fd: BorrowedFd<'_>, target: i32) -> io::Result<()> {
    // libc: rustix has neither F_SETOWN nor F_SETSIG.
    // SAFETY: fcntl with integer commands touches no memory of ours; `fd` is open.
    let done = unsafe {
        libc::fcntl(fd.as_raw_fd(), libc::F_SETOWN, target) != -1
            && libc::fcntl(fd.as_raw_fd(), F_SETSIG, libc::SIGKILL) != -1
    };
    if !done {
        return Err(io::Error::last_os_error());
    }
    set_async(fd, true)
}

/// Takes [`arm`] back: the end of the launcher is then no longer the end of the group.
///
/// # Errors
///
/// `EBADF` when `fd` is not open.
pub fn disarm(fd: BorrowedFd<'_>) -> io::Result<()> {
    set_async(fd, false)
}

fn set_async(fd: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    // libc: rustix's OFlags has no ASYNC on Linux.
    // SAFETY: fcntl with integer commands touches no memory of ours; `fd` is open.
    let flags = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) };
    if flags == -1 {
        return Err(io::Error::last_os_error());
    }
    let flags = if on { flags | libc::O_ASYNC } else { flags & !libc::O_ASYNC };
    // SAFETY: as above.
    if unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags) } == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Tells the launcher that this process is the rank.
///
/// # Errors
///
/// `EPIPE` or `ECONNRESET` when the launcher is gone.
pub fn register(fd: BorrowedFd<'_>) -> io::Result<()> {
    loop {
        match net::send(fd, &[REGISTER], SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            other => return Ok(other.map(drop)?),
        }
    }
}

/// The process that has registered through `fd` since the last call, in the launcher's numbering;
/// `None` when there is none (yet, or any more).
///
/// # Errors
///
/// `InvalidData` when a message arrives that no rank of this build sends.
pub fn registered(fd: BorrowedFd<'_>) -> io::Result<Option<rustix::process::Pid>> {
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

/// Whether the other end of `fd` is closed.
pub fn is_closed(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::empty())];
    poll::wait(&mut fds, Some(Duration::ZERO)).is_ok()
        && fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
}

/// Borrows an inherited descriptor by its number, `None` when it is not open.
///
/// # Safety
///
/// - The descriptor stays open for `'a`: nothing in this process closes it meanwhile.
pub unsafe fn borrow<'a>(raw: RawFd) -> Option<BorrowedFd<'a>> {
    // SAFETY: fcntl takes any number and answers EBADF for one that is not open.
    if raw < 0 || unsafe { libc::fcntl(raw, libc::F_GETFD) } == -1 {
        return None;
    }
    // SAFETY: open as just seen, and it stays open by this function's contract.
    Some(unsafe { BorrowedFd::borrow_raw(raw) })
}

/// Takes ownership of an inherited descriptor and makes it close-on-exec.
///
/// # Safety
///
/// - `raw` is open and nothing else in this process owns or will close it.
///
/// # Errors
///
/// The kernel's answer; impossible for an open descriptor.
pub unsafe fn adopt(raw: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: open and unowned by this function's contract.
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
        assert!(is_control(ours.as_fd()) && is_control(theirs.as_fd()));
        assert_eq!(registered(ours.as_fd()).expect("nothing yet"), None);
        register(theirs.as_fd()).expect("send");
        let pid = registered(ours.as_fd()).expect("message");
        assert_eq!(pid, Some(rustix::process::getpid()));
    }

    #[test]
    fn strange_messages_are_refused() {
        let (ours, theirs) = pair().expect("socket pair");
        net::send(&theirs, b"xx", SendFlags::NOSIGNAL).expect("send");
        assert!(registered(ours.as_fd()).is_err());
    }

    #[test]
    fn a_closed_end_is_seen() {
        let (ours, theirs) = pair().expect("socket pair");
        assert!(!is_closed(theirs.as_fd()));
        drop(ours);
        assert!(is_closed(theirs.as_fd()));
        assert!(register(theirs.as_fd()).is_err());
    }

    #[test]
    fn other_descriptors_are_no_control_sockets() {
        let (read, _write) = rustix::pipe::pipe().expect("pipe");
        assert!(!is_control(read.as_fd()));
    }
}
