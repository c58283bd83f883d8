//! Sockets between processes of one user on this machine: connections that keep messages apart, carry descriptors, and
//! say who is at the other end; and the byte stream to a program that has started this process.
//!
//! `starter/` uses this file in the ranks that another launcher has started, and `launcher/src/behind.rs` in the
//! process that watches them. A name is one of Linux's abstract namespace: no file stays behind, and the kernel frees the
//! name when the last descriptor closes. Processes in different network namespaces do not see each other's names.
//! Every user of the machine can connect to a name or take it first, so both ends ask the kernel who the other end is
//! ([`peer`]).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::io::{Errno, FdFlags};
use rustix::net::{
    self, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    sockopt,
};

use super::channel;
use super::poll::{self, PollFd, PollFlags};

/// Maximum number of descriptors in one message.
const DESCRIPTORS: usize = 2;

/// Length of the queue of connections that nobody has accepted yet.
const WAITING: i32 = 4096;

/// The process that has made or accepted a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its number in the PID namespace of this process. `None` if it has no number there.
    pub pid: Option<rustix::process::Pid>,
    /// True if its effective user is that of this process.
    pub is_own_user: bool,
}

/// Makes a connection of two descriptors that both are close-on-exec.
///
/// # Errors
///
/// Returns the kernel's error, for example if there are no more descriptors.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let kind = SocketType::SEQPACKET;
    let (one, other) = net::socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
    Ok((above_standard(one)?, above_standard(other)?))
}

/// Moves a descriptor above the numbers of standard input, output and error. A program may have closed these; what it then
/// writes to its standard output, or opens in its place, must not meet a descriptor of the library.
///
/// # Errors
///
/// Returns the kernel's error if there are no more descriptors.
pub fn above_standard(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() > 2 { Ok(fd) } else { Ok(rustix::io::fcntl_dupfd_cloexec(fd, 3)?) }
}

/// Takes `name` and listens for connections to it. Accepting one never blocks.
///
/// # Errors
///
/// Returns `EADDRINUSE` if a process has the name, and otherwise the kernel's error.
pub fn listen(name: &str) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    net::bind(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
    net::listen(&socket, WAITING)?;
    above_standard(socket)
}

/// Accepts the next connection, whose reads and writes do not block. Returns `None` if there is none now.
///
/// # Errors
///
/// Returns the kernel's error, for example if there are no more descriptors.
pub fn accept(listener: BorrowedFd<'_>) -> io::Result<Option<OwnedFd>> {
    loop {
        match net::accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(connection) => return above_standard(connection).map(Some),
            Err(Errno::INTR | Errno::CONNABORTED) => {}
            Err(Errno::AGAIN) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Connects to `name`.
///
/// # Errors
///
/// Returns `ECONNREFUSED` if nobody listens at the name, and otherwise the kernel's error.
pub fn connect(name: &str) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
    let kind = SocketType::SEQPACKET;
    let socket = net::socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
    let socket = above_standard(socket)?;
    loop {
        match net::connect(&socket, &address) {
            Err(Errno::INTR) => {}
            other => {
                other?;
                return Ok(socket);
            }
        }
    }
}

/// Returns who is at the other end of a connection.
///
/// # Errors
///
/// Returns the kernel's error.
pub fn peer(connection: BorrowedFd<'_>) -> io::Result<Peer> {
    // This code uses libc, because the type of rustix for the answer cannot hold the number 0, with which the kernel
    // answers for a process of another PID namespace.
    let mut who = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    let (at, socket) = ((&raw mut who).cast(), connection.as_raw_fd());
    // SAFETY: the kernel writes at most `len` bytes to `who`, which is that long, and the length to `len`.
    let code =
        unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_PEERCRED, at, &raw mut len) };
    if code != 0 {
        return Err(io::Error::last_os_error());
    }
    let is_own_user = who.uid == rustix::process::geteuid().as_raw();
    Ok(Peer { pid: rustix::process::Pid::from_raw(who.pid), is_own_user })
}

