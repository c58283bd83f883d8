//! Draws the bandwidths of a subject against the size. There is one panel per class of layouts, or per family of rows
//! and kind of memory or number of ranks.
//!
//! A point of a line is the geometric mean over the groups of the panel. A panel has those of its groups that were
//! measured at the most sizes, so that all points of a line stand for the same groups. Otherwise the line would reflect
//! the choice of groups. A competitor that lacks a figure at a size has no point there.

use super::axis::{
    Canvas, Drawn, FAINT, INK, Log, PALE, Stand, colour, cut, fitting, line, origin, picture,
    write, write_up,
};
use super::subject::{self, Subject};
use crate::record::Record;
use crate::row::report::size_text;
use crate::row::{Row, mean};
use plotters::prelude::*;
use plotters::style::RGBColor;

const WIDTH: u32 = 960;
/// If a panel has at least two more groups than this, it names only this many, and states how many more there are.
const NAMED: usize = 5;
/// Two sizes make no curve; the picture of ratios shows them.
const LEAST_SIZES: usize = 3;
/// The height of a coordinate system, and the height of what is above and below it without the names of groups.
const HEIGHT: i32 = 230;
const AROUND: i32 = 76;
const LINE: i32 = 15;

/// A panel with its values. A line consists of the name of a competitor and its bandwidth at each size, in 10^9 bytes
/// per second; NaN where it has none.
struct Panel {
    title: String,
    /// One line of text for each named group.
    groups: Vec<String>,
    sizes: Vec<u64>,
    lines: Vec<(String, Vec<f64>)>,
}

pub(super) fn svg(record: &Record, subject: &Subject) -> Result<Option<String>, String> {
    let panels: Vec<Panel> =
        subject.panels.iter().filter_map(|place| panel(subject, place)).collect();
    if panels.is_empty() {
        return Ok(None);
    }
    let stroke = |name: &str| -> (RGBColor, u32) {
        colour(name, subject.peers.iter().position(|peer| *peer == name))
    };
    let rows: Vec<&[Panel]> = panels.chunks(2).collect();
    let below = |row: &[Panel]| {
        AROUND + LINE * row.iter().map(|panel| panel.groups.len()).max().unwrap_or(0) as i32
    };
    let height: i32 = 94 + rows.iter().map(|row| HEIGHT + below(row)).sum::<i32>();
    let drawn = picture((WIDTH, height as u32), |root| {
        let title = format!("{}: bandwidth against size", subject.title);
        write(root, &title, (20, 20), Stand::Left, 18, INK)?;
        let mut x = 20;
        for name in &subject.names {
            if panels.iter().any(|panel| panel.lines.iter().any(|(who, _)| who == name)) {
                let (colour, width) = stroke(name);
                line(root, (x, 44), (x + 22, 44), colour, width)?;
                write(root, name, (x + 27, 44), Stand::Left, 14, INK)?;
                x += 44 + 8 * name.len() as i32;
            }
        }
        let mut top = 90;
        for row in rows {
            for (place, panel) in row.iter().enumerate() {
                draw(root, panel, (70 + 470 * place as i32, top), subject.sizes, stroke)?;
            }
            top += HEIGHT + below(row);
        }
        let text = format!("{} {}", subject.note, origin(&record.machine, &subject.table));
        write(root, &text, (20, height - 12), Stand::Left, 12, INK)
    })?;
    Ok(Some(drawn))
}

