//! external32 against the native representation: doubles, in cache.

use super::clock::take_turns;
use super::{Limit, Numbers, Row, Scale, line, settings};
use typepack_engine::{External32, pack, pack_external, text};
use typepack_jit::Mode;

/// Least speed, as a part of the native pack's.
const BAR: Limit = Limit::AtLeast(0.7);

/// Doubles per call, 16 KiB.
const DOUBLES: usize = 2048;

pub(super) fn run(scale: &Scale) -> Result<Vec<Row>, String> {
    let settings = settings(Mode::Eager);
    let layouts = [
        ("contiguous doubles", format!("contiguous({DOUBLES}, double)"), 1),
        ("d1s2", format!("vector({DOUBLES}, 1, 2, double)"), 2),
        ("d4s8", format!("vector({}, 4, 8, double)", DOUBLES / 4), 2),
    ];
    let mut rows = Vec::new();
    for (name, expression, spread) in layouts {
        let ty = text::parse(&expression).map_err(line)?;
        let plan = ty.commit_with(&settings).map_err(line)?;
        let external = External32::new(&ty).map_err(line)?;
        let memory = Numbers(0x7777_1111_3333_0001).bytes(8 * spread * DOUBLES);
        let (mut native, mut canonical) = (vec![0u8; 8 * DOUBLES], vec![0u8; 8 * DOUBLES]);
        pack(&plan, 1, &memory, &mut native).map_err(line)?;
        pack_external(&external, 1, &memory, &mut canonical, &mut 0).map_err(line)?;
        let same = |(a, b): (&[u8], &[u8])| a.iter().eq(b.iter().rev());
        let swapped = native.chunks_exact(8).zip(canonical.chunks_exact(8)).all(same);
        if cfg!(target_endian = "little") && !swapped {
            return Err(format!("external32 of {name}: not the swapped bytes"));
        }
        // Refusals were found above.
        let [own, other] = take_turns(
            scale.rounds,
            [&mut || drop(pack(&plan, 1, &memory, &mut native)), &mut || {
                drop(pack_external(&external, 1, &memory, &mut canonical, &mut 0))
            }],
        );
        rows.push(
            Row::new(
                format!("external32, {name}, 16 KiB, against native"),
                own.ns / other.ns,
                "x",
                BAR,
            )
            .steady(own.steady && other.steady)
            .detail(format!("{:.2} us, {:.2} us", other.ns / 1e3, own.ns / 1e3)),
        );
    }
    Ok(rows)
}
