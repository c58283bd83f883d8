//! The calls of partitioned operations on raw memory. The caller keeps the memory valid. The C library uses them, and
//! `guard.rs` makes them safe.

use super::marks::{Arrivals, Marks};
use super::round::End;
use super::table::PartitionTable;
use crate::comm::{Communicator, Space, check_tag};
use crate::endpoint::progress::{Awaited, Endpoint};
use crate::message::label::SPACES;
use crate::message::{Operation, Status};
use crate::{Error, ErrorKind, Plan, Result};
use std::sync::Arc;
use typepack_engine::Elements;

/// A send whose partitions become ready one by one, and that can be started again and again. Each start begins a
/// round.
///
/// If the value is dropped while a round runs, the round is abandoned: no process uses its memory any more, and the
/// receive ends with an error.
#[derive(Debug)]
pub struct RawSend {
    handle: Option<Handle>,
    marks: Arc<Marks>,
}

/// A receive whose partitions arrive one by one, and that can be started again and again. Each start begins a round.
///
/// If the value is dropped while a round runs, the round is abandoned: no process uses its memory any more.
#[derive(Debug)]
pub struct RawReceive {
    handle: Option<Handle>,
    arrivals: Arc<Arrivals>,
}

/// An entry in the table of partitioned operations.
#[derive(Debug)]
struct Handle {
    endpoint: Arc<Endpoint>,
    index: u32,
    /// The communicator of the operation.
    _keep: Communicator,
}

/// What starting an operation without a peer returns.
const NOTHING: Operation = Operation::Done(Status { source: 0, tag: 0, bytes: 0 });

impl Handle {
    fn new<R>(
        comm: &Communicator,
        prepare: impl FnOnce(
            &mut PartitionTable,
            &mut crate::endpoint::engine::MessageEngine,
        ) -> Result<(u32, R)>,
    ) -> Result<(Self, R)> {
        let endpoint = comm.endpoint().clone();
        let (index, with) = endpoint.start(|core| core.with(prepare)?)?;
        Ok((Self { endpoint, index, _keep: comm.clone() }, with))
    }

    /// Starts a round.
    ///
    /// # Safety
    ///
    /// - The conditions of [`PartitionTable::start`] hold.
    unsafe fn start(&self) -> Result<Operation> {
        self.endpoint.begin(|core| {
            // SAFETY: the caller promises for this function (`# Safety`) what the other one asks for.
            core.with(|table: &mut PartitionTable, engine| unsafe {
                table.start(engine, self.index)
            })?
        })
    }

    fn wait(&self, started: Operation, call: &'static str) -> Result<()> {
        match started {
            Operation::Pending(id) => self.endpoint.wait(id, call).map(drop),
            Operation::Done(_) => Ok(()),
        }
    }

    fn detach(&self, started: Operation) {
        if let Operation::Pending(id) = started {
            self.endpoint.detach(id);
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.endpoint.let_go(|core| {
            // Without the table there is nothing to free.
            let _gone =
                core.with(|table: &mut PartitionTable, engine| table.free(engine, self.index));
            true
        });
    }
}

impl Communicator {
    /// Prepares a send of `partitions` partitions. `partition` is the first one; the others follow it in memory, each
    /// with the same number of elements. `dest` is a rank of this communicator, or of the remote group of an
    /// intercommunicator; `None` stands for no process. The call sends no data and returns at once.
    ///
    /// The operation matches the receive that `dest` prepares on this communicator with the same tag. If there are
    /// several, they match in the order of these calls. Both sides may have different numbers of partitions, but have
    /// the same number of bytes.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Rank`] if `dest` is not a rank, [`ErrorKind::Tag`] if the tag is negative,
    /// [`ErrorKind::Argument`] if there are more than 2^31 - 1 partitions, [`ErrorKind::Engine`] if all partitions
    /// together have more than 2^63 - 1 bytes, [`ErrorKind::NoMemory`] if memory runs out, and the errors of
    /// [`progress`](Self::progress).
    #[doc(hidden)]
    pub fn prepare_partitioned_send(
        &self,
        partition: &Elements<&Plan>,
        partitions: u64,
        dest: Option<usize>,
        tag: i32,
    ) -> Result<RawSend> {
        let Some(end) = self.end(partition, partitions, (dest, "dest"), tag)? else {
            let marks = Arc::new(Marks::new(partitions as u32)?);
            return Ok(RawSend { handle: None, marks });
        };
        let context = self.endpoint().new_context() * SPACES;
        let (handle, marks) =
            Handle::new(self, |table, engine| table.prepare_send(engine, end, context))?;
        Ok(RawSend { handle: Some(handle), marks })
    }

