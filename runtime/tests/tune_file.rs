//! Tests of the file of `TYPEPACK_TUNE_FILE` over whole jobs: one job writes which way of copying it has found to be
//! the fastest, the next job starts with the file, and a job prints one line about a file that it cannot use.

use crate::job::{body, is_rank, mpiexec, run, text};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use typepack::{Datatype, Named, Op, Universe, commit};

const WORDS: usize = 8 << 10;

/// The first line of a file of this version.
const FIRST: &str = "typepack tune file 4";

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("typepack-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("tuned")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The result is ignored: a folder that stays fails no test.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Exchanges messages of 64 KiB between private memories until `is_enough` returns true. Rank 0 calls `is_enough`
/// after every message.
fn exchange(universe: &Universe, is_enough: impl Fn() -> bool) {
    let world = universe.world();
    let word = commit(&Datatype::named(Named::U64)).expect("a plan");
    let (count, mut got) = (WORDS as u64, vec![0; WORDS]);
    for round in 0u64.. {
        let sent: Vec<u64> = (round..).take(WORDS).collect();
        let mut enough = [0u64];
        if world.rank() == 0 {
            world.recv_elements(&mut got, &word, count, 1, 1).expect("received");
            assert!(got == sent, "round {round}");
            enough = [u64::from(is_enough())];
            world.send_elements(&enough, &word, 1, 1, 2).expect("sent");
        } else {
            world.send_elements(&sent, &word, count, 0, 1).expect("sent");
            world.recv_elements(&mut enough, &word, 1, 0, 2).expect("received");
        }
        if enough == [1] {
            return;
        }
    }
}

/// Runs the test `name` as two ranks with the tune file `path`, and returns what the job has printed.
fn job(name: &str, path: &Path) -> String {
    let mut command = Command::new(mpiexec());
    command.args(["-n", "2"]).args(body(name));
    // With these variables the job would have no choice, or would print nothing.
    for name in ["TYPEPACK_TRANSPORT", "TYPEPACK_COPY", "TYPEPACK_TUNE", "TYPEPACK_QUIET"] {
        command.env_remove(name);
    }
    let path = path.to_str().expect("a path in UTF-8");
    let output = run(command, name, &[("TYPEPACK_TUNE_FILE", path), ("TYPEPACK_REPORT", "1")]);
    let text = text(&output);
    assert!(output.status.success() && text.matches("1 passed").count() == 2, "{text}");
    text
}

fn lines<'a>(text: &'a str, part: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.contains(part)).collect()
}

#[test]
fn the_next_job_starts_with_what_is_remembered() {
    const NAME: &str = "the_next_job_starts_with_what_is_remembered";
    if is_rank() {
        let universe = typepack::init().expect("joining the job");
        let end = Instant::now() + Duration::from_secs(200);
        // The first job finds no file, and learns until it has compared all ways. Later jobs find a file, and end
        // after one message.
        let path = std::env::var_os("TYPEPACK_TUNE_FILE").expect("a variable");
        let learns = !Path::new(&path).exists();
        exchange(&universe, || {
            assert!(Instant::now() < end, "the ways are not compared within 200 s");
            !learns || universe.choices().expect("choices").iter().any(|choice| choice.settled)
        });
        if universe.world().rank() == 0 {
            for choice in universe.choices().expect("choices") {
                println!("\nnow {}", choice.ways[choice.best].name);
            }
        }
        return;
    }
    let folder = Folder::new("tune");
    let first = job(NAME, &folder.file());
    assert_eq!(lines(&first, "TYPEPACK_TUNE_FILE"), [""; 0], "{first}");
    assert_eq!(lines(&first, "loaded"), [""; 0], "{first}");
    assert_eq!(lines(&first, "rank 0: chosen from 64 KiB, contiguous").len(), 1, "{first}");
    let written = fs::read_to_string(folder.file()).expect("the file");
    let mut rows = written.lines();
    assert_eq!(rows.next(), Some(FIRST));
    assert!(rows.next().is_some_and(|row| row.starts_with("processor ")), "{written}");
    let rows: Vec<&str> = rows.filter(|row| row.contains(" 65536 chunks-")).collect();
    let &[row] = &rows[..] else { panic!("{written}") };

    // The next job must take the way that the file names, even if another way was the best one. Test this with two
    // ways. The next job may run on other cores, so write a line for each distance to the file.
    for method in ["vector", "repeat"] {
        let remembered = row.split_once(" 65536 ").expect("a row").0.to_owned();
        let head: String = written.lines().take(2).map(|row| format!("{row}\n")).collect();
        if method == "repeat" && !typepack::engine::contiguous::Method::Repeat.is_available() {
            continue;
        }
        let (fixed, _distance) = remembered.rsplit_once(' ').expect("a distance");
        let cases = ["near", "far"];
        let rows = cases.map(|case| format!("{fixed} {case} 65536 chunks-{method}\n"));
        let text = head + &rows.concat();
        fs::write(folder.file(), &text).expect("a file");
        let next = job(NAME, &folder.file());
        let loaded = lines(&next, "loaded");
        assert_eq!(loaded.len(), cases.len(), "{next}");
        let end = format!(": chunks, {method}");
        for line in loaded {
            assert!(line.contains("rank 0: loaded from 64 KiB, contiguous"), "{next}");
            assert!(line.ends_with(&end), "{next}");
        }
        assert_eq!(lines(&next, "now "), [format!("now chunks, {method}")], "{next}");
        // One message is not enough to compare the ways, so the job must write the same file again.
        assert_eq!(fs::read_to_string(folder.file()).expect("the file"), text);
    }
}

