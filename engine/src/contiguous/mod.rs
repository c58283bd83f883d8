//! Copies of contiguous bytes: the copies of `typepack-leaf`, and the choice of their method.
//!
//! `typepack_leaf::contiguous` has the methods, and this module exports its names. `own.rs` picks the method of the
//! long copies for which no caller has asked for one: it times some of them and leaves the choice to a chooser
//! (`choice/`).

mod own;
#[cfg(test)]
mod tests;

pub(crate) use own::{Clock, choose, clock};
pub use own::{Learnt, know, learnt, set_clock};
pub use typepack_leaf::contiguous::{
    LONG, Method, ParseMethodError, available, copy, copy_by, fetch, limit, set_fixed, with,
};

use typepack_leaf::contiguous::{Source, WATCHED, set_choice};
