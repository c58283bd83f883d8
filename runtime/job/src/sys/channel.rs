//! The control socket between `mpiexec` and one rank.
//!
//! The launcher makes a socket pair (`launcher/src/start.rs`), and the rank inherits one end
//! (`shm/attach.rs`). By its first message a process tells the launcher that it has joined the job as the rank. Later
//! messages tell with which other worlds the rank has communicators ([`Bond`]), and bring requests (`../service.rs`),
//! whose answers come through a descriptor that the request brings. When the launcher dies, for whatever reason, the
//! kernel closes the launcher's end and sends SIGKILL to the rank's process group ([`arm`]). This needs no thread and no
//! signal handler.
//!
//! A rank must never fill the socket: the kernel remembers that a sender found no room, and later sends the signal of
//! [`arm`] when there is room again. So a rank has at most a few messages under way, and waits until the launcher has
//! counted them as read (`shm/attach.rs`).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::io::{Errno, FdFlags};
use rustix::net::{
    self, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType, sockopt,
};

use super::poll::{self, PollFd, PollFlags};

/// `F_SETSIG` of `<fcntl.h>`. It has this value on x86-64 and on AArch64, where the libc crate does not
/// define it.
const F_SETSIG: i32 = 10;

/// The one byte that a process sends over the control socket to say that it has joined the job. The kernel
/// adds the identity of the sender.
const REGISTER: u8 = b'R';

/// The byte with which a request begins. The message has two descriptors and no other bytes.
const REQUEST: u8 = b'Q';

/// The one byte that a rank sends before it takes leave of the other launcher that has started it.
const LEAVE: u8 = b'L';

/// How a rank is connected with the ranks of another world: by communicators that both have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bond {
    /// The rank has a communicator with members of the other world.
    Connected,
    /// The rank has no such communicator any more.
    Ended,
    /// The call is over in which the rank has met a rank of the other world at a port. If it has made a communicator, the
    /// rank has told so before.
    Settled,
}

impl Bond {
    const ALL: [(Self, u8); 3] =
        [(Self::Connected, b'C'), (Self::Ended, b'E'), (Self::Settled, b'S')];

    fn to_byte(self) -> u8 {
        let found = Self::ALL.iter().find(|(bond, _)| *bond == self);
        found.map_or(0, |(_, byte)| *byte)
    }

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.iter().find(|(_, of)| *of == byte).map(|(bond, _)| *bond)
    }
}

/// A message from a rank.
#[derive(Debug)]
pub enum Message {
    /// The process with this id has joined the job as the rank. The id is the one that the process has in the
    /// launcher's PID namespace.
    Registered(rustix::process::Pid),
    /// How the rank is connected with the world whose first slot this is.
    Bond(Bond, u32),
    /// The rank takes leave of the other launcher that has started it.
    Leaves,
    /// A request, and where its answer goes.
    Request {
        /// The file with the request.
        request: OwnedFd,
        /// The end of a pipe to which the launcher writes the answer.
        answer: OwnedFd,
    },
}

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
    /// Makes a launcher's end of a connection to a rank that another launcher has started.
    ///
    /// # Errors
    ///
    /// Returns the kernel's error.
    pub fn of(connection: OwnedFd) -> io::Result<Self> {
        sockopt::set_socket_passcred(&connection, true)?;
        net::shutdown(&connection, Shutdown::Write)?;
        Ok(Self(connection))
    }

    /// Returns the next message of the rank, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// Returns `InvalidData` if the message is not one that a rank of this build sends, and otherwise the kernel's
    /// error.
    pub fn next(&self) -> io::Result<Option<Message>> {
        next(self.0.as_fd())
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
    send(fd, &[REGISTER], &[])
}

/// Tells the process that watches this rank that the rank takes leave of the launcher that has started it.
///
/// # Errors
///
/// Returns the errors of [`register`].
pub fn leave(fd: BorrowedFd<'_>) -> io::Result<()> {
    send(fd, &[LEAVE], &[])
}

