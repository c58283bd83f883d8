//! Our standard input on its way to rank 0.
//!
//! `watch.rs` polls and calls in here. The ranks are in process groups of their own, in the
//! background of the terminal: rank 0 reading the terminal itself would be stopped by SIGTTIN, so
//! it reads a pipe that is filled here.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use typepack_job::sys::stream::{self, Transfer};

/// How long to leave a terminal alone that belongs to somebody else at the moment.
const BACKGROUND_PAUSE: Duration = Duration::from_millis(200);

/// The way of our standard input to rank 0.
#[derive(Debug)]
pub struct Input {
    from: OwnedFd,
    to: Option<OwnedFd>,
    waiting: Vec<u8>,
    at_end: bool,
    paused_until: Option<Instant>,
}

impl Input {
    /// Input from our standard input to the writing end of rank 0's pipe.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn new(to: OwnedFd) -> io::Result<Self> {
        stream::set_nonblocking(to.as_fd())?;
        let from = stream::input(io::stdin().as_fd())?;
        Ok(Self { from, to: Some(to), waiting: Vec::new(), at_end: false, paused_until: None })
    }

    /// The descriptor to wait on for more input, `None` while none is wanted.
    pub fn source(&self, now: Instant) -> Option<BorrowedFd<'_>> {
        let wanted = self.to.is_some() && self.waiting.is_empty() && !self.at_end;
        (wanted && self.paused_until.is_none_or(|until| until <= now)).then(|| self.from.as_fd())
    }

    /// Rank 0's pipe while something waits for it, to hear when there is room.
    pub fn target(&self) -> Option<BorrowedFd<'_>> {
        self.to.as_ref().filter(|_| !self.waiting.is_empty()).map(AsFd::as_fd)
    }

    /// When to look again although nothing happens.
    pub fn deadline(&self) -> Option<Instant> {
        self.paused_until.filter(|_| self.to.is_some() && !self.at_end)
    }

    /// Reads what is there; call it when the source polls as readable.
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
            // A terminal whose foreground changed in between (EIO), or an input that cannot be
            // read at all: for rank 0 it ends here.
            Ok(Transfer::Closed) | Err(_) => self.at_end = true,
        }
    }

    /// Writes to rank 0 what it takes, and closes its input after the last byte.
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
