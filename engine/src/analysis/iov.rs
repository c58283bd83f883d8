//! Lists the runs of memory of a layout, starting at any run. The list is computed on the fly and
//! never stored. `readv`, `process_vm_readv` and file views need such lists (MPICH offers
//! `MPIX_Type_iov_len` and `MPIX_Type_iov` for this purpose).
//!
//! This file works on the loop program of a plan, like `exec/`. [`Iov`] counts the runs of every node
//! once. After that, it finds a run by its number, or the run that holds a packed byte, in O(depth + log
//! list), with one division per loop and one binary search per sequence or list. For a search by number,
//! it stores the number of runs before every 32nd part or entry. From the run that was found, [`Runs`]
//! yields each further run in amortised constant time (`runs.rs`).
//!
//! **Definition of a run.** A run is either a block of the program or one entry of a dense list. A
//! list is dense if the copies inside each entry adjoin each other without gaps. Inside the program,
//! the passes have already merged runs where they could. Runs are *not* merged across iterations of a
//! loop or across elements, even if the last run of one iteration touches the first run of the next.
//! So the number of runs of a loop is a product, and one division per loop finds a run by its number.
//! (MPICH, too, returns the segments of its own representation.) There is one exception: if every element
//! is one run that begins where the element before it ends, all elements together are one run.

use super::runs::RunWalk;
use crate::error::{Error, ErrorKind, Result, counted};
use crate::ir::{Edge, Op, RaggedList, Run};
use crate::plan::Plan;

/// The counted runs of a plan. The caller makes an `Iov` once per plan and stores it.
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
    /// For each node that is a sequence or a dense list: how to find the number of runs before one of its
    /// parts or entries. The items of the other nodes are not used.
    ranks: Box<[Ranks]>,
}

/// How to compute the number of runs before part `i` of a sequence, or before entry `i` of a dense list.
#[derive(Clone, Debug)]
enum Ranks {
    /// Every part or entry has this many runs, so the number of runs before `i` is `i` times this
    /// value.
    Uniform(u64),
    /// Array element `k`, called a sample, is the number of runs before part or entry `k * SAMPLE`.
    /// For an index that is not a multiple of `SAMPLE`, the last sample before the index is used, and
    /// the runs of the parts or entries from there to the index are added one by one.
    Sampled(Box<[u64]>),
}

/// Number of parts or entries per sample.
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

    /// Returns the number of runs before part or entry `index`. `count(i)` must return the number of
    /// runs of part or entry `i`.
    fn before(&self, index: usize, count: impl Fn(usize) -> u64) -> u64 {
        match self {
            Self::Uniform(each) => index as u64 * each,
            Self::Sampled(samples) => {
                // `index` may equal the number of parts or entries. If that number is a multiple of
                // `SAMPLE`, there is no sample for this index, so the last sample is used.
                let sample = (index / SAMPLE).min(samples.len() - 1);
                samples[sample] + (sample * SAMPLE..index).map(count).sum::<u64>()
            }
        }
    }

    /// Returns the part or entry that holds run number `rank`, and the number of runs that precede
    /// this run inside the part or entry. `rank` must be below the total number of runs.
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

/// Returns the number of runs of entry `entry` of a list: 1, or 0 if the entry has no copies. The
/// list must be dense.
fn entry_runs(list: &RaggedList, entry: usize) -> u64 {
    u64::from(list.lengths.get(entry) > 0)
}

