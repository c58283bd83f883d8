//! Draws for each layout how much faster or slower typepack is than the best peer of each row, and than
//! the best hand loop.
//!
//! For each layout, a horizontal bar shows the geometric mean of the ratios at those sizes whose figures
//! are steady. The bar goes from 1 to the right if typepack is faster, and to the left if typepack is
//! slower. The bar is red if the mean is below [`TIE`]. A thin line goes from the least to the greatest
//! ratio. If the least ratio is below [`TIE`], the part of the line to the left of 1 is red, and the ratio
//! is written beside the line.

use super::DDTBENCH;
use super::axis::{
    Canvas, Drawn, FAINT, INK, LOSS, Log, Stand, WIN, line, mean, origin, picture, write,
};
use crate::competitor::{HAND, HAND_C};
use crate::record::{Line, Record, Table};
use crate::summary::TIE;
use plotters::prelude::*;

const WIDTH: u32 = 960;
const ROW: i32 = 13;
const TOP: i32 = 92;
/// The ratios at the ends of both axes. A ratio beyond an end is drawn at the end, with its value as a
/// number.
const ENDS: [f64; 2] = [0.25, 64.0];

/// The least ratio, the mean and the greatest ratio over the sizes of a layout. `None` if no size has a
/// steady ratio.
type Ratios = Option<[f64; 3]>;

pub(super) fn svg(
    record: &Record,
    table: &Table,
    direction: &str,
) -> Result<Option<String>, String> {
    let peers = table.peers();
    let rows: Vec<Line<'_>> =
        table.lines().filter(|line| line.text("direction") == direction).collect();
    let mut layouts: Vec<&str> = rows.iter().map(|row| row.text("layout")).collect();
    layouts.dedup();
    let ratios = |layout: &str, against: &[&str]| -> Ratios {
        let own = rows.iter().filter(|row| row.text("layout") == layout);
        let mut all: Vec<f64> = own.filter_map(|row| row.ratio(against)).collect();
        all.sort_by(f64::total_cmp);
        Some([*all.first()?, mean(&all), *all.last()?])
    };
    let mut bars: Vec<(&str, [Ratios; 2])> = layouts
        .iter()
        .map(|layout| (*layout, [ratios(layout, &peers), ratios(layout, &[HAND, HAND_C])]))
        .filter(|(_, [peer, hand])| peer.is_some() || hand.is_some())
        .collect();
    if bars.is_empty() {
        return Ok(None);
    }
    // Puts the layouts with the greatest ratios first. The sort is stable, so layouts with equal ratios
    // stay in the order of the record.
    let key = |bar: &(&str, [Ratios; 2])| bar.1[0].or(bar.1[1]).map_or(0.0, |[_, mean, _]| mean);
    bars.sort_by(|a, b| key(b).total_cmp(&key(a)));
    let bottom = TOP + ROW * bars.len() as i32;
    // The names of the layouts are to the left of the first axis. A character is about 7 pixels wide.
    let longest = bars.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let margin = 20 + (7 * longest as i32).max(110);
    let width = (WIDTH as i32 - margin) / 2 - 50;
    let drawn = picture((WIDTH, bottom as u32 + 58), |root| {
        let set = if table.name == DDTBENCH { "DDTBench" } else { "reference layouts" };
        let title =
            format!("{set}, {direction}: typepack's bandwidth over that of others, by layout");
        write(root, &title, (20, 20), Stand::Left, 18, INK)?;
        let how = "Bars: mean over the sizes. Thin lines: from the least to the greatest ratio. \
                   Red: below 0.97.";
        write(root, how, (20, 42), Stand::Left, 13, INK)?;
        let against = [
            format!(
                "over the best of {}",
                if peers.is_empty() { "no peers".into() } else { peers.join(", ") }
            ),
            "over the best hand-written loop, compiled for this machine".to_owned(),
        ];
        for (side, text) in against.iter().enumerate() {
            let left = margin + (width + 40) * side as i32;
            let axis = Log { values: ENDS, pixels: [left, left + width] };
            write(root, text, (left, 66), Stand::Left, 14, INK)?;
            for power in axis.powers(2.0) {
                let (x, colour) = (axis.at(power), if power == 1.0 { INK } else { FAINT });
                line(root, (x, TOP - 4), (x, bottom), colour, 1)?;
                for y in [TOP - 12, bottom + 10] {
                    write(root, &format!("{power}"), (x, y), Stand::Middle, 12, INK)?;
                }
            }
            let middle = left + width / 2;
            write(
                root,
                "times as fast (logarithmic)",
                (middle, bottom + 26),
                Stand::Middle,
                12,
                INK,
            )?;
            for (place, (name, both)) in bars.iter().enumerate() {
                let y = TOP + ROW * place as i32 + ROW / 2;
                if side == 0 {
                    write(root, name, (left - 8, y), Stand::Right, 12, INK)?;
                }
                bar(root, &axis, both[side], y)?;
            }
        }
        write(root, &origin(&record.machine), (20, bottom + 46), Stand::Left, 12, INK)
    })?;
    Ok(Some(drawn))
}

fn bar(root: &Canvas<'_>, axis: &Log, ratios: Ratios, y: i32) -> Drawn {
    let one = axis.at(1.0);
    let Some([least, mean, greatest]) = ratios else {
        return write(root, "-", (one + 6, y), Stand::Left, 11, INK);
    };
    let colour = if mean < TIE { LOSS } else { WIN };
    let (from, to) = (one.min(axis.at(mean)), one.max(axis.at(mean)).max(one + 1));
    root.draw(&Rectangle::new([(from, y - 4), (to, y + 4)], colour.mix(0.75).filled()))?;
    line(root, (axis.at(least), y), (axis.at(greatest), y), INK, 1)?;
    if least < TIE {
        let end = axis.at(least);
        line(root, (end, y), (one.min(axis.at(greatest)), y), LOSS, 2)?;
        root.draw(&Circle::new((end, y), 3, LOSS.filled()))?;
        write(root, &format!("{least:.2}"), (end - 6, y), Stand::Right, 11, LOSS)?;
    }
    if greatest > ENDS[1] {
        let end = axis.pixels[1];
        write(root, &format!("{greatest:.0}"), (end + 3, y), Stand::Left, 11, INK)?;
    }
    Ok(())
}
