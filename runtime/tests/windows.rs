//! Tests of windows of Rust values: the guards of all kinds of epochs, operations on layouts, atomic updates of one
//! and of many values at the same time, and errors.

use crate::job::ranks;
use typepack::rma::{LockKind, Update, WindowOf};
use typepack::{Communicator, ErrorKind, Op, WindowErrorKind, commit};
use typepack_test_support::random::Random;

#[test]
fn one_rank_puts_between_fences() {
    puts_between_fences(1, "one_rank_puts_between_fences");
}

#[test]
fn two_ranks_put_between_fences() {
    puts_between_fences(2, "two_ranks_put_between_fences");
}

#[test]
fn five_ranks_put_between_fences() {
    puts_between_fences(5, "five_ranks_put_between_fences");
}

/// Puts and gets of random pieces, which all ranks know: each rank checks its values against its own computation.
fn puts_between_fences(size: usize, name: &str) {
    ranks(size, name, |world| {
        const LEN: usize = 300;
        let (rank, size) = (world.rank(), world.size());
        let mut window = WindowOf::<u32>::allocate(world, LEN).expect("a window");
        let mut expected = vec![vec![0; LEN]; size];
        let mut random = Random(7);
        let every = commit(&"vector(10, 1, 3, u32)".parse().expect("a type"));
        let every = every.expect("a layout");
        let mut epoch = window.fence().expect("a fence");
        for round in 0..200 {
            // All ranks draw the same numbers, so all know what each rank does. Origins write to different thirds.
            for origin in 0..size {
                let target = random.below(size as u64) as usize;
                let third = LEN / size;
                let at = origin * third + random.below((third - 30) as u64) as usize;
                let data: Vec<u32> = (0..30).map(|_| random.next() as u32).collect();
                let strided = random.below(2) == 0;
                if origin == rank {
                    let values = epoch.rank(target).expect("a rank");
                    match strided {
                        true => values.put(&every, &data, at).expect("a put"),
                        false => values.write(&data, at).expect("a write"),
                    }
                }
                for (i, value) in data.iter().enumerate() {
                    if !strided || i % 3 == 0 {
                        expected[target][at + i] = *value;
                    }
                }
            }
            epoch.fence().expect("a fence");
            let from = (rank + round) % size;
            let mut back = vec![0; LEN];
            epoch.rank(from).expect("a rank").read(&mut back, 0).expect("a read");
            assert_eq!(back, expected[from], "round {round}");
            let cells = epoch.rank(from).expect("a rank").into_cells().expect("mapped");
            assert!(cells.iter().eq(back), "round {round}");
            epoch.fence().expect("a fence");
        }
        epoch.end().expect("the last fence");
        assert!(window.own().iter().eq(expected[rank].iter().copied()));
        window.free().expect("freed");
    });
}

/// Checks that locks exclude each other, and that guards that are dropped end their epochs.
#[test]
fn locks_protect_plain_reads_and_writes() {
    ranks(4, "locks_protect_plain_reads_and_writes", |world| {
        let window = WindowOf::<u64>::allocate(world, 3).expect("a window");
        for round in 0..300 {
            let target = round % world.size();
            let locked = window.lock(target, LockKind::Exclusive).expect("a lock");
            let mut values = [0; 3];
            locked.read(&mut values, 0).expect("a read");
            assert_eq!(values, [values[0], 2 * values[0], 3 * values[0]]);
            let next = values[0] + 1;
            locked.write(&[next, 2 * next, 3 * next], 0).expect("a write");
            drop(locked);
            let shared = window.lock(target, LockKind::Shared).expect("a lock");
            shared.read(&mut values, 0).expect("a read");
            assert_eq!(values, [values[0], 2 * values[0], 3 * values[0]]);
        }
        world.barrier().expect("a barrier");
        assert_eq!(window.own().get(0).expect("a value"), 300);
        window.free().expect("freed");
    });
}

#[test]
fn neighbors_post_and_start() {
    ranks(3, "neighbors_post_and_start", |world| {
        let (rank, size) = (world.rank(), world.size());
        let mut window = WindowOf::<u64>::allocate_shared(world, 2).expect("a window");
        let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
        let of = |rank: usize| world.group().include([rank as i64]).expect("a group");
        for round in 0..100 {
            let mut exposure = window.post(&of(left)).expect("posted");
            let access = exposure.start(&of(right)).expect("started");
            access.rank(right).expect("a rank").write(&[round, rank as u64], 0).expect("a write");
            access.end().expect("complete");
            if round % 2 == 0 {
                exposure.end().expect("waited");
            } else {
                while let Some(again) = exposure.test().expect("a test") {
                    exposure = again;
                }
            }
            let own: Vec<u64> = window.own().iter().collect();
            assert_eq!(own, [round, left as u64]);
        }
        window.free().expect("freed");
    });
}

