//! What requests between two processes need, whoever makes them: messages (`transport/`) and one-sided calls (`rma/`).
//!
//! `types.rs` has the types that two processes know by number: the table of the process that asks, and that of the
//! process that answers. `reply.rs` has the word that says how a request has ended. `private.rs` reads the private memory of
//! another process.

pub(crate) mod private;
pub(crate) mod reply;
pub(crate) mod types;
