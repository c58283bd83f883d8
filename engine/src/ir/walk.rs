//! Walks through a program: `seek` finds the position of a packed byte, and `next` continues from
//! there.
//!
//! All modules that go through a program in packed order use a [`Walk`]: `exec/` executes programs that
//! one kernel cannot execute, `typed/` visits elements, `analysis/` lists runs of memory. These modules
//! want to stop at different nodes, so the caller passes a predicate over nodes. The walk enters every
//! node that the predicate rejects. It returns every node that the predicate accepts, together with the
//! part of the node that lies in the walk's range.
//!
//! Finding a position takes O(depth + log list length) steps. After that, the walk needs no divisions:
//! it keeps a counter for each open level, that is, for each node that it has entered and not left. The
//! open levels are in a list, so the walk of a deep program needs no recursion.

use super::{Edge, Node, NodeId, Op, Program};
use smallvec::SmallVec;
use std::ops::Range;

/// A node that the predicate accepted. Packed bytes `from..to` of the node lie in the walk's range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    pub(crate) node: NodeId,
    /// Displacement in bytes at which the walk meets the node.
    pub(crate) at: i64,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// A walk over packed bytes, in packed order.
#[derive(Clone, Debug)]
pub(crate) struct Walk<'a> {
    program: &'a Program,
    /// The node that is repeated in the outermost loop. Its iterations are `stride` bytes apart.
    body: Option<Edge>,
    stride: i64,
    iterations: u64,
    iteration: u64,
    /// Number of packed bytes that remain.
    left: u64,
    /// After a seek, the position of the first remaining byte within its iteration; `None` once the
    /// walk has entered that iteration.
    skip: Option<u64>,
    /// The open levels, outermost first. Up to four levels need no allocation.
    frames: SmallVec<[Frame; 4]>,
}

/// An open level: a node that the walk has entered, the displacement at which the walk met the node, and
/// the current operand.
#[derive(Clone, Copy, Debug)]
struct Frame {
    node: NodeId,
    at: i64,
    /// Index of the current iteration, entry or part.
    index: u64,
    /// Index of the current copy within the entry; 0 unless the node is a ragged list.
    copy: u64,
}

impl<'a> Walk<'a> {
    /// Starts a walk over packed bytes `range` of a sequence of elements. The walk treats the sequence
    /// as infinite, so the caller must check that the range lies within the elements.
    #[inline]
    pub(crate) fn of_elements(program: &'a Program, range: Range<u64>) -> Self {
        let mut walk = Self {
            program,
            body: program.body,
            stride: program.stride,
            iterations: u64::MAX,
            iteration: 0,
            left: 0,
            skip: None,
            frames: SmallVec::new(),
        };
        walk.seek(range);
        walk
    }

    /// Starts a walk over all bytes of `node`, which lies at displacement 0.
    pub(crate) fn of_node(program: &'a Program, node: NodeId) -> Self {
        let body = Some(Edge { offset: 0, node });
        let left = program.node(node).bytes;
        let frames = SmallVec::new();
        Self { program, body, stride: 0, iterations: 1, iteration: 0, left, skip: Some(0), frames }
    }

    /// Moves the walk to the beginning of packed bytes `range`. The range may lie before or after the
    /// current position.
    #[inline]
    pub(crate) fn seek(&mut self, range: Range<u64>) {
        self.frames.clear();
        self.left = range.end.saturating_sub(range.start);
        let Some(body) = self.body else {
            self.left = 0;
            return;
        };
        let bytes = self.program.node(body.node).bytes;
        self.iteration = range.start / bytes;
        self.skip = Some(range.start % bytes);
    }

    /// Returns the next node that `stops` accepts, or `None` at the end of the range. `stops` must
    /// accept every block.
    #[inline]
    pub(crate) fn next(&mut self, stops: impl Fn(NodeId, &Node) -> bool) -> Option<Stop> {
        if self.left == 0 {
            return None;
        }
        let (mut edge, mut skip) = match self.skip.take() {
            Some(skip) => (self.element()?, skip),
            None => (self.step()?, 0),
        };
        loop {
            let node = self.program.node(edge.node);
            if stops(edge.node, node) {
                let to = node.bytes.min(skip.saturating_add(self.left));
                self.left -= to - skip;
                return Some(Stop { node: edge.node, at: edge.offset, from: skip, to });
            }
            let (index, copy, operand, rest) = enter(self.program, node, edge, skip);
            self.frames.push(Frame { node: edge.node, at: edge.offset, index, copy });
            (edge, skip) = (operand, rest);
        }
    }

