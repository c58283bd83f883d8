//! The problems that `typepack info` finds on this machine: a job that holds the CPUs, load, variables without effect.

use std::collections::BTreeSet;

/// The name of a lock with which `mpiexec` reserves a core (`launcher/src/core_reservation.rs`), as `/proc/net/unix` lists
/// it, without the number of the core.
const RESERVED: &str = "@typepack-cpu-";

/// Returns the cores that typepack jobs have reserved, from the text of `/proc/net/unix`.
fn reserved(sockets: &str) -> Vec<usize> {
    let names = sockets.lines().filter_map(|line| line.split(RESERVED).nth(1));
    // A job beside one of another user adds a random number after a dash.
    let cores = names.filter_map(|name| name.split('-').next()?.trim().parse().ok());
    cores.collect::<BTreeSet<usize>>().into_iter().collect()
}

/// Returns a line if the load of the last minute, the first word of `/proc/loadavg`, is more than half of the CPUs.
fn load(loadavg: &str, cpus: usize) -> Option<String> {
    let load: f64 = loadavg.split_whitespace().next()?.parse().ok()?;
    (load > cpus as f64 / 2.0).then(|| {
        format!("load {load:.1} on {cpus} CPUs: other programs use them, so times say little")
    })
}

/// Returns a line for each problem. `in_job` says that mpiexec has started this process: then the reserved cores are those
/// of its own job.
pub fn problems(in_job: bool, has_library: bool) -> Vec<String> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
    let mut found = Vec::new();
    if !has_library {
        found.push(
            "libmpi_abi.so.1 is not installed with this program (scripts/install)".to_owned(),
        );
    }
    let taken = reserved(&read("/proc/net/unix"));
    if !in_job && !taken.is_empty() {
        let list: Vec<_> = taken.iter().map(ToString::to_string).collect();
        let cores = if list.len() == 1 { "core" } else { "cores" };
        found.push(format!(
            "another typepack job holds {cores} {}; a job that finds too few free cores does not bind its ranks",
            list.join(", ")
        ));
    }
    found.extend(load(&read("/proc/loadavg"), cpus));
    found.extend(unknown());
    found
}

/// Returns a line about variables whose names typepack does not know.
fn unknown() -> Option<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    typepack::variables::unknown(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_cores_are_read() {
        let text = "Num RefCount Protocol Flags Type St Inode Path\n\
             0000: 00000002 00000000 00010000 0001 01 100 @typepack-cpu-3\n\
             0000: 00000002 00000000 00010000 0001 01 101 /run/socket\n\
             0000: 00000002 00000000 00010000 0001 01 102 @typepack-cpu-0-0123456789abcdef\n\
             0000: 00000002 00000000 00010000 0001 01 103 @typepack-cpu-x\n";
        assert_eq!(reserved(text), [0, 3]);
        assert!(reserved("").is_empty());
    }

    #[test]
    fn a_loaded_machine_is_named() {
        assert_eq!(load("0.30 0.20 0.10 1/100 1\n", 2), None);
        assert!(load("12.04 1 1 1/1 1", 2).is_some_and(|line| line.starts_with("load 12.0 on 2 ")));
        assert_eq!(load("", 2), None);
    }
}
