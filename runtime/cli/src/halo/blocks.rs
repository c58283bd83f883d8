//! Distributes cubes from rank 0 to the blocks of all ranks, and collects the blocks again. A cube is an
//! array on rank 0 with the values of one field in the whole grid.
//!
//! `job.rs` uses these functions to distribute an initial field that comes from a file, and to collect the
//! result for `--verify`. A block is described by two subarray datatypes: one selects the block in the cube
//! on rank 0, the other selects it in the padded field of the rank that owns the block. So no rank copies
//! cells into a separate buffer for a message.
//!
//! Rank 0 handles the other ranks in rank order, and for each rank the cubes in field order. The tag of a
//! message is the number of its field. Rank 0 packs and unpacks its own block instead of sending a message to
//! itself. `checkpoint.rs` and `verdict.rs` use the description of the blocks too.

use typepack::engine::{pack, unpack};
use typepack::halo::Field;
use typepack::{Cartesian, Communicator, Datatype, Named, Order, Plan, Result};

use super::decomposition::{Part, part};

/// Returns the committed datatype of a block inside an array of doubles.
fn block(sizes: [usize; 3], subsizes: [usize; 3], starts: [usize; 3]) -> Result<Plan> {
    // The cast is lossless: the values are extents of arrays in memory.
    let wide = |values: [usize; 3]| values.map(|value| value as i64);
    let element = Datatype::named(Named::F64);
    let [sizes, subsizes, starts] = [sizes, subsizes, starts].map(wide);
    typepack::commit(&Datatype::subarray(&sizes, &subsizes, &starts, Order::C, &element)?)
}

/// Returns the committed datatype of a field's owned cells, the cells without the halo.
pub fn owned(field: &Field<f64, 3>) -> Result<Plan> {
    block(field.padded_shape(), field.shape(), [field.width(); 3])
}

/// Returns the block of `rank`, and the committed datatype that selects the block in a cube of the whole
/// grid.
fn in_cube(cartesian: &Cartesian, grid: [usize; 3], rank: usize) -> Result<(Part, Plan)> {
    let mut ranks = [0; 3];
    ranks.copy_from_slice(cartesian.dims());
    let mut coordinates = [0; 3];
    coordinates.copy_from_slice(&cartesian.coords_of(rank)?);
    let part = part(grid, ranks, coordinates);
    Ok((part, block(grid, part.shape, part.start)?))
}

/// Returns the block of this rank.
pub fn own_part(grid: [usize; 3], cartesian: &Cartesian) -> Part {
    let triple = |values: &[usize]| std::array::from_fn(|d| values[d]);
    part(grid, triple(cartesian.dims()), triple(cartesian.coords()))
}

/// Calls `row` for each row of owned cells. The arguments of `row` are the position of the row's first cell
/// in memory, and the row's z and y in the block.
pub fn for_each_owned_row(
    shape: [usize; 3],
    width: usize,
    mut row: impl FnMut(usize, usize, usize),
) {
    let [_, py, px] = shape.map(|extent| extent + 2 * width);
    for z in 0..shape[0] {
        for y in 0..shape[1] {
            row(((z + width) * py + y + width) * px + width, z, y);
        }
    }
}

fn tag(field: usize) -> i32 {
    // The cast is lossless: `job.rs` has checked that there are at most 1024 fields.
    field as i32
}

/// Distributes the blocks of all `cubes` from rank 0 to all ranks. Rank 0 passes the cubes, and the other
/// ranks pass `None`.
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
            comm.recv_elements(field.as_mut_slice(), &plan, 1, 0, tag(number))?;
        }
        return Ok(());
    };
    for rank in 1..comm.size() {
        let (_, plan) = in_cube(cartesian, grid, rank)?;
        for (number, cube) in cubes.iter().enumerate() {
            comm.send_elements(cube, &plan, 1, rank, tag(number))?;
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

/// Collects the blocks of all ranks on rank 0. Rank 0 gets one cube of the whole grid per field, and the
/// other ranks get `None`.
pub fn collect(
    cartesian: &Cartesian,
    grid: [usize; 3],
    fields: &[Field<f64, 3>],
) -> Result<Option<Vec<Vec<f64>>>> {
    let comm: &Communicator = cartesian.comm();
    if comm.rank() != 0 {
        for (number, field) in fields.iter().enumerate() {
            comm.send_elements(field.as_slice(), &owned(field)?, 1, 0, tag(number))?;
        }
        return Ok(None);
    }
    let (part, own) = in_cube(cartesian, grid, 0)?;
    let mut packed = vec![0; size_of::<f64>() * part.shape.iter().product::<usize>()];
    let mut cubes = Vec::with_capacity(fields.len());
    for field in fields {
        // A cell that no rank sends stays NaN. NaN differs from every result, so the verification finds such
        // a cell.
        let mut cube = vec![f64::NAN; grid.iter().product()];
        pack(&owned(field)?, 1, field.as_slice(), &mut packed)?;
        unpack(&own, 1, &packed, &mut cube)?;
        cubes.push(cube);
    }
    for rank in 1..comm.size() {
        let (_, plan) = in_cube(cartesian, grid, rank)?;
        for (number, cube) in cubes.iter_mut().enumerate() {
            comm.recv_elements(cube, &plan, 1, rank, tag(number))?;
        }
    }
    Ok(Some(cubes))
}
