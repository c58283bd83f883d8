//! Tests of exchanges through cells in which ranks disagree, fail, or go by messages: edges of one side, lengths that
//! differ, absent neighbours, and neighbours that occur many times.
//!
//! `cells.rs` has the tests of the other calls through cells, and of exchanges without failures.

use crate::job::{is_rank, ranks, ranks_with};
use std::time::Duration;
use typepack::engine::Elements;
use typepack::topo::{Adjacency, Grid};
use typepack::{
    Collective, Combine, Communicator, Datatype, ErrorKind, Named, Op, Plan, Result, commit,
};
use typepack_test_support::attempts::attempts;

/// Lets the ranks of a job sleep at once when they wait.
const SLEEPS: (&str, &str) = ("TYPEPACK_SPIN_US", "0");

fn word() -> Plan {
    commit(&Datatype::named(Named::I64)).unwrap()
}

/// Returns the parts that consist of `values`. `word` is the type of a value.
fn parts<'a>(values: &mut [Vec<i64>], word: &'a Plan) -> Vec<Elements<&'a Plan>> {
    let part = |values: &mut Vec<i64>| Elements {
        origin: values.as_mut_ptr().cast(),
        plan: word,
        count: values.len() as u64,
    };
    values.iter_mut().map(part).collect()
}

/// Makes a graph with these edges, and then the calls in which the ranks make their cells.
fn graph(world: &Communicator, from: &[usize], to: &[usize]) -> Communicator {
    let adjacency = Adjacency::new(from, to, None).unwrap();
    let graph = world.dist_graph_create_adjacent(adjacency).unwrap();
    for _ in 0..5 {
        graph.barrier().unwrap();
    }
    graph
}

/// Exchanges data between the neighbours of `comm`.
fn exchange(comm: &Communicator, out: &mut [Vec<i64>], into: &mut [Vec<i64>]) -> Result<()> {
    let word = word();
    let (send, receive) = (parts(out, &word), parts(into, &word));
    let neighbors = comm.topology().unwrap().neighbors();
    // SAFETY: the parts are those of `out` and `into`, which live until the call returns.
    unsafe { comm.run_raw(&Collective::Neighbors { neighbors, send: &send, receive: &receive }) }
}

