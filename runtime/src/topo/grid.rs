//! Cartesian grids (MPI-5.0 section 8.5).
//!
//! A rank's coordinates follow from its number in row-major order: the last coordinate varies fastest.
//!
//! In a periodic dimension of one rank, the rank is its own neighbour on both sides. In a periodic dimension
//! of two ranks, both neighbours are the same rank. So a program that exchanges data with both sides must
//! distinguish the sides by tag, and not by rank. The neighbourhood collectives distinguish them by order
//! (`neighbors.rs`).

use super::Neighbors;
use crate::{Error, ErrorKind, Result};

/// The geometry of a grid of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    dims: Box<[usize]>,
    periodic: Box<[bool]>,
    size: usize,
}

impl Grid {
    /// Makes a grid with `dims[d]` ranks along dimension `d`. A grid without dimensions has one rank.
    ///
    /// # Errors
    /// Returns `ErrorKind::Dims` if an entry of `dims` is 0, if the number of ranks does not fit in `usize`,
    /// or if `periodic` and `dims` have different lengths.
    pub fn new(dims: &[usize], periodic: &[bool]) -> Result<Self> {
        if periodic.len() != dims.len() {
            let detail = format!(
                "the slice has length {}; its length must be that of dims, {}",
                periodic.len(),
                dims.len()
            );
            return Err(Error::new(ErrorKind::Dims, "periodic", detail));
        }
        if let Some(dim) = dims.iter().position(|&ranks| ranks == 0) {
            let detail = format!("entry {dim} of {dims:?} is 0; it must be at least 1");
            return Err(Error::new(ErrorKind::Dims, "dims", detail));
        }
        let Some(size) = dims.iter().try_fold(1usize, |p, &d| p.checked_mul(d)) else {
            let detail = format!("the product of {dims:?} is too large");
            return Err(Error::new(ErrorKind::Dims, "dims", detail));
        };
        Ok(Self { dims: dims.into(), periodic: periodic.into(), size })
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the number of ranks along each dimension.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Returns one entry per dimension: true if the dimension is periodic.
    pub fn periodic(&self) -> &[bool] {
        &self.periodic
    }

    /// Returns the coordinates of `rank`.
    ///
    /// # Errors
    /// Returns `ErrorKind::Rank` if `rank` is not a rank of the grid.
    #[doc(alias = "MPI_Cart_coords")]
    pub fn coords_of(&self, rank: usize) -> Result<Vec<usize>> {
        if rank >= self.size {
            let detail = format!("{rank} is not a rank of the grid, whose size is {}", self.size);
            return Err(Error::new(ErrorKind::Rank, "rank", detail));
        }
        let mut rest = rank;
        let mut coords = vec![0; self.dims.len()];
        for (coord, &dim) in coords.iter_mut().zip(&self.dims).rev() {
            *coord = rest % dim;
            rest /= dim;
        }
        Ok(coords)
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
    /// further along `dim`. Rank `rank` receives from `source` and sends to `dest`. If `dim` is not periodic
    /// and one of the two ranks would lie beyond the edge of the grid, `None` stands for that rank.
    ///
    /// # Errors
    /// Returns `ErrorKind::Rank` if `rank` is not a rank of the grid, and `ErrorKind::Dims` if the grid has
    /// no dimension `dim`.
    #[doc(alias = "MPI_Cart_shift")]
    pub fn shift(
        &self,
        rank: usize,
        dim: usize,
        displacement: i64,
    ) -> Result<(Option<usize>, Option<usize>)> {
        if dim >= self.dims.len() {
            let detail =
                format!("{dim} is out of range; the number of dimensions is {}", self.dims.len());
            return Err(Error::new(ErrorKind::Dims, "direction", detail));
        }
        let coords = self.coords_of(rank)?;
        let step = i128::from(displacement);
        let at = |step: i128| {
            self.locate(
                coords
                    .iter()
                    .enumerate()
                    .map(|(i, &c)| if i == dim { c as i128 + step } else { c as i128 }),
            )
        };
        Ok((at(-step), at(step)))
    }

    /// Returns the neighbours of `rank`: for each dimension the one on the lower side, then the one on the
    /// upper side.
    ///
    /// # Errors
    /// Returns `ErrorKind::Rank` if `rank` is not a rank of the grid.
    pub fn neighbors(&self, rank: usize) -> Result<Neighbors> {
        self.coords_of(rank)?;
        let mut sides = Vec::with_capacity(2 * self.dims.len());
        for dim in 0..self.dims.len() {
            let (lower, upper) = self.shift(rank, dim, 1)?;
            sides.extend([lower, upper]);
        }
        Ok(Neighbors::of_grid(sides))
    }

    /// Cuts the grid along the dimensions whose entry in `remain` is false. Returns the geometry of one
    /// slice, the number of the slice that contains `rank`, and the rank's number in the slice.
    ///
    /// # Errors
    /// Returns `ErrorKind::Dims` if `remain` does not have one entry per dimension, and `ErrorKind::Rank` if
    /// `rank` is not a rank of the grid.
    pub fn slice(&self, remain: &[bool], rank: usize) -> Result<(Self, usize, usize)> {
        if remain.len() != self.dims.len() {
            let detail = format!(
                "the slice has length {}; its length must be the number of dimensions, {}",
                remain.len(),
                self.dims.len()
            );
            return Err(Error::new(ErrorKind::Dims, "remain_dims", detail));
        }
        let (mut dims, mut periodic) = (Vec::new(), Vec::new());
        let (mut number, mut place) = (0, 0);
        for (d, coord) in self.coords_of(rank)?.into_iter().enumerate() {
            if remain[d] {
                dims.push(self.dims[d]);
                periodic.push(self.periodic[d]);
                place = place * self.dims[d] + coord;
            } else {
                number = number * self.dims[d] + coord;
            }
        }
        Ok((Self::new(&dims, &periodic)?, number, place))
    }
}

#[cfg(test)]
mod tests;
