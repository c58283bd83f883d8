//! Point-to-point messages (MPI-5.0 chapter 3): these modules check the arguments of C and call the runtime.
//!
//! `blocking.rs`, `nonblocking.rs` and `persistent.rs` have the sends and receives, `probe.rs` and
//! `matched.rs` the probes, `buffered.rs` the calls about buffers. This file has the checks that they share,
//! in the order in which the calls make them. It converts ranks of the communicator to ranks of the world.
//! `Comm::status` converts the ranks of statuses back.
//!
//! Invariant: no operation is started before every argument has been checked.

/// Makes a function for each of the four send modes. Each function has the arguments of `MPI_Send` and the
/// argument in parentheses, and passes its mode to the function that is named first.
macro_rules! send_family {
    ($call:ident $more:tt; $($name:ident, $mode:ident, $c:literal;)*) => {
        $(send_family! { @one $call $more $name $mode $c })*
    };
    (@one $call:ident ($($more:ident: $type:ty)?) $name:ident $mode:ident $c:literal) => {
        #[doc = concat!("`", $c, "`.")]
        ///
        /// # Safety
        ///
        /// - `buf` is readable for `count` elements of `datatype`: until the call returns, until its request
        ///   is complete, or, if the request is persistent, from each start to the completion.
        pub unsafe fn $name<W: CountWidth>(
            buf: *const c_void,
            count: W::Count,
            datatype: raw::Datatype,
            dest: c_int,
            tag: c_int,
            comm: raw::Comm,
            $($more: $type,)?
        ) -> Result {
            // SAFETY: `buf` is readable for `count` elements of `datatype` for as long as `$call` needs them,
            // which is what the condition of `# Safety` says for its kind of call.
            unsafe { $call(Mode::$mode, buf, count, datatype, dest, tag, comm $(, $more)?) }
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
use typepack::{Operation, Plan, SendMode, Source, Tag};

/// The four modes of a send (MPI-5.0 section 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Completes when the buffer may be changed.
    Standard,
    /// Completes when a receive has matched.
    Synchronous,
    /// Completes at once; the message is sent from an attached buffer.
    Buffered,
    /// Behaves like the standard mode. The program promises that the receive is already posted.
    Ready,
}

#[cold]
fn no_rank(rank: c_int, comm: &Comm, argument: &'static str) -> Failure {
    let detail = format!("{rank} is not in 0..{}, the ranks of the communicator", comm.size());
    Failure::new(abi::ERR_RANK, argument, detail)
}

/// Returns the rank in the world of a rank of the communicator.
fn world_rank(comm: &Comm, rank: c_int, argument: &'static str) -> Result<usize> {
    let peer = usize::try_from(rank).ok().and_then(|peer| comm.world_rank(peer));
    peer.ok_or_else(|| no_rank(rank, comm, argument))
}

/// Checks destination and tag of a send. Returns the rank in the world; `None` for `MPI_PROC_NULL`.
///
/// # Errors
/// Returns `MPI_ERR_RANK` if `dest` is not a rank of the communicator, and `MPI_ERR_TAG` if the tag is
/// negative.
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

/// Checks source and tag of a receive. Returns what the receive accepts; `None` for `MPI_PROC_NULL`.
///
/// # Errors
/// Returns `MPI_ERR_RANK` if `source` is neither a rank of the communicator nor `MPI_ANY_SOURCE`, and
/// `MPI_ERR_TAG` if the tag is negative and not `MPI_ANY_TAG`.
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

/// The elements of a call, for operations that continue after the call returns.
#[derive(Clone, Debug)]
pub struct Elements {
    /// The address of displacement 0.
    pub origin: *mut u8,
    /// The committed type.
    pub plan: Plan,
    /// The number of elements.
    pub count: u64,
}

// SAFETY: `plan` is shared and immutable. `origin` is an address of the C program's memory: the program has
// promised that memory to the operation, whichever thread carries the operation out.
unsafe impl Send for Elements {}
// SAFETY: no code reads or writes memory through a shared reference to `Elements`. Each unsafe call that uses
// `origin` states who else may access the memory.
unsafe impl Sync for Elements {}

impl Elements {
    /// Checks count and datatype.
    ///
    /// # Errors
    /// Returns `MPI_ERR_COUNT` if the count is negative or the packed size exceeds 63 bits, and
    /// `MPI_ERR_TYPE` if the datatype is not valid or not committed.
    pub fn new(buf: *const c_void, elements: impl Number, datatype: raw::Datatype) -> Result<Self> {
        let count = count(elements, "count")?;
        let plan = datatype::with(datatype, |ty| Ok(ty.plan()?.clone()))?;
        // A packed size that exceeds 63 bits is an error before the operation starts.
        plan.packed_bytes(count)?;
        Ok(Self { origin: buf.cast::<u8>().cast_mut(), plan, count })
    }

    /// Checks the address.
    ///
    /// # Errors
    /// Returns `MPI_ERR_BUFFER` if the elements would lie where no memory can be.
    pub fn memory(&self, argument: &'static str) -> Result {
        Ok(memory(self.origin.cast(), &self.plan, self.count, argument)?)
    }
}

/// Starts a send of any mode, with checked arguments.
///
/// # Errors
/// Returns the runtime's errors, and `MPI_ERR_BUFFER` if an attached buffer is full.
///
/// # Safety
///
/// - `elements.0` is readable for `elements.2` elements of the type of `elements.1`: in buffered mode until
///   this returns, in the other modes until the operation has ended.
#[inline]
unsafe fn send(
    on: &On,
    mode: Mode,
    elements: (*const c_void, &Plan, u64),
    dest: usize,
    tag: c_int,
) -> Result<Operation> {
    let (buf, plan, count) = elements;
    let mode = match mode {
        Mode::Standard | Mode::Ready => SendMode::Standard,
        Mode::Synchronous => SendMode::Synchronous,
        // SAFETY: the elements are readable until this returns (condition of `# Safety`, buffered mode).
        Mode::Buffered => return unsafe { buffer::send(on, buf.cast(), plan, count, dest, tag) },
    };
    // SAFETY: the elements are readable until the operation has ended (condition of `# Safety`, other modes).
    Ok(unsafe { on.comm.messages().send(mode, buf.cast(), plan, count, dest, tag)? })
}
