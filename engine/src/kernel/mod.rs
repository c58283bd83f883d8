//! The engine's view of a compiled kernel: its shape, its parameter block, its entry point.
//!
//! `plan/` cuts a program into [`Nest`]s and asks a [`Compiler`] for the [`Kernel`] of a nest's
//! [`Shape`]. `exec/` calls the kernel. This module is the only connection between the engine and
//! the code generator (the `jit` crate).
//!
//! # The nest
//!
//! A nest is a chain of levels, outermost first, over one leaf:
//!
//! ```text
//! for i0 in 0..count0 { for i1 in 0..count1 { … leaf at base + offset0(i0) + offset1(i1) + … } }
//! ```
//!
//! A `Loop` level contributes `i * stride` bytes, a `Table` level `entries[i] * scale` bytes. The
//! leaf moves one block, or a window of a few short runs, to or from the next packed bytes. A
//! kernel executes the iterations in this order and packed bytes are consecutive (typemap order),
//! so that unpacking of overlapping types is correct.
//!
//! # The parameter block
//!
//! The parameter block is an array of 64-bit words. The numbers of a nest are parameters, so that
//! all types of one shape share one kernel:
//!
//! ```text
//! word 3*l     count of level l
//! word 3*l + 1 Loop: stride in bytes (signed)     Table: address of the first entry
//! word 3*l + 2 Loop: 0                            Table: scale in bytes (signed)
//! word 3*depth block length in bytes              (LeafShape::Long only)
//! ```
//!
//! To execute only iterations `a..b` of a level, a caller passes `count = b - a` and adds `a *
//! stride` to the base pointer, or `a` entries to the table address. Thus a caller chooses start
//! and count at every level, and at most `2 * depth` calls move any whole number of blocks. A count
//! of 0 at any level moves nothing.
//!
//! Kernels of fused copies walk two layouts at once: see [`TransferShape`].

pub(crate) mod interpreter;
mod transfer;

pub use transfer::{TransferLeaf, TransferRun, TransferShape};

pub use crate::ir::Run;

use crate::ir::{WINDOW_RUNS, WINDOW_SPAN};
use crate::table::Table;
use smallvec::SmallVec;
use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The direction of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Moves bytes from the described layout into consecutive bytes.
    Pack,
    /// Moves consecutive bytes into the described layout.
    Unpack,
}

/// One level of a nest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Level {
    /// `count` iterations, `stride` bytes apart.
    Loop {
        /// Number of iterations.
        count: u64,
        /// Distance of consecutive iterations in bytes; may be 0 or negative.
        stride: i64,
    },
    /// One iteration per entry, at `entries[i] * scale` bytes.
    Table {
        /// The entries.
        entries: Table,
        /// Bytes per unit of an entry.
        scale: i64,
    },
}

impl Level {
    /// Returns the number of iterations.
    pub fn count(&self) -> u64 {
        match self {
            Self::Loop { count, .. } => *count,
            Self::Table { entries, .. } => entries.len() as u64,
        }
    }
}

/// The bytes that one iteration of the innermost level moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// One block of `bytes` bytes at the base.
    Block {
        /// Length in bytes, never 0.
        bytes: u64,
    },
    /// Several short runs, in packed order. The first run's offset is 0 (it is hoisted into the
    /// nest's base). There are at most [`Leaf::WINDOW_RUNS`] runs, and all offsets lie within
    /// [`Leaf::WINDOW_SPAN`] bytes of 0. Runs may touch, overlap, and go backwards.
    Window {
        /// The runs.
        runs: Arc<[Run]>,
    },
}

impl Leaf {
    /// Maximum number of runs of a window.
    pub const WINDOW_RUNS: usize = WINDOW_RUNS;
    /// Largest distance of a window's run, start or end, from the window's base, in bytes.
    pub const WINDOW_SPAN: i64 = WINDOW_SPAN;

    /// Returns the packed bytes of one leaf.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Block { bytes } => *bytes,
            Self::Window { runs } => runs.iter().map(|r| r.bytes).sum(),
        }
    }
}

