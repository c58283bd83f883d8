//! Put and get as one copy by the calling rank, in memory that it can map.
//!
//! `../README.md` says in which order to read the files.

pub(in crate::rma) mod copies;
