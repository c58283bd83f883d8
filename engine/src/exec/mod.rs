//! Executes a plan over any byte range of its packed form.
//!
//! Comes after `plan/`; `pack/` is the door. Three cases:
//!
//! - The program is one nest: the range is cut into whole leaves and at most two broken ones. Whole
//!   leaves are *boxes* of iterations, at most two per level and one in the middle, and each box is
//!   one call of the kernel (or of the interpreter, which takes the same parameters).
//! - Whole elements whose body is a short sequence of nests and blocks: a list, part by part.
//! - Anything else is walked from the root, entering only what the range touches; the nests inside
//!   are executed as above, single blocks are copied.
//!
//! The position is found by division (`seek`), never kept: any range can be executed at any time,
//! in O(depth + log list) and the bytes moved.

pub mod stats;

use crate::ir::{Edge, NodeId, Op, RaggedList};
use crate::kernel::interpreter::{self, copy};
use crate::kernel::{Direction, Kernel, Level, Nest};
use crate::leaf::{copy_swapped, lists};
use crate::plan::{NestPlan, Plan, Selected, Strategy, is_dense};
use stats::Executor;
use std::ops::Range;

const fn direction(pack: bool) -> Direction {
    if pack { Direction::Pack } else { Direction::Unpack }
}

/// Moves the bytes `range` of the packed form of `count` elements; `packed` is where byte
/// `range.start` is.
///
/// # Safety
///
/// - `range.end` is at most `count` times the plan's element bytes, which fits `i64`.
/// - With `origin` as the address of displacement 0, every byte of the type map that belongs to the
///   range is valid: for reads when `PACK`, for writes otherwise.
/// - `packed` is valid for the range's length: for writes when `PACK`, for reads otherwise.
/// - The two sides do not overlap.
/// - A plan that turns elements round is not contiguous, and the range is one of whole elements.
#[inline]
pub(crate) unsafe fn run<const PACK: bool>(
    plan: &Plan,
    count: u64,
    origin: *mut u8,
    range: Range<u64>,
    packed: *mut u8,
) {
    if range.start >= range.end {
        return;
    }
    if let Some(offset) = plan.contiguous() {
        let bytes = range.end - range.start;
        let at = origin.wrapping_offset(offset as isize).wrapping_add(range.start as usize);
        // SAFETY: a contiguous plan's packed byte i lies at `offset + i`; both sides by contract.
        unsafe { copy::<PACK>(at, packed, bytes as usize) };
        stats::add(Executor::Memcpy, bytes);
    } else if let Some(planned) = plan.whole_nest() {
        let iterations = count * plan.factor();
        let bytes = range.end - range.start;
        if bytes == count * plan.element_bytes() {
            // SAFETY: planned 0 with `iterations` on its outermost level is the whole program.
            return unsafe { whole::<PACK>(plan, planned, iterations, origin, bytes, packed) };
        }
        // SAFETY: planned 0 with `iterations` on its outermost level is the whole program.
        unsafe { nest::<PACK>(plan, planned, iterations, origin, range, packed) };
    } else if !plan.parts().is_empty() && range.end - range.start == count * plan.element_bytes() {
        // SAFETY: the caller's contract is the list's, for the whole range.
        unsafe { list::<PACK>(plan, count, origin, packed) };
    } else {
        // SAFETY: the caller's contract is the walk's.
        unsafe { walk::<PACK>(plan, count, origin, range, packed) };
    }
}

/// As [`run`], for all of `count` elements, which are `bytes` packed bytes: what packing calls want, and
/// short enough to stand in them. Of nests, the one that stands selected and those of one level.
///
/// # Safety
///
/// - As for [`run`], with the range `0..bytes`.
/// - `bytes` is `count` times the plan's element bytes.
#[inline(always)]
pub(crate) unsafe fn run_all<const PACK: bool>(
    plan: &Plan,
    count: u64,
    origin: *mut u8,
    bytes: u64,
    packed: *mut u8,
) {
    if bytes > 0
        && plan.contiguous().is_none()
        && let Some(planned) = plan.whole_nest()
    {
        let outer = count * plan.factor();
        let base = origin.wrapping_offset(planned.nest.base as isize);
        if outer == planned.words[0] {
            // SAFETY: as in `whole`.
            return unsafe { call::<PACK>(plan, planned, &planned.words, base, packed, bytes) };
        }
        if planned.nest.levels.len() == 1 {
            let mut words = [0; ONE];
            words.copy_from_slice(&planned.words[..ONE]);
            words[0] = outer;
            // SAFETY: as in `whole`.
            return unsafe { call::<PACK>(plan, planned, &words, base, packed, bytes) };
        }
    }
    // SAFETY: as ours.
    unsafe { run::<PACK>(plan, count, origin, 0..bytes, packed) }
}

