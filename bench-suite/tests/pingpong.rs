//! Checks the commands `typepack-bench pingpong`, `collectives` and `one-sided`: their errors, runs with typepack's
//! library at tiny sizes, the comparison of two builds, and peers that crash or do not start.
//!
//! The runs need a C compiler, and this build's `mpiexec`, `mpicc` and library. If one of these is
//! missing, the tests print a message and pass.

use crate::prefix::{prefix, text};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use typepack_test_support::skipped::skipped;

fn run(arguments: &[&str]) -> Output {
    command("pingpong", arguments)
}

fn command(name: &str, arguments: &[&str]) -> Output {
    let binary = env!("CARGO_BIN_EXE_typepack-bench");
    // On a busy machine, two spinning ranks may make the test slow. The only purpose of the time limit is
    // to end a test that hangs.
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "900", binary, name]).args(arguments);
    command.output().expect("the command runs")
}

/// Makes a folder that looks like the prefix of an installed MPICH. Its mpicc is a link to `compiler`, and
/// its mpiexec is a shell script with the text `mpiexec`.
fn fake(folder: &Path, name: &str, compiler: &Path, mpiexec: &str) {
    let bin = folder.join(name).join("bin");
    fs::create_dir_all(&bin).expect("a directory");
    fs::write(bin.join("hydra_pmi_proxy"), "").expect("a file");
    std::os::unix::fs::symlink(compiler, bin.join("mpicc")).expect("a link");
    typepack_test_support::script::executable(
        &bin.join("mpiexec"),
        &format!("#!/bin/sh\n{mpiexec}\n"),
    );
}

#[test]
fn faults_are_one_line_naming_the_argument() {
    let faults: [(&[&str], &str); 7] = [
        (&["--only", "contig-9B"], "--only contig-9B: no such row"),
        (&["--prefix", "/nonexistent"], "--prefix /nonexistent: bin/mpiexec is missing"),
        (
            &["--prefix", "a b=/tmp"],
            "--prefix a b=/tmp: the name is 'a b'; it must be one or more letters",
        ),
        (&["--rows", "/nonexistent"], "--rows /nonexistent: "),
        (&["--rounds", "0"], "--rounds"),
        (&["--memory", "disk"], "disk"),
        (&["--milliseconds", "0"], "--milliseconds"),
    ];
    typepack_test_support::fault_lines::refused(run, "typepack-bench: ", &faults);
}

#[test]
fn rows_are_listed_and_options_named() {
    let list = text(&run(&["--list", "--only", "8B,halo-128,job-kill"]).stdout);
    let names: Vec<&str> = list.lines().filter_map(|l| l.split_whitespace().next()).collect();
    assert_eq!(names, ["contig-8B", "halo-128", "halo-128-remote", "spawn-8B", "job-kill"]);
    let all = text(&run(&["--list"]).stdout).lines().count();
    let quick = text(&run(&["--list", "--quick"]).stdout).lines().count();
    assert!(20 < quick && quick < all, "{quick} of {all}");
    let help = text(&run(&["--help"]).stdout);
    let options = ["--only", "--memory", "--prefix", "--peers", "--library", "--quick", "--rounds"];
    for option in options.iter().chain(&["--milliseconds", "--csv", "--rows", "--list"]) {
        assert!(help.contains(option), "{option} is missing in:\n{help}");
    }
}

