//! Emits the kernel of a fused copy (a copy from one layout directly to another): the loops and the
//! body, with one address stream for the source and one for the destination.
//!
//! `translate/mod.rs` calls [`build`]. This file is the counterpart of `levels.rs` and `leaf.rs`. A
//! kernel from this file has the same structure as a kernel from those files (outer levels, groups
//! of unrolled leaves, the remaining leaves in powers of two), with two differences. Neither side
//! is a consecutive stream, so the innermost loop counts its leaves down. And each run of a leaf
//! has a displacement on both sides.

use super::join;
use super::leaf::{self, PlacedMove};
use super::moves::moves;
use super::stream::{Cursor, Multiples, Stream, word};
use crate::target::Machine;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Value, types};
use cranelift_frontend::FunctionBuilder;
use typepack_engine::kernel::{TransferLeaf, TransferShape};

/// Maximum number of moves (a load and a store each) in an unrolled body of several leaves.
const BODY_MOVES: usize = 8;
/// Maximum number of leaves in an unrolled body. It is small, because two streams need twice as
/// many registers as one.
const BODY_LEAVES: usize = 4;

struct LevelStreams {
    count: Value,
    /// The streams of the source and of the destination.
    sides: [Stream; 2],
}

struct Kernel<'a, 'b, 'c> {
    b: &'a mut FunctionBuilder<'b>,
    shape: &'c TransferShape,
    machine: Machine,
    levels: Vec<LevelStreams>,
    unroll: usize,
    multiples: [Multiples; 2],
    /// Block length of a Long leaf; `None` for other leaves.
    length: Option<Value>,
}

/// Emits the kernel of `shape` into the function under construction.
pub(super) fn build(b: &mut FunctionBuilder, shape: &TransferShape, machine: Machine) {
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let (params, bases) = match *b.block_params(entry) {
        [params, from, to] => (params, [from, to]),
        _ => unreachable!("the signature does not have exactly three parameters"),
    };
    let exit = b.create_block();
    let counts: Vec<Value> = (0..shape.levels.len())
        .map(|l| {
            let count = word(b, params, 5 * l);
            let next = b.create_block();
            b.ins().brif(count, next, &[], exit, &[]);
            b.switch_to_block(next);
            count
        })
        .collect();
    let levels: Vec<LevelStreams> = (shape.levels.iter().zip(counts).enumerate())
        .map(|(l, (&[from, to], count))| {
            let from = Stream::load(b, from, params, 5 * l + 1);
            let to = Stream::load(b, to, params, 5 * l + 3);
            LevelStreams { count, sides: [from, to] }
        })
        .collect();
    let unroll = unroll(&shape.leaf);
    let multiples = levels[levels.len() - 1].sides.map(|side| side.multiples(b, unroll));
    let length = (shape.leaf == TransferLeaf::Long).then(|| word(b, params, 5 * levels.len()));
    let mut kernel = Kernel { b, shape, machine, levels, unroll, multiples, length };
    kernel.level(0, bases);
    kernel.b.ins().jump(exit, &[]);
    kernel.b.switch_to_block(exit);
    kernel.b.ins().return_(&[]);
}

/// Returns the number of leaves in the unrolled innermost body. The number is a power of two, so
/// that the kernel can compute with a mask how many leaves are in whole groups.
fn unroll(leaf: &TransferLeaf) -> usize {
    let TransferLeaf::Runs { runs } = leaf else { return 1 };
    let moves_of_leaf: usize = runs.iter().map(|run| moves(run.bytes as u32).len()).sum();
    1 << (BODY_MOVES / moves_of_leaf.max(1)).clamp(1, BODY_LEAVES).ilog2()
}

