//! Calls the kernel of a transfer: a range of leaves as boxes of iterations of the common nest.
//!
//! `nest.rs` builds the common nest that this file executes. Usually a call takes whole iterations
//! of the row: as many as lie on the rows of both sides. If the sides meet in every level, one call
//! takes all of them. Inside an iteration of the row, at the ends of a range, a call takes the
//! largest box that fits, as `exec/` does for one layout. `staged.rs` copies broken leaves.

use super::interpreted::Interpreted;
use super::levels::Walk;
use super::nest::Nest;
use super::transpose::Transposed;
use super::{Side, staged};
use crate::exec::stats::{self, Executor};
use crate::exec::{pack_raw, unpack_raw};
use crate::kernel::{Entry, Kernel, TransferShape};
use crate::plan::Settings;
use std::cell::{Cell, OnceCell};
use std::ops::Range;

/// A common nest and its executor: a better order of visits (`transpose.rs`), or a kernel once the
/// compiler has made one.
pub(super) struct Compiled {
    nest: Nest,
    transposed: Option<Transposed>,
    /// Empty: the compiler was not asked yet. `None`: the compiler refused.
    kernel: OnceCell<Option<Kernel>>,
    moved: Cell<u64>,
    /// Set when `Settings::verify` finds a wrong result. Then the executor is not used again.
    distrusted: Cell<bool>,
}

impl Compiled {
    pub(super) fn new(nest: Nest, transposed: Option<Transposed>) -> Self {
        let (kernel, moved, distrusted) = (OnceCell::new(), Cell::new(0), Cell::new(false));
        Self { nest, transposed, kernel, moved, distrusted }
    }

