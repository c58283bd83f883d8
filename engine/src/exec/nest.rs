//! Executes a nest, whole or in part, with one call of its executor for each box of leaves (`mod.rs` says what leaves and
//! boxes are).
//!
//! `mod.rs` calls [`nest`], [`whole`] and [`list`]; `walk.rs` and `ragged.rs` call [`nest`] for the nests that they reach.
//! All of them end in [`call`], which picks the executor: a compiled kernel, a leaf kernel, or the interpreter. It passes
//! the nest's parameter block, whose format `leaf/src/kernel/` defines.

use super::direction;
use super::stats::{self, Executor};
use super::verified::call_verified;
use crate::kernel::{Kernel, Level, Nest};
use crate::plan::{NestPlan, Plan, Strategy, contest};
use std::ops::Range;
use typepack_leaf::kernel::interpreter;
use typepack_leaf::{Routine, copy_swapped};

/// Executes packed bytes `range` of a nest whose outermost level makes `outer` iterations. `mem` is
/// the address of displacement 0 of the nest.
///
/// # Safety
///
/// The conditions of [`run`](super::run) hold for packed bytes `range` of this nest.
#[inline]
pub(super) unsafe fn nest<const PACK: bool>(
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
        // SAFETY: the range is all bytes of the nest with `outer` iterations, and the caller
        // guarantees that the range is valid.
        return unsafe { whole::<PACK>(plan, planned, outer, mem, bytes, packed) };
    }
    let inner = planned.nest.levels.len() - 1;
    if let Level::Loop { stride, .. } = planned.nest.levels[inner]
        && (inner == 0 || inner == 1 && outer == 1)
    {
        // If the nest is a single loop, or a loop inside a single iteration of the outermost level,
        // and if the range consists of whole leaves, one call of the kernel executes the range.
        // `plan/segments.rs` proposes such ranges for such nests.
        let (first, skip) = planned.leaf_bytes.divide(range.start);
        let (count, rest) = planned.leaf_bytes.divide(bytes);
        if skip == 0 && rest == 0 {
            let mut words = planned.words;
            words[0] = outer;
            words[3 * inner] = count;
            let at = base.wrapping_offset((first as i64).wrapping_mul(stride) as isize);
            // SAFETY: `words` and `at` describe `count` leaves, beginning with leaf `first`. These
            // leaves are exactly the range.
            return unsafe { call::<PACK>(plan, planned, &words, at, packed, bytes) };
        }
    }
    // SAFETY: `base` is the address of the nest's base. The caller guarantees the conditions of
    // this function, and `partial` gets the same arguments.
    unsafe { partial::<PACK>(plan, planned, outer, base, range, packed) }
}

/// Executes any range of a nest: the broken leaves at the ends, and the boxes between them.
///
/// # Safety
///
/// The conditions of [`nest`] hold, and `base` is the address of the nest's base.
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
        // SAFETY: `at` is the address of a leaf of the nest. Bytes `skip..skip + bytes` of the leaf
        // are in the range, and the caller guarantees that the range is valid. If the plan swaps
        // bytes, these are whole basic elements, because the range cuts no basic element; `swap`
        // describes this leaf, and this machine has the plan's instruction set.
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
        // SAFETY: `words` and `at` describe the next `moved` leaves. All their bytes are in the
        // range, and their packed size is `moved * leaf`.
        unsafe { call::<PACK>(plan, planned, &words, at, packed, moved * leaf) };
        packed = packed.wrapping_add((moved * leaf) as usize);
        items -= moved;
        place.advance(level, words[3 * level]);
    }
    if rest != 0 {
        broken(&place, 0, rest, packed);
    }
}

/// The position of a leaf in a nest: one index per level. `partial` computes the indices by
/// division only for the first leaf of its range, and increments the indices after each box. With
/// divisions for every box, packing four nested loops in ranges of 8 KiB took longer than now. The
/// difference was 8 % of the time of packing the same loops in one call (`typepack-bench commit`,
/// "nest of 4 loops").
struct Place<'a> {
    planned: &'a NestPlan,
    /// Number of iterations of the outermost level.
    outer: u64,
    indices: [u64; Nest::MAX_DEPTH],
}

