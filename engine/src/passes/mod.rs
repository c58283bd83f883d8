//! The passes: rewrites of the program between lowering and planning. Each pass has its own file.
//!
//! `pipeline.rs` defines in which order the passes run and how often. The `README.md` in this folder
//! lists the rules that every rewrite obeys. A pass visits the nodes in order, operands first, and
//! builds a new program. For each node, the pass calls its rewrite function (the argument `rule` of
//! `rewrite`) after the node's operands have been rewritten.

mod coalesce;
mod count;
mod fold;
mod gather;
pub(crate) mod nest;
pub(crate) mod pipeline;
mod tables;
mod unroll;

use crate::ir::{Edge, Node, NodeId, Op, Part, Program, WINDOW_RUNS, WINDOW_SPAN};
use smallvec::SmallVec;

/// Number of most recent nodes that `push` searches for an equal node. It is large enough for the
/// members of most structs, and small enough that a rebuild takes linear time even for a large program.
const LOOK_BACK: usize = 32;

/// The state of a rebuild: the nodes of the new program so far, and whether a rule has changed
/// anything.
struct Builder {
    nodes: Vec<Node>,
    changed: bool,
}

impl Builder {
    fn node(&self, edge: Edge) -> &Node {
        &self.nodes[edge.node.index()]
    }

    /// Returns a node with this operation: one of the most recent nodes if it is equal, otherwise a new
    /// node. So equal parts of a type usually become the same node, and a pass can recognise them by
    /// their node ids.
    fn push(&mut self, bytes: u64, op: Op) -> Edge {
        let node = Node { bytes, op };
        let first = self.nodes.len().saturating_sub(LOOK_BACK);
        let known = self.nodes[first..].iter().rposition(|known| *known == node);
        let index = known.map_or(self.nodes.len(), |position| first + position);
        if known.is_none() {
            self.nodes.push(node);
        }
        Edge { offset: 0, node: NodeId(index as u32) }
    }

    /// Does what [`Builder::push`] does, and records that the program has changed.
    fn replace(&mut self, bytes: u64, op: Op) -> Edge {
        self.changed = true;
        self.push(bytes, op)
    }
}

/// Returns `edge` with `offset` added to its displacement.
fn moved(edge: Edge, offset: i64) -> Edge {
    Edge { offset: edge.offset.wrapping_add(offset), ..edge }
}

/// Returns true only if no pass except `count.rs` would change the program. The function recognises the
/// programs that most types have after lowering: loops over a block, and windows. This single test
/// replaces the tests of the separate passes, which would account for a fifth of the commit time of a
/// small struct. For some programs that no pass would change, the function returns false.
fn is_settled(program: &Program) -> bool {
    let nodes = program.nodes();
    nodes.iter().all(|node| match &node.op {
        Op::Block => true,
        Op::Loop { .. } => {
            fold::is_folded(nodes, &node.op) && coalesce::is_coalesced(nodes, &node.op)
        }
        Op::Seq { parts } => is_settled_window(nodes, parts),
        Op::Table { .. } | Op::Ragged { .. } => false,
    })
}

/// Returns true for a window whose blocks do not touch and do not all have the same length. (Blocks of
/// the same length might be a loop.)
fn is_settled_window(nodes: &[Node], parts: &[Part]) -> bool {
    let (mut end, mut unequal) = (None, false);
    let first = nodes[parts[0].edge.node.index()].bytes;
    parts[0].edge.offset == 0
        && parts.len() <= WINDOW_RUNS
        && parts.iter().all(|part| {
            let (node, at) = (&nodes[part.edge.node.index()], part.edge.offset);
            let touches = end == Some(at);
            end = at.checked_add_unsigned(node.bytes);
            unequal |= node.bytes != first;
            node.op.is_block()
                && !touches
                && at >= -WINDOW_SPAN
                && end.is_some_and(|end| end <= WINDOW_SPAN)
        })
        && unequal
}

/// Calls [`rewrite`] unless every node is `settled`, which means that `rule` would not change it. Most
/// types are settled after lowering, and the test takes much less time than a rebuild.
#[inline]
fn rewrite_unless(
    settled: impl Fn(&[Node], &Op) -> bool,
    program: &mut Program,
    rule: impl FnMut(&mut Builder, Node) -> Edge,
) -> bool {
    if !program.nodes().iter().all(|node| settled(program.nodes(), &node.op)) {
        return rewrite(program, rule);
    }
    debug_assert!(!rewrite(&mut program.clone(), rule), "not settled:\n{program}");
    false
}

/// Rebuilds `program` with `rule`. The rule receives each node after the node's operands have been
/// rewritten. It returns the edge that replaces the node wherever the node is used. Returns true if the
/// program changed.
fn rewrite(program: &mut Program, mut rule: impl FnMut(&mut Builder, Node) -> Edge) -> bool {
    let old = std::mem::take(program.nodes_mut());
    let mut builder = Builder { nodes: Vec::with_capacity(old.len() + 1), changed: false };
    let mut new: SmallVec<[Edge; 8]> = SmallVec::with_capacity(old.len());
    for Node { bytes, mut op } in old {
        let update = |edge: &Edge, new: &[Edge]| moved(new[edge.node.index()], edge.offset);
        match &mut op {
            Op::Block => {}
            Op::Loop { body, .. } | Op::Table { body, .. } | Op::Ragged { body, .. } => {
                *body = update(body, &new);
            }
            Op::Seq { parts } => {
                let unchanged = parts.iter().all(|part| update(&part.edge, &new) == part.edge);
                if !unchanged {
                    let updated: Box<[Part]> = parts
                        .iter()
                        .map(|part| Part { edge: update(&part.edge, &new), end: part.end })
                        .collect();
                    *parts = updated;
                }
            }
        }
        let edge = rule(&mut builder, Node { bytes, op });
        new.push(edge);
    }
    program.body = program.body.map(|body| moved(new[body.node.index()], body.offset));
    *program.nodes_mut() = builder.nodes;
    builder.changed
}
