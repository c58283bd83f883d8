//! Tests of blocking collective calls, which go through memory that the ranks share.
//!
//! `collectives.rs` and the C program `campaign.c` check the results of such calls; here are the properties that
//! results do not show: no messages, the same bits as by messages, ranks that run ahead, and ranks that fail.

use crate::job::{is_rank, ranks, ranks_with};
use std::time::Duration;
use typepack::engine::Elements;
use typepack::topo::{Adjacency, Grid};
use typepack::{Collective, Communicator, Datatype, ErrorKind, Named, Op, Plan, Root, commit};
use typepack_test_support::random::Random;

/// Returns the part that consists of `values`. `word` is the type of a value.
fn part<'a>(values: &mut [i64], word: &'a Plan) -> Elements<&'a Plan> {
    Elements { origin: values.as_mut_ptr().cast(), plan: word, count: values.len() as u64 }
}

/// Makes every call that goes through cells, with data in a cell and data beside a cell.
fn every_call(world: &Communicator) {
    calls_of(world, 40, &[1, 6, 7, 250]);
}

/// Makes every call that goes through cells, with data of one piece and of many pieces.
fn every_long_call(world: &Communicator) {
    calls_of(world, 6, &[2049, 4100, 20_000, 70_001]);
}

/// Makes `rounds` rounds of every call that goes through cells, with vectors of these lengths.
fn calls_of(world: &Communicator, rounds: usize, lens: &[usize]) {
    let (rank, size) = (world.rank(), world.size());
    let word = commit(&Datatype::named(Named::I64)).unwrap();
    for round in 0..rounds {
        for &len in lens {
            let root = round % size;
            let mut mine: Vec<i64> = (0..len).map(|at| (rank * 1000 + at + round) as i64).collect();
            let of = |rank: usize, at: usize| (rank * 1000 + at + round) as i64;
            world.barrier().unwrap();
            let mut values = mine.clone();
            world.broadcast(&mut values, root).unwrap();
            assert!(values.iter().enumerate().all(|(at, value)| *value == of(root, at)));
            let sum = |end: usize, at: usize| (0..end).map(|rank| of(rank, at)).sum::<i64>();
            let mut all = mine.clone();
            world.all_reduce_in_place(&mut all, Op::Sum).unwrap();
            assert!(all.iter().enumerate().all(|(at, value)| *value == sum(size, at)));
            let mut one = vec![0; len];
            world.reduce(&mine, &mut one, Op::Sum, root).unwrap();
            assert!(one.iter().enumerate().all(|(at, v)| rank != root || *v == sum(size, at)));
            let mut below = vec![0; len];
            world.scan(&mine, &mut below, Op::Sum).unwrap();
            assert!(below.iter().enumerate().all(|(at, value)| *value == sum(rank + 1, at)));
            let mut gathered = vec![0i64; len * size];
            let parts: Vec<Elements<&Plan>> =
                gathered.chunks_mut(len).map(|values| part(values, &word)).collect();
            let own = part(&mut mine, &word);
            // SAFETY: the parts are those of `gathered`, and `own` those of `mine`. Both live until the calls return.
            unsafe {
                world.allgather_raw(Some(own), &parts).unwrap();
                world.gather_raw(Some(own), &parts, root).unwrap();
            }
            for from in 0..size {
                assert!((0..len).all(|at| gathered[from * len + at] == of(from, at)));
            }
            // Rank `i` sends the block `j` of its data to rank `j`.
            let mut outgoing: Vec<i64> =
                (0..len * size).map(|at| (rank * 7919 + at + round) as i64).collect();
            let send: Vec<Elements<&Plan>> =
                outgoing.chunks_mut(len).map(|values| part(values, &word)).collect();
            let receive: Vec<Elements<&Plan>> =
                gathered.chunks_mut(len).map(|values| part(values, &word)).collect();
            let expected = |from: usize, at: usize| (from * 7919 + rank * len + at + round) as i64;
            // SAFETY: the parts are those of `outgoing` and `gathered`, which live until the calls return.
            unsafe {
                let call = Collective::AlltoallEqual { send: Some(&send), receive: &receive };
                world.run_raw(&call).unwrap();
                let call = Collective::AlltoallEqual { send: None, receive: &send };
                world.run_raw(&call).unwrap();
            }
            for from in 0..size {
                assert!((0..len).all(|at| gathered[from * len + at] == expected(from, at)));
                assert!((0..len).all(|at| outgoing[from * len + at] == expected(from, at)));
            }
            let mut below = vec![-7; len];
            world.exscan(&mine, &mut below, Op::Sum).unwrap();
            let exscanned = |at| if rank == 0 { -7 } else { sum(rank, at) };
            assert!(below.iter().enumerate().all(|(at, value)| *value == exscanned(at)));
            unequal_calls(world, &word, len, round);
        }
    }
}

