//! Tests of nonblocking and persistent collective calls. Most tests compare the results with those of
//! blocking calls.

use crate::job::{is_rank, mpiexec, ranks, ranks_with, run};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::time::Duration;
use typepack::engine::Elements;
use typepack::{
    Collective, Combine, Communicator, Datatype, ErrorKind, Named, Op, Operation, Operator, Plan,
    SendMode, commit,
};
use typepack_test_support::random::Random;

/// The types of the calls. `plans` has types of three words: contiguous, with gaps, and permuted. The other
/// types are for reductions.
struct Types {
    plans: Vec<(Plan, usize)>,
    word: Plan,
    sparse: Plan,
    pair: Plan,
}

impl Types {
    fn new() -> Self {
        let word = Datatype::named(Named::I64);
        let dense = Datatype::contiguous(3, &word).unwrap();
        let gaps = Datatype::vector(3, 1, 2, &word).unwrap();
        let permuted = Datatype::indexed_block(1, &[2, 0, 4], &word).unwrap();
        let permuted = Datatype::resized(0, 48, &permuted).unwrap();
        let gaps = Datatype::resized(0, 48, &gaps).unwrap();
        let plan = |ty: &Datatype| commit(ty).unwrap();
        Self {
            plans: vec![(plan(&dense), 3), (plan(&gaps), 6), (plan(&permuted), 6)],
            word: plan(&word),
            sparse: plan(&Datatype::resized(0, 16, &word).unwrap()),
            pair: plan(&Datatype::contiguous(2, &word).unwrap()),
        }
    }
}

/// A collective call that all ranks of a communicator make, and this rank's memory for it.
struct Case {
    kind: u64,
    root: usize,
    in_place: bool,
    /// Number of elements of each rank. In an alltoall, a message between the ranks `i` and `j` has
    /// `counts[i] + counts[j]` elements.
    counts: Vec<usize>,
    /// The plan of the elements that this rank sends, and the number of words that one of these elements
    /// spans in memory. `to` has the plan and this number for the elements that this rank receives.
    from: (Plan, usize),
    to: (Plan, usize),
    combine: Combine,
    send: Vec<i64>,
    recv: Vec<i64>,
    rank: usize,
}

/// Combines pairs that stand for linear functions: the pair `(a, b)` stands for x -> a x + b, and the result
/// is the composition of both functions. This operation does not commute.
fn compose(lower: *const u8, upper: *mut u8, elements: u64) {
    for i in 0..elements as usize {
        // SAFETY: the reduction passes two vectors that hold `elements` pairs each, and `i < elements`.
        unsafe {
            let [a, b] = lower.cast::<[i64; 2]>().add(i).read_unaligned();
            let upper = upper.cast::<[i64; 2]>().add(i);
            let [c, d] = upper.read_unaligned();
            upper.write_unaligned([a.wrapping_mul(c), a.wrapping_mul(d).wrapping_add(b)]);
        }
    }
}

/// Adds two vectors of words that lie 16 bytes apart, so every second word in memory belongs to the vector.
fn add_sparse(lower: *const u8, upper: *mut u8, elements: u64) {
    for i in 0..elements as usize {
        // SAFETY: the reduction passes two vectors of `elements` words each. The words lie 16 bytes apart,
        // and `i < elements`.
        unsafe {
            let lower = lower.cast::<i64>().add(2 * i).read_unaligned();
            let upper = upper.cast::<i64>().add(2 * i);
            upper.write_unaligned(upper.read_unaligned().wrapping_add(lower));
        }
    }
}

