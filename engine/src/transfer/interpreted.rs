//! Copies block by block between two layouts that consist of loops and tables over blocks of one length. One
//! loop advances through the blocks of both layouts at the same time.
//!
//! This file is the interpreter of a transfer; `compiled.rs` is the counterpart that calls a kernel. The
//! *sides* of a transfer are its source and its destination. If the block length of one side is a multiple of
//! that of the other side, and at least three times as long, the longer block is treated as a loop over
//! shorter blocks; other files handle other unequal lengths. A *row* is one pass through the innermost level
//! of a side. Each step of the loop copies as many blocks as are left in the current rows of both sides. The
//! inner loop is compiled separately for each of several block lengths, and for a stride or a table on each
//! side.

use super::levels::{Entries, SideLevel, SideLevels, Walk};
use super::nest::mean;
use super::staged;
use crate::contiguous;
use crate::exec::Elements;
use crate::exec::stats::{self, Executor};
use crate::ir::Op;
use crate::plan::Plan;
use std::ops::Range;

/// Minimum number of shorter blocks into which a longer block is split. If there are only two, the loop
/// control takes as long as copying every byte a second time, through a buffer (`examples/fused.rs`, 16 B ->
/// 8 B).
const SPLIT: u64 = 3;

/// Minimum length, in bytes, of a block that is copied with `contiguous::copy`, which may use wider registers
/// than this code. From this length on, the wider registers save more time than the call costs.
const MEMCPY: usize = 256;

/// Both sides of a transfer, as levels over blocks. The blocks of both sides have the same length.
pub(super) struct Interpreted {
    from: SideLevels,
    to: SideLevels,
    bytes: u64,
}

