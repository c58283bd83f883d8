//! Safe reductions of slices of values. The operation is one of [`Operator`], or a closure.
//!
//! All calls go through [`call`], which checks the slices and describes the call as a [`Collective`]. `scope.rs` has
//! the nonblocking forms.

use super::{Collective, Operator};
use crate::comm::Communicator;
use crate::commit::commit;
use crate::endpoint::sources::Combine;
use crate::{Datatype, Error, ErrorKind, Named, Plan, Result};
use bytemuck::{AnyBitPattern, NoUninit};
use std::sync::OnceLock;

mod sealed {
    pub trait Sealed {
        /// The datatype of one value of the implementing type.
        const NAMED: crate::Named;

        /// Returns the committed datatype of one value.
        fn plan() -> crate::Result<&'static crate::Plan>;
    }

    pub trait Combines<T> {
        /// Returns the committed datatype of one value, and the operation.
        fn combine(self) -> crate::Result<(crate::Plan, crate::Combine)>;
    }
}

use sealed::{Combines, Sealed};

macro_rules! reducible {
    ($($t:ty: $named:expr;)*) => {
        $(
            impl Sealed for $t {
                const NAMED: Named = $named;

                fn plan() -> Result<&'static Plan> {
                    static PLAN: OnceLock<Plan> = OnceLock::new();
                    if let Some(plan) = PLAN.get() {
                        return Ok(plan);
                    }
                    // An error is not kept: memory that is short now may be there later.
                    let plan = commit(&Datatype::named($named))?;
                    Ok(PLAN.get_or_init(|| plan))
                }
            }

            impl Reducible for $t {}
        )*
    };
}

reducible! {
    i8: Named::I8;
    i16: Named::I16;
    i32: Named::I32;
    i64: Named::I64;
    i128: Named::INTEGER16;
    isize: Named::AINT;
    usize: Named::U64;
    u8: Named::U8;
    u16: Named::U16;
    u32: Named::U32;
    u64: Named::U64;
    f32: Named::F32;
    f64: Named::F64;
}

/// Values that an [`Operator`] can reduce: integers and reals. Sums and products of integers wrap. If one of two
/// values is a NaN, minimum and maximum return the value that came from the lower ranks.
pub trait Reducible: NoUninit + AnyBitPattern + Sealed {}

/// An operation on values of type `T`: an [`Operator`], or a closure that takes the value of the lower ranks and the
/// value of the upper ranks and returns the combined value. The operation must be associative. It need not commute:
/// values are always combined in the order of the ranks.
///
/// A closure may run on any thread that waits for an operation or tests it.
///
/// ```
/// # let universe = typepack::init()?;
/// # let world = universe.world();
/// let mut least = [(world.rank() as f64 - 1.0).abs()];
/// world.all_reduce_in_place(&mut least, |low: f64, high: f64| low.min(high))?;
/// assert_eq!(least, [if world.size() > 1 { 0.0 } else { 1.0 }]);
/// # Ok::<(), typepack::Error>(())
/// ```
pub trait Reduction<T>: Combines<T> {}

impl<T: Reducible> Combines<T> for Operator {
    fn combine(self) -> Result<(Plan, Combine)> {
        let combiner = self.combiner(T::NAMED).ok_or_else(|| {
            let detail = format!("{self:?} is not defined on values of type {}", T::NAMED);
            Error::new(ErrorKind::Argument, "op", detail)
        })?;
        Ok((T::plan()?.clone(), Combine::from(combiner)))
    }
}

impl<T: Reducible> Reduction<T> for Operator {}

