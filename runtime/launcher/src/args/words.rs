//! Splits a file given by `-configfile` into the words of a command line (MPI-5.0 section 11.5).
//!
//! `mod.rs` uses this file. Each line of the file describes one program with its options, like the part of a
//! command line between two colons. A line that begins with `#` is a comment, and a backslash at the end of a
//! line continues the line. As in a shell, a quoted word may contain blanks. Unlike in a shell, variables and
//! patterns are not expanded.

use std::ffi::OsString;

/// Returns the words of the file's text. The words of different lines are separated by the word `:`.
///
/// # Errors
///
/// Returns a short message, which does not include the file's name, if a quote is not closed or if the file
/// contains no program.
pub fn of_file(text: &str) -> Result<Vec<OsString>, String> {
    let mut words: Vec<OsString> = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if line.trim_start().starts_with('#') {
            continue;
        }
        let mut line = line.to_owned();
        while line.ends_with('\\') {
            line.pop();
            match lines.next() {
                Some((_, more)) => line.push_str(more),
                None => break,
            }
        }
        let found =
            split(&line).ok_or_else(|| format!("line {}: a quote is not closed", number + 1))?;
        if found.is_empty() {
            continue;
        }
        if !words.is_empty() {
            words.push(":".into());
        }
        words.extend(found.into_iter().map(OsString::from));
    }
    if words.is_empty() { Err("the file contains no program".into()) } else { Ok(words) }
}

/// Returns the words of one line, or `None` if a quote is not closed.
fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some('"') | None, '\\') => word.get_or_insert_default().extend(letters.next()),
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_programs() {
        let text = "# two programs\n-n 1 ./a x\n\n  -n 2 \\\n-wdir /tmp ./b 'c d' \"e\\\"f\" ''\n";
        let words = of_file(text).expect("words");
        let wanted =
            ["-n", "1", "./a", "x", ":", "-n", "2", "-wdir", "/tmp", "./b", "c d", "e\"f", ""];
        assert_eq!(words, wanted);
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!(of_file("# nothing\n\n"), Err("the file contains no program".into()));
        assert_eq!(of_file("-n 1 a\n-n 1 'b\n"), Err("line 2: a quote is not closed".into()));
    }
}
