//! `MPI_Dims_create`: dimensions for a grid of so many ranks (MPI-5.0 section 8.5.2).
//!
//! The runtime's Cartesian grids choose; grids themselves are not built in the face yet.

use crate::abi;
use crate::error::{Failure, Result};
use std::ffi::c_int;

/// `MPI_Dims_create`.
///
/// # Safety
/// As the C function.
pub unsafe fn create(nnodes: c_int, ndims: c_int, dims: *mut c_int) -> Result {
    let nodes = usize::try_from(nnodes).ok().filter(|&nodes| nodes > 0);
    let nodes = nodes
        .ok_or_else(|| Failure::new(abi::ERR_ARG, "nnodes", format!("{nnodes} is below 1")))?;
    let count = usize::try_from(ndims)
        .map_err(|_| Failure::new(abi::ERR_DIMS, "ndims", format!("{ndims} is negative")))?;
    if count == 0 {
        return Ok(());
    }
    if dims.is_null() {
        return Err(Failure::null("dims"));
    }
    let mut chosen = (0..count)
        .map(|i| {
            // SAFETY: readable for `ndims` entries, which C may not have aligned.
            let given = unsafe { dims.add(i).read_unaligned() };
            usize::try_from(given).map_err(|_| {
                Failure::new(abi::ERR_DIMS, "dims", format!("entry {i}: {given} is negative"))
            })
        })
        .collect::<Result<Vec<usize>>>()?;
    typepack::dims_create(nodes, &mut chosen)?;
    for (i, dim) in chosen.into_iter().enumerate() {
        // SAFETY: writable for `ndims` entries. None is greater than the number of ranks.
        unsafe { dims.add(i).write_unaligned(dim as c_int) };
    }
    Ok(())
}
