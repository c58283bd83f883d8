//! Messages and broadcasts of buffers, and reductions of values that have a datatype ([`Equivalence`]).
//!
//! Each call describes its buffer as elements of a datatype, and then makes the call of `comm/` or `coll/`.

use super::Equivalence;
use super::buffer::sealed::Writable;
use super::buffer::{Buffer, BufferMut, Sequence};
use crate::coll::{Combine, ReductionKind, Root, described};
use crate::comm::{Communicator, Source, Space, Status, Tag};
use crate::{Error, ErrorKind, Result};
use typepack_engine::Elements;
use typepack_engine::reserve::fallible;

/// Returns a reduction operation that calls `combine` for each pair of values.
fn combiner<T: Equivalence>(combine: impl Fn(T, T) -> T + Send + Sync + 'static) -> Combine {
    Combine::user(move |lower, upper, _, count| {
        let (lower, upper) = (lower.cast::<T>(), upper.cast::<T>());
        for i in 0..count as usize {
            // SAFETY: a reduction passes two vectors of `count` elements, the upper one writable, and `i < count`. The
            // extent of an element is the size of `T`, its data are initialised, and the element is a valid `T`
            // whatever bytes the data have (the conditions of `Equivalence`). The accesses are unaligned, so the
            // addresses may have any alignment.
            unsafe {
                let value = combine(lower.add(i).read_unaligned(), upper.add(i).read_unaligned());
                upper.add(i).write_unaligned(value);
            }
        }
    })
}

/// Returns the status of a message that has arrived in `sequence`, and the number of items of the message.
fn arrived(sequence: &Sequence<'_>, status: Status) -> Result<(Status, usize)> {
    let each = sequence.bytes(1)?;
    match status.bytes.checked_rem(each) {
        None => Ok((status, 0)),
        Some(0) => Ok((status, (status.bytes / each) as usize)),
        Some(_) => {
            let detail =
                format!("{} bytes arrived; an item has {each} bytes of data", status.bytes);
            Err(Error::new(ErrorKind::Count, "values", detail))
        }
    }
}

impl Communicator {
    /// Sends a buffer to rank `dest`. Returns as soon as the program may change the buffer again.
    ///
    /// # Errors
    /// Returns the errors of [`send_elements`](Self::send_elements).
    #[doc(alias = "MPI_Send")]
    pub fn send<T, S: Buffer<T> + ?Sized>(&self, values: &S, dest: usize, tag: i32) -> Result<()> {
        let sequence = values.sequence("values")?;
        // SAFETY: the data of the sequence are readable, initialised and unchanged while the buffer is borrowed
        // (`Readable`). It is borrowed until `finish` returns, and then the send is complete or detached.
        let sent = unsafe { self.start_send(&sequence.whole(), dest, tag, Space::User)? };
        self.finish(sent, "").map(drop)
    }

