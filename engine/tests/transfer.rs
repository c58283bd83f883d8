//! Compares fused copies of many ranges with a pack by the oracle (the simple implementation in
//! `typemap.rs`), followed by an unpack. The pairs of layouts reach every executor.

use crate::layouts::{memory, small};
use crate::walk::places;
use std::ops::Range;
use typepack_engine::{Datatype, Named, Side, copy, copy_range, stats, typemap, unpack_range};

/// Copies `range` and compares the whole destination with the expected bytes, including gaps and
/// the memory around the elements.
fn check(name: &str, (from, n): (&Datatype, u64), (to, m): (&Datatype, u64), range: Range<u64>) {
    let (src, origin) = memory(from, n, 1);
    let (mut dst, place) = memory(to, m, 90);
    let packed = typemap::pack(from, n, &src, origin);
    let (from, into) = (from.commit().unwrap(), to.commit().unwrap());
    let mut expected = dst.clone();
    if range.start == 0 && range.end == into.packed_bytes(m).unwrap() {
        typemap::unpack(to, m, &packed[..range.end as usize], &mut expected, place);
    } else {
        // The oracle unpacks only whole elements. For this range, use `unpack_range`, which
        // `agree.rs` compares with the oracle.
        let part = &packed[range.start as usize..range.end as usize];
        unpack_range(&into, m, part, range.clone(), &mut expected, place).unwrap();
    }
    let src = Side { plan: &from, count: n, memory: &src[..], origin };
    let dst_side = Side { plan: &into, count: m, memory: &mut dst[..], origin: place };
    copy_range(src, dst_side, range.clone()).unwrap();
    assert!(
        dst == expected,
        "{name} {range:?}\nfrom {n} x\n{}to {m} x\n{}",
        from.program(),
        into.program()
    );
}

#[test]
fn all_pairs_of_small_types() {
    let types = small();
    for (a, from) in &types {
        for (b, to) in &types {
            if from.size() == 0 || to.size() == 0 {
                continue;
            }
            let name = format!("{a} -> {b}");
            for (n, m) in [(1, 1), (to.size() as u64, from.size() as u64), (5, 3)] {
                let bytes = (n * from.size() as u64).min(m * to.size() as u64);
                if bytes > 8192 {
                    continue;
                }
                check(&name, (from, n), (to, m), 0..bytes);
                for i in 1..6 {
                    let (start, end) = ((bytes * i / 13), bytes - (bytes * (i * i % 7) / 31));
                    if start <= end {
                        check(&name, (from, n), (to, m), start..end);
                    }
                }
            }
        }
    }
}

#[test]
fn every_range_of_a_few_pairs() {
    let byte = Datatype::named(Named::BYTE);
    let blocks = |count, length, stride| {
        Datatype::hvector(count, 1, stride, &Datatype::contiguous(length, &byte).unwrap()).unwrap()
    };
    let pairs = [
        (blocks(12, 4, 7), blocks(12, 4, 9)),
        (blocks(4, 12, 17), blocks(12, 4, 9)),
        (blocks(12, 4, 9), blocks(4, 12, 17)),
        (blocks(6, 8, 9), blocks(12, 4, -6)),
        (blocks(16, 3, 4), Datatype::hvector(4, 1, 50, &blocks(4, 3, 5)).unwrap()),
        (blocks(3, 16, 20), Datatype::indexed(&[9, 0, 30, 9], &[50, 1, 10, 0], &byte).unwrap()),
    ];
    for (from, to) in &pairs {
        for start in 0..=48 {
            for end in start..=48 {
                check("pair", (from, 1), (to, 1), start..end);
            }
        }
    }
}

/// Checks every block length for which the engine has a separate copy loop, in one row and in two
/// levels.
#[test]
fn every_block_length() {
    let byte = Datatype::named(Named::BYTE);
    for bytes in (1..=70).chain([127, 128, 300]) {
        let block = Datatype::contiguous(bytes, &byte).unwrap();
        let row = Datatype::hvector(4, 1, bytes + 3, &block).unwrap();
        let from = Datatype::hvector(6, 1, 5 * bytes + 20, &row).unwrap();
        let to = Datatype::hvector(24, 1, bytes + 1, &block).unwrap();
        let places: Vec<i64> = (0..24).map(|i| (i * 7 % 24) * (bytes + 2)).collect();
        let table = Datatype::hindexed_block(1, &places, &block).unwrap();
        let whole = 0..24 * bytes as u64;
        for (a, b) in [(&from, &to), (&to, &from), (&from, &table), (&table, &to), (&table, &table)]
        {
            check("block", (a, 1), (b, 1), whole.clone());
            check("block", (a, 1), (b, 1), bytes as u64 / 2..whole.end - 1);
        }
    }
}

