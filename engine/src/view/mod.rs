//! File views: which bytes of a file a rank sees, and in which order (MPI-5.0 section 14.3).
//!
//! A view is the plan of a filetype that repeats without end from the view's displacement on. The plan
//! remains a loop program: `seek` finds positions in it, and no list of the pieces (the runs of bytes of
//! the file) is made, whatever the size of the file. *Positions* count bytes of the view's data (*view
//! bytes*). *Offsets* count bytes of the file from the view's displacement on, so the caller adds the
//! displacement.
//!
//! The displacements of one filetype never decrease, and in a file that may be written they do not overlap. Neither
//! holds for its copies: the extent may be smaller than the data, 0 or negative. So view bytes are in the order of
//! the file within one copy, but an access that covers several copies may be neither ordered nor disjoint
//! ([`FileView::ordered`]). Such an access stores its bytes in the order of the view, so the later of two bytes at the
//! same offset wins.
//!
//! [`FileView::span`] finds the range of the file that an access covers. Locks, and the size of a file after a write,
//! depend on it. If the copies of the filetype are in order, the first and the last view byte bound the range. If not, the
//! parts of an access that lie in one filetype each are in order, and the whole filetypes between the first and the last
//! one lie at equal distances. So at most four parts bound the range.
//!
//! [`FileView::write_raw`] and [`FileView::read_raw`] copy between memory and a view of a mapped file, natively in one
//! fused copy (`transfer/`). In external32, the view bytes are bytes of the external32 form of the memory. A long piece (a
//! run of bytes of the file) is converted in place; shorter pieces go through a buffer that stays in the L1 cache. The
//! runtime's file code uses this folder.
//!
//! - `order.rs`: checks that displacements are neither negative nor decreasing
//! - `etypes.rs`: checks that a filetype consists of whole etypes
//! - `ends.rs`: finds the first view byte at or after an offset, for the end of the file
//! - `widths.rs`: types as they are in a file whose representation changes sizes
//!
//! ```
//! use typepack_engine::{Datatype, FileView, Named, Settings};
//!
//! // The second of every three ints of the file.
//! let int = Datatype::named(Named::INT);
//! let filetype = Datatype::resized(0, 12, &Datatype::indexed_block(1, &[1], &int)?)?;
//! let view = FileView::new(&int, &filetype, &Settings::default())?;
//! assert_eq!((view.offset(0)?, view.offset(9)?), (4, 29));
//! let pieces: Vec<_> = view.pieces(2, 6)?.map(|piece| (piece.offset, piece.bytes)).collect();
//! assert_eq!(pieces, [(6, 2), (16, 4)]);
//! // A file of 30 bytes ends inside the third etype, so a read gets 10 bytes.
//! assert_eq!(view.readable(0, 100, 30)?, 10);
//! assert_eq!(view.etypes_at(30), 3);
//! # Ok::<(), typepack_engine::Error>(())
//! ```

mod ends;
mod etypes;
mod order;
mod widths;

pub use widths::in_file;

use crate::analysis::cursor::Cursor;
use crate::analysis::{Facts, summarize};
use crate::datatype::Datatype;
use crate::error::{Error, ErrorKind, Result, counted};
use crate::exec::{Elements, pack_raw, unpack_raw};
use crate::external32::{External32, pack_external_raw, unpack_external_raw};
use crate::ir::Run;
use crate::plan::{Plan, Settings};
use crate::transfer::copy_apart_raw;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Size of the longest basic type, in bytes.
const LONGEST: u64 = 32;

/// Size of the buffer in bytes: half of a typical L1 cache.
const BUFFER: u64 = 16 << 10;

/// Minimum length, in bytes, of a piece that is converted in place. If fewer bytes are left to copy, a piece
/// with all of them is converted in place too.
const ALONE: u64 = 2 << 10;

