//! A layout as a list of runs of memory, from any run on, without ever making the list: what
//! `readv`, `process_vm_readv` and file views ask for (like MPICH's `MPIX_Type_iov_len` and
//! `MPIX_Type_iov`).
//!
//! After `plan/`, beside `exec/`, and over the same program. [`Iov`] counts the runs of every
//! node once; any run, and any packed byte, is then found by division, and inside sequences and
//! lists by a binary search over sampled sums, O(depth + log list). [`Runs`] walks on from there in
//! amortised constant time. `analysis/` walks with it too.
//!
//! **What a run is.** The program's runs: a block, and an entry of a list of blocks that continue
//! each other. They are as long as the passes could make them inside the program, and are *not*
//! merged across iterations of a loop or across elements, even where the last run of one touches
//! the first of the next; this keeps the number of runs a product and every run addressable (MPICH
//! likewise gives its representation's segments). One exception: elements that continue each
//! other without a gap are one run, whatever their count.

use crate::error::{Error, ErrorKind, Result};
use crate::ir::{Edge, NodeId, Op, Program, RaggedList};
use crate::kernel::Run;
use crate::plan::{Plan, is_dense};

/// The runs of a plan, counted. Made once per plan that is asked, and kept by whoever asks.
///
/// ```
/// use typepack_engine::{Datatype, Named, iov::Iov};
///
/// let column = Datatype::vector(100, 2, 8, &Datatype::named(Named::DOUBLE))?;
/// let iov = Iov::new(&column.commit()?);
/// assert_eq!(iov.len(1)?, 100);
/// assert_eq!(iov.below(1, 1000)?, (62, 992));
/// let runs: Vec<_> = iov.runs(1, 97)?.map(|run| (run.offset, run.bytes)).collect();
/// assert_eq!(runs, [(97 * 64, 16), (98 * 64, 16), (99 * 64, 16)]);
/// # Ok::<(), typepack_engine::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Iov {
    plan: Plan,
    counts: Box<[u64]>,
    /// By node; see [`Ranks`].
    ranks: Box<[Ranks]>,
}

/// How many runs lie before part `i` of a sequence, or before entry `i` of a list of runs.
#[derive(Clone, Debug)]
enum Ranks {
    /// `i` times this.
    Uniform(u64),
    /// Entry `k` for part or entry `k * SAMPLE`; the rest is counted.
    Sampled(Box<[u64]>),
}

/// Parts or entries per sample.
const SAMPLE: usize = 32;

impl Ranks {
    fn new(counts: impl ExactSizeIterator<Item = u64> + Clone) -> Self {
        let mut all = counts.clone();
        let first = all.next().unwrap_or(0);
        if all.all(|count| count == first) {
            return Self::Uniform(first);
        }
        let mut samples = Vec::with_capacity(counts.len().div_ceil(SAMPLE));
        let mut before = 0;
        for (i, count) in counts.enumerate() {
            if i % SAMPLE == 0 {
                samples.push(before);
            }
            before += count;
        }
        Self::Sampled(samples.into())
    }

    /// Runs before `index`; `count(i)` are those of `i`.
    fn before(&self, index: usize, count: impl Fn(usize) -> u64) -> u64 {
        match self {
            Self::Uniform(each) => index as u64 * each,
            Self::Sampled(samples) => {
                // `index` may be the end, which a full last sample leaves without one of its own.
                let sample = (index / SAMPLE).min(samples.len() - 1);
                samples[sample] + (sample * SAMPLE..index).map(count).sum::<u64>()
            }
        }
    }

    /// The part or entry that holds run `rank` (below the total), and the runs before that run in
    /// it.
    fn seek(&self, rank: u64, count: impl Fn(usize) -> u64) -> (usize, u64) {
        match self {
            Self::Uniform(each) => ((rank / each) as usize, rank % each),
            Self::Sampled(samples) => {
                let sample = samples.partition_point(|&before| before <= rank) - 1;
                let (mut index, mut rest) = (sample * SAMPLE, rank - samples[sample]);
                while rest >= count(index) {
                    rest -= count(index);
                    index += 1;
                }
                (index, rest)
            }
        }
    }
}

