//! Draws the parts that all pictures have: a logarithmic axis, colours, and texts.
//!
//! The other files of this folder use this file. They compute the position of everything in pixels,
//! because the layout that a chart library chooses does not suit pictures of two or four panels with texts
//! between them.

use crate::load::refusal;
use crate::message::report::BEHIND;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The area of a whole picture, on which the functions of this folder draw.
pub(super) type Canvas<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
/// The result of a function that draws.
pub(super) type Drawn = Result<(), Box<dyn std::error::Error>>;

pub(super) const INK: RGBColor = RGBColor(45, 45, 45);
pub(super) const PALE: RGBColor = RGBColor(105, 105, 105);
pub(super) const FAINT: RGBColor = RGBColor(215, 215, 215);
pub(super) const WIN: RGBColor = RGBColor(38, 120, 178);
pub(super) const LOSS: RGBColor = RGBColor(205, 50, 35);

/// Returns the colour and the width of the line of the competitor `name`. If the competitor is a peer,
/// `peer` is its number.
pub(super) fn colour(name: &str, peer: Option<usize>) -> (RGBColor, u32) {
    const PEERS: [RGBColor; 4] = [
        RGBColor(148, 83, 165),
        RGBColor(35, 150, 100),
        RGBColor(200, 90, 130),
        RGBColor(120, 100, 60),
    ];
    match (name, peer) {
        (_, Some(peer)) => (PEERS[peer % PEERS.len()], 2),
        ("typepack", _) => (WIN, 3),
        ("hand" | "loop-kept", _) => (RGBColor(230, 140, 30), 2),
        ("hand-c" | "loop-mapped", _) => (RGBColor(190, 160, 20), 2),
        ("impi-rt+typepack", _) => (RGBColor(20, 60, 140), 3),
        (name, _) if name.ends_with(BEHIND) || name.starts_with("typepack") => (WIN, 3),
        _ => (RGBColor(150, 150, 150), 1),
    }
}

/// A logarithmic axis from `values[0]` at the pixel `pixels[0]` to `values[1]` at the pixel `pixels[1]`.
#[derive(Clone, Copy)]
pub(super) struct Log {
    pub(super) values: [f64; 2],
    pub(super) pixels: [i32; 2],
}

impl Log {
    /// Returns the pixel of `value`. If the value is beyond an end of the axis, returns the pixel of this
    /// end.
    pub(super) fn at(&self, value: f64) -> i32 {
        let [low, high] = self.values;
        let share = (value.clamp(low, high) / low).ln() / (high / low).ln();
        let [from, to] = self.pixels;
        from + (share * f64::from(to - from)).round() as i32
    }

    /// Returns the nearest round numbers (1, 2 or 5 times a power of ten) at or below `low` and at or above `high`, which
    /// are positive. The two numbers differ.
    pub(super) fn round(low: f64, high: f64) -> [f64; 2] {
        let all = || (-12..=12).flat_map(|power| [1.0, 2.0, 5.0].map(|one| tens(one, power)));
        let below = all().take_while(|tick| *tick <= low).last().unwrap_or(low);
        let above =
            all().find(|tick| *tick >= high && *tick > below).unwrap_or(high.max(2.0 * low));
        [below, above]
    }

    /// Returns the round numbers on the axis with their texts: 1, 2 and 5 times the powers of ten, or only these powers
    /// if the texts of the others would touch.
    pub(super) fn round_ticks(&self) -> Vec<(f64, String)> {
        let [low, high] = self.values;
        let [from, to] = self.pixels.map(f64::from);
        let decade = (to - from).abs() / (high / low).log10();
        // From 1 to 2 is 0.3 of a decade, and a text is 13 pixels high.
        let ones: &[f64] = if decade * 0.3 >= 14.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let all = (-12..=12).flat_map(|power| ones.iter().map(move |one| tens(*one, power)));
        let on = all.filter(|tick| (low * 0.999..=high * 1.001).contains(tick));
        on.map(|tick| (tick, format!("{tick}"))).collect()
    }

    /// Returns all powers of `base` that lie on the axis.
    pub(super) fn powers(&self, base: f64) -> Vec<f64> {
        let [low, high] = self.values;
        let first = (low.ln() / base.ln() - 1e-9).ceil() as i32;
        let last = (high.ln() / base.ln() + 1e-9).floor() as i32;
        (first..=last).map(|power| base.powi(power)).collect()
    }
}

/// Returns `one` times ten to the power `power`. A division by a power of ten gives the double that is nearest to the
/// decimal number, so that its text is short.
fn tens(one: f64, power: i32) -> f64 {
    if power < 0 { one / 10f64.powi(-power) } else { one * 10f64.powi(power) }
}

/// Returns the approximate width of `text` in pixels if it is written at the size `size`.
pub(super) fn width(text: &str, size: u32) -> i32 {
    (text.chars().count() as f64 * f64::from(size) * 0.52).ceil() as i32
}

/// Returns `text`, or its beginning and an ellipsis if `text` is wider than `most` pixels.
pub(super) fn cut(text: &str, most: i32, size: u32) -> String {
    let mut shown = text.to_owned();
    while width(&shown, size) > most {
        let mut letters: Vec<char> = shown.trim_end_matches('…').chars().collect();
        letters.pop();
        shown = letters.into_iter().chain(['…']).collect();
    }
    shown
}

