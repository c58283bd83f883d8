//! Compares the executors with the oracle, the simple implementation in `typemap.rs`. The compared ranges
//! begin and end at every byte, or at many bytes, of the packed form. The chosen types reach every
//! operation of the program and every branch of the executors. The fuzz crate tests random types.

use crate::layouts::memory;
use std::ops::Range;
use typepack_engine::{Datatype, Named, Order, pack_range, typemap, unpack_range};

/// Returns the types of `layouts`, and some larger types. The larger types are only here and not in
/// `layouts`, because `transfer.rs` tries all pairs of the types in `layouts`, which would take too
/// long with larger types.
fn types() -> Vec<(&'static str, Datatype)> {
    let (byte, int) = (Datatype::named(Named::BYTE), Datatype::named(Named::INT));
    let members = [Datatype::named(Named::CHAR), int, Datatype::named(Named::DOUBLE)];
    let window = Datatype::structured(&[1, 1, 1], &[0, 4, 8], &members).unwrap();
    let long = Datatype::contiguous(300, &byte).unwrap();
    let rows = Datatype::hvector(3, 1, 320, &long).unwrap();
    let many: Vec<i64> = (0..40).map(|i| i * i).collect();
    let mut types = crate::layouts::small();
    types.extend([
        ("wide table", Datatype::hindexed_block(1, &many, &byte).unwrap()),
        ("long rows", rows.clone()),
        ("struct with rows", {
            let parts = [window.clone(), rows];
            Datatype::structured(&[2, 1], &[0, 900], &parts).unwrap()
        }),
        (
            "Fortran subarray of windows",
            Datatype::subarray(&[4, 3], &[2, 2], &[1, 0], Order::Fortran, &window).unwrap(),
        ),
    ]);
    types
}

/// Returns ranges of the packed form, which has `bytes` bytes. If `bytes` is at most 150, these are
/// all ranges; otherwise they have many different starts and ends.
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
            let (memory, origin) = memory(&ty, count, 1);
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
            let (memory, origin) = memory(&ty, count, 1);
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
