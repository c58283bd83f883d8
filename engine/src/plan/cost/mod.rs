//! The cost model: estimates how long each executor of a nest takes. The estimates determine which
//! executor runs a call of a given size, and when compiling a kernel is worthwhile.
//!
//! `plan/` calls [`choice`] at the first call of a nest in a direction. `table.rs` contains the
//! measurements; this file contains the arithmetic. In the model, a call takes a fixed time, plus a
//! time for every execution of the innermost level (a *row*), plus a time for every *run* in the
//! rows. A run is a block, a cache line of a window, or a move of up to 16 bytes. So the time of an
//! executor is a linear function of the number of outermost iterations. If the graphs of two
//! executors cross, one executor is faster for smaller calls and the other for larger calls.
//!
//! The plan requests a kernel when the kernel would have saved, in all calls so far, as much time as
//! its compilation takes. The plan cannot know how many calls will follow, and no other rule is
//! better in the worst case. A later request would cost time in programs that make many more calls, and
//! an earlier request would cost time in programs that make few more calls.
//!
//! The measurements are for data in the first-level cache. If the data is farther away, all executors
//! wait for memory. Then the model overestimates the difference between executors, and the plan
//! requests a kernel a little too early.

mod table;

use crate::kernel::{Direction, Leaf, LeafShape, Level, Nest};
use typepack_leaf::Class;
use typepack_leaf::Isa;

/// The times that an executor takes, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    /// Fixed time per call.
    call: u32,
    /// Time per execution of the innermost level.
    row: u32,
    /// Time per block of the given size. For blocks longer than 64 bytes, time per 64 bytes. For
    /// windows, time per line or per move, as the field that holds this cost says.
    run: u32,
}

/// Number of block sizes in [`Blocks`]. The first seven are for blocks of up to 1, 2, 4, 8, 16, 32
/// and 64 bytes; the last is for longer blocks.
const SIZES: usize = 8;

/// One cost for each block size.
type Blocks = [Cost; SIZES];

/// The costs of the leaf kernels of one instruction set in one direction.
#[derive(Debug)]
struct Leaves {
    /// Costs of blocks at a constant stride.
    strided: Blocks,
    /// Costs of blocks at displacements from a table.
    listed: Blocks,
    /// Costs of windows that are moved line by line. The first cost is for strides that divide a cache
    /// line (64 bytes), so that all lines look alike; the second is for all other strides.
    window: [Cost; 2],
    /// Cost of windows that are moved run by run. `run` is the time per move of up to 16 bytes.
    runs: Cost,
}

/// The costs of compiled kernels in one direction.
#[derive(Debug)]
struct Kernels {
    strided: Blocks,
    listed: Blocks,
    /// Cost of windows. `run` is the time per move of up to 16 bytes.
    window: Cost,
}

/// The result of the cost model for a nest in a direction: for which calls a kernel is the faster
/// executor, and when to compile the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Choice {
    /// The kernel is used for calls of at most this many packed bytes. 0 means that no kernel is
    /// wanted.
    pub(crate) most: u64,
    /// The kernel is requested when it would have saved this much time, in picoseconds.
    pub(crate) price: u64,
    /// Time that the kernel saves per call, in picoseconds. The value may be negative.
    call: i64,
    /// Time that the kernel saves per KiB of packed bytes, in picoseconds. The value may be negative.
    kib: i64,
}

/// The time, in picoseconds, that one byte of the compiler's threshold stands for. The threshold is a number
/// of bytes because people can estimate bytes more easily than picoseconds. Suppose that a program moves as
/// many bytes as the threshold in blocks of 8 bytes, with the interpreter (2.5 GB/s). Compared with a
/// compiled kernel (20 GB/s), it then loses as much time as a compilation takes (`cargo run --release -p
/// typepack-jit --example tune`).
const BYTE: u64 = 350;

/// Cost of a dense pattern that is packed with byte shuffles. `run` is the time per window of 16 bytes, or,
/// where `leaf/src/routine/shuffle/blend.rs` packs the pattern, per load of 32 bytes.
///
/// The times are estimates for the machine of the table: `typepack-bench calibrate` could not measure them,
/// because that machine was not at hand. On another machine (Zen 5), a window took 1.2 to 1.4 times as long
/// as a block of 8 bytes in a compiled kernel, and the fixed part of a call took 7 ns more (`typepack-bench
/// pack --isa avx2`, rows of 1 KiB and 16 KiB).
const SHUFFLE: Cost = Cost { call: 14_000, row: 3_500, run: 180 };

/// Factor that corrects the time of windows that are moved line by line. If the data does not fit in
/// the first-level cache, these windows do better, relative to compiled kernels, than the table says,
/// because the code that moves them announces its stores to the CPU (`prefetchw`) and fills whole
/// registers. Compiled kernels lose a quarter to a half of their speed there. At 16 KiB and 256 KiB,
/// moving line by line reaches 60 and 29 GB/s, and compiled kernels reach 41 and 17 GB/s
/// (`typepack-bench peers`, d1s2 and f1s3). In the table, the two differ by less than a tenth.
const FAR: f64 = 0.7;

