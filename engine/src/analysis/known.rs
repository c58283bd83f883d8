//! What was found out about a plan's overlap, kept with the plan.
//!
//! `overlap.rs` answers each question anew, which for long lists means sorting them; `pack/threads.rs`
//! and the runtime ask before every copy that several do at once.

use super::Answer;
use crate::plan::Plan;
use crate::plan::kept::Room;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is known about overlap of a plan. More elements never overlap less.
#[derive(Debug, Default)]
struct KnownOverlap {
    /// So many elements have no byte twice.
    disjoint: AtomicU64,
    /// The complement of the fewest elements that may have one; 0 is not known.
    overlapping: AtomicU64,
}

impl KnownOverlap {
    /// Whether `count` elements of `plan`, whose answers these are, are known to have no byte twice.
    fn is_none(&self, plan: &Plan, count: u64) -> bool {
        if count <= self.disjoint.load(Ordering::Relaxed) {
            return true;
        }
        if count >= !self.overlapping.load(Ordering::Relaxed) {
            return false;
        }
        // Statistics of a sort: answers do not contradict each other, and nothing is ordered by them.
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
    /// Whether `count` elements are known to have no byte twice, so that parts of them may be
    /// unpacked in any order, and at once. The answer of [`Plan::overlaps`], asked once and kept.
    pub fn is_disjoint(&self, count: u64) -> bool {
        // Nothing is made that could be refused.
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
