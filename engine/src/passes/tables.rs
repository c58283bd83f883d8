//! Tables that are more regular than they look become loops, short lists of near runs sequences.
//!
//! Comes first, so that `fold.rs` and `coalesce.rs` see the loops. Rule numbers: `README.md`.

use super::coalesce::dense;
use super::{Builder, moved, rewrite};
use crate::ir::{Edge, Op, Part, Program, RaggedList};
use crate::kernel::Leaf;
use crate::table::Table;
use smallvec::SmallVec;
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
        Op::Table { entries, scale, body } => table(builder, node.bytes, entries, scale, body),
        op => builder.push(node.bytes, op),
    })
}

fn table(builder: &mut Builder, bytes: u64, entries: Table, scale: i64, body: Edge) -> Edge {
    let Some(stretches) = stretches(&entries) else {
        return builder.push(bytes, Op::Table { entries, scale, body });
    };
    builder.changed = true;
    let each = builder.node(body).bytes;
    let mut end = 0;
    let parts: SmallVec<[Part; STRETCHES]> = stretches
        .iter()
        .map(|&(first, count, step)| {
            let stride = step.wrapping_mul(scale);
            let edge = match count {
                1 => body,
                _ => builder.push(each * count, Op::Loop { count, stride, body }),
            };
            end += each * count;
            Part { edge: moved(edge, first.wrapping_mul(scale)), end }
        })
        .collect();
    match parts[..] {
        [only] => only.edge,
        _ => builder.push(bytes, Op::Seq { parts: parts[..].into() }),
    }
}

fn ragged(
    builder: &mut Builder,
    bytes: u64,
    list: Arc<RaggedList>,
    scale: i64,
    stride: i64,
    body: Edge,
) -> Edge {
    let (mut least, greatest) = list.lengths.range().unwrap_or((0, 0));
    let list = if least == 0 {
        let keep = || (0..list.len()).filter(|&i| list.lengths.get(i) != 0);
        let lengths: Vec<i64> = keep().map(|i| list.lengths.get(i)).collect();
        let entries: Vec<i64> = keep().map(|i| list.entries.get(i)).collect();
        builder.changed = true;
        least = lengths.iter().copied().min().unwrap_or(0);
        let lengths = Table::lengths(&lengths).unwrap_or_else(|| Table::new(&lengths));
        Arc::new(RaggedList::new(lengths, Table::new(&entries)))
    } else {
        list
    };
    let first = list.lengths.get(0);
    if least != greatest {
        if dense(builder.node(body), stride) && is_window(&list, scale, stride) {
            return runs(builder, bytes, &list, scale, body);
        }
        return builder.push(bytes, Op::Ragged { list, scale, stride, body });
    }
    let copies = builder.node(body).bytes * first as u64;
    let block = builder.push(copies, Op::Loop { count: first as u64, stride, body });
    builder.replace(bytes, Op::Table { entries: list.entries.clone(), scale, body: block })
}

/// A list of runs that fits one window. Wider ones stay lists: the walk over a list is several times
/// faster than that over a sequence.
fn is_window(list: &RaggedList, scale: i64, stride: i64) -> bool {
    let first = i128::from(list.entries.get(0));
    let span = i128::from(Leaf::WINDOW_SPAN);
    list.len() <= Leaf::WINDOW_RUNS
        && (0..list.len()).all(|i| {
            let at = (i128::from(list.entries.get(i)) - first) * i128::from(scale);
            let bytes = i128::from(list.lengths.get(i)) * i128::from(stride);
            -span <= at && at + bytes <= span
        })
}

/// A short list of runs as the sequence that a struct of them is, so that both may end as one
/// window.
fn runs(builder: &mut Builder, bytes: u64, list: &RaggedList, scale: i64, body: Edge) -> Edge {
    builder.changed = true;
    let each = builder.node(body).bytes;
    let mut end = 0;
    let parts = (0..list.len())
        .map(|i| {
            let run = each * list.lengths.get(i) as u64;
            end += run;
            let edge = moved(builder.push(run, Op::Block), body.offset);
            Part { edge: moved(edge, list.entries.get(i).wrapping_mul(scale)), end }
        })
        .collect();
    builder.push(bytes, Op::Seq { parts })
}

/// Most loops a table is cut into.
const STRETCHES: usize = 4;

/// Least entries per loop when there are several: below, the loops' own cost shows.
const STRETCH: usize = 8;

/// A table as few stretches of constant step: first entry, number of entries, step. `None` when
/// that would be more than [`STRETCHES`], or short ones.
fn stretches(entries: &Table) -> Option<SmallVec<[(i64, u64, i64); STRETCHES]>> {
    let mut found: SmallVec<[(i64, u64, i64); STRETCHES]> = SmallVec::new();
    let mut next = 0;
    while next < entries.len() {
        if found.len() == STRETCHES {
            return None;
        }
        let first = entries.get(next);
        let step =
            if next + 1 < entries.len() { entries.get(next + 1).checked_sub(first)? } else { 0 };
        let mut last = first;
        let mut count = 1;
        while next + count < entries.len() {
            let entry = entries.get(next + count);
            if entry.checked_sub(last) != Some(step) {
                break;
            }
            last = entry;
            count += 1;
        }
        found.push((first, count as u64, step));
        next += count;
    }
    let worth = found.len() == 1 || entries.len() >= found.len() * STRETCH;
    worth.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_and_nearly_regular_tables() {
        let of = |values: &[i64]| stretches(&Table::new(values)).map(|found| found.to_vec());
        assert_eq!(of(&[7]), Some(vec![(7, 1, 0)]));
        assert_eq!(of(&[7, 4, 1]), Some(vec![(7, 3, -3)]));
        assert_eq!(of(&[7, 4, 2]), None);
        assert_eq!(of(&[i64::MIN, i64::MAX]), None);
        let mut nearly: Vec<i64> = (0..20).map(|i| i * 3).collect();
        nearly.push(99);
        assert_eq!(of(&nearly), Some(vec![(0, 20, 3), (99, 1, 0)]));
        nearly.extend([5, 80, 7, 3]);
        assert_eq!(of(&nearly), None);
    }
}
