//! What a call that fails says: class or code, argument, sentence.
//!
//! Functions of the face return [`Failure`]; `entry/` raises it through the error handler of the
//! object it happened on (`handler.rs`; `objects.rs` for kinds of objects of which little more is known).
//! `codes.rs` has the classes and codes, also the user's; `panics.rs` says what a panic becomes.

pub mod codes;
pub mod handler;
pub mod objects;
pub mod panics;

use crate::abi;
use crate::error::handler::Handler;
use crate::failure;
use crate::raw;
use std::ffi::c_int;
use std::ops::{Deref, DerefMut};

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
    /// The communicator of a completed operation, and its handler then: who hears of the failure
    /// instead of the object that the call is about.
    pub on: Option<(raw::Comm, Handler)>,
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
        Self(Box::new(Said { code, text, on: None }))
    }

    /// As [`failure::Failure::no_object`].
    #[cold]
    pub fn no_object(
        class: c_int,
        argument: (&str, &str),
        handle: usize,
        null: (usize, &str),
    ) -> Self {
        failure::Failure::no_object(class, argument, handle, null).into()
    }

    /// A null pointer.
    #[cold]
    pub fn null(argument: &'static str) -> Self {
        failure::Failure::null(argument).into()
    }

    /// A code that a user's callback returned.
    #[cold]
    pub fn of_callback(code: c_int, callback: &str) -> Self {
        Self::of_code(code, format!("{callback} returned {code}"))
    }

    /// A function that does not exist yet.
    #[cold]
    pub fn not_built() -> Self {
        let text = "this version of typepack does not have this function";
        Self::of_code(abi::ERR_UNSUPPORTED_OPERATION, text.to_owned())
    }
}

impl Deref for Failure {
    type Target = Said;

    fn deref(&self) -> &Said {
        &self.0
    }
}

impl DerefMut for Failure {
    fn deref_mut(&mut self) -> &mut Said {
        &mut self.0
    }
}

impl From<typepack::Error> for Failure {
    #[cold]
    fn from(error: typepack::Error) -> Self {
        Self::of_code(error.class().0, error.to_string())
    }
}

impl From<typepack::engine::Error> for Failure {
    #[cold]
    fn from(error: typepack::engine::Error) -> Self {
        Self::of_code(error.class().0, error.to_string())
    }
}

impl From<failure::Failure> for Failure {
    #[cold]
    fn from(failure: failure::Failure) -> Self {
        let failure::Said { code, text } = failure.into_said();
        Self::of_code(code, text)
    }
}

/// The result of a call.
pub type Result<T = ()> = std::result::Result<T, Failure>;
