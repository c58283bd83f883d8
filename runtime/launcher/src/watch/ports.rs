//! Ports and services: how worlds of the job that have no communicator in common meet (MPI-5.0 section 11.9).
//!
//! A rank opens a port and gets its name. A rank that accepts at a port and a rank that connects to it meet: each gets
//! the slot of the other, and a number that no other connection has. A port belongs to the rank that has opened it and
//! is closed when this rank has ended; so do the names of services that a rank has published.
//!
//! The name of a port contains a number of the job, so that a port of another job is refused with its own message.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::AsFd;
use std::time::Instant;

use typepack_job::service::{Answer, Refused, Request};
use typepack_job::shm::segment::Segment;
use typepack_job::sys::stream;

use super::requests::Asked;
use super::{Job, Watched};

/// With this the name of every port begins.
const PREFIX: &str = "typepack-port-";

/// The ranks that wait at a port. One of the two queues is empty.
#[derive(Debug)]
struct Port {
    /// The slot of the rank that has opened the port.
    owner: usize,
    accepting: VecDeque<Asked>,
    connecting: VecDeque<Asked>,
}

/// A service: the name of its port, and the slot of the rank that has published it.
#[derive(Debug)]
struct Service {
    port: Vec<u8>,
    owner: usize,
}

/// The ports and services of the job.
#[derive(Debug)]
pub struct Ports {
    /// The number of the job. No two jobs that run at the same time have the same number.
    job: u64,
    ports: BTreeMap<Vec<u8>, Port>,
    services: BTreeMap<Vec<u8>, Service>,
    /// Number of ports that have been opened so far.
    opened: u64,
    /// Number of connections so far.
    met: u32,
}

impl Ports {
    /// Makes the ports of a job, which has none yet.
    pub fn new(segment: &Segment) -> Self {
        let (ports, services) = (BTreeMap::new(), BTreeMap::new());
        Self { job: segment.identity(), ports, services, opened: 0, met: 0 }
    }

    /// Returns why a port is not there.
    fn missing(&self, name: &[u8]) -> (Refused, String) {
        let shown = String::from_utf8_lossy(name);
        let own = format!("{PREFIX}{:x}-", self.job);
        let why = if name.starts_with(own.as_bytes()) {
            format!("'{shown}' is not open")
        } else if name.starts_with(PREFIX.as_bytes()) {
            format!(
                "'{shown}' is a port of another job (another mpiexec); only processes of one job can connect"
            )
        } else {
            format!("'{shown}' is not the name of a port")
        };
        (Refused::Port, why)
    }
}

