//! Tests the wire form. A decoded layout must equal the encoded one. If `encode` did not make the
//! bytes, the decoder must refuse them, or the decoded layout must stay within the bounds that its
//! header states.

use crate::handmade::{handmade, node};
use crate::layouts::{memory, small};
use typepack_engine::{
    Cursor, Datatype, ErrorKind, Named, Plan, Side, copy_range, pack_range, typemap, unpack_range,
    wire,
};

fn large() -> Vec<(&'static str, Datatype)> {
    let (int, double) = (Datatype::named(Named::INT), Datatype::named(Named::DOUBLE));
    let places: Vec<i64> = (0..1000).map(|i| i * 3 + i % 2).collect();
    let lengths: Vec<i64> = (0..1001).map(|i| i % 5).collect();
    let far: Vec<i64> = (0..1001).map(|i| i * 40).collect();
    let unlike: Vec<Datatype> =
        (0..100).map(|i| Datatype::hvector(3 + i % 7, 1, 30 + i, &int).unwrap()).collect();
    let at: Vec<i64> = (0..100).map(|i| i * 1500).collect();
    let ends = Datatype::hindexed_block(1, &[i64::MAX / 4, -i64::MAX / 2], &double).unwrap();
    vec![
        ("table", Datatype::indexed_block(1, &places, &double).unwrap()),
        ("list", Datatype::indexed(&lengths, &far, &int).unwrap()),
        ("unlike parts", Datatype::structured(&[1; 100], &at, &unlike).unwrap()),
        ("the ends of memory", ends.clone()),
        ("wide table", Datatype::hindexed_block(1, &[0, 1 << 40, 7], &int).unwrap()),
        ("far from the origin", Datatype::hindexed_block(1, &[i64::MAX - 40], &int).unwrap()),
        (
            "displacements that cancel",
            Datatype::structured(
                &[1, 1, 1],
                &[i64::MIN + 100, 0, 50],
                &[
                    Datatype::hindexed(&[1, 2], &[i64::MAX - 50, i64::MAX - 20], &int).unwrap(),
                    int.clone(),
                    Datatype::vector(3, 1, 2, &int).unwrap(),
                ],
            )
            .unwrap(),
        ),
        ("huge", Datatype::hvector(1 << 40, 1, 17, &int).unwrap()),
    ]
}

