//! One value for every collective call, and the three ways to do it: run, start, prepare.
//!
//! The other files of this room list the steps; here is what all calls have in common: their place
//! among the calls of the communicator, the checks of roots and parts, and the memory that they
//! are promised.

use crate::comm::{Communicator, Operation};
use crate::endpoint::sources::Combine;
use crate::schedule::Part;
use crate::schedule::calls::{self, Kept};
use crate::schedule::program::{Builder, Peer};
use crate::{Error, ErrorKind, Plan, Result};

/// A collective call of one rank.
///
/// Roots are ranks of the communicator. What is said to be at the root is not looked at elsewhere.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Collective<'a> {
    /// Over when every rank has started it.
    #[doc(alias = "MPI_Barrier")]
    Barrier,
    /// The elements of `root`'s part come to everybody's.
    #[doc(alias = "MPI_Bcast")]
    Broadcast {
        /// Read at the root, written elsewhere. Layouts may differ between ranks, packed sizes may not.
        part: Part<'a>,
        /// Where the elements come from.
        root: usize,
    },
    /// `mine` of rank `i` comes into `parts[i]` of the root.
    #[doc(alias = "MPI_Gather")]
    #[doc(alias = "MPI_Gatherv")]
    Gather {
        /// Read; at the root `None` says that its elements are in place.
        mine: Option<Part<'a>>,
        /// Written at the root, where there is one for every rank.
        parts: &'a [Part<'a>],
        /// Where the elements go.
        root: usize,
    },
    /// `parts[i]` of the root comes into `mine` of rank `i`.
    #[doc(alias = "MPI_Scatter")]
    #[doc(alias = "MPI_Scatterv")]
    Scatter {
        /// Read at the root, where there is one for every rank.
        parts: &'a [Part<'a>],
        /// Written; at the root `None` says that its elements are in place.
        mine: Option<Part<'a>>,
        /// Where the elements come from.
        root: usize,
    },
    /// `mine` of rank `i` comes into `parts[i]` of every rank.
    #[doc(alias = "MPI_Allgather")]
    #[doc(alias = "MPI_Allgatherv")]
    Allgather {
        /// Read; `None` says that the elements are in place.
        mine: Option<Part<'a>>,
        /// Written and read, one for every rank.
        parts: &'a [Part<'a>],
    },
    /// `send[j]` of rank `i` comes into `receive[i]` of rank `j`.
    #[doc(alias = "MPI_Alltoall")]
    #[doc(alias = "MPI_Alltoallv")]
    #[doc(alias = "MPI_Alltoallw")]
    Alltoall {
        /// Read, one for every rank; with `None` the parts of `receive` are exchanged in place.
        send: Option<&'a [Part<'a>]>,
        /// Written (in place also read), one for every rank.
        receive: &'a [Part<'a>],
    },
    /// The elements at `send` of all ranks are combined, in rank order, into those at `recv` of the
    /// root.
    #[doc(alias = "MPI_Reduce")]
    Reduce {
        /// Read; at the root `None` says that its elements are at `recv`.
        send: Option<*const u8>,
        /// Written at the root.
        recv: *mut u8,
        /// The type of the elements.
        plan: &'a Plan,
        /// How many there are.
        count: u64,
        /// How two of them are combined.
        combine: &'a Combine,
        /// Where the result goes.
        root: usize,
    },
    /// The elements at `send` of all ranks are combined, in rank order, into those at `recv` of all
    /// ranks: the same bits everywhere.
    #[doc(alias = "MPI_Allreduce")]
    Allreduce {
        /// Read; `None` says that the elements are at `recv`.
        send: Option<*const u8>,
        /// Written.
        recv: *mut u8,
        /// The type of the elements.
        plan: &'a Plan,
        /// How many there are.
        count: u64,
        /// How two of them are combined.
        combine: &'a Combine,
    },
}

/// A collective operation that is kept, to be started again and again: see
/// [`Communicator::prepare_raw`].
///
/// It keeps its communicator's message spaces. Dropping it while it runs changes nothing for the round that
/// runs: its memory stays in use until that is over.
#[derive(Debug)]
pub struct Prepared {
    // Dropped first: the communicator is needed until the schedule is given back.
    kept: Kept,
    _keep: Communicator,
}

impl Prepared {
    /// Starts a round.
    ///
    /// # Safety
    ///
    /// - The memory that the operation was made with is valid for what it does, and nobody else's, until
    ///   the round is complete or detached.
    ///
    /// # Errors
    /// The round before is not complete; a rank has died; if the round is over at once, its error.
    pub unsafe fn start(&self) -> Result<Operation> {
        // SAFETY: the caller promises that the memory is valid until the round is complete or detached.
        unsafe { self.kept.start() }
    }
}

