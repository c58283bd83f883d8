//! The state of this process in the job: its messages, its other sources of progress, the lock that
//! protects them, and the code that waits.
//!
//! `engine.rs` owns all message state and starts operations. `engine/incoming.rs` takes envelopes out of
//! the rings. `matching.rs` matches messages with receives. `requests.rs` is the table of operations.
//! `sources.rs` has the sources of progress besides messages. `progress.rs` has the lock and the waiting. `call.rs`
//! keeps the name of the call that waits.
//!
//! The files of this folder use `transport/`, which moves the bytes. The files in `schedule/` (whose
//! steps are messages) and the calls in `comm/` use this folder.

pub mod call;
pub(crate) mod engine;
pub(crate) mod matching;
pub(crate) mod progress;
pub(crate) mod requests;
pub(crate) mod sources;
