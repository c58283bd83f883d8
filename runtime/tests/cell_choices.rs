//! Tests of blocking collective calls whose ways are chosen by measurement: whatever way a call goes, its result has
//! the same bits, and ranks with wrong arguments get errors.

use crate::job::{is_rank, ranks_with};
use typepack::{Communicator, ErrorKind, Op};

/// Number of rounds. The ranks compare all ways of a call within the first few hundred ones.
const ROUNDS: usize = 600;

/// The values of a rank. Sums of them depend on the order in which they are added.
fn values(rank: usize, len: usize) -> Vec<f64> {
    (0..len).map(|at| 1.0 / (1 + rank * 37 + at * 11 % 1013) as f64 - 3e-9 * at as f64).collect()
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Makes calls of several kinds and lengths. In some rounds one rank passes another length or a wrong argument.
fn calls(world: &Communicator) {
    let (rank, size) = (world.rank(), world.size());
    let lens = [2500, 8192, 20_000];
    let mine = lens.map(|len| values(rank, len));
    let mut sums: [Option<Vec<u64>>; 3] = Default::default();
    let mut scans: [Option<Vec<u64>>; 3] = Default::default();
    for round in 0..ROUNDS {
        let at = round % 3;
        let mut all = mine[at].clone();
        world.all_reduce_in_place(&mut all, Op::Sum).unwrap();
        assert_eq!(*sums[at].get_or_insert_with(|| bits(&all)), bits(&all), "round {round}");
        let mut one = vec![0.0; if rank == round % size { lens[at] } else { 0 }];
        world.reduce(&mine[at], &mut one, Op::Sum, round % size).unwrap();
        let mut below = vec![0.0; lens[at]];
        world.scan(&mine[at], &mut below, Op::Sum).unwrap();
        assert_eq!(*scans[at].get_or_insert_with(|| bits(&below)), bits(&below), "round {round}");
        let mut copy = mine[at].clone();
        world.broadcast(&mut copy, round % size).unwrap();
        assert_eq!(copy, values(round % size, lens[at]), "round {round}");
        if round % 5 == 3 {
            // The lengths of the ranks are in different size classes or, in other rounds, in the same one.
            let other = if round % 2 == 0 { lens[at] / 4 } else { lens[at] - lens[at] / 8 };
            let len = if rank + 1 == size { other } else { lens[at] };
            let error = world.all_reduce_in_place(&mut all[..len], Op::Sum).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Truncated | ErrorKind::Count), "{error}");
        }
        if round % 5 == 4 {
            // One rank fails before the call. It does not know the length.
            let root = if rank + 1 == size { size } else { 0 };
            let result = world.broadcast(&mut copy, root);
            assert!(result.is_err() || rank + 1 < size);
        }
    }
}

/// Returns the lines about collective calls in the report of rank 0.
fn chosen(output: &str) -> Vec<&str> {
    output
        .lines()
        .filter(|line| line.contains("rank 0: chosen from "))
        .filter(|line| line.contains(", collective "))
        .collect()
}

fn check(size: usize, name: &str, env: &[(&str, &str)]) {
    let env: Vec<_> = env.iter().copied().chain([("TYPEPACK_REPORT", "1")]).collect();
    let output = ranks_with(size, name, &env, calls);
    if is_rank() {
        return;
    }
    // Which way is the fastest depends on the machine. Whether all ways have been compared depends on the times, too,
    // so this test does not demand a line. The unit tests of `choices.rs` demand it with a false clock.
    for line in chosen(&output) {
        let way = line.split(": ").last().unwrap_or_default();
        let known =
            ["whole", "slices", "cells", "messages"].iter().any(|name| way.starts_with(name));
        assert!(known, "{line}");
    }
}

#[test]
fn ways_of_two_ranks_give_the_same_bits() {
    check(2, "ways_of_two_ranks_give_the_same_bits", &[]);
}

#[test]
fn ways_of_three_ranks_give_the_same_bits() {
    check(3, "ways_of_three_ranks_give_the_same_bits", &[]);
}

#[test]
fn ways_of_ranks_that_sleep_at_once_give_the_same_bits() {
    check(5, "ways_of_ranks_that_sleep_at_once_give_the_same_bits", &[("TYPEPACK_SPIN_US", "0")]);
}
