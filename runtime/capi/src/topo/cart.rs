//! Cartesian topologies (MPI-5.0 sections 8.5.1 and 8.5.5 to 8.5.8).

use super::{enough, find, length, of, rank_or_undefined};
use crate::abi;
use crate::argument::{Array, OutArray, Output, room};
use crate::comm::{Comm, create};
use crate::error::{Failure, Result};
use crate::raw;
use std::ffi::c_int;
use typepack::topo::{Grid, Topology};

/// Returns the grid that the arguments of a call describe. Returns `None` if a dimension is 0, so that the grid has no
/// ranks: the standard forbids only grids that are larger than the group.
fn grid_of(ndims: c_int, dims: Array<c_int>, periods: Array<c_int>) -> Result<Option<Grid>> {
    let count = length(ndims, abi::ERR_DIMS, "ndims")?;
    // SAFETY: the standard prescribes `ndims` entries for both arrays, and `count` equals `ndims`. The
    // iterators end in this function.
    let (given, wraps) =
        unsafe { (dims.entries(count, "dims")?, periods.entries(count, "periods")?) };
    let (mut dims, mut periodic) = (Vec::new(), Vec::new());
    for (place, (dim, wraps)) in given.zip(wraps).enumerate() {
        let dim = usize::try_from(dim).map_err(|_| {
            let detail = format!("entry {place} is {dim}; it must be at least 0");
            Failure::new(abi::ERR_DIMS, "dims", detail)
        })?;
        if place == 0 {
            (dims, periodic) = (room(count, "dims")?, room(count, "periods")?);
        }
        dims.push(dim);
        periodic.push(wraps != 0);
    }
    if dims.contains(&0) {
        return Ok(None);
    }
    Ok(Some(Grid::new(&dims, &periodic)?))
}

/// Returns the grid of a communicator.
fn grid(comm: &Comm) -> Result<&Grid> {
    of(comm, Topology::grid, "a Cartesian topology")
}

/// `MPI_Cart_create`.
pub fn create(
    comm: raw::Comm,
    ndims: c_int,
    dims: Array<c_int>,
    periods: Array<c_int>,
    reorder: c_int,
    newcomm: Output<raw::Comm>,
) -> Result {
    let parent = find(comm)?;
    let (out, grid) = create::arguments(&parent, || {
        Ok((newcomm.required("comm_cart")?, grid_of(ndims, dims, periods)?))
    })?;
    let comm = parent.communicator();
    let made = match grid {
        Some(grid) => comm.cart_create(&grid, reorder != 0)?,
        // No rank is in the grid, so all get `MPI_COMM_NULL`.
        None => comm.split(None, 0)?,
    };
    create::hand_out(&parent, made, out)
}

/// `MPI_Cart_map`. A grid with a dimension of 0 has no ranks, so this rank is not in it.
pub fn map(
    comm: raw::Comm,
    ndims: c_int,
    dims: Array<c_int>,
    periods: Array<c_int>,
    newrank: Output<c_int>,
) -> Result {
    let comm = find(comm)?;
    let out = newrank.required("newrank")?;
    let place = match grid_of(ndims, dims, periods)? {
        Some(grid) => comm.communicator().cart_map(&grid)?,
        None => None,
    };
    out.set(rank_or_undefined(place));
    Ok(())
}

/// `MPI_Cart_sub`.
pub fn sub(comm: raw::Comm, remain: Array<c_int>, newcomm: Output<raw::Comm>) -> Result {
    let parent = find(comm)?;
    let (out, remain) = create::arguments(&parent, || {
        let out = newcomm.required("newcomm")?;
        let count = grid(&parent)?.dims().len();
        // SAFETY: the standard prescribes one entry for each dimension of the grid, and `count` is their number.
        Ok((out, unsafe { remain.copy(count, "remain_dims")? }))
    })?;
    let remain: Vec<bool> = remain.into_iter().map(|kept| kept != 0).collect();
    let made = parent.communicator().cart_sub(&remain)?;
    create::hand_out(&parent, Some(made), out)
}

