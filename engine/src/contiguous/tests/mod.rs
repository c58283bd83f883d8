//! Tests of the choice of a copy method: copies that are timed, and copies of several threads.

mod shared;

use super::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Calls `copy` for many lengths and alignments, and checks all bytes of the destination.
fn check(lengths: impl Iterator<Item = usize>, copy: impl Fn(*const u8, *mut u8, usize)) {
    const ROOM: usize = 160;
    for bytes in lengths {
        let from: Vec<u8> = (0..bytes + ROOM).map(|i| (i * 7 + i / 251) as u8 | 1).collect();
        for (skip, shift) in [(0, 0), (1, 0), (0, 1), (63, 17), (5, 64), (31, 33), (64, 127)] {
            let mut to = vec![0; bytes + ROOM];
            copy(from[skip..].as_ptr(), to[shift..].as_mut_ptr(), bytes);
            assert_eq!(
                to[shift..shift + bytes],
                from[skip..skip + bytes],
                "{bytes} {skip} {shift}"
            );
            let outside = to[..shift].iter().chain(&to[shift + bytes..]);
            assert!(outside.copied().all(|byte| byte == 0), "{bytes} {skip} {shift}");
        }
    }
}

/// The requested and the fixed method are words for the whole process, so tests that depend on them take turns.
static TURN: Mutex<()> = Mutex::new(());

/// The time that [`tick`] returns. The clock of a process can be set only once.
static TIME: AtomicU64 = AtomicU64::new(0);

fn tick() -> u64 {
    TIME.fetch_add(1000, Ordering::Relaxed)
}

#[test]
fn copies_that_are_timed_are_right() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    set_clock(tick, true);
    let before = TIME.load(Ordering::Relaxed);
    for _ in 0..40 {
        check([128 << 10, (1 << 20) + 5].into_iter(), |from, to, bytes| {
            // SAFETY: `check` passes two separate buffers with room for `bytes` bytes.
            unsafe { copy(from, to, bytes) };
        });
    }
    // With a single method there is nothing to choose, so no copy is timed.
    assert_eq!(TIME.load(Ordering::Relaxed) > before, available().count() > 1);
}
