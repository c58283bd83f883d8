//! Waits until one of several descriptors is ready.
//!
//! The launcher uses this file (`launcher/src/main.rs`, `launcher/src/watch/`). `channel.rs` uses it with a
//! timeout of 0, to check without waiting.

use std::io;
use std::time::Duration;

use rustix::event::Timespec;
use rustix::io::Errno;

pub use rustix::event::{PollFd, PollFlags};

/// Waits until one of `fds` is ready or `timeout` has passed, and stores the ready events in each of `fds`.
/// If `timeout` is `None`, the wait has no time limit. If a signal handler of the program runs, the wait ends
/// early without any events.
///
/// # Errors
///
/// Returns the kernel's error, for example `ENOMEM`.
pub fn wait(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<()> {
    let timeout = timeout.map(|left| Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(left.subsec_nanos()),
    });
    match rustix::event::poll(fds, timeout.as_ref()) {
        Ok(_) => Ok(()),
        Err(Errno::INTR) => {
            fds.iter_mut().for_each(PollFd::clear_revents);
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::stream;
    use std::os::fd::AsFd;

    #[test]
    fn what_is_ready_is_noted() {
        let (reader, writer) = stream::pipe().expect("a pipe");
        let mut fds = [
            PollFd::from_borrowed_fd(reader.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(writer.as_fd(), PollFlags::OUT),
        ];
        wait(&mut fds, None).expect("an answer");
        assert!(fds[0].revents().is_empty() && !fds[1].revents().is_empty());
        stream::write(writer.as_fd(), b"x").expect("room");
        wait(&mut fds[..1], Some(Duration::ZERO)).expect("an answer");
        assert!(!fds[0].revents().is_empty());
    }
}
