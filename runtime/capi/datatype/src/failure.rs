//! What a call that fails says: class or code, argument, sentence.

use crate::abi;
use std::ffi::c_int;

/// A failed call. Boxed: a result without one is a word in a register, which calls of a few
/// nanoseconds notice.
#[derive(Clone, Debug)]
pub struct Failure(Box<Said>);

/// What a [`Failure`] says.
#[derive(Clone, Debug)]
pub struct Said {
    /// Error code; for what we find ourselves, the class.
    pub code: c_int,
    /// One sentence, beginning with the argument.
    pub text: String,
}

impl Failure {
    /// A failure about `argument`; `detail` continues the sentence `"<argument>: "`.
    #[cold]
    pub fn new(class: c_int, argument: &str, detail: impl AsRef<str>) -> Self {
        Self::of_code(class, format!("{argument}: {}", detail.as_ref()))
    }

    /// A failure with any code.
    #[cold]
    pub fn of_code(code: c_int, text: String) -> Self {
        Self(Box::new(Said { code, text }))
    }

    /// A handle that stands for nothing: null, stale, or of another kind. `argument` is the
    /// argument's name and that of what it should have been: `comm` and `communicator`.
    #[cold]
    pub fn no_object(
        class: c_int,
        (argument, kind): (&str, &str),
        handle: usize,
        (null, null_name): (usize, &str),
    ) -> Self {
        let detail = match handle {
            handle if handle == null => null_name.to_owned(),
            handle => format!("{handle:#x} is no {kind}"),
        };
        Self::new(class, argument, detail)
    }

    /// A null pointer.
    #[cold]
    pub fn null(argument: &'static str) -> Self {
        Self::new(abi::ERR_ARG, argument, "a null pointer")
    }

    /// The code.
    pub fn code(&self) -> c_int {
        self.0.code
    }

    /// What it says.
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
