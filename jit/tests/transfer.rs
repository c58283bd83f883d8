//! Tests fused copies with kernels through the engine's public calls. The result must be that of
//! packing and unpacking by the typemap: with and without code memory, with `verify`, and with a
//! lazy JIT that compiles the kernel after some of the copies.

use crate::walk::places;
use std::ops::Range;
use std::sync::Arc;
use typepack_engine::{
    Datatype, Named, Order, Plan, Settings as EngineSettings, Side, Strategy, copy, copy_range,
    stats,
};
use typepack_jit::{Jit, Mode, Settings};

/// Number of doubles in every layout.
const DOUBLES: i64 = 240;

fn commit(ty: &Datatype, jit: &Jit, checked: bool) -> Plan {
    // With `verify`, the engine compares every call of a kernel with the interpreter. The strategy
    // forces a kernel wherever one is possible.
    let (verify, strategy) = (checked, checked.then_some(Strategy::Kernel));
    let compiler = Some(Arc::new(jit.clone()) as Arc<_>);
    ty.commit_with(&EngineSettings { compiler, verify, strategy, ..EngineSettings::default() })
        .expect("the type is committed")
}

/// Returns layouts of 240 doubles: equal blocks, blocks whose lengths divide each other, unrelated
/// lengths, nests, tables.
fn types() -> Vec<(&'static str, Datatype)> {
    let double = Datatype::named(Named::F64);
    let vector = |count, block, stride| {
        Datatype::vector(count, block, stride, &double).expect("the vector is valid")
    };
    let nest = |outer, bytes, inner: &Datatype| {
        Datatype::hvector(outer, 1, bytes, inner).expect("the nest is valid")
    };
    let places: Vec<i64> = (0..DOUBLES).map(|i| i * 77 % DOUBLES * 2).collect();
    let blocks: Vec<i64> = (0..60).map(|i| i * 13 % 60 * 5).collect();
    let four: Vec<i64> = (0..60).map(|i| i % 7).collect();
    let shorts: Vec<i64> = four
        .iter()
        .scan(0, |at, gap| {
            *at += gap + 4;
            Some(*at)
        })
        .collect();
    let cube = |sub: [i64; 3]| {
        Datatype::subarray(&[12, 12, 12], &sub, &[1, 1, 1], Order::C, &double)
            .expect("the subarray is valid")
    };
    let transfer = Datatype::structured(&[1, 1], &[0, 24], &[double.clone(), double.clone()])
        .expect("the struct is valid");
    vec![
        ("stride 2", vector(DOUBLES, 1, 2)),
        ("stride -3", vector(DOUBLES, 1, -3)),
        ("pairs", vector(120, 2, 3)),
        ("triples", vector(80, 3, 5)),
        ("fives", vector(48, 5, 6)),
        ("eights", vector(30, 8, 9)),
        ("twelves", vector(20, 12, 16)),
        ("forties", vector(6, 40, 41)),
        ("10 x 24", nest(10, 600, &vector(24, 1, 3))),
        ("24 x 10", nest(24, 200, &vector(10, 1, 2))),
        ("7 does not divide", nest(8, 1000, &nest(5, 170, &vector(6, 1, 3)))),
        ("interleaved", nest(120, 8, &vector(2, 1, 120))),
        ("cube", cube([6, 10, 4])),
        ("face", cube([10, 8, 3])),
        ("list", Datatype::indexed_block(1, &places, &double).expect("the list is valid")),
        ("list of fours", Datatype::indexed_block(4, &blocks, &double).expect("the list is valid")),
        (
            "list with gaps",
            Datatype::indexed_block(4, &shorts, &double).expect("the list is valid"),
        ),
        ("members", Datatype::contiguous(120, &transfer).expect("the structs are valid")),
        (
            "lists in a nest",
            nest(
                4,
                4000,
                &Datatype::indexed_block(1, &blocks, &double).expect("the list is valid"),
            ),
        ),
        // Blocks of this layout overlap. In a destination, the last write to a byte must win.
        ("overlapping", nest(80, 16, &vector(1, 3, 3))),
    ]
}

struct Memory {
    bytes: Vec<u8>,
    origin: usize,
}

