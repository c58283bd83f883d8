//! All bytes of a nest, and of elements whose body is a list of nests and blocks.
//!
//! Called by `mod.rs` and `range.rs`; `call.rs` picks the kernel.

use super::call::call;
use super::stats::{self, Executor};
use crate::kernel::Nest;
use crate::leaf::copy_swapped;
use crate::plan::{NestPlan, Plan};

/// Executes a whole nest with `outer` iterations of the outermost level, `bytes` packed bytes. Two
/// cases stand in the caller: the usual call of one element, and nests of one level.
///
/// # Safety
///
/// As for [`run`](super::run), for this nest; `mem` is where displacement 0 of the nest is.
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
    // The block of one element stands ready.
    if outer == planned.words[0] {
        // SAFETY: the whole nest.
        return unsafe { call::<PACK>(plan, planned, &planned.words, base, packed, bytes) };
    }
    if planned.nest.levels.len() == 1 {
        // SAFETY: the whole nest, which has one level.
        return unsafe { with_outer::<PACK, 4>(plan, planned, outer, base, packed, bytes) };
    }
    // SAFETY: the whole nest.
    unsafe { deep::<PACK>(plan, planned, outer, base, packed, bytes) }
}

/// [`whole`] for several levels and several elements; all 25 words of the largest block take as
/// long to copy as a small call.
///
/// # Safety
///
/// As for [`whole`], with `base` as the address of the nest's base.
#[inline(never)]
unsafe fn deep<const PACK: bool>(
    plan: &Plan,
    planned: &NestPlan,
    outer: u64,
    base: *mut u8,
    packed: *mut u8,
    bytes: u64,
) {
    // SAFETY: as ours; the words of up to three levels are at most ten.
    unsafe {
        match planned.nest.levels.len() {
            ..=3 => with_outer::<PACK, 10>(plan, planned, outer, base, packed, bytes),
            _ => with_outer::<PACK, { Nest::WORDS }>(plan, planned, outer, base, packed, bytes),
        }
    }
}

/// Calls a nest with `outer` iterations of the outermost level, by a copy of `WORDS` words.
///
/// # Safety
///
/// - As for [`whole`], with `base` as the address of the nest's base.
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
    // SAFETY: the whole nest, whose parameters these are.
    unsafe { call::<PACK>(plan, planned, &words, base, packed, bytes) }
}

/// Executes whole elements whose body is a list of parts.
///
/// # Safety
///
/// As for [`run`](super::run), for all of `count` elements.
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
