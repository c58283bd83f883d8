//! Tests the engines of two ranks in one process, and the engine of one rank against a hostile rank.

use crate::Plan;
use crate::message::Tag;
use crate::message::label::Sender;
use crate::message::payload::Posting;
use typepack_engine::Elements;

mod ahead;
mod fragments;
mod heap;
mod hostile;
mod long_types;
mod pool;
mod private;
mod shared_copies;
mod short;
mod slots;
mod turns;
mod types;
mod waiting;
mod wire;

/// Returns the posting of a receive that accepts any message of a context.
fn any(layout: Elements<&Plan>, capacity: u64, context: u64) -> Posting<'_> {
    Posting { layout, capacity, context, source: Sender::Any, tag: Tag::Any }
}
