//! Runs every command line in the `sh` blocks of the README, of CONTRIBUTING, of the guide and of
//! `runtime/examples/README.md`.
//!
//! - A line must end with exit code 0, or with the code that a comment at its end states: `# ends with
//!   code 3`. If the comment is `# prints TEXT`, one line of the output must be TEXT.
//! - Each line of a `text` block must occur in the output of the last `sh` block before it on the
//!   page; `…` in such a line, and in TEXT, stands for any text. A page that shows other text uses a
//!   block without a language.
//! - Lines that cannot run here, for example because they take minutes, need a network, or write files
//!   of the tree, are listed in [`ELSEWHERE`] with the script that runs them. The test checks that the
//!   script contains the command and that CI runs the script.
//!
//! The commands of a page run in a new folder, which is also their home. In this folder,
//! `target/release` is this build, `engine`, `runtime`, `scripts`, `Cargo.toml` and the licences are those of the
//! repository, and the C programs of `runtime/examples/c` are copied there. If the page itself shows a
//! C program, that program replaces the example of the same name.

use super::programs::{Scratch, built, shell};
use super::{GUIDE, files, markdown, none, repository, text};
use std::collections::BTreeSet;
use std::path::Path;
use typepack_test_support::skipped::skipped;

/// The script that CI runs.
const CI: &str = ".ci/run";

/// Command lines that a script runs instead of this test.
struct Elsewhere {
    /// The text with which these lines begin.
    begin: &'static str,
    /// The reason why this test does not run them.
    why: &'static str,
    /// The script.
    script: &'static str,
    /// The text in the script that has the same effect. `None` if the script contains each line
    /// verbatim.
    equivalent: Option<&'static str>,
}

const ELSEWHERE: &[Elsewhere] = &[
    Elsewhere {
        begin: ". ~/mpi4py/",
        why: "only the environment of mpi4py needs it",
        script: "scripts/clients",
        equivalent: Some(". \"$venv/bin/activate\""),
    },
    Elsewhere {
        begin: "CFLAGS=-O1 MPI4PY_BUILD_MPIABI=1 ",
        why: "it needs a network the first time",
        script: "scripts/clients",
        equivalent: Some(
            "MPI4PY_BUILD_MPIABI=1 MPI4PY_BUILD_MPICC=mpicc pip install --no-binary mpi4py mpi4py==4.1.2",
        ),
    },
    Elsewhere {
        begin: "TYPEPACK_BLESS=1 cargo test ",
        why: "it writes files of the tree; the script runs the same test, which then only compares",
        script: "scripts/test",
        equivalent: Some("cargo test \"${workspace[@]}\""),
    },
    Elsewhere {
        begin: "cargo build --release",
        why: "it builds for minutes; the script builds the same programs without optimisation",
        script: "scripts/test",
        equivalent: Some("cargo build \"${workspace[@]}\" --lib --bins --examples"),
    },
    Elsewhere {
        begin: "cargo clippy ",
        why: "it checks for minutes",
        script: CI,
        equivalent: None,
    },
    Elsewhere {
        begin: "cargo fmt --all",
        why: "it writes files of the tree",
        script: CI,
        equivalent: Some("cargo fmt --all --check"),
    },
    Elsewhere {
        begin: "cargo test -p ",
        why: "it builds again with the features of one crate; the script tests all crates",
        script: "scripts/test",
        equivalent: Some("cargo test \"${workspace[@]}\""),
    },
    Elsewhere {
        begin: "mpiexec -n 2 python ",
        why: "it needs mpi4py",
        script: "scripts/clients",
        equivalent: None,
    },
    Elsewhere {
        begin: "mpiexec -n 4 python ",
        why: "it needs mpi4py",
        script: "scripts/clients",
        equivalent: None,
    },
    Elsewhere {
        begin: "python -c ",
        why: "it needs numpy",
        script: "scripts/clients",
        equivalent: None,
    },
    Elsewhere {
        begin: "python3 -m venv ",
        why: "only mpi4py needs it",
        script: "scripts/clients",
        equivalent: Some("\"$python\" -m venv \"$venv\""),
    },
    Elsewhere {
        begin: "scripts/demo",
        why: "it builds for release",
        script: CI,
        equivalent: Some("run scripts/demo --quick"),
    },
    Elsewhere {
        begin: "scripts/setup",
        why: "it may install packages of the system",
        script: "scripts/test",
        equivalent: Some("scripts/setup --tests"),
    },
    Elsewhere {
        begin: "scripts/test",
        why: "it runs this test",
        script: CI,
        equivalent: Some("run scripts/test"),
    },
];

/// The beginning of a command line, and the text that replaces it. The replacement installs the build
/// that already exists instead of building again.
const INSTEAD: (&str, &str) = (
    "scripts/install --prefix ~/opt/typepack",
    "scripts/install --prefix ~/opt/typepack --from target/release",
);

/// Returns whether a line of a script, other than a comment, contains `wanted`.
fn contains(script: &str, wanted: &str) -> bool {
    let lines = script.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    lines.map(command).any(|line| line.contains(wanted))
}

