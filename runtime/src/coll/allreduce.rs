//! Allreduce by recursive doubling, the same bits on every rank.
//!
//! Ranks beyond a power of two first hand their values to a neighbour and get the result back at
//! the end. In every round two groups of consecutive ranks, of which each holds one and the same
//! value on all its ranks, combine `lower op upper`, in this order on both sides: thus all ranks
//! of the joined group hold the same bits again, also in floating point.

use super::Collective;
use crate::comm::Communicator;
use crate::commit::commit;
use crate::endpoint::sources::{Combine, Combiner};
use crate::schedule::Part;
use crate::schedule::program::{Builder, StepId};
use crate::{Datatype, Named, Plan, Result};
use bytemuck::{AnyBitPattern, NoUninit};
use std::sync::OnceLock;

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
    pub trait Sealed {
        /// The committed type of a value.
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

/// Combines two vectors of values.
///
/// # Safety
///
/// - Both are addresses of so many values, `lower`'s readable, `upper`'s also writable.
unsafe fn vector<T: Reducible, const OP: u8>(lower: *const u8, upper: *mut u8, count: usize) {
    let op = match OP {
        0 => Op::Sum,
        1 => Op::Min,
        _ => Op::Max,
    };
    let (lower, upper) = (lower.cast::<T>(), upper.cast::<T>());
    for i in 0..count {
        // SAFETY: the index is below the count; values may lie anywhere for these accesses.
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
    /// Replaces `values` by their element-wise reduction over all ranks: the same bits everywhere,
    /// and the same in every run with as many ranks. Collective.
    ///
    /// # Errors
    /// Slices of different lengths; [`ErrorKind::ProcAborted`](crate::ErrorKind) when a rank has died.
    #[doc(alias = "MPI_Allreduce")]
    pub fn allreduce<T: Reducible>(&self, values: &mut [T], op: Op) -> Result<()> {
        let (plan, combine) = (T::plan()?, Combine::from(combiner::<T>(op)));
        let (recv, count) = (values.as_mut_ptr().cast(), values.len() as u64);
        // SAFETY: the slice is mutably borrowed until the call returns, and has so many values of the
        // plan's type, which are those that the function combines.
        unsafe { self.allreduce_raw(None, recv, plan, count, &combine) }
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
        combine: &Combine,
    ) -> Result<()> {
        // SAFETY: both vectors and the operation are the caller's promise.
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
        // 1. The first 2 * extra ranks become extra: the even ones give their values away, and get
        // the result at the end.
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

        // 2. Recursive doubling among the others, numbered consecutively.
        let number = if paired { rank / 2 } else { rank - extra };
        let real = |number: usize| if number < extra { 2 * number + 1 } else { number + extra };
        let mut bit = 1;
        while bit < doubling {
            let partner = number ^ bit;
            value.combine(self, steps, recv, real(partner), partner < number, true)?;
            bit *= 2;
        }

        // 3. The result goes to its place, and back.
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

/// The value of a rank during the rounds: combined elements of consecutive ranks.
struct Value<'a> {
    /// It is still the caller's own, which must not be written.
    own: bool,
    mine: Part<'a>,
    /// The step that has made it; none has made the caller's.
    made: Option<StepId>,
    /// Room beside the caller's `recv`.
    room: Option<*mut u8>,
}

impl<'a> Value<'a> {
    /// One round: combines the value with that of `partner`, whose ranks are `lower` or higher, and who
    /// gets ours if `both`. The upper operand takes the result: ours, or what we have received.
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
            // The result needs a place that may be written.
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
            // What was there has been read.
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
