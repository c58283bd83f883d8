//! The short way of put, get and updates: a few tens of instructions for the usual case of one element, without
//! values of errors. A function of this file returns false in all other cases, and then nothing has happened; the
//! caller calls the function that serves all cases and returns all errors (`direct/mod.rs`, `accumulate.rs`). Only
//! [`Window::accumulate_short`], for several elements, may fail after it has updated some of them.
//!
//! The functions are inlined into the calls of the C interface and of the windows of Rust values. What they need of a
//! type is known before: the number of bytes, and how an element is updated ([`ElementUpdate`]).

use super::Run;
use super::atomic::{self, ElementUpdate};
use super::mechanism::{self, Site, Turn};
use super::ranges::{Patience, range_of};
use crate::coll::Combine;
use crate::rma::direct::copy_short;
use crate::rma::{Update, Window};
use crate::sys::fork;
use crate::tools::counting::{Counter, count_access};
use crate::{Named, Result};
use std::sync::atomic::Ordering;

impl Window {
    /// Returns the address in this process of `bytes` bytes at a displacement of the memory of rank `target`, if an
    /// epoch permits an access and this process can map the memory.
    #[inline(always)]
    fn place(&self, target: usize, displacement: i64, bytes: u64) -> Option<*mut u8> {
        let may_access = !fork::is_child() && self.epochs.permits(target);
        may_access.then(|| self.direct(target, displacement, 0, bytes)).flatten()
    }

    /// Returns the address of aligned elements like [`place`](Self::place), if other ranks may access them too.
    #[inline(always)]
    fn elements_at(
        &self,
        target: usize,
        displacement: i64,
        size: usize,
        elements: usize,
    ) -> Option<*mut u8> {
        if fork::is_child() || !self.epochs.permits_shared(target) {
            return None;
        }
        let at = self.direct(target, displacement, 0, (size * elements) as u64)?;
        // The size is 4 or 8. A division would take as long as the rest of these checks.
        (at as usize & (size - 1) == 0).then_some(at)
    }

    /// Runs `work`, which updates an element at a target, if no instruction may do this at once: usually, the target
    /// uses locks. Returns whether the call has done this.
    fn in_turn(&self, target: usize, displacement: i64, work: &dyn Fn()) -> bool {
        let number = range_of(self.offset_of(target, displacement));
        // The call that serves all cases finds the error again.
        let Ok(turn) = self.site(target).turn(number, 1) else { return false };
        work();
        if let Turn::Held(held) = turn {
            drop(held);
            self.note_stores();
            self.site(target).note_single();
        }
        count_access(Counter::ACCUMULATES);
        true
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
        count_access(Counter::PUTS);
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
        count_access(Counter::GETS);
        true
    }

