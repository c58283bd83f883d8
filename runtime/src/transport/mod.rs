//! How bytes travel between ranks: one file per protocol, behind one trait.
//!
//! | protocol | file | for | copies |
//! |---|---|---|---|
//! | eager | `eager.rs` | short messages | two, through the ring |
//! | pipeline | `pipeline.rs` | everything else, if nothing better | two, through chunks, both ranks at work |
//! | heap copy | `heap.rs` | data in the shared heap | one, by the receiver or by both |
//! | private copy | `private.rs` | one run of private memory to one run | one, by both |
//!
//! `protocol.rs` is the trait: offer, matched, advance, withdraw. `choice.rs` chooses, `peer.rs` calls.
//! `single_copy.rs` is what the two single copies have in common (their trait is there), `answers.rs` what a sender may hear in
//! which state, `in_flight.rs` what is known of an operation. Below them: `link.rs` the two ways of a
//! pair, `types.rs` the types that both ranks know by number, `offers.rs` the book of data that may be
//! read in place, `stage.rs` where pieces are packed first, `ready.rs` lines fetched ahead, `area.rs`
//! the shared memory of a pair, `fabric.rs` the rank's place in the job.
//!
//! Before this room comes `message/`, after it `endpoint/`. The protocols, with their states and
//! orderings in numbered steps, are in `README.md` beside this file.

mod answers;
pub(crate) mod area;
pub(crate) mod choice;
pub(crate) mod eager;
pub(crate) mod fabric;
pub(crate) mod failure;
mod heap;
pub(crate) mod in_flight;
pub(crate) mod link;
mod offers;
pub(crate) mod peer;
mod pipeline;
mod private;
pub(crate) mod protocol;
mod ready;
mod single_copy;
pub(crate) mod stage;
pub(crate) mod types;
