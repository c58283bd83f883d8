//! Draws a type as text for a terminal, with or without colours.
//!
//! `picture.rs` chooses the content. Without colours, basic types differ by shade, and the numbers of
//! the basic elements (in packed order) stand below the cells. With colours (ANSI, 256 colours), the
//! numbers stand in the cells.

use crate::picture::{Cover, Line, NUMBERS, Picture, Slot};
use memchr::memchr;
use std::fmt::Write;
use typepack_engine::Datatype;

const SHADES: [char; 5] = ['█', '▓', '▒', '■', '◆'];
/// The marks of the ranks in the drawing of a file. There are not enough shades for them.
const RANKS: &[u8; 52] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Background colours of basic types.
const COLOURS: [u8; 8] = [117, 215, 114, 182, 210, 116, 221, 181];
const GAP: char = '·';
const OVERLAP: char = '▞';
const END: char = '┊';

/// What a character of the drawing shows. This determines the character's colour.
#[derive(Clone, Copy, PartialEq)]
enum Ink {
    Plain,
    Faint,
    Type(usize),
    Overlap(usize),
}

/// Draws `count` elements of `ty` with characters. If `colour` is true, uses ANSI colours.
///
/// Rows of memory are wrapped at a stride of the type. Each row begins with the displacement of its
/// first byte. Long rows and large types are abridged.
pub fn drawing(ty: &Datatype, count: u64, colour: bool) -> String {
    match Picture::new(ty, count) {
        Some(picture) => drawn(&picture, colour),
        None => "no data\n".to_owned(),
    }
}

/// Returns the character that stands for the colour with number `index` in a drawing without colours.
fn glyph(picture: &Picture, index: usize) -> char {
    match picture.ranks() {
        Some(_) => char::from(RANKS[index % RANKS.len()]),
        None => SHADES[index % SHADES.len()],
    }
}

/// Draws a picture with characters.
pub(crate) fn drawn(picture: &Picture, colour: bool) -> String {
    let numbered = picture.numbered && picture.width() <= NUMBERS;
    let width = if numbered { picture.digits() as usize } else { 1 };
    let label = labels(picture);
    let mut out = String::new();
    for line in &picture.lines {
        match line {
            Line::Plane => out.push('\n'),
            Line::Skipped(rows) => {
                let plural = if *rows == 1 { "row" } else { "rows" };
                let _ = writeln!(out, "{:>label$}  {rows} more {plural}", "⋮");
            }
            Line::Row(start) => {
                let (cells, numbers) = row(picture, *start, width, numbered, colour);
                let _ = write!(out, "{start:>label$}  ");
                ink(&cells, colour, &mut out);
                if numbered && !colour && numbers.iter().any(|c| *c != ' ') {
                    let numbers: String = numbers.iter().collect();
                    let _ = writeln!(out, "{:label$}  {}", "", numbers.trim_end());
                }
            }
        }
    }
    legend(picture, numbered, colour, &mut out);
    out
}

fn labels(picture: &Picture) -> usize {
    let starts = picture.lines.iter().map(|line| match line {
        Line::Row(start) => start.to_string().len(),
        _ => 1,
    });
    starts.max().unwrap_or(1).max(4)
}

/// Draws one row. Returns the characters of the cells, and the characters of the line of numbers
/// below.
fn row(
    picture: &Picture,
    start: i128,
    width: usize,
    numbered: bool,
    colour: bool,
) -> (Vec<(char, Ink)>, Vec<char>) {
    let (mut cells, mut numbers) = (Vec::new(), Vec::new());
    let mut slot = 0;
    while slot < picture.slots.len() {
        match picture.slots[slot] {
            Slot::Skip(at) => {
                let glyph = if picture.within(start, at) { '⋯' } else { ' ' };
                cells.extend([' ', glyph, ' '].map(|c| (c, Ink::Faint)));
                slot += 1;
            }
            Slot::Mark(at) => {
                let mark = if picture.ends(start, at) { END } else { ' ' };
                cells.push((mark, Ink::Plain));
                slot += 1;
            }
            Slot::Cell(at) => {
                let covers = picture.covers(start, at);
                let mut length = 1;
                // Adjacent cells that belong to one basic element, or to one overlap, are drawn as one
                // figure.
                while let Some(Slot::Cell(next)) = picture.slots.get(slot + length)
                    && !covers.is_empty()
                    && picture.covers(start, *next) == covers
                {
                    length += 1;
                }
                let from = cells.len();
                if picture.within(start, at) {
                    figure(picture, &covers, length * width, width, colour, &mut cells);
                } else {
                    cells.extend(std::iter::repeat_n((' ', Ink::Plain), length * width));
                }
                if numbered && let Some(text) = number(picture, &covers, start + at, length * width)
                {
                    let text: Vec<char> = text.chars().collect();
                    if colour {
                        for (cell, c) in cells[from..].iter_mut().zip(&text) {
                            cell.0 = *c;
                        }
                    } else {
                        numbers.resize(from.max(numbers.len()), ' ');
                        numbers.truncate(from);
                        numbers.extend(text);
                    }
                }
                slot += length;
            }
        }
    }
    (cells, numbers)
}

