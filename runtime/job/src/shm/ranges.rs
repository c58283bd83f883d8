//! A set of byte ranges, and the search for a free range.
//!
//! `heap.rs` keeps two sets: the free ranges of the heap, and the ranges that have memory. A set merges
//! ranges that touch each other. The crate `range-alloc` is not used, because it does not support alignment,
//! and because its search through a list is too slow for programs that allocate thousands of small pieces.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A set of byte ranges.
#[derive(Debug, Default)]
pub struct Ranges {
    /// Maps the start of each range to its end.
    places: BTreeMap<u64, u64>,
    /// Length and start of each range, ordered by length.
    sizes: BTreeSet<(u64, u64)>,
    total: u64,
}

impl Ranges {
    /// Returns the number of bytes in the set.
    pub fn total(&self) -> u64 {
        self.total
    }

    fn add(&mut self, start: u64, end: u64) {
        self.places.insert(start, end);
        self.sizes.insert((end - start, start));
        self.total += end - start;
    }

    fn drop(&mut self, start: u64, end: u64) {
        self.places.remove(&start);
        self.sizes.remove(&(end - start, start));
        self.total -= end - start;
    }

    /// Returns the ranges of the set that share a byte with `range` or are adjacent to it.
    fn touching(&self, range: &Range<u64>) -> Vec<(u64, u64)> {
        if range.start > range.end {
            // The range is empty. `heap.rs` gets such a range when it shrinks a range to whole pages and
            // no whole page is left. The search in the tree below would panic, because the end is below
            // the start.
            return Vec::new();
        }
        let before = self.places.range(..range.start).next_back();
        let before = before.filter(|(_, end)| **end >= range.start);
        let within = self.places.range(range.start..=range.end);
        before.into_iter().chain(within).map(|(start, end)| (*start, *end)).collect()
    }

    /// Adds a range, and returns the merged range that contains it.
    pub fn insert(&mut self, range: Range<u64>) -> Range<u64> {
        if range.is_empty() {
            return range;
        }
        let mut whole = range.clone();
        for (start, end) in self.touching(&range) {
            self.drop(start, end);
            whole = whole.start.min(start)..whole.end.max(end);
        }
        self.add(whole.start, whole.end);
        whole
    }

    /// Removes the bytes of `range` from the set. Bytes of `range` that are not in the set are ignored.
    pub fn remove(&mut self, range: Range<u64>) {
        for (start, end) in self.touching(&range) {
            if end <= range.start || start >= range.end {
                continue;
            }
            self.drop(start, end);
            if start < range.start {
                self.add(start, range.start);
            }
            if end > range.end {
                self.add(range.end, end);
            }
        }
    }

    /// Returns the parts of `range` that are in the set.
    pub fn within(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        self.touching(range)
            .into_iter()
            .map(|(start, end)| start.max(range.start)..end.min(range.end))
            .filter(|part| !part.is_empty())
            .collect()
    }

