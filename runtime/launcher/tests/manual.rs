//! Checks the manual pages: `runtime/guide/man/*.1` must be the roff form of `runtime/guide/*.1.md`. With
//! `TYPEPACK_BLESS=1`, the test writes the roff files instead.
//!
//! The generator in this file supports only the Markdown of these two pages: headings, paragraphs,
//! definition lists (a line, then `:` and an indented text), blocks indented by four blanks, `**bold**` and
//! `*italic*`. Such a short generator costs less than a tool that every developer would have to install.
//! The roff files are in the repository, so no generator is needed to install typepack.

use std::path::{Path, PathBuf};
use std::process::Command;
use typepack_test_support::skipped::skipped;

const PAGES: [&str; 2] = ["mpiexec", "mpicc"];

fn guide() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../guide")
}

/// Converts the marks `*` and `**` in a text to font changes. Dashes become ASCII minus signs, because users
/// copy options from the page.
fn inline(text: &str) -> String {
    let (mut out, mut font) = (String::new(), 'R');
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '*' => {
                let mark = if letters.next_if_eq(&'*').is_some() { 'B' } else { 'I' };
                font = if font == mark { 'R' } else { mark };
                out.push_str(&format!("\\f{font}"));
            }
            '-' => out.push_str("\\-"),
            '\\' => out.push_str("\\e"),
            _ => out.push(letter),
        }
    }
    assert_eq!(font, 'R', "a mark is not closed: {text}");
    // Without `\&`, roff would treat a line that starts with one of these two characters as a request.
    if out.starts_with(['.', '\'']) { format!("\\&{out}") } else { out }
}

/// Converts a page from Markdown to roff.
fn roff(markdown: &str) -> String {
    let mut out = String::new();
    let mut lines = markdown.lines().peekable();
    let gather = |first: &str, lines: &mut std::iter::Peekable<std::str::Lines<'_>>| {
        let mut text = first.trim().to_owned();
        while let Some(more) =
            lines.next_if(|line| !line.trim().is_empty() && !line.starts_with(':'))
        {
            text.push(' ');
            text.push_str(more.trim());
        }
        inline(&text)
    };
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("# ") {
            let (name, about) =
                title.split_once("(1): ").expect("a title has the form NAME(1): ABOUT");
            let version = env!("CARGO_PKG_VERSION");
            out.push_str(&format!(
                ".\\\" Made from runtime/guide/{name}.1.md by runtime/launcher/tests/manual.rs.\n\
                 .TH {} 1 \"\" \"typepack {version}\" \"MPI\"\n.SH NAME\n{name} \\- {about}\n",
                name.to_uppercase()
            ));
        } else if let Some(title) = line.strip_prefix("## ") {
            out.push_str(&format!(".SH {title}\n"));
        } else if line.starts_with("    ") {
            out.push_str(".PP\n.nf\n.RS 4\n");
            out.push_str(&inline_code(line));
            while let Some(more) = lines.next_if(|line| line.starts_with("    ")) {
                out.push_str(&inline_code(more));
            }
            out.push_str(".RE\n.fi\n");
        } else if lines.peek().is_some_and(|next| next.starts_with(": ")) {
            let text =
                lines.next().expect("the line was peeked").trim_start_matches(':').to_owned();
            let text = gather(&text, &mut lines);
            out.push_str(&format!(".TP\n{}\n{text}\n", inline(line)));
        } else if !line.trim().is_empty() {
            let text = gather(line, &mut lines);
            out.push_str(&format!(".PP\n{text}\n"));
        }
    }
    out
}

fn inline_code(line: &str) -> String {
    let text = line[4..].replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    format!("{text}\n")
}

#[test]
fn the_pages_are_what_the_guide_says() {
    for page in PAGES {
        let markdown = std::fs::read_to_string(guide().join(format!("{page}.1.md")));
        let made = roff(&markdown.expect("the page of the guide can be read"));
        let file = guide().join(format!("man/{page}.1"));
        typepack_test_support::blessed::blessed(&file, &made);
    }
}

/// Checks that groff reads the pages without a warning. If groff is not installed, the test is skipped.
#[test]
fn the_pages_are_good_roff() {
    for page in PAGES {
        let file = guide().join(format!("man/{page}.1"));
        let output =
            Command::new("groff").args(["-man", "-Tutf8", "-ww", "-z"]).arg(&file).output();
        let Ok(output) = output else {
            skipped("groff is not installed");
            return;
        };
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && words.is_empty(), "{page}: {words}");
    }
}
