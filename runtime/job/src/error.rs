//! The errors returned by the functions that create, map and join a job's segment or manage the memory of a
//! heap.
//!
//! This file is the lowest layer of the crate: it imports no other file. The files of `shm/` return these
//! errors. The runtime's `error.rs` converts them to the runtime's own errors, and the launcher prints them
//! with the prefix `mpiexec: `.

use std::{fmt, io};

/// The kind of an [`Error`]. The description of each kind ends with the corresponding MPI error class in
/// parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument has a value that is not allowed (`MPI_ERR_ARG`).
    Argument,
    /// Memory or address space has run out (`MPI_ERR_NO_MEM`).
    NoMemory,
    /// `mpiexec` and this program come from different builds (`MPI_ERR_OTHER`).
    Mismatch,
    /// The environment says that this process is a rank of a job, but the inherited descriptors or the
    /// numbers in the environment do not match the job, or a process has already joined as this rank
    /// (`MPI_ERR_OTHER`).
    NotARank,
    /// `mpiexec` has ended (`MPI_ERR_PROC_ABORTED`).
    LauncherGone,
    /// The operating system refused a call (`MPI_ERR_OTHER`).
    System,
}

/// An error of this crate: a kind, one sentence that describes the error, and the system's error if there is
/// one.
pub struct Error {
    kind: ErrorKind,
    detail: String,
    source: Option<io::Error>,
}

impl Error {
    /// Makes an error of the kind `kind`; `detail` is the sentence that describes it.
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), source: None }
    }

    /// Makes the error for a failed system call: `what` describes the call and `source` is the system's
    /// error. If memory has run out, the kind is [`ErrorKind::NoMemory`], and the message tells the user to
    /// check the memory limit; otherwise the kind is [`ErrorKind::System`].
    pub fn system(what: impl Into<String>, source: io::Error) -> Self {
        let mut detail = what.into();
        let no_memory =
            matches!(source.kind(), io::ErrorKind::OutOfMemory | io::ErrorKind::StorageFull);
        if no_memory {
            detail.push_str(" (out of memory; in a container, check its memory limit)");
        } else if source.raw_os_error() == Some(libc::EBADF) {
            detail.push_str(
                " (the program has closed a descriptor of the library; after init, it may close only its own)",
            );
        }
        let kind = if no_memory { ErrorKind::NoMemory } else { ErrorKind::System };
        Self { kind, detail, source: Some(source) }
    }

    /// Returns the kind.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Some(source) => write!(f, "{}: {source}", self.detail),
            None => f.write_str(&self.detail),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|e| e as _)
    }
}
