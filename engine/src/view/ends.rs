//! Finds the first view byte at or after an offset of the file. This is needed for reads that reach the end
//! of the file, and for positions relative to the end.
//!
//! The search goes down the loop program of the filetype once. At each level it finds the first iteration,
//! entry or part whose data ends after the offset. In a loop, a division finds the iteration. In a table, a
//! list or a sequence, a binary search finds the entry or part if the data of the view does not overlap, and
//! a linear search otherwise. The list `ends` of the view (`mod.rs`) says where the data of each node ends.

use super::FileView;
use crate::error::Result;
use crate::ir::{Edge, Op};

impl FileView {
    /// Returns how many of the `length` view bytes from `position` on can be read from a file that ends at
    /// offset `end`: the number of these bytes before the first one that lies at or after `end`. `end` counts
    /// from the view's displacement.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`FileView::tiles`](super::FileView::tiles) for these view bytes, if the
    /// data of the view overlaps.
    pub fn readable(&self, position: u64, length: u64, end: u64) -> Result<u64> {
        let reached = self.position_at(end);
        if length == 0 || reached >= position.saturating_add(length) {
            return Ok(length);
        }
        if self.is_disjoint() || reached >= position {
            return Ok(reached.saturating_sub(position));
        }
        // In a view whose data overlaps, view bytes from `position` on may lie before the offset although
        // an earlier view byte, `reached`, lies at or after it.
        let mut read = 0;
        for piece in self.pieces(position, length)? {
            let before = end.saturating_sub(piece.offset as u64);
            read += before.min(piece.bytes);
            if before < piece.bytes {
                break;
            }
        }
        Ok(read)
    }

    /// Returns the position of the first view byte at or after offset `end`. If the view is disjoint, this is
    /// the number of view bytes before the offset. Returns `u64::MAX` if the position is 2^63 or more, or if
    /// the view has no data.
    pub fn position_at(&self, end: u64) -> u64 {
        let program = self.filetype().program();
        let Some(body) = program.body else { return u64::MAX };
        let limit = i128::from(end);
        let ends =
            |edge: &Edge, at: i128| at + i128::from(edge.offset) + self.ends[edge.node.index()];
        // The filetype repeats without end, so the body of its program repeats without end too.
        let (tile, mut at) = first(ends(&body, 0), program.stride, limit);
        let mut position = tile * i128::from(program.node(body.node).bytes);
        at += i128::from(body.offset);
        let mut node = body.node;
        // In each round, `node`, at displacement `at`, is the first node whose data ends after the limit.
        loop {
            let used = program.node(node);
            let each = |body: &Edge| i128::from(program.node(body.node).bytes);
            let (passed, shift, edge) = match &used.op {
                Op::Block => {
                    position += (limit - at).max(0);
                    break;
                }
                Op::Loop { stride, body, .. } => {
                    let (index, shift) = first(ends(body, at), *stride, limit);
                    (index * each(body), shift, *body)
                }
                Op::Table { entries, scale, body } => {
                    let shift = |i: usize| i128::from(entries.get(i).wrapping_mul(*scale));
                    let index = self.find(entries.len(), |i| ends(body, at + shift(i)) > limit);
                    (index as i128 * each(body), shift(index), *body)
                }
                Op::Ragged { list, scale, stride, body } => {
                    let shift = |i: usize| i128::from(list.entries.get(i).wrapping_mul(*scale));
                    let copies = |i: usize| list.lengths.get(i);
                    let high = |i: usize, copy: i64| {
                        ends(body, at + shift(i) + i128::from(copy) * i128::from(*stride))
                    };
                    let entry = if self.is_disjoint() {
                        // Entries without copies may lie anywhere, so search the copies instead of the
                        // entries.
                        let all = (used.bytes / program.node(body.node).bytes) as usize;
                        let copy = self.find(all, |copy| {
                            let (entry, copy) = list.seek(copy as u64);
                            high(entry, copy as i64) > limit
                        });
                        list.seek(copy as u64).0
                    } else {
                        self.find(list.len(), |i| {
                            copies(i) > 0 && high(i, 0).max(high(i, copies(i) - 1)) > limit
                        })
                    };
                    let (copy, further) = first(high(entry, 0), *stride, limit);
                    let before = i128::from(list.before(entry)) + copy;
                    (before * each(body), shift(entry) + further, *body)
                }
                Op::Seq { parts } => {
                    let index = self.find(parts.len(), |i| ends(&parts[i].edge, at) > limit);
                    let before = index.checked_sub(1).map_or(0, |i| parts[i].end);
                    (i128::from(before), 0, parts[index].edge)
                }
            };
            position += passed;
            at += shift + i128::from(edge.offset);
            node = edge.node;
        }
        i64::try_from(position).map_or(u64::MAX, |position| position as u64)
    }

    /// Returns the number of the first etype that begins at or after offset `end`, which counts from the
    /// view's displacement. If `end` is the end of the file, the result is the end of the file in etypes, as
    /// `MPI_SEEK_END` needs it. Returns `u64::MAX` if the position of the first view byte at or after `end`
    /// is 2^63 or more, and 0 if the view has no data.
    #[doc(alias = "MPI_SEEK_END")]
    pub fn etypes_at(&self, end: u64) -> u64 {
        if self.filetype_bytes() == 0 {
            return 0;
        }
        match self.position_at(end) {
            u64::MAX => u64::MAX,
            position => {
                let mut etype = position.div_ceil(self.etype_bytes());
                // In a view whose data overlaps, an etype may begin before the offset although a view byte
                // before it lies after the offset.
                while !self.is_disjoint()
                    && self
                        .offset(etype.saturating_mul(self.etype_bytes()))
                        .is_ok_and(|at| at < end)
                {
                    etype += 1;
                }
                etype
            }
        }
    }

    /// Returns the index of the first of `count` entries, copies or parts of a node for which `ends_after` is
    /// true. If no earlier one qualifies, the last one does, because the data of the node ends after the
    /// limit. So the function does not call `ends_after` for the last one.
    fn find(&self, count: usize, ends_after: impl Fn(usize) -> bool) -> usize {
        let last = count.saturating_sub(1);
        if !self.is_disjoint() {
            return (0..last).find(|&i| ends_after(i)).unwrap_or(last);
        }
        let (mut low, mut high) = (0, last);
        while low < high {
            let middle = low + (high - low) / 2;
            if ends_after(middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }
}

/// Returns the first iteration of a loop whose data ends after `limit`, and the displacement of that
/// iteration. The data of iteration 0 ends at `end`, and there is such an iteration.
fn first(end: i128, stride: i64, limit: i128) -> (i128, i128) {
    let stride = i128::from(stride);
    let index = if end > limit || stride <= 0 { 0 } else { (limit - end) / stride + 1 };
    (index, index * stride)
}