/// Makes the calls in which a rank has different data for different ranks. The longest part has about `len` values.
fn unequal_calls(world: &Communicator, word: &Plan, len: usize, round: usize) {
    let (rank, size) = (world.rank(), world.size());
    let root = round % size;
    let of = |from: usize, to: usize, at: usize| (from * 7919 + to * 131 + at + round) as i64;
    // Some parts are empty, and the longest one is some times as long as the shortest one.
    let len_of = |from: usize, to: usize| match (from + 2 * to + round) % 5 {
        0 => 0,
        1 => len / 7 + 1,
        2 => 1,
        _ => len,
    };
    let sent = |from: usize, to: usize| -> Vec<i64> {
        (0..len_of(from, to)).map(|at| of(from, to, at)).collect()
    };
    let room = |from: usize, to: usize| vec![-1i64; len_of(from, to)];
    let parts = |values: &mut [Vec<i64>]| -> Vec<Elements<&Plan>> {
        values.iter_mut().map(|values| part(values, word)).collect()
    };

    let mut out: Vec<Vec<i64>> = (0..size).map(|to| sent(rank, to)).collect();
    let mut mine = room(root, rank);
    // SAFETY: the parts are those of `out` and `mine`, which live until the call returns.
    unsafe {
        let mine = part(&mut mine, word);
        let parts = parts(&mut out);
        world.scatter_raw(&parts, Some(mine), root).unwrap();
    }
    assert_eq!(mine, sent(root, rank));

    let mut into: Vec<Vec<i64>> = (0..size).map(|from| room(from, rank)).collect();
    // SAFETY: the parts are those of `out` and `into`, which live until the call returns.
    unsafe {
        let (send, receive) = (parts(&mut out), parts(&mut into));
        world.run_raw(&Collective::Alltoall { send: Some(&send), receive: &receive }).unwrap();
    }
    assert!(into.iter().enumerate().all(|(from, values)| *values == sent(from, rank)));

    // In this reduction, rank `i` gets the block of `len_of(0, i)` values.
    let counts: Vec<usize> = (0..size).map(|to| len_of(0, to)).collect();
    let mine: Vec<i64> =
        (0..size).flat_map(|to| (0..counts[to]).map(move |at| of(rank, to, at))).collect();
    let sums: Vec<i64> =
        (0..counts[rank]).map(|at| (0..size).map(|from| of(from, rank, at)).sum()).collect();
    let mut block = vec![-1; counts[rank]];
    world.reduce_scatter(&mine, &mut block, &counts, Op::Sum).unwrap();
    assert_eq!(block, sums);
    // In place, the block replaces the first elements.
    let mut values = mine;
    let (sum, counts) = (
        Op::Sum.combine(&Datatype::named(Named::I64)).unwrap(),
        counts.iter().map(|count| *count as u64).collect::<Vec<_>>(),
    );
    let recv = values.as_mut_ptr().cast();
    let (plan, counts, combine) = (word, &counts[..], &sum);
    let call = Collective::ReduceScatter { send: None, recv, plan, counts, combine };
    // SAFETY: the values of all blocks are at `recv`, and live until the call returns.
    unsafe { world.run_raw(&call).unwrap() };
    assert_eq!(values[..block.len()], sums);
}

