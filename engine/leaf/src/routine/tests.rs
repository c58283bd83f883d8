//! Compares every routine of every instruction set with the interpreter. The tests cover all
//! alignments, buffers that end at guard pages, gaps, and levels with a count of 0. (`fuzz/` compares
//! whole plans with the oracle.)

mod brief;
#[cfg(not(miri))]
mod classes;
#[path = "../../../../fuzz/support/src/skipped.rs"]
mod skipped;
#[cfg(miri)]
mod unguarded;

#[cfg(miri)]
use unguarded::Guarded;

use super::*;
use crate::Table;
use crate::kernel::Run;
use crate::kernel::interpreter;

/// Prints the instruction sets that the tests of this file skip because this CPU lacks them.
#[test]
fn instruction_sets_that_this_cpu_lacks_are_named() {
    if cfg!(target_arch = "x86_64") {
        for isa in Isa::ALL.into_iter().filter(|isa| !isa.is_available()) {
            skipped::skipped(format_args!(
                "this CPU cannot execute the routines for {}",
                isa.name()
            ));
        }
    }
}

/// A range of usable memory between two guard pages. An access to a guard page crashes the test.
#[cfg(not(miri))]
struct Guarded {
    pages: region::Allocation,
    usable: usize,
}

#[cfg(not(miri))]
impl Guarded {
    fn new(bytes: usize) -> Self {
        let page = region::page::size();
        let usable = bytes.div_ceil(page).max(1) * page;
        let mut pages = region::alloc(usable + 2 * page, region::Protection::READ_WRITE).unwrap();
        let base = pages.as_mut_ptr::<u8>();
        for guard in [base, base.wrapping_add(page + usable)] {
            // SAFETY: the page belongs to `pages`, and nothing refers to it.
            unsafe { region::protect(guard, page, region::Protection::NONE).unwrap() };
        }
        Self { pages, usable }
    }

    /// Returns a range of `bytes` bytes. The range begins `shift` bytes after the front guard page
    /// or, if `at_end` is true, ends `shift` bytes before the back guard page.
    fn place(&mut self, bytes: usize, shift: usize, at_end: bool) -> &mut [u8] {
        assert!(bytes + shift <= self.usable);
        let page = region::page::size();
        let offset = if at_end { self.usable - bytes - shift } else { shift };
        let start = self.pages.as_mut_ptr::<u8>().wrapping_add(page + offset);
        // SAFETY: the range lies within the usable pages, as the assertion above checks, and the
        // system has set them to zero.
        unsafe { std::slice::from_raw_parts_mut(start, bytes) }
    }
}

/// Pseudo-random numbers that are the same in every run (xorshift).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.next(from.len() as u64) as usize]
    }
}

/// Returns the range of bytes that a nest accesses, relative to the nest's base. If a level of the
/// nest has a count of 0, the nest accesses nothing, but the returned range still contains bytes.
fn span(nest: &Nest) -> (i64, i64) {
    let (mut low, mut high) = match &nest.leaf {
        Leaf::Block { bytes } => (0, *bytes as i64),
        Leaf::Window { runs } => (
            runs.iter().map(|r| r.offset).min().unwrap(),
            runs.iter().map(|r| r.offset + r.bytes as i64).max().unwrap(),
        ),
    };
    for level in &nest.levels {
        let (least, most) = match level {
            Level::Loop { count, stride } => {
                let last = (*count as i64 - 1).max(0) * stride;
                (last.min(0), last.max(0))
            }
            Level::Table { entries, scale } => entries
                .iter()
                .map(|e| e * scale)
                .fold((0, 0), |(low, high), d| (low.min(d), high.max(d))),
        };
        low += least;
        high += most;
    }
    (low, high)
}

fn words_of(nest: &Nest) -> [u64; Nest::WORDS] {
    let mut words = [0; Nest::WORDS];
    for (level, words) in nest.levels.iter().zip(words.chunks_exact_mut(3)) {
        words.copy_from_slice(&match level {
            Level::Loop { count, stride } => [*count, *stride as u64, 0],
            Level::Table { entries, scale } => {
                [entries.len() as u64, entries.address(), *scale as u64]
            }
        });
    }
    words
}

/// Returns the length of each run of a leaf.
fn lengths(leaf: &Leaf) -> Vec<u64> {
    match leaf {
        Leaf::Block { bytes } => vec![*bytes],
        Leaf::Window { runs } => runs.iter().map(|run| run.bytes).collect(),
    }
}

