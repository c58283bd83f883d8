//! Compares packing and unpacking doubles in external32 with packing and unpacking them in the native
//! form. The two layouts, contiguous doubles and every second double, fit in a cache.
//!
//! `cargo run --release -p typepack-engine --example external32`
//!
//! Every round times each of the five columns of the table once; the table shows the medians over the
//! rounds, in GB/s. `native` is the engine's own pack without a compiler. `loop` is the loop that a
//! programmer would write by hand for the native form.

use std::hint::black_box;
use std::time::Instant;
use typepack_engine::{Datatype, External32, Named, pack, pack_external, unpack, unpack_external};

const ROUNDS: usize = 101;
const BYTES_PER_ROUND: usize = 8 << 20;

fn main() -> typepack_engine::Result<()> {
    println!("layout  bytes    native   loop  external32  unpack native  external32   (GB/s)");
    let double = Datatype::named(Named::DOUBLE);
    for bytes in [1 << 10, 16 << 10, 256 << 10] {
        let count = bytes / 8;
        for (name, stride) in [("contig", 1), ("d1s2", 2)] {
            let ty = Datatype::vector(count as i64, 1, stride as i64, &double)?;
            let (plan, external) = (ty.commit()?, External32::new(&ty)?);
            let mut memory: Vec<f64> = (0..count * stride).map(|i| i as f64).collect();
            let mut packed = vec![0u8; bytes];
            let mut times = [const { Vec::new() }; 5];
            for _ in 0..ROUNDS {
                let repeat = BYTES_PER_ROUND / bytes;
                times[0].push(timed(repeat, || {
                    pack(&plan, 1, black_box(&memory), &mut packed)
                        .expect("both buffers are large enough");
                }));
                times[1].push(timed(repeat, || {
                    hand_loop(black_box(&memory), stride, black_box(&mut packed));
                }));
                times[2].push(timed(repeat, || {
                    pack_external(&external, 1, black_box(&memory), &mut packed, &mut 0)
                        .expect("both buffers are large enough");
                }));
                times[3].push(timed(repeat, || {
                    unpack(&plan, 1, black_box(&packed), &mut memory)
                        .expect("both buffers are large enough");
                }));
                times[4].push(timed(repeat, || {
                    unpack_external(&external, 1, black_box(&packed), &mut 0, &mut memory)
                        .expect("both buffers are large enough");
                }));
                // The call of `unpack` above interpreted external32 bytes as native doubles, so it
                // stored wrong values in the memory, many of them denormal. `unpack_external` should
                // have replaced them with the original values. This line restores these values in any
                // case, so that nothing in the next round works on denormal numbers.
                memory.iter_mut().enumerate().for_each(|(i, x)| *x = i as f64);
            }
            let rate = times.map(|mut seconds| {
                seconds.sort_by(f64::total_cmp);
                BYTES_PER_ROUND as f64 / seconds[ROUNDS / 2] / 1e9
            });
            println!(
                "{name:7}{bytes:7}{:9.1}{:7.1}{:12.1}{:15.1}{:12.1}",
                rate[0], rate[1], rate[2], rate[3], rate[4]
            );
        }
    }
    Ok(())
}

fn timed(repeat: usize, mut work: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..repeat {
        work();
    }
    start.elapsed().as_secs_f64()
}

#[inline(never)]
fn hand_loop(memory: &[f64], stride: usize, packed: &mut [u8]) {
    for (to, from) in packed.chunks_exact_mut(8).zip(memory.iter().step_by(stride)) {
        to.copy_from_slice(&from.to_ne_bytes());
    }
}