    /// Updates an element at a displacement of the memory of rank `target`. Returns whether the call has done this. See
    /// [`accumulate_raw`](Self::accumulate_raw).
    ///
    /// # Safety
    ///
    /// - `from` is readable for an element, unless the update is [`Update::NoOp`].
    /// - `result` is null, or writable for an element, and nobody else accesses it. None of the elements overlap.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn update_short(
        &self,
        update: ElementUpdate,
        (from, result): (*const u8, *mut u8),
        target: usize,
        displacement: i64,
    ) -> bool {
        let Some(at) = self.elements_at(target, displacement, update.size(), 1) else {
            return false;
        };
        let Some(inside) = mechanism::begin_short(&self.words, self.rank, target) else {
            return false;
        };
        // SAFETY: the element at the target is aligned, and lies in the window, which is mapped as long as the window
        // lives (`elements_at`). All ranks update it by instructions as long as `inside` lives. The caller guarantees
        // the other elements (the conditions of `# Safety`).
        unsafe { update.run(at, from, result, 1) };
        drop(inside);
        if update.is_store() {
            self.note_stores();
        }
        count_access(Counter::ACCUMULATES);
        true
    }

    /// Does the same as [`update_short`](Self::update_short) if the target may use locks. A function of its own, so
    /// that the usual case calls no function.
    ///
    /// # Safety
    ///
    /// - The conditions of [`update_short`](Self::update_short).
    #[doc(hidden)]
    #[cold]
    pub unsafe fn update_in_turn(
        &self,
        update: ElementUpdate,
        (from, result): (*const u8, *mut u8),
        target: usize,
        displacement: i64,
    ) -> bool {
        let Some(at) = self.elements_at(target, displacement, update.size(), 1) else {
            return false;
        };
        // SAFETY: the caller guarantees the elements. This thread has its turn when the function runs (`in_turn`).
        let work = || unsafe { update.run(at, from, result, 1) };
        let is_done = self.in_turn(target, displacement, &work);
        if is_done && update.is_store() {
            self.note_stores();
        }
        is_done
    }

    /// Updates `elements` elements of type `named`, one after another, at a displacement of the memory of rank
    /// `target`. Returns whether the call has done this. See [`accumulate_raw`](Self::accumulate_raw).
    ///
    /// # Safety
    ///
    /// - `from` is readable for the elements, which do not overlap those at the target.
    ///
    /// # Errors
    /// Returns the errors of [`accumulate_raw`](Self::accumulate_raw) if it has updated some of the elements.
    #[doc(hidden)]
    pub unsafe fn accumulate_short(
        &self,
        (update, named): (Update, Named),
        from: *const u8,
        elements: usize,
        target: usize,
        displacement: i64,
    ) -> Result<bool> {
        let Some(atomic) = ElementUpdate::new(update, named) else { return Ok(false) };
        let at = self.elements_at(target, displacement, atomic.size(), elements);
        let (Some(at), false) = (at, update == Update::NoOp) else { return Ok(false) };
        let combine = match update {
            Update::Combine(operator) => operator.combiner(named).map(Combine::from),
            _ => None,
        };
        let run = Run {
            site: self.site(target),
            size: atomic.size(),
            elements,
            update,
            atomic: Some(atomic),
            combine,
            alone: false,
        };
        let offset = self.offset_of(target, displacement);
        let values = (from.cast_mut(), std::ptr::null_mut());
        // SAFETY: the elements at the target lie in the window, which is mapped as long as the window lives (`direct`).
        // The caller guarantees the operands; there are no results.
        let done = unsafe { run.update(at, offset, elements, values, &mut None) };
        self.note_stores();
        run.note(true);
        count_access(Counter::ACCUMULATES);
        done.map(|()| true)
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
        let size = if is_wide { 8 } else { 4 };
        let Some(at) = self.elements_at(target, displacement, size, 1) else { return false };
        let Some(inside) = mechanism::begin_short(&self.words, self.rank, target) else {
            return false;
        };
        // SAFETY: the element at the target is aligned and lies in the window (`elements_at`), and all ranks update it
        // by instructions as long as `inside` lives. The caller guarantees the other elements (`# Safety`).
        unsafe { atomic::exchange(is_wide, at, compare, new, result) };
        drop(inside);
        count_access(Counter::ACCUMULATES);
        true
    }

    /// Does the same as [`swap_short`](Self::swap_short) if the target may use locks.
    ///
    /// # Safety
    ///
    /// - The conditions of [`swap_short`](Self::swap_short).
    #[doc(hidden)]
    #[cold]
    pub unsafe fn swap_in_turn(
        &self,
        is_wide: bool,
        (new, compare): (*const u8, *const u8),
        result: *mut u8,
        target: usize,
        displacement: i64,
    ) -> bool {
        let size = if is_wide { 8 } else { 4 };
        let Some(at) = self.elements_at(target, displacement, size, 1) else { return false };
        // SAFETY: the caller guarantees the elements. This thread has its turn when the function runs (`in_turn`).
        let work = || unsafe { atomic::exchange(is_wide, at, compare, new, result) };
        self.in_turn(target, displacement, &work)
    }

    /// Returns how this rank updates elements at a target.
    #[inline]
    pub(in crate::rma) fn site(&self, target: usize) -> Site<'_> {
        let patience = Patience::new(&self.comm, target);
        Site { words: &self.words, rank: self.rank, patience, target }
    }

    /// Changes a target back to instructions, if this rank's last updates there were updates of single elements under
    /// locks. The end of each epoch of some targets calls this function.
    #[inline]
    pub(in crate::rma) fn prefer_instructions(&self, target: usize) {
        if self.words.notes.has_singles.load(Ordering::Relaxed) {
            mechanism::end_singles(&self.words, target);
        }
    }

    /// Does the work of [`prefer_instructions`](Self::prefer_instructions) for all targets.
    #[inline]
    pub(in crate::rma) fn prefer_instructions_everywhere(&self) {
        if self.words.notes.has_singles.load(Ordering::Relaxed) {
            self.words.notes.has_singles.store(false, Ordering::Relaxed);
            (0..self.size()).for_each(|target| mechanism::end_singles(&self.words, target));
        }
    }
}
