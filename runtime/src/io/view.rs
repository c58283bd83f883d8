//! Views: which bytes of the file a rank sees, and in which order (MPI-5.0 section 14.3).
//!
//! A view is a displacement and the plan of its filetype, repeated without end. Every position is found by
//! a `seek` in the plan; no list of the pieces exists. Positions in a view are counted in bytes of the
//! view's data ("view bytes"). The program counts in etypes.
//!
//! Invariant: the displacements of a view never decrease, so a greater view byte never has a smaller file
//! offset.

use crate::commit::commit;
use crate::{Datatype, Error, ErrorKind, FileErrorKind, Named, Plan, Result};
use std::fmt;
use typepack_engine::{Cursor, ErrorClass};

/// How data is represented in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Representation {
    /// As in memory.
    #[default]
    Native,
    /// As in memory: all machines of a job are the same machine.
    Internal,
}

impl Representation {
    /// Returns the representation with this name.
    ///
    /// # Errors
    /// Returns [`FileErrorKind::Representation`] if there is none.
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "native" => Ok(Self::Native),
            "internal" => Ok(Self::Internal),
            _ => {
                let detail = format!("\"{name}\" is not a data representation of this version");
                Err(Error::new(ErrorKind::File(FileErrorKind::Representation), "datarep", detail))
            }
        }
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Internal => "internal",
        }
    }
}

/// The greatest number of runs of a filetype that the checks of a view look at.
const LOOKED_AT: u64 = 1 << 22;

/// A view of a file.
#[derive(Clone)]
pub struct View {
    displacement: u64,
    etype: Datatype,
    filetype: Datatype,
    representation: Representation,
    plan: Plan,
    etype_bytes: u64,
    extent: u64,
    /// True if a greater view byte always has a greater file offset. In a file that is only read, runs of
    /// the view may overlap, and then this is false.
    ordered: bool,
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("displacement", &self.displacement)
            .field("etype_bytes", &self.etype_bytes)
            .field("extent", &self.extent)
            .finish_non_exhaustive()
    }
}

fn wrong(argument: &'static str, detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::Argument, argument, detail)
}

