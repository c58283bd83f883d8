//! Parses expressions to types.
//!
//! `reader.rs` reads numbers and lists. The table in `constructors.rs` defines the arguments of each
//! constructor. An expression may be nested so deeply that recursion would overflow the stack, so the
//! parser keeps its open constructor calls in a list on the heap.

use super::ParseError;
use super::constructors::{self, Kind, ROWS, Row, Value, Values};
use super::print;
use super::reader::Reader;
use crate::datatype::Datatype;
use crate::named::Named;
use std::collections::HashMap;
use std::ops::Range;

/// Parses a type. The [module](super) documentation has the grammar.
///
/// # Errors
///
/// Returns the first error and its position: a grammar error, an unknown name, or arguments that the
/// constructor refuses.
pub fn parse(text: &str) -> Result<Datatype, ParseError> {
    parse_in(text, &HashMap::new())
}

/// Parses a type like [`parse`]. The expression may use the names in `scope`.
///
/// # Errors
///
/// Returns the errors of [`parse`].
pub fn parse_in(text: &str, scope: &HashMap<String, Datatype>) -> Result<Datatype, ParseError> {
    let mut parser = Parser { reader: Reader::new(text), outer: scope, bound: HashMap::new() };
    loop {
        match parser.binding()? {
            Some(name) => {
                let ty = parser.ty()?;
                if !parser.reader.accept(";") {
                    return Err(parser.reader.expected("`;` after the binding"));
                }
                parser.bound.insert(name, ty);
            }
            None => {
                let ty = parser.ty()?;
                parser.reader.accept(";");
                if parser.reader.at_end() {
                    return Ok(ty);
                }
                return Err(parser.reader.expected("the end of the text"));
            }
        }
    }
}

/// Returns the named type with the name `word`: its MPI name, with or without `MPI_`, or its Rust name.
/// Letter case matters only in the Rust name.
pub(crate) fn named(word: &str) -> Option<Named> {
    const RUST: [(&str, Named); 11] = [
        ("i8", Named::I8),
        ("i16", Named::I16),
        ("i32", Named::I32),
        ("i64", Named::I64),
        ("u8", Named::U8),
        ("u16", Named::U16),
        ("u32", Named::U32),
        ("u64", Named::U64),
        ("f32", Named::F32),
        ("f64", Named::F64),
        ("bool", Named::C_BOOL),
    ];
    let short = match word.get(..4) {
        Some(prefix) if prefix.eq_ignore_ascii_case("mpi_") => &word[4..],
        _ => word,
    };
    Named::all_with_markers()
        .find(|n| n.name().strip_prefix("MPI_").is_some_and(|n| n.eq_ignore_ascii_case(short)))
        .or_else(|| RUST.iter().find(|(name, _)| *name == word).map(|(_, named)| *named))
}

/// Returns the reason why `name` cannot be bound, or `None` if it can be bound.
pub(crate) fn unbindable(name: &str) -> Option<String> {
    if name.starts_with(|c: char| c.is_ascii_digit())
        || name.is_empty()
        || !name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric())
    {
        return Some(format!(
            "`{}` is not a name: a name consists of letters, digits and `_`, and must not \
             begin with a digit",
            name.escape_debug()
        ));
    }
    if named(name).is_some() {
        return Some(format!("`{name}` is the name of a basic type"));
    }
    if constructors::find(name).is_some() {
        return Some(format!("`{name}` is the name of a constructor"));
    }
    matches!(name, "x" | "X").then(|| format!("`{name}` is reserved for copies in lists"))
}

struct Parser<'a> {
    reader: Reader<'a>,
    outer: &'a HashMap<String, Datatype>,
    bound: HashMap<String, Datatype>,
}

/// A constructor call whose arguments are being read.
struct Call {
    row: &'static Row,
    start: usize,
    values: Values,
    spans: Vec<Range<usize>>,
    /// While the call's list of types is read: the types so far, and the number of copies of the next
    /// type.
    types: Option<(Vec<Datatype>, usize)>,
    argument_start: usize,
}

