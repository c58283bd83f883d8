//! The runs of memory that a committed type copies: their number, their lengths, and the fraction
//! of the memory that they cover.
//!
//! These figures are computed node by node from the loop program that the commit has made. So the cost
//! depends on the size of the program and of its tables, not on the number of runs. Runs of different
//! iterations count separately even if they touch, because the kernels copy them separately.

use std::fmt::Write;
use typepack_engine::Plan;
use typepack_engine::inspect::{index, is_dense};
use typepack_engine::ir::{Op, Program};

/// The runs of memory in one element: their number, and the shortest and the longest length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    /// Number of runs.
    pub(crate) runs: i128,
    /// Length of the shortest run, in bytes.
    pub(crate) least: u64,
    /// Length of the longest run, in bytes.
    pub(crate) most: u64,
}

impl Blocks {
    const NONE: Self = Self { runs: 0, least: u64::MAX, most: 0 };

    fn times(self, count: i128) -> Self {
        Self { runs: self.runs.saturating_mul(count), ..self }
    }

    fn and(self, other: Self) -> Self {
        Self {
            runs: self.runs.saturating_add(other.runs),
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }

    /// Returns the number and the lengths of the runs of one element; `None` for a type without
    /// data.
    pub(crate) fn of(program: &Program) -> Option<Self> {
        let body = program.body?;
        let mut done: Vec<Self> = Vec::with_capacity(program.nodes().len());
        for node in program.nodes() {
            // Each node comes after the nodes that it uses, so `done` already holds the runs of those
            // nodes.
            done.push(match &node.op {
                Op::Block => Self { runs: 1, least: node.bytes, most: node.bytes },
                Op::Loop { count, body, .. } => done[index(body.node)].times(i128::from(*count)),
                Op::Table { entries, body, .. } => {
                    done[index(body.node)].times(entries.len() as i128)
                }
                Op::Ragged { list, stride, body, .. } => {
                    let inner = done[index(body.node)];
                    let lengths = list.lengths.iter().filter(|&length| length > 0);
                    if is_dense(program, *stride, *body) {
                        lengths
                            .map(|length| length as u64 * inner.most)
                            .fold(Self::NONE, |all, bytes| {
                                all.and(Self { runs: 1, least: bytes, most: bytes })
                            })
                    } else {
                        inner.times(lengths.map(i128::from).sum())
                    }
                }
                Op::Seq { parts } => {
                    let parts = parts.iter().map(|part| done[index(part.edge.node)]);
                    parts.fold(Self::NONE, Self::and)
                }
            });
        }
        Some(done[index(body.node)].times(i128::from(program.factor)))
    }
}

/// Returns text that shows the number of runs, their lengths, the density of the data and the
/// fraction of holes.
pub fn blocks(plan: &Plan) -> String {
    let place = plan.footprint();
    let (size, reach) = (plan.element_bytes(), place.true_ub - place.true_lb);
    let Some(found) = Blocks::of(plan.program()) else {
        return "no data\n".to_owned();
    };
    let mut out = String::new();
    if plan.is_contiguous() {
        let _ = writeln!(out, "runs       1 for any count: elements continue each other");
    } else {
        let mean = size as f64 / found.runs as f64;
        let _ = writeln!(out, "runs       {}", found.runs);
        let _ = match found.least == found.most {
            true => writeln!(out, "bytes      {} each", found.most),
            false => writeln!(out, "bytes      {} to {}, mean {mean:.1}", found.least, found.most),
        };
    }
    let density = 100.0 * size as f64 / reach as f64;
    let _ = if density > 100.0 {
        writeln!(out, "density    {density:.1} % of the true extent: bytes are used more than once")
    } else {
        writeln!(
            out,
            "density    {density:.1} % of the true extent, holes {:.1} %",
            100.0 - density
        )
    };
    out
}
