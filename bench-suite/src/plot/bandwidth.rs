//! Draws bandwidth against packed size. There is one panel per class of layouts.
//!
//! A point of a line is the geometric mean over the layouts of the panel. A panel has those layouts of its
//! class that were measured at the most sizes, so that all points of a line stand for the same layouts.
//! Otherwise the line would reflect the choice of layouts. If a competitor has no figure for one of the
//! layouts of a panel, the panel has no line for it.

use super::axis::{
    Canvas, Drawn, FAINT, INK, Log, Stand, colour, line, mean, origin, picture, write, write_up,
};
use crate::competitor::{HAND, HAND_C, TYPEPACK};
use crate::record::{Line, Record, Table};
use crate::report::size_text;
use plotters::prelude::*;

const SIZE: (u32, u32) = (960, 760);
const CLASSES: [(&str, &str); 4] = [
    ("plain", "other blocks and lists"),
    ("gapped", "structs with gaps"),
    ("bytes", "blocks of 1 and 2 bytes"),
    ("transpose", "columns one after the other"),
];
/// If a panel has at least two more layouts than this, its title names only this many, and states how many
/// more there are.
const NAMED: usize = 5;

/// One panel: its title, the sizes in bytes, and its lines. A line consists of the name of a competitor and
/// its bandwidth at each size, in 10^9 bytes per second. A bandwidth that is not finite has no point.
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) sizes: Vec<f64>,
    pub(super) lines: Vec<(String, Vec<f64>)>,
}

pub(super) fn svg(
    record: &Record,
    table: &Table,
    direction: &str,
) -> Result<Option<String>, String> {
    let peers = table.peers();
    let mut names = vec!["memcpy", HAND, HAND_C];
    names.extend(&peers);
    names.push(TYPEPACK);
    let panels: Vec<Panel> =
        CLASSES.iter().filter_map(|class| panel(table, direction, *class, &names)).collect();
    if panels.is_empty() {
        return Ok(None);
    }
    let drawn = picture(SIZE, |root| {
        let title =
            format!("{direction}: bandwidth of packed data against packed size, one thread");
        write(root, &title, (20, 20), Stand::Left, 18, INK)?;
        let mut x = 20;
        for name in &names {
            if panels.iter().any(|panel| panel.lines.iter().any(|(who, _)| who == name)) {
                let (colour, width) = colour(name, peers.iter().position(|peer| peer == name));
                line(root, (x, 44), (x + 22, 44), colour, width)?;
                write(root, name, (x + 27, 44), Stand::Left, 14, INK)?;
                x += 44 + 8 * name.len() as i32;
            }
        }
        for (place, panel) in panels.iter().enumerate() {
            let corner = (70 + 470 * (place as i32 % 2), 84 + 335 * (place as i32 / 2));
            let colour = |name: &str| colour(name, peers.iter().position(|peer| *peer == name));
            draw(root, panel, corner, "packed bytes per call", colour)?;
        }
        let where_ = format!("Geometric means over the layouts named. {}", origin(&record.machine));
        write(root, &where_, (20, SIZE.1 as i32 - 12), Stand::Left, 12, INK)
    })?;
    Ok(Some(drawn))
}

fn panel(
    table: &Table,
    direction: &str,
    (class, text): (&str, &str),
    names: &[&str],
) -> Option<Panel> {
    let chosen =
        |line: &Line<'_>| line.text("class") == class && line.text("direction") == direction;
    let rows: Vec<Line<'_>> = table.lines().filter(chosen).collect();
    let sizes_of = |layout: &str| -> Vec<u64> {
        let own = rows.iter().filter(|row| row.text("layout") == layout);
        own.filter_map(|row| row.text("size").parse().ok()).collect()
    };
    let mut layouts: Vec<&str> = rows.iter().map(|row| row.text("layout")).collect();
    layouts.dedup();
    let sizes = layouts.iter().map(|layout| sizes_of(layout)).max_by_key(Vec::len)?;
    if sizes.len() < 2 {
        return None;
    }
    layouts.retain(|layout| sizes_of(layout) == sizes);
    let speeds = |name: &str| -> Option<Vec<f64>> {
        let at = |size: &u64| -> Option<f64> {
            let own = rows.iter().filter(|row| layouts.contains(&row.text("layout")));
            let own = own.filter(|row| row.text("size").parse() == Ok(*size));
            let all: Option<Vec<f64>> = own.map(|row| row.speed(name)).collect();
            all.map(|all| mean(&all))
        };
        sizes.iter().map(at).collect()
    };
    let lines = names.iter().filter_map(|name| Some(((*name).to_owned(), speeds(name)?))).collect();
    let shown = if layouts.len() > NAMED + 1 {
        format!("{} and {} more", layouts[..NAMED].join(", "), layouts.len() - NAMED)
    } else {
        layouts.join(", ")
    };
    Some(Panel {
        title: format!("{text}: {shown}"),
        sizes: sizes.iter().map(|&size| size as f64).collect(),
        lines,
    })
}

/// Draws a panel whose upper left corner is at `left` and `top`. `below` says what the sizes are. `colour`
/// returns the colour and the width of the line of a competitor.
pub(super) fn draw(
    root: &Canvas<'_>,
    panel: &Panel,
    (left, top): (i32, i32),
    below: &str,
    colour: impl Fn(&str) -> (RGBColor, u32),
) -> Drawn {
    let (right, bottom) = (left + 390, top + 260);
    let all = || {
        let speeds = panel.lines.iter().flat_map(|(_, speeds)| speeds.iter().copied());
        speeds.filter(|speed| speed.is_finite())
    };
    let low = all().fold(f64::INFINITY, f64::min);
    let high = all().fold(0.0, f64::max);
    let x = Log {
        values: [panel.sizes[0], panel.sizes[panel.sizes.len() - 1]],
        pixels: [left + 8, right - 8],
    };
    let y = Log {
        values: [2f64.powf(low.log2().floor()), 2f64.powf(high.log2().ceil())],
        pixels: [bottom, top],
    };
    for speed in y.powers(2.0) {
        line(root, (left, y.at(speed)), (right, y.at(speed)), FAINT, 1)?;
        write(root, &format!("{speed}"), (left - 6, y.at(speed)), Stand::Right, 13, INK)?;
    }
    for &size in &panel.sizes {
        line(root, (x.at(size), top), (x.at(size), bottom), FAINT, 1)?;
        let text = size_text(size as u64).replace(" KiB", "K").replace(" MiB", "M");
        write(
            root,
            text.trim_end_matches(" B"),
            (x.at(size), bottom + 12),
            Stand::Middle,
            12,
            INK,
        )?;
    }
    write_up(root, "GB/s", (left - 44, i32::midpoint(top, bottom)), 13)?;
    let middle = i32::midpoint(left, right);
    write(root, below, (middle, bottom + 30), Stand::Middle, 13, INK)?;
    write(root, &panel.title, (left, top - 12), Stand::Left, 14, INK)?;
    for (name, speeds) in &panel.lines {
        let (colour, width) = colour(name);
        let points: Vec<(i32, i32)> = panel
            .sizes
            .iter()
            .zip(speeds)
            .filter(|(_, speed)| speed.is_finite())
            .map(|(&size, &speed)| (x.at(size), y.at(speed)))
            .collect();
        for &point in &points {
            root.draw(&Circle::new(point, 1 + width, colour.filled()))?;
        }
        root.draw(&PathElement::new(points, colour.stroke_width(width)))?;
    }
    Ok(())
}
