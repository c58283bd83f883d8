//! The kernel of a fused copy: two layouts walked by one nest.
//!
//! Beside `../kernel.rs`, whose words apply: here both sides of a level are described memory.
//! `../pair/nest.rs` finds the nest that two plans have in common, `../pair/compiled.rs` calls the
//! kernel. A level adds a displacement to each side:
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
//! word 5*l + 3 destination: as word 5*l + 1
//! word 5*l + 4              as word 5*l + 2
//! word 5*depth block length in bytes                           (TransferLeaf::Long only)
//! ```
//!
//! The entry point is an [`Entry`](super::Entry) that takes the source's base for `mem` and the
//! destination's for `packed`. Stores of different runs happen in order, so that in a destination
//! that overlaps itself the later byte wins, as an unpack would leave it.

use super::LevelShape;
use std::fmt;
use std::sync::Arc;

/// Bytes that are consecutive on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TransferRun {
    /// Displacement in the source, in bytes.
    pub from: i64,
    /// Displacement in the destination, in bytes.
    pub to: i64,
    /// Length in bytes, never 0.
    pub bytes: u64,
}

/// What one iteration of the innermost level copies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TransferLeaf {
    /// Short runs in order: at most [`TransferShape::RUNS`], each of at most [`TransferShape::RUN_BYTES`]
    /// bytes, displacements within [`TransferShape::SPAN`] bytes of 0.
    Runs {
        /// The runs.
        runs: Arc<[TransferRun]>,
    },
    /// A block of more than 64 bytes at the base of both sides; its length is a parameter.
    Long,
}

/// What the code of a pair's kernel depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TransferShape {
    /// Source and destination of each level, outermost first; 1 to [`TransferShape::MAX_DEPTH`].
    pub levels: Vec<[LevelShape; 2]>,
    /// The innermost body.
    pub leaf: TransferLeaf,
}

impl TransferShape {
    /// Deepest nest that is offered to a compiler; further levels stay in the executor.
    pub const MAX_DEPTH: usize = 5;
    /// Words of the largest parameter block.
    pub const WORDS: usize = 5 * Self::MAX_DEPTH + 1;
    /// Most runs of a leaf.
    pub const RUNS: usize = 16;
    /// Longest run of a leaf, in bytes.
    pub const RUN_BYTES: u64 = 64;
    /// Largest distance of a run, start or end, from the base of its side, in bytes.
    pub const SPAN: i64 = 1 << 16;

    /// Number of words in the parameter block.
    pub fn words(&self) -> usize {
        5 * self.levels.len() + usize::from(self.leaf == TransferLeaf::Long)
    }
}

impl fmt::Display for TransferShape {
    /// For example `copy loop-loop loop-table32 b8` or `copy loop-loop w(0-0+16 16-32+8)`.
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
