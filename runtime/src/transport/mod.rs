//! The transport: protocols that carry the bytes of messages between ranks, one file per protocol.
//!
//! | protocol | file | for | copies |
//! |---|---|---|---|
//! | eager | `protocol/eager.rs` | short messages | two, through the ring |
//! | fragments | `protocol/fragments.rs` | longer messages | two, through the ring, by both ranks |
//! | pipeline | `protocol/pipeline.rs` | other messages | two, through chunks, by both ranks |
//! | heap copy | `protocol/heap.rs` | data in the shared heap | one, by the receiver or by both ranks |
//! | private copy | `protocol/private.rs` | one run of private memory to another such run | one, by the receiver |
//!
//! `protocol.rs` has the trait of a protocol, with the methods offer, matched, advance and withdraw. `choice.rs` has
//! the static rules for the choice of a protocol, and `choice/` the choices by measurement. `peer.rs` has what a rank
//! keeps for one other rank, and calls the protocols. `link.rs` writes and reads envelopes; `link/` has the memory of a
//! pair and the rank's connection to the other ranks.
//!
//! This folder uses the messages of `message/`, and `endpoint/` uses this folder. `README.md` beside this
//! file describes the protocols with their states and orderings in numbered steps.

pub(crate) mod choice;
pub(crate) mod link;
pub(crate) mod peer;
pub(crate) mod protocol;
