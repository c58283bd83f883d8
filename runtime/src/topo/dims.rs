//! `MPI_Dims_create`: the dimensions of a grid for a number of ranks (MPI-5.0 section 8.5.2).
//!
//! The user makes a grid (`grid.rs`) of the dimensions.

use crate::{Error, ErrorKind, Result};

/// The largest number of ranks that [`dims_create`] factorises. No machine runs nearly this number of ranks.
const NODES_MAX: usize = u32::MAX as usize;

/// Chooses the dimensions of a grid of `nodes` ranks. The function replaces each entry of `dims` that is 0.
/// The replaced entries become as equal as possible, in non-increasing order. The other entries stay.
///
/// Among all possible choices, the function takes the choice with the smallest difference between the first entry
/// and the last. If several choices have this difference, the function takes the one of them with the smallest
/// difference between the second entry and the last, and so on. For example, 12 ranks in two dimensions become 4 x 3.
///
/// # Errors
/// Returns `ErrorKind::Argument` if `nodes` is 0 or is at least 2^32. Returns `ErrorKind::Dims` if `nodes` is
/// not a multiple of the product of the given entries, or if no entry is 0 and the product is not `nodes`.
#[doc(alias = "MPI_Dims_create")]
pub fn dims_create(nodes: usize, dims: &mut [usize]) -> Result<()> {
    if nodes == 0 || nodes > NODES_MAX {
        let detail = format!("{nodes} is out of range; it must be between 1 and {NODES_MAX}");
        return Err(Error::new(ErrorKind::Argument, "nodes", detail));
    }
    let given = dims.iter().filter(|&&d| d != 0).try_fold(1usize, |p, &d| p.checked_mul(d));
    let free = dims.iter().filter(|&&d| d == 0).count();
    let refused = || {
        let detail = format!(
            "{dims:?} does not fit nodes = {nodes}: the product of the entries that are not 0 must \
             divide nodes, and equal nodes if no entry is 0"
        );
        Error::new(ErrorKind::Dims, "dims", detail)
    };
    let given = given.filter(|&p| nodes.is_multiple_of(p)).ok_or_else(refused)?;
    let rest = nodes / given;
    if free == 0 && rest != 1 {
        return Err(refused());
    }
    let mut divisors: Vec<usize> =
        (1..).take_while(|d| d * d <= rest).filter(|d| rest.is_multiple_of(*d)).collect();
    let large: Vec<usize> = divisors.iter().rev().map(|d| rest / d).collect();
    divisors.extend(large);
    divisors.dedup();
    let mut search = Search { divisors: &divisors, chosen: Vec::new(), best: None };
    search.extend(rest, free);
    let factors = search.best.unwrap_or_default();
    for (dim, factor) in dims.iter_mut().filter(|d| **d == 0).zip(factors) {
        *dim = factor;
    }
    Ok(())
}

/// A search for the most equal factors of a number, in non-increasing order.
struct Search<'a> {
    /// The divisors of the number, in ascending order.
    divisors: &'a [usize],
    /// The first factors of the lists that the search looks at now.
    chosen: Vec<usize>,
    /// The best list so far.
    best: Option<Vec<usize>>,
}

impl Search<'_> {
    /// Looks at all lists that begin with `chosen`, except those that cannot be the best. `rest` is the product of the
    /// other factors, and `slots` is their number. The recursion is at most 32 calls deep, because every factor above 1
    /// at least halves `rest`, and the factor 1 is only for the rest 1.
    fn extend(&mut self, rest: usize, slots: usize) {
        if rest == 1 {
            let mut found = self.chosen.clone();
            found.resize(self.chosen.len() + slots, 1);
            if self.best.as_ref().is_none_or(|best| differences(&found).lt(differences(best))) {
                self.best = Some(found);
            }
            return;
        }
        let cap = self.chosen.last().copied().unwrap_or(rest);
        let (divisors, limit) = (self.divisors, slots.min(64) as u32);
        for &factor in divisors.iter().filter(|&&d| d <= cap && rest.is_multiple_of(d)) {
            // The remaining factors are at most `factor`, and at least as large as the best list so far allows.
            let first = self.chosen.first().copied().unwrap_or(factor);
            let spread =
                self.best.as_ref().map_or(usize::MAX, |best| best[0] - best[best.len() - 1]);
            let least = first.saturating_sub(spread).max(1);
            if least.saturating_pow(limit) > rest {
                return;
            }
            if slots > 0 && factor.saturating_pow(limit) >= rest {
                self.chosen.push(factor);
                self.extend(rest / factor, slots - 1);
                self.chosen.pop();
            }
        }
    }
}

