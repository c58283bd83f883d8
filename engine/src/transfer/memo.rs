//! A thread's memory of its recent transfers: how their two sides fit, and their kernels.
//!
//! `mod.rs` calls [`of`] for every copy between two layouts with gaps. [`of`] asks `interpreted.rs`
//! and `nest.rs` once per pair of plans and counts.
//!
//! The memory is per thread. A call of MPI passes two types and no third object that could hold the
//! fit. A field of a plan would need a lock, or could never drop old fits. Here, a lookup is a few
//! comparisons without an atomic operation, and a new fit replaces the least recently used one. The
//! compiler's cache belongs to the process: two threads that copy one transfer share its code.

use super::compiled::Compiled;
use super::interpreted::Interpreted;
use super::nest::{CALL, Nest};
use super::transpose::Transposed;
use super::{Side, staged};
use crate::plan::{Plan, PlanName, Strategy};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

/// Fits that a thread remembers, about 2 KiB each. A fit keeps its kernel alive. It also keeps the
/// allocations of its plans' outermost structs, but not the contents of the plans.
const REMEMBERED: usize = 16;

/// How two sides fit: the executors that can copy from one side to the other.
pub(super) struct Fit {
    names: [PlanName; 2],
    counts: [u64; 2],
    /// The fit for the interpreter.
    blocks: Option<Interpreted>,
    /// The fit for a kernel.
    compiled: Option<Compiled>,
}

impl Fit {
    fn new(src: &Side<'_, *const u8>, dst: &Side<'_, *mut u8>) -> Self {
        let nest = Nest::of(src, dst);
        let forced = |strategy| {
            [src.plan, dst.plan].iter().any(|plan| plan.settings().strategy == Some(strategy))
        };
        let compiles = src.plan.settings().compiler.is_some() && !forced(Strategy::Leaf);
        // If the settings force kernels, kernels execute all copies.
        let crosses = nest.as_ref().filter(|_| !(compiles && forced(Strategy::Kernel)));
        let transposed = crosses.and_then(|nest| Transposed::of(nest, src.plan.isa()));
        let compiled = match (nest, transposed) {
            (Some(nest), transposed) if compiles || transposed.is_some() => {
                Some(Compiled::new(nest, transposed))
            }
            _ => None,
        };
        // If each side has kernels and the transfer will have none, the sides' kernels copy short
        // rows faster.
        let kernels = |plan: &Plan| {
            let settings = plan.settings();
            settings.compiler.is_some() && settings.strategy != Some(Strategy::Interpreter)
        };
        let short = compiled.is_none() && kernels(src.plan) && kernels(dst.plan);
        let blocks = Interpreted::of(src, dst).filter(|blocks| !short || blocks.row_bytes() > CALL);
        let names = [src.plan.name(), dst.plan.name()];
        Self { names, counts: [src.count, dst.count], blocks, compiled }
    }

    fn is_of(&self, src: &Side<'_, *const u8>, dst: &Side<'_, *mut u8>) -> bool {
        src.plan.is(&self.names[0])
            && dst.plan.is(&self.names[1])
            && self.counts == [src.count, dst.count]
    }

    /// Copies packed bytes `range`.
    ///
    /// # Safety
    ///
    /// - [`of`] returned `self` for these two sides.
    /// - The conditions of [`copy_raw`](super::copy_raw) hold, with displacement 0 at `memory`.
    pub(super) unsafe fn copy(
        &self,
        src: &Side<'_, *const u8>,
        dst: &Side<'_, *mut u8>,
        range: Range<u64>,
    ) {
        let blocks = self.blocks.as_ref();
        // SAFETY: the caller guarantees the range on both sides, and that `self`, so also
        // `compiled` and `blocks`, was made for these plans and counts.
        unsafe {
            if let Some(compiled) = &self.compiled
                && let Some(callee) = compiled.callee(src.plan.settings(), range.end - range.start)
            {
                compiled.copy(callee, blocks, src, dst, range);
            } else if let Some(blocks) = blocks {
                blocks.copy(src, dst, range);
            } else {
                staged::copy(src, dst, range);
            }
        }
    }
}

/// The remembered fits, most recently used first.
struct Memo([Option<Rc<Fit>>; REMEMBERED]);

thread_local! {
    static RECENT: RefCell<Memo> = const { RefCell::new(Memo([const { None }; REMEMBERED])) };
}

/// Returns the fit of two sides, remembered or computed now.
#[inline]
pub(super) fn of(src: &Side<'_, *const u8>, dst: &Side<'_, *mut u8>) -> Rc<Fit> {
    let known = RECENT.try_with(|recent| {
        let mut recent = recent.borrow_mut();
        let index = recent.0.iter().position(|fit| {
            // The memo fills from the front: all places after an empty place are empty.
            fit.as_ref().is_none_or(|fit| fit.is_of(src, dst))
        })?;
        let fit = recent.0[index].clone()?;
        recent.0[..=index].rotate_right(1);
        Some(fit)
    });
    // A thread that has run its thread-local destructors remembers nothing.
    known.ok().flatten().unwrap_or_else(|| remember(Rc::new(Fit::new(src, dst))))
}

#[cold]
fn remember(fit: Rc<Fit>) -> Rc<Fit> {
    let forgotten = RECENT.try_with(|recent| {
        let mut recent = recent.borrow_mut();
        recent.0.rotate_right(1);
        recent.0[0].replace(fit.clone())
    });
    // Drop after the borrow ends: the drop of a kernel's owner may run any code.
    drop(forgotten);
    fit
}
