//! Defines the error for a text that is not a type. The error contains the position in the text.
//!
//! `reader.rs`, `parse.rs` and `file.rs` make these errors. The one-line form states the line and the
//! column. [`ParseError::render`] also draws the line, with carets below the position.

use memchr::{memchr, memchr_iter, memrchr};
use std::fmt;
use std::ops::Range;

/// The error for a text that is not a type: what is wrong, and where.
#[derive(Clone, PartialEq, Eq)]
pub struct ParseError {
    pub(crate) message: String,
    pub(crate) span: Range<usize>,
    line: usize,
    column: usize,
    refusal: Option<crate::Error>,
}

/// Maximum number of characters of the line that [`ParseError::render`] shows before the position, and
/// after it.
const SHOWN: usize = 60;

impl ParseError {
    pub(crate) fn new(text: &str, span: Range<usize>, message: impl Into<String>) -> Self {
        let before = &text[..span.start];
        Self {
            message: message.into(),
            line: memchr_iter(b'\n', before.as_bytes()).count() + 1,
            column: last_line(before).chars().count() + 1,
            span,
            refusal: None,
        }
    }

    /// Makes the error for a constructor that refused its arguments.
    pub(crate) fn refused(text: &str, span: Range<usize>, name: &str, error: crate::Error) -> Self {
        let mut refused = Self::new(text, span, format!("{name}: {error}"));
        refused.refusal = Some(error);
        refused
    }

    /// Returns the range of the bytes that are wrong. If the text ends too early, the range is empty
    /// and lies at the end of the text.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Returns the number of the line, counted from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Returns the column: the number of the character within the line, counted from 1.
    pub fn column(&self) -> usize {
        self.column
    }

    /// Returns the message without the position.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the engine's error if a constructor refused its arguments; `None` if the text itself
    /// was wrong.
    pub fn refusal(&self) -> Option<&crate::Error> {
        self.refusal.as_ref()
    }

    /// Returns the message, the wrong line of the text, and a line with carets below the position.
    /// `text` must be the text that was parsed.
    ///
    /// ```text
    /// 1:15: expected `,` and then `stride`, found `1024`
    ///   vector(128, 1 1024, double)
    ///                 ^^^^
    /// ```
    pub fn render(&self, text: &str) -> String {
        let start = self.span.start.min(text.len());
        let (Some(before), Some(rest)) = (text.get(..start), text.get(start..)) else {
            return self.to_string();
        };
        let (before, rest) = (last_line(before), first_line(rest));
        let carets = first_line(text.get(self.span.clone()).unwrap_or_default()).chars().count();
        let skipped = before.chars().count().saturating_sub(SHOWN);
        let mut line: String = before.chars().skip(skipped).map(plain).collect();
        if skipped > 0 {
            line.insert(0, '…');
        }
        let indent = line.chars().count();
        line.extend(rest.chars().take(SHOWN).map(plain));
        if rest.chars().count() > SHOWN {
            line.push('…');
        }
        let carets = "^".repeat(carets.clamp(1, SHOWN));
        format!("{self}\n  {}\n  {:indent$}{carets}", line.trim_end(), "")
    }
}

/// Returns `text` up to its first line feed, or all of it.
pub(crate) fn first_line(text: &str) -> &str {
    &text[..memchr(b'\n', text.as_bytes()).unwrap_or(text.len())]
}

/// Returns the part of `text` after its last line feed.
fn last_line(text: &str) -> &str {
    &text[memrchr(b'\n', text.as_bytes()).map_or(0, |at| at + 1)..]
}

/// Replaces a control character with a space, because a control character would shift the carets.
fn plain(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl fmt::Debug for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ParseError {}

#[cfg(test)]
mod tests {
    use crate::text::parse;

    fn rendered(text: &str) -> String {
        parse(text).unwrap_err().render(text)
    }

    #[test]
    fn carets_stand_below_the_place() {
        assert_eq!(
            rendered("vector(128, 1 1024, double)"),
            "1:15: expected `,` and then `stride`, found `1024`\n  \
               vector(128, 1 1024, double)\n                \
               ^^^^"
        );
        assert_eq!(
            rendered("# comment\ncontiguous(3,\n\tbouble)"),
            "3:2: `bouble` is not a type; did you mean `double`?\n   bouble)\n   ^^^^^^"
        );
        assert_eq!(
            rendered("dup(int"),
            "1:8: expected `)` after the 1 argument of dup, found the end of the text\n  \
             dup(int\n         ^"
        );
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let text = format!("contiguous({}, oops)", "1 + ".repeat(1000) + "1");
        let lines: Vec<String> = rendered(&text).lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].starts_with("  …1 + ") || lines[1].starts_with("  …"), "{}", lines[1]);
        assert!(lines[1].chars().count() < 130);
        let at = lines[2].chars().position(|c| c == '^').unwrap();
        assert_eq!(lines[1].chars().skip(at).take(4).collect::<String>(), "oops");
    }
}
