//! Tests of bad command lines of `mpiexec`. For each of them, `mpiexec` must print one line that names the
//! bad argument, exit with a code other than 0, and leave no process running. Some tests also check a
//! similar command line that is valid. The tests of the parser are in `src/args/tests.rs`.

use crate::harness::{Finished, mpiexec, run, start};
use typepack_test_support::script::executable;

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
    let missing = "program: missing after the options (try mpiexec --help)";
    refused(&[], 2, missing);
    refused(&["-n", "0", "true"], 2, "-n: 0 is not a valid number of ranks; it must be 1 or more");
    refused(
        &["-n", "-1", "true"],
        2,
        "-n: -1 is not a valid number of ranks; it must be 1 or more",
    );
    refused(
        &["-n", "two", "true"],
        2,
        "-n: 'two' is not a valid number of ranks; it must be 1 or more",
    );
    let huge = "99999999999999999999";
    let line = format!("-n: {huge} ranks are too many (at most 4096)");
    refused(&["-n", huge, "true"], 2, &line);
    refused(&["-n", "2"], 2, missing);
    refused(&["--behind"], 2, "--behind: only the library calls mpiexec in this way");
    refused(&["-n", "2", "--mca", "a"], 2, "--mca: VALUE is missing");
    refused(&["-n", "2", "--moon", "a"], 2, "--moon: unknown option (try mpiexec --help)");
    let similar =
        "--report-binding: unknown option; did you mean --report-bindings? (try mpiexec --help)";
    refused(&["-n", "2", "--report-binding", "true"], 2, similar);
    let line = "-timeout: '-1' is not a number of seconds; it must be 0 (no limit) or more";
    refused(&["-n", "2", "-timeout", "-1", "true"], 2, line);
    let line = "-n: the number of ranks is missing; each of several programs needs it (try mpiexec --help)";
    refused(&["-n", "1", "true", ":", "true"], 2, line);
    let file = "-wdir: '/no/such': No such file or directory (os error 2)";
    refused(&["-n", "1", "-wdir", "/no/such", "true"], 2, file);
    let bind = "--bind-to: 'moon' is not one of none, hwthread, core, l2cache, l3cache, numa, socket, hwthread:N, \
                core:N, user:LIST";
    refused(&["-n", "1", "--bind-to", "moon", "true"], 2, bind);
}

#[test]
fn machines_that_are_not_this_one() {
    let host =
        String::from_utf8(typepack_job::sys::machine::host_name()).expect("the name is UTF-8");
    let line = |flag: &str| {
        format!(
            "{flag}: 'no-such-node' is not this machine, '{host}'; a typepack job runs on one machine"
        )
    };
    refused(&["-n", "2", "-host", "localhost,no-such-node", "true"], 2, &line("-host"));
    refused(&["-n", "2", "--hosts=no-such-node:2", "true"], 2, &line("--hosts"));
    let done = run(mpiexec(&["-n", "2", "-host", &format!("{host}:2,localhost"), "true"]));
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
}

#[test]
fn the_second_program_is_looked_for_before_the_first_is_started() {
    let line = "program: 'no-such-program' not found";
    refused(&["-n", "1", "echo", "started", ":", "-n", "1", "no-such-program"], 127, line);
}