/// Makes exchanges between neighbours in grids and graphs: with few and many neighbours, and neighbours that occur
/// several times.
fn neighbor_calls(world: &Communicator) {
    let (rank, size) = (world.rank(), world.size());
    let word = commit(&Datatype::named(Named::I64)).unwrap();
    let grid = Grid::new(&[size, 1], &[true, true]).unwrap();
    let grid = world.cart_create(&grid, false).unwrap().unwrap();
    // Each rank sends `edges` messages to each of the two ranks above.
    for (edges, len) in [(1, 1), (2, 5), (3, 700), (9, 3000), (40, 2)] {
        let to: Vec<usize> = (0..2 * edges).map(|edge| (rank + 1 + edge % 2) % size).collect();
        let from: Vec<usize> =
            (0..2 * edges).map(|edge| (rank + 2 * size - 1 - edge % 2) % size).collect();
        let graph = Adjacency::new(&from, &to, None).unwrap();
        let graph = world.dist_graph_create_adjacent(graph).unwrap();
        for (comm, count) in [(&graph, 2 * edges), (&grid, 4)] {
            for round in 0..12usize {
                let neighbors = comm.topology().unwrap().neighbors();
                let len = |rank: usize, edge: usize| {
                    if (rank + edge + round).is_multiple_of(4) { 0 } else { len + edge }
                };
                let value = |rank: usize, edge: usize| (rank * 100 + edge + round) as i64;
                let mut out: Vec<Vec<i64>> =
                    (0..count).map(|edge| vec![value(rank, edge); len(rank, edge)]).collect();
                // In the grid, a message towards one side arrives from the other side.
                let edge = |place: usize| {
                    if count == 4 && comm.topology().unwrap().grid().is_some() {
                        place ^ 1
                    } else {
                        place
                    }
                };
                let source = |place: usize| neighbors.sources()[place].unwrap();
                let expected: Vec<Vec<i64>> = (0..count)
                    .map(|place| {
                        vec![value(source(place), edge(place)); len(source(place), edge(place))]
                    })
                    .collect();
                let mut into: Vec<Vec<i64>> =
                    expected.iter().map(|values| vec![-1; values.len()]).collect();
                let send: Vec<Elements<&Plan>> =
                    out.iter_mut().map(|values| part(values, &word)).collect();
                let receive: Vec<Elements<&Plan>> =
                    into.iter_mut().map(|values| part(values, &word)).collect();
                // SAFETY: the parts are those of `out` and `into`, which live until the call returns.
                unsafe {
                    let (send, receive) = (&send, &receive);
                    comm.run_raw(&Collective::Neighbors { neighbors, send, receive }).unwrap();
                }
                assert_eq!(into, expected, "{edges} edges, round {round}");
            }
        }
    }
}

#[test]
fn neighbors_of_one_rank() {
    ranks(1, "neighbors_of_one_rank", neighbor_calls);
}

#[test]
fn neighbors_of_two_ranks() {
    ranks(2, "neighbors_of_two_ranks", neighbor_calls);
}

#[test]
fn neighbors_of_four_ranks_that_sleep_at_once() {
    let name = "neighbors_of_four_ranks_that_sleep_at_once";
    ranks_with(4, name, &[("TYPEPACK_SPIN_US", "0")], neighbor_calls);
}

