//! Tests of user functions in reductions: when they run, that they run without locks, and which call fails
//! if such a function panics.
//!
//! `nonblocking_collectives.rs` checks the results of such reductions.

use crate::job::ranks;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;
use typepack::{Collective, Combine, Communicator, Datatype, ErrorKind, Named, Op, Root, commit};

/// Checks that a user's function runs without a lock: the function of one thread waits until another thread
/// has made its calls.
#[test]
fn a_users_function_holds_no_lock() {
    ranks(2, "a_users_function_holds_no_lock", |world| {
        let other = world.dup().unwrap();
        let word = commit(&Datatype::named(Named::I64)).unwrap();
        let (called, is_called) = channel();
        let (done, is_done) = channel();
        let is_done = std::sync::Mutex::new(is_done);
        let combine = Combine::user(move |lower, upper, first, elements| {
            assert_eq!((first, elements), (0, 1));
            called.send(()).unwrap();
            is_done
                .lock()
                .unwrap()
                .recv_timeout(Duration::from_secs(60))
                .expect("the other thread");
            // SAFETY: the reduction passes two addresses, and each is the address of one word.
            unsafe { *upper.cast::<i64>() += *lower.cast::<i64>() };
        });
        std::thread::scope(|threads| {
            let other = &other;
            threads.spawn(move || {
                is_called.recv_timeout(Duration::from_secs(60)).expect("the user's function");
                // The other thread is in the user's function now. These calls must work although the function
                // has not returned.
                let mut sum = [1i64];
                other.all_reduce_in_place(&mut sum, Op::Sum).unwrap();
                assert_eq!(sum, [2]);
                done.send(()).unwrap();
            });
            let (mine, mut sum) = ([world.rank() as i64 + 5], [0i64]);
            let (send, recv) = (Some(mine.as_ptr().cast()), sum.as_mut_ptr().cast());
            let (plan, combine) = (&word, &combine);
            let call = Collective::Allreduce { send, recv, plan, count: 1, combine };
            // SAFETY: the arrays at `send` and `recv` hold one word and live until the call returns.
            unsafe { world.run_raw(&call).unwrap() };
            assert_eq!(sum, [11]);
        });
    });
}

/// Checks that a thread runs user functions of other operations while it waits for a message.
#[test]
fn functions_run_while_their_starter_waits_for_a_message() {
    ranks(3, "functions_run_while_their_starter_waits_for_a_message", |world| {
        let (rank, size) = (world.rank(), world.size());
        let word = commit(&Datatype::named(Named::I64)).unwrap();
        let combine = Combine::user(|lower, upper, _, n| {
            for i in 0..n as usize {
                // SAFETY: the reduction passes two vectors of `n` words, and `i < n`.
                unsafe { *upper.cast::<i64>().add(i) += *lower.cast::<i64>().add(i) };
            }
        });
        let (mine, mut sum) = ([rank as i64], [0i64]);
        let (send, recv) = (Some(mine.as_ptr().cast()), sum.as_mut_ptr().cast());
        let (plan, count) = (&word, 1);
        let call =
            Collective::Reduce { send, recv, plan, count, combine: &combine, root: Root::Rank(0) };
        // SAFETY: the arrays that `call` names hold the words, and they live until the operation is complete.
        let operation = unsafe { world.start_raw(&call).unwrap() };
        if rank == 0 {
            world.messages().finish(operation).unwrap();
            assert_eq!(sum, [3]);
            for other in 1..size {
                world.send_elements(&[1i64], &word, 1, other, 0).unwrap();
            }
        } else {
            let mut got = [0i64];
            world.recv_elements(&mut got, &word, 1, 0, 0).unwrap();
            world.messages().finish(operation).unwrap();
        }
    });
}

#[test]
fn a_users_function_that_panics_fails_its_call_alone() {
    ranks(2, "a_users_function_that_panics_fails_its_call_alone", |world| {
        let word = commit(&Datatype::named(Named::I64)).unwrap();
        let combine = Combine::user(|_, _, _, _| panic!("on purpose"));
        let (mine, mut sum) = ([1i64], [0i64]);
        let (send, recv) = (Some(mine.as_ptr().cast()), sum.as_mut_ptr().cast());
        // SAFETY: the arrays at `send` and `recv` hold one word and live until the call returns or panics.
        let panicked = catch_unwind(AssertUnwindSafe(|| unsafe {
            let (plan, combine) = (&word, &combine);
            world.run_raw(&Collective::Allreduce { send, recv, plan, count: 1, combine })
        }));
        assert!(panicked.is_err());
        world.barrier().unwrap();
    });
}

/// Returns an operation whose function panics if `rank` is 1 and otherwise does nothing.
fn panicking(rank: usize) -> Combine {
    Combine::user(move |_, _, _, _| assert_ne!(rank, 1, "on purpose"))
}

