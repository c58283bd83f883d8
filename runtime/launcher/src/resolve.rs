//! Finds what must be known about a program before mpiexec starts it: the file to execute, and the folder with the
//! library of MPICH's ABI, if the program may load it.
//!
//! `main.rs` calls [`resolve`] for the programs of the command line, and `watch/` for those that ranks start.

use std::env;
use std::path::PathBuf;

use crate::about;
use crate::args::App;
use crate::program::{self, Unusable};

/// A program that can be started.
#[derive(Debug)]
pub struct Found {
    /// The file to execute.
    pub path: PathBuf,
    /// The folder with the library of MPICH's ABI, if the program may load it.
    pub mpich: Option<PathBuf>,
}

/// Finds the program of `app`. Relative paths are relative to the directory in which the program will run. If `is_alone`
/// is false, the program must not be linked with an MPI library whose processes know nothing of this launcher.
///
/// # Errors
///
/// Returns [`Unusable`] if the program cannot be started. The message names the program.
pub fn resolve(app: &App, is_alone: bool) -> Result<Found, Unusable> {
    let path = app.path.clone().or_else(|| env::var_os("PATH"));
    let path = program::find(&app.program, path, app.directory.as_deref())?;
    // A script, and Python, may load a library of either ABI later.
    let linked = typepack_job::program::read(&path);
    let mpich = about::mpich_folder();
    let mpich = mpich.filter(|_| linked.as_ref().is_none_or(|linked| linked.may_have_mpich()));
    let foreign = program::foreign(&app.program, linked.as_ref(), mpich.is_some());
    match foreign.filter(|_| !is_alone) {
        Some(unusable) => Err(unusable),
        None => Ok(Found { path, mpich }),
    }
}