/// Words of a nest of one level.
const ONE: usize = 4;

/// Executes a whole nest with `outer` iterations of the outermost level, `bytes` packed bytes.
///
/// # Safety
///
/// As for [`run`], for this nest; `mem` is where displacement 0 of the nest is.
#[inline]
unsafe fn whole<const PACK: bool>(
    plan: &Plan,
    planned: &NestPlan,
    outer: u64,
    mem: *mut u8,
    bytes: u64,
    packed: *mut u8,
) {
    /// Words of nests of up to three levels: all 25 of a block take as long as a small call.
    const FEW: usize = 10;
    let base = mem.wrapping_offset(planned.nest.base as isize);
    // The usual call is of one element, for which the block stands selected.
    if outer == planned.words[0] {
        // SAFETY: the whole nest.
        return unsafe { call::<PACK>(plan, planned, &planned.words, base, packed, bytes) };
    }
    if planned.nest.levels.len() == 1 {
        let mut words = [0; ONE];
        words.copy_from_slice(&planned.words[..ONE]);
        words[0] = outer;
        // SAFETY: the whole nest.
        return unsafe { call::<PACK>(plan, planned, &words, base, packed, bytes) };
    }
    if planned.nest.levels.len() <= FEW / 3 {
        let mut words = [0; FEW];
        words.copy_from_slice(&planned.words[..FEW]);
        words[0] = outer;
        // SAFETY: the whole nest.
        return unsafe { call::<PACK>(plan, planned, &words, base, packed, bytes) };
    }
    let mut words = planned.words;
    words[0] = outer;
    // SAFETY: the whole nest.
    unsafe { call::<PACK>(plan, planned, &words, base, packed, bytes) };
}

/// Executes whole elements whose body is a list of parts.
///
/// # Safety
///
/// As for [`run`], for all of `count` elements.
unsafe fn list<const PACK: bool>(plan: &Plan, count: u64, origin: *mut u8, packed: *mut u8) {
    let program = plan.program();
    let Some(body) = program.body else { return };
    let mut element = origin.wrapping_offset(body.offset as isize);
    let mut packed = packed;
    for _ in 0..count * program.factor {
        for part in plan.parts() {
            let mem = element.wrapping_offset(part.at as isize);
            match plan.nest_of_part(part) {
                Some(planned) => {
                    let base = mem.wrapping_offset(planned.nest.base as isize);
                    // SAFETY: the whole nest, which is this part of the element.
                    unsafe {
                        call::<PACK>(plan, planned, &planned.words, base, packed, part.bytes)
                    };
                }
                None => {
                    let (isa, bytes) = (plan.isa(), part.bytes as usize);
                    // SAFETY: a block of the element, and its place in the packed bytes.
                    unsafe { copy_swapped::<PACK>(isa, part.width, mem, packed, bytes) };
                    stats::add(Executor::Interpreter, part.bytes);
                }
            }
            packed = packed.wrapping_add(part.bytes as usize);
        }
        element = element.wrapping_offset(program.stride as isize);
    }
}

/// Executes packed bytes `range` of a nest whose outermost level makes `outer` iterations; `mem`
/// is where displacement 0 of the nest is.
///
/// # Safety
///
/// As for [`run`], for this nest.
#[inline]
unsafe fn nest<const PACK: bool>(
    plan: &Plan,
    planned: &NestPlan,
    outer: u64,
    mem: *mut u8,
    range: Range<u64>,
    packed: *mut u8,
) {
    let base = mem.wrapping_offset(planned.nest.base as isize);
    let bytes = range.end - range.start;
    if bytes == outer * planned.below[0].get() * planned.leaf_bytes.get() {
        // SAFETY: as ours; the range is the whole nest.
        return unsafe { whole::<PACK>(plan, planned, outer, mem, bytes, packed) };
    }
    let inner = planned.nest.levels.len() - 1;
    if let Level::Loop { stride, .. } = planned.nest.levels[inner]
        && (inner == 0 || inner == 1 && outer == 1)
    {
        // Whole leaves of one loop, what `plan/segments.rs` proposes for such a nest: one box.
        let (first, skip) = planned.leaf_bytes.divide(range.start);
        let (count, rest) = planned.leaf_bytes.divide(bytes);
        if skip == 0 && rest == 0 {
            let mut words = planned.words;
            words[0] = outer;
            words[3 * inner] = count;
            let at = base.wrapping_offset((first as i64).wrapping_mul(stride) as isize);
            // SAFETY: the parameters describe `count` leaves from leaf `first`, the range.
            return unsafe { call::<PACK>(plan, planned, &words, at, packed, bytes) };
        }
    }
    // SAFETY: as ours.
    unsafe { partial::<PACK>(plan, planned, outer, base, range, packed) }
}

