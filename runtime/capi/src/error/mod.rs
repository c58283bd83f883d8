//! What a call that fails says: class or code, argument, sentence.
//!
//! Functions of the face return [`Failure`]; `door.rs` raises it through the error handler of the
//! object it happened on (`handler.rs`). `codes.rs` has the classes and codes, also the user's.

pub mod codes;
pub mod handler;

use crate::abi;
use std::ffi::c_int;

/// A failed call.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Error code; for what we find ourselves, the class.
    pub code: c_int,
    /// One sentence, beginning with the argument.
    pub text: String,
}

impl Failure {
    /// A failure about `argument`; `detail` continues the sentence `"<argument>: "`.
    #[cold]
    pub fn new(class: c_int, argument: &str, detail: impl AsRef<str>) -> Self {
        Self { code: class, text: format!("{argument}: {}", detail.as_ref()) }
    }

    /// A code that a user's callback returned.
    #[cold]
    pub fn of_callback(code: c_int, callback: &str) -> Self {
        Self { code, text: format!("{callback} returned {code}") }
    }

    /// A function that does not exist yet.
    #[cold]
    pub fn not_built() -> Self {
        Self {
            code: abi::ERR_UNSUPPORTED_OPERATION,
            text: "this version of typepack does not have this function".to_owned(),
        }
    }
}

impl From<typepack::Error> for Failure {
    #[cold]
    fn from(error: typepack::Error) -> Self {
        Self { code: error.class().0, text: error.to_string() }
    }
}

impl From<typepack::engine::Error> for Failure {
    #[cold]
    fn from(error: typepack::engine::Error) -> Self {
        Self { code: error.class().0, text: error.to_string() }
    }
}

/// The result of a call.
pub type Result<T = ()> = std::result::Result<T, Failure>;
