//! Checks the commands `typepack-bench regret messages`, `regret collectives` and `regret pack`: their errors, real
//! runs at tiny sizes, candidates that fail, and a free choice that is bad on purpose.
//!
//! The runs of messages need a C compiler, and this build's `mpiexec`, `mpicc` and library. If one of these is
//! missing, the tests print a message and pass.

use crate::prefix::{prefix, text};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use typepack_test_support::attempts::attempts;
use typepack_test_support::skipped::skipped;

fn command(arguments: &[&str]) -> Command {
    // On a busy machine, two spinning ranks may make the test slow. The only purpose of the time limit is
    // to end a test that hangs.
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "900", env!("CARGO_BIN_EXE_typepack-bench"), "regret"]);
    command.args(arguments);
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the command runs")
}

/// Runs `regret messages` with one small row of 8-byte blocks, with turns of `milliseconds`, and with the options
/// `more`. The message is too long to be sent eagerly. Returns the table with the summary, and the lines of the CSV
/// file, or `None` if this machine cannot run several jobs on the same cores.
fn small(prefix: &Path, milliseconds: &str, more: &[&str]) -> Option<(String, Vec<Vec<String>>)> {
    let (rows, csv) = (prefix.join("rows.toml"), prefix.join("figures.csv"));
    let row = "name = \"columns\"\ntext = \"t\"\nlayout = \"blocks 8 64 8000\"";
    fs::write(&rows, format!("[[row]]\n{row}\n")).expect("a file");
    let names = [prefix, &rows, &csv].map(|path| path.display().to_string());
    let files = ["--prefix", &names[0], "--rows", &names[1], "--csv", &names[2]];
    let tiny = ["messages", "--rounds", "2", "--milliseconds", milliseconds];
    let output = run(&[&tiny[..], &files[..], more].concat());
    let (table, said) = (text(&output.stdout), text(&output.stderr));
    if said.contains("network namespaces") {
        skipped(said);
        return None;
    }
    assert!(output.status.success(), "{table}{said}");
    let csv = fs::read_to_string(csv).expect("the figures");
    let fields = |line: &str| line.split(',').map(str::to_owned).collect();
    Some((table, csv.lines().skip(1).map(fields).collect()))
}

/// Replaces the launcher of the installation by a shell script: `lines`, and then the launcher itself.
fn wrap_launcher(prefix: &Path, lines: &str) {
    let (launcher, own) = (prefix.join("bin/mpiexec"), prefix.join("bin/own-mpiexec"));
    fs::rename(&launcher, &own).expect("the launcher");
    typepack_test_support::script::executable(
        &launcher,
        &format!("#!/bin/sh\n{lines}\nexec {} \"$@\"\n", own.display()),
    );
}

#[test]
fn faults_are_one_line_naming_the_argument() {
    let faults: [(&[&str], &str); 10] = [
        (&["messages", "--only", "contig-9B"], "--only contig-9B: no such row"),
        (
            &["messages", "--prefix", "/nonexistent"],
            "--prefix /nonexistent: bin/mpiexec is missing",
        ),
        (&["messages", "--rounds", "1"], "--rounds"),
        (&["messages", "--memory", "disk"], "disk"),
        (&["messages", "--rows", "/nonexistent"], "--rows /nonexistent: "),
        (&["pack", "--layout", "ring"], "--layout ring: no such layout"),
        (&["pack", "--rounds", "1"], "--rounds"),
        (&["windows"], "windows"),
        (&["collectives", "--only", "bcast-9B"], "--only bcast-9B: no such row"),
        (&["files", "--prefix", "/nonexistent"], "--prefix /nonexistent: "),
    ];
    typepack_test_support::fault_lines::refused(run, "typepack-bench: ", &faults);
}

#[test]
fn the_free_choice_must_be_free() {
    for name in ["TYPEPACK_TRANSPORT", "TYPEPACK_COPY", "TYPEPACK_COLL", "TYPEPACK_TUNE"] {
        let output = command(&["messages", "--prefix", "/nonexistent"]).env(name, "ring").output();
        let output = output.expect("the command runs");
        let line = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(line.contains(&format!("{name} is set to \"ring\"; it must not be set")), "{line}");
    }
}

