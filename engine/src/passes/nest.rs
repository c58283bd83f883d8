//! Nests: the chains of loops and tables over one block or window that a kernel executes.
//!
//! This is the last rewrite before the plan: `plan/` calls it for every node that one kernel may
//! execute. This file also turns very short innermost loops into windows.

use crate::ir::{Edge, Op, Program, Run, is_window};
use crate::kernel::{Leaf, Level, Levels, Nest};

/// An innermost loop of at most this many short blocks is unrolled into a window.
const UNROLLED_LOOP: u64 = 4;

/// Maximum length in bytes of a block in an innermost loop that is unrolled into a window.
const UNROLLED_BLOCK: u64 = 16;

/// Returns the nest of `edge` below the level `outer`, if `edge` is a nest and not too deep.
pub(crate) fn nest_of(program: &Program, edge: Edge, outer: Option<(u64, i64)>) -> Option<Nest> {
    let mut nest = Nest { base: 0, levels: Levels::default(), leaf: Leaf::Block { bytes: 1 } };
    is_nest(program, edge, outer, &mut nest).then_some(nest)
}

/// Stores the nest in `nest`, which has no levels yet. If the result is false, the content of `nest` is
/// arbitrary.
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
    // A loop of very few short blocks costs more in loop control than in copying.
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
