//! Messages and collective calls of slices of values that have a datatype ([`Equivalence`]).
//!
//! Each call describes its slices as elements of the datatype, and then makes the call of `comm/` or `coll/`.

use super::Equivalence;
use crate::coll::{Collective, Combine, Part};
use crate::comm::{Communicator, Source, Space, Status, Tag};
use crate::message::payload::LayoutRef;
use crate::{Error, ErrorKind, Plan, Result};

/// Returns the values of a slice as a part of a collective call. The call must not write to the part.
fn readable<'a, T: Equivalence>(values: &[T], plan: &'a Plan) -> Part<'a> {
    let origin = values.as_ptr().cast::<u8>().cast_mut();
    Part { origin, plan, count: values.len() as u64 }
}

/// Returns the values of a slice as a part of a collective call.
fn writable<'a, T: Equivalence>(values: &mut [T], plan: &'a Plan) -> Part<'a> {
    Part { origin: values.as_mut_ptr().cast(), plan, count: values.len() as u64 }
}

fn layout(part: Part<'_>) -> LayoutRef<'_> {
    let Part { origin, plan, count } = part;
    LayoutRef { origin, plan, count }
}

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

/// Cuts `values` into as many parts of equal length as there are ranks.
fn rows<'a, T: Equivalence>(
    comm: &Communicator,
    values: &mut [T],
    each: usize,
    plan: &'a Plan,
) -> Result<Vec<Part<'a>>> {
    let ranks = comm.peers().size();
    if each.checked_mul(ranks) != Some(values.len()) {
        let detail = format!(
            "the slice has {} values; {ranks} times {each} values are needed",
            values.len()
        );
        return Err(Error::new(ErrorKind::Buffer, "recv", detail));
    }
    Ok((0..ranks).map(|rank| writable(&mut values[each * rank..][..each], plan)).collect())
}

impl Communicator {
    /// Sends values to rank `dest`. Returns as soon as the program may change the values again.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    #[doc(alias = "MPI_Send")]
    pub fn send_values<T: Equivalence>(&self, values: &[T], dest: usize, tag: i32) -> Result<()> {
        let layout = layout(readable(values, T::plan()?));
        // SAFETY: the data of the layout lie within the values and are initialised (first two conditions of
        // `Equivalence`). The slice is borrowed until `finish` returns, and then the send is complete or detached.
        let sent = unsafe { self.start_send(&layout, dest, tag, Space::User)? };
        self.finish(sent).map(drop)
    }

    /// Receives at most as many values as the slice has. Returns the status of the message, and how many values have
    /// arrived.
    ///
    /// # Errors
    /// Returns the errors of [`recv`](Self::recv), and [`ErrorKind::Count`] if the message ends within a
    /// value. In the case of `ErrorKind::Count`, the data of the message have arrived in the slice.
    #[doc(alias = "MPI_Recv")]
    pub fn recv_values<T: Equivalence>(
        &self,
        values: &mut [T],
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<(Status, usize)> {
        let plan = T::plan()?;
        let layout = layout(writable(values, plan));
        // SAFETY: the data of the layout lie within the values, which remain valid whatever the receive writes there
        // (first and third condition of `Equivalence`). The slice is mutably borrowed until `finish` returns, and then
        // the receive is complete or detached.
        let started =
            unsafe { self.start_receive(&layout, source.into(), tag.into(), Space::User)? };
        let status = self.finish(started)?;
        let each = plan.element_bytes();
        match status.bytes.checked_rem(each) {
            None => Ok((status, 0)),
            Some(0) => Ok((status, (status.bytes / each) as usize)),
            Some(_) => {
                let detail =
                    format!("{} bytes arrived; a value has {each} bytes of data", status.bytes);
                Err(Error::new(ErrorKind::Count, "values", detail))
            }
        }
    }

    /// Copies the values of `root` into the slices of all ranks, which have the same length. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`broadcast`](Self::broadcast).
    #[doc(alias = "MPI_Bcast")]
    pub fn broadcast_values<T: Equivalence>(&self, values: &mut [T], root: usize) -> Result<()> {
        let plan = T::plan().inspect_err(|_| self.skip_collective())?;
        let part = writable(values, plan);
        // SAFETY: the data of the part lie within the values, are initialised, and may be overwritten (the conditions of
        // `Equivalence`). The slice is mutably borrowed until the call returns.
        unsafe { self.broadcast_raw(part, root) }
    }

    /// Copies `send` of rank `i` into the `i`th part of `recv` of the rank `root`. All ranks pass the same number of
    /// values in `send`. At the root, `recv` has room for the values of all ranks. The other ranks may pass an empty
    /// slice. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Buffer`] if `recv` has another length at the root, and the errors of
    /// [`run_raw`](Self::run_raw).
    #[doc(alias = "MPI_Gather")]
    pub fn gather_values<T: Equivalence>(
        &self,
        send: &[T],
        recv: &mut [T],
        root: usize,
    ) -> Result<()> {
        let made = T::plan().and_then(|plan| {
            let is_root = !self.is_inter() && self.rank() == root;
            let parts = if is_root { rows(self, recv, send.len(), plan)? } else { Vec::new() };
            Ok((Some(readable(send, plan)), parts))
        });
        let (mine, parts) = made.inspect_err(|_| self.skip_collective())?;
        let call = Collective::Gather { mine, parts: &parts, root: root.into() };
        // SAFETY: the data of the parts lie within the two slices, are initialised, and may be overwritten (the
        // conditions of `Equivalence`). The slices are borrowed until the call returns, `recv` mutably, so they do not
        // overlap. The call reads `mine` and writes `parts`.
        unsafe { self.run_raw(&call) }
    }

    /// Copies `send` of rank `i` into the `i`th part of `recv` of every rank. All ranks pass the same number of values
    /// in `send`, and `recv` has room for the values of all ranks. Collective.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Buffer`] if `recv` has another length, and the errors of [`run_raw`](Self::run_raw).
    #[doc(alias = "MPI_Allgather")]
    pub fn all_gather_values<T: Equivalence>(&self, send: &[T], recv: &mut [T]) -> Result<()> {
        let made = T::plan()
            .and_then(|plan| Ok((Some(readable(send, plan)), rows(self, recv, send.len(), plan)?)));
        let (mine, parts) = made.inspect_err(|_| self.skip_collective())?;
        // SAFETY: the data of the parts lie within the two slices, are initialised, and may be overwritten (the
        // conditions of `Equivalence`). The slices are borrowed until the call returns, `recv` mutably, so they do not
        // overlap. The call reads `mine`, and writes and reads `parts`.
        unsafe { self.run_raw(&Collective::Allgather { mine, parts: &parts }) }
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
        let plan = T::plan().inspect_err(|_| self.skip_collective())?;
        let combine = combiner(combine);
        let (recv, count) = (values.as_mut_ptr().cast::<u8>(), values.len() as u64);
        let call = Collective::Allreduce { send: None, recv, plan, count, combine: &combine };
        // SAFETY: the data of the elements at `recv` lie within the values, are initialised, and may be overwritten (the
        // conditions of `Equivalence`). The slice is mutably borrowed until the call returns. `combiner` makes an
        // operation on elements of this datatype.
        unsafe { self.run_raw(&call) }
    }
}