/// Checks that values which would not be aligned, because a rank below has made the window with values of another type,
/// are an error.
#[test]
fn values_of_different_types_are_an_error() {
    ranks(2, "values_of_different_types_are_an_error", |world| {
        if world.rank() == 0 {
            let window = WindowOf::<u8>::allocate_shared(world, 3).expect("a window");
            assert_eq!(window.own().len(), 3);
        } else {
            let error = WindowOf::<u64>::allocate_shared(world, 2).expect_err("misaligned values");
            assert!(error.to_string().contains("values of another type"), "{error}");
        }
    });
}

/// Half of the ranks update 128 values (1 KiB) at a time, the others single values; all updates count. The first
/// update of many values changes the target from instructions to locks while single values are updated.
#[test]
fn updates_of_many_and_of_single_values_are_atomic() {
    ranks(4, "updates_of_many_and_of_single_values_are_atomic", |world| {
        const LEN: usize = 128;
        const ROUNDS: usize = 2000;
        for many_first in [true, false] {
            let mut whole = WindowOf::<u64>::allocate(world, LEN).expect("a window");
            let mut real = WindowOf::<f64>::allocate(world, LEN).expect("a window");
            let mut short = WindowOf::<i32>::allocate(world, LEN).expect("a window");
            let (whole_all, real_all, short_all) = (
                whole.lock_all().expect("locked"),
                real.lock_all().expect("locked"),
                short.lock_all().expect("locked"),
            );
            let target = 1;
            let (a, b, c) = (
                whole_all.rank(target).expect("a rank"),
                real_all.rank(target).expect("a rank"),
                short_all.rank(target).expect("a rank"),
            );
            let many = world.rank() % 2 == usize::from(many_first);
            let mut taken = Vec::new();
            for round in 0..ROUNDS {
                if many {
                    if round % 16 == 0 {
                        a.accumulate(&[1; LEN], 0, Op::Sum).expect("a sum");
                        b.accumulate(&[1.0; LEN], 0, Op::Sum).expect("a sum");
                        c.accumulate(&[1; LEN], 0, Op::Sum).expect("a sum");
                    }
                } else {
                    let at = round % LEN;
                    taken.push((at, a.fetch_and_op(1, at, Op::Sum).expect("a sum")));
                    b.accumulate(&[1.0], at, Op::Sum).expect("a sum");
                    let mut old = c.fetch(at).expect("a value");
                    loop {
                        let now = c.compare_and_swap(old + 1, old, at).expect("an exchange");
                        if now == old {
                            break;
                        }
                        old = now;
                    }
                }
            }
            // The values that this rank has seen at one place only grow.
            taken.sort_by_key(|(at, _)| *at);
            assert!(taken.windows(2).all(|two| two[0].0 != two[1].0 || two[0].1 < two[1].1));
            whole_all.end().expect("unlocked");
            real_all.end().expect("unlocked");
            short_all.end().expect("unlocked");
            world.barrier().expect("a barrier");
            if world.rank() == target {
                for at in 0..LEN {
                    let singles = 2 * (0..ROUNDS).filter(|round| round % LEN == at).count() as u64;
                    let all = singles + 2 * ROUNDS.div_ceil(16) as u64;
                    assert_eq!(whole.own().get(at).expect("a value"), all, "{at}");
                    assert_eq!(real.own().get(at).expect("a value"), all as f64, "{at}");
                    assert_eq!(short.own().get(at).expect("a value"), all as i32, "{at}");
                }
            }
            whole.free().expect("freed");
            real.free().expect("freed");
            short.free().expect("freed");
        }
    });
}

#[test]
fn hints_fix_the_mechanism_of_updates() {
    ranks(2, "hints_fix_the_mechanism_of_updates", |world| {
        for granularity in ["0", "8", "4096"] {
            let hints = [("mpi_accumulate_granularity".to_owned(), granularity.to_owned())];
            let window = WindowOf::<u64>::allocate_with(world, 1000, &hints).expect("a window");
            let found = window.window().hints().expect("hints").accumulate_granularity;
            assert_eq!(found.to_string(), granularity);
            let locked = window.lock(0, LockKind::Shared).expect("a lock");
            for _ in 0..50 {
                locked.accumulate(&[1; 1000], 0, Op::Sum).expect("a sum");
                locked.fetch_and_op(2, 500, Op::Sum).expect("a sum");
            }
            locked.end().expect("unlocked");
            world.barrier().expect("a barrier");
            if world.rank() == 0 {
                assert_eq!(window.own().get(1).expect("a value"), 100, "{granularity}");
                assert_eq!(window.own().get(500).expect("a value"), 300, "{granularity}");
            }
            window.free().expect("freed");
        }
    });
}