impl Choice {
    /// The choice never to use a kernel.
    pub(crate) const NEVER: Self = Self { most: 0, price: u64::MAX, call: 0, kib: 0 };

    /// Returns the time that a kernel saves in a call of `bytes` packed bytes, in picoseconds; 0 if
    /// the kernel is slower.
    #[inline]
    pub(crate) fn saving(&self, bytes: u64) -> u64 {
        /// Limit of `bytes` in the product below, so that the product fits in an `i64`. The limit
        /// changes no decision, because a single call of 4 GiB already saves more time than any
        /// compilation takes.
        const MOST: u64 = 1 << 32;
        let of_bytes = (bytes.min(MOST) as i64).wrapping_mul(self.kib) >> 10;
        u64::try_from(self.call.wrapping_add(of_bytes)).unwrap_or(0)
    }
}

/// A linear function: the time of a call, in picoseconds, for a given number of iterations of the
/// outermost level.
#[derive(Clone, Copy, Debug)]
struct Line {
    fixed: f64,
    each: f64,
}

/// The amount of work in a call of a nest, per iteration of the outermost level.
struct Tally<'a> {
    nest: &'a Nest,
    /// Number of executions of the innermost level per outermost iteration. 0 if the innermost level
    /// is the outermost level.
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

    /// Returns the time of an executor with the costs `cost`, for a leaf that has `runs` runs.
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

    /// Returns the number of moves of up to 16 bytes that a leaf takes.
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

    /// Returns the time of the executor that is available without a kernel. Returns `None` if
    /// compiling a kernel is never worthwhile.
    fn other(&self, class: Class, costs: &Leaves, interpreter: Cost) -> Option<Line> {
        let leaf = &self.nest.leaf;
        Some(match (class, leaf) {
            // Tiles are used at strides at which every other executor, including a kernel, waits for
            // the caches.
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
            (Class::Shuffle(load), _) => {
                self.line(SHUFFLE, f64::from(load.windows) / f64::from(load.elements))
            }
            (Class::Interpreter, Leaf::Block { .. }) => self.line(interpreter, 1.0),
            (Class::Interpreter, Leaf::Window { runs }) => {
                self.line(interpreter, runs.len() as f64)
            }
        })
    }
}

/// Chooses between a kernel and the executor that is available without compiling, for `nest` in
/// `direction`. The available executor has class `class` and instruction set `isa`. The kernel is not
/// compiled yet; `threshold` is the threshold of its compiler.
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
        // The rows of SSE4 are the portable ones. Its byte shuffles have their own cost.
        _ => &table::PORTABLE[d],
    };
    let kernel = tally.kernel(&table::KERNELS[d]);
    let Some(other) = tally.other(class, leaves, table::INTERPRETER[d]) else {
        return Choice::NEVER;
    };
    let bytes = tally.leaves * nest.leaf.bytes() as f64;
    let price = price(threshold);
    if class == Class::Interpreter {
        return forced(other, kernel, bytes, price);
    }
    decide(other, kernel, bytes, price)
}

/// Returns the time that a compilation takes, in picoseconds, for a compiler with this threshold.
pub(crate) fn price(threshold: u64) -> u64 {
    threshold.saturating_mul(BYTE)
}

/// Returns the choice if the settings force compiled kernels (`Strategy::Kernel`), so that no leaf kernel is
/// available. The kernel then runs all calls, even if the blocks are so long that the interpreter is as fast.
fn forced(interpreter: Line, kernel: Line, bytes: f64, price: u64) -> Choice {
    /// Minimum saving, in picoseconds per KiB. Because of this minimum, the plan always requests the
    /// kernel once the nest has moved enough bytes.
    const LEAST: i64 = 1024 * 10;
    let kib = (interpreter.each - kernel.each) * 1024.0 / bytes;
    Choice { most: u64::MAX, price, call: 0, kib: (kib as i64).max(LEAST) }
}

/// Chooses between the available executor and a kernel. `other` is the time of the available
/// executor, `kernel` that of the kernel. One outermost iteration packs `bytes` bytes, and compiling
/// the kernel takes `price`.
fn decide(other: Line, kernel: Line, bytes: f64, price: u64) -> Choice {
    /// A relative difference below this fraction is measurement noise in the table.
    const NOISE: f64 = 0.04;
    let call = other.fixed - kernel.fixed;
    let each = match other.each - kernel.each {
        each if each.abs() < NOISE * other.each => 0.0,
        each => each,
    };
    let most = match (call > 0.0, each) {
        (true, 0.0..) => u64::MAX,
        // The kernel is faster for calls up to the size at which the two times are equal.
        (true, _) => (call / -each * bytes) as u64,
        // The kernel is faster for calls above the size at which the two times are equal. That size
        // is only a few runs, so no lower limit is stored.
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