/// Checks layouts that are larger than the buffer of `staged.rs`, with runs that are shorter and longer
/// than its thresholds of 512 bytes and 4 KiB.
#[test]
fn large_layouts_through_every_rule() {
    let byte = Datatype::named(Named::BYTE);
    let blocks = |count, length, stride| {
        Datatype::hvector(count, 1, stride, &Datatype::contiguous(length, &byte).unwrap()).unwrap()
    };
    let lengths: Vec<i64> = (0..900).map(|i| i % 13 * 8 + 1).collect();
    let starts: Vec<i64> = (0..900).map(|i| i * 131).collect();
    let mixed: Vec<i64> = (0..80).map(|i| if i % 9 < 4 { 3000 } else { 11 }).collect();
    let far: Vec<i64> = (0..80).map(|i| i * 3001).collect();
    let members = [byte.clone(), Datatype::named(Named::INT), Datatype::named(Named::DOUBLE)];
    let gapped = Datatype::structured(&[1, 1, 1], &[0, 4, 8], &members).unwrap();
    let types = [
        ("short blocks", blocks(5000, 10, 13)),
        ("shorter blocks", blocks(7000, 7, 9)),
        ("rows of 700", blocks(80, 700, 900)),
        ("rows of 1100", blocks(50, 1100, 1200)),
        ("rows of 9000", blocks(6, 9000, 9100)),
        ("list of runs", Datatype::hindexed(&lengths, &starts, &byte).unwrap()),
        ("long and short runs", Datatype::hindexed(&mixed, &far, &byte).unwrap()),
        ("structs", Datatype::contiguous(4000, &gapped).unwrap()),
    ];
    let before = stats::bytes().fused;
    for (a, from) in &types {
        for (b, to) in &types {
            let bytes = from.size().min(to.size()) as u64;
            let name = format!("{a} -> {b}");
            for range in [0..bytes, 0..bytes / 2, 777..bytes - 555, 30_000..33_000] {
                check(&name, (from, 1), (to, 1), range);
            }
        }
    }
    assert!(stats::bytes().fused > before);
}

/// Checks transposes and other copies in which the two sides have different orders: dense and with
/// gaps, forwards and backwards, in two and three dimensions. Also checks destinations that overlap
/// themselves, for which the order of the writes matters.
#[test]
fn layouts_across_each_other() {
    let byte = Datatype::named(Named::BYTE);
    let nest = |levels: &[(i64, i64)], bytes| {
        let block = Datatype::contiguous(bytes, &byte).unwrap();
        let around = |ty, &(count, stride): &(i64, i64)| Datatype::hvector(count, 1, stride, &ty);
        levels.iter().rev().try_fold(block, around).unwrap()
    };
    for bytes in [1, 2, 3, 4, 6, 8, 12, 16, 24, 70] {
        let (m, n) = (24, 38);
        let pages = (n, 4096);
        let pairs = [
            // Copies from columns to rows, and from rows to columns.
            ([(m, bytes), pages], [(m, n * bytes + 8), (n, bytes)]),
            ([(n, m * bytes + 8), (m, bytes)], [(n, bytes), (m, 4096)]),
            ([(m, bytes), pages], [(m, 4096), (n, bytes)]),
            // Both sides are packed in the same order, which is not address order.
            ([(m, bytes), pages], [(m, bytes), (n, m * bytes + 24)]),
            // These layouts have gaps between neighbours, or negative strides.
            ([(m, 2 * bytes), pages], [(m, n * bytes * 3), (n, 3 * bytes)]),
            ([(m, -bytes), pages], [(m, n * bytes), (n, -bytes)]),
            // The runs of the destination overlap.
            ([(m, bytes), pages], [(m, n * bytes), (n, bytes - 1)]),
            ([(m, bytes), pages], [(m, bytes), (n, bytes)]),
            ([(m, bytes), pages], [(m, 0), (n, bytes)]),
        ];
        for (from, to) in &pairs {
            let (from, to) = (nest(from, bytes), nest(to, bytes));
            let all = (m * n * bytes) as u64;
            check("across", (&from, 1), (&to, 1), 0..all);
            check("across", (&from, 1), (&to, 1), all / 7 + 1..all - 3);
        }
        let (k, l) = (9, 10);
        let axes = [(k, bytes), (l, k * bytes + 1), (40, 4096)];
        let dense = |order: [usize; 3]| {
            let mut stride = bytes;
            let mut levels = [(0, 0); 3];
            for at in order {
                levels[at] = (axes[at].0, stride);
                stride *= axes[at].0;
            }
            nest(&levels, bytes)
        };
        let from = nest(&axes, bytes);
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let to = dense(order);
            let all = to.size() as u64;
            for (a, b) in [(&from, &to), (&to, &from)] {
                check("in space", (a, 1), (b, 1), 0..all);
                check("in space", (a, 1), (b, 1), all / 3 + 1..all - 1);
            }
        }
    }
}

#[test]
fn lengths_may_differ_only_for_ranges() {
    let int = Datatype::named(Named::INT).commit().unwrap();
    let vector = Datatype::vector(3, 1, 2, &Datatype::named(Named::INT)).unwrap();
    let vector = vector.commit().unwrap();
    let (src, mut dst) = ([1i32, 2, 3, 4], [0i32; 5]);
    assert!(copy(&int, 4, &src, &vector, 1, &mut dst).is_err());
    let from = Side { plan: &int, count: 4, memory: &src[..], origin: 0 };
    let to = Side { plan: &vector, count: 1, memory: &mut dst[..], origin: 0 };
    copy_range(from, to, 0..12).unwrap();
    assert_eq!(dst, [1, 0, 2, 0, 3]);
    assert_eq!(copy(&int, 0, &src, &vector, 0, &mut dst).unwrap(), 0);
}

/// Checks that the runs which a cursor returns one by one, from any position, equal the rest of the
/// typemap.
#[test]
fn cursors_from_every_position() {
    for (name, ty) in small() {
        let plan = ty.commit().unwrap();
        let count = 3;
        let bytes = places(&ty, count);
        for from in (0..=bytes.len()).step_by(1 + bytes.len() / 300) {
            let cursor = typepack_engine::Cursor::at(&plan, count, from as u64).unwrap();
            let walked: Vec<i64> =
                cursor.flat_map(|run| (0..run.bytes as i64).map(move |k| run.offset + k)).collect();
            assert!(walked == bytes[from..], "{name} from {from}\n{}", plan.program());
        }
    }
}
