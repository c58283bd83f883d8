//! Views: which bytes of the file a rank sees, and in which order (MPI-5.0 section 14.3).
//!
//! The engine's [`FileView`] has the types of a view as they are in the file, and finds positions by a `seek`
//! in their program; no list of the pieces exists. This file adds the displacement and the representation.
//! Positions in a view are counted in bytes of the view's data in the file ("view bytes"). The program
//! counts in etypes.

use super::representation::Representation;
use crate::commit::engine_settings;
use crate::{Datatype, Error, ErrorKind, Named, Plan, Result};
use std::fmt;
use std::ops::Range;
use typepack_engine::analysis::Facts;
use typepack_engine::{Elements, FileView, pack_external_size};

/// A view of a file.
#[derive(Clone)]
pub struct View {
    displacement: u64,
    etype: Datatype,
    filetype: Datatype,
    representation: Representation,
    map: FileView,
    /// The offset of view byte 0 from the beginning of the file, if the view is one run of the file.
    run: Option<u64>,
    /// Number of pieces of the filetype, at least 1.
    pieces: u64,
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("displacement", &self.displacement)
            .field("etype_bytes", &self.map.etype_bytes())
            .field("filetype_bytes", &self.map.filetype_bytes())
            .field("representation", &self.representation)
            .finish_non_exhaustive()
    }
}

fn out_of_range(at: u64) -> Error {
    let detail =
        format!("{at} is too large: the view would reach beyond byte 2^63 - 1 of the file");
    Error::new(ErrorKind::Argument, "offset", detail)
}

impl View {
    /// Returns the view of a file that has just been opened: all bytes, one after another.
    pub(super) fn bytes() -> Result<Self> {
        let byte = Datatype::named(Named::BYTE);
        Self::new(0, &byte, &byte, Representation::Native, true)
    }

    /// Makes a view. `writable` says whether the file may be written.
    ///
    /// # Errors
    /// Returns `MPI_ERR_TYPE` if the etype is empty and the filetype is not, if the filetype does not consist of whole
    /// etypes, or if the displacements of one of the two are negative, decrease, or (in a file that may be written)
    /// overlap. Copies of the filetype may overlap and lie in any order.
    pub(super) fn new(
        displacement: u64,
        etype: &Datatype,
        filetype: &Datatype,
        representation: Representation,
        writable: bool,
    ) -> Result<Self> {
        let of_file = representation.in_file(etype)?;
        let map = if filetype.is_same(etype) {
            FileView::new(&of_file, &of_file, engine_settings()?)?
        } else {
            // The checks of the types as they are in memory: displacements in bytes keep their values in
            // the file, where the etype may have another extent.
            let template = representation.in_file(filetype)?;
            FileView::new(&of_file, &template, engine_settings()?)?
        };
        if writable {
            map.check_writable()?;
        }
        let plan = map.filetype();
        let low = u64::try_from(plan.footprint().true_lb).unwrap_or(0);
        let one = plan.is_contiguous() && plan.element_bytes() > 0;
        let run = one.then(|| displacement.saturating_add(low));
        let pieces = Facts::of(plan).runs.max(1);
        let (etype, filetype) = (etype.clone(), filetype.clone());
        Ok(Self { displacement, etype, filetype, representation, map, run, pieces })
    }

    /// Returns the byte of the file at which the view begins.
    pub fn displacement(&self) -> u64 {
        self.displacement
    }

    /// Returns the elementary type, in which positions are counted.
    pub fn etype(&self) -> &Datatype {
        &self.etype
    }

    /// Returns the filetype, the template of the view.
    pub fn filetype(&self) -> &Datatype {
        &self.filetype
    }

    /// Returns the representation of the data in the file.
    pub fn representation(&self) -> Representation {
        self.representation
    }

