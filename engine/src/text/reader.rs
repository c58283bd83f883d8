//! Reads words, numbers and lists from a text, for `parse.rs` and `file.rs`.
//!
//! The reader has a position in the text and only moves forward. Most errors state what the grammar
//! expects at the position and what the text contains there. Numbers are computed in 128 bits.

use super::constructors::Parameter;
use super::error::first_line;
use super::{MAX_ENTRIES, MAX_PARENTHESES, ParseError};
use std::ops::Range;

pub(crate) struct Reader<'a> {
    text: &'a str,
    position: usize,
    /// Number of list entries read so far, in all lists.
    entries: usize,
}

type Result<T> = std::result::Result<T, ParseError>;

fn in_word(b: u8) -> bool {
    b == b'_' || b.is_ascii_alphanumeric()
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, position: 0, entries: 0 }
    }

    /// Skips white space and comments. Returns the position of the next token.
    pub(crate) fn position(&mut self) -> usize {
        loop {
            let rest = self.text[self.position..].trim_start();
            self.position = self.text.len() - rest.len();
            if !rest.starts_with('#') {
                return self.position;
            }
            self.position += first_line(rest).len();
        }
    }

    fn rest(&mut self) -> &'a str {
        let at = self.position();
        &self.text[at..]
    }

    pub(crate) fn at_end(&mut self) -> bool {
        self.rest().is_empty()
    }

    pub(crate) fn error(&self, span: Range<usize>, message: impl Into<String>) -> ParseError {
        ParseError::new(self.text, span, message)
    }

    pub(crate) fn refused(
        &self,
        span: Range<usize>,
        name: &str,
        error: crate::Error,
    ) -> ParseError {
        ParseError::refused(self.text, span, name, error)
    }

    /// Returns the range from `start` to the current position.
    pub(crate) fn since(&self, start: usize) -> Range<usize> {
        start..self.position.max(start)
    }

    /// Returns the error `expected …, found …`, which shows the token at the position.
    pub(crate) fn expected(&mut self, what: impl std::fmt::Display) -> ParseError {
        let rest = self.rest();
        let word = rest.bytes().take_while(|&b| in_word(b)).count();
        let length = if word > 0 { word } else { rest.chars().next().map_or(0, char::len_utf8) };
        let span = self.position..self.position + length;
        let found = match &rest[..length] {
            "" => "the end of the text".to_owned(),
            token if token.len() > 40 => format!("`{}…`", &token[..40]),
            token => format!("`{}`", token.escape_debug()),
        };
        self.error(span, format!("expected {what}, found {found}"))
    }

    pub(crate) fn accept(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.position += token.len();
        }
        found
    }

    /// Returns the word at the position, without moving past it. A word consists of letters, digits
    /// and `_`; the result is empty if there is no word.
    pub(crate) fn peek_word(&mut self) -> &'a str {
        let rest = self.rest();
        &rest[..rest.bytes().take_while(|&b| in_word(b)).count()]
    }

    /// Returns the text after `word`. The caller has found `word` at the position.
    pub(crate) fn ahead(&mut self, word: &str) -> &'a str {
        &self.rest()[word.len()..]
    }

    pub(crate) fn rest_begins(&mut self, token: &str) -> bool {
        self.rest().starts_with(token)
    }

    /// Moves past `word`, which `peek_word` has returned.
    pub(crate) fn skip(&mut self, word: &str) {
        self.position += word.len();
    }

    /// Moves past the next character that is neither white space nor part of a comment. Returns false
    /// at the end of the text.
    #[cfg(feature = "text-file")]
    pub(crate) fn skip_character(&mut self) -> bool {
        let length = self.rest().chars().next().map_or(0, char::len_utf8);
        self.position += length;
        length > 0
    }

    /// Reads one number, or a word for a number, as the value of `parameter`. Returns an error if the
    /// text continues with neither, or if the value does not fit in an `i64`.
    fn value(&mut self, parameter: &Parameter) -> Result<i64> {
        let word = self.peek_word();
        let is_word = |entry: &&(&str, i64)| entry.0.eq_ignore_ascii_case(word);
        if let Some((_, value)) = parameter.words.iter().find(is_word) {
            self.skip(word);
            return Ok(*value);
        }
        if parameter.words_only || !(parameter.words.is_empty() || self.number_begins()) {
            return Err(self.expected(what(parameter)));
        }
        let start = self.position();
        let value = self.expression(&what(parameter), 0)?;
        self.fit(value, start)
    }

    fn number_begins(&mut self) -> bool {
        self.rest().starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '(')
    }

    fn fit(&self, value: i128, start: usize) -> Result<i64> {
        i64::try_from(value).map_err(|_| {
            self.error(
                self.since(start),
                format!("{value} does not fit in a signed 64-bit integer"),
            )
        })
    }

    /// Reads one number, or a word for a number.
    pub(crate) fn number(&mut self, parameter: &Parameter) -> Result<i64> {
        self.value(parameter)
    }

    /// Reads a list of numbers, copies and ranges.
    pub(crate) fn numbers(&mut self, parameter: &Parameter) -> Result<Vec<i64>> {
        if !self.accept("[") {
            return Err(self.expected(format_args!("`[` and the {}", parameter.name)));
        }
        let mut list = Vec::new();
        loop {
            if self.accept("]") {
                return Ok(list);
            }
            self.run(parameter, &mut list)?;
            if !self.accept(",") {
                if self.accept("]") {
                    return Ok(list);
                }
                return Err(self.expected("`,` or `]`"));
            }
        }
    }

    fn run(&mut self, parameter: &Parameter, list: &mut Vec<i64>) -> Result<()> {
        let start = self.position();
        if !self.number_begins() {
            let value = self.value(parameter)?;
            self.count_entries(1, start)?;
            list.push(value);
            return Ok(());
        }
        let first = self.expression(&what(parameter), 0)?;
        if parameter.words_only && !self.rest_begins("x") && !self.rest_begins("X") {
            // A parameter that accepts only words may have a number only before `x`, as the number of
            // copies.
            let expected = format!("expected {}", what(parameter));
            return Err(self.error(self.since(start), expected));
        }
        if self.accept("..") {
            let end = self.expression("the end of the range", 0)?;
            let mut step = 1;
            if self.peek_word().eq_ignore_ascii_case("step") {
                self.skip("step");
                let at = self.position();
                step = self.expression("the step of the range", 0)?;
                if step == 0 {
                    return Err(self.error(self.since(at), "the step of the range must not be 0"));
                }
            }
            let length = range_length(first, end, step);
            self.count_entries(length, start)?;
            let mut value = first;
            for _ in 0..length {
                list.push(self.fit(value, start)?);
                value += step;
            }
        } else if self.accept_times() {
            self.count_entries(first, start)?;
            let value = self.value(parameter)?;
            list.extend(std::iter::repeat_n(value, usize::try_from(first).unwrap_or(0)));
        } else {
            self.count_entries(1, start)?;
            list.push(self.fit(first, start)?);
        }
        Ok(())
    }

    /// Accepts the `x` between the number of copies and the value. No other token that may follow a
    /// number begins with this letter.
    fn accept_times(&mut self) -> bool {
        self.accept("x") || self.accept("X")
    }

    /// Reads the optional `number x` before a type in a list. Returns the number of copies.
    pub(crate) fn copies(&mut self) -> Result<usize> {
        let start = self.position();
        let mut copies = 1;
        if self.number_begins() {
            copies = self.expression("a number of copies", 0)?;
            if !self.accept_times() {
                return Err(self.expected("`x` after the number of copies"));
            }
        }
        self.count_entries(copies, start)?;
        // `count_entries` has checked that the number is not negative and not above the limit.
        Ok(copies as usize)
    }

    fn count_entries(&mut self, more: i128, start: usize) -> Result<()> {
        if more < 0 {
            return Err(self.error(
                self.since(start),
                format!("the number of copies is {more}, which is negative"),
            ));
        }
        let room = (MAX_ENTRIES - self.entries) as i128;
        if more > room {
            return Err(self.error(
                self.since(start),
                format!("the lists have more than {MAX_ENTRIES} entries in total"),
            ));
        }
        self.entries += more as usize;
        Ok(())
    }

    /// Reads a sum of products. If no number begins at the position, the error says that `what` was
    /// expected.
    fn expression(&mut self, what: &str, depth: usize) -> Result<i128> {
        let start = self.position();
        let mut sum = self.product(what, depth)?;
        loop {
            let minus = match self.rest().as_bytes().first() {
                Some(b'+') => false,
                Some(b'-') => true,
                _ => return Ok(sum),
            };
            self.position += 1;
            let term = self.product("a number", depth)?;
            let next = if minus { sum.checked_sub(term) } else { sum.checked_add(term) };
            sum = self.wide(next, start)?;
        }
    }

    fn product(&mut self, what: &str, depth: usize) -> Result<i128> {
        let start = self.position();
        let mut product = self.factor(what, depth)?;
        while self.accept("*") {
            let factor = self.factor("a number", depth)?;
            product = self.wide(product.checked_mul(factor), start)?;
        }
        Ok(product)
    }

    /// Reads a factor of a product. The function recurses for parentheses and signs, at most
    /// [`MAX_PARENTHESES`] levels deep.
    fn factor(&mut self, what: &str, depth: usize) -> Result<i128> {
        let start = self.position();
        let bracket = self.accept("(");
        if bracket || self.accept("-") {
            if depth == MAX_PARENTHESES {
                return Err(self.error(
                    self.since(start),
                    format!("parentheses or signs are nested more than {MAX_PARENTHESES} deep"),
                ));
            }
            if !bracket {
                return Ok(-self.factor("a number", depth + 1)?);
            }
            let inner = self.expression("a number", depth + 1)?;
            if !self.accept(")") {
                return Err(self.expected("`)`"));
            }
            return Ok(inner);
        }
        let rest = self.rest();
        let length = rest.bytes().take_while(|&b| b == b'_' || b.is_ascii_digit()).count();
        if length == 0 || rest.starts_with('_') {
            return Err(self.expected(what));
        }
        if rest.starts_with("0x") || rest.starts_with("0X") {
            // The text is a hexadecimal number such as `0x10`, which the grammar does not allow.
            // (`0x10` could also mean 0 copies of 10, but nobody writes that without spaces.)
            return Err(self.expected("a decimal number"));
        }
        let mut value = 0i128;
        for digit in rest[..length].bytes().filter(u8::is_ascii_digit) {
            let next = value.checked_mul(10).and_then(|v| v.checked_add(i128::from(digit - b'0')));
            // The bound is that of `u64`, because -2^63 is written as a minus sign before 2^63, which
            // does not fit in `i64`.
            if next.is_none_or(|v| v > i128::from(u64::MAX)) {
                let span = self.position..self.position + length;
                let digits = &rest[..length.min(40)];
                let more = if length > 40 { "…" } else { "" };
                let detail = format!("{digits}{more} does not fit in an unsigned 64-bit integer");
                return Err(self.error(span, detail));
            }
            value = next.unwrap_or_default();
        }
        self.position += length;
        Ok(value)
    }

    /// Returns an error if the absolute value of an intermediate result is 2^100 or more. Sums of
    /// smaller results do not overflow.
    fn wide(&self, value: Option<i128>, start: usize) -> Result<i128> {
        value.filter(|v| v.unsigned_abs() < 1 << 100).ok_or_else(|| {
            let detail =
                "the absolute value of the sum or product is 2^100 or more; it must be less";
            self.error(self.since(start), detail)
        })
    }
}

