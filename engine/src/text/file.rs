//! TOML files that define named types and layouts.
//!
//! ```toml
//! [types]
//! row = "contiguous(3, double)"
//! tile = "vector(4, 1, 10, row)"       # names of the table may be used in any order
//!
//! [[layout]]
//! name = "four tiles"                   # optional
//! type = "tile"                         # any expression
//! count = 4                             # optional, 1
//! ```
//!
//! `parse.rs` parses the expressions. The errors state the position in the TOML file. Every type is
//! built after the types that it uses, without recursion. If a name depends on itself, parsing fails
//! and the error shows the cycle.

use super::reader::Reader;
use super::{ParseError, parse, parse_in};
use crate::datatype::Datatype;
use memchr::memmem;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use toml::Spanned;

/// The content of a file: the types that it names, and its layouts.
#[derive(Clone, Debug)]
pub struct File {
    types: BTreeMap<String, Datatype>,
    layouts: Vec<Layout>,
}

/// One layout of a file: a type and a number of elements.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The name of the layout, or its expression if it has no name.
    pub name: String,
    /// The type.
    pub datatype: Datatype,
    /// Number of elements; 1 if the file does not state it.
    pub count: u64,
}

/// The error for a file: invalid TOML, or a wrong expression. The error contains the position in the
/// file.
pub type FileError = ParseError;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[serde(default)]
    types: BTreeMap<Spanned<String>, Spanned<String>>,
    #[serde(default)]
    layout: Vec<RawLayout>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLayout {
    name: Option<String>,
    #[serde(rename = "type")]
    ty: Spanned<String>,
    count: Option<Spanned<i64>>,
}

impl File {
    /// Parses the text of a file.
    ///
    /// # Errors
    ///
    /// Returns the first error and its position: invalid TOML, an unknown key, a wrong expression, a
    /// name that is invalid or depends on itself, or a negative count.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        let raw: Raw = toml::from_str(text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            ParseError::new(text, inside(text, span), error.message())
        })?;
        for name in raw.types.keys() {
            if let Some(why) = super::parse::unbindable(name.get_ref()) {
                return Err(ParseError::new(text, inside(text, name.span()), why));
            }
        }
        let scope = resolve(text, &raw.types)?;
        let mut layouts = Vec::with_capacity(raw.layout.len());
        for layout in raw.layout {
            let datatype =
                parse_in(layout.ty.get_ref(), &scope).map_err(|e| moved(text, &layout.ty, e))?;
            let count = match &layout.count {
                None => 1,
                Some(count) => u64::try_from(*count.get_ref()).map_err(|_| {
                    let message = format!("count: {} is negative", count.get_ref());
                    ParseError::new(text, inside(text, count.span()), message)
                })?,
            };
            let name = layout.name.unwrap_or_else(|| layout.ty.get_ref().clone());
            layouts.push(Layout { name, datatype, count });
        }
        Ok(Self { types: scope.into_iter().collect(), layouts })
    }

    /// Returns the type that the file defines under `name`, or `None` if there is none.
    pub fn get(&self, name: &str) -> Option<&Datatype> {
        self.types.get(name)
    }

    /// Returns all types that the file names, each with its name, ordered by name.
    pub fn types(&self) -> impl ExactSizeIterator<Item = (&str, &Datatype)> {
        self.types.iter().map(|(name, ty)| (name.as_str(), ty))
    }

    /// Returns the layouts, in the order of the file.
    pub fn layouts(&self) -> &[Layout] {
        &self.layouts
    }

    /// Parses an expression that may use the names of this file.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`parse`].
    pub fn expression(&self, text: &str) -> Result<Datatype, ParseError> {
        if self.types.is_empty() {
            return parse(text);
        }
        let scope = self.types.iter().map(|(name, ty)| (name.clone(), ty.clone())).collect();
        parse_in(text, &scope)
    }
}

type Definitions = BTreeMap<Spanned<String>, Spanned<String>>;

/// Builds the type of every expression in `types`. Each type is built after the types that it uses.
/// Returns the types by name.
fn resolve(text: &str, types: &Definitions) -> Result<HashMap<String, Datatype>, FileError> {
    let by_name: HashMap<&str, &Spanned<String>> =
        types.iter().map(|(name, value)| (name.get_ref().as_str(), value)).collect();
    let mut scope = HashMap::new();
    for start in types.keys() {
        // The names on the path from `start` to the name that is being resolved. Each entry also holds
        // those names that its definition uses and that have not been visited yet.
        let mut path: Vec<(&str, std::vec::IntoIter<&str>)> = Vec::new();
        let mut next = Some(start.get_ref().as_str());
        while next.is_some() || !path.is_empty() {
            if let Some(name) = next.take().filter(|name| !scope.contains_key(*name)) {
                let value = by_name[name];
                if let Some(at) = path.iter().position(|(open, _)| *open == name) {
                    let circle: Vec<&str> = path[at..].iter().map(|(open, _)| *open).collect();
                    let message =
                        format!("`{name}` depends on itself: {} -> {name}", circle.join(" -> "));
                    return Err(ParseError::new(text, inside(text, value.span()), message));
                }
                let used: Vec<&str> = words(value.get_ref())
                    .filter_map(|word| by_name.get_key_value(word).map(|(name, _)| *name))
                    .collect();
                path.push((name, used.into_iter()));
            }
            let Some((name, used)) = path.last_mut() else { break };
            next = used.next();
            if next.is_none() {
                let value = by_name[name];
                let ty = parse_in(value.get_ref(), &scope).map_err(|e| moved(text, value, e))?;
                scope.insert((*name).to_owned(), ty);
                path.pop();
            }
        }
    }
    Ok(scope)
}

