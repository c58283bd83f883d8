//! Tests that no `// SAFETY:` text occurs too often in the Rust sources.
//!
//! A text that fits many places gives no reason for any of them.

use super::{files, none, text};
use std::collections::BTreeMap;
use typepack_test_support::source_texts;

/// Maximum number of places in the tree that may have the same `SAFETY` text.
const TIMES: usize = 5;

/// Returns the `SAFETY` texts of a source, each with its line.
fn safety(source: &str) -> Vec<(usize, String)> {
    let comments = source_texts::read(source).comments;
    comments
        .into_iter()
        .filter_map(|comment| {
            let at = comment.words.find("SAFETY:")?;
            Some((comment.line, comment.words[at..].to_owned()))
        })
        .collect()
}

#[test]
fn no_safety_text_stands_too_often() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files("", ".rs") {
        for (line, words) in safety(&text(&file)) {
            places.entry(words).or_default().push(format!("{file}:{line}"));
        }
    }
    let mut often: Vec<_> = places.iter().filter(|(_, places)| places.len() > TIMES).collect();
    often.sort_by_key(|(_, places)| std::cmp::Reverse(places.len()));
    let faults: Vec<String> = often
        .iter()
        .map(|(words, places)| format!("{} times: {words} ({} …)", places.len(), places[0]))
        .collect();
    none(&format!("SAFETY texts stand more than {TIMES} times"), &faults);
}

#[test]
fn texts_are_found_in_sources() {
    let source = "//! Head\n//! of the file.\n\nfn f() -> &'static str {\n    // SAFETY: a,\n    //   b.\n    \
                  g('\"', b'\\'', \"no // comment\"); // after\n    /// Doc.\n    // Other.\n    \
                  Err(format!(\"two \\\n        words\"))\n}\nlet r = r#\"raw \"text\" //\"#; /* // */\n";
    let texts = source_texts::read(source);
    let comments: Vec<(usize, &str)> =
        texts.comments.iter().map(|text| (text.line, text.words.as_str())).collect();
    let wanted =
        [(1, "Head of the file."), (5, "SAFETY: a, b."), (7, "after"), (8, "Doc."), (9, "Other.")];
    assert_eq!(comments, wanted);
    let literals: Vec<(usize, &str)> =
        texts.literals.iter().map(|text| (text.line, text.words.as_str())).collect();
    assert_eq!(literals, [(7, "no // comment"), (10, "two words"), (13, "raw \"text\" //")]);
    assert!(texts.literals[1].before.contains("Err("), "{:?}", texts.literals[1]);
    assert_eq!(safety(source), [(5, "SAFETY: a, b.".to_owned())]);
}