    /// Returns the parts of `range` that are not in the set.
    pub fn gaps(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut gaps = Vec::new();
        let mut at = range.start;
        for part in self.within(range) {
            if part.start > at {
                gaps.push(at..part.start);
            }
            at = part.end;
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
        gaps
    }

    /// Finds room for `len` bytes within one range of the set. The bytes begin at `shift` plus a multiple of
    /// `align` (a power of two). Returns the offset at which they begin, or `None` if the search finds no
    /// room. The search prefers small ranges. It does not try every range, so it can miss room in a range
    /// of fewer than `len + align + shift` bytes.
    pub fn find(&self, len: u64, align: u64, shift: u64) -> Option<u64> {
        let place = |start: u64| {
            let first =
                start.checked_sub(shift).map_or(Some(0), |s| s.checked_next_multiple_of(align))?;
            let at = first.checked_add(shift)?;
            (at >= start).then_some(at)
        };
        // A range of at least `len + align + shift` bytes certainly has room. A shorter range may also have
        // room. To keep the search short, try only the first few ranges, and then one that certainly has
        // room.
        const TRIES: usize = 8;
        let fits = |&(size, start): &(u64, u64)| {
            let at = place(start)?;
            let end = at.checked_add(len)?;
            (end <= start + size).then_some(at)
        };
        let sure = len.checked_add(align)?.checked_add(shift)?;
        self.sizes
            .range((len, 0)..)
            .take(TRIES)
            .find_map(fits)
            .or_else(|| self.sizes.range((sure, 0)..).find_map(fits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(ranges: &Ranges) -> Vec<Range<u64>> {
        let all = ranges.within(&(0..u64::MAX));
        assert_eq!(all.iter().map(|r| r.end - r.start).sum::<u64>(), ranges.total());
        assert_eq!(ranges.places.len(), ranges.sizes.len());
        all
    }

    /// Checks a range whose end is below its start. `heap.rs` passes such a range when it frees a small piece
    /// that contains no whole page.
    #[test]
    fn a_range_that_ends_before_it_begins_holds_nothing() {
        let mut ranges = Ranges::default();
        ranges.insert(0..10_000);
        let backwards = Range { start: 4096, end: 0 };
        assert_eq!(ranges.within(&backwards), []);
        assert_eq!(ranges.gaps(&backwards), []);
    }

    #[test]
    fn neighbours_become_one_range() {
        let mut ranges = Ranges::default();
        assert_eq!(ranges.insert(10..20), 10..20);
        assert_eq!(ranges.insert(30..40), 30..40);
        assert_eq!(ranges.insert(20..25), 10..25);
        assert_eq!(ranges.insert(25..30), 10..40);
        assert_eq!(ranges.insert(5..5), 5..5);
        assert!(list(&ranges).iter().eq([&(10..40)]));
        ranges.remove(15..20);
        ranges.remove(0..11);
        ranges.remove(35..90);
        assert_eq!(list(&ranges), [11..15, 20..35]);
        assert_eq!(ranges.gaps(&(0..30)), [0..11, 15..20]);
        assert_eq!(ranges.gaps(&(12..14)), []);
        assert!(ranges.gaps(&(15..20)).iter().eq([&(15..20)]));
        assert_eq!(ranges.insert(0..100), 0..100);
    }

    #[test]
    fn the_smallest_that_holds_it_is_found() {
        let mut ranges = Ranges::default();
        ranges.insert(64..100);
        ranges.insert(128..196);
        ranges.insert(1000..100_000);
        assert_eq!(ranges.find(32, 64, 0), Some(64));
        assert_eq!(ranges.find(64, 64, 0), Some(128));
        assert_eq!(ranges.find(64, 64, 64), Some(128));
        assert_eq!(ranges.find(68, 64, 0), Some(128));
        assert_eq!(ranges.find(70, 64, 0), Some(1024));
        assert_eq!(ranges.find(70, 4096, 64), Some(4160));
        assert_eq!(ranges.find(99_000, 64, 0), None);
        assert_eq!(ranges.find(u64::MAX, 64, 0), None);
        // The search must find the one range that is well aligned, although it must pass many ranges that are long
        // enough but badly aligned.
        for at in 0..100 {
            ranges.insert(1_000_064 + 8192 * at..1_004_100 + 8192 * at);
        }
        assert_eq!(ranges.find(4036, 64, 0).map(|at| at % 64), Some(0));
    }

    #[test]
    fn random_steps_agree_with_a_bitmap() {
        let mut state = 7_u64;
        let mut next = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % bound
        };
        let (mut ranges, mut bits) = (Ranges::default(), [false; 256]);
        for _ in 0..4000 {
            let (a, b, on) = (next(257), next(257), next(2) == 0);
            let range = a.min(b)..a.max(b);
            if on {
                ranges.insert(range.clone());
            } else {
                ranges.remove(range.clone());
            }
            bits[range.start as usize..range.end as usize].fill(on);
            let mut expected = bits.map(|_| false);
            for part in list(&ranges) {
                expected[part.start as usize..part.end as usize].fill(true);
            }
            assert_eq!(expected, bits);
        }
    }
}
