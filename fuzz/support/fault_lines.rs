//! A command refuses its arguments.

use std::process::Output;

/// Runs the command with each list of arguments: exit code 2, one line on standard error that
/// begins with `begin` and holds the part beside the arguments, and nothing on standard output.
pub fn refused(run: impl Fn(&[&str]) -> Output, begin: &str, faults: &[(&[&str], &str)]) {
    for (arguments, part) in faults {
        let output = run(arguments);
        let line = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {line}");
        assert!(line.starts_with(begin) && line.contains(part), "{arguments:?}: {line}");
        assert_eq!(line.trim_end().lines().count(), 1, "{arguments:?}: {line}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}
