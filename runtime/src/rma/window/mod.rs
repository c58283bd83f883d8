//! Windows: how they are made, their memory, and the words that their ranks share.
//!
//! `../README.md` says in which order to read the files.

pub(in crate::rma) mod create;
pub(in crate::rma) mod dynamic;
pub(in crate::rma) mod hints;
pub(in crate::rma) mod target;
pub(in crate::rma) mod words;