#[test]
fn rows_are_listed_with_their_candidates_and_options_named() {
    let list = text(&run(&["messages", "--list"]).stdout);
    let line = |name: &str, memory: &str| {
        let mut lines = list.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        lines.find(|words| words[..2] == [name, memory]).expect(name).join(" ")
    };
    assert!(line("contig-8K", "user").ends_with(", cma"), "{list}");
    assert!(line("contig-4M", "alloc").contains("heap-vector"), "{list}");
    assert!(!line("d1s8-64K", "user").contains("cma"), "{list}");
    assert!(!line("halo-128", "user").contains("heap"), "{list}");
    // There are at least two candidates per row wherever the machine has a second copy method.
    let least = if typepack_engine::contiguous::available().count() > 1 { 2 } else { 1 };
    for line in list.lines() {
        let names: Vec<&str> = line.split_whitespace().skip(2).collect();
        assert!(names.len() >= least, "{line}");
    }
    let quick = text(&run(&["messages", "--list", "--quick"]).stdout).lines().count();
    assert!(10 < quick && quick < list.lines().count(), "{quick}");
    let help = text(&run(&["messages", "--help"]).stdout);
    for option in ["--only", "--memory", "--prefix", "--quick", "--rounds", "--milliseconds"] {
        assert!(help.contains(option), "{option} is missing in:\n{help}");
    }
    let help = text(&run(&["pack", "--help"]).stdout);
    for option in ["--layout", "--direction", "--rounds", "--quick", "--only", "--csv"] {
        assert!(help.contains(option), "{option} is missing in:\n{help}");
    }
}

#[test]
fn messages_are_measured_with_every_candidate() {
    let Some(prefix) = prefix("regret-messages") else { return };
    let Some((table, lines)) = small(&prefix, "1", &[]) else { return };
    assert!(!table.contains("Faults") && !table.contains("failed"), "{table}");
    assert!(table.contains("2 of 2 rows judged"), "{table}");
    let methods = typepack_engine::contiguous::available().count();
    // For each kind of memory: the free choice, the static order, the chunks with every copy method, and the free
    // choice without its chooser. For memory of `MPI_Alloc_mem` also: copies out of the heap with every copy method.
    // Without it: the free choice without messages in parts.
    assert_eq!(lines.len(), 7 + 3 * methods, "{lines:?}");
    assert!(table.contains("gain, messages, mean"), "{table}");
    assert!(
        table.contains("\nmessages: columns user ") && table.contains("Mean gain below"),
        "{table}"
    );
    for line in &lines {
        let number = |field: usize| line[field].parse::<f64>().expect("a number");
        assert!(number(6) > 0.0 && number(7) > 0.0 && number(9) > 0.0, "{line:?}");
        let is_free = line[5] == "free";
        assert_eq!(is_free, !line[10].is_empty() && number(11) > 0.0 && number(12) > 0.0);
        let chooser = match line[5].as_str() {
            "static" => "all",
            name => name.strip_prefix("off:").unwrap_or_default(),
        };
        assert_eq!(line[14], chooser, "{line:?}");
        assert!(
            chooser.is_empty() == line[15].is_empty() && (chooser.is_empty() || number(15) > 0.0)
        );
    }
}

/// Runs `regret collectives` with two small rows: one of two methods, and a reduction of three.
#[test]
fn collectives_are_measured_with_every_method() {
    let Some(prefix) = prefix("regret-collectives") else { return };
    let (prefix, csv) = (prefix.display().to_string(), prefix.join("figures.csv"));
    let name = csv.display().to_string();
    let rows = "bcast-16K-x2,allreduce-8B-x2";
    let tiny = ["collectives", "--only", rows, "--rounds", "2", "--milliseconds", "1"];
    let output = run(&[&tiny[..], &["--prefix", &prefix, "--csv", &name]].concat());
    let (table, said) = (text(&output.stdout), text(&output.stderr));
    if said.contains("network namespaces") {
        return skipped(said);
    }
    assert!(output.status.success(), "{table}{said}");
    assert!(table.contains("2 of 2 rows judged"), "{table}");
    let figures = fs::read_to_string(csv).expect("the figures");
    let candidates: Vec<&str> =
        figures.lines().skip(1).filter_map(|line| line.split(',').nth(5)).collect();
    let wanted =
        ["free", "static", "messages", "cells", "off:collective", "off:pieces"].into_iter();
    let wanted: Vec<&str> =
        wanted.chain(["free", "static", "messages", "whole", "slices", "off:waits"]).collect();
    assert_eq!(candidates, wanted, "{figures}");
}

