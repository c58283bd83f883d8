//! Why a shape was refused.
//!
//! Inside the flow a refusal is normal: `lib.rs` counts it and the engine's interpreter goes on.
//! Only [`emit`](crate::emit) and [`clif`](crate::clif), which a person asks, hand it out.

use std::fmt;
use typepack_engine::ErrorClass;

/// The kind of a refusal; each maps to exactly one MPI error class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The shape is outside what the translator takes.
    Shape,
    /// There is no code generator for the machine that was asked for.
    Target,
    /// The code generator failed or panicked: a bug, here or in Cranelift.
    CodeGeneration,
    /// No executable memory: denied by the system, or the arena is full.
    Memory,
}

/// A refusal: its kind and one clear sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    detail: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The MPI error class of this kind (MPI-5.0 section 9.4).
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

impl std::error::Error for Error {}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;
