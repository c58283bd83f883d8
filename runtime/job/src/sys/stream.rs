//! Reads and writes that do not block the caller: on the pipes to and from ranks, and on this process's own
//! output.
//!
//! The launcher uses this file to forward the output of the ranks, and its own input to rank 0.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustix::pipe::PipeFlags;

use super::poll::{self, PollFd, PollFlags};

/// The result of a read or a write that does not block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// This number of bytes was read or written. The number is not 0.
    Moved(usize),
    /// Nothing can be read or written at the moment.
    Later,
    /// Nothing more can be read or written: the input has ended, or the output has no reader.
    Closed,
}

/// Makes a pipe and returns its reading end and its writing end, both close-on-exec.
///
/// # Errors
///
/// Returns the kernel's error if there are no more descriptors.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?)
}

/// Calls `work` while everything that is written to standard error is lost. Libraries of other people print there. No
/// other thread of this process may use standard error meanwhile. If there is no descriptor left, the output stays.
pub fn without_stderr<R>(work: impl FnOnce() -> R) -> R {
    /// Restores standard error, also if `work` panics.
    struct Restore(OwnedFd);
    impl Drop for Restore {
        fn drop(&mut self) {
            // The call does not fail for an open descriptor.
            let _open = rustix::stdio::dup2_stderr(&self.0);
        }
    }
    let kept = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3);
    let null = OpenOptions::new().write(true).open("/dev/null");
    let _restored = match (kept, null) {
        (Ok(kept), Ok(null)) if rustix::stdio::dup2_stderr(&null).is_ok() => Some(Restore(kept)),
        _ => None,
    };
    work()
}

/// Makes reads and writes through `fd` return at once. The mode belongs to the open file and not to the
/// descriptor, so the caller must ensure that no other code and no other process uses the open file behind
/// `fd`.
///
/// # Errors
///
/// Returns the kernel's error.
pub fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(fd)?;
    Ok(rustix::fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK)?)
}

