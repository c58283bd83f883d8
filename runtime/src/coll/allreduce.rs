//! Allreduce by recursive doubling, with the same bits on every rank.
//!
//! If the number of ranks is not a power of two, each excess rank first sends its values to a neighbour and
//! gets the result back at the end. Before every round, all ranks of a group of consecutive ranks hold the
//! same value. In the round, two neighbouring groups combine `lower op upper`, in this order on both sides.
//! So all ranks of the joined group again hold the same bits, even for floating-point values.

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
    /// The sum; integers wrap.
    #[doc(alias = "MPI_SUM")]
    Sum,
    /// The smaller value. If one of the two values is a NaN, the result is the value of the lower ranks.
    #[doc(alias = "MPI_MIN")]
    Min,
    /// The larger value. If one of the two values is a NaN, the result is the value of the lower ranks.
    #[doc(alias = "MPI_MAX")]
    Max,
}

mod sealed {
    pub trait Sealed {
        /// Returns the committed type of a value.
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
        // SAFETY: `i < count`, so both values are in the vectors that the caller guarantees (conditions of
        // `# Safety`); unaligned accesses need no alignment.
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
    /// Replaces `values` by their element-wise reduction over all ranks. All ranks get the same bits, and
    /// so does every run with the same number of ranks. Collective.
    ///
    /// # Errors
    /// Returns `ErrorKind::Truncated` or `ErrorKind::Count` if the slices have different lengths, and
    /// `ErrorKind::ProcAborted` if a rank has died.
    #[doc(alias = "MPI_Allreduce")]
    pub fn allreduce<T: Reducible>(&self, values: &mut [T], op: Op) -> Result<()> {
        let (plan, combine) = (T::plan()?, Combine::from(combiner::<T>(op)));
        let (recv, count) = (values.as_mut_ptr().cast(), values.len() as u64);
        // SAFETY: `values` is mutably borrowed until the call returns and has `count` values of type `T`;
        // `plan` is the type of `T`, and `combine` combines vectors of `T`.
        unsafe { self.allreduce_raw(None, recv, plan, count, &combine) }
    }

    /// Combines the elements at `send` of all ranks, in rank order, and writes the result to `recv` of all
    /// ranks. With `None`, this rank's elements are already at `recv`. Collective.
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
    /// sizes, and `ErrorKind::ProcAborted` if a rank has died.
    #[doc(alias = "MPI_Allreduce")]
    pub unsafe fn allreduce_raw(
        &self,
        send: Option<*const u8>,
        recv: *mut u8,
        plan: &Plan,
        count: u64,
        combine: &Combine,
    ) -> Result<()> {
        // SAFETY: until `run_raw` returns, the elements at `send` stay readable, and the elements at `recv`
        // stay readable and writable for this call only; the two do not overlap, and `combine` fits these
        // elements (the four conditions of `# Safety`, in this order).
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
        // 1. Of the first 2 * extra ranks, each even rank sends its values to the next odd rank, takes no
        // part in the rounds, and gets the result at the end.
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

        // 3. The result is copied to `recv`, and sent to the even rank of step 1.
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
    /// Whether `mine` is still the caller's `send`, which must not be written.
    own: bool,
    mine: Part<'a>,
    /// The step that computes `mine`, or `None` if `mine` holds the caller's own values.
    made: Option<StepId>,
    /// A second buffer beside the caller's `recv`.
    room: Option<*mut u8>,
}

impl<'a> Value<'a> {
    /// Lists the steps of one round, which combine this rank's value with `partner`'s value. `lower` is
    /// true if the partner's group has the lower ranks. With `both`, the partner gets this rank's value.
    /// The result replaces the upper operand, which is this rank's value or the received value.
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
            // The result replaces the upper operand, which is the caller's `send` and must not be written.
            // So this step first copies the upper operand to `recv`.
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
            // The previous combination has read the old contents of `target`.
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
