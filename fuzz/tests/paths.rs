//! Checks that the paths in Markdown files and in the heads of source files exist.
//!
//! A word counts as a path of the repository if it is written in backticks, or if it is the first word
//! on a line of a fenced block without a language or with the language "text" (such blocks show maps of
//! folders). The word must consist of the letters of file names, `/`, `*` and `{a,b}`, and it must also
//!
//! - begin with `../`, or
//! - end in `.rs`, `.md`, `.toml`, `.csv`, `.c`, `.h` or `.py`, or
//! - begin with a folder at the repository's top and a slash, or
//! - be in a block and end with a slash.
//!
//! A path may omit its leading folders. A path without a slash, or one that begins with `src/`,
//! `tests/`, `examples/` or `benches/`, must exist in the crate of the file that names it (for the
//! guide, and for a file outside all crates such as `README.md`: in any crate). Any other path with a
//! slash may exist in any crate. A path that begins with `../` starts at the folder of the file that
//! names it. [`FOREIGN`] lists words that look like paths but name no files of the repository.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Words that name files of other projects, or files that commands write.
const FOREIGN: &[&str] = &["fuzz/artifacts/", "fuzz/corpus/", "mpi.h", "mpi_abi.h"];

/// Endings of words that count as paths.
const ENDINGS: &[&str] = &[".rs", ".md", ".toml", ".csv", ".c", ".h", ".py"];

/// Returns all files and folders of the repository, relative to its top. Folders have a slash at the
/// end.
fn entries(root: &Path) -> BTreeSet<String> {
    fn visit(folder: &Path, prefix: &str, entries: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let entry = entry.expect("an entry");
            let name = entry.file_name().into_string().expect("a name in UTF-8");
            if ["target", ".git"].contains(&name.as_str()) {
                continue;
            }
            let place = format!("{prefix}{name}");
            if entry.file_type().expect("its type").is_dir() {
                visit(&entry.path(), &format!("{place}/"), entries);
                entries.insert(format!("{place}/"));
            } else {
                entries.insert(place);
            }
        }
    }
    let mut all = BTreeSet::new();
    visit(root, "", &mut all);
    all
}

/// Expands `a/{b,c}.rs` to `a/b.rs` and `a/c.rs`.
fn expand(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let Some((inside, after)) = rest.split_once('}') else { return vec![path.to_owned()] };
    let one = |choice: &str| expand(&format!("{before}{}{after}", choice.trim()));
    inside.split(',').flat_map(one).collect()
}

/// Returns true if `name` matches `pattern`, in which `*` stands for any text without a slash.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len())
                .filter(|&end| rest.is_char_boundary(end) && !rest[..end].contains('/'))
                .any(|end| matches(after, &rest[end..]))
        }),
    }
}

/// Converts a path that begins with `../`, as `file` names it, to a path from the repository's top.
/// Returns `None` for every other path, and for a path that leaves the repository.
fn from_top(file: &str, path: &str) -> Option<String> {
    path.starts_with("../").then_some(())?;
    let mut folders: Vec<&str> = file.split('/').collect();
    folders.pop();
    let mut rest = path;
    while let Some(below) = rest.strip_prefix("../") {
        folders.pop()?;
        rest = below;
    }
    folders.push(rest);
    Some(folders.join("/"))
}

/// Returns true if `path`, which the text of `file` mentions, exists. `folder` is the folder of the
/// crate that contains `file`.
fn is_there(entries: &BTreeSet<String>, (file, folder): (&str, &str), path: &str) -> bool {
    if !path.starts_with("../") {
        return exists(entries, folder, path);
    }
    from_top(file, path).is_some_and(|path| {
        entries.iter().any(|entry| {
            matches(&path, entry)
                || entry.strip_suffix('/').is_some_and(|name| matches(&path, name))
        })
    })
}

/// Returns true if `path` exists below `folder`; the path may omit its leading folders. A path with a
/// slash may exist anywhere in the repository, unless it begins with a folder that every crate has.
fn exists(entries: &BTreeSet<String>, folder: &str, path: &str) -> bool {
    let wanted = path.trim_start_matches("./");
    let is = |name: &str| {
        matches(wanted, name) || name.strip_suffix('/').is_some_and(|name| matches(wanted, name))
    };
    let own = ["src/", "tests/", "examples/", "benches/"].iter().any(|own| wanted.starts_with(own));
    let single = !wanted.trim_end_matches('/').contains('/');
    let folder = if own || single { folder } else { "" };
    entries.iter().any(|entry| {
        let Some(below) = entry.strip_prefix(folder) else { return is(entry) };
        if own && !folder.is_empty() {
            return is(below);
        }
        let inner = below.trim_end_matches('/').match_indices('/').map(|(at, _)| &below[at + 1..]);
        std::iter::once(below).chain(inner).any(is)
    })
}

/// Returns true if a word looks like a path of the repository.
fn is_path(word: &str, tops: &BTreeSet<&str>, in_block: bool) -> bool {
    let letters = |letter: char| letter.is_ascii_alphanumeric() || "_-./*{},".contains(letter);
    let name = word.trim_end_matches('/');
    let last = name.rsplit('/').next().unwrap_or(name);
    !word.is_empty()
        && word.chars().all(letters)
        && (word.starts_with("../") || !word.starts_with(['.', '/', '*', '-']))
        && !FOREIGN.contains(&word)
        && (word.starts_with("../")
            || ENDINGS.iter().any(|ending| last.len() > ending.len() && last.ends_with(ending))
            || word.split_once('/').is_some_and(|(top, _)| tops.contains(top))
            || in_block && word.ends_with('/'))
}

