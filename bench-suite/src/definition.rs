//! The definitions file: which layouts, at which sizes, and what they must reach.
//!
//! Read before everything else; `layout.rs` turns one [`LayoutDefinition`] and a size into
//! something to run, `bars.rs` compares results with [`Bar`]s. Everything that can be wrong in a
//! file is found here, so that later steps cannot fail on input.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use typepack_engine::{Datatype, Named};

/// The definitions of `typepack-bench pack`.
pub const BUILT_IN: &str = include_str!("../definitions/pack.toml");
/// The definitions of `typepack-bench peers`: the reference layouts.
pub const REFERENCE: &str = include_str!("../definitions/reference.toml");

/// The definitions of `typepack-bench peers --set ddtbench`.
pub const DDTBENCH: &str = include_str!("../definitions/ddtbench.toml");

/// A whole definitions file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definitions {
    /// Packed bytes per call.
    pub sizes: Vec<u64>,
    /// Those of a quick run; all of them by default.
    #[serde(default)]
    pub quick: Vec<u64>,
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
    /// Which bars it is judged by, besides those for all.
    #[serde(default)]
    pub class: Class,
    /// The sizes it exists at, instead of the file's.
    #[serde(default)]
    pub sizes: Vec<u64>,
    /// What it looks like in memory.
    pub shape: ShapeDefinition,
}

/// Classes of layouts that have bars of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// None of the others.
    #[default]
    Plain,
    /// Structs with gaps.
    Gapped,
    /// Blocks of 1 or 2 bytes.
    Bytes,
    /// Memory that is walked across its rows.
    Transpose,
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
    /// What the blocks consist of.
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
    /// The named type.
    pub fn named(self) -> Named {
        match self {
            Self::Double => Named::DOUBLE,
            Self::Float => Named::FLOAT,
            Self::Short => Named::SHORT,
            Self::Char => Named::CHAR,
            Self::Complex => Named::C_DOUBLE_COMPLEX,
        }
    }

    /// Bytes per element.
    pub fn bytes(self) -> u64 {
        u64::from(self.named().size())
    }
}

/// Runs of 1 to `longest` elements with gaps of 1 to `gap` elements between them, the same in every
/// run of the program; as many as the size asks for.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// What the runs consist of.
    #[serde(default)]
    pub element: Element,
    /// Most elements of a run; lists of single elements become an `indexed_block`.
    pub longest: u64,
    /// Most elements between two runs.
    pub gap: u64,
    /// The list is in no order; by default addresses ascend.
    #[serde(default)]
    pub permuted: bool,
    /// Arrays that the same list is taken from, one after the other.
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
    /// Packed bytes per `n`. Without it there is one size, that of the type.
    pub unit: Option<u64>,
    /// Lists of indices that the expression names: `{name}` stands for the list's values, separated
    /// by commas.
    #[serde(default)]
    pub lists: Vec<IndexList>,
    /// The loops that a hand would write, one nest after the other, where there are such.
    #[serde(default)]
    pub hand: Vec<Loops>,
}

/// Different indices in no order, the same in every run of the program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexList {
    /// What stands for it in the expression, and in a hand's loops.
    pub name: String,
    /// How many.
    pub count: u64,
    /// The indices are below this.
    pub below: u64,
    /// What each is multiplied with.
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
    /// Its value.
    pub fn at(&self, n: u64) -> u64 {
        match self {
            Self::Fixed(number) => *number,
            Self::Word(_) => n,
        }
    }

    fn check(&self, name: &str) -> Result<(), String> {
        match self {
            Self::Fixed(0) => Err(format!("{name} = 0")),
            Self::Word(word) if word != "n" => Err(format!("{name} = \"{word}\" is not \"n\"")),
            Self::Fixed(_) | Self::Word(_) => Ok(()),
        }
    }
}

/// Loops over equal blocks, as a hand would write them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loops {
    /// Bytes of the first block's start from the origin.
    #[serde(default)]
    pub start: u64,
    /// Bytes that are added to `start` per `n`.
    #[serde(default)]
    pub start_per_n: u64,
    /// Bytes per block.
    pub block: u64,
    /// Up to three loops, outermost first: iterations, and bytes per iteration.
    #[serde(default)]
    pub loops: Vec<(Number, u64)>,
    /// Instead of loops: one block per value of this list.
    pub list: Option<String>,
    /// Bytes that a value of the list stands for.
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

