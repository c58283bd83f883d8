//! Partitioned messages for safe programs.
//!
//! A round is a closure. A send lends its partitions to the closure, which may hand them to threads; a partition that
//! is ready has been given back, so nobody can write to it any more. A receive lends each partition after it has
//! arrived. The lifetimes of the closure's arguments end with the closure, and the round ends after it.

use super::calls::{RawReceive, RawSend};
use crate::comm::{Communicator, readable};
use crate::endpoint::progress::OnUnwind;
use crate::equivalence::Equivalence;
use crate::{Error, ErrorKind, Plan, Result, engine};
use bytemuck::{AnyBitPattern, NoUninit};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;

/// The values of a partitioned operation, which borrows them for `'buf`. All accesses go through the address, so that
/// those of the library and those of the program have the same origin.
struct Values<'buf, T> {
    start: NonNull<T>,
    /// Number of values of a partition.
    each: usize,
    partitions: usize,
    borrow: PhantomData<&'buf mut [T]>,
}

// SAFETY: the value stands for a mutable borrow of a slice, which threads may send if they may send its values.
unsafe impl<T: Send> Send for Values<'_, T> {}
// SAFETY: only functions with a mutable borrow of this value give out mutable borrows of the slice.
unsafe impl<T: Sync> Sync for Values<'_, T> {}

impl<'buf, T> Values<'buf, T> {
    /// Divides a slice into partitions of equal length.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Buffer`] if that is not possible.
    fn new(buf: &'buf mut [T], partitions: usize) -> Result<Self> {
        let each = buf.len().checked_div(partitions).unwrap_or(0);
        if each * partitions != buf.len() {
            let detail =
                format!("{} values cannot be divided into {partitions} partitions", buf.len());
            return Err(Error::new(ErrorKind::Buffer, "buf", detail));
        }
        Ok(Self { start: NonNull::from(buf).cast(), each, partitions, borrow: PhantomData })
    }

    /// Returns the address of the values of a partition, and their number.
    fn part(&self, partition: usize) -> NonNull<[T]> {
        debug_assert!(partition < self.partitions);
        // SAFETY: the partition lies within the slice.
        let first = unsafe { self.start.add(partition * self.each) };
        NonNull::slice_from_raw_parts(first, self.each)
    }

    /// Returns `count` elements of `plan` in the first partition, if each partition has that many and nothing of them
    /// lies outside of it.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Engine`] if the elements do not lie in a partition, and [`ErrorKind::Buffer`] if those of
    /// the next partition do not begin where it does.
    fn elements<'p>(
        &self,
        plan: &'p Plan,
        count: u64,
        argument: &'static str,
    ) -> Result<engine::Elements<&'p Plan>>
    where
        T: NoUninit + AnyBitPattern,
    {
        let bytes = self.each * size_of::<T>();
        let extent = i128::from(plan.footprint().extent) * i128::from(count);
        if self.partitions > 1 && extent != bytes as i128 {
            let detail = format!(
                "a partition has {bytes} bytes of the buffer, and {count} elements extend over {extent}"
            );
            return Err(Error::new(ErrorKind::Buffer, argument, detail));
        }
        if self.partitions == 0 {
            return Ok(engine::Elements::new(self.start.as_ptr(), plan, count));
        }
        // SAFETY: the values of the first partition are borrowed by this value, and nobody uses them meanwhile.
        let first = unsafe { self.part(0).as_ref() };
        readable(first, 0, plan, count, argument)?;
        Ok(engine::Elements::new(self.start.as_ptr(), plan, count))
    }
}

/// A send of values whose partitions become ready one by one; see [`Communicator::partitioned_send`].
#[doc(alias = "MPI_Psend_init")]
pub struct PartitionedSend<'buf, T> {
    operation: RawSend,
    values: Values<'buf, T>,
}

/// A receive of values whose partitions arrive one by one; see [`Communicator::partitioned_receive`].
#[doc(alias = "MPI_Precv_init")]
pub struct PartitionedReceive<'buf, T> {
    operation: RawReceive,
    values: Values<'buf, T>,
}

impl<T> fmt::Debug for PartitionedSend<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionedSend").field("partitions", &self.values.partitions).finish()
    }
}

impl<T> fmt::Debug for PartitionedReceive<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionedReceive").field("partitions", &self.values.partitions).finish()
    }
}

