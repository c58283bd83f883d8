//! Turns every sequence into a window if possible. (A window is a short sequence of blocks that lie close
//! together; see `is_window` in `ir/mod.rs`.) A sequence of blocks that are too many or lie too far
//! apart for a window becomes a list of runs, or a table if the blocks have equal lengths.
//!
//! This pass runs once, after the rounds of the other passes (`pipeline.rs`). During the rounds, blocks
//! should stay in sequences, whichever constructor they come from, because the other passes can splice and
//! merge sequences. But a sequence that is not a window has no kernel, and executing it takes several times
//! as long as executing a list. `README.md` lists the rules that every pass obeys.

use super::unroll::unrolled;
use super::{Builder, rewrite};
use crate::ir::{Edge, Op, Part, Program, RaggedList, is_window};
use std::sync::Arc;
use typepack_leaf::Table;

/// Replaces sequences that are not windows by windows, lists or tables where possible.
pub(crate) fn gather(program: &mut Program) {
    let nodes = program.nodes();
    let sequence = |op: &Op| matches!(op, Op::Seq { .. }) && !is_window(nodes, op);
    if !nodes.iter().any(|node| sequence(&node.op)) {
        return;
    }
    rewrite(program, |builder, node| {
        let made = match &node.op {
            Op::Seq { parts } if !is_window(&builder.nodes, &node.op) => {
                match unrolled(builder, parts) {
                    Some((at, parts)) => Some((at, Op::Seq { parts })),
                    None => runs(builder, parts),
                }
            }
            _ => None,
        };
        match made {
            Some((at, op)) => {
                let edge = builder.replace(node.bytes, op);
                Edge { offset: at, ..edge }
            }
            None => builder.push(node.bytes, node.op),
        }
    });
}

/// Returns a list or table with the blocks of `parts`, and the displacement at which to place it.
/// Returns `None` if some parts are not blocks.
fn runs(builder: &mut Builder, parts: &[Part]) -> Option<(i64, Op)> {
    let blocks = parts.iter().map(|part| match builder.node(part.edge) {
        node if node.op.is_block() => Some(node.bytes as i64),
        _ => None,
    });
    let lengths: Vec<i64> = blocks.collect::<Option<_>>()?;
    let first = parts[0].edge.offset;
    let places: Vec<i64> = parts.iter().map(|part| part.edge.offset.wrapping_sub(first)).collect();
    let entries = Table::new(&places);
    if lengths.iter().all(|&length| length == lengths[0]) {
        let body = Edge { offset: 0, ..parts[0].edge };
        return Some((first, Op::Table { entries, scale: 1, body }));
    }
    let lengths = Table::lengths(&lengths)?;
    let list = Arc::new(RaggedList::new(lengths, entries));
    let body = builder.push(1, Op::Block);
    Some((first, Op::Ragged { list, scale: 1, stride: 1, body }))
}
