//! Kernels and leaf kernels checked against the interpreter (`Settings::verify`).
//!
//! Called by `call.rs` in place of the plain call.

use super::direction;
use super::stats::{self, Executor};
use crate::kernel::Kernel;
use crate::kernel::interpreter::{self, copy};
use crate::plan::{NestPlan, Selected};

/// As [`call`](super::call::call), checking the kernel or the routine against the interpreter (`Settings::verify`). The
/// interpreter's answer stands; once a kernel has disagreed, this nest is the interpreter's.
///
/// Whatever the kernel is to write holds the complement of the right answer before, so that a byte
/// it leaves out is seen. Bytes beside the runs are not looked at: that is for the tests.
///
/// # Safety
///
/// As for [`call`](super::call::call); when unpacking, the runs are also valid for reads.
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
        // SAFETY: as in `call`; the places below fulfil our contract.
        unsafe {
            match (kernel, &selected.routine) {
                (Some(kernel), _) => (kernel.entry())(words.as_ptr(), mem, packed),
                (_, Some(routine)) => routine.run::<PACK>(&planned.nest, words, mem, packed),
                _ => interpreter::run::<PACK>(&planned.nest, words, mem, packed),
            }
        }
    };
    if !planned.trusted(dir) {
        // SAFETY: as ours.
        return unsafe { interpreter::run::<PACK>(&planned.nest, words, mem, packed) };
    }
    let mut expected = vec![0u8; bytes as usize];
    let mut answer = vec![0u8; bytes as usize];
    let invert = |from: &[u8], to: &mut [u8]| {
        for (to, from) in to.iter_mut().zip(from) {
            *to = !from;
        }
    };
    // SAFETY: the parameters are the caller's for every run; in place of `packed` stand buffers of
    // as many bytes. When unpacking, memory that may be written may be read back (our contract),
    // which tells what each executor left there.
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
