//! Forwards mpiexec's standard input to rank 0.
//!
//! `watch/` polls the descriptors that this file returns, and calls the functions of this file. Each rank
//! has its own process group, and that group is in the background of the terminal. If rank 0 read from the
//! terminal, SIGTTIN would stop it. So rank 0 reads from a pipe, and this file fills the pipe.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use typepack_job::sys::stream::{self, Transfer};

/// While mpiexec is in the background of a terminal, it waits this long before it tries again to read the
/// terminal.
const BACKGROUND_PAUSE: Duration = Duration::from_millis(200);

/// The connection from mpiexec's standard input to rank 0.
#[derive(Debug)]
pub struct Input {
    from: OwnedFd,
    to: Option<OwnedFd>,
    waiting: Vec<u8>,
    at_end: bool,
    paused_until: Option<Instant>,
}

impl Input {
    /// Connects mpiexec's standard input to the writing end of rank 0's pipe.
    ///
    /// # Errors
    ///
    /// Returns the error of the system call.
    pub fn new(to: OwnedFd) -> io::Result<Self> {
        stream::set_nonblocking(to.as_fd())?;
        let from = stream::input(io::stdin().as_fd())?;
        Ok(Self { from, to: Some(to), waiting: Vec::new(), at_end: false, paused_until: None })
    }

    /// Returns the descriptor to poll for more input, or `None` if mpiexec should not read at the moment.
    pub fn source(&self, now: Instant) -> Option<BorrowedFd<'_>> {
        let wanted = self.to.is_some() && self.waiting.is_empty() && !self.at_end;
        (wanted && self.paused_until.is_none_or(|until| until <= now)).then(|| self.from.as_fd())
    }

    /// Returns the pipe to rank 0, for the caller to poll until there is room in it, or `None` if no input
    /// waits to be written.
    pub fn target(&self) -> Option<BorrowedFd<'_>> {
        self.to.as_ref().filter(|_| !self.waiting.is_empty()).map(AsFd::as_fd)
    }

    /// If mpiexec is in the background, returns the time at which to try again to read the terminal;
    /// otherwise `None`.
    pub fn deadline(&self) -> Option<Instant> {
        self.paused_until.filter(|_| self.to.is_some() && !self.at_end)
    }

    /// Reads the input that is available. Call this function when `poll` reports the source as readable.
    pub fn read(&mut self, now: Instant) {
        if self.source(now).is_none() {
            return;
        }
        if !stream::may_read_terminal(self.from.as_fd()) {
            self.paused_until = Some(now + BACKGROUND_PAUSE);
            return;
        }
        self.paused_until = None;
        let mut buffer = [0_u8; 16 << 10];
        match stream::read(self.from.as_fd(), &mut buffer) {
            Ok(Transfer::Moved(n)) => self.waiting.extend_from_slice(&buffer[..n]),
            Ok(Transfer::Later) => {}
            // Reading fails if mpiexec has just lost the foreground of the terminal (EIO), or if the input
            // cannot be read at all. In both cases the input of rank 0 ends.
            Ok(Transfer::Closed) | Err(_) => self.at_end = true,
        }
    }

    /// Writes as many bytes as rank 0's pipe accepts. After the last byte of the input, closes the pipe.
    pub fn write(&mut self) {
        let Some(to) = &self.to else { return };
        while !self.waiting.is_empty() {
            match stream::write(to.as_fd(), &self.waiting) {
                Ok(Transfer::Moved(n)) => {
                    self.waiting.drain(..n);
                }
                Ok(Transfer::Later) => return,
                Ok(Transfer::Closed) | Err(_) => return self.close(),
            }
        }
        if self.at_end {
            self.close();
        }
    }

    /// Ends the input of rank 0, and discards what is still waiting.
    pub fn close(&mut self) {
        self.to = None;
        self.waiting.clear();
    }
}