/// Rank 0 sends so many parts to rank 1 that it sends them by messages. Rank 2 sends rank 1 a part of many pieces, and
/// must not wait until rank 0 has ended its messages, because rank 1 receives these after the pieces.
fn messages_beside_pieces(world: &Communicator) {
    const EDGES: usize = 70;
    let rank = world.rank();
    let word = commit(&Datatype::named(Named::I64)).unwrap();
    let (from, to) = match rank {
        0 => (vec![], vec![1; EDGES]),
        1 => ([vec![0; EDGES], vec![2]].concat(), vec![]),
        _ => (vec![], vec![1]),
    };
    let graph =
        world.dist_graph_create_adjacent(Adjacency::new(&from, &to, None).unwrap()).unwrap();
    let (short, long) = (20_000, 1 << 20);
    for round in 0..3_i64 {
        let neighbors = graph.topology().unwrap().neighbors();
        let mut out: Vec<Vec<i64>> = match rank {
            0 => (0..EDGES as i64).map(|edge| vec![round * 1000 + edge; short]).collect(),
            1 => vec![],
            _ => vec![vec![-round; long]],
        };
        let mut into: Vec<Vec<i64>> =
            from.iter().map(|&source| vec![7; if source == 0 { short } else { long }]).collect();
        let send: Vec<Elements<&Plan>> = out.iter_mut().map(|values| part(values, &word)).collect();
        let receive: Vec<Elements<&Plan>> =
            into.iter_mut().map(|values| part(values, &word)).collect();
        // SAFETY: the parts are those of `out` and `into`, which live until the call returns.
        unsafe {
            let (send, receive) = (&send, &receive);
            graph.run_raw(&Collective::Neighbors { neighbors, send, receive }).unwrap();
        }
        for (at, values) in into.iter().enumerate() {
            let value = if at < EDGES { round * 1000 + at as i64 } else { -round };
            assert!(values.iter().all(|&got| got == value), "round {round}, part {at}");
        }
    }
}

#[test]
fn a_rank_by_messages_holds_nobody_up() {
    ranks(3, "a_rank_by_messages_holds_nobody_up", messages_beside_pieces);
}

#[test]
fn a_rank_by_messages_holds_nobody_up_that_sleeps_at_once() {
    let name = "a_rank_by_messages_holds_nobody_up_that_sleeps_at_once";
    ranks_with(3, name, &[("TYPEPACK_SPIN_US", "0")], messages_beside_pieces);
}

/// Gathers vectors whose lengths differ from rank to rank, from short ones to those of many pieces.
fn lengths_of_each_rank(world: &Communicator) {
    let (rank, size) = (world.rank(), world.size());
    let word = commit(&Datatype::named(Named::I64)).unwrap();
    let mut random = Random(77);
    for round in 0..60 {
        let lens: Vec<usize> = (0..size)
            .map(|_| match random.next() % 4 {
                0 => random.next() as usize % 10,
                1 => random.next() as usize % 3000,
                _ => random.next() as usize % 90_000,
            })
            .collect();
        let root = random.next() as usize % size;
        let mut mine: Vec<i64> = (0..lens[rank]).map(|at| (rank + 3 * at + round) as i64).collect();
        let own = part(&mut mine, &word);
        let mut all: Vec<Vec<i64>> = lens.iter().map(|len| vec![-1; *len]).collect();
        let parts: Vec<Elements<&Plan>> =
            all.iter_mut().map(|values| part(values, &word)).collect();
        let gathers = round % 2 == 0;
        // SAFETY: the parts are those of `all`, and `own` those of `mine`. Both live until the calls return.
        unsafe {
            if gathers {
                world.gather_raw(Some(own), &parts, root).unwrap();
            } else {
                world.allgather_raw(Some(own), &parts).unwrap();
            }
        }
        if !gathers || rank == root {
            for (from, part) in all.iter().enumerate() {
                let mut values = part.iter().enumerate();
                assert!(values.all(|(at, value)| *value == (from + 3 * at + round) as i64));
            }
        }
    }
}

#[test]
fn long_calls_of_three_ranks() {
    let name = "long_calls_of_three_ranks";
    let sent = messages(&ranks_with(3, name, &[("TYPEPACK_REPORT", "1")], every_long_call));
    assert!(is_rank() || sent.len() == 3 && sent.iter().all(|sent| *sent < 80), "{sent:?}");
}

#[test]
fn long_calls_of_two_ranks() {
    ranks(2, "long_calls_of_two_ranks", every_long_call);
}

#[test]
fn long_calls_of_ranks_that_sleep_at_once() {
    let name = "long_calls_of_ranks_that_sleep_at_once";
    ranks_with(5, name, &[("TYPEPACK_SPIN_US", "0")], every_long_call);
}

#[test]
fn every_rank_has_a_length_of_its_own() {
    ranks(3, "every_rank_has_a_length_of_its_own", lengths_of_each_rank);
}

