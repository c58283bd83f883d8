//! The errors of the engine, and the MPI error class of each.
//!
//! Functions in every module of the engine return [`Error`]. The C interface returns [`Error::class`]
//! as its error code. The text of an error names the argument and its value, so that one printed line
//! is enough to find the mistake.

use std::fmt;

/// An MPI error class (MPI-5.0 section 9.4), by its standard ABI value.
///
/// This is a newtype and not an enum, because other MPI libraries may pass values that the standard
/// does not define.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct ErrorClass(pub i32);

impl ErrorClass {
    /// `MPI_ERR_BUFFER`
    pub const BUFFER: Self = Self(1);
    /// `MPI_ERR_COUNT`
    pub const COUNT: Self = Self(2);
    /// `MPI_ERR_TYPE`
    pub const TYPE: Self = Self(3);
    /// `MPI_ERR_TAG`
    pub const TAG: Self = Self(4);
    /// `MPI_ERR_COMM`
    pub const COMM: Self = Self(5);
    /// `MPI_ERR_RANK`
    pub const RANK: Self = Self(6);
    /// `MPI_ERR_REQUEST`
    pub const REQUEST: Self = Self(7);
    /// `MPI_ERR_ROOT`
    pub const ROOT: Self = Self(8);
    /// `MPI_ERR_GROUP`
    pub const GROUP: Self = Self(9);
    /// `MPI_ERR_OP`
    pub const OP: Self = Self(10);
    /// `MPI_ERR_TOPOLOGY`
    pub const TOPOLOGY: Self = Self(11);
    /// `MPI_ERR_DIMS`
    pub const DIMS: Self = Self(12);
    /// `MPI_ERR_ARG`
    pub const ARG: Self = Self(13);
    /// `MPI_ERR_TRUNCATE`
    pub const TRUNCATE: Self = Self(15);
    /// `MPI_ERR_OTHER`
    pub const OTHER: Self = Self(16);
    /// `MPI_ERR_INTERN`
    pub const INTERN: Self = Self(17);
    /// `MPI_ERR_CONVERSION`
    pub const CONVERSION: Self = Self(25);
    /// `MPI_ERR_NO_MEM`
    pub const NO_MEM: Self = Self(39);
    /// `MPI_ERR_UNSUPPORTED_OPERATION`
    pub const UNSUPPORTED_OPERATION: Self = Self(55);
    /// `MPI_ERR_PROC_ABORTED`
    pub const PROC_ABORTED: Self = Self(58);
    /// `MPI_ERR_VALUE_TOO_LARGE`
    pub const VALUE_TOO_LARGE: Self = Self(59);
}

/// The kind of an engine error. Each kind maps to exactly one MPI error class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A count or a block length is negative, or an array does not have the length that the call needs.
    Count,
    /// Any other argument has a value that is not allowed.
    Argument,
    /// A datatype is not allowed where it was passed.
    Type,
    /// A size, an extent or a displacement does not fit in an `i64`, or an argument does not fit in an
    /// `int`.
    Overflow,
    /// The length, the alignment or the origin of a buffer is wrong.
    Buffer,
    /// Packed data is shorter or longer than the type requires.
    Truncated,
    /// A value cannot be represented in the requested data representation.
    Conversion,
    /// A documented limit is exceeded, such as the limit on the depth or on the number of nodes.
    Limit,
    /// The system has too little memory.
    NoMemory,
    /// The engine violated one of its own invariants. This is a bug in the engine.
    Internal,
}

/// An engine error: its kind, the name of the argument, and a sentence that describes the mistake.
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    argument: &'static str,
    detail: String,
}

impl Error {
    /// Makes an error about `argument`. The full text of the error is `argument`, a colon and a
    /// space, and then `detail`.
    pub fn new(kind: ErrorKind, argument: &'static str, detail: impl Into<String>) -> Self {
        Self { kind, argument, detail: detail.into() }
    }

    /// Returns the kind.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the name of the argument that was refused.
    pub fn argument(&self) -> &'static str {
        self.argument
    }

    /// Returns the text without the argument's name.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns the MPI error class of this kind.
    pub fn class(&self) -> ErrorClass {
        match self.kind {
            ErrorKind::Count => ErrorClass::COUNT,
            ErrorKind::Argument => ErrorClass::ARG,
            ErrorKind::Type => ErrorClass::TYPE,
            ErrorKind::Overflow => ErrorClass::VALUE_TOO_LARGE,
            ErrorKind::Buffer => ErrorClass::BUFFER,
            ErrorKind::Truncated => ErrorClass::TRUNCATE,
            ErrorKind::Conversion => ErrorClass::CONVERSION,
            ErrorKind::Limit | ErrorKind::NoMemory => ErrorClass::NO_MEM,
            ErrorKind::Internal => ErrorClass::INTERN,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.argument, self.detail)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

/// The engine's result type.
pub type Result<T> = std::result::Result<T, Error>;

/// Returns a number with its noun, such as `1 element` or `2 elements`, for use in the text of an
/// error.
pub(crate) fn counted<N: fmt::Display + PartialEq + From<u8>>(
    number: N,
    one: &str,
    many: &str,
) -> String {
    let noun = if number == N::from(1) { one } else { many };
    format!("{number} {noun}")
}
