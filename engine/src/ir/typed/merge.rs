//! Lowers a tree to a typed program. First `ir/lower.rs` lowers the tree, with one leaf per named type.
//! Then this file merges leaves, but only leaves of the same named type.
//!
//! `ir/typed/mod.rs` uses this file. The passes of `passes/` cannot be used here: they compare and
//! merge blocks by their lengths in bytes, and would merge blocks of different types.

use super::Unit;
use crate::datatype::Datatype;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::{Edge, Op, Part, Program, WINDOW_RUNS, lower, verify};
use crate::named::Named;
use std::sync::Arc;
use typepack_leaf::Table;

/// Returns two values: the program of `ty`, in which the lengths of blocks are counted in `unit`; and,
/// for each node that is a block, its named type.
pub(super) fn lower_typed(ty: &Datatype, unit: Unit) -> Result<(Program, Vec<Option<Named>>)> {
    lower_parts(ty, unit, |named| std::iter::once((0, named)))
}

/// Lowers `ty` like [`lower_typed`], but replaces each element of a named type by the elements that
/// `parts` returns for that type. `parts` returns the displacement and the named type of each of them.
pub(super) fn lower_parts<I: Iterator<Item = (i64, Named)>>(
    ty: &Datatype,
    unit: Unit,
    parts: impl Fn(Named) -> I,
) -> Result<(Program, Vec<Option<Named>>)> {
    let mut leaves = Vec::new();
    let mut leaf = |program: &mut Program, named: Named| {
        let (mut end, mut edges) = (0, Vec::new());
        for (offset, named) in parts(named) {
            let node = program.push(unit.of(named), Op::Block);
            leaves.push((node, named));
            end += unit.of(named);
            edges.push(Part { edge: Edge { offset, node }, end });
        }
        match edges[..] {
            [Part { edge, .. }] => edge,
            _ => Edge { offset: 0, node: program.push(end, Op::Seq { parts: edges.into() }) },
        }
    };
    let lowered = lower::lower_with(ty, Some(&mut leaf))?;
    let mut leaves = leaves.into_iter().peekable();
    let mut merging = Merging {
        program: Program::new(lowered.stride),
        named: Vec::with_capacity(lowered.nodes().len()),
        unit,
    };
    let mut new: Vec<Edge> = Vec::with_capacity(lowered.nodes().len());
    for (id, node) in lowered.nodes().iter().enumerate() {
        let leaf = leaves.next_if(|(leaf, _)| leaf.index() == id).map(|(_, named)| named);
        let update = |edge: Edge| moved(new[edge.node.index()], edge.offset);
        let edge = match (&node.op, leaf) {
            (Op::Block, Some(named)) => merging.push(node.bytes, Op::Block, Some(named)),
            (Op::Block, None) => {
                return Err(Error::new(
                    ErrorKind::Internal,
                    "datatype",
                    "a block of the program has no named type",
                ));
            }
            (Op::Loop { count, stride, body }, _) => merging.repeat(*count, *stride, update(*body)),
            (Op::Table { entries, scale, body }, _) => {
                merging.table(entries, *scale, update(*body))
            }
            (Op::Ragged { list, scale, stride, body }, _) => {
                let op = Op::Ragged {
                    list: Arc::clone(list),
                    scale: *scale,
                    stride: *stride,
                    body: update(*body),
                };
                merging.push(node.bytes, op, None)
            }
            (Op::Seq { parts }, _) => {
                let edges: Vec<Edge> = parts.iter().map(|part| update(part.edge)).collect();
                merging.sequence(&edges)
            }
        };
        new.push(edge);
    }
    let Merging { mut program, named, .. } = merging;
    program.body = lowered.body.map(|body| moved(new[body.node.index()], body.offset));
    fold_count(&mut program);
    verify::verify(&program, program.element_bytes())?;
    Ok((program, named))
}

fn moved(edge: Edge, offset: i64) -> Edge {
    Edge { offset: edge.offset.wrapping_add(offset), ..edge }
}

/// An inner sequence is spliced into an outer one if the product of their numbers of parts is at most
/// this limit. The limit equals the maximum number of runs in a window (`ir/mod.rs`).
const SPLICED: usize = WINDOW_RUNS;

/// The program under construction. `named` contains the type of each node that is a block. Each new
/// node is merged with its operands where possible.
struct Merging {
    program: Program,
    named: Vec<Option<Named>>,
    unit: Unit,
}

impl Merging {
    fn push(&mut self, units: u64, op: Op, named: Option<Named>) -> Edge {
        self.named.push(named);
        Edge { offset: 0, node: self.program.push(units, op) }
    }

    fn units(&self, edge: Edge) -> u64 {
        self.program.node(edge.node).bytes
    }

    /// Returns the named type of a leaf and the number of bytes that its elements cover in memory;
    /// `None` if the node is not a leaf.
    fn leaf(&self, edge: Edge) -> Option<(Named, i128)> {
        let named = self.named[edge.node.index()]?;
        let length = self.units(edge) / self.unit.of(named);
        Some((named, i128::from(length) * i128::from(named.extent())))
    }

