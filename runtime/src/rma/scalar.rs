//! Updates of one element of 4 or 8 bytes, such as a counter: the same as in `accumulate.rs`, without the checks that
//! such an update cannot fail.

use super::accumulate::Update;
use super::atomic::Atomic;
use super::{Window, mechanism};
use crate::coll::{Combine, Operator};
use crate::schedule::part::Part;
use crate::{Datatype, Named, Plan, Result};

/// Returns the predefined type of one element of 4 or 8 bytes without gaps, and the offset of its first byte from the
/// origin.
#[inline(always)]
fn one(plan: &Plan, count: u64) -> Option<(Named, i64)> {
    let is_short = count == 1 && matches!(plan.element_bytes(), 4 | 8) && plan.is_contiguous();
    let named = plan.datatype().filter(|_| is_short).and_then(Datatype::as_named)?;
    Some((named, plan.footprint().true_lb))
}

impl Window {
    /// Updates one element by an instruction, if the types of all arguments are one predefined type of 4 or 8 bytes,
    /// and the target permits instructions. Returns whether the call has updated the element; if not, nothing has
    /// happened, and the call may be erroneous. The arguments are those of [`accumulate_raw`](Self::accumulate_raw).
    ///
    /// # Safety
    ///
    /// - The condition of [`accumulate_raw`](Self::accumulate_raw).
    ///
    /// # Errors
    /// Returns `WindowErrorKind::Synchronization` if no epoch permits the access.
    #[inline]
    pub(super) unsafe fn update_one(
        &self,
        (from, result): (Option<&Part<'_>>, Option<&Part<'_>>),
        target: usize,
        displacement: i64,
        (plan, count): (&Plan, u64),
        update: Update,
    ) -> Result<bool> {
        let Some((named, lb)) = one(plan, count) else { return Ok(false) };
        let bytes = plan.element_bytes();
        let address = |part: Option<&Part<'_>>| match part {
            None => Some(std::ptr::null_mut()),
            Some(part) => match one(part.plan, part.count) {
                Some((other, lb)) if other == named => {
                    Some(part.origin.wrapping_offset(lb as isize))
                }
                _ => None,
            },
        };
        let from = from.filter(|_| update != Update::NoOp);
        let (Some(operand), Some(old)) = (address(from), address(result)) else { return Ok(false) };
        if operand.is_null() && update != Update::NoOp {
            return Ok(false);
        }
        let combine = match update {
            Update::NoOp | Update::Replace => None,
            // These need no function.
            Update::Combine(Operator::Sum) if Operator::adds_with_wrap(named) => None,
            // If the operation is not defined on the type, the general call returns the error.
            Update::Combine(operator) => match operator.combiner(named) {
                Some(combiner) => Some(Combine::from(combiner)),
                None => return Ok(false),
            },
        };
        let Some(at) = self.direct(target, displacement, lb, bytes) else { return Ok(false) };
        let is_alone = self.epochs.check_access(target)?;
        if is_alone || !(at as u64).is_multiple_of(bytes) {
            return Ok(false);
        }
        let ranks = (self.rank(), self.comm.endpoint().rank());
        let Some(inside) = mechanism::begin(&self.words, ranks, target, 1)? else {
            return Ok(false);
        };
        let atomic = Atomic::new(update, Some(named), combine.as_ref());
        // SAFETY: the element at the target lies in the window (`direct`) and is aligned (checked above). All ranks
        // update it by instructions as long as `inside` lives. The caller guarantees the operand and the old value,
        // which are null or have the size of an element; the operand is null only for `NoOp`.
        unsafe {
            match bytes {
                4 => atomic.update4(at, operand, old, 1),
                _ => atomic.update8(at, operand, old, 1),
            }
        }
        drop(inside);
        Ok(true)
    }
}