impl Case {
    /// Makes a random call. `shared` gives the same random numbers on all ranks, and `own` gives different
    /// numbers on each rank.
    fn new(comm: &Communicator, types: &Types, shared: &mut Random, own: &mut Random) -> Self {
        let (rank, size) = (comm.rank(), comm.size());
        let kind = shared.below(11);
        let root = shared.below(size as u64) as usize;
        let most = [1, 5, 60, 2500][shared.below(4) as usize];
        let counts: Vec<usize> = (0..size).map(|_| shared.below(most + 1) as usize).collect();
        let in_place = shared.below(3) == 0;
        let pick = |own: &mut Random| types.plans[own.below(3) as usize].clone();
        let (mut from, mut to) = (pick(own), pick(own));
        let mut combine = Combine::from(Operator::Sum.combiner(Named::I64).unwrap());
        if kind >= 6 {
            (from, combine) = match shared.below(3) {
                0 => ((types.word.clone(), 1), combine),
                1 => {
                    let add = Combine::user(|lower, upper, _, n| add_sparse(lower, upper, n));
                    ((types.sparse.clone(), 2), add)
                }
                _ => {
                    let pairs = Combine::user(|lower, upper, _, n| compose(lower, upper, n));
                    ((types.pair.clone(), 2), pairs)
                }
            };
            to = from.clone();
        }
        // This number of words is enough for every kind of call.
        let room = (counts.iter().sum::<usize>() + size) * 6 * if kind == 5 { size + 1 } else { 1 };
        let mut fill = || (0..room).map(|_| own.next() as i64).collect::<Vec<_>>();
        let (send, recv) = (fill(), fill());
        Self { kind, root, in_place, counts, from, to, combine, send, recv, rank }
    }

    /// Returns one part for every rank. The parts follow each other in `memory`.
    fn parts<'a>(
        memory: &[i64],
        (plan, words): &'a (Plan, usize),
        counts: &[usize],
    ) -> Vec<Elements<&'a Plan>> {
        let mut at = memory.as_ptr().cast_mut();
        let mut parts = Vec::new();
        for &count in counts {
            parts.push(Elements { origin: at.cast(), plan, count: count as u64 });
            at = at.wrapping_add(count * words);
        }
        assert!(at <= memory.as_ptr().cast_mut().wrapping_add(memory.len()));
        parts
    }

    fn call<R>(&self, send: &[i64], recv: &[i64], f: impl FnOnce(&Collective<'_>) -> R) -> R {
        let Self { root, in_place, rank, ref counts, ref combine, .. } = *self;
        let at = |memory: &[i64]| memory.as_ptr().cast_mut().cast::<u8>();
        let own = counts[rank] as u64;
        let part = |memory: &[i64], plan, count| Elements { origin: at(memory), plan, count };
        let placed = |there: bool, part| (!(in_place && there)).then_some(part);
        let sends = Self::parts(send, &self.from, counts);
        let receives = Self::parts(recv, &self.to, counts);
        let reduced = (send.as_ptr().cast(), at(recv), &self.from.0, counts[0] as u64);
        match self.kind {
            0 => f(&Collective::Barrier),
            1 => {
                let part = part(recv, &self.to.0, counts[root] as u64);
                f(&Collective::Broadcast { part, root: root.into() })
            }
            2 => {
                let mine = placed(rank == root, part(send, &self.from.0, own));
                f(&Collective::Gather { mine, parts: &receives, root: root.into() })
            }
            3 => {
                let mine = placed(rank == root, part(recv, &self.to.0, own));
                f(&Collective::Scatter { parts: &sends, mine, root: root.into() })
            }
            4 => {
                let mine = placed(true, part(send, &self.from.0, own));
                f(&Collective::Allgather { mine, parts: &receives })
            }
            5 => {
                // The messages between ranks i and j have `counts[i] + counts[j]` elements.
                let both: Vec<usize> = counts.iter().map(|count| count + counts[rank]).collect();
                let sends = Self::parts(send, &self.from, &both);
                let receives = Self::parts(recv, &self.to, &both);
                let send = (!in_place).then_some(&sends[..]);
                f(&Collective::Alltoall { send, receive: &receives })
            }
            6 => {
                let (send, recv, plan, count) = reduced;
                let send = (!(in_place && rank == root)).then_some(send);
                f(&Collective::Reduce { send, recv, plan, count, combine, root: root.into() })
            }
            10 => {
                let (send, recv, plan, _) = reduced;
                let send = (!in_place).then_some(send);
                let counts: Vec<u64> = counts.iter().map(|count| *count as u64).collect();
                f(&Collective::ReduceScatter { send, recv, plan, counts: &counts, combine })
            }
            kind => {
                let (send, recv, plan, count) = reduced;
                let send = (!in_place).then_some(send);
                f(&match kind {
                    7 => Collective::Allreduce { send, recv, plan, count, combine },
                    8 => Collective::Scan { send, recv, plan, count, combine },
                    _ => Collective::Exscan { send, recv, plan, count, combine },
                })
            }
        }
    }
}

