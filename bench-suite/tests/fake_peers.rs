//! Checks that a run continues if a peer crashes, hangs, refuses a type or gives a wrong answer, and that
//! each such fault adds a line to the faults of the run.
//!
//! The peers are shared objects made from `peer/fake.c`, and the tests run the whole command with them.
//! `peers.rs` tests the protocol between the command and its child processes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use typepack_bench::layout::Layout;
use typepack_bench::peer::{Peer, Session};
use typepack_bench::prepare::Bench;
use typepack_test_support::skipped::skipped;

/// Compiles `peer/fake.c` with the fault `mode`, a constant of that file, and returns the path of the
/// library. Returns `None` if there is no C compiler.
fn fake(mode: &str) -> Option<PathBuf> {
    // Two tests use the same library. It must not be written anew while the other test loads it.
    static BUILT: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("libfake-{mode}.so"));
    if built.iter().any(|known| known == mode) {
        return Some(library);
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peer/fake.c");
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror"])
        .arg(format!("-DMODE={mode}"))
        .arg("-o")
        .args([&library, &source])
        .status();
    match status {
        Ok(status) => {
            assert!(status.success(), "cc: {status}");
            built.push(mode.to_owned());
            Some(library)
        }
        Err(error) => {
            skipped(format_args!("cc does not start: {error}"));
            None
        }
    }
}

/// Runs `typepack-bench peers` with one layout at two small sizes and with `peers`: pairs of a name and a
/// library.
fn run(peers: &[(&str, &Path)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_typepack-bench"));
    command.args(["peers", "--layout", "d1s2", "--size", "128,1K", "--rounds", "1"]);
    for (name, library) in peers {
        command.arg("--peer").arg(format!("{name}={}", library.display()));
    }
    command.output().expect("the command runs")
}

/// Returns the lines under the heading "Faults" in the output of a run.
fn faults(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    let after = text.split_once("\nFaults\n").map_or("", |(_, after)| after);
    after.lines().take_while(|line| !line.is_empty()).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn each_fault_is_a_line_and_the_others_are_measured() {
    let Some(sound) = fake("SOUND") else { return };
    let wanted = [
        ("CRASH", "crashed: signal: 6"),
        ("CRASH_LATE", "crashed: signal: 6"),
        ("WRONG", "packed a wrong byte at 3"),
        ("REFUSE", "MPI_Type_vector returned 3"),
    ];
    for (mode, line) in wanted {
        let Some(library) = fake(mode) else { return };
        let output = run(&[("bad", &library), ("sound", &sound)]);
        let (text, said) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{mode}: {said}");
        let faults = faults(&output);
        // There is at least one fault for each of the two sizes. The peer `CRASH_LATE` crashes only when
        // it packs a second time. After a crash, a new child of the peer starts for the next size.
        assert!(faults.len() >= 2, "{mode}: {faults:?}\n{text}");
        let all = faults.iter().all(|fault| {
            fault.starts_with("d1s2 at ")
                && fault.contains("bad: ")
                && (fault.contains(line) || fault.contains("is not running"))
        });
        assert!(all, "{mode}: {faults:?}");
        assert!(faults.iter().any(|fault| fault.contains(line)), "{mode}: {faults:?}");
        // The four rows (two sizes, two directions) have a ratio to the best peer, because the peer
        // `sound` has figures in all of them.
        let rows: Vec<&str> =
            text.lines().filter(|row| row.starts_with("| d1s2") && row.contains("pack")).collect();
        assert_eq!(rows.len(), 4, "{text}");
        assert!(
            rows.iter().all(|row| ["win", "tie", "loss"].iter().any(|w| row.contains(w))),
            "{text}"
        );
    }
}

#[test]
fn a_sound_peer_has_no_faults() {
    let Some(sound) = fake("SOUND") else { return };
    let output = run(&[("sound", &sound)]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(faults(&output).is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("peer sound: fake 1"));
}

#[test]
fn a_peer_that_does_not_start_is_named() {
    let Some(library) = fake("FAIL_AT_START") else { return };
    let output = run(&[("bad", &library)]);
    let line = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{line}");
    assert!(line.contains("libfake-FAIL_AT_START.so: MPI_Init returned 16"), "{line}");
    assert_eq!(line.trim_end().lines().count(), 1, "{line}");
}

#[test]
fn a_peer_that_hangs_is_a_line() {
    let command = || PathBuf::from(env!("CARGO_BIN_EXE_typepack-bench"));
    let start = |library: PathBuf, patience: u64| {
        let patience = Duration::from_secs(patience);
        Session::start_with(Peer { name: "bad".to_owned(), library }, command(), patience)
    };
    let Some(library) = fake("HANG_AT_START") else { return };
    assert_eq!(start(library, 1).err(), Some("gave no answer in 1 s".to_owned()));
    let Some(library) = fake("HANG") else { return };
    // This time is long enough to start a process even on a heavily loaded machine.
    let mut session = start(library, 900).expect("it starts");
    session.set_patience(Duration::from_secs(1));
    let ty = "vector(4, 1, 2, double)".parse().expect("a type");
    let layout = Layout::of("some", ty, 1).expect("a layout");
    let bench = Bench::verified(layout, Vec::new()).expect("memory");
    assert_eq!(session.layout(&bench), Err("gave no answer in 1 s".to_owned()));
}
