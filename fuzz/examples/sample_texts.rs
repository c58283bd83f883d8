//! Prints a random sample of the project's texts for a reader to judge: comments of the Rust sources,
//! and error messages of the Rust sources and of the scripts.
//!
//! `cargo run -p typepack-fuzz --example sample_texts -- [SEED [COMMENTS [ERRORS]]]`
//!
//! Without arguments the seed is the hash of the commit that is checked out. So a new commit has a new
//! sample, and a reader can repeat the sample of an old commit. By default the sample has 60 comments and
//! 30 error messages.

use std::path::Path;
use std::process::{Command, ExitCode};
use typepack_test_support::random::Random;
use typepack_test_support::source_texts::{self, Text};

/// If the code before a string literal contains one of these words, the literal is an error message.
const ERRORS: &[&str] = &[
    "Err(",
    "err(",
    "Error",
    "Failure",
    "Refusal",
    "error",
    "expect(",
    "panic!",
    "bad(",
    "detail",
    "refuse",
    "wrong",
    "fault",
    "eprintln!",
    "failed",
    "bail",
    "Trouble",
    "missing",
    "Unusable",
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| match arguments.get(at) {
        None => Some(default),
        Some(text) => text.parse().ok(),
    };
    let (Some(comments), Some(errors), true) = (number(1, 60), number(2, 30), arguments.len() < 4)
    else {
        eprintln!("sample_texts: usage: sample_texts [SEED [COMMENTS [ERRORS]]]");
        return ExitCode::from(2);
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let Some(seed) = arguments.first().cloned().or_else(|| commit(&root)) else {
        eprintln!("sample_texts: git names no commit here; give a SEED");
        return ExitCode::FAILURE;
    };
    // The random generator starts from the FNV-1a hash of the seed's bytes.
    let start = seed.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mut random = Random(start);
    let mut all = (Vec::new(), Vec::new());
    sources(&root, &mut |path| {
        let shown = path.strip_prefix(&root).unwrap_or(path).display().to_string();
        let Ok(source) = std::fs::read_to_string(path) else { return };
        let texts = source_texts::read(&source);
        let long = |text: &Text| text.words.split(' ').count() > 3;
        all.0.extend(texts.comments.into_iter().filter(long).map(|text| (shown.clone(), text)));
        // Skips the error messages of tests, examples and benchmarks. Unit tests are at the end of a
        // file, after `#[cfg(test)]`; other tests, examples and benchmarks have folders of their own.
        let tests = source.find("#[cfg(test)]").unwrap_or(source.len());
        let tests = source[..tests].matches('\n').count();
        let folders = ["tests", "examples", "benches"];
        if !path.components().any(|part| folders.iter().any(|folder| part.as_os_str() == *folder)) {
            let is_error = |text: &Text| {
                long(text) && text.line <= tests && ERRORS.iter().any(|e| text.before.contains(e))
            };
            all.1.extend(texts.literals.into_iter().filter(is_error).map(|t| (shown.clone(), t)));
        }
    });
    scripts(&root, &mut all.1);
    println!("seed {seed}: {comments} of {} comments", all.0.len());
    show(&draw(&mut random, all.0, comments));
    println!("\nseed {seed}: {errors} of {} error messages", all.1.len());
    show(&draw(&mut random, all.1, errors));
    ExitCode::SUCCESS
}

/// Returns the hash of the commit that is checked out.
fn commit(root: &Path) -> Option<String> {
    let done = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root).output().ok()?;
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).trim().to_owned())
}

/// Calls `each` with the path of every Rust source below `folder`, in alphabetical order.
fn sources(folder: &Path, each: &mut impl FnMut(&Path)) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            sources(&path, each);
        } else if name.ends_with(".rs") {
            each(&path);
        }
    }
}

/// Adds to `errors` each line of the scripts in `scripts/` in which `echo` prints to standard error.
fn scripts(root: &Path, errors: &mut Vec<(String, Text)>) {
    let Ok(entries) = std::fs::read_dir(root.join("scripts")) else { return };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let source = std::fs::read_to_string(&path).unwrap_or_default();
        let lines = source.lines().enumerate();
        for (index, line) in lines.filter(|(_, line)| line.contains("echo") && line.contains(">&2"))
        {
            let text = Text {
                line: index + 1,
                words: source_texts::words(line),
                source: line.to_owned(),
                before: "echo".into(),
            };
            errors.push((shown.clone(), text));
        }
    }
}

/// Returns `count` randomly drawn entries of `all`, each at most once. Returns all entries if `all` has
/// fewer than `count`.
fn draw<T>(random: &mut Random, mut all: Vec<T>, count: usize) -> Vec<T> {
    let mut drawn = Vec::new();
    while drawn.len() < count && !all.is_empty() {
        let at = random.below(all.len() as u64) as usize;
        drawn.push(all.swap_remove(at));
    }
    drawn
}

fn show(texts: &[(String, Text)]) {
    for (number, (path, text)) in texts.iter().enumerate() {
        println!("\n{}. {path}:{}", number + 1, text.line);
        for line in text.source.lines() {
            println!("    {}", line.trim());
        }
    }
}
