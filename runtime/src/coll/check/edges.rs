//! The comparison of the edges of a topology: whether each rank has as many edges to another rank as that rank has from
//! it.
//!
//! `check.rs` exchanges what ranks send along the edges. If the ranks disagree about the edges, some of these messages
//! would have no receiver, or a receiver would wait for ever. So before that, each rank tells every other rank the
//! number of its edges to this rank (`Communicator::edge_steps`). All ranks then get the same error.

use super::{EDGES, NONE, Scratch, Traffic, Verdict};
use crate::Result;
use crate::comm::Communicator;
use crate::commit::bytes;
use crate::schedule::program::Builder;
use typepack_engine::Elements;

/// Returns the text of an error: rank `from.0` has `from.1` edges to rank `to.0`, which has `to.1` edges from it.
pub(super) fn text(from: (u64, u64), to: (u64, u64)) -> String {
    let ((from, there), (to, here)) = (from, to);
    format!(
        "the topology differs: the number of edges from rank {from} to rank {to} is {there} on rank {from}, and {here} on \
         rank {to}"
    )
}

/// Returns the number of entries for each of `size` ranks.
fn count(ranks: impl Iterator<Item = usize>, size: usize) -> Vec<u64> {
    let mut counts = vec![0; size];
    for rank in ranks {
        counts[rank] += 1;
    }
    counts
}

/// Compares the numbers of edges from each rank to this rank: those that the ranks have told, and those that this rank
/// knows.
fn judge(told: &[u64], known: &[u64]) -> Verdict {
    match (0..known.len()).find(|&rank| told[rank] != known[rank]) {
        Some(from) => [EDGES, from as u64, told[from], known[from], 0, 0, NONE],
        None => [0; 7],
    }
}

impl Communicator {
    /// Adds the steps that compare the edges of `traffic`.
    pub(super) fn edge_steps(&self, steps: &mut Builder<'_, '_>, traffic: &Traffic) -> Result<()> {
        let (plan, rank, size) = (bytes()?, self.rank(), self.size());
        let out = count(traffic.sent.iter().map(|sent| sent.to), size);
        let known = count(traffic.expected.iter().map(|expected| expected.from), size);
        let length = size_of::<u64>();
        let scratch = |steps: &mut Builder<'_, '_>| -> Result<Scratch<u64>> {
            Ok(Scratch(steps.scratch_at_once(plan, (length * size) as u64)?.cast()))
        };
        let (ours, told) = (scratch(steps)?, scratch(steps)?);
        // SAFETY: both blocks of scratch memory have room for a number for each rank, `out` has as many numbers, and no
        // step uses the memory yet.
        unsafe {
            ours.0.copy_from_nonoverlapping(out.as_ptr(), size);
            told.0.copy_from_nonoverlapping(out.as_ptr(), size);
        }
        let one = |block: &Scratch<u64>, at: usize| Elements {
            origin: block.0.wrapping_add(at).cast(),
            plan,
            count: length as u64,
        };
        for other in (0..size).filter(|other| *other != rank) {
            let peer = self.peer(other)?;
            steps.send(&one(&ours, other), peer)?;
            steps.receive(&one(&told, other), peer)?;
        }
        self.verdict_steps(steps, move || {
            // SAFETY: the steps before this one have written a number for each other rank, and are over. The number of
            // this rank was there from the beginning.
            judge(unsafe { told.slice(size) }, &known)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_edges_are_compared() {
        assert_eq!(count([2, 0, 2].into_iter(), 3), [1, 0, 2]);
        assert_eq!(judge(&[1, 0, 2], &[1, 0, 2]), [0; 7]);
        assert_eq!(judge(&[1, 0, 2], &[1, 1, 2]), [EDGES, 1, 0, 1, 0, 0, NONE]);
        let text = text((1, 0), (2, 3));
        assert!(text.ends_with("from rank 1 to rank 2 is 0 on rank 1, and 3 on rank 2"), "{text}");
    }
}
