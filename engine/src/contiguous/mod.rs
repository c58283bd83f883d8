//! Copies of contiguous bytes: the copies of `typepack-leaf`, and the choice of their method.
//!
//! `typepack_leaf::contiguous` has the methods, and this module exports its names. `own.rs` picks the method of the
//! long copies for which no caller has asked for one: it times some of them and leaves the choice to a chooser
//! (`choice/`).

mod own;
#[cfg(test)]
mod tests;

pub(crate) use own::{Clock, clock};
pub use own::{FORM, remembered, set_clock};
pub use typepack_leaf::contiguous::{
    LONG, Method, ParseMethodError, available, copy, copy_by, fetch, limit, set_fixed, with,
};

use crate::choice::{Candidate, Key, Word};
use typepack_leaf::contiguous::{Source, WATCHED, set_choice};

/// The copy methods in the order of their codes, as ways of a [`Form`](crate::choice::Form).
pub const METHODS: [Word; 4] =
    [("vector", "vector"), ("repeat", "repeat"), ("streaming", "streaming"), ("pages", "pages")];

/// A method, or none: that is the way after [`METHODS`].
impl Candidate for Option<Method> {
    fn number(self, _: Key) -> u8 {
        self.map_or(METHODS.len() as u8, Method::code)
    }
}

impl Candidate for Method {
    fn number(self, _: Key) -> u8 {
        self.code()
    }
}