impl Parser<'_> {
    /// If the text continues with a binding, reads `name =` and returns the name.
    fn binding(&mut self) -> Result<Option<String>, ParseError> {
        let start = self.reader.position();
        let word = self.reader.peek_word();
        let mut ahead = Reader::new(self.reader.ahead(word));
        if word.is_empty() || !ahead.accept("=") {
            return Ok(None);
        }
        let span = start..start + word.len();
        if let Some(why) = unbindable(word) {
            return Err(self.reader.error(span, why));
        }
        if self.bound.contains_key(word) || self.outer.contains_key(word) {
            return Err(self.reader.error(span, format!("`{word}` is already bound")));
        }
        self.reader.skip(word);
        self.reader.accept("=");
        Ok(Some(word.to_owned()))
    }

    fn ty(&mut self) -> Result<Datatype, ParseError> {
        let mut calls: Vec<Call> = Vec::new();
        loop {
            let mut finished = self.begin(&mut calls)?;
            // The finished type is an argument of the innermost open call. It may be the last argument;
            // then that call is finished too, and its type goes to the next open call.
            while let Some(ty) = finished.take() {
                let Some(call) = calls.last_mut() else { return Ok(ty) };
                self.deliver(call, ty)?;
                if self.read_arguments(call)? {
                    finished = Some(self.finish(call)?);
                    calls.pop();
                }
            }
        }
    }

    /// Reads a named type, a bound name, or the beginning of a constructor call. Returns the type if it
    /// is already complete. Otherwise pushes the open call onto `calls`.
    fn begin(&mut self, calls: &mut Vec<Call>) -> Result<Option<Datatype>, ParseError> {
        let start = self.reader.position();
        let word = self.reader.peek_word();
        if word.is_empty() {
            return Err(self.reader.expected("a type"));
        }
        self.reader.skip(word);
        if !self.reader.accept("(") {
            let span = start..start + word.len();
            let bound = self.bound.get(word).or_else(|| self.outer.get(word)).cloned();
            let ty = bound.or_else(|| named(word).map(Datatype::named));
            return ty.map(Some).ok_or_else(|| self.unknown(word, span));
        }
        let Some(row) = constructors::find(word) else {
            let span = start..start + word.len();
            let near = nearest(word, ROWS.iter().map(|row| row.name.to_owned()));
            let message = format!("`{}` is not a constructor{near}", clipped(word));
            return Err(self.reader.error(span, message));
        };
        let (values, spans) = (Values::default(), Vec::new());
        let mut call = Call { row, start, values, spans, types: None, argument_start: 0 };
        if self.read_arguments(&mut call)? {
            return self.finish(&call).map(Some);
        }
        calls.push(call);
        Ok(None)
    }

    fn unknown(&self, word: &str, span: Range<usize>) -> ParseError {
        if let Some(row) = constructors::find(word) {
            let names: Vec<&str> = row.parameters.iter().map(|p| p.name).collect();
            let message = format!("`{word}` needs arguments: ({})", names.join(", "));
            return self.reader.error(span, message);
        }
        let names = Named::all().map(print::word);
        let names = names.chain(self.bound.keys().cloned()).chain(self.outer.keys().cloned());
        let near = nearest(word, names);
        self.reader.error(span, format!("`{}` is not a type{near}", clipped(word)))
    }

    fn deliver(&mut self, call: &mut Call, ty: Datatype) -> Result<(), ParseError> {
        match &mut call.types {
            None => {
                call.values.0.push(Value::Type(ty));
                call.spans.push(self.reader.since(call.argument_start));
            }
            Some((types, copies)) => {
                types.extend(std::iter::repeat_n(ty, *copies));
                let more = self.reader.accept(",");
                if !more && !self.reader.rest_begins("]") {
                    return Err(self.reader.expected("`,` or `]`"));
                }
            }
        }
        Ok(())
    }

    /// Reads the arguments of `call`. Returns false if the next argument is a type, which the caller
    /// must read, and true after the last argument.
    fn read_arguments(&mut self, call: &mut Call) -> Result<bool, ParseError> {
        if call.types.is_some() {
            return self.next_of_list(call);
        }
        let count = call.row.parameters.len();
        while let Some(parameter) = call.row.parameters.get(call.values.0.len()) {
            if !call.values.0.is_empty() && !self.reader.accept(",") {
                return Err(self.reader.expected(format!("`,` and then `{}`", parameter.name)));
            }
            call.argument_start = self.reader.position();
            let value = match parameter.kind {
                Kind::Number => Value::Number(self.reader.number(parameter)?),
                Kind::Numbers => Value::Numbers(self.reader.numbers(parameter)?),
                Kind::Type => return Ok(false),
                Kind::Types => {
                    if !self.reader.accept("[") {
                        return Err(self.reader.expected("`[` and the types"));
                    }
                    call.types = Some((Vec::new(), 1));
                    return self.next_of_list(call);
                }
            };
            call.values.0.push(value);
            call.spans.push(self.reader.since(call.argument_start));
        }
        if !self.reader.accept(")") {
            let plural = if count == 1 { "argument" } else { "arguments" };
            let name = call.row.name;
            return Err(self.reader.expected(format!("`)` after the {count} {plural} of {name}")));
        }
        Ok(true)
    }

    /// Continues a list of types. Returns false if the list continues with a type; the number of copies
    /// of that type has then been read. At the end of the list, reads the remaining arguments and
    /// returns the result of `read_arguments`.
    fn next_of_list(&mut self, call: &mut Call) -> Result<bool, ParseError> {
        if self.reader.accept("]") {
            let (types, _) = call.types.take().unwrap_or_default();
            call.values.0.push(Value::Types(types));
            call.spans.push(self.reader.since(call.argument_start));
            return self.read_arguments(call);
        }
        // The word `2int` is a named type, whereas `2 x int` means two copies of a type.
        let is_named = named(self.reader.peek_word()).is_some();
        let copies = if is_named { 1 } else { self.reader.copies()? };
        if let Some((_, next)) = &mut call.types {
            *next = copies;
        }
        Ok(false)
    }

    fn finish(&self, call: &Call) -> Result<Datatype, ParseError> {
        (call.row.make)(&call.values).map_err(|error| {
            let refused = call.row.parameters.iter().position(|p| p.name == error.argument());
            let span = refused.and_then(|index| call.spans.get(index).cloned());
            let span = span.unwrap_or_else(|| self.reader.since(call.start));
            self.reader.refused(span, call.row.name, error)
        })
    }
}

/// Shortens a word to a length that fits in a message.
fn clipped(word: &str) -> String {
    // Words are ASCII, so any index is a character boundary.
    if word.len() > 40 { format!("{}…", &word[..40]) } else { word.to_owned() }
}

/// Returns `; did you mean …?` if one of `names` is similar to `word`, and an empty text otherwise.
fn nearest(word: &str, names: impl Iterator<Item = String>) -> String {
    let word = word.to_ascii_lowercase();
    let word = word.strip_prefix("mpi_").unwrap_or(&word);
    if word.len() > 40 {
        return String::new();
    }
    let allowed = if word.len() < 4 { 1 } else { 2 };
    names
        .map(|name| (distance(word, &name.to_ascii_lowercase()), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map_or_else(String::new, |(_, name)| format!("; did you mean `{name}`?"))
}

/// Returns the least number of insertions, deletions and replacements that turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}