#[test]
fn every_kind_of_row_is_verified_and_measured() {
    let Some(prefix) = prefix("rows") else { return };
    let rows = prefix.join("rows.toml");
    let lines = [
        ("bytes", "layout = \"contig 8\"\nclass = \"x\""),
        ("blocks", "layout = \"blocks 8 64 40\""),
        ("bytes-2", "layout = \"blocks 1 3 4000\""),
        ("shorts", "layout = \"blocks 2 6 4000\""),
        ("floats", "layout = \"blocks 12 20 4000\""),
        ("columns", "layout = \"columns 9 20 3\""),
        ("long", "layout = \"blocks 24 56 20000\""),
        ("list", "layout = \"indexed 100\""),
        ("records", "layout = \"struct 1000\""),
        ("particles", "layout = \"particle 9\""),
        ("face-x", "layout = \"face 8 0\"\npack = true"),
        ("face-y", "layout = \"face 8 1\""),
        ("face-z", "layout = \"face 8 2\""),
        ("halo-d", "halo = \"double 6 mixed\""),
        ("halo-s", "halo = \"struct 5 remote\""),
        ("halo-5", "halo = \"five 4 mixed\""),
        ("halo-f", "halo = \"fields 4 remote\""),
    ];
    let mut toml = String::new();
    for (name, more) in lines {
        toml.push_str(&format!("[[row]]\nname = \"{name}\"\ntext = \"t\"\n{more}\n"));
    }
    toml.push_str("[[bar]]\nclass = \"x\"\ntext = \"some bar\"\nvalue = \"least\"\n");
    toml.push_str("bar = [1.0, 1.0]\ngoal = [2.0, 2.0]\n");
    fs::write(&rows, toml).expect("a file");
    let csv = prefix.join("figures.csv");
    let (rows, csv) = (rows.display().to_string(), csv.display().to_string());
    let shown = prefix.display().to_string();
    let names = lines.map(|(name, _)| name).join(",");
    let arguments = ["--prefix", &shown, "--peers", "/nonexistent", "--rows", &rows, "--csv", &csv];
    let tiny = ["--rounds", "1", "--milliseconds", "1", "--only", &names];
    let output = run(&[&arguments[..], &tiny[..]].concat());
    let table = text(&output.stdout);
    assert!(output.status.success(), "{table}{}", text(&output.stderr));
    assert!(!table.contains("Faults") && !table.contains("failed"), "{table}");
    assert!(table.contains("typepack: typepack ") && table.contains("No peers took part"));
    let figures = fs::read_to_string(csv).expect("the figures");
    // The record states the load before the run in the words of the summary.
    let (load, figures) = figures.split_once('\n').expect("a first line");
    let (_, load) = load.split_once("# load of other programs, pingpong: ").expect("the load");
    assert!(table.contains(&format!("{load}\n")), "{table}");
    assert!(table.lines().any(|line| line.split_whitespace().eq(["face-x", "t"])), "{table}");
    // There is a header line, and each row has a line for each of the two kinds of memory.
    assert_eq!(figures.lines().count(), 1 + 2 * lines.len(), "{figures}");
    let fields = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    let header = fields(figures.lines().next().expect("a header"));
    for line in figures.lines().skip(1) {
        let fields = fields(line);
        assert_eq!(fields.len(), header.len(), "{line}");
        let field = |name: &str| &fields[header.iter().position(|own| own == name).expect(name)];
        assert!(field("ns").parse::<f64>().expect("nanoseconds") > 0.0, "{line}");
        assert_eq!(field("pack_ns").is_empty(), fields[0] != "face-x", "{line}");
    }
}

/// Checks that all collective calls give right results and times, with as many ranks as CPUs and with more
/// ranks than CPUs. The second build is the first one under another name; the test also checks that the
/// summary compares the two builds in every row.
#[test]
fn collectives_of_two_builds_are_verified_and_compared() {
    let Some(prefix) = prefix("collectives") else { return };
    let rows = prefix.join("rows.toml");
    let mut toml = String::new();
    for (name, sizes) in [
        ("barrier", ""),
        ("bcast", "sizes = [\"8B\", \"320K\"]"),
        ("reduce", "sizes = [\"1K\"]"),
        ("allreduce", "sizes = [\"1K\"]"),
        ("gather", "sizes = [\"1K\"]"),
        ("allgather", "sizes = [\"1K\"]"),
        ("alltoall", "sizes = [\"1K\"]"),
    ] {
        toml.push_str(&format!("[[row]]\nname = \"{name}\"\ntext = \"t\"\nclass = \"c\"\n"));
        toml.push_str(&format!("collective = \"{name}\"\nranks = [2, 5]\n{sizes}\n"));
    }
    fs::write(&rows, toml).expect("a file");
    let (rows, shown) = (rows.display().to_string(), prefix.display().to_string());
    let other = format!("other={shown}");
    let arguments = ["--prefix", &shown, "--prefix", &other, "--peers", "/nonexistent"];
    let tiny = ["--rows", &rows, "--rounds", "1", "--milliseconds", "1"];
    let output = command("collectives", &[&arguments[..], &tiny[..]].concat());
    let (table, said) = (text(&output.stdout), text(&output.stderr));
    if said.contains("network namespaces") {
        skipped(said);
        return;
    }
    assert!(output.status.success(), "{table}{said}");
    assert!(!table.contains("Faults") && !table.contains("failed"), "{table}");
    assert_eq!(table.lines().filter(|l| l.starts_with("| ") && l.contains("-x5 ")).count(), 8);
    let summary = table.split_once("typepack against other: ").expect("a summary").1;
    let all = summary.lines().find(|l| l.get(6..10) == Some("all ")).expect("all rows");
    assert!(all.ends_with(" 16"), "{summary}");
}

