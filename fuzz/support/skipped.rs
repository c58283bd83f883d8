//! A test that cannot run on this machine says so, with the reason: `scripts/test` lists all of them at its end.

use std::io::Write;

/// Says `SKIPPED name: reason` for the test that calls it, and adds the line to the file that the variable
/// `TEST_SKIPPED` names, because what a passing test prints is not shown.
pub fn skipped(reason: impl std::fmt::Display) {
    let program = std::env::current_exe().expect("this program's path");
    let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // Cargo's hash behind the last dash says nothing.
    let program = program.rsplit_once('-').map_or(&*program, |(name, _)| name);
    // The thread of a test bears the test's name.
    let thread = std::thread::current();
    let reason = reason.to_string().replace('\n', " ");
    let line = format!("SKIPPED {program}: {}: {}\n", thread.name().unwrap_or("?"), reason.trim());
    eprint!("{line}");
    if let Some(path) = std::env::var_os("TEST_SKIPPED") {
        // One write: tests of several threads and programs add to the file at once.
        let file = std::fs::File::options().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .expect("the file of TEST_SKIPPED");
    }
}
