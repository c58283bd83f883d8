//! The engines of two ranks in one process, and of one rank against a hostile rank.

use crate::message::payload::{LayoutRef, Posting};
use crate::message::{Source, Tag};

mod heap;
mod hostile;
mod private;
mod types;
mod wire;

/// Returns a receive of any message of a context.
fn any(layout: LayoutRef<'_>, capacity: u64, context: u64) -> Posting<'_> {
    Posting { layout, capacity, context, source: Source::Any, tag: Tag::Any }
}