#[test]
fn ranks_that_sleep_have_lengths_of_their_own() {
    let name = "ranks_that_sleep_have_lengths_of_their_own";
    ranks_with(4, name, &[("TYPEPACK_SPIN_US", "0")], lengths_of_each_rank);
}

/// Forces each copy method, and switches measuring off.
#[test]
fn long_calls_with_each_copy_method() {
    for (name, value) in [
        ("TYPEPACK_TUNE", "off"),
        ("TYPEPACK_COPY", "vector"),
        #[cfg(target_arch = "x86_64")]
        ("TYPEPACK_COPY", "repeat"),
        #[cfg(target_arch = "x86_64")]
        ("TYPEPACK_COPY", "streaming"),
    ] {
        ranks_with(2, "long_calls_with_each_copy_method", &[(name, value)], every_long_call);
        if is_rank() {
            // This process is a rank of one of the jobs, with the variable of that job.
            break;
        }
    }
}

/// Checks that the report tells how pieces are copied.
#[test]
#[cfg(target_arch = "x86_64")]
fn the_report_tells_how_pieces_are_copied() {
    let name = "the_report_tells_how_pieces_are_copied";
    let output = ranks_with(2, name, &[("TYPEPACK_REPORT", "1")], |world| {
        let mut values = vec![1u64; 1000];
        for round in 0..3000 {
            world.broadcast(&mut values, round % 2).unwrap();
        }
    });
    // Whether a rank has compared all methods depends on the times that it has measured.
    let what = "pieces of collective calls: ";
    for line in output.lines().filter(|line| line.contains(what)) {
        let method = line.split(what).nth(1).unwrap_or_default();
        let known =
            ["vector", "repeat", "streaming", "pages"].iter().any(|name| method.starts_with(name));
        assert!(known && line.contains(": chosen from "), "{line}");
    }
}

/// Returns the number of messages that each rank has sent, from the reports in the output of a job.
fn messages(output: &str) -> Vec<u64> {
    let reports = output.split(": messages ").skip(1);
    reports.map(|rest| rest.split(' ').next().unwrap().parse().unwrap()).collect()
}

#[test]
fn short_calls_need_no_messages() {
    let name = "short_calls_need_no_messages";
    let sent = messages(&ranks_with(3, name, &[("TYPEPACK_REPORT", "1")], every_call));
    assert!(is_rank() || sent.len() == 3 && sent.iter().all(|sent| *sent < 80), "{sent:?}");
}

#[test]
fn calls_go_by_messages_on_request() {
    let name = "calls_go_by_messages_on_request";
    let env = [("TYPEPACK_REPORT", "1"), ("TYPEPACK_COLL", "all:messages")];
    let sent = messages(&ranks_with(3, name, &env, every_call));
    assert!(is_rank() || sent.len() == 3 && sent.iter().all(|sent| *sent > 1000), "{sent:?}");
}

#[test]
fn short_calls_of_ranks_that_sleep_at_once() {
    let name = "short_calls_of_ranks_that_sleep_at_once";
    ranks_with(5, name, &[("TYPEPACK_SPIN_US", "0")], every_call);
}

