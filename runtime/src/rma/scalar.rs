//! Updates of one element of 4 or 8 bytes, such as a counter: the same as in `accumulate.rs`, without the checks that
//! such an update cannot fail.

use super::accumulate::Update;
use super::atomic::{self, Atomic};
use super::ranges::{Patience, hold_range};
use super::{Window, mechanism};
use crate::coll::Operator;
use crate::{Datatype, Named, Plan, Result};
use typepack_engine::Elements;

/// An update of one element of a predefined type of 4 or 8 bytes, prepared for [`Window::update_element`].
#[derive(Clone, Copy, Debug)]
pub(super) struct ElementUpdate {
    atomic: Atomic,
    is_wide: bool,
    needs_operand: bool,
}

impl ElementUpdate {
    /// Prepares an update of an element of type `named`. Returns `None` if the type has another size or several
    /// members, or if the operation is not defined on the type.
    #[inline(always)]
    pub fn new(update: Update, named: Named) -> Option<Self> {
        let is_wide = match named.size() {
            4 => false,
            8 => true,
            _ => return None,
        };
        // An element of several members is updated under a lock, also if the element has 8 bytes (`accumulate.rs`).
        if named.members().is_some() {
            return None;
        }
        let (wraps, combine) = match update {
            Update::NoOp | Update::Replace => (false, None),
            // These need no function.
            Update::Combine(Operator::Sum) if Operator::adds_with_wrap(named) => (true, None),
            Update::Combine(operator) => (false, Some(operator.combiner(named)?)),
        };
        let needs_operand = update != Update::NoOp;
        Some(Self { atomic: Atomic::new(update, wraps, combine), is_wide, needs_operand })
    }
}

/// Returns the predefined type of one element of 4 or 8 bytes without gaps.
#[inline(always)]
fn type_of_one(plan: &Plan, count: u64) -> Option<Named> {
    let is_short = count == 1 && matches!(plan.element_bytes(), 4 | 8) && plan.is_contiguous();
    plan.datatype().filter(|_| is_short).and_then(Datatype::as_named)
}

/// Prepares an update if the types of all arguments are one predefined type of 4 or 8 bytes. Returns the update, and
/// the addresses of the operand and of the result, which are null if they are not needed. The arguments are those of
/// [`Window::accumulate_raw`].
#[inline(always)]
pub(super) fn one(
    (from, result): (Option<&Elements<&Plan>>, Option<&Elements<&Plan>>),
    (plan, count): (&Plan, u64),
    update: Update,
) -> Option<(ElementUpdate, *const u8, *mut u8)> {
    let named = type_of_one(plan, count)?;
    // The origin of an element of a predefined type is the first byte of the element.
    let address = |part: Option<&Elements<&Plan>>| match part {
        None => Some(std::ptr::null_mut()),
        // Often all arguments have the same type.
        Some(part) if part.count == 1 && std::ptr::eq(part.plan, plan) => Some(part.origin),
        Some(part) => (type_of_one(part.plan, part.count)? == named).then_some(part.origin),
    };
    let from = address(from.filter(|_| update != Update::NoOp))?;
    let result = address(result)?;
    Some((ElementUpdate::new(update, named)?, from, result))
}