/// Tells the launcher how the rank that owns this end of the socket is connected with the world whose first slot is
/// `world`.
///
/// # Errors
///
/// Returns the errors of [`register`].
pub fn tell_bond(fd: BorrowedFd<'_>, bond: Bond, world: u32) -> io::Result<()> {
    let [a, b, c, d] = world.to_le_bytes();
    send(fd, &[bond.to_byte(), a, b, c, d], &[])
}

/// Sends a request to the launcher: the file that contains it, and the end of a pipe for the answer.
///
/// # Errors
///
/// Returns the errors of [`register`].
pub fn ask(fd: BorrowedFd<'_>, request: BorrowedFd<'_>, answer: BorrowedFd<'_>) -> io::Result<()> {
    send(fd, &[REQUEST], &[request, answer])
}

fn send(fd: BorrowedFd<'_>, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    loop {
        match net::sendmsg(fd, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            other => return Ok(other.map(drop)?),
        }
    }
}

/// Does what [`LauncherEnd::next`] does.
fn next(fd: BorrowedFd<'_>) -> io::Result<Option<Message>> {
    let mut bytes = [0_u8; 6];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1), ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = loop {
        match net::recvmsg(fd, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN | Errno::CONNRESET) => return Ok(None),
            other => break other?,
        }
    };
    if received.bytes == 0 {
        return Ok(None);
    }
    let (mut sender, mut fds) = (None, Vec::new());
    for part in control.drain() {
        match part {
            RecvAncillaryMessage::ScmCredentials(who) => sender = Some(who.pid),
            RecvAncillaryMessage::ScmRights(received) => fds.extend(received),
            _ => {}
        }
    }
    let mut fds = fds.into_iter();
    let message = match (&bytes[..received.bytes], sender, fds.next(), fds.next()) {
        ([REGISTER], Some(pid), None, None) => Some(Message::Registered(pid)),
        ([LEAVE], _, None, None) => Some(Message::Leaves),
        ([REQUEST], _, Some(request), Some(answer)) => Some(Message::Request { request, answer }),
        (&[byte, a, b, c, d], _, None, None) => {
            Bond::from_byte(byte).map(|bond| Message::Bond(bond, u32::from_le_bytes([a, b, c, d])))
        }
        _ => None,
    };
    message.map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
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
        assert!(ours.next().expect("nothing yet").is_none());
        register(theirs.as_fd()).expect("send");
        let own = rustix::process::getpid();
        assert!(matches!(ours.next(), Ok(Some(Message::Registered(pid))) if pid == own));
    }

    #[test]
    fn bonds_and_requests_arrive_in_order() {
        let (ours, theirs) = pair().expect("socket pair");
        tell_bond(theirs.as_fd(), Bond::Connected, 7).expect("send");
        let (reader, writer) = rustix::pipe::pipe().expect("pipe");
        ask(theirs.as_fd(), reader.as_fd(), writer.as_fd()).expect("send");
        tell_bond(theirs.as_fd(), Bond::Ended, u32::MAX).expect("send");
        tell_bond(theirs.as_fd(), Bond::Settled, 8).expect("send");
        assert!(matches!(ours.next(), Ok(Some(Message::Bond(Bond::Connected, 7)))));
        let Ok(Some(Message::Request { request, answer })) = ours.next() else {
            panic!("a request")
        };
        rustix::io::write(&answer, b"x").expect("the pipe is open");
        assert_eq!(rustix::io::read(&request, &mut [0; 2]), Ok(1));
        assert!(matches!(ours.next(), Ok(Some(Message::Bond(Bond::Ended, u32::MAX)))));
        assert!(matches!(ours.next(), Ok(Some(Message::Bond(Bond::Settled, 8)))));
        assert!(matches!(ours.next(), Ok(None)));
    }

    #[test]
    fn strange_messages_are_refused() {
        let (ours, theirs) = pair().expect("socket pair");
        for strange in [&b"xx"[..], b"C", b"Q", b"x1234", b"C12345678"] {
            net::send(&theirs, strange, SendFlags::NOSIGNAL).expect("send");
            assert!(ours.next().is_err(), "{strange:?}");
        }
        let (reader, _writer) = rustix::pipe::pipe().expect("pipe");
        send(theirs.as_fd(), b"Q", &[reader.as_fd()]).expect("send");
        assert!(ours.next().is_err());
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
