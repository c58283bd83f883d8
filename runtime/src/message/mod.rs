//! The parts of a message that do not depend on its protocol: label, data, types and envelope.
//!
//! `label.rs` has the source, tag and label of a message. `payload.rs` packs and unpacks any range
//! of the data. `typecheck.rs` compares types if the user asks for the check. `envelope.rs` has the
//! envelopes that two ranks exchange. The files of `transport/`, which moves the bytes, use this folder.

pub(crate) mod envelope;
pub(crate) mod label;
pub(crate) mod payload;
pub(crate) mod typecheck;

pub use label::{Operation, Source, Status, TAG_UB, Tag};