/// The etype and the filetype of a view, as they are in the file. Cloning a view copies a few numbers
/// and a list of one number per program node.
#[derive(Clone, Debug)]
pub struct FileView {
    etype: Datatype,
    plan: Plan,
    etype_bytes: u64,
    /// Distance from one filetype to the next, in bytes.
    extent: i64,
    /// True if later view bytes lie at greater offsets, in any number of filetypes.
    ordered: bool,
    /// True if later view bytes of one filetype lie at greater offsets.
    tile_ordered: bool,
    /// For each node of the program: where its data ends, as a displacement from the node in bytes.
    ends: Box<[i128]>,
}

impl FileView {
    /// Makes a view of a file in the native representation. Both types describe bytes of the file. For
    /// other representations, pass the results of [`in_file`].
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Type` for `etype` or `filetype` in these cases:
    ///
    /// - The etype has no data, but the filetype has.
    /// - A displacement is negative, or smaller than the one before it. This rule holds for the displacements
    ///   inside the type, not for those of its copies.
    /// - The filetype does not consist of whole etypes (see [`FileView::check_etypes`]).
    ///
    /// Returns the errors of [`Datatype::commit`].
    #[doc(alias = "MPI_File_set_view")]
    pub fn new(etype: &Datatype, filetype: &Datatype, settings: &Settings) -> Result<Self> {
        let plan = filetype.commit_with(settings)?;
        if etype.size() == 0 && plan.element_bytes() > 0 {
            let detail =
                "the type has data, but the etype has none; a filetype consists of whole etypes";
            return Err(Error::new(ErrorKind::Type, "filetype", detail));
        }
        // A view of empty etypes has no data, so every offset means the same.
        let etype_bytes = etype.size().max(1) as u64;
        order::check(filetype, "filetype")?;
        if !filetype.is_same(etype) {
            order::check(etype, "etype")?;
            etypes::check(etype, &plan)?;
        }
        let ends = summarize(plan.program()).iter().map(|summary| summary.high).collect();
        let facts = Facts::of(&plan);
        Ok(Self {
            etype: etype.clone(),
            etype_bytes,
            extent: plan.footprint().extent,
            ordered: facts.monotone_elements,
            tile_ordered: facts.monotone,
            ends,
            plan,
        })
    }

    /// Returns the plan of the filetype.
    pub fn filetype(&self) -> &Plan {
        &self.plan
    }

    /// Returns the etype as it is in the file.
    pub fn etype(&self) -> &Datatype {
        &self.etype
    }

    /// Returns the number of view bytes of an etype; 1 if the etype has none, as the view then has no data.
    pub fn etype_bytes(&self) -> u64 {
        self.etype_bytes
    }

    /// Returns the number of view bytes of a filetype; 0 if the view has no data.
    pub fn filetype_bytes(&self) -> u64 {
        self.plan.element_bytes()
    }

    /// Returns how many of the `length` view bytes from `position` on come before the first one that may lie at a
    /// smaller offset than an earlier one of them, or at the same. This is `length` if the copies of the filetype are
    /// in order, and otherwise at most the rest of the first filetype. The result is 0 if the data of one filetype
    /// overlaps; such a view can only be read.
    pub fn ordered(&self, position: u64, length: u64) -> u64 {
        match (self.ordered, self.tile_ordered, self.filetype_bytes()) {
            (true, ..) | (_, _, 0) => length,
            (_, false, _) => 0,
            (_, true, each) => length.min(each - position % each),
        }
    }

    /// Checks that the data of one filetype does not overlap, as the view of a file that is opened for writing
    /// requires. Copies of the filetype may overlap.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Type` for `filetype` if the filetype overlaps.
    pub fn check_writable(&self) -> Result<()> {
        if self.tile_ordered {
            return Ok(());
        }
        let detail = "its elements overlap; a file that is open for writing needs elements that do not overlap";
        Err(Error::new(ErrorKind::Type, "filetype", detail))
    }

