//! Compares the fused copy with pack and unpack through a buffer of the whole packed size.
//!
//! `cargo run --release -p typepack-engine --example fused [-- PART-OF-A-NAME]`
//!
//! Each row is one pair of layouts. The program first verifies the result of the fused copy. Then
//! every round times the fused copy, and pack followed by unpack. The row shows the medians over the
//! rounds. The ratio is the time of pack and unpack divided by the time of the fused copy; above 1, the
//! fused copy is faster.

use std::hint::black_box;
use std::time::Instant;
use typepack_engine::{Datatype, Named, Order, Plan, Result, copy, pack, unpack};

const ROUNDS: usize = 21;
/// Minimum duration of one sample, in nanoseconds.
const SAMPLE: u128 = 1_000_000;

struct Row {
    name: &'static str,
    from: (Plan, u64),
    to: (Plan, u64),
}

fn main() -> Result<()> {
    println!("{:34} {:>9} {:>11} {:>9} {:>7}", "layouts", "bytes", "pack+unpack", "fused", "ratio");
    let wanted = std::env::args().nth(1).unwrap_or_default();
    for row in rows()?.iter().filter(|row| row.name.contains(&wanted)) {
        measure(row)?;
    }
    Ok(())
}

fn rows() -> Result<Vec<Row>> {
    let (double, byte) = (Datatype::named(Named::F64), Datatype::named(Named::BYTE));
    let int = Datatype::named(Named::INT);
    let mut rows = Vec::new();
    let mut row = |name, from: &Datatype, n: u64, to: &Datatype, m: u64| -> Result<()> {
        rows.push(Row { name, from: (from.commit()?, n), to: (to.commit()?, m) });
        Ok(())
    };
    let vector = |count, block, stride| Datatype::vector(count, block, stride, &double);
    let face =
        |n: i64, sub: [i64; 3]| Datatype::subarray(&[n + 2; 3], &sub, &[1; 3], Order::C, &double);
    for n in [2, 16, 128, 2048, 32768] {
        row("8 B stride 2 -> stride 3", &vector(n, 1, 2)?, 1, &vector(n, 1, 3)?, 1)?;
    }
    let every =
        |n: i64, b: i64, s: i64| Datatype::hvector(n, 1, s, &Datatype::contiguous(b, &byte)?);
    row("1 B stride 2 -> stride 3", &every(4096, 1, 2)?, 1, &every(4096, 1, 3)?, 1)?;
    row("4 B stride 8 -> stride 12", &every(4096, 4, 8)?, 1, &every(4096, 4, 12)?, 1)?;
    row("12 B stride 16 -> stride 20", &every(4096, 12, 16)?, 1, &every(4096, 12, 20)?, 1)?;
    row("24 B stride 40 -> stride 32", &every(4096, 24, 40)?, 1, &every(4096, 24, 32)?, 1)?;
    for n in [16, 256, 4096] {
        row("64 B stride 128 -> stride 192", &vector(n, 8, 16)?, 1, &vector(n, 8, 24)?, 1)?;
    }
    row("512 B stride 1 K -> stride 1.5 K", &vector(256, 64, 128)?, 1, &vector(256, 64, 192)?, 1)?;
    for n in [32, 128] {
        let x = face(n, [n, n, 1])?;
        row("x face -> x face", &x, 1, &x, 1)?;
        row("x face -> z face (rows)", &x, 1, &face(n, [1, n, n])?, 1)?;
        row("z face (rows) -> z face", &face(n, [1, n, n])?, 1, &face(n, [1, n, n])?, 1)?;
    }
    row("column -> row", &vector(1024, 1, 64)?, 1, &double, 1024)?;
    let column = Datatype::resized(0, 8, &vector(128, 1, 128)?)?;
    row("transpose: columns -> rows of 136", &column, 128, &vector(128, 128, 136)?, 1)?;
    row("16 B -> 8 B", &vector(2048, 2, 4)?, 1, &vector(4096, 1, 2)?, 1)?;
    row("24 B -> 8 B", &vector(2048, 3, 4)?, 1, &vector(6144, 1, 2)?, 1)?;
    row("32 B -> 8 B", &vector(2048, 4, 6)?, 1, &vector(8192, 1, 2)?, 1)?;
    row("24 B -> 16 B", &vector(2048, 3, 4)?, 1, &vector(3072, 2, 4)?, 1)?;
    row("40 B -> 24 B", &vector(3072, 5, 7)?, 1, &vector(5120, 3, 7)?, 1)?;
    row("200 B -> 120 B", &vector(3 * 256, 25, 30)?, 1, &vector(5 * 256, 15, 20)?, 1)?;
    row("400 B -> 600 B", &vector(3 * 128, 50, 64)?, 1, &vector(2 * 128, 75, 96)?, 1)?;
    row("800 B -> 600 B", &vector(3 * 64, 100, 128)?, 1, &vector(4 * 64, 75, 96)?, 1)?;
    row("6000 B -> 36 B", &vector(48, 750, 800)?, 1, &every(8000, 36, 44)?, 1)?;
    row("6000 B -> 40 B", &vector(40, 750, 800)?, 1, &vector(6000, 5, 7)?, 1)?;
    for inner in [2, 3, 5] {
        let rows = Datatype::hvector(4096 / inner, 1, 48 * inner, &vector(inner, 1, 2)?)?;
        let other = vector(4096 / inner * inner, 1, 3)?;
        row("8 B rows of 2, 3, 5 -> stride 3", &rows, 1, &other, 1)?;
    }
    let places: Vec<i64> = (0..4096).map(|i| i * 3 + i % 7 % 3).collect();
    let table = Datatype::indexed_block(1, &places, &double)?;
    row("index list -> stride 2", &table, 1, &vector(4096, 1, 2)?, 1)?;
    row("index list -> index list", &table, 1, &table, 1)?;
    let lengths: Vec<i64> = (0..1024).map(|i| 1 + i % 7).collect();
    let starts: Vec<i64> = (0..1024).map(|i| i * 10).collect();
    let list = Datatype::indexed(&lengths, &starts, &double)?;
    row("list of 1 to 7 doubles -> itself", &list, 1, &list, 1)?;
    let members = [Datatype::named(Named::CHAR), int, double.clone()];
    let gapped = Datatype::structured(&[1, 1, 1], &[0, 4, 8], &members)?;
    let wider = Datatype::structured(&[1, 1, 1], &[0, 8, 16], &members)?;
    row("struct {char, int, double} x 8", &gapped, 8, &wider, 8)?;
    row("struct {char, int, double}", &gapped, 4096, &wider, 4096)?;
    Ok(rows)
}

