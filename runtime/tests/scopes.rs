//! Tests of nonblocking operations: scopes, leaked requests, panics in scopes, and raw operations.

use crate::job::{ranks, ranks_with};
use std::panic::{AssertUnwindSafe, catch_unwind};
use typepack::engine::Elements;
use typepack::{Datatype, ErrorKind, Named, Plan, SendMode, Source, Tag, commit};

fn word() -> Plan {
    commit(&Datatype::named(Named::U64)).unwrap()
}

const LARGE: usize = 80_000;

#[test]
fn a_scope_completes_what_is_leaked_in_it() {
    ranks(2, "a_scope_completes_what_is_leaked_in_it", |world| {
        let (word, other) = (word(), 1 - world.rank());
        let out = vec![world.rank() as u64 + 5; LARGE];
        let mut into = vec![0u64; LARGE];
        world
            .scope(|scope| {
                let _ = scope.irecv_elements(&mut into, &word, LARGE as u64, other, 1).unwrap();
                let _ = scope.isend_elements(&out, &word, LARGE as u64, other, 1).unwrap();
            })
            .unwrap();
        assert!(into.iter().all(|&v| v == other as u64 + 5));
    });
}

#[test]
fn test_and_wait_give_statuses_in_any_order() {
    ranks(2, "test_and_wait_give_statuses_in_any_order", |world| {
        let (word, other) = (word(), 1 - world.rank());
        let out: Vec<Vec<u64>> = (1..=10).map(|n| vec![n as u64; n * n * 100]).collect();
        let mut into: Vec<Vec<u64>> = out.iter().map(|o| vec![0; o.len()]).collect();
        world
            .scope(|scope| {
                let mut receives = Vec::new();
                for (n, buf) in into.iter_mut().enumerate() {
                    let len = buf.len() as u64;
                    receives.push(scope.irecv_elements(buf, &word, len, other, n as i32).unwrap());
                }
                let mut last = receives.pop().unwrap();
                let sends: Vec<_> = out
                    .iter()
                    .enumerate()
                    .rev()
                    .map(|(n, o)| {
                        scope.isend_elements(o, &word, o.len() as u64, other, n as i32).unwrap()
                    })
                    .collect();
                let status = loop {
                    if let Some(status) = scope.test(&mut last).unwrap() {
                        break status;
                    }
                };
                assert_eq!((status.source, status.tag), (other, 9));
                assert_eq!(scope.test(&mut last).unwrap(), Some(status));
                let statuses = scope.wait_all(receives).unwrap();
                assert!(statuses.iter().enumerate().all(|(n, s)| s.tag == n as i32));
                assert_eq!(scope.wait_all(sends).unwrap().len(), 10);
            })
            .unwrap();
        assert!(into == out);
    });
}

