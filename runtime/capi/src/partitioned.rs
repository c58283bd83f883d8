//! Partitioned messages (MPI-5.0 chapter 4): the calls check their arguments and call the runtime's `partitioned/`.
//!
//! `MPI_Psend_init` and `MPI_Precv_init` make persistent requests. The calls of `request/` start them, wait for them
//! and free them like other persistent requests.

use crate::abi;
use crate::argument::{Array, Output};
use crate::buffer::{count as checked, memory};
use crate::comm::{On, on};
use crate::error::{Failure, Result};
use crate::info;
use crate::p2p::destination;
use crate::raw;
use crate::request::{self, Outcome, Partitions, Request, Running, Start};
use std::ffi::{c_int, c_void};
use typepack::engine::Elements;
use typepack::partitioned::{RawReceive, RawSend};
use typepack::{Operation, Plan};
use typepack_capi_datatype::types;

impl Start for RawSend {
    fn start(&self) -> Result<Running> {
        // SAFETY: `psend_init` made this request. Its caller guaranteed that the elements of a partition are readable
        // and unchanged from the moment at which the partition is marked ready to the completion of the request
        // (condition of its `# Safety`).
        Ok(match unsafe { Self::start(self)? } {
            Operation::Pending(id) => Running::Send(id),
            Operation::Done(_) => Running::Finished(Outcome::empty()),
        })
    }

    fn partitions(&self) -> Option<Partitions<'_>> {
        Some(Partitions::Send(self))
    }
}

/// A partitioned receive that can be started repeatedly.
#[derive(Debug)]
struct Receive {
    on: On,
    operation: RawReceive,
    is_from_nobody: bool,
}

impl Start for Receive {
    fn start(&self) -> Result<Running> {
        // SAFETY: `precv_init` made this request. Its caller guaranteed that the elements are writable from each start
        // to the completion of the request, and that the program does not use those of a partition that has not
        // arrived (conditions of its `# Safety`).
        Ok(match unsafe { self.operation.start()? } {
            Operation::Pending(id) => Running::Receive(id),
            Operation::Done(_) if self.is_from_nobody => Running::Finished(Outcome::from_nobody()),
            Operation::Done(status) => Running::Finished(Outcome::of_receive(&self.on, Ok(status))),
        })
    }

    fn partitions(&self) -> Option<Partitions<'_>> {
        Some(Partitions::Receive(&self.operation))
    }
}

/// The arguments of a call that makes a partitioned request.
struct Arguments {
    buf: *const c_void,
    partitions: c_int,
    count: raw::Count,
    datatype: raw::Datatype,
    peer: c_int,
    tag: c_int,
    comm: raw::Comm,
    info: raw::Info,
}

/// Checks the arguments of a call and makes its request. `make` gets the elements of the first partition, the number of
/// partitions, and the other rank, which is `None` for `MPI_PROC_NULL`.
fn prepare<S: Start + 'static>(
    arguments: Arguments,
    request: Output<raw::Request>,
    make: impl FnOnce(&On, &Elements<&Plan>, u64, Option<usize>) -> Result<S>,
) -> Result {
    let Arguments { buf, partitions, count, datatype, peer, tag, comm, info } = arguments;
    let on = on(comm)?;
    let out = request.required("request")?;
    let Ok(partitions) = u64::try_from(partitions) else {
        return Err(Failure::new(abi::ERR_ARG, "partitions", format!("{partitions} is negative")));
    };
    let ty = types::hold(datatype)?;
    let partition = Elements::new(buf, ty.plan()?, checked(count, "count")?);
    let peer = destination(&on.comm, peer, tag)?.map(|_world| peer as usize);
    if info != raw::Info::NULL {
        info::find(info)?;
    }
    if peer.is_some() {
        let all = partition.count.checked_mul(partitions).ok_or_else(|| {
            let detail = format!("{partitions} partitions of {count} elements are too many");
            Failure::new(abi::ERR_COUNT, "count", detail)
        })?;
        memory(&Elements { count: all, ..partition }, "buf")?;
    }
    let start = make(&on, &partition, partitions, peer)?;
    out.set(request::persistent(on, Box::new(start))?);
    Ok(())
}

