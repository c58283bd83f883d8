//! Checks the command `typepack-bench io`: its errors, a run of every kind of row with typepack's library and
//! a tiny file, and peers that hang or write nothing.
//!
//! The runs need a C compiler, and this build's `mpiexec`, `mpicc` and library. If one of these is missing,
//! the tests print a message and pass.

use crate::prefix::{prefix, text};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    let binary = env!("CARGO_BIN_EXE_typepack-bench");
    // On a busy machine, two spinning ranks may make the test slow. The only purpose of the time limit is
    // to end a test that hangs.
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "900", binary, "io"]).args(arguments);
    command.output().expect("the command runs")
}

#[test]
fn faults_are_one_line_naming_the_argument() {
    let faults: [(&[&str], &str); 7] = [
        (&["--only", "9B"], "--only 9B: no such row"),
        (&["--prefix", "/nonexistent"], "--prefix /nonexistent: bin/mpiexec is missing"),
        (&["--rows", "/nonexistent"], "--rows /nonexistent: "),
        (&["--folder", "/nonexistent"], "--folder /nonexistent: "),
        (&["--rounds", "0"], "--rounds"),
        (&["--size", "1"], "--size"),
        (&["--limit", "0"], "--limit"),
    ];
    typepack_test_support::fault_lines::refused(run, "typepack-bench: ", &faults);
}

#[test]
fn rows_are_listed_and_options_named() {
    let list = text(&run(&["--list", "--only", "8B-write,billion-read"]).stdout);
    let names: Vec<&str> = list.lines().filter_map(|l| l.split_whitespace().next()).collect();
    let cold = "cold-8B-write-collective";
    let both = ["8B-write-collective", "8B-write-independent"];
    assert_eq!(names, [&both[..], &["billion-read-independent", cold]].concat());
    let all = text(&run(&["--list"]).stdout).lines().count();
    let quick = text(&run(&["--list", "--quick"]).stdout).lines().count();
    assert!(20 < quick && quick < all, "{quick} of {all}");
    let help = text(&run(&["--help"]).stdout);
    let options = ["--only", "--prefix", "--peers", "--library", "--folder", "--size", "--limit"];
    for option in options.iter().chain(&["--quick", "--rounds", "--milliseconds", "--csv"]) {
        assert!(help.contains(option), "{option} is missing in:\n{help}");
    }
}

/// Measures every built-in row on a small file, and checks that the answers of the library and of the loops are
/// right and that every figure stands in the CSV.
#[test]
fn every_row_is_verified_and_measured() {
    let Some(prefix) = prefix("io-rows") else { return };
    let csv = prefix.join("figures.csv");
    let folder = prefix.join("data");
    fs::create_dir_all(&folder).expect("a directory");
    let names = [&prefix, &csv, &folder].map(|path| path.display().to_string());
    let files = ["--prefix", &names[0], "--csv", &names[1], "--folder", &names[2]];
    let tiny =
        ["--peers", "/nonexistent", "--size", "2048", "--rounds", "1", "--milliseconds", "1"];
    let output = run(&[&files[..], &tiny[..], &["--limit", "60"]].concat());
    let table = text(&output.stdout);
    assert!(output.status.success(), "{table}{}", text(&output.stderr));
    // The file system may refuse to drop a file from the page cache. Nothing else may fail.
    let faults = table.split_once("\nFaults\n").map_or("", |(_, faults)| faults);
    for fault in faults.lines() {
        assert!(fault.starts_with("  cold-") && fault.contains("page cache"), "{table}");
    }
    assert!(table.contains("typepack: typepack ") && table.contains("No peers took part"));
    assert!(!table.contains("over 60 s"), "{table}");
    let rows = text(&run(&["--list"]).stdout).lines().count();
    let figures = fs::read_to_string(csv).expect("the figures");
    let (load, figures) = figures.split_once('\n').expect("a first line");
    assert!(load.starts_with("# load of other programs, io: "), "{load}");
    assert!(table.contains(load.split_once("io: ").expect("the load").1), "{table}");
    // There is a header line, and each row has a line for typepack and for each of the three loops.
    assert_eq!(figures.lines().count(), 1 + 4 * rows, "{figures}");
    let header = figures.lines().next().expect("a header");
    let warm = figures.lines().skip(1).filter(|line| !line.starts_with("cold-"));
    for line in warm {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |name: &str| {
            let place = header.split(',').position(|column| column == name).expect(name);
            fields[place].parse::<f64>().expect("nanoseconds")
        };
        assert!(number("first_ns") >= number("ns") && number("ns") > 0.0, "{line}");
    }
    assert_eq!(
        fs::read_dir(folder).expect("the folder").count(),
        0,
        "the shared file stays behind"
    );
}

