//! A 2-D array in a file. The ranks stand in a grid, and each of them writes its block of the array. The
//! file has the whole array, row by row, whatever the number of ranks. Then every rank reads the whole
//! array.
//!
//! Run it with `mpiexec -n 4 array array.bin`; any number of ranks works.

use std::array::from_fn;
use typepack::io::{File, Mode};
use typepack::{Datatype, Named, Order, Result, dims_create};

/// Rows and columns of the array.
const SHAPE: [usize; 2] = [8, 12];

fn main() -> Result<()> {
    let universe = typepack::init()?;
    let world = universe.world();
    let path = std::env::args().nth(1).unwrap_or("array.bin".into());

    // This rank has the rows and columns from `starts[d]` on, `subsizes[d]` of them.
    let mut dims = [0; 2];
    dims_create(world.size(), &mut dims)?;
    let place = [world.rank() / dims[1], world.rank() % dims[1]];
    let starts: [usize; 2] = from_fn(|d| SHAPE[d] * place[d] / dims[d]);
    let subsizes: [usize; 2] = from_fn(|d| SHAPE[d] * (place[d] + 1) / dims[d] - starts[d]);
    let mut mine = Vec::new();
    for row in starts[0]..starts[0] + subsizes[0] {
        mine.extend((starts[1]..starts[1] + subsizes[1]).map(|column| (100 * row + column) as f64));
    }

    // The filetype selects the block in the array of the file.
    let double = Datatype::named(Named::F64);
    let wide = |values: [usize; 2]| values.map(|value| value as i64);
    let block =
        Datatype::subarray(&wide(SHAPE), &wide(subsizes), &wide(starts), Order::C, &double)?;

    let file = File::open(&world, &path, Mode::CREATE_READ_WRITE)?;
    // An older file of this name may be longer.
    file.set_size((SHAPE[0] * SHAPE[1] * size_of::<f64>()) as i64)?;
    file.set_view(Some(0), &double, &block, "native")?;
    file.write_all(&mine)?;
    file.close()?;

    // Without a view, the file is a sequence of bytes.
    let mut all = [[0.0; SHAPE[1]]; SHAPE[0]];
    let file = File::open(&world, &path, Mode::READ_ONLY)?;
    file.read_at_all(0, all.as_flattened_mut())?;
    file.close()?;
    assert_eq!(all, from_fn(|row| from_fn(|column| (100 * row + column) as f64)));
    println!("rank {}: wrote {subsizes:?} values, read {SHAPE:?}", world.rank());
    Ok(())
}
