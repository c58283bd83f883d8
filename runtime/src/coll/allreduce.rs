//! Allreduce by recursive doubling. All ranks get the same bits.
//!
//! If the number of ranks is not a power of two, some of the ranks first send their values to a neighbour,
//! take no part in the rounds, and get the result from this neighbour at the end. The number of the other
//! ranks is a power of two. Before every round, the ranks form groups of consecutive ranks, and all ranks of
//! a group hold the same value: the reduction of the group's values. In the round, the ranks of two
//! neighbouring groups exchange their values, and every rank of both groups computes `lower op upper`, where
//! `lower` is the value of the group with the lower ranks. So all ranks of the joined group again hold the
//! same bits, even for floating-point values.

use super::Collective;
use crate::comm::Communicator;
use crate::commit::commit;
use crate::endpoint::sources::{Combine, Combiner};
use crate::schedule::Part;
use crate::schedule::program::{Builder, StepId};
use crate::{Datatype, Named, Plan, Result};
use bytemuck::{AnyBitPattern, NoUninit};
use std::sync::OnceLock;

/// An operation that reduces values.
#[doc(alias = "MPI_Op")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Op {
    /// The sum. A sum of integers wraps around if it overflows.
    #[doc(alias = "MPI_SUM")]
    Sum,
    /// The smallest value. Values are combined in pairs; if one value of a pair is a NaN, the result is the
    /// value that came from the lower ranks.
    #[doc(alias = "MPI_MIN")]
    Min,
    /// The largest value. Values are combined in pairs; if one value of a pair is a NaN, the result is the
    /// value that came from the lower ranks.
    #[doc(alias = "MPI_MAX")]
    Max,
}

mod sealed {
    pub trait Sealed {
        /// Returns the committed datatype of one value of the implementing type.
        fn plan() -> crate::Result<&'static crate::Plan>;
    }
}

macro_rules! sealed {
    ($($t:ty: $named:expr;)*) => {
        $(
            impl sealed::Sealed for $t {
                fn plan() -> Result<&'static Plan> {
                    static PLAN: OnceLock<Result<Plan>> = OnceLock::new();
                    PLAN.get_or_init(|| commit(&Datatype::named($named)))
                        .as_ref()
                        .map_err(Clone::clone)
                }
            }
        )*
    };
}

sealed! {
    f64: Named::F64;
    i64: Named::I64;
}

/// Values that can be reduced: `f64` and `i64`.
pub trait Reducible: NoUninit + AnyBitPattern + sealed::Sealed {
    /// Returns `lower op upper`, where `lower` comes from lower ranks than `upper`.
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

/// Combines two vectors of `count` values: `upper[i] = lower[i] op upper[i]`.
///
/// # Safety
///
/// - `lower` is the address of `count` readable values.
/// - `upper` is the address of `count` readable and writable values.
unsafe fn vector<T: Reducible, const OP: u8>(lower: *const u8, upper: *mut u8, count: usize) {
    let op = match OP {
        0 => Op::Sum,
        1 => Op::Min,
        _ => Op::Max,
    };
    let (lower, upper) = (lower.cast::<T>(), upper.cast::<T>());
    for i in 0..count {
        // SAFETY: `i < count`, so both values lie in the vectors. The caller guarantees that the vectors are
        // valid (both conditions of `# Safety`). The accesses are unaligned, so the addresses need no
        // alignment.
        unsafe {
            let (lower, upper) = (lower.add(i), upper.add(i));
            let combined = T::combine(op, lower.read_unaligned(), upper.read_unaligned());
            upper.write_unaligned(combined);
        }
    }
}

pub(super) fn combiner<T: Reducible>(op: Op) -> Combiner {
    match op {
        Op::Sum => vector::<T, 0>,
        Op::Min => vector::<T, 1>,
        Op::Max => vector::<T, 2>,
    }
}

impl Communicator {
    /// Replaces `values` by their element-wise reduction over all ranks. All ranks get the same bits. Every
    /// run with the same values and the same number of ranks gives the same bits. Collective.
    ///
    /// # Errors
    /// Returns `ErrorKind::Truncated` or `ErrorKind::Count` if the slices have different lengths,
    /// `ErrorKind::NoMemory` if memory runs out, and `ErrorKind::ProcAborted` if a rank has died.
    #[doc(alias = "MPI_Allreduce")]
    pub fn allreduce<T: Reducible>(&self, values: &mut [T], op: Op) -> Result<()> {
        let (plan, combine) = (T::plan()?, Combine::from(combiner::<T>(op)));
        let (recv, count) = (values.as_mut_ptr().cast(), values.len() as u64);
        // SAFETY: `values` is mutably borrowed until the call returns and has `count` values of type `T`;
        // `plan` is the datatype of `T`, and `combine` combines vectors of `T`.
        unsafe { self.allreduce_raw(None, recv, plan, count, &combine) }
    }

