//! Compares compiled kernels with a reference copy, on random nests (loops around a block or a few short
//! runs).
//!
//! Every case packs and unpacks through memory that touches a guard page at one end. So a kernel
//! that reads or writes a byte beyond that end of the nest's memory or of the packed bytes crashes.
//! Afterwards the test compares all bytes of the nest's memory and of the packed bytes, gaps
//! included.
//!
//! The message of a failing case names its seed. Run the case alone with `JIT_TEST_SEED=<seed>
//! cargo test -p typepack-jit --test jit agree::`.

mod classes;
mod gaps;
mod guarded;
mod random;
mod reference;
mod transfer;

use guarded::{Edge, Guarded};
use random::Random;
use typepack_engine::Table;
use typepack_engine::kernel::{Compiler, Direction, Leaf, Level, Nest, Run};
use typepack_jit::{Jit, Mode, Settings};

/// Number of random nests per run of the test. A case takes about a millisecond, nearly all of it
/// compiling.
const CASES: u64 = 6000;

fn jit() -> Jit {
    Jit::new(Settings { mode: Mode::Eager, ..Settings::default() })
}

#[test]
fn random_nests() {
    let jit = jit();
    match std::env::var("JIT_TEST_SEED") {
        Ok(seed) => case(&jit, seed.parse().expect("JIT_TEST_SEED is a number")),
        Err(_) => (0..CASES).for_each(|seed| case(&jit, seed)),
    }
    assert_eq!(jit.counters().refusals, 0);
}

fn case(jit: &Jit, seed: u64) {
    let mut random = random::seeded(seed);
    let nest = random::nest(&mut random);
    let name = format!("seed {seed}");
    agree(jit, &nest, &full(&nest), Edge::End, &name);
    agree(jit, &nest, &random::part(&mut random, &nest), Edge::Start, &name);
}

/// Returns the range of all iterations for every level, as (start, end).
fn full(nest: &Nest) -> Vec<(u64, u64)> {
    nest.levels.iter().map(|level| (0, level.count())).collect()
}

/// Packs and unpacks the iterations `part` (start, end) of every level, and compares all bytes with
/// the reference.
fn agree(jit: &Jit, nest: &Nest, part: &[(u64, u64)], edge: Edge, name: &str) {
    agree_at(jit, nest, part, edge, [0, 0], name);
}

/// Does what [`agree`] does, with the memory `insets[0]` bytes and the packed bytes `insets[1]`
/// bytes away from the guard page. The bytes in between must keep their values.
fn agree_at(
    jit: &Jit,
    nest: &Nest,
    part: &[(u64, u64)],
    edge: Edge,
    insets: [usize; 2],
    name: &str,
) {
    let runs = reference::runs(nest, part);
    let low = runs.iter().map(|run| run.offset).min().unwrap_or(0);
    let high = runs.iter().map(|run| run.offset + run.bytes as i64).max().unwrap_or(0);
    let bytes: u64 = runs.iter().map(|run| run.bytes).sum();
    let skip = insets.map(|inset| if edge == Edge::Start { inset } else { 0 });
    let origin = skip[0] as i64 - low;

    let mut random = random::seeded(bytes ^ 0x5eed);
    let mut mem = Guarded::new((high - low) as usize + insets[0], edge);
    let mut packed = Guarded::new(bytes as usize + insets[1], edge);
    random.fill(mem.bytes_mut());
    random.fill(packed.bytes_mut());

    for direction in [Direction::Pack, Direction::Unpack] {
        let shape = nest.shape(direction);
        let kernel = jit.kernel(&shape).unwrap_or_else(|| panic!("{name}: {shape} refused"));
        let (mut expected_mem, mut expected_packed) =
            (mem.bytes().to_vec(), packed.bytes().to_vec());
        match direction {
            Direction::Pack => {
                reference::pack(&runs, origin, &expected_mem, &mut expected_packed[skip[1]..]);
            }
            Direction::Unpack => {
                // Unpacks new random bytes. Unpacking the bytes just packed would prove nothing,
                // because the memory already holds their values.
                random.fill(packed.bytes_mut());
                expected_packed = packed.bytes().to_vec();
                reference::unpack(&runs, origin, &expected_packed[skip[1]..], &mut expected_mem);
            }
        }
        let (params, base) = reference::parameters(nest, part);
        assert_eq!(params.len(), shape.words());
        let base = mem.bytes_mut().as_mut_ptr().wrapping_offset((origin + base) as isize);
        // SAFETY:
        // - `params` has the words of the shape; its table addresses are those of `nest`;
        // - `mem` spans all runs of these iterations and `packed` their bytes, both writable;
        // - `mem` and `packed` are different mappings.
        unsafe {
            kernel.entry()(params.as_ptr(), base, packed.bytes_mut()[skip[1]..].as_mut_ptr())
        };
        assert!(mem.bytes() == expected_mem, "{name}: {shape} {part:?} {nest:?}: memory");
        assert!(packed.bytes() == expected_packed, "{name}: {shape} {part:?} {nest:?}: packed");
    }
}

fn block(levels: Vec<Level>, bytes: u64) -> Nest {
    Nest { base: 0, levels: levels.into(), leaf: Leaf::Block { bytes } }
}

