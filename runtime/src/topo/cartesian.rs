//! Cartesian grids of ranks (MPI-5.0 section 8.5).
//!
//! `coll/create.rs` makes the communicator of a grid. `halo/` and the user ask the grid for neighbours. A
//! grid never reorders ranks: the coordinates of a rank follow from its number in row-major order, in which
//! the last coordinate varies fastest.
//!
//! In a periodic dimension of one rank, the rank is its own neighbour on both sides. In a periodic dimension
//! of two ranks, both neighbours are the same rank. So a program that exchanges data with both sides must
//! distinguish the sides by tag, and not by rank.

use crate::comm::Communicator;
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

/// A communicator whose ranks form a grid.
#[derive(Clone, Debug)]
pub struct Cartesian {
    comm: Communicator,
    dims: Box<[usize]>,
    periodic: Box<[bool]>,
    coords: Box<[usize]>,
}

impl Communicator {
    /// Arranges the ranks in a grid. The grid is a new communicator with message spaces of its own.
    /// Collective.
    ///
    /// # Errors
    /// Returns `ErrorKind::Dims` if the product of `dims` is not the number of ranks, or if `periodic` and
    /// `dims` have different lengths. Returns `ErrorKind::ProcAborted` if a rank has died.
    #[doc(alias = "MPI_Cart_create")]
    pub fn cartesian(&self, dims: &[usize], periodic: &[bool]) -> Result<Cartesian> {
        if periodic.len() != dims.len() {
            let detail = format!(
                "the slice has length {}; its length must be that of dims, {}",
                periodic.len(),
                dims.len()
            );
            return Err(Error::new(ErrorKind::Dims, "periodic", detail));
        }
        let ranks = dims.iter().try_fold(1usize, |p, &d| p.checked_mul(d));
        if ranks != Some(self.size()) {
            let size = self.size();
            let detail = format!(
                "the product of {dims:?} must be the number of ranks of the communicator, {size}"
            );
            return Err(Error::new(ErrorKind::Dims, "dims", detail));
        }
        let comm = self.dup()?;
        let coords = coords_of(dims, comm.rank());
        Ok(Cartesian { comm, dims: dims.into(), periodic: periodic.into(), coords: coords.into() })
    }
}

fn coords_of(dims: &[usize], rank: usize) -> Vec<usize> {
    let mut rest = rank;
    let mut coords: Vec<usize> = dims
        .iter()
        .rev()
        .map(|&dim| {
            let coord = rest % dim;
            rest /= dim;
            coord
        })
        .collect();
    coords.reverse();
    coords
}

impl Cartesian {
    /// Returns the communicator of the grid.
    pub fn comm(&self) -> &Communicator {
        &self.comm
    }

    /// Returns the number of ranks along each dimension.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Returns one entry per dimension: true if the dimension is periodic.
    pub fn periodic(&self) -> &[bool] {
        &self.periodic
    }

    /// Returns the coordinates of this rank.
    pub fn coords(&self) -> &[usize] {
        &self.coords
    }

    /// Returns the coordinates of `rank`.
    ///
    /// # Errors
    /// Returns `ErrorKind::Rank` if `rank` is not a rank of the grid.
    #[doc(alias = "MPI_Cart_coords")]
    pub fn coords_of(&self, rank: usize) -> Result<Vec<usize>> {
        self.comm.check_rank(rank, "rank", ErrorKind::Rank)?;
        Ok(coords_of(&self.dims, rank))
    }

    /// Returns the rank at `coords`. In periodic dimensions, coordinates wrap around. Returns `None` if
    /// `coords` is outside the grid or does not have one entry per dimension.
    #[doc(alias = "MPI_Cart_rank")]
    pub fn rank_of(&self, coords: &[i64]) -> Option<usize> {
        if coords.len() != self.dims.len() {
            return None;
        }
        self.locate(coords.iter().map(|&c| i128::from(c)))
    }

    fn locate(&self, coords: impl Iterator<Item = i128>) -> Option<usize> {
        let mut rank = 0;
        for ((coord, &dim), &periodic) in coords.zip(&self.dims).zip(&self.periodic) {
            let size = dim as i128;
            let coord = if periodic { coord.rem_euclid(size) } else { coord };
            if !(0..size).contains(&coord) {
                return None;
            }
            rank = rank * dim + coord as usize;
        }
        Some(rank)
    }

    /// Returns `(source, dest)` for a shift in which every rank sends to the rank `displacement` steps
    /// further along `dim`. This rank receives from `source` and sends to `dest`. If `dim` is not periodic
    /// and one of the two ranks would lie beyond the edge of the grid, `None` stands for that rank.
    ///
    /// # Errors
    /// Returns `ErrorKind::Topology` if the grid has no dimension `dim`.
    #[doc(alias = "MPI_Cart_shift")]
    pub fn shift(&self, dim: usize, displacement: i64) -> Result<(Option<usize>, Option<usize>)> {
        if dim >= self.dims.len() {
            let detail =
                format!("{dim} is out of range; the number of dimensions is {}", self.dims.len());
            return Err(Error::new(ErrorKind::Topology, "dim", detail));
        }
        let step = i128::from(displacement);
        let at = |step: i128| {
            self.locate(
                self.coords
                    .iter()
                    .enumerate()
                    .map(|(i, &c)| if i == dim { c as i128 + step } else { c as i128 }),
            )
        };
        Ok((at(-step), at(step)))
    }
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

    #[test]
    fn coordinates_are_row_major() {
        let dims = [2, 3, 4];
        assert_eq!(coords_of(&dims, 0), [0, 0, 0]);
        assert_eq!(coords_of(&dims, 1), [0, 0, 1]);
        assert_eq!(coords_of(&dims, 4), [0, 1, 0]);
        assert_eq!(coords_of(&dims, 23), [1, 2, 3]);
    }
}