    /// Finds the innermost open level that has another operand, advances to this operand, and returns it.
    #[inline]
    fn step(&mut self) -> Option<Edge> {
        while let Some(frame) = self.frames.last_mut() {
            let op = &self.program.node(frame.node).op;
            if frame.step(op) {
                return Some(frame.operand(op));
            }
            self.frames.pop();
        }
        self.iteration += 1;
        self.element()
    }

    /// Returns the edge of the body in the current iteration; `None` after the last iteration.
    #[inline]
    fn element(&self) -> Option<Edge> {
        let body = self.body.filter(|_| self.iteration < self.iterations)?;
        Some(moved(body, (self.iteration as i64).wrapping_mul(self.stride)))
    }
}

/// Returns the node that `stops` accepts and that contains packed byte `position` of a sequence of
/// elements, or `None` if the program has no body. A walk that begins at `position` would return the
/// same node first, but this function does not have to build the list of open levels.
pub(crate) fn seek(
    program: &Program,
    position: u64,
    stops: impl Fn(NodeId, &Node) -> bool,
) -> Option<Stop> {
    let body = program.body?;
    let bytes = program.node(body.node).bytes;
    let mut edge = moved(body, ((position / bytes) as i64).wrapping_mul(program.stride));
    let mut from = position % bytes;
    loop {
        let node = program.node(edge.node);
        if stops(edge.node, node) {
            return Some(Stop { node: edge.node, at: edge.offset, from, to: node.bytes });
        }
        (_, _, edge, from) = enter(program, node, edge, from);
    }
}

/// Enters `node` at its packed byte `from`. `node` is not a block, and `edge` is the use through which the
/// walk reaches it. Returns four values: `index` and `copy` (see [`Frame`]) of the operand that contains the
/// byte; this operand; and the position of the byte within this operand.
// This function is inlined and returns scalars instead of a `Frame`. A returned frame would be stored
// word by word and loaded with vector instructions, so every level would have to wait for the stores to
// finish. With a frame, a seek through five levels took twice as long (`typepack-bench commit`).
#[inline(always)]
fn enter(program: &Program, node: &Node, edge: Edge, from: u64) -> (u64, u64, Edge, u64) {
    // Returns the iteration of `body` that contains byte `from`, and the position of the byte within
    // that iteration. The division is the slowest step of a level, so it is skipped for the first byte
    // of a level, for which the result is known.
    let divide = |body: &Edge| match from {
        0 => (0, 0),
        _ => {
            let bytes = program.node(body.node).bytes;
            let iteration = from / bytes;
            (iteration, from - iteration * bytes)
        }
    };
    let at = |body: &Edge, shift: i64| moved(*body, edge.offset.wrapping_add(shift));
    match &node.op {
        Op::Block => unreachable!("a walk has entered a block, which has no operands"),
        Op::Loop { stride, body, .. } => {
            let (index, rest) = divide(body);
            (index, 0, at(body, (index as i64).wrapping_mul(*stride)), rest)
        }
        Op::Table { entries, scale, body } => {
            let (index, rest) = divide(body);
            (index, 0, at(body, entries.get(index as usize).wrapping_mul(*scale)), rest)
        }
        Op::Ragged { list, scale, stride, body } => {
            let (copies, rest) = divide(body);
            let (entry, copy) = list.seek(copies);
            let shift = list.entries.get(entry).wrapping_mul(*scale);
            let shift = shift.wrapping_add((copy as i64).wrapping_mul(*stride));
            (entry as u64, copy, at(body, shift), rest)
        }
        Op::Seq { parts } => {
            let part = parts.partition_point(|part| part.end <= from);
            let before = if part == 0 { 0 } else { parts[part - 1].end };
            (part as u64, 0, at(&parts[part].edge, 0), from - before)
        }
    }
}