/// Returns the error for a type that a view cannot have.
fn unfit(argument: &'static str, detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::Engine(ErrorClass::TYPE), argument, detail)
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
    /// Returns `MPI_ERR_TYPE` if the etype is empty or has negative displacements, if the filetype does not
    /// consist of whole etypes at multiples of the etype's extent, or if its displacements are negative,
    /// decrease, or (in a file that may be written) overlap.
    pub(super) fn new(
        displacement: u64,
        etype: &Datatype,
        filetype: &Datatype,
        representation: Representation,
        writable: bool,
    ) -> Result<Self> {
        let etype_bytes = u64::try_from(etype.size()).unwrap_or(0);
        if etype_bytes == 0 {
            return Err(unfit("etype", "the type has no data"));
        }
        check_order(etype, 1, writable, "etype")?;
        // Two copies of the filetype, so that the step from one to the next is checked too.
        let ordered = check_order(filetype, 2, writable, "filetype")?;
        if !filetype.is_same(etype) {
            check_etypes(etype, filetype)?;
        }
        let plan = commit(filetype)?;
        let extent = filetype.extent();
        if extent <= 0 && filetype.size() > 0 {
            return Err(unfit("filetype", format!("the extent is {extent}; it must be positive")));
        }
        let (etype, filetype) = (etype.clone(), filetype.clone());
        let extent = extent.unsigned_abs();
        Ok(Self {
            displacement,
            etype,
            filetype,
            representation,
            plan,
            etype_bytes,
            extent,
            ordered,
        })
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

    /// Returns the size of an etype in bytes.
    pub(super) fn etype_bytes(&self) -> u64 {
        self.etype_bytes
    }

    /// Returns whether a greater view byte always has a greater file offset.
    pub(super) fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// Returns the plan of the filetype.
    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the number of the file's byte that holds the first byte of the view, if the view is one run
    /// of the file.
    pub(super) fn run(&self) -> Option<u64> {
        let low = u64::try_from(self.plan.footprint().true_lb).unwrap_or(0);
        (self.plan.is_contiguous() && self.plan.element_bytes() > 0)
            .then(|| self.displacement.saturating_add(low))
    }

    /// Returns how many filetypes the view bytes before `end` need.
    ///
    /// # Errors
    /// Returns an error if the view has no bytes, or if `end` does not fit in 63 bits.
    pub(super) fn tiles(&self, end: u64) -> Result<u64> {
        let element = self.plan.element_bytes();
        if element == 0 {
            return Err(wrong("filetype", "the view has no data, but the call accesses data"));
        }
        let tiles = end.div_ceil(element);
        self.plan.packed_bytes(tiles)?;
        // The file offsets of the last tile must fit in 63 bits too.
        let last = i128::from(self.extent) * i128::from(tiles)
            + i128::from(self.plan.footprint().true_ub.max(0))
            + i128::from(self.displacement);
        if last > i128::from(i64::MAX) {
            return Err(wrong("offset", format!("byte {last} of a file is out of range")));
        }
        Ok(tiles)
    }

    /// Returns a cursor over the runs of the view from view byte `start` on. The offsets of the runs are
    /// relative to the view's displacement.
    pub(super) fn cursor(&self, start: u64, end: u64) -> Result<Cursor<'_>> {
        Ok(Cursor::at(&self.plan, self.tiles(end)?, start)?)
    }

    /// Returns the file offset of view byte `at`.
    pub(super) fn offset(&self, at: u64) -> Result<u64> {
        if let Some(start) = self.run() {
            self.tiles(at)?;
            return Ok(start + at);
        }
        let end = at.checked_add(1).ok_or_else(|| wrong("offset", "out of range"))?;
        let found = self.cursor(at, end)?.run().map(|run| run.offset);
        let offset = u64::try_from(found.unwrap_or(0)).unwrap_or(0);
        Ok(self.displacement + offset)
    }

    /// Returns the number of view bytes whose file offset is below `end`, but at most `most`.
    pub(super) fn below(&self, end: u64, most: u64) -> Result<u64> {
        if let Some(start) = self.run() {
            return Ok(end.saturating_sub(start).min(most));
        }
        // The first `known` view bytes lie below `end`, the view bytes from `unknown` on do not.
        let (mut known, mut unknown) = (0, most);
        while known < unknown {
            let middle = known + (unknown - known) / 2;
            if self.offset(middle)? < end {
                known = middle + 1;
            } else {
                unknown = middle;
            }
        }
        Ok(known)
    }

    /// Returns the number of etypes that begin below byte `size` of the file.
    pub(super) fn etypes_below(&self, size: u64) -> Result<u64> {
        let element = self.plan.element_bytes();
        if size <= self.displacement || element == 0 {
            return Ok(0);
        }
        // Tile `k` begins at or after `k * extent`.
        let tiles = (size - self.displacement) / self.extent.max(1) + 1;
        let most = tiles.checked_mul(element).ok_or_else(|| wrong("offset", "out of range"))?;
        Ok(self.below(size, most)?.div_ceil(self.etype_bytes))
    }

    /// Returns the view byte at which etype `at` begins.
    pub(super) fn start(&self, at: u64) -> Result<u64> {
        let bytes = at.checked_mul(self.etype_bytes).filter(|&bytes| bytes <= i64::MAX as u64);
        bytes.ok_or_else(|| wrong("offset", format!("{at} etypes are more than 2^63 - 1 bytes")))
    }
}

