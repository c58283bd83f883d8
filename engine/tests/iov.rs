//! Compares the run lists of `Iov` with the simple implementation in `typemap.rs`. A list can begin at
//! any run, and must then describe the memory of all packed bytes from that run on.

use crate::walk::places;
use typepack_engine::iov::Iov;
use typepack_engine::kernel::Run;
use typepack_engine::{Datatype, Named};

fn check(ty: &Datatype, count: u64) {
    let plan = ty.commit().unwrap();
    let iov = Iov::new(&plan);
    let expected = places(ty, count);
    let all: Vec<Run> = iov.runs(count, 0).unwrap().collect();
    assert_eq!(iov.len(count).unwrap(), all.len() as u64, "{}", plan.program());
    let bytes: Vec<i64> =
        all.iter().flat_map(|run| run.offset..run.offset + run.bytes as i64).collect();
    assert_eq!(bytes, expected, "{ty:?}\n{}", plan.program());
    for first in 0..=all.len() {
        let rest = iov.runs(count, first as u64).unwrap();
        assert!(rest.eq(all[first..].iter().copied()), "from {first}\n{}", plan.program());
    }
    assert!(iov.runs(count, all.len() as u64 + 1).is_err());
    let (mut runs, mut sum) = (0, 0);
    for limit in 0..=expected.len() as u64 + 1 {
        while runs < all.len() && sum + all[runs].bytes <= limit {
            sum += all[runs].bytes;
            runs += 1;
        }
        let answer = iov.below(count, limit).unwrap();
        assert_eq!(answer, (runs as u64, sum), "{limit} bytes\n{}", plan.program());
    }
    assert_eq!(iov.below(count, u64::MAX).unwrap(), (all.len() as u64, expected.len() as u64));
}

#[test]
fn chosen_types_from_every_run() {
    for ty in crate::random::chosen() {
        for count in [0, 1, 2, 3] {
            check(&ty, count);
        }
    }
}

#[test]
fn random_types_from_every_run() {
    for ty in crate::random::datatypes(4, 800, 150) {
        check(&ty, 1);
        check(&ty, 2);
    }
}

#[test]
fn elements_that_continue_each_other_are_one_run() {
    let row = Datatype::contiguous(7, &Datatype::named(Named::DOUBLE)).unwrap();
    let iov = Iov::new(&row.commit().unwrap());
    assert_eq!((iov.len(0).unwrap(), iov.len(5).unwrap()), (0, 1));
    let runs: Vec<Run> = iov.runs(5, 0).unwrap().collect();
    assert_eq!(runs, [Run { offset: 0, bytes: 280 }]);
    assert_eq!(iov.below(5, 279).unwrap(), (0, 0));
    assert_eq!(iov.runs(5, 1).unwrap().next(), None);
}

#[test]
fn huge_types_answer_at_once() {
    let gapped = Datatype::resized(0, 2, &Datatype::named(Named::BYTE)).unwrap();
    let mut ty = gapped;
    for _ in 0..60 {
        ty = Datatype::contiguous(2, &ty).unwrap();
    }
    let iov = Iov::new(&ty.commit().unwrap());
    assert_eq!(iov.len(3).unwrap(), 3 << 60);
    assert_eq!(iov.below(3, 1 << 61).unwrap(), (1 << 61, 1 << 61));
    let last: Vec<Run> = iov.runs(1, (1 << 60) - 1).unwrap().collect();
    assert_eq!(last, [Run { offset: (1 << 61) - 2, bytes: 1 }]);
    assert!(iov.len(1 << 40).is_err());

    // Every struct contains its child twice, so the same short list of runs occurs at 2^40
    // positions.
    let int = Datatype::named(Named::INT);
    let mut ty = Datatype::indexed(&[1, 2, 1], &[5, 0, 3], &int).unwrap();
    let one: Vec<Run> = Iov::new(&ty.commit().unwrap()).runs(1, 0).unwrap().collect();
    for level in 0..40 {
        let types = [ty.clone(), int.clone(), ty];
        ty = Datatype::structured(&[1; 3], &[0, 40 << level, 44 << level], &types).unwrap();
    }
    let iov = Iov::new(&ty.commit().unwrap());
    let total = iov.len(1).unwrap();
    assert_eq!(total, (one.len() as u64 + 1) * (1 << 40) - 1);
    let end = iov.runs(1, total - 3).unwrap().count();
    assert_eq!(end, 3);
}

#[test]
fn a_million_entries_start_anywhere() {
    let mut numbers = crate::random::Random(5);
    let lengths: Vec<i64> = (0..1_000_000).map(|_| numbers.below(4) as i64).collect();
    let at: Vec<i64> = (0..1_000_000).map(|i| i * 5).collect();
    for old in [
        Datatype::named(Named::INT),
        Datatype::resized(0, 5, &Datatype::named(Named::INT)).unwrap(),
    ] {
        let ty = Datatype::indexed(&lengths, &at, &old).unwrap();
        let iov = Iov::new(&ty.commit().unwrap());
        let all: Vec<Run> = iov.runs(1, 0).unwrap().collect();
        let bytes: u64 = all.iter().map(|run| run.bytes).sum();
        assert_eq!(bytes, ty.size() as u64);
        for first in (0..all.len()).step_by(9973) {
            assert_eq!(iov.runs(1, first as u64).unwrap().next(), Some(all[first]));
        }
    }
}

#[test]
fn a_tower_of_100_000_levels_starts_anywhere() {
    let int = Datatype::named(Named::INT);
    let mut ty = int.clone();
    for level in 1..100_000 {
        let types = [int.clone(), ty];
        ty = Datatype::structured(&[1, 1], &[8 * level, 0], &types).unwrap();
    }
    let plan = ty.commit().unwrap();
    let iov = Iov::new(&plan);
    assert_eq!(iov.len(1).unwrap(), 100_000);
    for first in [0, 1, 31_999, 99_998] {
        let run = Run { offset: 8 * (99_999 - first as i64), bytes: 4 };
        assert_eq!(iov.runs(1, first).unwrap().next(), Some(run));
        assert_eq!(iov.below(1, 4 * first + 3).unwrap(), (first, 4 * first));
    }
}
