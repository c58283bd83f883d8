//! Defines what a nest means: the list of its runs, and a byte-by-byte copy along that list. The
//! example `tune` uses the runs and the parameters, too.

use typepack_engine::kernel::{Leaf, Level, Nest, Run};

/// Returns the runs of `nest` for the iterations `part` of every level, in packed order. Their
/// offsets are relative to the origin.
pub fn runs(nest: &Nest, part: &[(u64, u64)]) -> Vec<Run> {
    let mut bases = vec![nest.base];
    for (level, &(start, end)) in nest.levels.iter().zip(part) {
        bases = bases
            .iter()
            .flat_map(|base| {
                (start..end).map(move |i| match level {
                    Level::Loop { stride, .. } => base + i as i64 * stride,
                    Level::Table { entries, scale } => base + entries.get(i as usize) * scale,
                })
            })
            .collect();
    }
    let leaf = match &nest.leaf {
        Leaf::Block { bytes } => vec![Run { offset: 0, bytes: *bytes }],
        Leaf::Window { runs } => runs.to_vec(),
    };
    bases
        .iter()
        .flat_map(|base| {
            leaf.iter().map(move |run| Run { offset: base + run.offset, bytes: run.bytes })
        })
        .collect()
}

/// Copies the runs of `mem` to `packed`.
pub fn pack(runs: &[Run], origin: i64, mem: &[u8], packed: &mut [u8]) {
    let mut at = 0;
    for run in runs {
        for i in 0..run.bytes as i64 {
            packed[at] = mem[(origin + run.offset + i) as usize];
            at += 1;
        }
    }
}

/// Copies `packed` to the runs of `mem`.
pub fn unpack(runs: &[Run], origin: i64, packed: &[u8], mem: &mut [u8]) {
    let mut at = 0;
    for run in runs {
        for i in 0..run.bytes as i64 {
            mem[(origin + run.offset + i) as usize] = packed[at];
            at += 1;
        }
    }
}

/// Returns the parameter block for the iterations `part` of every level, as
/// `engine/leaf/src/kernel/mod.rs` prescribes. Also returns the offset of the base from the origin.
pub fn parameters(nest: &Nest, part: &[(u64, u64)]) -> (Vec<u64>, i64) {
    let mut base = nest.base;
    let mut words = Vec::new();
    for (level, &(start, end)) in nest.levels.iter().zip(part) {
        words.push(end - start);
        match level {
            Level::Loop { stride, .. } => {
                base += start as i64 * stride;
                words.extend([*stride as u64, 0]);
            }
            Level::Table { entries, scale } => {
                words.push(entries.address() + start * entries.width() as u64);
                words.push(*scale as u64);
            }
        }
    }
    if let Leaf::Block { bytes } = nest.leaf
        && bytes > 64
    {
        words.push(bytes);
    }
    (words, base)
}