    /// Returns the number of filetypes that hold the first `end` view bytes.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Type` for `filetype` if `end` is not 0 and the view has no data. Returns
    /// `ErrorKind::Overflow` for `position` if these filetypes have more than 2^63 - 1 view bytes, if their data
    /// ends beyond offset 2^63 - 1, or if it begins before offset 0 because the extent is negative.
    pub fn tiles(&self, end: u64) -> Result<u64> {
        if end == 0 {
            return Ok(0);
        }
        let each = self.plan.element_bytes();
        if each == 0 {
            return Err(Error::new(
                ErrorKind::Type,
                "filetype",
                format!("the filetype has no data, but {} of the view are needed", bytes(end)),
            ));
        }
        let tiles = end.div_ceil(each);
        let packed = i128::from(tiles) * i128::from(each);
        let (last, shape) = (self.place_of(tiles - 1), self.plan.footprint());
        let reach = last.max(0) + i128::from(shape.true_ub);
        let fault = match last + i128::from(shape.true_lb) {
            _ if packed.max(reach) > i128::from(i64::MAX) => "end beyond 2^63 - 1 bytes",
            0.. => return Ok(tiles),
            _ => "begin before the displacement of the view",
        };
        let detail =
            format!("the filetypes that hold the first {} of the view {fault}", bytes(end));
        Err(Error::new(ErrorKind::Overflow, "position", detail))
    }

    /// Returns the displacement of filetype number `tile`.
    fn place_of(&self, tile: u64) -> i128 {
        i128::from(tile) * i128::from(self.extent)
    }

    /// Returns the offset of view byte `position`, in O(depth + log list length).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`FileView::tiles`] for the first `position + 1` view bytes.
    #[doc(alias = "MPI_File_get_byte_offset")]
    pub fn offset(&self, position: u64) -> Result<u64> {
        let piece = self.pieces(position, 1)?.next();
        let piece = piece.ok_or_else(|| {
            Error::new(
                ErrorKind::Internal,
                "position",
                format!("no piece of the file holds view byte {position}"),
            )
        })?;
        Ok(piece.offset as u64)
    }

