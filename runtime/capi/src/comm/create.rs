//! Makes communicators from communicators, and frees them (MPI-5.0 section 7.4).
//!
//! The runtime makes a new communicator in a collective operation. This file adds only what is local to the
//! process: the handle, the error handler and the session of the parent communicator, and for duplicates the
//! attributes and hints that the standard prescribes.

use super::hints::Hints;
use super::{COMMS, Comm, On, find};
use crate::abi;
use crate::argument::{InOut, Output, Place};
use crate::attribute::Attributes;
use crate::error::handler::{Handler, HandlerCell};
use crate::error::{Failure, Result};
use crate::group;
use crate::info::{self, Entry};
use crate::lifecycle;
use crate::raw;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use typepack::{Communicator, Duplicate, Operation, Resource, Universe};

/// Makes a handle for a new communicator and writes the handle to `out`. If this rank is not in the
/// communicator, writes the null handle.
///
/// # Errors
/// Returns `MPI_ERR_OTHER` if no handle is left.
pub fn hand_out(parent: &Comm, made: Option<Communicator>, out: Place<raw::Comm>) -> Result {
    let handle = match made {
        None => raw::Comm::NULL,
        Some(communicator) => {
            let comm = Comm::new(communicator, parent.handler.get(), "", parent.session);
            raw::Comm(COMMS.insert(Arc::new(comm))?)
        }
    };
    out.set(handle);
    Ok(())
}

/// Reads the arguments of a call that makes a communicator from `parent`. If they are wrong, the other ranks get an
/// error too, and the next collective call of this rank matches theirs.
pub fn arguments<T>(parent: &Comm, read: impl FnOnce() -> Result<T>) -> Result<T> {
    read().inspect_err(|_| parent.communicator.fail_creation())
}

fn duplicate(comm: raw::Comm, hints: Result<Vec<Entry>>, newcomm: Output<raw::Comm>) -> Result {
    let parent = find(comm)?;
    // The collective operation comes first. If this rank failed before it, the other ranks would wait for this rank
    // in the collective operation. If this rank fails later, the other ranks still get their duplicates.
    let communicator = parent.communicator.dup()?;
    let (out, hints) = (newcomm.required("newcomm")?, &hints?);
    let dup = Comm::new(communicator, parent.handler.get(), "", parent.session);
    let dup = Arc::new(dup);
    dup.hints.set(hints);
    let handle = COMMS.insert(dup.clone())?;
    if let Err(failure) = parent.attributes.copy(comm.0, &dup.attributes, handle) {
        COMMS.remove(handle);
        // `newcomm` gets the null handle, so that a caller that ignores the error cannot use the duplicate.
        out.set(raw::Comm::NULL);
        return Err(failure);
    }
    out.set(raw::Comm(handle));
    Ok(())
}

/// A duplicate that a nonblocking operation makes. Its handle is reserved at once, but becomes valid only
/// when the operation has ended and the communicator exists.
#[derive(Debug)]
pub struct Making {
    duplicate: Duplicate,
    handle: usize,
    handler: Arc<HandlerCell>,
    session: usize,
    /// The attributes and hints of the duplicate; `None` once the duplicate exists and has taken them.
    rest: Mutex<Option<(Attributes, Hints)>>,
}

/// The error handlers of duplicates that do not exist yet. The key is the reserved handle of the duplicate.
static IN_THE_MAKING: Mutex<BTreeMap<usize, Arc<HandlerCell>>> = Mutex::new(BTreeMap::new());

fn in_the_making() -> MutexGuard<'static, BTreeMap<usize, Arc<HandlerCell>>> {
    IN_THE_MAKING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the error handler of a duplicate that does not exist yet; `None` if `comm` is not the handle of
/// such a duplicate.
pub(super) fn handler_in_the_making(comm: raw::Comm) -> Option<Arc<HandlerCell>> {
    in_the_making().get(&comm.0).cloned()
}

