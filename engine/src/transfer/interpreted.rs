//! Copies between two layouts of loops and tables over blocks of one length: one loop advances two
//! address streams.
//!
//! This is the interpreter of a transfer, the counterpart of its kernel (`compiled.rs`). If a block
//! is a multiple of the other side's block, it becomes one more loop over the shorter length. The
//! walk takes as many blocks at a time as lie on the innermost rows of both sides. The inner loop
//! is specialised for the block's length and for strides or tables on either side.

use super::levels::{Entries, SideLevel, SideLevels, Walk};
use super::nest::mean;
use super::{Side, staged};
use crate::exec::stats::{self, Executor};
use crate::ir::Op;
use std::ops::Range;

/// A longer block is split only into at least this many shorter blocks. With rows of two blocks,
/// control costs as much as the second pass saves (`examples/fused.rs`, 16 B -> 8 B).
const SPLIT: u64 = 3;

/// Blocks of at least this length use memcpy, which may use wider registers than this code and then
/// costs less than a loop of moves.
const MEMCPY: usize = 256;

/// Both sides as levels over blocks of one length.
pub(super) struct Interpreted {
    from: SideLevels,
    to: SideLevels,
    bytes: u64,
}

impl Interpreted {
    /// Returns the two sides of a transfer. Returns `None` if a side contains anything but levels
    /// over blocks, or if neither block length is a multiple of the other.
    pub(super) fn of(src: &Side<'_, *const u8>, dst: &Side<'_, *mut u8>) -> Option<Self> {
        let (mut from, a) = SideLevels::of(src.plan.program(), src.count)?;
        let (mut to, b) = SideLevels::of(dst.plan.program(), dst.count)?;
        if a.op != Op::Block || b.op != Op::Block {
            return None;
        }
        let (short, long) = (a.bytes.min(b.bytes), a.bytes.max(b.bytes));
        if short != long {
            if !long.is_multiple_of(short) || long / short < SPLIT {
                return None;
            }
            let split = if a.bytes == long { &mut from } else { &mut to };
            split.push(SideLevel::Loop { count: long / short, stride: short as i64 })?;
        }
        Some(Self { from: from.close(), to: to.close(), bytes: short })
    }

    /// Returns the mean number of bytes that lie on one row of both sides.
    pub(super) fn row_bytes(&self) -> f64 {
        mean(self.from.inner().count(), self.to.inner().count()) * self.bytes as f64
    }

    /// Copies packed bytes `range`.
    ///
    /// # Safety
    ///
    /// - `self` was made for these two plans and counts.
    /// - The conditions of [`copy_raw`](super::copy_raw) hold, with displacement 0 at `memory`.
    pub(super) unsafe fn copy(
        &self,
        src: &Side<'_, *const u8>,
        dst: &Side<'_, *mut u8>,
        range: Range<u64>,
    ) {
        let (first, last) = (range.start.div_ceil(self.bytes), range.end / self.bytes);
        // SAFETY: the calls copy the parts of `range` before, in and after the whole blocks
        // `first..last`, which both sides have. The calls go in packed order, which is the
        // destination's typemap order.
        unsafe {
            if first >= last {
                return staged::copy(src, dst, range);
            }
            if range.start < first * self.bytes {
                staged::copy(src, dst, range.start..first * self.bytes);
            }
            self.whole(src, dst, first..last);
            if last * self.bytes < range.end {
                staged::copy(src, dst, last * self.bytes..range.end);
            }
        }
    }

    /// Copies the blocks with the numbers `blocks`.
    ///
    /// # Safety
    ///
    /// The conditions of [`copy`](Self::copy) hold, for the bytes of these blocks.
    unsafe fn whole(&self, src: &Side<'_, *const u8>, dst: &Side<'_, *mut u8>, blocks: Range<u64>) {
        let count = blocks.end - blocks.start;
        // SAFETY: the sides borrow both plans during this call. The caller guarantees `count` valid
        // blocks of `self.bytes` bytes from `blocks.start` on, on both sides.
        unsafe {
            let mut from = Walk::at(&self.from, src.memory.cast_mut(), blocks.start);
            let mut to = Walk::at(&self.to, dst.memory, blocks.start);
            by_block(&mut from, &mut to, count, self.bytes as usize);
        }
        stats::add(Executor::Fused, count * self.bytes);
    }
}

/// A loop of `count` iterations on both sides, with the bytes between two iterations of each side.
#[derive(Clone, Copy)]
pub(super) struct Strides {
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) count: u64,
}

