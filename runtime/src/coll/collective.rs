//! The type [`Collective`], whose values describe collective calls, and the three ways to make such a call:
//! run, start, prepare.
//!
//! The other files of this folder list the steps of each call. This file has what all calls have in common:
//! the numbering of the calls of a communicator, the checks of roots and parts, and the conditions on the
//! caller's memory.

use super::flags;
use crate::comm::{Communicator, Operation};
use crate::endpoint::sources::Combine;
use crate::schedule::calls::{self, Kept};
use crate::schedule::program::{Builder, Peer};
use crate::schedule::sizes::COMPARE;
use crate::schedule::table::Place;
use crate::settings::CollectiveName;
use crate::tools::counting::{self, CallKind, Counter, Subject};
use crate::topo::Neighbors;
use crate::{Error, ErrorKind, Plan, Result};
use typepack_engine::Elements;
use typepack_engine::reserve;

/// The root of a collective call. In an intracommunicator, all ranks pass the same [`Root::Rank`]. In an
/// intercommunicator, data moves between the root in one group and all ranks of the other group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// This rank of the communicator. In an intercommunicator, it is a rank of the remote group.
    Rank(usize),
    /// This process is the root. Only for intercommunicators.
    #[doc(alias = "MPI_ROOT")]
    Here,
    /// Another rank of this process's group is the root, so the call moves no data of this process. Only for
    /// intercommunicators.
    #[doc(alias = "MPI_PROC_NULL")]
    InMyGroup,
}

impl From<usize> for Root {
    fn from(rank: usize) -> Self {
        Self::Rank(rank)
    }
}

