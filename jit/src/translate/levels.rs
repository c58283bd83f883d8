//! Emits the loops of a kernel, outermost to innermost.
//!
//! `translate/mod.rs` calls [`build`], and this file calls `leaf.rs` for the innermost body. The
//! kernel has this structure, in which a leaf is a block or a few short runs, and U is the number of
//! leaves in the unrolled body:
//!
//! ```text
//! entry:      load counts; any 0 -> return; load strides, scales, tables; derive the constants
//! outer l:    do { … } while --left        two blocks per level, all counts known non-zero
//! innermost:  do { U leaves } while packed != end of the last whole group
//!             the remaining leaves, binary: U/2 leaves or none, U/4 or none, … 1 or none
//! ```
//!
//! The innermost loop has no counter: it ends when the packed address, which advances anyway,
//! reaches the end of the last whole group. The remaining leaves are straight-line code instead of
//! a loop of single leaves. A row is one execution of the innermost level. Rows of fewer than U leaves
//! are common, and all rows take the same branches, so the processor predicts these branches well
//! (tune.rs, "short rows").

use super::leaf;
use super::stream::{Cursor, Multiples, Stream, word};
use crate::target::Machine;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Value, types};
use cranelift_frontend::FunctionBuilder;
use typepack_engine::kernel::{LeafShape, LevelShape, Shape};

/// Maximum number of moves (a load and a store each) in an unrolled body of several leaves. Also the
/// maximum number of these leaves.
const BODY_MOVES: usize = 8;

/// Maximum number of leaves in the unrolled body of a table. Each of its leaves costs one more load
/// and one more multiplication.
const BODY_ENTRIES: usize = 4;

/// One level: its count, and the stream that computes its addresses.
#[derive(Clone, Copy)]
struct LevelStream {
    count: Value,
    stream: Stream,
}

/// The values that the innermost loops need. The kernel computes them once, at its entry.
struct Innermost {
    /// Number of leaves in the unrolled body; a power of two.
    unroll: usize,
    /// Number of packed bytes of one leaf, if the shape fixes that number.
    leaf: Option<i64>,
    /// Number of packed bytes of all whole groups of `unroll` leaves in the innermost level.
    groups: Value,
    multiples: Multiples,
    /// Block length of a Long leaf; `None` for other leaves.
    length: Option<Value>,
}

struct Kernel<'a, 'b, 'c> {
    b: &'a mut FunctionBuilder<'b>,
    shape: &'c Shape,
    machine: Machine,
    levels: Vec<LevelStream>,
    inner: Innermost,
}

/// Emits the kernel of `shape` into the function under construction.
pub(super) fn build(b: &mut FunctionBuilder, shape: &Shape, machine: Machine) {
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let (params, mem, packed) = match *b.block_params(entry) {
        [params, mem, packed] => (params, mem, packed),
        _ => unreachable!("the signature does not have exactly three parameters"),
    };
    let exit = b.create_block();
    let levels = load_levels(b, shape, params, exit);
    let inner = prepare(b, shape, params, levels[levels.len() - 1]);
    let mut kernel = Kernel { b, shape, machine, levels, inner };
    kernel.level(0, mem, packed);
    kernel.b.ins().jump(exit, &[]);
    kernel.b.switch_to_block(exit);
    kernel.b.ins().return_(&[]);
}

/// Emits the loads of the parameter block, and a jump to `exit` if a count is 0.
fn load_levels(
    b: &mut FunctionBuilder,
    shape: &Shape,
    params: Value,
    exit: Block,
) -> Vec<LevelStream> {
    let counts: Vec<Value> = (0..shape.levels.len())
        .map(|l| {
            let count = word(b, params, 3 * l);
            let next = b.create_block();
            b.ins().brif(count, next, &[], exit, &[]);
            b.switch_to_block(next);
            count
        })
        .collect();
    shape
        .levels
        .iter()
        .zip(counts)
        .enumerate()
        .map(|(l, (&shape, count))| LevelStream {
            count,
            stream: Stream::load(b, shape, params, 3 * l + 1),
        })
        .collect()
}

/// Emits the computation of the values that the innermost loops need.
fn prepare(b: &mut FunctionBuilder, shape: &Shape, params: Value, level: LevelStream) -> Innermost {
    let unroll = unroll(shape, level.stream.shape);
    let leaf = match &shape.leaf {
        LeafShape::Long => None,
        LeafShape::Fixed { bytes } => Some(i64::from(*bytes)),
        // The sum fits in an `i64`, because `check` in translate/mod.rs allows at most 32 runs of 8
        // KiB.
        LeafShape::Window { runs } => Some(runs.iter().map(|run| run.bytes).sum::<u64>() as i64),
    };
    let length = leaf.is_none().then(|| word(b, params, 3 * shape.levels.len()));
    let packed_bytes = |b: &mut FunctionBuilder, count: Value| match (leaf, length) {
        (Some(bytes), _) => b.ins().imul_imm_s(count, bytes),
        (None, Some(length)) => b.ins().imul(count, length),
        (None, None) => unreachable!("a leaf has neither a constant length nor a run-time length"),
    };
    let count = match unroll {
        1 => level.count,
        _ => b.ins().band_imm_s(level.count, -(unroll as i64)),
    };
    let groups = packed_bytes(b, count);
    let multiples = level.stream.multiples(b, unroll);
    Innermost { unroll, leaf, groups, multiples, length }
}

