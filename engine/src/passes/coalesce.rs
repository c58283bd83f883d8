//! Joins runs of memory that touch and that follow each other in packed order.
//!
//! `pipeline.rs` runs this pass after `fold.rs`. `README.md` lists the rules that every pass obeys.

use super::{Builder, rewrite_unless};
use crate::ir::{Edge, Node, Op, Part, Program, RaggedList};
use smallvec::SmallVec;
use std::sync::Arc;
use typepack_leaf::{Table, entries};

/// Joins touching runs. Returns true if the program changed.
pub(crate) fn coalesce(program: &mut Program) -> bool {
    rewrite_unless(is_coalesced, program, |builder, node| match node.op {
        Op::Loop { stride, body, .. } if body.offset == 0 && dense(builder.node(body), stride) => {
            builder.replace(node.bytes, Op::Block)
        }
        Op::Seq { parts } => sequence(builder, node.bytes, parts),
        Op::Ragged { list, scale, stride, body } => {
            let list = if dense(builder.node(body), stride) {
                merge_entries(&list, scale, stride).map_or(list, |merged| {
                    builder.changed = true;
                    Arc::new(merged)
                })
            } else {
                list
            };
            builder.push(node.bytes, Op::Ragged { list, scale, stride, body })
        }
        op => builder.push(node.bytes, op),
    })
}

/// Returns false if this pass may change `op`. For a list of runs and for a dense loop, the function always
/// returns false: it looks neither for touching entries nor at the offset of the body.
#[inline]
pub(super) fn is_coalesced(nodes: &[Node], op: &Op) -> bool {
    match op {
        Op::Block | Op::Table { .. } => true,
        Op::Loop { stride, body, .. } => !dense(&nodes[body.node.index()], *stride),
        Op::Seq { parts } => {
            !parts.windows(2).any(|pair| touches(nodes, pair[0].edge, pair[1].edge))
        }
        Op::Ragged { stride, body, .. } => !dense(&nodes[body.node.index()], *stride),
    }
}

/// Returns true if copies of `node` that are `stride` bytes apart form one run of memory.
pub(super) fn dense(node: &Node, stride: i64) -> bool {
    node.op.is_block() && i128::from(stride) == i128::from(node.bytes)
}

/// Returns true if `a` and `b` are blocks and `b` begins where `a` ends.
fn touches(nodes: &[Node], a: Edge, b: Edge) -> bool {
    let (first, second) = (&nodes[a.node.index()], &nodes[b.node.index()]);
    first.op.is_block()
        && second.op.is_block()
        && i128::from(a.offset) + i128::from(first.bytes) == i128::from(b.offset)
}

fn sequence(builder: &mut Builder, bytes: u64, parts: Box<[Part]>) -> Edge {
    if !parts.windows(2).any(|pair| touches(&builder.nodes, pair[0].edge, pair[1].edge)) {
        return builder.push(bytes, Op::Seq { parts });
    }
    builder.changed = true;
    let mut merged: SmallVec<[Part; 8]> = SmallVec::new();
    for part in parts.iter() {
        match merged.last_mut() {
            Some(last) if touches(&builder.nodes, last.edge, part.edge) => {
                let sum = builder.node(last.edge).bytes + builder.node(part.edge).bytes;
                let edge = builder.push(sum, Op::Block);
                *last = Part { edge: Edge { offset: last.edge.offset, ..edge }, end: part.end };
            }
            _ => merged.push(*part),
        }
    }
    if let [only] = merged[..] {
        return only.edge;
    }
    builder.push(bytes, Op::Seq { parts: merged[..].into() })
}

/// Returns the list with touching entries joined, or `None` if no entries touch.
fn merge_entries(list: &RaggedList, scale: i64, stride: i64) -> Option<RaggedList> {
    // The end of an entry is the position after one of the type's bytes. So it fits in an `i64`, unless
    // that byte is at the last possible address. Even then, wrapping arithmetic gives equal numbers for
    // equal positions.
    let touching = entries!(&list.lengths, lengths => entries!(&list.entries, at => {
        let blocks = lengths.zip(at.clone()).zip(at.skip(1));
        match scale == stride {
            // Positions and lengths have the same unit here, so the loop needs no multiplication. It
            // also has no early exit, so the compiler can vectorise it.
            true => blocks.fold(false, |touching, ((length, at), next)| {
                touching | (at.wrapping_add(length) == next)
            }),
            false => { blocks }.any(|((length, at), next)| {
                let end = at.wrapping_mul(scale).wrapping_add(length.wrapping_mul(stride));
                end == next.wrapping_mul(scale)
            }),
        }
    }));
    if !touching {
        return None;
    }
    let (mut lengths, mut positions): (Vec<i64>, Vec<i64>) = (Vec::new(), Vec::new());
    let mut end = None;
    for (length, at) in list.lengths.iter().zip(list.entries.iter()) {
        let start = at.wrapping_mul(scale);
        match lengths.last_mut() {
            Some(last) if end == Some(start) => *last += length,
            _ => {
                lengths.push(length);
                positions.push(at);
            }
        }
        end = Some(start.wrapping_add(length.wrapping_mul(stride)));
    }
    // The sum of all lengths fits in an `i64`, so no sum of lengths is negative and `Table::lengths`
    // succeeds.
    Some(RaggedList::new(Table::lengths(&lengths)?, Table::new(&positions)))
}
