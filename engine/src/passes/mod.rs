//! The rewrites between lowering and plan, one file each.
//!
//! `pipeline.rs` defines order and repetition; `README.md` beside this file lists the rules that every
//! rewrite obeys. A pass is one forward walk that rebuilds the program, operands first. The pass's rule
//! receives each node after its operands have been rewritten.

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

/// Number of latest nodes in which to search for an equal node. This number covers the members of a
/// struct, and it is short enough to rebuild a large program in linear time.
const LOOK_BACK: usize = 32;

/// The state of a rebuild: the new program's nodes so far, and whether a rule has applied.
struct Builder {
    nodes: Vec<Node>,
    changed: bool,
}

impl Builder {
    fn node(&self, edge: Edge) -> &Node {
        &self.nodes[edge.node.index()]
    }

    /// Returns a node with this operation: an equal node among the latest nodes, or a new node. So
    /// equal parts of a description become one node, and passes recognise a sequence of equal parts
    /// by the id of that node.
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

    /// Does what [`Builder::push`] does, and records that the program changed.
    fn replace(&mut self, bytes: u64, op: Op) -> Edge {
        self.changed = true;
        self.push(bytes, op)
    }
}

/// Returns `edge`, moved by `offset` bytes.
fn moved(edge: Edge, offset: i64) -> Edge {
    Edge { offset: edge.offset.wrapping_add(offset), ..edge }
}

/// Returns true if no pass except `count.rs` would change the program. The function recognises the
/// programs that most types have from the start: loops over a block, and windows. This one test
/// replaces the tests of all passes, which take a fifth of the commit of a small struct. The function
/// returns false for some programs that no pass changes.
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

/// Returns true for a window of blocks that do not touch and do not all have equal lengths (equal
/// blocks may be a loop).
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

/// Calls [`rewrite`], unless every node is `settled`: then `rule` would change nothing. Most types are
/// settled from the start, and the test is much cheaper than a rebuild.
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

/// Rebuilds `program` with `rule`. The rule receives each node with its operands rewritten and
/// returns the edge that the node's users must use instead. Returns whether the program changed.
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