/// Returns the numbers below `n` in random order. Each rank passes its own random numbers, so the order
/// differs from rank to rank.
fn shuffled(n: usize, random: &mut Random) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    order
}

/// Completes the operations in an order that differs from rank to rank. Some operations are completed by a
/// wait, the others by repeated tests.
fn complete(comm: &Communicator, started: &[Operation], random: &mut Random) {
    let messages = comm.messages();
    for at in shuffled(started.len(), random) {
        match started[at] {
            Operation::Pending(id) if random.below(2) == 0 => loop {
                if let Some(result) = messages.look(|ongoing| ongoing.fetch(id)).unwrap() {
                    result.unwrap();
                    break;
                }
            },
            operation => drop(messages.finish(operation).unwrap()),
        }
    }
}

fn rounds(comm: &Communicator, types: &Types, shared: &mut Random, own: &mut Random) {
    let outstanding = 1 + shared.below(8) as usize;
    let cases: Vec<Case> = (0..outstanding).map(|_| Case::new(comm, types, shared, own)).collect();
    let fresh = || -> Vec<(Vec<i64>, Vec<i64>)> {
        cases.iter().map(|case| (case.send.clone(), case.recv.clone())).collect()
    };
    let expected = fresh();
    for (case, (send, recv)) in cases.iter().zip(&expected) {
        // SAFETY: `send` and `recv` are disjoint vectors that hold the parts and live until the call returns.
        case.call(send, recv, |call| unsafe { comm.run_raw(call).unwrap() });
    }
    let check = |got: &[(Vec<i64>, Vec<i64>)], form: &str| {
        for (at, case) in cases.iter().enumerate() {
            let same = got[at] == expected[at];
            assert!(same, "{form} {at}: kind {} root {} {:?}", case.kind, case.root, case.counts);
        }
    };
    let memory = fresh();
    let mut started = Vec::new();
    for (case, (send, recv)) in cases.iter().zip(&memory) {
        // SAFETY: `send` and `recv` are different vectors of `memory` that hold the parts, and they live
        // until all operations are complete.
        started.push(case.call(send, recv, |call| unsafe { comm.start_raw(call).unwrap() }));
    }
    complete(comm, &started, own);
    check(&memory, "nonblocking");
    let mut memory = fresh();
    let prepared: Vec<_> = cases
        .iter()
        .zip(&memory)
        .map(|(case, (send, recv))| case.call(send, recv, |call| comm.prepare_raw(call).unwrap()))
        .collect();
    for _ in 0..3 {
        for (case, (send, recv)) in cases.iter().zip(&mut memory) {
            send.copy_from_slice(&case.send);
            recv.copy_from_slice(&case.recv);
        }
        // Every rank starts the operations in a different order.
        let mut started = Vec::new();
        for at in shuffled(prepared.len(), own) {
            // SAFETY: the vectors of the prepared operations live until the round is complete. Only the
            // operations access them until then.
            started.push(unsafe { prepared[at].start().unwrap() });
        }
        complete(comm, &started, own);
        check(&memory, "persistent");
    }
}

fn campaign(world: &Communicator) {
    let types = Types::new();
    let mut own = Random(77 + world.rank() as u64);
    for round in 0..12u64 {
        let mut shared = Random(round);
        // All ranks draw the same number of colors here. Below, the ranks of one color use the same seed,
        // so that they agree on their calls.
        let colors = if round % 3 == 2 { 1 + shared.below(3) } else { 1 };
        let color = (world.rank() as u64 * 7 + round) % colors;
        let key = (world.rank() as i32 * 5 + round as i32) % 4;
        let comm = match round % 3 {
            0 => world.clone(),
            1 => world.idup().unwrap().wait().unwrap(),
            _ => world.split(Some(color as u32), key).unwrap().unwrap(),
        };
        rounds(&comm, &types, &mut Random(1000 * round + color), &mut own);
    }
}

