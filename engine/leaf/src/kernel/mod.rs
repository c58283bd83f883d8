//! Defines what the engine knows about a compiled kernel: its shape, its parameter block and its
//! entry point.
//!
//! The engine cuts a program into [`Nest`]s and requests the [`Kernel`] of a nest's [`Shape`] from its
//! `Compiler`. This module and that trait are the only connection between the engine and the code generator
//! (the `jit` crate).
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
//! leaf moves one block, or a window of a few short runs, to or from the next packed bytes. A kernel
//! executes the iterations in this order, and their packed bytes are consecutive (typemap order). So
//! unpacking a type whose data overlaps gives the correct result.
//!
//! # The parameter block
//!
//! The parameter block is an array of 64-bit words. The counts, strides, table addresses and scales of
//! a nest are parameters, so that all nests of one shape share one kernel:
//!
//! ```text
//! word 3*l     count of level l
//! word 3*l + 1 Loop: stride in bytes (signed)     Table: address of the first entry
//! word 3*l + 2 Loop: 0                            Table: scale in bytes (signed)
//! word 3*depth block length in bytes              (LeafShape::Long only)
//! ```
//!
//! To execute only iterations `a..b` of a level, a caller passes `count = b - a`. For a loop, it also adds
//! `a` strides to the base pointer; for a table, it advances the table address by `a` entries. So a caller
//! can choose the first iteration and the count at every level. At most `2 * depth` calls move any range of
//! whole leaves. A count of 0 at any level moves nothing.
//!
//! A kernel for a fused copy, which copies from one layout directly to another, walks both layouts at
//! once. [`TransferShape`] describes such kernels.

pub mod interpreter;
mod transfer;

pub use transfer::{TransferLeaf, TransferRun, TransferShape};

use crate::table::Table;
use smallvec::SmallVec;
use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The direction in which data is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Moves bytes from the described layout into consecutive bytes.
    Pack,
    /// Moves consecutive bytes into the described layout.
    Unpack,
}

/// A run of memory: `bytes` bytes at `offset` bytes from some base.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// Displacement in bytes.
    pub offset: i64,
    /// Length in bytes, never 0.
    pub bytes: u64,
}

/// One level of a nest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Level {
    /// `count` iterations; consecutive iterations lie `stride` bytes apart.
    Loop {
        /// Number of iterations.
        count: u64,
        /// Distance between consecutive iterations in bytes. The distance may be 0 or negative.
        stride: i64,
    },
    /// One iteration per entry. Iteration `i` lies at `entries[i] * scale` bytes.
    Table {
        /// The entries.
        entries: Table,
        /// Number of bytes per unit of an entry.
        scale: i64,
    },
}

impl Level {
    /// Returns the number of iterations.
    #[inline]
    pub fn count(&self) -> u64 {
        match self {
            Self::Loop { count, .. } => *count,
            Self::Table { entries, .. } => entries.len() as u64,
        }
    }
}

/// The data that one iteration of the innermost level moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// One block of `bytes` bytes. Its first byte is at the base.
    Block {
        /// Length in bytes, never 0.
        bytes: u64,
    },
    /// Several short runs, in packed order. The offset of the first run is 0, because the base of the
    /// nest contains the displacement of this run. There are at most [`Leaf::WINDOW_RUNS`] runs, and
    /// no run reaches more than [`Leaf::WINDOW_SPAN`] bytes from offset 0. Runs may touch, overlap,
    /// and go backwards.
    Window {
        /// The runs.
        runs: Arc<[Run]>,
    },
}

impl Leaf {
    /// Maximum number of runs of a window.
    pub const WINDOW_RUNS: usize = 32;
    /// Maximum distance in bytes from the base of a window to the start or the end of a run.
    pub const WINDOW_SPAN: i64 = 4096;

    /// Returns the number of packed bytes of one leaf.
    #[inline]
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
    /// The levels, outermost first. There is at least one level, and there are at most
    /// [`Nest::MAX_DEPTH`].
    pub levels: Levels,
    /// The innermost body.
    pub leaf: Leaf,
}

/// The levels of a nest, outermost first. Up to 3 levels, as in most nests, need no heap allocation.
/// This matters because every commit makes nests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Levels(SmallVec<[Level; 3]>);

