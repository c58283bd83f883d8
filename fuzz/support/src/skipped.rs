//! Reports that a test cannot run on this machine, and why, and other notes of tests that pass. `scripts/test` lists these
//! reports at its end.

use std::io::Write;

/// Prints `SKIPPED program: test: reason` for the calling test.
pub fn skipped(reason: impl std::fmt::Display) {
    note("SKIPPED", reason);
}

/// Prints `WORD program: test: text` for the calling test, where `program` is the name of the test
/// program without Cargo's hash. Also adds the line to the file that the variable `TEST_SKIPPED` names,
/// because the test harness hides the output of a test that passes.
pub(crate) fn note(word: &str, reason: impl std::fmt::Display) {
    let program = std::env::current_exe().expect("the path of this program must be known");
    let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // Removes the hash that Cargo adds to the program's name after the last dash.
    let program = program.rsplit_once('-').map_or(&*program, |(name, _)| name);
    // The test harness names each thread after its test.
    let thread = std::thread::current();
    let reason = reason.to_string().replace('\n', " ");
    let line = format!("{word} {program}: {}: {}\n", thread.name().unwrap_or("?"), reason.trim());
    eprint!("{line}");
    if let Some(path) = std::env::var_os("TEST_SKIPPED") {
        // Writes the whole line with one call, because several tests write to the file at the same
        // time.
        let file = std::fs::File::options().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .expect("the file that TEST_SKIPPED names must be writable");
    }
}
