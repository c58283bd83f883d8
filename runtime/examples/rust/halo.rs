//! A halo exchange. A three-dimensional grid is cut into one block per rank. Every block has a
//! layer of halo cells around it, which holds copies of the neighbours' cells.
//!
//! Run it with `mpiexec -n 4 halo`; any number of ranks works.

use typepack::halo::{Field, Halo, Stencil};
use typepack::{Result, dims_create};

/// Number of cells of one block along each dimension.
const SHAPE: [usize; 3] = [16, 16, 16];

fn main() -> Result<()> {
    let universe = typepack::init()?;
    let world = universe.world();
    let mut dims = [0; 3];
    dims_create(world.size(), &mut dims)?;
    let grid = world.cartesian(&dims, &[true; 3])?;

    // The plan: one message per face (a star has 6 faces), for 1 field with a halo of 1 cell.
    let halo = Halo::<f64, 3>::new(&grid, SHAPE, 1, Stencil::Star, 1)?;
    let mut fields = [Field::new(SHAPE, 1)?];
    fields[0].as_mut_slice().fill(world.rank() as f64);

    let mut exchange = halo.start(&mut fields)?;
    // Cells that need no halo can be computed while the messages travel.
    let interior = exchange.interior();
    let sum: f64 = interior.cells(0, [8, 8, 0], SHAPE[2]).iter().sum();
    assert_eq!(sum, (SHAPE[2] * world.rank()) as f64);
    exchange.wait()?;

    // Every halo cell beside a face now holds the number of the neighbour rank beyond that face.
    let value = |x, y, z| {
        fields[0].as_slice()
            [fields[0].position([x, y, z]).expect("the array should have this cell")]
    };
    let end = SHAPE.map(|cells| cells as isize);
    let beside = [
        (value(-1, 3, 5), value(end[0], 3, 5)),
        (value(3, -1, 5), value(3, end[1], 5)),
        (value(3, 5, -1), value(3, 5, end[2])),
    ];
    for (dim, (low, high)) in beside.into_iter().enumerate() {
        let (below, above) = grid.shift(dim, 1)?;
        assert_eq!(Some(low as usize), below, "the halo below dimension {dim}");
        assert_eq!(Some(high as usize), above, "the halo above dimension {dim}");
    }
    let packed_by = &halo.faces()[0].pack;
    println!(
        "rank {}: {} bytes sent, first face packed by {packed_by}",
        world.rank(),
        halo.bytes()
    );
    Ok(())
}
