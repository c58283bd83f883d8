//! Point-to-point messages (MPI-5.0 chapter 3): C's arguments, checked, in front of the runtime.
//!
//! `blocking.rs`, `nonblocking.rs` and `persistent.rs` have the calls, `probe.rs` asks what is there;
//! here is what they check, in the order in which they do. Ranks of the communicator become ranks
//! of the world here, and those of statuses go back in `request/`.
//!
//! Invariant: nothing is started before every argument has been checked.

pub mod blocking;
pub mod nonblocking;
pub mod persistent;
pub mod probe;

use crate::abi;
use crate::buffered;
use crate::comm::{self, Comm};
use crate::datatype;
use crate::error::{Failure, Result};
use crate::form::{Number, count};
use crate::raw;
use crate::request::On;
use std::ffi::{c_int, c_void};
use typepack::{Operation, Plan, SendMode, Source, Tag};

/// The four modes of a send (MPI-5.0 section 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Complete when the buffer may be changed.
    Standard,
    /// Complete when a receive has matched.
    Synchronous,
    /// Complete at once, from an attached buffer.
    Buffered,
    /// The receive is there already: as the standard mode.
    Ready,
}

/// The communicator of a call.
///
/// # Errors
/// `MPI_ERR_COMM`.
#[inline]
pub fn on(comm: raw::Comm) -> Result<On> {
    Ok(On { comm: comm::find(comm)?, handle: comm })
}

#[cold]
fn no_rank(rank: c_int, comm: &Comm, argument: &'static str) -> Failure {
    let detail = format!("{rank} is not a rank of a communicator of {}", comm.size());
    Failure::new(abi::ERR_RANK, argument, detail)
}

/// The rank in the world of a rank of the communicator.
fn world_rank(comm: &Comm, rank: c_int, argument: &'static str) -> Result<usize> {
    let peer = usize::try_from(rank).ok().and_then(|peer| comm.world_rank(peer));
    peer.ok_or_else(|| no_rank(rank, comm, argument))
}

/// Where a message goes; `None` for nobody.
///
/// # Errors
/// `MPI_ERR_RANK`, `MPI_ERR_TAG`.
#[inline]
pub fn destination(comm: &Comm, dest: c_int, tag: c_int) -> Result<Option<usize>> {
    let dest = match dest {
        abi::PROC_NULL => None,
        rank => Some(world_rank(comm, rank, "dest")?),
    };
    // The upper bound is that of the type.
    if tag < 0 {
        return Err(Failure::new(abi::ERR_TAG, "tag", format!("{tag} is negative")));
    }
    Ok(dest)
}

/// What a receive accepts; `None` for messages from nobody.
///
/// # Errors
/// `MPI_ERR_RANK`, `MPI_ERR_TAG`.
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
            let detail = format!("{tag} is negative, and not MPI_ANY_TAG");
            return Err(Failure::new(abi::ERR_TAG, "tag", detail));
        }
    };
    Ok(source.map(|source| (source, tag)))
}

/// The first page of memory, which nobody has.
const PAGE: i64 = 4096;

/// No machine has memory at addresses that need more bits.
pub const ADDRESS_BITS: u32 = 57;

/// From here on counts are looked at: fewer elements end where memory may be.
const MANY: u64 = 1 << 31;

/// A null buffer is `MPI_BOTTOM` when the type has absolute addresses, and an error when the
/// elements would lie where no memory is; so are elements that go on beyond all memory.
///
/// # Errors
/// `MPI_ERR_BUFFER`.
#[inline]
pub fn memory(buf: *const c_void, plan: &Plan, elements: u64, argument: &'static str) -> Result {
    if elements == 0 || (!buf.is_null() && elements < MANY) {
        return Ok(());
    }
    if buf.is_null() { nowhere(plan, argument) } else { far(buf, plan, elements, argument) }
}

#[cold]
fn far(buf: *const c_void, plan: &Plan, elements: u64, argument: &'static str) -> Result {
    let shape = plan.footprint();
    let last = buf as i128 + i128::from(shape.extent) * i128::from(elements - 1);
    let (low, high) = (last + i128::from(shape.true_lb), last + i128::from(shape.true_ub));
    if plan.element_bytes() == 0 || (low >= 0 && high <= 1 << ADDRESS_BITS) {
        return Ok(());
    }
    let detail = format!("{elements} elements end at {high:#x}, where no memory is");
    Err(Failure::new(abi::ERR_BUFFER, argument, detail))
}

#[cold]
fn nowhere(plan: &Plan, argument: &'static str) -> Result {
    if plan.element_bytes() == 0 || plan.footprint().true_lb >= PAGE {
        return Ok(());
    }
    Err(Failure::new(abi::ERR_BUFFER, argument, "a null pointer"))
}

/// A call's elements, for operations that outlive it.
#[derive(Clone, Debug)]
pub struct Elements {
    /// Address of displacement 0.
    pub origin: *mut u8,
    /// The committed type.
    pub plan: Plan,
    /// How many.
    pub count: u64,
}

// SAFETY: an address and a shared, immutable plan; the C program promised the memory to whichever
// thread carries the operation out.
unsafe impl Send for Elements {}
// SAFETY: as above.
unsafe impl Sync for Elements {}

impl Elements {
    /// Checks count and type.
    ///
    /// # Errors
    /// `MPI_ERR_COUNT`, `MPI_ERR_TYPE`.
    pub fn new(buf: *const c_void, elements: impl Number, datatype: raw::Datatype) -> Result<Self> {
        let count = count(elements, "count")?;
        let plan = datatype::with(datatype, |ty| Ok(ty.plan()?.clone()))?;
        // More packed bytes than 63 bits is an error before anything is started.
        plan.packed_bytes(count)?;
        Ok(Self { origin: buf.cast::<u8>().cast_mut(), plan, count })
    }

    /// Checks the address.
    ///
    /// # Errors
    /// `MPI_ERR_BUFFER`.
    pub fn memory(&self, argument: &'static str) -> Result {
        memory(self.origin.cast(), &self.plan, self.count, argument)
    }
}

/// Starts a send of any mode, with checked arguments.
///
/// # Safety
///
/// - The elements are readable, in other modes than buffered until the operation has ended.
///
/// # Errors
/// The runtime's; `MPI_ERR_BUFFER` when an attached buffer is full.
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
        // SAFETY: passed on.
        Mode::Buffered => return unsafe { buffered::send(on, buf.cast(), plan, count, dest, tag) },
    };
    // SAFETY: the memory is the caller's promise; rank and tag were checked.
    Ok(unsafe { on.comm.messages().send(mode, buf.cast(), plan, count, dest, tag)? })
}
