//! Tables that are more regular than they look become loops.
//!
//! Comes first, so that `fold.rs` and `coalesce.rs` see the loops. Rule numbers: `README.md`.

use super::{Builder, moved, rewrite};
use crate::ir::{Edge, Op, Program, RaggedList};
use crate::table::Table;
use std::sync::Arc;

/// Turns regular lists into tables and regular tables into loops. Returns whether it changed
/// anything.
pub(crate) fn regularize(program: &mut Program) -> bool {
    // Most types have no table at all, and rebuilding a program costs two allocations.
    if !program.nodes().iter().any(|n| matches!(n.op, Op::Table { .. } | Op::Ragged { .. })) {
        return false;
    }
    rewrite(program, |builder, node| match node.op {
        Op::Ragged { list, scale, stride, body } => {
            ragged(builder, node.bytes, list, scale, stride, body)
        }
        Op::Table { entries, scale, body } => match constant_step(&entries) {
            Some(step) => {
                let count = entries.len() as u64;
                let stride = step.wrapping_mul(scale);
                let edge = builder.replace(node.bytes, Op::Loop { count, stride, body });
                moved(edge, entries.get(0).wrapping_mul(scale))
            }
            None => builder.push(node.bytes, Op::Table { entries, scale, body }),
        },
        op => builder.push(node.bytes, op),
    })
}

fn ragged(
    builder: &mut Builder,
    bytes: u64,
    list: Arc<RaggedList>,
    scale: i64,
    stride: i64,
    body: Edge,
) -> Edge {
    let (least, greatest) = list.lengths.range().unwrap_or((0, 0));
    let list = if least == 0 {
        let keep = || (0..list.len()).filter(|&i| list.lengths.get(i) != 0);
        let lengths: Vec<i64> = keep().map(|i| list.lengths.get(i)).collect();
        let entries: Vec<i64> = keep().map(|i| list.entries.get(i)).collect();
        builder.changed = true;
        Arc::new(RaggedList::new(Table::new(&lengths), Table::new(&entries)))
    } else {
        list
    };
    let first = list.lengths.get(0);
    if least != greatest && list.lengths.range() != Some((first, first)) {
        return builder.push(bytes, Op::Ragged { list, scale, stride, body });
    }
    let copies = builder.node(body).bytes * first as u64;
    let block = builder.push(copies, Op::Loop { count: first as u64, stride, body });
    builder.replace(bytes, Op::Table { entries: list.entries.clone(), scale, body: block })
}

/// The step of a table whose entries are equally far apart. One entry has step 0.
fn constant_step(entries: &Table) -> Option<i64> {
    if entries.len() == 1 {
        return Some(0);
    }
    let step = entries.get(1).checked_sub(entries.get(0))?;
    let regular =
        (2..entries.len()).all(|i| entries.get(i).checked_sub(entries.get(i - 1)) == Some(step));
    regular.then_some(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps() {
        assert_eq!(constant_step(&Table::new(&[7])), Some(0));
        assert_eq!(constant_step(&Table::new(&[7, 4, 1])), Some(-3));
        assert_eq!(constant_step(&Table::new(&[7, 4, 2])), None);
        assert_eq!(constant_step(&Table::new(&[i64::MIN, i64::MAX])), None);
    }
}