/// Returns the number of leaves in the unrolled innermost body.
fn unroll(shape: &Shape, innermost: LevelShape) -> usize {
    let Some(moves) = leaf::moves_of(&shape.leaf) else { return 1 };
    let most = if innermost == LevelShape::Loop { BODY_MOVES } else { BODY_ENTRIES };
    let leaves = (BODY_MOVES / moves.max(1)).clamp(1, most);
    // Rounds down to a power of two, so that the kernel can compute with a mask how many leaves are
    // in whole groups.
    1 << leaves.ilog2()
}

impl Kernel<'_, '_, '_> {
    /// Emits level `l` and all levels inside it. Returns the packed address after the level.
    fn level(&mut self, l: usize, mem: Value, packed: Value) -> Value {
        if l + 1 == self.levels.len() {
            return self.innermost(mem, packed);
        }
        let level = self.levels[l];
        let body = self.b.create_block();
        let done = self.b.create_block();
        let cursor = self.b.append_block_param(body, types::I64);
        let left = self.b.append_block_param(body, types::I64);
        let at = self.b.append_block_param(body, types::I64);
        let start = level.stream.start(mem);
        self.b.ins().jump(body, &args(&[start, level.count, packed]));

        self.b.switch_to_block(body);
        let inner_mem = level.stream.address(self.b, mem, cursor, 0);
        let after = self.level(l + 1, inner_mem, at);
        let next = level.stream.next(self.b, cursor);
        let left = self.b.ins().iadd_imm_s(left, -1);
        self.b.ins().brif(left, body, &args(&[next, left, after]), done, &[]);
        self.b.switch_to_block(done);
        after
    }

    /// Emits the innermost level. Returns the packed address after the level.
    fn innermost(&mut self, mem: Value, packed: Value) -> Value {
        let level = self.levels[self.levels.len() - 1];
        let unroll = self.inner.unroll;
        let mut cursor = level.stream.start(mem);
        let mut at = packed;
        let after = self.join_block();
        if unroll == 1 {
            // The loop tests its condition only after its body. This is correct, because the code
            // from `load_levels` has returned if the count is 0.
            let end = self.b.ins().iadd(at, self.inner.groups);
            self.groups(mem, cursor, at, end, after);
        } else {
            let some = self.b.create_block();
            self.b.ins().brif(self.inner.groups, some, &[], after, &args(&[cursor, at]));
            self.b.switch_to_block(some);
            let end = self.b.ins().iadd(at, self.inner.groups);
            self.groups(mem, cursor, at, end, after);
        }
        (cursor, at) = self.enter(after);
        let mut leaves = unroll / 2;
        while leaves > 0 {
            let some = self.b.create_block();
            let after = self.join_block();
            let bit = self.b.ins().band_imm_s(level.count, leaves as i64);
            self.b.ins().brif(bit, some, &[], after, &args(&[cursor, at]));
            self.b.switch_to_block(some);
            let next = self.body(leaves, mem, cursor, at);
            self.b.ins().jump(after, &args(&[next.0, next.1]));
            (cursor, at) = self.enter(after);
            leaves /= 2;
        }
        at
    }

    /// Makes a block with two parameters: a cursor and a packed address.
    fn join_block(&mut self) -> Block {
        let block = self.b.create_block();
        self.b.append_block_param(block, types::I64);
        self.b.append_block_param(block, types::I64);
        block
    }

    /// Continues in a block that [`join_block`](Self::join_block) made. Returns the block's
    /// parameters.
    fn enter(&mut self, block: Block) -> (Cursor, Value) {
        self.b.switch_to_block(block);
        let params = self.b.block_params(block);
        (params[0], params[1])
    }

    /// Emits the loop `do { U leaves } while packed != end`, then a jump to `after`.
    fn groups(&mut self, mem: Value, start: Cursor, packed: Value, end: Value, after: Block) {
        let turn = self.join_block();
        self.b.ins().jump(turn, &args(&[start, packed]));
        let (cursor, at) = self.enter(turn);
        let (next, at_next) = self.body(self.inner.unroll, mem, cursor, at);
        let more = self.b.ins().icmp(IntCC::NotEqual, at_next, end);
        let next = args(&[next, at_next]);
        self.b.ins().brif(more, turn, &next, after, &next);
    }

    /// Emits `leaves` leaves. Returns the cursor and the packed address after them.
    fn body(&mut self, leaves: usize, mem: Value, cursor: Cursor, at: Value) -> (Cursor, Value) {
        let level = self.levels[self.levels.len() - 1];
        let multiples = self.inner.multiples;
        let mems = level.stream.addresses(self.b, mem, cursor, leaves, multiples);
        leaf::emit(self.b, self.shape, self.machine, &mems, at, self.inner.length);
        let next = level.stream.after(self.b, cursor, leaves, multiples);
        let at_next = match (self.inner.leaf, self.inner.length) {
            (Some(bytes), _) => self.b.ins().iadd_imm_s(at, bytes * leaves as i64),
            (None, Some(length)) => self.b.ins().iadd(at, length),
            (None, None) => {
                unreachable!("a leaf has neither a constant length nor a run-time length")
            }
        };
        (next, at_next)
    }
}

fn args(values: &[Value]) -> Vec<BlockArg> {
    values.iter().map(|&value| BlockArg::Value(value)).collect()
}
