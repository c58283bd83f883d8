//! Nests: the chains of loops and tables over one block or window that a kernel executes.
//!
//! The last rewrite before the plan: `plan/` asks it for every node that one kernel may execute.
//! Very short innermost loops become windows on the way.

use crate::ir::{Edge, Op, Program, Run, is_window};
use crate::kernel::{Leaf, Level, Levels, Nest};

/// Innermost loops of at most this many short blocks are unrolled into a window.
const UNROLLED_LOOP: u64 = 4;

/// Longest block of an innermost loop that is unrolled into a window, in bytes.
const UNROLLED_BLOCK: u64 = 16;

/// The nest of `edge` below the level `outer`, if it is one and not too deep.
pub(crate) fn nest_of(program: &Program, edge: Edge, outer: Option<(u64, i64)>) -> Option<Nest> {
    let mut nest = Nest { base: 0, levels: Levels::default(), leaf: Leaf::Block { bytes: 1 } };
    is_nest(program, edge, outer, &mut nest).then_some(nest)
}

/// As [`nest_of`], into `nest`, which is without levels. Leaves anything there if it says no.
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
    // A loop of very few short blocks costs more in control than in copying.
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