/// A collective call, as one rank makes it. In an intercommunicator, "all ranks" and "every rank" below are those
/// of the remote group.
///
/// Only the root uses the fields whose documentation begins with "At the root"; other ranks ignore these fields. "Read"
/// and "written" tell how the call uses the memory of a field.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Collective<'a> {
    /// A barrier: the call completes when every rank has started it.
    #[doc(alias = "MPI_Barrier")]
    Barrier,
    /// Copies the elements of `root`'s part into the parts of all ranks.
    #[doc(alias = "MPI_Bcast")]
    Broadcast {
        /// This rank's part: read at the root, written at the other ranks. The layouts of different
        /// ranks may differ; their packed sizes must be equal.
        part: Elements<&'a Plan>,
        /// The rank whose elements are copied.
        root: Root,
    },
    /// Copies `mine` of rank `i` into `parts[i]` of the root.
    #[doc(alias = "MPI_Gather")]
    #[doc(alias = "MPI_Gatherv")]
    Gather {
        /// This rank's elements (read). The root may pass `None` if its elements are already in its entry of
        /// `parts`.
        mine: Option<Elements<&'a Plan>>,
        /// At the root: one part for every rank (written).
        parts: &'a [Elements<&'a Plan>],
        /// The rank that gets the elements.
        root: Root,
    },
    /// Copies `parts[i]` of the root into `mine` of rank `i`.
    #[doc(alias = "MPI_Scatter")]
    #[doc(alias = "MPI_Scatterv")]
    Scatter {
        /// At the root: one part for every rank (read).
        parts: &'a [Elements<&'a Plan>],
        /// The part that gets this rank's elements (written). The root may pass `None` if its elements may
        /// stay in its entry of `parts`.
        mine: Option<Elements<&'a Plan>>,
        /// The rank whose parts are copied.
        root: Root,
    },
    /// Copies `mine` of rank `i` into `parts[i]` of every rank.
    #[doc(alias = "MPI_Allgather")]
    #[doc(alias = "MPI_Allgatherv")]
    Allgather {
        /// This rank's elements (read). `None` means that they are already in this rank's entry of `parts`.
        mine: Option<Elements<&'a Plan>>,
        /// One part for every rank (written and read).
        parts: &'a [Elements<&'a Plan>],
    },
    /// Copies `send[j]` of rank `i` into `receive[i]` of rank `j`.
    #[doc(alias = "MPI_Alltoallv")]
    #[doc(alias = "MPI_Alltoallw")]
    Alltoall {
        /// One part for every rank (read). `None` means that the ranks exchange the parts of `receive` in
        /// place.
        send: Option<&'a [Elements<&'a Plan>]>,
        /// One part for every rank (written, and also read if `send` is `None`).
        receive: &'a [Elements<&'a Plan>],
    },
    /// The same as [`Collective::Alltoall`], with one more condition: all parts of all ranks have the same
    /// packed size. Because every rank knows the size of every message, short parts can travel together.
    #[doc(alias = "MPI_Alltoall")]
    AlltoallEqual {
        /// One part for every rank (read). `None` means that the ranks exchange the parts of `receive` in
        /// place.
        send: Option<&'a [Elements<&'a Plan>]>,
        /// One part for every rank (written, and also read if `send` is `None`).
        receive: &'a [Elements<&'a Plan>],
    },
    /// Exchanges data between neighbours: sends `send[j]` to destination `j`, and receives from source `i`
    /// into `receive[i]`. Nothing is sent to a neighbour that does not exist, and nothing is written to its
    /// part. If one rank is a neighbour several times, messages match by direction in a grid, and otherwise in
    /// the order of the neighbours.
    #[doc(alias = "MPI_Neighbor_allgather")]
    #[doc(alias = "MPI_Neighbor_allgatherv")]
    #[doc(alias = "MPI_Neighbor_alltoall")]
    #[doc(alias = "MPI_Neighbor_alltoallv")]
    #[doc(alias = "MPI_Neighbor_alltoallw")]
    Neighbors {
        /// This rank's neighbours; usually those of the communicator's topology.
        neighbors: &'a Neighbors,
        /// One part for each destination (read). Several entries may be the same part.
        send: &'a [Elements<&'a Plan>],
        /// One part for each source (written).
        receive: &'a [Elements<&'a Plan>],
    },
    /// Combines the elements at `send` of all ranks, in rank order, and writes the result to `recv` of the
    /// root.
    #[doc(alias = "MPI_Reduce")]
    Reduce {
        /// The address of this rank's elements (read). The root may pass `None` if its elements are already
        /// at `recv`.
        send: Option<*const u8>,
        /// At the root: the address of the result (written; also read if the root's `send` is `None`).
        recv: *mut u8,
        /// The type of the elements.
        plan: &'a Plan,
        /// The number of elements.
        count: u64,
        /// The operation that combines two elements.
        combine: &'a Combine,
        /// The rank that gets the result.
        root: Root,
    },
    /// Combines the elements at `send` of all ranks, in rank order, and writes the result to `recv` of all
    /// ranks, with the same bits everywhere.
    #[doc(alias = "MPI_Allreduce")]
    Allreduce {
        /// The address of this rank's elements (read). `None` means that they are already at `recv`.
        send: Option<*const u8>,
        /// The address of the result (written and read).
        recv: *mut u8,
        /// The type of the elements.
        plan: &'a Plan,
        /// The number of elements.
        count: u64,
        /// The operation that combines two elements.
        combine: &'a Combine,
    },
    /// Combines the elements at `send` of the ranks up to and including this rank, in rank order, and writes the
    /// result to `recv`.
    #[doc(alias = "MPI_Scan")]
    Scan {
        /// The address of this rank's elements (read). `None` means that they are already at `recv`.
        send: Option<*const u8>,
        /// The address of the result (written and read).
        recv: *mut u8,
        /// The type of the elements.
        plan: &'a Plan,
        /// The number of elements.
        count: u64,
        /// The operation that combines two elements.
        combine: &'a Combine,
    },
    /// Combines the elements at `send` of the ranks below this rank, in rank order, and writes the result to
    /// `recv`. The call writes nothing on rank 0.
    #[doc(alias = "MPI_Exscan")]
    Exscan {
        /// The address of this rank's elements (read). `None` means that they are already at `recv`.
        send: Option<*const u8>,
        /// The address of the result (written and read).
        recv: *mut u8,
        /// The type of the elements.
        plan: &'a Plan,
        /// The number of elements.
        count: u64,
        /// The operation that combines two elements.
        combine: &'a Combine,
    },
    /// Combines the elements at `send` of all ranks, in rank order, and writes one block of the result to `recv`
    /// of each rank.
    #[doc(alias = "MPI_Reduce_scatter")]
    #[doc(alias = "MPI_Reduce_scatter_block")]
    ReduceScatter {
        /// The address of this rank's elements for all blocks, in the order of the ranks (read). `None` means that
        /// they are at `recv`.
        send: Option<*const u8>,
        /// The address of this rank's block of the result (written and read). If `send` is `None`, the elements
        /// for all blocks are here, and the call leaves the elements after this rank's block as they are.
        recv: *mut u8,
        /// The type of the elements.
        plan: &'a Plan,
        /// The number of elements of each rank's block. All ranks pass the same numbers. In an intercommunicator, these
        /// are the blocks of the local group, and all ranks of a group pass the same numbers.
        counts: &'a [u64],
        /// The operation that combines two elements.
        combine: &'a Combine,
    },
}

