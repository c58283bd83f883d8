//! Point-to-point messages (MPI-5.0 chapter 3). The modules here check the arguments of the C calls and call
//! the runtime.
//!
//! `blocking.rs`, `nonblocking.rs` and `persistent.rs` have the sends and receives, `probe.rs` and
//! `matched.rs` the probes, and `buffered.rs` the calls that attach and detach buffers. This file has the
//! checks that these modules share. It also converts the ranks of a communicator to ranks of the world;
//! `Comm::status` converts the ranks in statuses back.
//!
//! Invariant: no operation is started before every argument has been checked.

/// Defines one function for each of the four send modes. Each of these functions takes the arguments of `MPI_Send`,
/// followed by the argument in parentheses if there is one. It passes its mode and its arguments to the function
/// `$call`, which is named first in the macro call.
macro_rules! send_family {
    ($call:ident $more:tt; $($name:ident, $mode:expr, $c:literal;)*) => {
        $(send_family! { @one $call $more $name $mode, $c })*
    };
    (@one $call:ident ($($more:ident: $type:ty)?) $name:ident $mode:expr, $c:literal) => {
        #[doc = concat!("`", $c, "`.")]
        ///
        /// # Safety
        ///
        /// - `buf` is readable for `count` elements of `datatype`: for a blocking call until the call
        ///   returns, for a nonblocking call until the request is complete, and for a persistent request from
        ///   each start to the completion.
        pub unsafe fn $name<W: CountWidth>(
            buf: *const c_void,
            count: W::Count,
            datatype: raw::Datatype,
            dest: c_int,
            tag: c_int,
            comm: raw::Comm,
            $($more: $type,)?
        ) -> Result {
            // SAFETY: `$call` requires that `buf` is readable for `count` elements of `datatype`, for as long
            // as the condition of `# Safety` above says for a blocking, nonblocking or persistent call.
            unsafe { $call($mode, buf, count, datatype, dest, tag, comm $(, $more)?) }
        }
    };
}

pub mod blocking;
pub mod buffered;
pub mod matched;
pub mod nonblocking;
pub mod persistent;
pub mod probe;

use crate::abi;
use crate::buffer::memory;
use crate::comm::{Comm, On, buffer, on};
use crate::count_width::{Number, count};
use crate::datatype;
use crate::error::{Failure, Result};
use crate::raw;
use std::ffi::{c_int, c_void};
use typepack::engine::Elements;
use typepack::{Operation, Plan, SendMode, Source, Tag};

#[cold]
fn no_rank(rank: c_int, comm: &Comm, argument: &'static str) -> Failure {
    let communicator = comm.communicator();
    let group = if communicator.is_inter() { "remote group" } else { "communicator" };
    let size = communicator.peers().size();
    let detail = format!("{rank} is not a rank of the {group}, whose size is {size}");
    Failure::new(abi::ERR_RANK, argument, detail)
}

/// Converts a rank of the communicator, or of its remote group, to the rank of the same process in the world.
fn world_rank(comm: &Comm, rank: c_int, argument: &'static str) -> Result<usize> {
    let peer = usize::try_from(rank).ok().and_then(|peer| comm.world_rank(peer));
    peer.ok_or_else(|| no_rank(rank, comm, argument))
}

/// Checks the destination and the tag of a send. Returns the rank of the destination in the world; `None` for
/// `MPI_PROC_NULL`.
///
/// # Errors
/// Returns `MPI_ERR_RANK` if `dest` is neither a rank of the communicator, or of the remote group of an
/// intercommunicator, nor `MPI_PROC_NULL`. Returns `MPI_ERR_TAG` if the tag is negative.
#[inline]
pub fn destination(comm: &Comm, dest: c_int, tag: c_int) -> Result<Option<usize>> {
    let dest = match dest {
        abi::PROC_NULL => None,
        rank => Some(world_rank(comm, rank, "dest")?),
    };
    // `MPI_TAG_UB` is the largest C integer, so no tag is too large.
    if tag < 0 {
        return Err(Failure::new(abi::ERR_TAG, "tag", format!("{tag} is negative")));
    }
    Ok(dest)
}

/// Checks the source and the tag of a receive. Returns the sources and tags that the receive accepts; `None`
/// if the source is `MPI_PROC_NULL`.
///
/// # Errors
/// Returns `MPI_ERR_RANK` if `source` is neither a rank of the communicator, or of the remote group of an
/// intercommunicator, nor `MPI_ANY_SOURCE` nor `MPI_PROC_NULL`. Returns `MPI_ERR_TAG` if the tag is negative
/// and not `MPI_ANY_TAG`.
#[inline]
pub fn origin(comm: &Comm, source: c_int, tag: c_int) -> Result<Option<(Source, Tag)>> {
    let source = match source {
        abi::PROC_NULL => None,
        abi::ANY_SOURCE => Some(Source::Any),
        rank => Some(Source::Rank(world_rank(comm, rank, "source")?)),
    };
    let tag = match tag {
        abi::ANY_TAG => Tag::Any,
        tag if tag >= 0 => Tag::Is(tag),
        tag => {
            let detail = format!("{tag} is neither MPI_ANY_TAG nor at least 0");
            return Err(Failure::new(abi::ERR_TAG, "tag", detail));
        }
    };
    Ok(source.map(|source| (source, tag)))
}

/// Checks the count and the datatype of a buffer, and returns its elements for an operation that may continue after the
/// call returns.
///
/// # Errors
/// Returns `MPI_ERR_COUNT` if the count is negative, `MPI_ERR_VALUE_TOO_LARGE` if the number of packed bytes
/// does not fit in 63 bits, and `MPI_ERR_TYPE` if the datatype is not valid or not committed.
pub fn elements(
    buf: *const c_void,
    elements: impl Number,
    datatype: raw::Datatype,
) -> Result<Elements<Plan>> {
    let count = count(elements, "count")?;
    let plan = datatype::with(datatype, |ty| Ok(ty.plan()?.clone()))?;
    let elements = Elements::new(buf, plan, count);
    // If the number of packed bytes does not fit in 63 bits, `bytes` returns the error here, before an operation
    // starts.
    elements.bytes()?;
    Ok(elements)
}

/// Starts a send in the mode `mode`. The caller has checked the arguments. `dest` is a rank of the world.
///
/// # Errors
/// Returns the runtime's errors. In buffered mode, also returns `MPI_ERR_BUFFER` if no buffer is attached or the
/// buffer has no room.
///
/// # Safety
///
/// - The elements are readable: in buffered mode until this function returns, in the other modes until the
///   operation has ended.
/// - `dest` is a rank of the world, and `tag` is not negative.
#[inline]
unsafe fn send(
    on: &On,
    mode: SendMode,
    elements: Elements<&Plan>,
    dest: usize,
    tag: c_int,
) -> Result<Operation> {
    if let SendMode::Buffered(_) = mode {
        // SAFETY: the mode is buffered, so the elements are readable until this function returns (first condition
        // of `# Safety`). The second condition is the same for `buffer::send`.
        return unsafe { buffer::send(on, elements, dest, tag) };
    }
    // SAFETY: the mode is not buffered, so the elements are readable until the operation has ended, and `dest` and
    // `tag` are valid (both conditions of `# Safety`). The mode lends no memory to the runtime.
    Ok(unsafe { on.comm.messages().send(mode, elements, dest, tag)? })
}
