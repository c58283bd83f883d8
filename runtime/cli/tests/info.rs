//! Runs `typepack info` as a user would, without `mpiexec`, and checks what it prints.

use std::process::{Command, Output};

fn info(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_typepack"));
    command
        .env_remove("TYPEPACK_TRANSPORT")
        .arg("info")
        .args(arguments)
        .envs(environment.iter().copied())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn all_parts_are_there() {
    let done = info(&[], &[("TYPEPACK_EAGER_LIMIT", "4711")]);
    assert!(done.status.success(), "{done:?}");
    let out = text(&done.stdout);
    for part in
        ["MPI 5.0, ABI 1.0", "  program  /", "  library  ", "Variables", " of 664;", "1 rank"]
    {
        assert!(out.contains(part), "{part} in {out}");
    }
    let line = |name: &str| out.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(line("TYPEPACK_EAGER_LIMIT").contains("4711"), "{out}");
    assert!(line("TYPEPACK_EAGER_LIMIT").contains("environment"), "{out}");
    assert!(line("TYPEPACK_TRANSPORT").contains("default"), "{out}");
    // These variables are planned but have no effect yet, so the command must not list them.
    for name in ["TYPEPACK_IO", "TYPEPACK_WATCHDOG", "TYPEPACK_EXPLAIN", "TYPEPACK_INTERPOSE"] {
        assert!(!out.contains(name), "{name} in {out}");
    }
    assert!(!out.contains("MPI_Send"), "{out}");
    assert!(text(&info(&["--functions"], &[]).stdout).contains("MPI_Send"));
}

/// Checks that the command shows the bad value of a variable before it fails. A user may run `typepack info`
/// because such a variable keeps a program from starting.
#[test]
fn a_bad_value_is_shown_before_it_is_refused() {
    let done = info(&[], &[("TYPEPACK_EAGER_LIMIT", "plenty")]);
    assert_eq!(done.status.code(), Some(2), "{done:?}");
    assert!(text(&done.stdout).contains("plenty"), "{done:?}");
    assert!(text(&done.stderr).contains("TYPEPACK_EAGER_LIMIT"), "{done:?}");
}
