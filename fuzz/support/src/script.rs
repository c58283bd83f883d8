//! Writes scripts that tests run.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes an executable script with the text `lines`. A shell writes the file, not this process. If
/// this process had the file open for writing, a child that another test forks at that moment would
/// have the file open, too, until the child calls `exec`. The kernel refuses to execute a file that is
/// open for writing ("text file busy").
pub fn executable(path: &Path, lines: &str) {
    let mut writer = Command::new("sh");
    writer.args(["-c", r#"cat > "$0" && chmod 755 "$0""#]).arg(path).stdin(Stdio::piped());
    let mut writer = writer.spawn().expect("a shell must start");
    let mut input = writer.stdin.take().expect("the shell must have a pipe as its input");
    input.write_all(lines.as_bytes()).expect("the shell must read its input");
    drop(input);
    assert!(
        writer.wait().expect("the shell must end").success(),
        "{}: not written",
        path.display()
    );
}