/// Returns the numbers (in packed order) of the basic elements that begin at byte `at`, separated by
/// commas. If `room` characters have no room for this text and a space, returns only the first number,
/// with a `+` if there are others. Returns `None` if no basic element begins at `at`.
fn number(picture: &Picture, covers: &[Cover], at: i128, room: usize) -> Option<String> {
    let mut starting = covers.iter().filter(|cover| cover.at == at);
    let first = picture.number(starting.next()?.order).to_string();
    let text =
        starting.fold(first, |text, cover| format!("{text},{}", picture.number(cover.order)));
    if text.len() < room.max(2) {
        return Some(text);
    }
    Some(match memchr(b',', text.as_bytes()) {
        Some(comma) => format!("{}+", &text[..comma]),
        None => text,
    })
}

fn figure(
    picture: &Picture,
    covers: &[Cover],
    length: usize,
    width: usize,
    colour: bool,
    cells: &mut Vec<(char, Ink)>,
) {
    let Some(first) = covers.first() else {
        // A gap shows one dot per cell, even if a cell is several characters wide.
        for i in 0..length {
            cells.push((if i % width == 0 { GAP } else { ' ' }, Ink::Faint));
        }
        return;
    };
    let index = picture.colour(first);
    let (glyph, ink) = match covers.len() {
        1 if colour => (' ', Ink::Type(index)),
        1 => (glyph(picture, index), Ink::Type(index)),
        _ => (OVERLAP, Ink::Overlap(index)),
    };
    // If cells are wider than one character, a figure ends with a space, which separates it from
    // its neighbour.
    let space = usize::from(width > 1);
    cells.extend(std::iter::repeat_n((glyph, ink), length - space));
    cells.extend(std::iter::repeat_n((' ', Ink::Plain), space));
}

/// Appends one line of cells, with the colours if `colour` is set.
fn ink(cells: &[(char, Ink)], colour: bool, out: &mut String) {
    let end = cells.iter().rposition(|(c, ink)| *c != ' ' || matches!(ink, Ink::Type(_)));
    let cells = &cells[..end.map_or(0, |end| end + 1)];
    for group in cells.chunk_by(|a, b| a.1 == b.1) {
        let ink = group[0].1;
        if colour {
            let _ = match ink {
                Ink::Plain => Ok(()),
                Ink::Faint => write!(out, "\x1b[38;5;250m"),
                Ink::Type(index) => {
                    write!(out, "\x1b[38;5;16;48;5;{}m", COLOURS[index % COLOURS.len()])
                }
                Ink::Overlap(index) => {
                    write!(out, "\x1b[38;5;160;48;5;{}m", COLOURS[index % COLOURS.len()])
                }
            };
        }
        out.extend(group.iter().map(|(c, _)| c));
        if colour && ink != Ink::Plain {
            out.push_str("\x1b[0m");
        }
    }
    out.push('\n');
}

fn legend(picture: &Picture, numbered: bool, colour: bool, out: &mut String) {
    let mut line: Vec<(char, Ink)> = Vec::new();
    let mut entry = |glyph: char, ink: Ink, text: &str| {
        if !line.is_empty() {
            line.extend([(' ', Ink::Plain); 3]);
        }
        line.push((glyph, ink));
        line.push((' ', Ink::Plain));
        line.extend(text.chars().map(|c| (c, Ink::Plain)));
    };
    let (names, end, numbers) = picture.legend();
    for (index, name) in names.iter().enumerate() {
        let glyph = if colour { ' ' } else { glyph(picture, index) };
        entry(glyph, Ink::Type(index), name);
    }
    if picture.gaps {
        entry(GAP, Ink::Faint, "gap");
    }
    if picture.overlaps {
        entry(OVERLAP, Ink::Overlap(0), "overlap");
    }
    entry(END, Ink::Plain, end);
    let mut text = format!("one cell = {} B", picture.cell);
    if picture.lines.len() > 1 {
        let _ = write!(text, ", one row = {} B", picture.pitch());
    }
    if numbered {
        let _ = write!(text, ", {numbers}");
    }
    if !picture.complete {
        text.push_str(", drawn in part");
    }
    ink(&line, colour, out);
    out.push_str(&text);
    out.push('\n');
}
