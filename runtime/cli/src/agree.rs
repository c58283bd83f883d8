//! Ends a job early if a check fails: all ranks end with the same exit code, and one rank prints one line.
//!
//! If one rank finds an error (a missing file), the other ranks do not know. If all ranks find an error (a
//! bad argument), only one rank should print it. So `main.rs` and `halo/job.rs` pass every check through
//! [`agree`].

use std::fmt;
use std::io::Write;

use typepack::{Communicator, Error, ErrorKind, Op};

/// The exit code of a bad argument.
pub const USAGE: u8 = 2;
/// The exit code of every other failure.
pub const FAILURE: u8 = 1;

/// Prints the one line that explains why the program ends.
pub fn say(line: impl fmt::Display) {
    // If stderr is closed, the exit code is the only report (`eprintln!` would panic).
    let _nobody_reads = writeln!(std::io::stderr(), "typepack: {line}");
}

/// The reason why a rank stops.
#[derive(Debug)]
pub enum Stop {
    /// All ranks know the error, and one rank has printed it.
    Agreed(u8),
    /// A library call of this rank failed.
    Library(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl Stop {
    /// Prints the error if no rank has printed it yet, and returns the exit code.
    pub fn report(self) -> u8 {
        match self {
            Self::Agreed(code) => code,
            Self::Library(error) => {
                // The launcher reports the rank that has died, so this rank prints nothing.
                if error.kind() != ErrorKind::ProcAborted {
                    say(error);
                }
                FAILURE
            }
        }
    }
}

/// Returns the value of `result` if no rank has an error. Otherwise the lowest rank with an error prints it
/// as `typepack: <error>`. All ranks wait for the line before they end, because `mpiexec` ends the job with
/// the first failing rank and could lose the line.
pub fn agree<T>(comm: &Communicator, result: Result<T, String>, code: u8) -> Result<T, Stop> {
    // Lossless: a job has at most 4096 ranks.
    let size = comm.size() as i64;
    let mut first = [if result.is_ok() { size } else { comm.rank() as i64 }];
    comm.allreduce(&mut first, Op::Min)?;
    match result {
        Ok(value) if first[0] == size => Ok(value),
        result => {
            if let Err(line) = result
                && first[0] == comm.rank() as i64
            {
                say(line);
            }
            comm.barrier()?;
            Err(Stop::Agreed(code))
        }
    }
}
