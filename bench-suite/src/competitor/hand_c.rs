//! Compiles the hand-written loops in C when a run begins.
//!
//! `hand.rs` uses the loops that this file compiles. The C source is part of this command. The
//! compiler is `$CC`, or else `cc`. It works in a temporary folder, which is removed afterwards.

use super::hand::Loops;
use crate::row::HAND_C;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SOURCE: &str = include_str!("../../hand/hand.c");

/// A folder that is removed when this value is dropped.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // The result is ignored: a folder that stays behind among the temporary files does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Compiles the C loops for the level `march`, as in the compiler's flag `-march=`, and loads them. Returns
/// the loops and a text with the version of the compiler and its optimisation flags.
///
/// # Errors
///
/// Returns a one-line message if there is no compiler, if the temporary folder cannot be written, if the
/// compiler fails, or if the compiled loops cannot be loaded. If the compiler fails, the message has the
/// first line of its output that contains the word `error`.
pub fn compile(march: &str) -> Result<(Loops, String), String> {
    let compiler = std::env::var_os("CC").filter(|cc| !cc.is_empty()).unwrap_or("cc".into());
    let shown = Path::new(&compiler).display().to_string();
    let version = Command::new(&compiler).arg("--version").stderr(Stdio::null()).output();
    let version = version.map_err(|e| format!("cannot run the C compiler {shown}: {e}"))?;
    let version = String::from_utf8_lossy(&version.stdout);
    let version = version.lines().next().unwrap_or(&shown).to_owned();
    // The name contains the process id and the thread id, because processes and, in tests, threads run
    // this function at the same time.
    let name = format!("typepack-hand-{}-{:?}", std::process::id(), std::thread::current().id());
    let scratch = Scratch(std::env::temp_dir().join(name));
    let written = |e: std::io::Error| format!("{}: {e}", scratch.0.display());
    std::fs::create_dir_all(&scratch.0).map_err(written)?;
    let (source, library) = (scratch.0.join("hand.c"), scratch.0.join("libhand.so"));
    std::fs::write(&source, SOURCE).map_err(written)?;
    let flags = ["-O3".to_owned(), format!("-march={march}")];
    let made = Command::new(&compiler)
        .args(&flags)
        .args(["-shared", "-fPIC"])
        .arg("-o")
        .arg(&library)
        .arg(&source)
        .output();
    let made = made.map_err(|e| format!("{shown}: {e}"))?;
    if !made.status.success() {
        let said = String::from_utf8_lossy(&made.stderr);
        let line = said.lines().find(|line| line.contains("error")).unwrap_or("it said nothing");
        return Err(format!("{shown} failed: {line}"));
    }
    let loops = Loops::open(&library, HAND_C, "C loop")?;
    Ok((loops, format!("{version}, {}", flags.join(" "))))
}
