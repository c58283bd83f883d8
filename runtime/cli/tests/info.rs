//! Runs `typepack info` as a user would and checks what it prints.

use std::process::{Command, Output};
use typepack_test_support::attempts::attempts;

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
    let brief =
        text(&info(&[], &[("TYPEPACK_EAGER_LIMIT", "4711"), ("TYPEPACK_FROB", "1")]).stdout);
    for part in ["MPI 5.0, ABI 1.0", "  CPU      ", "4711", "TYPEPACK_FROB", "Problems", "--all"] {
        assert!(brief.contains(part), "{part} in {brief}");
    }
    assert!(!brief.contains("TYPEPACK_TRANSPORT") && !brief.contains(" of 664\n"), "{brief}");
    let done = info(&["--all"], &[("TYPEPACK_EAGER_LIMIT", "4711")]);
    assert!(done.status.success(), "{done:?}");
    let out = text(&done.stdout);
    for part in
        ["MPI 5.0, ABI 1.0", "  program  /", "  library  ", "Variables", " of 664\n", "1 rank"]
    {
        assert!(out.contains(part), "{part} in {out}");
    }
    let line = |name: &str| out.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(line("TYPEPACK_EAGER_LIMIT").contains("4711"), "{out}");
    assert!(line("TYPEPACK_EAGER_LIMIT").contains("environment"), "{out}");
    assert!(line("TYPEPACK_TRANSPORT").contains("default"), "{out}");
    // These variables are planned but have no effect yet, so the command must not list them.
    for name in ["TYPEPACK_CHAOS", "TYPEPACK_EXPLAIN"] {
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

/// Checks that `--measure` exchanges messages and shows times, and that `info` shows the file that the job has
/// written.
#[test]
fn choices_are_measured_kept_and_shown() {
    let mpiexec = crate::tool::bin().join("mpiexec");
    let path = std::env::temp_dir().join(format!("typepack-info-{}", std::process::id()));
    let name = path.to_str().expect("a path in UTF-8");
    let free = ["TYPEPACK_TRANSPORT", "TYPEPACK_COPY", "TYPEPACK_TUNE", "TYPEPACK_QUIET"];
    let tool = env!("CARGO_BIN_EXE_typepack");
    let shown = |variables: &[(&str, &str)]| text(&info(&[], variables).stdout);
    attempts(|number| {
        let mut command = Command::new(&mpiexec);
        for name in free {
            command.env_remove(name);
        }
        // Ranks that do not get the CPU need more time.
        command.args(["-n", "2", tool, "info", &format!("--measure={}", 4 << (2 * number))]);
        let done = command.env("TYPEPACK_TUNE_FILE", name).output().expect("the job runs");
        let (out, error) = (text(&done.stdout), text(&done.stderr));
        assert!(done.status.success() && error.is_empty(), "{out}{error}");
        assert!(out.contains("there is no such file yet"), "{out}");
        let (_, choices) =
            out.split_once("Choices of rank 0, measured with messages of rank 1").unwrap();
        // If this machine has several copy methods, the table has the shortest and the longest messages, and every
        // layout of the sender.
        let several = typepack::engine::contiguous::available().count() > 1;
        for part in
            ["   16 KiB  ", " 4096 KiB  ", "  contiguous in ", "  dense in ", "  sparse in "]
        {
            assert!(!several || choices.contains(part), "{part}: {out}");
        }
        let rows: Vec<&str> = choices.lines().filter(|line| line.contains(" KiB  ")).collect();
        assert!(
            rows.iter().all(|row| row.matches('*').count() == 1 && row.contains("; ")),
            "{out}"
        );
        let compared = rows.iter().filter(|row| !row.contains("not compared to the end"));
        let compared: Vec<_> = compared.collect();
        assert!(compared.iter().all(|row| !row.contains("not tried")), "{out}");

        let written = shown(&[("TYPEPACK_TUNE_FILE", name)]);
        std::fs::remove_file(&path).unwrap();
        let heading = format!("Choices in {name} (TYPEPACK_TUNE_FILE)\n");
        let (_, file) = written.split_once(&heading).unwrap();
        let lines: Vec<&str> =
            file.lines().take_while(|line| line.starts_with("  from ")).collect();
        // The file has all choices of the table that were compared: of messages, messages in parts, and collective
        // calls. It also has choices about copies and pieces, which the table lacks, and those that were compared and
        // are being compared again, because the present way has become slower. If the ranks get no CPU, no choice comes
        // to an end. The file is written after the table, and a choice may begin anew in between.
        let others = ["pieces of collective calls", "copies"];
        let kept = lines.iter().filter(|line| !others.iter().any(|other| line.contains(other)));
        let has = |part: &str| {
            !compared.iter().any(|row| row.contains(part))
                || lines.iter().any(|line| line.contains(part))
        };
        let parts =
            ["contiguous in heap to contiguous", "messages through the ring", ", collective "];
        let all = kept.count() >= compared.len() && parts.into_iter().all(has);
        match all && (!several || !compared.is_empty()) {
            true => Ok(()),
            false => Err(format!("{out}{written}")),
        }
    });
    std::fs::write(&path, "something else\n").unwrap();
    let out = shown(&[("TYPEPACK_TUNE_FILE", name)]);
    assert!(out.contains("  the file is ignored: its first line is not"), "{out}");
    std::fs::remove_file(&path).unwrap();

    for (variables, line) in [
        (&[][..], "typepack: --measure: the job has 1 rank; it must have at least 2 ranks"),
        (&[("TYPEPACK_TUNE", "maybe")], "TYPEPACK_TUNE"),
    ] {
        let done = info(&["--measure"], variables);
        assert_eq!(done.status.code(), Some(2), "{done:?}");
        assert!(text(&done.stderr).starts_with("typepack: ") && text(&done.stderr).contains(line));
    }
}