impl Making {
    /// Starts the duplication. The duplicate gets the hints `hints`, and the error handler and the
    /// attributes that the parent has now (MPI-5.0 section 7.4.2).
    ///
    /// # Errors
    /// Returns the runtime's errors, `MPI_ERR_OTHER` if no handle is left, and the code of a copy function
    /// that fails. If no handle is left or a copy function fails on this rank, the other ranks still get
    /// their duplicates.
    pub fn begin(parent: &On, hints: &[Entry]) -> Result<Self> {
        let duplicate = parent.comm.communicator.idup()?;
        let handle = match COMMS.reserve() {
            Ok(handle) => handle,
            Err(failure) => return Err(give_up(parent, duplicate, failure.into())),
        };
        let attributes = Attributes::new();
        if let Err(failure) = parent.comm.attributes.copy(parent.handle.0, &attributes, handle) {
            COMMS.release(handle);
            return Err(give_up(parent, duplicate, failure));
        }
        let known = Hints::default();
        known.set(hints);
        let handler = Arc::new(HandlerCell::new(parent.comm.handler.get()));
        in_the_making().insert(handle, handler.clone());
        let session = parent.comm.session;
        Ok(Self {
            duplicate,
            handle,
            handler,
            session,
            rest: Mutex::new(Some((attributes, known))),
        })
    }

    /// Returns the runtime's operation that makes the duplicate.
    pub fn operation(&self) -> Operation {
        self.duplicate.operation()
    }

    /// Returns the handle of the duplicate.
    pub fn handle(&self) -> raw::Comm {
        raw::Comm(self.handle)
    }

    /// Makes the handle valid. The caller calls this function when the operation has completed without an error, and
    /// may hold the lock of the runtime.
    ///
    /// # Errors
    /// Returns the runtime's error if the operation is not complete.
    pub fn end(&self) -> typepack::Result<()> {
        let communicator = self.duplicate.communicator()?;
        let rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((attributes, hints)) = rest {
            let (made, handler) =
                (Comm::new(communicator, Handler::Return, "", self.session), self.handler.clone());
            COMMS.fill(self.handle, Arc::new(Comm { handler, attributes, hints, ..made }));
            in_the_making().remove(&self.handle);
        }
        Ok(())
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        // Neither of the two steps below has an effect if the communicator exists.
        if self.rest.get_mut().is_ok_and(|rest| rest.is_some()) {
            in_the_making().remove(&self.handle);
        }
        COMMS.release(self.handle);
    }
}

/// Lets the operation continue after a local step has failed on this rank, so that the other ranks get their
/// duplicates. The operation will still write a number into `duplicate`, so this function leaks `duplicate`.
/// Returns `failure`.
#[cold]
fn give_up(parent: &On, duplicate: Duplicate, failure: Failure) -> Failure {
    if let Operation::Pending(id) = duplicate.operation() {
        // `change` fails only if the runtime has ended, and then the operation has ended too.
        let _gone = parent.comm.messages.change(|ongoing| ongoing.forget(id));
    }
    std::mem::forget(duplicate);
    failure
}

/// `MPI_Comm_dup`. The copy functions decide which attributes are copied. Hints are not copied.
pub fn dup(comm: raw::Comm, newcomm: Output<raw::Comm>) -> Result {
    duplicate(comm, Ok(Vec::new()), newcomm)
}

/// `MPI_Comm_dup_with_info`.
pub fn dup_with_info(comm: raw::Comm, info: raw::Info, newcomm: Output<raw::Comm>) -> Result {
    let hints = match info {
        raw::Info::NULL => Ok(Vec::new()),
        info => info::find(info).map(|info| info.all()),
    };
    duplicate(comm, hints, newcomm)
}

/// `MPI_Comm_create`.
pub fn create(comm: raw::Comm, group: raw::Group, newcomm: Output<raw::Comm>) -> Result {
    let parent = find(comm)?;
    let (group, out) =
        arguments(&parent, || Ok((group::find(group)?, newcomm.required("newcomm")?)))?;
    hand_out(&parent, parent.communicator.create(&group)?, out)
}