/// Sums vectors of 64 KiB until `is_enough` returns true at rank 0.
fn sums(universe: &Universe, is_enough: impl Fn() -> bool) {
    let world = universe.world();
    let (mine, mut sum) = (vec![1.0_f64; WORDS], vec![0.0; WORDS]);
    let mut enough = [0_u64];
    while enough == [0] {
        world.all_reduce(&mine, &mut sum, Op::Sum).expect("a sum");
        assert!(sum == vec![2.0; WORDS]);
        if world.rank() == 0 {
            enough = [u64::from(is_enough())];
        }
        world.broadcast(&mut enough, 0).expect("broadcast");
    }
}

/// Returns the best way of the sums, if rank 0 has compared all ways or `is_settled` is false.
fn best_sum(universe: &Universe, is_settled: bool) -> Option<String> {
    let choices = universe.choices().expect("choices");
    let choice = choices.iter().find(|choice| {
        choice.kind.starts_with("collective allreduce") && (choice.settled || !is_settled)
    })?;
    Some(choice.ways[choice.best].name.clone())
}

#[test]
fn the_next_job_starts_with_the_ways_of_collective_calls() {
    const NAME: &str = "the_next_job_starts_with_the_ways_of_collective_calls";
    if is_rank() {
        let universe = typepack::init().expect("joining the job");
        let end = Instant::now() + Duration::from_secs(200);
        let path = std::env::var_os("TYPEPACK_TUNE_FILE").expect("a variable");
        let learns = !Path::new(&path).exists();
        sums(&universe, || {
            assert!(Instant::now() < end, "the ways are not compared within 200 s");
            best_sum(&universe, learns).is_some()
        });
        if universe.world().rank() == 0 {
            println!("\nnow {}", best_sum(&universe, learns).expect("a way"));
        }
        return;
    }
    let folder = Folder::new("tune-calls");
    let first = job(NAME, &folder.file());
    let written = fs::read_to_string(folder.file()).expect("the file");
    let found = lines(&written, "collective allreduce 2 ");
    let found = found.iter().filter(|line| line.contains(" 65536 ")).count();
    assert_eq!(found, 1, "{written}");
    assert_eq!(lines(&first, "now ").len(), 1, "{first}");
    // The next job must begin with the way that the file names, even if another way was the best one.
    let head: String = written.lines().take(2).map(|row| format!("{row}\n")).collect();
    for (word, name) in [("whole", "whole"), ("slices", "slices"), ("messages", "messages")] {
        // The job may run on other cores, so write a line for each distance.
        let line = |site| format!("collective allreduce 2 {site} 65536 {word}\n");
        let sites = ["near alone", "near crowded", "far alone", "far crowded"];
        let text = format!("{head}{}", sites.map(line).concat());
        fs::write(folder.file(), &text).expect("a file");
        let next = job(NAME, &folder.file());
        let loaded = lines(&next, "loaded");
        let said = "rank 0: loaded from 64 KiB, collective allreduce of 2 ranks";
        assert!(loaded.len() == sites.len(), "{next}");
        assert!(loaded.iter().all(|line| line.contains(said) && line.ends_with(name)), "{next}");
        assert_eq!(lines(&next, "now "), [format!("now {name}")], "{next}");
        assert_eq!(fs::read_to_string(folder.file()).expect("the file"), text);
    }
}

