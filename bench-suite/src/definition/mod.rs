//! Reads the definitions file: the layouts, their sizes, and the bars (the ratios that the project
//! requires).
//!
//! This folder is the first step of a run. `layout.rs` turns a [`LayoutDefinition`] and a size into a
//! layout that competitors can pack, and `row/bar.rs` compares the results with the [`Bar`]s. This folder
//! rejects files with faults, so that later steps can rely on the definitions. `shape.rs` defines the
//! shapes of layouts, `check.rs` finds the faults of a shape, and `describe.rs` describes a shape in words.

mod check;
mod describe;
mod shape;

pub use describe::legend;
pub use shape::{
    Axis, Blocks, Element, Face, IndexList, List, Loops, Number, Record, ShapeDefinition, TextShape,
};

use crate::row::bar::Bar;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The text of the definitions file of `typepack-bench pack`.
pub const BUILT_IN: &str = include_str!("../../definitions/pack.toml");
/// The text of the definitions file of `typepack-bench peers`: the reference layouts.
pub const REFERENCE: &str = include_str!("../../definitions/reference.toml");

/// The text of the definitions file of `typepack-bench peers --set ddtbench`.
pub const DDTBENCH: &str = include_str!("../../definitions/ddtbench.toml");

/// The text of the definitions file of `typepack-bench pack --isa`.
pub const ISA: &str = include_str!("../../definitions/isa.toml");

/// The contents of a definitions file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definitions {
    /// The sizes at which the layouts are measured, in packed bytes per call.
    pub sizes: Vec<u64>,
    /// The sizes of a quick run, in packed bytes per call. If the list is empty, a quick run uses `sizes`.
    #[serde(default)]
    pub quick: Vec<u64>,
    /// The layouts.
    #[serde(rename = "layout")]
    pub layouts: Vec<LayoutDefinition>,
    /// The bars.
    #[serde(rename = "bar", default)]
    pub bars: Vec<Bar>,
}

/// The definition of one layout. Most layouts exist at several sizes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayoutDefinition {
    /// A short name, unique in the file.
    pub name: String,
    /// A human-readable description. If the file has none, [`Definitions::parse`] describes the shape.
    #[serde(default)]
    pub text: String,
    /// The class of the layout. Some bars apply only to the layouts of one class.
    #[serde(default)]
    pub class: Class,
    /// The sizes of this layout, in packed bytes per call. If the list is empty, `layout::sizes_of` chooses
    /// the sizes.
    #[serde(default)]
    pub sizes: Vec<u64>,
    /// The shape of the layout in memory.
    pub shape: ShapeDefinition,
}

/// The class of a layout. Some bars apply only to the layouts of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Any layout that belongs to no other class.
    #[default]
    Plain,
    /// Structs with gaps.
    Gapped,
    /// Layouts with blocks of 1 or 2 bytes.
    Bytes,
    /// Transposes: layouts whose packed order walks across the rows of an array in memory.
    Transpose,
}

impl Class {
    /// Returns the name of the class in rows and bars.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// An error message of one line that says what is wrong with a definitions file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DefinitionError(String);

impl Definitions {
    /// Reads the text of a definitions file.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not valid TOML, if fields are unknown or missing, if two layouts
    /// have the same name, if a bar names an unknown layout, if a size is not between 1 and
    /// [`MOST_BYTES`], or if the values of a shape describe no valid layout.
    pub fn parse(text: &str) -> Result<Self, DefinitionError> {
        let mut definitions: Self = read(text).map_err(DefinitionError)?;
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
        for layout in definitions.layouts.iter_mut().filter(|layout| layout.text.is_empty()) {
            layout.text = layout.shape.describe();
        }
        Ok(definitions)
    }

    /// Returns the built-in definitions of `typepack-bench pack`.
    ///
    /// # Panics
    ///
    /// Panics if `definitions/pack.toml` has faults. A test parses the file.
    pub fn built_in() -> Self {
        Self::parse(BUILT_IN).expect("definitions/pack.toml must be valid")
    }

    /// Returns the definitions of the reference layouts.
    ///
    /// # Panics
    ///
    /// Panics if `definitions/reference.toml` has faults. A test parses the file.
    pub fn reference() -> Self {
        Self::parse(REFERENCE).expect("definitions/reference.toml must be valid")
    }

    /// Returns the definitions of the layouts with which instruction sets are judged.
    ///
    /// # Panics
    ///
    /// Panics if `definitions/isa.toml` has faults. A test parses the file.
    pub fn isa() -> Self {
        Self::parse(ISA).expect("definitions/isa.toml must be valid")
    }

