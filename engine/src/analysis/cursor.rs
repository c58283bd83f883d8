//! A cursor that walks the runs of a plan in packed order and can start at any packed byte.
//!
//! The cursor is built on `runs.rs`. `transfer/` walks two layouts in step, with one cursor for
//! each; other callers read the offsets and lengths of runs from a cursor. A cursor copies no data
//! and calls no kernel.

use super::runs::RunWalk;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::Run;
use crate::plan::Plan;
use crate::plan::kept::Room;

/// A position in the packed form of `count` elements, and the run of memory at that position.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    runs: RunWalk<'a>,
    /// Number of packed bytes of all elements.
    end: u64,
    /// Packed position of the cursor; `run` begins at this packed byte.
    position: u64,
    /// The rest of the current run, from `position` on; its length is 0 at the end of the packed
    /// bytes.
    run: Run,
    /// Length of the whole current run, in bytes.
    whole: u64,
}

impl<'a> Cursor<'a> {
    /// Makes a cursor at packed byte 0 of `count` elements.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Overflow`, naming `count`, if the packed size does not fit in an `i64`.
    pub fn new(plan: &'a Plan, count: u64) -> Result<Self> {
        Self::at(plan, count, 0)
    }

    /// Makes a cursor at packed byte `position` of `count` elements.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Overflow`, naming `count`, if the packed size does not fit in an `i64`.
    /// Returns `ErrorKind::Argument`, naming `position`, if `position` is greater than the packed size.
    pub fn at(plan: &'a Plan, count: u64, position: u64) -> Result<Self> {
        let end = plan.packed_bytes(count)?;
        let runs = RunWalk::of_elements(plan.program(), end);
        let mut cursor =
            Self { runs, end, position: 0, run: Run { offset: 0, bytes: 0 }, whole: 0 };
        cursor.seek(position)?;
        Ok(cursor)
    }

    /// Returns the packed position of this cursor, in bytes.
    pub fn tell(&self) -> u64 {
        self.position
    }

    /// Returns the rest of the current run, from this position on. The offset of the returned run is
    /// relative to displacement 0 of the first element. Returns `None` at the end of the packed
    /// bytes.
    #[inline]
    pub fn run(&self) -> Option<Run> {
        (self.run.bytes > 0).then_some(self.run)
    }

    /// Returns the length in bytes of the whole run at this position, including the bytes before the
    /// position; 0 at the end.
    #[inline]
    pub fn whole_run(&self) -> u64 {
        self.whole
    }

    /// Moves to packed byte `position`, forwards or backwards.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Argument`, naming `position`, if `position` is greater than the packed size.
    pub fn seek(&mut self, position: u64) -> Result<()> {
        if position > self.end {
            return Err(Error::new(
                ErrorKind::Argument,
                "position",
                format!("{position} is greater than {}, the number of packed bytes", self.end),
            ));
        }
        self.position = position;
        self.runs.seek(position);
        self.next_run();
        Ok(())
    }

    /// Moves forward by `bytes` packed bytes, but not past the start of the next run. In the last run, the cursor
    /// moves at most to the end of the packed bytes.
    #[inline]
    pub fn advance(&mut self, bytes: u64) {
        let bytes = bytes.min(self.run.bytes);
        self.position += bytes;
        if bytes < self.run.bytes {
            self.run.offset = self.run.offset.wrapping_add(bytes as i64);
            self.run.bytes -= bytes;
        } else {
            self.next_run();
        }
    }

    /// Takes the next run, or the rest of a run, from `runs`. Stores it in `run`, and the length of the
    /// whole run in `whole`. If no run is left, sets both lengths to 0.
    fn next_run(&mut self) {
        (self.run.bytes, self.whole) = (0, 0);
        if let Some(found) = self.runs.next() {
            (self.run, self.whole) = (found.run, found.whole);
        }
    }
}

impl Iterator for Cursor<'_> {
    type Item = Run;

    /// Returns the rest of the current run, from the cursor on, and moves to the next run.
    fn next(&mut self) -> Option<Run> {
        let run = self.run()?;
        self.advance(run.bytes);
        Some(run)
    }
}

impl Plan {
    /// Returns the length of the first run of memory of one element, in bytes; 0 if an element has no data.
    /// The first call computes and stores the length.
    pub fn first_run_bytes(&self) -> u64 {
        let first = || Ok(Self::first_run(self).unwrap_or(0));
        self.kept(Room::FirstRun, first).copied().unwrap_or(0)
    }

    fn first_run(&self) -> Option<u64> {
        Cursor::new(self, 1).ok()?.run().map(|run| run.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Datatype, Named};

    fn int() -> Datatype {
        Datatype::named(Named::INT)
    }

    fn runs(ty: &Datatype, count: u64, from: u64) -> Vec<(i64, u64)> {
        let plan = ty.commit().unwrap();
        let mut cursor = Cursor::new(&plan, count).unwrap();
        cursor.seek(from).unwrap();
        cursor.map(|run| (run.offset, run.bytes)).collect()
    }

    #[test]
    fn runs_of_each_kind_of_level() {
        let vector = Datatype::vector(2, 1, 2, &int()).unwrap();
        assert_eq!(runs(&vector, 2, 0), [(0, 4), (8, 4), (12, 4), (20, 4)]);
        assert_eq!(runs(&vector, 2, 6), [(10, 2), (12, 4), (20, 4)]);
        let table = Datatype::indexed_block(1, &[5, 0, 3], &int()).unwrap();
        assert_eq!(runs(&table, 1, 4), [(0, 4), (12, 4)]);
        let list = Datatype::indexed(&[1, 3, 0, 2], &[9, 0, 5, 5], &int()).unwrap();
        assert_eq!(runs(&list, 1, 0), [(36, 4), (0, 12), (20, 8)]);
        assert_eq!(runs(&list, 1, 5), [(1, 11), (20, 8)]);
        let gapped = Datatype::resized(0, 7, &int()).unwrap();
        let list = Datatype::indexed(&[1, 3], &[9, 0], &gapped).unwrap();
        assert_eq!(runs(&list, 1, 8), [(7, 4), (14, 4)]);
        let byte = Datatype::named(Named::BYTE);
        let parts = Datatype::structured(&[1, 1, 1], &[9, 0, 40], &[byte, list, vector]).unwrap();
        assert_eq!(
            runs(&parts, 1, 0),
            [(9, 1), (63, 4), (0, 4), (7, 4), (14, 4), (40, 4), (48, 4)]
        );
    }

    #[test]
    fn contiguous_elements_are_one_run_and_the_end_has_none() {
        assert_eq!(runs(&Datatype::contiguous(3, &int()).unwrap(), 4, 5), [(5, 43)]);
        assert_eq!(runs(&int(), 4, 16), []);
        assert_eq!(runs(&Datatype::contiguous(0, &int()).unwrap(), 4, 0), []);
        let plan = int().commit().unwrap();
        let mut cursor = Cursor::new(&plan, 4).unwrap();
        assert_eq!(cursor.seek(17).unwrap_err().argument(), "position");
        assert!(Cursor::new(&plan, u64::MAX).is_err());
        cursor.advance(99);
        assert_eq!((cursor.tell(), cursor.run()), (16, None));
    }

    #[test]
    fn the_first_run_of_an_element() {
        for (datatype, bytes) in [
            (int(), 4),
            (Datatype::vector(3, 2, 5, &int()).unwrap(), 8),
            (Datatype::contiguous(0, &int()).unwrap(), 0),
        ] {
            assert_eq!(datatype.commit().unwrap().first_run_bytes(), bytes);
        }
    }
}