/// A maximal part of a program that one kernel can execute: levels, outermost first, over a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nest {
    /// Displacement of the leaf's first byte when all level offsets are 0, in bytes.
    pub base: i64,
    /// Outermost first; never empty, at most [`Nest::MAX_DEPTH`].
    pub levels: Levels,
    /// The innermost body.
    pub leaf: Leaf,
}

/// The levels of a nest, outermost first. Most nests have at most 3 levels, which need no
/// allocation: every commit makes nests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Levels(SmallVec<[Level; 3]>);

impl Levels {
    pub(crate) fn push(&mut self, level: Level) {
        self.0.push(level);
    }

    pub(crate) fn pop(&mut self) -> Option<Level> {
        self.0.pop()
    }
}

impl Deref for Levels {
    type Target = [Level];

    #[inline]
    fn deref(&self) -> &[Level] {
        &self.0
    }
}

impl<'a> IntoIterator for &'a Levels {
    type Item = &'a Level;
    type IntoIter = std::slice::Iter<'a, Level>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl From<Vec<Level>> for Levels {
    fn from(levels: Vec<Level>) -> Self {
        Self(levels.into())
    }
}

impl Nest {
    /// Maximum depth of a nest that the engine passes to a compiler. The executor runs the outer
    /// loops of deeper programs, at no measurable cost.
    pub const MAX_DEPTH: usize = 8;

    /// Words of the largest parameter block.
    pub const WORDS: usize = 3 * Self::MAX_DEPTH + 1;

    /// Returns the shape of this nest for `direction`.
    pub fn shape(&self, direction: Direction) -> Shape {
        Shape {
            direction,
            levels: self
                .levels
                .iter()
                .map(|level| match level {
                    Level::Loop { .. } => LevelShape::Loop,
                    Level::Table { entries, .. } => LevelShape::of_table(entries),
                })
                .collect(),
            leaf: match &self.leaf {
                Leaf::Block { bytes } if *bytes <= LeafShape::FIXED_MAX => {
                    LeafShape::Fixed { bytes: *bytes as u32 }
                }
                Leaf::Block { .. } => LeafShape::Long,
                Leaf::Window { runs } => LeafShape::Window { runs: runs.clone() },
            },
        }
    }
}

/// The properties of a nest that determine the code of its kernel. Counts, strides, scales and tables
/// are parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Pack or unpack.
    pub direction: Direction,
    /// Outermost first.
    pub levels: Vec<LevelShape>,
    /// The innermost body.
    pub leaf: LeafShape,
}

/// A level without its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LevelShape {
    /// Constant stride.
    Loop,
    /// Table of `i32` entries.
    Table32,
    /// Table of `i64` entries.
    Table64,
}

impl LevelShape {
    pub(crate) fn of_table(entries: &Table) -> Self {
        match entries {
            Table::Short(_) => {
                unreachable!("a table of positions has short entries: only lengths may be short")
            }
            Table::Narrow(_) => Self::Table32,
            Table::Wide(_) => Self::Table64,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Loop => "loop",
            Self::Table32 => "table32",
            Self::Table64 => "table64",
        }
    }
}

/// The properties of a leaf that determine the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LeafShape {
    /// A block of exactly `bytes` bytes, 1 to [`LeafShape::FIXED_MAX`].
    Fixed {
        /// Length in bytes.
        bytes: u32,
    },
    /// A block longer than [`LeafShape::FIXED_MAX`]; its length is a parameter.
    Long,
    /// See [`Leaf::Window`].
    Window {
        /// The runs.
        runs: Arc<[Run]>,
    },
}

impl LeafShape {
    /// Longest block whose length is part of the shape, in bytes.
    pub const FIXED_MAX: u64 = 64;
}

impl Shape {
    /// Returns the number of words in the parameter block.
    pub fn words(&self) -> usize {
        3 * self.levels.len() + usize::from(self.leaf == LeafShape::Long)
    }
}

