//! The cost model: what executors of a nest take, and from that who executes calls of which size
//! and when a compilation pays.
//!
//! Asked by `plan/` at the first call of a nest in a direction. `table.rs` holds what was measured;
//! here is the arithmetic. A call takes a fixed time, a time for every execution of the innermost
//! level (a *row*) and one for every *run*: a block, a line of a window, or a move of up to 16 bytes.
//! Two executors are two straight lines over the number of outermost iterations; where they cross
//! lies the size up to which a compiled kernel is called.
//!
//! A kernel is asked for when what it would have saved so far is what its compilation takes. Without
//! knowledge of what is to come nobody does better than that in the worst case: waiting longer costs
//! those who stay, compiling earlier those who leave.
//!
//! The figures are of data in the first-level cache. Farther out all executors wait for memory;
//! there the difference counts for too much, and a kernel comes a little early.

mod table;

use crate::kernel::{Direction, Leaf, LeafShape, Level, Nest};
use crate::leaf::{Class, Isa};

/// What an executor takes, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    /// Each call.
    call: u32,
    /// Each execution of the innermost level.
    row: u32,
    /// Each block of that size, 64 bytes of a longer block, line or move.
    run: u32,
}

/// Block sizes of [`Blocks`]: up to 1, 2, 4, 8, 16, 32, 64 bytes, and longer.
const SIZES: usize = 8;

/// Costs by block size.
type Blocks = [Cost; SIZES];

/// What leaf kernels of an instruction set take in a direction.
#[derive(Debug)]
struct Leaves {
    /// Blocks at a constant stride.
    strided: Blocks,
    /// Blocks at listed displacements.
    listed: Blocks,
    /// Windows by lines: with a period of one line, and of several.
    window: [Cost; 2],
    /// Windows run by run: each move.
    runs: Cost,
}

/// What compiled kernels take in a direction.
#[derive(Debug)]
struct Kernels {
    strided: Blocks,
    listed: Blocks,
    /// Windows: each move.
    window: Cost,
}

/// Who executes calls of which size, and when to compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Choice {
    /// Calls of more packed bytes are not the kernel's. 0: no kernel is wanted.
    pub(crate) most: u64,
    /// The kernel is asked for when it would have saved so much, in picoseconds.
    pub(crate) price: u64,
    /// What it saves of each call.
    call: i64,
    /// What it saves of each KiB.
    kib: i64,
}

/// What a byte of the compiler's threshold stands for, in picoseconds. The threshold is a number of
/// bytes for people: so many, in blocks of 8 bytes, one memcpy each, take as much longer than
/// compiled as a compilation takes (2.5 against 20 GB/s; `cargo run --release -p typepack-jit
/// --example tune`).
const BYTE: u64 = 350;

/// What lines of windows take beyond the first-level cache, as part of what the table makes kernels
/// look like there: windows announce their stores and fill whole registers, kernels lose a quarter to
/// a half (`typepack-bench peers`, d1s2 and f1s3 at 16 KiB and 256 KiB: 60 and 29 GB/s by lines, 41 and
/// 17 compiled, where the table has the two within a tenth).
const FAR: f64 = 0.7;

impl Choice {
    /// No kernel.
    pub(crate) const NEVER: Self = Self { most: 0, price: u64::MAX, call: 0, kib: 0 };

    /// What a kernel saves of a call that moves `bytes` bytes, in picoseconds.
    #[inline]
    pub(crate) fn saving(&self, bytes: u64) -> u64 {
        /// Keeps products within 64 bits; a call of 4 GiB pays any compilation.
        const MOST: u64 = 1 << 32;
        let of_bytes = (bytes.min(MOST) as i64).wrapping_mul(self.kib) >> 10;
        u64::try_from(self.call.wrapping_add(of_bytes)).unwrap_or(0)
    }
}

/// A straight line: picoseconds of a call over the iterations of the outermost level.
#[derive(Clone, Copy, Debug)]
struct Line {
    fixed: f64,
    each: f64,
}

/// What a call of a nest does, for each iteration of the outermost level.
struct Tally<'a> {
    nest: &'a Nest,
    /// Executions of the innermost level; 0 where it is the outermost.
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

    /// The time with `cost`, when a leaf is `runs` of its runs.
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

    /// Moves of up to 16 bytes that a leaf takes.
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

    /// What else could execute it; `None` where a kernel never pays.
    fn other(&self, class: Class, costs: &Leaves, interpreter: Cost) -> Option<Line> {
        let leaf = &self.nest.leaf;
        Some(match (class, leaf) {
            // They are for strides at which everybody else waits for caches.
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

/// Who is to execute `nest` in `direction`: a kernel that is still to be compiled by a compiler with
/// this threshold, or what is there already, of class `class` and instruction set `isa`.
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

/// The choice where there is no leaf kernel because a compiled one was asked for by name: it takes
/// all calls, also of blocks so long that the interpreter's memcpy does as well.
fn forced(interpreter: Line, kernel: Line, bytes: f64, price: u64) -> Choice {
    /// Picoseconds per KiB that are saved in any case, so that a kernel comes at all.
    const LEAST: i64 = 1024 * 10;
    let kib = (interpreter.each - kernel.each) * 1024.0 / bytes;
    Choice { most: u64::MAX, price, call: 0, kib: (kib as i64).max(LEAST) }
}

/// The choice between what is there and a kernel, when an outermost iteration packs `bytes` bytes
/// and a compilation takes `price`.
fn decide(other: Line, kernel: Line, bytes: f64, price: u64) -> Choice {
    /// Differences below this part are noise of the table.
    const NOISE: f64 = 0.04;
    let call = other.fixed - kernel.fixed;
    let each = match other.each - kernel.each {
        each if each.abs() < NOISE * other.each => 0.0,
        each => each,
    };
    let most = match (call > 0.0, each) {
        (true, 0.0..) => u64::MAX,
        // Up to where the lines cross.
        (true, _) => (call / -each * bytes) as u64,
        // From where they cross on, which is a few runs: not worth a second limit.
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
