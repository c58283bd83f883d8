//! Runs the examples in `runtime/examples` as jobs with different numbers of ranks. Cargo has built the
//! Rust examples; the installed `mpicc` compiles the C examples. `scripts/clients` installs mpi4py and
//! runs the Python examples.

use super::programs::{Scratch, built, shell};
use super::{files, markdown, none, repository, text};
use std::path::Path;
use typepack_test_support::skipped::skipped;

/// The examples that exist in Rust, C and Python, and the numbers of ranks that each runs with.
const EXAMPLES: &[(&str, &[usize])] = &[
    ("shift_column", &[2]),
    ("halo", &[1, 2, 3, 4]),
    ("checkpoint", &[1, 2, 3]),
    ("array", ARRAY),
];

/// The numbers of ranks of the example `array`.
const ARRAY: &[usize] = &[1, 2, 3, 4, 6];

/// The examples that exist in Rust and C, and the numbers of ranks that each runs with.
const IN_RUST_AND_C: &[(&str, &[usize])] =
    &[("distributed", &[1, 2, 3, 5]), ("queue", &[1, 2, 3, 5]), ("stencil", &[1, 2, 3, 5])];

/// The examples that exist only in Rust, and the numbers of ranks that each runs with.
const IN_RUST: &[(&str, &[usize])] = &[
    ("shift", &[1, 2, 4]),
    ("particles", &[1, 2, 3, 4]),
    ("collectives", &[1, 2, 3, 4]),
    ("immediate", &[1, 2, 3, 4]),
    ("views", &[1, 2, 3, 4]),
];

/// The examples that exist only in C, and the numbers of ranks that each runs with.
const IN_C: &[(&str, &[usize])] = &[
    ("halos", &[1, 2, 3, 5, 8]),
    ("partitions", &[1, 2, 3]),
    ("structs", &[1, 2, 3]),
    ("tools", &[1, 2]),
    ("workers", &[1, 2]),
];

/// Two more Rust programs: measuring tools with their own command-line arguments.
const TOOLS: [&str; 2] = ["pingpong", "ring"];

fn stem(file: &str) -> &str {
    Path::new(file).file_stem().and_then(|stem| stem.to_str()).expect("a name")
}

/// Runs one example, in which every rank must print a line.
fn run(folder: &Path, program: &str, ranks: usize, faults: &mut Vec<String>) {
    let done = shell(folder, &format!("mpiexec -n {ranks} {program}"));
    let lines = done.text.lines().count();
    if done.code != 0 || lines < ranks || done.text.contains("typepack:") {
        faults.push(format!("{program} with {ranks} ranks: code {}\n{}", done.code, done.text));
    }
}

/// Runs the example `array` on a file that exists and is longer than the array, and checks each byte that the file
/// has afterwards.
fn run_array(folder: &Path, program: &str, ranks: usize, faults: &mut Vec<String>) {
    let file = folder.join("array.bin");
    std::fs::write(&file, [7; 1000]).expect("a file");
    run(folder, &format!("{program} {}", file.display()), ranks, faults);
    let wanted: Vec<u8> =
        (0..8 * 12).flat_map(|at| f64::from(100 * (at / 12) + at % 12).to_le_bytes()).collect();
    if std::fs::read(&file).expect("a file") != wanted {
        faults.push(format!("{program} with {ranks} ranks: the file has other bytes"));
    }
}

#[test]
fn examples_in_rust_run() {
    let mut faults = Vec::new();
    let scratch = Scratch::new();
    for (name, sizes) in EXAMPLES.iter().chain(IN_RUST_AND_C).chain(IN_RUST) {
        let program = built().join("examples").join(name).display().to_string();
        for ranks in *sizes {
            match *name {
                "array" => run_array(&scratch.0, &program, *ranks, &mut faults),
                _ => run(&repository(), &program, *ranks, &mut faults),
            }
        }
    }
    none("examples in Rust", &faults);
}

/// The program of `runtime/capi/sys` is linked with no MPI library. It runs on each one that has the ABI.
#[test]
fn bindings_for_rust_call_any_library_of_the_abi() {
    let program = built().join("examples/bindings").display().to_string();
    let mut faults = Vec::new();
    for ranks in [1, 2, 4] {
        run(&repository(), &program, ranks, &mut faults);
    }
    for (name, launcher, variable) in
        [("mpich", "mpiexec", "MPICH=1"), ("impi-rt", "mpiexec.hydra", "I_MPI_FABRICS=shm")]
    {
        let peer = built().with_file_name("peers").join(name);
        if !peer.join("lib/libmpi_abi.so.1").exists() {
            skipped(format!("{name} is not fetched: scripts/bench peers {name}"));
            continue;
        }
        let peer = peer.display();
        let path = format!("LD_LIBRARY_PATH={peer}/lib {variable}");
        let done = shell(&repository(), &format!("{path} {peer}/bin/{launcher} -n 2 {program}"));
        if done.code != 0 || done.text.lines().filter(|line| line.contains(" of 2: ")).count() != 2
        {
            faults.push(format!("{program} on {name}: code {}\n{}", done.code, done.text));
        }
    }
    none("bindings for Rust", &faults);
}

#[test]
fn examples_in_c_run() {
    let mut faults = Vec::new();
    let scratch = Scratch::new();
    for (name, sizes) in EXAMPLES.iter().chain(IN_RUST_AND_C).chain(IN_C) {
        let source = repository().join(format!("runtime/examples/c/{name}.c"));
        let compile = format!("mpicc -Wall -Wextra -Werror {} -o {name}", source.display());
        let done = shell(&scratch.0, &compile);
        assert_eq!(done.code, 0, "{compile}\n{}", done.text);
        for ranks in *sizes {
            let program = format!("./{name}");
            match *name {
                "array" => run_array(&scratch.0, &program, *ranks, &mut faults),
                _ => run(&scratch.0, &program, *ranks, &mut faults),
            }
        }
    }
    none("examples in C", &faults);
}

#[test]
fn every_language_has_every_example() {
    let both = IN_RUST_AND_C.iter().map(|(name, _)| *name);
    let in_rust = IN_RUST.iter().map(|(name, _)| *name).chain(TOOLS);
    let in_rust: Vec<&str> = both.clone().chain(in_rust).collect();
    let in_c: Vec<&str> = both.chain(IN_C.iter().map(|(name, _)| *name)).collect();
    for (folder, ending, others) in
        [("rust", ".rs", &in_rust[..]), ("c", ".c", &in_c[..]), ("python", ".py", &[])]
    {
        let found = files(&format!("runtime/examples/{folder}"), ending);
        let mut wanted: Vec<&str> = EXAMPLES.iter().map(|(name, _)| *name).collect();
        wanted.extend(others);
        wanted.sort_unstable();
        let found: Vec<&str> = found.iter().map(|file| stem(file)).collect();
        assert_eq!(found, wanted, "runtime/examples/{folder}");
    }
}

/// Tests that the program on the page about Rust is the same as the example `shift`, which a test above runs
/// as a job. Only the comments at the head of the example are missing from the page.
#[test]
fn the_program_of_the_page_about_rust_is_an_example() {
    let blocks = markdown::read(&text("runtime/guide/tutorial/rust.md")).blocks;
    let shown: Vec<&str> =
        blocks.iter().filter(|b| b.language == "rust").map(|b| b.text.as_str()).collect();
    let example = text("runtime/examples/rust/shift.rs");
    let (comments, program) = example.split_once("\n\n").expect("comments, then the program");
    assert!(comments.lines().all(|line| line.starts_with("//!")), "{comments}");
    assert_eq!(shown, [program]);
}