/// Compares the bits of sums through cells with those of nonblocking calls, which go by messages.
fn sums_have_the_same_bits(world: &Communicator) {
    let (rank, plan) = (world.rank(), commit(&Datatype::named(Named::F64)).unwrap());
    let combine = Op::Sum.combine(&Datatype::named(Named::F64)).unwrap();
    let mut random = Random(rank as u64 + 99);
    for round in 0..30 {
        // The longest vectors are combined in the order of long vectors, with up to seven ranks.
        let lens: &[usize] = if round < 3 { &[1, 5, 300, 5000, 60_000] } else { &[1, 5, 300, 600] };
        for &len in lens {
            let mine: Vec<f64> = (0..len).map(|_| random.next() as f64 / 1e9 - 9e9).collect();
            let results = [true, false].map(|blocking| {
                let mut result = vec![0.0f64; len];
                let (send, recv) = (Some(mine.as_ptr().cast()), result.as_mut_ptr().cast());
                let (plan, count, combine) = (&plan, len as u64, &combine);
                let root = Root::Rank(round % world.size());
                // The blocks differ, and the last one is the longest.
                let mut counts = vec![count / (2 * world.size() as u64); world.size()];
                *counts.last_mut().unwrap() += count - counts.iter().sum::<u64>();
                let calls = [
                    Collective::Allreduce { send, recv, plan, count, combine },
                    Collective::Reduce { send, recv, plan, count, combine, root },
                    Collective::Scan { send, recv, plan, count, combine },
                    Collective::Exscan { send, recv, plan, count, combine },
                    Collective::ReduceScatter { send, recv, plan, counts: &counts, combine },
                ];
                let mut bits = Vec::new();
                for call in &calls {
                    // SAFETY: the vectors hold `len` values and live until the operation is complete.
                    unsafe {
                        if blocking {
                            world.run_raw(call).unwrap();
                        } else {
                            let operation = world.start_raw(call).unwrap();
                            world.messages().finish(operation).unwrap();
                        }
                    }
                    // SAFETY: `recv` is the address of the first of `len` values of `result`.
                    let values = unsafe { std::slice::from_raw_parts(recv.cast::<f64>(), len) };
                    bits.extend(values.iter().map(|value| value.to_bits()));
                }
                bits
            });
            assert_eq!(results[0], results[1], "{len} values");
        }
    }
}

#[test]
fn sums_of_two_have_the_same_bits() {
    ranks(2, "sums_of_two_have_the_same_bits", sums_have_the_same_bits);
}

#[test]
fn sums_of_six_have_the_same_bits() {
    ranks(6, "sums_of_six_have_the_same_bits", sums_have_the_same_bits);
}

#[test]
fn sums_of_seven_have_the_same_bits() {
    ranks(7, "sums_of_seven_have_the_same_bits", sums_have_the_same_bits);
}

/// Forces each way of the reductions.
#[test]
fn sums_of_each_way_have_the_same_bits() {
    let values =
        ["all:cells", "all:slices", "all:whole", "all:pieces", "allreduce:messages,reduce:slices"];
    for value in values {
        for size in [2, 5] {
            let env = [("TYPEPACK_COLL", value), ("SUMS_RANKS", if size == 2 { "2" } else { "5" })];
            let name = "sums_of_each_way_have_the_same_bits";
            let size = std::env::var("SUMS_RANKS").map_or(size, |ranks| ranks.parse().unwrap());
            ranks_with(size, name, &env, sums_have_the_same_bits);
            if is_rank() {
                // This process is a rank of one of the jobs, with the variables of that job.
                return;
            }
        }
    }
}

/// The root broadcasts while the other ranks are late, so it has to wait, and sleeps, until its cells are free.
#[test]
fn a_root_that_runs_ahead_waits_for_room() {
    ranks(3, "a_root_that_runs_ahead_waits_for_room", |world| {
        for round in 0u64..400 {
            if world.rank() == 1 && round % 50 == 0 {
                std::thread::sleep(Duration::from_millis(3));
            }
            // Some of the broadcasts have many pieces.
            let len = if round % 20 == 7 { 90_000 } else { 700 };
            let mut values = vec![if world.rank() == 0 { round } else { 0 }; len];
            world.broadcast(&mut values, 0).unwrap();
            assert!(values.iter().all(|value| *value == round));
        }
    });
}

