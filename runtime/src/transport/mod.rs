//! The transport: protocols that carry the bytes of messages between ranks, one file per protocol.
//!
//! | protocol | file | for | copies |
//! |---|---|---|---|
//! | eager | `eager.rs` | short messages | two, through the ring |
//! | pipeline | `pipeline.rs` | other messages | two, through chunks, by both ranks |
//! | heap copy | `heap.rs` | data in the shared heap | one, by the receiver or by both ranks |
//! | private copy | `private.rs` | one contiguous run of private memory to another such run | one, by the receiver |
//!
//! `protocol.rs` has the trait of a protocol, with the methods offer, matched, advance and withdraw.
//! `choice.rs` has the static rules for the choice of a protocol, `tuning.rs` chooses by measurement how a
//! long message is copied, `short_choice.rs` does so
//! for payloads of some KiB, and `peer.rs` calls the protocol. `single_copy.rs` has the common part of the
//! two protocols that copy only once, and the trait `Copier`, in which these two differ. `answers.rs` lists
//! the answers that a sender may receive in each state, and `in_flight.rs` has the state of an operation.
//!
//! The protocols use these files: `link.rs`, the two directions of a pair; `types.rs`, the types that
//! both ranks know by number, and `long_types.rs`, those of them whose description is long; `offers.rs`,
//! the messages that the receiver may read in place; `stage.rs`, the private buffer in which pieces are
//! packed first; `recalls.rs`, the shared words by which a rank takes back messages that no receive has
//! matched; `ready.rs`, which fetches cache lines before the next message needs them; `area.rs`, the
//! shared memory of a pair; `pool.rs`, the chunks of this rank; `fabric.rs`, the rank's connection to the
//! other ranks.
//!
//! This folder uses the messages of `message/`, and `endpoint/` uses this folder. `README.md` beside this
//! file describes the protocols with their states and orderings in numbered steps.

pub(crate) mod allowance;
mod answers;
pub(crate) mod area;
pub(crate) mod choice;
mod cleared;
pub(crate) mod eager;
pub(crate) mod fabric;
pub(crate) mod failure;
mod heap;
pub(crate) mod in_flight;
pub(crate) mod link;
mod long_types;
mod offers;
pub mod part_choice;
mod parts;
pub(crate) mod peer;
mod pipeline;
mod pool;
pub(crate) mod private;
pub(crate) mod protocol;
mod ready;
mod recalls;
pub(crate) mod short_choice;
mod single_copy;
pub(crate) mod stage;
pub(crate) mod tuning;
pub(crate) mod types;
