//! Sequences of a few short loops become sequences of blocks, if these are a window.
//!
//! Used by `gather.rs`, once, after the rounds. A part of a sequence costs a call of a kernel for
//! each element, 20 to 50 ns, which is what hundreds of bytes in a window take: `struct {int a[15]
//! every 20 bytes; int b}` took 50 ns an element as two parts and is one move per int as a window
//! (`typepack-bench guidelines`, seed 2). Not in the rounds, where what is spliced into a longer
//! sequence should be as few parts as possible. Rule numbers: `README.md`.

use super::{Builder, moved};
use crate::ir::{Edge, Op, Part, WINDOW_RUNS, WINDOW_SPAN};
use smallvec::SmallVec;

/// Levels that are opened: each has two operands or more, so that a sixth would make more runs than
/// a window has.
const LEVELS: usize = 5;

type Edges = SmallVec<[Edge; WINDOW_RUNS]>;

/// The blocks of `parts` in order, touching ones merged, the first at 0, and where that is. `None`
/// if they are blocks already, or no window.
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

/// `edges` with the operands of what is no block in its place; `None` if these are too many.
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

/// What [`unrolled`] returns, of blocks.
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
    // Rounds that ended early may leave blocks that all touch: not for here to see.
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
