//! Compares kernels of fused copies (copies from one layout directly to another) with a run-by-run
//! copy. The cases are random nests over two layouts, every length, overlapping destinations, and counts
//! of 0. The memory of the source and the memory of the destination each touch a guard page.

use super::{Edge, Guarded, Random, random};
use typepack_engine::kernel::{
    Compiler, Level, LevelShape, Run, Shape, TransferLeaf, TransferRun, TransferShape,
};
use typepack_engine::{Direction, Table};
use typepack_jit::Jit;

/// Number of random nests per run of the test.
const CASES: u64 = 3000;

/// A nest over two layouts.
#[derive(Debug)]
pub struct Transfer {
    pub levels: Vec<[Level; 2]>,
    pub runs: Vec<TransferRun>,
    /// True if the leaf is a Long leaf: a single run of more than 64 bytes.
    pub long: bool,
}

impl Transfer {
    pub fn block(levels: Vec<[Level; 2]>, bytes: u64) -> Self {
        Self { levels, runs: vec![TransferRun { from: 0, to: 0, bytes }], long: bytes > 64 }
    }

    pub fn shape(&self) -> TransferShape {
        // Takes the shapes of one side's levels from a nest with these levels, because the shape of
        // a table depends on the width of the table's entries.
        let shapes = |side: usize| {
            let levels = self.levels.iter().map(|level| level[side].clone()).collect();
            let nest = super::block(levels, 1);
            let Shape { levels, .. } = nest.shape(Direction::Pack);
            levels
        };
        let (from, to): (Vec<LevelShape>, Vec<LevelShape>) = (shapes(0), shapes(1));
        TransferShape {
            levels: from.into_iter().zip(to).map(<[LevelShape; 2]>::from).collect(),
            leaf: match self.long {
                true => TransferLeaf::Long,
                false => TransferLeaf::Runs { runs: self.runs.as_slice().into() },
            },
        }
    }

    pub fn parameters(&self) -> Vec<u64> {
        let mut words = Vec::new();
        for level in &self.levels {
            words.push(level[0].count());
            for side in level {
                words.extend(match side {
                    Level::Loop { stride, .. } => [*stride as u64, 0],
                    Level::Table { entries, scale } => [entries.address(), *scale as u64],
                });
            }
        }
        if self.long {
            words.push(self.runs[0].bytes);
        }
        words
    }

    /// Returns all runs of the copy, in order.
    pub fn all(&self) -> Vec<TransferRun> {
        let mut bases = vec![(0, 0)];
        for [from, to] in &self.levels {
            let at = |level: &Level, i: u64| match level {
                Level::Loop { stride, .. } => i as i64 * stride,
                Level::Table { entries, scale } => entries.get(i as usize) * scale,
            };
            bases = bases
                .iter()
                .flat_map(|&(a, b)| {
                    (0..from.count()).map(move |i| (a + at(from, i), b + at(to, i)))
                })
                .collect();
        }
        let leaf = |(a, b)| {
            self.runs.iter().map(move |run| TransferRun {
                from: a + run.from,
                to: b + run.to,
                bytes: run.bytes,
            })
        };
        bases.into_iter().flat_map(leaf).collect()
    }
}

fn span(runs: impl Iterator<Item = Run> + Clone) -> (i64, usize) {
    let low = runs.clone().map(|run| run.offset).min().unwrap_or(0);
    let high = runs.map(|run| run.offset + run.bytes as i64).max().unwrap_or(0);
    (low, (high - low) as usize)
}

fn agree(jit: &Jit, transfer: &Transfer, edge: Edge, name: &str) {
    agree_at(jit, transfer, edge, [0, 0], name);
}

/// Runs the kernel of `transfer` and compares all bytes with a run-by-run copy. The source lies
/// `insets[0]` bytes and the destination `insets[1]` bytes away from its guard page.
pub fn agree_at(jit: &Jit, transfer: &Transfer, edge: Edge, insets: [usize; 2], name: &str) {
    let skip = insets.map(|inset| if edge == Edge::Start { inset } else { 0 });
    let runs = transfer.all();
    let (low, bytes) = span(runs.iter().map(|r| Run { offset: r.from, bytes: r.bytes }));
    let mut src = Guarded::new(bytes + insets[0], edge);
    let low = low - skip[0] as i64;
    let (place, bytes) = span(runs.iter().map(|r| Run { offset: r.to, bytes: r.bytes }));
    let mut dst = Guarded::new(bytes + insets[1], edge);
    let place = place - skip[1] as i64;
    let mut random = random::seeded(runs.len() as u64 ^ 0x5eed);
    random.fill(src.bytes_mut());
    random.fill(dst.bytes_mut());
    let source = src.bytes().to_vec();
    let mut expected = dst.bytes().to_vec();
    for run in &runs {
        let (from, to) = ((run.from - low) as usize, (run.to - place) as usize);
        expected[to..][..run.bytes as usize].copy_from_slice(&source[from..][..run.bytes as usize]);
    }
    let shape = transfer.shape();
    let kernel = jit.transfer_kernel(&shape).unwrap_or_else(|| panic!("{name}: {shape} refused"));
    assert_eq!(kernel.name(), shape.to_string());
    let params = transfer.parameters();
    assert_eq!(params.len(), shape.words());
    let from = src.bytes_mut().as_mut_ptr().wrapping_offset(-low as isize);
    let to = dst.bytes_mut().as_mut_ptr().wrapping_offset(-place as isize);
    // SAFETY:
    // - `params` has the words of the shape; its table addresses are those of `transfer`;
    // - `src` and `dst` span all runs of their side, and are different mappings.
    unsafe { kernel.entry()(params.as_ptr(), from, to) };
    assert!(src.bytes() == source, "{name}: {shape} {transfer:?}: source");
    assert!(dst.bytes() == expected, "{name}: {shape} {transfer:?}: destination");
}

