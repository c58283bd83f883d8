//! Executes all bytes of a nest, or whole elements whose body is a list of nests and blocks.
//!
//! `mod.rs` and `range.rs` call these functions. `call.rs` picks the executor of each nest.

use super::call::call;
use super::stats::{self, Executor};
use crate::kernel::Nest;
use crate::plan::{NestPlan, Plan};
use typepack_leaf::copy_swapped;

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
