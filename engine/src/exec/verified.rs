//! Compares kernels and leaf kernels with the interpreter (`Settings::verify`).
//!
//! `call.rs` calls [`call_verified`] in place of the plain call.

use super::direction;
use super::stats::{self, Executor};
use crate::kernel::Kernel;
use crate::kernel::interpreter::{self, copy};
use crate::plan::{NestPlan, Selected};

/// Does what [`call`](super::call::call) does and compares the result of the kernel or the routine
/// with the interpreter's (`Settings::verify`). The interpreter's result stays. After a
/// disagreement, the interpreter executes this nest.
///
/// Before the kernel runs, the bytes that it must write hold the complement of the right result, so
/// that a byte it leaves out is detected. This function does not check the bytes between the runs;
/// tests do.
///
/// # Safety
///
/// - The conditions of [`call`](super::call::call) hold. When unpacking, the runs are also valid
///   for reads.
/// - `kernel` and `selected` are those of `planned` in this direction.
#[cold]
#[inline(never)]
pub(super) unsafe fn call_verified<const PACK: bool>(
    planned: &NestPlan,
    kernel: Option<&Kernel>,
    selected: &Selected,
    words: &[u64],
    mem: *mut u8,
    packed: *mut u8,
    bytes: u64,
) {
    let dir = direction(PACK);
    stats::add(Executor::Interpreter, bytes);
    stats::add(if kernel.is_some() { Executor::Kernel } else { Executor::Leaf }, bytes);
    let run = |mem, packed| {
        // SAFETY: the calls below pass `mem` and a buffer of `bytes` packed bytes, which meet the
        // conditions of `Entry`; the kernel and the routine were made for this nest and direction.
        unsafe {
            match (kernel, &selected.routine) {
                (Some(kernel), _) => (kernel.entry())(words.as_ptr(), mem, packed),
                (_, Some(routine)) => routine.run::<PACK>(&planned.nest, words, mem, packed),
                _ => interpreter::run::<PACK>(&planned.nest, words, mem, packed),
            }
        }
    };
    if !planned.trusted(dir) {
        // SAFETY: the caller guarantees that `words`, `mem` and `packed` meet the conditions of
        // `Entry` for this nest.
        return unsafe { interpreter::run::<PACK>(&planned.nest, words, mem, packed) };
    }
    let mut expected = vec![0u8; bytes as usize];
    let mut answer = vec![0u8; bytes as usize];
    let invert = |from: &[u8], to: &mut [u8]| {
        for (to, from) in to.iter_mut().zip(from) {
            *to = !from;
        }
    };
    // SAFETY: the caller guarantees the parameters, which every run uses with `mem`. The buffers
    // that replace `packed` have `bytes` bytes. When unpacking, the runs are also readable (first
    // condition of `# Safety`), so the interpreter can pack what each executor wrote.
    unsafe {
        if PACK {
            interpreter::run::<true>(&planned.nest, words, mem, expected.as_mut_ptr());
            invert(&expected, &mut answer);
            run(mem, answer.as_mut_ptr());
            copy::<true>(expected.as_mut_ptr(), packed, expected.len());
        } else {
            copy::<true>(packed, expected.as_mut_ptr(), expected.len());
            invert(&expected, &mut answer);
            interpreter::run::<false>(&planned.nest, words, mem, answer.as_mut_ptr());
            run(mem, packed);
            interpreter::run::<true>(&planned.nest, words, mem, answer.as_mut_ptr());
            interpreter::run::<false>(&planned.nest, words, mem, packed);
            interpreter::run::<true>(&planned.nest, words, mem, expected.as_mut_ptr());
        }
    }
    if answer != expected {
        planned.distrust(dir);
        stats::disagreement();
    }
}
