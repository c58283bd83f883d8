//! Communicators behind handles: the data that this crate keeps for each communicator, and the calls that
//! query communicators.
//!
//! `world.rs` makes `MPI_COMM_WORLD` and `MPI_COMM_SELF`. `create.rs` makes and frees communicators.
//! `attribute.rs` has the attributes of communicators, `hints.rs` their hints, and `buffer.rs` the buffers
//! for buffered sends. `intercomm.rs` has the calls about intercommunicators. `from_group.rs` has the calls that make
//! communicators from groups without a parent communicator, `spawn.rs` those that start processes, and `ports.rs` those by which
//! processes meet. Groups are in `group.rs`.

pub mod attribute;
pub mod buffer;
pub mod create;
pub mod from_group;
pub mod hints;
pub mod intercomm;
pub mod ports;
pub mod spawn;
pub mod world;

use crate::abi;
use crate::argument::{Output, Text, TextOutput};
use crate::attribute::Attributes;
use crate::comm::hints::Hints;
use crate::error::handler::{Handler, HandlerCell, On as Kinds};
use crate::error::objects;
use crate::error::{Failure, Result};
use crate::handle::Kind;
use crate::handle::table::{Busy, Table};
use crate::lifecycle::{self, Stage};
use crate::raw::{self, Status};
use std::ffi::c_int;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, TryLockError};
use typepack::{Communicator, Group, Messages};

/// A communicator behind a handle: the runtime's communicator, and the data that only the C calls need.
#[derive(Debug)]
pub struct Comm {
    communicator: Communicator,
    /// The group in which the ranks in arguments and statuses are numbered: the remote group of an
    /// intercommunicator, and otherwise the group of the communicator.
    peers: Group,
    messages: Messages,
    handler: Arc<HandlerCell>,
    name: Mutex<Vec<u8>>,
    attributes: Attributes,
    hints: Hints,
    /// The handle of the session from which the communicator comes; 0 if it comes from init.
    session: usize,
}

static COMMS: Table<Comm> = Table::new(Kind::Comm);
static WORLD: OnceLock<Arc<Comm>> = OnceLock::new();
static OWN: OnceLock<Arc<Comm>> = OnceLock::new();

/// Returns `MPI_COMM_WORLD`; `None` before init and after finalize.
#[inline]
pub fn world() -> Option<&'static Arc<Comm>> {
    WORLD.get().filter(|_| lifecycle::stage() != Stage::After)
}

/// Returns `MPI_COMM_SELF`; `None` before init and after finalize.
pub fn own() -> Option<&'static Arc<Comm>> {
    OWN.get().filter(|_| lifecycle::stage() != Stage::After)
}

impl Comm {
    /// Makes a communicator with the name `name`. `session` is the handle of the session from which the
    /// communicator comes; 0 if it comes from init.
    pub fn new(communicator: Communicator, handler: Handler, name: &str, session: usize) -> Self {
        if !name.is_empty() {
            communicator.set_name(name);
        }
        Self {
            messages: communicator.messages(),
            peers: communicator.peers().clone(),
            communicator,
            handler: Arc::new(HandlerCell::new(handler)),
            name: Mutex::new(name.into()),
            attributes: Attributes::new(),
            hints: Hints::default(),
            session,
        }
    }

    /// Returns whether the program may use the communicator. `MPI_Finalize` ends all communicators that do not come
    /// from a session.
    fn is_alive(&self) -> bool {
        self.session != 0 || lifecycle::stage() != Stage::After
    }

    /// Returns the runtime's communicator.
    pub fn communicator(&self) -> &Communicator {
        &self.communicator
    }

    /// Returns the part of the runtime that sends and receives the user's messages in this communicator. Its
    /// functions name a process by its rank in the world, not by its rank in the communicator.
    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    /// Returns the rank of this process in the communicator.
    pub fn rank(&self) -> usize {
        self.communicator.rank()
    }

    /// Returns the number of ranks of the communicator.
    pub fn size(&self) -> usize {
        self.communicator.size()
    }

    /// Returns the rank in the world of rank `peer` of the communicator, or of the remote group of an
    /// intercommunicator; `None` if there is no such rank.
    pub fn world_rank(&self, peer: usize) -> Option<usize> {
        self.peers.world_rank(peer)
    }

