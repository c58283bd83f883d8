//! Epochs: which calls are permitted now, and the calls that begin, end and complete; the lock of a window and meetings
//! of its ranks.
//!
//! `../README.md` says in which order to read the files.

pub(in crate::rma) mod epochs;
pub(in crate::rma) mod flush;
pub(in crate::rma) mod lock;
pub(in crate::rma) mod phase;
pub(in crate::rma) mod wait;
