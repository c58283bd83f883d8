//! `MPI_Dims_create`: the dimensions of a grid for a number of ranks (MPI-5.0 section 8.5.2).
//!
//! The user makes a grid (`grid.rs`) of the dimensions.

use crate::{Error, ErrorKind, Result};

/// The largest number of ranks that [`dims_create`] factorises. No machine runs nearly this number of ranks.
const NODES_MAX: usize = u32::MAX as usize;

/// Chooses the dimensions of a grid of `nodes` ranks. The function replaces each entry of `dims` that is 0.
/// The replaced entries become as equal as possible, in non-increasing order. The other entries stay.
///
/// Among all possible choices, the function takes the choice with the smallest first entry. If several
/// choices have this first entry, the function takes the one of them with the smallest second entry, and so
/// on. For example, 12 ranks in two dimensions become 4 x 3.
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
    let mut factors = Vec::new();
    if !factorise(rest, free, rest, &divisors, &mut factors) {
        return Err(refused());
    }
    factors.resize(free, 1);
    for (dim, factor) in dims.iter_mut().filter(|d| **d == 0).zip(factors) {
        *dim = factor;
    }
    Ok(())
}

/// Appends to `factors` the lexicographically smallest non-increasing list of factors whose product is `n`.
/// The list has at most `slots` factors. Each factor is one of `divisors`, above 1 and at most `cap`. The
/// `divisors` are in ascending order. Returns false if there is no such list. The recursion is at most 32
/// calls deep, because every call at least halves `n`.
fn factorise(
    n: usize,
    slots: usize,
    cap: usize,
    divisors: &[usize],
    factors: &mut Vec<usize>,
) -> bool {
    if n == 1 {
        return true;
    }
    if slots == 0 {
        return false;
    }
    for &factor in divisors.iter().filter(|&&d| d > 1 && d <= cap && n.is_multiple_of(d)) {
        factors.push(factor);
        if factorise(n / factor, slots - 1, factor, divisors, factors) {
            return true;
        }
        factors.pop();
    }
    false
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
