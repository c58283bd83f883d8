//! This process's end of the job: the lock, the sources of progress, and how calls wait.
//!
//! `progress.rs` has the lock and the waiting; `sources.rs` what is driven besides messages.

pub(crate) mod progress;
pub(crate) mod sources;
