//! Ports, services and sockets (MPI-5.0 sections 11.9 and 11.10.4): how two worlds of one job meet that have no
//! communicator in common.
//!
//! The launcher knows the ports and services of the job. The roots of two calls meet there, and learn each other's slots;
//! with [`Communicator::join`], two processes learn them through a socket of the program.

use super::{of_refusal, strange};
use crate::comm::Communicator;
use crate::endpoint::progress::Awaited;
use crate::process::Process;
use crate::shm::waiting::Kind;
use crate::sys::stream::{self, Transfer};
use crate::{Error, ErrorKind, ProcessErrorKind, Result};
use std::os::fd::{AsFd, OwnedFd};
use typepack_job::service::{Answer, Request};

/// With these bytes a message through a socket begins.
const MAGIC: [u8; 8] = *b"typepkJ1";

/// What a process tells another one through a socket: the magic bytes, the number of the job, its slot, and a number that
/// it has given to no other call.
const GREETING: usize = 8 + 8 + 4 + 8;

impl Communicator {
    /// Asks the launcher something about ports or services. Returns the name in its answer, if there is one.
    pub(crate) fn ask_about_ports(&self, request: &Request) -> Result<Vec<u8>> {
        match self.endpoint().ask(&Awaited::Work(Kind::Other), request)? {
            Answer::Done => Ok(Vec::new()),
            Answer::Port(name) => Ok(name),
            Answer::Refused(kind, why) => Err(of_refusal(kind, &why)),
            _ => Err(strange()),
        }
    }

    /// Waits until the ranks of another communicator connect to a port, and makes an intercommunicator with them.
    /// Collective; only the port that the rank `root` passes counts. [`Universe::open_port`] opens a port.
    ///
    /// [`Universe::open_port`]: crate::Universe::open_port
    ///
    /// # Errors
    /// - `ErrorKind::Process` if there is no such port, or if it is closed while the call waits.
    /// - `ErrorKind::Comm` if this is an intercommunicator, or has a rank in common with the other communicator, and
    ///   `ErrorKind::Root` if it has no rank `root`.
    /// - `ErrorKind::State` if this process was started without `mpiexec`, and no `mpiexec` can be started behind it.
    /// - `ErrorKind::Other` if another rank has found an error in its arguments.
    /// - `ErrorKind::ProcAborted` if a rank has died.
    #[doc(alias = "MPI_Comm_accept")]
    pub fn accept(&self, port: impl AsRef<[u8]>, root: usize) -> Result<Self> {
        let request = Request::Accept(port.as_ref().to_vec());
        self.meet("Communicator::accept", &request, root)
    }

    /// Connects to the ranks of another communicator that accept at a port, and makes an intercommunicator with them.
    /// Waits until they do. Collective; only the port that the rank `root` passes counts.
    ///
    /// # Errors
    /// Returns the errors of [`accept`](Self::accept).
    #[doc(alias = "MPI_Comm_connect")]
    pub fn connect_to(&self, port: impl AsRef<[u8]>, root: usize) -> Result<Self> {
        let request = Request::Connect(port.as_ref().to_vec());
        self.meet("Communicator::connect_to", &request, root)
    }

    fn meet(&self, call: &'static str, request: &Request, root: usize) -> Result<Self> {
        self.check_intra("comm")
            .and_then(|()| self.check_rank(root, "root", ErrorKind::Root))
            .inspect_err(|_| self.fail_creation())?;
        self.agreed_number()?;
        let mut met = None;
        let told = self.told(root, || {
            match self.endpoint().ask(&self.awaited(call, Kind::Other, None), request)? {
                // Another thread of this process makes the other call.
                Answer::Met { slot, .. } if slot as usize == self.endpoint().rank() => {
                    let own = Process::new(slot as usize);
                    let detail =
                        format!("the port connects {own} with itself; the two groups must have no common member");
                    Err(Error::new(ErrorKind::Comm, "comm", detail))
                }
                Answer::Met { slot, number } => {
                    met = Some(slot as usize);
                    Ok([slot.into(), number.into(), 0])
                }
                Answer::Refused(kind, why) => Err(of_refusal(kind, &why)),
                _ => Err(strange()),
            }
        });
        let made = told.and_then(|[_, number, _]| {
            self.with_leader(root, met, format!("port:{number}").as_bytes())
        });
        // The communicator has the bond now, or there is none.
        met.into_iter().for_each(|other| self.endpoint().end_meeting(other));
        made
    }

