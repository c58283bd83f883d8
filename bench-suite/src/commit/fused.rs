//! Compares a fused copy (from layout to layout in one pass) with a pack and an unpack. The plans of both
//! use compiled kernels.
//!
//! All buffers are page-aligned (`../buffer.rs`), because a block of 64 bytes that crosses a cache line
//! boundary changes the time as much as a different way of copying does.

use super::{Limit, Numbers, Row, Scale, line, reach, settings};
use crate::buffer::Buffer;
use crate::measure::take_turns;
use typepack_engine::{copy, pack, stats, text, unpack};
use typepack_jit::Mode;

/// The bar if the block length of the source divides that of the destination, or the other way round: the
/// least allowed ratio of the time for pack and unpack to the time for the copy.
const EQUAL: Limit = Limit::AtLeast(1.2);
/// The bar if neither block length divides the other: the copy must not be slower than pack and unpack,
/// except for ties within 3 %.
const UNEQUAL: Limit = Limit::AtLeast(0.97);

/// Stands in [`LAYOUTS`] for the type that `indexed` makes: a list of single doubles with gaps of 0 to 3
/// doubles. The list is too irregular for a loop.
const INDEXED: &str = "indexed";

/// The rows: the name, the source type, the destination type (with as many packed bytes as the source),
/// and the bar.
const LAYOUTS: [(&str, &str, &str, Limit); 17] = [
    ("8 B stride 2 to 3", "vector(2048, 1, 2, double)", "vector(2048, 1, 3, double)", EQUAL),
    ("24 B stride 40 to 32", "vector(1024, 3, 5, double)", "vector(1024, 3, 4, double)", EQUAL),
    ("64 B stride 128 to 192", "vector(512, 8, 16, double)", "vector(512, 8, 24, double)", EQUAL),
    (
        "x face to x face of 64^3",
        "subarray([66, 66, 66], [64, 64, 1], [1, 1, 1], C, double)",
        "subarray([66, 66, 66], [64, 64, 1], [1, 1, 0], C, double)",
        EQUAL,
    ),
    (
        "rows to rows of 512 B",
        "subarray([66, 66, 66], [1, 64, 64], [1, 1, 1], C, double)",
        "subarray([66, 66, 66], [1, 64, 64], [0, 1, 1], C, double)",
        EQUAL,
    ),
    ("8 B stride 2 to 3, 1 KiB", "vector(128, 1, 2, double)", "vector(128, 1, 3, double)", EQUAL),
    (
        "100 x 8 B to 10 x 10 x 8 B",
        "vector(100, 1, 2, double)",
        "hvector(10, 1, 320, vector(10, 1, 3, double))",
        EQUAL,
    ),
    ("64 B to 8 x 8 B", "vector(512, 8, 12, double)", "vector(4096, 1, 2, double)", EQUAL),
    ("index list to 8 B stride 2", INDEXED, "vector(2048, 1, 2, double)", EQUAL),
    (
        "128 x 128 columns to rows",
        "contiguous(128, resized(0, 8, vector(128, 1, 128, double)))",
        "vector(128, 128, 136, double)",
        EQUAL,
    ),
    (
        "128 x 128 rows to columns",
        "vector(128, 128, 136, double)",
        "contiguous(128, resized(0, 8, vector(128, 1, 128, double)))",
        EQUAL,
    ),
    (
        "300 x 300 floats, columns to rows",
        "contiguous(300, resized(0, 4, vector(300, 1, 300, float)))",
        "vector(300, 300, 310, float)",
        EQUAL,
    ),
    (
        "100 x 512 columns of 24 B to rows",
        "contiguous(100, resized(0, 24, vector(512, 1, 170, contiguous(3, double))))",
        "vector(100, 1536, 1540, double)",
        EQUAL,
    ),
    (
        "64 columns at stride 4096 to columns",
        "contiguous(64, resized(0, 8, vector(512, 1, 512, double)))",
        "contiguous(64, resized(0, 8, vector(512, 1, 80, double)))",
        EQUAL,
    ),
    (
        "32 x 64 x 64, x z y to z y x",
        "contiguous(64, resized(0, 8, hvector(32, 1, 34816, vector(64, 1, 68, double))))",
        "hvector(64, 1, 16640, vector(32, 64, 65, double))",
        EQUAL,
    ),
    ("24 B to 16 B", "vector(2048, 3, 4, double)", "vector(3072, 2, 4, double)", UNEQUAL),
    ("40 B to 24 B", "vector(3072, 5, 7, double)", "vector(5120, 3, 7, double)", UNEQUAL),
];

pub(super) fn run(scale: &Scale) -> Result<Vec<Row>, String> {
    let settings = settings(Mode::Eager);
    let mut numbers = Numbers(0x2222_5555_9999_0001);
    let mut rows = Vec::new();
    for (name, from, to, bar) in LAYOUTS {
        let commit =
            |text: &str| text::parse(text).map_err(line)?.commit_with(&settings).map_err(line);
        let from = match from {
            INDEXED => commit(&indexed(&mut numbers))?,
            text => commit(text)?,
        };
        let to = commit(to)?;
        let mut source = Buffer::new(reach(&from, 1))?;
        source.bytes_mut().fill_with(|| numbers.below(251) as u8);
        let (mut fused, mut twice) = (Buffer::new(reach(&to, 1))?, Buffer::new(reach(&to, 1))?);
        let mut staging = Buffer::new(from.element_bytes() as usize)?;
        let (memory, staging) = (source.bytes(), staging.bytes_mut());
        let (fused, twice) = (fused.bytes_mut(), twice.bytes_mut());
        let before = stats::bytes().fused_kernel;
        copy(&from, 1, memory, &to, 1, fused).map_err(line)?;
        let way = if stats::bytes().fused_kernel > before { "kernel" } else { "no kernel" };
        pack(&from, 1, memory, staging).map_err(line)?;
        unpack(&to, 1, staging, twice).map_err(line)?;
        if fused != twice {
            let at = fused.iter().zip(&*twice).take_while(|(a, b)| a == b).count();
            return Err(format!(
                "fused copy {name}: byte {at} is {:#04x}; pack and unpack give {:#04x}",
                fused[at], twice[at]
            ));
        }
        // `copy`, `pack` and `unpack` have just succeeded with the same arguments, so the timed calls
        // succeed, too, and their results can be dropped.
        let [one, two] = take_turns(
            scale.rounds,
            [&mut || drop(copy(&from, 1, memory, &to, 1, fused)), &mut || {
                drop(pack(&from, 1, memory, staging));
                drop(unpack(&to, 1, staging, twice));
            }],
        );
        rows.push(
            Row::new(
                format!("fused copy, {name}, against pack + unpack"),
                two.ns / one.ns,
                "x",
                bar,
            )
            .steady(one.is_steady() && two.is_steady())
            .detail(format!("{:.2} us ({way}), {:.2} us", one.ns / 1e3, two.ns / 1e3)),
        );
    }
    Ok(rows)
}

/// Returns the expression of the type for which [`INDEXED`] stands.
fn indexed(numbers: &mut Numbers) -> String {
    let mut at = 0;
    let places: Vec<String> = (0..2048)
        .map(|_| {
            at += 1 + numbers.below(4);
            at.to_string()
        })
        .collect();
    format!("indexed_block(1, [{}], double)", places.join(", "))
}