/// `MPI_Comm_create_group`. Only the ranks of the group need to make this call. If a rank outside the group
/// makes the call, the rank gets the null handle.
pub fn create_group(
    comm: raw::Comm,
    group: raw::Group,
    tag: c_int,
    newcomm: Output<raw::Comm>,
) -> Result {
    let (parent, group) = (find(comm)?, group::find(group)?);
    // The operation comes before the check of `newcomm`. If this rank failed first, the messages of the other ranks
    // for this call would match this rank's next call with the same tag.
    let made = parent.communicator.create_group(&group, tag)?;
    hand_out(&parent, made, newcomm.required("newcomm")?)
}

/// `MPI_Comm_split`.
pub fn split(comm: raw::Comm, color: c_int, key: c_int, newcomm: Output<raw::Comm>) -> Result {
    let parent = find(comm)?;
    let (out, color) = arguments(&parent, || {
        let out = newcomm.required("newcomm")?;
        let color = match color {
            abi::UNDEFINED => None,
            color => Some(u32::try_from(color).map_err(|_| {
                let detail = format!("{color} is neither MPI_UNDEFINED nor at least 0");
                Failure::new(abi::ERR_ARG, "color", detail)
            })?),
        };
        Ok((out, color))
    })?;
    hand_out(&parent, parent.communicator.split(color, key)?, out)
}

/// The hint that names a type of resource, and its value for shared memory. The ranks that share such a
/// resource get a common communicator.
const RESOURCE: &[u8] = b"mpi_hw_resource_type";
const MEMORY: &[u8] = b"mpi_shared_memory";
/// The hint that names a process set. The processes of the set get a common communicator.
const SET: &[u8] = b"mpi_pset_name";
/// The name of the set that contains only the calling process.
const ALONE: &str = "mpi://SELF";

/// `MPI_Comm_split_type`. All ranks share memory, so a split by shared memory gives one communicator. If the
/// program names a type of resource that this function does not know, or a part of the machine to which the rank is
/// not bound, the rank gets the null handle, as the standard requires. `MPI_COMM_TYPE_HW_UNGUIDED` takes the
/// outermost type of resource that divides the ranks, and names the type in `info`.
pub fn split_type(
    comm: raw::Comm,
    split_type: c_int,
    key: c_int,
    info: raw::Info,
    newcomm: Output<raw::Comm>,
) -> Result {
    let parent = find(comm)?;
    let (out, hints) = arguments(&parent, || {
        let out = newcomm.required("newcomm")?;
        Ok((out, (info != raw::Info::NULL).then(|| info::find(info)).transpose()?))
    })?;
    let named = |hint| hints.as_ref().and_then(|hints| hints.value(hint));
    let communicator = &parent.communicator;
    let universe = super::world::joined()?;
    let placement = universe.placement();
    let resource = || match named(RESOURCE)?.as_slice() {
        MEMORY => Some(Resource::Machine),
        name => Resource::ALL.into_iter().find(|resource| resource.uri().as_bytes() == name),
    };
    let split = |resource: Option<Resource>| match resource {
        Some(resource) => communicator.split_resource(placement.as_ref(), resource, key),
        None => communicator.split(None, key),
    };
    let known = [
        abi::COMM_TYPE_SHARED,
        abi::COMM_TYPE_HW_GUIDED,
        abi::COMM_TYPE_RESOURCE_GUIDED,
        abi::COMM_TYPE_HW_UNGUIDED,
        abi::UNDEFINED,
    ];
    if known.contains(&split_type) {
        communicator.check_split_type((split_type != abi::UNDEFINED).then_some(split_type))?;
    }
    let made = match split_type {
        abi::COMM_TYPE_SHARED => split(Some(Resource::Machine))?,
        abi::COMM_TYPE_HW_GUIDED => split(resource())?,
        abi::COMM_TYPE_RESOURCE_GUIDED if named(RESOURCE).is_some() => split(resource())?,
        abi::COMM_TYPE_RESOURCE_GUIDED => {
            communicator.split(named(SET).and_then(|name| in_set(universe, &name)), key)?
        }
        abi::COMM_TYPE_HW_UNGUIDED => {
            let resource = communicator.dividing_resource();
            let made = split(resource)?;
            // `MPI_INFO_ENV` cannot be changed.
            let own = hints.as_ref().filter(|_| info.0 != abi::INFO_ENV);
            if let (Some(_), Some(resource), Some(hints)) = (&made, resource, own) {
                hints.put(RESOURCE, resource.uri().as_bytes())?;
            }
            made
        }
        abi::UNDEFINED => split(None)?,
        other => {
            let detail = format!(
                "{other} is neither MPI_UNDEFINED nor one of MPI_COMM_TYPE_SHARED, _HW_GUIDED, \
                 _RESOURCE_GUIDED, _HW_UNGUIDED"
            );
            communicator.fail_creation();
            return Err(Failure::new(abi::ERR_ARG, "split_type", detail));
        }
    };
    hand_out(&parent, made, out)
}

