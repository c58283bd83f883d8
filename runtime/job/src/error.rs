//! The errors of a job: making, mapping and joining its segment, and the memory of a heap.
//!
//! This file is the lowest layer. `shm/` raises the errors. The runtime's `error.rs` converts them, and the
//! launcher prints them after `mpiexec: `.

use std::{fmt, io};

/// The kind of an error of the job. Each kind belongs to one MPI class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument is outside its domain (`MPI_ERR_ARG`).
    Argument,
    /// Memory or address space has run out (`MPI_ERR_NO_MEM`).
    NoMemory,
    /// `mpiexec` and this program come from different builds (`MPI_ERR_OTHER`).
    Mismatch,
    /// The environment says that this process is a rank, but its descriptors or numbers do not match the
    /// job (`MPI_ERR_OTHER`).
    NotARank,
    /// `mpiexec` is gone (`MPI_ERR_PROC_ABORTED`).
    LauncherGone,
    /// The system refused a call (`MPI_ERR_OTHER`).
    System,
}

/// An error about the job's shared memory: a kind and one sentence.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    detail: String,
    source: Option<io::Error>,
}

impl Error {
    /// Makes an error of this kind; `detail` is the sentence.
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), source: None }
    }

    /// Makes the error of a failed system call. A lack of memory has its own kind and a hint.
    pub fn system(what: impl Into<String>, source: io::Error) -> Self {
        let mut detail = what.into();
        let no_memory =
            matches!(source.kind(), io::ErrorKind::OutOfMemory | io::ErrorKind::StorageFull);
        if no_memory {
            detail.push_str(" (out of memory; in a container, check its memory limit)");
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

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|e| e as _)
    }
}
