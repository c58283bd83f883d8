//! The cost model: the times of all executors of a nest. These times determine which executor runs
//! calls of which size, and when a compilation pays.
//!
//! `plan/` asks for a choice at the first call of a nest in a direction. `table.rs` holds the
//! measurements; this file holds the arithmetic. A call takes a fixed time, a time for every
//! execution of the innermost level (a *row*), and a time for every *run*: a block, a line of a
//! window, or a move of up to 16 bytes. The time of an executor is a straight line over the number
//! of outermost iterations. Beyond the size at which the lines of two executors cross, the other
//! executor is faster.
//!
//! The plan requests a kernel when the kernel would have saved as much time so far as its
//! compilation takes. Without knowledge of the future no rule is better in the worst case: a later
//! request costs time in programs that continue, and an earlier request costs time in programs that
//! stop.
//!
//! The measurements are for data in the first-level cache. For data farther away, all executors wait
//! for memory. The model then overrates the difference, and a kernel comes a little early.

mod table;

use crate::kernel::{Direction, Leaf, LeafShape, Level, Nest};
use crate::leaf::{Class, Isa};

/// The times of an executor, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    /// Time of each call.
    call: u32,
    /// Time of each execution of the innermost level.
    row: u32,
    /// Time of each block of the given size. For blocks longer than 64 bytes, for lines and for
    /// moves: time of each 64 bytes.
    run: u32,
}

/// Number of block sizes in [`Blocks`]: up to 1, 2, 4, 8, 16, 32, 64 bytes, and longer.
const SIZES: usize = 8;

/// Costs by block size.
type Blocks = [Cost; SIZES];

/// The costs of the leaf kernels of an instruction set in a direction.
#[derive(Debug)]
struct Leaves {
    /// The costs of blocks at a constant stride.
    strided: Blocks,
    /// The costs of blocks at listed displacements.
    listed: Blocks,
    /// The costs of windows by lines: with a period of one line, and with a longer period.
    window: [Cost; 2],
    /// The cost of windows run by run; the times are for each move.
    runs: Cost,
}

/// The costs of compiled kernels in a direction.
#[derive(Debug)]
struct Kernels {
    strided: Blocks,
    listed: Blocks,
    /// The cost of windows; the times are for each move.
    window: Cost,
}

/// The choice of the executor for calls of each size, and of the time at which to compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Choice {
    /// The kernel runs calls of at most this many packed bytes. 0 means that no kernel is wanted.
    pub(crate) most: u64,
    /// The kernel is requested when it would have saved this much time, in picoseconds.
    pub(crate) price: u64,
    /// The time saved in each call.
    call: i64,
    /// The time saved in each KiB.
    kib: i64,
}

/// The time in picoseconds that corresponds to one byte of the compiler's threshold. The threshold
/// is a number of bytes because a number of bytes is easier for people to choose. If that many
/// bytes move in blocks of 8 bytes with one memcpy each, the program loses as much time as a
/// compilation takes (2.5 GB/s instead of 20 GB/s with a compiled kernel; `cargo run --release -p
/// typepack-jit --example tune`).
const BYTE: u64 = 350;

/// Correction for windows by lines beyond the first-level cache. There, windows announce their stores
/// and fill whole registers, while kernels lose a quarter to a half of their speed (`typepack-bench
/// peers`, d1s2 and f1s3 at 16 KiB and 256 KiB: 60 and 29 GB/s by lines, 41 and 17 compiled; in the
/// table the two differ by less than a tenth).
const FAR: f64 = 0.7;

impl Choice {
    /// The choice of no kernel.
    pub(crate) const NEVER: Self = Self { most: 0, price: u64::MAX, call: 0, kib: 0 };

    /// Returns the time that a kernel saves in a call that moves `bytes` bytes, in picoseconds.
    #[inline]
    pub(crate) fn saving(&self, bytes: u64) -> u64 {
        /// Keeps products within 64 bits; a call of 4 GiB pays for any compilation.
        const MOST: u64 = 1 << 32;
        let of_bytes = (bytes.min(MOST) as i64).wrapping_mul(self.kib) >> 10;
        u64::try_from(self.call.wrapping_add(of_bytes)).unwrap_or(0)
    }
}

/// A straight line: the time of a call, in picoseconds, as a function of the iterations of the
/// outermost level.
#[derive(Clone, Copy, Debug)]
struct Line {
    fixed: f64,
    each: f64,
}

/// The work of a call of a nest, per iteration of the outermost level.
struct Tally<'a> {
    nest: &'a Nest,
    /// Executions of the innermost level; 0 if it is the outermost level.
    rows: f64,
    leaves: f64,
}

impl<'a> Tally<'a> {
    fn of(nest: &'a Nest) -> Self {
        let product = |levels: &[Level]| levels.iter().map(|l| l.count() as f64).product();
        match nest.levels.len() {
            1 => Self { nest, rows: 0.0, leaves: 1.0 },
            depth => Self {
                nest,
                rows: product(&nest.levels[1..depth - 1]),
                leaves: product(&nest.levels[1..]),
            },
        }
    }

    /// Returns the line of an executor with the costs `cost`, if a leaf has `runs` runs.
    fn line(&self, cost: Cost, runs: f64) -> Line {
        let (call, row) = (f64::from(cost.call), f64::from(cost.row));
        let first = if self.rows == 0.0 { row } else { 0.0 };
        let each = self.rows * row + self.leaves * runs * f64::from(cost.run);
        Line { fixed: call + first, each }
    }

