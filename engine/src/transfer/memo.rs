//! Remembers the recent transfers of a thread: how the two sides of each transfer fit together, and
//! the kernel of the transfer.
//!
//! `mod.rs` calls [`of`] for a copy between two layouts with gaps, unless the body of one
//! of the two programs is a ragged list. For a new pair of plans and counts, [`of`] calls `nest.rs`,
//! `transpose.rs` and `interpreted.rs` and remembers the result.
//!
//! Each thread has a memo of its own. An MPI call passes two types, but no third object that could
//! store how they fit together. If a plan stored how it fits together with other plans, the plan would
//! need a lock, or could never drop what it stored. With a memo per thread, a lookup is a few
//! comparisons without atomic operations, and a new entry replaces the least recently used one. The
//! compiler's cache belongs to the process, so two threads that execute the same transfer share its
//! code.

use super::compiled::Compiled;
use super::interpreted::Interpreted;
use super::nest::{CALL, Nest};
use super::staged;
use super::transpose::Transposed;
use crate::exec::Elements;
use crate::plan::{Plan, PlanName, Strategy};
use crate::reserve;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

/// Number of fits (see [`Fit`]) that a thread remembers. Each fit takes about 2 KiB. A fit keeps its
/// kernel alive. It also keeps the memory of the plans' outermost structs allocated, but not the
/// contents of the plans.
const REMEMBERED: usize = 16;

/// How two sides fit together: the executors that can copy from one side to the other.
pub(super) struct Fit {
    names: [PlanName; 2],
    counts: [u64; 2],
    /// The interpreter's levels. `None` if the interpreter cannot execute this transfer, or if the
    /// kernels of the two plans are faster.
    blocks: Option<Interpreted>,
    /// The common nest and its executor, if there is one.
    compiled: Option<Compiled>,
}

impl Fit {
    fn new(src: &Elements<&Plan>, dst: &Elements<&Plan>) -> Self {
        let nest = Nest::of(src, dst);
        let forced = |strategy| {
            [src.plan, dst.plan].iter().any(|plan| plan.settings().strategy == Some(strategy))
        };
        let compiles = src.plan.settings().compiler.is_some() && !forced(Strategy::Leaf);
        // If the settings force kernels, a kernel must execute every copy, so do not look for a better
        // order in which to visit the blocks.
        let crosses = nest.as_ref().filter(|_| !(compiles && forced(Strategy::Kernel)));
        let transposed = crosses.and_then(|nest| Transposed::of(nest, src.plan.isa()));
        let compiled = match (nest, transposed) {
            (Some(nest), transposed) if compiles || transposed.is_some() => {
                Some(Compiled::new(nest, transposed))
            }
            _ => None,
        };
        // If both plans have kernels but the transfer will have none, the kernels of the two plans copy
        // short rows through a buffer faster than the interpreter copies them directly.
        let kernels = |plan: &Plan| {
            let settings = plan.settings();
            settings.compiler.is_some() && settings.strategy != Some(Strategy::Interpreter)
        };
        let short = compiled.is_none() && kernels(src.plan) && kernels(dst.plan);
        let blocks = Interpreted::of(src, dst).filter(|blocks| !short || blocks.row_bytes() > CALL);
        let names = [src.plan.name(), dst.plan.name()];
        Self { names, counts: [src.count, dst.count], blocks, compiled }
    }

    fn is_of(&self, src: &Elements<&Plan>, dst: &Elements<&Plan>) -> bool {
        src.plan.is(&self.names[0])
            && dst.plan.is(&self.names[1])
            && self.counts == [src.count, dst.count]
    }

    /// Copies packed bytes `range`.
    ///
    /// # Safety
    ///
    /// - [`of`] returned `self` for these two sides.
    /// - The conditions of [`copy_raw`](super::copy_raw) hold; displacement 0 of each side is at
    ///   its `origin`.
    pub(super) unsafe fn copy(
        &self,
        src: &Elements<&Plan>,
        dst: &Elements<&Plan>,
        range: Range<u64>,
    ) {
        let blocks = self.blocks.as_ref();
        // SAFETY: the caller guarantees that the range is valid on both sides. `self`, and with it
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

impl Fit {
    /// Copies to packed bytes `range` of the destination. Byte `i` of the destination comes from byte
    /// `i + shift` (modulo 2^64) of the source. No kernel does this: the loops of a common nest begin
    /// at the same packed byte on both sides.
    ///
    /// # Safety
    ///
    /// - [`of`] returned `self` for these two sides.
    /// - The conditions of [`copy_apart_raw`](super::copy_apart_raw) hold; displacement 0 of each side
    ///   is at its `origin`.
    pub(super) unsafe fn copy_shifted(
        &self,
        src: &Elements<&Plan>,
        dst: &Elements<&Plan>,
        range: Range<u64>,
        shift: u64,
    ) {
        // SAFETY: the caller guarantees that the range, and the bytes of the source that belong to it,
        // are valid. `blocks` was made for these plans and counts.
        unsafe {
            match &self.blocks {
                Some(blocks) => blocks.copy_shifted(src, dst, range, shift),
                None => staged::copy_shifted(src, dst, range, shift),
            }
        }
    }
}

/// The remembered fits, most recently used first.
struct Memo([Option<Rc<Fit>>; REMEMBERED]);

thread_local! {
    static RECENT: RefCell<Memo> = const { RefCell::new(Memo([const { None }; REMEMBERED])) };
    /// Whether this thread has used [`RECENT`], so that its destructor is registered.
    static READY: Cell<bool> = const { Cell::new(false) };
}

/// Makes the calling thread ready to remember fits, so that its first copy registers no destructor.
pub fn prepare_thread() {
    // A thread that ends remembers nothing any more.
    READY.set(RECENT.try_with(|_| ()).is_ok());
}

/// Returns the fit of two sides. If the thread does not remember the fit, the function computes and
/// stores it.
#[inline]
pub(super) fn of(src: &Elements<&Plan>, dst: &Elements<&Plan>) -> Rc<Fit> {
    if !READY.get() {
        if !reserve::may_register() {
            return Rc::new(Fit::new(src, dst));
        }
        prepare_thread();
    }
    let known = RECENT.try_with(|recent| {
        let mut recent = recent.borrow_mut();
        let index = recent.0.iter().position(|fit| {
            // Stop at an empty entry, because the memo fills from the front and all entries after an
            // empty one are empty.
            fit.as_ref().is_none_or(|fit| fit.is_of(src, dst))
        })?;
        let fit = recent.0[index].clone()?;
        recent.0[..=index].rotate_right(1);
        Some(fit)
    });
    // While a thread ends, its memo may already be destroyed. Then the fit is computed for this
    // call only.
    known.ok().flatten().unwrap_or_else(|| remember(Rc::new(Fit::new(src, dst))))
}

#[cold]
fn remember(fit: Rc<Fit>) -> Rc<Fit> {
    let forgotten = RECENT.try_with(|recent| {
        let mut recent = recent.borrow_mut();
        recent.0.rotate_right(1);
        recent.0[0].replace(fit.clone())
    });
    // Drop the old fit here, after the borrow of the memo has ended, because dropping a kernel may run
    // code of the compiler.
    drop(forgotten);
    fit
}