/// Checks that every operation of windows and every way of a halo gives right results and times, with windows of both
/// kinds of memory, and that ranks which share CPUs take locks and insert keys.
#[test]
fn one_sided_rows_are_verified() {
    let Some(prefix) = prefix("one-sided") else { return };
    let rows = prefix.join("rows.toml");
    let mut toml = String::new();
    for (name, words) in [
        ("put", "window = \"put struct {n}\"\nunit = 13\nsizes = [\"1K\", \"64K\"]"),
        ("get", "window = \"get blocks 8 64 {n}\"\nunit = 8\nsizes = [\"1K\", \"64K\"]"),
        ("sum", "window = \"accumulate {n}\"\nsizes = [\"8B\", \"64K\"]"),
        ("fetch", "window = \"fetch\""),
        ("swap", "window = \"swap\""),
        ("fence", "window = \"fence\""),
        ("post", "window = \"post\""),
        ("lock", "window = \"lock\"\nranks = [2, 5]"),
        ("insert", "window = \"insert\"\nranks = [2, 5]"),
        ("halo-fence", "halo = \"double 8 mixed fence\""),
        ("halo-post", "halo = \"struct 8 remote post\""),
        ("halo-shared", "halo = \"double 8 remote shared\"\nmemory = \"alloc\""),
    ] {
        toml.push_str(&format!("[[row]]\nname = \"{name}\"\ntext = \"t\"\n{words}\n"));
    }
    fs::write(&rows, toml).expect("a file");
    let (rows, shown) = (rows.display().to_string(), prefix.display().to_string());
    let arguments = ["--prefix", &shown, "--peers", "/nonexistent", "--rows", &rows];
    let tiny = ["--rounds", "1", "--milliseconds", "1"];
    let output = command("one-sided", &[&arguments[..], &tiny[..]].concat());
    let (table, said) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{table}{said}");
    assert!(!table.contains("Faults") && !table.contains("failed"), "{table}");
    let count =
        |memory: &str| table.lines().filter(|l| l.contains(&format!("| {memory} "))).count();
    assert_eq!((count("user"), count("alloc")), (16, 17), "{table}");
}

/// Checks that sections of each number of dimensions, the halo and both ways of packing give right results and times.
#[test]
fn fortran_rows_are_verified() {
    if Command::new("gfortran").arg("--version").output().is_err() {
        skipped("gfortran does not start");
        return;
    }
    let Some(prefix) = prefix("fortran") else { return };
    let rows = prefix.join("rows.toml");
    let mut toml = String::new();
    for (name, words) in [
        ("call", "section = \"over-c\"\nlayout = \"contig 8\""),
        ("over", "section = \"over-c\"\nlayout = \"blocks 512 1024 3\""),
        (
            "line",
            "section = \"sections\"\nlayout = \"blocks 8 24 {n}\"\nunit = 8\nsizes = [\"64B\", \"4K\"]",
        ),
        ("plane", "section = \"sections\"\nlayout = \"blocks 16 40 9\""),
        ("face-x", "section = \"sections\"\nlayout = \"face 7 0\""),
        ("face-y", "section = \"assignment\"\nlayout = \"face 7 1\""),
        ("face-z", "section = \"over-c\"\nlayout = \"face 7 2\""),
        ("pack", "section = \"assignment\"\nlayout = \"blocks 16 24 300\""),
        ("halo", "halo = \"double 8 mixed sections\""),
    ] {
        toml.push_str(&format!("[[row]]\nname = \"{name}\"\ntext = \"t\"\n{words}\n"));
    }
    fs::write(&rows, toml).expect("a file");
    let (rows, shown) = (rows.display().to_string(), prefix.display().to_string());
    let csv = prefix.join("figures.csv").display().to_string();
    let arguments = ["--prefix", &shown, "--peers", "/nonexistent", "--rows", &rows, "--csv", &csv];
    let tiny = ["--rounds", "1", "--milliseconds", "1"];
    let output = command("fortran", &[&arguments[..], &tiny[..]].concat());
    let (table, said) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{table}{said}");
    assert!(!table.contains("Faults") && !table.contains("failed"), "{table}");
    let figures = fs::read_to_string(csv).expect("the figures");
    let count = |name: &str| figures.lines().filter(|l| l.contains(&format!(",{name},"))).count();
    assert_eq!((count("typepack"), count("c"), count("hand")), (10, 3, 3), "{figures}");
}

