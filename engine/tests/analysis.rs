//! Compares the facts that `analysis` computes with naive computations: compares the overlap test with
//! a count of how often every byte is used, and the block statistics with the list of runs.

use crate::walk::places;
use std::collections::HashSet;
use typepack_engine::analysis::{Answer, Facts};
use typepack_engine::iov::Iov;
use typepack_engine::{Datatype, Named, Order};

fn overlaps(ty: &Datatype, count: u64) -> bool {
    let mut seen = HashSet::new();
    !places(ty, count).into_iter().all(|byte| seen.insert(byte))
}

/// Checks that the overlap test gives the right answer for a small type, and never "unknown".
/// Returns how often each answer occurred.
fn check_overlap(ty: &Datatype) -> [u64; 2] {
    let plan = ty.commit().unwrap();
    let mut decided = [0; 2];
    for count in [0, 1, 2, 5] {
        let expected = if overlaps(ty, count) { Answer::Yes } else { Answer::No };
        assert_eq!(plan.overlaps(count), expected, "{count} of {ty:?}\n{}", plan.program());
        decided[expected as usize] += 1;
    }
    decided
}

fn check_facts(ty: &Datatype) {
    let plan = ty.commit().unwrap();
    let facts = Facts::of(&plan);
    let iov = Iov::new(&plan);
    let runs: Vec<_> = iov.runs(1, 0).unwrap().collect();
    let text = format!("{ty:?}\n{}", plan.program());
    assert_eq!(facts.bytes, ty.size() as u64, "{text}");
    assert_eq!(facts.span, ty.true_extent() as u64, "{text}");
    assert_eq!((facts.extent, facts.runs), (ty.extent(), runs.len() as u64), "{text}");
    let lengths = || runs.iter().map(|run| run.bytes);
    assert_eq!(facts.shortest, lengths().min().unwrap_or(0), "{text}");
    assert_eq!(facts.longest, lengths().max().unwrap_or(0), "{text}");
    let forward = runs.windows(2).all(|p| p[0].offset + p[0].bytes as i64 <= p[1].offset);
    assert_eq!(facts.monotone, forward, "{text}");
    let two: Vec<_> = iov.runs(2, 0).unwrap().collect();
    let forward = two.windows(2).all(|p| p[0].offset + p[0].bytes as i64 <= p[1].offset);
    assert_eq!(facts.monotone_elements, forward, "{text}");
    let dense = runs.windows(2).all(|p| p[0].offset + p[0].bytes as i64 == p[1].offset);
    assert_eq!(facts.dense, dense, "{text}");
    assert_eq!(facts.contiguous, plan.is_contiguous() || runs.is_empty(), "{text}");
    let lowest = |values: &mut dyn Iterator<Item = u64>| {
        values.map(|v| 1u64 << v.trailing_zeros().min(63)).min().unwrap_or(1 << 63)
    };
    if !runs.is_empty() {
        let places = runs.iter().map(|run| run.offset as u64);
        let places = &mut places.chain([ty.extent() as u64]);
        assert_eq!(facts.alignment, lowest(places), "{text}");
    }
    assert_eq!(facts.granularity, lowest(&mut lengths()), "{text}");
}

#[test]
fn chosen_types() {
    for ty in crate::random::chosen() {
        check_facts(&ty);
        check_overlap(&ty);
    }
}

#[test]
fn random_types() {
    let mut decided = [0; 2];
    for ty in crate::random::datatypes(6, 1500, 200) {
        check_facts(&ty);
        for (sum, n) in decided.iter_mut().zip(check_overlap(&ty)) {
            *sum += n;
        }
    }
    assert!(decided.iter().all(|&n| n > 500), "{decided:?}");
}

