//! The known answers about a plan's overlap, stored with the plan.
//!
//! `overlap.rs` computes each answer anew, and sorts runs if the proofs fail. `pack/threads.rs` and
//! the runtime ask before every copy that several threads or ranks share, so the answers are stored
//! here.

use super::Answer;
use crate::plan::Plan;
use crate::plan::kept::Room;
use std::sync::atomic::{AtomicU64, Ordering};

/// The known answers about overlap of a plan. If `n` elements overlap, so do more than `n`.
#[derive(Debug, Default)]
struct KnownOverlap {
    /// A number of elements that are known to have no byte twice.
    disjoint: AtomicU64,
    /// The complement of the smallest number of elements that may have a byte twice; 0 if unknown.
    overlapping: AtomicU64,
}

impl KnownOverlap {
    /// Returns whether `count` elements of `plan`, to which these answers belong, are known to have no
    /// byte twice.
    fn is_none(&self, plan: &Plan, count: u64) -> bool {
        if count <= self.disjoint.load(Ordering::Relaxed) {
            return true;
        }
        if count >= !self.overlapping.load(Ordering::Relaxed) {
            return false;
        }
        // Relaxed is enough: answers do not contradict each other, and no other memory depends on them.
        match plan.overlaps(count) {
            Answer::No => {
                self.disjoint.fetch_max(count, Ordering::Relaxed);
                true
            }
            Answer::Yes | Answer::Unknown => {
                self.overlapping.fetch_max(!count, Ordering::Relaxed);
                false
            }
        }
    }
}

impl Plan {
    /// Returns whether `count` elements are known to have no byte twice. Then parts of them may be
    /// unpacked in any order and at the same time. The answer is that of [`Plan::overlaps`], computed
    /// once and stored.
    pub fn is_disjoint(&self, count: u64) -> bool {
        // An error is impossible here, because the closure always succeeds.
        self.kept(Room::Overlap, || Ok(KnownOverlap::default()))
            .is_ok_and(|known| known.is_none(self, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Datatype;

    #[test]
    fn overlap_is_asked_once_and_remembered() {
        let ty: Datatype = "resized(0, 8, contiguous(2, double))".parse().expect("a type");
        let plan = ty.commit().expect("committed");
        let known = KnownOverlap::default();
        assert!(known.is_none(&plan, 1) && !known.is_none(&plan, 5));
        assert_eq!(known.disjoint.load(Ordering::Relaxed), 1);
        assert_eq!(!known.overlapping.load(Ordering::Relaxed), 5);
        assert!(known.is_none(&plan, 0) && known.is_none(&plan, 1) && !known.is_none(&plan, 6));
        assert!(!known.is_none(&plan, u64::MAX));
    }
}
