//! What the library has measured about the ways of messages and of collective calls, for programs that show the
//! choices.
//!
//! `typepack_engine::choice` has the choices and what is known about them; the rooms that measure have a form each
//! (`file.rs` lists them). `tuned/file.rs` defines the file of `TYPEPACK_TUNE_FILE`. `world.rs` reads and writes the
//! file; `typepack info` shows the file and the measurements.

use crate::sys::named::Entry;
use crate::sys::text_file;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use typepack_engine::choice::Remembered;

pub use typepack_engine::choice::{Measured as Choice, TimedWay};

pub(crate) mod file;

/// Why a file of `TYPEPACK_TUNE_FILE` is ignored.
#[derive(Debug)]
pub(crate) struct Ignored {
    pub reason: String,
    /// True if the file begins like a tune file, so that typepack may replace it.
    pub is_ours: bool,
}

/// Reads the file of `TYPEPACK_TUNE_FILE` at `path`. Returns an empty value if there is no such file yet.
pub(crate) fn remembered(path: &Path) -> Result<Vec<Remembered>, Ignored> {
    read(path).map(Option::unwrap_or_default)
}

/// Reads the file at `path`. Returns `None` if there is no such file.
fn read(path: &Path) -> Result<Option<Vec<Remembered>>, Ignored> {
    match text_file::read(path, file::FILE_MAX) {
        Ok(text) => file::parse(&text, &text_file::processor())
            .map(Some)
            .map_err(|reason| Ignored { reason, is_ours: file::is_ours(&text) }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Ignored { reason: error.to_string(), is_ours: false }),
    }
}

/// Returns the place at which the tune file `path` is written at the end of the job.
///
/// # Errors
/// Returns one sentence that says why no file can be written there.
pub(crate) fn entry(path: &Path) -> Result<Entry, String> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    let entry = Entry::of(&name).map_err(|error| error.to_string())?;
    entry.ok_or_else(|| "the path does not end in the name of a file".to_owned())
}

/// Returns one line for each choice in the tune file at `path` (`TYPEPACK_TUNE_FILE`). Returns `None` if there is
/// no such file yet. The process need not have joined a job.
///
/// # Errors
/// Returns one sentence that says why jobs on this machine ignore the file.
pub fn file(path: &Path) -> Result<Option<Vec<String>>, String> {
    let found = read(path).map_err(|ignored| ignored.reason)?;
    Ok(found.map(|remembered| remembered.iter().map(Remembered::to_string).collect()))
}
