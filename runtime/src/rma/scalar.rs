//! Updates of one element of 4 or 8 bytes, such as a counter: the same as in `accumulate.rs`, without the checks that
//! such an update cannot fail.

use super::accumulate::Update;
use super::atomic::Atomic;
use super::ranges::hold_range;
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
    /// Updates one element by an instruction, if the types of all arguments are one predefined type of 4 or 8 bytes. If
    /// the target uses locks, the call holds the lock of the element's range meanwhile. Returns whether the call has
    /// updated the element; if not, nothing has happened, and the call may be erroneous. The arguments are those of
    /// [`accumulate_raw`](Self::accumulate_raw).
    ///
    /// # Safety
    ///
    /// - The condition of [`accumulate_raw`](Self::accumulate_raw).
    ///
    /// # Errors
    /// Returns `WindowErrorKind::Synchronization` if no epoch permits the access, and the errors of
    /// [`hold_range`] if the target uses locks.
    #[inline(always)]
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
            // Often all arguments have the same type.
            Some(part) if part.count == 1 && std::ptr::eq(part.plan, plan) => {
                Some(part.origin.wrapping_offset(lb as isize))
            }
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
        let mut wraps = false;
        let combine = match update {
            Update::NoOp | Update::Replace => None,
            // These need no function.
            Update::Combine(Operator::Sum) if Operator::adds_with_wrap(named) => {
                wraps = true;
                None
            }
            // If the operation is not defined on the type, the general call returns the error.
            Update::Combine(operator) => match operator.combiner(named) {
                Some(combiner) => Some(Combine::from(combiner)),
                None => return Ok(false),
            },
        };
        let Some(at) = self.direct(target, displacement, lb, bytes) else { return Ok(false) };
        let is_alone = self.epochs.check_access(target)?;
        // `bytes` is 4 or 8. A division would take as long as the rest of these checks.
        if is_alone || at as u64 & (bytes - 1) != 0 {
            return Ok(false);
        }
        let own = self.comm.endpoint().rank();
        let inside = mechanism::begin(&self.words, (self.rank(), own), target, 1)?;
        let held = match inside {
            Some(_) => None,
            None => {
                let may_spin = !self.comm.endpoint().sleeps_at_once();
                let offset = self.offset_of(target, displacement).wrapping_add(lb);
                Some(hold_range(&self.words, target, offset, own, may_spin)?)
            }
        };
        let atomic = Atomic::new(update, || wraps, combine.as_ref());
        // SAFETY:
        // - the element at the target is aligned (checked above), and lies in the window (`direct`), which is mapped as
        //   long as the window lives; all ranks update it by instructions as long as `inside` lives, and under the lock
        //   of its range otherwise, which is `held`;
        // - the operand is null or readable for an element, and null only for `NoOp` (checked above; the caller
        //   guarantees the memory);
        // - the old value is null or writable for an element, and nobody else accesses it (the caller guarantees this).
        unsafe {
            match bytes {
                4 => atomic.update4(at, operand, old, 1),
                _ => atomic.update8(at, operand, old, 1),
            }
        }
        drop((inside, held));
        Ok(true)
    }
}
