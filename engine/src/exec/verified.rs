//! Compares the results of compiled kernels and leaf kernels with those of the interpreter
//! (`Settings::verify`).
//!
//! Under `Settings::verify`, `nest.rs` calls [`call_verified`] instead of the kernel.

use super::direction;
use super::stats::{self, Executor};
use crate::kernel::Kernel;
use crate::plan::{NestPlan, Selected};
use typepack_leaf::kernel::interpreter::{self, copy};

/// Executes a nest like `nest::call`, but runs both the interpreter and the kernel
/// (or the leaf kernel's routine), and compares their results. The buffers receive the
/// interpreter's result. After the first disagreement, only the interpreter executes this nest in
/// this direction.
///
/// Before the kernel runs, the bytes that it must write hold the complement of the right result. So
/// the comparison detects a byte that the kernel does not write. This function does not check
/// whether an unpack kernel writes bytes that are not data of the type; tests check that.
///
/// # Safety
///
/// - The conditions of `nest::call` hold. If this call unpacks, the memory that it
///   writes is also valid for reads.
/// - `kernel` and `selected` belong to `planned` and to this direction.
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
    let run = |mem, packed| {
        // SAFETY: each caller of this closure passes the nest's `mem` and a buffer of `bytes`
        // packed bytes, which meet the conditions of `Entry`. The kernel and the routine belong to
        // this nest and direction.
        unsafe {
            match (kernel, &selected.routine) {
                (Some(kernel), _) => (kernel.entry())(words.as_ptr(), mem, packed),
                (_, Some(routine)) => routine.run::<PACK>(&planned.nest, words, mem, packed),
                _ => interpreter::run::<PACK>(&planned.nest, words, mem, packed),
            }
        }
    };
    if !planned.trusted(dir) {
        // SAFETY: `words`, `mem` and `packed` meet the conditions of `Entry` for this nest, as the
        // caller of `call_verified` guarantees.
        return unsafe { interpreter::run::<PACK>(&planned.nest, words, mem, packed) };
    }
    stats::add(if kernel.is_some() { Executor::Kernel } else { Executor::Leaf }, bytes);
    let mut expected = vec![0u8; bytes as usize];
    let mut answer = vec![0u8; bytes as usize];
    let invert = |from: &[u8], to: &mut [u8]| {
        for (to, from) in to.iter_mut().zip(from) {
            *to = !from;
        }
    };
    // SAFETY: every call gets the `words` and `mem` of the caller, who guarantees that these meet
    // the conditions of `Entry`. `expected` and `answer`, which replace `packed` in some calls,
    // have `bytes` bytes. If this call unpacks, the memory that it writes is also valid for reads
    // (first condition of `# Safety`), so the interpreter may pack what each executor wrote.
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
