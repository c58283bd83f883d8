//! Executes any range of a program that is not one nest.
//!
//! `mod.rs` calls [`walk()`]. The walk itself is in `ir/walk.rs`. It stops at every node for which
//! the plan holds a nest, at every ragged list of runs (`ragged.rs`), and at every block; this file
//! executes these nodes.

use super::nest::nest;
use super::ragged::{Ragged, ragged};
use super::stats::{self, Executor};
use crate::ir::Op;
use crate::ir::walk::Walk;
use crate::plan::Plan;
use std::ops::Range;
use typepack_leaf::copy_swapped;

/// Executes the packed bytes `range` of a program that is not one nest.
///
/// # Safety
///
/// The conditions of [`run`](super::run) hold.
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
                // SAFETY: packed bytes `stop.from..stop.to` of the list are a part of the range,
                // and the caller guarantees that the range is valid. The walk visits its stops in
                // packed order, so `packed` is the address of byte `stop.from` of the list.
                // `planned` is the plan of the list's nests. If it is `None`, the walk has stopped
                // here because the list's entries are runs.
                unsafe { ragged::<PACK>(plan, planned, &place, mem, stop.from..stop.to, packed) };
            }
            (_, Some(planned)) => {
                let outer = planned.words[0];
                // SAFETY: packed bytes `stop.from..stop.to` of the nest are a part of the range,
                // and the caller guarantees that the range is valid. `packed` is the address of
                // byte `stop.from` of the nest, and `mem` is the address of the nest's displacement
                // 0.
                unsafe { nest::<PACK>(plan, planned, outer, mem, stop.from..stop.to, packed) };
            }
            (_, None) => {
                let (isa, width) = (plan.isa(), plan.width(stop.node));
                let mem = mem.wrapping_add(stop.from as usize);
                // SAFETY: the stop is a block or a part of a block. All its `bytes` bytes are in
                // the range, so the caller guarantees that they are valid at `mem` and at `packed`.
                // If the plan swaps bytes, they are whole basic elements. This machine has the
                // plan's instruction set.
                unsafe { copy_swapped::<PACK>(isa, width, mem, packed, bytes as usize) };
                stats::add(Executor::Interpreter, bytes);
            }
        }
        packed = packed.wrapping_add(bytes as usize);
    }
}