#[test]
fn round_trips() {
    for (name, ty) in small().into_iter().chain(large()) {
        let plan = ty.commit().unwrap();
        let bytes = wire::encode(&plan);
        assert_eq!(wire::encode_within(&plan, bytes.len()).as_ref(), Some(&bytes));
        assert_eq!(wire::encode_within(&plan, bytes.len() - 1), None);
        // The decoder computes the footprint from the program, whereas the footprint of the original
        // plan comes from the constructor calls. The two must be equal.
        let back = wire::decode(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(back.footprint(), plan.footprint(), "{name}");
        assert_eq!(back.element_bytes(), plan.element_bytes(), "{name}");
        assert_eq!(back.is_contiguous(), plan.is_contiguous(), "{name}");
        assert_eq!(back.program().to_string(), plan.program().to_string(), "{name}");
        assert!(back.datatype().is_none() && plan.datatype().is_some());
        let again = wire::encode(&back);
        assert!(again == bytes, "{name}");
        assert_eq!(wire::identity(&again), wire::identity(&bytes));
        if ty.true_lb() < -(1 << 20) || ty.true_ub() > 1 << 20 {
            continue;
        }
        let count = 3;
        let (src, origin) = memory(&ty, count, 5);
        let packed = typemap::pack(&ty, count, &src, origin);
        let range = 0..packed.len() as u64;
        let mut out = vec![0; packed.len()];
        pack_range(&back, count, &src, origin, range.clone(), &mut out).unwrap();
        assert!(out == packed, "{name}");
        let (mut expected, _) = memory(&ty, count, 77);
        let mut dst = expected.clone();
        typemap::unpack(&ty, count, &packed, &mut expected, origin);
        unpack_range(&back, count, &packed, range, &mut dst, origin).unwrap();
        assert!(dst == expected, "{name}");
    }
}

#[test]
fn equal_layouts_have_one_identity() {
    let double = Datatype::named(Named::DOUBLE);
    let vector = Datatype::vector(4, 3, 10, &double).unwrap();
    let row = Datatype::contiguous(3, &double).unwrap();
    let hvector = Datatype::hvector(4, 1, 80, &row).unwrap();
    let other = Datatype::vector(4, 3, 11, &double).unwrap();
    let identity = |ty: &Datatype| wire::identity(&wire::encode(&ty.commit().unwrap()));
    assert_eq!(identity(&vector), identity(&hvector));
    assert_ne!(identity(&vector), identity(&other));
}

/// Checks the exact bytes of each kind of node, and the hash of the encoding. A change of either
/// requires a new `wire::VERSION`.
#[test]
fn the_format_is_fixed() {
    let mut table = node(3, 0, &[3, 4, 0, 0x2_0000_0001, 0]);
    table[1] = 4;
    let mut list = node(4, 0, &[2, 1, 0, 3, 20, 30, 0x1_02]);
    (list[1], list[2]) = (8, 1);
    let nodes =
        [node(1, 0, &[2]), table, node(2, 1, &[2, 50, 0]), list, node(5, 0, &[2, 0, 2, 100, 3])];
    let bytes = handmade(18, 132, 200, &nodes);
    let plan = wire::decode(&bytes).unwrap();
    let runs = Cursor::new(&plan, 1).unwrap().map(|run| run.offset);
    assert!(runs.eq([4, 8, 0, 54, 58, 50, 120, 123, 130]));
    assert_eq!(wire::encode(&plan), bytes);
    assert_eq!(wire::identity(&bytes), 0xbda3_b5bd_dfbe_3b09_334c_2e89_5fee_4c8d);
}

#[test]
fn refusals_say_what_is_wrong() {
    let int = Datatype::named(Named::INT);
    let plan = Datatype::indexed(&[1, 3, 2], &[9, 0, 5], &int).unwrap().commit().unwrap();
    let bytes = wire::encode(&plan);
    let refuse = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = bytes.clone();
        change(&mut bytes);
        wire::decode(&bytes).unwrap_err()
    };
    assert_eq!(
        refuse(&|b| b[0] = 0).to_string(),
        "wire: not an encoded layout; the first 4 bytes must be \"tpkw\""
    );
    let version = refuse(&|b| b[4] = 3);
    assert_eq!(
        version.to_string(),
        "wire: format version 3 is not supported; the version must be 2"
    );
    assert_eq!((version.kind(), version.argument()), (ErrorKind::Argument, "wire"));
    assert_eq!(refuse(&|b| b.push(0)).kind(), ErrorKind::Truncated);
    assert_eq!(refuse(&|b| b.truncate(100)).kind(), ErrorKind::Truncated);
    assert!(refuse(&|b| b[16] += 1).to_string().contains("element size: the header states"));
    assert!(refuse(&|b| b[24] += 1).to_string().contains("states Footprint"));
    let mut short = node(3, 0, &[3, 4, 0, 0x1_02_03]);
    short[1] = 1;
    let short = wire::decode(&handmade(6, 0, 20, &[node(1, 0, &[2]), short])).unwrap_err();
    assert_eq!(short.to_string(), "wire: the width of a table's entries is 1; it must be 4 or 8");
    assert!(refuse(&|b| b[80] = 9).to_string().contains("tag 9"));
    let grow = |b: &mut Vec<u8>| {
        b.extend([0; 16]);
        b[8] += 16;
    };
    assert!(refuse(&grow).to_string().contains("bytes after the last node"));
}

#[test]
fn every_truncation_is_refused() {
    for (name, ty) in small().into_iter().chain(large()) {
        let bytes = wire::encode(&ty.commit().unwrap());
        for end in 0..bytes.len() {
            assert!(wire::decode(&bytes[..end]).is_err(), "{name} cut at {end}");
            // Correct the length in the header, so that the decoder reads past the header.
            let mut cut = bytes[..end].to_vec();
            if end >= 16 {
                cut[8..16].copy_from_slice(&(end as u64).to_le_bytes());
                assert!(wire::decode(&cut).is_err(), "{name} cut at {end} was accepted");
            }
        }
    }
}

