//! Two layouts of loops and tables over blocks of one length: two address streams, one loop.
//!
//! The interpreter of a pair, and the counterpart of its kernel (`compiled.rs`). A block that is a
//! multiple of the other side's becomes one more loop over the shorter length. The walk takes as
//! many blocks at a time as lie on the innermost rows of both sides; the inner loop is made for the
//! block's length and for strides or tables on either side.

use super::levels::{Entries, SideLevel, SideLevels, Walk};
use super::nest::mean;
use super::{Side, staged};
use crate::exec::stats::{self, Executor};
use crate::ir::Op;
use std::ops::Range;

/// A longer block is split only into at least this many shorter ones: with rows of two, control
/// costs as much as the second pass saves (`examples/fused.rs`, 16 B -> 8 B).
const SPLIT: u64 = 3;

/// From this length on a memcpy per block, which may use wider registers than this code, costs less
/// than a loop of moves.
const MEMCPY: usize = 256;

/// Two sides over blocks of one length.
pub(super) struct Interpreted {
    from: SideLevels,
    to: SideLevels,
    bytes: u64,
}

impl Interpreted {
    /// Those of a pair, if it has nothing but levels over blocks that fit.
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

    /// Bytes that lie on a row of both sides, on average.
    pub(super) fn row_bytes(&self) -> f64 {
        mean(self.from.inner().count(), self.to.inner().count()) * self.bytes as f64
    }

    /// Copies packed bytes `range`.
    ///
    /// # Safety
    ///
    /// - `self` was made for these two plans and counts.
    /// - As for [`copy_raw`](super::copy_raw), with displacement 0 at `memory`.
    pub(super) unsafe fn copy(
        &self,
        src: &Side<'_, *const u8>,
        dst: &Side<'_, *mut u8>,
        range: Range<u64>,
    ) {
        let (first, last) = (range.start.div_ceil(self.bytes), range.end / self.bytes);
        // SAFETY: the parts of `range` before, in and after the whole blocks; `first..last` are
        // blocks of both sides. In packed order, which is the destination's typemap order.
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

    /// Copies the blocks numbered `blocks`.
    ///
    /// # Safety
    ///
    /// As for [`copy`](Self::copy), for the bytes of these blocks.
    unsafe fn whole(&self, src: &Side<'_, *const u8>, dst: &Side<'_, *mut u8>, blocks: Range<u64>) {
        let count = blocks.end - blocks.start;
        // SAFETY: both plans are borrowed by the sides, and their blocks from `blocks.start` on
        // are valid by our contract.
        unsafe {
            let mut from = Walk::at(&self.from, src.memory.cast_mut(), blocks.start);
            let mut to = Walk::at(&self.to, dst.memory, blocks.start);
            by_block(&mut from, &mut to, count, self.bytes as usize);
        }
        stats::add(Executor::Fused, count * self.bytes);
    }
}

/// `count` iterations on both sides, with the bytes from one to the next.
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
/// - The length is the one the function was asked for.
/// - For every `i` below the count a block is valid for reads at `src` plus `i` times the source's
///   stride, and for writes at `dst` plus `i` times the destination's.
/// - No block that is read overlaps one that is written.
pub(super) type Row = unsafe fn(src: *const u8, dst: *mut u8, strides: Strides, bytes: usize);

/// The row for blocks of `bytes` bytes.
pub(super) fn row_of(bytes: u64) -> Row {
    /// # Safety
    ///
    /// As for [`Row`], for blocks that `make` copies.
    #[inline(always)]
    unsafe fn along(src: *const u8, dst: *mut u8, strides: Strides, block: &impl Block) {
        let (from, to) = (Strided::at(strides.from, 0), Strided::at(strides.to, 0));
        // SAFETY: our contract.
        unsafe { row(src, from, dst, to, strides.count, block) }
    }
    macro_rules! rows {
        ($($lengths:pat => $block:expr,)*) => {
            match bytes {
                // SAFETY: as the contract of `Row`; each block is chosen for lengths from its half
                // to twice that.
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
/// - Both walks have that many blocks left, of `block`'s length.
/// - Those of `from` are valid for reads, those of `to` for writes, and no two overlap.
unsafe fn walk(from: &mut Walk<'_>, to: &mut Walk<'_>, blocks: u64, block: &impl Block) {
    let mut left = blocks;
    while left > 0 {
        let count = from.left().min(to.left()).min(left);
        let ((source, a), (target, b)) = (from.inner(), to.inner());
        // SAFETY: `count` blocks from here lie in the current row of each side.
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

/// Where block `i` of a row lies, in bytes from the row's base.
trait Places {
    /// # Safety
    ///
    /// - The row has a block `i`, and its plan is alive.
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
        // SAFETY: as the contract.
        unsafe { self.entries.get(self.from + i) }.wrapping_mul(self.scale) as isize
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
        // SAFETY: both parts lie in the block, and what is written twice is the same byte.
        unsafe {
            std::ptr::copy_nonoverlapping(src, dst, N);
            std::ptr::copy_nonoverlapping(src.add(last), dst.add(last), N);
        }
    }
}

/// More than 64 bytes: 64 at a time, and the last 64, which may share some with those before.
struct Chunks {
    bytes: usize,
}

impl Block for Chunks {
    #[inline(always)]
    unsafe fn copy(&self, src: *const u8, dst: *mut u8) {
        let last = self.bytes - 64;
        let mut at = 0;
        // SAFETY: all parts lie in the block, and what is written twice is the same byte.
        unsafe {
            while at < last {
                std::ptr::copy_nonoverlapping(src.add(at), dst.add(at), 64);
                at += 64;
            }
            std::ptr::copy_nonoverlapping(src.add(last), dst.add(last), 64);
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
        // SAFETY: block `i` of both rows.
        unsafe {
            let at = src.wrapping_offset(from.place(i));
            block.copy(at, dst.wrapping_offset(to.place(i)));
        }
    }
}