/// `MPI_Psend_init` and `MPI_Psend_init_c`.
///
/// # Safety
///
/// - `buf` is readable for `partitions` times `count` elements of `datatype`, from each start of the request to its
///   completion. The elements of a partition do not change after it has been marked ready.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub unsafe fn psend_init(
    buf: *const c_void,
    partitions: c_int,
    count: raw::Count,
    datatype: raw::Datatype,
    dest: c_int,
    tag: c_int,
    comm: raw::Comm,
    info: raw::Info,
    request: Output<raw::Request>,
) -> Result {
    let arguments = Arguments { buf, partitions, count, datatype, peer: dest, tag, comm, info };
    prepare(arguments, request, |on, partition, partitions, dest| {
        let communicator = on.comm.communicator();
        Ok(communicator.prepare_partitioned_send(partition, partitions, dest, tag)?)
    })
}

/// `MPI_Precv_init` and `MPI_Precv_init_c`. The standard's prototype calls the source `dest`.
///
/// # Safety
///
/// - `buf` is writable for `partitions` times `count` elements of `datatype`, from each start of the request to its
///   completion. The program does not use the elements of a partition that has not arrived.
#[expect(clippy::too_many_arguments, reason = "the argument list of the standard")]
pub unsafe fn precv_init(
    buf: *mut c_void,
    partitions: c_int,
    count: raw::Count,
    datatype: raw::Datatype,
    source: c_int,
    tag: c_int,
    comm: raw::Comm,
    info: raw::Info,
    request: Output<raw::Request>,
) -> Result {
    let buf = buf.cast_const();
    let arguments = Arguments { buf, partitions, count, datatype, peer: source, tag, comm, info };
    prepare(arguments, request, |on, partition, partitions, source| {
        let communicator = on.comm.communicator();
        let operation =
            communicator.prepare_partitioned_receive(partition, partitions, source, tag)?;
        Ok(Receive { on: on.clone(), operation, is_from_nobody: source.is_none() })
    })
}

#[cold]
fn refused(detail: &str) -> Failure {
    Failure::new(abi::ERR_REQUEST, "request", detail)
}

/// Calls `mark` with the operation of a partitioned send.
///
/// # Errors
/// Returns `MPI_ERR_REQUEST` if this is no partitioned send, or if it is not active, and the errors of `mark`.
#[inline]
fn ready(request: &Request, mark: impl FnOnce(&RawSend) -> typepack::Result<()>) -> Result {
    let Some(Partitions::Send(send)) = request.partitions() else {
        let detail = "the handle belongs to a request that is not a partitioned send";
        return Err(request.raise(refused(detail)));
    };
    // A send to a process is over only when all partitions have been marked, so `mark` refuses the calls that come
    // between two rounds.
    let is_over = || request.is_inactive();
    let marked = if send.has_peer() || !is_over() { Some(mark(send)) } else { None };
    match marked {
        Some(Ok(())) => Ok(()),
        Some(Err(error)) if error.kind() != typepack::ErrorKind::Request || !is_over() => {
            Err(request.raise(error))
        }
        _ => Err(request.raise(refused("the request is not active: MPI_Start has not started it"))),
    }
}

/// `MPI_Pready`.
pub fn pready(partition: c_int, request: raw::Request) -> Result {
    let request = request::find(request)?;
    ready(&request, |send| send.ready(partition.into()))
}

/// `MPI_Pready_range`.
pub fn pready_range(low: c_int, high: c_int, request: raw::Request) -> Result {
    let request = request::find(request)?;
    ready(&request, |send| send.ready_range(low.into(), high.into()))
}

/// `MPI_Pready_list`.
pub fn pready_list(length: c_int, partitions: Array<c_int>, request: raw::Request) -> Result {
    let Ok(length) = usize::try_from(length) else {
        return Err(Failure::new(abi::ERR_COUNT, "length", format!("{length} is negative")));
    };
    // A handle that is not valid is the error, whatever the array is.
    let request = request::find(request)?;
    // SAFETY: the caller of `MPI_Pready_list` passes an array of `length` numbers.
    let partitions = unsafe { partitions.copy(length, "array_of_partitions")? };
    ready(&request, |send| send.ready_list(partitions.iter().map(|at| i64::from(*at))))
}

/// `MPI_Parrived`. A request that is null or not active counts as one whose partitions have arrived.
pub fn parrived(handle: raw::Request, partition: c_int, flag: Output<c_int>) -> Result {
    let flag = flag.required("flag")?;
    if handle == raw::Request::NULL {
        flag.set(1);
        return Ok(());
    }
    let request = request::find(handle)?;
    let Some(Partitions::Receive(receive)) = request.partitions() else {
        let detail = "the handle belongs to a request that is not a partitioned receive";
        return Err(request.raise(refused(detail)));
    };
    let arrived = receive.arrived(partition.into()).map_err(|error| request.raise(error))?;
    flag.set(arrived.into());
    Ok(())
}
