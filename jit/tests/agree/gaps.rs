//! Checks that a kernel does not store bytes between runs, not even with their old values. Another
//! thread writes these bytes while the kernel unpacks or copies into the runs.
//!
//! `guarded.rs` shows that a kernel accesses no byte outside the pages of the runs. This file shows
//! that a kernel stores no byte in the gaps between runs. With one thread alone, the test would not
//! notice a kernel that loads a gap, blends the run into the loaded bytes, and stores all of them.

use super::transfer::Transfer;
use super::{block, jit, reference, window};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering, fence};
use typepack_engine::Table;
use typepack_engine::kernel::{Compiler, Direction, Level, Nest, TransferRun};

/// Minimum number of calls of a kernel per case.
const CALLS: usize = 300;

/// The value of all bytes that are unpacked.
const VALUE: u8 = 0xa5;

/// Number of blocks or windows in most cases. A kernel call over so many of them takes long enough
/// for the thread that writes the gaps to work at the same time.
const COUNT: u64 = 451;

/// Allocates `bytes` bytes of memory, and calls `unpack` with the address of this memory. `runs`
/// lists the start and the length of each run that `unpack` must write; all other bytes are gaps.
/// Meanwhile another thread makes rounds: in each round it writes a new value into all gaps, and
/// then checks that they hold this value. The function makes at least `calls` calls, and ends when
/// the other thread has made at least `ROUNDS` rounds. Returns true if all gaps kept the other
/// thread's values. Returns false after the first round in which a gap has another value.
fn gaps_are_kept(
    bytes: usize,
    runs: &[(usize, usize)],
    calls: usize,
    unpack: impl Fn(*mut u8),
) -> bool {
    const ROUNDS: usize = 60;
    let memory: Vec<AtomicU8> = (0..bytes).map(|_| AtomicU8::new(0)).collect();
    let mut covered = vec![false; bytes];
    for &(start, length) in runs {
        covered[start..][..length].fill(true);
    }
    let gaps: Vec<&AtomicU8> =
        memory.iter().zip(&covered).filter(|(_, covered)| !**covered).map(|(b, _)| b).collect();
    assert!(!gaps.is_empty(), "no gaps");
    let (done, kept, rounds) = (AtomicBool::new(false), AtomicBool::new(true), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut value = 0_u8;
            while !done.load(Ordering::Relaxed) && kept.load(Ordering::Relaxed) {
                value = value.wrapping_add(1);
                gaps.iter().for_each(|byte| byte.store(value, Ordering::Relaxed));
                // Empties this processor's store buffer. Otherwise the loads below would read the
                // store buffer and not the cache.
                fence(Ordering::SeqCst);
                if gaps.iter().any(|byte| byte.load(Ordering::Relaxed) != value) {
                    kept.store(false, Ordering::Relaxed);
                }
                rounds.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut made = 0;
        while (made < calls || rounds.load(Ordering::Relaxed) < ROUNDS)
            && kept.load(Ordering::Relaxed)
        {
            unpack(memory.as_ptr().cast::<u8>().cast_mut());
            made += 1;
            if made > calls {
                // Lets the other thread run, in case both threads share one processor.
                std::thread::yield_now();
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    for (byte, covered) in memory.iter().zip(&covered) {
        assert!(
            !covered || byte.load(Ordering::Relaxed) == VALUE,
            "a byte of a run was not unpacked"
        );
    }
    kept.into_inner()
}

/// Checks that these tests would notice a wrong kernel: the closure below writes the old values of
/// gap bytes back into the gaps. How soon the check notices this depends on the timing of the
/// threads.
#[test]
fn values_put_back_are_noticed() {
    const BYTES: usize = 2000;
    let runs: Vec<(usize, usize)> = (0..BYTES).step_by(2).map(|at| (at, 1)).collect();
    let kept = gaps_are_kept(BYTES, &runs, 10_000_000, |mem| {
        for at in 0..BYTES {
            // SAFETY: `at` is below `BYTES`, the length of the memory; both threads access its
            // bytes as atomics.
            let byte = unsafe { AtomicU8::from_ptr(mem.add(at)) };
            let value = if at % 2 == 1 { byte.load(Ordering::Relaxed) } else { VALUE };
            byte.store(value, Ordering::Relaxed);
        }
    });
    assert!(!kept);
}

fn check(nest: &Nest) {
    let shape = nest.shape(Direction::Unpack);
    let kernel = jit().kernel(&shape).expect("the shape has a kernel");
    let part = super::full(nest);
    let runs = reference::runs(nest, &part);
    let low = runs.iter().map(|run| run.offset).min().expect("the layout has runs");
    let high =
        runs.iter().map(|run| run.offset + run.bytes as i64).max().expect("the layout has runs");
    let packed = vec![VALUE; runs.iter().map(|run| run.bytes as usize).sum()];
    let places: Vec<(usize, usize)> =
        runs.iter().map(|run| ((run.offset - low) as usize, run.bytes as usize)).collect();
    let (params, base) = reference::parameters(nest, &part);
    let kept = gaps_are_kept((high - low) as usize, &places, CALLS, |mem| {
        let base = mem.wrapping_offset((base - low) as isize);
        // SAFETY:
        // - `params` has the words of the shape; its table addresses are those of `nest`;
        // - all runs lie in the memory, whose bytes are atomics and may be written through shared
        //   references; the other thread does not access the bytes of the runs;
        // - `packed` holds the bytes of the runs, and unpacking only reads it.
        unsafe { kernel.entry()(params.as_ptr(), base, packed.as_ptr().cast_mut()) };
    });
    assert!(kept, "{shape}: a gap was written");
}

fn line(count: u64, stride: i64) -> Level {
    Level::Loop { count, stride }
}

fn table(count: u64, scale: i64, wide: bool) -> Level {
    // 7 and each count have no common divisor, so the entries are a permutation.
    let count = count as i64;
    let entries: Vec<i64> = (0..count).map(|i| i * 7 % count).collect();
    let entries = if wide { Table::Wide(entries.as_slice().into()) } else { Table::new(&entries) };
    Level::Table { entries, scale }
}

#[test]
fn unpacking_leaves_gaps_to_another_thread() {
    for bytes in (1..=20).chain([24, 31, 32, 40, 63, 64, 65, 100, 130_u64]) {
        let stride = bytes as i64 + 1;
        check(&block(vec![line(COUNT, stride)], bytes));
        check(&block(vec![table(COUNT, stride, false)], bytes));
        check(&block(vec![table(COUNT, stride, true)], bytes));
        check(&block(vec![line(40, 12 * stride + 3), line(11, stride)], bytes));
    }
    let windows: [(i64, &[(i64, u64)]); 4] = [
        (16, &[(0, 1), (4, 4), (8, 8)]),
        (80, &[(0, 8), (16, 8), (32, 4), (40, 4), (48, 4), (56, 4), (64, 2), (70, 2)]),
        (400, &[(0, 3), (5, 130), (140, 8), (150, 193)]),
        (40, &[(0, 3), (-9, 5), (20, 7)]),
    ];
    for (stride, runs) in windows {
        check(&window(vec![line(COUNT, stride)], runs));
        check(&window(vec![table(COUNT, stride, false)], runs));
        check(&window(vec![line(9, 33 * stride), table(15, 2 * stride, true)], runs));
    }
}

#[test]
fn fused_copies_leave_gaps_to_another_thread() {
    let jit = jit();
    let check = |transfer: &Transfer| {
        let shape = transfer.shape();
        let kernel = jit.transfer_kernel(&shape).expect("the shape has a kernel");
        let runs = transfer.all();
        let span = |place: fn(&TransferRun) -> i64| {
            let low = runs.iter().map(place).min().expect("the layout has runs");
            let high = runs
                .iter()
                .map(|run| place(run) + run.bytes as i64)
                .max()
                .expect("the layout has runs");
            (low, (high - low) as usize)
        };
        let ((from, source_bytes), (to, bytes)) = (span(|run| run.from), span(|run| run.to));
        let source = vec![VALUE; source_bytes];
        let places: Vec<(usize, usize)> =
            runs.iter().map(|run| ((run.to - to) as usize, run.bytes as usize)).collect();
        let params = transfer.parameters();
        let source = source.as_ptr().cast_mut().wrapping_offset(-from as isize);
        let kept = gaps_are_kept(bytes, &places, CALLS, |mem| {
            // SAFETY:
            // - `params` has the words of the shape; its table addresses are those of `transfer`;
            // - the runs lie in `source`, which is only read, and in the memory, whose bytes are
            //   atomics; the other thread does not access the bytes of the runs.
            unsafe {
                kernel.entry()(params.as_ptr(), source, mem.wrapping_offset(-to as isize));
            }
        });
        assert!(kept, "{shape}: a gap was written");
    };
    for bytes in [1, 2, 3, 4, 7, 8, 12, 16, 24, 31, 64, 65, 130_u64] {
        let (s, d) = (bytes as i64 + 3, bytes as i64 + 1);
        for level in [
            [line(COUNT, s), line(COUNT, d)],
            [table(COUNT, s, false), line(COUNT, d)],
            [line(COUNT, s), table(COUNT, d, true)],
        ] {
            check(&Transfer::block(vec![level], bytes));
        }
    }
    let run = |from, to, bytes| TransferRun { from, to, bytes };
    let runs = vec![run(0, 0, 16), run(16, 32, 8), run(32, 40, 8), run(40, 65, 13)];
    check(&Transfer { levels: vec![[line(COUNT, 64), line(COUNT, 96)]], runs, long: false });
}