/// A persistent collective operation. It can be started again and again; each start begins a new round. See
/// [`Communicator::prepare_raw`].
///
/// The operation keeps the message spaces of its communicator alive. If the program drops the operation while
/// a round runs, the round continues, and uses the caller's memory until the round is over.
#[derive(Debug)]
pub struct Prepared {
    // Rust drops fields in declaration order. `kept` must be dropped before the communicator, because freeing
    // the schedule in `kept` needs the communicator.
    kept: Kept,
    name: CollectiveName,
    _keep: Communicator,
}

impl Prepared {
    /// Starts a round.
    ///
    /// # Safety
    ///
    /// - Until the round is complete or detached (by `Messages::abandon`, for example), the memory that was
    ///   passed to [`Communicator::prepare_raw`] is readable and writable as [`Collective`] documents, and
    ///   nobody else uses this memory.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Request`] if the previous round is not complete, [`ErrorKind::ProcAborted`] if a
    /// rank has died, and the error of the round if the round fails before this call returns.
    pub unsafe fn start(&self) -> Result<Operation> {
        if counting::is_wanted(Subject::Collectives) {
            count_named(self.name, CallKind::Persistent);
        }
        // SAFETY: the caller guarantees that the operation's memory stays valid until the round is complete
        // or detached (the only condition of `# Safety`). `Kept::start` requires the same.
        unsafe { self.kept.start() }
    }
}

#[cold]
fn count_named(name: CollectiveName, kind: CallKind) {
    Counter::of_collective(name as usize, kind).add(1);
}

impl Collective<'_> {
    /// Returns the operation, as the settings and the counters name it.
    #[inline]
    pub(super) fn name(&self) -> CollectiveName {
        match self {
            Self::Barrier => CollectiveName::Barrier,
            Self::Broadcast { .. } => CollectiveName::Bcast,
            Self::Reduce { .. } => CollectiveName::Reduce,
            Self::Allreduce { .. } => CollectiveName::Allreduce,
            Self::Scan { .. } => CollectiveName::Scan,
            Self::Exscan { .. } => CollectiveName::Exscan,
            Self::Gather { .. } => CollectiveName::Gather,
            Self::Allgather { .. } => CollectiveName::Allgather,
            Self::AlltoallEqual { .. } => CollectiveName::Alltoall,
            Self::Scatter { .. } => CollectiveName::Scatter,
            Self::Alltoall { .. } => CollectiveName::Alltoallv,
            Self::ReduceScatter { .. } => CollectiveName::ReduceScatter,
            Self::Neighbors { .. } => CollectiveName::Neighbor,
        }
    }

    /// Counts the call, if somebody asks for that.
    #[inline]
    pub(super) fn count(&self, kind: CallKind) {
        if counting::is_wanted(Subject::Collectives) {
            count_named(self.name(), kind);
        }
    }

    /// Returns the name of the method of [`Communicator`] that makes such a call.
    pub(super) fn method(&self) -> &'static str {
        match self {
            Self::Barrier => "Communicator::barrier",
            Self::Broadcast { .. } => "Communicator::broadcast",
            Self::Gather { .. } => "Communicator::gather",
            Self::Scatter { .. } => "Communicator::scatter",
            Self::Allgather { .. } => "Communicator::allgather",
            Self::Alltoall { .. } | Self::AlltoallEqual { .. } => "Communicator::alltoall",
            Self::Neighbors { .. } => "Communicator::neighbor_alltoall",
            Self::Reduce { .. } => "Communicator::reduce",
            Self::Allreduce { .. } => "Communicator::all_reduce",
            Self::Scan { .. } => "Communicator::scan",
            Self::Exscan { .. } => "Communicator::exscan",
            Self::ReduceScatter { .. } => "Communicator::reduce_scatter",
        }
    }
}

