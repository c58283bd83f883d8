//! What can go wrong with the job's segment: making it, mapping it, joining the job.
//!
//! Raised by `segment.rs` and `attach.rs`; the runtime's `error.rs` turns it into its own error,
//! the launcher prints it after `mpiexec: `.

use std::{fmt, io};

/// The kind of a segment error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SegmentErrorKind {
    /// An argument is outside its domain (`MPI_ERR_ARG`).
    Argument,
    /// Memory or address space has run out (`MPI_ERR_NO_MEM`).
    NoMemory,
    /// `mpiexec` and this program are of different builds (`MPI_ERR_OTHER`).
    Mismatch,
    /// The environment says that this is a rank, but the rest does not fit (`MPI_ERR_OTHER`).
    NotARank,
    /// `mpiexec` is gone (`MPI_ERR_PROC_ABORTED`).
    LauncherGone,
    /// The system refused a call (`MPI_ERR_OTHER`).
    System,
}

/// An error about the job's shared memory: a kind and one clear sentence.
#[derive(Debug)]
pub struct SegmentError {
    kind: SegmentErrorKind,
    detail: String,
    source: Option<io::Error>,
}

impl SegmentError {
    pub(crate) fn new(kind: SegmentErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), source: None }
    }

    /// A failed system call; running out of memory gets its own kind and a hint.
    pub(crate) fn system(what: impl Into<String>, source: io::Error) -> Self {
        let mut detail = what.into();
        let no_memory =
            matches!(source.kind(), io::ErrorKind::OutOfMemory | io::ErrorKind::StorageFull);
        if no_memory {
            detail.push_str(" (out of memory; in a container, look at its memory limit)");
        }
        let kind = if no_memory { SegmentErrorKind::NoMemory } else { SegmentErrorKind::System };
        Self { kind, detail, source: Some(source) }
    }

    /// The kind.
    pub fn kind(&self) -> SegmentErrorKind {
        self.kind
    }
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Some(source) => write!(f, "{}: {source}", self.detail),
            None => f.write_str(&self.detail),
        }
    }
}

impl std::error::Error for SegmentError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|e| e as _)
    }
}