impl Levels {
    #[doc(hidden)]
    #[inline]
    pub fn push(&mut self, level: Level) {
        self.0.push(level);
    }

    #[doc(hidden)]
    #[inline]
    pub fn pop(&mut self) -> Option<Level> {
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
    /// Maximum depth of a nest that the engine passes to a compiler. If a program is deeper, the
    /// executor runs the outermost loops itself; this costs no measurable time.
    pub const MAX_DEPTH: usize = 8;

    /// Number of words of the largest parameter block.
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
/// are not part of the shape; they are parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Pack or unpack.
    pub direction: Direction,
    /// The kinds of the levels, outermost first.
    pub levels: Vec<LevelShape>,
    /// The innermost body.
    pub leaf: LeafShape,
}

/// The kind of a level, without its count, stride, scale and entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LevelShape {
    /// A loop with a constant stride.
    Loop,
    /// A table with `i32` entries.
    Table32,
    /// A table with `i64` entries.
    Table64,
}

impl LevelShape {
    /// Returns the kind of a level with this table of positions.
    #[inline]
    pub fn of_table(entries: &Table) -> Self {
        match entries {
            Table::Short(_) => {
                unreachable!("a table of positions is a `Table::Short`, which only holds lengths")
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

/// The properties of a leaf that determine the code of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LeafShape {
    /// A block of exactly `bytes` bytes. The length is between 1 and [`LeafShape::FIXED_MAX`].
    Fixed {
        /// Length in bytes.
        bytes: u32,
    },
    /// A block longer than [`LeafShape::FIXED_MAX`]. Its length is a parameter.
    Long,
    /// A window of several short runs; see [`Leaf::Window`].
    Window {
        /// The runs.
        runs: Arc<[Run]>,
    },
}

impl LeafShape {
    /// Maximum length, in bytes, of a block whose length is part of the shape.
    pub const FIXED_MAX: u64 = 64;
}

impl Shape {
    /// Returns the number of words in the parameter block.
    pub fn words(&self) -> usize {
        3 * self.levels.len() + usize::from(self.leaf == LeafShape::Long)
    }
}

impl fmt::Display for Shape {
    /// Prints the name of the shape, for example `pack loop loop b8` or `unpack loop w(0+1 4+4 8+8)`. In
    /// the name of a window, each run is printed as `OFFSET+LENGTH`.
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

/// The entry point of a kernel. The arguments are the addresses of the parameter block, of the base
/// of the memory that the nest describes, and of the packed bytes.
///
/// # Safety
///
/// - `params` points to the words that the shape requires, and they are valid for reads. The
///   documentation of this module lists the words.
/// - Table addresses in the block point to at least `count` entries of the shape's width.
/// - For every iteration, the leaf's runs, relative to `mem` plus the level offsets, are valid for
///   reads (pack) or writes (unpack). The kernel accesses nothing else at `mem`.
/// - `packed` is valid for writes (pack) or reads (unpack). Its length in bytes is the leaf's length
///   multiplied by the counts of all levels.
/// - The leaf's runs and the packed bytes do not overlap.
///
/// For the kernel of a [`TransferShape`], the conditions are different: `params` points to the
/// parameter block of that shape. Every run of its leaf is valid for reads relative to `mem`, the
/// base of the source, and for writes relative to `packed`, the base of the destination.
pub type Entry = unsafe extern "C" fn(params: *const u64, mem: *mut u8, packed: *mut u8);

/// A compiled kernel. Its code stays mapped as long as this value or a clone of it is alive.
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
    /// - `entry` implements the shape for which the compiler returns the kernel. The documentation of
    ///   this module defines what the kernel of a shape does. `entry` never unwinds.
    /// - The code of `entry` stays mapped and unchanged while `keep` is alive.
    pub unsafe fn new(entry: Entry, name: Arc<str>, keep: Arc<dyn Any + Send + Sync>) -> Self {
        Self { entry, name, _keep: keep }
    }

    /// Returns the entry point. The caller may call it only while this kernel is alive.
    #[inline]
    pub fn entry(&self) -> Entry {
        self.entry
    }

    /// Returns the kernel's name for reports.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("name", &self.name).finish_non_exhaustive()
    }
}