#[test]
fn a_panic_in_a_scope_cuts_operations_loose() {
    ranks(2, "a_panic_in_a_scope_cuts_operations_loose", |world| {
        let (word, rank) = (word(), world.rank());
        if rank == 0 {
            let mut early = vec![0u64; LARGE];
            let mut never = vec![0u64; LARGE];
            {
                let out = vec![3u64; LARGE];
                let panicked = catch_unwind(AssertUnwindSafe(|| {
                    world.scope(|scope| {
                        scope.isend_elements(&out, &word, LARGE as u64, 1, 1).unwrap();
                        // Rank 1 sends the message with tag 2 at about the time of the panic, and the message
                        // with tag 3 only after the panic.
                        scope.irecv_elements(&mut early, &word, LARGE as u64, 1, 2).unwrap();
                        scope.irecv_elements(&mut never, &word, LARGE as u64, 1, 3).unwrap();
                        panic!("on purpose");
                    })
                }));
                assert!(panicked.is_err());
            }
            // The scope is over, so the program owns the buffers again. Late messages must not be written
            // to them.
            early.fill(9);
            never.fill(9);
            world.barrier().unwrap();
            let mut got = vec![0u64; LARGE];
            world.recv_elements(&mut got, &word, LARGE as u64, 1, 3).unwrap();
            assert!(got.iter().all(|&v| v == 4));
            world.barrier().unwrap();
            assert!(early.iter().chain(&never).all(|&v| v == 9));
            // If no message had matched the receive with tag 2 before the panic, the panic has cancelled the
            // receive, and the message with tag 2 is still in the queue.
            if world.iprobe(1, 2).unwrap().is_some() {
                world.recv_elements(&mut got, &word, LARGE as u64, 1, 2).unwrap();
            }
        } else {
            let out = vec![4u64; LARGE];
            let mut got = vec![0u64; LARGE];
            world
                .scope(|scope| {
                    scope.isend_elements(&out, &word, LARGE as u64, 0, 2).unwrap();
                    world.barrier().unwrap();
                    scope.isend_elements(&out, &word, LARGE as u64, 0, 3).unwrap();
                    // Rank 0 has started the send of this message in the scope that panicked. The message
                    // must still arrive, from a copy.
                    world.recv_elements(&mut got, &word, LARGE as u64, 0, 1).unwrap();
                    world.barrier().unwrap();
                })
                .unwrap();
            assert!(got.iter().all(|&v| v == 3));
        }
    });
}

#[test]
fn raw_operations_keep_their_plans() {
    ranks(2, "raw_operations_keep_their_plans", |world| {
        let other = 1 - world.rank();
        let out: Vec<u64> = (0..LARGE as u64).collect();
        let mut into = vec![0u64; LARGE];
        let messages = world.messages();
        let mut operations = Vec::new();
        {
            let plan = word();
            let (from, to) = (out.as_ptr(), into.as_mut_ptr());
            let len = LARGE as u64;
            // SAFETY: both vectors live until `finish_all` below has completed the operations, and no
            // other code accesses them until then.
            unsafe {
                operations.push(
                    messages
                        .receive(Elements::new(to, &plan, len), Source::Any, Tag::Is(4))
                        .unwrap(),
                );
                let mode = SendMode::Standard;
                operations
                    .push(messages.send(mode, Elements::new(from, &plan, len), other, 4).unwrap());
            }
        }
        let statuses = messages.finish_all(&mut operations).unwrap();
        assert!(operations.is_empty());
        assert_eq!((statuses[0].source, statuses[0].bytes), (other, 8 * LARGE as u64));
        assert!(into == out);
    });
}

#[test]
fn a_detached_receive_frees_its_memory() {
    ranks(2, "a_detached_receive_frees_its_memory", |world| {
        let (word, other, messages) = (word(), 1 - world.rank(), world.messages());
        let mut into = [7u64];
        // SAFETY: the array `into` lives until the operation is abandoned, and no other code accesses it
        // until then.
        let operation = unsafe {
            messages.receive(
                Elements::new(into.as_mut_ptr(), &word, 1),
                Source::Rank(other),
                Tag::Any,
            )
        };
        messages.abandon(operation.unwrap());
        world.barrier().unwrap();
        let (sent, mut got) = ([1u64], [0u64]);
        world.sendrecv_elements(&sent, &word, 1, other, 0, &mut got, &word, 1, other, 0).unwrap();
        assert_eq!((into, got), ([7], [1]));
    });
}

