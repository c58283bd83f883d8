//! The interpreter: executes any nest, given the parameter block that a compiled kernel would take.
//!
//! The engine calls the interpreter for nests without a compiled kernel or leaf kernel. If it verifies its
//! kernels, it also compares their results with those of the interpreter. The interpreter steps through the levels like an odometer and copies each run with `contiguous::copy`. So
//! it moves rows of hundreds of bytes at full memory speed; for short blocks, leaf kernels (`routine/`) and
//! compiled kernels are faster.

use crate::contiguous;
use crate::kernel::{Leaf, Level, Nest};
use crate::table::Table;

/// Copies `bytes` bytes between memory and packed data.
///
/// # Safety
///
/// - `mem` and `packed` are valid for `bytes` bytes: `mem` for reads and `packed` for writes if
///   `PACK`, `packed` for reads and `mem` for writes otherwise.
/// - The two ranges do not overlap.
#[inline(always)]
pub unsafe fn copy<const PACK: bool>(mem: *mut u8, packed: *mut u8, bytes: usize) {
    let (from, to) = if PACK { (mem, packed) } else { (packed, mem) };
    // SAFETY: the caller guarantees that `from` is readable and `to` writable for `bytes` bytes,
    // and that the two ranges do not overlap.
    unsafe { contiguous::copy(from, to, bytes) }
}

/// A level's kind and parameters, read once. The Rust compiler must assume that storing packed bytes may
/// overwrite the parameter block, so without this copy the compiled code would read the parameters
/// again for every block.
#[derive(Clone, Copy)]
pub(crate) enum Steps {
    Loop { stride: i64 },
    Short { entries: *const u8, scale: i64 },
    Narrow { entries: *const i32, scale: i64 },
    Wide { entries: *const i64, scale: i64 },
}