/// Whether entry `entry` of a list of runs is one: 1, or 0 without copies.
fn entry_runs(list: &RaggedList, entry: usize) -> u64 {
    u64::from(list.lengths.get(entry) > 0)
}

impl Iov {
    /// Counts the runs of `plan`. O(program nodes and their lists); tables are not read, and lists
    /// only for their lengths.
    pub fn new(plan: &Plan) -> Self {
        let program = plan.program();
        let nodes = program.nodes().len();
        let (mut counts, mut ranks) = (Vec::with_capacity(nodes), Vec::with_capacity(nodes));
        for node in program.nodes() {
            let of = |edge: &Edge, counts: &[u64]| counts[edge.node.index()];
            let mut rank = Ranks::Uniform(1);
            // No overflow: every run has a byte, and bytes fit.
            let count = match &node.op {
                Op::Block => 1,
                Op::Loop { count, body, .. } => count * of(body, &counts),
                Op::Table { entries, body, .. } => entries.len() as u64 * of(body, &counts),
                Op::Ragged { list, stride, body, .. } if is_dense(program, *stride, *body) => {
                    rank = Ranks::new((0..list.len()).map(|entry| entry_runs(list, entry)));
                    rank.before(list.len(), |entry| entry_runs(list, entry))
                }
                Op::Ragged { body, .. } => {
                    // Bytes are copies times body.
                    node.bytes / program.node(body.node).bytes * of(body, &counts)
                }
                Op::Seq { parts } => {
                    rank = Ranks::new(parts.iter().map(|part| of(&part.edge, &counts)));
                    rank.before(parts.len(), |part| of(&parts[part].edge, &counts))
                }
            };
            counts.push(count);
            ranks.push(rank);
        }
        Self { plan: plan.clone(), counts: counts.into(), ranks: ranks.into() }
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Number of runs of `count` elements.
    ///
    /// # Errors
    ///
    /// Their bytes do not fit `i64`.
    #[doc(alias = "MPIX_Type_iov_len")]
    pub fn len(&self, count: u64) -> Result<u64> {
        let bytes = self.plan.packed_bytes(count)?;
        let program = self.plan.program();
        Ok(match program.body {
            Some(_) if is_one_run(program) => u64::from(bytes > 0),
            Some(body) => count * program.factor * self.counts[body.node.index()],
            None => 0,
        })
    }

    /// How many runs of `count` elements, counted from the first, have together at most `limit`
    /// bytes, and how many bytes those have.
    ///
    /// # Errors
    ///
    /// The bytes of `count` elements do not fit `i64`.
    #[doc(alias = "MPIX_Type_iov_len")]
    pub fn below(&self, count: u64, limit: u64) -> Result<(u64, u64)> {
        let (all, bytes) = (self.len(count)?, self.plan.packed_bytes(count)?);
        if limit >= bytes {
            return Ok((all, bytes));
        }
        let program = self.plan.program();
        let (Some(body), false) = (program.body, is_one_run(program)) else {
            return Ok((0, 0));
        };
        let mut at = body.node;
        let each = program.node(at).bytes;
        let (mut runs, mut rest) = (limit / each * self.counts[at.index()], limit % each);
        // What is left of the limit always ends inside node `at`.
        while rest > 0 {
            let node = program.node(at);
            let (part, passed) = match &node.op {
                Op::Block => break,
                Op::Ragged { list, stride, body, .. } if is_dense(program, *stride, *body) => {
                    let each = program.node(body.node).bytes;
                    let (entry, within) = list.seek(rest / each);
                    rest = within * each + rest % each;
                    let ranks = &self.ranks[at.index()];
                    runs += ranks.before(entry, |entry| entry_runs(list, entry));
                    break;
                }
                Op::Loop { body, .. } | Op::Table { body, .. } | Op::Ragged { body, .. } => {
                    let each = program.node(body.node).bytes;
                    let copies = rest / each;
                    rest %= each;
                    (*body, copies * self.counts[body.node.index()])
                }
                Op::Seq { parts } => {
                    let part = parts.partition_point(|part| part.end <= rest);
                    rest -= if part == 0 { 0 } else { parts[part - 1].end };
                    let ranks = &self.ranks[at.index()];
                    let passed = ranks.before(part, |p| self.counts[parts[p].edge.node.index()]);
                    (parts[part].edge, passed)
                }
            };
            runs += passed;
            at = part.node;
        }
        Ok((runs, limit - rest))
    }

    /// The runs of `count` elements from run number `first` on, in packed order; offsets in bytes
    /// from displacement 0. O(depth + log list) to begin, amortised O(1) for each.
    ///
    /// # Errors
    ///
    /// There are fewer than `first` runs, or the bytes of `count` elements do not fit `i64`.
    #[doc(alias = "MPIX_Type_iov")]
    pub fn runs(&self, count: u64, first: u64) -> Result<Runs<'_>> {
        let all = self.len(count)?;
        if first > all {
            return Err(Error::new(
                ErrorKind::Argument,
                "first",
                format!("{first}, but there are only {all} runs"),
            ));
        }
        let mut runs = Runs::of_elements(self.plan.program(), count);
        self.skip(&mut runs, first);
        Ok(runs)
    }

