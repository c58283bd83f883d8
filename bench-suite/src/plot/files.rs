//! Draws the bandwidth of accesses to a shared file against the size of a block. There is one panel for
//! collective accesses and one for independent accesses.
//!
//! The picture has the rows whose ranks take turns in the file, block by block. A competitor that was not
//! measured in a row has no point there.

use super::axis::{Canvas, Drawn, INK, Stand, colour, line, origin, picture, write};
use super::bandwidth::{Panel, draw};
use crate::files::definition::{Calls, Direction};
use crate::files::report::{self, Run};
use crate::files::suite::is_peer;
use crate::record::Record;
use plotters::style::RGBColor;

const SIZE: (u32, u32) = (960, 420);

/// Returns the SVG text; `None` if the record has no table of files, or if neither kind of calls has two rows
/// with a block size in this direction.
pub(super) fn svg(record: &Record, direction: Direction) -> Result<Option<String>, String> {
    let Some(run) = report::read(record) else { return Ok(None) };
    let peers: Vec<&str> =
        run.libraries.iter().map(String::as_str).filter(|name| is_peer(name)).collect();
    let names = run.competitors();
    let panels: Vec<Panel> =
        Calls::ALL.iter().filter_map(|&calls| panel(&run, direction, calls, &names)).collect();
    if panels.is_empty() {
        return Ok(None);
    }
    let drawn = picture(SIZE, |root| {
        let title = format!(
            "{}: bandwidth of two ranks on one file against the size of a block",
            direction.name()
        );
        write(root, &title, (20, 20), Stand::Left, 18, INK)?;
        legend(root, &names, &peers)?;
        for (place, panel) in panels.iter().enumerate() {
            let colour = |name: &str| stroke(name, &peers);
            draw(root, panel, (70 + 470 * place as i32, 84), "bytes of a block", colour)?;
        }
        let text = format!("The best of interleaved turns. {}", origin(&record.machine));
        write(root, &text, (20, SIZE.1 as i32 - 12), Stand::Left, 12, INK)
    })?;
    Ok(Some(drawn))
}

/// Returns the colour and the width of the line of a competitor.
fn stroke(name: &str, peers: &[&str]) -> (RGBColor, u32) {
    let as_hand = match name {
        "loop-kept" => "hand",
        "loop-mapped" => "hand-c",
        name => name,
    };
    colour(as_hand, peers.iter().position(|peer| *peer == name))
}

fn legend(root: &Canvas<'_>, names: &[&str], peers: &[&str]) -> Drawn {
    let mut x = 20;
    for name in names {
        let (colour, width) = stroke(name, peers);
        line(root, (x, 44), (x + 22, 44), colour, width)?;
        write(root, name, (x + 27, 44), Stand::Left, 14, INK)?;
        x += 44 + 8 * name.len() as i32;
    }
    Ok(())
}

fn panel(run: &Run, direction: Direction, calls: Calls, names: &[&str]) -> Option<Panel> {
    let mut rows: Vec<_> = run
        .rows
        .iter()
        .filter(|row| row.class != "cold" && (row.direction, row.calls) == (direction, calls))
        .filter_map(|row| Some((row.block?, row)))
        .collect();
    rows.sort_by_key(|(block, _)| *block);
    if rows.len() < 2 {
        return None;
    }
    let speeds = |name: &str| -> Vec<f64> {
        let speed = |(_, row): &(u64, &crate::files::suite::Measured)| {
            let best = row.figure(name).and_then(|figure| figure.best());
            best.map_or(f64::NAN, |best| row.bytes as f64 / best.ns)
        };
        rows.iter().map(speed).collect()
    };
    let lines = names.iter().map(|name| ((*name).to_owned(), speeds(name)));
    Some(Panel {
        title: calls.name().to_owned(),
        sizes: rows.iter().map(|(block, _)| *block as f64).collect(),
        lines: lines.filter(|(_, speeds)| speeds.iter().any(|speed| speed.is_finite())).collect(),
    })
}
