//! Stores, with each plan, what is known about whether its elements overlap.
//!
//! `overlap.rs` computes every answer from scratch, and sorts runs if its proofs fail.
//! `pack/threads.rs` and the runtime need an answer before every copy that several threads or ranks
//! share. So the answers are stored here.

use super::Answer;
use crate::plan::Plan;
use crate::plan::kept::Room;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is known about whether elements of a plan overlap. Two numbers are enough: if `n` elements
/// overlap, then any greater number of elements overlaps too.
#[derive(Debug, Default)]
struct KnownOverlap {
    /// The greatest number of elements that are known not to overlap.
    disjoint: AtomicU64,
    /// The bitwise complement of the smallest number of elements that may overlap; 0 if no such
    /// number is known. Because of the complement, the initial value can be 0, and `fetch_max` keeps
    /// the smallest number.
    overlapping: AtomicU64,
}

impl KnownOverlap {
    /// Returns whether `count` elements of `plan` are known not to overlap. `plan` must be the plan
    /// that stores these answers.
    fn is_none(&self, plan: &Plan, count: u64) -> bool {
        if count <= self.disjoint.load(Ordering::Relaxed) {
            return true;
        }
        if count >= !self.overlapping.load(Ordering::Relaxed) {
            return false;
        }
        // `Relaxed` is enough: answers do not contradict each other, and no other memory depends on
        // them.
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
    /// Returns whether `count` elements are known not to overlap. If so, their parts may be unpacked
    /// in any order and at the same time. [`Plan::overlaps`] computes the answer; it is then stored
    /// for later calls.
    pub fn is_disjoint(&self, count: u64) -> bool {
        // `kept` returns an error only if the closure fails or if the slot holds a value of another type.
        // This closure always succeeds, and no other code uses the slot.
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
