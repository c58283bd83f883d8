//! Joins the job of ranks that `mpiexec` has not started.
//!
//! `runtime/src/world.rs` calls [`join`] if no `mpiexec` of typepack has started this process: another launcher may have, one
//! that speaks PMI (MPICH's hydra, Slurm, Flux). The ranks find each other
//! through the launcher (`pmi.rs`). The first rank starts a process that does what `mpiexec` does besides starting ranks
//! (`watcher.rs`): it makes the segment, watches the ranks and tells of deaths. The ranks get the segment from it over a
//! local socket (`messages.rs`), and from then on nothing differs from a job of `mpiexec` (`shm/attach.rs`).
//!
//! 1. Each rank writes its machine and its process into the launcher's table. Then all ranks wait for each other.
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
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use self::machine::{Machine, own_process, several};
use self::messages::{Hello, MESSAGE_MAX, Process, READY, parse_refusal};
use self::pmi::Connection;
use crate::error::{Error, ErrorKind};
use crate::shm::attach::Attached;
use crate::shm::layout::MAX_RANKS;
use crate::sys::local_socket;
use crate::sys::name_lock::{self, Claim, NameLock};

/// Environment variable: the number of the inherited descriptor over which the launcher speaks PMI.
pub const PMI_FD: &str = "PMI_FD";
/// Environment variable: number of this rank.
pub const PMI_RANK: &str = "PMI_RANK";
/// Environment variable: number of ranks.
pub const PMI_SIZE: &str = "PMI_SIZE";

/// What the table says instead of a name if there is no job.
const NO_JOB: &str = "none";

/// How long a rank that leaves the job waits for the launcher's answer.
const LEAVE_TIME: Duration = Duration::from_secs(1);

/// The connection to the launcher of this process, once the process has joined its job.
static STARTER: OnceLock<Starter> = OnceLock::new();

/// True once this process has joined a job by [`enter`].
static ADOPTED: AtomicBool = AtomicBool::new(false);

#[derive(Debug)]
struct Starter {
    /// `None` if this process is the only one of the launcher, and has asked it nothing.
    pmi: Option<Connection>,
    universe: Option<u32>,
    has_left: AtomicBool,
    /// As long as this process lives, no other one speaks through the same connection.
    _claim: Option<NameLock>,
}

/// What [`join`] has found.
#[derive(Debug)]
pub enum Joined {
    /// No launcher that speaks PMI has started this process, or it is the only process.
    Alone,
    /// This process is a rank.
    Rank(Attached),
    /// The ranks are on several machines, so there is no job, and the process must end with code 1. The first rank has the line
    /// that says so.
    Apart(Option<String>),
}

/// Joins the job of the launcher that has started this process.
///
/// If this process cannot join, but has asked the launcher already, the launcher ends the other ranks, so that none waits for
/// it. If the first rank cannot start the watcher, all ranks return the error.
///
/// # Errors
///
/// Returns [`ErrorKind::NotARank`] if the variables are odd, if this process is a child of a rank, if another process has
/// joined as this rank, or if the launcher or the watcher gives an odd answer; [`ErrorKind::LauncherGone`] if one of them has
/// ended; [`ErrorKind::Mismatch`] if `mpiexec` is of another build; and the other errors of
/// [`attach_from_env`](crate::shm::attach_from_env).
pub fn join() -> Result<Joined, Error> {
    let Some(offer) = offer()? else { return Ok(Joined::Alone) };
    let stream = local_socket::inherited(offer.fd).map_err(|error| Error::system(PMI_FD, error))?;
    let stream = stream.ok_or_else(|| {
        not_a_rank(format!(
            "{PMI_FD}={} names no open socket; a child of a rank cannot join, and wrappers must leave descriptors open",
            offer.fd
        ))
    })?;
    let claim = claim(stream.as_fd(), offer.rank)?;
    let pmi = Connection::new(stream);
    let (met, pmi) = join_over(pmi, offer)?;
    match met {
        Met::Apart(line) => Ok(Joined::Apart(line)),
        Met::Rank(attached, universe) => {
            let (pmi, has_left) = (Some(pmi), AtomicBool::new(false));
            STARTER.get_or_init(|| Starter { pmi, universe, has_left, _claim: Some(claim) });
            Ok(Joined::Rank(attached))
        }
    }
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
    let starter = only_connection();
    let watcher = watcher::start(&[own_process()])?;
    // The lifeline in `watcher` closes when the watcher has this process.
    let hello = Hello { rank: 0, program: None };
    let attached = enter(&watcher.name, hello, 1, starter.as_ref().map(OwnedFd::as_fd))?;
    if starter.is_some() {
        let has_left = AtomicBool::new(false);
        STARTER.get_or_init(|| Starter { pmi: None, universe: None, has_left, _claim: None });
    }
    Ok(attached)
}

