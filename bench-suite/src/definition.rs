//! The definitions file: which layouts, at which sizes, and what they must reach.
//!
//! Read before everything else; `layout.rs` turns one [`LayoutDefinition`] and a size into
//! something to run, `bars.rs` compares results with [`Bar`]s. Everything that can be wrong in a
//! file is found here, so that later steps cannot fail on input.

use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The definitions that are built in.
pub const BUILT_IN: &str = include_str!("../definitions/pack.toml");

/// A whole definitions file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definitions {
    /// Packed bytes per call.
    pub sizes: Vec<u64>,
    /// The layouts.
    #[serde(rename = "layout")]
    pub layouts: Vec<LayoutDefinition>,
    /// What they must reach.
    #[serde(rename = "bar", default)]
    pub bars: Vec<Bar>,
}

/// One layout, for any size.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayoutDefinition {
    /// Short name, unique in the file.
    pub name: String,
    /// What it is, in words.
    pub text: String,
    /// What it looks like in memory.
    pub shape: ShapeDefinition,
}

/// The kinds of layouts.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShapeDefinition {
    /// A vector of equal blocks.
    Blocks(Blocks),
    /// The outermost layer of cells of a cube with a halo.
    Face(Face),
    /// An array of C structs.
    Record(Record),
}

/// A vector of blocks of doubles.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blocks {
    /// Bytes per block, a multiple of 8.
    pub block: u64,
    /// Bytes from one block to the next, a multiple of 8.
    pub stride: u64,
}

/// A face of a cube of doubles, `array[z][y][x]`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Face {
    /// Cells along each edge, without the halo.
    pub edge: u64,
    /// Cells of halo on each side, and thickness of the face.
    pub halo: u64,
    /// The axis that the face is perpendicular to.
    pub normal: Axis,
}

/// An axis of a cube; x varies fastest in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "axes have no other names")]
pub enum Axis {
    X,
    Y,
    Z,
}

/// The structs that there is a hand-written loop for.
#[derive(Clone, Copy, Debug, Deserialize)]
pub enum Record {
    /// `struct { char c; int i; double d; }`: 13 bytes of data in 16.
    #[serde(rename = "char-int-double")]
    CharIntDouble,
}

/// A ratio of bandwidths that the JIT must reach.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bar {
    /// What it says, in words.
    pub text: String,
    /// Names of the layouts it holds for.
    pub layouts: Vec<String>,
    /// Packed bytes it holds for.
    pub sizes: Vec<u64>,
    /// The competitor that the JIT is compared with.
    pub against: Against,
    /// The least ratio of bandwidths.
    pub least: f64,
}

/// Competitors that a [`Bar`] may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Against {
    /// The copy of as many bytes.
    Memcpy,
    /// The engine without compiled kernels.
    Interpreter,
    /// The hand-written loop.
    Hand,
}

impl Against {
    /// The competitor's name in rows and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memcpy => "memcpy",
            Self::Interpreter => "interpreter",
            Self::Hand => "hand",
        }
    }
}

/// What is wrong with a definitions file, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DefinitionError(String);

impl Definitions {
    /// Reads a definitions file's text.
    ///
    /// # Errors
    ///
    /// TOML that does not parse, unknown or missing fields, names used twice, bars for layouts
    /// that are not there, and numbers that make no layout.
    pub fn parse(text: &str) -> Result<Self, DefinitionError> {
        let definitions: Self = toml::from_str(text).map_err(|e| {
            let line = e.span().map_or(0, |span| text[..span.start].lines().count().max(1));
            DefinitionError(format!("line {line}: {}", e.message()))
        })?;
        let wrong = |text: String| Err(DefinitionError(text));
        let mut names = HashSet::new();
        for layout in &definitions.layouts {
            if !names.insert(layout.name.as_str()) {
                return wrong(format!("layout {} is defined twice", layout.name));
            }
            if let Err(reason) = layout.shape.check() {
                return wrong(format!("layout {}: {reason}", layout.name));
            }
        }
        if let Some(size) = definitions.sizes.iter().find(|&&s| s == 0 || s > MOST_BYTES) {
            return wrong(format!("size {size} is not between 1 and {MOST_BYTES} bytes"));
        }
        for bar in &definitions.bars {
            if let Some(name) = bar.layouts.iter().find(|name| !names.contains(name.as_str())) {
                return wrong(format!("bar \"{}\" names the unknown layout {name}", bar.text));
            }
        }
        Ok(definitions)
    }

    /// The built-in definitions.
    ///
    /// # Panics
    ///
    /// Never: a test parses them.
    pub fn built_in() -> Self {
        Self::parse(BUILT_IN).expect("the built-in definitions are valid")
    }
}

/// Largest packed size that may be asked for.
pub const MOST_BYTES: u64 = 1 << 30;

impl ShapeDefinition {
    fn check(&self) -> Result<(), String> {
        match self {
            Self::Blocks(Blocks { block, stride }) => {
                if *block == 0 || !block.is_multiple_of(8) || *block > MOST_BYTES {
                    return Err(format!("block = {block} is not a positive multiple of 8"));
                }
                if !stride.is_multiple_of(8) || stride < block || *stride > MOST_BYTES {
                    return Err(format!(
                        "stride = {stride} is not a multiple of 8 and at least the block"
                    ));
                }
            }
            Self::Face(Face { edge, halo, .. }) => {
                if !(1..=1024).contains(edge) {
                    return Err(format!("edge = {edge} is not between 1 and 1024"));
                }
                if *halo == 0 || halo > edge {
                    return Err(format!("halo = {halo} is not between 1 and the edge"));
                }
            }
            Self::Record(Record::CharIntDouble) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Definitions;

    #[test]
    fn the_built_in_definitions_are_nine_layouts() {
        let definitions = Definitions::built_in();
        assert_eq!(definitions.layouts.len(), 9);
        assert_eq!(definitions.sizes.first(), Some(&1024));
        assert_eq!(definitions.sizes.last(), Some(&(4 << 20)));
    }

    #[test]
    fn faults_are_one_line() {
        let error = |text: &str| Definitions::parse(text).expect_err(text).to_string();
        let layout = "[[layout]]\nname = \"a\"\ntext = \"\"\n";
        let with = |shape: &str| format!("sizes = [8]\n{layout}{shape}");
        assert_eq!(
            error(&with("shape.blocks = { block = 7, stride = 8 }")),
            "layout a: block = 7 is not a positive multiple of 8"
        );
        assert_eq!(
            error(&with("shape.blocks = { block = 16, stride = 8 }")),
            "layout a: stride = 8 is not a multiple of 8 and at least the block"
        );
        assert_eq!(
            error(&with("shape.face = { edge = 4, halo = 5, normal = \"x\" }")),
            "layout a: halo = 5 is not between 1 and the edge"
        );
        let once = with("shape.record = \"char-int-double\"\n");
        assert_eq!(
            error(&format!("{once}{layout}shape.record = \"char-int-double\"")),
            "layout a is defined twice"
        );
        assert!(error("sizes = 3").starts_with("line 1: "), "{}", error("sizes = 3"));
        assert!(!error(&with("shape.ring = 3")).contains('\n'));
        let bar =
            "[[bar]]\ntext = \"b\"\nlayouts = [\"c\"]\nsizes = []\nagainst = \"hand\"\nleast = 1.0";
        assert_eq!(error(&format!("{once}{bar}")), "bar \"b\" names the unknown layout c");
    }
}
