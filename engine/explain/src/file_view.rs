//! Shows where the bytes of several ranks lie in a file, as text and as SVG.
//!
//! Each rank sees the file through a view: a displacement, and a filetype that repeats. For the drawing, one
//! struct type holds the data of all ranks, one rank after another; `picture.rs` draws this type, with a colour
//! for each rank. The engine checks the filetypes as it does when a program sets a view.

use crate::picture::Picture;
use crate::pieces::Counts;
use crate::svg::{document, shortened};
use crate::terminal::drawn;
use std::fmt::Write;
use typepack_engine::{Datatype, FileView, Named, Result, Settings, text};

/// Maximum number of pieces that the table counts for a rank. Also the maximum number of pieces of all ranks
/// together for which holes and overlaps are counted.
const PIECES: usize = 1 << 20;

/// The views that several ranks have of one file.
#[derive(Clone, Debug)]
pub struct FileRanks {
    /// The displacement, the view and the filetype of each rank.
    views: Vec<(u64, FileView, Datatype)>,
    /// Number of copies of each rank's filetype that are shown.
    count: u64,
    /// The data of all ranks as one type, and the number of the first basic element of each rank.
    all: Datatype,
    firsts: Vec<i128>,
}

/// How the ranks cover the file, as numbers of bytes.
struct Coverage {
    /// Bytes between the start of the first piece and the end of the last piece of any rank.
    bytes: u64,
    /// Bytes that belong to no rank.
    holes: u64,
    /// Bytes that belong to several ranks, or to one rank several times.
    shared: u64,
}

impl FileRanks {
    /// The largest number of ranks that a drawing tells apart.
    pub const MOST: usize = 52;

    /// Makes the views from the displacement (in bytes) and the filetype of each rank. The report and the drawing
    /// show `count` copies of each filetype. Ranks beyond the first [`MOST`](Self::MOST) are left out.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`FileView::new`] for each filetype, and the errors of constructors if the file
    /// would be longer than 2^63 - 1 bytes.
    pub fn new(ranks: &[(u64, Datatype)], count: u64) -> Result<Self> {
        let byte = Datatype::named(Named::BYTE);
        let (mut views, mut parts, mut places) = (Vec::new(), Vec::new(), Vec::new());
        let (mut firsts, mut first) = (Vec::new(), 0);
        let copies = i64::try_from(count).unwrap_or(i64::MAX);
        for (displacement, filetype) in ranks.iter().take(Self::MOST) {
            let view = FileView::new(&byte, filetype, &Settings::default())?;
            // No file has a byte at a displacement above `i64::MAX`. If the filetype has data, `structured` below
            // refuses the displacement `i64::MAX`, because the end of the data overflows.
            let place = i64::try_from(*displacement).unwrap_or(i64::MAX);
            let part = Datatype::contiguous(copies, filetype)?;
            firsts.push(first);
            first += Counts::new(&part).of(&part);
            views.push((*displacement, view, filetype.clone()));
            places.push(place);
            parts.push(part);
        }
        let all = Datatype::structured(&vec![1; parts.len()], &places, &parts)?;
        Ok(Self { views, count: copies as u64, all, firsts })
    }

    fn picture(&self) -> Option<Picture> {
        Picture::of_ranks(&self.all, self.firsts.clone())
    }

    /// Returns a report: a table of the ranks, the drawing, and how the ranks cover the file. If `colour` is
    /// true, the drawing uses ANSI colours.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`FileView::pieces`] and [`FileView::span`].
    pub fn report(&self, colour: bool) -> Result<String> {
        let mut out = String::from("Ranks\n");
        let _ = writeln!(
            out,
            "  {:>4}  {:>12}  {:>10}  {:>8}  {:>10}  {:>10}  filetype",
            "rank", "displacement", "bytes", "pieces", "first byte", "last byte"
        );
        for (rank, (displacement, view, filetype)) in self.views.iter().enumerate() {
            let bytes = view.filetype_bytes().saturating_mul(self.count);
            let (pieces, low, high) = if bytes == 0 {
                ("0".to_owned(), "-".to_owned(), "-".to_owned())
            } else {
                let pieces = view.pieces(0, bytes)?.take(PIECES + 1).count();
                let pieces =
                    if pieces > PIECES { format!("> {PIECES}") } else { pieces.to_string() };
                let span = view.span(0, bytes)?;
                let place = |at: u64| (displacement + at).to_string();
                (pieces, place(span.start), place(span.end - 1))
            };
            let _ = writeln!(
                out,
                "  {rank:>4}  {displacement:>12}  {bytes:>10}  {pieces:>8}  {low:>10}  {high:>10}  {}",
                text::abridge(filetype)
            );
        }
        out.push_str("\nFile\n");
        let drawing = self.picture().map_or("no data\n".to_owned(), |p| drawn(&p, colour));
        for line in drawing.lines() {
            let _ = writeln!(out, "{}", format!("  {line}").trim_end());
        }
        out.push_str("\nCoverage\n  ");
        out.push_str(&match self.coverage()? {
            None => format!(
                "the ranks have more than {PIECES} pieces; holes and overlaps are not counted"
            ),
            Some(Coverage { bytes: 0, .. }) => "no data".to_owned(),
            Some(Coverage { bytes, holes: 0, shared: 0 }) => {
                format!("each of the {bytes} bytes belongs to exactly one rank")
            }
            Some(Coverage { bytes, holes, shared }) => {
                format!("of {bytes} bytes, {holes} belong to no rank and {shared} to several views")
            }
        });
        out.push('\n');
        Ok(out)
    }

    /// Returns the drawing as an SVG document.
    pub fn svg(&self) -> String {
        let (first, ranks) = (self.views.first(), self.views.len());
        let filetype = first.map_or(String::new(), |(_, _, filetype)| text::abridge(filetype));
        let plural = if ranks == 1 { "rank" } else { "ranks" };
        let title = format!("file of {ranks} {plural}; filetype of rank 0: {filetype}");
        document(&shortened(title), self.picture().as_ref())
    }

    /// Counts holes and overlaps, unless there are too many pieces.
    fn coverage(&self) -> Result<Option<Coverage>> {
        // The pieces of a rank need not come in file order: copies of its filetype may lie anywhere.
        let mut pieces: Vec<(u64, u64)> = Vec::new();
        for (displacement, view, _) in &self.views {
            let bytes = view.filetype_bytes().saturating_mul(self.count);
            if bytes > 0 {
                let most = PIECES + 1 - pieces.len();
                pieces.extend(view.pieces(0, bytes)?.take(most).map(|piece| {
                    let low = displacement + piece.offset as u64;
                    (low, low + piece.bytes)
                }));
            }
            if pieces.len() > PIECES {
                return Ok(None);
            }
        }
        pieces.sort_unstable();
        let start = pieces.first().map_or(0, |(low, _)| *low);
        // `once` is the largest end of a piece so far. `twice` is the end of the last shared bytes that are
        // already counted.
        let (mut once, mut twice) = (start, start);
        let (mut holes, mut shared) = (0, 0);
        for (low, high) in pieces {
            holes += low.saturating_sub(once);
            let both = high.min(once);
            shared += both.saturating_sub(low.max(twice));
            twice = twice.max(both);
            once = once.max(high);
        }
        Ok(Some(Coverage { bytes: once - start, holes, shared }))
    }
}