impl Frame {
    /// Moves to the next operand. `op` is the operation of the frame's node. Returns true if there is a
    /// next operand.
    #[inline]
    fn step(&mut self, op: &Op) -> bool {
        match op {
            Op::Block => false,
            Op::Loop { count, .. } => {
                self.index += 1;
                self.index < *count
            }
            Op::Table { entries, .. } => {
                self.index += 1;
                self.index < entries.len() as u64
            }
            Op::Seq { parts } => {
                self.index += 1;
                self.index < parts.len() as u64
            }
            Op::Ragged { list, .. } => {
                self.copy += 1;
                // Skip entries that have 0 copies.
                while self.index < list.len() as u64
                    && self.copy >= list.lengths.get(self.index as usize) as u64
                {
                    (self.index, self.copy) = (self.index + 1, 0);
                }
                self.index < list.len() as u64
            }
        }
    }

    /// Returns the current operand with its displacement. `op` is the operation of the frame's node.
    #[inline]
    fn operand(&self, op: &Op) -> Edge {
        let index = self.index as usize;
        let (edge, shift) = match op {
            Op::Block => (Edge { offset: 0, node: self.node }, 0),
            Op::Loop { stride, body, .. } => (*body, (self.index as i64).wrapping_mul(*stride)),
            Op::Table { entries, scale, body } => (*body, entries.get(index).wrapping_mul(*scale)),
            Op::Ragged { list, scale, stride, body } => {
                let shift = list.entries.get(index).wrapping_mul(*scale);
                (*body, shift.wrapping_add((self.copy as i64).wrapping_mul(*stride)))
            }
            Op::Seq { parts } => (parts[index].edge, 0),
        };
        moved(edge, self.at.wrapping_add(shift))
    }
}

#[inline]
fn moved(edge: Edge, by: i64) -> Edge {
    Edge { offset: edge.offset.wrapping_add(by), ..edge }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Datatype, typemap};

    /// Checks walks that stop only at blocks: for every range, the blocks must consist of exactly the
    /// bytes that the typemap lists.
    #[test]
    fn any_range_meets_its_bytes() {
        for ty in [
            "vector(3, 1, 4, int)",
            "indexed([1, 3, 0, 2], [9, 0, 5, 5], resized(0, 7, int))",
            "indexed([0, 2, 0], [9, 0, 5], int)",
            "hindexed_block(1, [100, 3, 160], vector(2, 1, 3, short))",
            "struct([1, 2], [0, 200], [vector(2, 2, 3, vector(3, 1, 2, char)), \
             indexed([2, 1], [0, 9], int)])",
        ] {
            let ty: Datatype = ty.parse().unwrap();
            let plan = ty.commit().unwrap();
            let (program, extent) = (plan.program(), ty.extent());
            let bytes: Vec<i64> = (0..2)
                .flat_map(|element| {
                    typemap::typemap(&ty).into_iter().flat_map(move |entry| {
                        let at = element * extent + entry.offset;
                        at..at + i64::from(entry.named.size())
                    })
                })
                .collect();
            let block = |_: NodeId, node: &Node| node.op.is_block();
            for from in 0..bytes.len() {
                let stop = seek(program, from as u64, block).unwrap();
                assert_eq!(stop.at + stop.from as i64, bytes[from], "{ty:?}");
                for to in from..=bytes.len() {
                    let mut walk = Walk::of_elements(program, from as u64..to as u64);
                    let mut met = Vec::new();
                    while let Some(stop) = walk.next(block) {
                        met.extend(stop.at + stop.from as i64..stop.at + stop.to as i64);
                    }
                    assert_eq!(met, bytes[from..to], "{ty:?} {from}..{to}\n{program}");
                }
            }
        }
    }

    #[test]
    fn nothing_is_walked_of_nothing() {
        let empty: Datatype = "contiguous(0, int)".parse().unwrap();
        let plan = empty.commit().unwrap();
        assert!(Walk::of_elements(plan.program(), 0..0).next(|_, _| true).is_none());
        assert!(seek(plan.program(), 0, |_, _| true).is_none());
    }
}
