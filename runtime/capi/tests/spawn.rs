//! Runs the C programs about processes that start processes: what parents and children do together, and how jobs end
//! that have several worlds.

use crate::c::compile;
use crate::program::library;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

fn mpiexec(ranks: usize, options: &[&str]) -> Command {
    let mut command = Command::new(crate::job::mpiexec());
    command.args(options).args(["-n", &ranks.to_string()]);
    command.env("LD_LIBRARY_PATH", library());
    command
}

fn run(name: &str, ranks: usize, options: &[&str], env: &[(&str, &str)]) {
    let mut command = mpiexec(ranks, options);
    command.arg(compile(name));
    let output = crate::job::run(command, name, env);
    let text = crate::job::text(&output);
    assert!(output.status.success(), "{name}, {ranks} ranks: {}\n{text}", output.status);
}

#[test]
fn parents_and_children() {
    for ranks in 1..=4 {
        run("spawned", ranks, &[], &[]);
    }
}

#[test]
fn parents_and_children_in_other_ways() {
    for (name, value) in [
        ("TYPEPACK_TRANSPORT", "pipeline"),
        ("TYPEPACK_TRANSPORT", "heap"),
        ("TYPEPACK_SPIN_US", "0"),
        ("TYPEPACK_BIND", "none"),
        ("TYPEPACK_CHECK_TYPES", "1"),
        ("TYPEPACK_CMA", "off"),
    ] {
        run("spawned", 2, &[], &[(name, value)]);
    }
}

#[test]
fn ports_services_and_sockets() {
    for ranks in 1..=3 {
        run("ports", ranks, &[], &[]);
    }
}