    /// Combines the elements at `send` of all ranks, in rank order, and writes the result to `recv` of all
    /// ranks. A rank that passes `None` as `send` already has its elements at `recv`. Collective.
    ///
    /// # Safety
    ///
    /// - Until the call returns, `count` elements of `plan`'s type at `send` are readable and nobody
    ///   changes them.
    /// - Until the call returns, `count` elements of `plan`'s type at `recv` are readable and writable, and
    ///   nobody else accesses them.
    /// - The elements at `send` and at `recv` do not overlap.
    /// - `combine` keeps the promises of [`Combine`] for these elements.
    ///
    /// # Errors
    /// Returns `ErrorKind::Truncated` or `ErrorKind::Count` if the ranks' elements have different packed
    /// sizes, `ErrorKind::NoMemory` if memory runs out, and `ErrorKind::ProcAborted` if a rank has died.
    #[doc(alias = "MPI_Allreduce")]
    pub unsafe fn allreduce_raw(
        &self,
        send: Option<*const u8>,
        recv: *mut u8,
        plan: &Plan,
        count: u64,
        combine: &Combine,
    ) -> Result<()> {
        // SAFETY: the caller guarantees that, until `run_raw` returns, the elements at `send` are readable
        // and unchanged, the elements at `recv` are readable and writable and nobody else accesses them,
        // the two do not overlap, and `combine` fits these elements (the four conditions of `# Safety`, in
        // this order).
        unsafe { self.run_raw(&Collective::Allreduce { send, recv, plan, count, combine }) }
    }

    #[inline]
    pub(super) fn allreduce_steps<'a>(
        &self,
        steps: &mut Builder<'_, 'a>,
        send: Option<*const u8>,
        recv: &Part<'a>,
        combine: &Combine,
    ) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        let at = |origin: *mut u8| Part { origin, ..*recv };
        let own = send.map_or(*recv, |send| at(send.cast_mut()));
        if own.bytes()? == 0 {
            return Ok(());
        }
        if size == 1 {
            if send.is_some() {
                steps.copy(&own, recv, rank)?;
            }
            return Ok(());
        }
        let doubling = 1 << size.ilog2();
        let extra = size - doubling;
        let paired = rank < 2 * extra;
        // 1. Among the first 2 * extra ranks, each even rank sends its values to the next odd rank, takes no
        //    part in the rounds of step 2, and gets the result at the end (step 3).
        if paired && rank % 2 == 0 {
            let partner = self.peer(rank + 1)?;
            let sent = steps.send(&own, partner)?;
            let received = steps.receive(recv, partner)?;
            if send.is_none() {
                steps.follow(received, sent);
            }
            return Ok(());
        }
        steps.operation(combine);
        let mut value = Value { own: send.is_some(), mine: own, made: None, room: None };
        if paired {
            value.combine(self, steps, recv, rank - 1, true, false)?;
        }

        // 2. Recursive doubling among the remaining ranks, which are numbered consecutively.
        let number = if paired { rank / 2 } else { rank - extra };
        let real = |number: usize| if number < extra { 2 * number + 1 } else { number + extra };
        let mut bit = 1;
        while bit < doubling {
            let partner = number ^ bit;
            value.combine(self, steps, recv, real(partner), partner < number, true)?;
            bit *= 2;
        }

        // 3. If the result is not at `recv` yet, a step copies it to `recv`. Each odd rank of step 1 also
        //    sends the result to the even rank from which it got values there.
        if let Some(made) = value.made {
            if value.mine.origin != recv.origin {
                let copied = steps.copy(&value.mine, recv, rank)?;
                steps.after(copied, made);
            }
            if paired {
                let sent = steps.send(&value.mine, self.peer(rank - 1)?)?;
                steps.after(sent, made);
            }
        }
        Ok(())
    }
}

/// The value that a rank holds between two rounds: the combined elements of a group of consecutive ranks.
struct Value<'a> {
    /// True while `mine` is still the caller's `send`, which must not be written.
    own: bool,
    mine: Part<'a>,
    /// The step that computes the value in `mine`, or `None` if `mine` holds the rank's own elements.
    made: Option<StepId>,
    /// A scratch buffer of the same size as the caller's `recv`; `None` until a round needs it. The partner's
    /// values arrive at `recv`, or in this buffer if `mine` is at `recv`.
    room: Option<*mut u8>,
}

impl<'a> Value<'a> {
    /// Adds the steps of one round to the schedule. The round combines this rank's value with `partner`'s
    /// value. `lower` is true if the partner's group has the lower ranks. `both` is true if the partner
    /// also needs this rank's value. The result replaces the upper operand, which is this rank's value if
    /// `lower` is true and the received value otherwise.
    fn combine(
        &mut self,
        comm: &Communicator,
        steps: &mut Builder<'_, 'a>,
        recv: &Part<'a>,
        partner: usize,
        lower: bool,
        both: bool,
    ) -> Result<()> {
        let at = |origin: *mut u8| Part { origin, ..*recv };
        let partner = comm.peer(partner)?;
        let mut before = self.made;
        let sent = if both { Some(steps.send(&self.mine, partner)?) } else { None };
        if let (Some(sent), Some(before)) = (sent, before) {
            steps.after(sent, before);
        }
        if self.own && lower {
            // The result will replace the upper operand. Here the upper operand is still the caller's
            // `send`, which must not be written. So a step copies it to `recv` first.
            before = Some(steps.copy(&self.mine, recv, comm.rank())?);
            (self.mine, self.own) = (*recv, false);
        }
        let target = if self.mine.origin != recv.origin {
            *recv
        } else {
            let room = match self.room {
                Some(room) => room,
                None => steps.scratch(recv.plan, recv.count)?,
            };
            self.room = Some(room);
            at(room)
        };
        let received = steps.receive(&target, partner)?;
        if let Some(made) = self.made {
            // The combining step of the previous round may still read `target`, so the receive, which
            // overwrites `target`, waits for that step.
            steps.follow(received, made);
        }
        let combined = match lower {
            true => steps.combine(target.origin, self.mine.origin, recv)?,
            false => steps.combine(self.mine.origin, target.origin, recv)?,
        };
        for step in [before, sent, Some(received)].into_iter().flatten() {
            steps.after(combined, step);
        }
        if !lower {
            (self.mine, self.own) = (target, false);
        }
        self.made = Some(combined);
        Ok(())
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
