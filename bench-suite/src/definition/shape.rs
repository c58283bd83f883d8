//! The shapes of layouts, in the form in which a definitions file states them.
//!
//! `check.rs` finds the faults of a shape. `../layout.rs` turns a shape and a size into a datatype and
//! hand-written loops.

use serde::Deserialize;
use typepack_engine::{Datatype, Named};

/// The shape of a layout.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShapeDefinition {
    /// A vector: blocks of equal length at a constant stride.
    Blocks(Blocks),
    /// A face of a cube with a halo: the layer of cells that a program sends to a neighbour.
    Face(Face),
    /// An array of C structs.
    Record(Record),
    /// A list of runs at irregular places.
    List(List),
    /// Any type, written as an expression in the engine's text form.
    Text(TextShape),
}

/// A vector: blocks of equal length at a constant stride. The size determines the number of blocks.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blocks {
    /// Bytes per block. A multiple of the size of an element.
    pub block: u64,
    /// Bytes from the start of one block to the start of the next. A multiple of the size of an element.
    pub stride: u64,
    /// The type of the elements of a block.
    #[serde(default)]
    pub element: Element,
}

/// The predefined type of the elements of a block or run.
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
    /// Returns the MPI type of this element.
    pub fn named(self) -> Named {
        match self {
            Self::Double => Named::DOUBLE,
            Self::Float => Named::FLOAT,
            Self::Short => Named::SHORT,
            Self::Char => Named::CHAR,
            Self::Complex => Named::C_DOUBLE_COMPLEX,
        }
    }

    /// Returns the number of bytes of an element.
    pub fn bytes(self) -> u64 {
        u64::from(self.named().size())
    }
}

/// A list of runs of 1 to `longest` elements, with gaps of 1 to `gap` elements between them. The size
/// determines the number of runs. The list is random, but the same in every execution of the program.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// The type of the elements of a run.
    #[serde(default)]
    pub element: Element,
    /// The largest number of elements in a run. If it is 1, the type is an `indexed_block`.
    pub longest: u64,
    /// The largest number of elements between two runs.
    pub gap: u64,
    /// True if the runs are in random order; false if their addresses ascend.
    #[serde(default)]
    pub permuted: bool,
    /// The number of arrays. The list selects the same runs from each of them, one array after the other.
    #[serde(default = "one")]
    pub arrays: u64,
}

fn one() -> u64 {
    1
}

/// A type that is written in the engine's text form.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextShape {
    /// The expression of the type. `{n}` stands for the size divided by `unit`.
    #[serde(rename = "type")]
    pub expression: String,
    /// The count: how many elements of the type the layout has.
    #[serde(default)]
    pub count: Number,
    /// The number of packed bytes by which the layout grows if `n` grows by 1. Without `unit`, the layout
    /// exists at only one size: that of its `count` elements.
    pub unit: Option<u64>,
    /// Lists of indices. In the expression, `{name}` stands for the indices of the list `name`, separated
    /// by commas.
    #[serde(default)]
    pub lists: Vec<IndexList>,
    /// The loops that a programmer would write instead of the type, one nest after the other. Empty if
    /// there are none.
    #[serde(default)]
    pub hand: Vec<Loops>,
}

/// A list of different indices in random order. The list is the same in every execution of the program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexList {
    /// The name of the list in the expression and in hand-written loops.
    pub name: String,
    /// The number of indices.
    pub count: u64,
    /// The limit of the indices: before the multiplication by `times`, every index is less than this
    /// number.
    pub below: u64,
    /// The factor by which each index is multiplied.
    #[serde(default = "one")]
    pub times: u64,
}

/// A number in a [`TextShape`]: a constant, or the word `n`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Number {
    /// A constant.
    Fixed(u64),
    /// The word `n`.
    Word(String),
}

impl Default for Number {
    fn default() -> Self {
        Self::Fixed(1)
    }
}

impl Number {
    /// Returns the constant, or the argument `n` if this number is the word `n`.
    pub fn at(&self, n: u64) -> u64 {
        match self {
            Self::Fixed(number) => *number,
            Self::Word(_) => n,
        }
    }
}

/// One nest of loops over blocks of equal length, as a programmer would write it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loops {
    /// The bytes from the origin to the start of the first block.
    #[serde(default)]
    pub start: u64,
    /// A number of bytes. `n` times this number is added to `start`.
    #[serde(default)]
    pub start_per_n: u64,
    /// Bytes per block.
    pub block: u64,
    /// One to three loops, outermost first. Each loop states the number of iterations and the distance
    /// between consecutive iterations, in bytes. Empty if there is a `list`.
    #[serde(default)]
    pub loops: Vec<(Number, u64)>,
    /// The name of a list. If present, there is one block for each value of the list, and no loops.
    pub list: Option<String>,
    /// The factor that turns a value of the list into an offset in bytes.
    #[serde(default = "one")]
    pub unit: u64,
}

/// A face of a cube of doubles, `array[z][y][x]`. The cube has a halo on each side.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Face {
    /// Number of cells along each edge of the cube, without the halo.
    pub edge: u64,
    /// Number of layers of the halo on each side. The face has the same number of layers.
    pub halo: u64,
    /// The axis to which the face is perpendicular.
    pub normal: Axis,
}

/// An axis of a cube; x varies fastest in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names of the axes need no explanation")]
pub enum Axis {
    X,
    Y,
    Z,
}

/// The type of the C structs in the layout's array. There is a hand-written loop for each type.
#[derive(Clone, Copy, Debug, Deserialize)]
pub enum Record {
    /// `struct { char c; int i; double d; }`: 13 bytes of data in 16 bytes of memory.
    #[serde(rename = "char-int-double")]
    CharIntDouble,
    /// `struct { double x[3]; int kind; double v[3]; }`: 52 bytes of data in 56 bytes of memory.
    #[serde(rename = "particle")]
    Particle,
}

impl TextShape {
    /// Returns the list with the name `name`.
    pub fn list(&self, name: &str) -> Option<&IndexList> {
        self.lists.iter().find(|list| list.name == name)
    }

    /// Returns the type that the expression describes for the value `n`.
    ///
    /// # Errors
    ///
    /// Returns a one-line message with a column and the fault if the expression cannot be parsed.
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
