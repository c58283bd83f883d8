//! Allreduce by recursive doubling, the same bits on every rank.
//!
//! Ranks beyond a power of two first hand their values to a neighbour and get the result back at
//! the end. In every round two groups of consecutive ranks, of which each holds one and the same
//! value on all its ranks, combine `lower op upper`, in this order on both sides: thus all ranks
//! of the joined group hold the same bits again, also in floating point.

use super::{REDUCE, bytes, unequal};
use crate::Result;
use crate::comm::{Communicator, Space};
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
        let (rank, size) = (self.rank(), self.size());
        let doubling = 1 << size.ilog2();
        let extra = size - doubling;
        let mut theirs = vec![<T as bytemuck::Zeroable>::zeroed(); values.len()];

        // 1. The first 2 * extra ranks become extra: the even ones give their values away.
        let paired = rank < 2 * extra;
        if paired && rank % 2 == 0 {
            self.give(values, rank + 1)?;
            return self.take(values, rank + 1);
        }
        if paired {
            self.take(&mut theirs, rank - 1)?;
            for (mine, lower) in values.iter_mut().zip(&theirs) {
                *mine = T::combine(op, *lower, *mine);
            }
        }

        // 2. Recursive doubling among the others, numbered consecutively.
        let number = if paired { rank / 2 } else { rank - extra };
        let real = |number: usize| if number < extra { 2 * number + 1 } else { number + extra };
        let mut bit = 1;
        while bit < doubling {
            let partner = number ^ bit;
            self.swap(values, &mut theirs, real(partner))?;
            for (mine, other) in values.iter_mut().zip(&theirs) {
                *mine = if partner < number {
                    T::combine(op, *other, *mine)
                } else {
                    T::combine(op, *mine, *other)
                };
            }
            bit *= 2;
        }

        // 3. The result goes back.
        if paired { self.give(values, rank - 1) } else { Ok(()) }
    }

    fn give<T: Reducible>(&self, values: &[T], to: usize) -> Result<()> {
        let byte = bytes()?;
        self.scope_in(Space::Collective, |scope| {
            scope.isend(values, byte, size_of_val(values) as u64, to, REDUCE).map(drop)
        })?
    }

    fn take<T: Reducible>(&self, values: &mut [T], from: usize) -> Result<()> {
        let (byte, ours) = (bytes()?, size_of_val(values) as u64);
        let status = self.scope_in(Space::Collective, |scope| {
            scope.wait(scope.irecv(values, byte, ours, from, REDUCE)?)
        })??;
        equal(from, status.bytes, ours)
    }

    fn swap<T: Reducible>(&self, mine: &[T], theirs: &mut [T], with: usize) -> Result<()> {
        let (byte, ours) = (bytes()?, size_of_val(mine) as u64);
        let status = self.scope_in(Space::Collective, |scope| {
            let request = scope.irecv(theirs, byte, ours, with, REDUCE)?;
            scope.isend(mine, byte, ours, with, REDUCE)?;
            scope.wait(request)
        })??;
        equal(with, status.bytes, ours)
    }
}

fn equal(rank: usize, theirs: u64, ours: u64) -> Result<()> {
    if theirs == ours { Ok(()) } else { Err(unequal("values", rank, theirs, ours)) }
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
