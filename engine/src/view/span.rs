//! Finds the range of the file that an access covers. Locks, and the size of a file after a write, depend on it.
//!
//! If the copies of the filetype are in order, the first and the last view byte bound the range. If not, the parts of
//! an access that lie in one filetype each are in order, and the whole filetypes between the first and the last one lie
//! at equal distances. So at most four parts bound the range.

use super::{FileView, past};
use crate::error::Result;
use std::ops::Range;

/// Size of the longest basic type, in bytes.
const LONGEST: u64 = 32;

impl FileView {
    /// Returns the range of offsets from the smallest to the greatest one of the `length` view bytes from `position`
    /// on. The range is empty if `length` is 0. In a view whose filetype overlaps, which can only be read, the range
    /// may begin up to 31 bytes too early and end up to 31 bytes too late.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`FileView::tiles`] for the first `position + length` view bytes.
    pub fn span(&self, position: u64, length: u64) -> Result<Range<u64>> {
        let Some(last) = length.checked_sub(1) else { return Ok(0..0) };
        self.tiles(past(position, length)?)?;
        if self.ordered {
            return Ok(self.offset(position)?..self.offset(position + last)? + 1);
        }
        let (mut low, mut high) = (u64::MAX, 0);
        for part in self.parts(position, length) {
            let Range { start, end } = self.range_of(part)?;
            (low, high) = (low.min(start), high.max(end));
        }
        Ok(low..high)
    }

    /// Returns the position of the one of the `length` view bytes from `position` on that lies at the greatest offset;
    /// of several ones there, the last. `length` must not be 0. The data of one filetype must not overlap
    /// ([`FileView::check_writable`]).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`FileView::tiles`] for the first `position + length` view bytes.
    pub fn highest(&self, position: u64, length: u64) -> Result<u64> {
        let end = past(position, length)?;
        self.tiles(end)?;
        let mut found = (0, end.saturating_sub(1));
        if !self.ordered {
            for part in self.parts(position, length) {
                let last = part.end - 1;
                found = found.max((self.offset(last)?, last));
            }
        }
        Ok(found.1)
    }

    /// Returns the parts of an access that bound its range, in the order of the view. No part is empty, and each lies
    /// in one filetype. `length` must not be 0, and the view must have data.
    fn parts(&self, position: u64, length: u64) -> impl Iterator<Item = Range<u64>> {
        let (each, end) = (self.filetype_bytes().max(1), position + length);
        let (first, last) = (position / each, (end - 1) / each);
        let tiles = [first, first + 1, last.saturating_sub(1).max(first), last];
        let mut before = None;
        tiles.into_iter().filter_map(move |tile| {
            let is_new = tile <= last && before.is_none_or(|before| before < tile);
            is_new.then(|| {
                before = Some(tile);
                (tile * each).max(position)..(tile * each).saturating_add(each).min(end)
            })
        })
    }

    /// Returns the range of offsets of the view bytes of `part`, which lie in one filetype.
    fn range_of(&self, part: Range<u64>) -> Result<Range<u64>> {
        let range = self.offset(part.start)?..self.offset(part.end - 1)? + 1;
        if self.tile_ordered {
            return Ok(range);
        }
        let (each, shape) = (self.filetype_bytes(), self.filetype().footprint());
        // `tiles` has checked that the data of the filetype lies at offsets of a file.
        let place = |at: i64| (self.place_of(part.start / each) + i128::from(at)) as u64;
        let tile = place(shape.true_lb)..place(shape.true_ub);
        if part.end - part.start == each {
            return Ok(tile);
        }
        // Basic elements begin in the order of the view. So every element between the two positions begins at
        // or after the start of the element at the first position, and at or before the start of the element that
        // holds the last byte. But an element that begins earlier may end later.
        let start = range.start.saturating_sub(LONGEST - 1).max(tile.start);
        Ok(start..(range.end + LONGEST - 1).min(tile.end))
    }
}
