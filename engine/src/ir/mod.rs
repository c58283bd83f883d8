//! The loop program that a datatype is lowered to: runs in packed order, held compactly.
//!
//! `lower.rs` makes a program from the tree. The passes in `passes/` rewrite it, `verify.rs` checks it
//! after each pass, `text.rs` prints it, and `plan/` cuts it into nests.
//!
//! A program is an arena of nodes. A node's operands have smaller ids, so one forward walk sees
//! children before parents and nothing recurses. A node has no position of its own: an [`Edge`] adds
//! the displacement of a use, so one node serves many places. A regular type of any size is a few
//! nodes; index tables are shared with the tree.
//!
//! Sizes in packed bytes fit `i64` (the tree checked that). Displacements are added with wrapping
//! arithmetic: a partial sum may exceed 64 bits although every address fits.

pub(crate) mod lower;
pub mod text;
pub mod typed;
pub mod verify;
pub(crate) mod walk;

use crate::table::Table;
use std::sync::Arc;

/// Index of a node in its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A use of a node, at `offset` bytes from the position of its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Displacement in bytes.
    pub offset: i64,
    /// The node used.
    pub node: NodeId,
}

/// One node: its operation and the number of packed bytes that it produces (never 0).
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Packed bytes.
    pub bytes: u64,
    /// The operation.
    pub op: Op,
}

/// An operation of the loop program.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// `bytes` consecutive bytes.
    Block,
    /// `body` at `i * stride` for `i` in `0..count`.
    Loop {
        /// Number of iterations.
        count: u64,
        /// Bytes from one iteration to the next.
        stride: i64,
        /// The node that is repeated.
        body: Edge,
    },
    /// `body` at `entries[i] * scale` for every `i`.
    Table {
        /// The positions, in units of `scale`.
        entries: Table,
        /// Bytes per unit of a position.
        scale: i64,
        /// The node that is repeated.
        body: Edge,
    },
    /// For every `i`, `lengths[i]` copies of `body`, `stride` bytes apart, the first at
    /// `entries[i] * scale`.
    Ragged {
        /// The positions and lengths, one of each per entry.
        list: Arc<RaggedList>,
        /// Bytes per unit of a position.
        scale: i64,
        /// Bytes from one copy to the next.
        stride: i64,
        /// The node that is repeated.
        body: Edge,
    },
    /// The parts, one after another.
    Seq {
        /// The parts, each with its end in packed bytes.
        parts: Box<[Part]>,
    },
}

impl Op {
    /// Returns true for [`Op::Block`]. Unlike a comparison, this test takes one instruction.
    #[inline]
    pub(crate) fn is_block(&self) -> bool {
        matches!(self, Self::Block)
    }
}

/// A part of a [`Op::Seq`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// The node of the part, and its displacement.
    pub edge: Edge,
    /// Packed bytes of the sequence up to and including this part.
    pub end: u64,
}

/// The index list of a [`Op::Ragged`], with sampled prefix sums. They find any copy without an
/// expansion of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct RaggedList {
    /// Copies per entry.
    pub lengths: Table,
    /// Position per entry.
    pub entries: Table,
    /// `samples[k]`: number of copies before entry `k * SAMPLE`.
    samples: Box<[u64]>,
    /// Every `STEP`-th sample. A search reads these samples first, because the first steps of a
    /// search miss the cache most often. Empty if one step holds all samples.
    tops: Box<[u64]>,
}

impl RaggedList {
    /// Entries per sample of the prefix sums. The samples take 1/16 of the memory of a narrow table,
    /// and a seek ends with at most this many steps.
    const SAMPLE: usize = 32;
    /// Samples per top.
    const STEP: usize = 64;

    /// Computes the samples. Lengths must be non-negative and their sum must fit 63 bits.
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
            // Each length of a sample is one byte, and their sum fits 16 bits. So adding them up
            // takes a few vector instructions.
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

    /// Returns true if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the entry that holds copy number `copy`, and the number of that copy within the entry.
    /// `copy` must be less than the total number of copies.
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

    /// Returns the number of copies before entry `entry`, which may be one past the last.
    pub(crate) fn before(&self, entry: usize) -> u64 {
        let Some(sample) = self.samples.len().checked_sub(1) else { return 0 };
        let sample = sample.min(entry / Self::SAMPLE);
        let rest = sample * Self::SAMPLE..entry;
        self.samples[sample] + rest.map(|entry| self.lengths.get(entry) as u64).sum::<u64>()
    }

    /// Returns how many of `lengths` come before copy `rest`, and the copy's number within the next
    /// entry.
    fn walk<T>(lengths: &[T], mut rest: u64, length: impl Fn(&T) -> u64) -> (usize, u64) {
        for (steps, entry) in lengths.iter().enumerate() {
            let length = length(entry);
            if rest < length {
                return (steps, rest);
            }
            rest -= length;
        }
        // This point is not reached if the copy is below the total.
        (lengths.len(), rest)
    }
}

/// A whole program: `factor * count` iterations of `body`, `stride` bytes apart, for `count`
/// elements.
///
/// The loop over elements is part of the program, so that passes can merge it with the loops inside.
/// `factor` iterations make one element (1 unless `passes/count.rs` merged a loop).
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    nodes: Vec<Node>,
    /// Iterations per element.
    pub factor: u64,
    /// Bytes from one iteration to the next.
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

    /// Returns all nodes, operands before users. After passes some nodes may be unused.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(crate) fn nodes_mut(&mut self) -> &mut Vec<Node> {
        &mut self.nodes
    }

    pub(crate) fn push(&mut self, bytes: u64, op: Op) -> NodeId {
        self.nodes.push(Node { bytes, op });
        // `lower.rs` refuses trees that need more nodes than there are ids.
        NodeId((self.nodes.len() - 1) as u32)
    }

    /// Returns true if copies of `body` that are `stride` apart form one run. Then a ragged list over
    /// `body` is a list of runs.
    #[inline]
    pub(crate) fn is_dense(&self, stride: i64, body: Edge) -> bool {
        let node = self.node(body.node);
        node.op.is_block() && i128::from(stride) == i128::from(node.bytes)
    }

    /// Returns true if any number of elements is one run.
    #[inline]
    pub(crate) fn is_one_run(&self) -> bool {
        self.body.is_some_and(|body| self.is_dense(self.stride, body))
    }

    /// Returns the packed bytes of one element.
    pub fn element_bytes(&self) -> u64 {
        self.body.map_or(0, |body| self.factor * self.node(body.node).bytes)
    }
}

/// A run of memory: `bytes` bytes at `offset` bytes from some base.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// Displacement in bytes.
    pub offset: i64,
    /// Length in bytes, never 0.
    pub bytes: u64,
}

/// Maximum number of runs in a window. A window is a sequence of blocks that is the leaf of a nest.
pub(crate) const WINDOW_RUNS: usize = 32;

/// Maximum distance in bytes from a window's base to the start or end of a run in the window.
pub(crate) const WINDOW_SPAN: i64 = 4096;

/// Returns true for a sequence that is a window: few short blocks close together, the first at 0.
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

/// Returns the edges of an operation.
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