macro_rules! campaigns {
    ($($name:ident $size:literal;)*) => {
        $(
            #[test]
            fn $name() {
                ranks($size, stringify!($name), campaign);
            }
        )*
    };
}

campaigns! {
    one_rank 1;
    two_ranks 2;
    three_ranks 3;
    four_ranks 4;
    five_ranks 5;
    six_ranks 6;
    seven_ranks 7;
    eight_ranks 8;
    nine_ranks 9;
}

#[test]
fn compared_types_in_nonblocking_calls() {
    let name = "compared_types_in_nonblocking_calls";
    ranks_with(3, name, &[("TYPEPACK_CHECK_TYPES", "1")], campaign);
}

#[test]
fn every_message_by_rendezvous() {
    ranks_with(4, "every_message_by_rendezvous", &[("TYPEPACK_TRANSPORT", "pipeline")], campaign);
}

/// Checks that many safe nonblocking calls may be under way at the same time.
#[test]
fn scopes_have_collective_calls() {
    ranks(3, "scopes_have_collective_calls", |world| {
        let (rank, size) = (world.rank(), world.size());
        let mut values: Vec<[u64; 100]> = (0..8).map(|n| [(rank * 10 + n) as u64; 100]).collect();
        let mut sums = [[rank as i64 + 1; 3]; 4];
        world
            .scope(|scope| {
                let mut requests = Vec::new();
                for (n, values) in values.iter_mut().enumerate() {
                    requests.push(scope.ibroadcast(values, n % size).unwrap());
                }
                for sums in &mut sums {
                    scope.iall_reduce_in_place(sums, Op::Sum).unwrap();
                }
                let barrier = scope.ibarrier().unwrap();
                // Make a blocking call while the nonblocking calls are under way.
                let mut most = [rank as f64];
                world.all_reduce_in_place(&mut most, Op::Max).unwrap();
                assert_eq!(most, [size as f64 - 1.0]);
                scope.wait(barrier).unwrap();
                scope.wait_all(requests).unwrap();
            })
            .unwrap();
        for (n, values) in values.iter().enumerate() {
            assert!(values.iter().all(|&value| value == (n % size * 10 + n) as u64));
        }
        assert_eq!(sums, [[6; 3]; 4]);
    });
}

#[test]
fn a_round_must_be_over_before_the_next() {
    ranks(2, "a_round_must_be_over_before_the_next", |world| {
        let barrier = world.prepare_raw(&Collective::Barrier).unwrap();
        let word = commit(&Datatype::named(Named::I64)).unwrap();
        if world.rank() == 1 {
            // Rank 0 sends this message after it has checked that its round is not complete. So this rank
            // must not start its round earlier.
            world.recv_elements(&mut [0i64], &word, 1, 0, 0).unwrap();
        }
        // SAFETY: a barrier uses no memory of the caller, so `start` has no condition to meet.
        let first = unsafe { barrier.start().unwrap() };
        if world.rank() == 0 {
            assert!(matches!(first, Operation::Pending(_)));
            // SAFETY: the barrier names no memory.
            let error = unsafe { barrier.start() }.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Request);
            world.send_elements(&[0i64], &word, 1, 1, 0).unwrap();
        }
        world.messages().finish(first).unwrap();
        // An operation that the program drops while it runs must continue.
        // SAFETY: barriers name no memory of their caller.
        let second = unsafe { barrier.start().unwrap() };
        drop(barrier);
        world.messages().finish(second).unwrap();
    });
}

