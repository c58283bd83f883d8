//! Compares packing in pieces with packing in one call.
//!
//! Every layout is packed in equal pieces of 64 KiB, and in the pieces near 64 KiB that the plan (the
//! committed type) proposes. The engine packs some layouts, such as transposes, in tiles: several columns
//! of an array together. All other layouts are also packed in smaller pieces: in equal pieces of 8 KiB, in
//! equal pieces of 8 KiB + 4 bytes (so that pieces end inside blocks), and in the pieces near 8 KiB that
//! the plan proposes.

use super::{Limit, Numbers, Row, Scale, line, reach, settings};
use crate::measure::take_turns;
use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use typepack_engine::{Plan, pack, pack_range, text};
use typepack_jit::Mode;

/// The longest allowed time of packing in pieces, as a multiple of the time of packing in one call.
const BAR: Limit = Limit::AtMost(1.1);

/// How the packed bytes are divided into pieces. Sizes are in bytes.
#[derive(Clone, Copy)]
enum Cut {
    /// All pieces except the last one have this size.
    Equal(u64),
    /// The plan proposes pieces near this size.
    Proposed(u64),
}

const ANY: [Cut; 2] = [Cut::Equal(64 << 10), Cut::Proposed(64 << 10)];
const UNTILED: [Cut; 3] = [Cut::Equal(8 << 10), Cut::Equal((8 << 10) + 4), Cut::Proposed(8 << 10)];

impl Cut {
    /// Calls `visit` with the range of packed bytes of each piece, in order.
    fn pieces(
        self,
        plan: &Plan,
        count: u64,
        mut visit: impl FnMut(Range<u64>) -> Result<(), String>,
    ) -> Result<(), String> {
        match self {
            Self::Equal(bytes) => {
                let total = plan.packed_bytes(count).map_err(line)?;
                let mut starts = (0..total).step_by(bytes as usize);
                starts.try_for_each(|start| visit(start..total.min(start + bytes)))
            }
            Self::Proposed(wish) => plan.segments(count, wish).map_err(line)?.try_for_each(visit),
        }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = |bytes: u64| match bytes % 1024 {
            0 => format!("{} KiB", bytes >> 10),
            rest => format!("{} KiB + {rest} B", bytes >> 10),
        };
        match *self {
            Self::Equal(size) => write!(f, "pieces of {}", bytes(size)),
            Self::Proposed(wish) => write!(f, "proposed pieces for {}", bytes(wish)),
        }
    }
}

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
    let rows = scale.bytes / 2400;
    // For each layout: true if the engine may pack it in tiles; its name; its type; and the count.
    let layouts = [
        (false, "d1s2", format!("vector({doubles}, 1, 2, double)"), 1),
        (false, "d8s16", format!("vector({}, 8, 16, double)", doubles / 8), 1),
        (
            false,
            "x faces of 32^3",
            "subarray([34, 34, 34], [32, 32, 1], [1, 1, 1], C, double)".into(),
            doubles as u64 / 1024,
        ),
        (false, "rows of 2400 B", format!("vector({rows}, 300, 400, double)"), 1),
        (
            false,
            "box of wide planes",
            format!(
                "subarray([{0}, 66, 66], [{0}, 64, 60], [0, 1, 1], C, double)",
                scale.bytes / 30720
            ),
            1,
        ),
        (
            false,
            "nest of 4 loops",
            format!(
                "subarray([{}, 9, 10, 11], [{}, 8, 8, 7], [1, 0, 1, 2], C, int)",
                rows + 2,
                rows
            ),
            1,
        ),
        (
            false,
            "struct",
            "struct([1, 1, 1], [0, 4, 8], [char, int, double])".into(),
            scale.bytes as u64 / 13,
        ),
        (false, "indexed_block", format!("indexed_block(1, [{}], double)", list.join(", ")), 1),
        (
            true,
            "transpose",
            format!("resized(0, 8, vector({side}, 1, {side}, double))"),
            side as u64,
        ),
        (
            true,
            "transpose of 100 columns",
            format!("resized(0, 4, vector({}, 1, 100, int))", doubles / 50),
            100,
        ),
        (
            true,
            "transpose of pairs",
            format!("resized(0, 16, vector({side}, 2, {}, double))", 2 * side),
            side as u64 / 2,
        ),
    ];
    let mut rows = Vec::new();
    for (tiled, name, expression, count) in layouts {
        let ty = text::parse(&expression).map_err(line)?;
        let plan = ty.commit_with(&settings).map_err(line)?;
        for &cut in ANY.iter().chain(UNTILED.iter().filter(|_| !tiled)) {
            rows.push(measure(name, &plan, count, cut, scale.rounds, &mut numbers)?);
        }
    }
    Ok(rows)
}

fn measure(
    name: &str,
    plan: &Plan,
    count: u64,
    cut: Cut,
    rounds: usize,
    numbers: &mut Numbers,
) -> Result<Row, String> {
    let memory = numbers.bytes(reach(plan, count));
    let bytes = plan.packed_bytes(count).map_err(line)? as usize;
    let (mut whole, mut parts) = (vec![0u8; bytes], vec![0xa5u8; bytes]);
    pack(plan, count, &memory, &mut whole).map_err(line)?;
    in_pieces(plan, count, &memory, cut, &mut parts)?;
    if whole != parts {
        let at = whole.iter().zip(&parts).take_while(|(a, b)| a == b).count();
        return Err(format!(
            "{name}: byte {at} packed in {cut} is {:#04x}; one call packs {:#04x}",
            parts[at], whole[at]
        ));
    }
    // The calls above have succeeded with the same arguments, so the timed calls succeed, too. Both
    // competitors pack into the same buffer. With two buffers, the difference between their pages alone
    // caused ratios between 0.95 and 1.15.
    let packed = RefCell::new(whole);
    let [once, pieces] = take_turns(
        rounds,
        [&mut || drop(pack(plan, count, &memory, &mut packed.borrow_mut())), &mut || {
            drop(in_pieces(plan, count, &memory, cut, &mut packed.borrow_mut()))
        }],
    );
    Ok(Row::new(format!("{name}, {cut} against one call"), pieces.ns / once.ns, "x", BAR)
        .steady(once.is_steady() && pieces.is_steady())
        .detail(format!("{:.1} us, {:.1} us", pieces.ns / 1e3, once.ns / 1e3)))
}

fn in_pieces(
    plan: &Plan,
    count: u64,
    memory: &[u8],
    cut: Cut,
    packed: &mut [u8],
) -> Result<(), String> {
    cut.pieces(plan, count, |piece| {
        let part = &mut packed[piece.start as usize..piece.end as usize];
        pack_range(plan, count, memory, 0, piece, part).map_err(line)
    })
}
