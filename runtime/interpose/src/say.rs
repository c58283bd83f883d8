//! Lines on standard error. The job of a program that does not work with this library goes on without it; one
//! line says why.

use std::io::Write;

/// Names of variables in which launchers tell a process its rank.
const RANKS: [&str; 4] = ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"];

/// Prints one line, unless `TYPEPACK_QUIET=1` is set or a variable of the launcher says that this process is not
/// rank 0.
#[cold]
pub fn say(line: &str) {
    let quiet = std::env::var_os("TYPEPACK_QUIET").is_some_and(|value| value == "1");
    let other = RANKS.iter().any(|name| std::env::var_os(name).is_some_and(|rank| rank != "0"));
    if !quiet && !other {
        print(line);
    }
}

/// Prints one line.
#[cold]
pub fn print(line: &str) {
    // The program may have closed standard error. Then nobody reads the line.
    let _nobody_reads = writeln!(std::io::stderr(), "typepack-interpose: {line}");
}
