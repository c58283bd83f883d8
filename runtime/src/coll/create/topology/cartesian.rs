//! Communicators whose ranks form a Cartesian grid (MPI-5.0 section 8.5).
//!
//! `halo/` and the user ask the grid for neighbours.

use super::compare::Argument;
use crate::comm::Communicator;
use crate::topo::{Grid, Shape, placed};
use crate::{Error, ErrorKind, Result};

/// A communicator whose ranks form a grid.
#[derive(Clone, Debug)]
pub struct Cartesian {
    comm: Communicator,
    grid: Grid,
    coords: Box<[usize]>,
}

impl Communicator {
    /// Arranges all ranks in a grid, in which they keep their numbers. The grid is a new communicator with
    /// message spaces of its own. Collective.
    ///
    /// [`cartesian_within`](Self::cartesian_within) makes grids that are smaller than the communicator.
    ///
    /// # Errors
    /// Returns `ErrorKind::Dims` if the product of `dims` is not the number of ranks, or if `periodic` and
    /// `dims` have different lengths, and the other errors of [`cartesian_within`](Self::cartesian_within).
    #[doc(alias = "MPI_Cart_create")]
    pub fn cartesian(&self, dims: &[usize], periodic: &[bool]) -> Result<Cartesian> {
        let grid = Grid::new(dims, periodic).and_then(|grid| match grid.size() == self.size() {
            true => Ok(grid),
            false => {
                let size = self.size();
                let detail = format!(
                    "the product of {dims:?} must be the number of ranks of the communicator, {size}"
                );
                Err(Error::new(ErrorKind::Dims, "dims", detail))
            }
        });
        let grid = grid.inspect_err(|_| self.fail_creation())?;
        let made = self.cartesian_within(&grid, false)?;
        made.ok_or_else(|| Error::new(ErrorKind::Internal, "comm", "a rank is not in its grid"))
    }

    /// Arranges ranks in a grid that has as many ranks as the communicator or fewer. Returns `None` to a rank
    /// that the grid does not need. If `reorder` is true, ranks may get new numbers, so that neighbours in the
    /// grid share as much of the machine as possible. Collective.
    ///
    /// ```
    /// use typepack::topo::Grid;
    ///
    /// let universe = typepack::init()?;
    /// let grid = Grid::new(&[1, 1], &[true, false])?; // a grid of one rank; the job may have more ranks
    /// match universe.world().cartesian_within(&grid, true)? {
    ///     Some(grid) => assert_eq!(grid.coords(), [0, 0]),
    ///     None => assert!(universe.world().size() > 1),
    /// }
    /// # Ok::<(), typepack::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns `ErrorKind::Dims` if the grid has more ranks than the communicator, `ErrorKind::Comm` if this
    /// is an intercommunicator, `ErrorKind::Other` if another rank found an error in its arguments, and
    /// `ErrorKind::ProcAborted` if a rank has died.
    #[doc(alias = "MPI_Cart_create")]
    pub fn cartesian_within(&self, grid: &Grid, reorder: bool) -> Result<Option<Cartesian>> {
        self.cart_create(grid, reorder)?.map(|comm| Cartesian::of(comm, grid)).transpose()
    }

    /// Makes the communicator of a grid, like [`cartesian_within`](Self::cartesian_within). The grid is the
    /// topology of the communicator.
    ///
    /// # Errors
    /// Returns the errors of [`cartesian_within`](Self::cartesian_within).
    #[doc(alias = "MPI_Cart_create")]
    pub fn cart_create(&self, grid: &Grid, reorder: bool) -> Result<Option<Self>> {
        let places = self.places(grid, reorder).inspect_err(|_| self.fail_creation())?;
        self.compare_arguments([
            Argument::new("dims", ErrorKind::Dims, grid.dims().iter().map(|&dim| dim as i64)),
            Argument::new(
                "periods",
                ErrorKind::Argument,
                grid.periodic().iter().copied().map(i64::from),
            ),
            Argument::new("reorder", ErrorKind::Argument, [i64::from(reorder)]),
        ])?;
        let place = places.iter().position(|&rank| rank == self.rank());
        let same = places.len() == self.size() && places.iter().copied().eq(0..self.size());
        self.shaped(Shape::Grid(grid.clone()), place, same)
    }

    /// Returns this rank's number in the grid that [`cart_create`](Self::cart_create) makes if ranks may get
    /// new numbers, or `None` if this rank is not in the grid. Local.
    ///
    /// # Errors
    /// Returns `ErrorKind::Dims` if the grid has more ranks than the communicator, and `ErrorKind::Comm` if this
    /// is an intercommunicator.
    #[doc(alias = "MPI_Cart_map")]
    pub fn cart_map(&self, grid: &Grid) -> Result<Option<usize>> {
        Ok(self.places(grid, true)?.iter().position(|&rank| rank == self.rank()))
    }

