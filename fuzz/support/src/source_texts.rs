//! Finds the comments and string literals of a Rust source file, each with its line.
//!
//! The tests in `fuzz/tests/texts` and the example `sample_texts` read sources with this scanner. A
//! parser such as `syn` would drop ordinary comments.

/// A piece of text in a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The first line of the text, counted from 1.
    pub line: usize,
    /// The words of the text, without comment marks and quotes, separated by single spaces.
    pub words: String,
    /// The text exactly as it is in the source.
    pub source: String,
    /// For a literal, the code before it in the same statement. For a comment, its mark (`//`, `///` or
    /// `//!`).
    pub before: String,
}

/// The texts of one file.
#[derive(Debug, Default)]
pub struct Texts {
    /// The line comments. Neighbouring lines with the same mark form one comment.
    pub comments: Vec<Text>,
    /// The string literals, without their line continuations.
    pub literals: Vec<Text>,
}

/// Returns `text` with each run of white space replaced by one space.
pub fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Finds the comments and string literals of `source`.
pub fn read(source: &str) -> Texts {
    let mut texts = Texts::default();
    let mut rest = source;
    let mut line = 1;
    // The code since the last `;`, `{` or `}`.
    let mut statement = String::new();
    // The last line of the last comment, or `None` if that comment has been followed by anything but
    // white space.
    let mut joined: Option<usize> = None;
    while let Some(first) = rest.chars().next() {
        let taken = if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            comment(&mut texts.comments, &rest[..end], line, &mut joined);
            end
        } else if rest.starts_with("/*") {
            joined = None;
            rest.find("*/").map_or(rest.len(), |at| at + 2)
        } else if let Some((length, inner)) = string(rest) {
            joined = None;
            let inner = resolved(inner);
            texts.literals.push(Text {
                line,
                words: words(&inner),
                source: rest[..length].to_owned(),
                before: std::mem::take(&mut statement) + "\"\"",
            });
            statement.clone_from(&texts.literals[texts.literals.len() - 1].before);
            length
        } else if first == '\'' {
            joined = None;
            character(rest)
        } else {
            if !first.is_whitespace() {
                joined = None;
            }
            statement.push(first);
            if [';', '{', '}'].contains(&first) {
                statement.clear();
            }
            first.len_utf8()
        };
        line += rest[..taken].matches('\n').count();
        rest = &rest[taken..];
    }
    texts
}

/// Adds one line of a comment. Appends the line to the last comment if it continues that comment;
/// otherwise begins a new comment.
fn comment(comments: &mut Vec<Text>, text: &str, line: usize, joined: &mut Option<usize>) {
    let mark = ["//!", "///", "//"].into_iter().find(|mark| text.starts_with(mark)).unwrap_or("//");
    let inner = &text[mark.len()..];
    match comments.last_mut() {
        Some(last) if *joined == Some(line - 1) && last.before == mark => {
            last.words = words(&format!("{} {inner}", last.words));
            last.source = format!("{}\n{text}", last.source);
        }
        _ => comments.push(Text {
            line,
            words: words(inner),
            source: text.to_owned(),
            before: mark.to_owned(),
        }),
    }
    *joined = Some(line);
}

/// Returns the length of the string literal at the start of `rest`, and the text between its quotes.
/// Returns `None` if `rest` does not begin with a string literal.
fn string(rest: &str) -> Option<(usize, &str)> {
    let prefix = rest.len() - rest.trim_start_matches(['b', 'c', 'r']).len();
    let (raw, after) = (rest[..prefix].contains('r'), &rest[prefix..]);
    if prefix > 2 {
        return None;
    }
    if raw {
        let hashes = after.len() - after.trim_start_matches('#').len();
        let inner = after[hashes..].strip_prefix('"')?;
        let close = format!("\"{}", "#".repeat(hashes));
        let end = inner.find(&close)?;
        return Some((prefix + hashes + 1 + end + close.len(), &inner[..end]));
    }
    let inner = after.strip_prefix('"')?;
    let mut escaped = false;
    for (at, letter) in inner.char_indices() {
        if letter == '"' && !escaped {
            return Some((prefix + 1 + at + 1, &inner[..at]));
        }
        escaped = letter == '\\' && !escaped;
    }
    None
}

/// Returns a literal's text without line continuations (`\` at the end of a line and the white space
/// after it).
fn resolved(inner: &str) -> String {
    let mut parts = inner.split("\\\n");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.trim_start())
}

/// Returns the length of the character literal at the start of `rest`, or 1 for the quote of a
/// lifetime.
fn character(rest: &str) -> usize {
    let mut letters = rest.char_indices().skip(1);
    match letters.next() {
        Some((_, '\\')) => {
            // Skips the letter after the backslash, because that letter may itself be a quote.
            let _escaped = letters.next();
            letters.find(|(_, letter)| *letter == '\'').map_or(rest.len(), |(at, _)| at + 1)
        }
        Some((at, letter)) if rest[at + letter.len_utf8()..].starts_with('\'') => {
            at + letter.len_utf8() + 1
        }
        _ => 1,
    }
}
