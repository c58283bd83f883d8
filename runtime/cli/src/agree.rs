//! How a job ends early: every rank with the same exit code, and one rank with one line.
//!
//! What one rank finds out (a file is missing) the others cannot know, and what all find out (a bad
//! argument) only one shall say. `main.rs` and `halo/job.rs` pass every check through [`agree`].

use std::fmt;
use std::io::Write;

use typepack::{Communicator, Error, ErrorKind, Op};

/// Exit code of a bad argument.
pub const USAGE: u8 = 2;
/// Exit code of everything else that fails.
pub const FAILURE: u8 = 1;

/// Prints the one line that explains why the program ends.
pub fn say(line: impl fmt::Display) {
    // Where stderr is gone too, the exit code is all that is left to tell (`eprintln!` panics).
    let _nobody_reads = writeln!(std::io::stderr(), "typepack: {line}");
}

/// Why a rank stops.
#[derive(Debug)]
pub enum Stop {
    /// All ranks know, and the line has been printed.
    Agreed(u8),
    /// This rank's library call failed.
    Library(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl Stop {
    /// Prints the line that is still owed, if any, and gives the exit code.
    pub fn report(self) -> u8 {
        match self {
            Self::Agreed(code) => code,
            Self::Library(error) => {
                // The launcher says which rank has died and why; the others have nothing to add.
                if error.kind() != ErrorKind::ProcAborted {
                    say(error);
                }
                FAILURE
            }
        }
    }
}

/// Goes on when `result` is good on every rank. Otherwise the lowest rank with an error prints it
/// as `typepack: <error>`, and only then any rank ends, so that mpiexec, which ends a job with its
/// first failing rank, cannot cut the line off.
pub fn agree<T>(comm: &Communicator, result: Result<T, String>, code: u8) -> Result<T, Stop> {
    // Lossless: ranks are few.
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
