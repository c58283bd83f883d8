//! Tests of communicators that contain only some of the ranks, and of collective calls on data with different
//! layouts.

use crate::job::{ranks, ranks_with};
use typepack::engine::Elements;
use typepack::{
    Collective, Combine, Communicator, Comparison, Datatype, ErrorKind, Named, Op, Operator, Plan,
    Source, Tag, commit,
};

fn word() -> Plan {
    commit(&Datatype::named(Named::I64)).unwrap()
}

/// Returns the world rank of each rank of `comm`.
fn members(comm: &Communicator) -> Vec<usize> {
    (0..comm.size()).map(|rank| comm.group().world_rank(rank).unwrap()).collect()
}

/// Sends a message around the ring of the ranks of `comm`, then reduces a value over all ranks, and checks
/// both results.
fn talk(comm: &Communicator, salt: i64) {
    let (rank, size, word) = (comm.rank(), comm.size(), word());
    let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
    let mut got = [0i64];
    let status = comm
        .sendrecv_elements(
            &[rank as i64 + salt],
            &word,
            1,
            right,
            3,
            &mut got,
            &word,
            1,
            Source::Any,
            3,
        )
        .unwrap();
    assert_eq!((got, status.source), ([left as i64 + salt], left));
    // The send is nonblocking, because some transports complete a send only when its receive is posted.
    let sent = [salt];
    comm.scope(|scope| {
        scope.isend_elements(&sent, &word, 1, right, 4).unwrap();
        assert_eq!(comm.probe(Source::Any, Tag::Any).unwrap().source, left);
        assert_eq!(comm.recv_elements(&mut got, &word, 1, left, 4).unwrap().source, left);
    })
    .unwrap();
    let mut sum = [1i64];
    comm.all_reduce_in_place(&mut sum, Op::Sum).unwrap();
    assert_eq!(sum, [size as i64]);
}

fn parts(world: &Communicator) {
    let (rank, size) = (world.rank(), world.size());
    // Split the ranks into even and odd ranks, each group in reversed order.
    let half = world.split(Some(rank as u32 % 2), -(rank as i32)).unwrap().unwrap();
    let expected: Vec<usize> = (0..size).rev().filter(|r| r % 2 == rank % 2).collect();
    assert_eq!(members(&half), expected);
    assert_eq!(expected[half.rank()], rank);
    talk(&half, 100 * (rank as i64 % 2));
    // Split with equal keys, so that the ranks keep their order. One rank takes no part.
    let rest = world.split((rank != size - 1).then_some(u32::MAX), 0).unwrap();
    assert_eq!(rest.is_some(), rank != size - 1);
    if let Some(rest) = &rest {
        assert_eq!(members(rest), (0..size - 1).collect::<Vec<_>>());
        talk(rest, 7);
        talk(&rest.dup().unwrap(), 8);
    }
    assert!(world.split_shared(false, 0).unwrap().is_none());
    let all = world.split_shared(true, 0).unwrap().unwrap();
    assert_eq!(world.compare(&all), Comparison::Congruent);
    assert_eq!(world.compare(&world.clone()), Comparison::Identical);
    let last_first: Vec<i64> = (0..size as i64).rev().collect();
    let reversed = world.create(&world.group().include(last_first).unwrap()).unwrap().unwrap();
    talk(&reversed, 1);
    let wanted = if size == 1 { Comparison::Congruent } else { Comparison::Similar };
    assert_eq!(world.compare(&reversed), wanted);
    // Each rank passes the group of its own half; the two groups are disjoint.
    let disjoint = reversed.create(half.group()).unwrap().unwrap();
    assert_eq!(half.compare(&disjoint), Comparison::Congruent);
    talk(&disjoint, 9);
    // Only the members call `create_group`.
    let first = world.group().include([0]).unwrap();
    let alone = world.create(&first).unwrap();
    assert_eq!(alone.is_some(), rank == 0);
    if rank % 2 == 0 {
        let group = half.group();
        let even = world.create_group(group, 5).unwrap().unwrap();
        talk(&even, 20);
        assert_eq!(world.create_group(group, -1).unwrap_err().kind(), ErrorKind::Tag);
    }
    if size > 1 {
        // One rank passes a group with other members. The call fails on all ranks.
        let group = if half.rank() == 0 { world.group() } else { half.group() };
        let error = half.create(group).unwrap_err();
        if half.rank() == 0 {
            assert_eq!((error.kind(), error.argument()), (ErrorKind::Group, "group"));
        }
    }
    world.barrier().unwrap();
}

