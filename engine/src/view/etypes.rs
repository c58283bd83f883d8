//! Checks that a filetype consists of whole etypes (MPI-5.0 section 14.1.1): its data consists of copies of the etype.
//!
//! The standard also asks that holes are multiples of the etype's extent. That is not checked: an offset counts the
//! etypes of the data, whatever lies between them, so it has one meaning for holes of any length. MPICH and Open MPI
//! accept such holes too. A program that ignored a refusal here would go on with the view before, and write elsewhere.
//!
//! Nearly every etype has no gaps. Then a filetype is right if the length of every run is a multiple of the etype's
//! size; one pass over the program checks this. In all other cases, the runs of the filetype are compared with those of
//! the etype, one by one.

use super::FileView;
use crate::analysis::cursor::Cursor;
use crate::analysis::{Facts, summarize};
use crate::datatype::Datatype;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::{Op, Program};
use crate::plan::Plan;

/// Maximum number of runs that are compared. The check does not find a fault in a later run.
const COMPARED: u64 = 1 << 20;

impl FileView {
    /// Checks that `filetype` consists of whole etypes. Both types describe bytes of the file. Named types do not have
    /// to be equal; only positions count. Holes between etypes may have any length. A filetype without data passes.
    /// Every filetype passes if the etype has no data.
    ///
    /// The check compares at most 2^20 runs of the filetype.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Type` for `filetype` if the filetype is not built from whole etypes. Returns
    /// the errors of [`Datatype::commit`].
    pub fn check_etypes(etype: &Datatype, filetype: &Datatype) -> Result<()> {
        check(etype, &filetype.commit()?)
    }
}

/// Does what [`FileView::check_etypes`] does. `plan` is the plan of the filetype.
pub(super) fn check(etype: &Datatype, plan: &Plan) -> Result<()> {
    let fail = |detail: String| Err(Error::new(ErrorKind::Type, "filetype", detail));
    let (part, size) = (etype.size().unsigned_abs(), plan.element_bytes());
    if size == 0 || part == 0 {
        return Ok(());
    }
    if !size.is_multiple_of(part) {
        return fail(format!(
            "its size, {size} bytes, is not a multiple of the size of the etype, {part} bytes"
        ));
    }
    let etype_plan = etype.commit()?;
    if Facts::of(&etype_plan).dense && multiples(plan.program(), part) {
        return Ok(());
    }
    let mut file = Cursor::new(plan, 1)?;
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
    Ok(())
}

/// Returns true if the length of every run of `program` is a multiple of `part`, in bytes.
fn multiples(program: &Program, part: u64) -> bool {
    // Passes leave nodes behind that the program does not use. Their summaries have no runs.
    let summaries = summarize(program);
    program.nodes().iter().zip(summaries).all(|(node, summary)| {
        summary.is_unused() || node.op != Op::Block || node.bytes.is_multiple_of(part)
    })
}