/// Returns the connection to the launcher, if it has started this process as the only one.
fn only_connection() -> Option<OwnedFd> {
    let number = |name| env::var(name).ok()?.parse::<i32>().ok();
    let fd = number(PMI_FD).filter(|fd| *fd > 2 && number(PMI_SIZE) == Some(1))?;
    local_socket::inherited(fd).ok()?
}

/// Returns whether another launcher offers this process a place in a job of several ranks, so that [`join`] may join it.
///
/// # Errors
///
/// Returns [`ErrorKind::NotARank`] if the variables are odd, so that [`join`] fails.
pub fn is_offered() -> Result<bool, Error> {
    Ok(offer()?.is_some())
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

/// Tells the launcher that this rank leaves the job. Later calls do nothing, also if the rank has returned to the job. What the
/// launcher answers does not matter, and if it answers nothing, the rank leaves after a second.
///
/// # Errors
///
/// Returns [`ErrorKind::LauncherGone`] if the process that watches this rank has ended.
pub fn leave(attached: &Attached) -> Result<(), Error> {
    if let Some(starter) = STARTER.get()
        && !starter.has_left.swap(true, Ordering::AcqRel)
    {
        attached.leave_starter()?;
        if let Some(pmi) = &starter.pmi {
            pmi.finalize(LEAVE_TIME);
        }
    }
    Ok(())
}

/// Asks the launcher to end the job with the exit code `code`.
pub fn abort(code: i32) {
    if let Some(starter) = STARTER.get()
        && !starter.has_left.load(Ordering::Acquire)
        && let Some(pmi) = &starter.pmi
    {
        pmi.abort(code);
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
            "{PMI_RANK}={rank} and {PMI_SIZE}={size}: a rank is below the number of ranks, which is at most {MAX_RANKS}, because \
             the ranks of typepack run on one machine; the guide's chapter \"On clusters\" (running/clusters.md) says what to \
             use on several"
        )));
    }
    match fd.to_str().and_then(|text| text.parse().ok()).filter(|fd| *fd > 2) {
        Some(fd) => Ok(Some(Offer { fd, rank, size })),
        None => Err(not_a_rank(format!("{PMI_FD}={fd:?}: it must be a number above 2"))),
    }
}

/// Makes this process the only one that speaks through `stream`, the connection of the rank `rank`. A process may have forked
/// before it joins, and its child has the connection, too.
fn claim(stream: BorrowedFd<'_>, rank: u32) -> Result<NameLock, Error> {
    let failed =
        |error| Error::system(format!("cannot find out whether rank {rank} is free"), error);
    let name = format!("typepack-pmi-{}", local_socket::number(stream).map_err(failed)?);
    match name_lock::lock(&name).map_err(failed)? {
        Claim::Alone(lock) | Claim::BesideOthers(lock) => Ok(lock),
        Claim::Taken => {
            let holder = match name_lock::holding_process(&name) {
                Some(pid) => format!("process {pid}"),
                None => "another process".to_owned(),
            };
            Err(not_a_rank(format!(
                "{holder} has already joined this job as rank {rank}, through the same {PMI_FD}; each rank joins once"
            )))
        }
    }
}

/// What comes of the steps of the list at the top of this file.
enum Met {
    Rank(Attached, Option<u32>),
    /// The ranks are on several machines.
    Apart(Option<String>),
}

