//! All message state of this process: which message meets which receive, and operations in flight.
//!
//! `engine.rs` owns the state and starts operations; `engine/incoming.rs` takes envelopes out of the
//! rings; `matching.rs` pairs messages with receives; `requests.rs` is the table of operations. Before
//! this room comes `transport/`, which moves the bytes; after it come the calls in `comm/`.

pub(crate) mod engine;
pub(crate) mod matching;
pub(crate) mod requests;
