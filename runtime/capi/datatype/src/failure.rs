//! The failure of a call: an error class or code, and a sentence that begins with the argument's name.
//!
//! The C face has a failure type of its own, which also knows the error handler (`error/` of
//! `typepack-capi`).

use crate::abi;
use std::ffi::c_int;

/// A failed call. The content is boxed, so that a [`Result`] is one word and stays in a register: calls take
/// only a few nanoseconds.
#[derive(Clone, Debug)]
pub struct Failure(Box<Said>);

/// The content of a [`Failure`].
#[derive(Clone, Debug)]
pub struct Said {
    /// The error code. For errors that this library finds, the code is the error class.
    pub code: c_int,
    /// One sentence that begins with the argument's name.
    pub text: String,
}

impl Failure {
    /// Makes a failure about `argument`. `detail` continues the sentence `"<argument>: "`.
    #[cold]
    pub fn new(class: c_int, argument: &str, detail: impl AsRef<str>) -> Self {
        Self::of_code(class, format!("{argument}: {}", detail.as_ref()))
    }

    /// Makes a failure with any code.
    #[cold]
    pub fn of_code(code: c_int, text: String) -> Self {
        Self(Box::new(Said { code, text }))
    }

    /// Makes the failure of a handle that stands for no object: null, stale, or of another kind. The first
    /// parameter after the class has the name of the argument and of the kind: `("comm", "communicator")`.
    #[cold]
    pub fn no_object(
        class: c_int,
        (argument, kind): (&str, &str),
        handle: usize,
        (null, null_name): (usize, &str),
    ) -> Self {
        let detail = match handle {
            handle if handle == null => null_name.to_owned(),
            handle => format!("{handle:#x} is not a valid {kind} handle"),
        };
        Self::new(class, argument, detail)
    }

    /// Makes the failure of a null pointer.
    #[cold]
    pub fn null(argument: &'static str) -> Self {
        Self::new(abi::ERR_ARG, argument, "null pointer, but the call needs an address")
    }

    /// Returns the code.
    pub fn code(&self) -> c_int {
        self.0.code
    }

    /// Returns code and text.
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

/// The result of a call.
pub type Result<T = ()> = std::result::Result<T, Failure>;
