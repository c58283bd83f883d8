//! Finds the first view byte at or after an offset of the file. This is needed for reads that reach the end
//! of the file, and for positions relative to the end.
//!
//! A division finds the first filetype whose data ends after the offset. The search then goes down the loop program of
//! the filetype once. At each level it finds the first iteration, entry or part whose data ends after the offset. In a
//! loop, a division finds the iteration. In a table, a list or a sequence, a binary search finds the entry or part if
//! the data of the filetype does not overlap, and a linear search otherwise. The list `ends` of the view (`mod.rs`)
//! says where the data of each node ends.
//!
//! Copies of the filetype may be in any order. So view bytes after the first one at or after the offset may lie before
//! the offset again.

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
    /// data of one filetype overlaps.
    pub fn readable(&self, position: u64, length: u64, end: u64) -> Result<u64> {
        let each = self.filetype_bytes();
        if length == 0 || each == 0 {
            return Ok(length);
        }
        // The filetype in which the access begins may have view bytes beyond the end before `position`.
        let tile = position / each;
        let rest = length.min(each - position % each);
        let reached = match self.tile_after(tile, end) {
            Some(found) if found == i128::from(tile) => self.search(tile, end),
            _ => i128::from(each),
        };
        let before = match reached - i128::from(position % each) {
            ..0 if self.tile_ordered => return Ok(0),
            ..0 => i128::from(self.readable_pieces(position, rest, end)?),
            before => before,
        };
        if before < i128::from(rest) || rest == length {
            return Ok(before.min(rest.into()) as u64);
        }
        // All later filetypes are read from their beginning.
        let reached = self.reached(tile + 1, end);
        Ok(reached.map_or(length, |reached| {
            (reached - i128::from(position)).min(i128::from(length)) as u64
        }))
    }

    /// Does what [`readable`](Self::readable) does, piece by piece.
    fn readable_pieces(&self, position: u64, length: u64, end: u64) -> Result<u64> {
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

    /// Returns the position of the first view byte at or after offset `end`. If the view is in order, this is the
    /// number of view bytes before the offset. Returns `u64::MAX` if there is no such view byte, or if its position is
    /// 2^63 or more.
    pub fn position_at(&self, end: u64) -> u64 {
        self.reached(0, end).and_then(|at| i64::try_from(at).ok()).map_or(u64::MAX, |at| at as u64)
    }

    /// Returns the position of the first view byte at or after offset `end` that lies in filetype `tile` or a later
    /// one; `None` if there is none.
    fn reached(&self, tile: u64, end: u64) -> Option<i128> {
        let each = i128::from(self.filetype_bytes());
        let found = self.tile_after(tile, end).filter(|_| each > 0)?;
        // A filetype so far away that its number does not fit has no valid position.
        let number = u64::try_from(found).ok()?;
        Some(found * each + self.search(number, end))
    }

    /// Returns the number of the first filetype, from filetype `tile` on, whose data ends after offset `end`.
    fn tile_after(&self, tile: u64, end: u64) -> Option<i128> {
        let data = self.place_of(tile) + i128::from(self.filetype().footprint().true_ub);
        first(data, self.extent, end.into()).map(|index| i128::from(tile) + index)
    }

    /// Returns the position, in filetype `tile`, of its first view byte at or after offset `end`. The data of this
    /// filetype ends after `end`.
    fn search(&self, tile: u64, end: u64) -> i128 {
        let program = self.filetype().program();
        let Some(body) = program.body else { return 0 };
        let limit = i128::from(end) - self.place_of(tile);
        let ends =
            |edge: &Edge, at: i128| at + i128::from(edge.offset) + self.ends[edge.node.index()];
        // The filetype is the body of its program, repeated.
        let (index, mut at) = iteration(ends(&body, 0), program.stride, limit);
        let mut position = index * i128::from(program.node(body.node).bytes);
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
                    let (index, shift) = iteration(ends(body, at), *stride, limit);
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
                    let entry = if self.tile_ordered {
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
                    let (copy, further) = iteration(high(entry, 0), *stride, limit);
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
        position
    }

    /// Returns the number of the first etype that begins at or after offset `end`, which counts from the
    /// view's displacement. If `end` is the end of the file, the result is the end of the file in etypes, as
    /// `MPI_SEEK_END` needs it. Returns 0 if the view has no data, and `u64::MAX` if no such etype exists or if the
    /// position of its first byte is 2^63 or more.
    #[doc(alias = "MPI_SEEK_END")]
    pub fn etypes_at(&self, end: u64) -> u64 {
        let (each, part) = (self.filetype_bytes(), self.etype_bytes());
        if each == 0 {
            return 0;
        }
        if !self.tile_ordered {
            return self.etypes_one_by_one(end);
        }
        // The last etype of a filetype begins at the greatest offset of all its etypes. The first filetype whose last
        // etype begins at or after `end` has the etype.
        let Ok(last) = self.offset(each - part) else { return u64::MAX };
        let found = first(last.into(), self.extent, i128::from(end) - 1);
        let Some(tile) = found.and_then(|tile| u64::try_from(tile).ok()) else { return u64::MAX };
        let within = self.search(tile, end).max(0) as u64;
        let etypes = i128::from(tile) * i128::from(each / part) + i128::from(within.div_ceil(part));
        match etypes.checked_mul(part.into()) {
            Some(position) if position <= i64::MAX.into() => etypes as u64,
            _ => u64::MAX,
        }
    }

    /// Does what [`etypes_at`](Self::etypes_at) does, if the data of one filetype overlaps. Then an etype may begin
    /// before the offset although a view byte before it lies after the offset.
    fn etypes_one_by_one(&self, end: u64) -> u64 {
        let (each, part) = (self.filetype_bytes(), self.etype_bytes());
        let position = self.position_at(end);
        if position == u64::MAX {
            return position;
        }
        let mut etype = position.div_ceil(part);
        while self.offset(etype.saturating_mul(part)).is_ok_and(|at| at < end) {
            etype += 1;
            // If the extent is not positive, later filetypes reach no further.
            if self.extent <= 0 && etype >= each / part {
                return u64::MAX;
            }
        }
        etype
    }

    /// Returns the index of the first of `count` entries, copies or parts of a node for which `ends_after` is
    /// true. If no earlier one qualifies, the last one does, because the data of the node ends after the
    /// limit. So the function does not call `ends_after` for the last one.
    fn find(&self, count: usize, ends_after: impl Fn(usize) -> bool) -> usize {
        let last = count.saturating_sub(1);
        if !self.tile_ordered {
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

/// Returns the first iteration of an endless loop whose data ends after `limit`, if there is one. The data of iteration
/// 0 ends at `end`.
fn first(end: i128, stride: i64, limit: i128) -> Option<i128> {
    match i128::from(stride) {
        _ if end > limit => Some(0),
        stride if stride > 0 => Some((limit - end) / stride + 1),
        _ => None,
    }
}

/// Returns the first iteration of a loop whose data ends after `limit`, and the displacement of that
/// iteration. The data of iteration 0 ends at `end`, and there is such an iteration.
fn iteration(end: i128, stride: i64, limit: i128) -> (i128, i128) {
    let index = first(end, stride, limit).unwrap_or(0);
    (index, index * i128::from(stride))
}
