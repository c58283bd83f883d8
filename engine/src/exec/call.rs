//! One call of whoever executes a nest: a compiled kernel, a leaf kernel, or the interpreter.
//!
//! Called by every other file of this room with the parameter block of `kernel/`.

use super::direction;
use super::stats::{self, Executor};
use super::verified::call_verified;
use crate::kernel::interpreter;
use crate::plan::{NestPlan, Plan, Strategy};

/// Calls the kernel of a nest, or the interpreter if there is none, with the given parameters.
///
/// # Safety
///
/// - `words`, `mem` and `packed` fulfil the contract of [`Entry`](crate::kernel::Entry) for the
///   shape of `planned` and the direction.
/// - `bytes` is what they make.
#[inline]
pub(super) unsafe fn call<const PACK: bool>(
    plan: &Plan,
    planned: &NestPlan,
    words: &[u64],
    mem: *mut u8,
    packed: *mut u8,
    bytes: u64,
) {
    let settings = plan.settings();
    let selected = planned.selected(direction(PACK), settings);
    let kernel = planned.kernel(selected, direction(PACK), bytes, settings);
    if settings.verify && (kernel.is_some() || selected.routine.is_some()) {
        // SAFETY: as ours.
        return unsafe {
            call_verified::<PACK>(planned, kernel, selected, words, mem, packed, bytes);
        };
    }
    if let Some(kernel) = kernel {
        // SAFETY: the kernel implements the nest's shape; the parameters are the caller's.
        unsafe { (kernel.entry())(words.as_ptr(), mem, packed) };
        stats::add(Executor::Kernel, bytes);
    } else if let Some(routine) = &selected.routine {
        // SAFETY: the routine is this nest's, in this direction; the parameters are the caller's.
        unsafe { routine.run::<PACK>(&planned.nest, words, mem, packed) };
        stats::add(Executor::Leaf, bytes);
    } else {
        // SAFETY: as ours.
        unsafe { interpret::<PACK>(planned, words, mem, packed, bytes) };
    }
}

/// Executes a nest by the interpreter.
///
/// # Safety
///
/// As for [`call`].
unsafe fn interpret<const PACK: bool>(
    planned: &NestPlan,
    words: &[u64],
    mem: *mut u8,
    packed: *mut u8,
    bytes: u64,
) {
    // SAFETY: our contract.
    unsafe { interpreter::run::<PACK>(&planned.nest, words, mem, packed) };
    let rows = planned.strategy == Strategy::Rows;
    stats::add(if rows { Executor::Rows } else { Executor::Interpreter }, bytes);
}