#[test]
fn proofs_for_types_too_large_to_sort() {
    let (byte, float, double) = (
        Datatype::named(Named::BYTE),
        Datatype::named(Named::FLOAT),
        Datatype::named(Named::DOUBLE),
    );
    let n = 1 << 16;
    let column = Datatype::resized(0, 8, &Datatype::vector(n, 1, n, &double).unwrap()).unwrap();
    let face =
        Datatype::subarray(&[n, n, 64], &[n / 2, n / 2, 3], &[9, 9, 9], Order::Fortran, &double)
            .unwrap();
    // These are the two fields of an array of records. The struct below packs all first fields, and
    // then all second fields.
    let fields = [
        Datatype::hvector(1 << 30, 1, 24, &float).unwrap(),
        Datatype::hvector(1 << 29, 1, 24, &double).unwrap(),
    ];
    let record = |second: i64| Datatype::structured(&[1, 1], &[2, second], &fields).unwrap();
    let shuffled: Vec<i64> = (0..2_000_000).map(|i| i * 7_919 % 2_000_003 * 8).collect();
    let table = Datatype::hindexed_block(1, &shuffled, &double).unwrap();
    let mut twice = shuffled.clone();
    twice[1_999_999] = twice[17];
    let lists: Vec<i64> = (0..1_000_000).map(|i| i * 7_919 % 1_000_003 * 24).collect();
    let lengths: Vec<i64> = (0..1_000_000).map(|i| 1 + i % 3).collect();
    let list = Datatype::hindexed(&lengths, &lists, &double).unwrap();
    let close = Datatype::hindexed(&lengths, &lists, &Datatype::contiguous(2, &double).unwrap());
    let interleaved = Datatype::hindexed(&[1, 1], &[0, 4], &fields[0]).unwrap();
    for (name, ty, count, expected) in [
        ("columns", Datatype::contiguous(n, &column).unwrap(), 1, Answer::No),
        ("columns by count", column.clone(), n as u64, Answer::No),
        ("a column too many", column, n as u64 + 1, Answer::Yes),
        ("face", face, 1000, Answer::No),
        ("records", record(6), 1, Answer::No),
        ("records that meet in the next period", record(18), 1, Answer::No),
        ("records that overlap", record(5), 1, Answer::Yes),
        ("the next period overlaps", record(19), 1, Answer::Yes),
        ("table", table.clone(), 1, Answer::No),
        ("table with its gaps filled", Datatype::resized(0, 8, &table).unwrap(), 2, Answer::Yes),
        ("an entry twice", Datatype::hindexed_block(1, &twice, &double).unwrap(), 1, Answer::Yes),
        ("list", list, 1, Answer::No),
        ("list that overlaps", close.unwrap(), 1, Answer::Yes),
        ("interleaved", interleaved, 1, Answer::No),
        ("2^60", (0..60).fold(byte, |ty, _| Datatype::contiguous(2, &ty).unwrap()), 7, Answer::No),
    ] {
        let plan = ty.commit().unwrap();
        assert_eq!(plan.overlaps(count), expected, "{name}");
    }
}

#[test]
fn what_cannot_be_decided_is_unknown() {
    // These two types ("combs") consist of single bytes ("teeth") at distances of 6 and 10 bytes. The
    // two never overlap, because the bytes of one have even displacements and those of the other have
    // odd ones. It would take number theory to prove that, so the answer is "unknown".
    let byte = Datatype::named(Named::BYTE);
    let teeth = [
        Datatype::hvector(1 << 40, 1, 6, &byte).unwrap(),
        Datatype::hvector(1 << 40, 1, 10, &byte).unwrap(),
    ];
    let combs = Datatype::structured(&[1, 1], &[0, 1], &teeth).unwrap();
    assert_eq!(combs.commit().unwrap().overlaps(1), Answer::Unknown);
    let facts = Facts::of(&combs.commit().unwrap());
    assert_eq!((facts.runs, facts.longest, facts.monotone), (1 << 41, 1, false));
    assert!(facts.density() < 0.3);
    assert_eq!(facts.mean(), 1.0);
}

#[test]
fn deep_and_shared_programs_are_summed_up_once() {
    let int = Datatype::named(Named::INT);
    let mut ty = int.clone();
    for _ in 0..40 {
        let end = ty.true_ub();
        let types = [ty.clone(), int.clone(), ty];
        ty = Datatype::structured(&[1; 3], &[0, end + 4, end + 12], &types).unwrap();
    }
    let plan = ty.commit().unwrap();
    assert_eq!(Facts::of(&plan).runs, Iov::new(&plan).len(1).unwrap());
    assert_eq!(plan.overlaps(1), Answer::No);
    let mut ty = int.clone();
    for level in 1..100_000 {
        let types = [int.clone(), ty];
        ty = Datatype::structured(&[1, 1], &[8 * level, 0], &types).unwrap();
    }
    let plan = ty.commit().unwrap();
    assert_eq!((Facts::of(&plan).runs, plan.overlaps(1)), (100_000, Answer::No));
}

/// Checks that a tower of structs, in which each struct interleaves with the struct inside it, takes
/// little time. The analysis must sort the runs once, for the whole tower, and not at every level.
#[test]
fn an_interleaved_tower_is_sorted_once() {
    let byte = Datatype::named(Named::BYTE);
    let mut ty = byte.clone();
    for level in 1..5_000i64 {
        let at = if level % 2 == 0 { level * 3 } else { 20_000 - level * 3 };
        let types = [ty, byte.clone()];
        ty = Datatype::structured(&[1, 1], &[0, at], &types).unwrap();
    }
    assert_eq!(ty.commit().unwrap().overlaps(1), Answer::No);
    let types = [ty, byte];
    let twice = Datatype::structured(&[1, 1], &[0, 2_400], &types).unwrap();
    assert_eq!(twice.commit().unwrap().overlaps(1), Answer::Yes);
}

/// Checks the overlap test for 2^30 elements of each random type, so many that the analysis cannot sort
/// their runs. The elements begin 1 MiB apart and do not overlap each other, so the right answer is the
/// same as for one element.
#[test]
fn random_types_many_times() {
    let mut decided = [0; 2];
    for ty in crate::random::datatypes(7, 500, 200) {
        let apart = Datatype::resized(0, 1 << 20, &ty).unwrap();
        let expected = if overlaps(&ty, 1) { Answer::Yes } else { Answer::No };
        let plan = apart.commit().unwrap();
        assert_eq!(plan.overlaps(1 << 30), expected, "{ty:?}\n{}", plan.program());
        decided[expected as usize] += 1;
    }
    assert!(decided.iter().all(|&n| n > 50), "{decided:?}");
}