#[test]
fn every_changed_byte() {
    let mut decoded = 0;
    for (name, ty) in small() {
        let bytes = wire::encode(&ty.commit().unwrap());
        // For some types, change each byte to every other value; for the others, try a few changes.
        let values: Vec<u8> = match name {
            "ragged of ragged" | "table of windows" | "struct of nests" => (1..=255).collect(),
            _ => vec![1, 2, 3, 16, 64, 128, 255],
        };
        for at in 0..bytes.len() {
            for value in &values {
                let mut bytes = bytes.clone();
                bytes[at] ^= value;
                decoded += u32::from(survives(&bytes));
            }
        }
    }
    // Some changes, for example of a displacement inside a layout, leave the bounds as they are, and the
    // decoder must accept such a change. Check that the decoder accepted more than 100 changed
    // encodings, because this test executes only accepted programs.
    assert!(decoded > 100, "{decoded}");
}

/// Checks encodings in which an extreme number replaces 8 bytes. The replaced bytes begin at each
/// multiple of 4 from 16 up to 600. The test corrects the header where possible, so that the decoder
/// does not fail at its checks of the header but computes with the extreme numbers.
#[test]
fn extreme_words() {
    let extremes = [
        0,
        1,
        u64::MAX,
        i64::MAX as u64,
        i64::MIN as u64,
        1 << 62,
        1 << 32,
        u64::from(u32::MAX),
        i32::MIN as u64,
        (-5i64) as u64,
        4096,
    ];
    let mut decoded = 0;
    for (_, ty) in small().into_iter().chain(large()) {
        let bytes = wire::encode(&ty.commit().unwrap());
        for at in (16..bytes.len().min(600)).step_by(4) {
            for value in extremes {
                let mut bytes = bytes.clone();
                let end = bytes.len().min(at + 8);
                bytes[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
                decoded += u32::from(survives(&bytes));
                // Some words of the header follow from other words. If they are wrong, the decoder's
                // error message states the right values. `repaired` reads these values from the
                // message, which is the simplest way to get a consistent header.
                decoded += u32::from(repaired(bytes).is_some_and(|bytes| survives(&bytes)));
            }
        }
    }
    assert!(decoded > 1000, "{decoded}");
}

/// Replaces the element size and the bounds in the header by the values that the decoder's error
/// states.
fn repaired(mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    for _ in 0..2 {
        let Err(error) = wire::decode(&bytes) else { return Some(bytes) };
        let text = error.to_string();
        if let Some((_, found)) = text.split_once(", but the program has Footprint ") {
            let numbers = found.split(|c: char| !c.is_ascii_digit() && c != '-');
            let numbers = numbers.filter_map(|n| n.parse::<i64>().ok());
            for (i, n) in numbers.take(3).enumerate() {
                bytes[24 + 8 * i..32 + 8 * i].copy_from_slice(&n.to_le_bytes());
            }
        } else if let Some((_, made)) = text.split_once(" bytes, but the program has ") {
            let size: u64 = made.parse().ok()?;
            bytes[16..24].copy_from_slice(&size.to_le_bytes());
        } else {
            return None;
        }
    }
    Some(bytes)
}

/// Decodes the bytes. If that succeeds, executes the plan in memory of exactly the size that the plan
/// states, next to an inaccessible page. Returns true if the bytes were accepted.
fn survives(bytes: &[u8]) -> bool {
    let Ok(plan) = wire::decode(bytes) else { return false };
    assert_eq!(wire::encode(&plan), bytes, "one program has two encodings");
    for count in [1, 3] {
        execute(&plan, count);
    }
    true
}

fn execute(plan: &Plan, count: u64) {
    let Ok(bytes) = plan.packed_bytes(count) else { return };
    let place = plan.footprint();
    let last = i128::from(count - 1) * i128::from(place.extent);
    let low = last.min(0) + i128::from(place.true_lb);
    let high = last.max(0) + i128::from(place.true_ub);
    let mut walk = Cursor::at(plan, count, bytes / 2).unwrap().take(100);
    // Displacements that exceed 64 bits wrap around. No memory can hold such elements, so the check is
    // skipped for them.
    let addressable = i64::try_from(low).is_ok() && i64::try_from(high).is_ok();
    assert!(walk.all(|run| {
        let (first, end) = (i128::from(run.offset), i128::from(run.offset) + i128::from(run.bytes));
        !addressable || low <= first && end <= high
    }));
    // The memory must contain displacement 0, even if all data of the type lies after displacement 0.
    let low = low.min(0);
    let length = high.max(0) - low;
    if length > 1 << 16 {
        let mut memory = vec![0u8; 4096];
        assert!(unpack_range(plan, count, &[0], 0..1, &mut memory, 0).is_err() || bytes == 0);
        return;
    }
    let (length, origin) = (length as usize, -low as usize);
    for at_end in [true, false] {
        let mut guarded = Guarded::new(length, at_end);
        let mut other = Guarded::new(length, !at_end);
        for from in [0, bytes / 3, bytes.saturating_sub(3000)] {
            let range = from..bytes.min(from + 3000);
            let mut packed = vec![7; (range.end - range.start) as usize];
            let (memory, others) = (guarded.bytes(), other.bytes());
            unpack_range(plan, count, &packed, range.clone(), memory, origin).unwrap();
            pack_range(plan, count, memory, origin, range.clone(), &mut packed).unwrap();
            assert!(packed.iter().all(|&byte| byte == 7));
            let src = Side { plan, count, memory: &*memory, origin };
            let dst = Side { plan, count, memory: &mut *others, origin };
            copy_range(src, dst, range).unwrap();
        }
    }
}

/// A buffer next to an inaccessible page: either the buffer ends where such a page begins, or it begins
/// where such a page ends.
struct Guarded {
    pages: region::Allocation,
    start: usize,
    length: usize,
}

impl Guarded {
    fn new(length: usize, at_end: bool) -> Self {
        let page = region::page::size();
        let inner = length.next_multiple_of(page).max(page);
        let pages = region::alloc(inner + 2 * page, region::Protection::READ_WRITE).unwrap();
        let base = pages.as_ptr::<u8>();
        // SAFETY: these are the first and the last page of the allocation above. Nothing refers to
        // these pages.
        unsafe {
            region::protect(base, page, region::Protection::NONE).unwrap();
            region::protect(base.add(page + inner), page, region::Protection::NONE).unwrap();
        }
        let start = page + if at_end { inner - length } else { 0 };
        Self { pages, start, length }
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the allocation was zeroed, and its pages between the two guard pages are readable and
        // writable. `self` is borrowed mutably, so no other reference to them exists.
        unsafe {
            let start = self.pages.as_mut_ptr::<u8>().add(self.start);
            std::slice::from_raw_parts_mut(start, self.length)
        }
    }
}

#[test]
fn programs_100_000_levels_deep() {
    let mut loops = vec![node(1, 0, &[4])];
    let mut parts = vec![node(1, 0, &[1])];
    for i in 0..100_000 {
        loops.push(node(2, i, &[1, 8, 0]));
        // Each sequence has two parts: the previous node, and the block of one byte directly after it.
        parts.push(node(5, 0, &[2, 0, u64::from(i), u64::from(i) + 1, 0]));
    }
    assert!(survives(&handmade(4, 4, 8, &loops)));
    assert!(survives(&handmade(100_001, 100_001, 100_001, &parts)));
    let plan = wire::decode(&handmade(100_001, 100_001, 100_001, &parts)).unwrap();
    let memory: Vec<u8> = (0..100_001).map(|i| i as u8).collect();
    let mut packed = vec![0; 1000];
    pack_range(&plan, 1, &memory, 0, 50_000..51_000, &mut packed).unwrap();
    assert!(packed == memory[50_000..51_000]);
}

/// Checks programs that use one child twice at every level, so that 60 nodes describe 2^60 bytes. The
/// work of a call must depend only on its range.
#[test]
fn exponential_programs() {
    let mut nodes = vec![node(1, 0, &[1])];
    for i in 0..60u32 {
        nodes.push(node(5, 0, &[2, 0, u64::from(i), 1 << i, u64::from(i)]));
    }
    let size = 1u64 << 60;
    assert!(survives(&handmade(size, size as i64, size as i64, &nodes)));
    for i in 60..200u32 {
        nodes.push(node(5, 0, &[2, 0, u64::from(i), 0, u64::from(i)]));
    }
    assert!(wire::decode(&handmade(size, size as i64, size as i64, &nodes)).is_err());
}
