//! Compares types that visit their blocks out of address order with types that visit the same blocks in
//! address order.
//!
//! `cargo run --release -p typepack-engine --example orders [-- [--random N] [PART-OF-A-NAME]]`
//!
//! Each row of the output compares two types that cover the same bytes. The first type packs the
//! dimensions of an array in the order that the row's name indicates. (The name of a random array lists
//! its dimensions as `count:stride`, outermost first, and then the length of its blocks.) The second
//! type packs the same blocks in address order, and no other order can be much faster. The ratio is the
//! time of the first type divided by the time of the second. Before the measurement, the bytes that the
//! first type packs and unpacks are compared with those of the interpreter. The times are medians over
//! rounds in which the two types take turns.

use std::hint::black_box;
use std::time::Instant;
use typepack_engine::{Datatype, Direction, Named, Plan, Result, Settings, Strategy, pack, unpack};

const ROUNDS: usize = 7;
/// Minimum duration of one sample, in nanoseconds.
const SAMPLE: u128 = 500_000;

/// A page of memory. A vector of pages begins at a page boundary.
#[derive(Clone)]
#[repr(align(4096))]
struct Page {
    _bytes: [u8; 4096],
}

struct Row {
    name: String,
    /// The dimensions of the array in the order in which the first type packs them, outermost loop first.
    /// Each has a count and a stride in bytes.
    levels: Vec<(i64, i64)>,
    block: i64,
}

fn main() -> Result<()> {
    let (mut random, mut wanted) = (0, String::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--random" {
            random = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(40);
        } else {
            wanted = argument;
        }
    }
    println!(
        "{:58} {:>9} {:>8} {:>6} {:>8} {:>6}  pack, unpack",
        "layout", "bytes", "pack us", "ratio", "unpack", "ratio"
    );
    let mut rows = fixed();
    rows.extend((0..random).scan(0x9e37_79b9_7f4a_7c15, |seed, _| Some(arbitrary(seed))));
    for row in rows.iter().filter(|row| row.name.contains(&wanted)) {
        measure(row)?;
    }
    Ok(())
}

fn fixed() -> Vec<Row> {
    let row = |name: &str, levels: &[(i64, i64)], block| Row {
        name: name.into(),
        levels: levels.to_vec(),
        block,
    };
    let mut rows = Vec::new();
    // A cube [z][y][x] of n elements per dimension (x varies fastest in memory), packed in every order
    // of its dimensions except address order.
    for (n, block) in [(32, 8), (100, 8), (128, 8), (64, 4), (64, 24)] {
        let [z, y, x] = [(n, n * n * block), (n, n * block), (n, block)];
        for (order, levels) in [
            ("z x y", [z, x, y]),
            ("y z x", [y, z, x]),
            ("y x z", [y, x, z]),
            ("x z y", [x, z, y]),
            ("x y z", [x, y, z]),
        ] {
            rows.push(row(&format!("cube {n} b{block} as {order}"), &levels, block));
        }
    }
    for block in [1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 40, 64, 96] {
        for n in [256, 260] {
            let name = format!("columns {n} b{block}");
            rows.push(row(&name, &[(n, block), (n, n * block)], block));
        }
    }
    for (gap, block) in [(16, 8), (24, 8), (8, 4), (32, 16), (16, 12)] {
        let name = format!("columns with gaps {gap} b{block}");
        rows.push(row(&name, &[(200, gap), (1000, 200 * gap)], block));
        let name = format!("columns with gaps {gap} b{block}, pages");
        rows.push(row(&name, &[(128, gap), (1024, 4096)], block));
    }
    rows.push(row("x faces of 16 cubes, cell by cell", &[(16, 8), (64, 66 * 528), (64, 528)], 8));
    rows.push(row("x face, columns", &[(64, 528), (64, 66 * 528)], 8));
    rows.push(row("x face of 5 doubles, component by component", &[(5, 8), (4096, 2640)], 8));
    rows.push(row("components of 4 floats", &[(4, 4), (65536, 16)], 4));
    rows.push(row("components of 13 doubles", &[(13, 8), (8192, 104)], 8));
    rows.push(row("components of 3 doubles", &[(3, 8), (65536, 24)], 8));
    rows.push(row("rows of 3 across planes", &[(400, 8), (400, 3200), (3, 1_280_000)], 8));
    rows.push(row("rows of 2 across planes, b24", &[(200, 24), (200, 4800), (2, 960_000)], 24));
    rows.push(row("columns of two rows", &[(4096, 8), (2, 1 << 16)], 8));
    rows.push(row("4-D, two outer swapped", &[(16, 8), (16, 128), (64, 1 << 17), (64, 2048)], 8));
    rows.push(row("4-D, reversed", &[(24, 8), (24, 192), (24, 4608), (24, 110_592)], 8));
    rows
}