impl Iov {
    /// Counts the runs of `plan`, in O(program nodes + entries of their lists). The function reads
    /// the lengths in lists, but no entries of tables and no displacements.
    pub fn new(plan: &Plan) -> Self {
        let program = plan.program();
        let nodes = program.nodes().len();
        let (mut counts, mut ranks) = (Vec::with_capacity(nodes), Vec::with_capacity(nodes));
        for node in program.nodes() {
            let of = |edge: &Edge, counts: &[u64]| counts[edge.node.index()];
            let mut rank = Ranks::Uniform(1);
            // These products cannot overflow: every run has at least one byte, and the number of
            // packed bytes is known to fit in an `i64`.
            let count = match &node.op {
                Op::Block => 1,
                Op::Loop { count, body, .. } => count * of(body, &counts),
                Op::Table { entries, body, .. } => entries.len() as u64 * of(body, &counts),
                Op::Ragged { list, stride, body, .. } if program.is_dense(*stride, *body) => {
                    rank = Ranks::new((0..list.len()).map(|entry| entry_runs(list, entry)));
                    rank.before(list.len(), |entry| entry_runs(list, entry))
                }
                Op::Ragged { body, .. } => {
                    // The number of copies is the packed size of the node divided by that of its
                    // body.
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

    /// Returns the plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the number of runs of `count` elements.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Overflow` if the packed size of `count` elements does not fit in an `i64`.
    #[doc(alias = "MPIX_Type_iov_len")]
    pub fn len(&self, count: u64) -> Result<u64> {
        let bytes = self.plan.packed_bytes(count)?;
        let program = self.plan.program();
        Ok(match program.body {
            Some(_) if program.is_one_run() => u64::from(bytes > 0),
            Some(body) => count * program.factor * self.counts[body.node.index()],
            None => 0,
        })
    }

    /// Finds the longest prefix of the runs of `count` elements that has at most `limit` bytes.
    /// Returns the number of runs in this prefix and the total length of these runs, in bytes.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Overflow` if the packed size of `count` elements does not fit in an `i64`.
    #[doc(alias = "MPIX_Type_iov_len")]
    pub fn below(&self, count: u64, limit: u64) -> Result<(u64, u64)> {
        let (all, bytes) = (self.len(count)?, self.plan.packed_bytes(count)?);
        if limit >= bytes {
            return Ok((all, bytes));
        }
        let program = self.plan.program();
        let (Some(body), false) = (program.body, program.is_one_run()) else {
            return Ok((0, 0));
        };
        let mut at = body.node;
        let each = program.node(at).bytes;
        let (mut runs, mut rest) = (limit / each * self.counts[at.index()], limit % each);
        // In every iteration, the limit falls inside a copy of node `at`, `rest` bytes after the
        // start of this copy.
        while rest > 0 {
            let node = program.node(at);
            let (part, passed) = match &node.op {
                Op::Block => break,
                Op::Ragged { list, stride, body, .. } if program.is_dense(*stride, *body) => {
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

    /// Returns the runs of `count` elements, starting with run number `first`, in packed order.
    /// Offsets are in bytes from displacement 0. Finding the first run costs O(depth + log list);
    /// each further run costs amortised O(1).
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Argument` if there are fewer than `first` runs. Returns
    /// `ErrorKind::Overflow` if the packed size of `count` elements does not fit in an `i64`.
    #[doc(alias = "MPIX_Type_iov")]
    pub fn runs(&self, count: u64, first: u64) -> Result<Runs<'_>> {
        let all = self.len(count)?;
        if first > all {
            return Err(Error::new(
                ErrorKind::Argument,
                "first",
                format!(
                    "{first} is greater than the number of runs; the layout has {}",
                    counted(all, "run", "runs")
                ),
            ));
        }
        let bytes = self.plan.packed_bytes(count)?;
        let mut runs = RunWalk::of_elements(self.plan.program(), bytes);
        if first > 0 {
            runs.seek(self.position(first, bytes));
        }
        Ok(Runs(runs))
    }

    /// Returns the packed position at which run number `first` begins. `bytes` is the total number of
    /// packed bytes; the function returns `bytes` if `first` equals the total number of runs.
    fn position(&self, first: u64, bytes: u64) -> u64 {
        let program = self.plan.program();
        let (Some(body), false) = (program.body, program.is_one_run()) else {
            return if first == 0 { 0 } else { bytes };
        };
        let bytes_of = |edge: &Edge| program.node(edge.node).bytes;
        let mut at = body.node;
        let each = self.counts[at.index()];
        let (mut position, mut rest) = (first / each * bytes_of(&body), first % each);
        // The loop looks for run number `rest` of node `at`. While `rest` is not 0, the node has at
        // least two runs, so it is not a block.
        while rest > 0 {
            let inner = match &program.node(at).op {
                Op::Block => break,
                Op::Ragged { list, stride, body, .. } if program.is_dense(*stride, *body) => {
                    let ranks = &self.ranks[at.index()];
                    let (entry, _) = ranks.seek(rest, |entry| entry_runs(list, entry));
                    position += list.before(entry) * bytes_of(body);
                    break;
                }
                Op::Loop { body, .. } | Op::Table { body, .. } | Op::Ragged { body, .. } => {
                    let each = self.counts[body.node.index()];
                    position += rest / each * bytes_of(body);
                    rest %= each;
                    *body
                }
                Op::Seq { parts } => {
                    let count = |part: usize| self.counts[parts[part].edge.node.index()];
                    let (part, within) = self.ranks[at.index()].seek(rest, count);
                    position += if part == 0 { 0 } else { parts[part - 1].end };
                    rest = within;
                    parts[part].edge
                }
            };
            at = inner.node;
        }
        position
    }
}

/// An iterator over runs of memory in packed order, made by [`Iov::runs`].
#[derive(Clone, Debug)]
pub struct Runs<'a>(RunWalk<'a>);

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        self.0.next().map(|found| found.run)
    }
}