    /// Repeats `body`. If the copies of a leaf follow each other without a gap, the result is one
    /// longer leaf. If `body` is a loop whose iterations continue at the same stride from one copy to
    /// the next, the result is one longer loop.
    fn repeat(&mut self, count: u64, stride: i64, body: Edge) -> Edge {
        let units = self.units(body) * count;
        if count == 1 {
            return body;
        }
        if let Some((named, bytes)) = self.leaf(body)
            && i128::from(stride) == bytes
        {
            return moved(self.push(units, Op::Block, Some(named)), body.offset);
        }
        let inner = match self.program.node(body.node).op {
            Op::Loop { count: c, stride: s, body: b }
                if i128::from(stride) == i128::from(c) * i128::from(s) =>
            {
                Some((count * c, s, b))
            }
            _ => None,
        };
        let offset = body.offset;
        let (count, stride, body) = inner.unwrap_or((count, stride, Edge { offset: 0, ..body }));
        moved(self.push(units, Op::Loop { count, stride, body }, None), offset)
    }

    /// Repeats `body` at the entries of a table. If the entries have a constant step, returns what
    /// [`Self::repeat`] returns for a loop with this step.
    fn table(&mut self, entries: &Table, scale: i64, body: Edge) -> Edge {
        let first = entries.get(0);
        let step = if entries.len() == 1 { Some(0) } else { entries.get(1).checked_sub(first) };
        let regular = step.filter(|&step| {
            (2..entries.len()).all(|i| entries.get(i).checked_sub(entries.get(i - 1)) == Some(step))
        });
        if let Some(step) = regular {
            let edge = self.repeat(entries.len() as u64, step.wrapping_mul(scale), body);
            return moved(edge, first.wrapping_mul(scale));
        }
        let units = self.units(body) * entries.len() as u64;
        let op = Op::Table { entries: entries.clone(), scale, body: Edge { offset: 0, ..body } };
        moved(self.push(units, op, None), body.offset)
    }

    /// Returns `edges`. Each sequence among them is replaced by its parts if the number of parts times
    /// the number of `edges` is at most `SPLICED`.
    fn spliced(&self, edges: &[Edge]) -> Vec<Edge> {
        let mut all = Vec::with_capacity(edges.len());
        for &edge in edges {
            match &self.program.node(edge.node).op {
                Op::Seq { parts } if edges.len().saturating_mul(parts.len()) <= SPLICED => {
                    all.extend(parts.iter().map(|part| moved(part.edge, edge.offset)));
                }
                _ => all.push(edge),
            }
        }
        all
    }

    /// Makes a sequence. Touching leaves of one type become one leaf. If all parts are then equal and
    /// have a constant step, the result is a loop.
    fn sequence(&mut self, edges: &[Edge]) -> Edge {
        let mut merged: Vec<Edge> = Vec::with_capacity(edges.len());
        for edge in self.spliced(edges) {
            if let Some(last) = merged.last_mut()
                && let (Some((a, bytes)), Some((b, _))) = (self.leaf(*last), self.leaf(edge))
                && a == b
                && i128::from(last.offset) + bytes == i128::from(edge.offset)
            {
                let units = self.units(*last) + self.units(edge);
                let offset = last.offset;
                *last = moved(self.push(units, Op::Block, Some(a)), offset);
            } else {
                merged.push(edge);
            }
        }
        let (first, at) = (merged[0], |i: usize| merged[i].offset.wrapping_sub(merged[0].offset));
        if let [only] = merged[..] {
            return only;
        }
        let same = |edge: &Edge| {
            let equal = self.units(*edge) == self.units(first);
            edge.node == first.node
                || (equal && self.leaf(first).is_some() && self.leaf(*edge) == self.leaf(first))
        };
        let step = at(1);
        if merged.iter().all(same)
            && (2..merged.len()).all(|i| at(i) == step.wrapping_mul(i as i64))
        {
            let body = Edge { offset: 0, ..first };
            return moved(self.repeat(merged.len() as u64, step, body), first.offset);
        }
        let mut end = 0;
        let parts: Box<[Part]> = merged
            .iter()
            .map(|&edge| {
                end += self.units(edge);
                Part { edge: moved(edge, first.offset.wrapping_neg()), end }
            })
            .collect();
        moved(self.push(end, Op::Seq { parts }, None), first.offset)
    }
}

/// Merges the outermost loop with the loop over the elements if the iterations of the outermost loop
/// continue at the same stride from one element to the next. Repeats this while the new outermost loop
/// meets the same condition.
fn fold_count(program: &mut Program) {
    while let Some(body) = program.body {
        let Op::Loop { count, stride, body: inner } = program.node(body.node).op else { return };
        if i128::from(program.stride) != i128::from(count) * i128::from(stride) {
            return;
        }
        program.factor *= count;
        program.stride = stride;
        program.body = Some(moved(inner, body.offset));
    }
}
