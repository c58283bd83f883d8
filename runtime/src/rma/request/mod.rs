//! Operations on memory that the calling rank cannot map: it sends requests, which the target serves.
//!
//! `../README.md` says in which order to read the files.

pub(in crate::rma) mod completions;
pub(in crate::rma) mod fetches;
pub(in crate::rma) mod form;
pub(in crate::rma) mod place;
pub(in crate::rma) mod reads;
pub(in crate::rma) mod replies;
pub(in crate::rma) mod requests;
pub(in crate::rma) mod serve;
pub(in crate::rma) mod target;
pub(in crate::rma) mod tries;
pub(in crate::rma) mod types;