/// Checks that the verification finds a peer whose accesses do nothing, and that a peer that hangs is reported as
/// over its time limit. Both peers are this build's library, with a launcher that preloads other functions.
#[test]
fn peers_that_write_nothing_or_hang_are_shown_as_such() {
    let Some(prefix) = prefix("io-peers") else { return };
    let peers = prefix.join("peers");
    for (name, body) in [("idle", "return 0;"), ("hanging", "for (;;) usleep(1000);")] {
        fake(&prefix, &peers, name, body);
    }
    let (shown, peers) = (prefix.display().to_string(), peers.display().to_string());
    let tiny = ["--size", "2048", "--rounds", "2", "--milliseconds", "1", "--limit", "10"];
    let only = ["--only", "64B-write-independent,64B-read-independent"];
    let output = run(&[&["--prefix", &shown, "--peers", &peers][..], &tiny, &only].concat());
    let table = text(&output.stdout);
    assert!(output.status.success(), "{table}{}", text(&output.stderr));
    let line = |start: &str| {
        let found = table.lines().find(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("no line {start} in:\n{table}")).to_owned()
    };
    for direction in ["write", "read"] {
        let row = line(&format!("| 64B-{direction}-independent"));
        // Only the writes of the second library hang: each row of a hanging library costs its time limits.
        assert_eq!(row.contains("over 10 s"), direction == "write", "{row}");
        assert!(row.contains("failed"), "{row}");
        let fault = line(&format!("  64B-{direction}-independent: idle: "));
        assert!(fault.contains("the byte for file position"), "{fault}");
    }
    // No peer was measured, and one exceeded its time limit. So the ratio is a lower bound, which begins with `>`.
    let bar = |line: &&str| line.contains("64 bytes: independent") && !line.starts_with("  ");
    let bar = table.lines().find(bar).expect("a bar");
    assert!(bar.contains('>'), "{bar}");
}

/// Makes a folder that looks like the prefix of an installed MPICH, with this build's compiler and launcher. In
/// its jobs, the independent writes of files have the body `body`, and the reads do nothing.
fn fake(prefix: &Path, peers: &Path, name: &str, body: &str) {
    let bin = peers.join(name).join("bin");
    fs::create_dir_all(&bin).expect("a directory");
    fs::write(bin.join("hydra_pmi_proxy"), "").expect("a file");
    std::os::unix::fs::symlink(prefix.join("bin/mpicc"), bin.join("mpicc")).expect("a link");
    let (source, library) = (bin.join("fake.c"), bin.join("fake.so"));
    let parameters = "void *a, long long b, void *c, int d, void *e, void *f";
    let function = |name, body| format!("int MPI_File_{name}_at({parameters}) {{ {body} }}\n");
    let text = format!(
        "#include <unistd.h>\n{}{}",
        function("read", "return 0;"),
        function("write", body)
    );
    fs::write(&source, text).expect("a file");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-w", "-o"]).arg(&library).arg(&source);
    assert!(cc.status().expect("cc").success());
    let launcher = prefix.join("bin/mpiexec");
    // The first two arguments are MPICH's way to bind ranks.
    let text = format!(
        "#!/bin/sh\nshift 2\nLD_PRELOAD={} exec {} --bind-to none \"$@\"\n",
        library.display(),
        launcher.display()
    );
    typepack_test_support::script::executable(&bin.join("mpiexec"), &text);
}
