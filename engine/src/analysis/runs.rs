//! Walks the runs of memory of a loop program in packed order, starting at any packed byte.
//!
//! This file uses `ir/walk.rs`. `cursor.rs` and `iov.rs` return the runs to callers; `overlap.rs`
//! sorts them. A run is either a block or one entry of a dense list. A list is dense if the copies
//! inside each entry adjoin each other without gaps. If every element is one run that begins where the
//! element before it ends, all elements together are one run.

use crate::ir::walk::Walk;
use crate::ir::{Node, NodeId, Op, Program, RaggedList, Run};

/// A walk over the runs of a program or of a node.
#[derive(Clone, Debug)]
pub(super) struct RunWalk<'a> {
    program: &'a Program,
    walk: Walk<'a>,
    /// The packed byte at which the walk ends.
    end: u64,
    /// The remaining entries of the dense list that the walk is in, if any.
    list: Option<Entries<'a>>,
    /// If all elements together are one run, the part of this run that has not been returned yet.
    one: Option<Found>,
}

/// A run, or the part of a run that lies in the range of the walk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) run: Run,
    /// Length of the whole run, in bytes.
    pub(super) whole: u64,
}

/// The remaining entries of a dense list.
#[derive(Clone, Debug)]
struct Entries<'a> {
    list: &'a RaggedList,
    scale: i64,
    /// The position to which the displacements of the entries are relative.
    at: i64,
    /// Bytes of one copy of the list's body.
    unit: u64,
    entry: usize,
    /// Number of bytes at the start of the current entry that are not in the range of the walk.
    skip: u64,
    /// Number of remaining bytes of the list that lie in the range of the walk.
    left: u64,
}

impl<'a> RunWalk<'a> {
    /// Starts a walk over the first `end` packed bytes of consecutive elements.
    pub(super) fn of_elements(program: &'a Program, end: u64) -> Self {
        let walk = Walk::of_elements(program, 0..end);
        let mut runs = Self { program, walk, end, list: None, one: None };
        runs.seek(0);
        runs
    }

    /// Starts a walk over the runs of `node` placed at displacement 0.
    pub(super) fn of_node(program: &'a Program, node: NodeId) -> Self {
        let walk = Walk::of_node(program, node);
        Self { program, walk, end: program.node(node).bytes, list: None, one: None }
    }

    /// Moves to packed byte `position` of the elements. `position` must not be past the end.
    pub(super) fn seek(&mut self, position: u64) {
        self.list = None;
        if let (true, Some(body)) = (self.program.is_one_run(), self.program.body) {
            let offset = body.offset.wrapping_add(position as i64);
            let run = Run { offset, bytes: self.end - position };
            self.one = Some(Found { run, whole: self.end }).filter(|found| found.run.bytes > 0);
            self.walk.seek(0..0);
        } else {
            self.walk.seek(position..self.end);
        }
    }

    /// Returns the next run.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Found> {
        if let Some(found) = self.one.take() {
            return Some(found);
        }
        loop {
            if let Some(list) = &mut self.list {
                let found = list.next();
                if found.is_some() {
                    return found;
                }
                self.list = None;
            }
            let program = self.program;
            let stop = self.walk.next(|_, node| is_runs(program, node))?;
            let node = program.node(stop.node);
            let Op::Ragged { list, scale, body, .. } = &node.op else {
                let offset = stop.at.wrapping_add(stop.from as i64);
                let run = Run { offset, bytes: stop.to - stop.from };
                return Some(Found { run, whole: node.bytes });
            };
            let unit = program.node(body.node).bytes;
            let (entry, copy) = list.seek(stop.from / unit);
            self.list = Some(Entries {
                list,
                scale: *scale,
                at: stop.at.wrapping_add(body.offset),
                unit,
                entry,
                skip: copy * unit + stop.from % unit,
                left: stop.to - stop.from,
            });
        }
    }
}

/// Returns true if `node` is one run or a dense list. The walk does not descend into such nodes.
fn is_runs(program: &Program, node: &Node) -> bool {
    match &node.op {
        Op::Block => true,
        Op::Ragged { stride, body, .. } => program.is_dense(*stride, *body),
        Op::Loop { .. } | Op::Table { .. } | Op::Seq { .. } => false,
    }
}

impl Entries<'_> {
    #[inline]
    fn next(&mut self) -> Option<Found> {
        while self.left > 0 && self.entry < self.list.len() {
            let whole = self.list.lengths.get(self.entry) as u64 * self.unit;
            let shift = self.list.entries.get(self.entry).wrapping_mul(self.scale);
            let (skip, bytes) = (self.skip, (whole - self.skip).min(self.left));
            self.entry += 1;
            self.skip = 0;
            if bytes > 0 {
                self.left -= bytes;
                let offset = self.at.wrapping_add(shift).wrapping_add(skip as i64);
                return Some(Found { run: Run { offset, bytes }, whole });
            }
        }
        None
    }
}
