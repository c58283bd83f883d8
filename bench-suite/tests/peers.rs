//! Checks that peers pack the right bytes and that a run survives the faults of a peer. The tests use the
//! real peers that `scripts/bench peers` has fetched, if there are any, and scripts that misbehave like
//! faulty peers.

use std::path::{Path, PathBuf};
use std::process::Command;
use typepack_bench::definition::Definitions;
use typepack_bench::layout::{Layout, sizes_of};
use typepack_bench::measure::Guest;
use typepack_bench::peer::{Peer, Session, found};
use typepack_bench::prepare::Bench;
use typepack_bench::storm;
use typepack_engine::kernel::Direction;
use typepack_test_support::skipped::skipped;

fn command() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_typepack-bench"))
}

/// Starts the real peers and returns them. Prints a message if there are none.
fn sessions() -> Vec<Session> {
    let peers = found(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/peers"));
    if peers.is_empty() {
        skipped("no other MPI library is fetched: scripts/setup --tests");
    }
    let start = |peer| Session::start(peer, command()).expect("a peer that starts");
    peers.into_iter().map(start).collect()
}

fn bench(layout: Layout) -> Bench {
    Bench::verified(layout, Vec::new()).expect("memory")
}

#[test]
fn datatypes_made_by_peers_pack_the_same_bytes() {
    let definitions = Definitions::reference();
    for mut session in sessions() {
        for definition in &definitions.layouts {
            for size in sizes_of(definition, &[128, 1024]) {
                let layout = Layout::new(definition, size).expect("a layout");
                if layout.payload > 16 << 10 || layout.memory > 16 << 20 {
                    continue;
                }
                let answer = session.layout(&bench(layout));
                assert_eq!(answer, Ok(()), "{}: {} at {size}", session.name(), definition.name);
            }
        }
    }
}

#[test]
fn every_constructor_is_made_by_peers() {
    let types = [
        "double",
        "dup(vector(3, 1, 2, int))",
        "contiguous(5, short)",
        "vector(3, 2, 4, float)",
        "hvector(3, 2, 40, double)",
        "indexed([1, 3, 2], [0, 4, 9], int)",
        "hindexed([1, 3, 2], [0, 40, 96], int)",
        "indexed_block(2, [0, 5, 9], double)",
        "hindexed_block(2, [0, 40, 96], double)",
        "struct([1, 2, 1], [0, 8, 40], [char, int, vector(2, 1, 2, double)])",
        "subarray([4, 5, 6], [2, 3, 4], [1, 1, 1], C, double)",
        "subarray([4, 5, 6], [2, 3, 4], [1, 1, 1], Fortran, double)",
        "resized(0, 64, vector(2, 1, 3, double))",
    ];
    for mut session in sessions() {
        for text in types {
            let ty = text.parse().expect("a type");
            let answer = session.layout(&bench(Layout::of(text, ty, 3).expect("a layout")));
            assert_eq!(answer, Ok(()), "{}: {text}", session.name());
        }
        assert!(session.turn(Direction::Pack).expect("a turn") > 0.0);
        assert!(session.turn(Direction::Unpack).expect("a turn") > 0.0);
    }
}

#[test]
fn storms_of_peers_pack_the_same_bytes() {
    for mut session in sessions() {
        for index in 0..storm::LAYOUTS.len() {
            let bench = bench(storm::layout(index).expect("a layout"));
            assert_eq!(session.storm(&bench), Ok(()), "{}", session.name());
            assert!(session.turn(Direction::Pack).expect("a turn") > 0.0);
        }
    }
}

#[test]
fn darray_is_made_through_the_standard_abi() {
    let text = "darray(4, 1, [8, 6], [block, cyclic], [default, 2], [2, 2], C, double)";
    for mut session in sessions().into_iter().filter(|s| !s.version().starts_with("Open MPI")) {
        let ty = text.parse().expect("a type");
        let answer = session.layout(&bench(Layout::of(text, ty, 1).expect("a layout")));
        assert_eq!(answer, Ok(()), "{}", session.name());
    }
}

/// Starts a peer whose child process runs the shell script `script`.
fn scripted(name: &str, script: &str) -> Result<Session, String> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    typepack_test_support::script::executable(&path, &format!("#!/bin/sh\n{script}\n"));
    Session::start(Peer::parse("fake=/lib/fake.so").expect("a peer"), path)
}

