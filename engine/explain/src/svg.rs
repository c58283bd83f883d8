//! Draws a type as an SVG document. The document is built as a string, without a library.
//!
//! `picture.rs` chooses the content, as it does for `terminal.rs`. All lengths are in pixels.

use crate::picture::{Cover, Line, Picture, Slot};
use std::fmt::Write;
use typepack_engine::{Datatype, text};

/// Fill colours of basic types, light enough for dark numbers.
const COLOURS: [&str; 8] =
    ["#9ecae9", "#ffbf79", "#a6dba0", "#d6b5d8", "#ff9d98", "#8fd0c6", "#f2cf5b", "#d8b5a5"];
const HOLE: &str = "#ececec";
const INK: &str = "#333";
const FAINT: &str = "#888";
const END: &str = "#c0392b";

const ROW: f64 = 24.0;
const BETWEEN: f64 = 5.0;
const MARGIN: f64 = 16.0;
/// Preferred maximum total width of the cells of a row.
const WIDEST: f64 = 900.0;
/// Width of a digit of a basic element's number (`DIGIT`), and of a character of the small text (`SMALL`).
const DIGIT: f64 = 7.0;
const SMALL: f64 = 6.7;
const SKIP: f64 = 22.0;

/// Draws `count` elements of `ty` as an SVG document.
///
/// Rows of memory go from left to right and from top to bottom, wrapped at a stride of the type.
/// Colours mark basic types, grey marks a hole, hatching marks an overlap, numbers show the packed
/// order, and a dashed line marks the end of an extent. Long rows and large types are abridged.
pub fn svg(ty: &Datatype, count: u64) -> String {
    let mut title = shortened(text::abridge(ty));
    if count != 1 {
        let _ = write!(title, "   × {count}");
    }
    document(&title, Picture::new(ty, count).as_ref())
}

/// Cuts a text of more than 110 characters, so that it fits as a title.
pub(crate) fn shortened(text: String) -> String {
    if text.chars().count() > 110 { text.chars().take(109).chain(['…']).collect() } else { text }
}

/// Returns the SVG document of a picture. Without a picture, the document says `no data`.
pub(crate) fn document(title: &str, picture: Option<&Picture>) -> String {
    let mut canvas = Canvas { body: String::new(), y: MARGIN + 14.0, width: 0.0 };
    canvas.text(MARGIN, canvas.y, title, "class=\"t\"");
    canvas.width = MARGIN + title.chars().count() as f64 * 7.3;
    canvas.y += 16.0;
    match picture {
        None => {
            canvas.y += 12.0;
            canvas.text(MARGIN, canvas.y, "no data", "class=\"s\"");
            canvas.y += 8.0;
        }
        Some(picture) => draw(picture, &mut canvas),
    }
    let (width, height) = ((canvas.width + MARGIN).max(360.0).ceil(), canvas.y + MARGIN);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">\n\
         <style>text{{font-family:'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:{INK}}}\
         .t{{font-size:12px;font-weight:bold}}.s{{font-size:11px;fill:{FAINT}}}\
         .n{{font-size:11px;text-anchor:middle;paint-order:stroke;stroke:#fff;\
         stroke-opacity:0.6;stroke-width:2px}}.l{{font-size:11px}}</style>\n\
         <defs><pattern id=\"h\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(45)\"><rect width=\"2\" height=\"6\" fill=\"{END}\" \
         fill-opacity=\"0.4\"/></pattern></defs>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"6\" fill=\"#fff\"/>\n{}</svg>\n",
        canvas.body
    )
}

struct Canvas {
    body: String,
    y: f64,
    width: f64,
}

impl Canvas {
    fn text(&mut self, x: f64, y: f64, text: &str, attributes: &str) {
        let mut escaped = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '&' => escaped.push_str("&amp;"),
                '<' => escaped.push_str("&lt;"),
                '>' => escaped.push_str("&gt;"),
                _ => escaped.push(c),
            }
        }
        let _ =
            writeln!(self.body, "<text x=\"{x:.1}\" y=\"{y:.1}\" {attributes}>{escaped}</text>");
    }

    fn rect(&mut self, x: f64, width: f64, fill: &str, radius: f64) {
        let y = self.y;
        let _ = writeln!(
            self.body,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{ROW}\" rx=\"{radius}\" \
             fill=\"{fill}\"/>"
        );
    }

    fn end(&mut self, x: f64) {
        let (top, bottom) = (self.y - BETWEEN / 2.0, self.y + ROW + BETWEEN / 2.0);
        let _ = writeln!(
            self.body,
            "<line x1=\"{x:.1}\" y1=\"{top:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"{END}\" \
             stroke-width=\"2\" stroke-dasharray=\"4 3\"/>"
        );
    }
}