/// Reads the bytes that are available, up to the length of `buffer`.
///
/// # Errors
///
/// Returns the kernel's error, for example `EIO` if `fd` is a terminal and this process is in a background
/// process group of that terminal.
pub fn read(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Transfer> {
    loop {
        match rustix::io::read(fd, &mut *buffer) {
            Ok(0) => return Ok(Transfer::Closed),
            Ok(n) => return Ok(Transfer::Moved(n)),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(Transfer::Later),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Writes as many of the bytes as the descriptor accepts at once.
///
/// # Errors
///
/// Returns the kernel's error, for example `ENOSPC`.
pub fn write(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<Transfer> {
    finish_write(|| rustix::io::write(fd, bytes))
}

/// Returns true if anybody can read what is written to the pipe behind its writing end `fd`. A reader may close its end
/// at any time after this call.
pub fn has_reader(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::empty())];
    // The kernel reports the error of the pipe without being asked. If the call fails, a write finds out.
    poll::wait(&mut fds, Some(Duration::ZERO)).is_err()
        || !fds[0].revents().contains(PollFlags::ERR)
}

fn finish_write(mut write: impl FnMut() -> rustix::io::Result<usize>) -> io::Result<Transfer> {
    loop {
        match write() {
            Ok(n) => return Ok(if n == 0 { Transfer::Later } else { Transfer::Moved(n) }),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(Transfer::Later),
            Err(Errno::PIPE | Errno::CONNRESET) => return Ok(Transfer::Closed),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sends as many of the bytes as the socket accepts at once.
///
/// # Errors
///
/// Returns the kernel's error, for example `ENOTSOCK` if `fd` is no socket.
pub fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<Transfer> {
    finish_write(|| rustix::net::send(fd, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL))
}

/// Receives the bytes that have arrived at a socket, up to the length of `buffer`.
///
/// # Errors
///
/// Returns the kernel's error, for example `ENOTSOCK` if `fd` is no socket.
pub fn receive(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Transfer> {
    loop {
        match rustix::net::recv(fd, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Ok(Transfer::Closed),
            Ok((n, _)) => return Ok(Transfer::Moved(n)),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(Transfer::Later),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Returns another descriptor of the open file behind the descriptor `raw`. It is close-on-exec.
///
/// # Errors
///
/// Returns `EBADF` if no descriptor has this number.
pub fn duplicate(raw: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_DUPFD_CLOEXEC accepts any number. It fails with EBADF if no descriptor with this number is open.
    let fd = unsafe { libc::fcntl(raw, libc::F_DUPFD_CLOEXEC, 3) };
    if fd == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made the descriptor `fd`, so it is open and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Opens the pipe or terminal behind `fd` again, as an open file that only this process uses and that never
/// blocks. Returns `None` if `fd` is another kind of file, or if the system refuses to open the file.
fn open_anew(fd: BorrowedFd<'_>, kind: FileType, how: &mut OpenOptions) -> Option<OwnedFd> {
    if !matches!(kind, FileType::Fifo | FileType::CharacterDevice) {
        return None;
    }
    how.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    how.open(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok().map(OwnedFd::from)
}

/// Returns a descriptor for reading the stream behind `fd`, if possible one that never blocks. A read from a
/// blocking descriptor can block even after a poll, if a pipe has another reader that takes the bytes between
/// the poll and the read.
///
/// # Errors
///
/// Returns `EBADF` if `fd` is closed.
pub fn input(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode);
    match open_anew(fd, kind, OpenOptions::new().read(true)) {
        Some(anew) => Ok(anew),
        None => fd.try_clone_to_owned(),
    }
}

/// Standard output or standard error of this process. Writes to it do not block if the reader is slow.
///
/// The standard descriptors share their open file with the shell and other programs. Making the file
/// non-blocking would also make it non-blocking for those programs. Therefore this type opens a pipe or a
/// terminal again through `/proc/self/fd`, and writes to a socket with `MSG_DONTWAIT`; a regular file does
/// not block. If the system refuses to open the stream again, this type makes only small writes, and the
/// caller must poll the stream before each of them (`must_poll`).
#[derive(Debug)]
pub struct Output {
    fd: OwnedFd,
    kind: OutputKind,
    identity: (u64, u64),
    terminal: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputKind {
    /// A write of any size returns at once: the stream is an open file that only this process uses, or a
    /// regular file.
    Direct,
    Socket,
    /// A write may block. Therefore each write has at most [`CAREFUL`] bytes and comes after a poll.
    Careful,
}

/// Number of bytes that a pipe accepts without blocking once `poll` has reported it as writable.
const CAREFUL: usize = 4096;

impl Output {
    /// Opens the output stream behind `fd` (in mpiexec, `fd` is descriptor 1 or 2).
    ///
    /// # Errors
    ///
    /// Returns `EBADF` if `fd` is closed.
    pub fn new(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let stat = rustix::fs::fstat(fd)?;
        let terminal = fd.is_terminal();
        // `is_same` compares the identities of two streams to find out whether both lead to the same file,
        // pipe or terminal. A terminal that is open under two names (tty and pts) has two identities. In this
        // case, only the terminal's own handling of whole-line writes prevents lines of standard output and
        // standard error from mixing.
        let identity =
            if stat.st_rdev != 0 { (stat.st_rdev, 0) } else { (stat.st_dev, stat.st_ino) };
        let file = FileType::from_raw_mode(stat.st_mode);
        let anew = open_anew(fd, file, OpenOptions::new().write(true));
        let kind = match file {
            _ if anew.is_some() => OutputKind::Direct,
            FileType::RegularFile => OutputKind::Direct,
            FileType::Socket => OutputKind::Socket,
            _ => OutputKind::Careful,
        };
        let fd = match anew {
            Some(anew) => anew,
            None => fd.try_clone_to_owned()?,
        };
        Ok(Self { fd, kind, identity, terminal })
    }

    /// Returns true if the stream is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Returns true if both streams lead to the same file, pipe or terminal.
    pub fn is_same(&self, other: &Self) -> bool {
        self.identity == other.identity
    }

    /// Returns true if the caller must poll the stream again before each further write, because the write
    /// could block.
    pub fn must_poll(&self) -> bool {
        self.kind == OutputKind::Careful
    }

    /// Returns the descriptor to poll.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Writes as many of the bytes as the stream accepts. `poll` must have reported the stream as writable.
    ///
    /// # Errors
    ///
    /// Returns the kernel's error, for example `ENOSPC`.
    pub fn write(&self, bytes: &[u8]) -> io::Result<Transfer> {
        match self.kind {
            OutputKind::Direct => write(self.fd(), bytes),
            OutputKind::Careful => write(self.fd(), &bytes[..bytes.len().min(CAREFUL)]),
            OutputKind::Socket => finish_write(|| {
                rustix::net::send(self.fd(), bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
            }),
        }
    }
}

/// Returns true if this process is in the foreground of the terminal behind `fd`, or if `fd` is not a
/// terminal. A process that reads from its terminal while it is in the background is stopped by SIGTTIN.
pub fn may_read_terminal(fd: BorrowedFd<'_>) -> bool {
    if !fd.is_terminal() {
        return true;
    }
    // SAFETY: tcgetpgrp takes an open descriptor and touches no memory. It returns -1 if the descriptor is
    // not a terminal.
    let foreground = unsafe { libc::tcgetpgrp(fd.as_raw_fd()) };
    foreground == super::process::own_group()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_pipe_does_not_block() {
        let (reader, writer) = pipe().expect("pipe");
        let output = Output::new(writer.as_fd()).expect("output");
        assert!(!output.is_terminal());
        let mut sent = 0;
        loop {
            match output.write(&[b'x'; 5000]).expect("write") {
                Transfer::Moved(n) => sent += n,
                Transfer::Later => break,
                Transfer::Closed => unreachable!("the reader is closed"),
            }
        }
        assert!(sent > 0);
        // Creating the `Output` must not have made the open file behind the original descriptor non-blocking.
        let flags = rustix::fs::fcntl_getfl(&writer).expect("flags");
        assert!(!flags.contains(OFlags::NONBLOCK));
        drop(reader);
        assert_eq!(output.write(b"x").expect("write"), Transfer::Closed);
    }

    #[test]
    fn the_end_of_a_pipe_is_seen() {
        let (reader, writer) = pipe().expect("pipe");
        set_nonblocking(reader.as_fd()).expect("mode");
        let mut buffer = [0; 8];
        assert_eq!(read(reader.as_fd(), &mut buffer).expect("read"), Transfer::Later);
        write(writer.as_fd(), b"abc").expect("write");
        assert_eq!(read(reader.as_fd(), &mut buffer).expect("read"), Transfer::Moved(3));
        drop(writer);
        assert_eq!(read(reader.as_fd(), &mut buffer).expect("read"), Transfer::Closed);
    }

    #[test]
    fn two_ends_of_one_pipe_are_the_same_output() {
        let (_r1, a) = pipe().expect("pipe");
        let (_r2, b) = pipe().expect("pipe");
        let first = Output::new(a.as_fd()).expect("output");
        assert!(first.is_same(&Output::new(a.as_fd()).expect("output")));
        assert!(!first.is_same(&Output::new(b.as_fd()).expect("output")));
    }
}