impl Communicator {
    /// Prepares a send of the values of `buf` in `partitions` partitions of equal length. Each
    /// [`round`](PartitionedSend::round) sends all of them once. The call itself sends no data and returns at once.
    ///
    /// The send matches the receive that `dest` prepares with the same tag
    /// ([`partitioned_receive`](Self::partitioned_receive)); if there are several, they match in the order in which
    /// they are prepared. The two sides may have different numbers of partitions.
    ///
    /// ```
    /// # let universe = typepack::init()?;
    /// # let world = universe.world();
    /// let (next, previous) = ((world.rank() + 1) % world.size(), (world.rank() + world.size() - 1) % world.size());
    /// let (mut mine, mut theirs) = (vec![0u64; 1000], vec![0u64; 1000]);
    /// let mut send = world.partitioned_send(&mut mine, 10, next, 1)?;
    /// let mut receive = world.partitioned_receive(&mut theirs, 4, previous, 1)?;
    /// for step in 0..3 {
    ///     receive.round(|incoming| {
    ///         send.round(|partitions| {
    ///             // Each thread fills its partition and lets it go, in any order.
    ///             rayon::scope(|scope| {
    ///                 for mut partition in partitions {
    ///                     scope.spawn(move |_| {
    ///                         let value = step * 100 + partition.index() as u64;
    ///                         partition.fill(value);
    ///                         partition.ready().expect("each partition is ready once");
    ///                     });
    ///                 }
    ///             });
    ///         })?;
    ///         // The second partition of the receive covers parts of the third to the fifth of the send.
    ///         let second = incoming.wait(1)?;
    ///         assert_eq!((second[0], second[249]), (step * 100 + 2, step * 100 + 4));
    ///         Ok::<(), typepack::Error>(())
    ///     })??;
    /// }
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::Rank`] if `dest` is not a rank of the communicator, [`ErrorKind::Tag`] if `tag` is negative.
    /// - [`ErrorKind::Buffer`] if the values cannot be divided so.
    /// - [`ErrorKind::Argument`] if there are more than 2^31 - 1 partitions.
    /// - [`ErrorKind::NoMemory`] if memory runs out, and the errors of [`progress`](Self::progress).
    #[doc(alias = "MPI_Psend_init")]
    pub fn partitioned_send<'buf, T: Equivalence>(
        &self,
        buf: &'buf mut [T],
        partitions: usize,
        dest: usize,
        tag: i32,
    ) -> Result<PartitionedSend<'buf, T>> {
        let values = Values::new(buf, partitions)?;
        let (plan, each) = T::elements()?;
        let first = engine::Elements::new(values.start.as_ptr(), plan, values.each as u64 * each);
        let operation =
            self.prepare_partitioned_send(&first, partitions as u64, Some(dest), tag)?;
        Ok(PartitionedSend { operation, values })
    }

    /// Prepares a receive of the values of `buf` in `partitions` partitions of equal length. Each
    /// [`round`](PartitionedReceive::round) receives all of them once. See
    /// [`partitioned_send`](Self::partitioned_send).
    ///
    /// # Errors
    /// Returns the errors of [`partitioned_send`](Self::partitioned_send), for `source` instead of `dest`.
    #[doc(alias = "MPI_Precv_init")]
    pub fn partitioned_receive<'buf, T: Equivalence>(
        &self,
        buf: &'buf mut [T],
        partitions: usize,
        source: usize,
        tag: i32,
    ) -> Result<PartitionedReceive<'buf, T>> {
        let values = Values::new(buf, partitions)?;
        let (plan, each) = T::elements()?;
        let first = engine::Elements::new(values.start.as_ptr(), plan, values.each as u64 * each);
        let operation =
            self.prepare_partitioned_receive(&first, partitions as u64, Some(source), tag)?;
        Ok(PartitionedReceive { operation, values })
    }

    /// Prepares a send like [`partitioned_send`](Self::partitioned_send). Each partition consists of `count` elements
    /// of `plan`'s type, and displacement 0 of its first element is the start of the partition in `buf`.
    ///
    /// # Errors
    /// Returns the errors of [`partitioned_send`](Self::partitioned_send), [`ErrorKind::Engine`] if the elements do not
    /// lie within a partition, and [`ErrorKind::Buffer`] if their extent is not that of a partition.
    #[doc(alias = "MPI_Psend_init")]
    pub fn partitioned_send_elements<'buf, T: NoUninit + AnyBitPattern>(
        &self,
        buf: &'buf mut [T],
        plan: &Plan,
        count: u64,
        partitions: usize,
        dest: usize,
        tag: i32,
    ) -> Result<PartitionedSend<'buf, T>> {
        let values = Values::new(buf, partitions)?;
        let first = values.elements(plan, count, "buf")?;
        let operation =
            self.prepare_partitioned_send(&first, partitions as u64, Some(dest), tag)?;
        Ok(PartitionedSend { operation, values })
    }

    /// Prepares a receive like [`partitioned_receive`](Self::partitioned_receive), of elements as
    /// [`partitioned_send_elements`](Self::partitioned_send_elements) describes them.
    ///
    /// # Errors
    /// Returns the errors of [`partitioned_send_elements`](Self::partitioned_send_elements), for `source` instead of
    /// `dest`.
    #[doc(alias = "MPI_Precv_init")]
    pub fn partitioned_receive_elements<'buf, T: NoUninit + AnyBitPattern>(
        &self,
        buf: &'buf mut [T],
        plan: &Plan,
        count: u64,
        partitions: usize,
        source: usize,
        tag: i32,
    ) -> Result<PartitionedReceive<'buf, T>> {
        let values = Values::new(buf, partitions)?;
        let first = values.elements(plan, count, "buf")?;
        let operation =
            self.prepare_partitioned_receive(&first, partitions as u64, Some(source), tag)?;
        Ok(PartitionedReceive { operation, values })
    }
}

impl<T> PartitionedSend<'_, T> {
    /// Sends all partitions once. `body` gets them, writes to them, and marks each of them
    /// [`ready`](Partition::ready), from any thread. Partitions that are not ready when `body` returns become ready
    /// then. The call returns when the program may change all partitions again.
    ///
    /// If `body` panics, the receive of the other rank ends with an error, and the panic goes on.
    ///
    /// # Errors
    /// Returns [`ErrorKind::NoMemory`] if memory runs out, and [`ErrorKind::ProcAborted`] if a rank has died.
    #[doc(alias = "MPI_Start")]
    pub fn round<R>(&mut self, body: impl for<'r> FnOnce(Partitions<'r, T>) -> R) -> Result<R> {
        let (operation, values) = (&self.operation, &self.values);
        // SAFETY: a partition is marked ready by `Partition::ready`, which ends the borrow of its values, or below,
        // after `body` has returned and all its borrows have ended. From then on nobody changes the values until the
        // round is over or detached: this function has the only borrow of the buffer, and does not return before that.
        let started = unsafe { operation.start()? };
        let guard = OnUnwind::new(|| operation.detach(started));
        let numbers = 0..values.partitions;
        let result = body(Partitions {
            operation,
            start: values.start,
            each: values.each,
            numbers,
            borrow: PhantomData,
        });
        let rest = operation.ready_rest();
        let waited = operation.wait(started, "PartitionedSend::round").and(rest);
        guard.disarm();
        waited.map(|()| result)
    }
}

/// The partitions of a round of a send, in order. Each may go to a thread of its own.
pub struct Partitions<'r, T> {
    operation: &'r RawSend,
    start: NonNull<T>,
    each: usize,
    numbers: Range<usize>,
    borrow: PhantomData<&'r mut [T]>,
}

// SAFETY: the value stands for a mutable borrow of the partitions that are left.
unsafe impl<T: Send> Send for Partitions<'_, T> {}

impl<T> fmt::Debug for Partitions<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Partitions").field(&self.numbers).finish()
    }
}

impl<'r, T> Iterator for Partitions<'r, T> {
    type Item = Partition<'r, T>;

    fn next(&mut self) -> Option<Self::Item> {
        let index = self.numbers.next()?;
        // SAFETY: the partition lies within the buffer.
        let first = unsafe { self.start.add(index * self.each) };
        let values = NonNull::slice_from_raw_parts(first, self.each);
        Some(Partition { operation: self.operation, values, index, borrow: PhantomData })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.numbers.size_hint()
    }
}

impl<T> ExactSizeIterator for Partitions<'_, T> {}

/// A partition of a send that is not ready. It is the slice of its values.
pub struct Partition<'r, T> {
    operation: &'r RawSend,
    /// The values, which are borrowed for `'r`. References to them live no longer than the calls that make them: when
    /// the partition is ready, the library reads the values while this value still exists.
    values: NonNull<[T]>,
    index: usize,
    borrow: PhantomData<&'r mut [T]>,
}

