//! Checks, for every kind of program, that the segments a plan proposes add up to the whole packed form.
//! Also checks that packing into a packing unit gives the bytes of the packed form at any start
//! position.

use crate::layouts::memory;
use typepack_engine::{Datatype, Plan, pack_at_raw};
use typepack_engine::{pack_range, typemap, unpack_at_raw, unpack_range};

fn segments(plan: &Plan, count: u64, wish: u64) -> Vec<std::ops::Range<u64>> {
    plan.segments(count, wish).unwrap().collect()
}

#[test]
fn proposed_pieces_make_the_packed_form_both_ways() {
    for (name, ty) in crate::layouts::small() {
        let plan = ty.commit().unwrap();
        for count in [1, 2, 5] {
            let (memory, origin) = memory(&ty, count, 1);
            let expected = typemap::pack(&ty, count, &memory, origin);
            let mut whole = vec![0u8; memory.len()];
            let all = 0..expected.len() as u64;
            unpack_range(&plan, count, &expected, all, &mut whole, origin).unwrap();
            for wish in [0, 1, 7, 8, 60, 64, 65, 100, 200, 333, 1 << 20] {
                let (mut packed, mut back) = (vec![], vec![0u8; memory.len()]);
                for segment in segments(&plan, count, wish) {
                    assert_eq!(segment.start, packed.len() as u64, "{name}");
                    assert!(
                        segment.end - segment.start <= wish.max(64),
                        "{name}: {segment:?} of {wish}"
                    );
                    let mut part = vec![0u8; (segment.end - segment.start) as usize];
                    pack_range(&plan, count, &memory, origin, segment.clone(), &mut part).unwrap();
                    unpack_range(&plan, count, &part, segment, &mut back, origin).unwrap();
                    packed.extend(part);
                }
                assert_eq!(packed, expected, "{name} x {count} in segments of {wish}");
                assert_eq!(back, whole, "{name} x {count} in segments of {wish}");
            }
        }
    }
}

/// Checks that no segment ends inside a basic element. The plan keeps nodes of at most 64 bytes
/// whole, and cuts long runs only at multiples of 64 bytes.
#[test]
fn basic_elements_are_not_cut() {
    for (name, ty) in crate::layouts::small() {
        let plan = ty.commit().unwrap();
        let mut ends = vec![0];
        for entry in typemap::typemap(&ty) {
            ends.push(ends.last().unwrap() + u64::from(entry.named.size()));
        }
        let bytes = plan.element_bytes();
        for wish in [1, 50, 64, 100, 300] {
            for segment in segments(&plan, 3, wish) {
                let inside = segment.end % bytes.max(1);
                assert!(ends.contains(&inside), "{name}: {segment:?} of {wish}");
            }
        }
    }
}

#[test]
fn every_layout_packs_into_a_unit_at_any_position() {
    let mut unit = vec![0u8; 64 << 10];
    let (mut position, mut packed) = (0, vec![]);
    let types: Vec<(&str, Datatype)> = crate::layouts::small();
    for (name, ty) in &types {
        let plan = ty.commit().unwrap();
        for count in [0, 1, 3] {
            let (memory, origin) = memory(ty, count, 1);
            let address = memory.as_ptr().wrapping_add(origin);
            // SAFETY: `memory` holds all elements around `origin` and is readable. `unit` has
            // `size` bytes and is a separate allocation.
            unsafe {
                let (to, size) = (unit.as_mut_ptr(), unit.len());
                pack_at_raw(&plan, count, address, to, size, &mut position).unwrap();
            }
            packed.extend(typemap::pack(ty, count, &memory, origin));
            assert_eq!(position, packed.len(), "{name} x {count}");
        }
    }
    assert_eq!(unit[..position], packed);
    let (end, mut position) = (position, 0);
    for (name, ty) in &types {
        let plan = ty.commit().unwrap();
        for count in [0, 1, 3] {
            let (memory, origin) = memory(ty, count, 1);
            let (mut one, mut other) = (vec![0u8; memory.len()], vec![0u8; memory.len()]);
            let bytes = plan.packed_bytes(count).unwrap();
            let from = &packed[position..position + bytes as usize];
            unpack_range(&plan, count, from, 0..bytes, &mut one, origin).unwrap();
            let address = other.as_mut_ptr().wrapping_add(origin);
            // SAFETY: `other` holds all elements around `origin` and is writable. `unit` has at
            // least `end` bytes and is a separate allocation.
            unsafe {
                unpack_at_raw(&plan, count, unit.as_ptr(), end, &mut position, address).unwrap();
            }
            assert_eq!(one, other, "{name} x {count}");
        }
    }
    assert_eq!(position, end);
}

/// Checks that the segments of gigantic columns are not sized by tiles. In an earlier version, the size
/// in bytes of a tile of such columns overflowed.
#[test]
fn tiles_of_gigantic_columns_are_not_proposed() {
    for text in [
        "resized(0, 8, vector(288230376151711744, 1, 2, double))",
        "resized(0, 1, vector(288230376151711744, 1, 2, char))",
    ] {
        let plan = text.parse::<Datatype>().unwrap().commit().unwrap();
        assert_eq!(plan.segment_bytes(8192), 8192);
        assert_eq!(plan.segment_end(1, 0, 8192).unwrap(), 8192);
        assert_eq!(plan.segments(1, 8192).unwrap().next(), Some(0..8192));
    }
}
