//! The runs of a plan, one after the other, in packed order, from any packed byte.
//!
//! Comes after `plan/`; `transfer/` walks two layouts in step with it, and whoever wants
//! `(displacement, length)` lists reads them from it. It executes nothing and knows no kernel.
//!
//! A position is found in O(depth + log list) and the next run in O(1) amortised over a level; the
//! stack of open levels lives on the heap. Runs are those of the program: all elements of a
//! contiguous type are one run, an entry of a list of blocks is one run, touching runs of
//! different levels are not joined.

use crate::error::{Error, ErrorKind, Result};
use crate::ir::{Edge, NodeId, Op, Program};
use crate::kernel::Run;
use crate::plan::{Plan, is_dense};

/// A place in the packed form of `count` elements, and the run of memory that lies there.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    program: &'a Program,
    /// Iterations of the loop over elements, and the one that is open.
    iterations: u64,
    iteration: u64,
    /// Packed bytes in all, and the first one of `run`.
    end: u64,
    position: u64,
    /// What is left of the current run; 0 bytes at the end.
    run: Run,
    /// Length of the current run from its own beginning.
    whole: u64,
    frames: Vec<Frame>,
}

/// An open level: the node, where its displacement 0 is, and which operand is current.
#[derive(Clone, Copy, Debug)]
struct Frame {
    node: NodeId,
    at: i64,
    /// Iteration, entry or part.
    index: u64,
    /// Copy within the entry of a ragged list.
    copy: u64,
}

impl<'a> Cursor<'a> {
    /// A cursor at packed byte 0 of `count` elements.
    ///
    /// # Errors
    ///
    /// `count`: the packed bytes do not fit 64 bits.
    pub fn new(plan: &'a Plan, count: u64) -> Result<Self> {
        Self::at(plan, count, 0)
    }

    /// A cursor at packed byte `position` of `count` elements.
    ///
    /// # Errors
    ///
    /// `count`: the packed bytes do not fit 64 bits. `position`: past the end.
    pub fn at(plan: &'a Plan, count: u64, position: u64) -> Result<Self> {
        let end = plan.packed_bytes(count)?;
        let program = plan.program();
        let mut cursor = Self {
            program,
            // Every iteration makes at least a byte, so the product fits if there is data.
            iterations: program.factor.saturating_mul(count),
            iteration: 0,
            end,
            position: 0,
            run: Run { offset: 0, bytes: 0 },
            whole: 0,
            frames: Vec::with_capacity(8),
        };
        cursor.seek(position)?;
        Ok(cursor)
    }

    /// The packed byte this cursor is at.
    pub fn tell(&self) -> u64 {
        self.position
    }

    /// The rest of the run at this position, displacement from displacement 0 of the first
    /// element; `None` at the end of the packed bytes.
    #[inline]
    pub fn run(&self) -> Option<Run> {
        (self.run.bytes > 0).then_some(self.run)
    }

    /// Length in bytes of the whole run at this position, with what lies before the position.
    #[inline]
    pub fn whole_run(&self) -> u64 {
        self.whole
    }

    /// Goes to packed byte `position`, forwards or backwards.
    ///
    /// # Errors
    ///
    /// `position`: past the end.
    pub fn seek(&mut self, position: u64) -> Result<()> {
        if position > self.end {
            return Err(Error::new(
                ErrorKind::Argument,
                "position",
                format!("{position} is not within the {} packed bytes", self.end),
            ));
        }
        self.open(position);
        Ok(())
    }

    /// Goes `bytes` packed bytes on, at most to the end of the current run; more is cut to that.
    #[inline]
    pub fn advance(&mut self, bytes: u64) {
        let bytes = bytes.min(self.run.bytes);
        self.position += bytes;
        if bytes < self.run.bytes {
            self.run.offset = self.run.offset.wrapping_add(bytes as i64);
            self.run.bytes -= bytes;
        } else {
            self.next_run();
        }
    }