/// Executes a nest by the interpreter.
///
/// # Safety
///
/// As for [`call`].
unsafe fn interpret<const PACK: bool>(
    planned: &NestPlan,
    words: &[u64],
    mem: *mut u8,
    packed: *mut u8,
    bytes: u64,
) {
    // SAFETY: our contract.
    unsafe { interpreter::run::<PACK>(&planned.nest, words, mem, packed) };
    let rows = planned.strategy == Strategy::Rows;
    stats::add(if rows { Executor::Rows } else { Executor::Interpreter }, bytes);
}

/// The general case of [`nest`]: broken leaves at the ends, boxes between them.
///
/// # Safety
///
/// As for [`nest`], with `base` as the address of the nest's base.
unsafe fn partial<const PACK: bool>(
    plan: &Plan,
    planned: &NestPlan,
    outer: u64,
    base: *mut u8,
    range: Range<u64>,
    packed: *mut u8,
) {
    let leaf = planned.leaf_bytes.get();
    let (item, skip) = planned.leaf_bytes.divide(range.start);
    let mut place = Place::of(planned, outer, item);
    let (mut left, mut packed) = (range.end - range.start, packed);
    let broken = |place: &Place<'_>, skip: u64, bytes: u64, packed: *mut u8| {
        let at = base.wrapping_offset(place.displacement() as isize);
        // SAFETY: this leaf is in the nest and these bytes of it are in the range.
        unsafe {
            match &planned.swap {
                None => {
                    interpreter::part_of_leaf::<PACK>(&planned.nest.leaf, at, packed, skip, bytes)
                }
                Some(swap) => {
                    let (leaf, part) = (&planned.nest.leaf, (skip, bytes));
                    swap.part_of_leaf::<PACK>(plan.isa(), leaf, at, packed, part);
                }
            }
        }
        stats::add(Executor::Interpreter, bytes);
    };
    if skip != 0 {
        let bytes = (leaf - skip).min(left);
        broken(&place, skip, bytes, packed);
        if bytes == left {
            return;
        }
        packed = packed.wrapping_add(bytes as usize);
        left -= bytes;
        place.advance(planned.nest.levels.len() - 1, 1);
    }
    let (mut items, rest) = planned.leaf_bytes.divide(left);
    let mut words;
    while items > 0 {
        words = planned.words;
        let (shift, level) = place.next_box(items, &mut words);
        let moved = words[3 * level] * planned.below[level].get();
        let at = base.wrapping_offset(shift as isize);
        // SAFETY: the parameters describe the next `moved` leaves, all whole and in the range.
        unsafe { call::<PACK>(plan, planned, &words, at, packed, moved * leaf) };
        packed = packed.wrapping_add((moved * leaf) as usize);
        items -= moved;
        place.advance(level, words[3 * level]);
    }
    if rest != 0 {
        broken(&place, 0, rest, packed);
    }
}

/// A leaf of a nest as one index per level. Found by division once and then counted on: with
/// divisions for every box, pieces of 8 KiB of four nested loops cost 0.08 more of one call
/// (`typepack-bench commit`, "nest of 4 loops").
struct Place<'a> {
    planned: &'a NestPlan,
    /// Iterations of the outermost level.
    outer: u64,
    indices: [u64; Nest::MAX_DEPTH],
}

impl<'a> Place<'a> {
    /// Leaf number `item`.
    fn of(planned: &'a NestPlan, outer: u64, item: u64) -> Self {
        let mut indices = [0; Nest::MAX_DEPTH];
        let (inner, mut rest) = (planned.nest.levels.len() - 1, item);
        for (index, &below) in indices.iter_mut().zip(&planned.below[..inner]) {
            (*index, rest) = below.divide(rest);
        }
        // Below the innermost level there is one leaf.
        indices[inner] = rest;
        Self { planned, outer, indices }
    }

