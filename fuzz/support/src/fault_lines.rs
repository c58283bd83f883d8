//! Checks that a command refuses wrong arguments.

use std::process::Output;

/// Calls `run` with each list of arguments in `faults`. The command must end with exit code 2, print
/// nothing on standard output, and print one line on standard error. The line must begin with `begin`
/// and contain the text that is paired with the arguments.
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