/// Checks that a call with wrong arguments counts as a call of its rank, and that the ranks that wait for this rank get
/// an error.
#[test]
fn a_rank_that_fails_tells_the_others() {
    ranks(3, "a_rank_that_fails_tells_the_others", |world| {
        let rank = world.rank();
        let word = commit(&Datatype::named(Named::I64)).unwrap();
        let sum = Op::Sum.combine(&Datatype::named(Named::I64)).unwrap();
        // By messages, rank 0 would wait for ever.
        for _ in 0..3 {
            world.barrier().unwrap();
        }
        for round in 0..20 {
            let (mine, mut result) = ([1i64], [0i64]);
            let send = if rank == 1 { None } else { Some(mine.as_ptr().cast()) };
            let recv = result.as_mut_ptr().cast();
            let (plan, combine, root) = (&word, &sum, Root::Rank(0));
            let call = Collective::Reduce { send, recv, plan, count: 1, combine, root };
            // SAFETY: the arrays at `send` and `recv` hold one word and live until the call returns.
            let reduced = unsafe { world.run_raw(&call) };
            match rank {
                1 => assert_eq!(reduced.unwrap_err().kind(), ErrorKind::Buffer),
                0 => assert_eq!(reduced.unwrap_err().kind(), ErrorKind::Other, "{round}"),
                _ => reduced.unwrap(),
            }
            // A slice that is too short is found before the call.
            let mut short = [0i64; 1];
            let many = if rank == 2 { 2 } else { 1 };
            let skipped = world.broadcast_elements(&mut short, &word, many, 0);
            assert_eq!(skipped.is_err(), rank == 2);
            let mut all = [1i64];
            world.all_reduce_in_place(&mut all, Op::Sum).unwrap();
            assert_eq!(all, [3]);
        }
    });
}

/// Ranks with different lengths get errors, and the next call is not disturbed.
#[test]
fn lengths_that_differ_are_errors() {
    ranks(2, "lengths_that_differ_are_errors", |world| {
        for _ in 0..5 {
            world.barrier().unwrap();
        }
        for (ours, theirs) in [(3usize, 1usize), (1, 3), (100, 3), (3, 100)] {
            let mut values = vec![7u64; if world.rank() == 0 { ours } else { theirs }];
            let result = world.broadcast(&mut values, 0);
            if world.rank() == 1 {
                let kind = result.unwrap_err().kind();
                let expected = if ours > theirs { ErrorKind::Truncated } else { ErrorKind::Count };
                assert_eq!(kind, expected);
            } else {
                result.unwrap();
            }
            let result = world.all_reduce_in_place(&mut values, Op::Sum);
            assert!(matches!(result.unwrap_err().kind(), ErrorKind::Truncated | ErrorKind::Count));
            world.barrier().unwrap();
        }
    });
}

/// The same with lengths on both sides of the limits at which the ranks cut the data in another way.
#[test]
fn long_lengths_that_differ_are_errors() {
    ranks(2, "long_lengths_that_differ_are_errors", |world| {
        let rank = world.rank();
        for _ in 0..5 {
            world.barrier().unwrap();
        }
        let word = commit(&Datatype::named(Named::I64)).unwrap();
        let lens = [(3usize, 5000usize), (5000, 3), (2000, 2100), (5000, 100_000), (100_000, 5000)];
        for (ours, theirs) in lens.into_iter().chain(lens) {
            let len = if rank == 0 { ours } else { theirs };
            let mut values = vec![7u64; len];
            let result = world.broadcast(&mut values, 0);
            assert_eq!(result.is_err(), rank == 1, "{ours} {theirs}");
            let result = world.all_reduce_in_place(&mut values, Op::Sum);
            assert!(matches!(result.unwrap_err().kind(), ErrorKind::Truncated | ErrorKind::Count));
            // Rank 0 expects as many values as it has.
            let mut gathered = vec![0i64; 2 * ours];
            let parts: Vec<Elements<&Plan>> =
                gathered.chunks_mut(ours).map(|values| part(values, &word)).collect();
            let own =
                Elements { origin: values.as_mut_ptr().cast(), plan: &word, count: len as u64 };
            // SAFETY: the parts are those of `gathered`, and `own` those of `values`. Both live until the call returns.
            let result = unsafe { world.gather_raw(Some(own), &parts, 0) };
            assert_eq!(result.is_err(), rank == 0, "{ours} {theirs}");
            world.barrier().unwrap();
        }
        // A part that is longer or shorter than the root says.
        for (ours, theirs) in [(3usize, 1usize), (1, 3), (1, 9000), (9000, 1), (9000, 9001)] {
            let mut mine = vec![0i64; theirs];
            let mut all = vec![7i64; 2 * ours];
            let parts: Vec<Elements<&Plan>> =
                all.chunks_mut(ours).map(|values| part(values, &word)).collect();
            let mine = if rank == 0 { None } else { Some(part(&mut mine, &word)) };
            // SAFETY: the parts are those of `all`, and `mine` is that of `mine`. Both live until the call returns.
            let result = unsafe { world.scatter_raw(&parts, mine, 0) };
            assert_eq!(result.is_err(), rank == 1, "{ours} {theirs}");
            world.barrier().unwrap();
        }
        let mut values = vec![1u64; 5000];
        world.all_reduce_in_place(&mut values, Op::Sum).unwrap();
        assert!(values.iter().all(|value| *value == 2));
    });
}

