//! The executors against the oracle: chosen types that reach every operation of the program and
//! every branch of the executor, at every split point. Random types are the fuzz crate's business.

use std::ops::Range;
use typepack_engine::{Datatype, Named, Order, pack_range, typemap, unpack_range};

fn named(n: Named) -> Datatype {
    Datatype::named(n)
}

/// One type for each way through the executor.
fn types() -> Vec<(&'static str, Datatype)> {
    let (byte, int, double) = (named(Named::BYTE), named(Named::INT), named(Named::DOUBLE));
    let vector = Datatype::vector(3, 2, 4, &int).unwrap();
    let members = [named(Named::CHAR), int.clone(), double.clone()];
    let window = Datatype::structured(&[1, 1, 1], &[0, 4, 8], &members).unwrap();
    let backwards = Datatype::hindexed(&[1, 1, 1], &[32, 16, -5], &int).unwrap();
    let ragged = Datatype::indexed(&[1, 3, 0, 2], &[9, 0, 5, 5], &int).unwrap();
    let gapped = Datatype::resized(0, 7, &int).unwrap();
    let long = Datatype::contiguous(300, &byte).unwrap();
    let many: Vec<i64> = (0..40).map(|i| i * i).collect();
    let big = Datatype::structured(
        &[2, 1, 1],
        &[0, 200, 900],
        &[vector.clone(), ragged.clone(), Datatype::hvector(2, 1, 400, &long).unwrap()],
    )
    .unwrap();
    vec![
        ("contiguous", Datatype::contiguous(5, &double).unwrap()),
        ("pair with a hole", named(Named::SHORT_INT)),
        ("vector", vector.clone()),
        ("vector of vectors", Datatype::hvector(3, 1, 100, &vector).unwrap()),
        ("negative stride", Datatype::vector(4, 1, -3, &int).unwrap()),
        ("resized column", Datatype::resized(0, 4, &vector).unwrap()),
        ("negative extent", Datatype::resized(0, -48, &vector).unwrap()),
        ("window", window.clone()),
        ("vector of windows", Datatype::vector(3, 2, 3, &window).unwrap()),
        ("backwards", backwards),
        ("table", Datatype::indexed_block(2, &[7, 0, 3, 12], &int).unwrap()),
        ("wide table", Datatype::hindexed_block(1, &many, &byte).unwrap()),
        ("table of windows", Datatype::hindexed_block(2, &[100, 3, 160], &window).unwrap()),
        ("list of runs", ragged.clone()),
        ("ragged list of gapped", Datatype::indexed(&[1, 3, 2], &[9, 0, 5], &gapped).unwrap()),
        ("ragged of ragged", Datatype::hindexed(&[2, 1], &[0, 200], &ragged).unwrap()),
        ("overlap", Datatype::hindexed(&[3, 2], &[0, 6], &int).unwrap()),
        ("stride 0", Datatype::hvector(3, 1, 0, &int).unwrap()),
        ("long rows", Datatype::hvector(3, 1, 320, &long).unwrap()),
        ("struct of nests", big.clone()),
        ("vector of struct of nests", Datatype::vector(2, 1, 2, &big).unwrap()),
        (
            "deep",
            (0..10i64).fold(int.clone(), |ty, i| {
                Datatype::hvector(2, 1, (1 << i) * 9 + 4 + i, &ty).unwrap()
            }),
        ),
        (
            "subarray",
            Datatype::subarray(&[4, 5, 6], &[2, 2, 3], &[1, 2, 1], Order::C, &int).unwrap(),
        ),
        (
            "Fortran subarray of windows",
            Datatype::subarray(&[4, 3], &[2, 2], &[1, 0], Order::Fortran, &window).unwrap(),
        ),
        ("empty", Datatype::contiguous(0, &double).unwrap()),
        ("empty blocks", Datatype::indexed(&[0, 2, 0], &[5, 1, 9], &int).unwrap()),
    ]
}

/// Memory that holds `count` elements with room around them, and the origin in it.
fn memory(ty: &Datatype, count: u64) -> (Vec<u8>, usize) {
    let last = (count as i64 - 1) * ty.extent();
    let low = (ty.true_lb() + last.min(0)).min(0);
    let high = ty.true_ub() + last.max(0);
    let bytes = (0..(high - low) as usize + 16).map(|i| (i * 7 % 251) as u8 + 1).collect();
    (bytes, (8 - low) as usize)
}

/// All ranges of a small packed size; for a larger one every start with some ends.
fn ranges(bytes: u64) -> Vec<Range<u64>> {
    let step = if bytes <= 150 { 1 } else { 37 };
    let mut all = Vec::new();
    for from in (0..=bytes).step_by(if bytes <= 300 { 1 } else { 23 }) {
        for to in (from..=bytes).step_by(step).chain([bytes]) {
            all.push(from..to);
        }
    }
    all
}

#[test]
fn every_split_of_every_kind_of_program() {
    for (name, ty) in types() {
        let plan = ty.commit().unwrap();
        for count in [1, 2, 5] {
            let (memory, origin) = memory(&ty, count);
            let packed = typemap::pack(&ty, count, &memory, origin);
            let bytes = plan.packed_bytes(count).unwrap();
            assert_eq!(bytes, packed.len() as u64, "{name}");
            for range in ranges(bytes) {
                let slice = range.start as usize..range.end as usize;
                let mut out = vec![0u8; slice.len()];
                pack_range(&plan, count, &memory, origin, range.clone(), &mut out).unwrap();
                assert_eq!(out, packed[slice], "{name} x {count}: {range:?}\n{}", plan.program());
            }
        }
    }
}

#[test]
fn unpacking_in_parts_leaves_gaps_alone() {
    for (name, ty) in types() {
        let plan = ty.commit().unwrap();
        for count in [1, 3] {
            let (memory, origin) = memory(&ty, count);
            let packed: Vec<u8> =
                (0..plan.packed_bytes(count).unwrap()).map(|i| (i % 200) as u8 + 50).collect();
            let mut expected = memory.clone();
            typemap::unpack(&ty, count, &packed, &mut expected, origin);
            for step in [1, 2, 3, 7, 64, packed.len().max(1)] {
                let mut answer = memory.clone();
                for (i, part) in packed.chunks(step).enumerate() {
                    let from = (i * step) as u64;
                    let range = from..from + part.len() as u64;
                    unpack_range(&plan, count, part, range, &mut answer, origin).unwrap();
                }
                assert_eq!(answer, expected, "{name} x {count} in parts of {step}");
            }
        }
    }
}

#[test]
fn bounds_agree_with_the_typemap() {
    for (name, ty) in types() {
        let entries = typemap::typemap(&ty);
        let size: i64 = entries.iter().map(|e| i64::from(e.named.size())).sum();
        let low = entries.iter().map(|e| e.offset).min().unwrap_or(0);
        let high = entries.iter().map(|e| e.offset + i64::from(e.named.size())).max().unwrap_or(0);
        assert_eq!((ty.size(), ty.true_lb(), ty.true_ub()), (size, low, high), "{name}");
    }
}
