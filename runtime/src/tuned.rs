//! What the library has measured about the ways of messages and of collective calls, for programs that show the
//! choices.
//!
//! `transport/tuning.rs`, `transport/part_choice.rs` and `coll/flags/choices.rs` measure, and `tuned/file.rs` defines
//! the file of `TYPEPACK_TUNE_FILE`. `world.rs` reads and writes the file; `typepack info` shows the file and the
//! measurements.

use crate::coll::MeasuredCalls;
use crate::sys::named::Entry;
use crate::sys::text_file;
use crate::transport::part_choice::MeasuredParts;
use crate::transport::tuning::{self, Measured};
use file::Learnt;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub(crate) mod file;

/// The choice between the ways of the long messages of one kind, or of the blocking collective calls of one kind on the
/// world communicator. [`Universe::choices`](crate::Universe::choices)
/// returns these values.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Choice {
    /// The kind of the messages: where and how the data lies at the sender and at the receiver, and the
    /// distance of the two ranks. For collective calls: the operation and the number of ranks.
    pub kind: String,
    /// The length of the shortest message, or of each rank's data in a collective call, in bytes. The longest message
    /// is shorter than twice this length. The first size class of messages (1 KiB) also has all shorter messages, and
    /// the last one (512 MiB) all longer ones. The last size class of collective calls (4 MiB) also has all longer
    /// calls.
    pub bytes: u64,
    /// The ways that messages of this kind can go. There are at least two.
    pub ways: Vec<TimedWay>,
    /// The index in `ways` of the present way.
    pub best: usize,
    /// True if the present way has been compared with all other ways that work.
    pub settled: bool,
}

/// A way of a long message, and the time that messages took.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TimedWay {
    /// The protocol and the copy method.
    pub name: String,
    /// The median of the latest times from the match to the last byte, in nanoseconds per byte. `None` if no
    /// message has gone this way yet.
    pub ns_per_byte: Option<f64>,
}

impl Choice {
    pub(crate) fn of_calls(measured: MeasuredCalls) -> Self {
        let MeasuredCalls { kind, bytes, ways, best, settled } = measured;
        let way = |(name, ns_per_byte): (&str, _)| TimedWay { name: name.to_owned(), ns_per_byte };
        Self { kind, bytes, ways: ways.into_iter().map(way).collect(), best, settled }
    }

    pub(crate) fn of_parts(measured: MeasuredParts) -> Self {
        let MeasuredParts { kind, bytes, ways, best, settled } = measured;
        let way = |(name, ns_per_byte)| TimedWay { name, ns_per_byte };
        Self { kind, bytes, ways: ways.into_iter().map(way).collect(), best, settled }
    }

    pub(crate) fn of(measured: &Measured) -> Self {
        let way = |(way, time): &(tuning::Way, Option<f64>)| TimedWay {
            name: way.to_string(),
            ns_per_byte: *time,
        };
        Self {
            kind: measured.situation.to_string(),
            bytes: measured.bytes,
            ways: measured.ways.iter().map(way).collect(),
            best: measured.best,
            settled: measured.settled,
        }
    }
}

/// Why a file of `TYPEPACK_TUNE_FILE` is ignored.
#[derive(Debug)]
pub(crate) struct Ignored {
    pub reason: String,
    /// True if the file begins like a tune file, so that typepack may replace it.
    pub is_ours: bool,
}

/// Reads the file of `TYPEPACK_TUNE_FILE` at `path`. Returns an empty value if there is no such file yet.
pub(crate) fn learnt(path: &Path) -> Result<Learnt, Ignored> {
    read(path).map(Option::unwrap_or_default)
}

/// Reads the file at `path`. Returns `None` if there is no such file.
fn read(path: &Path) -> Result<Option<Learnt>, Ignored> {
    match text_file::read(path, file::FILE_MAX) {
        Ok(text) => Learnt::parse(&text, &text_file::processor())
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
    Ok(found.map(|learnt| learnt.lines()))
}
