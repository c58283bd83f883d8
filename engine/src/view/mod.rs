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
//! `copy.rs` moves data between memory and a mapped file, with the functions of `transfer/` and
//! `external32/`. The runtime's file code uses this folder.
//!
//! - `order.rs`: checks that displacements are neither negative nor decreasing
//! - `etypes.rs`: checks that a filetype consists of whole etypes
//! - `span.rs`: finds the range of the file that an access covers
//! - `ends.rs`: finds the first view byte at or after an offset, for the end of the file
//! - `copy.rs`: copies between memory and a view, natively or with conversion to external32
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

mod copy;
mod ends;
mod etypes;
mod order;
mod span;
mod widths;

pub use widths::in_file;

use crate::analysis::cursor::Cursor;
use crate::analysis::{Facts, summarize};
use crate::datatype::Datatype;
use crate::error::{Error, ErrorKind, Result, counted};
use crate::ir::Run;
use crate::plan::{Plan, Settings};

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