/// Checks that calls that complete at once make progress for other operations. Rank 0 sends a long message
/// and repeats `call` until rank 1 has received the message. Rank 1 then creates a file, which tells rank 0
/// to stop.
fn deliver_meanwhile(
    world: &Communicator,
    mut call: impl FnMut() -> bool,
    mut served: impl FnMut(),
) {
    const LEN: usize = 1 << 20;
    let byte = commit(&Datatype::named(Named::U8)).unwrap();
    let mut job = [std::process::id().cast_signed()];
    let number = commit(&Datatype::named(Named::I32)).unwrap();
    world.broadcast_elements(&mut job, &number, 1, 0).unwrap();
    let name = format!("typepack-delivered-{}", job[0]);
    let delivered = std::env::temp_dir().join(name);
    if world.rank() == 0 {
        let data = vec![5u8; LEN];
        let started = std::time::Instant::now();
        let messages = world.messages();
        // SAFETY: the vector `data` lives until `finish` returns, which completes the operation, and nobody
        // changes it.
        let sent = unsafe {
            messages
                .send(SendMode::Standard, Elements::new(data.as_ptr(), &byte, LEN as u64), 1, 3)
                .unwrap()
        };
        // The pauses grow, so that a rank 1 that gets no CPU for some seconds does not use up the calls.
        let mut pause = Duration::from_millis(1);
        while !delivered.exists() && call() {
            assert!(started.elapsed() < Duration::from_secs(100), "the message does not move");
            std::thread::sleep(pause);
            pause = (pause * 101 / 100).min(Duration::from_millis(50));
        }
        assert!(delivered.exists(), "the message does not move");
        messages.finish(sent).unwrap();
        std::fs::remove_file(&delivered).unwrap();
    } else {
        let mut data = vec![0u8; LEN];
        world.recv_elements(&mut data, &byte, LEN as u64, 0, 3).unwrap();
        assert!(data.iter().all(|&byte| byte == 5));
        std::fs::write(&delivered, "").unwrap();
        served();
    }
}

/// Checks that a broadcast call at the root still progresses other operations, even though the broadcast
/// itself completes at once.
#[test]
fn broadcasts_that_are_over_at_once_make_progress() {
    let (name, env) =
        ("broadcasts_that_are_over_at_once_make_progress", [("TYPEPACK_TRANSPORT", "ring")]);
    ranks_with(2, name, &env, |world| {
        let call = || {
            world.broadcast(&mut [1u64], 0).unwrap();
            true
        };
        let served = || {
            let mut go_on = [1u64];
            while go_on == [1] {
                world.broadcast(&mut go_on, 0).unwrap();
            }
        };
        deliver_meanwhile(world, call, served);
        if world.rank() == 0 {
            world.broadcast(&mut [0u64], 0).unwrap();
        }
    });
}

/// Checks that receives of messages that have already arrived still make progress for other operations,
/// although they complete at once.
#[test]
fn receives_that_are_over_at_once_make_progress() {
    let (name, env) =
        ("receives_that_are_over_at_once_make_progress", [("TYPEPACK_TRANSPORT", "ring")]);
    ranks_with(2, name, &env, |world| {
        let word = commit(&Datatype::named(Named::I64)).unwrap();
        let mut left = 5000;
        if world.rank() == 0 {
            for _ in 0..left {
                world.send_elements(&[1i64], &word, 1, 0, 1).unwrap();
            }
        }
        let call = || {
            world.recv_elements(&mut [0i64], &word, 1, 0, 1).unwrap();
            left -= 1;
            left > 0
        };
        deliver_meanwhile(world, call, || {});
    });
}

/// Checks that the messages of a schedule belong to the schedule: no other code can fetch their results,
/// cancel them or abandon them.
#[test]
fn messages_of_a_collective_operation_are_its_own() {
    ranks(3, "messages_of_a_collective_operation_are_its_own", |world| {
        let word = commit(&Datatype::named(Named::I64)).unwrap();
        let (rank, size) = (world.rank(), world.size());
        if rank != 0 {
            world.recv_elements(&mut [0i64], &word, 1, 0, 0).unwrap();
        }
        // SAFETY: `Collective::Barrier` uses no memory of its caller.
        let operation = unsafe { world.start_raw(&Collective::Barrier).unwrap() };
        if rank == 0 {
            let Operation::Pending(own) = operation else { panic!("the others have not come") };
            let messages = world.messages();
            for index in 0..64u64 {
                for generation in 1..64 {
                    let id = generation << 32 | index;
                    if id == own {
                        continue;
                    }
                    messages
                        .change(|ongoing| {
                            assert!(!ongoing.cancel_receive(id));
                            assert!(ongoing.fetch(id).is_none_or(|result| result.is_err()));
                            ongoing.forget(id);
                        })
                        .unwrap();
                    messages.abandon(Operation::Pending(id));
                }
            }
            for other in 1..size {
                world.send_elements(&[0i64], &word, 1, other, 0).unwrap();
            }
        }
        world.messages().finish(operation).unwrap();
    });
}

