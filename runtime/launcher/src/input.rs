//! Forwards mpiexec's standard input to rank 0.
//!
//! `watch.rs` polls and calls this file. Each rank is a separate process group in the background of the
//! terminal, so SIGTTIN would stop rank 0 if it read the terminal itself. So rank 0 reads a pipe, and this
//! file fills the pipe.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use typepack_job::sys::stream::{self, Transfer};

/// How long mpiexec waits before it tries again to read a terminal while it is in the background.
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

    /// Returns the descriptor to poll for more input, or `None` while no input is needed.
    pub fn source(&self, now: Instant) -> Option<BorrowedFd<'_>> {
        let wanted = self.to.is_some() && self.waiting.is_empty() && !self.at_end;
        (wanted && self.paused_until.is_none_or(|until| until <= now)).then(|| self.from.as_fd())
    }

    /// Returns rank 0's pipe, to poll for room, or `None` if no input waits to be written.
    pub fn target(&self) -> Option<BorrowedFd<'_>> {
        self.to.as_ref().filter(|_| !self.waiting.is_empty()).map(AsFd::as_fd)
    }

    /// Returns the time to try again to read a terminal, if mpiexec is in the background.
    pub fn deadline(&self) -> Option<Instant> {
        self.paused_until.filter(|_| self.to.is_some() && !self.at_end)
    }

    /// Reads the available input. Call this when the source polls as readable.
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
            // Reading fails if the terminal's foreground group has just changed (EIO), or if the input
            // cannot be read at all. In both cases the input of rank 0 ends.
            Ok(Transfer::Closed) | Err(_) => self.at_end = true,
        }
    }

    /// Writes as much as rank 0's pipe takes, and closes the pipe after the last byte.
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

    /// Ends the input of rank 0.
    pub fn close(&mut self) {
        self.to = None;
        self.waiting.clear();
    }
}