// SAFETY: the value stands for a mutable borrow of the values of a partition.
unsafe impl<T: Send> Send for Partition<'_, T> {}
// SAFETY: a shared reference to this value gives out only shared references to the values.
unsafe impl<T: Sync> Sync for Partition<'_, T> {}

impl<T> Partition<'_, T> {
    /// Returns the number of the partition, counted from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Lets the partition go out. Other threads may do the same for other partitions at the same time; none of them
    /// waits for another. Errors of the message are errors of the round.
    ///
    /// # Errors
    /// Returns the errors of [`Communicator::progress`].
    #[doc(alias = "MPI_Pready")]
    pub fn ready(self) -> Result<()> {
        self.operation.ready(self.index as i64)
    }
}

impl<T> Deref for Partition<'_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: the values are initialised and borrowed mutably for `'r`, and each partition is given out once. It is
        // not ready, because `ready` takes this value. So the library does not use the values.
        unsafe { self.values.as_ref() }
    }
}

impl<T> DerefMut for Partition<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`. The reference borrows this value mutably, so there is no other.
        unsafe { self.values.as_mut() }
    }
}

impl<T: fmt::Debug> fmt::Debug for Partition<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Partition").field(&self.index).field(&&**self).finish()
    }
}

impl<T> PartitionedReceive<'_, T> {
    /// Receives all partitions once. `body` may look at each partition as soon as it has arrived. The call returns when
    /// all have; then [`values`](Self::values) returns them.
    ///
    /// If `body` panics, the data that has not arrived is discarded, and the panic goes on.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Truncated`] if the send has another number of bytes, [`ErrorKind::Type`] if types are
    /// checked (`TYPEPACK_CHECK_TYPES=1`) and differ, [`ErrorKind::Other`] if the sender could not send its data,
    /// [`ErrorKind::NoMemory`] if memory runs out, and [`ErrorKind::ProcAborted`] if a rank has died.
    #[doc(alias = "MPI_Start")]
    pub fn round<R>(&mut self, body: impl for<'r> FnOnce(Incoming<'r, T>) -> R) -> Result<R> {
        let (operation, values) = (&self.operation, &self.values);
        // SAFETY: `body` gets borrows only of partitions that have arrived, and these borrows end with it. So nobody
        // accesses the other values until the round is over or detached: this function has the only borrow of the
        // buffer, and does not return before that.
        let started = unsafe { operation.start()? };
        let guard = OnUnwind::new(|| operation.detach(started));
        let result = body(Incoming { operation, values, borrow: PhantomData });
        let waited = operation.wait(started, "PartitionedReceive::round");
        guard.disarm();
        waited.map(|()| result)
    }

    /// Returns the values of all partitions, as the last round has left them.
    pub fn values(&self) -> &[T] {
        let len = self.values.each * self.values.partitions;
        // SAFETY: the slice is the borrowed buffer. No round runs, because a round borrows this value mutably.
        unsafe { NonNull::slice_from_raw_parts(self.values.start, len).as_ref() }
    }
}