fn memory(ty: &Datatype, seed: usize) -> Memory {
    let origin = 64 + (-ty.true_lb()).max(0) as usize;
    let length = origin + ty.true_ub().max(0) as usize + 64;
    Memory { bytes: (0..length).map(|i| ((i + seed) * 31 % 251) as u8).collect(), origin }
}

fn check(
    name: &str,
    (from, a): (&Datatype, &Plan),
    (to, b): (&Datatype, &Plan),
    ranges: &[Range<u64>],
) {
    let (src, fresh) = (memory(from, 1), memory(to, 100));
    let (read, written) = (places(from, 1), places(to, 1));
    for range in ranges {
        let mut expected = fresh.bytes.clone();
        for k in range.start as usize..range.end as usize {
            let at = |memory: &Memory, place: i64| (memory.origin as i64 + place) as usize;
            expected[at(&fresh, written[k])] = src.bytes[at(&src, read[k])];
        }
        let mut dst = fresh.bytes.clone();
        let source = Side { plan: a, count: 1, memory: &src.bytes[..], origin: src.origin };
        let target = Side { plan: b, count: 1, memory: &mut dst[..], origin: fresh.origin };
        copy_range(source, target, range.clone()).expect("the data is copied");
        assert!(dst == expected, "{name} {range:?}\n{}to\n{}", a.program(), b.program());
    }
}

fn ranges() -> Vec<Range<u64>> {
    let bytes = 8 * DOUBLES as u64;
    let mut ranges = vec![0..bytes, 0..0, 0..1, bytes - 1..bytes, 8..bytes - 8];
    let mut x = 12345_u64;
    for _ in 0..60 {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let (start, end) = ((x >> 33) % (bytes + 1), (x >> 13) % (bytes + 1));
        ranges.push(start.min(end)..start.max(end));
    }
    ranges
}

fn all_pairs(jit: &Jit, checked: bool) -> (usize, usize) {
    let types: Vec<_> = types()
        .into_iter()
        .map(|(name, ty)| {
            let plan = commit(&ty, jit, checked);
            (name, ty, plan)
        })
        .collect();
    let (mut kernels, mut pairs) = (0, 0);
    for (a, from, source) in &types {
        for (b, to, target) in &types {
            let before = stats::bytes().fused_kernel;
            check(&format!("{a} -> {b}"), (from, source), (to, target), &ranges());
            kernels += usize::from(stats::bytes().fused_kernel > before);
            pairs += 1;
        }
    }
    (kernels, pairs)
}

fn eager(memory_max: u64) -> Jit {
    Jit::new(Settings { mode: Mode::Eager, memory_max, ..Settings::default() })
}

/// Runs all cases in one test, because the counters belong to the whole process.
#[test]
fn pairs_of_layouts() {
    let jit = eager(Settings::MEMORY_MAX);
    let (kernels, pairs) = all_pairs(&jit, false);
    // Some pairs have short rows that do not end at the same places. No kernel runs for these pairs.
    assert!(kernels * 2 > pairs, "{kernels} of {pairs}");
    let (forced, _) = all_pairs(&jit, true);
    println!("of {pairs} pairs {kernels} ran on a kernel of their own, {forced} where forced");
    assert!(forced * 5 > pairs * 4, "{forced} of {pairs}");
    assert_eq!(jit.counters().refusals, 0);
    assert_eq!(stats::bytes().disagreements, 0);

    // Without code memory, the copy must move the same bytes and use no kernels.
    let denied = eager(0);
    assert_eq!(all_pairs(&denied, false), (0, pairs));
    assert!(denied.counters().refusals > 0);

    // The lazy JIT compiles the kernel after enough bytes were copied, and the whole process shares
    // the kernel.
    let lazy = Jit::new(Settings { mode: Mode::Lazy, threshold: 4000, ..Settings::default() });
    let vector = |stride| {
        Datatype::vector(DOUBLES, 1, stride, &Datatype::named(Named::F64))
            .expect("the vector is valid")
    };
    let (from, to) = (commit(&vector(2), &lazy, false), commit(&vector(3), &lazy, false));
    let src = vec![1.5_f64; 2 * DOUBLES as usize];
    let mut counts = Vec::new();
    for _ in 0..3 {
        let before = stats::bytes().fused_kernel;
        let mut dst = vec![0_f64; 3 * DOUBLES as usize];
        copy(&from, 1, &src, &to, 1, &mut dst).expect("the data is copied");
        assert_eq!((dst[0], dst[1], dst[3]), (1.5, 0.0, 1.5));
        counts.push(stats::bytes().fused_kernel - before);
    }
    assert_eq!(counts, [0, 0, 8 * DOUBLES as u64]);
    assert_eq!(lazy.counters().kernels, 1);

    more_pairs_than_are_remembered(&jit);
    a_box_of_leaves_stays_inside_its_level(&jit);
    a_kernel_asked_for_takes_crossed_pairs(&jit);
}

