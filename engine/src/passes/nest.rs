//! Finds nests. A nest is a chain of loops and tables over one block or over one window (a short sequence
//! of blocks that lie close together); one kernel can execute it.
//!
//! `plan/` uses this file for every node that might be a nest. This file also turns very short
//! innermost loops of a nest into windows.

use crate::ir::{Edge, Op, Program, Run, is_window};
use crate::kernel::{Leaf, Level, Levels, Nest};

/// Maximum number of iterations of an innermost loop that is unrolled into a window.
const UNROLLED_LOOP: u64 = 4;

/// Maximum length of the blocks of an innermost loop that is unrolled into a window, in bytes.
const UNROLLED_BLOCK: u64 = 16;

/// Returns the nest that begins at `edge`, inside the additional outermost level `outer` (count and
/// stride). Returns `None` if no nest begins at `edge`, or if the nest has more than
/// `Nest::MAX_DEPTH` levels.
pub(crate) fn nest_of(program: &Program, edge: Edge, outer: Option<(u64, i64)>) -> Option<Nest> {
    let mut nest = Nest { base: 0, levels: Levels::default(), leaf: Leaf::Block { bytes: 1 } };
    is_nest(program, edge, outer, &mut nest).then_some(nest)
}

/// Does what [`nest_of`] does, but stores the nest in `nest` and returns true if there is one. The
/// caller passes a `nest` without levels. If the result is false, the content of `nest` is unspecified.
#[inline]
pub(crate) fn is_nest(
    program: &Program,
    edge: Edge,
    outer: Option<(u64, i64)>,
    nest: &mut Nest,
) -> bool {
    let levels = &mut nest.levels;
    if let Some((count, stride)) = outer {
        levels.push(Level::Loop { count, stride });
    }
    let (mut base, mut at) = (0i64, edge);
    let mut leaf = loop {
        base = base.wrapping_add(at.offset);
        let node = program.node(at.node);
        if levels.len() == Nest::MAX_DEPTH
            && !node.op.is_block()
            && !is_window(program.nodes(), &node.op)
        {
            return false;
        }
        match &node.op {
            Op::Block => break Leaf::Block { bytes: node.bytes },
            Op::Loop { count, stride, body } => {
                levels.push(Level::Loop { count: *count, stride: *stride });
                at = *body;
            }
            Op::Table { entries, scale, body } => {
                levels.push(Level::Table { entries: entries.clone(), scale: *scale });
                at = *body;
            }
            Op::Seq { parts } if is_window(program.nodes(), &node.op) => {
                let run =
                    |edge: Edge| Run { offset: edge.offset, bytes: program.node(edge.node).bytes };
                break Leaf::Window { runs: parts.iter().map(|part| run(part.edge)).collect() };
            }
            Op::Ragged { .. } | Op::Seq { .. } => return false,
        }
    };
    // In a loop over very few short blocks, loop control takes longer than the copying, so unroll such
    // a loop.
    if let (Some(&Level::Loop { count, stride }), Leaf::Block { bytes }) = (levels.last(), &leaf)
        && levels.len() > 1
        && count <= UNROLLED_LOOP
        && *bytes <= UNROLLED_BLOCK
        && stride.unsigned_abs() <= (Leaf::WINDOW_SPAN / UNROLLED_LOOP as i64) as u64 / 2
    {
        let runs = (0..count as i64).map(|i| Run { offset: i * stride, bytes: *bytes }).collect();
        levels.pop();
        leaf = Leaf::Window { runs };
    }
    if levels.is_empty() {
        levels.push(Level::Loop { count: 1, stride: 0 });
    }
    (nest.base, nest.leaf) = (base, leaf);
    true
}