/// A program that is started by itself does the same, and nothing is left of what serves it.
#[test]
fn without_mpiexec() {
    // The library looks for it beside itself.
    crate::job::mpiexec();
    for name in ["spawned", "ports"] {
        let mut command = Command::new(compile(name));
        command.env("LD_LIBRARY_PATH", library());
        let mark = format!("{name}-without-mpiexec-{}", std::process::id());
        let output = crate::job::run(command, &mark, &[]);
        let text = crate::job::text(&output);
        assert!(output.status.success(), "{name}: {}\n{text}", output.status);
        let start = std::time::Instant::now();
        while let Some(pid) = marked(&mark) {
            assert!(start.elapsed().as_secs() < 60, "{name}: process {pid} lives");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

/// Returns a process with a text in its environment.
fn marked(text: &str) -> Option<i32> {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| lives(*pid)).find(|pid| {
        let variables = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&variables).contains(text)
    })
}

/// Runs `spawn_ends` with one argument. Returns the output.
fn end(what: &str, ranks: usize) -> (Output, String) {
    end_with(what, ranks, &[])
}

fn end_with(what: &str, ranks: usize, options: &[&str]) -> (Output, String) {
    let mut command = mpiexec(ranks, options);
    command.arg(compile("spawn_ends")).arg(what);
    let output = crate::job::run(command, "spawn_ends", &[]);
    let text = crate::job::text(&output);
    println!("{what}, {ranks}: {}\n{text}", output.status);
    (output, text)
}

#[test]
fn a_death_ends_what_is_connected() {
    for ranks in [1, 3] {
        for (what, rank, code) in [
            ("child-dies", "rank 1 of world 1 (PROGRAM, pid ", 137),
            ("child-dies-freed", " of world 1 (PROGRAM, pid ", 137),
            ("parent-dies", "rank 0 (pid ", 137),
            ("abort", "rank 0 of world 1 (PROGRAM, pid ", 3),
            ("never-joins", "rank 0 of world 1 (true, pid ", 1),
            ("exits-early", "rank 0 of world 1 (sh, pid ", 3),
            ("killed-early", "rank 0 of world 1 (sh, pid ", 137),
            // The other process of MPI_Comm_join dies in the call.
            ("joined-dies", "rank 0 of world 1 (PROGRAM, pid ", 137),
        ] {
            let (output, text) = end(what, ranks);
            assert_eq!(output.status.code(), Some(code), "{what}\n{text}");
            assert_eq!(text.matches("mpiexec: rank ").count(), 1, "{what}\n{text}");
            let rank = rank.replace("PROGRAM", &compile("spawn_ends").display().to_string());
            assert!(text.contains(&rank) && !text.contains("not reached"), "{what}\n{text}");
        }
    }
}

/// The other process of MPI_Comm_join is dead, and mpiexec has dealt with that, before the call tells mpiexec of it:
/// another rank of the dead one's world still runs, or nothing of this world is left. The death is the reason in both
/// cases, and not what mpiexec has done to the other rank.
#[test]
fn a_late_bond_brings_the_same_end() {
    for ranks in [1, 3] {
        for what in ["joined-dies-late", "joined-dies-over"] {
            // The other rank of the world of the dead one ends when its part is over.
            let (output, text) = end_with(what, ranks, &["-kill-after", "100"]);
            assert_eq!(output.status.code(), Some(137), "{what}\n{text}");
            assert_eq!(text.matches("mpiexec: rank ").count(), 1, "{what}\n{text}");
            let program = compile("spawn_ends").display().to_string();
            let line = format!("mpiexec: rank 0 of world 1 ({program}, pid ");
            assert!(text.contains(&line) && !text.contains("not reached"), "{what}\n{text}");
        }
    }
}

/// An error names the rank and its world, and whoever prints its own error also its program.
#[test]
fn errors_name_the_world() {
    for ranks in [1, 3] {
        let (_, text) = end("error", ranks);
        let program = compile("spawn_ends").display().to_string();
        let line = format!("typepack: rank 1 of world 1 ({program}): MPI_Send: ");
        assert!(text.lines().any(|l| l.starts_with(&line)), "{text}");
        assert!(text.contains(&format!("mpiexec: rank 1 of world 1 ({program}, pid ")), "{text}");
        let (_, text) = end("told", ranks);
        assert!(text.contains("the text names the world") && !text.contains("not so"), "{text}");
    }
}

/// A job that starts one world after another keeps no zombie and no descriptor of those that have ended.
#[test]
fn ended_worlds_leave_nothing_in_mpiexec() {
    for ranks in [1, 3] {
        let (output, text) = end("pool", ranks);
        assert!(output.status.success() && text.contains("nothing is left"), "{text}");
    }
}

/// The random starts and meetings of `scripts/soak spawn`, for a few seeds.
#[test]
fn random_starts_and_meetings() {
    for seed in 1..=2 {
        let mut command = mpiexec(1 + seed % 2, &[]);
        command.arg(compile("spawn_campaign"));
        let seed = seed.to_string();
        let output = crate::job::run(command, "spawn_campaign", &[("CAMPAIGN_SEED", &seed)]);
        let text = crate::job::text(&output);
        assert!(output.status.success(), "seed {seed}: {}\n{text}", output.status);
    }
}

#[test]
fn a_death_leaves_alone_what_has_disconnected() {
    for ranks in [1, 3] {
        for (what, line, code) in [
            ("child-dies-apart", "the parents live", 137),
            ("child-dies-mixed", "the parents live", 137),
            ("both-freed", "the parents live", 137),
            ("parent-dies-apart", "the children live", 137),
            ("fails-at-last", "the parents live", 9),
        ] {
            let (output, text) = end(what, ranks);
            assert_eq!(output.status.code(), Some(code), "{what}\n{text}");
            assert!(text.contains(line), "{what}\n{text}");
        }
    }
}

/// The output of children is forwarded like that of other ranks, and carries the number of their world.
#[test]
fn labels_name_the_world() {
    let mut command = mpiexec(1, &["-l"]);
    command.arg(compile("spawn_ends")).arg("parent-dies-apart");
    let text = crate::job::text(&crate::job::run(command, "spawn_ends", &[]));
    assert!(text.contains("[1.0] the children live"), "{text}");
}

/// Processes that could not be started are none for the user.
#[test]
fn a_refusal_leaves_nothing() {
    let mut command = mpiexec(1, &["-print-all-exitcodes"]);
    command.arg(compile("spawn_ends")).arg("refused");
    let output = crate::job::run(command, "spawn_ends", &[]);
    let text = crate::job::text(&output);
    assert!(output.status.success() && text.contains("nothing was started"), "{text}");
    assert!(text.lines().any(|line| line.ends_with("exit codes: 0")), "{text}");
}

/// The number of SIGKILL.
const KILL: i32 = 9;

/// Whatever kills mpiexec, no process of any world is left.
#[test]
fn nothing_outlives_mpiexec() {
    for signal in [KILL, 2] {
        let mut command = mpiexec(2, &[]);
        command.arg(compile("spawn_ends")).arg("hang").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the job starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let pids = lines.filter_map(|line| line.ok()?.strip_prefix("pid ")?.parse::<i32>().ok());
        let pids: Vec<i32> = pids.take(4).collect();
        assert_eq!(pids.len(), 4);
        let mut kill = Command::new("kill");
        kill.arg(format!("-{signal}")).arg(child.id().to_string());
        assert!(kill.status().is_ok_and(|status| status.success()));
        let status = child.wait().expect("the end of mpiexec");
        match signal {
            KILL => assert_eq!(status.signal(), Some(signal)),
            _ => assert_eq!(status.code(), Some(128 + signal)),
        }
        let start = std::time::Instant::now();
        for pid in pids {
            while lives(pid) {
                assert!(start.elapsed().as_secs() < 60, "process {pid} lives, signal {signal}");
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        }
    }
}

fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|state| !state.starts_with('Z') && !state.starts_with('X'))
}
