//! Makes a plan for the external32 form of a type if the conversion changes at most the byte order of
//! each basic element. The engine's own kernels can then pack the type, reversing the bytes of the basic
//! elements between load and store (`leaf/src/routine/byteswap.rs`).
//!
//! `mod.rs` calls [`ByteSwapped::new`] when it prepares a type; `../exec/` executes the plan. If
//! all elements have the same width, the plan uses the program of an ordinary commit. Every block of
//! that program consists of whole elements, because the passes merge only whole elements. If the
//! widths differ, the type is lowered again, and no block contains elements of different widths.
//! Elements of the same width may still share a block: an `int` and a `float` that touch are one
//! block. If the conversion changes more than the byte order of some element (`MPI_LONG`, truth
//! values, x87's `long double`), the type has no such plan; `convert.rs` converts it.
//!
//! Invariant: byte `i` of the plan's packed form is byte `i` of the external32 form.

use super::kind::Encoding;
use crate::datatype::Datatype;
use crate::error::Result;
use crate::exec;
use crate::ir::typed::{TypedProgram, lower_parts};
use crate::named::Named;
use crate::passes::pipeline;
use crate::plan::byteswap::Widths;
use crate::plan::footprint::Footprint;
use crate::plan::{Plan, Settings, Strategy};
use std::ops::Range;
use typepack_leaf::{Mover, Width, mover};

/// A plan for the external32 form of a type.
#[derive(Clone, Debug)]
pub(super) struct ByteSwapped {
    pub(super) plan: Plan,
    /// The width of all basic elements; `None` if their widths differ.
    pub(super) same: Option<Width>,
    /// For a contiguous plan, the offset of its single run, and the function that moves the run.
    run: Option<(i64, Mover)>,
}

impl ByteSwapped {
    /// Returns the plan for `ty`. `typed` is the typed program of `ty`. Returns `None` if the
    /// conversion changes more than the byte order of some basic element, if the type has no data, if
    /// `settings` force the interpreter, or on a big-endian machine.
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Limit`](crate::error::ErrorKind::Limit) if the type needs more program
    /// nodes than the documented limit (2^28).
    pub(super) fn new(
        ty: &Datatype,
        typed: &TypedProgram,
        settings: &Settings,
    ) -> Result<Option<Self>> {
        if ty.size() == 0 || settings.strategy == Some(Strategy::Interpreter) {
            return Ok(None);
        }
        let (mut first, mut same) = (None, true);
        for named in typed.named_types() {
            let Some(parts) = Encoding::of(named).parts() else { return Ok(None) };
            for part in parts {
                same &= *first.get_or_insert(part.width) == part.width;
            }
        }
        let Some(first) = first.and_then(Width::new) else { return Ok(None) };
        let place = Footprint::of_datatype(ty);
        if same {
            let widths = if first == Width::ONE { Widths::Native } else { Widths::Same(first) };
            let program = pipeline::optimize(ty, |_, _| {})?;
            let plan = Plan::byteswapped(place, program, widths, settings);
            return Ok(Some(Self::of(plan, Some(first))));
        }
        let (program, named) = lower_parts(ty, |named| {
            let parts = Encoding::of(named).parts().unwrap_or(&[]);
            parts.iter().map(|part| (part.at, stand_in(part.width)))
        })?;
        let width = |named: Option<Named>| named.and_then(|n| Width::new(n.size() as usize));
        let widths = named.into_iter().map(|named| width(named).unwrap_or(Width::ONE));
        let widths = Widths::Each(widths.collect());
        Ok(Some(Self::of(Plan::byteswapped(place, program, widths, settings), None)))
    }

    fn of(plan: Plan, same: Option<Width>) -> Self {
        let run = plan.contiguous().zip(plan.program().body).map(|(offset, body)| {
            let width = plan.width(body.node);
            (offset, mover(plan.isa(), width))
        });
        Self { plan, same, run }
    }

    /// Packs (if `PACK`) or unpacks the bytes `range` of the external32 form of `count` elements.
    /// `ext` is the address of external byte `range.start`.
    ///
    /// # Safety
    ///
    /// - `range.end` is at most the external size of `count` elements, and that size fits in `i64`.
    ///   The range cuts no basic element.
    /// - The data of every basic element in the range is valid: for reads if `PACK`, for writes
    ///   otherwise.
    /// - `ext` is valid for the range's length: for writes if `PACK`, for reads otherwise.
    /// - The elements and the bytes at `ext` do not overlap.
    #[inline]
    pub(super) unsafe fn run<const PACK: bool>(
        &self,
        count: u64,
        origin: *mut u8,
        range: Range<u64>,
        ext: *mut u8,
    ) {
        let Some((offset, mover)) = self.run else {
            // SAFETY: the caller guarantees that the range is valid in memory and at `ext`. The
            // range cuts no basic element. The plan is not contiguous, because `self.run` is `None`.
            return unsafe { exec::run::<PACK>(&self.plan, count, origin, range, ext) };
        };
        let bytes = (range.end - range.start) as usize;
        let at = origin.wrapping_offset(offset as isize).wrapping_add(range.start as usize);
        // SAFETY: packed byte `i` of a contiguous plan lies at `offset + i`, so the range's bytes
        // begin at `at`. The caller guarantees that they are valid there and at `ext`. The range
        // cuts no basic element, so its length is a multiple of the mover's width.
        unsafe { if PACK { mover(at, ext, bytes) } else { mover(ext, at, bytes) } };
    }

    /// Returns the largest part of `range` that cuts no basic element; the part may be empty. `typed`
    /// is the typed program of the type.
    pub(super) fn whole(&self, typed: &TypedProgram, range: &Range<u64>) -> Range<u64> {
        // Returns the number of bytes from the start of the basic element at `position` to
        // `position`, and the length of that basic element.
        let within = |position: u64| match self.same {
            Some(width) => (position % width.bytes() as u64, width.bytes() as u64),
            None => typed
                .seek(position)
                .map_or((0, 1), |place| (place.skip, Encoding::of(place.named).bytes() as u64)),
        };
        let (skip, length) = within(range.start);
        let start = if skip == 0 { range.start } else { range.start + length - skip };
        let start = start.min(range.end);
        let end = range.end - within(range.end).0;
        start..end.max(start)
    }
}

/// Returns the named type that represents all basic elements of `width` bytes. `width` is 1, 2, 4, 8
/// or 16.
fn stand_in(width: usize) -> Named {
    match width {
        2 => Named::INT16_T,
        4 => Named::INT32_T,
        8 => Named::INT64_T,
        16 => Named::INTEGER16,
        _ => Named::BYTE,
    }
}

#[cfg(test)]
mod tests {
    use super::super::kind::Part;
    use super::*;

    #[test]
    fn stand_ins_have_their_width() {
        for width in [1, 2, 4, 8, 16] {
            let named = stand_in(width);
            let parts = Encoding::of(named).parts().unwrap();
            assert_eq!((named.size() as usize, parts[0]), (width, Part { at: 0, width }));
        }
    }
}
