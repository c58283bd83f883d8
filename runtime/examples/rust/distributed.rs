//! An array that is distributed over the ranks: each rank has a block, and puts values into the blocks of all others.
//!
//! Run it with `mpiexec -n 4 distributed`. Each rank computes the squares of the numbers that are its rank modulo the
//! number of ranks, and puts them into the array at their places. A layout puts all squares for one rank in one call.

use typepack::rma::WindowOf;
use typepack::{Datatype, Named, Result};

/// Number of values at each rank.
const BLOCK: usize = 60;

fn main() -> Result<()> {
    let universe = typepack::init()?;
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    let mut window = WindowOf::<u64>::allocate(&world, BLOCK)?;

    let epoch = window.fence()?;
    for owner in 0..size {
        // The numbers of this rank in the block of the owner: `first`, and then every `size`-th.
        let start = owner * BLOCK;
        let first = (rank + size - start % size) % size;
        let count = (BLOCK - first.min(BLOCK)).div_ceil(size);
        let squares: Vec<u64> =
            (0..count).map(|i| (start + first + i * size) as u64).map(|n| n * n).collect();
        let value = Datatype::named(Named::U64);
        let row = typepack::commit(&Datatype::contiguous(count as i64, &value)?)?;
        let every = typepack::commit(&Datatype::vector(count as i64, 1, size as i64, &value)?)?;
        epoch.rank(owner)?.put_as((&row, 1), &squares, (&every, 1), first)?;
    }
    epoch.end()?;

    for (i, value) in window.own().iter().enumerate() {
        let number = (rank * BLOCK + i) as u64;
        assert_eq!(value, number * number);
    }
    println!("rank {rank}: {BLOCK} squares are right");
    window.free()
}
