//! `typepack explain --time`: measures how fast a type is packed, by typepack, by the interpreter, and how fast the same
//! number of bytes is copied.

use std::fmt::Write;
use std::hint::black_box;
use std::time::{Duration, Instant};

use typepack::engine::{Datatype, Plan, Settings, Strategy, pack_range};

/// The sizes in packed bytes.
const SIZES: [u64; 6] = [1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
/// The most memory, in bytes, that the elements of a size may span, and that their packed form may take.
const MOST: i128 = 1 << 30;
/// How often each time is measured. The least time counts, because other load only adds time.
const ROUNDS: usize = 9;
/// How long one measurement takes at least.
const LEAST: Duration = Duration::from_millis(1);

/// Returns a table with a line for each size from 1 KiB to 1 MiB.
pub fn table(ty: &Datatype, plan: &Plan) -> Result<String, String> {
    let size = ty.size().unsigned_abs();
    if size == 0 {
        return Err("--time: the type has no data".into());
    }
    let slow = Settings { strategy: Some(Strategy::Interpreter), ..Settings::default() };
    let slow = ty.commit_with(&slow).map_err(|error| error.to_string())?;
    let mut text = format!(
        "GB/s of packed bytes, best of {ROUNDS} rounds\n  {:>10}  {:>8}  {:>11}  {:>8}\n",
        "bytes", "typepack", "interpreter", "memcpy"
    );
    let mut last = 0;
    for wanted in SIZES {
        let count = (wanted / size).max(1);
        if count == last {
            continue;
        }
        last = count;
        let bytes = count * size;
        // The span of all elements, with displacement 0 in it.
        let ends = |bound: i64| {
            [i128::from(bound), i128::from(bound) + i128::from(count - 1) * i128::from(ty.extent())]
        };
        let low = ends(ty.true_lb()).into_iter().min().unwrap_or(0).min(0);
        let high = ends(ty.true_ub()).into_iter().max().unwrap_or(0).max(0);
        if (high - low).max(i128::from(bytes)) > MOST {
            let _infallible = writeln!(
                text,
                "  {bytes:>10}  the elements span {} bytes: not measured",
                (high - low).max(i128::from(bytes))
            );
            continue;
        }
        let (origin, span) = ((-low) as usize, (high - low) as usize);
        let source = vec![1u8; span.max(bytes as usize)];
        let mut packed = vec![0u8; bytes as usize];
        let mut rates = Vec::new();
        for plan in [plan, &slow] {
            let mut pack = || pack_range(plan, count, &source, origin, 0..bytes, &mut packed);
            pack().map_err(|error| error.to_string())?;
            rates.push(rate(bytes, || {
                // The first call has shown that the arguments are right.
                let _well = black_box(pack());
            }));
        }
        rates.push(rate(bytes, || packed.copy_from_slice(black_box(&source[..bytes as usize]))));
        let [ours, interpreter, memcpy] = rates[..] else { continue };
        let _infallible =
            writeln!(text, "  {bytes:>10}  {ours:>8.2}  {interpreter:>11.2}  {memcpy:>8.2}");
    }
    Ok(text)
}

/// Returns GB/s of `call`, which moves `bytes` bytes.
fn rate(bytes: u64, mut call: impl FnMut()) -> f64 {
    let mut calls = 1u32;
    let mut best = f64::INFINITY;
    let mut rounds = 0;
    while rounds < ROUNDS {
        let begin = Instant::now();
        (0..calls).for_each(|_| call());
        let time = begin.elapsed();
        if time < LEAST && calls < 1 << 24 {
            calls *= 2;
            continue;
        }
        best = best.min(time.as_secs_f64() / f64::from(calls));
        rounds += 1;
    }
    bytes as f64 / best / 1e9
}