/// Returns a random array. Some dimensions leave a gap between their parts, and the dimensions are
/// packed in random order.
fn arbitrary(seed: &mut u64) -> Row {
    let mut below = |end: u64| {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        *seed % end
    };
    let block = [1, 2, 4, 8, 8, 8, 12, 16, 24, 32, 48][below(11) as usize];
    let bytes = [1 << 14, 1 << 17, 1 << 20, 1 << 22][below(4) as usize];
    let depth = 2 + below(3) as i64;
    let (mut levels, mut left, mut span) = (Vec::new(), bytes / block, block);
    for l in 0..depth {
        let count = if l + 1 == depth {
            left
        } else {
            let most = f64::from(left as i32).powf(1.0 / (depth - l) as f64) as u64 * 2 + 2;
            2 + below(most) as i64
        };
        let count = count.clamp(2, 1 << 16);
        left = (left / count).max(1);
        let stride = match below(4) {
            0 => span + block * (1 + below(4) as i64),
            1 if l > 0 => (span as u64).next_power_of_two() as i64,
            _ => span,
        };
        levels.push((count, stride));
        span = stride * count;
    }
    for i in (1..levels.len()).rev() {
        levels.swap(i, below(i as u64 + 1) as usize);
    }
    let text: Vec<String> = levels.iter().map(|(count, s)| format!("{count}:{s}")).collect();
    Row { name: format!("random {} b{block}", text.join(" ")), levels, block }
}

fn commit(levels: &[(i64, i64)], block: i64, settings: &Settings) -> Result<Plan> {
    let mut ty = Datatype::contiguous(block, &Datatype::named(Named::BYTE))?;
    for &(count, stride) in levels.iter().rev() {
        ty = Datatype::hvector(count, 1, stride, &ty)?;
    }
    ty.commit_with(settings)
}

fn measure(row: &Row) -> Result<()> {
    let plan = commit(&row.levels, row.block, &Settings::default())?;
    let mut sorted = row.levels.clone();
    sorted.sort_by_key(|&(_, stride)| std::cmp::Reverse(stride));
    let best = commit(&sorted, row.block, &Settings::default())?;
    let slow = Settings { strategy: Some(Strategy::Interpreter), ..Settings::default() };
    let slow = commit(&row.levels, row.block, &slow)?;

    let reach = plan.footprint().true_ub as usize;
    let bytes = plan.element_bytes() as usize;
    // As in the bench suite, the buffers begin at a page boundary, because the offset within a page
    // affects the times as much as the order of the blocks does.
    let [mut memory, mut packed] =
        [reach, bytes].map(|n| vec![Page { _bytes: [0; 4096] }; n.div_ceil(4096)]);
    let (memory, packed) =
        (&mut bytes_of(&mut memory)[..reach], &mut bytes_of(&mut packed)[..bytes]);
    memory.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i % 251) as u8);
    let mut expected = vec![0_u8; bytes];
    pack(&plan, 1, memory, packed)?;
    pack(&slow, 1, memory, &mut expected)?;
    assert!(packed == expected, "{}: wrong bytes", row.name);
    let mut restored = vec![0_u8; reach];
    let mut other = vec![0_u8; reach];
    unpack(&plan, 1, packed, &mut restored)?;
    unpack(&slow, 1, packed, &mut other)?;
    assert!(restored == other, "{}: wrong bytes unpacked", row.name);

    let mut times: [Vec<f64>; 4] = Default::default();
    for _ in 0..ROUNDS {
        times[0].push(sample(|| pack(&plan, 1, black_box(memory), packed).map(drop))?);
        times[1].push(sample(|| pack(&best, 1, black_box(memory), packed).map(drop))?);
        times[2].push(sample(|| unpack(&plan, 1, black_box(packed), memory).map(drop))?);
        times[3].push(sample(|| unpack(&best, 1, black_box(packed), memory).map(drop))?);
    }
    let [a, b, c, d] = times.map(median);
    println!(
        "{:58} {bytes:9} {:8.2} {:6.2} {:8.2} {:6.2}  {}, {}",
        row.name,
        a / 1e3,
        a / b,
        c / 1e3,
        c / d,
        plan.kernel_name(Direction::Pack),
        plan.kernel_name(Direction::Unpack),
    );
    Ok(())
}

fn bytes_of(pages: &mut [Page]) -> &mut [u8] {
    let (address, length) = (pages.as_mut_ptr().cast(), size_of_val(pages));
    // SAFETY: a `Page` is an array of bytes without padding, so the memory of `pages` consists of
    // `length` initialized bytes. The result borrows `pages` mutably for as long as the argument does.
    unsafe { std::slice::from_raw_parts_mut(address, length) }
}

/// Returns the mean time of one call, in nanoseconds.
fn sample(mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    let (start, mut calls) = (Instant::now(), 0_u32);
    loop {
        call()?;
        calls += 1;
        if start.elapsed().as_nanos() > SAMPLE {
            return Ok(start.elapsed().as_nanos() as f64 / f64::from(calls));
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
