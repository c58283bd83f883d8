//! Facts about a layout: block sizes, density, order, alignment.
//!
//! The input is the loop program of a plan (`plan/`). The runtime uses the facts when it chooses how to
//! send data. One forward walk over the program computes a `Summary` of every node from the summaries of
//! the nodes that it uses. So the cost depends on the size of the program, not on the number of blocks: a
//! type of 10^18 blocks may have a program of two nodes. Deciding whether data overlaps takes more work:
//! `overlap.rs` does it with the summaries, and `known.rs` stores the answers.

use crate::ir::{Edge, Op, Program, edges};
use crate::plan::Plan;

/// An answer to a question that may be too expensive to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// Yes, proven.
    Yes,
    /// No, proven.
    No,
    /// Not decided, because a proof would exceed the limits on runs and memory.
    Unknown,
}

/// Facts about one element of a layout. A run is what [`Iov`](crate::analysis::iov::Iov) lists. The
/// runs are those of the loop program after all passes of the commit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Facts {
    /// Number of bytes of data.
    pub bytes: u64,
    /// Number of bytes from the first byte of data to one past the last byte of data.
    pub span: u64,
    /// Distance in bytes from the start of one element to the start of the next.
    pub extent: i64,
    /// Number of runs.
    pub runs: u64,
    /// Length of the shortest run, in bytes; 0 if there is no data.
    pub shortest: u64,
    /// Length of the longest run, in bytes; 0 if there is no data.
    pub longest: u64,
    /// True if the data of one element lies in memory in packed order and without gaps. The element may
    /// nevertheless have several runs, each of which begins where the previous one ends.
    pub dense: bool,
    /// True if consecutive elements, however many, form one run of memory.
    pub contiguous: bool,
    /// True if, inside one element, every run begins at or after the end of the previous run:
    /// addresses only grow, and nothing overlaps.
    pub monotone: bool,
    /// True if `monotone` holds for any number of consecutive elements, not only inside one.
    pub monotone_elements: bool,
    /// The largest power of two, in bytes, that divides the extent and the offset of every run; 2^63
    /// if the extent and all offsets are 0, or if there is no data.
    pub alignment: u64,
    /// The largest power of two, in bytes, that divides the length of every run; 2^63 if there is no
    /// data.
    pub granularity: u64,
}

impl Facts {
    /// Computes the facts of `plan`. The time is proportional to the number of nodes of the program, plus
    /// the number of entries of its tables and lists.
    pub fn of(plan: &Plan) -> Self {
        let program = plan.program();
        let extent = plan.footprint().extent;
        let mut facts = Self {
            bytes: plan.element_bytes(),
            span: 0,
            extent,
            runs: 0,
            shortest: 0,
            longest: 0,
            dense: true,
            contiguous: true,
            monotone: true,
            monotone_elements: true,
            alignment: 1 << 63,
            granularity: 1 << 63,
        };
        let Some(body) = program.body else { return facts };
        let summaries = summarize(program);
        // One element is the body repeated `factor` times.
        let one = summaries[body.node.index()]
            .repeated(program.factor, program.stride)
            .moved(body.offset);
        let span = one.high - one.low;
        facts.span = u64::try_from(span).unwrap_or(u64::MAX);
        facts.monotone = one.monotone;
        facts.monotone_elements = one.monotone && i128::from(extent) >= span;
        facts.dense = one.monotone && span == i128::from(facts.bytes);
        facts.contiguous = program.is_one_run();
        facts.alignment = lowest(one.first as u64 | one.steps | extent as u64);
        let merged = Summary::block(facts.bytes);
        let runs = if facts.contiguous { merged } else { one };
        (facts.runs, facts.shortest, facts.longest) = (runs.runs, runs.shortest, runs.longest);
        facts.granularity = lowest(runs.lengths);
        facts
    }

    /// Returns the number of data bytes per byte of span. The result is 1 for data without gaps and
    /// for a type without data; it exceeds 1 only if data overlaps.
    pub fn density(&self) -> f64 {
        if self.span == 0 { 1.0 } else { self.bytes as f64 / self.span as f64 }
    }

    /// Returns the mean length of a run in bytes; 0 if there is no data.
    pub fn mean(&self) -> f64 {
        if self.runs == 0 { 0.0 } else { self.bytes as f64 / self.runs as f64 }
    }
}

impl Plan {
    /// Returns whether some byte of memory occurs more than once in `count` elements. MPI forbids
    /// such a type in a receive buffer (MPI-5.0 section 5.1.11). If it is unpacked anyway, it must be
    /// unpacked in typemap order.
    ///
    /// If loops, tables and lists are nested without interleaving, or interleaved like rows and columns,
    /// a proof gives the answer. Otherwise, the runs of the layout, or of parts of it, are sorted and
    /// compared. One call sorts at most 2^20 runs and 64 MiB of table entries. If that is not enough, the
    /// answer is [`Answer::Unknown`].
    pub fn overlaps(&self, count: u64) -> Answer {
        super::overlap::overlaps(self.program(), count)
    }
}

/// Returns the lowest set bit of `bits`; returns 2^63 if `bits` is 0.
fn lowest(bits: u64) -> u64 {
    1 << bits.trailing_zeros().min(63)
}