    /// Returns the definitions of the layouts of DDTBench.
    ///
    /// # Panics
    ///
    /// Panics if `definitions/ddtbench.toml` has faults. A test parses the file.
    pub fn ddtbench() -> Self {
        Self::parse(DDTBENCH).expect("definitions/ddtbench.toml must be valid")
    }
}

/// Reads a text in TOML.
///
/// # Errors
///
/// Returns a one-line message that names the line.
fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|e| {
        let line = e.span().map_or(1, |span| line_of(text, span.start));
        format!("line {line}: {}", e.message().replace('\n', " "))
    })
}

/// The entries of a file of rows.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RowFile<E> {
    #[serde(default = "Vec::new")]
    row: Vec<E>,
    #[serde(default)]
    bar: Vec<Bar>,
}

/// Reads a file of rows and their bars. `name` returns the name of an entry, `rows_of` makes rows from an entry, and
/// `row_name` returns the name of a row.
///
/// # Errors
///
/// Returns a one-line message if the text is not valid TOML or if an entry has a fault. The message names the line or
/// the row.
pub(crate) fn rows_and_bars<E: DeserializeOwned, R>(
    text: &str,
    name: fn(&E) -> &str,
    rows_of: fn(&E) -> Result<Vec<R>, String>,
    row_name: fn(&R) -> &str,
) -> Result<(Vec<R>, Vec<Bar>), String> {
    let file: RowFile<E> = read(text)?;
    let mut rows: Vec<R> = Vec::new();
    for entry in &file.row {
        let named = |fault: String| format!("row {}: {fault}", name(entry));
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if name(entry).is_empty() || !name(entry).chars().all(is_word) {
            let fault = "the name must be one or more letters, digits or dashes";
            return Err(named(fault.to_owned()));
        }
        for row in rows_of(entry).map_err(named)? {
            if rows.iter().any(|other| row_name(other) == row_name(&row)) {
                return Err(named(format!("two rows have the name {}", row_name(&row))));
            }
            rows.push(row);
        }
    }
    Ok((rows, file.bar))
}

/// Returns the number of the line that contains the byte at `position`. The first line has the number 1.
fn line_of(text: &str, position: usize) -> usize {
    memchr::memchr_iter(b'\n', &text.as_bytes()[..position]).count() + 1
}

/// The numbers of the lines on which the parts of a definitions file begin. `quick` is 0 if the file has no
/// list `quick`.
#[derive(Default)]
struct Places {
    sizes: usize,
    quick: usize,
    /// One line number for each layout of the file.
    layouts: Vec<usize>,
    /// One line number for each bar of the file.
    bars: Vec<usize>,
}

impl Places {
    /// Finds the line numbers in `text`. The caller has already parsed `text` as [`Definitions`] without
    /// an error.
    fn of(text: &str) -> Self {
        /// The parts of the file whose positions are needed. The contents of the parts are ignored.
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
            // The caller has already parsed the text as `Definitions`. `Outline` has no field that
            // `Definitions` does not have, so parsing cannot fail.
            Err(error) => unreachable!("the outline of valid definitions must be valid: {error}"),
        }
    }
}

/// The largest packed size that a definitions file or an argument may state, in bytes.
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
            "line 2: layout a: type or count contains n, but unit is missing"
        );
        assert!(text("type = \"double\", unit = 8").contains("neither type nor count contains n"));
        assert!(text("type = \"vector(1, double)\"").starts_with("line 2: layout a: column "));
        assert!(
            text("type = \"double\", count = \"m\"")
                .contains("count is \"m\"; it must be a number or \"n\"")
        );
        let hand = "type = \"double\", hand = [{ block = 0, loops = [] }]";
        assert_eq!(text(hand), "line 2: layout a: hand: block = 0 is not between 1 and 1073741824");
        let list = error("shape.list = { longest = 0, gap = 1 }");
        assert_eq!(list, "line 2: layout a: longest = 0 is not between 1 and 1024");
        let blocks = "shape.blocks = { block = 3, stride = 4, element = \"short\" }";
        assert_eq!(
            error(blocks),
            "line 2: layout a: block is 3; it must be a multiple of 2 from 2 to 1073741824"
        );
    }

    #[test]
    fn faults_are_one_line() {
        let error = |text: &str| Definitions::parse(text).expect_err(text).to_string();
        let layout = "[[layout]]\nname = \"a\"\ntext = \"\"\n";
        let with = |shape: &str| format!("sizes = [8]\n{layout}{shape}");
        assert_eq!(
            error(&with("shape.blocks = { block = 7, stride = 8 }")),
            "line 2: layout a: block is 7; it must be a multiple of 8 from 8 to 1073741824"
        );
        assert_eq!(
            error(&with("shape.blocks = { block = 16, stride = 8 }")),
            "line 2: layout a: stride is 8; it must be a multiple of 8 from 16 (the block) to 1073741824"
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
            "[[bar]]\ntext = \"b\"\nlayouts = [\"c\"]\nsizes = []\nagainst = \"hand\"\nbar = 1.0";
        assert_eq!(error(&format!("{once}{bar}")), "line 6: bar \"b\" names the unknown layout c");
    }
}
