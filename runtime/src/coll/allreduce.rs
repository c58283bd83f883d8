//! Allreduce by recursive doubling, the same bits on every rank.
//!
//! Ranks beyond a power of two first hand their values to a neighbour and get the result back at
//! the end. In every round two groups of consecutive ranks, of which each holds one and the same
//! value on all its ranks, combine `lower op upper`, in this order on both sides: thus all ranks
//! of the joined group hold the same bits again, also in floating point.

use super::REDUCE;
use super::operator::Combine;
use super::raw::{Batch, Part};
use super::reduce::Scratch;
use crate::comm::Communicator;
use crate::commit::bytes;
use crate::{Plan, Result};
use bytemuck::{AnyBitPattern, NoUninit};

/// A reduction.
#[doc(alias = "MPI_Op")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Op {
    /// The sum; integers wrap.
    #[doc(alias = "MPI_SUM")]
    Sum,
    /// The smaller value; of a NaN and another value, the one of the lower ranks.
    #[doc(alias = "MPI_MIN")]
    Min,
    /// The larger value; of a NaN and another value, the one of the lower ranks.
    #[doc(alias = "MPI_MAX")]
    Max,
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f64 {}
    impl Sealed for i64 {}
}

/// Values that can be reduced: `f64` and `i64`.
pub trait Reducible: NoUninit + AnyBitPattern + sealed::Sealed {
    /// `lower op upper`, where `lower` comes from ranks below those of `upper`.
    fn combine(op: Op, lower: Self, upper: Self) -> Self;
}

impl Reducible for f64 {
    #[inline]
    fn combine(op: Op, lower: Self, upper: Self) -> Self {
        match op {
            Op::Sum => lower + upper,
            Op::Min => {
                if upper < lower {
                    upper
                } else {
                    lower
                }
            }
            Op::Max => {
                if upper > lower {
                    upper
                } else {
                    lower
                }
            }
        }
    }
}

impl Reducible for i64 {
    #[inline]
    fn combine(op: Op, lower: Self, upper: Self) -> Self {
        match op {
            Op::Sum => lower.wrapping_add(upper),
            Op::Min => lower.min(upper),
            Op::Max => lower.max(upper),
        }
    }
}

impl Communicator {
    /// Replaces `values` by their element-wise reduction over all ranks: the same bits everywhere,
    /// and the same in every run with as many ranks. Collective.
    ///
    /// # Errors
    /// Slices of different lengths; [`ErrorKind::ProcAborted`](crate::ErrorKind) when a rank has died.
    #[doc(alias = "MPI_Allreduce")]
    pub fn allreduce<T: Reducible>(&self, values: &mut [T], op: Op) -> Result<()> {
        let (bytes, byte) = (size_of_val(values) as u64, bytes()?);
        let combine = |lower: *const u8, upper: *mut u8| {
            for i in 0..bytes as usize / size_of::<T>() {
                // SAFETY: both are addresses of as many values as the slice has: the slice's own or
                // scratch memory of that many bytes.
                unsafe {
                    let (lower, upper) = (lower.cast::<T>().add(i), upper.cast::<T>().add(i));
                    let combined = T::combine(op, lower.read_unaligned(), upper.read_unaligned());
                    upper.write_unaligned(combined);
                }
            }
        };
        let recv = values.as_mut_ptr().cast();
        // SAFETY: the slice is mutably borrowed until the call returns; the closure writes values
        // into as many bytes as it is given.
        unsafe { self.allreduce_raw(None, recv, byte, bytes, &combine) }
    }

