//! `typepack doctor`: says which launcher, wrappers, library, header and mpi4py are used, whether they belong together,
//! what is wrong, and how to mend it.
//!
//! `installation.rs` finds the files of this installation from the tool's own path. `programs.rs` and `python.rs` compare
//! them with what the system finds first (`ask.rs`, `hash.rs`), and put what they find into a [`Report`]. A fault makes the
//! exit code 1; a note says what somebody may miss, such as a Fortran compiler. The doctor changes nothing. Commands in
//! cures are quoted for the shell.

mod ask;
mod hash;
mod installation;
mod programs;
mod python;

use crate::agree::{FAILURE, say};
use installation::{Installation, Kind};
use std::fmt::Write as _;
use std::io::Write as _;

/// The version of this tool, and so of all that belongs to it.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Something that is wrong, or that somebody may miss.
struct Finding {
    /// A short name, for search and for tests.
    name: &'static str,
    what: String,
    cure: String,
}

/// What the doctor has found.
#[derive(Default)]
struct Report {
    parts: Vec<(&'static str, String)>,
    faults: Vec<Finding>,
    notes: Vec<Finding>,
}

impl Report {
    /// Says what is used.
    fn part(&mut self, label: &'static str, text: String) {
        self.parts.push((label, text));
    }

    /// Adds a fault.
    fn fault(&mut self, name: &'static str, what: String, cure: String) {
        self.faults.push(Finding { name, what, cure });
    }

    /// Adds a note.
    fn note(&mut self, name: &'static str, what: String, cure: String) {
        self.notes.push(Finding { name, what, cure });
    }

    /// Returns whether there is a fault of this name.
    fn has(&self, name: &str) -> bool {
        self.faults.iter().any(|fault| fault.name == name)
    }

    /// Returns the text for the user.
    fn text(&self, own: &Installation) -> String {
        let mut text = format!("typepack {VERSION}, {}\n", own.described());
        for (label, words) in &self.parts {
            let _infallible = writeln!(text, "  {label:<8} {words}");
        }
        for (title, findings) in [("Faults", &self.faults), ("Notes", &self.notes)] {
            if !findings.is_empty() {
                let _infallible = writeln!(text, "\n{title}");
            }
            for Finding { name, what, cure } in findings {
                let _infallible = writeln!(text, "  {name}: {what}\n    cure: {cure}");
            }
        }
        if self.faults.is_empty() {
            text.push_str("\nno faults found\n");
        }
        text
    }
}

/// Examines the installation and prints the report. Returns the exit code.
pub fn run() -> u8 {
    let exe = match std::env::current_exe().and_then(|exe| exe.canonicalize()) {
        Ok(exe) => exe,
        Err(error) => {
            say(format_args!("doctor: the path of this program: {error}"));
            return FAILURE;
        }
    };
    let own = Installation::of(&exe);
    let mut report = Report::default();
    if own.kind == Kind::Interposer {
        programs::interposer(&own, &mut report);
    } else {
        programs::examine(&own, &mut report);
        python::examine(&own, &mut report);
    }
    let printed = std::io::stdout().lock().write_all(report.text(&own).as_bytes());
    if let Err(error) = printed {
        say(format_args!("doctor: standard output: {error}"));
        return FAILURE;
    }
    if report.faults.is_empty() { 0 } else { FAILURE }
}