#[test]
fn parts_of_one() {
    ranks(1, "parts_of_one", parts);
}

#[test]
fn parts_of_two() {
    ranks(2, "parts_of_two", parts);
}

#[test]
fn parts_of_five() {
    ranks(5, "parts_of_five", parts);
}

#[test]
fn groups_are_made_communicators_by_threads_at_once() {
    ranks(4, "groups_are_made_communicators_by_threads_at_once", |world| {
        std::thread::scope(|threads| {
            for thread in 0..4i32 {
                threads.spawn(move || {
                    for round in 0..20 {
                        // The groups that the four threads pass to `create_group` overlap, so only the tag
                        // distinguishes the calls.
                        let without = world.group().exclude([(thread as i64 + round) % 4]).unwrap();
                        if without.rank_of(world.rank()).is_some() {
                            let comm = world.create_group(&without, thread).unwrap().unwrap();
                            talk(&comm, 1000 * i64::from(thread) + round);
                        }
                    }
                });
            }
            // Meanwhile all ranks also make collective calls on the whole communicator.
            for _ in 0..50 {
                world.barrier().unwrap();
            }
        });
    });
}

/// Returns parts of one vector: one block of words for each of `sizes`, with a gap of one word after each
/// block.
fn blocks<'a>(memory: &mut [i64], sizes: &[usize], plan: &'a Plan) -> Vec<Elements<&'a Plan>> {
    assert_eq!(memory.len(), sizes.iter().sum::<usize>() + sizes.len());
    let (base, mut at) = (memory.as_mut_ptr(), 0);
    let mut parts = Vec::new();
    for &size in sizes {
        parts.push(Elements { origin: base.wrapping_add(at).cast(), plan, count: size as u64 });
        at += size + 1;
    }
    parts
}

fn value(from: usize, to: usize, i: usize) -> i64 {
    (from * 1_000_000 + to * 10_000 + i) as i64
}