    /// Returns the pieces of the file that hold `bytes` view bytes from `start` on: their offsets from the
    /// beginning of the file, and their lengths. The iterator finds each piece when it is asked for; no list
    /// exists.
    ///
    /// ```
    /// use typepack::io::{File, Mode};
    /// use typepack::{Datatype, Named};
    /// # let universe = typepack::init()?;
    /// # let world = universe.world();
    /// # let path = std::env::temp_dir().join(format!("typepack-pieces-{}", std::process::id()));
    /// let file = File::open(&world, &path, Mode::CREATE_READ_WRITE | Mode::DELETE_ON_CLOSE)?;
    /// // From byte 100 on, the first two of every five ints.
    /// let int = Datatype::named(Named::I32);
    /// let two_of_five = Datatype::resized(0, 20, &Datatype::contiguous(2, &int)?)?;
    /// file.set_view(Some(100), &int, &two_of_five, "native")?;
    /// let pieces: Vec<_> = file.view().pieces(4, 16)?.collect();
    /// assert_eq!(pieces, [(104, 4), (120, 8), (140, 4)]);
    /// # file.close()?;
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the view has no data, or if the pieces reach beyond byte 2^63 - 1.
    pub fn pieces(&self, start: u64, bytes: u64) -> Result<impl Iterator<Item = (u64, u64)> + '_> {
        self.reach(start, bytes)?;
        let pieces = self.map.pieces(start, bytes)?;
        Ok(pieces.map(|piece| (self.displacement + piece.offset as u64, piece.bytes)))
    }

    /// Returns the size of an etype in the file, in bytes.
    pub(super) fn etype_bytes(&self) -> u64 {
        self.map.etype_bytes()
    }

    /// Returns the engine's view.
    pub(super) fn map(&self) -> &FileView {
        &self.map
    }

    /// Returns the plan of the filetype as it is in the file.
    pub(super) fn plan(&self) -> &Plan {
        self.map.filetype()
    }

    /// Returns the offset of view byte 0 from the beginning of the file, if the view is one run of the file.
    pub(super) fn run(&self) -> Option<u64> {
        self.run
    }

    /// Returns whether the view bytes of one filetype are in the order of the file. In a file that is only read,
    /// elements of the filetype may overlap, and then this is false.
    pub(super) fn has_order(&self) -> bool {
        self.ordered(0, 1) > 0
    }

    /// Returns how many of the `most` view bytes from `start` on are in the order of the file: all of them if the
    /// copies of the filetype are, and otherwise at most the rest of the first filetype. At least 1 if
    /// [`has_order`](Self::has_order) is true and `most` is not 0.
    pub(super) fn ordered(&self, start: u64, most: u64) -> u64 {
        if self.run.is_some() { most } else { self.map.ordered(start, most) }
    }

    /// Returns the range of the file that `bytes` view bytes from `start` on cover, from the smallest offset to the
    /// greatest. If elements of the filetype overlap, the range may be too large.
    pub(super) fn span(&self, start: u64, bytes: u64) -> Result<Range<u64>> {
        self.reach(start, bytes)?;
        if let Some(run) = self.run {
            return Ok(run + start..run + start + bytes);
        }
        let span = self.map.span(start, bytes)?;
        Ok(self.displacement + span.start..self.displacement + span.end)
    }

    /// Returns the one of `bytes` view bytes from `start` on that lies at the greatest offset; of several ones there,
    /// the last. `bytes` must not be 0, and the view must have [`has_order`](Self::has_order).
    pub(super) fn highest(&self, start: u64, bytes: u64) -> Result<u64> {
        match self.run {
            Some(_) => Ok(start.saturating_add(bytes.saturating_sub(1))),
            None => Ok(self.map.highest(start, bytes)?),
        }
    }

    /// Returns the mean distance between the starts of two pieces of an element of the filetype, in bytes. If the
    /// element is one piece, returns the extent.
    pub(super) fn distance(&self) -> u64 {
        let shape = self.plan().footprint();
        match self.pieces {
            1 => shape.extent.unsigned_abs(),
            pieces => (shape.true_ub - shape.true_lb).unsigned_abs() / pieces,
        }
    }

    /// Returns the mean length of a piece, in bytes.
    pub(super) fn piece(&self) -> u64 {
        self.plan().element_bytes() / self.pieces
    }

    /// Returns whether the pieces of `bytes` view bytes from `start` on, which reach over `span` bytes of the file,
    /// begin at most `distance` bytes apart on average.
    pub(super) fn is_dense(&self, start: u64, bytes: u64, span: u64, distance: u64) -> bool {
        if self.ordered(start, bytes) < bytes {
            // Several filetypes share this range. They leave nothing out if each is dense and begins within the data of
            // the one before.
            let shape = self.plan().footprint();
            let data = (shape.true_ub - shape.true_lb).unsigned_abs();
            return self.distance() <= distance && shape.extent.unsigned_abs() <= data;
        }
        let pieces = (bytes / self.piece().max(1)).max(1);
        self.run.is_some() || span <= distance.saturating_mul(pieces)
    }

    /// Returns how many view bytes one element of an access takes.
    ///
    /// # Errors
    /// Returns an error of the user's function for sizes.
    pub(super) fn element_bytes(&self, memory: &Elements<&Plan>) -> Result<u64> {
        let in_file = self.representation.in_file(datatype_of(memory)?)?;
        Ok(in_file.size().unsigned_abs())
    }

    /// Returns how many view bytes an access takes.
    ///
    /// # Errors
    /// Returns `ErrorKind::Count` if the number does not fit in 63 bits, and an error of the user's function for
    /// sizes.
    pub(super) fn bytes_of(&self, memory: &Elements<&Plan>) -> Result<u64> {
        match self.representation {
            Representation::Native | Representation::Internal => Ok(memory.bytes()?),
            Representation::External32 => {
                Ok(pack_external_size(memory.plan.external32()?, memory.count)?)
            }
            Representation::User(_) => {
                let bytes = self.element_bytes(memory)?.checked_mul(memory.count);
                bytes.filter(|&bytes| bytes <= i64::MAX as u64).ok_or_else(|| {
                    let detail = format!("{} elements are more than 2^63 - 1 bytes", memory.count);
                    Error::new(ErrorKind::Count, "count", detail)
                })
            }
        }
    }

    /// Checks that `bytes` view bytes from `start` on lie in the range of file offsets.
    pub(super) fn reach(&self, start: u64, bytes: u64) -> Result<()> {
        let end = start.checked_add(bytes).ok_or_else(|| out_of_range(start))?;
        if bytes == 0 {
            return Ok(());
        }
        let tiles = self.map.tiles(end)?;
        let plan = self.plan();
        let last = (i128::from(tiles - 1) * i128::from(plan.footprint().extent)).max(0)
            + i128::from(plan.footprint().true_ub)
            + i128::from(self.displacement);
        if last > i128::from(i64::MAX) { Err(out_of_range(start)) } else { Ok(()) }
    }

    /// Returns the file offset of view byte `at`.
    pub(super) fn offset(&self, at: u64) -> Result<u64> {
        self.reach(at, 1)?;
        match self.run {
            Some(start) => Ok(start + at),
            None => Ok(self.displacement + self.map.offset(at)?),
        }
    }

    /// Returns how many of the `most` view bytes from `start` on can be used before one has a file offset of
    /// `end` or more.
    pub(super) fn below(&self, start: u64, most: u64, end: u64) -> Result<u64> {
        match (self.run, end.checked_sub(self.displacement)) {
            (Some(run), _) => Ok(end.saturating_sub(run).saturating_sub(start).min(most)),
            (None, None) => Ok(0),
            (None, Some(end)) => Ok(self.map.readable(start, most, end)?),
        }
    }

    /// Returns the number of the first etype of the view that begins at or after the end of a file of `size` bytes.
    pub(super) fn etypes_below(&self, size: u64) -> Result<u64> {
        match self.map.etypes_at(size.saturating_sub(self.displacement)) {
            u64::MAX => {
                let detail = format!(
                    "no etype of the view begins at or after byte {size}, the end of the file"
                );
                Err(Error::new(ErrorKind::Argument, "whence", detail))
            }
            etypes => Ok(etypes),
        }
    }

    /// Returns the view byte at which etype `at` begins.
    pub(super) fn start(&self, at: u64) -> Result<u64> {
        let bytes = at.checked_mul(self.etype_bytes()).filter(|&bytes| bytes <= i64::MAX as u64);
        bytes.ok_or_else(|| out_of_range(at))
    }

    /// Returns the number of bytes in memory of `bytes` view bytes. Only whole etypes count if their sizes in
    /// memory and in the file differ.
    pub(super) fn in_memory(&self, bytes: u64) -> u64 {
        if !self.representation.converts() {
            return bytes;
        }
        bytes / self.etype_bytes() * self.etype.size().unsigned_abs()
    }
}

