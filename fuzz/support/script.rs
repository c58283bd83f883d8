//! Scripts that tests write and run.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Makes a program of these lines. Another process writes it: a file that this one has open for
/// writing is open in every child that a test beside has forked and that has not yet executed its
/// own program, and the kernel executes nothing that somebody can write ("text file busy").
pub fn executable(path: &Path, lines: &str) {
    let mut writer = Command::new("sh");
    writer.args(["-c", r#"cat > "$0" && chmod 755 "$0""#]).arg(path).stdin(Stdio::piped());
    let mut writer = writer.spawn().expect("a shell");
    let mut input = writer.stdin.take().expect("its input");
    input.write_all(lines.as_bytes()).expect("a pipe");
    drop(input);
    assert!(writer.wait().expect("the shell's end").success(), "{}", path.display());
}