/// Returns the values of a panel; `None` if none of its groups has [`LEAST_SIZES`].
fn panel(subject: &Subject, place: &subject::Panel) -> Option<Panel> {
    let rows: Vec<&Row> = subject
        .rows
        .iter()
        .filter(|row| row.part == place.part && place.groups.contains(&row.name))
        .collect();
    let sizes_of = |group: &str| -> Vec<u64> {
        let mut sizes: Vec<u64> =
            rows.iter().filter(|row| row.name == group).filter_map(|row| row.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    };
    let mut groups: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    groups.dedup();
    let sizes = groups.iter().map(|group| sizes_of(group)).max_by_key(Vec::len)?;
    if sizes.len() < LEAST_SIZES {
        return None;
    }
    groups.retain(|group| sizes_of(group) == sizes);
    let at = |name: &str, size: u64| -> Option<f64> {
        let own =
            rows.iter().filter(|row| row.size == Some(size) && groups.contains(&row.name.as_str()));
        let all: Option<Vec<f64>> = own.map(|row| Some(row.rate(row.figure(name)?))).collect();
        all.and_then(|all| mean(all.into_iter()))
    };
    let speeds = |name: &String| -> Vec<f64> {
        sizes.iter().map(|&size| at(name, size).unwrap_or(f64::NAN)).collect()
    };
    let lines = subject.names.iter().map(|name| (name.clone(), speeds(name)));
    let named = if groups.len() > NAMED + 1 { NAMED } else { groups.len() };
    let mut texts: Vec<String> = Vec::new();
    for group in &groups[..named] {
        let text = subject.describe(group);
        if groups.len() > 1 {
            texts.push(if text.is_empty() {
                (*group).to_owned()
            } else {
                format!("{group}: {text}")
            });
        } else if !text.is_empty() {
            texts.push(format!("{group}: {text}"));
        }
    }
    if named < groups.len() {
        texts.push(format!("and {} more", groups.len() - named));
    }
    Some(Panel {
        title: place.title.clone(),
        groups: texts,
        lines: lines.filter(|(_, speeds)| speeds.iter().any(|speed| speed.is_finite())).collect(),
        sizes,
    })
}

/// Draws a panel whose upper left corner is at `left` and `top`. `below` says what the sizes are. `colour`
/// returns the colour and the width of the line of a competitor.
fn draw(
    root: &Canvas<'_>,
    panel: &Panel,
    (left, top): (i32, i32),
    below: &str,
    colour: impl Fn(&str) -> (RGBColor, u32),
) -> Drawn {
    let (right, bottom) = (left + 390, top + HEIGHT);
    let all = || {
        let speeds = panel.lines.iter().flat_map(|(_, speeds)| speeds.iter().copied());
        speeds.filter(|speed| speed.is_finite())
    };
    let low = all().fold(f64::INFINITY, f64::min);
    let high = all().fold(0.0, f64::max);
    let first = panel.sizes[0] as f64;
    let x = Log {
        values: [first, panel.sizes[panel.sizes.len() - 1] as f64],
        pixels: [left + 8, right - 8],
    };
    let y = Log { values: Log::round(low, high), pixels: [bottom, top] };
    for (speed, text) in y.round_ticks() {
        line(root, (left, y.at(speed)), (right, y.at(speed)), FAINT, 1)?;
        write(root, &text, (left - 6, y.at(speed)), Stand::Right, 13, INK)?;
    }
    let places: Vec<(i32, String)> =
        panel.sizes.iter().map(|&size| (x.at(size as f64), size_text(size))).collect();
    for (at, _) in &places {
        line(root, (*at, top), (*at, bottom), FAINT, 1)?;
    }
    for (at, text) in fitting(&places, 12) {
        write(root, text, (*at, bottom + 12), Stand::Middle, 12, INK)?;
    }
    write_up(root, "GB/s", (left - 50, i32::midpoint(top, bottom)), 13)?;
    let middle = i32::midpoint(left, right);
    write(root, below, (middle, bottom + 29), Stand::Middle, 12, INK)?;
    write(root, &panel.title, (left, top - 12), Stand::Left, 14, INK)?;
    for (place, text) in panel.groups.iter().enumerate() {
        let y = bottom + 46 + LINE * place as i32;
        write(root, &cut(text, 450, 11), (left, y), Stand::Left, 11, PALE)?;
    }
    for (name, speeds) in &panel.lines {
        let (colour, width) = colour(name);
        let points: Vec<(i32, i32)> = panel
            .sizes
            .iter()
            .zip(speeds)
            .filter(|(_, speed)| speed.is_finite())
            .map(|(&size, &speed)| (x.at(size as f64), y.at(speed)))
            .collect();
        for &point in &points {
            root.draw(&Circle::new(point, 1 + width, colour.filled()))?;
        }
        root.draw(&PathElement::new(points, colour.stroke_width(width)))?;
    }
    Ok(())
}