/// Copies blocks of `bytes` bytes along a row of both sides.
///
/// # Safety
///
/// - `bytes` is the length that [`row_of`] was called with.
/// - For every `i` below the count, a block is valid for reads at `src` plus `i` times the source's
///   stride, and for writes at `dst` plus `i` times the destination's stride.
/// - No block that is read overlaps a block that is written.
pub(super) type Row = unsafe fn(src: *const u8, dst: *mut u8, strides: Strides, bytes: usize);

/// Returns the row for blocks of `bytes` bytes.
pub(super) fn row_of(bytes: u64) -> Row {
    /// # Safety
    ///
    /// The conditions of [`Row`] hold, for blocks of the length that `block` copies.
    #[inline(always)]
    unsafe fn along(src: *const u8, dst: *mut u8, strides: Strides, block: &impl Block) {
        let (from, to) = (Strided::at(strides.from, 0), Strided::at(strides.to, 0));
        // SAFETY: the caller guarantees a block at every multiple of each side's stride below the
        // count.
        unsafe { row(src, from, dst, to, strides.count, block) }
    }
    macro_rules! rows {
        ($($lengths:pat => $block:expr,)*) => {
            match bytes {
                // SAFETY: the caller guarantees the conditions of `Row`, so `bytes` is in
                // `$lengths`. An `Exact` has that one length; an `Ends<N>` is chosen for lengths
                // from `N` to `2 * N`.
                $($lengths => |src, dst, strides, bytes| unsafe {
                    let block: fn(usize) -> _ = $block;
                    along(src, dst, strides, &block(bytes))
                },)*
            }
        };
    }
    rows! {
        1 => |_| Exact::<1>,
        2 => |_| Exact::<2>,
        3 => |_| Exact::<3>,
        4 => |_| Exact::<4>,
        6 => |_| Exact::<6>,
        8 => |_| Exact::<8>,
        12 => |_| Exact::<12>,
        16 => |_| Exact::<16>,
        24 => |_| Exact::<24>,
        32 => |_| Exact::<32>,
        64 => |_| Exact::<64>,
        5..8 => |bytes| Ends::<4> { bytes },
        9..16 => |bytes| Ends::<8> { bytes },
        17..32 => |bytes| Ends::<16> { bytes },
        33..64 => |bytes| Ends::<32> { bytes },
        65..128 => |bytes| Ends::<64> { bytes },
        128..256 => |bytes| Chunks { bytes },
        _ => |bytes| Long { bytes },
    }
}

/// Calls [`walk`] with the block type for `bytes`.
///
/// # Safety
///
/// The conditions of [`walk`] hold, for blocks of `bytes` bytes.
unsafe fn by_block(from: &mut Walk<'_>, to: &mut Walk<'_>, blocks: u64, bytes: usize) {
    // SAFETY: the caller guarantees the blocks of both walks; each arm's block type copies `bytes`
    // bytes (`Ends<N>` is chosen for lengths from `N` to `2 * N`).
    unsafe {
        match bytes {
            1 => walk(from, to, blocks, &Exact::<1>),
            2 => walk(from, to, blocks, &Exact::<2>),
            3 => walk(from, to, blocks, &Exact::<3>),
            4 => walk(from, to, blocks, &Exact::<4>),
            8 => walk(from, to, blocks, &Exact::<8>),
            12 => walk(from, to, blocks, &Exact::<12>),
            16 => walk(from, to, blocks, &Exact::<16>),
            24 => walk(from, to, blocks, &Exact::<24>),
            32 => walk(from, to, blocks, &Exact::<32>),
            64 => walk(from, to, blocks, &Exact::<64>),
            5..8 => walk(from, to, blocks, &Ends::<4> { bytes }),
            9..16 => walk(from, to, blocks, &Ends::<8> { bytes }),
            17..32 => walk(from, to, blocks, &Ends::<16> { bytes }),
            33..64 => walk(from, to, blocks, &Ends::<32> { bytes }),
            65..128 => walk(from, to, blocks, &Ends::<64> { bytes }),
            128..MEMCPY => walk(from, to, blocks, &Chunks { bytes }),
            _ => walk(from, to, blocks, &Long { bytes }),
        }
    }
}

