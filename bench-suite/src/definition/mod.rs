//! Reads the definitions file: the layouts, their sizes, and the bars.
//!
//! This folder is the first step of a run. `layout.rs` turns one [`LayoutDefinition`] and a size into a
//! layout that competitors can pack, and `bars.rs` compares results with [`Bar`]s. This folder finds
//! everything that can be wrong in a file, so that later steps cannot fail on input. `shape.rs` has the
//! shapes of layouts, and `check.rs` finds their faults.

mod check;
mod shape;

pub use shape::{
    Axis, Blocks, Element, Face, IndexList, List, Loops, Number, Record, ShapeDefinition, TextShape,
};

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The definitions of `typepack-bench pack`.
pub const BUILT_IN: &str = include_str!("../../definitions/pack.toml");
/// The definitions of `typepack-bench peers`: the reference layouts.
pub const REFERENCE: &str = include_str!("../../definitions/reference.toml");

/// The definitions of `typepack-bench peers --set ddtbench`.
pub const DDTBENCH: &str = include_str!("../../definitions/ddtbench.toml");

/// A whole definitions file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definitions {
    /// Packed bytes per call.
    pub sizes: Vec<u64>,
    /// Packed bytes per call in a quick run; all sizes by default.
    #[serde(default)]
    pub quick: Vec<u64>,
    /// The layouts.
    #[serde(rename = "layout")]
    pub layouts: Vec<LayoutDefinition>,
    /// The bars.
    #[serde(rename = "bar", default)]
    pub bars: Vec<Bar>,
}

/// One layout, which exists at several sizes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayoutDefinition {
    /// A short name, unique in the file.
    pub name: String,
    /// A description in words.
    pub text: String,
    /// The class. It determines which bars judge the layout, in addition to the bars for all layouts.
    #[serde(default)]
    pub class: Class,
    /// The sizes of this layout, instead of the file's.
    #[serde(default)]
    pub sizes: Vec<u64>,
    /// The shape in memory.
    pub shape: ShapeDefinition,
}

/// Classes of layouts that have bars of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// A layout of no other class.
    #[default]
    Plain,
    /// Structs with gaps.
    Gapped,
    /// Blocks of 1 or 2 bytes.
    Bytes,
    /// Layouts that walk memory across its rows.
    Transpose,
}

/// A ratio of bandwidths that the JIT must reach.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bar {
    /// The text of the bar.
    pub text: String,
    /// The names of the layouts that the bar is for.
    pub layouts: Vec<String>,
    /// The sizes in packed bytes that the bar is for.
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
    /// A copy of as many consecutive bytes.
    Memcpy,
    /// The engine without compiled kernels.
    Interpreter,
    /// The hand-written loop.
    Hand,
}

impl Against {
    /// Returns the name of the competitor in rows and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memcpy => "memcpy",
            Self::Interpreter => "interpreter",
            Self::Hand => "hand",
        }
    }
}

/// Describes in one line what is wrong with a definitions file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DefinitionError(String);

impl Definitions {
    /// Reads the text of a definitions file.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not valid TOML, if fields are unknown or missing, if a name is
    /// used twice, if a bar names an unknown layout, or if the numbers of a layout describe no valid
    /// layout.
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
    /// Panics if the built-in definitions have faults; a test parses them.
    pub fn built_in() -> Self {
        Self::parse(BUILT_IN).expect("the built-in definitions are not valid")
    }

    /// The reference layouts.
    ///
    /// # Panics
    ///
    /// Panics if the built-in definitions have faults; a test parses them.
    pub fn reference() -> Self {
        Self::parse(REFERENCE).expect("the reference layouts are not valid")
    }

    /// The layouts of DDTBench.
    ///
    /// # Panics
    ///
    /// Panics if the built-in definitions have faults; a test parses them.
    pub fn ddtbench() -> Self {
        Self::parse(DDTBENCH).expect("the layouts of DDTBench are not valid")
    }
}

/// Returns the line, counted from 1, of the byte at `position`.
pub(crate) fn line_of(text: &str, position: usize) -> usize {
    memchr::memchr_iter(b'\n', &text.as_bytes()[..position]).count() + 1
}

/// The lines on which the parts of a definitions file begin.
#[derive(Default)]
struct Places {
    sizes: usize,
    quick: usize,
    /// One line for each layout of the file.
    layouts: Vec<usize>,
    /// One line for each bar of the file.
    bars: Vec<usize>,
}

impl Places {
    /// Returns the places in `text`, which has already been parsed as [`Definitions`].
    fn of(text: &str) -> Self {
        /// The outline of the file: the positions of its parts, without their contents.
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
            // The caller has already parsed the text as `Definitions`, which reads the same parts with
            // more fields. Without the positions, the checks could not run.
            Err(error) => unreachable!("valid definitions have a faulty outline: {error}"),
        }
    }
}

/// The largest packed size that a user may choose.
pub const MOST_BYTES: u64 = 1 << 30;

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
            "line 2: layout a: type or count has n, but there is no unit"
        );
        assert!(text("type = \"double\", unit = 8").contains("neither type nor count has n"));
        assert!(text("type = \"vector(1, double)\"").starts_with("line 2: layout a: column "));
        assert!(text("type = \"double\", count = \"m\"").contains("\"m\" is not \"n\""));
        let hand = "type = \"double\", hand = [{ block = 0, loops = [] }]";
        assert_eq!(text(hand), "line 2: layout a: hand: block = 0 is not between 1 and 1073741824");
        let list = error("shape.list = { longest = 0, gap = 1 }");
        assert_eq!(list, "line 2: layout a: longest = 0 is not between 1 and 1024");
        let blocks = "shape.blocks = { block = 3, stride = 4, element = \"short\" }";
        assert_eq!(
            error(blocks),
            "line 2: layout a: block = 3 is not a multiple of 2 from 2 to 1073741824"
        );
    }

    #[test]
    fn faults_are_one_line() {
        let error = |text: &str| Definitions::parse(text).expect_err(text).to_string();
        let layout = "[[layout]]\nname = \"a\"\ntext = \"\"\n";
        let with = |shape: &str| format!("sizes = [8]\n{layout}{shape}");
        assert_eq!(
            error(&with("shape.blocks = { block = 7, stride = 8 }")),
            "line 2: layout a: block = 7 is not a multiple of 8 from 8 to 1073741824"
        );
        assert_eq!(
            error(&with("shape.blocks = { block = 16, stride = 8 }")),
            "line 2: layout a: stride = 8 is not a multiple of 8 from 16, the block, to 1073741824"
        );
        assert_eq!(
            error(&with("shape.face = { edge = 4, halo = 5, normal = \"x\" }")),
            "line 2: layout a: halo = 5 is not between 1 and 4, the edge"
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
