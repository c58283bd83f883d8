//! What a message is, whatever way it goes: its label, its data, its types, the words of the wire.
//!
//! `label.rs` has source, tag, status and label; `payload.rs` packs and unpacks any range of the data;
//! `typecheck.rs` compares types where that is asked for; `envelope.rs` is what two ranks say to each
//! other. After this room comes `transport/`, which moves the bytes.

pub(crate) mod envelope;
pub(crate) mod label;
pub(crate) mod payload;
pub(crate) mod typecheck;

pub use label::{Operation, Source, Status, TAG_UB, Tag};
