//! Executes all bytes of a nest, or whole elements whose body is a list of nests and blocks.
//!
//! `mod.rs` and `range.rs` call this file; `call.rs` picks the kernel.

use super::call::call;
use super::stats::{self, Executor};
use crate::kernel::Nest;
use crate::leaf::copy_swapped;
use crate::plan::{NestPlan, Plan};

/// Executes a whole nest of `bytes` packed bytes, with `outer` iterations of the outermost level.
/// This function inlines two cases into its caller: the usual call with one element, and nests of
/// one level.
///
/// # Safety
///
/// The conditions of [`run`](super::run) hold, for this nest. `mem` is the address of displacement
/// 0 of the nest.
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
    // The plan holds the parameter block for one element.
    if outer == planned.words[0] {
        // SAFETY: `outer` is the count in `planned.words`, so these words describe the whole nest,
        // and `base` is its base.
        return unsafe { call::<PACK>(plan, planned, &planned.words, base, packed, bytes) };
    }
    if planned.nest.levels.len() == 1 {
        // SAFETY: a nest of one level has at most 4 words; the caller guarantees the whole nest,
        // whose base is `base`.
        return unsafe { with_outer::<PACK, 4>(plan, planned, outer, base, packed, bytes) };
    }
    // SAFETY: `base` is the base of the nest, all of which the caller guarantees.
    unsafe { deep::<PACK>(plan, planned, outer, base, packed, bytes) }
}

/// Executes the remaining cases of [`whole`]: several levels and several elements. This function
/// copies only as many words of the parameter block as the nest may have, because copying all 25
/// words of the largest block would take as long as a small call.
///
/// # Safety
///
/// The conditions of [`whole`] hold, with `base` as the address of the nest's base.
#[inline(never)]
unsafe fn deep<const PACK: bool>(
    plan: &Plan,
    planned: &NestPlan,
    outer: u64,
    base: *mut u8,
    packed: *mut u8,
    bytes: u64,
) {
    // SAFETY: the caller guarantees the nest at `base`; up to three levels have at most 10 words,
    // any nest has at most `Nest::WORDS`.
    unsafe {
        match planned.nest.levels.len() {
            ..=3 => with_outer::<PACK, 10>(plan, planned, outer, base, packed, bytes),
            _ => with_outer::<PACK, { Nest::WORDS }>(plan, planned, outer, base, packed, bytes),
        }
    }
}

/// Calls a nest with `outer` iterations of the outermost level, using a copy of `WORDS` words.
///
/// # Safety
///
/// - The conditions of [`whole`] hold, with `base` as the address of the nest's base.
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
    // SAFETY: `words` are the nest's parameters with `outer` iterations, so they describe the whole
    // nest at `base`.
    unsafe { call::<PACK>(plan, planned, &words, base, packed, bytes) }
}

/// Executes whole elements whose body is a list of parts.
///
/// # Safety
///
/// The conditions of [`run`](super::run) hold, for all of `count` elements.
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
                    // SAFETY: this part of the element is the whole nest that `planned.words`
                    // describes, with its base at `base`.
                    unsafe {
                        call::<PACK>(plan, planned, &planned.words, base, packed, part.bytes)
                    };
                }
                None => {
                    let (isa, bytes) = (plan.isa(), part.bytes as usize);
                    // SAFETY: this part of the element is a block of `bytes` bytes at `mem`, and
                    // `packed` has advanced by the parts before.
                    unsafe { copy_swapped::<PACK>(isa, part.width, mem, packed, bytes) };
                    stats::add(Executor::Interpreter, part.bytes);
                }
            }
            packed = packed.wrapping_add(part.bytes as usize);
        }
        element = element.wrapping_offset(program.stride as isize);
    }
}
