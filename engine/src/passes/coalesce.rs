//! Runs of memory that touch, in packed order, become one run.
//!
//! After `fold.rs`. Rule numbers: `README.md`.

use super::{Builder, rewrite};
use crate::ir::{Edge, Op, Part, Program, RaggedList};
use crate::table::Table;
use std::sync::Arc;

/// Merges touching runs. Returns whether it changed anything.
pub(crate) fn coalesce(program: &mut Program) -> bool {
    rewrite(program, |builder, node| match node.op {
        Op::Loop { stride, body, .. } if body.offset == 0 && dense(builder, body, stride) => {
            builder.replace(node.bytes, Op::Block)
        }
        Op::Seq { parts } => sequence(builder, node.bytes, parts),
        Op::Ragged { list, scale, stride, body } => {
            let list = if dense(builder, body, stride) {
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

/// Copies of `body` that are `stride` apart form one run.
fn dense(builder: &Builder, body: Edge, stride: i64) -> bool {
    let node = builder.node(body);
    node.op == Op::Block && i128::from(stride) == i128::from(node.bytes)
}

fn sequence(builder: &mut Builder, bytes: u64, parts: Arc<[Part]>) -> Edge {
    let touches = |builder: &Builder, a: Edge, b: Edge| {
        let (first, second) = (builder.node(a), builder.node(b));
        first.op == Op::Block
            && second.op == Op::Block
            && i128::from(a.offset) + i128::from(first.bytes) == i128::from(b.offset)
    };
    if !parts.windows(2).any(|pair| touches(builder, pair[0].edge, pair[1].edge)) {
        return builder.push(bytes, Op::Seq { parts });
    }
    builder.changed = true;
    let mut merged: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts.iter() {
        match merged.last_mut() {
            Some(last) if touches(builder, last.edge, part.edge) => {
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
    builder.push(bytes, Op::Seq { parts: merged.into() })
}

/// The list with entries joined that continue each other; `None` if there are none.
fn merge_entries(list: &RaggedList, scale: i64, stride: i64) -> Option<RaggedList> {
    let end = |i: usize| {
        i128::from(list.entries.get(i)) * i128::from(scale)
            + i128::from(list.lengths.get(i)) * i128::from(stride)
    };
    let start = |i: usize| i128::from(list.entries.get(i)) * i128::from(scale);
    if !(1..list.len()).any(|i| end(i - 1) == start(i)) {
        return None;
    }
    let (mut lengths, mut entries) = (Vec::new(), Vec::new());
    for i in 0..list.len() {
        let length = list.lengths.get(i);
        match lengths.last_mut() {
            Some(last) if end(i - 1) == start(i) => *last += length,
            _ => {
                lengths.push(length);
                entries.push(list.entries.get(i));
            }
        }
    }
    Some(RaggedList::new(Table::new(&lengths), Table::new(&entries)))
}
