//! Divides the packed form of a plan's elements into segments that are cheap to pack one by one.
//!
//! `exec/` can pack any range of packed bytes. But a range that begins or ends inside a block, a row
//! or a plane needs extra calls at that end. The functions of this file find ranges that begin and
//! end at the boundaries of blocks, rows or planes. Chunked messages, file buffers and pipelines use
//! these ranges. This file moves no bytes.
//!
//! A *unit* is a part that the program repeats. From coarse to fine, the units are elements, iterations of
//! the loop over elements, and then the bodies of loops, tables, lists and sequences. `wish` is the segment
//! length, in packed bytes, that the caller wants. A segment ends at the end of the coarsest unit that makes
//! the segment at least three quarters of `wish` long. The limit of three quarters is a compromise: ending at
//! a coarser unit saves one or two kernel calls, but shorter segments mean more segments. With segments of
//! three quarters of `wish`, there are four segments instead of three, and the extra segment costs about as
//! much as the coarser unit saves. If columns are packed in tiles (`leaf/src/routine/tiles.rs`), a tile is one
//! more unit, and a segment of one tile may be up to twice as long as the wish. If a segment had fewer columns
//! than a tile, the next segment would read the same cache lines again.
//!
//! Invariants: no segment is empty, and each segment begins at the end of the previous one. A segment
//! is never longer than the wish (with tiles: twice the wish) or [`SHORT`], whichever is greater.
//! Nodes of at most [`SHORT`] bytes are never cut.

use crate::error::{Error, ErrorKind, Result};
use crate::ir::{Op, Program};
use crate::plan::Plan;
use std::iter::FusedIterator;
use std::ops::Range;

/// A node of at most this many packed bytes is never cut. A longer block is cut only at multiples of
/// this length from its start.
const SHORT: u64 = 64;

impl Plan {
    /// Returns the best size for a caller that uses segments of equal size. The size is close to
    /// `wish` bytes. It is at most `wish`, or at most 64 if `wish` is less than 64; if columns are
    /// packed in tiles, it is at most twice the wish. If elements, rows or blocks have equal lengths,
    /// and some number of them fills between three quarters of `wish` and all of `wish`, every
    /// segment begins at the start of an element, row or block.
    ///
    /// If the parts of a layout have different sizes, as in structs and in lists with different block
    /// lengths, segments of equal size cannot all begin at such boundaries. [`Plan::segments`] adapts
    /// to such layouts.
    ///
    /// ```
    /// use typepack_engine::Datatype;
    ///
    /// let rows: Datatype = "vector(1000, 25, 40, double)".parse()?;
    /// assert_eq!(rows.commit()?.segment_bytes(8192), 40 * 25 * 8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn segment_bytes(&self, wish: u64) -> u64 {
        let program = self.program();
        let wish = wish.max(1);
        let Some(body) = program.body else { return wish };
        if let Some(bytes) = tiles(self.tile_bytes(), wish) {
            return bytes;
        }
        let enough = least(wish);
        let mut node = program.node(body.node);
        let mut unit = program.factor * node.bytes;
        let mut best = whole(wish, unit);
        if best < enough {
            unit = node.bytes;
            best = best.max(whole(wish, unit));
        }
        while best < enough {
            match &node.op {
                Op::Loop { body, .. } | Op::Table { body, .. } => node = program.node(body.node),
                Op::Block if unit > SHORT => return whole(wish, SHORT).max(SHORT),
                Op::Block | Op::Ragged { .. } | Op::Seq { .. } => break,
            }
            unit = node.bytes;
            best = best.max(whole(wish, unit));
        }
        match best {
            0 if unit <= SHORT => unit,
            0 => whole(wish, SHORT).max(SHORT),
            _ => best,
        }
    }

    /// Returns the best end for a segment of about `wish` bytes that begins at packed byte `start` of
    /// `count` elements. The segment has at most `wish` bytes, or at most 64 if `wish` is less than
    /// 64. If an element, row or block ends in the last quarter of the `wish` bytes after `start`, the
    /// segment ends there. Otherwise the segment may end inside a run of more than 64 bytes. If columns
    /// are packed in tiles of at most twice `wish` bytes, the segment ends at the end of a tile instead,
    /// and has at most twice `wish` bytes.
    ///
    /// This function is for callers that keep a position of their own. Other callers use
    /// [`Plan::segments`], which returns all segments. The time of a call is proportional to the
    /// depth of the program plus the logarithm of the length of its longest list of blocks.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Overflow`, naming `count`, if the packed size exceeds 2^63 - 1 bytes.
    /// Returns `ErrorKind::Argument`, naming `start`, if `start` is not below the packed size.
    pub fn segment_end(&self, count: u64, start: u64, wish: u64) -> Result<u64> {
        let total = self.packed_bytes(count)?;
        if start >= total {
            let detail = format!(
                "a segment cannot begin at byte {start}; the packed form has {total} bytes"
            );
            return Err(Error::new(ErrorKind::Argument, "start", detail));
        }
        Ok(end_of_segment(self.program(), self.tile_bytes(), total, start, wish.max(1)))
    }

    /// Divides the packed form of `count` elements into segments of about `wish` bytes, and returns
    /// an iterator over the segments. Each segment ends where [`Plan::segment_end`] says. A caller
    /// that packs every segment with `pack_range` gets the whole packed form.
    ///
    /// ```
    /// use typepack_engine::Datatype;
    ///
    /// let plan = "struct([1, 1], [0, 4000], [vector(3, 3, 4, double), contiguous(5, int)])"
    ///     .parse::<Datatype>()?
    ///     .commit()?;
    /// let segments: Vec<_> = plan.segments(2, 100)?.collect();
    /// assert_eq!(segments, [0..92, 92..184]);
    /// let segments: Vec<_> = plan.segments(1, 70)?.collect();
    /// assert_eq!(segments, [0..48, 48..92]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Overflow`, naming `count`, if the packed size exceeds 2^63 - 1 bytes.
    pub fn segments(&self, count: u64, wish: u64) -> Result<Segments<'_>> {
        let total = self.packed_bytes(count)?;
        Ok(Segments {
            program: self.program(),
            tile: self.tile_bytes(),
            at: 0,
            total,
            wish: wish.max(1),
        })
    }
}

