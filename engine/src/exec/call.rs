//! Calls the executor of a nest once: a compiled kernel, a leaf kernel, or the interpreter.
//!
//! The other files of this folder call [`call`]. They pass the nest's parameter block, whose format
//! `leaf/src/kernel/` defines.

use super::direction;
use super::stats::{self, Executor};
use super::verified::call_verified;
use crate::kernel::Kernel;
use crate::plan::{NestPlan, Plan, Strategy, contest};
use typepack_leaf::Routine;
use typepack_leaf::kernel::interpreter;

/// Executes a nest with the given parameters. Calls the compiled kernel if the nest has one that is
/// wanted for `bytes` bytes, otherwise the leaf kernel if the nest has one, otherwise the interpreter.
/// Under `Settings::verify`, the interpreter also checks the result of a kernel.
///
/// # Safety
///
/// - `words`, `mem` and `packed` meet the conditions of [`Entry`](crate::kernel::Entry), for the
///   shape of `planned` in this direction.
/// - Under `Settings::verify`, the memory that an unpack writes is also valid for reads.
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
    // SAFETY: the caller guarantees the conditions of this function, and both functions have the same conditions.
    unsafe {
        if bytes < contest::LEAST {
            by_model::<PACK>(plan, planned, words, mem, packed, bytes);
        } else {
            long::<PACK>(plan, planned, words, mem, packed, bytes);
        }
    }
}

/// Executes a nest in a long call. If there are a leaf kernel and a compiled kernel, measurements decide between them.
/// This function is not inlined, so that it does not make short calls slower.
///
/// # Safety
///
/// The conditions of [`call`] hold.
#[inline(never)]
unsafe fn long<const PACK: bool>(
    plan: &Plan,
    planned: &NestPlan,
    words: &[u64],
    mem: *mut u8,
    packed: *mut u8,
    bytes: u64,
) {
    let settings = plan.settings();
    let selected = planned.selected(direction(PACK), settings);
    if !settings.verify
        && let Some((kernel, contest)) = planned.rivals(selected, direction(PACK), bytes, settings)
        && let Some(routine) = &selected.routine
    {
        // SAFETY: the kernel and the routine were made for this nest and direction, and the caller guarantees that
        // `words`, `mem` and `packed` meet the nest's conditions.
        return contest.run(bytes, |way| unsafe {
            match way {
                contest::KERNEL => compiled(kernel, words, mem, packed, bytes),
                _ => leaf::<PACK>(planned, routine, words, mem, packed, bytes),
            }
        });
    }
    // SAFETY: the caller guarantees the conditions of `call`, which `by_model` has too.
    unsafe { by_model::<PACK>(plan, planned, words, mem, packed, bytes) };
}

/// Executes a nest with the executor that the cost model recommends.
///
/// # Safety
///
/// The conditions of [`call`] hold.
#[inline(always)]
unsafe fn by_model<const PACK: bool>(
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
        // SAFETY: the caller guarantees the conditions of this function, and `call_verified` gets
        // the same arguments. `kernel` and `selected` were looked up for `planned` in this
        // direction.
        return unsafe {
            call_verified::<PACK>(planned, kernel, selected, words, mem, packed, bytes);
        };
    }
    if let Some(kernel) = kernel {
        // SAFETY: the kernel implements the nest's shape in this direction, and the caller
        // guarantees that `words`, `mem` and `packed` meet the conditions of that shape.
        unsafe { compiled(kernel, words, mem, packed, bytes) };
    } else if let Some(routine) = &selected.routine {
        // SAFETY: the routine was made for this nest and direction, and the caller guarantees that
        // `words`, `mem` and `packed` meet the nest's conditions.
        unsafe { leaf::<PACK>(planned, routine, words, mem, packed, bytes) };
    } else {
        // SAFETY: `interpret` has the conditions of this function, which the caller guarantees, and
        // gets the same arguments.
        unsafe { interpret::<PACK>(planned, words, mem, packed, bytes) };
    }
}

/// Calls a compiled kernel.
///
/// # Safety
///
/// - `words`, `mem` and `packed` meet the conditions of [`Entry`](crate::kernel::Entry), for the shape of the kernel.
#[inline(always)]
unsafe fn compiled(kernel: &Kernel, words: &[u64], mem: *mut u8, packed: *mut u8, bytes: u64) {
    // SAFETY: the caller guarantees the conditions of `Entry` (condition of `# Safety`).
    unsafe { (kernel.entry())(words.as_ptr(), mem, packed) };
    stats::add(Executor::Kernel, bytes);
}

/// Calls a leaf kernel.
///
/// # Safety
///
/// - The routine was made for the nest and the direction.
/// - `words`, `mem` and `packed` meet the conditions of [`Entry`](crate::kernel::Entry), for the nest.
#[inline(always)]
unsafe fn leaf<const PACK: bool>(
    planned: &NestPlan,
    routine: &Routine,
    words: &[u64],
    mem: *mut u8,
    packed: *mut u8,
    bytes: u64,
) {
    // SAFETY: the routine was made for the nest and the direction, and `words`, `mem` and `packed` meet the nest's
    // conditions (both conditions of `# Safety`).
    unsafe { routine.run::<PACK>(&planned.nest, words, mem, packed) };
    stats::add(Executor::Leaf, bytes);
}

/// Executes a nest with the interpreter. Adds the bytes moved to the count of `Executor::Rows` if the
/// nest's strategy is `Strategy::Rows`, and otherwise to that of `Executor::Interpreter` (`stats.rs`).
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
    // for `planned.nest`.
    unsafe { interpreter::run::<PACK>(&planned.nest, words, mem, packed) };
    let rows = planned.strategy == Strategy::Rows;
    stats::add(if rows { Executor::Rows } else { Executor::Interpreter }, bytes);
}
