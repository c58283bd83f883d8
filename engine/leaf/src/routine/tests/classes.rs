//! Tests every class of leaf kernels on every instruction set, in both byte orders, at every distance
//! from a guard page, and with a count of 0.
//!
//! The code determines the class with `match` expressions that have no wildcard arm. So a new variant
//! of `Work` does not compile until it has a class here, and the test fails until it contains a nest
//! for this class.

use super::super::lists::{self, Runs};
use super::*;
use std::collections::HashMap;
use std::iter::successors;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// The kind of the innermost level and the length of the block. 65 stands for all lengths above
    /// 64, the longest fixed length.
    Row(LevelShape, u64),
    Runs(LevelShape),
    #[cfg(target_arch = "x86_64")]
    Window,
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    Shuffle,
    /// The number of bytes per element.
    Tile(u64),
}

/// The width of the elements whose bytes are reversed. 1 means that no bytes are reversed; 0 means a
/// window in which each run has a width of its own ([`Swap::Each`]).
type Turn = usize;

fn turn_of(leaf: &Leaf, swap: Option<&Swap>) -> Turn {
    match (leaf, swap) {
        (_, None) => 1,
        (Leaf::Window { .. }, Some(Swap::Each(_))) => 0,
        (_, Some(swap)) => swap.width(0).bytes(),
    }
}

const TURNS: [Turn; 6] = [0, 1, 2, 4, 8, 16];

impl Kind {
    fn of(work: &Work, inner: &Level) -> Self {
        let level = match inner {
            Level::Loop { .. } => LevelShape::Loop,
            Level::Table { entries, .. } => LevelShape::of_table(entries),
        };
        match work {
            Work::Row { length, .. } => Self::Row(level, (*length).min(65)),
            Work::Runs { .. } | Work::SwappedRuns { .. } => Self::Runs(level),
            #[cfg(target_arch = "x86_64")]
            Work::Dense(_) => Self::Window,
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            Work::Shuffled(_) => Self::Shuffle,
        }
    }

    /// Returns the kinds of executors that exist on `isa` if elements of width `turn` are
    /// byte-swapped.
    fn all(isa: Isa, turn: Turn) -> Vec<Self> {
        let whole = |bytes: &u64| turn != 0 && bytes.is_multiple_of(turn as u64);
        // The length 65 stands for all blocks longer than 64 bytes.
        let lengths = |level| {
            let fixed = (1..=64).filter(whole).map(move |length| Self::Row(level, length));
            fixed.chain((turn != 0).then_some(Self::Row(level, 65)))
        };
        let mut all: Vec<Self> = levels().flat_map(lengths).collect();
        all.extend(levels().map(Self::Runs));
        // Blocks that consist of 16-byte elements are never dense enough for a dense pattern.
        #[cfg(target_arch = "x86_64")]
        if isa == Isa::Avx512 && turn != 16 {
            all.push(Self::Window);
        }
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        if shuffle::has_shuffles(isa) && turn == 1 {
            all.push(Self::Shuffle);
        }
        let transposed = |bytes: &u64| {
            whole(bytes) && tiles::transposer(isa, *bytes, Width::new(turn).unwrap()).is_some()
        };
        all.extend([1, 2, 4, 8, 16].into_iter().filter(transposed).map(Self::Tile));
        all
    }
}

fn levels() -> impl Iterator<Item = LevelShape> {
    successors(Some(LevelShape::Loop), |level| match level {
        LevelShape::Loop => Some(LevelShape::Table32),
        LevelShape::Table32 => Some(LevelShape::Table64),
        LevelShape::Table64 => None,
    })
}

fn level(kind: LevelShape, count: u64, stride: i64) -> Level {
    let entries: Vec<i64> = (0..count as i64).rev().collect();
    let entries = match kind {
        LevelShape::Loop => return Level::Loop { count, stride },
        LevelShape::Table32 => Table::new(&entries),
        LevelShape::Table64 => Table::Wide(entries.as_slice().into()),
    };
    Level::Table { entries, scale: stride }
}

/// For each kind, swap, instruction set and direction: a bit mask of the shifts that were tried, and
/// whether a count of 0 was tried.
type Tried = HashMap<(Kind, Turn, Isa, bool), (u64, bool)>;

