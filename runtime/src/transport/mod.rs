//! How bytes travel between ranks: envelopes and eager payloads through rings, bulk data after the
//! match, through chunks or straight from the sender's heap.
//!
//! `fabric.rs` is the rank's place in the shared segment, `envelope.rs` the language of the rings,
//! `peer.rs` the two ways to one other rank, `types.rs` the types that both know by number,
//! `choice.rs` the choice, `fetch.rs` the copy out of the sender's heap, `share.rs` how the sender
//! helps with it, `split.rs` the copy between private memories, `stage.rs` where pieces are packed
//! first. Above is `endpoint/engine.rs`, below
//! `shm/`. The protocol,
//! with its states and orderings in numbered steps, is in `README.md` beside this file.

pub(crate) mod choice;
pub(crate) mod fabric;
pub(crate) mod fetch;
pub(crate) mod peer;
pub(crate) mod share;
pub(crate) mod split;
pub(crate) mod stage;
pub(crate) mod types;