    /// Makes an intercommunicator of this process and the process at the other end of a socket; see
    /// [`Universe::join`](crate::Universe::join). This communicator has only this process.
    pub(crate) fn join(&self, socket: &OwnedFd) -> Result<Self> {
        let refused = |error: std::io::Error| {
            Error::new(ErrorKind::Argument, "fd", format!("cannot use the socket: {error}"))
        };
        let (own, job) = (self.endpoint().rank(), self.endpoint().job_number());
        if job.is_none() {
            let detail = "this process was started without mpiexec, so no other process is in its job; start both processes in \
                          one job";
            return Err(Error::new(ErrorKind::State, "job", detail));
        }
        let job = job.unwrap_or_default();
        let number = self.endpoint().new_context();
        let mut greeting = [0; GREETING];
        greeting[..8].copy_from_slice(&MAGIC);
        greeting[8..16].copy_from_slice(&job.to_le_bytes());
        greeting[16..20].copy_from_slice(&(own as u32).to_le_bytes());
        greeting[20..].copy_from_slice(&number.to_le_bytes());
        let (mut sent, mut answer, mut received) = (0, [0; GREETING], 0);
        // Whoever reads second finds the bytes of the other process at once, and then wakes it.
        let heard = self.endpoint().attend_outside(
            &self.awaited("Universe::join", Kind::Other, None),
            || {
                while sent < GREETING {
                    match stream::send(socket.as_fd(), &greeting[sent..]) {
                        Ok(Transfer::Moved(n)) => sent += n,
                        Ok(Transfer::Later) => return None,
                        Ok(Transfer::Closed) => {
                            return Some(Err(std::io::ErrorKind::BrokenPipe.into()));
                        }
                        Err(error) => return Some(Err(error)),
                    }
                }
                while received < GREETING {
                    match stream::receive(socket.as_fd(), &mut answer[received..]) {
                        Ok(Transfer::Moved(n)) => received += n,
                        Ok(Transfer::Later) => return None,
                        Ok(Transfer::Closed) => {
                            return Some(Err(std::io::ErrorKind::UnexpectedEof.into()));
                        }
                        Err(error) => return Some(Err(error)),
                    }
                }
                Some(Ok(()))
            },
        )?;
        heard.map_err(refused)?;
        let word = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&answer[at..at + 8]);
            u64::from_le_bytes(bytes)
        };
        let slot = (word(16) & 0xffff_ffff) as usize;
        let port = ErrorKind::Process(ProcessErrorKind::Port);
        let wrong = |kind, detail: &str| Err(Error::new(kind, "fd", detail));
        if answer[..8] != MAGIC {
            return wrong(
                ErrorKind::Argument,
                "the other process has sent other bytes than this call sends",
            );
        }
        if word(8) != job {
            let detail = "the other process is in another job (another mpiexec); only processes of one job can connect";
            return wrong(port, detail);
        }
        if slot == own || slot >= self.endpoint().processes() {
            return wrong(
                ErrorKind::Argument,
                "the other end of the socket is not another process of the job",
            );
        }
        // From now on this process waits for the other one, whose death must end it.
        let worlds = self.endpoint().other_worlds(std::iter::once(slot));
        self.endpoint().bind(&worlds);
        self.endpoint().ring(slot);
        let mut numbers = [number, word(20)];
        numbers.sort_unstable();
        let made = self.with_leader(0, Some(slot), format!("join:{numbers:?}").as_bytes());
        // The communicator has a bond of its own.
        self.endpoint().unbind(&worlds);
        made
    }
}