/// Returns the datatype of the elements of an access.
///
/// # Errors
/// Returns `ErrorKind::Internal` if the plan has none, which is the case only for plans of other processes.
pub(super) fn datatype_of<'a>(layout: &Elements<&'a Plan>) -> Result<&'a Datatype> {
    let detail = "the plan of an access has no datatype";
    layout.plan.datatype().ok_or_else(|| Error::new(ErrorKind::Internal, "datatype", detail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use typepack_engine::ErrorClass;

    fn view(displacement: u64, etype: &str, filetype: &str) -> Result<View> {
        let (etype, filetype) = (etype.parse().expect("a type"), filetype.parse().expect("a type"));
        View::new(displacement, &etype, &filetype, Representation::Native, true)
    }

    #[test]
    fn positions_are_found_both_ways() {
        let view = view(10, "i32", "resized(0, 64, vector(3, 2, 4, i32))").expect("a view");
        let naive: Vec<u64> = (0..5)
            .flat_map(|tile| {
                (0..3).flat_map(move |row| (0..8).map(move |b| tile * 64 + row * 16 + b))
            })
            .map(|at| 10 + at)
            .collect();
        for (at, &offset) in naive.iter().enumerate() {
            assert_eq!(view.offset(at as u64).expect("an offset"), offset);
        }
        for end in 0..300 {
            let count = naive.iter().filter(|&&offset| offset < end).count() as u64;
            assert_eq!(view.below(0, naive.len() as u64, end).expect("a count"), count, "{end}");
            assert_eq!(view.etypes_below(end).expect("a count"), count.div_ceil(4), "{end}");
        }
        assert_eq!(view.distance(), 40 / 3);
    }

    #[test]
    fn unfit_types_are_refused() {
        for (etype, filetype) in [
            ("i32", "hindexed([1, 1], [8, 0], i32)"),
            ("i32", "hindexed([1, 1], [0, 2], i32)"),
            ("i32", "hindexed([1], [-4], i32)"),
            ("i32", "contiguous(2, resized(0, 8, vector(2, 1, 3, i32)))"),
            ("i32", "contiguous(3, i16)"),
            ("i32", "vector(2, 1, 2, i16)"),
            ("contiguous(0, i32)", "i32"),
        ] {
            let error = view(0, etype, filetype).expect_err(filetype);
            assert_eq!(error.class(), ErrorClass::TYPE, "{filetype}: {error}");
        }
        assert!(view(0, "i32", "hvector(2, 1, 8, i32)").is_ok());
        // Holes of any length, and copies that overlap or lie between each other.
        for filetype in
            ["hvector(2, 1, 6, i32)", "resized(0, 6, i32)", "resized(0, 8, vector(2, 1, 3, i32))"]
        {
            assert!(view(0, "i32", filetype).is_ok(), "{filetype}");
        }
        assert!(view(0, "i8", "contiguous(0, i8)").is_ok());
    }

    #[test]
    fn positions_beyond_the_last_byte_are_refused() {
        let view = view(1 << 62, "i8", "i8").expect("a view");
        assert!(view.offset(1 << 61).is_ok() && view.offset(1 << 62).is_err());
        assert!(view.reach(u64::MAX, 1).is_err() && view.start(1 << 63).is_err());
    }
}