    fn of_blocks(&self, strided: &Blocks, listed: &Blocks, bytes: u64) -> Line {
        let inner = self.nest.levels.last();
        let costs = if matches!(inner, Some(Level::Table { .. })) { listed } else { strided };
        if bytes > LeafShape::FIXED_MAX {
            self.line(costs[SIZES - 1], bytes as f64 / 64.0)
        } else {
            self.line(costs[bytes.next_power_of_two().trailing_zeros() as usize], 1.0)
        }
    }

    /// Returns the number of moves of up to 16 bytes in a leaf.
    fn moves(&self) -> f64 {
        match &self.nest.leaf {
            Leaf::Block { bytes } => bytes.div_ceil(16) as f64,
            Leaf::Window { runs } => runs.iter().map(|run| run.bytes.div_ceil(16) as f64).sum(),
        }
    }

    fn kernel(&self, costs: &Kernels) -> Line {
        match &self.nest.leaf {
            Leaf::Block { bytes } => self.of_blocks(&costs.strided, &costs.listed, *bytes),
            Leaf::Window { .. } => self.line(costs.window, self.moves()),
        }
    }

    /// Returns the time of the alternative to a kernel; `None` if a kernel never pays.
    fn other(&self, class: Class, costs: &Leaves, interpreter: Cost) -> Option<Line> {
        let leaf = &self.nest.leaf;
        Some(match (class, leaf) {
            // Tiles are for strides at which all other executors wait for caches.
            (Class::Tile, _) => return None,
            (Class::Row, Leaf::Block { bytes }) => {
                self.of_blocks(&costs.strided, &costs.listed, *bytes)
            }
            (Class::Row | Class::Runs, _) => self.line(costs.runs, self.moves()),
            (Class::Window, _) => {
                let stride = match self.nest.levels.last() {
                    Some(Level::Loop { stride, .. }) => stride.unsigned_abs(),
                    _ => 64,
                };
                let several = !(stride.is_power_of_two() && stride <= 64);
                let lines = FAR * stride as f64 / 64.0;
                self.line(costs.window[usize::from(several)], lines)
            }
            (Class::Interpreter, Leaf::Block { .. }) => self.line(interpreter, 1.0),
            (Class::Interpreter, Leaf::Window { runs }) => {
                self.line(interpreter, runs.len() as f64)
            }
        })
    }
}

/// Chooses between a kernel that is still to be compiled, by a compiler with this threshold, and the
/// available executor of class `class` and instruction set `isa`, for `nest` in `direction`.
pub(crate) fn choice(
    nest: &Nest,
    direction: Direction,
    isa: Isa,
    class: Class,
    threshold: u64,
) -> Choice {
    let d = direction as usize;
    let tally = Tally::of(nest);
    let leaves = match isa {
        Isa::Avx512 => &table::AVX512[d],
        Isa::Avx2 => &table::AVX2[d],
        Isa::Portable => &table::PORTABLE[d],
    };
    let kernel = tally.kernel(&table::KERNELS[d]);
    let Some(other) = tally.other(class, leaves, table::INTERPRETER[d]) else {
        return Choice::NEVER;
    };
    let bytes = tally.leaves * nest.leaf.bytes() as f64;
    let price = threshold.saturating_mul(BYTE);
    if class == Class::Interpreter {
        return forced(other, kernel, bytes, price);
    }
    decide(other, kernel, bytes, price)
}

/// Returns the choice if a compiled kernel was requested by name, so that there is no leaf kernel. The
/// kernel takes all calls, even with blocks so long that the interpreter's memcpy is as fast.
fn forced(interpreter: Line, kernel: Line, bytes: f64, price: u64) -> Choice {
    /// Minimum saving in picoseconds per KiB. Because of this minimum, a nest that moves enough bytes
    /// always requests its kernel.
    const LEAST: i64 = 1024 * 10;
    let kib = (interpreter.each - kernel.each) * 1024.0 / bytes;
    Choice { most: u64::MAX, price, call: 0, kib: (kib as i64).max(LEAST) }
}

/// Chooses between the available executor and a kernel. An outermost iteration packs `bytes` bytes,
/// and a compilation takes `price`.
fn decide(other: Line, kernel: Line, bytes: f64, price: u64) -> Choice {
    /// Differences below this fraction are measurement noise in the table.
    const NOISE: f64 = 0.04;
    let call = other.fixed - kernel.fixed;
    let each = match other.each - kernel.each {
        each if each.abs() < NOISE * other.each => 0.0,
        each => each,
    };
    let most = match (call > 0.0, each) {
        (true, 0.0..) => u64::MAX,
        // The kernel takes calls up to the size where the lines cross.
        (true, _) => (call / -each * bytes) as u64,
        // The kernel takes calls from the size where the lines cross. This size is a few runs, so a
        // second limit is not worthwhile.
        (false, each) if each > 0.0 => u64::MAX,
        _ => return Choice::NEVER,
    };
    if most == 0 {
        return Choice::NEVER;
    }
    Choice { most, price, call: call as i64, kib: (each * 1024.0 / bytes) as i64 }
}

#[cfg(test)]
mod tests;
