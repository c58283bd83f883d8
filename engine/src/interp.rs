//! The interpreter: executes any nest from the same parameter block as a compiled kernel.
//!
//! Called by `exec.rs` wherever there is no kernel. It walks the levels like an odometer and makes
//! one memcpy per run; rows of hundreds of bytes run at the machine's speed this way, short blocks
//! are what kernels are for. Blocks of the commonest lengths take a few instructions instead of a
//! call, since the first pack of a type is often its only one.

use crate::kernel::{Leaf, Level, Nest};
use crate::table::Table;

/// Copies `bytes` bytes between memory and packed data.
///
/// # Safety
///
/// - `mem` and `packed` are valid for `bytes` bytes: to read from `mem` and write to `packed` when
///   `PACK`, the other way round otherwise.
/// - The two ranges do not overlap.
#[inline(always)]
pub(crate) unsafe fn copy<const PACK: bool>(mem: *mut u8, packed: *mut u8, bytes: usize) {
    let (from, to) = if PACK { (mem, packed) } else { (packed, mem) };
    // SAFETY: the caller vouches for both sides and that they are apart.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) }
}

/// Displacement of iteration `index` of a level whose parameters begin at `word`.
///
/// # Safety
///
/// - `word` points to the three parameters of `level`'s kind, laid out as in `kernel.rs`.
/// - For a table, entry `index` of the table they name is readable.
#[inline(always)]
unsafe fn displacement(level: &Level, word: *const u64, index: u64) -> i64 {
    // SAFETY: three words are there, by the contract.
    let (value, scale) = unsafe { (*word.add(1), *word.add(2) as i64) };
    match level {
        Level::Loop { .. } => (index as i64).wrapping_mul(value as i64),
        Level::Table { entries, .. } => {
            let entry = match entries {
                // SAFETY: the entry is readable, by the contract.
                Table::Short(_) => unsafe { i64::from(*(value as *const u8).add(index as usize)) },
                // SAFETY: the entry is readable, by the contract.
                Table::Narrow(_) => unsafe {
                    i64::from(*(value as *const i32).add(index as usize))
                },
                // SAFETY: the entry is readable, by the contract.
                Table::Wide(_) => unsafe { *(value as *const i64).add(index as usize) },
            };
            entry.wrapping_mul(scale)
        }
    }
}

/// Executes a nest: the counterpart of calling a kernel of its shape.
///
/// # Safety
///
/// As for [`Entry`](crate::kernel::Entry), with `words` as `params`, and mutability of the side
/// that is only read not required.
pub(crate) unsafe fn run<const PACK: bool>(
    nest: &Nest,
    words: &[u64],
    mem: *mut u8,
    packed: *mut u8,
) {
    let depth = nest.levels.len();
    let inner = depth - 1;
    if (0..depth).any(|l| words[3 * l] == 0) {
        return;
    }
    let params = words.as_ptr();
    // Positions of all levels but the innermost.
    let mut position = [0u64; Nest::MAX_DEPTH];
    let mut packed = packed;
    loop {
        let mut at = mem;
        for (l, &index) in position[..inner].iter().enumerate() {
            // SAFETY: parameters of level l, and an index below its count.
            let shift = unsafe { displacement(&nest.levels[l], params.add(3 * l), index) };
            at = at.wrapping_offset(shift as isize);
        }
        // SAFETY: as the caller's contract, for the innermost level at this position.
        packed = unsafe {
            row::<PACK>(&nest.levels[inner], params.add(3 * inner), &nest.leaf, at, packed)
        };
        let mut l = inner;
        loop {
            if l == 0 {
                return;
            }
            l -= 1;
            position[l] += 1;
            if position[l] < words[3 * l] {
                break;
            }
            position[l] = 0;
        }
    }
}

/// The innermost level. Returns where packed data goes on.
///
/// # Safety
///
/// - `word` points to the level's three parameters; every entry of a table below its count is
///   readable.
/// - For every iteration the leaf's runs relative to `mem` are valid (reads when `PACK`, writes
///   otherwise), and `packed` for the leaf's bytes times the count; the sides do not overlap.
#[inline(always)]
unsafe fn row<const PACK: bool>(
    level: &Level,
    word: *const u64,
    leaf: &Leaf,
    mem: *mut u8,
    mut packed: *mut u8,
) -> *mut u8 {
    // SAFETY: the count is the first of the level's parameters.
    let count = unsafe { *word };
    match leaf {
        Leaf::Block { bytes } => {
            /// Blocks of a length that is known when this is compiled are moved by registers, the
            /// addresses independent of each other: a random list is bound by how many of them the
            /// CPU looks up at once.
            macro_rules! blocks {
                ($bytes:expr) => {
                    for i in 0..count {
                        // SAFETY: `i` is below the count.
                        let shift = unsafe { displacement(level, word, i) };
                        let at = mem.wrapping_offset(shift as isize);
                        // SAFETY: one run of this iteration, and its place in the packed bytes.
                        unsafe { copy::<PACK>(at, packed, $bytes) };
                        packed = packed.wrapping_add($bytes);
                    }
                };
            }
            match *bytes as usize {
                1 => blocks!(1),
                2 => blocks!(2),
                4 => blocks!(4),
                8 => blocks!(8),
                12 => blocks!(12),
                16 => blocks!(16),
                24 => blocks!(24),
                32 => blocks!(32),
                64 => blocks!(64),
                bytes => blocks!(bytes),
            }
        }
        Leaf::Window { runs } => {
            for i in 0..count {
                // SAFETY: `i` is below the count.
                let at = mem.wrapping_offset(unsafe { displacement(level, word, i) } as isize);
                for run in runs.iter() {
                    let (at, bytes) = (at.wrapping_offset(run.offset as isize), run.bytes as usize);
                    // SAFETY: one run of this iteration, and its place in the packed bytes.
                    unsafe { copy::<PACK>(at, packed, bytes) };
                    packed = packed.wrapping_add(bytes);
                }
            }
        }
    }
    packed
}

/// Moves bytes `skip .. skip + bytes` of one leaf whose base is `mem`; `packed` is where byte
/// `skip` goes.
///
/// # Safety
///
/// - The touched parts of the leaf's runs relative to `mem` are valid (reads when `PACK`, writes
///   otherwise), and so is `packed` for `bytes` bytes; the sides do not overlap.
/// - `skip + bytes` is at most the leaf's bytes.
pub(crate) unsafe fn part_of_leaf<const PACK: bool>(
    leaf: &Leaf,
    mem: *mut u8,
    packed: *mut u8,
    skip: u64,
    bytes: u64,
) {
    match leaf {
        Leaf::Block { .. } => {
            let at = mem.wrapping_add(skip as usize);
            // SAFETY: this part of the run, and its packed bytes.
            unsafe { copy::<PACK>(at, packed, bytes as usize) };
        }
        Leaf::Window { runs } => {
            let (mut skip, mut left, mut packed) = (skip, bytes, packed);
            for run in runs.iter() {
                if skip >= run.bytes {
                    skip -= run.bytes;
                    continue;
                }
                let bytes = (run.bytes - skip).min(left);
                let at = mem.wrapping_offset(run.offset as isize).wrapping_add(skip as usize);
                // SAFETY: this part of the run, and its packed bytes.
                unsafe { copy::<PACK>(at, packed, bytes as usize) };
                packed = packed.wrapping_add(bytes as usize);
                left -= bytes;
                skip = 0;
                if left == 0 {
                    break;
                }
            }
        }
    }
}