impl<T, F> Combines<T> for F
where
    T: NoUninit + AnyBitPattern,
    F: Fn(T, T) -> T + Send + Sync + 'static,
{
    fn combine(self) -> Result<(Plan, Combine)> {
        let value = Datatype::contiguous(size_of::<T>() as i64, &Datatype::named(Named::U8))?;
        let combine = Combine::user(move |lower, upper, _, count| {
            let (lower, upper) = (lower.cast::<T>(), upper.cast::<T>());
            for i in 0..count as usize {
                // SAFETY: a reduction passes two vectors of `count` values of type `T`, the upper one writable,
                // and `i < count`. Every bit pattern is a value of `T`. The accesses are unaligned, so the
                // addresses may have any alignment.
                unsafe {
                    let value = self(lower.add(i).read_unaligned(), upper.add(i).read_unaligned());
                    upper.add(i).write_unaligned(value);
                }
            }
        });
        Ok((commit(&value)?, combine))
    }
}

impl<T, F> Reduction<T> for F
where
    T: NoUninit + AnyBitPattern,
    F: Fn(T, T) -> T + Send + Sync + 'static,
{
}

/// Returns the plan of an `i64`, and the operation that returns the greater of two such integers.
pub(super) fn greatest() -> Result<(&'static Plan, Combine)> {
    let missing = || {
        Error::new(
            ErrorKind::Internal,
            "op",
            "the operation MPI_MAX has no function for 64-bit integers",
        )
    };
    let combiner = Operator::Max.combiner(i64::NAMED).ok_or_else(missing)?;
    Ok((i64::plan()?, Combine::from(combiner)))
}

/// What a reduction does with its result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind<'k> {
    Allreduce,
    /// The result goes to this root.
    Reduce(usize),
    Scan,
    Exscan,
    /// Each rank gets a block with this number of values.
    ReduceScatter(&'k [usize]),
}