    /// Receives at most as many items as the buffer has. Returns the status of the message, and how many items have
    /// arrived: how many values of a slice, or how many entries along the first dimension of an array.
    ///
    /// # Errors
    /// Returns the errors of [`recv_elements`](Self::recv_elements), and [`ErrorKind::Count`] if the message ends
    /// within an item. In the case of `ErrorKind::Count`, the data of the message have arrived in the buffer.
    #[doc(alias = "MPI_Recv")]
    pub fn recv<T, R: BufferMut<T> + ?Sized>(
        &self,
        values: &mut R,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<(Status, usize)> {
        let sequence = values.sequence_mut("values")?;
        let (source, tag) = (source.into(), tag.into());
        // SAFETY: the data of the sequence are writable, may get any bytes, and nobody else accesses them while the
        // buffer is mutably borrowed (`Writable`). It is borrowed until `finish` returns, and then the receive is
        // complete or detached.
        let started = unsafe { self.start_receive(&sequence.whole(), source, tag, Space::User)? };
        arrived(&sequence, self.finish(started, "")?)
    }

    /// Receives a message of any length into a new vector. Returns the status of the message, too.
    ///
    /// ```
    /// # let universe = typepack::init()?;
    /// # let world = universe.world();
    /// // Every rank tells the next one which of its numbers are prime.
    /// let primes: Vec<usize> = [2, 3, 5, 7].into_iter().take(world.rank() + 1).collect();
    /// let (status, theirs) = world.scope(|scope| {
    ///     scope.isend(&primes, (world.rank() + 1) % world.size(), 0)?;
    ///     world.recv_vec::<usize>(typepack::Source::Any, 0)
    /// })??;
    /// assert_eq!(theirs.len(), (status.source + 1).min(4));
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`recv`](Self::recv), and [`ErrorKind::NoMemory`] if there is too little
    /// memory for the message. In the case of `ErrorKind::NoMemory` or `ErrorKind::Count`, the message is lost.
    #[doc(alias = "MPI_Mprobe")]
    pub fn recv_vec<T: Equivalence + Default>(
        &self,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<(Status, Vec<T>)> {
        let (plan, fresh) = (T::plan()?, T::default());
        let each = plan.element_bytes();
        let (mut values, mut needed) = (Vec::new(), 0);
        let room = |status: Status| {
            needed = usize::try_from(status.bytes).unwrap_or(usize::MAX);
            let items = if each == 0 { 0 } else { needed.div_ceil(each as usize) };
            if fallible(|| values.try_reserve_exact(items)).is_ok() {
                values.resize(items, fresh);
            }
            let origin = values.as_mut_ptr().cast::<u8>();
            Elements { origin, plan, count: values.len() as u64 }
        };
        // SAFETY: the layout has the data of the values of the vector, which may get any bytes (the conditions of
        // `Equivalence`). Nobody else accesses the vector until the call returns.
        let received = unsafe { self.receive_of_any_length(source.into(), tag.into(), room) };
        let status = received.map_err(|error| {
            if !values.is_empty() || needed == 0 || each == 0 {
                return error;
            }
            let detail = format!("cannot allocate memory for a message of {needed} bytes");
            Error::new(ErrorKind::NoMemory, "values", detail)
        })?;
        let (status, _items) = arrived(&values.sequence_mut("values")?, status)?;
        Ok((status, values))
    }

    /// Sends one buffer and receives into another at the same time. Neither operation waits for the other. Returns what
    /// [`recv`](Self::recv) returns.
    ///
    /// ```
    /// # let universe = typepack::init()?;
    /// # let world = universe.world();
    /// let (rank, size) = (world.rank(), world.size());
    /// let mut left = 0;
    /// world.sendrecv(&rank, (rank + 1) % size, 0, &mut left, (rank + size - 1) % size, 0)?;
    /// assert_eq!(left, (rank + size - 1) % size);
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send) and [`recv`](Self::recv).
    #[doc(alias = "MPI_Sendrecv")]
    pub fn sendrecv<T, S: Buffer<T> + ?Sized, R: BufferMut<T> + ?Sized>(
        &self,
        send: &S,
        dest: usize,
        send_tag: i32,
        recv: &mut R,
        source: impl Into<Source>,
        recv_tag: impl Into<Tag>,
    ) -> Result<(Status, usize)> {
        let (outgoing, incoming) = (send.sequence("send")?, recv.sequence_mut("recv")?);
        // SAFETY: the data of `incoming` are writable, may get any bytes, and nobody else accesses them while `recv` is
        // mutably borrowed (`Writable`), so the two do not overlap. The data of `outgoing` are readable and unchanged
        // while `send` is borrowed (`Readable`). Both are borrowed until this function returns.
        let status = unsafe {
            let outgoing = (&outgoing.whole(), dest, send_tag);
            self.send_receive(outgoing, (incoming.whole(), source.into(), recv_tag.into()))?
        };
        arrived(&incoming, status)
    }

    /// Copies the data of `root` into the buffers of all ranks, which have data of the same length. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`broadcast_elements`](Self::broadcast_elements).
    #[doc(alias = "MPI_Bcast")]
    pub fn broadcast<T, R: BufferMut<T> + ?Sized>(
        &self,
        values: &mut R,
        root: impl Into<Root>,
    ) -> Result<()> {
        let sequence = values.sequence_mut("values").inspect_err(|_| self.skip_collective())?;
        // SAFETY: the data of the part are readable, writable and initialised, may get any bytes, and nobody else
        // accesses them while the buffer is mutably borrowed (`Writable`). It is borrowed until the call returns.
        unsafe { self.broadcast_raw(sequence.whole(), root) }
    }