/// Returns how often ranks have found news without a wake-up, from the reports in the output of a job.
fn unrung(output: &str) -> u64 {
    let counts = output.split("slept for 100 ms and then found ").skip(1);
    counts.map(|rest| rest.split(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

const ROUNDS: usize = 30;

/// Rank 0 expects data of rank 1 and of rank 2, but rank 1 has no data for rank 0.
fn edges_of_one_side(world: &Communicator) {
    let rank = world.rank();
    // In the first graph, rank 1 has data for no rank, and in the second one for rank 3.
    for has_data in [false, true] {
        let (from, to): (&[usize], &[usize]) = match rank {
            0 => (&[1, 2], &[]),
            1 if has_data => (&[], &[3]),
            1 => (&[], &[]),
            2 => (&[], &[0]),
            _ if has_data => (&[1], &[]),
            _ => (&[], &[]),
        };
        let graph = graph(world, from, to);
        for round in 0..ROUNDS {
            // The data of a cell, and of some pieces.
            let len = if round % 3 == 0 { 9000 } else { 2 };
            let mut out = vec![vec![rank as i64; len]; to.len()];
            let mut into = vec![vec![-1; len]; from.len()];
            if rank != 0 {
                // In most rounds, rank 0 waits already, and rank 1 is the last one to come.
                std::thread::sleep(Duration::from_millis(if rank == 1 { 5 } else { 2 }));
            }
            let exchanged = exchange(&graph, &mut out, &mut into);
            if rank == 0 {
                assert_eq!(exchanged.unwrap_err().kind(), ErrorKind::Other, "{round}");
                assert!(into[1].iter().all(|value| *value == 2));
            } else {
                exchanged.unwrap();
                assert!(into.iter().flatten().all(|value| *value == 1));
            }
            graph.barrier().unwrap();
        }
    }
}

#[test]
fn an_edge_of_one_side_is_an_error() {
    ranks(4, "an_edge_of_one_side_is_an_error", edges_of_one_side);
}

/// Checks that a rank that sleeps is woken by the ranks that have no data for it. Without the wake-up, the rank slept
/// until its time limit of 100 ms in most of the rounds.
#[test]
fn an_edge_of_one_side_wakes_the_rank_that_sleeps() {
    let name = "an_edge_of_one_side_wakes_the_rank_that_sleeps";
    attempts(|_| {
        let output = ranks_with(4, name, &[SLEEPS, ("TYPEPACK_REPORT", "1")], edges_of_one_side);
        // A rank that is about to wake another one may lose its CPU, so a few rounds may end in this way.
        let unrung = unrung(&output);
        if is_rank() || unrung < ROUNDS as u64 / 2 { Ok(()) } else { Err(output) }
    });
}

/// Rank 0 has so many parts for rank 1 that it sends them by messages, and rank 2 has one part of many pieces for
/// rank 1. In turn, each of the ranks fails.
fn failures_beside_messages(world: &Communicator) {
    const EDGES: usize = 70;
    let rank = world.rank();
    let (from, to) = match rank {
        0 => (vec![], vec![1; EDGES]),
        1 => ([vec![0; EDGES], vec![2]].concat(), vec![]),
        _ => (vec![], vec![1]),
    };
    let graph = graph(world, &from, &to);
    let long = 20_000;
    for round in 0..24 {
        let failure = round % 6;
        let sent = |source: usize, at: usize| (round * 1000 + source * 100 + at) as i64;
        let mut out: Vec<Vec<i64>> = match rank {
            0 => (0..EDGES).map(|at| vec![sent(0, at); 3]).collect(),
            1 => vec![],
            _ => vec![vec![sent(2, 0); long]],
        };
        let mut into: Vec<Vec<i64>> =
            from.iter().map(|&source| vec![-1; if source == 0 { 3 } else { long }]).collect();
        match failure {
            // Rank 2 has more data or less data than rank 1 expects.
            1 if rank == 2 => out[0].push(7),
            2 if rank == 2 => out[0].truncate(5),
            // A rank has a wrong number of parts, and so makes no exchange.
            3 if rank == 2 => out.clear(),
            4 if rank == 0 => out.truncate(1),
            5 if rank == 1 => into.truncate(9),
            _ => {}
        }
        let exchanged = exchange(&graph, &mut out, &mut into).map_err(|error| error.kind());
        let expected = match (failure, rank) {
            (1, 1) => Err(ErrorKind::Truncated),
            (2, 1) => Err(ErrorKind::Count),
            (3 | 4, 1) => Err(ErrorKind::Other),
            (3, 2) | (4, 0) | (5, 1) => Err(ErrorKind::Argument),
            _ => Ok(()),
        };
        assert_eq!(exchanged, expected, "round {round}");
        if rank == 1 && failure != 5 {
            for (at, values) in into.iter().enumerate() {
                let (source, at) = if at < EDGES { (0, at) } else { (2, 0) };
                let lost = match failure {
                    0 => false,
                    4 => source == 0,
                    _ => source == 2,
                };
                assert!(lost || values.iter().all(|value| *value == sent(source, at)), "{round}");
            }
        }
        // A rank that has failed in the exchange takes part in the next call.
        let mut all = [1i64];
        graph.all_reduce_in_place(&mut all, Op::Sum).unwrap();
        assert_eq!(all, [3]);
    }
}

#[test]
fn failures_beside_messages_are_errors() {
    ranks(3, "failures_beside_messages_are_errors", failures_beside_messages);
}

#[test]
fn failures_beside_messages_are_errors_of_ranks_that_sleep() {
    let name = "failures_beside_messages_are_errors_of_ranks_that_sleep";
    ranks_with(3, name, &[SLEEPS], failures_beside_messages);
}

/// Exchanges data in grids without wrap-around: the ranks at the edges have absent neighbours.
fn absent_neighbors(world: &Communicator) {
    let (rank, size) = (world.rank(), world.size());
    for dims in [vec![size], vec![2, size / 2], vec![1, size]] {
        let periods = vec![false; dims.len()];
        let grid = Grid::new(&dims, &periods).unwrap();
        let grid = world.cart_create(&grid, false).unwrap().unwrap();
        let neighbors = grid.topology().unwrap().neighbors();
        let sources = neighbors.sources().to_vec();
        assert_eq!(sources.len(), 2 * dims.len());
        for round in 0..20 {
            let len = [1, 6, 500, 9000][round % 4];
            let sent = |from: usize, side: usize| (from * 100 + side * 10 + round) as i64;
            let mut out: Vec<Vec<i64>> =
                (0..sources.len()).map(|side| vec![sent(rank, side); len]).collect();
            let mut into = vec![vec![-1i64; len]; sources.len()];
            exchange(&grid, &mut out, &mut into).unwrap();
            for (side, source) in sources.iter().enumerate() {
                // A message towards one side arrives from the other side. Nothing arrives from an absent neighbour.
                let expected = source.map_or(-1, |source| sent(source, side ^ 1));
                assert!(into[side].iter().all(|value| *value == expected), "{dims:?} {side}");
            }
        }
    }
}

#[test]
fn absent_neighbors_of_four_ranks() {
    ranks(4, "absent_neighbors_of_four_ranks", absent_neighbors);
}

#[test]
fn absent_neighbors_of_six_ranks_that_sleep() {
    ranks_with(6, "absent_neighbors_of_six_ranks_that_sleep", &[SLEEPS], absent_neighbors);
}

/// Makes calls in which some parts have other lengths at the receiver than at the sender.
fn other_lengths(world: &Communicator) {
    let (rank, size) = (world.rank(), world.size());
    let others: Vec<usize> = (1..size).map(|distance| (rank + distance) % size).collect();
    let graph = graph(world, &others, &others);
    for (theirs, ours) in [(3, 1), (1, 3), (0, 2), (2, 0), (9000, 1), (1, 9000), (9000, 9001)] {
        // The last rank expects parts of `ours` values, and the other ranks send it parts of `theirs` values.
        let (last, value) = (size - 1, |from: usize| (from * 1000 + theirs) as i64);
        let room = if rank == last { ours } else { 5 };
        let sent = |to: usize| if to == last { theirs } else { 5 };
        let wrong = if theirs > ours { ErrorKind::Truncated } else { ErrorKind::Count };
        let check = |exchanged: Result<()>, into: &[Vec<i64>], from: &[usize]| {
            if rank == last {
                assert_eq!(exchanged.unwrap_err().kind(), wrong, "{theirs} {ours}");
            } else {
                exchanged.unwrap();
                let mut values = from.iter().zip(into);
                assert!(values.all(|(from, into)| into.iter().all(|got| *got == value(*from))));
            }
        };
        let mut out: Vec<Vec<i64>> = others.iter().map(|&to| vec![value(rank); sent(to)]).collect();
        let mut into: Vec<Vec<i64>> = others.iter().map(|_| vec![-1; room]).collect();
        check(exchange(&graph, &mut out, &mut into), &into, &others);

        let all: Vec<usize> = (0..size).collect();
        let len = |to: usize| if to == rank { 4 } else { sent(to) };
        let mut out: Vec<Vec<i64>> = all.iter().map(|&to| vec![value(rank); len(to)]).collect();
        let mut into: Vec<Vec<i64>> =
            all.iter().map(|&from| vec![-1; if from == rank { 4 } else { room }]).collect();
        let word = word();
        let (send, receive) = (parts(&mut out, &word), parts(&mut into, &word));
        // SAFETY: the parts are those of `out` and `into`, which live until the call returns.
        let exchanged = unsafe {
            graph.run_raw(&Collective::Alltoall { send: Some(&send), receive: &receive })
        };
        check(exchanged, &into, &all);
    }
}

#[test]
fn other_lengths_are_errors() {
    ranks(3, "other_lengths_are_errors", other_lengths);
}

#[test]
fn other_lengths_are_errors_of_ranks_that_sleep() {
    ranks_with(4, "other_lengths_are_errors_of_ranks_that_sleep", &[SLEEPS], other_lengths);
}

/// Exchanges data with two neighbours that occur many times, in an order that mixes them. With 64 parts the data go
/// through cells, and with more by messages.
fn many_edges(world: &Communicator) {
    let (rank, size) = (world.rank(), world.size());
    for edges in [63, 64, 65, 130] {
        // Two of three edges lead to the next rank.
        let distance = |edge: usize| if edge % 3 == 1 { 2 } else { 1 };
        let to: Vec<usize> = (0..edges).map(|edge| (rank + distance(edge)) % size).collect();
        let from: Vec<usize> =
            (0..edges).map(|edge| (rank + 2 * size - distance(edge)) % size).collect();
        let graph = graph(world, &from, &to);
        for round in 0..12 {
            let most = [1, 20, 900][round % 3];
            let len = |from: usize, edge: usize| (from + 5 * edge + round) % most + edge % 2;
            let value = |from: usize, edge: usize| (from * 1000 + edge + round) as i64;
            let data = |from: usize, edge: usize| vec![value(from, edge); len(from, edge)];
            let mut out: Vec<Vec<i64>> = (0..edges).map(|edge| data(rank, edge)).collect();
            let expected: Vec<Vec<i64>> =
                from.iter().enumerate().map(|(edge, &from)| data(from, edge)).collect();
            let mut into: Vec<Vec<i64>> =
                expected.iter().map(|values| vec![-1; values.len()]).collect();
            exchange(&graph, &mut out, &mut into).unwrap();
            assert_eq!(into, expected, "{edges} edges, round {round}");
        }
    }
}

#[test]
fn neighbors_that_occur_many_times() {
    ranks(3, "neighbors_that_occur_many_times", many_edges);
}

#[test]
fn neighbors_that_occur_many_times_of_ranks_that_sleep() {
    let name = "neighbors_that_occur_many_times_of_ranks_that_sleep";
    ranks_with(5, name, &[SLEEPS], many_edges);
}

/// Returns a sum as a user's function, which calls `before` first.
fn slow_sum(before: impl Fn() + Send + Sync + 'static) -> Combine {
    Combine::user(move |lower, upper, _, elements| {
        before();
        for at in 0..elements as usize {
            // SAFETY: the reduction passes the addresses of `elements` words.
            unsafe { *upper.cast::<i64>().add(at) += *lower.cast::<i64>().add(at) };
        }
    })
}

/// Checks that ranks do not choose the method of their copies by the time of a user's function.
#[test]
#[cfg(target_arch = "x86_64")]
fn the_time_of_a_users_function_chooses_no_copy() {
    let name = "the_time_of_a_users_function_chooses_no_copy";
    let output = ranks_with(2, name, &[("TYPEPACK_REPORT", "1")], |world| {
        let (word, sum) = (word(), slow_sum(|| {}));
        let mine = vec![1i64; 1000];
        let mut values = vec![0i64; 1000];
        let (send, recv) = (Some(mine.as_ptr().cast()), values.as_mut_ptr().cast());
        let (plan, count, combine) = (&word, 1000, &sum);
        for _ in 0..3000 {
            // SAFETY: the vectors at `send` and `recv` hold 1000 words and live until the calls return.
            unsafe {
                world.run_raw(&Collective::Scan { send, recv, plan, count, combine }).unwrap();
                world.run_raw(&Collective::Allreduce { send, recv, plan, count, combine }).unwrap();
            }
        }
        assert_eq!(values, [2; 1000]);
    });
    assert!(!output.contains("pieces of collective calls"), "{output}");
}

/// Checks that a user's function that makes a call on the communicator of its reduction gets an error. With a lock of
/// the communicator, the rank waited for itself.
#[test]
fn a_function_gets_an_error_for_a_call_on_its_own_communicator() {
    let name = "a_function_gets_an_error_for_a_call_on_its_own_communicator";
    ranks(3, name, |world| {
        let (rank, word) = (world.rank(), word());
        for _ in 0..5 {
            world.barrier().unwrap();
        }
        let own = world.clone();
        let sum = slow_sum(move || {
            assert_eq!(own.barrier().unwrap_err().kind(), ErrorKind::Other);
        });
        for round in 0..10 {
            let (mine, mut value) = ([rank as i64 + round], [0i64]);
            let (send, recv) = (Some(mine.as_ptr().cast()), value.as_mut_ptr().cast());
            let (plan, count, combine) = (&word, 1, &sum);
            // SAFETY: the arrays at `send` and `recv` hold one word and live until the calls return.
            unsafe {
                world.run_raw(&Collective::Allreduce { send, recv, plan, count, combine }).unwrap();
                assert_eq!(value, [3 + 3 * round]);
                world.run_raw(&Collective::Scan { send, recv, plan, count, combine }).unwrap();
            }
            let below: i64 = (0..=rank as i64).map(|rank| rank + round).sum();
            assert_eq!(value, [below]);
            // The failed calls of the functions do not count, so the next call by messages matches.
            let request = world.dup().unwrap();
            request.barrier().unwrap();
        }
    });
}