impl Job<'_> {
    /// Handles a request about a port or a service.
    pub(super) fn take_port_request(&mut self, asked: Asked, request: Request) {
        let slot = asked.slot;
        match request {
            Request::Start(_) | Request::Disconnect { .. } => {
                self.refuse(asked, (Refused::Other, "not a request about ports".to_owned()));
            }
            Request::Open => {
                self.ports.opened += 1;
                let name = format!("{PREFIX}{:x}-{}", self.ports.job, self.ports.opened);
                let (accepting, connecting) = (VecDeque::new(), VecDeque::new());
                let port = Port { owner: slot, accepting, connecting };
                self.ports.ports.insert(name.clone().into_bytes(), port);
                self.answer(asked, &Answer::Port(name.into_bytes()));
            }
            Request::Close(name) => match self.ports.ports.get(&name) {
                Some(port) if port.owner == slot => {
                    self.close_port(&name);
                    self.answer(asked, &Answer::Done);
                }
                Some(_) => {
                    let shown = String::from_utf8_lossy(&name);
                    let why = format!("'{shown}' was opened by another process");
                    self.refuse(asked, (Refused::Port, why));
                }
                None => self.refuse(asked, self.ports.missing(&name)),
            },
            Request::Accept(name) => self.meet(asked, &name, true),
            Request::Connect(name) => self.meet(asked, &name, false),
            Request::Publish { service, port } => {
                if self.ports.services.contains_key(&service) {
                    let shown = String::from_utf8_lossy(&service);
                    let why = format!("'{shown}' is published already");
                    return self.refuse(asked, (Refused::Service, why));
                }
                self.ports.services.insert(service, Service { port, owner: slot });
                self.answer(asked, &Answer::Done);
            }
            Request::Unpublish { service, port } => {
                let shown = String::from_utf8_lossy(&service);
                let why = match self.ports.services.get(&service) {
                    None => format!("'{shown}' is not published"),
                    Some(found) if found.port != port => {
                        format!("'{shown}' is published with another port")
                    }
                    Some(found) if found.owner != slot => {
                        format!("'{shown}' was published by another process")
                    }
                    Some(_) => {
                        self.ports.services.remove(&service);
                        return self.answer(asked, &Answer::Done);
                    }
                };
                self.refuse(asked, (Refused::Service, why));
            }
            Request::Lookup(service) => match self.ports.services.get(&service) {
                Some(found) => self.answer(asked, &Answer::Port(found.port.clone())),
                None => {
                    let shown = String::from_utf8_lossy(&service);
                    let why = format!("no service '{shown}' is published");
                    self.refuse(asked, (Refused::Name, why));
                }
            },
        }
    }

    /// Lets a rank wait at a port, or connects it with one that waits there.
    fn meet(&mut self, asked: Asked, name: &[u8], accepts: bool) {
        let Some(port) = self.ports.ports.get_mut(name) else {
            return self.refuse(asked, self.ports.missing(name));
        };
        let (own, others) = match accepts {
            true => (&mut port.accepting, &mut port.connecting),
            false => (&mut port.connecting, &mut port.accepting),
        };
        // A call that has failed waits no more, although its process runs.
        let waits = |asked: &Asked| {
            !self.ranks[asked.slot].is_gone() && stream::has_reader(asked.answer.as_fd())
        };
        if !waits(&asked) {
            return;
        }
        others.retain(waits);
        let Some(other) = others.pop_front() else { return own.push_back(asked) };
        self.ports.met = self.ports.met.wrapping_add(1);
        let number = self.ports.met;
        let (slots, now) = ([asked.slot, other.slot], Instant::now());
        for (asked, with) in [(asked, slots[1]), (other, slots[0])] {
            let slot = asked.slot;
            let (here, there) = (self.ranks[slot].world, self.ranks[with].world);
            let has_met = self.deliver(asked, &Answer::Met { slot: with as u32, number });
            // A rank to which nobody can tell that it has met another one cannot tell that the meeting is over.
            if has_met && here != there {
                self.bonds.meet(slot, there);
            }
        }
        // The world of one of them may be ending already.
        for (slot, with) in [(slots[0], slots[1]), (slots[1], slots[0])] {
            if self.ranks[slot].world != self.ranks[with].world {
                self.catch_up(slot, self.ranks[with].world, now);
            }
        }
    }

    /// Closes a port. The ranks that wait there get an error.
    fn close_port(&mut self, name: &[u8]) {
        let Some(port) = self.ports.ports.remove(name) else { return };
        let shown = String::from_utf8_lossy(name);
        for asked in port.accepting.into_iter().chain(port.connecting) {
            self.refuse(asked, (Refused::Port, format!("'{shown}' has been closed")));
        }
    }

    /// Closes the ports and withdraws the services of ranks that have ended.
    pub(super) fn clear_ports(&mut self) {
        let ended = |slot: usize| self.ranks.get(slot).is_none_or(Watched::is_gone);
        self.ports.services.retain(|_, service| !ended(service.owner));
        let closed = self.ports.ports.iter().filter(|(_, port)| ended(port.owner));
        let closed: Vec<Vec<u8>> = closed.map(|(name, _)| name.clone()).collect();
        closed.iter().for_each(|name| self.close_port(name));
    }
}
