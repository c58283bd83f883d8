//! Turns regular tables into loops, and short lists of runs into sequences.
//!
//! `pipeline.rs` runs this pass first, so that `fold.rs` and `coalesce.rs` see the loops. `README.md` lists
//! the rules that every pass obeys.

use super::coalesce::dense;
use super::{Builder, moved, rewrite};
use crate::ir::{Edge, Op, Part, Program, RaggedList, WINDOW_RUNS};
use smallvec::SmallVec;
use std::sync::Arc;
use typepack_leaf::Table;

/// Removes list entries without copies. Turns ragged lists with equal lengths into tables, tables with
/// constant steps into loops, and short lists of runs into sequences. Tables whose steps are nearly
/// constant become tables of loops or a few loops. A list whose entries have few copies, and that has
/// few copies in all, becomes a table. Returns true if the program changed.
pub(crate) fn regularize(program: &mut Program) -> bool {
    // Test this first, because most types have no table or list, and rebuilding a program costs two
    // allocations.
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
    if let Some((row, step)) = rows(&entries) {
        let starts: Vec<i64> = (0..entries.len()).step_by(row).map(|i| entries.get(i)).collect();
        let (count, stride) = (row as u64, step.wrapping_mul(scale));
        let each = builder.node(body).bytes * count;
        let body = builder.push(each, Op::Loop { count, stride, body });
        return builder.replace(bytes, Op::Table { entries: Table::new(&starts), scale, body });
    }
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
        if list.len() <= WINDOW_RUNS && dense(builder.node(body), stride) {
            return runs(builder, bytes, &list, scale, body);
        }
        if !dense(builder.node(body), stride)
            && let Some(entries) = copies(&list, scale, stride)
        {
            return builder.replace(bytes, Op::Table { entries, scale, body });
        }
        return builder.push(bytes, Op::Ragged { list, scale, stride, body });
    }
    let copies = builder.node(body).bytes * first as u64;
    let block = builder.push(copies, Op::Loop { count: first as u64, stride, body });
    builder.replace(bytes, Op::Table { entries: list.entries.clone(), scale, body: block })
}

/// Maximum number of copies for which a table lists every copy: 64 KiB of 64-bit entries.
const COPIES: u64 = 8192;

/// Maximum average number of copies per entry for which a table lists every copy.
const SHARE: u64 = 8;

/// Returns a table with the position of every copy in a ragged list, in units of `scale` bytes. One kernel
/// call can execute all copies in this table. Without the table, each row (the copies of one entry) would
/// take a call of its own, even if it has one block or a few; that took 10 to 50 times as long as a
/// hand-written loop (`typepack-bench guidelines`, seed 2). Returns `None` if there are more than `COPIES`
/// copies, or on average more than `SHARE` copies per entry; `exec/` then executes the list row by row.
/// Also returns `None` if `stride` is not a multiple of `scale`, or if a position does not fit in an
/// `i64`.
fn copies(list: &RaggedList, scale: i64, stride: i64) -> Option<Table> {
    let total = list.lengths.total()?;
    if total > u128::from(COPIES.min(SHARE * list.len() as u64)) {
        return None;
    }
    let step = match scale {
        0 => (stride == 0).then_some(0)?,
        // Use `wrapping_rem`, because `i64::MIN % -1` would overflow although the remainder is 0.
        _ if stride.wrapping_rem(scale) == 0 => stride.checked_div(scale)?,
        _ => return None,
    };
    let mut copies = Vec::with_capacity(total as usize);
    for (length, entry) in list.lengths.iter().zip(list.entries.iter()) {
        for copy in 0..length {
            copies.push(entry.checked_add(step.checked_mul(copy)?)?);
        }
    }
    Some(Table::new(&copies))
}

/// Turns a short list of runs into a sequence of blocks. A struct of the same runs lowers to the same
/// sequence, so the list and the struct become the same window. If the runs are too far apart for a
/// window, `gather.rs` turns the sequence into a list again.
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

/// Returns the length and the step of the rows, if the table consists of at least two rows with the
/// same length and the same step. A row is a stretch of entries with a constant step. The starts of the
/// rows become a new table, which the next round examines.
fn rows(entries: &Table) -> Option<(usize, i64)> {
    if entries.len() < 4 {
        return None;
    }
    let step = entries.get(1).checked_sub(entries.get(0))?;
    let goes_on = |i: usize| entries.get(i).checked_sub(entries.get(i - 1)) == Some(step);
    let row = (2..entries.len()).find(|&i| !goes_on(i))?;
    let equal = entries.len().is_multiple_of(row)
        && (row..entries.len()).step_by(row).all(|at| (at + 1..at + row).all(goes_on));
    equal.then_some((row, step))
}

/// Maximum number of loops into which a table is divided.
const STRETCHES: usize = 4;

/// Minimum average number of entries per loop, if a table is divided into several loops. With fewer
/// entries, the time to start the loops becomes noticeable.
const STRETCH: usize = 8;

/// Divides a table into stretches of constant step. Each stretch consists of its first entry, the
/// number of its entries, and the step. Returns `None` if there are more than [`STRETCHES`] stretches,
/// or if there are several and their average length is below [`STRETCH`]. Also returns `None` if a step
/// does not fit in an `i64`.
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
    fn rows_of_one_length_and_step() {
        let of = |values: &[i64]| rows(&Table::new(values));
        assert_eq!(of(&[0, 5, 10, 1, 6, 11]), Some((3, 5)));
        assert_eq!(of(&[0, 1, 7, 8, 3, 4]), Some((2, 1)));
        assert_eq!(of(&[0, 5, 10, 15]), None);
        assert_eq!(of(&[0, 5, 10, 1, 6]), None);
        assert_eq!(of(&[0, 5, 10, 1, 6, 12]), None);
        assert_eq!(of(&[0, 5, 9]), None);
        assert_eq!(of(&[i64::MIN, i64::MAX, 0, 5]), None);
        assert_eq!(of(&[0, 1, i64::MIN, i64::MAX]), None);
    }

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