fn both(jit: &Jit, transfer: &Transfer, name: &str) {
    agree(jit, transfer, Edge::Start, name);
    agree(jit, transfer, Edge::End, name);
}

#[test]
fn random_pairs() {
    let jit = super::jit();
    for seed in 0..CASES {
        let mut r = random::seeded(seed ^ 0xfa1e);
        let mut budget = 1500;
        let depth = r.between(1, 5);
        let levels = (0..depth)
            .map(|l| {
                let most = if l + 1 == depth { budget.min(40) } else { (budget / 4).clamp(1, 6) };
                let count = if r.one_in(40) { 0 } else { r.between(1, most) };
                budget = (budget / count.max(1)).max(1);
                [random::level(&mut r, count), random::level(&mut r, count)]
            })
            .collect();
        let transfer = match r.next() % 3 {
            0 => Transfer::block(levels, r.between(1, 64) as u64),
            1 => Transfer::block(levels, r.between(65, 400) as u64),
            _ => {
                let run = |r: &mut Random| TransferRun {
                    from: r.between(-99, 99),
                    to: r.between(-99, 99),
                    bytes: if r.one_in(2) { 1 << r.between(0, 6) } else { r.between(1, 64) as u64 },
                };
                let runs = (0..r.between(1, 16)).map(|_| run(&mut r)).collect();
                Transfer { levels, runs, long: false }
            }
        };
        both(&jit, &transfer, &format!("seed {seed}"));
    }
    assert_eq!(jit.counters().refusals, 0);
}

fn line(count: u64, stride: i64) -> Level {
    Level::Loop { count, stride }
}

/// Tests every length, with counts around the number of leaves in the unrolled body, for loops and
/// tables in source and destination.
#[test]
fn every_length_and_count() {
    let jit = super::jit();
    for bytes in (1..=70_u64).chain([127, 128, 129, 192, 300]) {
        for count in (0..=9).chain([64, 65]) {
            let (s, d) = (bytes as i64 + 3, bytes as i64 + 1);
            let entries: Vec<i64> = (0..count as i64).map(|i| i * 5 % 23).collect();
            let table = |entries| Level::Table { entries, scale: d };
            let narrow = table(Table::new(&entries));
            let wide = table(Table::Wide(entries.as_slice().into()));
            for level in [
                [line(count, s), line(count, d)],
                [line(count, -s), narrow.clone()],
                [wide.clone(), line(count, d)],
                [narrow, wide],
            ] {
                both(&jit, &Transfer::block(vec![level], bytes), "length");
            }
        }
    }
}

/// Tests runs that share bytes in the destination: the later run must win.
#[test]
fn overlapping_destinations_keep_their_order() {
    let jit = super::jit();
    for bytes in [1, 2, 3, 4, 7, 8, 12, 16, 24, 31, 64, 100, 200_u64] {
        for stride in -9..=9 {
            for count in [1, 2, 7, 19] {
                let level = [line(count, bytes as i64 + 1), line(count, stride)];
                both(&jit, &Transfer::block(vec![level], bytes), "overlap");
            }
        }
    }
    // These runs touch or overlap in the destination, where a kernel may join stores.
    let run = |from, to, bytes| TransferRun { from, to, bytes };
    let runs = vec![
        run(0, 0, 8),
        run(20, 8, 8),
        run(40, 16, 8),
        run(60, 20, 8),
        run(70, 20, 4),
        run(80, 24, 4),
        run(90, 28, 4),
        run(96, 32, 4),
        run(0, 30, 9),
    ];
    for stride in [-3, 0, 3, 24, 50] {
        let levels = vec![[line(11, 100), line(11, stride)]];
        both(&jit, &Transfer { levels, runs: runs.clone(), long: false }, "overlap");
    }
}

#[test]
fn zero_counts_touch_nothing() {
    let jit = super::jit();
    for zero in 0..3 {
        let big = |l| line(if l == zero { 0 } else { u64::MAX }, i64::MAX / 3);
        let levels: Vec<_> = (0..3).map(|l| [big(l), big(l)]).collect();
        for bytes in [8, 24, 100] {
            let transfer = Transfer::block(levels.clone(), bytes);
            let kernel = jit.transfer_kernel(&transfer.shape()).expect("the shape has a kernel");
            let params = transfer.parameters();
            // SAFETY: one count is 0, so no memory but `params` is accessed.
            unsafe {
                kernel.entry()(params.as_ptr(), std::ptr::null_mut(), std::ptr::null_mut());
            }
        }
    }
}
