//! Draws the number of uses after which a type has repaid the cost of its creation.
//!
//! Reads the table `regret`. This table has the total times of a commit followed by 1 to 1000 packs: with
//! kernels that are never compiled, and with kernels that are compiled at commit. The cost of a
//! compilation is the difference between these two totals for one use; its saving is the difference
//! between the times per use.
//!
//! In the comparison with the best peer, the cost is typepack's commit with or without the compilation,
//! while the peer's commit counts as free. The saving is the difference between typepack's and the peer's
//! time per use. The peer's time comes from the table of `peers`.

use super::axis::{Canvas, Drawn, FAINT, INK, LOSS, Log, Stand, WIN, line, origin, picture, write};
use crate::record::{PEERS, Record, Table};
use crate::regret;
use crate::row::report::read;
use crate::row::report::size_text;
use crate::row::{OWN, Row};
use plotters::prelude::*;

const WIDTH: u32 = 960;
const ROW: i32 = 24;
const TOP: i32 = 104;
const ENDS: [f64; 2] = [1.0, 1e6];

/// For one layout, the numbers of uses that repay the compilation, the commit with compilation, and the
/// commit without compilation. The last two are `None` if no peer was measured. A number is infinite if
/// the cost is never repaid.
struct Repaid {
    name: String,
    uses: [Option<f64>; 3],
}

pub(super) fn svg(record: &Record) -> Result<Option<String>, String> {
    let (Some(table), Some(rows)) = (record.table(regret::NAME), record.table(PEERS)) else {
        return Ok(None);
    };
    let list = repaid(table, &read(rows));
    if list.is_empty() {
        return Ok(None);
    }
    let bottom = TOP + ROW * list.len() as i32;
    let drawn = picture((WIDTH, bottom as u32 + 66), |root| {
        write(
            root,
            "Uses that repay commit and compilation (packing)",
            (20, 20),
            Stand::Left,
            18,
            INK,
        )?;
        for (place, (mark, text)) in MARKS.iter().enumerate() {
            let y = 42 + 17 * place as i32;
            dot(root, (28, y), *mark)?;
            write(root, text, (42, y), Stand::Left, 13, INK)?;
        }
        let axis = Log { values: ENDS, pixels: [190, 860] };
        for power in axis.powers(10.0) {
            let x = axis.at(power);
            line(root, (x, TOP - 4), (x, bottom), FAINT, 1)?;
            write(root, &format!("{power}"), (x, bottom + 12), Stand::Middle, 12, INK)?;
        }
        let middle = (i32::midpoint(190, 860), bottom + 30);
        write(
            root,
            "uses of the type until it is repaid (logarithmic)",
            middle,
            Stand::Middle,
            13,
            INK,
        )?;
        for (place, repaid) in list.iter().enumerate() {
            let y = TOP + ROW * place as i32 + ROW / 2;
            line(root, (190, y), (860, y), FAINT, 1)?;
            write(root, &repaid.name, (180, y), Stand::Right, 13, INK)?;
            let mut nevers = Vec::new();
            for (uses, (mark, _)) in repaid.uses.iter().zip(MARKS) {
                match uses {
                    Some(uses) if uses.is_finite() => dot(root, (axis.at(*uses), y), mark)?,
                    Some(_) => nevers.push(mark),
                    None => {}
                }
            }
            for (place, mark) in nevers.iter().enumerate() {
                dot(root, (876 + 14 * place as i32, y), *mark)?;
            }
            if !nevers.is_empty() {
                let x = 876 + 14 * nevers.len() as i32;
                write(root, "never", (x, y), Stand::Left, 12, LOSS)?;
            }
        }
        write(root, &origin(&record.machine, PEERS), (20, bottom + 54), Stand::Left, 12, INK)
    })?;
    Ok(Some(drawn))
}

#[derive(Clone, Copy)]
enum Mark {
    Ring,
    Square,
    Disc,
}

const MARKS: [(Mark, &str); 3] = [
    (Mark::Ring, "compilation, repaid by the kernel's saving over leaves and interpreter"),
    (
        Mark::Square,
        "commit and compilation, repaid by the kernel's saving over the best peer's MPI_Pack",
    ),
    (
        Mark::Disc,
        "commit alone, repaid by the saving of leaves and interpreter over the best peer's MPI_Pack",
    ),
];

fn dot(root: &Canvas<'_>, (x, y): (i32, i32), mark: Mark) -> Drawn {
    match mark {
        Mark::Ring => root.draw(&Circle::new((x, y), 5, INK.stroke_width(2)))?,
        Mark::Square => {
            root.draw(&Rectangle::new([(x - 5, y - 5), (x + 5, y + 5)], WIN.filled()))?
        }
        Mark::Disc => root.draw(&Circle::new((x, y), 4, RGBColor(230, 140, 30).filled()))?,
    }
    Ok(())
}

fn repaid(table: &Table, rows: &[Row]) -> Vec<Repaid> {
    let mut names: Vec<(&str, &str)> =
        table.lines().map(|line| (line.text("layout"), line.text("bytes"))).collect();
    names.dedup();
    let of = |(layout, bytes): (&str, &str)| -> Option<Repaid> {
        let own: Vec<_> = table
            .lines()
            .filter(|line| line.text("layout") == layout && line.text("bytes") == bytes)
            .collect();
        let (first, last) = (own.first()?, own.last()?);
        let more = last.number("uses")? - first.number("uses")?;
        let pair = |column: &str| -> Option<(f64, f64)> {
            let (once, all) = (first.number(column)?, last.number(column)?);
            Some((once, (all - once) / more))
        };
        let ((never, slow), (at_once, fast)) = (pair("never_ns")?, pair("at_once_ns")?);
        let uses = |cost: f64, saving: f64| {
            if saving > 0.0 { (cost / saving).max(1.0) } else { f64::INFINITY }
        };
        let row = rows
            .iter()
            .find(|row| row.name == layout && row.part == "pack" && row.bytes.to_string() == bytes);
        let peers = row.into_iter().flat_map(|row| &row.figures);
        let peers = peers.filter(|figure| !OWN.contains(&figure.competitor.as_str()));
        let peer = peers.map(|figure| figure.ns).min_by(f64::total_cmp);
        Some(Repaid {
            name: format!("{layout}, {}", bytes.parse().map_or(bytes.to_owned(), size_text)),
            uses: [
                Some(uses(at_once - never, slow - fast)),
                peer.map(|peer| uses(at_once - fast, peer - fast)),
                peer.map(|peer| uses(never - slow, peer - slow)),
            ],
        })
    };
    names.into_iter().filter_map(of).collect()
}
