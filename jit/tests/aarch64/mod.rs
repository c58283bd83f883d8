//! Runs the kernels as AArch64 code in a small C program.
//!
//! The test writes the code of every case, in both directions, into a C header; [`typepack_jit::emit`]
//! makes the code. `driver.c` runs the code, copies along the same nests with memcpy, and compares the
//! results. `aarch64-linux-gnu-gcc` compiles and links the driver statically, and `qemu-aarch64-static`
//! runs it, also on an AArch64 machine.
//!
//! If one of these two tools is missing, the test reports that it is skipped, and passes. In CI (the
//! variable `CI` is set) a missing tool is a failure, because `scripts/setup --tests` installs the tools there.

mod transfer;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use typepack_engine::Table;
use typepack_engine::kernel::{Direction, Leaf, Level, Nest, Run};
use typepack_jit::{Target, emit};
use typepack_test_support::skipped::skipped;

const COMPILER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: &str = "qemu-aarch64-static";

#[test]
fn kernels_run_as_aarch64_code() {
    for tool in [COMPILER, EMULATOR] {
        if let Err(error) = Command::new(tool).arg("--version").output() {
            let reason = format!("{tool}: {error}; scripts/setup --tests installs it");
            assert!(std::env::var_os("CI").is_none(), "{reason}");
            skipped(reason);
            return;
        }
    }
    let cases = cases();
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("aarch64");
    std::fs::create_dir_all(&directory).expect("the directory of the driver is made");
    let transfers = transfer::cases();
    let header = header(&cases) + &transfer::header(&transfers);
    std::fs::write(directory.join("cases.h"), header).expect("cases.h is written");
    let program = directory.join("driver");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/aarch64/driver.c");

    let compiled = Command::new(COMPILER)
        .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-static", "-I"])
        .arg(&directory)
        .arg(source)
        .arg("-o")
        .arg(&program)
        .output()
        .expect("the compiler runs");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));

    // `timeout` ends a run that takes too long, because a wrong branch may loop forever.
    let run = Command::new("timeout")
        .args(["120", EMULATOR])
        .arg(&program)
        .output()
        .expect("the emulator runs");
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{}: {out}{err}", run.status);
    assert_eq!(out, format!("{} kernels agree\n", 2 * cases.len() + transfers.len()));
}

struct Case {
    name: String,
    nest: Nest,
}

/// Returns the layouts of the bench suite, and cases with odd lengths, tables, and other corner
/// cases.
fn cases() -> Vec<Case> {
    let double = 8;
    let (row, plane) = (130 * double, 130 * 130 * double);
    let mut cases = vec![
        block("column / 16", vec![line(131, 16)], 8),
        block("column / 64", vec![line(131, 64)], 8),
        block("column / 1024", vec![line(131, 1024)], 8),
        block("column / 1088", vec![line(131, 1088)], 8),
        block("blocks of 64", vec![line(131, 128)], 64),
        block("x face", vec![line(128, plane), line(128, row)], 8),
        block("y face", vec![line(128, plane)], 1024),
        block("z face", vec![line(2, 64 * plane), line(128, row)], 1024),
        window("char, int, double", vec![line(131, 16)], &[(0, 1), (4, 4), (8, 8)]),
        window("char, int and double", vec![line(131, 16)], &[(0, 1), (4, 12)]),
    ];
    let entries: Vec<i64> = (0..37).map(|i| i * 7 % 37 - 5).collect();
    let narrow = || Table::new(&entries);
    let wide = || Table::Wide(entries.as_slice().into());
    let table = |entries, scale| vec![Level::Table { entries, scale }];
    for bytes in (1..=64).chain([65, 100, 127, 128, 129, 191, 192, 193, 1000]) {
        let stride = bytes as i64 + 3;
        cases.push(block(&format!("loop {bytes}"), vec![line(19, stride)], bytes));
        cases.push(block(&format!("table32 {bytes}"), table(narrow(), stride), bytes));
        cases.push(block(&format!("table64 {bytes}"), table(wide(), -stride), bytes));
    }
    for bytes in [1, 3, 8, 12, 16, 40, 100] {
        for stride in [0, 1, 5, -5] {
            let name = format!("overlap {bytes} / {stride}");
            cases.push(block(&name, vec![line(17, stride)], bytes));
        }
        cases.push(block(&format!("nothing {bytes}"), vec![line(3, 8), line(0, 8)], bytes));
    }
    let runs = [(0, 8), (4, 8), (-5, 9), (300, 130), (4000, 96), (-4096, 1), (7, 300)];
    cases.push(window("long and short runs", vec![line(5, 9000)], &runs));
    cases.push(window("pairs", vec![line(5, 64)], &[(0, 8), (16, 8), (32, 4), (40, 4), (48, 4)]));
    let deep = || {
        let mut levels = vec![line(2, 4000), line(2, -1000), line(1, 7), line(2, 300)];
        levels.extend(table(Table::new(&[3, -1, 2]), 40));
        levels.extend(table(Table::Wide([5_i64, 0].as_slice().into()), -8));
        levels.extend([line(2, 11), line(5, 16)]);
        levels
    };
    cases.push(block("eight levels 8", deep(), 8));
    cases.push(block("eight levels 70", deep(), 70));
    cases.push(window("eight levels", deep(), &[(0, 1), (3, 2)]));
    cases
}