/// Returns all words of an expression. Every name that the expression uses is one of these words.
fn words(expression: &str) -> impl Iterator<Item = &str> {
    let mut reader = Reader::new(expression);
    std::iter::from_fn(move || {
        loop {
            let word = reader.peek_word();
            if !word.is_empty() {
                reader.skip(word);
                return Some(word);
            }
            if !reader.skip_character() {
                return None;
            }
        }
    })
}

/// Limits both ends of `span` to the length of `text`, and moves them to character boundaries.
fn inside(text: &str, span: Range<usize>) -> Range<usize> {
    let floor = |at: usize| (0..=at.min(text.len())).rev().find(|&i| text.is_char_boundary(i));
    let (start, end) = (floor(span.start).unwrap_or(0), floor(span.end).unwrap_or(0));
    start..end.max(start)
}

/// Converts the position in `error` from a position in the expression `value` to a position in the
/// file. If the string contains escapes, the position inside the string cannot be computed, so the
/// error marks the whole string.
fn moved(text: &str, value: &Spanned<String>, error: ParseError) -> FileError {
    let outer = inside(text, value.span());
    let verbatim = memmem::find(text[outer.clone()].as_bytes(), value.get_ref().as_bytes());
    let span = match verbatim {
        Some(at) => {
            let start = outer.start + at;
            inside(text, start + error.span.start..start + error.span.end)
        }
        None => outer,
    };
    match error.refusal() {
        Some(refusal) => {
            let name = error.message.split(": ").next().unwrap_or_default();
            ParseError::refused(text, span, name, refusal.clone())
        }
        None => ParseError::new(text, span, error.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        File::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn names_are_found_in_any_order() {
        let file = File::parse(
            r#"
            [types]
            tile = "vector(4, 1, 10, row)"  # row comes later
            row = "contiguous(3, double)"
            both = """
                struct([1, 1], [0, 1024],
                       [tile, row])"""
            [[layout]]
            name = "tiles"
            type = "tile"
            count = 4
            [[layout]]
            type = "dup(row)"
            "#,
        )
        .unwrap();
        assert_eq!(file.types().map(|(name, _)| name).collect::<Vec<_>>(), ["both", "row", "tile"]);
        assert_eq!(file.get("both").unwrap().size(), 5 * 24);
        let layouts: Vec<_> = file.layouts().iter().map(|l| (l.name.as_str(), l.count)).collect();
        assert_eq!(layouts, [("tiles", 4), ("dup(row)", 1)]);
        assert_eq!(file.expression("contiguous(2, row)").unwrap().size(), 48);
        assert!(File::parse("").unwrap().expression("int").is_ok());
    }

    #[test]
    fn places_are_those_of_the_file() {
        assert_eq!(
            refused("[types]\na = \"dup(inz)\"\n"),
            "2:10: `inz` is not a type; did you mean `int`?"
        );
        assert_eq!(
            refused("[types]\na = \"contiguous(-3, int)\"\n"),
            "2:17: contiguous: count: -3 is negative"
        );
        assert_eq!(
            refused("[types]\na = \"\\u0064up(inz)\"\n"),
            "2:5: `inz` is not a type; did you mean `int`?"
        );
        assert_eq!(
            refused("[types]\na = \"dup(c)\"\nb = \"dup(a)\"\nc = \"dup(b)\"\n"),
            "2:5: `a` depends on itself: a -> c -> b -> a"
        );
        assert_eq!(
            refused("[types]\ndouble = \"int\"\n"),
            "2:1: `double` is the name of a basic type"
        );
        assert_eq!(
            refused("[types]\nresized = \"int\"\n"),
            "2:1: `resized` is the name of a constructor"
        );
        assert_eq!(
            refused("[[layout]]\ntype = \"int\"\ncount = -1\n"),
            "3:9: count: -1 is negative"
        );
        assert!(refused("[[layout]]\nkind = 1\n").starts_with("2:1: unknown field `kind`"));
        assert!(refused("[types\n").starts_with("1:7: "), "{}", refused("[types\n"));
    }

    #[test]
    fn a_chain_of_10_000_names_resolves() {
        let mut text = "[types]\nn0 = \"int\"\n".to_owned();
        for i in 1..10_000 {
            text.push_str(&format!("n{i} = \"resized(0, 8, n{})\"\n", i - 1));
        }
        let file = File::parse(&text).unwrap();
        assert_eq!(file.get("n9999").unwrap().extent(), 8);
    }
}
