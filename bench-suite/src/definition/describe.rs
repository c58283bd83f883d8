//! Describes a shape in one line of plain words, such as `1 double of every 8`.
//!
//! The words come from the numbers of the shape, so that they cannot say something else than the layout does.
//! `../message/definition.rs` describes the blocks of messages with the same words, and `../plot/` writes them
//! beside the names of layouts.

use super::shape::{Axis, Blocks, Element, Face, List, Record, ShapeDefinition};

impl Element {
    /// Returns the largest of doubles, floats, shorts and bytes whose size divides `block` and `stride`, which are
    /// numbers of bytes.
    pub fn of(block: u64, stride: u64) -> Self {
        let fits = |element: &Self| {
            block.is_multiple_of(element.bytes()) && stride.is_multiple_of(element.bytes())
        };
        [Self::Double, Self::Float, Self::Short].into_iter().find(fits).unwrap_or(Self::Char)
    }

    /// Returns the words for `number` elements.
    fn words(self, number: u64) -> String {
        let name = match self {
            Self::Double => "double",
            Self::Float => "float",
            Self::Short => "short",
            Self::Char => "byte",
            Self::Complex if number == 1 => return "1 double complex".to_owned(),
            Self::Complex => return format!("{number} double complexes"),
        };
        format!("{number} {name}{}", if number == 1 { "" } else { "s" })
    }
}

impl Blocks {
    /// Describes the blocks in one line.
    pub fn describe(&self) -> String {
        let Self { block, stride, element } = *self;
        let unit = element.bytes();
        let elements = element.words(block / unit);
        if block == stride {
            return format!("blocks of {elements} without gaps");
        }
        let every = stride / unit;
        match element {
            Element::Char => format!("{elements} of every {every}"),
            _ => format!("{elements} of every {every} ({block}-byte blocks, stride {stride})"),
        }
    }
}

impl Face {
    fn describe(&self) -> String {
        let Self { edge, halo, normal } = *self;
        let row = edge * 8;
        let (axis, runs) = match normal {
            Axis::X => ("x", format!("{} of each row", Element::Double.words(halo))),
            Axis::Y if halo == 1 => ("y", format!("one row of {row} bytes of each plane")),
            Axis::Y => ("y", format!("{halo} rows of {row} bytes of each plane")),
            Axis::Z => ("z", format!("rows of {row} bytes, {} bytes apart", 16 * halo)),
        };
        format!("{axis} face of {edge}^3 doubles, halo {halo}: {runs}")
    }
}

impl Record {
    fn describe(self) -> &'static str {
        match self {
            Self::CharIntDouble => "struct {char, int, double}: 13 of 16 bytes",
            Self::Particle => "struct {double[3], int, double[3]}: 52 of 56 bytes",
        }
    }
}

impl List {
    fn describe(&self) -> String {
        let Self { element, longest, gap, permuted, arrays } = *self;
        let runs = match longest {
            1 => format!("single {}", element.words(0).trim_start_matches("0 ")),
            _ => format!("runs of 1 to {}", element.words(longest)),
        };
        let gaps = if gap == 1 { "gaps of 1".to_owned() } else { format!("gaps of 1 to {gap}") };
        let order = if permuted { ", in random order" } else { "" };
        let arrays =
            if arrays == 1 { String::new() } else { format!(", in each of {arrays} arrays") };
        format!("{runs}, {gaps}{order}{arrays}")
    }
}

impl ShapeDefinition {
    /// Describes the shape in one line. A type in text form is its own description.
    pub fn describe(&self) -> String {
        match self {
            Self::Blocks(blocks) => blocks.describe(),
            Self::Face(face) => face.describe(),
            Self::Record(record) => record.describe().to_owned(),
            Self::List(list) => list.describe(),
            Self::Text(text) => text.expression.clone(),
        }
    }
}

/// Returns one line for each of `layouts`, a name and its description. No name is longer than the column.
pub fn legend<'a>(layouts: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> String {
    let longest = layouts.clone().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    layouts.map(|(name, text)| format!("{name:<longest$}  {text}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::legend;
    use crate::definition::{Definitions, Element, ShapeDefinition};

    #[test]
    fn descriptions_say_what_the_shape_says() {
        let all = Definitions::reference();
        let text = |name: &str| {
            let found = all.layouts.iter().find(|layout| layout.name == name).expect(name);
            found.text.as_str()
        };
        assert_eq!(text("d1s8"), "1 double of every 8 (8-byte blocks, stride 64)");
        assert_eq!(text("h1s3"), "1 short of every 3 (2-byte blocks, stride 6)");
        assert_eq!(text("b1s2"), "1 byte of every 2");
        assert_eq!(text("z1s5"), "1 double complex of every 5 (16-byte blocks, stride 80)");
        assert_eq!(text("face-x32"), "x face of 32^3 doubles, halo 1: 1 double of each row");
        // A layout in text form keeps the words of the file.
        assert_eq!(text("contig"), "contiguous doubles");
        assert_eq!(Element::of(24, 56), Element::Double);
        assert_eq!([Element::of(4, 12), Element::of(2, 6)], [Element::Float, Element::Short]);
    }

    /// A name such as `d3s7` says the same as the description: 3 doubles of every 7.
    #[test]
    fn names_agree_with_shapes() {
        let mut checked = 0;
        for all in [Definitions::built_in(), Definitions::reference(), Definitions::isa()] {
            for layout in &all.layouts {
                let ShapeDefinition::Blocks(blocks) = &layout.shape else { continue };
                let letter = match blocks.element {
                    Element::Double => 'd',
                    Element::Float => 'f',
                    Element::Short => 'h',
                    Element::Char => 'b',
                    Element::Complex => 'z',
                };
                let unit = blocks.element.bytes();
                let name = format!("{letter}{}s{}", blocks.block / unit, blocks.stride / unit);
                assert!(layout.name.starts_with(&name), "{} is {name}", layout.name);
                assert_eq!(layout.text, blocks.describe());
                checked += 1;
            }
        }
        assert!(checked > 20, "{checked}");
    }

    #[test]
    fn a_legend_is_a_column_of_names() {
        let lines = legend([("a", "one"), ("long", "two")].into_iter());
        assert_eq!(lines, "a     one\nlong  two\n");
    }
}
