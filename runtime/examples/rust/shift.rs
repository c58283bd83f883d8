//! The program of the guide's page about Rust. Every rank sends the first column of its matrix to the next rank. It
//! receives a column from the previous rank and stores this column as the last column of its result.
//!
//! Run it with `mpiexec -n 2 shift`; any number of ranks works.

use typepack::{Datatype, Elements, ElementsMut, Named, commit};

fn main() -> typepack::Result<()> {
    let universe = typepack::init()?; // joins the job of mpiexec, or makes a job of one rank
    let world = universe.world();
    let double = Datatype::named(Named::F64);
    let column = commit(&Datatype::vector(4, 1, 6, &double)?)?; // 4 blocks of 1 double, every 6 doubles
    let (rank, size) = (world.rank(), world.size());
    let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
    let matrix = [rank as f64; 24]; // 4 rows of 6 doubles
    let mut result = matrix; // its last column will be the first column of the previous rank
    let first = Elements::new(&matrix, &column, 1);
    let mut last = ElementsMut::new(&mut result[5..], &column, 1);
    world.sendrecv(&first, next, 0, &mut last, previous, 0)?;
    println!("rank {rank}: first row {:?}", &result[..6]);
    Ok(())
}