    /// Finds `position`, which is at most the end, from the root.
    fn open(&mut self, position: u64) {
        self.frames.clear();
        self.position = position;
        let Some(body) = self.program.body.filter(|_| position < self.end) else {
            (self.run.bytes, self.whole) = (0, 0);
            return;
        };
        let bytes = self.program.node(body.node).bytes;
        if is_dense(self.program, self.program.stride, body) {
            let offset = body.offset.wrapping_add(position as i64);
            self.run = Run { offset, bytes: self.end - position };
            self.whole = self.end;
            self.iteration = self.iterations;
            return;
        }
        self.iteration = position / bytes;
        self.descend(self.element(body), position % bytes);
    }

    /// The body's use in the current iteration.
    fn element(&self, body: Edge) -> Edge {
        let shift = (self.iteration as i64).wrapping_mul(self.program.stride);
        Edge { offset: body.offset.wrapping_add(shift), node: body.node }
    }

    /// Opens levels down to the run that holds packed byte `skip` of `edge`.
    fn descend(&mut self, edge: Edge, skip: u64) {
        let program = self.program;
        let (mut edge, mut skip) = (edge, skip);
        loop {
            let node = program.node(edge.node);
            let bytes = |edge: &Edge| program.node(edge.node).bytes;
            // The iteration of a repeated body that holds `skip`; at a beginning without division.
            let find = |body: &Edge| if skip == 0 { 0 } else { skip / bytes(body) };
            let mut frame = Frame { node: edge.node, at: edge.offset, index: 0, copy: 0 };
            let begin = match &node.op {
                Op::Block => return self.set(edge.offset, skip, node.bytes),
                Op::Loop { body, .. } | Op::Table { body, .. } => {
                    frame.index = find(body);
                    frame.index * bytes(body)
                }
                Op::Ragged { list, body, scale, stride } => {
                    let copy = find(body);
                    let (entry, index) = list.seek(copy);
                    frame.index = entry as u64;
                    if is_dense(program, *stride, *body) {
                        let length = list.lengths.get(entry) as u64;
                        let shift = list.entries.get(entry).wrapping_mul(*scale);
                        let offset = frame.at.wrapping_add(shift).wrapping_add(body.offset);
                        let skip = skip - (copy - index) * bytes(body);
                        self.frames.push(frame);
                        return self.set(offset, skip, length * bytes(body));
                    }
                    frame.copy = index;
                    copy * bytes(body)
                }
                Op::Seq { parts } => {
                    let part = parts.partition_point(|part| part.end <= skip);
                    frame.index = part as u64;
                    if part == 0 { 0 } else { parts[part - 1].end }
                }
            };
            skip -= begin;
            edge = operand(&node.op, &frame);
            self.frames.push(frame);
        }
    }

    fn set(&mut self, offset: i64, skip: u64, whole: u64) {
        self.run = Run { offset: offset.wrapping_add(skip as i64), bytes: whole - skip };
        self.whole = whole;
    }

    /// Goes to the run after the current one.
    fn next_run(&mut self) {
        let program = self.program;
        while let Some(frame) = self.frames.last_mut() {
            let op = &program.node(frame.node).op;
            frame.index += 1;
            let more = match op {
                Op::Block => false,
                Op::Loop { count, .. } => frame.index < *count,
                Op::Table { entries, .. } => frame.index < entries.len() as u64,
                Op::Seq { parts } => frame.index < parts.len() as u64,
                Op::Ragged { list, scale, stride, body } => {
                    let dense = is_dense(program, *stride, *body);
                    let length = |entry: u64| list.lengths.get(entry as usize) as u64;
                    if !dense && frame.copy + 1 < length(frame.index - 1) {
                        frame.index -= 1;
                        frame.copy += 1;
                    } else {
                        frame.copy = 0;
                        while frame.index < list.len() as u64 && length(frame.index) == 0 {
                            frame.index += 1;
                        }
                    }
                    let more = frame.index < list.len() as u64;
                    if more && dense {
                        let shift = list.entries.get(frame.index as usize).wrapping_mul(*scale);
                        let offset = frame.at.wrapping_add(shift).wrapping_add(body.offset);
                        let bytes = length(frame.index) * program.node(body.node).bytes;
                        return self.set(offset, 0, bytes);
                    }
                    more
                }
            };
            if more {
                let edge = operand(op, frame);
                return self.descend(edge, 0);
            }
            self.frames.pop();
        }
        self.iteration = self.iteration.saturating_add(1);
        match program.body {
            Some(body) if self.iteration < self.iterations => {
                let edge = self.element(body);
                self.descend(edge, 0);
            }
            _ => (self.run.bytes, self.whole) = (0, 0),
        }
    }
}

