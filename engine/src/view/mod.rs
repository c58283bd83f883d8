//! File views: which bytes of a file a rank sees, and in which order (MPI-5.0 section 14.3).
//!
//! A view is the plan of a filetype that repeats without end from the view's displacement on. The plan
//! remains a loop program: `seek` finds positions in it, and no list of the pieces (the runs of bytes of
//! the file) is made, whatever the size of the file. *Positions* count bytes of the view's data (*view
//! bytes*). *Offsets* count bytes of the file from the view's displacement on, so the caller adds the
//! displacement.
//!
//! `copy.rs` moves data between memory and a mapped file, with the functions of `transfer/` and
//! `external32/`. The runtime's file code uses this folder.
//!
//! - `order.rs`: checks that displacements are neither negative nor decreasing
//! - `etypes.rs`: checks that a filetype consists of whole etypes
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
mod widths;

pub use widths::in_file;

use crate::analysis::cursor::Cursor;
use crate::analysis::{Facts, summarize};
use crate::datatype::Datatype;
use crate::error::{Error, ErrorKind, Result, counted};
use crate::ir::Run;
use crate::plan::{Plan, Settings};
use std::ops::Range;

/// The etype and the filetype of a view, as they are in the file. Cloning a view copies a few numbers
/// and a list of one number per program node.
#[derive(Clone, Debug)]
pub struct FileView {
    etype: Datatype,
    plan: Plan,
    etype_bytes: u64,
    /// Distance from one filetype to the next, in bytes; not 0 if the filetype has data.
    extent: u64,
    /// True if no two view bytes lie at the same offset, so that later view bytes lie at greater offsets.
    disjoint: bool,
    /// For each node of the program: where its data ends, as a displacement from the node in bytes.
    ends: Box<[i128]>,
}

/// Size of the longest basic type, in bytes.
const LONGEST: u64 = 32;

impl FileView {
    /// Makes a view of a file in the native representation. Both types describe bytes of the file. For
    /// other representations, pass the results of [`in_file`].
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Type` for `etype` or `filetype` in these cases:
    ///
    /// - The etype has no data.
    /// - A displacement is negative, or smaller than the one before it.
    /// - The extent of a type with data is not positive, or a copy of a type begins before the last element
    ///   of the copy before it.
    /// - The filetype does not consist of whole etypes, holes included (see [`FileView::check_etypes`]).
    ///
    /// Returns the errors of [`Datatype::commit`].
    #[doc(alias = "MPI_File_set_view")]
    pub fn new(etype: &Datatype, filetype: &Datatype, settings: &Settings) -> Result<Self> {
        let etype_bytes = etype.size() as u64;
        if etype_bytes == 0 {
            return Err(Error::new(
                ErrorKind::Type,
                "etype",
                "the type has no data; an etype must contain at least one basic element",
            ));
        }
        let plan = filetype.commit_with(settings)?;
        order::check(filetype, "filetype")?;
        if !filetype.is_same(etype) {
            order::check(etype, "etype")?;
            Self::check_etypes(etype, filetype)?;
        }
        let ends = summarize(plan.program()).iter().map(|summary| summary.high).collect();
        Ok(Self {
            etype: etype.clone(),
            etype_bytes,
            extent: filetype.extent().max(0) as u64,
            disjoint: Facts::of(&plan).monotone_elements,
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

    /// Returns the number of view bytes of an etype; never 0.
    pub fn etype_bytes(&self) -> u64 {
        self.etype_bytes
    }

    /// Returns the number of view bytes of a filetype; 0 if the view has no data.
    pub fn filetype_bytes(&self) -> u64 {
        self.plan.element_bytes()
    }

    /// Returns true if no two view bytes lie at the same offset, in any number of filetypes. Then a later
    /// view byte always lies at a greater offset. Only such a view may be written.
    pub fn is_disjoint(&self) -> bool {
        self.disjoint
    }

    /// Checks that no two view bytes lie at the same offset, as the view of a file that is opened for
    /// writing requires.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Type` for `filetype` if the filetype, or two filetypes in succession, overlap.
    pub fn check_writable(&self) -> Result<()> {
        if self.disjoint {
            return Ok(());
        }
        let detail = match Facts::of(&self.plan).monotone {
            true => format!(
                "its data ends at byte {}, but the next filetype begins after {}, so the two overlap; \
                 a file that is open for writing needs filetypes that do not overlap",
                self.plan.footprint().true_ub,
                counted(self.extent, "byte", "bytes")
            ),
            false => {
                "its elements overlap; a file that is open for writing needs elements that do not \
                      overlap"
                    .into()
            }
        };
        Err(Error::new(ErrorKind::Type, "filetype", detail))
    }

    /// Returns the number of filetypes that hold the first `end` view bytes.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Type` for `filetype` if `end` is not 0 and the view has no data. Returns
    /// `ErrorKind::Overflow` for `position` if these filetypes have more than 2^63 - 1 view bytes, or if the
    /// data of the last of them ends beyond offset 2^63 - 1.
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
        let last = i128::from(tiles - 1) * i128::from(self.extent);
        let reach = last + i128::from(self.plan.footprint().true_ub);
        if packed.max(reach) > i128::from(i64::MAX) {
            let detail = format!(
                "the filetypes that hold the first {} of the view end beyond 2^63 - 1 bytes",
                bytes(end)
            );
            return Err(Error::new(ErrorKind::Overflow, "position", detail));
        }
        Ok(tiles)
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

    /// Returns the range of offsets that contains the `length` view bytes from `position` on. It begins at
    /// the offset of the first of these bytes, and ends one past the offset of the last. The range is empty
    /// if `length` is 0. In a view whose data overlaps, which can only be read, the range may begin up to 31
    /// bytes too early and end up to 31 bytes too late.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`FileView::tiles`] for the first `position + length` view bytes.
    pub fn span(&self, position: u64, length: u64) -> Result<Range<u64>> {
        let Some(last) = length.checked_sub(1) else { return Ok(0..0) };
        let tiles = self.tiles(past(position, length)?)?;
        let first = self.offset(position)?;
        let end = self.offset(position + last)? + 1;
        if self.disjoint {
            return Ok(first..end);
        }
        // Basic elements begin in the order of the view. So every element between the two positions begins at
        // or after the start of the element at `position`, and at or before the start of the element that
        // holds the last byte. But an element that begins earlier may end later.
        let footprint = self.plan.footprint();
        let most = (tiles - 1) * self.extent + footprint.true_ub as u64;
        let first = first.saturating_sub(LONGEST - 1).max(footprint.true_lb as u64);
        Ok(first..(end + LONGEST - 1).min(most))
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