    /// Converts the rank of a process in the world to its rank in the communicator, or in the remote group of an
    /// intercommunicator; `None` if the process is not in that group.
    pub fn rank_of_peer(&self, world: usize) -> Option<usize> {
        self.peers.rank_of(world)
    }

    /// Converts a rank like [`rank_of_peer`](Self::rank_of_peer); `usize::MAX` if the process is not in that group.
    pub fn peer_rank(&self, world: usize) -> usize {
        self.rank_of_peer(world).unwrap_or(usize::MAX)
    }

    /// Converts the runtime's status of a message to an MPI status. The source in the MPI status is a rank
    /// of this communicator, or of the remote group of an intercommunicator.
    pub fn status(&self, status: typepack::Status) -> Status {
        let source = self.peer_rank(status.source) as c_int;
        let mut result = Status { source, tag: status.tag, ..Status::default() };
        result.set_bytes(status.bytes);
        result
    }

    /// Returns the status of the message that a failed receive matched, for example a message that was too
    /// long (MPI-5.0 section 3.2.5); `None` if the receive matched no message.
    pub fn status_of_error(&self, error: &typepack::Error) -> Option<Status> {
        error.received().map(|received| self.status(received))
    }

    /// Returns the attributes of the communicator.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// Returns the error handler of the communicator.
    pub fn handler(&self) -> &HandlerCell {
        &self.handler
    }

    /// Returns `failure` after recording in it that the error handler of this communicator must be called, with
    /// `handle` as an argument.
    #[cold]
    pub fn raise(&self, handle: raw::Comm, failure: impl Into<Failure>) -> Failure {
        let mut failure = failure.into();
        failure.on = Some((handle.0, self.handler().get()));
        failure
    }
}

/// A reference that keeps a communicator alive. `MPI_COMM_WORLD` is never freed, so a reference to it is not
/// counted: for a short message, updating the count would take at least as long as copying the message.
#[derive(Clone, Debug)]
pub enum Keep {
    /// `MPI_COMM_WORLD`.
    World(&'static Comm),
    /// Another communicator.
    Counted(Arc<Comm>),
}

impl Deref for Keep {
    type Target = Comm;

    #[inline]
    fn deref(&self) -> &Comm {
        match self {
            Self::World(world) => world,
            Self::Counted(comm) => comm,
        }
    }
}

/// Returns a reference to the communicator of a handle.
///
/// # Errors
/// Returns `MPI_ERR_COMM` if the handle is not valid.
#[inline]
pub fn keep(comm: raw::Comm) -> Result<Keep> {
    match (comm.0, world()) {
        (abi::COMM_WORLD, Some(world)) => Ok(Keep::World(world)),
        _ => find(comm).map(Keep::Counted),
    }
}

/// The communicator of an operation, together with the handle that the program passed to the call.
#[derive(Clone, Debug)]
pub struct On {
    /// The communicator.
    pub comm: Arc<Comm>,
    /// The handle, which error handlers get as an argument.
    pub handle: raw::Comm,
}

impl On {
    /// Returns `failure` after recording in it that the error handler of this communicator must be called.
    #[cold]
    pub fn raise(&self, failure: impl Into<Failure>) -> Failure {
        self.comm.raise(self.handle, failure)
    }
}

/// Returns the communicator of a handle, together with the handle.
///
/// # Errors
/// Returns `MPI_ERR_COMM` if the handle is not valid.
#[inline]
pub fn on(comm: raw::Comm) -> Result<On> {
    Ok(On { comm: find(comm)?, handle: comm })
}

/// Returns the communicator of a handle.
///
/// # Errors
/// Returns `MPI_ERR_COMM` if the handle is not valid.
pub fn find(comm: raw::Comm) -> Result<Arc<Comm>> {
    let found = match comm.0 {
        abi::COMM_WORLD => world().cloned(),
        abi::COMM_SELF => own().cloned(),
        _ => COMMS.find(comm.0).filter(|comm| comm.is_alive()),
    };
    found.ok_or_else(|| invalid(comm))
}

/// Describes a communicator for a debugger, without waiting for a lock: its name, the rank, and the group. Returns `None`
/// if the handle is not valid.
///
/// # Errors
/// Returns [`Busy`] if a thread holds a lock that the description needs.
pub fn described(comm: raw::Comm) -> std::result::Result<Option<String>, Busy> {
    let found = match comm.0 {
        abi::COMM_WORLD => world().cloned(),
        abi::COMM_SELF => own().cloned(),
        _ => COMMS.try_find(comm.0)?.filter(|comm| comm.is_alive()),
    };
    let Some(comm) = found else { return Ok(None) };
    let name = match comm.name.try_lock() {
        Ok(name) => String::from_utf8_lossy(&name).into_owned(),
        Err(TryLockError::Poisoned(poisoned)) => {
            String::from_utf8_lossy(&poisoned.into_inner()).into_owned()
        }
        Err(TryLockError::WouldBlock) => return Err(Busy),
    };
    let communicator = comm.communicator();
    let named = if name.is_empty() { "a communicator".to_owned() } else { name };
    let (rank, group) = (communicator.rank(), processes(communicator.group()));
    let remote = communicator.remote_group().map_or_else(String::new, |remote| {
        format!(", to {} ranks, processes {}", remote.size(), processes(remote))
    });
    let size = communicator.size();
    Ok(Some(format!("{named}: rank {rank} of {size}, processes {group}{remote}")))
}

/// Returns the processes of a group by their numbers in the job, in the order of their ranks, such as `0..3, 7`.
fn processes(group: &Group) -> String {
    /// The most runs of consecutive numbers that the text names.
    const MOST: usize = 8;
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for process in (0..group.size()).filter_map(|rank| group.world_rank(rank)) {
        let most = runs.len() == MOST;
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == process => *last = process,
            _ if most => return told(&runs) + ", …",
            _ => runs.push((process, process)),
        }
    }
    told(&runs)
}

