//! The runtime's error type, and the MPI error class of each kind of error.
//!
//! Every call that can fail returns [`Error`]. `From` converts engine errors (bad counts, buffers, types)
//! and keeps their MPI error class. The text of an error names the argument, its value and, where a
//! communicator is involved, the rank. So this one line tells the user what to change.

use crate::Status;
use std::fmt;
use typepack_engine::{ErrorClass, reserve};
use typepack_job as job;

/// The kind of a runtime error. Each kind maps to exactly one MPI error class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The engine refused a datatype or a buffer. The MPI error class is the class of the engine's error.
    Engine(ErrorClass),
    /// A destination or source outside the communicator.
    Rank,
    /// A root outside the communicator.
    Root,
    /// A communicator of the wrong kind: an intercommunicator where an intracommunicator is needed, or the
    /// reverse.
    Comm,
    /// A group with a member that the communicator does not have.
    Group,
    /// A tag that is negative or above [`TAG_UB`](crate::TAG_UB).
    Tag,
    /// A count that cannot be represented, or packed sizes that differ between the ranks of a collective
    /// call.
    Count,
    /// A buffer that is missing, too small, or of the wrong shape.
    Buffer,
    /// Dimensions whose product does not fit the number of ranks, or a dimension that a grid does not have.
    Dims,
    /// A communicator without the topology that the call needs.
    Topology,
    /// A message longer than the receive that matched it.
    Truncated,
    /// A message whose basic types differ from the types of the receive that matched it
    /// (checked with `TYPEPACK_CHECK_TYPES=1`).
    Type,
    /// A request that is not pending, or an operation that is not in the state that the call needs. For
    /// example, a persistent operation cannot be started while its previous round is running.
    Request,
    /// Any other argument, or a `TYPEPACK_*` variable, outside its domain.
    Argument,
    /// A rank of the job has died, or takes no further part in the calls on a file after an error. Or the launcher is
    /// ending the job or has ended.
    ProcAborted,
    /// Too little memory or address space is left.
    NoMemory,
    /// A call on a file failed.
    File(FileErrorKind),
    /// A one-sided call, or another call on a window, failed.
    Window(WindowErrorKind),
    /// Processes cannot be started, or processes cannot meet.
    Process(ProcessErrorKind),
    /// The library is not initialised, is already finalised, or is used in a forked child.
    State,
    /// The operating system refused a call, or another rank broke the protocol or could not send its data.
    Other,
    /// The library broke one of its own invariants. This is a bug in typepack.
    Internal,
}

/// The kind of an error on a file. The number of a kind is its MPI error class (MPI-5.0 section 14.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileErrorKind {
    /// The system denied the access.
    Access = 20,
    /// An access mode that is not allowed.
    Mode = 21,
    /// A file name that is not valid, for example because it is too long.
    BadFile = 23,
    /// A data representation with this name exists already.
    DuplicateRepresentation = 27,
    /// The file exists already.
    Exists = 28,
    /// Another program uses the file in a way that prevents the call.
    InUse = 29,
    /// The file is closed, or cannot do what the call needs.
    File = 30,
    /// Any other failure of input or output.
    Io = 35,
    /// The ranks passed different arguments.
    NotSame = 40,
    /// The file system is full.
    NoSpace = 41,
    /// The file does not exist.
    NoSuchFile = 42,
    /// The quota of the user is exceeded.
    Quota = 44,
    /// The file or its file system is read-only.
    ReadOnly = 45,
    /// A data representation that does not exist.
    Representation = 54,
    /// A call that the file's access mode does not allow.
    Operation = 55,
}

/// The kind of an error on a window. The number of a kind is its MPI error class (MPI-5.0 section 12.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WindowErrorKind {
    /// An assertion that the call does not have.
    Assert = 22,
    /// A base address that no memory can have.
    Base = 24,
    /// A displacement unit or a displacement that is negative or otherwise out of its domain.
    Displacement = 26,
    /// A lock that is neither shared nor exclusive.
    LockType = 37,
    /// Memory that cannot be attached, or that is not attached.
    Attach = 46,
    /// Memory of the target that does not lie in the window.
    Range = 48,
    /// Memory that the ranks cannot share.
    Shared = 49,
    /// A call outside an epoch that permits the call.
    Synchronization = 50,
    /// A negative size.
    Size = 52,
    /// A window that does not have what the call needs.
    Window = 56,
    /// A call that windows of this kind do not have.
    Flavor = 57,
}

/// The kind of an error about starting processes or connecting with them. The number of a kind is its MPI error class
/// (MPI-5.0 chapter 11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProcessErrorKind {
    /// A hint about a command has a value that is not allowed.
    HintValue = 33,
    /// No service has been published under the name.
    Name = 38,
    /// There is no such port.
    Port = 43,
    /// A service that is published already, or is not published.
    Service = 51,
    /// The processes cannot be started.
    Spawn = 53,
}

/// A runtime error: a kind and one sentence that begins with the argument's name.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    kind: ErrorKind,
    argument: &'static str,
    detail: String,
    received: Option<Status>,
}

impl Error {
    /// Builds an error about `argument`. Its text consists of `argument`, a colon and `detail`.
    pub fn new(kind: ErrorKind, argument: &'static str, detail: impl Into<String>) -> Self {
        Self { kind, argument, detail: detail.into(), received: None }
    }