/// Checks that each rank of a reduce-scatter gets an error if one rank passes other counts with the same sum. Without
/// the hash of the counts in the cells, the ranks combined elements of different blocks.
fn other_counts_with_the_same_sum(world: &Communicator) {
    let (rank, size) = (world.rank(), world.size());
    for _ in 0..5 {
        world.barrier().unwrap();
    }
    for odd in [0, size - 1] {
        // Data in a cell, beside a cell, and in many pieces.
        for len in [1usize, 40, 9000, 40_000] {
            let values: Vec<i64> = (0..4 * size * len).map(|at| at as i64).collect();
            let mut counts = vec![4 * len; size];
            if rank == odd {
                counts[0] -= len;
                counts[size - 1] += len;
            }
            let mut block = vec![0; counts[rank]];
            let result = world.reduce_scatter(&values, &mut block, &counts, Op::Sum);
            let error = result.unwrap_err();
            assert_eq!((error.kind(), error.argument()), (ErrorKind::Count, "counts"), "{len}");
            // The next call is not disturbed.
            let counts = vec![4 * len; size];
            let mut block = vec![0; 4 * len];
            world.reduce_scatter(&values, &mut block, &counts, Op::Sum).unwrap();
            let first = 4 * len * rank;
            let is_right = |(at, value): (usize, &i64)| *value == ((first + at) * size) as i64;
            assert!(block.iter().enumerate().all(is_right));
        }
    }
}

#[test]
fn two_ranks_with_other_counts_get_errors() {
    let name = "two_ranks_with_other_counts_get_errors";
    ranks(2, name, other_counts_with_the_same_sum);
}

#[test]
fn ranks_with_other_counts_get_errors() {
    ranks(4, "ranks_with_other_counts_get_errors", other_counts_with_the_same_sum);
}

/// Checks that all calls of all ranks go by messages if one rank has no address space for the memory of the others.
#[test]
fn a_rank_without_address_space_keeps_all_from_cells() {
    let name = "a_rank_without_address_space_keeps_all_from_cells";
    let sent = messages(&ranks_with(3, name, &[("TYPEPACK_REPORT", "1")], |world| {
        // The ranks make the cells in the third call. In the calls before, they map what they need for messages.
        world.barrier().unwrap();
        world.barrier().unwrap();
        if world.rank() == 1 {
            // This rank uses its own heap first. The limit below leaves no address space for an extent of another.
            drop(typepack::SharedBuffer::<u8>::zeroed(1).unwrap());
            let used = std::fs::read_to_string("/proc/self/statm").unwrap();
            let pages: u64 = used.split(' ').next().unwrap().parse().unwrap();
            let limit = pages * 4096 + (1 << 20);
            let limit = libc::rlimit { rlim_cur: limit, rlim_max: libc::RLIM_INFINITY };
            // SAFETY: the call reads `limit`, which outlives the call, and changes only a limit of this process.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
        }
        every_call(world);
    }));
    assert!(is_rank() || sent.len() == 3 && sent.iter().all(|sent| *sent > 1000), "{sent:?}");
}

/// Checks that dropped communicators give their memory back: makes and drops many of them.
#[test]
fn many_communicators_have_cells() {
    ranks(2, "many_communicators_have_cells", |world| {
        for round in 0..300 {
            let dup = world.dup().unwrap();
            for _ in 0..6 {
                let mut all = [1i64];
                dup.all_reduce_in_place(&mut all, Op::Sum).unwrap();
                assert_eq!(all, [2], "{round}");
            }
        }
    });
}