impl<'a> Place<'a> {
    /// Returns the position of leaf number `item`.
    fn of(planned: &'a NestPlan, outer: u64, item: u64) -> Self {
        let mut indices = [0; Nest::MAX_DEPTH];
        let (inner, mut rest) = (planned.nest.levels.len() - 1, item);
        for (index, &below) in indices.iter_mut().zip(&planned.below[..inner]) {
            (*index, rest) = below.divide(rest);
        }
        // One iteration of the innermost level is one leaf, so the remainder is the innermost index.
        indices[inner] = rest;
        Self { planned, outer, indices }
    }

    /// Returns the number of iterations of `level`.
    fn count(&self, level: usize) -> u64 {
        if level == 0 { self.outer } else { self.planned.words[3 * level] }
    }

    /// Returns the displacement of the leaf from the nest's base.
    fn displacement(&self) -> i64 {
        let levels = self.planned.nest.levels.iter().zip(&self.indices);
        levels.fold(0, |at: i64, (level, &index)| {
            at.wrapping_add(match level {
                Level::Loop { stride, .. } => (index as i64).wrapping_mul(*stride),
                Level::Table { entries, scale } => entries.get(index as usize).wrapping_mul(*scale),
            })
        })
    }

    /// Finds the largest box of whole iterations that begins at this leaf and has at most `items`
    /// leaves, where `items` is not 0. Changes `words` from the parameters of the whole nest to those
    /// of the box. Returns the displacement of the box's base, and the level whose iterations make up
    /// the box.
    #[inline]
    fn next_box(&self, items: u64, words: &mut [u64; Nest::WORDS]) -> (i64, usize) {
        let planned = self.planned;
        // Find the outermost level that has a whole iteration which begins at this leaf and has at
        // most `items` leaves. The innermost level always has one, because each of its iterations
        // is a single leaf.
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
        // The product is at most the number of leaves of the nest, so it cannot overflow.
        words[3 * level] = if left * below.get() <= items { left } else { below.divide(items).0 };
        (shift, level)
    }

