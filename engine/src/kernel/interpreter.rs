//! The interpreter: executes any nest from the same parameter block as a compiled kernel.
//!
//! Called by `exec/` wherever there is no kernel; kernels are checked against it at run time. It
//! walks the levels like an odometer and makes one memcpy per run; rows of hundreds of bytes run at
//! the machine's speed this way, short blocks are what kernels are for (`leaf/`, and the compiler's).

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

/// A level's parameters with its kind, read once: the compiler has to assume that packed bytes are
/// written over the parameter block, and would read it again for every block.
#[derive(Clone, Copy)]
pub(crate) enum Steps {
    Loop { stride: i64 },
    Short { entries: *const u8, scale: i64 },
    Narrow { entries: *const i32, scale: i64 },
    Wide { entries: *const i64, scale: i64 },
}

impl Steps {
    /// The parameters of `level` that begin at `word`.
    ///
    /// # Safety
    ///
    /// `word` points to the three parameters of `level`'s kind, laid out as in `mod.rs`.
    #[inline(always)]
    pub(crate) unsafe fn new(level: &Level, word: *const u64) -> Self {
        // SAFETY: three words are there, by the contract.
        let (value, scale) = unsafe { (*word.add(1), *word.add(2) as i64) };
        match level {
            Level::Loop { .. } => Self::Loop { stride: value as i64 },
            Level::Table { entries: Table::Short(_), .. } => {
                Self::Short { entries: value as *const u8, scale }
            }
            Level::Table { entries: Table::Narrow(_), .. } => {
                Self::Narrow { entries: value as *const i32, scale }
            }
            Level::Table { entries: Table::Wide(_), .. } => {
                Self::Wide { entries: value as *const i64, scale }
            }
        }
    }

    /// Displacement of iteration `index`.
    ///
    /// # Safety
    ///
    /// Entry `index` of a table is readable.
    #[inline(always)]
    pub(crate) unsafe fn displacement(self, index: u64) -> i64 {
        let i = index as usize;
        // SAFETY: the entry is readable, by the contract.
        let (entry, scale) = unsafe {
            match self {
                Self::Loop { stride } => (index as i64, stride),
                Self::Short { entries, scale } => ((*entries.add(i)).into(), scale),
                Self::Narrow { entries, scale } => ((*entries.add(i)).into(), scale),
                Self::Wide { entries, scale } => (*entries.add(i), scale),
            }
        };
        entry.wrapping_mul(scale)
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
            let shift =
                unsafe { Steps::new(&nest.levels[l], params.add(3 * l)).displacement(index) };
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
    // SAFETY: the count is the first of the level's parameters, which are there.
    let (count, steps) = unsafe { (*word, Steps::new(level, word)) };
    match leaf {
        Leaf::Block { bytes } => {
            let bytes = *bytes as usize;
            for i in 0..count {
                // SAFETY: `i` is below the count.
                let at = mem.wrapping_offset(unsafe { steps.displacement(i) } as isize);
                // SAFETY: one run of this iteration, and its place in the packed bytes.
                unsafe { copy::<PACK>(at, packed, bytes) };
                packed = packed.wrapping_add(bytes);
            }
        }
        Leaf::Window { runs } => {
            for i in 0..count {
                // SAFETY: `i` is below the count.
                let at = mem.wrapping_offset(unsafe { steps.displacement(i) } as isize);
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