fn window(levels: Vec<Level>, runs: &[(i64, u64)]) -> Nest {
    let runs = runs.iter().map(|&(offset, bytes)| Run { offset, bytes }).collect();
    Nest { base: 0, levels: levels.into(), leaf: Leaf::Window { runs } }
}

fn whole(jit: &Jit, nest: &Nest, name: &str) {
    agree(jit, nest, &full(nest), Edge::End, name);
    agree(jit, nest, &full(nest), Edge::Start, name);
}

/// Tests every fixed length, with counts below and above the number of leaves in every unrolled
/// body.
#[test]
fn every_length_and_count() {
    let jit = jit();
    for bytes in 1..=80_u64 {
        for count in (0..=20).chain([64, 65]) {
            let stride = bytes as i64 + 3;
            whole(&jit, &block(vec![Level::Loop { count, stride }], bytes), "loop");
            let entries: Vec<i64> = (0..count as i64).map(|i| i * 5 % 23).collect();
            for entries in [Table::new(&entries), Table::Wide(entries.as_slice().into())] {
                let level = Level::Table { entries, scale: stride };
                whole(&jit, &block(vec![level], bytes), "table");
            }
        }
    }
}

#[test]
fn lengths_known_at_run_time() {
    let jit = jit();
    for bytes in (65..=260).chain([511, 512, 513, 4095, 4096, 5000]) {
        for stride in [bytes as i64, bytes as i64 + 1, -2 * bytes as i64] {
            whole(&jit, &block(vec![Level::Loop { count: 3, stride }], bytes), "long");
        }
    }
}

/// Tests overlapping blocks: when unpacking, the later block must win. The strides go from -9 to 9,
/// so blocks overlap forwards, backwards, and completely.
#[test]
fn overlapping_blocks_keep_their_order() {
    let jit = jit();
    for bytes in [1, 2, 3, 4, 7, 8, 12, 16, 24, 31, 64, 100, 200_u64] {
        for stride in -9..=9 {
            for count in [1, 2, 7, 19] {
                whole(&jit, &block(vec![Level::Loop { count, stride }], bytes), "overlap");
            }
        }
    }
    let runs = [(0, 8), (4, 8), (2, 3), (-5, 9), (0, 1)];
    for stride in [-3, 0, 3, 24] {
        whole(&jit, &window(vec![Level::Loop { count: 11, stride }], &runs), "overlap");
    }
}

#[test]
fn windows() {
    let jit = jit();
    let level = || vec![Level::Loop { count: 13, stride: 4500 }];
    for runs in [
        &[(0, 1), (4, 12)][..],
        &[(0, 1), (4, 4), (8, 8)],
        &[(0, 8), (16, 8), (32, 8), (48, 8)],
        &[(0, 4), (8, 4), (16, 4), (24, 4), (32, 4)],
        &[(0, 129), (200, 1), (300, 4096 - 300), (-4096, 2000)],
        &[(0, 4096), (-4096, 4096)],
        &[(0, 3); 32],
    ] {
        whole(&jit, &window(level(), runs), "window");
    }
}

/// Tests runs that lie alone between two guard pages. So an access outside the runs crashes,
/// whatever the order of loads and stores is. The packed bytes touch a guard page, too.
#[test]
fn runs_alone_on_their_pages() {
    let jit = jit();
    for bytes in (1..=64).chain([65, 100, 127, 128, 129, 1000]) {
        for edge in [Edge::Start, Edge::End] {
            for count in [1, 2, 9] {
                guarded::fenced_runs(&jit, bytes, count, edge);
            }
        }
    }
}

/// Checks that a kernel accesses nothing if a count is 0, whatever the other numbers and the
/// addresses are.
#[test]
fn zero_counts() {
    let jit = jit();
    let big = |count| Level::Loop { count, stride: i64::MAX / 3 };
    for zero in 0..4 {
        let levels = (0..4).map(|l| big(if l == zero { 0 } else { u64::MAX })).collect();
        for bytes in [8, 24, 100] {
            let nest = block(Vec::clone(&levels), bytes);
            for direction in [Direction::Pack, Direction::Unpack] {
                let kernel = jit.kernel(&nest.shape(direction)).expect("the shape has a kernel");
                let params = reference::parameters(&nest, &full(&nest)).0;
                // SAFETY: one count is 0, so no memory but `params` is accessed.
                unsafe {
                    kernel.entry()(params.as_ptr(), std::ptr::null_mut(), std::ptr::null_mut());
                }
            }
        }
    }
}

#[test]
fn eight_levels() {
    let jit = jit();
    let table = Level::Table { entries: Table::new(&[3, -1, 2]), scale: 40 };
    let wide = Level::Table { entries: Table::Wide([5_i64, 0].as_slice().into()), scale: -8 };
    let line = |count, stride| Level::Loop { count, stride };
    let levels = vec![
        line(2, 4000),
        table.clone(),
        line(2, -1000),
        wide,
        line(1, 7),
        line(2, 300),
        table,
        line(5, 16),
    ];
    for bytes in [1, 8, 12, 70] {
        whole(&jit, &block(levels.clone(), bytes), "eight levels");
    }
    whole(&jit, &window(levels, &[(0, 1), (3, 2)]), "eight levels");
}
