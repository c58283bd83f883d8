//! Executes ragged lists: lists of runs of unequal length, and lists of nests of unequal length.
//!
//! `walk.rs` calls [`ragged`]. If the entries are runs, `leaf/src/routine/lists.rs` moves the entries that lie
//! wholly in the range.

use super::direction;
use super::nest::nest;
use super::stats::{self, Executor};
use crate::ir::{Edge, RaggedList};
use crate::plan::{NestPlan, Plan, Strategy};
use std::ops::Range;
use typepack_leaf::kernel::interpreter;
use typepack_leaf::{copy_swapped, lists};

/// A ragged list, with the fields of the `Op::Ragged` that contains the list.
pub(super) struct Ragged<'a> {
    pub(super) list: &'a RaggedList,
    pub(super) scale: i64,
    pub(super) body: Edge,
    /// Number of packed bytes of all entries together.
    pub(super) bytes: u64,
}

/// Executes packed bytes `range` of a ragged list. The entries are nests if `planned` contains
/// their plan; otherwise they are runs. The function searches the list only for the two ends of the
/// range, and executes the entries between them in order.
///
/// # Safety
///
/// - The conditions of [`run`](super::run) hold for packed bytes `range` of the list. `mem` is the
///   address of the list's displacement 0, and `packed` is the address of packed byte
///   `range.start`.
/// - If `planned` is `None`, the entries are runs.
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
    // Verification compares the results of single kernel calls, so execute the entries one by one.
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
                // SAFETY: all bytes of the entries `entry..last` are in the range, and `left -
                // rest` is their packed size.
                Some(planned) if entry < last => unsafe {
                    rows::<PACK>(plan, planned, place, entry..last, mem, left - rest, packed)
                },
                Some(_) => packed,
                None => {
                    let mem = mem.wrapping_offset(place.body.offset as isize);
                    let (list, scale) = (place.list, place.scale);
                    let width = plan.width(place.body.node);
                    let RaggedList { lengths, entries, .. } = list;
                    let runs = lists::Runs { lengths, entries, scale, unit: bytes, mem, width };
                    // SAFETY: all bytes of the entries `entry..last` are in the range, and this
                    // machine has the instructions of the plan's `isa`.
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
            // SAFETY: the nest with `length` iterations on its outermost level is this entry, and
            // its packed bytes `from..to` are in the range.
            Some(planned) => unsafe { nest::<PACK>(plan, planned, length, mem, from..to, packed) },
            None => {
                let mem =
                    mem.wrapping_offset(place.body.offset as isize).wrapping_add(from as usize);
                let (width, bytes) = (plan.width(place.body.node), (to - from) as usize);
                // SAFETY: bytes `from..to` of this run are in the range. If the plan swaps bytes, the
                // range cuts no basic element, so these bytes are whole basic elements. This machine
                // has the plan's instruction set.
                unsafe { copy_swapped::<PACK>(plan.isa(), width, mem, packed, bytes) };
            }
        }
        packed = packed.wrapping_add((to - from) as usize);
        left -= to - from;
        from = 0;
        entry += 1;
    }
}

/// Executes whole entries of a ragged list of nests. Returns the packed address after the last entry.
/// The function chooses the executor once, for an entry of average length, because choosing it for
/// every entry would add 25 to 50 ns to each entry, however short the entry is.
///
/// # Safety
///
/// - The conditions of [`ragged`] hold for the entries `range`. `range` is not empty. `bytes` is
///   the packed size of these entries, and `packed` is the address of their first packed byte.
/// - `mem` is the address of the list's displacement 0.
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
        // SAFETY: `words` and `mem` describe one entry of `range`, and the caller guarantees that
        // all entries of `range` are valid. The kernel and the routine were made for this nest and
        // direction.
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