    /// Returns the pieces of the file that hold `length` view bytes from `position` on, in the order of the
    /// view. The offset of a piece counts from the view's displacement. Pieces that touch are joined. The
    /// first piece is found in O(depth + log list length) steps, and each further piece in constant time on
    /// average.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`FileView::tiles`] for the first `position + length` view bytes.
    pub fn pieces(&self, position: u64, length: u64) -> Result<Pieces<'_>> {
        let tiles = self.tiles(past(position, length)?)?;
        let position = if length == 0 { 0 } else { position };
        Ok(Pieces { cursor: Cursor::at(&self.plan, tiles, position)?, left: length })
    }

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

    /// Copies packed bytes `at..at + bytes` of `memory` to view bytes `position..position + bytes`. `file`
    /// is the address of the file's byte at the view's displacement; it need not lie inside the mapping.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`FileView::tiles`] for the first `position + bytes` view bytes, before
    /// anything is copied.
    ///
    /// # Safety
    ///
    /// - `at + bytes` is at most the result of [`Plan::packed_bytes`] for the
    ///   count of `memory`. These bytes of its type map are valid for reads.
    /// - Relative to `file`, the pieces of the view that hold the view bytes are valid for writes (and
    ///   for reads under `Settings::verify`).
    /// - No byte is both read and written.
    pub unsafe fn write_raw(
        &self,
        memory: Elements<&Plan>,
        at: u64,
        file: *mut u8,
        position: u64,
        bytes: u64,
    ) -> Result<()> {
        let count = self.tiles(past(position, bytes)?)?;
        let file = Elements { origin: file, plan: self.filetype(), count };
        // SAFETY: `tiles` returned a count that holds the view bytes up to `position + bytes`. The
        // caller guarantees that the bytes of both sides are valid and do not overlap.
        unsafe { copy_apart_raw(memory, at, file, position, bytes) };
        Ok(())
    }

    /// Copies view bytes `position..position + bytes` to packed bytes `at..at + bytes` of `memory`. `file`
    /// is the address of the file's byte at the view's displacement; it need not lie inside the mapping.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`FileView::tiles`] for the first `position + bytes` view bytes, before
    /// anything is copied.
    ///
    /// # Safety
    ///
    /// - `at + bytes` is at most the result of [`Plan::packed_bytes`] for the
    ///   count of `memory`. These bytes of its type map are valid for writes (and for reads under
    ///   `Settings::verify`).
    /// - Relative to `file`, the pieces of the view that hold the view bytes are valid for reads.
    /// - No byte is both read and written.
    pub unsafe fn read_raw(
        &self,
        memory: Elements<&Plan>,
        at: u64,
        file: *const u8,
        position: u64,
        bytes: u64,
    ) -> Result<()> {
        let count = self.tiles(past(position, bytes)?)?;
        let file = Elements { origin: file.cast_mut(), plan: self.filetype(), count };
        // SAFETY: `tiles` returned a count that holds the view bytes up to `position + bytes`. The
        // caller guarantees that the bytes of both sides are valid and do not overlap.
        unsafe { copy_apart_raw(file, position, memory, at, bytes) };
        Ok(())
    }

    /// Converts bytes `at..at + bytes` of the external32 form of `count` elements, and stores them as view
    /// bytes `position..position + bytes`. `origin` is the address of displacement 0 of the elements.
    /// `file` is the address of the file's byte at the view's displacement.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`FileView::tiles`] before anything is copied, and those of
    /// [`pack_external_raw`]. If a value does not fit in its external size, any of these view bytes may
    /// already have been written.
    ///
    /// # Safety
    ///
    /// - All data of each basic element to which some of the bytes belong is valid for reads.
    /// - Relative to `file`, the pieces of the view that hold the view bytes are valid for writes (and
    ///   for reads under `Settings::verify`).
    /// - No byte is both read and written.
    #[expect(
        clippy::too_many_arguments,
        reason = "the elements, the file, and the length of the copy"
    )]
    pub unsafe fn write_external_raw(
        &self,
        external: &External32,
        count: u64,
        origin: *const u8,
        at: u64,
        file: *mut u8,
        position: u64,
        bytes: u64,
    ) -> Result<()> {
        let tiles = self.tiles(past(position, bytes)?)?;
        let plan = self.filetype();
        self.steps(tiles, position, bytes, |done, length, direct, buffer| {
            let range = at + done..at + done + length;
            let target = direct.map_or(buffer, |offset| file.wrapping_offset(offset as isize));
            // SAFETY: `steps` divides the caller's bytes, which are valid in memory. The target is either one
            // piece of the view, which is valid for `length` bytes, or the buffer, which has at least
            // `length` bytes and overlaps nothing. In the second case, `unpack_raw` reads the bytes that
            // `pack_external_raw` has written to the buffer, and writes view bytes that lie in the first
            // `tiles` filetypes.
            unsafe {
                pack_external_raw(external, count, origin, range, target)?;
                if direct.is_none() {
                    let first = position + done;
                    unpack_raw(plan, tiles, file, first..first + length, buffer);
                }
            }
            Ok(())
        })
    }

    /// Converts view bytes `position..position + bytes`, which are bytes `at..at + bytes` of the external32
    /// form, to `count` elements in memory. `origin` is the address of displacement 0 of the elements. `file`
    /// is the address of the file's byte at the view's displacement. If the range ends inside a basic element
    /// that must be converted, the memory of this element holds the external bytes read so far, until a later
    /// call reads the rest (see [`unpack_external_raw`]).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`FileView::tiles`] before anything is copied, and those of
    /// [`unpack_external_raw`].
    ///
    /// # Safety
    ///
    /// - All data of each basic element to which some of the bytes belong is valid for writes and reads.
    /// - Relative to `file`, the pieces of the view that hold the view bytes are valid for reads.
    /// - No byte is both read and written.
    #[expect(
        clippy::too_many_arguments,
        reason = "the elements, the file, and the length of the copy"
    )]
    pub unsafe fn read_external_raw(
        &self,
        external: &External32,
        count: u64,
        origin: *mut u8,
        at: u64,
        file: *const u8,
        position: u64,
        bytes: u64,
    ) -> Result<()> {
        let tiles = self.tiles(past(position, bytes)?)?;
        let plan = self.filetype();
        self.steps(tiles, position, bytes, |done, length, direct, buffer| {
            let range = at + done..at + done + length;
            // SAFETY: `steps` divides the caller's bytes, which are valid in the file and in memory. The
            // source is either one piece of the view, which is valid for `length` bytes, or the buffer,
            // which has at least `length` bytes and overlaps nothing. `pack_raw` fills the buffer before it
            // is read.
            unsafe {
                let source = match direct {
                    Some(offset) => file.wrapping_offset(offset as isize),
                    None => {
                        let first = position + done;
                        pack_raw(plan, tiles, file, first..first + length, buffer);
                        buffer.cast_const()
                    }
                };
                unpack_external_raw(external, count, origin, range, source)
            }
        })
    }

    /// Divides `bytes` view bytes from `position` on into steps, in order. Calls `step` once for each step.
    /// The arguments of `step` are the distance from `position` to the start of the step, in view bytes; the
    /// length of the step; the file offset if the step lies in one piece (`None` otherwise); and a buffer of
    /// `BUFFER` bytes.
    fn steps(
        &self,
        tiles: u64,
        position: u64,
        bytes: u64,
        mut step: impl FnMut(u64, u64, Option<i64>, *mut u8) -> Result<()>,
    ) -> Result<()> {
        let mut buffer = [MaybeUninit::<u8>::uninit(); BUFFER as usize];
        let buffer = buffer.as_mut_ptr().cast::<u8>();
        if bytes == 0 {
            return Ok(());
        }
        let mut cursor = Cursor::at(self.filetype(), tiles, position)?;
        let mut done = 0;
        while done < bytes {
            let left = bytes - done;
            let piece = cursor.run().filter(|piece| piece.bytes >= ALONE.min(left));
            let length = piece.map_or(BUFFER, |piece| piece.bytes).min(left);
            step(done, length, piece.map(|piece| piece.offset), buffer)?;
            done += length;
            cursor.seek(position + done)?;
        }
        Ok(())
    }
}

