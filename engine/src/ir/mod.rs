//! The loop program to which a datatype is lowered. A program is a compact description of the type's
//! runs of memory in packed order.
//!
//! `lower.rs` makes a program from the tree of constructor calls (`datatype/`). The passes in `passes/`
//! rewrite it, `verify.rs` checks the result (in debug builds also the result of each pass), `walk.rs` walks
//! through it, `text.rs` prints it, and `plan/` divides it into nests (parts that one kernel can execute).
//!
//! A program is an arena of nodes. The operands of a node have smaller ids than the node. So one loop
//! over the ids visits operands before their users, and no function needs recursion. A node has no
//! position of its own. An [`Edge`] holds the displacement of one use of a node, so that the same node
//! can be used at many places. A regular type needs only a few nodes, whatever its size. Programs share
//! their index tables with the tree.
//!
//! Packed sizes fit in `i64`, because the tree has checked them. Displacements are added with wrapping
//! arithmetic, because a partial sum may not fit in an `i64` even if every final displacement fits.

pub(crate) mod lower;
pub mod text;
pub mod typed;
pub mod verify;
pub(crate) mod walk;

pub use typepack_leaf::kernel::Run;

use std::sync::Arc;
use typepack_leaf::Table;
use typepack_leaf::kernel::Leaf;

/// Index of a node in its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A use of a node. The used node lies at `offset` bytes from the position of the node that uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Displacement in bytes.
    pub offset: i64,
    /// The node that is used.
    pub node: NodeId,
}

/// One node: its operation, and the number of packed bytes that the operation produces (never 0).
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Number of packed bytes.
    pub bytes: u64,
    /// The operation of the node.
    pub op: Op,
}

/// An operation of the loop program.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// A run of consecutive bytes. [`Node::bytes`] is its length.
    Block,
    /// `body`, repeated at displacement `i * stride` for each `i` in `0..count`.
    Loop {
        /// Number of iterations.
        count: u64,
        /// Distance from one iteration to the next, in bytes.
        stride: i64,
        /// The node that is repeated.
        body: Edge,
    },
    /// `body`, repeated at displacement `entries[i] * scale` for each `i`.
    Table {
        /// The positions, in units of `scale` bytes.
        entries: Table,
        /// Number of bytes per unit of a position.
        scale: i64,
        /// The node that is repeated.
        body: Edge,
    },
    /// For every `i`, `lengths[i]` copies of `body`, `stride` bytes apart. The first of these copies is
    /// at displacement `entries[i] * scale`.
    Ragged {
        /// The positions and the lengths; each entry has one position and one length.
        list: Arc<RaggedList>,
        /// Number of bytes per unit of a position.
        scale: i64,
        /// Distance from one copy to the next, in bytes.
        stride: i64,
        /// The node that is repeated.
        body: Edge,
    },
    /// Parts that are packed one after another.
    Seq {
        /// The parts; each also stores the packed size up to its end.
        parts: Box<[Part]>,
    },
}

impl Op {
    /// Returns true for [`Op::Block`]. This function compiles to a single instruction, whereas `==`
    /// would compare whole operations.
    #[inline]
    pub(crate) fn is_block(&self) -> bool {
        matches!(self, Self::Block)
    }
}

/// A part of an [`Op::Seq`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// The node of the part, and the displacement of the part.
    pub edge: Edge,
    /// Number of packed bytes of the sequence up to and including this part.
    pub end: u64,
}

/// The index list of an [`Op::Ragged`]. It stores a prefix sum of the lengths for every 32nd entry. A
/// search for a copy begins at the last stored sum that is not above the number of the copy.
#[derive(Clone, Debug, PartialEq)]
pub struct RaggedList {
    /// Number of copies of each entry.
    pub lengths: Table,
    /// Position of each entry, in units of `scale` bytes (a field of the [`Op::Ragged`]).
    pub entries: Table,
    /// `samples[k]` is the number of copies before entry `k * SAMPLE`.
    samples: Box<[u64]>,
    /// Every `STEP`-th sample. A search looks at these samples first. They stay in the cache, whereas
    /// the first steps of a search through all samples would usually be cache misses. Empty if there
    /// are at most `STEP` samples.
    tops: Box<[u64]>,
}

