//! The shortest way of put, get and updates of one element: a few tens of instructions for the usual case, without
//! values of errors. A function of this file returns false in all other cases, and then nothing has happened; the
//! caller calls the function that serves all cases and returns all errors (`copies.rs`, `accumulate.rs`).
//!
//! The functions are inlined into the calls of the C interface. What they need of a type is known before: the number of
//! bytes, and what its elements are ([`ElementKind`]).

use super::copies::copy_short;
use super::mechanism::{self, Inside};
use super::{Update, Window};
use crate::Named;
use crate::coll::Operator;
use crate::sys::fork;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What the elements of a predefined type are, for updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum ElementKind {
    /// Integers, whose sum wraps.
    Integers,
    /// Values of `f32` or `f64`.
    Reals,
    /// Anything else.
    Others,
}

impl ElementKind {
    /// Returns what the elements of a type are.
    pub fn of(named: Named) -> Self {
        match named {
            _ if named.members().is_some() => Self::Others,
            _ if Operator::adds_with_wrap(named) => Self::Integers,
            _ if Operator::adds_reals(named) => Self::Reals,
            _ => Self::Others,
        }
    }
}

/// An update of one element by [`Window::update_short`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum ShortUpdate {
    /// The element keeps its value.
    Load,
    /// The operand replaces the element.
    Replace,
    /// The sum of two integers.
    AddIntegers,
    /// The sum of two reals.
    AddReals,
}

impl ShortUpdate {
    /// Returns the short form of an update of elements, if there is one.
    #[inline(always)]
    pub fn new(update: Update, elements: ElementKind) -> Option<Self> {
        match (update, elements) {
            (_, ElementKind::Others) => None,
            (Update::NoOp, _) => Some(Self::Load),
            (Update::Replace, _) => Some(Self::Replace),
            (Update::Combine(Operator::Sum), ElementKind::Integers) => Some(Self::AddIntegers),
            (Update::Combine(Operator::Sum), ElementKind::Reals) => Some(Self::AddReals),
            _ => None,
        }
    }
}

macro_rules! width {
    ($update:ident, $atomic:ty, $value:ty, $real:ty) => {
        /// Updates an element. The old value goes to `result`, unless `result` is null.
        ///
        /// # Safety
        ///
        /// - `at` is a multiple of the size of an element, and the element there is readable and writable. Nobody
        ///   accesses it during the call except by atomic operations.
        /// - `from` is readable for an element, unless the update is `Load`; `result` is null or writable for one.
        #[inline(always)]
        unsafe fn $update(update: ShortUpdate, at: *mut u8, from: *const u8, result: *mut u8) {
            // SAFETY: the element is valid and its address is aligned (first condition).
            let cell = unsafe { <$atomic>::from_ptr(at.cast::<$value>()) };
            let operand = match update {
                ShortUpdate::Load => 0,
                // SAFETY: the operand is readable (second condition). The read may be unaligned.
                _ => unsafe { from.cast::<$value>().read_unaligned() },
            };
            let old = match update {
                ShortUpdate::Load => cell.load(Ordering::Acquire),
                ShortUpdate::Replace if result.is_null() => {
                    return cell.store(operand, Ordering::Release);
                }
                ShortUpdate::Replace => cell.swap(operand, Ordering::AcqRel),
                ShortUpdate::AddIntegers => cell.fetch_add(operand, Ordering::AcqRel),
                ShortUpdate::AddReals => {
                    let mut old = cell.load(Ordering::Acquire);
                    loop {
                        let sum = <$real>::from_bits(old) + <$real>::from_bits(operand);
                        let (done, seen) = (Ordering::AcqRel, Ordering::Acquire);
                        match cell.compare_exchange_weak(old, sum.to_bits(), done, seen) {
                            Ok(_) => break old,
                            Err(now) => old = now,
                        }
                    }
                }
            };
            if !result.is_null() {
                // SAFETY: the result is writable (second condition). The write may be unaligned.
                unsafe { result.cast::<$value>().write_unaligned(old) };
            }
        }
    };
}