/// Makes the free choice slow: jobs without a forced transport check every kernel call against the interpreter, and
/// sleep whenever they wait. The regret must show that.
#[test]
fn a_bad_free_choice_has_a_regret() {
    let Some(prefix) = prefix("regret-bad") else { return };
    let slow = "TYPEPACK_VERIFY=1 TYPEPACK_SPIN_US=0 TYPEPACK_TRANSPORT=pipeline";
    wrap_launcher(&prefix, &format!("[ -n \"$TYPEPACK_TRANSPORT\" ] || export {slow}"));
    attempts(|number| {
        // The first messages of a job are slow with every choice. So the turns are long enough for many messages, and
        // longer if ranks have got the CPU late.
        let turn = (20 << (3 * number)).to_string();
        let Some((table, lines)) = small(&prefix, &turn, &["--memory", "alloc"]) else {
            return Ok(());
        };
        let regret = |field: usize| lines[0][field].parse::<f64>().expect("a regret");
        // If the ranks of the best candidate get no CPU for some time, the free choice looks as good as the candidate.
        if regret(11) <= 1.25 || regret(12) <= 1.25 {
            return Err(table);
        }
        assert!(table.contains("\nregret: rows above 1.25\n  columns alloc, "), "{table}");
        Ok(())
    });
}

#[test]
fn candidates_that_fail_are_lines_and_a_row_without_choice_is_not_judged() {
    let Some(prefix) = prefix("regret-faults") else { return };
    let refuse = |pattern: &str| {
        format!(
            "case \"$TYPEPACK_TRANSPORT-$TYPEPACK_COPY\" in {pattern}) echo 'fatal: no luck' >&2; exit 3 ;; \
             esac"
        )
    };
    wrap_launcher(&prefix, &refuse("ring-*"));
    let Some((table, lines)) = small(&prefix, "1", &["--memory", "alloc"]) else { return };
    let faults = table.split_once("\nFaults\n").expect("faults").1;
    let line = "columns alloc: ring-vector: crashed: exit status: 3 (fatal: no luck)";
    assert!(faults.contains(line), "{faults}");
    assert!(table.lines().any(|l| l.starts_with("| columns ") && l.contains("failed")), "{table}");
    let methods = typepack_engine::contiguous::available().count();
    assert_eq!(lines.len(), 3 + methods, "{lines:?}");

    fs::rename(prefix.join("bin/own-mpiexec"), prefix.join("bin/mpiexec")).expect("the launcher");
    wrap_launcher(&prefix, &refuse("ring-*|heap-[!v]*"));
    let Some((table, _)) = small(&prefix, "1", &["--memory", "alloc"]) else { return };
    let line = "columns alloc: the measured candidates are: heap-vector; a row needs at least 2";
    assert!(table.contains(line) && table.contains("not judged"), "{table}");
    assert!(table.contains("not measured") && !table.contains("pass"), "{table}");
}

#[test]
fn packing_is_measured_with_both_kernels_and_the_policy() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("regret-pack.csv");
    let csv = file.display().to_string();
    let tiny = ["pack", "--layout", "d1s2", "--rounds", "2", "--quick", "--csv", &csv];
    let output = run(&tiny);
    let table = text(&output.stdout);
    assert!(output.status.success(), "{table}{}", text(&output.stderr));
    assert!(!table.contains("Faults"), "{table}");
    let verdicts = |title: &str| {
        let named = |line: &&str| line.get(6..).is_some_and(|line| line.starts_with(title));
        table.lines().filter(named).count()
    };
    assert_eq!((verdicts("kernels, "), verdicts("policy, ")), (2, 2), "{table}");
    let figures = fs::read_to_string(file).expect("the figures");
    // There is a header line, and a line for each of three sizes, two directions and four competitors, and for long
    // calls one without the chooser of kernels, if there was a choice.
    let without = figures.matches(",off:kernels,").count();
    assert_eq!(figures.lines().count(), 1 + 3 * 2 * 4 + without, "{figures}");
    assert!(without <= 4 && !figures.contains(",off:copies,"), "{figures}");
    for name in ["typepack", "static", "leaf", "jit"] {
        assert!(figures.matches(&format!(",{name},")).count() >= 6, "{figures}");
    }
    let only = run(&["pack", "--layout", "d1s2", "--rounds", "2", "--quick", "--only", "policy"]);
    let table = text(&only.stdout);
    assert!(table.contains("policy, mean") && !table.contains("kernels, mean"), "{table}");
}
