//! How bytes travel between ranks: envelopes and eager payloads through rings, bulk data through
//! chunks after the match.
//!
//! `fabric.rs` is the rank's place in the shared segment, `envelope.rs` the language of the rings,
//! `peer.rs` the two ways to one other rank. Above is `p2p/exchange.rs`, below `shm/`. The protocol,
//! with its states and orderings in numbered steps, is in `README.md` beside this file.

pub(crate) mod envelope;
pub(crate) mod fabric;
pub(crate) mod peer;