fn line(count: u64, stride: i64) -> Level {
    Level::Loop { count, stride }
}

fn block(name: &str, levels: Vec<Level>, bytes: u64) -> Case {
    let nest = Nest { base: 0, levels: levels.into(), leaf: Leaf::Block { bytes } };
    Case { name: name.to_owned(), nest }
}

fn window(name: &str, levels: Vec<Level>, runs: &[(i64, u64)]) -> Case {
    let runs = runs.iter().map(|&(offset, bytes)| Run { offset, bytes }).collect();
    Case {
        name: name.to_owned(),
        nest: Nest { base: 0, levels: levels.into(), leaf: Leaf::Window { runs } },
    }
}

/// Returns the text of `cases.h`: the code, the tables and the numbers of all cases. `driver.c`
/// defines the types.
fn header(cases: &[Case]) -> String {
    let mut text = String::new();
    let mut list = String::new();
    for (i, case) in cases.iter().enumerate() {
        for (direction, name) in [(Direction::Pack, "pack"), (Direction::Unpack, "unpack")] {
            let code =
                emit(&case.nest.shape(direction), Target::Aarch64).expect("the shape is compiled");
            array(&mut text, "unsigned char", &format!("{name}_{i}"), code.iter());
        }
        let mut levels = String::new();
        for (l, level) in case.nest.levels.iter().enumerate() {
            levels += &level_text(&mut text, &format!("table_{i}_{l}"), level);
        }
        let depth = case.nest.levels.len();
        let (runs, long) = match &case.nest.leaf {
            Leaf::Block { bytes } => (vec![Run { offset: 0, bytes: *bytes }], *bytes > 64),
            Leaf::Window { runs } => (runs.to_vec(), false),
        };
        let runs_text: String =
            runs.iter().map(|run| format!("{{{}, {}}}, ", run.offset, run.bytes)).collect();
        writeln!(
            list,
            "    {{\"{}\", {{pack_{i}, unpack_{i}}}, {{sizeof pack_{i}, sizeof unpack_{i}}}, \
             {depth}, {{{levels}}}, {}, {{{runs_text}}}, {}}},",
            case.name,
            runs.len(),
            i32::from(long),
        )
        .expect("writing to a string succeeds");
    }
    format!("{text}static const struct test_case cases[] = {{\n{list}}};\n")
}

/// Returns a level as a C initialiser. If the level has a table, appends the table to `text` as an
/// array with the name `name`.
fn level_text(text: &mut String, name: &str, level: &Level) -> String {
    let count = level.count();
    match level {
        Level::Loop { stride, .. } => format!("{{{count}, {stride}, 0, 0}}, "),
        Level::Table { entries, scale } => {
            let width = entries.width();
            let kind = if width == 4 { "int32_t" } else { "int64_t" };
            array(text, kind, name, entries.iter());
            format!("{{{count}, {scale}, {name}, {width}}}, ")
        }
    }
}

fn array<T: ToString>(text: &mut String, kind: &str, name: &str, items: impl Iterator<Item = T>) {
    let items: Vec<String> = items.map(|item| item.to_string()).collect();
    // Gives an empty table one item, because C has no empty arrays. The driver does not use the
    // length of the array.
    let empty = if items.is_empty() { "0" } else { "" };
    writeln!(text, "static const {kind} {name}[] = {{{}{empty}}};", items.join(", "))
        .expect("writing to a string succeeds");
}