/// Returns the color by which the members of a process set get a common communicator; `None` if this process is not
/// in the set, or if there is no such set. Each process has a set `mpi://SELF` of its own, and each world, whose ranks
/// were started together, has its own other sets. So the color depends on the process or on the world.
fn in_set(universe: &Universe, name: &[u8]) -> Option<u32> {
    /// The bit of the colors of the sets `mpi://SELF`.
    const OF_PROCESS: u32 = 1 << 31;
    let process = lifecycle::process()?;
    // All ranks of a world have the same list. Each set has a color, because the ranks may name different sets.
    let sets = universe.process_sets();
    let number = sets.iter().position(|set| set.is_named(name))?;
    sets[number].group.rank_of(process)?;
    let own = u32::try_from(process).ok()?;
    if sets[number].name == ALONE {
        return Some(OF_PROCESS | own);
    }
    // The numbers of processes are below 2^12, and a world has fewer than 2^16 sets.
    let first = own - u32::try_from(universe.rank()).ok()?;
    Some(first << 16 | u32::try_from(number).ok()?)
}

/// `MPI_Comm_free`: deletes the attributes and makes the handle invalid. Pending operations on the
/// communicator complete normally.
pub fn free(comm: InOut<raw::Comm>) -> Result {
    let (handle, out) = comm.read("comm")?;
    let comm = find(handle)?;
    let on = On { comm, handle };
    // The C caller passed the address of the handle, so `entry.rs` does not know the communicator. `on.raise`
    // records in the failure which communicator's error handler must be called.
    end(&on, "freed", || Ok(())).map_err(|failure| on.raise(failure))?;
    out.set(raw::Comm::NULL);
    Ok(())
}

/// `MPI_Comm_disconnect`: waits until the messages of this rank on the communicator are complete, and frees the
/// communicator after all its ranks have made the call. A rank makes progress for all its messages while it waits. If
/// the communicator was the last one with ranks of another world, the death of a rank of that world no longer ends this
/// rank.
pub fn disconnect(comm: InOut<raw::Comm>) -> Result {
    let (handle, out) = comm.read("comm")?;
    let comm = find(handle)?;
    let on = On { comm, handle };
    let meet = || Ok(on.comm.communicator.disconnect()?);
    end(&on, "disconnected", meet).map_err(|failure| on.raise(failure))?;
    out.set(raw::Comm::NULL);
    Ok(())
}

/// Calls `first`, and then frees the communicator. `what` is the participle for the error text, for example `freed`.
///
/// # Errors
/// Returns `MPI_ERR_COMM` if the communicator is `MPI_COMM_WORLD` or `MPI_COMM_SELF` or another thread has freed it,
/// the errors of `first` and of the runtime, and the code of a delete function that fails.
fn end(on: &On, what: &str, first: impl FnOnce() -> Result) -> Result {
    let On { comm, handle } = on;
    if matches!(handle.0, abi::COMM_WORLD | abi::COMM_SELF) {
        let name = if handle.0 == abi::COMM_WORLD { "MPI_COMM_WORLD" } else { "MPI_COMM_SELF" };
        return Err(Failure::new(abi::ERR_COMM, "comm", format!("{name} cannot be {what}")));
    }
    first()?;
    comm.attributes.clear(handle.0)?;
    super::buffer::release(handle.0)?;
    COMMS.remove(handle.0).ok_or_else(|| super::invalid(*handle))?;
    Ok(())
}