impl Communicator {
    /// Makes a collective call and waits until it is complete.
    ///
    /// # Safety
    ///
    /// - Until the call returns, the memory that [`Collective`] documents as read is readable, and nobody
    ///   changes it.
    /// - Until the call returns, the memory that [`Collective`] documents as written is writable, and nobody
    ///   else accesses it.
    /// - The written memory overlaps no other memory of the call.
    /// - If the call has a field `combine`, it keeps the promises of [`Combine`] for the elements of the
    ///   call.
    ///
    /// # Errors
    /// - [`ErrorKind::Root`] if `root` is not a rank of the communicator, or is not of the form that the kind of
    ///   communicator needs.
    /// - [`ErrorKind::Argument`] if the number of parts or counts is not the number of ranks, or of neighbours.
    /// - [`ErrorKind::Buffer`] if a rank passes `None` for its own elements where it must not: in a gather, a scatter
    ///   or a reduction to one rank at a rank other than the root, and in an intercommunicator at any rank that has
    ///   elements.
    /// - [`ErrorKind::Comm`] if this is an intercommunicator and the call is a scan, an exscan or a neighbourhood
    ///   collective.
    /// - [`ErrorKind::Topology`] if, in a neighbourhood collective, a rank is not as often a source as a destination of
    ///   itself.
    /// - [`ErrorKind::Truncated`] or [`ErrorKind::Count`] if the sender and the receiver of a message pass different
    ///   packed sizes, and [`ErrorKind::Type`] if types are checked and differ.
    /// - [`ErrorKind::Count`] if the sum of the counts of a reduce-scatter does not fit in 64 bits.
    /// - [`ErrorKind::Other`] if another rank could not send the data that this rank waits for.
    /// - [`ErrorKind::Engine`] if a packed size exceeds 2^63 - 1 bytes.
    /// - [`ErrorKind::NoMemory`] if memory runs out.
    /// - [`ErrorKind::ProcAborted`] if a rank has died.
    ///
    /// With `TYPEPACK_CHECK_TYPES=1`, all ranks first compare their arguments. If roots, operations, counts or types
    /// differ, all ranks get an error that names the argument and both values.
    #[inline]
    pub unsafe fn run_raw(&self, call: &Collective<'_>) -> Result<()> {
        if self.checks_calls() {
            self.check_call(call)?;
        }
        // SAFETY: `run_unchecked` has the conditions of this function.
        unsafe { self.run_unchecked(call) }.map_err(|error| self.with_other_calls(error))
    }

    /// Adds to the error of a blocking call what other ranks do now, if the ranks may have made different calls.
    #[cold]
    fn with_other_calls(&self, error: Error) -> Error {
        if !error.says(COMPARE) {
            return error;
        }
        let others = (0..self.size()).filter(|&rank| rank != self.rank());
        let world = others.filter_map(|rank| Some((rank, self.group().world_rank(rank)?)));
        let calls = self.endpoint().other_calls(world);
        if calls.is_empty() { error } else { error.add(&calls.join(", ")) }
    }