/// Sends one message with copies of `fds`, of which there are at most two.
///
/// # Errors
///
/// Returns `EPIPE` or `ECONNRESET` if the other end is closed, `EAGAIN` if the connection does not block and has no room,
/// and otherwise the kernel's error.
pub fn send(connection: BorrowedFd<'_>, message: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    loop {
        match net::sendmsg(connection, &[IoSlice::new(message)], &mut control, SendFlags::NOSIGNAL)
        {
            Err(Errno::INTR) => {}
            other => return Ok(other.map(drop)?),
        }
    }
}

/// Waits for a message and returns its length in `buffer`, and the descriptors that came with it, all close-on-exec. The
/// length is 0 if the other end is closed.
///
/// # Errors
///
/// Returns `EAGAIN` if the connection does not block and has no message, `InvalidData` if the message is longer than
/// `buffer` or has more than two descriptors, and otherwise the kernel's error.
pub fn receive(connection: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let mut is_reset = false;
    let received = loop {
        match net::recvmsg(connection, &mut [IoSliceMut::new(buffer)], &mut control, flags) {
            Err(Errno::INTR) => {}
            Err(Errno::CONNRESET) if is_reset => return Ok((0, Vec::new())),
            // The kernel says this once if the other end has closed without reading everything. Its messages are still there.
            Err(Errno::CONNRESET) => is_reset = true,
            other => break other?,
        }
    };
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(more) = message {
            fds.extend(more);
        }
    }
    if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let fds = fds.into_iter().map(above_standard).collect::<io::Result<_>>()?;
    Ok((received.bytes, fds))
}

/// Takes a connection that this process has inherited under the number `raw`, a byte stream between processes of this machine:
/// returns a descriptor of its own for it, and makes the inherited one close-on-exec, so that no child of this process uses
/// it. Returns `None` if `raw` is no such connection.
///
/// # Errors
///
/// Returns the kernel's error, for example if there are no more descriptors.
pub fn inherited(raw: RawFd) -> io::Result<Option<OwnedFd>> {
    // SAFETY: the borrow ends with this function, which runs while the process joins its job; the launcher has opened the
    // descriptor for that, and the program does not close it meanwhile. Should it do so against the rules, then the calls below
    // fail with EBADF, or they meet what another thread has opened under this number: if that is such a connection, too,
    // children of this process no longer inherit it, and the launcher's lines go to it. No memory is touched.
    let Some(fd) = (unsafe { channel::borrow(raw) }) else { return Ok(None) };
    if sockopt::socket_type(fd) != Ok(SocketType::STREAM)
        || sockopt::socket_domain(fd) != Ok(AddressFamily::UNIX)
        || net::getpeername(fd).is_err()
    {
        return Ok(None);
    }
    let own = rustix::io::fcntl_dupfd_cloexec(fd, 3)?;
    rustix::io::fcntl_setfd(fd, rustix::io::fcntl_getfd(fd)? | FdFlags::CLOEXEC)?;
    Ok(Some(own))
}

/// Returns the number of the connection `fd`, which no other socket of the machine has as long as this one is open. All copies of
/// the descriptor have the same number.
///
/// # Errors
///
/// Returns the kernel's error; the call does not fail for an open descriptor.
pub fn number(fd: BorrowedFd<'_>) -> io::Result<u64> {
    Ok(rustix::fs::fstat(fd)?.st_ino)
}

/// Writes all bytes to a stream, also to one that does not block.
///
/// # Errors
///
/// Returns `EPIPE` or `ECONNRESET` if the other end is closed, and otherwise the kernel's error.
pub fn write_all(stream: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match net::send(stream, bytes, SendFlags::NOSIGNAL) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait(stream, PollFlags::OUT)?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Waits for bytes of a stream, also of one that does not block, and returns how many it has read. The number is 0 at the
/// end of the stream.
///
/// # Errors
///
/// Returns the kernel's error.
pub fn read(stream: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match rustix::io::read(stream, &mut *buffer) {
            Ok(count) => return Ok(count),
            Err(Errno::INTR) => {}
            Err(Errno::CONNRESET) => return Ok(0),
            Err(Errno::AGAIN) => wait(stream, PollFlags::IN)?,
            Err(error) => return Err(error.into()),
        }
    }
}

