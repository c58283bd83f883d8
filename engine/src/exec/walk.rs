//! A program that is not one nest, over any range.
//!
//! Called by `mod.rs`; `ir/walk.rs` finds the way, with stops at every nest that the plan has a kernel
//! for, at lists (`ragged.rs`) and at blocks.

use super::ragged::{Ragged, ragged};
use super::range::nest;
use super::stats::{self, Executor};
use crate::ir::Op;
use crate::ir::walk::Walk;
use crate::leaf::copy_swapped;
use crate::plan::Plan;
use std::ops::Range;

/// Executes a program that is not one nest.
///
/// # Safety
///
/// As for [`run`](super::run).
pub(super) unsafe fn walk<const PACK: bool>(
    plan: &Plan,
    count: u64,
    origin: *mut u8,
    range: Range<u64>,
    packed: *mut u8,
) {
    debug_assert!(range.end <= count * plan.element_bytes());
    let program = plan.program();
    let mut packed = packed;
    let mut walk = Walk::of_elements(program, range);
    while let Some(stop) = walk.next(|id, node| match &node.op {
        Op::Block => true,
        Op::Ragged { stride, body, .. } if program.is_dense(*stride, *body) => true,
        _ => plan.nest_of_node(id).is_some(),
    }) {
        let mem = origin.wrapping_offset(stop.at as isize);
        let (node, bytes) = (program.node(stop.node), stop.to - stop.from);
        match (&node.op, plan.nest_of_node(stop.node)) {
            (Op::Ragged { list, scale, body, .. }, planned) => {
                let place = Ragged { list, scale: *scale, body: *body, bytes: node.bytes };
                // SAFETY: the stop is a part of the range, and stops come in packed order; the nest
                // is the list's.
                unsafe { ragged::<PACK>(plan, planned, &place, mem, stop.from..stop.to, packed) };
            }
            (_, Some(planned)) => {
                let outer = planned.words[0];
                // SAFETY: as above; the nest executes this node at displacement 0 of `mem`.
                unsafe { nest::<PACK>(plan, planned, outer, mem, stop.from..stop.to, packed) };
            }
            (_, None) => {
                let (isa, width) = (plan.isa(), plan.width(stop.node));
                let mem = mem.wrapping_add(stop.from as usize);
                // SAFETY: as above; the node is a block.
                unsafe { copy_swapped::<PACK>(isa, width, mem, packed, bytes as usize) };
                stats::add(Executor::Interpreter, bytes);
            }
        }
        packed = packed.wrapping_add(bytes as usize);
    }
}