/// Returns the swaps that are possible for a leaf: each width that divides the lengths of all runs,
/// and one swap in which each run has the greatest width that divides its own length.
fn swaps(leaf: &Leaf) -> Vec<Swap> {
    let width = |bytes: u64| Width::new(1 << bytes.trailing_zeros().min(4)).unwrap();
    let lengths = lengths(leaf);
    let whole = |width: &&u64| lengths.iter().all(|bytes| bytes % **width == 0);
    let same = [2_u64, 4, 8, 16];
    let same = same.iter().filter(whole).map(|&bytes| Swap::Same(width(bytes)));
    same.chain([Swap::Each(lengths.iter().map(|&bytes| width(bytes)).collect())]).collect()
}

/// Reverses the bytes of each element in the packed bytes of whole leaves.
fn turn(packed: &mut [u8], leaf: &Leaf, swap: &Swap) {
    let lengths = lengths(leaf);
    for leaf in packed.chunks_exact_mut(lengths.iter().sum::<u64>() as usize) {
        let mut at = 0;
        for (i, &bytes) in lengths.iter().enumerate() {
            let run = &mut leaf[at..at + bytes as usize];
            run.chunks_exact_mut(swap.width(i).bytes()).for_each(|part| part.reverse());
            at += bytes as usize;
        }
    }
}

/// Checks packing and unpacking on every instruction set and in both byte orders. The memory and the
/// packed bytes lie `shift` bytes from a guard page.
fn check(nest: &Nest, shift: usize, memory: &mut Guarded, bytes: &mut Guarded) {
    check_swap(nest, None, shift, memory, bytes);
    for swap in swaps(&nest.leaf) {
        check_swap(nest, Some(&swap), shift, memory, bytes);
    }
}

fn check_swap(
    nest: &Nest,
    swap: Option<&Swap>,
    shift: usize,
    memory: &mut Guarded,
    bytes: &mut Guarded,
) {
    let (low, high) = span(nest);
    let length = (high - low) as usize;
    let packed = nest.levels.iter().map(Level::count).product::<u64>() * nest.leaf.bytes();
    let packed = packed as usize;
    let words = words_of(nest);
    let pattern = |i: usize| (i * 31 + i / 251) as u8 | 1;
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        for at_end in [false, true] {
            let mem = memory.place(length, shift, at_end);
            mem.iter_mut().enumerate().for_each(|(i, b)| *b = pattern(i));
            let origin = mem.as_mut_ptr().wrapping_offset(-low as isize);

            let mut expected = vec![0; packed];
            // SAFETY: `mem` holds all bytes that the nest accesses, and `expected` holds all its
            // packed bytes.
            unsafe { interpreter::run::<true>(nest, &words, origin, expected.as_mut_ptr()) };
            swap.inspect(|swap| turn(&mut expected, &nest.leaf, swap));
            let out = bytes.place(packed, shift, at_end);
            out.fill(0);
            if let Some(routine) = Routine::new(nest, swap, Direction::Pack, isa) {
                // The first iteration ends with `routine.build`, which builds the parts that are otherwise
                // built only after several calls. The second iteration tests these parts.
                for _ in 0..2 {
                    out.fill(0);
                    // SAFETY: `mem` contains the whole span of the nest; `out` has room for all its
                    // packed bytes.
                    unsafe { routine.run::<true>(nest, &words, origin, out.as_mut_ptr()) };
                    assert!(
                        *out == expected,
                        "{} {nest:?} {swap:?} +{shift} end {at_end}",
                        routine.name()
                    );
                    routine.build(nest, Direction::Pack);
                }
                // Test the traversal even if the routine would not choose it.
                if let Some(traversal) = Traversal::forced(nest, swap, isa, &words, true) {
                    out.fill(0);
                    // SAFETY: `mem` contains the span of the nest, and `out` has room for its packed
                    // bytes. `forced` returns only traversals that are allowed for `words`.
                    unsafe {
                        let row =
                            |p: *const u64, mem, packed| routine.row::<true>(nest, p, mem, packed);
                        traversal.run::<true>(nest, &words, row, origin, out.as_mut_ptr());
                    }
                    assert!(*out == expected, "tile {isa} {nest:?} {swap:?} +{shift} end {at_end}");
                }
            }

            out.iter_mut().enumerate().for_each(|(i, b)| *b = pattern(i).wrapping_mul(3) | 2);
            mem.fill(0);
            let mut native = out.to_vec();
            swap.inspect(|swap| turn(&mut native, &nest.leaf, swap));
            // SAFETY: `mem` has room for the whole span of the nest, and `native` holds all its
            // packed bytes.
            unsafe { interpreter::run::<false>(nest, &words, origin, native.as_mut_ptr()) };
            let expected = mem.to_vec();
            mem.fill(0);
            if let Some(routine) = Routine::new(nest, swap, Direction::Unpack, isa) {
                // As above, only the second iteration tests the parts that `routine.build` builds.
                for _ in 0..2 {
                    mem.fill(0);
                    // SAFETY: `mem` has room for all bytes that the nest accesses, and `out` holds
                    // all its packed bytes.
                    unsafe { routine.run::<false>(nest, &words, origin, out.as_mut_ptr()) };
                    assert!(
                        *mem == expected,
                        "{} {nest:?} {swap:?} +{shift} end {at_end}",
                        routine.name()
                    );
                    routine.build(nest, Direction::Unpack);
                }
                if let Some(traversal) = Traversal::forced(nest, swap, isa, &words, false) {
                    mem.fill(0);
                    // SAFETY: `mem` has room for the span of the nest, and `out` holds its packed
                    // bytes. `forced` returns a traversal only if the blocks are disjoint.
                    unsafe {
                        let row =
                            |p: *const u64, mem, packed| routine.row::<false>(nest, p, mem, packed);
                        traversal.run::<false>(nest, &words, row, origin, out.as_mut_ptr());
                    }
                    assert!(*mem == expected, "tile {isa} {nest:?} {swap:?} +{shift} end {at_end}");
                }
            }
        }
    }
}