/// Copies `blocks` blocks from one walk to the other.
///
/// # Safety
///
/// - Both walks have at least `blocks` blocks left, of `block`'s length.
/// - The blocks of `from` are valid for reads, those of `to` for writes, and no block that is read
///   overlaps a block that is written.
unsafe fn walk(from: &mut Walk<'_>, to: &mut Walk<'_>, blocks: u64, block: &impl Block) {
    let mut left = blocks;
    while left > 0 {
        let count = from.left().min(to.left()).min(left);
        let ((source, a), (target, b)) = (from.inner(), to.inner());
        // SAFETY: `count` is at most the number of blocks left in the current row of each walk, and
        // at most `left`, so both rows have these blocks.
        unsafe {
            match (*source, *target) {
                (SideLevel::Loop { stride: s, .. }, SideLevel::Loop { stride: d, .. }) => {
                    row(from.row, Strided::at(s, a), to.row, Strided::at(d, b), count, block);
                }
                (SideLevel::Loop { stride: s, .. }, SideLevel::Table { entries, scale }) => {
                    let places = Listed { entries, scale, from: b };
                    row(from.row, Strided::at(s, a), to.row, places, count, block);
                }
                (SideLevel::Table { entries, scale }, SideLevel::Loop { stride: d, .. }) => {
                    let places = Listed { entries, scale, from: a };
                    row(from.row, places, to.row, Strided::at(d, b), count, block);
                }
                (
                    SideLevel::Table { entries: e, scale: s },
                    SideLevel::Table { entries: f, scale: t },
                ) => {
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

/// The places of the blocks of a row.
trait Places {
    /// Returns the place of block `i`, in bytes from the row's base.
    ///
    /// # Safety
    ///
    /// - The row has a block `i`, and the row's plan is alive.
    unsafe fn place(&self, i: u64) -> isize;
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
    unsafe fn place(&self, i: u64) -> isize {
        self.first.wrapping_add((i as isize).wrapping_mul(self.stride))
    }
}

struct Listed {
    entries: Entries,
    scale: i64,
    from: u64,
}

impl Places for Listed {
    #[inline(always)]
    unsafe fn place(&self, i: u64) -> isize {
        // SAFETY: the caller guarantees that the row has block `i`, whose entry is `from + i`, and
        // that the plan is alive.
        unsafe { self.entries.get(self.from + i) }.wrapping_mul(self.scale) as isize
    }
}

/// A way to copy one block.
trait Block {
    /// Copies one block.
    ///
    /// # Safety
    ///
    /// - `src` is valid for reads and `dst` for writes of the block's length.
    /// - The two do not overlap.
    unsafe fn copy(&self, src: *const u8, dst: *mut u8);
}

/// Copies `N` bytes, with one move for powers of two up to the width of a register.
struct Exact<const N: usize>;

impl<const N: usize> Block for Exact<N> {
    #[inline(always)]
    unsafe fn copy(&self, src: *const u8, dst: *mut u8) {
        // SAFETY: the caller guarantees `N` bytes, the block's length, on both sides without
        // overlap.
        unsafe { std::ptr::copy_nonoverlapping(src, dst, N) }
    }
}

/// Copies `N` to `2 * N` bytes: the first `N` and the last `N`, which may overlap.
struct Ends<const N: usize> {
    bytes: usize,
}

impl<const N: usize> Block for Ends<N> {
    #[inline(always)]
    unsafe fn copy(&self, src: *const u8, dst: *mut u8) {
        let last = self.bytes - N;
        // SAFETY: the block has at least `N` bytes, so both parts lie within it; bytes that are
        // written twice get the same value.
        unsafe {
            std::ptr::copy_nonoverlapping(src, dst, N);
            std::ptr::copy_nonoverlapping(src.add(last), dst.add(last), N);
        }
    }
}

/// Copies more than 64 bytes: 64 at a time, and the last 64, which may overlap those before.
struct Chunks {
    bytes: usize,
}

impl Block for Chunks {
    #[inline(always)]
    unsafe fn copy(&self, src: *const u8, dst: *mut u8) {
        let last = self.bytes - 64;
        let mut at = 0;
        // SAFETY: every part ends at or before `last + 64`, the block's end; bytes that are written
        // twice get the same value.
        unsafe {
            while at < last {
                std::ptr::copy_nonoverlapping(src.add(at), dst.add(at), 64);
                at += 64;
            }
            std::ptr::copy_nonoverlapping(src.add(last), dst.add(last), 64);
        }
    }
}

/// Copies any length with memcpy.
struct Long {
    bytes: usize,
}

impl Block for Long {
    #[inline(always)]
    unsafe fn copy(&self, src: *const u8, dst: *mut u8) {
        // SAFETY: the caller guarantees the block's length, `self.bytes`, on both sides without
        // overlap.
        unsafe { std::ptr::copy_nonoverlapping(src, dst, self.bytes) }
    }
}

/// Copies `count` blocks from a row of one side to a row of the other side.
///
/// # Safety
///
/// - For every `i` below `count`, a block is valid for reads at `src` plus place `i` of `from`, and
///   for writes at `dst` plus place `i` of `to`.
/// - The plans of the rows are alive.
/// - No block that is read overlaps a block that is written.
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
        // SAFETY: `i` is below `count`, so the caller guarantees block `i` of both rows.
        unsafe {
            let at = src.wrapping_offset(from.place(i));
            block.copy(at, dst.wrapping_offset(to.place(i)));
        }
    }
}