/// Returns the differences between the entries of a list and its last entry.
fn differences(list: &[usize]) -> impl Iterator<Item = usize> {
    let last = list.last().copied().unwrap_or_default();
    list.iter().map(move |entry| entry - last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn created(nodes: usize, dims: &[usize]) -> Option<Vec<usize>> {
        let mut dims = dims.to_vec();
        dims_create(nodes, &mut dims).ok().map(|()| dims)
    }

    #[test]
    fn dims_are_as_equal_as_possible() {
        // These are the four examples of the standard, section 8.5.2.
        assert_eq!(created(6, &[0, 0]), Some(vec![3, 2]));
        assert_eq!(created(7, &[0, 0]), Some(vec![7, 1]));
        assert_eq!(created(6, &[0, 3, 0]), Some(vec![2, 3, 1]));
        assert_eq!(created(7, &[0, 3, 0]), None);
        for (nodes, expected) in [
            (1, [1, 1, 1]),
            (2, [2, 1, 1]),
            (4, [2, 2, 1]),
            (8, [2, 2, 2]),
            (12, [3, 2, 2]),
            (16, [4, 2, 2]),
            (36, [4, 3, 3]),
            (60, [5, 4, 3]),
            (96, [6, 4, 4]),
            (4093, [4093, 1, 1]),
        ] {
            assert_eq!(created(nodes, &[0; 3]), Some(expected.to_vec()), "{nodes}");
        }
    }

    /// Returns all non-increasing lists of `slots` factors of `n`, none of them above `cap`.
    fn lists(n: usize, slots: usize, cap: usize) -> Vec<Vec<usize>> {
        if slots == 0 {
            return if n == 1 { vec![vec![]] } else { vec![] };
        }
        let factors = (1..=cap.min(n)).filter(|f| n.is_multiple_of(*f));
        let with =
            |f| lists(n / f, slots - 1, f).into_iter().map(move |rest| [vec![f], rest].concat());
        factors.flat_map(with).collect()
    }

    #[test]
    fn no_list_is_more_equal() {
        for (slots, most) in [(1, 50), (2, 400), (3, 800), (4, 600), (5, 300), (7, 130)] {
            for n in 1..=most {
                let key = |list: &Vec<usize>| differences(list).collect::<Vec<_>>();
                let best = lists(n, slots, n).into_iter().min_by_key(key).unwrap();
                let found = created(n, &vec![0; slots]).unwrap();
                assert_eq!(key(&found), key(&best), "{n} in {slots}: {found:?}, {best:?}");
            }
        }
        // Lists from MPICH's tests. In the last one, 24 x 24 x 13 has the smaller first entry.
        assert_eq!(created(5040, &[0; 3]), Some(vec![21, 16, 15]));
        assert_eq!(created(6240, &[0; 3]), Some(vec![26, 16, 15]));
        assert_eq!(created(7488, &[0; 3]), Some(vec![26, 18, 16]));
    }

    #[test]
    fn large_numbers_take_no_time() {
        // Numbers with many divisors, a power of 2, and the square of a prime.
        for n in [3_212_537_328, 4_021_920_000, 3_491_888_400, 1 << 31, 65_521 * 65_521] {
            for slots in [1, 2, 3, 4, 5, 6, 9, 20, 40] {
                let found = created(n, &vec![0; slots]).unwrap();
                assert_eq!(found.iter().product::<usize>(), n);
                assert!(found.is_sorted_by(|a, b| a >= b), "{n}: {found:?}");
            }
        }
    }

    #[test]
    fn odd_requests_are_answered_or_refused() {
        assert_eq!(created(1, &[]), Some(vec![]));
        assert_eq!(created(2, &[]), None);
        assert_eq!(created(0, &[0]), None);
        assert_eq!(created(6, &[2, 3]), Some(vec![2, 3]));
        assert_eq!(created(6, &[2, 2]), None);
        assert_eq!(created(6, &[usize::MAX, 2]), None);
        let many = created(64, &[0; 10_000]).unwrap();
        assert_eq!(many.iter().product::<usize>(), 64);
        assert!(many.is_sorted_by(|a, b| a >= b));
    }
}
