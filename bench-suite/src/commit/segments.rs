//! Packing in pieces against packing at once.
//!
//! 64 KiB pieces for every layout, 8 KiB ones too where nothing is tiled.

use super::clock::take_turns;
use super::{Limit, Numbers, Row, Scale, line, reach, settings};
use typepack_engine::{Plan, pack, pack_range, text};
use typepack_jit::Mode;

/// Most time in pieces, as a multiple of the time at once.
const BAR: Limit = Limit::AtMost(1.1);

pub(super) fn run(scale: &Scale) -> Result<Vec<Row>, String> {
    let settings = settings(Mode::Eager);
    let doubles = scale.bytes / 8;
    let side = doubles.isqrt();
    let mut numbers = Numbers(0x5151_1234_abcd_0001);
    let mut at = 0;
    let list: Vec<String> = (0..doubles)
        .map(|_| {
            at += 1 + numbers.below(4);
            at.to_string()
        })
        .collect();
    let layouts = [
        ("d1s2", format!("vector({doubles}, 1, 2, double)"), 1, [64, 8].as_slice()),
        ("d8s16", format!("vector({}, 8, 16, double)", doubles / 8), 1, &[64, 8]),
        (
            "x faces of 32^3",
            "subarray([34, 34, 34], [32, 32, 1], [1, 1, 1], C, double)".into(),
            doubles as u64 / 1024,
            &[64, 8],
        ),
        (
            "struct",
            "struct([1, 1, 1], [0, 4, 8], [char, int, double])".into(),
            scale.bytes as u64 / 13,
            &[64, 8],
        ),
        ("indexed_block", format!("indexed_block(1, [{}], double)", list.join(", ")), 1, &[64, 8]),
        (
            "transpose",
            format!("resized(0, 8, vector({side}, 1, {side}, double))"),
            side as u64,
            &[64],
        ),
    ];
    let mut rows = Vec::new();
    for (name, expression, count, pieces) in layouts {
        let ty = text::parse(&expression).map_err(line)?;
        let plan = ty.commit_with(&settings).map_err(line)?;
        for kib in pieces {
            rows.push(measure(name, &plan, count, kib << 10, scale.rounds, &mut numbers)?);
        }
    }
    Ok(rows)
}

fn measure(
    name: &str,
    plan: &Plan,
    count: u64,
    piece: usize,
    rounds: usize,
    numbers: &mut Numbers,
) -> Result<Row, String> {
    let memory = numbers.bytes(reach(plan, count));
    let bytes = plan.packed_bytes(count).map_err(line)? as usize;
    let (mut whole, mut parts) = (vec![0u8; bytes], vec![0xa5u8; bytes]);
    pack(plan, count, &memory, &mut whole).map_err(line)?;
    in_pieces(plan, count, &memory, piece, &mut parts)?;
    if whole != parts {
        return Err(format!("{name}: pieces of {piece} bytes make other bytes"));
    }
    // Refusals were found above.
    let [once, pieces] = take_turns(
        rounds,
        [&mut || drop(pack(plan, count, &memory, &mut whole)), &mut || {
            drop(in_pieces(plan, count, &memory, piece, &mut parts))
        }],
    );
    let what = format!("{name}, pieces of {} KiB against one call", piece >> 10);
    Ok(Row::new(what, pieces.ns / once.ns, "x", BAR)
        .steady(once.steady && pieces.steady)
        .detail(format!("{:.1} us, {:.1} us", pieces.ns / 1e3, once.ns / 1e3)))
}

fn in_pieces(
    plan: &Plan,
    count: u64,
    memory: &[u8],
    piece: usize,
    packed: &mut [u8],
) -> Result<(), String> {
    let mut start = 0;
    for part in packed.chunks_mut(piece) {
        let end = start + part.len() as u64;
        pack_range(plan, count, memory, 0, start..end, part).map_err(line)?;
        start = end;
    }
    Ok(())
}