width!(update4, AtomicU32, u32, f32);
width!(update8, AtomicU64, u64, f64);

impl Window {
    /// Returns the address in this process of `bytes` bytes at a displacement of the memory of rank `target`, if an
    /// epoch permits an access and this process can map the memory.
    #[inline(always)]
    fn place(&self, target: usize, displacement: i64, bytes: u64) -> Option<*mut u8> {
        let may_access = !fork::is_child() && self.epochs.permits(target);
        may_access.then(|| self.direct(target, displacement, 0, bytes)).flatten()
    }

    /// Returns the address of an aligned element like [`place`](Self::place), if other ranks may access it too and the
    /// target permits instructions. They stay permitted until the second value is dropped.
    #[inline(always)]
    fn element_to_update(
        &self,
        target: usize,
        displacement: i64,
        bytes: u64,
    ) -> Option<(*mut u8, Inside<'_>)> {
        if fork::is_child() || !self.epochs.permits_shared(target) {
            return None;
        }
        let at = self.direct(target, displacement, 0, bytes)?;
        if at as u64 & (bytes - 1) != 0 {
            return None;
        }
        Some((at, mechanism::begin_short(&self.words, self.rank, target)?))
    }

    /// Copies `bytes` bytes to a displacement of the memory of rank `target`. Returns whether the call has done this.
    /// See [`put_raw`](Self::put_raw).
    ///
    /// # Safety
    ///
    /// - The bytes at `from` are readable, and do not overlap those at the target.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn put_short(
        &self,
        from: *const u8,
        bytes: u64,
        target: usize,
        displacement: i64,
    ) -> bool {
        let Some(to) = self.place(target, displacement, bytes) else { return false };
        // SAFETY: the caller guarantees the bytes at `from`. Those at `to` lie in the window (`direct`), which is
        // mapped as long as the window lives.
        unsafe { copy_short(from, to, bytes) };
        self.note_stores();
        true
    }

    /// Copies `bytes` bytes from a displacement of the memory of rank `target`. Returns whether the call has done this.
    /// See [`get_raw`](Self::get_raw).
    ///
    /// # Safety
    ///
    /// - The bytes at `to` are writable, nobody else accesses them, and they do not overlap those at the target.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn get_short(
        &self,
        to: *mut u8,
        bytes: u64,
        target: usize,
        displacement: i64,
    ) -> bool {
        let Some(from) = self.place(target, displacement, bytes) else { return false };
        // SAFETY: the caller guarantees the bytes at `to`. Those at `from` lie in the window (`direct`), which is
        // mapped as long as the window lives.
        unsafe { copy_short(from, to, bytes) };
        // The buffer may lie in the memory of the window, or overlap with its start.
        let ((first, length), bytes) = (self.mapped, bytes as usize);
        if to.addr().wrapping_add(bytes).wrapping_sub(first) < length.wrapping_add(bytes) {
            self.note_stores();
        }
        true
    }

    /// Updates an element of 8 bytes (`is_wide`) or 4 bytes at a displacement of the memory of rank `target`. Returns
    /// whether the call has done this. See [`accumulate_raw`](Self::accumulate_raw).
    ///
    /// # Safety
    ///
    /// - `from` is readable for an element, unless the update is [`ShortUpdate::Load`].
    /// - `result` is null, or writable for an element, and nobody else accesses it. None of the elements overlap.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn update_short(
        &self,
        update: ShortUpdate,
        is_wide: bool,
        (from, result): (*const u8, *mut u8),
        target: usize,
        displacement: i64,
    ) -> bool {
        let bytes = if is_wide { 8 } else { 4 };
        let Some((at, inside)) = self.element_to_update(target, displacement, bytes) else {
            return false;
        };
        // SAFETY: the element at the target is aligned, and lies in the window, which is mapped as long as the window
        // lives (`direct`). All ranks update it by instructions as long as `inside` lives. The caller guarantees the
        // other elements (the conditions of `# Safety`).
        unsafe {
            match is_wide {
                true => update8(update, at, from, result),
                false => update4(update, at, from, result),
            }
        }
        drop(inside);
        if update == ShortUpdate::Replace {
            self.note_stores();
        }
        true
    }

    /// Replaces an integer of 8 bytes (`is_wide`) or 4 bytes at a displacement of the memory of rank `target` by the
    /// element at `new` if it equals the element at `compare`. The old value goes to `result`. Returns whether the call
    /// has done this. See [`compare_and_swap_raw`](Self::compare_and_swap_raw).
    ///
    /// # Safety
    ///
    /// - `new` and `compare` are readable for an element, and `result` is writable for one.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn swap_short(
        &self,
        is_wide: bool,
        (new, compare): (*const u8, *const u8),
        result: *mut u8,
        target: usize,
        displacement: i64,
    ) -> bool {
        let bytes = if is_wide { 8 } else { 4 };
        let Some((at, inside)) = self.element_to_update(target, displacement, bytes) else {
            return false;
        };
        // SAFETY: see `update_short`.
        unsafe {
            match is_wide {
                true => super::atomic::exchange8(at, compare, new, result),
                false => super::atomic::exchange4(at, compare, new, result),
            }
        }
        drop(inside);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{ElementKind, ShortUpdate, update4, update8};
    use crate::Named;
    use crate::coll::Operator;
    use crate::rma::Update;
    use std::ptr::null_mut;

    /// Checks that an element that is updated under a lock by the other ways has no short update.
    #[test]
    fn pairs_and_complex_numbers_have_no_short_update() {
        for named in Named::all() {
            let elements = ElementKind::of(named);
            let short = ShortUpdate::new(Update::Combine(Operator::Sum), elements);
            if named.members().is_some() || !matches!(named.size(), 1 | 2 | 4 | 8 | 16) {
                assert_eq!((elements, short), (ElementKind::Others, None), "{named}");
            }
            if elements == ElementKind::Reals {
                assert!(matches!(named.size(), 4 | 8), "{named}");
            }
        }
        for named in [Named::C_FLOAT_COMPLEX, Named::COMPLEX8, Named::FLOAT_INT, Named::BYTE] {
            assert_eq!(ElementKind::of(named), ElementKind::Others);
        }
        assert_eq!(ElementKind::of(Named::DOUBLE), ElementKind::Reals);
        assert_eq!(ElementKind::of(Named::INT), ElementKind::Integers);
    }

    #[test]
    fn the_four_updates() {
        let mut at = u64::MAX;
        let run = |at: &mut u64, update, operand: u64| {
            let (mut old, at) = (0u64, std::ptr::from_mut(at).cast());
            // SAFETY: all three elements are local variables, and the first one is aligned.
            unsafe { update8(update, at, (&raw const operand).cast(), (&raw mut old).cast()) };
            old
        };
        assert_eq!((run(&mut at, ShortUpdate::AddIntegers, 3), at), (u64::MAX, 2));
        assert_eq!((run(&mut at, ShortUpdate::Load, 9), at), (2, 2));
        assert_eq!(
            (run(&mut at, ShortUpdate::Replace, 1.5f64.to_bits()), at),
            (2, 1.5f64.to_bits())
        );
        assert_eq!(run(&mut at, ShortUpdate::AddReals, 2.25f64.to_bits()), 1.5f64.to_bits());
        assert_eq!(f64::from_bits(at), 3.75);
        let (mut single, operand) = (1.5f32, 0.5f32);
        // SAFETY: both elements are local variables; no result is asked for.
        unsafe {
            let (at, from) = ((&raw mut single).cast(), (&raw const operand).cast());
            update4(ShortUpdate::AddReals, at, from, null_mut());
            update4(ShortUpdate::Load, at, from, null_mut());
        }
        assert_eq!(single, 2.0);
    }
}
