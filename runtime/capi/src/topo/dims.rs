//! `MPI_Dims_create`: chooses the dimensions of a grid with a given number of ranks (MPI-5.0 section 8.5.2).
//!
//! The runtime chooses the dimensions. `cart.rs` makes grids.

use crate::abi;
use crate::argument::InOutArray;
use crate::error::{Failure, Result};
use std::ffi::c_int;

/// `MPI_Dims_create`.
pub fn create(nnodes: c_int, ndims: c_int, dims: InOutArray<c_int>) -> Result {
    let nodes = usize::try_from(nnodes).ok().filter(|&nodes| nodes > 0);
    let nodes = nodes.ok_or_else(|| {
        Failure::new(
            abi::ERR_ARG,
            "nnodes",
            format!("{nnodes} is less than 1; it must be at least 1"),
        )
    })?;
    let count = usize::try_from(ndims)
        .map_err(|_| Failure::new(abi::ERR_DIMS, "ndims", format!("{ndims} is negative")))?;
    if count == 0 {
        return Ok(());
    }
    // SAFETY: the caller of `MPI_Dims_create` passes an array of `ndims` entries, and `count` equals
    // `ndims`. This function drops the iterator before it returns.
    let (given, places) =
        unsafe { (dims.input().entries(count, "dims")?, dims.output().places(count, "dims")?) };
    let mut chosen = given
        .enumerate()
        .map(|(i, given)| {
            usize::try_from(given).map_err(|_| {
                Failure::new(abi::ERR_DIMS, "dims", format!("entry {i}: {given} is negative"))
            })
        })
        .collect::<Result<Vec<usize>>>()?;
    typepack::dims_create(nodes, &mut chosen)?;
    // No dimension is greater than the number of ranks, which is a C integer.
    places.fill(chosen.into_iter().map(|dim| dim as c_int));
    Ok(())
}