impl Window {
    /// Updates the element at displacement `displacement` of the memory of rank `target` by an instruction, with the
    /// operand at `from`. If the target uses locks, the call holds the lock of the element's range meanwhile. The old
    /// value goes to `result`, if `result` is not null. Returns whether the call has updated the element; if not,
    /// nothing has happened, and the caller calls [`accumulate_raw`](Self::accumulate_raw), which serves all cases and
    /// returns all errors.
    ///
    /// # Safety
    ///
    /// - `from` is readable for an element of the update's type, or null if the update is [`Update::NoOp`].
    /// - `result` is null, or writable for such an element, and nobody else accesses it.
    ///
    /// # Errors
    /// Returns `WindowErrorKind::Synchronization` if no epoch permits the access, and the errors of
    /// `accumulate_raw` if the target uses locks.
    #[inline]
    pub(super) unsafe fn update_element(
        &self,
        update: &ElementUpdate,
        from: *const u8,
        result: *mut u8,
        target: usize,
        displacement: i64,
    ) -> Result<bool> {
        if from.is_null() && update.needs_operand {
            return Ok(false);
        }
        let bytes = if update.is_wide { 8 } else { 4 };
        let Some(at) = self.element(target, displacement, bytes)? else { return Ok(false) };
        let own = self.comm.endpoint().rank();
        let inside = mechanism::begin(&self.words, (self.rank(), own), target, 1)?;
        let held = match inside {
            Some(_) => None,
            None => {
                let offset = self.offset_of(target, displacement);
                Some(hold_range(&self.words, target, offset, Patience::new(&self.comm, target))?)
            }
        };
        let stores = held.is_some() || update.atomic.is_store();
        // SAFETY:
        // - the element at the target is aligned, and lies in the window, which is mapped as long as the window lives
        //   (`element`); all ranks update it by instructions as long as `inside` lives, and under the lock of its range
        //   otherwise, which is `held`;
        // - the operand is null or readable for an element, and null only for `NoOp` (checked above; the caller
        //   guarantees the memory);
        // - the old value is null or writable for an element, and nobody else accesses it (the caller guarantees this).
        unsafe {
            match update.is_wide {
                true => update.atomic.update8(at, from, result, 1),
                false => update.atomic.update4(at, from, result, 1),
            }
        }
        drop((inside, held));
        if stores {
            self.note_stores();
        }
        Ok(true)
    }

    /// Replaces the element of type `named` at displacement `displacement` of the memory of rank `target` by the
    /// element at `new` if it equals the element at `compare`, by an instruction. The old value goes to `result`.
    /// Returns whether the call has done this; if not, nothing has happened.
    /// [`compare_and_swap_raw`](Self::compare_and_swap_raw) serves all cases and returns all errors.
    ///
    /// # Safety
    ///
    /// - `new` and `compare` are readable for an element, and `result` is writable for one.
    ///
    /// # Errors
    /// Returns `WindowErrorKind::Synchronization` if no epoch permits the access.
    #[inline(always)]
    pub(super) unsafe fn swap_element(
        &self,
        named: Named,
        (new, compare): (*const u8, *const u8),
        result: *mut u8,
        target: usize,
        displacement: i64,
    ) -> Result<bool> {
        let bytes = u64::from(named.size());
        if !(matches!(bytes, 4 | 8) && Operator::adds_with_wrap(named)) {
            return Ok(false);
        }
        let Some(at) = self.element(target, displacement, bytes)? else { return Ok(false) };
        let ranks = (self.rank(), self.comm.endpoint().rank());
        let Some(inside) = mechanism::begin(&self.words, ranks, target, 1)? else {
            return Ok(false);
        };
        // SAFETY: the element at the target is aligned, and lies in the window, which is mapped as long as the window
        // lives (`element`). All ranks update it by instructions as long as `inside` lives. The caller guarantees the
        // other elements (the condition of `# Safety`).
        unsafe {
            match bytes {
                4 => atomic::exchange4(at, compare, new, result),
                _ => atomic::exchange8(at, compare, new, result),
            }
        }
        drop(inside);
        Ok(true)
    }

    /// Returns the address of an element of `bytes` bytes (4 or 8) at a target, if it is aligned and lies in mapped
    /// memory of the window, and if other ranks may access it too.
    ///
    /// # Errors
    /// Returns `WindowErrorKind::Synchronization` if no epoch permits the access.
    #[inline(always)]
    fn element(&self, target: usize, displacement: i64, bytes: u64) -> Result<Option<*mut u8>> {
        let Some(at) = self.direct(target, displacement, 0, bytes) else { return Ok(None) };
        let is_alone = self.epochs.check_access(target)?;
        // `bytes` is 4 or 8. A division would take as long as the rest of these checks.
        let is_usual = !is_alone && at as u64 & (bytes - 1) == 0;
        Ok(is_usual.then_some(at))
    }
}
