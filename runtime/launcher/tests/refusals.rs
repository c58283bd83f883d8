//! What `mpiexec` refuses: one clear line that names the argument, a code that is not 0, nothing
//! left running. The parser's own cases are in `src/args.rs`.

mod harness;

use std::os::unix::fs::PermissionsExt;

use harness::{Finished, mpiexec, run, start};

fn refused(arguments: &[&str], code: i32, line: &str) {
    let job = start(mpiexec(arguments));
    let Finished { code: got, out, err, left } = job.finish();
    assert!(left.is_empty(), "{arguments:?}: {left:?}");
    assert_eq!(out, "", "{arguments:?}");
    assert_eq!(err, format!("mpiexec: {line}\n"), "{arguments:?}");
    assert_eq!(got, code, "{arguments:?}");
}

#[test]
fn bad_command_lines() {
    let missing = "-n: the number of ranks is missing (try mpiexec --help)";
    refused(&[], 2, missing);
    refused(&["true"], 2, missing);
    refused(&["-n", "0", "true"], 2, "-n: 0 is not a number of ranks (1 or more)");
    refused(&["-n", "-1", "true"], 2, "-n: -1 is not a number of ranks (1 or more)");
    refused(&["-n", "two", "true"], 2, "-n: 'two' is not a number of ranks (1 or more)");
    let huge = "99999999999999999999";
    let line = format!("-n: {huge} ranks are too many (at most 4096)");
    refused(&["-n", huge, "true"], 2, &line);
    refused(&["-n", "2"], 2, "program: missing after the options (try mpiexec --help)");
    refused(&["-n", "2", "--hosts", "a"], 2, "--hosts: unknown option (try mpiexec --help)");
    let several = "':': unknown option; one program per job, several are not supported";
    refused(&["-n", "1", "true", ":", "-n", "1", "true"], 2, several);
}

#[test]
fn programs_that_are_not_there() {
    refused(&["-n", "2", "no-such-program"], 127, "program: 'no-such-program' not found");
    refused(&["-n", "2", "./no-such"], 127, "program: './no-such' not found");
    let line = "program: '/etc/passwd' cannot be run: permission denied";
    refused(&["-n", "2", "/etc/passwd"], 126, line);
}

#[test]
fn programs_that_cannot_be_executed() {
    let path = std::env::temp_dir().join(format!("typepack-bad-{}", std::process::id()));
    std::fs::write(&path, "#!/no/such/interpreter\n").expect("a file");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("its mode");
    let job = start(mpiexec(&["-n", "3", path.to_str().expect("a name")]));
    let done = job.finish();
    std::fs::remove_file(&path).expect("removed");
    assert_eq!(done.code, 127, "{done:?}");
    assert_eq!(done.err.lines().count(), 1, "{done:?}");
    assert!(done.err.starts_with("mpiexec: program: '") && done.err.contains("cannot be run"));
    assert!(done.left.is_empty(), "{done:?}");
}

#[test]
fn scripts_without_interpreter_line_run_in_the_shell() {
    let path = std::env::temp_dir().join(format!("typepack-script-{}", std::process::id()));
    std::fs::write(&path, "echo $1 $TYPEPACK_RANK\n").expect("a file");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("its mode");
    let done = run(mpiexec(&["-n", "1", path.to_str().expect("a name"), "hello"]));
    std::fs::remove_file(&path).expect("removed");
    assert_eq!((done.code, done.out.as_str()), (0, "hello 0\n"), "{done:?}");
}

#[test]
fn too_few_descriptors_are_named_and_nothing_is_left() {
    let exe = env!("CARGO_BIN_EXE_mpiexec");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &format!("ulimit -n 64; exec {exe} -n 200 sleep 300")]);
    let done = run(command);
    assert_eq!((done.code, done.left.len()), (1, 0), "{done:?}");
    assert_eq!(done.err.lines().count(), 1, "{done:?}");
    assert!(done.err.contains("of 200") && done.err.contains("ulimit -n"), "{done:?}");
}

#[test]
fn a_bad_variable_is_named() {
    let mut command = mpiexec(&["-n", "1", "true"]);
    command.env("TYPEPACK_BIND", "socket");
    let done = run(command);
    assert_eq!(done.code, 2);
    assert_eq!(done.err, "mpiexec: TYPEPACK_BIND: 'socket' is neither 'core' nor 'none'\n");
}

#[test]
fn help_and_version() {
    let done = run(mpiexec(&["--help"]));
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    for word in ["usage:", "-n N", "-l", "--bind-to", "--report-bindings", "examples:"] {
        assert!(done.out.contains(word), "{word}: {}", done.out);
    }
    let done = run(mpiexec(&["--version"]));
    assert_eq!(done.code, 0);
    assert!(done.out.starts_with("mpiexec (typepack) "), "{}", done.out);
}
