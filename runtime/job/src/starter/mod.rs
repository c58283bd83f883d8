//! Joins the job of ranks that `mpiexec` has not started.
//!
//! `runtime/src/world.rs` calls [`join`] if no `mpiexec` of typepack has started this process: another launcher may have, one
//! that speaks PMI (MPICH's hydra, Slurm, Flux). The ranks find each other
//! through the launcher (`pmi.rs`). The first rank starts a process that does what `mpiexec` does besides starting ranks
//! (`watcher.rs`): it makes the segment, watches the ranks and tells of deaths. The ranks get the segment from it over a
//! local socket (`messages.rs`), and from then on nothing differs from a job of `mpiexec` (`shm/attach.rs`).
//!
//! 1. Each rank puts into the launcher's table on which machine it is, and which process. All wait for each other.
//! 2. The first rank reads all of it. If all ranks are on one machine, it starts the watcher, and puts the name at which the
//!    watcher listens into the table; otherwise it says why there is no job, and puts that there is none. All wait again.
//! 3. Each rank connects to the watcher, and gets the segment when all ranks are there.
//!
//! A process that is by itself starts a watcher, too, but only when it first needs a job of which it is a part: to start
//! other processes, or to meet them ([`found`]). That is step 3 without the others.
//!
//! Invariants: no rank waits for another one except in the launcher's barriers and in step 3, where the watcher knows the
//! processes of all ranks: the end of one ends the waits of all. Both ends of the local socket refuse other users.

mod machine;
pub mod messages;
pub mod pmi;
mod watcher;

use std::env;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use self::machine::{Machine, several};
use self::messages::{Hello, MESSAGE_MAX, READY, parse_refusal};
use self::pmi::Connection;
use crate::error::{Error, ErrorKind};
use crate::shm::attach::Attached;
use crate::shm::layout::MAX_RANKS;
use crate::sys::{local_socket, process};

/// Environment variable: the number of the inherited descriptor over which the launcher speaks PMI.
pub const PMI_FD: &str = "PMI_FD";
/// Environment variable: number of this rank.
pub const PMI_RANK: &str = "PMI_RANK";
/// Environment variable: number of ranks.
pub const PMI_SIZE: &str = "PMI_SIZE";

/// What the table says instead of a name if there is no job.
const NO_JOB: &str = "none";

/// The connection to the launcher of this process, once the process has joined its job.
static STARTER: OnceLock<Starter> = OnceLock::new();

/// True once this process has joined a job by [`enter`].
static ADOPTED: AtomicBool = AtomicBool::new(false);

#[derive(Debug)]
struct Starter {
    pmi: Connection,
    universe: Option<u32>,
    has_left: AtomicBool,
}

/// Joins the job of the launcher that has started this process. Returns `Ok(None)` if no launcher that speaks PMI has
/// started it, or if it is the only process.
///
/// If the ranks are on several machines, the first rank prints a line that says so, and all ranks end with code 1.
///
/// # Errors
///
/// Returns [`ErrorKind::NotARank`] if the variables are odd, if this process is a child of a rank, or if the launcher or
/// the watcher gives an odd answer; [`ErrorKind::LauncherGone`] if one of them has ended; [`ErrorKind::Mismatch`] if
/// `mpiexec` is of another build; and the other errors of [`attach_from_env`](crate::shm::attach_from_env).
pub fn join() -> Result<Option<Attached>, Error> {
    let Some(offer) = offer()? else { return Ok(None) };
    let stream = local_socket::inherited(offer.fd).map_err(|error| Error::system(PMI_FD, error))?;
    let stream = stream.ok_or_else(|| {
        not_a_rank(format!(
            "{PMI_FD}={} names no open socket; a child of a rank cannot join, and wrappers must leave descriptors open",
            offer.fd
        ))
    })?;
    let pmi = Connection::open(stream)?;
    let (program, universe) = (pmi.app_number()?, pmi.universe_size()?);
    let (name, lifeline) = meet(&pmi, offer)?;
    let hello = Hello { rank: offer.rank, program: Some(program) };
    let attached = enter(&name, hello, offer.size, Some(&pmi))?;
    // The watcher has all ranks now.
    drop(lifeline);
    let has_left = AtomicBool::new(false);
    STARTER.get_or_init(|| Starter { pmi, universe, has_left });
    Ok(Some(attached))
}

