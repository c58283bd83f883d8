//! Executes the common nest of a transfer: the loops that both layouts have in common. The innermost
//! body of these loops copies a *leaf*, which is a block or a few short runs. A range of leaves is
//! divided into boxes (a box is a range of iterations at every level), and one call of the nest's
//! kernel copies each box.
//!
//! `nest.rs` builds the common nest. Its outermost level is called the *row*; the two sides may have rows of
//! different lengths. Usually a call executes whole iterations of the row, until the row of one of the two sides
//! ends. If all levels are common to both sides, one call executes the whole copy. If a range begins or ends
//! inside an iteration of the row, a call executes the largest box that fits, as `exec/` does for one layout. If
//! a leaf lies only partly in the range, the interpreter (`interpreted.rs`) or `staged.rs` copies that part of
//! the leaf.

use super::interpreted::Interpreted;
use super::levels::Walk;
use super::nest::Nest;
use super::staged;
use super::transpose::Transposed;
use crate::exec::stats::{self, Executor};
use crate::exec::{Elements, pack_part, unpack_part};
use crate::kernel::{COMPILATION, Entry, Kernel, TransferShape};
use crate::plan::{Plan, Settings};
use crate::reserve;
use std::cell::{Cell, OnceCell};
use std::ops::Range;

/// A common nest and its executor. The executor is a [`Transposed`], which visits memory in a better
/// order, if there is one. Otherwise it is a kernel, once the compiler has made it.
pub(super) struct Compiled {
    nest: Nest,
    transposed: Option<Transposed>,
    /// The kernel. The cell is empty until the compiler has been asked for the kernel, and contains
    /// `None` if the compiler refused.
    kernel: OnceCell<Option<Kernel>>,
    moved: Cell<u64>,
    /// Set when a comparison under `Settings::verify` has found a wrong result. After that, the
    /// executor is never called again.
    distrusted: Cell<bool>,
}

impl Compiled {
    pub(super) fn new(nest: Nest, transposed: Option<Transposed>) -> Self {
        let (kernel, moved, distrusted) = (OnceCell::new(), Cell::new(0), Cell::new(false));
        Self { nest, transposed, kernel, moved, distrusted }
    }

    /// Returns the executor for a call that moves `bytes` packed bytes. Returns `None` if the nest has
    /// no executor (there is no compiler, its threshold is not reached, or it refused the nest), or
    /// if verification has found that the executor gives wrong results.
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

    /// Counts the `bytes` of this call. Asks the compiler for the kernel once the count has reached
    /// the compiler's threshold, unless memory is short.
    #[cold]
    fn request(&self, settings: &Settings, bytes: u64) -> Option<&Kernel> {
        let compiler = settings.compiler.as_ref()?;
        let moved = self.moved.get().saturating_add(bytes);
        self.moved.set(moved);
        let threshold = compiler.threshold();
        if threshold == u64::MAX || moved < threshold || !reserve::covers(COMPILATION) {
            return None;
        }
        self.kernel.get_or_init(|| compiler.transfer_kernel(&self.nest.shape)).as_ref()
    }

