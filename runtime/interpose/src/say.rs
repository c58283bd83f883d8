//! Lines on standard error. The job of a program that does not work with this library goes on without it; one
//! line says why, not one in each rank.

use std::io::Write;

/// Names of variables in which launchers tell a process its rank.
const RANKS: [&str; 4] = ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"];

/// Prints one line in a job: rank 0 does, as far as a variable of the launcher tells the rank. The reason of a line may
/// hold on some other rank alone. With `TYPEPACK_REPORT=1`, each rank prints its own line, with its number. With
/// `TYPEPACK_QUIET=1`, no rank does.
#[cold]
pub fn say(line: &str) {
    let is_one = |name: &str| std::env::var_os(name).is_some_and(|value| value == "1");
    if is_one("TYPEPACK_QUIET") {
        return;
    }
    let other = RANKS.iter().filter_map(std::env::var_os).find(|rank| rank != "0");
    match other {
        None => print(line),
        Some(rank) if is_one("TYPEPACK_REPORT") => {
            print(&format!("rank {}: {line}", rank.to_string_lossy()));
        }
        Some(_) => {}
    }
}

/// Prints one line.
#[cold]
pub fn print(line: &str) {
    // The program may have closed standard error. Then nobody reads the line.
    let _nobody_reads = writeln!(std::io::stderr(), "typepack-interpose: {line}");
}