/// Makes a job of which this process is the only rank, and to which others can be added while it runs. The process belongs to
/// no job yet.
///
/// # Errors
///
/// Returns [`ErrorKind::NotARank`] if there is no `mpiexec` that can watch the job, or it gives an odd answer;
/// [`ErrorKind::Mismatch`] if `mpiexec` is of another build; and the other errors of
/// [`attach_from_env`](crate::shm::attach_from_env).
pub fn found() -> Result<Attached, Error> {
    let watcher = watcher::start(&[process::own_id().unsigned_abs()])?;
    // The lifeline in `watcher` closes when the watcher has this process.
    enter(&watcher.name, Hello { rank: 0, program: None }, 1, None)
}

/// Returns whether another launcher offers this process a place in a job of several ranks, so that [`join`] may join it.
pub fn is_offered() -> bool {
    offer().is_ok_and(|offer| offer.is_some())
}

/// Returns whether this process is a rank that `mpiexec` watches and has not started: one that another launcher has started, or
/// one that was by itself at first.
pub fn is_adopted() -> bool {
    ADOPTED.load(Ordering::Acquire)
}

/// Returns the number of processes for which the launcher says that the job has room. Returns `None` if it has not said
/// so, or if no other launcher has started this rank.
pub fn universe_size() -> Option<u32> {
    STARTER.get()?.universe
}

/// Tells the launcher that this rank leaves the job. Later calls do nothing, also if the rank has returned to the job.
///
/// # Errors
///
/// Returns [`ErrorKind::NotARank`] if the launcher gives an odd answer, and [`ErrorKind::LauncherGone`] if it has ended.
pub fn leave(attached: &Attached) -> Result<(), Error> {
    match STARTER.get() {
        Some(starter) if !starter.has_left.swap(true, Ordering::AcqRel) => {
            attached.leave_starter()?;
            starter.pmi.finalize()
        }
        _ => Ok(()),
    }
}

/// Asks the launcher to end the job with the exit code `code`.
pub fn abort(code: i32) {
    if let Some(starter) = STARTER.get().filter(|starter| !starter.has_left.load(Ordering::Acquire))
    {
        starter.pmi.abort(code);
    }
}

/// What the launcher has put into the environment.
#[derive(Clone, Copy, Debug)]
struct Offer {
    fd: i32,
    rank: u32,
    size: u32,
}

fn offer() -> Result<Option<Offer>, Error> {
    let Some(fd) = env::var_os(PMI_FD) else { return Ok(None) };
    let number = |name: &str| {
        let value = env::var_os(name)
            .ok_or_else(|| not_a_rank(format!("{PMI_FD} is set, but {name} is not")))?;
        let number = value.to_str().and_then(|text| text.parse::<u32>().ok());
        number.ok_or_else(|| not_a_rank(format!("{name}={value:?} is not a number")))
    };
    let (rank, size) = (number(PMI_RANK)?, number(PMI_SIZE)?);
    // A process by itself needs nobody.
    if size == 1 {
        return Ok(None);
    }
    if rank >= size || size as usize > MAX_RANKS {
        return Err(not_a_rank(format!(
            "{PMI_RANK}={rank} and {PMI_SIZE}={size}: a rank is below the number of ranks, which is at most {MAX_RANKS}"
        )));
    }
    match fd.to_str().and_then(|text| text.parse().ok()).filter(|fd| *fd > 2) {
        Some(fd) => Ok(Some(Offer { fd, rank, size })),
        None => Err(not_a_rank(format!("{PMI_FD}={fd:?}: it must be a number above 2"))),
    }
}

