//! The shapes of layouts, as a definitions file writes them.
//!
//! `check.rs` finds the faults of a shape; `../layout.rs` turns a shape and a size into a datatype and
//! hand-written loops.

use serde::Deserialize;
use typepack_engine::{Datatype, Named};

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
    /// Runs at irregular places.
    List(List),
    /// Any type, as an expression of the engine's text form.
    Text(TextShape),
}

/// A vector of equal blocks.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blocks {
    /// Bytes per block, a multiple of the element's.
    pub block: u64,
    /// Bytes from one block to the next, a multiple of the element's.
    pub stride: u64,
    /// The type of the elements of a block.
    #[serde(default)]
    pub element: Element,
}

/// The types of elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Element {
    /// 8 bytes.
    #[default]
    Double,
    /// 4 bytes.
    Float,
    /// 2 bytes.
    Short,
    /// 1 byte.
    Char,
    /// 16 bytes: two doubles.
    Complex,
}

impl Element {
    /// Returns the named type.
    pub fn named(self) -> Named {
        match self {
            Self::Double => Named::DOUBLE,
            Self::Float => Named::FLOAT,
            Self::Short => Named::SHORT,
            Self::Char => Named::CHAR,
            Self::Complex => Named::C_DOUBLE_COMPLEX,
        }
    }

    /// Returns the bytes of an element.
    pub fn bytes(self) -> u64 {
        u64::from(self.named().size())
    }
}

/// Runs of 1 to `longest` elements with gaps of 1 to `gap` elements between them. The size determines the
/// number of runs. The list is the same in every execution of the program.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// The type of the elements of a run.
    #[serde(default)]
    pub element: Element,
    /// The most elements of a run. A list of single elements becomes an `indexed_block`.
    pub longest: u64,
    /// The most elements between two runs.
    pub gap: u64,
    /// Is the list in random order? By default addresses ascend.
    #[serde(default)]
    pub permuted: bool,
    /// The number of arrays that the list selects from, one after the other.
    #[serde(default = "one")]
    pub arrays: u64,
}

fn one() -> u64 {
    1
}

/// A type in the engine's text form.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextShape {
    /// The expression; `{n}` stands for the size divided by `unit`.
    #[serde(rename = "type")]
    pub expression: String,
    /// Number of elements.
    #[serde(default)]
    pub count: Number,
    /// Packed bytes per `n`. Without `unit`, the layout has one size: that of the type.
    pub unit: Option<u64>,
    /// Lists of indices for the expression, in which `{name}` stands for the values of the list `name`,
    /// separated by commas.
    #[serde(default)]
    pub lists: Vec<IndexList>,
    /// The loops that a programmer would write, one nest after the other; empty if there are none.
    #[serde(default)]
    pub hand: Vec<Loops>,
}

/// Different indices in random order, the same ones in every run of the program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexList {
    /// The name of the list in the expression and in hand-written loops.
    pub name: String,
    /// The number of indices.
    pub count: u64,
    /// The upper limit of the indices; every index is less than this number.
    pub below: u64,
    /// The factor by which each index is multiplied.
    #[serde(default = "one")]
    pub times: u64,
}

/// A number, or the word `n` ([`TextShape`]).
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Number {
    /// The number.
    Fixed(u64),
    /// The word.
    Word(String),
}

impl Default for Number {
    fn default() -> Self {
        Self::Fixed(1)
    }
}

impl Number {
    /// Returns the value for `n`.
    pub fn at(&self, n: u64) -> u64 {
        match self {
            Self::Fixed(number) => *number,
            Self::Word(_) => n,
        }
    }
}

/// Loops over equal blocks, as a programmer would write them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loops {
    /// The bytes from the origin to the start of the first block.
    #[serde(default)]
    pub start: u64,
    /// The bytes that each `n` adds to `start`.
    #[serde(default)]
    pub start_per_n: u64,
    /// Bytes per block.
    pub block: u64,
    /// Up to three loops, outermost first: number of iterations, and bytes per iteration.
    #[serde(default)]
    pub loops: Vec<(Number, u64)>,
    /// Instead of loops: one block for each value of this list.
    pub list: Option<String>,
    /// The number of bytes that one unit of the list's values stands for.
    #[serde(default = "one")]
    pub unit: u64,
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

/// The structs that have a hand-written loop.
#[derive(Clone, Copy, Debug, Deserialize)]
pub enum Record {
    /// `struct { char c; int i; double d; }`: 13 bytes of data in 16.
    #[serde(rename = "char-int-double")]
    CharIntDouble,
    /// `struct { double x[3]; int kind; double v[3]; }`: 52 bytes of data in 56.
    #[serde(rename = "particle")]
    Particle,
}

impl TextShape {
    /// Returns the list `name`.
    pub fn list(&self, name: &str) -> Option<&IndexList> {
        self.lists.iter().find(|list| list.name == name)
    }

    /// Returns the type for `n`.
    ///
    /// # Errors
    ///
    /// Returns one line with the fault of the expression.
    pub fn datatype(&self, n: u64) -> Result<Datatype, String> {
        let mut text = self.expression.replace("{n}", &n.to_string());
        for list in &self.lists {
            let values: Vec<String> = list.values().iter().map(u64::to_string).collect();
            text = text.replace(&format!("{{{}}}", list.name), &values.join(", "));
        }
        text.parse().map_err(|e: typepack_engine::text::ParseError| {
            format!("column {}: {}", e.column(), e.message())
        })
    }
}