    /// Makes a collective call like [`run_raw`](Self::run_raw), but never compares its arguments with those of the
    /// other ranks.
    ///
    /// # Safety
    ///
    /// - The conditions of [`run_raw`](Self::run_raw) hold.
    #[inline]
    pub(super) unsafe fn run_unchecked(&self, call: &Collective<'_>) -> Result<()> {
        if flags::are_possible(self) {
            // SAFETY: the caller guarantees the conditions of this function, and `flags::run` has the same.
            return unsafe { flags::run(self, call) };
        }
        let place = self.next_place();
        // SAFETY: the caller guarantees the conditions of this function.
        unsafe { self.run_by_messages(place, call) }
    }

    /// Makes a collective call by messages, and waits until it is complete.
    ///
    /// # Safety
    ///
    /// - The conditions of [`run_raw`](Self::run_raw) hold.
    ///
    /// # Errors
    /// Returns the errors of [`run_raw`](Self::run_raw).
    pub(super) unsafe fn run_by_messages(&self, place: Place, call: &Collective<'_>) -> Result<()> {
        call.count(CallKind::Messages);
        // SAFETY: the steps that `list` adds use only the memory of `call` and scratch memory of the
        // schedule. The caller guarantees that, until this function returns, the memory of `call` is valid
        // and nobody else changes it or accesses its written parts (conditions 1 to 3 of `# Safety`).
        unsafe {
            let (method, ranks) = (call.method(), self.size());
            calls::run(self.endpoint(), (method, ranks), place, |steps| self.list(steps, call))
        }
    }

    /// Starts a collective call. The caller waits for the operation, tests it or abandons it with
    /// [`Messages`](crate::Messages). The status of the operation has no meaning.
    ///
    /// An abandoned operation continues, but no longer uses this rank's memory. The ranks that depend on this
    /// rank's data get an error.
    ///
    /// # Safety
    ///
    /// - The conditions of [`run_raw`](Self::run_raw) hold until the operation has ended, and not only until
    ///   the call returns. The lists of parts, the plans and `combine` need to live only until this call
    ///   returns.
    ///
    /// # Errors
    /// Returns the errors of [`run_raw`](Self::run_raw). If this function returns an error, either nothing
    /// has started, or the operation has already ended.
    #[doc(hidden)]
    pub unsafe fn start_raw(&self, call: &Collective<'_>) -> Result<Operation> {
        call.count(CallKind::Nonblocking);
        if self.checks_calls() {
            // SAFETY: the conditions are those of this function.
            return unsafe { self.start_checked(call) };
        }
        let place = self.next_place();
        // SAFETY: the steps that `list` adds use only the memory of `call` and scratch memory of the
        // schedule. The caller guarantees that the memory of `call` stays valid until the operation has ended
        // (the condition of `# Safety`).
        unsafe { calls::start(self.endpoint(), place, |steps| self.list(steps, call)) }
    }

    /// Takes part in a collective call that this rank cannot start, because of `error`. The ranks that depend on its
    /// data get an error, too; but if the ranks compare their arguments first (`TYPEPACK_CHECK_TYPES=1`), they may get
    /// the data. Returns `error`, or what is wrong with the call.
    ///
    /// # Safety
    ///
    /// - The conditions of [`start_raw`](Self::start_raw) hold until the operation has ended.
    pub(super) unsafe fn refuse_raw(&self, call: &Collective<'_>, error: Error) -> Error {
        // The steps of the call come from the reserve. If much of it is gone, this rank only counts the call.
        if reserve::is_short() && reserve::insist(reserve::refuses) {
            self.skip_started();
            return error;
        }
        let started = if self.checks_calls() {
            // SAFETY: the caller guarantees the conditions of this function, and `start_checked` has the same.
            unsafe { self.start_checked(call) }.inspect(|started| {
                if let Operation::Pending(id) = started {
                    self.endpoint().detach(*id);
                }
            })
        } else {
            // SAFETY: the conditions are those of this function.
            unsafe { self.start_refused(self.next_place(), call, error.clone()) }
        };
        started.err().unwrap_or(error)
    }

