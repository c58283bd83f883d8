//! Runs every command line in the `sh` blocks of the README and of the guide.
//!
//! - A line must end with exit code 0, or with the code that a comment at its end states: `# ends with
//!   code 3`.
//! - Each line of a `text` block must occur in the output of the last `sh` block before it on the
//!   page; `…` in such a line stands for any text. A page that shows other text uses a block without
//!   a language.
//! - Lines that cannot run in a test are listed in [`NOT_RUN`] with the reason.
//!
//! The commands of a page run in a new folder. In this folder, `target/release` is this build,
//! `engine`, `runtime` and `scripts` are those of the repository, and the C programs of
//! `runtime/examples/c` are copied there. If the page itself shows a C program, that program replaces
//! the example of the same name.

use super::programs::{Scratch, built, shell};
use super::skipped::skipped;
use super::{GUIDE, files, markdown, none, repository, text};
use std::collections::BTreeSet;
use std::path::Path;

/// The beginnings of command lines that no test runs, each with the reason.
const NOT_RUN: &[(&str, &str)] = &[
    ("MPI4PY_BUILD", "the test has no network; scripts/clients installs mpi4py"),
    ("TYPEPACK_BLESS=1 ", "it writes files of the tree"),
    ("cargo ", "the test runs in a build that is finished"),
    ("cd ", "each command of a page runs in a folder of the test"),
    ("export PATH=", "the test has an installed typepack in PATH"),
    ("git ", "the test runs in a clone"),
    ("mdbook ", "the test `book` renders the guide"),
    ("mpiexec -n 2 python", "mpi4py is installed for scripts/clients, which runs the examples"),
    ("mpiexec -n 4 python", "mpi4py is installed for scripts/clients, which runs the examples"),
    ("python", "mpi4py is installed for scripts/clients, which runs the examples"),
    ("scripts/aarch64", "scripts/test runs it"),
    ("scripts/bench", "it measures for minutes"),
    ("scripts/clients", "it takes minutes; CI runs it after scripts/test"),
    ("scripts/demo", "it builds for release; CI runs it after scripts/test"),
    ("scripts/fuzz", "it runs for minutes"),
    (
        "scripts/install",
        "it builds for release; runtime/launcher/tests/prefix.rs installs this build",
    ),
    ("scripts/setup", "it installs packages of the system; scripts/test begins with it"),
    ("scripts/soak", "it runs for an hour"),
    ("scripts/suite", "it fetches MPICH's tests and runs for minutes"),
    ("scripts/test", "it runs this test"),
    ("typepack-bench pack", "it measures for minutes; bench-suite/tests runs it on small sizes"),
    ("typepack-bench peers", "it measures for minutes"),
];

/// Returns the command lines of a block, with continued lines joined, without empty lines and comment
/// lines.
fn lines(block: &str) -> Vec<String> {
    let joined = block.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(String::from).collect()
}

/// Returns the exit code with which a command line must end.
fn wanted_code(line: &str) -> i32 {
    let stated =
        line.split_once("# ends with code ").and_then(|(_, code)| code.trim().parse().ok());
    stated.unwrap_or(0)
}

/// Returns whether `line` matches `pattern`, in which `…` stands for any text.
fn matches(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.trim_end().split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.trim_end().strip_prefix(first) else { return false };
    let mut open = false;
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        open = part.is_empty();
    }
    rest.is_empty() || open
}

/// Runs the commands of one page and adds each difference to `faults`.
fn run(page: &str, not_run: &mut BTreeSet<String>, faults: &mut Vec<String>) {
    let read = markdown::read(&text(page));
    if !read.blocks.iter().any(|block| block.language == "sh") {
        return;
    }
    let scratch = Scratch::new();
    let folder = &scratch.0;
    prepare(folder);
    // The output of the commands in the last `sh` block, if one of them ran.
    let mut ran = false;
    let mut said = String::new();
    for block in &read.blocks {
        let place = format!("{page}:{}", block.line);
        if block.language == "text" && ran {
            for pattern in block.text.lines().filter(|line| !line.trim().is_empty()) {
                if !said.lines().any(|line| matches(pattern, line)) {
                    faults.push(format!("{place}: no line of the output is `{pattern}`:\n{said}"));
                }
            }
        }
        if block.language != "sh" {
            continue;
        }
        said.clear();
        ran = false;
        for line in lines(&block.text) {
            if let Some((what, why)) = NOT_RUN.iter().find(|(what, _)| line.starts_with(what)) {
                not_run.insert(format!("commands that begin with `{}`: {why}", what.trim_end()));
                continue;
            }
            own_program(folder, &line, &read.blocks);
            let done = shell(folder, &line);
            ran = true;
            if done.code != wanted_code(&line) {
                faults.push(format!(
                    "{place}: `{line}` ended with code {}:\n{}",
                    done.code, done.text
                ));
            }
            said += &done.text;
        }
    }
}

/// Puts the files of a clone that commands use into `folder`.
fn prepare(folder: &Path) {
    let link = |target: &Path, name: &str| {
        std::os::unix::fs::symlink(target, folder.join(name)).expect("a link");
    };
    std::fs::create_dir(folder.join("target")).expect("a folder");
    link(built(), "target/release");
    for name in ["engine", "runtime", "scripts"] {
        link(&repository().join(name), name);
    }
    for file in files("runtime/examples/c", ".c") {
        let name = Path::new(&file).file_name().expect("a name");
        std::fs::copy(repository().join(&file), folder.join(name)).expect("a copy");
    }
}

/// Writes the C program that a page shows to the file name that the command `line` compiles.
fn own_program(folder: &Path, line: &str, blocks: &[markdown::Block]) {
    let program = blocks.iter().find(|b| b.language == "c" && b.text.contains("int main("));
    let source = line.split_whitespace().find(|word| word.ends_with(".c") && !word.contains('/'));
    if let (Some(program), Some(source)) = (program, source) {
        std::fs::write(folder.join(source), &program.text).expect("a file");
    }
}

#[test]
fn every_command_of_readme_and_guide_runs() {
    let (mut not_run, mut faults) = (BTreeSet::new(), Vec::new());
    let mut pages = files(GUIDE, ".md");
    pages.extend(["README.md".into(), "runtime/examples/README.md".into()]);
    for page in pages {
        run(&page, &mut not_run, &mut faults);
    }
    for what in not_run {
        skipped(what);
    }
    none("commands of the texts", &faults);
}

#[test]
fn lines_codes_and_patterns_are_read() {
    assert_eq!(lines("a \\\n  b\n\n# c\n  d # e\n"), ["a    b", "d # e"]);
    assert_eq!((wanted_code("false  # ends with code 3"), wanted_code("true # x")), (3, 0));
    for (pattern, line, wanted) in [
        ("a", "a  ", true),
        ("a", "ab", false),
        ("…", "anything", true),
        ("rank … (pid …) ended", "rank 1 (pid 77) ended", true),
        ("rank … (pid …) ended", "rank 1 (pid 77) ended late", false),
        ("a…", "abc", true),
        ("…c", "abc", true),
        ("…c", "abd", false),
    ] {
        assert_eq!(matches(pattern, line), wanted, "{pattern} {line}");
    }
}