fn exchanges(world: &Communicator) {
    let (rank, size, word) = (world.rank(), world.size(), word());
    // `stride` describes every second word of a vector. A rank's own part of a gather, scatter or allgather
    // has this layout. All other parts are contiguous.
    let stride = commit(&Datatype::resized(0, 16, &Datatype::named(Named::I64)).unwrap()).unwrap();
    for scale in [0usize, 1, 300, 5000] {
        // Rank r contributes (r + 1) * scale words.
        let sizes: Vec<usize> = (0..size).map(|r| (r + 1) * scale).collect();
        let total = sizes.iter().sum::<usize>() + size;
        let strided = |to: usize, len: usize| -> Vec<i64> {
            (0..2 * len).map(|i| if i % 2 == 0 { value(rank, to, i / 2) } else { -9 }).collect()
        };
        let check = |memory: &[i64], to: usize, sizes: &[usize]| {
            let mut at = 0;
            for (from, &len) in sizes.iter().enumerate() {
                let got = &memory[at..at + len];
                assert!(got.iter().enumerate().all(|(i, &v)| v == value(from, to, i)), "{from}");
                assert_eq!(memory[at + len], -1, "the gap behind {from}'s block");
                at += len + 1;
            }
        };
        for root in 0..size {
            let mut mine = strided(root, sizes[rank]);
            let part = Elements {
                origin: mine.as_mut_ptr().cast(),
                plan: &stride,
                count: sizes[rank] as u64,
            };
            let mut all = vec![-1i64; total];
            let parts = blocks(&mut all, &sizes, &word);
            // SAFETY: the vectors `mine` and `all` hold the elements of `part` and `parts`. They live longer
            // than the call and do not overlap.
            unsafe { world.gather_raw(Some(part), &parts, root).unwrap() };
            if rank == root {
                check(&all, root, &sizes);
            } else {
                assert!(all.iter().all(|&v| v == -1));
            }
            // The scatter returns to each rank the block that the gather took from it.
            let mut back = vec![0i64; 2 * sizes[rank]];
            let part = Elements { origin: back.as_mut_ptr().cast(), ..part };
            let parts = blocks(&mut all, &sizes, &word);
            // SAFETY: `back` and the vector of `parts` hold the elements, are disjoint and live longer than
            // the call.
            unsafe { world.scatter_raw(&parts, Some(part), root).unwrap() };
            for i in 0..sizes[rank] {
                assert_eq!((back[2 * i], back[2 * i + 1]), (mine[2 * i], 0));
            }
        }
        for in_place in [false, true] {
            let mut all = vec![-1i64; total];
            let parts = blocks(&mut all, &sizes, &word);
            let mut mine = strided(77, sizes[rank]);
            let at = sizes[..rank].iter().sum::<usize>() + rank;
            let part = Elements {
                origin: mine.as_mut_ptr().cast(),
                plan: &stride,
                count: sizes[rank] as u64,
            };
            if in_place {
                for i in 0..sizes[rank] {
                    all[at + i] = value(rank, 77, i);
                }
            }
            // SAFETY: the vectors of `part` and `parts` hold the elements, are disjoint and live longer than
            // the call.
            unsafe { world.allgather_raw((!in_place).then_some(part), &parts).unwrap() };
            check(&all, 77, &sizes);
        }
        // Rank i sends (i + j) * scale words to rank j.
        let sizes: Vec<usize> = (0..size).map(|r| (r + rank) * scale).collect();
        let total = sizes.iter().sum::<usize>() + size;
        for in_place in [false, true] {
            let mut out = vec![-1i64; total];
            let mut at = 0;
            for (to, &len) in sizes.iter().enumerate() {
                for i in 0..len {
                    out[at + i] = value(rank, to, i);
                }
                at += len + 1;
            }
            let mut got = if in_place { out.clone() } else { vec![-1i64; total] };
            let (send, receive) =
                (blocks(&mut out, &sizes, &word), blocks(&mut got, &sizes, &word));
            // SAFETY: the vectors of `send` and `receive` hold the elements, are disjoint and live longer
            // than the call.
            unsafe {
                world.alltoall_raw((!in_place).then_some(&send[..]), &receive).unwrap();
            }
            check(&got, rank, &sizes);
        }
    }
    // The operation of these reductions does not commute, so the test notices a wrong order of the operands.
    let pair = commit(&Datatype::contiguous(2, &Datatype::named(Named::I64)).unwrap()).unwrap();
    for count in [1usize, 3, 2000] {
        // The pair (a, b) stands for the function x -> a x + b, and the operation composes two functions.
        let mine: Vec<[i64; 2]> =
            (0..count).map(|i| [2 + (rank as i64 % 3), rank as i64 + i as i64]).collect();
        let compose = |lower: [i64; 2], upper: [i64; 2]| {
            [
                lower[0].wrapping_mul(upper[0]),
                lower[0].wrapping_mul(upper[1]).wrapping_add(lower[1]),
            ]
        };
        let combine = Combine::user(move |lower, upper, _, elements| {
            for i in 0..elements as usize {
                // SAFETY: the reduction passes the addresses of two vectors of `elements` pairs, and `i <
                // elements`.
                unsafe {
                    let lower = lower.cast::<[i64; 2]>().add(i).read_unaligned();
                    let upper = upper.cast::<[i64; 2]>().add(i);
                    upper.write_unaligned(compose(lower, upper.read_unaligned()));
                }
            }
        });
        let of = |r: usize, i: usize| [2 + (r as i64 % 3), r as i64 + i as i64];
        let expected: Vec<[i64; 2]> = (0..count)
            .map(|i| (1..size).fold(of(0, i), |whole, r| compose(whole, of(r, i))))
            .collect();
        let send: *const u8 = mine.as_ptr().cast();
        for root in 0..size {
            for in_place in [false, true] {
                let mut got = if in_place { mine.clone() } else { vec![[0i64; 2]; count] };
                let send = (!in_place || rank != root).then_some(send);
                let recv = got.as_mut_ptr().cast();
                let (plan, count, combine) = (&pair, count as u64, &combine);
                let call =
                    Collective::Reduce { send, recv, plan, count, combine, root: root.into() };
                // SAFETY: the vectors `mine` and `got`, to which `send` and `recv` point, hold `count` pairs
                // and live longer than the call.
                unsafe { world.run_raw(&call).unwrap() };
                if rank == root {
                    assert_eq!(got, expected, "root {root}");
                }
            }
        }
        let mut got = vec![[0i64; 2]; count];
        let recv = got.as_mut_ptr().cast();
        let (send, plan, count, combine) = (Some(send), &pair, count as u64, &combine);
        let call = Collective::Allreduce { send, recv, plan, count, combine };
        // SAFETY: `send` and `recv` point to two different vectors. Each holds `count` pairs and lives longer
        // than the call.
        unsafe { world.run_raw(&call).unwrap() };
        assert_eq!(got, expected);
    }
    // This pair type has a gap. No call may write to the gap.
    let located = commit(&Datatype::named(Named::SHORT_INT)).unwrap();
    let function = Operator::Maxloc.combiner(Named::SHORT_INT).unwrap();
    let combine = Combine::from(function);
    let mine = [rank as i16 % 3, 11, rank as i16, 0];
    let mut got = [-1i16, -2, -3, -4];
    // SAFETY: both buffers hold one pair of 8 bytes and live longer than the call.
    unsafe {
        let (send, recv) = (mine.as_ptr().cast(), got.as_mut_ptr().cast());
        let (send, plan, combine) = (Some(send), &located, &combine);
        let call = Collective::Allreduce { send, recv, plan, count: 1, combine };
        world.run_raw(&call).unwrap();
    }
    let most = (size - 1).min(2) as i16;
    assert_eq!(got, [most, -2, most, 0]);
}