    /// Returns the executor for a call that moves `bytes` packed bytes, or `None` if there is none
    /// yet.
    #[inline]
    pub(super) fn callee(&self, settings: &Settings, bytes: u64) -> Option<Callee<'_>> {
        if let Some(transposed) = &self.transposed {
            return (!self.distrusted.get()).then_some(Callee::Transposed(transposed));
        }
        let kernel = match self.kernel.get() {
            Some(kernel) => kernel.as_ref().filter(|_| !self.distrusted.get()),
            None => self.request(settings, bytes),
        };
        kernel.map(|kernel| Callee::Kernel(kernel.entry()))
    }

    /// Asks the compiler once the threshold is reached.
    #[cold]
    fn request(&self, settings: &Settings, bytes: u64) -> Option<&Kernel> {
        let compiler = settings.compiler.as_ref()?;
        let moved = self.moved.get().saturating_add(bytes);
        self.moved.set(moved);
        let threshold = compiler.threshold();
        if threshold == u64::MAX || moved < threshold {
            return None;
        }
        self.kernel.get_or_init(|| compiler.transfer_kernel(&self.nest.shape)).as_ref()
    }

    /// Copies packed bytes `range`.
    ///
    /// # Safety
    ///
    /// - `self` was made for these two plans and counts, and `callee` comes from `self`.
    /// - The conditions of [`copy_raw`](super::copy_raw) hold, with displacement 0 at `memory`.
    pub(super) unsafe fn copy(
        &self,
        callee: Callee<'_>,
        blocks: Option<&Interpreted>,
        src: &Side<'_, *const u8>,
        dst: &Side<'_, *mut u8>,
        range: Range<u64>,
    ) {
        let nest = &self.nest;
        let verify = src.plan.settings().verify || dst.plan.settings().verify;
        if nest.whole == Some(range.end) && range.start == 0 && !verify {
            // The usual case: one call, with the parameter block as it was built.
            let a = src.memory.wrapping_offset(nest.from.base as isize).cast_mut();
            let b = dst.memory.wrapping_offset(nest.to.base as isize);
            // SAFETY: `nest.words` describes the whole transfer (`nest.whole`), and `a` and `b` are
            // the bases of its two sides, which the caller guarantees.
            unsafe { callee.call(&nest.words, a, b) };
            return stats::add(callee.executor(), range.end);
        }
        let leaf = nest.leaf;
        let (first, last) = (range.start.div_ceil(leaf), range.end / leaf);
        // SAFETY: the calls copy the parts of `range` before, in and after the whole leaves, in
        // packed order, which is the destination's typemap order.
        unsafe {
            if first >= last {
                return interpret(blocks, src, dst, range);
            }
            if range.start < first * leaf {
                interpret(blocks, src, dst, range.start..first * leaf);
            }
            if verify {
                self.verified(callee, blocks, src, dst, first..last);
            } else {
                self.leaves(callee, src, dst, first..last);
            }
            if last * leaf < range.end {
                interpret(blocks, src, dst, last * leaf..range.end);
            }
        }
    }

    /// Does what [`leaves`](Self::leaves) does and compares the executor's result with the
    /// interpreter's. The interpreter's result stays in the destination. Before the executor runs,
    /// the bytes that it must write hold the complement of their values, so that a byte it leaves
    /// out is detected.
    ///
    /// # Safety
    ///
    /// The conditions of [`copy`](Self::copy) hold, for the bytes of `leaves`.
    #[cold]
    unsafe fn verified(
        &self,
        callee: Callee<'_>,
        blocks: Option<&Interpreted>,
        src: &Side<'_, *const u8>,
        dst: &Side<'_, *mut u8>,
        leaves: Range<u64>,
    ) {
        let range = leaves.start * self.nest.leaf..leaves.end * self.nest.leaf;
        let mut answer = vec![0u8; (range.end - range.start) as usize];
        let mut expected = answer.clone();
        let read = dst.memory.cast_const();
        // SAFETY: every call moves packed bytes of `range`, which the caller guarantees; the
        // vectors have the range's length. Reading the destination back is allowed under `verify`
        // (second condition of `copy_raw`).
        unsafe {
            pack_raw(src.plan, src.count, src.memory, range.clone(), answer.as_mut_ptr());
            answer.iter_mut().for_each(|byte| *byte = !*byte);
            unpack_raw(dst.plan, dst.count, dst.memory, range.clone(), answer.as_ptr());
            self.leaves(callee, src, dst, leaves);
            pack_raw(dst.plan, dst.count, read, range.clone(), answer.as_mut_ptr());
            interpret(blocks, src, dst, range.clone());
            pack_raw(dst.plan, dst.count, read, range, expected.as_mut_ptr());
        }
        if answer != expected {
            self.distrusted.set(true);
            stats::disagreement();
        }
    }

    /// Copies the leaves with the numbers `leaves`. The range is not empty.
    ///
    /// # Safety
    ///
    /// The conditions of [`copy`](Self::copy) hold, for the bytes of `leaves`.
    unsafe fn leaves(
        &self,
        callee: Callee<'_>,
        src: &Side<'_, *const u8>,
        dst: &Side<'_, *mut u8>,
        leaves: Range<u64>,
    ) {
        let (source, target) = (src.memory.cast_mut(), dst.memory);
        let inside = self.nest.below[0];
        let mut leaf = leaves.start;
        while leaf < leaves.end {
            let left = leaves.end - leaf;
            // SAFETY: the sides borrow the plans, and the leaves from `leaf` to `leaves.end` are in
            // the range that the caller guarantees.
            leaf += unsafe {
                if left >= inside && leaf.is_multiple_of(inside) {
                    self.rows(callee, source, target, leaf / inside, left / inside);
                    left - left % inside
                } else {
                    self.part(callee, source, target, leaf, left)
                }
            };
        }
        stats::add(callee.executor(), (leaves.end - leaves.start) * self.nest.leaf);
    }

    /// Copies `count` iterations of the row, beginning with number `first`.
    ///
    /// # Safety
    ///
    /// The conditions of [`leaves`](Self::leaves) hold, for the leaves of these iterations.
    /// Displacement 0 of the sides is at `source` and `target`.
    unsafe fn rows(
        &self,
        callee: Callee<'_>,
        source: *mut u8,
        target: *mut u8,
        first: u64,
        count: u64,
    ) {
        let nest = &self.nest;
        let mut words = nest.words;
        let mut left = count;
        // SAFETY: the caller's sides borrow both plans during this call, so they outlive the walks.
        let (mut from, mut to) =
            unsafe { (Walk::at(&nest.from, source, first), Walk::at(&nest.to, target, first)) };
        loop {
            let count = left.min(from.left()).min(to.left());
            words[..5].copy_from_slice(&nest.words[..5]);
            words[0] = count;
            let a = self.enter(&mut words, 0, 0, from.inner().1, from.row);
            let b = self.enter(&mut words, 0, 1, to.inner().1, to.row);
            // SAFETY: the parameters describe `count` iterations from the walks' positions; both
            // rows have that many left.
            unsafe { callee.call(&words, a, b) };
            left -= count;
            if left == 0 {
                return;
            }
            from.advance(count);
            to.advance(count);
        }
    }

    /// Copies the largest box of leaves that begins at number `leaf`, lies inside one iteration of
    /// the row, and has at most `left` leaves. Returns the number of copied leaves.
    ///
    /// # Safety
    ///
    /// The conditions of [`rows`](Self::rows) hold, for these leaves.
    unsafe fn part(
        &self,
        callee: Callee<'_>,
        source: *mut u8,
        target: *mut u8,
        leaf: u64,
        left: u64,
    ) -> u64 {
        let nest = &self.nest;
        let (row, mut rest) = (leaf / nest.below[0], leaf % nest.below[0]);
        let left = left.min(nest.below[0] - rest);
        // Find the outermost level of which a whole iteration begins here and fits. The innermost
        // level always qualifies: its iterations are single leaves.
        let level = (1..nest.depth())
            .find(|&l| rest.is_multiple_of(nest.below[l]) && nest.below[l] <= left)
            .unwrap_or(nest.depth() - 1);
        let mut words = nest.words;
        words[0] = 1;
        // SAFETY: the caller's sides borrow both plans during this call, and the walks end with it.
        let (from, to) =
            unsafe { (Walk::at(&nest.from, source, row), Walk::at(&nest.to, target, row)) };
        let mut a = self.enter(&mut words, 0, 0, from.inner().1, from.row);
        let mut b = self.enter(&mut words, 0, 1, to.inner().1, to.row);
        for l in 1..=level {
            let index = rest / nest.below[l];
            rest %= nest.below[l];
            a = self.enter(&mut words, l, 0, index, a);
            b = self.enter(&mut words, l, 1, index, b);
            let whole = (words[5 * l] - index).min(left / nest.below[l]);
            words[5 * l] = if l < level { 1 } else { whole };
        }
        // SAFETY: the parameters describe leaves from `leaf` on, at most `left` of them, and no
        // level has more iterations than are left in it.
        unsafe { callee.call(&words, a, b) };
        words[5 * level] * nest.below[level]
    }

    /// Enters iteration `index` of level `l` on one side: returns the side's base after the step,
    /// or advances its entries in `words`.
    #[inline]
    fn enter(
        &self,
        words: &mut [u64; TransferShape::WORDS],
        l: usize,
        side: usize,
        index: u64,
        base: *mut u8,
    ) -> *mut u8 {
        let (bytes, entries) = self.nest.shift(l, side, index);
        let word = &mut words[5 * l + 1 + 2 * side];
        *word = word.wrapping_add(entries);
        base.wrapping_offset(bytes as isize)
    }
}