/// Checks `nest` at `shift` and records which kinds of executors ran.
fn sweep(tried: &mut Tried, nest: &Nest, shift: usize, room: &mut [Guarded; 2]) {
    let [memory, bytes] = room;
    check(nest, shift, memory, bytes);
    let nothing = nest.levels.iter().any(|level| level.count() == 0);
    let inner = nest.levels.last().expect("every nest of this test has a level");
    let words = words_of(nest);
    let swaps: Vec<Option<Swap>> =
        [None].into_iter().chain(swaps(&nest.leaf).into_iter().map(Some)).collect();
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        for swap in swaps.iter().map(Option::as_ref) {
            for pack in [true, false] {
                let direction = if pack { Direction::Pack } else { Direction::Unpack };
                let Some(routine) = Routine::new(nest, swap, direction, isa) else { continue };
                let traversal = Traversal::forced(nest, swap, isa, &words, pack);
                let tile = traversal.filter(Traversal::transposes).map(|_| nest.leaf.bytes());
                let kinds = [Kind::of(&routine.work, inner)].into_iter();
                for kind in kinds.chain(tile.map(Kind::Tile)) {
                    let key = (kind, turn_of(&nest.leaf, swap), isa, pack);
                    let seen = tried.entry(key).or_default();
                    if nothing {
                        seen.1 = true;
                    } else {
                        seen.0 |= 1 << shift;
                    }
                }
            }
        }
    }
}

/// The runs, as offsets and lengths, of an element that spans several stretches of 64 bytes. Each
/// offset is a multiple of the run's length. The first run has a single byte; the longest runs have
/// 16 bytes.
const LONG: [(i64, u64); 19] = [
    (0, 1),
    (2, 2),
    (8, 8),
    (16, 2),
    (24, 8),
    (32, 16),
    (65, 1),
    (66, 2),
    (72, 8),
    (80, 16),
    (96, 8),
    (104, 1),
    (108, 4),
    (112, 16),
    (129, 1),
    (130, 2),
    (136, 8),
    (144, 1),
    (146, 2),
];

#[test]
fn every_class_at_every_alignment() {
    let mut room = [Guarded::new(1 << 16), Guarded::new(1 << 16)];
    let mut tried = Tried::new();
    let block = |bytes| Leaf::Block { bytes };
    let nest = |levels: Vec<Level>, leaf| Nest { base: 0, levels: levels.into(), leaf };
    for shift in 0..64 {
        // Over all shifts, these counts give full groups and every possible remainder, for every
        // group size.
        let count = 16 + shift as u64 % 17;
        for kind in levels() {
            for bytes in (1..=65).chain([96, 127, 130, 300]) {
                // These blocks lie far apart, because blocks closer together would become a dense
                // pattern.
                let stride = bytes as i64 + 97;
                let rows = nest(vec![level(kind, count, stride)], block(bytes));
                sweep(&mut tried, &rows, shift, &mut room);
            }
            for runs in [
                &[(0, 1), (9, 4), (120, 8)][..],
                &[(0, 70), (200, 3), (260, 40)],
                &[(0, 16), (33, 80), (160, 32)],
            ] {
                let runs = nest(vec![level(kind, count, 301)], window(runs));
                sweep(&mut tried, &runs, shift, &mut room);
            }
        }
        for (stride, leaf) in [
            (16, window(&[(0, 1), (4, 4), (8, 8)])),
            (2, block(1)),
            (4, block(2)),
            (8, block(4)),
            (16, block(8)),
            (12, window(&[(0, 3), (4, 1), (7, 5)])),
            (32, window(&[(0, 1), (1, 1), (2, 2), (4, 4), (16, 16)])),
            (160, window(&LONG)),
        ] {
            let windows = nest(vec![level(LevelShape::Loop, 5 * count, stride)], leaf);
            sweep(&mut tried, &windows, shift, &mut room);
        }
        for element in [1, 2, 4, 8, 16] {
            let columns = 4 + count / 2;
            let pitch = (columns * element) as i64 + 13;
            let tiles = loops(&[(columns, element as i64), (count, pitch)], block(element));
            sweep(&mut tried, &tiles, shift, &mut room);
        }
    }
    for kind in levels() {
        for bytes in (1..=65).chain([96]) {
            let rows = nest(vec![level(kind, 0, bytes as i64 + 97)], block(bytes));
            sweep(&mut tried, &rows, 0, &mut room);
        }
        for runs in [[(0, 1), (9, 4), (120, 8)], [(0, 16), (33, 80), (160, 32)]] {
            let runs = nest(vec![level(kind, 0, 301)], window(&runs));
            sweep(&mut tried, &runs, 0, &mut room);
        }
    }
    sweep(&mut tried, &loops(&[(0, 16)], window(&[(0, 1), (4, 4), (8, 8)])), 0, &mut room);
    for bytes in [2, 4, 8] {
        sweep(&mut tried, &loops(&[(0, 2 * bytes)], block(bytes as u64)), 0, &mut room);
    }
    for element in [1, 2, 4, 8, 16] {
        for counts in [(0, 20), (20, 0)] {
            let levels = [(counts.0, element as i64), (counts.1, 400)];
            sweep(&mut tried, &loops(&levels, block(element)), 0, &mut room);
        }
    }
    let mut all = 0;
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        let classes = |turn| Kind::all(isa, turn).into_iter().map(move |class| (class, turn));
        for (class, turn) in TURNS.into_iter().flat_map(classes) {
            for pack in [true, false] {
                // Byte shuffles only pack.
                #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
                if class == Kind::Shuffle && !pack {
                    continue;
                }
                let seen = tried.get(&(class, turn, isa, pack));
                assert_eq!(seen, Some(&(u64::MAX, true)), "{class:?} {turn} {isa} pack {pack}");
                all += 1;
            }
        }
    }
    assert_eq!(all, tried.len(), "a kernel ran that is in no class");
}

