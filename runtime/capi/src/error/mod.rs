//! The failure of a call: an error class or error code, a sentence that says what is wrong, and sometimes the
//! error handler to call.
//!
//! A function that implements an MPI call returns a [`Failure`] if it fails. `entry.rs` then calls the
//! error handler of the call's object (`handler.rs`). `objects.rs` has the tables of files, windows and
//! sessions, and the calls on their error handlers. `codes.rs` has the error classes and codes of the
//! standard and of the user. `last.rs` keeps the texts of each thread's last failure. `panics.rs` turns a panic into
//! a failure. `section.rs` has the failure of a call whose array section the Fortran library cannot use.

pub mod codes;
pub mod handler;
pub mod last;
pub mod objects;
pub mod panics;
pub mod section;

use crate::error::handler::Handler;
use crate::failure;
use std::ffi::c_int;
use std::ops::{Deref, DerefMut};

/// A failed call. The content is boxed, so that a [`Result`] without a value is one word and stays in a
/// register. This matters because some calls take only a few nanoseconds.
#[derive(Clone, Debug)]
pub struct Failure(Box<Said>);

/// The content of a [`Failure`].
#[derive(Clone, Debug)]
pub struct Said {
    /// The error code. For errors that this library finds, the code is the error class.
    pub code: c_int,
    /// One sentence. For a wrong argument, it begins with the name of the argument.
    pub text: String,
    /// An error handler, and the handle that it gets as an argument. Usually these are the handle of a communicator,
    /// file, window or session, and the error handler that this object had when an operation on it failed. If this
    /// field is set, `entry.rs` calls this error handler instead of the error handler of the call's object.
    pub on: Option<(usize, Handler)>,
    /// The codes in the statuses of a call that completes several operations, each with its first text.
    pub also: Vec<(c_int, String)>,
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
        Self(Box::new(Said { code, text, on: None, also: Vec::new() }))
    }

    /// Makes the failure for a handle that has no object. [`failure::Failure::no_object`] describes the
    /// parameters.
    #[cold]
    pub fn no_object(
        class: c_int,
        argument: (&str, &str),
        handle: usize,
        null: (usize, &str),
    ) -> Self {
        failure::Failure::no_object(class, argument, handle, null).into()
    }

    /// Adds this failure to those of other operations of the same call, of which `first` is the first.
    #[cold]
    pub fn gather(self, first: &mut Option<Self>) {
        let (code, text) = (self.code, self.text.clone());
        let also = &mut first.get_or_insert(self).also;
        if also.iter().all(|(other, _)| *other != code) {
            also.push((code, text));
        }
    }

    /// Makes the failure for a null pointer in `argument`.
    #[cold]
    pub fn null(argument: &'static str) -> Self {
        failure::Failure::null(argument).into()
    }

    /// Makes the failure for an address in `argument` at which no memory can be.
    #[cold]
    pub fn nowhere(argument: &'static str, address: usize) -> Self {
        failure::Failure::nowhere(argument, address).into()
    }

    /// Makes the failure for a user's callback that returned the error code `code`.
    #[cold]
    pub fn of_callback(code: c_int, callback: &str) -> Self {
        Self::of_code(code, format!("{callback} returned {code}"))
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