    /// Advances the position by `count` iterations of `level`. The level has at least `count`
    /// iterations left.
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

/// Executes a whole nest that has `bytes` packed bytes and makes `outer` iterations of the
/// outermost level. Two cases are inlined into the caller: the usual call with one element, and
/// nests of one level.
///
/// # Safety
///
/// The conditions of [`run`](super::run) hold for all bytes of this nest. `mem` is the address of
/// displacement 0 of the nest.
#[inline(always)]
pub(super) unsafe fn whole<const PACK: bool>(
    plan: &Plan,
    planned: &NestPlan,
    outer: u64,
    mem: *mut u8,
    bytes: u64,
    packed: *mut u8,
) {
    let base = mem.wrapping_offset(planned.nest.base as isize);
    // The plan stores the parameter block for one element, so one element needs no copy of the
    // block.
    if outer == planned.words[0] {
        // SAFETY: `planned.words` has `outer` as its first count, so it describes the whole nest.
        // `base` is the address of the nest's base.
        return unsafe { call::<PACK>(plan, planned, &planned.words, base, packed, bytes) };
    }
    if planned.nest.levels.len() == 1 {
        // SAFETY: the parameter block of a nest of one level has at most 4 words. The caller guarantees
        // that the whole nest is valid, and `base` is the address of its base.
        return unsafe { with_outer::<PACK, 4>(plan, planned, outer, base, packed, bytes) };
    }
    // SAFETY: the caller guarantees that the whole nest is valid, and `base` is the address of the
    // nest's base.
    unsafe { deep::<PACK>(plan, planned, outer, base, packed, bytes) }
}

/// Executes the case that [`whole`] does not inline: a nest of several levels whose outermost count is
/// not the one in the plan's parameter block, usually because the call has several elements. For a nest
/// of two or three levels, the function copies only 10 words of the parameter block, because copying
/// all 25 words would take as long as a short call of the kernel.
///
/// # Safety
///
/// The conditions of [`whole`] hold, and `base` is the address of the nest's base.
#[inline(never)]
unsafe fn deep<const PACK: bool>(
    plan: &Plan,
    planned: &NestPlan,
    outer: u64,
    base: *mut u8,
    packed: *mut u8,
    bytes: u64,
) {
    // SAFETY: the caller guarantees that the nest at `base` is valid. The parameter block has at most
    // 10 words if the nest has at most three levels, and never more than `Nest::WORDS`.
    unsafe {
        match planned.nest.levels.len() {
            ..=3 => with_outer::<PACK, 10>(plan, planned, outer, base, packed, bytes),
            _ => with_outer::<PACK, { Nest::WORDS }>(plan, planned, outer, base, packed, bytes),
        }
    }
}

/// Calls the executor of a nest with `outer` iterations of the outermost level. The parameters are
/// a copy of the first `WORDS` words of the nest's parameter block.
///
/// # Safety
///
/// - The conditions of [`whole`] hold. `base` is the address of the nest's base.
/// - The nest's parameter block has at most `WORDS` words.
#[inline(always)]
unsafe fn with_outer<const PACK: bool, const WORDS: usize>(
    plan: &Plan,
    planned: &NestPlan,
    outer: u64,
    base: *mut u8,
    packed: *mut u8,
    bytes: u64,
) {
    let mut words = [0; WORDS];
    words.copy_from_slice(&planned.words[..WORDS]);
    words[0] = outer;
    // SAFETY: `words` are the nest's parameters with `outer` iterations on the outermost level. So
    // they describe the whole nest at `base`, and the caller guarantees that this nest is valid.
    unsafe { call::<PACK>(plan, planned, &words, base, packed, bytes) }
}

/// Executes `count` whole elements. The body of the program is a list of parts, each a nest or a
/// block.
///
/// # Safety
///
/// The conditions of [`run`](super::run) hold for all packed bytes of `count` elements.
pub(super) unsafe fn list<const PACK: bool>(
    plan: &Plan,
    count: u64,
    origin: *mut u8,
    packed: *mut u8,
) {
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
                    // SAFETY: the caller guarantees that all parts of all elements are valid. This
                    // part is the whole nest that `planned.words` describes, and `base` is the
                    // address of the nest's base.
                    unsafe {
                        call::<PACK>(plan, planned, &planned.words, base, packed, part.bytes)
                    };
                }
                None => {
                    let (isa, bytes) = (plan.isa(), part.bytes as usize);
                    // SAFETY: the caller guarantees that all parts of all elements are valid. This part
                    // is a block of `bytes` bytes at `mem`; `packed` has advanced past the previous
                    // parts. The block consists of whole elements of width `part.width`, and this
                    // machine has the plan's instruction set.
                    unsafe { copy_swapped::<PACK>(isa, part.width, mem, packed, bytes) };
                    stats::add(Executor::Interpreter, part.bytes);
                }
            }
            packed = packed.wrapping_add(part.bytes as usize);
        }
        element = element.wrapping_offset(program.stride as isize);
    }
}

/// Executes a nest with the given parameters. Calls the compiled kernel if the nest has one that is
/// wanted for `bytes` bytes, otherwise the leaf kernel if the nest has one, otherwise the interpreter.
/// Under `Settings::verify`, the interpreter also checks the result of a kernel.
///
/// # Safety
///
/// - `words`, `mem` and `packed` meet the conditions of [`Entry`](crate::kernel::Entry), for the
///   shape of `planned` in this direction.
/// - Under `Settings::verify`, the memory that an unpack writes is also valid for reads.
/// - `bytes` is the packed size of the leaves that `words` describes.
#[inline]
unsafe fn call<const PACK: bool>(
    plan: &Plan,
    planned: &NestPlan,
    words: &[u64],
    mem: *mut u8,
    packed: *mut u8,
    bytes: u64,
) {
    // SAFETY: the caller guarantees the conditions of this function, and both functions have the same conditions.
    unsafe {
        if bytes < contest::LEAST {
            by_model::<PACK>(plan, planned, words, mem, packed, bytes);
        } else {
            long::<PACK>(plan, planned, words, mem, packed, bytes);
        }
    }
}

