//! Encodes a plan as bytes, in the layout of `format.rs`.
//!
//! The encoder leaves out the nodes that nothing uses any more after the passes of the commit. So equal
//! programs have equal encodings, and the decoder can require that every node is used.

use super::format::{BLOCK, HEADER, LENGTH, LOOP, MAGIC, NODE, PART, RAGGED, SEQ, TABLE, VERSION};
use crate::ir::{self, Edge, NodeId, Op, Program};
use crate::plan::Plan;
use typepack_leaf::Table;

/// Returns the same bytes as [`encode`], or `None` if there are more than `limit` bytes. Does not build
/// the encoding if it is clear beforehand that the program needs more than `limit` bytes.
pub fn encode_within(plan: &Plan, limit: usize) -> Option<Vec<u8>> {
    // Add up the least possible size of every item. The sum is a lower bound, so no encoding within
    // the limit is refused here.
    let (ids, nodes) = renumber(plan.program());
    let least = |node: &ir::Node| match &node.op {
        Op::Block | Op::Loop { .. } => 0,
        Op::Table { entries, .. } => 4 * entries.len(),
        Op::Ragged { list, .. } => 5 * list.len(),
        Op::Seq { parts } => PART * parts.len(),
    };
    let used = plan.program().nodes().iter().zip(&ids).filter(|(_, id)| **id != UNUSED);
    let tables = used.map(|(node, _)| least(node)).fold(0, usize::saturating_add);
    let bytes = tables.saturating_add(HEADER + NODE * nodes as usize);
    if bytes > limit {
        return None;
    }
    Some(encode(plan)).filter(|encoding| encoding.len() <= limit)
}

/// Encodes the layout of `plan`: the program with all its tables. The bytes contain neither the
/// datatype of the plan nor anything that is specific to this process.
pub fn encode(plan: &Plan) -> Vec<u8> {
    let (program, place) = (plan.program(), plan.footprint());
    let (ids, nodes) = renumber(program);
    let id = |node: NodeId| ids[node.index()];
    let mut out = Vec::with_capacity(HEADER + 32 * nodes as usize);
    out.extend(MAGIC);
    out.extend(VERSION.to_le_bytes());
    word(&mut out, 0);
    word(&mut out, plan.element_bytes());
    for bound in [place.extent, place.true_lb, place.true_ub] {
        word(&mut out, bound as u64);
    }
    word(&mut out, program.factor);
    word(&mut out, program.stride as u64);
    word(&mut out, program.body.map_or(0, |body| body.offset) as u64);
    half(&mut out, nodes);
    half(&mut out, 0);
    for (node, _) in program.nodes().iter().zip(&ids).filter(|(_, id)| **id != UNUSED) {
        let body = |edge: &Edge| id(edge.node);
        match &node.op {
            Op::Block => {
                head(&mut out, BLOCK, None, None, 0);
                word(&mut out, node.bytes);
            }
            Op::Loop { count, stride, body: edge } => {
                head(&mut out, LOOP, None, None, body(edge));
                word(&mut out, *count);
                word(&mut out, *stride as u64);
                word(&mut out, edge.offset as u64);
            }
            Op::Table { entries, scale, body: edge } => {
                head(&mut out, TABLE, Some(entries), None, body(edge));
                word(&mut out, entries.len() as u64);
                word(&mut out, *scale as u64);
                word(&mut out, edge.offset as u64);
                table(&mut out, entries);
            }
            Op::Ragged { list, scale, stride, body: edge } => {
                head(&mut out, RAGGED, Some(&list.entries), Some(&list.lengths), body(edge));
                word(&mut out, list.len() as u64);
                word(&mut out, *scale as u64);
                word(&mut out, edge.offset as u64);
                word(&mut out, *stride as u64);
                table(&mut out, &list.entries);
                table(&mut out, &list.lengths);
            }
            Op::Seq { parts } => {
                head(&mut out, SEQ, None, None, 0);
                word(&mut out, parts.len() as u64);
                for part in parts.iter() {
                    word(&mut out, part.edge.offset as u64);
                    half(&mut out, body(&part.edge));
                    half(&mut out, 0);
                }
            }
        }
    }
    let length = out.len() as u64;
    out[LENGTH..LENGTH + 8].copy_from_slice(&length.to_le_bytes());
    out
}

const UNUSED: u32 = u32::MAX;

/// Returns the new id of every node ([`UNUSED`] for unused nodes), and the number of used nodes.
/// The body comes last, because it comes after all of its operands.
fn renumber(program: &Program) -> (Vec<u32>, u32) {
    let mut ids = vec![UNUSED; program.nodes().len()];
    if let Some(body) = program.body {
        ids[body.node.index()] = 0;
    }
    // Every node comes after its operands, so one loop in reverse order can mark every used node.
    for (i, node) in program.nodes().iter().enumerate().rev() {
        if ids[i] != UNUSED {
            ir::edges(&node.op).for_each(|edge| ids[edge.node.index()] = 0);
        }
    }
    let mut next = 0;
    for id in ids.iter_mut().filter(|id| **id != UNUSED) {
        *id = next;
        next += 1;
    }
    (ids, next)
}

fn head(out: &mut Vec<u8>, tag: u8, a: Option<&Table>, b: Option<&Table>, body: u32) {
    let width = |table: Option<&Table>| table.map_or(0, |table| table.width() as u8);
    out.extend([tag, width(a), width(b), 0]);
    half(out, body);
}

fn word(out: &mut Vec<u8>, value: u64) {
    out.extend(value.to_le_bytes());
}

fn half(out: &mut Vec<u8>, value: u32) {
    out.extend(value.to_le_bytes());
}

fn table(out: &mut Vec<u8>, table: &Table) {
    match table {
        Table::Short(entries) => out.extend_from_slice(entries),
        Table::Narrow(entries) => out.extend(entries.iter().flat_map(|e| e.to_le_bytes())),
        Table::Wide(entries) => out.extend(entries.iter().flat_map(|e| e.to_le_bytes())),
    }
    out.resize(out.len().next_multiple_of(8), 0);
}
