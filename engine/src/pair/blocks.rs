//! Two layouts of loops and tables over blocks of one length: two address streams, one loop.
//!
//! Called by `mod.rs` first. Each side is flattened to its levels (from the program, not from the
//! plan's nests, which unroll short loops into windows); a block that is a multiple of the other
//! side's becomes one more loop over the shorter length. The walk takes as many blocks at a time
//! as lie on the innermost rows of both sides; the inner loop is made for the block's length and
//! for strides or tables on either side.

use super::{Side, pieces};
use crate::ir::{Op, Program};
use crate::stats::{self, Executor};
use crate::table::Table;
use std::ops::Range;

/// Most levels of a side. Deeper programs are left to `pieces.rs`.
const LEVELS: usize = 8;

/// A longer block is split only into at least this many shorter ones: with rows of two, control
/// costs as much as the second pass saves (`examples/fused.rs`, 16 B -> 8 B).
const SPLIT: u64 = 3;

/// One level of a side. Counts are at least 2, but for the only level of a single block.
#[derive(Clone, Copy)]
enum Level<'a> {
    Loop { count: u64, stride: i64 },
    Table { entries: &'a Table, scale: i64 },
}

impl Level<'_> {
    fn count(&self) -> u64 {
        match self {
            Self::Loop { count, .. } => *count,
            Self::Table { entries, .. } => entries.len() as u64,
        }
    }

    fn displacement(&self, index: u64) -> i64 {
        match self {
            Self::Loop { stride, .. } => (index as i64).wrapping_mul(*stride),
            Self::Table { entries, scale } => entries.get(index as usize).wrapping_mul(*scale),
        }
    }
}

/// Levels, outermost first, over one block.
struct Levels<'a> {
    levels: [Level<'a>; LEVELS],
    depth: usize,
    base: i64,
    block: u64,
}

impl<'a> Levels<'a> {
    fn new() -> Self {
        // All zeros: the cheapest thing to fill an array with.
        let levels = [Level::Loop { count: 0, stride: 0 }; LEVELS];
        Self { levels, depth: 0, base: 0, block: 0 }
    }

    /// Takes the levels of `count` elements, if there is nothing but levels and one block.
    #[inline]
    fn fill(&mut self, program: &'a Program, count: u64) -> Option<()> {
        let mut edge = program.body?;
        self.push(Level::Loop { count: program.factor * count, stride: program.stride })?;
        loop {
            self.base = self.base.wrapping_add(edge.offset);
            let node = program.node(edge.node);
            match &node.op {
                Op::Block => {
                    self.block = node.bytes;
                    if self.depth == 0 {
                        self.levels[0] = Level::Loop { count: 1, stride: 0 };
                        self.depth = 1;
                    }
                    return Some(());
                }
                Op::Loop { count, stride, body } => {
                    self.push(Level::Loop { count: *count, stride: *stride })?;
                    edge = *body;
                }
                Op::Table { entries, scale, body } => {
                    self.push(Level::Table { entries, scale: *scale })?;
                    edge = *body;
                }
                Op::Ragged { .. } | Op::Seq { .. } => return None,
            }
        }
    }

    fn push(&mut self, level: Level<'a>) -> Option<()> {
        if level.count() == 1 {
            self.base = self.base.wrapping_add(level.displacement(0));
            return Some(());
        }
        *self.levels.get_mut(self.depth)? = level;
        self.depth += 1;
        Some(())
    }

    /// Replaces the block by a loop over blocks of `block` bytes, which divide it.
    fn split(&mut self, block: u64) -> Option<()> {
        let count = self.block / block;
        self.block = block;
        self.push(Level::Loop { count, stride: block as i64 })
    }

    /// The innermost level.
    fn inner(&self) -> &Level<'a> {
        &self.levels[self.depth - 1]
    }
}

/// A place in a side: the base of the current innermost row and the next block in it.
struct Walk<'a> {
    levels: &'a Levels<'a>,
    index: [u64; LEVELS],
    row: *mut u8,
}

impl<'a> Walk<'a> {
    /// At block number `block`.
    fn at(levels: &'a Levels<'a>, origin: *mut u8, block: u64) -> Self {
        let mut index = [0; LEVELS];
        let mut row = origin.wrapping_offset(levels.base as isize);
        let mut rest = block;
        for l in (0..levels.depth).rev() {
            if rest == 0 {
                // Tables may begin anywhere.
                if l + 1 < levels.depth {
                    row = row.wrapping_offset(levels.levels[l].displacement(0) as isize);
                }
                continue;
            }
            index[l] = rest % levels.levels[l].count();
            rest /= levels.levels[l].count();
            if l + 1 < levels.depth {
                row = row.wrapping_offset(levels.levels[l].displacement(index[l]) as isize);
            }
        }
        Self { levels, index, row }
    }

