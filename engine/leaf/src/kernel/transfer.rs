//! Describes the kernel of a fused copy, in which one nest walks two layouts.
//!
//! In a fused copy, a datatype describes the source, and another datatype describes the
//! destination. The documentation of `mod.rs` applies, apart from the differences below.
//! The engine's `transfer/` finds the nest that two plans have in common and calls the kernel. Each level
//! adds one displacement to the source address and one to the destination address:
//!
//! ```text
//! for i0 in 0..count0 { for i1 in 0..count1 { …
//!     copy the leaf's runs from source + from0(i0) + from1(i1) + … to destination + to0(i0) + …
//! ```
//!
//! # The parameter block
//!
//! ```text
//! word 5*l     count of level l
//! word 5*l + 1 source:      Loop: stride in bytes (signed)     Table: address of the first entry
//! word 5*l + 2              Loop: 0                            Table: scale in bytes (signed)
//! word 5*l + 3 destination: Loop: stride in bytes (signed)     Table: address of the first entry
//! word 5*l + 4              Loop: 0                            Table: scale in bytes (signed)
//! word 5*depth block length in bytes                           (TransferLeaf::Long only)
//! ```
//!
//! The entry point is an [`Entry`](super::Entry) that takes the base of the source for `mem` and the
//! base of the destination for `packed`. The kernel stores the runs in order. So, if runs overlap in
//! the destination, the run stored last determines the result, as after an unpack.

use super::LevelShape;
use std::fmt;
use std::sync::Arc;

/// A run of bytes that is consecutive in the source and in the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TransferRun {
    /// Displacement in the source, in bytes.
    pub from: i64,
    /// Displacement in the destination, in bytes.
    pub to: i64,
    /// Length in bytes, never 0.
    pub bytes: u64,
}

/// The bytes that one iteration of the innermost level copies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TransferLeaf {
    /// Short runs, in order. There are at most [`TransferShape::RUNS`] runs of at most
    /// [`TransferShape::RUN_BYTES`] bytes each, and no run reaches more than [`TransferShape::SPAN`]
    /// bytes from displacement 0.
    Runs {
        /// The runs.
        runs: Arc<[TransferRun]>,
    },
    /// A block of more than 64 bytes, at the base of the source and at the base of the destination.
    /// Its length is a parameter.
    Long,
}

/// The properties of a fused copy that determine the code of its kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TransferShape {
    /// The kind of each level, in the source and in the destination, outermost level first. There is
    /// at least one level, and there are at most [`TransferShape::MAX_DEPTH`].
    pub levels: Vec<[LevelShape; 2]>,
    /// The innermost body.
    pub leaf: TransferLeaf,
}

impl TransferShape {
    /// Maximum depth of a nest that the engine passes to a compiler. If a nest is deeper, the
    /// executor runs the outermost levels itself.
    pub const MAX_DEPTH: usize = 5;
    /// Number of words of the largest parameter block.
    pub const WORDS: usize = 5 * Self::MAX_DEPTH + 1;
    /// Maximum number of runs of a leaf.
    pub const RUNS: usize = 16;
    /// Maximum length of a run of a leaf, in bytes.
    pub const RUN_BYTES: u64 = 64;
    /// Maximum distance in bytes from the base of the source (or destination) to the start or the end
    /// of a run.
    pub const SPAN: i64 = 1 << 16;

    /// Returns the number of words in the parameter block.
    pub fn words(&self) -> usize {
        5 * self.levels.len() + usize::from(self.leaf == TransferLeaf::Long)
    }
}

impl fmt::Display for TransferShape {
    /// Prints the name of the shape, for example `copy loop-loop loop-table32 b8` or `copy loop-loop
    /// w(0-0+16 16-32+8)`. Each run in `w(…)` is printed as `FROM-TO+LENGTH`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("copy")?;
        for [from, to] in &self.levels {
            write!(f, " {}-{}", from.name(), to.name())?;
        }
        match &self.leaf {
            TransferLeaf::Long => f.write_str(" long"),
            TransferLeaf::Runs { runs } => match **runs {
                [TransferRun { from: 0, to: 0, bytes }] => write!(f, " b{bytes}"),
                _ => {
                    f.write_str(" w(")?;
                    for (i, run) in runs.iter().enumerate() {
                        let sep = if i == 0 { "" } else { " " };
                        write!(f, "{sep}{}-{}+{}", run.from, run.to, run.bytes)?;
                    }
                    f.write_str(")")
                }
            },
        }
    }
}
