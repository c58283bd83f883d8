//! Joins several narrow loads into one 16-byte store, when packing and in fused copies.
//!
//! `leaf.rs` and `transfer.rs` call [`pack`]. A move is one load and its store. Moves of different runs
//! may share a store if their bytes are adjacent in the destination, as they are in packed bytes. A
//! joined store writes exactly the bytes that its moves would write one by one. Unpacking joins
//! nothing, because a kernel must not write the gaps between runs.

use super::flags;
use super::leaf::{PlacedMove, move_type};
use crate::target::Machine;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::FunctionBuilder;

/// Number of bytes of a joined store.
const WIDE: u32 = 16;

/// Emits a load for each of `moves`, and the stores of the loaded values at `packed`. Joins stores if
/// joined stores are faster on `machine`.
pub(super) fn pack(b: &mut FunctionBuilder, machine: Machine, moves: &[PlacedMove], packed: Value) {
    let mut rest = moves;
    while let Some(first) = rest.first() {
        let lanes = if machine.joins { lanes(rest) } else { 1 };
        let (group, after) = rest.split_at(lanes);
        let value = if lanes == 1 { load(b, first) } else { joined(b, group) };
        b.ins().store(flags(), value, packed, first.packed);
        rest = after;
    }
}

/// Returns the number of moves at the start of `moves` that share a store. Moves share a store if
/// they have the same length (4 or 8 bytes), are adjacent in the destination, and fill 16 bytes
/// together. If the first move shares no store, the result is 1.
fn lanes(moves: &[PlacedMove]) -> usize {
    let bytes = moves[0].bytes;
    if !(bytes == 8 || bytes == 4) {
        return 1;
    }
    let lanes = (WIDE / bytes) as usize;
    let fits = moves.len() >= lanes
        && moves[..lanes]
            .windows(2)
            .all(|pair| pair[1].bytes == bytes && pair[1].packed == pair[0].packed + bytes as i32);
    if fits { lanes } else { 1 }
}

fn load(b: &mut FunctionBuilder, each: &PlacedMove) -> Value {
    b.ins().load(move_type(each.bytes), flags(), each.mem, each.offset)
}

/// Emits the loads of `group`. Returns their 16 bytes, in order, as one vector.
fn joined(b: &mut FunctionBuilder, group: &[PlacedMove]) -> Value {
    let vector = match group[0].bytes {
        8 => types::I64X2,
        _ => types::I32X4,
    };
    let low = load(b, &group[0]);
    let mut value = b.ins().scalar_to_vector(vector, low);
    for (lane, each) in (0_u8..).zip(group).skip(1) {
        let part = load(b, each);
        value = b.ins().insertlane(value, part, lane);
    }
    value
}