/// Does the steps 1 and 2 of the list at the top of this file. Returns the name at which the watcher listens, and in the
/// first rank the descriptor that keeps the watcher alive until all ranks are there.
fn meet(pmi: &Connection, offer: Offer) -> Result<(String, Option<OwnedFd>), Error> {
    let place = |rank: u32| format!("typepack-machine-{rank}");
    pmi.put(&place(offer.rank), &Machine::own().to_value())?;
    pmi.barrier()?;
    let mut refused = None;
    let mut lifeline = None;
    if offer.rank == 0 {
        let machines: Result<Vec<Machine>, Error> =
            (0..offer.size).map(|rank| Ok(Machine::parse(&pmi.get(&place(rank))?))).collect();
        let machines = machines?;
        let pids: Vec<u32> = machines.iter().map(|machine| machine.pid).collect();
        let started = match several(&machines) {
            Some(line) => {
                eprintln!("typepack: {line}");
                None
            }
            None => watcher::start(&pids).map_err(|error| refused = Some(error)).ok(),
        };
        let name = match (&started, &refused) {
            (Some(watcher), _) => &watcher.name,
            (None, Some(_)) => NO_JOB,
            (None, None) => "",
        };
        // A value must not be empty.
        pmi.put("typepack-job", &format!("={name}"))?;
        lifeline = started.map(|watcher| watcher.lifeline);
    }
    pmi.barrier()?;
    let name = pmi.get("typepack-job")?;
    match name.strip_prefix('=') {
        // The ranks are on several machines, and the first rank has said so.
        Some("") => {
            // The process ends in any case.
            let _ending = pmi.finalize();
            process::end(1)
        }
        Some(NO_JOB) => {
            let others =
                "the first rank cannot start mpiexec to watch the job; its message says why";
            Err(refused.unwrap_or_else(|| not_a_rank(others.into())))
        }
        Some(name) => Ok((name.to_owned(), lifeline)),
        None => Err(not_a_rank(format!(
            "PMI: the table says typepack-job={name:?}, which no rank of typepack puts there"
        ))),
    }
}

/// Does step 3 of the list at the top of this file: says hello to the watcher, and joins the job.
fn enter(name: &str, hello: Hello, size: u32, pmi: Option<&Connection>) -> Result<Attached, Error> {
    let failed =
        |error| Error::system("cannot connect to the process that watches this job", error);
    let gone =
        || Error::new(ErrorKind::LauncherGone, "the process that watches this job has ended");
    let connection = local_socket::connect(name).map_err(failed)?;
    if !local_socket::peer(connection.as_fd()).map_err(failed)?.is_own_user {
        return Err(not_a_rank(format!(
            "the process at the name {name:?} belongs to another user"
        )));
    }
    let starter = pmi.map(Connection::stream);
    local_socket::send(connection.as_fd(), &hello.to_bytes(), starter.as_slice())
        .map_err(|_| gone())?;
    let mut buffer = [0; MESSAGE_MAX];
    let (len, mut fds) = local_socket::receive(connection.as_fd(), &mut buffer).map_err(failed)?;
    if let Some(reason) = parse_refusal(&buffer[..len]) {
        return Err(not_a_rank(format!(
            "the process that watches this job refuses this rank: {reason}"
        )));
    }
    let segment = match (&buffer[..len], fds.len()) {
        (READY, 1) => fds.remove(0),
        (b"", _) => return Err(gone()),
        _ => {
            return Err(not_a_rank("the process that watches this job gives an odd answer".into()));
        }
    };
    // The watcher sends nothing more. From here on, what arrives at the connection is its end.
    let (len, _) = local_socket::receive(connection.as_fd(), &mut buffer).map_err(failed)?;
    if len != 0 {
        return Err(not_a_rank("the process that watches this job sends too much".into()));
    }
    let rank = hello.rank as usize;
    let attached = Attached::enter(segment, connection, (rank, rank, size as usize))?;
    ADOPTED.store(true, Ordering::Release);
    Ok(attached)
}

fn not_a_rank(detail: String) -> Error {
    Error::new(ErrorKind::NotARank, detail)
}