#[test]
fn jobs_are_measured() {
    let Some(prefix) = prefix("jobs") else { return };
    let shown = prefix.display().to_string();
    let arguments = ["--prefix", &shown, "--peers", "/nonexistent", "--quick", "--only", "job"];
    let output = run(&arguments);
    let table = text(&output.stdout);
    assert!(output.status.success(), "{table}{}", text(&output.stderr));
    assert!(!table.contains("Faults"), "{table}");
    // Whether a job passes depends on the speed of the machine. The test checks only that every job has a
    // verdict.
    let verdicts = |word: &str| table.lines().filter(|l| l.starts_with(word)).count();
    assert_eq!(verdicts("pass ") + verdicts("MISS "), 5, "{table}");
}

#[test]
fn started_processes_are_measured() {
    let Some(prefix) = prefix("spawns") else { return };
    let shown = prefix.display().to_string();
    let arguments = ["--prefix", &shown, "--peers", "/nonexistent", "--quick", "--only", "spawn"];
    let output = run(&arguments);
    let table = text(&output.stdout);
    assert!(output.status.success(), "{table}{}", text(&output.stderr));
    assert!(!table.contains("Faults"), "{table}");
    let verdicts = |word: &str| table.lines().filter(|l| l.starts_with(word)).count();
    assert_eq!(verdicts("pass ") + verdicts("MISS "), 4, "{table}");
}

#[test]
fn peers_that_fail_are_lines_and_the_others_are_measured() {
    let Some(prefix) = prefix("peers") else { return };
    let peers = prefix.join("peers");
    let compiler = prefix.join("bin/mpicc");
    fake(&peers, "crashing", &compiler, "echo 'fatal: no luck today' >&2; exit 3");
    // This mpiexec starts the program once, as a process that belongs to no job. The program finds that it
    // has only one rank, and reports that.
    fake(
        &peers,
        "lonely",
        &compiler,
        "while [ \"$1\" != -n ]; do shift; done; shift 2; exec \"$@\"",
    );
    fs::create_dir_all(peers.join("broken/bin")).expect("a directory");
    fake(&peers, "uncompiled", Path::new("/bin/false"), "exit 0");
    let (shown, peers) = (prefix.display().to_string(), peers.display().to_string());
    let tiny = ["--rounds", "1", "--milliseconds", "1", "--only", "8B", "--memory", "user"];
    let output = run(&[&["--prefix", &shown, "--peers", &peers][..], &tiny[..]].concat());
    let table = text(&output.stdout);
    assert!(output.status.success(), "{table}{}", text(&output.stderr));
    let faults = table.split_once("\nFaults\n").expect("faults").1;
    for line in [
        "crashing: crashed: exit status: 3 (fatal: no luck today)",
        "lonely: crashed: exit status: 9 (bench: the rows are for 2 ranks, not 1)",
        "uncompiled: mpicc failed: it said nothing",
    ] {
        assert!(faults.contains(line), "{line} is missing in:\n{faults}");
    }
    assert!(!table.contains("broken"), "{table}");
    let row = table.lines().find(|l| l.starts_with("| contig-8B")).expect("the row");
    assert_eq!(row.matches("failed").count(), 2, "{row}");
}