    /// Iterations of `level`.
    fn count(&self, level: usize) -> u64 {
        if level == 0 { self.outer } else { self.planned.words[3 * level] }
    }

    /// Displacement of the leaf from the nest's base.
    fn displacement(&self) -> i64 {
        let levels = self.planned.nest.levels.iter().zip(&self.indices);
        levels.fold(0, |at: i64, (level, &index)| {
            at.wrapping_add(match level {
                Level::Loop { stride, .. } => (index as i64).wrapping_mul(*stride),
                Level::Table { entries, scale } => entries.get(index as usize).wrapping_mul(*scale),
            })
        })
    }

    /// The largest box of whole iterations that begins here and has at most `items` (not 0) leaves:
    /// makes the parameters of the whole nest those of the box; returns what they are relative to
    /// and the level whose iterations the box counts.
    #[inline]
    fn next_box(&self, items: u64, words: &mut [u64; Nest::WORDS]) -> (i64, usize) {
        let planned = self.planned;
        // The outermost level at which a whole iteration begins here and fits. The innermost always
        // does: an iteration there is one leaf.
        let mut level = planned.nest.levels.len() - 1;
        while level > 0 && self.indices[level] == 0 && planned.below[level - 1].get() <= items {
            level -= 1;
        }
        let mut shift = 0i64;
        for (l, (kind, &index)) in
            planned.nest.levels[..=level].iter().zip(&self.indices).enumerate()
        {
            match kind {
                Level::Loop { stride, .. } => {
                    shift = shift.wrapping_add((index as i64).wrapping_mul(*stride));
                }
                Level::Table { entries, .. } => words[3 * l + 1] += index * entries.width() as u64,
            }
            words[3 * l] = 1;
        }
        let (left, below) = (self.count(level) - self.indices[level], planned.below[level]);
        // No more leaves than the nest has bytes.
        words[3 * level] = if left * below.get() <= items { left } else { below.divide(items).0 };
        (shift, level)
    }

    /// Goes `count` iterations of `level` on, which has that many left.
    fn advance(&mut self, level: usize, count: u64) {
        let mut level = level;
        self.indices[level] += count;
        while level > 0 && self.indices[level] == self.count(level) {
            self.indices[level] = 0;
            level -= 1;
            self.indices[level] += 1;
        }
    }
}

/// Calls the kernel of a nest, or the interpreter if there is none, with the given parameters.
///
/// # Safety
///
/// - `words`, `mem` and `packed` fulfil the contract of [`Entry`](crate::kernel::Entry) for the
///   shape of `planned` and the direction.
/// - `bytes` is what they make.
#[inline]
unsafe fn call<const PACK: bool>(
    plan: &Plan,
    planned: &NestPlan,
    words: &[u64],
    mem: *mut u8,
    packed: *mut u8,
    bytes: u64,
) {
    let settings = plan.settings();
    let selected = planned.selected(direction(PACK), settings);
    let kernel = planned.kernel(selected, direction(PACK), bytes, settings);
    if settings.verify && (kernel.is_some() || selected.routine.is_some()) {
        // SAFETY: as ours.
        return unsafe {
            call_verified::<PACK>(planned, kernel, selected, words, mem, packed, bytes);
        };
    }
    if let Some(kernel) = kernel {
        // SAFETY: the kernel implements the planned's shape; the parameters are the caller's.
        unsafe { (kernel.entry())(words.as_ptr(), mem, packed) };
        stats::add(Executor::Kernel, bytes);
    } else if let Some(routine) = &selected.routine {
        // SAFETY: the routine is this nest's, in this direction; the parameters are the caller's.
        unsafe { routine.run::<PACK>(&planned.nest, words, mem, packed) };
        stats::add(Executor::Leaf, bytes);
    } else {
        // SAFETY: as ours.
        unsafe { interpret::<PACK>(planned, words, mem, packed, bytes) };
    }
}

