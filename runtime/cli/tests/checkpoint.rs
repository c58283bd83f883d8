//! Tests the checkpoints of `typepack halo`. A run that continues on another number of ranks must give the same bits
//! as a run that was never interrupted. A job that is killed at any moment must leave the last checkpoint whole.
//! Damaged files, and files that are not checkpoints, must be refused.

use crate::tool::{DEADLINE, Folder, Outcome, bin, refused, typepack, verified, wait};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Number of bytes of the header of a checkpoint.
const HEADER: usize = 4096;

fn path(folder: &Folder, name: &str) -> String {
    folder.0.join(name).display().to_string()
}

/// Returns the names of the files in `folder`.
fn names(folder: &Folder) -> Vec<String> {
    let found = std::fs::read_dir(&folder.0).expect("a folder");
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("a file").file_name();
    let mut names: Vec<String> =
        found.map(|entry| name(entry).into_string().expect("text")).collect();
    names.sort();
    names
}

fn good(outcome: &Outcome) -> &str {
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{}", outcome.stdout);
    &outcome.stdout
}

/// Returns the step that the header of a checkpoint names.
fn step_of(path: &str) -> u64 {
    let bytes = std::fs::read(path).expect("a checkpoint");
    u64::from_le_bytes(bytes[64..72].try_into().expect("eight bytes"))
}

#[test]
fn a_restart_on_any_number_of_ranks_gives_the_bits_of_a_whole_run() {
    let folder = Folder::new("restart");
    for (number, options) in [
        "",
        "--stencil box --halo 3 --fields 2",
        "--boundary fixed --halo 2 --fields 3",
        "--stencil box --boundary fixed --way hand",
    ]
    .into_iter()
    .enumerate()
    {
        let options = format!("--grid 11x9x10 {options}");
        let whole = verified(1, &format!("{options} --steps 13"), &[]);
        // Every number of ranks writes a checkpoint, and every number of ranks continues from it.
        for writers in 0..=4 {
            let file = path(&folder, &format!("{number}-{writers}"));
            let words = format!("halo {options} --steps 7 --checkpoint {file}");
            let outcome = typepack(writers, &words, &[]);
            let said = good(&outcome).lines().next().unwrap_or_default();
            assert!(said.starts_with("checkpoint at step 7: "), "{said}");
            assert!(said.contains(" MB in ") && said.ends_with(" GB/s"), "{said}");
            assert_eq!(step_of(&file), 7);
            for readers in 0..=4 {
                let words = format!("{options} --steps 13 --restart {file}");
                assert_eq!(verified(readers, &words, &[]), whole, "{writers} to {readers} ranks");
            }
        }
        // The contents of the file must not depend on the number of ranks that wrote it.
        let first = std::fs::read(path(&folder, &format!("{number}-0"))).expect("a checkpoint");
        for writers in 1..=4 {
            let file = std::fs::read(path(&folder, &format!("{number}-{writers}")));
            assert!(file.expect("a checkpoint") == first, "{writers} ranks, {options}");
        }
    }
    assert!(names(&folder).iter().all(|name| !name.contains("part")), "{:?}", names(&folder));
}

#[test]
fn checkpoints_come_every_n_steps_and_after_the_last() {
    let folder = Folder::new("every");
    let file = path(&folder, "file");
    let words = format!("halo --grid 8x8x8 --steps 8 --checkpoint {file} --every 3");
    let outcome = typepack(2, &words, &[]);
    let at: Vec<&str> = good(&outcome)
        .lines()
        .filter_map(|line| line.strip_prefix("checkpoint at step ")?.split(':').next())
        .collect();
    assert_eq!(at, ["3", "6", "8"]);
    // `--checkpoint` may name the file of `--restart`. A later run reads this file and has no step left.
    let words =
        format!("halo --grid 8x8x8 --steps 9 --restart {file} --checkpoint {file} --every 3");
    let outcome = typepack(3, &words, &[]);
    let said: Vec<&str> = good(&outcome).lines().take(2).collect();
    assert!(said[0].starts_with("restart from step 8: "), "{said:?}");
    assert!(said[1].starts_with("checkpoint at step 9: "), "{said:?}");
    assert_eq!(step_of(&file), 9);
    let whole = verified(2, "--grid 8x8x8 --steps 9", &[]);
    assert_eq!(verified(4, &format!("--grid 8x8x8 --steps 9 --restart {file}"), &[]), whole);
    assert_eq!(names(&folder), ["file"]);
}

#[test]
fn an_initial_field_of_a_file_is_verified_after_a_restart_too() {
    let folder = Folder::new("restart-init");
    let values: Vec<u8> = (0..120).flat_map(|i| (f64::from(i) * 0.37).to_le_bytes()).collect();
    let (init, file) = (folder.file("init.raw", &values), path(&folder, "file"));
    let options = format!("--grid 6x5x4 --init {init}");
    typepack(2, &format!("halo {options} --steps 3 --checkpoint {file}"), &[]);
    let whole = verified(1, &format!("{options} --steps 8"), &[]);
    assert_eq!(verified(3, &format!("{options} --steps 8 --restart {file}"), &[]), whole);
    let line = "typepack: --init: with --restart, only --verify uses the initial field";
    refused(2, &format!("halo {options} --steps 8 --restart {file}"), line, 2);
}