/// Does all steps of the list at the top of this file.
fn join_over(mut pmi: Connection, offer: Offer) -> Result<(Met, Connection), Error> {
    let mut met = || {
        pmi.open()?;
        let (program, universe) = (pmi.app_number()?, pmi.universe_size()?);
        let place = meet(&pmi, offer)?;
        let (name, lifeline) = match place {
            Invitation::Watched(name, lifeline) => (name, lifeline),
            Invitation::Apart(line) => {
                // The process ends in any case.
                pmi.finalize(LEAVE_TIME);
                return Ok(Ok(Met::Apart(line)));
            }
            Invitation::None(error) => return Ok(Err(error)),
        };
        let hello = Hello { rank: offer.rank, program: Some(program) };
        let attached = enter(&name, hello, offer.size, Some(pmi.stream()))?;
        // The watcher has all ranks now.
        drop(lifeline);
        Ok(Ok(Met::Rank(attached, universe)))
    };
    match met() {
        Ok(Ok(met)) => Ok((met, pmi)),
        // All ranks know it.
        Ok(Err(error)) => Err(error),
        Err(error) => {
            pmi.abort(1);
            Err(error)
        }
    }
}

/// What the first rank has put into the launcher's table for all ranks.
enum Invitation {
    /// The name at which the watcher listens, and in the first rank the descriptor that keeps the watcher alive until all ranks
    /// are there.
    Watched(String, Option<OwnedFd>),
    /// The ranks are on several machines. The first rank has the line that says so.
    Apart(Option<String>),
    /// There is no watcher.
    None(Error),
}

/// Does the steps 1 and 2 of the list at the top of this file. The first rank reaches the second barrier whatever happens
/// before: the others wait there.
fn meet(pmi: &Connection, offer: Offer) -> Result<Invitation, Error> {
    pmi.put(&key(offer.rank), &Machine::own().to_value())?;
    pmi.barrier()?;
    if offer.rank == 0 {
        let mut place = lead(pmi, offer.size).unwrap_or_else(Invitation::None);
        let name = match &place {
            Invitation::Watched(name, _) => name,
            Invitation::Apart(_) => "",
            Invitation::None(_) => NO_JOB,
        };
        // A value must not be empty. Without a value, the others see that there is none.
        if let Err(error) = pmi.put(JOB_KEY, &format!("={name}")) {
            place = Invitation::None(error);
        }
        pmi.barrier()?;
        return Ok(place);
    }
    pmi.barrier()?;
    let name = pmi.get(JOB_KEY)?;
    match name.strip_prefix('=') {
        Some("") => Ok(Invitation::Apart(None)),
        Some(NO_JOB) => Ok(Invitation::None(not_a_rank(
            "the first rank cannot start mpiexec to watch the job; its message says why".into(),
        ))),
        Some(name) => Ok(Invitation::Watched(name.to_owned(), None)),
        None => Err(not_a_rank(format!(
            "PMI: the table says {JOB_KEY}={name:?}, which no rank of typepack puts there"
        ))),
    }
}

/// Does what only the first rank does between the barriers.
fn lead(pmi: &Connection, size: u32) -> Result<Invitation, Error> {
    let machines: Result<Vec<Machine>, Error> =
        (0..size).map(|rank| Ok(Machine::parse(&pmi.get(&key(rank))?))).collect();
    let machines = machines?;
    if let Some(line) = several(&machines) {
        return Ok(Invitation::Apart(Some(line)));
    }
    let processes: Vec<Process> = machines.iter().map(|machine| machine.process).collect();
    let watcher = watcher::start(&processes)?;
    Ok(Invitation::Watched(watcher.name, Some(watcher.lifeline)))
}

/// The key under which the table says where the watcher listens.
const JOB_KEY: &str = "typepack-job";

/// Returns the key under which the table says where a rank runs.
fn key(rank: u32) -> String {
    format!("typepack-machine-{rank}")
}

/// Does step 3 of the list at the top of this file: says hello to the watcher, and joins the job.
/// `starter` is the connection to the launcher.
fn enter(
    name: &str,
    hello: Hello,
    size: u32,
    starter: Option<BorrowedFd<'_>>,
) -> Result<Attached, Error> {
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