/// Returns those of `texts` that do not touch one another, from left to right. Each text is written around the given
/// position. The last one always stays, because it states the end of the axis.
pub(super) fn fitting(texts: &[(i32, String)], size: u32) -> Vec<&(i32, String)> {
    let half = |text: &str| width(text, size) / 2 + 4;
    let apart = |one: &(i32, String), other: &(i32, String)| {
        one.0 + half(&one.1) <= other.0 - half(&other.1)
    };
    let Some(last) = texts.last() else { return Vec::new() };
    let mut kept: Vec<&(i32, String)> = Vec::new();
    for text in &texts[..texts.len() - 1] {
        if kept.last().is_none_or(|before| apart(before, text)) && apart(text, last) {
            kept.push(text);
        }
    }
    kept.push(last);
    kept
}

/// The alignment of a text: whether its left end, its middle or its right end is at the given position.
#[derive(Clone, Copy)]
pub(super) enum Stand {
    Left,
    Middle,
    Right,
}

/// Writes `text` horizontally. `y` is the vertical position of the middle of the text.
pub(super) fn write(
    on: &Canvas<'_>,
    text: &str,
    (x, y): (i32, i32),
    stand: Stand,
    size: u32,
    colour: RGBColor,
) -> Drawn {
    let side = match stand {
        Stand::Left => HPos::Left,
        Stand::Middle => HPos::Center,
        Stand::Right => HPos::Right,
    };
    let style = ("sans-serif", size).into_font().color(&colour).pos(Pos::new(side, VPos::Center));
    on.draw(&Text::new(text.to_owned(), (x, y), style))?;
    Ok(())
}

/// Writes `text` vertically, from bottom to top. `place` is the position of the middle of the text.
pub(super) fn write_up(on: &Canvas<'_>, text: &str, place: (i32, i32), size: u32) -> Drawn {
    let font = ("sans-serif", size).into_font().transform(FontTransform::Rotate270);
    let style = font.color(&INK).pos(Pos::new(HPos::Center, VPos::Center));
    on.draw(&Text::new(text.to_owned(), place, style))?;
    Ok(())
}

/// Draws a straight line.
pub(super) fn line(
    on: &Canvas<'_>,
    from: (i32, i32),
    to: (i32, i32),
    colour: RGBColor,
    width: u32,
) -> Drawn {
    on.draw(&PathElement::new(vec![from, to], colour.stroke_width(width)))?;
    Ok(())
}

/// Makes an empty white picture of `size` pixels and passes it to `draw`. Returns the SVG text of the
/// result.
pub(super) fn picture(
    size: (u32, u32),
    draw: impl FnOnce(&Canvas<'_>) -> Drawn,
) -> Result<String, String> {
    let mut text = String::new();
    let made = || -> Drawn {
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        root.fill(&WHITE)?;
        draw(&root)?;
        root.present()?;
        Ok(())
    };
    made().map_err(|e| e.to_string())?;
    Ok(text)
}

/// Returns the text at the bottom of a picture. It states the CPU, the date and the commit of the record, and whether
/// other programs made the run `part` unusable.
pub(super) fn origin(machine: &[String], part: &str) -> String {
    let fact = |name: &str| machine.iter().find_map(|line| line.strip_prefix(name));
    let parts = [fact("cpu: "), fact("date: "), fact("commit: ")];
    parts.into_iter().flatten().chain(refusal(machine, part)).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::{Log, cut, fitting, origin};

    #[test]
    fn bandwidths_have_round_ticks() {
        assert_eq!(Log::round(3.0, 47.0), [2.0, 50.0]);
        assert_eq!(Log::round(2.0, 2.0), [2.0, 5.0]);
        let texts = |values, pixels| -> Vec<String> {
            let ticks = Log { values, pixels }.round_ticks();
            ticks.into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(texts([0.2, 50.0], [260, 0]), ["0.2", "0.5", "1", "2", "5", "10", "20", "50"]);
        // Seven decades leave no room for 2 and 5.
        assert_eq!(texts([0.0001, 10.0], [100, 0]), ["0.0001", "0.001", "0.01", "0.1", "1", "10"]);
    }

    #[test]
    fn texts_that_touch_are_left_out() {
        let texts = [(0, "1 KiB"), (10, "2 KiB"), (60, "4 KiB"), (90, "8 KiB")];
        let texts = texts.map(|(place, text)| (place, text.to_owned()));
        let kept: Vec<i32> = fitting(&texts, 12).iter().map(|(place, _)| *place).collect();
        assert_eq!(kept, [0, 90]);
        assert!(fitting(&[], 12).is_empty());
        assert_eq!(
            (cut("short", 100, 10).as_str(), cut("much longer", 30, 10).as_str()),
            ("short", "much…")
        );
    }

    #[test]
    fn the_origin_says_if_a_run_is_not_usable() {
        let line = "load of other programs, io: not usable: load 12 (...)".to_owned();
        let machine = ["cpu: some".to_owned(), line];
        assert_eq!(origin(&machine, "io"), "some; not usable: load 12 (...)");
        assert_eq!(origin(&machine, "peers"), "some");
    }

    #[test]
    fn an_axis_has_its_ends() {
        let axis = Log { values: [0.5, 32.0], pixels: [100, 700] };
        assert_eq!([0.5, 1.0, 32.0, 64.0, 0.1].map(|v| axis.at(v)), [100, 200, 700, 700, 100]);
        assert_eq!(axis.powers(2.0), [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0]);
    }
}
