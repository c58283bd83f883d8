//! What settings do that a tool writes before init (`c/settings.c`): most of it is counted, and the program compares it.
//! The rest is output, which is compared here.

use crate::program::library;
use std::process::Command;

/// Runs a variant, and returns its output and whether it has written the tune file.
fn variant(name: &str) -> (String, bool) {
    let exe = crate::c::compile("settings");
    let file = library().join(format!("settings-{name}-{}.tune", std::process::id()));
    let mut command = Command::new(crate::job::mpiexec());
    command.args(["-n", "2"]).arg(&exe).arg(name).arg(&file);
    command.env("LD_LIBRARY_PATH", library());
    // A name that nobody knows is worth a warning.
    let output = crate::job::run(command, "settings", &[("TYPEPACK_NO_SUCH_NAME", "1")]);
    let text = crate::job::text(&output);
    assert!(output.status.success(), "{name}: {text}");
    let written = file.exists();
    // The file may not exist.
    let _none = std::fs::remove_file(&file);
    (text, written)
}

#[test]
fn each_setting_changes_what_it_says() {
    let is_report = |text: &str| text.contains("typepack: rank 0: messages ");
    let is_error = |text: &str| text.contains("-77");
    let is_warning = |text: &str| text.contains("TYPEPACK_NO_SUCH_NAME");
    let (text, written) = variant("a");
    assert!(is_report(&text) && is_error(&text) && !written, "{text}");
    assert!(!is_warning(&text), "{text}");
    let (text, written) = variant("b");
    assert!(!is_report(&text) && !is_error(&text) && written, "{text}");
    assert!(is_warning(&text), "{text}");
    variant("c");
}