#[test]
fn programs_that_are_not_there() {
    refused(&["-n", "2", "no-such-program"], 127, "program: 'no-such-program' not found");
    refused(&["-n", "2", "./no-such"], 127, "program: './no-such' not found");
    // A file of this name lies in the working directory.
    let folder = std::env::temp_dir().join(format!("typepack-here-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the directory is made");
    executable(&folder.join("no-such-program"), "echo\n");
    let mut command = mpiexec(&["-n", "2", "no-such-program"]);
    let done = run({
        command.current_dir(&folder);
        command
    });
    let wdir = folder.to_str().expect("the name is UTF-8");
    let with_wdir = run(mpiexec(&["-n", "2", "-wdir", wdir, "no-such-program"]));
    std::fs::remove_dir_all(&folder).expect("the directory is removed");
    let line = "mpiexec: program: 'no-such-program' not found; did you mean './no-such-program'?\n";
    assert_eq!((done.code, done.err.as_str()), (127, line));
    assert_eq!((with_wdir.code, with_wdir.err.as_str()), (127, line));
    let line = "program: '/etc/passwd' cannot be run: permission denied";
    refused(&["-n", "2", "/etc/passwd"], 126, line);
}

#[test]
fn programs_that_cannot_be_executed() {
    let path = std::env::temp_dir().join(format!("typepack-bad-{}", std::process::id()));
    executable(&path, "#!/no/such/interpreter\n");
    let job = start(mpiexec(&["-n", "3", path.to_str().expect("the name is UTF-8")]));
    let done = job.finish();
    std::fs::remove_file(&path).expect("the file is removed");
    assert_eq!(done.code, 127, "{done:?}");
    assert_eq!(done.err.lines().count(), 1, "{done:?}");
    assert!(done.err.starts_with("mpiexec: program: '") && done.err.contains("cannot be run"));
    assert!(done.left.is_empty(), "{done:?}");
}

#[test]
fn scripts_without_interpreter_line_run_in_the_shell() {
    let path = std::env::temp_dir().join(format!("typepack-script-{}", std::process::id()));
    executable(&path, "echo $1 $TYPEPACK_RANK\n");
    let done = run(mpiexec(&["-n", "1", path.to_str().expect("the name is UTF-8"), "hello"]));
    std::fs::remove_file(&path).expect("the file is removed");
    assert_eq!((done.code, done.out.as_str()), (0, "hello 0\n"), "{done:?}");
}

#[test]
fn too_few_descriptors_are_named_and_nothing_is_left() {
    let exe = env!("CARGO_BIN_EXE_mpiexec");
    // Several system calls make the descriptors of a rank. The limits are consecutive, so that each of
    // these calls is the one that fails under at least one limit.
    for limit in 64..72 {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &format!("ulimit -n {limit}; exec {exe} -n 200 sleep 300")]);
        let done = run(command);
        assert_eq!((done.code, done.left.len()), (1, 0), "{done:?}");
        assert_eq!(done.err.lines().count(), 1, "{done:?}");
        assert!(done.err.contains("of 200") && done.err.contains("ulimit -n"), "{done:?}");
    }
}

#[test]
fn a_bad_variable_is_named() {
    let mut command = mpiexec(&["-n", "1", "true"]);
    command.env("TYPEPACK_BIND", "moon");
    let done = run(command);
    assert_eq!(done.code, 2);
    assert!(done.err.starts_with("mpiexec: TYPEPACK_BIND: 'moon' is not one of "), "{}", done.err);
    let mut command = mpiexec(&["-n", "1", "true"]);
    command.env("MPIEXEC_TIMEOUT", "soon");
    let done = run(command);
    assert_eq!(done.code, 2);
    assert_eq!(
        done.err,
        "mpiexec: MPIEXEC_TIMEOUT: 'soon' is not a number of seconds; it must be 0 (no limit) or more\n"
    );
}

#[test]
fn help_and_version() {
    let done = run(mpiexec(&["--help"]));
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    for word in ["usage:", "-n, -np N", "-l", "--bind-to", "--report-bindings", "examples:"] {
        assert!(done.out.contains(word), "{word}: {}", done.out);
    }
    let done = run(mpiexec(&["--version"]));
    assert_eq!(done.code, 0);
    assert!(done.out.starts_with("mpiexec (typepack) "), "{}", done.out);
    let done = run(mpiexec(&["-info"]));
    assert_eq!(done.code, 0);
    for word in ["MPI standard:", "library:", "segment layout:", "usable CPUs:", "cores"] {
        assert!(done.out.contains(word), "{word}: {}", done.out);
    }
}
