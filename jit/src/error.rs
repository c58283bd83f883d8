//! Describes why a shape is refused.
//!
//! During normal work nobody reports a refusal: `lib.rs` counts it, and the engine executes the nest
//! (the loops that the kernel would have executed) with its interpreter or with one of the leaf
//! kernels, which are part of the engine. Only calls for human readers return the reason:
//! [`emit`](crate::emit), [`clif`](crate::clif), their counterparts for fused copies,
//! [`report`](crate::report()) and [`Jit::disabled`](crate::Jit::disabled).

use std::fmt;
use typepack_engine::ErrorClass;

/// The kind of a refusal. Each kind belongs to exactly one MPI error class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The shape is outside the translator's limits.
    Shape,
    /// There is no code generator for the requested machine, or the mode is [`Off`](crate::Mode::Off).
    Target,
    /// The code generator failed or panicked. This is a bug in this crate or in Cranelift.
    CodeGeneration,
    /// There is no executable memory: the system denied it, the code memory is full, or the start-up
    /// test, which runs new code, failed.
    Memory,
}

/// A refusal: its kind, and one sentence that says what was wrong.
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    detail: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }

    /// Returns the kind of the refusal.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the MPI error class of the refusal (MPI-5.0 section 9.4).
    pub fn class(&self) -> ErrorClass {
        match self.kind {
            ErrorKind::Shape | ErrorKind::Target => ErrorClass::UNSUPPORTED_OPERATION,
            ErrorKind::CodeGeneration => ErrorClass::INTERN,
            ErrorKind::Memory => ErrorClass::NO_MEM,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = match self.kind {
            ErrorKind::Shape => "shape",
            ErrorKind::Target => "target",
            ErrorKind::CodeGeneration => "code generation",
            ErrorKind::Memory => "executable memory",
        };
        write!(f, "{subject}: {}", self.detail)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;