fn told(runs: &[(usize, usize)]) -> String {
    let of_run = |(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}..{last}"),
    };
    runs.iter().map(of_run).collect::<Vec<_>>().join(", ")
}

/// Calls `work` with the communicator of a handle.
///
/// This function takes no counted reference to `MPI_COMM_WORLD`, for the reason that [`Keep`] gives.
///
/// # Errors
/// Returns `MPI_ERR_COMM` if the handle is not valid, and the errors of `work`.
#[inline]
pub fn with<R>(comm: raw::Comm, work: impl FnOnce(&Comm) -> Result<R>) -> Result<R> {
    match (comm.0, world()) {
        (abi::COMM_WORLD, Some(world)) => work(world),
        _ => work(&*find(comm)?),
    }
}

/// Checks that a handle is valid.
///
/// # Errors
/// Returns `MPI_ERR_COMM` if the handle is not valid.
#[inline]
pub fn check(comm: raw::Comm) -> Result {
    match comm.0 {
        abi::COMM_WORLD | abi::COMM_SELF if world().is_some() => Ok(()),
        _ if lifecycle::stage() != Stage::After && COMMS.has(comm.0) => Ok(()),
        _ => find(comm).map(drop),
    }
}

#[cold]
fn invalid(comm: raw::Comm) -> Failure {
    if matches!(comm.0, abi::COMM_WORLD | abi::COMM_SELF) {
        let name = if comm.0 == abi::COMM_WORLD { "MPI_COMM_WORLD" } else { "MPI_COMM_SELF" };
        let detail = format!(
            "{name} exists only between MPI_Init and MPI_Finalize; a session makes communicators from process sets"
        );
        return Failure::new(abi::ERR_COMM, "comm", detail);
    }
    let null = (abi::COMM_NULL, "MPI_COMM_NULL");
    Failure::no_object(abi::ERR_COMM, ("comm", "communicator"), comm.0, null)
}

/// Returns the live handle whose lower 32 bits are `integer`; `None` if there is none.
pub fn from_int(integer: c_int) -> Option<usize> {
    COMMS.of_int(integer)
}

/// `MPI_Comm_rank`.
pub fn rank(comm: raw::Comm, rank: Output<c_int>) -> Result {
    let comm = find(comm)?;
    let out = rank.required("rank")?;
    out.set(comm.rank() as c_int);
    Ok(())
}

/// `MPI_Comm_size`.
pub fn size(comm: raw::Comm, size: Output<c_int>) -> Result {
    let comm = find(comm)?;
    let out = size.required("size")?;
    out.set(comm.size() as c_int);
    Ok(())
}