fn loops(levels: &[(u64, i64)], leaf: Leaf) -> Nest {
    let levels: Vec<Level> =
        levels.iter().map(|&(count, stride)| Level::Loop { count, stride }).collect();
    Nest { base: 0, levels: levels.into(), leaf }
}

fn window(runs: &[(i64, u64)]) -> Leaf {
    Leaf::Window { runs: runs.iter().map(|&(offset, bytes)| Run { offset, bytes }).collect() }
}

#[test]
#[cfg_attr(miri, ignore = "hours; brief.rs has a part of it")]
fn every_block_length_at_every_alignment() {
    let (mut memory, mut bytes) = (Guarded::new(1 << 16), Guarded::new(1 << 16));
    for block in (1..=80).chain([128, 200, 256]) {
        for gap in [0, 1, 8, 100] {
            let nest = loops(&[(37, block as i64 + gap)], Leaf::Block { bytes: block });
            let shifts = if gap == 1 { 0..64 } else { 0..3 };
            for shift in shifts {
                check(&nest, shift, &mut memory, &mut bytes);
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "hours; brief.rs has a part of it")]
fn windows_at_every_alignment_and_count() {
    let (mut memory, mut bytes) = (Guarded::new(1 << 15), Guarded::new(1 << 15));
    let leaves: [(i64, Leaf); 8] = [
        (16, window(&[(0, 1), (4, 4), (8, 8)])),
        (56, window(&[(0, 28), (32, 24)])),
        (2, Leaf::Block { bytes: 1 }),
        (3, Leaf::Block { bytes: 1 }),
        (6, Leaf::Block { bytes: 4 }),
        (12, window(&[(0, 3), (4, 1), (7, 5)])),
        (80, window(&[(0, 9), (10, 3), (20, 40), (79, 1)])),
        (13, window(&[(0, 5), (6, 6)])),
    ];
    for (stride, leaf) in &leaves {
        for shift in 0..64 {
            for count in [0, 1, 2, 3, 5, 17, 64, 65, 150] {
                check(&loops(&[(count, *stride)], leaf.clone()), shift, &mut memory, &mut bytes);
            }
        }
    }
}

/// Checks dense patterns of small blocks at every count up to several registers, and at every distance from a
/// guard page. Some patterns have windows that reach beyond the last byte of data, some are packed with the
/// adjacent loads of `shuffle/blend.rs`, and in some no whole number of blocks fills a register.
#[test]
#[cfg_attr(miri, ignore = "hours; brief.rs has a part of it")]
fn dense_blocks_at_every_count() {
    let (mut memory, mut bytes) = (Guarded::new(1 << 14), Guarded::new(1 << 14));
    let runs = |runs: &[(i64, u64)]| window(runs);
    let leaves = [(1, 2), (1, 3), (1, 4), (1, 5), (2, 4), (2, 6), (2, 8), (4, 8), (4, 12), (4, 16)]
        .into_iter()
        .chain([(8, 16), (8, 24), (3, 4), (5, 7), (12, 16), (9, 16), (7, 40), (1, 100)])
        .map(|(bytes, stride)| (stride, Leaf::Block { bytes }))
        .chain([
            (8, runs(&[(0, 1), (2, 1), (5, 2)])),
            (16, runs(&[(0, 1), (4, 4), (8, 8)])),
            (21, runs(&[(0, 3), (4, 4), (12, 1)])),
            (56, runs(&[(0, 28), (32, 24)])),
            (300, runs(&[(0, 1), (20, 1), (200, 1), (280, 1)])),
        ]);
    for (stride, leaf) in leaves {
        let most = ((1 << 13) / stride as usize).min(150) as u64;
        for count in 0..most {
            check(
                &loops(&[(count, stride)], leaf.clone()),
                count as usize % 19,
                &mut memory,
                &mut bytes,
            );
        }
        for shift in 0..64 {
            check(
                &loops(&[(most / 2 + shift % 7, stride)], leaf.clone()),
                shift as usize,
                &mut memory,
                &mut bytes,
            );
        }
    }
}

/// Checks dense patterns in calls so large that stores are announced. The patterns have periods of
/// one line, periods whose permutes stay in registers, and longer periods. There are patterns whose
/// packed registers take their bytes from two, three or four lines, and masks of both grains (bytes
/// and words of 4 bytes).
#[test]
fn windows_beyond_the_first_cache() {
    let (mut memory, mut bytes) = (Guarded::new(1 << 17), Guarded::new(1 << 17));
    let leaves: [(i64, Leaf); 18] = [
        (16, window(&[(0, 1), (4, 4), (8, 8)])),
        (16, window(&[(0, 4), (8, 4)])),
        (24, window(&[(0, 1), (2, 1), (4, 12), (17, 7)])),
        (24, window(&[(0, 4), (8, 8), (20, 4)])),
        (40, window(&[(0, 3), (8, 8), (20, 19)])),
        (40, window(&[(0, 4), (8, 8), (20, 20)])),
        (56, window(&[(0, 28), (32, 24)])),
        (72, window(&[(0, 5), (6, 6), (12, 40), (70, 1)])),
        (192, window(&[(0, 1), (60, 8), (100, 30), (140, 1)])),
        (2, Leaf::Block { bytes: 1 }),
        (3, Leaf::Block { bytes: 1 }),
        (6, Leaf::Block { bytes: 2 }),
        (24, Leaf::Block { bytes: 8 }),
        (8, Leaf::Block { bytes: 2 }),
        (6, Leaf::Block { bytes: 4 }),
        (8, Leaf::Block { bytes: 4 }),
        (12, Leaf::Block { bytes: 4 }),
        (16, Leaf::Block { bytes: 8 }),
    ];
    for (stride, leaf) in &leaves {
        let count = 70_000 / *stride as u64;
        for shift in (0..64).step_by(3) {
            let count = count + shift as u64;
            check(&loops(&[(count, *stride)], leaf.clone()), shift, &mut memory, &mut bytes);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "hours; brief.rs has a part of it")]
fn tiles_of_every_element_and_shape() {
    let (mut memory, mut bytes) = (Guarded::new(1 << 17), Guarded::new(1 << 17));
    for element in [1, 2, 4, 8, 16] {
        for (columns, rows) in [(0, 9), (4, 4), (5, 40), (33, 8), (16, 16), (64, 7), (3, 30)] {
            for gap in [0, 1, 40] {
                let pitch = columns as i64 * element as i64 + gap;
                let leaf = Leaf::Block { bytes: element };
                let near = (columns, element as i64);
                for shift in [0, 1, 8] {
                    check(
                        &loops(&[near, (rows, pitch)], leaf.clone()),
                        shift,
                        &mut memory,
                        &mut bytes,
                    );
                    // Check the nest again with one more level, first between the two levels and then
                    // outside them.
                    let plane = (2, pitch * rows as i64 + 3);
                    let nest = loops(&[near, plane, (rows, pitch)], leaf.clone());
                    check(&nest, shift, &mut memory, &mut bytes);
                    let nest = loops(&[plane, near, (rows, -pitch)], leaf.clone());
                    check(&nest, shift, &mut memory, &mut bytes);
                    // The blocks of this nest overlap, so the order of stores matters.
                    let nest = loops(&[near, (rows, element as i64 * 2)], leaf.clone());
                    check(&nest, shift, &mut memory, &mut bytes);
                }
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "hours; brief.rs has a part of it")]
fn random_nests() {
    let (mut memory, mut bytes) = (Guarded::new(1 << 19), Guarded::new(1 << 19));
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut checked = 0;
    while checked < 3000 {
        let leaf = match numbers.next(4) {
            0 => {
                let mut end = numbers.next(3) as i64;
                let runs: Vec<(i64, u64)> = (0..numbers.next(5) + 1)
                    .map(|_| {
                        let run = (end, numbers.next(20) + 1);
                        end += run.1 as i64 + numbers.next(12) as i64 - 2;
                        run
                    })
                    .collect();
                window(&runs)
            }
            _ => {
                Leaf::Block { bytes: numbers.pick(&[1, 2, 3, 4, 8, 8, 12, 16, 24, 32, 40, 64, 72]) }
            }
        };
        let unit = leaf.bytes() as i64;
        let depth = numbers.next(4) + 1;
        let levels: Vec<Level> = (0..depth)
            .map(|_| {
                if numbers.next(5) == 0 {
                    let wide = if numbers.next(2) == 0 { 1_i64 << 33 } else { 0 };
                    let entries: Vec<i64> =
                        (0..numbers.next(12)).map(|_| numbers.next(60) as i64 - 20).collect();
                    // Entries that need 64 bits would place blocks far outside any buffer. So the
                    // scale of a table with such entries is 0.
                    let entries: Vec<i64> = entries.iter().map(|e| e + wide).collect();
                    let scale = if wide == 0 { 1 + numbers.next(9) as i64 } else { 0 };
                    return Level::Table { entries: Table::new(&entries), scale };
                }
                let stride = match numbers.next(4) {
                    0 => unit,
                    1 => unit + numbers.next(9) as i64,
                    2 => numbers.next(400) as i64 - 100,
                    _ => numbers.pick(&[64, 128, 256, 512]),
                };
                Level::Loop { count: numbers.next(20), stride }
            })
            .collect();
        let nest = Nest { base: 0, levels: levels.into(), leaf };
        let (low, high) = span(&nest);
        let packed = nest.levels.iter().map(Level::count).product::<u64>() * nest.leaf.bytes();
        if high - low > 1 << 18 || packed > 1 << 18 {
            continue;
        }
        check(&nest, numbers.next(64) as usize, &mut memory, &mut bytes);
        checked += 1;
    }
}

/// Checks that unpacking never writes to gaps, not even to store the value that is already there.
/// Another thread writes to the gaps at the same time, so that the test notices such a write.
#[test]
#[cfg_attr(miri, ignore = "hours; brief.rs has a part of it")]
fn gaps_belong_to_another_thread() {
    use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

    const COUNT: usize = 200;
    let cases = [
        loops(&[(COUNT as u64, 16)], window(&[(0, 1), (4, 4), (8, 8)])),
        loops(&[(COUNT as u64, 16)], Leaf::Block { bytes: 1 }),
        loops(&[(10, 1), (COUNT as u64, 16)], Leaf::Block { bytes: 1 }),
        loops(&[(COUNT as u64, 16)], Leaf::Block { bytes: 12 }),
        loops(&[(COUNT as u64, 16)], Leaf::Block { bytes: 8 }),
        loops(&[(COUNT as u64, 16)], window(&[(0, 4), (8, 4)])),
    ];
    for (nest, gap) in cases.iter().zip([2, 7, 13, 14, 9, 5]) {
        let swaps = [None].into_iter().chain(swaps(&nest.leaf).into_iter().map(Some));
        let isas = Isa::ALL.into_iter().filter(|isa| isa.is_available());
        for (swap, isa) in swaps.flat_map(|swap| isas.clone().map(move |isa| (swap.clone(), isa))) {
            let routine = Routine::new(nest, swap.as_ref(), Direction::Unpack, isa);
            let Some(routine) = routine else { continue };
            let memory: Vec<AtomicU8> = (0..16 * COUNT).map(|_| AtomicU8::new(0)).collect();
            let mut packed = vec![5_u8; 13 * COUNT];
            let (words, done) = (words_of(nest), AtomicBool::new(false));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut value = 0_u8;
                    while !done.load(Ordering::Relaxed) {
                        value = value.wrapping_add(1);
                        let gaps = || memory.iter().skip(gap).step_by(16);
                        gaps().for_each(|byte| byte.store(value, Ordering::Relaxed));
                        let kept = gaps().all(|byte| byte.load(Ordering::Relaxed) == value);
                        assert!(kept, "{}: a gap was written", routine.name());
                    }
                });
                let mem = memory.as_ptr().cast::<u8>().cast_mut();
                for _ in 0..1000 {
                    // SAFETY: the routine writes only data bytes of `memory`, and the other thread
                    // does not access these bytes. Atomics may be written through shared references.
                    // `packed` has 13 bytes per element, and no element packs more than 13.
                    unsafe { routine.run::<false>(nest, &words, mem, packed.as_mut_ptr()) };
                }
                done.store(true, Ordering::Relaxed);
            });
        }
    }
}