/// `MPI_Cartdim_get`.
pub fn dim_get(comm: raw::Comm, ndims: Output<c_int>) -> Result {
    let comm = find(comm)?;
    let count = grid(&comm)?.dims().len();
    ndims.required("ndims")?.set(count as c_int);
    Ok(())
}

/// `MPI_Cart_get`.
pub fn get(
    comm: raw::Comm,
    maxdims: c_int,
    dims: OutArray<c_int>,
    periods: OutArray<c_int>,
    coords: OutArray<c_int>,
) -> Result {
    let comm = find(comm)?;
    let grid = grid(&comm)?;
    let count = grid.dims().len();
    enough(length(maxdims, abi::ERR_DIMS, "maxdims")?, count, abi::ERR_DIMS, "maxdims")?;
    // SAFETY: the standard prescribes `maxdims` entries for each array, and `count` is at most `maxdims`.
    let (to_dims, to_periods, to_coords) = unsafe {
        (
            dims.places(count, "dims")?,
            periods.places(count, "periods")?,
            coords.places(count, "coords")?,
        )
    };
    let own = grid.coords_of(comm.rank())?;
    to_dims.fill(grid.dims().iter().map(|&dim| dim as c_int));
    to_periods.fill(grid.periodic().iter().map(|&wraps| c_int::from(wraps)));
    to_coords.fill(own.into_iter().map(|coord| coord as c_int));
    Ok(())
}

/// `MPI_Cart_rank`.
pub fn rank(comm: raw::Comm, coords: Array<c_int>, rank: Output<c_int>) -> Result {
    let comm = find(comm)?;
    let grid = grid(&comm)?;
    let out = rank.required("rank")?;
    // SAFETY: the standard prescribes one entry for each dimension of the grid.
    let coords = unsafe { coords.copy(grid.dims().len(), "coords")? };
    let wide: Vec<i64> = coords.iter().copied().map(i64::from).collect();
    let found = grid.rank_of(&wide).ok_or_else(|| {
        let detail = format!(
            "{coords:?} is outside the grid, whose dimensions are {:?}; only coordinates of periodic \
             dimensions wrap around",
            grid.dims()
        );
        Failure::new(abi::ERR_ARG, "coords", detail)
    })?;
    out.set(found as c_int);
    Ok(())
}

/// `MPI_Cart_coords`.
pub fn coords(comm: raw::Comm, rank: c_int, maxdims: c_int, coords: OutArray<c_int>) -> Result {
    let comm = find(comm)?;
    let grid = grid(&comm)?;
    let rank = length(rank, abi::ERR_RANK, "rank")?;
    let found = grid.coords_of(rank)?;
    enough(length(maxdims, abi::ERR_DIMS, "maxdims")?, found.len(), abi::ERR_DIMS, "maxdims")?;
    // SAFETY: the standard prescribes `maxdims` entries for the array, and `found` has at most `maxdims`.
    let places = unsafe { coords.places(found.len(), "coords")? };
    places.fill(found.into_iter().map(|coord| coord as c_int));
    Ok(())
}

/// `MPI_Cart_shift`.
pub fn shift(
    comm: raw::Comm,
    direction: c_int,
    displacement: c_int,
    source: Output<c_int>,
    dest: Output<c_int>,
) -> Result {
    let comm = find(comm)?;
    let grid = grid(&comm)?;
    let direction = length(direction, abi::ERR_DIMS, "direction")?;
    let (to_source, to_dest) = (source.required("rank_source")?, dest.required("rank_dest")?);
    let (source, dest) = grid.shift(comm.rank(), direction, displacement.into())?;
    let rank = |rank: Option<usize>| rank.map_or(abi::PROC_NULL, |rank| rank as c_int);
    to_source.set(rank(source));
    to_dest.set(rank(dest));
    Ok(())
}
