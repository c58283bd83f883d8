//! Unrolls a sequence of a few short loops into a sequence of blocks, if the blocks form a window: at
//! most 32 blocks that lie close together (`is_window` in `ir/mod.rs`).
//!
//! `gather.rs` uses this file once, after the rounds of the other passes (`pipeline.rs`). The rounds do
//! not unroll, because a sequence should have as few parts as possible when it is spliced into a longer
//! one.
//!
//! Executing a sequence that is not a window takes one kernel call per part and element. A call
//! takes 20 to 50 ns; in that time the kernel of a window moves hundreds of bytes. For example,
//! `struct {int a[15] every 20 bytes; int b}` took 50 ns per element as a sequence of two parts. As
//! a window, it takes one move per int (`typepack-bench guidelines`, seed 2). `README.md` lists the
//! rules that every pass obeys.

use super::{Builder, moved};
use crate::ir::{Edge, Op, Part, WINDOW_RUNS, WINDOW_SPAN};
use smallvec::SmallVec;

/// Maximum number of levels to unroll. Six nested loops always make more runs than a window can hold.
/// Other sequences with more levels stay as they are.
const LEVELS: usize = 5;

type Edges = SmallVec<[Edge; WINDOW_RUNS]>;

/// Returns the offset of the first block of `parts`, and a sequence of all blocks in order. Blocks that
/// touch are joined, and offsets are relative to the first block. Returns `None` if all parts are
/// blocks already, or if the blocks do not form a window.
pub(super) fn unrolled(builder: &mut Builder, parts: &[Part]) -> Option<(i64, Box<[Part]>)> {
    let first = parts.iter().map(|part| part.edge);
    if parts.len() > WINDOW_RUNS || first.clone().all(|edge| is_block(builder, edge)) {
        return None;
    }
    let mut edges: Edges = first.collect();
    for _ in 0..LEVELS {
        edges = opened(builder, &edges)?;
        if edges.iter().all(|&edge| is_block(builder, edge)) {
            return window(builder, &edges);
        }
    }
    None
}

fn is_block(builder: &Builder, edge: Edge) -> bool {
    builder.node(edge).op.is_block()
}

/// Replaces each edge that is not a block by the edges to its operands. Returns `None` if the result
/// has too many edges for a window, or if there is a ragged list.
fn opened(builder: &Builder, edges: &[Edge]) -> Option<Edges> {
    let mut opened = Edges::new();
    for &edge in edges {
        let room = WINDOW_RUNS - opened.len();
        match &builder.node(edge).op {
            Op::Block if room > 0 => opened.push(edge),
            Op::Loop { count, stride, body } if *count <= room as u64 => {
                let at = |i: u64| edge.offset.wrapping_add(stride.wrapping_mul(i as i64));
                opened.extend((0..*count).map(|i| moved(*body, at(i))));
            }
            Op::Table { entries, scale, body } if entries.len() <= room => {
                let at = |entry: i64| edge.offset.wrapping_add(entry.wrapping_mul(*scale));
                opened.extend(entries.iter().map(|entry| moved(*body, at(entry))));
            }
            Op::Seq { parts } if parts.len() <= room => {
                opened.extend(parts.iter().map(|part| moved(part.edge, edge.offset)));
            }
            _ => return None,
        }
    }
    Some(opened)
}

/// Computes the result of [`unrolled`] from the unrolled blocks.
fn window(builder: &mut Builder, blocks: &[Edge]) -> Option<(i64, Box<[Part]>)> {
    let first = blocks[0].offset;
    let mut runs: SmallVec<[(i64, u64); WINDOW_RUNS]> = SmallVec::new();
    for &block in blocks {
        let (at, bytes) = (block.offset.checked_sub(first)?, builder.node(block).bytes);
        match runs.last_mut() {
            Some((start, length)) if start.checked_add_unsigned(*length) == Some(at) => {
                *length += bytes;
            }
            _ => runs.push((at, bytes)),
        }
    }
    let fits = |&(at, bytes): &(i64, u64)| {
        let end = at.checked_add_unsigned(bytes);
        at >= -WINDOW_SPAN && end.is_some_and(|end| end <= WINDOW_SPAN)
    };
    // If the rounds stopped because they reached their maximum number, all blocks may touch and form a
    // single run, which is not a sequence.
    if runs.len() < 2 || !runs.iter().all(fits) {
        return None;
    }
    let mut end = 0;
    let part = |(at, bytes): (i64, u64)| {
        end += bytes;
        Part { edge: moved(builder.push(bytes, Op::Block), at), end }
    };
    Some((first, runs.into_iter().map(part).collect()))
}
