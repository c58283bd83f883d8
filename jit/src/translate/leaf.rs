//! Emits the code of one or more leaves, in both directions. A leaf is what the innermost loop moves
//! in each iteration: a block or a few short runs.
//!
//! `levels.rs` calls [`emit`] with the addresses of the leaves of an unrolled body. `moves.rs` cuts the
//! runs into moves, and `join.rs` joins stores. Short runs become straight-line code. Runs longer than
//! [`STRAIGHT`] bytes, and Long leaves (blocks whose length the parameter block states), become a loop
//! of 64-byte chunks.

use super::join;
use super::moves::moves;
use crate::target::Machine;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockArg, InstBuilder, Type, Value, types};
use cranelift_frontend::FunctionBuilder;
use typepack_engine::kernel::{Direction, LeafShape, Run, Shape};

/// Length of the longest run of a window that becomes straight-line code, in bytes. A run of this
/// length takes eight moves. For longer runs the loop of chunks costs no extra time. With this
/// limit the 32 runs of a window stay within a few KiB of code.
const STRAIGHT: u64 = 128;

/// Bytes per iteration of the loop over a long run.
const CHUNK: i64 = 64;

/// One load and its store.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacedMove {
    /// Address of the leaf in the memory that the datatype describes (in a fused copy: in the
    /// source). `offset` is not included.
    pub(super) mem: Value,
    /// Displacement from `mem`, in bytes.
    pub(super) offset: i32,
    /// Displacement in bytes from the packed address of the unrolled body. In a fused copy,
    /// displacement from the address of the leaf in the destination.
    pub(super) packed: i32,
    /// Length in bytes: 1, 2, 4, 8 or 16.
    pub(super) bytes: u32,
}

/// Returns the type of a load of `bytes` bytes.
pub(super) fn move_type(bytes: u32) -> Type {
    match bytes {
        1 => types::I8,
        2 => types::I16,
        4 => types::I32,
        8 => types::I64,
        16 => types::I8X16,
        // This arm is never reached, because `moves` makes no other length.
        _ => unreachable!("a move of {bytes} bytes; it must have 1, 2, 4, 8 or 16"),
    }
}

/// Returns the number of moves of one leaf, from which callers compute how far to unroll. Returns
/// `None` if the leaf contains a loop and must not be unrolled.
pub(super) fn moves_of(leaf: &LeafShape) -> Option<usize> {
    match leaf {
        LeafShape::Fixed { bytes } => Some(moves(*bytes).len()),
        LeafShape::Long => None,
        LeafShape::Window { runs } => runs
            .iter()
            .map(|run| (run.bytes <= STRAIGHT).then(|| moves(run.bytes as u32).len()))
            .sum(),
    }
}

/// Emits the copy of the leaves at `mems`, in order, from or to consecutive bytes at `packed`.
///
/// `length` is the block length of a Long leaf. For a Long leaf, and for a leaf with a run longer than
/// [`STRAIGHT`], `mems` must hold exactly one address; [`moves_of`] returns `None` for such leaves.
pub(super) fn emit(
    b: &mut FunctionBuilder,
    shape: &Shape,
    machine: Machine,
    mems: &[Value],
    packed: Value,
    length: Option<Value>,
) {
    let whole;
    let runs: &[Run] = match &shape.leaf {
        LeafShape::Fixed { bytes } => {
            whole = [Run { offset: 0, bytes: u64::from(*bytes) }];
            &whole
        }
        LeafShape::Window { runs } => runs,
        LeafShape::Long => {
            let length = length.expect("levels.rs should have loaded the length of a Long leaf");
            long_run(b, shape.direction, mems[0], packed, length);
            return;
        }
    };
    let mut placed = Vec::new();
    let mut at = 0_i32;
    for &mem in mems {
        for run in runs {
            // The casts lose nothing, because `check` in translate/mod.rs limits both numbers.
            let (offset, bytes) = (run.offset as i32, run.bytes as u32);
            if run.bytes <= STRAIGHT {
                placed.extend(moves(bytes).into_iter().map(|m| PlacedMove {
                    mem,
                    offset: offset + m.offset as i32,
                    packed: at + m.offset as i32,
                    bytes: m.bytes,
                }));
            } else {
                // Emits the moves before this run first, because unpacking must keep the order of
                // runs.
                straight(b, shape.direction, machine, &placed, packed);
                placed.clear();
                let mem = b.ins().iadd_imm_s(mem, i64::from(offset));
                let packed = b.ins().iadd_imm_s(packed, i64::from(at));
                let length = b.ins().iconst(types::I64, i64::from(bytes));
                long_run(b, shape.direction, mem, packed, length);
            }
            at += bytes as i32;
        }
    }
    straight(b, shape.direction, machine, &placed, packed);
}

/// Emits the moves `placed` in order, without a loop.
fn straight(
    b: &mut FunctionBuilder,
    direction: Direction,
    machine: Machine,
    placed: &[PlacedMove],
    packed: Value,
) {
    match direction {
        Direction::Pack => join::pack(b, machine, placed, packed),
        Direction::Unpack => {
            // Each store gets a load of its own. One wider load could serve several stores, but
            // unpacking does not wait for loads, and splitting the loaded value would cost a
            // shuffle or a shift per store.
            for each in placed {
                let ty = move_type(each.bytes);
                let value = b.ins().load(ty, super::flags(), packed, each.packed);
                b.ins().store(super::flags(), value, each.mem, each.offset);
            }
        }
    }
}

/// Emits the copy of one run of `length` bytes. `length` must be more than 64.
fn long_run(
    b: &mut FunctionBuilder,
    direction: Direction,
    mem: Value,
    packed: Value,
    length: Value,
) {
    let (from, to) = match direction {
        Direction::Pack => (mem, packed),
        Direction::Unpack => (packed, mem),
    };
    copy_run(b, from, to, length);
}

/// Emits the copy of `length` bytes; `length` must be more than 64. The code copies whole chunks
/// while more than a chunk is left, and then the last 64 bytes of the run. The last 64 bytes
/// overlap the chunk before them unless `length` is a multiple of 64.
pub(super) fn copy_run(b: &mut FunctionBuilder, from: Value, to: Value, length: Value) {
    let last = b.ins().iadd_imm_s(length, -CHUNK);
    let chunks = b.create_block();
    let tail = b.create_block();
    let at = b.append_block_param(chunks, types::I64);
    let zero = b.ins().iconst(types::I64, 0);
    b.ins().jump(chunks, &[BlockArg::Value(zero)]);

    b.switch_to_block(chunks);
    chunk(b, from, to, at);
    let next = b.ins().iadd_imm_s(at, CHUNK);
    let more = b.ins().icmp(IntCC::UnsignedLessThan, next, last);
    b.ins().brif(more, chunks, &[BlockArg::Value(next)], tail, &[]);

    b.switch_to_block(tail);
    chunk(b, from, to, last);
}

/// Emits the copy of 64 bytes, from displacement `at` of the source to the same displacement of the
/// destination.
fn chunk(b: &mut FunctionBuilder, from: Value, to: Value, at: Value) {
    let from = b.ins().iadd(from, at);
    let to = b.ins().iadd(to, at);
    let values: Vec<Value> =
        (0..4).map(|i| b.ins().load(types::I8X16, super::flags(), from, i * 16)).collect();
    for (i, value) in (0..).zip(values) {
        b.ins().store(super::flags(), value, to, i * 16);
    }
}