/// `MPI_Comm_test_inter`.
pub fn test_inter(comm: raw::Comm, flag: Output<c_int>) -> Result {
    let comm = find(comm)?;
    let out = flag.required("flag")?;
    out.set(comm.communicator.is_inter().into());
    Ok(())
}

/// `MPI_Comm_remote_size`.
pub fn remote_size(comm: raw::Comm, size: Output<c_int>) -> Result {
    let comm = find(comm)?;
    let remote = remote(&comm)?;
    size.required("size")?.set(remote.size() as c_int);
    Ok(())
}

/// `MPI_Comm_remote_group`.
pub fn remote_group(comm: raw::Comm, group: Output<raw::Group>) -> Result {
    let comm = find(comm)?;
    let remote = remote(&comm)?.clone();
    let out = group.required("group")?;
    out.set(crate::group::insert(remote, comm.session)?);
    Ok(())
}

fn remote(comm: &Comm) -> Result<&Group> {
    comm.communicator.remote_group().ok_or_else(|| {
        Failure::new(abi::ERR_COMM, "comm", "an intracommunicator has no remote group")
    })
}

/// `MPI_Comm_group`.
pub fn group(comm: raw::Comm, group: Output<raw::Group>) -> Result {
    let comm = find(comm)?;
    let out = group.required("group")?;
    out.set(crate::group::insert(comm.communicator.group().clone(), comm.session)?);
    Ok(())
}

/// `MPI_Comm_compare`.
pub fn compare(comm1: raw::Comm, comm2: raw::Comm, result: Output<c_int>) -> Result {
    let (first, second) = (find(comm1)?, find(comm2)?);
    let out = result.required("result")?;
    out.set(crate::group::comparison(first.communicator.compare(&second.communicator)));
    Ok(())
}

/// `MPI_Comm_set_name`.
pub fn set_name(comm: raw::Comm, name: Text) -> Result {
    let comm = find(comm)?;
    let name = name.cut(abi::MAX_OBJECT_NAME, "comm_name")?;
    comm.communicator.set_name(&name);
    *comm.name.lock().unwrap_or_else(PoisonError::into_inner) = name;
    Ok(())
}

/// `MPI_Comm_get_name`.
pub fn get_name(
    comm: raw::Comm,
    name: TextOutput<{ abi::MAX_OBJECT_NAME }>,
    resultlen: Output<c_int>,
) -> Result {
    // The standard gives the null handle a name too (MPI-5.0 section 7.8).
    let bytes = match comm {
        raw::Comm::NULL => b"MPI_COMM_NULL".to_vec(),
        comm => find(comm)?.name.lock().unwrap_or_else(PoisonError::into_inner).clone(),
    };
    let length = resultlen.required("resultlen")?;
    length.set(name.required("comm_name")?.write(&bytes));
    Ok(())
}

/// Returns the error handler of a communicator, or of a duplicate that does not exist yet. Such a duplicate
/// is included because some programs, for example mpi4py, set the error handler as soon as they have the
/// handle.
///
/// # Errors
/// Returns `MPI_ERR_COMM` if the handle is not valid.
fn handler(comm: raw::Comm) -> Result<Arc<HandlerCell>> {
    match (find(comm), create::handler_in_the_making(comm)) {
        (Ok(found), _) => Ok(found.handler.clone()),
        (Err(_), Some(handler)) => Ok(handler),
        // The duplicate may have been completed between the two lookups above, in which case neither of them
        // found it.
        (Err(_), None) => Ok(find(comm)?.handler.clone()),
    }
}

/// `MPI_Comm_set_errhandler`.
pub fn set_errhandler(comm: raw::Comm, errhandler: raw::Errhandler) -> Result {
    objects::set_handler(&*handler(comm)?, Kinds::Comm, errhandler)
}

/// `MPI_Comm_get_errhandler`.
pub fn get_errhandler(comm: raw::Comm, errhandler: Output<raw::Errhandler>) -> Result {
    objects::get_handler(&*handler(comm)?, errhandler)
}

/// `MPI_Comm_call_errhandler`. The call succeeds if the error handler returns.
pub fn call_errhandler(comm: raw::Comm, errorcode: c_int) -> Result {
    objects::call_handler(&*handler(comm)?, comm.0, "MPI_Comm_call_errhandler", errorcode);
    Ok(())
}