    fn inner(&self) -> usize {
        self.levels.depth - 1
    }

    /// Blocks left in the row.
    fn left(&self) -> u64 {
        self.levels.inner().count() - self.index[self.inner()]
    }

    /// Goes `blocks` on, at most to the end of the row.
    #[inline]
    fn advance(&mut self, blocks: u64) {
        let mut l = self.inner();
        self.index[l] += blocks;
        if self.index[l] < self.levels.levels[l].count() {
            return;
        }
        self.index[l] = 0;
        while l > 0 {
            l -= 1;
            let level = &self.levels.levels[l];
            let before = level.displacement(self.index[l]);
            self.index[l] += 1;
            let carry = self.index[l] == level.count();
            if carry {
                self.index[l] = 0;
            }
            let step = level.displacement(self.index[l]).wrapping_sub(before);
            self.row = self.row.wrapping_offset(step as isize);
            if !carry {
                return;
            }
        }
    }
}

/// Copies packed bytes `range` if both sides are levels over blocks that fit; false, with nothing
/// moved, if they are not.
///
/// # Safety
///
/// As for [`copy_raw`](super::copy_raw), with displacement 0 at `memory` and a range that is not
/// empty.
pub(super) unsafe fn copy(
    src: &Side<'_, *const u8>,
    dst: &Side<'_, *mut u8>,
    range: Range<u64>,
) -> bool {
    if is_list(src.plan.program()) || is_list(dst.plan.program()) {
        return false;
    }
    let (mut from, mut to) = (Levels::new(), Levels::new());
    if fit(src, dst, &mut from, &mut to).is_none() {
        return false;
    }
    let block = from.block;
    let (first, last) = (range.start.div_ceil(block), range.end / block);
    if first >= last {
        return false;
    }
    // SAFETY: the parts of `range` before, in and after the whole blocks; `first..last` are blocks
    // of both sides. In packed order, which is the destination's typemap order.
    unsafe {
        if range.start < first * block {
            pieces::copy(src, dst, range.start..first * block);
        }
        let mut from = Walk::at(&from, src.memory.cast_mut(), first);
        let mut to = Walk::at(&to, dst.memory, first);
        by_block(&mut from, &mut to, last - first, block as usize);
        stats::add(Executor::Fused, (last - first) * block);
        if last * block < range.end {
            pieces::copy(src, dst, last * block..range.end);
        }
    }
    true
}

/// A struct or a list, which is what most programs without levels over a block begin with; told
/// without setting anything up.
fn is_list(program: &Program) -> bool {
    let op = program.body.map(|body| &program.node(body.node).op);
    matches!(op, None | Some(Op::Seq { .. } | Op::Ragged { .. }))
}

/// Takes the levels of both sides, over blocks of one length.
#[inline]
fn fit<'a>(
    src: &Side<'a, *const u8>,
    dst: &Side<'a, *mut u8>,
    from: &mut Levels<'a>,
    to: &mut Levels<'a>,
) -> Option<()> {
    from.fill(src.plan.program(), src.count)?;
    to.fill(dst.plan.program(), dst.count)?;
    let (short, long) = (from.block.min(to.block), from.block.max(to.block));
    if short == long {
        return Some(());
    }
    if !long.is_multiple_of(short) || long / short < SPLIT {
        return None;
    }
    if from.block == long { from.split(short) } else { to.split(short) }
}

/// Calls the walk for the block's length.
///
/// # Safety
///
/// As for [`walk`].
unsafe fn by_block(from: &mut Walk<'_>, to: &mut Walk<'_>, blocks: u64, bytes: usize) {
    // SAFETY: as our contract; each `Ends` is chosen for lengths from its half to twice that.
    unsafe {
        match bytes {
            1 => walk(from, to, blocks, &Exact::<1>),
            2 => walk(from, to, blocks, &Exact::<2>),
            3 => walk(from, to, blocks, &Exact::<3>),
            4 => walk(from, to, blocks, &Exact::<4>),
            8 => walk(from, to, blocks, &Exact::<8>),
            16 => walk(from, to, blocks, &Exact::<16>),
            32 => walk(from, to, blocks, &Exact::<32>),
            64 => walk(from, to, blocks, &Exact::<64>),
            5..8 => walk(from, to, blocks, &Ends::<4> { bytes }),
            9..16 => walk(from, to, blocks, &Ends::<8> { bytes }),
            17..32 => walk(from, to, blocks, &Ends::<16> { bytes }),
            33..64 => walk(from, to, blocks, &Ends::<32> { bytes }),
            _ => walk(from, to, blocks, &Long { bytes }),
        }
    }
}