/// An executor of boxes of the common nest.
#[derive(Clone, Copy)]
pub(super) enum Callee<'a> {
    /// The kernel of the nest's shape. The `Compiled` that returned it keeps its code alive.
    Kernel(Entry),
    Transposed(&'a Transposed),
}

impl Callee<'_> {
    /// Copies the leaves that the parameters `words` describe.
    ///
    /// # Safety
    ///
    /// The conditions of [`Entry`] hold, for the shape of the nest that this executor belongs to.
    #[inline]
    unsafe fn call(self, words: &[u64; TransferShape::WORDS], source: *mut u8, target: *mut u8) {
        // SAFETY: the caller guarantees the parameters for the nest's shape; both executors were
        // made for that nest.
        unsafe {
            match self {
                Self::Kernel(entry) => entry(words.as_ptr(), source, target),
                Self::Transposed(transposed) => transposed.run(words, source, target),
            }
        }
    }

    fn executor(self) -> Executor {
        match self {
            Self::Kernel(_) => Executor::FusedKernel,
            Self::Transposed(_) => Executor::Fused,
        }
    }
}

/// Copies `range` without the executor of the nest.
///
/// # Safety
///
/// The conditions of [`Compiled::copy`] hold; `blocks` belongs to the same transfer.
unsafe fn interpret(
    blocks: Option<&Interpreted>,
    src: &Side<'_, *const u8>,
    dst: &Side<'_, *mut u8>,
    range: Range<u64>,
) {
    // SAFETY: the caller guarantees the range on both sides, and that `blocks` was made for these
    // plans and counts.
    unsafe {
        match blocks {
            Some(blocks) => blocks.copy(src, dst, range),
            None => staged::copy(src, dst, range),
        }
    }
}