impl Interpreted {
    /// Returns the two sides of a transfer as levels. Returns `None` if a side has too many levels or is not
    /// loops and tables over one block, or if the block lengths differ and the longer block cannot be split
    /// into at least `SPLIT` blocks of the shorter length.
    pub(super) fn of(src: &Elements<&Plan>, dst: &Elements<&Plan>) -> Option<Self> {
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

    /// Returns the mean number of bytes that can be copied before a row of either side ends.
    pub(super) fn row_bytes(&self) -> f64 {
        mean(self.from.inner().count(), self.to.inner().count()) * self.bytes as f64
    }

    /// Copies packed bytes `range`.
    ///
    /// # Safety
    ///
    /// - `self` was made for the plans and counts of `src` and `dst`.
    /// - The conditions of [`copy_raw`](super::copy_raw) hold. Displacement 0 of each side is at
    ///   its `origin`.
    pub(super) unsafe fn copy(
        &self,
        src: &Elements<&Plan>,
        dst: &Elements<&Plan>,
        range: Range<u64>,
    ) {
        let (first, last) = (range.start.div_ceil(self.bytes), range.end / self.bytes);
        // SAFETY: the caller guarantees that the bytes of `range` are valid on both sides. The calls
        // copy three parts of `range`, in packed order: the bytes before the whole blocks `first..last`,
        // these blocks, and the bytes after them.
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

    /// Copies to packed bytes `range` of the destination. Packed byte `i` of the destination comes from
    /// packed byte `i + shift` (modulo 2^64) of the source.
    ///
    /// # Safety
    ///
    /// - `self` was made for the plans and counts of `src` and `dst`.
    /// - The conditions of [`copy_apart_raw`](super::copy_apart_raw) hold. Displacement 0 of each side
    ///   is at its `origin`.
    pub(super) unsafe fn copy_shifted(
        &self,
        src: &Elements<&Plan>,
        dst: &Elements<&Plan>,
        range: Range<u64>,
        shift: u64,
    ) {
        let (first, last) = (range.start.div_ceil(self.bytes), range.end / self.bytes);
        let source = (first * self.bytes).wrapping_add(shift);
        // SAFETY: the caller guarantees that the bytes of `range`, and those of the source that belong
        // to them, are valid. The calls copy three parts of `range`, in packed order: the bytes before
        // the whole blocks `first..last`, these blocks, and the bytes after them. The blocks of the
        // destination are blocks of the source too, because `source` is a multiple of their length.
        unsafe {
            if first >= last || !source.is_multiple_of(self.bytes) {
                return staged::copy_shifted(src, dst, range, shift);
            }
            if range.start < first * self.bytes {
                staged::copy_shifted(src, dst, range.start..first * self.bytes, shift);
            }
            self.blocks(src, source / self.bytes, dst, first, last - first);
            if last * self.bytes < range.end {
                staged::copy_shifted(src, dst, last * self.bytes..range.end, shift);
            }
        }
    }

    /// Copies the blocks whose numbers are in `blocks`.
    ///
    /// # Safety
    ///
    /// The conditions of [`copy`](Self::copy) hold for the bytes of these blocks.
    unsafe fn whole(&self, src: &Elements<&Plan>, dst: &Elements<&Plan>, blocks: Range<u64>) {
        // SAFETY: the caller guarantees that the blocks are valid on both sides.
        unsafe { self.blocks(src, blocks.start, dst, blocks.start, blocks.end - blocks.start) };
    }

    /// Copies `count` blocks, from block `source` of the source on, to block `target` of the destination
    /// and the blocks after it.
    ///
    /// # Safety
    ///
    /// - `self` was made for the plans and counts of `src` and `dst`. Displacement 0 of each side is at its
    ///   `memory`.
    /// - The `count` blocks of the source are valid for reads, and those of the destination for writes. No
    ///   byte is both read and written.
    unsafe fn blocks(
        &self,
        src: &Elements<&Plan>,
        source: u64,
        dst: &Elements<&Plan>,
        target: u64,
        count: u64,
    ) {
        // SAFETY: the sides borrow both plans during this call. From blocks `source` and `target` on,
        // the caller guarantees `count` valid blocks of `self.bytes` bytes on each side.
        unsafe {
            let mut from = Walk::at(&self.from, src.origin, source);
            let mut to = Walk::at(&self.to, dst.origin, target);
            by_block(&mut from, &mut to, count, self.bytes as usize);
        }
        stats::add(Executor::Fused, count * self.bytes);
    }
}

/// A loop of `count` iterations. `from` and `to` are the distances between consecutive iterations in the
/// source and in the destination, in bytes.
#[derive(Clone, Copy)]
pub(super) struct Strides {
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) count: u64,
}

/// A function that copies the blocks of a row, each of `bytes` bytes.
///
/// # Safety
///
/// - `bytes` is the length for which [`row_of`] returned this function.
/// - For every `i` below `strides.count`, a block is valid for reads at `src + i * strides.from`, and a
///   block is valid for writes at `dst + i * strides.to`.
/// - No block that is read overlaps a block that is written.
pub(super) type Row = unsafe fn(src: *const u8, dst: *mut u8, strides: Strides, bytes: usize);

/// Returns the function that copies rows of blocks of `bytes` bytes.
pub(super) fn row_of(bytes: u64) -> Row {
    /// # Safety
    ///
    /// The conditions of [`Row`] hold for blocks of the length that `block` copies.
    #[inline(always)]
    unsafe fn along(src: *const u8, dst: *mut u8, strides: Strides, block: &impl Block) {
        let (from, to) = (Strided::at(strides.from, 0), Strided::at(strides.to, 0));
        // SAFETY: the caller guarantees that, on each side, the block at `i` times the stride is valid
        // for every `i` below the count.
        unsafe { row(src, from, dst, to, strides.count, block) }
    }
    macro_rules! rows {
        ($($lengths:pat => $block:expr,)*) => {
            match bytes {
                // SAFETY: the caller guarantees the conditions of `Row`, so `bytes` is in `$lengths`. An
                // `Exact` is chosen for exactly one length and copies that many bytes. An `Ends<N>` is chosen
                // only for lengths from `N` to `2 * N`, and `Chunks` only for more than 64 bytes.
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

/// Calls [`walk`] with the type that copies blocks of `bytes` bytes.
///
/// # Safety
///
/// The conditions of [`walk`] hold for blocks of `bytes` bytes.
unsafe fn by_block(from: &mut Walk<'_>, to: &mut Walk<'_>, blocks: u64, bytes: usize) {
    // SAFETY: the caller guarantees that the blocks of both walks are valid. The block type in each arm
    // copies `bytes` bytes; an `Ends<N>` is chosen only for lengths from `N` to `2 * N`, and `Chunks` only
    // for more than 64 bytes.
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
/// - Both walks have at least `blocks` blocks left. `block` copies blocks of their length.
/// - The blocks of `from` are valid for reads, those of `to` for writes, and no block that is read
///   overlaps a block that is written.
unsafe fn walk(from: &mut Walk<'_>, to: &mut Walk<'_>, blocks: u64, block: &impl Block) {
    let mut left = blocks;
    while left > 0 {
        let count = from.left().min(to.left()).min(left);
        let ((source, a), (target, b)) = (from.inner(), to.inner());
        // SAFETY: `count` is at most the number of blocks left in the current row of each walk, and at most
        // `left`. So both rows have these blocks. The caller guarantees that they are valid, and that no
        // block that is read overlaps a block that is written. The plans outlive the walks, as `Walk::at`
        // requires.
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

/// Computes the positions of the blocks of a row.
trait Places {
    /// Returns the position of block `i`, in bytes from the base of the row.
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
        // SAFETY: the caller guarantees that the row has a block `i` and that the plan is alive.
        // The entry of block `i` is `from + i`.
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
    /// - The block at `src` and the block at `dst` do not overlap.
    unsafe fn copy(&self, src: *const u8, dst: *mut u8);
}

/// Copies `N` bytes. If `N` is a power of two and fits in a register, the copy is a single move.
struct Exact<const N: usize>;

impl<const N: usize> Block for Exact<N> {
    #[inline(always)]
    unsafe fn copy(&self, src: *const u8, dst: *mut u8) {
        // SAFETY: the caller guarantees `N` readable bytes at `src` and `N` writable bytes at
        // `dst`, which do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(src, dst, N) }
    }
}

/// Copies `N` to `2 * N` bytes with two moves: the first `N` bytes and the last `N` bytes, which
/// may overlap.
struct Ends<const N: usize> {
    bytes: usize,
}

impl<const N: usize> Block for Ends<N> {
    #[inline(always)]
    unsafe fn copy(&self, src: *const u8, dst: *mut u8) {
        let last = self.bytes - N;
        // SAFETY: the block has at least `N` bytes, so both moves stay within it. A byte that is
        // written twice gets the same value both times.
        unsafe {
            std::ptr::copy_nonoverlapping(src, dst, N);
            std::ptr::copy_nonoverlapping(src.add(last), dst.add(last), N);
        }
    }
}

/// Copies more than 64 bytes in moves of 64 bytes. The last move copies the last 64 bytes and may
/// overlap the move before it.
struct Chunks {
    bytes: usize,
}

impl Block for Chunks {
    #[inline(always)]
    unsafe fn copy(&self, src: *const u8, dst: *mut u8) {
        let last = self.bytes - 64;
        let mut at = 0;
        // SAFETY: every move ends at or before `last + 64`, which is the end of the block. A byte
        // that is written twice gets the same value both times.
        unsafe {
            while at < last {
                std::ptr::copy_nonoverlapping(src.add(at), dst.add(at), 64);
                at += 64;
            }
            std::ptr::copy_nonoverlapping(src.add(last), dst.add(last), 64);
        }
    }
}

/// Copies any length with `contiguous::copy`.
struct Long {
    bytes: usize,
}

impl Block for Long {
    #[inline(always)]
    unsafe fn copy(&self, src: *const u8, dst: *mut u8) {
        // SAFETY: the caller guarantees `self.bytes` readable bytes at `src` and as many writable
        // bytes at `dst`, which do not overlap.
        unsafe { contiguous::copy(src, dst, self.bytes) }
    }
}

/// Copies `count` blocks from a row of one side to a row of the other side.
///
/// # Safety
///
/// - For every `i` below `count`, a block is valid for reads at `src + from.place(i)`, and a block is
///   valid for writes at `dst + to.place(i)`.
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
        // SAFETY: `i` is below `count`, so the caller guarantees that block `i` is valid in the
        // source row and in the destination row.
        unsafe {
            let at = src.wrapping_offset(from.place(i));
            block.copy(at, dst.wrapping_offset(to.place(i)));
        }
    }
}