/// An iterator over the segments of a packed form, in order, made by [`Plan::segments`].
#[derive(Clone, Debug)]
pub struct Segments<'a> {
    program: &'a Program,
    tile: Option<u64>,
    at: u64,
    total: u64,
    wish: u64,
}

impl Iterator for Segments<'_> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        if self.at >= self.total {
            return None;
        }
        let start = self.at;
        self.at = end_of_segment(self.program, self.tile, self.total, start, self.wish);
        Some(start..self.at)
    }
}

impl FusedIterator for Segments<'_> {}

/// Returns the minimum length of a segment that ends at a coarse unit. If the segment would be
/// shorter, it ends at the end of a finer unit.
fn least(wish: u64) -> u64 {
    wish - wish / 4
}

/// Returns the length in packed bytes of a segment that consists of whole tiles of `tile` bytes each.
/// Returns `None` if there are no tiles or if a tile is longer than twice the wish.
fn tiles(tile: Option<u64>, wish: u64) -> Option<u64> {
    tile.filter(|&tile| tile <= wish.saturating_mul(2)).map(|tile| whole(wish, tile).max(tile))
}

/// Returns the largest multiple of `unit` that is at most `bytes`.
fn whole(bytes: u64, unit: u64) -> u64 {
    bytes / unit * unit
}

/// Returns the end of the segment that begins at `start`. `start` must be below `total`, and `wish`
/// must not be 0.
fn end_of_segment(program: &Program, tile: Option<u64>, total: u64, start: u64, wish: u64) -> u64 {
    if let Some((tile, bytes)) = tile.zip(tiles(tile, wish)) {
        // The segment may begin anywhere, but it ends at the end of a tile.
        return whole(start.saturating_add(bytes), tile).min(total);
    }
    let target = start.saturating_add(wish);
    let Some(body) = program.body.filter(|_| target < total) else { return total };
    let enough = start + least(wish);
    // `best` is the last end of a unit at or before `target`, among all levels visited so far;
    // `start` if there is no such end after `start`.
    let mut best = start.max(whole(target, program.factor * program.node(body.node).bytes));
    let mut node = program.node(body.node);
    // `begin` is the packed byte at which `node`, the node that contains `target`, begins.
    let mut begin = whole(target, node.bytes);
    loop {
        best = best.max(begin);
        if best >= enough {
            return best;
        }
        if node.bytes <= SHORT {
            return if best > start { best } else { begin + node.bytes };
        }
        let inside = target - begin;
        match &node.op {
            Op::Block => return in_block(begin, node.bytes, target, best, start),
            Op::Loop { body, .. } | Op::Table { body, .. } => {
                node = program.node(body.node);
                begin += whole(inside, node.bytes);
            }
            Op::Ragged { list, stride, body, .. } => {
                let unit = program.node(body.node).bytes;
                let copy = inside / unit;
                let (entry, index) = list.seek(copy);
                let entry_begin = begin + (copy - index) * unit;
                best = best.max(entry_begin);
                if best >= enough {
                    return best;
                }
                if program.is_dense(*stride, *body) {
                    let bytes = list.lengths.get(entry) as u64 * unit;
                    return in_block(entry_begin, bytes, target, best, start);
                }
                node = program.node(body.node);
                begin += copy * unit;
            }
            Op::Seq { parts } => {
                let part = parts.partition_point(|part| part.end <= inside);
                begin += if part == 0 { 0 } else { parts[part - 1].end };
                node = program.node(parts[part].edge.node);
            }
        }
    }
}