impl fmt::Display for Shape {
    /// Prints the name of the shape, for example `pack loop loop b8` or `unpack loop w(0+1 4+4 8+8)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.direction {
            Direction::Pack => "pack",
            Direction::Unpack => "unpack",
        })?;
        for level in &self.levels {
            write!(f, " {}", level.name())?;
        }
        match &self.leaf {
            LeafShape::Fixed { bytes } => write!(f, " b{bytes}"),
            LeafShape::Long => f.write_str(" long"),
            LeafShape::Window { runs } => {
                f.write_str(" w(")?;
                for (i, run) in runs.iter().enumerate() {
                    let sep = if i == 0 { "" } else { " " };
                    write!(f, "{sep}{}+{}", run.offset, run.bytes)?;
                }
                f.write_str(")")
            }
        }
    }
}

/// The entry point of a kernel. The arguments are the parameter block, the base of the described
/// memory and the packed bytes.
///
/// # Safety
///
/// - `params` points to the words that the shape requires (see the module's text), valid for reads.
/// - Table addresses in the block point to at least `count` entries of the shape's width.
/// - For every iteration, the leaf's runs, relative to `mem` plus the level offsets, are valid for
///   reads (pack) or writes (unpack). The kernel accesses nothing else at `mem`.
/// - `packed` is valid for writes (pack) or reads (unpack) of the leaf's bytes times all counts.
/// - The two sides do not overlap.
///
/// The kernel of a [`TransferShape`] takes the parameter block of that shape. Every run of its leaf
/// is valid for reads relative to `mem`, the base of the source, and for writes relative to
/// `packed`, the base of the destination.
pub type Entry = unsafe extern "C" fn(params: *const u64, mem: *mut u8, packed: *mut u8);

/// A compiled kernel. Its code stays mapped while the value is alive.
#[derive(Clone)]
pub struct Kernel {
    entry: Entry,
    name: Arc<str>,
    _keep: Arc<dyn Any + Send + Sync>,
}

impl Kernel {
    /// Wraps an entry point.
    ///
    /// # Safety
    ///
    /// - `entry` implements the shape that the kernel is returned for, as the module's text says,
    ///   and never unwinds.
    /// - The code of `entry` stays mapped and unchanged while `keep` is alive.
    pub unsafe fn new(entry: Entry, name: Arc<str>, keep: Arc<dyn Any + Send + Sync>) -> Self {
        Self { entry, name, _keep: keep }
    }

    /// Returns the entry point, which is valid while this kernel is alive.
    #[inline]
    pub fn entry(&self) -> Entry {
        self.entry
    }

    /// Returns the name that reports print.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A maker of kernels. The caller passes it to the commit; the engine contains no code generator.
///
/// # Safety
///
/// - A kernel that [`Compiler::kernel`] returns implements the requested shape, and no other shape:
///   the engine calls the kernel from safe code with the parameters of that shape.
pub unsafe trait Compiler: Send + Sync + fmt::Debug {
    /// Returns the cost of a compilation, as a number of bytes: a kernel that packs that many bytes
    /// in blocks of 8 saves as much time over the interpreter as its compilation takes. The engine
    /// asks for the kernel of a nest when the kernel would have saved the cost of its compilation
    /// (`plan/cost/`). With 0 the engine asks at commit, for each nest where a kernel is ever the
    /// better choice. With `u64::MAX` the engine never asks.
    fn threshold(&self) -> u64;

    /// Returns the kernel for `shape`, from the cache or compiled now. `None` is a refusal; the
    /// plan that asked never asks again and uses the interpreter.
    fn kernel(&self, shape: &Shape) -> Option<Kernel>;

    /// Returns the kernel of a fused copy, under the rules of [`Compiler::kernel`]. The entry takes
    /// the base of the source for `mem` and the base of the destination for `packed`
    /// ([`TransferShape`]). The default refuses.
    fn transfer_kernel(&self, shape: &TransferShape) -> Option<Kernel> {
        let _ = shape;
        None
    }
}
