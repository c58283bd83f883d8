//! Draws the parts that all pictures have: a logarithmic axis, colours, and texts.
//!
//! The other files of this folder use this file. They compute the position of everything in pixels,
//! because the layout that a chart library chooses does not suit pictures of two or four panels with texts
//! between them.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The area of a whole picture, on which the functions of this folder draw.
pub(super) type Canvas<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
/// The result of a function that draws.
pub(super) type Drawn = Result<(), Box<dyn std::error::Error>>;

pub(super) const INK: RGBColor = RGBColor(45, 45, 45);
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
        ("hand", _) => (RGBColor(230, 140, 30), 2),
        ("hand-c", _) => (RGBColor(190, 160, 20), 2),
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

    /// Returns all powers of `base` that lie on the axis.
    pub(super) fn powers(&self, base: f64) -> Vec<f64> {
        let [low, high] = self.values;
        let first = (low.ln() / base.ln() - 1e-9).ceil() as i32;
        let last = (high.ln() / base.ln() + 1e-9).floor() as i32;
        (first..=last).map(|power| base.powi(power)).collect()
    }
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

/// Returns the geometric mean of `values`, which must not be empty.
pub(super) fn mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}

/// Returns the text at the bottom of a picture. It states the CPU, the date and the commit of the record.
pub(super) fn origin(machine: &[String]) -> String {
    let fact = |name: &str| machine.iter().find_map(|line| line.strip_prefix(name));
    let parts = [fact("cpu: "), fact("date: "), fact("commit: ")];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::Log;

    #[test]
    fn an_axis_has_its_ends() {
        let axis = Log { values: [0.5, 32.0], pixels: [100, 700] };
        assert_eq!([0.5, 1.0, 32.0, 64.0, 0.1].map(|v| axis.at(v)), [100, 200, 700, 700, 100]);
        assert_eq!(axis.powers(2.0), [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0]);
    }
}