/// Starts a job that writes a checkpoint after every step, kills one of its processes, and waits until all its
/// processes have ended. If `during` is true, kills the process as soon as the file of an unfinished checkpoint exists.
fn killed(file: &str, words: &str, victim: usize, during: bool, delay: Duration) {
    let mut command = Command::new(bin().join("mpiexec"));
    command.args(["-n", "3", env!("CARGO_BIN_EXE_typepack")]).args(words.split_whitespace());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut job = command.spawn().expect("a job");
    let end = Instant::now() + DEADLINE;
    let before = std::fs::metadata(file).and_then(|found| found.modified()).ok();
    // The first checkpoint of this job shows that all ranks are at work.
    while std::fs::metadata(file).and_then(|found| found.modified()).ok() == before {
        assert!(Instant::now() < end, "no checkpoint");
        thread::sleep(Duration::from_millis(1));
    }
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", job.id()));
    let children = children.expect("a running job");
    let ranks: Vec<&str> = children.split_whitespace().collect();
    thread::sleep(delay);
    let part = format!("{file}.typepack-part");
    while during && !Path::new(&part).exists() {
        assert!(Instant::now() < end, "no checkpoint is being written");
    }
    let own = job.id().to_string();
    let pid = ranks.get(victim).map_or(own.as_str(), |pid| *pid);
    let killed = Command::new("kill").args(["-9", pid]).status();
    assert!(killed.expect("kill").success());
    wait(&mut job, &command);
    let mut said = String::new();
    job.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    for pid in &ranks {
        // If `mpiexec` itself was killed, the ranks end a little later than `mpiexec`.
        while Path::new(&format!("/proc/{pid}/fd/0")).exists() {
            assert!(Instant::now() < end, "rank {pid} lives on: {said}");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn a_killed_job_leaves_the_last_checkpoint_whole() {
    let folder = Folder::new("killed");
    let file = path(&folder, "file");
    let options = "--grid 24x24x24 --fields 2";
    let mut words = format!("halo {options} --steps 1000000 --checkpoint {file} --every 1");
    // At least one job must be killed while it writes a checkpoint; otherwise the test proves too little. Whether the
    // kill comes early enough is a matter of chance, so the test makes more rounds if necessary.
    let (mut parts, mut round) = (0, 0);
    while round < 12 || parts == 0 {
        assert!(round < 200, "no job was killed while it wrote");
        let (during, delay) = (round % 3 > 0, Duration::from_millis(7 * (round % 12)));
        // Victims 0 to 2 are ranks, and victim 3 is `mpiexec`.
        killed(&file, &words, round as usize % 4, during, delay);
        parts += u32::from(names(&folder).len() > 1);
        let step = step_of(&file);
        let ranks = 1 + round as usize % 4;
        // The verification compares all values with the serial solution.
        verified(ranks, &format!("{options} --steps {} --restart {file}", step + 2), &[]);
        assert_eq!(step_of(&file), step);
        if round == 0 {
            words += &format!(" --restart {file}");
        }
        round += 1;
    }
    let words = format!("{options} --steps {} --restart {file}", step_of(&file));
    verified(2, &format!("{words} --checkpoint {file}"), &[]);
}

#[test]
fn damaged_and_foreign_files_are_refused() {
    let folder = Folder::new("foreign");
    let file = path(&folder, "good");
    let options = "--grid 6x5x4 --fields 2";
    good(&typepack(2, &format!("halo {options} --steps 3 --checkpoint {file}"), &[]));
    let bytes = std::fs::read(&file).expect("a checkpoint");
    assert_eq!(bytes.len(), HEADER + 6 * 5 * 4 * 2 * 8);
    let changed = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x10;
        bytes
    };
    let damaged = "the header is damaged: its checksum does not fit its content";
    let foreign = "not a checkpoint of typepack halo";
    let cases = [
        ("magic", changed(3), foreign.to_owned()),
        ("numpy", b"\x93NUMPY\x01\x00\x02\x00{}".repeat(1000), foreign.to_owned()),
        ("empty", Vec::new(), foreign.to_owned()),
        ("version", changed(16), "the version is 17; this program reads version 1".to_owned()),
        ("type", changed(25), damaged.to_owned()),
        ("grid", changed(37), damaged.to_owned()),
        ("sum", changed(80), damaged.to_owned()),
        ("zeros", changed(HEADER - 1), damaged.to_owned()),
        (
            "header",
            bytes[..HEADER - 1].to_vec(),
            "too short: the file has 4095 bytes; the header has 4096".to_owned(),
        ),
        (
            "cut",
            bytes[..bytes.len() - 1].to_vec(),
            "too short: the file has 1919 bytes of values; the grid needs 1920".to_owned(),
        ),
        (
            "longer",
            [&bytes[..], &[0]].concat(),
            "too long: the file has 1921 bytes of values; the grid needs 1920".to_owned(),
        ),
    ];
    for (name, bytes, what) in &cases {
        let file = folder.file(name, bytes);
        for ranks in [0, 3] {
            let words = format!("halo {options} --steps 5 --restart {file}");
            refused(ranks, &words, &format!("typepack: --restart: {file}: {what}"), 2);
        }
    }
    for at in [HEADER, HEADER + 1001, bytes.len() - 1] {
        let file = folder.file("values", &changed(at));
        let outcome = typepack(3, &format!("halo {options} --restart {file}"), &[]);
        let wanted = format!("typepack: --restart: {file}: the values are damaged: their checksum");
        assert!(crate::tool::said(&outcome).starts_with(&wanted), "{}", outcome.stderr);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "byte {at}");
    }
    for (options, what) in [
        ("--grid 6x4x5 --fields 2", "the grid is 6x5x4; the options say 6x4x5"),
        ("--grid 6x5x4 --fields 3", "the number of fields is 2; the options say 3"),
        ("--grid 6x5x4 --fields 2 --stencil box", "the stencil is star; the options say box"),
        (
            "--grid 6x5x4 --fields 2 --boundary fixed",
            "the boundary is periodic; the options say fixed",
        ),
        (
            "--grid 6x5x4 --fields 2 --steps 2",
            "the file is from step 3; --steps must be at least that, and is 2",
        ),
    ] {
        let words = format!("halo {options} --restart {file}");
        refused(2, &words, &format!("typepack: --restart: {file}: {what}"), 2);
    }
    for (name, what) in [
        ("/nonexistent/file", "no such file or directory"),
        ("/dev/zero", "not a regular file"),
        ("/", "not a regular file"),
    ] {
        let words = format!("halo {options} --restart {name}");
        refused(2, &words, &format!("typepack: --restart: {name}: {what}"), 2);
    }
}

#[test]
fn a_checkpoint_that_cannot_be_written_is_refused_before_the_first_step() {
    let folder = Folder::new("unwritable");
    let (csv, old) = (path(&folder, "csv"), folder.file("old", b"old"));
    let taken = path(&folder, "taken");
    std::fs::create_dir(format!("{taken}.typepack-part")).expect("a folder");
    for (options, line) in [
        (
            "--every 3".to_owned(),
            "--checkpoint: required argument is missing (see typepack halo --help)".to_owned(),
        ),
        (
            "--checkpoint a --every 0".to_owned(),
            "--every: 0 is too small; it must be at least 1".to_owned(),
        ),
        (
            "--checkpoint /nonexistent/file".to_owned(),
            "--checkpoint: /nonexistent/file: no such file or directory".to_owned(),
        ),
        ("--checkpoint /".to_owned(), "--checkpoint: /: not a regular file".to_owned()),
        (
            "--checkpoint /dev/null".to_owned(),
            "--checkpoint: /dev/null: not a regular file".to_owned(),
        ),
        (
            format!("--csv {csv} --checkpoint {csv}"),
            format!("--checkpoint: {csv}: the same file as --csv"),
        ),
        (format!("--checkpoint {taken}"), format!("--checkpoint: {taken}: is a directory")),
    ] {
        for ranks in [0, 3] {
            refused(
                ranks,
                &format!("halo --grid 6x5x4 {options}"),
                &format!("typepack: {line}"),
                2,
            );
        }
    }
    assert_eq!(std::fs::read(&old).expect("the old file"), b"old");
    // While another job writes a checkpoint of this name, this job must be refused and leave the other job's file.
    let (busy, part) = (path(&folder, "busy"), folder.file("busy.typepack-part", b"theirs"));
    let holder = std::fs::File::open(&part).expect("the file of another job");
    holder.lock().expect("a lock");
    let line = format!("typepack: --checkpoint: {busy}: another job is writing {part}");
    refused(2, &format!("halo --grid 6x5x4 --checkpoint {busy}"), &line, 2);
    assert_eq!(std::fs::read(&part).expect("the file of another job"), b"theirs");
    drop(holder);
    assert_eq!(typepack(2, &format!("halo --grid 6x5x4 --checkpoint {busy}"), &[]).code, Some(0));
    // If the new file cannot grow to its full size, the old checkpoint must not change.
    let limited = format!(
        "{} -n 3 sh -c 'ulimit -f 8; exec {} halo --grid 16x16x16 --steps 2 --checkpoint {old}'",
        bin().join("mpiexec").display(),
        env!("CARGO_BIN_EXE_typepack")
    );
    let outcome = crate::tool::run(Command::new("sh").args(["-c", &limited]));
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    assert!(
        crate::tool::said(&outcome)
            .starts_with(&format!("typepack: --checkpoint: {old}: file: File too large")),
        "{}",
        outcome.stderr
    );
    assert_eq!(std::fs::read(&old).expect("the old file"), b"old");
    assert!(!Path::new(&format!("{old}.typepack-part")).exists());
}