/// Copies `blocks` blocks from one walk to the other.
///
/// # Safety
///
/// - Both walks have that many blocks left, of `block`'s length.
/// - Those of `from` are valid for reads, those of `to` for writes, and no two overlap.
unsafe fn walk(from: &mut Walk<'_>, to: &mut Walk<'_>, blocks: u64, block: &impl Block) {
    let mut left = blocks;
    while left > 0 {
        let count = from.left().min(to.left()).min(left);
        let (a, b) = (from.index[from.inner()], to.index[to.inner()]);
        // SAFETY: `count` blocks from here lie in the current row of each side.
        unsafe {
            match (*from.levels.inner(), *to.levels.inner()) {
                (Level::Loop { stride: s, .. }, Level::Loop { stride: d, .. }) => {
                    row(from.row, Strided::at(s, a), to.row, Strided::at(d, b), count, block);
                }
                (Level::Loop { stride: s, .. }, Level::Table { entries, scale }) => {
                    let places = Listed { entries, scale, from: b };
                    row(from.row, Strided::at(s, a), to.row, places, count, block);
                }
                (Level::Table { entries, scale }, Level::Loop { stride: d, .. }) => {
                    let places = Listed { entries, scale, from: a };
                    row(from.row, places, to.row, Strided::at(d, b), count, block);
                }
                (Level::Table { entries: e, scale: s }, Level::Table { entries: f, scale: t }) => {
                    let places = Listed { entries: e, scale: s, from: a };
                    let others = Listed { entries: f, scale: t, from: b };
                    row(from.row, places, to.row, others, count, block);
                }
            }
        }
        from.advance(count);
        to.advance(count);
        left -= count;
    }
}

/// Where block `i` of a row lies, in bytes from the row's base.
trait Places {
    fn place(&self, i: u64) -> isize;
}

struct Strided {
    first: isize,
    stride: isize,
}

impl Strided {
    fn at(stride: i64, index: u64) -> Self {
        let stride = stride as isize;
        Self { first: (index as isize).wrapping_mul(stride), stride }
    }
}

impl Places for Strided {
    #[inline(always)]
    fn place(&self, i: u64) -> isize {
        self.first.wrapping_add((i as isize).wrapping_mul(self.stride))
    }
}

struct Listed<'a> {
    entries: &'a Table,
    scale: i64,
    from: u64,
}

impl Places for Listed<'_> {
    #[inline(always)]
    fn place(&self, i: u64) -> isize {
        self.entries.get((self.from + i) as usize).wrapping_mul(self.scale) as isize
    }
}

/// How one block is copied.
trait Block {
    /// Copies one block.
    ///
    /// # Safety
    ///
    /// - The block's length is valid for reads at `src` and for writes at `dst`.
    /// - The two do not overlap.
    unsafe fn copy(&self, src: *const u8, dst: *mut u8);
}

/// `N` bytes: one move for powers of two up to the width of a register.
struct Exact<const N: usize>;

impl<const N: usize> Block for Exact<N> {
    #[inline(always)]
    unsafe fn copy(&self, src: *const u8, dst: *mut u8) {
        // SAFETY: as the contract.
        unsafe { std::ptr::copy_nonoverlapping(src, dst, N) }
    }
}

/// `N` to `2 * N` bytes: the first `N` and the last `N`, which may share some.
struct Ends<const N: usize> {
    bytes: usize,
}

impl<const N: usize> Block for Ends<N> {
    #[inline(always)]
    unsafe fn copy(&self, src: *const u8, dst: *mut u8) {
        let last = self.bytes - N;
        // SAFETY: both parts lie in the block, arrays of bytes need no alignment, and what is
        // written twice is the same byte.
        unsafe {
            let a = src.cast::<[u8; N]>().read();
            let b = src.add(last).cast::<[u8; N]>().read();
            dst.cast::<[u8; N]>().write(a);
            dst.add(last).cast::<[u8; N]>().write(b);
        }
    }
}

/// Any length: a memcpy.
struct Long {
    bytes: usize,
}

impl Block for Long {
    #[inline(always)]
    unsafe fn copy(&self, src: *const u8, dst: *mut u8) {
        // SAFETY: as the contract.
        unsafe { std::ptr::copy_nonoverlapping(src, dst, self.bytes) }
    }
}

/// Copies `count` blocks of one row to one row.
///
/// # Safety
///
/// - For every `i` below `count` a block is valid for reads at `src` plus the place in `from`, and
///   for writes at `dst` plus the place in `to`.
/// - No block that is read overlaps one that is written.
#[inline(always)]
unsafe fn row(
    src: *const u8,
    from: impl Places,
    dst: *mut u8,
    to: impl Places,
    count: u64,
    block: &impl Block,
) {
    for i in 0..count {
        let at = src.wrapping_offset(from.place(i));
        // SAFETY: block `i` of both rows.
        unsafe { block.copy(at, dst.wrapping_offset(to.place(i))) };
    }
}