/// The operand that a frame has open, at its displacement.
fn operand(op: &Op, frame: &Frame) -> Edge {
    let index = frame.index as usize;
    let (edge, shift) = match op {
        Op::Block => (Edge { offset: 0, node: frame.node }, 0),
        Op::Loop { stride, body, .. } => (*body, (frame.index as i64).wrapping_mul(*stride)),
        Op::Table { entries, scale, body } => (*body, entries.get(index).wrapping_mul(*scale)),
        Op::Ragged { list, scale, stride, body } => {
            let shift = list.entries.get(index).wrapping_mul(*scale);
            (*body, shift.wrapping_add((frame.copy as i64).wrapping_mul(*stride)))
        }
        Op::Seq { parts } => (parts[index].edge, 0),
    };
    Edge { offset: frame.at.wrapping_add(shift).wrapping_add(edge.offset), node: edge.node }
}

impl Iterator for Cursor<'_> {
    type Item = Run;

    /// The rest of the current run; the cursor goes to the next one.
    fn next(&mut self) -> Option<Run> {
        let run = self.run()?;
        self.advance(run.bytes);
        Some(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Datatype, Named};

    fn int() -> Datatype {
        Datatype::named(Named::INT)
    }

    fn runs(ty: &Datatype, count: u64, from: u64) -> Vec<(i64, u64)> {
        let plan = ty.commit().unwrap();
        let mut cursor = Cursor::new(&plan, count).unwrap();
        cursor.seek(from).unwrap();
        cursor.map(|run| (run.offset, run.bytes)).collect()
    }

    #[test]
    fn runs_of_each_kind_of_level() {
        let vector = Datatype::vector(2, 1, 2, &int()).unwrap();
        assert_eq!(runs(&vector, 2, 0), [(0, 4), (8, 4), (12, 4), (20, 4)]);
        assert_eq!(runs(&vector, 2, 6), [(10, 2), (12, 4), (20, 4)]);
        let table = Datatype::indexed_block(1, &[5, 0, 3], &int()).unwrap();
        assert_eq!(runs(&table, 1, 4), [(0, 4), (12, 4)]);
        let list = Datatype::indexed(&[1, 3, 0, 2], &[9, 0, 5, 5], &int()).unwrap();
        assert_eq!(runs(&list, 1, 0), [(36, 4), (0, 12), (20, 8)]);
        assert_eq!(runs(&list, 1, 5), [(1, 11), (20, 8)]);
        let gapped = Datatype::resized(0, 7, &int()).unwrap();
        let list = Datatype::indexed(&[1, 3], &[9, 0], &gapped).unwrap();
        assert_eq!(runs(&list, 1, 8), [(7, 4), (14, 4)]);
        let byte = Datatype::named(Named::BYTE);
        let parts = Datatype::structured(&[1, 1, 1], &[9, 0, 40], &[byte, list, vector]).unwrap();
        assert_eq!(
            runs(&parts, 1, 0),
            [(9, 1), (63, 4), (0, 4), (7, 4), (14, 4), (40, 4), (48, 4)]
        );
    }

    #[test]
    fn contiguous_elements_are_one_run_and_the_end_has_none() {
        assert_eq!(runs(&Datatype::contiguous(3, &int()).unwrap(), 4, 5), [(5, 43)]);
        assert_eq!(runs(&int(), 4, 16), []);
        assert_eq!(runs(&Datatype::contiguous(0, &int()).unwrap(), 4, 0), []);
        let plan = int().commit().unwrap();
        let mut cursor = Cursor::new(&plan, 4).unwrap();
        assert_eq!(cursor.seek(17).unwrap_err().argument(), "position");
        assert!(Cursor::new(&plan, u64::MAX).is_err());
        cursor.advance(99);
        assert_eq!((cursor.tell(), cursor.run()), (16, None));
    }
}