/// Returns the position after `length` view bytes from `position` on; 0 if `length` is 0, so that an empty
/// range needs no filetypes. Returns `ErrorKind::Overflow` for `position` if the sum exceeds 2^64 - 1.
fn past(position: u64, length: u64) -> Result<u64> {
    if length == 0 {
        return Ok(0);
    }
    position.checked_add(length).ok_or_else(|| {
        let detail = format!(
            "a range of {} from view byte {position} on ends beyond view byte 2^64 - 1",
            bytes(length)
        );
        Error::new(ErrorKind::Overflow, "position", detail)
    })
}

fn bytes(number: u64) -> String {
    counted(number, "byte", "bytes")
}

/// The pieces of a view, made by [`FileView::pieces`].
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    cursor: Cursor<'a>,
    left: u64,
}

impl Iterator for Pieces<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let mut piece = self.cursor.run().filter(|_| self.left > 0)?;
        piece.bytes = piece.bytes.min(self.left);
        self.cursor.advance(piece.bytes);
        self.left -= piece.bytes;
        while self.left > 0
            && let Some(next) = self.cursor.run()
            && next.offset == piece.offset.wrapping_add(piece.bytes as i64)
        {
            let more = next.bytes.min(self.left);
            self.cursor.advance(more);
            self.left -= more;
            piece.bytes += more;
        }
        Some(piece)
    }
}
