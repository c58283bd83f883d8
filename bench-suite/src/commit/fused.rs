//! Layout to layout in one pass against a pack and an unpack.

use super::clock::take_turns;
use super::{Limit, Numbers, Row, Scale, line, reach, settings};
use typepack_engine::{copy, pack, text, unpack};
use typepack_jit::Mode;

/// Both sides have blocks of one length.
const EQUAL: Limit = Limit::AtLeast(1.2);
/// They do not: never slower, ties within 3 % aside.
const UNEQUAL: Limit = Limit::AtLeast(0.97);

/// Name, source and destination (both with as many packed bytes), bar.
const LAYOUTS: [(&str, &str, &str, Limit); 7] = [
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
    ("24 B to 16 B", "vector(2048, 3, 4, double)", "vector(3072, 2, 4, double)", UNEQUAL),
    ("40 B to 24 B", "vector(3072, 5, 7, double)", "vector(5120, 3, 7, double)", UNEQUAL),
];

pub(super) fn run(scale: &Scale) -> Result<Vec<Row>, String> {
    let settings = settings(Mode::Eager);
    let mut numbers = Numbers(0x2222_5555_9999_0001);
    let mut rows = Vec::new();
    for (name, from, to, bar) in LAYOUTS {
        let commit = |text| text::parse(text).map_err(line)?.commit_with(&settings).map_err(line);
        let (from, to) = (commit(from)?, commit(to)?);
        let memory = numbers.bytes(reach(&from, 1));
        let (mut fused, mut twice) = (vec![7u8; reach(&to, 1)], vec![7u8; reach(&to, 1)]);
        let mut staging = vec![0u8; from.element_bytes() as usize];
        copy(&from, 1, &memory, &to, 1, &mut fused).map_err(line)?;
        pack(&from, 1, &memory, &mut staging).map_err(line)?;
        unpack(&to, 1, &staging, &mut twice).map_err(line)?;
        if fused != twice {
            return Err(format!("fused copy {name}: other bytes than pack and unpack"));
        }
        // Refusals were found above.
        let [one, two] = take_turns(
            scale.rounds,
            [&mut || drop(copy(&from, 1, &memory, &to, 1, &mut fused)), &mut || {
                drop(pack(&from, 1, &memory, &mut staging));
                drop(unpack(&to, 1, &staging, &mut twice));
            }],
        );
        rows.push(
            Row::new(
                format!("fused copy, {name}, against pack + unpack"),
                two.ns / one.ns,
                "x",
                bar,
            )
            .steady(one.steady && two.steady)
            .detail(format!("{:.2} us, {:.2} us", one.ns / 1e3, two.ns / 1e3)),
        );
    }
    Ok(rows)
}