/// The summary of one node placed at displacement 0; all lengths are in bytes. Spans are computed in
/// 128 bits. In a correct program positions never wrap around, but a faulty program whose positions
/// do wrap around must not cause a panic here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Summary {
    pub(super) runs: u64,
    pub(super) low: i128,
    pub(crate) high: i128,
    pub(super) shortest: u64,
    pub(super) longest: u64,
    /// True if addresses only grow from run to run and no runs overlap. Then the first run begins at
    /// `low` and the last run ends at `high`.
    pub(super) monotone: bool,
    /// Offset of the first run.
    pub(super) first: i64,
    /// The bitwise OR of some of the differences between the offsets of two runs. Each of the other
    /// differences is a sum of multiples of these. So the lowest set bit of `steps` divides all
    /// differences.
    pub(super) steps: u64,
    /// The bitwise OR of the lengths of all runs.
    pub(super) lengths: u64,
}

impl Summary {
    pub(super) const EMPTY: Self = Self {
        runs: 0,
        low: i128::MAX,
        high: i128::MIN,
        shortest: u64::MAX,
        longest: 0,
        monotone: true,
        first: 0,
        steps: 0,
        lengths: 0,
    };

    pub(super) fn block(bytes: u64) -> Self {
        Self {
            runs: 1,
            low: 0,
            high: i128::from(bytes),
            shortest: bytes,
            longest: bytes,
            lengths: bytes,
            ..Self::EMPTY
        }
    }

    /// Returns true if this is the summary of a node that the program does not use.
    pub(crate) fn is_unused(&self) -> bool {
        self.runs == 0
    }

    /// Returns the number of bytes from the first byte of data to one past the last.
    pub(super) fn span(&self) -> i128 {
        self.high.saturating_sub(self.low)
    }

    /// Returns the summary of `count` copies of this node that lie `stride` bytes apart. `count` must
    /// not be 0.
    pub(super) fn repeated(self, count: u64, stride: i64) -> Self {
        if count == 1 {
            return self;
        }
        let last = i128::from(count - 1).saturating_mul(i128::from(stride));
        Self {
            runs: self.runs.saturating_mul(count),
            low: self.low.saturating_add(last.min(0)),
            high: self.high.saturating_add(last.max(0)),
            monotone: self.monotone && i128::from(stride) >= self.span(),
            steps: self.steps | stride as u64,
            ..self
        }
    }

    pub(super) fn moved(self, offset: i64) -> Self {
        Self {
            low: self.low.saturating_add(i128::from(offset)),
            high: self.high.saturating_add(i128::from(offset)),
            first: self.first.wrapping_add(offset),
            ..self
        }
    }

    /// Returns the summary of the runs of `self` followed by the runs of `next`.
    pub(super) fn then(self, next: Self) -> Self {
        if self.runs == 0 {
            return next;
        }
        Self {
            runs: self.runs.saturating_add(next.runs),
            low: self.low.min(next.low),
            high: self.high.max(next.high),
            shortest: self.shortest.min(next.shortest),
            longest: self.longest.max(next.longest),
            monotone: self.monotone && next.monotone && self.high <= next.low,
            first: self.first,
            steps: self.steps | next.steps | next.first.wrapping_sub(self.first) as u64,
            lengths: self.lengths | next.lengths,
        }
    }
}

/// Returns one summary for each node. The summary of a node that the program does not use is empty.
pub(crate) fn summarize(program: &Program) -> Vec<Summary> {
    let used = in_use(program);
    let mut all: Vec<Summary> = Vec::with_capacity(used.len());
    for (node, used) in program.nodes().iter().zip(used) {
        let of = |edge: &Edge| all[edge.node.index()].moved(edge.offset);
        let summary = match &node.op {
            _ if !used => Summary::EMPTY,
            Op::Block => Summary::block(node.bytes),
            Op::Loop { count, stride, body } => of(body).repeated(*count, *stride),
            Op::Table { entries, scale, body } => {
                let body = of(body);
                entries.iter().fold(Summary::EMPTY, |sum, entry| {
                    sum.then(body.moved(entry.wrapping_mul(*scale)))
                })
            }
            Op::Ragged { list, scale, stride, body: edge } => {
                let (body, dense) = (of(edge), program.is_dense(*stride, *edge));
                let each = program.node(edge.node).bytes;
                let blocks = list.lengths.iter().zip(list.entries.iter());
                blocks.filter(|(length, _)| *length > 0).fold(
                    Summary::EMPTY,
                    |sum, (length, at)| {
                        let copies = length as u64;
                        let block = if dense {
                            Summary::block(copies * each).moved(edge.offset)
                        } else {
                            body.repeated(copies, *stride)
                        };
                        sum.then(block.moved(at.wrapping_mul(*scale)))
                    },
                )
            }
            Op::Seq { parts } => {
                parts.iter().fold(Summary::EMPTY, |sum, part| sum.then(of(&part.edge)))
            }
        };
        all.push(summary);
    }
    all
}

/// Returns, for each node, whether the program uses it, that is, whether it can be reached from the
/// body. Passes leave unused nodes behind.
fn in_use(program: &Program) -> Vec<bool> {
    let mut used = vec![false; program.nodes().len()];
    if let Some(body) = program.body {
        used[body.node.index()] = true;
    }
    // A node has a larger id than the nodes that it uses. So the backward loop reaches a node after all
    // nodes that use it.
    for id in (0..used.len()).rev() {
        if used[id] {
            for edge in edges(&program.nodes()[id].op) {
                used[edge.node.index()] = true;
            }
        }
    }
    used
}