    /// Takes part in the call at `place`, whose arguments this rank has not compared with the others, as a rank that
    /// has failed with `error`. If much of the reserve is gone, there are no steps by which the others could learn of
    /// it.
    ///
    /// # Safety
    ///
    /// - The conditions of [`start_raw`](Self::start_raw) hold until the operation has ended.
    #[cold]
    pub(super) unsafe fn refuse_by_messages(
        &self,
        place: Place,
        call: &Collective<'_>,
        error: &Error,
    ) {
        if !(reserve::is_short() && reserve::insist(reserve::refuses)) {
            // The caller returns its own error.
            // SAFETY: the conditions are those of this function.
            let _refused = unsafe { self.start_refused(place, call, error.clone()) };
        }
    }

    /// Takes part in a collective call whose memory this rank cannot use, because of `error`. The call is one of
    /// [`run_raw`](Self::run_raw) if it is `blocking`, or else one of [`start_raw`](Self::start_raw). The ranks that depend
    /// on the data of this rank get an error, too, and the next calls match. Uses no memory of the call, and does not wait
    /// for data.
    #[doc(hidden)]
    #[cold]
    pub fn refuse_call(&self, call: &Collective<'_>, blocking: bool, error: &Error) {
        if self.checks_calls() {
            // In the check, the other ranks learn that this rank fails. Then they do not make the call.
            return self.fail_check();
        }
        if blocking && flags::are_possible(self) {
            return flags::refuse_call(self, call, error);
        }
        // SAFETY: the steps of a refused call use no memory.
        unsafe { self.refuse_by_messages(self.next_place(), call, error) };
    }

    /// # Safety
    ///
    /// - The conditions of [`start_raw`](Self::start_raw) hold until the operation has ended.
    unsafe fn start_refused(
        &self,
        place: Place,
        call: &Collective<'_>,
        refused: Error,
    ) -> Result<Operation> {
        // SAFETY: the steps use no memory, because the call is refused.
        unsafe {
            calls::start(self.endpoint(), place, |steps| {
                steps.refuse(refused);
                self.list(steps, call)
            })
        }
    }

    /// Prepares a persistent collective operation, which can be started again and again. Every rank must
    /// prepare the operations of a communicator in the same order. Afterwards each rank may start these
    /// operations in any order.
    ///
    /// This call reads and writes no element. [`Prepared::start`] states the conditions on the memory.
    ///
    /// # Errors
    /// Returns those errors of [`run_raw`](Self::run_raw) that this rank can find without communication: wrong
    /// arguments and too little memory. With `TYPEPACK_CHECK_TYPES=1`, the ranks also compare their arguments in this
    /// call, like in `run_raw`.
    #[doc(hidden)]
    pub fn prepare_raw(&self, call: &Collective<'_>) -> Result<Prepared> {
        if self.checks_calls() {
            self.check_call(call)?;
        }
        let place = self.next_persistent_place();
        let kept = Kept::new(self.endpoint(), place, |steps| self.list(steps, call))?;
        Ok(Prepared { kept, name: call.name(), _keep: self.clone() })
    }

    /// Skips a blocking collective call, which the other ranks make by [`run_raw`](Self::run_raw). A rank calls this
    /// function if it has failed before it could make the collective call itself. The next collective call of this
    /// rank then matches the next one of the other ranks.
    pub fn skip_collective(&self) {
        if self.checks_calls() {
            // In the check, the other ranks learn that this rank fails. Then they do not make the call.
            return self.fail_check();
        }
        let _unused = self.next_place();
        if flags::are_possible(self) {
            flags::skip(self);
        }
    }

    /// Skips a nonblocking collective call, which the other ranks start by [`start_raw`](Self::start_raw). Otherwise
    /// like [`skip_collective`](Self::skip_collective).
    #[doc(hidden)]
    pub fn skip_started(&self) {
        if self.checks_calls() {
            return self.fail_check();
        }
        let _unused = self.next_place();
    }

    /// Skips a call of [`prepare_raw`](Self::prepare_raw) that the other ranks make. A rank calls this
    /// function if it has failed before it could make the call itself. The next operation that this rank
    /// prepares then matches the next one of the other ranks.
    #[doc(hidden)]
    pub fn skip_persistent(&self) {
        if self.checks_calls() {
            return self.fail_check();
        }
        let _unused = self.next_persistent_place();
    }