#[test]
fn threads_have_collective_calls_on_communicators_of_their_own() {
    ranks(3, "threads_have_collective_calls_on_communicators_of_their_own", |world| {
        let comms: Vec<Communicator> = (0..2).map(|_| world.dup().unwrap()).collect();
        std::thread::scope(|threads| {
            for (n, comm) in comms.iter().enumerate() {
                threads.spawn(move || {
                    let types = Types::new();
                    let mut own = Random(n as u64 + 10 * comm.rank() as u64);
                    for round in 0..15 {
                        rounds(comm, &types, &mut Random(round * 2 + n as u64), &mut own);
                    }
                });
            }
        });
    });
}

#[test]
fn a_panic_in_a_scope_fails_those_who_depend_on_it() {
    ranks(3, "a_panic_in_a_scope_fails_those_who_depend_on_it", |world| {
        const LEN: usize = 50_000;
        let mut values = vec![world.rank() as u64; LEN];
        if world.rank() == 1 {
            let mut early = vec![0u64; LEN];
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                world.scope(|scope| {
                    scope.ibroadcast(&mut values, 0).unwrap();
                    scope.ibroadcast(&mut early, 1).unwrap();
                    scope.ibarrier().unwrap();
                    panic!("on purpose");
                })
            }));
            assert!(panicked.is_err());
            values.fill(9);
            early.fill(9);
            world.barrier().unwrap();
            assert!(values.iter().chain(&early).all(|&value| value == 9));
        } else {
            let mut early = vec![0u64; LEN];
            // Each call may succeed or fail, already at its start if the news of the panic is there. No rank may wait
            // forever.
            let _failed = world.scope(|scope| {
                let _first = scope.ibroadcast(&mut values, 0);
                let _second = scope.ibroadcast(&mut early, 1);
                let _third = scope.ibarrier();
            });
            world.barrier().unwrap();
        }
        let mut last = [world.rank() as u64];
        world.broadcast(&mut last, 2).unwrap();
        assert_eq!(last, [2]);
    });
}

#[test]
fn duplicates_overlap_and_may_be_dropped() {
    ranks(4, "duplicates_overlap_and_may_be_dropped", |world| {
        let mut duplicates: Vec<_> = (0..8).map(|_| world.idup().unwrap()).collect();
        let mut sum = [1i64];
        world.all_reduce_in_place(&mut sum, Op::Sum).unwrap();
        // Complete one duplicate by repeated tests.
        let mut last = duplicates.pop().unwrap();
        let last = loop {
            if let Some(comm) = last.test().unwrap() {
                break comm;
            }
        };
        for duplicate in duplicates.drain(..4) {
            let comm = duplicate.wait().unwrap();
            comm.barrier().unwrap();
            let mut sum = [comm.rank() as i64];
            comm.all_reduce_in_place(&mut sum, Op::Sum).unwrap();
            assert_eq!(sum, [6]);
        }
        drop(duplicates);
        last.barrier().unwrap();
        world.barrier().unwrap();
    });
}

