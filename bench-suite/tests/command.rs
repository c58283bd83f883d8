//! Checks the command line of `typepack-bench`: its output, and that an error gives one line and an exit
//! code other than 0.

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    let binary = env!("CARGO_BIN_EXE_typepack-bench");
    Command::new(binary).args(arguments).output().expect("the command runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

const SHORT: [&str; 7] = ["pack", "--layout", "d1s2", "--size", "1K", "--rounds", "1"];

fn short(more: &[&str]) -> String {
    let output = run(&[&SHORT, more].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn the_formats_hold_the_rows() {
    let table = short(&[]);
    assert!(table.contains(" /hand |") && table.contains("1 KiB"), "{table}");
    assert!(table.starts_with("d1s2  1 double of every 2 (8-byte blocks, stride 16)\n"), "{table}");
    assert_eq!(table.lines().filter(|l| l.starts_with("| d1s2 ")).count(), 2, "{table}");
    assert!(table.lines().any(|line| line.contains("load ")), "{table}");
    let csv = short(&["--format", "csv", "--direction", "pack"]);
    assert_eq!(csv.lines().count(), 7, "{csv}");
    assert!(csv.lines().all(|l| l.split(',').count() >= 7), "{csv}");
    let json = short(&["--format", "json", "--direction", "unpack"]);
    let rows: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(rows[0]["figures"][1]["competitor"], "hand");
    assert_eq!(rows[0]["figures"][2]["competitor"], "typepack");
}

#[test]
fn the_check_prints_verdicts() {
    let arguments =
        ["pack", "--layout", "d1s2", "--size", "16K", "--rounds", "1", "--direction", "pack"];
    let output = run(&[&arguments[..], &["--check"]].concat());
    assert!(output.status.success());
    let verdicts = text(&output.stderr);
    assert!(verdicts.contains("(at least 5.00)"), "{verdicts}");
    assert!(verdicts.contains("2 verdicts"), "{verdicts}");
}

#[test]
fn faults_are_one_line_naming_the_argument() {
    let faults: [(&[&str], &str); 10] = [
        (&["pack", "--layout", "ring"], "--layout ring: no such layout; it must be one of d1s2, "),
        (&["pack", "--size", "0"], "--size"),
        (&["pack", "--size", "12Q"], "a size must be a number"),
        (&["pack", "--size", "99999999999999999999"], "--size"),
        (&["pack", "--size", "-5"], "'-5'"),
        (&["pack", "--layout", "face-x", "--size", "1000"], "layout face-x at 1000 bytes"),
        (&["pack", "--rounds", "0"], "--rounds"),
        (&["pack", "--strict"], "--check"),
        (&["pack", "--definitions", "/nonexistent.toml"], "--definitions /nonexistent.toml: "),
        (&["peck"], "peck"),
    ];
    typepack_test_support::fault_lines::refused(run, "typepack-bench: ", &faults);
}

#[test]
fn help_names_every_option() {
    let help = text(&run(&["pack", "--help"]).stdout);
    for option in ["--layout", "--size", "--direction", "--format", "--rounds", "--check"] {
        assert!(help.contains(option), "{option} is missing in:\n{help}");
    }
    assert_eq!(text(&run(&["pack", "--list"]).stdout).lines().count(), 9);
}

#[test]
fn commit_verifies_and_prints_every_bar() {
    let tiny = ["commit", "--rounds", "1", "--entries", "1000", "--size", "32K", "--format"];
    let output = run(&[&tiny[..], &["csv"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let csv = text(&output.stdout);
    for part in ["create+commit+free", "resident growth", "seek", "pieces", "external32", "fused"] {
        assert!(csv.lines().any(|line| line.contains(part)), "{part} is missing in:\n{csv}");
    }
    let help = text(&run(&["commit", "--help"]).stdout);
    assert!(help.contains("--rounds") && !help.contains("--child"), "{help}");
    let wrong = run(&["commit", "--size", "1K"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn commit_is_compared_with_another_build() {
    let own = env!("CARGO_BIN_EXE_typepack-bench");
    let tiny = ["commit", "--rounds", "1", "--entries", "1000", "--size", "32K"];
    let output = run(&[&tiny[..], &["--only", "seek", "--against", own]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    let seek = table.lines().find(|line| line.get(6..11) == Some("seek ")).expect("the rows");
    assert!(seek.ends_with(" 2"), "{table}");
    let missing = run(&["commit", "--against", "/nonexistent"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("/nonexistent: "), "{}", text(&missing.stderr));
}

#[test]
fn a_layout_file_with_faults_is_named_with_the_line() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("faulty.toml");
    let good = "sizes = [128]\n\n[[layout]]\nname = \"a\"\ntext = \"b\"\n";
    let faults = [
        ("shape.blocks = { block = 7, stride = 8 }", "line 3: layout a: block is 7; it must be "),
        ("shape.text = { type = \"vector(1, dubble)\" }", "line 3: layout a: column "),
        ("shape.blocks = { block = 8, strife = 8 }", "line 6: unknown field `strife`"),
        ("shape.blocks = { block = 8", "line 6: "),
        ("sizes = [0]\nshape.record = \"particle\"", "line 3: size 0 is not"),
    ];
    for (fault, part) in faults {
        std::fs::write(&path, format!("{good}{fault}\n")).expect("a file");
        let shown = path.display().to_string();
        for command in ["pack", "peers"] {
            let output = run(&[command, "--definitions", &shown]);
            let line = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{line}");
            let start = format!("typepack-bench: --definitions {shown}: {part}");
            assert!(line.starts_with(&start), "{line}, not {start}");
            assert_eq!(line.trim_end().lines().count(), 1, "{line}");
        }
    }
}

#[test]
fn an_instruction_set_that_is_not_there_is_one_line() {
    let lacking = typepack_engine::Isa::ALL.into_iter().find(|isa| !isa.is_available());
    let mut names = vec![("sse9".to_owned(), "sse9")];
    names.extend(lacking.map(|isa| (isa.name().to_owned(), "this machine has no")));
    for (name, part) in names {
        let by_option = run(&["peers", "--isa", &name]);
        let by_variable = Command::new(env!("CARGO_BIN_EXE_typepack-bench"))
            .args(["peers", "--layout", "d1s2"])
            .env("TYPEPACK_ISA", &name)
            .output()
            .expect("the command runs");
        for (output, place) in [(by_option, "--isa"), (by_variable, "TYPEPACK_ISA")] {
            let line = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{line}");
            assert!(line.contains(place) && line.contains(part), "{line}");
            assert_eq!(line.trim_end().lines().count(), 1, "{line}");
        }
    }
    let sound =
        ["peers", "--isa", "portable", "--layout", "d1s2", "--size", "128", "--rounds", "1"];
    let output = run(&[&sound[..], &["--peers", "/nonexistent"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(!text(&output.stdout).contains("avx"), "{}", text(&output.stdout));
}

#[test]
fn instruction_sets_are_judged_against_loops_of_their_level() {
    let small =
        ["pack", "--isa", "all", "--layout", "b1s2,struct", "--size", "1K", "--rounds", "1"];
    let output = run(&[&small[..], &["--peers", "/nonexistent"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for isa in typepack_engine::Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        let march = typepack_bench::levels::march(isa);
        assert!(shown.contains(&format!("# {isa}\n")), "{shown}");
        assert!(
            shown.contains(&format!("{isa}: each row against the hand loop for {march}")),
            "{shown}"
        );
        assert!(shown.contains(&format!("Rust, compiled for {march}\n")), "{shown}");
    }
    // The run has no transposes, so their bar has no verdict.
    let verdict = shown.lines().find(|line| line.contains("transposes ")).expect("a bar");
    assert!(verdict.starts_with("- "), "{verdict}");
    let unknown = run(&["pack", "--isa", "sse9"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("sse9"), "{}", text(&unknown.stderr));
}

#[test]
fn records_are_drawn_and_faulty_ones_named() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures");
    let record = folder.with_extension("csv");
    let rows =
        ["peers", "--layout", "d1s2", "--size", "128,1K,16K", "--rounds", "1", "--format", "csv"];
    let output = run(&[&rows[..], &["--peers", "/nonexistent"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    std::fs::write(&record, &output.stdout).expect("a file");
    let (file, out) = (record.display().to_string(), folder.display().to_string());
    let output = run(&["plot", &file, "--out", &out]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout).lines().count(), 4, "{}", text(&output.stdout));
    std::fs::write(&record, "layout,bytes\na,1,2\n").expect("a file");
    let output = run(&["plot", &file, "--out", &out]);
    assert_eq!(output.status.code(), Some(2));
    let line = text(&output.stderr);
    let fault = "pictures.csv: line 2 has 3 fields, but the table peers has 2 columns\n";
    assert!(line.ends_with(fault), "{line}");
}

#[test]
fn guidelines_and_the_columns_of_ddtbench_are_printed() {
    let output = run(&["guidelines", "--types", "1", "--rounds", "1", "--format", "csv"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout).lines().count(), 1 + 16);
    assert!(text(&output.stderr).contains("Performance guidelines, 1 random types (seed 1)"));
    let one = ["peers", "--set", "ddtbench", "--layout", "NAS_LU_y_12", "--rounds", "1"];
    let output = run(&[&one[..], &["--peers", "/nonexistent", "--format", "ddtbench"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let rows = text(&output.stdout);
    let fields: Vec<&str> = rows.lines().nth(1).expect("a row").split_whitespace().collect();
    assert_eq!(fields[..4], ["NAS_LU_y_12", "memcpy", "480", "pack"]);
    assert!(fields[4].parse::<f64>().expect("microseconds") > 0.0);
}

const MODEL: [&str; 5] = ["model", "--bandwidth", "100", "--host-rate", "1,2,4"];

#[test]
fn the_model_predicts_from_given_rates() {
    let output = run(&[&MODEL[..], &["--typepack-rate", "4", "--ranks", "1000,100000"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(table.contains("10x10x10") && table.contains("50x50x40"), "{table}");
    assert!(table.contains("923.5 / 399.2 = 2.313") && table.contains("3.316 Gbit/s"), "{table}");
    assert!(table.contains("stops mattering at edges below 4"), "{table}");
}

#[test]
fn the_model_predicts_from_measured_messages() {
    let folder = std::env::temp_dir().join(format!("typepack-model-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = |name: &str, face: u32| {
        let mut lines =
            "edge 64\nwidth 1\nelement 8\nfields 1\nlatency 2000\nmessage 10000\n".to_owned();
        for d in ["x", "y", "z"] {
            lines += &format!("pack-{d} 1\nunpack-{d} 1\nmessage-{d} {face}\n");
        }
        let path = folder.join(name);
        std::fs::write(&path, lines + "contiguous 30000\nexchange 90000\n").expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    };
    let (alone, behind) = (file("alone", 50_000), file("behind", 20_000));
    let start =
        ["model", "--bandwidth", "100", "--edge", "64", "--overlap", "none", "--ranks", "1000"];
    let output = run(&[&start[..], &["--messages", &alone, &behind]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    // 12 overheads of 0.5 us, a latency of 2 us, 6 faces of 32 KiB at 12.5 GB/s, and 6 times 40 and 10 us.
    assert!(text(&output.stdout).contains("263.7 / 83.7 = 3.150"), "{}", text(&output.stdout));
    let output = run(&[&start[..], &["--width", "2", "--messages", &alone, &behind]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--messages"), "{}", text(&output.stderr));
    let output = run(&["model", "--compare", &alone, &behind]);
    assert!(text(&output.stdout).contains("90.0 / 90.0 = 1.000"), "{}", text(&output.stdout));
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}

#[test]
fn a_wrong_argument_of_the_model_is_named() {
    let fails = |arguments: &[&str], option: &str| {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let line = text(&output.stderr);
        assert!(line.lines().count() == 1 && line.contains(option), "{line}");
    };
    fails(&MODEL, "--typepack-rate");
    fails(&["model", "--host-rate", "1"], "--bandwidth");
    fails(&["model", "--bandwidth", "0"], "--bandwidth");
    fails(&["model", "--bandwidth", "1", "--latency", "-1"], "--latency");
    fails(&["model", "--bandwidth", "1", "--host-rate", "1,2"], "--host-rate");
    fails(&["model", "--bandwidth", "1", "--host", "/nowhere"], "--host /nowhere");
    fails(&["model", "--bandwidth", "1", "--edge", "2", "--width", "3"], "--width");
    fails(&["model", "--bandwidth", "1", "--edge", "2", "--total", "3"], "--edge");
    fails(&["model", "--compare", "/nowhere", "/nowhere"], "--compare /nowhere");
}