fn window_error(error: typepack::Error) -> WindowErrorKind {
    match error.kind() {
        ErrorKind::Window(kind) => kind,
        other => panic!("{other:?}: {error}"),
    }
}

#[test]
fn errors_write_nothing() {
    ranks(2, "errors_write_nothing", |world: &Communicator| {
        let window = WindowOf::<u64>::allocate(world, 4).expect("a window");
        assert_eq!(window.len(1).expect("a rank"), 4);
        assert_eq!(window.len(2).expect_err("no rank").kind(), ErrorKind::Rank);
        assert_eq!(window.lock(2, LockKind::Shared).expect_err("no rank").kind(), ErrorKind::Rank);
        let locked = window.lock(1, LockKind::Shared).expect("a lock");
        let again = window.lock(1, LockKind::Shared).expect_err("locked already");
        assert_eq!(window_error(again), WindowErrorKind::Synchronization);
        for at in [1, usize::MAX, 1 << 62] {
            let error = locked.write(&[1; 4], at).expect_err("beyond the window");
            assert_eq!(window_error(error), WindowErrorKind::Range);
            let error = locked.accumulate(&[1; 4], at, Op::Sum).expect_err("beyond the window");
            assert_eq!(window_error(error), WindowErrorKind::Range);
        }
        let error = locked.get_accumulate(&[1; 4], &mut [0; 3], 0, Op::Sum);
        assert_eq!(error.expect_err("too short").kind(), ErrorKind::Truncated);
        let class = |error: typepack::Error| error.class();
        let error = locked.accumulate(&[1], 0, Op::Maxloc).expect_err("not defined");
        assert_eq!(class(error), typepack::ErrorClass::OP);
        let cells = locked.cells().expect("mapped");
        assert!(cells.get(4).is_err() && cells.set(4, 1).is_err());
        assert!(cells.read(&mut [0; 2], 3).is_err() && cells.write(&[1; 2], usize::MAX).is_err());
        locked.end().expect("unlocked");
        world.barrier().expect("a barrier");
        assert!(window.own().iter().all(|value| value == 0));

        // A window that is freed in an epoch is freed, and the call returns an error.
        let own = window.lock(world.rank(), LockKind::Shared).expect("a lock");
        std::mem::forget(own);
        let error = window.free().expect_err("the window is locked");
        assert_eq!(window_error(error), WindowErrorKind::Synchronization);
        assert!(WindowOf::<[u8; 0]>::allocate(world, 4).is_err());
        assert!(WindowOf::<u64>::allocate(world, usize::MAX).is_err());
    });
}

/// Threads of one rank update at the same time, more than there are words for threads that update by instructions.
#[test]
fn threads_of_a_rank_update_at_the_same_time() {
    ranks(2, "threads_of_a_rank_update_at_the_same_time", |world| {
        let mut window = WindowOf::<u64>::allocate(world, 40).expect("a window");
        let mut guard = window.lock_all().expect("locked");
        let shared = guard.threads();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..12)
                .map(|thread| {
                    scope.spawn(move || {
                        let locked = shared.rank(0).expect("a rank");
                        for round in 0..500 {
                            if thread == 0 && round == 250 {
                                locked.accumulate(&[1; 40], 0, Op::Sum).expect("a sum");
                            }
                            locked.fetch_and_op(1, 7, Op::Sum).expect("a sum");
                            locked.accumulate(&[1], 8, Update::from(Op::Sum)).expect("a sum");
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        });
        guard.end().expect("unlocked");
        world.barrier().expect("a barrier");
        if world.rank() == 0 {
            let values: Vec<u64> = window.own().iter().collect();
            assert_eq!(values[6..10], [2, 12_002, 12_002, 2]);
        }
        window.free().expect("freed");
    });
}

/// A guard that is dropped by a panic ends the lock, so that the program may go on after it has caught the panic.
#[test]
fn a_panic_ends_a_lock() {
    ranks(1, "a_panic_ends_a_lock", |world| {
        let window = WindowOf::<u64>::allocate(world, 1).expect("a window");
        let work = std::panic::AssertUnwindSafe(|| {
            let _locked = window.lock(0, LockKind::Exclusive).expect("a lock");
            panic!("a fault of the program");
        });
        assert!(std::panic::catch_unwind(work).is_err());
        window.lock(0, LockKind::Exclusive).expect("the lock is free").end().expect("unlocked");
        window.free().expect("freed");
    });
}
