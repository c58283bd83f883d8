//! Draws for each layout or row how much faster or slower typepack is than the best peer, and than others.
//!
//! For each group, a horizontal bar shows the geometric mean of the ratios at those sizes whose figures
//! are steady. The bar goes from 1 to the right if typepack is faster, and to the left if typepack is
//! slower. The bar is red if the mean is below [`TIE`]. A thin line goes from the least to the greatest
//! ratio. If the least ratio is below [`TIE`], the part of the line to the left of 1 is red, and the ratio
//! is written beside the line.

use super::axis::{
    Canvas, Drawn, FAINT, INK, LOSS, Log, PALE, Stand, WIN, cut, line, origin, picture, width,
    write,
};
use super::subject::{Side, Subject};
use crate::record::Record;
use crate::row::{TIE, mean};
use plotters::prelude::*;

/// The width of an axis, and the space between two axes.
const AXIS: i32 = 360;
const SPACE: i32 = 48;
/// The greatest width of the descriptions.
const DESCRIPTION: i32 = 380;
const ROW: i32 = 15;
const TOP: i32 = 96;
/// The ratios at the ends of the axes. A ratio beyond an end is drawn at the end, with its value as a
/// number.
const ENDS: [f64; 2] = [0.25, 64.0];

/// The least ratio, the mean and the greatest ratio over the sizes of a group. `None` if no size has a
/// steady ratio.
type Ratios = Option<[f64; 3]>;

fn ratios(subject: &Subject, group: &str, side: &Side) -> Ratios {
    let own = subject
        .rows
        .iter()
        .filter(|row| row.name == group && side.part.as_ref().is_none_or(|part| row.part == *part));
    let mut all: Vec<f64> = own
        .filter_map(|row| row.against(&side.own, &side.others))
        .filter(|ratio| ratio.steady)
        .map(|ratio| ratio.value)
        .collect();
    all.sort_by(f64::total_cmp);
    Some([*all.first()?, mean(all.iter().copied())?, *all.last()?])
}

pub(super) fn svg(record: &Record, subject: &Subject) -> Result<Option<String>, String> {
    let mut bars: Vec<(&str, Vec<Ratios>)> = subject
        .groups()
        .into_iter()
        .map(|group| {
            (group, subject.sides.iter().map(|side| ratios(subject, group, side)).collect())
        })
        .filter(|(_, all): &(&str, Vec<Ratios>)| all.iter().any(Option::is_some))
        .collect();
    if bars.is_empty() {
        return Ok(None);
    }
    // Puts the groups with the greatest ratios first. The sort is stable, so groups with equal ratios
    // stay in the order of the record.
    let key =
        |bar: &(&str, Vec<Ratios>)| bar.1.iter().flatten().next().map_or(0.0, |[_, mean, _]| *mean);
    bars.sort_by(|a, b| key(b).total_cmp(&key(a)));
    let bottom = TOP + ROW * bars.len() as i32;
    // To the left of the first axis are the names of the groups and their descriptions.
    let names = bars.iter().map(|(name, _)| width(name, 12)).max().unwrap_or(0) + 16;
    let texts: Vec<String> =
        bars.iter().map(|(name, _)| cut(subject.describe(name), DESCRIPTION, 11)).collect();
    let described = texts.iter().map(|text| width(text, 11)).max().unwrap_or(0);
    // A ratio below the left end of an axis is written to the left of it.
    let margin = 20 + names + described + 40;
    let sides = subject.sides.len() as i32;
    let total = margin + (AXIS + SPACE) * sides;
    let drawn = picture((total.max(640) as u32, bottom as u32 + 60), |root| {
        let title = format!(
            "{}: typepack's speed over that of others, by {}",
            subject.title, subject.groups
        );
        write(root, &title, (20, 20), Stand::Left, 18, INK)?;
        let how = "Bars: mean over the sizes. Thin lines: from the least to the greatest ratio. \
                   Red: below 0.97. -: no steady figure.";
        write(root, how, (20, 42), Stand::Left, 13, INK)?;
        for (place, ((name, _), text)) in bars.iter().zip(&texts).enumerate() {
            let y = TOP + ROW * place as i32 + ROW / 2;
            write(root, name, (20, y), Stand::Left, 12, INK)?;
            write(root, text, (20 + names, y), Stand::Left, 11, PALE)?;
        }
        for (number, side) in subject.sides.iter().enumerate() {
            let left = margin + (AXIS + SPACE) * number as i32;
            let axis = Log { values: ENDS, pixels: [left, left + AXIS] };
            write(root, &cut(&side.title, AXIS + 40, 13), (left, 66), Stand::Left, 13, INK)?;
            for power in axis.powers(2.0) {
                let (x, colour) = (axis.at(power), if power == 1.0 { INK } else { FAINT });
                line(root, (x, TOP - 4), (x, bottom), colour, 1)?;
                for y in [TOP - 12, bottom + 10] {
                    write(root, &format!("{power}"), (x, y), Stand::Middle, 12, INK)?;
                }
            }
            let middle = (left + AXIS / 2, bottom + 26);
            write(root, "times as fast (logarithmic)", middle, Stand::Middle, 12, INK)?;
            for (place, (_, all)) in bars.iter().enumerate() {
                bar(root, &axis, all[number], TOP + ROW * place as i32 + ROW / 2)?;
            }
        }
        let text = origin(&record.machine, &subject.table);
        write(root, &text, (20, bottom + 46), Stand::Left, 12, INK)
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
