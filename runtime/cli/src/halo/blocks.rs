//! Deals whole-grid cubes out from rank 0 to the ranks' blocks, and collects them again.
//!
//! `job.rs` deals an initial field that was read from a file, and collects the result that
//! `--verify` compares. Every block is a subarray of the cube on rank 0 and of the padded field on
//! its rank, so no rank copies cells into a buffer of its own.
//!
//! Invariants: ranks are taken in order and cubes within a rank in order; tags are the fields'
//! numbers. Rank 0's own block goes through pack and unpack, as a message to itself would.

use typepack::engine::{pack, unpack};
use typepack::halo::Field;
use typepack::{Cartesian, Communicator, Datatype, Named, Order, Plan, Result};

use super::decomposition::{Part, part};

/// The datatype of a block inside an array of doubles.
fn block(sizes: [usize; 3], subsizes: [usize; 3], starts: [usize; 3]) -> Result<Plan> {
    // Lossless: all of these are extents of arrays in memory.
    let wide = |values: [usize; 3]| values.map(|value| value as i64);
    let element = Datatype::named(Named::F64);
    let [sizes, subsizes, starts] = [sizes, subsizes, starts].map(wide);
    typepack::commit(&Datatype::subarray(&sizes, &subsizes, &starts, Order::C, &element)?)
}

/// The owned cells of a field.
fn owned(field: &Field<f64, 3>) -> Result<Plan> {
    block(field.padded_shape(), field.shape(), [field.width(); 3])
}

/// The block of `rank` and its datatype in a whole cube.
fn in_cube(cartesian: &Cartesian, grid: [usize; 3], rank: usize) -> Result<(Part, Plan)> {
    let mut ranks = [0; 3];
    ranks.copy_from_slice(cartesian.dims());
    let mut coordinates = [0; 3];
    coordinates.copy_from_slice(&cartesian.coords_of(rank)?);
    let part = part(grid, ranks, coordinates);
    Ok((part, block(grid, part.shape, part.start)?))
}

fn tag(field: usize) -> i32 {
    // The number of fields was checked against the tags that there are.
    field as i32
}

/// Rank 0 gives every rank its block of each of `cubes`; the others' argument is `None`.
pub fn deal(
    cartesian: &Cartesian,
    grid: [usize; 3],
    cubes: Option<&[Vec<f64>]>,
    fields: &mut [Field<f64, 3>],
) -> Result<()> {
    let comm: &Communicator = cartesian.comm();
    let Some(cubes) = cubes else {
        for (number, field) in fields.iter_mut().enumerate() {
            let plan = owned(field)?;
            comm.recv(field.as_mut_slice(), &plan, 1, 0, tag(number))?;
        }
        return Ok(());
    };
    for rank in 1..comm.size() {
        let (_, plan) = in_cube(cartesian, grid, rank)?;
        for (number, cube) in cubes.iter().enumerate() {
            comm.send(cube, &plan, 1, rank, tag(number))?;
        }
    }
    let (part, plan) = in_cube(cartesian, grid, 0)?;
    let mut packed = vec![0; size_of::<f64>() * part.shape.iter().product::<usize>()];
    for (cube, field) in cubes.iter().zip(fields) {
        pack(&plan, 1, cube, &mut packed)?;
        let plan = owned(field)?;
        unpack(&plan, 1, &packed, field.as_mut_slice())?;
    }
    Ok(())
}

/// Rank 0 gets every rank's block of each field, as whole cubes; the others get `None`.
pub fn collect(
    cartesian: &Cartesian,
    grid: [usize; 3],
    fields: &[Field<f64, 3>],
) -> Result<Option<Vec<Vec<f64>>>> {
    let comm: &Communicator = cartesian.comm();
    if comm.rank() != 0 {
        for (number, field) in fields.iter().enumerate() {
            comm.send(field.as_slice(), &owned(field)?, 1, 0, tag(number))?;
        }
        return Ok(None);
    }
    let (part, own) = in_cube(cartesian, grid, 0)?;
    let mut packed = vec![0; size_of::<f64>() * part.shape.iter().product::<usize>()];
    let mut cubes = Vec::with_capacity(fields.len());
    for field in fields {
        // NaN: a cell that no rank sent differs from every result.
        let mut cube = vec![f64::NAN; grid.iter().product()];
        pack(&owned(field)?, 1, field.as_slice(), &mut packed)?;
        unpack(&own, 1, &packed, &mut cube)?;
        cubes.push(cube);
    }
    for rank in 1..comm.size() {
        let (_, plan) = in_cube(cartesian, grid, rank)?;
        for (number, cube) in cubes.iter_mut().enumerate() {
            comm.recv(cube, &plan, 1, rank, tag(number))?;
        }
    }
    Ok(Some(cubes))
}
