//! Compares kernels with hand-written loops and with one memcpy per block, in GB/s of payload.
//!
//! This example helps to tune `translate/`: `cargo run --release -p typepack-jit --example tune`.
//! The bench suite makes the official measurements. The four ways to copy (one memcpy, a memcpy per
//! block, the hand-written loop, the kernel) are measured in turn; each figure is the median of the
//! measurements of one way.

#[path = "../tests/agree/reference.rs"]
#[expect(dead_code, reason = "only the tests use the copies")]
mod reference;

use std::hint::black_box;
use std::time::Instant;
use typepack_engine::Table;
use typepack_engine::kernel::{Compiler, Direction, Kernel, Leaf, Level, Nest, Run};
use typepack_jit::{Jit, Mode, Settings};

/// One layout: its nest (loops around a block or a few short runs), and the loops that a person would
/// write for it.
struct Layout {
    name: &'static str,
    nest: Nest,
    pack: fn(&[u8], &mut [u8]),
    unpack: fn(&mut [u8], &[u8]),
}

fn main() {
    let jit = Jit::new(Settings { mode: Mode::Eager, ..Settings::default() });
    if let Some(reason) = jit.disabled() {
        println!("no kernels: {reason}");
        return;
    }
    println!(
        "{:<22} {:>7} {:<6} | {:>7} {:>7} {:>7} {:>7} | kernel/hand kernel/interp",
        "layout", "bytes", "", "memcpy", "blocks", "hand", "kernel"
    );
    let only = std::env::args().nth(1);
    for bytes in [1 << 10, 16 << 10, 256 << 10] {
        for layout in layouts(bytes) {
            if only.as_deref().is_none_or(|text| layout.name.contains(text)) {
                for direction in [Direction::Pack, Direction::Unpack] {
                    measure(&jit, &layout, direction);
                }
            }
        }
    }
    // Compiles all kernels again, now that the processor's caches hold Cranelift's own code. The
    // default threshold is based on these times.
    let again = Jit::new(Settings { mode: Mode::Eager, ..Settings::default() });
    for layout in layouts(1 << 10) {
        for direction in [Direction::Pack, Direction::Unpack] {
            black_box(again.kernel(&layout.nest.shape(direction)));
        }
    }
    for (time, jit) in [("first", jit), ("later", again)] {
        let counters = jit.counters();
        println!(
            "{} kernels {time}: {} us and {} bytes of code each",
            counters.kernels,
            counters.compile_ns / 1000 / counters.kernels.max(1),
            counters.code_bytes / counters.kernels.max(1),
        );
    }
}

fn layouts(packed: u64) -> Vec<Layout> {
    let column = |name, bytes: u64, stride: i64, pack, unpack| Layout {
        name,
        nest: nest(vec![line(packed / bytes, stride)], Leaf::Block { bytes }),
        pack,
        unpack,
    };
    let face = |rows: u64, bytes: u64, row: i64, plane: i64| {
        let count = (packed / rows / bytes).max(1);
        nest(vec![line(count, plane), line(rows, row)], Leaf::Block { bytes })
    };
    let members = [Run { offset: 0, bytes: 1 }, Run { offset: 4, bytes: 12 }];
    let mut shuffled: Vec<i64> = (0..(packed / 8) as i64).map(|i| 3 * i).collect();
    let mut state = 1_u64;
    for i in 0..shuffled.len() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let near = (i + (state >> 33) as usize % 8).min(shuffled.len() - 1);
        shuffled.swap(i, near);
    }
    ENTRIES.set(shuffled.iter().map(|&entry| entry as i32).collect());
    vec![
        column("b1 / 4", 1, 4, columns::<1, 4>, spread::<1, 4>),
        column("b2 / 4", 2, 4, columns::<2, 4>, spread::<2, 4>),
        column("b4 / 8", 4, 8, columns::<4, 8>, spread::<4, 8>),
        column("b8 / 16", 8, 16, columns::<8, 16>, spread::<8, 16>),
        column("b8 / 64", 8, 64, columns::<8, 64>, spread::<8, 64>),
        column("b8 / 1024", 8, 1024, columns::<8, 1024>, spread::<8, 1024>),
        column("b8 / 1088", 8, 1088, columns::<8, 1088>, spread::<8, 1088>),
        column("b12 / 24", 12, 24, columns::<12, 24>, spread::<12, 24>),
        column("b16 / 32", 16, 32, columns::<16, 32>, spread::<16, 32>),
        column("b24 / 32", 24, 32, columns::<24, 32>, spread::<24, 32>),
        column("b64 / 128", 64, 128, columns::<64, 128>, spread::<64, 128>),
        column("b128 / 256", 128, 256, columns::<128, 256>, spread::<128, 256>),
        Layout {
            name: "x face (2 levels, b8)",
            nest: face(128, 8, 1040, 135_200),
            pack: planes::<128, 1040, 135_200>,
            unpack: unplanes::<128, 1040, 135_200>,
        },
        Layout {
            name: "short rows (4 x b8)",
            nest: face(4, 8, 16, 128),
            pack: planes::<4, 16, 128>,
            unpack: unplanes::<4, 16, 128>,
        },
        Layout {
            name: "y face (rows of 1024)",
            nest: nest(vec![line(packed / 1024, 135_200)], Leaf::Block { bytes: 1024 }),
            pack: columns::<1024, 135_200>,
            unpack: spread::<1024, 135_200>,
        },
        Layout {
            name: "struct 1 + 12 of 16",
            nest: nest(vec![line(packed / 13, 16)], Leaf::Window { runs: members.into() }),
            pack: structs,
            unpack: unstructs,
        },
        Layout {
            name: "table of b8",
            nest: nest(
                vec![Level::Table { entries: Table::new(&shuffled), scale: 8 }],
                Leaf::Block { bytes: 8 },
            ),
            pack: indexed,
            unpack: unindexed,
        },
    ]
}

