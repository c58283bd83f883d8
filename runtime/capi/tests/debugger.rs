//! What gdb shows of handles (`../gdb/typepack.py`).

use crate::program::library;
use std::path::Path;
use std::process::Command;
use typepack_test_support::skipped::skipped;

/// gdb stops a program, and prints its datatypes, communicators and requests.
#[test]
fn gdb_shows_what_handles_stand_for() {
    if Command::new("gdb").arg("--version").output().is_err() {
        skipped("handles in gdb: there is no gdb");
        return;
    }
    let exe = crate::c::compile("debugged");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("gdb/typepack.py");
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-iex", "set debuginfod enabled off", "-x"]).arg(&script);
    for command in ["set startup-with-shell off", "break main", "run"] {
        gdb.args(["-ex", command]);
    }
    for (name, value) in [("early_comm", "(MPI_Comm)0x101"), ("early_type", "(MPI_Datatype)0x214")]
    {
        gdb.arg("-ex").arg(format!("echo {name}:")).arg("-ex").arg(format!("print {value}"));
    }
    for command in ["break stop_here", "continue", "up"] {
        gdb.args(["-ex", command]);
    }
    for name in ["column", "none", "real", "comm", "all", "receive", "any", "done", "prepared"] {
        gdb.arg("-ex").arg(format!("echo {name}:")).arg("-ex").arg(format!("print {name}"));
    }
    let core = exe.with_extension("core");
    gdb.arg("-ex").arg(format!("generate-core-file {}", core.display()));
    gdb.args(["-ex", "print *&comm", "-ex", "delete", "-ex", "continue"]).arg(&exe);
    gdb.env("LD_LIBRARY_PATH", library());
    let output = crate::job::run(gdb, "gdb_shows_what_handles_stand_for", &[]);
    let text = crate::job::text(&output);
    if text.contains("ptrace: Operation not permitted") || text.contains("Could not trace") {
        skipped("handles in gdb: this system does not let gdb start a process");
        return;
    }
    let shown = [
        ("early_comm", "MPI is not initialised"),
        ("early_type", "MPI is not initialised"),
        ("column", "vector(1000, 8, 16, double): 64000 bytes of data, extent 127936"),
        ("none", "MPI_DATATYPE_NULL"),
        ("real", "double: 8 bytes of data, extent 8"),
        ("comm", "columns: rank 0 of 1, processes 0"),
        ("all", "MPI_COMM_WORLD: rank 0 of 1, processes 0"),
        (
            "receive",
            "Irecv from 0, tag 7, at most 64.0 kB of vector(1000, 8, 16, double); no message has come; columns",
        ),
        (
            "any",
            "Irecv from any rank, any tag, at most 8.0 kB of 1000 x double; no message has come; MPI_COMM_WORLD",
        ),
        ("done", "Isend to 0, tag 9, 24 bytes of 3 x double; no receive has matched it"),
        ("prepared", "persistent request, inactive"),
    ];
    for (name, wanted) in shown {
        let line = text.lines().find(|line| line.starts_with(&format!("{name}:")));
        let line = line.unwrap_or_else(|| panic!("{name} is not shown: {text}"));
        assert!(line.contains(wanted), "{line}\n{text}");
    }
    assert!(text.contains("exited normally"), "{text}");
    a_core_file_shows_numbers(&script, &exe, &core);
}

/// A core file has a process that cannot run. The script once tried to call a function in it, and left a parameter of gdb
/// changed.
fn a_core_file_shows_numbers(script: &Path, exe: &Path, core: &Path) {
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-iex", "set debuginfod enabled off", "-x"]).arg(script);
    gdb.args(["-ex", "up", "-ex", "echo comm:", "-ex", "print comm"]);
    gdb.args(["-ex", "show unwindonsignal", "-ex", "show print thread-events"]).arg(exe).arg(core);
    gdb.env("LD_LIBRARY_PATH", library());
    let text = crate::job::text(&crate::job::run(gdb, "a_core_file_shows_numbers", &[]));
    let _left = std::fs::remove_file(core);
    let line = text.lines().find(|line| line.starts_with("comm:"));
    let line = line.unwrap_or_else(|| panic!("comm is not shown: {text}"));
    assert!(line.contains("0x") && line.ends_with("(no process)"), "{line}\n{text}");
    assert!(text.contains("while in a call dummy is off."), "{text}");
    assert!(text.contains("Printing of thread events is on."), "{text}");
}
