//! Removes loops that have a single iteration, and sequences that have a single part. Merges a loop
//! with the loop inside it if the iterations of the inner loop continue at the same stride from one
//! iteration of the outer loop to the next. Splices short sequences into the sequences that contain them,
//! turns sequences of equal parts into loops or tables, and moves displacements outwards.
//!
//! `pipeline.rs` runs this pass after `tables.rs` and before `coalesce.rs`. `README.md` lists the
//! rules that every pass obeys.

use super::{Builder, moved, rewrite_unless};
use crate::ir::{Edge, Node, Op, Part, Program, WINDOW_RUNS};
use smallvec::SmallVec;
use typepack_leaf::Table;

/// Maximum number of parts of a sequence after nested sequences have been spliced into it. If there
/// would be more parts, the sequences stay nested (rule 2 in `README.md`).
const SPLICED: usize = WINDOW_RUNS;

/// The parts of a sequence that is being rewritten.
type Edges = SmallVec<[Edge; 8]>;

/// Removes loops that have a single iteration, merges loops, and simplifies sequences. Returns true if
/// the program changed.
pub(crate) fn fold(program: &mut Program) -> bool {
    rewrite_unless(is_folded, program, |builder, node| match node.op {
        Op::Block => builder.push(node.bytes, Op::Block),
        Op::Loop { count: 1, body, .. } => {
            builder.changed = true;
            body
        }
        Op::Loop { count, stride, body } => {
            let inner = congruent(stride, &builder.node(body).op)
                .map(|(inner, step, leaf)| (count * inner, step, moved(leaf, body.offset)));
            builder.changed |= inner.is_some();
            let (count, stride, body) = inner.unwrap_or((count, stride, body));
            hoist(builder, node.bytes, body, |body| Op::Loop { count, stride, body })
        }
        Op::Table { entries, scale, body } => {
            hoist(builder, node.bytes, body, |body| Op::Table { entries, scale, body })
        }
        Op::Ragged { list, scale, stride, body } => {
            hoist(builder, node.bytes, body, |body| Op::Ragged { list, scale, stride, body })
        }
        Op::Seq { parts } => sequence(builder, node.bytes, &parts),
    })
}

/// Returns true if this pass would not change `op`. For some sequences that contain nodes other than
/// blocks, the function returns false although the pass would not change them.
#[inline]
pub(super) fn is_folded(nodes: &[Node], op: &Op) -> bool {
    match op {
        Op::Block => true,
        Op::Loop { count, stride, body } => {
            *count > 1
                && body.offset == 0
                && congruent(*stride, &nodes[body.node.index()].op).is_none()
        }
        Op::Table { body, .. } | Op::Ragged { body, .. } => body.offset == 0,
        Op::Seq { parts } => {
            parts[0].edge.offset == 0
                && parts.iter().all(|part| nodes[part.edge.node.index()].op.is_block())
                && parts.len() > 1
                && equality(nodes, parts.iter().map(|part| part.edge)).is_none()
        }
    }
}

/// Returns the count, the stride and the body of `inner` if `inner` is a loop and `stride` equals the
/// count of `inner` times the stride of `inner`. An outer loop with stride `stride` over `inner` is
/// then one longer loop with the stride of `inner`.
#[inline]
fn congruent(stride: i64, inner: &Op) -> Option<(u64, i64, Edge)> {
    match inner {
        Op::Loop { count, stride: step, body }
            if i128::from(stride) == i128::from(*count) * i128::from(*step) =>
        {
            Some((*count, *step, *body))
        }
        _ => None,
    }
}

/// Pushes the operation that `make` returns for the body at offset 0. The offset of the body moves to
/// the edge that this function returns.
fn hoist(builder: &mut Builder, bytes: u64, body: Edge, make: impl FnOnce(Edge) -> Op) -> Edge {
    builder.changed |= body.offset != 0;
    let edge = builder.push(bytes, make(Edge { offset: 0, ..body }));
    moved(edge, body.offset)
}

fn sequence(builder: &mut Builder, bytes: u64, parts: &[Part]) -> Edge {
    let mut edges: Edges = parts.iter().map(|part| part.edge).collect();
    if let Some(flat) = splice(builder, &edges) {
        builder.changed = true;
        edges = flat;
    }
    if let [only] = edges[..] {
        builder.changed = true;
        return only;
    }
    if let Some(edge) = equal_parts(builder, bytes, &edges) {
        return edge;
    }
    if join_loops(builder, &mut edges) {
        builder.changed = true;
        if let [only] = edges[..] {
            return only;
        }
    }
    let first = edges[0].offset;
    builder.changed |= first != 0;
    let mut end = 0;
    let parts = edges
        .iter()
        .map(|&edge| {
            end += builder.node(edge).bytes;
            Part { edge: moved(edge, first.wrapping_neg()), end }
        })
        .collect();
    moved(builder.push(bytes, Op::Seq { parts }), first)
}

