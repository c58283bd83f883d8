//! Tests of what several threads share: choosers (`choice/shared.rs`). Loom runs two threads in every interleaving; the
//! last test runs real threads that copy bytes.

use super::super::own;
use super::super::{LONG, Method, available, copy, set_fixed, with};
use crate::choice::{Chooser, SAMPLES, Shared, choose};
use loom::cell::UnsafeCell;
use loom::sync::{Arc, Mutex};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

impl Shared for Mutex<Chooser> {
    fn attempt<R>(&self, f: impl FnOnce(&mut Chooser) -> R) -> Option<R> {
        self.try_lock().ok().map(|mut chooser| f(&mut chooser))
    }
}

/// Returns a chooser over two ways that has recorded enough costs of the first way, so that it looks at the
/// second way in the next jobs.
fn about_to_try() -> Chooser {
    let mut chooser = Chooser::new(2, 0);
    for _ in 0..60 {
        let pick = chooser.pick();
        if pick.way == 1 {
            break;
        }
        chooser.report(pick.way, 100);
    }
    assert!(chooser.median(0).is_some() && chooser.median(1).is_none());
    chooser
}

/// Runs two threads with two jobs each in every interleaving. Checks that every job is done exactly once,
/// in a way that exists, and that no other thread uses the job's memory. Checks that the chooser counts
/// each pick, and records no more costs than there were jobs.
#[test]
fn loom_two_threads_share_a_chooser() {
    let primed = about_to_try();
    let before = primed.jobs();
    loom::model(move || {
        let shared = Arc::new(Mutex::new(primed.clone()));
        let work = |shared: &Mutex<Chooser>| {
            let mut ways = Vec::new();
            for _ in 0..2 {
                let (memory, now) = (UnsafeCell::new(0u8), AtomicU64::new(0));
                choose(
                    shared,
                    0,
                    1 << 20,
                    // Each reading of the clock returns 50 more than the one before.
                    || now.fetch_add(50, Relaxed),
                    |way| {
                        // SAFETY: the memory belongs to this thread. Loom reports a concurrent access.
                        memory.with_mut(|memory| unsafe { *memory += 1 });
                        // No thread holds the chooser during a job, so this thread can get it, unless the
                        // other thread uses it just now.
                        let _busy = shared.attempt(|chooser| assert_eq!(chooser.ways(), 2));
                        ways.push(way);
                    },
                );
                // SAFETY: the memory belongs to this thread. Loom reports a concurrent access.
                memory.with(|memory| assert_eq!(unsafe { *memory }, 1));
            }
            assert!(ways.len() == 2 && ways.iter().all(|way| *way < 2), "{ways:?}");
            ways
        };
        let theirs = shared.clone();
        let other = loom::thread::spawn(move || work(&theirs));
        let ways =
            [work(&shared), other.join().expect("the other thread has not panicked")].concat();
        let chooser = shared.lock().expect("no thread has panicked").clone();
        let picks = chooser.jobs() - before;
        // A job makes no pick if the other thread is using the chooser at that moment.
        assert!((1..=4).contains(&picks), "{picks}");
        let tried = ways.iter().filter(|way| **way == 1).count();
        assert!(tried as u64 <= picks);
        // The first job in a way is not counted, so one trial leaves no median.
        assert!(chooser.median(1).is_none() || tried >= 2);
        assert_eq!(chooser.best(), 0, "{} trials decide nothing", SAMPLES - 1);
    });
}

/// Real threads copy long runs while the choosers learn, while another thread asks for methods, and while
/// the fixed method changes. Checks all copied bytes.
#[test]
fn threads_copy_while_the_methods_change() {
    let _turn = super::TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    own::set_clock(super::tick, true);
    let methods: Vec<Method> = available().collect();
    std::thread::scope(|scope| {
        for thread in 0..4usize {
            let methods = &methods;
            scope.spawn(move || {
                let from: Vec<u8> = (0..400_000).map(|i| (i * 13 + thread * 5) as u8 | 1).collect();
                let mut to = vec![0; from.len() + 2];
                for round in 0..60 {
                    to.fill(0);
                    let bytes = [LONG, 50_000, 130_000, 399_000][round % 4] + round;
                    // SAFETY: the two buffers are separate, and each has more than `bytes + 1` bytes.
                    let mut run = || unsafe { copy(from.as_ptr(), to[1..].as_mut_ptr(), bytes) };
                    let method = methods[round % methods.len()];
                    match (thread, round % 3) {
                        (0, 0) => with(method, run),
                        (1, at) => {
                            set_fixed((at > 0).then_some(method));
                            run();
                        }
                        _ => run(),
                    }
                    assert!(to[1..=bytes] == from[..bytes], "thread {thread}, round {round}");
                    assert!(to[0] == 0 && to[bytes + 1] == 0, "thread {thread}, round {round}");
                }
            });
        }
    });
    set_fixed(None);
}