    /// Combines the elements at `send` of all ranks, in rank order, into those at `recv` of all
    /// ranks, where they are already if `send` is `None`; see
    /// [`reduce_raw`](Self::reduce_raw). Collective.
    ///
    /// # Safety
    /// As [`reduce_raw`](Self::reduce_raw), with `recv` of every rank.
    ///
    /// # Errors
    /// As [`reduce_raw`](Self::reduce_raw).
    #[doc(alias = "MPI_Allreduce")]
    pub unsafe fn allreduce_raw(
        &self,
        send: Option<*const u8>,
        recv: *mut u8,
        plan: &Plan,
        count: u64,
        combine: Combine<'_>,
    ) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        let doubling = 1 << size.ilog2();
        let extra = size - doubling;
        let at = |origin: *mut u8| Part { origin, plan, count };
        if let Some(send) = send {
            // SAFETY: passed on.
            unsafe { at(send.cast_mut()).copy_to(&at(recv), rank)? };
        }
        if at(recv).bytes()? == 0 || size == 1 {
            return Ok(());
        }
        let mut scratch = Scratch::new(plan, count)?;
        let (mut mine, mut theirs) = (recv, scratch.origin());

        // A rank that has failed goes on with void messages: others wait for it.
        let mut result = Ok(());
        // 1. The first 2 * extra ranks become extra: the even ones give their values away.
        let paired = rank < 2 * extra;
        if paired && rank % 2 == 0 {
            // SAFETY: passed on.
            return unsafe {
                self.give(&at(recv), rank + 1)?;
                self.take(&at(recv), rank + 1)
            };
        }
        if paired {
            // SAFETY: the scratch memory is ours.
            result = unsafe { self.take(&at(theirs), rank - 1) };
            if result.is_ok() {
                combine(theirs, mine);
            }
        }

        // 2. Recursive doubling among the others, numbered consecutively.
        let number = if paired { rank / 2 } else { rank - extra };
        let real = |number: usize| if number < extra { 2 * number + 1 } else { number + extra };
        let mut bit = 1;
        while bit < doubling {
            let partner = number ^ bit;
            let mut batch = Batch::new(self, REDUCE);
            // SAFETY: one of the two is the caller's `recv`, the other our scratch memory.
            unsafe {
                batch.receive(&at(theirs), real(partner))?;
                match result {
                    Ok(()) => batch.send(&at(mine), real(partner))?,
                    Err(_) => batch.send_void(real(partner))?,
                }
            }
            result = result.and(batch.finish());
            if result.is_err() {
                // Nothing to combine.
            } else if partner < number {
                combine(theirs, mine);
            } else {
                // The upper operand takes the result.
                combine(mine, theirs);
                std::mem::swap(&mut mine, &mut theirs);
            }
            bit *= 2;
        }
        if mine != recv && result.is_ok() {
            // SAFETY: `mine` is our scratch memory then.
            unsafe { at(mine).copy_to(&at(recv), rank)? };
        }

        // 3. The result goes back.
        if paired {
            let mut batch = Batch::new(self, REDUCE);
            match result {
                // SAFETY: passed on.
                Ok(()) => unsafe { batch.send(&at(recv), rank - 1)? },
                Err(_) => batch.send_void(rank - 1)?,
            }
            result = result.and(batch.finish());
        }
        result
    }

    /// # Safety
    /// As `Batch::send`.
    unsafe fn give(&self, part: &Part<'_>, to: usize) -> Result<()> {
        let mut batch = Batch::new(self, REDUCE);
        // SAFETY: passed on.
        unsafe { batch.send(part, to)? };
        batch.finish()
    }

    /// # Safety
    /// As `Batch::receive`.
    unsafe fn take(&self, part: &Part<'_>, from: usize) -> Result<()> {
        let mut batch = Batch::new(self, REDUCE);
        // SAFETY: passed on.
        unsafe { batch.receive(part, from)? };
        batch.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_do_what_they_say() {
        assert_eq!(f64::combine(Op::Sum, 1.5, 2.0), 3.5);
        assert_eq!(f64::combine(Op::Min, 1.5, 2.0), 1.5);
        assert_eq!(f64::combine(Op::Max, 1.5, 2.0), 2.0);
        assert_eq!(i64::combine(Op::Sum, i64::MAX, 1), i64::MIN);
        assert_eq!(i64::combine(Op::Min, -1, 2), -1);
        assert_eq!(i64::combine(Op::Max, -1, 2), 2);
        assert!(f64::combine(Op::Min, f64::NAN, 2.0).is_nan());
        assert_eq!(f64::combine(Op::Min, 2.0, f64::NAN), 2.0);
    }
}