/// As [`call`], checking the kernel or the routine against the interpreter (`Settings::verify`). The
/// interpreter's answer stands; once a kernel has disagreed, this nest is the interpreter's.
///
/// Whatever the kernel is to write holds the complement of the right answer before, so that a byte
/// it leaves out is seen. Bytes beside the runs are not looked at: that is for the tests.
///
/// # Safety
///
/// As for [`call`]; when unpacking, the runs are also valid for reads.
#[cold]
#[inline(never)]
unsafe fn call_verified<const PACK: bool>(
    planned: &NestPlan,
    kernel: Option<&Kernel>,
    selected: &Selected,
    words: &[u64],
    mem: *mut u8,
    packed: *mut u8,
    bytes: u64,
) {
    let dir = direction(PACK);
    stats::add(Executor::Interpreter, bytes);
    stats::add(if kernel.is_some() { Executor::Kernel } else { Executor::Leaf }, bytes);
    let run = |mem, packed| {
        // SAFETY: as in `call`; the places below fulfil our contract.
        unsafe {
            match (kernel, &selected.routine) {
                (Some(kernel), _) => (kernel.entry())(words.as_ptr(), mem, packed),
                (_, Some(routine)) => routine.run::<PACK>(&planned.nest, words, mem, packed),
                _ => interpreter::run::<PACK>(&planned.nest, words, mem, packed),
            }
        }
    };
    if !planned.trusted(dir) {
        // SAFETY: as ours.
        return unsafe { interpreter::run::<PACK>(&planned.nest, words, mem, packed) };
    }
    let mut expected = vec![0u8; bytes as usize];
    let mut answer = vec![0u8; bytes as usize];
    let invert = |from: &[u8], to: &mut [u8]| {
        for (to, from) in to.iter_mut().zip(from) {
            *to = !from;
        }
    };
    // SAFETY: the parameters are the caller's for every run; in place of `packed` stand buffers of
    // as many bytes. When unpacking, memory that may be written may be read back (our contract),
    // which tells what each executor left there.
    unsafe {
        if PACK {
            interpreter::run::<true>(&planned.nest, words, mem, expected.as_mut_ptr());
            invert(&expected, &mut answer);
            run(mem, answer.as_mut_ptr());
            copy::<true>(expected.as_mut_ptr(), packed, expected.len());
        } else {
            copy::<true>(packed, expected.as_mut_ptr(), expected.len());
            invert(&expected, &mut answer);
            interpreter::run::<false>(&planned.nest, words, mem, answer.as_mut_ptr());
            run(mem, packed);
            interpreter::run::<true>(&planned.nest, words, mem, answer.as_mut_ptr());
            interpreter::run::<false>(&planned.nest, words, mem, packed);
            interpreter::run::<true>(&planned.nest, words, mem, expected.as_mut_ptr());
        }
    }
    if answer != expected {
        planned.distrust(dir);
        stats::disagreement();
    }
}

/// A part of the program still to be executed: packed bytes `from..to` of `node`, whose use lies at
/// displacement `at`.
struct Frame {
    node: NodeId,
    at: i64,
    from: u64,
    to: u64,
}

/// Executes a program that is not one nest.
///
/// # Safety
///
/// As for [`run`].
unsafe fn walk<const PACK: bool>(
    plan: &Plan,
    count: u64,
    origin: *mut u8,
    range: Range<u64>,
    packed: *mut u8,
) {
    let program = plan.program();
    let Some(body) = program.body else { return };
    debug_assert!(range.end <= count * plan.element_bytes());
    let element = program.node(body.node).bytes;
    let mut packed = packed;
    let mut pending = Vec::with_capacity(16);
    let mut position = range.start;
    while position < range.end {
        let (i, from) = (position / element, position % element);
        let to = element.min(from + (range.end - position));
        let at = body.offset.wrapping_add((i as i64).wrapping_mul(program.stride));
        pending.push(Frame { node: body.node, at, from, to });
        while let Some(frame) = pending.pop() {
            // SAFETY: the frame is a part of the range, and frames come in packed order.
            packed = unsafe { step::<PACK>(plan, origin, frame, packed, &mut pending) };
        }
        position += to - from;
    }
}