impl Elsewhere {
    /// Returns what is wrong with leaving `line` to the script; `None` if the script contains the
    /// command and CI runs the script.
    fn fault(&self, line: &str) -> Option<String> {
        let wanted = self.equivalent.unwrap_or(command(line));
        if !contains(&text(self.script), wanted) {
            return Some(format!("{} does not contain `{wanted}`", self.script));
        }
        let run = format!("run {}", self.script);
        (self.script != CI && !contains(&text(CI), &run))
            .then(|| format!("{CI} does not contain `{run}`"))
    }

    /// Returns the sentence for the list of skipped tests; `None` if `scripts/test`, which prints the
    /// list, has run the commands.
    fn skip(&self) -> Option<String> {
        let Self { begin, why, script, equivalent } = self;
        let how = equivalent.map_or_else(|| "them".into(), |text| format!("`{text}`"));
        (*script != "scripts/test").then(|| {
            format!("commands that begin with `{}`: {why}; {script} runs {how}", begin.trim_end())
        })
    }
}

/// Returns a command line without the comment at its end.
fn command(line: &str) -> &str {
    line.split(" #").next().unwrap_or(line).trim_end()
}

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

/// Returns the line that a command must print, if the comment at its end states one.
fn wanted_line(line: &str) -> Option<&str> {
    line.split_once("# prints ").map(|(_, text)| text.trim())
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

/// Runs the commands of one page and adds each difference to `faults`. Also adds to `needed` the index
/// in [`ELSEWHERE`] of every entry that the page needs.
fn run(page: &str, needed: &mut BTreeSet<usize>, faults: &mut Vec<String>) {
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
            if let Some(at) = ELSEWHERE.iter().position(|e| line.starts_with(e.begin)) {
                needed.insert(at);
                let fault = ELSEWHERE[at].fault(&line);
                faults.extend(fault.map(|fault| format!("{place}: `{line}`: {fault}")));
                continue;
            }
            own_program(folder, &line, &read.blocks);
            let done = shell(folder, &line.replacen(INSTEAD.0, INSTEAD.1, 1));
            ran = true;
            if done.code != wanted_code(&line) {
                faults.push(format!(
                    "{place}: `{line}` ended with code {}:\n{}",
                    done.code, done.text
                ));
            }
            if let Some(wanted) = wanted_line(&line)
                && !done.text.lines().any(|line| matches(wanted, line))
            {
                faults.push(format!("{place}: `{line}` printed:\n{}", done.text));
            }
            said += &done.text;
        }
    }
}

/// Prepares `folder`: puts into it the files of the repository that the commands use.
fn prepare(folder: &Path) {
    let link = |target: &Path, name: &str| {
        std::os::unix::fs::symlink(target, folder.join(name)).expect("a link");
    };
    std::fs::create_dir(folder.join("target")).expect("a folder");
    link(built(), "target/release");
    for name in ["engine", "runtime", "scripts", "Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT"] {
        link(&repository().join(name), name);
    }
    for file in files("runtime/examples/c", ".c") {
        let name = Path::new(&file).file_name().expect("a name");
        std::fs::copy(repository().join(&file), folder.join(name)).expect("a copy");
    }
}

/// Writes the C program that a page shows to the file that the command `line` compiles.
fn own_program(folder: &Path, line: &str, blocks: &[markdown::Block]) {
    let program = blocks.iter().find(|b| b.language == "c" && b.text.contains("int main("));
    let source = line.split_whitespace().find(|word| word.ends_with(".c") && !word.contains('/'));
    if let (Some(program), Some(source)) = (program, source) {
        std::fs::write(folder.join(source), &program.text).expect("a file");
    }
}

#[test]
fn every_command_of_the_texts_runs() {
    let (mut needed, mut faults) = (BTreeSet::new(), Vec::new());
    let mut pages = files(GUIDE, ".md");
    pages.extend(["README.md", "CONTRIBUTING.md", "runtime/examples/README.md"].map(String::from));
    for page in pages {
        run(&page, &mut needed, &mut faults);
    }
    for (at, elsewhere) in ELSEWHERE.iter().enumerate() {
        if !needed.contains(&at) {
            faults.push(format!("no command begins with `{}` (ELSEWHERE)", elsewhere.begin));
        } else if let Some(what) = elsewhere.skip() {
            skipped(what);
        }
    }
    none("commands of the texts", &faults);
}

#[test]
fn lines_codes_and_patterns_are_read() {
    assert_eq!(lines("a \\\n  b\n\n# c\n  d # e\n"), ["a    b", "d # e"]);
    assert_eq!((wanted_code("false  # ends with code 3"), wanted_code("true # x")), (3, 0));
    assert_eq!(wanted_line("ls  # prints a b "), Some("a b"));
    assert_eq!(
        (wanted_line("ls # x"), command("ls -l   # x"), command("ls")),
        (None, "ls -l", "ls")
    );
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

#[test]
fn scripts_are_searched_for_commands() {
    let script = "# a b\nif x; then\n  a c # d\nfi\n";
    for (wanted, found) in [("a c", true), ("a b", false), ("x; then", true), ("d", false)] {
        assert_eq!(contains(script, wanted), found, "{wanted}");
    }
    let line = "cargo clippy --workspace --no-such-option";
    let clippy = ELSEWHERE.iter().find(|e| line.starts_with(e.begin)).expect("an entry");
    assert!(clippy.fault(line).is_some());
    // CI does not run `scripts/bench`.
    let demo = Elsewhere { begin: "", why: "", script: "scripts/bench", equivalent: Some("peers") };
    assert!(demo.fault("").is_some());
}