/// Calls `make` with the description of a reduction of the values at `send`, or of those at `recv` if `send` is `None`.
/// If an argument is wrong, calls `skip` instead of `make`. `skip` counts the call as made, so that this rank's next
/// collective call matches that of the other ranks.
///
/// The described call uses only the values of the two slices.
///
/// # Errors
/// Returns `ErrorKind::Buffer` if a slice has a wrong length, `ErrorKind::Argument` if the number of counts is not the
/// number of ranks or if the operation is not defined on the values, and the errors of `make`.
pub(super) fn call<T: NoUninit + AnyBitPattern, R>(
    comm: &Communicator,
    kind: Kind<'_>,
    send: Option<&[T]>,
    recv: &mut [T],
    op: impl Reduction<T>,
    skip: impl FnOnce(&Communicator),
    make: impl FnOnce(&Collective<'_>) -> Result<R>,
) -> Result<R> {
    described(comm, kind, send, recv, || op.combine(), skip, make)
}

/// Does what [`call`] does, for values of any type. `combine` returns the datatype of one value and the operation.
///
/// # Errors
/// Returns the errors of [`call`], and those of `combine`.
pub(crate) fn described<T, R>(
    comm: &Communicator,
    kind: Kind<'_>,
    send: Option<&[T]>,
    recv: &mut [T],
    combine: impl FnOnce() -> Result<(Plan, Combine)>,
    skip: impl FnOnce(&Communicator),
    make: impl FnOnce(&Collective<'_>) -> Result<R>,
) -> Result<R> {
    let checked = check(comm, kind, send, recv).and_then(|count| Ok((count, combine()?)));
    let (count, (plan, combine)) = checked.inspect_err(|_| skip(comm))?;
    let (plan, combine) = (&plan, &combine);
    let send = send.map(|send| send.as_ptr().cast::<u8>());
    let recv = recv.as_mut_ptr().cast::<u8>();
    match kind {
        Kind::Allreduce => make(&Collective::Allreduce { send, recv, plan, count, combine }),
        Kind::Reduce(root) => {
            make(&Collective::Reduce { send, recv, plan, count, combine, root: root.into() })
        }
        Kind::Scan => make(&Collective::Scan { send, recv, plan, count, combine }),
        Kind::Exscan => make(&Collective::Exscan { send, recv, plan, count, combine }),
        Kind::ReduceScatter(counts) => {
            let counts: Vec<u64> = counts.iter().map(|count| *count as u64).collect();
            make(&Collective::ReduceScatter { send, recv, plan, counts: &counts, combine })
        }
    }
}

/// Checks the lengths of the slices. Returns the number of values of this rank.
fn check<T>(comm: &Communicator, kind: Kind<'_>, send: Option<&[T]>, recv: &[T]) -> Result<u64> {
    let (mine, room) = (send.map_or(recv.len(), <[T]>::len), recv.len());
    let refused = |argument, given: usize, needed: usize| {
        let detail = format!("the slice has {given} values; {needed} values are needed");
        Err(Error::new(ErrorKind::Buffer, argument, detail))
    };
    match kind {
        Kind::Reduce(root) if comm.rank() != root => {}
        Kind::ReduceScatter(counts) => {
            if counts.len() != comm.size() {
                let detail = format!(
                    "the slice has length {}; its length must be the number of ranks, {}",
                    counts.len(),
                    comm.size()
                );
                return Err(Error::new(ErrorKind::Argument, "counts", detail));
            }
            let total = counts.iter().fold(0usize, |sum, count| sum.saturating_add(*count));
            if total != mine {
                return refused("send", mine, total);
            }
            if counts[comm.rank()] != room {
                return refused("recv", room, counts[comm.rank()]);
            }
        }
        _ if room != mine => return refused("recv", room, mine),
        _ => {}
    }
    Ok(mine as u64)
}

impl Communicator {
    /// Replaces `values` by their element-wise reduction over all ranks. All ranks get the same bits. Every
    /// run with the same values and the same number of ranks gives the same bits. Collective.
    ///
    /// # Errors
    /// Returns `ErrorKind::Argument` if the operation is not defined on the values, `ErrorKind::Truncated` or
    /// `ErrorKind::Count` if the slices of the ranks have different lengths, `ErrorKind::NoMemory` if memory runs out,
    /// `ErrorKind::ProcAborted` if a rank has died, and the errors of [`run_raw`](Self::run_raw) that all collective
    /// calls share.
    #[doc(alias = "MPI_Allreduce")]
    pub fn all_reduce_in_place<T: NoUninit + AnyBitPattern>(
        &self,
        values: &mut [T],
        op: impl Reduction<T>,
    ) -> Result<()> {
        self.reduce_slices(Kind::Allreduce, None, values, op)
    }

    /// Writes the element-wise reduction of the values at `send` of all ranks to `recv` of all ranks. All ranks get
    /// the same bits. Collective.
    ///
    /// ```
    /// # use typepack::Op;
    /// # let universe = typepack::init()?;
    /// # let world = universe.world();
    /// let (mine, mut bits) = ([1u32 << world.rank(), 7], [0; 2]);
    /// world.all_reduce(&mine, &mut bits, Op::Bor)?;
    /// assert_eq!(bits, [(1 << world.size()) - 1, 7]);
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns `ErrorKind::Buffer` if the two slices have different lengths, and the errors of
    /// [`all_reduce_in_place`](Self::all_reduce_in_place).
    #[doc(alias = "MPI_Allreduce")]
    pub fn all_reduce<T: NoUninit + AnyBitPattern>(
        &self,
        send: &[T],
        recv: &mut [T],
        op: impl Reduction<T>,
    ) -> Result<()> {
        self.reduce_slices(Kind::Allreduce, Some(send), recv, op)
    }

    /// Writes the element-wise reduction of the values at `send` of all ranks to `recv` of `root`. Other ranks may
    /// pass a slice of any length as `recv`, which stays as it is. Collective.
    ///
    /// # Errors
    /// Returns `ErrorKind::Root` if `root` is not a rank of the communicator, `ErrorKind::Buffer` if the two slices of
    /// the root have different lengths, and the errors of [`all_reduce_in_place`](Self::all_reduce_in_place).
    #[doc(alias = "MPI_Reduce")]
    pub fn reduce<T: NoUninit + AnyBitPattern>(
        &self,
        send: &[T],
        recv: &mut [T],
        op: impl Reduction<T>,
        root: usize,
    ) -> Result<()> {
        self.reduce_slices(Kind::Reduce(root), Some(send), recv, op)
    }

    /// Writes the element-wise reduction of the values at `send` of the ranks up to and including this rank to
    /// `recv`. Collective.
    ///
    /// ```
    /// # use typepack::Op;
    /// # let universe = typepack::init()?;
    /// # let world = universe.world();
    /// // This rank writes `mine` records, after the records of the ranks below it.
    /// let (mine, mut end) = ([world.rank() as u64 + 1], [0]);
    /// world.scan(&mine, &mut end, Op::Sum)?;
    /// let first = end[0] - mine[0];
    /// # assert_eq!(first, (0..mine[0]).sum());
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`all_reduce`](Self::all_reduce).
    #[doc(alias = "MPI_Scan")]
    pub fn scan<T: NoUninit + AnyBitPattern>(
        &self,
        send: &[T],
        recv: &mut [T],
        op: impl Reduction<T>,
    ) -> Result<()> {
        self.reduce_slices(Kind::Scan, Some(send), recv, op)
    }

    /// Writes the element-wise reduction of the values at `send` of the ranks below this rank to `recv`. On rank 0,
    /// `recv` stays as it is. Collective.
    ///
    /// # Errors
    /// Returns the errors of [`all_reduce`](Self::all_reduce).
    #[doc(alias = "MPI_Exscan")]
    pub fn exscan<T: NoUninit + AnyBitPattern>(
        &self,
        send: &[T],
        recv: &mut [T],
        op: impl Reduction<T>,
    ) -> Result<()> {
        self.reduce_slices(Kind::Exscan, Some(send), recv, op)
    }

    /// Reduces the values at `send` of all ranks, and divides the result among the ranks: `counts[i]` values go to
    /// `recv` of rank `i`. Collective.
    ///
    /// # Errors
    /// Returns `ErrorKind::Argument` if the number of counts is not the number of ranks, `ErrorKind::Buffer` if a
    /// slice does not have the length that `counts` says, and the errors of
    /// [`all_reduce_in_place`](Self::all_reduce_in_place).
    #[doc(alias = "MPI_Reduce_scatter")]
    pub fn reduce_scatter<T: NoUninit + AnyBitPattern>(
        &self,
        send: &[T],
        recv: &mut [T],
        counts: &[usize],
        op: impl Reduction<T>,
    ) -> Result<()> {
        self.reduce_slices(Kind::ReduceScatter(counts), Some(send), recv, op)
    }

    /// Reduces the values at `send` of all ranks, and divides the result into blocks of equal length: block `i` goes to
    /// `recv` of rank `i`. All ranks pass slices of the same lengths. Collective.
    ///
    /// # Errors
    /// Returns `ErrorKind::Buffer` if `send` does not have the length of `recv` times the number of ranks, and the
    /// errors of [`all_reduce_in_place`](Self::all_reduce_in_place).
    #[doc(alias = "MPI_Reduce_scatter_block")]
    pub fn reduce_scatter_block<T: NoUninit + AnyBitPattern>(
        &self,
        send: &[T],
        recv: &mut [T],
        op: impl Reduction<T>,
    ) -> Result<()> {
        let counts = vec![recv.len(); self.size()];
        self.reduce_slices(Kind::ReduceScatter(&counts), Some(send), recv, op)
    }

    fn reduce_slices<T: NoUninit + AnyBitPattern>(
        &self,
        kind: Kind<'_>,
        send: Option<&[T]>,
        recv: &mut [T],
        op: impl Reduction<T>,
    ) -> Result<()> {
        call(self, kind, send, recv, op, Self::skip_collective, |call| {
            // SAFETY: `call` uses only the values of the slices, whose lengths `values::call` has checked. The
            // slices are borrowed until this function returns, `recv` mutably, so nobody else uses `recv` and the
            // two do not overlap. The operation is one on values of type `T`.
            unsafe { self.run_raw(call) }
        })
    }
}