    /// Prepares a receive of `partitions` partitions; see
    /// [`prepare_partitioned_send`](Self::prepare_partitioned_send).
    ///
    /// # Errors
    /// Returns the errors of [`prepare_partitioned_send`](Self::prepare_partitioned_send), for `source` instead of
    /// `dest`.
    #[doc(hidden)]
    pub fn prepare_partitioned_receive(
        &self,
        partition: &Elements<&Plan>,
        partitions: u64,
        source: Option<usize>,
        tag: i32,
    ) -> Result<RawReceive> {
        let Some(end) = self.end(partition, partitions, (source, "source"), tag)? else {
            let arrivals = Arc::new(Arrivals::new(partitions as u32)?);
            return Ok(RawReceive { handle: None, arrivals });
        };
        let (handle, arrivals) =
            Handle::new(self, |table, engine| table.prepare_receive(engine, end))?;
        Ok(RawReceive { handle: Some(handle), arrivals })
    }

    /// Checks the arguments of an operation. Returns `None` if it has no peer.
    fn end(
        &self,
        partition: &Elements<&Plan>,
        partitions: u64,
        (peer, argument): (Option<usize>, &'static str),
        tag: i32,
    ) -> Result<Option<End>> {
        if partitions > i32::MAX as u64 {
            let detail = format!("{partitions} is more than {}", i32::MAX);
            return Err(Error::new(ErrorKind::Argument, "partitions", detail));
        }
        check_tag(tag)?;
        let count = partition.count.checked_mul(partitions).ok_or_else(|| {
            let detail =
                format!("{partitions} partitions of {} elements are too many", partition.count);
            Error::new(ErrorKind::Count, "count", detail)
        })?;
        partition.plan.packed_bytes(count)?;
        let Some(peer) = peer else { return Ok(None) };
        Ok(Some(End {
            elements: Elements { count, ..partition.keep() },
            partitions: partitions as u32,
            context: self.space(Space::Partitioned),
            tag,
            peer: self.process(peer, argument, ErrorKind::Rank)?,
        }))
    }
}

impl RawSend {
    /// Starts a round, in which no partition is ready. The returned operation is complete when all partitions have
    /// been marked ready and their memory may be changed.
    ///
    /// # Safety
    ///
    /// - From the moment at which a partition is marked ready until the operation has ended, its elements are readable
    ///   and unchanged.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Request`] if the round before has not ended, and [`ErrorKind::NoMemory`] if memory runs
    /// out.
    pub unsafe fn start(&self) -> Result<Operation> {
        match &self.handle {
            // SAFETY: the condition is that of this function.
            Some(handle) => unsafe { handle.start() },
            None => {
                self.marks.begin();
                Ok(NOTHING)
            }
        }
    }

    /// Marks a partition ready, and lets it go out. Threads may call this function at the same time, for different
    /// partitions. Only the first of them passes on what is ready, and the others return at once.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Argument`] if there is no such partition, and [`ErrorKind::Request`] if the partition is
    /// ready already or the operation has not been started. An error of a message is the error of the operation.
    #[doc(alias = "MPI_Pready")]
    #[inline]
    pub fn ready(&self, partition: i64) -> Result<()> {
        let partition = self.marks.check(partition, "partition")?;
        self.mark(std::iter::once(partition))
    }

    /// Marks the partitions from `low` to `high` ready, both included. There are none if `high` is less than `low`.
    ///
    /// # Errors
    /// Returns the errors of [`ready`](Self::ready). Then no partition has been marked.
    #[doc(alias = "MPI_Pready_range")]
    pub fn ready_range(&self, low: i64, high: i64) -> Result<()> {
        let low = self.marks.check(low, "partition_low")?;
        let high = self.marks.check(high, "partition_high")?;
        self.mark(low..high + 1)
    }

    /// Marks several partitions ready.
    ///
    /// # Errors
    /// Returns the errors of [`ready`](Self::ready), also if a partition occurs twice. Then no partition has been
    /// marked.
    #[doc(alias = "MPI_Pready_list")]
    pub fn ready_list(&self, partitions: impl Iterator<Item = i64> + Clone) -> Result<()> {
        for partition in partitions.clone() {
            self.marks.check(partition, "array_of_partitions")?;
        }
        self.mark(partitions.map(|partition| partition as u32))
    }

