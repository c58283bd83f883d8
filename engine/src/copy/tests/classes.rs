//! Every class of leaf kernels, on every instruction set, at every alignment from a page without
//! access, and with nothing to do.
//!
//! The classes come from matches without a wildcard: a new kind of work does not compile before it
//! has one, and fails the test before there is a nest for it.

use super::super::lists::{self, Runs};
use super::*;
use crate::ir::RaggedList;
use std::collections::HashMap;
use std::iter::successors;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// Innermost level and length of the block, up to one beyond the fixed ones.
    Row(LevelShape, u64),
    Runs(LevelShape),
    #[cfg(target_arch = "x86_64")]
    Window,
    /// Bytes of an element.
    Tile(u64),
}

impl Kind {
    fn of(work: &Work, inner: &Level) -> Self {
        let level = match inner {
            Level::Loop { .. } => LevelShape::Loop,
            Level::Table { entries, .. } => LevelShape::of_table(entries),
        };
        match work {
            Work::Row { length, .. } => Self::Row(level, (*length).min(65)),
            Work::Runs { .. } => Self::Runs(level),
            #[cfg(target_arch = "x86_64")]
            Work::Window(_) => Self::Window,
        }
    }

    /// The kinds that there are on `isa`.
    fn all(isa: Isa) -> Vec<Self> {
        let lengths = |level| (1..=65).map(move |length| Self::Row(level, length));
        let mut all: Vec<Self> = levels().flat_map(lengths).collect();
        all.extend(levels().map(Self::Runs));
        #[cfg(target_arch = "x86_64")]
        if isa == Isa::Avx512 {
            all.push(Self::Window);
        }
        let transposed = [1, 2, 4, 8, 16].into_iter();
        all.extend(
            transposed.filter(|&bytes| tiles::transposer(isa, bytes).is_some()).map(Self::Tile),
        );
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

/// Insets tried, and whether a count of 0 was.
type Tried = HashMap<(Kind, Isa, bool), (u64, bool)>;

/// Checks `nest` at `shift` and notes what ran.
fn sweep(tried: &mut Tried, nest: &Nest, shift: usize, room: &mut [Guarded; 2]) {
    let [memory, bytes] = room;
    check(nest, shift, memory, bytes);
    let nothing = nest.levels.iter().any(|level| level.count() == 0);
    let inner = nest.levels.last().expect("a level");
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        for direction in [Direction::Pack, Direction::Unpack] {
            let Some(routine) = Routine::new(nest, direction, isa) else { continue };
            let pack = direction == Direction::Pack;
            // What `check` has forced, where tiles are allowed and transposed in registers.
            let tiles = Traversal::forced(nest, isa, &words_of(nest), pack);
            let tile = match &nest.leaf {
                Leaf::Block { bytes } if tiles.is_some_and(|tiles| tiles.transposes()) => {
                    Some(Kind::Tile(*bytes))
                }
                _ => None,
            };
            for kind in [Some(Kind::of(&routine.work, inner)), tile].into_iter().flatten() {
                let seen = tried.entry((kind, isa, pack)).or_default();
                if nothing {
                    seen.1 = true;
                } else {
                    seen.0 |= 1 << shift;
                }
            }
        }
    }
}

#[test]
fn every_class_at_every_alignment() {
    let mut room = [Guarded::new(1 << 16), Guarded::new(1 << 16)];
    let mut tried = Tried::new();
    let block = |bytes| Leaf::Block { bytes };
    let nest = |levels: Vec<Level>, leaf| Nest { base: 0, levels: levels.into(), leaf };
    for shift in 0..64 {
        // Whole groups of every width and all their rests.
        let count = 16 + shift as u64 % 17;
        for kind in levels() {
            for bytes in (1..=65).chain([96, 127, 130, 300]) {
                // Far apart: denser patterns are windows.
                let stride = bytes as i64 + 97;
                let rows = nest(vec![level(kind, count, stride)], block(bytes));
                sweep(&mut tried, &rows, shift, &mut room);
            }
            for runs in [&[(0, 1), (9, 4), (120, 8)][..], &[(0, 70), (200, 3), (260, 40)]] {
                let runs = nest(vec![level(kind, count, 301)], window(runs));
                sweep(&mut tried, &runs, shift, &mut room);
            }
        }
        for (stride, leaf) in [
            (16, window(&[(0, 1), (4, 4), (8, 8)])),
            (2, block(1)),
            (12, window(&[(0, 3), (4, 1), (7, 5)])),
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
        for bytes in 1..=65 {
            let rows = nest(vec![level(kind, 0, bytes as i64 + 97)], block(bytes));
            sweep(&mut tried, &rows, 0, &mut room);
        }
        let runs = nest(vec![level(kind, 0, 301)], window(&[(0, 1), (9, 4), (120, 8)]));
        sweep(&mut tried, &runs, 0, &mut room);
    }
    sweep(&mut tried, &loops(&[(0, 16)], window(&[(0, 1), (4, 4), (8, 8)])), 0, &mut room);
    for element in [1, 2, 4, 8, 16] {
        for counts in [(0, 20), (20, 0)] {
            let levels = [(counts.0, element as i64), (counts.1, 400)];
            sweep(&mut tried, &loops(&levels, block(element)), 0, &mut room);
        }
    }
    let mut all = 0;
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        for class in Kind::all(isa) {
            for pack in [true, false] {
                let seen = tried.get(&(class, isa, pack));
                assert_eq!(seen, Some(&(u64::MAX, true)), "{class:?} {isa} pack {pack}");
                all += 1;
            }
        }
    }
    assert_eq!(all, tried.len(), "more ran than there are classes");
}

/// Lists of unequal runs, which are no nests: as above.
#[test]
fn lists_at_every_alignment() {
    let mut room = [Guarded::new(1 << 15), Guarded::new(1 << 15)];
    let pattern = |i: usize| (i * 31 + i / 251) as u8 | 1;
    // The last run of memory is the last of the list, and the first the first; none in between.
    let counts: Vec<i64> = (0..67).map(|i| i * 41 % 67).chain([3]).collect();
    let places: Vec<i64> = (0..68).map(|i| i * 70).collect();
    let (low, high) = (0, 67 * 70 + 3);
    let total: usize = counts.iter().map(|&count| count as usize).sum();
    for lengths in [
        Table::lengths(&counts).expect("short"),
        Table::new(&counts),
        Table::Wide(counts.as_slice().into()),
    ] {
        for entries in [Table::new(&places), Table::Wide(places.as_slice().into())] {
            let list = RaggedList::new(lengths.clone(), entries);
            for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
                for (shift, at_end) in (0..64).flat_map(|shift| [(shift, false), (shift, true)]) {
                    let [memory, bytes] = &mut room;
                    let mem = memory.place(high - low, shift, at_end);
                    mem.iter_mut().enumerate().for_each(|(i, b)| *b = pattern(i));
                    let out = bytes.place(total, (shift * 29 + 7) % 64, at_end);
                    out.fill(0);
                    let runs =
                        || places.iter().zip(&counts).map(|(&p, &c)| p as usize..(p + c) as usize);
                    let expected: Vec<u8> = runs().flat_map(|run| mem[run].to_vec()).collect();
                    let list = Runs { list: &list, scale: 1, unit: 1, mem: mem.as_mut_ptr() };
                    // SAFETY: the runs lie in `mem`, their bytes in `out`.
                    let end = unsafe { lists::run::<true>(isa, list, 0..68, out.as_mut_ptr()) };
                    assert_eq!(end.addr() - out.as_ptr().addr(), total);
                    assert!(*out == expected, "{isa} +{shift} end {at_end}");

                    out.iter_mut().for_each(|byte| *byte = !*byte);
                    let mut expected = mem.to_vec();
                    runs().flatten().zip(&*out).for_each(|(at, byte)| expected[at] = *byte);
                    // SAFETY: as above; an empty range of the list moves nothing.
                    unsafe {
                        lists::run::<false>(isa, list, 0..68, out.as_mut_ptr());
                        lists::run::<false>(isa, list, 5..5, std::ptr::null_mut());
                        lists::run::<true>(isa, list, 68..68, std::ptr::null_mut());
                    }
                    assert!(*mem == expected, "{isa} +{shift} end {at_end}");
                }
            }
        }
    }
}
