//! The messages that ranks send through their control sockets: registrations, bonds with other worlds, requests, and that
//! a rank takes leave of the other launcher that has started it.
//!
//! `mod.rs` calls [`Job::take_messages`] when a socket has a message, and `deaths.rs` before it decides what a death ends.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::Instant;

use rustix::process::Pid;
use typepack_job::sys::channel::{self, Message};
use typepack_job::sys::process;

use super::{Job, Member, WRAPPER_DELAY};
use crate::ending::Outcome;

impl Job<'_> {
    /// Handles the messages of rank `index`.
    pub(super) fn take_messages(&mut self, index: usize, now: Instant) {
        loop {
            let Some(process) = &self.ranks[index].process else { return };
            let message = match process.control.next() {
                Ok(Some(message)) => Some(message),
                Ok(None) => break,
                // The rank has sent something else.
                Err(error) if error.kind() == std::io::ErrorKind::InvalidData => None,
                Err(_) => break,
            };
            self.segment.slot(index).heard.fetch_add(1, Ordering::Release);
            match message {
                Some(Message::Registered(pid)) => self.take_registration(index, pid, now),
                Some(Message::Bond(bond, first)) => self.take_bond(index, (bond, first), now),
                Some(Message::Leaves) => self.ranks[index].starter = None,
                Some(Message::Request { request, answer }) => {
                    self.take_request(index, request, answer);
                }
                None => {}
            }
        }
        // mpiexec has a copy of the other end only if it has started the rank.
        let watched = &mut self.ranks[index];
        if let Some(process) = watched.process.as_ref().filter(|p| p.lifeline.is_none()) {
            watched.is_deaf = channel::is_closed(process.control.as_fd());
        }
    }

    /// Handles the registration of the process `pid` as rank `index`.
    fn take_registration(&mut self, index: usize, pid: Pid, now: Instant) {
        let watched = &mut self.ranks[index];
        if watched.member.is_some() {
            return;
        }
        let pidfd = match process::watch(pid) {
            Ok(pidfd) => pidfd,
            // The process has ended. It must have been killed, because it would otherwise still be waiting
            // for the answer to its message. Its wrapper, if there is one, may run much longer.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
                if watched.exit.is_none() {
                    watched.wrapper_until = Some(now + WRAPPER_DELAY);
                }
                return;
            }
            Err(error) => {
                let (who, world) = (self.segment.name_of(index), watched.world);
                let why = format!("cannot watch {who} (pid {}): {error}", pid.as_raw_pid());
                return self.decide(world, |end| end.broken(Outcome::Broken(why)));
            }
        };
        watched.member = Some(Member { pid, pidfd, gone: false });
        let slot = self.segment.slot(index);
        slot.pid.store(pid.as_raw_nonzero().get().unsigned_abs(), Ordering::Relaxed);
        slot.watched.store(1, Ordering::Release);
        self.segment.call(index);
    }
}
