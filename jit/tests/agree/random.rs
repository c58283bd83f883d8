//! Makes random nests (loops around a block or a few short runs) from a seed.

use std::sync::Arc;
use typepack_engine::Table;
use typepack_engine::kernel::{Leaf, Level, Nest, Run};

pub use typepack_test_support::random::Random;

/// Returns a generator for case `seed`.
pub fn seeded(seed: u64) -> Random {
    Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def0)
}

/// Returns a nest of one to eight levels with at most a few thousand leaves.
pub fn nest(r: &mut Random) -> Nest {
    let depth = match r.next() % 8 {
        0..3 => 1,
        3..5 => 2,
        5 => 3,
        6 => r.between(4, 7),
        _ => 8,
    };
    let mut budget = 2000;
    let mut levels: Vec<Level> = (0..depth)
        .map(|l| {
            let most = if l + 1 == depth { budget.min(70) } else { (budget / 4).clamp(1, 6) };
            let count = if r.one_in(40) { 0 } else { r.between(1, most) };
            budget = (budget / count.max(1)).max(1);
            level(r, count)
        })
        .collect();
    if r.one_in(2) {
        levels.reverse();
    }
    Nest { base: r.between(-200, 200), levels: levels.into(), leaf: leaf(r) }
}

pub fn level(r: &mut Random, count: i64) -> Level {
    let step = match r.next() % 6 {
        0 => r.between(-5, 5),
        1 => 8 * r.between(-9, 9),
        2 => r.between(-900, 900),
        _ => r.between(1, 150),
    };
    if !r.one_in(3) {
        return Level::Loop { count: count as u64, stride: step };
    }
    let entries: Vec<i64> = (0..count).map(|_| r.between(-40, 60)).collect();
    let entries =
        if r.one_in(2) { Table::new(&entries) } else { Table::Wide(entries.as_slice().into()) };
    Level::Table { entries, scale: step }
}

fn leaf(r: &mut Random) -> Leaf {
    match r.next() % 4 {
        0 => Leaf::Block { bytes: 1 << r.between(0, 6) },
        1 => Leaf::Block { bytes: r.between(1, 64) as u64 },
        2 => Leaf::Block { bytes: r.between(65, 400) as u64 },
        _ => {
            let mut at = 0;
            let backwards = r.one_in(4);
            let runs: Arc<[Run]> = (0..r.between(1, 32))
                .map(|i| {
                    let bytes = match r.next() % 8 {
                        0 => r.between(1, 200),
                        1..4 => 1 << r.between(0, 4),
                        _ => r.between(1, 20),
                    };
                    let gap = if backwards { r.between(-30, 20) } else { r.between(0, 20) };
                    let offset = if i == 0 { 0 } else { (at + gap).clamp(-4096, 4096 - bytes) };
                    at = offset + bytes;
                    Run { offset, bytes: bytes as u64 }
                })
                .collect();
            Leaf::Window { runs }
        }
    }
}

/// Returns a random range of iterations for every level, as (start, end).
pub fn part(r: &mut Random, nest: &Nest) -> Vec<(u64, u64)> {
    nest.levels
        .iter()
        .map(|level| {
            let start = r.between(0, level.count() as i64);
            (start as u64, r.between(start, level.count() as i64) as u64)
        })
        .collect()
}