/// Returns a buffer that is long enough for `count` elements. None of these layouts has data below
/// displacement 0.
fn memory(plan: &Plan, count: u64) -> Vec<u8> {
    let place = plan.footprint();
    let bytes = (count as i64 - 1) * place.extent + place.true_ub;
    (0..bytes).map(|i| (i % 251) as u8).collect()
}

fn measure(row: &Row) -> Result<()> {
    let ((from, n), (to, m)) = (&row.from, &row.to);
    let (src, mut dst) = (memory(from, *n), memory(to, *m));
    let mut expected = dst.clone();
    let bytes = from.packed_bytes(*n)?;
    let mut packed = vec![0u8; bytes as usize];
    pack(from, *n, &src, &mut packed)?;
    unpack(to, *m, &packed, &mut expected)?;
    copy(from, *n, &src, to, *m, &mut dst)?;
    assert!(dst == expected, "{}: wrong bytes", row.name);

    let mut two_ways = || -> Result<(f64, f64)> {
        let both = sample(|| {
            pack(from, *n, black_box(&src), &mut packed)?;
            unpack(to, *m, black_box(&packed), &mut dst)?;
            Ok(())
        })?;
        let fused = sample(|| copy(from, *n, black_box(&src), to, *m, &mut dst).map(|_| ()))?;
        Ok((both, fused))
    };
    two_ways()?;
    let (mut both, mut fused) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (a, b) = two_ways()?;
        both.push(a);
        fused.push(b);
    }
    let (both, fused) = (median(both), median(fused));
    println!("{:34} {bytes:9} {both:8.0} ns {fused:6.0} ns {:6.2}x", row.name, both / fused);
    Ok(())
}

/// Returns the mean time of one call, in nanoseconds.
fn sample(mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    let (start, mut calls) = (Instant::now(), 0u32);
    loop {
        for _ in 0..16 {
            call()?;
        }
        calls += 16;
        if start.elapsed().as_nanos() > SAMPLE {
            return Ok(start.elapsed().as_nanos() as f64 / f64::from(calls));
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