/// Checks that a rank does not leave the job before it has taken every message for which it has sent a
/// CTS ("clear to send", the answer that lets the sender begin). Rank 0 answers a message with a CTS, abandons
/// the receive and leaves, while rank 1 is in the middle of sending. The forced pipeline makes rank 0 answer with
/// a CTS. Without it, rank 0 may copy the message itself.
#[test]
fn the_end_waits_for_what_has_been_granted() {
    let pipeline = [("TYPEPACK_TRANSPORT", "pipeline")];
    ranks_with(2, "the_end_waits_for_what_has_been_granted", &pipeline, |world| {
        const LEN: usize = 1 << 20;
        let (word, messages) = (word(), world.messages());
        let mut data = vec![1u64; LEN];
        let origin = data.as_mut_ptr().cast::<u8>();
        if world.rank() == 0 {
            world.barrier().unwrap();
            // SAFETY: the vector `data` lives until the receive is abandoned, and no other code accesses
            // it until then.
            let operation = unsafe {
                messages
                    .receive(Elements::new(origin, &word, LEN as u64), Source::Rank(1), Tag::Any)
                    .unwrap()
            };
            messages.abandon(operation);
        } else {
            let mode = SendMode::Standard;
            // SAFETY: the vector `data` lives until `finish` has completed the send, and no code changes
            // it until then.
            let operation = unsafe {
                messages.send(mode, Elements::new(origin, &word, LEN as u64), 0, 0).unwrap()
            };
            world.barrier().unwrap();
            messages.finish(operation).unwrap();
        }
    });
}

#[test]
fn a_message_to_oneself_that_nobody_receives_does_not_hold_the_end_up() {
    ranks(2, "a_message_to_oneself_that_nobody_receives_does_not_hold_the_end_up", |world| {
        let data = vec![1u64; LARGE];
        let (word, len) = (word(), LARGE as u64);
        let (messages, mode) = (world.messages(), SendMode::Standard);
        // SAFETY: the vector `data` lives until the send is abandoned, and no code changes it until then.
        let operation = unsafe {
            messages.send(mode, Elements::new(data.as_ptr(), &word, len), world.rank(), 0).unwrap()
        };
        messages.abandon(operation);
    });
}

/// Sets the limit of the address space to 20 MB above what the process uses, or lifts the limit.
fn limit_memory(limited: bool) {
    let used = std::fs::read_to_string("/proc/self/statm").expect("a line");
    let pages: u64 = used.split(' ').next().expect("pages").parse().expect("a number");
    let limit = if limited { pages * 4096 + (20 << 20) } else { libc::RLIM_INFINITY };
    let limit = libc::rlimit { rlim_cur: limit, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` is initialised, and the call only changes a limit of this process.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
}

/// Uses up the address space with one kind of call at a time. The call must return an error, and the library must work
/// on.
#[test]
fn starts_without_memory_are_errors() {
    ranks(1, "starts_without_memory_are_errors", |world| {
        let word = word();
        let works = || {
            let mut got = [0u64];
            world.sendrecv_elements(&[7u64], &word, 1, 0, 1, &mut got, &word, 1, 0, 1).unwrap();
            assert_eq!(got, [7]);
        };
        let (mut kept, mut plans) = (Vec::with_capacity(1 << 18), Vec::with_capacity(1 << 18));
        // The tables of requests and messages have their first entries from now on.
        works();
        limit_memory(true);
        let error = loop {
            match world.dup() {
                Ok(dup) => kept.push(dup),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::NoMemory, "{error}");
        works();
        drop(kept);
        works();
        let error = loop {
            let made = Datatype::vector(3, 1, plans.len() as i64 + 2, &Datatype::named(Named::I32));
            match made.map_err(typepack::Error::from).and_then(|ty| commit(&ty)) {
                Ok(plan) => plans.push(plan),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::NoMemory, "{error}");
        works();
        drop(plans);
        works();
        // The requests of a scope are left to its end.
        let data = [3u64; 4];
        let mut sent = 0;
        let mut error = None;
        world
            .scope(|scope| {
                while error.is_none() {
                    match scope.isend_elements(&data, &word, 4, 0, 2) {
                        Ok(_) => sent += 1,
                        Err(refused) => error = Some(refused),
                    }
                }
                limit_memory(false);
                for _ in 0..sent {
                    let mut got = [0u64; 4];
                    world.recv_elements(&mut got, &word, 4, 0, 2).unwrap();
                    assert_eq!(got, data);
                }
            })
            .unwrap();
        let error = error.expect("an error");
        assert_eq!(error.kind(), ErrorKind::NoMemory, "{error}");
        assert!(sent > 1000);
        works();
    });
}