/// Rank 0 writes the file where its name led at init. The file of another user is neither read nor replaced.
#[test]
fn the_file_is_written_where_it_was_named() {
    const NAME: &str = "the_file_is_written_where_it_was_named";
    if is_rank() {
        let universe = typepack::init().expect("joining the job");
        exchange(&universe, || true);
        std::env::set_current_dir("/").expect("another directory");
        return;
    }
    let folder = Folder::new("tune-late");
    let run_here = |path: &str| {
        let mut command = Command::new(mpiexec());
        command.args(["-n", "2"]).args(body(NAME)).current_dir(&folder.0);
        command.env_remove("TYPEPACK_TUNE").env_remove("TYPEPACK_QUIET");
        let output = run(command, NAME, &[("TYPEPACK_TUNE_FILE", path)]);
        let text = text(&output);
        assert!(output.status.success(), "{text}");
        text
    };
    run_here("tuned");
    let written = fs::read_to_string(folder.file()).expect("the file");
    assert!(written.starts_with(FIRST));
    if std::os::unix::fs::chown(folder.file(), Some(65534), None).is_ok() {
        let output = run_here("tuned");
        let found = lines(&output, "TYPEPACK_TUNE_FILE");
        assert!(found.len() == 1 && found[0].contains("it belongs to user 65534"), "{output}");
        assert_eq!(fs::read_to_string(folder.file()).expect("the file"), written);
    }
}

#[test]
fn a_file_that_cannot_be_used_costs_one_line() {
    const NAME: &str = "a_file_that_cannot_be_used_costs_one_line";
    if is_rank() {
        let universe = typepack::init().expect("joining the job");
        exchange(&universe, || true);
        return;
    }
    let folder = Folder::new("tune-bad");
    let good = {
        job(NAME, &folder.file());
        fs::read_to_string(folder.file()).expect("the file")
    };
    let processor = good.lines().nth(1).expect("a processor");
    for (contents, reason, replaced) in [
        (format!("{good}messages dense\n"), "line 3 is not a valid entry", true),
        (good.replace(processor, "processor 0000000000000000"), "another processor", true),
        (good.replace(FIRST, "typepack tune file 99"), "its first line is not", true),
        ("export EDITOR=ed\n".to_owned(), "its first line is not", false),
        (String::new(), "its first line is not", false),
    ] {
        fs::write(folder.file(), &contents).expect("a file");
        let output = job(NAME, &folder.file());
        let found = lines(&output, "TYPEPACK_TUNE_FILE");
        assert!(found.len() == 1 && found[0].contains(reason), "{contents}: {output}");
        assert!(found[0].contains("is ignored"), "{output}");
        let after = fs::read_to_string(folder.file()).expect("the file");
        assert_eq!(after, if replaced { good.clone() } else { contents });
    }
    let pipe = folder.0.join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    for (path, reason) in [
        (folder.0.clone(), "is ignored: not a regular file"),
        (pipe.clone(), "is ignored: not a regular file"),
        (folder.0.join("missing/tuned"), "is not written: "),
        (PathBuf::from("/proc/typepack-tuned"), "is not written: "),
    ] {
        let output = job(NAME, &path);
        let found = lines(&output, "TYPEPACK_TUNE_FILE");
        assert!(found.len() == 1 && found[0].contains(reason), "{path:?}: {output}");
    }
    fs::remove_file(&pipe).expect("removed");
    // The jobs must have left no temporary files in the folder.
    assert_eq!(fs::read_dir(&folder.0).expect("the folder").count(), 1);
}