/// Executes a frame, or replaces it by its first operand and what is left of it.
///
/// # Safety
///
/// As for [`run`], for the bytes of `frame`; `packed` is where its first byte is.
unsafe fn step<const PACK: bool>(
    plan: &Plan,
    origin: *mut u8,
    frame: Frame,
    packed: *mut u8,
    pending: &mut Vec<Frame>,
) -> *mut u8 {
    let Frame { node: id, at, from, to } = frame;
    let program = plan.program();
    let node = program.node(id);
    if let Op::Ragged { list, scale, stride, body } = &node.op
        && (is_dense(program, *stride, *body) || plan.nest_of_node(id).is_some())
    {
        let place = Ragged { list, scale: *scale, body: *body, at };
        // SAFETY: as ours.
        return unsafe { ragged::<PACK>(plan, id, origin, &place, from..to, packed) };
    }
    if let Some(planned) = plan.nest_of_node(id) {
        let mem = origin.wrapping_offset(at as isize);
        // SAFETY: the planned executes this node at displacement 0 of `mem`.
        unsafe { nest::<PACK>(plan, planned, planned.words[0], mem, from..to, packed) };
        return packed.wrapping_add((to - from) as usize);
    }
    // Everything else: find the operand that holds byte `from`, and where it begins.
    let (edge, begin, shift) = match &node.op {
        Op::Block => {
            let mem = origin.wrapping_offset(at as isize).wrapping_add(from as usize);
            // SAFETY: these bytes of the block are in the range.
            unsafe {
                copy_swapped::<PACK>(plan.isa(), plan.width(id), mem, packed, (to - from) as usize);
            }
            stats::add(Executor::Interpreter, to - from);
            return packed.wrapping_add((to - from) as usize);
        }
        Op::Loop { stride, body, .. } => {
            let bytes = program.node(body.node).bytes;
            let i = from / bytes;
            (*body, i * bytes, (i as i64).wrapping_mul(*stride))
        }
        Op::Table { entries, scale, body } => {
            let bytes = program.node(body.node).bytes;
            let i = from / bytes;
            (*body, i * bytes, entries.get(i as usize).wrapping_mul(*scale))
        }
        Op::Ragged { list, scale, stride, body } => {
            let bytes = program.node(body.node).bytes;
            let copy = from / bytes;
            let (entry, index) = list.seek(copy);
            let shift = list.entries.get(entry).wrapping_mul(*scale);
            (*body, copy * bytes, shift.wrapping_add((index as i64).wrapping_mul(*stride)))
        }
        Op::Seq { parts } => {
            let i = parts.partition_point(|part| part.end <= from);
            let begin = if i == 0 { 0 } else { parts[i - 1].end };
            (parts[i].edge, begin, 0)
        }
    };
    let end = begin + program.node(edge.node).bytes;
    if end < to {
        pending.push(Frame { node: id, at, from: end, to });
    }
    let at = at.wrapping_add(edge.offset).wrapping_add(shift);
    pending.push(Frame { node: edge.node, at, from: from - begin, to: to.min(end) - begin });
    packed
}

/// A ragged list in use.
struct Ragged<'a> {
    list: &'a RaggedList,
    scale: i64,
    body: Edge,
    at: i64,
}

/// Executes a ragged list of runs, or of nests with a planned: one search, then entry by entry.
///
/// # Safety
///
/// As for [`step`], for bytes `range` of the list.
unsafe fn ragged<const PACK: bool>(
    plan: &Plan,
    id: NodeId,
    origin: *mut u8,
    place: &Ragged<'_>,
    range: Range<u64>,
    mut packed: *mut u8,
) -> *mut u8 {
    let bytes = plan.program().node(place.body.node).bytes;
    let (mut entry, index) = place.list.seek(range.start / bytes);
    let mut from = index * bytes + range.start % bytes;
    let mut left = range.end - range.start;
    let planned = plan.nest_of_node(id);
    if planned.is_none() {
        stats::add(Executor::Interpreter, left);
    }
    // Every call is checked by itself.
    let one_by_one = planned.is_some() && plan.settings().verify;
    while left > 0 {
        if !one_by_one && from == 0 {
            let (last, rest) = match range.end == plan.program().node(id).bytes {
                true => (place.list.len(), 0),
                false => {
                    let (last, index) = place.list.seek(range.end / bytes);
                    (last, index * bytes + range.end % bytes)
                }
            };
            let mem = origin.wrapping_offset(place.at as isize);
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
                return packed;
            }
            (entry, left) = (last, rest);
        }
        let length = place.list.lengths.get(entry) as u64;
        let to = (length * bytes).min(from + left);
        let shift = place.list.entries.get(entry).wrapping_mul(place.scale);
        let mem = origin.wrapping_offset(place.at.wrapping_add(shift) as isize);
        match planned {
            // SAFETY: the planned with `length` on its outermost level is this entry.
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
    packed
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
        // SAFETY: the planned with the entry's length on its outermost level is the entry; kernel and
        // routine are the planned's, in this direction.
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