    /// Copies packed bytes `range`: whole leaves with `callee`, and the parts of leaves at the ends of
    /// the range with `blocks` or `staged.rs`.
    ///
    /// # Safety
    ///
    /// - `self` was made for these two plans and counts, and `callee` comes from `self`.
    /// - The conditions of [`copy_raw`](super::copy_raw) hold, and displacement 0 of each side is
    ///   at its `origin`.
    pub(super) unsafe fn copy(
        &self,
        callee: Callee<'_>,
        blocks: Option<&Interpreted>,
        src: &Elements<&Plan>,
        dst: &Elements<&Plan>,
        range: Range<u64>,
    ) {
        let nest = &self.nest;
        let verify = src.plan.settings().verify || dst.plan.settings().verify;
        if nest.whole == Some(range.end) && range.start == 0 && !verify {
            // In the usual case, one call of the executor copies everything, and the parameter block
            // need not be copied.
            let a = src.origin.wrapping_offset(nest.from.base as isize);
            let b = dst.origin.wrapping_offset(nest.to.base as isize);
            // SAFETY: `nest.words` describes the whole transfer, because `nest.whole` is set. `a`
            // and `b` are the bases of the two sides, and the caller guarantees that both sides are
            // valid.
            unsafe { callee.call(&nest.words, a, b) };
            return stats::add(callee.executor(), range.end);
        }
        let leaf = nest.leaf;
        let (first, last) = (range.start.div_ceil(leaf), range.end / leaf);
        // SAFETY: the calls copy three parts of `range`: the bytes before the whole leaves, the
        // whole leaves, and the bytes after them. They do so in packed order, which is the
        // destination's typemap order.
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

    /// Copies leaves like [`leaves`](Self::leaves), and compares the executor's result with that of
    /// the interpreter. The destination keeps the interpreter's result. Before the executor runs,
    /// the bytes that it must write are set to the complement of their new values. So the
    /// comparison detects a byte that the executor does not write.
    ///
    /// # Safety
    ///
    /// The conditions of [`copy`](Self::copy) hold for the bytes of `leaves`.
    #[cold]
    unsafe fn verified(
        &self,
        callee: Callee<'_>,
        blocks: Option<&Interpreted>,
        src: &Elements<&Plan>,
        dst: &Elements<&Plan>,
        leaves: Range<u64>,
    ) {
        let range = leaves.start * self.nest.leaf..leaves.end * self.nest.leaf;
        let mut answer = vec![0u8; (range.end - range.start) as usize];
        let mut expected = answer.clone();
        let read = dst.origin.cast_const();
        // SAFETY: every call moves the packed bytes `range`, the caller guarantees that these are
        // valid, and both vectors have the length of the range. `copy_raw` requires that the
        // destination is readable under `Settings::verify`.
        unsafe {
            pack_part(src.plan, src.count, src.origin, range.clone(), answer.as_mut_ptr());
            answer.iter_mut().for_each(|byte| *byte = !*byte);
            unpack_part(dst.plan, dst.count, dst.origin, range.clone(), answer.as_ptr());
            self.leaves(callee, src, dst, leaves);
            pack_part(dst.plan, dst.count, read, range.clone(), answer.as_mut_ptr());
            interpret(blocks, src, dst, range.clone());
            pack_part(dst.plan, dst.count, read, range, expected.as_mut_ptr());
        }
        if answer != expected {
            self.distrusted.set(true);
            stats::disagreement();
        }
    }

    /// Copies the leaves whose numbers are in `leaves`. The range is not empty.
    ///
    /// # Safety
    ///
    /// The conditions of [`copy`](Self::copy) hold for the bytes of `leaves`.
    unsafe fn leaves(
        &self,
        callee: Callee<'_>,
        src: &Elements<&Plan>,
        dst: &Elements<&Plan>,
        leaves: Range<u64>,
    ) {
        let (source, target) = (src.origin, dst.origin);
        let inside = self.nest.below[0];
        let mut leaf = leaves.start;
        while leaf < leaves.end {
            let left = leaves.end - leaf;
            // SAFETY: the caller's sides borrow both plans during this call. The leaves from `leaf`
            // to `leaves.end` are in the range, and the caller guarantees that the range is valid.
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

    /// Copies `count` iterations of the row. `first` is the index of the first one, counted from the
    /// start of the transfer.
    ///
    /// # Safety
    ///
    /// The conditions of [`leaves`](Self::leaves) hold for the leaves of these iterations.
    /// Displacement 0 of the source is at `source`, and that of the destination is at `target`.
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
        // SAFETY: the caller's sides borrow both plans during this call, so the plans outlive the
        // walks.
        let (mut from, mut to) =
            unsafe { (Walk::at(&nest.from, source, first), Walk::at(&nest.to, target, first)) };
        loop {
            let count = left.min(from.left()).min(to.left());
            words[..5].copy_from_slice(&nest.words[..5]);
            words[0] = count;
            let a = self.enter(&mut words, 0, 0, from.inner().1, from.row);
            let b = self.enter(&mut words, 0, 1, to.inner().1, to.row);
            // SAFETY: `words`, `a` and `b` describe `count` iterations, beginning at the positions of
            // the walks. The current rows of both walks have at least that many iterations left.
            unsafe { callee.call(&words, a, b) };
            left -= count;
            if left == 0 {
                return;
            }
            from.advance(count);
            to.advance(count);
        }
    }

    /// Copies the largest box of leaves that begins at leaf number `leaf`, lies inside one
    /// iteration of the row, and has at most `left` leaves. Returns the number of leaves that it
    /// copied.
    ///
    /// # Safety
    ///
    /// The conditions of [`rows`](Self::rows) hold for these leaves.
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
        // Find the outermost level that has a whole iteration which begins at `leaf` and has at
        // most `left` leaves. The innermost level always has one, because each of its iterations is
        // a single leaf.
        let level = (1..nest.depth())
            .find(|&l| rest.is_multiple_of(nest.below[l]) && nest.below[l] <= left)
            .unwrap_or(nest.depth() - 1);
        let mut words = nest.words;
        words[0] = 1;
        // SAFETY: the caller's sides borrow both plans during this call, and both walks end before
        // this call returns.
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
        // SAFETY: `words`, `a` and `b` describe at most `left` leaves, beginning with `leaf`. In
        // `words`, no level has more iterations than it has left from `leaf` on.
        unsafe { callee.call(&words, a, b) };
        words[5 * level] * nest.below[level]
    }

    /// Moves one side to iteration `index` of level `l`. For a loop, returns the new base of the
    /// side. For a table, returns `base` and advances the address of the entries in `words`.
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

/// An executor of the common nest, which copies all leaves of a box in one call.
#[derive(Clone, Copy)]
pub(super) enum Callee<'a> {
    /// The kernel of the nest's shape. The `Compiled` that returned this value keeps the kernel's
    /// code alive.
    Kernel(Entry),
    Transposed(&'a Transposed),
}

impl Callee<'_> {
    /// Copies the leaves that the parameters `words` describe.
    ///
    /// # Safety
    ///
    /// The conditions of [`Entry`] hold for the shape of the nest to which this executor belongs.
    #[inline]
    unsafe fn call(self, words: &[u64; TransferShape::WORDS], source: *mut u8, target: *mut u8) {
        // SAFETY: the caller guarantees that the parameters meet the conditions of the nest's
        // shape. Both executors were made for that nest.
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

/// Copies packed bytes `range` without the executor of the nest.
///
/// # Safety
///
/// The conditions of [`Compiled::copy`] hold, and `blocks` belongs to the same transfer.
unsafe fn interpret(
    blocks: Option<&Interpreted>,
    src: &Elements<&Plan>,
    dst: &Elements<&Plan>,
    range: Range<u64>,
) {
    // SAFETY: the caller guarantees that the range is valid on both sides. `blocks` was made for
    // these plans and counts.
    unsafe {
        match blocks {
            Some(blocks) => blocks.copy(src, dst, range),
            None => staged::copy(src, dst, range),
        }
    }
}