fn wait(stream: BorrowedFd<'_>, flags: PollFlags) -> io::Result<()> {
    poll::wait(&mut [PollFd::from_borrowed_fd(stream, flags)], None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn descriptors_travel_and_ends_are_known() {
        let name = format!("typepack-test-socket-{}", std::process::id());
        let listener = listen(&name).expect("a name");
        assert_eq!(listen(&name).expect_err("taken").kind(), io::ErrorKind::AddrInUse);
        assert!(accept(listener.as_fd()).expect("an answer").is_none());
        let ours = connect(&name).expect("a connection");
        let theirs = accept(listener.as_fd()).expect("an answer").expect("a connection");
        let known = Peer { pid: Some(rustix::process::getpid()), is_own_user: true };
        assert_eq!(peer(ours.as_fd()).expect("an answer"), known);
        assert_eq!(peer(theirs.as_fd()).expect("an answer"), known);
        let (_reader, writer) = rustix::pipe::pipe().expect("a pipe");
        send(ours.as_fd(), b"hello", &[writer.as_fd(), ours.as_fd()]).expect("room");
        let mut buffer = [0; 8];
        let (len, fds) = receive(theirs.as_fd(), &mut buffer).expect("a message");
        assert_eq!((&buffer[..len], fds.len()), (&b"hello"[..], 2));
        drop(fds);
        send(ours.as_fd(), b"too long for it", &[]).expect("room");
        let error = receive(theirs.as_fd(), &mut buffer).expect_err("too long");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        drop(ours);
        assert_eq!(receive(theirs.as_fd(), &mut buffer).expect("the end").0, 0);
        assert!(send(theirs.as_fd(), b"x", &[]).is_err());
    }

    /// The last message of a process that has not read everything is not lost.
    #[test]
    fn last_words_arrive() {
        let (ours, theirs) = pair().expect("a connection");
        send(ours.as_fd(), b"unread", &[]).expect("room");
        send(theirs.as_fd(), b"why", &[]).expect("room");
        drop(theirs);
        let mut buffer = [0; 8];
        let (len, _) = receive(ours.as_fd(), &mut buffer).expect("a message");
        assert_eq!(&buffer[..len], b"why");
        assert_eq!(receive(ours.as_fd(), &mut buffer).expect("the end").0, 0);
    }

    #[test]
    fn descriptors_are_above_the_standard_ones() {
        let null = || std::fs::File::open("/dev/null").expect("a file").into();
        let fd: OwnedFd = null();
        let raw = fd.as_raw_fd();
        assert_eq!(above_standard(fd).expect("above").as_raw_fd(), raw, "it is above already");
    }

    #[test]
    fn only_sockets_are_inherited() {
        let (reader, _writer) = rustix::pipe::pipe().expect("a pipe");
        assert!(inherited(reader.as_raw_fd()).expect("an answer").is_none());
        assert!(inherited(-1).expect("an answer").is_none());
        let (one, other) = std::os::unix::net::UnixStream::pair().expect("a stream");
        let own = inherited(one.as_raw_fd()).expect("an answer").expect("a socket");
        write_all(own.as_fd(), b"line\n").expect("room");
        let mut buffer = [0; 8];
        assert_eq!(read(other.as_fd(), &mut buffer).expect("bytes"), 5);
        drop((one, own));
        assert_eq!(read(other.as_fd(), &mut buffer).expect("the end"), 0);
        assert!(write_all(other.as_fd(), b"line\n").is_err());
    }
}