    /// Returns the rank of this communicator at each place of the grid.
    fn places(&self, grid: &Grid, reorder: bool) -> Result<Vec<usize>> {
        self.check_room(grid.size(), ErrorKind::Dims, "dims")?;
        if !reorder {
            return Ok((0..grid.size()).collect());
        }
        let cpu = |rank| self.endpoint().cpu_of(self.group().world_rank(rank)?);
        Ok(placed(grid, &(0..grid.size()).map(cpu).collect::<Vec<_>>()))
    }

    /// Divides the grid of this communicator into slices, and makes a communicator of each slice. Returns the
    /// communicator of this rank's slice. A slice has the dimensions for which `remain` has `true`. Collective.
    ///
    /// # Errors
    /// Returns `ErrorKind::Topology` if the ranks of the communicator do not form a grid, `ErrorKind::Dims` if `remain`
    /// does not have one entry per dimension, `ErrorKind::Other` if another rank found an error in its arguments, and
    /// `ErrorKind::ProcAborted` if a rank has died.
    #[doc(alias = "MPI_Cart_sub")]
    pub fn cart_sub(&self, remain: &[bool]) -> Result<Self> {
        let grid = self.topology().and_then(|topology| topology.grid()).ok_or_else(|| {
            Error::new(ErrorKind::Topology, "comm", "the communicator is not a grid")
        });
        let slice = grid.and_then(|grid| grid.slice(remain, self.rank()));
        let (slice, number, place) = slice.inspect_err(|_| self.fail_creation())?;
        // Both numbers are below the number of ranks, which is at most 4096.
        let made = self.split(Some(number as u32), place as i32)?;
        let made = made.ok_or_else(|| {
            Error::new(ErrorKind::Internal, "comm", "a rank is in no slice of its own grid")
        })?;
        made.with_topology(crate::topo::Topology::new(Shape::Grid(slice), place)?)
    }
}

impl std::ops::Deref for Cartesian {
    type Target = Communicator;

    /// Returns the communicator of the grid, so that a grid has all calls of a communicator.
    fn deref(&self) -> &Communicator {
        &self.comm
    }
}

impl Cartesian {
    fn of(comm: Communicator, grid: &Grid) -> Result<Self> {
        let coords = grid.coords_of(comm.rank())?.into();
        Ok(Self { comm, grid: grid.clone(), coords })
    }

    /// Returns the communicator of the grid.
    pub fn comm(&self) -> &Communicator {
        &self.comm
    }

    /// Returns the geometry of the grid.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Returns the number of ranks along each dimension.
    pub fn dims(&self) -> &[usize] {
        self.grid.dims()
    }

    /// Returns one entry per dimension: true if the dimension is periodic.
    pub fn periodic(&self) -> &[bool] {
        self.grid.periodic()
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
        self.grid.coords_of(rank)
    }

    /// Returns the rank at `coords`. In periodic dimensions, coordinates wrap around. Returns `None` if
    /// `coords` is outside the grid or does not have one entry per dimension.
    #[doc(alias = "MPI_Cart_rank")]
    pub fn rank_of(&self, coords: &[i64]) -> Option<usize> {
        self.grid.rank_of(coords)
    }

    /// Returns `(source, dest)` for a shift in which every rank sends to the rank `displacement` steps
    /// further along `dim`. This rank receives from `source` and sends to `dest`. If `dim` is not periodic
    /// and one of the two ranks would lie beyond the edge of the grid, `None` stands for that rank.
    ///
    /// # Errors
    /// Returns `ErrorKind::Dims` if the grid has no dimension `dim`.
    #[doc(alias = "MPI_Cart_shift")]
    pub fn shift(&self, dim: usize, displacement: i64) -> Result<(Option<usize>, Option<usize>)> {
        self.grid.shift(self.comm.rank(), dim, displacement)
    }

    /// Divides the grid into slices, and returns this rank's slice. A slice has the dimensions for which `remain` has
    /// `true`. Collective.
    ///
    /// # Errors
    /// Returns `ErrorKind::Dims` if `remain` does not have one entry per dimension, `ErrorKind::Other` if another rank
    /// found an error in its arguments, and `ErrorKind::ProcAborted` if a rank has died.
    #[doc(alias = "MPI_Cart_sub")]
    pub fn slice(&self, remain: &[bool]) -> Result<Self> {
        let comm = self.comm.cart_sub(remain)?;
        let (grid, _, _) = self.grid.slice(remain, self.comm.rank())?;
        Self::of(comm, &grid)
    }
}