    #[inline]
    pub(super) fn list<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        call: &Collective<'a>,
    ) -> Result<()> {
        if self.is_inter() {
            return self.list_between(steps, call);
        }
        match *call {
            Collective::Barrier => self.barrier_steps(steps),
            Collective::Broadcast { ref part, root } => {
                let root = self.root(root)?;
                self.broadcast_steps(steps, part, root, &[])
            }
            Collective::Gather { ref mine, parts, root } => {
                let root = self.root(root)?;
                self.gather_steps(steps, mine.as_ref(), parts, root).map(|_last| ())
            }
            Collective::Scatter { parts, ref mine, root } => {
                let root = self.root(root)?;
                self.scatter_steps(steps, parts, mine.as_ref(), root)
            }
            Collective::Allgather { ref mine, parts } => {
                self.allgather_steps(steps, mine.as_ref(), parts)
            }
            Collective::Alltoall { send, receive } => self.alltoall_steps(steps, send, receive),
            Collective::AlltoallEqual { send, receive } => {
                self.alltoall_equal_steps(steps, send, receive)
            }
            Collective::Neighbors { neighbors, send, receive } => {
                self.neighbor_steps(steps, neighbors, send, receive)
            }
            Collective::Reduce { send, recv, plan, count, combine, root } => {
                let root = self.root(root)?;
                let recv = Elements { origin: recv, plan, count };
                // A rank other than the root that passes `None` gets its error from `reduce_steps`.
                if self.reduces_in_blocks(&recv)? && (send.is_some() || self.rank() == root) {
                    return self.reduce_in_blocks_steps(steps, send, &recv, combine, Some(root));
                }
                self.reduce_steps(steps, send, &recv, combine, root).map(|_last| ())
            }
            Collective::Allreduce { send, recv, plan, count, combine } => {
                let recv = Elements { origin: recv, plan, count };
                self.allreduce_steps(steps, send, &recv, combine)
            }
            Collective::Scan { send, recv, plan, count, combine } => {
                let recv = Elements { origin: recv, plan, count };
                self.scan_steps(steps, send, &recv, combine)
            }
            Collective::Exscan { send, recv, plan, count, combine } => {
                let recv = Elements { origin: recv, plan, count };
                self.exscan_steps(steps, send, &recv, combine)
            }
            Collective::ReduceScatter { send, recv, plan, counts, combine } => {
                let recv = Elements { origin: recv, plan, count: 0 };
                self.reduce_scatter_steps(steps, send, &recv, counts, combine)
            }
        }
    }

    /// Returns the rank of the root of a call on an intracommunicator.
    #[inline]
    pub(super) fn root(&self, root: Root) -> Result<usize> {
        match root {
            Root::Rank(rank) => self.check_rank(rank, "root", ErrorKind::Root).map(|()| rank),
            Root::Here | Root::InMyGroup => Err(no_intercommunicator(root)),
        }
    }

    /// Returns the [`Peer`] for `rank`: the form in which a schedule names the other end of a message.
    #[inline]
    pub(super) fn peer(&self, rank: usize) -> Result<Peer> {
        Ok(Peer { process: self.process(rank, "rank", ErrorKind::Rank)?, rank })
    }
}

#[cold]
fn no_intercommunicator(root: Root) -> Error {
    let detail =
        format!("Root::{root:?} is only for intercommunicators; this is an intracommunicator");
    Error::new(ErrorKind::Root, "root", detail)
}

/// Checks that there is one part for each rank of the communicator, or of the remote group of an
/// intercommunicator.
pub(super) fn check_parts(comm: &Communicator, parts: &[Elements<&Plan>]) -> Result<()> {
    let ranks = comm.peers().size();
    if parts.len() == ranks {
        return Ok(());
    }
    let detail = format!(
        "the slice has length {}; its length must be the number of ranks, {ranks}",
        parts.len(),
    );
    Err(Error::new(ErrorKind::Argument, "parts", detail))
}