impl Communicator {
    /// Makes a collective call, and waits for it.
    ///
    /// # Safety
    ///
    /// - What the call names as read is readable, what it names as written is writable, and nobody else
    ///   uses what is written, or changes what is read, until the call returns.
    /// - What is written overlaps nothing else that the call names.
    /// - `combine` keeps the promises of [`Combine`] for these elements.
    ///
    /// # Errors
    /// No such `root`; not one part for every rank; `None` where a rank's elements cannot be in place;
    /// parts of different packed sizes, or types where these are compared, at their two ends; out of
    /// memory; [`ErrorKind::ProcAborted`] when a rank has died.
    #[inline]
    pub unsafe fn run_raw(&self, call: &Collective<'_>) -> Result<()> {
        let place = self.next_place();
        // SAFETY: what is listed is what the call names, which the caller promises until this returns.
        unsafe { calls::run(self.endpoint(), place, |steps| self.list(steps, call)) }
    }

    /// Starts a collective call. The operation is waited for, tested and abandoned as those of
    /// [`Messages`](crate::Messages); its status says nothing.
    ///
    /// An operation that is abandoned goes on without this rank's memory: the ranks that depend on it
    /// fail.
    ///
    /// # Safety
    ///
    /// - As [`run_raw`](Self::run_raw), until the operation has ended. The lists of parts, the plans and the
    ///   operation are needed by this call only.
    ///
    /// # Errors
    /// As [`run_raw`](Self::run_raw); nothing was started then, unless the call was over at once.
    pub unsafe fn start_raw(&self, call: &Collective<'_>) -> Result<Operation> {
        let place = self.next_place();
        // SAFETY: as above, until the operation has ended.
        unsafe { calls::start(self.endpoint(), place, |steps| self.list(steps, call)) }
    }

    /// Makes a collective operation that can be started again and again. Every rank prepares the
    /// operations of a communicator in the same order; they may be started in any order.
    ///
    /// Nothing is read or written before [`Prepared::start`], which asks for the promises.
    ///
    /// # Errors
    /// As [`run_raw`](Self::run_raw).
    pub fn prepare_raw(&self, call: &Collective<'_>) -> Result<Prepared> {
        let place = self.next_persistent_place();
        let kept = Kept::new(self.endpoint(), place, |steps| self.list(steps, call))?;
        Ok(Prepared { kept, _keep: self.clone() })
    }

    /// Says that this rank makes no call here where others make a collective one: it has failed before
    /// the call could be made. Later calls of the ranks match again.
    #[doc(hidden)]
    pub fn skip_collective(&self) {
        let _unused = self.next_place();
    }

    /// Says that this rank prepares no operation here where others call [`prepare_raw`](Self::prepare_raw):
    /// it has failed before the call could be made. Operations that the ranks prepare later match again.
    #[doc(hidden)]
    pub fn skip_persistent(&self) {
        let _unused = self.next_persistent_place();
    }

    #[inline]
    fn list<'a>(&self, steps: &mut Builder<'_, 'a>, call: &Collective<'a>) -> Result<()> {
        match *call {
            Collective::Barrier => self.barrier_steps(steps),
            Collective::Broadcast { ref part, root } => {
                self.check_rank(root, "root", ErrorKind::Root)?;
                self.broadcast_steps(steps, part, root, &[])
            }
            Collective::Gather { ref mine, parts, root } => {
                self.check_rank(root, "root", ErrorKind::Root)?;
                self.gather_steps(steps, mine.as_ref(), parts, root).map(|_last| ())
            }
            Collective::Scatter { parts, ref mine, root } => {
                self.check_rank(root, "root", ErrorKind::Root)?;
                self.scatter_steps(steps, parts, mine.as_ref(), root)
            }
            Collective::Allgather { ref mine, parts } => {
                self.allgather_steps(steps, mine.as_ref(), parts)
            }
            Collective::Alltoall { send, receive } => self.alltoall_steps(steps, send, receive),
            Collective::Reduce { send, recv, plan, count, combine, root } => {
                self.check_rank(root, "root", ErrorKind::Root)?;
                let recv = Part { origin: recv, plan, count };
                self.reduce_steps(steps, send, &recv, combine, root)
            }
            Collective::Allreduce { send, recv, plan, count, combine } => {
                let recv = Part { origin: recv, plan, count };
                self.allreduce_steps(steps, send, &recv, combine)
            }
        }
    }

    /// A rank, where messages go.
    #[inline]
    pub(super) fn peer(&self, rank: usize) -> Result<Peer> {
        Ok(Peer { slot: self.slot(rank, "rank", ErrorKind::Rank)?, rank })
    }
}

/// As many parts as the communicator has ranks.
pub(super) fn check_parts(comm: &Communicator, parts: &[Part<'_>]) -> Result<()> {
    if parts.len() == comm.size() {
        return Ok(());
    }
    let detail = format!("{} for {} ranks", parts.len(), comm.size());
    Err(Error::new(ErrorKind::Argument, "parts", detail))
}
