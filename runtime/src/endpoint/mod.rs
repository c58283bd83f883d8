//! This process's end of the job: its messages, what else is driven, the lock, and how calls wait.
//!
//! `engine.rs` owns all message state and starts operations; `engine/incoming.rs` takes envelopes out of
//! the rings; `matching.rs` pairs messages with receives; `requests.rs` is the table of operations;
//! `sources.rs` has the sources of progress beside messages; `progress.rs` the lock and the waiting.
//! Before this room comes `transport/`, which moves the bytes; after it `schedule/`, whose steps are
//! messages, and the calls in `comm/`.

pub(crate) mod engine;
pub(crate) mod matching;
pub(crate) mod progress;
pub(crate) mod requests;
pub(crate) mod sources;