fn line(count: u64, stride: i64) -> Level {
    Level::Loop { count, stride }
}

fn nest(levels: Vec<Level>, leaf: Leaf) -> Nest {
    Nest { base: 0, levels: levels.into(), leaf }
}

fn measure(jit: &Jit, layout: &Layout, direction: Direction) {
    let nest = &layout.nest;
    let Some(kernel) = jit.kernel(&nest.shape(direction)) else {
        println!("{}: refused", layout.name);
        return;
    };
    // Selects all iterations of every level.
    let all: Vec<(u64, u64)> = nest.levels.iter().map(|level| (0, level.count())).collect();
    let blocks: Vec<(usize, usize)> = reference::runs(nest, &all)
        .iter()
        .map(|run| (run.offset as usize, run.bytes as usize))
        .collect();
    let bytes: usize = blocks.iter().map(|(_, bytes)| bytes).sum();
    // The hand-written loops need whole strides of memory, so the memory extends beyond the last
    // block by the longest stride.
    let slack = 135_200;
    let span = blocks.iter().map(|(at, bytes)| at + bytes).max().unwrap_or(0) + slack;
    let mut mem: Vec<u8> = (0..span).map(|i| i as u8).collect();
    let mut packed = vec![1_u8; bytes];
    let mut other = vec![2_u8; bytes];
    let (params, _) = reference::parameters(nest, &all);

    run(&kernel, &params, &mut mem, &mut packed);
    if direction == Direction::Pack {
        (layout.pack)(&mem, &mut other);
        assert!(packed == other, "{}: kernel and hand loop disagree", layout.name);
    }

    let turn = |work: &mut dyn FnMut()| {
        let repeats = (200_000 / bytes).max(4);
        let start = Instant::now();
        for _ in 0..repeats {
            work();
        }
        (bytes * repeats) as f64 / start.elapsed().as_nanos() as f64
    };
    let mut figures = [const { Vec::new() }; 4];
    for _ in 0..61 {
        figures[0].push(turn(&mut || {
            black_box(&mut other).copy_from_slice(black_box(&packed));
        }));
        figures[1].push(turn(&mut || {
            copy_blocks(direction, black_box(&blocks), &mut mem, &mut packed);
        }));
        figures[2].push(turn(&mut || match direction {
            Direction::Pack => (layout.pack)(black_box(&mem), &mut packed),
            Direction::Unpack => (layout.unpack)(&mut mem, black_box(&packed)),
        }));
        figures[3].push(turn(&mut || run(&kernel, black_box(&params), &mut mem, &mut packed)));
    }
    let [memcpy, per_block, hand, jit] = figures.map(|mut f| {
        f.sort_by(f64::total_cmp);
        f[f.len() / 2]
    });
    let way = if direction == Direction::Pack { "pack" } else { "unpack" };
    println!(
        "{:<22} {bytes:>7} {way:<6} | {memcpy:7.1} {per_block:7.1} {hand:7.1} {jit:7.1} | {:6.2} {:6.1}",
        layout.name,
        jit / hand,
        jit / per_block,
    );
}