    /// Combines the values of all ranks place by place, in the order of the ranks, and copies the result into `values`
    /// of all ranks. All ranks pass the same number of values. Collective.
    ///
    /// ```
    /// # let universe = typepack::init()?;
    /// #[derive(Clone, Copy, Debug, PartialEq, typepack::Equivalence)]
    /// struct Extreme {
    ///     value: f64,
    ///     rank: u32,
    /// }
    ///
    /// let world = universe.world();
    /// let mut largest = [Extreme { value: -1.5, rank: world.rank() as u32 }];
    /// world.all_reduce_values(&mut largest, |a: Extreme, b| if b.value > a.value { b } else { a })?;
    /// assert_eq!(largest[0], Extreme { value: -1.5, rank: 0 });
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`run_raw`](Self::run_raw).
    ///
    /// # Panics
    /// Panics if `combine` panics.
    #[doc(alias = "MPI_Allreduce")]
    pub fn all_reduce_values<T: Equivalence>(
        &self,
        values: &mut [T],
        combine: impl Fn(T, T) -> T + Send + Sync + 'static,
    ) -> Result<()> {
        self.combine_values(ReductionKind::Allreduce, None, values, combine)
    }

    /// Combines the values at `send` of all ranks place by place, in the order of the ranks, and writes the result to
    /// `recv` of `root`. All ranks pass the same number of values in `send`. Other ranks may pass a slice of any length
    /// as `recv`, which stays as it is. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Buffer`] if the two slices of the root have different lengths, and the errors of
    /// [`run_raw`](Self::run_raw).
    ///
    /// # Panics
    /// Panics if `combine` panics.
    #[doc(alias = "MPI_Reduce")]
    pub fn reduce_values<T: Equivalence>(
        &self,
        send: &[T],
        recv: &mut [T],
        combine: impl Fn(T, T) -> T + Send + Sync + 'static,
        root: usize,
    ) -> Result<()> {
        self.combine_values(ReductionKind::Reduce(root), Some(send), recv, combine)
    }

    /// Combines the values at `send` of the ranks up to and including this rank place by place, in the order of the
    /// ranks, and writes the result to `recv`. All ranks pass the same number of values. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Buffer`] if the two slices have different lengths, and the errors of
    /// [`run_raw`](Self::run_raw).
    ///
    /// # Panics
    /// Panics if `combine` panics.
    #[doc(alias = "MPI_Scan")]
    pub fn scan_values<T: Equivalence>(
        &self,
        send: &[T],
        recv: &mut [T],
        combine: impl Fn(T, T) -> T + Send + Sync + 'static,
    ) -> Result<()> {
        self.combine_values(ReductionKind::Scan, Some(send), recv, combine)
    }

    /// Does what [`scan_values`](Self::scan_values) does, for the ranks below this rank. On rank 0, `recv` stays as it
    /// is. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`scan_values`](Self::scan_values).
    ///
    /// # Panics
    /// Panics if `combine` panics.
    #[doc(alias = "MPI_Exscan")]
    pub fn exscan_values<T: Equivalence>(
        &self,
        send: &[T],
        recv: &mut [T],
        combine: impl Fn(T, T) -> T + Send + Sync + 'static,
    ) -> Result<()> {
        self.combine_values(ReductionKind::Exscan, Some(send), recv, combine)
    }

    fn combine_values<T: Equivalence>(
        &self,
        kind: ReductionKind<'_>,
        send: Option<&[T]>,
        recv: &mut [T],
        combine: impl Fn(T, T) -> T + Send + Sync + 'static,
    ) -> Result<()> {
        let combine = || Ok((T::plan()?.clone(), combiner(combine)));
        described(self, kind, send, recv, combine, Self::skip_collective, |call| {
            // SAFETY: `call` uses only the values of the slices, whose lengths `described` has checked. The data of the
            // values are initialised and may get any bytes (the conditions of `Equivalence`). The slices are borrowed
            // until this function returns, `recv` mutably, so nobody else uses `recv` and the two do not overlap.
            // `combiner` makes an operation on elements of this datatype.
            unsafe { self.run_raw(call) }
        })
    }
}
