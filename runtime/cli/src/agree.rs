//! Ends a job early if a check fails: all ranks end with the same exit code, and one rank prints one line.
//!
//! If only one rank finds an error (such as a missing file), the other ranks do not know about the error. If
//! all ranks find the same error (such as a bad argument), only one rank should print it. The commands
//! therefore pass the result of every check to [`agree`].

use std::fmt;
use std::io::Write;

use typepack::{Communicator, Error, ErrorKind, Op};

/// The exit code after a bad argument.
pub const USAGE: u8 = 2;
/// The exit code after any other failure.
pub const FAILURE: u8 = 1;

/// Prints the line that explains why the program ends.
pub fn say(line: impl fmt::Display) {
    // If stderr is closed, the user learns about the error only from the exit code. `eprintln!` would panic
    // in this case.
    let _nobody_reads = writeln!(std::io::stderr(), "typepack: {line}");
}

/// The reason why a rank stops.
#[derive(Debug)]
pub enum Stop {
    /// All ranks know that there is an error, and one rank has printed it. The value is the exit code.
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
                // If another rank has died, the launcher reports this, so this rank prints nothing.
                if error.kind() != ErrorKind::ProcAborted {
                    say(error);
                }
                FAILURE
            }
        }
    }
}

/// Returns the value of `result` if no rank has an error. Otherwise the lowest rank with an error prints its
/// error as `typepack: <error>`, and all ranks get [`Stop::Agreed`] with the exit code `code`. All ranks wait
/// until the line is printed, because `mpiexec` ends the job when the first rank fails, and might otherwise
/// do so before the line is printed.
pub fn agree<T>(comm: &Communicator, result: Result<T, String>, code: u8) -> Result<T, Stop> {
    // The cast is lossless: a job has at most 4096 ranks.
    let size = comm.size() as i64;
    let mut first = [if result.is_ok() { size } else { comm.rank() as i64 }];
    comm.all_reduce_in_place(&mut first, Op::Min)?;
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