fn run(kernel: &Kernel, params: &[u64], mem: &mut [u8], packed: &mut [u8]) {
    // SAFETY: `params` has the numbers of the nest whose shape the kernel has; `measure` made `mem`
    // long enough for the nest's runs and `packed` long enough for their bytes; `mem` and `packed`
    // are two separate vectors.
    unsafe { kernel.entry()(params.as_ptr(), mem.as_mut_ptr(), packed.as_mut_ptr()) };
}

/// Copies with one libc memcpy per block, the best that an interpreter can do.
fn copy_blocks(direction: Direction, blocks: &[(usize, usize)], mem: &mut [u8], packed: &mut [u8]) {
    let mut at = 0;
    for &(offset, bytes) in blocks {
        let (mem, packed) = (&mut mem[offset..offset + bytes], &mut packed[at..at + bytes]);
        match direction {
            Direction::Pack => packed.copy_from_slice(mem),
            Direction::Unpack => mem.copy_from_slice(packed),
        }
        at += bytes;
    }
}

// The functions below are the loops that a person would write, with all numbers known to the
// compiler.

fn columns<const N: usize, const STRIDE: usize>(mem: &[u8], packed: &mut [u8]) {
    for (to, from) in packed.as_chunks_mut::<N>().0.iter_mut().zip(mem.as_chunks::<STRIDE>().0) {
        to.copy_from_slice(&from[..N]);
    }
}

fn spread<const N: usize, const STRIDE: usize>(mem: &mut [u8], packed: &[u8]) {
    for (from, to) in packed.as_chunks::<N>().0.iter().zip(mem.as_chunks_mut::<STRIDE>().0) {
        to[..N].copy_from_slice(from);
    }
}

fn planes<const ROWS: usize, const ROW: usize, const PLANE: usize>(mem: &[u8], packed: &mut [u8]) {
    for (to, from) in packed.chunks_exact_mut(8 * ROWS).zip(mem.as_chunks::<PLANE>().0) {
        columns::<8, ROW>(from, to);
    }
}

fn unplanes<const ROWS: usize, const ROW: usize, const PLANE: usize>(
    mem: &mut [u8],
    packed: &[u8],
) {
    for (from, to) in packed.chunks_exact(8 * ROWS).zip(mem.as_chunks_mut::<PLANE>().0) {
        spread::<8, ROW>(to, from);
    }
}

fn structs(mem: &[u8], packed: &mut [u8]) {
    for (to, from) in packed.as_chunks_mut::<13>().0.iter_mut().zip(mem.as_chunks::<16>().0) {
        to[0] = from[0];
        to[1..].copy_from_slice(&from[4..]);
    }
}

fn unstructs(mem: &mut [u8], packed: &[u8]) {
    for (from, to) in packed.as_chunks::<13>().0.iter().zip(mem.as_chunks_mut::<16>().0) {
        to[0] = from[0];
        to[4..].copy_from_slice(&from[1..]);
    }
}

thread_local! {
    /// The entries of the table, for the hand-written loops `indexed` and `unindexed`.
    static ENTRIES: std::cell::RefCell<Vec<i32>> = const { std::cell::RefCell::new(Vec::new()) };
}

fn indexed(mem: &[u8], packed: &mut [u8]) {
    ENTRIES.with_borrow(|entries| {
        for (to, &entry) in packed.as_chunks_mut::<8>().0.iter_mut().zip(entries) {
            let at = entry as usize * 8;
            to.copy_from_slice(&mem[at..at + 8]);
        }
    });
}

fn unindexed(mem: &mut [u8], packed: &[u8]) {
    ENTRIES.with_borrow(|entries| {
        for (from, &entry) in packed.as_chunks::<8>().0.iter().zip(entries) {
            let at = entry as usize * 8;
            mem[at..at + 8].copy_from_slice(from);
        }
    });
}