/// Checks that the displacements of `copies` copies of a type are not negative, do not decrease, and (if
/// `apart`) do not overlap. Returns whether no two elements overlap.
fn check_order(ty: &Datatype, copies: u64, apart: bool, argument: &'static str) -> Result<bool> {
    if ty.size() == 0 {
        return Ok(true);
    }
    if ty.true_lb() < 0 || ty.lb() < 0 {
        let lowest = ty.true_lb().min(ty.lb());
        return Err(unfit(argument, format!("the type begins at displacement {lowest}, below 0")));
    }
    let plan = commit(ty)?;
    if plan.is_contiguous() {
        return Ok(true);
    }
    let mut ordered = true;
    let (mut last, mut end) = (i64::MIN, i64::MIN);
    let mut seen = 0;
    for run in Cursor::new(&plan, copies)? {
        if run.offset < last {
            let detail = format!("displacement {} follows displacement {last}", run.offset);
            return Err(unfit(argument, detail));
        }
        if apart && run.offset < end {
            let detail = format!("two elements overlap at displacement {}", run.offset);
            return Err(unfit(argument, detail));
        }
        ordered &= run.offset >= end;
        last = run.offset;
        end = end.max(run.offset.saturating_add(run.bytes as i64));
        seen += 1;
        if seen == LOOKED_AT {
            break;
        }
    }
    Ok(ordered)
}

/// Checks that a filetype consists of whole etypes: its data are copies of the etype, at multiples of the
/// etype's extent. Whether types of nested structure are built from the etype itself is not checked.
fn check_etypes(etype: &Datatype, filetype: &Datatype) -> Result<()> {
    let (whole, part) = (filetype.size(), etype.size());
    if whole % part != 0 {
        let detail =
            format!("its size, {whole} bytes, is not a multiple of the etype's, {part} bytes");
        return Err(unfit("filetype", detail));
    }
    let step = etype.extent();
    let etype_plan = commit(etype)?;
    if step <= 0 || !etype_plan.is_contiguous() {
        return Ok(());
    }
    let plan = commit(filetype)?;
    for run in Cursor::new(&plan, 1)?.take(LOOKED_AT as usize) {
        if run.offset % step != etype.true_lb() % step {
            let detail = format!(
                "displacement {} is not a multiple of the etype's extent, {step} bytes",
                run.offset
            );
            return Err(unfit("filetype", detail));
        }
    }
    if filetype.size() > 0 && filetype.extent() % step != 0 {
        let detail = format!(
            "its extent, {} bytes, is not a multiple of the etype's, {step} bytes",
            filetype.extent()
        );
        return Err(unfit("filetype", detail));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(displacement: u64, etype: &str, filetype: &str) -> Result<View> {
        let (etype, filetype) = (etype.parse().expect("a type"), filetype.parse().expect("a type"));
        View::new(displacement, &etype, &filetype, Representation::Native, true)
    }

    #[test]
    fn positions_are_found_both_ways() {
        let view = view(10, "int32", "resized(0, 64, vector(3, 2, 4, int32))").expect("a view");
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
            assert_eq!(view.below(end, naive.len() as u64).expect("a count"), count, "{end}");
            assert_eq!(view.etypes_below(end).expect("a count"), count.div_ceil(4), "{end}");
        }
    }

    #[test]
    fn unfit_types_are_refused() {
        for (etype, filetype) in [
            ("int32", "hindexed([1, 1], [8, 0], int32)"),
            ("int32", "hindexed([1, 1], [0, 2], int32)"),
            ("int32", "hindexed([1], [-4], int32)"),
            ("int32", "hvector(2, 1, 6, int32)"),
            ("int32", "contiguous(3, int16)"),
            ("int32", "resized(0, 6, int32)"),
            ("int32", "resized(0, 8, vector(2, 1, 3, int32))"),
            ("contiguous(0, int32)", "int32"),
        ] {
            let error = view(0, etype, filetype).expect_err(filetype);
            assert_eq!(error.class(), ErrorClass::TYPE, "{filetype}: {error}");
        }
        assert!(view(0, "int32", "hvector(2, 1, 8, int32)").is_ok());
        assert!(view(0, "int8", "contiguous(0, int8)").is_ok());
    }
}