    /// Returns this error with the status of the message that the failed receive matched.
    pub(crate) fn of_message(self, received: Status) -> Self {
        Self { received: Some(received), ..self }
    }

    /// Returns this error with one more clause at the end of its text.
    #[cold]
    pub(crate) fn add(mut self, clause: &str) -> Self {
        self.detail.push_str("; ");
        self.detail.push_str(clause);
        self
    }

    /// Returns whether the text says this.
    #[cold]
    pub(crate) fn says(&self, clause: &str) -> bool {
        self.detail.contains(clause)
    }

    /// Returns the status of the message that a failed receive matched. The byte count of the status is at
    /// most the receive's capacity. If the types differed ([`ErrorKind::Type`]), the receive has written no
    /// byte.
    pub fn received(&self) -> Option<Status> {
        self.received
    }

    /// Returns the kind.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the name of the argument, variable or part of the library that the error is about.
    pub fn argument(&self) -> &'static str {
        self.argument
    }

    /// Returns the text without the name of the argument.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns the MPI error class of this error (MPI-5.0 section 9.4).
    pub fn class(&self) -> ErrorClass {
        self.kind.class()
    }
}

impl ErrorKind {
    /// Returns the MPI error class of the errors of this kind (MPI-5.0 section 9.4).
    pub fn class(self) -> ErrorClass {
        match self {
            ErrorKind::Engine(class) => class,
            ErrorKind::Rank => ErrorClass::RANK,
            ErrorKind::Root => ErrorClass::ROOT,
            ErrorKind::Comm => ErrorClass::COMM,
            ErrorKind::Group => ErrorClass::GROUP,
            ErrorKind::Tag => ErrorClass::TAG,
            ErrorKind::Count => ErrorClass::COUNT,
            ErrorKind::Buffer => ErrorClass::BUFFER,
            ErrorKind::Dims => ErrorClass::DIMS,
            ErrorKind::Topology => ErrorClass::TOPOLOGY,
            ErrorKind::Truncated => ErrorClass::TRUNCATE,
            ErrorKind::Type => ErrorClass::TYPE,
            ErrorKind::Request => ErrorClass::REQUEST,
            ErrorKind::Argument => ErrorClass::ARG,
            ErrorKind::ProcAborted => ErrorClass::PROC_ABORTED,
            ErrorKind::NoMemory => ErrorClass::NO_MEM,
            ErrorKind::File(kind) => ErrorClass(kind as i32),
            ErrorKind::Window(kind) => ErrorClass(kind as i32),
            ErrorKind::Process(kind) => ErrorClass(kind as i32),
            ErrorKind::State | ErrorKind::Other => ErrorClass::OTHER,
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

impl From<typepack_engine::Error> for Error {
    fn from(error: typepack_engine::Error) -> Self {
        let text = error.to_string();
        let prefix = format!("{}: ", error.argument());
        let detail = text.strip_prefix(&prefix).unwrap_or(&text).to_owned();
        Self::new(ErrorKind::Engine(error.class()), error.argument(), detail)
    }
}

impl From<job::Error> for Error {
    fn from(error: job::Error) -> Self {
        let kind = match error.kind() {
            job::ErrorKind::Argument => ErrorKind::Argument,
            job::ErrorKind::NoMemory => ErrorKind::NoMemory,
            job::ErrorKind::LauncherGone => ErrorKind::ProcAborted,
            // Causes: different builds of launcher and library, an inconsistent environment, or a system
            // call that the operating system refused.
            _ => ErrorKind::Other,
        };
        Self::new(kind, "job", error.to_string())
    }
}

/// Fails if memory is so short that the library makes no further objects
/// ([`ReserveAllocator`](crate::ReserveAllocator)).
///
/// # Errors
/// Returns `ErrorKind::NoMemory`.
#[inline(always)]
pub(crate) fn check_memory() -> Result<()> {
    #[cold]
    fn short() -> Error {
        let detail = "the system has no memory left; free memory, then call again";
        Error::new(ErrorKind::NoMemory, "memory", detail)
    }
    if reserve::is_short() && reserve::refuses() { Err(short()) } else { Ok(()) }
}

/// The runtime's result type.
pub type Result<T> = std::result::Result<T, Error>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_is_display() {
        let error = Error::new(ErrorKind::Count, "count", "-1 is negative").add("why");
        assert_eq!(format!("{error:?}"), "count: -1 is negative; why");
        let engine = typepack_engine::Error::new(typepack_engine::ErrorKind::Count, "n", "bad");
        assert_eq!(format!("{engine:?}"), engine.to_string());
        let job = job::Error::system("open", std::io::Error::from_raw_os_error(libc::EMFILE));
        assert_eq!(format!("{job:?}"), job.to_string());
        let jit = "never".parse::<typepack_jit::Mode>().expect_err("no mode");
        assert_eq!(format!("{jit:?}"), jit.to_string());
    }

    #[test]
    fn engine_errors_keep_class_and_text() {
        let engine = typepack_engine::Error::new(
            typepack_engine::ErrorKind::Count,
            "count",
            "-1 is negative",
        );
        let error = Error::from(engine);
        assert_eq!(error.class(), ErrorClass::COUNT);
        assert_eq!(error.to_string(), "count: -1 is negative");
    }
}