/// Checks lists of runs of unequal length at every distance from a guard page. Such lists are not
/// nests.
#[test]
fn lists_at_every_alignment() {
    for width in [1, 2, 4, 8, 16] {
        lists_of(width);
    }
}

/// Checks lists of runs whose elements have `width` bytes and are byte-swapped.
fn lists_of(width: usize) {
    let mut room = [Guarded::new(1 << 17), Guarded::new(1 << 16)];
    let pattern = |i: usize| (i * 31 + i / 251) as u8 | 1;
    // The first run of the list has the lowest address, and the last run has the highest. So both
    // ends of the list reach the ends of the buffer.
    let counts: Vec<i64> = (0..67).map(|i| i * 41 % 67).chain([3]).collect();
    let places: Vec<i64> = (0..68).map(|i| i * 70).collect();
    let length = (67 * 70 + 3) * width;
    let total: usize = counts.iter().map(|&count| count as usize).sum::<usize>() * width;
    // For each packed byte, its offset in memory.
    let order: Vec<usize> = places
        .iter()
        .zip(&counts)
        .flat_map(|(&place, &count)| place as usize..(place + count) as usize)
        .flat_map(|element| (0..width).rev().map(move |byte| element * width + byte))
        .collect();
    for lengths in [
        Table::lengths(&counts).expect("all lengths are below 256"),
        Table::new(&counts),
        Table::Wide(counts.as_slice().into()),
    ] {
        for entries in [Table::new(&places), Table::Wide(places.as_slice().into())] {
            for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
                for (shift, at_end) in (0..64).flat_map(|shift| [(shift, false), (shift, true)]) {
                    let [memory, bytes] = &mut room;
                    let mem = memory.place(length, shift, at_end);
                    mem.iter_mut().enumerate().for_each(|(i, b)| *b = pattern(i));
                    let out = bytes.place(total, (shift * 29 + 7) % 64, at_end);
                    out.fill(0);
                    let expected: Vec<u8> = order.iter().map(|&at| mem[at]).collect();
                    let list = Runs {
                        lengths: &lengths,
                        entries: &entries,
                        scale: width as i64,
                        unit: width as u64,
                        mem: mem.as_mut_ptr(),
                        width: Width::new(width).unwrap(),
                    };
                    // SAFETY: `mem` holds all runs of the list, and `out` has as many bytes as the
                    // runs have together.
                    let end = unsafe { lists::run::<true>(isa, list, 0..68, out.as_mut_ptr()) };
                    assert_eq!(end.addr() - out.as_ptr().addr(), total);
                    assert!(*out == expected, "{width} {isa} +{shift} end {at_end}");

                    out.iter_mut().for_each(|byte| *byte = !*byte);
                    let mut expected = mem.to_vec();
                    order.iter().zip(&*out).for_each(|(&at, byte)| expected[at] = *byte);
                    // SAFETY: `mem` has room for all runs of the list, and `out` holds as many bytes
                    // as the runs have together. The ranges of the other two calls are empty, so
                    // these calls access nothing.
                    unsafe {
                        lists::run::<false>(isa, list, 0..68, out.as_mut_ptr());
                        lists::run::<false>(isa, list, 5..5, std::ptr::null_mut());
                        lists::run::<true>(isa, list, 68..68, std::ptr::null_mut());
                    }
                    assert!(*mem == expected, "{width} {isa} +{shift} end {at_end}");
                }
            }
        }
    }
}