/// Returns the text that errors use to describe an argument.
pub(crate) fn what(parameter: &Parameter) -> String {
    let name = parameter.name;
    if parameter.words.is_empty() {
        return format!("a number for `{name}`");
    }
    let words: Vec<&str> = parameter
        .words
        .iter()
        .map(|(word, _)| *word)
        .filter(|word| !word.starts_with("MPI_"))
        .collect();
    let or = if parameter.words_only { "" } else { " or a number" };
    format!("{}{or} for `{name}`", words.join(" or "))
}

/// Returns the number of values of the range that begins at `first`, has steps of `step` (not 0), and
/// ends before `end`.
fn range_length(first: i128, end: i128, step: i128) -> i128 {
    let distance = if step > 0 { end - first } else { first - end };
    if distance <= 0 { 0 } else { (distance - 1) / step.abs() + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::constructors::Kind;

    const PLAIN: Parameter =
        Parameter { name: "n", kind: Kind::Numbers, words: &[("none", -1)], words_only: false };

    fn list(text: &str) -> std::result::Result<Vec<i64>, String> {
        Reader::new(text).numbers(&PLAIN).map_err(|error| error.to_string())
    }

    #[test]
    fn lists() {
        let accept: &[(&str, &[i64])] = &[
            ("[]", &[]),
            ("[ 1 , 2, ]", &[1, 2]),
            ("[0..10 step 4, 3..0 step -1]", &[0, 4, 8, 3, 2, 1]),
            ("[5..5, 5..2]", &[]),
            ("[3 x 8, 2x-1, 0 x 9]", &[8, 8, 8, -1, -1]),
            ("[2 x none, NONE]", &[-1, -1, -1]),
            ("[128*8 - 2*(3 + 1), --4, 1_000]", &[1016, 4, 1000]),
            ("[-9223372036854775808]", &[i64::MIN]),
            ("[9223372036854775806..9223372036854775808]", &[i64::MAX - 1, i64::MAX]),
            ("[1, # one\n 2]", &[1, 2]),
        ];
        for (text, wanted) in accept {
            assert_eq!(list(text).as_deref(), Ok(*wanted), "{text}");
        }
    }

    #[test]
    fn refused_lists() {
        let deep = format!("[{}1]", "(".repeat(100_000));
        let reject: &[(&str, &str)] = &[
            ("", "1:1: expected `[` and the n, found the end of the text"),
            ("[1 2]", "1:4: expected `,` or `]`, found `2`"),
            ("[1, x]", "1:5: expected none or a number for `n`, found `x`"),
            ("[1..]", "1:5: expected the end of the range, found `]`"),
            ("[1..9 step 0]", "1:12: the step of the range must not be 0"),
            ("[0x10]", "1:2: expected a decimal number, found `0x10`"),
            ("[-1 x 5]", "1:2: the number of copies is -1, which is negative"),
            ("[99999999999 x 1]", "1:2: the lists have more than 16777216 entries in total"),
            ("[0..99999999999]", "1:2: the lists have more than 16777216 entries in total"),
            (
                "[9223372036854775808]",
                "1:2: 9223372036854775808 does not fit in a signed 64-bit integer",
            ),
            (
                "[99999999999999999999]",
                "1:2: 99999999999999999999 does not fit in an unsigned 64-bit integer",
            ),
            (
                "[9000000000000000000*9000000000000000000]",
                "1:2: the absolute value of the sum or product is 2^100 or more; it must be less",
            ),
            ("[(1]", "1:4: expected `)`, found `]`"),
            ("[1 +]", "1:5: expected a number, found `]`"),
            ("[1é]", "1:3: expected `,` or `]`, found `é`"),
            (&deep, "1:66: parentheses or signs are nested more than 64 deep"),
        ];
        for (text, wanted) in reject {
            assert_eq!(list(text), Err((*wanted).to_owned()), "{text:.60}");
        }
    }
}