/// Joins a part with the part before it if the two form one loop. Returns true if any parts were
/// joined.
fn join_loops(builder: &mut Builder, edges: &mut Edges) -> bool {
    let mut joined = Edges::new();
    for &edge in edges.iter() {
        match joined.last_mut() {
            Some(last) => match continued(builder, *last, edge) {
                Some(longer) => *last = longer,
                None => joined.push(edge),
            },
            None => joined.push(edge),
        }
    }
    let shorter = joined.len() < edges.len();
    *edges = joined;
    shorter
}

/// Returns the loop that `first` and `second` form together, or `None`. Both may be loops with the same
/// body and stride; or one is a loop and the other is one more copy of its body.
fn continued(builder: &mut Builder, first: Edge, second: Edge) -> Option<Edge> {
    let repeated = |edge: Edge| match builder.node(edge).op {
        Op::Loop { count, stride, body } => Some((count, stride, moved(body, edge.offset))),
        _ => None,
    };
    let (count, stride, body) = match (repeated(first), repeated(second)) {
        (Some((a, stride, body)), Some((b, step, next)))
            if stride == step && next == moved(body, stride.wrapping_mul(a as i64)) =>
        {
            (a + b, stride, body)
        }
        (Some((count, stride, body)), _)
            if second == moved(body, stride.wrapping_mul(count as i64)) =>
        {
            (count + 1, stride, body)
        }
        (_, Some((count, stride, body))) if moved(first, stride) == body => {
            (count + 1, stride, first)
        }
        _ => return None,
    };
    let bytes = builder.node(first).bytes + builder.node(second).bytes;
    let edge = builder.push(bytes, Op::Loop { count, stride, body: Edge { offset: 0, ..body } });
    Some(moved(edge, body.offset))
}

/// Returns the parts, with nested sequences replaced by their own parts. Returns `None` if there are no
/// nested sequences or if the result would be too long.
fn splice(builder: &Builder, edges: &[Edge]) -> Option<Edges> {
    let length = |edge: &Edge| match &builder.node(*edge).op {
        Op::Seq { parts } => parts.len(),
        _ => 1,
    };
    let total: usize = edges.iter().map(length).sum();
    if total == edges.len() || total > SPLICED {
        return None;
    }
    let mut flat = Edges::with_capacity(total);
    for &edge in edges {
        match &builder.node(edge).op {
            Op::Seq { parts } => {
                flat.extend(parts.iter().map(|part| moved(part.edge, edge.offset)));
            }
            _ => flat.push(edge),
        }
    }
    Some(flat)
}

/// Turns a sequence of equal parts into a loop. If the parts have no constant step, turns the sequence
/// into a table, unless it is a possible window. For any other sequence, returns `None`.
fn equal_parts(builder: &mut Builder, bytes: u64, edges: &[Edge]) -> Option<Edge> {
    let first = edges[0];
    let body = Edge { offset: 0, node: first.node };
    let op = match equality(&builder.nodes, edges.iter().copied())? {
        Equality::Even(stride) => Op::Loop { count: edges.len() as u64, stride, body },
        Equality::Scattered => {
            let offset = |edge: &Edge| edge.offset.wrapping_sub(first.offset);
            let entries: Vec<i64> = edges.iter().map(offset).collect();
            Op::Table { entries: Table::new(&entries), scale: 1, body }
        }
    };
    Some(moved(builder.replace(bytes, op), first.offset))
}

/// The operation that replaces a sequence of at least two equal parts.
enum Equality {
    /// A loop with this stride, in bytes.
    Even(i64),
    /// A table of positions.
    Scattered,
}

/// Returns the operation that should replace a sequence of at least two parts. Returns `None` if the
/// parts are not equal, or if they are scattered blocks that may form a window.
fn equality(
    nodes: &[Node],
    edges: impl ExactSizeIterator<Item = Edge> + Clone,
) -> Option<Equality> {
    let node = |edge: Edge| &nodes[edge.node.index()];
    let first = edges.clone().next()?;
    let same = |edge: Edge| {
        let (a, b) = (node(first), node(edge));
        first.node == edge.node || (a.op.is_block() && b.op.is_block() && a.bytes == b.bytes)
    };
    if !edges.clone().all(same) {
        return None;
    }
    let length = edges.len();
    let mut offsets = edges.map(|edge| edge.offset.wrapping_sub(first.offset)).zip(0i64..).skip(1);
    let (stride, _) = offsets.next()?;
    if offsets.all(|(offset, i)| offset == stride.wrapping_mul(i)) {
        return Some(Equality::Even(stride));
    }
    let long = length > WINDOW_RUNS || !node(first).op.is_block();
    long.then_some(Equality::Scattered)
}