fn some_layout() -> Bench {
    let ty = "vector(4, 1, 2, double)".parse().expect("a type");
    bench(Layout::of("some", ty, 1).expect("a layout"))
}

#[test]
fn a_peer_that_crashes_is_a_line_and_comes_back() {
    let ready = "echo noise; echo '@ready fake 1'; read line;";
    let mut session = scripted("crash", &format!("{ready} kill -SEGV $$")).expect("a start");
    assert_eq!(session.version(), "fake 1");
    let bench = some_layout();
    for _ in 0..5 {
        let line = session.layout(&bench).expect_err("a crash");
        assert!(line.starts_with("crashed: signal: 11"), "{line}");
        assert!(session.turn(Direction::Pack).is_err());
    }
    assert_eq!(session.layout(&bench), Err("not tried again after 5 crashes".to_owned()));
    let line = scripted("crash-at-once", "exit 3").err().expect("a crash");
    assert_eq!(line, "crashed: exit status: 3");
}

#[test]
fn a_wrong_answer_is_a_line() {
    let wrong = "echo '@ready fake 1'; read line; echo '@error packed a wrong byte at 3'; \
                 read line; echo '@ok'; read line; echo '@ns x'";
    let mut session = scripted("wrong", wrong).expect("a start");
    let bench = some_layout();
    assert_eq!(session.layout(&bench), Err("packed a wrong byte at 3".to_owned()));
    assert_eq!(session.layout(&bench), Ok(()));
    let wanted = "gave the unexpected answer \"ns x\"".to_owned();
    assert_eq!(session.turn(Direction::Pack), Err(wanted));
}

#[test]
fn a_path_without_an_abi_is_one_line() {
    let faults = [
        ("/nonexistent/libmpi_abi.so.1", "/nonexistent/libmpi_abi.so.1"),
        ("libc=/lib/x86_64-linux-gnu/libm.so.6", "libm.so.6"),
    ];
    for (peer, part) in faults {
        let output = Command::new(command())
            .args(["peers", "--layout", "d1s2", "--size", "128", "--peer", peer])
            .output()
            .expect("the command runs");
        let line = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert_eq!(line.trim_end().lines().count(), 1, "{line}");
        assert!(line.starts_with("typepack-bench: --peer ") && line.contains(part), "{line}");
    }
}

#[test]
fn a_run_without_peers_says_so() {
    let summary = Path::new(env!("CARGO_TARGET_TMPDIR")).join("summary.txt");
    let arguments = ["peers", "--layout", "d1s2,struct", "--size", "128", "--rounds", "1"];
    let run = |more: &[&str]| {
        let output = Command::new(command())
            .args(arguments)
            .args(["--peers", "/nonexistent"])
            .args(more)
            .output()
            .expect("the command runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let csv = run(&["--format", "csv", "--summary", summary.to_str().expect("UTF-8")]);
    let (load, csv) = csv.split_once('\n').expect("a first line");
    assert!(load.starts_with("# load of other programs, peers: "), "{load}");
    // A header line, and a line for each competitor in two layouts and two directions.
    assert!((1 + 4 * 6..=1 + 4 * 7).contains(&csv.lines().count()), "{csv}");
    let fields: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
    assert!(fields.iter().all(|n| *n >= fields[0]), "{csv}");
    let text = std::fs::read_to_string(&summary).expect("the summary");
    assert!(text.contains("No peers took part") && text.contains("Ablation"), "{text}");
    assert!(text.contains("of a call beyond the hand loop"), "{text}");
    let table = run(&[]);
    assert!(table.contains(" /hand |") && table.contains("Bars for packing"), "{table}");
    let json: serde_json::Value = serde_json::from_str(&run(&["--format", "json"])).expect("JSON");
    assert_eq!(json["rows"][0]["layout"], "d1s2");
    assert_eq!(json["rows"][0]["figures"][0]["competitor"], "memcpy");
}