/// Checks that a duplicate has no communicator before its operation is complete, and none if the operation
/// fails. This must also hold at rank 0, which knows the new number from the start.
#[test]
fn a_duplicate_that_is_not_complete_has_no_communicator() {
    let name = "a_duplicate_that_is_not_complete_has_no_communicator";
    // By rendezvous, the sends of rank 0 wait for the other rank, so its operations are not complete at the start.
    ranks_with(2, name, &[("TYPEPACK_TRANSPORT", "pipeline")], |world| {
        let word = commit(&Datatype::named(Named::I64)).unwrap();
        if world.rank() == 0 {
            let (good, bad) = (world.idup().unwrap(), world.idup().unwrap());
            for duplicate in [&good, &bad] {
                assert!(matches!(duplicate.operation(), Operation::Pending(_)));
                assert_eq!(duplicate.communicator().unwrap_err().kind(), ErrorKind::Request);
            }
            world.messages().abandon(bad.operation());
            world.send_elements(&[0i64], &word, 1, 1, 0).unwrap();
            good.wait().unwrap().barrier().unwrap();
            world.barrier().unwrap();
            assert_eq!(bad.communicator().unwrap_err().kind(), ErrorKind::Request);
        } else {
            world.recv_elements(&mut [0i64], &word, 1, 0, 0).unwrap();
            let (good, bad) = (world.idup().unwrap(), world.idup());
            good.wait().unwrap().barrier().unwrap();
            // Rank 0 has sent either the number or a void message (a message that reports a failure). If the void
            // message was there before the call, the call itself has returned the error. The duplicate must exist only
            // if the operation has succeeded.
            if let Ok(bad) = bad {
                let finished = world.messages().finish(bad.operation());
                assert_eq!(bad.communicator().is_ok(), finished.is_ok());
            }
            world.barrier().unwrap();
        }
    });
}

/// Checks that operations of a communicator complete even if the program has dropped the communicator.
#[test]
fn freed_communicators_complete_their_operations() {
    ranks(3, "freed_communicators_complete_their_operations", |world| {
        let messages = world.messages();
        let word = commit(&Datatype::named(Named::I64)).unwrap();
        let combine = Combine::from(Operator::Sum.combiner(Named::I64).unwrap());
        let mut sum = [1i64, 2];
        let dup = world.dup().unwrap();
        let (recv, plan, count) = (sum.as_mut_ptr().cast(), &word, 2);
        let call = Collective::Allreduce { send: None, recv, plan, count, combine: &combine };
        // SAFETY: the array `sum`, which `call` names, lives until the operation is complete.
        let operation = unsafe { dup.start_raw(&call).unwrap() };
        drop(dup);
        messages.finish(operation).unwrap();
        assert_eq!(sum, [3, 6]);
    });
}

/// Checks that a nonblocking call returns an error if rank 2 dies while the other ranks wait for it.
#[test]
fn a_death_ends_nonblocking_calls() {
    let name = "a_death_ends_nonblocking_calls";
    if is_rank() {
        // SAFETY: SIG_IGN only makes the process ignore the signal and installs no handler.
        unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
        let universe = typepack::init().expect("joining the job");
        let world = universe.world();
        let word = commit(&Datatype::named(Named::I64)).unwrap();
        if world.rank() == 2 {
            // The other ranks ignore SIGTERM when they have sent this message.
            for other in 0..2 {
                world.recv_elements(&mut [0i64], &word, 1, other, 0).unwrap();
            }
            std::process::exit(3);
        }
        let sent = world.send_elements(&[0i64], &word, 1, 2, 0);
        // The start returns the error if the rank already knows of the death.
        // SAFETY: `Collective::Barrier` names no memory.
        let started = unsafe { world.start_raw(&Collective::Barrier) };
        let error = started.and_then(|operation| world.messages().finish(operation)).unwrap_err();
        for error in sent.err().into_iter().chain([error]) {
            assert_eq!(error.kind(), ErrorKind::ProcAborted);
        }
        println!("rank {} was told", world.rank());
        std::process::exit(6);
    }
    let mut command = Command::new(mpiexec());
    // SIGKILL must not come before the other ranks have told of the error, so it comes a minute after SIGTERM.
    command.args(["-n", "3", "-kill-after", "60"]).args(crate::job::body(name));
    let output = run(command, name, &[]);
    let text = crate::job::text(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    for rank in 0..2 {
        assert!(text.contains(&format!("rank {rank} was told")), "{text}");
    }
}
