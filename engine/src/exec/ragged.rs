//! Lists of unequal runs, and of nests of unequal length.
//!
//! Called by `walk.rs`. Whole entries of runs are left to `leaf/lists.rs`.

use super::direction;
use super::range::nest;
use super::stats::{self, Executor};
use crate::ir::{Edge, RaggedList};
use crate::kernel::interpreter;
use crate::leaf::{copy_swapped, lists};
use crate::plan::{NestPlan, Plan, Strategy};
use std::ops::Range;

/// A ragged list in use.
pub(super) struct Ragged<'a> {
    pub(super) list: &'a RaggedList,
    pub(super) scale: i64,
    pub(super) body: Edge,
    /// Packed bytes of all entries.
    pub(super) bytes: u64,
}

/// Executes a ragged list of runs, or of nests where `planned` is theirs: one search, then entry by
/// entry.
///
/// # Safety
///
/// - As for [`run`](super::run), for packed bytes `range` of the list, which lies with displacement 0
///   at `mem`; `packed` is where the first of them is.
/// - Without `planned` the list is one of runs.
pub(super) unsafe fn ragged<const PACK: bool>(
    plan: &Plan,
    planned: Option<&NestPlan>,
    place: &Ragged<'_>,
    mem: *mut u8,
    range: Range<u64>,
    mut packed: *mut u8,
) {
    let bytes = plan.program().node(place.body.node).bytes;
    let (mut entry, index) = place.list.seek(range.start / bytes);
    let mut from = index * bytes + range.start % bytes;
    let mut left = range.end - range.start;
    if planned.is_none() {
        stats::add(Executor::Interpreter, left);
    }
    // Every call is checked by itself.
    let one_by_one = planned.is_some() && plan.settings().verify;
    while left > 0 {
        if !one_by_one && from == 0 {
            let (last, rest) = match range.end == place.bytes {
                true => (place.list.len(), 0),
                false => {
                    let (last, index) = place.list.seek(range.end / bytes);
                    (last, index * bytes + range.end % bytes)
                }
            };
            packed = match planned {
                // SAFETY: these entries are in the range from their first byte to their last.
                Some(planned) if entry < last => unsafe {
                    rows::<PACK>(plan, planned, place, entry..last, mem, left - rest, packed)
                },
                Some(_) => packed,
                None => {
                    let mem = mem.wrapping_offset(place.body.offset as isize);
                    let (list, scale) = (place.list, place.scale);
                    let width = plan.width(place.body.node);
                    let runs = lists::Runs { list, scale, unit: bytes, mem, width };
                    // SAFETY: as above.
                    unsafe { lists::run::<PACK>(plan.isa(), runs, entry..last, packed) }
                }
            };
            if rest == 0 {
                return;
            }
            (entry, left) = (last, rest);
        }
        let length = place.list.lengths.get(entry) as u64;
        let to = (length * bytes).min(from + left);
        let shift = place.list.entries.get(entry).wrapping_mul(place.scale);
        let mem = mem.wrapping_offset(shift as isize);
        match planned {
            // SAFETY: the nest with `length` on its outermost level is this entry.
            Some(planned) => unsafe { nest::<PACK>(plan, planned, length, mem, from..to, packed) },
            None => {
                let mem =
                    mem.wrapping_offset(place.body.offset as isize).wrapping_add(from as usize);
                // The entry is one run.
                let (width, bytes) = (plan.width(place.body.node), (to - from) as usize);
                // SAFETY: these bytes of the run are in the range.
                unsafe { copy_swapped::<PACK>(plan.isa(), width, mem, packed, bytes) };
            }
        }
        packed = packed.wrapping_add((to - from) as usize);
        left -= to - from;
        from = 0;
        entry += 1;
    }
}

/// Executes whole entries of a ragged list of nests. Who executes them is asked once, for an entry
/// of average length: asked for each, short rows took 25 to 50 ns.
///
/// # Safety
///
/// - As for [`ragged`], for the entries `range`, which is not empty: `bytes` is what they make and
///   `packed` where the first of them is.
/// - `mem` is where displacement 0 of the list is.
unsafe fn rows<const PACK: bool>(
    plan: &Plan,
    planned: &NestPlan,
    place: &Ragged<'_>,
    range: Range<usize>,
    mem: *mut u8,
    bytes: u64,
    mut packed: *mut u8,
) -> *mut u8 {
    let (direction, settings) = (direction(PACK), plan.settings());
    let selected = planned.selected(direction, settings);
    let count = range.len() as u64;
    let kernel = planned.kernel_for(selected, direction, bytes / count, count, settings);
    let each = planned.below[0].get() * planned.leaf_bytes.get();
    let base = mem.wrapping_offset(planned.nest.base as isize);
    let mut words = planned.words;
    for entry in range {
        words[0] = place.list.lengths.get(entry) as u64;
        let shift = place.list.entries.get(entry).wrapping_mul(place.scale);
        let mem = base.wrapping_offset(shift as isize);
        // SAFETY: the nest with the entry's length on its outermost level is the entry; kernel and
        // routine are the nest's, in this direction.
        unsafe {
            match (kernel, &selected.routine) {
                (Some(kernel), _) => (kernel.entry())(words.as_ptr(), mem, packed),
                (_, Some(routine)) => routine.run::<PACK>(&planned.nest, &words, mem, packed),
                _ => interpreter::run::<PACK>(&planned.nest, &words, mem, packed),
            }
        }
        packed = packed.wrapping_add((words[0] * each) as usize);
    }
    let executor = match (kernel, &selected.routine) {
        (Some(_), _) => Executor::Kernel,
        (_, Some(_)) => Executor::Leaf,
        _ if planned.strategy == Strategy::Rows => Executor::Rows,
        _ => Executor::Interpreter,
    };
    stats::add(executor, bytes);
    packed
}