/// Returns the end of the segment that begins at `start`. `target`, which is `start` plus the wish,
/// lies inside a run of `bytes` bytes. The run begins at packed byte `begin`. `best` is the last end
/// of a unit up to the start of the run, or `start` if no unit ends after `start`.
fn in_block(begin: u64, bytes: u64, target: u64, best: u64, start: u64) -> u64 {
    let cut = begin + whole(target - begin, SHORT);
    if bytes > SHORT && cut > best {
        return cut;
    }
    if best > start { best } else { (cut + SHORT).min(begin + bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Datatype;

    fn plan(text: &str) -> Plan {
        text.parse::<Datatype>().unwrap().commit().unwrap()
    }

    /// Checks that each segment begins at the end of the previous one and that no segment is longer
    /// than the limit. Returns the lengths of the segments.
    fn check(plan: &Plan, count: u64, wish: u64) -> Vec<u64> {
        let total = plan.packed_bytes(count).unwrap();
        let (mut at, mut lengths) = (0, vec![]);
        for segment in plan.segments(count, wish).unwrap() {
            assert_eq!(segment.start, at);
            assert_eq!(plan.segment_end(count, at, wish).unwrap(), segment.end);
            let length = segment.end - at;
            assert!(length > 0 && length <= wish.max(SHORT), "{segment:?} for {wish}");
            at = segment.end;
            lengths.push(length);
        }
        assert_eq!(at, total);
        lengths
    }

    #[test]
    fn segments_end_at_the_coarsest_unit_that_fits() {
        // This subarray has 10 planes of 20 rows of 5 doubles.
        let box3 = plan("subarray([12, 30, 9], [10, 20, 5], [1, 1, 1], C, double)");
        assert_eq!(check(&box3, 1, 2000), [1600; 5]);
        assert_eq!(check(&box3, 1, 2300), [2280, 2280, 1840, 1600]);
        assert_eq!(box3.segment_bytes(2000), 1600);
        assert_eq!((box3.segment_bytes(900), box3.segment_bytes(700)), (800, 680));
        assert_eq!((box3.segment_bytes(8000), box3.segment_bytes(10_000)), (8000, 8000));
        assert_eq!(
            (box3.segment_bytes(20_000), box3.segment_bytes(u64::MAX)),
            (16_000, u64::MAX / 8000 * 8000)
        );
        assert_eq!(check(&box3, 4, 20_000), [16_000, 16_000]);
        // If the wish is shorter than a row, a row of 40 bytes still stays whole.
        assert_eq!(
            (box3.segment_bytes(39), box3.segment_bytes(0), box3.segment_bytes(79)),
            (40, 40, 40)
        );
        assert!(check(&box3, 1, 39).iter().all(|&length| length == 40));
        assert_eq!(check(&box3, 1, 0).len(), 200);
    }

    #[test]
    fn long_runs_are_cut_on_a_grid_and_short_parts_are_not() {
        let rows = plan("vector(3, 1000, 1001, double)");
        assert_eq!(check(&rows, 1, 3000), [2944, 2944, 2944, 2944, 2944, 2944, 2944, 2944, 448]);
        assert_eq!(
            (rows.segment_bytes(3000), rows.segment_bytes(9000), rows.segment_bytes(1)),
            (2944, 8000, 64)
        );
        let dense = plan("contiguous(1_000_000, double)");
        assert_eq!(check(&dense, 1, 3_000_001), [3_000_000, 3_000_000, 2_000_000]);
        assert_eq!((dense.segment_bytes(100), dense.segment_bytes(3_000_001)), (64, 3_000_000));
        let window = plan("struct([1, 1, 1], [0, 4, 8], [char, int, double])");
        assert_eq!(check(&window, 1000, 100)[..2], [91, 91]);
        assert_eq!((window.segment_bytes(100), window.segment_bytes(5)), (91, 13));
        assert_eq!(check(&plan("contiguous(0, int)"), 7, 100), []);
        assert_eq!(plan("contiguous(0, int)").segment_bytes(0), 1);
    }

    #[test]
    fn parts_of_different_lengths_are_followed() {
        let lists = plan("indexed([10, 3, 0, 7, 20], [0, 100, 3, 200, 300], int)");
        assert_eq!(check(&lists, 3, 60), [52, 28, 64, 56, 40, 64, 56, 40, 64, 16]);
        let copies = plan("indexed([10, 3, 0, 7, 20], [0, 100, 3, 200, 300], resized(0, 12, int))");
        for wish in 1..=170 {
            check(&lists, 3, wish);
            check(&copies, 3, wish);
        }
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let huge = plan("vector(1_000_000_000_000_000, 1, 2, double)");
        for start in [0, 1, (1 << 62) + 3, 8_000_000_000_000_000 - 1] {
            for wish in [0, 1, 64, 1 << 20, 1 << 62, u64::MAX] {
                if let Ok(end) = huge.segment_end(1, start, wish) {
                    assert!(end > start && end - start <= wish.max(SHORT));
                    assert!(end.is_multiple_of(8));
                }
            }
        }
        let error = huge.segment_end(1, 8_000_000_000_000_000, 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "start: a segment cannot begin at byte 8000000000000000; the packed form has \
             8000000000000000 bytes"
        );
        assert_eq!(huge.segments(u64::MAX, 1).unwrap_err().argument(), "count");
    }
}