    #[inline]
    fn mark(&self, partitions: impl Iterator<Item = u32> + Clone) -> Result<()> {
        self.pass_on(self.marks.mark(partitions)?)
    }

    /// Marks all partitions ready that are not.
    ///
    /// # Errors
    /// Returns the errors of [`progress`](Communicator::progress).
    pub(super) fn ready_rest(&self) -> Result<()> {
        self.pass_on(self.marks.mark_rest())
    }

    /// Sends what is in the list of ready partitions, if this is the thread that has to do so.
    #[inline]
    fn pass_on(&self, is_first: bool) -> Result<()> {
        match (is_first, &self.handle) {
            (true, Some(handle)) => handle.endpoint.start(|core| {
                core.with(|table: &mut PartitionTable, engine| {
                    table.send_ready(engine, handle.index)
                })
            }),
            (true, None) => {
                self.marks.take(|_| ());
                Ok(())
            }
            (false, _) => Ok(()),
        }
    }

    /// Returns whether the partitions go to a process.
    #[inline]
    pub fn has_peer(&self) -> bool {
        self.handle.is_some()
    }

    /// Waits for the end of a round.
    ///
    /// # Errors
    /// Returns the error of the round, and [`ErrorKind::ProcAborted`] if a rank has died.
    pub(super) fn wait(&self, started: Operation, call: &'static str) -> Result<()> {
        self.handle.as_ref().map_or(Ok(()), |handle| handle.wait(started, call))
    }

    /// Detaches a round from its memory.
    pub(super) fn detach(&self, started: Operation) {
        if let Some(handle) = &self.handle {
            handle.detach(started);
        }
    }
}

impl RawReceive {
    /// Starts a round, in which no partition has arrived. The returned operation is complete when all have.
    ///
    /// # Safety
    ///
    /// - Until the operation has ended, the elements of all partitions are writable. Nobody else accesses those of a
    ///   partition before it has arrived.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Request`] if the round before has not ended, and [`ErrorKind::NoMemory`] if memory runs
    /// out.
    pub unsafe fn start(&self) -> Result<Operation> {
        match &self.handle {
            // SAFETY: the condition is that of this function.
            Some(handle) => unsafe { handle.start() },
            None => {
                self.arrivals.begin();
                self.arrivals.report_all();
                Ok(NOTHING)
            }
        }
    }

    /// Returns whether a partition has arrived. If it has not, first makes progress once. Returns true if the operation
    /// has not been started, or has ended.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Argument`] if there is no such partition, and the errors of
    /// [`progress`](Communicator::progress).
    #[doc(alias = "MPI_Parrived")]
    #[inline]
    pub fn arrived(&self, partition: i64) -> Result<bool> {
        if self.arrivals.has(partition)? {
            return Ok(true);
        }
        let Some(handle) = &self.handle else { return Ok(true) };
        Ok(handle.endpoint.poll_briefly(|_| self.look(partition))?.is_some())
    }

    /// Waits until a partition has arrived.
    ///
    /// # Errors
    /// Returns the errors of [`arrived`](Self::arrived), and [`ErrorKind::ProcAborted`] if a rank has died.
    pub(super) fn await_partition(&self, partition: i64) -> Result<()> {
        if self.arrived(partition)? {
            return Ok(());
        }
        let Some(handle) = &self.handle else { return Ok(()) };
        handle.endpoint.attend(&Awaited::Asked("Incoming::wait"), |_| self.look(partition))
    }

    fn look(&self, partition: i64) -> Option<()> {
        self.arrivals.has(partition).is_ok_and(|arrived| arrived).then_some(())
    }

    /// Waits for the end of a round; see [`RawSend::wait`].
    pub(super) fn wait(&self, started: Operation, call: &'static str) -> Result<()> {
        self.handle.as_ref().map_or(Ok(()), |handle| handle.wait(started, call))
    }

    /// Detaches a round from its memory.
    pub(super) fn detach(&self, started: Operation) {
        if let Some(handle) = &self.handle {
            handle.detach(started);
        }
    }
}

/// Registers the table of partitioned operations as a source of progress of this endpoint.
///
/// # Errors
/// Returns [`ErrorKind::State`] after finalization or in a forked child.
pub(crate) fn register(endpoint: &Endpoint) -> Result<()> {
    endpoint.register(PartitionTable::new)
}
