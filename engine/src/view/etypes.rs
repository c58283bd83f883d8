//! Checks that a filetype consists of whole etypes, holes included (MPI-5.0 section 14.1.1): its data
//! consists of copies of the etype, at displacements that are multiples of the etype's extent, and its own
//! extent is such a multiple too.
//!
//! Nearly every etype has no gaps. Then a filetype is right if the length of every run, and the offset of
//! every run minus the true lower bound of the etype, is a multiple of the etype's extent; one pass over the
//! program checks this. In all other cases, the runs of the filetype are compared with those of the etype,
//! one by one.

use super::FileView;
use crate::analysis::cursor::Cursor;
use crate::datatype::Datatype;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::{Edge, Op, Program};

/// Maximum number of runs that are compared. If the etype has gaps, the check does not find a fault in a
/// later run.
const COMPARED: u64 = 1 << 20;

impl FileView {
    /// Checks that `filetype` consists of whole etypes, holes included. Both types describe bytes of the
    /// file. Named types do not have to be equal; only positions count. A filetype without data passes. Every
    /// filetype passes if the etype has no data or an extent that is not positive.
    ///
    /// If the etype has gaps, the check compares at most 2^20 runs of the filetype.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Type` for `filetype` if the filetype is not built from whole etypes. Returns
    /// the errors of [`Datatype::commit`].
    pub fn check_etypes(etype: &Datatype, filetype: &Datatype) -> Result<()> {
        let fail = |detail: String| Err(Error::new(ErrorKind::Type, "filetype", detail));
        let (step, part) = (etype.extent(), etype.size());
        if filetype.size() == 0 || step <= 0 || part <= 0 {
            return Ok(());
        }
        if filetype.size() % part != 0 {
            return fail(format!(
                "its size, {} bytes, is not a multiple of the size of the etype, {part} bytes",
                filetype.size()
            ));
        }
        if filetype.extent() % step != 0 {
            return fail(format!(
                "its extent, {} bytes, is not a multiple of the extent of the etype, {step} bytes",
                filetype.extent()
            ));
        }
        let (etype_plan, plan) = (etype.commit()?, filetype.commit()?);
        if etype_plan.is_contiguous() && multiples(plan.program(), step, etype.true_lb()) {
            return Ok(());
        }
        let mut file = Cursor::new(&plan, 1)?;
        let mut one = Cursor::new(&etype_plan, 1)?;
        let mut shift = 0;
        for _ in 0..COMPARED {
            let Some(found) = file.run() else { return Ok(()) };
            let wanted = match one.run() {
                Some(wanted) if one.tell() > 0 => wanted,
                _ => {
                    one.seek(0)?;
                    let Some(wanted) = one.run() else { return Ok(()) };
                    shift = found.offset.wrapping_sub(wanted.offset);
                    if shift % step != 0 {
                        return fail(format!(
                            "an etype begins at displacement {shift}, which is not a multiple of the \
                             extent of the etype, {step} bytes"
                        ));
                    }
                    wanted
                }
            };
            if found.offset != wanted.offset.wrapping_add(shift) {
                return fail(format!(
                    "an etype is not whole: byte {} of its data is at displacement {}; in an etype that \
                     begins at displacement {shift}, this byte is at displacement {}",
                    one.tell(),
                    found.offset,
                    wanted.offset.wrapping_add(shift)
                ));
            }
            let same = found.bytes.min(wanted.bytes);
            file.advance(same);
            one.advance(same);
        }
        // If the etype has no gaps, `multiples` has returned false, so the fault lies in a later run.
        match etype_plan.is_contiguous() && file.run().is_some() {
            true => fail(format!(
                "a displacement or a hole is not a multiple of the extent of the etype, {step} bytes"
            )),
            false => Ok(()),
        }
    }
}

/// Returns true if every run of `program` begins at `start` plus a multiple of `step`, and has a length that
/// is a multiple of `step`. `start` and `step` are in bytes.
fn multiples(program: &Program, step: i64, start: i64) -> bool {
    // For each node: the offset of its first run, modulo `step`; `None` if the length of a run, or the
    // distance between two runs, is not a multiple of `step`.
    let whole = |bytes: i64| bytes % step == 0;
    let mut all: Vec<Option<i64>> = Vec::with_capacity(program.nodes().len());
    for node in program.nodes() {
        let of = |edge: &Edge| {
            all[edge.node.index()].map(|first: i64| (first + edge.offset % step) % step)
        };
        let first = match &node.op {
            Op::Block => whole(node.bytes as i64).then_some(0),
            Op::Loop { stride, body, .. } => of(body).filter(|_| whole(*stride)),
            Op::Table { entries, scale, body } => of(body).and_then(|body| {
                let mut places = entries.iter().map(|entry| entry.wrapping_mul(*scale));
                let first = places.next()?;
                places
                    .all(|place| whole(place.wrapping_sub(first)))
                    .then(|| (body + first % step) % step)
            }),
            Op::Ragged { list, scale, stride, body } => of(body).and_then(|body| {
                let blocks = list.lengths.iter().zip(list.entries.iter());
                let mut blocks = blocks.filter(|(length, _)| *length > 0);
                let (length, entry) = blocks.next()?;
                let first = entry.wrapping_mul(*scale);
                let mut strided = length > 1;
                let even = blocks.all(|(length, entry)| {
                    strided |= length > 1;
                    whole(entry.wrapping_mul(*scale).wrapping_sub(first))
                });
                (even && (!strided || whole(*stride))).then(|| (body + first % step) % step)
            }),
            Op::Seq { parts } => {
                let mut parts = parts.iter().map(|part| of(&part.edge));
                let first = parts.next().flatten();
                first.filter(|first| parts.all(|part| part.is_some_and(|part| whole(part - first))))
            }
        };
        all.push(first);
    }
    let Some(body) = program.body else { return true };
    let looped = program.factor == 1 || whole(program.stride);
    all[body.node.index()]
        .is_some_and(|first| looped && whole(first + body.offset % step - start % step))
}