impl Kernel<'_, '_, '_> {
    /// Emits level `l` and all levels inside it.
    fn level(&mut self, l: usize, bases: [Value; 2]) {
        let (sides, count) = (self.levels[l].sides, self.levels[l].count);
        let starts = [sides[0].start(bases[0]), sides[1].start(bases[1])];
        if l + 1 == self.levels.len() {
            return self.innermost(bases, starts, count);
        }
        let (body, done) = (self.loop_block(), self.b.create_block());
        self.b.ins().jump(body, &args(starts, count));
        let (cursors, left) = self.enter(body);
        let inner = [0, 1].map(|s| sides[s].address(self.b, bases[s], cursors[s], 0));
        self.level(l + 1, inner);
        let next = [0, 1].map(|s| sides[s].next(self.b, cursors[s]));
        let left = self.b.ins().iadd_imm_s(left, -1);
        self.b.ins().brif(left, body, &args(next, left), done, &[]);
        self.b.switch_to_block(done);
    }

    /// Emits the innermost level.
    fn innermost(&mut self, bases: [Value; 2], starts: [Cursor; 2], count: Value) {
        let unroll = self.unroll;
        let after = self.loop_block();
        let turn = self.loop_block();
        if unroll == 1 {
            // The loop tests its condition only after its body. This is correct, because the code
            // from `build` has returned if the count is 0.
            self.b.ins().jump(turn, &args(starts, count));
        } else {
            let groups = self.b.ins().band_imm_s(count, -(unroll as i64));
            self.b.ins().brif(groups, turn, &args(starts, groups), after, &args(starts, groups));
        }
        let (cursors, left) = self.enter(turn);
        let next = self.body(unroll, bases, cursors);
        let left = self.b.ins().iadd_imm_s(left, -(unroll as i64));
        self.b.ins().brif(left, turn, &args(next, left), after, &args(next, left));
        let (mut cursors, mut left) = self.enter(after);
        let mut leaves = unroll / 2;
        while leaves > 0 {
            let (some, after) = (self.b.create_block(), self.loop_block());
            let bit = self.b.ins().band_imm_s(count, leaves as i64);
            self.b.ins().brif(bit, some, &[], after, &args(cursors, left));
            self.b.switch_to_block(some);
            let next = self.body(leaves, bases, cursors);
            self.b.ins().jump(after, &args(next, left));
            (cursors, left) = self.enter(after);
            leaves /= 2;
        }
    }

    /// Emits `leaves` leaves. Returns the cursors after them.
    fn body(&mut self, leaves: usize, bases: [Value; 2], cursors: [Cursor; 2]) -> [Cursor; 2] {
        let sides = self.levels[self.levels.len() - 1].sides;
        let [from, to] = [0, 1]
            .map(|s| sides[s].addresses(self.b, bases[s], cursors[s], leaves, self.multiples[s]));
        for (&from, &to) in from.iter().zip(&to) {
            match (&self.shape.leaf, self.length) {
                (TransferLeaf::Runs { runs }, _) => {
                    let placed: Vec<PlacedMove> = runs
                        .iter()
                        .flat_map(|run| {
                            // The casts lose nothing, because `check_transfer` limits these
                            // numbers.
                            moves(run.bytes as u32).into_iter().map(|m| PlacedMove {
                                mem: from,
                                offset: run.from as i32 + m.offset as i32,
                                packed: run.to as i32 + m.offset as i32,
                                bytes: m.bytes,
                            })
                        })
                        .collect();
                    // Joins stores of consecutive runs that are adjacent in the destination.
                    join::pack(self.b, self.machine, &placed, to);
                }
                (TransferLeaf::Long, Some(length)) => leaf::copy_run(self.b, from, to, length),
                (TransferLeaf::Long, None) => {
                    unreachable!("`build` has not loaded the length of a Long leaf")
                }
            }
        }
        [0, 1].map(|s| sides[s].after(self.b, cursors[s], leaves, self.multiples[s]))
    }

    /// Makes a block with three parameters: two cursors and a count.
    fn loop_block(&mut self) -> Block {
        let block = self.b.create_block();
        for _ in 0..3 {
            self.b.append_block_param(block, types::I64);
        }
        block
    }

    /// Continues in a block that [`loop_block`](Self::loop_block) made. Returns the block's
    /// parameters.
    fn enter(&mut self, block: Block) -> ([Cursor; 2], Value) {
        self.b.switch_to_block(block);
        let params = self.b.block_params(block);
        ([params[0], params[1]], params[2])
    }
}

fn args(cursors: [Cursor; 2], count: Value) -> [BlockArg; 3] {
    [cursors[0], cursors[1], count].map(BlockArg::Value)
}
