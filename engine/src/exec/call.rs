//! One call of the executor of a nest: a compiled kernel, a leaf kernel, or the interpreter.
//!
//! The other files of this folder call [`call`] with the parameter block of `kernel/`.

use super::direction;
use super::stats::{self, Executor};
use super::verified::call_verified;
use crate::kernel::interpreter;
use crate::plan::{NestPlan, Plan, Strategy};

/// Calls the compiled kernel of a nest, its leaf kernel, or the interpreter with the given
/// parameters.
///
/// # Safety
///
/// - `words`, `mem` and `packed` meet the conditions of [`Entry`](crate::kernel::Entry), for the
///   shape of `planned` and the direction.
/// - Under `Settings::verify`, the runs are also valid for reads when unpacking.
/// - `bytes` is the packed size of the leaves that `words` describes.
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
        // SAFETY: `call_verified` has the conditions of this function and gets its arguments;
        // `kernel` and `selected` are those of `planned` in this direction.
        return unsafe {
            call_verified::<PACK>(planned, kernel, selected, words, mem, packed, bytes);
        };
    }
    if let Some(kernel) = kernel {
        // SAFETY: the kernel implements the nest's shape in this direction, and the caller
        // guarantees the parameters for that shape.
        unsafe { (kernel.entry())(words.as_ptr(), mem, packed) };
        stats::add(Executor::Kernel, bytes);
    } else if let Some(routine) = &selected.routine {
        // SAFETY: the routine was made for this nest and direction, and the caller guarantees the
        // parameters for the nest.
        unsafe { routine.run::<PACK>(&planned.nest, words, mem, packed) };
        stats::add(Executor::Leaf, bytes);
    } else {
        // SAFETY: `interpret` needs the parameters and `bytes`, which the caller guarantees for
        // `planned`.
        unsafe { interpret::<PACK>(planned, words, mem, packed, bytes) };
    }
}

/// Executes a nest with the interpreter.
///
/// # Safety
///
/// The conditions of [`call`] hold.
unsafe fn interpret<const PACK: bool>(
    planned: &NestPlan,
    words: &[u64],
    mem: *mut u8,
    packed: *mut u8,
    bytes: u64,
) {
    // SAFETY: the caller guarantees that `words`, `mem` and `packed` meet the conditions of `Entry`
    // for this nest.
    unsafe { interpreter::run::<PACK>(&planned.nest, words, mem, packed) };
    let rows = planned.strategy == Strategy::Rows;
    stats::add(if rows { Executor::Rows } else { Executor::Interpreter }, bytes);
}