impl RaggedList {
    /// Number of entries per sample. With this value, the samples take 1/16 of the memory of a table
    /// of 32-bit lengths, and a search ends with at most 32 steps through the entries.
    const SAMPLE: usize = 32;
    /// Number of samples per entry of `tops`.
    const STEP: usize = 64;

    /// Computes the samples. No length may be negative, and the sum of the lengths must fit in an
    /// `i64`.
    pub(crate) fn new(lengths: Table, entries: Table) -> Self {
        fn sample<T>(all: &[T], sum: impl Fn(&[T]) -> u64) -> Vec<u64> {
            let mut next = 0;
            let mut samples = Vec::with_capacity(all.len().div_ceil(RaggedList::SAMPLE));
            for part in all.chunks(RaggedList::SAMPLE) {
                samples.push(next);
                next += sum(part);
            }
            samples
        }
        let samples = match &lengths {
            // Each length is one byte, so the sum of the 32 lengths of a sample fits in 16 bits, and
            // the compiler can add them with a few vector instructions.
            Table::Short(all) => {
                sample(all, |part| part.iter().map(|&length| u16::from(length)).sum::<u16>().into())
            }
            Table::Narrow(all) => {
                sample(all, |part| part.iter().map(|&length| length as u64).sum())
            }
            Table::Wide(all) => sample(all, |part| part.iter().map(|&length| length as u64).sum()),
        };
        let tops = match samples.len() {
            0..=Self::STEP => Box::default(),
            _ => samples.iter().step_by(Self::STEP).copied().collect(),
        };
        Self { lengths, entries, samples: samples.into(), tops }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Returns true if the list has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the entry that contains copy number `copy` of the whole list, and the number of that
    /// copy within the entry. `copy` must be less than the total number of copies.
    pub fn seek(&self, copy: u64) -> (usize, u64) {
        let above = self.tops.partition_point(|&before| before <= copy);
        let top = above.saturating_sub(1) * Self::STEP;
        let under = &self.samples[top..(top + Self::STEP).min(self.samples.len())];
        let sample = top + under.partition_point(|&before| before <= copy) - 1;
        let entry = sample * Self::SAMPLE;
        let rest = copy - self.samples[sample];
        let (steps, rest) = match &self.lengths {
            Table::Short(all) => Self::walk(&all[entry..], rest, |&length| length.into()),
            Table::Narrow(all) => Self::walk(&all[entry..], rest, |&length| length as u64),
            Table::Wide(all) => Self::walk(&all[entry..], rest, |&length| length as u64),
        };
        (entry + steps, rest)
    }

    /// Returns the number of copies before entry `entry`. `entry` may be one past the last entry.
    pub(crate) fn before(&self, entry: usize) -> u64 {
        let Some(sample) = self.samples.len().checked_sub(1) else { return 0 };
        let sample = sample.min(entry / Self::SAMPLE);
        let rest = sample * Self::SAMPLE..entry;
        self.samples[sample] + rest.map(|entry| self.lengths.get(entry) as u64).sum::<u64>()
    }

    /// Returns the number of leading entries of `lengths` that end before copy `rest`, and the number
    /// of that copy within the entry after them.
    fn walk<T>(lengths: &[T], mut rest: u64, length: impl Fn(&T) -> u64) -> (usize, u64) {
        for (steps, entry) in lengths.iter().enumerate() {
            let length = length(entry);
            if rest < length {
                return (steps, rest);
            }
            rest -= length;
        }
        // The loop always returns, because the caller passes a copy below the total.
        (lengths.len(), rest)
    }
}

/// A whole program. For `count` elements, it executes `factor * count` iterations of `body`, `stride`
/// bytes apart.
///
/// The loop over the elements is part of the program, so that passes can merge it with the loops
/// inside an element. `factor` iterations make up one element. `factor` is 1 unless a pass has merged
/// loops (`passes/count.rs`).
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    nodes: Vec<Node>,
    /// Number of iterations per element.
    pub factor: u64,
    /// Distance from one iteration to the next, in bytes.
    pub stride: i64,
    /// The node that is repeated; `None` for a type without data.
    pub body: Option<Edge>,
}