impl Steps {
    /// Reads the parameters of `level` that begin at `word`.
    ///
    /// # Safety
    ///
    /// - `word` points to the three parameters of a level of `level`'s kind (see `mod.rs`).
    #[inline(always)]
    pub(crate) unsafe fn new(level: &Level, word: *const u64) -> Self {
        // SAFETY: the caller guarantees that `word` points to three parameters.
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

    /// Returns the displacement of iteration `index`, in bytes.
    ///
    /// # Safety
    ///
    /// - If the level is a table, its entry `index` is readable.
    #[inline(always)]
    pub(crate) unsafe fn displacement(self, index: u64) -> i64 {
        let i = index as usize;
        // SAFETY: the caller guarantees that entry `i` of a table is readable.
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

/// Executes a nest, as a call of a compiled kernel for its shape would.
///
/// # Safety
///
/// - The conditions of [`Entry`](crate::kernel::Entry) hold, with `words` as `params`. The memory
///   that is only read (`mem` if `PACK`, `packed` otherwise) may be immutable.
#[inline(always)]
pub unsafe fn run<const PACK: bool>(nest: &Nest, words: &[u64], mem: *mut u8, packed: *mut u8) {
    type Run = unsafe fn(&Nest, &[u64], *mut u8, *mut u8);
    static RUN: [Run; 2] = [nest_of::<false>, nest_of::<true>];
    // SAFETY: the conditions of `nest_of` are those of this function, and the arguments are the same.
    unsafe { RUN[usize::from(PACK)](nest, words, mem, packed) }
}

/// # Safety
///
/// The conditions of [`run`] hold.
unsafe fn nest_of<const PACK: bool>(nest: &Nest, words: &[u64], mem: *mut u8, packed: *mut u8) {
    let depth = nest.levels.len();
    let inner = depth - 1;
    if (0..depth).any(|l| words[3 * l] == 0) {
        return;
    }
    let params = words.as_ptr();
    // The current iteration of each level except the innermost level.
    let mut position = [0u64; Nest::MAX_DEPTH];
    let mut packed = packed;
    loop {
        let mut at = mem;
        for (l, &index) in position[..inner].iter().enumerate() {
            // SAFETY: `words[3 * l..]` holds the parameters of level `l`, and `index` is below its
            // count.
            let shift =
                unsafe { Steps::new(&nest.levels[l], params.add(3 * l)).displacement(index) };
            at = at.wrapping_offset(shift as isize);
        }
        // SAFETY: `words[3 * inner..]` holds the parameters of the innermost level. `at` is the base
        // of this level at one position of the outer levels, and `packed` is the address of the
        // packed bytes of this position. For all positions, the caller guarantees that the table
        // entries, the runs and the packed bytes are valid, and that runs and packed bytes do not
        // overlap.
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

/// Executes the innermost level and returns the packed address after it.
///
/// # Safety
///
/// - `word` points to the level's three parameters. If the level is a table, all entries below the
///   count are readable.
/// - For every iteration, the leaf's runs relative to `mem` are valid (for reads if `PACK`, for
///   writes otherwise). `packed` is valid for the opposite access; its length is the leaf's length
///   times the count.
/// - The leaf's runs and the packed bytes do not overlap.
#[inline(always)]
unsafe fn row<const PACK: bool>(
    level: &Level,
    word: *const u64,
    leaf: &Leaf,
    mem: *mut u8,
    mut packed: *mut u8,
) -> *mut u8 {
    // SAFETY: the caller guarantees that `word` points to the level's parameters, of which the
    // first is the count.
    let (count, steps) = unsafe { (*word, Steps::new(level, word)) };
    match leaf {
        Leaf::Block { bytes } => {
            let bytes = *bytes as usize;
            for i in 0..count {
                // SAFETY: `i` is below `count`, so the entry of a table is readable.
                let at = mem.wrapping_offset(unsafe { steps.displacement(i) } as isize);
                // SAFETY: `at` is the block of iteration `i`, and `packed` has advanced by `i`
                // blocks. The caller guarantees that both are valid and do not overlap.
                unsafe { copy::<PACK>(at, packed, bytes) };
                packed = packed.wrapping_add(bytes);
            }
        }
        Leaf::Window { runs } => {
            for i in 0..count {
                // SAFETY: `i` is below `count`, so the entry of a table is readable.
                let at = mem.wrapping_offset(unsafe { steps.displacement(i) } as isize);
                for run in runs.iter() {
                    let (at, bytes) = (at.wrapping_offset(run.offset as isize), run.bytes as usize);
                    // SAFETY: `at` is this run in iteration `i`, and `packed` has advanced by the
                    // bytes of the runs before it. The caller guarantees that both are valid and do
                    // not overlap.
                    unsafe { copy::<PACK>(at, packed, bytes) };
                    packed = packed.wrapping_add(bytes);
                }
            }
        }
    }
    packed
}

/// Moves bytes `skip..skip + bytes` of one leaf whose base is `mem`. `packed` is the packed address
/// of byte `skip`.
///
/// # Safety
///
/// - The parts of the leaf's runs that hold these bytes, relative to `mem`, are valid (for reads if
///   `PACK`, for writes otherwise). `packed` is valid for the opposite access, for `bytes` bytes.
/// - The leaf's runs and the packed bytes do not overlap.
/// - `skip + bytes` is at most the leaf's length in bytes.
#[inline(always)]
pub unsafe fn part_of_leaf<const PACK: bool>(
    leaf: &Leaf,
    mem: *mut u8,
    packed: *mut u8,
    skip: u64,
    bytes: u64,
) {
    type Run = unsafe fn(&Leaf, *mut u8, *mut u8, u64, u64);
    static RUN: [Run; 2] = [part::<false>, part::<true>];
    // SAFETY: the conditions of `part` are those of this function, and the arguments are the same.
    unsafe { RUN[usize::from(PACK)](leaf, mem, packed, skip, bytes) }
}

/// # Safety
///
/// The conditions of [`part_of_leaf`] hold.
unsafe fn part<const PACK: bool>(
    leaf: &Leaf,
    mem: *mut u8,
    packed: *mut u8,
    skip: u64,
    bytes: u64,
) {
    match leaf {
        Leaf::Block { .. } => {
            let at = mem.wrapping_add(skip as usize);
            // SAFETY: `skip + bytes` is at most the block's length, so `at` has `bytes` valid
            // bytes. The caller guarantees that `packed` is valid and does not overlap the block.
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
                // SAFETY: this run has at least `bytes` bytes after `skip`, and at least `bytes`
                // bytes are left to move, so `at` and `packed` are valid for `bytes` bytes. The caller
                // guarantees that they do not overlap.
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
