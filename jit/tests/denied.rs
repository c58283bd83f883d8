//! Tests a process in which the system really denies executable memory: Linux refuses to make
//! a mapping executable that was not executable from the start. The denial cannot be undone, so this test
//! has its own process.
//!
//! This file has only one test, because the denial holds for the whole process and the order of the
//! steps matters.

use typepack_engine::kernel::{
    Compiler, Direction, LeafShape, LevelShape, Shape, TransferLeaf, TransferRun, TransferShape,
};
use typepack_jit::{ErrorKind, Jit, Mode, Settings};
use typepack_test_support::skipped::skipped;

/// Constants of `linux/prctl.h` (since Linux 6.3).
const PR_SET_MDWE: libc::c_int = 65;
const PR_MDWE_REFUSE_EXEC_GAIN: libc::c_ulong = 1;

fn shape(bytes: u32) -> Shape {
    Shape {
        direction: Direction::Pack,
        levels: vec![LevelShape::Loop],
        leaf: LeafShape::Fixed { bytes },
    }
}

fn transfer() -> TransferShape {
    let runs = [TransferRun { from: 0, to: 0, bytes: 8 }];
    TransferShape {
        levels: vec![[LevelShape::Loop; 2]],
        leaf: TransferLeaf::Runs { runs: runs.into() },
    }
}

fn run(kernel: &typepack_engine::kernel::Kernel) {
    let mut memory = [1_u64, 2, 3, 4, 5, 6];
    let mut packed = [0_u64; 3];
    let params = [3_u64, 16, 0];
    // SAFETY: the parameters describe 3 blocks of 8 bytes, 16 bytes apart, and these blocks lie in
    // `memory`; `packed` has 24 bytes; the kernel has the shape of these parameters.
    unsafe {
        kernel.entry()(params.as_ptr(), memory.as_mut_ptr().cast(), packed.as_mut_ptr().cast());
    }
    assert_eq!(packed, [1, 3, 5]);
}

#[test]
fn denied_executable_memory_is_a_refusal() {
    let settings = Settings { mode: Mode::Eager, ..Settings::default() };
    let before = Jit::new(settings.clone());
    let early = before.kernel(&shape(8)).expect("executable memory is not denied yet");

    // SAFETY: this `prctl` takes integers only, no pointers.
    let denied = unsafe { libc::prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) };
    if denied != 0 {
        let error = std::io::Error::last_os_error();
        skipped(format_args!("PR_SET_MDWE: {error}"));
        return;
    }

    // `before` passed its start-up probe before the denial: it must refuse new shapes, and its old
    // kernels must still work.
    assert!(before.kernel(&shape(16)).is_none());
    assert!(before.kernel(&shape(16)).is_none(), "the cache forgot the refusal");
    assert!(before.kernel(&shape(8)).is_some());
    assert!(before.transfer_kernel(&transfer()).is_none());
    let counters = before.counters();
    assert_eq!((counters.kernels, counters.hits, counters.refusals), (1, 1, 3));
    run(&early);

    // The start-up probe of `after` meets the denial, so `after` must refuse every shape.
    let after = Jit::new(settings);
    let reason = after.disabled().expect("the start-up probe fails");
    assert_eq!(reason.kind(), ErrorKind::Memory);
    assert!(after.kernel(&shape(8)).is_none());
    assert!(after.transfer_kernel(&transfer()).is_none());
    assert_eq!(after.counters().refusals, 2);
    drop((before, after));
    run(&early);
}