/// Returns the paths that a text names, each with the number of its line.
fn named<'a>(text: &'a str, tops: &BTreeSet<&str>) -> Vec<(usize, &'a str)> {
    let mut found = Vec::new();
    // The language of the fenced block around the line; `None` outside blocks.
    let mut block: Option<&str> = None;
    for (index, line) in text.lines().enumerate() {
        let mut take = |word: &'a str, in_block: bool| {
            if is_path(word, tops, in_block) {
                found.push((index + 1, word));
            }
        };
        if let Some(language) = line.trim_start().strip_prefix("```") {
            block = if block.is_some() { None } else { Some(language.trim()) };
        } else if block.is_some_and(|language| ["", "text"].contains(&language)) {
            take(line.split_whitespace().next().unwrap_or(""), true);
        } else if block.is_none() {
            line.split('`').skip(1).step_by(2).for_each(|word| take(word, false));
        }
    }
    found
}

/// Returns the head of a source file, the comment with `//!`. Other lines become empty lines, so that
/// line numbers stay right.
fn head(source: &str) -> String {
    let lines = source.lines().map(|line| line.trim_start().strip_prefix("//!").unwrap_or(""));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the folder of the crate to which a file belongs, with a slash at the end; an empty text if
/// the file belongs to no crate.
fn folder<'a>(entries: &BTreeSet<String>, file: &'a str) -> &'a str {
    let mut folders = file.rmatch_indices('/').map(|(at, _)| &file[..=at]);
    folders.find(|folder| entries.contains(&format!("{folder}Cargo.toml"))).unwrap_or("")
}

#[test]
fn every_path_that_is_named_exists() {
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let entries = entries(&root);
    let tops = entries.iter().filter_map(|entry| entry.strip_suffix('/'));
    let tops: BTreeSet<&str> = tops.filter(|entry| !entry.contains('/')).collect();
    let mut faults = Vec::new();
    for file in entries.iter().filter(|file| file.ends_with(".md") || file.ends_with(".rs")) {
        let text = std::fs::read_to_string(root.join(file)).expect("a text in UTF-8");
        let text = if file.ends_with(".rs") { head(&text) } else { text };
        // The guide describes the whole tree, so its paths may lie in any crate.
        let folder = if file.starts_with("runtime/guide/") { "" } else { folder(&entries, file) };
        for (line, path) in named(&text, &tops) {
            for path in expand(path).iter().filter(|path| !is_there(&entries, (file, folder), path))
            {
                faults.push(format!("{file}:{line}: `{path}`"));
            }
        }
    }
    assert!(faults.is_empty(), "{} paths that do not exist:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn paths_are_told_from_other_words() {
    let tops = BTreeSet::from(["engine", "scripts"]);
    let text = "See `engine/src/a.rs`, `b.rs`, `x/y`, `scripts/test`, `--flag`, `*.csv`, `../c/d.rs`.\n\
                ```\nroom/   `c.rs`\nplain word\nfile.rs what\n```\n```sh\ncd d.rs\n```\n";
    let paths = ["engine/src/a.rs", "b.rs", "scripts/test", "../c/d.rs", "room/", "file.rs"];
    let found: Vec<&str> = named(text, &tops).into_iter().map(|(_, path)| path).collect();
    assert_eq!(found, paths);
    assert_eq!(named(text, &tops)[4].0, 3);
}

#[test]
fn a_path_that_is_gone_is_found() {
    let entries = [
        "engine/",
        "engine/Cargo.toml",
        "engine/src/",
        "engine/src/plan/mod.rs",
        "engine/src/plan/",
    ];
    let entries: BTreeSet<String> = entries.into_iter().map(String::from).collect();
    for there in
        ["plan/mod.rs", "mod.rs", "plan", "plan/", "engine/src/plan", "src/*/mod.rs", "src/pl*"]
    {
        assert!(exists(&entries, "engine/", there), "{there}");
    }
    for gone in ["plan.rs", "lan/mod.rs", "jit/src", "src/mod.rs", "src/*.rs"] {
        assert!(!exists(&entries, "engine/", gone), "{gone}");
    }
    assert!(exists(&entries, "jit/", "plan/mod.rs") && !exists(&entries, "jit/", "mod.rs"));
    assert!(exists(&entries, "engine/", "src/plan/") && !exists(&entries, "jit/", "src/plan/"));
    let file = ("engine/src/plan/mod.rs", "engine/");
    for there in
        ["../plan/mod.rs", "../plan/", "../../Cargo.toml", "../../src/plan", "../plan/*.rs"]
    {
        assert!(is_there(&entries, file, there), "{there}");
    }
    // The first path names a folder that does not exist, and the last path leaves the repository.
    for gone in ["../pair/crossed.rs", "../mod.rs", "../Cargo.toml", "../../../../x.rs"] {
        assert!(!is_there(&entries, file, gone), "{gone}");
    }
    assert!(is_there(&entries, file, "mod.rs") && !is_there(&entries, file, "plan.rs"));
    assert_eq!(expand("a/{b,c}.rs"), ["a/b.rs", "a/c.rs"]);
    assert_eq!(folder(&entries, "engine/src/plan/mod.rs"), "engine/");
    assert_eq!(folder(&entries, "README.md"), "");
}