fn draw(picture: &Picture, canvas: &mut Canvas) {
    let cells = picture.slots.iter().filter(|slot| matches!(slot, Slot::Cell(_))).count() as f64;
    let digits = picture.largest_number().to_string().len() as f64;
    let wanted = (digits * DIGIT + 8.0) / picture.narrowest() as f64;
    let numbered = picture.numbered && wanted * cells <= WIDEST;
    let least = if numbered { wanted } else { 5.0 };
    let narrow = 26.0 / picture.narrowest() as f64;
    let cell = (WIDEST / cells).min(narrow.max(least)).max(least.min(WIDEST / cells));
    let labels = picture.lines.iter().map(|line| match line {
        Line::Row(start) => start.to_string().len(),
        _ => 0,
    });
    let left = MARGIN + labels.max().unwrap_or(0) as f64 * SMALL + 10.0;
    for line in &picture.lines {
        match line {
            Line::Plane => canvas.y += 8.0,
            Line::Skipped(rows) => {
                let plural = if *rows == 1 { "row" } else { "rows" };
                let y = canvas.y + 13.0;
                canvas.text(left, y, &format!("⋮ {rows} more {plural}"), "class=\"s\"");
                canvas.y += 22.0;
            }
            Line::Row(start) => {
                let y = canvas.y + 16.0;
                let label = "class=\"s\" text-anchor=\"end\"";
                canvas.text(left - 8.0, y, &start.to_string(), label);
                row(picture, *start, left, cell, numbered, canvas);
                canvas.y += ROW + BETWEEN;
            }
        }
    }
    canvas.y += 8.0;
    legend(picture, numbered, canvas);
}

fn row(picture: &Picture, start: i128, left: f64, cell: f64, numbered: bool, canvas: &mut Canvas) {
    let (mut x, mut slot) = (left, 0);
    let mut ends = Vec::new();
    while slot < picture.slots.len() {
        match picture.slots[slot] {
            Slot::Skip(at) => {
                if picture.within(start, at) {
                    let y = canvas.y + 16.0;
                    canvas.text(x + SKIP / 2.0, y, "⋯", "class=\"n\"");
                }
                x += SKIP;
                slot += 1;
            }
            Slot::Mark(at) => {
                if picture.ends(start, at) {
                    ends.push(x);
                }
                slot += 1;
            }
            Slot::Cell(at) => {
                let (covers, within) = (picture.covers(start, at), picture.within(start, at));
                let mut length = 1;
                while let Some(Slot::Cell(next)) = picture.slots.get(slot + length)
                    && picture.within(start, *next) == within
                    && picture.covers(start, *next) == covers
                {
                    length += 1;
                }
                let width = length as f64 * cell;
                if within {
                    figure(picture, &covers, x, width, canvas);
                }
                if numbered && let Some(text) = number(picture, &covers, start + at, width) {
                    canvas.text(x + width / 2.0, canvas.y + 16.0, &text, "class=\"n\"");
                }
                x += width;
                slot += length;
            }
        }
    }
    for x in ends {
        canvas.end(x);
    }
    canvas.width = canvas.width.max(x);
}

fn figure(picture: &Picture, covers: &[Cover], x: f64, width: f64, canvas: &mut Canvas) {
    let Some(first) = covers.first() else {
        canvas.rect(x, width, HOLE, 0.0);
        return;
    };
    // Make the figure 1 pixel narrower than its cells, so that a thin white line separates
    // neighbours.
    let (x, width) = (x + 0.5, width - 1.0);
    let fill = COLOURS[picture.colour(first) % COLOURS.len()];
    canvas.rect(x, width, fill, 2.0);
    if covers.len() > 1 {
        canvas.rect(x, width, "url(#h)", 2.0);
    }
}

fn number(picture: &Picture, covers: &[Cover], at: i128, width: f64) -> Option<String> {
    let mut starting = covers.iter().filter(|cover| cover.at == at);
    let first = picture.number(starting.next()?.order).to_string();
    let text = starting
        .fold(first.clone(), |text, cover| format!("{text},{}", picture.number(cover.order)));
    if text.len() as f64 * DIGIT <= width {
        return Some(text);
    }
    Some(if first.len() == text.len() { first } else { format!("{first}+") })
}

fn legend(picture: &Picture, numbered: bool, canvas: &mut Canvas) {
    let mut x = MARGIN;
    let top = canvas.y;
    let mut entry = |canvas: &mut Canvas, fill: &[&str], text: &str| {
        for fill in fill {
            let _ = writeln!(
                canvas.body,
                "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"14\" height=\"14\" rx=\"2\" \
                 fill=\"{fill}\"/>"
            );
        }
        canvas.text(x + 20.0, top + 11.0, text, "class=\"l\"");
        x += 20.0 + text.chars().count() as f64 * SMALL + 18.0;
    };
    let (names, end, numbers) = picture.legend();
    for (index, name) in names.iter().enumerate() {
        entry(canvas, &[COLOURS[index % COLOURS.len()]], name);
    }
    if picture.gaps {
        entry(canvas, &[HOLE], "hole");
    }
    if picture.overlaps {
        entry(canvas, &[COLOURS[0], "url(#h)"], "overlap");
    }
    entry(canvas, &[], end);
    let dash = x - 18.0 - end.len() as f64 * SMALL - 12.0;
    let _ = writeln!(
        canvas.body,
        "<line x1=\"{dash:.1}\" y1=\"{top:.1}\" x2=\"{dash:.1}\" y2=\"{:.1}\" stroke=\"{END}\" \
         stroke-width=\"2\" stroke-dasharray=\"4 3\"/>",
        top + 14.0
    );
    canvas.width = canvas.width.max(x - 18.0);
    let mut text = format!("cell {} B", picture.cell);
    if picture.lines.len() > 1 {
        let _ = write!(text, ", row {} B", picture.pitch());
    }
    if numbered {
        let _ = write!(text, ", {numbers}");
    }
    if !picture.complete {
        text.push_str(", drawn in part");
    }
    canvas.y = top + 30.0;
    canvas.text(MARGIN, canvas.y, &text, "class=\"s\"");
    canvas.width = canvas.width.max(MARGIN + text.chars().count() as f64 * SMALL);
}
