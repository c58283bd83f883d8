//! Counts how often a plan is used, if the program asks for it (`TYPEPACK_REPORT=types` of the runtime).
//!
//! `exec/`, `transfer/` and `pack/position.rs` call [`Plan::used`] in each call, so a plan that nobody watches costs
//! one load from a cache line that the call reads anyway.

use super::Plan;
use super::kept::Room;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often plans have been used. Several plans may share one value.
#[derive(Debug, Default)]
pub struct Uses {
    calls: AtomicU64,
    bytes: AtomicU64,
}

impl Uses {
    /// Returns how many times elements have been packed, unpacked or copied. The pieces of a long message are one use.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Returns how many packed bytes these uses have moved. A copy from layout to layout counts at both sides.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Plan {
    /// Counts all further uses of this plan, and of its clones, in `uses`. If the plan is watched already, nothing
    /// changes.
    pub fn watch(&self, uses: Arc<Uses>) {
        let watched = self.kept(Room::Uses, || Ok(uses)).is_ok();
        self.0.watched.store(watched, Ordering::Release);
    }

    /// Counts a use that moves the packed bytes `range`, if somebody watches the plan.
    #[inline(always)]
    pub(crate) fn used(&self, range: &Range<u64>) {
        if self.0.watched.load(Ordering::Acquire) {
            self.count(range);
        }
    }

    #[cold]
    #[inline(never)]
    fn count(&self, range: &Range<u64>) {
        if range.start >= range.end {
            return;
        }
        let Ok(uses) = self.kept(Room::Uses, || Ok(Arc::<Uses>::default())) else { return };
        uses.calls.fetch_add(u64::from(range.start == 0), Ordering::Relaxed);
        uses.bytes.fetch_add(range.end - range.start, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Datatype, copy, pack_range, unpack};

    #[test]
    fn packs_unpacks_and_copies_count_once_for_each_side() {
        let commit = |text: &str| {
            let (plan, uses) =
                (text.parse::<Datatype>().unwrap().commit().unwrap(), Arc::new(Uses::default()));
            plan.watch(uses.clone());
            (plan, uses)
        };
        let (column, columns) = commit("vector(100, 1, 3, double)");
        let (pairs, of_pairs) = commit("vector(50, 2, 5, double)");
        let (run, runs) = commit("contiguous(100, double)");
        let (from, mut to) = ([1f64; 300], [0f64; 300]);
        let mut packed = [0u8; 800];
        // Two pieces are one use.
        pack_range(&column, 1, &from, 0, 0..400, &mut packed[..400]).unwrap();
        pack_range(&column, 1, &from, 0, 400..800, &mut packed[400..]).unwrap();
        assert_eq!((columns.calls(), columns.bytes()), (1, 800));
        unpack(&column, 1, &packed, &mut to).unwrap();
        assert_eq!((columns.calls(), columns.bytes()), (2, 1600));
        copy(&column, 1, &from, &pairs, 1, &mut to).unwrap();
        copy(&run, 1, &from, &pairs, 1, &mut to).unwrap();
        copy(&run, 1, &from, &run, 1, &mut to).unwrap();
        assert_eq!((columns.calls(), columns.bytes()), (3, 2400));
        assert_eq!((of_pairs.calls(), of_pairs.bytes()), (2, 1600));
        assert_eq!((runs.calls(), runs.bytes()), (3, 2400));
    }
}
