//! The failure of a call: an error class or error code, and a sentence that begins with the name of the wrong
//! argument.
//!
//! The crate `typepack-capi` has another failure type, which also says which error handler to call
//! (`error/` of that crate).

use crate::abi;
use std::ffi::c_int;

/// A failed call. The content is boxed, so that a [`Result`] without a value is one word and stays in a
/// register. This matters because calls take only a few nanoseconds.
#[derive(Clone, Debug)]
pub struct Failure(Box<Said>);

/// The content of a [`Failure`].
#[derive(Clone, Debug)]
pub struct Said {
    /// The error code. For errors that this library finds, the code is the error class.
    pub code: c_int,
    /// One sentence. For a wrong argument, it begins with the name of the argument.
    pub text: String,
}

impl Failure {
    /// Makes a failure about `argument`. `detail` continues the sentence `"<argument>: "`.
    #[cold]
    pub fn new(class: c_int, argument: &str, detail: impl AsRef<str>) -> Self {
        Self::of_code(class, format!("{argument}: {}", detail.as_ref()))
    }

    /// Makes a failure with the error code `code` and the sentence `text`.
    #[cold]
    pub fn of_code(code: c_int, text: String) -> Self {
        Self(Box::new(Said { code, text }))
    }

    /// Makes the failure for a handle that has no object of the expected kind: the handle is null or stale,
    /// or belongs to an object of another kind. `argument` is the name of the argument, and `kind` is the
    /// expected kind of object in words, for example `("comm", "communicator")`. `null` is the null handle of
    /// that kind, and `null_name` is the name of the null handle.
    #[cold]
    pub fn no_object(
        class: c_int,
        (argument, kind): (&str, &str),
        handle: usize,
        (null, null_name): (usize, &str),
    ) -> Self {
        let detail = match handle {
            handle if handle == null => format!("{null_name} is not a valid {kind} handle"),
            handle => format!("{handle:#x} is not a valid {kind} handle"),
        };
        Self::new(class, argument, detail)
    }

    /// Makes the failure for a null pointer in `argument`.
    #[cold]
    pub fn null(argument: &'static str) -> Self {
        Self::nowhere(argument, 0)
    }

    /// Makes the failure for an address in `argument` at which no memory can be: a null pointer or another constant of
    /// the standard.
    #[cold]
    pub fn nowhere(argument: &'static str, address: usize) -> Self {
        Self::new(abi::ERR_ARG, argument, no_address(address))
    }

    /// Returns the error code.
    pub fn code(&self) -> c_int {
        self.0.code
    }

    /// Returns the error code and the text.
    pub fn into_said(self) -> Said {
        *self.0
    }
}

impl From<typepack_engine::Error> for Failure {
    #[cold]
    fn from(error: typepack_engine::Error) -> Self {
        Self::of_code(error.class().0, error.to_string())
    }
}

/// Returns what is wrong with an address at which no memory can be.
pub(crate) fn no_address(address: usize) -> String {
    let name = match address {
        0 => return "null pointer, but the call needs an address".to_owned(),
        abi::IN_PLACE => "MPI_IN_PLACE",
        abi::BUFFER_AUTOMATIC => "MPI_BUFFER_AUTOMATIC",
        abi::UNWEIGHTED => "MPI_UNWEIGHTED",
        abi::WEIGHTS_EMPTY => "MPI_WEIGHTS_EMPTY",
        other => return format!("no memory can be at {other:#x}, but the call needs an address"),
    };
    format!("{name} is not allowed; the call needs an address")
}

/// The result of a call.
pub type Result<T = ()> = std::result::Result<T, Failure>;