/// Executes a nest in a long call. If there are a leaf kernel and a compiled kernel, measurements decide between them.
/// This function is not inlined, so that it does not make short calls slower.
///
/// # Safety
///
/// The conditions of [`call`] hold.
#[inline(never)]
unsafe fn long<const PACK: bool>(
    plan: &Plan,
    planned: &NestPlan,
    words: &[u64],
    mem: *mut u8,
    packed: *mut u8,
    bytes: u64,
) {
    let settings = plan.settings();
    let selected = planned.selected(direction(PACK), settings);
    if !settings.verify
        && let Some((kernel, contest)) = planned.rivals(selected, direction(PACK), bytes, settings)
        && let Some(routine) = &selected.routine
    {
        // SAFETY: the kernel and the routine were made for this nest and direction, and the caller guarantees that
        // `words`, `mem` and `packed` meet the nest's conditions.
        return contest.run(bytes, |way| unsafe {
            match way {
                contest::KERNEL => compiled(kernel, words, mem, packed, bytes),
                _ => leaf::<PACK>(planned, routine, words, mem, packed, bytes),
            }
        });
    }
    // SAFETY: the caller guarantees the conditions of `call`, which `by_model` has too.
    unsafe { by_model::<PACK>(plan, planned, words, mem, packed, bytes) };
}

/// Executes a nest with the executor that the cost model recommends.
///
/// # Safety
///
/// The conditions of [`call`] hold.
#[inline(always)]
unsafe fn by_model<const PACK: bool>(
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
        // SAFETY: the caller guarantees the conditions of this function, and `call_verified` gets
        // the same arguments. `kernel` and `selected` were looked up for `planned` in this
        // direction.
        return unsafe {
            call_verified::<PACK>(planned, kernel, selected, words, mem, packed, bytes);
        };
    }
    if let Some(kernel) = kernel {
        // SAFETY: the kernel implements the nest's shape in this direction, and the caller
        // guarantees that `words`, `mem` and `packed` meet the conditions of that shape.
        unsafe { compiled(kernel, words, mem, packed, bytes) };
    } else if let Some(routine) = &selected.routine {
        // SAFETY: the routine was made for this nest and direction, and the caller guarantees that
        // `words`, `mem` and `packed` meet the nest's conditions.
        unsafe { leaf::<PACK>(planned, routine, words, mem, packed, bytes) };
    } else {
        // SAFETY: `interpret` has the conditions of this function, which the caller guarantees, and
        // gets the same arguments.
        unsafe { interpret::<PACK>(planned, words, mem, packed, bytes) };
    }
}

/// Calls a compiled kernel.
///
/// # Safety
///
/// - `words`, `mem` and `packed` meet the conditions of [`Entry`](crate::kernel::Entry), for the shape of the kernel.
#[inline(always)]
unsafe fn compiled(kernel: &Kernel, words: &[u64], mem: *mut u8, packed: *mut u8, bytes: u64) {
    // SAFETY: the caller guarantees the conditions of `Entry` (condition of `# Safety`).
    unsafe { (kernel.entry())(words.as_ptr(), mem, packed) };
    stats::add(Executor::Kernel, bytes);
}

/// Calls a leaf kernel.
///
/// # Safety
///
/// - The routine was made for the nest and the direction.
/// - `words`, `mem` and `packed` meet the conditions of [`Entry`](crate::kernel::Entry), for the nest.
#[inline(always)]
unsafe fn leaf<const PACK: bool>(
    planned: &NestPlan,
    routine: &Routine,
    words: &[u64],
    mem: *mut u8,
    packed: *mut u8,
    bytes: u64,
) {
    // SAFETY: the routine was made for the nest and the direction, and `words`, `mem` and `packed` meet the nest's
    // conditions (both conditions of `# Safety`).
    unsafe { routine.run::<PACK>(&planned.nest, words, mem, packed) };
    stats::add(Executor::Leaf, bytes);
}

/// Executes a nest with the interpreter. Adds the bytes moved to the count of `Executor::Rows` if the
/// nest's strategy is `Strategy::Rows`, and otherwise to that of `Executor::Interpreter` (`stats.rs`).
///
/// # Safety
///
/// The conditions of [`call`] hold.
unsafe fn interpret<const PACK: bool>(
    planned: &NestPlan,
    words: &[u64],
    mem: *mut u8,
    packed: *mut u8,
    bytes: u64,
) {
    // SAFETY: the caller guarantees that `words`, `mem` and `packed` meet the conditions of `Entry`
    // for `planned.nest`.
    unsafe { interpreter::run::<PACK>(&planned.nest, words, mem, packed) };
    let rows = planned.strategy == Strategy::Rows;
    stats::add(if rows { Executor::Rows } else { Executor::Interpreter }, bytes);
}