    /// Moves `runs`, which stand at the beginning, on by `first` runs (at most all).
    fn skip(&self, runs: &mut Runs<'_>, first: u64) {
        let program = self.plan.program();
        let Some(body) = program.body else { return };
        if runs.whole.is_some() {
            runs.whole = runs.whole.filter(|_| first == 0);
            return;
        }
        let each = self.counts[body.node.index()];
        runs.next = first / each;
        let mut rest = first % each;
        if rest == 0 {
            return;
        }
        let start = program.stride.wrapping_mul(runs.next as i64);
        let (mut at, mut offset) = (body.node, start.wrapping_add(body.offset));
        runs.next += 1;
        // One allocation for most programs, where growing would take several.
        runs.frames.reserve(8);
        // `rest` runs of node `at` are to be skipped, fewer than it has: it is no block.
        while rest > 0 {
            let mut frame = Frame { node: at, offset, index: 0, copy: 0 };
            let inner = match &program.node(at).op {
                Op::Block => break,
                Op::Loop { stride, body, .. } => {
                    let each = self.counts[body.node.index()];
                    frame.index = rest / each;
                    rest %= each;
                    moved(*body, stride.wrapping_mul(frame.index as i64))
                }
                Op::Table { entries, scale, body } => {
                    let each = self.counts[body.node.index()];
                    frame.index = rest / each;
                    rest %= each;
                    moved(*body, entries.get(frame.index as usize).wrapping_mul(*scale))
                }
                Op::Ragged { list, stride, body, .. } if is_dense(program, *stride, *body) => {
                    let ranks = &self.ranks[at.index()];
                    let (entry, _) = ranks.seek(rest, |entry| entry_runs(list, entry));
                    frame.index = entry as u64;
                    runs.frames.push(frame);
                    return;
                }
                Op::Ragged { list, scale, stride, body } => {
                    let each = self.counts[body.node.index()];
                    let (entry, copy) = list.seek(rest / each);
                    (frame.index, frame.copy) = (entry as u64, copy);
                    rest %= each;
                    moved(*body, copy_offset(list, *scale, *stride, entry, copy))
                }
                Op::Seq { parts } => {
                    let count = |part: usize| self.counts[parts[part].edge.node.index()];
                    let (part, within) = self.ranks[at.index()].seek(rest, count);
                    frame.index = part as u64;
                    rest = within;
                    parts[part].edge
                }
            };
            if rest > 0 {
                // The iteration entered below is under way.
                match program.node(at).op {
                    Op::Ragged { .. } => frame.copy += 1,
                    _ => frame.index += 1,
                }
            }
            runs.frames.push(frame);
            offset = offset.wrapping_add(inner.offset);
            at = inner.node;
        }
    }
}

/// Displacement of copy `copy` of entry `entry` of a list.
fn copy_offset(list: &RaggedList, scale: i64, stride: i64, entry: usize, copy: u64) -> i64 {
    let first = list.entries.get(entry).wrapping_mul(scale);
    first.wrapping_add(stride.wrapping_mul(copy as i64))
}

fn moved(edge: Edge, offset: i64) -> Edge {
    Edge { offset: edge.offset.wrapping_add(offset), ..edge }
}

/// Whether any number of elements is one run.
pub(crate) fn is_one_run(program: &Program) -> bool {
    program.body.is_some_and(|body| {
        let node = program.node(body.node);
        node.op == Op::Block && i128::from(node.bytes) == i128::from(program.stride)
    })
}