/// The partitions of a round of a receive. Threads may share this value.
pub struct Incoming<'r, T> {
    operation: &'r RawReceive,
    values: &'r Values<'r, T>,
    borrow: PhantomData<&'r mut &'r ()>,
}

impl<T> fmt::Debug for Incoming<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Incoming").field(&self.values.partitions).finish()
    }
}

impl<'r, T> Incoming<'r, T> {
    /// Returns the number of partitions.
    pub fn len(&self) -> usize {
        self.values.partitions
    }

    /// Returns whether there are no partitions.
    pub fn is_empty(&self) -> bool {
        self.values.partitions == 0
    }

    /// Returns the values of a partition if it has arrived; `None` if it has not. The call makes progress and does not
    /// wait.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Argument`] if there is no such partition, and the errors of [`Communicator::progress`].
    #[doc(alias = "MPI_Parrived")]
    pub fn arrived(&self, partition: usize) -> Result<Option<&'r [T]>> {
        let arrived = self.operation.arrived(i64::try_from(partition).unwrap_or(i64::MAX))?;
        Ok(arrived.then(|| self.part(partition)))
    }

    /// Waits for a partition, and returns its values.
    ///
    /// # Errors
    /// Returns the errors of [`arrived`](Self::arrived), and [`ErrorKind::ProcAborted`] if a rank has died.
    pub fn wait(&self, partition: usize) -> Result<&'r [T]> {
        self.operation.await_partition(i64::try_from(partition).unwrap_or(i64::MAX))?;
        Ok(self.part(partition))
    }

    /// Returns the values of a partition that has arrived.
    fn part(&self, partition: usize) -> &'r [T] {
        // SAFETY: the partition has arrived, so nobody writes to it until the next round begins, which is after `'r`.
        // Its values are initialised: they were before, and the types of the data permit any bytes.
        unsafe { self.values.part(partition).as_ref() }
    }
}