/// Copies twice between each of 48 pairs of plans. A thread remembers fewer pairs than that, so it
/// forgets the pairs that it has not used for the longest time. A copy between the plans of a
/// forgotten pair must still be right.
fn more_pairs_than_are_remembered(jit: &Jit) {
    let double = Datatype::named(Named::F64);
    let plan = |stride| {
        commit(&Datatype::vector(100, 1, stride, &double).expect("the vector is valid"), jit, false)
    };
    let (from, src) = (plan(2), vec![2.5_f64; 200]);
    let plans: Vec<(usize, Plan)> = (2..50).map(|stride| (stride, plan(stride as i64))).collect();
    for (stride, to) in plans.iter().chain(&plans) {
        let mut dst = vec![0_f64; 100 * stride];
        copy(&from, 1, &src, to, 1, &mut dst).expect("the data is copied");
        assert_eq!(dst.iter().filter(|value| **value == 2.5).count(), 100);
        assert_eq!((dst[*stride], dst[99 * stride]), (2.5, 2.5));
    }
}

/// A regression that `typepack-fuzz` found: if a range began inside the innermost of three levels,
/// the copy executed more iterations of that level than were left, and wrote outside the row.
fn a_box_of_leaves_stays_inside_its_level(jit: &Jit) {
    let double = Datatype::named(Named::F64);
    let five = Datatype::hvector(5, 1, 9, &double).expect("the vector is valid");
    let from = Datatype::hvector(64, 1, 60, &five).expect("the nest is valid");
    let row = Datatype::hvector(20, 1, 11, &double).expect("the vector is valid");
    let to = Datatype::hvector(16, 1, 300, &row).expect("the nest is valid");
    let (a, b) = (commit(&from, jit, false), commit(&to, jit, false));
    let ranges: Vec<_> = (0..300).map(|i| i * 7..2560 - i).collect();
    check("boxes", (&from, &a), (&to, &b), &ranges);
}

/// A regression. If a copy transposes a matrix, the engine visits the blocks in a special order
/// (`engine/src/transfer/transpose.rs`) and uses no compiled kernel. An earlier version did so even
/// if the settings forced compiled kernels.
fn a_kernel_asked_for_takes_crossed_pairs(jit: &Jit) {
    let double = Datatype::named(Named::F64);
    let column = Datatype::vector(600, 1, 600, &double).expect("the vector is valid");
    let column = Datatype::resized(0, 8, &column).expect("the column is valid");
    let from = Datatype::contiguous(600, &column).expect("the columns are valid");
    let to = Datatype::vector(600, 600, 610, &double).expect("the rows are valid");
    let src: Vec<f64> = (0..600 * 600).map(f64::from).collect();
    for strategy in [None, Some(Strategy::Kernel)] {
        let plan = |ty: &Datatype| {
            let compiler = Some(Arc::new(jit.clone()) as Arc<_>);
            let settings = EngineSettings { compiler, strategy, ..EngineSettings::default() };
            ty.commit_with(&settings).expect("the type is committed")
        };
        let mut dst = vec![0_f64; 600 * 610];
        let before = stats::bytes().fused_kernel;
        copy(&plan(&from), 1, &src, &plan(&to), 1, &mut dst).expect("the data is copied");
        let by_kernel = stats::bytes().fused_kernel - before;
        assert_eq!(by_kernel, if strategy.is_some() { 8 * 600 * 600 } else { 0 }, "{strategy:?}");
        for (x, row) in dst.chunks(610).enumerate() {
            assert!((0..600).all(|y| row[y] == src[y * 600 + x]) && row[600..] == [0.0; 10]);
        }
    }
}