#[test]
fn exchanges_of_one() {
    ranks(1, "exchanges_of_one", exchanges);
}

#[test]
fn exchanges_of_three() {
    ranks(3, "exchanges_of_three", exchanges);
}

#[test]
fn exchanges_of_four_through_the_pipeline() {
    let env = [("TYPEPACK_TRANSPORT", "pipeline")];
    ranks_with(4, "exchanges_of_four_through_the_pipeline", &env, exchanges);
}

#[test]
fn exchanges_of_six() {
    ranks(6, "exchanges_of_six", exchanges);
}

#[test]
fn parts_of_different_sizes_are_errors() {
    ranks(2, "parts_of_different_sizes_are_errors", |world| {
        let (rank, word) = (world.rank(), word());
        let mut values = [0i64; 4];
        let origin = values.as_mut_ptr().cast();
        let part = |count| Elements { origin, plan: &word, count };
        // SAFETY: the array holds more words than any of the parts, and lives longer than the calls.
        unsafe {
            let result = world.broadcast_raw(part(if rank == 0 { 2 } else { 3 }), 0);
            assert_eq!(result.map_err(|e| e.kind()), [Ok(()), Err(ErrorKind::Count)][rank]);
            let result = world.broadcast_raw(part(if rank == 0 { 2 } else { 1 }), 0);
            assert_eq!(result.map_err(|e| e.kind()), [Ok(()), Err(ErrorKind::Truncated)][rank]);
            let error = world.allgather_raw(None, &[part(1)]).unwrap_err();
            assert_eq!((error.kind(), error.argument()), (ErrorKind::Argument, "parts"));
        }
        world.barrier().unwrap();
    });
}