/// The structs that there is a hand-written loop for.
#[derive(Clone, Copy, Debug, Deserialize)]
pub enum Record {
    /// `struct { char c; int i; double d; }`: 13 bytes of data in 16.
    #[serde(rename = "char-int-double")]
    CharIntDouble,
    /// `struct { double x[3]; int kind; double v[3]; }`: 52 bytes of data in 56.
    #[serde(rename = "particle")]
    Particle,
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
            let line = e.span().map_or(1, |span| line_of(text, span.start));
            DefinitionError(format!("line {line}: {}", e.message().replace('\n', " ")))
        })?;
        let places = Places::of(text);
        let wrong =
            |line: usize, text: String| Err(DefinitionError(format!("line {line}: {text}")));
        let mut names = HashSet::new();
        let mut sizes =
            vec![(places.sizes, &definitions.sizes), (places.quick, &definitions.quick)];
        for (layout, &line) in definitions.layouts.iter().zip(&places.layouts) {
            if !names.insert(layout.name.as_str()) {
                return wrong(line, format!("layout {} is defined twice", layout.name));
            }
            if let Err(reason) = layout.shape.check() {
                return wrong(line, format!("layout {}: {reason}", layout.name));
            }
            sizes.push((line, &layout.sizes));
        }
        for (line, sizes) in sizes {
            if let Some(size) = sizes.iter().find(|&&s| s == 0 || s > MOST_BYTES) {
                let text = format!("size {size} is not between 1 and {MOST_BYTES} bytes");
                return wrong(line, text);
            }
        }
        for (bar, &line) in definitions.bars.iter().zip(&places.bars) {
            if let Some(name) = bar.layouts.iter().find(|name| !names.contains(name.as_str())) {
                return wrong(
                    line,
                    format!("bar \"{}\" names the unknown layout {name}", bar.text),
                );
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

    /// The reference layouts.
    ///
    /// # Panics
    ///
    /// Never: a test parses them.
    pub fn reference() -> Self {
        Self::parse(REFERENCE).expect("the reference layouts are valid")
    }

    /// The layouts of DDTBench.
    ///
    /// # Panics
    ///
    /// Never: a test parses them.
    pub fn ddtbench() -> Self {
        Self::parse(DDTBENCH).expect("the layouts of DDTBench are valid")
    }
}

/// The line, from 1, of the byte at `position`.
fn line_of(text: &str, position: usize) -> usize {
    text[..position].bytes().filter(|byte| *byte == b'\n').count() + 1
}

/// The lines on which the parts of a definitions file begin.
#[derive(Default)]
struct Places {
    sizes: usize,
    quick: usize,
    /// As many as the file has layouts.
    layouts: Vec<usize>,
    /// As many as the file has bars.
    bars: Vec<usize>,
}

impl Places {
    /// The places in `text`, which has parsed as [`Definitions`].
    fn of(text: &str) -> Self {
        /// The same file again, for where things are and not for what they are.
        #[derive(Deserialize)]
        struct Outline {
            sizes: toml::Spanned<IgnoredAny>,
            quick: Option<toml::Spanned<IgnoredAny>>,
            #[serde(default)]
            layout: Vec<toml::Spanned<IgnoredAny>>,
            #[serde(default)]
            bar: Vec<toml::Spanned<IgnoredAny>>,
        }
        let line = |part: &toml::Spanned<IgnoredAny>| line_of(text, part.span().start);
        match toml::from_str::<Outline>(text) {
            Ok(outline) => Self {
                sizes: line(&outline.sizes),
                quick: outline.quick.as_ref().map_or(0, line),
                layouts: outline.layout.iter().map(line).collect(),
                bars: outline.bar.iter().map(line).collect(),
            },
            // It has parsed with more fields; without places there would be no checks.
            Err(error) => unreachable!("an outline of valid definitions: {error}"),
        }
    }
}

/// Largest packed size that may be asked for.
pub const MOST_BYTES: u64 = 1 << 30;

impl ShapeDefinition {
    fn check(&self) -> Result<(), String> {
        match self {
            Self::Blocks(Blocks { block, stride, element }) => {
                let unit = element.bytes();
                if *block == 0 || !block.is_multiple_of(unit) || *block > MOST_BYTES {
                    return Err(format!("block = {block} is not a positive multiple of {unit}"));
                }
                if !stride.is_multiple_of(unit) || stride < block || *stride > MOST_BYTES {
                    return Err(format!(
                        "stride = {stride} is not a multiple of {unit} and at least the block"
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
            Self::Record(Record::CharIntDouble | Record::Particle) => {}
            Self::List(List { longest, gap, arrays, .. }) => {
                for (name, value) in [("longest", longest), ("gap", gap), ("arrays", arrays)] {
                    if !(1..=MOST_ENTRIES).contains(value) {
                        return Err(format!(
                            "{name} = {value} is not between 1 and {MOST_ENTRIES}"
                        ));
                    }
                }
            }
            Self::Text(text) => text.check()?,
        }
        Ok(())
    }
}

/// Most elements in a run or a gap, and most arrays, of a list.
const MOST_ENTRIES: u64 = 1024;

impl TextShape {
    fn check(&self) -> Result<(), String> {
        self.count.check("count")?;
        let sized = self.expression.contains("{n}") || matches!(self.count, Number::Word(_));
        match self.unit {
            None if sized => return Err("n without a unit".to_owned()),
            Some(0) => return Err("unit = 0".to_owned()),
            Some(_) if !sized => return Err("unit, but neither type nor count has n".to_owned()),
            _ => {}
        }
        for IndexList { name, count, below, times } in &self.lists {
            if name == "n" || !self.expression.contains(&format!("{{{name}}}")) {
                return Err(format!("list {name}: the type does not have {{{name}}}"));
            }
            if !(1..=MOST_INDICES).contains(below) || count > below || *count == 0 {
                return Err(format!("list {name}: {count} of {below} indices"));
            }
            if !(1..=MOST_BYTES).contains(times) {
                return Err(format!("list {name}: times = {times}"));
            }
        }
        // The smallest one: a fault of the expression is one of every size.
        self.datatype(1)?;
        self.hand.iter().try_for_each(|hand| self.check_hand(hand))
    }

    fn check_hand(&self, hand: &Loops) -> Result<(), String> {
        if hand.block == 0
            || [hand.block, hand.start, hand.start_per_n].iter().any(|b| *b > MOST_BYTES)
        {
            return Err(format!("hand: block = {}, start = {}", hand.block, hand.start));
        }
        if let Some(name) = &hand.list {
            return match self.list(name) {
                None => Err(format!("hand: no list {name}")),
                Some(_) if !hand.loops.is_empty() => Err("hand: loops and a list".to_owned()),
                Some(_) if !(1..=MOST_BYTES).contains(&hand.unit) => {
                    Err(format!("hand: unit = {}", hand.unit))
                }
                Some(_) => Ok(()),
            };
        }
        if !(1..=3).contains(&hand.loops.len()) {
            return Err(format!("hand: {} loops are not 1 to 3", hand.loops.len()));
        }
        hand.loops.iter().try_for_each(|(count, stride)| {
            if *stride > MOST_BYTES {
                return Err(format!("hand: a loop of {stride} bytes"));
            }
            count.check("hand: a loop")
        })
    }

    /// The list `name`.
    pub fn list(&self, name: &str) -> Option<&IndexList> {
        self.lists.iter().find(|list| list.name == name)
    }

    /// The type for `n`.
    ///
    /// # Errors
    ///
    /// The fault of the expression, in one line.
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

/// Most indices that a list chooses from.
const MOST_INDICES: u64 = 1 << 24;

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
    fn the_reference_layouts_parse() {
        let definitions = Definitions::reference();
        assert!(definitions.layouts.len() >= 60, "{}", definitions.layouts.len());
        assert!(definitions.quick.iter().all(|size| definitions.sizes.contains(size)));
        assert!(definitions.layouts.iter().all(|layout| layout.text.len() > 5));
    }

    #[test]
    fn faults_of_text_and_list_shapes_say_where() {
        let error = |shape: &str| {
            let text = format!("sizes = [8]\n[[layout]]\nname = \"a\"\ntext = \"\"\n{shape}");
            Definitions::parse(&text).expect_err(shape).to_string()
        };
        let text = |inside: &str| error(&format!("shape.text = {{ {inside} }}"));
        assert_eq!(
            text("type = \"vector({n}, 1, 2, double)\""),
            "line 2: layout a: n without a unit"
        );
        assert!(text("type = \"double\", unit = 8").contains("neither type nor count has n"));
        assert!(text("type = \"vector(1, double)\"").starts_with("line 2: layout a: column "));
        assert!(text("type = \"double\", count = \"m\"").contains("\"m\" is not \"n\""));
        let hand = "type = \"double\", hand = [{ block = 0, loops = [] }]";
        assert_eq!(text(hand), "line 2: layout a: hand: block = 0, start = 0");
        let list = error("shape.list = { longest = 0, gap = 1 }");
        assert_eq!(list, "line 2: layout a: longest = 0 is not between 1 and 1024");
        let blocks = "shape.blocks = { block = 3, stride = 4, element = \"short\" }";
        assert_eq!(error(blocks), "line 2: layout a: block = 3 is not a positive multiple of 2");
    }

    #[test]
    fn faults_are_one_line() {
        let error = |text: &str| Definitions::parse(text).expect_err(text).to_string();
        let layout = "[[layout]]\nname = \"a\"\ntext = \"\"\n";
        let with = |shape: &str| format!("sizes = [8]\n{layout}{shape}");
        assert_eq!(
            error(&with("shape.blocks = { block = 7, stride = 8 }")),
            "line 2: layout a: block = 7 is not a positive multiple of 8"
        );
        assert_eq!(
            error(&with("shape.blocks = { block = 16, stride = 8 }")),
            "line 2: layout a: stride = 8 is not a multiple of 8 and at least the block"
        );
        assert_eq!(
            error(&with("shape.face = { edge = 4, halo = 5, normal = \"x\" }")),
            "line 2: layout a: halo = 5 is not between 1 and the edge"
        );
        let once = with("shape.record = \"char-int-double\"\n");
        assert_eq!(
            error(&format!("{once}{layout}shape.record = \"char-int-double\"")),
            "line 6: layout a is defined twice"
        );
        assert!(error("sizes = 3").starts_with("line 1: "), "{}", error("sizes = 3"));
        assert!(!error(&with("shape.ring = 3")).contains('\n'));
        let bar =
            "[[bar]]\ntext = \"b\"\nlayouts = [\"c\"]\nsizes = []\nagainst = \"hand\"\nleast = 1.0";
        assert_eq!(error(&format!("{once}{bar}")), "line 6: bar \"b\" names the unknown layout c");
    }
}