impl Program {
    pub(crate) fn new(stride: i64) -> Self {
        Self { nodes: Vec::with_capacity(4), factor: 1, stride, body: None }
    }

    /// Returns the node `id`.
    #[inline]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// Returns all nodes. Operands come before their users. The passes may leave nodes that nothing
    /// uses.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(crate) fn nodes_mut(&mut self) -> &mut Vec<Node> {
        &mut self.nodes
    }

    pub(crate) fn push(&mut self, bytes: u64, op: Op) -> NodeId {
        self.nodes.push(Node { bytes, op });
        // The index fits in 32 bits, because `lower.rs` refuses a tree that needs more than `MAX_NODES`
        // nodes.
        NodeId((self.nodes.len() - 1) as u32)
    }

    /// Returns true if `body` is a block and its copies at distances of `stride` bytes form one run of
    /// memory. In that case, each entry of a ragged list with this `body` and this `stride` is one run.
    #[inline]
    pub(crate) fn is_dense(&self, stride: i64, body: Edge) -> bool {
        let node = self.node(body.node);
        node.op.is_block() && i128::from(stride) == i128::from(node.bytes)
    }

    /// Returns true if consecutive elements, however many, form one run of memory.
    #[inline]
    pub(crate) fn is_one_run(&self) -> bool {
        self.body.is_some_and(|body| self.is_dense(self.stride, body))
    }

    /// Returns the number of packed bytes of one element.
    pub fn element_bytes(&self) -> u64 {
        self.body.map_or(0, |body| self.factor * self.node(body.node).bytes)
    }
}

/// Maximum number of runs in a window. A window is a sequence of blocks that lie close together, so that
/// a kernel can move all of them in one iteration of its innermost loop.
pub(crate) const WINDOW_RUNS: usize = Leaf::WINDOW_RUNS;

/// Maximum distance in bytes from the start of a window's first run to the start or end of any run in the
/// window.
pub(crate) const WINDOW_SPAN: i64 = Leaf::WINDOW_SPAN;

/// Returns true if `op` is a window: a sequence of at most `WINDOW_RUNS` blocks. The first block is at
/// displacement 0, and all blocks lie within `WINDOW_SPAN` bytes of this position.
pub(crate) fn is_window(nodes: &[Node], op: &Op) -> bool {
    let Op::Seq { parts } = op else { return false };
    let span = -WINDOW_SPAN..=WINDOW_SPAN;
    parts.len() <= WINDOW_RUNS
        && parts[0].edge.offset == 0
        && parts.iter().all(|part| {
            let node = &nodes[part.edge.node.index()];
            let end = i128::from(part.edge.offset) + i128::from(node.bytes);
            node.op.is_block() && span.contains(&part.edge.offset) && end <= i128::from(WINDOW_SPAN)
        })
}

/// Returns the edges from an operation to its operands.
pub(crate) fn edges(op: &Op) -> impl Iterator<Item = Edge> + '_ {
    let (one, many): (Option<Edge>, &[Part]) = match op {
        Op::Block => (None, &[]),
        Op::Loop { body, .. } | Op::Table { body, .. } | Op::Ragged { body, .. } => {
            (Some(*body), &[])
        }
        Op::Seq { parts } => (None, parts),
    };
    one.into_iter().chain(many.iter().map(|part| part.edge))
}