/// Checks that the operation of a call that has panicked is over: nothing writes to its memory any more, and
/// the next collective calls of all ranks match.
fn panic_in_blocking_calls(world: &Communicator) {
    let word = commit(&Datatype::named(Named::I64)).unwrap();
    let (rank, combine) = (world.rank(), panicking(world.rank()));
    for len in [1, 20_000] {
        let (mine, mut sum) = (vec![1i64; len], vec![0i64; len]);
        let (send, recv) = (Some(mine.as_ptr().cast()), sum.as_mut_ptr().cast());
        // SAFETY: the vectors `mine` and `sum` live until the call returns or panics.
        let ended = catch_unwind(AssertUnwindSafe(|| unsafe {
            let (plan, count, combine) = (&word, len as u64, &combine);
            world.run_raw(&Collective::Allreduce { send, recv, plan, count, combine })
        }));
        if rank == 1 {
            let panic = ended.expect_err("the function's panic");
            let text = panic.downcast_ref::<String>().expect("its message");
            assert!(text.contains("on purpose"), "{text}");
        } else {
            // This rank's function has not panicked. This rank's call may succeed or fail, because the
            // function of rank 1 has panicked.
            let _result = ended.expect("no panic");
        }
        sum.fill(9);
        let mut all = [1i64];
        world.all_reduce_in_place(&mut all, Op::Sum).unwrap();
        world.barrier().unwrap();
        assert_eq!(all, [world.size() as i64]);
        assert!(sum.iter().all(|&word| word == 9), "rank {rank}, {len} words");
    }
}

#[test]
fn a_panic_in_a_blocking_reduction_ends_it_at_4_ranks() {
    ranks(4, "a_panic_in_a_blocking_reduction_ends_it_at_4_ranks", panic_in_blocking_calls);
}

#[test]
fn a_panic_in_a_blocking_reduction_ends_it_at_7_ranks() {
    ranks(7, "a_panic_in_a_blocking_reduction_ends_it_at_7_ranks", panic_in_blocking_calls);
}

/// Checks that a panic does not disturb an unrelated receive. A thread that waits for a receive runs a user's
/// function of another operation, and the function panics. The receive must succeed, and the function's own
/// operation must fail.
#[test]
fn a_panic_does_not_unwind_an_unrelated_receive() {
    ranks(2, "a_panic_does_not_unwind_an_unrelated_receive", |world| {
        const LEN: usize = 1000;
        let word = commit(&Datatype::named(Named::I64)).unwrap();
        let combine = panicking(1 - world.rank());
        let mut sum = vec![1i64; 8];
        let (recv, plan, count) = (sum.as_mut_ptr().cast(), &word, 8);
        let call = Collective::Allreduce { send: None, recv, plan, count, combine: &combine };
        // SAFETY: the vector `sum` lives until the operation is complete.
        let operation = unsafe { world.start_raw(&call).unwrap() };
        if world.rank() == 0 {
            let mut got = vec![0i64; LEN];
            world.recv_elements(&mut got, &word, LEN as u64, 1, 9).unwrap();
            assert!(got.iter().all(|&word| word == 77));
            let error = world.messages().finish(operation).unwrap_err();
            assert!(error.to_string().contains("panicked"), "{error}");
        } else {
            let _whatever = world.messages().finish(operation);
            std::thread::sleep(Duration::from_millis(100));
            world.send_elements(&[77i64; LEN], &word, LEN as u64, 0, 9).unwrap();
        }
        world.barrier().unwrap();
    });
}

/// Checks a call that takes a user's function and then fails while it lists its steps. The next call that
/// makes progress must drop the function.
#[test]
fn the_function_of_a_call_that_was_not_started_is_dropped() {
    ranks(2, "the_function_of_a_call_that_was_not_started_is_dropped", |world| {
        let word = commit(&Datatype::named(Named::I64)).unwrap();
        let owned = Arc::new(());
        let held = owned.clone();
        let combine = Combine::user(move |_, _, _, _| drop(held.clone()));
        let mut sum = [1i64];
        let recv = sum.as_mut_ptr().cast();
        let call = Collective::Allreduce {
            send: None,
            recv,
            plan: &word,
            count: 1 << 58,
            combine: &combine,
        };
        // SAFETY: the call starts no step, because there is no memory for so many elements. So nothing
        // accesses `sum`.
        let error = unsafe { world.run_raw(&call) }.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoMemory);
        assert_eq!(world.prepare_raw(&call).unwrap_err().kind(), ErrorKind::NoMemory);
        drop(combine);
        world.progress().unwrap();
        assert_eq!(Arc::strong_count(&owned), 1);
        world.barrier().unwrap();
    });
}
