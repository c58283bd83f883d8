//! A stencil over a shared window: the ranks smooth an array, and read the cells of their neighbours directly.
//!
//! Run it with `mpiexec -n 4 stencil`. In each step, a cell becomes the mean of itself and its two neighbours. Each
//! rank has a block of the array; the window has all blocks in one piece, so no cell is copied to a halo. Two windows
//! take turns: a step reads from one and writes to the other.

use typepack::Result;
use typepack::rma::WindowOf;

/// Number of cells at each rank, and of steps.
const CELLS: usize = 50;
const STEPS: usize = 40;

fn start(cell: usize) -> f64 {
    (cell * cell % 17) as f64
}

fn mean(left: f64, here: f64, right: f64) -> f64 {
    (left + here + right) / 3.0
}

fn main() -> Result<()> {
    let universe = typepack::init()?;
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    let (first, all) = (rank * CELLS, size * CELLS);
    let mut from = WindowOf::<f64>::allocate_shared(&world, CELLS)?;
    let mut to = WindowOf::<f64>::allocate_shared(&world, CELLS)?;
    for cell in 0..CELLS {
        from.own().set(cell, start(first + cell))?;
    }
    for _ in 0..STEPS {
        // The fence makes the cells that the neighbours have written in the last step visible here.
        let epoch = from.fence()?;
        // The array is a ring: the neighbour of the last cell is the first one.
        let left = epoch.rank((rank + size - 1) % size)?.cells()?.get(CELLS - 1)?;
        let right = epoch.rank((rank + 1) % size)?.cells()?.get(0)?;
        let own = epoch.rank(rank)?.into_cells()?;
        let mut cells = vec![left];
        cells.extend(own.iter());
        cells.push(right);
        let next: Vec<f64> =
            cells.windows(3).map(|three| mean(three[0], three[1], three[2])).collect();
        to.own().write(&next, 0)?;
        // The next step writes to `from`, after all ranks have read from it.
        epoch.end()?;
        std::mem::swap(&mut from, &mut to);
    }
    // Computes the same without other ranks.
    let mut cells: Vec<f64> = (0..all).map(start).collect();
    for _ in 0..STEPS {
        let next = |i: usize| mean(cells[(i + all - 1) % all], cells[i], cells[(i + 1) % all]);
        cells = (0..all).map(next).collect();
    }
    assert!(from.own().iter().eq(cells[first..first + CELLS].iter().copied()));
    println!("rank {rank}: {CELLS} cells are right after {STEPS} steps");
    from.free()?;
    to.free()
}
