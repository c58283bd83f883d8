//! Opening a file in one rank. `file.rs` lets rank 0 open the file first, and the other ranks after it.

use super::agree::{about, system_named};
use super::background::open_stream;
use super::file::refused;
use super::mode::Mode;
use super::place::Place;
use super::transfer::{Sieve, Target};
use crate::endpoint::progress::Endpoint;
use crate::sys::files::{self, Access as Opening, Facts, FileKind};
use crate::sys::named::Entry;
use crate::{FileErrorKind, Result};
use std::sync::Arc;

/// A file that a rank has opened.
pub(super) struct Opened {
    pub target: Target,
    pub facts: Facts,
    /// True if this rank has made the file.
    pub made: bool,
    /// Where the file is, if this rank may have to remove it.
    pub entry: Option<Entry>,
}

/// Opens a file. `first` says whether this rank makes the file if it does not exist, and removes it on close.
pub(super) fn open_one(
    endpoint: &Arc<Endpoint>,
    place: &Place,
    mode: Mode,
    permissions: u32,
    first: bool,
) -> Result<Opened> {
    let (read, write) = (mode.reads(), mode.writes());
    let found = place.found.map(|facts| facts.kind);
    // Opening a device may wait, and opening a pipe waits for the other end. If another file has taken the place of a
    // regular file meanwhile, the call must not wait for it.
    let nonblocking = !matches!(found, Some(FileKind::Stream | FileKind::Block));
    let access = |create, exclusive| Opening {
        read,
        write,
        create,
        exclusive,
        mode: permissions,
        nonblocking,
    };
    let open = |create, exclusive| match found {
        Some(FileKind::Stream) => open_stream(endpoint, &place.given, access(create, exclusive)),
        _ => Ok(files::open(&place.given, access(create, exclusive))),
    };
    let create = first && mode.contains(Mode::CREATE);
    let exclusive = create && mode.contains(Mode::EXCLUSIVE);
    let entry = if create || first && mode.contains(Mode::DELETE_ON_CLOSE) {
        Entry::of(&place.resolved).map_err(|error| system_named(&place.given, &error))?
    } else {
        None
    };
    let (fd, made) = match &entry {
        // The kernel says whether this call has made the file.
        Some(entry) if create && !exclusive && found.is_none() => {
            match files::open_at(entry.folder(), entry.name(), access(true, true)) {
                Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {
                    (open(true, false)?, false)
                }
                opened => (opened, true),
            }
        }
        _ => (open(create, exclusive)?, exclusive),
    };
    let fd = fd.map_err(|error| system_named(&place.given, &error))?;
    let checked = || {
        let facts = files::facts(&fd).map_err(|error| system_named(&place.given, &error))?;
        if facts.kind == FileKind::Directory {
            let detail = about(&place.given, "the file is a directory");
            return Err(refused(FileErrorKind::BadFile, "filename", detail));
        }
        if facts.kind == FileKind::Stream {
            // A rank that waits for a stream must be able to make progress, so the system calls must not wait.
            files::set_nonblocking(&fd).map_err(|error| system_named(&place.given, &error))?;
        }
        Ok(facts)
    };
    match checked() {
        Ok(facts) => {
            let target = Target { fd, kind: facts.kind, sieve: Sieve::default() };
            Ok(Opened { target, facts, made, entry })
        }
        Err(error) => {
            if let Some(entry) = entry.filter(|_| made) {
                // Without its facts the file cannot be told from another one of this name, but it is empty. The call
                // returns an error already.
                let _ = files::unlink_at(entry.folder(), entry.name());
            }
            Err(error)
        }
    }
}