/// Runs of memory in packed order ([`Iov::runs`]).
#[derive(Clone, Debug)]
pub struct Runs<'a> {
    program: &'a Program,
    /// What is repeated, `stride` bytes apart; `next` of `total` repetitions have begun.
    body: Option<Edge>,
    stride: i64,
    next: u64,
    total: u64,
    frames: Vec<Frame>,
    /// All elements as one run.
    whole: Option<Run>,
}

/// A node under way: the next iteration, part or entry, and the next copy of an entry.
#[derive(Clone, Copy, Debug)]
struct Frame {
    node: NodeId,
    offset: i64,
    index: u64,
    copy: u64,
}

impl<'a> Runs<'a> {
    /// All runs of `count` elements, the bytes of which fit `i64`.
    pub(crate) fn of_elements(program: &'a Program, count: u64) -> Self {
        let whole = program
            .body
            .filter(|_| count > 0 && is_one_run(program))
            .map(|body| Run { offset: body.offset, bytes: count * program.element_bytes() });
        Self {
            program,
            body: program.body.filter(|_| whole.is_none()),
            stride: program.stride,
            next: 0,
            total: if program.body.is_some() { count * program.factor } else { 0 },
            frames: Vec::new(),
            whole,
        }
    }

    /// The runs of one node at displacement 0.
    pub(crate) fn of_node(program: &'a Program, node: NodeId) -> Self {
        let body = Some(Edge { offset: 0, node });
        Self { program, body, stride: 0, next: 0, total: 1, frames: Vec::new(), whole: None }
    }

    /// The node entered next by the innermost frame, with its position, or a run of a list.
    fn step(&mut self) -> Option<Step> {
        let Some(frame) = self.frames.last_mut() else {
            let body = self.body.filter(|_| self.next < self.total)?;
            let edge = moved(body, self.stride.wrapping_mul(self.next as i64));
            self.next += 1;
            return Some(Step::Enter(edge));
        };
        let index = frame.index;
        let inner = match &self.program.node(frame.node).op {
            Op::Block => None,
            Op::Loop { count, stride, body } => (index < *count).then(|| {
                frame.index += 1;
                moved(*body, stride.wrapping_mul(index as i64))
            }),
            Op::Table { entries, scale, body } => (index < entries.len() as u64).then(|| {
                frame.index += 1;
                moved(*body, entries.get(index as usize).wrapping_mul(*scale))
            }),
            Op::Seq { parts } => parts.get(index as usize).map(|part| {
                frame.index += 1;
                part.edge
            }),
            Op::Ragged { list, scale, stride, body } => {
                if index == list.len() as u64 {
                    None
                } else {
                    let (entry, copies) = (index as usize, list.lengths.get(index as usize) as u64);
                    let offset = copy_offset(list, *scale, *stride, entry, frame.copy);
                    let at = offset.wrapping_add(body.offset).wrapping_add(frame.offset);
                    if frame.copy == copies {
                        (frame.index, frame.copy) = (index + 1, 0);
                        return Some(Step::Nothing);
                    }
                    if is_dense(self.program, *stride, *body) {
                        frame.index += 1;
                        let bytes = copies * self.program.node(body.node).bytes;
                        return Some(Step::Run(Run { offset: at, bytes }));
                    }
                    frame.copy += 1;
                    Some(moved(*body, offset))
                }
            }
        };
        Some(match inner {
            Some(edge) => Step::Enter(moved(edge, frame.offset)),
            None => {
                self.frames.pop();
                Step::Nothing
            }
        })
    }
}

enum Step {
    Enter(Edge),
    Run(Run),
    Nothing,
}

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        if let Some(run) = self.whole.take() {
            return Some(run);
        }
        loop {
            match self.step()? {
                Step::Run(run) => return Some(run),
                Step::Nothing => {}
                Step::Enter(Edge { offset, node }) => {
                    let Op::Block = self.program.node(node).op else {
                        self.frames.push(Frame { node, offset, index: 0, copy: 0 });
                        continue;
                    };
                    return Some(Run { offset, bytes: self.program.node(node).bytes });
                }
            }
        }
    }
}
